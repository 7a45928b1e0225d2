"""The commands of ``dhkappa tally``: store vote counts in files, and add them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click

import dhkappa
from dhkappa.cli import options
from dhkappa.cli.files import check_output
from dhkappa.cli.filters import left_out, say_left_out
from dhkappa.cli.options import Commands, Input, is_tally, option, sum_of
from dhkappa.cli.output import json_text, open_errors, refuse, warn
from dhkappa.errors import invalid, visible
from dhkappa.paths import expand_patterns
from dhkappa.resources import Progress

_OUTPUT = option("output", "Tally file to write.", "-o", required=True, metavar="FILE")


@click.group(cls=Commands, epilog="Example: dhkappa tally add monday.json tuesday.json -o week.json")
def tally() -> None:
    """Store vote counts in files and add them.

    Adding tallies gives the same result as counting all items together. score, compare and audit read a tally like a
    data file.
    """


@tally.command("make", epilog="Example: dhkappa tally make votes.csv --suggested llm -o monday.json")
@options.combine(options.FILES, _OUTPUT, options.FORMAT, options.ROLES, options.SAMPLE, options.ALLOW)
def tally_make(output: str, **given: Any) -> None:
    """Count votes and suggested labels into a tally file.

    The data is checked first, because a tally keeps no single votes: nothing is written if there is an error.
    """
    check_output(output, [*given["files"], given["items"]], (".json",))
    if any(map(is_tally, expand_patterns(given["files"]))):
        raise invalid("data", "A file is already a tally.", code="already-tally", hint="Add with dhkappa tally add.")
    source = Input(given)
    with Progress(None, "counting votes"):
        whole = source.data.tally()
        problems = source.problems(fetch=True)
        # Errors of a labeler are found in the tally, too.
        if errors := [one for one in open_errors(problems) if not one.labelers]:
            refuse(errors[0])
        whole.save(output)
    warn(problem for problem in problems if problem.code != "too-few-items")  # tallies are added
    say_left_out(source.data)
    _show_tally("tally make", whole, output, given["output_format"], left_out(source.data))


@tally.command("add", epilog="Example: dhkappa tally add monday.json tuesday.json -o week.json")
@options.combine(options.FILES, _OUTPUT, options.FORMAT)
def tally_add(files: tuple[str, ...], output: str, output_format: str) -> None:
    """Add tallies."""
    check_output(output, files, (".json",))
    paths = expand_patterns(files)
    if others := [path for path in paths if os.path.exists(path) and not is_tally(path)]:
        message = f"{others[0]!r} is not a tally."
        raise invalid("data", message, code="not-a-tally", hint="Use dhkappa tally make first.")
    with Progress(None, "adding"):
        whole = sum_of(paths)
        whole.save(output)
    _show_tally("tally add", whole, output, output_format)


@tally.command("show", epilog="Example: dhkappa tally show week.json")
@click.argument("file")
@options.FORMAT
def tally_show(file: str, output_format: str) -> None:
    """Show the content of a tally file."""
    from dhkappa.inputs.tally import read_file  # which needs NumPy

    _show_tally("tally show", dhkappa.Tally.of_file(*read_file(file)), file, output_format)


def _show_tally(
    command: str, whole: dhkappa.Tally, path: str, output_format: str, filters: Mapping[str, Any] | None = None
) -> None:
    if output_format == "json":
        counts = {"path": path, "n_items": whole.n_items, "n_votes": whole.n_votes, "n_patterns": len(whole)}
        names = {"categories": list(whole.categories), "labelers": list(whole.labelers)}
        click.echo(json_text(command, {**counts, **names, **(filters or {"filters": []})}))
    else:
        click.echo(f"{visible(path)}: {whole!r}")
