"""Files of every kind, exports, tally files and commands that a fuzzer makes, whole or damaged."""

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
from fuzz_dice import CHARACTERS, PLAIN_TEXTS, TEXTS, Dice, Input, rows
from fuzz_inputs import arrays, asked, frames

SAMPLES = Path(__file__).parents[1] / "tests" / "exports"


PIECES = (b"", b"\0", b'"', b"\n", b",", b"\xff\xfe", b"\xef\xbb\xbf", b"{", b"]", b"\r\n", b"-", b"1e999", b"\\u0000")


def damaged(dice: Dice, held: bytes) -> bytes:
    """Bytes with some of them changed, taken out, doubled or put in."""
    for _ in range(dice.of((1, 1, 1, 2, 3, 6))):
        first = dice.upto(max(len(held) - 1, 0))
        last = min(first + dice.of((1, 0, 1, 2, 4, 16, 200)), len(held))
        put = dice.of((*PIECES, held[first:last] * 2, bytes(dice.each(range(256), 1 + dice.upto(3)))))
        held = held[:first] + put + held[last:]
    return held


def table(dice: Dice) -> tuple[dict[str, list[Any]], list[list[Any]], list[Any]]:
    """Columns of a small table, an item a row, and the votes and labels in it."""
    n, wide = 1 + dice.upto(4), 1 + dice.upto(2)
    known = dice.some((*PLAIN_TEXTS, *PLAIN_TEXTS, *TEXTS), 1, 3)
    votes = [dice.each([*known, None], wide) for _ in range(n)]
    suggested = dice.each([*known, None], n)
    columns = {"item": [f"i{place}" for place in range(n)], "llm": suggested}
    return columns | {f"ann_{place}": [row[place] for row in votes] for place in range(wide)}, votes, suggested


def _field(text: str | None, separator: str) -> str:
    """Write a field of CSV; Python's own writer leaves a lone carriage return without quotes."""
    quoted = any(sign in (text or "") for sign in f'"\r\n{separator}')
    return '"' + text.replace('"', '""') + '"' if text and quoted else text or ""


def written(columns: Mapping[str, Sequence[Any]], ending: str) -> bytes:
    """Write a table as a file of that name would hold it."""
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


def files(dice: Dice) -> Input:
    """Files of every kind, whole or with damaged bytes."""
    columns, votes, suggested = table(dice)
    ending = dice.of(ENDINGS)
    whole = written(columns, ending)
    hurt = dice.upto(2) > 0
    held = damaged(dice, whole) if hurt else whole
    wrong = dice.seldom(16)
    name = "votes" + (dice.of((*ENDINGS, ".zip", ".pq", ".txt", "")) if wrong else ending)
    words: dict[str, Any] = {"data": name, "suggested": "llm"}
    more = {}
    if dice.seldom(4):
        options: dict[str, Sequence[Any]] = {
            "annotators": ("ann_*", ["ann_0"]),
            "item": ("item", None, "x"),
            "label": ("ann_0",),
        }
        options |= {"missing": (["a"],), "weights": ("ann_0", None), "items": (name, "x.csv"), "annotator": ("llm",)}
        options |= {
            "strata": ("item",),
            "counts": ("ann_*",),
            "count": ("ann_0",),
            "suggested": (["llm"], None, "ann_0"),
        }
        more = asked(dice, options)
    elif dice.seldom(8):
        words["data"] = dice.of(("*", "v*", "./votes*", "**", [name, name], [name], "votes[", "", "no", "a\0b", "."))
    ask = dice.of(("tally", "tally", "tally", "dh_kappa", "audit", "fleiss_kappa"))
    if ask == "fleiss_kappa":
        del words["suggested"]
        more.pop("suggested", None)
    sound = not hurt and not wrong and not more and words["data"] == name
    telling = sound and not any("\0" in label or "\r" in label for row in [*votes, suggested] for label in row if label)
    return Input(
        ask,
        words | more,
        {name: held},
        votes=votes if sound else None,
        labels=suggested if sound and ask != "fleiss_kappa" else None,
        sound=telling,
    )


JSON_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        1,
        -1,
        1.5,
        1e300,
        float("inf"),
        float("nan"),
        2**63,
        2**200,
        "",
        "x",
        "\ud800",
        "a\0b",
        "1",
        "accept",
    ),
    *(
        [],
        {},
        [[]],
        [{}],
        {"": {}},
        [None],
        ["x", "x"],
        [1, "1"],
        {"value": 1},
        {"id": None},
        [[["x"]]],
        "2020-01-01T00:00:00Z",
    ),
)


