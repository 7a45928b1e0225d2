"""Labelers that labeled different items: pairs on their common items, the ranking, and what is not ranked."""

import csv
import json
import math
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import dhkappa
from command import inside
from compare_oracle import BOTH, EXAMPLE, Expected, check
from dhkappa import compare, dh_kappa, simulate
from dhkappa.stats.compare import compare_rows
from expect import expect_error

Labels = dict[str, list[Any]]

DRAWN = simulate(300, labelers={"rule": 0.7, "llm": 0.85}, annotators=4, rng=1)
VOTES: list[list[Any]] = DRAWN.votes.tolist()
FULL: Labels = {name: labels.tolist() for name, labels in DRAWN.suggested.items()}


def only(labels: list[Any], items: Any) -> list[Any]:
    """Return the labels of some items."""
    kept = {*items}
    return [label if place in kept else None for place, label in enumerate(labels)]


def few(n: int = 5) -> list[Any]:
    """Return right labels for the first items on which all annotators agree."""
    sure = [place for place, row in enumerate(VOTES) if len({*row}) == 1][:n]
    return only([row[0] for row in VOTES], sure)


def test_a_labeler_with_few_labels_changes_nothing_for_the_others() -> None:
    found, two = compare(VOTES, {**FULL, "few": few()}), compare(VOTES, FULL)
    rows = {(row["labeler"], row["other"]): row for row in found.differences}
    (row,) = two.differences
    assert {**rows["rule", "llm"], "pvalue_holm": None} == {**row, "pvalue_holm": None}
    assert rows["rule", "llm"]["items"] == 300
    assert rows["rule", "few"]["items"] == rows["llm", "few"]["items"] == 5
    assert {name: found.kappas[name].exact for name in FULL} == {name: two.kappas[name].exact for name in FULL}
    assert found.kappas["few"].exact == dh_kappa(VOTES, few()).exact == 1
    assert (found.best, list(found.ranked)) == ("llm", ["rule", "llm"])
    assert found.not_ranked == {"few": "It labeled 5 of 300 items, and a ranking needs 150."}
    assert found.table().column("labeler") == ["llm", "rule", "few"]
    assert found.table().column("coverage") == [1, 1, 5 / 300]
    assert [note.code for note in found.notes] == ["different-items", "not-ranked", "few-discordant"]


@pytest.mark.parametrize("others", [["rule"], [], ["rule", "llm"]])
def test_a_labeler_with_five_labels_is_never_the_best(others: list[str]) -> None:
    """Also if others have the same five items, which would be the largest set."""
    labels = {"llm": FULL["llm"], **{name: FULL[name] for name in others}}
    found = compare(VOTES, {**labels, "one": few(), "two": few(), "three": few()})
    assert found.best == ("llm" if len(labels) > 1 else None)
    assert {"one", "two", "three"} <= {*found.not_ranked}


def test_two_labelers_that_share_few_items_are_not_ranked() -> None:
    found = compare(VOTES, {"few": few(), "llm": FULL["llm"]})
    assert found.best is None
    assert found.not_ranked == {
        "llm": "No other labeler labeled 150 items, as a ranking needs.",
        "few": "It labeled 5 of 300 items, and a ranking needs 150.",
    }
    assert found.kappas["llm"].n_items == 300
    assert found.table().column("labeler") == ["llm", "few"]


def test_labelers_of_two_halves() -> None:
    halves = {"first": only(FULL["llm"], range(150)), "second": only(FULL["llm"], range(150, 300))}
    found = compare(VOTES, halves)
    (row,) = found.differences
    assert (row["items"], row["discordant"], row["method"]) == (0, 0, None)
    assert row["reason"] == "No item has two votes and a label of both."
    assert all(math.isnan(row[name]) for name in ("difference", "se", "low", "high", "pvalue", "pvalue_holm"))
    assert found.best is None
    shared = "It shares at most 0 items with another labeler, and a ranking needs 75."
    assert found.not_ranked == dict.fromkeys(halves, shared)
    json.dumps(found.to_dict(), allow_nan=False)


def ranked(labels: Labels, **options: Any) -> tuple[list[str], int]:
    found = compare(VOTES, labels, **options)
    return list(found.ranked), max((kappa.n_items for kappa in found.ranked.values()), default=0)


