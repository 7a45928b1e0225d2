"""Count data sets with all engines, in random row order and partitions, and compare all results to the last bit."""

from __future__ import annotations

import csv
import json
import random
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

import dhkappa
from section import ROOT

sys.path.insert(0, str(ROOT / "tests"))

import engines
import oracle
import postgres

DATA = ROOT.parent / "shared" / "data"
PARTS = (1, 7, 100)
SLOW = ("dask", "pyspark")
ROLES = ("item", "label", "annotator", "count")

Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class DataSet:
    """The tables of a data set.

    Attributes
    ----------
    votes : table in long format, or in wide format with a column of counts per category
    items : table of items, if the votes are in long format
    roles : column roles
    labelers : columns of suggested labels
    categories : of the columns of counts, in their order
    """

    name: str
    votes: Columns
    items: Columns | None
    roles: Mapping[str, Any]
    labelers: tuple[str, ...]
    categories: tuple[str, ...] | None = None

    @property
    def wide(self) -> Columns:
        """The table with a row per item."""
        if self.items is not None:
            return self.items
        return self.votes if "counts" in self.roles else {"item": list(dict.fromkeys(self.votes["item"]))}

    def partition(self, parts: int, seed: int) -> list[DataSet]:
        """Shuffle the rows, and partition the items at random into parts of equal size."""
        draw = random.Random(f"{self.name} {parts} {seed}")
        names = draw.sample(self.wide["item"], len(self.wide["item"]))
        part_of = {name: place % parts for place, name in enumerate(names)}

        def split(columns: Columns) -> list[Columns]:
            rows: list[list[int]] = [[] for _ in range(parts)]
            for row, name in enumerate(columns["item"]):
                rows[part_of[name]].append(row)
            return [
                {name: [values[row] for row in own] for name, values in columns.items()}
                for own in (draw.sample(some, len(some)) for some in rows)
            ]

        items = [None] * parts if self.items is None else split(self.items)
        found = [replace(self, votes=own, items=rows) for own, rows in zip(split(self.votes), items, strict=True)]
        return [part for part in found if part.wide["item"]]

    def lists(self) -> tuple[list[list[str]], dict[str, list[str | None]] | None]:
        """Return a list of votes for each item, and the labels of each labeler."""
        table, votes = self.wide, defaultdict[str, list[str]](list)
        if "counts" in self.roles:
            for category in self.roles["counts"]:
                for item, number in zip(table["item"], table[category], strict=True):
                    votes[item] += [category] * number
        else:
            times = self.votes.get("count") or [1] * len(self.votes["item"])
            for item, label, number in zip(self.votes["item"], self.votes["label"], times, strict=True):
                votes[item] += [label] * number
        labels = {name: table[name] for name in self.labelers} or None
        return [votes[item] for item in table["item"]], labels


def load(folder: Path) -> list[DataSet]:
    """Read a folder: one data set, or two if the votes are there in long format and as counts."""
    found, beside = [], folder / "items.csv"
    for path in sorted(folder.glob("*.csv")):
        if path == beside and len(list(folder.glob("*.csv"))) > 1:
            continue
        votes = _columns(path)
        items = _columns(beside) if beside.exists() and beside != path else None
        header = beside.read_text(encoding="utf-8").split("\n", 1)[0].split(",") if beside.exists() else []
        labelers = tuple(name for name in items or votes if name not in ROLES and f"suggested_{name}" in header)
        if path.name in ("annotations.csv", "counts_long.csv"):
            roles: dict[str, Any] = {name: name for name in ROLES if name in votes}
            name = folder.name if path.name != "annotations.csv" or items else f"{folder.name}, long format"
            found.append(DataSet(name, votes, items, roles, labelers))
        else:
            categories = tuple(name for name in votes if name != "item" and name not in labelers)
            votes |= {name: list(map(int, votes[name])) for name in categories}
            roles = {"item": "item", "counts": list(categories)}
            found.append(DataSet(folder.name, votes, None, roles, labelers, categories))
    return found


