"""Check: what was understood of the data, and the problems that were found in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dhkappa.core import Label
from dhkappa.core.items import Counts, add
from dhkappa.core.label_sets import YES_NO, SettledSets
from dhkappa.errors import DataError, OutOfMemoryError, Problem, counted
from dhkappa.inputs.problems import Evidence, Rule, accept, copies, items, labels, rows, votes
from dhkappa.inputs.problems.sets import SingleLabels, labels_not_in_votes, of_answers
from dhkappa.table import Display, Table

_CATEGORIES = 10  # that are shown
_FORMATS = {
    "wide": "one row per item, one column per annotator",
    "long": "one row per vote",
    "counts": "numbers of votes per category",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, its role, and why it has that role.

    Attributes
    ----------
    name : the name of the column
    table : ``"votes"`` or ``"items"``
    role : such as ``"annotator"`` or ``"suggested label of llm"``; empty if the column is ignored
    reason : ``"named by you"``, ``"recognized by its name"``, ``"known from the export"`` or ``"ignored"``
    """

    name: str
    table: str
    role: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Check(Display):
    """The result of ``Dataset.check``.

    Attributes
    ----------
    problems : the problems, most severe first
    format : ``"wide"``, ``"long"``, ``"counts"``, ``"export"``, ``"arrays"`` or ``"tally"``
    tool : the annotation tool of an export
    columns : the columns of a table, with the role of each
    n_items, n_votes : number of items and votes
    n_annotators : number of annotators, None if they are unknown
    labelers : the names of the labelers
    categories : each category with its number of votes, the most frequent first
    excluded : number of items with ``no_votes`` and ``one_vote``
    unlabeled : number of items without a label, by labeler
    multilabel : how cells hold sets of labels, such as ``"separated by ;"``; None if a cell holds one label
    filters : what each filter has left out, as ``Dataset.left_out``
    """

    problems: tuple[Problem, ...]
    format: str = ""
    tool: str | None = None
    columns: tuple[Column, ...] = ()
    n_items: int | None = None
    n_votes: int | None = None
    n_annotators: int | None = None
    labelers: tuple[str, ...] = ()
    categories: tuple[tuple[Label, int], ...] = ()
    excluded: dict[str, int] = field(default_factory=dict)
    unlabeled: dict[str, int] = field(default_factory=dict)
    multilabel: str | None = None
    filters: tuple[Any, ...] = ()

    @property
    def has_errors(self) -> bool:
        """Whether a problem of severity ``"error"`` was found that is not accepted."""
        return any(problem.severity == "error" and not problem.accepted for problem in self.problems)

    def understood(self) -> list[str]:
        """Return what was understood, as sentences."""
        meaning = f"from {self.tool}" if self.tool else _FORMATS.get(self.format, "")
        found = [f"Format: {self.format}{f' ({meaning})' if meaning else ''}."] if self.format else []
        found += [f"Cells hold sets of labels, {self.multilabel}."] if self.multilabel else []
        if self.n_items is None or self.n_votes is None:
            return found
        who = [] if self.n_annotators is None else [f"{counted(self.n_annotators, 'annotator')}"]
        numbers = [counted(self.n_items, "item"), counted(self.n_votes, "vote"), *who]
        numbers += [f"{counted(len(self.labelers), 'labeler')}: {', '.join(self.labelers)}"] if self.labelers else []
        found.append(f"{', '.join(numbers)}.")
        first = ", ".join(f"{label} ({n:,})" for label, n in self.categories[:_CATEGORIES])
        more = f", and {len(self.categories) - _CATEGORIES:,} more" if len(self.categories) > _CATEGORIES else ""
        found.append(f"{counted(len(self.categories), 'category').capitalize()} with votes: {first}{more}.")
        reasons = {"no_votes": "without votes", "one_vote": "with one vote"}
        left_out = [f"{n:,} {reasons[reason]}" for reason, n in self.excluded.items() if n]
        left_out += [f"{n:,} without a label of {name}" for name, n in self.unlabeled.items() if n]
        return [*found, f"Excluded items: {', '.join(left_out) or 'none'}.", *(one.note for one in self.filters)]

    def column_table(self) -> Table:
        """Return the columns with their roles."""
        several = len({column.table for column in self.columns}) > 1
        shown = {"table": [column.table for column in self.columns]} if several else {}
        shown |= {"column": [column.name for column in self.columns], "role": [one.role for one in self.columns]}
        return Table(shown | {"reason": [column.reason for column in self.columns]}, title="Columns")

    def _display(self) -> Iterator[str | Table | Sequence[str]]:
        yield from self.understood()
        if self.columns:
            yield self.column_table()
        yield "Problems:" if self.problems else "No problems found."
        yield [problem.labeled_text() for problem in self.problems]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "problems": [problem.to_dict() for problem in self.problems],
            "format": self.format or None,
            "tool": self.tool,
            "columns": [{name: getattr(one, name) for name in Column.__slots__} for one in self.columns],
            "n_items": self.n_items,
            "n_votes": self.n_votes,
            "n_annotators": self.n_annotators,
            "labelers": list(self.labelers),
            "categories": [{"category": label, "votes": n} for label, n in self.categories],
            "excluded": self.excluded or None,
            "unlabeled": self.unlabeled,
            "multilabel": self.multilabel,
            "filters": [one.to_dict() for one in self.filters],
        }


