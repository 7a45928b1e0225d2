"""Items to vote on next, against probabilities summed over every possible vote."""

from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction

import numpy as np
import pandas  # noqa: F401 - without these libraries, this file is left out
import polars  # noqa: F401
import pytest
from hypothesis import given

import dhkappa
import oracle
from dhkappa.core.items import ItemVotes
from dhkappa.inputs.arrays import read_votes
from dhkappa.stats.next_votes import next_votes
from expect import expect_error
from strategies import Data, ragged

F = Fraction


def item_votes_of(data: Data) -> ItemVotes:
    return read_votes(data.votes, {"rule": data.suggested}, categories=data.categories)  # type: ignore[arg-type]


def standing(votes: Sequence[Hashable], label: Hashable, categories: Sequence[Hashable]) -> int:
    """1 if the label has more votes than any other category, 0 if it is tied, -1 if it has fewer."""
    others = max((votes.count(one) for one in categories if one != label), default=0)
    return (votes.count(label) > others) - (votes.count(label) < others)


def expected_scores(data: Data) -> dict[int, Fraction]:
    """Add up the probability of every category that changes the standing, by item with a suggested label."""
    cast = [list(oracle.cast(item)) for item in data.votes]
    found = {}
    for place, label in enumerate(data.suggested):
        if label is None:
            continue
        alike = Counter(
            vote for votes, other in zip(cast, data.suggested, strict=True) if other == label for vote in votes
        )
        total, n = sum(alike.values()), len(cast[place])
        now = standing(cast[place], label, data.categories)
        found[place] = F(0)
        for one in data.categories:
            share = F(alike[one], total) if total else F(1, len(data.categories))
            if standing([*cast[place], one], label, data.categories) != now:
                found[place] += (cast[place].count(one) + share) / (n + 1)
    return found


@given(ragged(max_items=12).filter(lambda data: len(data.categories) > 1))
def test_scores_against_every_possible_vote(data: Data) -> None:
    table = next_votes(item_votes_of(data), "rule", 99)
    expected = expected_scores(data)
    assert sorted(table.column("item")) == sorted(expected)
    for row in table:
        # A few roundings of 10^-16.
        assert row["score"] == pytest.approx(float(expected[row["item"]]), abs=1e-14)
        assert row["suggested"] == data.suggested[row["item"]]
        assert row["n_votes"] == len(oracle.cast(data.votes[row["item"]]))
    order = sorted(expected, key=lambda place: (-expected[place], len(oracle.cast(data.votes[place])), place))
    assert table.column("item") == order
    assert next_votes(item_votes_of(data), "rule", 3).to_dicts() == table.to_dicts()[:3]


def test_a_vote_that_cannot_change_anything_has_score_0() -> None:
    votes = [["a", "a", "a"], ["a", "b", None], ["a", "a", "b"], ["b", None, None]]
    table = next_votes(read_votes(votes, {"rule": ["a", "a", "a", "a"]}), "rule")
    assert dict(zip(table.column("item"), table.column("reason"), strict=True)) == {
        1: "votes tied",
        3: "one vote, excluded from the audit",
        2: "decided by 1 vote",
        0: "3 votes, all alike",
    }
    assert table.column("item") == [1, 3, 2, 0]
    assert table.column("score")[-1] == 0


def test_reasons_do_not_tell_the_suggested_label() -> None:
    sim = dhkappa.simulate(60, labelers={"llm": 0.7}, annotators=3, rng=1)
    one = dhkappa.audit(sim.votes, sim.suggested).next_votes("llm", 60)
    other = dhkappa.audit(sim.votes, {"llm": np.roll(sim.suggested["llm"], 1)}).next_votes(limit=60)
    reasons = [dict(zip(table.column("item"), table.column("reason"), strict=True)) for table in (one, other)]
    assert reasons[0] == reasons[1]
    assert one.column("item") != other.column("item")


def test_merged_rows_and_tables_have_the_same_items() -> None:
    duckdb = pytest.importorskip("duckdb")
    sim = dhkappa.simulate(500, labelers={"llm": 0.7}, annotators=3, rng=3)
    ids = [f"{place:04}" for place in range(500)]
    columns = {"item": ids, "suggested_llm": sim.suggested["llm"].tolist()}
    columns |= {f"ann_{place}": column.tolist() for place, column in enumerate(sim.votes.T)}
    tables = [dhkappa.Table(columns).to_pandas(), dhkappa.Table(columns).to_polars()]
    tables += [duckdb.from_arrow(dhkappa.Table(columns).to_arrow())]
    votes = read_votes(sim.votes, {"llm": sim.suggested["llm"]})
    assert votes.merged().group is not None
    expected = [{**row, "item": ids[row["item"]]} for row in next_votes(votes, "llm", 40)]
    assert [row["item"] for row in expected] == [
        ids[item] for item in next_votes(votes.merged(), "llm", 40).column("item")
    ]
    for table in tables:
        assert dhkappa.audit(table).next_votes(limit=40).to_dicts() == expected


def test_a_large_table_is_asked_for_the_items(monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb = pytest.importorskip("duckdb")
    rows = [(f"{place:03}", "ab"[place % 3 == 0], "a", "b" if place % 5 == 0 else "a") for place in range(90)]
    table = duckdb.sql(f"FROM (VALUES {', '.join(map(str, rows))}) t(item, suggested, ann_1, ann_2)")
    every = {row["item"]: row for row in dhkappa.audit(table).next_votes(limit=90)}
    monkeypatch.setattr("dhkappa.inputs.dataset._MAX_FETCHED", 10)
    found = dhkappa.audit(table).next_votes(limit=30)  # equal ones by group, as such a table has no positions
    assert found.to_dicts() == dhkappa.audit(table).next_votes(limit=30).to_dicts()
    assert found.to_dicts() == [every[item] for item in found.column("item")]
    assert found.column("score") == sorted((row["score"] for row in every.values()), reverse=True)[:30]


def test_items_of_weight_0_and_without_label_are_left_out() -> None:
    votes = [["a", "b"], ["a", "b"], ["a", "b"]]
    found = read_votes(votes, {"rule": ["a", None, "b"]}, sample_weight=np.array([1.0, 1.0, 0.0]))
    assert next_votes(found, "rule").column("item") == [0]


def test_one_vote_per_item() -> None:
    found = dhkappa.audit([["a", None], ["b", None], [None, None]], ["a", "a", "b"])
    assert isinstance(found, dhkappa.SingleVoteAudit)
    assert found.next_votes(limit=3).column("item") == [2, 0, 1]
    assert found.next_votes(limit=3).column("score") == [1, 1 / 4, 1 / 4]


def test_errors() -> None:
    sim = dhkappa.simulate(30, labelers={"llm": 0.7}, rng=1)
    with expect_error("invalid-limit"):
        dhkappa.audit(sim.votes, sim.suggested).next_votes(limit=0)
    with expect_error("items-unknown"):
        dhkappa.audit(dhkappa.tally(sim.votes, sim.suggested)).next_votes(limit=3)
