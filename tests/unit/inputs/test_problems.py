"""The rules that find problems of data, each with data that has the problem and data that nearly has it."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest

import dhkappa
import problem_rates
from dhkappa import Dataset, Problem, audit, simulate, tally
from dhkappa.errors import comma_separated
from dhkappa.inputs import dataset as dataset_module
from dhkappa.inputs.problems import CODES, accept, copies, differences, percent, sampled_votes, spelling
from dhkappa.inputs.problems import votes as vote_rules
from dhkappa.inputs.problems.labels import compound_labels
from expect import expect_error

NAMES = ["cat", "dog", "cow"]
VOTES = [[name] * 3 for name in NAMES] * 10
LABELS = NAMES * 10


def found(votes: Any = None, labels: Any = None, **given: Any) -> dict[str, Problem]:
    """Return the problems of arrays by code; of several with one code the last."""
    labels = LABELS if labels is None else labels
    named = labels if isinstance(labels, dict) else {"llm": labels}
    return {one.code: one for one in Dataset(VOTES if votes is None else votes, named, **given).check().problems}


def in_table(**columns: Any) -> dict[str, Problem]:
    return {one.code: one for one in Dataset(pl.DataFrame(columns, strict=False)).check().problems}


def wide(**columns: Any) -> dict[str, Problem]:
    return in_table(suggested_llm=LABELS, **{f"ann_{n}": LABELS for n in range(3)}, **columns)


def some(labels: list[Any], *changed: Any) -> list[Any]:
    """Return labels of which the first are changed."""
    return [*changed, *labels[len(changed) :]]


# Problems as such


def test_clean_data_have_no_problem() -> None:
    assert found() == {}


def test_problems_are_sorted_and_accepted() -> None:
    made = [Problem("looks-ordinal", "warning", "b"), Problem("looks-missing", "info", "c")]
    made += [Problem("looks-multilabel", "error", "a")]
    sorted_ones = accept(made, ["looks-ordinal"])
    assert [one.severity for one in sorted_ones] == ["error", "warning", "info"]
    assert [one.accepted for one in sorted_ones] == [False, True, False]
    assert accept(made, "looks-missing")[2].accepted
    assert not sorted_ones[1].concerns("llm")


def test_unknown_codes_are_refused() -> None:
    with expect_error("unknown-problem", "allow"):
        Dataset(VOTES, {"llm": LABELS}).check(allow=["looks-ordnal"])
    with expect_error("unknown-problem", "allow"):
        audit(VOTES, {"llm": LABELS}, allow=["x"], progress=False)


def test_every_code_is_documented_and_used() -> None:
    root = Path(dhkappa.__file__).parent
    page = (Path(__file__).parents[3] / "docs" / "reference" / "problems.md").read_text(encoding="utf-8")
    source = "".join(path.read_text(encoding="utf-8") for path in root.rglob("*.py"))
    assert [code for code in CODES if f"| `{code}` |" not in page] == []
    assert sorted(CODES) == list(CODES)
    assert [code for code in CODES if source.count(f'"{code}"') < 2] == []


@pytest.mark.parametrize(
    ("share", "text"), [(0.0004, "less than 0.1%"), (0.004, "0.4%"), (0.2, "20%"), (0.996, "99.6%"), (1.0, "100%")]
)
def test_shares_are_written(share: float, text: str) -> None:
    assert percent(share) == text


def test_lists_can_be_pasted() -> None:
    assert comma_separated(["a", "b c"]) == "a,b c"
    assert comma_separated(["a", "b, c", '"d"', 'e "f"']) == 'a,"b, c","""d""",e "f"'


# Spelling


@pytest.mark.parametrize(
    ("one", "other", "how"),
    [
        ("Spam", "spam", ["case"]),
        ("spam ", "spam", ["spaces"]),
        ("not  spam", "Not spam", ["case", "spaces"]),
        ("\ufb01ne", "fine", ["unicode"]),
        ("3.0", "3", ["numbers"]),
        (1, "1", ["numbers"]),
        ("how\u2013to", "how-to", ["unicode"]),
        ("\u22121", "-1", ["unicode"]),
        ("spam\u200b", "spam", ["unicode"]),
        ("not\u00a0spam", "not spam", ["unicode"]),
        ("not\u2011Spam ", "not-spam", ["case", "spaces", "unicode"]),
        ("spam.", "spam", None),
        ("spam:", "spam", None),
        ('"spam"', "spam", None),
        ("not_spam", "not spam", None),
        ("how-to", "how_to", None),
    ],
)
def test_spellings(one: Any, other: Any, how: list[str] | None) -> None:
    assert spelling(one) == spelling(other)
    assert differences([one, other]) == how


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("spam", "spams"),
        ("1", "01"),
        ("a-b", "ab"),
        (True, "true"),
        ("3.5", "3"),
        ("-1", "1"),
        ("A-", "A"),
        ("A+", "A"),
        ("C", "C#"),
        ("spam?", "spam"),
        (".", ":"),
    ],
)
def test_different_labels(one: Any, other: Any) -> None:
    assert spelling(one) != spelling(other)


def test_category_variants() -> None:
    few = [["cat", "Cat", "cat"], *VOTES[1:]]
    assert found(few)["category-variants"].severity == "error"  # 1 of 90 votes
    many = [*few, *VOTES * 3]
    assert found(many, LABELS * 4)["category-variants"].severity == "warning"  # 1 of 360
    of_labels = found(labels={"llm": LABELS, "rule": [name.upper() for name in LABELS]})["category-variants"]
    assert (of_labels.severity, of_labels.labelers) == ("error", ("rule",))
    assert "labels-not-in-votes" not in found(labels=[name.upper() for name in LABELS])


@pytest.mark.parametrize(
    ("variant", "severity", "options"),
    [
        ("c\u200bat", "error", {"normalize": "unicode"}),
        ("cat\u00a0", "error", {"normalize": "spaces"}),
        ("cat.", "warning", {"map": "cat.=cat"}),
        ("CAT", "error", {"normalize": "case"}),
    ],
)
def test_fix_of_category_variants(variant: str, severity: str, options: dict[str, str]) -> None:
    problem = found([["cat", variant, "cat"], *VOTES[1:]])["category-variants"]
    assert (problem.severity, problem.options) == (severity, options)
    given: dict[str, Any] = {"map": {variant: "cat"}} if "map" in options else options
    assert found([["cat", variant, "cat"], *VOTES[1:]], **given) == {}


def test_numbers_that_are_one_category() -> None:
    votes = [["1", "1.0", "1"], ["2", "2", "2"]] * 15
    problem = found(votes, ["1", "2"] * 15)["category-variants"]
    assert problem.options == {"normalize": "numbers"}
    assert "category-variants" not in found(votes, [1, 2] * 15, normalize="numbers")


@pytest.mark.parametrize(
    ("text", "severity"), [("#N/A", "error"), ("  ", "error"), ("null", "error"), ("none", "warning")]
)
def test_looks_missing(text: str, severity: str) -> None:
    votes = some(VOTES, ["cat", "cat", text])
    assert found(votes)["looks-missing"].severity == severity
    assert repr(text) in found(votes)["looks-missing"].message
    assert "looks-missing" not in found(votes, missing=[text])
    lower = {"error": "warning", "warning": "info"}[severity]
    assert found(votes + VOTES * 3, LABELS * 4)["looks-missing"].severity == lower


def test_a_suggested_word_is_no_missing_value() -> None:
    votes = some(VOTES, ["none"] * 3, ["none"] * 3)
    assert "looks-missing" in found(votes)
    assert "looks-missing" not in found(votes, some(LABELS, "none", "none"))


@pytest.mark.parametrize(
    ("labels", "separator"),
    [
        (["a", "b", "a;b", "b;a"], ";"),
        (["a", "b", "a;b"], ";"),
        (["a|b", "b|c", "a|c", "c"], "|"),
        (["a, b", "b, a", "c"], ","),
        (["a", "b", "c", "a/b", "a/c", "b/c", "a/b/c"], "/"),
        (["['a', 'b']", "['a']"], "json"),
        (['["a", "b"]', "c"], "json"),
        (["yes", "no", "yes/no"], ""),
        (["R, Python", "Java", "C"], ""),
        (["negative", "neutral", "positive", "neutral/positive", "negative/neutral"], ""),
        (["animal|cat", "animal|dog", "plant|rose", "plant|oak"], ""),
        (["[unsure]", "yes"], ""),
        ([1, 2, 3], ""),
    ],
)
def test_compound_labels(labels: list[Any], separator: str) -> None:
    assert compound_labels(tuple(labels))[0] == separator


def test_looks_multilabel_of_a_labeler() -> None:
    problem = found(labels={"llm": some(LABELS, "cat;dog"), "rule": LABELS})["looks-multilabel"]
    assert (problem.severity, problem.labelers) == ("error", ("llm",))


# Labels that nobody votes for


def test_labels_that_are_codes() -> None:
    problem = found(labels=[NAMES.index(name) for name in LABELS])["labels-not-in-votes"]
    assert problem.labelers == ("llm",)
    assert problem.options == {"map": "0=cat,1=dog,2=cow"}
    assert "codes (0, 1, 2)" in problem.message


def test_labels_of_another_column() -> None:
    problem = in_table(
        suggested_lang=["en", "de"] * 15, topic=LABELS, ann_1=LABELS, ann_2=LABELS, note=[f"n{n}" for n in range(30)]
    )["labels-not-in-votes"]
    assert "something else (de, en)" in problem.message
    assert problem.options == {"suggested": "topic"}


def test_labels_that_nobody_votes_for() -> None:
    assert found(labels=["x"] * 16 + LABELS[16:])["labels-not-in-votes"].severity == "error"
    assert found(labels=["x"] * 15 + LABELS[15:])["labels-not-in-votes"].severity == "warning"
    assert found(labels=["x"] * 3 + LABELS[3:])["labels-not-in-votes"].severity == "warning"
    assert "labels-not-in-votes" not in found(labels=["x"] * 2 + LABELS[2:])
    assert "labels-not-in-votes" in found(VOTES * 2, ["x"] * 3 + LABELS[3:] + LABELS)  # 5%
    assert "labels-not-in-votes" not in found(VOTES * 3, ["x"] * 3 + LABELS[3:] + LABELS * 2)
    # Annotators, too, use many categories once.
    votes = [[*row, f"rare {place}"] for place, row in enumerate(VOTES)]
    assert "labels-not-in-votes" not in found(votes, ["x"] * 3 + LABELS[3:])


# Votes


def test_too_few_items() -> None:
    assert found(VOTES[:19], LABELS[:19])["too-few-items"].severity == "warning"
    assert "too-few-items" not in found(VOTES[:20], LABELS[:20])


def test_labeler_abstains() -> None:
    assert found(labels=some(LABELS, None))["labeler-abstains"].severity == "info"
    assert found(labels=some(LABELS, None, None))["labeler-abstains"].severity == "warning"
    hard = [NAMES] * 40 + VOTES * 4
    told = found(hard, [None] * 40 + LABELS * 4)["labeler-abstains"].message
    assert "(0.00 of pairs, 1.00 on the others)" in told


def test_few_common_items() -> None:
    labels = {"llm": LABELS, "rule": LABELS[:14] + [None] * 16}
    assert found(labels=labels)["few-common-items"].examples == ("rule",)
    labels["rule"] = LABELS[:16] + [None] * 14
    assert "few-common-items" not in found(labels=labels)
    apart = {"llm": LABELS[:15] + [None] * 15, "rule": [None] * 15 + LABELS[15:]}
    assert "0 items" in found(labels=apart)["few-common-items"].message


def test_of_equally_frequent_spellings_that_of_the_labels_is_kept() -> None:
    for used, other in (("cat.", "cat"), ("cat", "cat.")):
        votes = [["cat", "cat."], ["dog", "dog"]] * 20
        problem = found(votes, [used, "dog"] * 20)["category-variants"]
        assert problem.options == {"map": f"{other}={used}"}
        assert "labels of llm" not in problem.message


def test_one_vote() -> None:
    labels = {"llm": LABELS, "rule": LABELS[:14] + [None] * 16}
    one = found([[label] for label in LABELS], labels)
    assert {code: problem.severity for code, problem in one.items()} == {"one-vote": "info"}
    assert "Cohen's kappa" in one["one-vote"].message
    assert "one-vote" not in found([[label] for label in LABELS[1:]] + VOTES[:1])
    unlabeled = Dataset(pl.DataFrame({"item": range(30), "label": LABELS})).check().problems
    assert "Cohen" not in next(problem.message for problem in unlabeled if problem.code == "one-vote")


def test_percentages_that_are_rounded() -> None:
    def codes(*totals: int) -> set[str]:
        counts = [[total - 40, 40] for total in totals]
        labels = ["a", "b"] * (len(totals) // 2)
        return {one.code for one in Dataset(None, labels, counts=counts, categories=["a", "b"]).check().problems}

    assert "looks-like-percent" in codes(*[100, 99] * 15, 98, 103)
    assert "looks-like-percent" in codes(*[1_000] * 30)
    assert "looks-like-percent" not in codes(*range(90, 120))


@pytest.mark.parametrize("what", ["confidence", "Flag", "difficulty", "sure"])
def test_columns_about_an_annotator_with_the_values_of_votes(what: str) -> None:
    problem = wide(**{f"ann_1_{what}": LABELS})["not-annotators"]
    assert (problem.severity, problem.examples) == ("error", (f"ann_1_{what}",))
    assert problem.options == {"annotators": "ann_0,ann_1,ann_2"}


@pytest.mark.parametrize("text", ["\u200b", "N/A.", "'N/A'", '"null"', "nan.", "N\u200b/A", "\uff4e/\uff41", "#REF!"])
def test_missing_values_in_other_spellings(text: str) -> None:
    assert wide(ann_4=some(LABELS, text, text))["looks-missing"].severity == "error"


@pytest.mark.parametrize("sign", [";", "|", ",", "/", "+", " & ", " and ", "\n", "||", "::", "\u3001", "~", "\\"])
def test_separators_of_labels(sign: str) -> None:
    votes = some(LABELS, f"cat{sign}dog", f"dog{sign}cat")
    assert wide(ann_4=votes)["looks-multilabel"].severity == "error"


@pytest.mark.parametrize(("total", "flagged"), [(100, True), (99, True), (101, True), (98, False)])
def test_looks_like_percent(total: int, flagged: bool) -> None:
    counts = [[total - 40, 40, 0], [0, 0, total]] * 5
    problems = Dataset(None, ["a", "c"] * 5, counts=counts, categories=["a", "b", "c"]).check().problems
    assert ("looks-like-percent" in {one.code for one in problems}) == flagged


def test_a_hundred_votes_are_no_percentages() -> None:
    assert "looks-like-percent" not in found([["a"] * 50 + ["b"] * 50] * 12, ["a"] * 12)


def test_weights_look_like_counts() -> None:
    votes = [row[: 2 + place % 2] for place, row in enumerate(VOTES)]
    sizes = [float(len(row)) for row in votes]
    assert "weights-look-like-counts" in found(votes, sample_weight=sizes)
    assert "weights-look-like-counts" not in found(votes, sample_weight=[1.5, 3.0] * 15)
    assert "weights-look-like-counts" not in found(sample_weight=[3.0] * 30)  # all alike
    given = {"suggested_llm": LABELS, "ann_1": LABELS, "ann_2": LABELS}
    for name, flagged in (("n_votes", True), ("count", True), ("weight", False)):
        table = pl.DataFrame({**given, name: [1, 2, 3] * 10})
        codes = {one.code for one in Dataset(table, sample_weight=name).check().problems}
        assert ("weights-look-like-counts" in codes) == flagged


def _exceptions(patterns: list[tuple[list[str], int]], prior: dict[str, Fraction], a: float) -> float:
    """Sum the probability that the true label is not a most frequent vote, by Bayes' rule (the oracle)."""
    m, total = len(prior), 0.0
    for votes, items in patterns:
        likely = {
            truth: float(share) * math.prod(a if vote == truth else (1 - a) / (m - 1) for vote in votes)
            for truth, share in prior.items()
        }
        most = max(map(votes.count, votes))
        first = sum(likely[label] for label in {*votes} if votes.count(label) == most)
        total += items * (1 - first / sum(likely.values()))
    return total


