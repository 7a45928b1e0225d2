"""Inputs of a fuzzer: files, exports, tally files and command lines, intact or damaged."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import dhkappa
from fuzz_choices import CHARACTERS, PLAIN_TEXTS, TEXTS, Choices, Input, arguments, ragged_votes
from fuzz_inputs import arrays, frames

EXPORTS = Path(__file__).parents[1] / "tests" / "exports"
PIECES = (b"", b"\0", b'"', b"\n", b",", b"\xff\xfe", b"\xef\xbb\xbf", b"{", b"]", b"\r\n", b"-", b"1e999", b"\\u0000")


def damaged(choices: Choices, held: bytes) -> bytes:
    """Replace, remove, duplicate or insert bytes."""
    for _ in range(choices.of((1, 1, 1, 2, 3, 6))):
        first = choices.upto(max(len(held) - 1, 0))
        last = min(first + choices.of((1, 0, 1, 2, 4, 16, 200)), len(held))
        put = choices.of((*PIECES, held[first:last] * 2, bytes(choices.each(range(256), 1 + choices.upto(3)))))
        held = held[:first] + put + held[last:]
    return held


def table(choices: Choices) -> tuple[dict[str, list[Any]], list[list[Any]], list[Any]]:
    """Choose a small table in wide format; return its columns, votes and labels."""
    n, wide = 1 + choices.upto(4), 1 + choices.upto(2)
    known = choices.some((*PLAIN_TEXTS, *PLAIN_TEXTS, *TEXTS), 1, 3)
    votes = [choices.each([*known, None], wide) for _ in range(n)]
    suggested = choices.each([*known, None], n)
    columns = {"item": [f"i{place}" for place in range(n)], "llm": suggested}
    return columns | {f"ann_{place}": [row[place] for row in votes] for place in range(wide)}, votes, suggested


def _field(text: str | None, separator: str) -> str:
    """Write a CSV field; the csv module does not quote a single carriage return."""
    quoted = any(sign in (text or "") for sign in f'"\r\n{separator}')
    return '"' + text.replace('"', '""') + '"' if text and quoted else text or ""


def written(columns: Mapping[str, Sequence[Any]], ending: str) -> bytes:
    """Return the content of a file with a table."""
    ending, packed = ending.removesuffix(".gz"), ending.endswith(".gz")
    lines = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if ending == ".parquet":
        sink = io.BytesIO()
        pq.write_table(pa.table({name: pa.array(held, pa.string()) for name, held in columns.items()}), sink)
        return sink.getvalue()
    if ending in (".csv", ".tsv"):
        separator = "," if ending == ".csv" else "\t"
        texts = [columns, *(line.values() for line in lines)]
        held = "".join(separator.join(_field(text, separator) for text in row) + "\n" for row in texts).encode()
    elif ending == ".json":
        held = json.dumps(lines).encode()
    else:
        held = "".join(json.dumps(line) + "\n" for line in lines).encode()
    return gzip.compress(held, 1, mtime=0) if packed else held


ENDINGS = (".csv", ".csv", ".tsv", ".json", ".jsonl", ".parquet", ".csv.gz", ".jsonl.gz")


def files(choices: Choices) -> Input:
    """Files of all formats, intact or damaged."""
    columns, votes, suggested = table(choices)
    ending = choices.of(ENDINGS)
    whole = written(columns, ending)
    broken = choices.upto(2) > 0
    held = damaged(choices, whole) if broken else whole
    wrong = choices.one_in(16)
    name = "votes" + (choices.of((*ENDINGS, ".zip", ".pq", ".txt", "")) if wrong else ending)
    words: dict[str, Any] = {"data": name, "suggested": "llm"}
    more = {}
    if choices.one_in(4):
        options: dict[str, Sequence[Any]] = {"annotators": ("ann_*", ["ann_0"]), "item": ("item", None, "x")}
        options |= {"label": ("ann_0",), "missing": (["a"],), "sample_weight": ("ann_0", None)}
        options |= {"items": (name, "x.csv"), "annotator": ("llm",), "strata": ("item",), "counts": ("ann_*",)}
        options |= {"count": ("ann_0",), "suggested": (["llm"], None, "ann_0")}
        more = arguments(choices, options)
    elif choices.one_in(8):
        words["data"] = choices.of(("*", "v*", "./votes*", "**", [name, name], [name], "votes[", "", "no", "a\0b", "."))
    ask = choices.of(("tally", "tally", "tally", "dh_kappa", "audit", "fleiss_kappa"))
    if ask == "fleiss_kappa":
        del words["suggested"]
        more.pop("suggested", None)
    valid = not broken and not wrong and not more and words["data"] == name
    comparable = valid and not any(
        "\0" in label or "\r" in label for row in [*votes, suggested] for label in row if label
    )
    return Input(
        ask,
        words | more,
        {name: held},
        votes=votes if valid else None,
        labels=suggested if valid and ask != "fleiss_kappa" else None,
        valid=comparable,
    )


# fmt: off
JSON_VALUES: tuple[Any, ...] = (
    None, True, 0, 1, -1, 1.5, 1e300, float("inf"), float("nan"), 2**63, 2**200, "", "x", "\ud800", "a\0b", "1",
    "accept", [], {}, [[]], [{}], {"": {}}, [None], ["x", "x"], [1, "1"], {"value": 1}, {"id": None}, [[["x"]]],
    "2020-01-01T00:00:00Z",
)
# fmt: on


def paths(held: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a JSON value."""
    inside = held.items() if isinstance(held, dict) else enumerate(held) if isinstance(held, list) else ()
    return [path, *(place for key, value in inside for place in paths(value, (*path, key)))]


