"""Audit: the results of the single functions, kept together."""

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dhkappa
from dhkappa import Audit, auditing
from dhkappa.inputs.arrays import read_votes
from dhkappa.stats.annotators import annotator_table, compare_with_annotators
from dhkappa.stats.review import review_queue
from expect import expect_error

DATA = dhkappa.simulate(120, labelers={"rule": 0.6, "llm": 0.9}, annotators=4, missing=0.2, rng=3)


@pytest.fixture(scope="module")
def audit() -> Audit:
    return dhkappa.audit(DATA.votes, DATA.suggested)


def same(left: object, right: object) -> bool:
    """Compare nested plain values; NaN equals NaN."""
    return repr(left) == repr(right)


def test_results_are_those_of_the_single_functions(audit: Audit) -> None:
    item_votes = read_votes(DATA.votes, DATA.suggested)
    assert audit.labelers == ("rule", "llm")
    for name, labels in DATA.suggested.items():
        kappa = dhkappa.dh_kappa(DATA.votes, labels)
        assert audit.kappas[name].exact == kappa.exact
        assert audit.kappas[name].to_dict() == kappa.to_dict()
        assert audit.permutation_tests[name] == kappa.permutation_test()
        assert same(audit.categories(name).to_dicts(), kappa.by_category().to_dicts())
        assert same(audit.confusion(name).to_dicts(), kappa.confusion().to_dicts())
        assert same(audit.review(name).to_dicts(), review_queue(item_votes, name).to_dicts())
        assert same(audit.annotators(name).to_dicts(), annotator_table(item_votes, name).to_dicts())
        assert audit.annotator_comparison(name).to_dict() == compare_with_annotators(item_votes, name).to_dict()
    assert audit.comparison is not None
    assert same(audit.comparison.to_dict(), dhkappa.compare(DATA.votes, DATA.suggested).to_dict())
    assert audit.fleiss.exact == dhkappa.fleiss_kappa(DATA.votes).exact


def test_limit_of_the_review(audit: Audit) -> None:
    assert audit.review("llm", limit=5).to_dicts() == audit.review("llm").to_dicts()[:5]
    assert audit.review("llm", 5) is audit.review("llm", 5)
    for limit in (True, 1.0, [1], 0):
        with expect_error("invalid-limit", "limit"):
            audit.review("llm", limit=limit)  # type: ignore[arg-type]


def test_one_labeler_needs_no_name() -> None:
    found = dhkappa.audit(DATA.votes, DATA.suggested["llm"])
    assert found.comparison is None
    assert found.labelers == ("labeler",)
    assert found.annotator_comparison().difference == found.annotator_comparison("labeler").difference
    assert found.categories().names[0] == "category"
    assert found.verdict() == found.verdict("labeler")


def test_labelers_by_name(audit: Audit) -> None:
    for ask in (audit.categories, audit.review, audit.verdict, audit.sample_sizes, audit.annotators):
        with expect_error("labeler-not-found", "labeler"):
            ask("gpt")
        with expect_error("several-labelers", "labeler"):
            ask()
    with expect_error("labeler-not-found", "labeler"):
        audit.confusion(5)  # type: ignore[arg-type]


def test_a_tally_has_no_items_and_annotators(audit: Audit) -> None:
    found = dhkappa.audit(dhkappa.tally(DATA.votes, DATA.suggested))
    for name in audit.labelers:
        assert found.kappas[name].exact == audit.kappas[name].exact
        assert same(found.categories(name).to_dicts(), audit.categories(name).to_dicts())
    assert found.comparison is not None
    assert audit.comparison is not None
    assert same(found.comparison.to_dict(), audit.comparison.to_dict())
    with expect_error("items-unknown", "item"):
        found.review("llm")
    for ask in (found.annotators, found.annotator_comparison):
        with expect_error("annotators-unknown"):
            ask("llm")
    json.dumps(found.to_dict(), allow_nan=False)


def test_lists_and_counts_have_items_but_no_annotators() -> None:
    counts = [[3, 0], [2, 1], [0, 3], [1, 2]] * 10
    found = dhkappa.audit(counts=counts, suggested={"a": [0, 0, 1, 1] * 10, "b": [0, 1, 1, 1] * 10})
    lists = dhkappa.audit(DATA.votes.tolist(), DATA.suggested)
    assert len(found.review("a")) == 40
    assert same(lists.review("llm").to_dicts(), dhkappa.audit(DATA.votes, DATA.suggested).review("llm").to_dicts())
    for ask in (found.annotator_comparison, lists.annotators):
        with expect_error("annotators-unknown"):
            ask("a")