def _columns(path: Path) -> Columns:
    """Read a CSV file, with empty fields as missing."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    values = [[row[place] or None for row in rows] for place in range(len(header))]
    columns: Columns = {name.removeprefix("suggested_"): column for name, column in zip(header, values, strict=True)}
    if "count" in columns:
        columns["count"] = list(map(int, columns["count"]))
    return columns


# Ways to count

Way = Callable[[DataSet], dhkappa.Tally]


def by_lists(part: DataSet) -> dhkappa.Tally:
    """Count lists of votes."""
    votes, suggested = part.lists()
    return dhkappa.tally(votes, suggested, categories=part.categories)


def by_array(part: DataSet) -> dhkappa.Tally:
    """Count an (n, N) array of votes."""
    votes, suggested = part.lists()
    grid = np.full((len(votes), max(map(len, votes))), None, object)
    for row, cast in zip(grid, votes, strict=True):
        row[: len(cast)] = cast
    return dhkappa.tally(grid, suggested, categories=part.categories)


def by_counts(part: DataSet) -> dhkappa.Tally:
    """Count an (n, m) matrix, whose columns are the declared categories."""
    votes, suggested = part.lists()
    place = {label: column for column, label in enumerate(part.categories or ())}
    counts = np.zeros((len(votes), len(place)), np.int64)
    for row, cast in zip(counts, votes, strict=True):
        for label, number in Counter(cast).items():
            row[place[label]] = number
    return dhkappa.tally(counts=counts, suggested=suggested, categories=part.categories)


def by_table(make: Callable[[Columns], Any]) -> Way:
    """Count tables that a function makes of columns."""
    return lambda part: dhkappa.tally(*_table(part, make), categories=part.categories, **_roles(part, make))


def _table(part: DataSet, make: Callable[[Columns], Any]) -> tuple[Any, list[str] | None]:
    return make(part.votes), list(part.labelers) or None


def _roles(part: DataSet, make: Callable[[Columns], Any]) -> dict[str, Any]:
    return dict(part.roles) | ({} if part.items is None else {"items": make(part.items)})


def _file(folder: Path, suffix: str) -> Callable[[Columns], Path]:
    def write(columns: Columns) -> Path:
        with tempfile.NamedTemporaryFile(dir=folder, suffix=suffix, delete=False) as file:
            path = Path(file.name)
        rows = zip(*columns.values(), strict=True)
        if suffix == ".parquet":
            import pyarrow.parquet

            pyarrow.parquet.write_table(pyarrow.table(columns), path)
        elif suffix == ".csv":
            with path.open("w", newline="", encoding="utf-8") as text:
                csv.writer(text).writerows([list(columns), *rows])
        else:
            path.write_text("".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows))
        return path

    return write


def maker(engine: engines.Engine) -> Callable[[Columns], Any]:
    """Return the function that makes a table of an engine."""

    def make(columns: Columns) -> Any:
        kinds = {name: engines.kind_of(values) for name, values in columns.items()}
        return engine.made_by(columns, {name: "text" if kind == "null" else kind for name, kind in kinds.items()})

    return make


def ways(folder: Path) -> tuple[dict[str, Way], dict[str, str]]:
    """Return all ways to count, and why others are missing."""
    found: dict[str, Way] = {"lists": by_lists, "numpy votes": by_array, "numpy counts": by_counts}
    missing = {}
    for engine in engines.ENGINES:
        reason = engine.lacks()
        if engine.name == "ibis-postgres" and not engines._server:
            reason = reason or "no Postgres server"
        if reason:
            missing[engine.name] = reason
        else:
            found[engine.name] = by_table(maker(engine))
    for suffix in (".csv", ".jsonl", ".parquet"):
        found[f"{suffix[1:]} files"] = by_table(_file(folder, suffix))
    return found, missing


@contextmanager
def postgres_server() -> Iterator[None]:
    """Run Postgres for its engine, if it is installed."""
    programs = postgres._programs()
    if programs is None:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="dhkappa-pg-") as folder:
        for server in postgres._serve(programs, Path(folder)):
            engines._server.append(server)
            yield


# What is compared


def results(tally: dhkappa.Tally) -> dict[str, str]:
    """Return all results of a tally, with floats as their bits, and its file."""
    with tempfile.TemporaryDirectory() as folder:
        tally.save(f"{folder}/tally.json")
        found = {"tally": Path(folder, "tally.json").read_text(encoding="utf-8")}
    fleiss = dhkappa.fleiss_kappa(tally)
    found["Fleiss"] = _hex([fleiss.to_dict(), str(fleiss.exact)])
    if tally.labelers:
        audit = dhkappa.audit(tally, rng=7, progress=False)
        found["audit"] = _hex(audit.to_dict())
        for name, kappa in audit.kappas.items():
            limits = [
                list(kappa.confidence_interval(level, method)) for method in ("beta", "wald") for level in (0.9, 0.99)
            ]
            drawn = kappa.bootstrap(50, rng=7, progress=False).values.tolist() if kappa.exact is not None else []
            found[name] = _hex([str(kappa.exact), str(kappa.parts), kappa.se, kappa.above_random, limits, drawn])
    return found


def _hex(value: Any) -> str:
    """Write a value with floats as their bits."""

    def plain(one: Any) -> Any:
        if isinstance(one, dict):
            return {str(key): plain(own) for key, own in one.items()}
        if isinstance(one, (list, tuple)):
            return [plain(own) for own in one]
        return float(one).hex() if isinstance(one, float) else one

    return json.dumps(plain(value), default=str)


def table_audit(part: DataSet, make: Callable[[Columns], Any]) -> dict[str, str]:
    """Return the audit of a table with annotators and review table, with floats as their bits."""
    table, labelers = _table(part, make)
    audit = dhkappa.audit(table, labelers, categories=part.categories, rng=7, progress=False, **_roles(part, make))
    found = audit.to_dict(limit=None)
    for labeler in found["labelers"].values():
        labeler["review"] = sorted(labeler.get("review") or [], key=str)  # equal items are in row order
    scores = found.pop("annotator_scores") or {}  # sums of floats, in the order of the votes
    rows = sorted(scores.get("annotators", ()), key=lambda row: str(row["annotator"]))
    return {"audit of a table": _hex(found), "scores of annotators": json.dumps(_rounded(rows), default=str)}


def _rounded(value: Any) -> Any:
    """Return a value with floats of seven digits."""
    if isinstance(value, dict):
        return {str(key): _rounded(own) for key, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(own) for own in value]
    return f"{value:.7g}" if isinstance(value, float) else value


def exact_kappas(whole: DataSet) -> dict[str, Fraction | None]:
    """Return the kappa of each labeler, and Fleiss' kappa as "", by loops over pairs of annotators (eq. 1-13)."""
    votes, suggested = whole.lists()
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
class Summary:
    """Numbers of what was compared, and differences."""

    combinations: Counter[tuple[str, int]] = field(default_factory=Counter)
    mixed: int = 0
    tallies: int = 0
    audits: int = 0
    kappas: int = 0
    wrong: list[str] = field(default_factory=list)

    def compare(self, name: str, found: dict[str, str], expected: dict[str, str]) -> None:
        """Compare results."""
        for key in expected:
            if found.get(key) != expected[key]:
                self.wrong.append(f"{name}: {key} differs")
                print(self.wrong[-1], flush=True)


