"""All data sets by all engines, rows shuffled, split into tallies that are added up: one set of bits."""

from __future__ import annotations

import csv
import json
import random
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from hashlib import sha256
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

import dhkappa

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import engines
import oracle
import postgres

DATA = Path(__file__).parents[1].parent / "shared" / "data"
SPLITS = (1, 7, 100)
IN_MEMORY = ("lists", "numpy votes", "numpy counts", "pandas", "polars", "polars-lazy", "pyarrow")
SLOW = ("dask", "pyspark")
SLOW_IN_PARTS = ("irrcac_raw4raters",)
"""Of what takes long by a hundred tables: the sets that are counted so all the same."""

MIXED = "each part by another"

Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class Set:
    """A data set as its files hold it: rows of votes or of items, and the words that name the columns.

    Attributes
    ----------
    votes : the table of votes, or of items with a column of counts a category
    items : the table of items, where the other is of votes
    words : which column plays which part
    labelers : columns of suggested labels
    categories : in the order of the columns of counts; None where they are as found
    """

    name: str
    votes: Columns
    items: Columns | None
    words: Mapping[str, Any]
    labelers: tuple[str, ...]
    categories: tuple[str, ...] | None = None

    @property
    def of_items(self) -> Columns:
        """The table with a row an item; of votes without a table of items, the items that they name."""
        if self.items is not None:
            return self.items
        return self.votes if "counts" in self.words else {"item": list(dict.fromkeys(self.votes["item"]))}

    def split(self, parts: int, seed: int) -> list[Set]:
        """Shuffle rows, and deal the items out into parts that differ by one item at most."""
        draw = random.Random(f"{self.name} {parts} {seed}")
        names = draw.sample(self.of_items["item"], len(self.of_items["item"]))
        part_of = {name: place % parts for place, name in enumerate(names)}
        tables = []
        for columns in (self.votes, self.items):
            rows: list[list[int]] = [[] for _ in range(parts)]
            for row, name in enumerate([] if columns is None else columns["item"]):
                rows[part_of[name]].append(row)
            for some in rows:
                draw.shuffle(some)
            tables.append(rows)
        return [
            replace(self, votes=_take(self.votes, own), items=None if self.items is None else _take(self.items, listed))
            for own, listed in zip(*tables, strict=True)
        ]

    def listed(self) -> tuple[list[list[str]], dict[str, list[str | None]] | None]:
        """Return a list of votes for each item, and the labels of each labeler."""
        table, cast = self.of_items, defaultdict[str, list[str]](list)
        if "counts" in self.words:
            for category in self.words["counts"]:
                for item, number in zip(table["item"], table[category], strict=True):
                    cast[item] += [category] * number
        else:
            times = self.votes.get("count") or [1] * len(self.votes["item"])
            for item, label, number in zip(self.votes["item"], self.votes["label"], times, strict=True):
                cast[item] += [label] * number
        found = {name: table[name] for name in self.labelers} or None
        return [cast[item] for item in table["item"]], found


def _take(columns: Columns, rows: Sequence[int]) -> Columns:
    return {name: [values[row] for row in rows] for name, values in columns.items()}


def load(folder: Path) -> list[Set]:
    """Read what a folder of the data holds: one set, or two where votes are there a row each and counted."""
    found = []
    for path in sorted(folder.glob("*.csv")):
        if path.name == "items.csv" and len(list(folder.glob("*.csv"))) > 1:
            continue
        votes, beside = _columns(path), folder / "items.csv"
        items = _columns(beside) if beside.exists() and beside != path else None
        labelers = tuple(name for name in items or votes if name not in _PARTS and _is_suggested(beside, name))
        if path.name in ("annotations.csv", "counts_long.csv"):
            words: dict[str, Any] = {name: name for name in _PARTS if name in votes}
            name = folder.name if path.name != "annotations.csv" or items else f"{folder.name}, a row a vote"
            found.append(Set(name, votes, items, words, labelers))
        else:
            categories = tuple(name for name in votes if name != "item" and name not in labelers)
            votes |= {name: list(map(int, votes[name])) for name in categories}
            words = {"item": "item", "counts": list(categories)}
            found.append(Set(folder.name, votes, None, words, labelers, categories))
    return found


