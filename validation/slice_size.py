"""Simulate how often the comparison of slices finds a difference if all slices have the same kappa.

Run ``python validation/slice_size.py``; it prints a table in some minutes.
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np

from dhkappa.inputs.arrays import LABELER, read_votes
from dhkappa.inputs.slices import slices_of_arrays
from dhkappa.stats.kappa import estimate_dh
from dhkappa.stats.sample import sample_of
from dhkappa.stats.slice_table import slices_of
from simulation import Floats, Generator, answers, draw, true_kappa

ACCURACY = 0.85  # of votes
CELLS = tuple(product((5, 20), (15, 50, 150), ("equal", "different")))  # slices, items of each, prevalences
SETS = 300
M, N = 3, 3


def label_accuracy(shares: Floats, votes: Floats, kappa: float) -> float:
    """Return the accuracy of labels that gives a kappa, by bisection."""
    low, high = 1 / M, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if true_kappa(shares, votes, answers(middle, M)) < kappa else (low, middle)
    return low


def one_set(rng: Generator, slices: int, size: int, kind: str, kappa: float) -> tuple[float, float]:
    """Return the least adjusted p-value of a simulated data set, and the share of differences whose limits cover 0."""
    votes, labels, chances = [], [], answers(ACCURACY, M)
    for _ in range(slices):
        accuracy = 1.0
        while accuracy > 0.999:  # this kappa is out of reach with these shares
            shares = np.full(M, 1 / M) if kind == "equal" else rng.dirichlet(np.full(M, 2.0))
            accuracy = label_accuracy(shares, chances, kappa)
        truth = rng.choice(M, size, p=shares)
        votes.append(draw(rng, chances, np.repeat(truth[:, None], N, axis=1)))
        labels.append(draw(rng, answers(accuracy, M), truth))
    read = read_votes(np.concatenate(votes), np.concatenate(labels))
    [column] = slices_of_arrays(np.repeat(np.arange(slices), size), read, votes)
    whole = estimate_dh(sample_of(read.distinct_patterns()[0]))
    table = slices_of(column, LABELER, whole, grade=lambda estimate, interval, name: "")
    rows = [row for row in table.table if row["pvalue"] == row["pvalue"]]
    covered = [row["difference_low"] <= 0 <= row["difference_high"] for row in rows]
    return table.pvalue, float(np.mean(covered))


def main() -> None:
    """Print a table in Markdown."""
    print("| slices | items each | prevalences | kappa | global p < .05 | differences covered |")
    print("|---|---|---|---|---|---|")
    for place, ((slices, size, kind), kappa) in enumerate(product(CELLS, (0.5,))):
        rng = np.random.default_rng([place, 7])
        found = np.array([one_set(rng, slices, size, kind, kappa) for _ in range(SETS)])
        found_share, covered = (found[:, 0] < 0.05).mean(), found[:, 1].mean()
        print(f"| {slices} | {size} | {kind} | {kappa} | {found_share:.1%} | {covered:.1%} |")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
