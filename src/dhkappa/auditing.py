"""Audit: what was found, for every labeler and every question."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any

import numpy as np

from dhkappa.core.cells import cells_of
from dhkappa.core.items import Ballots
from dhkappa.core.tally import Tally
from dhkappa.errors import DataError, did_you_mean, shown
from dhkappa.progress import Progress
from dhkappa.report.content import Chapter, Story
from dhkappa.stats.annotator_comparison import People, people
from dhkappa.stats.annotators import annotators, refuse_unsigned
from dhkappa.stats.compare import Comparison, compare_of, labelers_table
from dhkappa.stats.estimators import dh_kappa_of, fleiss_kappa_of, ordinal_kappa_of
from dhkappa.stats.intervals import check_level, written
from dhkappa.stats.notes import Note, html_list, text_list
from dhkappa.stats.permutation import RandomLabelTest
from dhkappa.stats.plan import plan_of
from dhkappa.stats.result import Kappa
from dhkappa.stats.review import check_most, review
from dhkappa.stats.rng import generator
from dhkappa.stats.sample import Pool, own_pool, sample_of
from dhkappa.stats.verdict import Verdict, overall, verdict_of
from dhkappa.table import Table, visible
from dhkappa.version import __version__

_NARROWER = (0.1, 0.05, 0.03, 0.02, 0.01, 0.005)  # half-widths of intervals to plan for
_MOST_SHOWN = 1_000  # items of a review queue in a report


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
    _people: dict[str, People]
    _ballots: Ballots | None
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
        refuse_unsigned(self._ballots)
        return self._table("annotators", labeler)

    def people(self, labeler: str | None = None) -> People:
        """Return the labeler beside each annotator, taken as a labeler and judged by all others.

        ``table`` has ``kappa_person`` and ``kappa_labeler`` on the same ``items`` and panel, and their ``difference``
        with its interval; the result itself is the mean difference over people.
        """
        refuse_unsigned(self._ballots)
        return self._people[self._named(labeler)]

    def items(self, labeler: str | None = None, most: int | None = None) -> Table:
        """Return the review queue: items by how clearly the panel rejects the suggested label, the worst first.

        ``panel`` is the label that most votes are for, None where several tie. ``differential`` is -1 where all pairs
        of votes agree on another label and 1 where all agree on the suggested one; ``contribution`` is the item's
        part in kappa, which is their mean; ``influence`` how kappa moves as the item gains weight; ``kappa_without``
        kappa if it were left out.

        Parameters
        ----------
        labeler
            Whose labels.
        most
            How many items; by default all, or 100 where a table is too large to be fetched and its engine is asked.
        """
        if self._ballots is None:
            raise DataError(
                "items need the votes on each item, which a tally does not keep: pass votes or counts, and with a "
                "large table the names of items too, as item=."
            )
        key = self._named(labeler), check_most(most)
        if key not in self._queues:
            self._queues[key] = review(self._ballots, key[0], most=most, pool=self._pool)
        return self._queues[key]

    def table(self) -> Table:
        """Return a row for each labeler, the best first, with the marks to read its kappa by."""
        return labelers_table(self.kappas, self.level)

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """Whether each labeler can be trusted: beside people where they are known, and beside random labels."""
        return {
            name: verdict_of(name, kappa, self._people.get(name), self.level) for name, kappa in self.kappas.items()
        }

    @property
    def verdict(self) -> str:
        """The answer in a sentence or two: which labeler is best, and can it be trusted."""
        return overall(self.verdicts, self.kappas, self.comparison)

    def tighter(self, labeler: str | None = None) -> Table:
        """Return how many items narrower intervals would need, voted on as these were; see ``dhkappa.plan``.

        ``items`` in all, ``more_items`` than there are, ``items_assured`` to be 0.9 sure, and the ``more_votes``.
        """
        name = self._named(labeler)
        kappa = self.kappas[name]
        interval = kappa.interval(self.level)
        half = (interval.high - interval.low) / 2
        whole = sum(self._pool.values()) if isinstance(self._pool, Mapping) else self._pool
        rows = [
            (goal, plan_of(goal, pilot=kappa, pool=whole, level=self.level))
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
            title=f"{name}: items for a narrower {written(self.level)} interval, whose half-width is {half:.3f} now",
        )

    def story(self, most: int = _MOST_SHOWN, *, title: str = "Label audit", command: str | None = None) -> Story:
        """Return all that a report shows, with ``most`` items of each review queue."""
        verdicts = self.verdicts
        order = sorted(self.table().column("labeler"), key=lambda name: not verdicts[name].judged)
        return Story(
            title=title,
            verdict=self.verdict,
            chapters=tuple(self._chapter(name, verdicts[name], most) for name in order),
            comparison=self.comparison,
            fleiss=self.fleiss,
            level=self.level,
            unsigned=self._unsigned,
            notes=tuple(note.text for note in self.notes),
            command=command,
            version=__version__,
        )

    @property
    def _unsigned(self) -> str:
        """Why people are not known; nothing where they are."""
        if self._ballots is None:
            return "Only counts are known here, not who cast which vote"
        if self._ballots.find is not None:
            return "The table is too large to be fetched, so only counts were asked for, not who cast which vote"
        return "" if self._ballots.annotators is not None else "Nothing tells who cast which vote"

    def _chapter(self, name: str, verdict: Verdict, most: int) -> Chapter:
        kappa = self.kappas[name]
        defined = not math.isnan(kappa.interval(self.level).low)
        return Chapter(
            name=name,
            verdict=verdict,
            kappa=kappa,
            interval=kappa.interval(self.level),
            ordinal=self.ordinal.get(name),
            test=self.tests[name],
            categories=self._tables.get(("categories", name)),
            confusion=self._tables.get(("confusion", name)),
            people=self._people.get(name),
            annotators=self._tables.get(("annotators", name)),
            queue=None if self._ballots is None else self.items(name, most),
            n_queue=kappa.n_items,
            tighter=self.tighter(name) if defined else None,
        )

    def report(self, path: str | os.PathLike[str], *, title: str = "Label audit", command: str | None = None) -> None:
        """Write everything to one HTML file that opens without a network; needs ``pip install 'dhkappa[report]'``.

        Parameters
        ----------
        path
            Where to write it: whole, or not at all.
        title
            What was audited.
        command
            The command that made it, where there was one.
        """
        from dhkappa.report.html import write_report

        write_report(self.story(title=title, command=command), path)

    def chart(self, name: str, labeler: str | None = None) -> Any:
        """Return one of the report's charts, as an Altair chart; needs ``pip install 'dhkappa[report]'``.

        Parameters
        ----------
        name
            ``"scale"`` (all labelers between floor and ceiling), ``"differences"`` (between labelers), or of one
            labeler ``"categories"``, ``"confusion"`` or ``"people"``.
        labeler
            Whose; may be left out where there is one.
        """
        from dhkappa.report.charts import CHARTS, OF_ONE, chart_of

        if not isinstance(name, str) or name not in CHARTS:
            raise DataError(f"chart {shown([name])} is none of {shown(CHARTS, 10)}.{did_you_mean(name, CHARTS)}")
        who = self._named(labeler) if name in OF_ONE else None
        return chart_of(self.story(1), name, who)

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
        if self._ballots is not None and self._ballots.find is not None:
            found.append(Note("too-large", f"{self._unsigned}: annotators are left out."))
        if self.comparison is None:
            return tuple(found)
        # What is so of one labeler has been said; what was dropped too, where they share all their items.
        sizes = {kappa.n_items for kappa in (*self.kappas.values(), *self.comparison.kappas.values())}
        said = {"source", "at-ceiling", *(["items-dropped"] if len(sizes) == 1 else [])}
        return (*found, *(note for note in self.comparison.notes if note.code not in said))

    def __repr__(self) -> str:
        lines = [*wrap(visible(self.verdict), 80), repr(self.table()), f"Annotators among themselves: {self.fleiss!r}"]
        if self.comparison:
            lines.append(repr(self.comparison.differences))
        said = [*map(repr, self._people.values()), *(note.text for note in self.notes)]
        return "\n".join([*lines, text_list(said)])

    def _repr_html_(self) -> str:
        tables = [self.table(), *([self.comparison.differences] if self.comparison else [])]
        notes = html_list([*map(repr, self._people.values()), *(note.text for note in self.notes)])
        fleiss = f"<p>Annotators among themselves: {html.escape(repr(self.fleiss))}</p>"
        answer = f"<p><b>{html.escape(visible(self.verdict))}</b></p>"
        return answer + "".join(table._repr_html_() for table in tables) + fleiss + notes

    def to_dict(self, most: int | None = 100) -> dict[str, Any]:
        """Return plain values, ready for JSON; NaN is None, and ``most`` limits the items of each review queue."""
        return {
            "level": self.level,
            "verdict": self.verdict,
            "labelers": {name: self._labeler_dict(name, most) for name in self.labelers},
            "comparison": self.comparison.to_dict() if self.comparison else None,
            "fleiss": self.fleiss.to_dict(self.level),
            "notes": [note.to_dict() for note in self.notes],
        }

    def _labeler_dict(self, name: str, most: int | None) -> dict[str, Any]:
        test, defined = self.tests[name], not math.isnan(self.kappas[name].interval(self.level).low)
        tables = {what: self._tables.get((what, name)) for what in ("categories", "confusion", "annotators")}
        return {
            "verdict": self.verdicts[name].to_dict(),
            "kappa": self.kappas[name].to_dict(self.level),
            "ordinal": self.ordinal[name].to_dict(self.level) if name in self.ordinal else None,
            "test": test.to_dict() if test else None,
            **{what: table.to_json() if table is not None else None for what, table in tables.items()},
            "people": self._people[name].to_dict() if name in self._people else None,
            "items": None if self._ballots is None else self.items(name, most).to_json(),
            "tighter": self.tighter(name).to_json() if defined else None,
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
    whole: Tally,
    ballots: Ballots | None,
    names: Sequence[str],
    *,
    ordinal: Any,
    pool: Pool,
    panel: str,
    level: float,
    rng: int | np.random.Generator | None,
    progress: bool,
) -> Audit:
    """Run everything for some labelers of a tally; ``ballots`` are the same votes with their items, where known.

    The rest is given as to ``dhkappa.audit``.
    """
    level, source, pool = check_level(level), generator(rng), own_pool(pool)
    kappas: dict[str, Kappa] = {}
    weighted: dict[str, Kappa] = {}
    tests: dict[str, RandomLabelTest | None] = {}
    tables: dict[tuple[str, str], Table] = {}
    found: dict[str, People] = {}
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
                tables["annotators", name] = annotators(ballots, name, pool)
                found[name] = people(ballots, name, level, pool)
            shown_progress.advance()
        comparison = None
        if len(names) > 1:
            cells = cells_of(whole, names)
            comparison = compare_of(cells, level=level, pool=pool, panel=panel, rng=source)
        fleiss = fleiss_kappa_of(sample_of(whole, labeled=False, pool=pool))
    return Audit(kappas, weighted, tests, comparison, fleiss, level, tables, found, ballots, pool)
