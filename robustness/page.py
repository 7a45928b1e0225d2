"""The page of what was thrown at dhkappa: every trial writes its own section of docs/robustness.md, and only that."""

import platform
import re
import subprocess
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

from dhkappa.version import __version__

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "robustness.md"


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table; a bar inside a cell stays text."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def source() -> str:
    """Say which state of the package this is, by git's name for it, and whether files differ; nothing without git."""
    try:
        tree, changed = (
            subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
            for words in (
                ["rev-parse", "--short", "HEAD:src/dhkappa"],
                ["status", "--porcelain", "--", "src/dhkappa"],
            )
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f" (src/dhkappa at tree {tree}{', changed since' if changed else ''})"


def write(section: str, text: str) -> None:
    """Put `text` between the two marks of a section, with the day, and what of dhkappa and Python it was made with."""
    begin, end = f"<!-- {section}: written by make {section} -->", f"<!-- end of {section} -->"
    page = PAGE.read_text(encoding="utf-8")
    marked = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if len(marked.findall(page)) != 1:
        raise SystemExit(f"{PAGE} must hold the marks of the section {section} once.")
    made = f"Made on {date.today()} with dhkappa {__version__}{source()}, Python {platform.python_version()}."
    whole = marked.sub(lambda _: f"{begin}\n\n{text.strip()}\n\n{made}\n\n{end}", page)
    PAGE.write_text(whole, encoding="utf-8")
    print(text.strip())
