"""Verdict: whether the labels of a labeler can be trusted, as a code and a sentence.

There is no fixed scale for kappa: how high it can be depends on the annotators and the categories. A labeler is
therefore compared with random labels and with annotators on the same data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dhkappa.core import Label
from dhkappa.errors import counted, shown
from dhkappa.stats.compare import AnnotatorComparison
from dhkappa.stats.intervals import ConfidenceInterval, written
from dhkappa.stats.kappa import Estimate, rounded
from dhkappa.stats.notes import AGREE_LITTLE, LOW_AGREEMENT, MADE_FROM_VOTES, Note, first_three, spelled
from dhkappa.stats.sample import Sample
from dhkappa.table import Table

# Labels not made from the votes are hardly a most frequent vote on so many items with different votes.
MANY_SPLIT = 100
SHORT = {
    "better": "better than a typical annotator",
    "on-par": "on par with a typical annotator",
    "below": "below a typical annotator",
    "between": "better than random labels",
    "random": "not shown to be better than random",
    "category-variants": "labels and votes are spelled differently",
    "labels-from-votes": "labels may be made from these votes",
    "undefined": "cannot be judged",
}
"""Each verdict in a few words."""


@dataclass(frozen=True, slots=True)
class Verdict(Note):
    """The verdict on one labeler.

    Attributes
    ----------
    code : ``"better"`` than, ``"on-par"`` with or ``"below"`` a typical annotator; ``"between"`` random and majority
        labels if annotators are unknown; ``"random"``; ``"category-variants"`` if labels and votes are spelled
        differently; ``"labels-from-votes"`` if labels may be made from the votes; ``"undefined"``
    text : the verdict in sentences with its numbers
    message, hint : the parts of ``text``, as in ``Note``; the hint is empty
    share : for ``"between"``, the position of kappa between random (0) and majority labels (1)
    """

    share: float = math.nan

    @property
    def short(self) -> str:
        """The verdict in a few words."""
        return SHORT[self.code] if math.isnan(self.share) else f"{self.share:.0%} of the way to majority labels"

    @property
    def judged(self) -> bool:
        """Whether the votes can judge the labels."""
        return self.code not in ("category-variants", "labels-from-votes", "undefined")


def judge(
    name: str, estimate: Estimate, interval: ConfidenceInterval, comparison: AnnotatorComparison | None
) -> Verdict:
    """Return the verdict on one labeler; ``comparison`` with annotators is None if they are unknown."""
    if math.isnan(interval.low):
        reason = estimate.reason or interval.reason or ""
        return Verdict("undefined", f"{name} cannot be judged. {reason}".strip())
    write = _digits(interval.high - interval.low)
    ci = f"{written(interval.confidence_level, 100)}% CI"
    kappa = "kappa" if estimate.weights is None else "weighted kappa"
    scored = f"{kappa} {write(estimate.value)} ({ci} {write(interval.low)} to {write(interval.high)})"
    baselines = estimate.baselines
    random, majority, fleiss = map(rounded, (baselines.random, baselines.majority, estimate.fleiss))
    if variant := _spelling_variant(estimate.sample):
        text = f"{name} cannot be judged: none of its labels occurs among the votes, but most do in another spelling"
        spellings = f"({shown(variant[:1])} and {shown(variant[1:])})"
        return Verdict("category-variants", f"{text} {spellings}. Use the same spelling for labels and votes.")
    if interval.low <= random:
        text = f"{name} is {SHORT['random']} labels: {scored}. Random labels would score {write(random)}."
        return Verdict("random", text)
    split = _split_items(estimate.sample)
    if split is not None and split >= MANY_SPLIT:
        made = f"every label is a most frequent vote of its item, also on the {split:,} items with different votes"
        text = f"{name} cannot be judged by these votes if its labels were made from them: {scored}, but {made}."
        return Verdict("labels-from-votes", text)
    caution = ""
    if fleiss < float(LOW_AGREEMENT):
        caution = f" {AGREE_LITTLE} (Fleiss' kappa {_digits(1)(fleiss)})."
    if split:
        caution += f" Every label is a most frequent vote of its item. {MADE_FROM_VOTES}"
    if comparison is not None and not math.isnan(comparison.low):
        code, text = _compared(comparison, ci)
        return Verdict(code, f"{name} is {SHORT[code]}: {scored}. {text}{caution}")
    width = majority - random
    share = (estimate.value - random) / width if width > 0 else math.nan
    position = f", {share:.0%} of the way from random to majority labels" if width > 0 else ""
    return Verdict("between", f"{name} is {SHORT['between']}: {scored}{position}.{caution}", share=share)


def _compared(comparison: AnnotatorComparison, ci: str) -> tuple[str, str]:
    """Return the code and the text on annotators; a difference must also hold without any one annotator."""
    write = _digits(comparison.high - comparison.low)
    rows = [row for row in comparison.table if not math.isnan(row["difference"])]
    items = sum(row["items"] for row in rows)
    without = [
        ((comparison.difference * items - row["difference"] * row["items"]) / (items - row["items"]), row["annotator"])
        for row in rows
        if row["items"] < items
    ]
    code = "better" if comparison.low > 0 else "below" if comparison.high < 0 else "on-par"
    near, far = sorted((comparison.low, comparison.high), key=abs)
    interval = f"{write(abs(near))} to {_apart(far, write)}"
    if comparison.low < 0 < comparison.high:
        interval = f"{_apart(comparison.low, write)} to {_apart(comparison.high, write)}"
    apart = _apart(comparison.difference, write) if float(write(comparison.difference)) else "the same as"
    text = f"It scores {apart} their average ({ci} {interval})."
    if code != "on-par" and without:
        least, annotator = min(without) if code == "better" else max(without)
        if (least <= 0) == (code == "better"):
            who = annotator if isinstance(annotator, str) else f"annotator {annotator}"
            only = f"but only because of {who}. Without {who} it scores {_apart(least, write)}."
            code, text = "on-par", f"It scores {apart} their average, {only}"
    matched = f"{round(comparison.matched * len(rows))} of {counted(len(rows), 'annotator')}"
    return code, f"{text} Its kappa is at least as high as that of {matched}."


def _apart(difference: float, write: Callable[[float], str]) -> str:
    """Write a difference: ``0.07 above``."""
    return f"{write(abs(difference))} {'below' if difference < 0 else 'above'}"


def _spelling_variant(sample: Sample) -> tuple[Label, Label] | None:
    """Return a label and its spelling among votes, if no label is voted for and most are in another spelling."""
    names = sample.categories
    used, voted = np.unique(sample.patterns.suggested), np.unique(sample.patterns.code)
    if len(np.intersect1d(used, voted)):
        return None
    votes = {spelled(str(names[code])): names[code] for code in voted.tolist()}
    labels = [names[code] for code in used.tolist()]
    pairs = [(label, votes[key]) for label in labels if (key := spelled(str(label))) in votes]
    return pairs[0] if 2 * len(pairs) > len(labels) else None


def _split_items(sample: Sample) -> int | None:
    """Return the number of items with different votes, if every label is a most frequent vote of its item."""
    patterns = sample.patterns
    length = np.diff(patterns.start)
    row = np.repeat(np.arange(len(length)), length)
    most = np.maximum.reduceat(patterns.votes, patterns.start[:-1])
    leads = (patterns.code == patterns.suggested[row]) & (patterns.votes == most[row])
    if np.bincount(row[leads], minlength=len(length)).all():
        return int(patterns.items[length > 1].sum())
    return None


def summarize(
    verdicts: Mapping[str, Verdict], kappas: Mapping[str, float], differences: Table | None, confidence_level: float
) -> str:
    """Return which labeler is best and its verdict; ``differences`` of ``Comparison``, None for one labeler."""
    if differences is None:
        return next(iter(verdicts.values())).text
    judged = sorted((name for name in verdicts if verdicts[name].judged), key=lambda name: -kappas[name])
    if not judged:
        return " ".join(verdict.text for verdict in verdicts.values())
    best, rest = judged[0], judged[1:]
    significant = differences.where(lambda row: row["pvalue_holm"] < 1 - confidence_level)
    above = {(row["labeler"], row["other"]): row["difference"] for row in significant}
    above |= {(other, labeler): -difference for (labeler, other), difference in above.items()}
    better = [name for name in rest if above.get((best, name), 0) < 0]
    similar = [name for name in rest if (best, name) not in above]
    of = f"of {len(verdicts)} labelers"
    if not rest:
        said = [f"{best} is the only one {of} that can be judged."]
    elif not better and not similar:
        others = rest[0] if len(rest) == 1 else "every other"
        said = [f"{best} scores highest {of} and is better than {others}."]
    else:
        own = " on its own items" if better else ""
        said = [f"{best} scores highest {of}{own}."]
        said += [f"It is worse than {first_three(better)} on the items that all labeled."] if better else []
        said += [f"Its difference from {first_three(similar)} is not significant."] if similar else []
    aside = [name for name in verdicts if verdicts[name].code == "labels-from-votes"]
    unknown = [name for name in verdicts if verdicts[name].code == "undefined"]
    if aside:
        whose = "is not ranked: its" if len(aside) == 1 else "are not ranked: their"
        made = "labels equal the majority vote on every item, so they may be made from these votes."
        said.append(f"{first_three(aside)} {whose} {made}")
    said += [f"{first_three(unknown)} cannot be judged."] if unknown and rest else []
    said += [verdict.text for verdict in verdicts.values() if verdict.code == "category-variants"]
    return " ".join([*said, verdicts[best].text])


def _digits(width: float) -> Callable[[float], str]:
    """Return a function that writes numbers with two digits, or more if their interval is narrow; never -0.00."""
    digits = min(max(2, math.ceil(-math.log10(width))), 6) if width > 0 else 2
    return lambda value: f"{round(value, digits) + 0.0:.{digits}f}"
