"""Cases of the golden corpus: data and options in neutral words, independent of the interface of dhkappa."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

TESTS = Path(__file__).parents[1]
EXPORTS = TESTS / "exports"
SHARED = TESTS.parents[1] / "shared" / "data"
ENGINES = ("csv", "parquet", "jsonl", "pandas", "polars", "pyarrow", "duckdb")

Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class TableData:
    """A table as columns, and the engine or file format that holds it."""

    columns: Columns
    engine: str

    def make(self, folder: Path, name: str) -> Any:
        """Build the table, or write it to a file and return the path."""
        path = folder / f"{name}.{self.engine}"
        rows = [dict(zip(self.columns, row, strict=True)) for row in zip(*self.columns.values(), strict=True)]
        if self.engine == "csv":
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(self.columns)
                writer.writerows(row.values() for row in rows)
            return str(path)
        if self.engine == "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            return str(path)
        if self.engine == "pandas":
            import pandas as pd

            return pd.DataFrame({column: list(values) for column, values in self.columns.items()})
        if self.engine == "polars":
            import polars as pl

            return pl.DataFrame({column: list(values) for column, values in self.columns.items()})
        import pyarrow as pa

        table = pa.table({column: list(values) for column, values in self.columns.items()})
        if self.engine == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, path)
            return str(path)
        if self.engine == "duckdb":
            import duckdb

            return duckdb.from_arrow(table)
        return table


@dataclass(frozen=True)
class FileData:
    """A file of the shared data or of the tests; ``question`` chooses one of an export."""

    path: Path
    question: str | None = None


@dataclass(frozen=True)
class Case:
    """Data, options and the calls to make.

    Options: suggested, counts, categories, missing, agreement_weights, sample_weight, strata, pool, the column roles
    (annotators, item, label, annotator, count, items, duplicates, unlisted), and those of plan and simulate.
    """

    name: str
    data: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    calls: tuple[str, ...] = ("dh", "fleiss")
    small: bool = False

    @property
    def files(self) -> list[Path]:
        """The files that the case reads."""
        return [value.path for value in (self.data, self.options.get("items")) if isinstance(value, FileData)]

    def split(self) -> tuple[Case, Case]:
        """Return the first and the second half of the items of arrays."""
        rows = self.data if self.data is not None else self.options["counts"]
        n, per_item = len(rows), ("counts", "suggested", "sample_weight", "strata")

        def cut(value: Any, part: slice) -> Any:
            return {name: own[part] for name, own in value.items()} if isinstance(value, Mapping) else value[part]

        return tuple(  # type: ignore[return-value]
            replace(
                self,
                data=None if self.data is None else cut(self.data, part),
                options={name: cut(own, part) if name in per_item else own for name, own in self.options.items()},
            )
            for part in (slice(0, n // 2), slice(n // 2, n))
        )


@dataclass(frozen=True)
class Drawn:
    """Generated items: codes of votes, -1 where missing, and of suggested labels by labeler."""

    votes: Any
    labels: dict[str, Any]
    names: tuple[Any, ...]

    def rows(self, *, ragged: bool = False) -> Any:
        """Return votes as an array of labels, whose columns are annotators, or as lists of different lengths."""
        held = np.array([*self.names, None], object)[self.votes]
        return [[vote for vote in row if vote is not None] for row in held.tolist()] if ragged else held

    def suggested(self) -> dict[str, list[Any]]:
        """Return the labels of each labeler, None where missing."""
        held = np.array([*self.names, None], object)
        return {name: held[codes].tolist() for name, codes in self.labels.items()}

    def counts(self) -> Any:
        """Return the count matrix."""
        return np.stack([(self.votes == code).sum(1) for code in range(len(self.names))], 1)


def draw(
    seed: int, n: int, m: int, N: int, *, labelers: int = 1, missing: float = 0.0, unlabeled: float = 0.0
) -> Drawn:
    """Draw items whose votes are right 3 times in 4; later labelers are worse; low categories are more frequent."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) ** 1.5 * m).astype(np.int64)

    def answers(rate: float, lost: float) -> Any:
        found = np.where(rng.random(n) < rate, truth, (rng.random(n) * m).astype(np.int64))
        return np.where(rng.random(n) < lost, -1, found)

    votes = np.stack([answers(0.75, missing) for _ in range(N)], 1)
    labels = {f"labeler_{place}": answers(0.85 - 0.12 * place, unlabeled) for place in range(labelers)}
    names = tuple("bacfed"[:m]) if m <= 6 else tuple(range(m)) if m < 1000 else tuple(f"c{code}" for code in range(m))
    return Drawn(votes, labels, names)


