"""Estimate how annotators would label a whole pool, from votes on a sample and the suggested labels of all items."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

from dhkappa.errors import invalid
from dhkappa.inputs.columns import RoleKeywords, check_keywords, check_options_absent
from dhkappa.inputs.dataset import Dataset, OneCallDataset
from dhkappa.inputs.pool_labels import pool_sizes
from dhkappa.inputs.tally import Tally
from dhkappa.stats.pool import pool_shares_of
from dhkappa.stats.pool_result import PoolShares


def pool_shares(
    data: Any = None,
    suggested: Any = None,
    *,
    pool: Any,
    pool_column: str | None = None,
    finite_pool: bool = False,
    counts: Any = None,
    categories: Iterable[Any] | None = None,
    missing: Iterable[Any] = (),
    sample_weight: Any = None,
    strata: Any = None,
    clusters: Any = None,
    confidence_level: float = 0.95,
    **roles: Unpack[RoleKeywords],
) -> PoolShares:
    """Estimate the share of each category in a pool, and how many of its suggested labels are wrong.

    All items of the pool have a suggested label, and some of them, a random sample, have votes. The votes on the
    sampled items with a label are taken to be like those on all items of the pool with that label. A label is wrong as
    far as annotators would not give it. Items with one vote count as well.

    Parameters
    ----------
    data, suggested, counts, categories, missing, **roles
        The sample, as for ``dh_kappa``.
    pool
        The labels of all items, sampled or not: a mapping from labels to numbers of items, such as ``value_counts()``
        of pandas; text such as ``"billing=500,bug=300"``; an array of labels; or a table with one row per item, or its
        path, whose labels are counted by its engine. Filters of a ``Dataset`` are applied to a table, too.
    pool_column
        The column of labels, if the pool is a table; by default the one that is called as that of the sample.
    finite_pool
        Whether the result is only about the items of this pool, and not about others like them. Limits are closer if a
        good part of the pool was sampled. Every item needs two votes.
    sample_weight, clusters
        Not supported: the pool sets the weights.
    strata
        If items were drawn for each label separately, these labels: the same as ``suggested``.
    confidence_level
        Confidence level of all limits.

    Returns
    -------
    PoolShares
        ``table`` has a row for each category, ``wrong`` is the number of wrong labels.

    Examples
    --------
    >>> import dhkappa
    >>> sim = dhkappa.simulate(200, labelers={"llm": 0.9}, categories=["bug", "question"], rng=1)
    >>> found = dhkappa.pool_shares(sim.votes, sim.suggested["llm"], pool={"bug": 5_200, "question": 4_800})
    >>> round(found.wrong), round(found.wrong_low), round(found.wrong_high)
    (2167, 1779, 2617)
    """
    check_keywords(roles)
    for name, value in (("sample_weight", sample_weight), ("clusters", clusters)):
        if value is not None:
            raise invalid(name, f"pool_shares does not support {name}.", code="option-not-supported")
    options: Any = {"counts": counts, "categories": categories, "missing": missing, "strata": strata, **roles}
    given: Dataset | Tally = data
    labeler = suggested
    if isinstance(data, Tally):
        check_options_absent(options, "Tally")
    elif isinstance(data, Dataset):
        given = OneCallDataset(data, **options)
    else:
        given, labeler = OneCallDataset(data, suggested, **options), None
    if isinstance(given, Dataset):
        given.check_single()
        given.check_labeled(labeler)
    labeler = given.counts.columns.labeler(labeler)
    sizes, notes = pool_sizes(pool, given, labeler, pool_column)
    rows = given.counts.labeled_patterns(labeler)
    known: Any = {"finite_pool": finite_pool, "confidence_level": confidence_level, "source_notes": notes}
    return pool_shares_of(rows, sizes, **known)
