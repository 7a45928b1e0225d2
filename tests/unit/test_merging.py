"""Reviewed files merged with votes: the whole loop on data with a known truth, and every format of the data."""

import csv
import io
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars  # noqa: F401
import pytest

import dhkappa
from dhkappa import Dataset, MergedReviews, Table, merge_reviews
from dhkappa.report.sheets import next_sheet, review_sheet
from expect import expect_error

N = 240
SIM = dhkappa.simulate(N, labelers={"llm": 0.8, "rule": 0.7}, annotators=3, accuracy=0.75, rng=7)
IDS = [f"t{place:03}" for place in range(N)]
LLM, RULE = (list(map(str, SIM.suggested[name])) for name in ("llm", "rule"))
TRUTH = dict(zip(IDS, map(str, SIM.truth), strict=True))
VOTES: list[list[str | None]] = [
    [None if (place + who) % 7 == 0 else str(vote) for who, vote in enumerate(row)]
    for place, row in enumerate(SIM.votes)
]
WIDE: dict[str, list[Any]] = {"item": IDS, "text": [f"text of {one}" for one in IDS]}
WIDE |= {"suggested_llm": LLM, "suggested_rule": RULE}
WIDE |= {f"ann_{who}": [row[who] for row in VOTES] for who in range(3)}
LONG: dict[str, list[Any]] = {"item": [], "label": [], "annotator": [], "suggested_llm": [], "text": [], "seconds": []}
for _place, _row in enumerate(VOTES):
    for _who, _vote in enumerate(_row):
        if _vote is not None:
            cells = IDS[_place], _vote, f"ann_{_who}", LLM[_place], f"text of {IDS[_place]}", str(_who)
            for _name, _cell in zip(LONG, cells, strict=True):
                LONG[_name].append(_cell)


def filled(names: list[Any], labels: list[Any], **more: list[Any]) -> Table:
    return Table({"item": names, "new_label": labels, **more})


def review_of(data: Any, limit: int = 60) -> Table:
    """Return the first items to review, filled in with the truth; every fifth is left blank."""
    sheet = review_sheet(dhkappa.audit(data, progress=False).review("llm", limit=limit))
    columns = {name: sheet.column(name) for name in sheet.names}
    truth = [None if place % 5 == 4 else TRUTH[item] for place, item in enumerate(sheet.column("item"))]
    return Table(columns | {"new_label": truth})


def votes_by_item(data: Any) -> dict[Any, Counter[Any]]:
    """Count the votes of every item from the rows of the review queue and the excluded items, by who voted."""
    read = (data if isinstance(data, Dataset) else Dataset(data)).item_votes()
    assert read is not None
    names, found = read.item_names(), dict[Any, Counter[Any]]()
    for row, who, code in zip(*(values.tolist() for values in read.sorted_votes), strict=True):
        person = None if read.annotators is None else read.annotators[who]
        found.setdefault(names[row], Counter())[person, read.categories[code]] += 1
    return found


def reread(table: Table, folder: Path, ending: str = "csv") -> Dataset:
    """Write votes to a file, and read them again."""
    path = folder / f"updated.{ending}"
    if ending == "csv":
        table.to_csv(path, safe=False)
    else:
        table.to_excel(path)
    return dhkappa.read(path)


def test_the_loop_on_data_with_a_known_truth(tmp_path: Path) -> None:
    data = Dataset(Table(WIDE).to_pandas())
    before, sheet = votes_by_item(data), review_of(data)
    merged = merge_reviews(data, sheet, "llm", reviewer="expert")
    assert merged.votes is not None
    # No vote is lost or counted twice: the file has the old votes and one of the expert on each reviewed item.
    expected = {item: Counter(own) for item, own in before.items()}
    for row in sheet:
        if row["new_label"] is not None:
            expected[row["item"]]["ann_expert", row["new_label"]] += 1
    assert votes_by_item(reread(merged.votes, tmp_path)) == expected
    # The new labels are those of the majority, counted here from the votes alone.
    reviewed = {row["item"] for row in sheet if row["new_label"] is not None}
    assert merged.n_reviewed == len(reviewed) == 48
    assert merged.n_blank == 12
    outvoted = []
    for row, old in zip(merged.labels, LLM, strict=True):
        assert row["old"] == old
        number = Counter[str]()
        for (_, label), n in expected.get(row["item"], Counter()).items():
            number[label] += n
        most = [label for label, n in number.items() if n == max(number.values())]
        if row["item"] not in reviewed:
            assert (row["new"], row["source"]) == (old, "unchanged")
        elif len(most) > 1:
            assert (row["new"], row["source"]) == (old, "tie")
            assert row["item"] in merged.undecided
        else:
            assert (row["new"], row["source"]) == (most[0], "majority")
            assert row["item"] in (merged.confirmed if old == most[0] else merged.changed)
            outvoted += [row["item"]] if most[0] != TRUTH[row["item"]] else []
    assert merged.n_outvoted == len(outvoted)
    said = {row["item"]: row["new_label"] == LLM[IDS.index(row["item"])] for row in sheet if row["new_label"]}
    assert (merged.n_reviewers_confirmed, merged.n_reviewers_changed) == (sum(said.values()), 48 - sum(said.values()))
    assert merged.n_changed_against == len({*outvoted} & {*merged.changed})
    assert merged.table().column("verdict")[2] == "not judged: made from votes"
    assert isinstance(merged.corrected, dhkappa.Audit)
    assert merged.corrected.verdict("llm").code == "labels-from-votes"
    assert merged.corrected.gate("annotators").outcome != "pass"
    right = [sum(row[which] == TRUTH[row["item"]] for row in merged.labels) for which in ("old", "new")]
    assert right[1] > right[0]
    # Auditing the written votes again gives the audit of the result.
    again = dhkappa.audit(reread(merged.votes, tmp_path), "llm", progress=False)
    assert again.kappas["llm"].exact == merged.after.kappas["llm"].exact
    assert dhkappa.audit(data, ["llm"]).kappas["llm"].exact == merged.before.kappas["llm"].exact
    labels = dict(zip(merged.labels.column("item"), merged.labels.column("new"), strict=True))
    corrected = Table(
        {**{name: merged.votes.column(name) for name in merged.votes.names}, "suggested_new": [*labels.values()]}
    )
    found = dhkappa.dh_kappa(reread(corrected, tmp_path), "new").exact
    assert found == merged.corrected.kappas["llm"].exact
    # The next queue no longer has reviewed items without reason: merging the same file is refused.
    with expect_error("review-merged"):
        merge_reviews(reread(merged.votes, tmp_path), sheet, "llm", reviewer="expert")
    with expect_error("review-merged"):
        merge_reviews(reread(merged.votes, tmp_path), sheet, "llm", reviewer="Ann_Expert")
    second = merge_reviews(reread(merged.votes, tmp_path), sheet, "llm", reviewer="second")
    assert second.votes is not None
    assert second.votes.names[-2:] == ("ann_expert", "ann_second")


