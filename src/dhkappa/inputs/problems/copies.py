"""Rules about copies: labelers copied from an annotator, and annotators that are copies or made from other votes."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import numpy as np

from dhkappa.core import Integers
from dhkappa.errors import Problem, comma_separated, counted, shown
from dhkappa.inputs.problems import Evidence, Rule, first_values, percent, spelling, unused_columns
from dhkappa.inputs.problems.sampled_votes import SampledVotes, agreement, from_votes, is_made_from_votes, sampled_votes

_COPIED = 0.98  # share of common items with equal labels
_SIMILAR = 0.8
_COMMON_ITEMS = 20
_DIFFERENCES = 15  # that are expected of annotators who never differ
_LESS = 0.05  # by which other annotators agree less with a copy
_CHANCE = 1e-4
_SELDOM = 0.02  # share of votes that are no most frequent one of the others
_OUT_Z = 2.5  # standard errors by which a copy agrees more than any other annotator
_MOST_COMPARED = 40  # annotators with votes on half of the items
SOURCES = ("unchanged", "majority", "tie", "decision")
"""Where the labels of a file of corrected labels come from, in its column ``source``."""
CORRECTED = "its labels were corrected by reviews of these votes"
_FROM_REVIEWS = {"majority", "decision"}
_PREFIX = re.compile("^(ann|annotator|suggested|rater|coder|worker|label|labeler)[ _.-]+", re.IGNORECASE)
_MODEL = re.compile(
    "(?<![a-z])(chat)?gpt|(?<![a-z])(llm|claude|gemini|llama|mistral|mixtral|qwen|deepseek|openai|model|classifier|"
    "chatbot|ai|bot|robot|auto|automatic|system|pred|prediction|copilot|grok|haiku|sonnet|davinci|heuristic|"
    "baseline|rule)s?(?![a-z])",
    re.IGNORECASE,
)
_NO_PERSON = re.compile(
    "(majority|final|gold|consensus|adjudicated|adjudication|agreed|aggregated?|resolved|truth|flag(ged)?|confident|"
    "confidence|certain|certainty|sure|difficulty|comments?|notes?|seconds|time|date|count|id)[ _.-]?(votes?|labels?)?",
    re.IGNORECASE,
)


def labeler_equals_annotator(data: Evidence) -> Iterator[Problem]:
    """Find labelers that are a copy of an annotator or agree with one like a copy, or have the name of one."""
    votes = data.item_votes
    if votes is None or votes.annotators is None:
        return
    names = [str(one) for one in votes.annotators]
    row, who, code = votes.sorted_votes
    items = np.ones(len(votes.columns)) if votes.items is None else votes.items.astype(np.float64)
    for labeler in data.labelers:
        labels = votes.columns.codes(labeler, votes.categories)
        labeled = labels[row] >= 0
        same = (labels[row] == code) & labeled
        common = np.bincount(who[labeled], weights=items[row[labeled]], minlength=len(names))
        equal = np.bincount(who[same], weights=items[row[same]], minlength=len(names))
        # A copy is of one who voted on most of the labeled items; of many annotators, some agree nearly always.
        enough = max(_COMMON_ITEMS, items[labels >= 0].sum() / 2)
        problem = None
        for place in np.flatnonzero((common >= enough) & (equal >= _COPIED * common)).tolist():
            on_these = np.zeros(len(items), np.bool_)
            on_these[row[(who == place) & labeled]] = True
            others = on_these[row] & (who != place)
            rate = float(np.average(same[others], weights=items[row[others]])) if others.any() else 1.0
            k, n = int(equal[place]), int(common[place])
            if k / n - rate > _LESS and _at_least(k, n, rate) < _CHANCE / len(names):
                message = f"{labeler} gives the same label as annotator {names[place]} on {k:,} of "
                message += f"{counted(n, 'common item')}; the other annotators agree with it on {percent(rate)}."
                problem = message, names[place]
                break
        if problem is None:
            likely = np.flatnonzero((common >= enough) & (equal >= _SIMILAR * common))
            problem = _nearly_equal(sampled_votes(votes), labeler, labels, likely.tolist())
        by_name = problem is None
        if by_name:
            alike = [name for name in names if _person(name) == _person(labeler)]
            if alike:
                problem = f"Labeler {labeler} has the name of annotator {alike[0]}.", alike[0]
        if problem is not None:
            kept = _other_annotators(data, [problem[1]])
            fix = "leave them out of the votes, or do not judge the labeler."
            fix = "do not judge it, or leave the votes out with $annotators=." if kept else fix
            fix = f"If its labels are that annotator's votes, {fix} If they were made without these, accept this with "
            fix += "$allow=."
            message, copied = problem[0], (problem[1],)
            why = f"it has the name of annotator {problem[1]}" if by_name else ""
            found = Problem("labeler-equals-annotator", "warning", message, copied, fix, (labeler,), choices=kept)
            yield replace(found, because=why)


def _nearly_equal(sample: SampledVotes, labeler: str, labels: Integers, places: list[int]) -> tuple[str, str] | None:
    """Return the message about an annotator who agrees with a labeler too often, and the name; None without one."""
    for place in places:
        votes = sample.votes_of(place)
        found = agreement(sample.without([place]), votes, labels[sample.chosen])
        if found is not None and found.is_copy and _stands_out(sample, place, votes, labels[sample.chosen]):
            name = sample.annotators[place]
            message = f"{labeler} gives the same label as annotator {name} on {percent(found.observed)} of "
            message += f"{counted(found.n, 'common item')}. By how both agree with the other annotators, about "
            message += f"{percent(found.expected)} is expected: they share errors, like two runs of one model."
            return message, name
    return None


def _stands_out(sample: SampledVotes, place: int, votes: Integers, labels: Integers) -> bool:
    """Tell whether no other annotator agrees with the labels, or with the annotator, nearly as often.

    One who does shows that several share a view, not that one is a copy.
    """
    for other in _compared(sample):
        own = sample.votes_of(other)
        rows = (own >= 0) & (votes >= 0) & (labels >= 0)
        weight = sample.weight[rows]
        if other == place or weight.sum() < _COMMON_ITEMS:
            continue
        for pair in (own == labels, own == votes):
            more = (votes == labels)[rows] - pair[rows].astype(np.float64)
            mean = float(np.average(more, weights=weight))
            if mean < _OUT_Z * math.sqrt(float(np.average((more - mean) ** 2, weights=weight) / weight.sum())):
                return False
    return True


def _person(name: str) -> str:
    """Return a name without the prefix of a column, case and punctuation."""
    return re.sub(r"[\W_]+", "", str(spelling(_PREFIX.sub("", name))))


def _at_least(k: int, n: int, rate: float) -> float:
    """Return the probability of k or more successes in n trials."""
    if not 0 < rate < 1:
        return float(rate >= 1)
    start = math.lgamma(n + 1)
    terms = (
        start - math.lgamma(j + 1) - math.lgamma(n - j + 1) + j * math.log(rate) + (n - j) * math.log1p(-rate)
        for j in range(k, n + 1)
    )
    return math.fsum(map(math.exp, terms))


def named_otherwise(data: Evidence) -> Iterator[Problem]:
    """Find annotators with the name of a model, or of a column that is not an annotator's."""
    votes = data.item_votes
    if votes is None or votes.annotators is None:
        return
    names = [name for name in votes.annotators if isinstance(name, str)]
    labelers = {_person(name) for name in data.labelers}
    models = [name for name in names if _MODEL.search(name) and _person(name) not in labelers]
    free = [] if data.listed else names
    if about := [name for name in free if any(_is_about(name, other) for other in names)]:
        one = len(about) == 1
        message = f"{shown(about, 3)} {'says' if one else 'say'} something about the votes of an annotator, "
        message += "by the name, but is counted as votes." if one else "by their names, but count as votes."
        kept = _other_annotators(data, about)
        yield Problem("not-annotators", "error", message, tuple(about[:3]), _leave_out(kept).capitalize(), options=kept)
    columns = [name for name in free if name not in about and _NO_PERSON.fullmatch(_PREFIX.sub("", name))]
    for found, kind in ((models, "a model"), (columns, "a result or a note")):
        if found:
            are, kept = "is" if len(found) == 1 else "are", _other_annotators(data, found)
            message = f"{shown(found, 3)} {are} named like {kind}, not like an annotator."
            fix = f"If so, {_leave_out(kept)}"
            yield Problem("not-annotators", "warning", message, tuple(found[:3]), fix, choices=kept)


