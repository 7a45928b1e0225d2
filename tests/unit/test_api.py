"""Public functions: options, kinds of input, and undefined results."""

import inspect
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dhkappa
from dhkappa import Dataset, Tally, audit, compare, dh_kappa, fleiss_kappa, plan, tally
from expect import expect_error

VOTES = [["a", "a", "b"], ["b", "b", "b"], ["a", "b", "a"], ["b", "a", "a"], ["a", "a", "a"], ["b", "a", "b"]]
LABELS = ["a", "b", "a", "b", "a", "a"]
TWO = {"rule": LABELS, "llm": list("abaabb")}
ANSWERS: dict[str, Any] = {"n_categories": 2, "annotator_accuracy": 0.9, "labeler_accuracy": 0.9}
TABLE = pd.DataFrame(
    {"item": range(6), "suggested": LABELS, **{f"ann_{k}": [row[k] for row in VOTES] for k in range(3)}}
)

CALLS: dict[str, Any] = {
    "dh_kappa": lambda **options: dh_kappa(VOTES, LABELS, **options),
    "dh_kappa(array)": lambda **options: dh_kappa(np.array(VOTES), LABELS, **options),
    "dh_kappa(table)": lambda **options: dh_kappa(TABLE, **options),
    "dh_kappa(Dataset)": lambda **options: dh_kappa(Dataset(VOTES, LABELS), **options),
    "dh_kappa(Tally)": lambda **options: dh_kappa(tally(VOTES, LABELS), **options),
    "fleiss_kappa": lambda **options: fleiss_kappa(VOTES, **options),
    "compare": lambda **options: compare(VOTES, TWO, **options),
    "compare(Tally)": lambda **options: compare(tally(VOTES, TWO), **options),
    "audit": lambda **options: audit(VOTES, TWO, progress=False, **options),
    "tally": lambda **options: tally(VOTES, LABELS, **options),
    "Dataset": lambda **options: Dataset(VOTES, LABELS, **options),
    "Tally.update": lambda **options: Tally().update(VOTES, LABELS, **options),
    "plan": lambda **options: plan(0.1, **ANSWERS, **options),
    "plan(Kappa)": lambda **options: plan(0.1, dh_kappa(VOTES, LABELS), **options),
}


@pytest.mark.parametrize("name", CALLS)
def test_unknown_keywords_are_type_errors(name: str) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'level'") as caught:
        CALLS[name](level=0.9)
    assert "Did you mean" not in str(caught.value)
    with pytest.raises(TypeError, match="Did you mean 'annotator"):
        CALLS[name](annotater="x")


def test_names_of_other_options_are_not_proposed() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'suggested'") as caught:
        fleiss_kappa(VOTES, suggested=LABELS)  # type: ignore[call-arg]
    assert "Did you mean" not in str(caught.value)


def test_clusters_are_not_supported_by_fleiss_kappa() -> None:
    with expect_error("option-not-supported", "clusters"):
        fleiss_kappa(VOTES, clusters=LABELS)


def test_functions_have_the_same_options() -> None:
    common = {"counts", "categories", "weights", "missing", "sample_weight", "strata", "clusters", "pool"}
    for call in (dh_kappa, fleiss_kappa, compare, audit):
        parameters = inspect.signature(call).parameters
        assert common <= set(parameters)
        assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in common)


