"""What a terminal shows: readable at 80 columns, without colour, and through a pipe."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dhkappa.report.content import Chapter, Story, better_first, limits, number, percent, signed
from dhkappa.table import visible

if TYPE_CHECKING:
    from rich.console import Console

    from dhkappa.stats.compare import Comparison
    from dhkappa.stats.plan import Plan
    from dhkappa.stats.result import Kappa

_COLOURS = {
    "above": "green",
    "level": "green",
    "short": "yellow",
    "between": "cyan",
    "random": "red",
    "spelling": "red",
    "panel": "magenta",
    "unknown": "magenta",
}
_WIDEST = 100
_WORST = 5  # categories
_FIRST = 8  # items to review
_PEOPLE = 12
_GAP = "  "
_NARROWEST = 8


class Screen:
    """A terminal, or whatever stands in its place.

    Parameters
    ----------
    words
        Writes a sentence of the library in the words of whoever reads.
    console
        Where to write; by default standard output, with colours where it is a terminal that has them.
    """

    def __init__(self, words: Callable[[str], str] = str, console: Console | None = None) -> None:
        from rich.console import Console

        self._words = words

        self._console = console or Console(highlight=False, markup=False, emoji=False, soft_wrap=False)
        self._console.width = min(self._console.width, _WIDEST)
        self._encoding = self._console.encoding or "utf-8"
        self._drawn = self._encoding.lower().startswith("utf")

    def _clean(self, text: str) -> str:
        """Spell out what would not stay in its place, or what the terminal cannot write, before it is measured."""
        text = visible(text)
        return text if self._drawn else text.encode(self._encoding, "backslashreplace").decode(self._encoding)

    def audit(self, story: Story) -> None:
        """Show an audit: the answer, then what it rests on, then what to do."""
        best = story.chapters[0]
        self._line(story.title, "bold")
        self._line()
        self._line(story.verdict, f"bold {_COLOURS[best.verdict.code]}")
        self.scale({chapter.name: chapter.kappa for chapter in story.chapters}, story.level)
        self._labelers(story)
        weighted = {chapter.name: chapter.ordinal for chapter in story.chapters if chapter.ordinal is not None}
        if weighted:
            self._scores("Ordinal kappa, with part credit for near votes", weighted, story.level)
        if story.comparison is not None:
            self._differences(story.comparison)
        self._categories(best)
        self._queue(best)
        self._people(best, story.level)
        self._tighter(best)
        if len(story.chapters) > 1:
            self._line()
            others = ", ".join(chapter.name for chapter in story.chapters[1:])
            self._line(
                f"Categories, items and people are shown for {best.name}; --suggested chooses another: {others}."
            )
        self.notes(story.notes)

    def scores(self, kappas: Mapping[str, Kappa], level: float) -> None:
        """Show kappas of some labelers, and what to know about them."""
        self.scale(kappas, level, first=True)
        self._scores("Labelers", kappas, level)
        self.notes(about_all({name: _said(kappa) for name, kappa in kappas.items()}))

    def comparison(self, comparison: Comparison) -> None:
        """Show labelers side by side."""
        self.scale(comparison.kappas, comparison.level, first=True)
        self._differences(comparison)
        undefined = about_all({name: _said(kappa)[:1] for name, kappa in comparison.kappas.items() if kappa.reason})
        self.notes([*undefined, *(note.text for note in comparison.notes)])

    def plan(self, plan: Plan, n_pilot: int | None = None) -> None:
        """Show how many items and votes are needed, and how many more than a pilot has."""
        self._line(f"{plan.items:,} items with {plan.votes:.4g} votes each, {plan.total_votes:,} votes in all", "bold")
        self._line(
            f"give an interval of kappa {number(plan.kappa)} plus or minus {plan.half_width:g} at "
            f"{percent(plan.level)}, on average; with {plan.items_assured:,} items you can be "
            f"{percent(plan.assurance)} sure of it. "
            f"Computed from: {plan.assumes}."
        )
        if n_pilot is not None:
            more = plan.items - n_pilot
            self._line(f"The pilot has {n_pilot:,}: " + (f"{more:,} more." if more > 0 else "that is enough."))
        self._heading("Other numbers of votes on an item")
        for note in plan.notes:
            if note.code == "trade-part":  # where it is read with the numbers
                self._line(note.text)
        rows = [
            [str(row["votes"]), f"{row['items']:,}", f"{row['items_assured']:,}", f"{row['total_votes']:,}"]
            for row in plan.trade
        ]
        self._table(["votes each", "items", f"{percent(plan.assurance)} sure", "votes in all"], rows, left=0)
        self.notes([note.text for note in plan.notes if note.code != "trade-part"])

    def say(self, text: str) -> None:
        """Show a paragraph after an empty line."""
        self._line()
        self._line(text)

    def notes(self, notes: Iterable[str]) -> None:
        """Show sentences as a list."""
        written = list(notes)
        if written:
            self._heading("Notes")
        for note in written:
            self._item(note)

    def scale(self, kappas: Mapping[str, Kappa], level: float, first: bool = False) -> None:
        """Draw kappas with their intervals between floor and ceiling, on one scale."""
        from rich.cells import cell_len

        drawn = [(name, kappa) for name, kappa in _ranked(kappas) if not math.isnan(kappa.value)]
        if not drawn:
            self._line("Kappa is undefined.", "bold")
            return
        ends = [end for _, kappa in drawn for end in (kappa.value, kappa.floor, kappa.ceiling, *kappa.interval(level))]
        known = [end for end in ends if not math.isnan(end)]
        low, high = float(min(0.0, *known)), float(max(known))
        marked = any(not math.isnan(kappa.floor) for _, kappa in drawn)  # none with ordinal weights
        self._heading("Kappa, between floor and ceiling" if marked else "Kappa", first)
        names = max(min(max(cell_len(self._clean(name)) for name, _ in drawn), 20), 5)
        room = max(self._console.width - names - 26, 20)

        def place(value: float) -> int:
            share = (value - low) / ((high - low) or 1.0)
            return round(share * (room - 1))

        for name, kappa in drawn:
            line = self._bar(kappa, level, room, place)
            said = f"  {number(kappa.value):>5}  {limits(*kappa.interval(level))}"
            self._put(_fit(self._clean(name), names), "  ", (line, ""), (said, "bold"))
        marks = [" "] * room
        for value in dict.fromkeys((low, 0.0, high)):
            text = number(value)
            at = min(max(place(value) - len(text) // 2, 0), room - len(text))
            if all(sign == " " for sign in marks[max(at - 1, 0) : at + len(text) + 1]):
                marks[at : at + len(text)] = text
        self._put(" " * names, "  ", ("".join(marks), "dim"))
        dot, lower, line, upper, mark = self._signs()
        ends_said = f"  {mark} floor (random labels), ceiling (panel)" if marked else ""
        self._line(f"{dot} kappa  {lower}{line}{upper} {percent(level)} interval{ends_said}", "dim")

    def _signs(self) -> tuple[str, ...]:
        return tuple("●├─┤|" if self._drawn else "o[-]|")

    def _bar(self, kappa: Kappa, level: float, room: int, place: Any) -> str:
        dot, lower, line, upper, mark = self._signs()
        cells = [" "] * room
        if not math.isnan(kappa.floor) and not math.isnan(kappa.ceiling):
            ends = sorted((place(kappa.floor), place(kappa.ceiling)))
            cells[ends[0] : ends[1]] = "·" * (ends[1] - ends[0]) if self._drawn else "." * (ends[1] - ends[0])
            cells[ends[0]] = cells[ends[1]] = mark
        low, high = kappa.interval(level)
        at = place(kappa.value)
        if not math.isnan(low):
            below, above = low < kappa.value, high > kappa.value
            # The ends have a place beside it, however near they are.
            at = min(max(at, int(below)), room - 1 - int(above))
            first, last = min(place(low), at - int(below)), max(place(high), at + int(above))
            cells[first : last + 1] = line * (last + 1 - first)
            cells[first], cells[last] = lower, upper
        cells[at] = dot
        return "".join(cells)

    def _labelers(self, story: Story) -> None:
        self._heading("Labelers")
        rows = [
            [
                chapter.name,
                chapter.verdict.short,
                number(chapter.kappa.floor),
                number(chapter.kappa.ceiling),
                _p(chapter.test.p_value if chapter.test else math.nan),
                f"{chapter.kappa.n_items:,}",
            ]
            for chapter in story.chapters
        ]
        self._table(["labeler", "to be trusted", "floor", "ceiling", "p random", "items"], rows, left=2)
        among = f"{number(story.fleiss.value)}, interval {limits(*story.fleiss.interval(story.level))}"
        self._line(f"Annotators among themselves: Fleiss' kappa {among}.")

    def _scores(self, heading: str, kappas: Mapping[str, Kappa], level: float) -> None:
        self._heading(heading)
        rows = [
            [
                name,
                number(kappa.value),
                limits(*kappa.interval(level)),
                *map(number, (kappa.floor, kappa.ceiling, kappa.fleiss)),
                f"{kappa.n_items:,}",
            ]
            for name, kappa in _ranked(kappas)
        ]
        fleiss = "weighted Fleiss" if any(kappa.metric == "ordinal" for kappa in kappas.values()) else "Fleiss"
        self._table(["labeler", "kappa", f"{percent(level)} interval", "floor", "ceiling", fleiss, "items"], rows)

    def _differences(self, comparison: Comparison) -> None:
        n_items = next(iter(comparison.kappas.values())).n_items
        self._heading(f"Differences between labelers, on the {n_items:,} items that all of them labeled")
        rows = []
        for row in better_first(comparison):
            within = "-" if math.isnan(row["low"]) else f"{signed(row['low'])} to {signed(row['high'])}"
            numbers = signed(row["difference"]), within, _p(row["p_holm"]), f"{row['discordant']:,}"
            rows.append([row["labeler"], row["other"], *numbers])
        columns = ["labeler", "minus", "difference", f"{percent(comparison.level)} interval", "p (Holm)", "differ on"]
        self._table(columns, rows, left=2)

    def _categories(self, chapter: Chapter) -> None:
        if chapter.categories is None:
            return
        worst = sorted((row for row in chapter.categories if row["loss"] > 0), key=lambda row: -row["loss"])[:_WORST]
        if not worst:
            return
        self._heading(f"Worst categories of {chapter.name}, by what they take from kappa")
        instead = _instead(chapter)
        rows = [
            [
                str(row["category"]),
                instead.get(row["category"], ""),
                f"-{number(row['loss'], 3)}",
                number(row["kappa"]),
                limits(row["low"], row["high"]),
                f"{row['items']:,}",
            ]
            for row in worst
        ]
        self._table(["suggested", "votes go instead to", "takes", "kappa", "interval", "items"], rows, left=2)

    def _queue(self, chapter: Chapter) -> None:
        if chapter.queue is None:
            return
        rejected = [row for row in chapter.queue if row["differential"] < 0]
        if not rejected:
            return
        self._heading(f"To review first: items where the panel rejects the label of {chapter.name}")
        rows = [
            [
                str(row["item"]),
                str(row["suggested"]),
                "(tie)" if row["tie"] else str(row["panel"]),
                str(row["votes"]),
            ]
            for row in rejected[:_FIRST]
        ]
        self._table(["item", "suggested", "panel", "votes"], rows, left=4)
        if len(rejected) > _FIRST:
            self._line("dhkappa items writes the whole queue as CSV.", "dim")

    def _people(self, chapter: Chapter, level: float) -> None:
        known = [row for row in chapter.people.table if not math.isnan(row["difference"])] if chapter.people else []
        if not known:
            return
        self._heading(f"{chapter.name} beside each annotator, both judged by the others")
        people = sorted(known, key=lambda row: row["difference"])
        rows = [
            [
                str(row["annotator"]),
                f"{row['items']:,}",
                number(row["kappa_person"]),
                number(row["kappa_labeler"]),
                signed(row["difference"]),
                "-" if math.isnan(row["low"]) else f"{signed(row['low'])} to {signed(row['high'])}",
            ]
            for row in people
        ]
        if len(rows) > _PEOPLE:
            hidden = f"({len(rows) - _PEOPLE:,} more)"
            rows = [*rows[: _PEOPLE // 2], [hidden, *[""] * 5], *rows[-_PEOPLE // 2 :]]
        self._table(["annotator", "items", "person", "labeler", "difference", f"{percent(level)} interval"], rows)

    def _tighter(self, chapter: Chapter) -> None:
        if chapter.tighter is None or not len(chapter.tighter):
            return
        row = next(iter(chapter.tighter))
        self._line()
        self._line(
            f"For an interval of plus or minus {row['half_width']:g}: {row['more_items']:,} more items, about "
            f"{row['more_votes']:,} votes."
        )

    def _heading(self, text: str, first: bool = False) -> None:
        if not first:
            self._line()
        self._line(text, "bold underline")

    def _line(self, text: str = "", style: str = "") -> None:
        from rich.text import Text

        self._print(Text(self._clean(text), style=style))

    def _item(self, text: str) -> None:
        """Show a sentence of a list."""
        from rich.text import Text

        lines = Text(self._clean(self._words(text))).wrap(self._console, self._console.width - 2)
        for place, line in enumerate(lines):
            self._put("  " if place else "- ", (line.plain.rstrip(), ""))

    def _put(self, *parts: str | tuple[str, str]) -> None:
        """Show one line, parts of it in a style."""
        from rich.text import Text

        line = Text()
        for part in parts:
            line.append(*((part,) if isinstance(part, str) else part))
        self._print(
            line, no_wrap=True, overflow="ignore", crop=False
        )  # a row stays one line, however narrow it is here

    def _table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> None:
        """Show rows: the first columns to the left, and cut where need be; the others, which are numbers, whole."""
        from rich.cells import cell_len

        cells = [[self._clean(cell) for cell in row] for row in rows]
        widths = [max(cell_len(row[place]) for row in [columns, *cells]) for place in range(len(columns))]
        room = self._console.width - len(_GAP) * (len(columns) - 1) - sum(widths[left:])
        while sum(widths[:left]) > room and max(widths[:left]) > _NARROWEST:
            widths[widths.index(max(widths[:left]))] -= 1
        for style, row in [("dim", columns), *(("", row) for row in cells)]:
            texts = [
                _fit(cell, width) if place < left else " " * (width - cell_len(cell)) + cell
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            self._put((_GAP.join(texts), style))

    def _print(self, what: Any, **how: Any) -> None:
        """Print without the blanks that fill a line up."""
        with self._console.capture() as captured:
            self._console.print(what, **how)
        self._console.file.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def _ranked(kappas: Mapping[str, Kappa]) -> list[tuple[str, Kappa]]:
    """Return labelers, the best first."""
    return sorted(kappas.items(), key=lambda pair: (math.isnan(pair[1].value), -pair[1].value))


def _said(kappa: Kappa) -> list[str]:
    """Return why a kappa is undefined, where it is, and its notes."""
    reason = [f"Kappa is undefined: {kappa.reason}"] if kappa.reason else []
    return [*reason, *(note.text for note in kappa.notes)]


def about_all(notes: Mapping[str, Sequence[str]]) -> list[str]:
    """Return each note once, with the labelers it is about unless it is about all."""
    about: dict[str, list[str]] = {}
    for name, texts in notes.items():
        for text in texts:
            about.setdefault(text, []).append(name)
    return [text if len(names) == len(notes) else f"{', '.join(names)}: {text}" for text, names in about.items()]


def _instead(chapter: Chapter) -> dict[Any, str]:
    """Say what else votes are for, where each label is suggested."""
    found: dict[Any, str] = {}
    best: dict[Any, float] = {}
    for row in chapter.confusion or ():
        label, other = row["suggested"], row["agreed"]
        if other is not None and other != label and row["vote_share"] > best.get(label, 0):
            best[label] = row["vote_share"]
            found[label] = f"{other} ({row['vote_share']:.0%})"
    return found


def _p(value: float) -> str:
    if math.isnan(value):
        return "-"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _fit(text: str, width: int) -> str:
    """Cut or fill a name to a width."""
    from rich.cells import cell_len, set_cell_size

    return set_cell_size(text, width) if cell_len(text) <= width else set_cell_size(text, width - 3) + "..."
