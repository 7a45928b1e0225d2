"""Notes: conditions that affect the interpretation of a kappa, each with a code and a sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from dhkappa.core import Label
from dhkappa.core.agreement import FEW_ITEMS, agreement_follows_votes
from dhkappa.core.labels import SourceNote
from dhkappa.errors import counted, flag, said, shown
from dhkappa.stats.any_time import any_time_level, too_few_items
from dhkappa.stats.clusters import FEW_CLUSTERS, HEAVY, Clusters, ClusterSizes
from dhkappa.stats.intervals import written
from dhkappa.stats.kappa import Estimate, Parts, Sums
from dhkappa.stats.sample import Sample

MADE_FROM_VOTES = "If the labels were made from these votes, this result says nothing about them."
AGREE_LITTLE = "Annotators agree little with each other"
LOW_AGREEMENT = Fraction(2, 5)  # Fleiss' kappa
_FEW_OF_A_KIND = 10  # imperfect items, or items with one suggested label
_NOT_IN_VOTES = Fraction(1, 10)  # share of items
_MANY_VOTES = Fraction(1, 20)  # for a category
_RARELY = Fraction(1, 10)  # share of labels, compared with the share of votes
_RANDOM_NOT_ZERO = Fraction(1, 20)
_NEAR_ZERO = Fraction(1, 10)  # kappa
_UNEQUAL = 0.5  # effective items per item
_LARGE_FRACTION = Fraction(1, 20)  # of a pool
_LIKE_MISSING = {"na", "n/a", "nan", "none", "null", "nil", "-", "?", "missing"}


@dataclass(frozen=True, slots=True)
class Note:
    """A condition that affects the interpretation of a result: a stable code and a text.

    Attributes
    ----------
    code : stable identifier, such as ``"few-items"``
    message : what was found
    hint : what to do, if anything; ``$missing`` stands for the parameter, as in ``DataError``
    """

    code: str
    message: str
    hint: str = ""

    @property
    def text(self) -> str:
        """The message and the hint, with the parameters of Python."""
        return said(self.message, self.hint)

    def to_dict(self) -> dict[str, str]:
        """Return plain values for JSON, with the options of the command line, as those of a ``Problem``."""
        return {"code": self.code, "text": said(self.message, self.hint, flag)}


def notes_of(estimate: Estimate, se: float, clusters: Clusters | None = None) -> Iterator[Note]:
    """Yield the notes on an estimate with this standard error, and clusters of items."""
    total, parts = estimate.sums, estimate.parts
    found = [*_on_votes(estimate), *_on_sample(estimate.sample)]
    if parts is not None and estimate.metric not in ("fleiss", "weighted-fleiss"):
        found += [*_on_labels(estimate), *_on_value(estimate, parts)]
    yield from found
    if clusters is not None and estimate.sample.clustered:
        yield from _on_clusters(estimate, clusters)
    elif total.n > 1 and estimate.exact is not None and math.isnan(se):
        yield Note("no-standard-error", "Every item has the same influence on kappa, so there is no standard error.")


def _on_votes(estimate: Estimate) -> Iterator[Note]:
    """Yield notes on items and votes."""
    total, excluded = estimate.sums, estimate.sample.excluded
    if excluded.total:
        yield Note("items-excluded", excluded.sentence())
    if 0 < total.n < FEW_ITEMS:
        yield Note("few-items", f"There are only {counted(total.n, 'item')}; another sample may give another value.")
    voted = [label for label, votes in zip(estimate.categories, total.votes, strict=True) if votes]
    if len(voted) == 1:
        text = f"Every vote is {voted[0]!r}, so the votes cannot tell good labels from bad ones."
        yield Note("one-category-voted", text)
    yield from _on_categories(estimate.categories)
    if found := agreement_follows_votes(estimate.sample.patterns):
        few, one, many, other = found
        pairs = f"{one:.2f} of pairs agree on items with {few} votes, {other:.2f} on items with {many}"
        hint = "If votes were added after disagreement, use only the votes planned in advance."
        yield Note("votes-follow-agreement", f"Agreement depends on the number of votes: {pairs}. {hint}")


def _on_categories(categories: tuple[Label, ...]) -> Iterator[Note]:
    """Yield notes on labels that may be the same label, or missing values."""
    texts = [label for label in categories if isinstance(label, str)]
    missing = [label for label in texts if label.strip().casefold() in _LIKE_MISSING]
    if missing:
        text = f"{shown(missing, 3)} counts as a category."
        yield Note("looks-missing", text, "If it means missing, pass it with $missing.")
    first: dict[str, str] = {}
    alike = [(first[key], label) for label in texts if first.setdefault(key := spelled(label), label) != label]
    if alike:
        one, other = (label.strip().casefold() for label in alike[0])
        how = "differ only in case or spaces" if one == other else "are two spellings of one number"
        more = f" ({counted(len(alike) - 1, 'more pair')} like this)" if len(alike) > 1 else ""
        yield Note("category-variants", f"{shown(alike[0])} {how}, but count as different categories{more}.")
    numbers = [label for label in categories if not isinstance(label, (str, bool))]
    if numbers and texts:
        text = f"Some labels are numbers and some are text, such as {numbers[0]!r} and {texts[0]!r}."
        yield Note("labels-mixed", f"{text} They count as different categories.")


def first_three(names: Sequence[str]) -> str:
    """Return up to three names, followed by ``...`` if there are more."""
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def not_ranked_text(not_ranked: Mapping[str, str]) -> str:
    """Return why labelers are not ranked, of up to three; the reasons are sentences on "it"."""
    told = [f"{name} is not ranked: {reason[0].lower()}{reason[1:]}" for name, reason in islice(not_ranked.items(), 3)]
    more = len(not_ranked) - len(told)
    return " ".join(
        [*told, *([f"{counted(more, 'more labeler')} {'is' if more == 1 else 'are'} not ranked."] if more else [])]
    )


def spelled(label: str) -> str:
    """Return a label without case, outer spaces and a decimal ".0"."""
    return re.sub(r"^([+-]?[0-9]+)\.0*$", r"\1", label.strip().casefold())


def _on_sample(sample: Sample) -> Iterator[Note]:
    """Yield notes on the source of the items and on the sampling design."""
    yield from map(source_note, sample.source_notes)
    if sample.n_effective < _UNEQUAL * sample.n:
        known = f"carry as much information as {sample.n_effective:,.0f} of equal weight"
        yield Note("unequal-weights", f"Weights are so unequal that {counted(sample.n, 'item')} {known}.")
    if max((part.fraction for part in sample.strata), default=Fraction(0)) > _LARGE_FRACTION:
        text = "The standard error covers which items of the pool were sampled"
        yield Note("votes-fixed", f"{text}; it treats the votes on each item as fixed.")


def _on_clusters(estimate: Estimate, clusters: Clusters) -> Iterator[Note]:
    """Yield notes on clusters of items."""
    sizes = _sizes(clusters.n, clusters.largest)
    if not math.isnan(clusters.widening):
        wide = f"The confidence interval allows for that: it is {clusters.widening:.1f} times as wide as if items were"
        yield Note("clusters", f"Items come from {sizes}. {wide} independent.")
    elif clusters.reason is not None:
        code = "no-standard-error" if clusters.n == 1 else "clusters"
        yield Note(code, f"Items come from {sizes}. {clusters.reason}")
    if clusters.n > 1 and clusters.effective < FEW_CLUSTERS:
        text = (
            f"There are only {counted(clusters.n, 'cluster')}, which say as much as {clusters.effective:.1f} of equal"
        )
        share = f"the largest has {clusters.largest_share:.0%} of the weight"
        yield Note("few-clusters", f"{text} size; {share}. Other clusters may give another value.")
    if clusters.n > 1 and clusters.largest_share > HEAVY:
        text = f"One cluster has {clusters.largest_share:.0%} of the weight. The result depends on it."
        yield Note("cluster-heavy", text)
    if estimate.sample.shares_known:
        text = "The pool sets the weights of strata only: with clusters it does not make the standard error smaller."
        yield Note("pool-clusters", text)


def clusters_note(sample: Sample) -> Iterator[Note]:
    """Yield the note of a comparison on clusters of items, if there are some."""
    if sample.clustered:
        items = ClusterSizes.of(sample).items
        text = f"Items come from {_sizes(items.size, int(items.max()))}. Intervals and p-values allow for that."
        yield Note("clusters", text)


def _sizes(n: int, largest: int) -> str:
    return f"{counted(n, 'cluster')} of up to {counted(largest, 'item')}"


def any_time_notes(sample: Sample, confidence_level: float) -> Iterator[Note]:
    """Yield notes on the interval of a kappa that holds at every look."""
    n, level = sample.n_effective, any_time_level(sample.n_effective, confidence_level)
    if math.isnan(level):
        yield Note("any-time", too_few_items(n))
    else:
        text = f"its level for {counted(sample.n, 'item')} is {written(level, 100)}% instead of"
        text = f"The interval holds at every look, however often you look: {text} {written(confidence_level, 100)}%."
        yield Note("any-time", text, "Report the interval: when you stop, kappa itself leans toward the decision.")
    order = "Every batch of items must be a random sample, not chosen by date, queue or difficulty"
    yield Note("any-time-random-order", f"{order}. If the labeler or the bound changes, start again with other items.")
    if sample.designed:
        text = "Intervals that hold at every look were not simulated with weights, strata or a pool"
        yield Note("any-time-design", f"{text}; the level follows the effective number of items, {n:,.0f}.")


def several_note(n_labelers: int, confidence_level: float) -> Iterator[Note]:
    """Yield that intervals that hold at every look do so for each labeler alone, if there are several."""
    if n_labelers > 1:
        together = written(1 - (1 - confidence_level) / n_labelers)
        text = f"Intervals hold at every look for each of the {n_labelers} labelers alone."
        yield Note("any-time-several", text, f"For all of them together, pass $confidence_level {together}.")


def left_out_notes(*, counted: bool, clustered: bool, any_time: bool) -> Iterator[Note]:
    """Yield notes on what an audit leaves out, or does not do at every look."""
    if counted:
        text = "The table is too large to be fetched: the votes were counted, and the annotators are unknown."
        yield Note("annotators-not-fetched", text)
    if clustered:
        text = "What treats items as independent is left out: permutation tests, intervals by category, of Fleiss'"
        text += " kappa and of comparisons with each annotator, and numbers of items for narrower intervals."
        yield Note("clusters-left-out", text)
    if any_time:
        text = "Tables of annotators and p-values of random labels are those of a single look."
        yield Note("any-time-single-look", text)


def source_note(text: str) -> Note:
    """Return the note for a sentence about the votes."""
    return Note(text.code, str(text)) if isinstance(text, SourceNote) else Note("source", text)


def _on_labels(estimate: Estimate) -> Iterator[Note]:
    """Yield notes on the suggested labels."""
    total = estimate.sums
    rows = list(zip(estimate.categories, total.labels, total.votes, strict=True))
    used = [(label, items, votes) for label, items, votes in rows if items]
    if len(used) == 1:
        text = f"Every suggested label is {used[0][0]!r}, so kappa cannot show how labels follow items."
        yield Note("one-label", text)
    strange = [label for label, _, votes in used if not votes]
    lost = sum(items for _, items, votes in used if not votes)
    if lost > _NOT_IN_VOTES * total.n:
        chosen = f"have a suggested label that no annotator ever chose ({shown(strange, 3)})"
        hint = "Check the spelling and the column. If the votes are counts, name their columns with $counts."
        yield Note("labels-not-in-votes", f"{lost:,} of {counted(total.n, 'item')} {chosen}.", hint)
    rarely = rarely_suggested(total, estimate.categories)
    if rarely:
        share, label, often = rarely[0]
        more = f" ({counted(len(rarely) - 1, 'more category')} like this)" if len(rarely) > 1 else ""
        yield Note("never-suggested", f"{label!r} is {often} suggested, but has {share:.0%} of the votes{more}.")
    rare = [label for label, items, _ in used if items < _FEW_OF_A_KIND]
    if rare and total.n >= FEW_ITEMS:
        text = f"{len(rare)} of {counted(len(used), 'suggested label')} occur on fewer than {_FEW_OF_A_KIND} items"
        yield Note("rare-labels", f"{text} ({shown(rare, 3)}), so little is known about them.")
    imperfect = total.n - total.perfect
    if 0 < imperfect < _FEW_OF_A_KIND and total.n >= FEW_ITEMS:
        text = f"Votes differ from the label on only {counted(imperfect, 'item')}; kappa depends on these few."
        yield Note("few-imperfect-items", text)
    if _n_occurring(total) == 2 and estimate.weights is None:
        text = "With two categories, kappa is Cohen's kappa between label and votes"
        yield Note("two-categories", f"{text}; the agreement of annotators with each other has no effect.")


def rarely_suggested(total: Sums, categories: tuple[Label, ...]) -> list[tuple[float, Label, str]]:
    """Return categories with many votes that are suggested less than a tenth as often, most votes first.

    Each has its share of the votes, its name, and ``"never"`` or ``"hardly ever"``.
    """
    every, rows = sum(total.votes), zip(categories, total.labels, total.votes, strict=True)
    found = [
        (votes / every, label, "hardly ever" if items else "never")
        for label, items, votes in rows
        if votes > _MANY_VOTES * every and items * every < _RARELY * votes * total.n
    ]
    return sorted(found, key=lambda one: -one[0])


def _n_occurring(total: Sums) -> int:
    """Return the number of categories that occur among votes or labels."""
    return sum(1 for votes, items in zip(total.votes, total.labels, strict=True) if votes or items)


def _on_value(estimate: Estimate, parts: Parts) -> Iterator[Note]:
    """Yield notes on the value of kappa and its baselines."""
    kappa, random, fleiss = estimate.exact, estimate.baselines.random, estimate.fleiss
    if kappa is not None and kappa == estimate.baselines.majority and kappa < 1:
        yield Note("equals-majority", f"The labels score exactly as high as majority labels. {MADE_FROM_VOTES}")
    certain = estimate.weights is None or _n_occurring(estimate.sums) == 1  # with weights there is another reason
    if kappa is None and certain:
        yield Note("agreement-certain", "All votes and labels are the same category, so agreement is certain.")
    if kappa == 1:
        yield Note("perfect", "Every vote is the suggested label. A larger sample may show exceptions.")
    elif kappa is not None and parts.R < parts.S and kappa >= 0:
        pairs = f"another label ({float(parts.S):.2f}) than on the suggested one ({float(parts.R):.2f})"
        chance = "about as large, so kappa is near 0" if kappa < _NEAR_ZERO else "larger, so kappa is above 0"
        yield Note("agree-on-others", f"More pairs agree on {pairs}. The difference expected by chance is {chance}.")
    if random is not None and abs(random) > _RANDOM_NOT_ZERO:
        yield Note("random-not-zero", f"Random labels would score {float(random):.2f} on this data.")
    if kappa is not None and random is not None and kappa < random:
        value, at_random = float(kappa), float(random)
        digits = next((d for d in range(2, 6) if round(value, d) < round(at_random, d)), 6)
        own, other = (f"{round(score, digits) + 0.0:.{digits}f}" for score in (value, at_random))
        yield Note("below-random", f"Kappa ({own}) is below the score of random labels ({other}).")
    if fleiss is not None and fleiss < LOW_AGREEMENT:
        whose = "Fleiss'" if estimate.weights is None else "weighted Fleiss'"
        low = f"({whose} kappa {round(float(fleiss), 2) + 0.0:.2f}, below {float(LOW_AGREEMENT):.1f})"
        yield Note("low-agreement", f"{AGREE_LITTLE} {low}, so even correct labels score low.")
