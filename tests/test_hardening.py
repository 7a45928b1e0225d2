"""What hostile or unlucky input once did: each case here went wrong before it was a test."""

import enum
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dhkappa import DataError, Tally, dh_kappa, fleiss_kappa, simulate, tally
from dhkappa.core import patterns


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64, np.float64, object])
@pytest.mark.parametrize(("n", "N", "m"), [(1, 3, 51), (40, 3, 3), (40, 3, 40), (40, 20, 3), (40, 20, 60), (40, 7, 40)])
def test_the_callers_arrays_are_never_written_to(n: int, N: int, m: int, dtype: type[Any], order: Any) -> None:
    rng = np.random.default_rng(n + N + m)
    votes = np.array(rng.integers(0, m, (n, N)), dtype, order=order)
    votes[0, 0] = 0
    suggested = votes[:, 0].copy()
    votes.flags.writeable = suggested.flags.writeable = False
    before = votes.copy()
    first = dh_kappa(votes, suggested).exact
    assert (votes == before).all()
    assert dh_kappa(before.tolist(), suggested.tolist()).exact == first
    counts = np.array(rng.integers(0, 4, (n, m)), order=order)
    counts.flags.writeable = False
    dh_kappa(counts=counts, suggested=rng.integers(0, m, n))


def test_dataframes_of_small_integers() -> None:
    grid = np.random.default_rng(0).integers(0, 20, (30, 3), dtype=np.uint8)
    assert dh_kappa(pd.DataFrame(grid), grid[:, 0]).exact == dh_kappa(grid.tolist(), grid[:, 0].tolist()).exact


@pytest.mark.parametrize("dtype", [np.uint64, np.uint32, np.float16, np.float64, object])
def test_counts_of_every_type_give_the_same_tally(dtype: type[Any]) -> None:
    counts = np.random.default_rng(0).integers(0, 11, (300, 16))
    suggested = np.arange(300) % 16
    assert tally(counts=counts.astype(dtype), suggested=suggested) == tally(counts=counts, suggested=suggested)


@pytest.mark.parametrize("top", [255, 256, 65_535, 65_536, 2**31 - 1])
def test_key_spaces_at_the_edge_of_a_word(top: int) -> None:
    assert fleiss_kappa(counts=[[top], [2]]).n_votes == top + 2
    kappa = dh_kappa(counts=[[top - 1, 0], [1, 1]], suggested=[0, 1])
    assert kappa.exact == dh_kappa(counts=np.array([[top - 1, 0, 0], [1, 1, 0]]), suggested=[0, 1]).exact
    if top < 10**5:
        assert fleiss_kappa(np.arange(top + 1)[:, None]).dropped.one_vote == top + 1


def test_masked_counts_are_refused() -> None:
    counts = np.ma.array([[2, 7], [0, 2]], mask=[[False, True], [False, False]])
    with pytest.raises(DataError, match="counts has masked cells"):
        dh_kappa(counts=counts, suggested=[0, 1])
    with pytest.raises(DataError, match="suggested has masked cells"):
        dh_kappa(counts=[[2, 7], [0, 2]], suggested=np.ma.array([[1, 0], [0, 1]], mask=counts.mask))
    assert dh_kappa(counts=np.ma.array([[2, 0], [0, 2]]), suggested=[0, 1]).exact == 1


