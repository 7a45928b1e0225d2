"""Comparison of labelers against exact fractions, and its invariances."""

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from compare_oracle import BOTH, EXAMPLE, Design, Expected, Several, check, influences, rows_of, seen, several
from dhkappa import Tally, compare, dh_kappa, simulate, tally
from dhkappa.core import grouping
from dhkappa.core.item_table import ItemTable, item_table_of_votes
from dhkappa.inputs.arrays import read_votes
from dhkappa.stats import compare as module

F = Fraction


def item_table_of(votes: Any, labels: Any, **options: Any) -> ItemTable:
    return item_table_of_votes(read_votes(votes, labels, **options))


class TestAgainstFractions:
    def test_published_example(self) -> None:
        expected = Expected(EXAMPLE.votes, BOTH)
        pair = expected.pair("A", "B")
        assert pair is not None
        assert expected.kappas == {"A": F(247, 544), "B": F(409, 544)}
        assert (pair.difference, pair.variance) == (F(-81, 272), F(516632823, 6842040320))
        found = compare(EXAMPLE.votes, BOTH)
        check(found, expected)
        (row,) = found.differences
        assert row["difference"] == -81 / 272
        assert row["se"] == pytest.approx(math.sqrt(516632823 / 6842040320), rel=1e-14)  # a few ulp
        assert (row["pvalue"], row["method"], row["discordant"]) == (0.5, "swap", 2)
        assert found.best == "B"
        assert found.table().column("labeler") == ["B", "A"]

    @settings(max_examples=25)
    @given(several(max_items=16))
    def test_plain(self, given: Several) -> None:
        check(compare(given.votes, given.suggested, rng=1), Expected(given.data.votes, given.labels))

    @settings(max_examples=40)
    @given(several(names=("one", "two"), max_items=16))
    def test_designs(self, given: Several) -> None:
        given = given.kept()
        design = given.design()
        found = compare(given.votes, given.suggested, **design.arguments, rng=1)
        check(found, Expected(given.data.votes, given.labels, design))

    @pytest.mark.parametrize("kind", ["plain", "sample_weight", "pool", "strata", "strata and pool"])
    def test_each_design_with_many_discordant_items(self, kind: str) -> None:
        """Random data seldom have what each formula needs: many discordant items, and a variance that is not 0."""
        drawn = simulate(60, annotators=3, labelers={"a": 0.6, "b": 0.8}, rng=2)
        strata = ["x" if i % 3 else "y" for i in range(60)]
        design = {
            "plain": Design(),
            "sample_weight": Design(sample_weight=[1 + i % 4 for i in range(60)]),
            "pool": Design(pool=80),
            "strata": Design(strata=strata),
            "strata and pool": Design(strata=strata, pool={"x": 50, "y": 400}),
        }[kind]
        expected = Expected(drawn.votes.tolist(), {who: list(given) for who, given in drawn.suggested.items()}, design)
        pair = expected.pair("a", "b")
        assert pair is not None
        assert pair.variance
        assert pair.discordant >= 10
        found = compare(drawn.votes, drawn.suggested, **design.arguments)
        assert found.differences.column("method") == ["t"]
        check(found, expected)

    @pytest.mark.parametrize("confidence_level", [0.9, 0.95, 0.99])
    @pytest.mark.parametrize("accuracy", [0.8, 0.95])
    def test_limits_are_those_of_a_sample_with_half_an_item_more(
        self, confidence_level: float, accuracy: float
    ) -> None:
        drawn = simulate(60, annotators=3, labelers={"a": 0.6, "b": accuracy}, rng=2)
        votes, labels = drawn.votes.tolist(), {who: list(given) for who, given in drawn.suggested.items()}
        found = compare(votes, labels, confidence_level=confidence_level)
        n, half = 60, 0.5
        share = [F(1, n)] * n
        phi = [influences(votes, labels[who], share) for who in "ab"]
        move = [float(a - b) for a, b in zip(*phi, strict=True)]
        reach = sum(1 / (1 - float(kappa.parts.E)) for kappa in found.kappas.values() if kappa.parts)
        t = stats.t.ppf((1 + confidence_level) / 2, n - 1)
        (row,) = found.differences
        for name, sign in (("low", -1), ("high", 1)):
            values, sample_weight = [*move, sign * reach], [1.0] * n + [half]
            mean = (sum(move) + half * sign * reach) / (n + half)
            squares, cubes = (
                sum(w * (value - mean) ** power for value, w in zip(values, sample_weight, strict=True))
                for power in (2, 3)
            )
            skewed = max(0, sign * cubes / squares / (n + half))
            spread = math.sqrt(squares / ((n + half) * (n + half - 1)))
            limit = row["difference"] + mean + sign * (t * spread + (t**2 - 1) / 3 * skewed)
            # The quantile of t is computed in another way here, to about 1e-10.
            assert row[name] == pytest.approx(limit, rel=1e-9)
        assert found.confidence_level == confidence_level

    @pytest.mark.parametrize("accuracy", [0.55, 0.9, 0.95])
    def test_p_is_one_less_the_level_at_which_a_limit_is_0(self, accuracy: float) -> None:
        drawn = simulate(80, annotators=3, labelers={"a": 0.7, "b": accuracy}, rng=2)
        (row,) = compare(drawn.votes, drawn.suggested).differences
        assert row["method"] == "t"
        assert 1e-9 < row["pvalue"] < 1
        (other,) = compare(drawn.votes, drawn.suggested, confidence_level=1 - row["pvalue"]).differences
        # 1 - p keeps 1e-16 of p, and a quantile follows it.
        assert min(abs(other["low"]), abs(other["high"])) == pytest.approx(0, abs=1e-6)

    def test_a_whole_pool_is_known_for_sure(self) -> None:
        drawn = simulate(60, annotators=3, labelers={"a": 0.6, "b": 0.8}, rng=2)
        widths = []
        for pool in (60, 61, 70, 100, 10**6, None):
            (row,) = compare(drawn.votes, drawn.suggested, pool=pool).differences
            widths.append(row["high"] - row["low"])
            if pool == 60:
                assert (row["se"], row["pvalue"], row["low"], row["high"]) == (
                    0,
                    0,
                    row["difference"],
                    row["difference"],
                )
        assert widths == sorted(widths)
        assert widths[0] == 0


