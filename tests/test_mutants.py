"""What mutants of the statistics rooms have lived through: small things that no other test would miss.

Oracles are the worked examples of docs/methods.md, fractions computed by hand, closed forms and scipy.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import betaincinv, expit, logit, stdtrit

import oracle
from dhkappa import DataError, Interval, Kappa, compare, dh_kappa, fleiss_kappa, tally
from dhkappa.data.ballots import read_ballots
from dhkappa.stats.design import basis_of, leave_one_vote, unseen_items, variance
from dhkappa.stats.influence import extremes, influence, is_rounding, rest, room_for, standard_error, sum_of_squares
from dhkappa.stats.intervals import (
    LEAST,
    Basis,
    Gap,
    beta_interval,
    check_level,
    logit_interval,
    plain_basis,
    skewness,
    wald_interval,
)
from dhkappa.stats.kappa import estimate_fleiss
from dhkappa.stats.ordinal import ordinal_estimate, weight_matrix, weights_of
from dhkappa.stats.quantiles import _near_normal, beta_quantile
from dhkappa.stats.sample import Dropped, Stratum, item_sample, sample_of
from dhkappa.stats.sums import Spread, _by_category, _dot, _times, sums
from dhkappa.stats.terms import Terms, divided, item_weights, terms
from strategies import from_counts

F = Fraction
EXAMPLE = from_counts("300/1 210/1 030/2 111/2 003/3 030/3")


def example(**given: Any) -> Kappa:
    return dh_kappa(EXAMPLE.votes, EXAMPLE.suggested, **given)


def refused(message: str, **given: Any) -> None:
    """Expect the whole sentence, word for word."""
    with pytest.raises(DataError) as error:
        example(**given)
    assert str(error.value) == message


class TestKappa:
    def test_parts_show_the_letters_of_the_paper(self) -> None:
        shown = "Parts(R=0.5556, S=0.1667, C_E=0.1193, C_F=0.2387, D=0.3889, E=-0.1193)"
        assert repr(example().parts) == shown

    def test_shares_are_floats_unless_asked_for(self) -> None:
        parts = example().parts
        assert parts is not None
        assert parts.shares() == ([1 / 3, 4 / 9, 2 / 9], [1 / 3] * 3)
        assert {type(share) for shares in parts.shares() for share in shares} == {float}
        assert parts.shares(exact=True) == ([F(1, 3), F(4, 9), F(2, 9)], [F(1, 3)] * 3)

    def test_fleiss_kappa_knows_that_it_is_the_panel_with_itself(self) -> None:
        total = sums(sample_of(tally(EXAMPLE.votes, EXAMPLE.suggested), labeled=False), labeled=False)
        assert estimate_fleiss(total, (1, 2, 3)).fleiss == oracle.fleiss(EXAMPLE.votes).kappa == F(59, 104)
        assert fleiss_kappa(EXAMPLE.votes).fleiss == 59 / 104


STRATA = ["x", "x", "x", "y", "y", "y"]


class TestSample:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"panel": "open"}, "panel must be one of 'fixed', 'drawn': got 'open'."),
            ({"panel": None}, "panel must be one of 'fixed', 'drawn': got None."),
            (
                {"pool": {"x": 10}},
                "pool gives a size for each stratum, but strata= is absent: pass the stratum of each item.",
            ),
            (
                {"pool": 10, "weights": [1, 2, 3, 4, 5, 6]},
                "pool= as one size is for items drawn with equal chances: with weights leave it out, or pass strata= "
                "and the size of each stratum.",
            ),
            (
                {"strata": STRATA, "pool": 10},
                "pool must map each stratum to its size, such as {'x': 1000}: got 10.",
            ),
            (
                {"strata": STRATA, "pool": [1, 2]},
                "pool must map each stratum to its size, such as {'x': 1000}: got a list.",
            ),
            (
                {"strata": STRATA, "pool": {"x": 9, "y": 9}, "weights": [1, 2, 3, 4, 5, 6]},
                "weights= and pool= both say how much the items of a stratum count: pass one of them.",
            ),
            (
                {"strata": ["x"] * 5 + ["y"]},
                "stratum 'y' has one eligible item, which cannot show how far items differ: "
                "join it with another stratum.",
            ),
            (
                {"strata": ["x"] * 5 + ["y"], "pool": {"x": 9, "y": 2}},
                "stratum 'y' has one eligible item, which cannot show how far items differ: "
                "join it with another stratum.",
            ),
            (
                {"strata": STRATA, "pool": {"x": 9, "y": 9, "z": 3}},
                "pool names 1 stratum without items in the data ('z'): the sample cannot speak for them; "
                "join them with others, or leave them out.",
            ),
            (
                {"strata": STRATA, "pool": {"x": 9, "y": 9, "z": 3, "u": 1, "v": 0, "w": 1, "t": 1}},
                "pool names 4 strata without items in the data ('z', 'u', 'w', ...): the sample cannot speak for "
                "them; join them with others, or leave them out.",
            ),
            (
                {"strata": STRATA, "pool": {"x": 9, "y": 9, "z": True}},
                "pool of stratum 'z' must be a whole number of items: got True.",
            ),
            ({"pool": 7.5}, "pool must be a whole number of items: got 7.5."),
            ({"pool": "7"}, "pool must be a whole number of items: got '7'."),
            ({"pool": -1}, "pool must be a whole number of items: got -1."),
            (
                {"strata": STRATA, "pool": {"x": 9, "y": None}},
                "pool of stratum 'y' must be a whole number of items: got None.",
            ),
            (
                {"pool": 5},
                "pool holds 5 items but the sample has 6: pass the number of items in the whole data set that the "
                "sample was drawn from.",
            ),
            (
                {"strata": STRATA, "pool": {"x": 9, "y": 2}},
                "pool of stratum 'y' holds 2 items but the sample has 3: pass the number of items in the whole data "
                "set that the sample was drawn from.",
            ),
            ({"strata": STRATA, "pool": {}}, "pool has no size for stratum 'x': it names none."),
            ({"strata": STRATA, "pool": {"x": 9}}, "pool has no size for stratum 'y': it names 'x'."),
        ],
    )
    def test_sentences(self, given: dict[str, Any], message: str) -> None:
        refused(message, **given)

    def test_sentences_on_single_votes(self) -> None:
        with pytest.raises(DataError) as error:
            dh_kappa([[1, 1, 1], [1, 2], [1, 2]], [1, 1, 1], pool=9, panel="drawn")
        assert str(error.value) == (
            "panel='drawn' needs three votes on every item, and 2 items have two: leave such items out, "
            "or pass panel='fixed'."
        )
        empty = "stratum 'y' has no eligible item, so the sample cannot speak for it: join it with another stratum, "
        for pool in (None, {"x": 3, "y": 3}):
            with pytest.raises(DataError) as error:
                dh_kappa([[1, 1], [1, 1], [2]], [1, 1, 1], strata=["x", "x", "y"], pool=pool)
            assert str(error.value) == empty + "or leave its items out."
        labelers = dict.fromkeys(("l0", "l1", "l2", "l3", "l4", "l5", "l6", "l7", "l8", "l9", "l10"), EXAMPLE.suggested)
        with pytest.raises(DataError) as error:
            item_sample(read_ballots(EXAMPLE.votes, labelers), "rule")
        named = ", ".join(f"'l{i}'" for i in range(10))
        assert str(error.value) == f"labeler 'rule' is not in the data. Labelers: {named}, ...."

    def test_sizes_and_weights_of_items(self) -> None:
        """Mass is what a stratum's items stand for, 9/3 and 30/3, in the least whole units."""
        sample = example(strata=STRATA, pool={"x": 9, "y": 30.0, "z": 0})._sample
        assert sample.strata == (Stratum("x", 3, 9), Stratum("y", 3, 30))
        assert sorted((sample.mass / sample.patterns.items).tolist()) == [3, 3, 3, 10, 10, 10]
        assert [part.fraction for part in sample.strata] == [F(1, 3), F(1, 10)]
        assert sample.n_effective == pytest.approx(39**2 / (3 * 9 + 3 * 100))
        assert example(weights=[2, 4, 6, 8, 10, 12.0])._sample.mass.sum() == 21
        assert not example(strata=STRATA, pool={"x": 9, "y": 9})._sample.weighted
        for heavy in (2**61, 2**65):
            huge = example(weights=[1, 1, 1, 1, 1, float(heavy)])._sample
            assert sorted(huge.mass.tolist()) == [1, 1, 1, 1, 1, heavy]

    def test_items_of_a_labeler_keep_weights_strata_and_pool(self) -> None:
        votes = [*EXAMPLE.votes, [1, 1], [1]]
        labels = [*EXAMPLE.suggested, None, 1]
        given: dict[str, Any] = {"strata": [*STRATA, "x", "y"]}
        sample, places = item_sample(read_ballots(votes, {"rule": labels}, **given), "rule", {"x": 9, "y": 30})
        assert sample.strata == (Stratum("x", 3, 9), Stratum("y", 3, 30))
        assert (sample.stratum.tolist(), places.tolist()) == ([0, 0, 0, 1, 1, 1], [0, 1, 2, 3, 4, 5])
        assert sample.mass.tolist() == [3, 3, 3, 10, 10, 10]
        assert sample.dropped == Dropped(one_vote=1, no_label=1)
        weighted, _ = item_sample(read_ballots(votes, {"rule": labels}, weights=[1, 2, 3, 0, 5, 6, 7, 8]), "rule")
        assert weighted.mass.tolist() == [1, 2, 3, 5, 6]
        assert weighted.dropped == Dropped(one_vote=1, no_label=1, no_weight=1)
        assert weighted.dropped.why() == "1 with one vote, 1 with no suggested label, 1 with weight 0"
        assert Dropped(no_votes=1234).why() == "1,234 with no votes"
        assert Dropped(1, 2, 3, 4).total == 10

    def test_designed_is_whatever_is_more_than_chance(self) -> None:
        found = [
            example(**given)._sample.designed
            for given in ({}, {"strata": STRATA}, {"pool": 20}, {"weights": [1, 1, 1, 1, 1, 2]}, {"weights": [3] * 6})
        ]
        assert found == [False, True, True, True, False]

    def test_the_panel_goes_with_the_sample(self) -> None:
        fixed, drawn = example(pool=20)._sample, example(pool=20, panel="drawn")._sample
        assert (fixed.panel, drawn.panel) == ("fixed", "drawn")
        assert (fixed.other_votes, drawn.other_votes) == (False, True)

    def test_strata_keep_the_same_pattern_apart(self) -> None:
        sample = dh_kappa([[1, 1], [1, 1], [2, 1], [1, 1], [1, 1]], [1] * 5, strata=["x", "x", "x", "y", "y"])._sample
        assert sample.merged() is sample
        assert sorted(sample.stratum.tolist()) == [0, 0, 1]

    def test_merging_items_merges_their_strata(self) -> None:
        ballots = read_ballots([[1, 1], [1, 2], [1, 1], [1, 1], [2]], {"rule": [1, 1, 1, 2, 1]})
        sample, places = item_sample(ballots, "rule")
        assert places.tolist() == [0, 1, 2, 3]
        merged = sample.merged()
        assert sorted(merged.patterns.items.tolist()) == [1, 1, 2]
        assert merged.stratum.tolist() == [0, 0, 0]
        assert not merged.weighted

    def test_remarks_go_with_the_sample(self) -> None:
        votes = tally(EXAMPLE.votes, EXAMPLE.suggested)
        votes._remarks = ("Half of it was skipped.",)
        assert sample_of(votes).remarks == votes.remarks
        assert dh_kappa(votes).notes[1].to_dict() == {"code": "source", "text": "Half of it was skipped."}