def test_expected_exceptions_of_true_labels() -> None:
    patterns = [
        (["a", "a", "b"], 9),
        (["b", "b", "b"], 12),
        (["c", "c", "a"], 5),
        (["a", "b", "c"], 3),
        (["c"] * 4, 11),
    ]
    votes = [row for row, items in patterns for _ in range(items)]
    evidence = Dataset(votes, {"llm": [row[0] for row in votes]}).evidence()
    every = [vote for row in votes for vote in row]
    prior = {label: Fraction(every.count(label), len(every)) for label in "abc"}
    most = np.zeros(len(evidence.counts.patterns), np.int64)
    np.maximum.at(most, evidence.row, evidence.counts.patterns.votes)
    rows = np.ones(len(most), np.bool_)
    accuracy, expected = vote_rules._exceptions_of_true_labels(evidence, rows, most)
    pairs = [(row[i] == row[j], len(row)) for row in votes for i in range(len(row)) for j in range(i)]
    t = sum(2 * same / (n * (n - 1)) for same, n in pairs) / len(votes)
    assert accuracy**2 + (1 - accuracy) ** 2 / 2 == pytest.approx(t, abs=1e-12)
    assert expected == pytest.approx(_exceptions(patterns, prior, accuracy), rel=1e-9)


def test_poisson_tail() -> None:
    terms = [Fraction(5) ** k / math.factorial(k) for k in range(4)]
    assert sampled_votes.poisson_tail(3, 5.0) == pytest.approx(float(sum(terms)) * math.exp(-5), rel=1e-12)
    assert sampled_votes.poisson_tail(5, 5.0) == 1.0


