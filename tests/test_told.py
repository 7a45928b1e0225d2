"""What is wrong with a file, a count or a process is told as what it is."""

import gzip
import json
import os
import resource
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

import dhkappa
from dhkappa.errors import DataError

Ended = subprocess.CompletedProcess[str]
VOTES = "item,suggested,ann_1,ann_2\n1,a,a,a\n2,b,b,a\n3,a,a,b\n"


def ran(folder: Path, *args: str, env: Mapping[str, str] = os.environ, most_files: int = 256) -> Ended:
    return subprocess.run(
        [sys.executable, "-m", "dhkappa", *args],
        cwd=folder,
        env=env,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files)),
    )


HELD: dict[str, tuple[bytes, str]] = {
    "wide.csv": (VOTES.encode("utf-16"), "is UTF-16 text: save it as UTF-8."),
    "big-endian.jsonl": (b"\xfe\xff\0{", "is UTF-16 text: save it as UTF-8."),
    "packed.csv": (gzip.compress(VOTES.encode()), "is gzipped, which its name does not say: add .gz to it."),
    "packed.jsonl": (gzip.compress(b'{"a": 1}'), "is gzipped, which its name does not say: add .gz to it."),
    "zip.csv": (b"PK\x03\x04....", "is a zip: unpack it, and pass the files in it; a spreadsheet, save as CSV."),
    "parquet.csv": (b"PAR1....PAR1", "is Parquet, which its name does not say: add .parquet to it."),
    "long.csv": (
        VOTES.encode() + b"4,a," + b"x" * 3_000_000 + b",a\n5,a,a,a\n",
        "has over 2,000,000 bytes: it may",
    ),
    "export.zip": (b"PK\x03\x04 cut", "is not a whole zip: it is damaged or cut short, so fetch it again."),
    "count.csv": (b"item,suggested,label,count\n1,a,a,4000000000\n", "2,147,483,647 at most: got '4000000000'."),
    "digits.csv": ("item,suggested,label,count\n1,a,a,٢\n".encode(), "whole and 0 or more: got '٢'."),
    "large.json": (
        json.dumps([{"item": 1, "suggested": 10**25, "ann_1": 10**25, "ann_2": 3}]).encode(),
        "a column holds whole numbers of more than 64 bits: write them as text.",
    ),
}


@pytest.mark.parametrize("name", HELD)
def test_a_file_that_is_not_what_it_seems(tmp_path: Path, name: str) -> None:
    held, told = HELD[name]
    path = tmp_path / name
    path.write_bytes(held)
    with pytest.raises(DataError) as caught:
        dhkappa.dh_kappa(path)
    assert told in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_long_lines_are_not_shown_whole(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES + "4,a," + "x" * 100_000 + "\n" + "5,a,a,a\n")
    with pytest.raises(DataError, match="has 3 fields where the header has 4") as caught:
        dhkappa.dh_kappa(path)
    assert len(str(caught.value)) < 1000


