"""Charts of an audit as Vega-Lite specifications; Altair shows them in a notebook, the report embeds them as SVG.

A specification is a plain dict, so that a report does not need to import Altair.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from dhkappa.errors import counted, did_you_mean, invalid, shown
from dhkappa.report import Write, better_first, kappa_name, limits, number, optional, percent, signed, text_of
from dhkappa.table import library

if TYPE_CHECKING:
    from dhkappa.auditing import Audit
    from dhkappa.stats.slice_table import Slices

CHARTS: tuple[str, ...] = ("scale", "differences", "categories", "confusion", "annotator_comparison")
OF_ONE_LABELER: tuple[str, ...] = CHARTS[2:]

MOST_LABELERS = 40
MOST_DIFFERENCES = 30
MOST_CATEGORIES = 30
MOST_CELLS = 20  # categories on each axis of the heat map
MOST_ANNOTATORS = 40
MOST_SLICES = 40
MOST_DATES = 120  # days, weeks or months

Spec = dict[str, Any]

_WIDTH = 540
_LONGEST = 60  # characters of a name
_CHARACTER = 8  # pixels of a character in a wide font
_TOLD_ROWS = 12  # rows in the text alternative of a chart
_NUMBERED = 10  # categories up to which the cells of the heat map show numbers
_OTHERS = "others"
_LEAST = -1.0  # lower values of kappa by category are drawn here
_TOLD: Spec = {encoding: {"field": "told", "type": "nominal"} for encoding in ("tooltip", "description")}


@dataclass(frozen=True, slots=True)
class Palette:
    """Colors of a chart."""

    text: str
    muted: str  # secondary text
    line: str  # grid lines
    labeler: str
    random: str  # random labels, or annotators
    majority: str


LIGHT = Palette("#1c2126", "#5a646e", "#d9dee3", "#1d5f96", "#94590b", "#2b7348")
"""Colors for a light background."""


def chart(audit: Audit, name: str, labeler: str | None = None) -> Any:
    """Return a chart as an Altair chart that contains its data; see ``chart_spec``."""
    spec = chart_spec(audit, name, labeler)
    return library("altair", "A chart", "'dhkappa[report]'").Chart.from_dict(spec)


def chart_spec(audit: Audit, name: str, labeler: str | None = None, palette: Palette = LIGHT) -> Spec:
    """Return one of ``CHARTS`` as a Vega-Lite specification that contains its data.

    ``labeler`` is needed for a chart of one labeler if the audit has several.
    """
    if isinstance(name, str) and name.partition(":")[0] == "slices":
        return _slices(audit, audit.slices(name.partition(":")[2] or None, labeler), palette)
    if not isinstance(name, str) or name not in CHARTS:
        message = f"Unknown chart {shown([name])}. Charts: {shown(CHARTS, 10)}.{did_you_mean(name, CHARTS)}"
        raise invalid("name", message, code="unknown-chart")
    if name not in OF_ONE_LABELER:
        return (_scale if name == "scale" else _differences)(audit, palette)
    audit.verdict(labeler)  # raises an error if the labeler is unknown, or needed and not given
    draw = {"categories": _categories, "confusion": _confusion, "annotator_comparison": _annotators}[name]
    return draw(audit, labeler or audit.labelers[0], palette)


def _scale(audit: Audit, palette: Palette) -> Spec:
    """Draw kappa of every labeler, with random labels and majority labels for comparison."""
    known = _known("scale", audit.rows(), "kappa", "kappa is undefined for every labeler")
    legend = {
        "baseline_random": ("random labels", palette.random, "square"),
        "kappa": (f"labeler, {percent(audit.confidence_level)} CI", palette.labeler, "circle"),
        "baseline_majority": ("majority labels", palette.majority, "diamond"),
    }
    for row in known:
        random, majority = number(row["baseline_random"], 3), number(row["baseline_majority"], 3)
        row["told"] = f"kappa {_estimate(row, 'kappa')}, random labels {random}, majority labels {majority}"
    rows = _rows(known[:MOST_LABELERS], "labeler", low="low", high="high", **{column: column for column in legend})
    what = kappa_name(audit.kappas)
    x, y = _axis(f"{what}_DH", [*_numbers(rows), 0.0, 1.0]), _names(rows)
    of = f"{what.capitalize()} of {'each' if len(known) > 1 else 'the'} labeler"
    title = f"{of}, with random and majority labels for comparison"
    layers = [
        _rule(rows, x, y, "baseline_random", "baseline_majority", palette.line, 8),
        _rule(rows, x, y, "low", "high", palette.labeler, 2.5),
        _marks(rows, x, y, legend),
    ]
    return _chart(layers, title, rows, 34, cut=_cut(rows, known, "labelers, the best"))


def _differences(audit: Audit, palette: Palette) -> Spec:
    """Draw the paired differences between labelers, those of the best labeler first."""
    empty = "no difference is defined" if audit.comparison else "the audit has one labeler"
    known = _known("differences", better_first(audit.comparison), "difference", empty)
    best = audit.ranking[0]
    drawn = sorted(known, key=lambda row: best not in (row["labeler"], row["other"]))[:MOST_DIFFERENCES]
    for row in drawn:
        row["pair"] = f"{text_of(row['labeler'], 24)} minus {text_of(row['other'], 24)}"
        row["told"] = _estimate(row, "difference", signed)
    rows = _rows(drawn, "pair", place="difference", low="low", high="high")
    what = kappa_name(audit.kappas)
    title = f"Differences in {what} between labelers, with {percent(audit.confidence_level)} confidence intervals"
    x = _axis(f"difference in {what}_DH, on the same items", [*_numbers(rows), 0.0])
    layers = _dots(rows, _names(rows, 300), x, 0.0, palette)
    return _chart(layers, title, rows, 28, cut=_cut(rows, known, "pairs of labelers"))


def _categories(audit: Audit, labeler: str, palette: Palette) -> Spec:
    """Draw kappa by suggested category, the worst first."""
    undefined = f"kappa of {shown([labeler])} is undefined"
    known = _known("categories", optional(audit.categories, labeler), "kappa", undefined)
    for row in known:
        row["told"] = f"kappa {_estimate(row, 'kappa')}, suggested on {counted(row['items'], 'item')}"
    drawn = sorted(known, key=lambda row: -row["loss"])[:MOST_CATEGORIES]
    rows = _rows(sorted(drawn, key=lambda row: row["kappa"]), "category", place="kappa", low="low", high="high")
    ends = _numbers(rows)
    what = kappa_name(audit.kappas)
    label = f"{what}_DH; dashed: all categories together"
    if min(ends) < _LEAST:
        label += f"; values below {_LEAST:g} are drawn at {_LEAST:g}"
    whole = max(audit.kappas[labeler].value, _LEAST)
    x = _axis(label, [*(max(end, _LEAST) for end in ends), 0.0, 1.0, whole])
    title = f"{what.capitalize()} by suggested category, with {percent(audit.confidence_level)} confidence intervals"
    of, cut = f", {text_of(labeler, _LONGEST)}, the worst first", "categories, those with the largest loss"
    return _chart(_dots(rows, _names(rows), x, whole, palette), title, rows, 24, of=of, cut=_cut(rows, known, cut))


def _slices(audit: Audit, found: Slices, palette: Palette) -> Spec:
    """Draw kappa by slice, the worst first; of dates a line with a band of confidence intervals, in order of time."""
    known = _known("slices", found.table, "kappa", "kappa is undefined in every slice")
    for row in known:
        row["told"] = f"kappa {_estimate(row, 'kappa')}, {counted(row['items'], 'item')}"
        row["low"] = max(row["low"], _LEAST)
    what, whole = kappa_name(audit.kappas).capitalize(), max(found.kappa, _LEAST)
    title = f"{what} by slice of {text_of(found.column, _LONGEST)}, with {percent(audit.confidence_level)} confidence"
    of, label = f", {text_of(found.labeler, _LONGEST)}", f"{what.lower()}_DH; dashed: all items together"
    if found.unit is None:
        rows = _rows(known[:MOST_SLICES], "slice", place="kappa", low="low", high="high")
        x = _axis(label, [*_numbers(rows), 0.0, 1.0, whole])
        layers, cut = _dots(rows, _names(rows), x, whole, palette), _cut(rows, known, "slices, the lowest first")
        return _chart(layers, f"{title} intervals", rows, 24, of=of, cut=cut)
    dated = sorted((row for row in known if row["slice"][:4].isdecimal()), key=lambda row: row["slice"])
    rows = _rows(dated[-MOST_DATES:], "slice", place="kappa", low="low", high="high")
    if not rows:
        raise invalid("name", "The chart 'slices' has nothing to show: no item has a date.", code="empty-chart")
    y = _axis(label, [*_numbers(rows), whole])
    axis = {"labelOverlap": True, "labelAngle": -45, "grid": False, "ticks": False, "domain": False}
    domain = {"domain": [row["name"] for row in rows]}
    x = {"field": "name", "type": "ordinal", "title": found.unit, "scale": domain, "axis": axis}
    band = {"type": "area", "color": palette.labeler, "opacity": 0.2}
    line = {"type": "line", "color": palette.labeler, "strokeWidth": 2.5}
    point = {"type": "point", "filled": True, "opacity": 1, "size": 50, "color": palette.labeler}
    dashed = {"type": "rule", "color": palette.muted, "strokeDash": [4, 3]}
    limited = [row for row in rows if {"low", "high"} <= row.keys()]
    layers = [
        {
            "data": {"values": limited},
            "mark": band,
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {"data": {"values": [{"place": whole}]}, "mark": dashed, "encoding": {"y": {**y, "field": "place"}}},
        {"data": {"values": rows}, "mark": line, "encoding": {"x": x, "y": {**y, "field": "place"}}},
        {"data": {"values": rows}, "mark": point, "encoding": {"x": x, "y": {**y, "field": "place"}, **_TOLD}},
    ]
    drawn = _chart(layers, f"{title} intervals", rows, 24, of=of, cut=_cut(rows, dated, f"{found.unit}s, the latest"))
    return drawn | {"height": 220}


def _confusion(audit: Audit, labeler: str, palette: Palette) -> Spec:
    """Draw a heat map of the votes for each suggested label."""
    undefined = f"kappa of {shown([labeler])} is undefined"
    confusion = _known("confusion", optional(audit.confusion, labeler), "vote_share", undefined)
    order = sorted(enumerate(audit.categories(labeler)), key=lambda pair: (-pair[1]["items"], pair[0]))
    kept = [row["category"] for _, row in sorted(order[:MOST_CELLS], key=lambda pair: pair[0])]
    names = unique([*kept, _OTHERS])
    others = names[-1]
    name_of = {(type(label), label): name for label, name in zip(kept, names, strict=False)}  # 1, "1" and True differ
    shares: dict[tuple[str, str, int], list[float]] = {}
    for row in confusion:
        label, voted = (name_of.get((type(value), value), others) for value in (row["suggested"], row["agreed"]))
        if label != others and row["vote_share"] > 0:
            shares.setdefault((label, voted, row["items"]), []).append(row["vote_share"])
    cells: list[Spec] = []
    for (label, voted, items), parts in shares.items():
        share = math.fsum(parts)
        votes = f"{share:.1%} of votes for {'other categories' if voted == others else voted}"
        told = f"{label} suggested ({counted(items, 'item')}): {votes}"
        cells.append({"name": label, "voted": voted, "share": share, "told": told})
    down = [name for name in names if any(cell["name"] == name for cell in cells)]
    across = [name for name in names if any(cell["voted"] == name for cell in cells)]
    small = max(len(down), len(across)) <= _NUMBERED + 1
    width = min(150, _WIDTH // len(across))
    limit, angle = (width - 6, 0) if len(across) <= 6 else (170, -45)
    axis = {"labelLimit": limit, "labelAngle": angle, "orient": "top", "ticks": False, "grid": False}
    x = {"field": "voted", "type": "nominal", "title": "votes", "scale": {"domain": across}, "axis": axis}
    at = {"x": x, "y": {**_names([{"name": name} for name in down]), "title": "suggested label"}, **_TOLD}
    shown_share = {"field": "share", "type": "quantitative"}
    shade = {**shown_share, "legend": None, "scale": {"domain": [0, 1], "range": [0.03, 0.5]}}
    own = {"type": "rect", "filled": False, "stroke": palette.text, "strokeWidth": 1.5}
    layers: list[Spec] = [
        {"mark": {"type": "rect", "color": palette.labeler}, "encoding": {**at, "opacity": shade}},
        {"mark": own, "encoding": at, "transform": [{"filter": "datum.name === datum.voted"}]},
    ]
    if small:
        mark = {"type": "text", "fontSize": 12, "color": palette.text}
        layers.append({"mark": mark, "encoding": {**at, "text": {**shown_share, "format": ".0%"}}})
    title = "Votes for each suggested label, as shares"
    largest = sorted(cells, key=lambda cell: -cell["share"])
    cut = _cut(kept, order, "categories, those suggested most")
    drawn = _chart(layers, title, largest, 30 if small else 20, of=f", {text_of(labeler, _LONGEST)}", cut=cut)
    return {**drawn, "data": {"values": cells}, "width": width * len(across)}


def _annotators(audit: Audit, labeler: str, palette: Palette) -> Spec:
    """Draw kappa of each annotator and of the labeler on the same items."""
    found = optional(audit.annotator_comparison, labeler)
    uncompared = f"no annotator can be compared with {shown([labeler])}"
    empty = uncompared if found else "annotators are not identified in this data"
    known = _known("annotator_comparison", found.table if found else None, "difference", empty)
    who, annotator = unique([text_of(labeler, 40), "annotator"])
    for row in known:
        kappa, other = number(row["kappa_annotator"], 3), number(row["kappa_labeler"], 3)
        row["told"] = f"kappa {kappa}, {who} {other} on the same {counted(row['items'], 'item')}"
    drawn = sorted(sorted(known, key=lambda row: -row["items"])[:MOST_ANNOTATORS], key=lambda row: row["difference"])
    rows = _rows(drawn, "annotator", annotator="kappa_annotator", labeler="kappa_labeler")
    legend = {"labeler": (who, palette.labeler, "circle"), "annotator": (annotator, palette.random, "square")}
    what = kappa_name(audit.kappas)
    x, y = _axis(f"{what}_DH, scored against the other annotators", _numbers(rows)), _names(rows)
    title = "Each annotator as a labeler, compared with the labeler on the same items"
    layers = [_rule(rows, x, y, "annotator", "labeler", palette.line, 3), _marks(rows, x, y, legend)]
    return _chart(layers, title, rows, 22, of=f", {who}", cut=_cut(rows, known, "annotators, those with most items"))


def _chart(layers: list[Spec], title: str, rows: Sequence[Spec], step: int, *, of: str = "", cut: str = "") -> Spec:
    """Return a chart whose text alternative is the title and the first rows."""
    more = f"; and {len(rows) - _TOLD_ROWS} more" if len(rows) > _TOLD_ROWS else ""
    told = "; ".join(row["told"] for row in rows[:_TOLD_ROWS])
    return {
        "title": {"text": f"{title}{cut}", "anchor": "start"},
        "description": f"{title}{of}. {told}{more}.",
        "width": _WIDTH,
        "height": {"step": step},
        "layer": layers,
    }


def _cut(drawn: Sequence[Any], known: Sequence[Any], what: str) -> str:
    return "" if len(drawn) == len(known) else f" ({len(drawn):,} of {len(known):,} {what})"


def _dots(rows: list[Spec], y: Spec, x: Spec, mark: float, palette: Palette) -> list[Spec]:
    """Draw one point with its interval per row, and a vertical line at ``mark``."""
    line = {"type": "rule", "color": palette.muted, "strokeDash": [4, 3]}
    point = {"type": "point", "filled": True, "opacity": 1, "size": 70, "color": palette.labeler}
    return [
        {"data": {"values": [{"place": mark}]}, "mark": line, "encoding": {"x": {**x, "field": "place"}}},
        _rule(rows, x, y, "low", "high", palette.labeler, 2.5),
        {"data": {"values": rows}, "mark": point, "encoding": {"x": {**x, "field": "place"}, "y": y, **_TOLD}},
    ]


def _rule(rows: list[Spec], x: Spec, y: Spec, start: str, end: str, color: str, width: float) -> Spec:
    """Draw one line per row between two fields, if both are known."""
    return {
        "data": {"values": [row for row in rows if start in row and end in row]},
        "mark": {"type": "rule", "strokeWidth": width, "strokeCap": "round", "color": color},
        "encoding": {"x": {**x, "field": start}, "x2": {"field": end}, "y": y, **_TOLD},
    }


def _marks(rows: list[Spec], x: Spec, y: Spec, legend: Mapping[str, tuple[str, str, str]]) -> Spec:
    """Draw a point for each field that a row has; the legend says what it is, with its color and its shape."""
    points = [
        {"name": row["name"], "place": row[field], "what": what, "told": row["told"]}
        for row in rows
        for field, (what, _, _) in legend.items()
        if field in row
    ]
    texts, colors, shapes = map(list, zip(*legend.values(), strict=True))
    look = {"orient": "top", "symbolOpacity": 1, "symbolSize": 90, "labelLimit": 240, "columnPadding": 36}
    what = {"field": "what", "type": "nominal", "legend": {"title": None, **look}}
    return {
        "data": {"values": points},
        "mark": {"type": "point", "filled": True, "opacity": 1, "size": 100},
        "encoding": {
            "x": {**x, "field": "place"},
            "y": y,
            "color": {**what, "scale": {"domain": texts, "range": colors}},
            "shape": {**what, "scale": {"domain": texts, "range": shapes}},
            **_TOLD,
        },
    }


def _names(rows: list[Spec], widest: int = 170) -> Spec:
    """Return an axis of the names of rows, in order from the top, with room for the longest in a wide font."""
    names = [row["name"] for row in rows]
    room = 10 + min(_CHARACTER * max(map(cell_len, names)), 1.2 * widest)
    axis = {"labelLimit": widest, "ticks": False, "domain": False, "labelPadding": 8, "grid": False, "minExtent": room}
    return {"field": "name", "type": "nominal", "title": None, "scale": {"domain": names}, "axis": axis}


def _axis(title: str, values: Sequence[float]) -> Spec:
    """Return an axis of numbers that contains the values, with some margin."""
    low, high = min(values), max(values)
    margin = (high - low or 1) / 40
    scale = {"domain": [low - margin, high + margin], "nice": False, "zero": False, "clamp": True}
    return {"type": "quantitative", "title": title, "scale": scale, "axis": {"tickCount": 6, "labelFlush": False}}


def unique(values: Iterable[Any]) -> list[str]:
    """Format values as short names, with a number if two would be equal."""
    found: dict[str, None] = {}
    for value in values:
        name, again = text_of(value, _LONGEST), 2
        while name in found:
            name, again = f"{text_of(value, _LONGEST)} ({again})", again + 1
        found[name] = None
    return list(found)


def _known(chart: str, table: Iterable[Spec] | None, column: str, otherwise: str) -> list[Spec]:
    """Return the rows with a value in a column; it is an error if there are none."""
    found = [row for row in table or () if math.isfinite(row[column])]
    if not found:
        raise invalid("name", f"The chart {chart!r} has nothing to show: {otherwise}.", code="empty-chart")
    return found


def _rows(known: list[Spec], named: str, **columns: str) -> list[Spec]:
    """Return the data of a chart: unique names, the finite values of some columns (JSON has no NaN), and ``told``."""
    rows = []
    for name, row in zip(unique(row[named] for row in known), known, strict=True):
        places = {field: float(row[column]) for field, column in columns.items() if math.isfinite(row[column])}
        rows.append({"name": name, **places, "told": f"{name}: {row['told']}"})
    return rows


def _numbers(rows: Iterable[Spec]) -> list[float]:
    return [value for row in rows for value in row.values() if isinstance(value, float)]


def _estimate(row: Spec, column: str, write: Write = number) -> str:
    within = "" if math.isnan(row["low"]) else f", confidence interval {limits(row['low'], row['high'], 3)}"
    return f"{write(row[column], 3)}{within}"
