"""Write tables for people as CSV or Excel, to a file or to standard output."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from dhkappa.errors import counted, visible
from dhkappa.paths import is_excel

if TYPE_CHECKING:
    from collections.abc import Collection

    from dhkappa.table import Table

_BOM = "\ufeff"  # at the start of a file, by which Excel recognizes UTF-8


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
