"""What mutants of the rooms that speak have lived through: every sentence, word for word, and where it is said."""

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.special import ndtr, ndtri, stdtrit

from dhkappa import DataError, Kappa, compare, dh_kappa, fleiss_kappa, simulate, tally
from dhkappa.data.ballots import read_ballots
from dhkappa.progress import Progress
from dhkappa.stats.annotators import _rounded, annotators
from dhkappa.stats.bootstrap import Bootstrap, bca_interval, percentile_interval
from dhkappa.stats.chance import RandomLabelTest
from dhkappa.stats.compare import Comparison, holm
from dhkappa.stats.intervals import beta_interval, logit_interval, wald_interval
from dhkappa.stats.items import review
from dhkappa.stats.notes import html_list, notes_on_error, notes_on_value, text_list
from dhkappa.stats.ordinal import log_interval
from dhkappa.stats.people import People, people
from dhkappa.stats.plan import plan_of
from dhkappa.stats.result import _digits, _text
from dhkappa.stats.verdict import Verdict, _beside_people, _some, overall, verdict_of
from dhkappa.stats.verdict import _digits as digits_of
from dhkappa.table import Table
from strategies import from_counts

F = Fraction
EXAMPLE = from_counts("300/1 210/1 030/2 111/2 003/3 030/3")


def example(**given: Any) -> Kappa:
    return dh_kappa(EXAMPLE.votes, EXAMPLE.suggested, **given)


def noted(kappa: Kappa) -> dict[str, str]:
    return {note.code: note.text for note in kappa.notes}


class TestNotes:
    """Every sentence, word for word, and where it begins to be said."""

    def test_on_few_items(self) -> None:
        assert noted(dh_kappa([[1, 1], [1]], [1, 1])) == {
            "items-dropped": "1 item did not count: 1 with one vote.",
            "few-items": "Only 1 item counts: expect a different value on another sample.",
            "one-category-voted": "Every vote is 1: the votes cannot tell good labels from bad ones.",
            "one-label": "Every suggested label is 1: kappa cannot show whether labels follow items.",
            "agreement-certain": "Votes and labels are all one category, so chance alone explains everything.",
        }
        assert noted(example()) == {
            "few-items": "Only 6 items count: expect a different value on another sample.",
            "floor-not-zero": "Labels dealt out at random would score -0.11 here, not 0.",
        }

    def test_on_thirty_items(self) -> None:
        assert noted(dh_kappa([["a", "a"]] * 29 + [["b", "b"]] * 3, ["a"] * 30 + ["b"] * 2)) == {
            "rare-labels": "1 of 2 suggested labels on fewer than 10 items ('b'): "
            "what happens to them is known poorly.",
            "few-imperfect-items": "Votes differ from the label on 1 item only: kappa hangs on these few.",
            "two-categories": "With two categories kappa is Cohen's kappa between label and votes: "
            "agreement of annotators with each other does not enter.",
        }
        enough = dh_kappa([["a", "a"]] * 10 + [["b", "b"]] * 10 + [["a", "b"]] * 10, ["a"] * 10 + ["b"] * 20)
        assert noted(enough).keys() == {"two-categories", "at-ceiling", "low-agreement"}

    def test_on_labels_that_nobody_votes_for(self) -> None:
        kappa = dh_kappa([["a", "a"]] * 5 + [["b", "b"]] * 4, ["a"] * 5 + ["c", "d", "e", "f"])
        assert noted(kappa) == {
            "few-items": "Only 9 items count: expect a different value on another sample.",
            "labels-never-voted": "4 items of 9 with a suggested label that nobody ever votes for "
            "('c', 'd', 'e', ...): check the spelling, and that counts come as counts=.",
            "never-suggested": "'b' is never suggested, though 44% of the votes are for it.",
            "floor-not-zero": "Labels dealt out at random would score -0.19 here, not 0.",
        }
        tenth = dh_kappa([["a", "a"]] * 10, ["a"] * 9 + ["b"])
        assert "labels-never-voted" not in noted(tenth)

    def test_on_votes_that_are_never_suggested(self) -> None:
        kappa = dh_kappa([["a", "b"]] * 5 + [["b", "c"]] * 4 + [["d", "d"]], ["a"] * 10)
        assert noted(kappa) == {
            "few-items": "Only 10 items count: expect a different value on another sample.",
            "one-label": "Every suggested label is 'a': kappa cannot show whether labels follow items.",
            "never-suggested": "'b' is never suggested, though 45% of the votes are for it, "
            "and 2 more categories like it.",
            "agree-on-others": "More pairs agree on another label than on the suggested one (0.10 and 0.00), "
            "though kappa is not negative: by chance it would be worse.",
            "floor-not-zero": "Labels dealt out at random would score 0.08 here, not 0.",
            "low-agreement": "Annotators hardly agree among themselves (Fleiss' kappa -0.31, under 0.4): "
            "even right labels score low.",
        }
        twentieth = dh_kappa([["a", "a"]] * 9 + [["a", "b"]], ["a"] * 10)
        assert "never-suggested" not in noted(twentieth)

    def test_on_spelling(self) -> None:
        found = noted(dh_kappa([["a", "A"], ["n/a", "b "], ["b", "B"]], ["a", "b", "?"]))
        assert found["looks-missing"] == "'?', 'n/a' counts as a category: if it means missing, name it in missing=."
        alike = "'A', 'a' differ only in case or spaces, and count as different categories"
        assert found["labels-alike"] == f"{alike}, and 2 more pairs like them."
        assert noted(dh_kappa([["a", "A"], ["a", "A"]], ["a", "a"]))["labels-alike"] == f"{alike}."
        two = noted(dh_kappa([["a", "A"], ["b", "B"]], ["a", "b"]))["labels-alike"]
        assert two == f"{alike}, and 1 more pair like them."
        numbers = noted(dh_kappa([["3", " 3. "], ["-2.00", "-2"], ["3.05", "3a.0"]], ["3", "-2", "1"]))["labels-alike"]
        spelled = "'3', ' 3. ' are one number in two spellings, and count as different categories"
        assert numbers == f"{spelled}, and 1 more pair like them."
        mixed = noted(dh_kappa([["a", 2], [3, "b"]], ["a", "b"]))
        assert mixed["labels-mixed"] == (
            "Some labels are numbers and some are text, such as 2 and 'a': if a number stands for a text, they count "
            "as different categories."
        )
        assert "labels-alike" not in mixed
        for plain in ([["a", "3.5"], ["b", "3"]], [[1, 2], [2, 1]]):
            assert noted(dh_kappa(plain, plain[0])).keys().isdisjoint({"labels-alike", "labels-mixed"})
        several = noted(dh_kappa([["na", "none"], ["null", "nil"]], ["na", "nil"]))["looks-missing"]
        assert several == ("'na', 'nil', 'none', ... counts as a category: if it means missing, name it in missing=.")

    def test_on_the_design(self) -> None:
        assert noted(example(weights=[1, 1, 1, 1, 1, 9]))["unequal-weights"] == (
            "Weights differ so much that 6 items tell as much as 2 of equal weight."
        )
        fixed = "With pool=, the standard error is for other items of the pool, with their votes as they would be cast"
        assert noted(example(pool=100))["votes-fixed"] == (
            f"{fixed}; panel='drawn' adds the chance in which votes an item got."
        )
        assert noted(fleiss_kappa(EXAMPLE.votes, pool=12))["votes-fixed"] == f"{fixed}."
        assert "votes-fixed" not in noted(example(pool=120))
        assert "votes-fixed" not in noted(example(pool=100, panel="drawn"))

    def test_on_votes_added_after_disagreement(self) -> None:
        votes = [list("aa")] * 30 + [list("bb")] * 10 + [list("abc")] * 30 + [list("aaa")] * 5
        assert noted(dh_kappa(votes, ["a"] * 75))["votes-follow-agreement"] == (
            "Items with 2 votes and items with 3 agree differently (1.00 and 0.14 of pairs): "
            "if votes were added after disagreement, pass only those planned beforehand."
        )
        assert "votes-follow-agreement" not in noted(dh_kappa(votes[1:30] + votes[40:], ["a"] * 64))

    @pytest.mark.parametrize(
        ("R", "S", "kappa", "floor", "ceiling", "fleiss", "codes"),
        [
            (F(1, 5), F(1, 2), F(1, 10), F(1, 5), F(1, 10), F(39, 100), "at-ceiling agree-on-others floor below low"),
            (F(1, 5), F(1, 2), F(0), F(1, 20), F(1, 10), F(2, 5), "agree-on-others below"),
            (F(1, 2), F(1, 2), F(0), F(-1, 19), F(1, 10), F(-1, 1000), "floor low"),
            (F(1, 5), F(1, 2), F(-1, 10), F(-1, 10), F(1, 10), None, "floor"),
            (F(1), F(0), F(1), F(0), F(1), F(1), "perfect"),
            (F(1), F(0), None, None, None, None, "certain"),
        ],
    )
    def test_on_the_value(
        self, R: F, S: F, kappa: F | None, floor: F | None, ceiling: F | None, fleiss: F | None, codes: str
    ) -> None:
        sentences = {
            "at-ceiling": "The labels score exactly what the panel's own most frequent labels would: if they were made "
            "from these votes, that says nothing about them.",
            "agree-on-others": "More pairs agree on another label than on the suggested one (0.50 and 0.20), "
            "though kappa is not negative: by chance it would be worse.",
            "floor": f"Labels dealt out at random would score {float(floor or 0):.2f} here, not 0.",
            "below": "The labels score less than labels dealt out at random.",
            "low": "Annotators hardly agree among themselves "
            f"(Fleiss' kappa {abs(float(fleiss or 0)):.2f}, under 0.4): even right labels score low.",
            "perfect": "Every vote is the suggested label: kappa is 1, and a larger sample may show exceptions.",
            "certain": "Votes and labels are all one category, so chance alone explains everything.",
        }
        found = [note.text for note in notes_on_value(R, S, kappa, floor, ceiling, fleiss)]
        assert found == [sentences[code] for code in codes.split()]

    def test_on_the_error(self) -> None:
        (note,) = notes_on_error(0.5, 2, math.nan)
        assert note.to_dict() == {
            "code": "no-standard-error",
            "text": "Every item has the same influence on kappa, so the sample cannot show how far it would vary.",
        }
        for value, n, se in ((0.5, 1, math.nan), (math.nan, 2, math.nan), (0.5, 2, 0.1)):
            assert not list(notes_on_error(value, n, se))

    def test_lists(self) -> None:
        long = "A sentence that is rather long, and then goes on for some more words than fit a line."
        assert text_list([long, "b\n"], 40) == (
            "- A sentence that is rather long, and\n  then goes on for some more words than\n  fit a line.\n- b\\n"
        )
        assert text_list([long]).splitlines()[0] == f"- {long[: long.index(' a line')]}"
        assert html_list(["a<b", "c"]) == "<ul><li>a&lt;b</li><li>c</li></ul>"
        assert html_list([]) == ""


