"""Tracking: save audits in files, and compare a new audit with earlier ones."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dhkappa.core import Categories, Label
from dhkappa.core.items import Counts
from dhkappa.core.labels import SourceNote
from dhkappa.errors import DataError, Problem, comma_separated, invalid, masked, one_labeler, shown
from dhkappa.inputs.check import find_problems
from dhkappa.inputs.dates import Date, check_date, today
from dhkappa.inputs.tally import MANY_ITEMS, Tally, damaged, pattern_rows, read_file
from dhkappa.paths import natural_order, write_file
from dhkappa.stats.annotator_baseline import annotator_baseline
from dhkappa.stats.change import Changes, changes_between
from dhkappa.stats.grades import GRADES
from dhkappa.stats.history import Entry, History, history_notes
from dhkappa.stats.kappa import fleiss_estimate, kappa_estimate
from dhkappa.stats.notes import Note, any_time_notes, several_note
from dhkappa.stats.result import Kappa
from dhkappa.stats.sample import Pool, check_level, own_pool, sample_of
from dhkappa.stats.verdict import judge
from dhkappa.stats.weights import Weights, agreement_weights

if TYPE_CHECKING:
    from dhkappa.auditing import Audit

_VERSION = 1
_KEYS = {"version", "dhkappa", "data", "verdicts", "weights", "pool"}
_LEFT_OUT = re.compile(r": [0-9,]+ items? and [0-9,]+ votes? (?:was|were) left out.*$", re.DOTALL)
_NAMED = 5  # audits whose filters a note names
Counted: TypeAlias = tuple[Counts, Categories | None, frozenset[Label]]  # arguments of Tally.of
Saved: TypeAlias = "str | os.PathLike[str] | SavedAudit | Tally"


@dataclass(frozen=True, slots=True, eq=False)
class SavedAudit:
    """An audit that ``Audit.save`` wrote, or a tally: counts, from which every number is computed again.

    Attributes
    ----------
    tally : the counts
    date : the date in ISO format; None if there is none
    data : the name of the data
    verdicts : the code of the verdict on each labeler; empty for a tally
    weights : agreement weights; None if there are none
    pool : number of items in the pool, in all or by stratum; None if unknown
    version : the version of dhkappa that made the audit; empty for a tally
    path : the file

    Examples
    --------
    >>> import tempfile, dhkappa
    >>> sim = dhkappa.simulate(100, labelers={"llm": 0.9}, rng=1)
    >>> path = f"{tempfile.mkdtemp()}/week41.json"
    >>> dhkappa.audit(sim.votes, sim.suggested).save(path, date="2026-11-09", data="week 41")
    >>> saved = dhkappa.SavedAudit.load(path)
    >>> saved.date, saved.data, saved.verdicts
    ('2026-11-09', 'week 41', {'llm': 'on-par'})
    """

    tally: Tally
    date: str | None = None
    data: str = ""
    verdicts: Mapping[str, str] = field(default_factory=dict)
    weights: Weights | None = None
    pool: Pool = None
    version: str = ""
    path: str = ""

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SavedAudit:
        """Read a file that ``Audit.save`` or ``Tally.save`` wrote."""
        try:
            held, name = read_file(path)
        except DataError as error:
            if error.code != "not-a-tally" and not isinstance(error.__context__, UnicodeError):
                raise
            message = f"{os.fspath(path)!r} is neither a saved audit nor a tally."
            hint = "Save an audit of this data with dhkappa audit --save, or with Audit.save, and pass that file."
            raise invalid("data", message, code="not-a-saved-audit", hint=hint) from None
        tally, about = Tally.of_file(held, name), held.get("audit")
        try:
            date = None if held.get("date") is None else check_date(held["date"])
            if about is None:
                return cls(tally, date, path=os.fspath(path))
            if type(about) is not dict or about.get("version") != _VERSION:
                version = about.get("version") if type(about) is dict else about
                message = (
                    f"{name} is a saved audit of version {shown([version])}; this dhkappa reads version {_VERSION}."
                )
                raise DataError(message, code="saved-audit-version", hint="Save it again, or update dhkappa.")
            return cls(tally, date, *_read_about(about, tally), path=os.fspath(path))
        except (DataError, TypeError) as error:  # such as a list as the name of a stratum
            if isinstance(error, DataError) and error.code == "saved-audit-version":
                raise
            raise damaged(name, error.message if isinstance(error, DataError) else f"{error}.") from None

    @property
    def options(self) -> dict[str, str]:
        """The agreement weights and the pool as the command line writes them; weights without a name are empty."""
        found = {}
        if self.weights is not None:
            names = ("linear", "quadratic")
            same = (name for name in names if _is_named(self.weights, name, len(self.tally.categories)))
            found["weights"] = next(same, "")
        if isinstance(self.pool, Mapping):
            found["pool"] = comma_separated([f"{stratum}={n}" for stratum, n in self.pool.items()])
        elif self.pool is not None:
            found["pool"] = str(self.pool)
        return found

    def entry(self, confidence_level: float) -> Entry:
        """Return the audit with all that a history shows, computed from the counts."""
        counts, labelers = self.tally.counts, list(self.verdicts or self.tally.labelers)
        samples = {name: sample_of(counts.labeled_patterns(name), pool=self.pool) for name in labelers}
        kappas = {name: Kappa(kappa_estimate(sample, self.weights)) for name, sample in samples.items()}
        panel = sample_of(counts.unlabeled_patterns(), labeled=False, pool=self.pool)
        verdicts = self.verdicts or self._verdicts(kappas, confidence_level)
        name = self.date or os.path.basename(self.path) or "a tally"
        return Entry(name, self.date, self.data, kappas, Kappa(fleiss_estimate(panel, self.weights)), verdicts)

    def _verdicts(self, kappas: Mapping[str, Kappa], level: float) -> dict[str, str]:
        """Return the verdicts of an audit of the tally."""
        problems = find_problems(self.tally.evidence([*kappas]))
        found = {}
        for name, kappa in kappas.items():
            baseline = annotator_baseline(kappa.estimate, confidence_level=level)
            found[name] = judge(name, kappa.estimate, kappa.confidence_interval(level), baseline, None, problems).code
        return found


def save(
    audit: Audit,
    path: str | os.PathLike[str],
    date: Date | None,
    data: str,
    *,
    tally: Counted,
    weights: Weights | None,
    pool: Pool,
) -> None:
    """Write what an audit was computed from, and what cannot be computed from it; see ``Audit.save``."""
    errors = [one for one in audit.problems if one.severity == "error" and not one.accepted and not one.labelers]
    if errors:
        raise _not_saved(errors[0])
    written = check_date(today() if date is None else date)
    about = {
        "version": _VERSION,
        "dhkappa": _package_version(),
        "data": masked(data),
        "verdicts": {name: verdict.code for name, verdict in audit.verdicts.items()},
        "weights": None if weights is None else _written_weights(weights),
        "pool": [[stratum, n] for stratum, n in pool.items()] if isinstance(pool, Mapping) else pool,
    }
    text = Tally.of(*tally).file_text({"date": written, "audit": about})
    write_file(path, text, "audit")


def _not_saved(problem: Problem) -> DataError:
    more: Any = {"hint": "Fix it, or accept it with $allow=.", "options": {"allow": problem.code}}
    return invalid("save", f"The audit is not saved: {problem.message}", code="audit-not-saved", **more)


def _package_version() -> str:
    import dhkappa

    return dhkappa.__version__


def _is_named(weights: Weights, name: str, m: int) -> bool:
    """Tell whether agreement weights are those of a name."""
    return bool(np.array_equal(weights.matrix(), agreement_weights(name, m).matrix()))


def _written_weights(weights: Weights) -> dict[str, Any]:
    return {"unit": weights.unit, "named": weights.named, "scaled": weights.scaled.tolist()}


def _read_about(held: Mapping[str, Any], tally: Tally) -> tuple[str, dict[str, str], Weights | None, Pool, str]:
    """Return the data's name, verdicts, weights, pool and version of a saved audit, checked."""
    if held.keys() != _KEYS:
        raise DataError(f"its audit has the keys {shown(sorted(held), 10)}, not {shown(sorted(_KEYS), 10)}.")
    verdicts = held["verdicts"]
    if type(verdicts) is not dict or not verdicts or not set(verdicts) <= set(tally.labelers):
        raise DataError("'verdicts' does not map labelers of the tally to codes.")
    if unknown := [code for code in verdicts.values() if type(code) is not str or code not in GRADES]:
        raise DataError(f"{shown(unknown[:1])} is not the code of a verdict.")
    if type(held["data"]) is not str or type(held["dhkappa"]) is not str:
        raise DataError("'data' and 'dhkappa' must be text.")
    weights = None if held["weights"] is None else _read_weights(held["weights"], len(tally.categories))
    return held["data"], verdicts, weights, _read_pool(held["pool"]), held["dhkappa"]