def one(drawn: Drawn) -> list[Any]:
    """Return the labels of the first labeler."""
    return next(iter(drawn.suggested().values()))


def shapes() -> Iterator[Case]:
    for m in (1, 2, 3, 4, 5, 6, 100, 1000):
        for N in (2, 3, 5, 20):
            for kind in ("array", "missing", "ragged"):
                n = {2: 40, 3: 60, 5: 150, 20: 90}[N] * (2 if m > 6 else 1)
                drawn = draw(1000 * m + N, n, m, N, missing=0 if kind == "array" else 0.3, unlabeled=0.05)
                calls: tuple[str, ...] = ("dh", "fleiss")
                if kind == "missing":
                    calls += ("resample", "audit") if m < 1000 and N < 20 else ("audit",)
                small = (m, N) in {(1, 2), (2, 3), (3, 5)} and kind != "array"
                rows = drawn.rows(ragged=kind == "ragged")
                yield Case(f"shape-{m}-{N}-{kind}", rows, {"suggested": one(drawn)}, calls, small)


def count_matrices() -> Iterator[Case]:
    for m in (2, 3, 6, 100):
        for N in (3, 9):
            drawn = draw(50 * m + N, 80, m, N, missing=0.2)
            codes, counts = drawn.labels["labeler_0"], drawn.counts()
            onehot = np.eye(m, dtype=np.int64)[codes]
            calls = ("dh", "fleiss", "audit", "tally")
            given = {"names": one(drawn), "codes": codes, "onehot": onehot}
            for kind, suggested in given.items():
                options = {"counts": counts, "suggested": suggested}
                options |= {"categories": drawn.names} if kind == "names" else {}
                asked = calls if kind == "names" else ("dh",)
                yield Case(f"counts-{m}-{N}-{kind}", None, options, asked, small=m == 3 and N == 9)


def several_labelers() -> Iterator[Case]:
    for labelers in (2, 3, 5):
        for m in (2, 3, 6, 100):
            for n in (12, 150):
                drawn = draw(7 * m + labelers + n, n, m, 4, labelers=labelers, missing=0.1, unlabeled=0.1)
                options = {"suggested": drawn.suggested()}
                calls = ("dh", "compare", "audit", "tally")
                yield Case(
                    f"labelers-{labelers}-{m}-{n}", drawn.rows(), options, calls, (labelers, m, n) == (2, 3, 150)
                )
    drawn = draw(5, 60, 3, 3, labelers=2)
    near = dict(drawn.suggested())
    near["near"] = [*near["labeler_0"][:-4], *near["labeler_1"][-4:]]
    yield Case("labelers-few-discordant", drawn.rows(), {"suggested": near}, ("compare",), small=True)
    twins = {"one": near["labeler_0"], "two": near["labeler_0"]}
    yield Case("labelers-equal", drawn.rows(), {"suggested": twins}, ("compare",), small=True)


