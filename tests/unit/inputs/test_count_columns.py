"""Columns with numbers of votes that are taken for annotators."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dhkappa import Dataset, audit, read
from dhkappa.inputs.count_columns import are_counts, without_prefix
from expect import expect_error

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "published"
NAMES = ["1", "2", "3", "4", "5"]


def table(prefix: str = "", vary: bool = False, n: int = 60) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 5, n)
    counts = np.zeros((n, 5), int)
    for item, own in enumerate(truth):
        for _ in range(6 - (vary and item % 7 == 0)):
            counts[item, own if rng.random() < 0.6 else rng.integers(0, 5)] += 1
    columns = {f"{prefix}{name}": counts[:, place].astype(str) for place, name in enumerate(NAMES)}
    return pl.DataFrame({"item": range(n), "suggested_llm": [NAMES[place] for place in truth], **columns})


def codes(data: Any, **given: Any) -> set[str]:
    return {one.code for one in Dataset(data, "suggested_llm", **given).check().problems}


@pytest.mark.parametrize("vary", [False, True])
@pytest.mark.parametrize("prefix", ["", "votes_"])
def test_number_of_votes_are_suggested_as_counts(prefix: str, vary: bool) -> None:
    with expect_error("format-unknown", parameter="counts") as caught:
        Dataset(table(prefix, vary), "suggested_llm").check_labeled()
    assert caught.value.options == {"counts": ",".join(prefix + name for name in NAMES)}


@pytest.mark.parametrize("vary", [False, True])
@pytest.mark.parametrize("prefix", ["", "votes_"])
def test_numbers_of_votes_as_annotators_are_an_error(prefix: str, vary: bool) -> None:
    data, names = table(prefix, vary), [prefix + name for name in NAMES]
    assert "looks-like-counts" in codes(data, annotators=names)
    numbers = data.with_columns(pl.col(names).cast(int))
    assert "looks-like-counts" not in codes(numbers, counts=names, map=dict(zip(names, NAMES, strict=True)))


def test_the_audit_gives_no_verdict() -> None:
    result = audit(table(), "suggested_llm", annotators=NAMES)
    assert "looks-like-counts" in {one.code for one in result.problems if one.severity == "error"}


def test_a_column_of_totals_is_left_out() -> None:
    data = table().with_columns(total=pl.sum_horizontal(pl.col(NAMES).cast(int)), id=pl.col("item") + 1000)
    with expect_error("format-unknown") as caught:
        Dataset(data, "suggested_llm").check_labeled()
    assert caught.value.options == {"counts": "1,2,3,4,5"}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("skill", [0.0, 0.3, 0.9])
def test_ratings_from_0_are_votes(seed: int, skill: float) -> None:
    """Also if annotators have the names of categories, or vote at random."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, 20)
    votes = np.where(rng.random((20, 5)) < skill, truth[:, None], rng.integers(0, 4, (20, 5)))
    columns = {name: votes[:, place] for place, name in enumerate(NAMES)}
    data = pl.DataFrame({"suggested_llm": np.maximum(truth, 1), **columns})
    assert "looks-like-counts" not in codes(data, annotators=NAMES)


def test_numbers_in_long_format_are_votes() -> None:
    votes = {"item": [*range(20)] * 2, "label": ["0", "1", "2", "3"] * 10, "suggested_llm": ["0", "1", "2", "3"] * 10}
    assert "looks-like-counts" not in codes(pl.DataFrame(votes))


def test_rare_votes_are_votes() -> None:
    votes = np.zeros((200, 3))
    votes[:10] = 2
    assert not are_counts(votes, ["a", "b", "c"], {"0", "2"})
    assert not are_counts(1 - np.eye(2)[[0, 1] * 50], ["a", "b"], {"0", "1"})  # two annotators who always differ


@pytest.mark.skipif(not DATA.exists(), reason="no published tables next to the project")
@pytest.mark.parametrize("name", ["wikipedia_fleiss", "irrcac_raw4raters"])
def test_published_tables(name: str) -> None:
    [problem] = read(DATA / name / "counts.csv").check().problems
    assert problem.options == {"counts": "1,2,3,4,5"}
    found = read(DATA / name / "counts.csv", annotators=NAMES).check().problems
    assert "looks-like-counts" in {one.code for one in found}


def test_a_category_without_a_column_is_added_to_counts() -> None:
    data = table().with_columns(pl.col(NAMES).cast(int))
    with expect_error("undeclared-label", "suggested") as caught:
        audit(data, "suggested_llm", counts=NAMES[:4])
    assert "Add it to $counts" in caught.value.hint


def test_prefixes() -> None:
    assert without_prefix(["n_votes_a", "n_votes_b_c"]) == ["a", "b_c"]
    assert without_prefix(["spam", "span"]) == ["spam", "span"]
    assert without_prefix([]) == []


LABELS = ["billing", "bug", "how-to"]


def named_counts(n: int = 80) -> pl.DataFrame:
    """Return 3 to 9 votes per item in columns called like the labels, a total, flags and years."""
    rng = np.random.default_rng(4)
    counts = np.array([rng.multinomial(int(rng.choice([3, 3, 6, 9])), [0.6, 0.3, 0.1]) for _ in range(n)])
    columns = {name: counts[:, place] for place, name in enumerate(LABELS)}
    other = {"flagged": rng.integers(0, 2, n), "year": rng.integers(2019, 2024, n), "total": counts.sum(axis=1)}
    labels = [LABELS[place % 2] for place in counts.argmax(axis=1)]
    return pl.DataFrame({"item": range(n), **columns, **other, "suggested_llm": labels})


def test_columns_named_like_labels_are_preferred() -> None:
    with expect_error("format-unknown", parameter="counts") as caught:
        Dataset(named_counts(), "suggested_llm").check_labeled()
    assert caught.value.options == {"counts": "billing,bug,how-to"}
    found = Dataset(named_counts(), "suggested_llm", annotators=LABELS).check().problems
    assert [one.code for one in found if one.severity == "error"] == ["looks-like-counts"]


def test_a_total_among_counts_is_an_error() -> None:
    found = Dataset(named_counts(), "suggested_llm", counts=[*LABELS, "total"]).check().problems
    [problem] = [one for one in found if one.code == "looks-like-counts"]
    assert problem.options == {"counts": "billing,bug,how-to"}
    assert "looks-like-counts" not in codes(named_counts(), counts=LABELS)
    matrix = named_counts().select(*LABELS, "total").to_numpy()
    arrays = Dataset(counts=matrix, categories=[*LABELS, "total"], suggested=named_counts()["suggested_llm"].to_list())
    assert "looks-like-counts" in {one.code for one in arrays.check().problems}


def test_names_are_not_translated_to_numbers_of_votes() -> None:
    """The columns are called like two of three labels, and each label goes with one number."""
    rows = {"billing": ["4", "2", "0"] * 20, "bug": ["4", "2", "0"] * 20, "x": ["4", "2", "0"] * 20}
    data = pl.DataFrame({"suggested_llm": ["billing", "bug", "how-to"] * 20, **rows})
    for problem in Dataset(data, "suggested_llm", annotators=[*rows]).check().problems:
        assert "map" not in problem.options
