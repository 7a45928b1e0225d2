"""What the rules look at if a vote is a set of labels: the single labels in the place of categories."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dhkappa.core import Categories, Label
from dhkappa.core.grouping import Encoded
from dhkappa.core.items import ItemColumns, ItemVotes
from dhkappa.core.label_sets import SettledSets
from dhkappa.errors import Problem, shown
from dhkappa.inputs.problems import CategoryShares, Evidence, spelling


@dataclass(frozen=True)
class SingleLabels(Evidence):
    """What the rules look at, with the labels in the sets as categories."""

    sets: SettledSets | None = None

    @classmethod
    def of(cls, data: Evidence, sets: SettledSets) -> SingleLabels:
        """Return the labels in the cells of some data."""
        return cls(data.counts, data.item_votes, data.table, labelers=data.labelers, sets=sets)

    @property
    def categories(self) -> Categories:
        """The labels."""
        assert self.sets is not None
        return self.sets.categories

    @cached_property
    def _cells(self) -> list[frozenset[Label]]:
        """The labels of each cell."""
        assert self.sets is not None
        return [self.sets.sets[cell] for cell in self.counts.categories]

    @cached_property
    def _whole(self) -> Evidence:
        return Evidence(self.counts, labelers=self.labelers)

    def _by_label(self, cells: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return (m,) sums of a value per cell over the cells that have a label."""
        place, found = {label: code for code, label in enumerate(self.categories)}, np.zeros(len(self.categories))
        for own, value in zip(self._cells, cells.tolist(), strict=True):
            found[[place[label] for label in own]] += value
        return found

    @cached_property
    def votes(self) -> npt.NDArray[np.float64]:
        """(m,) number of votes that have each label."""
        return self._by_label(self._whole.votes)

    def labels(self, labeler: str) -> npt.NDArray[np.float64]:
        """Return (m,) the number of items for which each label is suggested."""
        return self._by_label(self._whole.labels(labeler))

    def category_shares(self, codes: Sequence[int]) -> CategoryShares:
        """Return the share of votes, and of suggested sets, that have one of some labels."""
        names = {self.categories[code] for code in codes}
        return self._whole.category_shares([place for place, own in enumerate(self._cells) if own & names])

    def votes_for_labels(self) -> ItemVotes | None:
        """Return one vote for each label of a vote; None if annotators are unknown."""
        read = self.item_votes
        if read is None or read.annotators is None or self.sets is None:
            return None
        place = {label: code for code, label in enumerate(self.categories)}
        cells = [sorted(place[label] for label in self.sets.sets[cell]) for cell in read.categories]
        row, who, code = read.sorted_votes
        size = np.array([len(own) for own in cells] or [0])
        first, each = np.cumsum(size) - size, size[code]
        flat = np.array([label for own in cells for label in own], np.int64)
        within = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)
        digits = flat[np.repeat(first[code], each) + within]
        length = np.zeros(len(read.columns), np.int64)
        np.add.at(length, row, each)
        names: tuple[Label | None, ...] = self.categories
        unlabeled = ItemColumns({"": Encoded.absent(len(read.columns))})
        made = ItemVotes(Encoded(digits, 0, names), unlabeled, self.categories, length, items=read.items)
        return replace(made, annotators=read.annotators, voter=np.repeat(who, each).astype(np.int64))


def labels_not_in_votes(data: SingleLabels, compound: Container[Label]) -> Iterator[Problem]:
    """Find labelers most of whose labels nobody ever votes for; ``compound`` labels hold several."""
    names = data.categories
    voted = set(map(spelling, data.voted))
    strange = np.array([spelling(label) not in voted and label not in compound for label in names], np.bool_)
    for labeler in data.labelers:
        number = data.labels(labeler)
        lost, n = int(number[strange].sum()), int(number.sum())
        if not voted or 2 * lost <= n:
            continue
        few = [names[code] for code in np.flatnonzero(strange & (number > 0))]
        message = f"{lost:,} of {n:,} labels of {labeler} are categories that nobody ever votes for ({shown(few, 3)}). "
        message += f"The votes are {shown(data.voted[:3])}."
        fix = "Translate them with $map, name another column with $suggested, or separate labels as in the votes."
        yield Problem("labels-not-in-votes", "error", message, tuple(map(repr, few[:3])), fix, (labeler,))


def of_answers(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Word problems of labels made from votes for yes/no labels on each category."""
    for problem in problems:
        message = f"{problem.labelers[0]} may be made from these votes: it has a label if most votes on the item have "
        message += "it, with fewer exceptions than labels made without the votes would have."
        yield replace(problem, message=message)
