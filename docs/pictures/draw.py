"""Create the pictures of the documentation from the demo: terminal output as SVG, the report in Chromium as PNG."""

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
COMMAND = str(Path(sys.executable).with_name("dhkappa"))
WORDS = ["audit", "dhkappa-demo/annotations.csv", "--items", "dhkappa-demo/items.csv"]
WIDTH, LINES = 80, 34


def main() -> None:
    """Run the demo in a temporary folder, audit it, and write the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        colors = os.environ | {"COLUMNS": str(WIDTH), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
        subprocess.run([COMMAND, "demo"], cwd=folder, check=True, capture_output=True)
        done = subprocess.run([COMMAND, *WORDS], cwd=folder, check=True, capture_output=True, text=True, env=colors)
        draw_terminal("\n".join([f"$ dhkappa {' '.join(WORDS)}", *done.stdout.splitlines()[:LINES], "..."]))
        draw_report(Path(folder, "dhkappa-demo", "report.html"))


def draw_terminal(text: str) -> None:
    """Write terminal output as SVG, without embedded fonts."""
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(Text.from_ansi(text))
    svg = console.export_svg(title="dhkappa", unique_id="dhkappa")
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL).replace("Fira Code", "ui-monospace")
    lines = [line.rstrip() for line in re.sub("<!--.*?-->", "", svg, flags=re.DOTALL).splitlines()]
    (HERE / "terminal.svg").write_text("\n".join(line for line in lines if line) + "\n", encoding="utf-8")


def draw_report(page: Path) -> None:
    """Write a screenshot of the top of the report."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        view = chromium.new_page(viewport={"width": 1180, "height": 1000})
        view.goto(page.as_uri())
        view.screenshot(path=HERE / "report.png")
        chromium.close()


if __name__ == "__main__":
    main()
