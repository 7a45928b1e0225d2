"""Tables for people who review items: what the votes say in a few words, and empty columns to fill in."""

from __future__ import annotations

from typing import Any

from dhkappa.core.shown_columns import free_names
from dhkappa.inputs.excel import cell_text
from dhkappa.table import Table

FILLED = ("new_label", "comment")  # columns of a sheet that reviewers fill in
ASKED = ("label", "annotator")  # columns of a list of items to vote on
TEXT = ("item", "suggested", "majority", *FILLED, *ASKED)  # columns that are text in Excel
_DETAILS = ("tie", "majority_share", "differential", "contribution", "influence", "kappa_without")
_DECIMALS = 2


def review_sheet(queue: Table, *, details: bool = False) -> Table:
    """Return the file for reviewers of a queue of ``Audit.review``, with empty columns to fill in.

    Columns that are shown next to items, such as their text, stay behind ``item``; one that is named like a column of
    the sheet gets the prefix ``item_``. ``details`` adds the statistical columns at the end.
    """
    rows = queue.to_dicts()
    own: dict[str, list[Any]] = {name: queue.column(name) for name in ("suggested", "votes", "n_votes", "majority")}
    own |= {"agreement": queue.column("suggested_share"), "why": [*map(_why, rows)]}
    own |= {name: [None] * len(rows) for name in FILLED}
    own |= {name: queue.column(name) for name in _DETAILS if details}
    return _rounded(_behind_item(queue, own))


def next_sheet(found: Table) -> Table:
    """Return the list for annotators of a table of ``Audit.next_votes``: without what would lead them."""
    own: dict[str, list[Any]] = {name: found.column(name) for name in ("n_votes", "votes", "reason")}
    return _behind_item(found, own | {name: [None] * len(found) for name in ASKED})


def _behind_item(table: Table, own: dict[str, list[Any]]) -> Table:
    """Return the item as it is matched later, the columns that are shown next to it, and those of a sheet."""
    used = ("item", *own, *FILLED, *ASKED)  # names with a meaning when the file is merged
    shown = dict(zip(free_names(table.shown, used), map(table.column, table.shown), strict=True))
    columns = {"item": [*map(cell_text, table.column("item"))], **shown, **own}
    return Table(columns, title=table.title, shown=tuple(shown))


def _rounded(table: Table) -> Table:
    """Return a table with two decimals."""
    columns = {name: [*map(_decimals, table.column(name))] for name in table.names}
    return Table(columns, title=table.title, shown=table.shown)


def _decimals(value: Any) -> Any:
    return round(value, _DECIMALS) + 0.0 if isinstance(value, float) else value  # not -0.0


def _why(row: dict[str, Any]) -> str:
    """Say how the votes stand to the suggested label."""
    n = row["n_votes"]
    most, on_label = round(row["majority_share"] * n), round(row["suggested_share"] * n)
    if row["tie"]:
        return f"votes split: {on_label} of {n} for the label"
    if row["majority"] != row["suggested"]:
        return f"{'all' if most == n else most} {'' if most == n else 'of '}{n} votes for {str(row['majority'])!r}"
    return f"all {n} votes for the label" if most == n else f"{most} of {n} votes for the label"
