"""Audit: what was found, for every labeler and every question."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from textwrap import wrap
from typing import Any

import numpy as np

from dhkappa.core.counts import Counts, item_table_of_counts
from dhkappa.core.items import ItemVotes
from dhkappa.errors import DataError, did_you_mean, shown
from dhkappa.resources import Progress
from dhkappa.stats.annotators import (
    AnnotatorComparison,
    annotator_table,
    compare_with_annotators,
    require_annotators,
)
from dhkappa.stats.compare import compare_labelers
from dhkappa.stats.intervals import check_level
from dhkappa.stats.kappa import estimate_dh, estimate_fleiss
from dhkappa.stats.notes import Note
from dhkappa.stats.permutation import PermutationTest
from dhkappa.stats.plan import plan_items
from dhkappa.stats.result import Comparison, Kappa, labelers_table
from dhkappa.stats.review import check_limit, review_queue
from dhkappa.stats.sample import Pool, generator, own_pool, sample_of
from dhkappa.stats.verdict import Verdict, judge, summarize
from dhkappa.stats.weights import estimate_weighted
from dhkappa.table import Table, html_list, text_list, visible

_NARROWER = (0.1, 0.05, 0.03, 0.02, 0.01, 0.005)  # half-widths of intervals to plan for


@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """All that can be asked of votes and suggested labels, answered.

    Where there is one labeler, its name may be left out of the calls.

    Attributes
    ----------
    kappas : the kappa of each labeler by name, on all items that it labeled
    ordinal : the same with ordinal weights, where they were asked for
    tests : the test of each labeler against random labels
    comparison : paired differences on the items that all labelers labeled; None for one labeler
    fleiss : how far the annotators agree among themselves
    level : of all intervals
    notes : what to know, each once, with the labelers it is about unless it is about all
    """

    kappas: dict[str, Kappa]
    weighted: dict[str, Kappa]
    permutation_tests: dict[str, PermutationTest | None]
    comparison: Comparison | None
    fleiss: Kappa
    confidence_level: float
    _tables: dict[tuple[str, str], Table]
    _people: dict[str, AnnotatorComparison]
    _item_votes: ItemVotes | None
    _pool: Pool
    _queues: dict[tuple[str, int | None], Table] = field(default_factory=dict, repr=False)

    @property
    def labelers(self) -> tuple[str, ...]:
        """The labelers, in the order given."""
        return tuple(self.kappas)

    def categories(self, labeler: str | None = None) -> Table:
        """Return kappa by suggested category; see ``Kappa.by_category``."""
        return self._table("categories", labeler)

    def confusion(self, labeler: str | None = None) -> Table:
        """Return what the panel agrees on where each label is suggested; see ``Kappa.confusion``."""
        return self._table("confusion", labeler)

    def annotators(self, labeler: str | None = None) -> Table:
        """Return each annotator's part in kappa, and kappa without the annotator's votes.

        ``items`` that they voted on, ``agree`` (how often with the suggested label), ``weight`` (their share in all
        votes, where each item counts once), ``differential`` (of the pairs of votes that they are in, those that agree
        on the suggested label less those that agree on another), ``kappa`` of that, which by weight adds up to kappa,
        ``kappa_without`` their votes, and the ``change`` to it.
        """
        require_annotators(self._item_votes)
        return self._table("annotators", labeler)

    def annotator_comparison(self, labeler: str | None = None) -> AnnotatorComparison:
        """Return the labeler beside each annotator, taken as a labeler and judged by all others.

        ``table`` has ``kappa_person`` and ``kappa_labeler`` on the same ``items`` and panel, and their ``difference``
        with its interval; the result itself is the mean difference over people.
        """
        require_annotators(self._item_votes)
        return self._people[self._named(labeler)]

    def review(self, labeler: str | None = None, limit: int | None = None) -> Table:
        """Return the review queue: items by how clearly the panel rejects the suggested label, the worst first.

        ``majority`` is the label that most votes are for, None where several tie. ``differential`` is -1 where all
        pairs of votes agree on another label and 1 where all agree on the suggested one; ``contribution`` is the item's
        part in kappa, which is their mean; ``influence`` how kappa moves as the item gains weight; ``kappa_without``
        kappa if it were left out.

        Parameters
        ----------
        labeler
            Whose labels.
        most
            How many items; by default all, or 100 where a table is too large to be fetched and its engine is asked.
        """
        if self._item_votes is None:
            raise DataError(
                "items need the votes on each item, which a tally does not keep: pass votes or counts, and with a "
                "large table the names of items too, as item=."
            )
        key = self._named(labeler), check_limit(limit)
        if key not in self._queues:
            self._queues[key] = review_queue(self._item_votes, key[0], limit=limit, pool=self._pool)
        return self._queues[key]

    def table(self) -> Table:
        """Return a row for each labeler, the best first, with the marks to read its kappa by."""
        return labelers_table(self.kappas, self.confidence_level)

    @property
    def _verdicts(self) -> dict[str, Verdict]:
        """Whether each labeler can be trusted: beside people where they are known, and beside random labels."""
        return {
            name: judge(name, kappa.estimate, kappa.confidence_interval(self.confidence_level), self._people.get(name))
            for name, kappa in self.kappas.items()
        }

    def verdict(self, labeler: str | None = None) -> Verdict:
        """Return whether the labels of a labeler can be trusted, as a code and a sentence."""
        return self._verdicts[self._named(labeler)]

    @property
    def summary(self) -> str:
        """The answer in a sentence or two: which labeler is best, and can it be trusted."""
        differences = self.comparison.differences if self.comparison else None
        values = {name: kappa.value for name, kappa in self.kappas.items()}
        return summarize(self._verdicts, values, differences, self.confidence_level)

    def sample_sizes(self, labeler: str | None = None) -> Table:
        """Return how many items narrower intervals would need, voted on as these were; see ``dhkappa.plan``.

        ``items`` in all, ``more_items`` than there are, ``items_assured`` to be 0.9 sure, and the ``more_votes``.
        """
        name = self._named(labeler)
        kappa = self.kappas[name]
        interval = kappa.confidence_interval(self.confidence_level)
        half = (interval.high - interval.low) / 2
        whole = sum(self._pool.values()) if isinstance(self._pool, Mapping) else self._pool
        rows = [
            (goal, plan_items(goal, pilot=kappa.estimate, pool=whole, confidence_level=self.confidence_level))
            for goal in [goal for goal in _NARROWER if goal < half][:3]
        ]
        more = [max(planned.items - kappa.n_items, 0) for _, planned in rows]
        return Table(
            {
                "half_width": [goal for goal, _ in rows],
                "items": [planned.items for _, planned in rows],
                "more_items": more,
                "more_votes": [
                    math.ceil(items * planned.votes) for items, (_, planned) in zip(more, rows, strict=True)
                ],
                "items_assured": [planned.items_assured for _, planned in rows],
            },
            title=f"{name}: items for a narrower interval than plus or minus {half:.3f}",
        )

    @property
    def _unsigned(self) -> str:
        """Why people are not known; nothing where they are."""
        if self._item_votes is None:
            return "Only counts are known here, not who cast which vote"
        if self._item_votes.find is not None:
            return "The table is too large to be fetched, so only counts were asked for, not who cast which vote"
        return "" if self._item_votes.annotators is not None else "Nothing tells who cast which vote"

    def to_html(self, path: str | os.PathLike[str], *, title: str = "Label audit", command: str | None = None) -> None:
        """Write a report to one HTML file that opens without a network; needs ``pip install 'dhkappa[report]'``.

        Parameters
        ----------
        path
            File to write, completely or not at all.
        title
            Title of the report.
        command
            The command that made it, to be shown at its end.
        """
        import_module("dhkappa.report.html").write_report(self, path, title=title, command=command)

    def chart(self, name: str, labeler: str | None = None) -> Any:
        """Return a chart of the report as an Altair chart; needs ``pip install 'dhkappa[report]'``.

        Parameters
        ----------
        name
            ``"scale"`` (all labelers with random and majority labels), ``"differences"`` (between labelers), or of one
            labeler ``"categories"``, ``"confusion"`` or ``"annotator_comparison"``.
        labeler
            Name of the labeler; may be omitted if there is one.
        """
        return import_module("dhkappa.report.charts").chart(self, name, labeler)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What to know, each once, with the labelers it is about unless it is about all."""
        about: dict[Note, list[str]] = {}
        for name, kappa in self.kappas.items():
            for note in (*kappa.notes, *self._people_notes(name)):
                about.setdefault(note, []).append(name)
        found = [
            note if len(names) == len(self.kappas) else Note(note.code, f"{', '.join(names)}: {note.text}")
            for note, names in about.items()
        ]
        if self._item_votes is not None and self._item_votes.find is not None:
            found.append(Note("too-large", f"{self._unsigned}: annotators are left out."))
        if self.comparison is None:
            return tuple(found)
        # What is so of one labeler has been said; what was dropped too, where they share all their items.
        sizes = {kappa.n_items for kappa in (*self.kappas.values(), *self.comparison.kappas.values())}
        said = {"source", "equals-majority", *(["items-excluded"] if len(sizes) == 1 else [])}
        return (*found, *(note for note in self.comparison.notes if note.code not in said))

    def __repr__(self) -> str:
        lines = [*wrap(visible(self.summary), 80), repr(self.table()), f"Annotators among themselves: {self.fleiss!r}"]
        if self.comparison:
            lines.append(repr(self.comparison.differences))
        said = [*map(repr, self._people.values()), *(note.text for note in self.notes)]
        return "\n".join([*lines, text_list(said)])

    def _repr_html_(self) -> str:
        tables = [self.table(), *([self.comparison.differences] if self.comparison else [])]
        notes = html_list([*map(repr, self._people.values()), *(note.text for note in self.notes)])
        fleiss = f"<p>Annotators among themselves: {html.escape(repr(self.fleiss))}</p>"
        answer = f"<p><b>{html.escape(visible(self.summary))}</b></p>"
        return answer + "".join(table._repr_html_() for table in tables) + fleiss + notes

    def to_dict(self, limit: int | None = 100) -> dict[str, Any]:
        """Return plain values, ready for JSON; NaN is None, and ``most`` limits the items of each review queue."""
        return {
            "confidence_level": self.confidence_level,
            "summary": self.summary,
            "labelers": {name: self._labeler_dict(name, limit) for name in self.labelers},
            "comparison": self.comparison.to_dict() if self.comparison else None,
            "fleiss": self.fleiss.to_dict(self.confidence_level),
            "notes": [note.to_dict() for note in self.notes],
        }

    def _labeler_dict(self, name: str, limit: int | None) -> dict[str, Any]:
        test, defined = (
            self.permutation_tests[name],
            not math.isnan(self.kappas[name].confidence_interval(self.confidence_level).low),
        )
        tables = {what: self._tables.get((what, name)) for what in ("categories", "confusion", "annotators")}
        return {
            "verdict": self._verdicts[name].to_dict(),
            "kappa": self.kappas[name].to_dict(self.confidence_level),
            "weighted": self.weighted[name].to_dict(self.confidence_level) if name in self.weighted else None,
            "permutation_test": test.to_dict() if test else None,
            **{what: table.to_json() if table is not None else None for what, table in tables.items()},
            "annotator_comparison": self._people[name].to_dict() if name in self._people else None,
            "review": None if self._item_votes is None else self.review(name, limit).to_json(),
            "sample_sizes": self.sample_sizes(name).to_json() if defined else None,
        }

    def _people_notes(self, name: str) -> tuple[Note, ...]:
        return self._people[name].notes if name in self._people else ()

    def _named(self, labeler: str | None) -> str:
        if labeler is None and len(self.kappas) == 1:
            return next(iter(self.kappas))
        if not isinstance(labeler, str) or labeler not in self.kappas:
            asked = "say which labeler" if labeler is None else f"labeler {shown([labeler])} is not in the audit"
            hint = did_you_mean(labeler, self.kappas)
            raise DataError(f"{asked}. Labelers: {shown(self.kappas, 10)}.{hint}")
        return labeler

    def _table(self, what: str, labeler: str | None) -> Table:
        name = self._named(labeler)
        if (what, name) not in self._tables:
            raise DataError(f"{what} needs a kappa that is defined, but {self.kappas[name].reason}")
        return self._tables[what, name]


