"""Files of every layout and kind, exports and real data: the JSON of the command holds the numbers of the library."""

import copy
import csv
import gzip
import io
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import click
import duckdb
import jsonschema
import pytest

import dhkappa
from dhkappa.cli.commands import commands, main
from dhkappa.cli.options import in_flags
from dhkappa.errors import DataError
from test_cli import REPORTS, WIDE, inside, refused, run
from test_published import SCORED, digits, table_of

ROOT = Path(__file__).parents[1]
SCHEMA = json.loads((ROOT / "docs" / "schema.json").read_text("utf-8"))
VALID = jsonschema.Draft202012Validator(SCHEMA)
EXPORTS = sorted(path for path in (ROOT / "tests" / "exports").glob("*/*") if path.suffix != ".py")

Rows = list[dict[str, Any]]
Capsys = pytest.CaptureFixture[str]

CATEGORIES = ["ham", "news", "spam"]
DRAWN = dhkappa.simulate(
    40, categories=CATEGORIES, annotators=[0.95, 0.8, 0.7], labelers={"rule": 0.6, "llm": 0.9}, missing=0.1, rng=3
)
VOTES = DRAWN.votes.tolist()
LABELS = {name: labels.tolist() for name, labels in DRAWN.suggested.items()}
EXACT = {name: str(dhkappa.dh_kappa(VOTES, labels).exact) for name, labels in LABELS.items()}


def answer(text: str) -> Any:
    """Read what ``--format json`` printed: one JSON value by the schema, without NaN, which is no JSON."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    told = json.loads(text, parse_constant=refuse)
    errors = [f"{error.json_path}: {error.message}" for error in VALID.iter_errors(told)]
    assert not errors, errors[:5]
    return told


# Layouts and kinds of files


def wide() -> Rows:
    return [
        {"item": f"t{place}"}
        | {f"suggested_{name}": labels[place] for name, labels in LABELS.items()}
        | {f"ann_{who}": vote for who, vote in enumerate(votes)}
        for place, votes in enumerate(VOTES)
    ]


def items() -> Rows:
    return [{name: row[name] for name in ("item", "suggested_rule", "suggested_llm")} for row in wide()]


def long() -> Rows:
    beside = {row["item"]: row for row in items()}
    return [row | beside[row["item"]] for row in long_alone()]


def long_alone() -> Rows:
    return [
        {"item": f"t{place}", "annotator": f"a{who}", "label": vote}
        for place, votes in enumerate(VOTES)
        for who, vote in enumerate(votes)
        if vote is not None
    ]


def counted_long() -> Rows:
    return [
        {"item": f"t{place}", "label": label, "count": count}
        for place, votes in enumerate(VOTES)
        for label, count in Counter(vote for vote in votes if vote is not None).items()
    ]


def counted_wide() -> Rows:
    return [row | {label: VOTES[place].count(label) for label in CATEGORIES} for place, row in enumerate(items())]


LAYOUTS: dict[str, tuple[Callable[[], Rows], bool, list[str]]] = {
    "wide": (wide, False, []),
    "long": (long, False, []),
    "long-items": (long_alone, True, []),
    "counted-long": (counted_long, True, []),
    "counted-wide": (counted_wide, False, ["--counts", ",".join(CATEGORIES)]),
}


def write(path: Path, rows: Rows) -> str:
    """Write rows as the file's name says."""
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    if kind == "parquet":
        plain = path.with_suffix(".jsonl")
        write(plain, rows)
        duckdb.sql(f"COPY (FROM read_json('{plain}')) TO '{path}' (FORMAT parquet)")
        return str(path)
    file = io.StringIO(newline="")
    if kind == "json":
        json.dump(rows, file)
    elif kind == "jsonl":
        file.writelines(json.dumps(row) + "\n" for row in rows)
    else:
        writer = csv.DictWriter(file, list(rows[0]), delimiter="\t" if kind == "tsv" else ",")
        writer.writeheader()
        writer.writerows(rows)
    data = file.getvalue().encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


