"""The part of each annotator in kappa, and kappa without their votes, against loops over pairs and recomputation."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import item_oracle
import oracle
from dhkappa import dh_kappa, simulate
from dhkappa.core.items import ItemVotes
from dhkappa.inputs.arrays import read_matrix, read_votes
from dhkappa.stats import annotator_votes
from dhkappa.stats.annotators import annotator_parts, annotator_table, compare_with_annotators
from expect import expect_error
from strategies import Data, ragged

F = Fraction
Rows = list[list[Hashable]]


def filled(data: Data) -> Rows:
    """Votes as rows of the same length, with None for missing votes."""
    width = max(map(len, data.votes), default=0)
    return [[*item, *[None] * (width - len(item))] for item in data.votes]


def item_votes_of(data: Data, weight: Sequence[int] | None = None) -> ItemVotes:
    given_weight = None if weight is None else np.array(weight, np.float64)
    return read_votes(data.object_votes, {"labels": data.written_suggested}, sample_weight=given_weight)


def drawn_weights(seed: int, n: int) -> list[int]:
    random = Random(seed)
    return [random.choice([0, 1, 1, 2, 5]) for _ in range(n)]


def eligible(rows: Rows, labels: Sequence[Hashable]) -> list[tuple[list[Hashable], Hashable]]:
    return [
        (row, label)
        for row, label in zip(rows, labels, strict=True)
        if label is not None and sum(vote is not None for vote in row) >= 2
    ]


def part_by_pairs(items: list[tuple[list[Hashable], Hashable]], a: int) -> tuple[Fraction, Fraction | None]:
    """omega_a and D_a, from every pair of votes that annotator a is in."""
    over, under = F(0), F(0)
    for row, label in items:
        if row[a] is None:
            continue
        others = [vote for b, vote in enumerate(row) if b != a and vote is not None]
        signs = [(1 if vote == label else -1) if vote == row[a] else 0 for vote in others]
        over += F(sum(signs), len(others)) / (len(others) + 1)
        under += F(1, len(others) + 1)
    return under / len(items), over / under if under else None


def check(rows: Rows, labels: Sequence[Hashable], categories: Sequence[Hashable], item_votes: ItemVotes) -> None:
    found = annotator_parts(item_votes, "labels")
    expected = oracle.dh(rows, labels, categories)
    items = eligible(rows, labels)
    kappa = expected.kappa
    assert len(found) == len(rows[0] if rows else [])
    for a, part in enumerate(found):
        without = [[*row[:a], *row[a + 1 :]] for row in rows]
        rest = oracle.dh(without, labels, categories).kappa
        assert part.kappa_without == rest
        assert part.change == (None if rest is None or kappa is None else rest - kappa)
        if items:
            assert (part.weight, part.differential) == part_by_pairs(items, a)
    if items:
        assert sum(part.weight for part in found) == 1
        assert sum(part.weight * part.differential for part in found if part.differential is not None) == expected.D
    if kappa is not None:
        assert sum(part.weight * part.kappa for part in found if part.kappa is not None) == kappa


@given(ragged(max_items=15))
def test_parts_against_pairs_and_recomputation(data: Data) -> None:
    rows = filled(data)
    check(rows, data.suggested, data.categories, item_votes_of(data))
    found = annotator_parts(item_votes_of(data), "labels")
    for a, part in enumerate(found):
        mine = [(row[a], label) for row, label in eligible(rows, data.suggested) if row[a] is not None]
        assert part.items == len(mine)
        assert part.agree == (F(sum(vote == label for vote, label in mine), len(mine)) if mine else None)


@settings(max_examples=60)
@given(ragged(max_items=10), st.integers(0, 2**16))
def test_weights_against_repeated_items(data: Data, seed: int) -> None:
    weight = drawn_weights(seed, len(data.votes))
    repeated = data.take([i for i, times in enumerate(weight) for _ in range(times)])
    rows = [row for row, times in zip(filled(data), weight, strict=True) for _ in range(times)]
    if rows:
        check(rows, repeated.suggested, data.categories, item_votes_of(data, weight))


@settings(max_examples=20)
@given(ragged(max_items=12), st.integers(0, 2**16))
def test_order_of_items_does_not_matter(data: Data, seed: int) -> None:
    order = Random(seed).sample(range(len(data.votes)), len(data.votes))
    array = data.object_votes
    shuffled = read_votes(array[order], {"labels": data.take(order).written_suggested})
    assert annotator_parts(shuffled, "labels") == annotator_parts(item_votes_of(data), "labels")


def test_complete_design_closed_form() -> None:
    drawn = simulate(80, annotators=4, rng=3)
    item_votes = read_votes(drawn.votes, drawn.suggested)
    found = annotator_parts(item_votes, "labeler")
    labels = drawn.suggested["labeler"].tolist()
    whole = oracle.dh(drawn.votes.tolist(), labels, drawn.categories)
    for a, part in enumerate(found):
        without = oracle.dh(np.delete(drawn.votes, a, axis=1).tolist(), labels, drawn.categories)
        assert part.differential is not None
        assert (4 * whole.D - 2 * part.differential) / 2 == without.D  # (N D - 2 D_a) / (N - 2)


def test_by_hand() -> None:
    # pairs of annotator 2: on item 0 with a, a: agree on the label; on item 1 with a, a: none; on item 2: agree on b
    item_votes = read_votes(np.array([list("aaa"), list("aab"), list("abb")]), {"labels": list("aaa")})
    found = annotator_parts(item_votes, "labels")
    assert [part.differential for part in found] == [
        F(1 + F(1, 2) + 0, 3),
        F(1 + F(1, 2) - F(1, 2), 3),
        F(1 + 0 - F(1, 2), 3),
    ]
    assert [part.weight for part in found] == [F(1, 3)] * 3
    assert [part.agree for part in found] == [1, F(2, 3), F(1, 3)]


class TestTable:
    def test_columns(self) -> None:
        drawn = simulate(60, annotators=3, missing=0.2, rng=5)
        item_votes = replace(read_votes(drawn.votes, drawn.suggested), annotators=("Ann", "Bo", "Cy"))
        found = annotator_parts(item_votes, "labeler")
        table = annotator_table(item_votes, "labeler")
        assert table.column("annotator") == ["Ann", "Bo", "Cy"]
        for row, part in zip(table, found, strict=True):
            assert part.kappa_without is not None
            assert row["items"] == part.items
            exact = (part.agree, part.weight, part.differential, part.kappa, part.kappa_without, part.change)
            names = ("agree", "weight", "differential", "kappa", "kappa_without", "change")
            assert [row[name] for name in names] == [float(value) for value in exact if value is not None]
            assert row["reason"] is None

    def test_someone_without_eligible_items_changes_nothing(self) -> None:
        votes = [["a", "a", None], ["a", "b", None], ["b", "b", None], [None, None, "a"]]
        row = annotator_table(read_votes(np.array(votes), {"labels": list("aabb")}), "labels").to_dicts()[2]
        assert (row["items"], row["weight"], row["change"]) == (0, 0, 0)
        assert math.isnan(row["kappa"])
        assert "no vote" in row["reason"]

    @pytest.mark.parametrize(
        ("votes", "labels", "reason"),
        [
            (["aa", "ab"], "ab", "no labeled item has two votes"),
            (["aab", "aaa"], "aa", "Without the annotator's votes, every vote"),
            (["aaa", "aaa"], "aa", "Every vote and every suggested label is the same category."),
        ],
    )
    def test_undefined_values_have_a_reason(self, votes: list[str], labels: str, reason: str) -> None:
        row = annotator_table(
            read_votes(np.array([list(item) for item in votes]), {"labels": list(labels)}), "labels"
        ).to_dicts()[-1]
        assert math.isnan(row["kappa_without"])
        assert math.isnan(row["change"])
        assert reason in row["reason"]

    def test_annotators_must_be_known(self) -> None:
        for item_votes in (
            read_votes([["a", "b"], ["a", "a", "a"]], {"labels": ["a", "b"]}),
            read_matrix([[2, 1], [0, 3]], {"labels": [0, 1]}),
        ):
            for table in (annotator_table, compare_with_annotators):
                with expect_error("annotators-unknown", "annotators"):
                    table(item_votes, "labels")

    def test_no_items(self) -> None:
        table = annotator_table(read_votes(np.empty((0, 2), object), {"labels": []}), "labels")
        assert table.column("items") == [0, 0]
        assert all(map(math.isnan, table.column("kappa_without")))

    def test_by_hand(self) -> None:
        votes = np.array([list(item) for item in ("aaa", "aab", "bbb", "bba", "ccc", "bbc")], object)
        table = annotator_table(read_votes(votes, {"rule": list("aabbcc")}), "rule")
        row = next(iter(table))
        assert (row["annotator"], row["items"], row["agree"], row["reason"]) == (0, 6, 5 / 6, None)
        # With each of the two others: on the label both, one, both, one, both; on the last item one, on another label.
        assert row["differential"] == pytest.approx((2 + 1 + 2 + 1 + 2 - 1) / 12)
        assert row["weight"] == pytest.approx(1 / 3)
        whole, without = dh_kappa(votes, list("aabbcc")), dh_kappa(votes[:, 1:], list("aabbcc"))
        assert row["kappa_without"] == without.value
        assert row["change"] == pytest.approx(without.value - whole.value)
        assert "rule" in table.title

    def test_each_undefined_value_has_its_reason(self) -> None:
        votes = np.array([["a", "a", None], ["a", "b", None]], object)
        rows = list(annotator_table(read_votes(votes, {"rule": ["a", "b"]}), "rule"))
        assert rows[0]["reason"] == rows[1]["reason"] != rows[2]["reason"]
        assert all(row["reason"] for row in rows)

    def test_values_beyond_the_range_of_floats_are_infinite(self) -> None:
        """D_a of the only voter on the light item is divided by 1 - E, which is about 1e-600."""
        votes = np.array([["a", "a", None], ["b", "b", "a"]], object)
        table = annotator_table(read_votes(votes, {"rule": ["a", "a"]}, sample_weight=[1e308, 1e-308]), "rule")
        assert table.column("kappa")[2] == -math.inf

    def test_a_pool_by_stratum_is_a_weight(self) -> None:
        drawn = simulate(60, annotators=3, rng=2)
        strata, pool = ["x"] * 20 + ["y"] * 40, {"x": 100, "y": 1000}
        pooled = annotator_table(read_votes(drawn.votes, drawn.suggested, strata=strata), "labeler", pool)
        weight = [5.0] * 20 + [25.0] * 40
        weighted = annotator_table(read_votes(drawn.votes, drawn.suggested, sample_weight=weight), "labeler")
        assert pooled.column("kappa") == weighted.column("kappa")


def random_votes(seed: int, n: int, categories: str, width: int) -> ItemVotes:
    random = np.random.default_rng(seed)
    votes = np.array([*categories, None], object)[random.integers(0, len(categories) + 1, (n, width))]
    return read_votes(votes, {"labels": np.array([*categories], object)[random.integers(0, len(categories), n)]})


@pytest.mark.parametrize("block", [1, 40, 1 << 20])
def test_blocks_change_nothing(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    item_votes = random_votes(1, 60, "abcd", 6)
    expected = annotator_parts(item_votes, "labels"), compare_with_annotators(item_votes, "labels").to_dict()
    monkeypatch.setattr(annotator_votes, "_BLOCK", block)
    assert (annotator_parts(item_votes, "labels"), compare_with_annotators(item_votes, "labels").to_dict()) == expected


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_stand_for_several_items(weighted: bool) -> None:
    item_votes = random_votes(2, 300, "ab", 3)
    if weighted:
        weight = np.random.default_rng(5).choice([0.1, 0.7], 300)
        item_votes = replace(item_votes, columns=replace(item_votes.columns, weight=weight))
    merged = item_votes.merged()
    assert merged is not item_votes
    assert annotator_parts(merged, "labels") == annotator_parts(item_votes, "labels")
    one, other = (compare_with_annotators(votes, "labels") for votes in (item_votes, merged))
    assert one.to_dict() == other.to_dict()
    assert one.skipped == ()


@pytest.mark.parametrize("bits", [(12, 15), (25, 20), (40, 61)])
def test_sums_and_their_products_beyond_64_bits(bits: tuple[int, int]) -> None:
    rows: Rows = [["a", "a", "b"], ["a", "b", "b"], ["b", "b", None], ["a", None, "a"], ["b", "a", "b"]]
    times = [1, 2 ** bits[0], 3, 2 ** bits[1], 7]
    item_votes = read_votes(np.array(rows, object), {"labels": list("abbab")}, sample_weight=[float(w) for w in times])
    found = annotator_parts(item_votes, "labels")

    def kappa(own: Rows) -> Fraction:
        kept = [(i, [v for v in row if v is not None]) for i, row in enumerate(own)]
        items = [item_oracle.Item(tuple(votes), "abbab"[i], F(times[i]), None) for i, votes in kept if len(votes) > 1]
        return item_oracle.Oracle(items, "ab").kappa

    for a, part in enumerate(found):
        without = kappa([[*row[:a], *row[a + 1 :]] for row in rows])
        assert (part.kappa_without, part.change) == (without, without - kappa(rows))