def find_problems(evidence: Evidence, allow: Iterable[str] = ()) -> tuple[Problem, ...]:
    """Apply the rules; those about vote patterns only if all votes are votes for categories."""
    found = [problem for rule in (*labels.RULES, *votes.RULES, *items.RULES) for problem in rule(evidence)]
    if any(one.code == "looks-like-counts" for one in found):  # numbers of votes are no codes
        found = [one for one in found if one.code != "labels-not-in-votes"]
    if not _has_errors(accept(found, allow)):
        copied = [*copies.labeler_equals_annotator(evidence)]
        evidence = replace(evidence, copies=tuple(name for one in copied for name in one.labelers))
        found += copied
        of_votes = (*labels.RULES_OF_VOTES, *votes.RULES_OF_VOTES, *items.RULES_OF_VOTES)
        found += [problem for rule in of_votes for problem in rule(evidence)]
    return accept(found, allow)


def _has_errors(problems: Iterable[Problem]) -> bool:
    """Tell whether some votes are in doubt: an error that is not accepted and not about a labeler."""
    return any(one.severity == "error" and not one.labelers and not one.accepted for one in problems)


def find_set_problems(
    evidence: Evidence, sets: SettledSets, answers: Mapping[Label, Counts], allow: Iterable[str] = ()
) -> tuple[Problem, ...]:
    """Apply the rules to sets of labels, to single labels, or to ``answers``, the yes/no votes on each category."""
    read = None if evidence.item_votes is None else sets.canonical().apply(evidence.item_votes, None)
    whole, single = (
        replace(evidence, counts=sets.canonical_counts(evidence.counts), item_votes=read),
        SingleLabels.of(evidence, sets),
    )
    found = [*labels_not_in_votes(single, labels.compound_labels(single.categories)[1])]
    of_labels: tuple[Rule, ...] = (labels.category_variants, labels.looks_missing, labels.looks_multilabel)
    of_sets: tuple[Rule, ...] = (*votes.RULES, items.annotator_variants, items.duplicates_removed)
    found += [problem for rule in of_labels for problem in rule(single)]
    if any(len(own) > 1 for own in sets.sets.values()):  # the separator is right, but not everywhere
        alike = "Separate the labels alike in all cells."
        found = [replace(one, fix=alike, options={}) if one.code == "looks-multilabel" else one for one in found]
    found += [problem for rule in of_sets for problem in rule(whole)]
    found += items.annotators_unused(evidence)
    if (votes_for_labels := single.votes_for_labels()) is not None:
        found += items.not_annotators(replace(single, item_votes=votes_for_labels))
    if not answers or _has_errors(accept(found, allow)):
        return accept(found, allow)
    copied = [*copies.labeler_equals_annotator(whole)]
    equal = tuple(name for one in copied for name in one.labelers)
    every = Evidence(
        add([*answers.values()], YES_NO), evidence.item_votes, evidence.table, labelers=evidence.labelers, copies=equal
    )
    found += copied
    found += [*votes.votes_follow_agreement(whole), *of_answers(votes.labels_from_votes(every))]
    found += [*items.ids_are_row_numbers(every), *items.looks_clustered(whole)]
    found += [problem for rule in (*copies.RULES_OF_VOTES, *rows.RULES_OF_VOTES) for problem in rule(whole)]
    return accept(found, allow)


def check_of(evidence: Evidence, problems: Iterable[Problem], understood: Check) -> Check:
    """Add the problems, and the numbers of counted data, to what was understood of a table."""
    voters = None if evidence.item_votes is None else evidence.item_votes.annotators
    usable = evidence.totals > 1
    return replace(
        understood,
        problems=tuple(problems),
        n_items=evidence.counts.n_items,
        n_votes=evidence.counts.patterns.n_votes(),
        n_annotators=None if voters is None else len(voters),
        labelers=evidence.labelers,
        categories=understood.categories or _voted(evidence),
        excluded={"no_votes": evidence.items(evidence.totals == 0), "one_vote": evidence.items(evidence.totals == 1)},
        unlabeled={name: evidence.items(usable & (evidence.codes(name) < 0)) for name in evidence.labelers},
    )


