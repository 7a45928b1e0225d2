"""Intervals for other annotators: the worked example and the derivative by the weight of an annotator, in fractions."""

from collections.abc import Hashable
from fractions import Fraction
from random import Random

import pytest

import other_annotators_oracle as oracle

F = Fraction
VOTES = ["0000", "0010", "1111", "1101", "2220", "1122", "2202", "0110"]
ITEMS: list[dict[Hashable, Hashable]] = [dict(enumerate(map(int, votes))) for votes in VOTES]
LABELS = [0, 0, 1, 1, 2, 2, 2, 0]
V = F(319488, 23639903)


# The worked example


def test_worked_example() -> None:
    known = oracle.kappa(ITEMS, LABELS)
    found = oracle.variance(ITEMS, known.u)
    assert known.kappa == F(159, 287)
    assert list(found.U.values()) == [F(16, 287), F(192, 82369), F(-32, 287), F(4400, 82369)]
    assert (found.c, found.noise) == (F(4, 3), F(679971328, 47492565127))
    assert F(166438912, 6784652161) == found.B0
    assert F(775331840, 142477695381) == found.B1
    assert float(known.down) == pytest.approx(-0.613240, abs=5e-7)
    assert float(known.up) == pytest.approx(0.433561, abs=5e-7)
    assert float(V + found.B1) ** 0.5 == pytest.approx(0.137683, abs=5e-7)


def test_worked_limits() -> None:
    known = oracle.kappa(ITEMS, LABELS)
    found, added = oracle.variance(ITEMS, known.u), ((0.25, float(known.down)), (0.25, float(known.up)))
    low, high, df = oracle.limits(float(known.kappa), 0.100866, 0.776856, float(V), 8, found, added)
    assert low == pytest.approx(-0.178268, abs=2e-6)
    assert high == pytest.approx(0.992144, abs=2e-6)
    assert df == (3, 3)


# U_a is a derivative


@pytest.mark.parametrize("which", ["kappa", "fleiss", "typical"])
@pytest.mark.parametrize("seed", range(3))
def test_influence_of_an_annotator_is_a_derivative(which: str, seed: int) -> None:
    random, step = Random(seed), F(1, 10**12)
    items: list[oracle.Votes] = [{a: random.randrange(3) for a in range(4)} for _ in range(7)]
    labels: list[Hashable] = [random.choice(list(votes.values())) for votes in items]
    known = {
        "kappa": lambda: oracle.kappa(items, labels, corrected=False),
        "fleiss": lambda: oracle.fleiss(items, corrected=False),
        "typical": lambda: oracle.typical(items, corrected=False),
    }[which]()
    even: dict[Hashable, Fraction] = dict.fromkeys(range(4), F(1))
    assert oracle.weighted(items, labels, even, which) == known.kappa
    for a, pull in oracle.variance(items, known.u).U.items():
        slope = (oracle.weighted(items, labels, even | {a: 1 + step}, which) - known.kappa) / step
        assert float(slope) == pytest.approx(float(pull), abs=1e-9)
