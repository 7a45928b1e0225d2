"""Sides: what stands beside the votes of an item: the labels of several labelers, a stratum, a weight."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core.arrays import as_columns, encode_suggested, is_matrix, one_hot_codes
from dhkappa.core.labels import Encoded, Integers, Label, is_real, no_lookalikes, unite
from dhkappa.errors import DataError, counted, shown

_WORD = 2**62
_FEW = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """J different sides; a pattern's ``suggested`` is then the place of its side.

    Attributes
    ----------
    labelers : what each of R labelers is called
    labels : (R, J) codes of suggested labels, -1 where missing
    strata : what each stratum is called, in order
    stratum : (J,) place in ``strata``; None where none are given
    weight : (J,) weight of one item; None where none are given
    """

    labelers: tuple[str, ...]
    labels: npt.NDArray[np.int32]
    strata: tuple[Label, ...]
    stratum: npt.NDArray[np.int32] | None
    weight: npt.NDArray[np.float64] | None

    @property
    def size(self) -> int:
        """J, how many there are."""
        return int(self.labels.shape[1])

    @property
    def stratified(self) -> bool:
        """Whether strata are given."""
        return self.stratum is not None

    @property
    def weighted(self) -> bool:
        """Whether weights are given."""
        return self.weight is not None

    def take(self, rows: npt.NDArray[Any]) -> Sides:
        """Return some sides, by index."""
        stratum = None if self.stratum is None else self.stratum[rows]
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, labels=self.labels[:, rows], stratum=stratum, weight=weight)

    def recode(self, codes: npt.NDArray[np.int64]) -> Sides:
        """Rename categories: ``codes`` maps those here; -1 stays missing."""
        return replace(self, labels=np.append(codes, -1).astype(np.int32)[self.labels])


PLAIN = Sides(("",), np.zeros((1, 0), np.int32), (), None, None)
"""One labeler without a name, and nothing else."""


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """What came beside the votes of n items, encoded but not yet joined."""

    labels: dict[str, Encoded]
    stratum: Encoded | None
    weight: npt.NDArray[np.float64] | None

    @property
    def plain(self) -> Encoded | None:
        """The labels, where there is one labeler without a name and nothing else."""
        alone = self.stratum is None and self.weight is None and list(self.labels) == [""]
        return self.labels[""] if alone else None

    def suggested(self) -> list[Label]:
        """Return the labels that some labeler suggests."""
        found = (given.occurring(given.digits(slice(None))) for given in self.labels.values())
        return [label for labels in found for label in labels]

    def joined(self) -> tuple[Encoded, npt.NDArray[np.int64]]:
        """Return the side of each item as a digit, and (J,) an item that has each."""
        columns = [(len(given.labels), given.digits(slice(None))) for given in self.labels.values()]
        if self.stratum is not None:
            columns.append((len(self.stratum.labels), self.stratum.digits(slice(None))))
        if self.weight is not None:
            values, place = np.unique(self.weight, return_inverse=True)
            columns.append((values.size, place))
        space, key = 1, np.zeros(len(columns[0][1]), np.int64)
        for base, digit in columns:
            if space * base >= _WORD:
                found, key = np.unique(key, return_inverse=True)
                space = found.size
            key = key * base + digit
            space *= base
        if space <= max(_FEW, key.size):
            first = np.full(space, -1, np.int64)
            first[key[::-1]] = np.arange(key.size - 1, -1, -1)
            found = np.flatnonzero(first >= 0)
            table = np.zeros(space, np.int32)
            table[found] = np.arange(found.size)
            digits: Integers = table[key]
            first = first[found]
        else:
            found, first, digits = np.unique(key, return_index=True, return_inverse=True)
        return Encoded(digits.astype(np.min_scalar_type(max(found.size - 1, 0))), 0, range(found.size)), first

    def sides(self, items: npt.NDArray[np.int64], categories: Sequence[Label]) -> Sides:
        """Return the sides of some items, in codes of these categories."""
        place: dict[Label | None, int] = {label: code for code, label in enumerate(categories)}
        labels = [
            np.array([-1 if label is None else place.get(label, -1) for label in given.labels] or [-1], np.int32)[
                given.digits(slice(None))[items]
            ]
            for given in self.labels.values()
        ]
        strata: tuple[Label, ...] = ()
        stratum = None
        if self.stratum is not None:
            digits = self.stratum.digits(slice(None))[items]
            strata = tuple(self.stratum.occurring(digits))
            at: dict[Label | None, int] = {label: code for code, label in enumerate(strata)}
            stratum = np.array([at.get(label, -1) for label in self.stratum.labels], np.int32)[digits]
        weight = None if self.weight is None else self.weight[items]
        return Sides(tuple(self.labels), np.array(labels, np.int32).reshape(len(labels), -1), strata, stratum, weight)


def unite_sides(tables: Sequence[Sides]) -> tuple[Sides, list[npt.NDArray[np.int64]]]:
    """Return the sides of all tables once, in an order that only they decide, and where each table's went.

    The tables have the same labelers, in one order, labels in codes of the same categories, and strata and
    weights all or none.
    """
    keys = [*np.concatenate([table.labels for table in tables], axis=1)]
    strata = unite(*(table.strata for table in tables))
    at = {label: code for code, label in enumerate(strata)}
    stratum = weight = None
    if tables[0].stratum is not None:
        moved = (np.array([at[label] for label in table.strata], np.int32)[table.stratum] for table in tables)
        stratum = np.concatenate(list(moved))
        keys.append(stratum)
    if tables[0].weight is not None:
        weight = np.concatenate([table.weight for table in tables if table.weight is not None])
        keys.append(weight)
    order = np.lexsort(keys[::-1])
    fresh = np.zeros(order.size, np.bool_)
    fresh[:1] = True
    for key in keys:
        fresh[1:] |= key[order][1:] != key[order][:-1]
    place = np.empty(order.size, np.int64)
    place[order] = np.cumsum(fresh) - 1
    labels = np.array(keys[: len(tables[0].labelers)], np.int32).reshape(len(tables[0].labelers), order.size)
    whole = Sides(tables[0].labelers, labels, strata, stratum, weight)
    return whole.take(order[fresh]), np.split(place, np.cumsum([table.size for table in tables])[:-1])


def check_labelers(suggested: Any) -> None:
    """Refuse a labeler whose name is empty, as that of a labeler is who was passed without one."""
    if isinstance(suggested, Mapping) and "" in suggested:
        raise DataError("suggested has a labeler called '': every labeler needs a name.")


def read_beside(
    suggested: Any,
    weights: Any,
    strata: Any,
    shape: tuple[int, ...],
    votes: str,
    missing: Collection[Label],
    names: Sequence[Label] | None = None,
) -> Beside:
    """Check and encode what stands beside votes (or counts, whose columns have ``names``) of this shape.

    ``suggested`` is one labeler's labels, or a mapping from labelers to theirs.
    """
    given = suggested if isinstance(suggested, Mapping) else {"": suggested}
    if not given:
        raise DataError("suggested is an empty mapping: name one labeler at least, such as {'llm': labels}.")
    labels = {}
    for labeler, values in given.items():
        if not isinstance(labeler, str):
            raise DataError(
                f"suggested must map names of labelers, as text, to labels: got the name {shown([labeler])}."
            )
        if names is not None and is_matrix(values):
            labels[labeler] = Encoded(one_hot_codes(values, shape), 0, tuple(names))
            continue
        name = f"suggested[{shown([labeler])}]" if labeler else "suggested"
        found = encode_suggested(values, shape, votes, missing, name)
        labels[labeler] = found if names is None else as_columns(found, names)
    stratum = None if strata is None else _encode_strata(strata, shape, votes)
    return Beside(labels, stratum, None if weights is None else read_weights(weights, shape[0], votes))


def read_weights(weights: Any, n: int, votes: str) -> npt.NDArray[np.float64]:
    """Check one weight for each of n items: a number, 0 or more, not all 0."""
    try:
        if isinstance(weights, (str, bytes, Mapping)):
            raise TypeError
        given = np.asarray(weights)
        if given.dtype.kind not in "biufO" or given.ndim == 0:
            raise TypeError
        if given.dtype.kind == "O" and not all(_is_number(value) or value is None for value in given.flat):
            raise TypeError
        found = np.where(np.ma.getmaskarray(weights), np.nan, given) if np.ma.is_masked(weights) else given
        with np.errstate(over="ignore"):
            found = found.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"weights must be a list of numbers, one for each item: got {shown([weights])}.") from None
    if found.ndim != 1:
        raise DataError(f"weights must be 1-D, one number for each item: got {found.ndim}-D with shape {found.shape}.")
    if found.size != n:
        raise DataError(
            f"{votes} has {counted(n, 'item')} but weights has {found.size:,}: one weight for each item, please."
        )
    wrong = np.flatnonzero(~((found >= 0) & np.isfinite(found)))
    if wrong.size:
        value = found[wrong[0]]
        what = "missing" if np.isnan(value) else "negative" if value < 0 else "infinite"
        raise DataError(f"weights must be numbers, 0 or more: item {wrong[0]} has {value:g} ({what}).")
    if n and not found.any():
        raise DataError("weights are all 0, so no item counts: pass what each item stands for, 1 where all are alike.")
    return found


def _is_number(value: Any) -> bool:
    return is_real(value) or isinstance(value, np.bool_)


def _encode_strata(strata: Any, shape: tuple[int, ...], votes: str) -> Encoded:
    """Encode the stratum of each item; each item is in one."""
    given = encode_suggested(strata, shape, votes, (), "strata")
    no_lookalikes([label for label in given.labels if label is not None])
    nowhere = np.array([label is None for label in given.labels], np.bool_)
    absent = np.flatnonzero(nowhere[given.digits(slice(None))]) if given.labels else np.zeros(0)
    if absent.size:
        raise DataError(
            f"strata must name the stratum of every item: item {absent[0]} has none"
            + (f", nor have {absent.size - 1:,} more." if absent.size > 1 else ".")
        )
    return given
