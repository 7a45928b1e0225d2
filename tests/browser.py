"""A real Chromium, driven by Playwright, started for the tests that ask for it and stopped after them."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WATCH = """
window.__refused = [];
document.addEventListener("securitypolicyviolation", (event) => window.__refused.push(event.violatedDirective));
"""


@dataclass
class Heard:
    """Requests, messages and dialogs of a page."""

    requests: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def dismiss(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()


# Not for the whole session: while Playwright runs, nothing else in the same thread can start an event loop.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Start a browser; tests that use it are marked ``xdist_group("browser")``."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        reason = "Chromium is not on PATH"
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(OPTIONS))
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, path: Path, *, width: int = 1280, **context: Any) -> Iterator[tuple[Any, Heard]]:
    """Open a file from disk and record what it does."""
    context_ = browser.new_context(viewport={"width": width, "height": 900}, **context)
    page, heard = context_.new_page(), Heard()
    page.add_init_script(WATCH)
    page.on("request", lambda request: heard.requests.append(request.url))
    page.on("console", lambda message: heard.words.append(message.text))
    page.on("pageerror", lambda error: heard.words.append(str(error)))
    page.on("dialog", heard.dismiss)
    page.goto(path.as_uri())
    yield page, heard
    context_.close()