def places(held: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inside = held.items() if isinstance(held, dict) else enumerate(held) if isinstance(held, list) else ()
    return [path, *(place for key, value in inside for place in places(value, (*path, key)))]


def replaced(held: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a JSON value with another at a place; the rest is shared."""
    if not path:
        return value
    copy = held.copy()
    copy[path[0]] = replaced(held[path[0]], path[1:], value)
    return copy


def at(held: Any, path: tuple[Any, ...]) -> Any:
    """Return what is at a place."""
    for key in path:
        held = held[key]
    return held


def misshapen(dice: Dice, held: Any) -> Any:
    """Return a JSON value with things replaced, left out, renamed, doubled or put in the wrong place."""
    for _ in range(dice.of((1, 1, 2, 3))):
        every = places(held)
        path = dice.of(every)
        how = dice.of(("replace", "replace", "drop", "rename", "double", "wrap", "move"))
        if how == "replace" or not path:
            held = replaced(held, path, dice.of(JSON_VALUES))
        elif how == "wrap":
            held = replaced(held, path, [at(held, path)])
        elif how == "move":
            held = replaced(held, path, at(held, dice.of(every)))
        else:
            name = dice.of(("x", "", "id", "label", "value"))
            held = replaced(held, path[:-1], _edited(at(held, path[:-1]), path[-1], how, name))
    return held


def _edited(outer: Any, key: Any, how: str, name: str) -> Any:
    """Drop, rename or double one entry of a list or an object."""
    if isinstance(outer, list):
        return [*outer[:key], *([outer[key]] * 2 if how == "double" else []), *outer[key + 1 :]]
    rest = {other: value for other, value in outer.items() if other != key}
    return rest if how == "drop" else rest | {name: outer[key]} | ({key: outer[key]} if how == "double" else {})


QUESTIONS = (None, "topic", "tone", "sentiment", "stars", "economy", "SPORT", "sure", "topics=food")


@cache
def samples() -> tuple[tuple[str, str, Any, str | None], ...]:
    """Return exports as the tools wrote them, shortened: tool, ending, records (by member of a zip), a question."""
    found = []
    for path in sorted(SAMPLES.glob("*/*.*")):
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
        dhkappa.tally(dhkappa.read(path, question=question), duplicates="last")
    except dhkappa.DataError:
        return False
    return True


def _parsed(held: bytes) -> list[Any]:
    """Return the records of a file: a list, or one a line."""
    if held.lstrip().startswith(b"["):
        return list(json.loads(held))
    return [json.loads(line) for line in held.split(b"\n") if line.strip()]


def exported(ending: str, records: Any) -> bytes:
    """Write records as an export."""
    if ending == ".zip" and isinstance(records, dict):
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w") as archive:
            for name, lines in records.items():
                archive.writestr(zipfile.ZipInfo(name or "x"), exported(".jsonl", lines))
        return sink.getvalue()
    if ending == ".jsonl" and isinstance(records, list):
        return "".join(json.dumps(record) + "\n" for record in records).encode()
    return json.dumps(records).encode()


def exports(dice: Dice) -> Input:
    """Change the structure or the bytes of an export of one of the four tools."""
    tool, ending, records, question = dice.of(samples())
    how = dice.of(("structure", "structure", "structure", "bytes", "whole"))
    held = exported(ending, misshapen(dice, records) if how == "structure" else records)
    held = damaged(dice, held) if how == "bytes" else held
    name = "export" + (dice.of((".json", ".jsonl", ".zip", ".csv")) if dice.seldom(16) else ending)
    words: dict[str, Any] = {"path": name, "question": dice.of((*QUESTIONS, "x", 1)) if dice.seldom(4) else question}
    words["format"] = dice.of((None, None, None, tool, tool, "prodigy", "argilla", "doccano", "label_studio", "x"))
    more = {"duplicates": dice.of(("last", "last", "first", "error"))}
    return Input(dice.of(("tally", "tally", "tally", "dh_kappa", "audit")), {"read": words} | more, {name: held})


def tallies(dice: Dice) -> Input:
    """Tally files, with their structure or their bytes changed."""
    known = dice.some(dice.of(((*PLAIN_TEXTS, *TEXTS), (0, 1, 2, 300, 2**62), (True, False))), 1, 4)
    n = dice.upto(4)
    votes = rows(dice, known, n)
    names = ("llm", "rule") if dice.seldom() else ("",)
    by_name = {name: dice.each([*known, None], n) for name in names}
    words: dict[str, Any] = {"suggested": by_name if len(names) > 1 else by_name[""]}
    if dice.seldom(4):
        words |= {"weights": [0.5] * n, "strata": ["s", "t", "s", "t"][:n]}
    made = dhkappa.tally(votes, missing=["gone"], **words)
    held = written_tally(made)
    how = dice.of(("structure", "structure", "structure", "numbers", "bytes", "whole"))
    if how == "structure":
        held = json.dumps(misshapen(dice, json.loads(held))).encode()
    elif how == "numbers":
        value = json.loads(held)
        value["items"] = dice.of((0, n, -1, 2**63, n + 0.0, "1", None))
        held = json.dumps(value).encode()
    elif how == "bytes":
        held = damaged(dice, held)
    also = dice.of(("fleiss_kappa", "fleiss_kappa", "dh_kappa", "audit", "compare"))
    return Input("load", {"also": also}, {"tally.json": held}, sound=how == "whole")


def written_tally(made: dhkappa.Tally) -> bytes:
    """Return what the file of a tally holds."""
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
    "--format": ("table", "prodigy", "x"),
    "--question": ("x", ""),
    "--table": ("x",),
    "--categories": ("a,b,c", "a", "1,2", ",", '"a', "5"),
    "--weights": ("ann_0", "item"),
    "--strata": ("item", "ann_0"),
    "--pool": ("100", "a=10,b=20", "x", "-1", "1e9", "=", "99999999999999999999", "1,000", "i0=5"),
    "--panel": ("fixed", "drawn"),
    "--level": ("0.9", "1", "0", "nan", "-inf", "x", "1e-300"),
    "--ordinal": ("linear", "quadratic"),
    "--fail-under": ("0.6", "-1", "nan", "2", "inf", "x"),
    "--on": ("value", "low"),
    "--seed": ("1", "-1", "99999999999999999999999", "x"),
    "--title": ("x", "<script>"),
    "--most": ("1", "0", "99999999999999999999", "x"),
    "--accuracy": ("0.9", "nan", "2"),
    "--labeler": ("0.8", "-1"),
    "--votes": ("3", "1", "99999999999"),
    "--prevalence": ("1,2", "x", "", "nan,1"),
    "--assurance": ("0.9", "1", "0", "nan"),
    "--json": (),
    "--raw": (),
    "--rejected": (),
    "--help": (),
    "--version": (),
    "-o": ("out.html", "out.json", "out.csv", "out", "-", "no/out.html", "votes.csv"),
}
COMMANDS = (
    "score",
    "score",
    "audit",
    "compare",
    "items",
    "plan",
    "tally make",
    "tally add",
    "tally show",
    "completion",
    "",
)
ARGUMENTS = (
    "votes.csv",
    "tally.json",
    "items.csv",
    "*.csv",
    "no.csv",
    "0.05",
    "bash",
    ".",
    "--",
    "-",
    "s3://x/y.csv",
    "votes[",
    "",
)
SAFE = CHARACTERS.replace("/", "").replace("~", "")  # so that no path leads out of the folder


@cache
def _own(names: tuple[str, ...]) -> list[str]:
    """Return the options that a command has."""
    from dhkappa.cli.commands import commands as group

    command: Any = group
    for name in names:
        command = command.commands[name]
    return sorted({name for option in command.params for name in option.opts if name in OPTIONS} or {"--help"})


def commands(dice: Dice) -> Input:
    """Arguments of the command line: commands, options and files, in their place and out of it."""
    columns, *_ = table(dice)
    if dice.seldom():
        columns = {f"suggested_{name}" if name == "llm" else name: held for name, held in columns.items()}
    held = {"votes.csv": written(columns, ".csv")}
    if dice.seldom(5):
        held["votes.csv"] = damaged(dice, held["votes.csv"])
    args = dice.of(COMMANDS).split()
    if args == ["plan"]:
        args += [dice.of(("0.05", "0.3", "x", "nan", "0")), "--accuracy=0.9", "--labeler=0.8", "--categories=3"]
    elif args[:1] == ["tally"] and args != ["tally", "make"]:
        args += ["tally.json", *(["-o", "out.json"] if args == ["tally", "add"] else [])]
        held["tally.json"] = written_tally(dhkappa.tally([["a", "b"], ["a", "a"]], {"llm": ["a", "b"]}))
    elif args and args != ["completion"]:
        args += ["votes.csv", *(["-o", "out.json"] if args == ["tally", "make"] else ["-s", "llm"])]
    own = _own(tuple(args[:2] if args[:1] == ["tally"] else args[:1]))
    for _ in range(dice.of((0, 0, 1, 1, 2, 3, 4))):
        name = dice.of(sorted(OPTIONS) if dice.seldom(8) else own)
        args.append(name)
        if OPTIONS[name]:
            strange = name not in ("-o", "--items") and dice.seldom(4)
            args.append("".join(dice.some(SAFE, 0, 6)) if strange else dice.of(OPTIONS[name]))
    if dice.seldom(5):
        more = dice.of((*ARGUMENTS, *TEXTS)) if dice.seldom() else "".join(dice.some(SAFE, 0, 6))
        args.insert(dice.upto(len(args)), more.replace("\0", ""))
    return Input("command", {"args": args}, held, sound=False)


MADE_BY: Mapping[str, Callable[[Dice], Input]] = {
    "arrays": arrays,
    "frames": frames,
    "files": files,
    "exports": exports,
    "tallies": tallies,
    "commands": commands,
}
