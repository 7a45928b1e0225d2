"""Results as text for a terminal: readable at 80 columns, without colors, and through a pipe."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console, OverflowMethod
from rich.text import Text

from dhkappa.errors import Problem, counted, flag, said, visible
from dhkappa.report import (
    REVIEW_LIMIT,
    better_first,
    compared_on,
    filter_texts,
    grid,
    kappa_name,
    labeler_rows,
    limits,
    number,
    optional,
    other_annotators_text,
    percent,
    which_is_better,
)
from dhkappa.report.pool import pool_cells, pool_notes
from dhkappa.report.slices import slice_notes, slices_shown
from dhkappa.stats.grades import cannot_judge, digits_of
from dhkappa.stats.notes import any_time_notes, several_note
from dhkappa.table import text_table

if TYPE_CHECKING:
    from dhkappa.annotator_audit import AnnotatorAudit, SingleVoteAudit
    from dhkappa.auditing import Audit
    from dhkappa.inputs.check import Check
    from dhkappa.multilabel import MultilabelAudit
    from dhkappa.stats.annotator_result import AnnotatorScores
    from dhkappa.stats.comparison import Comparison
    from dhkappa.stats.gate import Gate
    from dhkappa.stats.notes import Note
    from dhkappa.stats.plan import Plan
    from dhkappa.stats.pool_result import PoolShares
    from dhkappa.stats.result import Kappa

_COLORS = {"better": "green", "on-par": "green", "slightly-below": "yellow", "below": "yellow"}
_COLORS |= {
    "clearly-below": "red",
    "no-better-than-random": "red",
    "data-problem": "red",
    "labels-from-votes": "magenta",
}
_COLORS |= {"pass": "green", "fail": "red", "undecided": "yellow"}  # nosec B105 - an outcome
_SEVERITIES = {"error": "bold red", "warning": "yellow", "info": ""}
_WIDEST = 100
_WORST_CATEGORIES = 5
_FIRST_ITEMS = 8
_ANNOTATORS = 12
_COLUMNS = 40
_NARROWEST = 8
_BROKEN_HEADS = {
    head: head.replace(after, f"{after.strip()}\n")
    for head, after in {
        "agrees with others": "agrees ",
        "beyond chance": "beyond ",
        "vs others on same items": "vs others on ",
    }.items()
}
_WRAPPED = ("labeler", "minus", "verdict", "slice", "remark")  # columns whose text is not cut
_FEW_PILOT_ITEMS = 30


class Terminal:
    """Writer of results to a console; by default standard output, with colors if it is a terminal with colors."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, markup=False, emoji=False, soft_wrap=False)
        self._console.width = min(self._console.width, _WIDEST)
        self._encoding = self._console.encoding or "utf-8"
        self._unicode = self._encoding.lower().startswith("utf")
        self._overflow: OverflowMethod = "ellipsis" if self._unicode else "crop"
        self._signs = tuple("●├─┤|·" if self._unicode else "o[-]|.")

    def _clean(self, text: str) -> str:
        """Escape control characters, and characters that the terminal cannot write."""
        text = visible(text)
        return text if self._unicode else text.encode(self._encoding, "backslashreplace").decode(self._encoding)

    def audit(self, audit: Audit, title: str, gate: Gate | None = None, review: str = "") -> None:
        """Show an audit: problems, the answer, then the evidence, then what to do; ``review`` writes the queue."""
        names, level = audit.ranking, audit.confidence_level
        best = names[0]
        self._title(title, audit.notes)
        self._problems(audit.problems)
        self._line()
        self._line(audit.headline, f"bold {_COLORS.get(audit.verdict(best).code, 'cyan')}")
        if audit.details:
            self.paragraph(audit.details)
        self.paragraph(f"Next: {audit.next_step(best).text}")
        if audit.baseline is not None:
            self.paragraph(audit.baseline.text)
        self._meaningless(audit.problems)
        self.gate(gate)
        self._scale(audit.kappas, level, order=names)
        self._labelers(audit)
        if audit.comparison is not None:
            self._differences(audit.comparison, audit.problems)
        self._categories(audit, best)
        sliced = bool(audit.slice_columns or audit.annotator_columns)
        for found in slices_shown(audit, best) if sliced else ():
            self._heading(found.heading)
            self._grid(found.rows, found.columns, level)
            for text in found.texts:
                self._line(text)
        self._review(audit, best, review)
        if (scores := optional(audit.annotator_scores)) is not None:
            self._heading(scores.table.title)
            self.annotators(scores)
        for row in islice(audit.sample_sizes(best) if audit.verdict(best).more_items else (), 1):
            more = f"{row['more_items']:,} more items, about {row['more_votes']:,} votes"
            self.paragraph(f"For a confidence interval of plus or minus {row['half_width']:g}: {more}.")
        if len(names) > 1:
            others = " or ".join(names[1:])
            name = names[1] if len(names) == 2 else "and the name"
            shown = f"Categories and items are shown for {best}."
            self.paragraph(f"{shown} For {others}, add --suggested {name}.")
        notes = [*_infos(audit.problems), *_texts(audit.notes)]
        self._notes([*notes, *map(_text, slice_notes(audit, best))] if sliced else notes)

    def other_audit(self, audit: AnnotatorAudit | SingleVoteAudit, title: str) -> None:
        """Show an audit of annotators alone, or of one vote per item: the answer, then its tables."""
        self._title(title, audit.notes)
        self._problems(audit.problems)
        self._line()
        self._line(audit.summary, "bold")
        for table, columns in audit.tables():
            rows = list(islice(table, _ANNOTATORS))
            if rows:
                self._heading(table.title)
                self._grid(rows, columns, audit.confidence_level, table.shown)
            if len(table) > len(rows):
                self._line(f"({len(table) - len(rows):,} more)", "dim")
        self._notes([*_infos(audit.problems), *_texts(audit.notes)])

    def multilabel(self, found: MultilabelAudit, title: str) -> None:
        """Show an audit of data with sets of labels."""
        self._title(title, found.notes)
        self._problems(found.problems)
        self.paragraph(found.summary)
        self._meaningless(found.problems)
        self._heading("Each category as a yes/no question, the lowest kappa first")
        labeler = "labeler " if len(found.labelers) > 1 else ""
        self._grid(
            found.table,
            f"{labeler}category n_suggested vote_share kappa ci pvalue_holm fleiss items",
            found.confidence_level,
        )
        self._notes([*_infos(found.problems), *_texts(found.notes)])

    def check(self, check: Check, command: str, heading: str = "Next, run:", remark: str = "") -> None:
        """Show what was understood of the data, the problems, and the command to run next."""
        for line in check.understood():
            self._line(line)
        if check.columns:
            self._heading("Columns")
            table = check.column_table()
            rows = [[str(row[name]) for name in table.names] for row in islice(table, _COLUMNS)]
            self._table(table.names, rows, [False] * len(table.names))
            if len(table) > _COLUMNS:
                self._line(f"({len(table) - _COLUMNS:,} more)", "dim")
        self._heading("Problems")
        self._problems(check.problems, everything=True, first=True)
        if not check.problems:
            self._line("None found.")
        self.paragraph(heading)
        self._parts(f"  {self._clean(command)}")
        if remark:
            self._line(remark)

    def scores(self, kappas: Mapping[str, Kappa], confidence_level: float, problems: Sequence[Problem] = ()) -> None:
        """Show kappas of labelers, problems of the data and notes."""
        labeler_rows(kappas, confidence_level)  # an invalid level is an error before anything is printed
        self._problems(problems, first=True)
        self._scale(kappas, confidence_level, first=not problems)
        self._scores("Labelers", kappas, confidence_level)
        texts = {
            id(kappa): [_text(note) for note in kappa.notes if not any(one.covers(note.code, name) for one in problems)]
            for name, kappa in kappas.items()
        }
        for kappa in kappas.values():
            held = any_time_notes(kappa.estimate.sample, confidence_level) if kappa.any_time else ()
            texts[id(kappa)] += map(_text, held)
        notes = _by_labeler(kappas, lambda kappa: [*_undefined(kappa), *texts[id(kappa)]])
        several = several_note(sum(kappa.any_time for kappa in kappas.values()), confidence_level)
        self._notes([*_infos(problems), *notes, *map(_text, several)])

    def comparison(self, comparison: Comparison, problems: Sequence[Problem] = ()) -> None:
        """Show a comparison of labelers."""
        self._problems(problems, first=True)
        if text := which_is_better(comparison, problems):
            self._line(text, "bold")
        level, order = comparison.confidence_level, comparison.table().column("labeler")
        others = comparison.other_annotators
        self._scale(comparison.kappas, level, not (problems or text), order, "random" if others else "fixed")
        if others:
            self._line("Intervals and p-values are for other annotators like these, and other items.")
        self._heading("Labelers")
        self._grid(comparison.table(), "labeler kappa ci baseline_random baseline_majority items coverage", level)
        self._differences(comparison, problems)
        undefined = {name: kappa for name, kappa in comparison.kappas.items() if kappa.reason}
        self._notes([*_infos(problems), *_by_labeler(undefined, _undefined), *map(_text, comparison.notes)])

    def annotators(self, scores: AnnotatorScores, all_written: bool = False) -> None:
        """Show who differs from the rest, and the first annotators."""
        self._line(scores.summary)
        listed = scores.listed()
        rows = list(islice(listed, _ANNOTATORS))
        if rows:
            self._grid(rows, "annotator items agree shrunk_score ci deviation remark", scores.confidence_level)
        if len(listed) > len(rows):
            more = "" if all_written else "; dhkappa annotators -o FILE writes all"
            self._line(f"({len(listed) - len(rows):,} more{more})", "dim")
        for note in scores.notes if rows else ():
            self._line(_text(note), "dim")

    def pool(self, found: PoolShares) -> None:
        """Show the shares of a pool and its wrong labels."""
        self._line(found.summary, "bold")
        self._line()
        self._table(*pool_cells(found))
        self._notes(pool_notes(found))

    def plan(self, plan: Plan, n_pilot: int | None = None) -> None:
        """Show how many items and votes are needed, and how many more than a pilot has."""
        self._line(f"{plan.items:,} items {plan.distribution}, {plan.total_votes:,} votes in all", "bold")
        self._line(
            f"give a {percent(plan.confidence_level)} confidence interval of kappa {number(plan.kappa)} plus or minus "
            f"{plan.half_width:g}, on average; with {plan.items_assured:,} items you can be {percent(plan.assurance)} "
            f"sure of it. Computed from: {plan.assumes}."
        )
        if n_pilot is not None:
            more = plan.items - n_pilot
            self._line(f"The pilot has {n_pilot:,} items: " + (f"{more:,} more are needed." if more > 0 else "enough."))
        if n_pilot is not None and n_pilot < _FEW_PILOT_ITEMS:
            few = f"The pilot has fewer than {_FEW_PILOT_ITEMS} items: too few to compare numbers of votes per item."
            self._notes([*(_text(note) for note in plan.notes if not note.code.startswith("options-")), few])
            return
        self._heading("Other numbers of votes per item")
        for note in plan.notes:
            if note.code == "options-partial":  # it explains the table below
                self._line(_text(note))
        heads = ["votes each", "items", f"{percent(plan.assurance)} sure", "votes in all"]
        keys = ("votes", "items", "items_assured", "total_votes")
        self._table(heads, [[f"{row[key]:,}" for key in keys] for row in plan.options], [True] * 4)
        self._notes(_text(note) for note in plan.notes if note.code != "options-partial")

    def gate(self, gate: Gate | None) -> None:
        """Show the outcome of a gate, if there is one."""
        if gate is not None:
            self.paragraph(gate.text, f"bold {_COLORS[gate.outcome]}")

    def paragraph(self, text: str, style: str = "") -> None:
        """Show a paragraph after an empty line."""
        self._line()
        self._line(text, style)

    def _problems(self, problems: Iterable[Problem], everything: bool = False, first: bool = False) -> None:
        """Show errors and warnings, or everything with examples; accepted problems in a line each."""
        for problem in problems:
            if problem.severity == "info" and not everything:
                continue
            if not first:
                self._line()
            first = False
            style = "dim" if problem.accepted else _SEVERITIES[problem.severity]
            self._line(problem.labeled_text(flag), style)
            if everything and problem.examples:
                self._line(f"Examples: {'; '.join(problem.examples)}", "dim")

    def _meaningless(self, problems: Iterable[Problem]) -> None:
        """Say that numbers have no meaning if the data has an error."""
        if any(problem.severity == "error" and not problem.accepted for problem in problems):
            self.paragraph("The numbers below mean nothing until the error is fixed, or accepted with --allow.")

    def _notes(self, notes: Iterable[str]) -> None:
        for place, note in enumerate(notes):
            if place == 0:
                self._heading("Notes")
            lines = Text(self._clean(note)).wrap(self._console, self._console.width - 2)
            for first, line in enumerate(lines):
                self._parts("  " if first else "- ", line.plain.rstrip())

    def _scale(
        self,
        kappas: Mapping[str, Kappa],
        confidence_level: float,
        first: bool = False,
        order: Sequence[str] = (),
        annotators: str = "fixed",
    ) -> None:
        """Draw kappas with confidence intervals and baselines on one scale; by default the highest kappa first."""
        what = kappa_name(kappas).capitalize()
        drawn = [row for row in labeler_rows(kappas, confidence_level, annotators) if not math.isnan(row["kappa"])]
        if order:
            drawn.sort(key=lambda row: order.index(row["labeler"]))
        if not drawn:
            self._line(f"{what} is undefined.", "bold")
            return
        columns = ("kappa", "low", "high", "baseline_random", "baseline_majority")
        known = [float(row[column]) for row in drawn for column in columns if not math.isnan(row[column])]
        low, high = min(0.0, *known), max(known)
        self._heading(f"{what}, with random and majority labels for comparison", first)
        names = max(min(max(cell_len(self._clean(row["labeler"])) for row in drawn), 20), 5)
        digits = max(digits_of(row["high"] - row["low"]) for row in drawn)
        width = max(self._console.width - names - 20 - 3 * digits, 20)

        def place(value: float) -> int:
            return round((value - low) / ((high - low) or 1.0) * (width - 1))

        for row in drawn:
            name = Text(self._clean(row["labeler"]))
            name.truncate(names, overflow=self._overflow, pad=True)
            values = f"  {number(row['kappa'], digits):>{digits + 3}}  {limits(row['low'], row['high'], digits)}"
            self._parts(name, "  ", self._bar(row, width, place), (values, "bold"))
        marks = [" "] * width
        for value in dict.fromkeys((low, 0.0, high)):
            text = number(value, digits)
            at = min(max(place(value) - len(text) // 2, 0), width - len(text))
            if all(char == " " for char in marks[max(at - 1, 0) : at + len(text) + 1]):
                marks[at : at + len(text)] = text
        self._parts(" " * names, "  ", ("".join(marks), "dim"))
        dot, lower, line, upper, mark, _ = self._signs
        legend = f"  {mark} random labels, majority labels"
        self._line(f"{dot} {what.lower()}  {lower}{line}{upper} {percent(confidence_level)} CI{legend}", "dim")

    def _bar(self, row: Mapping[str, Any], width: int, place: Callable[[float], int]) -> str:
        dot, lower, line, upper, mark, between = self._signs
        cells = [" "] * width
        kappa, low, high = row["kappa"], row["low"], row["high"]
        baselines = row["baseline_random"], row["baseline_majority"]
        if not any(map(math.isnan, baselines)):
            start, end = sorted(map(place, baselines))
            cells[start:end] = between * (end - start)
            cells[start] = cells[end] = mark
        at = place(kappa)
        if not math.isnan(low):
            below, above = int(low < kappa), int(high > kappa)
            # A narrow interval still shows both ends beside the dot.
            at = min(max(at, below), width - 1 - above)
            first, last = min(place(low), at - below), max(place(high), at + above)
            cells[first : last + 1] = line * (last + 1 - first)
            cells[first], cells[last] = lower, upper
        cells[at] = dot
        return "".join(cells)

    def _labelers(self, audit: Audit) -> None:
        self._heading("Labelers")
        level = audit.confidence_level
        self._grid(audit.rows(), "labeler verdict baseline_random baseline_majority pvalue items coverage", level)
        interval = audit.fleiss.confidence_interval(level)
        within = "" if math.isnan(interval.low) else f" ({percent(level)} CI {limits(*interval)})"
        fleiss = "Fleiss' kappa" if audit.metric == "dh" else "weighted Fleiss' kappa"
        self._line(f"Agreement between annotators: {fleiss} {number(audit.fleiss.value)}{within}.")
        if text := other_annotators_text(audit, audit.ranking[0]):
            self._line(text)

    def _scores(self, heading: str, kappas: Mapping[str, Kappa], confidence_level: float) -> None:
        self._heading(heading)
        fleiss = "fleiss" if kappa_name(kappas) == "kappa" else "weighted_fleiss"
        rows = [row | {fleiss: row["fleiss"]} for row in labeler_rows(kappas, confidence_level)]
        self._grid(
            rows, f"labeler kappa ci baseline_random baseline_majority {fleiss} items coverage", confidence_level
        )

    def _differences(self, comparison: Comparison, problems: Sequence[Problem]) -> None:
        kappa = kappa_name(comparison.kappas)
        what = "Differences" if kappa == "kappa" else f"Differences in {kappa}"
        self._heading(f"{what} between labelers, {compared_on(comparison)}")
        for name in comparison.kappas:
            if unjudged := cannot_judge(name, problems):
                self._line(f"{unjudged.headline} Its differences say nothing about its labels.")
        same = len({*comparison.differences.column("items")}) == 1
        columns = f"labeler other difference ci pvalue_holm discordant{'' if same else ' items'}"
        self._grid(better_first(comparison), columns, comparison.confidence_level)
        if comparison.other_annotators:
            for reason in dict.fromkeys(filter(None, comparison.differences.column("reason"))):
                self._line(f"No interval: {reason}")

    def _categories(self, audit: Audit, name: str) -> None:
        table = optional(audit.categories, name)
        worst = sorted((row for row in table or () if row["loss"] > 0), key=lambda row: -row["loss"])
        if not worst:
            return
        n_suggested = sum(1 for row in table or () if row["items"])
        n_shown = min(len(worst), _WORST_CATEGORIES)
        extent = f" ({n_shown} of {n_suggested})" if n_shown < n_suggested else ""
        self._heading(f"Worst categories of {name}, by loss of {kappa_name(audit.kappas)}{extent}")
        other: dict[Any, tuple[float, str]] = {}  # by suggested label: the most frequent other vote
        for row in optional(audit.confusion, name) or ():
            label, vote, part = row["suggested"], row["agreed"], row["vote_share"]
            if vote is not None and vote != label and part > other.get(label, (0.0, ""))[0]:
                other[label] = part, f"{vote} ({part:.0%})"
        rows = [row | {"instead": other.get(row["category"], (0.0, ""))[1]} for row in worst[:_WORST_CATEGORIES]]
        more = sum(row["rate_items"] - row["items"] for row in table or ())
        if more and not math.isnan(worst[0]["precision"]):
            self._line(f"Precision and recall also use {counted(more, 'item')} with one vote.")
        self._grid(rows, "category instead loss kappa ci precision recall items", audit.confidence_level)

    def _review(self, audit: Audit, name: str, command: str) -> None:
        queue = optional(audit.review, name, REVIEW_LIMIT)
        rejected = [row for row in queue or () if row["differential"] < 0]
        if queue is None or not rejected:
            return
        self._heading(f"Review first: items where the annotators reject the label of {name}")
        rows = [row | ({"majority": "(tie)"} if row["tie"] else {}) for row in rejected[:_FIRST_ITEMS]]
        self._grid(rows, "item suggested majority votes", audit.confidence_level, queue.shown)
        if len(rejected) > _FIRST_ITEMS and command:
            self._line("To write the whole queue as CSV:", "dim")
            self._parts(f"  {self._clean(command)}")

    def _title(self, title: str, notes: Iterable[Note]) -> None:
        """Print the title, and what filters have left out."""
        self._line(title, "bold")
        for text in filter_texts(notes):
            self._line(text)

    def _heading(self, text: str, first: bool = False) -> None:
        if not first:
            self._line()
        self._line(text, "bold underline")

    def _line(self, text: str = "", style: str = "") -> None:
        self._print(Text(self._clean(text), style=style))

    def _parts(self, *parts: str | Text | tuple[str, str]) -> None:
        """Print one line that is never wrapped, with some parts in a style."""
        self._print(Text.assemble(*parts), no_wrap=True, overflow="ignore", crop=False)

    def _grid(
        self, rows: Iterable[Mapping[str, Any]], columns: str, confidence_level: float, shown: Sequence[str] = ()
    ) -> None:
        """Print some columns of a result."""
        heads, cells, numbers = grid(rows, columns, confidence_level, shown=shown)
        self._table([_BROKEN_HEADS.get(head, head) for head in heads], cells, numbers)

    def _table(self, heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool]) -> None:
        cells = [[self._clean(cell) for cell in row] for row in rows]
        how: dict[str, Any] = {"narrowest": _NARROWEST, "overflow": self._overflow, "wrapped": _WRAPPED}
        table, _ = text_table(
            ["\n".join(map(self._clean, head.split("\n"))) for head in heads],
            cells,
            numbers,
            width=self._console.width,
            **how,
        )
        self._print(table)

    def _print(self, content: Any, **options: Any) -> None:
        """Print without trailing blanks."""
        with self._console.capture() as captured:
            self._console.print(content, **options)
        self._console.file.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def _texts(notes: Iterable[Note]) -> list[str]:
    """Return the texts of notes, without those on filters, which are shown above the results."""
    return [_text(note) for note in notes if note.code != "filtered"]


def _text(note: Note) -> str:
    """Return the text of a note, with the options of the command line."""
    return said(note.message, note.hint, flag)


def _infos(problems: Iterable[Problem]) -> list[str]:
    return [problem.text(flag) for problem in problems if problem.severity == "info" and not problem.accepted]


def _undefined(kappa: Kappa) -> list[str]:
    return [f"Kappa is undefined: {kappa.reason}"] if kappa.reason else []


def _by_labeler(kappas: Mapping[str, Kappa], texts_of: Callable[[Kappa], list[str]]) -> list[str]:
    """Return each text once, with its labelers unless it applies to all."""
    labelers: dict[str, list[str]] = {}
    for name, kappa in kappas.items():
        for text in texts_of(kappa):
            labelers.setdefault(text, []).append(name)
    return [text if len(names) == len(kappas) else f"{', '.join(names)}: {text}" for text, names in labelers.items()]