def _read_weights(held: Any, m: int) -> Weights:
    if type(held) is not dict or held.keys() != {"unit", "named", "scaled"}:
        raise DataError("'weights' must have unit, named and scaled.")
    unit, named, rows = held["unit"], held["named"], held["scaled"]
    whole = type(rows) is list and all(type(row) is list and all(type(x) is int for x in row) for row in rows)
    if type(unit) is not int or unit < 1 or type(named) is not bool or not whole:
        raise DataError("'weights' must be whole numbers.")
    return replace(agreement_weights([[Fraction(x, unit) for x in row] for row in rows], m), named=named)


def _read_pool(held: Any) -> Pool:
    if held is None or (type(held) is int and held >= 0):
        return held
    pairs = held if type(held) is list and all(type(pair) is list and len(pair) == 2 for pair in held) else [[None, -1]]
    sizes: dict[Label, int] = dict(pairs)  # type: ignore[arg-type]
    if len(sizes) < len(pairs) or not all(type(size) is int and size >= 0 for size in sizes.values()):
        raise DataError("'pool' is neither a number of items nor the numbers of strata.")
    return own_pool(sizes)


def _opened(saved: Any) -> SavedAudit:
    if isinstance(saved, SavedAudit):
        return saved
    if isinstance(saved, Tally):
        return SavedAudit(saved.copy())
    if not isinstance(saved, (str, os.PathLike)):
        message = f"A saved audit must be a path, a SavedAudit or a Tally, got {shown([saved])}."
        raise invalid("saved", message, code="invalid-saved-audit")
    return SavedAudit.load(saved)


