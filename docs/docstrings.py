"""Griffe extension: one-line attributes and grouped parameters in NumPy-style docstrings."""

import re
from typing import Any

import griffe

_ATTRIBUTE = re.compile(r"^(\w+(?:, \w+)*) : (.*)$")
_SEVERAL = re.compile(r"^\**\w+(?:, \**\w+)+$")


class CompactDocstrings(griffe.Extension):
    """Expand ``name : text`` under Attributes and ``one, other`` under Parameters to the standard NumPy form."""

    def on_class(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Expand the attributes of a class before the docstring is parsed."""
        if cls.docstring is not None:
            cls.docstring.value = _attributes(cls.docstring.value)

    def on_function(self, *, func: griffe.Function, **kwargs: Any) -> None:
        """Expand the parameters of a function before the docstring is parsed."""
        if func.docstring is not None:
            func.docstring.value = _parameters(func.docstring.value)


def _attributes(text: str) -> str:
    """Put the description of each attribute on a separate line."""
    before, mark, rest = text.partition("Attributes\n----------\n")
    lines: list[str] = []
    for line in rest.splitlines():
        found = _ATTRIBUTE.match(line)
        lines += [found[1], f"    {found[2]}"] if found else [line]
    return before + mark + "\n".join(lines)


def _parameters(text: str) -> str:
    """Split grouped parameters into separate entries, so that each has its own type and default."""
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