def test_decisions_are_the_labels() -> None:
    sheet = review_of(Table(WIDE).to_pandas())
    merged = merge_reviews(Table(WIDE).to_pandas(), sheet, action="decision", suggested=["suggested_llm"])
    assert merged.votes is None
    decided = {row["item"]: row["new_label"] for row in sheet if row["new_label"] is not None}
    for row, old in zip(merged.labels, LLM, strict=True):
        expected = (decided[row["item"]], "decision") if row["item"] in decided else (old, "unchanged")
        assert (row["new"], row["source"]) == expected
    assert {*merged.changed} == {item for item, label in decided.items() if label != LLM[IDS.index(item)]}
    assert {*merged.confirmed} == {*decided} - {*merged.changed}
    assert merged.undecided == ()
    assert merged.after.kappas["llm"].exact == merged.before.kappas["llm"].exact
    labels = merged.labels.column("new")
    assert merged.corrected.kappas["llm"].exact == dhkappa.dh_kappa(VOTES, labels).exact
    assert merged.table().column("labels") == ["suggested", "corrected"]
    assert isinstance(merged.corrected, dhkappa.Audit)
    assert merged.corrected.verdict("llm").code == "labels-from-votes"
    assert merged.table().column("verdict")[1] == "not judged: made from votes"
    assert (merged.n_reviewers_confirmed, merged.n_reviewers_changed) == (len(merged.confirmed), len(merged.changed))
    assert "After their votes" not in merged.summary


def write(columns: dict[str, list[Any]], path: Path) -> Path:
    if path.suffix == ".csv":
        Table(columns).to_csv(path)
    elif path.suffix == ".xlsx":
        Table(columns).to_excel(path)
    else:
        import pyarrow.parquet

        pyarrow.parquet.write_table(Table(columns).to_arrow(), path)
    return path


def duck(columns: dict[str, list[Any]]) -> Any:
    import duckdb

    arrow = Table(columns).to_arrow()
    return duckdb.from_arrow(arrow)


SOURCES: dict[str, Callable[[dict[str, list[Any]], Path], Any]] = {
    "csv": lambda columns, folder: dhkappa.read(write(columns, folder / "votes.csv")),
    "xlsx": lambda columns, folder: dhkappa.read(write(columns, folder / "votes.xlsx")),
    "parquet": lambda columns, folder: dhkappa.read(write(columns, folder / "votes.parquet")),
    "pandas": lambda columns, folder: Dataset(Table(columns).to_pandas()),
    "polars": lambda columns, folder: Dataset(Table(columns).to_polars()),
    "duckdb": lambda columns, folder: Dataset(duck(columns)),
}


def two_tables(source: str, votes: dict[str, list[Any]], items: dict[str, list[Any]], folder: Path) -> Dataset:
    """Return data whose items are in a table of their own."""
    if source == "parquet":
        return dhkappa.read(write(votes, folder / "votes.parquet"), items=write(items, folder / "items.parquet"))
    tables = [duck(one) if source == "duckdb" else getattr(Table(one), f"to_{source}")() for one in (votes, items)]
    return Dataset(tables[0], items=tables[1])


