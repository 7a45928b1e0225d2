"""Joins of votes and items: types of ids that can be compared, and why ids of the two tables do not match."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import narwhals.stable.v2 as nw

from dhkappa.core.labels import name_key
from dhkappa.errors import DataError, counted, shown
from dhkappa.inputs.backends import Query
from dhkappa.inputs.tables import EXAMPLES, LongTable, VoteTable, mixed_zones, pick_items

_COMPARED = 10_000  # ids of each table that are compared
_TRIED, _LONGEST = 1_000, 200  # ids of which beginnings and ends are compared, and their characters
_SPACES = re.compile(r"[\s\u200b\u200c\u200d\u2060\ufeff]+")
_ZEROS = re.compile("(?<![0-9])0+(?=[0-9])")
_DECIMALS = re.compile(r"^([+-]?[0-9]+)\.0*$")
_LOOSE = "case, blanks and Unicode forms are ignored"


def _loose(name: Any) -> str:
    return _SPACES.sub("", unicodedata.normalize("NFKC", str(name))).casefold()


# What would make ids match, the least change first.
_CHANGES: Mapping[str, Callable[[Any], str]] = {
    "blanks are ignored": lambda name: _SPACES.sub("", str(name)),
    "case is ignored": lambda name: str(name).casefold(),
    "Unicode forms are unified (NFKC)": lambda name: unicodedata.normalize("NFKC", str(name)),
    "leading zeros are removed": lambda name: _ZEROS.sub("", str(name)),
    "whole numbers are written without decimals": lambda name: _DECIMALS.sub(r"\1", str(name)),
    _LOOSE: _loose,
    f"{_LOOSE}, and leading zeros removed": lambda name: _ZEROS.sub("", _loose(name)),
}


def diagnose_ids(left: Iterable[Any], right: Iterable[Any]) -> str:
    """Say which change would make ids of one table match those of another, with up to three pairs; empty if none does.

    Ids that are equal in both are left out. Case, blanks, Unicode forms, leading zeros, decimals of whole numbers,
    numbers against text, and a common beginning or end, such as the folder or the type of a file, are tried.

    Examples
    --------
    >>> diagnose_ids(["t-1", "t-2"], ["T-1", "T-2", "T-3"])
    "They match if case is ignored: 't-1' and 'T-1', 't-2' and 'T-2'."
    """
    one, other = set(left), set(right)
    mine, theirs = ([name for name in names if name is not None] for names in (one - other, other - one))
    best, pairs = "all are written as text", _pairs(mine, theirs, str)
    for change, rule in _CHANGES.items():
        found = _pairs(mine, theirs, rule)
        if len(found) > len(pairs):
            best, pairs = change, found
    least = max(1, min(len(mine), len(theirs)) // 2)  # a few ids may have a part in common by chance
    for affix, remove in _affixes(mine, theirs):
        found = _pairs(mine, theirs, partial(remove, affix))
        if len(found) > len(pairs) and len(found) >= least:
            place = "beginning" if remove is _without_start else "end"
            best, pairs = f"the {place} {shown([affix])} is removed", found
    if not pairs:
        return ""
    few = ", ".join(f"{shown([name])} and {shown([match])}" for name, match in pairs[:EXAMPLES])
    who = "They" if len(pairs) == len(mine) else f"{len(pairs):,} of {len(mine):,}"
    return f"{who} match if {best}: {few}{', ...' if len(pairs) > EXAMPLES else ''}."


_BLANKS = r'.str.replace(r"\s+", "", regex=True)'
_WITHOUT_ZEROS = r'.str.replace(r"(?<![0-9])0+(?=[0-9])", "", regex=True)'
_WITHOUT_CASE = f'.str.normalize("NFKC").str.lower(){_BLANKS}'
_PANDAS = {  # how to change a column in pandas, for each change
    "all are written as text": "",
    "blanks are ignored": _BLANKS,
    "case is ignored": ".str.lower()",
    "Unicode forms are unified (NFKC)": '.str.normalize("NFKC")',
    "leading zeros are removed": _WITHOUT_ZEROS,
    "whole numbers are written without decimals": r'.str.replace(r"\.0*\Z", "", regex=True)',
    _LOOSE: _WITHOUT_CASE,
    f"{_LOOSE}, and leading zeros removed": f"{_WITHOUT_CASE}{_WITHOUT_ZEROS}",
}
_SHEET = {"blanks are ignored": '=SUBSTITUTE(A2," ","")', "case is ignored": "=LOWER(A2)"}  # the same in a spreadsheet
_AFFIX = re.compile("match if the (beginning|end) ('(?:[^'\\\\]|\\\\.)*') is removed: ")


def _in_pandas(why: str, column: str) -> str:
    """Return the line of pandas that makes the change of a diagnosis; empty if there is none."""
    change = next((how for change, how in _PANDAS.items() if f" match if {change}: " in why), None)
    if affix := _AFFIX.search(why):
        change = f".str.remove{'prefix' if affix[1] == 'beginning' else 'suffix'}({affix[2]})"
    return "" if change is None else f"df[{column!r}] = df[{column!r}].astype(str){change}"


def _in_spreadsheet(why: str) -> str:
    """Return the formula that makes the change of a diagnosis, as a clause; empty if there is none."""
    formula = next((how for change, how in _SHEET.items() if f" match if {change}: " in why), None)
    return f" (in a spreadsheet: {formula} in a new column, if the ids are in column A)" if formula else ""


def _pairs(left: Iterable[Any], right: Iterable[Any], rule: Callable[[Any], str]) -> list[tuple[Any, Any]]:
    """Return the pairs of ids that a rule makes equal, without those that have several partners."""
    partner: dict[str, list[Any]] = {}
    for name in right:
        partner.setdefault(rule(name), []).append(name)
    found = ((name, partner.get(rule(name), [])) for name in sorted(left, key=name_key))
    return [(name, same[0]) for name, same in found if len(same) == 1]


def _without_start(affix: str, name: Any) -> str:
    return str(name).removeprefix(affix)


def _without_end(affix: str, name: Any) -> str:
    return str(name).removesuffix(affix)


def _affixes(left: Sequence[Any], right: Sequence[Any]) -> Iterator[tuple[str, Callable[[str, Any], str]]]:
    """Yield the most frequent beginning and end by which ids of one table are longer than those of the other."""
    for longer, shorter in ((left, right), (right, left)):
        known = set(map(str, shorter))
        texts = [text for text in map(str, longer[:_TRIED]) if len(text) <= _LONGEST]
        cuts = [(text[:cut], text[cut:]) for text in texts for cut in range(1, len(text))]
        starts = Counter(start for start, end in cuts if end in known)
        ends = Counter(end for start, end in cuts if start in known)
        for found, remove in ((starts, _without_start), (ends, _without_end)):
            # Digits alone: other numbers rather than longer ones.
            yield from ((affix, remove) for affix, _ in found.most_common(1) if not affix.isdecimal())


def check_unlisted(table: VoteTable, long: LongTable) -> None:
    """Refuse votes on items that the items table lacks; if these are allowed, only if no item is in both tables."""
    if table.items is None:
        return
    listed, _ = pick_items(table)
    voted = long.frame.with_columns(n=long.votes_in_row()).filter(nw.col("n") > 0)
    unlisted = voted.join(listed.select("item"), on="item", how="anti")
    found, known = (_first_ids(table, ids) for ids in (unlisted, listed))
    if not found:
        return
    n = int(table.ask(unlisted.select(nw.col("n").sum()))["n"][0])
    none = n == sum(long.label_counts.values())
    if not none and table.roles.unlisted != "error":
        return
    if not known and (table.items.is_filtered or table.items.rows is not None):
        message = f"The filters leave no item of {table.items.name}, only votes on items that it lacks."
        raise DataError(message, code="nothing-left", parameter="where", hint="Check their values.")
    zones = [{name.tzinfo is None for name in ids if isinstance(name, datetime)} for ids in (found, known)]
    if zones in ([{True}, {False}], [{False}, {True}]):  # in columns of Python objects, whose type does not tell
        raise mixed_zones(table, aware_votes=zones[0] == {False})
    votes, items = table.votes, table.items
    examples = f"{votes.name}: {shown(found[:EXAMPLES])}; {items.name}: {shown(known[:EXAMPLES]) or 'none'}"
    why = diagnose_ids(found, known)
    if none:
        message = f"No vote is on an item of {items.name} ({examples})."
    else:
        message = f"{counted(n, 'vote')} {'is' if n == 1 else 'are'} on items that {items.name} lacks ({examples})."
    if none or why:
        line = _in_pandas(why, str(table.roles.item))
        hint = f"{why} Write the ids in column {table.roles.item!r} alike in both tables, and save both".strip()
        hint += _in_spreadsheet(why)
        hint += f", in pandas: {line}" if line else "."
        raise DataError(message, code="ids-not-joined", parameter="items", hint=hint)
    other = ", or pass $unlisted with 'unlabeled' to count them as items without a suggested label"
    hint = f"Add them{other if votes.joins_unlisted else ''}."
    raise DataError(message, code="ids-not-joined", parameter="items", hint=hint)


def _first_ids(table: VoteTable, frame: Query) -> list[Any]:
    return table.ask(frame.select("item").unique().sort("item").head(_COMPARED))["item"]
