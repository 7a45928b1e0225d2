"""Comparison of a labeler with each annotator, against loops over fractions and by invariances."""

import json
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import oracle
from dhkappa import simulate
from dhkappa.inputs.arrays import read_votes
from dhkappa.stats.annotators import MIN_ITEMS, compare_with_annotators
from dhkappa.stats.compare import AnnotatorComparison
from dhkappa.stats.intervals import KappaDifference, skewness
from expect import expect_error

F = Fraction
Votes = Sequence[Sequence[Hashable]]


def skew_of(phi: npt.NDArray[np.float64]) -> float:
    cubes, squares = (math.fsum(powers.tolist()) for powers in (phi * phi * phi, phi * phi))
    return skewness(cubes, squares)


def kappa_and_influence(
    items: Votes, labels: Sequence[Hashable], sample_weight: Sequence[Fraction]
) -> tuple[Fraction, list[Fraction], Fraction]:
    """Kappa from weighted means, its derivative by each item's weight, and E: the rules for products and quotients."""
    categories = {vote for item in items for vote in item} | set(labels)
    share = [weight / sum(sample_weight) for weight in sample_weight]

    def mean(values: Sequence[Fraction]) -> Fraction:
        return sum((p * value for p, value in zip(share, values, strict=True)), F(0))

    d = [
        sum(((1 if j == label else -1) * oracle.pair_share(item, j) for j in categories), F(0))
        for item, label in zip(items, labels, strict=True)
    ]
    c = {j: [oracle.vote_share(item, j) for item in items] for j in categories}
    q = {j: [F(label == j) for label in labels] for j in categories}
    D, C, L = mean(d), {j: mean(c[j]) for j in categories}, {j: mean(q[j]) for j in categories}
    E = sum((C[j] ** 2 * (2 * L[j] - 1) for j in categories), F(0))
    phi = []
    for i in range(len(items)):
        D_i = d[i] - D
        E_i = sum(
            (2 * C[j] * (c[j][i] - C[j]) * (2 * L[j] - 1) + C[j] ** 2 * 2 * (q[j][i] - L[j]) for j in categories),
            F(0),
        )
        phi.append(((D_i - E_i) * (1 - E) + (D - E) * E_i) / (1 - E) ** 2)
    return (D - E) / (1 - E), phi, E


@dataclass(frozen=True)
class Expected:
    items: list[int]
    kappas: list[tuple[Fraction, Fraction]]
    variances: list[Fraction]
    difference: Fraction
    variance: Fraction


def expected_comparison(votes: Votes, labels: Sequence[Hashable], sample_weight: Sequence[Fraction]) -> Expected:
    """The comparison, by loops."""
    sizes, kappas, variances, wholes = [], [], [], []
    moved: dict[int, Fraction] = {}
    for a in range(len(votes[0])):
        rows, others = [], []
        for i, item in enumerate(votes):
            rest = [vote for b, vote in enumerate(item) if b != a and vote is not None]
            if item[a] is not None and labels[i] is not None and len(rest) >= 2 and sample_weight[i]:
                rows.append(i)
                others.append(rest)
        w = [sample_weight[i] for i in rows]
        kappa_m, phi_m, _ = kappa_and_influence(others, [labels[i] for i in rows], w)
        kappa_a, phi_a, _ = kappa_and_influence(others, [votes[i][a] for i in rows], w)
        steps = [x * (m - p) for x, m, p in zip(w, phi_m, phi_a, strict=True)]
        sizes.append(len(rows))
        kappas.append((kappa_a, kappa_m))
        wholes.append(sum(w, F(0)))
        variances.append(F(len(rows), len(rows) - 1) * sum((s * s for s in steps), F(0)) / wholes[-1] ** 2)
        for i, step in zip(rows, steps, strict=True):
            moved[i] = moved.get(i, F(0)) + step
    T, n = sum(wholes, F(0)), len(moved)
    return Expected(
        items=sizes,
        kappas=kappas,
        variances=variances,
        difference=sum(((m - p) * x for (p, m), x in zip(kappas, wholes, strict=True)), F(0)) / T,
        variance=F(n, n - 1) * sum((s * s for s in moved.values()), F(0)) / T**2,
    )


def drawn(seed: int, n: int = 60, **options: Any) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]:
    found = simulate(n, annotators=4, accuracy=0.8, rng=seed, **options)
    labels = found.suggested["labeler"].copy()
    labels[::9] = None
    return found.votes, labels


