"""Charts: what an audit found, in Vega-Lite; Altair shows it in a notebook, and the report as an image in the page.

A chart is written as the plain values that Altair would make of it, so that a report need not wait for Altair.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from dhkappa.errors import DataError, counted, did_you_mean, shown
from dhkappa.report.content import Chapter, Story, better_first, limits, number, percent, signed
from dhkappa.table import visible

CHARTS: tuple[str, ...] = ("scale", "differences", "categories", "confusion", "people")
OF_ONE: tuple[str, ...] = ("categories", "confusion", "people")

MOST_LABELERS = 40
MOST_DIFFERENCES = 30
MOST_CATEGORIES = 30
MOST_CELLS = 20  # categories on each side of the heat map
MOST_PEOPLE = 40

Spec = dict[str, Any]

_WIDTH = 540
_LONGEST = 60  # signs of a name
_NUMBERED = 10  # categories whose heat map has room for numbers
_SPLIT = "others"
_LEAST = -1.0  # kappa of a category may be far lower; it is drawn here


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours of a chart.

    Attributes
    ----------
    ink, muted, line : of text, of lesser text, and of grids
    accent : of the labeler
    second, third : of random labels or annotators, and of the panel's own labels
    """

    ink: str
    muted: str
    line: str
    accent: str
    second: str
    third: str


LIGHT = Palette("#1c2126", "#5a646e", "#d9dee3", "#1d5f96", "#94590b", "#2b7348")
"""For a notebook, on a light ground."""


def chart_of(story: Story, name: str, labeler: str | None = None, palette: Palette = LIGHT) -> Any:
    """Return one of the charts, as an Altair chart with all its data inside; given as to ``spec_of``."""
    spec = spec_of(story, name, labeler, palette)
    return library("altair", "a chart").Chart.from_dict(spec)


def spec_of(story: Story, name: str, labeler: str | None = None, palette: Palette = LIGHT) -> Spec:
    """Return one of ``CHARTS``, as Vega-Lite with all its data inside.

    ``labeler`` says whose; it may be left out where there is one, and for the charts of all labelers.
    """
    if name not in CHARTS:
        raise DataError(f"chart {shown([name])} is none of {shown(CHARTS, 10)}.{did_you_mean(name, CHARTS)}")
    if name == "scale":
        return _scale(story, palette)
    if name == "differences":
        return _differences(story, palette)
    chapter = _chapter(story, labeler)
    if name == "categories":
        return _categories(chapter, story.level, palette)
    return _confusion(chapter, palette) if name == "confusion" else _people(chapter, palette)


def library(name: str, what: str) -> Any:
    """Import a library that only charts and reports need, or say how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        message = f"{what} needs {name}, which cannot be imported: pip install 'dhkappa[report]'"
        raise DataError(message) from error


def _chapter(story: Story, labeler: str | None) -> Chapter:
    found = [chapter for chapter in story.chapters if labeler in (None, chapter.name)]
    if len(found) != 1:
        asked = "say which labeler" if labeler is None else f"labeler {shown([labeler])} is not in the audit"
        raise DataError(f"{asked}. Labelers: {shown([chapter.name for chapter in story.chapters], 10)}.")
    return found[0]


def _scale(story: Story, palette: Palette) -> Spec:
    """Draw every labeler between what random labels and the panel's own labels would score."""
    known = [chapter for chapter in story.chapters if not math.isnan(chapter.kappa.value)]
    if not known:
        raise DataError("the scale has nothing to show, as no labeler has a kappa that is defined.")
    total, known = len(known), known[:MOST_LABELERS]
    names = unique(chapter.name for chapter in known)
    spans, points = [], []
    words = {
        "floor": ("random labels (floor)", palette.second, "square"),
        "kappa": (f"the labeler, {percent(story.level)} interval", palette.accent, "circle"),
        "ceiling": ("the panel's own labels (ceiling)", palette.third, "diamond"),
    }
    for name, chapter in zip(names, known, strict=True):
        kappa, interval = chapter.kappa, chapter.interval
        told = {
            "floor": f"{name}: random labels would score {number(kappa.floor, 3)}",
            "kappa": f"{name}: kappa {number(kappa.value, 3)}{_within(interval.low, interval.high)}",
            "ceiling": f"{name}: the panel's own labels score {number(kappa.ceiling, 3)}",
        }
        places = _finite(floor=kappa.floor, ceiling=kappa.ceiling, kappa=kappa.value)
        spans.append({"name": name, **_finite(low=interval.low, high=interval.high), **places, "told": told["kappa"]})
        points += [
            {"name": name, "place": place, "what": words[what][0], "told": told[what]} for what, place in places.items()
        ]
    x = _axis("kappa_DH", [*_numbers(spans), 0.0, 1.0])
    y = _names(names)
    title = "Kappa of each labeler, between random labels and the panel's own"
    layers = [
        _rule(spans, x, y, "floor", "ceiling", palette.line, 8),
        _rule(spans, x, y, "low", "high", palette.accent, 2.5),
        _marks(points, x, y, list(words.values())),
    ]
    return _chart(layers, _cut(title, len(known), total, "labelers, the best"), f"{title}. {_first(spans)}", 34)