class Odd(str):
    """Text that says it equals everything."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


class Shy:
    def __repr__(self) -> str:
        raise RuntimeError


class Bits(enum.Flag):
    A = 1
    B = 2


class Level(enum.IntEnum):
    ONE = 1


def test_text_with_its_own_idea_of_equality() -> None:
    assert dh_kappa([[Odd("a"), Odd("a")], [Odd("b"), Odd("b")]], [Odd("a"), Odd("b")]).exact == 1


@pytest.mark.parametrize(
    "label",
    [Bits(0), np.datetime64("2020-01-01", "ns"), np.timedelta64(5, "ns"), Shy(), 10**5000, float(2**53), 1e300, b"a"],
    ids=lambda label: type(label).__name__,
)
def test_values_that_are_no_labels(label: Any) -> None:
    for votes in ([["a", "b"], ["a", label]], [["a"], ["a", label]]):
        with pytest.raises(DataError, match="at item 1"):
            dh_kappa(votes, ["a", "b"])
    with pytest.raises(DataError, match="suggested holds"):
        dh_kappa([["a", "b"], ["a", "a"]], ["a", label])


def test_floats_that_cannot_tell_integers_apart_are_refused() -> None:
    with pytest.raises(DataError, match="cannot tell such integers apart"):
        dh_kappa(np.array([[2.0**53, np.nan], [7.0, 7.0]]), [7, 7])


def test_integer_beside_boolean_whatever_the_order() -> None:
    rows: list[list[Any]] = [[True, Level.ONE], [Level.ONE, True]]
    assert {repr(dh_kappa([row, [0, 0]], [0, 1]).categories) for row in rows} == {"(0, 1)"}
    one, other = tally([[0, 1]], [1], categories=[0, 1]), tally([[False, True]], [True], categories=[False, True])
    assert repr((one + other).categories) == repr((other + one).categories) == "(0, 1)"


def test_sums_of_tallies_do_not_depend_on_grouping() -> None:
    votes, labels = [["a", "b"], ["a", "a"], ["b", "b"], ["b", "b"]], ["a", "a", "b", "b"]
    a, b, c, d = (tally(votes, labels, categories=order) for order in (["b", "a"], ["a", "b"], ["b", "a"], None))
    sums = [(a + b) + c, (a + c) + b, a + (b + c), c + (b + a), ((d + a) + b) + c, sum([c, d, b, a], Tally())]
    assert {total.categories for total in sums} == {("a", "b")}
    assert {dh_kappa(total).ceiling for total in sums[:4]} == {dh_kappa(sums[0]).ceiling}
    assert not any(total.declared for total in sums)
    assert (a + c + d).categories == ("b", "a")


def test_patterns_stand_once_however_missing_is_spelled() -> None:
    assert len(tally([["a", "a"]] * 2, [None, "NA"], missing=["NA"])) == 1
    assert len(tally([["a", "NA"], ["a", None], ["a", "?"]], ["a"] * 3, missing=["NA", "?"])) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"categories": {"a", "b"}}, "a set has no order"),
        ({"categories": []}, "categories is empty"),
        ({"categories": ["a", "b"], "missing": ["b"]}, "categories and missing both name 'b'"),
        ({"missing": b"NA"}, "missing must be a list of labels"),
        ({"missing": np.array([1.5, 2])}, "missing must be a list of labels"),
    ],
)
def test_options_that_contradict(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        dh_kappa([["a", "b"]], ["a"], **arguments)


@pytest.mark.parametrize("extra", [np.array([1, 2]), pd.Series([1]), pd.NA, ["NA"]], ids=repr)
def test_missing_beside_a_tally(extra: Any) -> None:
    with pytest.raises(DataError, match="leave out missing"):
        dh_kappa(tally([["a", "b"]], ["a"]), missing=extra)


@pytest.mark.parametrize(
    ("counts", "suggested"),
    [
        ([[2, 0], [0, 2]], [["a"], ["b", "c"]]),
        ([["3", "0"]], [0]),
        (np.array([[1j, 0]]), [0]),
        (np.array([[np.inf, 0]], np.float16), [0]),
        (np.array([[5, 0]], "m8[s]"), [0]),
        ([[10**400, 0]], [0]),
    ],
    ids=["ragged labels", "text", "complex", "half infinity", "durations", "huge"],
)
def test_counts_that_are_not(counts: Any, suggested: Any) -> None:
    with pytest.raises(DataError):
        dh_kappa(counts=counts, suggested=suggested)


def test_one_long_label_beside_counts_costs_no_memory() -> None:
    labels = ["x" * 10**6, *["y"] * 4999]
    kappa = dh_kappa(counts=[[2, 0]] + [[0, 2]] * 4999, suggested=labels, categories=["x" * 10**6, "y"])
    assert kappa.exact == 1


def test_matrices_and_empty_matrices() -> None:
    grid = [[1, 1], [2, 2], [1, 2]]
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix(grid)
    assert dh_kappa(matrix, [1, 2, 2]).exact == dh_kappa(grid, [1, 2, 2]).exact
    empty: list[Any] = [[], np.zeros((0, 2)), np.zeros((0, 0))]
    for counts in empty:
        assert dh_kappa(counts=counts, suggested=[], categories=["a", "b"]).n_items == 0
    assert dh_kappa(counts=np.zeros((0, 0)), suggested=np.zeros((0, 0))).n_items == 0


def test_a_fraction_too_long_to_write() -> None:
    counts = np.random.default_rng(0).integers(0, 10**6, (300, 3))
    kappa = dh_kappa(counts=counts, suggested=np.arange(300) % 3)
    assert kappa.exact is not None
    assert json.loads(json.dumps(kappa.to_dict()))["exact"] is None
    assert kappa.value == float(kappa.exact)


def test_many_columns_are_quick() -> None:
    """Products of a million bases, or a key of a million digits, would take minutes."""
    assert fleiss_kappa(counts=np.ones((3, 300_000), np.uint8)).n_votes == 900_000
    assert fleiss_kappa(np.zeros((3, 300_000), np.uint8)).n_votes == 900_000


def test_sums_of_few_items_whose_bound_is_large() -> None:
    """Item and vote numbers are both large, though never on the same pattern."""
    even = tally(counts=[[512] * 4096], suggested=[0])
    for _ in range(24):
        even = even + even
    total = even + tally(counts=[[2**21, *[0] * 4095]], suggested=[0])
    n, N = 2**24 + 1, 2**21
    R = ((n - 1) * (512 * 511) + N * (N - 1)) / (n * N * (N - 1))
    parts = dh_kappa(total).parts
    assert parts is not None
    assert float(parts.R) == pytest.approx(R, rel=1e-12)  # the right side is rounded a few times
    assert sum(parts.C.values()) == 1


def test_merging_while_tables_gather(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    votes, labels = rng.integers(0, 60, (400, 20)), rng.integers(0, 60, 400)
    expected = tally(votes, labels)
    monkeypatch.setattr(patterns, "BLOCK", 2)
    monkeypatch.setattr("dhkappa.core.counting.BLOCK", 30)
    assert tally(votes, labels) == expected
    assert tally(votes.tolist(), labels.tolist()) == expected


def test_rows_that_do_not_ascend_end_in_an_error_and_not_in_a_loop() -> None:
    table = tally([["a", "b"]], ["a"]).patterns
    wrong = patterns.Patterns(table.suggested, table.start, table.code[::-1].copy(), table.votes, table.items)
    with pytest.raises(RuntimeError, match="do not ascend"):
        patterns.stack([table, wrong]).merged()


class TestFiles:
    def test_names_that_cannot_be(self, tmp_path: Path) -> None:
        counts = tally([["a", "b"]], ["a"])
        file = tmp_path / "file"
        file.write_text("x")
        for name in (None, 5, "", "\0", "\ud800", tmp_path, file / "under", tmp_path / ("x" * 300)):
            with pytest.raises(DataError):
                counts.save(name)  # type: ignore[arg-type]
            with pytest.raises(DataError):
                Tally.load(name)  # type: ignore[arg-type]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]

    def test_long_names_links_and_modes(self, tmp_path: Path) -> None:
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

    def test_threads_that_save_to_one_name(self, tmp_path: Path) -> None:
        counts = tally(np.arange(30_000).reshape(-1, 3), np.arange(10_000))
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

    def test_bytes_do_not_depend_on_the_hash_seed(self, tmp_path: Path) -> None:
        code = (
            "import sys, dhkappa; dhkappa.tally([['b', 'a', 'ü'], ['c', '?']], ['a', 'd'], "
            "missing=[1, '1', 'x', '?']).save(sys.argv[1])"
        )
        written = set()
        for seed in range(4):
            path = tmp_path / f"{seed}.json"
            subprocess.run([sys.executable, "-c", code, str(path)], env={"PYTHONHASHSEED": str(seed)}, check=True)
            written.add(path.read_bytes())
        assert len(written) == 1

    def test_a_process_killed_while_saving_leaves_the_old_file_or_the_new(self, tmp_path: Path) -> None:
        path = tmp_path / "t.json"
        old = tally(np.arange(60_000).reshape(-1, 3), np.arange(20_000))
        old.save(path)
        code = (
            "import sys, numpy, dhkappa; t = dhkappa.tally(numpy.arange(90000).reshape(-1, 3), numpy.arange(30000)); "
            "print('go', flush=True)\nwhile True: t.save(sys.argv[1])"
        )
        new = tally(np.arange(90_000).reshape(-1, 3), np.arange(30_000))
        for delay in (0.02, 0.1, 0.2, 0.31):
            process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
            assert process.stdout is not None
            process.stdout.readline()
            threading.Event().wait(delay)
            process.kill()
            process.wait()
            process.stdout.close()
            assert Tally.load(path) in (old, new)


@pytest.mark.parametrize(
    "call",
    [
        lambda: simulate(10, annotators=2.5),  # type: ignore[arg-type]
        lambda: simulate(10, prevalence="abc"),  # type: ignore[arg-type]
        lambda: simulate(10, prevalence=[10**400, 1, 1]),
        lambda: simulate(10, prevalence=[1j, 1, 1]),  # type: ignore[list-item]
        lambda: simulate(10, rng="abc"),  # type: ignore[arg-type]
        lambda: simulate(10, rng=-1),
        lambda: simulate(10**30),
        lambda: simulate(10, accuracy="high"),  # type: ignore[arg-type]
    ],
)
def test_simulate_refuses(call: Callable[[], object]) -> None:
    with pytest.raises(DataError):
        call()


def test_simulate_takes_numpy_numbers() -> None:
    drawn = simulate(np.int64(4), annotators=np.int64(2), accuracy=np.float32(0.5), prevalence=[1e308] * 3)  # type: ignore[arg-type]
    assert drawn.votes.shape == (4, 2)
