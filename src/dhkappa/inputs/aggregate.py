"""Tables of any engine, counted by the engine: one query for each layout, and only groups of like items come back.

Where a row is an item, the engine groups rows by their votes, or by counts packed into whole numbers where annotators
are many. Where a row is a vote, it first adds up the packed counts of each item. Every group that comes back is then
read like one row of an array, with the number of items that it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dhkappa.core.counting import Read, read_matrix, read_votes
from dhkappa.core.items import Ballots, ballots_of
from dhkappa.core.labels import Label, check_declared, declare, in_order, unite
from dhkappa.errors import DataError, shown
from dhkappa.inputs.backends.frame import Coding, alike, grouped
from dhkappa.inputs.long_format import LongVotes, beside_items, check_sides, check_unlisted, long_votes, most_votes
from dhkappa.inputs.packed import Packed
from dhkappa.inputs.tables import Laid, read_sides, whole_counts

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

_FEW_COLUMNS = 6  # of votes, that are grouped by as they are: nearly as few groups, and no look at the labels first
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of like items as an engine counted them.

    Attributes
    ----------
    read : the groups, read like rows of an array, with the items that each stands for
    each : query for a row for each item, with its keys
    keys : (K,) values of the keys, by key, and the number of ``items``
    ask : runs a query
    """

    read: Read
    each: nw.LazyFrame[Any]
    keys: dict[str, list[Any]]
    ask: Callable[[nw.LazyFrame[Any]], dict[str, list[Any]]]

    def ballots(self, categories: tuple[Label, ...] | None) -> Ballots | None:
        """Return the groups as ballots, a row each, whose items the engine finds when they are asked for.

        None where items have no names.
        """
        if "item" not in self.each.collect_schema().names():
            return None
        values = [[repr(value) for value in column] for name, column in self.keys.items() if name != "items"]
        by_value = sorted(zip(*values, range(len(self.keys["items"])), strict=True))
        rank = np.empty(len(by_value), np.int64)
        rank[[row[-1] for row in by_value]] = np.arange(len(by_value))
        return replace(ballots_of(self.read, categories, rank.tolist()), find=self._find)

    def _find(self, rows: Sequence[int], most: int) -> list[tuple[int, Any]]:
        """Ask the engine for items of some groups, in that order, as many as wanted; those of one group by name."""
        found: list[tuple[int, Any]] = []
        whole, names = rows[:-1], [name for name in self.keys if name != "items"]
        if whole:
            group = {tuple(self.keys[name][row] for name in names): row for row in whole}
            some = self.ask(self.each.filter(_either([self._like(row) for row in whole])))
            keys = zip(*(some[name] for name in names), strict=True)
            place = {row: index for index, row in enumerate(rows)}
            pairs = [(group[key], item) for key, item in zip(keys, some["item"], strict=True)]
            found = sorted(pairs, key=lambda pair: (place[pair[0]], in_order(pair[1])))
        for row in rows[-1:]:
            some = self.ask(self.each.filter(self._like(row)).select("item").sort("item").head(most))
            found += [(row, item) for item in some["item"]]
        return found[:most]

    def _like(self, row: int) -> nw.Expr:
        """Return what holds for the items of a group only."""
        import narwhals.stable.v2 as nw

        tests = [
            nw.col(name).is_null()
            if values[row] is None
            else ~nw.col(name).is_null() & (nw.col(name) == nw.lit(values[row]))
            for name, values in self.keys.items()
            if name != "items"
        ]
        return nw.all_horizontal(*tests, ignore_nulls=True) if tests else nw.lit(True)


