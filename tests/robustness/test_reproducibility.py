"""The same results from all engines, row orders and partitions; very large counts; other libraries: short versions."""

from decimal import Decimal
from pathlib import Path
from statistics import NormalDist

import pandas  # noqa: F401  # the file is left out if a library is missing
import polars  # noqa: F401
import pyarrow  # noqa: F401
import pytest

import dhkappa
import fleiss_libraries
import large_counts
import same_results
from dhkappa.stats.intervals import beta_quantile

WAYS = ("lists", "numpy votes", "numpy counts", "pandas", "polars", "duckdb", "csv files")


@pytest.mark.parametrize("name", ["dynasent_sst_dev_revalidated", "published/irrcac_raw4raters"])
def test_same_results(name: str, shared_data: Path, tmp_path: Path) -> None:
    ways = {way: count for way, count in same_results.ways(tmp_path)[0].items() if way in WAYS}
    found = same_results.run(same_results.load(shared_data / name), ways, parts=[7])
    assert found.wrong == []
    assert found.kappas > 0
    assert found.combinations.total() == len(ways)


def test_differences_are_found(shared_data: Path) -> None:
    [whole] = same_results.load(shared_data / "dynasent_sst_dev_revalidated")
    expected = same_results.results(same_results.by_lists(whole))
    label = whole.votes["label"][0]
    whole.votes["label"][0] = next(other for other in whole.votes["label"] if other != label)
    summary = same_results.Summary()
    summary.compare("one vote changed", same_results.results(same_results.by_lists(whole)), expected)
    assert {line.split()[3] for line in summary.wrong} >= {"tally", "Fleiss", "audit"}


def test_equal_tallies_have_equal_files(tmp_path: Path) -> None:
    votes = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "b"]]
    labels = {"rule": ["b", "a", "b", "a"], "llm": ["a", "b", "b", "a"]}
    reverse = {name: given[::-1] for name, given in labels.items()}
    order = ["b", "a"]
    halves = [
        dhkappa.tally(votes[part], {name: given[part] for name, given in labels.items()}, categories=order)
        for part in (slice(2, 4), slice(0, 2))
    ]
    tallies = (
        dhkappa.tally(votes, labels, categories=order),
        dhkappa.tally(votes[::-1], reverse, categories=order),
        sum(halves, dhkappa.Tally()),
    )
    for place, tally in enumerate(tallies):
        tally.save(tmp_path / f"{place}.json")
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


@pytest.mark.parametrize("n", [2**53 + 1, 2**62])
def test_large_counts(n: int, tmp_path: Path) -> None:
    assert large_counts.run_size(n, tmp_path).wrong == []


def test_too_many_items(tmp_path: Path) -> None:
    assert large_counts.too_many(tmp_path) == []


@pytest.mark.parametrize("n", [10**6, 2**55 + 7])
def test_large_strata(n: int) -> None:
    assert large_counts.strata(n) == []


@pytest.mark.parametrize("size", [1e10, 1e15, 4e18])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
@pytest.mark.parametrize("p", [0.005, 0.025, 0.975])
def test_quantiles_of_large_samples(size: float, share: float, p: float) -> None:
    """The Cornish-Fisher expansion: normal, with a correction for skewness."""
    a, b = size * share, size * (1 - share)
    z, sd = NormalDist().inv_cdf(p), (share * (1 - share) / size) ** 0.5
    place = (Decimal(beta_quantile(a, b, p)) - Decimal(a) / Decimal(a + b)) / Decimal(sd)
    skewness = 2 * (1 - 2 * share) / (size * share * (1 - share)) ** 0.5
    # 2e-16 is the rounding of the quantile; the next term of the expansion is below 1e-9
    assert float(place) == pytest.approx(z + skewness * (z**2 - 1) / 6, abs=2e-16 / sd + 1e-9)


def test_fleiss_kappa_of_other_libraries() -> None:
    for library in ("irrCAC", "krippendorff", "statsmodels"):
        pytest.importorskip(library)
    found = fleiss_libraries.compare(36)
    assert [line for one in found.values() for line in one.wrong] == []
    assert all(one.compared for one in found.values())
