"""The HTML report: content, size, and that only its own script can run."""

import base64
import hashlib
import os
import re
import sys
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import jinja2  # noqa: F401  # if it is missing, these tests are left out
import numpy as np
import pytest
import vl_convert

import dhkappa
from dhkappa.report import html as report
from dhkappa.report.html import check_requirements
from dhkappa.report.html import page as page_of
from expect import expect_error

MEGABYTE = 1_000_000


class Elements(HTMLParser):
    """The tags and attributes of a page, and its text by tag."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def with_tag(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def simulated(n_items: int, **drawing: Any) -> dhkappa.Audit:
    drawn = dhkappa.simulate(n_items, **{"annotators": 3, "rng": 1} | drawing)
    return dhkappa.audit(drawn.votes, drawn.suggested, rng=1)


@pytest.fixture(scope="module")
def audit() -> dhkappa.Audit:
    return simulated(120, labelers={"rule": 0.6, "llm": 0.9}, missing=0.2)


@pytest.fixture(scope="module")
def page(audit: dhkappa.Audit) -> str:
    return page_of(audit, title="Tickets", command="dhkappa audit tickets.csv -o report.html")


def plain_text(page: str) -> str:
    """Return a page's text, without its style and script, on one line."""
    body = re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


def test_differences_are_of_the_better_labeler_as_on_the_terminal(page: str, audit: dhkappa.Audit) -> None:
    assert audit.comparison is not None
    (row,) = audit.comparison.differences
    assert (row["labeler"], row["other"]) == ("rule", "llm")
    assert row["difference"] < 0
    interval = f"+{-row['high']:.3f} to +{-row['low']:.3f}"
    assert f"llm rule +{-row['difference']:.3f} {interval}" in plain_text(page)


def test_the_policy_knows_the_pages_own_style_and_script_and_nothing_else(page: str) -> None:
    (policy,) = [meta["content"] for meta in Elements(page).with_tag("meta") if "http-equiv" in meta]
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        (block,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"


def test_nothing_points_outside_or_runs_inline(page: str) -> None:
    assert not re.search(r"https?:|//\w", re.sub("sha256-[^']*", "", page))
    for tag, attributes in Elements(page).found:
        assert tag not in {"link", "img", "iframe", "object", "base", "form"}
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "src", "srcset")]
        assert (attributes.get("href") or "#").startswith("#")
    (script,) = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|Function\(", script)


def test_says_all_it_should_in_order(page: str, audit: dhkappa.Audit) -> None:
    text = plain_text(page)
    llm, rule = audit.kappas["llm"], audit.kappas["rule"]
    low, high = llm.confidence_interval()
    said = [
        "Tickets",
        f"Verdict on llm : {audit.verdict('llm').short}",
        audit.headline.replace("'", "&#39;"),
        f"Next: {audit.next_step('llm').text}".replace("'", "&#39;"),
        audit.details.replace("'", "&#39;"),
        "Kappa of each labeler",
        f"llm {audit.verdict('llm').short} {llm.value:.3f} {low:.3f} to {high:.3f} {llm.baselines.random:.3f}",
        f"rule {audit.verdict('rule').short} {rule.value:.3f}",
        "Differences between labelers",
        "Labeler by labeler",
        "Categories",
        "Votes by suggested label",
        "Annotators as labelers",
        "Agreement beyond chance is 0 for votes at random",
        "Review queue",
        "Sample size",
        "Notes",
        *(note.text.replace("'", "&#39;") for note in audit.notes),
        "Excluded items",
        "How to read this page",
        f"dhkappa {dhkappa.__version__}, Python {sys.version.split()[0]} and NumPy {np.__version__}",
        "dhkappa audit tickets.csv -o report.html",
    ]
    place = 0
    for sentence in said:
        assert sentence in text[place:], sentence
        place = text.index(sentence, place)


def test_tables_have_the_audits_numbers(page: str, audit: dhkappa.Audit) -> None:
    text = plain_text(page)
    for row in audit.categories("llm"):
        assert f"{row['category']} {row['items']} {row['kappa']:.3f} {row['low']:.3f} to {row['high']:.3f}" in text
    annotator_comparison = audit.annotator_comparison("rule")
    assert f"scores {-annotator_comparison.difference:.3f} lower on average" in text
    place = text.rindex("Agreement beyond chance is 0 for votes at random")
    for row in audit.annotator_scores().table:
        told = f"{row['shrunk_score']:.3f} {row['low']:.3f} to {row['high']:.3f} {row['deviation']:+.3f}"
        place = text.index(f"{row['annotator']} {row['items']} {row['agree']:.0%} {told}", place)
    for row in audit.sample_sizes("llm"):
        assert f"llm ± {row['half_width']:g} {row['items']:,} {row['more_items']:,} {row['more_votes']:,}" in text
    first = next(iter(audit.review("llm", 1)))
    told = f"1 {first['item']} {first['suggested']} {first['majority']} {first['votes']} {first['n_votes']}"
    assert told in text.partition("Items to review")[2]
    excluded = audit.kappas["llm"].excluded
    assert excluded.total
    assert f"{excluded.total} items are excluded: " in text.partition("Excluded items")[2]


def test_headings_go_down_one_step_at_a_time(page: str) -> None:
    steps = [int(tag[1]) for tag, _ in Elements(page).found if re.fullmatch("h[1-6]", tag)]
    assert steps[0] == 1
    assert steps.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(steps))
    names = [attributes["id"] for _, attributes in Elements(page).found if "id" in attributes]
    assert len(names) == len(set(names))
    assert {str(link["href"])[1:] for link in Elements(page).with_tag("a")} <= set(names)


