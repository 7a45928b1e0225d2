"""The JSON output of every command and its schema."""

import copy
import io
import json
import random
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest

import dhkappa
from cli_files import SCHEMA, VALID, answer, wide, write
from command import REPORTS, WIDE, inside, refused
from dhkappa.cli.commands import commands, main

Capsys = pytest.CaptureFixture[str]


def leaves(group: click.Group, before: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, f"{before}{name} ")
        else:
            yield before + name


def told_by(command: str) -> dict[str, Any]:
    """Find what the schema says of a command."""
    return next(one for one in SCHEMA["oneOf"] if one["properties"]["command"]["const"] == command)


def test_every_command_is_in_the_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    in_schema = [one["properties"]["command"]["const"] for one in SCHEMA["oneOf"]]
    assert in_schema == [name for name in leaves(commands) if name != "completion"]  # which prints a script
    for name in in_schema:
        command: Any = commands
        for word in name.split():
            command = command.commands[word]
        assert any("--format" in option.opts for option in command.params), name
        gated = any("--fail-under" in option.opts for option in command.params)
        assert ("anyOf" in told_by(name)["properties"]["gate"]) == gated, name


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What every command prints, by command."""
    folder = tmp_path_factory.mktemp("answers")
    write(folder / "votes.csv", wide())
    write(folder / "before.csv", wide()[:25])
    weighted = "--weights linear --categories ham,news,spam"
    asked = {
        "check": "check votes.csv",
        "audit": f"audit votes.csv --fail-under 0.1 {weighted} --save 2.json --date 2026-11-09 --baseline 1.json",
        "score": "score votes.csv --fail-under 0.1",
        "compare": "compare votes.csv",
        "review": "review votes.csv -s llm",
        "history": "history 1.json 2.json --by category",
        "annotators": "annotators votes.csv",
        "pool": "pool votes.csv -s llm --pool ham=400,news=300,spam=500",
        "plan": "plan 0.05 --n-categories 3 --annotator-accuracy 0.9 --labeler-accuracy 0.9 --pool 5000",
        "tally make": "tally make votes.csv -o one.json",
        "tally add": "tally add one.json -o two.json",
        "tally show": "tally show two.json",
        "demo": "demo --n-items 30 -o demo",
    }
    with chdir(folder):
        printed(f"audit before.csv {weighted} --save 1.json --date 2026-11-02")
        return {name: json.loads(printed(f"{words} --format json")) for name, words in asked.items()}


def printed(words: str) -> str:
    """Run a command in this process, and return what it prints."""
    with redirect_stdout(io.StringIO()) as out, suppress(SystemExit):
        main(words.split())
    return out.getvalue()


def test_every_command_prints_by_the_schema(answers: dict[str, Any]) -> None:
    assert set(answers) == {one["properties"]["command"]["const"] for one in SCHEMA["oneOf"]}
    for name, told in answers.items():
        assert answer(json.dumps(told)) == told
        assert (told["command"], told["version"], told["dhkappa"]) == (name, 2, dhkappa.__version__)
    assert answers["demo"]["result"]["files"] == ["demo/annotations.csv", "demo/items.csv"]
    assert answers["demo"]["result"]["report"] == ("demo/report.html" if REPORTS else None)


def short(value: Any) -> Any:
    """Return the same with lists cut to their first value: enough to see every kind of object."""
    if isinstance(value, dict):
        return {key: short(inner) for key, inner in value.items()}
    return [short(inner) for inner in value[:1]] if isinstance(value, list) and len(value) != 2 else value


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Find every object."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(inner)


def test_the_schema_refuses_missing_and_unknown_keys(answers: dict[str, Any]) -> None:
    by_labeler = {"rule", "llm"}  # keys that are names of labelers, not ours
    seen: set[frozenset[str]] = set()
    for command, told in answers.items():
        cut = short(told)
        assert VALID.is_valid(cut)
        for place in objects(cut):
            if by_labeler & {*place} or frozenset(place) in seen:
                continue
            seen.add(frozenset(place))
            for key in list(place):
                kept = dict(place)
                del place[key]
                assert not VALID.is_valid(cut), (command, key)
                place.clear()
                place.update(kept)
            if not {"item", "suggested"} <= {*place}:  # rows of items also have columns of the data
                place["new"] = None
                assert not VALID.is_valid(cut), (command, *place)
                del place["new"]
        assert cut == short(told)
    assert len(seen) >= 25  # kinds of objects


def test_the_schema_refuses_another_version_command_or_type(answers: dict[str, Any]) -> None:
    for wrong in ({"version": 1}, {"command": "audit"}, {"result": None}, {"dhkappa": 1}):
        assert not VALID.is_valid(answers["score"] | wrong)
    wrong = copy.deepcopy(answers["score"])
    wrong["result"]["labelers"]["llm"]["value"] = "0.5"
    assert not VALID.is_valid(wrong)


ODD = {
    "one category": "suggested,ann_1,ann_2\nx,x,x\nx,x,x\n",
    "one item": "suggested,ann_1,ann_2\nx,x,y\n",
    "two items": "suggested,ann_1,ann_2\nx,x,y\ny,y,y\n",
    "lone votes": "suggested,ann_1,ann_2\nx,x,\ny,,y\n",
    "no labels": "suggested,ann_1,ann_2\n,x,y\n,y,y\n",
    "no annotators": "item,label,suggested\n1,x,x\n1,x,x\n2,y,x\n2,y,x\n3,y,y\n3,x,y\n",
    "majority labels": "suggested,ann_1,ann_2,ann_3\nx,x,x,y\ny,y,y,x\nx,x,x,x\n",
    "two labelers, one alike": "suggested_a,suggested_b,ann_1,ann_2\nx,x,x,x\ny,y,x,x\nx,x,y,y\n",
    "two labelers, no item in common": "suggested_a,suggested_b,ann_1,ann_2\nx,,x,x\n,y,x,x\ny,,y,y\n,y,y,y\n",
}


@pytest.mark.parametrize("name", ODD)
def test_odd_data_by_the_schema(name: str, tmp_path: Path, capsys: Capsys) -> None:
    file = tmp_path / "odd.csv"
    file.write_text(ODD[name])
    for command in ("audit", "score", "review", "compare"):
        done = inside(capsys, command, file, "--format", "json")
        if done.returncode == 2 and not done.stdout:  # several labelers for review, one for compare, or an error
            assert command in ("review", "compare")
            assert refused(done)
            continue
        judged = "No labeler can be judged" not in done.stderr
        assert done.returncode == (0 if judged else 2)
        answer(done.stdout)
        shown = inside(capsys, command, file)
        assert shown.returncode == done.returncode
        said = json.loads(done.stdout)["result"]["problems"] if command == "review" else []
        codes = [problem["code"] for problem in said if problem["severity"] != "info"]
        listed = shown.stderr.splitlines() if judged else []
        assert [line.split("[")[1].split("]")[0] for line in listed] == codes


def test_random_small_data_by_the_schema(tmp_path: Path, capsys: Capsys) -> None:
    """Tables of a few items, whose kappas are often undefined in part."""
    chance = random.Random(20)
    for place in range(40):
        labels = ["x", "y", "z"][: chance.randint(1, 3)]
        rows = [
            {"suggested_a": chance.choice([*labels, ""]), "suggested_b": chance.choice(labels)}
            | {f"ann_{who}": chance.choice([*labels, ""]) for who in range(chance.randint(1, 3))}
            for _ in range(chance.randint(1, 5))
        ]
        rows = [{name: row.get(name, "") for name in rows[0]} for row in rows]
        file = write(tmp_path / f"{place}.csv", rows)
        done = inside(capsys, "audit", file, "--format", "json")
        judged = "No labeler can be judged" not in done.stderr
        assert done.returncode == (0 if judged else 2), (rows, done.stderr)
        answer(done.stdout)


def test_undefined_is_null(tmp_path: Path, capsys: Capsys) -> None:
    (tmp_path / "same.csv").write_text(ODD["one category"])
    told = answer(inside(capsys, "audit", tmp_path / "same.csv", "--fail-under", "0", "--format", "json").stdout)
    kappa: Mapping[str, Any] = told["result"]["labelers"]["suggested"]["kappa"]
    assert (kappa["value"], kappa["exact"], kappa["confidence_interval"]["low"]) == (None, None, None)
    assert kappa["reason"]
    assert told["result"]["labelers"]["suggested"]["verdict"]["code"] == "not-enough-data"
    assert told["gate"]["outcome"] == "undecided"


def test_a_hostile_table_is_plain_json(tmp_path: Path, capsys: Capsys) -> None:
    (tmp_path / "votes.csv").write_text(WIDE.replace("spam", '"a\x1b[31m""\u2028</script>"'), encoding="utf-8")
    told = answer(inside(capsys, "score", tmp_path / "votes.csv", "--format", "json").stdout)
    assert told["result"]["labelers"]["llm"]["parts"]["C"][0][0] == 'a\x1b[31m"\u2028</script>'