@pytest.mark.parametrize("columns", [WIDE, LONG], ids=["wide", "long"])
def test_every_source_gives_the_same(columns: dict[str, list[Any]], tmp_path: Path) -> None:
    results = {}
    for name, make in SOURCES.items():
        data = make(columns, tmp_path)
        sheet = review_of(data)
        merged = merge_reviews(data, sheet, "llm")
        assert merged.votes is not None
        assert merged.votes.names[: len(columns) - 3] == (*columns,)[: len(columns) - 3]
        votes, old = votes_by_item(reread(merged.votes, tmp_path)), votes_by_item(data)
        assert {item: own - old.get(item, Counter()) for item, own in votes.items() if own != old.get(item)} == {
            row["item"]: Counter({("review" if columns is LONG else "ann_review", row["new_label"]): 1})
            for row in sheet
            if row["new_label"] is not None
        }
        results[name] = merged.labels.to_dicts(), merged.votes.to_dicts(), merged.to_dict()["audits"]
    for name, found in results.items():
        assert found == results["csv"], name


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet", "pandas", "duckdb", "semicolons"])
def test_reviewed_files_of_every_type(ending: str, tmp_path: Path) -> None:
    data = Dataset(Table(WIDE).to_pandas())
    sheet = review_of(data)
    columns = {name: sheet.column(name) for name in sheet.names}
    given: Any = sheet.to_pandas() if ending == "pandas" else duck(columns) if ending == "duckdb" else None
    if ending == "semicolons":  # as Excel saves it where a comma is the decimal sign: reordered, with added columns
        rows = list(csv.reader(io.StringIO(sheet.to_csv())))
        file = io.StringIO()
        writer = csv.writer(file, delimiter=";", lineterminator="\r\n")
        writer.writerows([["a", *row[::-1], "b", ""] for row in rows[:1]])
        for row in rows[:0:-1]:
            writer.writerow(["", *row[::-1], "1,5", ""])
            writer.writerow([""] * (len(row) + 3))
        given = tmp_path / "saved.csv"
        given.write_bytes(b"\xef\xbb\xbf" + file.getvalue().encode())
    elif given is None:
        given = write(columns, tmp_path / f"review.{ending}")
    expected, found = (merge_reviews(data, reviews, "llm") for reviews in (sheet, given))
    assert found.labels.to_dicts() == expected.labels.to_dicts()
    assert found.added.to_dicts() == expected.added.to_dicts()
    assert found.n_blank == expected.n_blank


NAMES: dict[str, list[Any]] = {
    "text": ["007", "7.0", "a b"],
    "int": [1, -2, 30],
    "float": [3.0, 2.5, -1e6],
    "decimal": [Decimal("3.00"), Decimal("2.50"), Decimal("7.00")],
    "date": [date(2026, 1, day) for day in (1, 2, 3)],
    "datetime": [datetime(2026, 1, 1, 10, minute) for minute in (3, 4, 5)],
    "fraction of a second": [datetime(2026, 1, 1, 10, 3, 0, 1000 * place) for place in (0, 1, 2)],
    "time zone": [datetime(2026, 1, 1, 10, minute, tzinfo=UTC) for minute in (3, 4, 5)],
    "time": [time(10, minute) for minute in (3, 4, 5)],
    "bool": [True, False],
}


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
@pytest.mark.parametrize("source", ["parquet", "pandas", "polars"])
@pytest.mark.parametrize("kind", NAMES)
def test_items_of_every_type_are_found_again(kind: str, source: str, ending: str, tmp_path: Path) -> None:
    names = NAMES[kind]
    n = len(names)
    columns = {"item": names, "suggested_llm": [*"xxy"][:n], "ann_1": [*"xyy"][:n], "ann_2": [*"xyx"][:n]}
    data = SOURCES[source](columns, tmp_path)
    own = data.item_votes()
    assert own is not None
    labels = dict(zip(map(str, own.item_names()), "yxy", strict=False))  # by item, in the order of the data
    found = dhkappa.audit(data, progress=False)
    for table, sheet, column in (
        (found.review(), review_sheet, "new_label"),
        (found.next_votes(), next_sheet, "label"),
    ):
        given = sheet(table)
        new = [labels[str(item)] for item in table.column("item")]
        path = write({name: given.column(name) for name in given.names} | {column: new}, tmp_path / f"f.{ending}")
        merged = merge_reviews(data, path)
        assert merged.votes is not None
        assert merged.votes.column("ann_review") == [*"yxy"][:n]
        assert dict(zip(map(str, merged.added.column("item")), merged.added.column("label"), strict=True)) == labels


@pytest.mark.parametrize("source", ["parquet", "pandas", "polars", "duckdb"])
@pytest.mark.parametrize("kind", ["float", "decimal", "only votes", "only items"])
def test_ids_that_are_whole_floats_stay_one_item(kind: str, source: str, tmp_path: Path) -> None:
    places = [0, 1, 2, 10, 11]
    names: list[Any] = [Decimal(place) / 4 * 4 if kind == "decimal" else float(place) for place in places]
    own = places if kind == "only items" else names
    votes = {"item": [name for name in own for _ in range(3)], "annotator": [*"abc"] * 5}
    votes["label"] = [*"xxyxyyyyyxxxyxy"]
    items = {"item": places if kind == "only votes" else names, "suggested": [*"xxyxy"]}
    if kind.startswith("only"):
        data = two_tables(source, votes, items, tmp_path)
    else:
        data = SOURCES[source]({**votes, "suggested": [label for label in "xxyxy" for _ in range(3)]}, tmp_path)
    queue = dhkappa.audit(data, progress=False).review()
    sheet = filled(queue.column("item"), ["y"] * len(queue))
    path = write({name: sheet.column(name) for name in sheet.names}, tmp_path / "filled.csv")
    merged = merge_reviews(data, path, reviewer="expert")
    assert merged.votes is not None
    written = [list(csv.DictReader(io.StringIO(one.to_csv()))) for one in (merged.votes, merged.labels)]
    assert {row["item"] for row in written[0]} == {row["item"] for row in written[1]} == {*map(str, places)}
    both = tmp_path / "new.csv", tmp_path / "labels.csv"
    merged.votes.to_csv(both[0])
    merged.labels.to_csv(both[1])
    again = dhkappa.read(both[0], ["old"], items=both[1])
    assert dhkappa.dh_kappa(again).exact == merged.after.kappas["suggested"].exact
    with expect_error("review-merged"):
        merge_reviews(again, path, reviewer="expert")


