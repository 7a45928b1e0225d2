"""The public calls: any data in, a kappa out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dhkappa.data.tally import Tally, tally
from dhkappa.errors import DataError
from dhkappa.stats.result import Kappa, dh_kappa_of, fleiss_kappa_of, ordinal_kappa_of


def dh_kappa(
    data: Any = None,
    suggested: Any = None,
    *,
    counts: Any = None,
    categories: Iterable[Any] | None = None,
    ordinal: Any = None,
    missing: Iterable[Any] = (),
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
        n labels. With ``counts`` also column codes from 0, or an n x m one-hot matrix (the paper's B).
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
    if isinstance(data, Tally):
        counted = _alone(data, suggested, counts, categories, missing)
        return dh_kappa_of(counted) if ordinal is None else ordinal_kappa_of(counted, ordinal)
    if suggested is None and (data is not None or counts is not None):
        raise DataError("suggested is absent: pass one suggested label for each item, or use fleiss_kappa.")
    counted = tally(data, suggested, counts=counts, categories=categories, missing=missing)
    return dh_kappa_of(counted) if ordinal is None else ordinal_kappa_of(counted, ordinal)


def fleiss_kappa(
    data: Any = None,
    *,
    counts: Any = None,
    categories: Iterable[Any] | None = None,
    missing: Iterable[Any] = (),
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
    if isinstance(data, Tally):
        return fleiss_kappa_of(_alone(data, None, counts, categories, missing))
    return fleiss_kappa_of(tally(data, counts=counts, categories=categories, missing=missing))


def _alone(data: Tally, suggested: Any, counts: Any, categories: Any, missing: Any) -> Tally:
    """Refuse arguments that a tally already holds."""
    given = (("suggested", suggested, None), ("counts", counts, None), ("categories", categories, None))
    extra = [name for name, value, absent in (*given, ("missing", missing, ())) if value is not absent]
    if extra:
        raise DataError(f"a Tally is given, which holds votes and labels already: leave out {' and '.join(extra)}.")
    return data