def _differences(story: Story, palette: Palette) -> Spec:
    """Draw the paired differences between labelers around zero, those of the best labeler first."""
    if story.comparison is None:
        raise DataError("differences need two labelers at least: the audit has one.")
    best = story.chapters[0].name
    known = _known(better_first(story.comparison), "difference")
    if not known:
        raise DataError("differences have nothing to show, as none of them is defined.")
    known.sort(key=lambda row: best not in (row["labeler"], row["other"]))
    total, known = len(known), known[:MOST_DIFFERENCES]
    names = unique(f"{_name(row['labeler'], 24)} minus {_name(row['other'], 24)}" for row in known)
    rows = [
        _ranged(name, row, "difference", f"{name}: {signed(row['difference'], 3)}{_within(row['low'], row['high'])}")
        for name, row in zip(names, known, strict=True)
    ]
    title = f"Differences in kappa between labelers, with {percent(story.level)} intervals"
    x = _axis("difference in kappa_DH, on the same items", [*_numbers(rows), 0.0])
    layers = _dots(rows, _names(names, 300), x, 0.0, palette)
    return _chart(layers, _cut(title, len(known), total, "pairs of labelers"), f"{title}. {_first(rows)}", 28)


def _categories(chapter: Chapter, level: float, palette: Palette) -> Spec:
    """Draw kappa by suggested category, the worst first."""
    known = _known(chapter.categories, "kappa")
    if not known:
        raise DataError(f"categories of {shown([chapter.name])} have nothing to show, as no kappa is defined.")
    known.sort(key=lambda row: -row["loss"])
    total, known = len(known), sorted(known[:MOST_CATEGORIES], key=lambda row: row["kappa"])
    names = unique(row["category"] for row in known)
    rows = []
    for name, row in zip(names, known, strict=True):
        told = f"{name}: kappa {number(row['kappa'], 3)}{_within(row['low'], row['high'])}"
        rows.append(_ranged(name, row, "kappa", f"{told}, suggested on {counted(row['items'], 'item')}"))
    ends = _numbers(rows)
    said = "kappa_DH; dashed: all categories together"
    if min(ends) < _LEAST:
        said += f"; lower than {_LEAST:g} is drawn at {_LEAST:g}"
    whole = max(chapter.kappa.value, _LEAST)
    x = _axis(said, [*(max(end, _LEAST) for end in ends), 0.0, 1.0, whole])
    title = f"Kappa by suggested category, with {percent(level)} intervals"
    described = f"{title}, {_name(chapter.name)}, the worst first. {_first(rows)}"
    title = _cut(title, len(known), total, "categories, those that take most from kappa")
    return _chart(_dots(rows, _names(names), x, whole, palette), title, described, 24)


