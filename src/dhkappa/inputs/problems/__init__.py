"""Problems of data: the codes, what the rules look at, and how spellings are compared.

A rule looks at counted patterns, at single votes if they are known, or at a few rows of the table, and yields problems.
The rules are in ``labels`` (spelling), ``votes`` (patterns), ``copies`` (annotators that are none), ``rows`` and
``items`` (ids and columns), and ``annotators``. ``sampled_votes`` has the statistics of single votes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Categories, Integers, Label
from dhkappa.core.agreement import pair_agreement
from dhkappa.core.items import Counts, ItemVotes
from dhkappa.core.label_rules import RULES, LabelRules
from dhkappa.core.labels import plain_unicode
from dhkappa.errors import DataError, Problem, counted, did_you_mean, invalid, shown

if TYPE_CHECKING:
    from dhkappa.inputs.backends import Frame

CODES = (
    *("annotator-differs", "annotator-variants", "annotators-equal", "annotators-unused", "category-variants"),
    *(
        "duplicates-removed",
        "few-common-items",
        "footer-row",
        "header-repeated",
        "ids-are-row-numbers",
        "ids-not-joined",
    ),
    *("labeler-abstains", "labeler-equals-annotator", "labelers-unused", "labels-from-votes", "labels-not-in-votes"),
    *(
        "looks-clustered",
        "looks-like-counts",
        "looks-like-percent",
        "looks-missing",
        "looks-multilabel",
        "looks-ordinal",
    ),
    *("mixed-time-zones", "no-items", "not-annotators", "one-vote", "repeated-rows", "too-few-items"),
    *("votes-follow-agreement", "votes-not-suggested", "weights-look-like-counts"),
)
"""The codes of all problems that ``allow`` can accept."""
FIRST_ROWS = 2_000  # of a table that are enough to see what a column holds
SEVERITIES = ("error", "warning", "info")  # most severe first

Rule = Callable[["Evidence"], Iterator[Problem]]


@dataclass(frozen=True, slots=True)
class CategoryShares:
    """The share of votes that some categories hold, and of the labels of each labeler that suggests them."""

    votes: float
    labels: dict[str, float]

    @property
    def most(self) -> float:
        """The largest share."""
        return max([self.votes, *self.labels.values()])

    def __str__(self) -> str:
        texts = [f"{percent(self.votes)} of the votes"] if self.votes else []
        texts += [f"{percent(share)} of the labels of {name}" for name, share in [*self.labels.items()][:3]]
        more = [counted(len(self.labels) - 3, "more labeler")] if len(self.labels) > 3 else []
        *first, last = [*texts, *more]
        return f"{', '.join(first)} and {last}" if first else last


@dataclass(frozen=True)
class Evidence:
    """What the rules look at: counted patterns and, as far as known, single votes and the table."""

    counts: Counts
    item_votes: ItemVotes | None = None
    table: Any = None  # a VoteTable, which needs an engine; None for arrays
    ordered: bool = False  # the order of categories, or agreement weights, were declared
    numbers: bool = False  # the votes were given as numbers of votes
    labelers: tuple[str, ...] = ()  # those to check
    listed: bool = False  # the user listed the annotators one by one
    listed_labelers: bool = False  # the user named the columns of suggested labels
    copies: tuple[str, ...] = ()  # labelers that are found to equal an annotator

    @property
    def categories(self) -> Categories:
        """The m categories."""
        return self.counts.categories

    @cached_property
    def totals(self) -> npt.NDArray[np.int64]:
        """(K,) number of votes on an item of each pattern."""
        return self.counts.patterns.vote_totals()

    @cached_property
    def row(self) -> npt.NDArray[np.int64]:
        """(T,) pattern of each entry of its votes."""
        patterns = self.counts.patterns
        return np.repeat(np.arange(len(patterns)), np.diff(patterns.start))

    @cached_property
    def agreement(self) -> npt.NDArray[np.float64]:
        """(K,) share of pairs of votes that agree, NaN with fewer than two votes."""
        return pair_agreement(self.counts.patterns)

    @cached_property
    def votes(self) -> npt.NDArray[np.float64]:
        """(m,) number of votes for each category."""
        patterns = self.counts.patterns
        number = patterns.items[self.row] * patterns.votes.astype(np.float64)
        return np.bincount(patterns.code, weights=number, minlength=len(self.categories)).astype(np.float64)

    @cached_property
    def voted(self) -> list[Label]:
        """The categories with votes, the most frequent first."""
        order = np.argsort(-self.votes, kind="stable").tolist()
        return [self.categories[code] for code in order if self.votes[code]]

    @cached_property
    def _codes(self) -> dict[str, Integers]:
        columns, row = self.counts.columns, self.counts.patterns.suggested
        return {name: columns.codes(name, self.categories)[row] for name in self.labelers}

    def codes(self, labeler: str) -> Integers:
        """Return (K,) the suggested label of each pattern, -1 if missing."""
        return self._codes[labeler]

    def items(self, rows: npt.NDArray[np.bool_]) -> int:
        """Return the number of items with some patterns."""
        return int(self.counts.patterns.items[rows].sum())

    def labels(self, labeler: str) -> npt.NDArray[np.float64]:
        """Return (m,) the number of items with each suggested label."""
        codes, items = self.codes(labeler), self.counts.patterns.items
        used = codes >= 0
        return np.bincount(codes[used], weights=items[used], minlength=len(self.categories)).astype(np.float64)

    def category_shares(self, codes: Sequence[int]) -> CategoryShares:
        """Return what some categories hold."""
        chosen = list(codes)
        labels = {name: self.labels(name) for name in self.labelers}
        parts = {name: float(items[chosen].sum() / max(items.sum(), 1)) for name, items in labels.items()}
        votes = float(self.votes[chosen].sum() / max(self.votes.sum(), 1))
        return CategoryShares(votes, {name: part for name, part in parts.items() if part})

    def concerned(self, shares: CategoryShares) -> tuple[str, ...]:
        """Return the labelers whose verdict depends on some categories; empty for all, as if votes have them."""
        return () if shares.votes or len(shares.labels) == len(self.labelers) else tuple(shares.labels)


def accept(problems: Iterable[Problem], allow: Iterable[str]) -> tuple[Problem, ...]:
    """Mark the problems that the user accepts, and sort them: most severe first, then by code.

    What two rules find in the same columns or labels is listed once.
    """
    allowed = {allow} if isinstance(allow, str) else set(allow)
    for code in allowed:
        if code not in CODES:
            message = f"Unknown problem code {shown([code])}.{did_you_mean(code, CODES)}"
            raise invalid("allow", message, code="unknown-problem", hint=f"Codes: {', '.join(CODES)}.")
    once = {(one.code, one.severity, one.labelers, one.examples or one.message): one for one in problems}
    found = [replace(problem, accepted=problem.code in allowed) for problem in once.values()]
    return tuple(sorted(found, key=lambda one: (SEVERITIES.index(one.severity), one.code, one.labelers)))


def percent(share: float) -> str:
    """Write a share: ``12%``, ``0.4%``, ``less than 0.1%``."""
    if 0 < share < 0.001:
        return "less than 0.1%"
    return f"{share:.1%}" if 0 < share < 0.01 or 0.99 < share < 1 else f"{share:.0%}"


_NUMBER = re.compile(r"([+-]?[0-9]+)\.0*")
_JOINED = re.compile(r"(?<=[^\W_])[\s_-]+(?=[^\W_])")  # within a text: "-1" and "A-" keep their sign
_AROUND = " \"'`\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"
_STEPS = ("unicode", "spaces", "numbers", "case")  # case folding also changes what NFKC changes, so it is tried last


def spelling(label: Any) -> Any:
    """Return a label or name as text without case, Unicode form, spaces, a decimal ".0", and marks around it.

    Underscores and hyphens between letters are spaces.
    """
    if isinstance(label, bool) or not isinstance(label, (str, int)):
        return label
    text = " ".join(plain_unicode(str(label)).casefold().split())
    text = text.strip(_AROUND).rstrip(".:;, ").strip(_AROUND) or text
    number = _NUMBER.fullmatch(text)
    return number[1] if number else _JOINED.sub(" ", text)


def differences(labels: Sequence[Label]) -> list[str] | None:
    """Return the fewest values of ``normalize`` that make some labels one; None if these are not enough."""
    for n in range(1, len(_STEPS) + 1):
        for steps in combinations(_STEPS, n):
            rules = LabelRules(tuple(rule for rule in RULES if rule in steps))
            if len({rules.final_key(label) for label in labels}) == 1:
                return list(rules.normalize)
    return None


def unused_columns(table: Any, frame: Frame) -> list[str]:
    """Return the columns without a role."""
    roles = table.roles
    used: set[str | None] = {*roles.annotators, *roles.counts, *roles.item_columns().values()}
    used |= {roles.item, roles.label, roles.annotator, roles.count}
    return [name for name in frame.names if name not in used]


def first_values(table: Any, frame: Frame, *names: str) -> list[list[Any]]:
    """Return the values of some columns in the first rows, in one query; none if they cannot be labels."""
    from dhkappa.inputs.backends import kind_in

    def can_be_labels(name: str) -> bool:
        try:
            return kind_in(frame.pick({"value": name})[0], "value") in ("text", "integer", "boolean")
        except DataError:
            return False

    roles = {name: f"value{place}" for place, name in enumerate(names) if can_be_labels(name)}
    picked = frame.pick({role: name for name, role in roles.items()})[0].head(FIRST_ROWS) if roles else None
    found = {} if picked is None else table.ask(picked)
    return [[value for value in found.get(roles.get(name), ()) if value is not None and value != ""] for name in names]
