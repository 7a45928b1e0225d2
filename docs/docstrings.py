"""What the site makes of docstrings: attributes told in one line."""

import re
from typing import Any

import griffe

_HEAD = re.compile(r"^(\w+(?:, \w+)*) : (.*)$")


class House(griffe.Extension):
    """Read ``name : text`` under Attributes as a name with its text."""

    def on_class(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Change the docstring of a class before it is read."""
        if cls.docstring is not None:
            cls.docstring.value = _told(cls.docstring.value)


def _told(text: str) -> str:
    before, mark, rest = text.partition("Attributes\n----------\n")
    lines: list[str] = []
    for line in rest.splitlines():
        found = _HEAD.match(line)
        lines += [found[1], f"    {found[2]}"] if found else [line]
    return before + mark + "\n".join(lines)
