"""Column roles: which column of a table holds what, as named by the user or guessed from column names."""

from __future__ import annotations

import difflib
import fnmatch
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, NotRequired, TypedDict

import numpy as np

from dhkappa.errors import DataError, comma_separated, did_you_mean, nearest, shown

_PREFIX = "suggested_"
_ANNOTATORS = ("ann_", "annotator_")
_LONG = ("item", "label", "annotator", "count")
_FORMATS = (
    "Pass $annotators (wide format, one column per annotator), $item and $label (long format, one row per vote) or "
    "$counts (one column of vote counts per category)."
)
_PEOPLE = re.compile("annot|rater|coder|judge|reviewer|worker", re.IGNORECASE)
_NOT_PEOPLE = re.compile("(^|[^a-z])(ids?|date|time|text|seconds|comments?|confidence)([^a-z]|$)", re.IGNORECASE)
SHOWN_NAMES = ("text", "body", "question", "prompt", "content", "url")  # names of columns that are shown next to items
_CHOICES = {"duplicates": ("error", "first", "last"), "unlisted": ("error", "unlabeled")}
_OPTIONS = ("suggested", "counts", "categories", "missing", "weights", "sample_weight", "strata", "clusters", "pool")


class RoleKeywords(TypedDict, total=False):
    """Keyword arguments that describe a table, as ``Dataset`` documents them."""

    annotators: str | Sequence[str] | None
    item: str | None
    label: str | None
    annotator: str | None
    count: str | None
    items: Any
    duplicates: str
    unlisted: str
    normalize: str | Iterable[str]
    map: Any
    multilabel: str | bool | None
    show: str | Iterable[str] | None
    slices: Any
    annotators_table: Any


class Columns(TypedDict):
    """Arrays next to the votes, or names of columns, as passed to ``Dataset``."""

    suggested: Any
    counts: Any
    sample_weight: Any
    strata: Any
    clusters: NotRequired[Any]


class DataKeywords(RoleKeywords, total=False):
    """All keyword arguments that describe data, as ``Dataset`` documents them."""

    counts: Any
    categories: Iterable[Any] | None
    missing: Iterable[Any]
    sample_weight: Any
    strata: Any
    clusters: Any


@dataclass(frozen=True, slots=True)
class ColumnRoles:
    """The column of each role."""

    suggested: dict[str, str]
    annotators: tuple[str, ...] = ()  # wide format, or
    counts: tuple[str, ...] = ()  # of votes, per category
    item: str | None = None
    label: str | None = None  # long format, with item
    annotator: str | None = None
    count: str | None = None
    sample_weight: str | None = None
    strata: str | None = None
    clusters: str | None = None
    slices: tuple[str, ...] = ()  # by which items are grouped
    duplicates: str = "error"
    unlisted: str = "error"

    @property
    def voting(self) -> set[str | None]:
        """The columns that hold votes, or numbers of votes."""
        return {*self.annotators, *self.counts, self.label, self.count}

    def item_columns(self) -> dict[str, str]:
        """Return the columns with one value per item, by role."""
        found = {f"suggested_{place}": column for place, column in enumerate(self.suggested.values())}
        others = {"sample_weight": self.sample_weight, "strata": self.strata, "clusters": self.clusters}
        others |= {f"slices_{place}": column for place, column in enumerate(self.slices)}
        return found | {role: column for role, column in others.items() if column is not None}

    @property
    def used(self) -> set[str | None]:
        """The columns with a role."""
        found: set[str | None] = {*self.annotators, *self.counts, *self.item_columns().values()}
        return found | {self.item, self.label, self.annotator, self.count}


def check_keywords(keywords: Mapping[str, Any], allowed: type = RoleKeywords) -> None:
    """Refuse keyword arguments that are not ``allowed``, and invalid choices."""
    known = list(allowed.__annotations__)
    for name, value in keywords.items():
        if name not in known:
            others = [option for option in (*known, *_OPTIONS) if option != name]
            near = difflib.get_close_matches(name, others, 1, 0.75)
            hint = f". Did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"got an unexpected keyword argument {name!r}{hint}")
        if name in _CHOICES and not (isinstance(value, str) and value in _CHOICES[name]):
            message = f"{name} must be one of {shown(_CHOICES[name])}, got {shown([value])}."
            raise DataError(message, code="invalid-option", parameter=name)


