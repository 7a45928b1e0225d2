"""Reports: results as charts, HTML and text. What they share: formatting and the order of labelers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from dhkappa.errors import DataError, Problem, visible
from dhkappa.stats.grades import cannot_judge
from dhkappa.stats.labelers import labelers_table
from dhkappa.stats.verdict import groups_of

if TYPE_CHECKING:
    from dhkappa.stats.comparison import Comparison
    from dhkappa.stats.notes import Note
    from dhkappa.stats.result import Kappa

P = ParamSpec("P")
T = TypeVar("T")
Write = Callable[[float | None, int], str]  # formats a number with some digits

REVIEW_LIMIT = 1_000  # items of a labeler's review queue that a report reads
_LONGEST = 200  # characters of a name that a report shows
_LONGEST_HEAD = 40


def optional(method: Callable[P, T], *args: P.args, **options: P.kwargs) -> T | None:
    """Return a result of an audit, or None if the data does not allow it."""
    try:
        return method(*args, **options)
    except DataError:
        return None


def other_annotators_text(audit: Any, labeler: str) -> str:
    """Return what a labeler would score with other annotators, with its name if there are several; may be empty."""
    found: Any = optional(audit.other_annotators, labeler)
    if found is None or audit.kappas[labeler].exact is None:
        return ""
    return str(found.text) if len(audit.labelers) == 1 else f"{labeler}: {found.text}"


def kappa_name(kappas: Mapping[str, Kappa]) -> str:
    """Return what these kappas are called: ``kappa`` or ``weighted kappa``."""
    return "weighted kappa" if any(kappa.metric == "weighted" for kappa in kappas.values()) else "kappa"


def labeler_rows(
    kappas: Mapping[str, Kappa], confidence_level: float, annotators: str = "fixed"
) -> list[dict[str, Any]]:
    """Return one row per labeler, the highest kappa first, with confidence interval, baselines and Fleiss' kappa."""
    rows = labelers_table(kappas, confidence_level, annotators=annotators)
    return [row | {"fleiss": kappas[row["labeler"]].fleiss} for row in rows]


def compared_on(comparison: Comparison) -> str:
    """Return the items that differences are for: those of all labelers, or of each two."""
    items = {*comparison.differences.column("items")}
    if len(items) > 1:
        return "each on the items that both labeled"
    return f"on the {max(items):,} items that all of them labeled"


def better_first(comparison: Comparison | None) -> list[dict[str, Any]]:
    """Return the paired differences, each as the better labeler minus the other."""
    rows: list[dict[str, Any]] = []
    for row in comparison.differences if comparison else ():
        if row["difference"] < 0:
            row |= {"labeler": row["other"], "other": row["labeler"], "difference": -row["difference"]}
            row |= {"low": -row["high"], "high": -row["low"]}
        rows.append(row)
    return rows


_TEXT = {"labeler", "other", "category", "annotator", "suggested", "item"}
_TEXT |= {"majority", "vote", "votes", "verdict", "reason", "remark", "instead", "slice", "grade", "name"}
_SIGNED = {"difference", "change", "minus_others", "deviation"}
_SHARES = {"coverage", "label_share", "vote_share", "agree", "agree_suggested", "agreement", "share", "weight"}
_SHARES |= {"shift", "suggested_share", "agree_label"}
_HEADS = {
    "agree": "agrees with others",
    "any_time_level": "level alone",
    "agree_label": "agree",
    "agree_suggested": "votes for suggested",
    "baseline_annotator": "typical annotator",
    "baseline_majority": "majority",
    "baseline_random": "random",
    "kappa_annotator": "kappa",
    "kappa_labeler": "labeler's kappa",
    "kappa_pairs": "kappa of their pairs",
    "fleiss": "Fleiss",
    "half_width": "half-width",
    "n_suggested": "suggested",
    "n_votes": "votes",
    "name": "audit",
    "instead": "other votes",
    "one_annotator": "one annotator",
    "other": "minus",
    "precision_ci": "precision (CI)",
    "recall_ci": "recall (CI)",
    "pvalue": "p-value",
    "pvalue_holm": "p-value (Holm)",
    "pvalue_shift": "p-value of the shift",
    "reason": "remark",
    "deviation": "vs others on same items",
    "shrunk_score": "beyond chance",
    "shift": "shift of the votes",
    "ci_change": "CI of change",
    "suggested_share": "votes for label",
    "weight": "share of votes",
    "weighted_fleiss": "weighted Fleiss",
}


