"""Every command: what it prints and writes."""

import csv
import io
import json
import os
import shlex
import sys
from pathlib import Path

import pytest

import dhkappa
from command import LLM, REPORTS, RULE, VOTES, WIDE, call, inside, refused, run
from dhkappa.cli import output
from dhkappa.cli.demo import _SUBJECTS, write_demo
from expect import expect_error

Capsys = pytest.CaptureFixture[str]


def result(capsys: Capsys, *words: str) -> dict[str, object]:
    found = json.loads(inside(capsys, *words, "--format", "json").stdout)["result"]
    assert isinstance(found, dict)
    return found


# score


def test_score_shows_each_labeler_best_first(folder: Path, capsys: Capsys) -> None:
    done = inside(capsys, "score", "votes.csv")
    assert (done.returncode, done.stderr) == (0, "")
    llm, rule = dhkappa.dh_kappa(VOTES, LLM), dhkappa.dh_kappa(VOTES, RULE)
    table = done.stdout.split("Labelers\n")[1].splitlines()
    assert table[1].split() == ["llm", f"{llm.value:.2f}", "0.01", "to", "0.93", "-0.15", "0.85", "0.75", "8", "100%"]
    assert table[2].split() == [
        "rule",
        f"{rule.value:.2f}",
        "-0.31",
        "to",
        "0.79",
        "-0.16",
        "0.85",
        "0.75",
        "8",
        "100%",
    ]


def test_annotators_by_several_patterns(folder: Path, capsys: Capsys) -> None:
    Path("two.csv").write_text("item,suggested,b1,a1,b2,a2,c*\nx,p,p,p,q,p,q\ny,q,q,q,q,p,p\n", encoding="utf-8")
    for words, votes in (
        ("a*,b*", [["p", "p", "q", "p"], ["q", "q", "q", "p"]]),
        ("b?,[ab]*,a2", [["p", "p", "q", "p"], ["q", "q", "q", "p"]]),  # no column twice
        ("a*,c*", [["p", "p", "q"], ["q", "p", "p"]]),  # a column with this name
        ("a1,c*", [["p", "q"], ["q", "p"]]),
    ):
        done = inside(capsys, "score", "two.csv", "-a", words, "--format", "json")
        found = json.loads(done.stdout)["result"]["labelers"]["suggested"]
        assert found["exact"] == str(dhkappa.dh_kappa(votes, ["p", "q"]).exact), words
        assert found["n_votes"] == 2 * len(votes[0])
    for words in ("a*,x*", "a*,b3"):
        assert words.split(",")[1] in refused(inside(capsys, "score", "two.csv", "-a", words))


# audit


def test_audit_shows_problems_and_the_summary_first(folder: Path, capsys: Capsys) -> None:
    done = inside(capsys, "audit", "votes.csv")
    assert (done.returncode, done.stderr) == (0, "")
    title, blank, *rest = done.stdout.splitlines()
    assert (title, blank) == ("Label audit: votes.csv", "")
    summary = dhkappa.audit("votes.csv").summary
    problem, headline, details, following = " ".join(rest).split("  ")[:4]
    assert problem.startswith("Warning [too-few-items]: 8 items have")
    assert f"{headline} {details}" == summary
    assert following.startswith("Next: ")
    queue = done.stdout.split("reject the label of llm\n")[1].splitlines()
    assert queue[1].split() == ["t8", "spam", "news", "news:", "2"]  # the only rejected item
    assert queue[2] == ""


def test_audit_of_one_labeler(folder: Path, capsys: Capsys) -> None:
    assert "llm" not in inside(capsys, "audit", "votes.csv", "--suggested", "rule").stdout


@pytest.mark.skipif(not REPORTS, reason="needs dhkappa[report]")
def test_audit_writes_a_report(folder: Path) -> None:
    done = run("audit", "votes.csv", "-o", "report.html", "--title", "Week 7")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "Week 7"
    assert done.stdout.splitlines()[-1] == "Report: report.html"
    page = Path("report.html").read_text("utf-8")
    assert "Week 7" in page
    assert "dhkappa audit votes.csv -o report.html" in page
    assert sorted(os.listdir()) == ["report.html", "votes.csv"]


