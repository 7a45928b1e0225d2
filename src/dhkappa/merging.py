"""Merge reviewed files with the data: votes with those of reviewers, corrected labels, audits before and after."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

from dhkappa.annotator_audit import SingleVoteAudit, audit_single_votes
from dhkappa.auditing import Audit
from dhkappa.core import Label
from dhkappa.core.added_votes import AddedVote, has_voted, suggested_labels, with_labels, with_votes
from dhkappa.core.items import Counts, ItemVotes, count
from dhkappa.errors import Problem, counted, invalid, one_labeler, shown
from dhkappa.inputs.check import find_problems
from dhkappa.inputs.columns import DataKeywords, check_options_absent
from dhkappa.inputs.conditions import Condition
from dhkappa.inputs.dataset import Dataset
from dhkappa.inputs.excel import cell_text
from dhkappa.inputs.problems import accept
from dhkappa.inputs.problems.copies import CORRECTED
from dhkappa.inputs.reviews import Reviews, read_corrections, read_reviews, refuse_repeated
from dhkappa.inputs.tally import Tally
from dhkappa.inputs.updated_votes import annotator_name, check_annotators, is_listed, updated_votes
from dhkappa.run_audit import audit_of
from dhkappa.stats.annotator_votes import require_items
from dhkappa.stats.sample import Pool
from dhkappa.table import Display, Table, plain

_ACTIONS = ("vote", "decision")
_NO_SAMPLE = "The reviewed items are no random sample, so the kappas after the review are no estimates for all items."
_FROM_VOTES = (
    "Corrected labels are made from votes that they then agree with, so they are not judged. To judge the corrected "
    "labels, have a new random sample of items voted on."
)
_NOT_JUDGED = "not judged: made from votes"
_CORRECTED = "The labels were corrected by reviews of these votes."
_NEW_SAMPLE = "To judge the corrected labels, have a new random sample of items voted on."


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MergedReviews(Display):
    """The result of ``dhkappa.merge_reviews``.

    Attributes
    ----------
    action : ``"vote"`` or ``"decision"``
    labeler : the labeler whose labels were reviewed
    votes : the votes of the data with those of reviewers, in the format of the data; None for decisions
    labels : one row per item: ``item``, ``old`` and ``new`` label, and ``source``, see ``merge_reviews``
    added : the votes or decisions: ``item``, ``annotator``, ``label``
    changed, confirmed, undecided : the reviewed items whose label changed, was confirmed, or is kept as votes are tied
    n_blank : number of rows without a new label
    respelled : categories by the different spelling that a reviewer used
    new_categories : labels that were no category of the data
    to_list : new columns of votes, which must be named as the other columns of annotators are
    before : the audit of the data
    after : the audit of the same labels with the votes of reviewers
    corrected : the audit of the corrected labels with the votes of reviewers; its verdict is never a grade
    """

    action: str
    labeler: str
    votes: Table | None
    labels: Table
    added: Table
    changed: tuple[Any, ...]
    confirmed: tuple[Any, ...]
    undecided: tuple[Any, ...]
    n_blank: int
    respelled: Mapping[str, Label]
    new_categories: tuple[Label, ...]
    to_list: tuple[str, ...]
    before: Audit | SingleVoteAudit
    after: Audit | SingleVoteAudit
    corrected: Audit | SingleVoteAudit

    @property
    def n_reviewed(self) -> int:
        """The number of reviewed items."""
        return len(self.changed) + len(self.confirmed) + len(self.undecided)

    @property
    def n_reviewers_confirmed(self) -> int:
        """The number of items on which every label that was filled in is the old label."""
        given = self._given()
        return sum(given.get(row["item"]) == {row["old"]} for row in self.labels)

    @property
    def n_reviewers_changed(self) -> int:
        """The number of items on which some label that was filled in is not the old label."""
        return self.n_reviewed - self.n_reviewers_confirmed

    @property
    def n_outvoted(self) -> int:
        """The number of items whose new label is that of the majority, and of no reviewer."""
        return len(self._outvoted())

    @property
    def n_changed_against(self) -> int:
        """The number of changed items whose new label is that of no reviewer."""
        return len(self._outvoted() & {*self.changed})

    def _given(self) -> dict[Any, set[Label]]:
        """Return the labels that were filled in, by item."""
        found: dict[Any, set[Label]] = {}
        for row in self.added:
            found.setdefault(row["item"], set()).add(row["label"])
        return found

    def _outvoted(self) -> set[Any]:
        """Return the items whose new label is that of the majority, and of no reviewer."""
        given = self._given()
        rows = self.labels.where(lambda row: row["source"] == "majority")
        return {row["item"] for row in rows if row["new"] not in given[row["item"]]}

    def table(self) -> Table:
        """Return the kappa of the labels before the review, with the votes of reviewers, and after correction."""
        audits = {"suggested": ("before", self.before), "suggested ": ("with reviews", self.after)}
        audits["corrected"] = "with reviews", self.corrected
        if self.votes is None:
            audits.pop("suggested ")
            audits["corrected"] = "before", self.corrected
        rows = [
            {"labels": labels.strip(), "votes": votes, **_row(audit, self.labeler)}
            for labels, (votes, audit) in audits.items()
        ]
        if isinstance(self.corrected, Audit):
            rows[-1]["verdict"] = _NOT_JUDGED
        return Table({name: [row[name] for row in rows] for name in rows[0]}, title=f"Audits of {self.labeler}")

    @property
    def summary(self) -> str:
        """What was reviewed, in sentences."""
        confirmed, changed = counted(self.n_reviewers_confirmed, "label"), f"{self.n_reviewers_changed:,}"
        said = f"{counted(self.n_reviewed, 'item')} reviewed: reviewers confirmed {confirmed} and changed {changed}."
        if self.action == "vote":
            n, kept = self.n_changed_against, self.n_outvoted - self.n_changed_against
            said += f" After their votes, the most frequent vote replaced {counted(len(self.changed), 'label')}"
            said += f", {n:,} of them against the reviewers" if n else ""
            said += f", and kept {counted(kept, 'label')} that the reviewers changed" if kept else ""
            tied = counted(len(self.undecided), "label")
            said += f". {tied} kept, as the votes are tied" if self.undecided else ""
            said += "."
            if self.n_outvoted or self.undecided:
                said += " To let the reviewers decide, merge their labels as decisions, not as votes."
        said += f" {counted(self.n_blank, 'row')} without a new label." if self.n_blank else ""
        if self.votes is not None:
            names = dict.fromkeys(self.added.column("annotator"))
            said += f" {counted(len(self.added), 'vote')} added, of {shown(names)}."
        return said

    @property
    def remarks(self) -> list[str]:
        """What to know about the merged labels, and the caution about the audits."""
        found = [f"{shown([text])} was read as {shown([label])}." for text, label in self.respelled.items()]
        if self.new_categories:
            found.append(f"New categories: {shown(self.new_categories, 10)}.")
        if self.to_list:
            found.append(f"Name the new columns of votes, too: add {shown(self.to_list, 10)} to annotators.")
        return [*found, self.caution]

    @property
    def caution(self) -> str:
        """What the audits after the review do not show."""
        return f"{_NO_SAMPLE} {_FROM_VOTES}"

    def _display(self) -> Iterator[str | Table | Sequence[str]]:
        yield self.summary
        yield self.table()
        yield self.remarks

    def check_kept(self, path: str) -> None:
        """Refuse to overwrite a file of labels that an earlier review corrected and the new labels would lose."""
        if not os.path.exists(path):
            return
        new = {cell_text(row["item"]): (row["new"], row["source"]) for row in self.labels}
        lost = [
            item
            for item, label in read_corrections(path).items()
            if item not in new or (new[item][1] == "unchanged" and cell_text(new[item][0]) != label)
        ]
        if lost:
            message = f"{shown([path])} holds {counted(len(lost), 'corrected label')} of an earlier review"
            message += f" that would be lost: {shown(lost)}."
            hint = "Correct these further: pass that file with $items and new with $suggested. Write to another file."
            raise invalid("labels", message, code="corrections-lost", hint=hint)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: ``labels`` of the reviewed items only; NaN is None."""
        reviewed = {*self.changed, *self.confirmed, *self.undecided}
        return {
            "action": self.action,
            "labeler": self.labeler,
            "n_reviewed": self.n_reviewed,
            "n_reviewers_confirmed": self.n_reviewers_confirmed,
            "n_reviewers_changed": self.n_reviewers_changed,
            "n_changed": len(self.changed),
            "n_changed_against": self.n_changed_against,
            "n_confirmed": len(self.confirmed),
            "n_undecided": len(self.undecided),
            "n_outvoted": self.n_outvoted,
            "n_blank": self.n_blank,
            "respelled": {text: plain(label) for text, label in self.respelled.items()},
            "new_categories": [plain(label) for label in self.new_categories],
            "labels": self.labels.where(lambda row: row["item"] in reviewed).to_json(),
            "added": self.added.to_json(),
            "audits": self.table().to_json(),
            "caution": self.caution,
        }


