"""Kappa: a result that keeps its counts and shows itself well."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dhkappa.data.labels import Label
from dhkappa.data.tally import Tally
from dhkappa.errors import DataError, counted
from dhkappa.stats.influence import extremes, influence, standard_error, sum_of_squares
from dhkappa.stats.intervals import Basis, Interval, beta_interval, check_level, logit_interval, wald_interval
from dhkappa.stats.kappa import Estimate, Parts, estimate_dh, estimate_fleiss
from dhkappa.stats.notes import Note, notes_on_error, notes_on_labels, notes_on_value, notes_on_votes
from dhkappa.stats.sums import Dropped, Sums, sums
from dhkappa.stats.terms import terms

_NO_ERROR = "the sample cannot show how far kappa would vary."


@dataclass(frozen=True, slots=True, eq=False)
class Kappa:
    """A kappa with all that is needed to read it.

    ``float(kappa)`` is ``value``, and ``f"{kappa:.3f}"`` formats it. Where kappa is undefined, ``value`` is NaN,
    ``exact`` is None and ``reason`` says why.

    Attributes
    ----------
    metric : ``"dh"`` or ``"fleiss"``
    value : kappa, the exact rational correctly rounded
    exact : kappa as a fraction
    parts : C, L, R, S, C_E, C_F, D, E as fractions; None where no item is eligible
    floor : what labels dealt out at random would score, on average, with these annotators
    ceiling : what the panel's own plurality labels score; optimistic, as the same votes judge them
    fleiss : how far the panel agrees with itself, on the same items
    n_items : eligible items, with two votes or more and (but for Fleiss' kappa) a suggested label
    n_votes : votes on them
    dropped : items that were not eligible, by reason
    reason : why kappa is undefined; None where it is defined
    tally : the counts that it was computed from
    """

    metric: str
    value: float
    exact: Fraction | None
    parts: Parts | None
    floor: float
    ceiling: float
    fleiss: float
    n_items: int
    n_votes: int
    dropped: Dropped
    reason: str | None
    tally: Tally
    _notes: tuple[Note, ...]
    _known: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Conditions that change what kappa means, each with a code and a sentence."""
        return (*self._notes, *notes_on_error(self.value, self.n_items, self.se))

    @property
    def se(self) -> float:
        """The standard error, for items drawn at random; NaN where the sample cannot show one.

        It does not cover the choice of other annotators.
        """
        if "se" not in self._known:
            self._known["se"] = self._standard_error()
        se: float = self._known["se"]
        return se

    def interval(self, level: float = 0.95, method: str | None = None) -> Interval:
        """Return a confidence interval.

        Parameters
        ----------
        level
            How often such intervals hold the true kappa.
        method
            ``"beta"`` (the default) holds its level also for small samples, high kappa and rare labels;
            ``"logit"`` is narrower where many items are imperfect and no label is rare; ``"wald"`` is kappa
            plus and minus t standard errors, and the only one for Fleiss' kappa.

        Examples
        --------
        >>> import dhkappa
        >>> drawn = dhkappa.simulate(200, rng=1)
        >>> dhkappa.dh_kappa(drawn.votes, drawn.suggested["labeler"]).interval()
        [0.3981, 0.5718] at 0.95 (beta)
        """
        alpha = 1 - check_level(level)
        methods = ("wald",) if self.metric == "fleiss" else ("beta", "logit", "wald")
        method = methods[0] if method is None else method
        if method not in methods:
            raise DataError(f"method must be one of {', '.join(methods)}: got {method!r}.")
        if math.isnan(self.se):
            return Interval(math.nan, math.nan, level, method, self.reason or _NO_ERROR)
        basis: Basis = self._known["basis"]
        if method == "beta":
            low, high = beta_interval(basis, alpha)
        else:
            low, high = (logit_interval if method == "logit" else wald_interval)(basis, self.se, alpha)
        return Interval(low, high, level, method)

    def _standard_error(self) -> float:
        if self.parts is None or self.exact is None or self.n_items < 2:
            return math.nan
        seen = terms(self.tally, self.parts)
        squares = sum_of_squares(influence(seen), seen.items)
        least, greatest = extremes(seen) if self.metric == "dh" else (math.nan, math.nan)
        self._known["basis"] = Basis(self.value, float(self.parts.E), self.n_items, squares, least, greatest)
        return math.nan if squares == 0 and self.exact != 1 else standard_error(squares, self.n_items)

    @property
    def categories(self) -> tuple[Label, ...]:
        """The categories, in order."""
        return self.tally.categories

    def __float__(self) -> float:
        return self.value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else repr(self)

    def __repr__(self) -> str:
        said = [f"{name} {_digits(value)}" for name, value in self._beside() if not math.isnan(value)]
        interval = self.interval()
        within = "" if math.isnan(interval.low) else f" [{_digits(interval.low)}, {_digits(interval.high)}]"
        size = f"{counted(self.n_items, 'item')}, {counted(self.n_votes, 'vote')}"
        if self.reason:
            said.insert(0, self.reason.rstrip("."))
        if self.notes:
            said.append(counted(len(self.notes), "note"))
        return f"{self._name()} {_digits(self.value)}{within} ({'; '.join([size, *said])})"

    def _name(self) -> str:
        return {"dh": "kappa_DH", "fleiss": "Fleiss' kappa"}[self.metric]

    def _beside(self) -> list[tuple[str, float]]:
        if self.metric == "fleiss":
            return []
        return [("floor", self.floor), ("ceiling", self.ceiling), ("Fleiss", self.fleiss)]

    def _repr_html_(self) -> str:
        rows = [(self._name(), _digits(self.value), True)]
        interval = self.interval()
        if not math.isnan(interval.low):
            rows.append(("95% interval", f"{_digits(interval.low)} to {_digits(interval.high)}", False))
        rows += [(name, _digits(value), False) for name, value in self._beside()]
        rows += [("items", f"{self.n_items:,}", False), ("votes", f"{self.n_votes:,}", False)]
        if self.dropped.total:
            rows.append(("items dropped", f"{self.dropped.total:,}", False))
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td>{'<b>' if bold else ''}{html.escape(text)}{'</b>' if bold else ''}</td></tr>"
            for name, text, bold in rows
        )
        said = [self.reason] if self.reason else []
        said += [note.text for note in self.notes]
        notes = "".join(f"<li>{html.escape(text)}</li>" for text in said)
        return f"<table>{cells}</table>" + (f"<ul>{notes}</ul>" if notes else "")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON.

        NaN is None; ``exact`` is its text, or None beyond 3,000 digits; C and L are lists of [category, share].
        """
        parts, interval = self.parts, self.interval()
        return {
            "metric": self.metric,
            "value": _number(self.value),
            "se": _number(self.se),
            "interval": dict(zip(("low", "high"), map(_number, interval), strict=True))
            | {"level": interval.level, "method": interval.method},
            "exact": _text(self.exact),
            "floor": _number(self.floor),
            "ceiling": _number(self.ceiling),
            "fleiss": _number(self.fleiss),
            "n_items": self.n_items,
            "n_votes": self.n_votes,
            "dropped": {
                "no_votes": self.dropped.no_votes,
                "one_vote": self.dropped.one_vote,
                "no_label": self.dropped.no_label,
            },
            "parts": None
            if parts is None
            else {
                **{letter: float(getattr(parts, letter)) for letter in ("R", "S", "C_E", "C_F", "D", "E")},
                "C": [[label, float(share)] for label, share in parts.C.items()],
                "L": [[label, float(share)] for label, share in parts.L.items()],
            },
            "notes": [{"code": note.code, "text": note.text} for note in self.notes],
            "reason": self.reason,
        }


def dh_kappa_of(tally: Tally) -> Kappa:
    """Return the DiPietro-Hazari kappa of a tally."""
    total = sums(tally)
    if total.n == 0:
        return _result("dh", tally, total, None, _why_none(total.dropped))
    estimate = estimate_dh(total, tally.categories)
    parts, kappa = estimate.parts, estimate.parts.kappa
    certain = "every vote and every suggested label is the same category, so agreement is certain."
    notes = (
        *notes_on_labels(total, tally.categories),
        *notes_on_value(parts.R, parts.S, kappa, estimate.floor, estimate.fleiss),
    )
    return _result("dh", tally, total, estimate, certain, notes)


def fleiss_kappa_of(tally: Tally) -> Kappa:
    """Return Fleiss' kappa of a tally."""
    total = sums(tally, labeled=False)
    if total.n == 0:
        return _result("fleiss", tally, total, None, _why_none(total.dropped))
    certain = "every vote is the same category, so agreement is certain."
    return _result("fleiss", tally, total, estimate_fleiss(total, tally.categories), certain)


