"""Write a section of docs/robustness.md."""

import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from textwrap import fill

from dhkappa import __version__

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "robustness.md"
COMMAND = str(Path(sys.executable).with_name("dhkappa"))


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def paragraphs(*texts: str) -> str:
    """Join paragraphs, and wrap those that are prose."""
    return "\n\n".join(
        text if text.startswith(("|", "#", "- ")) else fill(text, 118, break_long_words=False) for text in texts if text
    )


def source() -> str:
    """Return the git tree of the tested package, or nothing without git."""
    try:
        tree, changed = (
            subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
            for words in (["rev-parse", "--short", "HEAD:src/dhkappa"], ["status", "--porcelain", "--", "src/dhkappa"])
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f" (src/dhkappa at tree {tree}{', with changes' if changed else ''})"


def read(section: str) -> str:
    """Return the text of a section."""
    return _marks(section).split(PAGE.read_text(encoding="utf-8"))[1]


def write(section: str, text: str) -> None:
    """Replace a section, and print it."""
    page = PAGE.read_text(encoding="utf-8")
    made = f"Made on {date.today()} with dhkappa {__version__}{source()}, Python {platform.python_version()}."
    begin, end = f"<!-- {section}: written by make {section} -->", f"<!-- end of {section} -->"
    whole, number = _marks(section).subn(lambda _: f"{begin}\n\n{text.strip()}\n\n{made}\n\n{end}", page)
    if number != 1:
        raise SystemExit(f"{PAGE} must contain the marks of section {section} once.")
    PAGE.write_text(whole, encoding="utf-8")
    print(text.strip())


def _marks(section: str) -> re.Pattern[str]:
    return re.compile(f"<!-- {section}: .*?-->(.*?)<!-- end of {section} -->", re.DOTALL)


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder that other users, such as that of Postgres, can read."""
    folder = tempfile.TemporaryDirectory(prefix="dhkappa-robustness-")
    Path(folder.name).chmod(0o755)
    return folder
