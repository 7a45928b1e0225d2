"""The verdict: can a labeler's labels be trusted, in a word and a sentence.

There is no scale of adjectives for kappa: how high it can be depends on the annotators and the categories. So a labeler
is set beside what the same data can show: labels dealt out at random below, and people as labelers above.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dhkappa.stats.compare import Comparison
from dhkappa.stats.people import People
from dhkappa.stats.result import Kappa

WORDS = {
    "above": "more than a person",
    "level": "about as far as a person",
    "short": "less than a person",
    "between": "more than random",
    "random": "not more than random",
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
        the ceiling; ``"random"`` where the interval reaches down to the floor; ``"panel"`` where the labels are the
        panel's own, and so may be made from the votes that judge them; ``"unknown"`` without an interval
    text : the same in a sentence, with its numbers
    """

    code: str
    text: str

    @property
    def short(self) -> str:
        """The verdict in a few words."""
        return WORDS[self.code]

    @property
    def judged(self) -> bool:
        """Whether the votes can judge the labels."""
        return self.code not in ("panel", "unknown")

    def to_dict(self) -> dict[str, str]:
        """Return plain values, ready for JSON."""
        return {"code": self.code, "text": self.text}


def verdict_of(name: str, kappa: Kappa, people: People | None, level: float) -> Verdict:
    """Judge one labeler."""
    interval = kappa.interval(level)
    if math.isnan(interval.low):
        reason = (kappa.reason or interval.reason or "").rstrip(".")
        return Verdict("unknown", f"{name} cannot be judged: {reason}.")
    scored = f"kappa {_two(kappa.value)}, interval {_two(interval.low)} to {_two(interval.high)}"
    if interval.low <= kappa.floor:
        return Verdict(
            "random",
            f"{name} cannot be trusted on this evidence: {scored}, which reaches down to the "
            f"{_two(kappa.floor)} that random labels would score.",
        )
    if kappa.exact is not None and kappa.value == kappa.ceiling < 1:
        return Verdict(
            "panel",
            f"{name} cannot be judged by these votes, if its labels were made from them: it scores exactly what the "
            f"panel's own most frequent labels do ({scored}).",
        )
    if people is not None and not math.isnan(people.low):
        within = f"interval {_two(people.low, '+')} to {_two(people.high, '+')}"
        gap = f"{_two(people.difference, '+')}, {within}, from the average annotator"
        code = "above" if people.low > 0 else "short" if people.high < 0 else "level"
        compared = len(people.table) - len(people.skipped)
        matched = f"it matches or beats {round(people.matched * compared)} of {compared}"
        return Verdict(
            code, f"{name} can be trusted {WORDS[code]}: {scored}; {gap} as judged by the others ({matched})."
        )
    room = kappa.ceiling - kappa.floor
    way = "of the way from labels dealt out at random to the panel's own most frequent labels"
    share = f", {(kappa.value - kappa.floor) / room:.0%} {way}" if room > 0 else ""
    return Verdict("between", f"{name} does better than random: {scored}{share}.")


def overall(verdicts: Mapping[str, Verdict], kappas: Mapping[str, Kappa], comparison: Comparison | None) -> str:
    """Say in a sentence which labeler is best, how good it is, and how sure that is."""
    if comparison is None:
        return next(iter(verdicts.values())).text
    judged = sorted((name for name in verdicts if verdicts[name].judged), key=lambda name: -kappas[name].value)
    if not judged:
        return " ".join(verdict.text for verdict in verdicts.values())
    best, rest = judged[0], judged[1:]
    surely = {
        row["other"] if row["labeler"] == best else row["labeler"]
        for row in comparison.differences
        if row["p_holm"] < 1 - comparison.level and (row["difference"] > 0) == (row["labeler"] == best)
    }
    level = [name for name in rest if name not in surely]
    said = "is better than every other" if rest else "is the only one that can be judged"
    if level:
        said = f"cannot be told apart from {_some(level)}"
    aside = [name for name in verdicts if verdicts[name].code == "panel"]
    unknown = [name for name in verdicts if verdicts[name].code == "unknown"]
    left = f", leaving aside {_some(aside)}, whose labels are the panel's own" if aside else ""
    also = f" {_some(unknown)} cannot be judged." if unknown and rest else ""
    return f"Of {len(verdicts)} labelers{left}, {best} scores best and {said}.{also} {verdicts[best].text}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _two(value: float, sign: str = "") -> str:
    """Write two digits, never -0.00."""
    return f"{round(value, 2) + 0.0:{sign}.2f}"
