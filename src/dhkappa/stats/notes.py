"""Conditions under which a kappa means something else than it seems to, each with a code and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from dhkappa.data.labels import Label
from dhkappa.errors import counted, shown
from dhkappa.stats.sums import Sums

FEW_ITEMS = 30
FEW_OF_A_KIND = 10  # imperfect items, or items with one suggested label
FLOOR_MATTERS = Fraction(1, 20)
LOW_AGREEMENT = Fraction(2, 5)
# Mean agreement of two panel sizes is called different when it differs by this much, and by this many times
# the standard error of the difference, on enough items of each.
AGREEMENT_GAP = 0.1
AGREEMENT_Z = 4.0


@dataclass(frozen=True, slots=True)
class Note:
    """One thing to know about a result: a stable code and a plain sentence."""

    code: str
    text: str


def find_notes(
    total: Sums,
    categories: tuple[Label, ...],
    D: Fraction | None = None,
    kappa: Fraction | None = None,
    floor: Fraction | None = None,
    fleiss: Fraction | None = None,
) -> tuple[Note, ...]:
    """Return the notes that apply; those on labels only where D is given."""
    found = _on_items(total)
    if total.n:
        found += _on_votes(total, categories)
    if D is not None:
        found += _on_labels(total, categories)
        found += _on_value(total, D, kappa, floor, fleiss)
    return tuple(Note(code, text) for code, text in found)


def _on_items(total: Sums) -> list[tuple[str, str]]:
    found = []
    lost = total.dropped
    if lost.total:
        found.append(("items-dropped", f"{counted(lost.total, 'item')} did not count: {lost.why()}."))
    if 0 < total.n < FEW_ITEMS:
        found.append(
            (
                "few-items",
                f"Only {counted(total.n, 'item')} count: expect a different value on another sample.",
            )
        )
    return found


def _on_votes(total: Sums, categories: tuple[Label, ...]) -> list[tuple[str, str]]:
    found = []
    voted = [label for label, votes in zip(categories, total.votes, strict=True) if votes]
    if len(voted) == 1:
        found.append(
            (
                "one-category-voted",
                f"Every vote is {voted[0]!r}: the votes cannot tell good labels from bad ones.",
            )
        )
    steady = [spread for spread in total.spreads if spread.n_items >= FEW_ITEMS]
    for one, other in combinations(steady, 2):
        gap = abs(one.mean - other.mean)
        error = (one.variance / one.n_items + other.variance / other.n_items) ** 0.5
        if gap > AGREEMENT_GAP and gap > AGREEMENT_Z * error:
            found.append(
                (
                    "votes-follow-agreement",
                    f"Items with {one.n_votes} votes and items with {other.n_votes} agree differently "
                    f"({one.mean:.2f} and {other.mean:.2f} of pairs): if votes were added after disagreement, "
                    "pass only those planned beforehand.",
                )
            )
            break
    return found


def _on_labels(total: Sums, categories: tuple[Label, ...]) -> list[tuple[str, str]]:
    found = []
    used = [(label, items) for label, items in zip(categories, total.labels, strict=True) if items]
    if len(used) == 1:
        found.append(
            (
                "one-label",
                f"Every suggested label is {used[0][0]!r}: kappa cannot show whether labels follow the items.",
            )
        )
    rare = [label for label, items in used if items < FEW_OF_A_KIND]
    if rare and total.n >= FEW_ITEMS:
        found.append(
            (
                "rare-labels",
                f"{len(rare)} of {counted(len(used), 'suggested label')} on fewer than {FEW_OF_A_KIND} items "
                f"({shown(rare, 3)}): what happens to them is known poorly.",
            )
        )
    imperfect = total.n - total.perfect
    if imperfect < FEW_OF_A_KIND and total.n >= FEW_ITEMS:
        found.append(
            (
                "few-imperfect-items",
                f"Votes differ from the label on {counted(imperfect, 'item')} only: kappa hangs on these few.",
            )
        )
    occurring = sum(1 for votes, items in zip(total.votes, total.labels, strict=True) if votes or items)
    if occurring == 2:
        found.append(
            (
                "two-categories",
                "With two categories kappa is Cohen's kappa between label and votes: "
                "it does not see whether annotators agree with each other.",
            )
        )
    return found


def _on_value(
    total: Sums, D: Fraction, kappa: Fraction | None, floor: Fraction | None, fleiss: Fraction | None
) -> list[tuple[str, str]]:
    found = []
    if kappa is None:
        found.append(
            (
                "agreement-certain",
                "Votes and labels are all one category, so chance alone explains everything.",
            )
        )
    elif kappa == 1:
        found.append(
            (
                "perfect",
                "Every vote is the suggested label: kappa is 1, which no larger sample can be sure of.",
            )
        )
    elif D < 0 <= kappa:
        found.append(
            (
                "agree-against-labels",
                "More pairs agree against the labels than on them, though kappa is not negative: "
                "it only beats a chance that is worse.",
            )
        )
    if floor is not None and abs(floor) > FLOOR_MATTERS:
        found.append(
            (
                "floor-not-zero",
                f"Labels dealt out at random would score {float(floor):.2f} here, not 0: compare with that.",
            )
        )
    if fleiss is not None and fleiss < LOW_AGREEMENT:
        found.append(
            (
                "low-agreement",
                f"Annotators hardly agree among themselves (Fleiss' kappa {float(fleiss):.2f}): "
                "even right labels score low.",
            )
        )
    return found