Counted = Sequence[tuple[int, Sequence[Hashable], Hashable]]


def sums_by_hand(rows: Counted, categories: Sequence[Hashable]) -> dict[str, Any]:
    """Add up over (number of items, votes, label) in whole numbers, by counting pairs."""
    lengths = sorted({len(votes) for _, votes, _ in rows})
    pairs_of = {N: len(list(combinations(range(N), 2))) for N in lengths}
    vote_unit, pair_unit = math.lcm(*lengths), math.lcm(*pairs_of.values())
    found: dict[str, Any] = {name: [0] * len(categories) for name in ("votes", "pairs", "labels", "plurality")}
    found |= dict.fromkeys(("n", "n_votes", "on_label", "on_plurality", "perfect"), 0)
    for number, votes, label in rows:
        top = max(categories, key=list(votes).count)
        part = pair_unit // pairs_of[len(votes)]
        found["n"] += number
        found["n_votes"] += number * len(votes)
        found["labels"][categories.index(label)] += number
        found["plurality"][categories.index(top)] += number
        found["perfect"] += number * (set(votes) == {label})
        for vote in votes:
            found["votes"][categories.index(vote)] += number * vote_unit // len(votes)
        for one, other in combinations(votes, 2):
            if one == other:
                found["pairs"][categories.index(one)] += number * part
                found["on_label"] += number * part * (one == label)
                found["on_plurality"] += number * part * (one == top)
    shares: dict[int, list[tuple[int, F]]] = {N: [] for N in lengths}
    for number, votes, _ in rows:
        shares[len(votes)].append((number, F(sum(a == b for a, b in combinations(votes, 2)), pairs_of[len(votes)])))
    found["spreads"] = []
    for N, listed in shares.items():
        n = sum(number for number, _ in listed)
        mean = sum(number * share for number, share in listed) / n
        variance = sum(number * (share - mean) ** 2 for number, share in listed) / n
        found["spreads"].append(Spread(N, n, float(mean), float(variance)))
    return found | {"vote_unit": vote_unit, "pair_unit": pair_unit, "spreads": tuple(found["spreads"])}


ROWS = [
    (1, "aaa", "a"),
    (2, "bb", "b"),
    (3, "abbb", "b"),
    (1, "abcc", "a"),
    (4, "cb", "b"),
    (2, "ccccc", "c"),
    (1, "ca", "c"),
    (3, "abc", "b"),
]


ADDED = ("n", "n_votes", "votes", "pairs", "labels", "plurality", "on_label", "on_plurality", "perfect")