def test_which_labelers_are_ranked() -> None:
    def llm(*places: int) -> list[Any]:
        return only(FULL["llm"], range(*places))

    # half of the items of the other are enough, one fewer is not
    assert ranked({"a": llm(300), "b": llm(150)}) == (["a", "b"], 150)
    assert ranked({"a": llm(300), "b": llm(149)}) == ([], 0)
    # each must have labeled half of what those before it share
    assert ranked({"a": llm(300), "b": llm(200), "c": llm(100, 300)}) == (["a", "b", "c"], 100)
    assert ranked({"a": llm(300), "b": llm(200), "c": llm(101, 300)}) == (["a", "b"], 200)
    # the largest set, not that of the labeler with most labels
    batch = {name: llm(160, 300) for name in "bcd"}
    assert ranked({"a": llm(150), **batch}) == (["b", "c", "d"], 140)
    assert ranked({**batch, "a": llm(150), "e": llm(150)}) == (["b", "c", "d"], 140)
    # of two sets of one size the one with more common items
    assert ranked({"a": llm(150), "b": llm(150), "c": llm(160, 300), "d": llm(160, 300)}) == (["a", "b"], 150)
    # of two that are equal the one with the first name, in any order
    assert ranked({"c": llm(150, 300), "a": llm(150), "b": llm(150), "d": llm(150, 300)}) == (["a", "b"], 150)
    # many labelers that each miss a few items are all ranked
    random = Random(1)
    some = {f"m{place}": only(FULL["llm"], random.sample(range(300), 270)) for place in range(20)}
    common = [i for i in range(300) if all(labels[i] is not None for labels in some.values())]
    assert ranked(some) == (list(some), len(common))
    # but 20 items must remain
    half = {f"m{place}": only(FULL["llm"], random.sample(range(300), 240)) for place in range(20)}
    names, n = ranked(half)
    assert 20 <= n < 40
    assert 2 < len(names) < 20


def test_a_labeler_that_did_not_fit_at_first() -> None:
    """c has labels for 90 of the 200 items that a and b share, but for 80 of the 100 that they share with d."""
    places = {"a": [*range(200)], "b": [*range(200)], "d": [*range(100), *range(200, 250)]}
    places["c"] = [*range(80), *range(100, 110), *range(250, 270)]
    labels = {name: only(FULL["llm"], kept) for name, kept in places.items()}
    assert ranked(labels) == (["a", "b", "d", "c"], 80)


def test_labelers_that_share_most_items_come_first() -> None:
    """a, b and c share 36 items. Each has 24 more, and shares 30 with another labeler that has few of the 36."""
    core = range(36)
    places = {name: [*core, *range(start, start + 24)] for name, start in (("a", 40), ("b", 70), ("c", 100))}
    places |= {f"with {name}": [*range(6), *kept[36:]] for name, kept in places.items()}
    labels = {name: only(FULL["llm"], kept) for name, kept in places.items()}
    assert ranked(labels) == (["a", "b", "c"], 36)


def test_drawn_swaps_have_a_seed() -> None:
    """Every item has the same influence, so 14 labels are swapped at random; in 2 of 2^14 ways they differ as much."""
    votes = [[1, 1], [3, 3]] * 8
    labels = {"a": [0, 4] * 8, "b": [2] * 14 + [None] * 2}

    def pvalues() -> list[float]:
        found = [compare(votes, labels, categories=range(5), weights="linear", rng=seed) for seed in range(8)]
        return [own.differences.column("pvalue")[0] for own in found]

    assert pvalues() == pvalues()
    assert len({*pvalues()}) > 1
    assert max(pvalues()) < 0.001


def test_majority_labels_on_common_items_are_noted() -> None:
    votes = [[*"aab"], [*"abb"], [*"aaa"], [*"bbb"]] * 10
    labels = {"majority": [*"abab"] * 10, "other": [*"aaab"] * 9 + [None] * 4}
    found = compare(votes, labels)
    [note] = [note for note in found.notes if note.code == "equals-majority"]
    assert note.text.startswith("The labels of 'majority' score exactly as high as majority labels.")


def test_reasons_have_the_numbers() -> None:
    def llm(*places: int) -> list[Any]:
        return only(FULL["llm"], range(*places))

    found = compare(VOTES, {"a": llm(300), "b": llm(200), "c": llm(120, 300), "d": llm(10)})
    assert list(found.ranked) == ["a", "b"]
    assert found.not_ranked == {
        "c": "It labeled 80 of the 200 items that the ranked labelers labeled, and a ranking needs 100.",
        "d": "It labeled 10 of 300 items, and a ranking needs 150.",
    }
    [note] = [note for note in found.notes if note.code == "not-ranked"]
    assert note.text.startswith("c is not ranked: it labeled 80 of the 200 items")
    many = compare(VOTES, {"a": llm(300), "b": llm(300), **{f"x{place}": llm(place, 9) for place in range(5)}})
    [note] = [note for note in many.notes if note.code == "not-ranked"]
    assert note.text.endswith("2 more labelers are not ranked.")


