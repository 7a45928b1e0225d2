"""Gate: whether each labeler passes a bound, fails it, or needs more items to tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from dhkappa.errors import Problem, invalid, shown
from dhkappa.stats.annotator_baseline import KEEP, annotator_baseline
from dhkappa.stats.grades import cannot_judge, digits_of, follows_majority
from dhkappa.stats.intervals import ConfidenceInterval, decided_by, items_to_decide
from dhkappa.stats.kappa import Estimate
from dhkappa.stats.sample import check_choice, check_real
from dhkappa.table import Display, plain

WithoutFlagged: TypeAlias = Callable[[str], tuple[str, Estimate | None] | None]
ANNOTATORS = "annotators"
"""Value of ``fail_under`` that compares a labeler with a typical annotator."""
_WORDS = {"pass": "passed", "fail": "failed", "undecided": "undecided"}  # nosec B105 - an outcome
_SHARE, _COVERAGE = "share of a typical annotator's score", "coverage"  # in JSON
_SCALE = "score on the scale from 0 (random labels) to 100 (a typical annotator)"  # for people, instead of the share
_WORST_FIRST = ("fail", "undecided", "pass")


@dataclass(frozen=True, slots=True)
class GateRow:
    """One labeler at a gate.

    Attributes
    ----------
    labeler : name of the labeler
    outcome : ``"pass"``, ``"fail"`` or ``"undecided"``
    measure : what was tested, such as ``"kappa"``
    bound : the least allowed value
    value, low, high : the measured value and its confidence limits; NaN if undefined
    more_items : about how many more items would probably decide an undecided outcome; None if that cannot be said
    reason : why the value is undefined; None if it is not
    """

    labeler: str
    outcome: str
    measure: str
    bound: float
    value: float
    low: float = math.nan
    high: float = math.nan
    more_items: int | None = None
    reason: str | None = None

    @property
    def text(self) -> str:
        """The outcome as a sentence."""
        name, known = self._name, not math.isnan(self.value + self.low)
        text = f"{self.labeler} {_WORDS[self.outcome]}: {name}{self.result or ' undefined'}, required {self._bound()}."
        reason = self.reason
        if self.outcome == "undecided" and known and not (reason or self.more_items):
            what = name.capitalize() if name.endswith("kappa") else f"The {name}"
            reason = f"{what} is too close to the bound."
        return " ".join(filter(None, (text, decided_by(self.more_items), reason)))

    @property
    def result(self) -> str:
        """The measured value with its confidence limits, as words."""
        digits = digits_of(self.high - self.low, least=3)
        value, low, high = (self._written(x, digits) for x in (self.value, self.low, self.high))
        value = "" if math.isnan(self.value) else f" {value}"
        return value + ("" if math.isnan(self.low) else f" ({low} to {high})")

    @property
    def _name(self) -> str:
        return _SCALE if self.measure == _SHARE else self.measure

    def _bound(self) -> str:
        """Return the bound as text, in percent of the measures that are written so."""
        if self.measure == _SHARE:
            return f"{100 * self.bound:g}"
        return f"{100 * self.bound:g}%" if self.measure == _COVERAGE else f"{self.bound:g}"

    def _written(self, value: float, digits: int) -> str:
        """Return a number with some digits: coverage in percent, shares as scores from 0 to 100; never -0.000."""
        value = round(value, digits) + 0.0
        if self.measure == _SHARE:
            return f"{100 * value:.{digits - 2}f}"
        return f"{value:.{digits - 2}%}" if self.measure == _COVERAGE else f"{value:.{digits}f}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN is None."""
        return {name: plain(getattr(self, name)) for name in self.__slots__}


@dataclass(frozen=True, slots=True, repr=False)
class Gate(Display):
    """The outcome of a gate.

    Attributes
    ----------
    rows : one row per labeler and bound
    confidence_level : confidence level of the limits
    """

    rows: tuple[GateRow, ...]
    confidence_level: float = 0.95

    @property
    def outcome(self) -> str:
        """``"fail"`` if a labeler fails, else ``"undecided"`` if one is undecided, else ``"pass"``."""
        return next((word for word in _WORST_FIRST if any(row.outcome == word for row in self.rows)), "pass")

    @property
    def text(self) -> str:
        """The outcome as sentences, the worst labelers first."""
        rows = sorted(self.rows, key=lambda row: _WORST_FIRST.index(row.outcome))
        return f"Gate {_WORDS[self.outcome]}. {' '.join(row.text for row in rows)}"

    def _display(self) -> tuple[str]:
        return (self.text,)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        rows = [row.to_dict() for row in self.rows]
        return {"outcome": self.outcome, "text": self.text, "confidence_level": self.confidence_level, "rows": rows}