@pytest.mark.parametrize(("seed", "weighted"), [(1, False), (2, False), (3, True), (4, True)])
def test_against_loops_over_fractions(seed: int, weighted: bool) -> None:
    votes, labels = drawn(seed, missing=0.2)
    sample_weight = [F(i % 5, 2) if weighted else F(1) for i in range(len(votes))]
    weight = np.array(sample_weight, np.float64) if weighted else None
    found = compare_with_annotators(read_votes(votes, {"llm": labels}, sample_weight=weight), "llm")
    expected = expected_comparison(votes.tolist(), labels.tolist(), sample_weight)
    assert found.table.column("items") == expected.items
    # both are the exact fractions, rounded once
    assert found.table.column("kappa_annotator") == [float(annotator) for annotator, _ in expected.kappas]
    assert found.table.column("kappa_labeler") == [float(labeler) for _, labeler in expected.kappas]
    # sums of tens of terms of size 1, so a few roundings of 1e-16 beside values of .01 at least
    assert found.table.column("se") == pytest.approx([math.sqrt(v) for v in expected.variances], rel=1e-12)
    assert found.difference == pytest.approx(float(expected.difference), abs=1e-14)
    assert found.se == pytest.approx(math.sqrt(expected.variance), rel=1e-12)
    assert found.matched == sum(m >= p for p, m in expected.kappas) / 4
    assert found.skipped == found.notes == ()
    assert found.reason is None


def test_without_missing_votes_kappas_are_those_of_the_oracle() -> None:
    votes, labels = drawn(7)
    found = compare_with_annotators(read_votes(votes, {"llm": labels}), "llm")
    for a, row in enumerate(found.table):
        rows = [i for i, label in enumerate(labels) if label is not None]
        others = np.delete(votes, a, axis=1)[rows].tolist()
        for name, labeled in (("kappa_annotator", votes[rows, a]), ("kappa_labeler", labels[rows])):
            exact = oracle.dh(others, labeled.tolist(), "abc").kappa
            assert exact is not None
            assert row[name] == float(exact)


def test_swapping_labeler_and_annotator_negates_the_difference() -> None:
    votes, labels = drawn(5)
    keep = labels != None  # noqa: E711 (element by element)
    votes, labels = votes[keep], labels[keep]
    swapped = votes.copy()
    swapped[:, 2] = labels
    one = compare_with_annotators(read_votes(votes, {"x": labels}), "x").table.to_dicts()[2]
    other = compare_with_annotators(read_votes(swapped, {"x": votes[:, 2]}), "x").table.to_dicts()[2]
    assert (one["kappa_annotator"], one["difference"]) == (other["kappa_labeler"], -other["difference"])
    # the same numbers with the other sign, rounded alike but for the order of a subtraction
    assert (one["se"], one["low"], one["high"]) == pytest.approx(
        (other["se"], -other["high"], -other["low"]), rel=1e-12
    )


def kish(weight: npt.NDArray[np.float64]) -> float:
    return float(weight.sum() ** 2 / (weight**2).sum())


