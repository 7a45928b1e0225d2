"""The command ``dhkappa history``, and the options of ``dhkappa audit`` that save an audit and compare it with one."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

import dhkappa
from dhkappa.cli import options
from dhkappa.cli.files import check_output
from dhkappa.cli.options import Command, option, several
from dhkappa.cli.output import command_line_typed, file_name, json_text, masked_argument
from dhkappa.errors import invalid, visible
from dhkappa.inputs.dates import check_date, today
from dhkappa.paths import expand_patterns
from dhkappa.resources import Progress

_SAVE = "Write counts and verdicts to a JSON file, for dhkappa history and --baseline."
_DATE = "With --save: date of the data, such as 2026-11-09; today by default."
_BASELINE = "Earlier audit of other items, saved with --save, to compare with."
SAVING = options.combine(
    option("save", _SAVE, metavar="FILE"),
    option("date", _DATE, metavar="DATE"),
    option("baseline", _BASELINE, metavar="FILE"),
)


def check_saving(given: Mapping[str, Any]) -> None:
    """Check the options of ``SAVING`` before any work."""
    if given["date"] is not None:
        check_date(given["date"])
        if given["save"] is None:
            raise invalid("date", "date needs a file to save.", code="option-unused", hint="Pass $save, too.")
    check_output(given["save"], [*given["files"], given["items"], given["baseline"]], (".json",))


def with_baseline(found: Any, given: Mapping[str, Any]) -> Any:
    """Return an audit compared with ``--baseline``, if there is one."""
    for name in ("save", "baseline"):
        if given[name] is not None and not isinstance(found, dhkappa.Audit):
            message = f"Only an audit of suggested labels, one per item, with several votes can be used with {name}."
            hint = "With sets of labels, choose a category with $category."
            raise invalid(name, message, code="not-an-audit-of-labels", hint=hint)
    if given["baseline"] is None:
        return found
    before = dhkappa.SavedAudit.load(given["baseline"])
    date = check_date(today() if given["date"] is None else given["date"])
    if before.date is not None and date < before.date:
        own = f"today, {date}" if given["date"] is None else f"--date {given['date']}"
        message = f"The baseline is of {before.date}, later than {own}."
        hint = "Compare an audit with an earlier one, or run dhkappa history, which orders audits by date."
        raise invalid("baseline", message, code="baseline-later", hint=hint)
    return found.compare_with(before)


def save_audit(found: Any, given: Mapping[str, Any]) -> None:
    """Write the file of ``--save``, if there is one."""
    if given["save"] is not None:
        names = [masked_argument(file_name(file)) for file in given["files"]]
        found.save(given["save"], date=given["date"], data=", ".join(names))
        click.echo(f"Saved: {visible(given['save'])}", err=True)


@click.command(cls=Command, epilog="Example: dhkappa history week*.json -o history.html")
@options.FILES
@option("output", "HTML page with charts to write.", "-o", metavar="FILE")
@option("title", "Title of the report; the file name by default.", metavar="TEXT")
@options.SUGGESTED
@option("by", "Also show kappa by suggested category over time.", choices=("category",))
@options.combine(options.ANY_TIME, options.REPORT_FORMAT, options.LEVEL)
def history(files: tuple[str, ...], output: str | None, title: str | None, **given: Any) -> None:
    """Compare audits over time, such as one of each week.

    FILE is an audit that was saved with dhkappa audit --save, or a tally. Every audit must be of other items. Shows the
    kappa of each labeler over time, whether it changed, and whether the annotators or the categories changed instead.
    """
    check_output(output, files, (".html", ".htm"))
    if output is not None:
        import_module("dhkappa.report.html").check_requirements()
    names = ", ".join(map(file_name, files[:3])) + (f" and {len(files) - 3} more" if files[3:] else "")
    title, by_category = masked_argument(title or f"Label history: {names}"), given["by"] == "category"
    with Progress(None, "comparing") as progress:
        chosen: dict[str, Any] = {"suggested": several(given["suggested"]) or None}
        chosen |= {name: given[name] for name in ("confidence_level", "any_time")}
        found = dhkappa.history(expand_patterns(files), **chosen)
        if output is not None:
            progress.describe("writing the page")
            found.to_html(output, title=title, command=command_line_typed())
    if given["output_format"] == "json":
        click.echo(json_text("history", found.to_dict(by_category=by_category) | {"report": output}))
    elif given["output_format"] == "markdown":
        click.echo(found.to_markdown(title=title, by_category=by_category))
    else:
        import_module("dhkappa.report.history").show(found, title, by_category=by_category)
        if output is not None:
            click.echo(f"\nReport: {visible(output)}")