def test_closeness_of_an_order() -> None:
    """Mean distance of differing votes over its expectation, by loops."""
    rng = np.random.default_rng(3)
    votes = [[str(one) for one in rng.integers(1, 5, 4)] for _ in range(60)]
    evidence = Dataset(votes, {"llm": [row[0] for row in votes]}).evidence()
    pairs, items = vote_rules._differing_pairs(evidence, [0, 1, 2, 3])
    distances, weights = [], []
    for row in votes:
        for i, j in product(range(4), repeat=2):
            if row[i] != row[j]:
                distances.append(abs(int(row[i]) - int(row[j])))
                weights.append(1.0)
    every = [int(vote) for row in votes for vote in row]
    apart = [abs(one - other) for one, other in product(every, repeat=2) if one != other]
    expected = np.average(distances, weights=weights) / np.mean(apart)
    shares = evidence.votes / evidence.votes.sum()
    assert vote_rules._closeness(pairs, shares, np.arange(4)) == pytest.approx(expected, rel=1e-12)
    assert items == sum(len({*row}) > 1 for row in votes)


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (["10", "9", "2"], [2, 1, 0]),
        ([3, 1, 2], [1, 2, 0]),
        (["2 stars", "1 star", "3 stars"], [1, 0, 2]),
        (["High", "low", "medium"], [1, 2, 0]),
        (["-1", "0", "1"], [0, 1, 2]),
        (["cat", "dog", "cow"], None),
        (["a1", "b2", "c3"], None),
        (["low", "high", "other"], None),
        (["good", "very bad", "neutral"], [1, 2, 0]),
        (["critical", "none", "moderate"], [1, 2, 0]),
        (["highest", "lowest", "medium"], [1, 2, 0]),
        (["2 - bad", "1 - very bad", "10 - best"], [1, 0, 2]),
        (["1 - bad", "1 - worse", "2 - good"], None),
        ([False, True], None),
    ],
)
def test_natural_order(labels: list[Any], order: list[int] | None) -> None:
    assert vote_rules.natural_order(labels) == order