def _result(
    metric: str, tally: Tally, total: Sums, estimate: Estimate | None, reason: str, notes: tuple[Note, ...] = ()
) -> Kappa:
    """Put a result together; ``reason`` holds where kappa is undefined."""
    exact = estimate.parts.kappa if estimate else None
    return Kappa(
        metric=metric,
        value=_rounded(exact),
        exact=exact,
        parts=estimate.parts if estimate else None,
        floor=_rounded(estimate.floor if estimate else None),
        ceiling=_rounded(estimate.ceiling if estimate else None),
        fleiss=_rounded(estimate.fleiss if estimate else None),
        n_items=total.n,
        n_votes=total.n_votes,
        dropped=total.dropped,
        reason=reason if exact is None else None,
        tally=tally.copy(),
        _notes=(*notes_on_votes(total, tally.categories), *notes),
    )


def _rounded(exact: Fraction | None) -> float:
    return math.nan if exact is None else float(exact)


def _why_none(lost: Dropped) -> str:
    """Say why no item is eligible."""
    if lost.total == 0:
        return "the data hold no items."
    needs = "two votes" + (" and a suggested label" if lost.no_label else "")
    return f"no item has {needs} ({counted(lost.total, 'item')}: {lost.why()})."


def _digits(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.4f}"


def _text(exact: Fraction | None) -> str | None:
    """Write a fraction, unless it is so long that Python refuses to."""
    if exact is None or max(exact.denominator.bit_length(), exact.numerator.bit_length()) > 10_000:
        return None
    return str(exact)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
