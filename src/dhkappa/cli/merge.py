"""Merge a reviewed file: ``dhkappa review --merge``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

import dhkappa
from dhkappa.cli.files import content_of, write
from dhkappa.cli.filters import left_out, say_left_out
from dhkappa.cli.output import json_text, listed, naming_audit, only, open_errors, refuse, warn
from dhkappa.errors import invalid, visible
from dhkappa.paths import is_excel
from dhkappa.resources import Progress

if TYPE_CHECKING:
    from dhkappa.table import Table


def merge(
    source: Any, given: Mapping[str, Any], output: str | None, *, safe: bool, bom: bool, stream: bool = False
) -> None:
    """Merge the reviewed file, write the updated votes and the corrected labels, and print what has changed.

    ``source`` is the ``Input`` of the command. With ``stream``, the votes (or of decisions the labels) are written to
    standard output.
    """
    labels, is_vote = given["labels"], given["action"] == "vote"
    with Progress(None, "counting votes"):
        if isinstance(source.data, dhkappa.Dataset):
            source.data.check_labeled()
        chosen = {"action": given["action"], "reviewer": given["reviewer"], "new_categories": given["new_categories"]}
        own = source.suggested or [only(source.data.labelers)]
        found = dhkappa.merge_reviews(
            source.data, given["merge"], own[0], pool=source.pool, allow=source.allow, **chosen
        )
        problems = naming_audit(found.before.problems)
        if errors := open_errors(problems):
            refuse(errors[0])
        as_json = given["output_format"] == "json"
        files: list[tuple[Table, str | None, str]] = []
        if found.votes is not None and (output is not None or (stream and not as_json)):
            files.append((found.votes, output, "votes"))
        if labels is not None or (stream and not (is_vote or as_json)):
            files.append((found.labels, labels, "labels"))
        if labels is not None:
            found.check_kept(labels)
        # The content of all files is made before the first is written.
        contents = [_content(table, path, safe=safe, bom=bom) for table, path, _ in files]
    for (table, path, what), content in zip(files, contents, strict=True):
        write(content, path, what, len(table), "row")
    if as_json:
        click.echo(json_text("review", {**found.to_dict(), **listed(problems), **left_out(source.data)}))
        return
    for line in repr(found).splitlines():  # on standard error if the votes or labels are on standard output
        click.echo(visible(line), err=any(path is None for _, path, _ in files))
    say_left_out(source.data)
    warn(problems)
    if not files:
        votes = "-o FILE writes the updated votes, " if is_vote else ""
        click.echo(f"Nothing was written: {votes}--labels FILE writes the corrected labels.", err=True)


def _content(table: Table, path: str | None, *, safe: bool, bom: bool) -> str | bytes:
    """Return the content of a file of data, which must not change: text that a spreadsheet would run is refused."""
    if safe and not (path is not None and is_excel(path)) and table.to_csv() != table.to_csv(safe=False):
        message = "The data hold text that a spreadsheet would run as a formula (it starts with =, +, - or @)."
        hint = "Write .xlsx, in which text stays text, or pass $raw to write it as it is."
        raise invalid("output", message, code="formula-in-data", hint=hint)
    return content_of(table, path, safe=False, bom=bom, text=_texts(table))


def _texts(table: Table) -> list[str]:
    """Return the columns that hold some text: they stay text in Excel."""
    return [name for name in table.names if any(isinstance(value, str) for value in table.column(name))]
