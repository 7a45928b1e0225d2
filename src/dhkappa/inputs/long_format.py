"""Tables with a vote a row: what is checked before votes are added up, and where they are set beside their items."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dhkappa.core.labels import Label
from dhkappa.core.patterns import MOST_VOTES
from dhkappa.errors import DataError, counted, shown
from dhkappa.inputs.backends.frame import Coding, alike, grouped, kind_of
from dhkappa.inputs.tables import Laid, whole_counts

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class LongVotes:
    """A table with a vote a row, ready to be added up.

    Attributes
    ----------
    frame : columns ``item``, ``label``, and those of the layout's other parts
    coding : how labels are written
    codings : how all columns with labels are written
    found : labels with the number of their votes
    """

    frame: nw.LazyFrame[Any]
    coding: Coding
    codings: dict[str, Coding]
    found: dict[Label, int]

    def valid(self) -> nw.Expr:
        """Return the number of votes that a row is: 0 where its label is missing."""
        import narwhals.stable.v2 as nw

        if not self.found:
            return nw.lit(0, nw.Int64)
        known = nw.col("label").is_in([self.coding.value(label) for label in self.found])
        one = nw.col("count") if "count" in self.frame.collect_schema().names() else nw.lit(1, nw.Int64)
        return nw.when(known).then(one).otherwise(nw.lit(0, nw.Int64))


def long_votes(laid: Laid, missing: Collection[Label]) -> LongVotes:
    """Pick the columns of a long layout, check counts, items and annotators, and find the labels."""
    import narwhals.stable.v2 as nw

    layout = laid.layout
    if laid.items is not None:
        check_listed(laid)
    own = {"item": layout.item, "label": layout.label, "annotator": layout.annotator, "count": layout.count}
    parts = {part: name for part, name in own.items() if name is not None}
    beside = {} if laid.items is not None else layout.beside()
    labels = ["label", *(laid.side_labels if beside else [])]
    choose = layout.annotator is not None and layout.duplicates != "error"
    if choose and not laid.votes.ordered:
        raise DataError(
            f"duplicates={layout.duplicates!r} needs an order of rows, which a table of {laid.votes.engine} has not: "
            "keep one vote of an annotator on an item with a query of your own first."
        )
    frame, codings = laid.votes.pick(parts | beside, labels, numbered=choose)
    frame = _named(laid, frame)
    if layout.count is not None:
        different = laid.asked(frame.select("count").unique())["count"]
        whole_counts(different, layout.count)
        frame = frame.with_columns(count=nw.col("count").cast(nw.Int64))
    blank = [part for part in laid.side_labels if part in codings and codings[part].kind == "text"]
    blank += ["annotator"] if layout.annotator is not None and kind_of(frame, "annotator") == "text" else []
    if blank:  # empty text and null are one
        frame = frame.with_columns(*(_or_null(part).alias(part) for part in blank))
    number = nw.col("count").sum() if layout.count is not None else nw.len()
    blank_item = nw.col("item").is_null()
    if kind_of(frame, "item") == "text":
        blank_item = blank_item | (nw.col("item") == "")
    nameless = nw.when(blank_item).then(nw.lit(1)).otherwise(nw.lit(0))
    by_label = grouped(frame.with_columns(nameless=nameless), ["label"], number.alias("n"), nw.col("nameless").sum())
    found = laid.asked(by_label)
    if sum(map(int, found["nameless"])):
        raise DataError(
            f"column {layout.item!r} names no item in {counted(sum(map(int, found['nameless'])), 'row')}: say which "
            "item each vote is on, or leave out these rows."
        )
    votes: dict[Label, int] = {}
    for label, number_of_votes in zip(codings["label"].labels(found["label"]), found["n"], strict=True):
        if label is not None and label not in missing:
            votes[label] = votes.get(label, 0) + int(number_of_votes)
    votes = {label: n for label, n in votes.items() if n}
    picked = LongVotes(frame, codings["label"], codings, votes)
    if layout.annotator is None:
        return picked
    signed = ~nw.col("annotator").is_null() & (picked.valid() > 0)
    if choose:
        kept = frame.filter(signed).unique(
            ["item", "annotator"], keep="first" if layout.duplicates == "first" else "last", order_by=["order"]
        )
        picked = replace(picked, frame=nw.concat([kept, frame.filter(~signed)]))
        return replace(picked, found=_recount(laid, picked))
    twice = grouped(
        alike(frame.filter(signed), ["item", "annotator"]), ["item", "annotator"], nw.len().alias("n")
    ).filter(nw.col("n") > 1)
    few = laid.asked(twice.sort("item", "annotator").head(_EXAMPLES))
    if few["n"]:
        pairs = ", ".join(f"{who!r} on item {item!r}" for item, who in zip(few["item"], few["annotator"], strict=True))
        raise DataError(
            f"an annotator has several votes on one item, such as {pairs}: pass duplicates='first' or 'last' to choose "
            "one, or mend the data."
        )
    return picked


def _or_null(part: str) -> nw.Expr:
    """Return a column of text with null for empty text."""
    import narwhals.stable.v2 as nw

    return nw.when(nw.col(part) != "").then(nw.col(part))


def _recount(laid: Laid, votes: LongVotes) -> dict[Label, int]:
    """Count the votes for each label anew."""
    import narwhals.stable.v2 as nw

    found = laid.asked(grouped(votes.frame, ["label"], nw.len().alias("n")))
    labels = votes.coding.labels(found["label"])
    return {label: n for label, n in zip(labels, map(int, found["n"]), strict=True) if label in votes.found}


def most_votes(laid: Laid, votes: LongVotes) -> int:
    """Return the most votes that an item has."""
    import narwhals.stable.v2 as nw

    each = grouped(votes.frame.with_columns(n=votes.valid()), ["item"], nw.col("n").sum())
    most = int(laid.asked(each.select(nw.col("n").max()))["n"][0] or 0)
    if most > MOST_VOTES:
        raise DataError(f"an item has {most:,} votes: {MOST_VOTES:,} at the most, please.")
    return most


def check_sides(laid: Laid, votes: LongVotes, pairs: int | None) -> None:
    """Refuse an item with two suggested labels, weights or strata.

    ``pairs`` of an item and what is beside it are known where items have been grouped by both.
    """
    import narwhals.stable.v2 as nw

    if laid.items is not None or not laid.beside:
        return
    different = votes.frame.select("item", *laid.beside).unique()
    if pairs is None:
        pairs = _rows(laid, different)
    if pairs == _rows(laid, votes.frame.select("item").unique()):
        return
    twice = grouped(different, ["item"], nw.len().alias("n")).filter(nw.col("n") > 1).sort("item").head(1)
    item = laid.asked(twice)["item"][0]
    rows = laid.asked(different.filter(nw.col("item") == nw.lit(item)))
    for part, name in laid.layout.beside().items():
        values = rows[part] if part not in votes.codings else votes.codings[part].labels(rows[part])
        if len(set(values)) > 1:
            raise DataError(
                f"column {name!r} has several values for one item, such as {shown(sorted(set(values), key=str))} for "
                f"item {item!r}: an item has one, the same in all its rows."
            )


def _rows(laid: Laid, frame: nw.LazyFrame[Any]) -> int:
    import narwhals.stable.v2 as nw

    return int(laid.asked(frame.select(nw.len().alias("n")))["n"][0])


def check_unlisted(laid: Laid, votes: LongVotes) -> None:
    """Refuse votes on items that the table of items lacks."""
    import narwhals.stable.v2 as nw

    if laid.items is None or laid.layout.unlisted != "error":
        return
    listed, _ = pick_items(laid)
    strange = votes.frame.with_columns(n=votes.valid()).filter(nw.col("n") > 0)
    strange = strange.join(listed.select("item"), on="item", how="anti")
    few = laid.asked(strange.select("item").unique().sort("item").head(_EXAMPLES))["item"]
    if few:
        n = int(laid.asked(strange.select(nw.col("n").sum()))["n"][0])
        other = ", or pass unlisted='unlabeled' to take them as items without a suggested label"
        raise DataError(
            f"{counted(n, 'vote')} {'is' if n == 1 else 'are'} on items that the items table lacks, such as "
            f"{shown(few)}: add them there{'' if laid.votes.kind == 'DASK' else other}."
        )


def pick_items(laid: Laid) -> tuple[nw.LazyFrame[Any], dict[str, Coding]]:
    """Pick the columns of the table of items."""
    assert laid.items is not None
    assert laid.layout.item is not None
    frame, codings = laid.items.pick({"item": laid.layout.item} | laid.layout.beside(), laid.side_labels)
    return _named(laid, frame), codings


def _named(laid: Laid, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Write the names of items so that both tables write them alike."""
    import narwhals.stable.v2 as nw

    other = {"text": nw.String(), "float": nw.Float64(), "integer": nw.Int64()}.get(laid.names_as)
    if other is None or kind_of(frame, "item") == laid.names_as != "integer":
        return frame
    return frame.with_columns(item=nw.col("item").cast(other))


