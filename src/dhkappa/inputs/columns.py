"""Layouts: which column of a table plays which part, from the words a person gives or from what columns are called."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from dhkappa.core.item_columns import check_labelers
from dhkappa.errors import DataError, did_you_mean, shown

_ASK = (
    "say what the columns are: annotators=[...] where each annotator has a column, item= and label= where a row is a "
    "vote, with count= where it is several votes, or counts=[...] where each category has a column of counts"
)
_PREFIX = "suggested_"
_KNOWN = ("item", "label", "annotator", "count")
OWN = "dhkappa: "
"""How columns begin that are ours."""


class Words(TypedDict, total=False):
    """What a person may say of a table's layout.

    Attributes
    ----------
    annotators : columns of votes, one an annotator; names, or patterns such as ``"ann_*"``
    item : column that names the item
    label : column with the label of a vote
    annotator : column that names who voted
    count : column with the number of votes for the label
    items : second table, or a path to it, with a row for each item: suggested labels, weights, strata
    duplicates : what to do where an annotator has voted twice on an item: ``"error"``, ``"first"`` or ``"last"``
    unlisted : what to do with votes on items that ``items`` lacks: ``"error"``, or ``"unlabeled"``
    """

    annotators: str | Sequence[str] | None
    item: str | None
    label: str | None
    annotator: str | None
    count: str | None
    items: Any
    duplicates: str
    unlisted: str


_OTHERS = ["suggested", "counts", "categories", "missing", "ordinal", "weights", "strata", "pool", "panel", "level"]
_CHOICES = {"duplicates": ("error", "first", "last"), "unlisted": ("error", "unlabeled")}


@dataclass(frozen=True, slots=True)
class Layout:
    """The parts that columns play. A wide layout has ``votes``, a counted wide one ``counts``, a long one ``label``."""

    suggested: dict[str, str]
    votes: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    item: str | None = None
    label: str | None = None
    annotator: str | None = None
    count: str | None = None
    weights: str | None = None
    strata: str | None = None
    duplicates: str = "error"
    unlisted: str = "error"

    def beside(self) -> dict[str, str]:
        """Return the columns that stand beside votes, by part."""
        found = {f"suggested_{place}": column for place, column in enumerate(self.suggested.values())}
        found |= {"weights": self.weights} if self.weights is not None else {}
        return found | ({"strata": self.strata} if self.strata is not None else {})


def check_words(words: Mapping[str, Any]) -> None:
    """Refuse words that are not known, and choices that are none."""
    known = list(Words.__annotations__)
    for word, value in words.items():
        if word not in known:
            raise TypeError(f"got an unexpected keyword argument {word!r}.{did_you_mean(word, known + _OTHERS)}")
        if word in _CHOICES and not (isinstance(value, str) and value in _CHOICES[word]):
            raise DataError(f"{word} must be {' or '.join(map(repr, _CHOICES[word]))}: got {shown([value])}.")


def lay_out(
    columns: Sequence[str],
    words: Words,
    *,
    suggested: Any,
    counts: Any,
    weights: Any,
    strata: Any,
    beside: Sequence[str] | None = None,
) -> Layout:
    """Find the part of each column.

    Parameters
    ----------
    columns
        Of the table with votes.
    words
        What was said of it.
    suggested, counts, weights, strata
        Names of columns; suggested also a list of names, or a mapping from labelers to names. None where not given.
    beside
        Columns of the table of items, where there is one.
    """
    check_words(words)
    votes, item, label = words.get("annotators"), words.get("item"), words.get("label")
    if votes is None and label is None and counts is None:
        votes, item, label = _understood(columns, words, suggested)
    annotator, count = _who_and_how_many(columns, words, label)
    _refuse_mixture(votes, counts, item, label, annotator, count, words)
    if annotator is None and words.get("duplicates", "error") != "error":
        raise DataError("duplicates says which vote of an annotator to take: name who voted, as annotator=.")
    if beside is None and words.get("unlisted", "error") != "error":
        raise DataError("unlisted is about items that the table items= lacks, which is absent: leave it out.")
    place, where = (columns, "data") if beside is None else (beside, "items")
    named = _labelers(suggested, place)
    hint = " If it stands in a table of items, pass that as items=." if label is not None and beside is None else ""
    own = {"item": item, "label": label, "annotator": annotator, "count": count}
    for part, column in own.items():
        _find(column, columns, part, "data")
    parts = [("suggested", column) for column in named.values()] + [("weights", weights), ("strata", strata)]
    for part, column in parts:
        _find(column, place, part, where, hint)
    if beside is not None:
        _find(item, beside, "item", "items", " Both tables must call it the same.")
    taken = {column for column in [*own.values(), *(column for _, column in parts)] if isinstance(column, str)}
    return Layout(
        suggested=named,
        votes=_several(votes, columns, "annotators", taken),
        counts=_several(counts, columns, "counts", taken),
        item=item,
        label=label,
        annotator=annotator,
        count=count,
        weights=weights,
        strata=strata,
        duplicates=words.get("duplicates", "error"),
        unlisted=words.get("unlisted", "error"),
    )


def _understood(
    columns: Sequence[str], words: Words, suggested: Any
) -> tuple[list[str] | None, str | None, str | None]:
    """Understand columns by what they are called, where neither annotators, label nor counts are named."""
    labels = _named(suggested)
    own = [name for name in _annotators(columns) if name not in labels]
    item = words.get("item") or ("item" if "item" in columns else None)
    long = item is not None and "label" in columns
    if long and not own:
        return None, item, "label"
    if own and not long:
        return own, item, None
    if item is not None and not own:
        raise DataError(
            f"label is absent: name the column with the label of each vote, as label=, or {_ASK}. {_columns(columns)}"
            f"{almost(columns)}"
        )
    votes = [name for name in columns if name not in (*labels, *suggested_columns(columns), "item", "id")][:3]
    call = f"dh_kappa(data, suggested={(labels or ['llm'])[0]!r}, annotators=[{shown(votes)}])"
    raise DataError(f"{_ASK}. {_columns(columns)}{almost(columns)} For example: {call}.")


def understood(columns: Sequence[Any]) -> bool:
    """Tell whether columns are called so that nothing has to be said of them."""
    names = [name for name in columns if isinstance(name, str)]
    return bool(_annotators(names)) != ({"item", "label"} <= {*names})


def almost(columns: Sequence[str]) -> str:
    """Say which name would be understood but for blanks around it, or case; nothing where there is none."""
    for name in columns:
        tidy = name.strip().casefold()
        if tidy != name and (tidy in _KNOWN or suggested_columns([tidy]) or _annotators([tidy])):
            return f" Blanks and case count: {name!r} is not {tidy!r}."
    return ""


def _annotators(columns: Iterable[str]) -> list[str]:
    return [name for name in columns if name.startswith(("ann_", "annotator_"))]


def _named(suggested: Any) -> list[str]:
    """Return the names among what was passed as suggested."""
    if isinstance(suggested, str):
        return [suggested]
    given = (
        suggested.values()
        if isinstance(suggested, Mapping)
        else suggested
        if isinstance(suggested, (list, tuple))
        else ()
    )
    return [name for name in given if isinstance(name, str)]


def _who_and_how_many(columns: Sequence[str], words: Words, label: Any) -> tuple[str | None, str | None]:
    """Return the columns that say who voted and how many votes a row is: as named, or as called; None names none."""
    found: dict[str, str | None] = {}
    for word in ("annotator", "count"):
        called = word if label is not None and word in columns else None
        named: Any = words.get(word, called)
        found[word] = named
    if found["annotator"] is not None and found["count"] is not None:
        raise DataError(
            f"annotator ({shown([found['annotator']])}) and count ({shown([found['count']])}) exclude each other: "
            "a row is one annotator's vote, or several votes. Pass annotator=None or count=None."
        )
    return found["annotator"], found["count"]


def _refuse_mixture(
    votes: Any, counts: Any, item: Any, label: Any, annotator: Any, count: Any, words: Mapping[str, Any]
) -> None:
    """Refuse words of two layouts at once."""
    kinds = {"annotators": votes, "label": label, "counts": counts}
    given = [word for word, value in kinds.items() if value is not None]
    if len(given) > 1:
        raise DataError(f"{' and '.join(given)} are words of different layouts: {_ASK}.")
    if label is not None and item is None:
        raise DataError("label is given without item: name the column that says which item a vote is on, as item=.")
    if label is None:
        extra = {"annotator": annotator, "count": count, "items": words.get("items")}
        extra = {word: value for word, value in extra.items() if value is not None}
        if extra:
            raise DataError(f"{' and '.join(extra)} go with a vote a row: pass item= and label= too, or leave out.")


def _labelers(suggested: Any, columns: Sequence[str]) -> dict[str, str]:
    """Return the column of each labeler; one that was named alone has no name of its own."""
    if suggested is None:
        return {}
    if isinstance(suggested, str):
        return {"": _column(suggested, columns)}
    if isinstance(suggested, Mapping):
        named = dict(suggested)
        check_labelers(named)
    else:
        names = _listed(suggested)
        texts = [name for name in names if isinstance(name, str)]
        known = [name for name in texts if _column(name, columns) in columns]
        if len(known) < len(names) and len(names) > len(columns):
            raise DataError(
                "suggested must name columns here, as the data are a table by names: put the labels into a column, of "
                f"the data or of items. {_columns(columns)}"
            )
        if len(set(texts)) < len(texts):
            raise DataError(f"suggested names a labeler twice: {shown(names)}.")
        named = {name: _column(name, columns) for name in texts} if len(texts) == len(names) else {}
    if not named or not all(isinstance(text, str) for pair in named.items() for text in pair):
        raise DataError(f"suggested must name columns of the data: got {shown([suggested])}. {_columns(columns)}")
    return named


def suggested_columns(columns: Iterable[str]) -> list[str]:
    """Return the columns that are called like suggested labels."""
    return [name for name in columns if name == "suggested" or name.startswith(_PREFIX)]


def labelers_called(columns: Iterable[str]) -> dict[str, str]:
    """Return the column of each labeler: ``suggested_llm`` is of ``llm``, unless another is called so."""
    names = list(columns)
    short = [name.removeprefix(_PREFIX) or name for name in names]
    return dict(zip(short if len({*short}) == len(names) else names, names, strict=True))


def _column(labeler: Any, columns: Sequence[str]) -> Any:
    """Return the column of a labeler that was named: one called so, or ``suggested_`` and so."""
    longer = f"{_PREFIX}{labeler}"
    return longer if labeler not in columns and longer in columns else labeler


def _several(given: Any, columns: Sequence[str], part: str, taken: set[str]) -> tuple[str, ...]:
    """Return the columns that are listed, or that match patterns and play no other part."""
    if given is None:
        return ()
    if isinstance(given, str):
        found = [name for name in columns if fnmatch.fnmatchcase(name, given) and name not in taken]
        found = [given] if given in columns else found
        if not found:
            raise DataError(f"{part} {given!r} matches no column of the data. {_columns(columns)}")
        return tuple(found)
    names = _listed(given)
    if any(_is_pattern(name, columns) for name in names):
        each = [_several(name if _is_pattern(name, columns) else [name], columns, part, taken) for name in names]
        matched = {name for some in each for name in some}
        return tuple(name for name in columns if name in matched)
    if not names:
        raise DataError(f"{part} is empty: name a column at least. {_columns(columns)}")
    for name in names:
        _find(name, columns, part, "data")
        if name in taken:
            raise DataError(f"column {name!r} is named in {part}, but plays another part too.")
    if len(set(names)) < len(names):
        raise DataError(f"{part} names a column twice: {shown(names, 10)}.")
    return tuple(names)


def _is_pattern(name: Any, columns: Sequence[str]) -> bool:
    """Tell a pattern from the name of a column, which may have the same signs."""
    return isinstance(name, str) and name not in columns and any(sign in name for sign in "*?[")


def _listed(given: Any) -> list[Any]:
    """Return what was given as a list, or alone."""
    try:
        return list(given)
    except TypeError:
        return [given]


def _find(column: Any, columns: Sequence[str], part: str, where: str, hint: str = "") -> None:
    """Refuse a column that is not there, or that differs from another only by case."""
    if column is None:
        return
    if not isinstance(column, str):
        raise DataError(f"{part} must be the name of a column, beside a table: got {shown([column])}.")
    if column not in columns:
        raise DataError(
            f"{part} column {column!r} is not in {'the data' if where == 'data' else 'items'}. {_columns(columns)}"
            + (did_you_mean(column, columns) or hint)
        )
    twins = [name for name in columns if name.casefold() == column.casefold() and name != column]
    if twins:
        raise DataError(
            f"columns {shown([column, *twins])} differ only by case, which some engines cannot tell apart: rename one."
        )


def listed(columns: Sequence[str]) -> str:
    """Write the names of columns, as far as there is room."""
    given = [name for name in columns if not name.startswith(OWN)]
    names = [name if _is_plain(name) else shown([name]) for name in given[:20]]
    return ", ".join(names) + (f", and {len(given) - 20:,} more" if len(given) > 20 else "")


def _is_plain(name: str) -> bool:
    """Tell whether a name can be read without quotes."""
    return name.isprintable() and len(name) <= 60 and name == name.strip()


def _columns(columns: Sequence[str]) -> str:
    return f"Columns: {listed(columns)}."