class TestLabelSwap:
    @settings(max_examples=40)
    @given(several(names=("one", "two"), max_items=7))
    def test_p_value_against_all_swaps(self, given: Several) -> None:
        given = given.kept()
        sample_weight = (
            [given.random.choice([1, 2, 3]) for _ in range(given.n)] if given.random.random() < 0.5 else None
        )
        expected = Expected(given.data.votes, given.labels, Design(sample_weight=sample_weight))
        for row in compare(given.votes, given.suggested, sample_weight=sample_weight).differences:
            if not math.isnan(row["pvalue"]):
                assert row["pvalue"] == float(expected.swap_p("one", "two"))

    def test_a_swap_with_undefined_kappa_counts_as_far(self) -> None:
        votes, labels = [[1, 1], [1, 1]], {"A": [1, 2], "B": [2, 1]}
        expected = Expected(votes, labels)
        assert expected.kappa([1, 1]) is None
        assert compare(votes, labels).differences.column("pvalue") == [float(expected.swap_p("A", "B"))] == [1.0]

    @pytest.mark.parametrize("weighted", [False, True])
    def test_drawn_ways_are_near_all_ways(self, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        drawn = simulate(25, annotators=3, labelers={"a": 0.9, "b": 0.65}, rng=8)
        sample_weight = [1 + i % 3 for i in range(25)] if weighted else None
        (row,) = compare(drawn.votes, drawn.suggested, sample_weight=sample_weight).differences
        assert 5 <= row["discordant"] <= 9
        assert 0.02 < row["pvalue"] < 0.98
        monkeypatch.setattr(module, "_MAX_ENUMERATED", 0)
        (other,) = compare(drawn.votes, drawn.suggested, sample_weight=sample_weight, rng=1).differences
        (again,) = compare(drawn.votes, drawn.suggested, sample_weight=sample_weight, rng=1).differences
        # Five standard errors of a share of 9,999 draws.
        assert other["pvalue"] == pytest.approx(
            row["pvalue"], abs=5 * math.sqrt(row["pvalue"] * (1 - row["pvalue"]) / 9_999)
        )
        assert other["pvalue"] != row["pvalue"]
        assert other["pvalue"] == again["pvalue"]
        assert other["pvalue"] * 10_000 == pytest.approx(round(other["pvalue"] * 10_000))

    @pytest.mark.parametrize("n", [11, 15])
    def test_many_discordant_items_without_a_standard_error(self, n: int) -> None:
        """All items are alike, so only the number of swaps matters: all 2^n ways by binomial coefficients."""
        votes, first, second = [[1, 1, 2, 3]] * n, [1] * n, [2] * n
        expected = Expected(votes, {"A": first, "B": second})
        assert expected.kappas == {"A": F(1, 21), "B": F(1, 15)}
        gap, far = F(1, 15) - F(1, 21), 0
        for k in range(n + 1):
            a, b = expected.kappa([2] * k + [1] * (n - k)), expected.kappa([1] * k + [2] * (n - k))
            assert a is not None
            assert b is not None
            far += math.comb(n, k) * (abs(a - b) >= gap)
        p = far / 2**n
        found = compare(votes, {"A": first, "B": second}, rng=1)
        (row,) = found.differences
        assert (row["se"], row["method"], row["discordant"]) == (0, "swap", n)
        if n <= 12:
            assert row["pvalue"] == p
        else:  # (1 + share) / 10,000: five standard errors, and one draw more
            assert row["pvalue"] == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / 9_999) + 1e-4)
        assert [note.code for note in found.notes] == ["equals-majority", "no-standard-error"]  # of A, by its labels


