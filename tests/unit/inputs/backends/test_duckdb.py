"""Connections of our own, and tables from Python columns."""

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dhkappa.inputs.backends.duckdb import connect, relation_of
from expect import expect_error
from opening import open_files

HOSTILE = ["'; DROP TABLE x; --", 'a"b""c', "back\\slash", "nul\0nul", "two\nlines", "two\r\nlines", "😀", "\u202eabc"]
HOSTILE += ["NA", "nan", "null", "None", "007", "1e3", " x ", "$1", "%s", "{0}", "x" * 10_000]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


Write = Callable[[str, str | bytes], Path]


def types(relation: duckdb.DuckDBPyRelation) -> dict[str, str]:
    return {name: str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}


class TestColumns:
    def test_columns_in_memory(self) -> None:
        relation = relation_of(
            {
                "item": [*HOSTILE, None],
                "whole": [2**63 - 1, -(2**63), *[None] * (len(HOSTILE) - 1)],
                "wide": [2**64, -(2**127), 2**127 - 1, *[None] * (len(HOSTILE) - 2)],
                "flag": [None] * len(HOSTILE) + [True],
                "mixed": [True] * len(HOSTILE) + [7],
                "nothing": [None] * (len(HOSTILE) + 1),
                'na"me\0': [""] * (len(HOSTILE) + 1),
            },
            connect(),
        )
        assert types(relation) == {
            "item": "VARCHAR",
            "whole": "BIGINT",
            "wide": "HUGEINT",
            "flag": "BOOLEAN",
            "mixed": "BIGINT",
            "nothing": "VARCHAR",
            'na"me\0': "VARCHAR",
        }
        found = list(zip(*relation.fetchall(), strict=True))
        assert found[0] == (*HOSTILE, None)
        assert found[1][:3] == (2**63 - 1, -(2**63), None)
        assert found[2][:4] == (2**64, -(2**127), 2**127 - 1, None)
        assert found[3][-2:] == (None, True)
        assert found[4][-2:] == (1, 7)
        assert found[6] == ("",) * (len(HOSTILE) + 1)

    def test_order_over_blocks(self) -> None:
        texts = [None if row % 5 == 0 else f"é{row}" for row in range(150_000)]
        assert relation_of({"a": texts, "b": range(150_000)}, connect()).fetchall() == list(
            zip(texts, range(150_000), strict=True)
        )

    def test_no_rows(self) -> None:
        assert relation_of({"a": [], "b": []}, connect()).fetchall() == []

    @pytest.mark.parametrize(
        ("columns", "code"),
        [
            ({"a": [1, "x"]}, "mixed-types"),
            ({"a": [0.5]}, "mixed-types"),
            ({"a": [2**127]}, "integer-too-large"),
            ({"a": ["x\ud800"]}, "not-utf8"),
            ({"a": [1], "A": [1]}, "ambiguous-columns"),
        ],
    )
    def test_bad_columns(self, columns: dict[str, list[Any]], code: str) -> None:
        with expect_error(code):
            relation_of(columns, connect())


class TestEngine:
    def test_a_relation_keeps_its_connection(self, write: Write) -> None:
        relation = open_files(write("a.csv", "a\n1\n")).project("a || 'x' AS b")
        other = relation_of({"a": [1]}, connect()).project("a + 1 AS b")
        gc.collect()
        assert relation.fetchall() == [("1x",)]
        assert other.fetchall() == [(2,)]

    def test_two_tables_on_one_connection_join(self, write: Write) -> None:
        connection = connect()
        votes = open_files(write("a.csv", "a,b\n1,x\n"), connection=connection)
        items = relation_of({"a": ["1"], "c": [True]}, connection)
        assert votes.join(items, "a").fetchall() == [("1", "x", True)]

    def test_nothing_is_fetched_from_the_network(self) -> None:
        connection = connect()
        for setting in ("autoinstall_known_extensions", "autoload_known_extensions"):
            assert connection.execute("SELECT current_setting(?)", [setting]).fetchall() == [(False,)]

    def test_what_does_not_fit_in_memory_spills_into_a_private_folder(self) -> None:
        connection = connect()
        connection.execute("SET memory_limit = '60MB'; SET threads = 2")
        [(spill,)] = connection.execute("SELECT current_setting('temp_directory')").fetchall()
        assert not Path(spill).exists()
        assert Path(spill).parent.stat().st_mode & 0o777 == 0o700
        many = "SELECT md5(i::VARCHAR) AS a FROM range(1500000) t(i)"
        assert connection.execute(f"SELECT count(*) FROM ({many} ORDER BY a)").fetchall() == [(1_500_000,)]
        connection.execute(f"CREATE TEMP TABLE sorted AS {many} ORDER BY a")
        assert list(Path(spill).iterdir()) != []
        connection.close()
        assert not Path(spill).exists()

    def test_needs_neither_pandas_nor_pyarrow_and_leaves_nothing_behind(self, write: Write, tmp_path: Path) -> None:
        path = write("a.csv", "a\n1\n")
        script = (
            "import sys, dhkappa.inputs.files as f, dhkappa.inputs.backends.duckdb as d;"
            "before = 'duckdb' in sys.modules;"
            f"f.open_files([{str(path)!r}], d.connect()).fetchall();"
            "d.relation_of({'a': ['x']}, d.connect()).fetchall();"
            "print(before, sorted({'pandas', 'pyarrow', 'ibis'} & set(sys.modules)))"
        )
        spill = tmp_path / "spill"
        spill.mkdir()
        environment = {**os.environ, "TMPDIR": str(spill)}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.split("\n")[0] == "False []"
        assert list(spill.iterdir()) == []
