"""Can we trust these labels? DiPietro-Hazari kappa and Fleiss' kappa, computed exactly."""

from __future__ import annotations

from dhkappa.version import __version__ as __version__

TYPE_CHECKING = False  # as of typing, which takes longer to load than all else before a Ctrl-C can be answered
if TYPE_CHECKING:
    from typing import Any

    from dhkappa.api import audit, compare, dh_kappa, fleiss_kappa, plan, tally
    from dhkappa.auditing import Audit
    from dhkappa.errors import DataError
    from dhkappa.inputs.dataset import Dataset, Tally, read
    from dhkappa.stats.annotators import AnnotatorComparison
    from dhkappa.stats.bootstrap import Bootstrap
    from dhkappa.stats.intervals import ConfidenceInterval
    from dhkappa.stats.kappa import Baselines, Parts
    from dhkappa.stats.notes import Note
    from dhkappa.stats.permutation import PermutationTest
    from dhkappa.stats.plan import Plan
    from dhkappa.stats.result import Comparison, Kappa
    from dhkappa.stats.sample import Excluded
    from dhkappa.stats.simulate import Simulation, simulate
    from dhkappa.stats.verdict import Verdict
    from dhkappa.table import Table

__all__ = [
    "AnnotatorComparison",
    "Audit",
    "Baselines",
    "Bootstrap",
    "Comparison",
    "ConfidenceInterval",
    "DataError",
    "Dataset",
    "Excluded",
    "Kappa",
    "Note",
    "Parts",
    "PermutationTest",
    "Plan",
    "Simulation",
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

_MODULES = {  # imported on first use
    "AnnotatorComparison": "stats.annotators",
    "Audit": "auditing",
    "Baselines": "stats.kappa",
    "Bootstrap": "stats.bootstrap",
    "Comparison": "stats.result",
    "ConfidenceInterval": "stats.intervals",
    "DataError": "errors",
    "Excluded": "stats.sample",
    "Kappa": "stats.result",
    "Note": "stats.notes",
    "Parts": "stats.kappa",
    "PermutationTest": "stats.permutation",
    "Plan": "stats.plan",
    "Simulation": "stats.simulate",
    "Dataset": "inputs.dataset",
    "Table": "table",
    "Tally": "inputs.dataset",
    "Verdict": "stats.verdict",
    "audit": "api",
    "compare": "api",
    "dh_kappa": "api",
    "fleiss_kappa": "api",
    "plan": "api",
    "read": "inputs.dataset",
    "simulate": "stats.simulate",
    "tally": "api",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
