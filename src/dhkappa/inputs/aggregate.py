"""Query plans: group and count items in the engine, or fetch every vote with its item and annotator.

Wide format: the engine groups rows by their votes, or by packed counts if there are many annotators. Long format: it
first adds up the packed counts of each item. Each group is then read like one row of an array, with the number of
items in the group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np

from dhkappa.core import Categories, Integers, Label
from dhkappa.core.grouping import MAX_VOTES, Encoded
from dhkappa.core.items import ItemVotes
from dhkappa.core.labels import check_categories, check_declared, encode, name_key, natural_key, union
from dhkappa.errors import DataError, counted, invalid, shown
from dhkappa.inputs.arrays import read_columns, read_matrix, read_votes
from dhkappa.inputs.backends import SHOWN, Ask, Coding, Query, balanced, kind_in
from dhkappa.inputs.count_columns import whole_counts
from dhkappa.inputs.joins import check_unlisted
from dhkappa.inputs.label_values import labels_in
from dhkappa.inputs.tables import LongTable, VoteTable, pick_items
from dhkappa.resources import need

_FEW_COLUMNS = 6  # with so few columns of votes, grouping by them gives nearly as few groups as by counts
_VALUE = 128  # bytes of a fetched value in Python
_WORD_BITS = 52  # a join of pandas or Dask turns int64 into float64
_MOST_WORDS = 16

_Codings: TypeAlias = Mapping[str, Coding]
_Rows: TypeAlias = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class PackedCounts:
    """Counts of categories as digits of ``bits`` bits in a few integers ("words"), which any engine can add up."""

    categories: Categories
    bits: int

    @classmethod
    def of(cls, categories: Collection[Label], bits: int) -> PackedCounts | None:
        """Choose the width of digits, at least ``bits`` (0: what fits); None if that takes too many words."""
        found = cls(tuple(categories), bits or max(min(_WORD_BITS // max(len(categories), 1), 16), 4))
        return found if found.bits <= 32 and len(found.names) <= _MOST_WORDS else None

    @property
    def _digits(self) -> int:
        return _WORD_BITS // self.bits

    @property
    def names(self) -> list[str]:
        """Names of the words."""
        return [f"word_{place}" for place in range(-(-max(len(self.categories), 1) // self._digits))]

    def words(self, columns: _Codings, count_type: Any, times: str | None = None) -> dict[str, nw.Expr]:
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
            word = balanced(terms or [nw.lit(0, nw.Int64)], lambda one, other: one + other)
            found[name] = word if times is None else word * nw.col(times).cast(count_type)
        return found

    def counts(self, keys: Mapping[str, Sequence[int]]) -> Integers | None:
        """Return (K, m) counts for words; None if a word is out of range."""
        found = np.zeros((len(keys["items"]), len(self.categories)), np.int64)
        for place, name in enumerate(self.names):
            word = np.array(keys[name], np.int64)
            if word.size and not 0 <= word.min() <= word.max() < 1 << self._digits * self.bits:
                return None
            for digit in range(min(self._digits, len(self.categories) - place * self._digits)):
                found[:, place * self._digits + digit] = word >> digit * self.bits & (1 << self.bits) - 1
        return found


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of equal items, counted by the engine, and read like rows of an array with a number of items each."""

    read: ItemVotes
    each: Query  # one row per item with its keys
    keys: dict[str, list[Any]]  # their values for each group, and the number of its items
    ask: Ask

    @property
    def _names(self) -> list[str]:
        return [name for name in self.keys if name != "items"]

    def item_votes(self) -> ItemVotes | None:
        """Return one row per group, whose items are fetched when they are needed; None if items have no names.

        The annotators are left out: their statistics are about single items.
        """
        if "item" not in self.each.collect_schema().names():
            return None
        values = [map(repr, self.keys[name]) for name in self._names]
        by_value = sorted(zip(*values, range(len(self.keys["items"])), strict=True))
        rank = np.empty(len(by_value), np.int64)
        rank[[row[-1] for row in by_value]] = np.arange(len(by_value))
        return replace(self.read, names=rank.tolist(), annotators=None, find=self._find)

    def _find(self, rows: Sequence[int], limit: int) -> list[tuple[int, Any]]:
        """Fetch up to ``limit`` items of some groups, in that order; within a group by name."""
        found: list[tuple[int, Any]] = []
        whole, names = rows[:-1], self._names
        if whole:
            group = {tuple(self.keys[name][row] for name in names): row for row in whole}
            either = balanced([self._is_in(row) for row in whole], lambda one, other: one | other)
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
        tests = []
        for name in self._names:
            null, value = nw.col(name).is_null(), self.keys[name][row]
            tests.append(null if value is None else ~null & (nw.col(name) == nw.lit(value)))
        return nw.all_horizontal(*tests, ignore_nulls=True) if tests else nw.lit(True)


