"""The verdict: can a labeler's labels be trusted, in a word and a sentence.

There is no scale of adjectives for kappa: how high it can be depends on the annotators and the categories. So a labeler
is set beside what the same data can show: labels dealt out at random below, and people as labelers above.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dhkappa.core.labels import Label
from dhkappa.errors import shown
from dhkappa.stats.annotator_comparison import People
from dhkappa.stats.compare import Comparison
from dhkappa.stats.notes import LOW_AGREEMENT, spelled
from dhkappa.stats.result import Kappa

MANY_SPLIT = 100
"""Items where votes differ: labels not made from the votes hardly name a most frequent one on all of so many."""

WORDS = {
    "above": "more than a person",
    "level": "about as far as a person",
    "short": "less than a person",
    "between": "from random to panel",
    "random": "not shown above random",
    "spelling": "not as it is spelled",
    "panel": "not by these votes",
    "unknown": "not known",
}
"""What each verdict says in short."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One labeler's verdict.

    Attributes
    ----------
    code : ``"above"``, ``"level"`` or ``"short"`` of a person, where people are known; else ``"between"`` the floor and
        the ceiling; ``"random"`` where the interval reaches down to the floor; ``"spelling"`` where no label was ever
        voted for, and most of them are voted for in another spelling; ``"panel"`` where labels are a most frequent
        vote on every item, also on a hundred or more where votes differ, and so may be made from the votes that judge
        them; ``"unknown"`` without an interval
    text : the same in a sentence, with its numbers
    share : of a labeler between floor and ceiling, how far from the one to the other
    """

    code: str
    text: str
    share: float = math.nan

    @property
    def short(self) -> str:
        """The verdict in a few words."""
        return WORDS[self.code] if math.isnan(self.share) else f"{self.share:.0%} {WORDS[self.code]}"

    @property
    def judged(self) -> bool:
        """Whether the votes can judge the labels."""
        return self.code not in ("spelling", "panel", "unknown")

    def to_dict(self) -> dict[str, str]:
        """Return plain values, ready for JSON."""
        return {"code": self.code, "text": self.text}


def verdict_of(name: str, kappa: Kappa, people: People | None, level: float) -> Verdict:
    """Judge one labeler."""
    interval = kappa.interval(level)
    if math.isnan(interval.low):
        reason = (kappa.reason or interval.reason or "").rstrip(".")
        return Verdict("unknown", f"{name} cannot be judged: {reason}.")
    write = _digits(interval.high - interval.low)
    scored = f"kappa {write(kappa.value)}, interval {write(interval.low)} to {write(interval.high)}"
    pair = _misspelled(kappa)
    if pair is not None:
        return Verdict(
            "spelling",
            f"{name} cannot be judged: none of its labels was ever voted for, as if they were spelled otherwise than "
            f"the votes ({shown(pair[:1])} beside {shown(pair[1:])}): spell both alike.",
        )
    if interval.low <= kappa.floor:
        return Verdict(
            "random",
            f"{name} cannot be trusted on this evidence: {scored}, which reaches down to the "
            f"{write(kappa.floor)} that random labels would score.",
        )
    split = _split_items(kappa)
    if split is not None and split >= MANY_SPLIT:
        return Verdict(
            "panel",
            f"{name} cannot be judged by these votes, if its labels were made from them: on every item they are a most "
            f"frequent vote, also on the {split:,} where votes differ ({scored}).",
        )
    also = ""
    if kappa.fleiss < float(LOW_AGREEMENT):
        also = f" Annotators hardly agree among themselves (Fleiss' kappa {_digits(1)(kappa.fleiss)})."
    if split:
        also += (
            " On every item its labels are a most frequent vote: if they were made from these votes, this says nothing."
        )
    if people is not None and not math.isnan(people.low):
        code, beside = _beside_people(people)
        return Verdict(code, f"{name} can be trusted {WORDS[code]}: {scored}; {beside}.{also}")
    room = kappa.ceiling - kappa.floor
    way = "of the way from labels dealt out at random to the panel's own most frequent labels"
    share = (kappa.value - kappa.floor) / room if room > 0 else math.nan
    said = f", {share:.0%} {way}" if room > 0 else ""
    return Verdict("between", f"{name} does better than random: {scored}{said}.{also}", share)


def _beside_people(people: People) -> tuple[str, str]:
    """Compare with people: what holds on average must hold without any one of them, too."""
    write = _digits(people.high - people.low)
    rows = [row for row in people.table if not math.isnan(row["difference"])]
    whole = sum(row["items"] for row in rows)
    without = [
        ((people.difference * whole - row["difference"] * row["items"]) / (whole - row["items"]), row["annotator"])
        for row in rows
        if row["items"] < whole
    ]
    code = "above" if people.low > 0 else "short" if people.high < 0 else "level"
    hangs = ""
    if code != "level" and without:
        least, who = min(without) if code == "above" else max(without)
        if (least <= 0) == (code == "above"):
            code, hangs = "level", f"; but without {who} it would be {write(least, '+')}"
    matched = f"it matches or beats {round(people.matched * len(rows))} of {len(rows)}"
    within = f"interval {write(people.low, '+')} to {write(people.high, '+')}"
    gap = f"{write(people.difference, '+')}, {within}, from the average annotator as judged by the others ({matched})"
    return code, gap + hangs


def _misspelled(kappa: Kappa) -> tuple[Label, Label] | None:
    """Return a label, and how votes spell it, where no label was voted for and most are in another spelling."""
    patterns, names = kappa.sample.patterns, kappa.categories
    used, voted = np.unique(patterns.suggested), np.unique(patterns.code)
    if len(np.intersect1d(used, voted)):
        return None
    votes = {spelled(str(names[code])): names[code] for code in voted.tolist()}
    keys = [(names[code], spelled(str(names[code]))) for code in used.tolist()]
    pairs = [(label, votes[key]) for label, key in keys if key in votes]
    return pairs[0] if 2 * len(pairs) > len(keys) else None


def _split_items(kappa: Kappa) -> int | None:
    """Return on how many items votes differ, where every label is a most frequent vote on its item; else None."""
    patterns = kappa.sample.patterns
    length = np.diff(patterns.start)
    row = np.repeat(np.arange(len(length)), length)
    most = np.maximum.reduceat(patterns.votes, patterns.start[:-1])
    leads = (patterns.code == patterns.suggested[row]) & (patterns.votes == most[row])
    if np.bincount(row[leads], minlength=len(length)).all():
        return int(patterns.items[length > 1].sum())
    return None


def overall(verdicts: Mapping[str, Verdict], kappas: Mapping[str, Kappa], comparison: Comparison | None) -> str:
    """Say in a sentence which labeler is best, how good it is, and how sure that is."""
    if comparison is None:
        return next(iter(verdicts.values())).text
    judged = sorted((name for name in verdicts if verdicts[name].judged), key=lambda name: -kappas[name].value)
    if not judged:
        return " ".join(verdict.text for verdict in verdicts.values())
    best, rest = judged[0], judged[1:]
    surely: dict[bool, set[str]] = {True: set(), False: set()}  # whether it is the best one that is better
    for row in comparison.differences:
        if best in (row["labeler"], row["other"]) and row["p_holm"] < 1 - comparison.level:
            first = row["labeler"] == best
            surely[(row["difference"] > 0) == first].add(row["other"] if first else row["labeler"])
    better = [name for name in rest if name in surely[False]]
    level = [name for name in rest if name not in surely[True] and name not in better]
    said = ["is better than every other" if rest else "is the only one that can be judged"]
    if better or level:
        said = [f"cannot be told apart from {_some(level)}"] if level else []
        said += [f"is worse than {_some(better)} on the items that all labeled"] if better else []
    aside = [name for name in verdicts if verdicts[name].code == "panel"]
    unknown = [name for name in verdicts if verdicts[name].code == "unknown"]
    left = f", leaving aside {_some(aside)}, whose labels are most frequent votes on every item" if aside else ""
    also = f" {_some(unknown)} cannot be judged." if unknown and rest else ""
    told = (
        " and ".join(["scores best", *said])
        if not better
        else "scores best on its own items, but " + " and ".join(said)
    )
    also += "".join(f" {verdict.text}" for verdict in verdicts.values() if verdict.code == "spelling")
    return f"Of {len(verdicts)} labelers{left}, {best} {told}.{also} {verdicts[best].text}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _digits(width: float) -> Callable[..., str]:
    """Return how to write numbers whose interval is so wide: two digits, more where it is narrow; never -0.00."""
    digits = min(max(2, math.ceil(-math.log10(width))), 6) if width > 0 else 2

    def write(value: float, sign: str = "") -> str:
        return f"{round(value, digits) + 0.0:{sign}.{digits}f}"

    return write