def of_week(*votes: str) -> Dataset:
    """Return data with the same ids and suggested labels each week; a category needs quotes in a list of votes."""
    names = {"-": None, "a": "a", "b": "b", "c": "x: 1, y"}
    columns = {f"ann_{who}": [names[row[who]] for row in votes] for who in range(3)}
    return Dataset(Table({"item": [*"1234"], "suggested": [*"abab"], **columns}).to_pandas())


@pytest.mark.parametrize("action", ["vote", "decision"])
@pytest.mark.parametrize("sheet", ["review", "next"])
def test_files_of_other_data_with_the_same_ids_are_refused(sheet: str, action: str, tmp_path: Path) -> None:
    data = of_week("aab", "bbb", "acb", "b-b")
    found = dhkappa.audit(data, progress=False)
    is_review = sheet == "review"
    table = review_sheet(found.review()) if is_review else next_sheet(found.next_votes())
    labels = {"new_label" if is_review else "label": ["a"] * len(table)}
    given = {name: table.column(name) for name in table.names} | labels
    path = write(given, tmp_path / "filled.csv")
    first = merge_reviews(data, path, action=action)
    assert first.n_reviewed == len(table)
    other, fewer = of_week("abb", "bbb", "acb", "b-b"), of_week("a-b", "bbb", "acb", "b-b")
    for week, left_out in ((other, ""), (other, "n_votes"), (fewer, "votes"), (fewer, "n_votes")):
        with expect_error("review-other-votes", "reviews"):
            merge_reviews(week, Table({name: own for name, own in given.items() if name != left_out}), action=action)
    accepted = Table({name: own for name, own in given.items() if name not in ("votes", "n_votes")})
    assert merge_reviews(other, accepted, action=action).n_reviewed == len(table)
    if first.votes is not None:  # votes that were added since are no other votes
        assert merge_reviews(reread(first.votes, tmp_path), path, reviewer="second").n_reviewed == len(table)


def test_ids_that_a_spreadsheet_made_equal_are_not_merged() -> None:
    columns = {"item": ["007", "7", "10"], "suggested": [*"xxx"], **{f"ann_{who}": [*"yxx"] for who in range(3)}}
    data = Dataset(Table(columns).to_pandas())
    sheet = review_sheet(dhkappa.audit(data, progress=False).review(limit=1))
    changed = {name: sheet.column(name) for name in sheet.names} | {"item": ["7"], "new_label": ["y"]}
    with expect_error("review-other-votes"):
        merge_reviews(data, Table(changed))


def test_items_that_are_equal_in_a_file_are_refused() -> None:
    columns = {"suggested": [*"xy"], "ann_1": [*"xy"], "ann_2": [*"xy"]}
    for names in ([0.1 + 0.2, 0.3], [datetime(2026, 1, 1, microsecond=7), datetime(2026, 1, 1)]):
        with expect_error("names-not-distinct"):
            merge_reviews(Table({"item": names, **columns}).to_pandas(), filled([names[0]], ["x"]))


def small(**more: Any) -> Dataset:
    columns = {"item": ["1", "2", "3"], "suggested": ["Bug", "Ham", "Bug"], "a": ["Bug", "Ham", "Ham"]}
    columns |= {"b": ["Bug", "Bug", "Ham"]}
    return Dataset(Table(columns).to_pandas(), **({"annotators": ["a", "b"]} | more))


def test_spellings_are_recognized_and_said() -> None:
    merged = merge_reviews(small(), filled([1, 2.0, "3"], [" bug ", "HAM", "Ham"]))
    assert merged.added.column("label") == ["Bug", "Ham", "Ham"]
    assert merged.respelled == {"bug": "Bug", "HAM": "Ham"}
    assert "'HAM' was read as 'Ham'." in merged.remarks


def test_new_categories_must_be_allowed() -> None:
    with expect_error("review-label-unknown"):
        merge_reviews(small(), filled(["1"], ["Spam"]))
    merged = merge_reviews(small(), filled(["1", "2"], ["Spam", "spam"]), new_categories=True)
    assert merged.added.column("label") == ["Spam", "Spam"]
    assert merged.new_categories == ("Spam",)
    declared = merge_reviews(small(categories=["Ham", "Bug"]), filled(["1"], ["Spam"]), new_categories=True)
    assert declared.added.column("label") == ["Spam"]
    with expect_error("review-label-missing"):
        merge_reviews(small(missing=["NA"]), filled(["1"], ["NA"]), new_categories=True)


