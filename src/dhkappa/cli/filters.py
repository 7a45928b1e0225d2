"""The options ``--where`` and ``--exclude-annotator``, what they have left out, and lists separated by commas."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import click

import dhkappa
from dhkappa.errors import invalid, masked, shown, visible
from dhkappa.paths import system_message


def filtered(data: dhkappa.Dataset, given: Mapping[str, Any]) -> dhkappa.Dataset:
    """Leave out items, votes and annotators as the options of a command say."""
    if conditions := given.get("where"):
        data = data.filter(*conditions)
    if names := annotator_names(given.get("exclude_annotator") or ()):
        data = data.exclude_annotators(*names)
    return data


def annotator_names(given: Iterable[str]) -> list[str]:
    """Return names of annotators, separated by commas; ``@path`` stands for the lines of a file."""
    names: list[str] = []
    for text in given:
        if not text.startswith("@"):
            names += several([text])
            continue
        if not os.path.exists(text[1:]):
            hint = "@ stands for a file of names. An annotator whose name starts with @ can be named in such a file."
            message = f"File not found: {shown([text[1:]])}."
            raise invalid("exclude_annotator", message, code="file-not-found", hint=hint)
        try:
            with open(text[1:], encoding="utf-8-sig") as file:
                lines = [line.strip() for line in file]
        except (OSError, UnicodeError) as error:
            what = f"Cannot read the file {shown([text[1:]])}: {system_message(error)}"
            raise invalid("exclude_annotator", f"{what}.", hint="Write one name per line.") from None
        if not any(lines):
            raise invalid("exclude_annotator", f"The file {shown([text[1:]])} has no names.")
        names += filter(None, lines)
    return names


def left_out(data: Any) -> dict[str, Any]:
    """Return what filters have left out as a part of a JSON result; nothing for a tally."""
    return {"filters": [one.to_dict() for one in getattr(data, "left_out", ())]}


def say_left_out(data: Any) -> None:
    """Print what filters have left out on standard error."""
    for one in getattr(data, "left_out", ()):
        click.echo(visible(masked(str(one.note))), err=True)


def several(given: Iterable[str]) -> list[str]:
    """Split option values at commas; quotes protect a name that contains a comma, and a name may be a blank."""
    found: list[str] = []
    for text in filter(None, given):
        if '"' not in text:
            found += [name if name.isspace() else name.lstrip(" ") for name in text.split(",")]
            continue
        import csv  # takes time

        try:
            found += next(csv.reader([text], strict=True, skipinitialspace=True))
        except csv.Error:  # a name that contains quotes
            found.append(text)
    return found