class TestSums:
    @pytest.mark.parametrize("times", [1, 2**40, 2**52 + 1, 2**57 - 1])
    def test_against_counting_pairs(self, times: int) -> None:
        whole = tally([], [], categories=list("abc"))
        for number, votes, label in ROWS:
            part = tally([list(votes)], [label], categories=list("abc"))
            for bit in f"{number * times:b}"[::-1]:
                whole = whole + part if bit == "1" else whole
                part = part + part
        found = sums(sample_of(whole))
        expected = sums_by_hand([(number * times, votes, label) for number, votes, label in ROWS], list("abc"))
        assert {name: getattr(found, name) for name in expected} == expected
        assert all(type(number) is int for number in [*found.votes, *found.plurality, found.perfect, found.on_label])

    def test_many_patterns_add_up_like_their_halves(self) -> None:
        """Patterns are worked on in blocks of 65,536; a half of these is one block."""
        draw = np.random.default_rng(1)
        votes, labels = draw.integers(0, 60, (80_000, 3)), draw.integers(0, 60, 80_000)
        votes[::10] = labels[::10, None]
        found = [
            sums(sample_of(tally(votes[part], labels[part], categories=range(60))))
            for part in (slice(None), slice(40_000), slice(40_000, None))
        ]
        assert len(tally(votes, labels).patterns) > 65_536
        whole, *halves = ({name: np.array(getattr(one, name)) for name in ADDED} for one in found)
        for name in ADDED:
            assert whole[name].tolist() == (halves[0][name] + halves[1][name]).tolist()
            assert whole[name].any()
        (spread,), squares = found[0].spreads, [part.spreads[0].variance + part.spreads[0].mean ** 2 for part in found]
        assert squares[0] == pytest.approx((squares[1] + squares[2]) / 2, rel=1e-12)
        assert (spread.n_items, spread.n_votes) == (80_000, 3)

    def test_items_count_by_their_weights_only_if_asked(self) -> None:
        sample = example(weights=[1, 2, 3, 4, 5, 6])._sample
        assert sums(sample).n == 6
        assert sums(sample, weighted=True).n == 21
        assert sums(sample) != sums(sample, weighted=True)

    @pytest.mark.parametrize(
        ("left", "right"),
        [([2], [3]), ([1, 1], [5, 7]), ([2**32, 1], [2**31, 2**31]), ([2**62], [2]), ([2**40, 3], [2**25, 1])],
    )
    def test_products_beyond_64_bits(self, left: list[int], right: list[int]) -> None:
        one, other = np.array(left), np.array(right)
        assert _times(one, other).tolist() == [a * b for a, b in zip(left, right, strict=True)]
        assert _dot(one, other) == sum(a * b for a, b in zip(left, right, strict=True))

    def test_sums_beyond_64_bits_of_products_that_fit(self) -> None:
        assert _dot(np.full(2, 2**31), np.full(2, 2**31)) == 2**63
        assert _dot(np.full(3, 2**31), np.full(3, 2**31)) == 3 * 2**62

    @pytest.mark.parametrize("weights", [[2**53 - 1, 2, 1], [2**53 - 1, 2], [2**62, 2**62], [2**60 + 1, 5]])
    def test_sums_beyond_the_digits_of_floats(self, weights: list[int]) -> None:
        code = np.zeros(len(weights), np.int64)
        assert _by_category(code, np.array(weights), 2).tolist() == [sum(weights), 0]


def known(kappa: Kappa, exact: bool = True) -> Terms:
    assert kappa.parts is not None
    return terms(kappa.sample, kappa.parts, exact)


class TestTerms:
    """Items of the example, by hand: (label, votes by category) -> c, g, t and d."""

    ITEMS: ClassVar[dict[tuple[int, ...], tuple[list[F], list[F], F, F]]] = {
        (1, 3, 0, 0): ([F(1)], [F(1)], F(1), F(1)),
        (1, 2, 1, 0): ([F(2, 3), F(1, 3)], [F(1, 3), F(0)], F(1, 3), F(1, 3)),
        (2, 0, 3, 0): ([F(1)], [F(1)], F(1), F(1)),
        (2, 1, 1, 1): ([F(1, 3)] * 3, [F(0)] * 3, F(0), F(0)),
        (3, 0, 0, 3): ([F(1)], [F(1)], F(1), F(1)),
        (3, 0, 3, 0): ([F(1)], [F(1)], F(1), F(-1)),
    }

    @pytest.mark.parametrize("exact", [True, False])
    def test_of_each_item(self, exact: bool) -> None:
        found = known(example(), exact)
        number = F if exact else float
        table = found.patterns
        assert len(table) == 6
        for k, label in enumerate(table.suggested.tolist()):
            row = slice(table.start[k], table.start[k + 1])
            votes = [0, 0, 0]
            for code, count in zip(table.code[row].tolist(), table.votes[row].tolist(), strict=True):
                votes[code] = count
            c, g, t, d = self.ITEMS[label + 1, *votes]
            # One division each: the nearest float, or the fraction itself.
            assert found.c[row].tolist() == [number(share) for share in c]
            assert found.g[row].tolist() == [number(share) for share in g]
            assert (found.t[k], found.d[k]) == (number(t), number(d))
            assert found.dense(found.c)[k].tolist() == [number(F(vote, 3)) for vote in votes]
        assert found.C.tolist() == [number(share) for share in (F(1, 3), F(4, 9), F(2, 9))]
        assert found.L.tolist() == [number(F(1, 3))] * 3
        letters = (found.D, found.E, found.C_E, found.kappa)
        assert letters == tuple(map(number, (F(7, 18), F(-29, 243), F(29, 243), F(247, 544))))
        assert {isinstance(value, number) for value in (*letters, *found.c.tolist(), *found.L.tolist())} == {True}
        assert found.row_sums(found.c).tolist() == [1] * 6
        assert (found.n, found.weight.tolist()) == (6, [1] * 6)
        assert terms(example().sample, example().parts or pytest.fail("none")).c.dtype == np.float64

    def test_weights_add_up_to_the_number_of_items(self) -> None:
        kappa = example(weights=[1, 2, 3, 4, 5, 6])
        assert sorted(known(kappa).weight.tolist()) == [F(6 * w, 21) for w in range(1, 7)]
        assert sorted(known(kappa, exact=False).weight.tolist()) == [6 * w / 21 for w in range(1, 7)]
        assert sorted(item_weights(kappa.sample).tolist()) == [6 * w / 21 for w in range(1, 7)]
        assert item_weights(kappa.sample).dtype == item_weights(example().sample).dtype == np.float64
        by_hand = sum(w * self.ITEMS[key][3] for w, key in zip(range(1, 7), self.ITEMS, strict=True)) / 21
        assert known(kappa).mean(known(kappa).d) == known(kappa).D == by_hand

    def test_fleiss_has_no_labels(self) -> None:
        found = known(fleiss_kappa(EXAMPLE.votes))
        assert len(found.L) == 0
        assert found.d.tolist() == found.t.tolist()
        assert found.n == 6

    def test_pairs_beyond_the_digits_of_floats(self) -> None:
        counts = [[2**29 + 1, 2**30 + 2], [1, 3]]
        found = known(dh_kappa(counts=counts, suggested=["a", "b"], categories=["a", "b"]))
        every = [F(math.comb(number, 2), math.comb(sum(row), 2)) for row in counts for number in row]
        assert sorted(found.g.tolist()) == sorted(every)
        assert sorted(found.d.tolist()) == sorted([every[0] - every[1], every[3] - every[2]])

    def test_division_of_whole_numbers_of_any_size(self) -> None:
        top, bottom = np.array([[1, 2**70], [3, 0]], object), np.array([[3, 2**71], [4, 5]], object)
        exact, rounded = divided(top, bottom, True), divided(top, bottom, False)
        assert exact.tolist() == [[F(1, 3), F(1, 2)], [F(3, 4), F(0)]]
        assert rounded.tolist() == [[1 / 3, 0.5], [0.75, 0.0]]
        assert rounded.dtype == np.float64


