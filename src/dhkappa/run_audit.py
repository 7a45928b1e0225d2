"""Run the statistics of an audit: of all labelers, or of each category of multi-label data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dhkappa.auditing import Audit
from dhkappa.core import Label
from dhkappa.core.annotator_groups import AnnotatorColumn
from dhkappa.core.item_table import item_table_of_counts
from dhkappa.core.items import Counts, ItemVotes, VoteSource
from dhkappa.core.label_sets import SettledSets
from dhkappa.core.labels import SourceNote
from dhkappa.core.slices import SliceColumn
from dhkappa.errors import DataError, Problem
from dhkappa.multilabel import CategoryAudits, MultilabelAudit
from dhkappa.resources import Progress
from dhkappa.stats.annotator_votes import sample_of_rows
from dhkappa.stats.annotators import compare_with_annotators
from dhkappa.stats.common_items import compare_on_common_items
from dhkappa.stats.compare import AnnotatorComparison
from dhkappa.stats.comparison import Comparison
from dhkappa.stats.kappa import estimate_dh, fleiss_estimate, kappa_estimate
from dhkappa.stats.multiple_tests import holm
from dhkappa.stats.notes import Note, source_note
from dhkappa.stats.permutation import PermutationTest
from dhkappa.stats.result import Kappa
from dhkappa.stats.sample import Pool, Rng, Sample, check_level, generator, own_pool, sample_of
from dhkappa.stats.weights import Weights
from dhkappa.table import Table

_NOTE = "Each category was audited as a yes/no question: is it among the labels of the item?"


@dataclass(frozen=True, slots=True)
class _Without:
    """Audits data without some annotators; not after pickling, as data may hold an open file."""

    again: Callable[..., Any]
    data: Any
    names: tuple[str, ...]
    rng: int | None

    def __call__(self, *annotators: Any, slices: bool = False) -> Any:
        data = self.data.exclude_annotators(*annotators)
        return self.again(data if slices else data.without_slices(), list(self.names), rng=self.rng)

    def __reduce__(self) -> tuple[Any, ...]:
        return _without_data, ()


def _without_data() -> Callable[..., Any]:
    """Return what takes the place of ``_Without`` in a copy of an audit."""
    return _refuse


def _refuse(*annotators: Any, slices: bool = False) -> Any:
    message = "A copied or pickled audit no longer has its data, so no annotator can be left out."
    raise DataError(message, code="audit-detached", hint="Use the first audit, or audit the data again.")


def audit_of(
    counts: Counts,
    item_votes: ItemVotes | None,
    names: Sequence[str],
    *,
    weights: Weights | None = None,
    pool: Pool = None,
    confidence_level: float = 0.95,
    any_time: bool = False,
    rng: Rng = None,
    progress: bool = False,
    problems: Sequence[Problem] = (),
    slices: Sequence[SliceColumn] = (),
    annotator_columns: Sequence[AnnotatorColumn] = (),
    declared: bool = False,
    missing: frozenset[Label] = frozenset(),
    data: Any = None,
    again: Callable[..., Any] | None = None,
) -> Audit:
    """Run all statistics for some labelers; ``item_votes`` holds the same votes with their items, if known.

    ``data`` is what the votes were counted from, and ``again`` audits such data with the same options.
    """
    confidence_level, source, pool = check_level(confidence_level), generator(rng), own_pool(pool)
    kappas: dict[str, Kappa] = {}
    tests: dict[str, PermutationTest | None] = {}
    compared: dict[str, AnnotatorComparison] = {}
    samples: dict[str, Sample] = {}
    item_votes = None if item_votes is None else item_votes.merged()
    with Progress(len(names) + 1, "audit", progress) as bar:
        for name in names:
            sample = sample_of(counts.labeled_patterns(name), pool=pool)
            votes = VoteSource(lambda: item_votes, name)
            kappa = kappas[name] = Kappa(kappa_estimate(sample, weights), votes, any_time)
            tests[name] = None if kappa.exact is None or sample.clustered else kappa.permutation_test()
            if item_votes is not None and item_votes.annotators is not None:
                rows = sample_of_rows(item_votes, name, pool, samples)
                level = kappa.single_level(confidence_level)
                compared[name] = compare_with_annotators(item_votes, name, level, sample=rows, weights=weights)
            bar.advance()
        comparison = None
        if len(names) > 1:
            options: dict[str, Any] = {"confidence_level": confidence_level, "any_time": any_time}
            table = item_table_of_counts(counts, names)
            on_common = compare_on_common_items(table, weights=weights, pool=pool, rng=source, **options)
            comparison = Comparison.of(*on_common, votes=lambda: item_votes, **options)
        panel = sample_of(counts.unlabeled_patterns(), labeled=False, pool=pool)
        fleiss = Kappa(fleiss_estimate(panel, weights), VoteSource(lambda: item_votes), any_time)
    results = kappas, tests, comparison, fleiss, confidence_level, tuple(problems)
    known = None
    if again is not None and hasattr(data, "exclude_annotators"):
        known = _Without(again, data, tuple(names), rng if isinstance(rng, int) else None)
    columns = {column.name: column for column in slices}
    sliced = {column.name: column for column in annotator_columns}
    tally = counts, counts.categories if declared else None, missing
    return Audit(
        *results,
        compared,
        item_votes,
        samples,
        pool,
        weights,
        columns,
        tally,
        any_time=any_time,
        _annotator_columns=sliced,
        _without=known,
    )


def multilabel_audit(
    counts: Counts,
    item_votes: ItemVotes | None,
    sets: SettledSets,
    names: Sequence[str],
    *,
    answers: Mapping[Label, Counts],
    problems: Sequence[Problem] = (),
    pool: Pool = None,
    confidence_level: float = 0.95,
    rng: Rng = None,
    progress: bool = False,
) -> MultilabelAudit:
    """Audit each category as a yes/no question; ``answers`` are the yes/no votes on each."""
    level, pool = check_level(confidence_level), own_pool(pool)
    notes = (*counts.source_notes, *sets.notes, SourceNote("multilabel", _NOTE))

    def audit(category: Label) -> Audit:
        votes = None if item_votes is None else sets.item_votes(item_votes, category)
        own = replace(answers[category], source_notes=notes)
        return audit_of(own, votes, names, pool=pool, confidence_level=level, rng=rng, problems=problems)

    kappas: dict[str, dict[Label, Kappa]] = {name: {} for name in names}
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    with Progress(len(sets.categories), "audit", progress) as bar:
        for category in sets.categories:
            own_answers = replace(answers[category], source_notes=notes)
            for name in names:
                kappa = Kappa(estimate_dh(sample_of(own_answers.labeled_patterns(name), pool=pool)))
                kappas[name][category] = kappa
                rows[name].append(_row(name, category, kappa, level))
            bar.advance()
    for own in rows.values():
        for row, adjusted in zip(own, holm([row["pvalue"] for row in own]), strict=True):
            row["pvalue_holm"] = adjusted
    whole = [
        row for own in rows.values() for row in sorted(own, key=lambda row: (math.isnan(row["kappa"]), row["kappa"]))
    ]
    names_of = ("labeler", "category", "items", "n_suggested", "vote_share", "kappa", "low", "high", "pvalue")
    columns = {column: [row[column] for row in whole] for column in (*names_of, "pvalue_holm", "fleiss", "reason")}
    table = Table(columns, title="Each category as a yes/no question, the lowest kappa first")
    audits = CategoryAudits(sets.categories, audit)
    said = (*_excluded(kappas), *map(source_note, notes))
    return MultilabelAudit(table, audits, kappas, tuple(names), level, said, tuple(problems))


def _excluded(kappas: Mapping[str, Mapping[Label, Kappa]]) -> Iterator[Note]:
    """Yield how many items were excluded: the same for every category, but not for every labeler."""
    about: dict[Note, list[str]] = {}
    for name, own in kappas.items():
        for note in next(iter(own.values())).notes if own else ():
            if note.code == "items-excluded":
                about.setdefault(note, []).append(name)
    for note, names in about.items():
        alike = len(names) == len(kappas)
        yield note if alike else replace(note, message=f"{', '.join(names)}: {note.message}")


def _row(name: str, category: Label, kappa: Kappa, level: float) -> dict[str, Any]:
    """Return the row of a category, without the adjusted p-value."""
    low, high = kappa.confidence_interval(level)
    test = None if kappa.exact is None else kappa.permutation_test()
    return {
        "labeler": name,
        "category": category,
        "items": kappa.n_items,
        "n_suggested": kappa.estimate.sums.labels[1],
        "vote_share": math.nan if kappa.parts is None else float(kappa.parts.C["yes"]),
        "kappa": kappa.value,
        "low": low,
        "high": high,
        "pvalue": math.nan if test is None else test.pvalue,
        "fleiss": kappa.fleiss,
        "reason": kappa.reason,
    }