def cell(name: str, text: str) -> str:
    return f"<tr><th style='text-align:left'>{name}</th><td>{text}</td></tr>"


class TestResult:
    def test_in_one_line(self) -> None:
        certain = dh_kappa([[1, 1], [1, 1]], [1, 1])
        found = [repr(kappa) for kappa in (example(), dh_kappa([], []), fleiss_kappa(EXAMPLE.votes), certain)]
        assert found == [
            "kappa_DH 0.4540 [-0.2502, 0.8709] "
            "(6 items, 18 votes; floor -0.1085; ceiling 0.7472; Fleiss 0.5673; 2 notes)",
            "kappa_DH undefined (0 items, 0 votes; the data hold no items)",
            "Fleiss' kappa 0.5673 [-0.1560, 1.0000] (6 items, 18 votes; 1 note)",
            "kappa_DH undefined (2 items, 4 votes; "
            "every vote and every suggested label is the same category, so agreement is certain; 4 notes)",
        ]
        assert (f"{example():.2f}", f"{example()}", float(example())) == ("0.45", found[0], 247 / 544)
        ordinal = dh_kappa([[1, 2, 3], [3, 3, 2], [1, 1, 1]], [1, 3, 2], ordinal="linear", categories=[1, 2, 3])
        assert repr(ordinal).startswith("ordinal kappa_DH 0.1272 [")
        assert repr(ordinal).endswith("] (3 items, 9 votes; Fleiss 0.2895; 1 note)")

    def test_in_a_notebook(self) -> None:
        rows = [("kappa_DH", "<b>0.4540</b>"), ("95% interval", "-0.2502 to 0.8709"), ("floor", "-0.1085")]
        rows += [("ceiling", "0.7472"), ("Fleiss", "0.5673"), ("items", "6"), ("votes", "18")]
        few = "<li>Only 6 items count: expect a different value on another sample.</li>"
        floor = "<li>Labels dealt out at random would score -0.11 here, not 0.</li>"
        table = "".join(cell(*row) for row in rows)
        assert example()._repr_html_() == f"<table>{table}</table><ul>{few}{floor}</ul>"
        dropped = dh_kappa([*EXAMPLE.votes, [1]], [*EXAMPLE.suggested, 1])._repr_html_()
        assert cell("votes", "18") + cell("items dropped", "1") in dropped
        nothing = dh_kappa([], [])._repr_html_()
        assert nothing.endswith("</table><ul><li>the data hold no items.</li></ul>")
        assert "interval" not in nothing
        many = dh_kappa([["a", "a"], ["b", "b"], ["c", "c"], ["a", "b"]] * 300, list("abca") * 300)
        assert cell("items", "1,200") + cell("votes", "2,400") in many._repr_html_()

    def test_as_plain_values(self) -> None:
        found = example().to_dict(0.9)
        low, high = example().interval(0.9)
        assert found == {
            "metric": "dh",
            "value": 247 / 544,
            "se": example().se,
            "interval": {"low": low, "high": high, "level": 0.9, "method": "beta"},
            "exact": "247/544",
            "floor": -59 / 544,
            "ceiling": 133 / 178,
            "fleiss": 59 / 104,
            "n_items": 6,
            "n_votes": 18,
            "dropped": {"no_votes": 0, "one_vote": 0, "no_label": 0, "no_weight": 0},
            "parts": {
                "R": 5 / 9,
                "S": 1 / 6,
                "C_E": 29 / 243,
                "C_F": 58 / 243,
                "D": 7 / 18,
                "E": -29 / 243,
                "C": [[1, 1 / 3], [2, 4 / 9], [3, 2 / 9]],
                "L": [[1, 1 / 3], [2, 1 / 3], [3, 1 / 3]],
            },
            "notes": [{"code": code, "text": text} for code, text in noted(example()).items()],
            "reason": None,
        }
        assert example().to_dict()["interval"]["level"] == 0.95
        lost = dh_kappa([[], [1], [1, 1], [1, 1]], [1, 1, None, 1], weights=[1, 1, 1, 0]).to_dict()
        assert lost["dropped"] == {"no_votes": 1, "one_vote": 1, "no_label": 1, "no_weight": 1}
        assert {lost[name] for name in ("value", "se", "exact", "floor", "ceiling", "fleiss", "parts")} == {None}
        assert fleiss_kappa(EXAMPLE.votes).to_dict()["parts"]["L"] == []

    def test_a_fraction_too_long_to_write(self) -> None:
        assert _text(F(1, 2**9_999)) == str(F(1, 2**9_999))
        assert _text(F(1, 2**10_000)) is None
        assert _text(F(2**10_000 + 1, 2)) is None
        assert _text(None) is None

    def test_zero_has_no_sign(self) -> None:
        assert [_digits(value) for value in (-0.00004, 0.00006, math.nan)] == ["0.0000", "0.0001", "undefined"]

    @pytest.mark.parametrize("asked", ["bootstrap", "test", "by_category", "confusion"])
    def test_questions_to_kappas_without_an_answer(self, asked: str) -> None:
        with pytest.raises(DataError) as error:
            getattr(fleiss_kappa(EXAMPLE.votes), asked)()
        assert str(error.value) == f"{asked} is for the plain kappa_DH only: use dh_kappa without ordinal weights."
        for undefined in (dh_kappa([], []), dh_kappa([[1, 1]], [1])):
            with pytest.raises(DataError) as error:
                getattr(undefined, asked)()
            assert str(error.value) == f"{asked} needs a kappa that is defined, but {undefined.reason}"
            assert math.isnan(undefined.above_floor)

    def test_intervals_by_name(self) -> None:
        kappa = example()
        known_basis = kappa._basis
        assert known_basis is not None
        found = {name: tuple(kappa.interval(0.9, name)) for name in ("beta", "logit", "wald")}
        by_name = {"beta": beta_interval, "logit": logit_interval, "wald": wald_interval}
        assert found == {name: interval(known_basis, 1 - 0.9) for name, interval in by_name.items()}
        assert kappa.interval(0.9).method == "beta"
        assert kappa.interval(0.9, "wald").level == 0.9
        values = kappa.bootstrap(99, rng=1).values
        drawn = kappa.interval(0.9, "bootstrap", n=99, rng=1)
        assert tuple(drawn) == pytest.approx(np.quantile(values, [0.05, 0.95]).tolist(), rel=1e-12)
        assert drawn.method == "bootstrap"
        assert drawn.level == pytest.approx(0.9)
        corrected = kappa.interval(0.9, "bca", n=99, rng=1)
        assert corrected.method == "bca"
        assert tuple(corrected) != found["wald"]
        assert min(values) <= corrected.low < corrected.high <= max(values)
        order: dict[str, Any] = {"ordinal": "linear", "categories": [1, 2, 3]}
        ordinal = dh_kappa([[1, 2, 3], [3, 3, 2], [1, 1, 1]], [1, 3, 2], **order)
        assert ordinal._basis is not None
        assert tuple(ordinal.interval(0.9, "log")) == log_interval(ordinal._basis, 1 - 0.9)
        assert (dh_kappa([], []).interval().method, ordinal.interval(0.9, "log").method) == ("beta", "log")
        dealt = [kappa.test("monte-carlo", n=200, rng=5).p_value for _ in range(3)]
        assert len(set(dealt)) == 1
        for method in ("bayes", 3):
            with pytest.raises(DataError) as error:
                kappa.interval(method=method)  # type: ignore[arg-type]
            assert str(error.value) == f"method must be one of beta, logit, wald, bootstrap, bca: got {method!r}."
        assert dh_kappa([], []).interval().reason == "the data hold no items."
        still = dh_kappa([[1, 2]] * 3, [1] * 3).interval(0.8)
        assert (still.reason, still.level) == ("the sample cannot show how far kappa would vary.", 0.8)

    def test_numbers_beside_kappa(self) -> None:
        kappa = example()
        # D0 is the floor's D, -59/544 (1 - E) + E; kappa_P = (D - D0) / (1 - D0).
        D0 = F(-59, 544) * F(272, 243) - F(29, 243)
        assert kappa.above_floor == pytest.approx(float((F(7, 18) - D0) / (1 - D0)), rel=1e-14)
        assert kappa.categories == (1, 2, 3)
        assert kappa.n_effective == 6.0
        assert kappa.se == pytest.approx(math.sqrt(F(432125685, 5473632256)), rel=1e-14)
        assert kappa.sample is kappa.sample
        assert math.isnan(fleiss_kappa(EXAMPLE.votes).above_floor)