def near_certain(labeled: bool = True) -> tuple[Terms, Terms]:
    """One item of a hundred million is odd, so that 1 - E is too small for the plain formula; in both numbers."""
    votes, labels = tally([["a", "a"]], ["a"]), tally([["a", "b"]], ["b"])
    for _ in range(27):
        votes = votes + votes
    whole = votes + labels
    kappa = dh_kappa(whole) if labeled else fleiss_kappa(whole)
    return known(kappa), known(kappa, exact=False)


class TestInfluence:
    @pytest.mark.parametrize("labeled", [True, False])
    def test_near_certainty_against_the_plain_formula_in_fractions(self, labeled: bool) -> None:
        exact, floats = near_certain(labeled)
        C, L, E, code = exact.C, exact.L, exact.E, exact.patterns.code
        assert 0 < 1 - E < 1e-6
        if labeled:
            eps = exact.row_sums((C * (2 * L - 1))[code] * exact.c) + C[exact.suggested] ** 2 - E - exact.C_E
        else:
            eps = exact.row_sums(C[code] * exact.c) - E
        plain = ((exact.d - exact.D) - (1 - exact.kappa) * 2 * eps) / (1 - E)
        assert influence(exact).tolist() == plain.tolist()
        for one, value, number in zip(influence(floats), plain, exact.items.tolist(), strict=True):
            # About ten roundings; for the odd item they are roundings of parts as large as 1 / (1 - E).
            assert one == pytest.approx(float(value), rel=1e-12 if number > 1 else 1e-7)
        assert room_for(floats) == pytest.approx(float(1 - E), rel=1e-14)
        assert room_for(exact) == 1 - E

    def test_extremes_near_certainty(self) -> None:
        exact, floats = near_certain()
        found, close = extremes(exact), extremes(floats)
        assert found.label.tolist() == close.label.tolist() == [0, 1]
        assert close.low.tolist() == pytest.approx([float(value) for value in found.low], rel=1e-12)
        assert close.high.tolist() == pytest.approx([float(value) for value in found.high], rel=1e-12)

    def test_votes_for_another_label_may_raise_kappa_most(self) -> None:
        """Where labels are worse than random: all votes 2 on an item with label 0, rather than all votes 0."""
        found = known(dh_kappa([[0, 0], [2, 2], [2, 2]], [1, 0, 0]))
        far = extremes(found)
        assert far.label.tolist() == [0, 1, 2]
        for place, j in enumerate(far.label.tolist()):
            every = []
            for v in range(3):
                eps = 2 * (found.C[v] * (2 * found.L[v] - 1) + found.C[j] ** 2 - found.E - found.C_E)
                every.append(((1 if v == j else -1) - found.D - (1 - found.kappa) * eps) / (1 - found.E))
            assert (far.low[place], far.high[place]) == (min(every), max(every))
            assert (every.index(max(every)) == j) == (j != 0)

    def test_room_has_the_same_bits_in_any_order_of_categories(self) -> None:
        draw = np.random.default_rng(4)
        votes, labels = draw.integers(0, 150, (500, 3)), draw.integers(0, 150, 500)
        rooms = {
            room_for(known(dh_kappa(votes, labels, categories=draw.permutation(150).tolist()), exact=False))
            for _ in range(8)
        }
        assert len(rooms) == 1

    def test_nothing_is_left_of_a_float(self) -> None:
        _, floats = near_certain()
        lost = replace(floats, C=np.array([1.0, 0.0]), L=np.array([1.0, 0.0]), E=1.0)
        assert np.isnan(influence(lost)).tolist() == [True] * len(lost.items)
        assert np.isnan(extremes(lost).low).all()
        assert np.isnan(extremes(lost).high).all()

    def test_rest_of_a_whole(self) -> None:
        assert rest(np.array([F(1, 6), F(1, 2), F(1, 3)], object)).tolist() == [F(5, 6), F(1, 2), F(2, 3)]
        assert rest(np.array([1.0, 2.0**-99, 2.0**-98])).tolist() == [3 * 2.0**-99, 1.0, 1.0]
        assert rest(np.array([])).tolist() == []

    def test_rounding_is_no_spread(self) -> None:
        assert is_rounding(4e-24, 4)
        assert not is_rounding(4.1e-24, 4)
        phi, items = np.array([1e-13, -1e-13]), np.array([1, 1])
        assert sum_of_squares(phi, items) == 0
        assert sum_of_squares(np.array([1.0, -2.0]), np.array([2, 3])) == 14
        assert standard_error(6.0, 3) == 1
        assert standard_error(8.0, 2) == 2
        assert math.isnan(standard_error(6.0, 1))


