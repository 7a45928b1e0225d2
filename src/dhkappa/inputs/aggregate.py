"""Query plans: group and count items in the engine, or fetch every vote with its item and annotator.

Wide format: the engine groups rows by their votes, or by packed counts if there are many annotators. Long format: it
first adds up the packed counts of each item. Each group is then read like one row of an array, with the number of
items in the group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from dhkappa.core import Label
from dhkappa.core.grouping import Encoded
from dhkappa.core.items import ItemVotes
from dhkappa.core.labels import check_categories, check_declared, encode, name_key, union
from dhkappa.errors import DataError, counted, shown
from dhkappa.inputs.arrays import read_lists, read_matrix, read_votes
from dhkappa.inputs.backends import Coding, kind_in
from dhkappa.inputs.long_format import (
    LongTable,
    check_item_columns,
    check_unlisted,
    join_items,
    long_table,
    most_votes,
    pick_items,
)
from dhkappa.inputs.tables import VoteTable, read_item_columns, whole_counts
from dhkappa.resources import need

_FEW_COLUMNS = 6  # with so few columns of votes, grouping by them gives nearly as few groups as by counts
_EXAMPLES = 3
_VALUE = 128  # bytes of a fetched value in Python
_WORD_BITS = 52  # a join of pandas or Dask turns int64 into float64
_MOST_WORDS = 16


@dataclass(frozen=True, slots=True)
class PackedCounts:
    """Counts of categories as digits of ``bits`` bits in a few integers ("words"), which any engine can add up."""

    categories: tuple[Label, ...]
    bits: int

    @classmethod
    def of(cls, categories: Collection[Label], bits: int) -> PackedCounts | None:
        """Choose the width of digits, at least ``bits`` (0: what fits); None if that takes too many words."""
        m = max(len(categories), 1)
        found = cls(tuple(categories), bits or max(min(_WORD_BITS // m, 16), 4))
        return found if found.bits <= 32 and -(-m // found._digits) <= _MOST_WORDS else None

    @property
    def _digits(self) -> int:
        return _WORD_BITS // self.bits

    @property
    def names(self) -> list[str]:
        """Names of the words."""
        return [f"word_{place}" for place in range(-(-max(len(self.categories), 1) // self._digits))]

    def words(self, columns: Mapping[str, Coding], count_type: Any, times: str | None = None) -> dict[str, nw.Expr]:
        """Return the words of a row with labels in some columns, each ``times`` a column of counts."""
        found = {}
        for place, name in enumerate(self.names):
            own = self.categories[place * self._digits : (place + 1) * self._digits]
            terms = [
                nw.when(nw.col(column) == nw.lit(coding.value(label)))
                .then(nw.lit(1 << digit * self.bits, nw.Int64))  # 32 bits otherwise, on some engines
                .otherwise(nw.lit(0, nw.Int64))
                .cast(count_type)
                for column, coding in columns.items()
                for digit, label in enumerate(own)
                if coding.value(label) is not None
            ]
            word = _balanced(terms or [nw.lit(0, nw.Int64)], lambda one, other: one + other)
            found[name] = word if times is None else word * nw.col(times).cast(count_type)
        return found

    def counts(self, keys: Mapping[str, Sequence[int]]) -> npt.NDArray[np.int64] | None:
        """Return (K, m) counts for words; None if a word is out of range."""
        found = np.zeros((len(keys["items"]), len(self.categories)), np.int64)
        for place, name in enumerate(self.names):
            word = np.array(keys[name], np.int64)
            if word.size and not 0 <= word.min() <= word.max() < 1 << self._digits * self.bits:
                return None
            for digit in range(min(self._digits, len(self.categories) - place * self._digits)):
                found[:, place * self._digits + digit] = word >> digit * self.bits & (1 << self.bits) - 1
        return found


def _balanced(terms: Sequence[nw.Expr], join: Callable[[nw.Expr, nw.Expr], nw.Expr]) -> nw.Expr:
    """Join terms as a balanced tree: SQLite's parser overflows on deep nesting."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return join(_balanced(terms[:half], join), _balanced(terms[half:], join))


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of equal items, counted by the engine.

    Attributes
    ----------
    read : the groups, read like rows of an array, with the number of items of each
    each : query for one row per item, with its keys
    keys : (K,) values of the keys, by key, and the number of ``items``
    ask : runs a query
    """

    read: ItemVotes
    each: nw.LazyFrame[Any]
    keys: dict[str, list[Any]]
    ask: Callable[[nw.LazyFrame[Any]], dict[str, list[Any]]]

    def item_votes(self, categories: tuple[Label, ...] | None) -> ItemVotes | None:
        """Return one row per group, whose items are fetched when they are needed; None if items have no names.

        The annotators are left out: their statistics are about single items.
        """
        if "item" not in self.each.collect_schema().names():
            return None
        values = [[repr(value) for value in column] for name, column in self.keys.items() if name != "items"]
        by_value = sorted(zip(*values, range(len(self.keys["items"])), strict=True))
        rank = np.empty(len(by_value), np.int64)
        rank[[row[-1] for row in by_value]] = np.arange(len(by_value))
        return replace(self.read, declared=categories, names=rank.tolist(), annotators=None, find=self._find)

    def _find(self, rows: Sequence[int], limit: int) -> list[tuple[int, Any]]:
        """Fetch up to ``limit`` items of some groups, in that order; within a group by name."""
        found: list[tuple[int, Any]] = []
        whole, names = rows[:-1], [name for name in self.keys if name != "items"]
        if whole:
            group = {tuple(self.keys[name][row] for name in names): row for row in whole}
            either = _balanced([self._is_in(row) for row in whole], lambda one, other: one | other)
            some = self.ask(self.each.filter(either))
            keys = zip(*(some[name] for name in names), strict=True)
            place = {row: index for index, row in enumerate(rows)}
            pairs = [(group[key], item) for key, item in zip(keys, some["item"], strict=True)]
            found = sorted(pairs, key=lambda pair: (place[pair[0]], name_key(pair[1])))
        for row in rows[-1:]:
            some = self.ask(self.each.filter(self._is_in(row)).select("item").sort("item").head(limit))
            found += [(row, item) for item in some["item"]]
        return found[:limit]

    def _is_in(self, row: int) -> nw.Expr:
        """Return the condition that an item is in a group."""
        tests = [
            nw.col(name).is_null()
            if values[row] is None
            else ~nw.col(name).is_null() & (nw.col(name) == nw.lit(values[row]))
            for name, values in self.keys.items()
            if name != "items"
        ]
        return nw.all_horizontal(*tests, ignore_nulls=True) if tests else nw.lit(True)


def group(table: VoteTable, declared: tuple[Label, ...] | None, missing: Collection[Label]) -> Groups | None:
    """Count in the engine; None if there are too many categories to pack their counts."""
    if table.roles.label is not None:
        return _group_long(table, declared, missing)
    return (_group_counts if table.roles.counts else _group_wide)(table, declared, missing)


def _group_wide(table: VoteTable, declared: tuple[Label, ...] | None, missing: Collection[Label]) -> Groups:
    """Group rows by their votes."""
    frame, codings, votes = _wide_table(table)
    if len(votes) > _FEW_COLUMNS:
        own = {vote: codings[vote] for vote in votes}
        packed = PackedCounts.of(_categories(_labels_in(table, frame, own), declared, missing), len(votes).bit_length())
        if packed is not None:
            words = packed.words(own, table.votes.count_type)
            each = frame.with_columns(**{name: word.cast(nw.Int64) for name, word in words.items()})
            keys = _group_by(table, each, [*table.item_roles, *packed.names])
            counts = packed.counts(keys)
            assert counts is not None  # digits are wide enough for all annotators
            return _groups_of_counts(table, counts, packed.categories, codings, keys, each, missing)
    keys = _group_by(table, frame, [*table.item_roles, *votes])
    read = _read_wide(table, codings, keys, votes, missing)
    return Groups(replace(read, items=np.array(list(map(int, keys["items"])), np.int64)), frame, keys, table.ask)


def _group_counts(table: VoteTable, declared: tuple[Label, ...] | None, missing: Collection[Label]) -> Groups:
    """Group rows by their counts."""
    frame, codings, columns = _wide_table(table)
    keys = _group_by(table, frame, [*table.item_roles, *columns])
    categories = _categories_of_columns(table.roles.counts, declared)
    return _groups_of_counts(table, _counts(table, keys, columns), categories, codings, keys, frame, missing)


def _wide_table(table: VoteTable) -> tuple[nw.LazyFrame[Any], dict[str, Coding], list[str]]:
    """Pick the columns of a table in wide format, and check that each item has one row; once for each table."""
    if "wide" in table.cache:
        found: tuple[nw.LazyFrame[Any], dict[str, Coding], list[str]] = table.cache["wide"]
        return found
    roles = table.roles
    votes = {f"vote_{place}": name for place, name in enumerate(roles.annotators or roles.counts)}
    columns = ({} if roles.item is None else {"item": roles.item}) | votes | roles.item_columns()
    frame, codings = table.votes.pick(columns, [*(votes if roles.annotators else ()), *table.label_roles])
    if roles.item is not None:
        repeated = table.votes.group(table.votes.repeated(frame, ["item"]), ["item"], nw.len().alias("n"))
        twice = table.ask(repeated.filter(nw.col("n") > 1).head(100))["item"]
        few = sorted((item for item in twice if item is not None), key=str)[:_EXAMPLES]
        if few:
            message = f"Column {roles.item!r} has {shown(few)} in several rows, but wide format has one row per item."
            hint = "Pass $item and $label if a row is a vote."
            raise DataError(message, code="duplicate-items", parameter="item", hint=hint)
    table.cache["wide"] = frame, codings, list(votes)
    return frame, codings, list(votes)


def _read_wide(
    table: VoteTable,
    codings: Mapping[str, Coding],
    rows: Mapping[str, Sequence[Any]],
    votes: Sequence[str],
    missing: Collection[Label],
) -> ItemVotes:
    """Read rows of votes."""
    grid = np.empty((len(rows[votes[0]]), len(votes)), object)
    for place, vote in enumerate(votes):
        grid[:, place] = codings[vote].labels(rows[vote])
    own = read_item_columns(table, codings, rows)
    return read_votes(grid, own.suggested, missing, own.sample_weight, own.strata)


def _counts(table: VoteTable, rows: Mapping[str, Sequence[Any]], columns: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return columns of counts as a matrix."""
    found = np.zeros((len(rows[columns[0]]), len(columns)), np.int64)
    for place, (column, name) in enumerate(zip(columns, table.roles.counts, strict=True)):
        found[:, place] = whole_counts(rows[column], name, "counts")
    return found


