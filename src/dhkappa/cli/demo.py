"""The data of the demo: simulated support tickets, with votes of five annotators and labels of two labelers."""

from __future__ import annotations

import os
import random
import re
from contextlib import suppress
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING

import dhkappa
from dhkappa.errors import invalid, masked

if TYPE_CHECKING:
    from collections.abc import Sequence

FILES = ("annotations.csv", "items.csv", "report.html")
_ANNOTATORS = {"ada": 0.95, "ben": 0.9, "chloe": 0.9, "dev": 0.85, "eli": 0.45}  # with their accuracies
_CATEGORIES = {"billing": 4, "bug": 3, "how-to": 3, "outage": 1, "other": 2}  # with their prevalence
_LABELERS = {"suggested_rule": 0.65, "suggested_llm": 0.9}
_SUBJECTS = {  # by language and category
    "en": {
        "billing": ("Charged twice this month", "Refund has not arrived"),
        "bug": ("App closes when I save", "Export is empty"),
        "how-to": ("How do I add a user?", "Where do I change my password?"),
        "outage": ("Nothing loads since 9 am", "Login page is down"),
        "other": ("Thanks for the quick help", "Do you have an office in Rome?"),
    },
    "de": {
        "billing": ("Doppelt abgebucht", "Wo bleibt die Erstattung?"),
        "bug": ("Absturz beim Speichern", "Der Export ist leer"),
        "how-to": ("Wie lege ich einen Benutzer an?", "Wo setze ich mein Passwort neu?"),
        "outage": ("Seit 9 Uhr geht nichts mehr", "Anmeldung nicht erreichbar"),
        "other": ("Danke für die Hilfe", "Gibt es ein Büro in Rom?"),
    },
}
_GERMAN = {True: 0.25, False: 0.6}  # share of German tickets, by whether the label of the LLM is right
_FIRST_DAY, _DAYS = date(2026, 10, 12), 28


def make_folder(path: str) -> None:
    """Create the folder of a demo, unless the demo would overwrite files that are not its own."""
    if "://" in path or masked(path) != path:
        raise invalid("output", f"{path!r} is not a folder.", code="output-not-folder")
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        message = f"Cannot create folder {path!r}: {error.strerror or error}."
        raise invalid("output", message, code="output-not-folder") from None
    there = [name for name in FILES if os.path.exists(os.path.join(path, name))]
    starts = {
        FILES[0]: f"item,annotator,label\nT-0*[1-9][0-9]*,({'|'.join(_ANNOTATORS)}),",
        FILES[1]: f"item,{','.join(_LABELERS)}(,language,created,subject)?\nT-0*1,",
    }
    if there and not all(_starts(os.path.join(path, name), start) for name, start in starts.items()):
        message = f"Folder {path!r} contains a file {there[0]!r} that is not from a demo."
        raise invalid("output", message, code="output-exists", hint="Choose another folder with $output.")


def _starts(path: str, pattern: str) -> bool:
    """Tell whether a text file starts with a pattern."""
    with suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
        return re.match(pattern, file.read(200)) is not None
    return False


def write_demo(folder: str, items: int, seed: int) -> None:
    """Write annotations.csv, with one row per vote, and items.csv, with one row per ticket.

    The LLM is worse in German: the language of a ticket is drawn after its labels.
    """
    from dhkappa.paths import write_file

    prevalence, annotators = list(_CATEGORIES.values()), list(_ANNOTATORS.values())
    draw = partial(dhkappa.simulate, categories=_CATEGORIES, labelers=_LABELERS, missing=0.25, rng=seed)
    drawn = draw(items, prevalence=prevalence, annotators=annotators)
    names = [f"T-{place:0{len(str(items))}d}" for place in range(1, items + 1)]
    votes = [
        (name, annotator, label)
        for name, row in zip(names, drawn.votes.tolist(), strict=True)
        for annotator, label in zip(_ANNOTATORS, row, strict=True)
        if label is not None
    ]
    suggested = [labels.tolist() for labels in drawn.suggested.values()]
    about = _item_columns(drawn.truth.tolist(), suggested[-1], seed)
    tickets = zip(names, *suggested, *zip(*about, strict=True), strict=True)
    header = "item", *_LABELERS, "language", "created", "subject"
    tables = [("item", "annotator", "label"), *votes], [header, *tickets]
    for file, rows in zip(FILES[:2], tables, strict=True):
        write_file(os.path.join(folder, file), "".join(f"{','.join(row)}\n" for row in rows), "demo data")


def _item_columns(truth: Sequence[str], llm: Sequence[str], seed: int) -> list[tuple[str, str, str]]:
    """Return the language, the date and the subject of every ticket, in the order of dates."""
    drawn, found = random.Random(seed), []  # nosec B311 - simulated data
    for place, (category, label) in enumerate(zip(truth, llm, strict=True)):
        language = "de" if drawn.random() < _GERMAN[category == label] else "en"
        created = _FIRST_DAY + timedelta(_DAYS * place // len(truth))
        found.append((language, created.isoformat(), drawn.choice(_SUBJECTS[language][category])))
    return found
