"""The report: one HTML file that opens without a network, and in which nothing of the data can run."""

from __future__ import annotations

import base64
import hashlib
import math
import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from itertools import islice
from typing import Any
from xml.etree import ElementTree  # nosec B405 - it reads what our own charts drew

import numpy as np

from dhkappa.errors import DataError, counted
from dhkappa.memory import MIB, need, need_addresses, release
from dhkappa.paths import write_whole
from dhkappa.report.charts import OF_ONE, Palette, Spec, library, seen, spec_of
from dhkappa.report.content import Chapter, Story, better_first, limits, number, percent, signed
from dhkappa.table import Table

MOST_QUEUED = 1_000  # items of one labeler
MOST_QUEUED_IN_ALL = 3_000
MOST_ROWS = 200  # of any other table
MOST_DRAWN = 8  # labelers with charts of their own
ON_PAPER = 30  # rows of a table
LONGEST = 200  # signs of a name

PAGE = Palette(*[f"var(--{name})" for name in ("ink", "muted", "line", "accent", "second", "third")])
"""The colours of charts, which the page's style has for a light and for a dark ground."""

_RIGHT_TO_LEFT = re.compile(r"([\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+( +(?=[\u0590-\u08ff]))?)+")
_TAGS = {"svg", "g", "path", "line", "rect", "text", "tspan"}
_ATTRIBUTES = re.compile(
    r"d|d?[xy]|[xy][12]|(fill|stroke)(-opacity)?|font-(size|weight)|height|opacity|stroke-(dasharray|linecap|width)"
    r"|stroke-miterlimit|text-anchor|transform|viewBox|width"
)
_FONT = {"labelFontSize": 13, "titleFontSize": 13, "titleFontWeight": "normal", "labelColor": PAGE.ink}
_COLOURS = {"titleColor": PAGE.muted, "gridColor": PAGE.line, "tickColor": PAGE.line}
_LOOKS = {
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {**_FONT, **_COLOURS, "domain": False, "titlePadding": 10},
    "legend": {**_FONT, "offset": 14},
}


def write_report(story: Story, path: str | os.PathLike[str]) -> None:
    """Write the report of an audit to a file: whole, or not at all."""
    write_whole(path, page_of(story), "report")


def page_of(story: Story) -> str:
    """Return the report of an audit as one HTML page, with its charts, style and script inside.

    The page's policy lets its own style and script work, known by their hashes, and nothing else; whatever comes from
    the data is text in it.
    """
    jinja = library("jinja2", "a report")
    markup = library("markupsafe", "a report").Markup
    folder = files("dhkappa.report") / "templates"
    template, style, script = [(folder / f"report.{kind}").read_text("utf-8") for kind in ("html.j2", "css", "js")]

    def chart(name: str, labeler: str | None = None) -> Spec | None:
        """Draw a chart; None where there is nothing to draw."""
        try:
            spec = spec_of(story, name, labeler, PAGE)
        except DataError:
            return None
        return {"title": spec["title"]["text"], "svg": markup(svg_of(spec))}

    def sentence(text: str) -> Any:
        """Write a sentence, in which names that run from right to left stay in their place."""
        return markup(_RIGHT_TO_LEFT.sub(r"<bdi>\g<0></bdi>", str(markup.escape(plain(text, 2_000)))))

    environment = jinja.Environment(autoescape=True, undefined=jinja.StrictUndefined)
    environment.filters |= {"plain": plain, "sentence": sentence}
    drawn = [chapter.name for chapter in story.chapters[:MOST_DRAWN]]
    page: str = environment.from_string(template).render(
        story=story,
        best=story.chapters[0],
        many=len(story.chapters) > 1,
        level=percent(story.level),
        alpha=f"{1 - story.level:.4g}",
        policy=_policy(style, script),
        style=markup(style),
        script=markup(script),
        figures=_key_figures(story),
        charts={name: chart(name) for name in ("scale", "differences")},
        labelers=_labelers(story),
        differences=_differences(story),
        parts=[
            _part(chapter, story.level)
            | {"charts": {name: chart(name, chapter.name) if chapter.name in drawn else None for name in OF_ONE}}
            for chapter in story.chapters
        ],
        queue_heads=_QUEUE,
        queues=_queues(story),
        tighter=_tighter(story),
        dropped=_dropped(story),
        on_paper=ON_PAPER,
        most_drawn=MOST_DRAWN,
        made=f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}",
        python=platform.python_version(),
        numpy=np.__version__,
    )
    return page


