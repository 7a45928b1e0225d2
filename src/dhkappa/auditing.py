"""Audit: run all statistics for some labelers and keep the results. Presentation is in ``dhkappa.report``."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any

from dhkappa.audit_output import AuditOutput
from dhkappa.audit_verdicts import AuditVerdicts
from dhkappa.core import Categories, Label
from dhkappa.core.annotator_groups import AnnotatorColumn
from dhkappa.core.items import Counts, ItemVotes
from dhkappa.core.shown_columns import ShownColumns, with_item_columns
from dhkappa.core.slices import SliceColumn, find_slices
from dhkappa.errors import DataError, Problem, masked, one_labeler, shown_problems
from dhkappa.paths import write_file
from dhkappa.stats.annotator_baseline import AnnotatorBaseline, annotator_baseline
from dhkappa.stats.annotator_result import AnnotatorScores
from dhkappa.stats.annotator_scores import annotator_scores
from dhkappa.stats.annotator_slices import AnnotatorSliced, AnnotatorSlices
from dhkappa.stats.annotator_votes import require_annotators, require_items, sample_of_rows
from dhkappa.stats.annotators import annotator_table
from dhkappa.stats.change import Changes
from dhkappa.stats.compare import AnnotatorComparison
from dhkappa.stats.comparison import Comparison
from dhkappa.stats.flagged import Flagged
from dhkappa.stats.gate import Gate
from dhkappa.stats.grades import NEVER_JUDGED, Verdict
from dhkappa.stats.labelers import labelers_table, weakest_category
from dhkappa.stats.next_votes import next_votes
from dhkappa.stats.notes import Note, any_time_notes, left_out_notes, source_note
from dhkappa.stats.other_annotators import OtherAnnotators, other_annotators
from dhkappa.stats.permutation import PermutationTest
from dhkappa.stats.plan import narrower_intervals
from dhkappa.stats.result import Kappa
from dhkappa.stats.review import review_queue
from dhkappa.stats.sample import Pool, Sample, check_integer
from dhkappa.stats.slice_table import Slices, slices_of
from dhkappa.stats.verdict import groups_of, summarize
from dhkappa.stats.weights import Weights
from dhkappa.stats.without import WithoutAnnotators
from dhkappa.table import Display, Table


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Audit(AnnotatorSliced, AuditOutput, AuditVerdicts, Display):
    """The results of ``dhkappa.audit``. Methods take the name of a labeler; with one labeler it may be omitted.

    Tables are computed when they are first used. With agreement weights, every kappa is a weighted kappa.

    Attributes
    ----------
    kappas : the kappa of each labeler, on all items that it labeled
    permutation_tests : the test of each labeler against random labels; None if kappa is undefined, and with clusters
    comparison : ranking and paired differences, on common items; None for one labeler
    fleiss : Fleiss' kappa: how far annotators agree with each other
    confidence_level : confidence level of all intervals
    problems : what is wrong, or may be wrong, with the data, most severe first; see ``Dataset.check``
    baseline : what changed since an earlier audit, if ``compare_with`` named one; else None
    any_time : whether kappas, differences, the comparison with a typical annotator and verdicts hold at every look
    """

    kappas: dict[str, Kappa]
    permutation_tests: dict[str, PermutationTest | None]
    comparison: Comparison | None
    fleiss: Kappa
    confidence_level: float
    problems: tuple[Problem, ...]
    _annotator_comparisons: dict[str, AnnotatorComparison]
    _item_votes: ItemVotes | None
    _samples: dict[str, Sample]  # one pattern per row of the item votes, by labeler
    _pool: Pool
    _weights: Weights | None
    _slice_columns: dict[str, SliceColumn]
    _tally: tuple[Counts, Categories | None, frozenset[Label]]  # arguments of Tally.of
    baseline: Changes | None = None
    any_time: bool = False
    _slices: dict[tuple[str, str], Slices] = field(default_factory=dict)
    _tables: dict[tuple[str, str], Table] = field(default_factory=dict)  # those that were asked for; so the reviews
    _reviews: dict[tuple[str, int | None], Table] = field(default_factory=dict)
    _baselines: dict[str, AnnotatorBaseline] = field(default_factory=dict)
    _verdicts: dict[str, Verdict] = field(default_factory=dict)
    _scores: list[AnnotatorScores] = field(default_factory=list)
    _other_annotators: dict[str, OtherAnnotators] = field(default_factory=dict)
    _flagged: list[Flagged | None] = field(default_factory=list)  # the annotators, once they were asked for
    _audits_without: list[Any] = field(default_factory=list)
    _annotator_columns: dict[str, AnnotatorColumn] = field(default_factory=dict)
    _annotator_slices: dict[tuple[str, str], AnnotatorSlices] = field(default_factory=dict)
    _without: Callable[..., Any] | None = None  # audits the data without some annotators

    @property
    def _shown(self) -> ShownColumns | None:
        """The columns of items that are shown next to them."""
        return None if self._item_votes is None else self._item_votes.shown

    def _with_shown(self, table: Table) -> Table:
        """Return a table of items with these columns."""
        return table if self._shown is None else with_item_columns(table, self._shown)

    @property
    def metric(self) -> str:
        """``"dh"``, or ``"weighted"`` with agreement weights."""
        return "dh" if self._weights is None else "weighted"

    @property
    def labelers(self) -> tuple[str, ...]:
        """The names of the labelers, in the given order."""
        return tuple(self.kappas)

    def categories(self, labeler: str | None = None) -> Table:
        """Return kappa by suggested category; see ``Kappa.by_category``."""
        return self._table("categories", labeler)

    def confusion(self, labeler: str | None = None) -> Table:
        """Return what annotators agree on for each suggested label; see ``Kappa.confusion``."""
        return self._table("confusion", labeler)

    def annotators(self, labeler: str | None = None) -> Table:
        """Return the contribution of each annotator to kappa, and kappa without their votes.

        ``items`` is the number of items they voted on, ``agree`` the share of their votes that are the suggested label,
        ``weight`` their share of all votes if each item counts once, ``differential`` the share of their pairs of votes
        that agree on the suggested label minus those that agree on another, ``kappa`` is computed from it, so that the
        mean by ``weight`` is kappa, and ``change`` is the difference of ``kappa_without`` their votes from kappa. All
        but ``agree`` follow agreement weights.
        """
        require_annotators(self._item_votes)
        return self._table("annotators", labeler)

    def annotator_scores(self) -> AnnotatorScores:
        """Return all annotators on one scale: who differs from the rest, and who is not shown to know anything.

        The scores do not depend on labelers, except for the columns ``agree_with_...``, the shares of an annotator's
        votes that are the suggested label.
        """
        if not self._scores:
            known: dict[str, Any] = {"confidence_level": self.confidence_level, "labelers": self.labelers}
            self._scores.append(annotator_scores(self._item_votes, **known, ordered=self._weights is not None))
        return self._scores[0]

    def annotator_comparison(self, labeler: str | None = None) -> AnnotatorComparison:
        """Return the labeler compared with each annotator as a labeler, both judged by the other annotators.

        ``table`` has ``kappa_annotator`` and ``kappa_labeler`` on the same ``items``, and their ``difference`` with its
        confidence interval; the result itself is the mean difference over annotators.
        """
        require_annotators(self._item_votes)
        return self._annotator_comparisons[self._name(labeler)]

    def other_annotators(self, labeler: str | None = None) -> OtherAnnotators:
        """Return intervals of kappa, and of its difference from a typical annotator, for other annotators.

        All other intervals of an audit are for other items voted on by the same annotators. These are also for other
        annotators like them. Sample weights, strata, pools and agreement weights are not supported.
        """
        require_annotators(self._item_votes)
        name = self._name(labeler)
        if name not in self._other_annotators:
            assert self._item_votes is not None
            kappa, known = self.kappas[name], (self._item_votes, name)
            sample = sample_of_rows(*known, self._pool, self._samples)
            interval, baseline = kappa.confidence_interval(self.confidence_level), self.annotator_baseline(name)
            found = other_annotators(*known, kappa.estimate, interval, kappa.se, baseline, sample)
            self._other_annotators[name] = found
        return self._other_annotators[name]

    def without(self, *annotators: Any) -> WithoutAnnotators:
        """Return what would change without some annotators: kappa, Fleiss' kappa and verdict of each labeler.

        The numbers are those of an audit of ``Dataset.exclude_annotators``, which takes names in the same forms.
        """
        one = len(annotators) == 1 and isinstance(annotators[0], (list, tuple, set, frozenset))
        names = tuple(annotators[0]) if one else annotators
        if self._without is None:
            require_annotators(None)
        assert self._without is not None
        after = self._without(*names)
        if not isinstance(after, Audit):
            message = "Without these annotators no item has two votes."
            raise DataError(message, code="single-votes", hint="Leave out fewer.")
        return WithoutAnnotators.of(names, self, after)

    def review(self, labeler: str | None = None, limit: int | None = None) -> Table:
        """Return the items to review, those whose suggested label the annotators reject most clearly first.

        ``majority`` is the most frequent vote, None if tied. ``differential`` is -1 if all pairs of votes agree on
        another label and 1 if all agree on the suggested one. ``contribution`` is the item's part in kappa, which is
        their mean, ``influence`` the derivative of kappa by the item's weight, ``kappa_without`` kappa without the
        item. With agreement weights, votes near the suggested label raise the differential. Columns to ``show``, such
        as the text, follow ``item``; one with the name of another column gets the prefix ``item_``.

        Parameters
        ----------
        limit
            Number of items; by default all, or 100 if the table is too large to be fetched.
        """
        votes = require_items(self._item_votes)
        key = self._name(labeler), None if limit is None else check_integer("limit", limit, 1)
        if key not in self._reviews:
            sample = sample_of_rows(votes, key[0], self._pool, self._samples)
            chosen: dict[str, Any] = {"limit": limit, "sample": sample, "weights": self._weights}
            self._reviews[key] = self._with_shown(review_queue(votes, key[0], **chosen))
        return self._reviews[key]

    def next_votes(self, labeler: str | None = None, limit: int = 100) -> Table:
        """Return the items on which one more vote would help most.

        ``score`` is the probability that one more vote changes whether the suggested label leads, is tied, or trails.
        The vote is taken to be for a category with probability (v + q) / (N + 1): v of the N votes are for it, and q is
        its share of all votes on items with this suggested label. Items with fewer votes come first among equals, then
        by position. Items with one vote or none, which the audit excludes, are in the list; those without a suggested
        label are not. ``reason`` does not tell the suggested label, so that it can be shown to annotators.

        Parameters
        ----------
        limit
            Number of items.

        Examples
        --------
        >>> import dhkappa
        >>> votes = [["cat", "cat", "dog"], ["cat", "cat", "cat"], ["dog", None, None], ["cat", "dog", None]]
        >>> found = dhkappa.audit(votes, ["cat", "cat", "cat", "dog"])
        >>> [(row["item"], row["reason"], round(row["score"], 2)) for row in found.next_votes(limit=3)]
        [(3, 'votes tied', 1.0), (2, 'one vote, excluded from the audit', 0.36), (0, 'decided by 1 vote', 0.32)]
        """
        return self._with_shown(next_votes(require_items(self._item_votes), self._name(labeler), limit))

    @property
    def slice_columns(self) -> tuple[str, ...]:
        """The names of the columns of slices, as passed to ``audit``."""
        return tuple(self._slice_columns)

    @property
    def annotator_columns(self) -> tuple[str, ...]:
        """The columns of the annotators table by which annotators are sliced."""
        return tuple(self._annotator_columns)

    def slices(self, column: str | None = None, labeler: str | None = None) -> Slices:
        """Return the kappa of each slice of the items, compared with the other slices.

        Parameters
        ----------
        column
            One of ``slice_columns``; with one column it may be omitted.
        """
        key = find_slices(column, self._slice_columns), self._name(labeler)
        if key not in self._slices:
            found, whole, level = self._slice_columns[key[0]], self.kappas[key[1]].estimate, self.confidence_level
            known = partial(self._grade, key[1], key[0])
            self._slices[key] = slices_of(found, key[1], whole, confidence_level=level, grade=known)
        return self._slices[key]

    def annotator_baseline(self, labeler: str | None = None) -> AnnotatorBaseline:
        """Return the kappa of a typical annotator, and the labeler compared with it, on the same items."""
        name = self._name(labeler)
        if name not in self._baselines:
            level: dict[str, Any] = {"confidence_level": self.confidence_level, "any_time": self.any_time}
            self._baselines[name] = annotator_baseline(self.kappas[name].estimate, **level)
        return self._baselines[name]

    @property
    def groups(self) -> list[list[str]]:
        """The ranked labelers that can be judged, the best first, in groups that cannot be told apart.

        The order is that of kappa on the items that all ranked labelers labeled; see ``dhkappa.compare``.
        """
        ranked = self.comparison.ranked if self.comparison else self.kappas
        values = {name: kappa.value for name, kappa in ranked.items() if self.verdict(name).ranked}
        values = {name: value for name, value in values.items() if not math.isnan(value)}
        return groups_of(values, self.comparison.differences if self.comparison else None, self.confidence_level)

    @property
    def ranking(self) -> list[str]:
        """The labelers, the best first; then those that are not ranked, and last those that cannot be judged."""
        ranked = [name for group in self.groups for name in group]
        others = [name for name in self.table().column("labeler") if name not in ranked]
        verdicts = self.verdicts
        others.sort(key=lambda name: (verdicts[name].code in NEVER_JUDGED, not verdicts[name].judged))
        return ranked + others

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of ``table`` in the order of ``ranking``, with Fleiss' kappa, verdict and p-value."""
        found = {row["labeler"]: row for row in self.table()}
        for name, row in found.items():
            test = self.permutation_tests[name]
            row |= {"fleiss": self.kappas[name].fleiss, "verdict": self.verdict(name).short}
            row["baseline_annotator"] = self.annotator_baseline(name).value
            row["pvalue"] = test.pvalue if test else math.nan
        return [found[name] for name in self.ranking]

    def table(self) -> Table:
        """Return one row per labeler, the highest kappa first, with confidence interval, baselines and coverage.

        Each kappa is for all items that the labeler labeled. Labelers that are not ranked are last.
        """
        return labelers_table(self.kappas, self.confidence_level, self.comparison.not_ranked if self.comparison else ())

    @property
    def summary(self) -> str:
        """The answer in a few sentences: which labeler is best, can it be trusted, and in which category least."""
        return f"{self.headline} {self.details}".strip()

    @property
    def headline(self) -> str:
        """The first sentences of ``summary``: which labeler is best, and the verdict on it."""
        return self._summary()[0]

    @property
    def details(self) -> str:
        """The rest of ``summary``: the numbers behind the verdict, the grades of the others, the weakest category."""
        best, said = self.ranking[0], self._summary()[1]
        ranked = self.verdict(best).ranked
        weakest = weakest_category(best, self.kappas[best], self.confidence_level) if ranked else ""
        return f"{said} {weakest}".strip()

    def _summary(self) -> tuple[str, str]:
        """Return the headline, and the rest without the weakest category."""
        compared = self.comparison
        ranked = 0 if compared is None else max((kappa.n_items for kappa in compared.ranked.values()), default=0)
        fewer = ranked < max(kappa.n_items for kappa in self.kappas.values())
        not_ranked = compared.not_ranked if compared else {}
        return summarize(self.verdicts, self.groups, not_ranked, ranked if fewer else 0)

    def sample_sizes(self, labeler: str | None = None) -> Table:
        """Return the number of items that narrower intervals would need, voted on like these; see ``dhkappa.plan``.

        ``items`` in all, ``more_items`` and ``more_votes`` than there are, and ``items_assured`` for 0.9 assurance.
        """
        name = self._name(labeler)
        estimate, level = self.kappas[name].estimate, self.kappas[name].single_level(self.confidence_level)
        interval = self.kappas[name].confidence_interval(level, any_time=False)
        return narrower_intervals(name, estimate, interval, level, self._pool)

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        title: str = "Label audit",
        command: str | None = None,
        gate: Gate | None = None,
    ) -> None:
        """Write a report to one HTML file that opens without a network; needs ``pip install 'dhkappa[report]'``.

        Parameters
        ----------
        path
            File to write, completely or not at all.
        title, command
            Title of the report, and the command that made it, to be shown at its end.
        gate
            The outcome of ``gate``, to be shown at the top.
        """
        page = import_module("dhkappa.report.html").page(self, title=masked(title), command=command, gate=gate)
        write_file(path, page, "report")

    def to_markdown(self, *, title: str = "Label audit", gate: Gate | None = None) -> str:
        """Return a short report as Markdown, for example for a pull request."""
        text: str = import_module("dhkappa.report.markdown").page(self, title=masked(title), gate=gate)
        return text

    @property
    def notes(self) -> tuple[Note, ...]:
        """What to know about the results; a note names its labelers unless it is about all of them."""
        about: dict[Note, list[str]] = {}
        for name, kappa in self.kappas.items():
            compared = self._annotator_comparisons.get(name)
            held = any_time_notes(kappa.estimate.sample, self.confidence_level) if self.any_time else ()
            for note in (*kappa.notes, *held, *(compared.notes if compared else ())):
                if not any(problem.covers(note.code, name) for problem in self.problems):
                    about.setdefault(note, []).append(name)
        found = [
            note if len(names) == len(self.kappas) else replace(note, message=f"{', '.join(names)}: {note.message}")
            for note, names in about.items()
        ]
        counted = self._item_votes is not None and self._item_votes.find is not None
        clustered = any(kappa.estimate.sample.clustered for kappa in self.kappas.values())
        found += left_out_notes(counted=counted, clustered=clustered, any_time=self.any_time)
        found += map(source_note, self._shown.notes if self._shown else ())
        found += self.baseline.notes if self.baseline else ()
        if self.comparison is None:
            return tuple(found)
        # Notes on single labelers are there already, and excluded items too if all labelers have the same items.
        sizes = {kappa.n_items for kappa in (*self.kappas.values(), *self.comparison.kappas.values())}
        known = {"source", "equals-majority", "clusters", *(["items-excluded"] if len(sizes) == 1 else [])}
        return (*found, *(note for note in self.comparison.notes if note.code not in known and note not in found))

    def _display(self) -> Iterator[str | Table | Sequence[str]]:
        problems, notes = shown_problems(self.problems)
        yield problems
        yield self.summary
        if self.baseline:
            yield self.baseline.text
        yield self.table()
        yield f"Agreement of the annotators with each other: {self.fleiss!r}"
        if self.comparison:
            yield self.comparison.differences
        notes += [note.text for note in self.notes]
        yield [*map(repr, self._annotator_comparisons.values()), *notes]

    @property
    def knows_items(self) -> bool:
        """Whether the items have names, so that they can be listed."""
        return self._item_votes is not None

    @property
    def knows_annotators(self) -> bool:
        """Whether it is known which annotator gave a vote."""
        return self._item_votes is not None and self._item_votes.annotators is not None

    def _name(self, labeler: str | None) -> str:
        """Return the name of a labeler, or of the only one."""
        return one_labeler(labeler, self.labelers, "labeler")

    def _table(self, what: str, labeler: str | None) -> Table:
        name = self._name(labeler)
        kappa, votes = self.kappas[name], self._item_votes
        if (what, name) not in self._tables:
            if what == "annotators" and votes is not None:
                sample = sample_of_rows(votes, name, self._pool, self._samples)
                found = annotator_table(votes, name, sample=sample, weights=self._weights)
            elif kappa.exact is None:
                raise DataError(f"The kappa of {name} is undefined. {kappa.reason}", code="kappa-undefined")
            else:
                found = kappa.by_category(self.confidence_level) if what == "categories" else kappa.confusion()
            self._tables[what, name] = found
        return self._tables[what, name]