def designs() -> Iterator[Case]:
    for m in (2, 4):
        for n in (40, 240):
            drawn = draw(31 * m + n, n, m, 4, labelers=2, missing=0.15, unlabeled=0.03)
            rng = np.random.default_rng(n + m)
            strata = np.array(["north", "south", "west"], object)[(rng.random(n) * 3).astype(int)].tolist()
            sizes = {"north": 10 * n, "south": n, "west": 3 * n}
            integers = (1 + rng.random(n) * 5).astype(int).tolist()
            floats = (0.1 + rng.random(n) * 3).tolist()
            holes = [0.0 if place % 7 == 0 else weight for place, weight in enumerate(floats)]
            far = [10.0 ** (place % 5) for place in range(n)]
            held: dict[str, dict[str, Any]] = {
                "integers": {"sample_weight": integers},
                "floats": {"sample_weight": floats},
                "zeros": {"sample_weight": holes},
                "unequal": {"sample_weight": far},
                "strata": {"strata": strata},
                "strata-pool": {"strata": strata, "pool": sizes},
                "strata-weights": {"strata": strata, "sample_weight": floats},
                "strata-weights-pool": {"strata": strata, "sample_weight": integers, "pool": sizes},
                "pool": {"pool": 4 * n},
                "whole-pool": {"pool": n},
                "weights-pool": {"sample_weight": integers, "pool": 2 * n},
            }
            for kind, design in held.items():
                options = {"suggested": drawn.suggested(), **design}
                calls = ("dh", "fleiss", "compare", "audit", "tally", "resample")
                small = (n, m) == (40, 4) and kind in ("floats", "strata-pool")
                yield Case(f"design-{m}-{n}-{kind}", drawn.rows(), options, calls, small)


def agreement_weights() -> Iterator[Case]:
    for m in (2, 3, 4, 5, 6, 100):
        drawn = draw(90 + m, 120, m, 4, missing=0.2)
        rng = np.random.default_rng(m)
        half = np.triu(rng.random((m, m)), 1)
        matrix = half + half.T + np.eye(m)
        base = {"suggested": one(drawn), "categories": sorted(drawn.names)}
        more: dict[str, dict[str, Any]] = {
            "plain": {},
            "weights": {"sample_weight": (0.5 + rng.random(120)).tolist()},
            "pool": {"pool": 500},
        }
        for kind, weights in (("linear", "linear"), ("quadratic", "quadratic"), ("matrix", matrix)):
            for name, design in more.items():
                options = {**base, **design, "agreement_weights": weights}
                calls: tuple[str, ...] = ("dh", "weighted") + (("audit",) if name == "plain" and m < 100 else ())
                yield Case(f"weighted-{m}-{kind}-{name}", drawn.rows(), options, calls, m == 4 and name == "weights")


