"""The loop of a labeling team, on the command line: audit, leave out, slice, review, merge, audit again, compare weeks.

The truth is known, and every number is compared with loops over the rows, or with a command on files that were written
without what an option leaves out.
"""

import csv
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import dhkappa
from cli_files import answer, write
from command import inside
from engines import Engine

Capsys = pytest.CaptureFixture[str]
Row = dict[str, Any]
CARELESS = "dora"
PEOPLE = {"ann": 0.9, "bob": 0.85, "cem": 0.8, CARELESS: 0.4}
LANGUAGES = ("en", "de", "fr")


@dataclass
class Week:
    """The rows of a week, and the true label of each item."""

    votes: list[Row]
    items: list[Row]
    truth: dict[str, str]


def simulated(seed: int, n: int = 150) -> Week:
    options: Any = {"annotators": list(PEOPLE.values()), "labelers": {"llm": 0.75}, "missing": 0.2, "rng": seed}
    drawn = dhkappa.simulate(n, categories=["bug", "question", "other"], **options)
    names = [f"w{seed}-{place:03}" for place in range(n)]
    votes = [
        {"item": name, "annotator": who, "label": label}
        for name, row in zip(names, drawn.votes.tolist(), strict=True)
        for who, label in zip(PEOPLE, row, strict=True)
        if label is not None
    ]
    items = [
        {"item": name, "suggested_llm": label, "language": LANGUAGES[place % 7 % 3], "text": f"text of {name}"}
        for place, (name, label) in enumerate(zip(names, drawn.suggested["llm"].tolist(), strict=True))
    ]
    return Week(votes, items, dict(zip(names, drawn.truth.tolist(), strict=True)))


def rows_of(path: str) -> list[Row]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def result(capsys: Capsys, *words: str) -> Any:
    done = inside(capsys, *words, "--format", "json")
    assert done.returncode == 0, done.stderr
    return answer(done.stdout)["result"]


def without_notes(found: Any) -> Any:
    """Return a result without the notes on what filters have left out."""
    if isinstance(found, dict):
        return {name: without_notes(value) for name, value in found.items() if name != "filters"}
    if isinstance(found, list):
        return [
            without_notes(value) for value in found if not (isinstance(value, dict) and value.get("code") == "filtered")
        ]
    return found


def fill(path: str, truth: dict[str, str]) -> list[Row]:
    """Fill in the true label of every item but each fifth, and return the filled rows."""
    rows = [{**row, "new_label": truth[row["item"]] if place % 5 else ""} for place, row in enumerate(rows_of(path))]
    write(Path(path), rows)
    return [row for row in rows if row["new_label"]]


def majority(votes: list[Row], item: str, old: str) -> tuple[str, str]:
    """Return the label with most votes on an item and how it was found, by a loop."""
    counts: dict[str, int] = {}
    for row in votes:
        if row["item"] == item:
            counts[row["label"]] = counts.get(row["label"], 0) + 1
    most = [label for label, n in counts.items() if n == max(counts.values())]
    return (most[0], "majority") if len(most) == 1 else (old, "tie")


def as_set(rows: list[Row]) -> Counter[tuple[str, ...]]:
    return Counter((row["item"], row["annotator"], row["label"]) for row in rows)


