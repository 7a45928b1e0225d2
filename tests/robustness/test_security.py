"""Hostile files, names and addresses: one error within bounds, and no password in any output."""

from __future__ import annotations

import ast
import gzip
import io
import json
import os
import re
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

import duckdb
import pytest

import dhkappa
from dhkappa import paths
from dhkappa.inputs import excel, readers
from dhkappa.inputs.backends import duckdb as duck
from expect import expect_error
from postgres import Server

ROOT = Path(__file__).parents[2]
SOURCE = Path(dhkappa.__file__).parent
MIB = 1 << 20
MODULES = {
    *("pickle", "marshal", "shelve", "dbm", "dill", "cloudpickle", "joblib", "yaml"),
    *("subprocess", "pty", "ctypes", "code", "codeop", "runpy", "multiprocessing"),
    *("socket", "socketserver", "ssl", "http", "urllib.request", "ftplib", "smtplib", "xmlrpc", "asyncio"),
    *("requests", "httpx", "aiohttp"),
}
CALLS = re.compile(
    "eval|exec|exec[lv]p?e?|compile|__import__|breakpoint|input|system|popen|fork(pty|server)?|spawn[lv]p?e?"
    "|posix_spawnp?|(read|to)_pickle"
)


def calls_of(tree: ast.AST) -> Iterable[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id, node.lineno
            elif isinstance(node.func, ast.Attribute) and not (
                isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.func.attr == "compile"
            ):
                yield node.func.attr, node.lineno


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_pickle_no_eval_no_shell_no_network(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            imported += [f"{node.module}.{name.name}" for name in node.names]
    assert not [name for name in imported for wrong in MODULES if f"{name}.".startswith(f"{wrong}.")]
    assert not [(name, line) for name, line in calls_of(tree) if CALLS.fullmatch(name)]
    assert not [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword)
        and node.arg in ("shell", "allow_pickle")
        and not (isinstance(node.value, ast.Constant) and node.value.value is False)
    ]


def test_a_socket_to_elsewhere_is_refused_here() -> None:
    with socket.socket() as there, pytest.raises(AssertionError, match=r"192\.0\.2\.1"):
        there.connect(("192.0.2.1", 9))  # an address for documentation, where nobody is
    with pytest.raises(AssertionError, match=r"example\.invalid"):
        socket.getaddrinfo("example.invalid", 80)


@pytest.mark.skipif(os.environ.get("DHKAPPA_OFFLINE") != "1", reason="not run by robustness/offline.py")
def test_there_is_no_network_but_loopback() -> None:
    assert [name for _, name in socket.if_nameindex()] == ["lo"]


MEASURED = r"""
import re, sys
from dhkappa.cli.commands import main
from dhkappa.errors import DataError
text, codes = DataError.text, []
DataError.text = lambda error, *flags: (codes.append(error.code), text(error, *flags))[1]
try:
    main(sys.argv[1:])
finally:  # what getrusage says would be that of the process of the tests, if that is larger
    peak = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]) // 1024
    print("code", *codes[-1:], "peak", peak, file=sys.stderr)
"""


def refused(*args: str | Path, most: int = 420) -> tuple[str, str]:
    """Run a command that must fail with one line, exit code 2 and at most ``most`` MiB; return code and line."""
    command = [sys.executable, "-c", MEASURED, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    sentence, code, peak = re.split("code (.*) peak", done.stderr)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert sentence.startswith("dhkappa: ")
    assert "Internal error" not in sentence
    assert sentence.count("\n") == 1
    assert int(peak) < most
    return code, sentence


def packed(path: Path, parts: Iterable[bytes]) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as file:
        for part in parts:
            file.write(part)
    return path


BLOCK = b"a" * MIB
TOO_LONG = {
    "header.csv": ([BLOCK] * 40, "line-too-long"),
    "row.csv": ([b"item,llm,v1\n1,a,a\n", *[BLOCK] * 40], "line-too-long"),
    "quoted.csv": ([b'item,llm,v1\n1,a,"', *[b"a\n" * (MIB // 2)] * 40], "malformed-file"),
    "line.jsonl": ([b'{"item": "', *[BLOCK] * 40], "line-too-long"),
    "array.json": ([b'[{"item": "', *[BLOCK] * 40, b'"}]'], "line-too-long"),
    "deep.jsonl": ([b'{"a":' * 4_000_000], "line-too-long"),
}


@pytest.mark.parametrize("kind", ["plain", "gz"])
@pytest.mark.parametrize("name", TOO_LONG)
def test_a_line_without_an_end(tmp_path: Path, name: str, kind: str) -> None:
    parts, code = TOO_LONG[name]
    path = tmp_path / name
    if kind == "gz":
        path = packed(tmp_path / f"{name}.gz", parts)
    else:
        path.write_bytes(b"".join(parts))
    assert refused("score", path, "--suggested", "llm", "--annotators", "v1")[0] == code


@pytest.mark.parametrize(("size", "code"), [(15, None), (33, "line-too-long")])
def test_a_long_object(tmp_path: Path, size: int, code: str | None) -> None:
    path = tmp_path / "long.jsonl"
    with path.open("wb") as file:
        file.write(b'{"llm": "a", "v1": "a", "v2": "a", "text": "')
        file.writelines([BLOCK] * size)
        file.write(b'"}\n{"llm": "b", "v1": "b", "v2": "b", "text": ""}\n')
    if code:
        assert refused("score", path, "-s", "llm", "-a", "v1,v2")[0] == code
    else:
        assert dhkappa.dh_kappa(path, "llm", annotators=["v1", "v2"]).value == 1


def test_bounds_are_told_as_they_are() -> None:
    told = " ".join((ROOT / "SECURITY.md").read_text(encoding="utf-8").split())
    assert f"may unpack to {paths._UNPACKED // MIB} MiB, or to {paths._TIMES} times its size" in told
    assert f"A sheet may span {excel._MOST_CELLS // 10**6} million cells" in told
    assert f"a line of CSV {duck.MAX_LINE // 10**6} MB" in told


def test_a_view_of_a_duckdb_file_reads_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("llm,v1,v2\na,a,a\nb,b,b\n")
    with duckdb.connect(str(tmp_path / "votes.duckdb")) as connection:
        connection.execute("CREATE TABLE votes AS SELECT 'a' AS llm, 'a' AS v1, 'b' AS v2")
        connection.execute("CREATE VIEW same AS FROM votes")
        connection.execute(f"CREATE VIEW others AS FROM read_csv('{tmp_path}/secret.csv')")
    url = f"duckdb://{tmp_path}/votes.duckdb"
    assert dhkappa.read(url, "llm", annotators=["v1", "v2"], table="same").tally().n_items == 1
    code, sentence = refused("score", url, "--table", "others", "-s", "llm", "-a", "v1,v2")
    assert code == "view-reads-files"
    assert "'others'" in sentence


def test_zeros_where_the_end_of_a_file_was_lost(tmp_path: Path) -> None:
    path = tmp_path / "cut.csv"
    with path.open("wb") as file:
        file.write(b"item,llm,v1,v2\n" + b"1,a,a,b\n" * 1000)
        file.truncate(MIB << 10)  # a gigabyte that takes no place on the disk
    assert refused("score", path, "-s", "llm", "-a", "v1,v2")[0] == "line-too-long"


def export(*records: object) -> bytes:
    return b"\n".join(json.dumps(record).encode() for record in records)


DOCCANO = {"id": 1, "text": "x", "label": ["a"], "suggested": "a"}


def zipped(path: Path, members: dict[str, bytes], times: int = 1) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            with archive.open(name, "w") as member:
                for _ in range(times):
                    member.write(content)
    return path


def test_bombs(tmp_path: Path) -> None:
    packed_twice = io.BytesIO()
    with gzip.open(packed_twice, "wb", compresslevel=1) as file:
        for _ in range(300):
            file.write(b" " * MIB)
    line = export(DOCCANO) + b" " * MIB + b"\n"
    bombs = [
        zipped(tmp_path / "blanks.zip", {"ann.jsonl": b"\n" * MIB}, times=300),
        zipped(tmp_path / "lines.zip", {"ann.jsonl": line}, times=300),
        zipped(tmp_path / "members.zip", {f"ann{place}.jsonl": line for place in range(300)}),
        zipped(tmp_path / "inner.zip", {"ann.jsonl.gz": packed_twice.getvalue()}),
    ]
    for bomb in bombs:
        code, sentence = refused("score", bomb, "--input-format", "doccano", most=300)
        assert code == "file-too-large"
        assert re.search(r"2[567]\d MiB", sentence)
    assert bombs[-1].stat().st_size < 2 * MIB


def test_a_record_without_an_end(tmp_path: Path) -> None:
    for name, opening in (("array.json", b'[{"id": 1, "text": "'), ("line.jsonl", b'{"id": 1, "text": "')):
        path = packed(tmp_path / f"{name}.gz", [opening, *[BLOCK] * 80])
        code, sentence = refused("score", path, "--input-format", "label_studio", most=600)
        assert code == "record-too-long"
        assert "line 1" in sentence


def test_an_honest_packed_export_may_be_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "_UNPACKED", 1000)
    held = [{"id": place, "text": os.urandom(20).hex()} for place in range(1000)]
    path = tmp_path / "export.jsonl.gz"
    path.write_bytes(gzip.compress(export(*held)))
    assert readers.read_records(path) == {"export": held}


@pytest.mark.parametrize("block", [16, 17, 23, 64])
@pytest.mark.parametrize("indent", [None, 2])
def test_records_do_not_depend_on_where_a_block_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, indent: int | None
) -> None:
    monkeypatch.setattr(readers, "_BLOCK", block)
    held = [{"id": n, "t": 'é 😀 \\ "q" ]}' * (n % 4), "x": [n, -1.5e3, True, None, {"y": []}]} for n in range(60)]
    path = tmp_path / "export.json"
    for text in (
        json.dumps(held, indent=indent),
        json.dumps(held, indent=indent, ensure_ascii=False),
        "\r\n\n".join(json.dumps(record, indent=indent) for record in held),
    ):
        path.write_bytes(text.encode())
        assert readers.read_records(path) == {"export": held}
        assert readers.first_record(path) == held[0]
    lines = [json.dumps(record) for record in held]
    lines[40] = lines[40][:-1]
    path.write_text("\n".join(lines))
    with pytest.raises(dhkappa.DataError, match=rf"in line 41, column {len(lines[40]) + 1}: Expecting"):
        readers.read_records(path)


@pytest.mark.parametrize(
    "name",
    ["../../outside.jsonl", "/outside.jsonl", "C:\\outside.jsonl", "a/../../outside.jsonl", "\u202eoutside.jsonl"],
)
def test_names_in_a_zip_lead_nowhere(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "deep" / "folder"
    inside.mkdir(parents=True)
    path = zipped(inside / "export.zip", {name: export(DOCCANO)})
    before = sorted(tmp_path.rglob("*"))
    [stem] = readers.read_records(path)
    assert "/" not in stem
    assert sorted(tmp_path.rglob("*")) == before
    assert not Path("/outside.jsonl").exists()


def test_a_link_in_a_zip_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_bytes(export(DOCCANO))
    path = tmp_path / "export.zip"
    link = zipfile.ZipInfo("ann.jsonl")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(link, str(tmp_path / "secret.jsonl"))
    with expect_error("malformed-file"):
        readers.read_records(path)


DEEP = {
    "votes.jsonl": b'{"item": "x", "llm": "a", "v1": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    "array.json": b"[" * 3_000_000,
    "objects.json": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "label_studio.json": b'[{"id": 1, "annotations": [{"result": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]}]",
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_json(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(DEEP[name])
    refused("score", path, "--suggested", "llm", "--annotators", "v1")


def test_deep_tally(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_bytes(b'{"format": "dhkappa-tally", "patterns": ' + b"[" * 3_000_000)
    assert "deep.json" in refused("tally", "show", path)[1]
    assert "deep.json" in refused("tally", "add", path, "-o", tmp_path / "sum.json")[1]


def test_what_is_no_json_is_no_damaged_tally(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("item,llm,ann_1,ann_2\n1,a,a,a\n")
    assert "votes.csv" in refused("tally", "show", path)[1]


SECRETS = ("s3cret", "s3cret@p/w%", "%40p%2Fw", "@p/w")

ALL = """
import sys
from dhkappa.cli.commands import main
for line in sys.stdin.read().splitlines():
    try:
        main(line.split())
    except SystemExit as end:
        print(line.split()[0], end.code, file=sys.stderr)
    except Exception:
        import traceback
        traceback.print_exc()
"""


@pytest.mark.parametrize("trace", ["", "1"])
def test_a_password_goes_nowhere(postgres: Server, tmp_path: Path, trace: str) -> None:
    psycopg = pytest.importorskip("psycopg")

    with psycopg.connect(postgres.url(), autocommit=True) as server:
        server.execute("DROP TABLE IF EXISTS guarded")
        server.execute("CREATE TABLE guarded (item text, llm text, v1 text, v2 text, v3 text)")
        for place in range(40):
            votes = [str(place), *("ab"[place % number % 2] for number in (2, 5, 3, 7))]
            server.execute("INSERT INTO guarded VALUES (%s, %s, %s, %s, %s)", votes)
    url = postgres.url()
    words = f"{url} --table guarded --item item --suggested llm --annotators v1,v2,v3"
    right = [
        f"audit {words} -o report.html",
        f"score {words} --format json",
        f"review {words} -o items.csv",
        f"tally make {words} -o tally.json",
    ]
    wrong = [
        words.replace("guarded", "absent"),
        words.replace("llm", "absent"),
        words.replace("//dhkappa:", "//nobody:"),
        words.replace("/postgres ", "/absent "),
        words.replace(f":{postgres.port}", ":1"),
        url,
    ]
    done = subprocess.run(
        [sys.executable, "-c", ALL],
        input="\n".join(right + [f"score {words}" for words in wrong]),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=os.environ | {"DHKAPPA_TRACE": trace},
    )
    ended = [line for line in done.stderr.splitlines() if line[-2:] in (" 0", " 2")]
    assert ended == ["audit 0", "score 0", "review 0", "tally 0", *["score 2"] * len(wrong)]
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(written) == {"items.csv", "report.html", "tally.json"}
    for text in (done.stdout, done.stderr, *written.values()):
        assert not [secret for secret in SECRETS if secret in text]
