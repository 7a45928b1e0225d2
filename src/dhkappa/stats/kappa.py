"""The paper: DiPietro-Hazari kappa (eq. 4-13) and Fleiss' kappa (eq. 1-3), exactly."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dhkappa.data.labels import Label
from dhkappa.data.tally import Tally
from dhkappa.errors import counted
from dhkappa.stats.notes import Note, notes_on_labels, notes_on_value, notes_on_votes
from dhkappa.stats.sums import Dropped, Sums, sums


@dataclass(frozen=True, slots=True)
class Parts:
    """What kappa is made of, in the paper's letters, as exact fractions.

    For Fleiss' kappa, L is empty, S and C_F are 0, R and C_E are those of eq. 2-3.
    """

    R: Fraction
    """Share of annotator pairs that agree on the suggested label (eq. 10), a mean over items."""
    S: Fraction
    """Share of annotator pairs that agree on another label (eq. 12)."""
    C_E: Fraction
    """R expected by chance (eq. 6)."""
    C_F: Fraction
    """S expected by chance (eq. 9)."""
    _categories: tuple[Label, ...]
    _sums: Sums

    @property
    def C(self) -> dict[Label, Fraction]:
        """Share of votes for each category (eq. 1, 4), a mean over items."""
        return _shares(self._categories, self._sums.votes, self._sums.n * self._sums.vote_unit)

    @property
    def L(self) -> dict[Label, Fraction]:
        """Share of suggested labels that are each category (eq. 5)."""
        return _shares(self._categories, self._sums.labels, self._sums.n) if any(self._sums.labels) else {}

    @property
    def D(self) -> Fraction:
        """The agreement differential, R - S."""
        return self.R - self.S

    @property
    def E(self) -> Fraction:
        """The differential expected by chance, C_E - C_F."""
        return self.C_E - self.C_F

    @property
    def kappa(self) -> Fraction | None:
        """The differential above chance over what could be had (eq. 13); None where E is 1."""
        return _above_chance(self.D, self.E)

    def __repr__(self) -> str:
        letters = ("R", "S", "C_E", "C_F", "D", "E")
        return f"Parts({', '.join(f'{letter}={float(getattr(self, letter)):.4f}' for letter in letters)})"


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
    notes : conditions that change what kappa means, each with a code and a sentence
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
    notes: tuple[Note, ...]
    reason: str | None
    tally: Tally

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
        size = f"{counted(self.n_items, 'item')}, {counted(self.n_votes, 'vote')}"
        if self.reason:
            said.insert(0, self.reason.rstrip("."))
        if self.notes:
            said.append(counted(len(self.notes), "note"))
        return f"{self._name()} {_digits(self.value)} ({'; '.join([size, *said])})"

    def _name(self) -> str:
        return {"dh": "kappa_DH", "fleiss": "Fleiss' kappa"}[self.metric]

    def _beside(self) -> list[tuple[str, float]]:
        if self.metric == "fleiss":
            return []
        return [("floor", self.floor), ("ceiling", self.ceiling), ("Fleiss", self.fleiss)]

    def _repr_html_(self) -> str:
        rows = [(self._name(), _digits(self.value), True)]
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
        parts = self.parts
        return {
            "metric": self.metric,
            "value": _number(self.value),
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
        return _undefined("dh", tally, total)
    n, pair_unit = total.n, total.n * total.pair_unit
    agreeing = Fraction(sum(total.pairs), pair_unit)
    same = _chance_same(total)  # sum_j C_j^2
    R = Fraction(total.on_label, pair_unit)  # eq. 10
    C_E = _chance_on(total, total.labels)  # eq. 6
    parts = Parts(
        R=R,
        S=agreeing - R,  # eq. 12: the pairs that agree, on another label
        C_E=C_E,
        C_F=same - C_E,  # eq. 9: sum_i L_i (sum_j C_j^2 - C_i^2), as the L_i sum to 1
        _categories=tally.categories,
        _sums=total,
    )
    exact = parts.kappa  # eq. 13

    # Labels dealt out at random keep C and L; D becomes sum_j G_j (2 L_j - 1).
    random = Fraction(sum(g * (2 * b - n) for g, b in zip(total.pairs, total.labels, strict=True)), n * pair_unit)
    # The plurality label of each item, judged by the same votes.
    best = 2 * Fraction(total.on_plurality, pair_unit) - agreeing
    floor = _above_chance(random, parts.E)
    ceiling = _above_chance(best, 2 * _chance_on(total, total.plurality) - same)
    fleiss = _above_chance(agreeing, same)
    return Kappa(
        metric="dh",
        value=_rounded(exact),
        exact=exact,
        parts=parts,
        floor=_rounded(floor),
        ceiling=_rounded(ceiling),
        fleiss=_rounded(fleiss),
        n_items=n,
        n_votes=total.n_votes,
        dropped=total.dropped,
        notes=(
            *notes_on_votes(total, tally.categories),
            *notes_on_labels(total, tally.categories),
            *notes_on_value(parts.R, parts.S, exact, floor, fleiss),
        ),
        reason=None
        if exact is not None
        else "every vote and every suggested label is the same category, so agreement is certain.",
        tally=tally.copy(),
    )


def fleiss_kappa_of(tally: Tally) -> Kappa:
    """Return Fleiss' kappa of a tally: the panel among itself, whatever the suggested labels."""
    total = sums(tally, labeled=False)
    if total.n == 0:
        return _undefined("fleiss", tally, total)
    parts = Parts(
        R=Fraction(sum(total.pairs), total.n * total.pair_unit),  # eq. 2
        S=Fraction(0),
        C_E=_chance_same(total),
        C_F=Fraction(0),
        _categories=tally.categories,
        _sums=total,
    )
    exact = parts.kappa  # eq. 3
    return Kappa(
        metric="fleiss",
        value=_rounded(exact),
        exact=exact,
        parts=parts,
        floor=math.nan,
        ceiling=math.nan,
        fleiss=_rounded(exact),
        n_items=total.n,
        n_votes=total.n_votes,
        dropped=total.dropped,
        notes=tuple(notes_on_votes(total, tally.categories)),
        reason=None if exact is not None else "every vote is the same category, so agreement is certain.",
        tally=tally.copy(),
    )


def _above_chance(D: Fraction, E: Fraction) -> Fraction | None:
    return None if E == 1 else (D - E) / (1 - E)


def _shares(categories: tuple[Label, ...], numbers: list[int], whole: int) -> dict[Label, Fraction]:
    return {label: Fraction(number, whole) for label, number in zip(categories, numbers, strict=True)}


def _chance_same(total: Sums) -> Fraction:
    """Return sum_j C_j^2: two votes drawn by their shares agree."""
    return Fraction(sum(votes * votes for votes in total.votes), (total.n * total.vote_unit) ** 2)


def _chance_on(total: Sums, labels: list[int]) -> Fraction:
    """Return sum_j C_j^2 L_j, eq. 6, for labels with these counts."""
    on = sum(votes * votes * number for votes, number in zip(total.votes, labels, strict=True) if number)
    return Fraction(on, (total.n * total.vote_unit) ** 2 * total.n)


def _rounded(exact: Fraction | None) -> float:
    return math.nan if exact is None else float(exact)


def _undefined(metric: str, tally: Tally, total: Sums) -> Kappa:
    nan, notes = math.nan, tuple(notes_on_votes(total, tally.categories))
    reason = _why_none(total.dropped)
    return Kappa(metric, nan, None, None, nan, nan, nan, 0, 0, total.dropped, notes, reason, tally.copy())


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