def _is_about(name: str, annotator: str) -> bool:
    """Tell whether a column is called like an annotator and a word such as confidence: ``ann_1_confidence``."""
    rest = name[len(annotator) :]
    starts = name.casefold().startswith(annotator.casefold()) and rest[:1] in (" ", "_", ".", "-")
    return starts and _NO_PERSON.fullmatch(rest.strip(" _.-")) is not None


def _other_annotators(data: Evidence, names: Collection[str]) -> dict[str, str]:
    """Return the option that leaves annotators out; empty if there is none."""
    kept = [] if data.table is None else [name for name in data.table.roles.annotators if name not in names]
    return {"annotators": comma_separated(kept)} if kept else {}


def _leave_out(kept: Mapping[str, str]) -> str:
    """Return the end of a sentence that says how to leave annotators out."""
    return "name the annotators with $annotators=." if kept else "leave out its votes."


def _compared(sample: SampledVotes) -> list[int]:
    """Return the annotators with votes on half of the items."""
    number = np.bincount(sample.who, weights=sample.weight[sample.row], minlength=len(sample.annotators))
    enough = max(_COMMON_ITEMS, float(sample.weight.sum()) / 2)
    return [place for place in np.argsort(-number, kind="stable").tolist() if number[place] >= enough][:_MOST_COMPARED]


