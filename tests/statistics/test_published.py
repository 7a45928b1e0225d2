"""Published values of Fleiss' kappa, and kappa_DH of real annotation data, to the digits that are given."""

from collections import defaultdict
from pathlib import Path

import pytest

from dhkappa import dh_kappa, fleiss_kappa
from published import LABELERS, PUBLISHED, SCORED, UNLABELED, digits, fleiss_of_counts, rows_of, table_of


@pytest.mark.parametrize("name", PUBLISHED)
def test_fleiss_kappa_against_published_table(name: str, shared_data: Path) -> None:
    result = fleiss_of_counts(shared_data / "published" / name / "counts.csv")
    assert digits(result.value, PUBLISHED[name]) == PUBLISHED[name]


def test_single_votes_are_excluded_from_the_ragged_table(shared_data: Path) -> None:
    result = fleiss_of_counts(shared_data / "published" / "irrcac_raw4raters" / "counts.csv")
    assert (result.excluded.no_votes, result.excluded.one_vote) == (0, 1)


def test_votes_and_counts_of_fleiss_1971_agree(shared_data: Path) -> None:
    folder = shared_data / "published" / "fleiss1971_diagnoses"
    votes: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows_of(folder / "annotations.csv"):
        votes[row["item"]].append(row["label"])
    assert fleiss_kappa(list(votes.values())).exact == fleiss_of_counts(folder / "counts.csv").exact


def test_dynasent_against_its_authors(shared_data: Path) -> None:
    """DynaSent's authors publish .616 for round 1 dev."""
    assert digits(fleiss_kappa(table_of(shared_data / "dynasent_r1_dev").votes).value, "0.616") == "0.616"


@pytest.mark.parametrize("name", SCORED)
def test_fleiss_kappa_against_values_of_real_data(name: str, shared_data: Path) -> None:
    result = fleiss_kappa(table_of(shared_data / name).votes)
    assert digits(result.value, SCORED[name].fleiss) == SCORED[name].fleiss


def test_majority_baseline_depends_on_the_order_of_categories(shared_data: Path) -> None:
    """The figures of docs/methods.md."""
    table = table_of(shared_data / "labelerrors_imagenet")
    result = dh_kappa(table.votes, table.suggested("given"))
    by_code_point = dh_kappa(table.votes, table.suggested("given"), categories=sorted(map(str, result.categories)))
    assert by_code_point.exact == result.exact
    assert (digits(result.baselines.majority, ".56684"), digits(by_code_point.baselines.majority, ".56700")) == (
        "0.56684",
        "0.56700",
    )


@pytest.mark.parametrize(("name", "labeler"), LABELERS, ids=map("-".join, LABELERS))
def test_dh_kappa_against_values_of_real_data(name: str, labeler: str, shared_data: Path) -> None:
    table = table_of(shared_data / name)
    result = dh_kappa(table.votes, table.suggested(labeler))
    assert digits(result.value, SCORED[name].kappas[labeler]) == SCORED[name].kappas[labeler]
    unlabeled = UNLABELED.get((name, labeler), 0)
    assert result.excluded.no_label == unlabeled
    assert result.n_items == len(table.rows) - result.excluded.total