def _confusion(chapter: Chapter, palette: Palette) -> Spec:
    """Draw where the votes went, a row of cells for each label that was suggested."""
    if chapter.categories is None or chapter.confusion is None or not len(chapter.confusion):
        raise DataError(f"votes by label of {shown([chapter.name])} have nothing to show, as kappa is not defined.")
    ranked = sorted(enumerate(chapter.categories), key=lambda pair: (-pair[1]["items"], pair[0]))
    kept = [row["category"] for _, row in sorted(ranked[:MOST_CELLS], key=lambda pair: pair[0])]
    names = unique([*kept, _SPLIT])
    *_, split = names
    name_of = {_key(label): name for label, name in zip(kept, names, strict=False)}
    shares: dict[tuple[str, str, int], list[float]] = {}
    for row in chapter.confusion:
        suggested, chosen = name_of.get(_key(row["suggested"])), name_of.get(_key(row["agreed"]), split)
        if suggested is not None and row["vote_share"] > 0:
            shares.setdefault((suggested, chosen, row["items"]), []).append(row["vote_share"])
    cells: list[Spec] = [
        {
            "name": suggested,
            "chosen": chosen,
            "share": math.fsum(parts),
            "told": f"{suggested} suggested ({counted(items, 'item')}): {math.fsum(parts):.1%} of votes "
            + ("for other categories" if chosen == split else f"for {chosen}"),
        }
        for (suggested, chosen, items), parts in shares.items()
    ]
    down = [name for name in names if any(cell["name"] == name for cell in cells)]
    across = [name for name in names if any(cell["chosen"] == name for cell in cells)]
    small = max(len(down), len(across)) <= _NUMBERED + 1
    axis = {"labelLimit": 90, "labelAngle": 0} if len(across) <= 6 else {"labelLimit": 110, "labelAngle": -45}
    x = {
        **_nominal("chosen"),
        "title": "what the votes were for",
        "scale": {"domain": across},
        "axis": {**axis, "orient": "top", "ticks": False, "grid": False},
    }
    at = {"x": x, "y": {**_names(down), "title": "suggested label"}, **_telling()}
    share = {"field": "share", "type": "quantitative"}
    shade = {**share, "legend": None, "scale": {"domain": [0, 1], "range": [0.03, 0.5]}}
    own = {"type": "rect", "filled": False, "stroke": palette.ink, "strokeWidth": 1.5}
    layers: list[Spec] = [
        {"mark": {"type": "rect", "color": palette.accent}, "encoding": {**at, "opacity": shade}},
        {"mark": own, "encoding": at, "transform": [{"filter": "datum.name === datum.chosen"}]},
    ]
    if small:
        mark = {"type": "text", "fontSize": 12, "color": palette.ink}
        layers.append({"mark": mark, "encoding": {**at, "text": {**share, "format": ".0%"}}})
    title = "What the panel chose where each label was suggested, in shares of votes"
    most = sorted(cells, key=lambda cell: -cell["share"])
    described = f"{title}, {_name(chapter.name)}. {_first(most)}"
    title = _cut(title, len(kept), len(ranked), "categories, those suggested most")
    chart = _chart(layers, title, described, 30 if small else 20)
    return {**chart, "data": {"values": cells}, "width": min(_WIDTH, 96 * len(across))}


def _people(chapter: Chapter, palette: Palette) -> Spec:
    """Draw each annotator, taken as a labeler, beside the labeler on the same items."""
    if chapter.people is None:
        raise DataError("people cannot be shown, as nothing tells who cast which vote.")
    known = _known(chapter.people.table, "difference")
    if not known:
        raise DataError(f"people beside {shown([chapter.name])} have nothing to show: {chapter.people.reason}")
    total = len(known)
    known = sorted(sorted(known, key=lambda row: -row["items"])[:MOST_PEOPLE], key=lambda row: row["difference"])
    names = unique(row["annotator"] for row in known)
    who, person = unique([_name(chapter.name, 40), "annotator"])
    rows = [
        {
            "name": name,
            **_finite(person=row["kappa_person"], labeler=row["kappa_labeler"]),
            "told": f"{name}: kappa {number(row['kappa_person'], 3)}, {who} {number(row['kappa_labeler'], 3)} "
            f"on the same {counted(row['items'], 'item')}",
        }
        for name, row in zip(names, known, strict=True)
    ]
    points = [
        {"name": row["name"], "place": row[key], "what": word, "told": row["told"]}
        for row in rows
        for key, word in (("labeler", who), ("person", person))
    ]
    x, y = _axis("kappa_DH, judged by the others", _numbers(rows)), _names(names)
    title = "Each annotator as a labeler, beside the labeler on the same items"
    layers = [
        _rule(rows, x, y, "person", "labeler", palette.line, 3),
        _marks(points, x, y, [(who, palette.accent, "circle"), (person, palette.second, "square")]),
    ]
    described = f"{title}, {who}. {_first(rows)}"
    return _chart(layers, _cut(title, len(known), total, "annotators, those with most items"), described, 22)


def _chart(layers: list[Spec], title: str, description: str, step: int) -> Spec:
    size = {"width": _WIDTH, "height": {"step": step}}
    return {"title": {"text": title, "anchor": "start"}, "description": description, **size, "layer": layers}


def _dots(rows: list[Spec], y: Spec, x: Spec, mark: float, palette: Palette) -> list[Spec]:
    """Draw a point with its interval a row, and a line down at ``mark``."""
    line = {"type": "rule", "color": palette.muted, "strokeDash": [4, 3]}
    point = {"type": "point", "filled": True, "opacity": 1, "size": 70, "color": palette.accent}
    return [
        {"data": {"values": [{"place": mark}]}, "mark": line, "encoding": {"x": {**x, "field": "place"}}},
        _rule(rows, x, y, "low", "high", palette.accent, 2.5),
        {"data": {"values": rows}, "mark": point, "encoding": {"x": {**x, "field": "place"}, "y": y, **_telling()}},
    ]