def passed_options(options: Mapping[str, Any]) -> list[str]:
    """Return the names of the options that differ from their default."""
    missing = options.get("missing")
    empty = isinstance(missing, (str, tuple, list, set, frozenset)) and not missing
    return [name for name, value in options.items() if value is not None and not (name == "missing" and empty)]


def check_options_absent(given: Mapping[str, Any], kind: str) -> None:
    """Refuse options that describe data next to a ``Dataset``, ``Tally`` or ``Kappa``, which holds them already."""
    if extra := passed_options(given):
        message = f"{', '.join(extra)} cannot be combined with a {kind}, which holds votes and labels already."
        hint = f"Pass options when you make the {kind}."
        raise DataError(message, code="option-with-dataset", parameter=extra[0], hint=hint)


def copied(values: Any) -> Any:
    """Copy lists, arrays and dataframes in memory, also those of a mapping; other values are returned as they are."""
    if isinstance(values, Mapping):
        return {name: copied(value) for name, value in values.items()}
    if isinstance(values, list):
        return [value.copy() if isinstance(value, (list, np.ndarray)) else value for value in values]
    if isinstance(values, np.ndarray):
        return values.copy()
    library = type(values).__module__.partition(".")[0]
    if library == "pandas":  # from version 3 on, data are copied when the owner changes them
        return values.copy(deep=int(sys.modules["pandas"].__version__.partition(".")[0]) < 3)
    return values.clone() if library == "polars" else values


def find_roles(tables: Sequence[tuple[str, Sequence[str]]], keywords: RoleKeywords, given: Columns) -> ColumnRoles:
    """Find the column of each role in the table of votes and, if there is one, the items table: names and columns."""
    (votes_name, columns), (items_name, item_columns) = tables[0], tables[-1]
    joined = len(tables) > 1
    annotators, item, label = keywords.get("annotators"), keywords.get("item"), keywords.get("label")
    suggested, counts = given["suggested"], given["counts"]
    suggested = list(suggested) if isinstance(suggested, Iterator) else suggested
    if annotators is None and label is None and counts is None:
        annotators, item, label = _guess(columns, keywords, suggested, votes_name)
    elif label is not None and item is None and "item" in columns:
        item = "item"
    long: dict[str, Any] = {role: keywords.get(role, role if label and role in columns else None) for role in _LONG[2:]}
    _check_format({"annotators": annotators, "label": label, "counts": counts}, item, long, keywords)
    choices: dict[str, Any] = {name: keywords.get(name, "error") for name in _CHOICES}
    if not joined and choices["unlisted"] != "error":
        _conflict("unlisted is about items that the items table lacks, but there is none.", "unlisted", "Leave it out.")
    one: dict[str, Any] = {"item": item, "label": label, **long}
    taken: dict[Any, str] = {}  # columns of the votes, with the role of each
    for role, column in one.items():
        _check_column(column, columns, role, votes_name, taken)
        taken[column] = role
    labelers = _labelers(suggested, item_columns)
    hint = "If it is in a table of items, pass that as $items." if label is not None and not joined else ""
    design: dict[str, Any] = {name: given.get(name) for name in ("sample_weight", "strata", "clusters")}
    per_item = [*(("suggested", column) for column in labelers.values()), *design.items()]
    several = {"suggested": _as_list(suggested.values() if isinstance(suggested, Mapping) else suggested)}
    for role, column in per_item:
        others = {item: "item"} if joined else taken
        check_item_column(column, role, tables, others, hint, several.get(role))
    if joined:
        hint, given_item = "The column must have the same name in both tables.", None if keywords.get("item") else ()
        _check_column(item, item_columns, "item", items_name, hint=hint, given=given_item)
    taken |= {column: role for role, column in per_item}
    voters, counted = (
        _several(names, columns, role, taken, votes_name)
        for role, names in (("annotators", annotators), ("counts", counts))
    )
    return ColumnRoles(labelers, voters, counted, **one, **design, **choices)


