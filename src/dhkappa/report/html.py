"""The HTML report: one file that opens without a network, and in which no data can run as code."""

from __future__ import annotations

import base64
import hashlib
import math
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree  # nosec B405 - parses only the SVG of our own charts

import numpy as np

from dhkappa import __version__
from dhkappa.errors import DataError, counted, flag, said
from dhkappa.report import (
    REVIEW_LIMIT,
    better_first,
    filter_texts,
    grid,
    kappa_name,
    limits,
    number,
    optional,
    percent,
    share,
    text_of,
)
from dhkappa.report.charts import OF_ONE_LABELER, Palette, Spec, chart_spec
from dhkappa.report.item_text import item_text
from dhkappa.report.slices import ANNOTATOR_COLUMNS, SLICE_COLUMNS, annotator_rows, slice_rows
from dhkappa.resources import MIB, need, need_address_space
from dhkappa.stats.annotator_result import MIN_ITEMS
from dhkappa.stats.grades import digits_of
from dhkappa.table import library

if TYPE_CHECKING:
    from dhkappa.auditing import Audit
    from dhkappa.stats.gate import Gate

MOST_REVIEWED = 3_000  # items of all labelers together
MOST_ROWS = 200  # of any other table
MOST_ANNOTATORS = 50
MOST_DRAWN = 8  # labelers with charts
PRINTED_ROWS = 30  # rows of a table on paper

PAGE = Palette(*[f"var(--{name})" for name in ("text", "muted", "line", "labeler", "random", "majority")])
"""Colors of charts as CSS variables, which the page defines for light and dark backgrounds."""

_LABELERS = "labeler verdict kappa ci baseline_random baseline_majority fleiss items coverage pvalue"
_DIFFERENCES = "labeler other difference ci pvalue pvalue_holm discordant items reason"
_SAMPLE_SIZES = "labeler half_width items more_items more_votes items_assured"
_RIGHT_TO_LEFT = re.compile(r"([\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+( +(?=[\u0590-\u08ff]))?)+")
_TAGS = {"svg", "g", "path", "line", "rect", "text", "tspan"}
_ATTRIBUTES = re.compile(
    r"d|d?[xy]|[xy][12]|(fill|stroke)(-opacity)?|font-(size|weight)|height|opacity|stroke-(dasharray|linecap|width)"
    r"|stroke-miterlimit|text-anchor|transform|viewBox|width"
)
_FONT = {"labelFontSize": 13, "titleFontSize": 13, "titleFontWeight": "normal", "labelColor": PAGE.text}
_COLORS = {"titleColor": PAGE.muted, "gridColor": PAGE.line, "tickColor": PAGE.line}
_CONFIG = {
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {**_FONT, **_COLORS, "domain": False, "titlePadding": 10},
    "legend": {**_FONT, "offset": 14},
}