def annotators_equal(data: Evidence) -> Iterator[Problem]:
    """Find annotators whose votes are those of another one, although the others differ."""
    votes = data.item_votes
    if votes is None or len(votes.annotators or ()) < 3:
        return
    sample = sampled_votes(votes)
    places = _compared(sample)
    columns = np.array([sample.votes_of(place) for place in places])
    free = [*range(len(places))]
    while len(free) > 1:
        first, *rest = free
        both = (columns >= 0) & (columns[first] >= 0)
        same = ((columns == columns[first]) & both) @ sample.weight
        common = both @ sample.weight
        equal = (common >= max(_COMMON_ITEMS, sample.weight.sum() / 2)) & (same >= _COPIED * common)
        group = [other for other in rest if equal[other]]
        free = [place for place in rest if place not in group]
        if not group:
            continue
        others = sample.without([places[place] for place in (first, *group)])
        if others.total.max(initial=0) < 2 and data.labelers:  # with one more annotator, compare with a labeler, too
            others = others.with_labels(votes.columns.codes(data.labelers[0], votes.categories)[sample.chosen])
        found = agreement(others, columns[first], columns[group[0]])
        alike = max((same / np.maximum(common, 1))[~equal & (common >= _COMMON_ITEMS)], default=1.0)
        n = float(common[equal].min())
        never_differ = bool((same[equal] == common[equal]).all()) and n * (1 - alike) > _DIFFERENCES
        if never_differ or (found is not None and found.is_copy):
            names = [sample.annotators[places[place]] for place in (first, *group)]
            share = 1.0 if never_differ or found is None else found.observed
            common_items = counted(round(n), "common item")
            message = f"Annotators {shown(names, 3)} vote alike on {percent(share)} of {common_items}."
            if found is not None and found.is_copy:
                message += f" By how they agree with the others, about {percent(found.expected)} is expected."
            else:
                message += f" With any other annotator, it is {percent(alike)} at most."
            kept = _other_annotators(data, names[1:])
            fix = f"If they are copies, keep one of them. If so, {_leave_out(kept)}"
            yield Problem("annotators-equal", "warning", message, tuple(names[:3]), fix, options=kept)


def made_from_others(data: Evidence) -> Iterator[Problem]:
    """Find annotators whose votes are made from those of the others, such as a column with the majority."""
    votes = data.item_votes
    if votes is None or len(votes.annotators or ()) < 3:
        return
    sample, names = sampled_votes(votes), []
    # A vote that is no most frequent one is none without itself, either: most annotators need no closer look.
    weight = sample.weight[sample.row]
    behind = np.bincount(sample.who, weights=weight * ~sample.leading[0][sample.cell], minlength=len(sample.annotators))
    number = np.bincount(sample.who, weights=weight, minlength=len(sample.annotators))
    for place in [place for place in _compared(sample) if behind[place] <= _SELDOM * number[place]]:
        found = from_votes(sample.without([place]), sample.votes_of(place))
        if found is not None and is_made_from_votes(found.exceptions, found.perfect, found.n, found.accuracy):
            names.append(sample.annotators[place])
            numbers = f"on all but {found.exceptions:,}" if found.exceptions else "on each"
            numbers += f" of {counted(found.n, 'item')}, although these differ on {found.split:,}"
    if len(names) == 1:
        message = f"Annotator {names[0]} gives a most frequent vote of the others {numbers}: it may be made from them."
        kept = _other_annotators(data, names)
        yield Problem("not-annotators", "warning", message, tuple(names), f"If so, {_leave_out(kept)}", choices=kept)


def corrected_labels(data: Evidence) -> Iterator[Problem]:
    """Find the labels of a file of corrected labels, of which some were made from votes; its columns may be renamed."""
    table = data.table
    if table is None or not data.labelers:
        return
    for frame in [frame for frame in (table.items, table.votes) if frame is not None]:
        names = unused_columns(table, frame)
        for name, values in zip(names, first_values(table, frame, *names), strict=True):
            if not values or not {*values} <= {*SOURCES}:
                continue
            picked, _ = frame.pick({"value": name})
            found = {value for value in table.ask(picked.unique())["value"] if value}
            if not found <= {*SOURCES} or not found & _FROM_REVIEWS:
                continue
            columns = table.roles.suggested
            own = [who for who in data.labelers if columns.get(who) == "new"]
            own = own or [who for who in data.labelers if columns.get(who) not in ("old", None)]
            for who in own:
                message = f"{who} holds labels that were corrected by reviews of votes: column {shown([name])} says so."
                fix = "Votes cannot judge labels that were made from them: have a new random sample of items voted on. "
                fix += "If these votes were not used in the reviews, accept this with $allow=."
                yield Problem("labels-from-votes", "warning", message, (), fix, (who,), because=CORRECTED)
            return


RULES: tuple[Rule, ...] = (corrected_labels, named_otherwise)
RULES_OF_VOTES: tuple[Rule, ...] = (annotators_equal, made_from_others)