def _guess(
    columns: Sequence[str], keywords: RoleKeywords, suggested: Any, where: str
) -> tuple[list[str] | None, str | None, str | None]:
    """Guess annotators, item and label from column names."""
    labelers = _strings(suggested.values() if isinstance(suggested, Mapping) else suggested)
    annotators = [name for name in _annotators(columns) if name not in labelers]
    item = keywords.get("item") or ("item" if "item" in columns else None)
    long = item is not None and "label" in columns
    if long and not annotators:
        return None, item, "label"
    if annotators and not long:
        return annotators, item, None
    if len(columns) == 1:
        message = f"There is only one column in {where}: {shown(columns)}."
        hint = f"Check the separator of the file. {_FORMATS}"
        choices = {"annotators": "COLUMN,COLUMN"}
        raise DataError(message, code="format-unknown", parameter="annotators", hint=hint, choices=choices)
    free = [name for name in columns if name not in {*labelers, item} and name not in suggested_columns(columns)]
    likely = likely_annotators(free)
    hint = f"{_FORMATS} These columns may be annotators: $annotators=." if likely else _FORMATS
    options = {"annotators": comma_separated(likely)} if likely else {}
    what, choices = f"which columns of {where} hold the votes", {"annotators": "COLUMN,COLUMN"}
    if item is not None and not annotators and not likely:
        what, choices = f"which column of {where} holds the label of each vote", {"label": "COLUMN"}
    message, [role] = f"It is unknown {what}. {list_columns(columns, explain=True)}", choices
    raise DataError(message, code="format-unknown", parameter=role, hint=hint, options=options, choices=choices)


def is_recognized(columns: Sequence[Any]) -> bool:
    """Tell whether the column names alone show the format."""
    names = [name for name in columns if isinstance(name, str)]
    return bool(_annotators(names)) != ({"item", "label"} <= {*names})


def check_grid(columns: Iterable[Any]) -> None:
    """Refuse a dataframe as a grid of votes if column names show that some columns are not votes."""
    names = [name for name in columns if isinstance(name, str)]
    if {"item", "label"} <= {*names} and not _annotators(names):
        message = "The table is in long format (one row per vote), so suggested labels cannot be matched by row."
        hint = "Pass the table with one row per item and its suggested labels as $items."
        raise DataError(message, code="column-among-votes", parameter="suggested", hint=hint)
    votes = _annotators(names) or [name for name in names if name != "item" and not suggested_columns([name])]
    if others := [name for name in names if name not in votes]:
        message = f"Each column of the table would be an annotator, also {shown(others)}."
        hint = f"Pass only the columns of votes, table[[{shown(votes)}]], or name the column of labels as $suggested."
        raise DataError(message, code="column-among-votes", parameter="suggested", hint=hint)


def likely_annotators(columns: Iterable[str]) -> list[str]:
    """Return columns whose names suggest annotators: ``rater 1``, ``rater 2``, or ``coder A``, ``coder B``."""
    groups: dict[str, list[str]] = {}
    for name in columns:
        stem = re.sub("[0-9]+$|[ _.-][a-z]$", "#", name.casefold())
        if (stem.endswith("#") or _PEOPLE.search(name)) and not _NOT_PEOPLE.search(name):
            groups.setdefault(stem if stem.endswith("#") else "", []).append(name)
    return next((names for names in groups.values() if len(names) > 1), [])


def _annotators(columns: Iterable[str]) -> list[str]:
    return [name for name in columns if name.startswith(_ANNOTATORS)]


def annotator_prefix(columns: Sequence[str]) -> str:
    """Return how the names of columns of annotators start, if that is how they are found; else empty."""
    return next((prefix for prefix in _ANNOTATORS if any(name.startswith(prefix) for name in columns)), "")


def _as_list(given: Any) -> list[Any]:
    """Return the elements of a list, or the one value that was given."""
    try:
        return [given] if isinstance(given, str) else list(given)
    except TypeError:
        return [given]


def _strings(given: Any) -> list[str]:
    return [name for name in _as_list(given) if isinstance(name, str)]


def _conflict(message: str, parameter: str, hint: str) -> NoReturn:
    raise DataError(message, code="role-conflict", parameter=parameter, hint=hint)