def page(audit: Audit, *, title: str = "Label audit", command: str | None = None, gate: Gate | None = None) -> str:
    """Return the report of an audit as one HTML page that contains its charts, style and script.

    The content security policy allows only the page's own style and script, by their hashes. Data is always text.
    """
    check_requirements()
    from markupsafe import Markup

    folder = files("dhkappa.report") / "templates"
    template, style, script = [(folder / f"report.{kind}").read_text("utf-8") for kind in ("html.j2", "css", "js")]

    def figure(name: str, labeler: str | None = None) -> Spec | None:
        """Return a chart, or None if there is nothing to draw."""
        spec = optional(chart_spec, audit, name, labeler, PAGE)
        return spec and {"title": spec["title"]["text"], "svg": Markup(svg(spec))}  # nosec B704 - our own SVG

    environment = make_environment()
    digests = [hashlib.sha256(text.encode()).digest() for text in (style, script)]
    names, rows = audit.ranking, audit.rows()
    versions = f"dhkappa {__version__}, Python {platform.python_version()} and NumPy {np.__version__}"
    judged = all(verdict.judged for verdict in audit.verdicts.values())
    few = audit.comparison is not None and audit.comparison.not_ranked
    last = "" if judged and not few else f"; those that cannot be {'ranked or ' if few else ''}judged are last"
    caption = f"Labelers, the {'best' if audit.groups else 'highest kappa'} first{last}"
    short = [name for name in names if audit.verdict(name).more_items]
    sizes = [{"labeler": name, **row} for name in short for row in audit.sample_sizes(name)]
    parts = [_part(audit, name) for name in names]
    for part in parts[:MOST_DRAWN]:
        part["charts"] = {chart: figure(chart, part["name"]) for chart in OF_ONE_LABELER}
        for found in part["slices"]:
            found["chart"] = figure(f"slices:{found['column']}", part["name"]) if found["drawn"] else None
    environment.globals |= {"title": title, "command": command, "audit": audit, "many": len(names) > 1, "parts": parts}
    environment.globals["kappa"] = kappa_name(audit.kappas)
    environment.globals |= {"style": Markup(style), "script": Markup(script)}  # nosec B704 - our own files
    environment.globals |= {"printed_rows": PRINTED_ROWS, "most_drawn": MOST_DRAWN}
    written: str = environment.from_string(template).render(
        hashes=[f"sha256-{base64.b64encode(hashed).decode()}" for hashed in digests],
        figures=_key_figures(audit, rows),
        charts={name: figure(name) for name in ("scale", "differences")},
        labelers=_table(audit, caption, rows, _LABELERS),
        differences=_table(audit, _differences(audit), better_first(audit.comparison), _DIFFERENCES),
        annotators=_annotators(audit),
        queues=_queues(audit, names),
        sample_sizes=_table(audit, "Items for a narrower confidence interval", sizes, _SAMPLE_SIZES),
        problems=[
            (problem.severity, problem.text(flag if command else "{}=".format), problem.accepted)
            for problem in audit.problems
            if problem.severity != "info"
        ],
        gate=gate,
        filters=filter_texts(audit.notes),
        notes=[said(note.message, note.hint, flag) if command else note.text for note in audit.notes],
        excluded=_excluded(audit, names),
        made=f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z} with {versions}",
    )
    return written