def edges() -> Iterator[Case]:
    held: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "one-item": ([["a", "a", "b"]], ["a"], {}),
        "one-item-perfect": ([["a", "a"]], ["a"], {}),
        "two-items": ([["a", "b"], ["b", "b"]], ["a", "b"], {}),
        "one-category": ([["a", "a"], ["a", "a"]], ["a", "a"], {}),
        "no-eligible-item": ([["a"], [], ["b", None]], ["a", "b", "b"], {}),
        "no-label": ([["a", "b"], ["a", "a"]], [None, None], {}),
        "excluded": ([[], ["a"], ["a", "b"], ["a", "a"], ["b", "b", "a"]], ["a", "a", None, "a", "b"], {}),
        "perfect": ([["a", "a"], ["b", "b"], ["c", "c"]] * 12, ["a", "b", "c"] * 12, {}),
        "all-wrong": ([["a", "a"], ["b", "b"], ["c", "c"]] * 12, ["b", "c", "a"] * 12, {}),
        "one-label": ([["a", "b", "a"], ["b", "b", "c"], ["a", "a", "a"]] * 12, ["a"] * 36, {}),
        "one-category-voted": ([["a", "a", "a"]] * 20, ["a", "b"] * 10, {}),
        "labels-not-in-votes": ([["a", "b"], ["b", "b"]] * 20, ["x", "y"] * 20, {}),
        "same-influence": ([["a", "b"], ["b", "a"]] * 20, ["a", "b"] * 20, {}),
        "booleans": ([[True, False, True], [False, False, True]] * 9, [True, False] * 9, {}),
        "integers": ([[10, 9, 9], [-1, 9, -1], [10, 10, 9]] * 9, [9, -1, 10] * 9, {}),
        "variants": ([["Cat", "cat "], ["dog", "dog"], ["3", "3.0"]] * 9, ["cat", "dog", "3"] * 9, {}),
        "spelled-otherwise": ([["cat", "cat"], ["dog", "dog"], ["cat", "dog"]] * 12, ["Cat", "Dog", "Cat"] * 12, {}),
        "mixed-types": ([["a", 1], ["b", "b"], [1, 1]] * 12, ["a", "b", 1] * 12, {}),
        "few-imperfect": ([["a", "a"], ["b", "b"]] * 20 + [["a", "b"]] * 3, ["a", "b"] * 20 + ["a"] * 3, {}),
        "looks-missing": ([["a", "NA"], ["b", "b"], ["a", "a"]] * 9, ["a", "b", "NA"] * 9, {}),
        "missing": ([["a", "NA", "a"], ["b", "b", "?"]] * 9, ["a", "NA"] * 9, {"missing": ["NA", "?"]}),
        "declared": ([["a", "b"], ["b", "b"]] * 9, ["a", "b"] * 9, {"categories": ["z", "b", "a"]}),
        "undeclared-label": ([["a", "b"], ["b", "b"]], ["a", "b"], {"categories": ["a", "c"]}),
        "one-heavy-item": ([["a", "b"], ["b", "b"]] * 5, ["a", "b"] * 5, {"sample_weight": [1e15, *[1.0] * 9]}),
        "unequal-votes": ([["a", "a"]] * 40 + [["a", "b", "b", "a", "c"]] * 40, ["a"] * 70 + ["b"] * 10, {}),
        "many-equal-items": ([["a", "a", "b"], ["b", "b", "b"], ["c", "a", "c"]] * 2000, ["a", "b", "a"] * 2000, {}),
    }  # fmt: skip
    for name, (votes, suggested, more) in held.items():
        options = {"suggested": suggested, **more}
        yield Case(f"edge-{name}", votes, options, ("dh", "fleiss", "audit", "tally", "resample"))
        yield Case(f"edge-few-{name}", votes, options, ("dh",), small=True)


def tables() -> Iterator[Case]:
    names = {"text": ("spam", "ham", "naïve"), "int": (7, 10, 300)}
    for kind, labels in names.items():
        drawn = replace(draw(77, 60, 3, 4, labelers=2, missing=0.2, unlabeled=0.05), names=labels)
        votes, suggested, ids = drawn.rows(), drawn.suggested(), [f"T-{item:03}" for item in range(60)]
        rng = np.random.default_rng(8)
        beside: dict[str, Any] = {
            "id": ids,
            "suggested_rule": suggested["labeler_0"],
            "suggested_llm": suggested["labeler_1"],
            "weight": (1 + rng.random(60) * 4).round(2).tolist(),
            "group": np.array(["x", "y"])[(rng.random(60) * 2).astype(int)].tolist(),
        }
        cells = [(row, column, votes[row, column]) for row in range(60) for column in range(4)]
        cells = [cell for cell in cells if cell[2] is not None]
        long = {
            "id": [ids[row] for row, _, _ in cells],
            "who": [f"ann_{column}" for _, column, _ in cells],
            "label": [vote for _, _, vote in cells],
        }
        sums: dict[tuple[str, Any], int] = {}
        for row, _, vote in cells:
            sums[ids[row], vote] = sums.get((ids[row], vote), 0) + 1
        counted = {"id": [key[0] for key in sums], "label": [key[1] for key in sums], "n": list(sums.values())}
        wide_counts = {str(label): drawn.counts()[:, code].tolist() for code, label in enumerate(labels)}
        layouts: dict[str, tuple[Columns, dict[str, Any]]] = {
            "wide": (
                beside | {f"ann_{column}": votes[:, column].tolist() for column in range(4)},
                {"annotators": "ann_*", "item": "id"},
            ),
            "long": (long, {"item": "id", "label": "label", "annotator": "who", "items": beside}),
            "counted-long": (counted, {"item": "id", "label": "label", "count": "n", "items": beside}),
            "counted-wide": (beside | wide_counts, {"counts": list(wide_counts), "item": "id"}),
        }
        for layout, (columns, roles) in layouts.items():
            for engine in ENGINES:
                if layout == "counted-wide" and kind == "int":
                    continue  # the names of columns are text
                own = {name: TableData(v, engine) if name == "items" else v for name, v in roles.items()}
                options = {**own, "suggested": {name: name for name in ("suggested_rule", "suggested_llm")}}
                data = TableData(columns, engine)
                calls = ("dh", "fleiss", "compare", "audit", "tally")
                yield Case(f"table-{layout}-{kind}-{engine}", data, options, calls)
                options = {**options, "sample_weight": "weight", "strata": "group"}
                yield Case(f"table-{layout}-{kind}-{engine}-design", data, options, ("dh", "fleiss", "audit"))
                if kind == "text" and engine in ("csv", "polars", "duckdb"):
                    yield Case(f"table-few-{layout}-{engine}", data, options, ("compare", "tally"), small=True)


