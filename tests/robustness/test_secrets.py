"""Passwords are in no message, whatever the address that holds them was taken for."""

import copy
import pickle
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import dhkappa
from dhkappa.errors import masked

SECRET = "hush-7"
ADDRESSES = [
    f"postgresql://me:{SECRET}@127.0.0.1:1/db",
    f" postgresql://me:{SECRET}@127.0.0.1:1/db",
    f"'postgresql://me:{SECRET}@127.0.0.1:1/db'",
    f'"postgresql://me:{SECRET}@127.0.0.1:1/db"',
    f"postgresql:/me:{SECRET}@127.0.0.1:1/db",
    f"postgresql://me:a b{SECRET}@127.0.0.1:1/db",
    f"postgresql://me:a@b:{SECRET}@127.0.0.1:1/db",
    f"jdbc:postgresql://127.0.0.1/db?user=me&password={SECRET}",
    f"jdbc:postgresql://me:{SECRET}@127.0.0.1/db",
    f"host=127.0.0.1 user=me password={SECRET} dbname=db",
    f"host=127.0.0.1 user=me password='{SECRET} x' dbname=db",
    f"mysql://me:{SECRET}@127.0.0.1/db",
    f"Server=127.0.0.1;Uid=me;Pwd={SECRET};",
    f"Server=127.0.0.1;Uid=me;Password={{a;{SECRET}}};",
    f"postgresql//me:{SECRET}@127.0.0.1:1/db",
    f"postgresql;//me:{SECRET}@127.0.0.1:1/db",
    f"postgresql:me:{SECRET}@127.0.0.1:1/db",
    f"postgresql:\\\\me:{SECRET}@127.0.0.1:1/db",
    f"postgresql:/labels_reader:{'long-' * 12}{SECRET}@127.0.0.1:1/db",
    f"host=h password=a,{SECRET}",
    f"duckdb://me:{SECRET}@x",
    f"postgresql://me@corp:{SECRET}@127.0.0.1:1/db",
    f"me:{SECRET}@127.0.0.1/db",
    f"jdbc:mysql://127.0.0.1/db?user=me&password%3D{SECRET}",
    f"{{'password': '{SECRET}'}}",
    f"md:x?motherduck_token={SECRET}",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_the_library_never_tells(address: str) -> None:
    for call in (
        lambda: dhkappa.read(address, table="votes"),
        lambda: dhkappa.read(Path(address)),
        lambda: dhkappa.dh_kappa(address, suggested="llm"),
        lambda: dhkappa.dh_kappa([["a", "b"]], ["a"], pool={address: 1}),
        lambda: dhkappa.Tally.load(address),
    ):
        with pytest.raises(dhkappa.DataError) as caught:
            call()
        told = "".join(traceback.format_exception_only(caught.value))
        cause = caught.value.__cause__ or (None if caught.value.__suppress_context__ else caught.value.__context__)
        for text in (told, str(caught.value), repr(caught.value), str(cause), repr(cause)):
            assert SECRET not in text
            assert "long-long" not in text


COMMANDS = [
    ("score", "{}", "--table", "votes"),
    ("score", "votes.csv", "--suggested", "{}"),
    ("score", "votes.csv", "--items", "{}"),
    ("score", "votes.csv", "--confidence-level", "{}"),
    ("audit", "votes.csv", "-o", "{}"),
    ("items", "votes.csv", "-o", "{}"),
    ("tally", "show", "{}"),
    ("tally", "add", "{}", "-o", "{}"),
    ("demo", "-o", "{}"),
    ("{}",),
    ("score", "--{}"),
    ("plan", "{}"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_nor_does_a_command(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "votes.csv").write_text("item,llm,ann_1,ann_2\n1,a,a,a\n2,b,b,a\n")
    for address in (ADDRESSES[0], ADDRESSES[4], ADDRESSES[9]):
        args = [word.replace("{}", address) for word in command]
        run = [sys.executable, "-m", "dhkappa", *args]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 2, done.stderr
        assert SECRET not in done.stdout + done.stderr
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("dhkappa: ")
    assert [path.name for path in tmp_path.iterdir()] == ["votes.csv"]


def test_what_is_no_password_stays() -> None:
    for text in (
        "http://a/b@c",
        "'C:/x:y@z.csv'",
        "'s3://bucket/x:y@z'",
        "a:b@c",
        "see https://example.org/x",
        "passengers=3",
        "compass=n",
        "pass = 1",
        "column 'password' is absent",
        "https://x.org:80/x, mail me@x.org",
    ):
        assert masked(text) == text


def test_a_message_of_any_length_is_looked_through() -> None:
    assert len(masked("x:/a:" * 40_000)) == 200_000
    assert len(masked("'postgres" * 40_000 + "@")) > 300_000
    assert len(masked("password=" * 40_000)) > 9


def test_a_source_is_not_pickled(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("item,llm,ann_1,ann_2\n1,a,a,a\n")
    with pytest.raises(dhkappa.DataError, match="send what read"):
        pickle.dumps(dhkappa.read(tmp_path / "votes.csv"))
    source = dhkappa.read(tmp_path / "votes.csv")
    assert copy.copy(source) is source
    assert copy.deepcopy([source])[0] is source