def _check_format(formats: Mapping[str, Any], item: Any, long: Mapping[str, Any], keywords: RoleKeywords) -> None:
    """Refuse roles of two formats at once."""
    given = [role for role, column in formats.items() if column is not None]
    annotator, count, label = long["annotator"], long["count"], formats["label"]
    if annotator is not None and count is not None:
        message = f"Columns {shown([annotator])} (annotator) and {shown([count])} (count) exclude each other."
        hint = "A row is one annotator's vote, or several votes: pass $annotator= or $count=."
        choices = {"annotator": "", "count": ""}
        raise DataError(message, code="role-conflict", parameter="annotator", hint=hint, choices=choices)
    if len(given) > 1:
        _conflict(f"{' and '.join(given)} belong to different formats.", given[0], _FORMATS)
    if label is not None and item is None:
        _conflict("label is given without item.", "item", "Name the column with the item of each vote as $item.")
    extra = [role for role, value in {**long, "items": keywords.get("items")}.items() if value is not None]
    if label is None and extra:
        hint = f"Pass $item and $label too, or leave out ${extra[0]}."
        _conflict(f"{' and '.join(extra)} only apply to the long format, one row per vote.", extra[0], hint)
    merged = formats["annotators"] is not None and keywords.get("normalize")  # columns may become one annotator
    if annotator is None and not merged and keywords.get("duplicates", "error") != "error":
        _conflict("duplicates needs annotators.", "duplicates", "Name the column of annotators as $annotator.")


def labeler_names(columns: Sequence[str], others: Collection[str] = ()) -> list[str]:
    """Return the labeler of each column: ``llm`` of ``suggested_llm``, unless that is the name of another column."""
    short = [name.removeprefix(_PREFIX) or name for name in columns]
    known = {*columns, *others}
    return [name if one in known else one for name, one in zip(columns, short, strict=True)]


def _labelers(suggested: Any, columns: Sequence[str]) -> dict[str, str]:
    """Return the column of each labeler. A column is named as it is, or without ``suggested_`` if that is no column."""
    if suggested is None:
        return {}
    by_name = isinstance(suggested, Mapping)
    known = {name.removeprefix(_PREFIX): name for name in columns} | {name: name for name in columns}
    given = list(suggested.values()) if by_name else _as_list(suggested)
    full = [known.get(name, name) if isinstance(name, str) else name for name in given]
    names = list(suggested) if by_name else full
    if by_name and "" in names:
        raise DataError("A labeler has an empty name.", code="invalid-labeler-name", parameter="suggested")
    if not names or not all(isinstance(text, str) for text in [*names, *full]):
        message = f"suggested must name columns of the table, got {shown([suggested])}. {list_columns(columns)}"
        raise DataError(message, code="not-a-column-name", parameter="suggested")
    named = dict(zip(labeler_names(names, () if by_name else columns), full, strict=True))
    if len(named) < len(names):
        message = (
            f"suggested has {shown(dict.fromkeys(name for name in names if names.count(name) > 1), 3)} more than once."
        )
        hint = "suggested names columns of the table: put labels into a column."
        raise DataError(message, code="duplicate-labeler", parameter="suggested", hint=hint)
    return named


def suggested_columns(columns: Iterable[str]) -> list[str]:
    """Return the columns with names of suggested labels."""
    return [name for name in columns if name == "suggested" or name.startswith(_PREFIX)]


def _several(given: Any, columns: Sequence[str], role: str, taken: Mapping[Any, str], where: str) -> tuple[str, ...]:
    """Return the columns that are listed, or that match patterns and neither have nor are named like another role."""
    if given is None:
        return ()
    patterns = _as_list(given)
    if not patterns:
        raise DataError(f"{role} is empty. {list_columns(columns)}", code="column-not-found", parameter=role)
    known = {*taken, "item", *suggested_columns(columns)}
    found: dict[str, None] = {}
    for name in patterns:
        wild = isinstance(name, str) and name not in columns and (name is given or any(sign in name for sign in "*?["))
        matched = [one for one in columns if fnmatch.fnmatchcase(one, name) and one not in known] if wild else [name]
        if not matched:
            message = f"No column of {where} matches {name!r}. {list_columns(columns)}"
            hint = did_you_mean(name, columns).strip()
            raise DataError(message, code="column-not-found", parameter=role, hint=hint)
        if not wild:
            _check_column(name, columns, role, where, taken, given=patterns)
            if patterns.count(name) > 1:
                _conflict(f"Column {name!r} is named twice in {role}.", role, "Name it once.")
        found |= dict.fromkeys(matched)
    return tuple(found) if [*found] == patterns else tuple(name for name in columns if name in found)