def group(table: VoteTable) -> Groups | None:
    """Count in the engine; None if there are too many categories to pack their counts."""
    if table.roles.label is not None:
        return _group_long(table)
    frame, codings, votes = table.wide
    if table.roles.annotators and len(votes) > _FEW_COLUMNS:
        own = {vote: codings[vote] for vote in votes}
        packed = PackedCounts.of(_categories(table, labels_in(table, frame, own)), len(votes).bit_length())
        if packed is not None:
            words = packed.words(own, table.votes.count_type)
            each = frame.with_columns(**{name: word.cast(nw.Int64) for name, word in words.items()})
            keys = _group_by(table, each, [*table.item_roles, *packed.names])
            counts = packed.counts(keys)
            assert counts is not None  # digits are wide enough for all annotators
            read = _read_counts(table, counts, packed.categories, codings, keys)
            return Groups(read, each, keys, table.ask)
    keys = _group_by(table, frame, [*table.item_roles, *votes])
    return Groups(_read_wide(table, codings, keys, votes), frame, keys, table.ask)


def _group_by(table: VoteTable, each: Query, keys: Sequence[str]) -> dict[str, list[Any]]:
    """Group items by some columns and count them."""
    found = table.ask(table.votes.group(each, keys, nw.len().alias("items")))
    return found | {"items": list(map(int, found["items"]))}


def _read_wide(table: VoteTable, codings: _Codings, rows: _Rows, votes: Sequence[str]) -> ItemVotes:
    """Read rows of votes, or of counts: their categories are the names of columns, then others that are declared."""
    n, names, declared = len(rows[votes[0]]), table.roles.counts, table.declared
    if names:
        counts = np.zeros((n, len(votes)), np.int64)
        for place, (vote, name) in enumerate(zip(votes, names, strict=True)):
            counts[:, place] = whole_counts(rows[vote], table.votes.said(name), "counts")
        if declared is not None and not {*names} <= {*declared}:
            message = f"categories {shown(declared, 10)} lack some columns of counts: {shown(names, 10)}."
            hint = "Name them too: each column counts the votes for the category of its name."
            raise DataError(message, code="categories-lack-columns", parameter="categories", hint=hint)
        categories = check_categories([*names, *(label for label in declared or () if label not in names)])
        return _read_counts(table, counts, categories, codings, rows)
    grid = np.empty((n, len(votes)), object)
    for place, vote in enumerate(votes):
        grid[:, place] = codings[vote].labels(rows[vote])
    return _with_items(table, read_votes(grid, missing=table.missing, **_item_columns(table, codings, rows)), rows)


