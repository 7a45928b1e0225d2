"""The command ``dhkappa annotators``: write the scores of all annotators."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

import dhkappa
from dhkappa.cli import options
from dhkappa.cli.options import Command, Input, check_output, option
from dhkappa.cli.output import json_text, listed, naming_audit, open_errors, refuse, warn
from dhkappa.errors import counted, invalid, visible
from dhkappa.paths import is_excel
from dhkappa.resources import Progress

_TEXT = ("annotator", "differs")  # columns that are text in Excel


@click.command(cls=Command, epilog="Example: dhkappa annotators votes.csv -o annotators.csv")
@option("output", "CSV or Excel file (.xlsx) to write; with --format json a JSON file.", "-o", metavar="FILE")
@option("raw", "Leave text unchanged that a spreadsheet would run as a formula.", is_flag=True)
@options.combine(options.FILES, options.FORMAT, options.ROLES, options.SAMPLE, options.LEVEL, options.ALLOW)
def annotators(output: str | None, raw: bool, **given: Any) -> None:
    """Score all annotators, and find those who differ from the rest.

    All annotators are scored on one scale, with or without suggested labels. Prints who differs from the rest, and
    whose votes are not shown to be better than guesses; -o writes all annotators as CSV or Excel.
    """
    from dhkappa.stats.annotator_scores import annotator_scores
    from dhkappa.table import library, workbook

    as_json = given["output_format"] == "json"
    check_output(output, [*given["files"], given["items"]], (".json",) if as_json else (".csv", ".xlsx"))
    excel = output is not None and is_excel(output)
    if excel:
        library("xlsxwriter", "Writing an Excel file", "'dhkappa[excel]'")
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
    whole = {**listed(problems), **found.to_dict()}
    text = json_text("annotators", whole) + "\n" if as_json else "" if excel else found.table.to_csv(safe=not raw)
    if output is not None:
        from dhkappa.paths import write_file

        write_file(output, workbook(found.table, _TEXT) if excel else text, "table of annotators")
        click.echo(f"{counted(len(found.table), 'annotator')} written to {visible(output)}.", err=True)
    elif as_json:
        click.echo(text, nl=False)
    if not as_json:
        warn(problems)
        import_module("dhkappa.report.terminal").Terminal().annotators(found, all_written=output is not None)
