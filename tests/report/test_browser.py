"""The report in a browser: it opens from disk, fetches nothing, and shows data as text."""

from pathlib import Path
from typing import Any

import pyarrow
import pytest
from axe_playwright_python.sync_playwright import Axe

import browser
import dhkappa
from browser import opened

chromium = browser.chromium

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

CATEGORIES = ["billing", "bug", "how-to", "outage"]
EVIL = [
    "<script>window.__pwned = 1</script>",
    "<img src=x onerror='window.__pwned = 2'>",
    "</script><script>window.__pwned = 3</script>",
    "{{7*7}}",
    '=HYPERLINK("//evil","x")',
    "\u202egnp.exe\u202c",
    "nul\0bell\a\x1b[31m",
    '"><svg onload=alert(4)>',
    "]]><!--",
    "שלום",
    "a" * 5_000,
    "javascript:alert(5)",
    "datum.name",
    "&lt;b&gt;",
]
EVIL_LABELERS = ("<img src=x onerror=alert(6)>\u202e\0", "</title></style></script><script>window.__pwned = 7</script>")


def audited(n_items: int) -> dhkappa.Audit:
    drawn = dhkappa.simulate(
        n_items, categories=CATEGORIES, annotators=5, labelers={"rule": 0.6, "llm": 0.9}, missing=0.2, rng=1
    )
    return dhkappa.audit(drawn.votes, drawn.suggested, rng=1)


@pytest.fixture(scope="module")
def audit() -> dhkappa.Audit:
    return audited(200)


