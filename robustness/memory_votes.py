"""Write files of any size with a known kappa: python memory_votes.py PATH ITEMS ANNOTATORS.

Item i has the code j = i * STEP mod M, and all M codes are equally frequent. The last digit of j, in the base of the
number of categories, is the true category; the other digits determine the suggested label and the votes.
"""

from __future__ import annotations

import sys
from collections import Counter
from fractions import Fraction
from itertools import product
from math import comb
from pathlib import Path

CATEGORIES = ("billing", "shipping", "account", "returns", "other")
STEP = 3_090_169  # coprime to 10: an order that does not compress


def codes(annotators: int) -> int:
    """Return the number of codes, M."""
    return len(CATEGORIES) * int(10 ** (annotators + 1))


def exact_kappa(annotators: int) -> tuple[Fraction, Fraction]:
    """Return kappa (eq. 13) and the share of eligible items.

    A vote is the true category in 8 of 10 codes, the next one in 1, and missing in 1; a suggested label is the true
    category in 8, and one of the next two in 1 each.
    """
    m, N = len(CATEGORIES), annotators
    found = []
    for truth, (shift, times), right in product(range(m), ((0, 8), (1, 1), (2, 1)), range(N + 1)):
        for wrong in range(N - right + 1):
            number = times * comb(N, right) * comb(N - right, wrong) * 8**right
            if right + wrong > 1:
                found.append(((truth + shift) % m, {truth: right, (truth + 1) % m: wrong}, number))
    n = sum(number for _, _, number in found)
    C: Counter[int] = Counter()
    L: Counter[int] = Counter()
    D = Fraction(0)
    for label, counts, number in found:
        L[label] += number
        votes = sum(counts.values())
        for category, count in counts.items():
            C[category] += Fraction(number * count, votes * n)  # type: ignore[assignment]
            agreeing = Fraction(number * count * (count - 1), votes * (votes - 1) * n)
            D += agreeing if category == label else -agreeing
    E = sum((share**2 * (Fraction(2 * L[category], n) - 1) for category, share in C.items()), Fraction(0))
    return (D - E) / (1 - E), Fraction(n, codes(N))


def rows(items: int, annotators: int) -> str:
    """Return a query for the wide format: ``item``, ``suggested_llm``, ``ann_1`` and so on."""
    m = len(CATEGORIES)

    def column(place: int, last: str) -> str:
        digit = f"(j // {m * 10**place} % 10)"
        code = f"CASE WHEN {digit} < 8 THEN j % {m} WHEN {digit} = 8 THEN (j + 1) % {m} ELSE {last} END"
        return f"{list(CATEGORIES)}[1 + {code}]"

    votes = [f"{column(place, 'NULL')} AS ann_{place}" for place in range(1, annotators + 1)]
    chosen = ", ".join(["i AS item", f"{column(0, f'(j + 2) % {m}')} AS suggested_llm", *votes])
    return f"SELECT {chosen} FROM (SELECT i, i * {STEP} % {codes(annotators)} AS j FROM range({items}) AS drawn(i))"


def queries(items: int, annotators: int) -> dict[str, str]:
    """Return queries for the same votes in all formats, by file name."""
    wide = rows(items, annotators)
    names = ", ".join(f"ann_{place}" for place in range(1, annotators + 1))
    long = f"SELECT * FROM (UNPIVOT ({wide}) ON {names} INTO NAME annotator VALUE label)"
    counts = ", ".join(
        " + ".join(f"CASE WHEN ann_{place} = '{label}' THEN 1 ELSE 0 END" for place in range(1, annotators + 1))
        + f" AS {label}"
        for label in CATEGORIES
    )
    choice = "{'from_name': 'label', 'to_name': 'text', 'type': 'choices', 'value': {'choices': [label]}}"
    who = "annotator[5:]::BIGINT"
    given = f"list({{'id': 100 * item + {who}, 'completed_by': {who}, 'result': [{choice}]}})"
    guess = "{'model_version': 'llm', 'result': [" + choice.replace("[label]", "[any_value(suggested_llm)]") + "]}"
    task = f"item AS id, {{'text': ''}} AS data, {given} AS annotations, [{guess}] AS predictions"
    finer = "label || item % 300 AS label, suggested_llm || item % 300 AS suggested_llm"
    return {
        "wide.csv": wide,
        "wide.parquet": wide,
        "wide.jsonl": wide,
        "long.csv": f"SELECT item, annotator, label, suggested_llm FROM ({long})",
        "long.parquet": f"SELECT item, annotator, label, suggested_llm FROM ({long})",
        "counts.csv": f"SELECT item, suggested_llm, {counts} FROM ({wide})",
        "many.csv": f"SELECT item, annotator, {finer} FROM ({long})",
        "label_studio.json": f"SELECT {task} FROM ({long}) GROUP BY item",
    }


def write_votes(path: Path, items: int, annotators: int) -> None:
    """Write the file of a name."""
    import duckdb

    form = {".csv": "(FORMAT csv, HEADER)", ".parquet": "(FORMAT parquet)", ".jsonl": "(FORMAT json)"}
    how = form.get(path.suffix, "(FORMAT json, ARRAY true)")
    with duckdb.connect(config={"memory_limit": "3GiB", "temp_directory": str(path.parent / "making")}) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"COPY ({queries(items, annotators)[path.name]}) TO '{path}' {how}")


if __name__ == "__main__":
    write_votes(Path(sys.argv[1]), *map(int, sys.argv[2:]))