def test_order_is_reported_unless_weights_use_it() -> None:
    data = problem_rates.CHANGED["ratings"][1](np.random.default_rng(1))
    votes, labels = data.votes, data.labels
    assert {one.code for one in Dataset(votes, labels).check().problems} == {"looks-ordinal"}
    categories = sorted({*votes.ravel(), *labels["llm"]})
    assert {one.code for one in Dataset(votes, labels, categories=categories).check().problems} == {"looks-ordinal"}
    assert audit(votes, labels, categories=categories, weights="linear", progress=False).problems == ()
    assert audit(votes, labels, categories=categories, weights="linear", progress=False).problems == ()


# Annotators and columns


def test_not_annotators() -> None:
    problem = wide(ann_0_seconds=list(range(30)))["not-annotators"]
    assert problem.options == {"annotators": "ann_0,ann_1,ann_2"}
    assert "not-annotators" in wide(ann_0_sure=["high", "low"] * 15, ann_1_sure=["low", "high"] * 15)
    assert "not-annotators" not in wide(ann_3=some([None] * 30, "rare", "rare"))  # too few votes
    assert "not-annotators" not in wide(ann_3=[name.upper() for name in LABELS])  # another spelling


def test_not_annotators_of_a_table_that_is_not_fetched() -> None:
    table = pl.LazyFrame({"suggested_llm": LABELS, "ann_1": LABELS, "ann_2": LABELS, "ann_1_s": list(range(30))})
    with patch.object(dataset_module, "_MAX_FETCHED", 1):
        problems = Dataset(table).check().problems
    assert [one.code for one in problems if one.severity == "error"] == ["not-annotators"]