def test_strata_and_pool() -> None:
    strata = np.where(DATA.suggested["rule"] == "a", "a", "other")
    pool = {"a": 5000, "other": 700}
    found = dhkappa.audit(DATA.votes, DATA.suggested, strata=strata, pool=pool)
    kappa = dhkappa.dh_kappa(DATA.votes, DATA.suggested["llm"], strata=strata, pool=pool)
    assert found.kappas["llm"].to_dict() == kappa.to_dict()
    assert found.comparison is not None
    compared = dhkappa.compare(DATA.votes, DATA.suggested, strata=strata, pool=pool)
    assert same(found.comparison.to_dict(), compared.to_dict())
    assert found.fleiss.exact == dhkappa.fleiss_kappa(DATA.votes, strata=strata, pool=pool).exact
    weight = {h: size / (strata == h).sum() for h, size in pool.items()}
    eligible = found.review("llm").column("item")
    assert len(eligible) == kappa.n_items
    sizes = {h: sum(strata[i] == h for i in eligible) for h in pool}
    w = np.array([pool[strata[i]] / sizes[strata[i]] for i in eligible])
    # Sums of some hundred floats.
    assert np.average(found.review("llm").column("contribution"), weights=w) == pytest.approx(kappa.value, rel=1e-12)
    parts = found.annotators("llm")
    together = np.dot(parts.column("weight"), parts.column("kappa"))
    assert together == pytest.approx(kappa.value, rel=1e-12)
    by_weights = dhkappa.audit(
        DATA.votes, DATA.suggested, sample_weight=[weight[h] * (strata == h).sum() / sizes[h] for h in strata]
    )
    assert found.annotator_comparison("llm").difference == pytest.approx(
        by_weights.annotator_comparison("llm").difference, rel=1e-12
    )


def test_agreement_weights() -> None:
    options: dict[str, Any] = {"categories": ["a", "b", "c"], "weights": "linear"}
    found = dhkappa.audit(DATA.votes, DATA.suggested, **options)
    assert (found.metric, dhkappa.audit(DATA.votes, DATA.suggested).metric) == ("weighted", "dh")
    alone = dhkappa.dh_kappa(DATA.votes, DATA.suggested["llm"], **options)
    kappa = found.kappas["llm"]
    assert (kappa.metric, kappa.exact, kappa.baselines) == ("weighted", alone.exact, alone.baselines)
    assert found.permutation_tests["llm"] == alone.permutation_test()
    assert found.categories("llm").to_dicts() == alone.by_category().to_dicts()
    compared = dhkappa.compare(DATA.votes, DATA.suggested, **options)
    assert found.comparison is not None
    assert found.comparison.differences.to_dicts() == compared.differences.to_dicts()
    assert found.fleiss.exact == dhkappa.fleiss_kappa(DATA.votes, **options).exact
    assert found.fleiss.metric == "weighted-fleiss"
    assert np.mean(found.review("llm").column("contribution")) == pytest.approx(kappa.value, rel=1e-12)
    parts = found.annotators("llm")
    assert np.dot(parts.column("weight"), parts.column("kappa")) == pytest.approx(kappa.value, rel=1e-12)
    plain = dhkappa.audit(DATA.votes, DATA.suggested)
    assert parts.column("agree") == plain.annotators("llm").column("agree")
    assert found.annotator_comparison("llm").difference != plain.annotator_comparison("llm").difference
    assert len(found.sample_sizes("llm"))
    assert "weighted" not in found.to_dict()["labelers"]["llm"]
    assert "Weighted kappa is" in found.verdict("llm").text
    assert "weighted" not in repr(plain)


def test_agreement_weights_decide_the_ranking() -> None:
    """One labeler is often one step off, the other seldom four."""
    truth = [0, 1, 2, 3, 4] * 12
    votes = np.array([[code] * 3 for code in truth])
    near = [min(code + 1, 4) if i % 3 == 0 else code for i, code in enumerate(truth)]
    far = [4 - code if i % 5 in (0, 4) and i % 2 == 0 else code for i, code in enumerate(truth)]
    suggested = {"near": near, "far": far}
    plain = dhkappa.audit(votes, suggested, categories=range(5))
    found = dhkappa.audit(votes, suggested, categories=range(5), weights="quadratic")
    assert (plain.ranking, found.ranking) == (["far", "near"], ["near", "far"])
    assert found.summary.startswith("Only near is ")


def test_agreement_weights_must_have_an_order() -> None:
    with expect_error("categories-not-declared", "weights"):
        dhkappa.audit(DATA.votes, DATA.suggested, weights="linear")


