"""Tables: what a person passed as one, with the part of each column; what stands beside the votes in it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dhkappa.core.labels import Label
from dhkappa.core.patterns import MOST_VOTES
from dhkappa.errors import DataError, counted, shown
from dhkappa.inputs.backends.duckdb import numbered
from dhkappa.inputs.backends.frame import ORDER, Coding, Frame, fetch, frame_of, kind_of_name
from dhkappa.inputs.columns import (
    Layout,
    Words,
    almost,
    check_words,
    labelers_called,
    lay_out,
    listed,
    suggested_columns,
    understood,
)
from dhkappa.inputs.reading import read
from dhkappa.inputs.source import Source
from dhkappa.paths import Steady

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

_TIMES = ("date", "datetime", "time", "duration")


@dataclass(frozen=True)
class Laid:
    """A table of votes, the table of items beside it where there is one, and the parts of their columns.

    ``remarks`` say what is to know of where they came from, ``files`` which files every question reads.
    """

    votes: Frame
    items: Frame | None
    layout: Layout
    remarks: tuple[str, ...] = ()
    files: Steady = field(default_factory=Steady)

    @cached_property
    def beside(self) -> list[str]:
        """The parts that stand beside votes."""
        return list(self.layout.beside())

    @cached_property
    def side_labels(self) -> list[str]:
        """Those of them that hold labels."""
        return [part for part in self.beside if part != "weights"]

    @cached_property
    def names_as(self) -> str:
        """As what items are matched: ``"text"``, ``"float"`` or ``"integer"``, or nothing where both tables agree."""
        if self.items is None or self.layout.item is None:
            return ""
        names = [frame.pick({"item": self.layout.item})[0] for frame in (self.votes, self.items)]
        kinds = [kind_of_name(frame, "item") for frame in names]
        if {*kinds} == {"integer"} and self.votes.kind == "PYARROW":  # which joins none of two widths
            first, second = (frame.collect_schema()["item"] for frame in names)
            return "integer" if first != second else ""
        if len({*kinds}) == 1:
            return ""
        if {*kinds} == {"integer", "float"}:
            self._check_small((self.votes, self.items)[kinds.index("integer")])
            return "float"
        if {*kinds} != {"text", "integer"} and ("" not in kinds or {*kinds} & {"text", *_TIMES}):
            raise DataError(
                f"column {self.layout.item!r} names items by {_spoken(kinds[0])} in data and by {_spoken(kinds[1])} in "
                "items, which cannot be matched: write it alike."
            )
        return "text" if "text" in kinds else ""

    def _check_small(self, frame: Frame) -> None:
        """Refuse items that are named by numbers which floats, by which the other table names them, do not hold."""
        import narwhals.stable.v2 as nw

        item = str(self.layout.item)
        names, _ = frame.pick({"item": item})
        found = self.asked(names.select(nw.col("item").min().alias("least"), nw.col("item").max().alias("most")))
        if any(end is not None and abs(int(end)) > 2**53 for end in (*found["least"], *found["most"])):
            raise DataError(
                f"column {item!r} has whole numbers beyond 2^53 in one of data and items, and floats in the other, "
                "which do not hold them: write it alike."
            )

    @property
    def spare(self) -> set[str]:
        """Columns that play no part."""
        layout = self.layout
        return {*self.votes.columns} - {*layout.votes, *layout.counts, *layout.beside().values()}

    def asked(self, frame: nw.LazyFrame[Any]) -> dict[str, list[Any]]:
        """Run a query; its answer is of the files as they were when they were opened."""
        with self.files.held():
            return fetch(frame, self.votes.engine)


def _spoken(kind: str) -> str:
    """Return the word for values of a kind."""
    words = {"text": "text", "integer": "whole numbers", "float": "floats", "boolean": "booleans", "": "other values"}
    return words.get(kind, f"{kind}s")


def lay(
    data: Any, words: Words, *, suggested: Any, counts: Any, weights: Any, strata: Any, labelers: str
) -> Laid | None:
    """Return the table that data are, or lead to, with its layout; None where they are arrays.

    Parameters
    ----------
    data
        Whatever a person passed.
    words
        What was said of its layout.
    suggested, counts, weights, strata
        As a person passed them: names of columns beside a table.
    labelers
        How many labelers are wanted where none is named: ``"none"``, ``"one"``, ``"all"``, or ``"any"`` that are known.
    """
    check_words(words)
    source = _source(data)
    if source is None:
        frame = frame_of(data)
        if frame is None or not _by_name(frame, words, suggested, counts, weights, strata):
            if words:
                raise DataError(
                    f"{' and '.join(words)} name columns of a table, but the data are "
                    + ("absent." if data is None else f"a {type(data).__name__}, which has none that are known.")
                )
            return None
        source = Source(data)
    said: Words = {**source.words, **words}
    votes = _frame(source.votes)
    if source.ordered and said.get("duplicates", "error") != "error":
        votes = _frame(numbered(source.votes, ORDER))
    _check_names(votes)
    given = said.get("items") if said.get("items") is not None else source.items
    listed = _source(given)
    items = None if given is None else _frame(given if listed is None else listed.votes)
    place = votes if items is None else items
    _check_names(place)
    if suggested is None and labelers != "none":
        suggested = _default(source, place.columns, labelers)
    layout = lay_out(
        votes.columns,
        {**said, "items": given},
        suggested=suggested,
        counts=counts,
        weights=weights,
        strata=strata,
        beside=None if items is None else items.columns,
    )
    if items is not None and items.kind != votes.kind:
        raise DataError(
            f"data are held by {votes.engine} but items by {items.engine} (DuckDB holds what a path leads to), and one "
            "engine has to hold both: pass two paths, or two tables of one kind."
        )
    files = source.files if listed is None else source.files + listed.files
    return Laid(votes, items, layout, source.remarks, files)


def _source(data: Any) -> Source | None:
    """Return what was read, or what a path leads to."""
    if isinstance(data, Source):
        return data
    return read(data) if isinstance(data, (str, os.PathLike)) else None


def _frame(data: Any) -> Frame:
    frame = frame_of(data)
    if frame is None:
        raise DataError(f"items must be a table with a row for each item, or a path to one: got {shown([data])}.")
    return frame


def _check_names(frame: Frame) -> None:
    """Refuse columns that cannot be told apart by name."""
    wrong = [name for name in frame.columns if not isinstance(name, str)]
    if wrong:
        raise DataError(f"columns must have text as names, to be named: got {shown(wrong)}.")
    twice = [name for name, number in Counter(frame.columns).items() if number > 1]
    if twice:
        raise DataError(f"columns {shown(twice)} occur twice: each needs a name of its own.")


def _by_name(frame: Frame, words: Words, suggested: Any, counts: Any, weights: Any, strata: Any) -> bool:
    """Tell whether columns are meant by name, or the table is a grid of votes with labels beside it."""
    named = [value for value in (suggested, weights, strata) if isinstance(value, str)]
    if words or named or not frame.in_memory or (_are_names(counts) and counts is not None):
        return True
    if isinstance(suggested, Mapping):
        return bool(suggested) and all(isinstance(name, str) for name in suggested.values())
    if isinstance(suggested, (list, tuple)):
        return bool(suggested) and all(isinstance(name, str) and name in frame.columns for name in suggested)
    return suggested is None and counts is None and understood(frame.columns)


def _are_names(counts: Any) -> bool:
    return isinstance(counts, str) or (
        isinstance(counts, (list, tuple)) and bool(counts) and all(isinstance(name, str) for name in counts)
    )


def _default(source: Source, columns: Sequence[str], labelers: str) -> Any:
    """Return the labelers that the columns tell, where none was named."""
    found = list(source.labelers) or suggested_columns(columns)
    if not found and labelers == "any":
        return None
    if not found and source.unlabeled:
        raise DataError(source.unlabeled)
    if not found:
        raise DataError(
            "suggested is absent: name the column with suggested labels; if it stands in a table of items, pass that "
            f"as items=. Columns: {listed(columns)}.{almost(columns)}"
        )
    if labelers == "one" and len(found) > 1:
        choices = shown(labelers_called(found), 10)
        raise DataError(f"suggested is absent, and there are several labelers: choose one of {choices}.")
    return found[0] if labelers == "one" else labelers_called(found)


@dataclass(frozen=True, slots=True)
class SideColumns:
    """What stands beside votes, as arrays are read with."""

    suggested: dict[str, list[Label | None]] | None
    weights: npt.NDArray[np.float64] | None
    strata: list[Label | None] | None


def read_sides(laid: Laid, codings: Mapping[str, Coding], keys: Mapping[str, Sequence[Any]]) -> SideColumns:
    """Return labels, weights and strata of rows that came back."""
    layout = laid.layout
    suggested = {
        who: codings[f"suggested_{place}"].labels(keys[f"suggested_{place}"])
        for place, who in enumerate(layout.suggested)
    }
    items = keys.get("items") or [1] * len(next(iter(keys.values()), []))
    weights = None if layout.weights is None else _weights(keys["weights"], items, layout.weights)
    strata = None if layout.strata is None else codings["strata"].labels(keys["strata"])
    if strata is not None and None in strata:
        absent = sum(n for label, n in zip(strata, items, strict=True) if label is None)
        raise DataError(
            f"column {layout.strata!r} names no stratum for {counted(absent, 'item')}: every item is in one."
        )
    return SideColumns(suggested or None, weights, strata)


def _weights(values: Sequence[Any], items: Sequence[int], name: str) -> npt.NDArray[np.float64]:
    """Read weights, also those that a text file holds."""
    found = np.empty(len(values))
    for place, value in enumerate(values):
        try:
            odd = isinstance(value, (bool, np.ndarray)) or value is None or "_" in str(value)
            found[place] = np.nan if odd else float(value)
        except (TypeError, ValueError):
            found[place] = np.nan
        if not 0 <= found[place] < np.inf:
            what = "missing" if value is None or value == "" else shown([value])
            raise DataError(
                f"column {name!r} must hold weights, numbers of 0 or more: {counted(items[place], 'item')} or more "
                f"have {what}."
            )
    return found


def whole_counts(values: Sequence[Any], name: str) -> list[int]:
    """Read numbers of votes, also those that a text file holds."""
    found = []
    for value in values:
        try:
            number = int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() else value
            if isinstance(number, bool) or number != int(number) or number < 0:
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            what = (
                "a missing count: write 0 where there are no votes" if value is None or value == "" else shown([value])
            )
            raise DataError(f"column {name!r} must hold numbers of votes, whole and 0 or more: got {what}.") from None
        if number > MOST_VOTES:
            raise DataError(
                f"column {name!r} must hold numbers of votes, {MOST_VOTES:,} at most: got {shown([value])}."
            )
        found.append(int(number))
    return found