class TestEstimators:
    @pytest.mark.parametrize(
        ("scored", "reason"),
        [
            (lambda: dh_kappa([], []), "the data hold no items."),
            (lambda: fleiss_kappa([]), "the data hold no items."),
            (lambda: fleiss_kappa([[1], [2]]), "no item has two votes (2 items: 2 with one vote)."),
            (
                lambda: dh_kappa([[1], [], [1, 2]], [1, 1, None]),
                "no item has two votes and a suggested label "
                "(3 items: 1 with no votes, 1 with one vote, 1 with no suggested label).",
            ),
            (
                lambda: dh_kappa([[1, 1], [1], [1, 2]], [None, 1, 1], weights=[1, 1, 0]),
                "no item has two votes and a suggested label and a weight "
                "(3 items: 1 with one vote, 1 with no suggested label, 1 with weight 0).",
            ),
            (lambda: fleiss_kappa([[1, 1], [1, 1]]), "every vote is the same category, so agreement is certain."),
            (
                lambda: dh_kappa([[1, 1], [1, 1]], [1, 1]),
                "every vote and every suggested label is the same category, so agreement is certain.",
            ),
            (
                lambda: dh_kappa([[1, 2], [2, 1]], [1, 2], ordinal=[[1, 1], [1, 1]], categories=[1, 2]),
                "every category that occurs has weight 1 to every other.",
            ),
            (
                lambda: dh_kappa([[1, 1]], [1], ordinal="linear", categories=[1, 2, 3]),
                "every vote and every suggested label is the same category, so agreement is certain.",
            ),
        ],
    )
    def test_undefined_kappas_say_why(self, scored: Callable[[], Kappa], reason: str) -> None:
        kappa = scored()
        assert kappa.reason == reason
        assert kappa.exact is None
        assert all(map(math.isnan, (kappa.value, kappa.floor, kappa.ceiling, kappa.se)))
        assert (kappa.parts is None) == (kappa.n_items == 0)

    def test_undefined_kappas_keep_their_names(self) -> None:
        assert (fleiss_kappa([]).metric, dh_kappa([], []).metric) == ("fleiss", "dh")
        assert dh_kappa([[1, 1]], [1], ordinal="linear", categories=[1, 2]).metric == "ordinal"

    def test_weighted_fleiss_is_that_of_items_that_occur_as_often(self) -> None:
        often = [1, 2, 1, 3, 1, 1]
        weighted = fleiss_kappa(EXAMPLE.votes, weights=often)
        repeated = [item for item, times in zip(EXAMPLE.votes, often, strict=True) for _ in range(times)]
        assert weighted.exact == oracle.fleiss(repeated).kappa
        assert weighted.parts is not None
        assert weighted.parts.L == {}

    def test_ordinal_kappa_may_fall_below_the_plain_one(self) -> None:
        """Where neighbours are nearly the same and the ends are not, the square roots of 1 - w are no distances."""
        weights = [[1, 0.99, 0], [0.99, 1, 0.99], [0, 0.99, 1]]
        kappa = dh_kappa([[1, 2, 2], [3, 3, 2], [1, 1, 2]], [1, 3, 2], ordinal=weights, categories=[1, 2, 3])
        assert kappa.parts is not None
        assert kappa._basis is not None
        assert kappa._basis.bottom == pytest.approx(1 - 2 / (1 - float(kappa.parts.E)), rel=1e-12)
        assert kappa._basis.bottom < LEAST

    def test_what_each_kappa_carries(self) -> None:
        plain, panel = example(), fleiss_kappa(EXAMPLE.votes)
        assert (plain.metric, plain.exact, plain.reason) == ("dh", F(247, 544), None)
        assert (plain.floor, plain.fleiss) == (-59 / 544, 59 / 104)
        assert (plain.n_items, plain.n_votes, plain.dropped) == (6, 18, Dropped())
        assert (panel.metric, panel.exact, panel.value, panel.reason) == ("fleiss", F(59, 104), 59 / 104, None)
        assert math.isnan(panel.floor)
        assert math.isnan(panel.ceiling)

    def test_ordinal_kappa_by_hand(self) -> None:
        """Votes 1 2 3, 3 3 2 and 1 1 1 with labels 1, 3 and 2; w is 1, 1/2 and 0 for distances 0, 1 and 2."""
        kappa = dh_kappa([[1, 2, 3], [3, 3, 2], [1, 1, 1]], [1, 3, 2], ordinal="linear", categories=[1, 2, 3])
        assert kappa.parts is not None
        # A pair counts w_xy (w_xl + w_yl - 1): (1/2 (1 + 1/2 - 1) + 0 + 1/2 (1/2 + 0 - 1)) / 3 = 0 on the first item,
        # (1 (1 + 1 - 1) + 2 1/2 (1 + 1/2 - 1)) / 3 = 1/2 on the second, 1 (1/2 + 1/2 - 1) = 0 on the third.
        # C = (4, 2, 3)/9, wC = (5, 11/2, 4)/9 and 2 wL - 1 = (0, 1/3, 0): E = 2 11/2 1/3 / 81.
        letters = kappa.parts.D, kappa.parts.E
        assert letters == (F(1, 6), F(11, 243))
        assert kappa.exact == (F(1, 6) - F(11, 243)) / (1 - F(11, 243)) == F(59, 464)
        assert kappa.metric == "ordinal"
        assert math.isnan(kappa.floor)
        assert math.isnan(kappa.ceiling)
        # Pairs agree by 1/3, 2/3 and 1; by chance by (4 5 + 2 11/2 + 3 4)/81 = 43/81.
        assert kappa.fleiss == float((F(2, 3) - F(43, 81)) / (1 - F(43, 81)))
        assert [note.code for note in kappa.notes] == ["few-items"]
        assert 0 < kappa.se < 1

    def test_ordinal_kappa_is_for_votes_as_they_are(self) -> None:
        refused(
            "panel='drawn' is for the kappa without ordinal weights: leave out one of them.",
            ordinal="linear",
            categories=[1, 2, 3],
            pool=20,
            panel="drawn",
        )


def psi(found: Terms, votes: Sequence[int], label: int) -> F:
    """The part of an item's influence that its votes decide, from its definition."""
    c = [F(list(votes).count(j), len(votes)) for j in range(len(found.C))]
    pairs = list(combinations(votes, 2))
    d = F(sum((1 if one == label else -1) * (one == other) for one, other in pairs), len(pairs))
    pull = sum(C * (2 * L - 1) * share for C, L, share in zip(found.C, found.L, c, strict=True))
    return F((d - 2 * (1 - found.kappa) * pull) / (1 - found.E))


def phi_by_item(found: Terms, votes: Sequence[Sequence[int]], labels: Sequence[int]) -> list[F]:
    """Influence of each item, looked up by its label and votes, which are numbers from 1 on."""
    table, phi = found.patterns, influence(found)
    by_key = {}
    for k, label in enumerate(table.suggested.tolist()):
        row = slice(table.start[k], table.start[k + 1])
        by_key[label + 1, tuple(np.repeat(table.code[row] + 1, table.votes[row]).tolist())] = phi[k]
    return [by_key[label, tuple(sorted(item))] for item, label in zip(votes, labels, strict=True)]


def variance_by_hand(kappa: Kappa, drawn: bool) -> tuple[F, F]:
    """docs/methods.md, item by item: SE^2, and the same with pools without end."""
    found = known(kappa)
    phi, table, whole = influence(found), found.patterns, F(sum(found.weight.tolist()))
    value = endless = F(0)
    for place, part in enumerate(found.sample.strata):
        z, v = [], []
        for k in np.flatnonzero(found.sample.stratum == place).tolist():
            number, row = int(table.items[k]), slice(table.start[k], table.start[k + 1])
            w = F(found.weight[k]) / number / whole
            votes = np.repeat(table.code[row], table.votes[row]).tolist()
            less = [psi(found, votes[:a] + votes[a + 1 :], int(table.suggested[k])) for a in range(len(votes) * drawn)]
            middle = sum(less, F(0)) / len(votes)
            jackknife = F(len(votes) - 1, len(votes)) * sum((one - middle) ** 2 for one in less)
            z += [w * phi[k]] * number
            v += [w**2 * jackknife] * number
        n = len(z)
        if n > 1:
            spread = F(n, n - 1) * sum((one - sum(z) / n) ** 2 for one in z)
            endless += spread
            value += (1 - part.fraction) * spread
        value += part.fraction * sum(v)
    return value, endless


