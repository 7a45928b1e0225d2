"""Rules about rows: tables without rows, headers and totals among rows, and rows that repeat others."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core.grouping import Encoded, group_rows
from dhkappa.core.items import ItemVotes
from dhkappa.errors import Problem, comma_separated, counted, shown
from dhkappa.inputs.problems import Evidence, Rule, first_values, spelling, unused_columns

_MOST_ROWS = 200_000  # that are compared
_MOST_IN_ORDER = 30_000  # of the first rows that are compared with sequences of others
_REPEATED = 0.02  # share of rows that repeat an id or a text
_FEW = 3
_LONG_TEXT = 12  # characters, on average
_DISTINCT = 0.3  # share of values of a column that can tell items apart
_NAMES_ITEMS = re.compile("(.*[ _.-])?(id|uid|uuid|key|url|uri|hash)", re.IGNORECASE)
_WINDOW = 20  # rows in a row
_WINDOW_KINDS = 8  # different rows among them
_SURE = 16.0  # natural logarithm of the odds against chance
_TIMES_KINDS = 20  # different rows that all occur a multiple of times
_TIMES_ITEMS, _TIMES_SPLIT = 20, 10  # items, and items with different votes, whose numbers have a common divisor
_FOOTERS = ("total", "totals", "grand total", "subtotal", "sum", "average", "mean", "median", "count")
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,]*%?")
_PAIRS = 10  # rows that occur twice
_PAIRS_Z = 4.0


def no_items(data: Evidence) -> Iterator[Problem]:
    """Find data without items."""
    if not data.counts.n_items:
        what = "The data have no items." if data.table is None else "The table has no rows."
        fix = "Check the file: it may have a header only, or be another one."
        yield Problem("no-items", "error", what, (), fix)


def header_repeated(data: Evidence) -> Iterator[Problem]:
    """Find votes that are the name of their own column: a header among the rows, as in files that were joined."""
    roles = None if data.table is None else data.table.roles
    names = set() if roles is None else {name for name in (roles.label, *roles.annotators) if name is not None}
    if found := [label for label in data.voted if label in names]:
        are = "is a vote, but also the name of its column" if len(found) == 1 else "are votes, but also column names"
        message = f"{shown(found, 3)} {are}: a header seems to be among the rows."
        fix, values = "Delete these rows, or read the value as missing with $missing=.", comma_separated(found)
        yield Problem(
            "header-repeated", "warning", message, tuple(map(repr, found[:3])), fix, choices={"missing": values}
        )


def footer_row(data: Evidence) -> Iterator[Problem]:
    """Find rows of a wide table that are called like a total, with numbers as votes that no other row has."""
    import narwhals.stable.v2 as nw

    from dhkappa.inputs.backends import kind_in

    table = data.table
    if table is None or not table.roles.annotators:
        return
    every = zip(map(spelling, data.categories), data.votes.tolist(), strict=True)
    few = _FEW * len(table.roles.annotators)  # votes of all footers
    items = {label: n for label, n in every if 0 < n <= few and _NUMBER.fullmatch(str(label))}
    if not items:  # as in nearly all tables: no query is needed
        return
    names = [word for plain in _FOOTERS for word in {plain, plain.title(), plain.capitalize(), plain.upper()}]
    votes = {f"vote_{place}": column for place, column in enumerate(table.roles.annotators)}
    found: list[str] = []
    for name in [table.roles.item] if table.roles.item else unused_columns(table, table.votes):
        frame, _ = table.votes.pick({"value": name, **votes})
        if kind_in(frame, "value") != "text":
            continue
        frame = frame.filter(nw.col("value").is_in([*names, *(f"{word}:" for word in names)]))
        rows = table.ask(table.votes.group(frame, ["value", *votes], nw.len().alias("n")))
        given = [[spelling(one) for one in row if one is not None] for row in zip(*map(rows.get, votes), strict=True)]
        times = Counter(vote for row in given for vote in row)
        for value, row in zip(rows["value"], given, strict=True):
            strange = [vote for vote in row if vote in items and items[vote] <= times[vote]]
            if 2 * len(strange) > len(row) and rows["value"].count(value) == 1:
                found.append(value)
    found = sorted({*found})  # engines return rows in any order
    if found:
        is_total = "The row" if len(found) == 1 else "The rows"
        count = "seems to be a footer, but counts as an item" if len(found) == 1 else "seem to be footers, but count"
        count += "" if len(found) == 1 else " as items"
        message = f"{is_total} {shown(found, 3)} {count}: no other row has these votes."
        fix = "Delete what is below the items. If these are items, accept this with $allow=."
        yield Problem("footer-row", "warning", message, tuple(map(repr, found[:3])), fix)


def repeated_rows(data: Evidence) -> Iterator[Problem]:
    """Find rows that repeat others, by a column that tells items apart, by their order, or by how many are equal."""
    votes, table = data.item_votes, data.table
    named = votes is None or votes.names is not None if table is None else table.roles.item or table.roles.label
    if votes is None or named or votes.find is not None or data.counts.n_items > _MOST_ROWS:
        return
    message = _by_column(data)
    kind = _kinds(votes) if message is None else None
    if kind is not None and len(kind):
        message = _in_order(kind[:_MOST_IN_ORDER]) or _by_number(np.bincount(kind))
    if message:
        fix = "Keep one row of each item. If rows are different items, accept this with $allow=."
        yield Problem("repeated-rows", "warning", f"{message} Repeated items are counted twice.", (), fix)


def multiplied_votes(data: Evidence) -> Iterator[Problem]:
    """Find numbers of votes that have a common divisor, such as those of a file in which every vote is there twice."""
    votes, patterns = data.item_votes, data.counts.patterns
    differ = np.diff(patterns.start) > 1
    if (votes is not None and votes.annotators is not None) or not patterns.votes.size:
        return
    times, n = int(np.gcd.reduce(patterns.votes)), data.items(data.totals > 0)
    if times > 1 and n >= _TIMES_ITEMS and data.items(differ) >= _TIMES_SPLIT:
        message = f"All numbers of votes of {counted(n, 'item')} are multiples of {times}: each vote seems to be there "
        message += f"{times} times. Agreement would be overestimated."
        fix = "Count each vote once. If the numbers are right, accept this with $allow=."
        yield Problem("repeated-rows", "warning", message, (), fix)


def _by_column(data: Evidence) -> str | None:
    """Compare rows with a column that tells items apart; None if there is none."""
    import narwhals.stable.v2 as nw

    table = data.table
    for name in [] if table is None else unused_columns(table, table.votes):
        values = first_values(table, table.votes, name)[0]
        texts = [value for value in values if isinstance(value, str)]
        long = bool(texts) and sum(map(len, texts)) >= _LONG_TEXT * len(values)
        if (long or _NAMES_ITEMS.fullmatch(name)) and len({*values}) >= max(_DISTINCT * len(values), 2):
            roles = table.roles
            columns = {f"vote_{place}": column for place, column in enumerate(roles.annotators or roles.counts)}
            frame, _ = table.votes.pick({"value": name, **columns, **roles.item_columns()})
            frame = frame.filter(~nw.col("value").is_null())
            repeats = table.repeats(frame, ["value", *columns, *roles.item_columns()])
            [found] = zip(*table.ask(repeats.select(nw.col("n").sum(), kinds=nw.len())).values(), strict=True)
            extra, n = int(found[0] or 0) - int(found[1] or 0), data.counts.n_items
            if extra < max(_FEW, _REPEATED * n):
                return ""
            return f"{extra:,} of {counted(n, 'row')} repeat another one: the same {name!r}, votes and labels."
    return None


def _kinds(votes: ItemVotes) -> npt.NDArray[Any] | None:
    """Return (n,) a number for each row that equal rows share; None if rows are not known."""
    if votes.group is not None:
        return votes.group
    if votes.length is not None or votes.items is not None:
        return None
    grid = votes.votes.values if votes.matrix is None else votes.matrix
    if votes.matrix is None:
        given = [
            (len(votes.votes.labels), Encoded(one, votes.votes.low, votes.votes.labels).digits()) for one in grid.T
        ]
    else:
        given = [(0, one) for one in grid.T]
    return group_rows([*given, *votes.columns.keys()])[1]


def _in_order(kind: npt.NDArray[Any]) -> str:
    """Return the rows that repeat a sequence of rows; empty if none do that are too unlikely by chance."""
    n, w = len(kind), _WINDOW
    if n < 2 * w:
        return ""
    surprise = -np.log(np.maximum(np.bincount(kind), 1) / n)  # some kinds may be in later rows only
    factor = np.random.default_rng(n).integers(1, 1 << 62, w, dtype=np.uint64)
    code = np.random.default_rng(w).integers(1, 1 << 62, int(kind.max()) + 1, dtype=np.uint64)[kind]
    window = np.zeros(n - w + 1, np.uint64)
    for place in range(w):
        window += factor[place] * code[place : n - w + 1 + place]
    _, first, group, count = np.unique(window, return_index=True, return_inverse=True, return_counts=True)
    again = np.flatnonzero((count[group] > 1) & (first[group] != np.arange(len(window))))
    covered = np.zeros(n, np.bool_)
    for start in again.tolist():
        if covered[start] and covered[start + w - 2]:  # the sequence goes on
            covered[start + w - 1] = True
            continue
        rows = np.unique(kind[start : start + w])
        if len(rows) >= _WINDOW_KINDS and surprise[rows].sum() > 2 * math.log(n) + _SURE:
            covered[start : start + w] = True
    if not covered.any():
        return ""
    return f"{counted(int(covered.sum()), 'row')} of {n:,} repeat a sequence of other rows: the same votes and labels."


def _by_number(times: npt.NDArray[np.int64]) -> str:
    """Return how many rows are equal, if these are too many pairs for different items; else empty.

    The numbers of rows that occur once, twice and three times, f1, f2 and f3, are expected to satisfy
    (2 f2)^2 <= f1 6 f3 whatever the probabilities of rows (Cauchy-Schwarz); rows that were copied once do not.
    """
    n, common = int(times.sum()), int(np.gcd.reduce(times))
    if common > 1 and len(times) >= _TIMES_KINDS:
        return f"Each of {n:,} rows occurs {common} times, or a multiple of it: the same votes and labels."
    once, twice, thrice = (int((times == k).sum()) for k in (1, 2, 3))
    if twice < _PAIRS:
        return ""
    excess = math.log(4 * twice**2 / (6 * (once + 1) * (thrice + 1)))
    if excess < _PAIRS_Z * math.sqrt(4 / twice + 1 / (once + 1) + 1 / (thrice + 1)):
        return ""
    message = f"{twice:,} combinations of votes and labels occur twice, but {once:,} once and {thrice:,} three times: "
    return f"{message}some of {n:,} rows may be copies."


RULES: tuple[Rule, ...] = (no_items, header_repeated, footer_row)
RULES_OF_VOTES: tuple[Rule, ...] = (repeated_rows, multiplied_votes)
