"""A short report as Markdown: problems, the verdict, the gate, and the main tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from dhkappa.errors import flag, said
from dhkappa.report import filter_texts, grid, optional, other_annotators_text, text_of
from dhkappa.report.pool import pool_cells, pool_notes
from dhkappa.report.slices import slice_notes, slices_shown

if TYPE_CHECKING:
    from dhkappa.annotator_audit import AnnotatorAudit, SingleVoteAudit
    from dhkappa.auditing import Audit
    from dhkappa.errors import Problem
    from dhkappa.multilabel import MultilabelAudit
    from dhkappa.stats.gate import Gate
    from dhkappa.stats.pool_result import PoolShares

_CATEGORY_COLUMNS = "category items kappa ci precision recall one_annotator vote_share label_share"
_FIRST_ITEMS = 10
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~@!&$])")


def page(audit: Audit, *, title: str = "Label audit", gate: Gate | None = None) -> str:
    """Return the report of an audit as Markdown."""
    return "\n\n".join(_parts(audit, title, gate)) + "\n"


def multilabel_page(audit: MultilabelAudit, *, title: str = "Label audit", gate: Gate | None = None) -> str:
    """Return the report of an audit of sets of labels as Markdown."""
    columns = "category n_suggested vote_share kappa ci pvalue_holm fleiss items"
    labeler = "labeler " if len(audit.labelers) > 1 else ""
    table = markdown_table(grid(audit.table, labeler + columns, audit.confidence_level))
    notes = [said(note.message, note.hint, flag) for note in audit.notes]
    return "\n\n".join([*_head(audit, title, gate), table, "### Notes", bullets(notes)]) + "\n"


def tables_page(audit: AnnotatorAudit | SingleVoteAudit, *, title: str = "Label audit") -> str:
    """Return the report of an audit without labels, or with one vote per item, as Markdown."""
    parts = [*_head(audit, title, None)]
    for table, columns in audit.tables():
        rows = [*islice(table, _FIRST_ITEMS)]
        if rows:
            more = f" (the first {len(rows)} of {len(table):,} rows)" if len(table) > len(rows) else ""
            cells = grid(rows, columns, audit.confidence_level, shown=table.shown)
            parts += [f"### {escaped(table.title)}{more}", markdown_table(cells)]
    notes = [said(note.message, note.hint, flag) for note in audit.notes]
    return "\n\n".join([*parts, "### Notes", bullets(notes)]) + "\n"


def pool_page(found: PoolShares, problems: Iterable[Problem]) -> str:
    """Return shares of a pool as Markdown."""
    parts = ["## Shares of the pool", *map(escaped, filter_texts(found.notes))]
    said_first = (one for one in problems if one.severity != "info" and not one.accepted)
    parts += [f"> **{one.severity.capitalize()}:** {escaped(one.text(flag))}" for one in said_first]
    parts += [f"**{escaped(found.summary)}**", markdown_table(pool_cells(found))]
    notes = pool_notes(found)
    return "\n\n".join([*parts, *(["### Notes", bullets(notes)] if notes else [])]) + "\n"


def _head(
    audit: Audit | MultilabelAudit | AnnotatorAudit | SingleVoteAudit, title: str, gate: Gate | None, answer: str = ""
) -> Iterator[str]:
    """Yield the title, the problems, the answer, by default the summary, and the gate."""
    yield f"## {escaped(title)}"
    yield from map(escaped, filter_texts(audit.notes))
    for problem in audit.problems:
        if problem.severity != "info":
            word = "accepted" if problem.accepted else problem.severity
            yield f"> **{word.capitalize()}:** {escaped(problem.text(flag))}"
    yield f"**{escaped(answer or audit.summary)}**"
    if gate is not None:
        yield escaped(gate.text)


def bullets(notes: Iterable[str]) -> str:
    """Return a list."""
    return "\n".join(f"- {escaped(note)}" for note in notes)


def _parts(audit: Audit, title: str, gate: Gate | None) -> Iterator[str]:
    yield from _head(audit, title, gate, audit.headline)
    level, best = audit.confidence_level, audit.ranking[0]
    yield f"**Next:** {escaped(audit.next_step(best).text)}"
    if audit.baseline is not None:
        yield escaped(audit.baseline.text)
    if audit.details:
        yield escaped(audit.details)
    yield markdown_table(
        grid(audit.rows(), "labeler verdict kappa ci baseline_random baseline_annotator items coverage", level)
    )
    if text := other_annotators_text(audit, best):
        yield escaped(text)
    worst = sorted(optional(audit.categories, best) or (), key=lambda row: -row["loss"])
    if worst:
        yield f"### Categories of {escaped(best)}"
        yield markdown_table(grid(worst[:_FIRST_ITEMS], _CATEGORY_COLUMNS, level))
    for found in slices_shown(audit, best):
        yield f"### {escaped(found.heading)}"
        yield markdown_table(grid(found.rows, found.columns, level))
        yield from map(escaped, found.texts)
    queue = optional(audit.review, best, _FIRST_ITEMS)
    rejected = [row for row in islice(queue or (), _FIRST_ITEMS) if row["differential"] < 0]
    if queue is not None and rejected:
        yield f"### Items of {escaped(best)} to review first"
        yield markdown_table(grid(rejected, "item suggested majority votes", level, shown=queue.shown))
    scores = optional(audit.annotator_scores)
    if scores is not None and scores.n_tested:
        yield "### Annotators"
        yield escaped(scores.summary)
        rows = [*islice(scores.listed(), _FIRST_ITEMS)]
        yield markdown_table(grid(rows, "annotator items agree shrunk_score ci deviation remark", level))
    notes = [said(note.message, note.hint, flag) for note in (*audit.notes, *slice_notes(audit, best))]
    if notes:
        yield "### Notes"
        yield bullets(notes)


def markdown_table(parts: tuple[Sequence[str], Iterable[Sequence[str]], Sequence[bool]]) -> str:
    """Return a table with heads, cells, and which columns hold numbers."""
    heads, rows, numbers = parts
    lines = [[*map(escaped, heads)], ["---:" if number else "---" for number in numbers]]
    cells: list[Sequence[str]] = [[escaped(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in [*lines, *cells])


def escaped(text: Any) -> str:
    """Return text on one line in which no character has a meaning in Markdown or HTML."""
    return _SPECIAL.sub(r"\\\1", text_of(text, 2_000))