def gate_of(
    kappas: Mapping[str, tuple[Estimate, ConfidenceInterval]],
    fail_under: float | str | None = None,
    *,
    on: str = "low",
    keep: float | None = None,
    margin: float | None = None,
    min_coverage: float | None = None,
    problems: Sequence[Problem] = (),
    without: WithoutFlagged | None = None,
) -> Gate:
    """Test the kappas of some labelers, each with its interval at the confidence level; see ``Audit.gate``.

    ``without`` returns a condition and kappa without flagged annotators, None if nobody is flagged.
    """
    check_choice("on", on, ("low", "value"))
    if fail_under is None and min_coverage is None:
        hint = "Pass $fail_under, $min_coverage, or both."
        raise invalid("fail_under", "A gate needs a condition.", code="gate-empty", hint=hint)
    if fail_under != ANNOTATORS and (keep is not None or margin is not None):
        name = "keep" if keep is not None else "margin"
        message = f"{name} is about a typical annotator, but fail_under is {shown([fail_under])}."
        raise invalid(name, message, code="option-unused", hint=f"Pass $fail_under {ANNOTATORS}, or leave out ${name}.")
    rows = []
    for name, (estimate, interval) in kappas.items():
        if fail_under == ANNOTATORS:
            known = keep, margin, interval.confidence_level
            rows.append(_also_without(_against_annotators(name, estimate, *known), without, *known))
        elif fail_under is not None:
            rows.append(_kappa(name, estimate, interval, check_real("fail_under", fail_under, *_KAPPA), on))
        if min_coverage is not None:
            least = check_real("min_coverage", min_coverage, "from 0 to 1", lambda x: 0 <= x <= 1)
            share = estimate.coverage
            outcome = "undecided" if math.isnan(share) else "fail" if share < least else "pass"
            rows.append(GateRow(name, outcome, _COVERAGE, least, share, reason=estimate.reason))
    return Gate(tuple(_unless_unjudged(row, problems) for row in rows), _level(kappas))


def _level(kappas: Mapping[str, tuple[Estimate, ConfidenceInterval]]) -> float:
    return next((interval.confidence_level for _, interval in kappas.values()), 0.95)


def _unless_unjudged(row: GateRow, problems: Sequence[Problem]) -> GateRow:
    """Return an undecided row if the data has an error, or if the row passed although the votes cannot judge it."""
    unjudged = cannot_judge(row.labeler, problems)
    if unjudged is None or (row.outcome != "pass" and unjudged.code != "data-problem"):
        return row
    return replace(row, outcome="undecided", more_items=None, reason=unjudged.headline)


_KAPPA = ("from -1.1 to 1, the range of kappa", lambda x: -1.1 <= x <= 1)


def _kappa(name: str, estimate: Estimate, interval: ConfidenceInterval, bound: float, on: str) -> GateRow:
    """Test kappa: the lower limit, or the value itself."""
    measure = "weighted kappa" if estimate.metric == "weighted" else "kappa"
    low, high, value = interval.low, interval.high, estimate.value
    if on == "value":
        outcome = "undecided" if math.isnan(value) else "pass" if value >= bound else "fail"
        return GateRow(name, outcome, measure, bound, value, reason=estimate.reason)
    if math.isnan(low):
        return GateRow(name, "undecided", measure, bound, value, reason=interval.reason)
    outcome = "pass" if low >= bound else "fail" if high < bound else "undecided"
    unknown = outcome != "undecided" or estimate.sample.clustered
    more = None if unknown else items_to_decide(estimate.n_items, value, low, high, bound)
    return GateRow(name, outcome, measure, bound, value, low, high, more)


def _against_annotators(
    name: str, estimate: Estimate, keep: float | None, margin: float | None, level: float
) -> GateRow:
    """Test whether a labeler is as good as a typical annotator, up to a share or a margin."""
    found = annotator_baseline(estimate, confidence_level=level)
    outcome = found.decide(keep=keep, margin=margin)
    if margin is not None:
        measure, bound = "difference from a typical annotator", 0.0 - margin  # not -0.0
        value, low, high, reason = found.difference, found.low, found.high, found.reason
    else:
        measure, bound = _SHARE, KEEP if keep is None else keep
        value, low, high, reason = found.share_kept, found.share_low, found.share_high, found.share_reason
    if outcome == "pass" and (why := follows_majority(estimate)[0]):
        return GateRow(
            name, "undecided", measure, bound, value, low, high, reason=f"These votes cannot judge {name}: {why}."
        )
    more = None
    if outcome == "undecided" and not math.isnan(value + low + high) and not estimate.sample.clustered:
        more = items_to_decide(found.n_items, value, low, high, bound)
    return GateRow(name, outcome, measure, bound, value, low, high, more, reason)


def _also_without(
    row: GateRow, without: WithoutFlagged | None, keep: float | None, margin: float | None, level: float
) -> GateRow:
    """Return an undecided row if a labeler passes, but would not without the annotators who are flagged."""
    found = without(row.labeler) if without is not None and row.outcome == "pass" else None
    if found is None:
        return row
    once, estimate = found
    if estimate is None:
        return replace(row, outcome="undecided", reason=f"{once} it cannot be tested.")
    other = _against_annotators(row.labeler, estimate, keep, margin, level)
    if other.outcome == "pass":
        return row
    what = "score" if row.measure == _SHARE else "difference"
    return replace(row, outcome="undecided", reason=f"{once} the {what} is{other.result or ' undefined'}.")