def _rule(rows: list[Spec], x: Spec, y: Spec, start: str, end: str, colour: str, width: float) -> Spec:
    """Draw a line a row from one field to another, where both are known."""
    return {
        "data": {"values": [row for row in rows if start in row and end in row]},
        "mark": {"type": "rule", "strokeWidth": width, "strokeCap": "round", "color": colour},
        "encoding": {"x": {**x, "field": start}, "x2": {"field": end}, "y": y, **_telling()},
    }


def _marks(points: list[Spec], x: Spec, y: Spec, words: Sequence[tuple[str, str, str]]) -> Spec:
    """Draw points that tell by colour and by shape what they are: a word, its colour, and its shape."""
    says, colours, shapes = map(list, zip(*words, strict=True))
    legend = {
        "title": None,
        "orient": "top",
        "symbolOpacity": 1,
        "symbolSize": 90,
        "labelLimit": 240,
        "columnPadding": 20,
    }
    what = {**_nominal("what"), "legend": legend}
    return {
        "data": {"values": points},
        "mark": {"type": "point", "filled": True, "opacity": 1, "size": 100},
        "encoding": {
            "x": {**x, "field": "place"},
            "y": y,
            "color": {**what, "scale": {"domain": says, "range": colours}},
            "shape": {**what, "scale": {"domain": says, "range": shapes}},
            **_telling(),
        },
    }


def _nominal(field: str) -> Spec:
    return {"field": field, "type": "nominal"}


def _telling() -> Spec:
    """Return what a pointer and a screen reader are told of a mark."""
    return {"tooltip": _nominal("told"), "description": _nominal("told")}


def _names(names: list[str], widest: int = 170) -> Spec:
    """Return an axis of names in their order, from the top."""
    axis = {"labelLimit": widest, "ticks": False, "domain": False, "labelPadding": 8, "grid": False, "minExtent": 70}
    return {**_nominal("name"), "title": None, "scale": {"domain": names}, "axis": axis}


def _axis(title: str, values: Sequence[float]) -> Spec:
    """Return an axis of numbers that holds the values, with a little room."""
    low, high = min(values), max(values)
    room = (high - low or 1) / 40
    scale = {"domain": [low - room, high + room], "nice": False, "zero": False, "clamp": True}
    return {"type": "quantitative", "title": title, "scale": scale, "axis": {"tickCount": 6, "labelFlush": False}}


def unique(values: Iterable[Any]) -> list[str]:
    """Write values as short names, numbered where two would read the same."""
    found: dict[str, None] = {}
    for value in values:
        name, again = _name(value), 2
        while name in found:
            name, again = f"{_name(value)} ({again})", again + 1
        found[name] = None
    return list(found)


def seen(value: Any) -> str:
    """Write a value on one line so that it can be seen: blanks alone in quotes, control signs spelled out."""
    text = visible(str(value))
    return text if text.strip() else repr(text)


def _name(value: Any, longest: int = _LONGEST) -> str:
    text = seen(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _key(label: Any) -> tuple[type, Any]:
    """Tell 1 from "1" and from True."""
    return type(label), label


def _known(table: Iterable[Spec] | None, column: str) -> list[Spec]:
    return [row for row in table or () if math.isfinite(row[column])]


def _ranged(name: str, row: Spec, place: str, told: str) -> Spec:
    return {"name": name, **_finite(place=row[place], low=row["low"], high=row["high"]), "told": told}


def _finite(**values: float) -> dict[str, float]:
    """Return what is a number: JSON has no word for the rest."""
    return {name: float(value) for name, value in values.items() if math.isfinite(value)}


def _numbers(rows: Iterable[Spec]) -> list[float]:
    return [value for row in rows for value in row.values() if isinstance(value, float)]


def _within(low: float, high: float) -> str:
    return "" if math.isnan(low) else f", interval {limits(low, high, 3)}"


def _first(rows: Sequence[Spec], most: int = 12) -> str:
    """Say what the first rows show, for those who cannot see the chart."""
    more = f"; and {len(rows) - most} more" if len(rows) > most else ""
    return "; ".join(row["told"] for row in rows[:most]) + f"{more}."


def _cut(title: str, drawn: int, total: int, what: str) -> str:
    return title if drawn == total else f"{title} ({drawn:,} of {total:,} {what})"