def test_annotators_unused() -> None:
    assert wide(rater_3=LABELS)["annotators-unused"].examples == ("rater_3",)
    assert "annotators-unused" in wide(Ann_3=LABELS)
    assert "annotators-unused" not in wide(rater_3=list(range(30)))
    assert "annotators-unused" not in wide(topic=LABELS)
    table = pl.DataFrame({"suggested_llm": LABELS, **{f"ann_{n}": LABELS for n in range(3)}})
    assert Dataset(table, annotators=["ann_0", "ann_1"]).check().problems == ()


def test_labeler_equals_annotator() -> None:
    sim = dhkappa.simulate(100, annotators=4, accuracy=0.8, rng=1)
    copied = sim.votes[:, 2].tolist()
    problem = found(sim.votes, copied)["labeler-equals-annotator"]
    assert "annotator 2 on 100 of 100" in problem.message
    assert "labels-from-votes" not in found(sim.votes, copied)  # one diagnosis is enough
    assert "labeler-equals-annotator" not in found(sim.votes, sim.truth.tolist())
    assert "labeler-equals-annotator" in wide(ann_llm=LABELS)


def test_binomial_tail() -> None:
    exact = sum(math.comb(30, k) * Fraction(4, 5) ** k * Fraction(1, 5) ** (30 - k) for k in range(28, 31))
    assert copies._at_least(28, 30, 0.8) == pytest.approx(float(exact), rel=1e-9)
    assert copies._at_least(3, 3, 1.0) == 1.0