class TestInvariance:
    @settings(max_examples=25)
    @given(several(), st.booleans())
    def test_order_of_items(self, given: Several, weighted: bool) -> None:
        rows = given.random.sample(range(given.n), given.n)
        other = given.take(rows)
        sample_weight = np.array([given.random.choice([0.1, 1, 3.7]) for _ in range(given.n)]) if weighted else None
        moved = None if sample_weight is None else sample_weight[rows]
        one = compare(given.votes, given.suggested, sample_weight=sample_weight)
        assert seen(one) == seen(compare(other.votes, other.suggested, sample_weight=moved))

    @settings(max_examples=25)
    @given(several())
    def test_order_of_labelers(self, given: Several) -> None:
        found = compare(given.votes, given.suggested)
        turned = compare(given.votes, dict(reversed(given.suggested.items())))
        other = {(row["other"], row["labeler"]): row for row in turned.differences}
        for row in found.differences:
            twin = other[row["labeler"], row["other"]]
            # To the bit; + 0.0 turns -0.0 into 0.0.
            for name, mirrored in (("difference", "difference"), ("low", "high"), ("high", "low")):
                assert repr(row[name] + 0.0) == repr(-twin[mirrored] + 0.0)
            for name in ("se", "pvalue", "pvalue_holm", "method", "discordant"):
                assert repr(row[name]) == repr(twin[name])
        assert {who: repr(k.to_dict()) for who, k in found.kappas.items()} == {
            who: repr(k.to_dict()) for who, k in turned.kappas.items()
        }

    @settings(max_examples=30)
    @given(several())
    def test_a_tally_and_sums_of_tallies(self, given: Several) -> None:
        found = seen(compare(given.votes, given.suggested, rng=1))
        whole = tally(given.votes, given.suggested)
        assert seen(compare(whole, rng=1)) == found
        assert seen(compare(whole, ["rule", " ", "llm <🦙>"], rng=1)) == found
        cuts = sorted(given.random.randint(0, given.n) for _ in range(2))
        parts = [given.take(range(a, b)) for a, b in zip([0, *cuts], [*cuts, given.n], strict=True)]
        summed = sum((tally(part.votes, part.suggested) for part in parts), Tally())
        assert seen(compare(summed, rng=1)) == found

    @settings(max_examples=30)
    @given(several(names=("one", "two")))
    def test_a_tally_with_a_design(self, given: Several) -> None:
        given = given.kept()
        design = given.design()
        whole = tally(given.votes, given.suggested, sample_weight=design.sample_weight, strata=design.strata)
        found = compare(given.votes, given.suggested, **design.arguments, rng=1)
        assert seen(compare(whole, pool=design.pool, rng=1)) == seen(found)

    @settings(max_examples=25)
    @given(several())
    def test_counts(self, given: Several) -> None:
        categories = given.data.written_categories
        found = compare(given.votes, given.suggested, categories=categories, rng=1)
        assert seen(compare(None, given.suggested, counts=given.data.counts, categories=categories, rng=1)) == seen(
            found
        )

    @settings(max_examples=25)
    @given(several())
    def test_an_array_filled_up_with_missing_votes(self, given: Several) -> None:
        assert seen(compare(given.data.object_votes, given.suggested, rng=1)) == seen(
            compare(given.votes, given.suggested, rng=1)
        )

    def test_one_hot_labels_beside_counts(self) -> None:
        hot = {who: np.eye(3, dtype=int)[np.array(labels) - 1] for who, labels in BOTH.items()}
        found = compare(None, hot, counts=EXAMPLE.counts)
        assert rows_of(found) == rows_of(compare(EXAMPLE.votes, BOTH))

    def test_keys_beyond_64_bits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = np.random.default_rng(1)
        votes = rng.integers(0, 300, (40, 3))[rng.integers(0, 40, 120)]
        votes[:40] = votes[:40, :1]
        labels = {who: np.where(rng.random(120) < 0.7, votes[:, 0], rng.integers(0, 300, 120)) for who in "ab"}
        strata, sample_weight = rng.integers(0, 2, 120), rng.integers(1, 9, 120)
        before = seen(compare(votes, labels, strata=strata, sample_weight=sample_weight, rng=1))
        monkeypatch.setattr(grouping, "WORD", 0)
        assert seen(compare(votes, labels, strata=strata, sample_weight=sample_weight, rng=1)) == before

    def test_many_categories(self) -> None:
        rng = np.random.default_rng(1)
        kinds = rng.integers(0, 300, (40, 3))
        kinds[::2] = kinds[::2, :1]
        votes = kinds[np.arange(60) % 40]
        labels = {who: np.where(rng.random(60) < 0.8, votes[:, 0], rng.integers(0, 300, 60)).tolist() for who in "ab"}
        found = compare(votes, labels, categories=range(300))
        cells = item_table_of(votes, labels, categories=tuple(range(300)))
        assert len(cells.votes) * 300**2 > 1 << 16
        check(found, Expected(votes.tolist(), labels))

    def test_names_of_categories_do_not_matter(self) -> None:
        drawn = simulate(60, annotators=3, labelers={"a": 0.6, "b": 0.8}, rng=2)
        found = rows_of(compare(drawn.votes, drawn.suggested))
        for names in ({"a": 1, "b": 2, "c": 3}, {"a": "🐈", "b": "🐕 <b>", "c": "鰻"}, {"a": -5, "b": 0, "c": 2**40}):
            votes = [[names[vote] for vote in item] for item in drawn.votes.tolist()]
            labels = {who: [names[label] for label in given] for who, given in drawn.suggested.items()}
            assert rows_of(compare(votes, labels)) == found