def _row(audit: Audit | SingleVoteAudit, labeler: str) -> dict[str, Any]:
    """Return kappa, its interval and the verdict of an audit."""
    if isinstance(audit, SingleVoteAudit):
        found = {"items": 0, "kappa": math.nan, "low": math.nan, "high": math.nan}
        return {**found, "verdict": "one vote per item: no kappa"}
    kappa = audit.kappas[labeler]
    low, high = kappa.confidence_interval(audit.confidence_level)
    found = {"items": kappa.n_items, "kappa": kappa.value, "low": low, "high": high}
    return {**found, "verdict": audit.verdict(labeler).short}


def merge_reviews(
    data: Any,
    reviews: Any,
    suggested: Any = None,
    *,
    action: str = "vote",
    reviewer: str = "review",
    new_categories: bool = False,
    pool: Pool = None,
    confidence_level: float = 0.95,
    allow: Iterable[str] = (),
    **options: Unpack[DataKeywords],
) -> MergedReviews:
    """Merge a reviewed file with the data: as one more vote on each item, or as the decision about its label.

    The file is the one that ``dhkappa review`` writes, with labels filled in as ``new_label``, or the list of
    ``dhkappa review --next`` with ``label``. A column ``annotator`` says who voted. Rows without a label were not
    reviewed. Other columns are ignored, and the order of rows and columns does not matter. Nothing is merged if the
    file has an item that the data lack, two labels of one annotator for an item, a suggested label other than that of
    the data, or a vote that the data already hold.

    The new label of an item and its ``source`` are: the label that was filled in (``"decision"``); with
    ``action="vote"`` the label with most votes, including the new ones (``"majority"``), or the old label if several
    have most votes (``"tie"``); and the old label of items that were not reviewed (``"unchanged"``).

    Parameters
    ----------
    data, suggested, **options
        Votes and suggested labels, as for ``Dataset``; with a ``Dataset``, the name of the labeler.
    reviews
        The path of the file (CSV, Excel, Parquet or JSON), or a table.
    action
        ``"vote"`` or ``"decision"``.
    reviewer
        Who voted, for rows without an annotator. In wide format, the new column of votes gets this name, with the start
        that the names of the other columns have in common if they are found by it: ``ann_review``.
    new_categories
        Whether labels may be filled in that are no category of the data.
    pool, confidence_level, allow
        As for ``audit``.

    Returns
    -------
    MergedReviews
        ``votes``, ``labels``, the items that were ``changed`` and ``confirmed``, and the audits ``before`` and
        ``after``. The reviewed items are no random sample, so the kappas after the review do not estimate that of all
        items.

    Examples
    --------
    >>> import dhkappa
    >>> sim = dhkappa.simulate(300, labelers={"llm": 0.9}, annotators=3, rng=1)
    >>> queue = dhkappa.audit(sim.votes, sim.suggested).review("llm", limit=20)
    >>> truth = [sim.truth[item] for item in queue.column("item")]
    >>> filled = dhkappa.Table({"item": queue.column("item"), "new_label": truth})
    >>> merged = dhkappa.merge_reviews(sim.votes, filled, sim.suggested, reviewer="expert")
    >>> merged.n_reviewed, len(merged.changed), merged.votes.names[-1]
    (20, 16, 'ann_expert')
    """
    if action not in _ACTIONS:
        raise invalid("action", f"action must be one of {shown(_ACTIONS)}: got {shown([action])}.")
    if not isinstance(reviewer, str) or not reviewer.strip():
        raise invalid("reviewer", f"reviewer must be the name of an annotator: got {shown([reviewer])}.")
    given, labeler = _resolve(data, suggested, options)
    _check_whole(given)
    votes = require_items(given.item_votes())
    if votes.find is not None:
        message = "The table is too large to be fetched, so that reviews cannot be merged."
        raise invalid("data", message, code="table-too-large", hint="Merge them with the data of the reviewed items.")
    is_vote = action == "vote"
    if is_vote:
        check_annotators(votes)

    def name_of(who: str) -> Any:
        known = votes.annotators or ()
        return annotator_name(given.table, given.given_annotators, known, who.strip()) if is_vote else who.strip()

    known: dict[str, Any] = {"new_categories": new_categories, "means_missing": given.means_missing}
    read = read_reviews(reviews, votes, labeler, annotator_name=name_of, reviewer=reviewer, **known)
    if is_vote and (again := has_voted(votes, read.votes)):
        raise refuse_repeated(again, votes.item_names())
    if not is_vote:
        _check_decisions(read, votes.item_names())
    whole = with_votes(votes, read.votes if is_vote else ())
    chosen, sources = _new_labels(whole, read.votes, is_vote)
    evidence = given.evidence([labeler])
    problems = find_problems(evidence, allow)
    # Rules that look at the table were applied to it; all others are applied to the new votes and labels. What is wrong
    # with a labeler, such as labels that are an annotator's votes, stays so if some labels are corrected.
    alone = {problem.code for problem in find_problems(replace(evidence, table=None), allow)}
    kept = [problem for problem in problems if problem.labelers or problem.code not in alone]
    run: dict[str, Any] = {"pool": pool, "confidence_level": confidence_level}
    audits = [_audit(given.counts, evidence.item_votes, labeler, problems=problems, **run)]
    made = Problem("labels-from-votes", "warning", _CORRECTED, (), _NEW_SAMPLE, (labeler,), because=CORRECTED)
    for changed in (whole, with_labels(whole, labeler, chosen)):
        new = replace(evidence, counts=count(changed), item_votes=changed.merged(), table=None)
        found = find_problems(new, allow)
        codes = {problem.code for problem in found}
        found = accept([*found, *(problem for problem in kept if problem.code not in codes)], allow)
        found = found if changed is whole else (made, *(one for one in found if one.code != made.code))
        audits.append(_audit(new.counts, new.item_votes, labeler, problems=found, **run))
    names, old = votes.item_names(), suggested_labels(votes, labeler)
    labels = [chosen.get(place, label) for place, label in enumerate(old)]
    table = {"item": list(names), "old": old, "new": labels}
    table["source"] = [sources.get(place, "unchanged") for place in range(len(old))]
    items = {
        what: [names[place] for place in sorted(sources) if what == _kind(sources[place], old[place], labels[place])]
        for what in ("changed", "confirmed", "undecided")
    }
    people = dict.fromkeys(vote.annotator for vote in read.votes) if is_vote else ()
    added: dict[str, list[Any]] = {
        "item": [names[vote.place] for vote in read.votes],
        "annotator": [vote.annotator for vote in read.votes],
        "label": [vote.label for vote in read.votes],
    }
    return MergedReviews(
        action,
        labeler,
        updated_votes(given.table, votes, read.votes, given.spellings) if is_vote else None,
        Table(table),
        Table(added),
        tuple(items["changed"]),
        tuple(items["confirmed"]),
        tuple(items["undecided"]),
        read.n_blank,
        read.respelled,
        read.new_categories,
        tuple(name for name in people if is_listed(given.table, given.given_annotators, name)),
        *audits,
    )


