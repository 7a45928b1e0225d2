"""What seldom happens: odd tables, odd words, files that cannot be read, and systems that do not tell."""

import gzip
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator, Mapping
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest
from scipy.special import betaincinv

import dhkappa
import oracle
from dhkappa import DataError, audit, dh_kappa, fleiss_kappa, memory, plan, tally
from dhkappa.cli.commands import main
from dhkappa.errors import OutOfMemoryError
from dhkappa.inputs import dataset as given
from dhkappa.inputs.backends.duckdb import DuckDBFrame, connect, reading
from dhkappa.memory import MIB, Room
from dhkappa.stats.quantiles import beta_quantile
from dhkappa.table import Table

COMMAND = str(Path(sys.executable).with_name("dhkappa"))
REPORTS = all(map(find_spec, ("altair", "jinja2", "vl_convert")))
VOTES = [["a", "a", "b"], ["b", "b", "b"], ["a", "b", "c"], ["c", "c", "a"], ["a", "a", "a"]]
LABELS = ["a", "b", "c", "c", "b"]
KAPPA = oracle.dh(VOTES, LABELS, [*"abc"]).kappa
WIDE = "item,suggested,ann_1,ann_2,ann_3\n" + "".join(
    f"t{place},{label},{','.join(votes)}\n" for place, (label, votes) in enumerate(zip(LABELS, VOTES, strict=True))
)
Capsys = pytest.CaptureFixture[str]
Monkeypatch = pytest.MonkeyPatch