class TestManyLabelers:
    names = tuple("abcdefg")

    def test_each_pair_as_if_alone(self) -> None:
        drawn = simulate(150, labelers={who: 0.6 + 0.05 * i for i, who in enumerate(self.names)}, rng=1)
        groups = module._groups(item_table_of(drawn.votes, drawn.suggested))
        assert len(groups) > 2
        assert len(groups[0]) > 1
        found = compare(drawn.votes, drawn.suggested)
        together = rows_of(found)
        assert list(together) == list(combinations(self.names, 2))
        for pair, row in together.items():
            alone = compare(drawn.votes, {who: drawn.suggested[who] for who in pair})
            assert rows_of(alone) == {pair: row}
        for who in self.names:
            assert found.kappas[who].exact == dh_kappa(drawn.votes, drawn.suggested[who]).exact
            assert found.kappas[who].se == dh_kappa(drawn.votes, drawn.suggested[who]).se

    @pytest.mark.parametrize("m", [2, 3, 5, 20])
    @pytest.mark.parametrize("number", [2, 3, 4, 7, 10])
    def test_every_labeler_is_in_a_group_of_one_size(self, m: int, number: int) -> None:
        names = [f"l{i}" for i in range(number)]
        votes = [[j, j] for j in range(m)]
        groups = module._groups(item_table_of(votes, {who: list(range(m)) for who in names}))
        size = len(groups[0])
        assert {len(group) for group in groups} == {size}
        assert list(dict.fromkeys(name for group in groups for name in group)) == names
        assert len(groups) == max(math.ceil(number / size), 2)
        assert size == 1 or m ** (2 * size + 1) <= 1 << 16

    @pytest.mark.parametrize("kind", ["plain", "weights", "strata", "pool", "tally", "missing", "wide"])
    def test_every_way_to_count_gives_the_same_bits(self, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Dense tables of one or several labelers, in blocks of any size, or distinct rows."""
        rng, n = np.random.default_rng(3), 90
        drawn = simulate(n, annotators=3, labelers={who: 0.6 + 0.06 * i for i, who in enumerate(self.names)}, rng=2)
        votes, labels = drawn.votes.tolist(), {who: given.tolist() for who, given in drawn.suggested.items()}
        labels["c"] = [*labels["b"][:85], *labels["a"][85:]]  # a label-swap test
        labels["d"] = labels["c"]
        options: dict[str, Any] = {}
        if kind == "weights":
            options = {"sample_weight": rng.choice([0, 1, 2.5], n)}
        if kind == "strata":
            options = {"strata": rng.choice(["x", "y"], n), "pool": {"x": 100, "y": 1000}}
        if kind == "pool":
            options = {"pool": 2 * n}
        if kind == "missing":
            votes[3], votes[5], labels["g"][8] = [None] * 3, ["a", None, None], None
        if kind == "wide":
            options = {"categories": [*"abcdefghij"]}
        data = [tally(votes, labels)] if kind == "tally" else [votes, labels]
        found = seen(compare(*data, **options, rng=1))
        ways = [("_FEW_CELLS", 0), ("_MAX_CELLS", 0), ("_CELLS_PER_BLOCK", 1), ("_CELLS_PER_BLOCK", 1 << 30)]
        for name, value in [*ways, ("_MAX_GROUPS", 0), ("_MAX_GROUPS", 1 << 20)]:
            with monkeypatch.context() as patch:
                patch.setattr(module, name, value)
                patch.setattr(module, "_FEW_CELLS", 0 if name == "_MAX_CELLS" else module._FEW_CELLS)
                assert seen(compare(*data, **options, rng=1)) == found

    def test_order_of_random_numbers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Groups of two: pairs of the first two groups, of the first and the third, of the second and the third."""
        monkeypatch.setattr(module, "_MAX_ENUMERATED", 0)
        monkeypatch.setattr(module, "_MAX_GROUPS", 10 * 3**4)
        order = ["01 02 03 12 13 23", "04 05 14 15 45", "06 16", "24 25 34 35", "26 36", "46 56"]
        drawn, rng = simulate(25, annotators=3, labelers={"x": 0.8}, rng=8), np.random.default_rng(1)
        labels = {str(who): drawn.suggested["x"].copy() for who in range(7)}
        for codes in labels.values():
            codes[rng.choice(25, 4, replace=False)] = "a"
        assert [len(group) for group in module._groups(item_table_of(drawn.votes, labels))] == [2] * 4
        source, found = np.random.default_rng(5), compare(drawn.votes, labels, rng=5).differences
        assert set(found.column("method")) == {"swap"}
        assert len(set(found.column("pvalue"))) > 10
        pvalues = {row["labeler"] + row["other"]: row["pvalue"] for row in found}
        for pair in " ".join(order).split():
            (row,) = compare(drawn.votes, {who: labels[who] for who in pair}, rng=source).differences
            assert pvalues.pop(pair) == row["pvalue"]
        assert not pvalues

    def test_numbers_of_items_beyond_floats(self) -> None:
        drawn = simulate(40, labelers={who: 0.6 + 0.05 * i for i, who in enumerate("abcd")}, rng=1)
        whole = tally(drawn.votes, drawn.suggested)
        for _ in range(55):
            whole = whole + whole
        for row in compare(whole).differences:
            one, other = drawn.suggested[row["labeler"]], drawn.suggested[row["other"]]
            assert row["discordant"] == int((one != other).sum()) << 55
            assert row["difference"] == float(
                dh_kappa(drawn.votes, one).exact - dh_kappa(drawn.votes, other).exact  # type: ignore[operator]
            )