def _resolve(data: Any, suggested: Any, options: Any) -> tuple[Dataset, str]:
    """Return the data and the labeler whose labels were reviewed."""
    if isinstance(data, Tally):
        require_items(None)
    if isinstance(data, Dataset):
        check_options_absent({"missing": (), **options}, "Dataset")
        given, chosen = data, suggested
    else:
        given, chosen = Dataset(data, suggested, **options), None
    given.check_single()
    given.check_labeled(chosen)
    return given, one_labeler(chosen, given.labelers)


def _check_whole(given: Dataset) -> None:
    """Refuse filtered data: the votes that are left out would be missing from the updated ones."""
    if given.left_out:
        step = given.left_out[0].step
        name = "where" if isinstance(step, Condition) else "exclude_annotator"
        message = f"Reviews cannot be merged with filtered data ({step.text}): what is left out would be missing."
        hint = "Merge them with all data, and filter the merged data."
        raise invalid(name, message, code="merge-filtered", hint=hint)


def _check_decisions(read: Reviews, names: Sequence[Any]) -> None:
    """Refuse different decisions about one item, by several annotators."""
    labels: dict[int, set[Label]] = {}
    for vote in read.votes:
        labels.setdefault(vote.place, set()).add(vote.label)
    if several := [names[place] for place, own in labels.items() if len(own) > 1]:
        message = f"Annotators decided differently about {shown(several)}."
        raise invalid(
            "reviews",
            message,
            code="review-conflict",
            hint="Merge them as votes, with $action=.",
            options={"action": "vote"},
        )