def _check_column(
    column: Any,
    columns: Sequence[str],
    role: str,
    where: str,
    taken: Mapping[Any, str] | None = None,
    hint: str = "",
    given: Sequence[Any] | None = None,
) -> None:
    """Refuse a column that does not exist, has a role already, or whose name differs from another only in case.

    ``given`` are the columns of a role that takes several; none if the user named none.
    """
    if column is None:
        return
    if not isinstance(column, str):
        message = f"{role} must be a column name of {where}, got {shown([column])}. {list_columns(columns)}"
        raise DataError(message, code="not-a-column-name", parameter=role)
    if column not in columns:
        message = f"Column {shown([column])} not found in {where}. {list_columns(columns)}"
        short = labeler_names(columns, columns) if role == "suggested" else []
        near = nearest(column, [*columns, *short])
        hint = hint if near is None else f"Did you mean {near!r}?"
        options, choices = (
            {role: name if given is None else comma_separated(name if one == column else one for one in given)}
            for name in (near or "", "COLUMN")
        )
        options, choices = options if near else {}, {} if given == () else choices
        raise DataError(message, code="column-not-found", parameter=role, hint=hint, options=options, choices=choices)
    if taken and column in taken:
        _conflict(f"Column {column!r} has two roles, {taken[column]} and {role}.", role, "Leave it out of one.")
    if twins := [name for name in columns if name.casefold() == column.casefold() and name != column]:
        message = f"Columns {shown([column, *twins])} differ only in case, which some engines ignore."
        raise DataError(message, code="ambiguous-columns", parameter=role, hint="Rename one of them.")


def find_shown(
    tables: Sequence[tuple[str, Sequence[str]]], used: Collection[str | None], given: Any
) -> tuple[str, ...]:
    """Return the columns to show next to items, by name or by default; ``tables`` may have them, the first wins.

    By default these are the columns of the first table, or else of the second, with a name such as ``text``.
    """
    if given is None:
        for _, columns in tables:
            folded = [name.casefold() for name in columns]
            found = [one for one in columns if one.casefold() in SHOWN_NAMES and folded.count(one.casefold()) == 1]
            if free := tuple(name for name in found if name not in used):
                return free
        return ()
    names = _as_list(given)
    for name in names:
        where, columns = next((table for table in tables if name in table[1]), tables[0])
        _check_column(name, columns, "show", where, given=names)
        if names.count(name) > 1:
            _conflict(f"Column {name!r} is named twice in show.", "show", "Name it once.")
    return tuple(names)


def check_item_column(
    column: Any,
    role: str,
    tables: Sequence[tuple[str, Sequence[str]]],
    taken: Mapping[Any, str] | None = None,
    hint: str = "",
    given: Sequence[Any] | None = None,
) -> None:
    """Refuse a column with one value per item that does not exist in the items table, or in the only table."""
    (votes_name, columns), (items_name, item_columns) = tables[0], tables[-1]
    if len(tables) > 1 and isinstance(column, str) and column in columns and column not in item_columns:
        message = f"Column {column!r} is in {votes_name}, not in {items_name}. {list_columns(item_columns)}"
        more = f"Add it to {items_name}, or leave out $items."
        raise DataError(message, code="column-not-found", parameter=role, hint=more)
    _check_column(column, item_columns, role, items_name, taken, hint, given)


def list_columns(columns: Sequence[str], explain: bool = False) -> str:
    """Return a sentence with the first column names; explain why a name with spaces or capitals is not recognized."""
    first = columns[:20]
    plain = [one if one.isprintable() and len(one) <= 60 and one == one.strip() else shown([one]) for one in first]
    text = f"Columns: {', '.join(plain)}{f', and {len(columns) - 20:,} more' if len(columns) > 20 else ''}."
    for name in columns if explain else ():
        tidy = name.strip().casefold()
        if tidy != name and (tidy in _LONG or suggested_columns([tidy]) or _annotators([tidy])):
            return f"{text} Column {name!r} differs from {tidy!r} in case or spaces."
    return text
