"""How annotators would label a whole pool: a table by category, and the number of wrong labels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dhkappa.core import Label
from dhkappa.stats.intervals import written
from dhkappa.stats.notes import Note
from dhkappa.stats.sample import Excluded
from dhkappa.table import Display, Table, plain


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PoolShares(Display):
    """How annotators would label a whole pool: the share of each category, and how many suggested labels are wrong.

    Attributes
    ----------
    table : one row per category. ``share`` is the share of the votes that it would have if annotators voted on the
        whole pool, with limits ``low`` and ``high`` and standard error ``se``; ``count`` is the same as a number of
        items. ``pool`` and ``items`` are the numbers of items of the pool and of the sample with this suggested label.
        ``wrong`` is how many of these labels an annotator drawn at random would not give, with limits ``wrong_low`` and
        ``wrong_high``. ``gain`` is how many times as many items would be needed without the labels of the pool, and
        ``reason`` says why values are NaN
    wrong, wrong_low, wrong_high : number of wrong labels in the whole pool, with limits. The limits are not the sums of
        those of the rows
    annotator_wrong : how many labels would be wrong if a typical annotator had given them; NaN if no item has two votes
    pool_items : number of items of the pool with a suggested label
    n_items, n_votes : number of items and votes of the sample
    merged : labels with fewer than 5 sampled items, and others that were merged with them
    sampled_by_label : whether the sample was drawn from each suggested label separately, else from the whole pool
    finite_pool : whether standard errors are those for the items of this pool alone
    confidence_level : confidence level of the limits
    excluded : numbers of items of the sample that were excluded
    notes : what to know about the results
    """

    table: Table
    wrong: float
    wrong_low: float
    wrong_high: float
    annotator_wrong: float
    pool_items: int
    n_items: int
    n_votes: int
    merged: tuple[Label, ...]
    sampled_by_label: bool
    finite_pool: bool
    confidence_level: float
    excluded: Excluded
    notes: tuple[Note, ...]

    @property
    def wrong_share(self) -> float:
        """Share of the labels of the pool that are wrong."""
        return self.wrong / self.pool_items

    @property
    def summary(self) -> str:
        """How many labels of the pool are wrong, in a few sentences."""
        limits = f"{written(self.confidence_level, 100)}% CI {self.wrong_low:,.0f} to {self.wrong_high:,.0f}"
        said = f"An annotator would give another label to about {self.wrong:,.0f} of the {self.pool_items:,} items of"
        said += f" the pool ({self.wrong_share:.1%}; {limits})."
        if math.isnan(self.annotator_wrong):
            return (
                f"{said} How many it would be for labels of a typical annotator is unknown, as no item has two votes."
            )
        share = self.annotator_wrong / self.pool_items
        return f"{said} For labels of a typical annotator it would be about {self.annotator_wrong:,.0f} ({share:.1%})."

    def listed(self) -> Table:
        """Return the table for reading: limits in one column, and numbers of items without decimals."""
        level = written(self.confidence_level, 100)
        columns: dict[str, list[Any]] = {
            "category": self.table.column("category"),
            "share": [_percent(row["share"]) for row in self.table],
            f"{level}% CI": [f"{_percent(row['low'])} to {_percent(row['high'])}" for row in self.table],
            "count": [round(row["count"]) for row in self.table],
            "pool": self.table.column("pool"),
            "items": self.table.column("items"),
            "wrong": [_whole(row["wrong"]) for row in self.table],
            f"{level}% CI of wrong": [
                f"{_whole(row['wrong_low']):,} to {_whole(row['wrong_high']):,}" if row["items"] else "-"
                for row in self.table
            ],
        }
        return Table(columns, title=self.table.title)

    def _display(self) -> Iterator[str | Table | Sequence[str]]:
        yield self.summary
        yield self.listed()
        yield [note.text for note in self.notes]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN is None."""
        names = ("wrong", "wrong_share", "wrong_low", "wrong_high", "annotator_wrong")
        return {
            "summary": self.summary,
            "pool_items": self.pool_items,
            "n_items": self.n_items,
            "n_votes": self.n_votes,
            **{name: plain(getattr(self, name)) for name in names},
            "categories": self.table.to_json(),
            "merged": list(self.merged),
            "sampled_by_label": self.sampled_by_label,
            "finite_pool": self.finite_pool,
            "confidence_level": self.confidence_level,
            "excluded": self.excluded.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
        }


def _percent(share: float) -> str:
    return f"{share:.1%}"


def _whole(number: float) -> int | float:
    return number if math.isnan(number) else round(number)