def test_labels_that_may_be_several_categories() -> None:
    data = Dataset([["x", "X"], ["x", "X"]] * 10, ["x", "X"] * 10)
    with expect_error("annotators-unknown"):
        merge_reviews(data, filled([0], ["x"]))
    assert merge_reviews(data, filled([0], ["X"]), action="decision").changed == (0,)
    with expect_error("review-label-unclear"):
        merge_reviews(data, filled([0], ["\N{FULLWIDTH LATIN SMALL LETTER X}"]), action="decision")


@pytest.mark.parametrize(
    ("table", "code"),
    [
        (filled(["1", "4"], ["Bug", None]), "review-item-unknown"),
        (filled(["1", None], ["Bug", "Bug"]), "review-item-unknown"),
        (filled(["1", "1"], ["Bug", "Ham"]), "review-conflict"),
        (filled(["1", "2"], ["Bug", None], suggested=["Bug", "Bug"]), "review-stale"),
        (filled(["1", "2"], [None, "  "]), "review-empty"),
        (Table({"item": ["1"], "newlabel": ["Bug"]}), "column-not-found"),
        ({"item": ["1"]}, "not-a-table"),
        (Table({"item": ["1", "1"], "label": ["Bug", "Ham"], "annotator": ["x", "x"]}), "review-conflict"),
        (Table({"item": ["1"], "label": ["Bug"], "annotator": ["a"]}), "review-merged"),
    ],
)
def test_files_that_are_refused(table: Any, code: str) -> None:
    with expect_error(code):
        merge_reviews(small(), table)


def test_errors_name_the_items() -> None:
    with pytest.raises(dhkappa.DataError) as error:
        merge_reviews(small(), filled(["x1", "x2", "1"], [None, "Bug", "Bug"]))
    assert "2 items that the data lack: 'x1', 'x2'." in str(error.value)


def test_equal_rows_count_once_and_annotators_of_a_list_are_read() -> None:
    merged = merge_reviews(small(), filled(["1", "1", "2"], ["Bug", "Bug", "Ham"]))
    assert len(merged.added) == 2
    sheet = next_sheet(dhkappa.audit(small()).next_votes(limit=3))
    assert "suggested" not in sheet.names
    names = {name: sheet.column(name) for name in sheet.names}
    names |= {"label": ["Bug", "Ham", "Ham"], "annotator": ["carl", None, "dora"]}
    merged = merge_reviews(small(), Table(names), reviewer="eve")
    assert merged.votes is not None
    assert merged.votes.names == ("item", "suggested", "a", "b", *dict.fromkeys(merged.added.column("annotator")))
    assert {*merged.added.column("annotator")} == {"carl", "dora", "eve"}
    assert {*merged.to_list} == {"carl", "dora", "eve"}  # as the columns of votes were listed by name


def test_new_labels_are_votes_of_the_annotators_in_the_file() -> None:
    who = ["eva", "max", "eva", None, " "]
    both = filled(["1", "1", "2", "3", "2"], ["Bug", "Ham", "Ham", "Ham", "Bug"], annotator=who)
    merged = merge_reviews(small(), both, reviewer="zoe")
    expected = {("1", "eva", "Bug"), ("1", "max", "Ham"), ("2", "eva", "Ham"), ("2", "zoe", "Bug"), ("3", "zoe", "Ham")}
    assert {tuple(row.values()) for row in merged.added} == expected
    assert len(merged.added) == 5
    with expect_error("review-conflict"):
        merge_reviews(small(), both, action="decision")
    with expect_error("review-conflict"):
        merge_reviews(small(), filled(["1", "1"], ["Bug", "Ham"], annotator=["eva", " eva "]))
    alike = filled(["1", "1"], ["Ham", "Ham"], annotator=["eva", "max"])
    assert merge_reviews(small(), alike, action="decision").changed == ("1",)
    assert len(merge_reviews(small(), alike).added) == 2


def test_new_labels_beside_integers() -> None:
    columns = {"item": [1, 2, 3], "suggested": [1, 2, 1], "ann_a": [1, 2, 2], "ann_b": [1, 1, 2]}
    data = Dataset(Table(columns).to_pandas())
    for text, label in (("5", 5), ("-5", -5), ("--5", "--5"), ("\N{ARABIC-INDIC DIGIT FIVE}",) * 2, ("9" * 5000,) * 2):
        merged = merge_reviews(data, filled([1], [text]), new_categories=True)
        assert merged.new_categories == (label,)
        with expect_error("review-label-unknown"):
            merge_reviews(data, filled([1], [text]))
    merged = merge_reviews(data, filled([1], ["002"]))
    assert merged.added.column("label") == [2]
    assert merged.respelled == {"002": 2}
    missing = Dataset(Table(columns).to_pandas(), missing=[9])
    with expect_error("review-label-missing"):
        merge_reviews(missing, filled([1], ["9"]), new_categories=True)


def test_reviewers_in_several_spellings_are_one() -> None:
    who = ["Eva", "eva", "EVA ", "Bo"]
    merged = merge_reviews(small(), Table({"item": ["1", "1", "2", "2"], "label": ["Bug"] * 4, "annotator": who}))
    assert merged.added.column("annotator") == ["Eva", "Eva", "Bo"]
    assert merged.votes is not None
    assert merged.votes.names[-2:] == ("Eva", "Bo")
    with expect_error("review-conflict"):
        merge_reviews(small(), Table({"item": ["1", "1"], "label": ["Bug", "Ham"], "annotator": ["Eva", "eva "]}))


