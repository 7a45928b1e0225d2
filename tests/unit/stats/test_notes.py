"""Notes: the condition of each."""

from typing import Any

import pytest

from dhkappa import Kappa, dh_kappa, fleiss_kappa, simulate
from dhkappa.stats.notes import spelled

A, B, C = ["a", "a"], ["b", "b"], ["c", "c"]


def codes(kappa: Kappa) -> set[str]:
    return {note.code for note in kappa.notes}


MANY = simulate(400, categories=["a", "b", "c"], accuracy=0.95, labelers={"x": 0.9}, rng=3)


@pytest.mark.parametrize(
    ("code", "votes", "suggested"),
    [
        ("items-excluded", [A, ["a"], []], ["a", "a", "a"]),
        ("few-items", [A, B], ["a", "b"]),
        ("one-category-voted", [A, A], ["a", "b"]),
        ("one-label", [A, B], ["a", "a"]),
        ("rare-labels", [A] * 40 + [B], ["a"] * 40 + ["b"]),
        ("few-imperfect-items", [A] * 40 + [["a", "b"]], ["a"] * 41),
        ("two-categories", [A, B], ["a", "b"]),
        ("agreement-certain", [A], ["a"]),
        ("perfect", [A, B], ["a", "b"]),
        ("agree-on-others", [A, A], ["b", "b"]),
        ("below-random", [A, B, C], ["b", "c", "a"]),
        ("labels-not-in-votes", [A, B], ["x", "b"]),
        ("never-suggested", [A, B, C], ["a", "b", "a"]),
        ("equals-majority", [A, B, ["a", "a", "b"]], ["a", "b", "a"]),
        ("looks-missing", [["a", "N/A"], B], ["a", "b"]),
        ("category-variants", [["Yes", "yes "], ["no", "No"]], ["Yes", "no"]),
        ("category-variants", [["3", "3.0"], ["2", "2"]], ["3", "2"]),
        ("labels-mixed", [["a", 1], ["b", "b"]], ["a", "b"]),
        ("random-not-zero", [A, B, C], ["a", "b", "c"]),
        ("low-agreement", [["a", "b"], ["b", "c"], ["a", "c"]], ["a", "b", "c"]),
        ("no-standard-error", [A] * 5, ["b"] * 5),
        ("votes-follow-agreement", [A] * 50 + [B] * 50 + [["a", "b", "a"], ["b", "a", "b"]] * 50, ["a", "b"] * 100),
    ],
)
def test_each_note_has_its_condition(code: str, votes: Any, suggested: Any) -> None:
    kappa = dh_kappa(votes, suggested)
    assert code in codes(kappa)
    assert all(note.text[0] == note.text[0].upper() and note.text.endswith(".") for note in kappa.notes)
    quiet = dh_kappa(MANY.votes, MANY.suggested["x"])
    assert codes(quiet) == {"random-not-zero"}


def test_notes_stop_at_their_limits() -> None:
    thirty = dh_kappa([A, B, C] * 10, ["a", "b", "c"] * 10)
    assert codes(thirty) == {"perfect", "random-not-zero"}
    ten_wrong = dh_kappa([A, B, C] * 20 + [["a", "b"]] * 10, ["a", "b", "c"] * 20 + ["c"] * 10)
    assert codes(ten_wrong) == {"random-not-zero"}
    assert "few-imperfect-items" in codes(dh_kappa([A, B, C] * 20 + [["a", "b"]] * 9, ["a", "b", "c"] * 20 + ["c"] * 9))
    assert "two-categories" in codes(dh_kappa([A, B], ["a", "b"], categories=["a", "b", "c"]))
    assert "two-categories" not in codes(dh_kappa([A, B], ["a", "c"]))
    assert "low-agreement" not in codes(dh_kappa([A, B], ["a", "c"]))


def test_agreement_must_differ_by_enough_and_surely() -> None:
    def noted(pairs: list[list[str]], triples: list[list[str]]) -> bool:
        return "votes-follow-agreement" in codes(fleiss_kappa(pairs + triples))

    split, halved = ["a", "b"], ["a", "a", "b"]
    assert noted([A] * 450 + [split] * 550, [halved] * 1000)  # .117 apart, 7.4 standard errors
    assert not noted([A] * 45 + [split] * 55, [halved] * 100)  # .117 apart, 2.3 standard errors
    assert not noted([A] * 4200 + [split] * 5800, [halved] * 10_000)  # .087 apart, 17 standard errors


def test_fleiss_notes_are_of_votes_only() -> None:
    assert codes(fleiss_kappa([A, ["a"]])) == {"items-excluded", "few-items", "one-category-voted"}
    assert codes(fleiss_kappa(MANY.votes)) == set()


def test_notes_on_the_sampling_design() -> None:
    votes, labels = [A, B, C, ["a", "b"]] * 2, list("abca") * 2
    assert "unequal-weights" in codes(dh_kappa(votes, labels, sample_weight=[100, *[1] * 7]))
    assert "unequal-weights" not in codes(dh_kappa(votes, labels, sample_weight=[2, *[1] * 7]))
    assert "votes-fixed" in codes(dh_kappa(votes, labels, pool=159))
    assert "votes-fixed" not in codes(dh_kappa(votes, labels, pool=160))


def test_notes_with_agreement_weights() -> None:
    kappa = dh_kappa([A, B, ["a", "b"], ["a"]], ["a", "b", "a", "b"], weights="linear", categories=["a", "b"])
    assert codes(kappa) == {"items-excluded", "few-items", "equals-majority", "low-agreement"}
    assert "(weighted Fleiss' kappa 0.33, below 0.4)" in next(n.text for n in kappa.notes if n.code == "low-agreement")
    assert codes(dh_kappa([[0, 1], [1, 0]], [0, 1], weights=[[1, 1], [1, 1]], categories=[0, 1])) == {"few-items"}
    assert "agreement-certain" in codes(dh_kappa([A], ["a"], weights="linear", categories=["a", "b"]))


@pytest.mark.parametrize(
    ("label", "same"), [(" Yes", "yes"), ("3.0", "3"), ("+3.", "+3"), ("-3.00", "-3"), ("3.1", "3.1"), ("a.0", "a.0")]
)
def test_spelling(label: str, same: str) -> None:
    assert spelled(label) == same