def compare(audit: Audit, saved: Saved, *, tally: Counted, weights: Weights | None) -> Changes:
    """Return what changed since a saved audit; see ``Audit.compare_with``."""
    before, level = _opened(saved), audit.confidence_level
    old, now = before.entry(level), SavedAudit(Tally.of(*tally), weights=weights)
    _check_distinct(before, now, "baseline")
    if not set(old.kappas) & set(audit.kappas):
        message = f"{old.name} has other labelers: {shown(old.kappas)}, and this audit {shown(audit.kappas)}."
        hint = "Give the labeler the same name in both."
        raise invalid("baseline", message, code="no-common-labeler", hint=hint)
    _check_weights([(before, old.name), (now, "this audit")], "baseline")
    codes = {name: verdict.code for name, verdict in audit.verdicts.items()}
    new = Entry("this audit", None, "", audit.kappas, audit.fleiss, codes)
    found = changes_between(old.snapshot(level), new.snapshot(level))
    filtered = _filter_notes([(old.name, before), (new.name, now)])
    return replace(found, notes=(*filtered, *found.notes))


def history(
    saved: Saved | Iterable[Saved],
    *,
    suggested: str | Iterable[str] | None = None,
    confidence_level: float = 0.95,
    any_time: bool = False,
) -> History:
    """Compare audits of independent samples of items over time, such as one of each week.

    All numbers are computed from the counts in the files, and are those of an audit of each file alone. The audits are
    ordered by date, or by the names of their files if one has no date.

    Parameters
    ----------
    saved
        Files that ``Audit.save`` or ``Tally.save`` wrote, as paths, ``SavedAudit`` or ``Tally``.
    suggested
        The labelers to show; all by default.
    confidence_level
        Confidence level of all intervals.
    any_time
        Whether to count the items of all audits so far as one sample, too, with intervals that hold at every look:
        ``History.cumulative``.

    Returns
    -------
    History
        ``table`` has a row for each audit of a labeler, ``since_last``, ``since_first`` and ``since_best`` say what
        changed, and ``summary`` is the answer in a few sentences.

    Examples
    --------
    >>> import tempfile, dhkappa
    >>> folder = tempfile.mkdtemp()
    >>> for week, accuracy in enumerate([0.7, 0.9], 40):
    ...     sim = dhkappa.simulate(400, labelers={"llm": accuracy}, rng=week)
    ...     dhkappa.audit(sim.votes, sim.suggested).save(f"{folder}/{week}.json", date=f"2026-10-{week - 30}")
    >>> found = dhkappa.history([f"{folder}/40.json", f"{folder}/41.json"])
    >>> change = found.since_last("llm").kappas["llm"]
    >>> change.significant, change.since
    (True, '2026-10-10')
    """
    level = check_level(confidence_level)
    if isinstance(saved, (str, os.PathLike, SavedAudit, Tally)):
        saved = [saved]
    opened = [_opened(one) for one in saved]
    if not opened:
        raise invalid("saved", "There are no saved audits.", code="no-saved-audits")
    dated = all(one.date is not None for one in opened)
    opened.sort(key=lambda one: (one.date if dated and one.date else "", natural_order(one.path)))
    for place, one in enumerate(opened):
        for other in opened[:place]:
            _check_distinct(other, one, "saved")
    entries = _named([one.entry(level) for one in opened])
    _check_weights([(one, entry.name) for one, entry in zip(opened, entries, strict=True)], "saved")
    known = tuple(dict.fromkeys(name for entry in entries for name in entry.kappas))
    chosen = known
    if suggested is not None:
        names = [suggested] if isinstance(suggested, str) else suggested
        chosen = tuple(dict.fromkeys(one_labeler(name, known) for name in names))
    kept = [_only(entry, chosen) for entry in entries]
    filtered = _filter_notes([(entry.name, one) for entry, one in zip(entries, opened, strict=True)])
    found = History(tuple(kept), chosen, level, (*_data_notes(opened), *filtered, *history_notes(kept)))
    if not any_time:
        return found
    so_far = {name: _so_far(opened, entries, name) for name in chosen}
    return replace(found, so_far=so_far, notes=(*found.notes, *_notes_so_far(found, so_far)))