def test_a_column_may_be_called_as_parquet_begins(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("PAR1,PAR2,suggested\na,a,a\na,b,b\nb,b,b\n")
    assert dhkappa.dh_kappa(path, annotators=["PAR1", "PAR2"]).n_items == 3


def test_many_lines_are_not_shown_all(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES + '4,a,"' + "x\n" * 1000 + '",a,a,a\n5,a,a,a\n')
    with pytest.raises(DataError, match="has 5 fields where the header has 4") as caught:
        dhkappa.dh_kappa(path)
    assert len(str(caught.value).splitlines()) < 20


def test_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").symlink_to("gone.csv")
    with pytest.raises(DataError, match=r"votes.csv' is a link to 'gone.csv', where there is no file\.$"):
        dhkappa.read(tmp_path / "votes.csv")


def test_what_has_no_end_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    calls: list[Callable[[Path], object]] = [
        dhkappa.Tally.load,
        dhkappa.read,
        lambda path: dhkappa.read(path, format="argilla"),
    ]
    for call in calls:
        for path in (tmp_path / "pipe.json", Path("/dev/zero")):
            if call is dhkappa.read and path.name == "zero":
                continue  # whose name tells no format
            with pytest.raises(DataError, match="is no regular file: save what comes out of it to a file first"):
                call(path)


def test_a_pipe_in_the_place_of_a_file_that_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    source = dhkappa.read(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(DataError, match="has changed since it was opened"):
        dhkappa.dh_kappa(source)


def test_a_clock_that_is_set_back_hides_no_change(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    before = path.stat()
    source = dhkappa.read(path)
    path.write_text(VOTES.replace("1,a,a,a", "1,a,b,b"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    with pytest.raises(DataError, match="has changed since it was opened"):
        dhkappa.dh_kappa(source)


def test_a_tally_that_says_something_twice(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    dhkappa.tally([["a", "a"]], ["a"]).save(path)
    path.write_text(path.read_text().replace('"version": 1', '"version": 1, "items": 1', 1))
    with pytest.raises(DataError, match="it says 'items' twice"):
        dhkappa.Tally.load(path)


def test_closed_streams_are_taken_by_no_file(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    (tmp_path / "votes.csv").write_text(VOTES)
    line = f"{sys.executable} -m dhkappa audit votes.csv -o report.html <&- 2>&-"
    done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0
    assert done.stdout.endswith("Report: report.html\n")
    assert (tmp_path / "report.html").read_text("utf-8").endswith("</html>")


def test_a_report_where_few_files_may_be_open(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    (tmp_path / "votes.csv").write_text(VOTES)
    done = ran(tmp_path, "audit", "votes.csv", "-o", "r.html", most_files=16)
    assert done.returncode == 2
    assert "fault of dhkappa" not in done.stderr
    assert any(line.startswith("dhkappa: ") for line in done.stderr.splitlines())  # what fails first differs
    assert not (tmp_path / "r.html").exists()


def test_a_chart_that_cannot_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    report = pytest.importorskip("dhkappa.report.html")

    def gives_up(*_: object, **__: object) -> str:
        raise ValueError(reason)

    monkeypatch.setattr(report, "library", lambda *_: SimpleNamespace(vegalite_to_svg=gives_up))
    reason = "conversion failed: oneshot canceled"
    with pytest.raises(DataError, match="the charts of the report cannot be drawn"):
        report.svg_of({"description": "a chart"})
    reason = "a fault of ours"
    with pytest.raises(ValueError, match="a fault of ours"):
        report.svg_of({"description": "a chart"})


def test_an_array_whose_gzip_is_cut(tmp_path: Path) -> None:
    held = gzip.compress(json.dumps([{"item": n, "suggested": "a", "ann_1": "a"} for n in range(5000)]).encode())
    (tmp_path / "votes.json.gz").write_bytes(held[: len(held) // 2])
    with pytest.raises(DataError, match="cannot be unpacked: it may be damaged or cut short"):
        dhkappa.read(tmp_path / "votes.json.gz", format="table")


def test_the_sentence_on_the_bar_stays_where_nobody_reads_the_rest(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text(VOTES)
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "dhkappa", "score", "votes.csv", "--fail-under", "0.9"]
    done = subprocess.run(
        command, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=120
    )
    os.close(writer)
    assert done.returncode == 1
    assert done.stderr.startswith("dhkappa: below --fail-under 0.9: ")


def test_the_review_queue_is_utf_8_in_any_language(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text(VOTES.replace("1,a", "é😀,a"), "utf-8")
    done = ran(
        tmp_path, "items", "votes.csv", env=os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    )
    assert done.returncode == 0
    assert '"é😀"' in done.stdout


def test_a_zip_that_is_whole_but_no_export(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a.txt", "x")
    with pytest.raises(DataError, match="is a zip of no export that is known"):
        dhkappa.read(tmp_path / "x.zip")
