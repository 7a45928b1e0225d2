"""The options ``--where`` and ``--exclude-annotator``: names in a file, and what was left out."""

from __future__ import annotations

import os
from typing import Any

import click

from dhkappa.errors import invalid, masked, shown, visible
from dhkappa.paths import system_message


def names_in_file(path: str) -> list[str]:
    """Return the names of annotators in the lines of a file."""
    if not os.path.exists(path):
        hint = "@ stands for a file of names. An annotator whose name starts with @ can be named in such a file."
        message = f"File not found: {shown([path])}."
        raise invalid("exclude_annotator", message, code="file-not-found", hint=hint)
    try:
        with open(path, encoding="utf-8-sig") as file:
            names = [line.strip() for line in file]
    except (OSError, UnicodeError) as error:
        what = f"Cannot read the file {shown([path])}: {system_message(error)}"
        raise invalid("exclude_annotator", f"{what}.", hint="Write one name per line.") from None
    if not any(names):
        raise invalid("exclude_annotator", f"The file {shown([path])} has no names.")
    return [name for name in names if name]


def left_out(data: Any) -> dict[str, Any]:
    """Return what filters have left out as a part of a JSON result; nothing for a tally."""
    return {"filters": [one.to_dict() for one in getattr(data, "left_out", ())]}


def say_left_out(data: Any) -> None:
    """Print what filters have left out on standard error."""
    for one in getattr(data, "left_out", ()):
        click.echo(visible(masked(str(one.note))), err=True)