def replaced(held: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a JSON value with another value at a path."""
    if not path:
        return value
    copy = held.copy()
    copy[path[0]] = replaced(held[path[0]], path[1:], value)
    return copy


def at(held: Any, path: tuple[Any, ...]) -> Any:
    """Return the value at a path."""
    for key in path:
        held = held[key]
    return held


def restructured(choices: Choices, held: Any) -> Any:
    """Replace, remove, rename, duplicate or move values in a JSON value."""
    for _ in range(choices.of((1, 1, 2, 3))):
        every = paths(held)
        path = choices.of(every)
        how = choices.of(("replace", "replace", "drop", "rename", "double", "wrap", "move"))
        if how == "replace" or not path:
            held = replaced(held, path, choices.of(JSON_VALUES))
        elif how == "wrap":
            held = replaced(held, path, [at(held, path)])
        elif how == "move":
            held = replaced(held, path, at(held, choices.of(every)))
        else:
            name = choices.of(("x", "", "id", "label", "value"))
            held = replaced(held, path[:-1], _edited(at(held, path[:-1]), path[-1], how, name))
    return held


def _edited(outer: Any, key: Any, how: str, name: str) -> Any:
    """Remove, rename or duplicate an entry of a list or an object."""
    if isinstance(outer, list):
        return [*outer[:key], *([outer[key]] * 2 if how == "double" else []), *outer[key + 1 :]]
    rest = {other: value for other, value in outer.items() if other != key}
    return rest if how == "drop" else rest | {name: outer[key]} | ({key: outer[key]} if how == "double" else {})


QUESTIONS = (None, "topic", "tone", "sentiment", "stars", "economy", "SPORT", "sure", "topics=food")


@cache
def samples() -> tuple[tuple[str, str, Any, str | None], ...]:
    """Return shortened exports of the tools: tool, suffix, records (by member of a zip), a question."""
    found = []
    for path in sorted(EXPORTS.glob("*/*.*")):
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                records: Any = {name: _parsed(archive.read(name))[:4] for name in archive.namelist()}
        elif path.suffix in (".json", ".jsonl"):
            records = _parsed(path.read_bytes())[:5]
        else:
            continue
        asked = next((question for question in QUESTIONS if _answers(path, question)), "")
        found += [(path.parent.name, path.suffix, records, asked or None)] * (1 if asked == "" else 4)
    return tuple(found)


def _answers(path: Path, question: str | None) -> bool:
    try:
        dhkappa.read(path, question=question, duplicates="last").tally()
    except dhkappa.DataError:
        return False
    return True


def _parsed(held: bytes) -> list[Any]:
    """Return the records of a JSON or JSONL file."""
    if held.lstrip().startswith(b"["):
        return list(json.loads(held))
    return [json.loads(line) for line in held.split(b"\n") if line.strip()]


def exported(ending: str, records: Any) -> bytes:
    """Return the content of an export."""
    if ending == ".zip" and isinstance(records, dict):
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w") as archive:
            for name, lines in records.items():
                archive.writestr(zipfile.ZipInfo(name or "x"), exported(".jsonl", lines))
        return sink.getvalue()
    if ending == ".jsonl" and isinstance(records, list):
        return "".join(json.dumps(record) + "\n" for record in records).encode()
    return json.dumps(records).encode()


def exports(choices: Choices) -> Input:
    """Choose an export of one of the four tools, intact or with a changed structure or bytes."""
    tool, ending, records, question = choices.of(samples())
    how = choices.of(("structure", "structure", "structure", "bytes", "whole"))
    held = exported(ending, restructured(choices, records) if how == "structure" else records)
    held = damaged(choices, held) if how == "bytes" else held
    name = "export" + (choices.of((".json", ".jsonl", ".zip", ".csv")) if choices.one_in(16) else ending)
    words: dict[str, Any] = {
        "path": name,
        "question": choices.of((*QUESTIONS, "x", 1)) if choices.one_in(4) else question,
    }
    words["input_format"] = choices.of(
        (None, None, None, tool, tool, "prodigy", "argilla", "doccano", "label_studio", "x")
    )
    words["duplicates"] = choices.of(("last", "last", "first", "error"))
    return Input(choices.of(("tally", "tally", "tally", "dh_kappa", "audit")), {"read": words}, {name: held})


def tallies(choices: Choices) -> Input:
    """Tally files, intact or with a changed structure or bytes."""
    known = choices.some(choices.of(((*PLAIN_TEXTS, *TEXTS), (0, 1, 2, 300, 2**62), (True, False))), 1, 4)
    n = choices.upto(4)
    votes = ragged_votes(choices, known, n)
    names = ("llm", "rule") if choices.one_in() else ("",)
    by_name = {name: choices.each([*known, None], n) for name in names}
    words: dict[str, Any] = {"suggested": by_name if len(names) > 1 else by_name[""]}
    if choices.one_in(4):
        words |= {"sample_weight": [0.5] * n, "strata": ["s", "t", "s", "t"][:n]}
    made = dhkappa.tally(votes, missing=["gone"], **words)
    held = written_tally(made)
    how = choices.of(("structure", "structure", "structure", "numbers", "bytes", "whole"))
    if how == "structure":
        held = json.dumps(restructured(choices, json.loads(held))).encode()
    elif how == "numbers":
        value = json.loads(held)
        value["items"] = choices.of((0, n, -1, 2**63, n + 0.0, "1", None))
        held = json.dumps(value).encode()
    elif how == "bytes":
        held = damaged(choices, held)
    also = choices.of(("fleiss_kappa", "fleiss_kappa", "dh_kappa", "audit", "compare"))
    return Input("load", {"also": also}, {"tally.json": held}, valid=how == "whole")


def written_tally(made: dhkappa.Tally) -> bytes:
    """Return the content of a tally file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tally.json")
        made.save(path)
        return path.read_bytes()


OPTIONS: Mapping[str, Sequence[str]] = {
    "--suggested": ("llm", "rule", "llm,rule", "x", "", "ann_0"),
    "-s": ("llm", "nobody"),
    "--annotators": ("ann_*", "ann_0,ann_1", "*", "x", ""),
    "--item": ("item", "x", ""),
    "--label": ("label", "ann_0", ""),
    "--annotator": ("annotator", "", "x"),
    "--count": ("count", "", "ann_0"),
    "--counts": ("ann_*", "x"),
    "--items": ("items.csv", "votes.csv", "no.csv", ""),
    "--duplicates": ("first", "last", "x"),
    "--unlisted": ("unlabeled", "error"),
    "--missing": ("NA", "a,b", "1", ""),
    "--input-format": ("table", "prodigy", "x"),
    "--question": ("x", ""),
    "--table": ("x",),
    "--categories": ("a,b,c", "a", "1,2", ",", '"a', "5"),
    "--sample-weight": ("ann_0", "item"),
    "--strata": ("item", "ann_0"),
    "--pool": ("100", "a=10,b=20", "x", "-1", "1e9", "=", "99999999999999999999", "1,000", "i0=5"),
    "--confidence-level": ("0.9", "1", "0", "nan", "-inf", "x", "1e-300"),
    "--weights": ("linear", "quadratic"),
    "--fail-under": ("0.6", "-1", "nan", "2", "inf", "x"),
    "--on": ("value", "low"),
    "--seed": ("1", "-1", "99999999999999999999999", "x"),
    "--title": ("x", "<script>"),
    "--limit": ("1", "0", "99999999999999999999", "x"),
    "--annotator-accuracy": ("0.9", "nan", "2"),
    "--labeler-accuracy": ("0.8", "-1"),
    "--votes": ("3", "1", "99999999999"),
    "--prevalence": ("1,2", "x", "", "nan,1"),
    "--assurance": ("0.9", "1", "0", "nan"),
    "--n-categories": ("3", "1", "x"),
    "--format": ("json", "text", "x"),
    "--raw": (),
    "--rejected": (),
    "--help": (),
    "--version": (),
    "-o": ("out.html", "out.json", "out.csv", "out", "-", "no/out.html", "votes.csv"),
}
# fmt: off
COMMANDS = (
    "score", "score", "audit", "compare", "review", "plan", "completion", "tally make", "tally add", "tally show", "",
)
ARGUMENTS = (
    "votes.csv", "tally.json", "items.csv", "*.csv", "no.csv", "0.05", "bash", ".", "--", "-", "s3://x/y.csv",
    "votes[", "",
)
# fmt: on
SAFE = CHARACTERS.replace("/", "").replace("~", "")  # no path out of the folder


@cache
def _own(names: tuple[str, ...]) -> list[str]:
    """Return the options of a command."""
    from dhkappa.cli.commands import commands as group

    command: Any = group
    for name in names:
        command = command.commands[name]
    return sorted({name for option in command.params for name in option.opts if name in OPTIONS} or {"--help"})


def commands(choices: Choices) -> Input:
    """Command lines: commands, options and files, valid and invalid."""
    columns, *_ = table(choices)
    if choices.one_in():
        columns = {f"suggested_{name}" if name == "llm" else name: held for name, held in columns.items()}
    held = {"votes.csv": written(columns, ".csv")}
    if choices.one_in(5):
        held["votes.csv"] = damaged(choices, held["votes.csv"])
    args = choices.of(COMMANDS).split()
    if args == ["plan"]:
        args += [choices.of(("0.05", "0.3", "x", "nan", "0")), "--annotator-accuracy=0.9", "--labeler-accuracy=0.8"]
        args += ["--n-categories=3"]
    elif args[:1] == ["tally"] and args != ["tally", "make"]:
        args += ["tally.json", *(["-o", "out.json"] if args == ["tally", "add"] else [])]
        held["tally.json"] = written_tally(dhkappa.tally([["a", "b"], ["a", "a"]], {"llm": ["a", "b"]}))
    elif args and args != ["completion"]:
        args += ["votes.csv", *(["-o", "out.json"] if args == ["tally", "make"] else ["-s", "llm"])]
    own = _own(tuple(args[:2] if args[:1] == ["tally"] else args[:1]))
    for _ in range(choices.of((0, 0, 1, 1, 2, 3, 4))):
        name = choices.of(sorted(OPTIONS) if choices.one_in(8) else own)
        args.append(name)
        if OPTIONS[name]:
            strange = name not in ("-o", "--items") and choices.one_in(4)
            args.append("".join(choices.some(SAFE, 0, 6)) if strange else choices.of(OPTIONS[name]))
    if choices.one_in(5):
        more = choices.of((*ARGUMENTS, *TEXTS)) if choices.one_in() else "".join(choices.some(SAFE, 0, 6))
        args.insert(choices.upto(len(args)), more.replace("\0", ""))
    return Input("command", {"args": args}, held, valid=False)


ENTRY_POINTS: Mapping[str, Callable[[Choices], Input]] = {
    "arrays": arrays,
    "frames": frames,
    "files": files,
    "exports": exports,
    "tallies": tallies,
    "commands": commands,
}
