"""Long format, one row per vote: check the table once, count labels, join votes with the items table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw

from dhkappa.core import Label
from dhkappa.core.grouping import MAX_VOTES
from dhkappa.errors import DataError, counted, shown
from dhkappa.inputs.backends import Coding, kind_in
from dhkappa.inputs.tables import VoteTable, whole_counts

_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class LongTable:
    """A checked table in long format.

    Attributes
    ----------
    frame : columns ``item``, ``label``, and those of other roles
    codings : coding of the columns with labels, by role
    label_counts : number of votes for each label
    n_rows : number of rows, of which some may have no valid vote
    """

    frame: nw.LazyFrame[Any]
    codings: dict[str, Coding]
    label_counts: dict[Label, int]
    n_rows: int

    def votes_in_row(self) -> nw.Expr:
        """Return the number of votes that a row stands for; 0 if its label is missing."""
        if not self.label_counts:
            return nw.lit(0, nw.Int64)
        known = nw.col("label").is_in([self.codings["label"].value(label) for label in self.label_counts])
        one = nw.col("count") if "count" in self.frame.collect_schema().names() else nw.lit(1, nw.Int64)
        return nw.when(known).then(one).otherwise(nw.lit(0, nw.Int64))


def long_table(table: VoteTable, missing: Collection[Label]) -> LongTable:
    """Check items, annotators and counts of a table in long format, and count its labels; once for each table."""
    key = ("long", frozenset(missing))
    if key not in table.cache:
        if table.items is not None:
            _check_items(table)
        table.cache[key] = _check_duplicates(table, _count_labels(table, missing))
    found: LongTable = table.cache[key]
    return found


def _count_labels(table: VoteTable, missing: Collection[Label]) -> LongTable:
    """Pick the columns, and count rows and votes for each label."""
    roles = table.roles
    own = {"item": roles.item, "label": roles.label, "annotator": roles.annotator, "count": roles.count}
    columns = {role: name for role, name in own.items() if name is not None}
    columns |= {} if table.items is not None else roles.item_columns()
    labels = [role for role in ("label", *table.label_roles) if role in columns]
    choose = roles.annotator is not None and roles.duplicates != "error"
    if choose and not table.votes.has_row_order:
        raise DataError(
            f"duplicates={roles.duplicates!r} needs an order of rows, which a table of {table.votes.engine} lacks.",
            code="no-row-order",
            parameter="duplicates",
            hint="Keep one vote per annotator and item with your own query.",
        )
    frame, codings = table.votes.pick(columns, labels, row_number=choose)
    frame = _cast_items(table, frame)
    if roles.count is not None:
        whole_counts(table.ask(frame.select("count").unique())["count"], roles.count, "count")
        frame = frame.with_columns(count=nw.col("count").cast(nw.Int64))
    texts = [role for role in labels[1:] if codings[role].kind == "text"]
    texts += ["annotator"] if roles.annotator is not None and kind_in(frame, "annotator") == "text" else []
    if texts:  # empty text and null are one
        frame = frame.with_columns(*(nw.when(nw.col(role) != "").then(nw.col(role)).alias(role) for role in texts))
    unnamed = nw.col("item").is_null()
    if kind_in(frame, "item") == "text":
        unnamed = unnamed | (nw.col("item") == "")
    flagged = frame.with_columns(unnamed=nw.when(unnamed).then(nw.lit(1)).otherwise(nw.lit(0)))
    totals = [nw.len().alias("rows"), nw.col("unnamed").sum()]
    totals += [nw.col("count").sum().alias("votes")] if roles.count is not None else []
    found = table.ask(table.votes.group(flagged, ["label"], *totals))
    if any(found["unnamed"]):
        message = f"Column {roles.item!r} has no item in {counted(sum(map(int, found['unnamed'])), 'row')}."
        hint = "Name the item of each vote, or remove these rows."
        raise DataError(message, code="missing-item", parameter="item", hint=hint)
    counts: dict[Label, int] = {}
    for label, n in zip(
        codings["label"].labels(found["label"]), map(int, found.get("votes", found["rows"])), strict=True
    ):
        if label is not None and label not in missing and n:
            counts[label] = counts.get(label, 0) + n
    return LongTable(frame, codings, counts, sum(map(int, found["rows"])))


def _check_duplicates(table: VoteTable, long: LongTable) -> LongTable:
    """Keep the first or last vote of an annotator on an item, or refuse several."""
    roles, frame, pair = table.roles, long.frame, ["item", "annotator"]
    if roles.annotator is None:
        return long
    signed = ~nw.col("annotator").is_null() & (long.votes_in_row() > 0)
    if roles.duplicates != "error":
        keep: Any = roles.duplicates
        kept = frame.filter(signed).unique(pair, keep=keep, order_by=["order"])
        frame = nw.concat([kept, frame.filter(~signed)])
        found = table.ask(table.votes.group(frame, ["label"], nw.len().alias("n")))
        by_label = zip(long.codings["label"].labels(found["label"]), map(int, found["n"]), strict=True)
        counts = {label: n for label, n in by_label if label is not None and label in long.label_counts}
        return replace(long, frame=frame, label_counts=counts)
    repeated = table.votes.repeated(frame.filter(signed), pair)
    twice = table.votes.group(repeated, pair, nw.len().alias("n")).filter(nw.col("n") > 1)
    few = table.ask(twice.sort(*pair).head(_EXAMPLES))
    if few["n"]:
        pairs = ", ".join(f"{who!r} on item {item!r}" for item, who in zip(few["item"], few["annotator"], strict=True))
        message = f"An annotator has several votes on one item: {pairs}."
        hint = "Pass $duplicates with 'first' or 'last' to choose one, or correct the data."
        raise DataError(message, code="duplicate-votes", parameter="duplicates", hint=hint)
    return long


def most_votes(table: VoteTable, long: LongTable) -> int:
    """Return the largest number of votes on an item."""
    each = table.votes.group(long.frame.with_columns(n=long.votes_in_row()), ["item"], nw.col("n").sum())
    most = int(table.ask(each.select(nw.col("n").max()))["n"][0] or 0)
    if most > MAX_VOTES:
        raise DataError(f"An item has {most:,} votes. The limit is {MAX_VOTES:,}.", code="too-many-votes")
    return most


def check_item_columns(table: VoteTable, long: LongTable, pairs: int | None) -> None:
    """Refuse an item with two suggested labels, weights or strata.

    ``pairs`` is the number of different (item, item columns), if known.
    """
    if table.items is not None or not table.item_roles:
        return

    def rows(frame: nw.LazyFrame[Any]) -> int:
        return int(table.ask(frame.select(nw.len().alias("n")))["n"][0])

    different = long.frame.select("item", *table.item_roles).unique()
    if (rows(different) if pairs is None else pairs) == rows(long.frame.select("item").unique()):
        return
    twice = table.votes.group(different, ["item"], nw.len().alias("n")).filter(nw.col("n") > 1).sort("item").head(1)
    item = table.ask(twice)["item"][0]
    found = table.ask(different.filter(nw.col("item") == nw.lit(item)))
    for role, name in table.roles.item_columns().items():
        values = set(found[role] if role not in long.codings else long.codings[role].labels(found[role]))
        if len(values) > 1:
            message = f"Column {name!r} has several values for item {item!r}: {shown(sorted(values, key=str))}."
            hint = "Write the same value in all rows of an item."
            raise DataError(message, code="item-column-varies", parameter=role.rstrip("_0123456789"), hint=hint)


def check_unlisted(table: VoteTable, long: LongTable) -> None:
    """Refuse votes on items that the items table lacks."""
    if table.items is None or table.roles.unlisted != "error":
        return
    listed, _ = pick_items(table)
    unlisted = long.frame.with_columns(n=long.votes_in_row()).filter(nw.col("n") > 0)
    unlisted = unlisted.join(listed.select("item"), on="item", how="anti")
    few = table.ask(unlisted.select("item").unique().sort("item").head(_EXAMPLES))["item"]
    if few:
        n = int(table.ask(unlisted.select(nw.col("n").sum()))["n"][0])
        other = ", or pass $unlisted with 'unlabeled' to count them as items without a suggested label"
        message = f"{counted(n, 'vote')} {'is' if n == 1 else 'are'} on items that the items table lacks: {shown(few)}."
        hint = f"Add them{other if table.votes.joins_unlisted else ''}."
        raise DataError(message, code="unlisted-items", parameter="items", hint=hint)


def pick_items(table: VoteTable) -> tuple[nw.LazyFrame[Any], dict[str, Coding]]:
    """Pick the columns of the items table."""
    assert table.items is not None
    assert table.roles.item is not None
    columns = {"item": table.roles.item} | table.roles.item_columns()
    frame, codings = table.items.pick(columns, table.label_roles)
    return _cast_items(table, frame), codings


def _cast_items(table: VoteTable, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Cast item names so that both tables have the same type."""
    target = {"text": nw.String(), "float": nw.Float64(), "integer": nw.Int64()}.get(table.item_type)
    if target is None or kind_in(frame, "item") == table.item_type != "integer":
        return frame
    return frame.with_columns(item=nw.col("item").cast(target))