@pytest.mark.parametrize("labelers", [{"llm": 0.9}, {"rule": 0.6, "llm": 0.9}], ids=["one labeler", "two labelers"])
@pytest.mark.parametrize("m", [5, 1_000], ids=["5 categories", "1,000 categories"])
def test_a_hundred_thousand_items_make_at_most_3_megabytes(m: int, labelers: dict[str, float]) -> None:
    names = [f"{'a category with a very long name ' * 10}{place}" for place in range(m)]
    found = simulated(100_000, labelers=labelers, categories=names)
    written = page_of(found)
    assert len(written.encode()) <= 3 * MEGABYTE
    assert "the first 1,000 of 100,000 items; <code>dhkappa review</code> writes all as CSV." in written


def test_many_labelers_share_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MOST_REVIEWED", 40)
    monkeypatch.setattr(report, "MOST_DRAWN", 2)
    written = page_of(simulated(50, labelers={f"m{place}": 0.5 + place / 10 for place in range(4)}))
    queue = written[written.index('<section id="queue"') : written.index('id="sample-size"')]
    assert queue.count('<th scope="row">') == 40
    assert queue.count("the first 10 of 50 items") == 4
    assert written.count("Charts are drawn for the first 2 labelers.") == 2
    assert written.count("<svg") == 2 + 2 * 3


def test_long_tables_are_cut_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MOST_ROWS", 3)
    written = plain_text(page_of(simulated(100, categories=list("abcdef"))))
    assert "The first 3 of 6 rows; the JSON output has all." in written


def test_annotators_with_too_few_items_are_counted() -> None:
    drawn = dhkappa.simulate(40, annotators=4, rng=1)
    drawn.votes[1:, 3] = None
    assert "3 compared, 1 with too few items." in plain_text(page_of(dhkappa.audit(drawn.votes, drawn.suggested)))


def test_one_labeler_is_called_the_labeler() -> None:
    written = plain_text(page_of(simulated(50)))
    assert "Kappa of the labeler, with random and majority labels" in written
    assert "each labeler" not in written
    assert "cannot be judged" not in written


def test_very_long_names_are_cut() -> None:
    votes = [["x" * 4_000, "x" * 4_000], ["y", "y"], ["x" * 4_000, "y"]]
    written = page_of(dhkappa.audit(votes, ["y", "x" * 4_000, "y"]))
    assert "x" * 199 + "…" in written
    assert "x" * 200 not in written


def test_names_that_run_from_right_to_left_stay_in_their_place() -> None:
    drawn = dhkappa.simulate(400, categories=["א ב", "b"], annotators=3, labelers={"שלום": 0.9}, rng=1)
    written = page_of(dhkappa.audit(drawn.votes, drawn.suggested))
    assert '<p class="verdict"><bdi>שלום</bdi> ' in written
    assert '<th scope="row"><bdi>א ב</bdi></th>' in written
    assert "Verdict on <bdi>שלום</bdi>:" in written