class TestStrata:
    STRATA = ("x",) * 100 + ("y",) * 200

    def test_a_pair_without_items_in_a_stratum(self) -> None:
        labels = {**FULL, "y only": only(FULL["llm"], range(100, 300)), "one": only(FULL["llm"], range(99, 300))}
        found = compare(VOTES, labels, strata=self.STRATA)
        rows = {(row["labeler"], row["other"]): row for row in found.differences}
        assert rows["rule", "llm"]["reason"] is None
        assert rows["rule", "y only"]["reason"] == "Stratum 'x' has no eligible item."
        assert rows["rule", "y only"]["items"] == 200
        different = sum(one != other for one, other in zip(FULL["rule"][100:], FULL["llm"][100:], strict=True))
        assert rows["rule", "y only"]["discordant"] == different
        assert math.isnan(rows["rule", "y only"]["difference"])
        assert rows["llm", "one"]["reason"] == "Stratum 'x' has one eligible item; its variance is unknown."
        assert found.best == "llm"
        assert found.not_ranked["y only"].endswith(
            "200 of the 300 items that the ranked labelers labeled, too few in a stratum."
        )
        assert found.kappas["y only"].reason == "Stratum 'x' has no eligible item."
        assert found.kappas["y only"].coverage == 200 / 300
        json.dumps(found.to_dict(), allow_nan=False)
        repr(found)

    def test_half_of_the_items_but_none_of_a_stratum(self) -> None:
        found = compare(VOTES, {**FULL, "half": only(FULL["llm"], range(100, 250))}, strata=self.STRATA)
        text = "It labeled 150 of the 300 items that the ranked labelers labeled, too few in a stratum."
        assert found.not_ranked == {"half": text}

    def test_two_items_of_a_stratum_are_enough(self) -> None:
        for first, names in ((98, ["rule", "llm", "most"]), (99, ["rule", "llm"])):
            found = compare(VOTES, {**FULL, "most": only(FULL["llm"], range(first, 300))}, strata=self.STRATA)
            assert list(found.ranked) == names

    def test_a_pool_has_the_items_of_all_labelers(self) -> None:
        labels = {"a": only(FULL["rule"], range(200)), "b": only(FULL["llm"], range(100, 300))}
        assert compare(VOTES, labels, pool=300).differences.column("items") == [100]
        with expect_error("pool-too-small"):
            compare(VOTES, labels, pool=299)

    def test_a_design_that_does_not_fit_the_items_is_an_error(self) -> None:
        labels = {**FULL, "few": few()}
        with expect_error("stratum-one-item"):
            compare(VOTES, labels, strata=["x", *["y"] * 299])
        with expect_error("pool-too-small"):
            compare(VOTES, labels, pool=10)


