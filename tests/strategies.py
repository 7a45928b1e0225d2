"""Hypothesis strategies: votes and suggested labels of every shape and spelling that the package takes."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum, StrEnum
from random import Random

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st


class Animal(StrEnum):
    CAT = "cat"
    DOG = "dog"
    EEL = "eel"


class Grade(IntEnum):
    LOW = 10
    MIDDLE = 20
    HIGH = 30


class Colour(Enum):
    RED = 1
    GREEN = "g"
    BLUE = (0, 0, 255)


# Label -> the ways in which a user may write it. "nan", "NA" and "None" as text are labels, not missing.
ALPHABETS: dict[str, dict[Hashable, list[object]]] = {
    "str": {c: [c, np.str_(c)] for c in ("ham", "spam", "nan", "NA", "None", "naïve Bayes")},
    "numbered str": {f"c{i}": [f"c{i}"] for i in (1, 2, 3, 10, 20, 100)},
    "int": {i: [i, np.int64(i), float(i), np.float32(i)] for i in (-3, 0, 1, 2, 7, 300)},
    "small int": {i: [i, np.uint8(i), np.int16(i)] for i in range(6)},
    "large int": {i: [i] for i in (-(2**62), 2**40, 2**53, 2**53 + 1, 2**62, 2**63 - 1)},
    "bool": {b: [b, np.bool_(b)] for b in (False, True)},
    "StrEnum": {a.value: [a, a.value] for a in Animal},
    "IntEnum": {g.value: [g, g.value] for g in Grade},
    "Enum": {c.name: [c] for c in Colour},
}
MISSING: list[object] = [None, float("nan"), np.float64("nan")]


@dataclass(frozen=True)
class Data:
    """Votes (one list an item) and suggested labels, None where missing, and how a user writes them."""

    categories: tuple[Hashable, ...]
    votes: Sequence[Sequence[Hashable]]
    suggested: Sequence[Hashable]
    spelling: dict[Hashable, object] = field(default_factory=dict)

    def spell(self, labels: Sequence[Hashable]) -> list[object]:
        return [self.spelling.get(label, label) for label in labels]

    @property
    def written_votes(self) -> list[list[object]]:
        return [self.spell(item) for item in self.votes]

    @property
    def written_suggested(self) -> list[object]:
        return self.spell(self.suggested)

    @property
    def written_categories(self) -> list[object]:
        return self.spell(self.categories)

    @property
    def object_votes(self) -> npt.NDArray[np.object_]:
        """Votes as an n x N array, short items filled with missing votes."""
        array = np.full((len(self.votes), max(map(len, self.votes), default=0)), None, dtype=object)
        for i, item in enumerate(self.written_votes):
            for k, vote in enumerate(item):
                array[i, k] = vote
        return array

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """The paper's matrix A, n x m."""
        rows = [[item.count(category) for category in self.categories] for item in self.votes]
        return np.array(rows, dtype=np.int64).reshape(len(self.votes), len(self.categories))

    @property
    def one_hot(self) -> npt.NDArray[np.int64]:
        """The paper's matrix B, n x m; only where no suggested label is missing."""
        rows = [[int(label == category) for category in self.categories] for label in self.suggested]
        return np.array(rows, dtype=np.int64).reshape(len(self.suggested), len(self.categories))

    def take(self, items: Sequence[int]) -> "Data":
        return replace(self, votes=[self.votes[i] for i in items], suggested=[self.suggested[i] for i in items])

    def labeled(self) -> "Data":
        return self.take([i for i, label in enumerate(self.suggested) if label is not None])

    def renamed(self, names: Sequence[Hashable]) -> "Data":
        """The same data with category j called names[j]."""
        name: dict[Hashable, Hashable] = dict(zip(self.categories, names, strict=True))
        name[None] = None
        return Data(
            categories=tuple(names),
            votes=[[name[vote] for vote in item] for item in self.votes],
            suggested=[name[label] for label in self.suggested],
        )

    def coded(self) -> "Data":
        return self.renamed(range(len(self.categories)))


def from_counts(text: str) -> Data:
    """Items as docs/methods.md writes them: "210/1" has votes 1, 1, 2 and label 1; "02/-" no label."""
    votes: list[list[Hashable]] = []
    suggested: list[Hashable] = []
    width = 0
    for item in text.split():
        counts, label = item.split("/")
        width = max(width, len(counts))
        votes.append([j for j, count in enumerate(counts, start=1) for _ in range(int(count))])
        suggested.append(None if label == "-" else int(label))
    return Data(tuple(range(1, width + 1)), votes, suggested)


@st.composite
def ragged(draw: st.DrawFn, max_items: int = 40, max_votes: int = 8, max_categories: int = 6) -> Data:
    """Ragged votes, missing votes and labels, unused categories, suggested labels that nobody voted for.

    Hypothesis draws the shape and a seed, the seed draws the votes: a tenth of the time of drawing each vote,
    and n, m and N still shrink.
    """
    alphabet = ALPHABETS[draw(st.sampled_from(sorted(ALPHABETS)))]
    random = Random(draw(st.integers(0, 2**32)))
    m = min(draw(st.sampled_from([3, 2, 4, 5, 6, 4, 5, 6, 1])), max_categories, len(alphabet))
    n = min(draw(st.sampled_from([3, 1, 2, *range(4, 41), 0])), max_items)
    N = min(draw(st.sampled_from([3, 2, *range(4, 9), 4, 5, 6, 1, 0])), max_votes)
    vote_missing, label_missing = (draw(st.sampled_from([0, 0.1, 0.4])) for _ in range(2))
    accuracy = draw(st.sampled_from([0.7, 0, 1]))  # how often a vote repeats its item's label
    unused, unvoted = (draw(st.sampled_from([0, 0, 0, 1, 2])) for _ in range(2))

    categories = random.sample(list(alphabet), m)
    suggestible = categories[min(unused, m - 1) :]
    voted = suggestible[min(unvoted, len(suggestible) - 1) :]
    votes: list[list[Hashable]] = []
    suggested: list[Hashable] = []
    for _ in range(n):
        label = random.choice(suggestible)
        votable = [label if label in voted and random.random() < accuracy else random.choice(voted)] * N
        if random.random() < 0.7:
            votable = [vote if random.random() < accuracy else random.choice(voted) for vote in votable]
        short = random.randint(min(N, random.randint(0, 2)), N) if vote_missing else N
        votes.append([None if random.random() < vote_missing else vote for vote in votable[:short]])
        suggested.append(None if random.random() < label_missing else label)
    spelling = {category: random.choice(alphabet[category]) for category in categories}
    spelling[None] = random.choice(MISSING)
    return Data(tuple(random.sample(categories, m)), votes, suggested, spelling)


@st.composite
def complete(draw: st.DrawFn, max_categories: int = 5) -> Data:
    """The paper's own setting: every item has N >= 2 votes and a suggested label."""
    random = Random(draw(st.integers(0, 2**32)))
    m = min(draw(st.sampled_from([3, 2, 4, 5, 1])), max_categories)
    n = draw(st.sampled_from(range(1, 13)))
    N = draw(st.sampled_from(range(2, 7)))
    favoured = draw(st.sampled_from([0, 1, 5]))  # how much likelier a vote for the label is
    categories = range(1, m + 1)
    suggested = [random.choice(categories) for _ in range(n)]
    votes = [[random.choice([*categories, *[label] * favoured]) for _ in range(N)] for label in suggested]
    return Data(tuple(categories), votes, suggested)
