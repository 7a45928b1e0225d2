"""Gate: whether each labeler passes a bound, fails it, or needs more items to tell."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from dhkappa.errors import Problem, counted, invalid, shown
from dhkappa.stats.annotator_baseline import KEEP, annotator_baseline
from dhkappa.stats.any_time import FARTHEST, any_time_level, boundary, items_when_decided, too_few_items
from dhkappa.stats.grades import cannot_judge, digits_of, follows_majority
from dhkappa.stats.influence import kappa_variance
from dhkappa.stats.intervals import ConfidenceInterval, decided_by, items_to_decide, written
from dhkappa.stats.kappa import Estimate
from dhkappa.stats.rates import WITH_AGREEMENT_WEIGHTS, category_code, rate_bases, sides_of
from dhkappa.stats.sample import check_choice, check_real
from dhkappa.table import Display, plain

WithoutFlagged: TypeAlias = Callable[[str], tuple[str, Estimate | None] | None]
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
    any_time_level : the level of these limits alone, if they hold at every look; see ``ConfidenceInterval``
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
    any_time_level: float | None = None

    @property
    def text(self) -> str:
        """The outcome as a sentence."""
        name, known = self._name, not math.isnan(self.value + self.low)
        text = f"{self.labeler} {_WORDS[self.outcome]}: {name}{self.result or ' undefined'}, required {self._bound()}."
        reason = self.reason
        if self.outcome == "undecided" and known and not (reason or self.more_items):
            what = name.capitalize() if name.endswith("kappa") else f"The {name}"
            reason = f"{what} is too close to the bound."
            if self.any_time_level is not None:
                reason = f"It would take more than {FARTHEST} times as many items to decide it."
        decided = decided_by(self.more_items, self.more_of)
        if self.any_time_level is not None and self.more_items:
            items = " ".join(filter(None, (counted(self.more_items, "more item"), self.more_of)))
            decided = f"About {items} would probably settle it, often up to twice as many."
        return " ".join(filter(None, (text, decided, reason)))

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
    any_time : whether the limits hold at every look
    """

    rows: tuple[GateRow, ...]
    confidence_level: float = 0.95
    any_time: bool = False

    @property
    def outcome(self) -> str:
        """``"fail"`` if a labeler fails, else ``"undecided"`` if one is undecided, else ``"pass"``."""
        return next((word for word in _WORST_FIRST if any(row.outcome == word for row in self.rows)), "pass")

    @property
    def text(self) -> str:
        """The outcome as sentences, the worst labelers first."""
        rows = sorted(self.rows, key=lambda row: _WORST_FIRST.index(row.outcome))
        known = {row.any_time_level for row in rows if row.any_time_level is not None}
        held = sorted(level for level in known if not math.isnan(level))
        said = [f"Gate {_WORDS[self.outcome]}.", *(row.text for row in rows)]
        if held:
            names = " and ".join(f"{written(level, 100)}%" for level in held)
            level = written(self.confidence_level, 100)
            said.append(f"Limits at level {names}, so that they hold at {level}% however often you look.")
        return " ".join(said)

    def _display(self) -> tuple[str]:
        return (self.text,)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        rows = [row.to_dict() for row in self.rows]
        level = {"confidence_level": self.confidence_level, "any_time": self.any_time}
        return {"outcome": self.outcome, "text": self.text, **level, "rows": rows}


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
    The limits hold at every look if those of the intervals do.
    """
    check_choice("on", on, ("low", "value"))
    any_time = any(interval.any_time_level is not None for _, interval in kappas.values())
    if any_time and on == "value":
        message = "Only confidence limits hold at every look, not the value of kappa."
        raise invalid("on", message, code="any-time-value", hint="Leave out $on, or $any_time.")
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
            rows.append(_rate(name, estimate, fail_under, interval, on))
        elif fail_under == ANNOTATORS:
            known = keep, margin, interval
            rows.append(_also_without(_against_annotators(name, estimate, *known), without, *known))
        elif fail_under is not None:
            rows.append(_kappa(name, estimate, interval, check_real("fail_under", fail_under, *_KAPPA), on))
        if min_coverage is not None:
            least = check_real("min_coverage", min_coverage, "from 0 to 1", lambda x: 0 <= x <= 1)
            share = estimate.coverage
            outcome = "undecided" if math.isnan(share) else "fail" if share < least else "pass"
            rows.append(GateRow(name, outcome, _COVERAGE, least, share, reason=estimate.reason))
    return Gate(tuple(_unless_unjudged(row, problems) for row in rows), _level(kappas), any_time)


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
    single = interval.any_time_level
    if math.isnan(low):
        return GateRow(name, "undecided", measure, bound, value, reason=interval.reason, any_time_level=single)
    outcome = "pass" if low >= bound else "fail" if high < bound else "undecided"
    row = GateRow(name, outcome, measure, bound, value, low, high, any_time_level=single)
    if outcome != "undecided" or estimate.sample.clustered:
        return row
    if single is None:
        return replace(row, more_items=items_to_decide(estimate.n_items, value, low, high, bound))
    spread = kappa_variance(estimate)
    saved = spread.infinite_pool - spread.value
    return _forecast(row, estimate, estimate.n_items, interval.confidence_level, math.sqrt(spread.value), saved)


def _forecast(row: GateRow, estimate: Estimate, n: int, level: float, se: float, saved: float = 0.0) -> GateRow:
    """Return a row with the number of items at which it would be decided, if the value stayed as it is.

    ``saved`` is the part of the variance that a finite pool saves. If the standard error alone would decide already, or
    is unknown (0), it is taken from the limit on the side of the bound.
    """
    effective = estimate.sample.n_effective * n / estimate.n_items
    near = abs(row.value - (row.low if row.value > row.bound else row.high)) / boundary(effective, level)
    found: int | None = n
    for error in (se, near):
        if found == n and 0 < error < math.inf:
            found = items_when_decided(n, error, abs(row.value - row.bound), level, effective=effective, fixed=saved)
    if found is None or math.isinf(near):
        return row
    more = max(found - n, 1)
    more = round(more, 2 - len(str(more)))  # two digits: it is a rough number
    sizes = [part.size for part in estimate.sample.strata]
    if None in sizes:
        return replace(row, more_items=more)
    left = max(sum(size or 0 for size in sizes) - n, 0)
    return replace(row, more_items=min(more, left), reason=f"The pool has {counted(left, 'more item')}.")


def _rate(name: str, estimate: Estimate, condition: str, interval: ConfidenceInterval, on: str) -> GateRow:
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
        measure, of, at = kind, "", known.vote_agreement
    else:
        code = category_code(known.categories, category, "fail_under")
        label, side = shown([known.categories[code]]), kind
        if kind in _SIDES:
            code, other = sides_of(known, known.categories[code])
            code, kind = (code if kind == "tpr" or other is None else other), "recall"
        measure = f"{_SIDES[side]} for {label}" if side in _SIDES else f"{kind} of {label}"
        of, at = f"{_COUNTED[kind]} {shown([known.categories[code]])}", partial(known.rate, kind, code)
    level, single = interval.confidence_level, None
    rate = at(level)
    row = GateRow(name, "undecided", measure, bound, rate.value)
    if on == "value":
        outcome = row.outcome if math.isnan(rate.value) else "pass" if rate.value >= bound else "fail"
        return replace(row, outcome=outcome, reason=rate.reason if math.isnan(rate.value) else None)
    if interval.any_time_level is not None:
        effective = rate.n * estimate.sample.n_effective / max(estimate.n_items, 1)
        single = any_time_level(effective, level)
        row = replace(row, any_time_level=single)
        if math.isnan(single):
            return replace(row, reason=rate.reason or too_few_items(effective, of))
        rate = at(single)
    if math.isnan(rate.low):
        return replace(row, reason=rate.reason)
    outcome = "pass" if rate.low >= bound else "fail" if rate.high < bound else "undecided"
    row = replace(row, outcome=outcome, low=rate.low, high=rate.high, more_of=of)
    if outcome != "undecided":
        return row
    n = max(round(rate.n), 1)
    if single is None:
        return replace(row, more_items=items_to_decide(n, rate.value, rate.low, rate.high, bound))
    return _forecast(row, estimate, n, level, rate.se)


def _against_annotators(
    name: str, estimate: Estimate, keep: float | None, margin: float | None, interval: ConfidenceInterval
) -> GateRow:
    """Test whether a labeler is as good as a typical annotator, up to a share or a margin."""
    level, single = interval.confidence_level, interval.any_time_level
    found = annotator_baseline(estimate, confidence_level=level, any_time=single is not None)
    single = found.any_time_level
    outcome = found.decide(keep=keep, margin=margin)
    if margin is not None:
        measure, bound = "difference from a typical annotator", 0.0 - margin  # not -0.0
        value, low, high, reason = found.difference, found.low, found.high, found.reason
    else:
        measure, bound = _SHARE, KEEP if keep is None else keep
        value, low, high, reason = found.share_kept, found.share_low, found.share_high, found.share_reason
    row = GateRow(name, outcome, measure, bound, value, low, high, reason=reason, any_time_level=single)
    if outcome == "pass" and (why := follows_majority(estimate)[0]):
        return replace(row, outcome="undecided", reason=f"These votes cannot judge {name}: {why}.")
    if outcome != "undecided" or math.isnan(value + low + high) or estimate.sample.clustered:
        return row
    if single is None:
        return replace(row, more_items=items_to_decide(found.n_items, value, low, high, bound))
    return _forecast(row, estimate, found.n_items, level, found.se if margin is not None else 0.0)


def _also_without(
    row: GateRow, without: WithoutFlagged | None, keep: float | None, margin: float | None, interval: ConfidenceInterval
) -> GateRow:
    """Return an undecided row if a labeler passes, but would not without the annotators who are flagged."""
    found = without(row.labeler) if without is not None and row.outcome == "pass" else None
    if found is None:
        return row
    once, estimate = found
    if estimate is None:
        return replace(row, outcome="undecided", reason=f"{once} it cannot be tested.")
    other = _against_annotators(row.labeler, estimate, keep, margin, interval)
    if other.outcome == "pass":
        return row
    what = "score" if row.measure == _SHARE else "difference"
    return replace(row, outcome="undecided", reason=f"{once} the {what} is{other.result or ' undefined'}.")
