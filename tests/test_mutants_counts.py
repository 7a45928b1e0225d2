"""What mutants of the statistics rooms have lived through: counting votes and kappa itself.

Oracles are the worked examples of docs/methods.md, fractions and closed forms computed by hand, and scipy.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pytest

import oracle
from dhkappa import DataError, dh_kappa, fleiss_kappa, tally
from dhkappa.core.items import read_item_votes
from dhkappa.stats.influence import extremes, influence, is_rounding, rest, room_for, standard_error, sum_of_squares
from dhkappa.stats.kappa import estimate_fleiss
from dhkappa.stats.sample import Excluded, Stratum, item_sample, own_pool, sample_of
from dhkappa.stats.sums import Spread, _by_category, _dot, _times, sums
from dhkappa.stats.terms import Terms, divided, item_weights, terms
from mutants import EXAMPLE, STRATA, F, example, known, refused


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
                {"pool": 10, "sample_weight": [1, 2, 3, 4, 5, 6]},
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
                {"strata": STRATA, "pool": {"x": 9, "y": 9}, "sample_weight": [1, 2, 3, 4, 5, 6]},
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
        with pytest.raises(DataError) as error:
            dh_kappa([[1, 1, 1], [1, 2]], [1, 1], pool=9, panel="drawn")
        assert str(error.value) == (
            "panel='drawn' needs three votes on every item, and 1 item has two: leave such items out, "
            "or pass panel='fixed'."
        )
        empty = "stratum 'y' has no eligible item, so the sample cannot speak for it: join it with another stratum, "
        for pool in (None, {"x": 3, "y": 3}):
            with pytest.raises(DataError) as error:
                dh_kappa([[1, 1], [1, 1], [2]], [1, 1, 1], strata=["x", "x", "y"], pool=pool)
            assert str(error.value) == empty + "or leave its items out."
        labelers = dict.fromkeys(("l0", "l1", "l2", "l3", "l4", "l5", "l6", "l7", "l8", "l9", "l10"), EXAMPLE.suggested)
        with pytest.raises(DataError) as error:
            item_sample(read_item_votes(EXAMPLE.votes, labelers), "rule")
        named = ", ".join(f"'l{i}'" for i in range(10))
        assert str(error.value) == f"labeler 'rule' is not in the data. Labelers: {named}, ...."

    def test_sizes_and_weights_of_items(self) -> None:
        """Mass is what a stratum's items stand for, 9/3 and 30/3, in the least whole units."""
        sample = example(strata=STRATA, pool={"x": 9, "y": 30.0, "z": 0})._sample
        assert sample.strata == (Stratum("x", 3, 9), Stratum("y", 3, 30))
        assert sorted((sample.mass / sample.patterns.items).tolist()) == [3, 3, 3, 10, 10, 10]
        assert [part.fraction for part in sample.strata] == [F(1, 3), F(1, 10)]
        assert sample.n_effective == pytest.approx(39**2 / (3 * 9 + 3 * 100))
        twice = dh_kappa([[1, 1], [1, 1], [2, 2], [1, 2]], [1, 1, 2, 2], sample_weight=[1, 1, 3, 5])._sample
        assert len(twice.patterns) == 3
        assert twice.n_effective == pytest.approx(10**2 / (1 + 1 + 9 + 25))
        assert example(sample_weight=[2, 4, 6, 8, 10, 12.0])._sample.mass.sum() == 21
        assert not example(strata=STRATA, pool={"x": 9, "y": 9})._sample.weighted
        for heavy in (2**61, 2**65):
            huge = example(sample_weight=[1, 1, 1, 1, 1, float(heavy)])._sample
            assert sorted(huge.mass.tolist()) == [1, 1, 1, 1, 1, heavy]

    def test_weights_stay_with_their_items_where_others_do_not_count(self) -> None:
        counts = tally([[1], *EXAMPLE.votes], [1, *EXAMPLE.suggested], sample_weight=[7, 1, 2, 3, 4, 5, 6])
        assert sorted(sample_of(counts).mass.tolist()) == [1, 2, 3, 4, 5, 6]
        assert dh_kappa(counts).exact == example(sample_weight=[1, 2, 3, 4, 5, 6]).exact

    def test_sizes_of_a_pool_by_what_can_be_turned_into_a_dict(self) -> None:
        """As a Series of pandas can."""

        class Sizes:
            def to_dict(self) -> dict[str, np.int64]:
                return {"x": np.int64(9), "y": np.int64(30)}

        assert own_pool(Sizes()) == {"x": 9, "y": 30}
        assert own_pool(np.float64(30)) == 30

    def test_items_of_a_labeler_keep_weights_strata_and_pool(self) -> None:
        votes = [*EXAMPLE.votes, [1, 1], [1]]
        labels = [*EXAMPLE.suggested, None, 1]
        given: dict[str, Any] = {"strata": [*STRATA, "x", "y"]}
        sample, places = item_sample(read_item_votes(votes, {"rule": labels}, **given), "rule", {"x": 9, "y": 30})
        assert sample.strata == (Stratum("x", 3, 9), Stratum("y", 3, 30))
        assert (sample.stratum.tolist(), places.tolist()) == ([0, 0, 0, 1, 1, 1], [0, 1, 2, 3, 4, 5])
        assert sample.mass.tolist() == [3, 3, 3, 10, 10, 10]
        assert sample.excluded == Excluded(one_vote=1, no_label=1)
        weighted, _ = item_sample(
            read_item_votes(votes, {"rule": labels}, sample_weight=[1, 2, 3, 0, 5, 6, 7, 8]), "rule"
        )
        assert weighted.mass.tolist() == [1, 2, 3, 5, 6]
        assert weighted.excluded == Excluded(one_vote=1, no_label=1, no_weight=1)
        assert weighted.excluded.why() == "1 with one vote, 1 with no suggested label, 1 with weight 0"
        assert Excluded(no_votes=1234).why() == "1,234 with no votes"
        assert Excluded(1, 2, 3, 4).total == 10

    def test_designed_is_whatever_is_more_than_chance(self) -> None:
        found = [
            example(**given)._sample.designed
            for given in (
                {},
                {"strata": STRATA},
                {"pool": 20},
                {"sample_weight": [1, 1, 1, 1, 1, 2]},
                {"sample_weight": [3] * 6},
            )
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
        item_votes = read_item_votes([[1, 1], [1, 2], [1, 1], [1, 1], [2]], {"rule": [1, 1, 1, 2, 1]})
        sample, places = item_sample(item_votes, "rule")
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
        sample = example(sample_weight=[1, 2, 3, 4, 5, 6])._sample
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

    @pytest.mark.parametrize("sample_weight", [[2**53 - 1, 2, 1], [2**53 - 1, 2], [2**62, 2**62], [2**60 + 1, 5]])
    def test_sums_beyond_the_digits_of_floats(self, sample_weight: list[int]) -> None:
        code = np.zeros(len(sample_weight), np.int64)
        assert _by_category(code, np.array(sample_weight), 2).tolist() == [sum(sample_weight), 0]


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
        kappa = example(sample_weight=[1, 2, 3, 4, 5, 6])
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
