"""Saved audits and histories: every number is that of an audit of the file alone, and damaged files are refused."""

import datetime
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dhkappa
from dhkappa import Audit, DataError, History, SavedAudit

DATES = ("2026-10-05", "2026-10-12", "2026-10-19")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def audited(seed: int, n: int = 60, llm: float = 0.85, **more: Any) -> Audit:
    sim = dhkappa.simulate(n, labelers={"rule": 0.6, "llm": llm}, annotators=4, missing=0.1, rng=seed)
    found: Audit = dhkappa.audit(sim.votes, sim.suggested, rng=1, **more)
    return found


def saved(n: int = 3, **more: Any) -> list[Audit]:
    """Save some audits as 0.json, 1.json, ..."""
    audits = [audited(seed, **more) for seed in range(n)]
    for place, audit in enumerate(audits):
        audit.save(f"{place}.json", date=DATES[place])
    return audits


def paths(n: int = 3) -> list[str]:
    return [f"{place}.json" for place in range(n)]


def refused(code: str, *args: Any, **more: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        dhkappa.history(*args, **more)
    assert caught.value.code == code
    return caught.value


DESIGNS: dict[str, dict[str, Any]] = {
    "plain": {},
    "weights": {"weights": "quadratic", "categories": ["a", "b", "c"]},
    "matrix": {"weights": [[1, 0.1, 0], [0.1, 1, 1 / 3], [0, 1 / 3, 1]], "categories": ["c", "b", "a"]},
    "sample weights": {"sample_weight": [1 + place % 3 / 7 for place in range(60)]},
    "strata": {"strata": ["x", "y"] * 30, "pool": {"x": 300, "y": 100}},
    "pool": {"pool": 80},
}


@pytest.mark.parametrize("design", DESIGNS)
def test_numbers_are_those_of_each_audit_bit_for_bit(design: str) -> None:
    audits = saved(2, **DESIGNS[design])
    found = dhkappa.history(paths(2))
    for audit, entry in zip(audits, found.entries, strict=True):
        for name in ("rule", "llm"):
            kappa, own = audit.kappas[name], entry.kappas[name]
            assert own.exact == kappa.exact
            assert own.to_dict() == kappa.to_dict()
            assert own.confidence_interval(0.9) == kappa.confidence_interval(0.9)
            assert own.by_category().to_json() == audit.categories(name).to_json()
            assert entry.verdicts[name] == audit.verdict(name).code
        assert entry.fleiss.to_dict() == audit.fleiss.to_dict()
    row = list(found.table("llm"))[1]
    assert (row["kappa"], row["low"], row["high"]) == (
        audits[1].kappas["llm"].value,
        *audits[1].kappas["llm"].confidence_interval(),
    )


def test_share_of_votes_is_the_mean_over_items() -> None:
    votes, labels = [["a", "a", "b"], ["b", "b"], ["a", "b", "b", "b"], ["a"]], ["a", "a", "b", "a"]
    dhkappa.tally(votes, labels).save("t.json", date="2026-10-05")
    share = (Fraction(2, 3) + 0 + Fraction(3, 4)) / 3
    assert dhkappa.history("t.json").table().column("suggested_share") == [pytest.approx(float(share), abs=1e-16)]


def test_a_change_is_that_of_the_two_intervals() -> None:
    audits = saved(2)
    (k1, l1, u1), (k2, l2, u2) = (
        (audit.kappas["llm"].value, *audit.kappas["llm"].confidence_interval()) for audit in audits
    )
    row = list(dhkappa.history(paths(2)).table("llm"))[1]
    assert row["change"] == pytest.approx(k2 - k1, abs=1e-15)
    assert row["change_low"] == pytest.approx(k2 - k1 - math.sqrt((k2 - l2) ** 2 + (u1 - k1) ** 2), abs=1e-14)
    assert row["change_high"] == pytest.approx(k2 - k1 + math.sqrt((u2 - k2) ** 2 + (k1 - l1) ** 2), abs=1e-14)
    assert math.isnan(next(iter(dhkappa.history(paths(2)).table("llm")))["change"])


def test_since_best_is_corrected_for_the_choice() -> None:
    for place, llm in enumerate((0.7, 0.95, 0.7)):
        audited(place, 300, llm).save(f"{place}.json", date=DATES[place])
    found = dhkappa.history(paths())
    best, last = found.since_best("llm"), found.since_last("llm")
    assert best is not None
    assert last is not None
    plain = last.kappas["llm"]
    assert best.since == plain.since == DATES[1]
    assert best.low < plain.low < plain.high < best.high  # limits at 1 - 0.05 / 2
    alone = dhkappa.history(paths()[1:], confidence_level=0.975).since_last("llm")
    assert alone is not None
    assert (best.low, best.high) == (alone.kappas["llm"].low, alone.kappas["llm"].high)
    assert best.pvalue == min(1, 2 * alone.kappas["llm"].pvalue)
    assert dhkappa.history("0.json").since_best("llm") is None


def test_the_best_audit_is_said_if_it_is_not_the_one_before() -> None:
    for place, llm in enumerate((0.6, 0.95, 0.7, 0.71)):
        audited(place, 200, llm).save(f"{place}.json", date=f"2026-11-{9 + place:02}")
    found = dhkappa.history([f"{place}.json" for place in range(4)], suggested="llm")
    assert "llm since its best earlier audit, 2026-11-10" in found.to_markdown()
    assert "Below its best earlier audit, 2026-11-10" in found.summary
    found = dhkappa.history(paths(2), suggested="llm")  # the best is the one before
    assert "best earlier audit" not in found.to_markdown()


def test_the_whole_period_is_compared() -> None:
    for place, llm in enumerate((0.7, 0.78, 0.86)):
        audited(place, 300, llm).save(f"{place}.json", date=DATES[place])
    found = dhkappa.history(paths(), suggested="llm")
    first = found.since_first()
    assert first is not None
    assert first == dhkappa.history([paths()[0], paths()[2]]).since_last("llm").kappas["llm"]  # type: ignore[union-attr]
    assert f"Since the first audit, {DATES[0]} ({first.before:.2f}): {first.moved}, {first.outcome}." in found.summary
    assert found.to_dict()["labelers"]["llm"]["since_first"] == first.to_dict()
    assert dhkappa.history(paths(2)).since_first("llm") is None


def test_a_tally_has_no_verdicts() -> None:
    dhkappa.tally([["a", "b"], ["b", "b"]], ["a", "b"]).save("tally.json")
    assert SavedAudit.load("tally.json").verdicts == {}


def test_order_is_by_date() -> None:
    saved()
    found = dhkappa.history(["2.json", "0.json", "1.json"])
    assert [entry.name for entry in found.entries] == list(DATES)
    assert found.notes == ()


def test_without_dates_the_order_is_that_of_names() -> None:
    for name, seed in (("w10.json", 1), ("w9.json", 2)):
        sim = dhkappa.simulate(50, labelers={"llm": 0.8}, rng=seed)
        dhkappa.tally(sim.votes, sim.suggested).save(name)
    found = dhkappa.history(["w10.json", "w9.json"])
    assert [entry.name for entry in found.entries] == ["w9.json", "w10.json"]
    assert [note.code for note in found.notes] == ["verdict-from-counts", "no-date"]
    for entry in found.entries:
        assert entry.verdicts["llm"] == dhkappa.audit(dhkappa.Tally.load(entry.name)).verdict().code


def test_the_same_date_twice_is_said() -> None:
    audited(1).save("a.json", date=DATES[0])
    audited(2).save("b.json", date=DATES[0])
    found = dhkappa.history(["b.json", "a.json"])
    assert [entry.name for entry in found.entries] == [DATES[0], f"{DATES[0]} (2)"]
    assert [note.code for note in found.notes] == ["same-date"]


def test_labelers_that_are_missing_leave_gaps() -> None:
    saved()
    sim = dhkappa.simulate(60, labelers={"rule": 0.6}, rng=9)
    dhkappa.audit(sim.votes, sim.suggested).save("1.json", date=DATES[1])
    found = dhkappa.history(paths())
    assert found.table("llm").column("name") == [DATES[0], DATES[2]]
    last = found.since_last("llm")
    assert last is not None
    assert last.since == DATES[0]
    assert [note.code for note in found.notes] == ["labeler-absent"]
    assert dhkappa.history(paths(), suggested="rule").notes == ()
    assert dhkappa.history(paths(), suggested=["rule"]).labelers == ("rule",)
    sim = dhkappa.simulate(61, labelers={"rule": 0.6}, rng=10)
    dhkappa.audit(sim.votes, sim.suggested).save("3.json", date="2026-10-26")
    assert "It is not in 2026-10-26, the last audit." in dhkappa.history(["0.json", "2.json", "3.json"]).summary
    refused("labeler-not-found", paths(), suggested="other")


def test_categories_are_united() -> None:
    dhkappa.tally([["a", "a"], ["b", "a"]] * 15, ["a", "b"] * 15).save("0.json", date=DATES[0])
    dhkappa.tally([["a", "a"], ["z", "a"]] * 16, ["a", "z"] * 16).save("1.json", date=DATES[1])
    found = dhkappa.history(paths(2))
    assert [(row["category"], row["name"]) for row in found.categories()] == [
        *(("a", date) for date in DATES[:2]),
        ("b", DATES[0]),
        ("z", DATES[1]),
    ]
    assert "categories-differ" in [note.code for note in found.notes]


def test_labels_that_cannot_be_judged_are_not_compared() -> None:
    saved(2)
    held = json.loads(Path("0.json").read_text())
    held["audit"]["verdicts"]["llm"] = "data-problem"
    Path("0.json").write_text(json.dumps(held))
    row = list(dhkappa.history(paths(2)).table("llm"))[1]
    assert math.isnan(row["change"])
    assert row["reason"] == "Before: The votes cannot judge llm (data-problem)."


def test_the_same_audit_twice_is_an_error() -> None:
    audits = saved(2)
    refused("same-audit", ["0.json", "0.json"])
    audits[0].save("copy.json", date=DATES[2])
    refused("same-audit", [*paths(2), "copy.json"])
    refused("same-audit", [SavedAudit.load("0.json"), dhkappa.Tally.load("copy.json")])
    with pytest.raises(DataError, match="have the same content") as caught:
        audits[0].compare_with("0.json")
    assert (caught.value.code, caught.value.parameter) == ("same-audit", "baseline")


def test_the_same_items_with_another_labeler_are_an_error() -> None:
    sim = dhkappa.simulate(60, labelers={"rule": 0.6, "llm": 0.85}, annotators=3, rng=1)
    dhkappa.audit(sim.votes, sim.suggested).save("both.json", date=DATES[0])
    dhkappa.audit(sim.votes, {"llm": sim.suggested["llm"]}).save("one.json", date=DATES[1])
    refused("same-audit", ["both.json", "one.json"])
    dhkappa.audit(sim.votes[::-1], {"llm": sim.suggested["rule"]}).save("other.json", date=DATES[1])
    dhkappa.history(["both.json", "other.json"])


def test_filters_that_differ_are_said() -> None:
    table = duckdb_table()
    data = dhkappa.Dataset(table, "llm")
    english = dhkappa.audit(data.filter("lang=en"))
    english.save("en.json", date=DATES[0])
    dhkappa.audit(data).save("all.json", date=DATES[1])
    found = dhkappa.history(["en.json", "all.json"])
    text = "2026-10-05: Filter lang=en; 2026-10-12: none"
    (note,) = [note for note in found.notes if note.code == "filters-differ"]
    assert text in note.message
    assert found.summary.startswith(note.message)
    assert text in found.to_markdown()
    assert "points to the labels" not in found.summary
    assert "filters-differ" in json.dumps(found.to_dict())
    changes = dhkappa.audit(data).compare_with("en.json").baseline
    assert changes is not None
    assert changes.text.startswith(next(note for note in changes.notes if note.code == "filters-differ").message)
    assert "this audit: none" in next(note for note in changes.notes if note.code == "filters-differ").message
    assert "filters-differ" not in {note.code for note in dhkappa.history(["en.json"]).notes}


def duckdb_table() -> Any:
    duckdb = pytest.importorskip("duckdb")
    pa = pytest.importorskip("pyarrow")
    sim = dhkappa.simulate(90, labelers={"llm": 0.85}, annotators=3, rng=1)
    columns: dict[str, Any] = {f"ann_{who}": sim.votes[:, who] for who in range(3)}
    columns |= {"suggested_llm": sim.suggested["llm"], "lang": ["en", "de", "fr"] * 30}
    return duckdb.from_arrow(pa.table(columns))


def test_other_weights_cannot_be_compared() -> None:
    audited(1).save("a.json", date=DATES[0])
    for place, how in enumerate(("weights", "matrix")):
        audited(2, **DESIGNS[how]).save(f"{place}.json", date=DATES[1 + place])
        refused("different-weights", ["a.json", f"{place}.json"])
    with pytest.raises(DataError, match="different agreement weights"):
        audited(3).compare_with("0.json")


def test_files_of_other_kinds_name_the_command() -> None:
    Path("votes.csv").write_text("item,suggested,ann_1,ann_2\n1,a,a,a\n")
    Path("binary.json").write_bytes(b"\xff\xfe{}")
    Path("other.json").write_text('{"format": "other"}')
    for name in ("votes.csv", "binary.json", "other.json"):
        error = refused("not-a-saved-audit", [name])
        assert "dhkappa audit --save" in str(error)
    assert "No such file" in str(refused("file-not-readable", ["nowhere.json"]))
    refused("invalid-saved-audit", [3])
    refused("no-saved-audits", [])


DAMAGES: dict[str, Any] = {
    "date": {"date": "yesterday"},
    "day": {"date": "2026-02-30"},
    "keys": {"audit": {"version": 1}},
    "verdicts": ("verdicts", {"other": "on-par"}),
    "code": ("verdicts", {"llm": "excellent"}),
    "no verdicts": ("verdicts", {}),
    "name": ("data", 3),
    "weights": ("weights", {"unit": 1}),
    "weight": ("weights", {"unit": 0, "named": True, "scaled": []}),
    "weights of others": ("weights", {"unit": 1, "named": True, "scaled": [[1]]}),
    "pool": ("pool", "many"),
    "strata": ("pool", [["x", -1]]),
    "stratum": ("pool", [[["x"], 1]]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_refused(damage: str) -> None:
    saved(1)
    held = json.loads(Path("0.json").read_text())
    change = DAMAGES[damage]
    if isinstance(change, dict):
        held |= change
    else:
        held["audit"] |= {change[0]: change[1]}
    Path("0.json").write_text(json.dumps(held))
    assert "is a damaged tally file" in str(refused("damaged-tally", ["0.json"]))


def test_newer_and_cut_files_are_refused() -> None:
    saved(1)
    text = Path("0.json").read_text()
    Path("0.json").write_text(text.replace('{"version": 1,', '{"version": 2,'))
    refused("saved-audit-version", ["0.json"])
    Path("0.json").write_text(text.replace('"version": 2', '"version": 9', 1))
    refused("tally-version", ["0.json"])
    Path("0.json").write_text(text[:-40])
    refused("damaged-tally", ["0.json"])


def test_a_saved_audit_is_a_tally() -> None:
    audits = saved(2)
    whole = dhkappa.Tally.load("0.json") + dhkappa.Tally.load("1.json")
    assert whole.n_items == 120
    assert dhkappa.dh_kappa(dhkappa.Tally.load("0.json"), "llm").exact == audits[0].kappas["llm"].exact


def test_what_is_saved() -> None:
    audited(1).save("a.json", date=datetime.datetime(2026, 11, 9, 12), data="postgresql://me:secret@host/votes")
    found = SavedAudit.load("a.json")
    assert (found.date, found.version, found.weights, found.pool) == ("2026-11-09", dhkappa.__version__, None, None)
    assert found.data == "postgresql://me:***@host/votes"
    assert "secret" not in Path("a.json").read_text()
    audited(1).save("today.json")
    assert SavedAudit.load("today.json").date == datetime.date.today().isoformat()
    for wrong in ("9.11.2026", "20261109", "2026-13-01", 3, ""):
        with pytest.raises(DataError) as caught:
            audited(1).save("wrong.json", date=wrong)
        assert caught.value.code == "invalid-date"
    assert not Path("wrong.json").exists()


def test_data_with_an_error_is_not_saved() -> None:
    audit = audited(1)
    problem = dhkappa.Problem("looks-like-counts", "error", "Numbers of votes.")
    with pytest.raises(DataError, match="is not saved: Numbers of votes"):
        replace(audit, problems=(problem,)).save("a.json")
    assert not Path("a.json").exists()
    replace(audit, problems=(replace(problem, accepted=True),)).save("a.json")
    assert SavedAudit.load("a.json").verdicts == {name: verdict.code for name, verdict in audit.verdicts.items()}


def test_baseline_of_an_audit() -> None:
    audits = saved(2)
    found = audits[1].compare_with("0.json")
    history = dhkappa.history(paths(2)).since_last("llm")
    assert found.baseline is not None
    assert history is not None
    assert found.baseline.kappas["llm"] == history.kappas["llm"]
    assert found.baseline.fleiss == history.fleiss
    assert found.baseline.votes == history.votes
    assert found.to_dict()["baseline"]["since"] == DATES[0]
    assert audits[1].baseline is None
    assert found.baseline.text in repr(found).replace("\n", " ")
    tally = dhkappa.tally([["a", "b"], ["b", "b"]] * 20, {"other": ["a", "b"] * 20})
    with pytest.raises(DataError) as caught:
        audits[1].compare_with(tally)
    assert caught.value.code == "no-common-labeler"


def test_one_audit_is_a_history() -> None:
    saved(1)
    found = dhkappa.history(Path("0.json"), suggested="llm")
    kappa = found.entries[0].kappas["llm"]
    assert found.summary == f"llm: kappa is {kappa:.2f} in 2026-10-05. There is no earlier audit to compare with."
    assert found.to_dict()["labelers"]["llm"]["since_last"] is None
    assert isinstance(found, History)


def test_an_undefined_week_has_a_reason() -> None:
    dhkappa.tally([["a", "a"]] * 30, ["a"] * 30).save("0.json", date=DATES[0])
    dhkappa.tally([["a", "a"], ["b", "a"]] * 15, ["a", "b"] * 15).save("1.json", date=DATES[1])
    found = dhkappa.history(paths(2))
    row = list(found.table())[1]
    assert row["reason"] == "Before: Every vote and every suggested label is the same category."
    assert math.isnan(row["pvalue"])
    assert "cannot be compared with 2026-10-05" in found.summary
    assert dhkappa.history(paths(1)).summary.startswith("labeler: kappa is undefined in 2026-10-05.")


def test_the_cause_of_a_change_follows_the_comparison_that_it_is_of() -> None:
    """The agreement between annotators rose since the audit before; kappa changed since the first one, too."""
    for place, accuracy in enumerate([0.75, 0.75, 0.95]):
        sim = dhkappa.simulate(400, labelers={"llm": 0.9}, annotators=[accuracy] * 4, rng=place)
        dhkappa.audit(sim.votes, sim.suggested, progress=False).save(f"{place}.json", date=DATES[place])
    found = dhkappa.history(["0.json", "1.json", "2.json"])
    changes, first = found.since_last("llm"), found.since_first("llm")
    assert changes is not None
    assert first is not None
    [cause] = [text for text in changes.context("llm") if "agreement between annotators" in text]
    assert found.summary.index(changes.sentence("llm")) < found.summary.index(cause)
    assert found.summary.index(cause) < found.summary.index(first.moved, found.summary.index(cause))
    assert found.summary.count(cause) == 1