def test_undefined_kappas() -> None:
    votes = [["a", "a", "a"]] * 12
    found = dhkappa.audit(votes, {"one": ["a"] * 12, "two": ["a"] * 11 + ["b"]})
    assert math.isnan(found.kappas["one"].value)
    assert found.permutation_tests["one"] is None
    with expect_error("kappa-undefined"):
        found.categories("one")
    assert len(found.review("one")) == 12
    assert found.comparison is not None
    assert found.comparison.differences.to_dicts()[0]["reason"]
    json.dumps(found.to_dict(), allow_nan=False)


def test_no_eligible_item() -> None:
    found = dhkappa.audit([["a", "b"], ["b"]], {"x": [None, "b"], "y": [None, "b"]})
    assert found.kappas["x"].n_items == 0
    assert len(found.review("x")) == 0
    json.dumps(found.to_dict(), allow_nan=False)


def test_notes_name_their_labelers(audit: Audit) -> None:
    texts = [note.text for note in audit.notes]
    assert len(texts) == len(set(texts))
    assert [note.code for note in audit.notes].count("items-excluded") == 1
    votes = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "a"]] * 10
    found = dhkappa.audit(votes, {"good": ["a", "b", "a", "b"] * 10, "same": ["a"] * 40})
    one = next(note for note in found.notes if note.code == "one-label")
    assert one.text.startswith("same: ")


def test_display(audit: Audit) -> None:
    text = repr(audit)
    assert all(len(line) <= 110 for line in text.splitlines() if not line.startswith("- "))
    for name in ("rule", "llm", "baseline_random", "difference"):
        assert name in text
    assert text.startswith(audit.summary[:40])
    hostile = {"<script>alert(1)</script>": DATA.suggested["llm"], "b": DATA.suggested["rule"]}
    assert "<script>" not in dhkappa.audit(DATA.votes, hostile)._repr_html_()


def test_plain_values(audit: Audit) -> None:
    found = json.loads(json.dumps(audit.to_dict(limit=3), allow_nan=False))
    keys = {
        "confidence_level",
        "any_time",
        "summary",
        "problems",
        "ranking",
        "labelers",
        "comparison",
        "fleiss",
        "notes",
    }
    assert set(found) == keys | {"kind", "annotator_scores", "annotator_slices", "baseline", "slices"}
    rows = [*audit.annotator_scores().table][:3]
    scores = found["annotator_scores"]["annotators"]
    assert [row["score"] for row in scores] == [row["score"] for row in rows]
    assert [row["agree_with"]["llm"] for row in scores] == [row["agree_with_llm"] for row in rows]
    llm = found["labelers"]["llm"]
    assert len(llm["review"]) == 3
    assert llm["kappa"]["value"] == audit.kappas["llm"].value
    assert llm["annotator_comparison"]["difference"] == audit.annotator_comparison("llm").difference
    assert llm["verdict"]["code"] == audit.verdict("llm").code


def test_names_of_items_of_any_type_in_json() -> None:
    frame = pd.DataFrame(DATA.votes, index=pd.date_range("2026-01-01", periods=120))
    found = dhkappa.audit(frame, pd.Series(DATA.suggested["llm"], index=frame.index))
    first = json.loads(json.dumps(found.to_dict(limit=1), allow_nan=False))["labelers"]["labeler"]["review"][0]
    assert first["item"].startswith("2026-")


@pytest.mark.parametrize("sample_weight", [[5e-324] * 119 + [1.0], [5e-324] * 119 + [1e-300], [1e300] + [1.0] * 119])
def test_one_item_with_almost_all_weight_causes_no_warning(sample_weight: list[float]) -> None:
    found = dhkappa.audit(
        DATA.votes, DATA.suggested, sample_weight=sample_weight, categories=["a", "b", "c"], weights="linear"
    )
    assert "llm" in repr(found)
    few = dhkappa.audit(
        DATA.votes[:12], DATA.suggested["llm"][:12], sample_weight=[*sample_weight[:11], sample_weight[-1]]
    )
    assert "labeler" in repr(few)
    json.dumps(found.to_dict(limit=3), allow_nan=False)