DESIGNS: dict[str, dict[str, Any]] = {
    "plain": {},
    "weights": {"weights": "linear"},
    "sample_weight": {"sample_weight": [0, 1, 2.5, 3] * 15},
    "strata": {"strata": ["x", "y", "y"] * 20},
    "pool": {"pool": 100},
    "strata and pool": {"strata": ["x", "y", "y"] * 20, "pool": {"x": 50, "y": 60}},
    "all": {"weights": "quadratic", "sample_weight": [1, 2] * 30, "strata": ["x", "y", "y"] * 20},
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", DESIGNS)
def test_a_pair_is_that_of_the_two_on_their_common_items(name: str, seed: int) -> None:
    """Items without both labels are removed by hand. Rows are equal to the last bit, and so are ranked kappas."""
    design, random = DESIGNS[name], Random(f"{name} {seed}")
    drawn = simulate(60, labelers=dict.fromkeys("abcde", 0.7), annotators=3, rng=seed)
    votes = [[vote if random.random() > 0.15 else None for vote in row] for row in drawn.votes.tolist()]
    gone = {"a": 0, "b": 0.1, "c": 0.3, "d": 0.6, "e": 0.3}
    labels = {who: [x if random.random() >= gone[who] else None for x in drawn.suggested[who].tolist()] for who in gone}
    labels["f"] = [None if x is None else random.choice("abc") for x in labels["c"]]  # the same items as c

    def by_hand(*names: str) -> dhkappa.Comparison:
        rows = [i for i in range(60) if all(labels[who][i] is not None for who in names)]
        options: dict[str, Any] = dict(design)
        options |= {key: [value[i] for i in rows] for key, value in design.items() if isinstance(value, list)}
        given = {who: [labels[who][i] for i in rows] for who in names}
        return compare([votes[i] for i in rows], given, categories=[*"abc"], rng=1, **options)

    found = compare(votes, labels, categories=[*"abc"], rng=1, **design)
    for row in found.differences:
        if row["reason"] is not None and "Stratum" in row["reason"]:
            with expect_error("stratum-one-item"):
                by_hand(row["labeler"], row["other"])
            continue
        hand = by_hand(row["labeler"], row["other"])
        (expected,) = hand.differences
        assert repr({**row, "pvalue_holm": 0}) == repr({**expected, "pvalue_holm": 0})
        assert row["items"] == hand.kappas[row["labeler"]].n_items > 0
    assert len(found.ranked) > 2
    hand = by_hand(*found.ranked)
    for who, kappa in found.ranked.items():
        assert kappa.exact == hand.kappas[who].exact
        assert (kappa.se, kappa.confidence_interval()) == (hand.kappas[who].se, hand.kappas[who].confidence_interval())
    assert found.best == hand.best
    for who in found.not_ranked:
        assert found.kappas[who].exact == dh_kappa(votes, labels[who], categories=[*"abc"], **design).exact
    for who, kappa in found.kappas.items():
        plain = {key: value for key, value in design.items() if key not in ("strata", "pool")}
        assert kappa.coverage == dh_kappa(votes, labels[who], categories=[*"abc"], **plain).coverage


def test_against_fractions() -> None:
    labels: Labels = {**BOTH, "C": [None, 1, 2, 2, None, 1], "D": [1, 2, None, None, None, None]}
    found = compare(EXAMPLE.votes, labels)
    assert list(found.not_ranked) == ["D"]
    check(found, Expected(EXAMPLE.votes, labels))


def test_labelers_with_the_same_items_are_compared_as_before() -> None:
    """Labels that are missing for all, or on items without votes, make no difference."""
    votes = [*VOTES, [None] * 4, ["a", None, None, None]]
    one = {"rule": [None, *FULL["rule"][1:], "a", None], "llm": [None, *FULL["llm"][1:], None, "b"]}
    found = compare(votes, {**one, "old": one["rule"]})
    same = compare(VOTES[1:], {"rule": FULL["rule"][1:], "llm": FULL["llm"][1:], "old": FULL["rule"][1:]})
    assert repr(found.differences.to_dicts()) == repr(same.differences.to_dicts())
    assert found.not_ranked == {}
    assert [note.code for note in found.notes] == ["items-excluded", "few-discordant"]


def test_one_pass_for_labelers_with_the_same_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two groups of ten labelers: one pass for each group, and one for the items that they share."""
    calls = []

    def counted(*given: Any) -> Any:
        calls.append(given)
        return compare_rows(*given)

    monkeypatch.setattr("dhkappa.stats.common_items.compare_rows", counted)
    labels = {f"a{place}": FULL["llm"] for place in range(10)}
    labels |= {f"b{place}": only(FULL["rule"], range(200)) for place in range(10)}
    assert len(compare(VOTES, labels).differences) == 190
    assert len(calls) == 3


class TestAudit:
    audit = dhkappa.audit(np.array(VOTES), {**FULL, "few": few()}, progress=False)

    def test_the_best_is_ranked(self) -> None:
        assert self.audit.ranking == ["llm", "rule", "few"]
        assert self.audit.groups == [["llm"], ["rule"]]
        assert self.audit.summary.startswith("llm is the best of 2 ranked labelers. ")
        assert self.audit.summary.endswith("few is not ranked: it labeled 5 of 300 items, and a ranking needs 150.")
        assert self.audit.to_dict()["ranking"] == [["llm"], ["rule"]]

    def test_coverage_is_beside_every_score(self) -> None:
        assert [row["coverage"] for row in self.audit.rows()] == [1, 1, 5 / 300]
        known = self.audit.to_dict()["labelers"]
        assert [known[name]["kappa"]["coverage"] for name in ("rule", "llm", "few")] == [1, 1, 5 / 300]
        assert self.audit.to_dict()["fleiss"]["coverage"] is None
        lines = self.audit.to_markdown().splitlines()
        heads, rows = next(line for line in lines if "coverage" in line), [line for line in lines if "| few |" in line]
        assert heads.endswith("| items | coverage |")
        assert rows[0].endswith("| 5 | 2% |")

    def test_the_ranking_is_for_common_items(self) -> None:
        """On its own easy items the labeler with gaps scores higher, on the same items lower."""
        easy = [place for place, row in enumerate(VOTES) if len({*row}) < 3 and max(map(row.count, row)) > 2]
        right = [max(row, key=row.count) for row in VOTES]
        worse = [label if place % 4 else "a" for place, label in enumerate(right)]
        better = [label if place % 5 else "b" for place, label in enumerate(right)]
        audit = dhkappa.audit(np.array(VOTES), {"better": better, "gaps": only(worse, easy)}, progress=False)
        assert audit.kappas["gaps"].value > audit.kappas["better"].value
        assert audit.groups[0][0] == audit.ranking[0] == "better"
        assert f"The ranking is for the {len(easy)} items that all of them labeled." in audit.summary

    def test_none_ranked(self) -> None:
        audit = dhkappa.audit(np.array(VOTES), {"few": few(), "llm": FULL["llm"]}, progress=False)
        assert audit.groups == []
        assert audit.ranking == ["llm", "few"]
        start = (
            "2 labelers cannot be ranked, because they share too few items. llm is on par with a typical annotator: "
        )
        assert audit.summary.startswith(start)

    def test_report(self, tmp_path: Path) -> None:
        for name in ("jinja2", "vl_convert"):
            pytest.importorskip(name)
        self.audit.to_html(tmp_path / "report.html")
        page = (tmp_path / "report.html").read_text("utf-8")
        assert "those that cannot be ranked or judged are last" in page
        assert "Paired differences in kappa, each for the items that both labeled" in page
        assert "few is not ranked: it labeled 5 of 300 items" in page
        assert ">coverage<" in page.replace("\n", "")
        assert "2%" in page


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, labels = tmp_path / "votes.csv", {**FULL, "few": few()}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *(f"suggested_{name}" for name in labels), *(f"ann_{place}" for place in range(4))])
        writer.writerows([i, *(own[i] for own in labels.values()), *row] for i, row in enumerate(VOTES))
    done = inside(capsys, "compare", str(path))
    text = done.stdout
    table = text.split("\nLabelers\n")[1].splitlines()
    assert table[0].split() == ["labeler", "kappa", "95%", "CI", "random", "majority", "items", "coverage"]
    assert [line.split()[0] for line in table[1:4]] == ["llm", "rule", "few"]
    assert [line.split()[-2:] for line in table[1:4]] == [["300", "100%"], ["300", "100%"], ["5", "2%"]]
    rows = text.split("Differences between labelers, each on the items that both labeled\n")[1].splitlines()
    assert rows[0].endswith("discordant  items")
    assert sorted(row.split()[-1] for row in rows[1:4]) == ["300", "5", "5"]
    assert "- few is not ranked: it labeled 5 of 300 items, and a ranking needs 150." in text
    scale = text.split("for comparison\n")[1].splitlines()
    assert [line.split()[0] for line in scale[:3]] == ["llm", "rule", "few"]
    done = inside(capsys, "audit", str(path))
    assert "llm is the best of 2 ranked labelers." in " ".join(done.stdout.split())
    assert "items  coverage\n" in done.stdout
    result = json.loads(inside(capsys, "compare", str(path), "--format", "json").stdout)["result"]
    assert result["not_ranked"] == {"few": "It labeled 5 of 300 items, and a ranking needs 150."}
    assert {name: kappa["coverage"] for name, kappa in result["kappas"].items()} == {
        "rule": 1,
        "llm": 1,
        "few": 5 / 300,
    }
    assert sorted(row["items"] for row in result["differences"]) == [5, 5, 300]
    done = inside(capsys, "compare", str(path), "--min-coverage", "0.9")
    assert done.returncode == 1
    done = inside(capsys, "compare", str(path), "--suggested", "rule,llm", "--min-coverage", "0.9")
    assert done.returncode == 0


def test_order_of_labelers_with_a_tie() -> None:
    """Each two share two of three items: which two are ranked depends on their names only."""
    votes = [["B", "B", "B"], ["R", "R", "R"], ["R", "R", "R"]]
    labels = {"rule": [None, "R", "R"], " ": ["B", "R", None], "llm": ["B", "G", "R"]}
    found = [
        {name: kappa.exact for name, kappa in compare(votes, {name: labels[name] for name in order}).kappas.items()}
        for order in permutations(labels)
    ]
    assert all(kappas == found[0] for kappas in found)
