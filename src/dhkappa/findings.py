"""Audit: what was found, for every labeler and every question."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dhkappa.data.ballots import Ballots, read_ballots
from dhkappa.data.cells import cells_of
from dhkappa.data.tally import Tally, tally
from dhkappa.errors import DataError, shown
from dhkappa.progress import Progress
from dhkappa.stats.annotators import annotators
from dhkappa.stats.chance import RandomLabelTest
from dhkappa.stats.compare import Comparison, compare_of
from dhkappa.stats.estimators import dh_kappa_of, fleiss_kappa_of, ordinal_kappa_of
from dhkappa.stats.intervals import check_level
from dhkappa.stats.items import review
from dhkappa.stats.notes import Note
from dhkappa.stats.people import People, people
from dhkappa.stats.result import Kappa
from dhkappa.stats.sample import sample_of
from dhkappa.table import Table

LABELER = "labeler"
"""What one labeler is called who has no name."""


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
    ordinal: dict[str, Kappa]
    tests: dict[str, RandomLabelTest | None]
    comparison: Comparison | None
    fleiss: Kappa
    level: float
    _tables: dict[tuple[str, str], Table]
    _people: dict[str, People | DataError]
    _ballots: Ballots | None
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
        """Return each annotator's part in kappa, and kappa without the annotator's votes."""
        self._identities()
        return self._table("annotators", labeler)

    def people(self, labeler: str | None = None) -> People:
        """Return the labeler beside each annotator, taken as a labeler and judged by all others."""
        self._identities()
        found = self._people[self._named(labeler)]
        if isinstance(found, DataError):
            raise found
        return found

    def items(self, labeler: str | None = None, most: int | None = None) -> Table:
        """Return the review queue: items by how clearly the panel rejects the suggested label, the worst first.

        Parameters
        ----------
        labeler
            Whose labels.
        most
            How many items; all by default.
        """
        if self._ballots is None:
            raise DataError(
                "items need the votes on each item, which a Tally does not keep: pass votes or counts to audit."
            )
        key = self._named(labeler), most
        if key not in self._queues:
            self._queues[key] = review(self._ballots, key[0], most=most)
        return self._queues[key]

    def table(self) -> Table:
        """Return a row for each labeler, the best first, with the marks to read its kappa by."""
        order = sorted(self.kappas, key=lambda name: (math.isnan(self.kappas[name].value), -self.kappas[name].value))
        ordered = [self.kappas[name] for name in order]
        limits = [kappa.interval(self.level) for kappa in ordered]
        return Table(
            {
                "labeler": order,
                "kappa": [kappa.value for kappa in ordered],
                "low": [limit.low for limit in limits],
                "high": [limit.high for limit in limits],
                "floor": [kappa.floor for kappa in ordered],
                "ceiling": [kappa.ceiling for kappa in ordered],
                "items": [kappa.n_items for kappa in ordered],
                "votes": [kappa.n_votes for kappa in ordered],
            },
            title=f"Kappa by labeler, {self.level:.4g} intervals",
        )

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
        if self.comparison is None:
            return tuple(found)
        # Where the labelers share all their items, what was dropped has been said.
        sizes = {kappa.n_items for kappa in (*self.kappas.values(), *self.comparison.kappas.values())}
        said = {"items-dropped"} if len(sizes) == 1 else set()
        return (*found, *(note for note in self.comparison.notes if note.code not in said))

    def __repr__(self) -> str:
        lines = [repr(self.table()), f"Annotators among themselves: {self.fleiss!r}"]
        if self.comparison:
            lines.append(repr(self.comparison.differences))
        for name in self.labelers:
            found = self._people.get(name)
            if isinstance(found, People):
                lines.append(repr(found))
        lines += [f"- {note.text}" for note in self.notes]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        tables = [self.table(), *([self.comparison.differences] if self.comparison else [])]
        notes = "".join(f"<li>{html.escape(note.text)}</li>" for note in self.notes)
        fleiss = f"<p>Annotators among themselves: {html.escape(repr(self.fleiss))}</p>"
        return "".join(table._repr_html_() for table in tables) + fleiss + (f"<ul>{notes}</ul>" if notes else "")

    def to_dict(self, most: int | None = 100) -> dict[str, Any]:
        """Return plain values, ready for JSON; NaN is None, and ``most`` limits the items of each review queue."""
        return {
            "level": self.level,
            "labelers": {name: self._labeler_dict(name, most) for name in self.labelers},
            "comparison": self.comparison.to_dict() if self.comparison else None,
            "fleiss": self.fleiss.to_dict(),
            "notes": [{"code": note.code, "text": note.text} for note in self.notes],
        }

    def _labeler_dict(self, name: str, most: int | None) -> dict[str, Any]:
        test, found = self.tests[name], self._people.get(name)
        tables = {what: _rows(self._tables[what, name]) for what, who in self._tables if who == name}
        return {
            "kappa": self.kappas[name].to_dict(),
            "ordinal": self.ordinal[name].to_dict() if name in self.ordinal else None,
            "test": test.to_dict() if test else None,
            **tables,
            "people": found.to_dict() if isinstance(found, People) else None,
            "items": None if self._ballots is None else _rows(self.items(name, most)),
        }

    def _people_notes(self, name: str) -> tuple[Note, ...]:
        found = self._people.get(name)
        return found.notes if isinstance(found, People) else ()

    def _named(self, labeler: str | None) -> str:
        if labeler is None and len(self.kappas) == 1:
            return next(iter(self.kappas))
        if labeler not in self.kappas:
            asked = "say which labeler" if labeler is None else f"labeler {labeler!r} is not in the audit"
            raise DataError(f"{asked}. Labelers: {shown(self.kappas, 10)}.")
        return labeler

    def _table(self, what: str, labeler: str | None) -> Table:
        name = self._named(labeler)
        if (what, name) not in self._tables:
            raise DataError(f"{what} needs a kappa that is defined, but {self.kappas[name].reason}")
        return self._tables[what, name]

    def _identities(self) -> None:
        if self._ballots is None or self._ballots.annotators is None:
            raise DataError(
                "nothing tells who cast which vote: pass votes as an n x N array with a column for each annotator, "
                "None where one did not vote."
            )


def audit_of(
    data: Any,
    suggested: Any,
    *,
    counts: Any = None,
    categories: Iterable[Any] | None = None,
    ordinal: Any = None,
    missing: Iterable[Any] = (),
    weights: Any = None,
    strata: Any = None,
    pool: int | Mapping[Any, int] | None = None,
    panel: str = "fixed",
    level: float = 0.95,
    rng: int | np.random.Generator | None = None,
    progress: bool = True,
) -> Audit:
    """Run everything, on data given as to ``dhkappa.audit``."""
    check_level(level)
    whole, ballots, names = _counted(data, suggested, counts, categories, missing, weights, strata)
    if ordinal is not None and not whole.declared:
        raise DataError("ordinal needs the categories in their order: pass categories=, lowest first.")
    kappas: dict[str, Kappa] = {}
    weighted: dict[str, Kappa] = {}
    tests: dict[str, RandomLabelTest | None] = {}
    tables: dict[tuple[str, str], Table] = {}
    found: dict[str, People | DataError] = {}
    with Progress(len(names) + 1, "audit", progress) as shown_progress:
        for name in names:
            sample = sample_of(whole, name if whole.labelers else None, pool=pool, panel=panel)
            kappa = kappas[name] = dh_kappa_of(sample)
            if ordinal is not None:
                weighted[name] = ordinal_kappa_of(sample, ordinal)
            tests[name] = kappa.test() if kappa.exact is not None else None
            if kappa.exact is not None:
                tables["categories", name] = kappa.by_category(level)
                tables["confusion", name] = kappa.confusion()
            if ballots is not None and ballots.annotators is not None:
                tables["annotators", name] = annotators(ballots, name)
                try:
                    found[name] = people(ballots, name, level)
                except DataError as error:
                    found[name] = error
            shown_progress.advance()
        comparison = None
        if len(names) > 1:
            cells = cells_of(whole, names)
            comparison = compare_of(cells, level=level, pool=pool, panel=panel, rng=rng)
        fleiss = fleiss_kappa_of(sample_of(whole, labeled=False, pool=pool))
    return Audit(kappas, weighted, tests, comparison, fleiss, level, tables, found, ballots)


def _counted(
    data: Any, suggested: Any, counts: Any, categories: Any, missing: Any, weights: Any, strata: Any
) -> tuple[Tally, Ballots | None, list[str]]:
    """Return the tally of some data, its ballots where they are known, and the labelers to audit."""
    if isinstance(data, Tally):
        names = [suggested] if isinstance(suggested, str) else suggested
        names = list(data.labelers or (LABELER,)) if names is None else list(names)
        strange = [name for name in names if name not in (data.labelers or (LABELER,))]
        if strange:
            raise DataError(
                f"suggested names {shown(strange)}, not in the tally. Labelers: {shown(data.labelers, 10)}."
            )
        return data, None, names
    if suggested is None and (data is not None or counts is not None):
        raise DataError(
            "suggested is absent: pass one suggested label for each item, or a mapping from labelers to labels."
        )
    by_name = suggested if isinstance(suggested, Mapping) else {LABELER: suggested}
    whole = tally(data, by_name, counts=counts, categories=categories, missing=missing, weights=weights, strata=strata)
    declared = whole.categories if whole.declared else None
    ballots = read_ballots(data, by_name, counts=counts, categories=declared, missing=whole.missing, weights=weights)
    return whole, ballots, list(by_name)


def _rows(table: Table) -> list[dict[str, Any]]:
    """Return rows that JSON can hold; NaN is None."""
    return [
        {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
        for row in table
    ]