def test_names_of_columns_in_any_case(tmp_path: Path) -> None:
    plain = filled(["1", "2"], ["Bug", "Ham"])
    other = Table({"Item": ["1", "2"], "New_Label": ["Bug", "Ham"]})
    other.to_csv(tmp_path / "r.csv")
    for given in (other, tmp_path / "r.csv"):
        assert merge_reviews(small(), given).added.to_json() == merge_reviews(small(), plain).added.to_json()
    with expect_error("column-not-found") as error:
        merge_reviews(small(), Table({"Item": ["1"], "Verdict": ["Bug"]}))
    assert "Columns: Item, Verdict." in str(error.value)
    with expect_error("review-stale"):
        merge_reviews(small(), Table({"Item": ["1"], "NEW_LABEL": ["Bug"], "Suggested": ["nothing"]}))


def test_a_second_round_fills_the_column_of_the_first() -> None:
    first = merge_reviews(small(), filled(["1"], ["Bug"]))
    assert first.votes is not None
    data = Dataset(first.votes.to_pandas(), annotators=["a", "b", "review"])
    second = merge_reviews(data, filled(["3"], ["Ham"]))
    assert second.votes is not None
    assert second.votes.column("review") == ["Bug", None, "Ham"]
    assert second.to_list == ()
    taken = Dataset(
        pandas.DataFrame({"item": ["1"], "suggested": ["x"], "a": ["x"], "b": ["x"], "Review": ["fine"]}),
        annotators=["a", "b"],
    )
    with expect_error("review-column"):
        merge_reviews(taken, filled(["1"], ["x"]))
    for reviewer in ("suggested", "suggested_x", "label", "annotator"):
        with expect_error("review-column", "reviewer"):
            merge_reviews(taken, filled(["1"], ["x"]), reviewer=reviewer)


def test_patterns_of_columns_hold_for_the_new_one(tmp_path: Path) -> None:
    columns = {"item": ["1", "2"], "suggested": ["x", "y"], "vote_a": ["x", "y"], "vote_b": ["y", "y"]}
    merged = merge_reviews(Table(columns).to_pandas(), filled(["1"], ["x"]), annotators="vote_*")
    assert merged.votes is not None
    assert merged.votes.names[-1] == "vote_review"
    assert merged.to_list == ()


def test_rules_of_labels_hold_for_the_written_votes(tmp_path: Path) -> None:
    columns = {
        "item": ["1", "2", "3"],
        "suggested": ["1", "2", "1"],
        "ann_a": ["1", "2", "2"],
        "ann_b": ["1", "1", "2"],
    }
    rules: dict[str, Any] = {"map": {"1": "bug", "2": "ham"}, "normalize": "case"}
    data = Dataset(Table(columns).to_pandas(), **rules)
    merged = merge_reviews(data, filled(["1", "2"], ["Bug", "ham"], suggested=["bug", "ham"]))
    assert merged.votes is not None
    merged.votes.to_csv(tmp_path / "updated.csv")
    again = dhkappa.read(tmp_path / "updated.csv", **rules)
    assert dhkappa.dh_kappa(again).exact == merged.after.kappas["suggested"].exact
    numbers = {name: [int(value) for value in values] for name, values in columns.items() if name != "item"}
    typed = Table({"item": columns["item"], **numbers}).to_pandas()
    merged = merge_reviews(Dataset(typed, map={1: "bug", 2: "ham"}), filled(["1", "2"], ["bug", "ham"]))
    assert merged.votes is not None
    assert merged.votes.column("ann_review") == [1, 2, None]


def test_integers_stay_integers() -> None:
    columns: dict[str, list[Any]] = {
        "item": [1, 2, 3],
        "suggested": [1, 2, 1],
        "ann_a": [1, None, 2],
        "ann_b": [1, 1, 2],
    }
    merged = merge_reviews(Table(columns).to_pandas(), filled(["1", "2", "3"], ["1", "2.0", 1]))
    assert merged.votes is not None
    assert merged.votes.column("ann_a") == [1, None, 2]
    assert {*map(type, merged.votes.column("ann_a"))} == {int, type(None)}
    assert merged.votes.column("ann_review") == [1, 2, 1]


def test_long_rows_repeat_the_columns_of_the_item(tmp_path: Path) -> None:
    merged = merge_reviews(Dataset(Table(LONG).to_pandas()), filled([IDS[3]], [TRUTH[IDS[3]]]))
    assert merged.votes is not None
    assert merged.votes.to_dicts()[:-1] == Table(LONG).to_dicts()
    assert merged.votes.to_dicts()[-1] == {
        "item": IDS[3],
        "label": TRUTH[IDS[3]],
        "annotator": "review",
        "suggested_llm": LLM[3],
        "text": f"text of {IDS[3]}",
        "seconds": None,  # differs between the votes of an item
    }