def _check_items(table: VoteTable) -> None:
    """Refuse an items table with an item twice, or without a name."""
    listed, _ = pick_items(table)
    wrong = (nw.col("n") > 1) | nw.col("item").is_null()
    few = table.ask(table.votes.group(listed, ["item"], nw.len().alias("n")).filter(wrong).head(100))
    if None in few["item"]:
        message = f"Column {table.roles.item!r} of the items table has rows without a name."
        raise DataError(message, code="missing-item", parameter="items", hint="Name every item.")
    if few["n"]:
        message = f"The items table has several rows for {shown(sorted(few['item'])[:_EXAMPLES])}."
        raise DataError(message, code="duplicate-items", parameter="items", hint="Keep one row per item.")


def join_items(
    table: VoteTable, by_item: nw.LazyFrame[Any], numbers: Sequence[str]
) -> tuple[nw.LazyFrame[Any], dict[str, Coding]]:
    """Join the votes of each item with its row of the items table."""
    listed, codings = pick_items(table)
    each = listed.join(by_item, on="item", how="left")
    each = each.with_columns(*(nw.col(name).fill_null(0) for name in numbers))
    if table.roles.unlisted == "unlabeled":
        if not table.votes.joins_unlisted:
            message = f"unlisted='unlabeled' is not supported for tables of {table.votes.engine}."
            hint = "Add the items to the items table, without a label."
            raise DataError(message, code="engine-not-supported", parameter="unlisted", hint=hint)
        schema = listed.collect_schema()
        coded = [role for role, coding in codings.items() if coding.values is not None]
        absent = [
            (nw.lit(-1, nw.Int64) if role in coded else nw.lit(None).cast(schema[role])).alias(role)
            for role in table.item_roles
        ]
        others = by_item.join(listed.select("item"), on="item", how="anti").with_columns(*absent)
        columns = ["item", *table.item_roles, *numbers]
        each = nw.concat([each.select(*columns), others.select(*columns)])
    return each, codings