def test_removed_duplicates_are_reported() -> None:
    rows = [(str(item), who, label) for item, label in enumerate(LABELS) for who in ("p", "q", "p")]
    item, annotator, label = zip(*rows, strict=True)
    table = pl.DataFrame({"item": item, "annotator": annotator, "label": label, "suggested": label})
    codes = {one.code: one for one in Dataset(table, duplicates="last").check().problems}
    assert codes["duplicates-removed"].severity == "warning"
    assert "30 of 90 votes were removed" in codes["duplicates-removed"].message
    once = table.unique(["item", "annotator"], keep="first")
    assert "duplicates-removed" not in {one.code for one in Dataset(once, duplicates="last").check().problems}


# Items


def test_items_that_do_not_join_are_a_problem() -> None:
    votes = pl.DataFrame({"item": ["1", "1", "2"], "annotator": ["p", "q", "p"], "label": ["a", "a", "b"]})
    items = pl.DataFrame({"item": ["01", "02"], "suggested": ["a", "b"]})
    data = Dataset(votes, items=items)
    found_ones = data.check()
    assert [(one.code, one.severity) for one in found_ones.problems] == [("ids-not-joined", "error")]
    assert (found_ones.format, found_ones.n_items, len(found_ones.columns)) == ("long", None, 5)
    with expect_error("ids-not-joined", "items") as caught:
        audit(data, progress=False)
    assert "leading zeros are removed" in str(caught.value)


def test_groups_of_items() -> None:
    votes, labels = [[name] * 2 for name in NAMES for _ in range(20)], [name for name in NAMES for _ in range(20)]
    ids = [f"d{place // 4}-{place % 4}" for place in range(60)]
    columns: dict[str, Any] = {"suggested_llm": labels, "ann_1": [row[0] for row in votes], "ann_2": labels}
    assert in_table(item=ids, **columns)["looks-clustered"].severity == "warning"
    mixed = np.random.default_rng(1).permutation(60)
    shuffled = {name: [values[place] for place in mixed] for name, values in columns.items()}
    assert "looks-clustered" not in in_table(item=ids, **shuffled)
    by_column = in_table(item=list(range(60)), thread_id=[one[:-2] for one in ids], **columns)
    assert by_column["looks-clustered"].severity == "warning"
    assert "'thread_id'" in by_column["looks-clustered"].message
    assert in_table(item=list(range(60)), thread=ids[:30] * 2, **shuffled)["looks-clustered"].severity == "info"
    assert "looks-clustered" not in in_table(item=list(range(60)), topic=[one[:-2] for one in ids], **columns)


# Check