def test_sample_sizes_are_at_most_the_pool() -> None:
    strata = ["a", "b"] * (len(DATA.votes) // 2) + ["a"] * (len(DATA.votes) % 2)
    pool = {"a": 500, "b": 900}
    table = dhkappa.audit(DATA.votes, DATA.suggested, strata=strata, pool=pool).sample_sizes("rule")
    assert len(table) > 0
    assert max(table.column("items")) <= sum(pool.values())
    assert max(table.column("items_assured")) <= sum(pool.values())


@pytest.mark.parametrize("kind", ["small integers", "floats", "series", "own"])
def test_pool_sizes_are_copied(kind: str) -> None:
    drawn = dhkappa.simulate(400, labelers={"a": 0.8}, annotators=3, rng=3)
    strata = ["x", "y"] * 200
    sizes = {"x": 40_000, "y": 30_000}
    expected = dhkappa.audit(drawn.votes, drawn.suggested, strata=strata, pool=sizes, progress=False)
    pool: Any = {
        "small integers": {name: np.uint16(size) for name, size in sizes.items()},
        "floats": {name: float(size) for name, size in sizes.items()},
        "series": pd.Series(sizes),
        "own": dict(sizes),
    }[kind]
    found = dhkappa.audit(drawn.votes, drawn.suggested, strata=strata, pool=pool, progress=False)
    pool["x"] = 401
    assert found.sample_sizes().to_dicts() == expected.sample_sizes().to_dicts()
    assert found.review().to_dicts() == expected.review().to_dicts()
    assert found.to_dict() == expected.to_dict()


def test_a_very_large_pool() -> None:
    drawn = dhkappa.simulate(400, labelers={"a": 0.8}, annotators=3, rng=3)
    endless, huge = (dhkappa.audit(drawn.votes, drawn.suggested, pool=pool, progress=False) for pool in (None, 10**15))
    assert huge.sample_sizes().to_dicts() == endless.sample_sizes().to_dicts()


def test_confidence_level() -> None:
    found = dhkappa.audit(DATA.votes, DATA.suggested, confidence_level=0.5)
    assert found.confidence_level == 0.5
    kappa = found.kappas["llm"]
    row = next(row for row in found.table() if row["labeler"] == "llm")
    interval = kappa.confidence_interval(0.5)
    assert (row["low"], row["high"]) == (interval.low, interval.high)
    with expect_error("invalid-confidence-level", "confidence_level"):
        dhkappa.audit(DATA.votes, DATA.suggested, confidence_level=95)


def test_tables_are_computed_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(name: str) -> Any:
        made = getattr(auditing, name)

        def ask(*arguments: Any, **options: Any) -> Any:
            asked.append(name)
            return made(*arguments, **options)

        return ask

    for name in ("annotator_table", "review_queue"):
        monkeypatch.setattr(auditing, name, counted(name))
    found = dhkappa.audit(DATA.votes, DATA.suggested)
    assert (found.summary, asked) == (found.summary, [])
    assert found.annotators("llm") is found.annotators("llm")
    assert found.review("llm", 5) is found.review("llm", 5)
    assert asked == ["annotator_table", "review_queue"]
    assert found.categories("llm") is found.categories("llm")
    assert found.confusion("llm") is found.confusion("llm")


@pytest.mark.parametrize("design", ["none", "weights", "strata"])
def test_equal_items_are_merged(design: str) -> None:
    """An audit of many equal items has the results of the single functions, which do not merge them."""
    random = np.random.default_rng(4)
    votes = np.array([*"ab", None], object)[random.integers(0, 3, (600, 4))]
    suggested = {name: np.array([*"ab"], object)[random.integers(0, 2, 600)] for name in ("x", "y")}
    options: dict[str, Any] = {
        "none": {},
        "weights": {"sample_weight": random.choice([0.1, 1.0], 600)},
        "strata": {"strata": random.choice(["s", "t"], 600).tolist()},
    }[design]
    pool = {"s": 1000, "t": 9000} if design == "strata" else None
    found = dhkappa.audit(votes, suggested, **options, pool=pool)
    assert found._item_votes is not None
    assert (found._item_votes.group is None) == (design != "none")  # too many kinds of items otherwise
    votes, suggested = np.tile(votes, (3, 1)), {name: np.tile(labels, 3) for name, labels in suggested.items()}
    options = {name: np.tile(values, 3).tolist() for name, values in options.items()}
    found = dhkappa.audit(votes, suggested, **options, pool=pool and {name: 3 * size for name, size in pool.items()})
    assert found._item_votes is not None
    assert found._item_votes.group is not None
    item_votes, pool = read_votes(votes, suggested, **options), pool and {name: 3 * size for name, size in pool.items()}
    for name in suggested:
        assert same(found.review(name, 50).to_dicts(), review_queue(item_votes, name, limit=50, pool=pool).to_dicts())
        assert same(found.annotators(name).to_dicts(), annotator_table(item_votes, name, pool).to_dicts())
        compared = compare_with_annotators(item_votes, name, pool=pool)
        assert same(found.annotator_comparison(name).to_dict(), compared.to_dict())


def test_without_takes_names_in_both_forms() -> None:
    sim = dhkappa.simulate(200, labelers={"llm": 0.9}, annotators=4, rng=1)
    audit = dhkappa.audit(sim.votes, sim.suggested, progress=False)
    one, other = audit.without(1, 2), audit.without([1, 2])
    assert one.annotators == other.annotators == ("1", "2")
    assert one.to_dict() == other.to_dict()