def shared() -> Iterator[Case]:
    known = {
        "davidson": ["class_majority", "lexicon"],
        "dynasent_r1_dev": ["model", "stars", "gold_majority"],
        "dynasent_sst_dev_revalidated": ["sst", "gold_majority"],
        "dices_350": ["expert"],
        "tweeteval_annotated": ["emoji_in_tweet", "llm"],
        "labelerrors_imagenet": ["given", "confident_learning"],
        "labelerrors_cifar100": ["given", "confident_learning"],
        "crows_pairs": ["bias_type"],
    }
    for name, labelers in known.items():
        folder = SHARED / name
        options: dict[str, Any] = {"suggested": {f"suggested_{name}": f"suggested_{name}" for name in labelers}}
        if name == "davidson":
            data = FileData(folder / "items.csv")
            options |= {"counts": ["hate_speech", "offensive_language", "neither"], "item": "item"}
        else:
            counted = (folder / "counts_long.csv").is_file()
            data = FileData(folder / ("counts_long.csv" if counted else "annotations.csv"))
            options |= {"items": FileData(folder / "items.csv"), "item": "item", "label": "label"}
            options |= {"count": "count"} if counted else {"annotator": "annotator"}
        calls = ("dh", "fleiss", "audit", "tally") + (("compare",) if len(labelers) > 1 else ())
        yield Case(f"shared-{name}", data, options, calls)
        if name in ("davidson", "dices_350", "tweeteval_annotated"):
            few = ("dh", "fleiss") + (("compare",) if len(labelers) > 1 else ())
            yield Case(f"shared-few-{name}", data, options, few, small=True)
    published = {
        "fleiss1971_diagnoses": "1. Depression,2. Personality Disorder,3. Schizophrenia,4. Neurosis,5. Other",
        "irrcac_distrib6raters": "Depression,PersonalityDisorder,Schizophrenia,Neurosis,Other",
        "irrcac_raw4raters": "1,2,3,4,5",
        "wikipedia_fleiss": "1,2,3,4,5",
    }
    for name, columns in published.items():
        options = {"counts": columns.split(","), "item": "item"}
        yield Case(
            f"published-{name}", FileData(SHARED / "published" / name / "counts.csv"), options, ("fleiss",), True
        )


def exports() -> Iterator[Case]:
    questions = {
        "argilla/survey.json": ("stars",),
        "argilla/survey_flat.json": ("stars",),
        "label_studio/reviews_button.json": ("tone", "stars", "topics=food"),
        "label_studio/reviews_min.json": ("tone", "stars"),
        "label_studio/reviews_whole.json": ("tone", "stars", "topics=food"),
        "prodigy/multiple.jsonl": ("NEWS",),
        "prodigy/teach.jsonl": ("housing", "economy"),
    }
    for path in sorted(EXPORTS.glob("*/*")):
        if path.suffix not in (".json", ".jsonl", ".zip"):
            continue
        name = f"{path.parent.name}/{path.name}"
        for question in (None, *questions.get(name, ())):
            options = {"duplicates": "last"} if name == "prodigy/choice.jsonl" else {}
            title = f"export-{name}" + (f"-{question}" if question else "")
            small = name in ("argilla/flat.json", "doccano/reviews.zip", "label_studio/mail_whole.json")
            small |= name in ("prodigy/choice.jsonl", "prodigy/teach.jsonl")
            yield Case(title, FileData(path, question), options, ("fleiss", "audit", "tally"), small)


