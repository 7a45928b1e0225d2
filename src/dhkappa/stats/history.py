"""History: audits of independent samples of items in order of time, and what changed between them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np

from dhkappa.errors import counted, masked, one_labeler
from dhkappa.paths import write_file
from dhkappa.stats.change import FILTERS_DIFFER, Change, Changes, Measured, Snapshot, change_of, changes_between
from dhkappa.stats.grades import NEVER_JUDGED, digits_of
from dhkappa.stats.influence import pattern_weights
from dhkappa.stats.intervals import written
from dhkappa.stats.kappa import Estimate
from dhkappa.stats.notes import Note
from dhkappa.stats.result import Kappa
from dhkappa.stats.shift import Shift
from dhkappa.stats.summation import exact_sum
from dhkappa.table import Display, Table

_COLUMNS = (
    *("name", "items", "kappa", "low", "high", "suggested_share", "verdict"),
    *("change", "change_low", "change_high", "pvalue", "reason"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One audit of a history.

    Attributes
    ----------
    name : its date, or the name of its file; unique in a history
    date : its date in ISO format; None if it has none
    data : the name of the data
    kappas : the kappa of each labeler
    fleiss : Fleiss' kappa
    verdicts : the code of the verdict on each labeler
    """

    name: str
    date: str | None
    data: str
    kappas: Mapping[str, Kappa]
    fleiss: Kappa
    verdicts: Mapping[str, str]

    def measured(self, labeler: str, confidence_level: float) -> Measured:
        """Return the kappa of a labeler for a comparison."""
        kappa, code = self.kappas[labeler], self.verdicts[labeler]
        unjudged = f"The votes cannot judge {labeler} ({code})." if code in NEVER_JUDGED else ""
        return Measured(kappa.estimate, kappa.confidence_interval(confidence_level), unjudged)

    def snapshot(self, confidence_level: float) -> Snapshot:
        """Return what two audits are compared by."""
        kappas = {name: self.measured(name, confidence_level) for name in self.kappas}
        fleiss = Measured(self.fleiss.estimate, self.fleiss.confidence_interval(confidence_level))
        return Snapshot(self.name, kappas, fleiss)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class History(Display):
    """Audits of independent samples of items in order of time; see ``dhkappa.history``.

    Methods take the name of a labeler; with one labeler it may be omitted.

    Attributes
    ----------
    entries : the audits, the earliest first: ``name``, ``date``, ``data``, ``kappas``, ``fleiss``, ``verdicts``
    labelers : the labelers of any audit
    confidence_level : confidence level of all intervals
    notes : what to know about the comparison, each with a code and a sentence
    so_far : with ``any_time``, the kappa of each labeler on all items up to each audit that has it; else empty
    """

    entries: tuple[Entry, ...]
    labelers: tuple[str, ...]
    confidence_level: float
    notes: tuple[Note, ...] = ()
    so_far: Mapping[str, Mapping[str, Kappa]] = field(default_factory=dict)

    def table(self, labeler: str | None = None) -> Table:
        """Return a row for each audit that has the labeler: kappa, and its change since the audit before.

        ``suggested_share`` is the share of votes for the suggested label, a mean over items. ``change``, its limits and
        ``pvalue`` compare with the row above; ``reason`` says why they are NaN.
        """
        name = one_labeler(labeler, self.labelers, "labeler")
        rows: list[tuple[Any, ...]] = []
        before: Entry | None = None
        for entry in self._with(name):
            kappa, verdict = entry.kappas[name], entry.verdicts[name]
            change = None if before is None else self._change(name, before, entry)
            share = share_of_votes(kappa.estimate)
            known = (entry.name, kappa.n_items, kappa.value)
            rows.append((*known, *kappa.confidence_interval(self.confidence_level), share, verdict, *_of(change)))
            before = entry
        title = f"Kappa of {name} over time, {written(self.confidence_level, 100)}% confidence intervals"
        return _table(_COLUMNS, rows, title)

    def cumulative(self, labeler: str | None = None) -> Table:
        """Return a row for each audit with the kappa of all items so far, and its interval that holds at every look.

        It needs ``history(any_time=True)``. ``any_time_level`` is the level of the interval alone.
        """
        name, rows = one_labeler(labeler, self.labelers, "labeler"), []
        for audit, kappa in self.so_far.get(name, {}).items():
            found = kappa.confidence_interval(self.confidence_level)
            known = audit, kappa.n_items, kappa.value, *found, found.any_time_level
            rows.append((*known, kappa.reason or found.reason))
        level = f"{written(self.confidence_level, 100)}% confidence intervals"
        title = f"Kappa of {name} on all items so far, {level} that hold at every look"
        return _table(("name", "items", "kappa", "low", "high", "any_time_level", "reason"), rows, title)

    def fleiss(self) -> Table:
        """Return a row for each audit: Fleiss' kappa, and its change since the audit before, as in ``table``.

        ``shift`` is the total variation distance between the shares of the categories among the votes and those of the
        audit before, and ``pvalue_shift`` that of its test.
        """
        level, rows = self.confidence_level, []
        for place, entry in enumerate(self.entries):
            change: Change | None = None
            shift: Shift | None = None
            if place:
                found = self._between(self.entries[place - 1], entry)
                change, shift = found.fleiss, found.votes
            known = (entry.name, entry.fleiss.n_items, entry.fleiss.value)
            moved = (math.nan, math.nan) if shift is None else (shift.distance, shift.pvalue)
            rows.append((*known, *entry.fleiss.confidence_interval(level), *_of(change), *moved))
        names = ("name", "items", "fleiss", "low", "high", *_COLUMNS[7:], "shift", "pvalue_shift")
        return _table(names, rows, f"Fleiss' kappa over time, {written(level, 100)}% confidence intervals")

    def categories(self, labeler: str | None = None) -> Table:
        """Return kappa by suggested category over time: a row for each category and audit."""
        name, rows = one_labeler(labeler, self.labelers, "labeler"), []
        for entry in self._with(name):
            if entry.kappas[name].exact is not None:
                table = entry.kappas[name].by_category(self.confidence_level)
                rows += [{"name": entry.name, **row} for row in table if row["label_share"]]
        order: dict[tuple[type, Any], int] = {}
        for row in rows:
            order.setdefault((type(row["category"]), row["category"]), len(order))
        rows.sort(key=lambda row: order[type(row["category"]), row["category"]])  # stable: by time within a category
        names = ("category", "name", "items", "kappa", "low", "high", "label_share", "vote_share", "reason")
        title = f"Kappa of {name} by suggested category over time"
        return _table(names, [tuple(row[column] for column in names) for row in rows], title)

    def since_last(self, labeler: str | None = None) -> Changes | None:
        """Return what changed since the audit before; None if there is none with the labeler."""
        entries = list(self._with(one_labeler(labeler, self.labelers, "labeler")))
        return self._between(*entries[-2:]) if len(entries) > 1 else None

    def since_first(self, labeler: str | None = None) -> Change | None:
        """Return the change of kappa over the whole period; None if there are fewer than three audits."""
        name = one_labeler(labeler, self.labelers, "labeler")
        entries = list(self._with(name))
        return self._change(name, entries[0], entries[-1]) if len(entries) > 2 else None

    def since_best(self, labeler: str | None = None) -> Change | None:
        """Return the change of kappa since the audit with the highest kappa before; None if there is none.

        That audit was chosen because of its kappa. Limits and p-value are therefore adjusted for the number of earlier
        audits (Bonferroni), so that 0 is outside of the limits exactly where the change is significant.
        """
        name = one_labeler(labeler, self.labelers, "labeler")
        entries = list(self._with(name))
        if len(entries) < 2:
            return None
        n_tests = len(entries) - 1
        adjusted = 1 - (1 - self.confidence_level) / n_tests
        last = entries.pop().measured(name, adjusted)
        found = [change_of(entry.name, entry.measured(name, adjusted), last) for entry in entries]
        known = [change for change in reversed(found) if change.reason is None]
        if not known:
            return None
        best = max(known, key=lambda change: change.before)  # the latest of several
        return replace(best, pvalue=min(1.0, n_tests * best.pvalue), confidence_level=self.confidence_level)

    @property
    def summary(self) -> str:
        """What became of each labeler, in a sentence each, and what else changed."""
        said = [note.message for note in self.notes if note.code == FILTERS_DIFFER]
        contexts: set[str] = set()
        comparable = not said
        for name in self.labelers:
            found, last = self.since_last(name), list(self._with(name))[-1]
            if found is None:
                kappa = last.kappas[name]
                digits = digits_of(float(np.subtract(*reversed([*kappa.confidence_interval(self.confidence_level)]))))
                value = "undefined" if kappa.exact is None else f"{kappa.value:.{digits}f}"
                said.append(f"{name}: kappa is {value} in {last.name}. There is no earlier audit to compare with.")
                continue
            gone = "" if last is self.entries[-1] else f" It is not in {self.entries[-1].name}, the last audit."
            # What else changed since the audit before follows that change, not those over a longer time.
            cause = [text for text in found.context(name) if comparable and text not in contexts]
            contexts |= {*cause}
            longer = f"{self._over_all(name)}{self._below_best(name, found.since)}"
            said.append(f"{' '.join([found.sentence(name), *cause])}{gone}{longer}")
        return " ".join(said)

    def _over_all(self, name: str) -> str:
        """Say how a labeler changed over the whole period, if there are more than two audits."""
        first = self.since_first(name)
        if first is None or first.reason is not None:
            return ""
        return f" Since the first audit, {first.since} ({first.before:.2f}): {first.moved}, {first.outcome}."

    def _below_best(self, name: str, last: str) -> str:
        """Say that a labeler changed since its best audit, if that is none of those above and it is significant."""
        best, first = self.since_best(name), self.since_first(name)
        said = (last, None if first is None else first.since)
        if best is None or best.since in said or not best.significant:
            return ""
        text = f"{'Below' if best.difference < 0 else 'Above'} its best earlier audit, {best.since} ({best.before:.2f})"
        return f" {text}: {best.moved}, {best.outcome}."

    def _with(self, labeler: str) -> Iterator[Entry]:
        return (entry for entry in self.entries if labeler in entry.kappas)

    def _change(self, name: str, before: Entry, after: Entry) -> Change:
        sides = (entry.measured(name, self.confidence_level) for entry in (before, after))
        return change_of(before.name, *sides)

    def _between(self, before: Entry, after: Entry) -> Changes:
        level = self.confidence_level
        return changes_between(before.snapshot(level), after.snapshot(level))

    def to_html(
        self, path: str | os.PathLike[str], *, title: str = "Label history", command: str | None = None
    ) -> None:
        """Write a page with charts to one HTML file that opens without a network.

        Parameters
        ----------
        path
            File to write, completely or not at all.
        title, command
            Title of the page, and the command that made it, to be shown at its end.
        """
        page = import_module("dhkappa.report.history").page(self, title=masked(title), command=command)
        write_file(path, page, "history")

    def to_markdown(self, *, title: str = "Label history", by_category: bool = False) -> str:
        """Return the history as Markdown."""
        made = import_module("dhkappa.report.history")
        text: str = made.markdown(self, title=masked(title), by_category=by_category)
        return text

    def _display(self) -> Iterator[str | Table | Sequence[str]]:
        yield self.summary
        for name in self.labelers:
            yield self.table(name)
            if self.so_far:
                yield self.cumulative(name)
        yield self.fleiss()
        yield [note.text for note in self.notes]

    def to_dict(self, *, by_category: bool = False) -> dict[str, Any]:
        """Return plain values for JSON; NaN is None."""
        return {
            "confidence_level": self.confidence_level,
            "summary": self.summary,
            "audits": [
                {"name": one.name, "date": one.date, "data": one.data, "labelers": [*one.kappas]}
                for one in self.entries
            ],
            "labelers": {name: self._labeler_dict(name, by_category) for name in self.labelers},
            "fleiss": self.fleiss().to_json(),
            "notes": [note.to_dict() for note in self.notes],
        }

    def _labeler_dict(self, name: str, by_category: bool) -> dict[str, Any]:
        last, first, best = self.since_last(name), self.since_first(name), self.since_best(name)
        return {
            "history": self.table(name).to_json(),
            "cumulative": self.cumulative(name).to_json() if self.so_far else None,
            "since_last": None
            if last is None
            else {
                "change": last.kappas[name].to_dict(),
                "fleiss": last.fleiss.to_dict(),
                "votes": last.votes.to_dict(),
                "labels": last.labels[name].to_dict(),
            },
            "since_first": None if first is None else first.to_dict(),
            "since_best": None if best is None else best.to_dict(),
            "categories": self.categories(name).to_json() if by_category else None,
        }


