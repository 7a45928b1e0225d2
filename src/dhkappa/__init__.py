"""Can we trust these labels? DiPietro-Hazari kappa and Fleiss' kappa, computed exactly."""

from typing import TYPE_CHECKING, Any

from dhkappa.data.tally import Tally
from dhkappa.errors import DataError
from dhkappa.estimate import audit, compare, dh_kappa, fleiss_kappa, plan, tally
from dhkappa.stats.intervals import Interval
from dhkappa.stats.kappa import Parts
from dhkappa.stats.notes import Note
from dhkappa.stats.result import Kappa
from dhkappa.stats.sample import Dropped
from dhkappa.stats.simulate import Simulation, simulate
from dhkappa.table import Table

if TYPE_CHECKING:
    from dhkappa.data.reading import read
    from dhkappa.data.source import Source
    from dhkappa.findings import Audit
    from dhkappa.stats.bootstrap import Bootstrap
    from dhkappa.stats.chance import RandomLabelTest
    from dhkappa.stats.compare import Comparison
    from dhkappa.stats.people import People
    from dhkappa.stats.plan import Plan

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "Bootstrap",
    "Comparison",
    "DataError",
    "Dropped",
    "Interval",
    "Kappa",
    "Note",
    "Parts",
    "People",
    "Plan",
    "RandomLabelTest",
    "Simulation",
    "Source",
    "Table",
    "Tally",
    "audit",
    "compare",
    "dh_kappa",
    "fleiss_kappa",
    "plan",
    "read",
    "simulate",
    "tally",
]

_ROOMS = {  # of calls and results that not everybody needs: opened when they are asked for
    "Audit": "findings",
    "Bootstrap": "stats.bootstrap",
    "Comparison": "stats.compare",
    "People": "stats.people",
    "Plan": "stats.plan",
    "RandomLabelTest": "stats.chance",
    "Source": "data.source",
    "read": "data.reading",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
