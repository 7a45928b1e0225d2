"""Votes packed into whole numbers: digits that fit, digits that do not, and numbers of more than 32 bits."""

import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from dhkappa import dh_kappa, tally
from dhkappa.inputs.aggregate import PackedCounts
from expect import expect_error


def test_digits_are_as_wide_as_fits() -> None:
    for m, bits, words in [(1, 16, 1), (3, 16, 1), (6, 8, 1), (13, 4, 1), (14, 4, 2), (208, 4, 16)]:
        packed = PackedCounts.of(range(m), 0)
        assert packed is not None
        assert (packed.bits, len(packed.names)) == (bits, words)
    assert PackedCounts.of(range(209), 0) is None
    assert PackedCounts.of(range(3), 33) is None
    nobody = PackedCounts.of((), 3)
    assert nobody is not None
    assert nobody.names == ["word_0"]


def test_counts_come_back_from_numbers() -> None:
    packed = PackedCounts.of("abcdefghijklmnop", 0)
    assert packed is not None
    assert packed.names == ["word_0", "word_1"]
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 16, (50, 16))
    words = {
        name: [
            sum(int(votes) << 4 * digit for digit, votes in enumerate(row[place * 13 : place * 13 + 13]))
            for row in counts
        ]
        for place, name in enumerate(packed.names)
    }
    assert np.array_equal(packed.counts({**words, "items": [1] * 50}), counts)  # type: ignore[arg-type]
    for wrong in (-1, 1 << 52):
        assert packed.counts({"word_0": [wrong], "word_1": [0], "items": [1]}) is None


def table(columns: dict[str, list[Any]]) -> duckdb.DuckDBPyRelation:
    connection = duckdb.connect()
    names = ", ".join(f"unnest(${place}::VARCHAR[]) AS {name}" for place, name in enumerate(columns, 1))
    connection.execute(f"CREATE TABLE t AS SELECT {names}", list(columns.values()))
    return connection.table("t")


@pytest.mark.parametrize("annotators", [7, 40])
def test_many_annotators_take_numbers_of_more_than_32_bits(annotators: int) -> None:
    rng = np.random.default_rng(annotators)
    votes = rng.choice(np.array(["a", "b", "c", "d", "e", "f", "g", None], object), (60, annotators))
    labels = rng.choice(np.array(["a", "g"], object), 60)
    columns = {f"ann_{place}": column for place, column in enumerate(votes.T.tolist())}
    assert tally(table(columns | {"suggested": labels.tolist()}), "suggested") == tally(votes, {"suggested": labels})


@pytest.mark.parametrize("most", [15, 16, 17, 300, 40_000])
def test_digits_that_prove_too_narrow(most: int) -> None:
    categories = [f"c{place}" for place in range(13)]  # digits of 4 bits, and 13 of them fill a number
    votes = [[categories[-1]] * most, ["c0", "c12", "c1"], ["c5"] * 14 + categories]
    labels = ["c12", "c12", "c5"]
    rows = [(str(item), vote, labels[item]) for item, cast in enumerate(votes) for vote in cast]
    item, label, suggested = map(list, zip(*rows, strict=True))
    found = tally(
        table({"item": item, "label": label, "suggested": suggested}), "suggested", item="item", label="label"
    )
    assert found == tally(votes, {"suggested": labels})


def test_votes_that_are_both_too_many_and_unlisted() -> None:
    cast = table({"item": ["x"] * 20 + ["y"], "label": [f"c{place % 13}" for place in range(20)] + ["c0"]})
    wide = {"item": ["x"], "suggested": ["c0"]}
    cast.create_view("votes")
    with expect_error("ids-not-joined"):
        _with_items(cast, wide)
    assert _with_items(cast, wide, unlisted="unlabeled").n_votes == 21


def _with_items(cast: duckdb.DuckDBPyRelation, columns: dict[str, list[Any]], **words: Any) -> Any:
    literals = ", ".join("('" + "', '".join(row) + "')" for row in zip(*columns.values(), strict=True))
    items = cast.query("t", f"FROM (VALUES {literals}) v({', '.join(columns)})")
    return tally(cast, "suggested", item="item", label="label", items=items, **words)


def test_threads_read_files_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("suggested,ann_1,ann_2\n" + "a,a,a\nb,a,b\n" * 50)
    found: list[Fraction | BaseException | None] = []

    def count() -> None:
        try:
            found.extend(dh_kappa(path, "suggested").exact for _ in range(10))
        except BaseException as error:  # or the thread would end in silence
            found.append(error)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [dh_kappa([["a", "a"], ["a", "b"]] * 50, ["a", "b"] * 50).exact] * 40


def test_ids_that_do_not_join_are_shown_from_both_tables() -> None:
    cast = table({"item": ["T-0", "T-1"], "label": ["a", "b"]})
    with expect_error("ids-not-joined", "items") as caught:
        _with_items(cast, {"item": ["T-00", "T-01"], "suggested": ["a", "b"]})
    assert "the data: 'T-0', 'T-1'; the items table: 'T-00', 'T-01'" in caught.value.message
    assert "leading zeros" in caught.value.hint
    assert "No vote" in caught.value.message
    assert "unlisted" not in caught.value.hint
    with expect_error("ids-not-joined", "items") as caught:
        _with_items(cast, {"item": ["T-0"], "suggested": ["a"]})
    assert "the data: 'T-1'; the items table: 'T-0'" in caught.value.message
    assert "$unlisted" in caught.value.hint


@pytest.mark.parametrize(("role", "code"), [("sample_weight", "invalid-weight"), ("strata", "missing-stratum")])
def test_unlisted_items_have_neither_weight_nor_stratum(role: str, code: str) -> None:
    cast = table({"item": ["x", "y"], "label": ["a", "b"]})
    with expect_error(code, role) as caught:
        _with_items(cast, {"item": ["x"], "suggested": ["a"], "w": ["1"]}, unlisted="unlabeled", **{role: "w"})
    assert "$unlisted" in caught.value.hint
