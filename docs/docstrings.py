"""Griffe extension for docstrings: attributes on one line, and parameters that share a description."""

import re
from typing import Any

import griffe

_ATTRIBUTE = re.compile(r"^(\w+(?:, \w+)*) : (.*)$")
_SEVERAL = re.compile(r"^\**\w+(?:, \**\w+)+$")


class Docstrings(griffe.Extension):
    """Read ``name : text`` under Attributes, and ``one, other`` under Parameters."""

    def on_class(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Rewrite the docstring of a class."""
        if cls.docstring is not None:
            cls.docstring.value = _attributes(cls.docstring.value)

    def on_function(self, *, func: griffe.Function, **kwargs: Any) -> None:
        """Rewrite the docstring of a function."""
        if func.docstring is not None:
            func.docstring.value = _parameters(func.docstring.value)


def _attributes(text: str) -> str:
    """Move the text of an attribute to its own line."""
    before, mark, rest = text.partition("Attributes\n----------\n")
    lines: list[str] = []
    for line in rest.splitlines():
        found = _ATTRIBUTE.match(line)
        lines += [found[1], f"    {found[2]}"] if found else [line]
    return before + mark + "\n".join(lines)


def _parameters(text: str) -> str:
    """Give each parameter its own entry, with its own type and default."""
    before, mark, rest = text.partition("Parameters\n----------\n")
    lines: list[str] = []
    others: list[str] = []
    first = ""
    for line in [*rest.splitlines(), ""]:
        if others and not line.startswith(" "):
            lines += [part for name in others for part in (name, f"    See ``{first}``.")]
            others = []
        if _SEVERAL.match(line):
            first, *others = line.split(", ")
            line = first
        lines.append(line)
    return (before + mark + "\n".join(lines)).rstrip("\n")
