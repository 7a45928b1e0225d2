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
from dhkappa.stats.annotator_votes import require_annotators
from dhkappa.stats.annotators import annotator_table
from dhkappa.stats.change import Changes
from dhkappa.stats.compare import AnnotatorComparison
from dhkappa.stats.gate import Gate, gate_of
from dhkappa.stats.grades import NEVER_JUDGED, Verdict
from dhkappa.stats.intervals import ConfidenceInterval
from dhkappa.stats.kappa import Estimate
from dhkappa.stats.next_step import NextStep, next_step
from dhkappa.stats.next_votes import next_votes, require_items
from dhkappa.stats.notes import Note, source_note
from dhkappa.stats.permutation import PermutationTest
from dhkappa.stats.plan import narrower_intervals
from dhkappa.stats.result import Comparison, Kappa, labelers_table, weakest_category
from dhkappa.stats.review import review_queue
from dhkappa.stats.sample import Pool, Sample, check_integer, sample_of
from dhkappa.stats.slice_table import Slices, slices_of
from dhkappa.stats.verdict import groups_of, judge, summarize
from dhkappa.stats.weights import Weights
from dhkappa.stats.without import WithoutAnnotators
from dhkappa.table import Display, Table


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Audit(AnnotatorSliced, AuditOutput, Display):
    """The results of ``dhkappa.audit``. Methods take the name of a labeler; with one labeler it may be omitted.

    Tables are computed when they are first used. With agreement weights, every kappa is a weighted kappa.

    Attributes
    ----------
    kappas : the kappa of each labeler, on all items that it labeled
    permutation_tests : the test of each labeler against random labels; None if kappa is undefined
    comparison : ranking and paired differences, on common items; None for one labeler
    fleiss : Fleiss' kappa: how far annotators agree with each other
    confidence_level : confidence level of all intervals
    problems : what is wrong, or may be wrong, with the data, most severe first; see ``Dataset.check``
    baseline : what changed since an earlier audit, if ``compare_with`` named one; else None
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
    _slices: dict[tuple[str, str], Slices] = field(default_factory=dict)
    _tables: dict[tuple[str, str], Table] = field(default_factory=dict)  # those that were asked for; so the reviews
    _reviews: dict[tuple[str, int | None], Table] = field(default_factory=dict)
    _baselines: dict[str, AnnotatorBaseline] = field(default_factory=dict)
    _verdicts: dict[str, Verdict] = field(default_factory=dict)
    _scores: list[AnnotatorScores] = field(default_factory=list)
    _annotator_columns: dict[str, AnnotatorColumn] = field(default_factory=dict)
    _annotator_slices: dict[tuple[str, str], AnnotatorSlices] = field(default_factory=dict)
    _without: Callable[..., Any] | None = None  # audits the data without some annotators

    @property
    def _shown(self) -> ShownColumns | None:
        """The columns of items that are shown next to them."""
        return None if self._item_votes is None else self._item_votes.shown

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

    def without(self, *annotators: Any) -> WithoutAnnotators:
        """Return what would change without some annotators: kappa, Fleiss' kappa and verdict of each labeler.

        The numbers are those of an audit of ``Dataset.exclude_annotators``.
        """
        if self._without is None:
            require_annotators(None)
        assert self._without is not None
        after = self._without(*annotators)
        if not isinstance(after, Audit):
            message = "Without these annotators no item has two votes."
            raise DataError(message, code="single-votes", hint="Leave out fewer.")
        return WithoutAnnotators.of(annotators, self, after)

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
            self._reviews[key] = with_item_columns(review_queue(votes, key[0], **chosen), self._shown)
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
        return with_item_columns(next_votes(require_items(self._item_votes), self._name(labeler), limit), self._shown)

    @property
    def slice_columns(self) -> tuple[str, ...]:
        """The names of the columns of slices, as passed to ``audit``."""
        return tuple(self._slice_columns)

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
            known = partial(self._grade, key[1])
            self._slices[key] = slices_of(found, key[1], whole, confidence_level=level, grade=known)
        return self._slices[key]

    def _grade(self, labeler: str, estimate: Estimate, interval: ConfidenceInterval) -> str:
        """Return the code of the verdict on some items of a labeler; annotators are compared on all items."""
        baseline = annotator_baseline(estimate, confidence_level=interval.confidence_level)
        annotators = partial(self.annotators, labeler) if self.knows_annotators else None
        compared = self._annotator_comparisons.get(labeler)
        return judge(labeler, estimate, interval, baseline, compared, self.problems, annotators).code

    def annotator_baseline(self, labeler: str | None = None) -> AnnotatorBaseline:
        """Return the kappa of a typical annotator, and the labeler compared with it, on the same items."""
        name = self._name(labeler)
        if name not in self._baselines:
            estimate, level = self.kappas[name].estimate, self.confidence_level
            self._baselines[name] = annotator_baseline(estimate, confidence_level=level)
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
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict on each labeler."""
        return {name: self.verdict(name) for name in self.kappas}

    def verdict(self, labeler: str | None = None) -> Verdict:
        """Return whether the labels of a labeler can be trusted, as a grade and a sentence."""
        name = self._name(labeler)
        if name not in self._verdicts:
            interval = self.kappas[name].confidence_interval(self.confidence_level)
            compared = self._annotator_comparisons.get(name)
            annotators = partial(self.annotators, name) if self.knows_annotators else None
            known = self.annotator_baseline(name), compared, self.problems, annotators
            self._verdicts[name] = judge(name, self.kappas[name].estimate, interval, *known)
        return self._verdicts[name]

    def next_step(self, labeler: str | None = None) -> NextStep:
        """Return what to do next about a labeler, such as the category to fix first."""
        name = self._name(labeler)
        tables = (
            () if self.kappas[name].exact is None else self._table(what, name) for what in ("categories", "confusion")
        )
        return next_step(self.verdict(name), self.problems, *tables)

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

    def gate(
        self,
        fail_under: float | str | None = None,
        *,
        on: str = "low",
        keep: float | None = None,
        margin: float | None = None,
        min_coverage: float | None = None,
    ) -> Gate:
        """Test whether the labelers are good enough: each passes, fails, or is undecided.

        Parameters
        ----------
        fail_under
            The least allowed kappa. A labeler passes if its lower confidence limit is at least this, and fails if its
            upper limit is below. Or ``"annotators"``, to test whether it is as good as a typical annotator. Or a rate
            against the votes: ``"recall:outage=0.8"``, also ``precision`` and ``f1``, or ``"agreement=0.8"``; with two
            categories ``tpr`` and ``tnr``, followed by the positive one, are sensitivity and specificity.
        on
            ``"low"``, or ``"value"`` to compare kappa itself instead of its confidence limits.
        keep, margin
            With ``fail_under="annotators"``: the share of a typical annotator's kappa above random labels that the
            labeler must keep, 0.8 by default, or how far its kappa may be below that of a typical annotator.
        min_coverage
            The least allowed share of items with a suggested label.

        Examples
        --------
        >>> import dhkappa
        >>> sim = dhkappa.simulate(300, labelers={"llm": 0.9}, annotators=4, rng=1)
        >>> dhkappa.audit(sim.votes, sim.suggested).gate("annotators", keep=0.9).outcome
        'pass'
        """
        level = self.confidence_level
        tested = {name: (kappa.estimate, kappa.confidence_interval(level)) for name, kappa in self.kappas.items()}
        options: dict[str, Any] = {"on": on, "keep": keep, "margin": margin, "min_coverage": min_coverage}
        return gate_of(tested, fail_under, **options, problems=self.problems)

    def sample_sizes(self, labeler: str | None = None) -> Table:
        """Return the number of items that narrower intervals would need, voted on like these; see ``dhkappa.plan``.

        ``items`` in all, ``more_items`` and ``more_votes`` than there are, and ``items_assured`` for 0.9 assurance.
        """
        name = self._name(labeler)
        estimate, level = self.kappas[name].estimate, self.confidence_level
        interval = self.kappas[name].confidence_interval(level)
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
            for note in (*kappa.notes, *(compared.notes if compared else ())):
                if not any(problem.covers(note.code, name) for problem in self.problems):
                    about.setdefault(note, []).append(name)
        found = [
            note if len(names) == len(self.kappas) else replace(note, message=f"{', '.join(names)}: {note.message}")
            for note, names in about.items()
        ]
        if self._item_votes is not None and self._item_votes.find is not None:
            text = "The table is too large to be fetched: the votes were counted, and the annotators are unknown."
            found.append(Note("annotators-not-fetched", text))
        found += map(source_note, self._shown.notes if self._shown else ())
        found += self.baseline.notes if self.baseline else ()
        if self.comparison is None:
            return tuple(found)
        # Notes on single labelers are there already, and excluded items too if all labelers have the same items.
        sizes = {kappa.n_items for kappa in (*self.kappas.values(), *self.comparison.kappas.values())}
        known = {"source", "equals-majority", *(["items-excluded"] if len(sizes) == 1 else [])}
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


def sample_of_rows(item_votes: ItemVotes, name: str, pool: Pool, known: dict[str, Sample]) -> Sample:
    """Return the eligible rows with the labels of a labeler, computed once."""
    if name not in known:
        known[name] = sample_of(item_votes.labeled_patterns(name), pool=pool)
    return known[name]
