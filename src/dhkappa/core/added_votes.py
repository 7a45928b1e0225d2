"""Votes of items with more votes, or with other suggested labels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dhkappa.core import Label
from dhkappa.core.grouping import Encoded
from dhkappa.core.items import ItemVotes


@dataclass(frozen=True, slots=True)
class AddedVote:
    """A vote to add: the position of the item, the category, and who voted."""

    place: int
    label: Label
    annotator: Any


def has_voted(item_votes: ItemVotes, votes: Sequence[AddedVote]) -> list[AddedVote]:
    """Return those of some votes whose annotator has already voted on the item."""
    code = {name: code for code, name in enumerate(item_votes.annotators or ())}
    row, who, _ = item_votes.sorted_votes
    asked = np.isin(who, [code[name] for name in {vote.annotator for vote in votes} if name in code])
    known = {*zip(row[asked].tolist(), who[asked].tolist(), strict=True)}
    return [vote for vote in votes if (vote.place, code.get(vote.annotator)) in known]


def with_votes(item_votes: ItemVotes, votes: Sequence[AddedVote]) -> ItemVotes:
    """Return votes by item, one row each, with more votes; new categories come last."""
    categories = tuple(dict.fromkeys((*item_votes.categories, *(vote.label for vote in votes))))
    code = {label: place for place, label in enumerate(categories)}
    row, who, codes = item_votes.sorted_votes
    row = np.concatenate([row.astype(np.int64), [vote.place for vote in votes]]).astype(np.int64)
    order = np.argsort(row, kind="stable")
    codes = np.concatenate([codes, [code[vote.label] for vote in votes]]).astype(np.int32)
    annotators, voter = item_votes.annotators, None
    if annotators is not None:
        annotators = tuple(dict.fromkeys((*annotators, *(vote.annotator for vote in votes))))
        index = {name: place for place, name in enumerate(annotators)}
        voter = np.concatenate([who.astype(np.int64), [index[vote.annotator] for vote in votes]]).astype(np.int64)[
            order
        ]
    fixed = item_votes.declared is not None or item_votes.matrix is not None
    return replace(
        item_votes,
        votes=Encoded(codes[order], 0, categories),
        length=np.bincount(row, minlength=len(item_votes.columns)).astype(np.int64),
        matrix=None,
        declared=categories if fixed else None,
        annotators=annotators,
        voter=voter,
    )


def suggested_labels(item_votes: ItemVotes, labeler: str) -> list[Label | None]:
    """Return the suggested label of each item."""
    known = (*item_votes.categories, None)
    return [known[code] for code in item_votes.columns.codes(labeler, item_votes.categories).tolist()]


def with_labels(item_votes: ItemVotes, labeler: str, labels: Mapping[int, Label]) -> ItemVotes:
    """Return votes by item with other labels of a labeler for some items, by position."""
    whole = suggested_labels(item_votes, labeler)
    for place, label in labels.items():
        whole[place] = label
    known = tuple(dict.fromkeys((None, *item_votes.categories, *labels.values())))
    digit = {label: place for place, label in enumerate(known)}
    column = Encoded(np.array([digit[label] for label in whole], np.int32), 0, known)
    columns = replace(item_votes.columns, labels={**item_votes.columns.labels, labeler: column})
    declared = item_votes.declared and tuple(dict.fromkeys((*item_votes.declared, *labels.values())))
    return replace(item_votes, columns=columns, declared=declared)


def labeled_by_all(item_votes: ItemVotes, labelers: Collection[str]) -> ItemVotes:
    """Return votes in which an item has labels of all of some labelers, or of none of them."""
    columns, categories = item_votes.columns, item_votes.categories
    codes = {name: columns.codes(name, categories) for name in labelers}
    bare = np.any([code < 0 for code in codes.values()], axis=0)
    known = (None, *categories)
    labels = {name: Encoded(np.where(bare, 0, code + 1), 0, known) for name, code in codes.items()}
    return replace(item_votes, columns=replace(columns, labels=columns.labels | labels), declared=categories)


def common_votes(
    read: Callable[[], ItemVotes | None], name: str, labelers: Iterable[str], not_ranked: Container[str]
) -> ItemVotes | None:
    """Return the votes with labels on the items that a comparison uses for a labeler: its own if it is not ranked."""
    item_votes = read()
    ranked = [one for one in labelers if one not in not_ranked]
    return item_votes and labeled_by_all(item_votes, [name] if name in not_ranked else ranked)
