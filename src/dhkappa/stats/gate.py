"""Gate: whether each labeler passes a bound, fails it, or needs more items to tell."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dhkappa.errors import Problem, invalid, shown
from dhkappa.stats.annotator_baseline import KEEP, annotator_baseline
from dhkappa.stats.grades import cannot_judge, digits_of
from dhkappa.stats.intervals import ConfidenceInterval, decided_by, items_to_decide
from dhkappa.stats.kappa import Estimate
from dhkappa.stats.rates import WITH_AGREEMENT_WEIGHTS, category_code, rate_bases, sides_of
from dhkappa.stats.sample import check_choice, check_real
from dhkappa.stats.verdict import follows_majority
from dhkappa.table import Display, plain

ANNOTATORS = "annotators"
"""Value of ``fail_under`` that compares a labeler with a typical annotator."""
_WORDS = {"pass": "passed", "fail": "failed", "undecided": "undecided"}  # nosec B105 - an outcome
_SHARE, _COVERAGE = "share of a typical annotator's score", "coverage"  # in JSON
_SCALE = "score on the scale from 0 (random labels) to 100 (a typical annotator)"  # for people, instead of the share
_RATE = re.compile(r"(recall|precision|f1|tpr|tnr|agreement)(?::(.+))?=([^=]*)", re.DOTALL)
_SIDES = {"tpr": "sensitivity", "tnr": "specificity"}
_COUNTED = {"precision": "labeled", "recall": "voted", "f1": "labeled or voted"}  # what more items have to be
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
    more_of : which items these are, such as ``"labeled 'outage'"``; empty if any
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
    more_of: str = ""
    reason: str | None = None

    @property
    def text(self) -> str:
        """The outcome as a sentence."""
        digits = digits_of(self.high - self.low, least=3)
        value, low, high = (self._written(x, digits) for x in (self.value, self.low, self.high))
        name = _SCALE if self.measure == _SHARE else self.measure
        known = not math.isnan(self.value + self.low)
        measured = f"{name} undefined" if math.isnan(self.value) and math.isnan(self.low) else name
        measured += "" if math.isnan(self.value) else f" {value}"
        measured += "" if math.isnan(self.low) else f" ({low} to {high})"
        text = f"{self.labeler} {_WORDS[self.outcome]}: {measured}, required {self._bound()}."
        reason = self.reason
        if self.outcome == "undecided" and known and not (reason or self.more_items):
            what = name.capitalize() if name.endswith("kappa") else f"The {name}"
            reason = f"{what} is too close to the bound."
        return " ".join(filter(None, (text, decided_by(self.more_items, self.more_of), reason)))

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
) -> Gate:
    """Test the kappas of some labelers, each with its interval at the confidence level; see ``Audit.gate``."""
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
        if isinstance(fail_under, str) and "=" in fail_under:
            rows.append(_rate(name, estimate, fail_under, interval.confidence_level, on))
        elif fail_under == ANNOTATORS:
            rows.append(_against_annotators(name, estimate, keep, margin, interval.confidence_level))
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
    more = items_to_decide(estimate.n_items, value, low, high, bound) if outcome == "undecided" else None
    return GateRow(name, outcome, measure, bound, value, low, high, more)


def _rate(name: str, estimate: Estimate, condition: str, level: float, on: str) -> GateRow:
    """Test a rate, such as ``"recall:outage=0.8"``."""
    found = _RATE.fullmatch(condition)
    kind, category, text = found.groups() if found else ("", None, "")
    if not found or (category is None) != (kind == "agreement"):
        hint = "Write recall:CATEGORY=0.8, precision:CATEGORY=0.8, f1:CATEGORY=0.8 or agreement=0.8."
        raise invalid("fail_under", f"{shown([condition])} is not a condition of a gate.", hint=hint)
    if estimate.metric != "dh":
        message = f"{kind} cannot be tested. {WITH_AGREEMENT_WEIGHTS}"
        raise invalid("fail_under", message, code="metric-not-supported", hint="Leave out $weights.")
    try:
        bound: Any = float(text)
    except ValueError:
        bound = text
    bound = check_real("fail_under", bound, "from 0 to 1, the range of a rate")
    known = rate_bases(estimate.sample)
    if kind == "agreement":
        measure, of, rate = kind, "", known.vote_agreement(level)
    else:
        code = category_code(known.categories, category, "fail_under")
        label, side = shown([known.categories[code]]), kind
        if kind in _SIDES:
            code, other = sides_of(known, known.categories[code])
            code, kind = (code if kind == "tpr" or other is None else other), "recall"
        measure = f"{_SIDES[side]} for {label}" if side in _SIDES else f"{kind} of {label}"
        of, rate = f"{_COUNTED[kind]} {shown([known.categories[code]])}", known.rate(kind, code, level)
    if on == "value":
        outcome = "undecided" if math.isnan(rate.value) else "pass" if rate.value >= bound else "fail"
        return GateRow(name, outcome, measure, bound, rate.value, reason=rate.reason)
    if math.isnan(rate.low):
        return GateRow(name, "undecided", measure, bound, rate.value, reason=rate.reason)
    outcome = "pass" if rate.low >= bound else "fail" if rate.high < bound else "undecided"
    n = max(round(rate.n), 1)
    more = items_to_decide(n, rate.value, rate.low, rate.high, bound) if outcome == "undecided" else None
    return GateRow(name, outcome, measure, bound, rate.value, rate.low, rate.high, more, of)


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
    if outcome == "undecided" and not math.isnan(value + low + high):
        more = items_to_decide(found.n_items, value, low, high, bound)
    return GateRow(name, outcome, measure, bound, value, low, high, more, reason=reason)