def test_the_loop_of_a_week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    monkeypatch.chdir(tmp_path)
    weeks = {number: simulated(number) for number in (41, 42)}
    for number, week in weeks.items():
        write(Path(f"votes{number}.csv"), week.votes)
        write(Path(f"items{number}.csv"), week.items)
    week = weeks[41]
    data = ["votes41.csv", "--items", "items41.csv"]

    # An audit without an annotator is that of a file without the annotator, also by slices.
    write(Path("careful.csv"), [row for row in week.votes if row["annotator"] != CARELESS])
    leave_out, careful = ["--exclude-annotator", CARELESS], ["careful.csv", "--items", "items41.csv"]
    more = ["--by", "language", "--show", "text", "--seed", "1"]
    left, alone = (result(capsys, "audit", *words, *more) for words in ([*data, *leave_out], careful))
    assert any(note["code"] == "filtered" for note in left["notes"])
    assert without_notes(left) == without_notes(alone)
    assert left["labelers"]["llm"]["review"][0]["text"].startswith("text of w41-")
    slices = left["slices"]["language"]["llm"]["slices"]
    assert {row["slice"] for row in slices} == {*LANGUAGES}
    for row in slices:
        of = ["--where", f"language={row['slice']}"]
        kappas = [result(capsys, "score", *data, *leave_out, *of), result(capsys, "score", *careful, *of)]
        assert {found["labelers"]["llm"]["value"] for found in kappas} == {row["kappa"]}
    whole = result(capsys, "audit", *data, "--seed", "1", "--save", "week41.json", "--date", "2026-11-09")
    assert whole["labelers"]["llm"]["kappa"]["exact"] != left["labelers"]["llm"]["kappa"]["exact"]

    # The review queue, filled in with the truth, and merged as votes and as decisions.
    assert inside(capsys, "review", *data, "--rejected", "-o", "review.csv").returncode == 0
    filled = fill("review.csv", week.truth)
    assert len(filled) > 15
    merge = ["review", *data, "--merge", "review.csv", "--reviewer", "eva"]
    told = result(capsys, *merge, "-o", "new.csv", "--labels", "labels.csv")
    new = rows_of("new.csv")
    added = Counter((row["item"], "eva", row["new_label"]) for row in filled)
    assert as_set(new) == as_set(week.votes) + added
    labels = {row["item"]: row for row in rows_of("labels.csv")}
    reviewed = {row["item"] for row in filled}
    assert [*labels] == [row["item"] for row in week.items]
    for row in week.items:
        old, found = row["suggested_llm"], labels[row["item"]]
        expected = majority(new, row["item"], old) if row["item"] in reviewed else (old, "unchanged")
        assert (found["old"], found["new"], found["source"]) == (old, *expected)
    decided = result(capsys, *merge[:-2], "--as", "decision", "--labels", "decided.csv")
    assert decided["added"] == [
        {"item": row["item"], "annotator": "review", "label": week.truth[row["item"]]}
        for row in sorted(filled, key=lambda row: str(row["item"]))
    ]
    for row in rows_of("decided.csv"):
        is_reviewed = row["item"] in reviewed
        assert row["new"] == (week.truth[row["item"]] if is_reviewed else row["old"])
        assert row["source"] == ("decision" if is_reviewed else "unchanged")

    # The audits of the merged files are those that the merge has printed, and nothing can be merged twice.
    corrected = [{**row, "suggested_llm": labels[row["item"]]["new"]} for row in week.items]
    write(Path("corrected.csv"), corrected)
    for files, place in (
        (data, 0),
        (["new.csv", "--items", "items41.csv"], 1),
        (["new.csv", "--items", "corrected.csv"], 2),
    ):
        kappa = result(capsys, "score", *files)["labelers"]["llm"]
        assert kappa["value"] == told["audits"][place]["kappa"]
        assert kappa["n_items"] == told["audits"][place]["items"]
    again = inside(
        capsys, "review", "new.csv", *data[1:], "--merge", "review.csv", "--reviewer", "eva", "-o", "twice.csv"
    )
    assert (again.returncode, Path("twice.csv").exists()) == (2, False)
    assert "already voted" in again.stderr
    for filtered in (leave_out, ["--where", "language=en"]):
        done = inside(capsys, *merge, *filtered, "-o", "lost.csv", "--labels", "lost-labels.csv")
        assert (done.returncode, "filtered data" in done.stderr) == (2, True)
        assert not Path("lost.csv").exists()
        assert not Path("lost-labels.csv").exists()

    # The list of items for one more vote holds no suggested label, and takes the votes of several annotators.
    assert inside(capsys, "review", "new.csv", *data[1:], "--next", "20", "-o", "next.csv").returncode == 0
    asked = rows_of("next.csv")
    assert len(asked) == 20
    assert "suggested" not in asked[0]
    voters = ["fay", "gus"]
    given = [
        {**row, "label": week.truth[row["item"]], "annotator": voters[place % 2]} for place, row in enumerate(asked)
    ]
    write(Path("next.csv"), given)
    told = result(capsys, "review", "new.csv", *data[1:], "--merge", "next.csv", "-o", "newer.csv")
    assert told["n_reviewed"] == 20
    assert as_set(rows_of("newer.csv")) == as_set(new) + as_set(given)

    # Every number of the history is that of an audit of the week alone.
    later = ["votes42.csv", "--items", "items42.csv", "--seed", "1"]
    audits = [whole, result(capsys, "audit", *later, "--save", "week42.json", "--date", "2026-11-16")]
    history = result(capsys, "history", "week42.json", "week41.json")
    for row, panel, audit in zip(history["labelers"]["llm"]["history"], history["fleiss"], audits, strict=True):
        kappa, fleiss = audit["labelers"]["llm"]["kappa"], audit["fleiss"]
        assert (row["items"], row["kappa"]) == (kappa["n_items"], kappa["value"])
        assert (row["low"], row["high"]) == tuple(kappa["confidence_interval"][end] for end in ("low", "high"))
        assert row["verdict"] == audit["labelers"]["llm"]["verdict"]["code"]
        assert (panel["items"], panel["fleiss"]) == (fleiss["n_items"], fleiss["value"])
        assert (panel["low"], panel["high"]) == tuple(fleiss["confidence_interval"][end] for end in ("low", "high"))
    since = result(capsys, "audit", *later, "--baseline", "week41.json")["baseline"]
    assert json.dumps(since).count(json.dumps(history["labelers"]["llm"]["since_last"]["change"]["difference"])) > 0

    # A week with a filter, compared with one without, is said to be so.
    assert not {"filters-differ"} & {note["code"] for note in history["notes"]}
    result(capsys, "audit", *data, *leave_out, "--save", "careful41.json", "--date", "2026-11-09")
    mixed = result(capsys, "history", "careful41.json", "week42.json")
    [text] = [note["text"] for note in mixed["notes"] if note["code"] == "filters-differ"]
    assert "2026-11-09: Without annotator 'dora'; 2026-11-16: none" in text
    since = result(capsys, "audit", *later, "--baseline", "careful41.json")["baseline"]
    assert "filters-differ" in json.dumps(since)
    same = result(capsys, "audit", *later, *leave_out, "--baseline", "careful41.json")["baseline"]
    assert "filters-differ" not in json.dumps(same)


