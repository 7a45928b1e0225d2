"""MultilabelAudit: data in which a vote is a set of labels, audited as a yes/no question for each category."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from dhkappa.auditing import Audit
from dhkappa.core import Categories, Label
from dhkappa.errors import Problem, category_not_found, counted, masked, shown_problems
from dhkappa.stats.gate import Gate
from dhkappa.stats.grades import cannot_judge
from dhkappa.stats.notes import Note
from dhkappa.stats.result import Kappa
from dhkappa.table import Display, Table, plain


class CategoryAudits(Mapping[Label, Audit]):
    """The ``Audit`` of each category, computed when it is first used."""

    def __init__(self, categories: Categories, make: Callable[[Label], Audit]) -> None:
        self._categories, self._make = categories, make
        self._made: dict[Label, Audit] = {}

    def __getitem__(self, category: Label) -> Audit:
        if category not in self._categories:
            raise category_not_found(category, self._categories, "category")
        if category not in self._made:
            self._made[category] = self._make(category)
        return self._made[category]

    def __contains__(self, category: object) -> bool:
        return category in self._categories

    def __iter__(self) -> Iterator[Label]:
        return iter(self._categories)

    def __len__(self) -> int:
        return len(self._categories)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MultilabelAudit(Display):
    """The results of ``dhkappa.audit`` for data in which a vote is a set of labels.

    Attributes
    ----------
    table : one row per labeler and category, the lowest kappa first, undefined ones last: ``n_suggested`` is the
        number of items for which the category is suggested, ``vote_share`` the share of votes that have it, ``kappa``
        with its confidence interval, ``pvalue`` of the test against random labels, ``pvalue_holm`` adjusted for all
        categories of the labeler, and ``fleiss``, the agreement of annotators on this category
    audits : the ``Audit`` of each category, with labels ``"no"`` and ``"yes"``; computed when it is first used
    kappas : the kappa of each category, by labeler
    labelers : the names of the labelers
    confidence_level : confidence level of all intervals
    notes : what to know about the results
    problems : what is wrong, or may be wrong, with the data, most severe first; see ``Dataset.check``
    """

    table: Table
    audits: Mapping[Label, Audit]
    kappas: dict[str, dict[Label, Kappa]]
    labelers: tuple[str, ...]
    confidence_level: float
    notes: tuple[Note, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def categories(self) -> Categories:
        """The categories, in order."""
        return tuple(self.audits)

    @property
    def summary(self) -> str:
        """The answer in two sentences for each labeler: how many categories are better than random, and the worst."""
        return " ".join(map(self._summary, self.labelers))

    def _summary(self, labeler: str) -> str:
        if unjudged := cannot_judge(labeler, self.problems):
            return unjudged.headline
        rows = [row for row in self.table if row["labeler"] == labeler and not math.isnan(row["kappa"])]
        if not rows:
            return f"{labeler} cannot be judged: kappa is undefined for every category."
        better = sum(row["pvalue_holm"] < 1 - self.confidence_level for row in rows)
        worst = rows[0]
        lowest = f"The lowest kappa is {worst['kappa']:.2f}, for {worst['category']!r}."
        said = f"{labeler} is better than random labels in {better:,} of {counted(len(rows), 'category')}"
        return f"{said} (this says nothing about how good: see the verdict of a category with --category). {lowest}"

    def to_markdown(self, *, title: str = "Label audit", gate: Gate | None = None) -> str:
        """Return a short report as Markdown, for example for a pull request."""
        text: str = import_module("dhkappa.report.markdown").multilabel_page(self, title=masked(title), gate=gate)
        return text

    def _display(self) -> Iterator[str | Table | Sequence[str]]:
        problems, notes = shown_problems(self.problems)
        yield problems
        yield self.summary
        yield self.table
        yield [*notes, *(note.text for note in self.notes)]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN is None."""
        return {
            "kind": "multilabel",
            "confidence_level": self.confidence_level,
            "summary": self.summary,
            "problems": [problem.to_dict() for problem in self.problems],
            "labelers": list(self.labelers),
            "categories": [plain(category) for category in self.categories],
            "table": self.table.to_json(),
            "notes": [note.to_dict() for note in self.notes],
        }