def tallied() -> dhkappa.Audit:
    drawn = dhkappa.simulate(100, rng=1)
    return dhkappa.audit(dhkappa.tally(drawn.votes, drawn.suggested["labeler"]))


@pytest.mark.parametrize(
    ("make", "texts"),
    [
        (tallied, ["The items are unknown", "does not say who cast which vote"]),
        (lambda: dhkappa.audit([["a", "a", "b"], ["b", "b"]] * 20, ["a", "b"] * 20), ["who cast which vote"]),
        (lambda: dhkappa.audit([["a", "a"], ["a", "a"]], ["a", "a"]), ["Kappa is undefined", "interval is undefined"]),
        (lambda: dhkappa.audit(np.array([["a", "b", "a"]], object), ["a"]), ["1 item."]),
        (lambda: dhkappa.audit([["a", "b"], [None]], [None, "b"]), ["2 items are excluded", "0 items."]),
        (lambda: dhkappa.audit([["a", "a"], ["a", "a"]], {"x": ["a", "a"], "y": ["a", "a"]}), ["Kappa is undefined"]),
        (
            lambda: dhkappa.audit(
                [["lo", "lo", "hi"], ["hi", "hi"], ["mid", "mid"]] * 9, ["lo", "hi", "mid"] * 9,
                categories=["lo", "mid", "hi"], weights="linear",
            ),
            ["Every kappa on this page is a weighted kappa.", "weighted Fleiss", "Weighted kappa by suggested"],
        ),
    ],
    ids=["tally", "no annotators", "undefined", "one item", "no item counts", "several undefined", "weighted"],
)  # fmt: skip
def test_every_audit_has_a_page(make: Any, texts: list[str]) -> None:
    written = plain_text(page_of(make()))
    for sentence in texts:
        assert sentence in written


def test_writes_whole_over_an_old_file(audit: dhkappa.Audit, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    audit.to_html(path, title="new")
    assert path.read_text("utf-8").startswith("<!doctype html>")
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_folder_that_does_not_exist(audit: dhkappa.Audit, tmp_path: Path) -> None:
    for path in (tmp_path / "none" / "report.html", tmp_path):
        with pytest.raises(dhkappa.DataError, match="report"):
            audit.to_html(path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["jinja2", "vl_convert"])
def test_a_missing_library(audit: dhkappa.Audit, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with expect_error("missing-library"):
        check_requirements()
    with expect_error("missing-library"):
        audit.to_html(os.devnull)


def test_a_report_does_not_import_altair(audit: dhkappa.Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    assert "<svg" in page_of(audit)


def test_charts_that_vl_convert_cannot_draw(audit: dhkappa.Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(spec: object, **options: object) -> str:
        raise ValueError("oneshot canceled")

    monkeypatch.setattr(vl_convert, "vegalite_to_svg", fail)
    with expect_error("charts-failed"):
        page_of(audit)


def with_majority_labels(**labelers: float) -> dhkappa.Audit:
    """Audit labelers, and labels made from the votes."""
    drawn = dhkappa.simulate(300, annotators=[0.85] * 5, labelers=labelers, rng=5)
    majority = [max(sorted(set(row)), key=row.count) for row in drawn.votes.tolist()]
    return dhkappa.audit(drawn.votes, {"gold": majority, **drawn.suggested}, rng=1, progress=False)


def test_labels_made_from_the_votes_are_last_and_not_called_best() -> None:
    audit = with_majority_labels(dice=1 / 3, dice2=1 / 3)
    assert audit.verdict("gold").code == "labels-from-votes"
    assert not audit.groups
    first, second, last = audit.ranking
    assert ({first, second}, last) == ({"dice", "dice2"}, "gold")
    assert audit.kappas[first].value >= audit.kappas[second].value
    text = plain_text(page_of(audit))
    assert f"Verdict on {first} : no better than random labels" in text
    assert f"kappa_DH of {first} {audit.kappas[first].value:.2f}" in text
    assert "of the best" not in text
    assert "Labelers, the highest kappa first; those that cannot be judged are last" in text
    sizes = text.split("Items for a narrower confidence interval")[1].split("Notes")[0]
    assert first in sizes
    assert "gold" not in sizes


def test_no_sample_size_for_labels_that_cannot_be_judged() -> None:
    audit = with_majority_labels()
    assert audit.sample_sizes().column("more_items")
    assert "More items would not help" in plain_text(page_of(audit)).split("Sample size")[2]