# The same loop on every kind of data

WEEK = simulated(43, 120)


def columns_of(rows: list[Row]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def smaller_loop(votes: Any, items: Any) -> dict[str, Any]:
    """Audit without an annotator and by slices, review, merge and audit again; return what must be equal."""
    data = dhkappa.read(votes, items=items) if isinstance(votes, str) else dhkappa.Dataset(votes, items=items)
    sliced: Any = {"slices": "language", "show": ["text"], "items": items}
    whole = dhkappa.read(votes, **sliced) if isinstance(votes, str) else dhkappa.Dataset(votes, **sliced)
    audit = dhkappa.audit(whole.exclude_annotators(CARELESS).filter("language!=fr"), rng=1, progress=False)
    queue = audit.review("llm", limit=40)
    truth = [WEEK.truth[item] for item in queue.column("item")]
    filled = dhkappa.Table({"item": queue.column("item"), "new_label": truth})
    merged = dhkappa.merge_reviews(data, filled, reviewer="eva")
    assert merged.votes is not None
    return {
        "kappa": audit.kappas["llm"].exact,
        "slices": audit.slices("language").table.to_dicts(),
        "queue": [(row["item"], row["text"], row["differential"]) for row in queue],
        "next": [(row["item"], row["text"]) for row in audit.next_votes(limit=20)],
        "votes": as_set(merged.votes.to_dicts()),
        "labels": sorted((row["item"], row["new"], row["source"]) for row in merged.labels.to_dicts()),
        "again": [one.kappas["llm"].exact for one in (merged.before, merged.after, merged.corrected)],
    }


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of CSV files, of which votes and labels are checked by loops."""
    folder = tmp_path_factory.mktemp("week")
    found = smaller_loop(write(folder / "votes.csv", WEEK.votes), write(folder / "items.csv", WEEK.items))
    reviewed = [item for item, _, _ in found["queue"]]
    added = [{"item": item, "annotator": "eva", "label": WEEK.truth[item]} for item in reviewed]
    assert found["votes"] == as_set(WEEK.votes) + as_set(added)
    old = {row["item"]: row["suggested_llm"] for row in WEEK.items}
    new = [*WEEK.votes, *added]
    assert found["labels"] == sorted(
        (item, *(majority(new, item, label) if item in reviewed else (label, "unchanged")))
        for item, label in old.items()
    )
    assert {text for _, text, _ in found["queue"]} == {f"text of {item}" for item in reviewed}
    return found


@pytest.mark.parametrize("kind", ["xlsx", "parquet", "jsonl"])
def test_files(kind: str, expected: dict[str, Any], tmp_path: Path) -> None:
    files = [write(tmp_path / f"{name}.{kind}", rows) for name, rows in (("votes", WEEK.votes), ("items", WEEK.items))]
    assert smaller_loop(*files) == expected


def test_engines(engine: Engine, expected: dict[str, Any]) -> None:
    tables = [engine.table(columns_of(rows)) for rows in (WEEK.votes, WEEK.items)]
    assert smaller_loop(*tables) == expected