def test_audit_without_the_libraries_of_reports(folder: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with expect_error("missing-library"):
        call("audit", "votes.csv", "-o", "report.html")
    assert os.listdir() == ["votes.csv"]
    assert inside(capsys, "audit", "votes.csv").returncode == 0


@pytest.mark.skipif(not REPORTS, reason="needs dhkappa[report]")
def test_no_report_without_items(folder: Path) -> None:
    Path("header.csv").write_text("item,suggested,ann_1,ann_2\n")
    Path("old.html").write_text("last week")
    with expect_error("no-items", "data"):
        call("audit", "header.csv", "-o", "old.html")
    assert Path("old.html").read_text() == "last week"


# compare and plan


def test_compare(folder: Path, capsys: Capsys) -> None:
    done = inside(capsys, "compare", "votes.csv", "--suggested", "rule,llm")
    assert done.returncode == 0
    first = dhkappa.compare(VOTES, {"rule": RULE, "llm": LLM}).differences.to_dicts()[0]
    row = done.stdout.split("items that all of them labeled\n")[1].splitlines()[1].split()
    assert row[:3] == ["llm", "rule", f"{-first['difference']:+.2f}"]  # the better one first


def test_plan(folder: Path, capsys: Capsys) -> None:
    done = inside(capsys, "plan", "0.05", "votes.csv", "-s", "llm")
    planned = dhkappa.plan(0.05, dhkappa.dh_kappa(VOTES, LLM))
    start = f"{planned.items:,} items if votes are distributed as in the pilot (2.6 per item on average), "
    assert done.stdout.startswith(f"{start}{planned.total_votes:,} votes in all")
    assert "The pilot has 8 items" in done.stdout
    assert "votes each" not in done.stdout  # too few items to compare numbers of votes
    assert "enough" in inside(capsys, "plan", "1", "votes.csv", "-s", "llm").stdout
    words = "--prevalence 4,3,1 --annotator-accuracy 0.9 --labeler-accuracy 0.85 --pool 2000"
    done = inside(capsys, "plan", "0.05", *words.split())
    planned = dhkappa.plan(0.05, prevalence=[4, 3, 1], annotator_accuracy=0.9, labeler_accuracy=0.85, pool=2000)
    assert done.stdout.startswith(f"{planned.items:,} items with {planned.votes} votes each")


def test_plan_compares_numbers_of_votes_with_enough_items(folder: Path, capsys: Capsys) -> None:
    rows = WIDE.splitlines()
    text = "\n".join([rows[0], *(f"{place}{row}" for place in range(4) for row in rows[1:])])
    Path("pilot.csv").write_text(text, encoding="utf-8")
    done = inside(capsys, "plan", "0.05", "pilot.csv", "-s", "llm")
    planned = dhkappa.plan(0.05, "pilot.csv", "llm")
    assert planned.options.column("votes") == [2, 3]
    assert f"{planned.options.column('items')[1]:,}" in done.stdout.split("votes each  items")[1].split()


def test_notes_name_options(folder: Path, capsys: Capsys) -> None:
    Path("votes.csv").write_text(WIDE.replace("news", "none"), encoding="utf-8")
    for command in ("score votes.csv", "audit votes.csv"):
        done = inside(capsys, *command.split())
        assert "--missing" in done.stdout
        assert "missing=" not in done.stdout


# review


def test_review_writes_a_safe_csv(folder: Path, capsys: Capsys) -> None:
    items = ["=1+1", "-1", "x\r\n=2", 'say "hi", you', "漢"]
    with Path("odd.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "suggested", "ann_1", "ann_2", "ann_3"])
        for place, name in enumerate(items):
            writer.writerow([name, "@yes", *(["+no", "+no", "@yes"] if place % 2 else ["@yes", "@yes", "+no"])])
    done = run("review", "odd.csv", "-o", "review.csv")
    assert (done.returncode, done.stdout) == (0, "")
    written, warning = done.stderr.splitlines()
    assert warning.startswith("Warning [too-few-items]")
    assert written == "5 items written to review.csv."
    text = Path("review.csv").read_bytes().decode()
    head, *rows = csv.reader(io.StringIO(text, newline=""))
    assert head == ["item", "suggested", "votes", "n_votes", "majority", "agreement", "why", "new_label", "comment"]
    by_name = {row[0]: row for row in rows}
    assert set(by_name) == {"'=1+1", "-1", *items[2:]}
    assert by_name["-1"][1:] == ["'@yes", "'+no: 2, @yes: 1", "3", "'+no", "0.33", "2 of 3 votes for '+no'", "", ""]
    assert inside(capsys, "review", "odd.csv").stdout == text
    assert inside(capsys, "review", "odd.csv", "-o", "-").stdout == text
    raw = list(csv.reader(io.StringIO(inside(capsys, "review", "odd.csv", "--raw").stdout, newline="")))
    assert {row[0] for row in raw[1:]} == set(items)
    assert {row[1] for row in raw[1:]} == {"@yes"}
    limited = inside(capsys, "review", "odd.csv", "-n", "2", "--raw").stdout
    assert list(csv.reader(io.StringIO(limited, newline=""))) == raw[:3]


def test_review_of_rejected_items(folder: Path, capsys: Capsys) -> None:
    def rows(*words: str) -> list[dict[str, str]]:
        done = inside(capsys, "review", "votes.csv", "-s", "rule", "--details", *words)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    every, some = rows(), rows("--rejected")
    assert some == [row for row in every if float(row["differential"]) < 0]
    assert 0 < len(some) < len(every)
    assert rows("--category", "spam,news") == [row for row in every if row["suggested"] != "ham"]
    assert rows("--category", "spam", "-n", "1") == [row for row in every if row["suggested"] == "spam"][:1]
    done = inside(capsys, "review", "votes.csv", "-s", "rule", "--category", "spa")
    assert done.returncode == 2
    assert "Did you mean 'spam'?" in done.stderr


def test_review_with_a_byte_order_mark(folder: Path, capsys: Capsys) -> None:
    assert inside(capsys, "review", "votes.csv", "-s", "rule", "--excel", "-o", "queue.csv").returncode == 0
    text = Path("queue.csv").read_bytes()
    assert text.startswith(b'\xef\xbb\xbf"item"')
    assert text[3:].decode() == inside(capsys, "review", "votes.csv", "-s", "rule").stdout


def test_items_to_vote_on_next(folder: Path, capsys: Capsys) -> None:
    words = ("review", "votes.csv", "-s", "rule", "--next", "4")
    text = inside(capsys, *words).stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [*rows[0]] == ["item", "n_votes", "votes", "reason", "label", "annotator"]
    assert inside(capsys, *words, "-o", "next.csv").stderr.splitlines()[0] == "4 items written to next.csv."
    assert Path("next.csv").read_text() == text
    told = json.loads(inside(capsys, *words, "--format", "json").stdout)["result"]
    assert [row["item"] for row in told["next"]] == [row["item"] for row in rows]
    chosen = json.loads(inside(capsys, *words, "--category", "ham", "--format", "json").stdout)["result"]["next"]
    assert {row["suggested"] for row in chosen} == {"ham"}
    assert len(chosen) > sum(row["suggested"] == "ham" for row in told["next"])
    done = inside(capsys, *words, "--rejected", "-n", "3")
    assert done.returncode == 2
    assert "--rejected, --limit cannot be combined with --next" in done.stderr
    Path("one.csv").write_text("item,suggested,ann_1\n" + "".join(f"{n},{'ab'[n % 2]},a\n" for n in range(30)))
    single = inside(capsys, "review", "one.csv", "--next", "2")
    assert single.stdout.splitlines()[1:] == [
        f'"{n}",1,"a: 1","one vote, excluded from the audit","",""' for n in (0, 1)
    ]


def test_review_keeps_escape_sequences_in_files(folder: Path) -> None:
    Path("escape.csv").write_text("item,suggested,ann_1,ann_2\n1,\x1b[31mred,red,red\n2,red,red,\x1b[31mred\n")
    assert run("review", "escape.csv", "-o", "queue.csv").returncode == 0
    assert run("review", "escape.csv").stdout == Path("queue.csv").read_text()
    assert "\x1b[31mred" in Path("queue.csv").read_text()


# tally


def test_tallies_of_two_days_add_up_to_the_week(folder: Path, capsys: Capsys) -> None:
    header, *rows = WIDE.splitlines(keepends=True)
    for day, part in (("monday", rows[:3]), ("tuesday", rows[3:])):
        Path(f"{day}.csv").write_text("".join([header, *part]))
        done = inside(capsys, "tally", "make", f"{day}.csv", "-o", f"{day}.json")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"{day}.json: Tally({len(part)} items, ")
    done = inside(capsys, "tally", "add", "monday.json", "tuesday.json", "-o", "week.json")
    assert done.stdout == inside(capsys, "tally", "show", "week.json").stdout
    assert done.stdout.startswith("week.json: Tally(8 items, 21 votes, 3 categories,")
    assert result(capsys, "score", "week.json") == result(capsys, "score", "votes.csv")
    assert result(capsys, "score", "week.json") == result(capsys, "score", "monday.json", "tuesday.json")
    assert result(capsys, "score", "week.json") == result(capsys, "score", "*day.json")
    with expect_error("not-a-tally", "data"):
        call("tally", "add", "monday.json", "monday.csv", "-o", "other.json")
    with expect_error("output-is-input", "output"):  # a day would count twice
        call("tally", "add", "week.json", "monday.json", "-o", "week.json")
    with expect_error("already-tally", "data"):
        call("tally", "make", "monday.json", "-o", "other.json")
    assert inside(capsys, "tally", "show", "week.json").stdout == done.stdout


def test_a_tally_does_not_count_twice(folder: Path) -> None:
    assert run("tally", "make", "votes.csv", "-o", "t.json").returncode == 0
    Path("link.json").symlink_to("t.json")
    for words in (["score", "t.json", "link.json"], ["audit", "t.json", "t.json"], ["score", "*.json"]):
        with expect_error("duplicate-file", "data"):
            call(*words)


def test_options_that_a_tally_cannot_take(folder: Path, capsys: Capsys) -> None:
    assert inside(capsys, "tally", "make", "votes.csv", "-o", "t.json").returncode == 0
    for command in ("score", "audit", "compare"):
        with expect_error("option-not-for-tally"):
            call(command, "t.json", "--missing", "spam")
        line = refused(inside(capsys, command, "t.json", "--missing", "spam", "--sample-weight", "w"))
        assert "--missing, --sample-weight" in line
    with expect_error("mixed-files", "data"):
        call("score", "t.json", "votes.csv")


def test_tallies_of_different_labelers(folder: Path, capsys: Capsys) -> None:
    Path("rule.csv").write_text("suggested_rule,ann_1,ann_2\nx,x,x\n", encoding="utf-8")
    for name in ("votes", "rule"):
        inside(capsys, "tally", "make", f"{name}.csv", "-o", f"{name}.json")
    line = refused(inside(capsys, "tally", "add", "votes.json", "rule.json", "-o", "both.json"))
    assert "'rule', 'llm'" in line
    Path("rule.csv").write_text("suggested_rule,suggested_llm,ann_1,ann_2\nx,,x,x\n", encoding="utf-8")
    inside(capsys, "tally", "make", "rule.csv", "-o", "rule.json")
    assert inside(capsys, "tally", "add", "votes.json", "rule.json", "-o", "both.json").returncode == 0


# demo and completion


def test_demo_writes_data_and_report(folder: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("demo", "-o", "tried")
    assert (done.returncode, done.stderr) == (0, "")
    assert "simulated" in done.stdout
    assert "eli votes carelessly" in done.stdout
    files = {"annotations.csv", "items.csv", *(["report.html"] if REPORTS else [])}
    assert {path.name for path in Path("tried").iterdir()} == files
    command = next(line for line in done.stdout.splitlines() if "dhkappa audit tried" in line).split()
    monkeypatch.setenv("COLUMNS", "80")
    audited = inside(capsys, *command[1 : None if REPORTS else -2])
    assert audited.returncode == 0
    scale = done.stdout.split("Kappa, with")[1].split("Labelers")[0]
    assert scale in audited.stdout
    found = dhkappa.compare("tried/annotations.csv", items="tried/items.csv").kappas
    assert found["llm"].confidence_interval().low > found["rule"].confidence_interval().high


def test_demo_seed_and_size(folder: Path, capsys: Capsys) -> None:
    one = inside(capsys, "demo", "--n-items", "1", "-o", "one")
    assert (one.returncode, one.stderr) == (0, "")
    for place, seed in (("eight", 8), ("nine", 9), ("eight-again", 8)):
        Path(place).mkdir()
        write_demo(place, 20, seed)
    drawn = {place: Path(place, "annotations.csv").read_text() for place in ("eight", "nine", "eight-again")}
    assert drawn["eight"] != drawn["nine"]
    assert drawn["eight"] == drawn["eight-again"]
    assert Path("eight/items.csv").read_text() == Path("eight-again/items.csv").read_text()


def test_demo_tickets(folder: Path) -> None:
    """The subject of a ticket is one of its true category, dates ascend, and the LLM is worse in German."""
    write_demo(".", 400, 1)
    rows = list(csv.DictReader(io.StringIO(Path("items.csv").read_text(encoding="utf-8"))))
    category = {
        (language, subject): name
        for language, subjects in _SUBJECTS.items()
        for name, own in subjects.items()
        for subject in own
    }
    assert sum(len(own) for subjects in _SUBJECTS.values() for own in subjects.values()) == len(category) == 20
    assert not any(set(subject) & {*',"\n'} for _, subject in category)  # the file is written without quotes
    right = {"de": [0, 0], "en": [0, 0]}
    for row in rows:
        right[row["language"]][category[row["language"], row["subject"]] == row["suggested_llm"]] += 1
    assert sum(map(sum, right.values())) == 400
    shares = {language: hits / (misses + hits) for language, (misses, hits) in right.items()}
    assert shares["de"] < 0.86 < 0.9 < shares["en"]
    dates = [row["created"] for row in rows]
    assert dates == sorted(dates)
    assert (dates[0], dates[-1], len({*dates})) == ("2026-10-12", "2026-11-08", 28)


def test_demo_overwrites_only_its_own_files(folder: Path, capsys: Capsys) -> None:
    Path("annotations.csv").write_text("item,annotator,label\n1,me,x\n")
    Path("items.csv").write_text("item,suggested\n1,x\n")
    with expect_error("output-exists", "output"):
        call("demo", "-o", ".")
    assert Path("items.csv").read_text() == "item,suggested\n1,x\n"
    assert inside(capsys, "demo", "--n-items", "30", "-o", "own").returncode == 0
    assert inside(capsys, "demo", "--n-items", "40", "-o", "own").returncode == 0
    for target in ("votes.csv", "postgresql://me@h/d"):
        with expect_error("output-not-folder", "output"):
            call("demo", "-o", target)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str, capsys: Capsys) -> None:
    done = inside(capsys, "completion", shell)
    assert done.returncode == 0
    assert f"_DHKAPPA_COMPLETE={shell}_complete" in done.stdout


def test_completion_of_commands_and_options() -> None:
    def completed(words: str, place: int) -> list[str]:
        asked = {"_DHKAPPA_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(place)}
        return [line.partition(",")[2] for line in run(env=asked).stdout.splitlines()]

    assert completed("dhkappa co", 1) == ["compare", "completion"]
    assert completed("dhkappa score --fail", 2) == ["--fail-under"]


# Titles and command lines


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://me:hush@h:1", "postgresql://me:***@h:1"),
        ("postgresql://me:hu@sh@h/d", "postgresql://me:***@h/d"),
        ("postgresql://me:hu sh@h/d", "postgresql://me:***@h/d"),
        ("postgresql://me@h/d?password=hush&x=1", "postgresql://me@h/d?password=***&x=1"),
        ("postgresql://me@h/d?x=1&sslpassword=hush", "postgresql://me@h/d?x=1&sslpassword=***"),
        ("votes:a@b.csv", "votes:a@b.csv"),
    ],
)
def test_passwords_are_masked(address: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["dhkappa", "audit", address])
    assert output.command_line_typed() == shlex.join(["dhkappa", "audit", shown])
    assert "sh" not in output.file_name(address)


def test_review_needs_labels_and_two_votes(tmp_path: Path, capsys: Capsys) -> None:
    (tmp_path / "votes.csv").write_text("item,ann_1,ann_2\n1,a,a\n2,b,b\n")
    done = inside(capsys, "review", tmp_path / "votes.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--suggested" in done.stderr
    (tmp_path / "one.csv").write_text("item,suggested,ann_1,ann_2\n1,a,a,\n2,b,a,\n")
    done = inside(capsys, "review", tmp_path / "one.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert "at most one vote" in done.stderr
