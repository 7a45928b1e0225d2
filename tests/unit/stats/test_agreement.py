"""Agreement of annotators without labels, and of one vote per item, against loops, fractions and other libraries."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhkappa
from dhkappa import AnnotatorAudit, Audit, DataError, SingleVoteAudit

VOTES: list[list[Any]] = [["a", "a", "b"], ["b", "b", None], ["a", "b", "c"], ["c", "c", "c"], ["a", None, None]]


def annotator_audit(*data: Any, **options: Any) -> AnnotatorAudit:
    found: Any = dhkappa.audit(*data, progress=False, **options)
    assert isinstance(found, AnnotatorAudit)
    return found


def single_vote_audit(*data: Any, **options: Any) -> SingleVoteAudit:
    found: Any = dhkappa.audit(*data, progress=False, **options)
    assert isinstance(found, SingleVoteAudit)
    return found


def test_no_labels_give_fleiss_kappa() -> None:
    audit = annotator_audit(np.array(VOTES, object))
    assert audit.fleiss.exact == dhkappa.fleiss_kappa(VOTES).exact
    assert audit.fleiss.n_items == 4


def by_category(votes: list[list[Any]], label: str) -> tuple[Fraction, Fraction, Fraction]:
    """Return the vote share, the agreement and the kappa of a category, by loops over items and pairs."""
    share = both = apart = Fraction(0)
    items = [[vote for vote in row if vote is not None] for row in votes]
    items = [row for row in items if len(row) > 1]
    for row in items:
        share += Fraction(row.count(label), len(row)) / len(items)
        pairs = list(combinations(row, 2))
        both += Fraction(sum(pair == (label, label) for pair in pairs), len(pairs)) / len(items)
        apart += Fraction(sum((label in pair) and pair != (label, label) for pair in pairs), len(pairs)) / len(items)
    return share, both / share, 1 - apart / (2 * share * (1 - share))


def test_categories() -> None:
    table = annotator_audit(VOTES).categories()
    shares = table.column("vote_share")
    assert shares == sorted(shares, reverse=True)
    for row in table:
        expected = by_category(VOTES, row["category"])
        assert [row["vote_share"], row["agreement"], row["kappa"]] == pytest.approx([float(one) for one in expected])
    assert {row["category"]: row["n_votes"] for row in table} == {"a": 3, "b": 4, "c": 4}


def test_categories_of_fleiss_1971(shared_data: Path) -> None:
    """The values that irr::kappam.fleiss(diagnoses, detail=TRUE) prints in R."""
    [path] = (shared_data / "published" / "fleiss1971_diagnoses").glob("*annotations*.csv")
    table = annotator_audit(str(path)).categories()
    assert sorted(round(row["kappa"], 3) for row in table) == [0.245, 0.245, 0.471, 0.520, 0.566]


def test_annotators() -> None:
    audit = annotator_audit(np.array(VOTES, object))
    shares = {label: by_category(VOTES, label)[0] for label in "abc"}
    chance = 1 - sum(share**2 for share in shares.values())
    for row in audit.annotators():
        agree, score = [], []
        for votes in VOTES:
            own = votes[row["annotator"]]
            others = [v for place, v in enumerate(votes) if v is not None and place != row["annotator"]]
            if own is not None and others:
                agree.append(Fraction(others.count(own), len(others)))
                score.append((agree[-1] - shares[own]) / chance)
        assert row["items"] == len(agree)
        assert row["agree"] == pytest.approx(float(sum(agree) / len(agree)))
        assert row["score"] == pytest.approx(float(sum(score) / len(score)))
    scores = audit.annotators().column("score")
    assert scores == sorted(scores)


def test_mean_score_is_fleiss_kappa() -> None:
    drawn = dhkappa.simulate(200, annotators=4, rng=1)
    audit = annotator_audit(drawn.votes)
    assert np.mean(audit.annotators().column("score")) == pytest.approx(audit.fleiss.value)


@pytest.mark.parametrize("repeats", [[1, 3, 2, 4], [1, 1, 1, 2]])
def test_weights_are_numbers_of_equal_items(repeats: list[int]) -> None:
    """An item of weight 3 counts as much as three items with the same votes."""
    drawn = dhkappa.simulate(40, annotators=4, categories=["a", "b"], rng=2).votes
    times = np.resize(repeats, 40)
    weighted = annotator_audit(drawn, sample_weight=times)
    repeated = annotator_audit(np.repeat(drawn, times, axis=0))
    for table, names in {"categories": ("vote_share", "agreement", "kappa"), "annotators": ("agree", "score")}.items():
        one, other = getattr(weighted, table)(), getattr(repeated, table)()
        for name in names:
            assert one.column(name) == pytest.approx(other.column(name)), name
    assert weighted.categories().column("kappa")[0] == pytest.approx(weighted.fleiss.value)  # two categories
    assert weighted.annotators().column("items") == [40] * 4


def test_disagreements() -> None:
    table = annotator_audit(np.array(VOTES, object)).disagreements()
    assert table.column("item") == [2, 0]
    assert table.column("agreement") == [0, pytest.approx(1 / 3)]
    assert table.column("votes") == ["a: 1, b: 1, c: 1", "a: 2, b: 1"]
    assert annotator_audit(VOTES).disagreements(1).column("item") == [2]


def test_disagreements_of_merged_rows_name_every_item() -> None:
    votes = np.array([["a", "b"], ["a", "a"]] * 300, object)
    assert annotator_audit(votes).disagreements().column("item") == list(range(0, 600, 2))
    assert annotator_audit(votes).disagreements(3).column("item") == [0, 2, 4]


def test_agreement_of_a_file(tmp_path: Path) -> None:
    lines = "".join(
        f"{item},{who},{label}\n"
        for item, row in enumerate(VOTES)
        for who, label in zip("xyz", row, strict=True)
        if label
    )
    (tmp_path / "votes.csv").write_text("item,annotator,label\n" + lines)
    audit = annotator_audit(str(tmp_path / "votes.csv"))
    assert audit.fleiss.exact == dhkappa.fleiss_kappa(VOTES).exact
    assert sorted(audit.annotators().column("annotator")) == ["x", "y", "z"]
    assert audit.disagreements().column("item") == ["2", "0"]


def test_nothing_to_agree_on() -> None:
    audit = annotator_audit([["a", "a"], ["a", "a"]])
    assert "undefined" in audit.summary
    assert annotator_audit([]).summary.startswith("The agreement of the annotators is undefined.")
    with pytest.raises(DataError) as caught:
        annotator_audit(VOTES).annotators()
    assert caught.value.code == "annotators-unknown"


def test_two_votes_and_labels_are_an_audit() -> None:
    found: Any = dhkappa.audit(VOTES, ["a", "b", "a", "c", "a"], progress=False)
    assert isinstance(found, Audit)


ONE = ["a", "b", "a", "c", "b", None, "a", "c"]
LABELS = ["a", "b", "b", "c", "a", "a", "a", None]


def test_cohen_kappa_by_hand() -> None:
    audit = single_vote_audit([[vote] for vote in ONE], {"llm": LABELS})
    kappa = audit.kappas["llm"]
    pairs = [(label, vote) for label, vote in zip(LABELS, ONE, strict=True) if None not in (label, vote)]
    n = len(pairs)
    po = Fraction(sum(label == vote for label, vote in pairs), n)
    pe = sum(
        Fraction(sum(label == one for label, _ in pairs) * sum(vote == one for _, vote in pairs), n * n)
        for one in "abc"
    )
    assert (kappa.n_items, kappa.agreement, kappa.exact) == (6, float(po), (po - pe) / (1 - pe))
    assert audit.confusion().to_dicts()[0] == {"suggested": "a", "vote": "a", "items": 2, "share": pytest.approx(2 / 3)}
    assert sum(audit.confusion().column("items")) == 6
    assert audit.disagreements().to_dicts() == [
        {"item": 2, "suggested": "b", "vote": "a"},
        {"item": 4, "suggested": "a", "vote": "b"},
    ]
    assert len(audit.disagreements(limit=1)) == 1


def test_cohen_kappa_of_statsmodels() -> None:
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    drawn = dhkappa.simulate(300, labelers={"llm": 0.8}, annotators=1, rng=3)
    kappa = single_vote_audit(drawn.votes, drawn.suggested).kappas["llm"]
    counts = np.zeros((3, 3))
    for label, vote in zip(drawn.suggested["llm"], drawn.votes[:, 0], strict=True):
        counts["abc".index(label), "abc".index(vote)] += 1
    found = inter_rater.cohens_kappa(counts)
    assert kappa.value == pytest.approx(found.kappa, abs=1e-12)
    assert kappa.se == pytest.approx(found.std_kappa, rel=1e-9)
    assert kappa.interval.low < kappa.value < kappa.interval.high


def test_one_vote_per_item_is_said() -> None:
    audit = single_vote_audit([[vote] for vote in ONE], {"llm": LABELS, "rule": ["a"] * 8})
    assert [note.code for note in audit.notes] == ["one-annotator"]
    assert "llm gives the annotator's label on 67% of 6 items" in audit.summary
    assert audit.table().column("labeler") == ["llm", "rule"]
    found = audit.to_dict()
    assert found["labelers"]["rule"]["cohen_kappa"] == 0


def test_undefined_cohen_kappa() -> None:
    kappa = single_vote_audit([["a"], ["a"]], ["a", "a"]).kappas["labeler"]
    assert (kappa.agreement, kappa.exact) == (1.0, None)
    assert math.isnan(kappa.interval.low)


@pytest.mark.parametrize(
    "options",
    [
        {"weights": "linear", "categories": ["a", "b", "c"]},
        {"pool": 100},
        {"sample_weight": np.arange(1, len(ONE) + 1)},
        {"strata": ["x", "y"] * (len(ONE) // 2) + ["x"] * (len(ONE) % 2)},
    ],
)
def test_options_without_effect_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(DataError) as caught:
        single_vote_audit([[vote] for vote in ONE], {"llm": LABELS}, **options)
    assert caught.value.code == "option-not-supported"


def test_annotators_without_counted_votes() -> None:
    """The last annotator only voted alone: no items, no score, after the others."""
    votes = np.array([["a", "a", None], ["a", "b", None], ["b", "b", None], [None, None, "a"]], object)
    table = annotator_audit(votes).annotators()
    assert table.title == "Agreement of each annotator with the others"
    assert table.column("annotator")[-1] == 2
    assert table.column("items") == [3, 3, 0]
    assert all(isinstance(number, int) for number in table.column("items"))
    assert math.isnan(table.column("score")[-1])
    assert math.isnan(table.column("agree")[-1])


def test_types_and_title_of_categories() -> None:
    table = annotator_audit(VOTES).categories()
    assert table.title == "Agreement of annotators by category"
    assert all(isinstance(number, int) for number in table.column("n_votes"))


def test_many_votes_of_a_small_type() -> None:
    """Counts of votes are held in small integers: 200 equal votes on an item."""
    votes = np.array([["a"] * 200, ["a"] * 150 + ["b"] * 50, ["b"] * 200], object)
    scores = annotator_audit(votes).annotators()
    assert scores.column("agree")[-1] == pytest.approx((1 + 149 / 199 + 1) / 3)
    assert scores.column("agree")[0] == pytest.approx((1 + 49 / 199 + 1) / 3)


def test_order_of_disagreements() -> None:
    """The least agreed first, then most votes, then the order of the data."""
    halves: list[list[Any]] = [["a", "b", None, None], ["a", "b", "c", None]] * 12
    table = annotator_audit([*halves, ["a", "a", "b", None], ["a", "b", "c", "d"]]).disagreements()
    assert table.column("item") == [25, *range(1, 24, 2), *range(0, 24, 2), 24]


def test_interval_of_cohen_kappa() -> None:
    from scipy.stats import t

    audit = single_vote_audit([[vote] for vote in ONE], {"llm": LABELS}, confidence_level=0.8)
    kappa = audit.kappas["llm"]
    interval = kappa.interval
    assert (interval.confidence_level, interval.method, interval.reason) == (0.8, "wald", None)
    half = t.ppf(0.9, 5) * kappa.se
    assert tuple(interval) == pytest.approx((kappa.value - half, kappa.value + half))
    wide = single_vote_audit([[vote] for vote in ONE], {"llm": LABELS}, confidence_level=0.999).kappas["llm"].interval
    assert tuple(wide) == (-1, 1)
    same = single_vote_audit([["a"], ["b"]], ["a", "b"]).kappas["labeler"]
    assert (same.value, same.interval.reason) == (1, "The items show no variation.")


def test_cohen_kappa_of_nothing() -> None:
    kappa = single_vote_audit([["a"], ["b"]], [None, None]).kappas["labeler"]
    assert (kappa.n_items, kappa.exact, kappa.interval.reason) == (0, None, "Kappa is undefined.")
    assert math.isnan(kappa.agreement)


def test_order_of_votes_by_label() -> None:
    """By label, the most frequent vote first, then in the order of categories."""
    votes, labels = [*"bcdefghijklmnopqrsty", "c"], ["a"] * 21
    table = single_vote_audit([[vote] for vote in votes], labels).confusion()
    assert table.column("vote") == ["c", *"bdefghijklmnopqrsty"]
    assert table.title == "labeler: votes by suggested label"


def test_items_without_votes_are_no_disagreements() -> None:
    votes: list[list[Any]] = [[None], ["a"], ["b"], ["a"], [None]]
    table = single_vote_audit(votes, ["a", "b", "b", "b", "b"]).disagreements()
    assert table.to_dicts() == [
        {"item": 1, "suggested": "b", "vote": "a"},
        {"item": 3, "suggested": "b", "vote": "a"},
    ]


def test_single_votes_without_a_common_item_have_no_percentage() -> None:
    found = dhkappa.audit([["a", None], [None, "b"]], {"llm": ["", ""]}, progress=False)
    assert isinstance(found, dhkappa.SingleVoteAudit)
    assert found.summary == "llm cannot be compared with the annotators: no item has both a vote and its label."


def test_titles_and_length_of_disagreements() -> None:
    audit = annotator_audit(VOTES)
    assert audit.disagreements().title == "2 items on which annotators disagree, the least agreed first"
    assert audit.disagreements().column("item") == [2, 0]
    first = audit.disagreements(1)
    assert first.title == "1 of 2 items on which annotators disagree, the least agreed first"
    assert first.column("item") == [2]
    assert annotator_audit([["a", "b"], ["a", "a"]]).disagreements().title.startswith("1 item on which")


def test_categories_without_votes_at_the_end() -> None:
    table = annotator_audit(VOTES, categories=["a", "b", "c", "d", "e"]).categories()
    assert sorted(table.column("category")) == ["a", "b", "c", "d", "e"]
    known = {row["category"]: row for row in table}
    assert known["e"]["n_votes"] == 0
    for label in "abc":
        assert known[label]["agreement"] == pytest.approx(float(by_category(VOTES, label)[1]), rel=1e-12)


def test_items_and_interval_of_an_undefined_cohen_kappa() -> None:
    kappa = single_vote_audit([["a"], ["a"], ["a"]], ["a"] * 3, confidence_level=0.9).kappas["labeler"]
    assert (kappa.n_items, kappa.agreement, kappa.exact) == (3, 1.0, None)
    assert math.isnan(kappa.value)
    low, high = kappa.interval
    assert math.isnan(low)
    assert math.isnan(high)
    assert (kappa.interval.confidence_level, kappa.interval.method) == (0.9, "wald")
    assert kappa.interval.reason == "Kappa is undefined."


def test_votes_by_label() -> None:
    """Labels in order, the most frequent vote first, equal ones in order of categories."""
    votes = [["b"], ["a"], ["c"], ["c"], ["b"], ["c"], ["a"]]
    audit = single_vote_audit(votes, ["a", "a", "a", "a", "b", "b", "c"])
    table = audit.confusion()
    assert table.title == "labeler: votes by suggested label"
    rows = [(row["suggested"], row["vote"], row["items"], row["share"]) for row in table]
    assert rows == [
        *(("a", "c", 2, 0.5), ("a", "a", 1, 0.25), ("a", "b", 1, 0.25)),
        *(("b", "b", 1, 0.5), ("b", "c", 1, 0.5), ("c", "a", 1, 1.0)),
    ]


def test_disagreements_that_an_engine_fetches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of votes, a file is read as counts, and the names of items are fetched by group."""
    monkeypatch.setattr("dhkappa.inputs.dataset._MAX_FETCHED", 0)
    votes = {"i1": "aab", "i2": "abc", "i3": "aaa", "i4": "abb", "i5": "bac"}
    path = tmp_path / "votes.csv"
    path.write_text("item,ann_1,ann_2,ann_3\n" + "".join(f"{item},{','.join(row)}\n" for item, row in votes.items()))
    audit = annotator_audit(str(path))
    table = audit.disagreements()
    assert table.column("item")[:2] == ["i2", "i5"]
    assert sorted(table.column("item")[2:]) == ["i1", "i4"]
    assert table.column("agreement") == pytest.approx([0, 0, 1 / 3, 1 / 3])
    first = audit.disagreements(1)
    assert first.column("item") == ["i2"]
    assert first.title == "1 of 4 items on which annotators disagree, the least agreed first"


