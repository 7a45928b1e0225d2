"""Tally: exact counts that add up, as an object and as a versioned JSON file that is checked number by number."""

from __future__ import annotations

import copy
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from dhkappa.core import Categories, Label
from dhkappa.core.grouping import BLOCK, EMPTY, MAX_ITEMS, MAX_VOTES, Encoded, Entries, Patterns
from dhkappa.core.items import Counts, ItemColumns, add, single_labeler
from dhkappa.core.labels import SourceNote, check_categories, check_declared, natural_key, union
from dhkappa.errors import DataError, counted, invalid, shown
from dhkappa.inputs.arrays import LABELER, declared_categories, missing_labels
from dhkappa.inputs.columns import RoleKeywords
from dhkappa.inputs.dates import Date, check_date
from dhkappa.paths import FileStates, check_regular, file_name, system_message, write_file

if TYPE_CHECKING:  # imported when needed
    from dhkappa.inputs.check import Check
    from dhkappa.inputs.problems import Evidence

_Codes = dict[tuple[type, Label | None], int]  # by type and label: to Python, True and 1.0 equal 1
_MAX_TABLES = 64
_FORMAT = "dhkappa-tally"
_VERSION = 2
MANY_ITEMS = 20  # of two tallies that are hardly equal by chance


class Tally:
    """Exact integer counts of votes and suggested labels, which can be added, saved and loaded.

    A tally keeps each distinct pattern (suggested labels, votes by category, stratum, sample weight) with the number of
    items that share it. Its size depends on the number of patterns, not of items. Update it from one thread at a time;
    threads and machines keep a tally each, and add them.

    Parameters
    ----------
    categories
        The possible labels, in order; any other label is an error. By default the labels that occur, in natural order.
    missing
        Labels that mean missing, such as ``"NA"``.

    Examples
    --------
    >>> monday = Tally()
    >>> monday.update([["cat", "cat"], ["cat", "dog"]], ["cat", "dog"])
    >>> tuesday = Tally()
    >>> tuesday.update([["dog", "dog", "bird"]], ["dog"])
    >>> monday + tuesday
    Tally(3 items, 7 votes, 3 categories, 3 patterns, labelers 'labeler')
    """

    __slots__ = ("_categories", "_missing", "_orders", "_tables")

    def __init__(self, categories: Iterable[Any] | None = None, *, missing: Iterable[Any] = ()) -> None:
        self._missing = missing_labels(missing)
        declared = declared_categories(categories, self._missing)
        self._categories = declared or ()
        self._orders = frozenset() if declared is None else frozenset([declared])  # every order that was declared
        self._tables: list[Counts] = []

    @classmethod
    def of(cls, counts: Counts, declared: Categories | None, missing: frozenset[Label]) -> Self:
        """Return the tally of some counts."""
        made = cls(declared, missing=missing)
        made._include(counts)
        return made

    @property
    def categories(self) -> Categories:
        """The categories, declared or found, in order."""
        return self._categories

    @property
    def declared(self) -> bool:
        """Whether the categories, and so their order, were declared."""
        return self._orders == {self._categories}

    def same_content(self, other: Tally) -> bool:
        """Tell whether another tally is of the same items; small ones may be equal by chance, and are not the same."""
        sizes = [(each.n_items, each.n_votes, len(each)) for each in (self, other)]
        return sizes[0] == sizes[1] and self.n_items >= MANY_ITEMS and self == other

    @property
    def missing(self) -> frozenset[Label]:
        """Labels that mean missing."""
        return self._missing

    @property
    def labelers(self) -> tuple[str, ...]:
        """The names of the labelers; labels passed without a name are those of ``"labeler"``."""
        return self.counts.columns.labelers if self._tables else ()

    @property
    def strata(self) -> Categories:
        """The strata, in order; empty if there are none."""
        return self.counts.columns.strata

    @property
    def source_notes(self) -> tuple[str, ...]:
        """Sentences about where the votes came from, such as what an export holds besides votes."""
        return self.counts.source_notes

    @property
    def patterns(self) -> Patterns:
        """The distinct patterns, in codes of ``categories``."""
        return self.counts.patterns

    @property
    def counts(self) -> Counts:
        """All that was counted, as one table."""
        if not self._tables:
            return Counts(self._categories, EMPTY, single_labeler(LABELER, self._categories))
        if len(self._tables) != 1 or self._tables[0].categories != self._categories:
            self._tables = [add(self._tables, self._categories)]
        return self._tables[0]

    @property
    def n_items(self) -> int:
        """The number of items, eligible or not."""
        return sum(table.n_items for table in self._tables)

    @property
    def n_votes(self) -> int:
        """The number of votes on them."""
        return sum(table.patterns.n_votes() for table in self._tables)

    def __len__(self) -> int:
        return len(self.patterns)

    def __repr__(self) -> str:
        labelers = [f"labelers {shown(self.labelers)}"] if self.labelers else []
        return f"Tally({describe(self.counts, counted(len(self), 'pattern'), *labelers)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        if self._categories != other._categories or _difference(self._tables, other._tables):
            return False
        right = other.counts
        minus = replace(right, patterns=replace(right.patterns, items=-right.patterns.items))
        return not add([self.counts, minus], self._categories).patterns.items.any()

    __hash__ = None  # type: ignore[assignment]  # a tally can change

    def check(self, *, allow: Iterable[str] = ()) -> Check:
        """Say what was counted, and find problems that can make a result wrong; see ``Dataset.check``."""
        from dhkappa.inputs.check import Check, check_of, find_problems
        from dhkappa.inputs.problems import accept

        accept((), allow)
        return check_of(self.evidence(), find_problems(self.evidence(), allow), Check((), "tally"))

    def evidence(self, labelers: Sequence[str] | None = None, *, ordered: bool = False, fetch: bool = True) -> Evidence:
        """Return what the rules about problems look at."""
        from dhkappa.inputs.problems import Evidence

        chosen = self.labelers if labelers is None else map(self.counts.columns.labeler, labelers)
        return Evidence(self.counts, ordered=ordered, labelers=tuple(chosen))

    def copy(self) -> Tally:
        """Return a copy that later updates of this tally do not change."""
        return copy.copy(self)  # updates assign new values

    def update(
        self,
        data: Any = None,
        suggested: Any = None,
        *,
        counts: Any = None,
        sample_weight: Any = None,
        strata: Any = None,
        **roles: Unpack[RoleKeywords],
    ) -> None:
        """Count more items, with parameters as for ``Dataset``. After an error the tally is unchanged.

        Items without suggested labels count for Fleiss' kappa only.
        """
        from dhkappa.inputs.dataset import Dataset, PartDataset  # which import this module

        own: dict[str, Any] = {"counts": counts, "sample_weight": sample_weight, "strata": strata, **roles}
        if isinstance(data, Dataset):  # with categories of its own
            given = Dataset(data, suggested, **own)
            if self.declared:
                check_declared(given.categories, self._categories, "data")
            self._merge(given.tally())
            return
        declared = self._categories if self.declared else None
        given = PartDataset(data, suggested, categories=declared, missing=self._missing, **own)
        given._known = self._categories
        given.check_single()
        names = given.arrays.votes.labels if counts is not None and given.table is None else ()
        if names and isinstance(names, range):  # columns without names are positions
            places = range(max(len(names), len(self._categories)))
            if not all(category in places for category in self._categories):
                message = f"The columns of counts have no names, and this tally counts {shown(self._categories)}."
                hint = "Pass counts as a dataframe, or make the tally with $categories."
                raise invalid("counts", message, code="unnamed-columns", hint=hint)
        self._include(given.counts)

    def _include(self, table: Counts) -> None:
        if table.columns.cluster is not None:
            message = "A tally does not support clusters: it does not know the cluster of an item."
            hint = "Pass the data themselves with $clusters, or omit $clusters."
            raise invalid("clusters", message, code="option-not-supported", hint=hint)
        categories = union(self._categories, table.categories) if self._categories else table.categories
        self._add([table], self._categories if self.declared else categories)

    def __radd__(self, other: int) -> Tally:
        return self.copy() if other == 0 else NotImplemented  # sum() starts from 0

    def __add__(self, other: Tally) -> Tally:
        """Count the items of both; an item in both counts twice.

        Categories are united. A declared order is kept if it has all of them, else they are sorted.
        """
        if not isinstance(other, Tally):
            return NotImplemented
        total = self.copy()
        total._merge(other)
        return total

    def _merge(self, other: Tally) -> None:
        """Count the items of another tally, too."""
        if both := self._missing.intersection(other._categories) or other._missing.intersection(self._categories):
            message = f"{shown(sorted(map(str, both)))} means missing in one tally and is a category in the other."
            hint = "Make both tallies with the same $missing."
            raise invalid("missing", message, code="different-missing", hint=hint)
        orders = self._orders | other._orders
        self._add(other._tables, _settle(orders, union(self._categories, other._categories)))
        self._missing, self._orders = self._missing | other._missing, orders

    def _add(self, tables: Sequence[Counts], categories: Categories) -> None:
        """Append tables, and merge them when the number of rows has doubled."""
        if self.n_items + sum(table.n_items for table in tables) > MAX_ITEMS:
            raise DataError(f"A tally holds at most {MAX_ITEMS:,} items.", code="too-many-items")
        if difference := _difference(self._tables, tables):
            message = "Items counted together must have the same labelers, and all or none have strata and weights: "
            hint = "Pass None as the labels of a labeler that is absent." if "labelers" in difference else ""
            raise DataError(f"{message}{difference}.", code="different-columns", hint=hint)
        tables = [*self._tables, *tables]
        try:
            union(*(table.columns.strata for table in tables))
        except DataError as error:
            message = error.message.replace("Labels", "Strata", 1)
            raise DataError(message, code=error.code, parameter="strata", hint=error.hint) from None
        fresh = sum(len(table.patterns) for table in tables[1:])
        if tables and (fresh > max(len(tables[0].patterns), BLOCK) or len(tables) > _MAX_TABLES):
            tables = [add(tables, categories)]
        self._tables, self._categories = tables, categories

    def save(self, path: str | os.PathLike[str], *, date: Date | None = None) -> None:
        """Write the tally to a JSON file, atomically; with ``date``, as for ``Audit.save``, for ``dhkappa.history``."""
        write_file(path, self.file_text({} if date is None else {"date": check_date(date)}), "tally")

    def file_text(self, more: Mapping[str, Any]) -> str:
        """Return the content of the file, with more keys."""
        counts = add([self.counts], self._categories)  # item columns in a canonical order: equal tallies, equal files
        columns = counts.columns
        held = {
            "format": _FORMAT,
            "version": _VERSION,
            **more,
            "categories": counts.categories,
            "declared": sorted(self._orders, key=repr),
            "missing": sorted(self._missing, key=natural_key),
            "items": counts.n_items,
            "votes": counts.patterns.n_votes(),
            "source_notes": [_saved_note(note) for note in counts.source_notes],
            "labelers": columns.labelers,
            "strata": None if columns.stratum is None else columns.strata,
            "sample_weight": columns.weight is not None,
        }
        import json  # takes time

        lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in held.items()]
        lines.append('"patterns": [\n' + ",\n".join(map(json.dumps, pattern_rows(counts))) + "\n]")
        return "{" + ",\n".join(lines) + "}\n"

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a tally that ``save`` wrote, or a saved audit without agreement weights and pool."""
        held, name = read_file(path)
        about = held.get("audit")
        known = {"weights": "agreement weights", "pool": "a pool"}
        lost = [what for key, what in known.items() if isinstance(about, dict) and about.get(key) is not None]
        if lost:
            message = f"{name} is a saved audit with {' and '.join(lost)}, which a tally does not hold."
            hint = "Use dhkappa.SavedAudit.load or dhkappa history, or count the data with dhkappa tally make."
            raise DataError(message, code="saved-audit-options", hint=hint)
        return cls.of_file(held, name)

    @classmethod
    def of_file(cls, held: dict[str, Any], name: str) -> Self:
        """Return the tally in a file with this content and name."""
        result = cls()
        try:
            result._restore(held)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            what = f"{error.args[0]!r} is missing." if isinstance(error, KeyError) else str(error)
            what = what if what.endswith(".") else f"a value has the wrong type ({what})."
            raise damaged(name, what) from None
        found, claimed = (result.n_items, result.n_votes), (held.get("items"), held.get("votes"))
        if found != claimed or not all(type(number) is int for number in claimed):
            sums = f"{found[0]:,} items and {found[1]:,} votes"
            raise damaged(name, f"its patterns add up to {sums}, but it says {shown(claimed)}.")
        return result

    def _restore(self, held: dict[str, Any]) -> None:
        """Check the content of a file and take it; raise ValueError, TypeError or KeyError if it is invalid."""
        for key in ("categories", "declared", "missing", "patterns", "labelers", "source_notes"):
            if type(held[key]) is not list:
                raise ValueError(f"{key!r} is not a list.")
        notes = [_read_note(note) for note in held["source_notes"]]
        if not all(type(text) is str for text in held["labelers"]):
            raise ValueError("'labelers' must be a list of text.")
        if not held["labelers"] or len(set(held["labelers"])) < len(held["labelers"]):
            raise ValueError("'labelers' is empty or names one twice.")
        categories, self._missing = check_categories(held["categories"]), frozenset(check_categories(held["missing"]))
        self._orders = frozenset(check_categories(order) for order in held["declared"])
        for order in self._orders:
            check_declared(order, categories, "declared")
        if both := self._missing.intersection(categories):
            raise ValueError(f"{shown(both)} is both a category and missing.")
        codes: _Codes = {(type(label), label): code for code, label in enumerate(categories)}
        patterns = _read_patterns(held["patterns"], codes)
        columns = _read_columns(held, categories, codes | {(type(None), None): -1})
        self._tables = [add([Counts(categories, patterns, columns, tuple(notes))], categories)]
        self._categories = _settle(self._orders, union(categories))


def _saved_note(note: str) -> str | dict[str, str]:
    """Return a note for JSON: its text, or code and text."""
    code = getattr(note, "code", "source")
    return note if code == "source" else {"code": code, "text": str(note)}


def _read_note(held: Any) -> str:
    if type(held) is str:
        return held
    if type(held) is dict and held.keys() == {"code", "text"} and all(type(text) is str for text in held.values()):
        return SourceNote(held["code"], held["text"])
    raise ValueError("'source_notes' must hold texts, or texts with a code.")


def describe(counts: Counts, *more: str) -> str:
    """Say how many items, votes and categories there are, and more."""
    sizes = ((counts.n_items, "item"), (counts.patterns.n_votes(), "vote"), (len(counts.categories), "category"))
    return ", ".join([*(counted(*size) for size in sizes), *more])


def _difference(left: Sequence[Counts], right: Sequence[Counts]) -> str:
    """Say how the item columns of two lists of tables differ; empty if they do not, or if one is empty."""
    left, right = ([table for table in tables if len(table.patterns)] for tables in (left, right))
    if not left or not right:
        return ""
    one, two = left[0].columns, right[0].columns
    if sorted(one.labelers) != sorted(two.labelers):
        return f"some have the labelers {shown(one.labelers)}, others {shown(two.labelers)}"
    if (one.stratum is None) != (two.stratum is None):
        return "some have strata, others do not"
    return "some have weights, others do not" if (one.weight is None) != (two.weight is None) else ""


def _settle(orders: frozenset[Categories], labels: Categories) -> Categories:
    """Return the labels in the one declared order, if it has them all; else as they are, sorted."""
    if len(orders) == 1:
        (order,) = orders
        found = {label: label for label in labels}  # 1 rather than True if both occur
        if len(order) == len(labels) and all(label in found for label in order):
            return tuple(found[label] for label in order)
    return labels


def pattern_rows(counts: Counts) -> list[dict[str, Any]]:
    """Return the patterns, sorted."""
    patterns, names, columns = counts.patterns, counts.categories, counts.columns
    pairs = list(zip(patterns.code.tolist(), patterns.votes.tolist(), strict=True))
    spans = [pairs[first:end] for first, end in pairwise(patterns.start.tolist())]
    rows = sorted(zip(patterns.suggested.tolist(), spans, patterns.items.tolist(), strict=True))
    labels = [[column.labels[digit] for digit in column.digits().tolist()] for column in columns.labels.values()]
    stratum = None if columns.stratum is None else [columns.strata[place] for place in columns.stratum.values.tolist()]
    weight = None if columns.weight is None else columns.weight.tolist()
    return [
        {
            "suggested": [column[row] for column in labels],
            **({} if stratum is None else {"stratum": stratum[row]}),
            **({} if weight is None else {"weight": weight[row]}),
            "votes": [[names[category], number] for category, number in votes],
            "items": items,
        }
        for row, votes, items in rows
    ]


def read_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], str]:
    """Read the file of a tally of this version; return its content, and its name for errors."""
    import json

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
        raise damaged(name, f"{error}.", "It may be incomplete.") from None
    if not isinstance(held, dict) or held.get("format") != _FORMAT:
        hint = "Make one with dhkappa tally make, or with Tally.save."
        raise DataError(f"{name} is not a tally.", code="not-a-tally", hint=hint)
    if type(held.get("version")) is not int or held["version"] != _VERSION:
        message = f"{name} is a tally of version {shown([held.get('version')])}; this dhkappa reads version {_VERSION}."
        raise DataError(message, code="tally-version", hint="Make it again from the data, or update dhkappa.")
    return held, name


def damaged(name: str, what: str, hint: str = "") -> DataError:
    """Return the error for a file that does not hold what it should."""
    return DataError(f"{name} is a damaged tally file: {what}", code="damaged-tally", hint=hint)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a JSON object with a repeated key."""
    held = dict(pairs)
    if len(held) < len(pairs):
        twice = next(name for name, number in Counter(name for name, _ in pairs).items() if number > 1)
        raise ValueError(f"the key {shown([twice])} is repeated")
    return held


