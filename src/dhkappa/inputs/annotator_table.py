"""The table of annotators: one row per annotator, with columns such as team or language that make slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dhkappa.core.annotator_groups import AnnotatorColumn
from dhkappa.core.label_rules import LabelRules
from dhkappa.core.labels import SourceNote, name_key
from dhkappa.core.slice_names import MISSING, Cut, plain_value
from dhkappa.core.slices import slice_column
from dhkappa.errors import DataError, counted, did_you_mean, invalid, shown
from dhkappa.inputs.backends import Frame, frame_of
from dhkappa.inputs.columns import list_columns
from dhkappa.inputs.joins import diagnose_ids
from dhkappa.inputs.slices import item_cuts
from dhkappa.inputs.tables import EXAMPLES, Source

MOST_GROUPS = 500  # values of a column
_PARAMETER = "annotators_table"
_OWN, _ITEMS = "annotators.", "items."


@dataclass(frozen=True)
class AnnotatorTable:
    """A table with one row per annotator."""

    frame: Frame
    source: Source
    annotator: str  # the column with their names

    @classmethod
    def of(cls, given: Any, role: str | None) -> AnnotatorTable:
        """Find the column of names: that with the name of the annotator column of the data, or the first."""
        source = given if isinstance(given, Source) else Source(given)
        frame = frame_of(source.votes)
        if frame is None or not frame.names:
            message = f"annotators_table must be a table with one row per annotator, or a path, got {shown([given])}."
            raise invalid(_PARAMETER, message, code="not-a-table")
        frame = replace(frame, name=source.name or "the annotators table")
        if twice := [name for name, number in Counter(frame.names).items() if number > 1]:
            message = f"Several columns of {frame.name} have the same name: {shown(twice)}."
            raise invalid(_PARAMETER, message, code="ambiguous-columns", hint="Rename them.")
        known = [name for name in (role, "annotator") if name in frame.names]
        found = cls(frame, source, known[0] if known else frame.names[0])
        if not found.columns:
            message = f"There is no column besides {found.annotator!r} in {frame.name}."
            hint = "Add a column such as team to $annotators_table."
            raise invalid(_PARAMETER, message, code="column-not-found", hint=hint)
        return found

    @cached_property
    def columns(self) -> list[str]:
        """The columns that can make slices."""
        return [name for name in self.frame.names if name != self.annotator]

    def fetch(self, names: Sequence[str]) -> tuple[list[Any], dict[str, list[Any]]]:
        """Return the annotators, and the values of some columns."""
        roles = {"annotator": self.annotator} | {f"slices_{place}": name for place, name in enumerate(names)}
        with self.source.files.unchanged():
            rows = self.frame.fetch(self.frame.pick(roles)[0])
        values = {name: list(map(_value, rows[f"slices_{place}"])) for place, name in enumerate(names)}
        return list(map(_value, rows["annotator"])), values


def _value(value: Any) -> Any:
    """Return a plain value; whole floats as integers, as some engines have no missing integers."""
    found = plain_value(value)
    return int(found) if isinstance(found, float) and found.is_integer() else found


def split_requests(given: Any, table: AnnotatorTable, columns: Sequence[str]) -> tuple[Any, dict[str, tuple[Cut, ...]]]:
    """Return which slices are of items, as they were passed, and those of annotators by name.

    ``columns`` are those of the items. If no column of the annotators table is named, all of them are returned.
    """
    units = given if isinstance(given, Mapping) else {}
    names = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    items: list[Any] = []
    found: dict[str, tuple[Cut, ...]] = {}
    for name in names if given is not None else ():
        cuts, column = _place(name, table, columns)
        if cuts is None:
            items.append(column)
        else:
            unit = units.get(name)
            found[column if unit is None else f"{column}:{unit}"] = cuts if unit is None else (Cut(column, unit),)
    if units:
        own = [_place(name, table, columns) for name in units]
        left: Any = {column: units[name] for name, (cuts, column) in zip(units, own, strict=True) if cuts is None}
    else:
        left = given if items == names else items
    return left or None, found or {name: (Cut(name),) for name in table.columns}


def _place(name: Any, table: AnnotatorTable, columns: Sequence[str]) -> tuple[tuple[Cut, ...] | None, Any]:
    """Return the columns of the annotators table that a name means, None for items, and the name in its table."""
    if not isinstance(name, str):
        return None, name
    of_items, own = _holds(name, columns), _holds(name, table.columns)
    if not of_items and not own:
        for prefix, known in ((_OWN, table.columns), (_ITEMS, columns)):
            rest = name.removeprefix(prefix)
            if rest != name and _holds(rest, known):
                return (item_cuts(rest, known) if prefix == _OWN else None), rest
        every = list(dict.fromkeys([*columns, *table.columns]))
        message = f"Column {shown([name])} is neither in the items nor in {table.frame.name}. {list_columns(every)}"
        raise invalid("slices", message, code="column-not-found", hint=did_you_mean(name, every).strip())
    if of_items and own:
        message = f"Column {name!r} is in the items and in {table.frame.name}."
        hint = f"Choose a table: write '{_OWN}{name}' or '{_ITEMS}{name}'."
        raise invalid("slices", message, code="ambiguous-columns", hint=hint)
    return (item_cuts(name, table.columns) if own else None), name


def _holds(name: str, columns: Sequence[str]) -> bool:
    """Tell whether a table has all columns that a name means."""
    return all(cut.column in columns for cut in item_cuts(name, columns))


def annotator_columns(
    table: AnnotatorTable,
    requests: Mapping[str, tuple[Cut, ...]],
    annotators: Sequence[Any],
    rules: LabelRules | None,
    *,
    named: bool,
) -> list[AnnotatorColumn]:
    """Return the groups that columns make of the annotators of the data; ``named`` if the user named the columns."""
    wanted = list(dict.fromkeys(cut.column for cuts in requests.values() for cut in cuts))
    names, values = table.fetch(wanted)
    key = _key(rules)
    _check_names(table, names, key)
    row = {key(name): place for place, name in enumerate(names)}
    places = [row.get(key(name)) for name in annotators]
    joined = _join_notes(table, names, annotators, places)
    found, left_out = [], []
    for name, cuts in requests.items():
        columns = [[None if at is None else values[cut.column][at] for at in places] for cut in cuts]
        column, index = slice_column(name, cuts, columns)
        if len(column.slices) > MOST_GROUPS:
            if named:
                message = f"Column {name!r} of {table.frame.name} has {counted(len(column.slices), 'value')}."
                hint = f"The limit is {MOST_GROUPS} slices of annotators: name another column in $slices."
                raise invalid(_PARAMETER, message, code="too-many-slices", hint=hint)
            left_out.append(name)
            continue
        groups: list[set[Any]] = [set() for _ in column.slices]
        for who, place in zip(annotators, index.tolist(), strict=True):
            groups[place].add(who)
        notes = (*joined, *_value_notes(table, name, columns, places))
        found.append(AnnotatorColumn(name, column.slices, tuple(map(frozenset, groups)), notes))
    if left_out:
        message = f"Annotators are not sliced by {shown(left_out)}: more than {MOST_GROUPS} values."
        note = SourceNote("annotator-columns-left-out", message)
        found = [replace(column, notes=(*column.notes, note)) for column in found]
    return found


def _key(rules: LabelRules | None) -> Callable[[Any], Hashable]:
    """Return what is equal for spellings of one annotator: a number may be written as text."""
    names = None if rules is None else rules.for_names()
    return str if names is None else lambda name: names.key(names.cleaned(str(name)) or "")


def _check_names(table: AnnotatorTable, names: Sequence[Any], key: Callable[[Any], Hashable]) -> None:
    """Refuse an annotator twice, or a row without a name."""
    said = table.frame.said(table.annotator)
    if n := sum(name is None for name in names):
        message = f"Column {said} has no annotator in {counted(n, 'row')}."
        raise invalid(_PARAMETER, message, code="missing-annotator", hint="Name every annotator.")
    number = Counter(map(key, names))
    if twice := sorted({str(name) for name in names if number[key(name)] > 1}, key=name_key):
        message = f"Column {said} repeats {shown(twice, EXAMPLES)}."
        raise invalid(_PARAMETER, message, code="duplicate-annotators", hint="Keep one row per annotator.")


def _join_notes(
    table: AnnotatorTable, names: Sequence[Any], annotators: Sequence[Any], places: Sequence[int | None]
) -> list[SourceNote]:
    """Return notes on annotators that one side lacks; refuse a table that names no annotator of the data."""
    absent = [who for who, place in zip(annotators, places, strict=True) if place is None]
    others = [name for place, name in enumerate(names) if place not in {*places}]
    alike = diagnose_ids(map(str, absent), map(str, others))
    if annotators and len(absent) == len(annotators):
        message = f"No annotator of the data is in column {table.frame.said(table.annotator)}: "
        message += f"it holds {shown(others, EXAMPLES)}, the annotators are {shown(absent, EXAMPLES)}."
        raise DataError(message, code="ids-not-joined", parameter=_PARAMETER, hint=alike)
    notes = []
    if absent:
        verb = "is" if len(absent) == 1 else "are"
        message = f"{counted(len(absent), 'annotator')} {verb} not in {table.frame.name}: {shown(absent, EXAMPLES)}; "
        message += f"slice {MISSING!r}."
        notes.append(SourceNote("annotators-not-in-table", f"{message} {alike}".strip()))
    if others:
        belong = "belongs" if len(others) == 1 else "belong"
        message = f"{counted(len(others), 'name')} in {table.frame.name} {belong} to no annotator of the data: "
        notes.append(SourceNote("annotators-not-in-data", f"{message}{shown(others, EXAMPLES)}."))
    return notes


def _value_notes(
    table: AnnotatorTable, name: str, columns: Sequence[Sequence[Any]], places: Sequence[int | None]
) -> list[SourceNote]:
    """Return a note on annotators without a value."""
    rows = zip(*columns, strict=True)
    n = sum(at is not None and (None in row or "" in row) for at, row in zip(places, rows, strict=True))
    if not n:
        return []
    message = f"{counted(n, 'annotator')} {'has' if n == 1 else 'have'} no value in {name} of {table.frame.name}."
    return [SourceNote("annotators-without-value", message)]
