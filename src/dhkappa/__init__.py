"""Can we trust these labels? DiPietro-Hazari kappa and Fleiss' kappa, computed exactly."""

from __future__ import annotations

__version__ = "0.2.0"

TYPE_CHECKING = False  # importing typing would slow the start
if TYPE_CHECKING:
    from typing import Any

    from dhkappa.annotator_audit import AnnotatorAudit, SingleVoteAudit
    from dhkappa.api import audit, compare, dh_kappa, fleiss_kappa, tally
    from dhkappa.auditing import Audit
    from dhkappa.errors import DataError, Problem
    from dhkappa.inputs.check import Check
    from dhkappa.inputs.dataset import Dataset
    from dhkappa.inputs.reading import read
    from dhkappa.inputs.tally import Tally
    from dhkappa.merging import MergedReviews, merge_reviews
    from dhkappa.multilabel import MultilabelAudit
    from dhkappa.planning import plan
    from dhkappa.pooling import pool_shares
    from dhkappa.stats.agreement import CohenKappa
    from dhkappa.stats.annotator_baseline import AnnotatorBaseline
    from dhkappa.stats.annotator_result import AnnotatorScores
    from dhkappa.stats.annotator_slices import AnnotatorSlices
    from dhkappa.stats.baselines import Baselines
    from dhkappa.stats.bootstrap import Bootstrap
    from dhkappa.stats.change import Change, Changes
    from dhkappa.stats.compare import AnnotatorComparison
    from dhkappa.stats.comparison import Comparison
    from dhkappa.stats.gate import Gate, GateRow
    from dhkappa.stats.grades import Verdict
    from dhkappa.stats.history import Entry, History
    from dhkappa.stats.intervals import ConfidenceInterval
    from dhkappa.stats.kappa import Parts
    from dhkappa.stats.notes import Note
    from dhkappa.stats.other_annotators import OtherAnnotators
    from dhkappa.stats.permutation import PermutationTest
    from dhkappa.stats.plan import Plan
    from dhkappa.stats.pool_result import PoolShares
    from dhkappa.stats.rates import Rate, Rates
    from dhkappa.stats.result import Kappa
    from dhkappa.stats.sample import Excluded
    from dhkappa.stats.shift import Shift
    from dhkappa.stats.simulate import Simulation, simulate
    from dhkappa.stats.slice_table import Slices
    from dhkappa.stats.without import WithoutAnnotators
    from dhkappa.table import Table
    from dhkappa.tracking import SavedAudit, history

__all__ = ["audit", "compare", "dh_kappa", "fleiss_kappa", "merge_reviews", "plan", "read", "simulate", "tally"]
__all__ += ["Change", "Changes", "Entry", "History", "SavedAudit", "Shift", "history"]
__all__ += ["DataError", "Dataset", "Table", "Tally"]
__all__ += ["AnnotatorAudit", "AnnotatorBaseline", "AnnotatorComparison", "AnnotatorScores", "Audit", "Baselines"]
__all__ += ["Bootstrap", "Check", "CohenKappa", "Comparison", "ConfidenceInterval", "Excluded", "Gate", "GateRow"]
__all__ += ["Kappa", "MergedReviews", "MultilabelAudit", "Note", "OtherAnnotators", "Parts", "PermutationTest"]
__all__ += ["Plan", "PoolShares", "Problem", "Rate", "Rates", "pool_shares"]
__all__ += ["AnnotatorSlices", "Simulation", "SingleVoteAudit", "Slices", "Verdict", "WithoutAnnotators"]

_NAMES = {  # by module, imported on first use
    "annotator_audit": ("AnnotatorAudit", "SingleVoteAudit"),
    "api": ("audit", "compare", "dh_kappa", "fleiss_kappa", "tally"),
    "auditing": ("Audit",),
    "errors": ("DataError", "Problem"),
    "inputs.check": ("Check",),
    "inputs.dataset": ("Dataset",),
    "inputs.reading": ("read",),
    "inputs.tally": ("Tally",),
    "merging": ("MergedReviews", "merge_reviews"),
    "multilabel": ("MultilabelAudit",),
    "stats.agreement": ("CohenKappa",),
    "stats.annotator_baseline": ("AnnotatorBaseline",),
    "stats.annotator_result": ("AnnotatorScores",),
    "stats.baselines": ("Baselines",),
    "stats.bootstrap": ("Bootstrap",),
    "stats.change": ("Change", "Changes"),
    "stats.gate": ("Gate", "GateRow"),
    "stats.history": ("Entry", "History"),
    "stats.intervals": ("ConfidenceInterval",),
    "stats.kappa": ("Parts",),
    "stats.notes": ("Note",),
    "stats.other_annotators": ("OtherAnnotators",),
    "stats.permutation": ("PermutationTest",),
    "planning": ("plan",),
    "pooling": ("pool_shares",),
    "stats.plan": ("Plan",),
    "stats.pool_result": ("PoolShares",),
    "stats.compare": ("AnnotatorComparison",),
    "stats.comparison": ("Comparison",),
    "stats.rates": ("Rate", "Rates"),
    "stats.result": ("Kappa",),
    "stats.sample": ("Excluded",),
    "stats.shift": ("Shift",),
    "stats.simulate": ("Simulation", "simulate"),
    "stats.annotator_slices": ("AnnotatorSlices",),
    "stats.slice_table": ("Slices",),
    "stats.grades": ("Verdict",),
    "stats.without": ("WithoutAnnotators",),
    "table": ("Table",),
    "tracking": ("SavedAudit", "history"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
