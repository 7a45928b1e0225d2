"""The worked examples and edge tests of docs/methods.md, every part with == on fractions."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import pytest

import oracle
from dhkappa import Kappa, dh_kappa, fleiss_kappa, tally
from strategies import Data, from_counts

F = Fraction


@dataclass(frozen=True)
class Example:
    data: Data
    n: int
    votes: int
    C: tuple[F, ...]
    L: tuple[F, ...]
    R: F
    S: F
    C_E: F
    C_F: F
    D: F
    E: F
    kappa: F
    random: F
    fleiss: F
    excluded: oracle.Excluded


NONE_EXCLUDED = oracle.Excluded(0, 0, 0)

EXAMPLES = {
    "example 1": Example(
        data=from_counts("300/1 210/1 030/2 111/2 003/3 030/3"),
        n=6,
        votes=18,
        C=(F(1, 3), F(4, 9), F(2, 9)),
        L=(F(1, 3), F(1, 3), F(1, 3)),
        R=F(5, 9),
        S=F(1, 6),
        C_E=F(29, 243),
        C_F=F(58, 243),
        D=F(7, 18),
        E=F(-29, 243),
        kappa=F(247, 544),
        random=F(-59, 544),
        fleiss=F(59, 104),
        excluded=NONE_EXCLUDED,
    ),
    "example 2, ragged": Example(
        data=from_counts("200/1 210/1 031/2 002/3 100/1 000/2 020/- 120/1"),
        n=5,
        votes=14,
        C=(F(2, 5), F(7, 20), F(1, 4)),
        L=(F(3, 5), F(1, 5), F(1, 5)),
        R=F(17, 30),
        S=F(1, 15),
        C_E=F(133, 1000),
        C_F=F(53, 250),
        D=F(1, 2),
        E=F(-79, 1000),
        kappa=F(579, 1079),
        random=F(-263, 3237),
        fleiss=F(173, 393),
        excluded=oracle.Excluded(no_votes=1, one_vote=1, no_label=1),
    ),
    # By eq. 1-3, R = 4/5 and C_E = 1/2.
    "example 3, two categories": Example(
        data=from_counts("20/1 20/1 11/1 02/2 02/1"),
        n=5,
        votes=10,
        C=(F(1, 2), F(1, 2)),
        L=(F(4, 5), F(1, 5)),
        R=F(3, 5),
        S=F(1, 5),
        C_E=F(1, 4),
        C_F=F(1, 4),
        D=F(2, 5),
        E=F(0),
        kappa=F(2, 5),
        random=F(0),
        fleiss=F(3, 5),
        excluded=NONE_EXCLUDED,
    ),
}

LAYOUTS: dict[str, Callable[[Data], Kappa]] = {
    "votes": lambda d: dh_kappa(d.votes, d.suggested, categories=d.categories),
    "votes, categories as found": lambda d: dh_kappa(d.votes, d.suggested),
    "counts": lambda d: dh_kappa(counts=d.counts, suggested=d.suggested, categories=d.categories),
    "tally": lambda d: dh_kappa(tally(d.votes, d.suggested, categories=d.categories)),
    "tally of counts": lambda d: dh_kappa(tally(counts=d.counts, suggested=d.suggested, categories=d.categories)),
}

every_layout = pytest.mark.parametrize("score", LAYOUTS.values(), ids=LAYOUTS)
every_example = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)


@every_example
@every_layout
def test_parts_against_worked_example(score: Callable[[Data], Kappa], example: Example) -> None:
    result = score(example.data)
    parts = result.parts
    assert parts is not None
    assert result.categories == example.data.categories
    assert tuple(parts.C[j] for j in result.categories) == example.C
    assert tuple(parts.L[j] for j in result.categories) == example.L
    assert (parts.R, parts.S, parts.D) == (example.R, example.S, example.D)
    assert (parts.C_E, parts.C_F, parts.E) == (example.C_E, example.C_F, example.E)


@every_example
@every_layout
def test_kappa_against_worked_example(score: Callable[[Data], Kappa], example: Example) -> None:
    result = score(example.data)
    assert result.exact == example.kappa
    assert result.value == float(result) == float(example.kappa)
    assert result.baselines.random == float(example.random)
    assert result.fleiss == float(example.fleiss)
    assert (result.n_items, result.n_votes) == (example.n, example.votes)
    excluded = oracle.Excluded(result.excluded.no_votes, result.excluded.one_vote, result.excluded.no_label)
    assert excluded == example.excluded
    assert result.excluded.total == excluded.no_votes + excluded.one_vote + excluded.no_label
    assert result.reason is None


@every_example
def test_oracle_against_worked_example(example: Example) -> None:
    data = example.data
    truth = oracle.dh(data.votes, data.suggested, data.categories)
    assert (tuple(truth.C.values()), tuple(truth.L.values())) == (example.C, example.L)
    assert (truth.R, truth.S, truth.D) == (example.R, example.S, example.D)
    assert (truth.C_E, truth.C_F, truth.E) == (example.C_E, example.C_F, example.E)
    assert (truth.kappa, truth.random, truth.fleiss) == (
        example.kappa,
        example.random,
        example.fleiss,
    )
    assert (truth.n, truth.votes, truth.excluded) == (example.n, example.votes, example.excluded)
    assert oracle.random_by_permutation(data.votes, data.suggested) == example.random


def test_fleiss_kappa_against_eq_1_to_3_by_hand() -> None:
    """Example 2: the item without a suggested label counts here, so n = 6."""
    result = fleiss_kappa(EXAMPLES["example 2, ragged"].data.votes)
    parts = result.parts
    assert parts is not None
    assert {1: F(1, 3), 2: F(11, 24), 3: F(5, 24)} == parts.C
    assert (F(25, 36), F(35, 96)) == (parts.R, parts.C_E)
    assert parts.S == parts.C_F == 0
    assert not parts.L
    assert result.exact == F(95, 183)
    assert result.value == float(F(95, 183))
    assert (result.n_items, result.n_votes) == (6, 16)
    assert (result.excluded.no_votes, result.excluded.one_vote) == (1, 1)


@every_layout
@pytest.mark.parametrize(
    ("text", "kappa"),
    [
        pytest.param("300/2 " * 5, F(0), id="all votes 1, all labels 2"),
        pytest.param("30/1 " * 4, None, id="one category only, E = 1"),
        pytest.param("30/1 03/2", F(1), id="flawless"),
        pytest.param("011/1 " * 4, F(1, 3), id="nobody chooses the label"),
    ],
)
def test_kappa_against_edge_test(score: Callable[[Data], Kappa], text: str, kappa: F | None) -> None:
    result = score(from_counts(text))
    assert result.exact == kappa
    if kappa is None:
        assert math.isnan(result.value)
        assert result.reason
    else:
        assert result.value == float(kappa)
        assert result.reason is None
