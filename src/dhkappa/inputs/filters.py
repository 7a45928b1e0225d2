"""Filters of a table: leave out rows, items and annotators in the engine, and count what was left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from dhkappa.core.grouping import Encoded
from dhkappa.core.items import ItemVotes
from dhkappa.core.labels import SourceNote, whole_names
from dhkappa.errors import DataError, counted, did_you_mean, nearest, shown
from dhkappa.inputs.backends import Coding, Frame, Query, as_number, is_empty, kind_in
from dhkappa.inputs.columns import list_columns
from dhkappa.inputs.conditions import ColumnTest, Condition, number_in, same_name
from dhkappa.inputs.label_values import labels_in
from dhkappa.inputs.tables import EXAMPLES, VoteTable, pick_items

_VALUE = "value"
_LOCAL_DATE = re.compile(r"\s*\d{1,4}[./]\d{1,2}[./]\d{1,4}\b")
_DECIMAL_COMMA = re.compile(r"\s*-?\d+,\d+\s*$")


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Annotators whose votes are left out."""

    annotators: tuple[Any, ...]

    @property
    def text(self) -> str:
        """What is left out, for a message."""
        return (
            f"annotators {shown(self.annotators, 10)}" if self.annotators[1:] else f"annotator {shown(self.annotators)}"
        )


