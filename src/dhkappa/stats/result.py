"""Kappa: a result that keeps its counts and shows itself well."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dhkappa.core.labels import Label
from dhkappa.errors import DataError, counted, shown
from dhkappa.stats.influence import extremes, influence
from dhkappa.stats.intervals import Basis, Interval, beta_interval, check_level, logit_interval, wald_interval
from dhkappa.stats.kappa import Parts
from dhkappa.stats.notes import Note, notes_on_error
from dhkappa.stats.sample import Dropped, Sample
from dhkappa.stats.terms import Terms, terms
from dhkappa.stats.variance import basis_of

if TYPE_CHECKING:  # rooms that only some questions need are opened when they are asked
    from dhkappa.stats.bootstrap import Bootstrap
    from dhkappa.stats.permutation import RandomLabelTest
    from dhkappa.table import Table

_METHODS = {
    "dh": ("beta", "logit", "wald", "bootstrap", "bca"),
    "ordinal": ("beta", "log", "wald"),
    "fleiss": ("wald",),
}
_NO_ERROR = "the sample cannot show how far kappa would vary."


@dataclass(frozen=True, slots=True, eq=False)
class Kappa:
    """A kappa with all that is needed to read it.

    ``float(kappa)`` is ``value``, and ``f"{kappa:.3f}"`` formats it. Where kappa is undefined, ``value`` is NaN,
    ``exact`` is None and ``reason`` says why.

    Attributes
    ----------
    metric : ``"dh"``, ``"ordinal"`` (with ordinal weights) or ``"fleiss"``
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
    _sample: Sample
    _notes: tuple[Note, ...]
    _known: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Conditions that change what kappa means, each with a code and a sentence."""
        return (*self._notes, *notes_on_error(self.value, self.n_items, self.se))

    @property
    def sample(self) -> Sample:
        """The eligible items as they were drawn, each pattern once."""
        if "sample" not in self._known:
            self._known["sample"] = self._sample.merged()
        sample: Sample = self._known["sample"]
        return sample

    @property
    def se(self) -> float:
        """The standard error, for items drawn at random; NaN where the sample cannot show one.

        It does not cover the choice of other annotators.
        """
        basis = self._basis
        return math.nan if basis is None else basis.se

    @property
    def n_effective(self) -> float:
        """How many items that weigh the same would tell as much; ``n_items`` where no weights are given."""
        return self._sample.n_effective

    def interval(
        self,
        level: float = 0.95,
        method: str | None = None,
        *,
        n: int = 9_999,
        rng: int | np.random.Generator | None = None,
    ) -> Interval:
        """Return a confidence interval.

        Parameters
        ----------
        level
            How often such intervals hold the true kappa.
        method
            ``"beta"`` (the default) holds its level also for small samples, high kappa and rare labels;
            ``"logit"`` is narrower where many items are imperfect and no label is rare; ``"wald"`` is kappa
            plus and minus t standard errors, and the only one for Fleiss' kappa; ``"bootstrap"`` takes
            percentiles of replicates, and ``"bca"`` corrects them. With ordinal weights there is also ``"log"``,
            symmetric on log(1 - kappa), and no bootstrap.
        n, rng
            Replicates of the bootstrap, and the seed or generator to draw them with.

        Examples
        --------
        >>> import dhkappa
        >>> drawn = dhkappa.simulate(200, rng=1)
        >>> dhkappa.dh_kappa(drawn.votes, drawn.suggested["labeler"]).interval()
        [0.3981, 0.5718] at 0.95 (beta)
        """
        level = check_level(level)
        alpha = 1 - level
        methods = _METHODS[self.metric]
        method = methods[0] if method is None else method
        if not isinstance(method, str) or method not in methods:
            raise DataError(f"method must be one of {', '.join(methods)}: got {shown([method])}.")
        basis = self._basis
        if basis is None:
            return Interval(math.nan, math.nan, level, method, self.reason or _NO_ERROR)
        if method in ("bootstrap", "bca"):
            return self._bootstrap_interval(level, method, n, rng)
        if method == "beta":
            low, high = beta_interval(basis, alpha)
        elif method == "log":
            from dhkappa.stats.weights import log_interval

            low, high = log_interval(basis, alpha)
        elif method == "logit":
            low, high = logit_interval(basis, alpha)
        else:
            low, high = wald_interval(basis, alpha)
        return Interval(low, high, level, method)

    def bootstrap(
        self, n: int = 9_999, rng: int | np.random.Generator | None = None, *, progress: bool = True
    ) -> Bootstrap:
        """Draw samples of as many items, with replacement, and return their kappas.

        One replicate is one multinomial draw over the patterns: a billion items cost no more than a thousand.

        Examples
        --------
        >>> import dhkappa
        >>> drawn = dhkappa.simulate(200, rng=1)
        >>> kappa = dhkappa.dh_kappa(drawn.votes, drawn.suggested["labeler"])
        >>> kappa.bootstrap(2000, rng=1)
        Bootstrap(2,000 replicates; kappa 0.4890, mean 0.4892, sd 0.0426)
        """
        from dhkappa.stats.bootstrap import bootstrap

        return bootstrap(self._terms("bootstrap"), n, rng, progress)

    def _bootstrap_interval(self, level: float, method: str, n: int, rng: int | np.random.Generator | None) -> Interval:
        from dhkappa.stats.bootstrap import bca_interval, bootstrap, percentile_interval

        known = self._terms("bootstrap")
        values = bootstrap(known, n, rng).values
        if method == "bootstrap":
            return percentile_interval(values, 1 - level)
        return bca_interval(values, self.value, influence(known) * known.weight / known.items, known.items, 1 - level)

    @property
    def above_floor(self) -> float:
        """Kappa with the floor as its zero, kappa_P: 0 for random labels, 1 for perfect ones; NaN if undefined.

        With two categories it is kappa.
        """
        from dhkappa.stats.permutation import above_floor

        plain = self.metric == "dh" and self.exact is not None
        return float(above_floor(self._terms("above_floor"))[0]) if plain else math.nan

    def test(
        self,
        method: str | None = None,
        *,
        alternative: str = "greater",
        n: int = 9_999,
        rng: int | np.random.Generator | None = None,
    ) -> RandomLabelTest:
        """Test whether the labels score more than the same labels dealt out over the items at random.

        Parameters
        ----------
        method
            ``"exact"``, the default where it is quick: all dealings counted. Else ``"z"``, from their exact mean and
            variance, or ``"monte-carlo"``, with n draws. With weights or strata ``"wald"``: kappa above its floor over
            its standard error.
        alternative
            ``"greater"``, or ``"two-sided"`` for labels that may also be worse than random.
        n, rng
            How many dealings to draw, and the seed or generator to draw them with.

        Examples
        --------
        >>> import dhkappa
        >>> drawn = dhkappa.simulate(200, rng=1)
        >>> dhkappa.dh_kappa(drawn.votes, drawn.suggested["labeler"]).test()
        labels against random labels: +0.6046 from the floor (p 9.39e-37, z 12.61, alternative greater, method z)
        """
        from dhkappa.stats.permutation import random_label_test

        return random_label_test(self._terms("test"), method=method, alternative=alternative, n=n, rng=rng)

    def by_category(self, level: float = 0.95) -> Table:
        """Return kappa of each suggested category with its interval; by ``weight`` they add up to kappa.

        ``loss`` is what a category takes from kappa: it adds up to 1 - kappa. ``vote_share`` and ``label_share`` are
        C_j and L_j; ``reason`` says why there are NaN.

        Examples
        --------
        >>> import dhkappa
        >>> drawn = dhkappa.simulate(200, rng=1)
        >>> table = dhkappa.dh_kappa(drawn.votes, drawn.suggested["labeler"]).by_category()
        >>> [(row["category"], row["items"], round(row["kappa"], 2)) for row in table]
        [('a', 62, 0.52), ('b', 72, 0.45), ('c', 66, 0.5)]
        """
        from dhkappa.stats.categories import by_category

        return by_category(self._terms("by_category"), self.categories, level)

    def confusion(self) -> Table:
        """Return what pairs of annotators agree on where each label is suggested.

        For each ``suggested`` label, with its ``items``, a row for each category that is voted for: ``agreed``,
        ``pair_share`` (of pairs, that agree on it) and ``vote_share`` (of votes). A last row, with None as the
        category, has the pairs that do not agree, so that both shares add up to 1.
        """
        from dhkappa.stats.categories import confusion

        return confusion(self._terms("confusion"), self.categories)

    def _terms(self, asked: str) -> Terms:
        """Return the terms of a kappa that looks at suggested labels."""
        if self.metric != "dh":
            raise DataError(f"{asked} is for the plain kappa_DH only: use dh_kappa without ordinal weights.")
        if self.parts is None or self.exact is None:
            raise DataError(f"{asked} needs a kappa that is defined, but {self.reason}")
        return terms(self.sample, self.parts)

    @property
    def _basis(self) -> Basis | None:
        """What intervals are made of; None where the sample cannot show how far kappa would vary."""
        if "basis" not in self._known:
            found = None
            if self.parts is not None and self.exact is not None and self.n_items > 1:
                seen = terms(self.sample, self.parts)
                far = extremes(seen) if self.metric == "dh" else None
                found = basis_of(seen, influence(seen), self.value, float(self.parts.E), far)
            self._known["basis"] = found  # whole, or not at all: other threads may look
        basis: Basis | None = self._known["basis"]
        return basis

    @property
    def categories(self) -> tuple[Label, ...]:
        """The categories, in order."""
        return self._sample.categories

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
        return {"dh": "kappa_DH", "ordinal": "ordinal kappa_DH", "fleiss": "Fleiss' kappa"}[self.metric]

    def _beside(self) -> list[tuple[str, float]]:
        if self.metric == "fleiss":
            return []
        fleiss = "weighted Fleiss" if self.metric == "ordinal" else "Fleiss"
        return [("floor", self.floor), ("ceiling", self.ceiling), (fleiss, self.fleiss)]

    def _repr_html_(self) -> str:
        import html

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

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return plain values, ready for JSON, with the interval of a level.

        NaN is None; ``exact`` is its text, or None beyond 3,000 digits; C and L are lists of [category, share].
        """
        parts, interval = self.parts, self.interval(level)
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
                "no_weight": self.dropped.no_weight,
            },
            "parts": None
            if parts is None
            else {
                **{letter: float(getattr(parts, letter)) for letter in ("R", "S", "C_E", "C_F", "D", "E")},
                "C": [[label, float(share)] for label, share in parts.C.items()],
                "L": [[label, float(share)] for label, share in parts.L.items()],
            },
            "notes": [note.to_dict() for note in self.notes],
            "reason": self.reason,
        }


def _digits(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{round(value, 4) + 0.0:.4f}"  # never -0.0000


def _text(exact: Fraction | None) -> str | None:
    """Write a fraction, unless it is so long that Python refuses to."""
    if exact is None or max(exact.denominator.bit_length(), exact.numerator.bit_length()) > 10_000:
        return None
    return str(exact)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