@pytest.fixture(scope="module")
def report(audit: dhkappa.Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    audit.to_html(path, title="Tickets", command="dhkappa audit tickets.csv -o report.html")
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report of hostile labels, items, annotators and labelers."""
    drawn = dhkappa.simulate(60, categories=range(len(EVIL)), annotators=4, labelers={"a": 0.7, "b": 0.9}, rng=1)
    names = [f"{EVIL[place % len(EVIL)]} {place}" for place in range(60)]
    votes = pyarrow.table(
        {
            "item": [name for name in names for _ in range(4)],
            "annotator": EVIL[:4] * 60,
            "label": [EVIL[code] for row in drawn.votes for code in row],
        }
    )
    labels = [[EVIL[code] for code in codes] for codes in drawn.suggested.values()]
    items = pyarrow.table({"item": names, **dict(zip(EVIL_LABELERS, labels, strict=True))})
    layout: dict[str, Any] = {"items": items, "item": "item", "annotator": "annotator", "label": "label"}
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    found = dhkappa.audit(votes, list(EVIL_LABELERS), **layout, rng=1)
    found.to_html(path, title="<script>alert(8)</script>", command="dhkappa audit '</script><script>alert(9)</script>'")
    return path


def visible_rows(page: Any) -> list[list[str]]:
    script = "rows => rows.filter(row => row.checkVisibility()).map(row => [...row.cells].map(c => c.textContent))"
    found: list[list[str]] = page.locator("#queue-table tbody.rows tr").evaluate_all(script)
    return found


@pytest.mark.parametrize("kind", ["report", "hostile"])
def test_fetches_nothing_and_logs_nothing(chromium: Any, kind: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(kind)
    with opened(chromium, path) as (page, heard):
        page.get_by_role("tab").last.click()
        page.get_by_role("button", name="Item").click()
        page.get_by_label("Search").fill("bug")
        page.wait_for_timeout(100)
        assert heard.requests == [path.as_uri()]
        assert heard.words == []
        assert heard.dialogs == []
        assert page.evaluate("window.__refused") == []


def test_the_policy_refuses_what_is_not_the_pages_own(chromium: Any, report: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.html"
    changed.write_text(report.read_text().replace("</main>", "<script>window.__pwned = 1</script></main>"))
    with opened(chromium, changed) as (page, _):
        assert page.evaluate("window.__refused") == ["script-src-elem"]
        assert page.evaluate("window.__pwned") is None


def test_hostile_names_are_text(chromium: Any, hostile: Path) -> None:
    with opened(chromium, hostile) as (page, heard):
        for tab in page.get_by_role("tab").all():
            tab.click()
        page.get_by_label("Labeler", exact=True).select_option(index=1)
        page.get_by_label("Suggested label", exact=True).select_option(index=1)
        page.wait_for_timeout(100)
        assert page.evaluate("window.__pwned") is None
        assert heard.dialogs == []
        tags = set(page.evaluate("[...document.querySelectorAll('body *')].map(e => e.localName)"))
        assert not tags & {"img", "iframe", "object", "embed", "style", "link", "form", "image", "use", "foreignobject"}
        assert page.locator("script").count() == 1
        attributes = page.evaluate("[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())")
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "src", "xlink:href")]
        links = page.evaluate("[...document.links].map(link => link.getAttribute('href'))")
        assert links
        assert all(link.startswith("#") for link in links)


def test_hostile_names_are_shown_as_they_are(chromium: Any, hostile: Path) -> None:
    seen = {label: label for label in EVIL}
    seen["\u202egnp.exe\u202c"] = "\\u202egnp.exe\\u202c"
    seen["nul\0bell\a\x1b[31m"] = "nul\\x00bell\\x07\\x1b[31m"
    seen["a" * 5_000] = "a" * 199 + "…"
    with opened(chromium, hostile) as (page, _):
        assert page.title() == "<script>alert(8)</script>"
        shown = set(page.locator("#labeler-1 table").first.locator("tbody th").all_text_contents())
        assert shown == set(seen.values())
        annotators = page.locator("#annotators table").first.locator("tbody th").all_text_contents()
        assert sorted(annotators) == sorted(seen[name] for name in EVIL[:4])
        names = set(page.get_by_role("tab").all_text_contents())
        assert names == {"<img src=x onerror=alert(6)>\\u202e\\x00", EVIL_LABELERS[1]}
        axis = " ".join(page.locator("#labeler-1 svg").first.locator("text").all_text_contents())
        assert all(name in axis for name in ("{{7*7}}", "datum.name", "&lt;b&gt;", "שלום"))
        assert "</script><script>alert(9)</script>" in page.locator("footer code").inner_text()


def test_sorts_by_every_column(chromium: Any, report: Path, audit: dhkappa.Audit) -> None:
    n_items = audit.kappas["llm"].n_items
    with opened(chromium, report) as (page, _):
        heads = page.locator("#queue-table thead th")
        assert heads.first.get_attribute("aria-sort") == "ascending"
        assert [row[0] for row in visible_rows(page)] == [str(rank + 1) for rank in range(n_items)]
        for place in range(1, heads.count()):
            head = heads.nth(place)
            for direction in ("ascending", "descending"):
                head.get_by_role("button").click()
                assert head.get_attribute("aria-sort") == direction
                assert page.locator("#queue-table th[aria-sort]").count() == 1
                cells = [row[place] for row in visible_rows(page)]
                assert len(cells) == n_items
                numeric = place in (1, 5, 6, 7)
                values: list[Any] = [float(cell.rstrip("%")) for cell in cells] if numeric else cells
                assert values == sorted(values, reverse=direction == "descending")


def test_searches_and_filters_and_counts(chromium: Any, report: Path, audit: dhkappa.Audit) -> None:
    rows = audit.review("llm").to_dicts()
    with opened(chromium, report) as (page, _):
        status, search = page.get_by_role("status"), page.get_by_label("Search")
        assert status.inner_text() == f"Showing {len(rows)} of {len(rows)} items"
        search.fill("BUG: 5")
        found = [str(row["item"]) for row in rows if "bug: 5" in row["votes"]]
        assert 0 < len(found) < len(rows)
        assert [row[1] for row in visible_rows(page)] == found
        assert status.inner_text() == f"Showing {len(found)} of {len(rows)} items"
        search.fill("")
        page.get_by_label("Suggested label", exact=True).select_option(value="=outage")
        found = [str(row["item"]) for row in rows if row["suggested"] == "outage"]
        assert 0 < len(found) < len(rows)
        assert [row[1] for row in visible_rows(page)] == found
        assert status.inner_text() == f"Showing {len(found)} of {len(rows)} items"
        search.fill("nothing like it")
        assert status.inner_text() == f"Showing 0 of {len(rows)} items"
        assert visible_rows(page) == []


def test_switches_labelers(chromium: Any, report: Path, audit: dhkappa.Audit) -> None:
    with opened(chromium, report) as (page, _):
        for name in ("llm", "rule"):
            page.get_by_label("Labeler", exact=True).select_option(label=name)
            shown = [(row[1], row[2], row[3], row[4]) for row in visible_rows(page)]
            assert shown == [
                (str(row["item"]), row["suggested"], row["majority"] or "tie", row["votes"])
                for row in audit.review(name)
            ]
            n_items = audit.kappas[name].n_items
            assert page.get_by_role("status").inner_text() == f"Showing {n_items} of {n_items} items"
            assert page.locator(".queue-extent:visible").count() == 0


def test_a_long_queue_shows_its_first_thousand_and_says_so(chromium: Any, tmp_path: Path) -> None:
    found = audited(1_200)
    found.to_html(tmp_path / "report.html")
    with opened(chromium, tmp_path / "report.html") as (page, _):
        assert [row[1] for row in visible_rows(page)] == [str(row["item"]) for row in found.review("llm", 1_000)]
        assert page.get_by_role("status").inner_text() == "Showing 1,000 of 1,000 items"
        extent = page.locator(".queue-extent:visible").inner_text()
        n_items = found.kappas["llm"].n_items
        assert extent == f"llm: the first 1,000 of {n_items:,} items; dhkappa review writes all as CSV."


def test_tabs_show_one_labeler_and_follow_keys_and_links(chromium: Any, report: Path) -> None:
    with opened(chromium, report) as (page, _):
        llm, rule = page.locator("#labeler-1"), page.locator("#labeler-2")
        assert (llm.is_visible(), rule.is_visible()) == (True, False)
        page.get_by_role("tab", name="llm").focus()
        page.keyboard.press("ArrowRight")
        assert (llm.is_visible(), rule.is_visible()) == (False, True)
        assert page.get_by_role("tab", name="rule").get_attribute("aria-selected") == "true"
        page.goto(f"{report.as_uri()}#labeler-1")
        assert (llm.is_visible(), rule.is_visible()) == (True, False)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["report", "hostile"])
def test_no_serious_accessibility_fault(chromium: Any, kind: str, scheme: str, request: pytest.FixtureRequest) -> None:
    with opened(chromium, request.getfixturevalue(kind), color_scheme=scheme) as (page, _):
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == {"light": "rgb(252, 252, 251)", "dark": "rgb(21, 24, 27)"}[scheme]
        found = Axe().run(page).response["violations"]
        assert [fault["id"] for fault in found if fault["impact"] in ("serious", "critical")] == []


@pytest.mark.parametrize("kind", ["report", "hostile"])
def test_fits_a_phone(chromium: Any, kind: str, request: pytest.FixtureRequest) -> None:
    with opened(chromium, request.getfixturevalue(kind), width=400) as (page, _):
        assert page.evaluate("document.scrollingElement.scrollWidth") <= 400
        assert page.locator("#queue-table").is_visible()


def test_prints_without_controls_and_with_every_labeler(chromium: Any, report: Path) -> None:
    with opened(chromium, report) as (page, _):
        page.emulate_media(media="print")
        for hidden in ("nav", "[role=tablist]", "#queue-controls", "#queue-count"):
            assert not page.locator(hidden).first.is_visible()
        for shown in ("#labeler-1", "#labeler-2", ".paper"):
            assert page.locator(shown).last.is_visible()
        assert len(visible_rows(page)) == 30
        assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


def test_works_without_a_script(chromium: Any, report: Path, audit: dhkappa.Audit) -> None:
    with opened(chromium, report, java_script_enabled=False) as (page, heard):
        assert heard.words == []
        rows = page.locator("#queue-table tbody.rows tr")
        assert rows.count() == sum(kappa.n_items for kappa in audit.kappas.values())
        assert rows.last.is_visible()
        assert page.locator("#labeler-2").is_visible()
        assert not page.locator("#queue-controls").is_visible()
        assert page.locator("#queue-table tbody.group th").all_inner_texts() == ["llm", "rule"]