def _voted(evidence: Evidence) -> tuple[tuple[Label, int], ...]:
    """Return each category that has votes with their number, the most frequent first."""
    order = np.argsort(-evidence.votes, kind="stable").tolist()
    return tuple((evidence.categories[code], int(evidence.votes[code])) for code in order if evidence.votes[code])


def columns_of(table: Any, named: Collection[str]) -> Iterator[Column]:
    """Yield the columns of both tables with their roles; ``named`` are the roles that the user named."""
    roles = table.roles
    known: dict[str | None, str] = {
        roles.item: "item",
        roles.label: "label",
        roles.annotator: "annotator",
        roles.count: "count",
    }
    known |= {**dict.fromkeys(roles.annotators, "annotators"), **dict.fromkeys(roles.counts, "counts")}
    beside: dict[str | None, str] = {
        roles.sample_weight: "sample_weight",
        roles.strata: "strata",
        roles.clusters: "clusters",
    }
    beside |= {**dict.fromkeys(roles.suggested.values(), "suggested")}
    words = {"annotators": "votes of an annotator", "label": "label of the vote", "counts": "number of votes"}
    words |= {
        "count": "number of equal votes",
        "sample_weight": "sample weight",
        "strata": "stratum",
        "clusters": "cluster",
    }
    of = {column: f"suggested label of {name}" for name, column in roles.suggested.items()}
    of |= {name: "shown next to items" for name in table.shown if name not in known and name not in beside}
    frames = [("votes", table.votes, known | ({} if table.items else beside))]
    frames += [] if table.items is None else [("items", table.items, {roles.item: "item"} | beside)]
    for where, frame, used in frames:
        for name in frame.names:
            role = used.get(name) or ("show" if name in table.shown and name in of else None)
            reason = "ignored" if role is None else "named by you" if role in named else "recognized by its name"
            if role is not None and role not in named and table.source.tool:
                reason = "known from the export"
            yield Column(name, where, "" if role is None else of.get(name) or words.get(role, role), reason)


def evidence_of(data: Any, labelers: Sequence[str] | None, *, ordered: bool, fetch: bool) -> Evidence:
    """Return what the rules about problems look at in a ``Dataset``; see ``Dataset.evidence``."""
    roles, counts, labeled, given = data.table and data.table.roles, data.counts, data.labeled, data.given_annotators
    item_votes = data.item_votes() if fetch or roles is None else None
    chosen = counts.columns.labelers if labelers is None or not labeled else map(counts.columns.labeler, labelers)
    return Evidence(
        counts,
        None if item_votes is None else item_votes.merged(),
        data.table,
        ordered=ordered,
        numbers=data.arrays.matrix is not None if roles is None else bool(roles.counts or roles.count),
        labelers=tuple(chosen) if labeled else (),
        listed_labelers="suggested" in data.named_roles,
        listed=given is not None and not any(sign in "".join(given) for sign in "*?["),
    )


def check_dataset(data: Any, allow: Iterable[str] = ()) -> Check:
    """Check a ``Dataset``; see ``Dataset.check``."""
    accept((), allow)
    understood, found = Check(()), []
    try:
        table = data.table
        if table is not None:
            columns = tuple(columns_of(table, data.named_roles))
            understood = Check((), data.format, table.source.tool, columns)
        if data.multilabel is not None:
            understood = replace(understood, multilabel=data.multilabel.notation)
        try:
            data.check_labeled()
        except DataError as error:
            problem = Problem.of(error)
            if problem.code == "no-suggested-labels" and data.multilabel is None:
                text = "There are no suggested labels: an audit compares the annotators with each other."
                problem = replace(problem, severity="info", message=text)
            found.append(problem)
        evidence = data.evidence()
        if data.multilabel is None:
            found += find_problems(evidence, allow)
        else:
            found += find_set_problems(evidence, data.label_sets, data.label_sets.answers(evidence.counts), allow)
            understood = replace(understood, categories=_voted(SingleLabels.of(evidence, data.label_sets)))
    except OutOfMemoryError:
        raise
    except DataError as error:
        return replace(understood, problems=accept([*found, Problem.of(error)], allow))
    return check_of(evidence, accept(found, allow), replace(understood, format=data.format, filters=data.left_out))
