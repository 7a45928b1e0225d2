"""The command ``dhkappa review``: write the items to review, or those to vote on next."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

import dhkappa
from dhkappa.cli import options
from dhkappa.cli.files import check_excel, check_output, content_of, write
from dhkappa.cli.filters import left_out, say_left_out
from dhkappa.cli.merge import merge
from dhkappa.cli.options import Command, Input, option, several
from dhkappa.cli.output import check_items, json_text, listed, naming_audit, only, open_errors, refuse, warn
from dhkappa.errors import did_you_mean, flag, invalid, shown
from dhkappa.resources import Progress

if TYPE_CHECKING:
    from dhkappa.errors import Problem
    from dhkappa.table import Table

_REJECTED = "Only items on which more pairs of votes agree on another label than on the suggested one."
_CATEGORY = "Only items with this suggested label; may be repeated."
_NEXT = "Write the N items on which one more vote would help most, to send to annotators."


_MERGE = "Merge a reviewed FILE with the votes, and print what has changed."
_AS = "With --merge: count each new label as one more vote, which others may outvote, or as the decision."
_REVIEWER = "With --merge: name of the annotator who reviewed."
_LABELS = "With --merge: CSV or Excel file (.xlsx) for the corrected labels."
_NEW = "With --merge: accept new labels that are no category of the data."
_ONLY_MERGE = {"action": "vote", "reviewer": "review", "labels": None, "new_categories": False}


@click.command(
    cls=Command,
    epilog="\b\nExamples: dhkappa review votes.csv --suggested llm --limit 200 -o review.csv\n"
    "          dhkappa review votes.csv --suggested llm --merge review.csv\n"
    "            -o votes_updated.csv --labels corrected.csv",
)
@option("output", "CSV or Excel file (.xlsx) to write; CSV on standard output by default.", "-o", metavar="FILE")
@option("limit", "Number of items; all by default.", "-n", type=click.IntRange(1))
@option("rejected", _REJECTED, is_flag=True)
@option("category", _CATEGORY, "chosen", multiple=True, metavar="LABEL")
@option("next", _NEXT, "next_items", type=click.IntRange(1), metavar="N")
@option("merge", _MERGE, metavar="FILE")
@option("as", _AS, "action", choices=("vote", "decision"), default="vote")
@option("reviewer", _REVIEWER, default="review", metavar="NAME")
@option("labels", _LABELS, metavar="FILE")
@option("new-categories", _NEW, is_flag=True)
@option("details", "Add the statistical columns.", is_flag=True)
@options.EXCEL
@option("raw", "Leave text unchanged that a spreadsheet would run as a formula.", is_flag=True)
@options.combine(options.FILES, options.FORMAT, options.ROLES_OF_ONE, options.SAMPLE, options.POOL, options.WEIGHTS)
@options.ALLOW
def review(output: str | None, raw: bool, excel: bool, details: bool, **given: Any) -> None:
    """Write the items to review as CSV or Excel.

    Items whose label the annotators reject most clearly come first. Problems of the data are printed on standard error.
    With --merge, the labels that reviewers filled in are added to the votes (-o) and correct the labels (--labels).
    """
    if given["merge"] is not None:
        stream, output = output == "-", None if output == "-" else output
        _check_merge({**given, "details": details}, output)
        merge(Input(given), given, output, safe=not raw, bom=excel, stream=stream)
        return
    if extra := [flag(name) for name, value in _ONLY_MERGE.items() if given[name] != value]:
        message = f"{', '.join(extra)} is only for merging a reviewed file."
        raise invalid("merge", message, code="option-not-supported", hint="Pass the file with $reviews.")
    from dhkappa.report.sheets import TEXT, next_sheet, review_sheet  # which needs NumPy

    as_json = given["output_format"] == "json"
    output = None if output == "-" else output
    check_output(output, [*given["files"], given["items"]], (".json",) if as_json else (".csv", ".xlsx"))
    check_excel(output)
    if given["next_items"] is not None:
        _check_alone("next", rejected=given["rejected"], limit=given["limit"], details=details)
    source = Input(given)
    with Progress(None, "counting votes"):
        found, labeler, problems = _audited(source, given)
        if given["next_items"] is None:
            table, n_items = _queue(found, labeler, source, given)
            sheet = review_sheet(table, details=details)
        else:
            table, n_items = _next(found, labeler, source, given)
            sheet = next_sheet(table)
    if as_json:
        rows = {"review" if given["next_items"] is None else "next": table.to_json()}
        known = {"labeler": labeler, "n_items": n_items, **listed(problems), **left_out(source.data)}
        text = json_text("review", known | rows)
        write(f"{text}\n", output, "review queue", len(table))
    else:
        content = content_of(sheet, output, safe=not raw, bom=excel, text=TEXT)
        write(content, output, "review queue", len(table))
        say_left_out(source.data)
        warn(problems)


def _check_merge(given: Mapping[str, Any], output: str | None) -> None:
    """Refuse options that do nothing when a file is merged, and outputs that cannot be written or are one file."""
    names = ("details", "rejected", "limit", "next_items", "chosen", "weights")
    _check_alone("merge", **{name: given[name] for name in names})
    labels, inputs = given["labels"], [*given["files"], given["items"], given["merge"]]
    for path in (output, labels):
        check_output(path, inputs, (".csv", ".xlsx"))
        check_excel(path)
    if output is not None and labels is not None and os.path.realpath(output) == os.path.realpath(labels):
        message = f"The votes and the labels cannot both be written to {shown([output])}."
        raise invalid("labels", message, code="same-output", hint="Choose another name.")
    if output is not None and given["action"] == "decision":
        message = "Decisions add no votes, so that there are no votes to write."
        raise invalid("output", message, code="no-votes-added", hint="Write the corrected labels with $labels.")


def _audited(source: Input, given: Mapping[str, Any]) -> tuple[Any, str, tuple[Problem, ...]]:
    """Return the audit, its only labeler, and the problems of the data."""
    if isinstance(source.data, dhkappa.Dataset):
        source.data.check_labeled()
    sample = {"pool": source.pool, "weights": given["weights"], "allow": source.allow}
    found = dhkappa.audit(source.data, source.suggested, progress=False, **sample)
    if isinstance(found, dhkappa.SingleVoteAudit) and given["next_items"] is None:
        message = "Every item has at most one vote, and a review queue needs two or more."
        hint = "dhkappa audit lists the items whose vote differs from the label."
        raise invalid("data", message, code="single-votes", hint=hint)
    labeler, problems = only(found.labelers), naming_audit(found.problems)
    if errors := open_errors(problems):
        refuse(errors[0])
    return found, labeler, problems


def _queue(found: dhkappa.Audit, labeler: str, source: Input, given: Mapping[str, Any]) -> tuple[Table, int]:
    """Return the queue with the items that were asked for, and the number of items that it was chosen from."""
    check_items(found.kappas, given["files"])
    n_items, limit = max(found.kappas[labeler].n_items, 1), given["limit"]
    queue = found.review(labeler, limit=n_items if limit is None or given["chosen"] else limit)
    if given["rejected"]:
        queue = queue.where(lambda row: row["differential"] < 0)
    return _of_categories(queue, given["chosen"], source.data.categories).head(limit), found.kappas[labeler].n_items


def _next(found: Any, labeler: str, source: Input, given: Mapping[str, Any]) -> tuple[Table, int]:
    """Return the items to vote on next, and the number of items of the data."""
    n, n_items = given["next_items"], source.data.counts.n_items
    table = found.next_votes(labeler, max(n_items, 1) if given["chosen"] else n)
    return _of_categories(table, given["chosen"], source.data.categories).head(n), n_items


def _of_categories(table: Table, chosen: Sequence[str], known: Sequence[Any]) -> Table:
    """Return the rows with one of the chosen suggested labels."""
    from dhkappa.inputs.excel import cell_text

    names = several(chosen)
    texts = {cell_text(category) or "" for category in known}
    if wrong := [name for name in names if name not in texts]:
        message = f"Category {shown(wrong[:1])} not found. Categories: {shown(sorted(texts), 10)}."
        raise invalid("category", message + did_you_mean(wrong[0], texts), code="category-not-found")
    return table.where(lambda row: cell_text(row["suggested"]) in names) if names else table


def _check_alone(option: str, **others: Any) -> None:
    """Refuse options that do nothing beside another one."""
    names = {"next_items": "next", "chosen": "category"}
    if extra := [flag(names.get(name, name)) for name, value in others.items() if value]:
        message = f"{', '.join(extra)} cannot be combined with {flag(option)}."
        raise invalid(option, message, code="option-not-supported", hint="Omit one of them.")
