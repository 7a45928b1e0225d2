"""Tables of votes: open a table with the role of each column, pick its columns, and check it once.

Among the checks are double votes of an annotator on an item (``duplicates``), which are refused or removed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Unpack

import narwhals.stable.v2 as nw

from dhkappa.core import Categories, Label
from dhkappa.core.label_rules import LabelRules
from dhkappa.core.labels import SourceNote, name_key, natural_key, whole_names
from dhkappa.core.relabel import duplicate_votes
from dhkappa.errors import DataError, comma_separated, counted, shown
from dhkappa.inputs.backends import Coding, Frame, Query, frame_of, is_empty, kind_in, kind_of, replace_values
from dhkappa.inputs.columns import ColumnRoles, Columns, RoleKeywords, find_roles, is_recognized, suggested_columns
from dhkappa.inputs.count_columns import find_count_columns, whole_counts
from dhkappa.inputs.slicing import Slicing
from dhkappa.paths import FileStates

EXAMPLES = 3  # items that an error names
_KINDS = {"text": "text", "integer": "integers", "float": "floats", "boolean": "booleans", "": "other values"}


@dataclass(frozen=True, slots=True, repr=False)  # the repr of a table may run a query
class Source:
    """A table of votes that was read, and what is known about its columns."""

    votes: Any  # a table of some engine
    items: Any = None  # the table of items, if there is one
    roles: RoleKeywords = field(default_factory=lambda: RoleKeywords())  # those that are known
    labelers: tuple[str, ...] = ()  # columns with suggested labels, if they are known
    tool: str | None = None  # the annotation tool, if the table is an export
    skipped: Mapping[str, int] = field(default_factory=dict)  # what an export holds besides votes, and how many
    unlabeled: str = ""  # why there are no suggested labels, if an export should have them
    cautions: tuple[str, ...] = ()  # limitations of the export, as sentences
    ordered: bool = False  # rows are in the order of a file
    files: FileStates = field(default_factory=FileStates)  # that every query reads, as they were when opened
    shown: Mapping[str, Sequence[str | None]] = field(default_factory=dict)  # columns of the items of an export to show
    given_name: str = ""  # of a table that is neither a file nor an export
    row_names: Callable[[int], Sequence[Any]] | None = None  # names of that many rows, by file and line

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about an export: what it holds besides votes, and its limitations."""
        if not self.skipped:
            return self.cautions
        skipped = ", ".join(f"{what} ({number:,})" for what, number in self.skipped.items())
        return (f"The {self.tool} export also holds what is not a vote: {skipped}.", *self.cautions)

    @property
    def name(self) -> str:
        """What messages call the table; empty if it has no name."""
        files = list(self.files.states)
        if not files:
            return f"the {self.tool} export" if self.tool else self.given_name
        more = f" and {counted(len(files) - 1, 'more file')}" if len(files) > 1 else ""
        return f"{os.path.basename(files[0])}{more}"


_UNITS = ("ns", "us", "ms", "s")