def test_check_says_what_was_understood() -> None:
    votes = pl.DataFrame(
        {"id": [1, 1, 2, 2, 3], "who": [*"pqpqp"], "label": ["a", "b", "b", "b", "b"], "seconds": [1, 2, 3, 4, 5]}
    )
    items = pl.DataFrame({"id": [1, 2, 3, 4], "suggested_llm": ["a", "b", None, "b"]})
    check = Dataset(votes, items=items, item="id", label="label", annotator="who").check()
    told = {(one.table, one.name): (one.role, one.reason) for one in check.columns}
    assert told["votes", "id"] == ("item", "named by you")
    assert told["votes", "label"] == ("label of the vote", "named by you")
    assert told["votes", "seconds"] == ("", "ignored")
    assert told["items", "suggested_llm"] == ("suggested label of llm", "recognized by its name")
    assert (check.n_items, check.n_votes, check.n_annotators, check.labelers) == (4, 5, 2, ("llm",))
    assert check.categories == (("b", 4), ("a", 1))
    assert check.excluded == {"no_votes": 1, "one_vote": 1}
    assert not check.has_errors
    assert check.to_dict()["categories"] == [{"category": "b", "votes": 4}, {"category": "a", "votes": 1}]
    assert "Excluded items: 1 without votes, 1 with one vote." in repr(check)
    assert "<table>" in check._repr_html_()


def test_tallies_and_arrays_have_the_same_problems() -> None:
    votes = [["cat", "Cat", "cat"], *VOTES[1:]]
    for data in (Dataset(votes, {"llm": LABELS}), tally(votes, {"llm": LABELS})):
        assert [one.code for one in data.check(allow=["category-variants"]).problems] == ["category-variants"]
        assert data.check(allow=["category-variants"]).problems[0].accepted


def test_an_accepted_error_hides_no_other_problem() -> None:
    drawn = simulate(300, annotators=[0.8] * 5, categories=["a", "b", "c"], rng=3)
    votes = drawn.votes.copy()
    votes[:40, 0] = [f"{label} " for label in votes[:40, 0]]
    labels = [Counter(str(vote).strip() for vote in row).most_common(1)[0][0] for row in votes]
    data = Dataset(votes, {"gold": labels})
    assert {one.code for one in data.check().problems} == {"category-variants"}
    assert {one.code for one in data.check(allow=["category-variants"]).problems} == {
        "category-variants",
        "labels-from-votes",
    }


def test_data_without_labels_can_be_audited() -> None:
    check = Dataset(VOTES).check()
    assert [(one.code, one.severity) for one in check.problems] == [("no-suggested-labels", "info")]
    assert check.n_items == 30
    assert check.understood()[1] == "30 items, 90 votes."


def test_data_that_cannot_be_counted_are_a_problem() -> None:
    check = Dataset(
        pl.DataFrame({"item": [1, 1], "ann_1": ["a", "b"], "ann_2": ["a", "b"], "suggested": ["a", "b"]})
    ).check()
    assert [(one.code, one.severity) for one in check.problems] == [("duplicate-items", "error")]


# Audit


def test_audit_keeps_problems_and_repeats_no_note() -> None:
    votes = [["cat", "Cat", "cat"], *VOTES[1:15]]
    result = audit(votes, {"llm": LABELS[:15]}, allow=["too-few-items"], progress=False)
    assert [(one.code, one.accepted) for one in result.problems] == [
        ("category-variants", False),
        ("too-few-items", True),
    ]
    assert {"category-variants", "few-items"} & {note.code for note in result.notes} == set()
    assert {"category-variants", "few-items"} <= {note.code for note in result.kappas["llm"].notes}
    assert [one["code"] for one in result.to_dict()["problems"]] == ["category-variants", "too-few-items"]
    shown = repr(result)
    assert shown.index("Error [category-variants]") < shown.index("Accepted warning [too-few-items]")
    assert shown.index("Accepted warning") < shown.index(result.summary[:20])


def test_audit_of_a_tally_keeps_problems() -> None:
    votes = [["cat", "Cat", "cat"], *VOTES[1:]]
    assert [one.code for one in audit(tally(votes, {"llm": LABELS}), progress=False).problems] == ["category-variants"]


def test_audit_checks_the_chosen_labelers() -> None:
    data = Dataset(VOTES, {"llm": LABELS, "lang": ["en", "de"] * 15})
    assert [one.labelers for one in audit(data, progress=False).problems] == [("lang",)]
    assert audit(data, ["llm"], progress=False).problems == ()
