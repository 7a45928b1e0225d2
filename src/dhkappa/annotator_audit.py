"""Audits without several votes per suggested label: annotators alone, or one vote per item against labelers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from dhkappa.core.grouping import LabeledPatterns
from dhkappa.core.items import Counts, ItemVotes, VoteSource
from dhkappa.core.shown_columns import with_item_columns
from dhkappa.errors import Problem, invalid, masked, one_labeler, shown_problems
from dhkappa.stats.agreement import (
    CohenKappa,
    annotator_agreement,
    category_agreement,
    cohen_kappa,
    disagreements,
    single_disagreements,
    unlabeled_sample,
    votes_by_label,
)
from dhkappa.stats.annotator_result import AnnotatorScores
from dhkappa.stats.annotator_scores import annotator_scores
from dhkappa.stats.annotator_votes import require_items
from dhkappa.stats.intervals import written
from dhkappa.stats.kappa import estimate_fleiss
from dhkappa.stats.next_votes import next_votes
from dhkappa.stats.notes import Note, source_note
from dhkappa.stats.result import Kappa
from dhkappa.stats.sample import Sample, check_integer, check_level, sample_of
from dhkappa.table import Display, Table, plain

_FIRST = 100  # rows of tables in JSON
_SECOND = (
    "With a second vote on some items, dhkappa can tell whether the annotator or the labeler is wrong, and how good "
)
_SECOND += "a typical annotator is."


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AnnotatorAudit(Display):
    """The agreement of annotators with each other, for data without suggested labels.

    Attributes
    ----------
    fleiss : Fleiss' kappa
    confidence_level : confidence level of its interval
    problems : what is wrong with the data, the most severe first
    """

    fleiss: Kappa
    confidence_level: float
    problems: tuple[Problem, ...]
    _item_votes: ItemVotes | None
    _samples: list[Sample] = field(default_factory=list)  # one pattern per row of the item votes, once it is needed
    _scores: list[AnnotatorScores] = field(default_factory=list)  # once they are needed

    def categories(self) -> Table:
        """Return the agreement by category, the most frequent first.

        ``agreement`` is the share of pairs with a vote for the category in which the other vote is for it, too, and
        ``kappa`` Fleiss' kappa of the category against all others.
        """
        return category_agreement(self.fleiss.sample)

    def annotators(self) -> Table:
        """Return how far each annotator agrees with the others, the lowest score first.

        ``agree`` is the mean share of the other votes on an item that equal the annotator's. ``score`` is 0 for votes
        at random; its mean over annotators, each weighted by their share of the votes, is Fleiss' kappa.
        """
        if self._item_votes is None or self._item_votes.annotators is None:
            raise invalid("annotators", "Annotators are unknown.", code="annotators-unknown")
        return annotator_agreement(self._item_votes, self._sample())

    def annotator_scores(self) -> AnnotatorScores:
        """Return all annotators on one scale: who differs from the rest, and who is not shown to know anything."""
        if not self._scores:
            self._scores.append(annotator_scores(self._item_votes, confidence_level=self.confidence_level))
        return self._scores[0]

    @property
    def _known_annotators(self) -> bool:
        return self._item_votes is not None and self._item_votes.annotators is not None

    def disagreements(self, limit: int | None = None) -> Table:
        """Return the items on which annotators disagree, those with the smallest share of agreeing pairs first."""
        if self._item_votes is None:
            message = "The items are unknown: a tally keeps only counts, and a large table needs names of items."
            raise invalid("item", message, code="items-unknown", hint="Pass votes; for a large table also $item.")
        limit = None if limit is None else check_integer("limit", limit, 1)
        return with_item_columns(disagreements(self._item_votes, self._sample(), limit), self._item_votes.shown)

    def _sample(self) -> Sample:
        if not self._samples and self._item_votes is not None:
            self._samples.append(unlabeled_sample(self._item_votes))
        return self._samples[0]

    @property
    def summary(self) -> str:
        """The agreement in a few sentences."""
        kappa, parts = self.fleiss, self.fleiss.parts
        if parts is None or kappa.exact is None:
            return f"The agreement of the annotators is undefined. {kappa.reason or ''}".strip()
        low, high = kappa.confidence_interval(self.confidence_level)
        limits = "" if math.isnan(low) else f" ({written(self.confidence_level, 100)}% CI {low:.2f} to {high:.2f})"
        agree, chance = float(parts.R), float(parts.C_E)
        said = [f"Two votes on the same item agree in {agree:.0%} of cases; {chance:.0%} would agree by chance."]
        said.append(f"Fleiss' kappa is {kappa.value:.2f}{limits}.")
        worst = min((row for row in self.categories() if row["kappa"] == row["kappa"]), key=lambda row: row["kappa"])
        said.append(f"Annotators agree least on {worst['category']!r} (kappa {worst['kappa']:.2f}).")
        if self._known_annotators:
            said.append(self.annotator_scores().summary)
        return " ".join(said)

    def tables(self) -> list[tuple[Table, str]]:
        """Return the tables to show, each with the names of its main columns."""
        found = [(self.categories(), "category n_votes vote_share agreement kappa")]
        if self._known_annotators:
            found.append((self.annotator_scores().listed(), "annotator items agree shrunk_score ci deviation remark"))
        if self._item_votes is not None:
            found.append((self.disagreements(_FIRST), "item votes agreement"))
        return found

    @property
    def notes(self) -> tuple[Note, ...]:
        """What to know about the results."""
        text = "There are no suggested labels, so only the annotators were compared with each other."
        scores = self.annotator_scores().notes if self._known_annotators else ()
        note = Note("no-labels", text, "Name the column of labels with $suggested to audit them.")
        return (note, *self.fleiss.notes, *scores, *_shown_notes(self._item_votes))

    def _display(self) -> Iterator[str | Table | Sequence[str]]:
        problems, notes = shown_problems(self.problems)
        yield problems
        yield self.summary
        yield self.categories()
        if self._known_annotators:
            yield self.annotator_scores().listed()
        yield [*notes, *(note.text for note in self.notes)]

    def to_markdown(self, *, title: str = "Label audit") -> str:
        """Return a short report as Markdown, for example for a pull request."""
        text: str = import_module("dhkappa.report.markdown").tables_page(self, title=masked(title))
        return text

    def to_dict(self, limit: int | None = _FIRST) -> dict[str, Any]:
        """Return plain values for JSON, with at most ``limit`` items; NaN is None."""
        known = self._known_annotators
        return {
            "kind": "annotators",
            "confidence_level": self.confidence_level,
            "summary": self.summary,
            "problems": [problem.to_dict() for problem in self.problems],
            "fleiss": self.fleiss.to_dict(self.confidence_level),
            "categories": self.categories().to_json() if self.fleiss.n_items else [],
            "annotators": self.annotators().to_json() if known else None,
            "annotator_scores": self.annotator_scores().to_dict(limit) if known else None,
            "disagreements": None if self._item_votes is None else self.disagreements(limit).to_json(),
            "notes": [note.to_dict() for note in self.notes],
        }


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SingleVoteAudit(Display):
    """Labelers compared with the only vote on each item. Methods take the name of a labeler.

    Attributes
    ----------
    kappas : Cohen's kappa of each labeler
    confidence_level : confidence level of the intervals
    problems : what is wrong with the data, the most severe first
    """

    kappas: dict[str, CohenKappa]
    confidence_level: float
    problems: tuple[Problem, ...]
    _rows: dict[str, LabeledPatterns]
    _item_votes: ItemVotes | None

    @property
    def labelers(self) -> tuple[str, ...]:
        """The names of the labelers."""
        return tuple(self.kappas)

    def confusion(self, labeler: str | None = None) -> Table:
        """Return how often each suggested label meets each vote."""
        name = one_labeler(labeler, self.labelers, "labeler")
        return votes_by_label(self._rows[name], name)

    def disagreements(self, labeler: str | None = None, limit: int | None = None) -> Table:
        """Return the items whose vote differs from the suggested label, in the order of the data."""
        name = one_labeler(labeler, self.labelers, "labeler")
        if self._item_votes is None or self._item_votes.find is not None:
            raise invalid("item", "The items are unknown.", code="items-unknown", hint="Pass votes in memory.")
        limit = None if limit is None else check_integer("limit", limit, 1)
        return with_item_columns(single_disagreements(self._item_votes, name, limit), self._item_votes.shown)

    def next_votes(self, labeler: str | None = None, limit: int = 100) -> Table:
        """Return the items on which one more vote would help most; see ``Audit.next_votes``."""
        votes = require_items(self._item_votes)
        name = one_labeler(labeler, self.labelers, "labeler")
        return with_item_columns(next_votes(votes, name, limit), votes.shown)

    def table(self) -> Table:
        """Return one row per labeler, the highest kappa first."""
        found = sorted(self.kappas.items(), key=lambda pair: (math.isnan(pair[1].value), -pair[1].value))
        columns: dict[str, list[Any]] = {
            "labeler": [name for name, _ in found],
            "items": [kappa.n_items for _, kappa in found],
            "agreement": [kappa.agreement for _, kappa in found],
            "cohen_kappa": [kappa.value for _, kappa in found],
            "low": [kappa.interval.low for _, kappa in found],
            "high": [kappa.interval.high for _, kappa in found],
        }
        return Table(columns, title="Agreement with the only vote on each item")

    @property
    def summary(self) -> str:
        """The agreement in a sentence per labeler."""
        said = []
        for name, kappa in self.kappas.items():
            low, high = kappa.interval
            if not kappa.n_items:
                said.append(f"{name} cannot be compared with the annotators: no item has both a vote and its label.")
                continue
            text = f"{name} gives the annotator's label on {kappa.agreement:.0%} of {kappa.n_items:,} items"
            limits = "" if math.isnan(low) else f", {written(self.confidence_level, 100)}% CI {low:.2f} to {high:.2f}"
            value = "undefined" if kappa.exact is None else f"{kappa.value:.2f}{limits}"
            said.append(f"{text} (Cohen's kappa {value}).")
        return " ".join(said)

    def tables(self) -> list[tuple[Table, str]]:
        """Return the tables to show, each with the names of its main columns."""
        found = [(self.table(), "labeler items agreement cohen_kappa ci")]
        for name in self.labelers:
            found.append((self.confusion(name), "suggested vote items share"))
            if self._item_votes is not None and self._item_votes.find is None:
                found.append((self.disagreements(name, _FIRST), "item suggested vote"))
        return found

    @property
    def notes(self) -> tuple[Note, ...]:
        """What to know about the results."""
        text = "Every item has at most one vote, so a difference may be an error of the labeler or of the annotator."
        return (Note("one-annotator", f"{text} {_SECOND}"), *_shown_notes(self._item_votes))

    def _display(self) -> Iterator[str | Table | Sequence[str]]:
        problems, notes = shown_problems(self.problems)
        yield problems
        yield self.summary
        yield self.table()
        yield [*notes, *(note.text for note in self.notes)]

    def to_markdown(self, *, title: str = "Label audit") -> str:
        """Return a short report as Markdown, for example for a pull request."""
        text: str = import_module("dhkappa.report.markdown").tables_page(self, title=masked(title))
        return text

    def to_dict(self, limit: int | None = _FIRST) -> dict[str, Any]:
        """Return plain values for JSON, with at most ``limit`` items per labeler; NaN is None."""
        known = self._item_votes is not None and self._item_votes.find is None
        return {
            "kind": "single_votes",
            "confidence_level": self.confidence_level,
            "summary": self.summary,
            "problems": [problem.to_dict() for problem in self.problems],
            "labelers": {
                name: {
                    "n_items": kappa.n_items,
                    "agreement": plain(kappa.agreement),
                    "cohen_kappa": plain(kappa.value),
                    "se": plain(kappa.se),
                    "low": plain(kappa.interval.low),
                    "high": plain(kappa.interval.high),
                    "confusion": self.confusion(name).to_json(),
                    "disagreements": self.disagreements(name, limit).to_json() if known else None,
                }
                for name, kappa in self.kappas.items()
            },
            "notes": [note.to_dict() for note in self.notes],
        }


def _shown_notes(item_votes: ItemVotes | None) -> Iterator[Note]:
    """Return notes on the columns of items that are shown."""
    return map(source_note, item_votes.shown.notes if item_votes is not None and item_votes.shown else ())


def audit_annotators(
    counts: Counts,
    item_votes: ItemVotes | None,
    *,
    confidence_level: float = 0.95,
    problems: Sequence[Problem] = (),
) -> AnnotatorAudit:
    """Audit annotators without suggested labels; ``item_votes`` holds the same votes with their items, if known."""
    sample = sample_of(counts.unlabeled_patterns(), labeled=False)
    fleiss = Kappa(estimate_fleiss(sample), VoteSource(lambda: item_votes))
    return AnnotatorAudit(fleiss, check_level(confidence_level), tuple(problems), item_votes)


def audit_single_votes(
    counts: Counts,
    item_votes: ItemVotes | None,
    names: Sequence[str],
    *,
    confidence_level: float = 0.95,
    problems: Sequence[Problem] = (),
) -> SingleVoteAudit:
    """Compare labelers with the only vote on each item."""
    columns = counts.columns
    given = ("sample_weight", columns.weight), ("strata", columns.stratum), ("clusters", columns.cluster)
    for name, values in given:
        if values is not None:
            message = f"An audit with one vote per item does not support {name} yet."
            raise invalid(name, message, code="option-not-supported")
    rows = {name: counts.labeled_patterns(name) for name in names}
    kappas = {name: cohen_kappa(of, confidence_level) for name, of in rows.items()}
    return SingleVoteAudit(kappas, check_level(confidence_level), tuple(problems), rows, item_votes)
