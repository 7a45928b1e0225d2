"""Verdict: whether the labels of a labeler can be trusted, as a grade and a sentence.

There is no fixed scale for kappa: how high it can be depends on the annotators and the categories. A labeler is
therefore placed on a scale from random labels (0%) to a typical annotator (100%) on the same data, and its grade is
what the confidence limits of this share support. Problems of the data come before any grade.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dhkappa.errors import Problem, counted
from dhkappa.stats.annotator_baseline import KEEP, AnnotatorBaseline
from dhkappa.stats.compare import AnnotatorComparison
from dhkappa.stats.grades import GRADES, NEVER_JUDGED, Verdict, cannot_judge, digits_of, ungraded
from dhkappa.stats.intervals import ConfidenceInterval, decided_by, items_to_decide, written
from dhkappa.stats.kappa import Estimate, rounded
from dhkappa.stats.notes import AGREE_LITTLE, LOW_AGREEMENT, first_three, never_suggested, not_ranked_text
from dhkappa.table import Table

MIN_ITEMS = 20  # the limits of the share were validated from this many items on
_FAR = 0.5
_AT_LEAST = "at least slightly below a typical annotator"  # it may be clearly below
_ROUNDS_TO_ZERO = 0.005  # a smaller difference in kappa is not called one
_SPLIT_ITEMS = 10  # with differing votes that show whether labels follow the majority
_MAJORITY = 0.95  # of their labels that are the most frequent vote
_SAME, _MUCH_MORE = 0.9, 0.2  # agreement with one annotator, and how much more than with the others
_FEW_ANNOTATORS = 10  # with fewer, a grade must hold without any one of them


def judge(
    name: str,
    estimate: Estimate,
    interval: ConfidenceInterval,
    baseline: AnnotatorBaseline | None = None,
    comparison: AnnotatorComparison | None = None,
    problems: Sequence[Problem] = (),
    annotators: Callable[[], Table] | None = None,
) -> Verdict:
    """Return the verdict on one labeler.

    ``baseline`` is None if there is none. ``comparison`` with each annotator, and the function that returns the table
    of ``annotators``, are None if they are unknown.
    """
    if unjudged := cannot_judge(name, problems):
        scored = (
            "" if unjudged.code == "data-problem" or math.isnan(interval.low) else f"{_scored(estimate, interval)}."
        )
        return replace(unjudged, details=scored)
    if math.isnan(interval.low):
        reason = estimate.reason or interval.reason or ""
        return ungraded("not-enough-data", name, f"There is not enough data to judge {name}.", reason)
    scored = _scored(estimate, interval)
    random = rounded(estimate.baselines.random)
    write = _digits(interval.high - interval.low)
    designed = estimate.sample.designed or estimate.metric == "weighted"
    if designed and estimate.n_items >= MIN_ITEMS and (baseline is None or math.isnan(baseline.low)):
        baseline = _from_comparison(comparison, random) or baseline
    typical = math.nan if baseline is None else baseline.value_high
    caution = ""
    if rounded(estimate.fleiss) < float(LOW_AGREEMENT):
        caution = f" {AGREE_LITTLE} (Fleiss' kappa {_digits(1)(rounded(estimate.fleiss))})."
    if interval.high < random and estimate.n_items >= MIN_ITEMS:
        headline = f"{name} is worse than random labels, which would score {write(random)}."
        advice = "Check that labels and votes mean the same and belong to the same items."
        worse = ungraded("no-better-than-random", name, headline, f"{scored}. {advice}")
        return replace(worse, short="worse than random labels")
    if interval.low <= random:
        if not interval.high < typical or estimate.n_items < MIN_ITEMS:
            if caution and estimate.n_items >= MIN_ITEMS:
                return _unclear(name, estimate, scored)
            items = counted(estimate.n_items, "item")
            headline = f"There is not enough data to judge {name}: {items} cannot tell it from random labels."
            return ungraded("not-enough-data", name, headline, f"{scored}; random labels would score {write(random)}.")
        headline = f"{name} is no better than random labels, which would score {write(random)}."
        return ungraded("no-better-than-random", name, headline, f"{scored}.")
    if baseline is None or math.isnan(baseline.low):
        reason = (baseline.reason if baseline else None) or "A typical annotator's score is unknown."
        headline = f"{name} is better than random labels, but the data cannot compare it with an annotator."
        return ungraded("not-enough-data", name, headline, f"{reason} {scored}.{caution}", ranked=True)
    if math.isnan(baseline.share_low) and baseline.method != "two-votes":  # annotators may be no better than random
        return replace(_unclear(name, estimate, scored), ranked=True)
    code = _grade(baseline, random)
    capped = _cap(code, estimate, comparison, annotators)
    code = "on-par" if capped else code
    short, headline = _words(name, code, baseline, "at least " if capped else "")
    same = baseline.n_items == estimate.n_items or math.isnan(baseline.kappa_labeler)
    details = [f"{scored}; {_typical(baseline, write)}." if same else f"{scored}. {_on_other_items(baseline, write)}"]
    matched = "" if capped.endswith("annotators.") else _matched(comparison, close=code == "on-par" and not capped)
    details += [capped, matched, caution.strip()]
    more_items = not (code == "not-enough-data" and baseline.method == "two-votes")  # a third vote is needed
    limits = baseline.share_kept, baseline.share_low, baseline.share_high
    return Verdict(code, name, short, headline, " ".join(filter(None, details)), True, more_items, *limits)


def _unclear(name: str, estimate: Estimate, scored: str) -> Verdict:
    """Return the verdict if the annotators are not shown to be better than random labels."""
    headline = f"The annotators agree too little with each other to judge {name}."
    details = f"Fleiss' kappa is {_digits(1)(rounded(estimate.fleiss))}. {scored}."
    return replace(ungraded("not-enough-data", name, headline, details), more_items=False)


def _from_comparison(comparison: AnnotatorComparison | None, random: float) -> AnnotatorBaseline | None:
    """Return a baseline from the comparison with each annotator, for samples without one, such as weighted samples.

    A typical annotator is the mean of the annotators, and its distance from random labels is taken as known.
    """
    if comparison is None or math.isnan(comparison.low):
        return None
    rows = [row for row in comparison.table if not math.isnan(row["kappa_annotator"])]
    items = sum(row["items"] for row in rows)
    typical = math.fsum(row["kappa_annotator"] * row["items"] for row in rows) / items
    above = typical - random
    if not above > 0:
        return None
    difference, low, high = comparison.difference, comparison.low, comparison.high
    shares = {"share_kept": 1 + difference / above, "share_low": 1 + low / above, "share_high": 1 + high / above}
    limits = {"difference": difference, "low": low, "high": high, "n_items": comparison.n_items}
    return AnnotatorBaseline(value=typical, value_low=typical, value_high=typical, **limits, **shares)  # type: ignore[arg-type]


def _scored(estimate: Estimate, interval: ConfidenceInterval) -> str:
    """Return kappa and its interval as words."""
    write, metric = _digits(interval.high - interval.low), "Kappa"
    if estimate.metric == "weighted":
        metric = "Weighted kappa"
    level = f"{written(interval.confidence_level, 100)}% CI"
    return f"{metric} is {write(estimate.value)} ({level} {write(interval.low)} to {write(interval.high)})"


def _grade(baseline: AnnotatorBaseline, random: float) -> str:
    """Return the grade that the limits of the share support; without a share, those of the difference."""
    low, high = baseline.share_low, baseline.share_high
    if math.isnan(low):  # only bounds of a typical annotator are known
        if baseline.high < 0:  # at most this share, if random labels score what they are expected to
            most = 1 + baseline.high / max(baseline.value_low - random, -baseline.high)
            return "clearly-below" if most < KEEP else "slightly-below"
        return "better" if baseline.low > 0 else "not-enough-data"
    if abs(baseline.difference) < _ROUNDS_TO_ZERO and low >= KEEP:
        return "on-par"
    if low > 1:
        return "better"
    if high < 1:
        return "slightly-below" if high >= KEEP else "clearly-below"
    return "on-par" if low >= KEEP and baseline.n_items >= MIN_ITEMS else "not-enough-data"


def _cap(
    code: str,
    estimate: Estimate,
    comparison: AnnotatorComparison | None,
    annotators: Callable[[], Table] | None,
) -> str:
    """Return why a labeler is not called better than a typical annotator, empty if nothing speaks against it."""
    if code != "better":
        return ""
    for share, label in never_suggested(estimate.sums, estimate.categories):
        return f"It is not called better, because {share:.0%} of the votes are {label!r}, which it never suggests."
    share, split = _majority_share(estimate)
    if split >= _SPLIT_ITEMS and share >= _MAJORITY:
        where = f"on {share:.0%} of the {counted(split, 'item')} where votes differ"
        return (
            f"It is not called better, because its label is the most frequent vote {where}, as if made from the votes."
        )
    if comparison is None or math.isnan(comparison.difference):
        return ""
    if annotators is not None and (copied := _copied(annotators(), estimate.n_items)):
        return f"It is not called better, because {copied}."
    rows = [row for row in comparison.table if not math.isnan(row["difference"])]
    matched = round(comparison.matched * len(rows))
    if 2 * matched <= len(rows):
        return f"It is not called better, because it scores lower than {len(rows) - matched} of {len(rows)} annotators."
    items = sum(row["items"] for row in rows)
    if len(rows) < _FEW_ANNOTATORS:
        for row in rows:
            others = items - row["items"]
            if others and comparison.difference * items - row["difference"] * row["items"] <= 0:
                return f"It is not called better, because that depends on one annotator, {row['annotator']}."
    return ""


def _majority_share(estimate: Estimate) -> tuple[float, int]:
    """Return how often the label is the most frequent vote where votes differ, and on how many items; not of ties."""
    patterns = estimate.sample.patterns
    votes, first = patterns.votes.astype(np.int64), patterns.start[:-1]
    if not len(patterns):
        return math.nan, 0
    row = np.repeat(np.arange(len(patterns)), np.diff(patterns.start))
    leads = votes == np.maximum.reduceat(votes, first)[row]
    differ = (np.diff(patterns.start) > 1) & (np.add.reduceat(leads.astype(np.int64), first) == 1)
    hit = leads & (patterns.code == patterns.suggested[row]) & differ[row]
    n = int(patterns.items[differ].sum())
    return int(patterns.items[row[hit]].sum()) / max(n, 1), n


def _copied(annotators: Table, n_items: int) -> str:
    """Return that a labeler agrees with one annotator much more than with the others; empty if it does not."""
    rows = [row for row in annotators if not math.isnan(row["agree"])]
    most = max((row for row in rows if 2 * row["items"] >= n_items), key=lambda row: row["agree"], default=None)
    if most is None or most["agree"] < _SAME:
        return ""
    others = [row for row in rows if row is not most]
    items = sum(row["items"] for row in others)
    mean = sum(row["agree"] * row["items"] for row in others) / items if items else 1.0
    if most["agree"] - mean < _MUCH_MORE:
        return ""
    return (
        f"it agrees with annotator {most['annotator']} on {most['agree']:.0%} of items, with the others on {mean:.0%}"
    )


def _words(name: str, code: str, baseline: AnnotatorBaseline, least: str = "") -> tuple[str, str]:
    """Return the grade in a few words, and as a sentence with one number and its limits.

    ``least`` is put before the grade of a labeler that may be better.
    """
    share, low, high = baseline.share_kept, baseline.share_low, baseline.share_high
    short = least + GRADES[code]
    if math.isnan(low):
        if code == "not-enough-data" and baseline.method == "two-votes":
            why = "because items have only two votes. Get a third vote on some items."
            return short, f"{name} cannot be compared exactly with a typical annotator, {why}"
        if code == "not-enough-data":
            return short, f"There is not enough data to compare {name} with a typical annotator."
        short = _AT_LEAST if code == "slightly-below" else short
        return short, f"{name} is {short}."
    scale = "on a scale from random labels (0%) to a typical annotator (100%)"
    reached = f"{scale} it reaches {share:.0%} ({low:.0%} to {high:.0%})"
    if code == "not-enough-data":
        return short, f"There is not enough data to judge {name}: {reached}.{_more_items(baseline)}"
    if code == "slightly-below" and low < KEEP:
        short = _AT_LEAST
    if code == "clearly-below" and high < _FAR:
        short = "far below a typical annotator"
    return short, f"{name} is {short}: {reached}."


def _more_items(baseline: AnnotatorBaseline) -> str:
    """Return about how many more items would decide."""
    share, low, high = baseline.share_kept, baseline.share_low, baseline.share_high
    more = items_to_decide(baseline.n_items, share, low, high, KEEP if share > KEEP else 1)
    return f" {decided_by(more)}".rstrip()


def _typical(baseline: AnnotatorBaseline, write: Callable[[float], str]) -> str:
    """Return what a typical annotator would score."""
    if math.isnan(baseline.value):
        return f"a typical annotator would score between {write(baseline.value_low)} and {write(baseline.value_high)}"
    return f"a typical annotator would score {write(baseline.value)}"


def _on_other_items(baseline: AnnotatorBaseline, write: Callable[[float], str]) -> str:
    """Return the scores on the items with enough votes for a comparison with an annotator."""
    items, typical = counted(baseline.n_items, "item"), _typical(baseline, write)
    return f"On the {items} with three votes or more it scores {write(baseline.kappa_labeler)}; {typical}."


def _matched(comparison: AnnotatorComparison | None, close: bool) -> str:
    """Return how many annotators score higher than the labeler; ``close`` if it is on par with a typical one."""
    if comparison is None or math.isnan(comparison.difference):
        return ""
    rows = len(comparison.table) - len(comparison.skipped)
    higher = rows - round(comparison.matched * rows)
    if rows == 1:
        return f"The only annotator scores {'higher' if higher else 'no higher'}."
    if not higher:
        return f"None of the {rows:,} annotators scores higher."
    little = ", but by too little to call it worse" if close and 2 * higher > rows else ""
    verb = "scores" if higher == 1 else "score"
    return f"{f'All {rows:,}' if higher == rows else f'{higher:,} of {rows:,}'} annotators {verb} higher{little}."


def groups_of(kappas: Mapping[str, float], differences: Table | None, confidence_level: float) -> list[list[str]]:
    """Return the labelers in groups that cannot be told apart, the highest kappa first.

    A labeler starts a group if it is significantly below the first of the group before (Holm).
    """
    apart = set()
    for row in differences or ():
        if row["pvalue_holm"] < 1 - confidence_level:
            apart.add(frozenset((row["labeler"], row["other"])))
    groups: list[list[str]] = []
    for name in sorted(kappas, key=lambda name: -kappas[name]):
        if groups and frozenset((groups[-1][0], name)) not in apart:
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def summarize(
    verdicts: Mapping[str, Verdict],
    groups: Sequence[Sequence[str]],
    not_ranked: Mapping[str, str] | None = None,
    n_common: int = 0,
) -> str:
    """Return which labeler is best, its verdict, and the grades of the others; ``groups`` as of ``groups_of``.

    ``not_ranked`` has the reasons, and ``n_common`` is the number of items of the ranking if it is not for all items.
    """
    if len(verdicts) == 1:
        return next(iter(verdicts.values())).text
    few, ranked = not_ranked or {}, len(verdicts) - len(not_ranked or {})
    of = f"{len(verdicts)} labelers" if not few else f"{ranked} ranked labelers"
    best = list(groups[0]) if groups else list(few)[:1] if not ranked else []
    if not ranked:
        said = [f"{len(verdicts)} labelers cannot be ranked, because they share too few items."]
    elif not groups:
        left = [verdict for verdict in verdicts.values() if verdict.code not in NEVER_JUDGED]
        said = [f"None of {of} can be judged."]
        if any(verdict.code == "no-better-than-random" for verdict in left):
            among = f"None of {of}" if len(left) == len(verdicts) else "No labeler that these votes can judge"
            said = [f"{among} is shown to be better than random labels."]
    elif len(best) > 1:
        said = [f"{_joined(best)} score highest of {of} and cannot be told apart."]
    elif len(groups) > 1:
        said = [f"{best[0]} is the best of {of}."]
    else:
        judged = any(verdict.judged for name, verdict in verdicts.items() if name not in (best[0], *few))
        judged |= not verdicts[best[0]].judged  # it is only known to be better than random labels
        among = f" of {of}" if few else ""
        said = [f"Only {best[0]}{among} {'is shown to be better than random labels' if judged else 'can be judged'}."]
    if best:
        said.append(verdicts[best[0]].text)
    by_grade: dict[str, list[str]] = {}
    for name in verdicts:
        if name not in best[:1]:
            by_grade.setdefault(verdicts[name].short, []).append(name)
    said += [f"{_joined(names)}: {short}." for short, names in by_grade.items()]
    if n_common and sum(map(len, groups)) > 1:
        who = "all ranked labelers" if few else "all of them"
        said.append(f"The ranking is for the {counted(n_common, 'item')} that {who} labeled.")
    return " ".join([*said, *([not_ranked_text(few)] if few and ranked else [])])


def _joined(names: Sequence[str]) -> str:
    """Return up to three names as words."""
    return " and ".join(names) if len(names) < 3 else first_three(names)


def _digits(width: float) -> Callable[[float], str]:
    """Return a function that writes numbers with the digits for an interval of this width; never -0.00."""
    digits = digits_of(width)
    return lambda value: f"{round(value, digits) + 0.0:.{digits}f}"
