"""A tally on disk: versioned JSON that a person can read, checked number by number when it comes back."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dhkappa.core.item_columns import Sides, unite_sides
from dhkappa.core.labels import Label, check_declared, declare, natural, unite
from dhkappa.core.patterns import MOST_ITEMS, MOST_VOTES, Patterns
from dhkappa.errors import DataError, shown
from dhkappa.paths import Steady, check_regular, name_of, told, write_whole

_Places = dict[tuple[type, Label | None], int]
"""Codes of labels by their type too: to Python, True and 1.0 are 1."""

_FORMAT = "dhkappa-tally"
_VERSION = 1
_MAKE_ONE = "Make one with dhkappa tally make, or with Tally.save."


@dataclass(frozen=True, slots=True)
class Saved:
    """What a tally file holds; ``orders`` are the category orders that were declared, ``remarks`` as of a tally."""

    categories: tuple[Label, ...]
    orders: frozenset[tuple[Label, ...]]
    missing: frozenset[Label]
    patterns: Patterns
    sides: Sides | None = None
    remarks: tuple[str, ...] = ()


def write_tally(path: str | os.PathLike[str], saved: Saved) -> None:
    """Write a file: whole, or not at all."""
    import json

    if saved.sides is not None:  # in an order that only they decide: equal tallies are equal files
        sides, (moved,) = unite_sides([saved.sides])
        codes = np.arange(len(saved.categories))
        saved = replace(saved, sides=sides, patterns=saved.patterns.recode(codes, moved))
    lines = [
        f'"format": {json.dumps(_FORMAT)}',
        f'"version": {_VERSION}',
        f'"categories": {json.dumps(saved.categories)}',
        f'"declared": {json.dumps(sorted(saved.orders, key=repr))}',
        f'"missing": {json.dumps(sorted(saved.missing, key=natural))}',
        f'"items": {int(saved.patterns.items.sum())}',
        f'"votes": {saved.patterns.n_votes()}',
        *([f'"remarks": {json.dumps(saved.remarks)}'] if saved.remarks else []),
        *_told_sides(saved.sides),
        '"patterns": [\n' + ",\n".join(map(json.dumps, _rows(saved))) + "\n]",
    ]
    write_whole(path, "{" + ",\n".join(lines) + "}\n", "tally")


def _rows(saved: Saved) -> list[dict[str, Any]]:
    """Return the patterns in an order that a person can follow."""
    patterns, names = saved.patterns, saved.categories
    start, code, votes = patterns.start.tolist(), patterns.code.tolist(), patterns.votes.tolist()
    rows = sorted(
        (suggested, list(zip(code[first:end], votes[first:end], strict=True)), items)
        for suggested, first, end, items in zip(
            patterns.suggested.tolist(), start[:-1], start[1:], patterns.items.tolist(), strict=True
        )
    )
    beside = _sides_as_dicts(saved)
    return [
        {
            **(beside[suggested] if beside else {"suggested": None if suggested < 0 else names[suggested]}),
            "votes": [[names[category], number] for category, number in counts],
            "items": items,
        }
        for suggested, counts, items in rows
    ]


def _told_sides(sides: Sides | None) -> list[str]:
    """Say which labelers there are, and whether strata and weights, where that is not plain."""
    import json

    if sides is None:
        return []
    return [
        f'"labelers": {json.dumps(sides.labelers)}',
        f'"strata": {json.dumps(sides.strata if sides.stratified else None)}',
        f'"weights": {json.dumps(sides.weighted)}',
    ]


def _sides_as_dicts(saved: Saved) -> list[dict[str, Any]]:
    """Return what stands beside the votes, by place."""
    sides, names = saved.sides, [*saved.categories, None]
    if sides is None:
        return []
    found: list[dict[str, Any]] = [{"suggested": [names[code] for code in codes]} for codes in sides.labels.T.tolist()]
    for place, row in enumerate(found):
        if sides.stratum is not None:
            row["stratum"] = sides.strata[sides.stratum[place]]
        if sides.weight is not None:
            row["weight"] = float(sides.weight[place])
    return found


def read_tally(path: str | os.PathLike[str]) -> Saved:
    """Read a file that ``write_tally`` wrote; anything else is an error that says what is wrong."""
    import json

    name = repr(name_of(path, "tally"))
    check_regular(path)
    try:
        with Steady.of([path]).held(), open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeError) as error:
        raise DataError(f"cannot read the tally {name}: {told(error)}.") from None
    if text.strip() and not text.lstrip().startswith("{"):
        raise DataError(f"{name} is not a tally, which is a JSON object. {_MAKE_ONE}")
    try:
        held = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name} is not a whole tally file, damaged or cut short: {error}.") from None
    if not isinstance(held, dict) or held.get("format") != _FORMAT:
        raise DataError(f"{name} is not a tally: it has no {_FORMAT!r} mark. {_MAKE_ONE}")
    if type(held.get("version")) is not int or held["version"] != _VERSION:
        raise DataError(
            f"{name} is a tally of version {shown([held.get('version')])}; this dhkappa reads version {_VERSION}. "
            "Update dhkappa."
        )
    try:
        saved = _checked(held)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        what = f"{error.args[0]!r} is absent." if isinstance(error, KeyError) else str(error)
        what = what if what.endswith(".") else f"something in it is of another kind than in a tally ({what})."
        raise DataError(f"{name} is a damaged tally: {what}") from None
    found = int(saved.patterns.items.sum()), saved.patterns.n_votes()
    claimed = held.get("items"), held.get("votes")
    if found != claimed or not all(type(number) is int for number in claimed):
        raise DataError(
            f"{name} is a damaged tally: its patterns add up to {found[0]:,} items and {found[1]:,} votes, "
            f"but it says {shown(claimed)}."
        )
    return saved


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return what a JSON object holds, each name once: of two values, neither is the right one."""
    held = dict(pairs)
    if len(held) < len(pairs):
        twice = next(name for name, number in Counter(name for name, _ in pairs).items() if number > 1)
        raise ValueError(f"it says {shown([twice])} twice")
    return held


