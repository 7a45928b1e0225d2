"""Scores of annotators at the edges of the data; the numbers are tested in tests/statistics."""

import json
import math
from typing import Any

import numpy as np
import pytest

import dhkappa
from dhkappa import AnnotatorScores, DataError
from dhkappa.stats import annotator_result


def scores_of(votes: Any, *data: Any, **options: Any) -> AnnotatorScores:
    found: AnnotatorScores = dhkappa.audit(votes, *data, progress=False, **options).annotator_scores()
    return found


def crowd(n: int = 400, annotators: int = 6, careless: int | None = 5) -> Any:
    votes = dhkappa.simulate(n, annotators=annotators, rng=1).votes.copy()
    if careless is not None:
        votes[:, careless] = np.random.default_rng(1).permutation(votes[:, careless])
    return votes


def test_careless_annotator_is_found() -> None:
    found = scores_of(crowd())
    assert (found.differs, found.uninformed) == ((5,), (5,))
    first = next(iter(found.listed()))
    assert (first["annotator"], first["differs"], first["uninformed"]) == (5, "below", True)
    assert first["remark"] == "differs (below), votes not shown to be better than guesses"
    assert "1 of 6 annotators with 10 items or more differs from the rest" in found.summary


def test_flagged_annotators_are_first_then_the_lowest() -> None:
    found = scores_of(crowd())
    rest = found.table.column("shrunk_score")[1:]
    assert found.table.column("annotator")[0] == 5
    assert rest == sorted(rest)
    assert len(set(rest)) > 1
    assert found.table.title == "Annotators, flagged first, then from the lowest to the highest"
    alike = scores_of(crowd(careless=None)).table
    assert alike.column("shrunk_score") == sorted(alike.column("shrunk_score"))
    assert alike.title == "Annotators, from the lowest to the highest"


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (1, "at most 1 in 20 such flags is a false alarm"),
        (7, "of the 7 flagged, expect less than one to be a false alarm"),
        (20, "of the 20 flagged, expect at most 1 false alarm"),
        (21, "of the 21 flagged, expect at most 2 false alarms"),
        (140, "of the 140 flagged, expect at most 7 false alarms"),
    ],
)
def test_expected_false_alarms(n: int, text: str) -> None:
    assert annotator_result._false_alarms(n) == text


def test_annotators_alike_are_not_flagged() -> None:
    found = scores_of(crowd(careless=None))
    assert (found.differs, found.uninformed, found.listed().column("remark")) == ((), (), [None] * 6)
    assert found.summary == "None of 6 annotators with 10 items or more is shown to differ from the rest."


def test_annotator_with_one_label_is_not_shown_to_know_anything() -> None:
    votes = crowd(careless=None)
    votes[:, 2] = votes[0, 0]
    row = next(row for row in scores_of(votes).table if row["annotator"] == 2)
    assert (row["z"], row["uninformed"]) == (0, True)


def test_two_votes_say_nothing_about_who_differs() -> None:
    found = scores_of(crowd(annotators=2, careless=None))
    assert [note.code for note in found.notes] == ["annotators-two-votes"]
    assert all(map(math.isnan, found.table.column("pvalue")))
    assert "is not known" in found.summary


def test_few_items_say_nothing() -> None:
    found = scores_of(crowd(9))
    assert (found.n_tested, found.n_few, len(found.listed())) == (0, 6, 0)
    assert [note.code for note in found.notes] == ["annotators-few-items"]
    assert all(map(math.isnan, found.table.column("pvalue")))


@pytest.mark.parametrize("votes", [[["a", None]] * 30, [["a", "a", "a"]] * 30, [["a", "b", "b"]]])
def test_undefined_scores_are_nan(votes: list[list[str | None]]) -> None:
    found = dhkappa.audit(np.array(votes, object), progress=False)
    if not isinstance(found, dhkappa.AnnotatorAudit):
        return
    told = json.loads(json.dumps(found.annotator_scores().to_dict(), allow_nan=False))
    assert told["differs"] == told["uninformed"] == []
    if len(votes) > 1:
        assert told["reason"] is not None
        assert told["annotators"][0]["score"] is None


def test_weights_are_not_used() -> None:
    votes, weight = crowd(), np.random.default_rng(2).uniform(1, 5, 400)
    found, plain = scores_of(votes, sample_weight=weight), scores_of(votes)
    for row, same in zip(found.table, plain.table, strict=True):
        assert row["annotator"] == same["annotator"]
        assert [row["score"], row["low"], row["z"]] == pytest.approx([same["score"], same["low"], same["z"]])
    assert [note.code for note in found.notes] == ["scores-unweighted"]


def test_strata_do_not_change_scores() -> None:
    votes = crowd()
    found = scores_of(votes, strata=["x", "y"] * 200)
    assert found.table.column("score") == pytest.approx(scores_of(votes).table.column("score"))
    assert found.notes == ()


def test_order_of_items_and_merged_rows_do_not_matter() -> None:
    votes = crowd(60, 4, None)
    one, other = (scores_of(np.tile(rows, (5, 1))).table for rows in (votes, votes[::-1]))
    for row, same in zip(one, other, strict=True):
        assert row["annotator"] == same["annotator"]
        for name in ("score", "shrunk_score", "deviation", "pvalue", "z"):
            assert row[name] == pytest.approx(same[name]), name


def test_agreement_with_each_labeler() -> None:
    votes = crowd(careless=None)
    label = votes[:, 0].copy()
    label[:100] = None
    table = dhkappa.audit(votes, {"llm": label, "b": votes[:, 1]}, progress=False).annotator_scores().table
    for row in table:
        own = votes[:, row["annotator"]]
        assert row["agree_with_llm"] == pytest.approx(np.mean(own[100:] == votes[100:, 0]))
        assert row["agree_with_b"] == pytest.approx(np.mean(own == votes[:, 1]))


def test_unknown_annotators() -> None:
    with pytest.raises(DataError) as caught:
        scores_of([["a", "a", "b"], ["b", "b", "b"]] * 10)
    assert caught.value.code == "annotators-unknown"
