"""Reviewed files: read what people filled in, and match it with the items and categories of the data."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dhkappa.core import Label
from dhkappa.core.added_votes import AddedVote, suggested_labels
from dhkappa.core.items import ItemVotes
from dhkappa.core.label_rules import RULES, LabelRules
from dhkappa.core.labels import quoted_names
from dhkappa.errors import DataError, counted, did_you_mean, invalid, shown
from dhkappa.inputs.backends import frame_of
from dhkappa.inputs.columns import list_columns
from dhkappa.inputs.excel import cell_text
from dhkappa.inputs.files import open_source
from dhkappa.table import Table, is_formula

_CORRECTED = ("item", "old", "new")  # columns of a file of corrected labels
_COLUMNS = ("item", "suggested", "new_label", "label", "annotator", "votes", "n_votes")
_LOOSE = LabelRules(RULES)  # spellings that are taken for one category
_INTEGER = re.compile("-?[0-9]{1,18}")
_MANY = 5  # items that an error names


@dataclass(frozen=True, slots=True)
class Reviews:
    """What a reviewed file says.

    Attributes
    ----------
    votes : the labels that were filled in, in the order of the data
    n_blank : number of rows with an item and without a new label
    respelled : categories by the different spelling in which they were filled in
    new_categories : labels that are no category of the data
    """

    votes: tuple[AddedVote, ...]
    n_blank: int
    respelled: dict[str, Label]
    new_categories: tuple[Label, ...]


def read_reviews(
    reviews: Any,
    item_votes: ItemVotes,
    labeler: str,
    *,
    annotator_name: Callable[[str], Any],
    reviewer: str,
    new_categories: bool = False,
    means_missing: Callable[[Label], bool] = lambda label: False,
) -> Reviews:
    """Read a reviewed file or table, and match its items and labels with the data.

    ``annotator_name`` turns the name of who voted into that of an annotator of the data.
    """
    columns, given = _columns_of(reviews)
    filled = "new_label" if "new_label" in columns else "label"
    if missing := [name for name in ("item", filled) if name not in columns]:
        name = "new_label" if missing[0] == "label" else missing[0]
        message = f"Column {name!r} not found in the reviewed file. {list_columns(given)}{did_you_mean(name, given)}"
        raise invalid("reviews", message, code="column-not-found", hint="Keep the columns of the file of reviews.")
    places = _places(item_votes.item_names())
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    rows = [row for row in rows if row["item"] is not None or _stripped(row[filled]) is not None]
    found = _match_items(rows, places)
    _check_suggested(rows, found, suggested_labels(item_votes, labeler))
    _check_votes(rows, found, item_votes)
    spelling = _Spelling(item_votes.categories, new_categories, means_missing)
    votes: dict[tuple[int, Any], AddedVote] = {}
    labels: dict[tuple[int, Any], set[Label]] = {}
    people: dict[str, Any] = {}
    n_blank = 0
    for row, place in zip(rows, found, strict=True):
        text = _stripped(row[filled])
        if text is None:
            n_blank += 1
            continue
        who = _stripped(row.get("annotator"))
        name = annotator_name(_unquoted(who or reviewer))
        name = people.setdefault(str(name).casefold(), name)  # of several spellings, the first
        vote = AddedVote(place, spelling.label(text, row["item"]), name)
        key = place, vote.annotator
        labels.setdefault(key, set()).add(vote.label)
        votes.setdefault(key, vote)
    spelling.check()
    names = item_votes.item_names()
    if twice := [names[place] for (place, _), own in labels.items() if len(own) > 1]:
        message = f"The reviewed file has different labels for one item: {_items(twice)}."
        raise invalid("reviews", message, code="review-conflict", hint="Keep one label per item.")
    if not votes:
        message = f"No label was filled in: column {filled!r} is empty in {counted(n_blank, 'row')}."
        raise invalid("reviews", message, code="review-empty", hint="Fill in labels and save the file.")
    ordered = sorted(votes.values(), key=lambda vote: vote.place)
    return Reviews(tuple(ordered), n_blank, spelling.respelled, tuple(spelling.new.values()))


def read_corrections(path: str) -> dict[str, str | None]:
    """Return the new label of each item whose label differs from the old one; nothing if a file has no such columns."""
    try:
        columns, _ = _columns_of(path, _CORRECTED)
    except DataError:  # some other file, which is overwritten
        return {}
    if len(columns) < len(_CORRECTED):
        return {}
    rows = zip(columns["item"], columns["old"], columns["new"], strict=True)
    return {item: new for item, old, new in rows if item is not None and new != old}


def _used(names: Sequence[str], wanted: Sequence[str]) -> dict[str, str]:
    """Return the columns that are used, by the names that we give them; case does not matter."""
    folded = {name.casefold().strip(): name for name in reversed(names)} | {name: name for name in names}
    return {name: folded[name] for name in wanted if name in folded}


def _columns_of(reviews: Any, wanted: Sequence[str] = _COLUMNS) -> tuple[dict[str, list[str | None]], Sequence[str]]:
    """Return the columns of a reviewed file or table that are used, as text, None if empty; and the names of all."""
    if isinstance(reviews, Table):
        known = _used(reviews.names, wanted)
        return {name: [*map(cell_text, reviews.column(own))] for name, own in known.items()}, reviews.names
    files = None
    if isinstance(reviews, (str, os.PathLike)):
        source = open_source(reviews, input_format="table")
        reviews, files = source.votes, source.files
    frame = frame_of(reviews)
    if frame is None:
        message = f"reviews must be the path of a reviewed file, or a table, got {shown([reviews])}."
        raise invalid("reviews", message, code="not-a-table")
    used = _used(frame.names, wanted)
    if not used:
        return {}, frame.names
    query = frame.pick({f"column_{place}": own for place, own in enumerate(used.values())})[0]
    if files is None:
        fetched = frame.fetch(query)
    else:
        with files.unchanged():
            fetched = frame.fetch(query)
    return {name: [*map(cell_text, fetched[f"column_{place}"])] for place, name in enumerate(used)}, frame.names


def _stripped(text: str | None) -> str | None:
    return (text or "").strip() or None


def _unquoted(text: str) -> str:
    """Return text without the apostrophe that keeps a spreadsheet from running it as a formula."""
    return text[1:] if text.startswith("'") and is_formula(text[1:]) else text


def _places(names: Sequence[Any]) -> dict[str, int]:
    """Return the position of each item by its name as text, in files and in Python; refuse names that are equal."""
    found: dict[str, int] = {}
    for place, name in enumerate(names):
        for text in filter(None, (cell_text(name), None if name is None else str(name))):
            if found.setdefault(text, place) != place:
                message = f"Several items have the name {shown([text])} in a file."
                raise invalid("data", message, code="names-not-distinct", hint="Give each item a name of its own.")
    return found


def _match_items(rows: Sequence[dict[str, Any]], places: dict[str, int]) -> list[int]:
    """Return the position of the item of each row; spaces at the ends and an apostrophe in front may differ."""

    def place_of(text: str | None) -> int | None:
        texts = [] if text is None else [text, text.strip(), text.removeprefix("'"), text.strip().removeprefix("'")]
        return next((places[one] for one in texts if one in places), None)

    found = [place_of(row["item"]) for row in rows]
    if unknown := [row["item"] for row, place in zip(rows, found, strict=True) if place is None]:
        message = f"The reviewed file has {counted(len(unknown), 'item')} that the data lack: {_items(unknown)}."
        hint = "Pass the data from which the file was made. A spreadsheet may also have changed ids, such as 007 to 7."
        raise invalid("reviews", message, code="review-item-unknown", hint=hint)
    return [place for place in found if place is not None]


def _check_suggested(rows: Sequence[dict[str, Any]], places: Sequence[int], labels: Sequence[Label | None]) -> None:
    """Refuse a file whose suggested labels are not those of the data."""
    stale = []
    for row, place in zip(rows, places, strict=True):
        label = labels[place]
        said, known = _stripped(row.get("suggested")), _stripped(cell_text(label))
        if "suggested" in row and said not in (known, f"'{known}"):
            stale.append(row["item"])
    if stale:
        message = f"The suggested labels of the reviewed file are not those of the data on {_items(stale)}."
        hint = "The labels have changed since, or the file is of another labeler. Make a new file of reviews."
        raise invalid("reviews", message, code="review-stale", hint=hint)


def _check_votes(rows: Sequence[dict[str, Any]], places: Sequence[int], item_votes: ItemVotes) -> None:
    """Refuse a file that lists votes which the data lack; the data may have more votes since."""
    row, _, code = item_votes.sorted_votes
    asked = np.isin(row, places)
    names = quoted_names(item_votes.categories)
    held: dict[int, Counter[str]] = {place: Counter() for place in places}
    for place, category in zip(row[asked].tolist(), code[asked].tolist(), strict=True):
        held[place][names[category]] += 1
    one = "|".join(map(re.escape, names))
    pair = re.compile(f"({one}): ([0-9]+)(?:, |$)")
    other = []
    for values, place in zip(rows, places, strict=True):
        text, number = (_stripped(values.get(name)) or "" for name in ("votes", "n_votes"))
        text = _unquoted(text)
        lacking = number.isdecimal() and int(number) > held[place].total()
        if re.search(": [0-9]+$", text):  # else a spreadsheet has changed it
            known = pair.findall(text)
            listed = ", ".join(f"{name}: {n}" for name, n in known)
            lacking = lacking or listed != text or any(int(n) > held[place][name] for name, n in known)
        other += [values["item"]] if lacking else []
    if other:
        message = f"The reviewed file lists votes on {_items(other)} that the data lack."
        hint = "Merge it with the data from which it was made, or remove its columns votes and n_votes to accept it."
        raise invalid("reviews", message, code="review-other-votes", hint=hint)


def _items(names: Iterable[Any]) -> str:
    """Name some items."""
    texts = ["(no item)" if name is None else shown([name]) for name in dict.fromkeys(names)]
    more = [f"and {len(texts) - _MANY:,} more"] if len(texts) > _MANY else []
    return ", ".join([*texts[:_MANY], *more])


class _Spelling:
    """The category of every label that is filled in."""

    def __init__(self, categories: Sequence[Label], allow_new: bool, means_missing: Callable[[Label], bool]) -> None:
        self._exact = {cell_text(category): category for category in categories}
        self._loose: dict[Any, list[Label]] = {}
        for category in categories:
            self._loose.setdefault(self._key(cell_text(category) or ""), []).append(category)
        self._integers = bool(categories) and all(type(category) is int for category in categories)
        self._allow_new, self._means_missing = allow_new, means_missing
        self.respelled: dict[str, Label] = {}
        self.new: dict[Any, Label] = {}  # by key
        self._unknown: dict[Label, list[Any]] = {}  # items by label

    @staticmethod
    def _key(text: str) -> Any:
        return _LOOSE.final_key(text)

    def label(self, text: str, item: Any) -> Label:
        """Return the category of a text that was filled in for an item."""
        for one in (text, _unquoted(text)):
            if one in self._exact:
                return self._exact[one]
        near = self._loose.get(self._key(text)) or self._loose.get(self._key(_unquoted(text)), [])
        if len(near) == 1:
            self.respelled[text] = near[0]
            return near[0]
        text = _unquoted(text)
        label: Label = int(text) if self._integers and _INTEGER.fullmatch(text) else text
        if label in self._exact.values():  # 007
            self.respelled[text] = label
            return label
        if near or not self._allow_new or self._means_missing(label):
            self._unknown.setdefault(label, []).append(item)
        same = self.new.setdefault(self._key(text), label)
        if same != label:
            self.respelled[text] = same
        return same

    def check(self) -> None:
        """Refuse labels that are no category, unless new ones are allowed."""
        for label, items in self._unknown.items():
            text, known = str(label), [one for one in self._exact if one is not None]
            near = [cell_text(one) for one in self._loose.get(self._key(text), [])]
            message = f"Label {shown([text])} of {_items(items)} is not a category of the data."
            if near:
                message = f"Label {shown([text])} of {_items(items)} may be {shown(near)}."
                raise invalid("reviews", message, code="review-label-unclear", hint="Write the label as in the data.")
            if self._means_missing(label):
                message = f"Label {shown([text])} of {_items(items)} means missing in the data."
                raise invalid("reviews", message, code="review-label-missing", hint="Leave the cell empty instead.")
            message += did_you_mean(text, known)
            hint = "Correct it, or pass $new_categories if it is a new one."
            raise invalid("reviews", message, code="review-label-unknown", hint=hint)


def refuse_repeated(votes: Sequence[AddedVote], names: Sequence[Any]) -> DataError:
    """Return the error for votes that are already in the data."""
    who, items = shown(dict.fromkeys(vote.annotator for vote in votes)), _items(names[vote.place] for vote in votes)
    message = f"{who} has already voted on {counted(len(votes), 'item')} of the reviewed file: {items}."
    hint = "The file was merged before, $reviewer names another annotator, or this one had voted there. "
    hint += "Nothing was written."
    return invalid("reviews", message, code="review-merged", hint=hint)
