"""Plan how many items and votes are needed, from a pilot or from assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Unpack

from dhkappa.auditing import Audit
from dhkappa.errors import invalid, one_labeler
from dhkappa.inputs.columns import RoleKeywords, check_keywords, check_options_absent, passed_options
from dhkappa.stats.plan import Plan, plan_items
from dhkappa.stats.result import Kappa


def plan(
    half_width: float,
    pilot: Any = None,
    suggested: Any = None,
    *,
    counts: Any = None,
    missing: Iterable[Any] = (),
    n_categories: int | None = None,
    prevalence: Sequence[float] | None = None,
    annotator_accuracy: float | None = None,
    labeler_accuracy: float | None = None,
    votes: int | None = None,
    pool: int | None = None,
    confidence_level: float = 0.95,
    assurance: float = 0.9,
    **roles: Unpack[RoleKeywords],
) -> Plan:
    """Find how many items and votes are needed for a confidence interval of a given half-width.

    From a pilot, or from assumed accuracies: each vote is right with probability ``annotator_accuracy`` and each
    suggested label with probability ``labeler_accuracy``, and otherwise is any other category.

    Parameters
    ----------
    half_width
        Half the width of the confidence interval of kappa, such as 0.05.
    pilot, suggested, counts, missing, **roles
        Some items that were voted on as the others will be: data as for ``dh_kappa``, or a ``Kappa``, or an ``Audit``,
        of which ``suggested`` names the labeler if there are several.
    n_categories, prevalence
        The number of categories, or how often each is true; equally often by default. Only ratios of prevalence matter.
    annotator_accuracy, labeler_accuracy
        Probability that a vote, or a suggested label, is right.
    votes
        Votes per item, 2 or more: by default those of the pilot or, from assumptions, the number that needs the fewest
        votes in all.
    pool
        Number of items in the whole data set, if their kappa is wanted.
    confidence_level, assurance
        Confidence level of the interval, and the probability with which ``items_assured`` gives the half-width.

    Returns
    -------
    Plan
        ``items`` gives the half-width on average, ``items_assured`` nearly always. ``cheapest`` is the number of votes
        per item that needs the fewest votes in all.

    Examples
    --------
    >>> import dhkappa
    >>> planned = dhkappa.plan(0.05, n_categories=5, annotator_accuracy=0.9, labeler_accuracy=0.85, votes=3)
    >>> planned.items, planned.items_assured, planned.cheapest
    (562, 621, 2)
    """
    check_keywords(roles)
    if isinstance(pilot, Audit):
        pilot, suggested = pilot.kappas[one_labeler(suggested, pilot.labelers)], None
    extra = {"suggested": suggested, "counts": counts, "missing": missing, **roles}
    if isinstance(pilot, Kappa):
        check_options_absent(extra, "Kappa")
    elif pilot is not None or counts is not None:
        pilot = import_module("dhkappa.api").dh_kappa(pilot, suggested, counts=counts, missing=missing, **roles)
    elif described := passed_options(extra):
        message = f"There is no pilot, but options that describe one: {', '.join(described)}."
        raise invalid("pilot", message, code="pilot-missing", hint="Pass $pilot, or omit them.")
    return plan_items(
        half_width,
        pilot=None if pilot is None else pilot.estimate,
        n_categories=n_categories,
        prevalence=prevalence,
        annotator_accuracy=annotator_accuracy,
        labeler_accuracy=labeler_accuracy,
        votes=votes,
        pool=pool,
        confidence_level=confidence_level,
        assurance=assurance,
    )
