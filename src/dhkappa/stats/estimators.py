"""The estimators: a sample to a Kappa."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dhkappa.errors import DataError, counted
from dhkappa.stats.kappa import Estimate, estimate_dh, estimate_fleiss
from dhkappa.stats.notes import Note, notes_on_labels, notes_on_sample, notes_on_value, notes_on_votes
from dhkappa.stats.result import Kappa
from dhkappa.stats.sample import Dropped, Sample
from dhkappa.stats.sums import Sums, sums
from dhkappa.stats.terms import terms
from dhkappa.stats.variance import basis_of

_NOTES_ON_DATA = {
    "items-dropped",
    "source",
    "few-items",
    "one-category-voted",
    "one-label",
    "labels-never-voted",
    "labels-alike",
    "looks-missing",
    "rare-labels",
    "few-imperfect-items",
    "unequal-weights",
    "votes-fixed",
}


def dh_kappa_of(sample: Sample) -> Kappa:
    """Return the DiPietro-Hazari kappa of a sample."""
    total = sums(sample)
    if total.n == 0:
        return _result("dh", sample, total, None, _why_none(total.dropped))
    estimate = estimate_dh(_weighed(sample, total), sample.categories)
    parts, kappa = estimate.parts, estimate.parts.kappa
    certain = "every vote and every suggested label is the same category, so agreement is certain."
    notes = (
        *notes_on_labels(total, sample.categories),
        *notes_on_value(parts.R, parts.S, kappa, estimate.floor, estimate.ceiling, estimate.fleiss),
    )
    return _result("dh", sample, total, estimate, certain, notes)


def ordinal_kappa_of(sample: Sample, ordinal: Any) -> Kappa:
    """Return the kappa of a sample with ordinal weights over its categories, which stand in their order."""
    from dhkappa.stats.weights import ordinal_estimate, weights_of

    weights = weights_of(ordinal, len(sample.categories))
    if sample.other_votes:
        raise DataError("panel='drawn' is for the kappa without ordinal weights: leave out one of them.")
    plain = dh_kappa_of(sample)
    if plain.parts is None or plain.exact is None:
        return replace(plain, metric="ordinal")
    seen = terms(plain.sample, plain.parts)
    found = ordinal_estimate(seen, plain.parts, weights)
    exact, basis = found.parts.kappa, None
    if exact is not None:
        basis = basis_of(seen, found.phi, float(exact), float(found.E), found.far, found.bottom)
    return replace(
        plain,
        metric="ordinal",
        value=_rounded(exact),
        exact=exact,
        parts=found.parts,
        floor=math.nan,
        ceiling=math.nan,
        fleiss=_rounded(found.fleiss),
        reason=None if exact is not None else "every category that occurs has weight 1 to every other.",
        _notes=tuple(note for note in plain._notes if note.code in _NOTES_ON_DATA),
        _known={"basis": basis, "sample": plain.sample},
    )


def fleiss_kappa_of(sample: Sample) -> Kappa:
    """Return Fleiss' kappa of a sample."""
    total = sums(sample, labeled=False)
    if total.n == 0:
        return _result("fleiss", sample, total, None, _why_none(total.dropped))
    certain = "every vote is the same category, so agreement is certain."
    estimate = estimate_fleiss(_weighed(sample, total, labeled=False), sample.categories)
    return _result("fleiss", sample, total, estimate, certain)


def _weighed(sample: Sample, total: Sums, labeled: bool = True) -> Sums:
    """Return the sums by weight, which are those by items where all weigh the same."""
    return sums(sample, labeled, weighted=True) if sample.weighted else total


def _result(
    metric: str,
    sample: Sample,
    total: Sums,
    estimate: Estimate | None,
    reason: str,
    notes: tuple[Note, ...] = (),
) -> Kappa:
    """Put a result together; ``reason`` holds where kappa is undefined."""
    exact = estimate.parts.kappa if estimate else None
    return Kappa(
        metric=metric,
        value=_rounded(exact),
        exact=exact,
        parts=estimate.parts if estimate else None,
        floor=_rounded(estimate.floor if estimate else None),
        ceiling=_rounded(estimate.ceiling if estimate else None),
        fleiss=_rounded(estimate.fleiss if estimate else None),
        n_items=total.n,
        n_votes=total.n_votes,
        dropped=total.dropped,
        reason=reason if exact is None else None,
        _sample=sample,
        _notes=(*notes_on_votes(total, sample.categories), *notes_on_sample(sample, metric == "dh"), *notes),
    )


def _rounded(exact: Fraction | None) -> float:
    return math.nan if exact is None else float(exact)


def _why_none(lost: Dropped) -> str:
    """Say why no item is eligible."""
    if lost.total == 0:
        return "the data hold no items."
    also = [what for what, number in (("a suggested label", lost.no_label), ("a weight", lost.no_weight)) if number]
    needs = " and ".join(["two votes", *also])
    return f"no item has {needs} ({counted(lost.total, 'item')}: {lost.why()})."
