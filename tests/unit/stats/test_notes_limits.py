"""Notes: all codes of small data sets, and the values at which each note begins."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dhkappa import Kappa, dh_kappa, fleiss_kappa
from dhkappa.stats.kappa import ExactBaselines
from dhkappa.stats.notes import Note, first_three, notes_of
from exact import EXAMPLE, example

F = Fraction


def codes(kappa: Kappa) -> set[str]:
    return {note.code for note in kappa.notes}


@pytest.mark.parametrize(
    ("votes", "labels", "expected"),
    [
        (
            [[1, 1], [1]],
            [1, 1],
            "items-excluded few-items one-category-voted one-label agreement-certain",
        ),
        (EXAMPLE.votes, EXAMPLE.suggested, "few-items random-not-zero"),
        (
            [["a", "a"]] * 29 + [["b", "b"]] * 3,
            ["a"] * 30 + ["b"] * 2,
            "rare-labels few-imperfect-items two-categories",
        ),
        (
            [["a", "a"]] * 10 + [["b", "b"]] * 10 + [["a", "b"]] * 10,
            ["a"] * 10 + ["b"] * 20,
            "two-categories equals-majority low-agreement",
        ),
        (
            [["a", "a"]] * 5 + [["b", "b"]] * 4,
            ["a"] * 5 + ["c", "d", "e", "f"],
            "few-items labels-not-in-votes never-suggested random-not-zero",
        ),
        (
            [["a", "b"]] * 5 + [["b", "c"]] * 4 + [["d", "d"]],
            ["a"] * 10,
            "few-items one-label never-suggested agree-on-others random-not-zero low-agreement",
        ),
    ],
)
def test_all_codes(votes: Any, labels: Any, expected: str) -> None:
    assert codes(dh_kappa(votes, labels)) == set(expected.split())


def test_limits() -> None:
    assert "labels-not-in-votes" not in codes(dh_kappa([["a", "a"]] * 10, ["a"] * 9 + ["b"]))
    assert "never-suggested" not in codes(dh_kappa([["a", "a"]] * 9 + [["a", "b"]], ["a"] * 10))
    assert "votes-fixed" in codes(example(pool=100))
    assert "votes-fixed" in codes(fleiss_kappa(EXAMPLE.votes, pool=12))
    assert "votes-fixed" not in codes(example(pool=120))
    assert "unequal-weights" in codes(example(sample_weight=[1, 1, 1, 1, 1, 9]))
    votes = [list("aa")] * 30 + [list("bb")] * 10 + [list("abc")] * 30 + [list("aaa")] * 5
    assert "votes-follow-agreement" in codes(dh_kappa(votes, ["a"] * 75))
    assert "votes-follow-agreement" not in codes(dh_kappa(votes[1:30] + votes[40:], ["a"] * 64))


def test_examples_in_notes_are_up_to_three() -> None:
    kappa = dh_kappa([["a", "a"]] * 5 + [["b", "b"]] * 4, ["a"] * 5 + ["c", "d", "e", "f"])
    (text,) = (note.text for note in kappa.notes if note.code == "labels-not-in-votes")
    assert "'c', 'd', 'e', ..." in text
    several = dh_kappa([["na", "none"], ["null", "nil"]], ["na", "nil"])
    (text,) = (note.text for note in several.notes if note.code == "looks-missing")
    assert "'na', 'nil', 'none', ..." in text


@pytest.mark.parametrize(
    ("votes", "variants", "mixed"),
    [
        ([["a", "A"], ["n/a", "b "], ["b", "B"]], True, False),
        ([["3", " 3. "], ["-2.00", "-2"], ["3.05", "3a.0"]], True, False),
        ([["a", 2], [3, "b"]], False, True),
        ([["a", "3.5"], ["b", "3"]], False, False),
        ([[1, 2], [2, 1]], False, False),
    ],
)
def test_spelling(votes: list[list[Any]], variants: bool, mixed: bool) -> None:
    found = codes(dh_kappa(votes, [item[0] for item in votes]))
    assert ("category-variants" in found, "labels-mixed" in found) == (variants, mixed)


@pytest.mark.parametrize(
    ("R", "S", "kappa", "random", "majority", "fleiss", "expected"),
    [
        (
            *(F(1, 5), F(1, 2), F(1, 10), F(1, 5), F(1, 10), F(39, 100)),
            "equals-majority agree-on-others random-not-zero below-random low-agreement",
        ),
        (F(1, 5), F(1, 2), F(0), F(1, 20), F(1, 10), F(2, 5), "agree-on-others below-random"),
        (F(1, 2), F(1, 2), F(0), F(-1, 19), F(1, 10), F(-1, 1000), "random-not-zero low-agreement"),
        (F(1, 5), F(1, 2), F(-1, 10), F(-1, 10), F(1, 10), None, "random-not-zero"),
        (F(1), F(0), F(1), F(0), F(1), F(1), "perfect"),
        (F(1), F(0), None, None, None, None, "agreement-certain"),
    ],
)
def test_limits_of_the_value(
    R: F, S: F, kappa: F | None, random: F | None, majority: F | None, fleiss: F | None, expected: str
) -> None:
    """The example, with other values in place of its own."""
    plain = example().estimate
    assert plain.parts is not None
    parts = replace(plain.parts, R=R, S=S)
    changed = replace(plain, parts=parts, exact=kappa, fleiss=fleiss)
    vars(changed)["baselines"] = ExactBaselines(random, majority)
    on_value = {
        *("equals-majority", "agree-on-others", "random-not-zero", "below-random", "low-agreement"),
        *("perfect", "agreement-certain"),
    }
    assert {note.code for note in notes_of(changed, 0.1)} & on_value == set(expected.split())


def test_standard_error() -> None:
    plain = example().estimate
    assert "no-standard-error" in {note.code for note in notes_of(plain, math.nan)}
    assert "no-standard-error" not in {note.code for note in notes_of(plain, 0.1)}
    one = dh_kappa([[1, 2]], [1]).estimate
    assert "no-standard-error" not in {note.code for note in notes_of(one, math.nan)}


def test_agreement_on_other_labels_is_compared_with_chance() -> None:
    plain = example().estimate
    assert plain.parts is not None
    changed = replace(plain, parts=replace(plain.parts, R=F(2, 5), S=F(1, 2)))
    near, above = "about as large, so kappa is near 0", "larger, so kappa is above 0"
    for kappa, said in ((F(0), near), (F(1, 10), above), (F(1, 3), above)):
        found = {note.code: note.text for note in notes_of(replace(changed, exact=kappa), 0.1)}
        start = "More pairs agree on another label (0.50) than on the suggested one (0.40). "
        assert found["agree-on-others"] == f"{start}The difference expected by chance is {said}."


@pytest.mark.parametrize(("fleiss", "written"), [(F(-1, 1000), "0.00"), (F(-1, 100), "-0.01"), (F(1, 3), "0.33")])
def test_low_agreement_is_rounded_without_a_negative_zero(fleiss: F, written: str) -> None:
    found = {note.code: note.text for note in notes_of(replace(example().estimate, fleiss=fleiss), 0.1)}
    assert f"(Fleiss' kappa {written}, below 0.4)" in found["low-agreement"]


@pytest.mark.parametrize(
    ("kappa", "random", "shown"),
    [
        (F(1, 10), F(1, 5), ("0.10", "0.20")),
        (F(1231, 10**4), F(1239, 10**4), ("0.123", "0.124")),
        (F(-1, 10**4), F(0), ("-0.0001", "0.0000")),
        (F(1), F(1) + F(1, 10**5), ("1.00000", "1.00001")),
        (F(1, 3), F(1, 3) + F(1, 10**9), ("0.333333", "0.333333")),
    ],
)
def test_scores_below_random_have_digits_enough_to_differ(kappa: F, random: F, shown: tuple[str, str]) -> None:
    changed = replace(example().estimate, exact=kappa)
    vars(changed)["baselines"] = ExactBaselines(random, None)  # instead of those that would be computed
    found = {note.code: note.text for note in notes_of(changed, 0.1)}
    assert found["below-random"] == f"Kappa ({shown[0]}) is below the score of random labels ({shown[1]})."


def test_notes_of_the_source() -> None:
    plain = example().estimate
    changed = replace(plain, sample=replace(plain.sample, source_notes=("From x.", "From y.")))
    assert [note.text for note in notes_of(changed, 0.1) if note.code == "source"] == ["From x.", "From y."]


@pytest.mark.parametrize(("triples", "noted"), [(50, False), (100, True)])
def test_errors_of_agreement_count_items_of_both_sizes(triples: int, noted: bool) -> None:
    """Pairs always agree. Of triples, one in five has a share of 1/3: .133 apart, with errors of .038 and .027."""
    split = triples // 5
    votes = [["a", "a"]] * 100 + [["a", "a", "b"]] * split + [["a", "a", "a"]] * (triples - split)
    assert ("votes-follow-agreement" in codes(fleiss_kappa(votes))) == noted


def test_texts() -> None:
    assert [first_three("abcd"[:n]) for n in range(5)] == ["", "a", "a, b", "a, b, c", "a, b, c, ..."]
    assert Note("few-items", "There are few.").to_dict() == {"code": "few-items", "text": "There are few."}
