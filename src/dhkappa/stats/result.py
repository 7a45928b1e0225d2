"""Kappa: the result that computes everything about one kappa on demand from its estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from dhkappa.core import Label
from dhkappa.core.items import VoteSource
from dhkappa.errors import DataError, counted, invalid
from dhkappa.stats.any_time import FEWEST, any_time_interval, any_time_level
from dhkappa.stats.clusters import (
    ClusterBasis,
    Clusters,
    NoBasis,
    clusters_of,
    refuse_any_time,
    refuse_clusters,
    without_limits,
)
from dhkappa.stats.influence import Terms, kappa_basis, terms
from dhkappa.stats.intervals import Basis, ConfidenceInterval, beta_interval, wald_interval
from dhkappa.stats.kappa import Estimate, Parts, rounded
from dhkappa.stats.notes import Note, any_time_notes, notes_of
from dhkappa.stats.sample import Excluded, Rng, Sample, check_choice, check_level
from dhkappa.table import Display, Table, plain

if TYPE_CHECKING:  # imported when a method needs them
    from dhkappa.stats.baselines import Baselines
    from dhkappa.stats.bootstrap import Bootstrap
    from dhkappa.stats.permutation import PermutationTest
    from dhkappa.stats.rates import Rates

_METHODS: tuple[str, ...] = ("beta", "wald", "bootstrap", "bca")
_NAMES = {
    "dh": "kappa_DH",
    "weighted": "weighted kappa_DH",
    "fleiss": "Fleiss' kappa",
    "weighted-fleiss": "weighted Fleiss' kappa",
}
_FLEISS = ("fleiss", "weighted-fleiss")
_LONGEST_FRACTION = 10_000  # bits; Python does not print longer integers


@dataclass(frozen=True, eq=False, repr=False)
class Kappa(Display):
    """Kappa with its standard error, confidence intervals, baselines and notes.

    ``float(kappa)`` is ``value``, and ``f"{kappa:.3f}"`` formats it. If kappa is undefined, ``value`` is NaN,
    ``exact`` is None and ``reason`` says why.

    Examples
    --------
    >>> import dhkappa
    >>> votes = [["cat", "cat", "cat"], ["cat", "cat", "dog"], ["dog", "dog", "dog"]]
    >>> kappa = dhkappa.dh_kappa(votes, ["cat", "dog", "dog"])
    >>> kappa.exact, kappa.n_items, kappa.n_votes
    (Fraction(4, 7), 3, 9)
    >>> [note.code for note in kappa.notes]
    ['few-items', 'two-categories']
    """

    estimate: Estimate
    """The exact values that everything else is computed from."""
    _votes: VoteSource | None = None
    any_time: bool = False
    """Whether intervals hold at every look unless asked otherwise, as in ``audit(any_time=True)``."""

    @property
    def metric(self) -> str:
        """``"dh"`` or ``"fleiss"``; with agreement weights ``"weighted"`` or ``"weighted-fleiss"``."""
        return self.estimate.metric

    @property
    def value(self) -> float:
        """Kappa as a float, the exact value rounded once; NaN if undefined."""
        return self.estimate.value

    @property
    def exact(self) -> Fraction | None:
        """Kappa as a fraction; None if undefined."""
        return self.estimate.exact

    @property
    def parts(self) -> Parts | None:
        """C, L, R, S, C_E, C_F, D and E as fractions; None if no item is eligible."""
        return self.estimate.parts

    @property
    def baselines(self) -> Baselines:
        """Kappa of random labels, of a typical annotator and of majority labels on the same votes; NaN if undefined.

        Examples
        --------
        >>> import dhkappa
        >>> data = dhkappa.simulate(200, rng=1)
        >>> dhkappa.dh_kappa(data.votes, data.suggested["labeler"]).baselines
        Baselines(random=-0.1156, annotator=0.5333, majority=0.7462)
        """
        from dhkappa.stats.baselines import Baselines
        from dhkappa.stats.votes_baseline import annotator_kappa

        exact = self.estimate.baselines
        return Baselines(rounded(exact.random), rounded(exact.majority), partial(annotator_kappa, self.estimate))

    @property
    def fleiss(self) -> float:
        """Fleiss' kappa of the same items, with the same agreement weights; NaN if undefined."""
        return rounded(self.estimate.fleiss)

    @property
    def n_items(self) -> int:
        """Number of eligible items: two votes or more and, except for Fleiss' kappa, a suggested label."""
        return self.estimate.n_items

    @property
    def n_votes(self) -> int:
        """Number of votes on eligible items."""
        return self.estimate.sums.n_votes

    @property
    def excluded(self) -> Excluded:
        """Number of items that are not eligible, by reason."""
        return self.estimate.sample.excluded

    @property
    def coverage(self) -> float:
        """Share of the items with two votes or more that have a suggested label; NaN if there are none."""
        return self.estimate.coverage

    @property
    def reason(self) -> str | None:
        """Why kappa is undefined; None if it is defined."""
        return self.estimate.reason

    @property
    def categories(self) -> tuple[Label, ...]:
        """The categories, in order."""
        return self.estimate.categories

    @property
    def n_effective(self) -> float:
        """Number of equally weighted items that carry as much information; ``n_items`` without sample weights."""
        return self.estimate.sample.n_effective

    @property
    def notes(self) -> tuple[Note, ...]:
        """Conditions that affect the interpretation of kappa, each with a code and a sentence."""
        return tuple(notes_of(self.estimate, self.se, self.clusters))

    @cached_property
    def clusters(self) -> Clusters | None:
        """The clusters that items come from, with the design effect; None without clusters."""
        return clusters_of(self.estimate.sample, self._basis)

    @cached_property
    def sample(self) -> Sample:
        """The eligible items, each pattern once, or once for each weight."""
        return self.estimate.sample.by_weight().merged()

    @property
    def se(self) -> float:
        """Standard error of kappa over samples of items, or of clusters (not of annotators); NaN if it is unknown."""
        return self._basis.se

    def confidence_interval(
        self,
        confidence_level: float = 0.95,
        method: str | None = None,
        *,
        annotators: str = "fixed",
        any_time: bool | None = None,
        n_resamples: int = 9_999,
        rng: Rng = None,
    ) -> ConfidenceInterval:
        """Return a confidence interval of kappa.

        Parameters
        ----------
        confidence_level
            The confidence level, between 0 and 1.
        method
            ``"beta"``, the default, has at least its nominal coverage also for small samples, high kappa and rare
            labels. ``"wald"`` is kappa plus and minus t standard errors; the default, and the only method, for Fleiss'
            kappa with weights, strata or a pool, where it is often too narrow, and for other annotators.
            ``"bootstrap"`` takes percentiles of bootstrap replicates, and ``"bca"`` corrects them for bias and
            acceleration; both are too narrow for small samples, and neither is available for Fleiss' kappa.
        annotators
            ``"fixed"`` for other items voted on by these annotators, ``"random"`` also for other annotators like them.
            That needs the default method, and votes that tell who cast them. With fewer than 5 annotators the limits
            are NaN, and ``reason`` has the range of kappa without one of them.
        any_time
            Whether the interval must hold at every look, however often you look while items in random order are added:
            it is wider then, and needs 30 items. By default as the attribute ``any_time``. Not for bootstrap intervals,
            clusters or other annotators.
        n_resamples, rng
            Number of bootstrap replicates, and the seed or generator to draw them with.

        Examples
        --------
        >>> import dhkappa
        >>> data = dhkappa.simulate(200, annotators=12, rng=1)
        >>> kappa = dhkappa.dh_kappa(data.votes, data.suggested["labeler"])
        >>> kappa.confidence_interval()
        ConfidenceInterval(low=0.3183, high=0.4857, confidence_level=0.95, method='beta')
        >>> kappa.confidence_interval(annotators="random")
        ConfidenceInterval(low=0.3024, high=0.5102, confidence_level=0.95, method='beta', annotators='random')
        >>> kappa.confidence_interval(any_time=True)
        ConfidenceInterval(low=0.2793, high=0.5196, confidence_level=0.95, method='beta', any_time_level=0.9957)
        """
        confidence_level = check_level(confidence_level)
        methods, of = _METHODS, _NAMES[self.metric]
        other_annotators = check_choice("annotators", annotators, ("fixed", "random")) == "random"
        if self.metric in _FLEISS:
            plain = self.metric == "fleiss" and not self.estimate.sample.designed
            what = "other annotators" if plain and other_annotators else "weights, strata or a pool"
            beta = plain and not other_annotators
            methods, of = (_METHODS[:2], of) if beta else (("wald",), f"{of} with {what}")
        method = check_choice("method", methods[0] if method is None else method, methods, f" for {of}")
        any_time = self.any_time if any_time is None else any_time
        if other_annotators:
            return self._random_interval(confidence_level, method, methods[0], any_time)
        if any_time:
            check_choice("method", method, _METHODS[:2], " for intervals that hold at every look")
            refuse_any_time(self.estimate.sample)
            at = partial(self.confidence_interval, method=method, any_time=False)
            return any_time_interval(at, self.n_effective, confidence_level, self.reason)
        if isinstance(self._basis, NoBasis) or self._basis.reason is not None:
            return ConfidenceInterval(math.nan, math.nan, confidence_level, method, self.reason or self._basis.reason)
        alpha = 1 - confidence_level
        if method in ("bootstrap", "bca"):
            from dhkappa.stats.bootstrap import bootstrap_interval

            return bootstrap_interval(method, self.bootstrap(n_resamples, rng), self._terms("bootstrap"), alpha)
        low, high = (beta_interval if method == "beta" else wald_interval)(self._basis.at(alpha), alpha)
        return ConfidenceInterval(low, high, confidence_level, method)

    def _random_interval(self, level: float, method: str, default: str, any_time: bool) -> ConfidenceInterval:
        """Return the interval for other annotators."""
        from dhkappa.stats.annotator_variance import random_interval

        if method != default or any_time:
            name, given = ("any_time", "any_time=True") if any_time else ("method", f"method={method!r}")
            message = f"annotators='random' is not available with {given}."
            raise invalid("annotators", message, code="option-not-supported", hint=f"Leave out ${name}.")
        fixed = self.confidence_interval(level, method, any_time=False)
        return random_interval(self.estimate, fixed, self.se, self._votes)

    def single_level(self, confidence_level: float) -> float:
        """Return the level of tables beside this kappa: a higher one with ``any_time``, also if kappa has few items."""
        level = check_level(confidence_level)
        return any_time_level(max(self.n_effective, FEWEST), level) if self.any_time else level

    def bootstrap(self, n_resamples: int = 9_999, rng: Rng = None, *, progress: bool = True) -> Bootstrap:
        """Draw samples of the same size from the items, with replacement, and return their kappas.

        One replicate is one multinomial draw over the patterns, so its cost does not grow with the number of items.

        Parameters
        ----------
        n_resamples, rng, progress
            Number of replicates, the seed or generator to draw them with, and whether to show progress on a terminal.

        Examples
        --------
        >>> import dhkappa
        >>> data = dhkappa.simulate(200, rng=1)
        >>> dhkappa.dh_kappa(data.votes, data.suggested["labeler"]).bootstrap(2000, rng=1)
        Bootstrap(n_resamples=2000, kappa=0.4890, mean=0.4892, sd=0.0426)
        """
        from dhkappa.stats.bootstrap import bootstrap

        known = self._terms("bootstrap")
        refuse_clusters(self.estimate.sample, "bootstrap")
        return bootstrap(known, n_resamples, rng, progress)

    @property
    def above_random(self) -> float:
        """Kappa rescaled: 0 for random labels, 1 for perfect ones, NaN if undefined; with two categories kappa."""
        from dhkappa.stats.permutation import above_random

        if self.metric in _FLEISS or self.exact is None:
            return math.nan
        return float(above_random(self._terms("above_random"))[0])

    def permutation_test(
        self, method: str | None = None, *, alternative: str = "greater", n_resamples: int = 9_999, rng: Rng = None
    ) -> PermutationTest:
        """Test whether the suggested labels score more than the same labels permuted over the items.

        Parameters
        ----------
        method
            ``"exact"``, all permutations counted, is the default if it is fast. Otherwise ``"gamma"``, from the exact
            mean, variance and skewness over permutations. ``"monte-carlo"`` draws permutations. With sample weights or
            strata only ``"wald"`` is available: kappa above the random baseline over its standard error.
        alternative
            ``"greater"``, or ``"two-sided"`` for labels that may also be worse than random.
        n_resamples, rng
            Number of permutations to draw, and the seed or generator to draw them with.

        Examples
        --------
        >>> import dhkappa
        >>> data = dhkappa.simulate(200, rng=1)
        >>> dhkappa.dh_kappa(data.votes, data.suggested["labeler"]).permutation_test()
        PermutationTest(difference=0.6046, pvalue=8.46e-30, z=12.61, alternative='greater', method='gamma')
        """
        from dhkappa.stats.permutation import permutation_test

        known, weights = self._terms("permutation_test"), self.estimate.weights
        refuse_clusters(self.estimate.sample, "permutation_test")
        chosen: dict[str, Any] = {"method": method, "alternative": alternative, "n_resamples": n_resamples, "rng": rng}
        return permutation_test(known, weights, **chosen)

    def by_category(self, confidence_level: float = 0.95) -> Table:
        """Return kappa of each suggested category with its confidence interval.

        The weighted mean of the column ``kappa`` by ``weight`` is kappa. ``loss`` is the part of 1 - kappa that is due
        to the category. ``vote_share`` and ``label_share`` are C_j and L_j; ``reason`` says why values are NaN.
        Precision, recall and F1 are those of ``rates``, for ``rate_items`` items with this label.

        Examples
        --------
        >>> import dhkappa
        >>> data = dhkappa.simulate(200, rng=1)
        >>> table = dhkappa.dh_kappa(data.votes, data.suggested["labeler"]).by_category()
        >>> [(row["category"], row["items"], round(row["kappa"], 2)) for row in table]
        [('a', 62, 0.52), ('b', 72, 0.45), ('c', 66, 0.5)]
        """
        from dhkappa.stats.categories import by_category
        from dhkappa.stats.rates import rate_columns

        known, level = self._terms("by_category"), self.single_level(confidence_level)
        found = by_category(known, level, rate_columns(self.estimate.sample, level, known.w is not None))
        return without_limits(found) if self.estimate.sample.clustered else found

    def rates(self, confidence_level: float = 0.95, *, positive: Label | None = None) -> Rates:
        """Return precision, recall and F1 by category against the votes, and the share of votes that are the label.

        Each vote counts, and items with one vote count, too. With two categories, ``positive`` names the one whose
        recall is the sensitivity; the recall of the other is the specificity.

        Examples
        --------
        >>> import dhkappa
        >>> data = dhkappa.simulate(200, rng=1)
        >>> table = dhkappa.dh_kappa(data.votes, data.suggested["labeler"]).rates().table
        >>> [(row["category"], round(row["recall"], 2), round(row["annotator"], 2)) for row in table]
        [('a', 0.65, 0.71), ('b', 0.75, 0.7), ('c', 0.7, 0.75)]
        """
        from dhkappa.stats.rates import WITH_AGREEMENT_WEIGHTS, rates

        if self.metric != "dh":
            reason = f"rates is not available for {_NAMES[self.metric]}."
            hint = "Use dh_kappa." if self.metric in _FLEISS else f"{WITH_AGREEMENT_WEIGHTS} Leave out $weights."
            raise DataError(reason, code="metric-not-supported", hint=hint)
        return rates(self.estimate.sample, self.single_level(confidence_level), positive)

    def confusion(self) -> Table:
        """Return what pairs of annotators agree on, by suggested label.

        For each ``suggested`` label, with its ``items``, a row for each category that has votes: ``agreed``,
        ``pair_share`` (share of pairs that agree on it) and ``vote_share`` (share of votes). A last row, with None as
        the category, has the pairs that do not agree, so that both shares sum to 1. Agreement weights have no effect.
        """
        from dhkappa.stats.categories import confusion

        known = self._terms("confusion")
        assert self.parts is not None
        return confusion(known if self.estimate.weights is None else terms(self.sample, self.parts))

    def _terms(self, method: str) -> Terms:
        """Return the terms of a DiPietro-Hazari kappa that is defined."""
        if self.metric in _FLEISS:
            message = f"{method} is not available for {_NAMES[self.metric]}."
            raise DataError(message, code="metric-not-supported", hint="Use dh_kappa.")
        if self.parts is None or self.exact is None:
            message = f"{method} is not available because kappa is undefined: {self.reason}"
            raise DataError(message, code="kappa-undefined")
        return self._known

    @cached_property
    def _known(self) -> Terms:
        assert self.parts is not None
        return terms(self.sample, self.parts, self.estimate.weights)

    @cached_property
    def _basis(self) -> Basis | ClusterBasis | NoBasis:
        """What the standard error and intervals need."""
        return kappa_basis(self.estimate)

    def __float__(self) -> float:
        return self.value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else repr(self)

    def __repr__(self) -> str:
        low, high = self.confidence_interval()
        within = "" if math.isnan(low) else f" [{_digits(low)}, {_digits(high)}]"
        said = [f"{counted(self.n_items, 'item')}, {counted(self.n_votes, 'vote')}"]
        if self.reason:
            said.append(self.reason.rstrip("."))
        if self.metric not in _FLEISS:
            fleiss = "weighted Fleiss" if self.metric == "weighted" else "Fleiss"
            others = {"random": self.baselines.random, "majority": self.baselines.majority, fleiss: self.fleiss}
            said += [f"{name} {_digits(value)}" for name, value in others.items() if not math.isnan(value)]
        if notes := self.notes:
            said.append(counted(len(notes), "note"))
        return f"{_NAMES[self.metric]} {_digits(self.value)}{within} ({'; '.join(said)})"

    def _display(self) -> tuple[str, list[str]]:
        return repr(self), [note.text for note in self.notes]

    def to_dict(self, confidence_level: float = 0.95, annotators: str = "fixed") -> dict[str, Any]:
        """Return plain values for JSON, with a confidence interval; see ``confidence_interval``.

        NaN becomes None; ``exact`` is text, or None beyond 3,000 digits; C and L are lists of [category, share].
        """
        parts, exact = self.parts, self.exact
        interval = self.confidence_interval(confidence_level, annotators=annotators)
        limits = ("low", "high", "confidence_level", "method", "any_time_level")
        notes = (*self.notes, *(any_time_notes(self.estimate.sample, confidence_level) if self.any_time else ()))
        bits = 0 if exact is None else max(exact.denominator.bit_length(), exact.numerator.bit_length())
        return {
            "metric": self.metric,
            "value": plain(self.value),
            "se": plain(self.se),
            "confidence_interval": {name: plain(getattr(interval, name)) for name in limits},
            "exact": None if exact is None or bits > _LONGEST_FRACTION else str(exact),
            "baselines": self.baselines.to_dict(),
            "fleiss": plain(self.fleiss),
            "n_items": self.n_items,
            "n_votes": self.n_votes,
            **({} if self.clusters is None else {"clusters": self.clusters.to_dict()}),
            "coverage": None if self.metric in _FLEISS else plain(self.coverage),
            "excluded": self.excluded.to_dict(),
            "parts": None if parts is None else parts.to_dict(),
            "notes": [note.to_dict() for note in notes],
            "reason": self.reason,
        }


def _digits(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{round(value, 4) + 0.0:.4f}"  # never -0.0000
