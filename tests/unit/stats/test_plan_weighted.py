"""Plans with agreement weights, against loops over pairs of votes."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from weighted_cases import labelers_of

from dhkappa import dh_kappa, plan
from dhkappa.stats.influence import influence
from dhkappa.stats.plan import observed, variance
from exact import float_terms
from weighted_oracle import items_of, named_weights

F = Fraction


def test_plan_from_a_weighted_pilot() -> None:
    """With the votes of the pilot, the variance from pairs of votes is that of the influence values."""
    votes, labels = labelers_of(150, seed=10, labelers=1)
    more = [[*item, vote] for item, vote in zip(votes, labelers_of(150, seed=11)[1]["labeler_0"], strict=True)]
    pilot = dh_kappa(more, labels["labeler_0"], categories=range(5), weights="quadratic")
    known = float_terms(pilot)
    z = observed(known, 4)
    phi = influence(known)
    assert variance(z, 4) == pytest.approx(float((phi**2 * known.items).sum() / known.n), rel=1e-11)
    planned = plan(0.05, pilot)
    rows = {row["votes"]: row for row in planned.options}
    assert rows[4]["items"] == pytest.approx(planned.items, rel=0.01)
    assert rows[2]["sigma"] > rows[4]["sigma"] > rows[7]["sigma"]
    assert planned.kappa == pilot.value


def test_plan_counts_pairs_of_votes() -> None:
    """z_2, z_1 and z_0 are means over pairs of pairs of votes that share two, one and no vote."""
    votes, labels = [[0, 1, 1, 3], [2, 2, 4, 4], [0, 0, 1, 2]], [1, 2, 0]
    kappa = dh_kappa(votes, labels, categories=range(5), weights="linear")
    items = items_of(votes, labels, range(5), named_weights("linear", 5))
    sums, numbers = [F(0)] * 3, [0] * 3
    for item, label in zip(votes, labels, strict=True):

        def phi(pair: tuple[int, int], item: list[int] = item, label: int = label) -> Fraction:
            own = [item[k] for k in pair]
            more = replace(items, votes=[*items.votes, own], labels=[*items.labels, label], share=[*items.share, F(0)])
            return more.influence(lambda of: of.kappa, 3)

        pairs = {pair: phi(pair) for pair in combinations(range(4), 2)}
        for one, other in product(pairs, repeat=2):
            shared = len({*one} & {*other})
            sums[shared] += pairs[one] * pairs[other]
            numbers[shared] += 1
    expected = [float(total / number) for total, number in zip(sums, numbers, strict=True)]
    assert observed(float_terms(kappa), 4) == pytest.approx(expected, rel=1e-11)


def test_plan_with_identity_weights() -> None:
    votes, labels = labelers_of(80, seed=12, labelers=1)
    plain, same = (
        plan(0.05, dh_kappa(votes, labels["labeler_0"], categories=range(5), weights=w)) for w in (None, np.eye(5))
    )
    assert (same.items, same.items_assured, same.cheapest) == (plain.items, plain.items_assured, plain.cheapest)
    assert same.options.column("sigma") == pytest.approx(plain.options.column("sigma"), rel=1e-11)