def _group_long(table: VoteTable) -> Groups | None:
    """Add up the votes on each item, then group items by them."""
    long, total = table.long, sum(table.long.label_counts.values())
    packed = PackedCounts.of(_categories(table, long.label_counts), 0)
    found = _sum_votes(table, long, packed, total)
    if packed is not None and (found is None or found.n_votes != total):
        most = _most_votes(table, long)
        if most >= 1 << packed.bits:
            packed = PackedCounts.of(packed.categories, most.bit_length())
            found = _sum_votes(table, long, packed, 0)
    _check_item_columns(table, long, None if found is None else sum(found.keys["items"]))
    if found is None or found.n_votes != total or _joins_nothing(table, found):
        check_unlisted(table, long)
    if found is None:
        return None
    if found.n_votes != total:
        message = f"{table.votes.engine} counted {found.n_votes:,} votes, but there are {total:,}."
        hint = "If the data do not change while they are read, please report this as a bug."
        raise DataError(message, code="votes-lost", hint=hint)
    read = _read_counts(table, found.counts, found.categories, found.codings, found.keys)
    return Groups(read, found.each, found.keys, table.ask)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Items grouped by the sums of their votes: the query, its keys, and (K, m) counts."""

    each: Query
    codings: dict[str, Coding]
    keys: dict[str, list[Any]]
    categories: Categories
    counts: Integers

    @property
    def n_votes(self) -> int:
        """The number of votes; too few if a count has overflowed its digit."""
        return sum(map(int.__mul__, self.counts.sum(axis=1).tolist(), self.keys["items"]))


def _sum_votes(table: VoteTable, long: LongTable, packed: PackedCounts | None, total: int) -> _Sums | None:
    """Add up the votes on each item; None if a word overflows, which it cannot if ``total`` is 0."""
    if packed is None:
        return None
    own = [] if table.items is not None else table.item_roles
    times = "count" if table.roles.count else None
    words = packed.words({"label": long.codings["label"]}, table.votes.count_type, times)
    sums = (nw.col(name).sum() for name in words)
    by_item = table.votes.group(long.frame.with_columns(**words), ["item", *own], *sums)
    each, codings = (by_item, long.codings) if table.items is None else _join_items(table, by_item, list(words))
    each = each.with_columns(*(nw.col(name).cast(nw.Int64) for name in words))
    try:
        keys = _group_by(table, each, [*table.item_roles, *words])
    except DataError:
        if total < 1 << packed.bits or _most_votes(table, long) < 1 << packed.bits:
            raise
        return None
    counts = packed.counts(keys)
    return None if counts is None else _Sums(each, codings, keys, packed.categories, counts)


def _joins_nothing(table: VoteTable, found: _Sums) -> bool:
    """Tell whether no item with votes has a suggested label, of a table that may lack items."""
    roles = [role for role in table.item_roles if role.startswith("suggested_")]
    if table.roles.unlisted == "error" or not roles:
        return False
    labels = zip(*(found.codings[role].labels(found.keys[role]) for role in roles), strict=True)
    voted = found.counts.sum(axis=1).tolist()
    return all(set(row) <= {None} for n, row in zip(voted, labels, strict=True) if n)


def _most_votes(table: VoteTable, long: LongTable) -> int:
    """Return the largest number of votes on an item."""
    each = table.votes.group(long.frame.with_columns(n=long.votes_in_row()), ["item"], nw.col("n").sum())
    most = int(table.ask(each.select(nw.col("n").max()))["n"][0] or 0)
    if most > MAX_VOTES:
        raise DataError(f"An item has {most:,} votes. The limit is {MAX_VOTES:,}.", code="too-many-votes")
    return most


def _check_item_columns(table: VoteTable, long: LongTable, pairs: int | None) -> None:
    """Refuse an item with several values in an item column. ``pairs`` of item and item columns differ, if known."""
    if table.items is not None or not table.item_roles:
        return
    different = long.frame.select("item", *table.item_roles).unique()
    pairs = table.count_rows(different) if pairs is None else pairs
    if pairs == table.count_rows(long.frame.select("item").unique()):
        return
    [item] = table.ask(table.repeats(different, ["item"]).sort("item").head(1))["item"]
    found = table.ask(different.filter(nw.col("item") == nw.lit(item)))
    for role, name in table.roles.item_columns().items():
        values = set(found[role] if role not in long.codings else long.codings[role].labels(found[role]))
        if len(values) > 1:
            column = table.votes.said(name)
            message = f"Column {column} has several values for item {shown([item])}: {shown(sorted(values, key=str))}."
            hint = "Write the same value in all rows of an item."
            raise DataError(message, code="item-column-varies", parameter=role.rstrip("_0123456789"), hint=hint)


def _join_items(table: VoteTable, by_item: Query, numbers: Sequence[str]) -> tuple[Query, dict[str, Coding]]:
    """Join the votes of each item with its row of the items table."""
    listed, codings = pick_items(table)
    each = listed.join(by_item, on="item", how="left")
    each = each.with_columns(*(nw.col(name).fill_null(0) for name in numbers))
    if table.roles.unlisted == "unlabeled":
        if not table.votes.joins_unlisted:
            message = f"unlisted='unlabeled' is not supported for tables of {table.votes.engine}."
            hint = "Add the items to the items table, without a label."
            raise DataError(message, code="engine-not-supported", parameter="unlisted", hint=hint)
        absent = {role: nw.lit(None).cast(listed.collect_schema()[role]) for role in table.item_roles}
        absent |= {role: nw.lit(-1, nw.Int64) for role, coding in codings.items() if coding.values is not None}
        others = by_item.join(listed.select("item"), on="item", how="anti").with_columns(**absent)
        columns = ["item", *table.item_roles, *numbers]
        each = nw.concat([each.select(*columns), others.select(*columns)])
    return each, codings


def _read_counts(
    table: VoteTable, counts: Integers, categories: Categories, codings: _Codings, rows: _Rows
) -> ItemVotes:
    """Read rows of counts. Suggested labels outside the categories are categories without votes, in long format."""
    own = _item_columns(table, codings, rows)
    given = {label for labels in (own["suggested"] or {}).values() for label in labels if label is not None}
    given = {label for label in given if label not in table.missing}
    if table.roles.counts:
        if table.rules is None:
            try:
                check_declared(given, categories, "suggested", columns=True)
            except DataError as error:
                if error.code != "undeclared-label":
                    raise
                hint = "Add it to $counts, or name it in $missing if it means missing."
                raise DataError(error.message, code=error.code, parameter="suggested", hint=hint) from None
    else:
        categories = (*categories, *sorted(given - set(categories), key=str))
        if table.rules is None:
            union(categories)
    wide = np.zeros((len(counts), len(categories)), np.min_scalar_type(int(counts.max(initial=0))))
    wide[:, : counts.shape[1]] = counts
    return _with_items(table, read_matrix(wide, missing=table.missing, categories=categories, **own), rows)


def _with_items(table: VoteTable, read: ItemVotes, rows: _Rows) -> ItemVotes:
    """Add the declared categories and, if rows are groups, the number of items that each stands for."""
    return replace(read, declared=table.declared, items=np.array(rows["items"], np.int64) if "items" in rows else None)


def _item_columns(table: VoteTable, codings: _Codings, rows: _Rows) -> dict[str, Any]:
    """Return labels by labeler, weights, strata and clusters of fetched rows."""
    roles = table.roles
    labels = {role: codings[role].labels(rows[role]) for role in table.label_roles}
    suggested = {labeler: labels[f"suggested_{place}"] for place, labeler in enumerate(roles.suggested)}
    strata = labels.get("strata") if table.slicing is None else table.slicing.labels(rows)
    items = rows.get("items") or [1] * len(next(iter(rows.values()), []))
    unlisted = "Items that the items table lacks have none: add them, or leave out $unlisted."
    hint = unlisted if roles.unlisted == "unlabeled" else ""
    where = table.item_frame
    weight = None
    if roles.sample_weight is not None:
        weight = _weights(rows["sample_weight"], items, where.said(roles.sample_weight), hint)
    clusters = labels.get("clusters")
    groups = (("strata", "stratum", roles.strata, strata), ("clusters", "cluster", roles.clusters, clusters))
    for role, word, name, values in groups:
        if values is not None and None in values:
            absent = sum(n for label, n in zip(values, items, strict=True) if label is None)
            message = f"Column {where.said(name)} has no {word} for {counted(absent, 'item')}."
            raise DataError(message, code=f"missing-{word}", parameter=role, hint=hint or f"Give every item a {word}.")
    return {"suggested": suggested or None, "sample_weight": weight, "strata": strata, "clusters": clusters}


def _weights(values: Sequence[Any], items: Sequence[int], name: str, hint: str) -> list[float]:
    """Convert weights, also from text. The hint is for missing ones."""
    found = []
    for value, n in zip(values, items, strict=True):
        try:
            odd = isinstance(value, (bool, np.ndarray)) or value is None or "_" in str(value)
            weight = np.nan if odd else float(value)
        except (TypeError, ValueError, OverflowError):
            weight = np.nan
        if not 0 <= weight < np.inf:
            absent = value is None or value == ""
            got = "missing" if absent else shown([value])
            message = f"Column {name} must hold weights of 0 or more: {counted(n, 'item')} or more have {got}."
            raise invalid("sample_weight", message, code="invalid-weight", hint=hint if absent else "")
        found.append(weight)
    return found


def _categories(table: VoteTable, found: Iterable[Label]) -> Categories:
    """Return the categories of votes: as declared, or those that occur."""
    votes = [label for label in found if label not in table.missing]
    if table.declared is not None:
        check_declared(votes, table.declared, "votes")
    if table.rules is not None:  # 3 and "3" may become one
        return tuple(sorted(votes, key=natural_key))
    return union(votes) if table.declared is None else table.declared


def fetch_rows(table: VoteTable) -> ItemVotes:
    """Fetch all rows of a table."""
    if table.roles.label is not None:
        return _fetch_long(table)
    frame, codings, votes = table.wide
    rows = _fetch(table, frame)
    read = _read_wide(table, codings, rows, votes)
    names = rows["item"] if "item" in rows else row_names(table, len(next(iter(rows.values()), [])))
    if "item" in rows and table.roles.item is None:
        names = names_of_kept(table, rows["item"])
    return replace(read, names=names, annotators=table.roles.annotators or None)


def _fetch(table: VoteTable, frame: Query, n: int | None = None) -> dict[str, list[Any]]:
    """Fetch all ``n`` rows, if there is memory for them."""
    if table.votes.checks_memory:
        n = table.count_rows(frame) if n is None else n
        need(n * len(frame.collect_schema()) * _VALUE, counted(n, "row"))
    return table.ask(frame)


def _check_distinct(table: VoteTable, frame: Query, role: str, values: Sequence[Any]) -> None:
    """Refuse names that differ in the engine but not in Python: nanoseconds, decimals that become floats."""
    if kind_in(frame, role) in ("integer", "text", "boolean"):
        return
    if table.count_rows(table.votes.group(frame, [role], nw.len().alias("n"))) != len(set(values)):
        name = table.roles.item if role == "item" else table.roles.annotator
        message = f"Column {name!r} has type {frame.collect_schema()[role]}: some names are equal in Python."
        raise DataError(message, code="names-not-distinct", parameter=role, hint="Write them as text.")


def _fetch_long(table: VoteTable) -> ItemVotes:
    """Fetch votes, and the items table if there is one."""
    long = table.long
    rows = _fetch(table, long.frame, long.n_rows)
    for role in [role for role in ("item", "annotator") if role in rows]:
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
    own = _item_columns(table, codings, listed)

    def by_item(column: Sequence[Any] | None) -> Any:
        return None if column is None else [column[first[name]] if first[name] >= 0 else None for name in names]

    labels = np.empty(len(item), object)
    labels[:] = long.codings["label"].labels(rows["label"])
    times = np.array(rows["count"], np.int64) if "count" in rows else np.ones(len(labels), np.int64)
    valid = np.array([label in long.label_counts for label in labels], np.bool_) & (item >= 0)
    order = np.argsort(item, kind="stable")
    order = order[valid[order]]
    each = np.repeat(order, times[order])
    encoded = encode(labels[each], "votes", table.missing) if each.size else Encoded(np.zeros(0, np.uint8), 0, ())
    length = np.bincount(item[each], minlength=len(names)).astype(np.int64)
    suggested = own["suggested"] and {who: by_item(given) for who, given in own["suggested"].items()}
    weight, strata, clusters = (by_item(own[name]) for name in ("sample_weight", "strata", "clusters"))
    if table.slicing is not None:
        strata = [table.slicing.missing if label is None else label for label in strata]
    design = {"sample_weight": weight, "strata": strata, "clusters": clusters}
    columns = read_columns(suggested, length.shape, table.missing, **design)
    read = ItemVotes(encoded, columns, table.declared, length, names=names)
    voters = [] if table.roles.annotator is None else [rows["annotator"][place] for place in each.tolist()]
    if table.roles.annotator is None or None in voters:
        return read
    annotators = sorted(set(voters), key=name_key)
    place_of = {who: place for place, who in enumerate(annotators)}
    voter = np.fromiter(map(place_of.__getitem__, voters), np.int64, each.size)
    return replace(read, annotators=tuple(annotators), voter=voter)


def row_names(table: VoteTable, n: int) -> Sequence[Any] | None:
    """Return names of the n rows of a table without a column of items; None for their positions."""
    return table.votes.row_names if table.source.row_names is None else table.source.row_names(n)


def names_of_kept(table: VoteTable, places: Sequence[int]) -> Sequence[Any]:
    """Return names of the rows that filters of a file have kept, by their places in the whole file."""
    names = names_of_whole(table)
    return places if names is None else [names[place] for place in places]


def names_of_whole(table: VoteTable) -> Sequence[Any] | None:
    """Return names of all rows of a file, also of those that filters leave out; None for their positions."""
    if table.source.row_names is None:
        return None
    whole = replace(table.votes, tests=(), joined=None)
    column = (table.roles.annotators or table.roles.counts)[0]
    return table.source.row_names(table.count_rows(whole.pick({SHOWN: column})[0]))