class TestLimits:
    def test_against_half_an_item_added(self) -> None:
        psi = np.array([0.9, -1.1, 0.4, 0.2, -0.6, 0.7, -0.5, 0.1, 0.3, -0.4])
        n = len(psi)
        se = math.sqrt((psi**2).sum() / (n * (n - 1)))
        low, high = KappaDifference(0.1, se, skew_of(psi), n, n - 1, -2.5, 0.8).limits(0.9)
        t = stats.t.ppf(0.95, n - 1)
        for limit, added, sign in ((low, -2.5, -1), (high, 0.8, 1)):
            values, sample_weight = np.append(psi, added), np.append(np.ones(n), 0.5)
            mean = np.average(values, weights=sample_weight)
            squares = (sample_weight * (values - mean) ** 2).sum()
            cubes = (sample_weight * (values - mean) ** 3).sum()
            # The Cornish-Fisher term of the mean's skewness, only where it widens.
            skewed = max(0.0, sign * cubes / (squares * (n + 0.5)))
            away = t * math.sqrt(squares / ((n + 0.5) * (n - 0.5))) + (t**2 - 1) / 3 * skewed
            # psi adds up to 0, as influence values do; the rest is rounding
            assert limit == pytest.approx(0.1 + mean + sign * away, rel=1e-12)

    def test_where_nothing_moves_as_many_may_be_hidden_as_from_a_flawless_sample(self) -> None:
        low, high = KappaDifference(0.0, 0.0, 0.0, 50, 49, -2.0, 1.0).limits(0.95)
        hidden = 1 - 0.025 ** (1 / 50)
        # 1 - .95 is not .05 to the last bit
        assert (low, high) == pytest.approx((-2 * hidden, hidden), rel=1e-12)

    @given(st.floats(-0.5, 0.5), st.floats(0.01, 0.3), st.floats(-3, 3), st.integers(10, 500), st.floats(0.6, 3))
    def test_p_and_limits_agree(self, value: float, se: float, skew: float, n: int, reach: float) -> None:
        gap = KappaDifference(value, se, skew, n, n - 1, -reach, reach)
        p = float(gap.pvalue())
        assert 0 <= p <= 1
        for confidence_level, inside in ((1 - p - 1e-6, False), (1 - p + 1e-6, True)):
            if 0.7 < confidence_level < 1 - 1e-9:  # below, t is under 1, where skewness narrows
                low, high = gap.limits(confidence_level)
                assert (low <= 0 <= high) == inside

    @pytest.mark.parametrize("weighted", [False, True])
    def test_an_item_that_the_labeler_or_one_annotator_gets_wrong_is_added(self, weighted: bool) -> None:
        votes, labels = drawn(8, missing=0.2)
        weight = np.array([1.0 + 2 * (i % 3) if weighted else 1.0 for i in range(len(votes))])
        found = compare_with_annotators(
            read_votes(votes, {"llm": labels}, sample_weight=weight if weighted else None),
            "llm",
            confidence_level=0.8,
        )
        used: set[int] = set()
        reaches, wholes, pulls = [], [], np.zeros(len(votes))
        for a, row in enumerate(found.table):
            rows = [
                i
                for i, item in enumerate(votes)
                if item[a] is not None and labels[i] is not None and sum(vote is not None for vote in item) >= 3
            ]
            others = [[vote for b, vote in enumerate(votes[i]) if b != a and vote is not None] for i in rows]
            w = [F(weight[i]) for i in rows]
            chance = [
                kappa_and_influence(others, labeled, w)[2]
                for labeled in (labels[rows].tolist(), votes[rows, a].tolist())
            ]
            used |= set(rows)
            reaches.append(float(1 / (1 - chance[0]) + 1 / (1 - chance[1])))
            wholes.append(float(sum(w)))
            moves = [
                kappa_and_influence(others, labeled, w)[1]
                for labeled in (labels[rows].tolist(), votes[rows, a].tolist())
            ]
            pull = weight[rows] * np.array([float(m - p) for m, p in zip(*moves, strict=True)])
            pulls[rows] += weight[rows] * np.array([float(m - p) for m, p in zip(*moves, strict=True)])
            skew = skew_of(pull)
            gap = KappaDifference(
                row["difference"], row["se"], skew, kish(weight[rows]), len(rows) - 1, -reaches[a], reaches[a]
            )
            expected = gap.limits(0.8)
            # the same formula on numbers that differ by rounding; so below
            assert (row["low"], row["high"]) == pytest.approx(expected, rel=1e-11)
        reach, w_used = np.average(reaches, weights=wholes), weight[sorted(used)]
        ends = (-reach, reach * w_used.sum() / sum(wholes))
        skew = skew_of(pulls[sorted(used)])
        expected = KappaDifference(found.difference, found.se, skew, kish(w_used), len(used) - 1, *ends).limits(0.8)
        assert (found.low, found.high) == pytest.approx(expected, rel=1e-11)

    def test_no_difference_is_larger_than_the_range_of_kappa(self) -> None:
        assert KappaDifference(-0.9, 0.9, 0.0, 10, 9, -4.0, 4.0).limits(0.999) == (-27 / 13, 27 / 13)

    def test_a_higher_level_is_wider(self) -> None:
        item_votes = read_votes(*_labeled(drawn(9)))
        narrow, wide = (
            compare_with_annotators(item_votes, "llm", confidence_level) for confidence_level in (0.8, 0.99)
        )
        assert wide.low < narrow.low < narrow.difference < narrow.high < wide.high
        assert (narrow.confidence_level, wide.confidence_level) == (0.8, 0.99)

    def test_equal_weights_of_any_size_change_nothing(self) -> None:
        votes, given = _labeled(drawn(9))
        plain, weighted = (
            compare_with_annotators(read_votes(votes, given, sample_weight=w), "llm") for w in (None, np.full(60, 0.3))
        )
        assert repr(plain) == repr(weighted)
        assert plain.table.to_dicts() == weighted.table.to_dicts()


def _labeled(data: tuple[Any, Any]) -> tuple[Any, dict[str, Any]]:
    return data[0], {"llm": data[1]}


