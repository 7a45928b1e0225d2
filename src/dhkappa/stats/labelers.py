"""Several labelers in one table, and the weakest category of one, from their kappas."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from dhkappa.stats.intervals import written
from dhkappa.table import Table

_WEAKER = 0.1  # kappa of a category below the whole
_FEWEST = 10  # items of a category that is named; the interval of fewer can be much too narrow


def labelers_table(
    kappas: Mapping[str, Any], confidence_level: float, last: Collection[str] = (), annotators: str = "fixed"
) -> Table:
    """Return a row for each labeler, the highest kappa first; those in ``last``, in their order, after all others."""
    order = sorted(kappas.items(), key=lambda pair: (math.isnan(pair[1].value), -pair[1].value))
    order = [*(pair for pair in order if pair[0] not in last), *((name, kappas[name]) for name in last)]
    rows = []
    for name, kappa in order:
        limits, baselines = kappa.confidence_interval(confidence_level, annotators=annotators), kappa.baselines
        known = name, kappa.value, *limits, kappa.se, baselines.random, baselines.majority
        rows.append((*known, kappa.n_items, kappa.coverage))
    names = ("labeler", "kappa", "low", "high", "se", "baseline_random", "baseline_majority", "items", "coverage")
    what = "Weighted kappa" if any(kappa.metric == "weighted" for kappa in kappas.values()) else "Kappa"
    what += " by labeler" + (" for other annotators" if annotators == "random" else "")
    title = f"{what}, {written(confidence_level, 100)}% confidence intervals"
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    if annotators == "random":
        del columns["se"]  # it is for these annotators
    return Table(columns, title=title)


def weakest_category(name: str, kappa: Any, confidence_level: float) -> str:
    """Return a sentence about the category with the lowest kappa, empty if it is not clearly below the whole.

    It is if it has ten items, its confidence limits, adjusted for the number of categories (Bonferroni), are below
    those of kappa, and the difference is no trifle.
    """
    low, adjusted = kappa.confidence_interval(confidence_level).low, 1 - (1 - confidence_level) / len(kappa.categories)
    known = [row for row in kappa.by_category(adjusted) if row["items"] >= _FEWEST]
    rows = [row for row in known if row["high"] < low and kappa.value - row["kappa"] >= _WEAKER]
    if not rows:
        return ""
    worst = min(rows, key=lambda row: row["kappa"])
    return f"The weakest category of {name} is {worst['category']!r} (kappa {round(worst['kappa'], 2) + 0.0:.2f})."