def make_environment() -> Any:
    """Return what renders the templates: every value is escaped, and an unknown name is an error."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup, escape

    def sentence(text: str) -> Any:
        """Isolate names in right-to-left scripts from the sentence around them."""
        return Markup(_RIGHT_TO_LEFT.sub(r"<bdi>\g<0></bdi>", str(escape(text_of(text, 2_000)))))  # nosec B704 - escaped

    made = Environment(autoescape=True, undefined=StrictUndefined)
    made.filters |= {"plain": text_of, "number": number, "percent": percent, "share": share, "sentence": sentence}
    made.filters |= {"item_text": item_text}
    return made


def check_requirements() -> None:
    """Raise an error if a library is missing, or if there is too little memory to draw charts.

    vl-convert runs JavaScript, which reserves 64 GiB of address space and ends the process if it cannot.
    """
    need_address_space(66 << 30, "The report")  # before libraries, whose import fails without memory
    need(128 * MIB, "the report")
    for name in ("jinja2", "vl_convert"):
        library(name, "A report", "'dhkappa[report]'")


def svg(spec: Spec) -> str:
    """Return a chart as an SVG element without its title.

    The text alternative is the chart's description; tooltips become titles. Only shapes, text and colors are kept.
    """
    check_requirements()
    import vl_convert

    drawn = {name: value for name, value in spec.items() if name != "title"}
    try:
        text = vl_convert.vegalite_to_svg({**drawn, "background": None, "config": _CONFIG}, allowed_base_urls=[])
    except ValueError as error:
        if "oneshot canceled" not in str(error):
            raise
        message = f"vl-convert could not draw the charts of the report ({error})."
        raise DataError(message, code="charts-failed", hint="Allow more open files (ulimit -n).") from error
    cleaned = _cleaned(ElementTree.fromstring(text))  # nosec B314
    cleaned.set("role", "img")
    cleaned.set("aria-label", spec["description"])
    return ElementTree.tostring(cleaned, encoding="unicode")


def _cleaned(element: ElementTree.Element) -> ElementTree.Element:
    """Copy an element without style, links, scripts and classes."""
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


def _table(audit: Audit, caption: str, rows: Iterable[Mapping[str, Any]], columns: str) -> dict[str, Any]:
    """Return a table of the page."""
    return page_table(audit.confidence_level, caption, rows, columns)


def page_table(level: float, caption: str, rows: Iterable[Mapping[str, Any]], columns: str) -> dict[str, Any]:
    """Return a table of a page, with at most ``MOST_ROWS`` rows."""
    given = list(rows)
    heads, cells, numbers = grid(given[:MOST_ROWS], columns, level, digits=3)
    more = f"The first {MOST_ROWS:,} of {len(given):,} rows; the JSON output has all." if given[MOST_ROWS:] else ""
    return {"caption": caption, "heads": list(zip(heads, numbers, strict=True)), "rows": cells, "more": more}


def _differences(audit: Audit) -> str:
    """Return the caption of the table of differences."""
    same = audit.comparison is None or len({*audit.comparison.differences.column("items")}) == 1
    return "Paired differences in kappa" + ("" if same else ", each for the items that both labeled")


def _key_figures(audit: Audit, rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Return the main numbers of the first labeler: name, value, and a remark."""
    best = rows[0]
    of_best = "" if len(rows) == 1 else " of the best" if audit.groups else f" of {text_of(best['labeler'], 40)}"
    low, high = best["low"], best["high"]
    digits = digits_of(high - low)
    within = "" if math.isnan(low) else f"{percent(audit.confidence_level)} CI {limits(low, high, digits)}"
    n_votes = audit.kappas[best["labeler"]].n_votes
    return [
        (f"{'' if audit.metric == 'dh' else 'weighted '}kappa_DH{of_best}", number(best["kappa"], digits), within),
        ("Random labels", number(best["baseline_random"], digits), "same labels, random order"),
        ("Majority labels", number(best["baseline_majority"], digits), "most frequent vote"),
        (
            "Fleiss' kappa" if audit.metric == "dh" else "weighted Fleiss' kappa",
            number(audit.fleiss.value, digits),
            "agreement between annotators",
        ),
        ("Items", f"{best['items']:,}", counted(n_votes, "vote")),
    ]


def _part(audit: Audit, name: str) -> dict[str, Any]:
    """Return the content of the section of one labeler."""
    part: dict[str, Any] = {"name": name, "verdict": audit.verdict(name), "mean": None}
    part["compared"] = optional(audit.annotator_comparison, name) is not None
    known = optional(audit.other_annotators, name)
    part["others"] = known.text if known is not None and audit.kappas[name].exact is not None else ""
    part["charts"] = dict.fromkeys(OF_ONE_LABELER)
    interval = f"{percent(audit.confidence_level)} CI"
    found = optional(audit.annotator_comparison, name)
    if found is not None and not math.isnan(found.difference):
        compared = len(found.table) - len(found.skipped)
        few = {note.code for note in found.notes} == {"annotators-few-items"}
        others = f"{len(found.skipped):,} {'with too few items' if few else 'not comparable'}"
        skipped = f" {compared:,} compared, {others}." if found.skipped else ""
        from_votes = not math.isnan(audit.annotator_baseline(name).low)  # else the verdict uses this mean
        other = " The verdict has another estimate of a typical annotator, from all votes." if from_votes else ""
        part["mean"] = (
            f"Compared with each annotator in turn, the labeler scores {number(abs(found.difference), 3)} "
            f"{'lower' if found.difference < 0 else 'higher'} on average ({interval} of the difference "
            f"{limits(found.low, found.high, 3)}).{other} The labeler's kappa is at least as high as that of "
            f"{round(found.matched * compared):,} of {counted(compared, 'annotator')}.{skipped}"
        )
    tables = {
        "categories": (
            f"{kappa_name(audit.kappas).capitalize()} by suggested category, the largest loss first",
            sorted(optional(audit.categories, name) or (), key=lambda row: (math.isnan(row["kappa"]), -row["loss"])),
            "category items kappa ci loss precision_ci recall_ci one_annotator label_share vote_share reason",
        ),
    }
    part["slices"] = [_slices(audit, column, name) for column in audit.slice_columns]
    part["slices"] += [_annotator_slices(audit, column, name) for column in audit.annotator_columns]
    return part | {key: _table(audit, *table) if table[1] else None for key, table in tables.items()}


