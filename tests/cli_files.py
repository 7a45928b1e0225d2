"""Small data in every layout, as files of every kind."""

import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import jsonschema

import dhkappa
import dhkappa.table

Rows = list[dict[str, Any]]

SCHEMA = json.loads((Path(__file__).parents[1] / "docs" / "schema.json").read_text("utf-8"))
VALID = jsonschema.Draft202012Validator(SCHEMA)
CATEGORIES = ["ham", "news", "spam"]
DRAWN = dhkappa.simulate(
    40, categories=CATEGORIES, annotators=[0.95, 0.8, 0.7], labelers={"rule": 0.6, "llm": 0.9}, missing=0.1, rng=3
)
VOTES = DRAWN.votes.tolist()
LABELS = {name: labels.tolist() for name, labels in DRAWN.suggested.items()}
EXACT = {name: str(dhkappa.dh_kappa(VOTES, labels).exact) for name, labels in LABELS.items()}


def answer(text: str) -> Any:
    """Read the output of ``--format json``: one JSON value that satisfies the schema, without NaN."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    found = json.loads(text, parse_constant=refuse)
    errors = [f"{error.json_path}: {error.message}" for error in VALID.iter_errors(found)]
    assert not errors, errors[:5]
    return found


def exact(found: Any) -> dict[str, str]:
    """Return the exact kappa of each labeler."""
    return {name: kappa["exact"] for name, kappa in found["result"]["labelers"].items()}


def wide() -> Rows:
    return [
        {"item": f"t{place}"}
        | {f"suggested_{name}": labels[place] for name, labels in LABELS.items()}
        | {f"ann_{who}": vote for who, vote in enumerate(votes)}
        for place, votes in enumerate(VOTES)
    ]


def items() -> Rows:
    return [{name: row[name] for name in ("item", "suggested_rule", "suggested_llm")} for row in wide()]


def long() -> Rows:
    beside = {row["item"]: row for row in items()}
    return [row | beside[row["item"]] for row in long_alone()]


def long_alone() -> Rows:
    return [
        {"item": f"t{place}", "annotator": f"a{who}", "label": vote}
        for place, votes in enumerate(VOTES)
        for who, vote in enumerate(votes)
        if vote is not None
    ]


def counted_long() -> Rows:
    return [
        {"item": f"t{place}", "label": label, "count": count}
        for place, votes in enumerate(VOTES)
        for label, count in Counter(vote for vote in votes if vote is not None).items()
    ]


def counted_wide() -> Rows:
    return [row | {label: VOTES[place].count(label) for label in CATEGORIES} for place, row in enumerate(items())]


LAYOUTS: dict[str, tuple[Callable[[], Rows], bool, list[str]]] = {
    "wide": (wide, False, []),
    "long": (long, False, []),
    "long-items": (long_alone, True, []),
    "counted-long": (counted_long, True, []),
    "counted-wide": (counted_wide, False, ["--counts", ",".join(CATEGORIES)]),
}


def write(path: Path, rows: Rows) -> str:
    """Write rows in the format that the name of the file says."""
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    if kind == "parquet":
        plain = path.with_suffix(".jsonl")
        write(plain, rows)
        duckdb.sql(f"COPY (FROM read_json('{plain}')) TO '{path}' (FORMAT parquet)")
        return str(path)
    if kind == "xlsx":
        dhkappa.table.Table({name: [row[name] for row in rows] for name in rows[0]}).to_excel(path)
        return str(path)
    file = io.StringIO(newline="")
    if kind == "json":
        json.dump(rows, file)
    elif kind == "jsonl":
        file.writelines(json.dumps(row) + "\n" for row in rows)
    else:
        writer = csv.DictWriter(file, list(rows[0]), delimiter="\t" if kind == "tsv" else ",")
        writer.writeheader()
        writer.writerows(rows)
    data = file.getvalue().encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)
