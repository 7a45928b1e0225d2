"""Files are found by path or pattern; whatever cannot be read is named."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dhkappa.errors import DataError
from dhkappa.inputs.backends.duckdb import connect, reading
from opening import open_files


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


Write = Callable[[str, str | bytes], Path]


def rows(path: Any) -> list[tuple[Any, ...]]:
    relation = open_files(path)
    with reading():
        return relation.fetchall()


def refusal(path: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        rows(path)
    return caught.value


def parquet(path: Path, query: str) -> Path:
    connect().execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path


class TestPaths:
    @pytest.mark.parametrize(
        "name",
        [
            *("a b.csv", "it's.csv", 'say "x".csv', "a[b].csv", "a*.csv", "a?.csv", "[.csv", "😀.csv", "a%20b.csv"),
            *("a\nb.csv", "-.csv", "'; DROP TABLE x; --.csv", "a{b,c}.csv", "$HOME.csv", "back\\slash.csv", "~.csv"),
        ],
    )
    def test_a_name_is_only_a_name(self, write: Write, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        path = write(name, "a\n1\n")
        write("ab.csv", "a\n2\n")
        assert rows(path) == rows([str(path)]) == [("1",)]
        monkeypatch.chdir(path.parent)
        assert rows(name) == [("1",)]

    def test_json_and_parquet_take_names_the_same_way(self, write: Write, tmp_path: Path) -> None:
        write("a.jsonl", '{"a": 2}')
        assert rows(write("[a].jsonl", '{"a": 1}')) == [(1,)]
        parquet(tmp_path / "a.parquet", "SELECT 2 a")
        parquet(tmp_path / "[a].parquet", "SELECT 1 a")
        assert rows(tmp_path / "[a].parquet") == [(1,)]

    def test_home(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(write("a.csv", "a\n1\n").parent))
        assert rows("~/a.csv") == [("1",)]

    def test_no_such_file(self, write: Write) -> None:
        path = write("votes.csv", "a\n")
        wrong = str(path.with_name("vote.csv"))
        assert "'votes.csv'" in refusal(wrong).hint
        others = [path.parent / "nowhere" / "votes.csv", path / "votes.csv", path.with_name("*.parquet")]
        for absent in [wrong, path.with_name("Quite-different"), *others, f"{path}\0", f"{path.parent}/*\0"]:
            assert refusal(absent).code == "file-not-found"

    def test_a_folder(self, write: Write) -> None:
        write("b/votes.tsv", "a\n")
        folder = write("b/read.me", "").parent
        error = refusal(folder)
        assert error.code == "path-is-folder"
        assert str(folder / "*.tsv") in error.hint
        assert rows(folder / "*.tsv") == []
        (folder / "votes.tsv").unlink()
        assert refusal(folder).hint == ""

    def test_unknown_kind(self, write: Write) -> None:
        assert refusal(write("votes.XLS", "x")).code == refusal(write("votes.ods", "x")).code == "spreadsheet"
        error = refusal(write("votes.dat", "x"))
        assert error.code == "unknown-file-type"
        assert ".csv, .csv.gz, .tsv," in error.hint

    def test_addresses(self) -> None:
        for url in ("https://user:hush@example.org/a.csv", "s3://bucket/a.parquet", "file:///a.csv"):
            error = refusal(url)
            assert error.code == "url-not-supported"
            assert "hush" not in str(error)

    def test_what_is_no_path(self) -> None:
        for wrong in (7, [7], []):
            assert refusal(wrong).code == "invalid-path"

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
    def test_a_pipe(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "a.csv")
        assert refusal(tmp_path / "a.csv").code == "not-a-regular-file"

    def test_a_name_that_is_not_utf8(self, tmp_path: Path) -> None:
        try:
            Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xe9.csv")).write_text("a\n")
        except OSError:
            pytest.skip("this system takes UTF-8 names only")
        assert refusal(tmp_path / "*.csv").code == "not-utf8"

    @pytest.mark.parametrize("shut", ["file", "folder"])
    def test_permission_denied(self, write: Write, shut: str) -> None:
        path = write("in/a.csv", "a\n1\n")
        (path if shut == "file" else path.parent).chmod(0)
        for above in list(path.parents)[1:4]:
            above.chmod(0o755)
        with not_as_root():
            error = refusal(path)
        assert error.code == "file-not-readable"
        assert "Permission denied" in error.message

    @pytest.mark.parametrize("name", ["", "b.csv"])
    def test_a_folder_that_cannot_be_listed(self, write: Write, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        folder = write("in/a.csv", "a\n1\n").parent

        def denied(path: str) -> list[str]:
            raise PermissionError(13, "Permission denied", path)

        monkeypatch.setattr("dhkappa.paths.os.listdir", denied)
        error = refusal(folder / name)
        assert error.code == ("file-not-found" if name else "file-not-readable")
        assert error.hint == ("" if name else "Check its permissions.")


class not_as_root:  # noqa: N801
    """Become nobody for a while, where we are root, who may read everything."""

    def __enter__(self) -> None:
        self.before = os.geteuid()
        if self.before == 0:
            os.seteuid(65534)

    def __exit__(self, *_: object) -> None:
        os.seteuid(self.before)