def _new_labels(whole: ItemVotes, votes: Sequence[AddedVote], is_vote: bool) -> tuple[dict[int, Label], dict[int, str]]:
    """Return the new label of reviewed items by position, and where it comes from; of ties only the latter."""
    if not is_vote:
        return {vote.place: vote.label for vote in votes}, {vote.place: "decision" for vote in votes}
    reviewed = {vote.place for vote in votes}
    row, _, code = whole.sorted_votes
    number: dict[int, Counter[int]] = {place: Counter() for place in reviewed}
    for place, category in zip(row.tolist(), code.tolist(), strict=True):
        if place in reviewed:
            number[place][category] += 1
    chosen, sources = {}, {}
    for place, counts in number.items():
        most = max(counts.values())
        leaders = [category for category, n in counts.items() if n == most]
        sources[place] = "majority" if len(leaders) == 1 else "tie"
        if len(leaders) == 1:
            chosen[place] = whole.categories[leaders[0]]
    return chosen, sources


def _kind(source: str, old: Any, new: Any) -> str:
    """Return what a review of an item has done."""
    return "undecided" if source == "tie" else "confirmed" if old == new and old is not None else "changed"


def _audit(
    counts: Counts,
    votes: ItemVotes | None,
    labeler: str,
    *,
    problems: Sequence[Problem],
    pool: Pool,
    confidence_level: float,
) -> Audit | SingleVoteAudit:
    """Audit the labels of a labeler with some votes."""
    known: dict[str, Any] = {"confidence_level": confidence_level, "problems": problems}
    if counts.has_single_votes:
        return audit_single_votes(counts, votes, [labeler], **known)
    return audit_of(counts, votes, [labeler], pool=pool, rng=0, **known)
