"""The public calls: any data in, a result out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dhkappa.data.tally import Tally, tally
from dhkappa.errors import DataError, shown
from dhkappa.stats.estimators import dh_kappa_of, fleiss_kappa_of, ordinal_kappa_of
from dhkappa.stats.result import Kappa
from dhkappa.stats.sample import Pool, sample_of

_LABELER = "labeler"  # what one labeler is called who has no name

if TYPE_CHECKING:  # rooms that are opened when they are called for
    from dhkappa.findings import Audit
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
) -> Kappa:
    r"""Measure how far annotators agree on the suggested labels, beyond chance.

    The DiPietro-Hazari kappa: pairs of annotators who agree on the suggested label, less pairs who agree on
    another one, set against what the shares of votes and labels alone would give (eq. 13 of the paper),

    .. math:: \kappa_{DH} = \frac{(\bar R - \bar S) - (C_E - C_F)}{1 - (C_E - C_F)}.

    1 means that every vote is the suggested label. Items with fewer than two votes or without a suggested
    label do not count; ``dropped`` says how many. Every mean is a mean over items, so items with more votes
    weigh no more than others.

    Parameters
    ----------
    data
        Votes: an n x N array or n lists of labels, one row an item, of any lengths. A label is text, an
        integer, a boolean or an enum member; None and NaN are missing. Or a ``Tally``.
    suggested
        n labels. With ``counts`` also column codes from 0, or an n x m one-hot matrix (the paper's B). With a
        ``Tally`` of several labelers, the name of one.
    counts
        n x m matrix of vote counts instead of votes (the paper's A).
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
        an item occurs: an item that occurs twice is two rows.
    strata
        The group that each item was drawn from, n labels, where so many were drawn from each group. Groups weigh
        as their items do, unless ``pool`` or ``weights`` say otherwise.
    pool
        How many items there are in all, in the data set that the items were drawn from at random; with ``strata``,
        a mapping from each stratum to its size, which then weighs the strata. The standard error is smaller where
        a good part of the pool was drawn.
    panel
        With ``pool``: ``"fixed"`` takes the votes on an item as they are, ``"drawn"`` lets the standard error cover
        other annotators too, and needs three votes on every item.

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
    """
    if isinstance(suggested, Mapping):
        raise DataError("suggested must hold one labeler's labels: use compare for several, or pass one of them.")
    if suggested is None and not isinstance(data, Tally) and (data is not None or counts is not None):
        raise DataError("suggested is absent: pass one suggested label for each item, or use fleiss_kappa.")
    whole, labeler = _tally_of(data, suggested, counts, categories, missing, weights, strata)
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
    whole, _ = _tally_of(data, None, counts, categories, missing, weights, strata)
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
) -> Comparison:
    """Compare labelers on the same items: the kappa of each, and all paired differences.

    Only items that every labeler labeled count. As items and votes are the same, a difference is known much better
    than each kappa. Its standard error comes from the differences of influence, item by item.

    Parameters
    ----------
    data
        Votes, given as to ``dh_kappa``, or a ``Tally`` of several labelers.
    suggested
        A mapping from the name of each labeler to its n labels. With a ``Tally``, a list of names; all by default.
    counts, categories, missing, weights, strata, pool, panel
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
    from dhkappa.data.cells import cells_of, names_of, read_cells
    from dhkappa.stats.compare import compare_of

    if isinstance(data, Tally):
        names = None if suggested is None else names_of(suggested)
        whole, _ = _tally_of(data, None, counts, categories, missing, weights, strata)
        cells = cells_of(whole, names)
    elif isinstance(suggested, Mapping):
        if (data is None) == (counts is None):
            raise DataError("pass either votes or counts=, one of the two.")
        known = Tally(categories, missing=missing)  # checks both
        declared = known.categories if known.declared else None
        cells = read_cells(
            data, suggested, counts=counts, categories=declared, missing=known.missing, weights=weights, strata=strata
        )
    else:
        raise DataError(
            "suggested must map the name of each labeler to its labels, such as {'rule': labels, 'llm': labels}: "
            f"got {shown([suggested])}."
        )
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
) -> Audit:
    """Ask every question of votes and suggested labels, and keep the answers.

    Kappa of each labeler with interval, floor and ceiling; the test against random labels; labelers compared in
    pairs; kappa by category and what the panel agrees on instead; the review queue of items; each annotator's part;
    and the labeler beside each annotator, as one more labeler.

    Parameters
    ----------
    data
        Votes: an n x N array or n lists of labels, as to ``dh_kappa``, or a ``Tally``, which does not keep who voted
        on what, so that items and annotators are left out. The columns of an array or dataframe are annotators;
        lists do not tell who voted.
    suggested
        n labels, or a mapping from the name of each labeler to its labels. With a ``Tally``, names; all by default.
    counts, categories, ordinal, missing, weights, strata, pool, panel
        As for ``dh_kappa``. Strata and pool weigh items, but do not enter the standard errors of people. Labelers are
        compared without ordinal weights.
    level
        Of all intervals.
    rng
        A seed or a ``numpy.random.Generator``, for what is drawn at random.
    progress
        Whether to show a progress line where it takes over a second and standard error is a terminal.

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
    from dhkappa.data.ballots import read_ballots
    from dhkappa.data.cells import names_of
    from dhkappa.findings import audit_of

    ballots = None
    if isinstance(data, Tally):
        whole, _ = _tally_of(data, None, counts, categories, missing, weights, strata)
        known = whole.labelers or (_LABELER,)
        names = known if suggested is None else names_of(suggested)
        strange = [name for name in names if name not in known]
        if not names or strange:
            said = shown(strange) or "nobody"
            raise DataError(f"suggested names {said}, not in the tally. Labelers: {shown(whole.labelers, 10)}.")
    elif suggested is None and (data is not None or counts is not None):
        raise DataError("suggested is absent: pass one label for each item, or a mapping from labelers to labels.")
    else:
        by_name = suggested if isinstance(suggested, Mapping) else {_LABELER: suggested}
        whole, _ = _tally_of(data, by_name, counts, categories, missing, weights, strata)
        names, declared = tuple(by_name), whole.categories if whole.declared else None
        ballots = read_ballots(
            data, by_name, counts=counts, categories=declared, missing=whole.missing, weights=weights, strata=strata
        )
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
) -> Plan:
    """Find how many items to have voted on, and by how many, so that kappa is known as well as wanted.

    Either from a pilot, or from assumed accuracies: each vote is right with rate ``accuracy`` and each suggested
    label with rate ``labeler``, and otherwise names any other category.

    Parameters
    ----------
    half_width
        Half the length that the interval of kappa should have, such as 0.05.
    pilot, suggested, counts, missing
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

    if isinstance(pilot, Kappa) and (suggested is not None or counts is not None):
        raise DataError("pilot is a Kappa, which holds votes and labels already: leave out suggested and counts.")
    if counts is not None or not (pilot is None or isinstance(pilot, Kappa)):
        pilot = dh_kappa(pilot, suggested, counts=counts, missing=missing)
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


def _tally_of(
    data: Any, suggested: Any, counts: Any, categories: Any, missing: Any, weights: Any, strata: Any
) -> tuple[Tally, str | None]:
    """Return the tally of some data, and the labeler whose name was given with a tally."""
    if not isinstance(data, Tally):
        found = tally(
            data, suggested, counts=counts, categories=categories, missing=missing, weights=weights, strata=strata
        )
        return found, None
    given = {"counts": counts, "categories": categories, "weights": weights, "strata": strata}
    extra = [name for name, value in given.items() if value is not None]
    if not isinstance(missing, tuple) or missing:
        extra.append("missing")
    if suggested is not None and not isinstance(suggested, str):
        extra.insert(0, "suggested")
    if extra:
        raise DataError(f"a Tally is given, which holds votes and labels already: leave out {' and '.join(extra)}.")
    return data, suggested


def _check_order(whole: Tally, data: Any) -> None:
    """Refuse categories that were not declared, whose order is not known."""
    if not whole.declared:
        there = " to the Tally as it is made" if data is whole else ""
        raise DataError(f"ordinal needs the categories in their order: pass categories=, lowest first{there}.")
