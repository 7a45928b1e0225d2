"""Conditions under which a kappa means something else than it seems to, each with a code and a sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from dhkappa.core.labels import Label
from dhkappa.errors import counted, shown
from dhkappa.stats.sample import Sample
from dhkappa.stats.sums import Sums
from dhkappa.table import visible

FEW_ITEMS = 30
FEW_OF_A_KIND = 10  # imperfect items, or items with one suggested label
NEVER_VOTED = Fraction(1, 10)
NEVER_SUGGESTED = Fraction(1, 20)
FLOOR_MATTERS = Fraction(1, 20)
LOW_AGREEMENT = Fraction(2, 5)
# Mean agreement of two panel sizes is called different when it differs by this much, and by this many times
# the standard error of the difference, on enough items of each.
AGREEMENT_GAP = 0.1
AGREEMENT_Z = 4.0
UNEQUAL = 0.5  # effective items per item
POOL_MATTERS = Fraction(1, 20)
LIKE_MISSING = {"na", "n/a", "nan", "none", "null", "nil", "-", "?", "missing"}


@dataclass(frozen=True, slots=True)
class Note:
    """One thing to know about a result: a stable code and a plain sentence."""

    code: str
    text: str

    def to_dict(self) -> dict[str, str]:
        """Return plain values, ready for JSON."""
        return {"code": self.code, "text": self.text}


def text_list(texts: Iterable[str], width: int = 80) -> str:
    """Return sentences as a list for a terminal, wrapped."""
    from textwrap import fill

    lines = (fill(visible(text), width, initial_indent="- ", subsequent_indent="  ") for text in texts)
    return "\n".join(lines)


def html_list(texts: Iterable[str]) -> str:
    """Return sentences as a list, or nothing where there are none."""
    from html import escape

    lines = "".join(f"<li>{escape(visible(text))}</li>" for text in texts)
    return f"<ul>{lines}</ul>" if lines else ""


def notes_on_votes(total: Sums, categories: tuple[Label, ...]) -> Iterator[Note]:
    """Find what to know about the items and their votes, whatever the labels."""
    if total.dropped.total:
        yield Note("items-dropped", f"{counted(total.dropped.total, 'item')} did not count: {total.dropped.why()}.")
    if 0 < total.n < FEW_ITEMS:
        verb = "counts" if total.n == 1 else "count"
        yield Note("few-items", f"Only {counted(total.n, 'item')} {verb}: expect a different value on another sample.")
    voted = [label for label, votes in zip(categories, total.votes, strict=True) if votes]
    if len(voted) == 1:
        yield Note(
            "one-category-voted", f"Every vote is {voted[0]!r}: the votes cannot tell good labels from bad ones."
        )
    yield from _on_spelling(categories)
    steady = [spread for spread in total.spreads if spread.n_items >= FEW_ITEMS]
    for one, other in combinations(steady, 2):
        gap = abs(one.mean - other.mean)
        error = (one.variance / one.n_items + other.variance / other.n_items) ** 0.5
        if gap > AGREEMENT_GAP and gap > AGREEMENT_Z * error:
            yield Note(
                "votes-follow-agreement",
                f"Items with {one.n_votes} votes and items with {other.n_votes} agree differently "
                f"({one.mean:.2f} and {other.mean:.2f} of pairs): if votes were added after disagreement, "
                "pass only those planned beforehand.",
            )
            break


def notes_on_sample(sample: Sample, labeled: bool) -> Iterator[Note]:
    """Find what to know about where the items came from, and how they were drawn."""
    yield from (Note("source", remark) for remark in sample.remarks)
    if sample.n_effective < UNEQUAL * sample.n:
        yield Note(
            "unequal-weights",
            f"Weights differ so much that {counted(sample.n, 'item')} tell as much as "
            f"{sample.n_effective:,.0f} of equal weight.",
        )
    drawn = max((part.fraction for part in sample.strata), default=Fraction(0))
    if sample.panel == "fixed" and drawn > POOL_MATTERS:
        yield Note(
            "votes-fixed",
            "With pool=, the standard error is for which items of the pool were drawn, and takes the votes on each as "
            "fixed" + ("; panel='drawn' adds the chance in which votes an item got." if labeled else "."),
        )


def notes_on_labels(total: Sums, categories: tuple[Label, ...]) -> Iterator[Note]:
    """Find what to know about the suggested labels."""
    used = [
        (label, items, votes)
        for label, items, votes in zip(categories, total.labels, total.votes, strict=True)
        if items
    ]
    if len(used) == 1:
        yield Note(
            "one-label", f"Every suggested label is {used[0][0]!r}: kappa cannot show whether labels follow items."
        )
    strange = [(label, items) for label, items, votes in used if not votes]
    lost = sum(items for _, items in strange)
    if lost > NEVER_VOTED * total.n:
        yield Note(
            "labels-never-voted",
            f"{counted(lost, 'item')} of {total.n:,} with a suggested label that nobody ever votes for "
            f"({shown((label for label, _ in strange), 3)}): check the spelling, and that counts come as counts=.",
        )
    every = sum(total.votes)
    never = [
        (votes / every, label)
        for label, items, votes in zip(categories, total.labels, total.votes, strict=True)
        if not items and votes > NEVER_SUGGESTED * every
    ]
    if never:
        share, label = max(never, key=lambda pair: pair[0])
        more = f", and {counted(len(never) - 1, 'more category')} like it" if len(never) > 1 else ""
        yield Note(
            "never-suggested", f"{label!r} is never suggested, though {share:.0%} of the votes are for it{more}."
        )
    rare = [label for label, items, _ in used if items < FEW_OF_A_KIND]
    if rare and total.n >= FEW_ITEMS:
        yield Note(
            "rare-labels",
            f"{len(rare)} of {counted(len(used), 'suggested label')} on fewer than {FEW_OF_A_KIND} items "
            f"({shown(rare, 3)}): what happens to them is known poorly.",
        )
    imperfect = total.n - total.perfect
    if 0 < imperfect < FEW_OF_A_KIND and total.n >= FEW_ITEMS:
        yield Note(
            "few-imperfect-items",
            f"Votes differ from the label on {counted(imperfect, 'item')} only: kappa hangs on these few.",
        )
    occurring = sum(1 for votes, items in zip(total.votes, total.labels, strict=True) if votes or items)
    if occurring == 2:
        yield Note(
            "two-categories",
            "With two categories kappa is Cohen's kappa between label and votes: "
            "agreement of annotators with each other does not enter.",
        )


def notes_on_value(
    R: Fraction,
    S: Fraction,
    kappa: Fraction | None,
    floor: Fraction | None,
    ceiling: Fraction | None,
    fleiss: Fraction | None,
) -> Iterator[Note]:
    """Find what to know about the value itself."""
    if kappa is not None and kappa == ceiling and kappa < 1:
        yield Note(
            "at-ceiling",
            "The labels score exactly what the panel's own most frequent labels would: if they were made from these "
            "votes, that says nothing about them.",
        )
    if kappa is None:
        yield Note("agreement-certain", "Votes and labels are all one category, so chance alone explains everything.")
    elif kappa == 1:
        yield Note("perfect", "Every vote is the suggested label: kappa is 1, and a larger sample may show exceptions.")
    elif R < S and kappa >= 0:
        yield Note(
            "agree-on-others",
            f"More pairs agree on another label than on the suggested one ({float(S):.2f} and {float(R):.2f}), "
            "though kappa is not negative: by chance it would be worse.",
        )
    if floor is not None and abs(floor) > FLOOR_MATTERS:
        yield Note("floor-not-zero", f"Labels dealt out at random would score {float(floor):.2f} here, not 0.")
    if kappa is not None and floor is not None and kappa < floor:
        yield Note("below-floor", "The labels score less than labels dealt out at random.")
    if fleiss is not None and fleiss < LOW_AGREEMENT:
        yield Note(
            "low-agreement",
            f"Annotators hardly agree among themselves (Fleiss' kappa {round(float(fleiss), 2) + 0.0:.2f}, under "
            f"{float(LOW_AGREEMENT):.1f}): even right labels score low.",
        )


def notes_on_error(value: float, n: int, se: float) -> Iterator[Note]:
    """Find what to know about the standard error."""
    if n > 1 and not math.isnan(value) and math.isnan(se):
        yield Note(
            "no-standard-error",
            "Every item has the same influence on kappa, so the sample cannot show how far it would vary.",
        )


def _on_spelling(categories: tuple[Label, ...]) -> Iterator[Note]:
    """Find labels that may be one label, or none."""
    texts = [label for label in categories if isinstance(label, str)]
    missing = [label for label in texts if label.strip().casefold() in LIKE_MISSING]
    if missing:
        yield Note(
            "looks-missing", f"{shown(missing, 3)} counts as a category: if it means missing, name it in missing=."
        )
    first: dict[str, str] = {}
    alike = [(first[key], label) for label in texts if first.setdefault(key := spelled(label), label) != label]
    if alike:
        one, other = alike[0]
        folded = one.strip().casefold() == other.strip().casefold()
        how = "differ only in case or spaces" if folded else "are one number in two spellings"
        yield Note(
            "labels-alike",
            f"{shown(alike[0])} {how}, and count as different categories"
            + (f", and {counted(len(alike) - 1, 'more pair')} like them." if len(alike) > 1 else "."),
        )
    numbers = [label for label in categories if not isinstance(label, (str, bool))]
    if numbers and texts:
        yield Note(
            "labels-mixed",
            f"Some labels are numbers and some are text, such as {numbers[0]!r} and {texts[0]!r}: if a number stands "
            "for a text, they count as different categories.",
        )


def spelled(label: str) -> str:
    """Spell a label without what a person may overlook, as "3" for the "3.0" that a table of floats writes."""
    return re.sub(r"^([+-]?[0-9]+)\.0*$", r"\1", label.strip().casefold())
