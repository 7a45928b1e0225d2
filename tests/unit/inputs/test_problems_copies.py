"""The rules that find copies: annotators, labels made from votes, and repeated rows."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest

import dhkappa
from dhkappa import Dataset, Problem
from dhkappa.inputs.problems import copies, rows, sampled_votes

NAMES = ["cat", "dog", "cow"]


def found(votes: Any, labels: Any, **given: Any) -> dict[str, Problem]:
    """Return the problems of arrays by code."""
    named = labels if isinstance(labels, dict) else {"llm": labels}
    return {one.code: one for one in Dataset(votes, named, **given).check().problems}


def in_table(**columns: Any) -> dict[str, Problem]:
    return {one.code: one for one in Dataset(pl.DataFrame(columns)).check().problems}


def wide(n: int = 400, seed: int = 1, accuracy: float = 0.8) -> dict[str, Any]:
    """Return the columns of a table of three independent annotators and a labeler."""
    sim = dhkappa.simulate(
        n, annotators=3, accuracy=accuracy, labelers={"llm": accuracy}, categories=NAMES, missing=0.0, rng=seed
    )
    votes = {f"ann_{place}": sim.votes[:, place].tolist() for place in range(3)}
    return {"suggested_llm": list(sim.suggested["llm"]), **votes}


def majority(*columns: list[str]) -> list[str]:
    return [Counter(row).most_common(1)[0][0] for row in zip(*columns, strict=True)]


def changed(labels: list[str], share: float, seed: int = 5) -> list[str]:
    """Replace some labels by the next one."""
    draw = np.random.default_rng(seed).random(len(labels)) < share
    after = dict(zip(NAMES, [*NAMES[1:], NAMES[0]], strict=True))
    return [after[label] if new else label for label, new in zip(labels, draw.tolist(), strict=True)]


# Statistics


def _sampled(votes: Any) -> sampled_votes.SampledVotes:
    item_votes = Dataset(votes, {"llm": votes[:, 0].tolist()}).item_votes()
    assert item_votes is not None
    return sampled_votes.SampledVotes.of(item_votes)


def test_agreement_of_independent_raters() -> None:
    """Expected and observed agreement and its error, by loops over items."""
    rng = np.random.default_rng(4)
    n = 60
    truth = rng.integers(0, 3, n)
    grid = np.where(rng.random((n, 5)) < 0.8, truth[:, None], rng.integers(0, 3, (n, 5)))
    others = _sampled(np.array(NAMES, object)[grid[:, :3]])
    order = sorted(NAMES)
    one, other = ([order.index(NAMES[code]) for code in grid[:, place]] for place in (3, 4))
    result = sampled_votes.agreement(others, np.array(one), np.array(other))
    values = []
    for row, a, b in zip(grid[:, :3], one, other, strict=True):
        codes = [order.index(NAMES[code]) for code in row]
        pairs = [x == y for x, y in combinations(codes, 2)]
        values.append((a == b, codes.count(a) / 3, codes.count(b) / 3, sum(pairs) / 3))
    means = [sum(column) / n for column in zip(*values, strict=True)]
    votes = Counter(grid[:, :3].ravel().tolist())
    best = None
    for chance in (1 / 3, sum((k / (3 * n)) ** 2 for k in votes.values())):
        c1, c2, c3 = ((mean - chance) / (1 - chance) for mean in means[1:])
        expected = chance + (1 - chance) * min(c1 * c2 / c3, 1)

        def difference(drop: int, chance: float = chance) -> float:
            kept = [value for place, value in enumerate(values) if place != drop]
            p = [sum(column) / (n - 1) for column in zip(*kept, strict=True)]
            d1, d2, d3 = ((mean - chance) / (1 - chance) for mean in p[1:])
            return float(p[0] - chance - (1 - chance) * d1 * d2 / d3)

        drops = [difference(drop) for drop in range(n)]
        error = math.sqrt((n - 1) / n * sum((one - sum(drops) / n) ** 2 for one in drops))
        if best is None or expected > best[0]:
            best = expected, (means[0] - expected) / error
    assert best is not None
    assert result is not None
    assert result.n == n
    assert result.observed == pytest.approx(means[0], abs=1e-12)
    assert result.expected == pytest.approx(best[0], abs=1e-12)
    assert result.z == pytest.approx(best[1], rel=0.06)  # the jackknife is another estimate of the same error


def test_exceptions_of_true_labels_by_annotator() -> None:
    """EM with an accuracy per annotator, by loops over items and categories."""
    data = wide(150, 3)
    votes = [list(row) for row in zip(*(data[f"ann_{place}"] for place in range(3)), strict=True)]
    labels = majority(*(data[f"ann_{place}"] for place in range(3)))
    labels = changed(labels, 0.1)
    evidence = Dataset(np.array(votes, object), {"llm": labels}).evidence()
    assert evidence.item_votes is not None
    shared = sampled_votes.sampled_votes(evidence.item_votes)
    codes = evidence.item_votes.columns.codes("llm", evidence.item_votes.categories)[shared.chosen]
    result = sampled_votes.from_votes(shared, codes)
    assert result is not None
    every = Counter(vote for row in votes for vote in row)
    prior = {label: every[label] / 450 for label in NAMES}
    t = sum(sum(x == y for x, y in combinations(row, 2)) / 3 for row in votes) / len(votes)
    mean = (1 + math.sqrt(1 - 3 * (1 - 2 * t))) / 3
    accuracy = [mean] * 3
    for _ in range(20):
        posterior = []
        for row in votes:
            likely = {
                label: prior[label]
                * math.prod(a if vote == label else (1 - a) / 2 for vote, a in zip(row, accuracy, strict=True))
                for label in NAMES
            }
            posterior.append({label: value / sum(likely.values()) for label, value in likely.items()})
        accuracy = [
            (sum(p[row[who]] for p, row in zip(posterior, votes, strict=True)) + 5 * mean) / (len(votes) + 5)
            for who in range(3)
        ]
    first = [{label for label in row if row.count(label) == max(map(row.count, row))} for row in votes]
    miss = [1 - sum(p[label] for label in lead) for p, lead in zip(posterior, first, strict=True)]
    assert result.perfect == pytest.approx(sum(miss), rel=1e-9)
    assert result.exceptions == sum(label not in lead for label, lead in zip(labels, first, strict=True))
    decided = [len(lead) < 3 for lead in first]  # if all three categories lead, every label is one of them
    split = [len({*row}) > 1 and one for row, one in zip(votes, decided, strict=True)]
    assert (result.n, result.split) == (sum(decided), sum(split))
    assert result.accuracy == pytest.approx(sum(accuracy) / 3, rel=1e-9)


# Annotators that are labelers


@pytest.mark.parametrize("share", [0.05, 0.15])
def test_rerun_of_a_labeler(share: float) -> None:
    data = wide()
    again = in_table(**data, ann_3=changed(data["suggested_llm"], share))
    assert again["labeler-equals-annotator"].examples == ("ann_3",)
    assert "share errors" in again["labeler-equals-annotator"].message
    assert "labeler-equals-annotator" not in in_table(**data)
    assert "labeler-equals-annotator" not in in_table(**data, ann_3=wide(seed=2)["ann_0"])


def test_good_annotators_are_no_copies() -> None:
    """An annotator and a labeler that are nearly always right, next to bad annotators."""
    for seed in range(5):
        sim = dhkappa.simulate(
            600, annotators=[0.97, 0.7, 0.7, 0.7], labelers={"llm": 0.97}, categories=NAMES, rng=seed, missing=0.0
        )
        assert "labeler-equals-annotator" not in found(sim.votes, sim.suggested)


@pytest.mark.parametrize(
    ("annotator", "labeler"),
    [("ann_llm", "suggested_llm"), ("ann_GPT-4o", "suggested_gpt4o"), ("ann_x.1", "suggested_X1")],
)
def test_annotators_with_the_name_of_a_labeler(annotator: str, labeler: str) -> None:
    data = wide()
    data[labeler] = data.pop("suggested_llm")
    problem = in_table(**data, **{annotator: wide(seed=2)["ann_0"]})["labeler-equals-annotator"]
    assert problem.examples == (annotator,)


@pytest.mark.parametrize(
    ("name", "flagged"),
    [
        *(
            (name, True)
            for name in ("gpt-4", "gpt4o", "ChatGPT", "claude_3", "my model", "LLM2", "majority", "final_label")
        ),
        *(
            (name, False)
            for name in ("ada", "3", "modelle", "finley", "gold_smith", "ella", "w-17", "robert", "Bert", "aiko")
        ),
    ],
)
def test_names_that_are_no_annotators(name: str, flagged: bool) -> None:
    data = wide()
    table = in_table(**data, **{f"ann_{name}": wide(seed=1)["ann_1"][::-1]})
    problems = Dataset(pl.DataFrame({**data, f"ann_{name}": data["ann_1"][::-1]})).check().problems
    says = [one for one in problems if one.code == "not-annotators" and "named like" in one.message]
    assert bool(says) == flagged
    if flagged:
        assert table["not-annotators"].severity == "warning"
        assert (says[0].options, says[0].choices) == ({}, {"annotators": "ann_0,ann_1,ann_2"})


# Annotators that are other annotators


def test_equal_annotators() -> None:
    data = wide()
    problem = in_table(**data, ann_3=data["ann_1"])["annotators-equal"]
    assert problem.examples == ("ann_1", "ann_3")
    assert problem.options == {"annotators": "ann_0,ann_1,ann_2"}
    assert "annotators-equal" not in in_table(**data)
    del data["ann_2"]
    assert "annotators-equal" in in_table(**data, ann_3=data["ann_1"])  # by one more annotator and the labeler


def test_annotators_that_all_agree_are_no_copies() -> None:
    labels = NAMES * 100
    assert in_table(suggested_llm=labels, ann_0=labels, ann_1=labels, ann_2=labels) == {}


def test_majority_among_the_annotators() -> None:
    data = wide(300)
    most = majority(data["ann_0"], data["ann_1"], data["ann_2"])
    problem = in_table(**data, ann_zoe=most)["not-annotators"]
    assert (problem.severity, problem.examples) == ("warning", ("ann_zoe",))
    assert "not-annotators" not in in_table(**data, ann_zoe=changed(most, 0.1))
    assert "not-annotators" not in in_table(**data)


# Labels made from votes


def test_changed_majority_labels() -> None:
    sim = dhkappa.simulate(1500, annotators=3, accuracy=0.8, categories=NAMES[:2], missing=0.0, rng=3)
    most = majority(*sim.votes.T.tolist())
    other = dict(zip(NAMES[:2], NAMES[1::-1], strict=True))
    draw = np.random.default_rng(1).random(1500)
    for share in (0.02, 0.05, 0.1):
        labels = [other[label] if x < share else label for label, x in zip(most, draw.tolist(), strict=True)]
        problem = found(sim.votes, labels)["labels-from-votes"]
    assert "where votes differ" in problem.message
    truth = [other[label] if x < 0.05 else label for label, x in zip(sim.truth.tolist(), draw.tolist(), strict=True)]
    assert "labels-from-votes" not in found(sim.votes, truth)


def test_labels_that_are_random_votes() -> None:
    data = wide(600)
    votes = [data[f"ann_{place}"] for place in range(3)]
    draw = np.random.default_rng(2).integers(0, 3, 600).tolist()
    labels = [votes[who][item] for item, who in enumerate(draw)]
    problem = found([*map(list, zip(*votes, strict=True))], labels)["labels-from-votes"]
    assert "all 600 labels are a vote of their item" in problem.message
    assert "labels-from-votes" not in found([*map(list, zip(*votes, strict=True))], data["suggested_llm"])
    assert "labels-from-votes" not in found([*map(list, zip(*votes, strict=True))], changed(labels, 0.05))


# Rows


def test_repeated_rows_in_order() -> None:
    table = pl.DataFrame(wide(200))
    for again in (pl.concat([table, table]), pl.concat([table, table[:60]])):
        codes = {one.code: one for one in Dataset(again).check().problems}
        assert "repeat a sequence" in codes["repeated-rows"].message
    assert "60 rows of 260" in codes["repeated-rows"].message
    for clean in (table, table.sort(table.columns)):
        assert "repeated-rows" not in {one.code for one in Dataset(clean).check().problems}
    named = pl.concat([table, table]).with_row_index("item")
    assert "repeated-rows" not in {one.code for one in Dataset(named).check().problems}


@pytest.mark.filterwarnings("error")
def test_repeated_rows_among_the_first() -> None:
    table = pl.DataFrame(wide(200))
    again = pl.concat([table[:60], table])
    with patch.object(rows, "_MOST_IN_ORDER", 150):
        codes = {one.code: one for one in Dataset(again).check().problems}
    assert "60 rows of 150" in codes["repeated-rows"].message


def test_repeated_rows_in_any_order() -> None:
    table = pl.DataFrame(wide(200))
    mixed = pl.concat([table, table]).sample(fraction=1, shuffle=True, seed=1)
    codes = {one.code: one for one in Dataset(mixed).check().problems}
    assert "Each of 400 rows occurs 2 times" in codes["repeated-rows"].message


def test_repeated_texts() -> None:
    table = pl.DataFrame(wide(200)).with_columns(text=pl.Series([f"text of message {n}" for n in range(200)]))
    again = pl.concat([table, table.sample(20, seed=1)]).sample(fraction=1, shuffle=True, seed=2)
    codes = {one.code: one for one in Dataset(again).check().problems}
    assert "20 of 220 rows repeat another one: the same 'text', votes and labels." in codes["repeated-rows"].message
    other_votes = pl.concat([table, table[:20].with_columns(ann_0=pl.lit("cat"), ann_1=pl.lit("dog"))])
    assert "repeated-rows" not in {one.code for one in Dataset(other_votes).check().problems}


@pytest.mark.parametrize(
    ("times", "flagged"),
    [
        ([1] * 300 + [2] * 200 + [3] * 5 + [40, 50], True),
        ([1] * 300 + [2] * 200 + [3] * 90 + [40, 50], False),
        ([1] * 100 + [2] * 9, False),
        ([2, 4, 6, 10] * 5, True),
        ([2, 4, 6, 10] * 4, False),  # few kinds of rows
    ],
)
def test_numbers_of_equal_rows(times: list[int], flagged: bool) -> None:
    assert bool(rows._by_number(np.array(times))) == flagged


def test_repeated_rows_of_counts() -> None:
    rng = np.random.default_rng(1)
    counts = rng.multinomial(9, [0.5, 0.3, 0.2], 80)
    labels = rng.choice(NAMES, 80).tolist()
    for times, flagged in ((1, False), (2, True)):
        data = Dataset(None, labels * times, counts=np.tile(counts, (times, 1)), categories=NAMES)
        assert ("repeated-rows" in {one.code for one in data.check().problems}) == flagged


@pytest.mark.parametrize("given", [pl.DataFrame(schema=dict.fromkeys(wide(20), pl.String)), []])
def test_data_without_items(given: Any) -> None:
    data = Dataset(given) if isinstance(given, pl.DataFrame) else Dataset(given, {"llm": []})
    assert [(one.code, one.severity) for one in data.check().problems] == [("no-items", "error")]


@pytest.mark.parametrize("n_votes", [1, 2])
def test_items_with_few_votes(n_votes: int) -> None:
    """Of each item, only one or two of three annotators vote."""
    data = pl.DataFrame(wide(90))
    for place in range(3):
        own = pl.int_range(90).sub(place).mod(3) < n_votes
        data = data.with_columns(pl.when(own).then(pl.col(f"ann_{place}")).alias(f"ann_{place}"))
    codes = {one.code for one in Dataset(data).check().problems}
    assert codes <= {"too-few-items", "repeated-rows", "one-vote"}


def test_labelers_without_labels() -> None:
    data = wide(60)
    labels = {"llm": data["suggested_llm"], "blank": [None] * 60}
    votes = [list(row) for row in zip(*(data[f"ann_{place}"] for place in range(3)), strict=True)]
    problem = found(votes, labels)["labeler-abstains"]
    assert (problem.severity, problem.labelers) == ("error", ("blank",))
    assert "too-few-items" not in found(votes, labels)


def test_person() -> None:
    assert copies._person("ann_GPT-4o") == copies._person("suggested_gpt4o") == "gpt4o"
    assert copies._person("ann_1") != copies._person("ann_2")