class TestAnnotatorsWhoCannotBeCompared:
    def found(self) -> AnnotatorComparison:
        """Annotator 2 has one item too few, annotator 3 sees others agree on one category, that they vote for too."""
        votes, labels = drawn(6, n=50, missing=0)
        labels[:] = np.where(labels == None, "a", labels)  # noqa: E711 (element by element)
        votes[MIN_ITEMS - 1 :, 2] = None
        votes[:30, 3] = None
        votes[30:, [0, 1, 3]] = "a"
        labels[30:] = "a"
        return compare_with_annotators(
            replace(read_votes(votes, {"llm": labels}), annotators=("Ann", "Bo", "<Cy>", "Di")), "llm"
        )

    def test_they_are_named_and_left_out(self) -> None:
        found = self.found()
        assert found.skipped == ("<Cy>", "Di")
        assert [note.code for note in found.notes] == ["annotators-few-items", "annotators-undefined"]
        assert "'<Cy>'" in found.notes[0].text
        assert "'Di'" in found.notes[1].text
        rows = found.table.to_dicts()
        assert [row["items"] for row in rows] == [29, 29, 9, 20]
        assert [math.isnan(row["difference"]) for row in rows] == [False, False, True, True]
        assert [row["reason"] is None for row in rows] == [True, True, False, False]
        assert found.difference == pytest.approx((rows[0]["difference"] + rows[1]["difference"]) / 2, rel=1e-14)
        assert found.n_items == 29

    def test_one_more_item_is_enough(self) -> None:
        votes, labels = drawn(6, n=50, missing=0)
        labels[:] = np.where(labels == None, "a", labels)  # noqa: E711 (element by element)
        votes[MIN_ITEMS:, 2] = None
        found = compare_with_annotators(read_votes(votes, {"llm": labels}), "llm")
        assert found.table.column("items")[2] == MIN_ITEMS
        assert found.skipped == ()

    def test_nobody(self) -> None:
        votes, labels = drawn(6)
        found = compare_with_annotators(read_votes(votes[:, :2], {"llm": labels}), "llm")
        assert found.skipped == (0, 1)
        assert all(map(math.isnan, (found.difference, found.se, found.low, found.high, found.matched)))
        assert found.reason
        assert "undefined" in repr(found)
        assert found.to_dict()["difference"] is None

    def test_a_copy_of_an_annotator(self) -> None:
        votes, _ = drawn(6)
        found = compare_with_annotators(read_votes(votes, {"copy": votes[:, 1]}), "copy")
        row = found.table.to_dicts()[1]
        assert row["difference"] == 0
        assert row["se"] == 0
        assert row["low"] < 0 < row["high"]
        assert row["reason"]
        assert found.matched >= 0.25  # it matches the annotator that it copies
        assert found.se > 0

    def test_all_alike(self) -> None:
        labels = ["a", "b"] * 10
        found = compare_with_annotators(read_votes(np.array([[label] * 4 for label in labels]), {"llm": labels}), "llm")
        assert (found.difference, found.matched) == (0, 1)
        assert found.se == 0
        assert found.low < 0 < found.high
        assert found.reason


class TestShown:
    def test_repr_and_html(self) -> None:
        found = TestAnnotatorsWhoCannotBeCompared().found()
        assert repr(found).endswith(" at 0.95 (29 items; kappa at least that of 1 of 2 annotators; 2 skipped)")
        shown = found._repr_html_()
        assert "&lt;Cy&gt;" in shown
        assert "<Cy>" not in shown
        assert "not compared" in shown

    def test_to_dict_is_json(self) -> None:
        found = TestAnnotatorsWhoCannotBeCompared().found()
        plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert plain["difference"] == found.difference
        assert plain["annotators"][2]["difference"] is None
        assert plain["annotators"][0]["kappa_annotator"] == found.table.column("kappa_annotator")[0]
        assert [note["code"] for note in plain["notes"]] == ["annotators-few-items", "annotators-undefined"]


def test_bad_confidence_level() -> None:
    votes, labels = drawn(1)
    with expect_error("invalid-confidence-level", "confidence_level"):
        compare_with_annotators(read_votes(votes, {"llm": labels}), "llm", confidence_level=95)


