"""History: the change since the best earlier audit, whose limits, p-value and words follow one rule."""

import math
import re
from types import SimpleNamespace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import norm

from dhkappa.report.history import best_sentence
from dhkappa.stats.change import Change, Measured
from dhkappa.stats.history import History
from dhkappa.stats.intervals import ConfidenceInterval

Kappa = tuple[float, float]  # a value and its standard error


def entry(name: str, kappa: Kappa) -> Any:
    """Return an audit whose kappa has normal confidence limits."""
    value, se = kappa

    def measured(labeler: str, level: float) -> Measured:
        half = float(norm.ppf((1 + level) / 2)) * se
        made: Any = SimpleNamespace(value=value, reason=None)
        return Measured(made, ConfidenceInterval(value - half, value + half, level, "beta"))

    return SimpleNamespace(name=name, kappas={"llm": None}, measured=measured)


def history(kappas: list[Kappa], level: float) -> History:
    return History(tuple(entry(f"week {place}", kappa) for place, kappa in enumerate(kappas)), ("llm",), level)


def agree(change: Change, text: str) -> None:
    """Check that the words, the p-value and the interval of a change say the same."""
    outside = change.low > 0 or change.high < 0
    if min(abs(change.low), abs(change.high)) > 1e-9:
        assert change.significant == outside == (change.pvalue < 1 - change.confidence_level)
    assert ("no significant change" in text) == (not change.significant)
    assert ("a significant change" in text) == change.significant
    low, high = map(float, re.findall(r"% CI (-?[\d.]+) to (-?[\d.]+)", text)[0])
    assert change.significant or low <= 0 <= high
    assert not change.significant or not low < 0 < high


KAPPAS = st.lists(st.tuples(st.floats(-0.2, 1), st.floats(0.01, 0.1)), min_size=2, max_size=8)


@given(KAPPAS, st.sampled_from([0.8, 0.95, 0.99]))
@example([(0.9, 0.2), (0.7, 0.01), (0.7, 0.01), (0.45, 0.01)], 0.95)  # significant by Holm's p-value alone
def test_words_never_contradict_the_interval_since_the_best(kappas: list[Kappa], level: float) -> None:
    change = history(kappas, level).since_best("llm")
    assert change is not None
    assert change.before == max(value for value, _ in kappas[:-1])
    agree(change, best_sentence("llm", change))


@given(KAPPAS, st.sampled_from([0.8, 0.95, 0.99]))
def test_since_best_is_bonferroni(kappas: list[Kappa], level: float) -> None:
    """The two-sample z-test of the best and the last, its p-value times the number of earlier audits."""
    change = history(kappas, level).since_best()
    assert change is not None
    best, last, n = max(kappas[:-1], key=lambda kappa: kappa[0]), kappas[-1], len(kappas) - 1
    same = [kappa for kappa in kappas[:-1] if kappa[0] == best[0]]
    expected = [min(1, n * 2 * norm.sf(abs(last[0] - one[0]) / math.hypot(last[1], one[1]))) for one in same]
    assert any(math.isclose(change.pvalue, pvalue, rel_tol=1e-6, abs_tol=1e-12) for pvalue in expected)