def _read_patterns(rows: list[dict[str, Any]], codes: _Codes) -> Patterns:
    """Return the votes and the number of items of each row."""
    votes: list[list[tuple[int, int]]] = []
    for row in rows:
        pairs = sorted((_code(label, codes), number) for label, number in row["votes"])
        numbers = [number for _, number in pairs]
        _check_numbers([row["items"]], MAX_ITEMS)
        _check_numbers(numbers, MAX_VOTES)
        if sum(numbers) > MAX_VOTES or len(dict(pairs)) < len(pairs):
            raise ValueError(f"{shown([row])} has too many votes, or a category twice.")
        votes.append(pairs)
    items = [row["items"] for row in rows]
    _check_numbers([sum(items) or 1], MAX_ITEMS)
    start = np.cumsum([0, *map(len, votes)], dtype=np.int64)
    code, number = np.array([*chain.from_iterable(votes)], np.int64).reshape(-1, 2).T
    pattern = np.arange(len(rows), dtype=np.int32)
    return Patterns(pattern, Entries(start, code.astype(np.int32), number), np.array(items, np.int64))


def _read_columns(held: dict[str, Any], categories: Categories, codes: _Codes) -> ItemColumns:
    """Return labels, stratum and weight of each row."""
    rows, names = held["patterns"], held["labelers"]
    if held["strata"] is not None and type(held["strata"]) is not list:
        raise ValueError("'strata' is not a list.")
    if type(held["sample_weight"]) is not bool:
        raise ValueError("'sample_weight' is neither true nor false.")
    strata = None if held["strata"] is None else union(check_categories(held["strata"]))
    place_of: _Codes = {(type(name), name): place for place, name in enumerate(strata or ())}
    known = {"suggested", "votes", "items", *["stratum"] * (strata is not None), *["weight"] * held["sample_weight"]}
    labels: list[list[int]] = []
    places: list[int] = []
    for row in rows:
        if row.keys() != known:
            raise ValueError(f"{shown([row])} has the keys {shown(sorted(row), 10)}, not {shown(sorted(known), 10)}.")
        if type(row["suggested"]) is not list or len(row["suggested"]) != len(names):
            raise ValueError(f"{shown([row])} must have one label per labeler.")
        labels.append([_code(label, codes) + 1 for label in row["suggested"]])
        if strata is not None:
            places.append(_code(row["stratum"], place_of, "strata"))
        weight = row.get("weight", 0)
        if type(weight) not in (int, float) or not 0 <= weight < float("inf"):
            raise ValueError(f"{shown([weight])} is not a weight.")
    columns = np.array(labels, np.int32).reshape(-1, len(names)).T
    stratum = None if strata is None else Encoded(np.array(places, np.int32), 0, strata)
    weights = np.array([float(row["weight"]) for row in rows]) if held["sample_weight"] else None
    encoded = {name: Encoded(column, 0, (None, *categories)) for name, column in zip(names, columns, strict=True)}
    return ItemColumns(encoded, stratum, weights)


def _code(label: Any, codes: _Codes, names: str = "categories") -> int:
    if (type(label), label) not in codes:
        raise ValueError(f"{shown([label])} is not among the {names}.")
    return codes[type(label), label]


def _check_numbers(values: list[Any], most: int) -> None:
    for value in values:
        if type(value) is not int or not 0 < value <= most:
            raise ValueError(f"{shown([value])} is not a whole number from 1 to {most:,}.")
