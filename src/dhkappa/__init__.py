"""Can we trust these labels? DiPietro-Hazari kappa and Fleiss' kappa, computed exactly."""

from dhkappa.data.tally import Tally, tally
from dhkappa.errors import DataError
from dhkappa.estimate import compare, dh_kappa, fleiss_kappa
from dhkappa.stats.intervals import Interval
from dhkappa.stats.kappa import Parts
from dhkappa.stats.notes import Note
from dhkappa.stats.result import Kappa
from dhkappa.stats.sample import Dropped
from dhkappa.stats.simulate import Simulation, simulate

__version__ = "0.1.0"

__all__ = [
    "DataError",
    "Dropped",
    "Interval",
    "Kappa",
    "Note",
    "Parts",
    "Simulation",
    "Tally",
    "compare",
    "dh_kappa",
    "fleiss_kappa",
    "simulate",
    "tally",
]