def _checked(held: dict[str, Any]) -> Saved:
    """Check what a file holds; ValueError, TypeError or KeyError where it cannot be."""
    for name in ("categories", "declared", "missing", "patterns"):
        if type(held[name]) is not list:
            raise ValueError(f"{name!r} is not a list.")
    remarks = held.get("remarks", [])
    if type(remarks) is not list or not all(isinstance(remark, str) for remark in remarks):
        raise ValueError("'remarks' is not a list of sentences.")
    categories, missing = declare(held["categories"]), frozenset(declare(held["missing"]))
    orders = frozenset(declare(order) for order in held["declared"])
    for order in orders:
        check_declared(order, categories, "declared")
    if missing.intersection(categories):
        raise ValueError(f"{shown(missing.intersection(categories))} is a category and missing.")
    place: _Places = {(type(label), label): code for code, label in enumerate(categories)}
    place[type(None), None] = -1
    beside = _Beside(held, place) if "labelers" in held else None
    suggested: list[int] = []
    length: list[int] = []
    counts: list[tuple[int, int]] = []
    items: list[int] = []
    for row in held["patterns"]:
        pairs = sorted((_place(label, place, vote=True), number) for label, number in row["votes"])
        votes = [number for _, number in pairs]
        _check_numbers([row["items"]], MOST_ITEMS)
        _check_numbers(votes, MOST_VOTES)
        if sum(votes) > MOST_VOTES or len({category for category, _ in pairs}) < len(pairs):
            raise ValueError(f"{shown([row])} has too many votes, or a category twice.")
        suggested.append(beside.add(row) if beside else _place(row["suggested"], place, vote=False))
        _check_keys(row, beside)
        length.append(len(pairs))
        counts += pairs
        items.append(row["items"])
    _check_numbers([sum(items) or 1], MOST_ITEMS)
    patterns = Patterns(
        np.array(suggested, np.int32),
        np.concatenate([[0], np.cumsum(length, dtype=np.int64)]),
        np.array([category for category, _ in counts], np.int32),
        np.array([number for _, number in counts], np.int64),
        np.array(items, np.int64),
    )
    sides = beside.sides() if beside else None
    return Saved(categories, orders, missing, patterns.merged(), sides, tuple(remarks))


class _Beside:
    """What stands beside the votes of a file's patterns, a row for each."""

    def __init__(self, held: dict[str, Any], place: _Places) -> None:
        names = held["labelers"]
        if type(names) is not list or not names or not all(type(name) is str for name in names):
            raise ValueError("'labelers' is not a list of names.")
        if len(set(names)) < len(names):
            raise ValueError("'labelers' names one twice.")
        self._names, self._codes = tuple(names), place
        if held["strata"] is not None and type(held["strata"]) is not list:
            raise ValueError("'strata' is not a list of names.")
        if type(held["weights"]) is not bool:
            raise ValueError("'weights' is neither true nor false.")
        self._strata = None if held["strata"] is None else unite(declare(held["strata"]))
        self._places = {(type(name), name): place for place, name in enumerate(self._strata or ())}
        self._weighted = held["weights"]
        self._labels: list[list[int]] = []
        self._stratum: list[int] = []
        self._weight: list[float] = []

    @property
    def keys(self) -> list[str]:
        """What a row has beside its label, votes and items."""
        return ["stratum"] * (self._strata is not None) + ["weight"] * self._weighted

    def add(self, row: dict[str, Any]) -> int:
        """Check and keep a row, and return its place."""
        if type(row["suggested"]) is not list or len(row["suggested"]) != len(self._names):
            raise ValueError(f"{shown([row])} has not one label for each labeler.")
        self._labels.append([_place(label, self._codes, vote=False) for label in row["suggested"]])
        if self._strata is not None:
            stratum = type(row["stratum"]), row["stratum"]
            if stratum not in self._places:
                raise ValueError(f"{shown([row['stratum']])} is not among its strata.")
            self._stratum.append(self._places[stratum])
        if self._weighted:
            weight = row["weight"]
            if type(weight) not in (int, float) or not 0 <= weight < float("inf"):
                raise ValueError(f"{shown([weight])} is not a weight.")
            self._weight.append(float(weight))
        return len(self._labels) - 1

    def sides(self) -> Sides:
        return Sides(
            self._names,
            np.array(self._labels, np.int32).reshape(-1, len(self._names)).T,
            self._strata or (),
            None if self._strata is None else np.array(self._stratum, np.int32),
            np.array(self._weight) if self._weighted else None,
        )


def _place(label: Any, place: _Places, vote: bool) -> int:
    if (type(label), label) not in place or (vote and label is None):
        raise ValueError(f"{shown([label])} is not among its categories.")
    return place[type(label), label]


def _check_keys(row: dict[str, Any], beside: _Beside | None) -> None:
    """Refuse what would be passed over: a weight or a stratum where the file says that there are none."""
    known = {"suggested", "votes", "items", *(beside.keys if beside else ())}
    if not row.keys() <= known:
        raise ValueError(f"{shown([row])} has {shown(sorted(row.keys() - known))}, which the file says nothing of.")


def _check_numbers(values: list[Any], most: int) -> None:
    for value in values:
        if type(value) is not int or not 0 < value <= most:
            raise ValueError(f"{shown([value])} is not a whole number from 1 to {most:,}.")
