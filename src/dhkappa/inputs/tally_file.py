"""A tally as a versioned JSON file that is checked number by number when it is read."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from dhkappa.core import Label
from dhkappa.core.grouping import MAX_ITEMS, MAX_VOTES, Encoded, Patterns
from dhkappa.core.items import Counts, ItemColumns, add
from dhkappa.core.labels import check_categories, check_declared, natural_key, union
from dhkappa.errors import DataError, shown
from dhkappa.paths import FileStates, check_regular, file_name, system_message, write_file

_Codes = dict[tuple[type, Label | None], int]
"""Codes of labels by type and label: to Python, True and 1.0 equal 1."""

_FORMAT = "dhkappa-tally"
_VERSION = 2


@dataclass(frozen=True, slots=True)
class SavedTally:
    """What a tally file holds; ``orders`` are the declared orders of categories."""

    counts: Counts
    orders: frozenset[tuple[Label, ...]]
    missing: frozenset[Label]
    source_notes: tuple[str, ...] = ()


def write_tally(path: str | os.PathLike[str], saved: SavedTally) -> None:
    """Write a tally atomically; equal tallies give equal files."""
    counts = add([saved.counts], saved.counts.categories)  # item columns in a canonical order
    columns = counts.columns
    held = {
        "format": _FORMAT,
        "version": _VERSION,
        "categories": counts.categories,
        "declared": sorted(saved.orders, key=repr),
        "missing": sorted(saved.missing, key=natural_key),
        "items": counts.n_items,
        "votes": counts.patterns.n_votes(),
        "source_notes": saved.source_notes,
        "labelers": columns.labelers,
        "strata": None if columns.stratum is None else columns.strata,
        "sample_weight": columns.weight is not None,
    }
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in held.items()]
    lines.append('"patterns": [\n' + ",\n".join(map(json.dumps, _rows(counts))) + "\n]")
    write_file(path, "{" + ",\n".join(lines) + "}\n", "tally")


def _rows(counts: Counts) -> list[dict[str, Any]]:
    """Return the patterns, sorted."""
    patterns, names, columns = counts.patterns, counts.categories, counts.columns
    start, code, votes = patterns.start.tolist(), patterns.code.tolist(), patterns.votes.tolist()
    rows = sorted(
        (row, list(zip(code[first:end], votes[first:end], strict=True)), items)
        for row, first, end, items in zip(
            patterns.suggested.tolist(), start[:-1], start[1:], patterns.items.tolist(), strict=True
        )
    )
    labels = [[column.labels[digit] for digit in column.digits().tolist()] for column in columns.labels.values()]
    stratum = None if columns.stratum is None else [columns.strata[place] for place in columns.stratum.values.tolist()]
    weight = None if columns.weight is None else columns.weight.tolist()
    return [
        {
            "suggested": [column[row] for column in labels],
            **({} if stratum is None else {"stratum": stratum[row]}),
            **({} if weight is None else {"weight": weight[row]}),
            "votes": [[names[category], number] for category, number in pairs],
            "items": items,
        }
        for row, pairs, items in rows
    ]


def read_tally(path: str | os.PathLike[str]) -> SavedTally:
    """Read a file that ``write_tally`` wrote."""
    name = repr(file_name(path, "tally"))
    check_regular(path)
    try:
        with FileStates.of([path]).unchanged(), open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeError) as error:
        raise DataError(f"Cannot read the tally {name}: {system_message(error)}.", code="file-not-readable") from None
    try:
        held = json.loads(text, object_pairs_hook=_unique) if text.lstrip()[:1] in ("{", "") else None
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{name} is a damaged tally file: {error}.", code="damaged-tally", hint="It may be incomplete."
        ) from None
    if not isinstance(held, dict) or held.get("format") != _FORMAT:
        raise DataError(
            f"{name} is not a tally.", code="not-a-tally", hint="Make one with dhkappa tally make, or with Tally.save."
        )
    if type(held.get("version")) is not int or held["version"] != _VERSION:
        raise DataError(
            f"{name} is a tally of version {shown([held.get('version')])}; this dhkappa reads version {_VERSION}.",
            code="tally-version",
            hint="Make it again from the data, or update dhkappa.",
        )
    try:
        saved = _checked(held)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        what = f"{error.args[0]!r} is missing." if isinstance(error, KeyError) else str(error)
        what = what if what.endswith(".") else f"a value has the wrong type ({what})."
        raise DataError(f"{name} is a damaged tally file: {what}", code="damaged-tally") from None
    found = saved.counts.n_items, saved.counts.patterns.n_votes()
    claimed = held.get("items"), held.get("votes")
    if found != claimed or not all(type(number) is int for number in claimed):
        raise DataError(
            f"{name} is a damaged tally file: its patterns add up to {found[0]:,} items and {found[1]:,} votes, but it "
            f"says {shown(claimed)}.",
            code="damaged-tally",
        )
    return saved


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a JSON object with a repeated key."""
    held = dict(pairs)
    if len(held) < len(pairs):
        twice = next(name for name, number in Counter(name for name, _ in pairs).items() if number > 1)
        raise ValueError(f"the key {shown([twice])} is repeated")
    return held