_PARTS = ("item", "label", "annotator", "count")


def _is_suggested(path: Path, name: str) -> bool:
    """Tell whether a column, by its name without the mark, holds suggested labels."""
    return path.exists() and f"suggested_{name}" in path.read_text(encoding="utf-8").split("\n", 1)[0].split(",")


def _columns(path: Path) -> Columns:
    """Read a file: text as it is, empty fields as missing, counts as numbers; labelers without their mark."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    values = [[row[place] or None for row in rows] for place in range(len(header))]
    columns: Columns = {name.removeprefix("suggested_"): column for name, column in zip(header, values, strict=True)}
    if "count" in columns:
        columns["count"] = list(map(int, columns["count"]))
    return columns


# Ways to count one part.

Way = Callable[[Set, Path], dhkappa.Tally]


def by_lists(part: Set, folder: Path) -> dhkappa.Tally:
    """Count lists of votes."""
    votes, suggested = part.listed()
    return dhkappa.tally(votes, suggested, categories=part.categories)


def by_array(part: Set, folder: Path) -> dhkappa.Tally:
    """Count an n x N array of votes."""
    votes, suggested = part.listed()
    grid = np.full((len(votes), max(map(len, votes))), None, object)
    for row, cast in zip(grid, votes, strict=True):
        row[: len(cast)] = cast
    return dhkappa.tally(grid, suggested, categories=part.categories)


def by_matrix(part: Set, folder: Path) -> dhkappa.Tally:
    """Count an n x m matrix of counts, whose columns are the categories declared."""
    votes, suggested = part.listed()
    assert part.categories is not None
    place = {label: column for column, label in enumerate(part.categories)}
    counts = np.zeros((len(votes), len(place)), np.int64)
    for row, cast in zip(counts, votes, strict=True):
        for label, number in Counter(cast).items():
            row[place[label]] = number
    return dhkappa.tally(counts=counts, suggested=suggested, categories=part.categories)


def by_table(make: Callable[[Columns], Any]) -> Way:
    """Count tables that a function makes of columns."""

    def counted(part: Set, folder: Path) -> dhkappa.Tally:
        table, words = tables_of(part, make)
        return dhkappa.tally(table, list(part.labelers) or None, categories=part.categories, **words)

    return counted


def tables_of(part: Set, make: Callable[[Columns], Any]) -> tuple[Any, dict[str, Any]]:
    """Make the tables of a set, and return that of votes and the words beside it."""
    words = dict(part.words) | ({} if part.items is None else {"items": make(part.items)})
    return make(part.votes), words


def _by_file(ending: str) -> Way:
    def counted(part: Set, folder: Path) -> dhkappa.Tally:
        return by_table(lambda columns: file_of(columns, folder, ending))(part, folder)

    return counted


def file_of(columns: Columns, folder: Path, ending: str) -> Path:
    """Write columns to a file of their own."""
    with tempfile.NamedTemporaryFile(dir=folder, suffix=ending, delete=False) as file:
        path = Path(file.name)
    if ending == ".parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table(columns), path)
        return path
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = zip(*columns.values(), strict=True)
        if ending == ".csv":
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(rows)
        else:
            file.writelines(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)
    return path


def _kinds(columns: Columns) -> dict[str, str]:
    kinds = {name: engines.kind_of(values) for name, values in columns.items()}
    return {name: "text" if kind == "null" else kind for name, kind in kinds.items()}


def maker(engine: engines.Engine) -> Callable[[Columns], Any]:
    """Return how an engine makes a table of columns."""
    return lambda columns: engine.made_by(columns, _kinds(columns))


def ways() -> tuple[dict[str, Way], dict[str, str]]:
    """Return every way to count that there is here, and why others are absent."""
    found: dict[str, Way] = {"lists": by_lists, "numpy votes": by_array, "numpy counts": by_matrix}
    absent = {}
    for engine in engines.ENGINES:
        lacks = engine.lacks()
        if engine.name == "ibis-postgres" and not engines._server:
            lacks = lacks or "no Postgres server could be started"
        if lacks:
            absent[engine.name] = lacks
        else:
            found[engine.name] = by_table(maker(engine))
    return found | {f"{ending[1:]} files": _by_file(ending) for ending in (".csv", ".jsonl", ".parquet")}, absent


@contextmanager
def a_server() -> Iterator[None]:
    """Run Postgres for its engine, where it is installed."""
    programs = postgres._programs()
    if programs is None:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="dhkappa-pg-") as folder:
        for server in postgres._serve(programs, Path(folder)):
            engines._server.append(server)
            yield


# What is compared.


def bits(tally: dhkappa.Tally) -> dict[str, str]:
    """Return all that can be asked of a tally, every float to the bit, and the file that it is saved as."""
    with tempfile.TemporaryDirectory() as folder:
        tally.save(f"{folder}/tally.json")
        found = {"tally": Path(folder, "tally.json").read_text(encoding="utf-8")}
    fleiss = dhkappa.fleiss_kappa(tally)
    found["Fleiss"] = _hex([fleiss.to_dict(), str(fleiss.exact)])
    if tally.labelers:
        audit = dhkappa.audit(tally, rng=7, progress=False)
        found["audit"] = _hex(audit.to_dict())
        for name, kappa in audit.kappas.items():
            found[f"exact {name}"] = repr((kappa.exact, kappa.parts and (kappa.parts.C, kappa.parts.L, kappa.parts.E)))
            limits = [list(kappa.interval(level, how)) for how in ("beta", "logit", "wald") for level in (0.9, 0.99)]
            drawn = kappa.bootstrap(50, rng=7, progress=False).values.tolist() if kappa.exact is not None else []
            found[f"intervals {name}"] = _hex([kappa.se, kappa.above_floor, limits, drawn])
    return found


def _hex(value: Any) -> str:
    """Write a value with every float as its bits."""

    def plain(one: Any) -> Any:
        if isinstance(one, dict):
            return {str(key): plain(held) for key, held in one.items()}
        if isinstance(one, (list, tuple)):
            return [plain(held) for held in one]
        return float(one).hex() if isinstance(one, float) else one

    return json.dumps(plain(value), default=str)


def whole_audit(part: Set, make: Callable[[Columns], Any]) -> str:
    """Return an audit of tables with all its people and items, every float to the bit."""
    table, words = tables_of(part, make)
    named = list(part.labelers)
    audit = dhkappa.audit(table, named, categories=part.categories, rng=7, progress=False, **words)
    found = audit.to_dict(most=None)
    for labeler in found["labelers"].values():
        labeler["items"].sort(key=lambda row: row["item"])  # items alike stand in the order of rows
    return _hex(found)


def exact_kappas(whole: Set) -> dict[str, Fraction | None]:
    """Return the kappa of each labeler and Fleiss' kappa, by loops over the pairs of annotators of each item.

    The definitions are the oracle's, eq. 1-13; only what is 0 is left out: categories without votes on an item.
    """
    votes, suggested = whole.listed()
    found: dict[str, Fraction | None] = {}
    for name in ("", *(suggested or {})):
        items, own, _ = oracle.eligible(votes, suggested[name] if suggested and name else [True] * len(votes))
        D: list[Fraction] = []
        shares: defaultdict[Any, Fraction] = defaultdict(Fraction)
        for item, label in zip(items, own, strict=True):
            for j in set(item):
                agreed = oracle.pair_share(item, j)
                D.append(agreed if j == label or not name else -agreed)
                shares[j] += oracle.vote_share(item, j)
        chance = {j: (share / len(items)) ** 2 for j, share in shares.items()}
        same = sum(chance.values(), Fraction(0))
        on_label = [2 * number * chance.get(label, Fraction(0)) for label, number in Counter(own).items()]
        E = sum(on_label, Fraction(0)) / len(items) - same if name else same
        found[name] = oracle.beyond_chance(len(items), sum(D, Fraction(0)) / len(items), E)
    return found


@dataclass
class Found:
    """How many combinations were counted, and which were not the same."""

    combinations: Counter[tuple[str, int]] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    tallies: int = 0
    audits: int = 0
    values: int = 0
    wrong: list[str] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)


def plans(way: str, name: str, quick: bool) -> list[tuple[int, int]]:
    """Return the splits and seeds to count a set with by a way."""
    if way in SLOW:
        return [(1, 1), (7, 2), *([] if quick else [(100, 3)])]
    if quick and way not in IN_MEMORY:
        return [(1, 1), (7, 2)] + ([(100, 3)] if name in SLOW_IN_PARTS else [])
    seeds = {1: (1, 2), 7: (3, 4), 100: (5,)}
    return [(parts, seed) for parts in SPLITS for seed in seeds[parts][: 1 if quick else 2]]


def run(sets: Sequence[Set], found_ways: Mapping[str, Way], quick: bool = False) -> Found:
    """Count every set in every way, and compare all results with those of lists in the order of the files."""
    found = Found()
    with tempfile.TemporaryDirectory(prefix="dhkappa-numbers-") as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        for whole in sets:
            tally = by_lists(whole, folder)
            first = bits(tally)
            named = replace(whole, categories=tuple(map(str, tally.categories)))
            found.digests[whole.name] = sha256(json.dumps(first).encode()).hexdigest()
            _against_oracle(whole, tally, found)
            for way, count in found_ways.items():
                begun = time.monotonic()
                if count is by_matrix:
                    given, wanted = named, first if whole.categories else bits(by_lists(named, folder))
                else:
                    given, wanted = whole, first
                for parts, seed in plans(way, whole.name, quick):
                    _compare(given, way, count, parts, seed, wanted, folder, found)
                found.seconds[way] += round(time.monotonic() - begun)
            _mixed(whole, found_ways, first, folder, found)
            _audits(whole, found_ways, folder, found)
            print(whole.name, dict(found.seconds), len(found.wrong), flush=True)
    return found


def _against_oracle(whole: Set, tally: dhkappa.Tally, found: Found) -> None:
    for name, exact in exact_kappas(whole).items():
        kappa = dhkappa.dh_kappa(tally, name) if name else dhkappa.fleiss_kappa(tally)
        found.values += 1
        if kappa.exact != exact or (exact is not None and kappa.value != float(exact)):
            found.wrong.append(f"{whole.name}, {name or 'Fleiss'}: {kappa.exact}, the oracle has {exact}")


def _compare(
    whole: Set, way: str, count: Way, parts: int, seed: int, first: dict[str, str], folder: Path, found: Found
) -> None:
    """Count a set in parts, add them up in a random order, and compare."""
    tallies = [count(part, folder) for part in whole.split(parts, seed) if part.of_items["item"]]
    random.Random(seed).shuffle(tallies)
    _note(f"{whole.name} by {way}, {parts} tallies, seed {seed}", bits(reduce(add, tallies)), first, found)
    found.combinations[way, parts] += 1
    found.tallies += len(tallies)


def _mixed(whole: Set, found_ways: Mapping[str, Way], first: dict[str, str], folder: Path, found: Found) -> None:
    """Count each of a few parts by another engine, and add up what came of them."""
    some = {way: count for way, count in found_ways.items() if count is not by_matrix}
    parts = whole.split(len(some), 8)
    pairs = zip(parts, some.values(), strict=True)
    tallies = [count(part, folder) for part, count in pairs if part.of_items["item"]]
    random.Random(8).shuffle(tallies)
    _note(f"{whole.name}, every part by another engine", bits(sum(tallies, dhkappa.Tally())), first, found)
    found.combinations[MIXED, len(some)] += 1
    found.tallies += len(tallies)


def _audits(whole: Set, found_ways: Mapping[str, Way], folder: Path, found: Found) -> None:
    """Audit tables of every engine, with people and items, rows shuffled."""
    if not whole.labelers:
        return
    first = None
    for engine in engines.ENGINES:
        if engine.name in found_ways:
            part = whole.split(1, 9 + found.audits)[0]
            text = whole_audit(part, maker(engine))
            first = first or {"audit of a table": text}
            _note(f"{whole.name}, a table of {engine.name} audited", {"audit of a table": text}, first, found)
            found.audits += 1


def _note(what: str, now: dict[str, str], first: dict[str, str], found: Found) -> None:
    for key in first:
        if now.get(key) != first[key]:
            one, two = now.get(key, ""), first[key]
            place = next((at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), 0)
            found.wrong.append(
                f"{what}: {key}: {one[max(place - 60, 0) : place + 40]!r}, not {two[place : place + 40]!r}"
            )
            print(found.wrong[-1], flush=True)