def _categories_of_columns(columns: Sequence[str], declared: tuple[Label, ...] | None) -> tuple[Label, ...]:
    """Return the names of the columns of counts, then other declared categories."""
    if declared is not None and not {*columns} <= {*declared}:
        message = f"categories {shown(declared, 10)} lack some columns of counts: {shown(columns, 10)}."
        hint = "Name them too: each column counts the votes for the category of its name."
        raise DataError(message, code="categories-lack-columns", parameter="categories", hint=hint)
    return check_categories([*columns, *(label for label in declared or () if label not in columns)])


def _group_long(table: VoteTable, declared: tuple[Label, ...] | None, missing: Collection[Label]) -> Groups | None:
    """Add up the votes on each item, then group items by them."""
    long = long_table(table, missing)
    total = sum(long.label_counts.values())
    packed = PackedCounts.of(_categories(long.label_counts, declared, missing), 0)
    found = None if packed is None else _sum_votes(table, long, packed, total)
    if packed is not None and (found is None or found.n_votes != total):
        most = most_votes(table, long)
        if most >= 1 << packed.bits:
            packed = PackedCounts.of(packed.categories, most.bit_length())
            found = None if packed is None else _sum_votes(table, long, packed, 0)
    check_item_columns(table, long, None if found is None else sum(found.keys["items"]))
    if packed is None or found is None:
        check_unlisted(table, long)
        return None
    if found.n_votes != total:
        check_unlisted(table, long)
        message = f"{table.votes.engine} counted {found.n_votes:,} votes, but there are {total:,}."
        hint = "If the data do not change while they are read, please report this as a bug."
        raise DataError(message, code="votes-lost", hint=hint)
    return _groups_of_counts(table, found.counts, packed.categories, found.codings, found.keys, found.each, missing)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Items grouped by the sums of their votes: the query, its keys, and (K, m) counts."""

    each: nw.LazyFrame[Any]
    codings: dict[str, Coding]
    keys: dict[str, list[Any]]
    counts: npt.NDArray[np.int64]

    @property
    def n_votes(self) -> int:
        """The number of votes; too few if a count has overflowed its digit."""
        return sum(map(int.__mul__, self.counts.sum(axis=1).tolist(), self.keys["items"]))


def _sum_votes(table: VoteTable, long: LongTable, packed: PackedCounts, total: int) -> _Sums | None:
    """Add up the votes on each item; None if a word overflows, which it cannot if ``total`` is 0."""
    own = [] if table.items is not None else table.item_roles
    words = packed.words(
        {"label": long.codings["label"]}, table.votes.count_type, "count" if table.roles.count else None
    )
    sums = (nw.col(name).sum() for name in words)
    by_item = table.votes.group(long.frame.with_columns(**words), ["item", *own], *sums)
    each, codings = (by_item, long.codings) if table.items is None else join_items(table, by_item, list(words))
    each = each.with_columns(*(nw.col(name).cast(nw.Int64) for name in words))
    try:
        keys = _group_by(table, each, [*table.item_roles, *words])
    except DataError:
        if total < 1 << packed.bits or most_votes(table, long) < 1 << packed.bits:
            raise
        return None
    counts = packed.counts(keys)
    return None if counts is None else _Sums(each, codings, keys, counts)


def _groups_of_counts(
    table: VoteTable,
    counts: npt.NDArray[np.int64],
    categories: tuple[Label, ...],
    codings: Mapping[str, Coding],
    keys: dict[str, list[Any]],
    each: nw.LazyFrame[Any],
    missing: Collection[Label],
) -> Groups:
    """Read groups with (K, m) counts of the categories."""
    read = _read_counts(table, counts, categories, codings, keys, missing)
    return Groups(replace(read, items=np.array(list(map(int, keys["items"])), np.int64)), each, keys, table.ask)


def _read_counts(
    table: VoteTable,
    counts: npt.NDArray[np.int64],
    categories: tuple[Label, ...],
    codings: Mapping[str, Coding],
    rows: Mapping[str, Sequence[Any]],
    missing: Collection[Label],
) -> ItemVotes:
    """Read rows of counts. Suggested labels outside the categories are categories without votes, in long format."""
    own = read_item_columns(table, codings, rows)
    given = {label for labels in (own.suggested or {}).values() for label in labels if label is not None}
    if table.roles.counts:
        check_declared(given - set(missing), categories, "suggested")
    else:
        categories = (*categories, *sorted(given - set(categories) - set(missing), key=str))
        union(categories)
    wide = np.zeros((len(counts), len(categories)), np.min_scalar_type(int(counts.max(initial=0))))
    wide[:, : counts.shape[1]] = counts
    return read_matrix(wide, own.suggested, missing, own.sample_weight, own.strata, categories)


def _group_by(table: VoteTable, each: nw.LazyFrame[Any], keys: Sequence[str]) -> dict[str, list[Any]]:
    """Group items by some columns and count them."""
    return table.ask(table.votes.group(each, keys, nw.len().alias("items")))


def _labels_in(table: VoteTable, frame: nw.LazyFrame[Any], columns: Mapping[str, Coding]) -> set[Label]:
    """Return the labels in some columns: one query if all have the same type."""
    schema = frame.collect_schema()
    first = next(iter(columns.values()))
    if len({schema[role] for role in columns}) == 1 and table.votes.stacks_columns and first.values is None:
        both = nw.concat([frame.select(nw.col(role).alias("label")) for role in columns]).unique()
        found = first.labels(table.ask(both)["label"])
    else:
        found = []
        for role, coding in columns.items():
            found += coding.labels(table.ask(frame.select(role).unique())[role])
    return {label for label in found if label is not None}


def _categories(
    found: Collection[Label], declared: tuple[Label, ...] | None, missing: Collection[Label]
) -> tuple[Label, ...]:
    """Return the categories of votes: as declared, or those that occur."""
    votes = [label for label in found if label not in missing]
    if declared is None:
        return union(votes)
    check_declared(votes, declared, "votes")
    return declared


def fetch_rows(table: VoteTable, declared: tuple[Label, ...] | None, missing: Collection[Label]) -> ItemVotes:
    """Fetch all rows of a table."""
    if table.roles.label is not None:
        return _fetch_long(table, missing)
    frame, codings, columns = _wide_table(table)
    rows = _fetch(table, frame)
    names = rows.get("item", table.votes.row_names)
    if table.roles.annotators:
        read = _read_wide(table, codings, rows, columns, missing)
        return replace(read, names=names, annotators=table.roles.annotators)
    categories = _categories_of_columns(table.roles.counts, declared)
    read = _read_counts(table, _counts(table, rows, columns), categories, codings, rows, missing)
    return replace(read, names=names)


def _fetch(table: VoteTable, frame: nw.LazyFrame[Any], n: int | None = None) -> dict[str, list[Any]]:
    """Fetch all ``n`` rows, if there is memory for them."""
    if table.votes.checks_memory:
        n = int(table.ask(frame.select(nw.len().alias("n")))["n"][0]) if n is None else n
        need(n * len(frame.collect_schema()) * _VALUE, counted(n, "row"))
    return table.ask(frame)


def _check_distinct(table: VoteTable, frame: nw.LazyFrame[Any], role: str, values: Sequence[Any]) -> None:
    """Refuse names that differ in the engine but not in Python: nanoseconds, decimals that become floats."""
    if kind_in(frame, role) in ("integer", "text", "boolean"):
        return
    names = table.votes.group(frame, [role], nw.len().alias("n"))
    [n] = table.ask(names.select(nw.len().alias("n")))["n"]
    if int(n) != len(set(values)):
        name = table.roles.item if role == "item" else table.roles.annotator
        message = f"Column {name!r} has type {frame.collect_schema()[role]}: some names are equal in Python."
        raise DataError(message, code="names-not-distinct", parameter=role, hint="Write them as text.")


def _fetch_long(table: VoteTable, missing: Collection[Label]) -> ItemVotes:
    """Fetch votes, and the items table if there is one."""
    long = long_table(table, missing)
    rows = _fetch(table, long.frame, long.n_rows)
    for role in ("item", "annotator"):
        if role in rows:
            _check_distinct(table, long.frame, role, rows[role])
    listed, codings = rows, long.codings
    if table.items is not None:
        frame, codings = pick_items(table)
        listed = _fetch(table, frame)
        _check_distinct(table, frame, "item", listed["item"])
    first: dict[Any, int] = {}
    for place, item in enumerate(listed["item"]):
        first.setdefault(item, place)
    if table.items is None or table.roles.unlisted == "unlabeled":
        for item in rows["item"]:
            first.setdefault(item, -1)
    names = list(first) if table.votes.in_memory else sorted(first, key=name_key)
    rank = {item: place for place, item in enumerate(names)}
    item = np.fromiter((rank.get(name, -1) for name in rows["item"]), np.int64, len(rows["item"]))
    own = read_item_columns(table, codings, listed)

    def by_item(column: Sequence[Any] | None) -> Any:
        return None if column is None else [column[first[name]] if first[name] >= 0 else None for name in names]

    labels = np.empty(len(item), object)
    labels[:] = long.codings["label"].labels(rows["label"])
    times = np.array(rows["count"], np.int64) if "count" in rows else np.ones(len(labels), np.int64)
    valid = np.array([label in long.label_counts for label in labels], np.bool_) & (item >= 0)
    order = np.argsort(item, kind="stable")
    order = order[valid[order]]
    each = np.repeat(order, times[order])
    encoded = encode(labels[each], "votes", missing) if each.size else Encoded(np.zeros(0, np.uint8), 0, ())
    length = np.bincount(item[each], minlength=len(names)).astype(np.int64)
    suggested = None if own.suggested is None else {who: by_item(given) for who, given in own.suggested.items()}
    weight, strata = by_item(own.sample_weight), by_item(own.strata)  # type: ignore[arg-type]
    read = replace(read_lists(encoded, length, suggested, missing, weight, strata), names=names)
    voters = [] if table.roles.annotator is None else [rows["annotator"][place] for place in each.tolist()]
    if table.roles.annotator is None or None in voters:
        return read
    annotators = sorted(set(voters), key=name_key)
    place_of = {who: place for place, who in enumerate(annotators)}
    voter = np.fromiter(map(place_of.__getitem__, voters), np.int64, each.size)
    return replace(read, annotators=tuple(annotators), voter=voter)