def run(capsys: Capsys, *words: str | Path) -> tuple[int, str, str]:
    """Run the command in this process: its exit code, and what it writes."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, words)))
    shown = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, shown.out, shown.err


def child(code: str) -> str:
    """Run some Python in a process of its own, and return what it prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    path = tmp_path / "votes.csv"
    path.write_text(WIDE)
    return path


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A file that nobody can read: also root, whom no permission stops, gets nothing of the memory at 0."""
    path = tmp_path / "closed.csv"
    path.write_text(WIDE)
    path.chmod(0)
    if os.access(path, os.R_OK):
        path.unlink()
        if not os.path.isfile("/proc/self/mem"):
            pytest.skip("this user may read every file")
        path.symlink_to("/proc/self/mem")
    return path


def wide(**more: list[Any]) -> pd.DataFrame:
    columns = {f"ann_{place}": list(column) for place, column in enumerate(zip(*VOTES, strict=True))}
    return pd.DataFrame({"suggested": LABELS, **columns, **more})


def long(**more: list[Any]) -> pd.DataFrame:
    rows = [(item, label, vote) for item, (label, row) in enumerate(zip(LABELS, VOTES, strict=True)) for vote in row]
    item, suggested, label = map(list, zip(*rows, strict=True))
    return pd.DataFrame({"item": item, "suggested": suggested, "label": label, **more})


# Votes


def test_an_array_of_lists_is_votes() -> None:
    rows = np.empty(len(VOTES), object)
    rows[:] = VOTES
    assert dh_kappa(rows, LABELS).exact == KAPPA
    ragged = np.empty(len(VOTES), object)
    ragged[:] = [[*VOTES[0], "a"], *VOTES[1:]]
    assert dh_kappa(ragged, LABELS).exact == oracle.dh(ragged.tolist(), LABELS, [*"abc"]).kappa
    assert dh_kappa(pd.Series(VOTES), LABELS).exact == KAPPA


def test_a_strangers_table_is_an_array() -> None:
    class Grid:
        columns = ("x", "y", "z")

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
            return np.array(VOTES, object)

    assert dh_kappa(Grid(), LABELS).exact == KAPPA
    with pytest.raises(DataError, match="annotators name columns of a table, but the data are a Grid, which has none"):
        dh_kappa(Grid(), LABELS, annotators="x")


@pytest.mark.parametrize("labelers", [4, 13])
def test_many_labelers_of_many_labels(labelers: int) -> None:
    """The labels of one item as one number: 64 to the 4th is too many to list, 64 to the 13th for a machine word."""
    draw = np.random.default_rng(3)
    votes = draw.integers(0, 64, (8, 3))
    votes[:, 1] = votes[:, 0]
    labels = {f"l{place}": np.where(draw.random(8) < 0.5, votes[:, 0], 5) for place in range(labelers)}
    for name in labels:
        labels[name][:2] = 0, 63  # so that codes have 64 values
    whole = tally(votes, labels)
    used = sorted({*votes.ravel().tolist(), 0, 5, 63})
    for name, own in labels.items():
        assert dh_kappa(whole, name).exact == oracle.dh(votes.tolist(), own.tolist(), used).kappa


def test_more_different_votes_than_a_block() -> None:
    """17 votes of two labels are 131,072 different rows; each once, and all beside what the first of them says."""
    n = 1 << 17
    votes = (np.arange(n)[:, None] >> np.arange(17) & 1).astype(np.uint8)
    labels = {"first": votes[:, 0], "last": votes[:, 16]}
    found = dhkappa.compare(votes, labels, rng=1)
    for name in labels:
        assert found.kappas[name].exact == dh_kappa(votes, labels[name]).exact
    # Of the other 16 votes, each agrees with the first in half of all rows, as in every pair of them.
    assert found.kappas["first"].exact == Fraction(1, 17)
    assert found.kappas["last"].exact == Fraction(1, 17)


# Words for a table


def refusals() -> Iterator[tuple[str, Any, dict[str, Any], str]]:
    yield (
        "two layouts",
        wide(),
        {"annotators": ["ann_0", "ann_1"], "counts": ["ann_2"]},
        "annotators and counts are words of different layouts: say what the columns are",
    )
    yield "no item", long(), {"label": "label"}, "label is given without item: name the column that says which item"
    yield (
        "a labeler twice",
        wide(),
        {"suggested": ["suggested", "suggested"]},
        "suggested names a labeler twice: 'suggested', 'suggested'",
    )
    yield "no annotators", wide(), {"annotators": []}, "annotators is empty: name a column at least. Columns: suggested"
    yield (
        "another part",
        wide(),
        {"suggested": "suggested", "annotators": ["ann_0", "suggested"]},
        "column 'suggested' is named in annotators, but plays another part too",
    )
    yield (
        "an annotator twice",
        wide(),
        {"annotators": ["ann_0", "ann_1", "ann_0"]},
        "annotators names a column twice: 'ann_0', 'ann_1', 'ann_0'",
    )
    yield "a number", wide(), {"annotators": 5}, "annotators must be the name of a column, beside a table: got 5"
    yield "item of a number", long(), {"item": 5, "label": "label"}, "item must be the name of a column, .*: got 5"
    yield (
        "a number as labeler",
        wide(),
        {"suggested": 5, "annotators": "ann_*"},
        r"suggested must name columns of the data: got 5\. Columns: suggested, ann_0",
    )
    yield (
        "a column without a name",
        wide().rename(columns={"ann_1": 7}),
        {},
        "columns must have text as names, to be named: got 7",
    )
    yield (
        "categories without a column",
        pd.DataFrame({"suggested": ["x", "y"], "x": [1, 2], "y": [2, 1]}),
        {"suggested": "suggested", "counts": ["x", "y"], "categories": ["x", "z"]},
        "categories 'x', 'z' lack some columns of counts, 'x', 'y': name them too",
    )
    yield (
        "weights that are words",
        wide(w=["1", "2", "many", "1", "1"]),
        {"suggested": "suggested", "sample_weight": "w"},
        "column 'w' must hold weights, numbers of 0 or more: 1 item or more have 'many'",
    )
    yield (
        "weights that are lists",
        duckdb.sql("SELECT 'a' AS suggested, 'a' AS ann_1, 'b' AS ann_2, [1] AS w"),
        {"suggested": "suggested", "sample_weight": "w"},
        r"column 'w' must hold weights, numbers of 0 or more: 1 item or more have array\(\[1\]",
    )


REFUSALS = list(refusals())


@pytest.mark.parametrize(("data", "words", "sentence"), [case[1:] for case in REFUSALS], ids=[c[0] for c in REFUSALS])
def test_words_that_do_not_fit(data: Any, words: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        audit(data, **words, progress=False)


def test_a_mapping_names_columns() -> None:
    found = audit(wide(guess=list("abccb")), {"rule": "guess", "llm": "suggested"}, progress=False)
    assert found.labelers == ("rule", "llm")
    assert found.kappas["rule"].exact == found.kappas["llm"].exact == KAPPA
    grid = wide()[["ann_0", "ann_1", "ann_2"]]
    assert audit(grid, {"llm": LABELS}, progress=False).kappas["llm"].exact == KAPPA


@pytest.mark.parametrize("table", [wide, long])
@pytest.mark.parametrize("kind", ["categories", "months"])
def test_items_that_are_no_text(kind: str, table: Any) -> None:
    frame = table()
    names = pd.Categorical([*"edcba"]) if kind == "categories" else pd.period_range("2020-01", periods=5, freq="M")
    frame["item"] = names if table is wide else names.repeat(3)
    found = audit(frame, "suggested", progress=False)
    assert found.kappas["suggested"].exact == KAPPA
    rejected = next(iter(found.review()))  # three votes for a, where b is suggested
    assert (str(rejected["item"]), rejected["votes"]) == (str(names[4]), "a: 3")


def test_pandas_columns_of_one_name() -> None:
    frame = wide().rename(columns={"ann_1": "ann_0"})
    with pytest.raises(DataError, match="columns 'ann_0' occur twice: each needs a name of its own"):
        dh_kappa(frame, "suggested")
    assert dh_kappa(frame[["ann_0", "ann_2"]], LABELS).exact == KAPPA


def test_arrow_columns_of_one_name() -> None:
    frame = pa.table([LABELS, LABELS, LABELS], names=["suggested", "ann_1", "ann_1"])
    with pytest.raises(DataError, match="columns 'ann_1' occur twice: each needs a name of its own"):
        dh_kappa(frame, "suggested")


def test_zeros_of_both_signs_are_one() -> None:
    rows = {"item": [1, 1, 2, 2], "label": [0, 0, 0, 1], "suggested": [0.0, -0.0, 1.0, 1.0]}
    assert tally(pa.table(rows)).n_items == tally(pd.DataFrame(rows)).n_items == 2


# What an engine says


def test_an_item_without_a_name_comes_last(monkeypatch: Monkeypatch) -> None:
    monkeypatch.setattr(given, "_MOST_GATHERED", 1)  # so that items are looked up as they are asked for
    rows = "(NULL, 'b'), ('y', 'b'), ('x', 'b'), ('v', 'a'), ('w', 'a')"
    data = duckdb.sql(f"SELECT *, 'a' AS ann_1, 'a' AS ann_2 FROM (VALUES {rows}) AS t(item, suggested)")
    found = audit(data, progress=False)
    assert [row["item"] for row in found.review()] == ["x", "y", None, "v", "w"]
    told = "The table is too large to be fetched, so only counts were asked for, not who cast which vote"
    assert found.story().unsigned == told
    assert [note.text for note in found.notes if note.code == "too-large"] == [f"{told}: annotators are left out."]


def test_votes_that_change_as_they_are_read() -> None:
    votes = "i // 3 AS item, 'a' AS label, (1 + 1e6 * random())::INTEGER AS n"  # hardly the same sum twice
    data = duckdb.sql(f"SELECT {votes} FROM range(30000) AS t(i)")
    with pytest.raises(DataError, match=r"DuckDB counted [\d,]+ votes where there are [\d,]+: do they change as they"):
        fleiss_kappa(data, item="item", label="label", count="n")


def test_a_column_that_cannot_be_computed() -> None:
    """What is wrong shows only as items are grouped by it, after labels were counted."""
    suggested = "CAST(CASE WHEN i = 7 THEN 'x' ELSE '1' END AS INTEGER) AS suggested"
    data = duckdb.sql(f"SELECT i // 3 AS item, 1 AS label, {suggested} FROM range(30) AS t(i)")
    with pytest.raises(
        DataError, match=r"DuckDB could not answer; what it says is below\.\n.*Could not convert string"
    ):
        dh_kappa(data)


def test_a_connection_of_little_memory() -> None:
    connection = duckdb.connect(config={"memory_limit": "30MB", "temp_directory": "", "threads": "1"})
    data = connection.sql("SELECT (i // 2)::VARCHAR || 'item' AS item, 'a' AS label FROM range(3000000) AS t(i)")
    with pytest.raises(OutOfMemoryError, match="what DuckDB counts did not fit into memory"):
        fleiss_kappa(data)


@pytest.mark.parametrize(
    ("raised", "kind", "sentence"),
    [
        ("Query interrupted", KeyboardInterrupt, "^$"),
        ("std::bad_alloc", OutOfMemoryError, "a file did not fit into memory"),
        ("something else", RuntimeError, "something else"),
    ],
)
def test_what_is_raised_while_a_file_is_read(raised: str, kind: type[BaseException], sentence: str) -> None:
    with pytest.raises(kind, match=sentence), reading("a file"):
        raise RuntimeError(raised)


@pytest.mark.parametrize(
    ("cause", "kind"), [(KeyboardInterrupt(), KeyboardInterrupt), (MemoryError(), OutOfMemoryError)]
)
def test_what_a_library_left_behind_unseen(cause: BaseException, kind: type[BaseException]) -> None:
    """Python then says that something was returned with an error set, and names that as the cause."""
    with pytest.raises(kind), DuckDBFrame(None, "DuckDB", ()).asking():
        raise SystemError("returned a result with an exception set") from cause


# Files


def test_a_packed_file_that_is_wrong_in_two_ways(tmp_path: Path) -> None:
    """DuckDB finds a field too many before it finds what is not UTF-8, which a look at quotes would find first."""
    path = tmp_path / "votes.csv.gz"
    many = "".join(f"u{place},a,a,a,b\n" for place in range(10_000)).encode()  # more than are read for the header
    path.write_bytes(gzip.compress(WIDE.encode() + many + b"v,a,caf\xe9,b,b\nw,a,a,a,a,a\n"))
    with pytest.raises(DataError, match=r"votes\.csv\.gz': line 10008 .* has 6 fields where the header has 5"):
        dh_kappa(path)


def test_records_without_a_comma_between(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text('[{"text": "x"}\n {"text": "y"}]')
    with pytest.raises(DataError, match="not whole JSON, damaged or cut short, in line 1, column 15: Expecting ','"):
        dhkappa.read(path, input_format="doccano")


def test_a_file_that_cannot_be_read(closed: Path, capsys: Capsys) -> None:
    with pytest.raises(DataError, match=r"closed.csv' cannot be opened: see who may read it\.\n"):
        dhkappa.read(closed)
    code, out, err = run(capsys, "score", closed)
    assert (code, out) == (2, "")
    assert "closed.csv' cannot be opened: see who may read it." in err


@pytest.mark.parametrize("remarks", ["a sentence", [1]])
def test_remarks_of_a_tally_that_are_none(tmp_path: Path, remarks: Any) -> None:
    path = tmp_path / "tally.json"
    tally(VOTES, LABELS).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"remarks": remarks}))
    with pytest.raises(DataError, match=r"tally\.json' is a damaged tally: 'remarks' is not a list of sentences"):
        dhkappa.Tally.load(path)


# Memory, where the system does not tell


def test_where_nothing_tells_of_memory(tmp_path: Path, monkeypatch: Monkeypatch) -> None:
    path = tmp_path / "votes.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE votes AS SELECT 'a' AS suggested, 'a' AS ann_1, 'a' AS ann_2")
    monkeypatch.setattr(memory, "_rooms", lambda swap: [])
    assert memory.room() is None
    assert memory.share() is None
    with connect(str(path)) as connection:
        assert dh_kappa(connection.table("votes")).n_items == 1
    held: list[tuple[int, int]] = []
    monkeypatch.setattr(memory, "_HELD", held)
    environment = dict(os.environ)
    memory.hold()
    assert held == []
    assert dict(os.environ) == environment
    held.append((-1, -1))  # as if there had been a limit before
    memory._hold_again()
    assert held == [(-1, -1)]


def test_where_there_are_no_limits() -> None:
    told = child(
        "import sys; sys.modules['resource'] = None; from dhkappa import dh_kappa, memory; memory.hold();"
        f"print(list(memory._ulimit()), memory._HELD, dh_kappa({VOTES}, {LABELS}).exact)"
    )
    assert told.split() == ["[]", "[]", str(KAPPA)]


def test_addresses_that_are_enough(monkeypatch: Monkeypatch) -> None:
    monkeypatch.setattr(memory, "_ulimit", lambda: iter([Room(100 * MIB, 200 * MIB, "ulimit -v")]))
    memory.need_addresses(100 * MIB, "the report")
    with pytest.raises(OutOfMemoryError, match=r"the report reserves 0 GiB of addresses.* there are 200 MiB by ulimit"):
        memory.need_addresses(100 * MIB + 1, "the report")


# The command line


def test_a_tally_without_names_is_scored(tmp_path: Path, capsys: Capsys) -> None:
    path = tmp_path / "tally.json"
    tally(VOTES, LABELS).save(path)
    code, out, _ = run(capsys, "score", path, "--format", "json")
    assert code == 0
    assert KAPPA is not None
    labelers = json.loads(out)["result"]["labelers"]
    assert list(labelers) == ["labeler"]
    assert labelers["labeler"]["value"] == pytest.approx(float(KAPPA), rel=1e-15)


def test_an_export_without_labels_is_not_scored(tmp_path: Path, capsys: Capsys) -> None:
    choice = {"from_name": "kind", "to_name": "text", "type": "choices", "value": {"choices": ["a"]}}
    annotator_comparison = [{"id": place, "completed_by": place, "result": [choice]} for place in (1, 2)]
    path = tmp_path / "export.json"
    path.write_text(
        json.dumps([{"id": 1, "data": {"text": "x"}, "annotations": annotator_comparison, "predictions": [5]}])
    )
    code, out, err = run(capsys, "score", path)
    assert (code, out) == (2, "")
    assert "task 1 has its predictions as ids (5), which tell no label" in err


def test_part_credit_on_the_screen(votes: Path, capsys: Capsys) -> None:
    code, out, _ = run(capsys, "audit", votes, "--categories", "a,b,c", "--weights", "linear")
    assert code == 0
    near = dh_kappa(VOTES, LABELS, categories=[*"abc"], weights="linear").value
    _, _, shown = out.partition("with part credit for near votes")
    assert f"suggested   {near:.2f} " in shown.split("\n\n")[0]


def test_one_pattern_of_counts(tmp_path: Path, capsys: Capsys) -> None:
    path = tmp_path / "counts.csv"
    lines = [
        f"{label},{','.join(str(row.count(one)) for one in 'abc')}" for label, row in zip(LABELS, VOTES, strict=True)
    ]
    path.write_text("\n".join(["suggested,a,b,c", *lines]))
    code, out, _ = run(capsys, "score", path, "--suggested", "suggested", "--counts", "[abc]", "--format", "json")
    assert code == 0
    assert KAPPA is not None
    assert json.loads(out)["result"]["labelers"]["suggested"]["value"] == pytest.approx(float(KAPPA), rel=1e-15)


def test_categories_that_fit_neither_as_text_nor_as_numbers(votes: Path, capsys: Capsys) -> None:
    code, out, err = run(capsys, "score", votes, "--categories", "1,2,3")
    assert (code, out) == (2, "")
    assert "votes holds 'a', 'b', 'c', not among the declared categories '1', '2', '3'" in err


def test_a_stratum_of_the_pool_twice(votes: Path, capsys: Capsys) -> None:
    code, out, err = run(capsys, "score", votes, "--pool", "x=10", "--pool", "x=20")
    assert (code, out) == (2, "")
    assert err == "dhkappa: --pool names a stratum twice: got x=10, x=20.\n"


def test_items_on_a_terminal_are_shown_not_obeyed(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(WIDE.replace("t4", "t\x1b[31m4"))
    person, terminal = pty.openpty()
    done = subprocess.run(
        [COMMAND, "items", path, "--limit", "1"], stdout=terminal, stderr=subprocess.DEVNULL, timeout=120, check=False
    )
    os.close(terminal)
    told = os.read(person, 65_536).decode()
    os.close(person)
    assert done.returncode == 0
    assert "\x1b" not in told
    assert '"t\\x1b[31m4","b","a"' in told


def test_items_for_nobody(votes: Path) -> None:
    """Few lines wait until the end, when nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [COMMAND, "items", votes],
        stdout=writer,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        timeout=120,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_demo_without_what_draws(tmp_path: Path, capsys: Capsys, monkeypatch: Monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    folder = tmp_path / "demo"
    code, out, _ = run(capsys, "demo", "--items", "30", "-o", folder)
    assert code == 0
    told = " ".join(out.split())
    assert "No report was written: the report needs " in told
    assert "vl_convert: pip install 'dhkappa[report]'" in told
    assert sorted(path.name for path in folder.iterdir()) == ["annotations.csv", "items.csv"]
    code, out, _ = run(capsys, "demo", "--items", "30", "-o", folder, "--format", "json")
    assert code == 0
    assert json.loads(out)["result"]["report"] is None


def test_a_demo_beside_a_file_of_another_kind(tmp_path: Path, capsys: Capsys) -> None:
    (tmp_path / "annotations.csv").write_bytes(b"\xff\xfe\x00")
    code, out, err = run(capsys, "demo", "--items", "30", "-o", tmp_path)
    assert (code, out) == (2, "")
    assert "has a file 'annotations.csv' that is not the demo's, which would write over it" in err
    assert (tmp_path / "annotations.csv").read_bytes() == b"\xff\xfe\x00"


# Numbers and tables


@pytest.mark.skipif(not REPORTS, reason="the report's libraries are absent")
def test_an_annotator_who_shares_no_item_in_the_report(tmp_path: Path) -> None:
    votes = [
        {"item": place, "annotator": who, "label": vote}
        for place, row in enumerate(VOTES)
        for who, vote in zip("pqr", row, strict=True)
    ]
    frame = pd.DataFrame([*votes, {"item": 9, "annotator": "alone", "label": "a"}])
    frame["suggested"] = [dict(enumerate(LABELS)).get(item, "a") for item in frame["item"]]
    found = audit(frame, progress=False)
    row = next(row for row in found.annotators() if row["annotator"] == "alone")
    assert row["agree"] != row["agree"]
    found.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "nan" not in page.split("<script")[0].lower().replace("financ", "")


def test_a_quantile_that_takes_all_steps() -> None:
    """So near to 1, p itself tells the tail to six digits, and x to seven."""
    found = beta_quantile(1.33, 8941454.0, 0.9999999997680385)
    assert found == pytest.approx(float(betaincinv(1.33, 8941454.0, 0.9999999997680385)), rel=1e-7)


def test_a_half_width_beyond_floats() -> None:
    with pytest.raises(DataError, match=r"half_width must be .*: got 1000000"):
        plan(10**400, n_categories=3, annotator_accuracy=0.9, labeler_accuracy=0.9)


def test_a_pool_of_names_that_are_no_labels() -> None:
    strata = ["x", "x", "x", "y", "y"]
    sizes: Mapping[Any, int] = {"x": 30, "y": 20, ("z", 1): 5}
    with pytest.raises(DataError, match=r"pool names 1 stratum without items in the data \(\('z', 1\)\)"):
        dh_kappa(VOTES, LABELS, strata=strata, pool=sizes)
    found = dh_kappa(VOTES, LABELS, strata=strata, pool={**sizes, ("z", 1): 0})
    assert found.exact == dh_kappa(VOTES, LABELS, strata=strata, pool={"x": 30, "y": 20}).exact


def test_names_wider_than_the_terminal() -> None:
    names = "n" * 70, "m" * 70
    lines = repr(Table({names[0]: [1], names[1]: ["text"], "other": [2]})).splitlines()
    assert lines[0].split() == [*names]
    assert lines[1].split() == ["1", "text"]
    assert lines[2] == "[columns not shown: other]"