def check_listed(laid: Laid) -> None:
    """Refuse a table of items that lists one twice, or has one without a name."""
    import narwhals.stable.v2 as nw

    assert laid.items is not None
    listed, _ = pick_items(laid)
    few = laid.asked(
        grouped(listed, ["item"], nw.len().alias("n")).filter((nw.col("n") > 1) | nw.col("item").is_null()).head(100)
    )
    if None in few["item"]:
        raise DataError(f"column {laid.layout.item!r} of items has rows without a name: name every item.")
    if few["n"]:
        raise DataError(
            f"items lists {shown(sorted(few['item'])[:_EXAMPLES])} more than once: one row for each item, please."
        )


def beside_items(
    laid: Laid, of_items: nw.LazyFrame[Any], numbers: Sequence[str]
) -> tuple[nw.LazyFrame[Any], dict[str, Coding]]:
    """Set the votes on each item beside its row in the table of items."""
    import narwhals.stable.v2 as nw

    listed, codings = pick_items(laid)
    each = listed.join(of_items, on="item", how="left")
    each = each.with_columns(*(nw.col(name).fill_null(0) for name in numbers))
    if laid.layout.unlisted == "unlabeled":
        schema = listed.collect_schema()
        if laid.votes.kind == "DASK":
            raise DataError(
                "unlisted='unlabeled' is not there for tables of Dask, whose columns cannot all be missing: add the "
                "items to the items table, without a label."
            )
        coded = [part for part, coding in codings.items() if coding.values is not None]
        absent = [
            (nw.lit(-1, nw.Int64) if part in coded else nw.lit(None).cast(schema[part])).alias(part)
            for part in laid.beside
        ]
        others = of_items.join(listed.select("item"), on="item", how="anti").with_columns(*absent)
        columns = ["item", *laid.beside, *numbers]
        each = nw.concat([each.select(*columns), others.select(*columns)])
    return each, codings
