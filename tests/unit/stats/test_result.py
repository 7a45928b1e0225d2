"""What a Kappa shows, and the notes it carries."""

import json
import math
from typing import Any

import numpy as np
import pytest

from dhkappa import Kappa, dh_kappa, fleiss_kappa, simulate

A, B, C = ["a", "a"], ["b", "b"], ["c", "c"]


def codes(kappa: Kappa) -> set[str]:
    return {note.code for note in kappa.notes}


def test_reads_as_a_number() -> None:
    kappa = dh_kappa([A, B, ["a", "b"]], ["a", "b", "a"])
    assert float(kappa) == kappa.value
    assert f"{kappa:.3f}" == f"{kappa.value:.3f}"
    assert f"{kappa}" == repr(kappa)
    assert repr(kappa).startswith("kappa_DH 0.6667 [-0.5107, 0.9921] (3 items, 6 votes; floor 0.0000; ceiling")
    assert "\n" not in repr(kappa)
    assert repr(kappa.parts) == "Parts(R=0.6667, S=0.0000, C_E=0.2500, C_F=0.2500, D=0.6667, E=0.0000)"


def test_to_dict_is_json() -> None:
    for kappa in (dh_kappa([A, B, C], ["a", "b", "a"]), dh_kappa([], []), fleiss_kappa([A, ["a", "b"]])):
        plain = json.loads(json.dumps(kappa.to_dict(), allow_nan=False))
        assert plain["n_items"] == kappa.n_items
        assert plain["value"] == (None if math.isnan(kappa.value) else kappa.value)
    assert plain["metric"] == "fleiss"
    assert plain["parts"]["L"] == []


def test_html_shows_labels_as_text() -> None:
    evil = "<script>alert(1)</script>"
    kappa = dh_kappa([[evil, evil]] * 40, [evil] * 39 + ["b"])
    page = kappa._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "undefined" in dh_kappa([], [])._repr_html_()


def test_is_frozen() -> None:
    with pytest.raises(AttributeError):
        dh_kappa([A, B], ["a", "b"]).value = 1.0  # type: ignore[misc]


def test_no_warning_and_no_numpy_error_state() -> None:
    with np.errstate(all="raise"):
        dh_kappa([A, ["a"], []], ["a", "b", None])


MANY = simulate(400, categories=["a", "b", "c"], accuracy=0.95, labelers={"x": 0.9}, rng=3)


@pytest.mark.parametrize(
    ("code", "votes", "suggested", "words"),
    [
        ("items-excluded", [A, ["a"], []], ["a", "a", "a"], "2 items did not count: 1 with no votes, 1 with one vote."),
        ("few-items", [A, B], ["a", "b"], "Only 2 items count"),
        ("one-category-voted", [A, A], ["a", "b"], "Every vote is 'a'"),
        ("one-label", [A, B], ["a", "a"], "Every suggested label is 'a'"),
        ("rare-labels", [A] * 40 + [B], ["a"] * 40 + ["b"], "1 of 2 suggested labels on fewer than 10 items ('b')"),
        ("few-imperfect-items", [A] * 40 + [["a", "b"]], ["a"] * 41, "differ from the label on 1 item only"),
        ("two-categories", [A, B], ["a", "b"], "Cohen's kappa"),
        ("agreement-certain", [A], ["a"], "all one category"),
        ("perfect", [A, B], ["a", "b"], "kappa is 1"),
        ("agree-on-others", [A, A], ["b", "b"], "on another label than on the suggested one (1.00 and 0.00)"),
        ("below-random", [A, B, C], ["b", "c", "a"], "less than labels dealt out at random"),
        (
            "labels-not-in-votes",
            [A, B],
            ["x", "b"],
            "1 item of 2 with a suggested label that nobody ever votes for ('x')",
        ),
        ("looks-missing", [["a", "N/A"], B], ["a", "b"], "'N/A' counts as a category"),
        (
            "category-variants",
            [["Yes", "yes "], ["no", "No"]],
            ["Yes", "no"],
            "'No', 'no' differ only in case or spaces",
        ),
        ("category-variants", [["3", "3.0"], ["2", "2"]], ["3", "2"], "'3', '3.0' are one number in two spellings"),
        (
            "labels-mixed",
            [["a", 1], ["b", "b"]],
            ["a", "b"],
            "Some labels are numbers and some are text, such as 1 and 'a'",
        ),
        ("random-not-zero", [A, B, C], ["a", "b", "c"], "would score -0.20 here"),
        ("low-agreement", [["a", "b"], ["b", "c"], ["a", "c"]], ["a", "b", "c"], "hardly agree among themselves"),
        (
            "votes-follow-agreement",
            [A] * 50 + [B] * 50 + [["a", "b", "a"], ["b", "a", "b"]] * 50,
            ["a", "b"] * 100,
            "Items with 2 votes and items with 3 agree differently (1.00 and 0.33 of pairs)",
        ),
    ],
)
def test_each_note_has_its_condition(code: str, votes: Any, suggested: Any, words: str) -> None:
    kappa = dh_kappa(votes, suggested)
    assert code in codes(kappa)
    assert words in next(note.text for note in kappa.notes if note.code == code)
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


def test_threads_see_a_whole_standard_error_or_compute_it() -> None:
    from threading import Barrier, Thread

    drawn = simulate(60, rng=1)
    expected = dh_kappa(drawn.votes, drawn.suggested["labeler"]).se
    seen: set[float] = set()
    for _ in range(30):
        kappa, barrier = dh_kappa(drawn.votes, drawn.suggested["labeler"]), Barrier(4)

        def ask(kappa: Kappa = kappa, barrier: Barrier = barrier) -> None:
            barrier.wait()
            seen.add(kappa.se)

        threads = [Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == {expected}


def test_an_interrupted_standard_error_is_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    import dhkappa.stats.result as room

    def interrupted(*given: object) -> None:
        raise KeyboardInterrupt

    drawn = simulate(60, rng=1)
    kappa = dh_kappa(drawn.votes, drawn.suggested["labeler"])
    with monkeypatch.context() as patch:
        patch.setattr(room, "basis_of", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _ = kappa.se
    assert kappa.se > 0


def test_limits_by_category_stay_in_range() -> None:
    kappa = dh_kappa([["a", "a"], ["a", "b"], ["b", "b"], ["b", "a"], ["c", "c"], ["b", "c"]], list("aabbcc"))
    assert kappa.parts is not None
    C = [float(share) for share in kappa.parts.C.values()]
    for place, row in enumerate(kappa.by_category()):
        E = 2 * C[place] ** 2 - sum(share**2 for share in C)
        assert row["low"] >= 1 - 2 / (1 - E) - 1e-12  # rounding
