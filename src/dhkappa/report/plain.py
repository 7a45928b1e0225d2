"""The results of an audit as plain values for JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dhkappa.report import optional

if TYPE_CHECKING:
    from dhkappa.auditing import Audit


def audit_values(audit: Audit, limit: int | None) -> dict[str, Any]:
    """Return plain values, with at most ``limit`` items to review per labeler; see ``Audit.to_dict``."""
    return {
        "kind": "labels",
        "confidence_level": audit.confidence_level,
        "any_time": audit.any_time,
        "summary": audit.summary,
        "problems": [problem.to_dict() for problem in audit.problems],
        "ranking": audit.groups,
        "labelers": {name: _labeler_values(audit, name, limit) for name in audit.labelers},
        "comparison": audit.comparison.to_dict() if audit.comparison else None,
        "fleiss": audit.fleiss.to_dict(audit.confidence_level),
        "slices": {
            column: {name: audit.slices(column, name).to_dict() for name in audit.labelers}
            for column in audit.slice_columns
        },
        "annotator_slices": {
            column: {name: audit.annotator_slices(column, name).to_dict() for name in audit.labelers}
            for column in audit.annotator_columns
        },
        "annotator_scores": audit.annotator_scores().to_dict(limit) if audit.knows_annotators else None,
        "baseline": audit.baseline.to_dict() if audit.baseline else None,
        "notes": [note.to_dict() for note in audit.notes],
    }


def _labeler_values(audit: Audit, name: str, limit: int | None) -> dict[str, Any]:
    kappa, test, level = audit.kappas[name], audit.permutation_tests[name], audit.confidence_level
    defined, known = kappa.exact is not None, audit.knows_annotators
    bounded = not math.isnan(kappa.confidence_interval(level).low)
    return {
        "verdict": audit.verdict(name).to_dict(),
        "next_step": audit.next_step(name).to_dict(),
        "kappa": kappa.to_dict(level),
        "permutation_test": test.to_dict() if test else None,
        "categories": audit.categories(name).to_json() if defined else None,
        "confusion": audit.confusion(name).to_json() if defined else None,
        "annotators": audit.annotators(name).to_json() if known else None,
        "annotator_baseline": audit.annotator_baseline(name).to_dict(),
        "annotator_comparison": audit.annotator_comparison(name).to_dict() if known else None,
        "other_annotators": _other_annotators(audit, name),
        "review": audit.review(name, limit).to_json() if audit.knows_items else None,
        "sample_sizes": audit.sample_sizes(name).to_json() if bounded else None,
    }


def _other_annotators(audit: Audit, name: str) -> dict[str, Any] | None:
    found = optional(audit.other_annotators, name)
    return None if found is None else found.to_dict()