def sentence(asked: Callable[..., object], *given: Any, **named: Any) -> str:
    """Return the sentence that a question is refused with."""
    with pytest.raises(DataError) as error:
        asked(*given, **named)
    return str(error.value)


class TestSimulate:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"categories": []}, "categories must name a category at least."),
            ({"n_items": -1}, "n_items must be a whole number from 0 to 10,000,000,000: got -1."),
            ({"n_items": 10**10 + 1}, "n_items must be a whole number from 0 to 10,000,000,000: got 10000000001."),
            ({"annotators": "ab"}, "annotators must be a whole number from 0 to 10,000,000,000: got 'ab'."),
            ({"labelers": 3}, "labelers must map names to accuracies, such as {'llm': 0.9}: got 3."),
            ({"accuracy": 1.5}, "accuracy must be between 0 and 1: got 1.5."),
            ({"annotators": [0.5, 2]}, "accuracy must be between 0 and 1: got 2."),
            ({"labelers": {"x": -1}}, "labelers must be between 0 and 1: got -1."),
            ({"missing": "1"}, "missing must be between 0 and 1: got '1'."),
            ({"prevalence": [1, 2]}, "prevalence must be 3 numbers, one for each category, 0 or more: got [1, 2]."),
            (
                {"prevalence": [1, -1, 1]},
                "prevalence must be 3 numbers, one for each category, 0 or more: got [1, -1, 1].",
            ),
            (
                {"prevalence": [0, 0, 0]},
                "prevalence must be 3 numbers, one for each category, 0 or more: got [0, 0, 0].",
            ),
            (
                {"prevalence": [1, math.inf, 1]},
                "prevalence must be 3 numbers, one for each category, 0 or more: got [1, inf, 1].",
            ),
            ({"prevalence": "abc"}, "prevalence must be 3 numbers, one for each category, 0 or more: got 'abc'."),
            ({"rng": "x"}, "rng must be a seed, 0 or more, or a numpy Generator: got 'x'."),
            ({"rng": -1}, "rng must be a seed, 0 or more, or a numpy Generator: got -1."),
        ],
    )
    def test_sentences(self, given: dict[str, Any], message: str) -> None:
        assert sentence(simulate, **{"n_items": 4, "rng": 1} | given) == message

    def test_defaults_and_ends(self) -> None:
        drawn = simulate(4_000, rng=1)
        assert repr(drawn) == "Simulation(4,000 items, 3 annotators, 3 categories, labelers 'labeler')"
        assert drawn.categories == ("a", "b", "c")
        # 4,000 draws: the sd of a share of 0.8 or 0.85 is 0.006, and of one of a third 0.0075.
        assert np.mean(drawn.suggested["labeler"] == drawn.truth) == pytest.approx(0.8, abs=0.025)
        assert np.mean(drawn.votes == drawn.truth[:, None]) == pytest.approx(0.85, abs=0.02)
        for label in "abc":
            assert np.mean(drawn.truth == label) == pytest.approx(1 / 3, abs=0.03)
            wrong = drawn.suggested["labeler"][(drawn.truth != label) & (drawn.suggested["labeler"] != drawn.truth)]
            assert np.mean(wrong == label) == pytest.approx(0.5, abs=0.08)  # of two other labels; 530 draws
        assert not (drawn.votes == None).any()  # noqa: E711  # of an array
        sure = simulate(50, annotators=[1, 0], labelers={"x": 1, "y": 0}, missing=0, rng=1)
        assert (sure.votes[:, 0] == sure.truth).all()
        assert not (sure.votes[:, 1] == sure.truth).any()
        assert (sure.suggested["x"] == sure.truth).all()
        assert not (sure.suggested["y"] == sure.truth).any()
        lost = simulate(50, missing=1, prevalence=[0, 2, 0], rng=1)
        assert (lost.votes == None).all()  # noqa: E711
        assert set(lost.truth) == {"b"}
        assert set(simulate(60, prevalence=[1e300] * 3, rng=1).truth) == {"a", "b", "c"}
        two: Any = np.array(2)  # a number, though it looks like a list
        assert simulate(4, annotators=two, rng=1).votes.shape == (4, 2)
        assert simulate(3, annotators=0, rng=1).votes.shape == (3, 0)
        assert simulate(0, rng=1).votes.shape == (0, 3)
        assert set(simulate(9, categories=["a"], accuracy=0.0, rng=1).votes.ravel()) == {"a"}


NEEDS = (
    "plan needs to know what to expect: pass pilot=, the kappa of some items, or accuracy=, labeler= and categories="
)