class TestDesign:
    LABELS = (1, 1, 2, 2, 3, 3, 1, 2, 1, 1, 2)
    VOTES = ("1112", "112", "222", "123", "333", "222", "111", "213", "1112", "112", "233")

    @pytest.mark.parametrize(
        "given",
        [
            {},
            {"pool": 30},
            {"pool": 30, "panel": "drawn"},
            {"weights": [1, 2, 3, 1, 2, 3, 1, 2, 1, 2, 4]},
            {"strata": list("xxxyyyxyxxx")},
            {"strata": list("xxxyyyxyxxx"), "pool": {"x": 20, "y": 5}, "panel": "drawn"},
            {"strata": list("xxxxxxxyxxy")},
            {"strata": list("xxxxxxxxxxy"), "pool": {"x": 20, "y": 1}, "panel": "drawn"},
        ],
    )
    def test_variance_item_by_item(self, given: dict[str, Any]) -> None:
        kappa = dh_kappa([[int(vote) for vote in item] for item in self.VOTES], self.LABELS, **given)
        found = known(kappa)
        assert found.items.max() > 1 or "weights" in given
        spread = variance(found, influence(found))
        assert (spread.value, spread.endless) == variance_by_hand(kappa, given.get("panel") == "drawn")
        # Sums of some ten terms, and a root.
        assert kappa.se == pytest.approx(math.sqrt(spread.value), rel=1e-12)

    def test_influence_without_a_vote(self) -> None:
        found = known(dh_kappa([[int(vote) for vote in item] for item in self.VOTES], self.LABELS))
        table, less = found.patterns, leave_one_vote(found)
        for k, label in enumerate(table.suggested.tolist()):
            row = range(table.start[k], table.start[k + 1])
            votes = [code for at in row for code in [int(table.code[at])] * int(table.votes[at])]
            for at in row:
                left = votes.copy()
                left.remove(int(table.code[at]))
                assert less[at] == psi(found, left, label)

    def test_a_difference_with_a_panel_that_is_drawn(self) -> None:
        """docs/methods.md for the difference of two influences, item by item."""
        votes = [[int(vote) for vote in item] for item in self.VOTES]
        labels = {"x": list(self.LABELS), "y": [1, 2, 2, 2, 3, 1, 1, 2, 1, 1, 3]}
        n, f = len(votes), F(11, 30)
        found = [known(dh_kappa(votes, labels[name])) for name in "xy"]
        phi = [phi_by_item(one, votes, labels[name]) for one, name in zip(found, "xy", strict=True)]
        moves = [one - other for one, other in zip(*phi, strict=True)]
        over_votes = F(0)
        for i, item in enumerate(votes):
            left = [[vote - 1 for vote in item[:a] + item[a + 1 :]] for a in range(len(item))]
            less = [psi(found[0], one, labels["x"][i] - 1) - psi(found[1], one, labels["y"][i] - 1) for one in left]
            middle = sum(less, F(0)) / len(less)
            over_votes += F(len(item) - 1, len(item)) * sum((one - middle) ** 2 for one in less)
        expected = (1 - f) * sum(move**2 for move in moves) / (n * (n - 1)) + f * over_votes / n**2
        row = next(iter(compare(votes, labels, pool=30, panel="drawn").differences))
        assert row["se"] == pytest.approx(math.sqrt(expected), rel=1e-12)

    def test_two_items_show_a_spread(self) -> None:
        kappa = dh_kappa([[1, 1], [1, 2]], [1, 2])
        first, second = influence(known(kappa)).tolist()
        assert first == -second != 0
        assert kappa.se == pytest.approx(abs(float(first)), rel=1e-14)

    def test_what_intervals_are_made_of(self) -> None:
        found = known(example(), exact=False)
        made = basis_of(found, influence(found), 0.5, -0.1, extremes(found), -2.0)
        assert made is not None
        assert (made.kappa, made.E, made.n, made.df, made.bottom) == (0.5, -0.1, 6, 5, -2.0)
        assert made.squares == pytest.approx(float(30 * F(432125685, 5473632256)), rel=1e-12)
        assert (made.least, made.greatest) == pytest.approx((-50355 / 36992, 21087 / 36992), rel=1e-12)
        assert (made.least_share, made.greatest_share, made.unseen) == (1 / 6, 1 / 6, 1 / 6)
        plain = basis_of(found, influence(found), 0.5, -0.1, None)
        assert plain is not None
        assert plain.bottom == LEAST
        assert math.isnan(plain.least)
        assert math.isnan(plain.greatest)
        assert basis_of(found, influence(found), 0.5, 1.0, None) is None
        two = dh_kappa([[1, 1], [1, 2]], [1, 2])._basis
        assert two is not None
        assert (two.n, two.df) == (2, 1)
        flawless = dh_kappa([["a", "a"], ["b", "b"], ["c", "c"]] * 5, list("abc") * 5)._basis
        assert flawless is not None
        assert (flawless.greatest, flawless.squares) == (0, 0)  # nothing is better than what there is
        strata = example(strata=list("xxyyyy"))._basis
        assert strata is not None
        assert strata.df == 4

    def test_unseen_items_of_strata_with_weights(self) -> None:
        """docs/methods.md: share(A) = sum p^3 / sum p^2, and the mean influence of a stratum, by weight."""
        weights, strata = [1, 2, 3, 4, 5, 6], list("xxxyyy")
        found = known(example(weights=weights, strata=strata), exact=False)
        phi = influence(found)
        p = found.weight / found.n
        inside = [found.sample.stratum == place for place in range(2)]
        top = max((p[rows] ** 3).sum() / (p[rows] ** 2).sum() for rows in inside)
        unseen = unseen_items(found, phi)
        assert unseen.most == pytest.approx(top, rel=1e-12)
        expected = []
        for rows in inside:
            middle = (p[rows] * phi[rows]).sum() / p[rows].sum()
            for label in sorted(set(found.suggested[rows].tolist())):
                own = p[rows & (found.suggested == label)]
                expected.append((label, math.sqrt(top * (own**3).sum() / (own**2).sum()), middle))
        assert unseen.label.tolist() == [label for label, _, _ in expected]
        assert unseen.share.tolist() == pytest.approx([share for _, share, _ in expected], rel=1e-12)
        assert unseen.middle.tolist() == pytest.approx([middle for _, _, middle in expected], rel=1e-12)

    def test_a_stratum_without_items_adds_nothing(self) -> None:
        votes, labels, strata = [*EXAMPLE.votes, [1]], [*EXAMPLE.suggested, 1], [*STRATA, "z"]
        kappa = dh_kappa(votes, labels, strata=strata, pool={"x": 9, "y": 30, "z": 0})
        plain = example(strata=STRATA, pool={"x": 9, "y": 30})
        assert kappa.exact == plain.exact
        assert kappa.se == plain.se
        found, without = (unseen_items(known(one), influence(known(one))) for one in (kappa, plain))
        assert found.most == without.most
        assert (found.share.tolist(), found.middle.tolist()) == (without.share.tolist(), without.middle.tolist())

    def test_the_variance_over_votes_may_be_given(self) -> None:
        kappa = example(pool=24, panel="drawn")
        found = known(kappa)
        nothing = variance(found, influence(found), 0 * found.t)
        something = variance(found, influence(found), 0 * found.t + 8)
        assert something.value - nothing.value == F(6, 24) * F(8, 6)
        assert nothing.value == F(18, 24) * nothing.endless
        assert variance(found, influence(found)).value > nothing.value


def ordinal_by_hand(votes: Sequence[Sequence[int]], labels: Sequence[int], w: Sequence[Sequence[F]]) -> F:
    """Kappa of pairs that count w_xy (w_xl + w_yl - 1), observed and with votes and labels drawn on their own."""
    m, n = len(w), len(votes)

    def worth(x: int, y: int, label: int) -> F:
        return w[x][y] * (w[x][label] + w[y][label] - 1)

    D = F(0)
    for item, label in zip(votes, labels, strict=True):
        pairs = list(combinations(item, 2))
        D += sum((worth(x, y, label) for x, y in pairs), F(0)) / len(pairs) / n
    C = [sum(F(list(item).count(j), len(item)) for item in votes) / n for j in range(m)]
    L = [F(list(labels).count(j), n) for j in range(m)]
    E = sum((C[x] * C[y] * L[z] * worth(x, y, z) for x, y, z in product(range(m), repeat=3)), F(0))
    return F((D - E) / (1 - E))


