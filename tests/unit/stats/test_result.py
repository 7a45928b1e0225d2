"""Kappa and Comparison: values, display, JSON, caching."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dhkappa import Excluded, Kappa, compare, dh_kappa, fleiss_kappa, simulate
from dhkappa.stats.labelers import weakest_category
from exact import EXAMPLE, example
from expect import expect_error

F = Fraction
A, B, C = ["a", "a"], ["b", "b"], ["c", "c"]
ORDERED = example(weights="linear", categories=[1, 2, 3])


def test_reads_as_a_number() -> None:
    kappa = dh_kappa([A, B, ["a", "b"]], ["a", "b", "a"])
    assert float(kappa) == kappa.value
    assert f"{kappa:.3f}" == f"{kappa.value:.3f}"
    assert f"{kappa}" == repr(kappa)
    assert repr(kappa).startswith("kappa_DH 0.6667 [-0.5107, 0.9921] (3 items, 6 votes; random 0.0000; majority")
    assert "\n" not in repr(kappa)
    assert repr(kappa.parts) == "Parts(R=0.6667, S=0.0000, C_E=0.2500, C_F=0.2500, D=0.6667, E=0.0000)"


@pytest.mark.parametrize(
    ("kappa", "start", "end"),
    [
        (example(), "kappa_DH 0.4540", "18 votes; random -0.1085; majority 0.7472; Fleiss 0.5673; 2 notes)"),
        (
            ORDERED,
            "weighted kappa_DH 0.5645",
            "18 votes; random 0.0253; majority 0.7107; weighted Fleiss 0.5781; 1 note)",
        ),
        (fleiss_kappa(EXAMPLE.votes), "Fleiss' kappa 0.5673", "(6 items, 18 votes; 1 note)"),
        (dh_kappa([A, A], ["b", "b"]), "kappa_DH 0.0000 (2 items", "random 0.0000; 8 notes)"),
        (dh_kappa([], []), "kappa_DH undefined (0 items, 0 votes; ", "; There are no items)"),
    ],
)
def test_repr_has_the_defined_values_of_the_metric(kappa: Kappa, start: str, end: str) -> None:
    low, high = kappa.confidence_interval()
    within = "" if math.isnan(low) else f" [{low:.4f}, {high:.4f}] (6 items"
    assert repr(kappa).startswith(start + within)
    assert repr(kappa).endswith(end)


def test_to_dict_is_json() -> None:
    for kappa in (dh_kappa([A, B, C], ["a", "b", "a"]), dh_kappa([], []), fleiss_kappa([A, ["a", "b"]])):
        plain = json.loads(json.dumps(kappa.to_dict(), allow_nan=False))
        assert plain["n_items"] == kappa.n_items
        assert plain["value"] == (None if math.isnan(kappa.value) else kappa.value)
    assert plain["metric"] == "fleiss"
    assert plain["parts"]["L"] == []


def test_html_shows_labels_as_text() -> None:
    evil = "<script>alert(1)</script>"
    kappa = dh_kappa([[evil, evil]] * 40, [evil] * 39 + ["b"])
    page = kappa._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "undefined" in dh_kappa([], [])._repr_html_()


def test_is_read_only() -> None:
    with pytest.raises(AttributeError):
        dh_kappa([A, B], ["a", "b"]).value = 1.0  # type: ignore[misc]


def test_no_warning_and_no_numpy_error_state() -> None:
    with np.errstate(all="raise"):
        dh_kappa([A, ["a"], []], ["a", "b", None])


def test_threads_see_a_whole_standard_error_or_compute_it() -> None:
    from threading import Barrier, Thread

    drawn = simulate(60, rng=1)
    expected = dh_kappa(drawn.votes, drawn.suggested["labeler"]).se
    seen: set[float] = set()
    for _ in range(30):
        kappa, barrier = dh_kappa(drawn.votes, drawn.suggested["labeler"]), Barrier(4)

        def ask(kappa: Kappa = kappa, barrier: Barrier = barrier) -> None:
            barrier.wait()
            seen.add(kappa.se)

        threads = [Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == {expected}


def test_an_interrupted_standard_error_is_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    import dhkappa.stats.result as module

    def interrupted(*given: object) -> None:
        raise KeyboardInterrupt

    drawn = simulate(60, rng=1)
    kappa = dh_kappa(drawn.votes, drawn.suggested["labeler"])
    with monkeypatch.context() as patch:
        patch.setattr(module, "kappa_basis", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _ = kappa.se
    assert kappa.se > 0


def test_limits_by_category_stay_in_range() -> None:
    kappa = dh_kappa([["a", "a"], ["a", "b"], ["b", "b"], ["b", "a"], ["c", "c"], ["b", "c"]], list("aabbcc"))
    assert kappa.parts is not None
    C = [float(share) for share in kappa.parts.C.values()]
    for place, row in enumerate(kappa.by_category()):
        E = 2 * C[place] ** 2 - sum(share**2 for share in C)
        assert row["low"] >= 1 - 2 / (1 - E) - 1e-12  # rounding


def test_level_is_not_an_argument() -> None:
    """An unknown keyword is a TypeError, as anywhere."""
    kappa = dh_kappa([A, B], ["a", "b"])
    for call in (kappa.confidence_interval, kappa.to_dict, kappa.by_category):
        with pytest.raises(TypeError):
            call(level=0.9)  # type: ignore[call-arg]


@pytest.mark.parametrize("method", ["bootstrap", "permutation_test", "by_category", "confusion"])
def test_methods_that_need_a_defined_dh_kappa(method: str) -> None:
    assert getattr(ORDERED, method)() is not None
    for kappa in (dh_kappa([A], ["a"]), fleiss_kappa([A, B])):
        with expect_error("metric-not-supported" if kappa.exact else "kappa-undefined") as error:
            getattr(kappa, method)()
        assert error.value.message.startswith(f"{method} is not available")


def test_above_random_is_nan_if_undefined() -> None:
    assert math.isnan(dh_kappa([A], ["a"]).above_random)
    assert math.isnan(fleiss_kappa([A, B]).above_random)
    assert example().above_random == pytest.approx(34 / 67, rel=1e-15)


def test_values_of_each_metric() -> None:
    plain, panel = example(), fleiss_kappa(EXAMPLE.votes)
    assert (plain.metric, plain.exact, plain.reason) == ("dh", F(247, 544), None)
    assert (plain.baselines.random, plain.fleiss) == (-59 / 544, 59 / 104)
    assert (plain.n_items, plain.n_votes, plain.excluded, plain.n_effective) == (6, 18, Excluded(), 6)
    assert (panel.metric, panel.exact, panel.value, panel.reason) == ("fleiss", F(59, 104), 59 / 104, None)
    assert math.isnan(panel.baselines.random)
    assert math.isnan(panel.baselines.majority)
    assert (ORDERED.metric, ORDERED.exact) == ("weighted", F(35, 62))
    # Labels 1, 2, 3 on each item: (1, 0, -1), (1/2, 1/6, -1/2), (0, 1, 0) twice, (0, 1/6, 0), (-1, 0, 1)
    assert ORDERED.estimate.baselines.random == (F(1, 9) * F(7, 6) - F(26, 243)) / (1 - F(26, 243))


def test_long_fractions_are_left_out_of_json() -> None:
    assert example().to_dict()["exact"] == "247/544"
    for bits, known in ((10_000, True), (10_001, False)):
        for exact in (F(1, 2 ** (bits - 1)), F(-1 - 2 ** (bits - 1), 2 ** (bits - 2))):
            written = Kappa(replace(example().estimate, exact=exact)).to_dict()["exact"]
            assert written == (str(exact) if known else None)


def test_results_are_immutable() -> None:
    kappa = dh_kappa([A, B], ["a", "a"])
    results = [kappa, kappa.bootstrap(9, rng=1), kappa.permutation_test(), kappa.confidence_interval(), kappa.excluded]
    results += [compare([A, B], {"x": ["a", "b"], "y": ["a", "a"]})]
    for result in results:
        with pytest.raises((AttributeError, TypeError)):
            result.value = 1  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        kappa.estimate = kappa.estimate  # type: ignore[misc]


def test_comparison() -> None:
    data = simulate(120, labelers={"rule": 0.6, "llm": 0.9}, rng=2)
    found = compare(data.votes, data.suggested)
    assert found.best == "llm"
    assert found.table().column("labeler") == ["llm", "rule"]
    assert found.table().column("kappa") == [found.kappas[name].value for name in ("llm", "rule")]
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    levels = {"confidence_level", "other_annotators", "any_time"}
    assert plain.keys() == {"kappas", "differences", "not_ranked", *levels, "notes"}
    assert list(plain["kappas"]) == ["rule", "llm"]
    assert (plain["confidence_level"], plain["notes"]) == (0.95, [note.to_dict() for note in found.notes])
    assert repr(found).count("llm") >= 2
    assert found._repr_html_().count("<table>") == 2
    assert compare([A, A], {"x": ["a", "a"], "y": ["a", "a"]}).best is None


def with_weak_categories(wrong: int, items: int = 60) -> Kappa:
    """Three categories, of which some labels of b, and a few of c, are wrong."""
    votes, labels = [], []
    for category, other, errors in (("a", "c", 0), ("b", "a", wrong), ("c", "b", wrong // 3)):
        votes += [[other if place < errors else category] * 3 for place in range(items)]
        labels += [category] * items
    return dh_kappa(votes, labels)


def test_weakest_category() -> None:
    kappa = with_weak_categories(40)
    by_category = {row["category"]: row for row in kappa.by_category(1 - 0.05 / 3)}
    assert by_category["b"]["high"] < kappa.confidence_interval(0.95).low
    worst = by_category["b"]["kappa"]
    assert worst == min(row["kappa"] for row in by_category.values())
    assert weakest_category("llm", kappa, 0.95) == f"The weakest category of llm is 'b' (kappa {worst:.2f})."


def test_no_category_is_clearly_weaker() -> None:
    assert weakest_category("llm", with_weak_categories(3), 0.95) == ""
    assert weakest_category("llm", with_weak_categories(8, items=9), 0.95) == ""  # fewer than ten items
