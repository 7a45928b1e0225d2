"""Tables of any engine, row by row: every vote with its item and annotator, for those who ask about them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dhkappa.core.counting import Read, read_matrix, read_votes
from dhkappa.core.item_columns import read_beside
from dhkappa.core.items import Ballots, ballots_of
from dhkappa.core.labels import Encoded, Label, encode, in_order
from dhkappa.errors import DataError, counted
from dhkappa.inputs.aggregate import categories_of_columns, pick_rows
from dhkappa.inputs.backends.frame import grouped, kind_of
from dhkappa.inputs.long_format import long_votes, pick_items
from dhkappa.inputs.tables import Laid, read_sides, whole_counts
from dhkappa.memory import need

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

_CELL = 128  # bytes of a value in Python, and of what is made of it


@dataclass(frozen=True, slots=True)
class Gathered:
    """All rows of a table.

    Attributes
    ----------
    read : votes and what is beside them, a row for each item
    names : what items are called, None where nothing tells
    annotators : what annotators are called, None where nothing tells
    annotator : (T,) who cast each vote, where rows have different lengths
    """

    read: Read
    names: Sequence[Any] | None
    annotators: tuple[Any, ...] | None
    annotator: npt.NDArray[np.int64] | None = None

    def ballots(self, categories: tuple[Label, ...] | None) -> Ballots:
        """Return the votes with their identities."""
        return ballots_of(self.read, categories, self.names, self.annotators, self.annotator)


def gather(laid: Laid, declared: tuple[Label, ...] | None, missing: Collection[Label]) -> Gathered:
    """Fetch all rows of a table."""
    if laid.layout.label is not None:
        return _gather_long(laid, missing)
    wide = not laid.layout.counts
    columns = laid.layout.votes if wide else laid.layout.counts
    parts = {f"vote_{place}": name for place, name in enumerate(columns)}
    frame, codings = pick_rows(laid, parts, list(parts) if wide else [])
    rows = _fetched(laid, frame)
    n = len(rows[next(iter(parts))])
    sides = read_sides(laid, codings, rows)
    grid = np.empty((n, len(parts)), object if wide else np.int64)
    for place, (part, name) in enumerate(parts.items()):
        grid[:, place] = codings[part].labels(rows[part]) if wide else whole_counts(rows[part], name)
    if wide:
        read = read_votes(grid, sides.suggested, missing, sides.weights, sides.strata)
    else:
        named = categories_of_columns(columns, declared)
        grid = np.pad(grid, ((0, 0), (0, len(named) - grid.shape[1])))
        read = read_matrix(grid, sides.suggested, named, missing, sides.weights, sides.strata)
    names = rows.get("item")
    index: Any = getattr(laid.votes.native, "index", None)
    if names is None and hasattr(index, "equals"):
        names = list(index)
    return Gathered(read, names, tuple(columns) if wide else None)


def _fetched(laid: Laid, frame: nw.LazyFrame[Any]) -> dict[str, list[Any]]:
    """Fetch all rows, where there is memory for them: it would take DuckDB very long to find out."""
    import narwhals.stable.v2 as nw

    if laid.votes.kind == "DUCKDB":
        [n] = laid.asked(frame.select(nw.len().alias("n")))["n"]
        need(int(n) * len(frame.collect_schema()) * _CELL, f"{counted(int(n), 'row')} that have to be fetched")
    return laid.asked(frame)


def _check_apart(laid: Laid, frame: nw.LazyFrame[Any], part: str, values: Sequence[Any]) -> None:
    """Refuse names that differ in the engine, and not in Python: times by nanoseconds, decimals made floats."""
    import narwhals.stable.v2 as nw

    if kind_of(frame, part) in ("integer", "text", "boolean"):
        return
    [n] = laid.asked(grouped(frame, [part], nw.len().alias("n")).select(nw.len().alias("n")))["n"]
    if int(n) != len(set(values)):
        name = laid.layout.item if part == "item" else laid.layout.annotator
        raise DataError(
            f"column {name!r} holds {counted(int(n), 'name')} of type {frame.collect_schema()[part]}, of which some "
            "are the same once they are fetched: write them as text."
        )


def _gather_long(laid: Laid, missing: Collection[Label]) -> Gathered:
    """Fetch votes, and items where they have a table of their own."""
    votes = long_votes(laid, missing)
    rows = _fetched(laid, votes.frame)
    for part in ("item", "annotator"):
        if part in rows:
            _check_apart(laid, votes.frame, part, rows[part])
    listed, codings = rows, votes.codings
    if laid.items is not None:
        frame, codings = pick_items(laid)
        listed = _fetched(laid, frame)
        _check_apart(laid, frame, "item", listed["item"])
    first: dict[Any, int] = {}
    for place, item in enumerate(listed["item"]):
        first.setdefault(item, place)
    if laid.items is None or laid.layout.unlisted == "unlabeled":
        for item in rows["item"]:
            first.setdefault(item, -1)
    names = list(first) if laid.votes.in_memory else sorted(first, key=in_order)
    rank = {item: place for place, item in enumerate(names)}
    item = np.fromiter((rank.get(name, -1) for name in rows["item"]), np.int64, len(rows["item"]))
    own = [first[name] for name in names]
    side = read_sides(laid, codings, listed)

    def of_items(column: Sequence[Any] | None) -> list[Any] | None:
        return None if column is None else [column[place] if place >= 0 else None for place in own]

    suggested = None if side.suggested is None else {who: of_items(given) for who, given in side.suggested.items()}
    labels = votes.coding.labels(rows["label"])
    times = np.array(rows["count"], np.int64) if "count" in rows else np.ones(len(labels), np.int64)
    valid = np.array([label in votes.found for label in labels], np.bool_) & (item >= 0)
    order = np.argsort(item, kind="stable")
    order = order[valid[order]]
    each = np.repeat(order, times[order])
    flat = np.empty(len(labels), object)
    flat[:] = labels
    encoded = encode(flat[each], "votes", missing) if each.size else Encoded(np.zeros(0, np.uint8), 0, ())
    length = np.bincount(item[each], minlength=len(names)).astype(np.int64)
    beside = read_beside(suggested, of_items(side.weights), of_items(side.strata), length.shape, "votes", missing)  # type: ignore[arg-type]
    read = Read(encoded, beside, length)
    if laid.layout.annotator is None or any(rows["annotator"][place] is None for place in each.tolist()):
        return Gathered(read, names, None)  # who cast some of the votes is not known
    people = sorted({rows["annotator"][place] for place in each.tolist()}, key=in_order)
    at = {who: place for place, who in enumerate(people)}
    annotator = np.fromiter((at[rows["annotator"][place]] for place in each.tolist()), np.int64, each.size)
    return Gathered(read, names, tuple(people), annotator)