class TestPlan:
    @pytest.mark.parametrize(
        ("half_width", "given", "message"),
        [
            (0, {}, "half_width must be above 0 and at most 1, such as 0.05: got 0."),
            (1.01, {}, "half_width must be above 0 and at most 1, such as 0.05: got 1.01."),
            (True, {}, "half_width must be above 0 and at most 1, such as 0.05: got True."),
            (0.1, {"level": 2}, "level must be between 0 and 1, such as 0.95: got 2."),
            (0.1, {"assurance": 1}, "assurance must be between 0 and 1, such as 0.9: got 1."),
            (0.1, {"assurance": 0}, "assurance must be between 0 and 1, such as 0.9: got 0."),
            (0.1, {"pool": 1}, "pool must be a whole number from 2 to 4,611,686,018,427,387,904: got 1."),
            (
                0.1,
                {"pool": 2**62 + 1},
                f"pool must be a whole number from 2 to {2**62:,}: got {2**62 + 1}.",
            ),
            (0.1, {"votes": True}, "votes must be a whole number from 2 to 1,000: got True."),
            (0.1, {"votes": 1001}, "votes must be a whole number from 2 to 1,000: got 1001."),
            (0.1, {"votes": "3"}, "votes must be a whole number from 2 to 1,000: got '3'."),
            (0.1, {}, f"{NEEDS}: got none of them."),
            (0.1, {"accuracy": 0.9}, f"{NEEDS}: got accuracy."),
            (0.1, {"accuracy": 0.9, "categories": 3}, f"{NEEDS}: got accuracy and categories."),
            (0.1, {"accuracy": 0.9, "labeler": 0.8}, f"{NEEDS}: got accuracy and labeler."),
            (0.1, {"accuracy": 1.1, "labeler": 0.8, "categories": 3}, "accuracy must be from 0 to 1: got 1.1."),
            (0.1, {"accuracy": 0.9, "labeler": -1, "categories": 3}, "labeler must be from 0 to 1: got -1."),
            (
                0.1,
                {"accuracy": 0.9, "labeler": 0.8, "categories": 1},
                "categories must be a whole number from 2 to 1,000: got 1.",
            ),
            (
                0.1,
                {"accuracy": 0.9, "labeler": 0.8, "prevalence": [1]},
                "prevalence must be 2 to 1,000 numbers, 0 or more: got [1].",
            ),
            (
                0.1,
                {"accuracy": 0.9, "labeler": 0.8, "prevalence": [1, -1, 3]},
                "prevalence must be 2 to 1,000 numbers, 0 or more: got [1, -1, 3].",
            ),
            (
                0.1,
                {"accuracy": 0.9, "labeler": 0.8, "prevalence": [1, 2], "categories": 3},
                "prevalence must have a number for each of 3 categories: got 2.",
            ),
            (
                0.1,
                {"accuracy": 1, "labeler": 0, "categories": 2},
                "accuracy and labeler leave nothing to chance, so no sample could show how far kappa varies.",
            ),
            (
                0.1,
                {"accuracy": 1, "labeler": 1, "prevalence": [1, 0]},
                "prevalence must not make every vote and label one category: kappa is undefined then.",
            ),
            (0.1, {"pilot": 3}, "pilot must be a kappa from dh_kappa, without ordinal weights: got 3."),
            (
                1e-9,
                {"accuracy": 0.9, "labeler": 0.8, "categories": 3},
                "half_width must be wide enough for 1,000,000,000,000 items or fewer: got 1e-09.",
            ),
        ],
    )
    def test_sentences(self, half_width: float, given: dict[str, Any], message: str) -> None:
        assert sentence(plan_of, half_width, **given) == message

    def test_sentences_on_pilots(self) -> None:
        assert sentence(plan_of, 0.1, pilot=example(), accuracy=0.9, labeler=0.8) == (
            "pilot is given, which shows what to expect: leave out accuracy and labeler."
        )
        assert sentence(plan_of, 0.1, pilot=example(), prevalence=[1, 2], categories=2) == (
            "pilot is given, which shows what to expect: leave out categories and prevalence."
        )
        assert sentence(plan_of, 0.1, pilot=dh_kappa([], [])) == (
            "pilot must have a kappa that is defined, but the data hold no items."
        )
        unknown = "so it cannot show how far kappa varies: add items to it."
        assert sentence(plan_of, 0.1, pilot=dh_kappa([[1, 2]], [1])) == f"pilot has one item, {unknown}"
        assert sentence(plan_of, 0.1, pilot=dh_kappa([[1, 2]] * 3, [1] * 3)) == (
            f"pilot has items of the same influence only, {unknown}"
        )
        assert sentence(plan_of, 0.1, pilot=example(), votes=4) == (
            "votes must be at most 3 with this pilot, as more than half of its items have no more: got 4; "
            "a pilot with four votes on an item can tell for any number."
        )
        panel = fleiss_kappa(EXAMPLE.votes)
        assert sentence(plan_of, 0.1, pilot=panel).startswith("pilot must be a kappa from dh_kappa, without")

    def test_notes(self) -> None:
        small = "{} items show only roughly how far kappa varies: the number to be sure of it allows for that."
        cut = "The comparison stops at {} votes on an item: only a pilot with four can tell for any number."
        planned = plan_of(0.2, pilot=example())
        assert [note.to_dict() for note in planned.notes] == [
            {"code": "small-pilot", "text": small.format(6)},
            {"code": "trade-cut", "text": cut.format(3)},
        ]
        flawless = plan_of(0.1, pilot=dh_kappa([[1, 1]] * 5 + [[2, 2]] * 5, [1] * 5 + [2] * 5))
        assert [note.to_dict() for note in flawless.notes] == [
            {"code": "small-pilot", "text": small.format(10)},
            {
                "code": "flawless-pilot",
                "text": "Every vote of the pilot is the suggested label: the plan holds if that goes on.",
            },
            {"code": "trade-cut", "text": cut.format(2)},
        ]
        part = plan_of(0.2, pilot=dh_kappa([[1, 1, 1], [1, 2, 1], [2, 2], [2, 2, 2]], [1, 1, 2, 1])).notes[-1]
        assert part.to_dict() == {
            "code": "trade-part",
            "text": "The comparison is from the 3 of 4 items with 3 votes or more.",
        }

    def test_in_words_and_plain_values(self) -> None:
        planned = plan_of(0.2, pilot=example())
        assert repr(planned) == (
            f"{planned.items} items x 3 votes for kappa 0.454 +- 0.2 at 0.95, {planned.items_assured} to be 0.9 sure "
            "(pilot of 6 items; 2 notes)"
        )
        found = planned.to_dict()
        assert list(found) == [
            *("votes", "sigma", "items", "items_assured", "total_votes", "cheapest", "kappa"),
            *("half_width", "level", "assurance", "pool", "assumes", "trade", "notes"),
        ]
        assert found["votes"] == 3
        assert found["total_votes"] == 3 * planned.items
        assert found["sigma"] == pytest.approx(math.sqrt(6) * example().se, rel=1e-12)
        assert (found["kappa"], found["half_width"], found["level"]) == (247 / 544, 0.2, 0.95)
        assert (found["assurance"], found["pool"], found["assumes"]) == (0.9, None, "pilot of 6 items")
        assert [row["votes"] for row in found["trade"]] == [2, 3]
        assert list(found["trade"][0]) == ["votes", "sigma", "items", "items_assured", "total_votes"]
        assert found["cheapest"] == min(found["trade"], key=lambda row: row["total_votes"])["votes"]
        page = planned._repr_html_()
        assert page.startswith(f"<p>{planned!r}</p><table><caption>Items for a half-width of 0.2 at 0.95, by votes ")
        assert page.endswith("".join(f"<li>{note.text}</li>" for note in planned.notes) + "</ul>")
        assumed = plan_of(0.1, categories=3, accuracy=0.9, labeler=0.8, votes=4)
        assert assumed.assumes == "3 categories, accuracy 0.9, labeler 0.8"
        assert not assumed._repr_html_().endswith("</ul>")
        assert (assumed.votes, assumed.total_votes) == (4, 4 * assumed.items)

    def test_a_pool_needs_fewer(self) -> None:
        plain, pooled = (plan_of(0.1, categories=3, accuracy=0.9, labeler=0.8, votes=3, pool=n) for n in (None, 400))
        for name in ("items", "items_assured"):
            n = getattr(plain, name)
            assert getattr(pooled, name) == math.ceil(n / (1 + n / 400))