def plain(value: Any, longest: int = LONGEST) -> str:
    """Write a value on one line, with control signs spelled out, cut where it is very long; None as nothing."""
    text = "" if value is None else seen(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def check_drawing() -> None:
    """Refuse to draw where what draws charts would end the process: it runs JavaScript, which reserves 64 GiB."""
    need_addresses(66 << 30, "the report")
    need(128 * MIB, "the report")


def svg_of(spec: Spec) -> str:
    """Return a chart as an SVG element to stand in a page, without its title, which the page has in words.

    It is an image whose text alternative is the chart's description; what a tooltip would say of a mark is the mark's
    title. Nothing else is left in it but shapes, text and colours.
    """
    check_drawing()
    release()
    convert = library("vl_convert", "a report")
    drawn = {name: value for name, value in spec.items() if name != "title"}
    try:
        svg = convert.vegalite_to_svg({**drawn, "background": None, "config": _LOOKS}, allowed_base_urls=[])
    except ValueError as error:
        if "oneshot canceled" not in str(error):  # which it says when it has given up
            raise
        raise DataError(
            "the charts of the report cannot be drawn: vl-convert gave up, as it does where too few files may be open "
            f"(ulimit -n).\n{error}"
        ) from error
    cleaned = _cleaned(ElementTree.fromstring(svg))  # nosec B314
    cleaned.set("role", "img")
    cleaned.set("aria-label", spec["description"])
    return ElementTree.tostring(cleaned, encoding="unicode")


def _cleaned(element: ElementTree.Element) -> ElementTree.Element:
    """Copy what draws: no style, link, script or class, and a title where a mark has something to tell."""
    kept = ElementTree.Element(element.tag.rpartition("}")[2])
    for name, value in element.attrib.items():
        if _ATTRIBUTES.fullmatch(name) and (name, value) != ("opacity", "1"):
            kept.set(name, re.sub(r"(\.\d\d)\d+", r"\1", value))
    kept.text = element.text
    if "aria-label" in element.attrib and not len(element):
        ElementTree.SubElement(kept, "title").text = element.get("aria-label")
    for child in element:
        seen = child.get("display") != "none" and child.get("class") != "background"
        if seen and child.tag.rpartition("}")[2] in _TAGS:
            kept.append(_cleaned(child))
    return kept


def _policy(style: str, script: str) -> str:
    """Return a policy under which nothing is ever fetched, and only this style and script work."""
    known = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    return (
        f"default-src 'none'; style-src 'sha256-{known[0]}'; script-src 'sha256-{known[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its head, and what writes the values that some keys of a row have."""

    head: str
    write: Callable[..., str]
    keys: tuple[str, ...]

    @property
    def number(self) -> bool:
        """Whether it holds numbers."""
        return self.write is not plain


@dataclass(frozen=True, slots=True)
class Grid:
    """A table in the page, all text; ``more`` says what is not in it."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    more: str


def _column(head: str, write: Callable[..., str], *keys: str) -> Column:
    return Column(head, write, keys)


def _grid(caption: str, what: str, rows: Iterable[Mapping[str, Any]], columns: Iterable[Column]) -> Grid:
    """Make a table of as many rows as a page can bear, without columns that say nothing."""
    given = list(rows)
    kept = given[:MOST_ROWS]
    said = [
        (column, cells)
        for column in columns
        if any(cells := [column.write(*[row[key] for key in column.keys]) for row in kept])
    ]
    more = f"The first {MOST_ROWS:,} of {len(given):,} {what}; --json has all of them." if given[MOST_ROWS:] else ""
    columns_said = [column for column, _ in said]
    return Grid(caption, columns_said, list(zip(*[cells for _, cells in said], strict=True)), more)


_count = "{:,}".format


def _three(value: float | None) -> str:
    return number(value, 3)


def _signed(value: float | None) -> str:
    return signed(value, 3)


def _limits(low: float | None, high: float | None) -> str:
    return limits(low, high, 3)


def _both_signed(low: float, high: float) -> str:
    """Write the interval of a difference."""
    return "-" if math.isnan(low) else f"{_signed(low)} to {_signed(high)}"


def _share(value: float) -> str:
    if math.isnan(value):
        return "-"
    return "< 1%" if 0 < value < 0.005 else f"{value:.0%}"


def _chance(p: float | None) -> str:
    """Write a p value."""
    if p is None or math.isnan(p):
        return "-"
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def _key_figures(story: Story) -> list[tuple[str, str, str]]:
    """Return the numbers to see first: what, the number, and a word beside it."""
    kappa, interval = story.chapters[0].kappa, story.chapters[0].interval
    whose = " of the best" if len(story.chapters) > 1 else ""
    digits = 3 if interval.high - interval.low < 0.02 else 2
    within = (
        "" if math.isnan(interval.low) else f"{limits(interval.low, interval.high, digits)} ({percent(story.level)})"
    )
    return [
        (f"kappa_DH{whose}", number(kappa.value, digits), within),
        ("Floor", number(kappa.floor, digits), "random labels"),
        ("Ceiling", number(kappa.ceiling, digits), "the panel's own labels"),
        ("Fleiss' kappa", number(story.fleiss.value, digits), "the panel with itself"),
        ("Items", f"{kappa.n_items:,}", counted(kappa.n_votes, "vote")),
    ]


def _labelers(story: Story) -> Grid:
    rows = [
        {
            "name": chapter.name,
            "verdict": chapter.verdict.short,
            "low": chapter.interval.low,
            "high": chapter.interval.high,
            "p": chapter.test.p_value if chapter.test else None,
            **{key: getattr(chapter.kappa, key) for key in ("value", "floor", "ceiling", "fleiss", "n_items")},
        }
        for chapter in story.chapters
    ]
    columns = [
        _column("Labeler", plain, "name"),
        _column("Can be trusted", plain, "verdict"),
        _column("kappa_DH", _three, "value"),
        _column(f"{percent(story.level)} interval", _limits, "low", "high"),
        _column("Floor", _three, "floor"),
        _column("Ceiling", _three, "ceiling"),
        _column("Fleiss", _three, "fleiss"),
        _column("Items", _count, "n_items"),
        _column("p (random)", _chance, "p"),
    ]
    return _grid("Labelers, the best first", "labelers", rows, columns)


def _differences(story: Story) -> Grid:
    columns = [
        _column("Labeler", plain, "labeler"),
        _column("Minus", plain, "other"),
        _column("Difference", _signed, "difference"),
        _column(f"{percent(story.level)} interval", _both_signed, "low", "high"),
        _column("p", _chance, "p"),
        _column("p (Holm)", _chance, "p_holm"),
        _column("Items that differ", _count, "discordant"),
        _column("Remark", plain, "reason"),
    ]
    return _grid("Paired differences in kappa", "pairs", better_first(story.comparison), columns)


def _part(chapter: Chapter, level: float) -> dict[str, Any]:
    """Gather what there is to show of one labeler."""
    within, people = f"{percent(level)} interval", chapter.people
    said: dict[str, Any] = {"chapter": chapter, "ordinal": None, "mean": None}
    if chapter.ordinal is not None:
        said["ordinal"] = f"{number(chapter.ordinal.value, 3)} ({within} {_limits(*chapter.ordinal.interval(level))})"
    if people is not None and not math.isnan(people.difference):
        compared = len(people.table) - len(people.skipped)
        said["mean"] = (
            f"On average the labeler scores {_signed(people.difference)} from a person ({within} "
            f"{_both_signed(people.low, people.high)}); it matches or beats {round(people.matched * compared):,} of "
            f"{counted(compared, 'annotator')}."
        )
    return said | {
        "categories": chapter.categories and _categories(chapter.categories, within),
        "people": people and _people(people.table, within),
        "annotators": chapter.annotators and _annotators(chapter.annotators),
    }


def _categories(table: Table, within: str) -> Grid:
    worst = sorted(table, key=lambda row: (math.isnan(row["kappa"]), -row["loss"]))
    columns = [
        _column("Category", plain, "category"),
        _column("Items", _count, "items"),
        _column("kappa_DH", _three, "kappa"),
        _column(within, _limits, "low", "high"),
        _column("Takes from kappa", _three, "loss"),
        _column("Share of labels", _share, "label_share"),
        _column("Share of votes", _share, "vote_share"),
        _column("Remark", plain, "reason"),
    ]
    return _grid("Kappa by suggested category; those that take most from it first", "categories", worst, columns)


def _people(table: Table, within: str) -> Grid:
    columns = [
        _column("Annotator", plain, "annotator"),
        _column("Items", _count, "items"),
        _column("kappa, annotator", _three, "kappa_person"),
        _column("kappa, labeler", _three, "kappa_labeler"),
        _column("Difference", _signed, "difference"),
        _column(within, _both_signed, "low", "high"),
        _column("Remark", plain, "reason"),
    ]
    ordered = sorted(table, key=lambda row: (math.isnan(row["difference"]), row["difference"]))
    return _grid("Annotators as labelers, those who beat the labeler first", "annotators", ordered, columns)


def _annotators(table: Table) -> Grid:
    columns = [
        _column("Annotator", plain, "annotator"),
        _column("Items", _count, "items"),
        _column("Votes for suggested", _share, "agree"),
        _column("Share of votes", _share, "weight"),
        _column("kappa of these votes", _three, "kappa"),
        _column("kappa without them", _three, "kappa_without"),
        _column("Change", _signed, "change"),
    ]
    return _grid("Annotators in the panel", "annotators", table, columns)


_QUEUE = [
    *(("#", True), ("Item", False), ("Suggested", False), ("Panel says", False), ("Votes", False)),
    *(("Votes cast", True), ("For suggested", True), ("Differential", True)),
]


def _queues(story: Story) -> list[dict[str, Any]]:
    """Return the first items to review of each labeler, as text; none where items are not known."""
    most = min(MOST_QUEUED, MOST_QUEUED_IN_ALL // len(story.chapters))
    found = []
    for chapter in story.chapters:
        if chapter.queue is None:
            continue
        rows = [
            {
                **{key: plain(row[key]) for key in ("item", "suggested", "panel", "votes", "n_votes")},
                "tie": row["tie"],
                "share": _share(row["suggested_share"]),
                "tenths": round(10 * row["suggested_share"]),
                "differential": number(row["differential"]),
            }
            for row in islice(chapter.queue, most)
        ]
        cut = len(rows) < chapter.n_queue
        extent = f"the first {len(rows):,} of {chapter.n_queue:,} items" if cut else counted(len(rows), "item")
        found.append({"name": chapter.name, "rows": rows, "extent": extent, "cut": cut})
    return found


def _tighter(story: Story) -> Grid:
    rows = [{"name": chapter.name, **row} for chapter in story.chapters for row in chapter.tighter or ()]
    columns = [
        _column("Labeler", plain, "name"),
        _column("Half-width", "± {:g}".format, "half_width"),
        _column("Items in all", _count, "items"),
        _column("More items", _count, "more_items"),
        _column("More votes", _count, "more_votes"),
        _column("Items to be 90% sure", _count, "items_assured"),
    ]
    return _grid("Items for a narrower interval", "rows", rows, columns)


def _dropped(story: Story) -> list[str]:
    """Say what did not count, once where it is the same for all labelers."""
    said = {}
    for chapter in story.chapters:
        dropped = chapter.kappa.dropped
        why = f"{counted(dropped.total, 'item')} did not count: {dropped.why()}."
        said[chapter.name] = why if dropped.total else "Every item counts."
    texts = set(said.values())
    return list(texts) if len(texts) == 1 else [f"{name}: {text}" for name, text in said.items()]
