"""Results of the public calls: Kappa and Comparison. They compute on demand from estimates."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dhkappa.core import Label
from dhkappa.errors import DataError, counted
from dhkappa.stats.influence import Terms, basis, influence, terms
from dhkappa.stats.intervals import NO_VARIATION, Basis, ConfidenceInterval, beta_interval, wald_interval, written
from dhkappa.stats.kappa import Estimate, Parts, rounded
from dhkappa.stats.notes import Note, notes_of
from dhkappa.stats.sample import Excluded, Rng, Sample, check_choice, check_level
from dhkappa.table import Display, Table, plain

if TYPE_CHECKING:  # imported when a method needs them
    from dhkappa.stats.bootstrap import Bootstrap
    from dhkappa.stats.permutation import PermutationTest
    from dhkappa.stats.rates import Rates

_METHODS = ("beta", "wald", "bootstrap", "bca")
_NAMES = {
    "dh": "kappa_DH",
    "weighted": "weighted kappa_DH",
    "fleiss": "Fleiss' kappa",
    "weighted-fleiss": "weighted Fleiss' kappa",
}
_FLEISS = ("fleiss", "weighted-fleiss")
_LONGEST_FRACTION = 10_000  # bits; Python does not print longer integers
_WEAKER = 0.1  # kappa of a category below the whole
_FEWEST = 10  # items of a category that is named; the interval of fewer can be much too narrow


@dataclass(frozen=True, slots=True, repr=False)
class Baselines:
    """Kappa of other labels on the same votes; NaN if undefined.

    Attributes
    ----------
    random : mean kappa of the suggested labels permuted at random over the items
    majority : kappa of each item's most frequent vote, an optimistic value: the same votes make and judge the labels
    """

    random: float
    majority: float
    _estimate: Estimate = field(compare=False)

    @property
    def annotator(self) -> float:
        """Kappa of a typical annotator as labeler; NaN also with agreement weights, and if only bounds are known."""
        from dhkappa.stats.annotator_baseline import annotator_kappa

        return rounded(annotator_kappa(self._estimate))

    def __repr__(self) -> str:
        return f"Baselines(random={self.random:.4f}, annotator={self.annotator:.4f}, majority={self.majority:.4f})"

    def to_dict(self) -> dict[str, float | None]:
        """Return plain values for JSON; NaN becomes None."""
        return {name: plain(getattr(self, name)) for name in ("random", "annotator", "majority")}


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
        exact = self.estimate.baselines
        return Baselines(rounded(exact.random), rounded(exact.majority), self.estimate)

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
        return tuple(notes_of(self.estimate, self.se))

    @cached_property
    def sample(self) -> Sample:
        """The eligible items, each pattern once, or once for each weight."""
        return self.estimate.sample.by_weight().merged()

    @property
    def se(self) -> float:
        """Standard error of kappa over samples of items (not of annotators); NaN if the items show no variation."""
        return math.nan if self._basis is None else self._basis.se

    def confidence_interval(
        self, confidence_level: float = 0.95, method: str | None = None, *, n_resamples: int = 9_999, rng: Rng = None
    ) -> ConfidenceInterval:
        """Return a confidence interval of kappa.

        Parameters
        ----------
        confidence_level
            The confidence level, between 0 and 1.
        method
            ``"beta"``, the default, has at least its nominal coverage also for small samples, high kappa and rare
            labels. ``"wald"`` is kappa plus and minus t standard errors; the default, and the only method, for Fleiss'
            kappa with weights, strata or a pool, where it is often too narrow. ``"bootstrap"`` takes percentiles of
            bootstrap replicates, and ``"bca"`` corrects them for bias and acceleration; both are too narrow for small
            samples, and neither is available for Fleiss' kappa.
        n_resamples, rng
            Number of bootstrap replicates, and the seed or generator to draw them with.

        Examples
        --------
        >>> import dhkappa
        >>> data = dhkappa.simulate(200, rng=1)
        >>> dhkappa.dh_kappa(data.votes, data.suggested["labeler"]).confidence_interval()
        ConfidenceInterval(low=0.3981, high=0.5718, confidence_level=0.95, method='beta')
        """
        confidence_level = check_level(confidence_level)
        methods: tuple[str, ...] = _METHODS
        of = _NAMES[self.metric]
        if self.metric in _FLEISS:
            plain = self.metric == "fleiss" and not self.estimate.sample.designed
            methods, of = (_METHODS[:2], of) if plain else (("wald",), f"{of} with weights, strata or a pool")
        method = check_choice("method", methods[0] if method is None else method, methods, f" for {of}")
        alpha = 1 - confidence_level
        if self._basis is None:
            return ConfidenceInterval(math.nan, math.nan, confidence_level, method, self.reason or NO_VARIATION)
        if method in ("bootstrap", "bca"):
            from dhkappa.stats.bootstrap import bca_interval, percentile_interval

            values = self.bootstrap(n_resamples, rng).values
            if method == "bootstrap":
                return percentile_interval(values, alpha)
            known = self._terms("bootstrap")
            return bca_interval(values, self.value, influence(known) * known.weight / known.items, known.items, alpha)
        low, high = (beta_interval if method == "beta" else wald_interval)(self._basis, alpha)
        return ConfidenceInterval(low, high, confidence_level, method)

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

        return bootstrap(self._terms("bootstrap"), n_resamples, rng, progress)

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
            ``"exact"``, all permutations counted, is the default if it is fast. Otherwise ``"z"``, from the exact mean
            and variance over permutations. ``"monte-carlo"`` draws permutations. With sample weights or strata only
            ``"wald"`` is available: kappa above the random baseline over its standard error.
        alternative
            ``"greater"``, or ``"two-sided"`` for labels that may also be worse than random.
        n_resamples, rng
            Number of permutations to draw, and the seed or generator to draw them with.

        Examples
        --------
        >>> import dhkappa
        >>> data = dhkappa.simulate(200, rng=1)
        >>> dhkappa.dh_kappa(data.votes, data.suggested["labeler"]).permutation_test()
        PermutationTest(difference=0.6046, pvalue=9.39e-37, z=12.61, alternative='greater', method='z')
        """
        from dhkappa.stats.permutation import permutation_test

        known, weights = self._terms("permutation_test"), self.estimate.weights
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

        known, level = self._terms("by_category"), check_level(confidence_level)
        return by_category(known, level, rate_columns(self.estimate.sample, level, known.w is not None))

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
        return rates(self.estimate.sample, confidence_level, positive)

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
    def _basis(self) -> Basis | None:
        """What the standard error and intervals need; None if the items show no variation."""
        return basis(self.estimate)

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

    def to_dict(self, confidence_level: float = 0.95) -> dict[str, Any]:
        """Return plain values for JSON, with the confidence interval at a level.

        NaN becomes None; ``exact`` is text, or None beyond 3,000 digits; C and L are lists of [category, share].
        """
        parts, exact, interval = self.parts, self.exact, self.confidence_interval(confidence_level)
        shares: dict[str, Any] = {}
        if parts is not None:
            shares = {letter: float(getattr(parts, letter)) for letter in ("R", "S", "C_E", "C_F", "D", "E")}
            shares |= {name: [[label, float(x)] for label, x in getattr(parts, name).items()] for name in ("C", "L")}
        limits = ("low", "high", "confidence_level", "method")
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
            "coverage": None if self.metric in _FLEISS else plain(self.coverage),
            "excluded": self.excluded.to_dict(),
            "parts": shares or None,
            "notes": [note.to_dict() for note in self.notes],
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(Display):
    """Labelers compared on the items that they share; see ``dhkappa.compare``.

    Attributes
    ----------
    kappas : kappa of each labeler, by name: on the items that all ranked labelers labeled, or on all items that it
        labeled if it is not ranked
    differences : a row for each pair of labelers, on the items that both labeled
    notes : conditions that affect the interpretation, each with a code and a sentence
    confidence_level : the confidence level of all intervals
    not_ranked : why a labeler is not ranked, by name, those with most labels first; empty if all are ranked
    """

    kappas: dict[str, Kappa]
    differences: Table
    notes: tuple[Note, ...]
    confidence_level: float
    not_ranked: dict[str, str] = field(default_factory=dict)

    @property
    def ranked(self) -> dict[str, Kappa]:
        """The kappas of the ranked labelers, all on the same items."""
        return {name: kappa for name, kappa in self.kappas.items() if name not in self.not_ranked}

    @property
    def best(self) -> str | None:
        """The ranked labeler with the highest kappa, the first of several; None if there is none with a kappa."""
        found = [(kappa.value, name) for name, kappa in self.ranked.items() if not math.isnan(kappa.value)]
        return max(found, key=lambda pair: pair[0])[1] if found else None

    def table(self) -> Table:
        """Return a row for each labeler, the best first; those that are not ranked are last."""
        return labelers_table(self.kappas, self.confidence_level, self.not_ranked)

    def _display(self) -> tuple[Table, Table, list[str]]:
        return self.table(), self.differences, [note.text for note in self.notes]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN becomes None."""
        return {
            "kappas": {name: kappa.to_dict(self.confidence_level) for name, kappa in self.kappas.items()},
            "differences": self.differences.to_json(),
            "not_ranked": dict(self.not_ranked),
            "confidence_level": self.confidence_level,
            "notes": [note.to_dict() for note in self.notes],
        }


def labelers_table(kappas: Mapping[str, Kappa], confidence_level: float, last: Collection[str] = ()) -> Table:
    """Return a row for each labeler, the highest kappa first; those in ``last``, in their order, after all others."""
    order = sorted(kappas.items(), key=lambda pair: (math.isnan(pair[1].value), -pair[1].value))
    order = [*(pair for pair in order if pair[0] not in last), *((name, kappas[name]) for name in last)]
    rows = []
    for name, kappa in order:
        limits, baselines = kappa.confidence_interval(confidence_level), kappa.baselines
        known = name, kappa.value, *limits, kappa.se, baselines.random, baselines.majority
        rows.append((*known, kappa.n_items, kappa.coverage))
    names = ("labeler", "kappa", "low", "high", "se", "baseline_random", "baseline_majority", "items", "coverage")
    what = "Weighted kappa" if any(kappa.metric == "weighted" for kappa in kappas.values()) else "Kappa"
    title = f"{what} by labeler, {written(confidence_level, 100)}% confidence intervals"
    return Table({name: [row[place] for row in rows] for place, name in enumerate(names)}, title=title)


def _digits(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{round(value, 4) + 0.0:.4f}"  # never -0.0000


def weakest_category(name: str, kappa: Kappa, confidence_level: float) -> str:
    """Return a sentence about the category with the lowest kappa, empty if it is not clearly below the whole.

    It is if it has ten items, its confidence limits, adjusted for the number of categories (Bonferroni), are below
    those of kappa, and the difference is no trifle.
    """
    low, adjusted = kappa.confidence_interval(confidence_level).low, 1 - (1 - confidence_level) / len(kappa.categories)
    known = [row for row in kappa.by_category(adjusted) if row["items"] >= _FEWEST]
    rows = [row for row in known if row["high"] < low and kappa.value - row["kappa"] >= _WEAKER]
    if not rows:
        return ""
    worst = min(rows, key=lambda row: row["kappa"])
    return f"The weakest category of {name} is {worst['category']!r} (kappa {round(worst['kappa'], 2) + 0.0:.2f})."