Step = Condition | Exclusion


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a filter has left out.

    Attributes
    ----------
    step : the condition, or the annotators that were left out
    n_items, n_votes : number of items and votes that were left out
    n_missing : number of rows that were left out because the column has no value
    absent : values of a condition with ``=`` or ``!=`` that no row has
    """

    step: Step
    n_items: int
    n_votes: int
    n_missing: int = 0
    absent: tuple[Any, ...] = ()

    @property
    def note(self) -> SourceNote:
        """A sentence about it."""
        number = f"{counted(self.n_items, 'item')} and {counted(self.n_votes, 'vote')}"
        one = (self.n_items, self.n_votes) in ((1, 0), (0, 1))
        named = "Without " if isinstance(self.step, Exclusion) else "Filter "
        message = f"{named}{self.step.text}: {number} {'was' if one else 'were'} left out"
        if self.n_missing:
            rows = counted(self.n_missing, "row")
            message += f", {rows} of the table because column {self.step.column!r} has no value"  # type: ignore[union-attr]
        if self.absent:
            message += f". No row has {shown(self.absent)}"
        return SourceNote("filtered", f"{message}.")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        annotators = list(map(str, self.step.annotators)) if isinstance(self.step, Exclusion) else None
        where = None if isinstance(self.step, Exclusion) else self.step.text
        numbers = {"n_items": self.n_items, "n_votes": self.n_votes, "n_missing": self.n_missing}
        return {"where": where, "annotators": annotators, **numbers, "absent": list(map(str, self.absent))}


@dataclass(frozen=True, slots=True)
class _Size:
    items: int
    votes: int


@dataclass(frozen=True, slots=True)
class FilteredTable:
    """A table of votes after each filter."""

    steps: tuple[Step, ...]
    tables: tuple[VoteTable, ...]  # before the first, and after each

    @property
    def table(self) -> VoteTable:
        """The table after all filters."""
        return self.tables[-1]

    def left_out(self) -> tuple[LeftOut, ...]:
        """Count what each filter has left out; refuse texts that cannot be compared, and a filter that leaves none."""
        found: list[LeftOut] = []
        before = _size_of(self.tables[0])
        for step, table, rest in zip(self.steps, self.tables, self.tables[1:], strict=False):
            missing = 0 if isinstance(step, Exclusion) else sum(_check_values(table, step))
            after = _size_of(rest)
            if (before.items and not after.items) or (before.votes and not after.votes):
                raise _nothing_left(table, step, earlier=bool(found))
            absent = () if isinstance(step, Exclusion) else _absent_values(table, step)
            found.append(LeftOut(step, before.items - after.items, before.votes - after.votes, missing, absent))
            before = after
        return tuple(found)


def filter_table(table: VoteTable, steps: Sequence[Step]) -> FilteredTable:
    """Leave out rows, items and annotators, in this order."""
    tables = [table]
    applied: list[Condition] = []
    for step in steps:
        if isinstance(step, Exclusion):
            tables.append(_without(tables[-1], step, table))
        else:
            tables.append(_where(tables[-1], step, applied))
            applied.append(step)
    return FilteredTable(tuple(steps), tuple(tables))


def _places(table: VoteTable, column: str) -> tuple[str, list[Frame]]:
    """Return the column that a condition names, and the tables to which the condition is applied."""
    votes, items = table.votes, table.items
    frames = [votes] if items is None else [items, votes]
    if table.roles.item is not None and column == table.roles.item:
        return column, frames
    holding = [frame for frame in frames if column in frame.names]
    if not holding:
        prefix, _, name = column.partition(".")
        holding = [frame for frame, own in ((votes, "votes"), (items, "items")) if frame is not None and own == prefix]
        holding = [frame for frame in holding if name in frame.names]
        column = name if holding else column
    if not holding:
        names = list(dict.fromkeys(name for frame in frames for name in frame.names))
        where = " and ".join(frame.name for frame in reversed(frames))
        near = nearest(column, names)
        message = f"Column {shown([column])} not found in {where}. {list_columns(names)}"
        hint = "" if near is None else f"Did you mean {near!r}?"
        raise DataError(message, code="column-not-found", parameter="where", hint=hint)
    if len(holding) == 2 and not _equal_in_both(table, column):
        message = f"Column {column!r} is in both tables, and the values of an item differ."
        hint = f"Choose a table: write 'votes.{column}' or 'items.{column}'."
        raise DataError(message, code="ambiguous-columns", parameter="where", hint=hint)
    return column, holding[:1]


def _is_of_items(table: VoteTable, condition: Condition) -> bool:
    """Tell whether a condition is about a column of the items table."""
    _, frames = _places(table, condition.column)
    return len(frames) == 1 and frames[0] is table.items


def _equal_in_both(table: VoteTable, column: str) -> bool:
    """Tell whether all votes on an item have the value of the item in a column."""
    assert table.items is not None
    assert table.roles.item is not None
    pairs: list[Query] = []
    for frame in (table.votes, table.items):
        picked, _ = frame.pick({"item": table.roles.item, _VALUE: column})
        if table.item_type is not None:
            picked = picked.with_columns(nw.col("item").cast(table.item_type))
        pairs.append(picked)
    if pairs[0].collect_schema()[_VALUE] != pairs[1].collect_schema()[_VALUE]:
        return False
    text = kind_in(pairs[0], _VALUE) == "text"
    for place, pair in enumerate(pairs):
        flagged = pair.with_columns(absent=as_number(is_empty(_VALUE, text)))
        pairs[place] = flagged.unique() if place == 0 else flagged.rename({_VALUE: "other", "absent": "lacks"})
    joined = pairs[0].join(pairs[1], on="item", how="inner")
    same = as_number(nw.col(_VALUE) == nw.col("other"))
    neither = nw.col("absent") * nw.col("lacks")
    return table.count_rows(joined.filter(same + neither == 0)) == 0


def _compared(frame: Frame, condition: Condition, column: str) -> tuple[ColumnTest, Query]:
    """Return how a condition is compared, and the column."""
    picked, _ = frame.comparable(column).pick({_VALUE: column})
    named = replace(condition, column=column)
    return replace(named.compared(picked.collect_schema()[_VALUE], frame.said(column)), condition=condition), picked


def _where(table: VoteTable, condition: Condition, earlier: Sequence[Condition]) -> VoteTable:
    """Leave out rows by a condition; rows of items with all their votes. ``earlier`` are those applied before."""
    column, frames = _places(table, condition.column)
    if not frames[1:]:
        _check_not_labels(table, column, frames[0])
    filtered = _numbered(table)
    for frame in frames:
        compared, _ = _compared(frame, condition, column)
        if frame is table.votes:
            filtered = replace(filtered, votes=filtered.votes.keep_rows(column, compared.kept))
            continue
        items = frame.keep_rows(column, compared.kept)
        if len(frames) == 1:
            only_listed = table.roles.unlisted == "unlabeled" and any(
                not one.keeps_missing and _is_of_items(table, one) for one in (*earlier, condition)
            )
            others = items if only_listed else frame.rejected_rows(column, compared.kept)
            filtered = replace(filtered, votes=_votes_on(table, others, only_listed))
        filtered = replace(filtered, items=items)
    return filtered


def _check_not_labels(table: VoteTable, column: str, frame: Frame) -> None:
    """Refuse a filter by what was suggested or voted: kappa of the rows that are left says nothing about all."""
    if column in table.roles.suggested.values():
        message = f"Column {frame.said(column)} is a suggested label: kappa of items with one label is near 0."
        hint = "Filter by another column of the items. Results by category are in every audit."
        raise DataError(message, code="filter-by-labels", parameter="where", hint=hint)
    if frame is table.votes and column in table.roles.voting:
        message = f"Column {frame.said(column)} holds votes: a filter by what was voted changes every result."
        hint = "Filter by another column of the items, or leave out annotators with $exclude_annotator."
        raise DataError(message, code="filter-by-votes", parameter="where", hint=hint)


def _numbered(table: VoteTable) -> VoteTable:
    """Add row numbers to a file whose items have no names, so that they are named by their place in it."""
    nameless = table.roles.item is None and table.source.ordered and not table.votes.has_row_order
    return replace(table, votes=table.votes.numbered() if nameless else table.votes)


def _votes_on(table: VoteTable, items: Frame, only: bool) -> Frame:
    """Return the votes on some items ``only``, or those on all others; votes on unlisted items have no value."""
    item, item_type = table.roles.item, table.item_type
    assert item is not None

    def join(query: Query, role: str) -> Query:
        names = items.pick({"item": item})[0].rename({"item": role}).filter(~nw.col(role).is_null())
        if item_type is not None:
            query, names = (one.with_columns(nw.col(role).cast(item_type)) for one in (query, names))
        return query.join(names, on=role, how="semi" if only else "anti")

    return table.votes.join_rows(item, join)


def _without(table: VoteTable, step: Exclusion, whole: VoteTable) -> VoteTable:
    """Leave out annotators; ``whole`` is the table before filters, which may have left out all votes of one."""
    roles = table.roles
    if roles.annotator is None and not roles.annotators:
        raise unknown_annotators()
    if roles.annotators:
        gone = _chosen(step, roles.annotators, table.annotator_names)
        left = tuple(name for name in roles.annotators if name not in gone)
        if not left:
            raise _nobody_left(step)
        votes = replace(table.votes, hidden=table.votes.hidden | gone)
        return replace(table, votes=votes, roles=replace(roles, annotators=left))
    assert roles.annotator is not None
    query = whole.votes.pick({"annotator": roles.annotator})[0].select("annotator").unique()
    with table.files.unchanged():
        stored = [name for name in table.votes.fetch(query)["annotator"] if name is not None and name != ""]
    known = dict(zip(whole_names(stored), stored, strict=True))
    names = sorted((known[name] for name in _chosen(step, known, table.annotator_names)), key=str)

    def kept(role: str) -> nw.Expr:
        named = as_number(nw.col(role).is_in(names))
        return nw.when(nw.col(role).is_null()).then(nw.lit(0)).otherwise(named) == 0

    return replace(table, votes=table.votes.keep_rows(roles.annotator, kept))


def _chosen(step: Exclusion, known: Iterable[Any], names: Any = None) -> frozenset[Any]:
    """Return the annotators that were named, in all spellings that are one annotator; refuse names that nobody has."""
    listed = list(known)
    renamed = {name: (names or {}).get(name, name) for name in listed}
    found = set()
    for given in step.annotators:
        own = {new for name, new in renamed.items() if same_name(given, name) or same_name(given, new)}
        if not own:
            texts = sorted(map(str, {*renamed.values()}))
            message = f"No annotator is called {shown([given])}. Annotators: {shown(texts, 10)}."
            hint = did_you_mean(str(given), texts).strip()
            raise DataError(message, code="annotator-not-found", parameter="exclude_annotator", hint=hint)
        found |= own
    return frozenset(name for name in listed if renamed[name] in found)


def unknown_annotators() -> DataError:
    """Return the error for data without annotators."""
    message = "The annotators are unknown, so none can be left out."
    hint = "Pass one column per annotator, the column with the annotator of each vote, or an array of votes."
    return DataError(message, code="annotators-unknown", parameter="exclude_annotator", hint=hint)


def _nobody_left(step: Exclusion) -> DataError:
    message = f"Without {step.text} no annotator is left."
    return DataError(message, code="nothing-left", parameter="exclude_annotator", hint="Leave out fewer.")


def exclude_columns(read: ItemVotes, steps: Iterable[Step], names: Any) -> tuple[ItemVotes, tuple[LeftOut, ...]]:
    """Leave out columns of a grid of votes; ``names`` are the new names of annotators by the old ones."""
    found = []
    for step in steps:
        assert isinstance(step, Exclusion)
        if read.annotators is None or read.matrix is not None or read.votes.values.ndim != 2:
            raise unknown_annotators()
        gone = _chosen(step, read.annotators, names)
        left = [place for place, name in enumerate(read.annotators) if name not in gone]
        if not left:
            raise _nobody_left(step)
        held = ~read.votes.missing()[read.votes.digits()]
        n = int(np.count_nonzero(held)) - int(np.count_nonzero(held[:, left]))
        votes = Encoded(read.votes.values[:, left], read.votes.low, read.votes.labels)
        read = replace(read, votes=votes, annotators=tuple(read.annotators[place] for place in left))
        found.append(LeftOut(step, 0, n))
    return read, tuple(found)


def _check_values(table: VoteTable, condition: Condition) -> list[int]:
    """Return the number of rows that are left out because they have no value, by table; refuse unreadable values."""
    column, frames = _places(table, condition.column)
    found = []
    for frame in frames:
        compared, picked = _compared(frame, condition, column)
        wrong = compared.unreadable(_VALUE)
        if wrong is not None and (
            texts := table.ask(picked.filter(wrong).unique().sort(_VALUE).head(EXAMPLES))[_VALUE]
        ):
            kind = "a number" if compared.readable is None else compared.readable.kind
            message = f"Column {frame.said(column)} holds text that is not {kind}: {shown(texts)}."
            raise DataError(message, code="not-comparable", parameter="where", hint=_readable_hint(condition, texts))
        missing = as_number(compared.missing(_VALUE))
        n = 0 if condition.keeps_missing else table.ask(picked.select(n=missing.sum()))["n"][0]
        found.append(int(n or 0))
    return found


def _readable_hint(condition: Condition, texts: Sequence[str]) -> str:
    """Return what to do about texts that are no number, or no date, as a condition needs."""
    if all(_LOCAL_DATE.match(text) for text in texts):
        return "Write dates as 2026-11-09 in the data."
    if all(_DECIMAL_COMMA.match(text) for text in texts):
        return "Write numbers with a decimal point in the data."
    other = Condition.of(condition.column, "!=", texts[0]).text
    return f"Leave such rows out by a filter before this one, such as {other!r}."


def _absent_values(table: VoteTable, condition: Condition) -> tuple[Any, ...]:
    """Return the values of a list, or after ``!=``, that no row has: they may be misspelled."""
    values = [value for value in condition.values if value is not None]
    if not values or condition.operator not in ("=", "!=") or (condition.operator == "=" and len(values) == 1):
        return ()
    column, frames = _places(table, condition.column)
    rows = [0] * len(values)
    for frame in frames:
        parts = []
        for place, value in enumerate(values):
            compared, picked = _compared(frame, replace(condition, operator="=", values=(value,)), column)
            parts.append(as_number(compared.kept(_VALUE)).alias(f"value_{place}"))
        names = [nw.col(f"value_{place}").sum() for place in range(len(values))]
        sums = table.ask(picked.select(*parts).select(*names))
        rows = [number + int(sums[f"value_{place}"][0] or 0) for place, number in enumerate(rows)]
    return tuple(value for value, number in zip(values, rows, strict=True) if not number)


def _nothing_left(table: VoteTable, step: Step, earlier: bool) -> DataError:
    """Return the error for a filter that leaves no item, or no vote."""
    if isinstance(step, Exclusion):
        return _nobody_left(step)
    column, frames = _places(table, step.column)
    picked, _ = frames[0].comparable(column).pick({_VALUE: column})
    known = picked.filter(~nw.col(_VALUE).is_null()).unique().sort(_VALUE).head(EXAMPLES + 1)
    values = [value for value in table.ask(known)[_VALUE] if value != ""][:EXAMPLES]
    message = f"The filter {step.text} leaves no votes. "
    after = " after the filters before it" if earlier else ""
    holds = f"holds {shown(values)}"
    if step.operator in ("=", "!="):
        hint = "Check the value, its case and its spaces."
    else:
        hint = "Check the value."
        if values and kind_in(picked, _VALUE) != "text":
            ends = table.ask(picked.select(least=nw.col(_VALUE).min(), most=nw.col(_VALUE).max()))
            holds = f"holds values from {shown(ends['least'])} to {shown(ends['most'])}"
    message += f"Column {frames[0].said(column)} {holds}{after}." if values else f"Column {column!r} is empty{after}."
    return DataError(message, code="nothing-left", parameter="where", hint=hint)


def _valid(table: VoteTable, frame: Query, codings: dict[str, Coding]) -> dict[str, nw.Expr]:
    """Return, for each column of labels, whether a row has a valid one: 1 or 0."""
    labels = [label for label in labels_in(table, frame, codings) if label not in table.missing]
    found = {}
    for role, coding in codings.items():
        values = [value for value in map(coding.value, labels) if value is not None]
        known = nw.col(role).is_in(values) if values else nw.lit(False)
        found[role] = as_number(known)
    return found


def _numbers(frame: Query, roles: Sequence[str]) -> list[nw.Expr]:
    """Return columns of counts as numbers; 0 for what is none."""
    return [
        (number_in(role) if kind_in(frame, role) == "text" else nw.col(role).cast(nw.Float64())).fill_null(0.0)
        for role in roles
    ]


def _size_of(table: VoteTable) -> _Size:
    """Count items and valid votes."""
    roles, frame = table.roles, table.votes
    if roles.label is None:
        named = {f"vote_{place}": name for place, name in enumerate(roles.annotators or roles.counts)}
        picked, codings = frame.pick(named, list(named) if roles.annotators else ())
        parts = [*_valid(table, picked, codings).values()] if codings else _numbers(picked, list(named))
        each = picked.select(*(part.alias(role) for role, part in zip(named, parts, strict=True)))
        sums = table.ask(each.select(nw.len().alias("items"), *(nw.col(role).sum() for role in named)))
        return _Size(int(sums["items"][0]), sum(int(sums[role][0] or 0) for role in named))
    assert roles.item is not None
    named = {"item": roles.item, "label": roles.label} | ({} if roles.count is None else {"count": roles.count})
    picked, codings = frame.pick(named, ["label"])
    votes = _valid(table, picked, codings)["label"].cast(nw.Float64())
    if roles.count is not None:
        votes = votes * _numbers(picked, ["count"])[0]
    n_votes = int(table.ask(picked.select(votes=votes).select(nw.col("votes").sum()))["votes"][0] or 0)
    voted = picked.select("item").unique()
    if table.items is None:
        return _Size(table.count_rows(voted), n_votes)
    listed, _ = pick_items(table)
    n_items = table.count_rows(listed)
    if roles.unlisted == "unlabeled":
        if table.item_type is not None:
            voted = voted.with_columns(nw.col("item").cast(table.item_type))
        n_items += table.count_rows(voted.join(listed.select("item"), on="item", how="anti"))
    return _Size(n_items, n_votes)