def _so_far(opened: Sequence[SavedAudit], entries: Sequence[Entry], name: str) -> dict[str, Kappa]:
    """Return the kappa of a labeler on all items up to each audit that has it."""
    found: dict[str, Kappa] = {}
    total: Tally | None = None
    for one, entry in zip(opened, entries, strict=True):
        if name not in entry.kappas:
            continue
        if one.pool is not None:
            message = f"{entry.name} is a sample of a pool, which the items of several audits together are not."
            raise invalid("any_time", message, code="option-not-supported", hint="Leave out $any_time.")
        counts = one.tally.counts
        own = replace(counts.columns, labels={name: counts.columns.labels[name]})
        declared = one.tally.categories if one.tally.declared else None
        part = Tally.of(replace(counts, columns=own), declared, one.tally.missing)
        total = part if total is None else total + part
        estimate = kappa_estimate(sample_of(total.counts.labeled_patterns(name)), one.weights)
        found[entry.name] = Kappa(estimate, any_time=True)
    return found


def _notes_so_far(found: History, so_far: Mapping[str, Mapping[str, Kappa]]) -> Iterator[Note]:
    """Yield notes on the cumulative kappas, the last of each labeler; say which labelers have changed."""
    notes: dict[Note, list[str]] = {}
    for name, kappas in so_far.items():
        for note in any_time_notes([*kappas.values()][-1].estimate.sample, found.confidence_level):
            notes.setdefault(note, []).append(name)
    for note, names in notes.items():
        what = "All items so far" if len(names) == len(so_far) else f"All items so far, {', '.join(names)}"
        yield replace(note, message=f"{what}: {note.message}") if note.code == "any-time" else note
    yield from several_note(len(so_far), found.confidence_level)
    changes = {name: (found.since_first(name), found.since_last(name)) for name in so_far}
    moved = [
        name
        for name, (first, last) in changes.items()
        if (first is not None and first.significant) or (last is not None and last.kappas[name].significant)
    ]
    if moved:
        text = f"Kappa of {shown(moved)} has changed, so that all items so far are no sample of the same labels."
        yield Note("any-time-changed", text, "Compare only the audits since the change.")