class TestBootstrap:
    VALUES = np.array([0.1, 0.2, 0.3, 0.4])

    def test_sentences(self) -> None:
        values, ones = self.VALUES, np.array([1, 1])
        for alpha in (0, 1, "x"):
            refused = f"alpha must be between 0 and 1, such as 0.05 for a level of 0.95: got {alpha!r}."
            assert sentence(percentile_interval, values, alpha) == refused
            assert sentence(bca_interval, values, 0.2, np.array([1.0, -1.0]), ones, alpha) == refused
        for n in (0, True, 2.5, 10**8 + 1):
            assert sentence(example().bootstrap, n) == (
                f"n, the number of replicates, must be a whole number from 1 to 100,000,000: got {n!r}."
            )
        none = percentile_interval(np.array([]), 0.1)
        assert (none.reason, none.method, none.level) == ("no replicate has a kappa.", "bootstrap", 0.9)
        equal = "all replicates are equal, so that they say nothing about other samples."
        assert percentile_interval(np.array([0.5, 0.5]), 0.1).reason == equal
        assert bca_interval(np.array([0.5, 0.5]), 0.5, np.array([1.0, -1.0]), ones, 0.1).reason == equal
        beyond = bca_interval(values, 0.9, np.array([1.0, -1.0]), ones, 0.1)
        assert beyond.reason == "kappa lies beyond all of its replicates, so that their bias cannot be corrected."
        still = bca_interval(values, 0.2, np.array([0.0, 0.0]), ones, 0.1)
        assert still.reason == "no item has any influence on kappa, so that the acceleration is undefined."
        assert (still.method, math.isnan(still.low), math.isnan(still.high)) == ("bca", True, True)

    def test_items_drawn_one_by_one(self) -> None:
        """Where patterns are nearly as many as items; the sd of kappas is a standard error, known to 10% from 50."""
        drawn = simulate(400, categories=range(30), accuracy=0.6, rng=4)
        kappa = dh_kappa(drawn.votes, drawn.suggested["labeler"])
        assert len(kappa.sample.patterns) > 256
        found = kappa.bootstrap(50, rng=1)
        assert found.values.shape == (50,)
        assert found.mean == pytest.approx(kappa.value, abs=kappa.se)
        assert found.sd == pytest.approx(kappa.se, rel=0.4)

    @pytest.mark.parametrize("progress", [True, False])
    def test_whether_progress_is_shown(self, monkeypatch: pytest.MonkeyPatch, progress: bool) -> None:
        asked = []

        def shown(total: int, what: str, show: bool) -> Progress:
            asked.append((total, what, show))
            return Progress(total, what, show)

        monkeypatch.setattr("dhkappa.stats.bootstrap.Progress", shown)
        example().bootstrap(20, rng=1, progress=progress)
        assert asked == [(20, "bootstrap", progress)]

    def test_quantiles(self) -> None:
        found = percentile_interval(self.VALUES, 0.5)
        assert tuple(found) == pytest.approx((0.175, 0.325), rel=1e-12)
        assert (found.method, found.level, found.reason) == ("bootstrap", 0.5, None)

    def test_bca_by_hand(self) -> None:
        """Of phi = 1, 1, -2: a = (1 + 1 - 8) / (6 * 6^1.5); of four replicates one is below, one tied counts half."""
        found = bca_interval(self.VALUES, 0.2, np.array([1.0, -2.0]), np.array([2, 1]), 0.5)
        a, bias = -6 / (6 * 6**1.5), float(ndtri(1.5 / 4))
        moved = [bias + float(ndtri(p)) for p in (0.25, 0.75)]
        places = [float(ndtr(bias + z / (1 - a * z))) for z in moved]
        assert tuple(found) == pytest.approx([0.1 + 0.3 * place for place in places], rel=1e-12)
        assert (found.method, found.level) == ("bca", 0.5)

    def test_in_words(self) -> None:
        assert repr(Bootstrap(self.VALUES, 2, 6, 0.25)) == (
            "Bootstrap(6 replicates; kappa 0.2500, mean 0.2500, sd 0.1291; 2 undefined)"
        )
        assert repr(Bootstrap(np.array([0.5]), 0, 1, 0.5)) == (
            "Bootstrap(1 replicate; kappa 0.5000, mean 0.5000, sd nan)"
        )
        rows = [("kappa", "0.2500"), ("mean of replicates", "0.2500"), ("sd of replicates", "0.1291")]
        rows += [("replicates", "1,006"), ("undefined", "1,002")]
        assert Bootstrap(self.VALUES, 1002, 1006, 0.25)._repr_html_() == (
            f"<table>{''.join(cell(*row) for row in rows)}</table>"
        )
        assert math.isnan(Bootstrap(np.array([]), 1, 1, 0.5).mean)


class TestChance:
    def test_sentences(self) -> None:
        kappa, weighted = example(), example(weights=[1, 2, 3, 4, 5, 6])
        for method in ("x", 3):
            assert sentence(kappa.test, method) == (
                f"method must be one of 'z', 'monte-carlo', 'wald': got {method!r}."
            )
        assert sentence(weighted.test, "z") == (
            "method='z' deals labels out over items that are all alike: with weights or strata use 'wald'."
        )
        for alternative in ("less", None):
            assert sentence(kappa.test, alternative=alternative) == (
                f"alternative must be one of 'greater', 'two-sided': got {alternative!r}."
            )
        for n in (0, 2.5):
            assert sentence(kappa.test, n=n) == f"n must be a whole number of draws, 1 or more: got {n!r}."
        assert sentence(kappa.test, "monte-carlo", n=10**10) == (
            "method='monte-carlo' cannot deal 6 labels 10,000,000,000 times in reasonable time: "
            "use method='z', or fewer draws, n=."
        )

    def test_in_words(self) -> None:
        found = example().test()
        assert repr(found) == (
            "labels against random labels: +0.5625 from the floor (p 0.0334, z 1.83, alternative greater, method z)"
        )
        drawn = example().test("monte-carlo", alternative="two-sided", n=1000, rng=1)
        assert repr(drawn).endswith(", z 1.83, alternative two-sided, method monte-carlo, draws 1,000)")
        still = dh_kappa([[1, 1], [2, 2]], [1, 1]).test()
        why = "these labels score the same on these items in whatever order"
        assert repr(still) == (
            "labels against random labels: +0.0000 from the floor "
            f"(p 1, z undefined, alternative greater, method z): {why}"
        )
        rows = [("kappa less floor", "+0.0000"), ("p", "1"), ("z", "undefined"), ("alternative", "greater")]
        table = "".join(cell(*row) for row in [*rows, ("method", "z")])
        assert still._repr_html_() == f"<table>{table}</table><p>{why}.</p>"
        assert found._repr_html_().endswith("<td>z</td></tr></table>")
        assert still.to_dict() == {
            "difference": 0.0,
            "z": None,
            "p_value": 1.0,
            "alternative": "greater",
            "method": "z",
            "n_draws": 0,
            "reason": f"{why}.",
        }
        assert repr(RandomLabelTest(0.5, 40.0, 0.0, "greater", "z", 0)).endswith(
            "(p < 1e-300, z 40.00, alternative greater, method z)"
        )
        same = dh_kappa([[1, 1], [2, 2]] * 3, [1, 1] * 3, weights=[1, 2, 3, 4, 5, 6]).test()
        assert same.reason == "every item has the same influence on kappa above its floor, or the whole pool was drawn."
        assert (same.method, math.isnan(same.z), math.isnan(same.p_value)) == ("wald", True, True)

    def test_with_strata_and_weights(self) -> None:
        """kappa above its floor over its standard error; strata count as bound items, two of them already."""
        for given in ({"strata": list("xxxyyy")}, {"weights": [1, 2, 3, 4, 5, 6]}):
            found = example(**given).test(alternative="two-sided")
            assert found.method == "wald"
            assert found.p_value == pytest.approx(2 * float(ndtr(-abs(found.z))), rel=1e-12)
        heavy = dh_kappa([[1, 1], [2, 2], [1, 2]], [1, 2, 2], weights=[1e300, 1, 1]).test()
        assert heavy.reason == "one item outweighs all the others."
        assert all(map(math.isnan, (heavy.difference, heavy.z, heavy.p_value)))
        assert heavy.to_dict()["z"] is None

    def test_tails(self) -> None:
        found, both = example().test(), example().test(alternative="two-sided")
        assert found.z == both.z
        assert found.p_value == pytest.approx(float(ndtr(-found.z)), rel=1e-12)
        assert both.p_value == pytest.approx(2 * found.p_value, rel=1e-12)
        below = dh_kappa([[1, 1], [2, 2], [1, 1], [2, 2]], [2, 1, 2, 1])
        assert below.test().p_value > 0.5 > below.test(alternative="two-sided").p_value