def audit_of(
    counts: Counts,
    item_votes: ItemVotes | None,
    names: Sequence[str],
    *,
    source_notes: tuple[str, ...] = (),
    weights: Any,
    pool: Pool,
    confidence_level: float,
    rng: int | np.random.Generator | None,
    progress: bool,
) -> Audit:
    """Run everything for some labelers of a tally; ``item_votes`` are the same votes with their items, where known.

    The rest is given as to ``dhkappa.audit``.
    """
    confidence_level, source, pool = check_level(confidence_level), generator(rng), own_pool(pool)
    kappas: dict[str, Kappa] = {}
    weighted: dict[str, Kappa] = {}
    tests: dict[str, PermutationTest | None] = {}
    tables: dict[tuple[str, str], Table] = {}
    found: dict[str, AnnotatorComparison] = {}
    with Progress(len(names) + 1, "audit", progress) as shown_progress:
        for name in names:
            sample = sample_of(counts.labeled_patterns(name, source_notes), pool=pool)
            kappa = kappas[name] = Kappa(estimate_dh(sample))
            if weights is not None:
                weighted[name] = Kappa(estimate_weighted(sample, weights))
            tests[name] = kappa.permutation_test() if kappa.exact is not None else None
            if kappa.exact is not None:
                tables["categories", name] = kappa.by_category(confidence_level)
                tables["confusion", name] = kappa.confusion()
            if item_votes is not None and item_votes.annotators is not None:
                tables["annotators", name] = annotator_table(item_votes, name, pool)
                found[name] = compare_with_annotators(item_votes, name, confidence_level, pool)
            shown_progress.advance()
        comparison = None
        if len(names) > 1:
            estimates, differences, notes = compare_labelers(
                item_table_of_counts(counts, names, source_notes),
                confidence_level=confidence_level,
                pool=pool,
                rng=source,
            )
            common = {name: Kappa(estimate) for name, estimate in estimates.items()}
            comparison = Comparison(common, differences, notes, confidence_level)
        rows = counts.unlabeled_patterns(source_notes)
        fleiss = Kappa(estimate_fleiss(sample_of(rows, labeled=False, pool=pool)))
    return Audit(kappas, weighted, tests, comparison, fleiss, confidence_level, tables, found, item_votes, pool)
