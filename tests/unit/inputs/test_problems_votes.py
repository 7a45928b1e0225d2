"""Rules about vote patterns on simulated tables: what must be found, and what must not."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest

from dhkappa import Dataset, audit
from dhkappa.errors import Problem
from dhkappa.inputs.problems.annotators import annotator_scores
from dhkappa.inputs.problems.sampled_votes import sampled_votes

NAMES = ("billing", "bug", "how-to", "other", "refund")


def draw(rng: np.random.Generator, truth: Any, accuracy: float, m: int) -> Any:
    """Return labels that are right with some probability, else any other category."""
    wrong = (truth + rng.integers(1, m, len(truth))) % m
    return np.where(rng.random(len(truth)) < accuracy, truth, wrong)


def table(n: int, annotators: int, m: int, accuracy: float, labels: Any, seed: int) -> pl.DataFrame:
    """Simulate votes, and labels with an accuracy or, if ``labels`` is None, the most frequent vote."""
    rng = np.random.default_rng(seed)
    truth, names = rng.integers(0, m, n), np.array(NAMES, object)
    votes = np.stack([draw(rng, truth, accuracy, m) for _ in range(annotators)], 1)
    most = np.stack([(votes == code).sum(1) for code in range(m)], 1) + rng.random((n, m)) / 2
    given = most.argmax(1) if labels is None else draw(rng, truth, labels, m)
    columns = {f"ann_{place}": names[votes[:, place]].tolist() for place in range(annotators)}
    ids = [f"T-{place:04d}" for place in range(n)]
    return pl.DataFrame({"item": ids, **columns, "suggested_llm": names[given].tolist()})


def found(data: Any, **given: Any) -> dict[str, Problem]:
    """Return the warnings and errors by code."""
    return {one.code: one for one in Dataset(data, **given).check().problems if one.severity != "info"}


@pytest.mark.parametrize("accuracy", [0.8, 0.9])
def test_ties_of_all_categories_say_nothing_about_labels(accuracy: float) -> None:
    for seed in range(4):
        assert "labels-from-votes" not in found(table(3000, 2, 2, 0.8, accuracy, seed))
    assert "labels-from-votes" in found(table(1000, 2, 2, 0.8, None, 1))


def test_many_votes_do_not_make_a_good_labeler_suspicious() -> None:
    """The most frequent of ten votes is hardly ever wrong, and neither is the labeler."""
    for seed in range(6):
        assert "labels-from-votes" not in found(table(500, 10, 5, 0.75, 0.99, seed))


@pytest.mark.parametrize("annotators", [3, 4, 5])
def test_most_frequent_votes_are_found(annotators: int) -> None:
    for seed in range(4):
        assert "labels-from-votes" in found(table(300, annotators, 5, 0.8, None, seed))


def long(data: pl.DataFrame) -> dict[str, Any]:
    """Return the votes in long format, and the items table."""
    names = [name for name in data.columns if name.startswith("ann_")]
    votes = data.unpivot(names, index="item", variable_name="annotator", value_name="label").drop_nulls()
    return {"data": votes, "items": data.drop(names)}


@pytest.mark.parametrize("how", ["shifted", "sorted", "swapped", "abbreviated"])
@pytest.mark.parametrize("m", [2, 5])
def test_an_annotator_at_chance_is_named(how: str, m: int) -> None:
    data = table(500, 4, m, 0.85, 0.8, 1)
    own = data["ann_2"].to_list()
    votes = {
        "shifted": own[1:] + own[:1],
        "sorted": sorted(own),
        "swapped": [NAMES[(NAMES.index(label) + 1) % m] for label in own],
        "abbreviated": [label[:2] for label in own],
    }
    changed = data.with_columns(ann_2=pl.Series(votes[how]))
    problem = found(**long(changed))["annotator-differs"]
    assert (problem.severity, problem.examples) == ("warning", ("ann_2",))
    assert how == "abbreviated" or found(changed)["annotator-differs"].examples == ("ann_2",)
    assert "annotator-differs" not in found(**long(data))
    assert "annotator-differs" not in found(data)


def test_annotators_who_agree_less_do_not_differ() -> None:
    rng = np.random.default_rng(1)
    for seed in range(5):
        data = table(600, 4, 3, 0.9, 0.8, seed)
        votes = np.where(rng.random(600) < 0.5, data["ann_2"], data["ann_2"].shuffle(seed))
        assert "annotator-differs" not in found(data.with_columns(ann_2=pl.Series(votes.tolist())))


def test_scores_of_annotators_by_loops() -> None:
    data = table(60, 4, 3, 0.7, 0.8, 1).with_columns(
        ann_0=pl.when(pl.int_range(60) % 3 == 0).then(None).otherwise(pl.col("ann_0"))
    )
    votes = Dataset(data).item_votes()
    assert votes is not None
    rows = [[row[f"ann_{place}"] for place in range(4)] for row in data.iter_rows(named=True)]
    for place, score in enumerate(annotator_scores(sampled_votes(votes))):
        others = Counter(
            label for row in rows for who, label in enumerate(row) if label and (who != place or row.count(None) > 1)
        )
        chance = sum((number / others.total()) ** 2 for number in others.values())
        own, pairs = [], []
        for row in rows:
            rest = [label for who, label in enumerate(row) if label and who != place]
            if row[place] and len(rest) > 1:
                own.append(rest.count(row[place]) / len(rest) - others[row[place]] / others.total())
                agree = [x == y for x, y in combinations(rest, 2)]
                pairs.append(sum(agree) / len(agree) - chance)
        assert score.n == len(own)
        assert score.own == pytest.approx(sum(own) / len(own) / (1 - chance))
        assert score.others == pytest.approx(sum(pairs) / len(pairs) / (1 - chance))


def test_votes_that_are_never_suggested() -> None:
    data, every = table(300, 3, 5, 0.85, 0.8, 1), pl.int_range(300)
    for share, code in ((7, "votes-not-suggested"), (20, None)):
        columns = [
            pl.when(every % share == 0).then(pl.lit("approved")).otherwise(f"ann_{n}").alias(f"ann_{n}")
            for n in range(3)
        ]
        problems = found(data.with_columns(columns))
        assert (problems["votes-not-suggested"].examples == ("'approved'",)) if code else not problems


def test_many_rare_categories_need_not_be_suggested() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 1000, 600)
    columns = {f"ann_{n}": [f"class {code}" for code in draw(rng, truth, 0.85, 1000)] for n in range(4)}
    labels = [f"class {code}" for code in draw(rng, truth, 0.6, 1000)]
    assert found(pl.DataFrame({"item": range(600), "suggested_llm": labels, **columns})) == {}


@pytest.mark.parametrize("kind", [int, str])
@pytest.mark.parametrize(
    ("code", "numbers", "flagged"),
    [
        (-99, [1, 2, 3], True),
        (-1, [1, 2, 3], True),
        (-1, [0, 1, 2], True),
        (-1, [0, 1], False),
        (-1, [-2, 0, 1], False),
        (999, [1, 2, 3], True),
        (99, [97, 98, 100], False),
    ],
)
def test_numbers_that_mean_missing(kind: Any, code: int, numbers: list[int], flagged: bool) -> None:
    votes = [[kind(numbers[place % len(numbers)])] * 3 for place in range(60)]
    for row in votes[::5]:
        row[0] = kind(code)
    labels = [row[1] for row in votes]
    assert ("looks-missing" in {one.code for one in Dataset(votes, {"llm": labels}).check().problems}) is flagged


def test_lists_are_not_split_at_commas() -> None:
    votes = [['["billing", "bug"]', '["billing"]', '["bug"]']] * 30
    problem = found(votes, suggested={"llm": ['["billing"]'] * 30}, multilabel=",")["not-a-label-set"]
    assert problem.options == {"multilabel": "json"}
    assert "not-a-label-set" not in found(votes, suggested={"llm": ['["billing"]'] * 30}, multilabel="json")


def test_lists_of_python_are_no_json() -> None:
    votes = [["['billing', 'bug']", "['billing']", "['bug']"]] * 30
    problem = found(votes, suggested={"llm": ["['billing']"] * 30})["looks-multilabel"]
    assert problem.options == {}
    assert "double quotes" in problem.fix


def test_votes_that_are_all_there_twice() -> None:
    given = long(table(60, 3, 5, 0.8, 0.8, 1))
    votes = given["data"].drop("annotator")
    assert "repeated-rows" not in found(votes, items=given["items"])
    assert "multiples of 2" in found(pl.concat([votes, votes]), items=given["items"])["repeated-rows"].message
    agreed = pl.concat([votes.unique("item")] * 2)  # two annotators who always agree
    assert "repeated-rows" not in found(agreed, items=given["items"])


def test_a_header_among_the_rows() -> None:
    data = table(60, 3, 5, 0.8, 0.8, 1)
    header = pl.DataFrame([data.columns], schema=data.columns, orient="row")
    problem = found(pl.concat([data[:30], header, data[30:]]))["header-repeated"]
    assert problem.examples == ("'ann_0'", "'ann_1'", "'ann_2'")
    given = long(data)
    votes = pl.concat(
        [given["data"], pl.DataFrame({"item": ["T-0001"], "annotator": ["annotator"], "label": ["label"]})]
    )
    assert found(votes, items=given["items"])["header-repeated"].examples == ("'label'",)
    assert "header-repeated" not in found(**given)


FOOTER = ["30", "30", "29"]


@pytest.mark.parametrize(
    ("footers", "examples"),
    [
        ({"Total": FOOTER}, ("'Total'",)),
        ({"TOTAL:": ["30", None, None], "Average": ["1.2", "3.1", "2.7"]}, ("'Average'", "'TOTAL:'")),
        ({"Total": ["bug", "bug", "other"]}, ()),  # an item that is called so
        ({"Total": ["bug", "bug", "30"]}, ()),
        ({"Total": [None, None, None]}, ()),
        ({"Total cost": FOOTER}, ()),
        ({"T-0060": FOOTER}, ()),
    ],
)
@pytest.mark.parametrize("column", ["item", "remark"])
@pytest.mark.parametrize("lazy", [False, True])
def test_a_total_below_the_items(footers: dict[str, Any], examples: tuple[str, ...], column: str, lazy: bool) -> None:
    data = table(60, 3, 5, 0.8, 0.8, 1)
    rows = [[name, *votes, None] for name, votes in footers.items()]
    data = pl.concat([data, pl.DataFrame(rows, schema=data.schema, orient="row")]).rename({"item": column})
    problem = found(data.lazy() if lazy else data).get("footer-row")
    assert (problem.examples if problem else ()) == examples
    assert problem is None or problem.severity == "warning"


@pytest.mark.parametrize("name", ["completed_by", "email", "rater", "worker", "reviewer", "created_by.email"])
def test_columns_of_annotators_in_long_format(name: str) -> None:
    given = long(table(60, 3, 5, 0.8, 0.8, 1))
    problem = found(given["data"].rename({"annotator": name}), items=given["items"])["annotators-unused"]
    assert problem.choices == {"annotator": name}


def test_fixes_say_how_to_accept_a_problem() -> None:
    data = table(300, 3, 5, 0.8, None, 1)
    assert "$allow=" in found(data)["labels-from-votes"].fix
    assert "$allow=" in found(data.with_columns(suggested_copy="ann_1"))["labeler-equals-annotator"].fix
    votes = pl.when(pl.int_range(300) % 5 == 0).then(pl.lit("n/a")).otherwise("ann_1").alias("ann_1")
    assert "$allow=" in found(data.with_columns(votes))["looks-missing"].fix


@pytest.mark.parametrize("n", [20, 95, 150])
def test_votes_for_one_category_say_nothing_about_labels(n: int) -> None:
    """The sums of weights may round to more than 1, so that chance agreement seems to be below the agreement."""
    votes = pl.DataFrame([{"item": item, "annotator": who, "label": "x"} for item in range(n) for who in "pqr"])
    items = pl.DataFrame({"item": range(n), "suggested_llm": ["y", *["x"] * (n - 1)]})
    found = audit(votes, items=items, progress=False)
    assert found.verdict().code == "not-enough-data"
    assert found.kappas["llm"].value == 0