class TestEdges:
    def test_one_item_has_almost_all_the_weight(self) -> None:
        data = simulate(40, annotators=3, rng=1)
        votes = read_votes(data.votes, data.suggested, sample_weight=[1.0] * 39 + [1e300])
        found = compare_with_annotators(votes, "labeler")
        assert (found.n_items, found.skipped) == (0, (0, 1, 2))
        assert found.table.column("items") == [40] * 3
        assert all(found.table.column("reason"))
        assert [note.code for note in found.notes] == ["annotators-undefined"]

    def test_one_item_has_almost_all_the_weight_for_one_of_the_two(self) -> None:
        """On the heavy item all others vote a, and so does the labeler or the annotator: with C and L all a, E is 1."""
        data = simulate(40, annotators=3, rng=1)
        votes, labels = data.votes.copy(), data.suggested["labeler"].copy()
        for own, label in (("b", "a"), ("a", "b")):
            votes[-1], labels[-1] = [own, "a", "a"], label
            given_weight = [1.0] * 39 + [1e300]
            table = compare_with_annotators(read_votes(votes, {"x": labels}, sample_weight=given_weight), "x").table
            row = table.to_dicts()[0]
            assert (row["items"], row["reason"] is None) == (40, False)
            assert math.isnan(row["difference"])

    def test_a_pool_by_stratum_is_a_weight(self) -> None:
        data = simulate(60, annotators=3, rng=2)
        strata, pool = ["x"] * 20 + ["y"] * 40, {"x": 100, "y": 1000}
        weight = [5.0] * 20 + [25.0] * 40
        pooled = compare_with_annotators(read_votes(data.votes, data.suggested, strata=strata), "labeler", pool=pool)
        weighted = compare_with_annotators(read_votes(data.votes, data.suggested, sample_weight=weight), "labeler")
        plain = compare_with_annotators(read_votes(data.votes, data.suggested), "labeler")
        assert (pooled.difference, pooled.se, pooled.low) == (weighted.difference, weighted.se, weighted.low)
        assert pooled.difference != plain.difference

    @pytest.mark.parametrize(("n", "skipped"), [(9, (0, 1, 2)), (10, ())])
    def test_ten_items_are_enough(self, n: int, skipped: tuple[int, ...]) -> None:
        data = simulate(n, annotators=3, rng=1)
        found = compare_with_annotators(read_votes(data.votes, data.suggested), "labeler")
        assert found.skipped == skipped
        assert (found.reason is None) == (not skipped)
        assert [note.code for note in found.notes] == (["annotators-few-items"] if skipped else [])

    def test_kappa_of_the_labeler_is_undefined(self) -> None:
        """All others vote a, and so does the labeler: its kappa is undefined, that of annotator 0 is not."""
        votes = np.array([["b" if i < 5 else "a", "a", "a"] for i in range(12)], object)
        row = compare_with_annotators(read_votes(votes, {"llm": ["a"] * 12}), "llm").table.to_dicts()[0]
        assert (row["items"], "same category" in row["reason"]) == (12, True)

    @pytest.mark.parametrize("heavy", [10**5, 10**7, 10**9])
    def test_one_item_outweighs_the_others(self, heavy: int) -> None:
        """1 - E is about 1 / heavy for both: the formulas that keep its digits are used from 10^-5 on."""
        votes, labels = drawn(3, n=30)
        labels[::9], votes[7], labels[7] = "a", "a", "a"
        sample_weight = [F(heavy if i == 7 else 1 + i % 3) for i in range(30)]
        weight = np.array(sample_weight, np.float64)
        found = compare_with_annotators(read_votes(votes, {"llm": labels}, sample_weight=weight), "llm")
        expected = expected_comparison(votes.tolist(), labels.tolist(), sample_weight)
        assert found.skipped == ()
        assert found.table.column("kappa_annotator") == [float(annotator) for annotator, _ in expected.kappas]
        assert found.table.column("kappa_labeler") == [float(labeler) for _, labeler in expected.kappas]
        # The last digits of d and kappa are lost where both are close to 1.
        assert found.table.column("se") == pytest.approx([math.sqrt(v) for v in expected.variances], rel=1e-9)
        assert found.se == pytest.approx(math.sqrt(expected.variance), rel=1e-9)

    def test_the_weights_of_one_annotator_are_too_small_for_floats(self) -> None:
        data = simulate(60, annotators=4, rng=1)
        votes = data.votes.copy()
        votes[:30, 3] = None
        sample_weight = [1e300] * 30 + [1e-300] * 30
        found = compare_with_annotators(read_votes(votes, data.suggested, sample_weight=sample_weight), "labeler")
        assert found.skipped == (3,)
        assert found.table.column("items") == [60, 60, 60, 30]
        assert [reason is None for reason in found.table.column("reason")] == [True, True, True, False]
        assert [note.code for note in found.notes] == ["annotators-undefined"]

    def test_title_and_skipped(self) -> None:
        data = simulate(30, annotators=3, rng=1)
        votes = data.votes.copy()
        votes[:25, 1] = None
        found = compare_with_annotators(
            replace(read_votes(votes, data.suggested), annotators=(4, 5, 6)), "labeler", 0.9
        )
        assert found.table.title == "labeler and each annotator, scored by the others, 90% intervals"
        assert found.to_dict()["skipped"] == list(found.skipped) != []
