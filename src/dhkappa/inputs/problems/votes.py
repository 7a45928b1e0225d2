"""Rules about vote patterns: how many items and votes there are, and whether labels were made from the votes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np
import numpy.typing as npt

from dhkappa.core import Integers, Label
from dhkappa.core.agreement import agreement_follows_votes, sum_rows
from dhkappa.errors import Problem, comma_separated, counted, shown
from dhkappa.inputs.problems import Evidence, Rule, copies, percent
from dhkappa.inputs.problems import rows as row_rules
from dhkappa.inputs.problems.annotators import annotator_differs
from dhkappa.inputs.problems.sampled_votes import (
    CHANCE,
    ENOUGH_EXCEPTIONS,
    FEWER_ERRORS,
    FromVotes,
    from_votes,
    independent_exceptions,
    is_made_from_votes,
    poisson_tail,
    sampled_votes,
    vote_accuracy,
)

_FEW_ITEMS = 20
_ABSTAINS = 0.05  # share of items without a label
_COMMON = 0.5  # share of a typical labeler's items that all labelers labeled
_Z = 4.0  # standard errors of a clear difference
_MOST_ROWS = 0.9
_SOME_ITEMS = 10  # that show their agreement, or percentages
_NO_VOTE = 0.002  # share of labels that may be no vote of their item
_RANDOM_Z = 2.5
_MOST_ORDERED = 11
_DIFFERING_ITEMS = 30
_CLOSE = 0.85
_BEST_ORDERS = 0.02  # share of orders that may fit as well as the natural one
_DRAWN_ORDERS = 500
SCALES = (
    ("none", "very low", "low", "medium", "high", "very high", "critical"),
    ("low", "moderate", "high"),
    ("none", "minimal", "mild", "moderate", "severe", "very severe", "extreme"),
    ("trivial", "minor", "medium", "major", "critical", "blocker"),
    ("never", "rarely", "sometimes", "often", "usually", "always"),
    ("strongly disagree", "disagree", "somewhat disagree", "neutral", "somewhat agree", "agree", "strongly agree"),
    ("very negative", "negative", "neutral", "positive", "very positive"),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
    ("very poor", "poor", "fair", "good", "very good", "excellent"),
    ("terrible", "bad", "okay", "good", "great"),
    ("very bad", "bad", "neutral", "good", "very good"),
    ("very bad", "bad", "average", "good", "very good"),
    ("very bad", "bad", "ok", "good", "very good"),
    ("none", "minor", "moderate", "major", "critical"),
    ("lowest", "lower", "middle", "higher", "highest"),
    ("lowest", "low", "medium", "high", "highest"),
    ("bad", "ok", "good"),
    ("very unlikely", "unlikely", "possible", "likely", "very likely"),
    ("irrelevant", "somewhat relevant", "relevant", "very relevant", "highly relevant"),
    ("not relevant", "partially relevant", "relevant"),
    ("easy", "medium", "hard"),
    ("small", "medium", "large"),
)
"""Well-known ordered categories, lowest first."""
RATINGS = [[str(n) for n in range(*ends)] for ends in ((1, 6), (1, 8), (1, 11), (0, 11), (-2, 3), (-3, 4))]
"""Usual scales of ratings."""
_LIKE_COUNTS = re.compile("(n|num|number|no)?_?(of_)?(n|counts?|votes?|annotators|freq|frequency)", re.IGNORECASE)


def labeler_abstains(data: Evidence) -> Iterator[Problem]:
    """Find labelers without a label on items that have votes."""
    usable = data.totals > 1
    n = data.items(usable)
    for name in data.labelers:
        without = usable & (data.codes(name) < 0)
        absent = data.items(without)
        if n and not data.labels(name).any():
            fix = "Name the column of suggested labels with $suggested, or leave this one out."
            yield Problem("labeler-abstains", "error", f"{name} has no labels: all are missing.", (), fix, (name,))
        if not absent or absent == n:
            continue
        message = f"{name} has no label on {absent:,} of {counted(n, 'item')} with votes ({percent(absent / n)})."
        means = []
        for rows in (without, usable & ~without):
            items, shares = data.counts.patterns.items[rows], data.agreement[rows]
            mean = float(np.average(shares, weights=items))
            variance = float(np.average((shares - mean) ** 2, weights=items))
            means.append((mean, variance / items.sum()))
        (one, one_variance), (other, other_variance) = means
        if absent >= _SOME_ITEMS and other - one > max(0.05, _Z * math.sqrt(one_variance + other_variance)):
            message += f" Annotators agree less on these items ({one:.2f} of pairs, {other:.2f} on the others)"
            message += ": its score is for easier items."
        severity = "warning" if absent >= _ABSTAINS * n else "info"
        fix = "Give every item a label, or read the result as one for the labeled items only."
        yield Problem("labeler-abstains", severity, message, (), fix, (name,))


def few_common_items(data: Evidence) -> Iterator[Problem]:
    """Find labelers that share few items with the others."""
    if len(data.labelers) < 2 or not (data.totals > 1).any():
        return
    labeled = {name: (data.totals > 1) & (data.codes(name) >= 0) for name in data.labelers}
    each = {name: data.items(rows) for name, rows in labeled.items()}
    common, typical = data.items(np.logical_and.reduce([*labeled.values()])), float(np.median([*each.values()]))
    share: dict[str, float] = {}
    for name, rows in labeled.items():
        others = np.logical_or.reduce([own for other, own in labeled.items() if other != name])
        share[name] = data.items(rows & others) / max(data.items(others), 1)
    if common >= _COMMON * typical and min(share.values()) >= _COMMON:
        return
    few = [name for name, part in share.items() if part < _COMMON] or [min(share, key=lambda name: share[name])]
    order = sorted(each, key=lambda name: each[name])
    numbers = ", ".join(f"{name} {each[name]:,}" for name in dict.fromkeys([*order[:2], order[-1]]))
    message = f"Only {counted(common, 'item')} {'has' if common == 1 else 'have'} votes and a label of each of "
    message += f"{len(each)} labelers, so a ranking says little about the other items. Labeled items: {numbers}."
    fix = "Let all labelers label the same items, or leave some out with $suggested."
    yield Problem("few-common-items", "warning", message, tuple(few[:3]), fix)


def too_few_items(data: Evidence) -> Iterator[Problem]:
    """Find labelers, or all, with few eligible items."""
    usable = data.totals > 1
    if (data.totals == 1).any() and not usable.any():  # labelers are compared with the only vote
        return
    labeled = [name for name in data.labelers if data.labels(name).any()]  # another problem says if there are none
    n = {name: data.items(usable & (data.codes(name) >= 0)) for name in labeled}
    few = {name: number for name, number in n.items() if number < _FEW_ITEMS}
    if not few:
        return
    everyone = len(few) == len(data.labelers)
    message = f"{counted(max(few.values()), 'item')} {'has' if max(few.values()) == 1 else 'have'} "
    message += "two votes or more and a suggested label"
    if not everyone or len({*few.values()}) > 1:
        message += f" ({'labeler' if len(few) == 1 else 'labelers'} {shown(few, 3)})"
    message += f". With fewer than {_FEW_ITEMS}, a result says little."
    fix = "Have more items voted on: dhkappa plan says how many."
    yield Problem("too-few-items", "warning", message, (), fix, () if everyone else tuple(few))


def looks_like_percent(data: Evidence) -> Iterator[Problem]:
    """Find percentages where numbers of votes are expected."""
    n = data.items(data.totals > 0)
    if not data.numbers or n < _SOME_ITEMS:
        return
    near = {whole: data.items(np.abs(data.totals - whole) <= whole / 50) for whole in (100, 1000)}
    whole = max(near, key=lambda one: near[one])
    if near[whole] < _MOST_ROWS * n or data.items(np.abs(data.totals - whole) <= whole / 100) < n / 3:
        return
    number = counted(n, "item") if near[whole] == n else f"{near[whole]:,} of {counted(n, 'item')}"
    message = f"The numbers of votes add up to about {whole:,} on {number}: they look like percentages."
    fix = "Replace the percentages in these columns by numbers of votes. If each item has 100 votes, accept this with "
    fix += "$allow=."
    yield Problem("looks-like-percent", "error", message, (), fix)


def weights_look_like_counts(data: Evidence) -> Iterator[Problem]:
    """Find sample weights that are numbers of votes."""
    weight = data.counts.columns.weight
    if weight is None or not len(data.totals):
        return
    each = weight[data.counts.patterns.suggested]
    voted = data.totals > 0
    name = None if data.table is None else data.table.roles.sample_weight
    where = "sample_weight" if name is None else f"Column {name!r}"
    equal = np.array_equal(each[voted], data.totals[voted]) and len(np.unique(each[voted])) > 1
    named = name is not None and _LIKE_COUNTS.fullmatch(name) is not None and bool((each == np.rint(each)).all())
    if equal or (named and len(np.unique(each)) > 1):
        what = "is the number of votes of every item" if equal else "looks like a number of votes"
        message = f"{where} {what}. A sample weight is what an item stands for: one over its sampling probability."
        fix = "Leave out $sample_weight: votes are counted already, and items weigh the same."
        yield Problem("weights-look-like-counts", "warning", message, (), fix)


def votes_follow_agreement(data: Evidence) -> Iterator[Problem]:
    """Find numbers of votes that depend on the agreement of the first ones."""
    if found := agreement_follows_votes(data.counts.patterns):
        few, one, many, other = found
        pairs = f"{one:.2f} of pairs agree on items with {few} votes, {other:.2f} on items with {many}"
        message = f"Agreement depends on the number of votes: {pairs}."
        fix = "If votes were added after disagreement, use only the votes planned in advance."
        yield Problem("votes-follow-agreement", "warning", message, (), fix)


def labels_from_votes(data: Evidence) -> Iterator[Problem]:
    """Find labelers whose labels are a most frequent vote, or any vote, too often to be made without the votes."""
    patterns = data.counts.patterns
    if not len(patterns):
        return
    most = np.zeros(len(patterns), np.int64)
    np.maximum.at(most, data.row, patterns.votes)
    for name in data.labelers:
        codes = data.codes(name)
        # If all categories are a most frequent vote of an item, any label is one.
        used = np.union1d(codes[codes >= 0], np.flatnonzero(data.votes))
        tied = np.bincount(data.row[patterns.votes == most[data.row]], minlength=len(patterns))
        rows = (data.totals > 1) & (codes >= 0) & (tied < len(used))
        n = data.items(rows)
        single = _from_single_votes(data, name)
        accuracy, perfect = _exceptions_of_true_labels(data, rows, most)
        if single is not None:  # annotators differ in accuracy
            accuracy, perfect = single.accuracy, single.perfect
        leads = (patterns.code == codes[data.row]) & (patterns.votes == most[data.row])
        first = np.bincount(data.row[leads], minlength=len(patterns)) > 0
        exceptions = n - data.items(rows & first)
        if is_made_from_votes(exceptions, perfect, n, accuracy):
            often = f"all but {exceptions:,} of its labels are" if exceptions else "every label is"
            differ = data.items((data.totals > 1) & (codes >= 0) & (np.diff(patterns.start) > 1))
            message = f"{often} a most frequent vote, although votes differ on {counted(differ, 'item')}. "
            enough = perfect >= ENOUGH_EXCEPTIONS  # for a comparison with labels without errors
            expected = perfect if enough else independent_exceptions(perfect, n, accuracy)
            message += "Independent labels, even very good ones, would differ from the most frequent vote on about "
            message += f"{expected:.0f} items."
        else:
            message = _changed_majority(single)
            if not message and name not in data.copies:  # the votes of one annotator are like random votes
                message = _random_votes(data, codes, rows & ~first, most)
        if not message:
            continue
        fix = "Votes cannot judge labels that were made from them: use votes of other annotators, or other labels. If "
        fix += "the labels were made without these votes, accept this with $allow=."
        message = f"{name} may be made from these votes: {message}"
        yield Problem("labels-from-votes", "warning", message, (), fix, (name,))


def _from_single_votes(data: Evidence, labeler: str) -> FromVotes | None:
    """Compare the labels with the most frequent votes of annotators who differ in accuracy; None if unknown."""
    votes = data.item_votes
    if votes is None or votes.annotators is None:
        return None
    sample = sampled_votes(votes)
    return from_votes(sample, votes.columns.codes(labeler, votes.categories)[sample.chosen])


def _changed_majority(found: FromVotes | None) -> str:
    """Return what shows that labels are the majority, with some changed; empty if nothing does."""
    if found is None or not found.is_changed_majority:
        return ""
    message = f"where votes differ, its label is no most frequent vote on {found.split_exceptions:,} of "
    message += f"{counted(found.split, 'item')}. Labels made without the votes, with as many errors on the other "
    return f"{message}items, would be another one on about {found.expected:.0f}."


def _random_votes(data: Evidence, codes: Integers, behind: npt.NDArray[np.bool_], most: npt.NDArray[np.int64]) -> str:
    """Return what shows that each label is a vote of its item, drawn at random; empty if nothing does.

    Labels of a good labeler are a most frequent vote more often than a random vote; labels of any other labeler are
    sometimes a category that the item has no vote for, like votes that no other annotator of the item gives.
    """
    patterns, several = data.counts.patterns, data.totals > 2
    rows = several & (codes >= 0)
    fits = patterns.code == codes[data.row]
    outside = data.items(rows & (np.bincount(data.row[fits], minlength=len(patterns)) == 0))
    items = patterns.items[data.row] * several[data.row]
    lone = float(items[patterns.votes == 1].sum()) / max(float((items * patterns.votes).sum()), 1.0)
    n = data.items(rows)
    if outside > _NO_VOTE * n or poisson_tail(outside, n * lone * FEWER_ERRORS) >= CHANCE:
        return ""
    leading = np.bincount(
        data.row, weights=patterns.votes * (patterns.votes == most[data.row]), minlength=len(patterns)
    )
    share = 1 - leading[rows] / data.totals[rows]  # of votes that are no most frequent one
    expected = float((share * patterns.items[rows]).sum())
    deviation = math.sqrt(float((share * (1 - share) * patterns.items[rows]).sum()))
    if data.items(rows & behind) < expected - _RANDOM_Z * deviation:
        return ""
    message = f"{f'all but {outside:,} of' if outside else 'all'} {counted(n, 'label')} are a vote of their item. They "
    message += "look like one vote picked at random on each item. Of the votes, "
    return f"{message}{percent(lone)} are for a category that nobody else chooses on the item."


def _exceptions_of_true_labels(
    data: Evidence, rows: npt.NDArray[np.bool_], most: npt.NDArray[np.int64]
) -> tuple[float, float]:
    """Return the accuracy of a vote, and the expected number of items whose true label is not a most frequent vote.

    The vote shares are the prior of the true label.
    """
    patterns, items = data.counts.patterns, data.counts.patterns.items
    m, n = int((data.votes > 0).sum()), data.items(rows)
    if m < 2 or n == 0:
        return 1.0, 0.0
    every = data.totals > 1
    t = float(np.average(data.agreement[every], weights=items[every]))
    accuracy = vote_accuracy(t, m)
    if not 1 / m < accuracy < 1:
        return 1.0, 0.0
    prior = data.votes / data.votes.sum()
    odds = math.log(accuracy * (m - 1) / (1 - accuracy))  # of one more vote
    behind = np.exp(odds * (patterns.votes - most[data.row].astype(np.float64)))
    own = prior[patterns.code]
    first = sum_rows(patterns, own * (patterns.votes == most[data.row]))
    voted = sum_rows(patterns, own * behind)
    without = np.clip(1 - sum_rows(patterns, own), 0, None) * np.exp(-odds * most)
    exceptions = 1 - first[rows] / (voted + without)[rows]
    return accuracy, float((exceptions * items[rows]).sum())


def looks_ordinal(data: Evidence) -> Iterator[Problem]:
    """Find ordered categories: votes that differ are closer than the vote shares alone would give."""
    voted = [code for code, votes in enumerate(data.votes) if votes]
    if data.ordered or not 3 <= len(voted) <= _MOST_ORDERED:
        return
    order = natural_order([data.categories[code] for code in voted])
    if order is None:
        return
    codes = [voted[place] for place in order]
    names = [data.categories[code] for code in codes]
    pairs, items = _differing_pairs(data, codes)
    shares = data.votes[codes] / data.votes[codes].sum()
    ratio = _closeness(pairs, shares, np.arange(len(codes))) if items >= _DIFFERING_ITEMS else 1.0
    close = ratio <= _CLOSE and _rank_of_order(pairs, shares, ratio) <= _BEST_ORDERS
    rating = [str(label) for label in data.categories] in RATINGS
    if not close and not rating:
        return
    message = f"The categories {'look like ratings' if rating else 'look ordered'} ({' < '.join(map(str, names))})"
    message += f": when two votes differ, they are {1 - ratio:.0%} closer in this order than the vote shares alone "
    message += "would give. Kappa counts a near vote like any other wrong vote."
    if not close:
        message = f"The categories look like ratings ({names[0]} to {names[-1]}), but "
        message += (
            "annotators who disagree do not choose neighbouring ratings more often than by chance."
            if items >= _DIFFERING_ITEMS
            else f"only {counted(items, 'item')} with different votes cannot show it."
        )
    fix = "give near votes partial credit with $weights= and $categories=."
    found, examples = {"weights": "linear", "categories": comma_separated(names)}, tuple(map(str, names[:3]))
    if close:
        yield Problem("looks-ordinal", "warning", message, examples, fix.capitalize(), options=found)
    else:
        fix = f"If the categories are ordered, {fix}"
        yield Problem("looks-ordinal", "info", message, examples, fix, choices=found)


def natural_order(labels: Sequence[Label]) -> list[int] | None:
    """Return the places of numbers, of numbers with equal text around them, or of words of one scale, in order."""
    texts = [str(label).strip().casefold() for label in labels]
    numbers = [re.findall(r"(?<![0-9.])-?[0-9]+(?:\.[0-9]+)?", text) for text in texts]
    stems = {re.sub(r"-?[0-9]+(?:\.[0-9]+)?", "#", text).rstrip("s") for text in texts}
    if (
        all(len(found) == 1 for found in numbers)
        and len(stems) == 1
        and not any(isinstance(one, bool) for one in labels)
    ):
        values = [float(found[0]) for found in numbers]
        return sorted(range(len(labels)), key=lambda place: values[place]) if len({*values}) == len(values) else None
    named = [re.fullmatch(r"\(?([0-9]{1,2})\)?\s*[-\u2013:.)=]\s*[^0-9]+", text) for text in texts]  # 1 - very bad
    if all(named):
        places = [int(found[1]) for found in named if found]
        return sorted(range(len(labels)), key=places.__getitem__) if len({*places}) == len(places) else None
    plain = [re.sub("[ _-]+", " ", text) for text in texts]
    for scale in SCALES:
        if {*plain} <= {*scale}:
            return sorted(range(len(labels)), key=lambda place: scale.index(plain[place]))
    return None


def _differing_pairs(data: Evidence, codes: Sequence[int]) -> tuple[npt.NDArray[np.float64], int]:
    """Return how often votes differ by each pair of categories, each item alike, and the number of such items."""
    patterns = data.counts.patterns
    votes = np.zeros((len(patterns), len(data.categories)))
    votes[data.row, patterns.code] = patterns.votes
    votes = votes[:, codes]
    rows = (data.totals > 1) & (np.diff(patterns.start) > 1)
    weight = patterns.items[rows] / (data.totals[rows] * (data.totals[rows] - 1.0))
    pairs = votes[rows].T @ (votes[rows] * weight[:, None])
    np.fill_diagonal(pairs, 0.0)
    return pairs, data.items(rows)


def _closeness(pairs: npt.NDArray[np.float64], shares: npt.NDArray[np.float64], rank: npt.NDArray[np.int64]) -> float:
    """Return the mean distance of differing votes over its expectation by the vote shares, for ranks of categories."""
    distance = np.abs(rank[:, None] - rank[None, :])
    expected = np.outer(shares, shares)
    np.fill_diagonal(expected, 0.0)
    return float((pairs * distance).sum() / pairs.sum() / ((expected * distance).sum() / expected.sum()))


def _rank_of_order(pairs: npt.NDArray[np.float64], shares: npt.NDArray[np.float64], ratio: float) -> float:
    """Return the share of other orders that fit as well: of all orders, or of many drawn ones."""
    m = len(shares)
    if m <= 6:
        orders = [np.array(order) for order in permutations(range(m)) if order[0] < order[-1]]
    else:
        draw = np.random.default_rng(m)
        orders = [draw.permutation(m) for _ in range(_DRAWN_ORDERS)]
    others = [order for order in orders if (np.diff(order) != 1).any()]
    return sum(_closeness(pairs, shares, order) <= ratio for order in others) / len(others)


RULES: tuple[Rule, ...] = (
    *row_rules.RULES,
    *copies.RULES,
    labeler_abstains,
    few_common_items,
    too_few_items,
    looks_like_percent,
    weights_look_like_counts,
)
RULES_OF_VOTES: tuple[Rule, ...] = (
    *copies.RULES_OF_VOTES,
    *row_rules.RULES_OF_VOTES,
    annotator_differs,
    votes_follow_agreement,
    labels_from_votes,
    looks_ordinal,
)