def run(sets: Sequence[DataSet], found_ways: Mapping[str, Way], parts: Sequence[int] = PARTS) -> Summary:
    """Count every data set in every way, and compare with lists in file order."""
    summary = Summary()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for whole in sets:
            first = by_lists(whole)
            expected = results(first)
            declared = replace(whole, categories=tuple(map(str, first.categories)))
            for name, exact in exact_kappas(whole).items():
                kappa = dhkappa.dh_kappa(first, name) if name else dhkappa.fleiss_kappa(first)
                summary.kappas += 1
                if kappa.exact != exact or (exact is not None and kappa.value != float(exact)):
                    summary.wrong.append(f"{whole.name}, {name or 'Fleiss'}: {kappa.exact}, not {exact}")
            for way, count in found_ways.items():
                given = declared if count is by_counts else whole
                right = results(by_lists(given)) if count is by_counts else expected
                for number in parts:
                    if way in SLOW and number > 7 and len(whole.wide["item"]) > 100:
                        continue
                    tallies = [count(part) for part in given.partition(number, 1)]
                    random.Random(number).shuffle(tallies)
                    summary.compare(f"{whole.name}, {way}, {number} parts", results(reduce(add, tallies)), right)
                    summary.combinations[way, number] += 1
                    summary.tallies += len(tallies)
            some = [count for count in found_ways.values() if count is not by_counts]
            mixed = [count(part) for count, part in zip(some, whole.partition(len(some), 8), strict=False)]
            summary.compare(f"{whole.name}, a part by each engine", results(sum(mixed, dhkappa.Tally())), expected)
            summary.mixed += 1
            made = [maker(engine) for engine in engines.ENGINES if engine.name in found_ways] if whole.labelers else []
            audits = [table_audit(whole.partition(1, 9 + place)[0], make) for place, make in enumerate(made)]
            for audit in audits:
                summary.compare(f"{whole.name}, audit of a table", audit, audits[0])
            summary.audits += len(audits)
            print(whole.name, len(summary.wrong), flush=True)
    return summary