class TestOrdinal:
    EVERY = tuple(product(range(3), repeat=2))  # every label with every three votes alike
    VOTES = ((0, 1, 2), (0, 0, 1), *((v, v, v) for _, v in EVERY))
    LABELS = (0, 0, *(label for label, _ in EVERY))

    @pytest.mark.parametrize("w", ["linear", [[1, 1 - 2**-29, 0], [1 - 2**-29, 1, 0.25], [0, 0.25, 1]]])
    def test_against_pairs(self, w: Any) -> None:
        weights = [[F(x) for x in row] for row in weight_matrix(w, 3, exact=True).tolist()]
        kappa = dh_kappa(self.VOTES, self.LABELS, ordinal=w, categories=range(3))
        assert kappa.exact == ordinal_by_hand(self.VOTES, self.LABELS, weights)
        many = [(0,) * 30 + (1,) * 25 + (2,) * 5, *self.VOTES]
        found = dh_kappa(many, [1, *self.LABELS], ordinal=w, categories=range(3))
        assert found.exact == ordinal_by_hand(many, [1, *self.LABELS], weights)

    @pytest.mark.parametrize("exact", [True, False])
    @pytest.mark.parametrize("w", ["linear", "quadratic", [[1, 0.5, 0], [0.5, 1, 0.25], [0, 0.25, 1]]])
    def test_items_with_all_votes_alike_move_kappa_most(self, w: Any, exact: bool) -> None:
        plain = dh_kappa(self.VOTES, self.LABELS, categories=range(3))
        found, parts = known(plain, exact), plain.parts
        assert parts is not None
        made = ordinal_estimate(found, parts, weights_of(w, 3))
        assert made.far is not None
        assert made.far.label.tolist() == [0, 1, 2]
        alike = np.diff(found.patterns.start) == 1
        for place in range(3):
            own = made.phi[alike & (found.suggested == place)]
            assert len(own) == 3
            ends = float(made.far.low[place]), float(made.far.high[place])
            assert ends == pytest.approx((float(min(own)), float(max(own))), rel=1e-12)
            assert not exact or (made.far.low[place], made.far.high[place]) == (min(own), max(own))


class TestQuantiles:
    @pytest.mark.parametrize("p", [0.025, 0.3, 0.5, 0.999])
    @pytest.mark.parametrize(("a", "b"), [(4e6, 6e6), (1e6, 9e6), (9.5e6, 0.5e6)])
    def test_near_normal_against_scipy(self, a: float, b: float, p: float) -> None:
        """At sizes where scipy still is right; what the expansion leaves out is of the order of their -3/2th power."""
        deviation = math.sqrt(a * b / (a + b + 1)) / (a + b)
        assert (_near_normal(a, b, p) - float(betaincinv(a, b, p))) / deviation == pytest.approx(0, abs=3e-9)

    def test_huge_ones_are_near_normal(self) -> None:
        a, b = 3e18, 1e18
        z = 1.959963984540054
        normal = 0.75 + z * math.sqrt(0.75 * 0.25 / 4e18)
        assert beta_quantile(a, b, 0.975) == pytest.approx(normal, rel=1e-15)
        assert beta_quantile(b, a, 0.025) == pytest.approx(1 - normal, rel=1e-15)

    @pytest.mark.parametrize(("a", "b", "p"), [(2, 3, 1 - 1e-12), (2.5, 30, 1 - 1e-13), (40, 3, 1e-12), (0.5, 2, 0.9)])
    def test_far_tails_are_scipys(self, a: float, b: float, p: float) -> None:
        assert beta_quantile(a, b, p) == float(betaincinv(a, b, p))


def basis(**given: Any) -> Basis:
    """Eight items, drawn otherwise than at random, so that all parts differ."""
    plain: dict[str, Any] = {"kappa": 0.6, "E": -0.1, "n": 8, "squares": 3.0, "least": -1.5, "greatest": 0.7}
    shares = {"least_share": 0.2, "greatest_share": 0.1, "unseen": 0.15, "df": 6, "bottom": -1.5}
    return Basis(**plain | shares | given)


def beta_by_hand(of: Basis, alpha: float) -> tuple[float, float]:
    """docs/methods.md, with w = 3/4 of an item of share s that moves kappa by a."""
    n, w, width = of.n, 0.75, 1 - of.bottom
    limits = []
    for a, s, p in ((of.least, of.least_share, 1 - alpha / 2), (of.greatest, of.greatest_share, alpha / 2)):
        u = (1 - of.kappa - w * a * s / (1 + w * s)) / width
        v = of.squares / ((n + w) * (n + w + 1)) + w * a**2 * s**2 / ((1 + w * s) ** 2 * (1 + (w + 1) * s))
        nu = u * (1 - u) * width**2 / v - 1
        limits.append(1 - width * float(betaincinv(u * nu, (1 - u) * nu, p)))
    flawless = 1 - 2 * (1 - (alpha / 2) ** of.unseen) / (1 - of.E)
    return max(of.bottom, min(limits[0], flawless)), limits[1]


WIDE: dict[str, Any] = {"kappa": -0.25, "squares": 88.9, "least": 0.0, "greatest": 0.0}  # nu is 1/2


class TestIntervals:
    @pytest.mark.parametrize("alpha", [0.05, 0.3])
    @pytest.mark.parametrize(
        "given", [{}, {"bottom": LEAST}, {"squares": 0.0}, {"n": 400}, {"kappa": 0.1, "df": 3}, WIDE]
    )
    def test_beta_by_hand(self, given: dict[str, Any], alpha: float) -> None:
        of = basis(**given)
        # The quantile is computed in another way, to some digits less than a float has.
        assert beta_interval(of, alpha) == pytest.approx(beta_by_hand(of, alpha), rel=1e-12)

    def test_beta_where_there_is_no_beta_distribution(self) -> None:
        best, worst = basis(greatest=20.0), basis(least=-40.0)
        assert beta_interval(best, 0.05)[1] == 1.0  # its mean lies above kappa's range
        assert beta_interval(worst, 0.05)[0] == -1.5  # and below it
        still = basis(squares=0.0, least=0.0, greatest=0.0, unseen=1e-9)
        assert beta_interval(still, 0.05) == pytest.approx((0.6, 0.6), abs=1e-12)  # nothing varies
        assert beta_interval(basis(squares=1e4, unseen=1e-9), 0.05) == (-1.5, 1.0)  # more than any beta varies
        # A variance of u (1 - u) is that of the two ends alone: nu is 0.
        ends = basis(kappa=-0.25, squares=1.25**2 * 8.75 * 9.75, least=0.0, greatest=0.0, unseen=1e-9)
        assert beta_interval(ends, 0.05) == (-1.5, 1.0)

    def test_beta_at_the_ends_of_the_range(self) -> None:
        flawless = 1 - 2 * (1 - 0.025**0.15) / 1.1
        assert beta_interval(basis(kappa=1.0, least=0.0, squares=1.0), 0.05)[0] == pytest.approx(flawless, rel=1e-12)
        for kappa in (-1.5, -1.6):
            assert beta_interval(basis(kappa=kappa, greatest=0.0, squares=1.0), 0.05)[1] == -1.5

    def test_logit_far_out(self) -> None:
        found = logit_interval(basis(kappa=1 - 1e-9, squares=50.0), 0.05)
        assert found == pytest.approx((LEAST, 1.0), rel=1e-15)

    def test_beta_with_another_quantile(self) -> None:
        asked: list[tuple[float, float, float]] = []

        def quantile(a: float, b: float, p: float) -> float:
            asked.append((a, b, p))
            return 0.5

        middle = beta_interval(basis(), 0.2, quantile)
        assert [p for _, _, p in asked] == [0.9, 0.1]
        assert middle == (-0.25, -0.25)

    @pytest.mark.parametrize("kappa", [0.6, -0.9, 0.999])
    def test_logit_and_wald_by_hand(self, kappa: float) -> None:
        of = basis(kappa=kappa)
        se = math.sqrt(3 / 56)
        t = 2.4469118511449692  # with 6 degrees of freedom, of 0.975
        assert of.se == se
        assert wald_interval(of, 0.05) == pytest.approx((max(kappa - t * se, -1.5), min(kappa + t * se, 1)), rel=1e-12)
        place = (kappa + 14 / 13) / (27 / 13)  # logit(place) has the standard error se / (range place (1 - place))
        half = t * se / (27 / 13 * place * (1 - place))
        low, high = (-14 / 13 + 27 / 13 * expit(logit(place) + side) for side in (-half, half))
        assert logit_interval(of, 0.05) == pytest.approx((low, high), rel=1e-9)

    def test_flawless_samples(self) -> None:
        low = 1 - 2 * (1 - 0.025**0.15) / 1.1
        assert low == pytest.approx(0.2273, abs=1e-4)
        for interval in (beta_interval, logit_interval, wald_interval):
            found = interval(basis(kappa=1.0, squares=0.0, greatest=0.0, least=0.0), 0.05)
            assert found == pytest.approx((low, 1.0), rel=1e-12)
            wide = interval(
                basis(kappa=1.0, squares=0.0, greatest=0.0, least=0.0, unseen=5.0, E=0.5, bottom=LEAST), 0.05
            )
            assert wide == (LEAST, 1.0)
        assert wald_interval(basis(kappa=1.0, unseen=5.0, E=0.9), 0.05) == (-1.5, 1.0)

    def test_items_drawn_at_random_weigh_the_same(self) -> None:
        assert plain_basis(0.5, 0.1, 8, 3.0, -2.0, 1.0) == Basis(0.5, 0.1, 8, 3.0, -2.0, 1.0, 1 / 8, 1 / 8, 1 / 8, 7)

    def test_levels(self) -> None:
        assert check_level(np.float64(0.9)) == 0.9
        assert check_level(F(9, 10)) == 0.9  # type: ignore[arg-type]
        for level in (1e-9, 1 - 1e-9, 2, "0.95"):
            with pytest.raises(DataError) as error:
                check_level(level)  # type: ignore[arg-type]
            edge = ", by more than 1e-09" if level in (1e-9, 1 - 1e-9) else ""
            assert str(error.value) == f"level must be between 0 and 1{edge}, such as 0.95: got {level!r}."

    def test_an_interval_without_limits_says_why(self) -> None:
        assert repr(Interval(math.nan, math.nan, 0.9, "beta", "no.")) == "[nan, nan] at 0.9 (beta): no."


