"""The command ``dhkappa annotators``: write the scores of all annotators."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

import dhkappa
from dhkappa.cli import options
from dhkappa.cli.files import check_excel, check_output, content_of, write
from dhkappa.cli.filters import left_out, say_left_out
from dhkappa.cli.options import Command, Input, option
from dhkappa.cli.output import json_text, listed, naming_audit, open_errors, refuse, warn
from dhkappa.errors import invalid
from dhkappa.resources import Progress

_TEXT = ("annotator", "differs")  # columns that are text in Excel


@click.command(cls=Command, epilog="Example: dhkappa annotators votes.csv -o annotators.csv")
@option("output", "CSV or Excel file (.xlsx) to write; with --format json a JSON file.", "-o", metavar="FILE")
@options.EXCEL
@option("raw", "Leave text unchanged that a spreadsheet would run as a formula.", is_flag=True)
@options.combine(options.FILES, options.FORMAT, options.ROLES, options.SAMPLE, options.LEVEL, options.ALLOW)
def annotators(output: str | None, excel: bool, raw: bool, **given: Any) -> None:
    """Score all annotators, and find those who differ from the rest.

    All annotators are scored on one scale, with or without suggested labels. Prints who differs from the rest, and
    whose votes are not shown to be better than guesses; -o writes all annotators as CSV or Excel.
    """
    from dhkappa.stats.annotator_scores import annotator_scores

    as_json = given["output_format"] == "json"
    check_output(output, [*given["files"], given["items"]], (".json",) if as_json else (".csv", ".xlsx"))
    check_excel(output)
    source = Input(given)
    with Progress(None, "counting votes"):
        data = source.data
        if not isinstance(data, dhkappa.Dataset):
            hint = "Pass the votes that were counted."
            raise invalid(
                "annotators", "A tally has only numbers of votes, not who voted.", code="annotators-unknown", hint=hint
            )
        data.check_single()
        problems = naming_audit(source.problems(fetch=True))
        # Errors of a labeler say nothing about the votes.
        if errors := [one for one in open_errors(problems) if not one.labelers]:
            refuse(errors[0])
        votes = data.item_votes()
        known = {"confidence_level": given["confidence_level"], "labelers": data.labelers if data.labeled else ()}
        found = annotator_scores(votes and votes.merged(), **known)
    if as_json:
        whole = {**listed(problems), **found.to_dict(), **left_out(data)}
        content: str | bytes = json_text("annotators", whole) + "\n"
    else:
        content = content_of(found.table, output, safe=not raw, bom=excel, text=_TEXT)
    if as_json or output is not None:
        write(content, output, "table of annotators", len(found.table), "annotator")
    if not as_json:
        say_left_out(data)
        warn(problems)
        import_module("dhkappa.report.terminal").Terminal().annotators(found, all_written=output is not None)