class TestPersons:
    """Annotators, and people as labelers."""

    VOTES = np.array([list(item) for item in ("aaa", "aab", "bbb", "bba", "ccc", "bbc")], object)

    def test_votes_must_be_signed(self) -> None:
        unsigned = read_ballots([["a", "a"]], {"rule": ["a"]})
        for asked in (annotators, people):
            assert sentence(asked, unsigned, "rule") == (
                "nothing tells who cast which vote, as lists, counts, tallies and large tables in an engine do not: "
                "pass votes as an n x N array, or as a table in memory with a column for each annotator or with "
                "annotator=."
            )

    def test_an_annotator_by_hand(self) -> None:
        table = annotators(read_ballots(self.VOTES, {"rule": list("aabbcc")}), "rule")
        assert table.title == "What each annotator does to the kappa of rule"
        row = next(iter(table))
        assert (row["annotator"], row["items"], row["agree"], row["reason"]) == (0, 6, 5 / 6, None)
        # With each of the two others: on the label both, one, both, one, both; on the last item one, on another label.
        assert row["differential"] == pytest.approx((2 + 1 + 2 + 1 + 2 - 1) / 12)
        assert row["weight"] == pytest.approx(1 / 3)
        whole = dh_kappa(self.VOTES, list("aabbcc"))
        without = dh_kappa(self.VOTES[:, 1:], list("aabbcc"))
        assert row["kappa_without"] == without.value
        assert row["change"] == pytest.approx(without.value - whole.value)

    def test_why_there_is_no_number(self) -> None:
        votes = np.array([["a", "a", None], ["a", "b", None], ["b", "b", "b"]], object)
        rows = list(annotators(read_ballots(votes[:2], {"rule": ["a", "b"]}), "rule"))
        assert [row["reason"] for row in rows] == [
            "without their votes, no labelled item has two.",
            "without their votes, no labelled item has two.",
            "no eligible item has a vote of theirs.",
        ]
        same = read_ballots(np.array([["a", "a", "a"]] * 2, object), {"rule": ["a", "a"]})
        assert {row["reason"] for row in annotators(same, "rule")} == {
            "every vote and every suggested label is the same category."
        }
        one = read_ballots(np.array([["b", "a", "a"], ["b", "a", "a"]], object), {"rule": ["a", "a"]})
        assert next(iter(annotators(one, "rule")))["reason"] == (
            "without their votes, every vote and every suggested label is the same category."
        )

    def test_numbers_too_large_for_a_float(self) -> None:
        assert _rounded(F(10) ** 400) == math.inf
        assert _rounded(-(F(10) ** 400)) == -math.inf
        assert _rounded(F(1, 4)) == 0.25

    def test_one_item_outweighs_all_the_others(self) -> None:
        drawn = simulate(40, annotators=3, rng=1)
        found = people(read_ballots(drawn.votes, drawn.suggested, weights=[1.0] * 39 + [1e300]), "labeler")
        assert repr(found) == "labeler against people: undefined (0 items; 3 skipped; nobody can be compared)"
        assert {(row["items"], row["reason"]) for row in found.table} == {(40, "one item outweighs all the others.")}
        assert [note.to_dict() for note in found.notes] == [
            {
                "code": "people-undefined",
                "text": "3 annotators not compared (0, 1, 2): one item outweighs all the others.",
            }
        ]

    def test_people_by_strata_are_people_by_weight(self) -> None:
        drawn = simulate(60, annotators=3, rng=2)
        strata, pool = ["x"] * 20 + ["y"] * 40, {"x": 100, "y": 1000}
        pooled = people(read_ballots(drawn.votes, drawn.suggested, strata=strata), "labeler", pool=pool)
        weights = [5.0] * 20 + [25.0] * 40
        weighted = people(read_ballots(drawn.votes, drawn.suggested, weights=weights), "labeler")
        assert (pooled.difference, pooled.se, pooled.low) == (weighted.difference, weighted.se, weighted.low)
        assert pooled.difference != people(read_ballots(drawn.votes, drawn.suggested), "labeler").difference
        by_hand = annotators(read_ballots(drawn.votes, drawn.suggested, strata=strata), "labeler", pool)
        assert [row["kappa"] for row in by_hand] == [
            row["kappa"] for row in annotators(read_ballots(drawn.votes, drawn.suggested, weights=weights), "labeler")
        ]

    def test_few_items(self) -> None:
        drawn = simulate(9, annotators=3, rng=1)
        found = people(read_ballots(drawn.votes, drawn.suggested), "labeler")
        few = "fewer than 10 items with two other votes and a suggested label."
        assert {row["reason"] for row in found.table} == {few}
        assert [note.to_dict() for note in found.notes] == [
            {"code": "people-few-items", "text": f"3 annotators not compared (0, 1, 2): {few}"}
        ]
        assert found.skipped == (0, 1, 2)
        assert found.to_dict()["reason"] == found.reason == "nobody can be compared."
        ten = simulate(10, annotators=3, rng=1)
        assert not people(read_ballots(ten.votes, ten.suggested), "labeler").skipped


class TestReview:
    def test_items_that_an_engine_holds(self) -> None:
        """Rows stand for several items; the engine is asked for the rows that the first items are in."""
        votes = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "b"], ["b", "b", "b"]]
        asked: list[tuple[list[int], int]] = []

        def find(rows: Sequence[int], number: int) -> list[tuple[int, Any]]:
            asked.append((list(rows), number))
            return [(row, f"item {row}") for row in rows][:number]

        plain = read_ballots(votes, {"rule": ["a", "a", "a", "b", "a"]})
        held = replace(plain, names=[4, 3, 2, 1, 0], items=np.array([2, 30, 3, 5, 80]), find=find)
        rows = [list(review(held, "rule", most=most)) for most in (None, 80, 81, 1)]
        # Most clearly rejected first: three votes for b, then two; then a tie, and what is confirmed.
        assert asked == [([4, 1], 100), ([4], 80), ([4, 1], 81), ([4], 1)]
        assert [[row["item"] for row in some] for some in rows] == [
            ["item 4", "item 1"],
            ["item 4"],
            ["item 4", "item 1"],
            ["item 4"],
        ]
        assert [row["votes"] for row in rows[0]] == ["b: 3", "b: 2"]
        assert review(held, "rule", most=1).title == "rule: 1 of 120 items, most clearly rejected first"
        assert asked[-1] == ([4], 1)
        many = list(review(replace(held, items=np.array([1, 1, 1, 1, 1])), "rule"))
        assert [row["item"] for row in many][:3] == ["item 4", "item 1", "item 2"]

    def test_a_heavy_item_without_which_all_is_alike(self) -> None:
        """Without the only item that differs kappa is undefined: computed anew, exactly."""
        votes, labels = [["a", "a"], ["a", "a"], ["b", "b"]], ["a", "a", "b"]
        for given in ({}, {"weights": [1, 2, 3]}, {"strata": ["x", "x", "x"]}):
            table = review(read_ballots(votes, {"rule": labels}, **given), "rule")
            assert [math.isnan(row["kappa_without"]) for row in sorted(table, key=lambda row: row["item"])] == [
                False,
                False,
                True,
            ]
        heavy = review(
            read_ballots([["a", "a"], ["a", "b"], ["b", "b"]], {"rule": list("aab")}, weights=[1, 1, 1e9]), "rule"
        )
        without = {row["item"]: row["kappa_without"] for row in heavy}
        assert without[2] == dh_kappa([["a", "a"], ["a", "b"]], ["a", "a"]).value

    def test_no_items(self) -> None:
        assert len(review(read_ballots([["a"]], {"rule": ["a"]}), "rule")) == 0

    def test_sentences(self) -> None:
        ballots = read_ballots([["a", "b"]], {"rule": ["a"]})
        for most in (0, True, 1.5):
            assert sentence(review, ballots, "rule", most=most) == (
                f"most must be a whole number of items from 1 on, or None for all: got {most!r}."
            )


