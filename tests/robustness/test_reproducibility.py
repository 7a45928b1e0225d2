"""One set of bits by any engine, order and split; very many items; Fleiss' kappa beside its peers: in short."""

from decimal import Decimal
from pathlib import Path

import pytest
from dhkappa.stats.quantiles import beta_quantile

import dhkappa

pytest.importorskip("pandas")
pytest.importorskip("polars")
pytest.importorskip("pyarrow")

import fleiss_peers
import many_items
import same_bits

WAYS = ("lists", "numpy votes", "pandas", "polars", "duckdb", "csv files")


@pytest.mark.parametrize("name", ["dynasent_sst_dev_revalidated", "published/irrcac_raw4raters"])
def test_one_set_of_bits(name: str, shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(same_bits, "plans", lambda *_: [(7, 2)])
    ways = {way: count for way, count in same_bits.ways()[0].items() if way in WAYS}
    found = same_bits.run(same_bits.load(shared_data / name), ways)
    assert found.wrong == []
    assert found.values > 0
    assert sum(found.combinations.values()) == len(ways) + 1


def test_a_difference_would_be_seen(shared_data: Path, tmp_path: Path) -> None:
    """One vote changed in one of seven parts changes the bits that are compared."""
    [whole] = same_bits.load(shared_data / "dynasent_sst_dev_revalidated")
    first = same_bits.bits(same_bits.by_lists(whole, tmp_path))
    label = whole.votes["label"][0]
    whole.votes["label"][0] = next(other for other in whole.votes["label"] if other != label)
    found = same_bits.Found()
    same_bits._compare(whole, "lists", same_bits.by_lists, 7, 1, first, tmp_path, found)
    assert {line.split(": ")[1] for line in found.wrong} >= {"tally", "Fleiss", "audit"}


def test_equal_tallies_are_equal_files(tmp_path: Path) -> None:
    """The order in which labels of several labelers turn up does not show."""
    votes = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "b"]]
    labels = {"rule": ["b", "a", "b", "a"], "llm": ["a", "b", "b", "a"]}
    turned = {name: given[::-1] for name, given in labels.items()}
    order = ["b", "a"]
    dhkappa.tally(votes, labels, categories=order).save(tmp_path / "one.json")
    dhkappa.tally(votes[::-1], turned, categories=order).save(tmp_path / "two.json")
    halves = [
        dhkappa.tally(votes[part], {name: given[part] for name, given in labels.items()}, categories=order)
        for part in (slice(2, 4), slice(0, 2))
    ]
    sum(halves, dhkappa.Tally()).save(tmp_path / "three.json")
    assert len({(tmp_path / f"{name}.json").read_bytes() for name in ("one", "two", "three")}) == 1


@pytest.mark.parametrize("n", [10**9, 2**53 + 1, 2**62])
def test_many_items(n: int, tmp_path: Path) -> None:
    assert many_items.run_size(n, tmp_path, command=False).wrong == []


def test_more_items_than_a_tally_holds(tmp_path: Path) -> None:
    told, wrong = many_items.refused(tmp_path)
    assert wrong == []
    assert len(told) == 9


@pytest.mark.parametrize("n", [10**6, 2**55 + 7])
def test_strata_of_many_items_are_exact(n: int) -> None:
    assert many_items.strata_exact(n) == []


@pytest.mark.parametrize("size", [1e10, 1e15, 4e18])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
@pytest.mark.parametrize("pvalue", [0.005, 0.025, 0.975])
def test_quantiles_of_huge_samples(size: float, share: float, p: float) -> None:
    """So many items are nearly normal: mean, deviation and, by its skewness, a little more."""
    from statistics import NormalDist

    a, b = size * share, size * (1 - share)
    z, sd = NormalDist().inv_cdf(p), (share * (1 - share) / size) ** 0.5
    place = (Decimal(beta_quantile(a, b, p)) - Decimal(a) / Decimal(a + b)) / Decimal(sd)
    skewness = 2 * (1 - 2 * share) / (size * share * (1 - share)) ** 0.5
    # A float near the mean is known to 1e-16, which is so much of a deviation; kurtosis is below 1e-9.
    assert float(place) == pytest.approx(z + skewness * (z**2 - 1) / 6, abs=2e-16 / sd + 1e-9)


def test_fleiss_kappa_beside_its_peers() -> None:
    for library in ("irrCAC", "krippendorff", "statsmodels"):
        pytest.importorskip(library)
    found = fleiss_peers.compare(36)
    assert [line for one in found.values() for line in one.wrong] == []
    assert all(one.compared for one in found.values())
