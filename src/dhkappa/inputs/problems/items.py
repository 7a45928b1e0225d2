"""Rules about annotators, items and columns. They look at single votes, or at a few rows of the table."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Integers, label_rules
from dhkappa.core.agreement import pair_agreement
from dhkappa.core.grouping import Patterns
from dhkappa.core.items import ItemVotes
from dhkappa.errors import Problem, comma_separated, counted, shown
from dhkappa.inputs.columns import is_recognized, suggested_columns
from dhkappa.inputs.problems import (
    FIRST_ROWS,
    Evidence,
    Rule,
    differences,
    first_values,
    spelling,
    unused_columns,
)

if TYPE_CHECKING:
    from dhkappa.inputs.backends import Frame

_COMMON_ITEMS = 20
_FEW_TOTALS, _NEARLY = 10, 0.95  # items with numbers of votes, and the share of them that show a total
_OVERLAP = 0.1  # of the values of two annotators
_FEW_VOTES = 5  # of an annotator: too few to see which values are used
_MANY_REMOVED = 0.01  # share of the votes
_MOST_ANNOTATORS = 300
_MOSTLY = 0.8  # share of values that are categories
_RANDOM_Z = 2.0
_RANDOM_FIT = 0.3  # of an annotator's fit
_AGREEING = 0.2  # agreement beyond chance
_GROUPS = 5
_CLUSTER_ITEMS = 5_000
_PREFIXES = 50_000  # ids that are looked at
_SHUFFLES = 200
_CLUSTER_Z = 4.5
_DESIGN_EFFECT = 1.2
_MEASURED_LABELERS = 4
_PEOPLE = re.compile(
    "ann(otator)?[ _.-]?[^ _.-]+$|(annotator|rater|coder|reviewer|worker)s?([ _.-]|[0-9]|$)", re.IGNORECASE
)
_WHO = re.compile(
    "(annotator|rater|coder|worker|reviewer|user|judge|who|labell?er)s?([ _.-]?(id|name|no|nr|email))?|e?-?mail|"
    "(completed|created|labell?ed|annotated|submitted|voted|rated|reviewed)[ _.-]?by([ _.-]?(id|name|email))?",
    re.IGNORECASE,
)
_SUGGESTED = re.compile("suggest(ed|ion)s?([ _.-]|$)", re.IGNORECASE)
_SEPARATED = re.compile(r"(.+)[^0-9A-Za-z][0-9A-Za-z]+")
_GROUPING = re.compile(
    "(document|doc|conversation|thread|session|user|author|page|article|source|dialog|dialogue|paragraph|chat)"
    "s?([ _-]?(id|name|key|no|nr|number))?",
    re.IGNORECASE,
)


def annotator_variants(data: Evidence) -> Iterator[Problem]:
    """Find annotators that are spellings of one name."""
    votes = data.item_votes
    groups: dict[Any, list[str]] = {}
    for name in (votes.annotators or ()) if votes is not None else ():
        if isinstance(name, str):
            groups.setdefault(spelling(name), []).append(name)
    alike = [group for group in groups.values() if len(group) > 1]
    if not alike:
        return
    how = [rule for rule in label_rules.RULES if any(rule in (differences(group) or ()) for group in alike)]
    more = f" ({counted(len(alike) - 1, 'more group')} like this)" if len(alike) > 1 else ""
    message = f"{shown(alike[0])} look like one annotator, but count as {len(alike[0])}{more}."
    fix, options = "Unite them with $normalize=." if how else "Write the names alike.", {"normalize": ",".join(how)}
    examples = tuple(" = ".join(map(repr, group)) for group in alike[:3])
    yield Problem("annotator-variants", "warning", message, examples, fix, options=options if how else {})


def duplicates_removed(data: Evidence) -> Iterator[Problem]:
    """Report votes that were left out because their annotator had another one on the item."""
    removed = None if data.table is None else data.table.removed
    if removed:
        fix, choices = "Check with $duplicates= which votes these are.", {"duplicates": "error"}
        severity = "warning" if removed.n >= _MANY_REMOVED * removed.n_before else "info"
        yield Problem("duplicates-removed", severity, str(removed.note), (), fix, choices=choices)


def not_annotators(data: Evidence) -> Iterator[Problem]:
    """Find columns of votes whose values the annotators do not use."""
    table = data.table
    if table is None or not 2 <= len(table.roles.annotators) <= _MOST_ANNOTATORS:
        return
    columns, used = table.roles.annotators, _column_votes(data, table)
    total = used.sum(axis=1)
    shares = used / np.maximum(total, 1)[:, None]
    group = _components(shares, total)
    if len({*group} - {-1}) < 2:
        return
    labels = {
        spelling(data.categories[code]) for name in data.labelers for code in np.flatnonzero(data.labels(name)).tolist()
    }
    keys = [*dict.fromkeys(map(spelling, data.categories))]
    suggested = np.array([key in labels for key in keys])
    # The annotators use the values that are suggested; if none are, the group of most columns with the fewest values.
    fit = {
        one: (
            float(shares[rows][:, suggested].sum() / rows.sum()) if len(keys) else 0.0,
            int(rows.sum()),
            -int((used[rows] > 0).sum()),
        )
        for one in {*group} - {-1}
        for rows in [np.array(group) == one]
    }
    main = max(fit, key=lambda one: fit[one])
    other = [column for column, one in zip(columns, group, strict=True) if one not in (main, -1)]
    kept = [column for column, one in zip(columns, group, strict=True) if one in (main, -1)]
    values = [key for place, key in enumerate(keys) if used[columns.index(other[0]), place]]
    message = f"{shown(other, 3)} {'is a column' if len(other) == 1 else 'are columns'} of votes, but "
    message += f"{'its' if len(other) == 1 else 'their'} values ({shown(values, 3)}) are not those of the annotators."
    fix, options = "Name the annotators with $annotators=.", {"annotators": comma_separated(kept)}
    yield Problem("not-annotators", "error", message, tuple(other[:3]), fix, options=options)


def one_vote(data: Evidence) -> Iterator[Problem]:
    """Find data without pairs of votes."""
    if (data.totals == 1).any() and not (data.totals > 1).any():
        message = "Every item has at most one vote, so kappa is undefined"
        message += "; the audit uses Cohen's kappa." if data.labelers else "."
        fix = "Kappa needs items with votes of two annotators or more."
        yield Problem("one-vote", "info", message, (), fix)


def looks_like_counts(data: Evidence) -> Iterator[Problem]:
    """Find numbers of votes per category that are read as votes of annotators."""
    from dhkappa.inputs.count_columns import find_count_columns

    table = data.table
    voted = set(map(str, data.voted))
    if table is None or not table.roles.annotators or "0" not in voted or not all(map(str.isdecimal, voted)):
        return
    roles, names = table.roles, list(table.roles.annotators)
    suggested = [column for name, column in roles.suggested.items() if name in data.labelers]
    if found := find_count_columns(table.votes, names, suggested):
        message = "The votes are whole numbers, and some are 0: "
        message += f"{shown(found, 3)} look like numbers of votes, one column per category."
        options = {"counts": comma_separated(found)}
        fix = "Name them with $counts=."
        yield Problem("looks-like-counts", "error", message, tuple(found[:3]), fix, options=options)


def counts_with_total(data: Evidence) -> Iterator[Problem]:
    """Find a column among numbers of votes that is the sum of the others: a category with half of the votes."""
    patterns, n = data.counts.patterns, data.items(data.totals > 0)
    if not data.numbers or len(data.voted) < 3 or n < _FEW_TOTALS:
        return
    half = 2 * patterns.votes == data.totals[data.row]
    items = np.bincount(patterns.code[half], weights=patterns.items[data.row[half]], minlength=len(data.categories))
    code = int(items.argmax())
    if items[code] < _NEARLY * n:
        return
    name, roles = data.categories[code], None if data.table is None else data.table.roles
    message = f"{shown([name])} is the sum of the other numbers of votes on {int(items[code]):,} of "
    message += f"{counted(n, 'item')}: a total, which counts as votes for a category."
    kept = [] if roles is None else [column for column in roles.counts if column != str(name)]
    options = {"counts": comma_separated(kept)} if roles is not None and len(kept) < len(roles.counts) else {}
    fix = "Leave it out: $counts=." if options else "Leave it out of the numbers of votes."
    yield Problem("looks-like-counts", "error", message, (str(name),), fix, options=options)


def _column_votes(data: Evidence, table: Any) -> npt.NDArray[np.float64]:
    """Return the number of votes of each column for each spelling of a category; of the first rows if not fetched."""
    keys = {key: place for place, key in enumerate(dict.fromkeys(map(spelling, data.categories)))}
    columns, votes = table.roles.annotators, data.item_votes
    found = np.zeros((len(columns), len(keys)))
    if votes is not None and votes.annotators is not None:
        place = np.array([keys[spelling(label)] for label in votes.categories] or [0])
        row, who, code = votes.sorted_votes
        items = np.ones(len(votes.columns)) if votes.items is None else votes.items
        np.add.at(found, (who, place[code]), items[row])
        return found
    frame, codings, roles = table.wide
    some = table.ask(frame.select(*roles).head(FIRST_ROWS))
    for column, role in enumerate(roles):
        for label, n in Counter(codings[role].labels(some[role])).items():
            if label is not None and (key := spelling(label)) in keys:
                found[column, keys[key]] += n
    return found


def _components(shares: npt.NDArray[np.float64], total: npt.NDArray[np.float64]) -> list[int]:
    """Return the group of each column: those with common values are in one; -1 for columns with few votes."""
    group = [place if votes >= _FEW_VOTES else -1 for place, votes in enumerate(total)]
    for one in range(len(shares)):
        for other in range(one):
            apart = group[one] != group[other] and min(group[one], group[other]) >= 0
            if apart and np.minimum(shares[one], shares[other]).sum() >= _OVERLAP:
                group = [group[other] if place == group[one] else place for place in group]
    return group


def labelers_unused(data: Evidence) -> Iterator[Problem]:
    """Find columns that are called like suggested labels, but for case, spaces or an ending, and are not used."""
    table = data.table
    if table is None or data.listed_labelers:
        return
    frames = [table.votes] if table.items is None else [table.votes, table.items]
    free = dict.fromkeys(name for frame in frames for name in unused_columns(table, frame))
    if not data.labelers and {"old", "new", "source"} <= {*free}:  # as dhkappa review --merge writes them
        message, fix = (
            "'old' and 'new' look like corrected labels, but are not used.",
            "Name the new labels with $suggested=.",
        )
        yield Problem("labelers-unused", "warning", message, ("new",), fix, options={"suggested": "new"})
    if unused := [name for name in free if _SUGGESTED.match(name.strip())]:
        one, known = len(unused) == 1, [*table.roles.suggested.values(), *unused]
        message = f"{shown(unused, 3)} {'looks' if one else 'look'} like suggested labels, but "
        message += f"{'is' if one else 'are'} not used."
        fix, choices = "If so, name all labelers with $suggested=.", {"suggested": comma_separated(known)}
        yield Problem("labelers-unused", "warning", message, tuple(unused[:3]), fix, choices=choices)


def annotators_unused(data: Evidence) -> Iterator[Problem]:
    """Find columns that look like annotators and hold categories, but are not used."""
    table = data.table
    if table is not None and table.roles.label is not None and table.roles.annotator is None:
        named = [name for name in unused_columns(table, table.votes) if _WHO.fullmatch(name.strip())]
        if named:
            message = f"{shown(named[:1])} looks like the annotator of each vote, but is not used: double votes of an "
            message += "annotator are counted as votes of two."
            fix, choices = "If so, name it with $annotator=.", {"annotator": named[0]}
            yield Problem("annotators-unused", "warning", message, tuple(named[:1]), fix, choices=choices)
    if table is None or not table.roles.annotators or data.listed:
        return
    stems = {_stem(name) for name in table.roles.annotators}
    likely = [
        name for name in unused_columns(table, table.votes) if _PEOPLE.match(name.strip()) or _stem(name) in stems
    ]
    if unused := [name for name in likely if _holds(table, table.votes, name, data) >= _MOSTLY]:
        one = len(unused) == 1
        message = f"{shown(unused, 3)} {'looks like an annotator' if one else 'look like annotators'} and "
        message += f"{'holds' if one else 'hold'} categories, but {'is' if one else 'are'} not used."
        fix = "If so, name all annotators with $annotators=."
        choices = {"annotators": comma_separated([*table.roles.annotators, *unused])}
        yield Problem("annotators-unused", "warning", message, tuple(unused[:3]), fix, choices=choices)


def _stem(name: str) -> str:
    """Return the name of a column without case and its last number or letter."""
    return re.sub("[0-9]+$|(?<=[ _.-])[a-z]$", "#", str(spelling(name)))


def _holds(table: Any, frame: Frame, name: str, data: Evidence) -> float:
    """Return the share of values of a column that are categories with votes."""
    voted = {spelling(str(label)) for label in data.voted}
    values = first_values(table, frame, name)[0]
    return sum(spelling(str(value)) in voted for value in values) / len(values) if values else 0.0


def fitting_columns(data: Evidence) -> list[str]:
    """Return unused columns that hold categories with votes, those named like suggested labels first."""
    table = data.table
    if table is None:
        return []
    frame = table.item_frame
    free = [name for name in unused_columns(table, frame) if not is_recognized([name]) and not _PEOPLE.match(name)][:50]
    known = suggested_columns(free)
    fit = [(name not in known, -_holds(table, frame, name, data), name) for name in free]
    return [name for _, share, name in sorted(fit) if -share >= _MOSTLY]


def ids_are_row_numbers(data: Evidence) -> Iterator[Problem]:
    """Find tables that were joined by row numbers although their rows differ."""
    names = _item_names(data)
    if data.table is None or data.table.items is None or names is None or len(names) < _COMMON_ITEMS:
        return
    numbers = [int(name) for name in names if isinstance(name, int) or (isinstance(name, str) and name.isdecimal())]
    low, high = min(numbers, default=-1), max(numbers, default=-1)
    if len(numbers) < len(names) or low not in (0, 1) or high - low + 1 != len(numbers):
        return
    agreed, chance = _agreement(data)
    if not data.labelers or agreed - chance <= _AGREEING * (1 - chance):
        return
    if max(_fit(data, labeler) for labeler in data.labelers) < _RANDOM_FIT * (agreed - chance):
        message = f"Both tables number their {counted(len(names), 'item')} from {low}, and the labels fit the votes no "
        message += "better than random labels, although the annotators agree. The rows may not belong together."
        fix = "Join the tables by ids of the items instead of row numbers: name the column with $item."
        yield Problem("ids-are-row-numbers", "warning", message, tuple(map(str, names[:3])), fix)


def _item_names(data: Evidence) -> Sequence[Any] | None:
    """Return the names of the items, one per row or per item of a group; None if they are not known."""
    votes, table = data.item_votes, data.table
    if table is not None and table.source.row_names is not None and (table.roles.item or table.roles.label) is None:
        return None  # rows of files
    return None if votes is None or votes.find is not None or votes.names is None else list(votes.names)


def _agreement(data: Evidence) -> tuple[float, float]:
    """Return the share of pairs of votes that agree, and the share by chance; 0 and 1 without pairs."""
    usable = data.totals > 1
    if not usable.any():
        return 0.0, 1.0
    agreed = float(np.average(data.agreement[usable], weights=data.counts.patterns.items[usable]))
    return agreed, float(((data.votes / data.votes.sum()) ** 2).sum())


def _fit(data: Evidence, labeler: str) -> float:
    """Return the share of votes that are the suggested label beyond chance: its upper limit, two standard errors up."""
    patterns, codes = data.counts.patterns, data.codes(labeler)
    rows = (data.totals > 1) & (codes >= 0)
    n = data.items(rows)
    if n < _COMMON_ITEMS:
        return 1.0
    share = _vote_shares(patterns, data.row, codes)
    mean = float(np.average(share[rows], weights=patterns.items[rows]))
    error = math.sqrt(float(np.average((share[rows] - mean) ** 2, weights=patterns.items[rows])) / n)
    labels = data.labels(labeler)
    return mean - float((labels / labels.sum() * data.votes / data.votes.sum()).sum()) + _RANDOM_Z * error


def _vote_shares(patterns: Patterns, row: npt.NDArray[np.int64], codes: Integers) -> npt.NDArray[np.float64]:
    """Return (K,) the share of votes that are the label of the pattern; ``row`` is the pattern of each entry."""
    fits = patterns.code == codes[row]
    votes = np.bincount(row[fits], weights=patterns.votes[fits], minlength=len(patterns))
    return np.asarray(votes / np.maximum(patterns.vote_totals(), 1), np.float64)


def looks_clustered(data: Evidence) -> Iterator[Problem]:
    """Find groups of items, by a column or by a prefix of the ids; a warning if items of a group are alike."""
    votes, names = data.item_votes, _item_names(data)
    if votes is None or names is None or votes.columns.cluster is not None:
        return
    found = []
    for column, groups in _groupings(data, names):
        sizes = np.unique(groups, return_counts=True)[1]
        if len(sizes) >= _GROUPS and 2 * (sizes > 1).sum() >= len(sizes) and 2 * sizes.max() <= len(groups):
            effect = _design_effect(data, votes, groups)
            if column is not None or effect > _DESIGN_EFFECT:
                found.append((effect, column, groups, len(sizes)))
    if not found:
        return
    effect, column, groups, n = max(found, key=lambda one: (one[0], one[1] is not None))
    alike = effect > _DESIGN_EFFECT
    message = f"Column {column!r} puts" if column is not None else "Prefixes of the ids put"
    message += " the first" if len(groups) < len(names) else ""
    message += f" {counted(len(groups), 'item')} into {n:,} groups"
    if alike:
        message += ", and items of a group are alike. Confidence intervals treat items as independent: they are too "
        message += f"narrow, by a factor of about {effect**0.5:.1f}."
    else:
        message += ". Items of a group are not clearly more alike than others, so confidence intervals hardly depend "
        message += "on it."
    fix, options = "", {}
    if alike:
        fix = "Put the groups into a column, and pass it as $clusters, so that intervals allow for them."
        if column is not None:
            fix, options = "Pass $clusters=, so that intervals allow for the groups.", {"clusters": column}
    examples = tuple(dict.fromkeys(groups.tolist()))[:3]
    yield Problem("looks-clustered", "warning" if alike else "info", message, examples, fix, options=options)


def _groupings(data: Evidence, names: Sequence[Any]) -> Iterator[tuple[str | None, npt.NDArray[Any]]]:
    """Yield each column that may name groups, None for a prefix of the ids, with the group of each item."""
    table = data.table
    if table is not None and table.roles.item is not None:
        frame = table.item_frame
        for column in [name for name in unused_columns(table, frame) if _GROUPING.fullmatch(name)][:3]:
            of_item = _values_by_item(table, frame, column)
            if of_item is not None and all(name in of_item for name in names):
                yield column, np.array([str(of_item[name]) for name in names])
    spread = _prefixes(names[:: max(len(names) // FIRST_ROWS, 1)])  # most ids have no groups: see that at little cost
    if spread is not None and len({*spread}) >= _GROUPS:
        prefixes = _prefixes(names[:_PREFIXES])
        if prefixes is not None:
            yield None, np.array(prefixes)


def _prefixes(names: Sequence[Any]) -> list[str] | None:
    """Return the ids up to their last separator; None if some have none."""
    found = [_SEPARATED.fullmatch(name) if isinstance(name, str) else None for name in names]
    return [one[1] for one in found if one is not None] if found and all(found) else None


def _values_by_item(table: Any, frame: Frame, column: str) -> Mapping[Any, Any] | None:
    """Return the value of a column for each item; None if an item has several."""
    from dhkappa.inputs.backends import kind_in

    assert table.roles.item is not None
    picked, _ = frame.pick({"item": table.roles.item, "value": column})
    if kind_in(picked, "value") not in ("text", "integer"):
        return None
    rows = table.ask(picked.unique())
    found = dict(zip(rows["item"], rows["value"], strict=True))
    return found if len(found) == len(rows["item"]) else None


def _design_effect(data: Evidence, votes: ItemVotes, groups: npt.NDArray[Any]) -> float:
    """Return the largest design effect of groups of items on their votes, agreement and labels; 1 if all may be chance.

    The statistic is the number of pairs in a group with the same most frequent vote, or the sum of products of pairs.
    It is compared with its mean and standard deviation if items are shuffled.
    """
    names, group = np.unique(groups, return_inverse=True)
    chosen = np.flatnonzero(group <= np.searchsorted(np.cumsum(np.bincount(group)), _CLUSTER_ITEMS))
    rows = chosen if votes.group is None else votes.group[chosen]
    patterns = votes.labeled_patterns(votes.columns.labelers[0]).patterns
    total, row = patterns.vote_totals(), np.repeat(np.arange(len(patterns)), np.diff(patterns.start))
    usable = total[rows] > 1
    rows, group = rows[usable], group[chosen][usable]
    n, size = len(rows), np.bincount(group, minlength=len(names)).astype(np.float64)
    pairs = float((size * (size - 1)).sum())
    if n < 2 * _GROUPS or not pairs:
        return 1.0
    most = np.full(len(patterns), -1, np.int64)
    order = np.lexsort((-patterns.code.astype(np.int64), patterns.votes, row))
    most[row[order]] = patterns.code[order]  # the last one stays: the most frequent vote
    labels = [votes.columns.codes(labeler, votes.categories) for labeler in data.labelers[:_MEASURED_LABELERS]]
    measures = [pair_agreement(patterns)[rows], *(_vote_shares(patterns, row, codes)[rows] for codes in labels)]
    whole = np.bincount(most[rows]).astype(np.float64)
    m, chance = len(votes.categories), float((whole * (whole - 1)).sum() / (n * (n - 1.0)))

    def equal_pairs(values: npt.NDArray[Any]) -> float:
        counts = np.unique(group * m + values, return_counts=True)[1].astype(np.float64)
        return float((counts * (counts - 1)).sum())

    def products(values: npt.NDArray[Any]) -> float:
        return float((np.bincount(group, weights=values, minlength=len(names)) ** 2).sum() - (values**2).sum())

    tests: list[tuple[Any, Callable[[npt.NDArray[Any]], float], float]] = [(most[rows], equal_pairs, 1 - chance)]
    tests += [(values - values.mean(), products, float(values.var())) for values in measures]
    draw, effects = np.random.default_rng(n), [1.0]
    for values, statistic, spread in tests:
        drawn = [statistic(draw.permutation(values)) for _ in range(_SHUFFLES)]
        excess = statistic(values) - float(np.mean(drawn))
        if spread > 0 and excess > _CLUSTER_Z * float(np.std(drawn)):
            effects.append(1 + float((size**2).sum() / n - 1) * excess / (pairs * spread))
    return max(effects)


RULES: tuple[Rule, ...] = (
    annotator_variants,
    not_annotators,
    looks_like_counts,
    counts_with_total,
    one_vote,
    annotators_unused,
    labelers_unused,
    duplicates_removed,
)
RULES_OF_VOTES: tuple[Rule, ...] = (
    ids_are_row_numbers,
    looks_clustered,
)