class TestCategories:
    def test_in_words(self) -> None:
        table = example().by_category(0.9)
        assert table.title == "Kappa by suggested category, 0.9 intervals"
        assert example().confusion().title == "What the panel agrees on, by suggested label"
        light = dh_kappa([["a", "a"], ["b", "b"], ["b", "c"]], ["a", "b", "d"], categories=list("abcd"))
        assert [row["reason"] for row in light.by_category()] == [
            "only one item with this label, so its spread is unknown.",
            "only one item with this label, so its spread is unknown.",
            "never suggested.",
            "only one item with this label, so its spread is unknown.",
        ]
        same = dh_kappa([["a", "a"]] * 4, list("aabb"))
        assert [row["reason"] for row in same.by_category()] == [
            "every vote is this category, so agreement on it is certain.",
            "no item moves it, so its spread is unknown.",
        ]
        weighed = dh_kappa([["a", "a"], ["b", "b"], ["a", "b"]], list("aba"), weights=[1e-300, 1e-300, 1e300])
        assert [row["reason"] for row in weighed.by_category()][
            1
        ] == "its items weigh next to nothing beside the others."

    def test_confusion_by_hand(self) -> None:
        """Label 1 has 3/3 and 2/3 votes for 1: pairs agree on 1 by (1 + 1/3)/2, on nothing by 1/3."""
        rows = [tuple(row.values()) for row in example().confusion()]
        third = 1 / 3
        assert rows[:3] == [
            (1, 2, 1, pytest.approx(2 * third), pytest.approx(5 / 6)),
            (1, 2, 2, 0.0, pytest.approx(1 / 6)),
            (1, 2, None, pytest.approx(third), 0.0),
        ]
        assert [row[2] for row in rows if row[0] == 2] == [2, 1, 3, None]
        tie = dh_kappa([["a", "b", "b", "a", "c"], ["c", "c", "c", "b", "b"]], ["a", "a"])
        found = [(row["agreed"], round(row["pair_share"], 3), row["vote_share"]) for row in tie.confusion()]
        # c agrees on 3 of 20 pairs, b on 2, a on 1.
        assert found == [("c", 0.15, 0.4), ("b", 0.1, 0.4), ("a", 0.05, 0.2), (None, 0.7, 0.0)]
        even = dh_kappa([["a", "b", "b"], ["a", "c", "b"], ["a", "c", "b"]], ["b", "b", "b"])
        assert [row["agreed"] for row in even.confusion()] == ["b", "a", "c", None]  # no pairs: by votes, 1/3 and 2/9

    def test_weights_by_category(self) -> None:
        """Items with weights w know as much as (sum w)^2 / sum w^2 items of equal weight; t has as many less 1."""
        drawn = simulate(30, rng=3)
        labels = drawn.suggested["labeler"]
        weights = [(0.01 if label == "a" else 1.0) * (1 + i % 5) for i, label in enumerate(labels)]
        kappa = dh_kappa(drawn.votes, labels, weights=weights)
        for row in kappa.by_category():
            own = [weight for weight, label in zip(weights, labels, strict=True) if label == row["category"]]
            t = float(stdtrit(sum(own) ** 2 / sum(weight**2 for weight in own) - 1, 0.975))
            assert row["items"] == len(own) > 3
            assert row["high"] == pytest.approx(min(1, row["kappa"] + t * row["se"]), rel=1e-12)
            assert row["se"] > 0


def beside(difference: float, low: float, high: float, *rows: tuple[str, int, float]) -> People:
    """A labeler beside people: name, items and difference of each."""
    columns = zip(("annotator", "items", "difference"), zip(*rows, strict=True), strict=True)
    table = Table(dict(columns), title="people")
    return People("llm", table, difference, 0.1, low, high, 0.95, 0.5, 30, (), (), None)


CODES = {"a": "between", "b": "above", "c": "random", "p": "panel", "u": "unknown"}
JUDGED = {name: Verdict(code, f"{name}.") for name, code in CODES.items()}


def best_of(names: str, *rows: tuple[str, str, float, float]) -> str:
    """Say which labeler is best, from rows of labeler, other, difference and p."""
    values = {"a": 0.9, "b": 0.5, "c": 0.1, "p": 0.95, "u": math.nan}
    kappas = {name: replace(example(), value=value) for name, value in values.items()}
    names_of_columns = ("labeler", "other", "difference", "p_holm")
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names_of_columns)}
    comparison = Comparison({}, Table(columns, title="differences"), (), 0.95)
    return overall({name: JUDGED[name] for name in names}, kappas, comparison)


class TestVerdict:
    def test_beside_people(self) -> None:
        said = "from the average annotator as judged by the others (it matches or beats 1 of 2)"
        above = beside(0.1, 0.02, 0.18, ("ann", 20, 0.1), ("bob", 20, 0.1))
        assert _beside_people(above) == ("above", f"+0.10, interval +0.02 to +0.18, {said}")
        below = beside(-0.1, -0.2, -0.01, ("ann", 20, -0.1), ("bob", 20, -0.1))
        assert _beside_people(below) == ("short", f"-0.10, interval -0.20 to -0.01, {said}")
        same = beside(0.01, -0.05, 0.07, ("ann", 20, 0.1), ("bob", 20, -0.08))
        assert _beside_people(same) == ("level", f"+0.01, interval -0.05 to +0.07, {said}")
        # Without ann's 20 of 30 items: (30 * 0.1 - 20 * 0.2) / 10.
        hanging = beside(0.1, 0.02, 0.18, ("ann", 20, 0.2), ("bob", 10, -0.1))
        assert _beside_people(hanging) == (
            "level",
            f"+0.10, interval +0.02 to +0.18, {said}; but without ann it would be -0.10",
        )
        falling = beside(-0.1, -0.2, -0.01, ("ann", 20, -0.3), ("bob", 20, 0.1))
        assert _beside_people(falling) == (
            "level",
            f"-0.10, interval -0.20 to -0.01, {said}; but without ann it would be +0.10",
        )
        alone = replace(beside(0.1, 0.02, 0.18, ("ann", 20, 0.1), ("bob", 0, math.nan)), matched=1.0)
        assert _beside_people(alone) == ("above", f"+0.10, interval +0.02 to +0.18, {said[:-2]}1)")
        narrow = beside(0.1, 0.0998, 0.1002, ("ann", 20, 0.1), ("bob", 20, 0.1))
        assert _beside_people(narrow)[1].startswith("+0.1000, interval +0.0998 to +0.1002, from")

    def test_digits(self) -> None:
        widths = (0.004, 0.009, 0.01, 1, 5, 0, 1e-9)
        found = [digits_of(width)(0.123456789) for width in widths]
        assert found == ["0.123", "0.123", "0.12", "0.12", "0.12", "0.12", "0.123457"]
        assert (digits_of(0.1)(-0.001), digits_of(0.1)(0.25, "+")) == ("0.00", "+0.25")

    def test_of_one_labeler(self) -> None:
        assert verdict_of("llm", example(), None, 0.95).to_dict() == {
            "code": "random",
            "text": "llm cannot be trusted on this evidence: kappa 0.45, interval -0.25 to 0.87, which reaches down to "
            "the -0.11 that random labels would score.",
        }
        nothing = verdict_of("llm", dh_kappa([], []), None, 0.95)
        assert (nothing.code, nothing.text) == ("unknown", "llm cannot be judged: the data hold no items.")
        still = verdict_of("llm", dh_kappa([[1, 2]] * 3, [1] * 3), None, 0.9)
        assert still.text == "llm cannot be judged: the sample cannot show how far kappa would vary."
        drawn = simulate(400, rng=1, accuracy=0.9, labelers={"x": 0.9})
        votes = tally(drawn.votes, drawn.suggested["x"])
        kappa = dh_kappa(votes)
        way = "of the way from labels dealt out at random to the panel's own most frequent labels."
        found = verdict_of("x", kappa, None, 0.95)
        low, high = kappa.interval()
        assert found.text == (
            f"x does better than random: kappa {kappa.value:.2f}, interval {low:.2f} to {high:.2f}, "
            f"{found.share:.0%} {way}"
        )
        assert found.share == (kappa.value - kappa.floor) / (kappa.ceiling - kappa.floor)
        assert found.short == f"{found.share:.0%} from random to panel"
        for _ in range(10):
            votes = votes + votes
        many = dh_kappa(votes)
        low, high = many.interval()
        assert verdict_of("x", many, None, 0.95).text == (
            f"x does better than random: kappa {many.value:.3f}, interval {low:.3f} to {high:.3f}, "
            f"{found.share:.0%} {way}"
        )
        person = verdict_of("x", kappa, beside(0.1, 0.02, 0.18, ("ann", 20, 0.1), ("bob", 20, 0.1)), 0.9)
        low, high = kappa.interval(0.9)
        assert person.text == (
            f"x can be trusted more than a person: kappa {kappa.value:.2f}, interval {low:.2f} to {high:.2f}; "
            "+0.10, interval +0.02 to +0.18, from the average annotator as judged by the others "
            "(it matches or beats 1 of 2)."
        )
        assert (person.code, person.short, person.judged) == ("above", "more than a person", True)

    def test_of_labels_made_from_the_votes(self) -> None:
        votes, labels = [list("abc"), list("aab"), list("bbc"), list("cca")], list("aabc")
        few = dh_kappa(votes * 6, labels * 6)
        low, high = few.interval()
        assert verdict_of("llm", few, None, 0.95).text == (
            f"llm does better than random: kappa {few.value:.2f}, interval {low:.2f} to {high:.2f}, 100% of the way "
            "from labels dealt out at random to the panel's own most frequent labels. Annotators hardly agree among "
            f"themselves (Fleiss' kappa {few.fleiss:.2f}). On every item its labels are a most frequent vote: if they "
            "were made from these votes, this says nothing."
        )
        many = dh_kappa(votes * 25, labels * 25)
        low, high = many.interval()
        found = verdict_of("llm", many, None, 0.95)
        assert (found.code, found.judged) == ("panel", False)
        assert found.text == (
            "llm cannot be judged by these votes, if its labels were made from them: on every item they are a most "
            f"frequent vote, also on the 100 where votes differ (kappa {many.value:.2f}, interval {low:.2f} to "
            f"{high:.2f})."
        )
        assert verdict_of("llm", dh_kappa(votes * 24 + votes[:3], labels * 24 + labels[:3]), None, 0.95).judged

    @pytest.mark.parametrize(
        ("names", "rows", "said"),
        [
            ("pu", (), "p. u."),
            ("ab", (("a", "b", 0.4, 0.01),), "Of 2 labelers, a scores best and is better than every other. a."),
            ("ab", (("b", "a", -0.4, 0.01),), "Of 2 labelers, a scores best and is better than every other. a."),
            ("ab", (("a", "b", 0.4, 0.06),), "Of 2 labelers, a scores best and cannot be told apart from b. a."),
            (
                "ab",
                (("a", "b", -0.4, 0.01),),
                "Of 2 labelers, a scores best on its own items, but is worse than b on the items that all labeled. a.",
            ),
            (
                "abc",
                (("a", "b", -0.4, 0.01), ("a", "c", 0.1, 0.5)),
                "Of 3 labelers, a scores best on its own items, but cannot be told apart from c and is worse than b on "
                "the items that all labeled. a.",
            ),
            (
                "apu",
                (),
                "Of 3 labelers, leaving aside p, whose labels are most frequent votes on every item, a scores best and "
                "is the only one that can be judged. a.",
            ),
            (
                "abpu",
                (("a", "b", 0.4, 0.01),),
                "Of 4 labelers, leaving aside p, whose labels are most frequent votes on every item, a scores best and "
                "is better than every other. u cannot be judged. a.",
            ),
        ],
    )
    def test_of_several_labelers(self, names: str, rows: tuple[tuple[str, str, float, float], ...], said: str) -> None:
        assert best_of(names, *rows) == said

    def test_of_a_labeler_alone(self) -> None:
        assert overall({"a": JUDGED["a"]}, {"a": example()}, None) == "a."
        assert [_some(list(names)) for names in ("a", "abc", "abcd")] == ["a", "a, b, c", "a, b, c, ..."]


