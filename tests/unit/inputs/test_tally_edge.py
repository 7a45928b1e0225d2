"""Sums of tallies, and tally files."""

import math
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from dhkappa import DataError, Tally, audit, dh_kappa, tally


def test_sums_are_associative() -> None:
    votes, labels = [["a", "b"], ["a", "a"], ["b", "b"], ["b", "b"]], ["a", "a", "b", "b"]
    a, b, c, d = (tally(votes, labels, categories=order) for order in (["b", "a"], ["a", "b"], ["b", "a"], None))
    sums = [(a + b) + c, (a + c) + b, a + (b + c), c + (b + a), ((d + a) + b) + c, sum([c, d, b, a], Tally())]
    assert {total.categories for total in sums} == {("a", "b")}
    assert {dh_kappa(total).baselines.majority for total in sums[:4]} == {dh_kappa(sums[0]).baselines.majority}
    assert not any(total.declared for total in sums)
    assert (a + c + d).categories == ("b", "a")


def test_missing_labels_are_one_pattern() -> None:
    assert len(tally([["a", "a"]] * 2, [None, "NA"], missing=["NA"])) == 1
    assert len(tally([["a", "NA"], ["a", None], ["a", "?"]], ["a"] * 3, missing=["NA", "?"])) == 1


def test_large_sums() -> None:
    """The numbers of items and votes are both large, but not of the same pattern."""
    even = tally(counts=[[512] * 4096], suggested=[0])
    for _ in range(24):
        even = even + even
    total = even + tally(counts=[[2**21, *[0] * 4095]], suggested=[0])
    n, N = 2**24 + 1, 2**21
    R = ((n - 1) * (512 * 511) + N * (N - 1)) / (n * N * (N - 1))
    parts = dh_kappa(total).parts
    assert parts is not None
    assert float(parts.R) == pytest.approx(R, rel=1e-12)
    assert sum(parts.C.values()) == 1


def test_invalid_file_names(tmp_path: Path) -> None:
    counts = tally([["a", "b"]], ["a"])
    file = tmp_path / "file"
    file.write_text("x")
    for name in (None, 5, "", "\0", "\ud800", tmp_path, file / "under", tmp_path / ("x" * 300)):
        with pytest.raises(DataError):
            counts.save(name)  # type: ignore[arg-type]
        with pytest.raises(DataError):
            Tally.load(name)  # type: ignore[arg-type]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_long_names_links_and_permissions(tmp_path: Path) -> None:
    counts = tally([["a", "b"]], ["a"])
    long = tmp_path / ("x" * 250)
    counts.save(long)
    long.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(long)
    counts.save(str(link).encode())  # type: ignore[arg-type]
    assert link.is_symlink()
    assert long.stat().st_mode & 0o777 == 0o600
    assert Tally.load(link) == counts


def test_threads_save_to_one_file(tmp_path: Path) -> None:
    counts = tally(np.arange(6_000).reshape(-1, 3), np.arange(2_000))
    failed: list[Exception] = []

    def save() -> None:
        try:
            for _ in range(3):
                counts.save(tmp_path / "t.json")
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=save) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert Tally.load(tmp_path / "t.json") == counts


def test_files_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    code = (
        "import sys, dhkappa; dhkappa.tally([['b', 'a', 'ü'], ['c', '?']], ['a', 'd'], "
        "missing=[1, '1', 'x', '?']).save(sys.argv[1])"
    )
    written = set()
    for seed in range(4):
        path = tmp_path / f"{seed}.json"
        subprocess.run(
            [sys.executable, "-c", code, str(path)], env=os.environ | {"PYTHONHASHSEED": str(seed)}, check=True
        )
        written.add(path.read_bytes())
    assert len(written) == 1


def test_audit_of_a_tally_without_items() -> None:
    result = audit(tally([], {"gpt": [], "rule": []}, sample_weight=[], strata=[]))
    assert math.isnan(result.kappas["gpt"].value)
    assert result.problems[0].code == "no-items"
    assert result.verdict("gpt").code == "data-problem"