def messy() -> Iterator[Case]:
    for case in sorted(SHARED.glob("messy/*/case.json")):
        asked = json.loads(case.read_text())
        data, *items = [FileData(case.parent / name) for name in asked["files"]]
        words = dict(zip(asked["options"][::2], asked["options"][1::2], strict=True))
        options: dict[str, Any] = {"items": items[0]} if items else {}
        options |= {"counts": words["--counts"].split(",")} if "--counts" in words else {}
        options |= {"suggested": words["--suggested"]} if "--suggested" in words else {}
        yield Case(f"messy-{case.parent.name}", data, options, ("audit", "tally"))


def plans() -> Iterator[Case]:
    for m in (2, 3, 5):
        for N in (2, 3, 5):
            for n in (30, 200):
                drawn = draw(11 * m + N + n, n, m, N, missing=0.1)
                base = {"suggested": one(drawn)}
                more: dict[str, dict[str, Any]] = {
                    "plain": {},
                    "votes": {"votes": 2},
                    "pool": {"pool": 5000, "confidence_level": 0.8},
                }
                for kind, extra in more.items():
                    options = {**base, "plan": {"half_width": 0.05, **extra}}
                    yield Case(f"plan-pilot-{m}-{N}-{n}-{kind}", drawn.rows(), options, ("plan",), (m, N) == (3, 5))
    flawless = {"suggested": ["a", "b"] * 20, "plan": {"half_width": 0.05}}
    yield Case("plan-pilot-flawless", [["a", "a", "a"], ["b", "b", "b"]] * 20, flawless, ("plan",), small=True)
    assumed: list[dict[str, Any]] = [
        {"half_width": width, "n_categories": m, "annotator_accuracy": a, "labeler_accuracy": q}
        for width in (0.1, 0.02)
        for m in (2, 5, 50)
        for a, q in ((0.9, 0.85), (0.7, 1.0), (0.99, 0.5))
    ]
    first = assumed[0]
    assumed += [first | {"votes": 4}, first | {"pool": 1000}, first | {"assurance": 0.5, "confidence_level": 0.99}]
    skewed = {"prevalence": [8, 1, 1], "annotator_accuracy": 0.8, "labeler_accuracy": 0.9}
    assumed += [{"half_width": 0.05, **skewed}, {"half_width": 0.05, **skewed, "votes": 7}]
    for place, plan in enumerate(assumed):
        yield Case(f"plan-assumed-{place}", None, {"plan": plan}, ("plan",), small=place % 3 == 0)


def simulations() -> Iterator[Case]:
    held: list[dict[str, Any]] = [
        {"n_items": 50, "rng": 1},
        {"n_items": 50, "rng": 2, "missing": 0.3, "annotators": [0.9, 0.5, 0.7, 1.0]},
        {"n_items": 40, "rng": 3, "categories": [1, 2, 3, 4], "prevalence": [1, 2, 3, 4], "accuracy": 0.6},
        {"n_items": 30, "rng": 4, "labelers": {"rule": 0.6, "llm": 0.9}, "annotators": 7},
        {"n_items": 10, "rng": 5, "categories": ["only"]},
        {"n_items": 0, "rng": 6},
    ]
    for place, options in enumerate(held):
        yield Case(f"simulate-{place}", None, options, ("simulate",), small=True)


def all_cases() -> dict[str, Case]:
    """Return every case by name; those of absent shared data are left out."""
    makers = [shapes, count_matrices, several_labelers, designs, agreement_weights, edges, tables]
    makers += [exports, plans, simulations, *([shared, messy] if SHARED.is_dir() else [])]
    return {case.name: case for maker in makers for case in maker()}
