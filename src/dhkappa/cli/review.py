"""The command ``dhkappa review``: write the items to review."""

from __future__ import annotations

import sys
from typing import Any

import click

import dhkappa
from dhkappa.cli import options
from dhkappa.cli.filters import left_out, say_left_out
from dhkappa.cli.options import Command, Input, check_output, option
from dhkappa.cli.output import check_items, json_text, listed, naming_audit, only, open_errors, refuse, warn
from dhkappa.errors import counted, invalid, visible
from dhkappa.paths import is_excel
from dhkappa.resources import Progress

_LABELS = ("item", "suggested", "majority")  # columns of the review queue that are text in Excel
_REJECTED = "Only items on which more pairs of votes agree on another label than on the suggested one."


@click.command(cls=Command, epilog="Example: dhkappa review votes.csv --suggested llm --limit 200 -o review.csv")
@option("output", "CSV or Excel file (.xlsx) to write; CSV on standard output by default.", "-o", metavar="FILE")
@option("limit", "Number of items; all by default.", "-n", type=click.IntRange(1))
@option("rejected", _REJECTED, is_flag=True)
@option("raw", "Leave text unchanged that a spreadsheet would run as a formula.", is_flag=True)
@options.combine(options.FILES, options.FORMAT, options.ROLES_OF_ONE, options.SAMPLE, options.POOL, options.WEIGHTS)
@options.ALLOW
def review(output: str | None, limit: int | None, rejected: bool, raw: bool, **given: Any) -> None:
    """Write the items to review as CSV or Excel.

    Items whose label the annotators reject most clearly come first. Problems of the data are printed on standard error.
    """
    from dhkappa.table import library, workbook  # which needs NumPy

    as_json = given["output_format"] == "json"
    output = None if output == "-" else output
    check_output(output, [*given["files"], given["items"]], (".json",) if as_json else (".csv", ".xlsx"))
    excel = output is not None and is_excel(output)
    if excel:
        library("xlsxwriter", "Writing an Excel file", "'dhkappa[excel]'")
    source = Input(given)
    with Progress(None, "counting votes"):
        if isinstance(source.data, dhkappa.Dataset):
            source.data.check_labeled()
        sample = {"pool": source.pool, "weights": given["weights"], "allow": source.allow}
        found = dhkappa.audit(source.data, source.suggested, progress=False, **sample)
        if isinstance(found, dhkappa.SingleVoteAudit):
            message = "Every item has at most one vote, and a review queue needs two or more."
            hint = "dhkappa audit lists the items whose vote differs from the label."
            raise invalid("data", message, code="single-votes", hint=hint)
        labeler, problems = only(found.labelers), naming_audit(found.problems)
        if errors := open_errors(problems):
            refuse(errors[0])
        check_items(found.kappas, given["files"])
        n_items = found.kappas[labeler].n_items
        queue = found.review(limit=limit or max(n_items, 1))
        if rejected:
            queue = queue.where(lambda row: row["differential"] < 0)
    if as_json:
        whole = {
            "labeler": labeler,
            "n_items": n_items,
            **listed(problems),
            **left_out(source.data),
            "review": queue.to_json(),
        }
        text = json_text("review", whole) + "\n"
    else:
        text = "" if excel else queue.to_csv(safe=not raw)
    if output is None:
        if sys.stdout.isatty():  # a terminal would execute escape sequences
            text = "".join(f"{visible(line)}\n" for line in text.splitlines())
        elif hasattr(sys.stdout, "reconfigure"):  # a file or a pipe gets UTF-8 in any locale
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
        sys.stdout.write(text)  # click.echo would remove escape sequences
        sys.stdout.flush()  # problems are not printed if nobody reads the output
    else:
        from dhkappa.paths import write_file

        write_file(output, workbook(queue, _LABELS) if excel else text, "review queue")
        click.echo(f"{counted(len(queue), 'item')} written to {visible(output)}.", err=True)
    if not as_json:
        say_left_out(source.data)
        warn(problems)