@pytest.mark.parametrize(
    ("call", "code", "parameter"),
    [
        (lambda: dh_kappa(), "votes-or-counts", "counts"),
        (lambda: audit(), "votes-or-counts", "counts"),
        (lambda: dh_kappa(VOTES, LABELS, counts=[[1]]), "votes-or-counts", "counts"),
        (lambda: dh_kappa(np.array(VOTES), LABELS, counts=[[1]]), "votes-or-counts", "counts"),
        (lambda: dh_kappa(VOTES), "no-suggested-labels", "suggested"),
        (lambda: dh_kappa(counts=[[1, 1]]), "no-suggested-labels", "suggested"),
        (lambda: compare(VOTES), "no-suggested-labels", "suggested"),
        (lambda: audit(VOTES, {}), "invalid-labeler-name", "suggested"),
        (lambda: dh_kappa(VOTES, TWO), "several-labelers", "suggested"),
        (lambda: dh_kappa(VOTES, {"llm": LABELS}), "several-labelers", "suggested"),
        (lambda: dh_kappa("abc", "x"), "file-not-found", "path"),
        (lambda: CALLS["dh_kappa"](missing=3), "not-a-label", "missing"),
        (lambda: dh_kappa(VOTES, LABELS, missing=[[]]), "not-a-label", "missing"),
        (lambda: dh_kappa(VOTES, LABELS, categories=[]), "invalid-categories", "categories"),
        (lambda: dh_kappa(VOTES, LABELS, categories=["a", "b"], missing=["a"]), "invalid-categories", "categories"),
        (lambda: dh_kappa(VOTES, LABELS, weights="linear"), "categories-not-declared", "weights"),
        (lambda: dh_kappa(tally(VOTES, LABELS), weights="linear"), "categories-not-declared", "weights"),
        (lambda: dh_kappa(VOTES, LABELS, duplicates="all"), "invalid-option", "duplicates"),
        (lambda: compare(tally(VOTES, TWO), sample_weight=[1] * 6), "option-with-dataset", "sample_weight"),
        (lambda: plan(0.1, **ANSWERS, annotators="ann_*"), "pilot-missing", "pilot"),
        (lambda: plan(0.1, dh_kappa(VOTES, LABELS), annotators="ann_*"), "option-with-dataset", "annotators"),
        (lambda: plan(0.1, dh_kappa(VOTES, LABELS), LABELS), "option-with-dataset", "suggested"),
        (lambda: plan(0.1, audit(VOTES, TWO, progress=False)), "several-labelers", "suggested"),
        (lambda: plan(0.1, audit(VOTES, TWO, progress=False), "none"), "labeler-not-found", "suggested"),
        (lambda: plan(0.1, audit(VOTES, TWO, progress=False), "rule", item="id"), "option-with-dataset", "item"),
    ],
)
def test_calls_that_are_refused(call: Any, code: str, parameter: str) -> None:
    with expect_error(code, parameter):
        call()


def test_every_path_gives_the_same_kappa() -> None:
    expected = dh_kappa(VOTES, LABELS)
    for found in (
        dh_kappa(np.array(VOTES), LABELS),
        dh_kappa(tuple(map(tuple, VOTES)), tuple(LABELS)),
        dh_kappa(TABLE),
        dh_kappa(Dataset(VOTES, LABELS)),
        dh_kappa(tally(VOTES, LABELS)),
        dh_kappa(tally(VOTES, TWO), "rule"),
        dh_kappa(counts=[[row.count(c) for c in "ab"] for row in VOTES], suggested=LABELS, categories=["a", "b"]),
        compare(VOTES, TWO).kappas["rule"],
        audit(VOTES, TWO, progress=False).kappas["rule"],
    ):
        assert found.to_dict() == expected.to_dict()
        assert found.exact == expected.exact


def test_plan_from_a_pilot() -> None:
    kappa = dh_kappa(VOTES, LABELS)
    expected = plan(0.2, kappa).items
    assert plan(0.2, VOTES, LABELS).items == expected
    assert plan(0.2, TABLE).items == expected
    assert plan(0.2, tally(VOTES, LABELS)).items == expected
    assert plan(0.2, audit(VOTES, LABELS, progress=False)).items == expected
    assert plan(0.2, audit(VOTES, TWO, progress=False), "rule").items == expected
    counts = [[row.count(c) for c in "ab"] for row in VOTES]
    assert plan(0.2, counts=counts, suggested=["ab".index(label) for label in LABELS]).items == expected


@pytest.mark.parametrize(
    ("votes", "suggested"),
    [
        ([], []),
        (np.empty((0, 3)), np.empty(0)),
        ([[]], ["a"]),
        ([["a"], [None, None]], ["a", "b"]),
        ([["a", "a"]], [None]),
        ([["a", "a"], ["a", "a", "a"]], ["a", "a"]),
    ],
    ids=repr,
)
def test_undefined_kappas_have_a_reason(votes: Any, suggested: Any) -> None:
    kappa = dh_kappa(votes, suggested)
    assert np.isnan(kappa.value)
    assert kappa.exact is None
    assert kappa.reason
    assert "undefined" in repr(kappa)
    assert kappa.to_dict()["value"] is None


def test_undefined_fleiss_kappas_have_a_reason() -> None:
    for votes in ([["a", "a"]], [["a"]], []):
        kappa = fleiss_kappa(votes)
        assert kappa.exact is None
        assert kappa.reason


def test_public_names_are_loaded_lazily() -> None:
    for name in dhkappa.__all__:
        assert getattr(dhkappa, name).__name__ == name


@pytest.mark.parametrize(
    "options", [{"missing": ["zz"]}, {"suggested": ["a"]}, {"item": "id"}], ids=["missing", "suggested", "item"]
)
def test_plan_refuses_options_of_a_pilot_without_one(options: dict[str, Any]) -> None:
    with expect_error("pilot-missing", "pilot"):
        plan(0.1, n_categories=2, annotator_accuracy=0.9, labeler_accuracy=0.9, **options)
    with expect_error("option-with-dataset", next(iter(options))):
        plan(0.1, dh_kappa(VOTES, LABELS), **options)
