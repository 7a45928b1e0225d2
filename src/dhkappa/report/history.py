"""Histories as text for a terminal, as Markdown, and as an HTML page with charts."""

from __future__ import annotations

import base64
import hashlib
import math
import platform
from collections.abc import Iterator, Mapping
from datetime import datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from dhkappa import __version__
from dhkappa.errors import flag, said
from dhkappa.report import grid, limits, number, percent, text_of
from dhkappa.report.charts import Spec, unique
from dhkappa.report.html import MOST_DRAWN, PAGE, PRINTED_ROWS, check_requirements, make_environment, page_table, svg
from dhkappa.report.markdown import bullets, escaped, markdown_table
from dhkappa.report.terminal import Terminal
from dhkappa.stats.change import FILTERS_DIFFER

if TYPE_CHECKING:
    from dhkappa.stats.change import Change
    from dhkappa.stats.history import History

_LABELER = "name items kappa ci change ci_change verdict suggested_share pvalue reason"
_CUMULATIVE = "name items kappa ci any_time_level reason"
_FLEISS = "name items fleiss ci change ci_change shift pvalue_shift pvalue reason"
_CATEGORIES = "category name items kappa ci vote_share label_share reason"
_WIDTH, _HEIGHT = 540, 220
_TOLD = 12  # audits in the text alternative of a chart
_BODY = "<body>"  # the head of the report, with its macros, is also that of this page


def show(found: History, title: str, *, by_category: bool = False) -> None:
    """Print a history to standard output."""
    _Writer().history(found, title, by_category)


class _Writer(Terminal):
    """A terminal that shows histories."""

    def history(self, found: History, title: str, by_category: bool) -> None:
        """Show the answer, then the tables, then notes."""
        self._line(title, "bold")
        self._line()
        self._line(found.summary, "bold")
        for heading, rows, columns in _tables(found, by_category):
            self._heading(heading)
            self._grid(rows, columns, found.confidence_level)
        for text in _bests(found):
            self.paragraph(text)
        self._notes(_notes(found))


def markdown(found: History, *, title: str, by_category: bool = False) -> str:
    """Return a history as Markdown."""
    parts = [f"## {escaped(title)}", f"**{escaped(found.summary)}**"]
    for heading, rows, columns in _tables(found, by_category):
        parts += [f"### {escaped(heading)}", markdown_table(grid(rows, columns, found.confidence_level))]
    if texts := [*_bests(found), *_notes(found)]:
        parts += ["### Notes", bullets(texts)]
    return "\n\n".join(parts) + "\n"


def page(found: History, *, title: str, command: str | None = None) -> str:
    """Return a history as one HTML page that contains its charts and style; it has no script."""
    check_requirements()
    from markupsafe import Markup

    folder = files("dhkappa.report") / "templates"
    report, body, style = [
        (folder / name).read_text("utf-8") for name in ("report.html.j2", "history.html.j2", "report.css")
    ]
    environment, level = make_environment(), found.confidence_level
    parts: list[dict[str, Any]] = []
    for name in found.labelers:
        rows, spec = [*found.table(name)], _chart(found, name) if len(parts) < MOST_DRAWN else None
        chart = spec and {"title": spec["title"]["text"], "svg": Markup(svg(spec))}  # nosec B704 - our own SVG
        table = page_table(level, f"Kappa of {name} over time", rows, _LABELER)
        categories = page_table(level, f"Kappa of {name} by category over time", found.categories(name), _CATEGORIES)
        part = {"name": name, "chart": chart, "table": table, "categories": categories, "best": _best(found, name)}
        rows, caption = [*found.cumulative(name)], f"Kappa of {name} on all items so far"
        parts.append(part | {"cumulative": page_table(level, caption, rows, _CUMULATIVE) if rows else None})
    digests = [hashlib.sha256(text.encode()).digest() for text in (style, "")]
    versions = f"dhkappa {__version__}, Python {platform.python_version()} and NumPy {np.__version__}"
    environment.globals |= {"title": title, "command": command, "history": found, "parts": parts}
    environment.globals |= {"style": Markup(style), "printed_rows": PRINTED_ROWS}  # nosec B704 - our own file
    written: str = environment.from_string(report[: report.index(_BODY)] + body).render(
        hashes=[f"sha256-{base64.b64encode(hashed).decode()}" for hashed in digests],
        fleiss=page_table(level, "Fleiss' kappa over time", [*found.fleiss()], _FLEISS),
        notes=_notes(found),
        made=f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z} with {versions}",
    )
    return written


def _tables(found: History, by_category: bool) -> Iterator[tuple[str, list[Mapping[str, Any]], str]]:
    """Yield heading, rows and columns of each table."""
    for name in found.labelers:
        yield f"Kappa of {name}", [*found.table(name)], _LABELER
        if found.so_far:
            yield f"Kappa of {name} on all items so far", [*found.cumulative(name)], _CUMULATIVE
    yield "Agreement between annotators: Fleiss' kappa", [*found.fleiss()], _FLEISS
    for name in found.labelers if by_category else ():
        yield f"Kappa of {name} by suggested category", [*found.categories(name)], _CATEGORIES