def _either(tests: Sequence[nw.Expr]) -> nw.Expr:
    """Return what holds where one of some tests does; by halves, as some parsers take no deep nesting."""
    if len(tests) == 1:
        return tests[0]
    return _either(tests[: len(tests) // 2]) | _either(tests[len(tests) // 2 :])


def group(laid: Laid, declared: tuple[Label, ...] | None, missing: Collection[Label]) -> Groups | None:
    """Have the engine count; None where votes are for so many categories that no few numbers hold the counts."""
    layout = laid.layout
    if layout.label is not None:
        return _group_long(laid, declared, missing)
    if layout.counts:
        return _group_counted_wide(laid, declared, missing)
    return _group_wide(laid, declared, missing)


def _group_wide(laid: Laid, declared: tuple[Label, ...] | None, missing: Collection[Label]) -> Groups:
    """Group rows that are items by their votes."""
    import narwhals.stable.v2 as nw

    votes = [f"vote_{place}" for place in range(len(laid.layout.votes))]
    frame, codings = pick_rows(laid, dict(zip(votes, laid.layout.votes, strict=True)), votes)
    own = [codings[vote] for vote in votes]
    if len(votes) > _FEW_COLUMNS:
        found = _labels_in_columns(laid, frame, votes, own)
        packed = Packed.of(_categories(found, declared, missing), len(votes).bit_length())
        if packed is not None:
            terms = [(vote, coding) for vote, coding in zip(votes, own, strict=True)]
            words = packed.words(terms, kind=laid.votes.kind)
            each = frame.with_columns(**{name: word.cast(nw.Int64) for name, word in words.items()})
            keys = _keys(laid, each, [*laid.beside, *packed.names])
            counts = packed.counts(keys)
            assert counts is not None  # as digits are wide enough for all annotators
            return _groups_of_counts(laid, counts, packed.categories, codings, keys, each, missing)
    keys = _keys(laid, frame, [*laid.beside, *votes])
    grid = np.empty((len(keys["items"]), len(votes)), object)
    for place, vote in enumerate(votes):
        grid[:, place] = codings[vote].labels(keys[vote])
    sides = read_sides(laid, codings, keys)
    read = read_votes(grid, sides.suggested, missing, sides.weights, sides.strata)
    return Groups(replace(read, items=_items(keys)), frame, keys, laid.asked)


def _group_counted_wide(laid: Laid, declared: tuple[Label, ...] | None, missing: Collection[Label]) -> Groups:
    """Group rows that are items by their counts."""
    parts = {f"count_{place}": name for place, name in enumerate(laid.layout.counts)}
    frame, codings = pick_rows(laid, parts)
    keys = _keys(laid, frame, [*laid.beside, *parts])
    counts = np.zeros((len(keys["items"]), len(parts)), np.int64)
    for place, (part, name) in enumerate(parts.items()):
        counts[:, place] = whole_counts(keys[part], name)
    named = categories_of_columns(laid.layout.counts, declared)
    return _groups_of_counts(laid, counts, named, codings, keys, frame, missing)


def categories_of_columns(columns: Sequence[str], declared: tuple[Label, ...] | None) -> tuple[Label, ...]:
    """Return the category of each column of counts, its name, and then those declared that nobody votes for."""
    if declared is not None and not {*columns} <= {*declared}:
        raise DataError(
            f"categories {shown(declared, 10)} lack some columns of counts, {shown(columns, 10)}: name them too, "
            "as each column counts the votes of the category that it is called."
        )
    return declare([*columns, *(label for label in declared or () if label not in columns)])


def pick_rows(
    laid: Laid, parts: Mapping[str, str], labels: Sequence[str] = ()
) -> tuple[nw.LazyFrame[Any], dict[str, Coding]]:
    """Pick the columns of a layout whose rows are items; refuse an item that occurs twice."""
    import narwhals.stable.v2 as nw

    own = {} if laid.layout.item is None else {"item": laid.layout.item}
    frame, codings = laid.votes.pick(own | dict(parts) | laid.layout.beside(), [*labels, *laid.side_labels])
    if own:
        twice = grouped(alike(frame, ["item"]), ["item"], nw.len().alias("n")).filter(nw.col("n") > 1).head(100)
        few = [item for item in laid.asked(twice)["item"] if item is not None]
        if few:
            raise DataError(
                f"column {laid.layout.item!r} names {shown(sorted(few, key=str)[:_EXAMPLES])} in several rows: a row "
                "is an item here; pass item= and label= if a row is a vote."
            )
    return frame, codings


def _group_long(laid: Laid, declared: tuple[Label, ...] | None, missing: Collection[Label]) -> Groups | None:
    """Add up the votes on each item, then group items by them."""
    votes = long_votes(laid, missing)
    total = sum(votes.found.values())
    packed = Packed.of(_categories(votes.found, declared, missing), 0)
    found = None if packed is None else _add_up(laid, votes, packed, total)
    if packed is not None and (found is None or found.n_votes != total):
        most = most_votes(laid, votes)
        if most >= 1 << packed.bits:
            packed = Packed.of(packed.categories, most.bit_length())
            found = None if packed is None else _add_up(laid, votes, packed, 0)
    check_sides(laid, votes, None if found is None else sum(found.keys["items"]))
    if packed is None or found is None:
        check_unlisted(laid, votes)
        return None
    if found.n_votes != total:
        check_unlisted(laid, votes)
        raise DataError(
            f"{laid.votes.engine} counted {found.n_votes:,} votes where there are {total:,}: do they change as they "
            "are read? If not, please report it."
        )
    return _groups_of_counts(laid, found.counts, packed.categories, found.codings, found.keys, found.each, missing)


@dataclass(frozen=True, slots=True)
class _Added:
    """Items grouped by the sums of their votes: the query, its keys, and (K, m) the counts that they stand for."""

    each: nw.LazyFrame[Any]
    codings: dict[str, Coding]
    keys: dict[str, list[Any]]
    counts: npt.NDArray[np.int64]

    @property
    def n_votes(self) -> int:
        """The number of votes; fewer than there are where a count has outgrown its digit."""
        return sum(map(int.__mul__, self.counts.sum(axis=1).tolist(), self.keys["items"]))


def _add_up(laid: Laid, votes: LongVotes, packed: Packed, total: int) -> _Added | None:
    """Add up the votes on each item; None where that gives numbers too large, which cannot be if ``total`` is 0."""
    import narwhals.stable.v2 as nw

    own = [] if laid.items is not None else laid.beside
    words = packed.words([("label", votes.coding)], "count" if laid.layout.count else None, laid.votes.kind)
    of_items = grouped(votes.frame.with_columns(**words), ["item", *own], *(nw.col(name).sum() for name in words))
    each, codings = beside_items(laid, of_items, list(words)) if laid.items is not None else (of_items, votes.codings)
    each = each.with_columns(*(nw.col(name).cast(nw.Int64) for name in words))
    try:
        keys = _keys(laid, each, [*laid.beside, *words])
    except DataError:
        if total < 1 << packed.bits or most_votes(laid, votes) < 1 << packed.bits:
            raise
        return None
    counts = packed.counts(keys)
    return None if counts is None else _Added(each, codings, keys, counts)


def _groups_of_counts(
    laid: Laid,
    counts: npt.NDArray[np.int64],
    categories: tuple[Label, ...],
    codings: Mapping[str, Coding],
    keys: dict[str, list[Any]],
    each: nw.LazyFrame[Any],
    missing: Collection[Label],
) -> Groups:
    """Read groups whose votes are counts of these categories."""
    sides = read_sides(laid, codings, keys)
    given = {label for labels in (sides.suggested or {}).values() for label in labels if label is not None}
    if laid.layout.counts:
        check_declared(given - set(missing), categories, "suggested")
        named = categories
    else:
        named = (*categories, *sorted(given - set(categories) - set(missing), key=str))
        unite(named)
    wide = np.zeros((len(counts), len(named)), np.min_scalar_type(int(counts.max(initial=0))))
    wide[:, : counts.shape[1]] = counts
    read = read_matrix(wide, sides.suggested, named, missing, sides.weights, sides.strata)
    return Groups(replace(read, items=_items(keys)), each, keys, laid.asked)


def _items(keys: Mapping[str, Sequence[Any]]) -> npt.NDArray[np.int64]:
    return np.array(list(map(int, keys["items"])), np.int64)


def _keys(laid: Laid, each: nw.LazyFrame[Any], keys: Sequence[str]) -> dict[str, list[Any]]:
    """Group items by some columns and count them."""
    import narwhals.stable.v2 as nw

    return laid.asked(grouped(each, keys, nw.len().alias("items")))


def _labels_in_columns(
    laid: Laid, frame: nw.LazyFrame[Any], parts: Sequence[str], codings: Sequence[Coding]
) -> set[Label]:
    """Return the labels that some columns hold: one query where all are written alike."""
    import narwhals.stable.v2 as nw

    schema = frame.collect_schema()
    # To narwhals, two kinds of text of PyArrow are one type.
    if (
        len({schema[part] for part in parts}) == 1
        and frame.implementation.name != "PYARROW"
        and codings[0].values is None
    ):
        both = nw.concat([frame.select(nw.col(part).alias("label")) for part in parts]).unique()
        found = codings[0].labels(laid.asked(both)["label"])
    else:
        found = []
        for part, coding in zip(parts, codings, strict=True):
            found += coding.labels(laid.asked(frame.select(part).unique())[part])
    return {label for label in found if label is not None}


def _categories(
    found: Collection[Label], declared: tuple[Label, ...] | None, missing: Collection[Label]
) -> tuple[Label, ...]:
    """Return the categories of votes: as declared, which must hold all that were found, or those found."""
    votes = [label for label in found if label not in missing]
    if declared is None:
        return unite(votes)
    check_declared(votes, declared, "votes")
    return declared