@dataclass(frozen=True)
class VoteTable:
    """A table of votes, the items table if there is one, the column roles, and how to read labels."""

    votes: Frame
    items: Frame | None
    roles: ColumnRoles
    source: Source
    files: FileStates  # of both tables
    declared: Categories | None = None
    missing: Container[Label] = ()
    rules: LabelRules | None = None  # that are applied to the labels after they were counted
    shown: tuple[str, ...] = ()  # columns to show next to items
    slicing: Slicing | None = None

    @cached_property
    def item_roles(self) -> list[str]:
        """Roles of the columns with one value per item."""
        return list(self.roles.item_columns())

    @cached_property
    def label_roles(self) -> list[str]:
        """Those of them that hold labels."""
        return [role for role in self.item_roles if not role.startswith(("sample_weight", "slices_"))]

    def count_rows(self, frame: Query) -> int:
        """Count the rows of a table."""
        return int(self.ask(frame.select(n=nw.len()))["n"][0])

    def repeats(self, frame: Query, keys: Sequence[str]) -> Query:
        """Return the values of some columns that several rows have, and ``n``, how many."""
        repeated = self.votes.repeated(frame, keys)
        return self.votes.group(repeated, keys, nw.len().alias("n")).filter(nw.col("n") > 1)

    @cached_property
    def item_type(self) -> Any:
        """Type to which item names are cast, because those of the two tables differ; None if they do not."""
        if self.items is None or self.roles.item is None:
            return None
        names = [frame.pick({"item": self.roles.item})[0] for frame in (self.votes, self.items)]
        types = [frame.collect_schema()["item"] for frame in names]
        kinds = [type(one).__name__.lower() if one.is_temporal() else kind_of(one) for one in types]
        times = [one for one in types if isinstance(one, nw.Datetime)]
        if len(times) == 2:
            aware = [one.time_zone is not None for one in times]
            if aware[0] != aware[1]:
                raise mixed_zones(self, aware_votes=aware[0])
            if times[0] == times[1]:
                return None
            unit: Any = min((one.time_unit for one in times), key=_UNITS.index)
            return nw.Datetime(unit, "UTC" if aware[0] else None)  # instants are compared, whatever the zones
        if kinds[0] == kinds[1]:
            same = types[0] == types[1] or kinds[0] != "integer" or self.votes.joins_integer_widths
            return None if same else nw.Int64()
        if {*kinds} == {"text", "integer"}:
            return nw.String()
        if "" in kinds and {*kinds} <= {"", "integer", "float", "boolean"}:
            return None
        first, second = (f"{_KINDS.get(kind, f'{kind}s')} in " for kind in kinds)
        where = f"{first}{self.votes.name} and {second}{self.items.name}"
        if {*kinds} == {"integer", "float"}:
            integers = names[kinds.index("integer")]
            ends = self.ask(integers.select(least=nw.col("item").min(), most=nw.col("item").max()))
            if all(end is None or abs(int(end)) <= 2**53 for [end] in ends.values()):
                return nw.Float64()
            where = "integers beyond 2^53 in one table and floats in the other"  # which cannot represent them
        message = f"Column {self.roles.item!r} holds {where}."
        raise DataError(message, code="item-types-differ", parameter="item", hint="Use the same type in both.")

    @property
    def item_frame(self) -> Frame:
        """The table with the columns of items: the items table, or else that of the votes."""
        return self.votes if self.items is None else self.items

    def sliced(self, frame: Query) -> Query:
        """Return rows with the columns of slices as they are grouped, if there are any."""
        return frame if self.slicing is None else self.slicing.prepared(frame)

    @cached_property
    def wide(self) -> tuple[Query, dict[str, Coding], list[str]]:
        """Columns of a table in wide format, in which each item has one row; their codings; the roles of votes."""
        roles = self.roles
        votes = {f"vote_{place}": name for place, name in enumerate(roles.annotators or roles.counts)}
        columns = ({} if roles.item is None else {"item": roles.item}) | votes | roles.item_columns()
        placed = roles.item is None and self.votes.is_filtered and self.votes.has_row_order
        labels = [*(votes if roles.annotators else ()), *self.label_roles]
        frame, codings = self.votes.pick(columns, labels, row_number=placed)
        frame = self.sliced(frame)
        if placed:  # items are named by their places before rows were left out
            frame = frame.with_columns(item=nw.col("order").cast(nw.Int64()) - self.votes.first_row).drop("order")
        if roles.item is not None:
            twice = self.ask(self.repeats(frame, ["item"]).head(100))["item"]
            if few := sorted((item for item in twice if item is not None), key=str)[:EXAMPLES]:
                column = self.votes.said(roles.item)
                message = f"In wide format each item has one row, but column {column} repeats {shown(few)}."
                hint = "Pass $item and $label if a row is a vote."
                raise DataError(message, code="duplicate-items", parameter="item", hint=hint)
        return frame, codings, list(votes)

    @cached_property
    def annotator_names(self) -> dict[Any, Any]:
        """The names of annotators by their spelling in the data, if there are label rules; empty otherwise."""
        rules, column = self.rules, self.roles.annotator
        if rules is None or column is None:
            return {} if rules is None else rules.names(dict.fromkeys(self.roles.annotators, 1))
        frame = self.votes.pick({"annotator": column})[0] if rules.normalize else None
        if frame is None or kind_in(frame, "annotator") != "text":
            return {}
        found = self.ask(self.votes.group(frame, ["annotator"], nw.len().alias("n")))
        return rules.names({name: int(n) for name, n in zip(found["annotator"], found["n"], strict=True) if name})

    @cached_property
    def long(self) -> LongTable:
        """The table in long format: items, annotators and counts are checked, and votes are counted by label."""
        if self.items is not None:
            _check_items(self)
        return _check_duplicates(self, _count_labels(self))

    @property
    def removed(self) -> RemovedVotes | None:
        """The votes that ``duplicates`` removed; None if there are none."""
        return None if self.roles.label is None else self.long.removed

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about where the votes came from, and those that were removed."""
        return (*self.source.notes, *([self.removed.note] if self.removed else []))

    def ask(self, query: Query) -> dict[str, list[Any]]:
        """Run a query; raise an error if a file has changed since it was opened.

        Names that are whole numbers are integers, as files hold them: 12.0 is 12.
        """
        with self.files.unchanged():
            found = self.votes.fetch(query)
        return found | {role: whole_names(found[role]) for role in ("item", "annotator") if role in found}


def mixed_zones(table: VoteTable, aware_votes: bool) -> DataError:
    """Return the error for ids that are times, of which those of one table have a time zone."""
    assert table.items is not None
    aware, naive = (table.votes, table.items) if aware_votes else (table.items, table.votes)
    message = f"Column {table.roles.item!r} holds times with a time zone in {aware.name} and without in {naive.name}."
    hint = "Give both a time zone, or write both as text."
    return DataError(message, code="mixed-time-zones", parameter="item", hint=hint)


def open_votes(data: Any, keywords: RoleKeywords, *, labeled: bool, **given: Unpack[Columns]) -> VoteTable | None:
    """Return the table of votes with its column roles, all as passed to ``Dataset``; None if the data are arrays.

    ``labeled`` says whether to read the labelers that are known if ``suggested`` is None.
    """
    if not isinstance(data, Source):
        frame = frame_of(data)
        if frame is None or not _names_columns(frame, keywords, given):
            if keywords:
                kind = "there are no data" if data is None else f"the data are of type {type(data).__name__}"
                message = f"Column roles ({', '.join(keywords)}) need a table, but {kind}."
                raise DataError(message, code="not-a-table", parameter=next(iter(keywords)))
            return None
    source = data if isinstance(data, Source) else Source(data)
    said: RoleKeywords = {**source.roles, **keywords}
    votes = _frame(source.votes, source.name or "the data")
    if source.ordered and said.get("duplicates", "error") != "error":
        votes = votes.numbered()
    said["items"] = said.get("items") if said.get("items") is not None else source.items
    listed = said["items"] if isinstance(said["items"], Source) else Source(said["items"])
    items = None if listed.votes is None else _frame(listed.votes, listed.name or "the items table")
    tables = [(table.name, table.names) for table in (votes, items) if table is not None]
    if given["suggested"] is None and labeled:
        given["suggested"] = [*source.labelers] or suggested_columns(tables[-1][1]) or None
    try:
        roles = find_roles(tables, said, given)
    except DataError as error:
        if items is not None and _are_swapped(votes, items, said.get("item") or "item"):
            raise _swapped(votes, items, source.files.states, listed.files.states) from error
        if error.code == "format-unknown" and items is None:
            raise _with_counts(error, votes, said.get("item") or "item") from None
        raise
    used = {*roles.annotators, *roles.counts, *roles.item_columns().values()}
    if roles.item is None and "item" not in keywords and "item" in {*votes.names} - used:
        roles = replace(roles, item="item")
    if items is not None and items.engine != votes.engine:
        engines = f"{votes.name} is of {votes.engine}, {items.name} of {items.engine}"
        message = f"Both tables must be of one engine, but {engines}."
        hint = "Pass two paths, or two tables of one engine. Files are tables of DuckDB."
        raise DataError(message, code="different-engines", parameter="items", hint=hint)
    return VoteTable(votes, items, roles, source, source.files + listed.files)


def _with_counts(error: DataError, votes: Frame, item: str) -> DataError:
    """Return the error for a table of unknown format; if columns hold numbers of votes, its hint names them."""
    suggested = suggested_columns(votes.names)
    found = find_count_columns(votes, [name for name in votes.names if name not in {item, *suggested}], suggested)
    if not found:
        return error
    hint = "These columns look like numbers of votes, one column per category: pass them with $counts=."
    data = {"options": {"counts": comma_separated(found)}, "choices": error.choices}
    return DataError(error.message, code=error.code, parameter="counts", hint=hint, **data)


def _are_swapped(votes: Frame, items: Frame, item: str) -> bool:
    """Tell whether items are repeated in the items table, but not in the table of votes."""
    if item not in votes.names or item not in items.names:
        return False
    with suppress(DataError):  # another error is raised
        rows = []
        for frame in (votes, items):
            names, _ = frame.pick({"item": item})
            rows += [int(frame.fetch(one.select(n=nw.len()))["n"][0]) for one in (names, names.unique())]
        return rows[0] == rows[1] and rows[2] > rows[3]
    return False


def _swapped(votes: Frame, items: Frame, *files: Collection[str]) -> DataError:
    message = f"The tables are swapped: {votes.name} has one row per item, and {items.name} several."
    near = [os.path.relpath(path) for paths in files for path in paths]
    options = {"path": near[1], "items": near[0]} if [*map(len, files)] == [1, 1] else {}
    return DataError(message, code="tables-swapped", parameter="items", hint="Swap them.", options=options)


def _frame(data: Any, name: str) -> Frame:
    """Return a table with its name in messages; refuse columns with the same name."""
    frame = frame_of(data)
    if frame is None:
        message = f"items must be a table with one row per item, or a path to one, got {shown([data])}."
        raise DataError(message, code="not-a-table", parameter="items")
    if twice := [name for name, number in Counter(frame.names).items() if number > 1]:
        message = f"Several columns of {name} have the same name: {shown(twice)}."
        raise DataError(message, code="ambiguous-columns", hint="Rename them.")
    return replace(frame, name=name)


def _names_columns(frame: Frame, keywords: RoleKeywords, given: Columns) -> bool:
    """Tell whether the user means columns by name, rather than a grid of votes with arrays of labels and weights.

    A list of strings is one of labels if it is as long as a dataframe in memory, and one of column names otherwise.
    """
    recognized, suggested, counts = is_recognized(frame.columns), given["suggested"], given["counts"]
    single = any(isinstance(value, str) for value in given.values())
    if keywords or single or not frame.in_memory or _are_strings(counts):
        return True
    if isinstance(suggested, Mapping):
        return _are_strings(list(suggested.values()))
    if not _are_strings(suggested):
        return suggested is None and counts is None and recognized
    columns = len({*suggested}) == len(suggested) and {*suggested} <= {*frame.names}
    labels = len(suggested) == len(frame.native)
    if columns and labels and not recognized:
        message = f"suggested may be names of columns or one label per row: {shown(suggested)}."
        hint = "Pass a mapping from labelers to columns, or an array of labels."
        raise DataError(message, code="ambiguous-suggested", parameter="suggested", hint=hint)
    return columns or not labels


def _are_strings(values: Any) -> bool:
    return isinstance(values, (list, tuple)) and bool(values) and all(isinstance(name, str) for name in values)


@dataclass(frozen=True, slots=True)
class RemovedVotes:
    """Votes that were removed, because an annotator has several votes on one item."""

    n: int
    n_before: int  # number of votes before
    kept: str  # "first" or "last"
    examples: tuple[tuple[Any, Any], ...]  # the first pairs of item and annotator

    @property
    def note(self) -> SourceNote:
        """A sentence about them."""
        pairs = _said_pairs(self.examples)
        message = f"{self.n:,} of {counted(self.n_before, 'vote')} {'was' if self.n == 1 else 'were'} removed: "
        message += f"an annotator voted several times on one item ({pairs}), and the {self.kept} vote was kept."
        return SourceNote("duplicates-removed", message)


def _said_pairs(pairs: Iterable[tuple[Any, Any]]) -> str:
    """Name some pairs of item and annotator."""
    return ", ".join(f"{shown([who])} on item {shown([item])}" for item, who in pairs)


@dataclass(frozen=True, slots=True)
class LongTable:
    """A checked table in long format, with columns that are named by role."""

    frame: Query
    codings: dict[str, Coding]
    label_counts: dict[Label, int]  # number of votes for each label
    n_rows: int  # some may have no valid vote
    removed: RemovedVotes | None = None  # by duplicates="first" or "last"

    def votes_in_row(self) -> nw.Expr:
        """Return the number of votes that a row stands for; 0 if its label is missing."""
        if not self.label_counts:
            return nw.lit(0, nw.Int64)
        known = nw.col("label").is_in([self.codings["label"].value(label) for label in self.label_counts])
        one = nw.col("count") if "count" in self.frame.collect_schema().names() else nw.lit(1, nw.Int64)
        return nw.when(known).then(one).otherwise(nw.lit(0, nw.Int64))


def _count_labels(table: VoteTable) -> LongTable:
    """Pick the columns, and count rows and votes for each label."""
    roles = table.roles
    own = {"item": roles.item, "label": roles.label, "annotator": roles.annotator, "count": roles.count}
    columns = {role: name for role, name in own.items() if name is not None}
    columns |= {} if table.items is not None else roles.item_columns()
    labels = [role for role in ("label", *table.label_roles) if role in columns]
    choose = roles.annotator is not None and roles.duplicates != "error"
    if choose and not table.votes.has_row_order:
        engine = table.votes.engine
        message = f"duplicates={roles.duplicates!r} needs an order of rows, which a table of {engine} lacks."
        hint = "Keep one vote per annotator and item with your own query."
        raise DataError(message, code="no-row-order", parameter="duplicates", hint=hint)
    frame, codings = table.votes.pick(columns, labels, row_number=choose)
    frame = cast_items(table, table.sliced(frame))
    if roles.count is not None:
        whole_counts(table.ask(frame.select("count").unique())["count"], table.votes.said(roles.count), "count")
        frame = frame.with_columns(count=nw.col("count").cast(nw.Int64))
    if table.rules is not None:
        names = {old: new or "" for old, new in table.annotator_names.items() if new != old}  # "" is missing
        frame = replace_values(frame, "annotator", names)
        suggested = {role: codings[role] for role in labels[1:] if role not in ("strata", "clusters")}
        frame = _unify_labels(table, table.rules, frame, suggested)
    texts = [role for role in labels[1:] if codings[role].kind == "text"]
    texts += ["annotator"] if roles.annotator is not None and kind_in(frame, "annotator") == "text" else []
    if texts:  # empty text and null are one
        frame = frame.with_columns(*(nw.when(nw.col(role) != "").then(nw.col(role)).alias(role) for role in texts))
    unnamed = is_empty("item", kind_in(frame, "item") == "text")
    flagged = frame.with_columns(unnamed=nw.when(unnamed).then(nw.lit(1)).otherwise(nw.lit(0)))
    totals = [nw.len().alias("rows"), nw.col("unnamed").sum()]
    totals += [nw.col("count").sum().alias("votes")] if roles.count is not None else []
    found = table.ask(table.votes.group(flagged, ["label"], *totals))
    if any(found["unnamed"]):
        rows = counted(sum(map(int, found["unnamed"])), "row")
        message = f"Column {table.votes.said(roles.item)} has no item in {rows}."
        hint = "Name the item of each vote, or remove these rows."
        raise DataError(message, code="missing-item", parameter="item", hint=hint)
    counts = Counter[Label]()
    votes = map(int, found.get("votes", found["rows"]))
    for label, n in zip(codings["label"].labels(found["label"]), votes, strict=True):
        if label is not None and label not in table.missing and n:
            counts[label] += n
    return LongTable(frame, codings, counts, sum(map(int, found["rows"])))


def _unify_labels(table: VoteTable, rules: LabelRules, frame: Query, codings: Mapping[str, Coding]) -> Query:
    """Write labels that are one by the rules alike, in columns in which all rows of an item must be equal.

    The labels of votes are replaced after they were counted, see ``dhkappa.core.relabel``.
    """
    for role, coding in codings.items():
        first: dict[Hashable, Any] = {None: "" if coding.values is None else -1}
        new = {}
        labels = {label for label in coding.labels(table.ask(frame.select(role).unique())[role]) if label is not None}
        for label in sorted(labels, key=lambda label: natural_key(rules.cleaned(label) or "")):
            value = coding.value(label)
            other = first.setdefault(rules.final_key(label), value)
            if other != value:
                new[value] = other
        frame = replace_values(frame, role, new)
    return frame


def _check_duplicates(table: VoteTable, long: LongTable) -> LongTable:
    """Keep the first or last vote of an annotator on an item, or refuse several."""
    roles, frame, pair = table.roles, long.frame, ["item", "annotator"]
    if roles.annotator is None:
        return long
    signed = ~nw.col("annotator").is_null() & (long.votes_in_row() > 0)

    def first_pairs() -> tuple[tuple[Any, Any], ...]:
        few = table.ask(table.repeats(frame.filter(signed), pair).sort(*pair).head(EXAMPLES))
        return tuple(zip(few["item"], few["annotator"], strict=True))

    if roles.duplicates != "error":
        keep: Any = roles.duplicates
        kept = frame.filter(signed).unique(pair, keep=keep, order_by=["order"])
        chosen = nw.concat([kept, frame.filter(~signed)])
        found = table.ask(table.votes.group(chosen, ["label"], nw.len().alias("n")))
        by_label = zip(long.codings["label"].labels(found["label"]), map(int, found["n"]), strict=True)
        counts = {label: n for label, n in by_label if label is not None and label in long.label_counts}
        before = sum(long.label_counts.values())
        n = before - sum(counts.values())
        removed = RemovedVotes(n, before, roles.duplicates, first_pairs()) if n else None
        return replace(long, frame=chosen, label_counts=counts, n_rows=long.n_rows - n, removed=removed)
    if few := first_pairs():
        raise duplicate_votes(f"An annotator has several votes on one item of {table.votes.name}: {_said_pairs(few)}.")
    return long


def pick_items(table: VoteTable) -> tuple[Query, dict[str, Coding]]:
    """Pick the columns of the items table."""
    assert table.items is not None
    assert table.roles.item is not None
    frame, codings = table.items.pick({"item": table.roles.item} | table.roles.item_columns(), table.label_roles)
    return cast_items(table, table.sliced(frame)), codings


def cast_items(table: VoteTable, frame: Query) -> Query:
    """Cast item names so that both tables have the same type."""
    if table.item_type is None or frame.collect_schema()["item"] == table.item_type:
        return frame
    return frame.with_columns(item=nw.col("item").cast(table.item_type))


def _check_items(table: VoteTable) -> None:
    """Refuse an items table with an item twice, or without a name."""
    assert table.items is not None
    listed, _ = pick_items(table)
    wrong = (nw.col("n") > 1) | is_empty("item", kind_in(listed, "item") == "text")
    few = table.ask(table.votes.group(listed, ["item"], nw.len().alias("n")).filter(wrong).head(100))
    if {None, ""} & {*few["item"]}:
        message = f"Column {table.items.said(table.roles.item)} has rows without a name."
        raise DataError(message, code="missing-item", parameter="items", hint="Name every item.")
    if few["n"]:
        if _are_swapped(table.votes, table.items, table.roles.item or ""):
            raise _swapped(table.votes, table.items)
        column, twice = table.items.said(table.roles.item), sorted(few["item"], key=name_key)[:EXAMPLES]
        message = f"Column {column} repeats {shown(twice)}."
        raise DataError(message, code="duplicate-items", parameter="items", hint="Keep one row per item.")