def _named(entries: list[Entry]) -> list[Entry]:
    """Give each entry a name of its own."""
    found: list[Entry] = []
    taken: set[str] = set()
    for entry in entries:
        name, again = entry.name, 2
        while name in taken:
            name, again = f"{entry.name} ({again})", again + 1
        taken.add(name)
        found.append(replace(entry, name=name))
    return found


def _only(entry: Entry, labelers: Iterable[str]) -> Entry:
    kappas = {name: entry.kappas[name] for name in labelers if name in entry.kappas}
    return replace(entry, kappas=kappas, verdicts={name: entry.verdicts[name] for name in kappas})


def _data_notes(opened: Iterable[SavedAudit]) -> Iterator[Note]:
    """Say that verdicts of tallies are those without annotators."""
    if not all(one.verdicts for one in opened):
        text = "The verdicts of tallies are made from counts, without the comparison with each annotator."
        yield Note("verdict-from-counts", text)


def _filters(saved: SavedAudit) -> tuple[str, ...]:
    """Return the filters of an audit, without the numbers that they have left out."""
    notes = (note for note in saved.tally.source_notes if isinstance(note, SourceNote) and note.code == "filtered")
    return tuple(dict.fromkeys(_LEFT_OUT.sub("", note) for note in notes))


def _filter_notes(named: Iterable[tuple[str, SavedAudit]]) -> Iterator[Note]:
    """Say that the filters of audits differ."""
    filters = {name: _filters(saved) for name, saved in named}
    if len({frozenset(own) for own in filters.values()}) > 1:
        several = [f"{name}: {', '.join(own) or 'none'}" for name, own in filters.items()]
        more = f"; and {len(several) - _NAMED} more audits" if several[_NAMED:] else ""
        text = f"The audits are not comparable: their filters differ ({'; '.join(several[:_NAMED])}{more})."
        yield Note("filters-differ", f"{text} Save all with the same filters.")


def _check_distinct(one: SavedAudit, other: SavedAudit, parameter: str) -> None:
    """Refuse the same file, or the same counts, twice: the samples must be independent."""
    same_file = bool(one.path and other.path) and os.path.realpath(one.path) == os.path.realpath(other.path)
    if same_file or _same_patterns(one, other):
        unnamed = "this audit" if parameter == "baseline" else "a tally"
        first, second = (repr(each.path) if each.path else unnamed for each in (one, other))
        what = f"{first} is given twice." if same_file else f"{first} and {second} have the same content."
        message = f"{what} A change can only be found between different items."
        raise invalid(parameter, message, code="same-audit", hint="Leave one of them out.")


def _same_patterns(one: SavedAudit, other: SavedAudit) -> bool:
    """Tell whether two audits have the same votes with the same labels of the labelers that both have."""
    sizes = [(each.tally.n_items, each.tally.n_votes) for each in (one, other)]
    common = set(one.tally.labelers) & set(other.tally.labelers)
    if not common or sizes[0] != sizes[1] or sizes[0][0] < MANY_ITEMS:
        return False
    first, second = (_patterns(each.tally, common) for each in (one, other))
    return first == second


def _patterns(tally: Tally, labelers: Collection[str]) -> Counter[Any]:
    """Count items by votes, and the labels of some labelers, with weights and strata."""
    counts = tally.counts
    own = replace(counts.columns, labels={name: counts.columns.labels[name] for name in sorted(labelers)})
    found: Counter[Any] = Counter()
    for row in pattern_rows(replace(counts, columns=own)):
        found[repr({**row, "items": None, "votes": sorted(row["votes"], key=repr)})] += row["items"]
    return found


def _check_weights(opened: Iterable[tuple[SavedAudit, str]], parameter: str) -> None:
    """Refuse audits whose kappas have different agreement weights."""
    (first, one), *others = opened
    for saved, name in others:
        same = (first.weights is None) == (saved.weights is None)
        if same and first.weights is not None and saved.weights is not None:
            same = first.tally.categories == saved.tally.categories and _matrix(first) == _matrix(saved)
        if not same:
            message = f"The kappas of {one} and {name} have different agreement weights, or other categories for them."
            hint = "Make both audits with the same $weights and $categories."
            raise invalid(parameter, message, code="different-weights", hint=hint)


def _matrix(saved: SavedAudit) -> list[list[Fraction]]:
    weights = saved.weights
    assert weights is not None
    return [[Fraction(x, weights.unit) for x in row] for row in weights.scaled.tolist()]