def _slices(audit: Audit, column: str, name: str) -> dict[str, Any]:
    """Return the content of the section of one column of slices."""
    found = audit.slices(column, name)
    caption = f"{kappa_name(audit.kappas).capitalize()} by slice of {text_of(column, 40)}, the lowest first"
    notes = [note.text for note in found.notes]
    table = _table(audit, caption, slice_rows(found), SLICE_COLUMNS)
    section: dict[str, Any] = {"column": column, "drawn": True, "chart": None, "heading": "Slices of"}
    return section | {"summary": found.summary, "table": table, "notes": notes}


def _annotator_slices(audit: Audit, column: str, name: str) -> dict[str, Any]:
    """Return the content of the section of one column of the annotators table."""
    found = audit.annotator_slices(column, name)
    caption = f"{kappa_name(audit.kappas).capitalize()} from the votes of annotators by {text_of(column, 40)}"
    table = _table(audit, caption, annotator_rows(found), f"{ANNOTATOR_COLUMNS} reason")
    section: dict[str, Any] = {"column": column, "drawn": False, "chart": None, "heading": "Annotators by"}
    return section | {"summary": found.summary, "table": table, "notes": [note.text for note in found.notes]}


def _annotators(audit: Audit) -> dict[str, Any] | None:
    """Return the table of annotators and what is said about them; None if they are unknown."""
    scores = optional(audit.annotator_scores)
    if scores is None:
        return None
    listed = scores.listed()
    columns = "annotator items agree shrunk_score ci deviation pvalue_adjusted remark"
    found = _table(audit, listed.title, islice(listed, MOST_ANNOTATORS), columns) if len(listed) else None
    more = len(listed) > MOST_ANNOTATORS
    rest = f"The first {MOST_ANNOTATORS} of {len(listed):,} annotators with {MIN_ITEMS} items or more." if more else ""
    return {"table": found, "texts": [scores.summary, *(note.text for note in scores.notes)], "rest": rest}


def _queues(audit: Audit, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the first items to review of each labeler; none if items are not known."""
    found = []
    for name in names:
        table = optional(audit.review, name, REVIEW_LIMIT)
        if table is not None:
            rows, total = list(islice(table, MOST_REVIEWED // len(names))), audit.kappas[name].n_items
            cut = len(rows) < total
            extent = f"the first {len(rows):,} of {total:,} items" if cut else counted(len(rows), "item")
            found.append({"name": name, "rows": rows, "extent": extent, "cut": cut, "shown": table.shown})
    return found


def _excluded(audit: Audit, names: Sequence[str]) -> list[str]:
    """Say which items are excluded, once if it is the same for all labelers."""
    texts = []
    for excluded in (audit.kappas[name].excluded for name in names):
        verb = "is" if excluded.total == 1 else "are"
        why = f"{counted(excluded.total, 'item')} {verb} excluded: {excluded.why()}."
        texts.append(why if excluded.total else "No item is excluded.")
    same = len(set(texts)) == 1
    return texts[:1] if same else [f"{name}: {text}" for name, text in zip(names, texts, strict=True)]