def _checked(held: dict[str, Any]) -> SavedTally:
    """Check the content of a file; raise ValueError, TypeError or KeyError if it is invalid."""
    for key in ("categories", "declared", "missing", "patterns", "labelers", "source_notes"):
        if type(held[key]) is not list:
            raise ValueError(f"{key!r} is not a list.")
    if not all(type(text) is str for text in (*held["source_notes"], *held["labelers"])):
        raise ValueError("'source_notes' and 'labelers' must be lists of text.")
    if not held["labelers"] or len(set(held["labelers"])) < len(held["labelers"]):
        raise ValueError("'labelers' is empty or names one twice.")
    categories, missing = check_categories(held["categories"]), frozenset(check_categories(held["missing"]))
    orders = frozenset(check_categories(order) for order in held["declared"])
    for order in orders:
        check_declared(order, categories, "declared")
    if missing.intersection(categories):
        raise ValueError(f"{shown(missing.intersection(categories))} is both a category and missing.")
    codes: _Codes = {(type(label), label): code for code, label in enumerate(categories)}
    codes[type(None), None] = -1
    length: list[int] = []
    votes: list[tuple[int, int]] = []
    items: list[int] = []
    for row in held["patterns"]:
        pairs = sorted((_code(label, codes, vote=True), number) for label, number in row["votes"])
        numbers = [number for _, number in pairs]
        _check_numbers([row["items"]], MAX_ITEMS)
        _check_numbers(numbers, MAX_VOTES)
        if sum(numbers) > MAX_VOTES or len({category for category, _ in pairs}) < len(pairs):
            raise ValueError(f"{shown([row])} has too many votes, or a category twice.")
        length.append(len(pairs))
        votes += pairs
        items.append(row["items"])
    _check_numbers([sum(items) or 1], MAX_ITEMS)
    patterns = Patterns(
        np.arange(len(items), dtype=np.int32),
        np.concatenate([[0], np.cumsum(length, dtype=np.int64)]),
        np.array([category for category, _ in votes], np.int32),
        np.array([number for _, number in votes], np.int64),
        np.array(items, np.int64),
    )
    counts = Counts(categories, patterns, _columns(held, categories, codes))
    return SavedTally(add([counts], categories), orders, missing, tuple(held["source_notes"]))


def _columns(held: dict[str, Any], categories: tuple[Label, ...], codes: _Codes) -> ItemColumns:
    """Return labels, stratum and weight of each row."""
    rows, names = held["patterns"], held["labelers"]
    if held["strata"] is not None and type(held["strata"]) is not list:
        raise ValueError("'strata' is not a list.")
    if type(held["sample_weight"]) is not bool:
        raise ValueError("'sample_weight' is neither true nor false.")
    strata = None if held["strata"] is None else union(check_categories(held["strata"]))
    places = {(type(name), name): place for place, name in enumerate(strata or ())}
    known = {"suggested", "votes", "items", *["stratum"] * (strata is not None), *["weight"] * held["sample_weight"]}
    labels: list[list[int]] = []
    for row in rows:
        if row.keys() != known:
            raise ValueError(f"{shown([row])} has the keys {shown(sorted(row), 10)}, not {shown(sorted(known), 10)}.")
        if type(row["suggested"]) is not list or len(row["suggested"]) != len(names):
            raise ValueError(f"{shown([row])} must have one label per labeler.")
        labels.append([_code(label, codes, vote=False) + 1 for label in row["suggested"]])
        if strata is not None and (type(row["stratum"]), row["stratum"]) not in places:
            raise ValueError(f"{shown([row['stratum']])} is not among the strata.")
        weight = row.get("weight", 0)
        if type(weight) not in (int, float) or not 0 <= weight < float("inf"):
            raise ValueError(f"{shown([weight])} is not a weight.")
    columns = np.array(labels, np.int32).reshape(-1, len(names)).T
    stratum = None
    if strata is not None:
        stratum = Encoded(np.array([places[type(row["stratum"]), row["stratum"]] for row in rows], np.int32), 0, strata)
    weights = np.array([float(row["weight"]) for row in rows]) if held["sample_weight"] else None
    encoded = {name: Encoded(column, 0, (None, *categories)) for name, column in zip(names, columns, strict=True)}
    return ItemColumns(encoded, stratum, weights)


def _code(label: Any, codes: _Codes, vote: bool) -> int:
    if (type(label), label) not in codes or (vote and label is None):
        raise ValueError(f"{shown([label])} is not among the categories.")
    return codes[type(label), label]


def _check_numbers(values: list[Any], most: int) -> None:
    for value in values:
        if type(value) is not int or not 0 < value <= most:
            raise ValueError(f"{shown([value])} is not a whole number from 1 to {most:,}.")