class TestCompare:
    LABELS: ClassVar[dict[str, list[int]]] = {"x": [1, 1, 2, 2, 3, 3], "y": [1, 2, 2, 2, 3, 2]}

    def test_in_words(self) -> None:
        found = compare(EXAMPLE.votes, self.LABELS)
        few = (
            "Labels differ on fewer than 10 items between 'x' and 'y': their p comes from swapping labels at random, "
            "item by item."
        )
        assert [note.to_dict() for note in found.notes] == [{"code": "few-discordant", "text": few}]
        assert found.differences.title == "Differences between labelers, 0.95 intervals"
        assert found.table().title == "Kappa by labeler, 0.95 intervals"
        quiet = replace(found, notes=())
        assert repr(quiet) == f"{found.table()!r}\n\n{found.differences!r}"
        assert repr(found).startswith(f"{quiet!r}\n- Labels differ on fewer")
        assert found._repr_html_() == f"{quiet._repr_html_()}<ul><li>{html.escape(few)}</li></ul>"
        assert sentence(compare, EXAMPLE.votes, {"x": EXAMPLE.suggested}) == (
            "suggested must name two labelers at least, to compare them: got 'x'."
        )
        assert found.best == "y"

    def test_items_that_all_labeled(self) -> None:
        labels = {"x": [*self.LABELS["x"], 1, None], "y": [*self.LABELS["y"], 1, 2]}
        found = compare([*EXAMPLE.votes, [1], [1, 2]], labels)
        assert found.notes[0].text == (
            "2 items did not count: 1 with one vote, 1 with no suggested label. Labelers are compared on items that "
            "all of them labeled."
        )
        assert {name: kappa.exact for name, kappa in found.kappas.items()} == {
            name: dh_kappa(EXAMPLE.votes, labels).exact for name, labels in self.LABELS.items()
        }

    def test_swapping_by_hand(self) -> None:
        """Two items are discordant: of four ways to swap, p is the share with as large a difference."""
        found = next(iter(compare(EXAMPLE.votes, self.LABELS).differences))

        def gap(x: Sequence[int], y: Sequence[int]) -> float:
            return abs(dh_kappa(EXAMPLE.votes, x).value - dh_kappa(EXAMPLE.votes, y).value)

        x, y = self.LABELS["x"], self.LABELS["y"]
        places = [place for place in range(6) if x[place] != y[place]]
        gaps = []
        for tossed in product((False, True), repeat=len(places)):
            swapped = [place for place, toss in zip(places, tossed, strict=True) if toss]
            one = [y[i] if i in swapped else x[i] for i in range(6)]
            other = [x[i] if i in swapped else y[i] for i in range(6)]
            gaps.append(gap(one, other))
        assert found["discordant"] == len(places) == 2
        assert found["p"] == sum(one >= gap(x, y) - 1e-12 for one in gaps) / 4
        assert (found["method"], found["p_holm"]) == ("swap", found["p"])
        assert found["difference"] == pytest.approx(
            dh_kappa(EXAMPLE.votes, x).value - dh_kappa(EXAMPLE.votes, y).value, rel=1e-12
        )

    def test_twelve_items_are_swapped_in_all_ways(self) -> None:
        """One labeler is always right and the other never, so no item moves the difference more than another."""
        found = compare([["a", "a"], ["b", "b"]] * 6, {"x": list("ab") * 6, "y": list("ba") * 6})
        row = next(iter(found.differences))
        assert (row["method"], row["discordant"], row["p"]) == ("swap", 12, 2 / 2**12)
        assert [note.to_dict() for note in found.notes] == [
            {
                "code": "no-standard-error",
                "text": "No item sets 'x' and 'y' further apart than another, so there is no standard error: their p "
                "comes from swapping labels at random, item by item.",
            }
        ]

    def test_holm_by_hand(self) -> None:
        assert holm([0.01, 0.04, 0.03, math.nan])[:3] == pytest.approx([0.03, 0.06, 0.06])
        assert math.isnan(holm([0.01, math.nan])[1])
        assert holm([0.6, 0.7]) == [1.0, 1.0]
        assert holm([0.5]) == [0.5]
        assert holm([]) == []

    def test_the_source_is_said(self) -> None:
        votes = tally(EXAMPLE.votes, self.LABELS)
        votes._remarks = ("Half of it was skipped.",)
        assert compare(votes).notes[0].to_dict() == {"code": "source", "text": "Half of it was skipped."}
