"""The public functions: each turns its input into counts or item votes, then calls the statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

import numpy as np

from dhkappa.core.item_table import item_table_of_counts
from dhkappa.core.items import VoteSource
from dhkappa.errors import DataError, invalid, shown
from dhkappa.inputs.arrays import array_patterns
from dhkappa.inputs.columns import (
    Columns,
    DataKeywords,
    RoleKeywords,
    check_keywords,
    check_options_absent,
)
from dhkappa.inputs.dataset import Dataset, OneCallDataset, UnlabeledDataset
from dhkappa.inputs.tally import Tally
from dhkappa.resources import out_of_memory
from dhkappa.stats.kappa import estimate_dh, estimate_fleiss
from dhkappa.stats.result import Kappa
from dhkappa.stats.sample import Pool, sample_of

if TYPE_CHECKING:  # imported when needed
    from dhkappa.auditing import Audit
    from dhkappa.multilabel import MultilabelAudit
    from dhkappa.stats.comparison import Comparison
    from dhkappa.stats.weights import Weights

_ONE_LOOK = "Leave out $any_time."


def dh_kappa(
    data: Any = None,
    suggested: Any = None,
    *,
    counts: Any = None,
    categories: Iterable[Any] | None = None,
    weights: Any = None,
    missing: Iterable[Any] = (),
    sample_weight: Any = None,
    strata: Any = None,
    clusters: Any = None,
    pool: Pool = None,
    **roles: Unpack[RoleKeywords],
) -> Kappa:
    r"""Compute the DiPietro-Hazari kappa: how far annotators agree on the suggested labels, beyond chance.

    Pairs of annotators that agree on the suggested label, minus pairs that agree on another label, compared with what
    the frequencies of votes and labels alone would give (eq. 13 of the paper):

        kappa_DH = ((R - S) - (C_E - C_F)) / (1 - (C_E - C_F))

    It is 1 if every vote is the suggested label. Items with fewer than two votes or without a suggested label are
    excluded; ``excluded`` counts them. All means are means over items, so items with more votes do not weigh more.

    Parameters
    ----------
    data
        A ``Dataset``, a ``Tally``, or votes as for ``Dataset``.
    suggested
        Suggested labels as for ``Dataset``, of one labeler. With a ``Dataset`` or a ``Tally``, the name of a labeler;
        it may be omitted if there is one.
    counts, categories, missing, sample_weight, strata, **roles
        As for ``Dataset``.
    weights
        Agreement weights for ordered categories: ``"linear"``, ``"quadratic"`` or an m x m matrix. The order is that of
        ``categories``, which must be declared. An extension of the paper.
    clusters
        As for ``Dataset``. Kappa is the same; standard error and interval allow for items of a cluster being alike.
    pool
        The number of items in the data set that the items were sampled from; with ``strata``, a mapping from each
        stratum to its size, which then weighs the strata. The standard error is smaller if a good part of the pool was
        sampled.

    Returns
    -------
    Kappa
        ``value`` is NaN, and ``reason`` says why, if no item is eligible or if all votes and labels are one category.

    Examples
    --------
    >>> import dhkappa
    >>> votes = [["cat", "cat", "cat"], ["cat", "cat", "dog"], ["dog", "dog", "dog"]]
    >>> kappa = dhkappa.dh_kappa(votes, ["cat", "dog", "dog"])
    >>> kappa.exact, float(kappa)
    (Fraction(4, 7), 0.5714285714285714)

    A table, with the names of its columns:

    >>> import duckdb
    >>> table = duckdb.sql("FROM (VALUES (1, 'x', 'x', 'x'), (2, 'y', 'x', 'y'), (3, 'y', 'y', 'y')) t(id, llm, a, b)")
    >>> dhkappa.dh_kappa(table, suggested="llm", annotators=["a", "b"]).exact
    Fraction(2, 3)
    """
    if isinstance(suggested, Mapping):
        message = f"There are {len(suggested)} labelers: {shown(suggested, 10)}. dh_kappa takes the labels of one."
        hint = "Pass one value of the mapping as $suggested, or use compare."
        raise invalid("suggested", message, code="several-labelers", hint=hint)
    columns = Columns(suggested=suggested, counts=counts, sample_weight=sample_weight, strata=strata, clusters=clusters)
    if isinstance(data, (list, tuple, np.ndarray)) and suggested is not None and not roles:
        categories = list(categories) if isinstance(categories, Iterator) else categories
        missing = list(missing) if isinstance(missing, Iterator) else missing
        try:  # the short path for arrays: nothing to resolve
            rows = array_patterns(data, columns, categories, missing)
        except MemoryError as error:
            raise out_of_memory("the votes") from error
        ordered = categories is not None
        whole: dict[str, Any] = {**columns, "categories": categories, "missing": missing}
        votes: VoteSource | None = VoteSource(lambda: OneCallDataset(data, **whole).item_votes())
    else:
        given, chosen = _resolve(data, columns, categories, missing, roles)
        if chosen is not None and not isinstance(chosen, str):
            raise _invalid_labelers("the name of a labeler", chosen)
        rows, ordered = given.counts.labeled_patterns(chosen), given.declared
        votes = _votes(given, chosen)
    sample = sample_of(rows, pool=pool)
    if weights is None:
        return Kappa(estimate_dh(sample), votes)
    from dhkappa.stats.weighted import estimate_weighted

    _without_clusters("dh_kappa with agreement weights", rows.cluster)
    return Kappa(estimate_weighted(sample, _weights(weights, sample.categories, ordered)), votes)


def fleiss_kappa(
    data: Any = None,
    *,
    counts: Any = None,
    categories: Iterable[Any] | None = None,
    weights: Any = None,
    missing: Iterable[Any] = (),
    sample_weight: Any = None,
    strata: Any = None,
    clusters: Any = None,
    pool: Pool = None,
    **roles: Unpack[RoleKeywords],
) -> Kappa:
    """Compute Fleiss' kappa: how far annotators agree with each other, beyond chance (eq. 1-3 of the paper).

    Suggested labels are ignored. Items with fewer than two votes are excluded. All means are means over items. With
    ``weights``, two votes agree by the weight of their categories. The parameters are those of ``dh_kappa``;
    ``clusters`` is not supported yet.

    Examples
    --------
    >>> import dhkappa
    >>> dhkappa.fleiss_kappa([["cat", "cat", "cat"], ["cat", "cat", "dog"], ["dog", "dog", "dog"]]).exact
    Fraction(11, 20)
    """
    _not_supported("fleiss_kappa", clusters=clusters)
    columns = Columns(suggested=None, counts=counts, sample_weight=sample_weight, strata=strata, clusters=None)
    given, _ = _resolve(data, columns, categories, missing, roles, UnlabeledDataset, labeled=False)
    _without_clusters("fleiss_kappa", given.counts.columns.cluster)
    sample, votes = sample_of(given.counts.unlabeled_patterns(), labeled=False, pool=pool), _votes(given)
    if weights is None:
        return Kappa(estimate_fleiss(sample), votes)
    from dhkappa.stats.weighted import estimate_weighted_fleiss

    return Kappa(estimate_weighted_fleiss(sample, _weights(weights, sample.categories, given.declared)), votes)


def compare(
    data: Any = None,
    suggested: Any = None,
    *,
    counts: Any = None,
    categories: Iterable[Any] | None = None,
    weights: Any = None,
    missing: Iterable[Any] = (),
    sample_weight: Any = None,
    strata: Any = None,
    clusters: Any = None,
    pool: Pool = None,
    other_annotators: bool = False,
    confidence_level: float = 0.95,
    any_time: bool = False,
    rng: int | np.random.Generator | None = None,
    **roles: Unpack[RoleKeywords],
) -> Comparison:
    """Compare labelers on the same items: the kappa of each, and all paired differences.

    Items and votes are the same for both labelers of a pair, so differences are estimated more precisely than each
    kappa. Their standard errors come from the differences of influence values by item.

    If labels are missing, each difference is for the items that both labelers labeled. The ranking is for the items
    that all ranked labelers labeled. Labelers are not ranked if they have fewer than half as many labels as the labeler
    with most, or labeled fewer than half of the items that the others share; ``not_ranked`` says why.

    Parameters
    ----------
    data, counts, categories, weights, missing, sample_weight, strata, clusters, pool, **roles
        As for ``dh_kappa``.
    suggested
        A mapping from the name of each labeler to its n labels. With a table, a list of columns; by default those
        called ``suggested_*``. With a ``Dataset`` or a ``Tally``, a list of labelers; all by default.
    other_annotators
        Whether intervals and p-values are also for other annotators like these, and not only for other items. The
        method is ``"t"`` for all pairs then. With fewer than 5 annotators there are none, and ``reason`` says so.
    confidence_level, rng
        Confidence level of the intervals, and a seed or a ``numpy.random.Generator`` for the label swaps.
    any_time
        Whether intervals and p-values must hold at every look, however often you look while items in random order are
        added; see ``Kappa.confidence_interval``. Not with clusters or ``other_annotators``.

    Returns
    -------
    Comparison
        ``kappas`` by labeler, ``best``, ``not_ranked``, and ``differences``: a table with one row per pair of labelers,
        ``difference`` (the first minus the second, in the given order; the command line puts the better one first),
        ``se``, ``low``, ``high``, ``pvalue`` (two-sided), ``pvalue_holm`` (adjusted for all pairs), ``method``,
        ``discordant`` (the number of items with different labels), ``items`` (the number of items that both labeled)
        and ``reason`` (why values are NaN). The method is ``"t"``, or ``"swap"`` if fewer than 10 items are discordant
        or the standard error is 0: a permutation test that swaps the two labels of each item at random.

    Examples
    --------
    >>> import dhkappa
    >>> sim = dhkappa.simulate(300, labelers={"rule": 0.7, "llm": 0.9}, rng=1)
    >>> found = dhkappa.compare(sim.votes, sim.suggested)
    >>> [(row["labeler"], row["other"], round(row["difference"], 2), row["method"]) for row in found.differences]
    [('rule', 'llm', -0.24, 't')]
    """
    from dhkappa.stats.common_items import compare_on_common_items
    from dhkappa.stats.comparison import Comparison

    if any_time:
        _not_supported("compare with any_time", _ONE_LOOK, other_annotators=other_annotators or None)
    if other_annotators:
        refused = {"weights": weights, "sample_weight": sample_weight, "strata": strata, "pool": pool}
        _not_supported("compare with other_annotators", **refused, clusters=clusters)
    columns = Columns(suggested=suggested, counts=counts, sample_weight=sample_weight, strata=strata, clusters=clusters)
    given, chosen = _resolve(data, columns, categories, missing, roles)
    if isinstance(given, Dataset) and chosen is None:
        table = given.item_table()
    else:
        table = item_table_of_counts(given.counts, _labelers(given, chosen))
    if any_time:
        _without_clusters("compare with any_time", table.cluster, _ONE_LOOK)
    if other_annotators:
        _without_clusters("compare with other_annotators", table.cluster)
    if weights is not None:
        _without_clusters("compare with agreement weights", table.cluster)
        weights = _weights(weights, table.categories, given.declared)
    options: dict[str, Any] = {"weights": weights, "confidence_level": confidence_level, "pool": pool, "rng": rng}
    found = compare_on_common_items(table, any_time=any_time, **options)
    votes = given.item_votes if isinstance(given, Dataset) else _no_votes
    compared = Comparison.of(*found, votes=votes, confidence_level=float(confidence_level), any_time=any_time)
    if not other_annotators:
        return compared
    from dhkappa.stats.other_annotators import differences_for_others

    notes = tuple(note for note in compared.notes if note.code not in ("few-discordant", "no-standard-error"))
    differences = differences_for_others(compared.differences, votes(), compared.confidence_level)
    return replace(compared, differences=differences, notes=notes, other_annotators=True)


@overload
def audit(data: Any = None, suggested: Any = None, *, multilabel: None = None, **options: Any) -> Audit: ...
@overload
def audit(data: Any = None, suggested: Any = None, *, multilabel: str | bool, **options: Any) -> MultilabelAudit: ...
def audit(  # type: ignore[misc]  # the keywords of the overloads are those below
    data: Any = None,
    suggested: Any = None,
    *,
    counts: Any = None,
    categories: Iterable[Any] | None = None,
    weights: Any = None,
    missing: Iterable[Any] = (),
    sample_weight: Any = None,
    strata: Any = None,
    clusters: Any = None,
    pool: Pool = None,
    confidence_level: float = 0.95,
    any_time: bool = False,
    rng: int | np.random.Generator | None = None,
    progress: bool = True,
    allow: Iterable[str] = (),
    **roles: Unpack[RoleKeywords],
) -> Audit | MultilabelAudit:
    """Answer all questions about some labelers: can their labels be trusted, where not, and what to review first.

    Computes the kappa of each labeler with confidence interval and baselines, the permutation test against random
    labels, paired comparisons of labelers, kappa by category, what annotators agree on instead, the items to review,
    the contribution of each annotator, and the labeler compared with each annotator.

    Parameters
    ----------
    data
        A ``Dataset``, a ``Tally``, or votes as for ``Dataset``. The columns of an array are annotators; lists, counts
        and tallies do not identify annotators. Of a table outside this process with more than two million votes only
        counts are fetched: annotators are unknown then, and the engine is queried for the items to review.
    suggested
        As for ``compare``, or the labels of one labeler.
    counts, categories, missing, sample_weight, strata, weights, clusters, pool, **roles
        As for ``dh_kappa``. Strata and pool are not used in the standard errors of comparisons with annotators. With
        ``weights``, every kappa of the audit is a weighted kappa. With ``slices`` or ``annotators_table``, see
        ``Dataset``, ``Audit.slices`` and ``Audit.annotator_slices`` have the kappa of each group.
    confidence_level, rng
        Confidence level of all intervals, and a seed or a ``numpy.random.Generator``.
    any_time
        Whether kappas, their differences, the comparison with a typical annotator, the verdict and the gate must hold
        at every look, however often you look while items in random order are added. Not with slices, clusters or
        label sets.
    progress
        Whether to show a progress bar, on a terminal, if it takes more than a second.
    allow
        Codes of problems that you accept, such as ``["looks-ordinal"]``; see ``Dataset.check``.

    Returns
    -------
    Audit
        ``summary`` is the answer in a sentence, its other attributes and methods have the details, and ``to_html``
        writes the report. With ``multilabel``, a ``MultilabelAudit``: each category as a yes/no question. Without
        suggested labels, an ``AnnotatorAudit``: how far annotators agree with each other. With one vote per item, a
        ``SingleVoteAudit``: how far labelers agree with it.

    Examples
    --------
    >>> import dhkappa
    >>> sim = dhkappa.simulate(300, labelers={"rule": 0.7, "llm": 0.9}, annotators=4, rng=1)
    >>> found = dhkappa.audit(sim.votes, sim.suggested)
    >>> found.comparison.best
    'llm'
    >>> row = next(iter(found.review("rule")))
    >>> row["suggested"], row["majority"], row["votes"]
    ('b', 'a', 'a: 4')
    """
    from dhkappa.inputs.check import find_problems, find_set_problems
    from dhkappa.inputs.problems import accept
    from dhkappa.run_audit import audit_of

    allow = (allow,) if isinstance(allow, str) else tuple(allow)
    accept((), allow)
    given_weights = weights
    columns = Columns(suggested=suggested, counts=counts, sample_weight=sample_weight, strata=strata, clusters=clusters)
    given, chosen = _resolve(data, columns, categories, missing, roles, Dataset, labeled=False)  # kept for the review
    if isinstance(given, Dataset) and (chosen is not None or given.multilabel is not None):
        given.check_labeled(chosen)
    names = _labelers(given, chosen) if isinstance(given, Tally) or given.labeled else []
    named = given.named_roles if isinstance(given, Dataset) else set()
    sliced: dict[str, Any] = {name: True for name in ("annotators_table", "slices") if name in named}
    if any_time:
        _not_supported("audit with any_time", _ONE_LOOK, clusters=("clusters" in named) or None, **sliced)
    if sliced and isinstance(given, Dataset) and given.slices_items:
        _not_supported("audit with slices", weights=weights, strata=("strata" in named) or None, pool=pool)
    clustered = ("clusters" in named) or None
    for name in sliced:
        _not_supported(f"audit with {name}", clusters=clustered)
    options: Any = {"pool": pool, "confidence_level": confidence_level, "rng": rng, "progress": progress}
    if isinstance(given, Dataset) and given.multilabel is not None:
        from dhkappa.run_audit import multilabel_audit

        refused: dict[str, Any] = {"weights": weights, "any_time": any_time or None, "clusters": clustered, **sliced}
        _not_supported("audit with multilabel", **refused)
        evidence, sets = given.evidence(names), given.label_sets
        answers = sets.answers(given.counts)
        options |= {"answers": answers, "problems": find_set_problems(evidence, sets, answers, allow)}
        return multilabel_audit(given.counts, evidence.item_votes, sets, names, **options)
    if weights is not None:
        _not_supported("audit with agreement weights", clusters=clustered)
        weights = _weights(weights, given.counts.categories, given.declared)
    evidence = given.evidence(names, ordered=weights is not None)
    problems = find_problems(evidence, allow)
    if given.counts.has_single_votes or not names:
        from dhkappa.annotator_audit import audit_annotators, audit_single_votes

        refused = {"weights": weights, "pool": pool, "any_time": any_time or None, "clusters": clustered, **sliced}
        _not_supported("An audit with one vote per item, or without labels,", **refused)
        known: dict[str, Any] = {"confidence_level": confidence_level, "problems": problems}
        if names:
            return cast("Audit", audit_single_votes(given.counts, evidence.item_votes, names, **known))
        return cast("Audit", audit_annotators(given.counts, evidence.item_votes, **known))
    options["any_time"] = any_time
    again = {**options, "weights": given_weights, "allow": allow, "progress": False}
    options |= {"weights": weights, "problems": problems, "again": partial(audit, **again)}
    options |= {"declared": given.declared, "missing": given.missing}
    if sliced and isinstance(given, Dataset):
        options |= {"slices": given.slices, "annotator_columns": given.annotator_columns}
    return audit_of(given.counts, evidence.item_votes, names, data=given, **options)


def tally(data: Any = None, suggested: Any = None, **options: Unpack[DataKeywords]) -> Tally:
    """Count votes and suggested labels into a ``Tally``: short for ``Dataset(...).tally()``.

    The parameters are those of ``Dataset``.

    Examples
    --------
    >>> import dhkappa
    >>> counted = dhkappa.tally([["cat", "cat"], ["cat", "dog"]], ["cat", "dog"])
    >>> dhkappa.dh_kappa(counted).exact
    Fraction(1, 2)
    """
    return OneCallDataset(data, suggested, **options).tally()


def _resolve(
    data: Any,
    columns: Columns,
    categories: Any,
    missing: Any,
    roles: RoleKeywords,
    kind: type[Dataset] = OneCallDataset,
    labeled: bool = True,
) -> tuple[Dataset | Tally, Any]:
    """Return the data of a function, and the labelers that were named next to a Dataset or Tally.

    Data without suggested labels are refused if ``labeled``.
    """
    check_keywords(roles)
    given, chosen = data, columns["suggested"]
    if isinstance(data, (Dataset, Tally)):
        options = {**columns, "suggested": None, "categories": categories, "missing": missing, **roles}
        check_options_absent(options, type(data).__name__)
    else:
        given, chosen = kind(data, **columns, categories=categories, missing=missing, **roles), None
    if isinstance(given, Dataset):
        if kind is not Dataset:  # that is, except for audit
            given.check_single()
        if labeled:
            given.check_labeled(chosen)
    return given, chosen


def _votes(given: Dataset | Tally, labeler: str | None = None) -> VoteSource | None:
    """Return how to read who cast each vote; None for a tally, which does not know."""
    return VoteSource(given.item_votes, labeler) if isinstance(given, Dataset) else None


def _no_votes() -> None:
    """Return the votes of a tally, which does not know who cast them."""


def _labelers(given: Dataset | Tally, chosen: Any) -> list[str]:
    """Return the labelers that were named, or all."""
    columns = given.counts.columns
    if chosen is None:
        return list(columns.labelers)
    if isinstance(chosen, Mapping) or not isinstance(chosen, Iterable):
        raise _invalid_labelers("a list of labelers", chosen)
    names = [columns.labeler(name) for name in ([chosen] if isinstance(chosen, str) else chosen)]
    if not names:
        raise invalid("suggested", "suggested names no labeler.", code="labeler-not-found")
    return names


def _invalid_labelers(what: str, chosen: Any) -> DataError:
    return invalid("suggested", f"suggested must be {what}: got {shown([chosen])}.", code="invalid-labeler-name")


def _weights(weights: Any, categories: Sequence[Any], ordered: bool) -> Weights:
    """Return the agreement weights of categories, which must have been declared in order."""
    from dhkappa.stats.weights import agreement_weights

    if not ordered:
        message, hint = "Agreement weights need the order of categories.", "Declare it with $categories, lowest first."
        raise invalid("weights", message, code="categories-not-declared", hint=hint)
    return agreement_weights(weights, len(categories))


def _without_clusters(function: str, clusters: Any, hint: str = "") -> None:
    """Refuse data with clusters."""
    _not_supported(function, hint, clusters=clusters)


def _not_supported(function: str, hint: str = "", /, **options: Any) -> None:
    """Refuse options that a function does not support."""
    for name, value in options.items():
        if value is not None:
            message = f"{function} does not support {name} yet."
            raise invalid(name, message, code="option-not-supported", hint=hint)
