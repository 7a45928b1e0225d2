"""Sums over items and estimates from them, against counting by hand."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import item_oracle
import oracle
from dhkappa import Kappa, dh_kappa, fleiss_kappa, tally
from dhkappa.stats.kappa import _by_category, _dot, _times, dh_parts, estimate_dh, estimate_fleiss, majority_sums, sums
from dhkappa.stats.sample import Sample
from exact import EXAMPLE, example

F = Fraction


def test_parts_show_the_letters_of_the_paper() -> None:
    shown = "Parts(R=0.5556, S=0.1667, C_E=0.1193, C_F=0.2387, D=0.3889, E=-0.1193)"
    assert repr(example().parts) == shown


def test_estimates_of_a_sample() -> None:
    sample = example().sample
    found = estimate_dh(sample)
    assert (found.metric, found.exact, found.value) == ("dh", F(247, 544), 247 / 544)
    assert (found.baselines.random, found.fleiss) == (F(-59, 544), F(59, 104))
    assert found.parts == dh_parts(sums(sample), sample.categories)
    fleiss = estimate_fleiss(fleiss_kappa(EXAMPLE.votes).sample)
    assert fleiss.fleiss == fleiss.exact == oracle.fleiss(EXAMPLE.votes).kappa == F(59, 104)


def test_weighted_kappa_is_that_of_repeated_items() -> None:
    often = [1, 2, 3, 4, 5, 6]
    weighted = example(sample_weight=often)
    votes = [row for row, times in zip(EXAMPLE.votes, often, strict=True) for _ in range(times)]
    labels = [label for label, times in zip(EXAMPLE.suggested, often, strict=True) for _ in range(times)]
    assert weighted.exact == oracle.dh(votes, labels, weighted.categories).kappa
    repeated = dh_kappa(votes, labels)
    assert (weighted.baselines, weighted.fleiss) == (repeated.baselines, repeated.fleiss)
    assert (weighted.n_items, repeated.n_items) == (6, 21)


SAME = "Every vote and every suggested label is the same category."


@pytest.mark.parametrize(
    ("scored", "reason"),
    [
        (lambda: dh_kappa([], []), "There are no items."),
        (lambda: fleiss_kappa([]), "There are no items."),
        (lambda: fleiss_kappa([[1], [2]]), "No item has two votes (2 items excluded: they have one vote)."),
        (
            lambda: dh_kappa([[1], [], [1, 2]], [1, 1, None]),
            "No item has two votes and a suggested label "
            "(3 items excluded: 1 with no votes, 1 with one vote, 1 with no suggested label).",
        ),
        (
            lambda: dh_kappa([[1, 1], [1]], [1, 1], sample_weight=[0, 1]),
            "No item has two votes and a weight (2 items excluded: 1 with one vote, 1 with weight 0).",
        ),
        (
            lambda: dh_kappa([[1, 1], [1], [1, 2]], [None, 1, 1], sample_weight=[1, 1, 0]),
            "No item has two votes and a suggested label and a weight "
            "(3 items excluded: 1 with one vote, 1 with no suggested label, 1 with weight 0).",
        ),
        (lambda: fleiss_kappa([[1, 1], [1, 1]]), "Every vote is the same category."),
        (lambda: dh_kappa([[1, 1], [1, 1]], [1, 1]), SAME),
        (
            lambda: dh_kappa([[1, 2], [2, 1]], [1, 2], weights=[[1, 1], [1, 1]], categories=[1, 2]),
            "Every category that occurs has weight 1 with every other.",
        ),
        (lambda: dh_kappa([[1, 1]], [1], weights="linear", categories=[1, 2, 3]), SAME),
    ],
)
def test_undefined_kappas_have_a_reason(scored: Callable[[], Kappa], reason: str) -> None:
    kappa = scored()
    assert kappa.reason == reason
    assert kappa.exact is None
    assert all(map(math.isnan, (kappa.value, kappa.baselines.random, kappa.baselines.majority, kappa.se)))
    assert (kappa.parts is None) == (kappa.n_items == 0)


def test_undefined_kappas_keep_their_metric() -> None:
    assert (fleiss_kappa([]).metric, dh_kappa([], []).metric) == ("fleiss", "dh")
    assert dh_kappa([[1, 1]], [1], weights="linear", categories=[1, 2]).metric == "weighted"


def test_weighted_fleiss_is_that_of_repeated_items() -> None:
    often = [1, 2, 1, 3, 1, 1]
    weighted = fleiss_kappa(EXAMPLE.votes, sample_weight=often)
    repeated = [item for item, times in zip(EXAMPLE.votes, often, strict=True) for _ in range(times)]
    assert weighted.exact == oracle.fleiss(repeated).kappa
    assert weighted.parts is not None
    assert weighted.parts.L == {}


Counted = Sequence[tuple[int, Sequence[Hashable], Hashable]]


def sums_by_hand(rows: Counted, categories: Sequence[Hashable]) -> dict[str, Any]:
    """Add up over (number of items, votes, label) in whole numbers, by counting pairs."""
    lengths = sorted({len(votes) for _, votes, _ in rows})
    pairs_of = {N: len(list(combinations(range(N), 2))) for N in lengths}
    vote_unit, pair_unit = math.lcm(*lengths), math.lcm(*pairs_of.values())
    found: dict[str, Any] = {name: [0] * len(categories) for name in ("votes", "pairs", "labels", "majority")}
    found |= dict.fromkeys(("n", "n_votes", "agreeing", "on_label", "on_majority", "perfect"), 0)
    for number, votes, label in rows:
        top = max(categories, key=list(votes).count)
        part = pair_unit // pairs_of[len(votes)]
        found["n"] += number
        found["n_votes"] += number * len(votes)
        found["labels"][categories.index(label)] += number
        found["majority"][categories.index(top)] += number
        found["perfect"] += number * (set(votes) == {label})
        for vote in votes:
            found["votes"][categories.index(vote)] += number * vote_unit // len(votes)
        for one, other in combinations(votes, 2):
            if one == other:
                found["pairs"][categories.index(one)] += number * part
                found["agreeing"] += number * part
                found["on_label"] += number * part * (one == label)
                found["on_majority"] += number * part * (one == top)
    return found | {"vote_unit": vote_unit, "pair_unit": pair_unit}


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


def all_sums(sample: Sample) -> dict[str, Any]:
    """Return all sums over the items of a sample by name."""
    return asdict(sums(sample)) | majority_sums(sample)._asdict()


ADDED = ("n", "n_votes", "votes", "pairs", "labels", "majority", "agreeing", "on_label", "on_majority", "perfect")


class TestSums:
    @pytest.mark.parametrize("times", [1, 2**40, 2**52 + 1, 2**57 - 1])
    def test_against_counting_pairs(self, times: int) -> None:
        whole = tally([], [], categories=list("abc"))
        for number, votes, label in ROWS:
            part = tally([list(votes)], [label], categories=list("abc"))
            for bit in f"{number * times:b}"[::-1]:
                whole = whole + part if bit == "1" else whole
                part = part + part
        found = all_sums(dh_kappa(whole).estimate.sample)
        expected = sums_by_hand([(number * times, votes, label) for number, votes, label in ROWS], list("abc"))
        assert found == expected
        assert all(type(number) is int for value in found.values() for number in np.ravel(np.array(value, object)))

    def test_many_patterns_add_up_like_their_halves(self) -> None:
        """Patterns are worked on in blocks of 65,536; a half of these is one block."""
        draw = np.random.default_rng(1)
        votes, labels = draw.integers(0, 60, (80_000, 3)), draw.integers(0, 60, 80_000)
        votes[::10] = labels[::10, None]
        found = [
            all_sums(dh_kappa(tally(votes[part], labels[part], categories=range(60))).estimate.sample)
            for part in (slice(None), slice(40_000), slice(40_000, None))
        ]
        assert len(dh_kappa(votes, labels).sample.patterns) > 65_536
        whole, *halves = ({name: np.array(one[name]) for name in ADDED} for one in found)
        for name in ADDED:
            assert whole[name].tolist() == (halves[0][name] + halves[1][name]).tolist()
            assert whole[name].any()

    def test_weighted_sums(self) -> None:
        sample = example(sample_weight=[1, 2, 3, 4, 5, 6]).sample
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


def test_items_with_any_number_of_votes_and_weights_beyond_64_bits() -> None:
    votes, labels = ["aab", "ab", "abbbc", "ccccbbb", "aaaaaaab"], "abbca"
    weight = [2**70 + 2**20, 2**69, 2**61 + 2**10, 3 * 2**66, 2**68 + 2**30]
    items = [
        item_oracle.Item(tuple(own), label, F(w), None) for own, label, w in zip(votes, labels, weight, strict=True)
    ]
    assert all(int(float(w)) == w for w in weight)
    kappa = dh_kappa([[*own] for own in votes], [*labels], sample_weight=[float(w) for w in weight])
    assert kappa.exact == item_oracle.Oracle(items, "abc").kappa
