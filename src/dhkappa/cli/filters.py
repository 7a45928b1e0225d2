"""The options ``--where`` and ``--exclude-annotator``: names in a file, and what was left out."""

from __future__ import annotations

import os
from typing import Any

import click

from dhkappa.errors import invalid, masked, shown, visible
from dhkappa.paths import system_message


def names_in_file(path: str) -> list[str]:
    """Return the names of annotators in a file: in its lines, or in the column ``annotator`` of a CSV file."""
    if not os.path.exists(path):
        hint = "@ stands for a file of names. An annotator whose name starts with @ can be named in such a file."
        message = f"File not found: {shown([path])}."
        raise invalid("exclude_annotator", message, code="file-not-found", hint=hint)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = file.read().splitlines(keepends=True)
    except (OSError, UnicodeError) as error:
        what = f"Cannot read the file {shown([path])}: {system_message(error)}"
        raise invalid("exclude_annotator", f"{what}.", hint="Write one name per line.") from None
    names = _names_in_csv(lines) if path.lower().endswith(".csv") else None
    names = [line.strip() for line in lines] if names is None else names
    if not any(names):
        raise invalid("exclude_annotator", f"The file {shown([path])} has no names.")
    return [name for name in names if name]


def _names_in_csv(lines: list[str]) -> list[str] | None:
    """Return the column ``annotator``, as ``dhkappa annotators -o`` writes it; None if there is none."""
    import csv  # takes time

    try:
        rows = csv.DictReader(lines)
        found = [(row["annotator"] or "").strip() for row in rows] if "annotator" in (rows.fieldnames or ()) else None
    except csv.Error:
        return None
    return found


def left_out(data: Any) -> dict[str, Any]:
    """Return what filters have left out as a part of a JSON result; nothing for a tally."""
    return {"filters": [one.to_dict() for one in getattr(data, "left_out", ())]}


def say_left_out(data: Any) -> None:
    """Print what filters have left out on standard error."""
    for one in getattr(data, "left_out", ()):
        click.echo(visible(masked(str(one.note))), err=True)
