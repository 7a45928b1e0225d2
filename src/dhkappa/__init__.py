"""Can we trust these labels? DiPietro-Hazari kappa and Fleiss' kappa, computed exactly."""

from __future__ import annotations

from dhkappa.version import __version__ as __version__

TYPE_CHECKING = False  # as of typing, which takes longer to load than all else before a Ctrl-C can be answered
if TYPE_CHECKING:
    from typing import Any

    from dhkappa.api import audit, compare, dh_kappa, fleiss_kappa, plan, tally
    from dhkappa.auditing import Audit
    from dhkappa.core.tally import Tally
    from dhkappa.errors import DataError
    from dhkappa.inputs.reading import read
    from dhkappa.inputs.source import Source
    from dhkappa.stats.annotator_comparison import People
    from dhkappa.stats.bootstrap import Bootstrap
    from dhkappa.stats.compare import Comparison
    from dhkappa.stats.intervals import Interval
    from dhkappa.stats.kappa import Parts
    from dhkappa.stats.notes import Note
    from dhkappa.stats.permutation import RandomLabelTest
    from dhkappa.stats.plan import Plan
    from dhkappa.stats.result import Kappa
    from dhkappa.stats.sample import Dropped
    from dhkappa.stats.simulate import Simulation, simulate
    from dhkappa.stats.verdict import Verdict
    from dhkappa.table import Table

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
    "Verdict",
    "audit",
    "compare",
    "dh_kappa",
    "fleiss_kappa",
    "plan",
    "read",
    "simulate",
    "tally",
]

_ROOMS = {  # opened when they are asked for, so that the command line answers at once
    "Audit": "auditing",
    "Bootstrap": "stats.bootstrap",
    "Comparison": "stats.compare",
    "DataError": "errors",
    "Dropped": "stats.sample",
    "Interval": "stats.intervals",
    "Kappa": "stats.result",
    "Note": "stats.notes",
    "Parts": "stats.kappa",
    "People": "stats.annotator_comparison",
    "Plan": "stats.plan",
    "RandomLabelTest": "stats.permutation",
    "Simulation": "stats.simulate",
    "Source": "inputs.source",
    "Table": "table",
    "Tally": "core.tally",
    "Verdict": "stats.verdict",
    "audit": "api",
    "compare": "api",
    "dh_kappa": "api",
    "fleiss_kappa": "api",
    "plan": "api",
    "read": "inputs.reading",
    "simulate": "stats.simulate",
    "tally": "api",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
