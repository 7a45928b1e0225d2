"""Ids of two tables that do not match: in what they differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

_Step = tuple[str, Callable[[str], str]]
_MATCHED = 0.5  # share of ids that match then


def _strip_zeros(text: str) -> str:
    return re.sub("[0-9]+", lambda digits: digits[0].lstrip("0") or "0", text)


_STEPS: tuple[_Step, ...] = (
    ("case", str.casefold),
    ("spaces", lambda text: " ".join(text.split())),
    ("zero padding", _strip_zeros),
    ("a decimal '.0'", lambda text: re.sub(r"^([0-9]+)[.]0+$", r"\1", text)),
    ("a file extension", lambda text: re.sub(r"[.][A-Za-z][A-Za-z0-9]{0,4}$", "", text)),
    ("a folder", lambda text: re.split(r"[/\\]", text)[-1]),
)


def in_what_ids_differ(votes: Sequence[Any], items: Sequence[Any]) -> str:
    """Return in what ids of votes differ from ids of items, with an example; empty text if that cannot be seen."""
    ids, known = [str(one) for one in votes], [str(one) for one in items]
    if not ids or not known:
        return ""
    steps = [*_STEPS, ("a prefix", _without_prefix(ids, known))]
    for chosen in _some_of(steps):
        matches = {_after(text, chosen): text for text in reversed(known)}
        pairs = [(text, matches[key]) for text in ids if (key := _after(text, chosen)) in matches and key]
        if len(pairs) >= _MATCHED * len(ids):
            what = " and ".join(name for name, _ in chosen)
            return f"They differ in {what}: {pairs[0][0]!r} and {pairs[0][1]!r}."
    return ""


def _some_of(steps: Sequence[_Step]) -> Iterator[Sequence[_Step]]:
    """Yield single steps, then pairs."""
    yield from ([step] for step in steps)
    yield from combinations(steps, 2)


def _after(text: str, steps: Sequence[_Step]) -> str:
    for _, step in steps:
        text = step(text)
    return text


def _without_prefix(ids: Sequence[str], known: Sequence[str]) -> Callable[[str], str]:
    """Return a function that removes what all ids of a table start with, up to their numbers."""
    prefixes = [re.sub("[0-9]+$", "", _common_start(min(texts), max(texts))) for texts in (ids, known)]
    longest = sorted(filter(None, prefixes), key=len, reverse=True)

    def without(text: str) -> str:
        return next((text.removeprefix(prefix) for prefix in longest if text.startswith(prefix)), text)

    return without


def _common_start(one: str, other: str) -> str:
    """Return what two texts start with; of the first and the last in order, what all texts between start with."""
    pairs = enumerate(zip(one, other, strict=False))
    return one[: next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))]
