"""The public calls: any data in, a result out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from dhkappa.core.tally import Tally
from dhkappa.errors import DataError, shown
from dhkappa.inputs.columns import Words
from dhkappa.inputs.dataset import LABELER, Given
from dhkappa.stats.estimators import dh_kappa_of, fleiss_kappa_of, ordinal_kappa_of
from dhkappa.stats.result import Kappa
from dhkappa.stats.sample import Pool, sample_of

if TYPE_CHECKING:  # rooms that are opened when they are called for
    from dhkappa.auditing import Audit
    from dhkappa.stats.compare import Comparison
    from dhkappa.stats.plan import Plan


def dh_kappa(
    data: Any = None,
    suggested: Any = None,
    *,
    counts: Any = None,
    categories: Iterable[Any] | None = None,
    ordinal: Any = None,
    missing: Iterable[Any] = (),
    weights: Any = None,
    strata: Any = None,
    pool: Pool = None,
    panel: str = "fixed",
    **layout: Unpack[Words],
) -> Kappa:
    r"""Measure how far annotators agree on the suggested labels, beyond chance.

    The DiPietro-Hazari kappa: pairs of annotators who agree on the suggested label, less pairs who agree on
    another one, set against what the shares of votes and labels alone would give (eq. 13 of the paper),

        kappa_DH = ((R - S) - (C_E - C_F)) / (1 - (C_E - C_F))

    1 means that every vote is the suggested label. Items with fewer than two votes or without a suggested
    label do not count; ``dropped`` says how many. Every mean is a mean over items, so items with more votes
    weigh no more than others.

    Parameters
    ----------
    data
        Votes: an n x N array or n lists of labels, one row an item, of any lengths. A label is text, an
        integer, a boolean or an enum member; None, NaN and empty text are missing. Or a table: of pandas, Polars,
        PyArrow, DuckDB, Dask, Spark or Ibis, a path as to ``read``, or what ``read`` returned. Or a ``Tally``.
    suggested
        n labels. With ``counts`` also column codes from 0, or an n x m one-hot matrix (the paper's B). Beside a
        table, the name of a column. With a ``Tally`` of several labelers, the name of one.
    counts
        n x m matrix of vote counts instead of votes (the paper's A). Beside a table where each category has a
        column of counts, the names of these columns.
    categories
        The labels there can be, in order: any other label is then an error. With ``counts``, the names of
        its columns.
    ordinal
        Weights for ordered categories, so that near votes agree in part: ``"linear"``, ``"quadratic"`` or an
        m x m matrix. The order is that of ``categories``, which must be declared. An extension of the paper.
    missing
        Labels to read as missing, such as ``"NA"``.
    weights
        What each item stands for, n numbers: one over its chance to be drawn. Only ratios matter. Not how often
        an item occurs: an item that occurs twice is two rows. Beside a table, the name of a column.
    strata
        The group that each item was drawn from, n labels, where so many were drawn from each group. Groups weigh
        as their items do, unless ``pool`` or ``weights`` say otherwise. Beside a table, the name of a column.
    pool
        How many items there are in all, in the data set that the items were drawn from at random; with ``strata``,
        a mapping from each stratum to its size, which then weighs the strata. The standard error is smaller where
        a good part of the pool was drawn.
    panel
        With ``pool``: ``"fixed"`` takes the votes on an item as they are, ``"drawn"`` lets the standard error cover
        which votes it happened to get, if annotators are alike, and needs three votes on every item.
    annotators
        Of a table whose rows are items: the columns of votes, one an annotator, by name or by patterns, ``"ann_*"``.
    item, label, annotator, count
        Of a table whose rows are votes: the columns that name the item, the label, and who voted, where known; or,
        where a row is several votes, their number. In a table whose rows are items, ``item`` may name them.
    items
        For a table whose rows are votes: a second table, or its path, with a row for each item, which holds suggested
        labels, weights and strata. Without it they are in the table of votes, the same in all rows of an item.
    duplicates
        ``"error"`` where an annotator has two votes on an item, or ``"first"`` or ``"last"`` to take one, by row.
    unlisted
        ``"error"`` where a vote is on an item that ``items`` lacks, or ``"unlabeled"``: an item without a label.

    Returns
    -------
    Kappa
        ``value`` is NaN, and ``reason`` says why, if no item is eligible or if all votes and labels are one
        category.

    Examples
    --------
    >>> import dhkappa
    >>> votes = [["cat", "cat", "cat"], ["cat", "cat", "dog"], ["dog", "dog", "dog"]]
    >>> kappa = dhkappa.dh_kappa(votes, ["cat", "dog", "dog"])
    >>> kappa.exact, float(kappa)
    (Fraction(4, 7), 0.5714285714285714)

    A table by the names of its columns, here one that DuckDB holds:

    >>> import duckdb
    >>> table = duckdb.sql("FROM (VALUES (1, 'x', 'x', 'x'), (2, 'y', 'x', 'y'), (3, 'y', 'y', 'y')) t(id, llm, a, b)")
    >>> dhkappa.dh_kappa(table, suggested="llm", annotators=["a", "b"]).exact
    Fraction(2, 3)
    """
    if isinstance(suggested, Mapping):
        raise DataError("suggested must hold one labeler's labels: use compare for several, or pass one of them.")
    given = Given(data, suggested, counts, categories, missing, weights, strata, layout)
    whole, labeler = given.held() if isinstance(data, Tally) else (given.tally("one"), None)
    if ordinal is not None:
        _check_order(whole, data)
    sample = sample_of(whole, labeler, pool=pool, panel=panel)
    return dh_kappa_of(sample) if ordinal is None else ordinal_kappa_of(sample, ordinal)


def fleiss_kappa(
    data: Any = None,
    *,
    counts: Any = None,
    categories: Iterable[Any] | None = None,
    missing: Iterable[Any] = (),
    weights: Any = None,
    strata: Any = None,
    pool: Pool = None,
    **layout: Unpack[Words],
) -> Kappa:
    """Measure how far annotators agree with each other, beyond chance: Fleiss' kappa (eq. 1-3 of the paper).

    It never looks at suggested labels. Items with fewer than two votes do not count; every mean is a mean
    over items. The parameters are those of ``dh_kappa``.

    Examples
    --------
    >>> import dhkappa
    >>> dhkappa.fleiss_kappa([["cat", "cat", "cat"], ["cat", "cat", "dog"], ["dog", "dog", "dog"]]).exact
    Fraction(11, 20)
    """
    given = Given(data, None, counts, categories, missing, weights, strata, layout)
    whole = given.held()[0] if isinstance(data, Tally) else given.tally("none")
    return fleiss_kappa_of(sample_of(whole, labeled=False, pool=pool))


def compare(
    data: Any = None,
    suggested: Any = None,
    *,
    counts: Any = None,
    categories: Iterable[Any] | None = None,
    missing: Iterable[Any] = (),
    weights: Any = None,
    strata: Any = None,
    pool: Pool = None,
    panel: str = "fixed",
    level: float = 0.95,
    rng: int | np.random.Generator | None = None,
    **layout: Unpack[Words],
) -> Comparison:
    """Compare labelers on the same items: the kappa of each, and all paired differences.

    Only items that every labeler labeled count. As items and votes are the same, a difference is known much better
    than each kappa. Its standard error comes from the differences of influence, item by item.

    Parameters
    ----------
    data
        Votes or a table, given as to ``dh_kappa``, or a ``Tally`` of several labelers.
    suggested
        A mapping from the name of each labeler to its n labels. Beside a table, a list of columns; those called
        ``suggested_*`` by default. With a ``Tally``, a list of names; all by default.
    counts, categories, missing, weights, strata, pool, panel, **layout
        As for ``dh_kappa``.
    level
        Of the intervals.
    rng
        A seed or a ``numpy.random.Generator`` for label swaps, where they are drawn.

    Returns
    -------
    Comparison
        ``kappas`` by labeler, and ``differences``: a table with a row for each two labelers, ``difference`` (the
        first less the second), ``se``, ``low``, ``high``, ``p`` (two-sided), ``p_holm`` (corrected for all the pairs),
        ``method`` and ``discordant``, the number of items on which their labels differ. The method is ``"t"``, or
        ``"swap"`` where fewer than 10 items are discordant or the standard error is 0: how often the difference
        is as large if each item's two labels change hands by the toss of a coin.

    Examples
    --------
    >>> import dhkappa
    >>> drawn = dhkappa.simulate(300, labelers={"rule": 0.7, "llm": 0.9}, rng=1)
    >>> found = dhkappa.compare(drawn.votes, drawn.suggested)
    >>> [(row["labeler"], row["other"], round(row["difference"], 2), row["method"]) for row in found.differences]
    [('rule', 'llm', -0.24, 't')]
    """
    from dhkappa.core.cells import cells_of, names_of
    from dhkappa.stats.compare import compare_of

    if isinstance(data, Tally):
        names = None if suggested is None else names_of(suggested)
        held, _ = Given(data, None, counts, categories, missing, weights, strata, layout).held()
        cells = cells_of(held, names)
    else:
        cells = Given(data, suggested, counts, categories, missing, weights, strata, layout).cells()
    return compare_of(cells, level=level, pool=pool, panel=panel, rng=rng)


def audit(
    data: Any = None,
    suggested: Any = None,
    *,
    counts: Any = None,
    categories: Iterable[Any] | None = None,
    ordinal: Any = None,
    missing: Iterable[Any] = (),
    weights: Any = None,
    strata: Any = None,
    pool: Pool = None,
    panel: str = "fixed",
    level: float = 0.95,
    rng: int | np.random.Generator | None = None,
    progress: bool = True,
    **layout: Unpack[Words],
) -> Audit:
    """Ask every question of votes and suggested labels, and keep the answers.

    Kappa of each labeler with interval, floor and ceiling; the test against random labels; labelers compared in
    pairs; kappa by category and what the panel agrees on instead; the review queue of items; each annotator's part;
    and the labeler beside each annotator, as one more labeler.

    Parameters
    ----------
    data
        Votes or a table, given as to ``dh_kappa``. The columns of an array are annotators; lists do not tell who voted.
        Of a table that is not in memory and has over two million votes only counts are fetched: annotators are left
        out, and the engine is asked for the items to review. A ``Tally`` keeps neither items nor annotators.
    suggested
        n labels, or a mapping from the name of each labeler to its labels. Beside a table, one column or a list of
        them; those called ``suggested_*`` by default. With a ``Tally``, names; all by default.
    counts, categories, ordinal, missing, weights, strata, pool, panel, **layout
        As for ``dh_kappa``. Strata and pool weigh items, but do not enter the standard errors of people. Labelers are
        compared without ordinal weights.
    level
        Of all intervals.
    rng
        A seed or a ``numpy.random.Generator``, for what is drawn at random.
    progress
        Whether to show a progress line where it takes over a second and standard error is a terminal.

    Returns
    -------
    Audit
        ``verdict`` is the answer in a sentence, ``kappas`` the kappa of each labeler, ``comparison`` their paired
        differences; ``categories``, ``confusion``, ``items``, ``annotators`` and ``people`` go down from there, and
        ``report`` writes everything to a page.

    Examples
    --------
    >>> import dhkappa
    >>> drawn = dhkappa.simulate(300, labelers={"rule": 0.7, "llm": 0.9}, annotators=4, rng=1)
    >>> found = dhkappa.audit(drawn.votes, drawn.suggested)
    >>> found.comparison.best
    'llm'
    >>> row = next(iter(found.items("rule")))
    >>> row["suggested"], row["panel"], row["votes"]
    ('b', 'a', 'a: 4')
    """
    from dhkappa.auditing import audit_of
    from dhkappa.core.cells import names_of

    ballots = None
    if isinstance(data, Tally):
        whole, _ = Given(data, None, counts, categories, missing, weights, strata, layout).held()
        known = whole.labelers or (LABELER,)
        names = known if suggested is None else names_of(suggested)
        strange = [name for name in names if name not in known]
        if not names or strange:
            said = shown(strange) or "nobody"
            raise DataError(f"suggested names {said}, not in the tally. Labelers: {shown(whole.labelers, 10)}.")
    else:
        whole, ballots = Given(data, suggested, counts, categories, missing, weights, strata, layout).named()
        names = whole.labelers
    if ordinal is not None:
        _check_order(whole, data)
    return audit_of(
        whole, ballots, names, ordinal=ordinal, pool=pool, panel=panel, level=level, rng=rng, progress=progress
    )


def plan(
    half_width: float,
    pilot: Any = None,
    suggested: Any = None,
    *,
    counts: Any = None,
    missing: Iterable[Any] = (),
    categories: int | None = None,
    prevalence: Sequence[float] | None = None,
    accuracy: float | None = None,
    labeler: float | None = None,
    votes: int | None = None,
    pool: int | None = None,
    level: float = 0.95,
    assurance: float = 0.9,
    **layout: Unpack[Words],
) -> Plan:
    """Find how many items to have voted on, and by how many, so that kappa is known as well as wanted.

    Either from a pilot, or from assumed accuracies: each vote is right with rate ``accuracy`` and each suggested
    label with rate ``labeler``, and otherwise names any other category.

    Parameters
    ----------
    half_width
        Half the length that the interval of kappa should have, such as 0.05.
    pilot, suggested, counts, missing, **layout
        Some items that were voted on as the others will be: a ``Kappa``, or data as to ``dh_kappa``.
    categories, prevalence
        How many categories there are, or how often each is the truth; equally often by default. Of prevalence
        only ratios matter.
    accuracy, labeler
        How often a vote, and a suggested label, is right.
    votes
        Votes on an item, 2 or more: by default those of the pilot or, from assumptions, the number that needs
        fewest votes in all.
    pool
        Items in the whole data set, if it is their kappa that is wanted.
    level, assurance
        Level of the interval, and how surely ``items_assured`` gives the half-width.

    Returns
    -------
    Plan
        ``items`` is the number at which the interval has the half-width on average; half of all samples will have a
        longer one. With ``items_assured`` few will. ``trade`` is a table of the items, and the votes in all, that
        other numbers of votes on an item would need; ``cheapest`` is the one that needs fewest votes.

    Examples
    --------
    >>> import dhkappa
    >>> planned = dhkappa.plan(0.05, categories=5, accuracy=0.9, labeler=0.85, votes=3)
    >>> planned.items, planned.items_assured, planned.cheapest
    (562, 621, 2)
    """
    from dhkappa.stats.plan import plan_of

    extra = [*(["suggested"] if suggested is not None else []), *(["counts"] if counts is not None else []), *layout]
    if isinstance(pilot, Kappa) and extra:
        raise DataError(f"pilot is a Kappa, which holds votes and labels already: leave out {' and '.join(extra)}.")
    if pilot is None and layout:
        raise DataError(f"{' and '.join(layout)} name columns of a pilot, which is absent: pass its table as pilot.")
    if counts is not None or not (pilot is None or isinstance(pilot, Kappa)):
        pilot = dh_kappa(pilot, suggested, counts=counts, missing=missing, **layout)
    return plan_of(
        half_width,
        pilot=pilot,
        categories=categories,
        prevalence=prevalence,
        accuracy=accuracy,
        labeler=labeler,
        votes=votes,
        pool=pool,
        level=level,
        assurance=assurance,
    )


def tally(
    data: Any = None,
    suggested: Any = None,
    *,
    counts: Any = None,
    categories: Iterable[Any] | None = None,
    missing: Iterable[Any] = (),
    weights: Any = None,
    strata: Any = None,
    **layout: Unpack[Words],
) -> Tally:
    """Count votes and suggested labels into a ``Tally``; the parameters are those of ``dh_kappa``.

    Several labelers are a mapping from names to labels; beside a table, a list of columns, by default all that are
    called ``suggested`` or ``suggested_*``, or the labelers of an export.

    Examples
    --------
    >>> import dhkappa
    >>> counted = dhkappa.tally([["cat", "cat"], ["cat", "dog"]], ["cat", "dog"])
    >>> dhkappa.dh_kappa(counted).exact
    Fraction(1, 2)
    """
    return Given(data, suggested, counts, categories, missing, weights, strata, layout).tally("any")


def _check_order(whole: Tally, data: Any) -> None:
    """Refuse categories that were not declared, whose order is not known."""
    if not whole.declared:
        there = " to the Tally as it is made" if data is whole else ""
        raise DataError(f"ordinal needs the categories in their order: pass categories=, lowest first{there}.")
