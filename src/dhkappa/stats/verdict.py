"""Verdict: whether the labels of a labeler can be trusted, as a grade and a sentence.

There is no fixed scale for kappa: how high it can be depends on the annotators and the categories. A labeler is
therefore placed on a scale from random labels (0) to a typical annotator (100) on the same data, and its grade is
what the confidence limits of this share support. Problems of the data come before any grade.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dhkappa.errors import Problem, counted
from dhkappa.stats.annotator_baseline import KEEP, AnnotatorBaseline
from dhkappa.stats.compare import AnnotatorComparison
from dhkappa.stats.grades import GRADES, NEVER_JUDGED, Verdict, cannot_judge, digits_of, follows_majority, ungraded
from dhkappa.stats.intervals import ConfidenceInterval, decided_by, items_to_decide, written
from dhkappa.stats.kappa import Estimate, rounded
from dhkappa.stats.notes import AGREE_LITTLE, LOW_AGREEMENT, first_three, not_ranked_text, rarely_suggested
from dhkappa.table import Table

MIN_ITEMS = 20  # the limits of the share were validated from this many items on
_FAR = 0.5
_GUIDELINES = " the guidelines before you collect more votes."
_ROUNDS_TO_ZERO = 0.005  # a smaller difference in kappa is not called one
_SAME, _MUCH_MORE = 0.9, 0.2  # agreement with one annotator, and how much more than with the others
_FEW_ANNOTATORS = 10  # with fewer, a grade must hold without any one of them
_KEEP_NAMES = "Collect votes with the names of the annotators, three or more on each item, to find careless ones."
_SCALE = "on a scale from 0 (random labels) to 100 (a typical annotator)"


def judge(
    name: str,
    estimate: Estimate,
    interval: ConfidenceInterval,
    baseline: AnnotatorBaseline | None = None,
    comparison: AnnotatorComparison | None = None,
    problems: Sequence[Problem] = (),
    annotators: Callable[[], Table] | None = None,
    *,
    once: str = "",
    also_without: bool = False,
) -> Verdict:
    """Return the verdict on one labeler.

    ``baseline`` is None if there is none. ``comparison`` with each annotator, and the function that returns the table
    of ``annotators``, are None if they are unknown. ``once`` is a condition that sentences name, such as " once eli is
    left out". ``also_without`` says that the labeler is judged without flagged annotators as well, so that no rule has
    to ask whether single annotators matter.
    """
    if unjudged := cannot_judge(name, problems):
        scored = (
            "" if unjudged.code == "data-problem" or math.isnan(interval.low) else f"{_scored(estimate, interval)}."
        )
        return replace(unjudged, details=scored)
    if math.isnan(interval.low):
        reason = estimate.reason or interval.reason or ""
        return ungraded("not-enough-data", name, f"There is not enough data to judge {name}{once}.", reason)
    scored = _scored(estimate, interval)
    random = rounded(estimate.baselines.random)
    write = _digits(interval.high - interval.low)
    few = estimate.n_items < MIN_ITEMS
    designed = estimate.sample.designed or estimate.metric == "weighted"
    if designed and not few and (baseline is None or math.isnan(baseline.low)):
        baseline = _from_comparison(comparison, random) or baseline
    typical = math.nan if baseline is None else baseline.value_high
    disagree = rounded(estimate.fleiss) < float(LOW_AGREEMENT)
    caution = f"{AGREE_LITTLE} (Fleiss' kappa {_digits(1)(rounded(estimate.fleiss))})." if disagree else ""
    advice = (f"Check{_GUIDELINES}" if few else f"Improve{_GUIDELINES}") if disagree else ""
    unsure = _joined_sentences(caution, advice)  # if there is no grade
    at_random = f"that of random labels is {write(random)}"
    if interval.high < random and not few:
        check = "Check that labels and votes mean the same and belong to the same items."
        return _no_better(name, baseline, f"{scored}; {at_random}. {check}", once, worse=True)
    if interval.low <= random:
        if interval.high < typical and not few:
            return _no_better(name, baseline, f"{scored}; {at_random}.", once)
        if disagree and not few:
            return _unclear(name, estimate, scored, once)
        items = counted(estimate.n_items, "item")
        headline = f"There is not enough data to judge {name}{once}: {items} cannot tell it from random labels."
        return ungraded("not-enough-data", name, headline, _joined_sentences(f"{scored}; {at_random}.", unsure))
    if baseline is None or math.isnan(baseline.low):
        reason = (baseline.reason if baseline else None) or "A typical annotator's score is unknown."
        missing = f"{counted(estimate.n_items, 'item')} are too few to compare" if few else "The data cannot compare"
        headline = f"{missing} {name} with a typical annotator{once}. They show only that its labels are not random."
        details = _joined_sentences(reason, f"{scored}.", unsure)
        found = ungraded("not-enough-data", name, headline, details, ranked=True)
        return replace(found, missing="items" if few or not disagree else "guidelines")
    if math.isnan(baseline.share_low) and baseline.method != "two-votes":  # annotators may be no better than random
        return replace(_unclear(name, estimate, scored, once), ranked=True)
    code = _grade(baseline, random)
    not_better = evidence = step = ""
    if code == "better":
        not_better, evidence, step = _why_not_better(name, estimate, comparison, annotators, also_without)
    code = "on-par" if not_better else code
    ungradable = code == "not-enough-data"
    lacks_items = code == "not-enough-data" and not disagree and baseline.method != "two-votes"
    n_more = _n_more(baseline) if lacks_items and not estimate.sample.clustered else None  # items of clusters say less
    short, headline = _words(name, code, baseline, n_more, not_better, disagree, once)
    same = baseline.n_items == estimate.n_items or math.isnan(baseline.kappa_labeler)
    details = f"{scored}; {_typical(baseline, write)}." if same else f"{scored}. {_on_other_items(baseline, write)}"
    told = not_better and not evidence  # the headline says how many annotators score higher
    by_chance = code == "on-par" and not not_better and not also_without
    matched = "" if told else _matched(name, comparison, close=by_chance)
    details = _joined_sentences(details, evidence, matched, unsure if ungradable else caution)
    missing = "items"
    if ungradable:
        missing = "third-vote" if baseline.method == "two-votes" else "guidelines" if disagree else "items"
    limits = baseline.share_kept, baseline.share_low, baseline.share_high
    return Verdict(code, name, short, headline, details, True, missing, n_more, *limits, disagree, not_better, step)


def _joined_sentences(*sentences: str) -> str:
    """Return the sentences that are not empty as one text."""
    return " ".join(filter(None, sentences))


def _no_better(name: str, baseline: AnnotatorBaseline | None, details: str, once: str, worse: bool = False) -> Verdict:
    """Return the verdict on labels that are no better than random labels, with their share if its limits agree."""
    short = "worse than random labels" if worse else GRADES["no-better-than-random"]
    found = replace(ungraded("no-better-than-random", name, "", details), short=short)
    if baseline is None or not (baseline.share_high < 0 if worse else baseline.share_low <= 0):
        why = f"its labels in random order would fit the votes {'better' if worse else 'about as well'}"
        return replace(found, headline=f"{name} is {short}{once}: {why}.")
    headline = f"{name} is {short}{once}: it scores {_score(baseline)} {_SCALE}."
    return replace(
        found, headline=headline, share=baseline.share_kept, low=baseline.share_low, high=baseline.share_high
    )


def _unclear(name: str, estimate: Estimate, scored: str, once: str) -> Verdict:
    """Return the verdict if the annotators are not shown to be better than random labels."""
    headline = f"The annotators agree too little with each other to judge {name}{once}."
    details = f"Fleiss' kappa is {_digits(1)(rounded(estimate.fleiss))}. {scored}. Improve{_GUIDELINES}"
    return replace(ungraded("not-enough-data", name, headline, details), missing="guidelines")


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
    limits["confidence_level"] = comparison.confidence_level
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
            return "clearly-below" if most < KEEP else "below"
        return "better" if baseline.low > 0 else "not-enough-data"
    if abs(baseline.difference) < _ROUNDS_TO_ZERO and low >= KEEP:
        return "on-par"
    if low > 1:
        return "better"
    if high < 1:
        return "slightly-below" if low >= KEEP else "below" if high >= KEEP else "clearly-below"
    return "on-par" if low >= KEEP and baseline.n_items >= MIN_ITEMS else "not-enough-data"


def _why_not_better(
    name: str,
    estimate: Estimate,
    comparison: AnnotatorComparison | None,
    annotators: Callable[[], Table] | None,
    also_without: bool,
) -> tuple[str, str, str]:
    """Return why a labeler must not be called better than a typical annotator, the numbers behind it, and what to do.

    The reason is a clause, empty if nothing speaks against it. If annotators score higher, it has all numbers. What
    single annotators can change is not asked if the labeler is judged without flagged annotators as well.
    """
    for share, label, often in rarely_suggested(estimate.sums, estimate.categories):
        step = f"Decide what votes for {label!r} mean: replace them with --map, or read them as missing with --missing."
        return f"it {often} suggests {label!r}", f"{share:.0%} of the votes are {label!r}.", step
    if (found := follows_majority(estimate))[0]:
        return *found, "Find out whether the labels were made from these votes. If so, judge them by other votes."
    if annotators is not None and (found := _copied(annotators(), estimate.n_items))[0]:
        return *found, "Find out whether one of them knew the labels of the other."
    if comparison is None or math.isnan(comparison.difference):
        if rounded(estimate.fleiss) < float(LOW_AGREEMENT):
            return (
                "the annotators agree little with each other, and they cannot be compared one by one",
                "",
                _KEEP_NAMES,
            )
        return "", "", ""
    if also_without:
        return "", "", ""
    rows = [row for row in comparison.table if not math.isnan(row["difference"])]
    matched = round(comparison.matched * len(rows))
    if 2 * matched <= len(rows):
        higher = _matched(name, comparison, close=False).rstrip(".")
        return higher[0].lower() + higher[1:], "", "Look at the annotators one by one, with dhkappa annotators."
    return _depends_on_one(comparison, rows)


def _depends_on_one(comparison: AnnotatorComparison, rows: Sequence[Mapping[str, Any]]) -> tuple[str, str, str]:
    """Return that the difference from annotators depends on one of few, the numbers, and what to do; empty if not.

    Without this annotator, the mean difference would be at most half as large.
    """
    mean, items = comparison.difference, sum(row["items"] for row in rows)
    if len(rows) >= _FEW_ANNOTATORS or not mean > 0:
        return "", "", ""
    for row in rows:
        if others := items - row["items"]:
            rest = (mean * items - row["difference"] * row["items"]) / others
            if rest <= mean / 2:
                who = row["annotator"]
                why = f"the result depends on one annotator, {who}: check the votes of {who} first"
                means = f"The mean difference from single annotators is {mean:+.2f}, without {who} {rest + 0.0:+.2f}."
                return why, means, f"Check the votes of {who} first: the verdict depends on them."
    return "", "", ""


def _copied(annotators: Table, n_items: int) -> tuple[str, str]:
    """Return that a labeler agrees with one annotator much more than with the others, and how much; empty if not."""
    rows = [row for row in annotators if not math.isnan(row["agree"])]
    most = max((row for row in rows if 2 * row["items"] >= n_items), key=lambda row: row["agree"], default=None)
    others = [row for row in rows if row is not most]
    if most is None or (most["agree"] < _SAME and len(others) > 1):  # of two, one is copied or the other is careless
        return "", ""
    items = sum(row["items"] for row in others)
    mean = sum(row["agree"] * row["items"] for row in others) / items if items else 1.0
    if most["agree"] - mean < _MUCH_MORE:
        return "", ""
    who = most["annotator"]
    why = f"it agrees much more with annotator {who} than with the others"
    return why, f"It agrees with {who} on {most['agree']:.0%} of the items, with the others on {mean:.0%}."


def _words(
    name: str,
    code: str,
    baseline: AnnotatorBaseline,
    n_more: int | None,
    not_better: str,
    disagree: bool,
    once: str,
) -> tuple[str, str]:
    """Return the grade in a few words, and as a sentence with one number and its limits.

    ``n_more`` is about how many more items would probably decide; None if that cannot be said. ``not_better`` is why a
    labeler is not called better, ``disagree`` whether annotators agree little, and ``once`` the condition.
    """
    short, low, high = GRADES[code], baseline.share_low, baseline.share_high
    known = not math.isnan(low)
    if code == "not-enough-data" and not known:  # only bounds of a typical annotator are known
        why = "two votes per item are not enough. Get a third vote on some items."
        return short, f"{name} cannot be compared with a typical annotator{once}: {why}"
    if code == "not-enough-data" and disagree:
        return short, f"The annotators agree too little with each other to judge {name}{once}."
    score = f"it scores {_score(baseline)} {_SCALE}" if known else ""
    if code == "not-enough-data":
        within = f"{_SCALE}, it may score anything from {_place(baseline)[1]}"
        headline = f"There is not enough data to judge {name}{once}: {within}."
        return short, _joined_sentences(headline, decided_by(n_more))
    if not_better:
        it = f"It scores {_score(baseline)} {_SCALE}" if known else "It looks better"
        return short, f"{name} is {short}{once}. {it}, but {not_better}."
    said = short
    if code == "below":
        said = short if once else f"{short}, perhaps only slightly, perhaps much"
    if code == "clearly-below" and high < _FAR:
        short = said = "far worse than a typical annotator"
    return short, f"{name} is {said}{once}: {score}." if known else f"{name} is {said}{once}."


def _score(baseline: AnnotatorBaseline) -> str:
    """Return the place of a labeler on the scale, with its confidence limits."""
    value, within = _place(baseline)
    return f"{value} ({written(baseline.confidence_level, 100)}% CI {within})"


def _place(baseline: AnnotatorBaseline) -> tuple[str, str]:
    """Return the place of a labeler on the scale from random labels (0) to a typical annotator (100), and its limits.

    There are digits enough to see on which side of the bounds of grades the limits are.
    """
    share, low, high = baseline.share_kept, baseline.share_low, baseline.share_high
    pairs = [(limit, bound) for limit in (low, high) for bound in (0, _FAR, KEEP, 1)]
    clear = (d for d in range(4) if all(limit == bound or round(limit, 2 + d) != bound for limit, bound in pairs))
    digits = next(clear, 4)
    value, least, most = (f"{100 * round(x, 2 + digits) + 0.0:.{digits}f}" for x in (share, low, high))
    return value, f"{least} or more" if math.isinf(high) else f"{least} to {most}"


def _n_more(baseline: AnnotatorBaseline) -> int | None:
    """Return about how many more items would probably decide."""
    share, low, high = baseline.share_kept, baseline.share_low, baseline.share_high
    return items_to_decide(baseline.n_items, share, low, high, KEEP if share > KEEP else 1)


def _typical(baseline: AnnotatorBaseline, write: Callable[[float], str]) -> str:
    """Return the kappa of a typical annotator as words."""
    if math.isnan(baseline.value):
        return f"that of a typical annotator is between {write(baseline.value_low)} and {write(baseline.value_high)}"
    return f"that of a typical annotator is {write(baseline.value)}"


def _on_other_items(baseline: AnnotatorBaseline, write: Callable[[float], str]) -> str:
    """Return the scores on the items with enough votes for a comparison with an annotator."""
    items, typical = counted(baseline.n_items, "item"), _typical(baseline, write)
    return f"On the {items} with three votes or more, it is {write(baseline.kappa_labeler)}; {typical}."


def _matched(name: str, comparison: AnnotatorComparison | None, close: bool) -> str:
    """Return how many annotators score higher as labelers; ``close`` if the labeler is on par with a typical one."""
    if comparison is None or math.isnan(comparison.difference):
        return ""
    rows = len(comparison.table) - len(comparison.skipped)
    higher = rows - round(comparison.matched * rows)
    if rows == 1:
        return f"The only annotator who can be compared scores {'higher' if higher else 'no higher'} than {name}."
    if not higher:
        return f"Compared one by one, none of the {rows:,} annotators scores higher than {name}."
    chance = ", but that may be chance" if close and 2 * higher > rows else ""
    who = f"all {rows:,} annotators score" if higher == rows else f"{higher:,} of {rows:,} annotators"
    score = "" if higher == rows else " scores" if higher == 1 else " score"
    return f"Compared one by one, {who}{score} higher than {name}{chance}."


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
) -> tuple[str, str]:
    """Return which labeler is best with its headline; and its details and the grades of the others.

    ``groups`` are as of ``groups_of``, ``not_ranked`` has the reasons, and ``n_common`` is the number of items of the
    ranking if it is not for all items.
    """
    if len(verdicts) == 1:
        only = next(iter(verdicts.values()))
        return only.headline, only.details
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
        which = "which of the two is better" if len(best) == 2 else f"which of the {len(best)} is best"
        said = [f"{_joined(best)} score highest of {of}. The data do not show {which}."]
    elif len(groups) > 1:
        said = [f"{best[0]} is the best of {of}."]
    else:
        judged = any(verdict.judged for name, verdict in verdicts.items() if name not in (best[0], *few))
        judged |= not verdicts[best[0]].judged  # it is only known to be better than random labels
        among = f" of {of}" if few else ""
        said = [f"Only {best[0]}{among} {'is shown to be better than random labels' if judged else 'can be judged'}."]
    if best:
        said.append(verdicts[best[0]].headline)
    headline, said = " ".join(said), [verdicts[best[0]].details] if best else []
    by_grade: dict[str, list[str]] = {}
    for name in verdicts:
        if name not in best[:1]:
            remark = _beside(verdicts[best[0]], verdicts[name]) if name in best[1:] else ""
            by_grade.setdefault(verdicts[name].short + remark, []).append(name)
    said += [f"{_joined(names)}: {short}." for short, names in by_grade.items()]
    if n_common and sum(map(len, groups)) > 1:
        who = "all ranked labelers" if few else "all of them"
        said.append(f"The ranking is for the {counted(n_common, 'item')} that {who} labeled.")
    said += [not_ranked_text(few)] if few and ranked else []
    return headline, _joined_sentences(*said)


def _beside(best: Verdict, other: Verdict) -> str:
    """Return what the grade of a labeler means beside that of the best, if the data do not show which is better."""
    if not (best.judged and other.judged):
        return ""
    codes = list(GRADES)
    side = codes.index(other.code) - codes.index(best.code)
    if side == 0:
        return ", too" if other.short == best.short else ""
    return f", but not shown to be {'worse' if side > 0 else 'better'} than {best.labeler}"


def _joined(names: Sequence[str]) -> str:
    """Return up to three names as words."""
    return " and ".join(names) if len(names) < 3 else first_three(names)


def _digits(width: float) -> Callable[[float], str]:
    """Return a function that writes numbers with the digits for an interval of this width; never -0.00."""
    digits = digits_of(width)
    return lambda value: f"{round(value, digits) + 0.0:.{digits}f}"
