"""The calls of the golden corpus: the only place of it that uses the names of dhkappa."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from golden_cases import Case, FileData

import dhkappa as dk
from dhkappa.stats.labelers import labelers_table
from dhkappa.stats.rates import RATE_COLUMNS

Error = dk.DataError
Make = Callable[[Any], Any]

LEVELS = (0.95, 0.8)
RNG = 12345
RESAMPLES = 199


def given(case: Case, make: Make, *left_out: str, **more: Any) -> tuple[Any, dict[str, Any]]:
    """Return the data and the keyword arguments of a call; files are opened with the roles of their columns."""
    data = make(case.data)
    options = {name: make(value) for name, value in {**case.options, **more}.items() if name not in (*left_out, "plan")}
    if "agreement_weights" in options:
        options["weights"] = options.pop("agreement_weights")
    if isinstance(data, (str, FileData)):
        question: dict[str, Any] = {"question": data.question} if isinstance(data, FileData) else {}
        path = data.path if isinstance(data, FileData) else data
        design: dict[str, Any] = {name: options.pop(name) for name in ("weights", "pool") if name in options}
        return dk.read(path, **question, **options), design
    return data, options


def codes(notes: Any) -> list[str]:
    return [note.code for note in notes if note.code != "duplicates-removed"]  # which version 0.1 did not have


def table(found: Any, *new: str) -> dict[str, Any]:
    """Return the columns of a table, without those that version 0.1 did not have."""
    new = (*new, *getattr(found, "shown", ()))
    columns = {name: found.column(name) for name in found.names if name not in new}
    if "reason" in columns:
        columns["reason"] = [text is not None for text in columns["reason"]]
    return columns


def interval(found: Any) -> dict[str, Any]:
    return {"low": found.low, "high": found.high, "reason": found.reason is not None}


def permutation_test(found: Any) -> dict[str, Any]:
    return {
        "difference": found.difference,
        "z": found.z,
        "pvalue": found.pvalue,
        "alternative": found.alternative,
        "method": found.method,
        "n_resamples": found.n_resamples,
        "reason": found.reason is not None,
    }


def kappa_result(kappa: Any) -> dict[str, Any]:
    parts, excluded, metric = kappa.parts, kappa.excluded, kappa.metric
    methods = ("wald",) if metric == "fleiss" else ("beta", "wald")
    found = {
        "metric": metric,
        "value": kappa.value,
        "exact": kappa.exact,
        "se": kappa.se,
        "n_effective": kappa.n_effective,
        "n_items": kappa.n_items,
        "n_votes": kappa.n_votes,
        "categories": kappa.categories,
        "excluded": {name: getattr(excluded, name) for name in ("no_votes", "one_vote", "no_label", "no_weight")},
        "baselines": {"random": kappa.baselines.random, "majority": kappa.baselines.majority},
        "above_random": kappa.above_random,
        "fleiss": kappa.fleiss,
        "notes": codes(kappa.notes),
        "reason": kappa.reason is not None,
        "confidence_interval": {
            f"{method} {level}": interval(kappa.confidence_interval(level, method))
            for method in methods
            for level in LEVELS
        },
    }
    if parts is not None:
        found["parts"] = {letter: getattr(parts, letter) for letter in ("R", "S", "C_E", "C_F", "D", "E")}
        found["parts"] |= {letter: list(getattr(parts, letter).values()) for letter in ("C", "L")}
    if metric == "dh" and kappa.exact is not None:
        found["permutation_test"] = [
            permutation_test(kappa.permutation_test(alternative=a)) for a in ("greater", "two-sided")
        ]
        found["by_category"] = table(kappa.by_category(0.8), *RATE_COLUMNS)
        found["confusion"] = table(kappa.confusion())
    return found


def by_labeler(case: Case, make: Make, result: Callable[[Any], Any], *left_out: str) -> dict[str, Any]:
    """Return the results of each labeler."""
    suggested = case.options.get("suggested")
    named = suggested if isinstance(suggested, Mapping) else {"": suggested}
    if isinstance(suggested, list) and suggested and str(suggested[0]).startswith("suggested_"):
        named = {column: column for column in suggested}
    found = {}
    for name, own in named.items():
        data, options = given(case, make, *left_out, suggested=own)
        found[name] = result(dk.dh_kappa(data, **options))
    return found


def dh_kappa_result(case: Case, make: Make) -> dict[str, Any]:
    return by_labeler(case, make, kappa_result, "agreement_weights")


def weighted_kappa_result(case: Case, make: Make) -> dict[str, Any]:
    return by_labeler(case, make, kappa_result)


def fleiss_kappa_result(case: Case, make: Make) -> dict[str, Any]:
    data, options = given(case, make, "suggested", "agreement_weights")
    return kappa_result(dk.fleiss_kappa(data, **options))


def resampled_result(case: Case, make: Make) -> dict[str, Any]:
    drawn: dict[str, Any] = {"n_resamples": RESAMPLES, "rng": RNG}

    def resampled(kappa: Any) -> dict[str, Any]:
        def limits(method: str, level: float) -> dict[str, Any]:
            return interval(kappa.confidence_interval(level, method, **drawn))

        bootstrap = kappa.bootstrap(**drawn)
        return {
            "bootstrap": {"values": bootstrap.values, "undefined": bootstrap.undefined},
            "confidence_interval": {
                f"{method} {level}": asked(limits, method, level) for method in ("bootstrap", "bca") for level in LEVELS
            },
            "permutation_test": asked(lambda: permutation_test(kappa.permutation_test("monte-carlo", **drawn))),
        }

    return by_labeler(case, make, resampled, "agreement_weights")


def comparison_result(found: Any) -> dict[str, Any]:
    return {
        "table": table(found.table(), "coverage"),
        "differences": table(found.differences, "items"),
        "best": found.best,
        "notes": codes(found.notes),
    }


def compare_result(case: Case, make: Make) -> dict[str, Any]:
    data, options = given(case, make, "agreement_weights")
    return {
        str(level): comparison_result(dk.compare(data, **options, confidence_level=level, rng=RNG)) for level in LEVELS
    }


def audit_result(case: Case, make: Make) -> dict[str, Any]:
    data, options = given(case, make)
    found = dk.audit(data, **options, rng=RNG, progress=False)
    if not isinstance(found, dk.Audit):  # version 0.1 refused data without labels
        raise dk.DataError(code="no-suggested-labels", parameter="suggested")
    # Version 0.1 compared all labelers on the same items, however few: it has no number for those that are not ranked.
    same = found.comparison is None or not found.comparison.not_ranked
    return {
        "table": table(labelers_table(found.kappas, found.confidence_level), "coverage"),
        **({"comparison": comparison_result(found.comparison) if found.comparison else None} if same else {}),
        "fleiss": found.fleiss.value,
        "labelers": {name: audit_of(found, name) for name in found.labelers},
    }


def audit_of(found: Any, name: str) -> dict[str, Any]:
    kappa, test = found.kappas[name], found.permutation_tests[name]
    return {
        "kappa": {"value": kappa.value, "exact": kappa.exact, "notes": codes(kappa.notes)},
        "weighted": kappa.exact if kappa.metric == "weighted" else None,
        "permutation_test": permutation_test(test) if test else None,
        "categories": asked(lambda: table(found.categories(name), *RATE_COLUMNS)),
        "confusion": asked(lambda: table(found.confusion(name))),
        "review": asked(lambda: table(found.review(name))),
        "annotators": asked(lambda: table(found.annotators(name))),
        "annotator_comparison": asked(lambda: annotator_comparison(found.annotator_comparison(name))),
        "sample_sizes": None
        if math.isnan(kappa.confidence_interval().low)
        else asked(lambda: table(found.sample_sizes(name))),
    }


def asked(result: Callable[..., Any], *given: Any) -> Any:
    """Return a result, None where the data have none."""
    try:
        return result(*given)
    except Error:
        return None


def annotator_comparison(found: Any) -> dict[str, Any]:
    names = ("difference", "se", "low", "high", "matched", "n_items", "skipped")
    numbers = {name: getattr(found, name) for name in names}
    return {**numbers, "reason": found.reason is not None, "notes": codes(found.notes), "table": table(found.table)}


def tally_result(case: Case, make: Make) -> dict[str, Any]:
    """Count everything at once; save and load it; and add two halves, of which one is counted by update."""
    data, options = given(case, make, "agreement_weights", "pool")
    whole = dk.tally(data, **options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "whole.tally")
        whole.save(path)
        loaded = dk.Tally.load(path)
    found = tallied(whole) | {"loaded": loaded == whole, "twice": tallied(whole + loaded)}
    if not hasattr(case.data, "engine") and not isinstance(case.data, FileData):
        first, second = (given(half, make, "agreement_weights", "pool") for half in case.split())
        words = {name: value for name, value in first[1].items() if name in ("categories", "missing")}
        other = dk.Tally(**words)
        other.update(first[0], **{name: value for name, value in first[1].items() if name not in words})
        added = other + dk.tally(second[0], **second[1])
        found |= {"added": added == whole, "halves": tallied(added)}
    return found


def exact(kappa: Callable[..., Any], *given: Any) -> Any:
    return kappa(*given).exact


def tallied(tally: Any) -> dict[str, Any]:
    names = ("n_items", "n_votes", "categories", "labelers", "strata")
    return {
        **{name: getattr(tally, name) for name in names},
        "patterns": len(tally),
        "kappas": {name or "": asked(exact, dk.dh_kappa, tally, name) for name in tally.labelers or (None,)},
        "fleiss": asked(exact, dk.fleiss_kappa, tally),
    }


def plan_result(case: Case, make: Make) -> dict[str, Any]:
    data, options = given(case, make)
    words = dict(case.options["plan"])
    if data is not None:
        words["pilot"] = dk.dh_kappa(data, **options)
    found = dk.plan(**words)
    names = ("votes", "sigma", "items", "items_assured", "total_votes", "kappa", "cheapest")
    numbers = {name: getattr(found, name) for name in names}
    return {**numbers, "options": table(found.options), "notes": codes(found.notes)}


def simulate_result(case: Case, make: Make) -> dict[str, Any]:
    found = dk.simulate(**case.options)
    return {name: getattr(found, name) for name in ("votes", "suggested", "truth", "categories")}


CALLS = {
    "dh": dh_kappa_result,
    "weighted": weighted_kappa_result,
    "fleiss": fleiss_kappa_result,
    "resample": resampled_result,
    "compare": compare_result,
    "audit": audit_result,
    "tally": tally_result,
    "plan": plan_result,
    "simulate": simulate_result,
}