def share_of_votes(estimate: Estimate) -> float:
    """Return the share of votes for the suggested label, a mean over items; NaN if no item is eligible.

    Examples
    --------
    >>> import dhkappa
    >>> share_of_votes(dhkappa.dh_kappa([["a", "a", "b", "a"], ["b", "a"]], ["a", "b"]).estimate)
    0.625
    """
    sample = estimate.sample.by_weight().merged()
    patterns = sample.patterns
    if not sample.n:
        return math.nan
    on_label = np.where(patterns.code == patterns.suggested[patterns.row()], patterns.votes, 0)
    share = np.add.reduceat(on_label, patterns.start[:-1]) / patterns.vote_totals()
    return exact_sum(pattern_weights(sample) * share) / sample.n


def _of(change: Change | None) -> tuple[Any, ...]:
    """Return the columns of a change."""
    if change is None:
        return (*[math.nan] * 4, None)
    return change.difference, change.low, change.high, change.pvalue, change.reason


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]], title: str) -> Table:
    return Table({name: [row[place] for row in rows] for place, name in enumerate(names)}, title=title)


def history_notes(entries: Sequence[Entry]) -> Iterator[Note]:
    """Yield what makes audits less alike: no dates, equal dates, other labelers, other categories."""
    undated = [entry.name for entry in entries if entry.date is None]
    if undated:
        first = repr(undated[0]) if len(undated) == 1 else f"such as {undated[0]!r}"
        what = f"{counted(len(undated), 'audit')} without a date, {first}"
        yield Note("no-date", f"{what}: the audits are in the order of the names of their files.")
    dates = [entry.date for entry in entries if entry.date is not None]
    if twice := sorted({date for date in dates if dates.count(date) > 1}):
        text = f"Several audits have the date {', '.join(twice[:3])}{', ...' if twice[3:] else ''}."
        yield Note("same-date", f"{text} They are in the order of the names of their files.")
    for name in dict.fromkeys(name for entry in entries for name in entry.kappas):
        absent = [entry.name for entry in entries if name not in entry.kappas]
        if absent:
            where = f"{', '.join(absent[:3])}{', ...' if absent[3:] else ''}"
            yield Note("labeler-absent", f"{name} is not in {where}. It is compared with the last audit that has it.")
    labels: dict[tuple[type, Any], int] = {}
    for entry in entries:
        parts = entry.fleiss.parts
        for label, share in {} if parts is None else parts.C.items():
            labels[type(label), label] = labels.get((type(label), label), 0) + bool(share)
    if some := [label for (_, label), number in labels.items() if 0 < number < len(entries)]:
        more = f" and {len(some) - 3} more" if some[3:] else ""
        names = ", ".join(repr(label) for label in some[:3])
        yield Note("categories-differ", f"Categories without votes in some audits: {names}{more}.")