def test_cohen_kappa_of_billions_of_items_is_exact() -> None:
    """Products of the numbers of items exceed the integers that floats hold."""
    pairs = [("a", "a"), ("b", "b"), ("a", "b"), ("c", "c"), ("c", "a")]
    more = [("b", "a"), ("b", "a"), ("b", "b")]
    tally, added = (dhkappa.tally([[vote] for _, vote in some], [label for label, _ in some]) for some in (pairs, more))
    for _ in range(31):
        tally = tally + tally
    items = [(pair, 2**31) for pair in pairs] + [(pair, 1) for pair in more]
    n = sum(number for _, number in items)
    po = Fraction(sum(number for (label, vote), number in items if label == vote), n)
    L, C = ({one: sum(number for pair, number in items if pair[side] == one) for one in "abc"} for side in (0, 1))
    pe = sum(Fraction(L[one] * C[one], n * n) for one in "abc")
    kappa = single_vote_audit(tally + added).kappas["labeler"]
    assert (kappa.n_items, kappa.exact) == (n, (po - pe) / (1 - pe))


PROBLEMS = (
    dhkappa.Problem("looks-like-counts", "error", "Numbers of votes."),
    dhkappa.Problem("ids-differ", "warning", "Ids differ."),
    dhkappa.Problem("tiny", "info", "Few items."),
)
THREE = [["a", "b"], ["b", "b"], ["a", "a"]]


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("labels", (THREE, ["a", "b", "a"])),
        ("multilabel", ([[["a"], ["b"]], [["b"], ["b"]], [["a"], ["a"]]], [["a"], ["b"], ["a"]])),
        ("annotators", (THREE,)),
        ("single_votes", ([["a"], ["b"], ["a"]], ["a", "b", "b"])),
    ],
)
def test_every_audit_has_a_kind_and_shows_problems_first(kind: str, data: Any) -> None:
    found: Any = dhkappa.audit(*data, **({"multilabel": True} if kind == "multilabel" else {}))
    found = replace(found, problems=PROBLEMS)
    assert next(iter(found.to_dict().items())) == ("kind", kind)
    shown = "- Error [looks-like-counts]: Numbers of votes.\n- Warning [ids-differ]: Ids differ.\n"
    assert repr(found).startswith(shown)
    assert repr(found).index(found.summary[:20]) < repr(found).index("- Few items.")
    assert found._repr_html_().index("Numbers of votes.") < found._repr_html_().index("<table")
