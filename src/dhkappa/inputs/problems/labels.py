"""Rules about labels: their spelling, and labels that nobody votes for."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Categories, Integers, Label, label_rules
from dhkappa.errors import Problem, comma_separated, counted, shown
from dhkappa.inputs.problems import Evidence, Rule, differences, percent, spelling
from dhkappa.inputs.problems.items import fitting_columns

_SMALL_SHARE = 0.01  # of votes or labels: below it, a problem of spelling is no error
_NOT_SUGGESTED = 0.1  # share of votes
_EXPECTED = 5.0  # labels for a category, going by its vote share
_STRANGE = 0.05  # share of labels that nobody votes for
_FEW_STRANGE = 3
_SIMILAR = 3.0  # shares of a label among votes and suggested labels are similar up to this factor
_Z = 3.0  # standard errors by which the vote for a code stands out
_SEPARATORS = (*";|,/", "||", "::", *"\n\t\u3001\uff1b\uff0c+&", " and ", " - ", *"~#\\")
_COMPOUNDS_OF_COMMA = 4  # categories with a comma or slash, such as "neutral/positive", are common
_DIFFERENCES = {"case": "case", "spaces": "spaces", "unicode": "Unicode form", "numbers": "how a number is written"}
_MISSING = {"", "#n/a", "#na", "#n/a n/a", "<na>", "\\n", "nat", "nan", "null", "--", "n/a", "<null>", "(null)"}
_MISSING |= {"#ref!", "#name?", "#value!", "#div/0!", "#null!", "#num!", '""', "''", "(empty)", "<empty>", "(blank)"}
_MAYBE_MISSING = {"na", "n.a.", "none", "missing", "?", "-", "nil", "skip", "skipped", "unknown", "unsure", "not sure"}
_MAYBE_MISSING |= {"don't know", "dont know", "idk", "can't tell", "cannot tell", "not applicable", "no answer"}
_MAYBE_MISSING |= {"...", "\u2026", "[]", "{}", "blank", "empty", "n/d", "n / a", "not available", "unlabeled", "tbd"}
_MAYBE_MISSING |= {"unlabelled", "not labeled", "not annotated", "no label", "abstain", "declined", "cannot judge"}
_CODES_OF_MISSING = {-1, -9, -99, -999, -9999, 99, 999, 9999}


def category_variants(data: Evidence) -> Iterator[Problem]:
    """Find categories that are spellings of one label; an error if label rules unite them."""
    groups: dict[Any, list[int]] = {}
    for code, label in enumerate(data.categories):
        if not isinstance(label, bool) and spelling(label) not in _MISSING:
            groups.setdefault(spelling(label), []).append(code)
    labels = sum((data.labels(name) for name in data.labelers), np.zeros(len(data.categories)))
    used = [[code for code in group if data.votes[code] or labels[code]] for group in groups.values()]
    # The first spelling is kept: the most frequent one, of several the one that labelers use.
    alike = [sorted(group, key=lambda code: (-data.votes[code], -labels[code])) for group in used if len(group) > 1]
    if not alike:
        return
    alike.sort(key=lambda group: -data.votes[group].sum())
    names = [[data.categories[code] for code in group] for group in alike]
    steps = [differences(group) for group in names]
    how = [rule for rule in label_rules.RULES if any(rule in (found or ()) for found in steps)]
    what = " or ".join([*(_DIFFERENCES[rule] for rule in how), *(["punctuation"] if None in steps else [])])
    more = f" ({counted(len(alike) - 1, 'more group')} like this)" if len(alike) > 1 else ""
    shares = data.category_shares([code for group in alike for code in group[1:]])
    sure = [code for group, found in zip(alike, steps, strict=True) if found for code in group[1:]]
    message = f"{shown(names[0])} differ only in {what}, but count as different categories{more}. "
    message += f"The less frequent spellings hold {shares}."
    severity = "error" if sure and data.category_shares(sure).most >= _SMALL_SHARE else "warning"
    pairs = [
        f"{other}={group[0]}" for group, found in zip(names, steps, strict=True) if not found for other in group[1:]
    ]
    options = {"normalize": ",".join(how), "map": comma_separated(pairs)}
    options = {name: value for name, value in options.items() if value}
    examples = tuple(" = ".join(map(repr, group)) for group in names[:3])
    fix = f"{'Unite' if sure else 'If they are one, unite'} them with {' and '.join(f'${name}=' for name in options)}."
    yield Problem("category-variants", severity, message, examples, fix, data.concerned(shares), options=options)


def looks_missing(data: Evidence) -> Iterator[Problem]:
    """Find categories that are written like a missing value."""
    sure, maybe = [], []
    for code, label in enumerate(data.categories):
        spelled = {label.strip().casefold(), spelling(label)} if isinstance(label, str) else set()
        if spelled & _MISSING:
            sure.append(code)
        elif spelled & _MAYBE_MISSING or _is_code_of_missing(label, data.categories):
            shares = data.category_shares([code])
            votes = shares.votes
            if not any(votes <= _SIMILAR * part and part <= _SIMILAR * votes for part in shares.labels.values()):
                maybe.append(code)
    for codes, certain in ((sure, True), (maybe, False)):
        shares = data.category_shares(codes)
        if shares.most == 0:
            continue
        names = [data.categories[code] for code in sorted(codes, key=lambda code: -data.votes[code])]
        severity = ("info", "warning", "error")[certain + (shares.most >= _SMALL_SHARE)]
        them, are = ("it", "is") if len(names) == 1 else ("them", "are")
        one, several = "a missing value, but counts as a category", "missing values, but count as categories"
        message = f"{shown(names, 3)} {are if certain else 'may be'} {one if them == 'it' else several}: {shares}."
        real = "it is a real category" if them == "it" else "they are real categories"
        fix = f"{'Read' if certain else 'If so, read'} {them} as missing with $missing=. If {real}, accept this with "
        fix += "$allow=."
        problem = Problem("looks-missing", severity, message, tuple(map(repr, names[:3])), fix, data.concerned(shares))
        found = {"missing": comma_separated(names)}
        yield replace(problem, options=found) if certain else replace(problem, choices=found)


def _whole_number(label: Label) -> int | None:
    """Return the number that a label is written as; None if it is no whole number."""
    text = "" if isinstance(label, bool) else str(spelling(label))
    return int(text) if re.fullmatch("-?[0-9]{1,9}", text) else None


def _is_code_of_missing(label: Label, categories: Categories) -> bool:
    """Tell whether a label is a number such as -99 that is not next to the other numbers.

    -1 is next to 0 on a scale from -1 to 1, and next to -2.
    """
    number = _whole_number(label)
    if number not in _CODES_OF_MISSING:
        return False
    others = {one for other in categories if other != label and (one := _whole_number(other)) is not None}
    if number == -1:
        return (-2 not in others and not others <= {-1, 0, 1}) or not others
    return number - 1 not in others and number + 1 not in others


def _list_parts(label: str) -> tuple[str, ...] | None:
    """Return the elements of a list that is written as JSON or as in Python."""
    if not (label.lstrip().startswith("[") and label.rstrip().endswith("]")):
        return None
    try:
        parts = ast.literal_eval(label.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return tuple(map(str, parts)) if isinstance(parts, list) and parts else None


def _is_json(label: Label) -> bool:
    try:
        json.loads(str(label))
    except ValueError:
        return False
    return True


def compound_labels(categories: Categories) -> tuple[str, dict[Label, tuple[str, ...]]]:
    """Return how several labels are joined in one cell, and the labels that are joined; empty if they are not."""
    texts = [label for label in categories if isinstance(label, str)]
    lists: dict[Label, tuple[str, ...]] = {label: parts for label in texts if (parts := _list_parts(label))}
    if any(len(parts) > 1 for parts in lists.values()):
        return "json", lists
    for separator in _SEPARATORS:
        cut = {label: tuple(map(spelling, label.split(separator))) for label in texts if separator in label}
        split: dict[Label, tuple[str, ...]]
        split = {label: parts for label, parts in cut.items() if all(parts) and len({*parts}) == len(parts)}
        simple = {spelling(label) for label in texts if separator not in label}
        if len({frozenset(parts) for parts in split.values()}) < len({*split.values()}):
            return separator, split  # both orders occur
        of_simple = {label: parts for label, parts in split.items() if simple.issuperset(parts)}
        needed = 1 if separator in ";|" else _COMPOUNDS_OF_COMMA
        if len(of_simple) >= needed:
            return separator, of_simple
        # Parts that are never alone, in several combinations and places; a path such as "animal|cat" has fixed places.
        if separator in ";|" and len(split) > 2 and _is_mixed([*split.values()], simple):
            return separator, split
    return "", {}


def _is_mixed(split: list[tuple[str, ...]], simple: set[Any]) -> bool:
    """Tell whether every part occurs in two labels or alone, and some part in two places."""
    labels: dict[str, int] = {}
    places: dict[str, set[int]] = {}
    for parts in split:
        for place, part in enumerate(parts):
            labels[part] = labels.get(part, 0) + 1
            places.setdefault(part, set()).add(place)
    return all(n > 1 or part in simple for part, n in labels.items()) and any(len(at) > 1 for at in places.values())


def looks_multilabel(data: Evidence) -> Iterator[Problem]:
    """Find cells with several labels."""
    separator, split = compound_labels(data.categories)
    codes = [code for code, label in enumerate(data.categories) if label in split]
    shares = data.category_shares(codes)
    if shares.most == 0:
        return
    names = [data.categories[code] for code in sorted(codes, key=lambda code: -data.votes[code])]
    how = "a list" if separator == "json" else f"separated by {separator!r}"
    orders: dict[frozenset[str], Label] = {}
    twice = [(orders[key], name) for name in names if orders.setdefault(key := frozenset(split[name]), name) != name]
    both = f" {shown(twice[0])} count as different categories." if twice else ""
    message = f"Some cells hold several labels, {how}: {shares}.{both}"
    examples = tuple(dict.fromkeys(map(repr, [*(twice[0] if twice else ()), *names][:3])))
    fix, options = "Split them with $multilabel=.", {"multilabel": separator}
    if separator == "json" and not all(map(_is_json, split)):
        fix, options = 'Write the lists as JSON, with double quotes: ["a", "b"]. Then pass $multilabel with json.', {}
    severity = "error" if shares.most >= _SMALL_SHARE else "warning"
    yield Problem("looks-multilabel", severity, message, examples, fix, data.concerned(shares), options=options)


def labels_not_in_votes(data: Evidence) -> Iterator[Problem]:
    """Find labelers with labels that nobody ever votes for: an error if most are."""
    voted = set(map(spelling, data.voted))
    _, split = compound_labels(data.categories)
    known = np.array(
        [spelling(label) in voted or label in split or spelling(label) in _MISSING for label in data.categories],
        np.bool_,
    )
    # Of many categories, votes that nobody shares may be for one that nobody else ever chooses: labels, too.
    patterns = data.counts.patterns
    lone = float(patterns.items[data.row[patterns.votes == 1]].sum())
    single = float((data.votes == 1).sum()) / max(lone, 1.0)
    for name in data.labelers:
        codes = np.where(data.totals > 0, data.codes(name), -1)
        labeled = codes >= 0
        strange = labeled & ~np.append(known, True)[codes]
        lost, n = data.items(strange), data.items(labeled)
        shared = np.bincount(data.row[patterns.code == codes[data.row]], minlength=len(patterns)) > 0
        if voted and 2 * lost > n:
            yield _strange_labels(data, name, codes, strange, lost, n)
        elif voted and lost >= max(_FEW_STRANGE, _STRANGE * n, _SIMILAR * single * data.items(labeled & ~shared)):
            number = data.labels(name) * ~known
            texts = [data.categories[code] for code in np.argsort(-number, kind="stable") if number[code]]
            message = f"On {lost:,} of {counted(n, 'item')}, the label of {name} is a category that nobody ever votes "
            message += f"for ({_few(texts)}): no vote can agree with it there."
            fix = "If annotators could not choose it, or use another name for it, replace it with $map."
            yield Problem("labels-not-in-votes", "warning", message, tuple(map(repr, texts[:3])), fix, (name,))


def votes_not_suggested(data: Evidence) -> Iterator[Problem]:
    """Find votes for categories that no labeler ever suggests, although labels like the votes would include them."""
    labels = sum((data.labels(name) for name in data.labelers), np.zeros(len(data.categories)))
    n, total = float(labels.sum()), float(data.votes.sum())
    if not n or not total or any(True for _ in labels_not_in_votes(data)):
        return
    known = {spelling(data.categories[code]) for code in np.flatnonzero(labels).tolist()} | _MISSING | _MAYBE_MISSING
    _, split = compound_labels(data.categories)
    apart = [
        code
        for code, label in enumerate(data.categories)
        if data.votes[code] * n >= _EXPECTED * total and not {label, spelling(label)} & {*known, *split}
    ]
    share = float(data.votes[apart].sum()) / total
    if share < _NOT_SUGGESTED:
        return
    names = [data.categories[code] for code in sorted(apart, key=lambda code: -data.votes[code])]
    message = f"{percent(share)} of the votes are for categories that no labeler ever suggests: {shown(names, 3)}."
    fix = (
        "If these are other words for categories, translate them with $map; if they are missing votes, pass $missing. "
    )
    fix += "If these rows belong to another task, leave them out. If labelers may ignore these categories, accept this "
    fix += "with $allow=."
    yield Problem("votes-not-suggested", "warning", message, tuple(map(repr, names[:3])), fix)


def _strange_labels(
    data: Evidence, name: str, codes: Integers, strange: npt.NDArray[np.bool_], lost: int, n: int
) -> Problem:
    """Return the problem of a labeler whose labels are codes, or of another column."""
    labels = sorted({*codes[strange].tolist()})
    texts = [data.categories[code] for code in labels]
    votes = data.voted[:3]
    numeric = [all(re.fullmatch("-?[0-9]+", str(text)) for text in side) for side in (texts, votes)]
    columns = () if data.table is None else data.table.roles.annotators
    counts = numeric[1] and len({*map(str, texts)} & {*columns}) > 1  # columns of categories hold no codes of these
    found, options = {} if counts else _translation(data, codes, labels), {}
    where = f"On {lost:,} of {counted(n, 'item')}, the label of {name} is a category that nobody ever votes for."
    if found or numeric[0] != numeric[1]:
        kinds = ("codes", "names") if numeric[0] and not numeric[1] else ("names", "codes")
        if numeric[0] == numeric[1]:
            kinds = ("codes", "other names")
        message = f"{where} Its labels are {kinds[0]} ({_few(texts)}), the votes are {kinds[1]} ({_few(votes)})."
        fix = f'Translate them with $map, such as "{texts[0]}={votes[0]}".'
        if numeric[1]:  # the votes may also be no codes
            fix = "If the votes are codes, translate the labels with $map. If they are numbers of votes, name their "
            fix += "columns with $counts."
        if found:
            fix = "This translation fits the votes best; check it, and pass it with $map=."
            options = {"map": comma_separated(f"{code}={vote}" for code, vote in found.items())}
    else:
        message = f"{where} The column holds something else ({_few(texts)}) than the votes ({_few(votes)})."
        fix = "Name the column of suggested labels with $suggested."
    if not found and (others := fitting_columns(data)):
        fix = f"Column {others[0]!r} holds labels like the votes: name it with $suggested=."
        options = {"suggested": comma_separated(others[:1])}
    return Problem("labels-not-in-votes", "error", message, tuple(map(repr, texts[:3])), fix, (name,), options=options)


def _few(values: Sequence[Any]) -> str:
    """Write up to three values, as they are in the data."""
    return ", ".join(map(str, values[:3])) + (", ..." if len(values) > 3 else "")


def _translation(data: Evidence, codes: Integers, labels: list[int]) -> dict[Label, Label]:
    """Return the most frequent vote for each code, if each stands out and no two codes share it; else nothing."""
    patterns, shares = data.counts.patterns, data.votes / data.votes.sum()
    found: dict[int, int] = {}
    for label in labels:
        rows = codes[data.row] == label
        weights = patterns.items[data.row[rows]] * patterns.votes[rows] / data.totals[data.row[rows]]
        votes = np.bincount(patterns.code[rows], weights=weights, minlength=len(shares))
        most, n = int(votes.argmax()), votes.sum()
        expected = n * shares[most]
        if votes[most] < n / 3 or votes[most] - expected < _Z * math.sqrt(max(expected * (1 - shares[most]), 0.25)):
            return {}
        found[label] = most
    if len({*found.values()}) < len(found) or len(found) < 2:
        return {}
    return {data.categories[label]: data.categories[vote] for label, vote in sorted(found.items())}


RULES: tuple[Rule, ...] = (labels_not_in_votes, category_variants, looks_missing, looks_multilabel)
RULES_OF_VOTES: tuple[Rule, ...] = (votes_not_suggested,)