def grid(
    rows: Iterable[Mapping[str, Any]],
    columns: str,
    confidence_level: float,
    digits: int = 2,
    *,
    shown: Sequence[str] = (),
) -> tuple[list[str], list[list[str]], list[bool]]:
    """Format some columns of a result: return heads, cells, and which columns hold numbers.

    ``ci`` stands for the confidence interval in ``low`` and ``high``, ``recall_ci`` for ``recall`` with its interval,
    and ``one_annotator`` for the column ``annotator`` of rates. Columns without any value are left out. The columns
    ``shown`` of the data follow the item, as one line of text.
    """
    names, kept = columns.split(), list(rows)
    sign = signed if "difference" in names else number
    cells = {name: [_cell(name, row, digits, sign) for row in kept] for name in names}
    if shown:
        texts = {name: [one_line(row[name]) for row in kept] for name in shown}
        cells = {"item": cells.pop("item"), **texts, **cells}
    used = [name for name, values in cells.items() if not {"", "-"}.issuperset(values)]
    heads = [f"{percent(confidence_level)} CI" if name == "ci" else _HEADS.get(name, name) for name in used]
    heads = [head.replace("_", " ") for head in heads]
    for place, name in enumerate(used):
        heads[place] = text_of(name, _LONGEST_HEAD) if name in shown else heads[place]
    numbers = [name not in _TEXT and name not in shown for name in used]
    return heads, [list(row) for row in zip(*(cells[name] for name in used), strict=True)], numbers


def _cell(name: str, row: Mapping[str, Any], digits: int, sign: Write) -> str:
    if name == "ci":
        return limits(row["low"], row["high"], digits, sign)
    if name == "ci_change":
        return limits(row["change_low"], row["change_high"], digits, signed)
    if name in ("precision_ci", "recall_ci"):
        rate = name.removesuffix("_ci")
        within = limits(row[f"{rate}_low"], row[f"{rate}_high"], digits, sign)
        return f"{number(row[rate], digits)} ({within})" if row[f"{rate}_low"] >= 0 else number(row[rate], digits)
    if name == "one_annotator":
        return number(row["annotator"], digits)
    value = row[name]
    if value is None or name in _TEXT:
        return text_of(value)
    if isinstance(value, int):
        return f"{value:,}"
    if name.startswith("pvalue"):
        return pvalue(value, digits + 1)
    if name in _SHARES:
        return share(value)
    if name == "any_time_level":
        return "" if math.isnan(value) else percent(value)
    if name == "half_width":
        return f"± {value:g}"
    return (signed if name in _SIGNED else number)(value, 3 if name == "loss" else digits)


def filter_texts(notes: Iterable[Note]) -> list[str]:
    """Return what filters have left out, to show it above the results."""
    return [note.text for note in notes if note.code == "filtered"]


def percent(confidence_level: float) -> str:
    """Format a confidence level: 95%."""
    texts = (f"{100 * confidence_level:.{digits}g}" for digits in range(4, 18))
    return next((text for text in texts if text != "100"), "100") + "%"


def number(value: float | None, digits: int = 2) -> str:
    """Format a kappa, a difference or a share; a dash if it is undefined."""
    if value is None or math.isnan(value):
        return "-"
    return f"{round(value, digits) + 0.0:.{digits}f}"  # never -0.00


def signed(value: float | None, digits: int = 2) -> str:
    """Format a difference with its sign; without one if it is rounded to 0."""
    text = number(value, digits)
    return f"+{text}" if text.strip("-0.") and not text.startswith("-") else text


def limits(low: float | None, high: float | None, digits: int = 2, write: Write = number) -> str:
    """Format a confidence interval."""
    return "-" if low is None or math.isnan(low) else f"{write(low, digits)} to {write(high, digits)}"


def share(value: float) -> str:
    """Format a share as a percentage."""
    if math.isnan(value):
        return "-"
    return "< 1%" if 0 < value < 0.005 else f"{value:.0%}"


def pvalue(value: float | None, digits: int = 3) -> str:
    """Format a p-value."""
    if value is None or math.isnan(value):
        return "-"
    least = 10.0**-digits
    return f"< {least:.{digits}f}" if value < least else f"{value:.{digits}f}"


def one_line(value: Any, longest: int = _LONGEST) -> str:
    """Format the text of an item on one line, with one blank for every space and line break."""
    return text_of(" ".join(str(value)[: 2 * longest].split()) or None if isinstance(value, str) else value, longest)


def text_of(value: Any, longest: int = _LONGEST) -> str:
    """Format a value on one line: control characters escaped, blank text in quotes, long text cut; nothing for None."""
    text = "" if value is None else visible(str(value))
    text = text if text.strip() or value is None else repr(text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def which_is_better(comparison: Comparison, problems: Sequence[Problem]) -> str:
    """Return which labeler is better, or that the data do not show it; empty if fewer than two can be judged."""
    judged = {name: one.value for name, one in comparison.ranked.items() if not cannot_judge(name, problems)}
    known = {name: value for name, value in judged.items() if not math.isnan(value)}
    if len(known) < 2:
        return ""
    best = groups_of(known, comparison.differences, comparison.confidence_level)[0]
    if len(best) == 1:
        others = [name for name in known if name != best[0]]
        return f"{best[0]} has a higher kappa than {others[0] if len(others) == 1 else 'the others'}."
    which = "which of the two is better" if len(best) == 2 else "which of these is best"
    return f"The data do not show {which}: {', '.join(best)}."
