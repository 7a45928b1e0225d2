"""What mutants of the statistics rooms have lived through: what is said of a result.

Oracles are the worked examples of docs/methods.md, fractions and closed forms computed by hand, and scipy.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dhkappa import DataError, Kappa, dh_kappa, fleiss_kappa, simulate, tally
from dhkappa.stats.annotator_comparison import AnnotatorComparison
from dhkappa.stats.compare import Comparison
from dhkappa.stats.intervals import (
    beta_interval,
    logit_interval,
    wald_interval,
)
from dhkappa.stats.notes import html_list, notes_on_error, notes_on_value, text_list
from dhkappa.stats.result import _digits, _text
from dhkappa.stats.verdict import Verdict, _beside_people, _some, overall, verdict_of
from dhkappa.stats.verdict import _digits as digits_of
from dhkappa.stats.weights import log_interval
from dhkappa.table import Table
from mutants import EXAMPLE, F, cell, example


def noted(kappa: Kappa) -> dict[str, str]:
    return {note.code: note.text for note in kappa.notes}


class TestNotes:
    """Every sentence, word for word, and where it begins to be said."""

    def test_on_few_items(self) -> None:
        assert noted(dh_kappa([[1, 1], [1]], [1, 1])) == {
            "items-excluded": "1 item did not count: 1 with one vote.",
            "few-items": "Only 1 item counts: expect a different value on another sample.",
            "one-category-voted": "Every vote is 1: the votes cannot tell good labels from bad ones.",
            "one-label": "Every suggested label is 1: kappa cannot show whether labels follow items.",
            "agreement-certain": "Votes and labels are all one category, so chance alone explains everything.",
        }
        assert noted(example()) == {
            "few-items": "Only 6 items count: expect a different value on another sample.",
            "random-not-zero": "Labels dealt out at random would score -0.11 here, not 0.",
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
        assert noted(enough).keys() == {"two-categories", "equals-majority", "low-agreement"}

    def test_on_labels_that_nobody_votes_for(self) -> None:
        kappa = dh_kappa([["a", "a"]] * 5 + [["b", "b"]] * 4, ["a"] * 5 + ["c", "d", "e", "f"])
        assert noted(kappa) == {
            "few-items": "Only 9 items count: expect a different value on another sample.",
            "labels-not-in-votes": "4 items of 9 with a suggested label that nobody ever votes for "
            "('c', 'd', 'e', ...): check the spelling, and that counts come as counts=.",
            "never-suggested": "'b' is never suggested, though 44% of the votes are for it.",
            "random-not-zero": "Labels dealt out at random would score -0.19 here, not 0.",
        }
        tenth = dh_kappa([["a", "a"]] * 10, ["a"] * 9 + ["b"])
        assert "labels-not-in-votes" not in noted(tenth)

    def test_on_votes_that_are_never_suggested(self) -> None:
        kappa = dh_kappa([["a", "b"]] * 5 + [["b", "c"]] * 4 + [["d", "d"]], ["a"] * 10)
        assert noted(kappa) == {
            "few-items": "Only 10 items count: expect a different value on another sample.",
            "one-label": "Every suggested label is 'a': kappa cannot show whether labels follow items.",
            "never-suggested": "'b' is never suggested, though 45% of the votes are for it, "
            "and 2 more categories like it.",
            "agree-on-others": "More pairs agree on another label than on the suggested one (0.10 and 0.00), "
            "though kappa is not negative: by chance it would be worse.",
            "random-not-zero": "Labels dealt out at random would score 0.08 here, not 0.",
            "low-agreement": "Annotators hardly agree among themselves (Fleiss' kappa -0.31, under 0.4): "
            "even right labels score low.",
        }
        twentieth = dh_kappa([["a", "a"]] * 9 + [["a", "b"]], ["a"] * 10)
        assert "never-suggested" not in noted(twentieth)

    def test_on_spelling(self) -> None:
        found = noted(dh_kappa([["a", "A"], ["n/a", "b "], ["b", "B"]], ["a", "b", "?"]))
        assert found["looks-missing"] == "'?', 'n/a' counts as a category: if it means missing, name it in missing=."
        alike = "'A', 'a' differ only in case or spaces, and count as different categories"
        assert found["category-variants"] == f"{alike}, and 2 more pairs like them."
        assert noted(dh_kappa([["a", "A"], ["a", "A"]], ["a", "a"]))["category-variants"] == f"{alike}."
        two = noted(dh_kappa([["a", "A"], ["b", "B"]], ["a", "b"]))["category-variants"]
        assert two == f"{alike}, and 1 more pair like them."
        numbers = noted(dh_kappa([["3", " 3. "], ["-2.00", "-2"], ["3.05", "3a.0"]], ["3", "-2", "1"]))[
            "category-variants"
        ]
        spelled = "'3', ' 3. ' are one number in two spellings, and count as different categories"
        assert numbers == f"{spelled}, and 1 more pair like them."
        mixed = noted(dh_kappa([["a", 2], [3, "b"]], ["a", "b"]))
        assert mixed["labels-mixed"] == (
            "Some labels are numbers and some are text, such as 2 and 'a': if a number stands for a text, they count "
            "as different categories."
        )
        assert "category-variants" not in mixed
        for plain in ([["a", "3.5"], ["b", "3"]], [[1, 2], [2, 1]]):
            assert noted(dh_kappa(plain, plain[0])).keys().isdisjoint({"category-variants", "labels-mixed"})
        several = noted(dh_kappa([["na", "none"], ["null", "nil"]], ["na", "nil"]))["looks-missing"]
        assert several == ("'na', 'nil', 'none', ... counts as a category: if it means missing, name it in missing=.")

    def test_on_the_design(self) -> None:
        assert noted(example(sample_weight=[1, 1, 1, 1, 1, 9]))["unequal-weights"] == (
            "Weights differ so much that 6 items tell as much as 2 of equal weight."
        )
        fixed = (
            "With pool=, the standard error is for which items of the pool were drawn, and takes the votes on each as "
            "fixed"
        )
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
        ("R", "S", "kappa", "baseline_random", "baseline_majority", "fleiss", "codes"),
        [
            (F(1, 5), F(1, 2), F(1, 10), F(1, 5), F(1, 10), F(39, 100), "at-ceiling agree-on-others floor below low"),
            (F(1, 5), F(1, 2), F(0), F(1, 20), F(1, 10), F(2, 5), "agree-on-others below"),
            (F(1, 2), F(1, 2), F(0), F(-1, 19), F(1, 10), F(-1, 1000), "floor low"),
            (F(1, 5), F(1, 2), F(-1, 10), F(-1, 10), F(1, 10), None, "baseline_random"),
            (F(1), F(0), F(1), F(0), F(1), F(1), "perfect"),
            (F(1), F(0), None, None, None, None, "certain"),
        ],
    )
    def test_on_the_value(
        self, R: F, S: F, kappa: F | None, floor: F | None, ceiling: F | None, fleiss: F | None, codes: str
    ) -> None:
        sentences = {
            "equals-majority": "The labels score exactly what the panel's own most frequent labels would: if they were made "
            "from these votes, that says nothing about them.",
            "agree-on-others": "More pairs agree on another label than on the suggested one (0.50 and 0.20), "
            "though kappa is not negative: by chance it would be worse.",
            "baseline_random": f"Labels dealt out at random would score {float(floor or 0):.2f} here, not 0.",
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
        weights = dh_kappa([[1, 2, 3], [3, 3, 2], [1, 1, 1]], [1, 3, 2], weights="linear", categories=[1, 2, 3])
        assert repr(weights).startswith("ordinal kappa_DH 0.1272 [")
        assert repr(weights).endswith("] (3 items, 9 votes; weighted Fleiss 0.2895; 1 note)")

    def test_in_a_notebook(self) -> None:
        rows = [("kappa_DH", "<b>0.4540</b>"), ("95% interval", "-0.2502 to 0.8709"), ("baseline_random", "-0.1085")]
        rows += [("baseline_majority", "0.7472"), ("Fleiss", "0.5673"), ("items", "6"), ("votes", "18")]
        few = "<li>Only 6 items count: expect a different value on another sample.</li>"
        floor = "<li>Labels dealt out at random would score -0.11 here, not 0.</li>"
        table = "".join(cell(*row) for row in rows)
        assert example()._repr_html_() == f"<table>{table}</table><ul>{few}{floor}</ul>"
        excluded = dh_kappa([*EXAMPLE.votes, [1]], [*EXAMPLE.suggested, 1])._repr_html_()
        assert cell("votes", "18") + cell("items dropped", "1") in excluded
        nothing = dh_kappa([], [])._repr_html_()
        assert nothing.endswith("</table><ul><li>the data hold no items.</li></ul>")
        assert "confidence_interval" not in nothing
        many = dh_kappa([["a", "a"], ["b", "b"], ["c", "c"], ["a", "b"]] * 300, list("abca") * 300)
        assert cell("items", "1,200") + cell("votes", "2,400") in many._repr_html_()

    def test_as_plain_values(self) -> None:
        found = example().to_dict(0.9)
        low, high = example().confidence_interval(0.9)
        assert found == {
            "metric": "dh",
            "value": 247 / 544,
            "se": example().se,
            "confidence_interval": {"low": low, "high": high, "confidence_level": 0.9, "method": "beta"},
            "exact": "247/544",
            "baseline_random": -59 / 544,
            "baseline_majority": 133 / 178,
            "fleiss": 59 / 104,
            "n_items": 6,
            "n_votes": 18,
            "excluded": {"no_votes": 0, "one_vote": 0, "no_label": 0, "no_weight": 0},
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
        assert example().to_dict()["confidence_interval"]["confidence_level"] == 0.95
        lost = dh_kappa([[], [1], [1, 1], [1, 1]], [1, 1, None, 1], sample_weight=[1, 1, 1, 0]).to_dict()
        assert lost["excluded"] == {"no_votes": 1, "one_vote": 1, "no_label": 1, "no_weight": 1}
        assert {
            lost[name] for name in ("value", "se", "exact", "baseline_random", "baseline_majority", "fleiss", "parts")
        } == {None}
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
            assert math.isnan(undefined.above_random)

    def test_intervals_by_name(self) -> None:
        kappa = example()
        known_basis = kappa._basis
        assert known_basis is not None
        found = {name: tuple(kappa.confidence_interval(0.9, name)) for name in ("beta", "logit", "wald")}
        by_name = {"beta": beta_interval, "logit": logit_interval, "wald": wald_interval}
        assert found == {name: interval(known_basis, 1 - 0.9) for name, interval in by_name.items()}
        assert kappa.confidence_interval(0.9).method == "beta"
        assert kappa.confidence_interval(0.9, "wald").confidence_level == 0.9
        values = kappa.bootstrap(99, rng=1).values
        drawn = kappa.confidence_interval(0.9, "bootstrap", n_resamples=99, rng=1)
        assert tuple(drawn) == pytest.approx(np.quantile(values, [0.05, 0.95]).tolist(), rel=1e-12)
        assert drawn.method == "bootstrap"
        assert drawn.confidence_level == pytest.approx(0.9)
        corrected = kappa.confidence_interval(0.9, "bca", n_resamples=99, rng=1)
        assert corrected.method == "bca"
        assert tuple(corrected) != found["wald"]
        assert min(values) <= corrected.low < corrected.high <= max(values)
        order: dict[str, Any] = {"weighted": "linear", "categories": [1, 2, 3]}
        weights = dh_kappa([[1, 2, 3], [3, 3, 2], [1, 1, 1]], [1, 3, 2], **order)
        assert weights._basis is not None
        assert tuple(weights.confidence_interval(0.9, "log")) == log_interval(weights._basis, 1 - 0.9)
        assert (dh_kappa([], []).confidence_interval().method, weights.confidence_interval(0.9, "log").method) == (
            "beta",
            "log",
        )
        dealt = [kappa.permutation_test("monte-carlo", n_resamples=200, rng=5).pvalue for _ in range(3)]
        assert len(set(dealt)) == 1
        for method in ("bayes", 3):
            with pytest.raises(DataError) as error:
                kappa.confidence_interval(method=method)  # type: ignore[arg-type]
            assert str(error.value) == f"method must be one of beta, logit, wald, bootstrap, bca: got {method!r}."
        assert dh_kappa([], []).confidence_interval().reason == "the data hold no items."
        still = dh_kappa([[1, 2]] * 3, [1] * 3).confidence_interval(0.8)
        assert (still.reason, still.confidence_level) == ("the sample cannot show how far kappa would vary.", 0.8)

    def test_numbers_beside_kappa(self) -> None:
        kappa = example()
        # D0 is the floor's D, -59/544 (1 - E) + E; kappa_P = (D - D0) / (1 - D0).
        D0 = F(-59, 544) * F(272, 243) - F(29, 243)
        assert kappa.above_random == pytest.approx(float((F(7, 18) - D0) / (1 - D0)), rel=1e-14)
        assert kappa.categories == (1, 2, 3)
        assert kappa.n_effective == 6.0
        assert kappa.se == pytest.approx(math.sqrt(F(432125685, 5473632256)), rel=1e-14)
        assert kappa.sample is kappa.sample
        assert math.isnan(fleiss_kappa(EXAMPLE.votes).above_random)


def beside(difference: float, low: float, high: float, *rows: tuple[str, int, float]) -> AnnotatorComparison:
    """A labeler beside people: name, items and difference of each."""
    columns = zip(("annotator", "items", "difference"), zip(*rows, strict=True), strict=True)
    table = Table(dict(columns), title="annotator_comparison")
    return AnnotatorComparison("llm", table, difference, 0.1, low, high, 0.95, 0.5, 30, (), (), None)


CODES = {"a": "between", "b": "better", "c": "random", "pvalue": "panel", "u": "undefined"}

JUDGED = {name: Verdict(code, f"{name}.") for name, code in CODES.items()}


def best_of(names: str, *rows: tuple[str, str, float, float]) -> str:
    """Say which labeler is best, from rows of labeler, other, difference and p."""
    values = {"a": 0.9, "b": 0.5, "c": 0.1, "pvalue": 0.95, "u": math.nan}
    kappas = {name: replace(example(), value=value) for name, value in values.items()}
    names_of_columns = ("labeler", "other", "difference", "pvalue_holm")
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names_of_columns)}
    comparison = Comparison({}, Table(columns, title="differences"), (), 0.95)
    return overall({name: JUDGED[name] for name in names}, kappas, comparison)


class TestVerdict:
    def test_beside_people(self) -> None:
        said = "from the average annotator as judged by the others (it matches or beats 1 of 2)"
        above = beside(0.1, 0.02, 0.18, ("ann", 20, 0.1), ("bob", 20, 0.1))
        assert _beside_people(above) == ("better", f"+0.10, interval +0.02 to +0.18, {said}")
        below = beside(-0.1, -0.2, -0.01, ("ann", 20, -0.1), ("bob", 20, -0.1))
        assert _beside_people(below) == ("below", f"-0.10, interval -0.20 to -0.01, {said}")
        same = beside(0.01, -0.05, 0.07, ("ann", 20, 0.1), ("bob", 20, -0.08))
        assert _beside_people(same) == ("confidence_level", f"+0.01, interval -0.05 to +0.07, {said}")
        # Without ann's 20 of 30 items: (30 * 0.1 - 20 * 0.2) / 10.
        hanging = beside(0.1, 0.02, 0.18, ("ann", 20, 0.2), ("bob", 10, -0.1))
        assert _beside_people(hanging) == (
            "confidence_level",
            f"+0.10, interval +0.02 to +0.18, {said}; but without ann it would be -0.10",
        )
        falling = beside(-0.1, -0.2, -0.01, ("ann", 20, -0.3), ("bob", 20, 0.1))
        assert _beside_people(falling) == (
            "confidence_level",
            f"-0.10, interval -0.20 to -0.01, {said}; but without ann it would be +0.10",
        )
        alone = replace(beside(0.1, 0.02, 0.18, ("ann", 20, 0.1), ("bob", 0, math.nan)), matched=1.0)
        assert _beside_people(alone) == ("better", f"+0.10, interval +0.02 to +0.18, {said[:-2]}1)")
        narrow = beside(0.1, 0.0998, 0.1002, ("ann", 20, 0.1), ("bob", 20, 0.1))
        assert _beside_people(narrow)[1].startswith("+0.1000, interval +0.0998 to +0.1002, from")

    def test_two_fifths_of_agreement_are_enough(self) -> None:
        """Of 20 items 14 agree, and half of all votes are a: (.7 - .5)/(1 - .5) is .4, the border itself."""
        votes = [["a", "a"]] * 7 + [["b", "b"]] * 7 + [["a", "b"]] * 6
        kappa = dh_kappa(votes, ["a"] * 7 + ["b"] * 7 + ["a", "b"] * 3)
        assert kappa.fleiss == 0.4
        assert "hardly agree" not in verdict_of("llm", kappa, None, 0.95).text

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
        assert (nothing.code, nothing.text) == ("undefined", "llm cannot be judged: the data hold no items.")
        still = verdict_of("llm", dh_kappa([[1, 2]] * 3, [1] * 3), None, 0.9)
        assert still.text == "llm cannot be judged: the sample cannot show how far kappa would vary."
        drawn = simulate(400, rng=1, accuracy=0.9, labelers={"x": 0.9})
        votes = tally(drawn.votes, drawn.suggested["x"])
        kappa = dh_kappa(votes)
        way = "of the way from labels dealt out at random to the panel's own most frequent labels."
        found = verdict_of("x", kappa, None, 0.95)
        low, high = kappa.confidence_interval()
        assert found.text == (
            f"x does better than random: kappa {kappa.value:.2f}, interval {low:.2f} to {high:.2f}, "
            f"{found.share:.0%} {way}"
        )
        assert found.share == (kappa.value - kappa.baselines.random) / (
            kappa.baselines.majority - kappa.baselines.random
        )
        assert found.short == f"{found.share:.0%} from random to panel"
        for _ in range(10):
            votes = votes + votes
        many = dh_kappa(votes)
        low, high = many.confidence_interval()
        assert verdict_of("x", many, None, 0.95).text == (
            f"x does better than random: kappa {many.value:.3f}, interval {low:.3f} to {high:.3f}, "
            f"{found.share:.0%} {way}"
        )
        person = verdict_of("x", kappa, beside(0.1, 0.02, 0.18, ("ann", 20, 0.1), ("bob", 20, 0.1)), 0.9)
        low, high = kappa.confidence_interval(0.9)
        assert person.text == (
            f"x can be trusted more than a person: kappa {kappa.value:.2f}, interval {low:.2f} to {high:.2f}; "
            "+0.10, interval +0.02 to +0.18, from the average annotator as judged by the others "
            "(it matches or beats 1 of 2)."
        )
        assert (person.code, person.short, person.judged) == ("better", "more than a person", True)

    def test_of_labels_made_from_the_votes(self) -> None:
        votes, labels = [list("abc"), list("aab"), list("bbc"), list("cca")], list("aabc")
        few = dh_kappa(votes * 6, labels * 6)
        low, high = few.confidence_interval()
        assert verdict_of("llm", few, None, 0.95).text == (
            f"llm does better than random: kappa {few.value:.2f}, interval {low:.2f} to {high:.2f}, 100% of the way "
            "from labels dealt out at random to the panel's own most frequent labels. Annotators hardly agree among "
            f"themselves (Fleiss' kappa {few.fleiss:.2f}). On every item its labels are a most frequent vote: if they "
            "were made from these votes, this says nothing."
        )
        many = dh_kappa(votes * 25, labels * 25)
        low, high = many.confidence_interval()
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

    def test_without_room_between_floor_and_ceiling(self) -> None:
        drawn = simulate(400, rng=1, accuracy=0.9, labelers={"x": 0.9})
        kappa = dh_kappa(drawn.votes, drawn.suggested["x"])
        low, high = kappa.confidence_interval()
        found = verdict_of(
            "x", replace(kappa, baselines=replace(kappa.baselines, majority=kappa.baselines.random)), None, 0.95
        )
        assert found.code == "between"
        assert math.isnan(found.share)
        assert found.text == (f"x does better than random: kappa {kappa.value:.2f}, interval {low:.2f} to {high:.2f}.")