def limits_by_hand(gap: Gap, level: float) -> tuple[float, float]:
    """docs/methods.md, with w = 1/2 of an item that only one of the two gets wrong."""
    n, w, alpha = gap.n, 0.5, 1 - level
    if not gap.se:
        hidden = 1 - (alpha / 2) ** (1 / n)
        return gap.value + gap.worst * hidden, gap.value + gap.best * hidden
    t, N = float(stdtrit(gap.df, 1 - alpha / 2)), n + w
    squares = gap.se**2 * n * (n - 1)
    cubes = gap.skew * squares**1.5
    limits = []
    for a, sign in ((gap.worst, -1), (gap.best, 1)):
        mu = w * a / N
        Q = squares + w * a**2 * n / N
        M = cubes - 3 * mu * squares - n * mu**3 + w * (a - mu) ** 3
        limits.append(
            gap.value + mu + sign * (t * math.sqrt(Q / (N * (N - 1))) + (t**2 - 1) / 3 * max(0.0, sign * M / (Q * N)))
        )
    return max(limits[0], -27 / 13), min(limits[1], 27 / 13)


GAPS = {
    "left": Gap(0.2, 0.08, -0.3, 50, 49, -2.5, 1.5),
    "right": Gap(-0.15, 0.08, 0.6, 50.5, 40, -1.5, 2.5),
    "few": Gap(0.9, 0.2, 0.1, 6, 5, -4.0, 4.0),
    "narrow": Gap(-0.03, 0.01, 0.0, 900, 899, -2.0, 2.0),
    "wide": Gap(1.5, 2.0, 0.0, 4, 3, -9.0, 9.0),
    "small": Gap(-0.02, 0.002, 0.5, 40, 39, -0.1, 0.1),
    "still": Gap(0.0, 0.0, 0.0, 30, 29, -2.0, 3.0),
}


class TestGaps:
    @pytest.mark.parametrize("level", [0.9, 0.99])
    @pytest.mark.parametrize("name", GAPS)
    def test_limits_by_hand(self, name: str, level: float) -> None:
        found = tuple(float(limit) for limit in GAPS[name].limits(level))
        assert found == pytest.approx(limits_by_hand(GAPS[name], level), rel=1e-12)

    @pytest.mark.parametrize("name", ["left", "right", "few", "narrow"])
    def test_p_is_where_a_limit_is_zero(self, name: str) -> None:
        gap = GAPS[name]
        nearest = 0 if gap.value > 0 else 1
        level = brentq(lambda level: float(gap.limits(level)[nearest]), 0.3, 1 - 1e-13, xtol=1e-15)
        assert float(gap.p_value()) == pytest.approx(1 - level, rel=1e-6, abs=1e-12)  # as far as the root is found

    def test_p_where_nothing_moves_or_no_limit_is_zero(self) -> None:
        assert float(GAPS["still"].p_value()) == 1
        assert float(Gap(0.5, 0.0, 0.0, 30, 29, -2.0, 3.0).p_value()) == 1
        assert float(Gap(0.001, 0.08, 0.0, 50, 49, -2.5, 2.5).p_value()) == 1

    def test_two_items_have_one_degree_of_freedom(self) -> None:
        labels = {"x": ["a", "a"], "y": ["b", "c"]}
        row = next(iter(compare([["a", "a"], ["a", "b"]], labels, level=0.5).differences))
        # C is 3/4 and 1/4. Of x, E = 9/16 - 1/16; of y it is 1/32 - 19/32. Two moves of mean 0 have no skewness.
        reach = 1 / (1 - 8 / 16) + 1 / (1 + 18 / 32)
        gap = Gap(row["difference"], row["se"], 0.0, 2, 1, -reach, reach)
        assert row["se"] > 0.1
        assert (row["low"], row["high"]) == pytest.approx(limits_by_hand(gap, 0.5), rel=1e-12)

    def test_many_at_once(self) -> None:
        several = [GAPS[name] for name in ("left", "right", "still")]
        names = ("value", "se", "skew", "n", "df", "worst", "best")
        gap = Gap(*(np.array([getattr(one, name) for one in several]) for name in names))
        low, high = gap.limits(0.95)
        expected = [tuple(map(float, one.limits(0.95))) for one in several]
        assert list(zip(low.tolist(), high.tolist(), strict=True)) == expected
        assert gap.p_value().tolist() == [float(one.p_value()) for one in several]

    def test_skewness(self) -> None:
        move, items = np.array([1.0, -2.0, 3.0]), np.array([3, 2, 1])
        assert skewness(move, items) == (3 - 16 + 27) / (3 + 8 + 9) ** 1.5
        assert skewness(move, items, 4.0) == 14 / 8
        assert skewness(move / 16, items) == (3 - 16 + 27) / (3 + 8 + 9) ** 1.5
        assert skewness(0 * move, items) == 0
