"""Slices of annotators: kappa of a labeler from the votes of each group of annotators alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dhkappa.core.annotator_groups import AnnotatorColumn, votes_of
from dhkappa.core.items import ItemVotes, count
from dhkappa.core.slices import find_slices
from dhkappa.errors import DataError, one_labeler, shown
from dhkappa.stats.annotator_votes import require_annotators
from dhkappa.stats.influence import basis
from dhkappa.stats.intervals import NO_VARIATION, beta_interval, written
from dhkappa.stats.kappa import fleiss_estimate, kappa_estimate
from dhkappa.stats.notes import Note, source_note
from dhkappa.stats.sample import Pool, check_level, sample_of
from dhkappa.stats.weights import Weights
from dhkappa.table import Display, Table, plain

_ONE_ANNOTATOR = "One annotator: no item has two votes of the slice."
_COLUMNS = ("slice", "annotators", "votes", "agree", "items", "kappa", "se", "low", "high", "fleiss", "reason")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AnnotatorSlices(Display):
    """Kappa of a labeler from the votes of each group of annotators alone, such as a team.

    Attributes
    ----------
    column, labeler : names of the column of the annotators table and of the labeler
    table : one row per value of the column, in natural order. ``annotators`` is the number of annotators and ``votes``
        that of their votes; ``agree`` is the share of their votes on labeled items that are the suggested label.
        ``kappa``, ``se``, ``low`` and ``high`` are computed from their votes only, on the ``items`` with a suggested
        label and two or more of these votes, as if all other annotators were excluded. ``fleiss`` is Fleiss' kappa of
        their votes. ``reason`` says why values are NaN.
    kappa : kappa from all votes
    confidence_level : confidence level of the intervals
    notes : conditions that affect the interpretation
    """

    column: str
    labeler: str
    table: Table
    kappa: float
    confidence_level: float
    notes: tuple[Note, ...]

    @property
    def summary(self) -> str:
        """The main numbers in a sentence."""
        known = [row for row in self.table if not math.isnan(row["kappa"])]
        whole = "undefined" if math.isnan(self.kappa) else f"{self.kappa:.3f}"
        text = f"Kappa of {self.labeler} is {whole} from all votes"
        if not known:
            return f"{text}, and undefined from the votes of each slice of {self.column}."
        ends = min(known, key=lambda row: row["kappa"]), max(known, key=lambda row: row["kappa"])
        low, high = (f"{row['kappa']:.3f} for {shown([row['slice']])}" for row in ends)
        ends_text = low if ends[0] is ends[1] else f"{low} to {high}"
        return f"{text}. From the votes of each slice of {self.column} alone: {ends_text}."

    def _display(self) -> Iterator[str | Table | Sequence[str]]:
        yield self.summary
        yield self.table
        yield [note.text for note in self.notes]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN is None."""
        return {
            "column": self.column,
            "labeler": self.labeler,
            "kappa": plain(self.kappa),
            "confidence_level": self.confidence_level,
            "slices": [{name: row.get(name) for name in _COLUMNS} for row in self.table.to_json()],
            "notes": [note.to_dict() for note in self.notes],
        }


def annotator_slices_of(
    column: AnnotatorColumn,
    labeler: str,
    item_votes: ItemVotes,
    whole: float,
    *,
    pool: Pool = None,
    weights: Weights | None = None,
    confidence_level: float = 0.95,
) -> AnnotatorSlices:
    """Return the slices of annotators by a column; ``whole`` is kappa from all votes."""
    level = check_level(confidence_level)
    rows = [_row(item_votes, members, labeler, pool, weights, level) for members in column.members]
    columns: dict[str, Any] = {"slice": list(column.slices)}
    columns |= {name: [row[name] for row in rows] for name in _COLUMNS[1:]}
    kappa = "kappa" if weights is None else "weighted kappa"
    title = f"{kappa.capitalize()} of {labeler} by {column.name} of the annotators, {written(level, 100)}% intervals"
    notes = tuple(map(source_note, column.notes))
    return AnnotatorSlices(column.name, labeler, Table(columns, title=title), whole, level, notes)


def _row(
    item_votes: ItemVotes, members: frozenset[Any], labeler: str, pool: Pool, weights: Weights | None, level: float
) -> dict[str, Any]:
    """Return the row of one group of annotators, without its name."""
    counts = count(replace(votes_of(item_votes, members), shown=None))
    labeled = counts.labeled_patterns(labeler)
    patterns = labeled.patterns
    each = np.repeat(patterns.items, np.diff(patterns.start)) * patterns.votes.astype(np.int64)
    label = np.repeat(patterns.suggested, np.diff(patterns.start))
    on_labeled, agreeing = int(each[label >= 0].sum()), int(each[label == patterns.code].sum())
    row: dict[str, Any] = {"annotators": len(members), "votes": counts.patterns.n_votes()}
    row |= {"agree": agreeing / on_labeled if on_labeled else math.nan, "items": 0}
    row |= dict.fromkeys(("kappa", "se", "low", "high", "fleiss"), math.nan)
    if len(members) == 1:
        return row | {"reason": _ONE_ANNOTATOR}
    try:
        kappa = kappa_estimate(sample_of(labeled, pool=pool), weights)
        fleiss = fleiss_estimate(sample_of(counts.unlabeled_patterns(), labeled=False, pool=pool), weights)
    except DataError as error:
        if error.code != "stratum-empty":
            raise
        return row | {"reason": error.message}
    known, reason = basis(kappa), kappa.reason
    row |= {"items": kappa.n_items, "kappa": kappa.value}
    if known is None:
        reason = reason or NO_VARIATION
    else:
        row |= {"se": known.se} | dict(zip(("low", "high"), beta_interval(known, 1 - level), strict=True))
    reason = reason or (fleiss.reason and f"Fleiss' kappa is undefined: {fleiss.reason}")
    return row | {"fleiss": fleiss.value, "reason": reason}


class AnnotatorSliced:
    """The methods of ``Audit`` about slices of annotators."""

    __slots__ = ()

    _annotator_columns: dict[str, AnnotatorColumn]
    _annotator_slices: dict[tuple[str, str], AnnotatorSlices]

    def annotator_slices(self: Any, column: str | None = None, labeler: str | None = None) -> AnnotatorSlices:
        """Return the kappa of a labeler from the votes of each group of annotators alone.

        Parameters
        ----------
        column
            One of ``annotator_columns``; with one column it may be omitted.

        Examples
        --------
        >>> import dhkappa, duckdb
        >>> sim = dhkappa.simulate(200, labelers={"llm": 0.9}, annotators=4, rng=1)
        >>> teams = duckdb.sql("FROM (VALUES (0, 'a'), (1, 'a'), (2, 'b'), (3, 'b')) t(annotator, team)")
        >>> found = dhkappa.audit(sim.votes, sim.suggested, annotators_table=teams).annotator_slices("team")
        >>> [(row["slice"], row["annotators"], row["votes"], round(row["kappa"], 2)) for row in found.table]
        [('a', 2, 400, 0.64), ('b', 2, 400, 0.67)]
        """
        name = (
            find_slices(column, self._annotator_columns, "annotators_table"),
            one_labeler(labeler, self.labelers, "labeler"),
        )
        if name not in self._annotator_slices:
            require_annotators(self._item_votes)
            known = {"pool": self._pool, "weights": self._weights, "confidence_level": self.confidence_level}
            whole = self.kappas[name[1]].value
            own = self._annotator_columns[name[0]]
            self._annotator_slices[name] = annotator_slices_of(own, name[1], self._item_votes, whole, **known)
        found: AnnotatorSlices = self._annotator_slices[name]
        return found
