"""A corruption of the data never gives a labeler a better grade without a warning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars  # noqa: F401  # problem_rates needs it
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dhkappa
from problem_rates import NAMES, Data, base

Generator = np.random.Generator
GRADES = ("no-better-than-random", "clearly-below", "below", "slightly-below", "on-par", "better")  # the worst first


def clean(rng: Generator) -> Data:
    """Simulate 300 to 500 items with 4 or 5 annotators and a labeler of any quality."""
    accuracies = rng.uniform(0.65, 0.88, int(rng.integers(4, 6))).tolist()
    labelers = {"llm": float(rng.uniform(0.3, 0.9))}
    n, m = int(rng.integers(300, 500)), int(rng.integers(3, 6))
    return base(rng, n=n, categories=NAMES[:m], annotators=accuracies, labelers=labelers)


def judged(data: Data) -> tuple[int, set[str]]:
    """Return the rank of the grade, -1 if there is none, and the codes of the warnings and errors."""
    try:
        result = dhkappa.audit(data.dataset())
    except dhkappa.DataError as error:
        return -1, {error.code}
    code = result.verdict("llm").code
    alarms = {problem.code for problem in result.problems if problem.severity != "info"}
    return GRADES.index(code) if code in GRADES else -1, alarms


def changed(rng: Generator, values: Any, share: float, change: Callable[[Any], Any]) -> Any:
    """Change a share of the labels of an array."""
    found = np.array(values, object, copy=True)
    for place in np.ndindex(found.shape):
        if found[place] is not None and rng.random() < share:
            found[place] = change(found[place])
    return found


def with_labels(data: Data, labels: Any) -> Data:
    return replace(data, labels={"llm": list(labels)})


def with_annotator(data: Data, votes: Any, name: str) -> Data:
    names = (*data.annotators[: data.votes.shape[1]], name)
    return replace(data, votes=np.column_stack([data.votes, np.array(votes, object)]), annotators=names)


def majority(data: Data, rng: Generator) -> list[Any]:
    """Return the most frequent vote of each item, ties at random."""
    found = []
    for row in data.votes:
        counts = Counter(label for label in row if label is not None)
        most = [label for label, number in counts.items() if number == max(counts.values())]
        found.append(str(rng.choice(most)) if most else None)
    return found


def spelled_votes(data: Data, rng: Generator) -> Data:
    spell = [str.upper, str.capitalize, lambda text: f"{text} "][int(rng.integers(3))]
    return replace(data, votes=changed(rng, data.votes, float(rng.uniform(0.1, 0.6)), spell))


def spelled_labels(data: Data, rng: Generator) -> Data:
    return with_labels(data, changed(rng, data.labels["llm"], float(rng.uniform(0.2, 1)), str.title))


def coded_labels(data: Data, rng: Generator) -> Data:
    order = rng.permutation(len(NAMES))
    return with_labels(data, [str(order[NAMES.index(label)]) for label in data.labels["llm"]])


def copied_annotator(data: Data, rng: Generator) -> Data:
    return with_labels(data, data.votes[:, int(rng.integers(data.votes.shape[1]))])


def majority_labels(data: Data, rng: Generator) -> Data:
    return with_labels(data, majority(data, rng))


def almost_majority_labels(data: Data, rng: Generator) -> Data:
    labels = sorted({*data.truth})
    return with_labels(data, changed(rng, majority(data, rng), 0.005, lambda _: str(rng.choice(labels))))


def labeler_among_annotators(data: Data, rng: Generator) -> Data:
    return with_annotator(data, data.labels["llm"], str(rng.choice(["llm", "zoe"])))


def copied_votes(data: Data, rng: Generator) -> Data:
    return with_annotator(data, data.votes[:, int(rng.integers(data.votes.shape[1]))], "zoe")


def missing_votes(data: Data, rng: Generator) -> Data:
    how = str(rng.choice([" ", "#N/A", "<NA>", "\\N", "nan", "null", "N/A", "-"]))
    return replace(data, votes=changed(rng, data.votes, float(rng.uniform(0.1, 0.4)), lambda _: how))


def sets_of_labels(data: Data, rng: Generator) -> Data:
    sign = str(rng.choice(list(";|")))
    names = sorted({*data.truth})

    def both(label: str) -> str:
        return sign.join(rng.permutation([label, str(rng.choice([name for name in names if name != label]))]))

    return replace(data, votes=changed(rng, data.votes, 0.3, both))


def seconds_as_annotators(data: Data, rng: Generator) -> Data:
    what = str(rng.choice(["seconds", "confidence"]))
    values = list(map(str, range(2, 90))) if what == "seconds" else ["low", "medium", "high"]
    columns = {
        f"ann_{who}_{what}": rng.choice(values, len(data.ids)).tolist()
        for who in data.annotators[: data.votes.shape[1]]
    }
    return replace(data, wide=True, wide_columns=columns)


def hard_items_abstained(data: Data, rng: Generator) -> Data:
    """Leave out four of five labels of items on which annotators disagree."""
    labels = changed(rng, data.labels["llm"], 0.8, lambda _: None)
    for place, row in enumerate(data.votes):
        if len({label for label in row if label is not None}) < 2:
            labels[place] = data.labels["llm"][place]
    return with_labels(data, labels)


def other_ids(data: Data, rng: Generator) -> Data:
    """Spell two thirds of the ids of the items table in another way: only the rest is joined."""
    listed = [text.lower() if rng.random() < 2 / 3 else text for text in data.ids]
    return replace(data, wide=False, listed=listed)


def annotators_spelled(data: Data, rng: Generator) -> Data:
    spell: list[Callable[[str], str]] = [str, str.upper, str.capitalize]
    return replace(data, wide=False, voter=lambda name: spell[int(rng.integers(3))](name))


def adaptive_votes(data: Data, rng: Generator) -> Data:
    votes = data.votes.copy()
    votes[[row[0] == row[1] for row in votes], 2:] = None
    return replace(data, votes=votes)


CORRUPTIONS = [
    spelled_votes,
    spelled_labels,
    coded_labels,
    copied_annotator,
    majority_labels,
    almost_majority_labels,
    labeler_among_annotators,
    copied_votes,
    missing_votes,
    sets_of_labels,
    seconds_as_annotators,
    hard_items_abstained,
    other_ids,
    annotators_spelled,
    adaptive_votes,
]


def check(corrupt: Callable[[Data, Generator], Data], seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = clean(rng)
    before, _ = judged(data)
    after, alarms = judged(corrupt(data, rng))
    assert alarms or after <= before


@pytest.mark.parametrize("corrupt", CORRUPTIONS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=3)
def test_no_better_grade_without_a_warning(corrupt: Callable[[Data, Generator], Data], seed: int) -> None:
    check(corrupt, seed)


@pytest.mark.slow
@pytest.mark.parametrize("corrupt", CORRUPTIONS)
def test_no_better_grade_on_many_data_sets(corrupt: Callable[[Data, Generator], Data]) -> None:
    for seed in range(8):
        check(corrupt, seed)