def _bests(found: History) -> list[str]:
    """Return a sentence for each labeler about its best audit before, if that is not the one before."""
    return list(filter(None, (_best(found, name) for name in found.labelers)))


def _best(found: History, name: str) -> str:
    best, last = found.since_best(name), found.since_last(name)
    return "" if best is None or last is None or best.since == last.since else best_sentence(name, best)


def best_sentence(name: str, change: Change) -> str:
    """Return a sentence about the change since the best earlier audit."""
    adjusted, value = "adjusted for the choice of the best", number(change.before, change.digits)
    return (
        f"{name} since its best earlier audit, {change.since} ({value}): {change.moved}, {adjusted}; {change.outcome}."
    )


def _notes(found: History) -> list[str]:
    """Return why changes are undefined, and the notes."""
    tables = [*((name, found.table(name)) for name in found.labelers), ("Fleiss' kappa", found.fleiss())]
    reasons = [f"{what}, {row['name']}: {row['reason']}" for what, table in tables for row in table if row["reason"]]
    told = FILTERS_DIFFER  # which is in the summary
    return [*reasons, *(said(note.message, note.hint, flag) for note in found.notes if note.code != told)]


def _chart(found: History, name: str) -> Spec | None:
    """Return a chart of the kappa of a labeler over time with its interval, and of Fleiss' kappa; None if empty."""
    order = dict(zip((entry.name for entry in found.entries), unique(one.name for one in found.entries), strict=True))
    what = text_of(name, 40)
    rows = [_point(row, "kappa", what, order) for row in found.table(name)]
    fleiss = [_point(row, "fleiss", "Fleiss' kappa", order) for row in found.fleiss()]
    rows, fleiss = ([row for row in own if "value" in row] for own in (rows, fleiss))
    if not rows:
        return None
    values = [row[key] for row in (*rows, *fleiss) for key in ("value", "low", "high") if key in row]
    margin = (max(values) - min(values) or 1) / 20
    scale = {"domain": [min(values) - margin, max(values) + margin], "nice": False, "zero": False}
    y: Spec = {"field": "value", "type": "quantitative", "title": "kappa", "scale": scale, "axis": {"tickCount": 6}}
    axis = {"labelAngle": -30 if len(order) > 6 else 0, "labelLimit": 120, "grid": False, "ticks": False}
    x: Spec = {"field": "name", "type": "ordinal", "title": None, "scale": {"domain": [*order.values()]}, "axis": axis}
    level = percent(found.confidence_level)
    legend = {f"{what}, {level} CI": PAGE.labeler, "Fleiss' kappa": PAGE.majority}
    color: Spec = {"field": "what", "type": "nominal", "legend": {"title": None, "orient": "top", "labelLimit": 300}}
    color["scale"] = {"domain": [*legend], "range": [*legend.values()]}
    for own, label in ((rows, next(iter(legend))), (fleiss, "Fleiss' kappa")):
        for row in own:
            row["what"] = label
    told: Spec = {encoding: {"field": "told", "type": "nominal"} for encoding in ("tooltip", "description")}
    known = [row for row in rows if "low" in row]
    ends = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    layers: list[Spec] = [
        {"data": {"values": known}, "mark": {"type": "area", "color": PAGE.labeler, "opacity": 0.18}, "encoding": ends},
        {"data": {"values": known}, "mark": {"type": "rule", "color": PAGE.labeler}, "encoding": ends},
    ]
    for own, dash in ((fleiss, [4, 3]), (rows, [1, 0])):
        at = {"x": x, "y": y, "color": color}
        layers.append({"data": {"values": own}, "mark": {"type": "line", "strokeDash": dash}, "encoding": at})
        point = {"type": "point", "filled": True, "opacity": 1, "size": 70}
        layers.append({"data": {"values": own}, "mark": point, "encoding": {**at, **told}})
    title = f"Kappa of {what} and agreement between annotators over time, one step per audit"
    more = f"; and {len(rows) - _TOLD} more" if len(rows) > _TOLD else ""
    described = "; ".join(row["told"] for row in (*rows[-_TOLD:], *fleiss[-1:]))
    return {
        "title": {"text": title, "anchor": "start"},
        "description": f"{title}. {described}{more}.",
        "width": _WIDTH,
        "height": _HEIGHT,
        "layer": layers,
    }


def _point(row: Mapping[str, Any], column: str, what: str, order: Mapping[str, str]) -> Spec:
    """Return the data of a point: its finite values, as JSON has no NaN."""
    places = {"value": row[column], "low": row["low"], "high": row["high"]}
    known = {field: float(value) for field, value in places.items() if math.isfinite(value)}
    within = "" if math.isnan(row["low"]) else f", confidence interval {limits(row['low'], row['high'], 3)}"
    name = order[row["name"]]
    return {"name": name, **known, "told": f"{name}: {what} {number(row[column], 3)}{within}"}
