"""No message contains a password, whatever the address was taken for."""

import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import dhkappa

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
def test_errors_of_the_library(address: str) -> None:
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
    ("review", "votes.csv", "-o", "{}"),
    ("tally", "show", "{}"),
    ("tally", "add", "{}", "-o", "{}"),
    ("demo", "-o", "{}"),
    ("{}",),
    ("score", "--{}"),
    ("plan", "{}"),
]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_errors_of_commands(tmp_path: Path, command: tuple[str, ...]) -> None:
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