def exact(told: Any) -> dict[str, str]:
    return {name: kappa["exact"] for name, kappa in told["result"]["labelers"].items()}


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "json", "jsonl", "jsonl.gz", "parquet"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_score_of_every_layout(layout: str, kind: str, tmp_path: Path, capsys: Capsys) -> None:
    rows, beside, words = LAYOUTS[layout]
    words = [*words, "--items", write(tmp_path / f"items.{kind}", items())] if beside else words
    done = inside(capsys, "score", write(tmp_path / f"votes.{kind}", rows()), *words, "--format", "json")
    assert exact(answer(done.stdout)) == EXACT


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_command_on_every_layout(layout: str, tmp_path: Path, capsys: Capsys) -> None:
    rows, beside, words = LAYOUTS[layout]
    file = write(tmp_path / "votes.csv", rows())
    words = [*words, "--items", write(tmp_path / "items.csv", items())] if beside else words
    done = (
        run("audit", file, *words, "--format", "json")
        if beside
        else inside(capsys, "audit", file, *words, "--format", "json")
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = answer(done.stdout)["result"]
    assert {name: found["kappa"]["exact"] for name, found in told["labelers"].items()} == EXACT
    named = layout in ("wide", "long", "long-items")
    assert all((found["annotator_comparison"] is not None) == named for found in told["labelers"].values())
    assert all((found["annotators"] is not None) == named for found in told["labelers"].values())
    shared = answer(inside(capsys, "compare", file, *words, "--format", "json").stdout)["result"]
    assert {name: kappa["exact"] for name, kappa in shared["kappas"].items()} == EXACT
    queue = answer(inside(capsys, "items", file, *words, "-s", "llm", "--format", "json").stdout)["result"]["items"]
    assert (
        queue
        == answer(inside(capsys, "audit", file, *words, "-s", "llm", "--format", "json").stdout)["result"]["labelers"][
            "llm"
        ]["items"]
    )
    assert {row["item"] for row in queue} <= {row["item"] for row in items()}
    planned = answer(inside(capsys, "plan", "0.05", file, *words, "-s", "llm", "--format", "json").stdout)["result"]
    assert planned["items"] == dhkappa.plan(0.05, dhkappa.dh_kappa(VOTES, LABELS["llm"])).items
    made = answer(inside(capsys, "tally", "make", file, *words, "-o", tmp_path / "t.json", "--format", "json").stdout)[
        "result"
    ]
    counts = (made["n_items"], made["n_votes"], made["categories"], made["labelers"])
    assert counts == (40, sum(vote is not None for votes in VOTES for vote in votes), CATEGORIES, ["rule", "llm"])
    assert exact(answer(inside(capsys, "score", tmp_path / "t.json", "--format", "json").stdout)) == EXACT


def test_columns_of_any_name(tmp_path: Path, capsys: Capsys) -> None:
    table = [
        {"q, no": row["item"], "machine": row["suggested_llm"]} | {f"p{who}": row[f"ann_{who}"] for who in range(3)}
        for row in wide()
    ]
    file = write(tmp_path / "own.csv", table)
    for words in (["--annotators", "p*"], ["-a", "p0,p1", "-a", "p2"]):
        done = inside(capsys, "score", file, "--suggested", "machine", *words, "--format", "json")
        assert exact(answer(done.stdout)) == {"machine": EXACT["llm"]}
    queue = inside(capsys, "items", file, "-s", "machine", "-a", "p*", "--item", "q, no", "--format", "json")
    assert answer(queue.stdout)["result"]["items"][0]["item"].startswith("t")
    cast = [{"q": row["item"], "who": row["annotator"], "vote": row["label"]} for row in long_alone()]
    words = [
        "--item",
        "q",
        "--label",
        "vote",
        "--annotator",
        "who",
        "--items",
        write(
            tmp_path / "own_items.csv", [{"q": row["item"], "machine, new": row["suggested_llm"]} for row in items()]
        ),
    ]
    done = inside(
        capsys, "score", write(tmp_path / "cast.csv", cast), *words, "-s", '"machine, new"', "--format", "json"
    )
    assert exact(answer(done.stdout)) == {"machine, new": EXACT["llm"]}


def test_several_files_and_a_pattern(tmp_path: Path, capsys: Capsys) -> None:
    parts = [write(tmp_path / f"part-{half}.csv", wide()[half::2]) for half in (0, 1)]
    assert exact(answer(run("score", *parts, "--format", "json").stdout)) == EXACT
    assert exact(answer(inside(capsys, "score", tmp_path / "part-*.csv", "--format", "json").stdout)) == EXACT


def test_words_reach_the_library(tmp_path: Path, capsys: Capsys) -> None:
    """Each option against the same word in Python."""
    rows = [row | {"w": 1 + place % 3, "s": "ab"[place % 2]} for place, row in enumerate(wide())]
    file = write(tmp_path / "votes.parquet", rows)
    duplicate = write(tmp_path / "twice.csv", [*long(), long()[0] | {"label": "news"}])
    asked: list[tuple[str, list[str], dict[str, Any]]] = [
        (file, ["--sample-weight", "w"], {"sample_weight": "w"}),
        (file, ["--strata", "s", "--pool", "a=100,b=900"], {"strata": "s", "pool": {"a": 100, "b": 900}}),
        (file, ["--strata", "s", "--pool", "a=100", "--pool", "b=900"], {"strata": "s", "pool": {"a": 100, "b": 900}}),
        (file, ["--pool", "5_000"], {"pool": 5000}),
        (file, ["--categories", "spam,ham,news,other"], {"categories": ["spam", "ham", "news", "other"]}),
        (
            file,
            ["--categories", "spam,ham,news", "--weights", "quadratic"],
            {"categories": ["spam", "ham", "news"], "weighted": "quadratic"},
        ),
        (file, ["--missing", "ham"], {"missing": ["ham"]}),
        (duplicate, ["--duplicates", "last"], {"duplicates": "last"}),
        (duplicate, ["--annotator", ""], {"annotator": None}),
    ]
    for path, words, python in asked:
        told = answer(inside(capsys, "score", path, "-s", "llm", *words, "--format", "json").stdout)["result"][
            "labelers"
        ]["llm"]
        assert told == dhkappa.dh_kappa(path, "suggested_llm", **python).to_dict()
    told = answer(inside(capsys, "score", file, "-s", "llm", "--confidence-level", "0.8", "--format", "json").stdout)[
        "result"
    ]
    low = dhkappa.dh_kappa(VOTES, LABELS["llm"]).confidence_interval(0.8).low
    assert (told["confidence_level"], told["labelers"]["llm"]["confidence_interval"]["low"]) == (0.8, low)


def test_whole_numbers_as_categories_and_missing(tmp_path: Path, capsys: Capsys) -> None:
    """Text on the command line stands for the whole numbers of a typed file too."""
    code = {"ham": 1, "news": 2, "spam": 10, None: 99}
    rows = [{name: code[vote] for name, vote in row.items() if name != "item"} for row in wide()]
    words = ["--categories", "1,2,10", "--missing", "99"]
    for kind in ("parquet", "csv"):
        done = inside(capsys, "score", write(tmp_path / f"codes.{kind}", rows), *words, "--format", "json")
        assert exact(answer(done.stdout)) == EXACT


@pytest.mark.parametrize("truth", [False, True])
def test_strata_and_categories_of_a_typed_file(truth: bool, tmp_path: Path, capsys: Capsys) -> None:
    """Text on the command line stands for whole numbers and truth values, as Python writes them."""
    code: dict[str | None, Any] = {"ham": 0, "news": 1, "spam": 0, None: None}
    kind: Callable[[Any], Any] = bool if truth else int
    rows = [
        {name: None if code[vote] is None else kind(code[vote]) for name, vote in row.items() if name != "item"}
        | {"drawn": kind(place % 2)}
        for place, row in enumerate(wide())
    ]
    file, no, yes = write(tmp_path / "typed.parquet", rows), kind(0), kind(1)
    words = ["--strata", "drawn", "--pool", f"{no}=100,{yes}=50", "--categories", f"{no},{yes}", "--format", "json"]
    python: dict[str, Any] = {"strata": "drawn", "pool": {no: 100, yes: 50}, "categories": [no, yes]}
    expected = dhkappa.dh_kappa(file, "suggested_llm", **python).to_dict()
    assert answer(inside(capsys, "score", file, "-s", "llm", *words).stdout)["result"]["labelers"]["llm"] == expected
    audited = answer(inside(capsys, "audit", file, "-s", "llm", *words, "--seed", "1").stdout)["result"]
    told = dhkappa.audit(file, {"llm": "suggested_llm"}, rng=1, **python).to_dict()
    assert audited == json.loads(json.dumps(told)) | {"report": None}
    sentence = refused(inside(capsys, "score", file, "-s", "llm", *words[:2], "--pool", f"{no}=100,7=50"))
    assert sentence == f"pool has no size for stratum {no}: it names '{no}', '7'."


# Exports and real data


@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_exports(path: Path, capsys: Capsys) -> None:
    """The same answer as in Python, or the same sentence."""
    done = inside(capsys, "audit", path, "--seed", "1", "--format", "json")
    wrong, found = "", {}
    try:
        found = json.loads(json.dumps(dhkappa.audit(path, rng=1).to_dict())) | {"report": None}
    except DataError as error:
        wrong = in_flags(str(error))
    if wrong:
        assert refused(done) == wrong
    else:
        assert answer(done.stdout)["result"] == found


def test_an_export_of_each_tool_in_a_process(capsys: Capsys) -> None:
    told = answer(run("score", ROOT / "tests/exports/label_studio/mail_whole.json", "--format", "json").stdout)
    assert told["result"]["labelers"]
    sentence = refused(run("score", ROOT / "tests/exports/label_studio/mail_whole.json", "--input-format", "prodigy"))
    assert "Prodigy" in sentence or "prodigy" in sentence


@pytest.mark.parametrize("name", [name for name in SCORED if name != "davidson"])
def test_real_data_without_a_flag_but_items(name: str, shared_data: Path, capsys: Capsys) -> None:
    folder = shared_data / name
    votes = next(path for path in (folder / "annotations.csv", folder / "counts_long.csv") if path.exists())
    done = inside(capsys, "score", votes, "--items", folder / "items.csv", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    told, table = answer(done.stdout)["result"]["labelers"], table_of(folder)
    assert list(told) == list(SCORED[name].kappas)
    for labeler, value in SCORED[name].kappas.items():
        assert told[labeler]["value"] == dhkappa.dh_kappa(table.votes, table.suggested(labeler)).value
        assert digits(told[labeler]["value"], value) == value


@pytest.mark.parametrize("name", ["crows_pairs", "dices_350", "tweeteval_annotated"])
def test_audit_of_real_data_without_a_flag_but_items(name: str, shared_data: Path) -> None:
    folder = shared_data / name
    votes = next(path for path in (folder / "annotations.csv", folder / "counts_long.csv") if path.exists())
    done = run("audit", votes, "--items", folder / "items.csv", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    told, table = answer(done.stdout)["result"], table_of(folder)
    for labeler, found in told["labelers"].items():
        assert found["kappa"]["value"] == dhkappa.dh_kappa(table.votes, table.suggested(labeler)).value
    assert digits(told["fleiss"]["value"], SCORED[name].fleiss) == SCORED[name].fleiss


def test_davidson_with_counts(shared_data: Path) -> None:
    counts = "hate_speech,offensive_language,neither"
    done = run("score", shared_data / "davidson" / "items.csv", "--counts", counts, "--format", "json")
    told = answer(done.stdout)["result"]["labelers"]
    table = table_of(shared_data / "davidson")
    assert {name: kappa["value"] for name, kappa in told.items()} == {
        name: dhkappa.dh_kappa(table.votes, table.suggested(name)).value for name in SCORED["davidson"].kappas
    }


# The schema


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
    asked = {
        "audit": "audit votes.csv --fail-under 0.1 --weights linear --categories ham,news,spam",
        "score": "score votes.csv --fail-under 0.1",
        "compare": "compare votes.csv",
        "items": "items votes.csv -s llm",
        "plan": "plan 0.05 --categories 3 --annotator-accuracy 0.9 --labeler-accuracy 0.9 --pool 5000",
        "tally make": "tally make votes.csv -o one.json",
        "tally add": "tally add one.json -o two.json",
        "tally show": "tally show two.json",
        "demo": "demo --items 30 -o demo",
    }
    with chdir(folder):
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
        assert (told["command"], told["version"], told["dhkappa"]) == (name, 1, dhkappa.__version__)
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
            place["new"] = None
            assert not VALID.is_valid(cut), (command, *place)
            del place["new"]
        assert cut == short(told)
    assert len(seen) >= 25  # kinds of objects


def test_the_schema_refuses_another_version_command_or_type(answers: dict[str, Any]) -> None:
    for wrong in ({"version": 2}, {"command": "audit"}, {"result": None}, {"dhkappa": 1}):
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
    "panel's own": "suggested,ann_1,ann_2,ann_3\nx,x,x,y\ny,y,y,x\nx,x,x,x\n",
    "two labelers, one alike": "suggested_a,suggested_b,ann_1,ann_2\nx,x,x,x\ny,y,x,x\nx,x,y,y\n",
    "two labelers, no item in common": "suggested_a,suggested_b,ann_1,ann_2\nx,,x,x\n,y,x,x\ny,,y,y\n,y,y,y\n",
}


@pytest.mark.parametrize("name", ODD)
def test_odd_data_by_the_schema(name: str, tmp_path: Path, capsys: Capsys) -> None:
    file = tmp_path / "odd.csv"
    file.write_text(ODD[name])
    for command in ("audit", "score", "items", "compare"):
        done = inside(capsys, command, file, "--format", "json")
        if done.returncode == 2:  # several labelers for items, one for compare
            assert command in ("items", "compare")
            assert refused(done)
            continue
        assert done.returncode == 0
        answer(done.stdout)
        shown = inside(capsys, command, file)
        assert (shown.returncode, shown.stderr) == (0, "")


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
        assert done.returncode == 0, (rows, done.stderr)
        answer(done.stdout)


def test_undefined_is_null(tmp_path: Path, capsys: Capsys) -> None:
    (tmp_path / "same.csv").write_text(ODD["one category"])
    told = answer(inside(capsys, "audit", tmp_path / "same.csv", "--fail-under", "0", "--format", "json").stdout)
    kappa: Mapping[str, Any] = told["result"]["labelers"]["suggested"]["kappa"]
    assert (kappa["value"], kappa["exact"], kappa["confidence_interval"]["low"]) == (None, None, None)
    assert kappa["reason"]
    assert told["result"]["labelers"]["suggested"]["verdict"]["code"] == "unknown"
    assert told["gate"]["passed"] == {"suggested": False}


def test_a_hostile_table_is_plain_json(tmp_path: Path, capsys: Capsys) -> None:
    (tmp_path / "votes.csv").write_text(WIDE.replace("spam", '"a\x1b[31m""\u2028</script>"'), encoding="utf-8")
    told = answer(inside(capsys, "score", tmp_path / "votes.csv", "--format", "json").stdout)
    assert told["result"]["labelers"]["llm"]["parts"]["C"][0][0] == 'a\x1b[31m"\u2028</script>'
