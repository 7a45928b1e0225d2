"""Files are written completely or not at all: errors, links, devices, and SIGKILL at any moment."""

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import dhkappa
from command import REPORTS, WIDE
from dhkappa.errors import DataError
from dhkappa.paths import file_name, write_file


def test_a_new_file_and_over_an_old_one(tmp_path: Path) -> None:
    path = tmp_path / "new.txt"
    write_file(path, "first 漢\r\n", "report")
    assert path.read_bytes() == "first 漢\r\n".encode()
    write_file(str(path), "second", "report")
    assert path.read_bytes() == b"second"
    assert os.listdir(tmp_path) == ["new.txt"]


def test_an_old_file_keeps_who_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "old.txt"
    path.write_text("old")
    path.chmod(0o640)
    write_file(path, "new", "report")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    real, link = tmp_path / "kept" / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    link.symlink_to(real)
    write_file(link, "new", "report")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert os.listdir(real.parent) == ["real.txt"]


def test_a_pipe_and_a_full_device(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write_file(pipe, "through", "report")
    reader.join(10)
    assert got == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(DataError):
        write_file("/dev/full", "x", "report")


def test_what_is_open_is_written_to_where_it_stands(tmp_path: Path) -> None:
    (read, write), path = os.pipe(), tmp_path / "kept.txt"
    write_file(f"/dev/fd/{write}", "through", "report")
    assert os.read(read, 100) == b"through"
    (tmp_path / "link").symlink_to(f"/proc/{os.getpid()}/fd/{write}")
    write_file(tmp_path / "link", "again", "report")
    assert os.read(read, 100) == b"again"
    os.close(read)
    with pytest.raises(BrokenPipeError):  # as of what is printed
        write_file(f"/dev/fd/{write}", "x", "report")
    os.close(write)
    path.write_text("old\n")
    with path.open("a") as file:
        write_file(f"/proc/self/fd/{file.fileno()}", "new\n", "report")
        file.write("last\n")
    assert path.read_text() == "old\nnew\nlast\n"
    with pytest.raises(DataError):
        write_file("/dev/fd/999999", "x", "report")


def test_what_is_open_is_written_to_without_a_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a program has no terminal and closed it."""
    read, write = os.pipe()
    monkeypatch.setattr(sys, "stdout", None)
    write_file(f"/dev/fd/{write}", "through", "report")
    assert os.read(read, 100) == b"through"
    os.close(read)
    os.close(write)


def test_to_standard_output_by_name(tmp_path: Path) -> None:
    votes, kept = tmp_path / "votes.csv", tmp_path / "kept.txt"
    votes.write_text(WIDE)
    words = [sys.executable, "-m", "dhkappa", "review", str(votes), "-s", "llm", "-o"]
    plain = subprocess.run([*words, "-"], capture_output=True, check=True).stdout
    assert subprocess.run([*words, "/dev/stdout"], capture_output=True, check=True).stdout == plain
    kept.write_bytes(b"old\n")
    with kept.open("ab") as file:
        subprocess.run([*words, "/dev/stdout"], stdout=file, stderr=subprocess.DEVNULL, check=True)
    assert kept.read_bytes() == b"old\n" + plain
    shell = f"{' '.join(words[:-1])} -n 1 -o /dev/stdout | true; exit ${{PIPESTATUS[0]}}"
    assert subprocess.run(["bash", "-c", shell], stderr=subprocess.DEVNULL, check=False).returncode == 0


@pytest.mark.parametrize("name", ["missing/x.txt", "folder", "x" * 300, "file/x.txt"])
def test_what_cannot_be_written_is_one_sentence_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("old")
    with pytest.raises(DataError):
        write_file(tmp_path / name, "text", "tally")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "old"


def test_text_that_utf_8_cannot_hold_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "old.txt"
    path.write_text("old")
    with pytest.raises(DataError):
        write_file(path, "a\ud800", "report")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["old.txt"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "old.txt"
    path.write_text("old")
    real = os.replace

    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dhkappa.paths.os.replace", full)
    with pytest.raises(DataError, match="No space left on device"):
        write_file(path, "new", "report")
    monkeypatch.setattr("dhkappa.paths.os.replace", real)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["old.txt"]


@pytest.mark.parametrize("name", ["", "a\0b", None, 3, ["x"]])
def test_names_that_are_none(name: object) -> None:
    with pytest.raises(DataError):
        file_name(name, "tally")


def test_two_writers_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "both.txt"
    texts = [letter * 200_000 for letter in "abcd"]

    def again(text: str) -> None:
        for _ in range(20):
            write_file(path, text, "report")

    writers = [threading.Thread(target=again, args=(text,)) for text in texts]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        if path.exists():
            assert path.read_text() in texts  # whoever looks in between sees a whole one
    assert path.read_text() in texts
    assert os.listdir(tmp_path) == ["both.txt"]


# The child writes in ten pieces, tells of each, and waits to be let on.
_STEPS = """
import os, sys
import dhkappa.paths as writing
from dhkappa.cli.commands import main

def step():
    print("step", flush=True, file=sys.stderr)
    sys.stdin.readline()

class Slow:
    def __init__(self, *args):
        self.file = open(*args)
        step()
    def __enter__(self):
        return self
    def __exit__(self, *error):
        self.file.close()
        step()
    def write(self, data):
        for place in range(0, len(data), len(data) // 10 + 1):
            self.file.write(data[place : place + len(data) // 10 + 1])
            self.file.flush()
            step()
    def __getattr__(self, name):
        return getattr(self.file, name)

replace = os.replace
def late(*args):
    step()
    replace(*args)
    step()

writing.open = lambda *args: Slow(*args) if "x" in args[1] else open(*args)
os.replace = late
main(sys.argv[1:])
"""
STEPS = 14  # opened, ten pieces, closed, before and after the new file takes the place of the old


def kill_after(steps: int, *words: str) -> int:
    """Run a command that writes, and kill it after some steps of writing; return how many it took."""
    child = subprocess.Popen(
        [sys.executable, "-c", _STEPS, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stderr is not None
    done = 0
    while child.stderr.readline() == "step\n":
        done += 1
        if done == steps:
            child.send_signal(signal.SIGKILL)
            break
        child.stdin.write("\n")
        child.stdin.flush()
    child.communicate(timeout=60)
    return done


@pytest.mark.slow
@pytest.mark.parametrize(("old", "moments"), [(True, (1, 11, 13, STEPS)), (False, (6, 13))])
def test_killed_while_writing_a_tally(old: bool, moments: tuple[int, ...], tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text(WIDE)
    target = tmp_path / "t.json"
    words = ["tally", "make", str(tmp_path / "votes.csv"), "-o", str(target)]
    before = dhkappa.tally([["x", "x"]], ["x"])
    for steps in moments:
        target.unlink(missing_ok=True)
        if old:
            before.save(target)
        assert kill_after(steps, *words) == steps
        if steps == STEPS:
            assert dhkappa.Tally.load(target).n_items == 8
        elif old:
            assert dhkappa.Tally.load(target) == before
        else:
            assert not target.exists()
    assert kill_after(99, *words) == STEPS  # left alone, it ends; what was killed is not in its way
    assert dhkappa.Tally.load(target).n_items == 8


@pytest.mark.slow
@pytest.mark.skipif(not REPORTS, reason="what the report needs is absent")
def test_killed_while_writing_a_report(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text(WIDE)
    target = tmp_path / "report.html"
    target.write_text("the old report")
    assert kill_after(8, "audit", str(tmp_path / "votes.csv"), "-o", str(target)) == 8
    assert target.read_text() == "the old report"
