"""Output files: check them before any work, and write tables for people as CSV or Excel."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from dhkappa.errors import DataError, counted, invalid, shown, visible
from dhkappa.paths import expand_patterns, is_excel, is_stream

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from dhkappa.table import Table

_BOM = "\ufeff"  # at the start of a file, by which Excel recognizes UTF-8


def check_output(path: str | None, inputs: Sequence[str | None], endings: Sequence[str]) -> None:
    """Check before any work that the output can be written and overwrites no input."""
    if path is None:
        return

    def error(code: str, message: str, hint: str = "") -> DataError:
        return invalid("output", f"Cannot write {shown([path])}: {message}.", code=code, hint=hint)

    if not path.lower().endswith(tuple(endings)) and not is_stream(path) and not os.path.isdir(path):
        raise error("output-ending", f"the name must end in {' or '.join(endings)}")
    for other in expand_patterns(name for name in inputs if name is not None):
        if os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other):
            raise error("output-is-input", "it is an input file", "Choose another name.")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise error("folder-not-found", f"folder {shown([folder])} not found")
    if os.path.isdir(path):
        raise error("output-is-folder", "it is a folder")
    if not os.access(path if is_stream(path) else folder, os.W_OK):
        raise error("no-permission", "permission denied")


def check_excel(output: str | None) -> None:
    """Refuse an Excel file before any work if the library that writes it is missing."""
    from dhkappa.table import library  # which needs NumPy

    if output is not None and is_excel(output):
        library("xlsxwriter", "Writing an Excel file", "'dhkappa[excel]'")


def content_of(
    table: Table, output: str | None, *, safe: bool = True, bom: bool = False, text: Collection[str] = ()
) -> str | bytes:
    """Return a table as the content of a CSV or Excel file; ``text`` are columns that are text in Excel."""
    from dhkappa.table import workbook

    if output is not None and is_excel(output):
        return workbook(table, text)
    return _BOM * bom + table.to_csv(safe=safe)


def write(content: str | bytes, output: str | None, what: str, n: int, noun: str = "item") -> None:
    """Write a file and say so on standard error, or print text; on a terminal without what it would execute."""
    if output is not None:
        from dhkappa.paths import write_file

        write_file(output, content, what)
        click.echo(f"{counted(n, noun)} written to {visible(output)}.", err=True)
        return
    text = content if isinstance(content, str) else content.decode()
    if sys.stdout.isatty():  # a terminal would execute escape sequences
        text = "".join(f"{visible(line)}\n" for line in text.splitlines())
    elif hasattr(sys.stdout, "reconfigure"):  # a file or a pipe gets UTF-8 in any locale
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.stdout.write(text)  # click.echo would remove escape sequences
    sys.stdout.flush()  # problems are not printed if nobody reads the output