@pytest.mark.parametrize("source", ["parquet", "pandas", "polars", "duckdb"])
def test_carried_columns_are_exact_or_not_written(source: str, tmp_path: Path) -> None:
    price = [Decimal("1.10"), Decimal("12345678901234567.89")] * (len(LONG["item"]) // 2) + [None]
    columns = {**LONG, "price": price[: len(LONG["item"])], "vector": [[0.5, 1.5]] * len(LONG["item"])}
    data = SOURCES[source](columns, tmp_path)
    merged = merge_reviews(data, filled([IDS[3]], [TRUTH[IDS[3]]]))
    assert merged.votes is not None
    assert merged.votes.column("price") == [*columns["price"], None]
    assert [*merged.votes.column("vector")[-1]] == [0.5, 1.5]  # the same in all rows
    with expect_error("not-writable"):
        merged.votes.to_csv()
    del columns["vector"]
    merged = merge_reviews(SOURCES[source](columns, tmp_path), filled([IDS[3]], [TRUTH[IDS[3]]]))
    assert merged.votes is not None
    written = [row["price"] for row in csv.DictReader(io.StringIO(merged.votes.to_csv()))]
    assert written == ["" if one is None else str(one) for one in [*columns["price"], None]]


def test_votes_and_items_in_two_tables() -> None:
    items = Table({"item": [*IDS, "new"], "suggested_llm": [*LLM, LLM[0]]}).to_pandas()
    votes = Table({name: LONG[name] for name in ("item", "label", "annotator")}).to_pandas()
    data = Dataset(votes, items=items)
    merged = merge_reviews(data, filled(["new", IDS[0]], [LLM[0], LLM[0]]))
    assert merged.votes is not None
    assert merged.votes.to_dicts()[-2:] == [
        {"item": IDS[0], "label": LLM[0], "annotator": "review"},
        {"item": "new", "label": LLM[0], "annotator": "review"},
    ]
    again = dhkappa.audit(Dataset(merged.votes.to_pandas(), items=items))
    assert again.kappas["llm"].exact == merged.after.kappas["llm"].exact


def test_weights_strata_and_pool() -> None:
    columns = WIDE | {
        "w": [str(1 + place % 3) for place in range(N)],
        "s": ["a" if place % 2 else "b" for place in range(N)],
    }
    roles: dict[str, Any] = {"sample_weight": "w", "strata": "s"}
    sheet = review_of(Table(WIDE).to_pandas())
    merged = merge_reviews(Table(columns).to_pandas(), sheet, ["suggested_llm"], **roles)
    again = dhkappa.dh_kappa(Dataset(merged.votes.to_pandas(), ["suggested_llm"], **roles))  # type: ignore[union-attr]
    assert merged.after.kappas["llm"].exact == again.exact
    assert merged.after.kappas["llm"].se == again.se


def test_arrays_and_counts() -> None:
    votes = np.array([["x", "y"], ["x", "x"], ["y", "y"]])
    merged = merge_reviews(votes, filled([0], ["x"]), ["x", "x", "y"], reviewer="ann")
    assert merged.votes is not None
    assert merged.votes.names == ("item", "suggested_labeler", "ann_0", "ann_1", "ann_ann")
    again = dhkappa.dh_kappa(merged.votes.to_pandas())
    assert again.exact == merged.after.kappas["labeler"].exact
    counts = Dataset(counts=[[2, 1], [0, 3]], categories=["x", "y"], suggested=["x", "x"])
    with expect_error("annotators-unknown"):
        merge_reviews(counts, filled([1], ["y"]))
    decided = merge_reviews(counts, filled([1], ["y"]), action="decision")
    assert (
        decided.corrected.kappas["labeler"].exact == dhkappa.dh_kappa(counts=[[2, 1], [0, 3]], suggested=[0, 1]).exact
    )
    with expect_error("items-unknown"):
        merge_reviews(dhkappa.tally(votes, ["x", "x", "y"]), filled([0], ["x"]))


def test_one_vote_per_item_becomes_two() -> None:
    columns = {"item": ["1", "2", "3"], "suggested": ["x", "y", "x"], "ann_a": ["x", "y", "y"]}
    merged = merge_reviews(Table(columns).to_pandas(), filled(["1", "3"], ["x", "x"]))
    assert isinstance(merged.before, dhkappa.SingleVoteAudit)
    assert merged.undecided == ("3",)
    assert merged.table().column("items") == [0, 2, 2]
    assert "no kappa" in repr(merged)


def test_problems_of_a_labeler_and_of_the_table_stay() -> None:
    columns: dict[str, list[Any]] = {"item": IDS, "suggested": [row[1] or row[0] for row in VOTES]}
    columns |= {f"ann_{who}": [row[who] for row in VOTES] for who in range(3)}
    reviewed = IDS[:40]
    merged = merge_reviews(Table(columns).to_pandas(), filled(reviewed, [TRUTH[item] for item in reviewed]))
    for audit in (merged.before, merged.after, merged.corrected):
        assert isinstance(audit, dhkappa.Audit)
        assert "labeler-equals-annotator" in {problem.code for problem in audit.problems}
        assert not audit.verdict().judged
    twice = Table({name: [*values, *values[:30]] for name, values in LONG.items()}).to_pandas()
    data = Dataset(twice, duplicates="first")
    found = merge_reviews(data, filled(["t001"], ["a"]))
    for audit in (found.before, found.after, found.corrected):
        assert "duplicates-removed" in {problem.code for problem in audit.problems}
    assert found.votes is not None
    assert len(found.votes) == len(twice) + 1
    again = dhkappa.audit(Dataset(found.votes.to_pandas(), duplicates="first"))
    assert again.kappas["llm"].exact == found.after.kappas["llm"].exact


def test_hostile_text_stays_inert(tmp_path: Path) -> None:
    names = ["=1+1", "\x1b[31mred", "<script>"]
    columns = {"item": names, "suggested": ["+x", "+x", "y"], "ann_a": ["+x", "y", "y"], "ann_b": ["+x", "+x", "y"]}
    data = Dataset(Table(columns).to_pandas())
    sheet = review_sheet(dhkappa.audit(data).review())
    new = {name: sheet.column(name) for name in sheet.names} | {"new_label": ["'+x", "+X", "y"]}
    new |= {"comment": ["=HYPERLINK(1)", "\x1b[2J", "<b>"]}
    for safe in (True, False):  # with apostrophes, and without
        Table(new).to_csv(tmp_path / "review.csv", safe=safe)
        merged = merge_reviews(data, tmp_path / "review.csv")
        assert sorted(merged.added.column("item")) == sorted(names)
        assert sorted(merged.added.column("label")) == ["+x", "+x", "y"]
        assert "\x1b" not in repr(merged)
        assert "<script>" not in merged._repr_html_()
        assert "HYPERLINK" not in str(merged.to_dict())
    with pytest.raises(dhkappa.DataError) as error:
        merge_reviews(data, filled([names[1]], ["\x1b[2Jx"]))
    assert "\x1b" not in str(error.value)


def test_arguments_are_checked() -> None:
    for options, code in (
        ({"action": "votes"}, "invalid-action"),
        ({"reviewer": " "}, "invalid-reviewer"),
        ({"reviewer": 3}, "invalid-reviewer"),
    ):
        with expect_error(code):
            merge_reviews(small(), filled(["1"], ["Bug"]), **options)
    with expect_error("several-labelers"):
        merge_reviews(Table(WIDE).to_pandas(), filled(["t000"], ["a"]))
    with expect_error("option-with-dataset"):
        merge_reviews(small(), filled(["1"], ["Bug"]), item="item")
    both = Table({"item": ["1", "1"], "label": ["Bug", "Ham"], "annotator": ["x", "y"]})
    with expect_error("review-conflict"):
        merge_reviews(small(), both, action="decision")
    assert isinstance(merge_reviews(small(), both), MergedReviews)


def test_what_reviewers_said_is_told_apart_from_what_the_votes_gave() -> None:
    votes = [["a", "b", "b"], ["a", "b", "b"], ["a", "a", "b"], ["a", "a", "a"], ["a", "b", "b"]]
    data = Dataset(np.array(votes), ["a"] * 5)
    merged = merge_reviews(data, filled([0, 1, 2, 3], ["a", "b", "b", "b"]))
    # Votes after the review: 0 tied (confirmed by the reviewer), 1 b, 2 tied, 3 stays a against the reviewer.
    assert (merged.changed, merged.confirmed, merged.undecided) == ((1,), (3,), (0, 2))
    assert (merged.n_reviewers_confirmed, merged.n_reviewers_changed) == (1, 3)
    assert (merged.n_changed_against, merged.n_outvoted) == (0, 1)
    for text in ("confirmed 1 label and changed 3", "replaced 1 label, and kept 1 label that", "2 labels kept, as the"):
        assert text in merged.summary
    against = merge_reviews(Dataset(np.array([["b"] * 3, *votes]), ["a"] * 6), filled([0], ["a"]))
    assert (against.n_reviewers_confirmed, against.n_reviewers_changed, against.n_changed_against) == (1, 0, 1)
    assert "replaced 1 label, 1 of them against the reviewers." in against.summary
    assert "as decisions" in against.summary


def test_corrected_labels_are_recognized_in_any_column(tmp_path: Path) -> None:
    import pandas as pd

    sim = dhkappa.simulate(300, labelers={"llm": 0.7}, annotators=4, rng=3)
    queue = dhkappa.audit(sim.votes, sim.suggested, progress=False).review("llm", limit=30)
    filled = Table({"item": queue.column("item"), "new_label": queue.column("majority")})
    for action, columns in (("vote", {}), ("decision", {"new": "mine", "source": "came from"})):
        labels = dhkappa.merge_reviews(sim.votes, filled, sim.suggested, action=action).labels
        frame = pd.DataFrame({columns.get(name, name): labels.column(name) for name in labels.names})
        own = columns.get("new", "new")
        votes = [(item, who, vote) for item, row in enumerate(sim.votes) for who, vote in enumerate(row)]
        long = pd.DataFrame(votes, columns=["item", "annotator", "label"])
        wide = pd.concat([frame, pd.DataFrame(sim.votes).add_prefix("ann_")], axis=1)
        for data, items in ((long, frame), (wide, None)):
            known = {"item": "item"} | ({} if items is None else {"items": items})
            audit = dhkappa.audit(data, suggested={"x": own, "before": "old"}, progress=False, **known)
            assert audit.verdict("x").code == "labels-from-votes"
            assert audit.verdict("before").judged
            assert audit.next_step("x").code == "other-votes"
        accepted = dhkappa.audit(long, suggested=[own], items=frame, allow=["labels-from-votes"], progress=False)
        assert accepted.verdict().judged  # these are new votes
