"""Charts show the numbers of the tables of an audit, and names as text."""

import json
import math
import sys
from typing import Any
from xml.etree import ElementTree

import altair
import pytest

import dhkappa
from dhkappa.report import charts
from dhkappa.report.charts import CHARTS, LIGHT, OF_ONE_LABELER, Spec, chart_spec, unique
from dhkappa.report.html import svg
from expect import expect_error

LABELERS = {"rule": 0.6, "llm": 0.9}


def audited(n_items: int = 300, **drawing: Any) -> dhkappa.Audit:
    given: dict[str, Any] = {"annotators": 4, "labelers": LABELERS, "rng": 1} | drawing
    drawn = dhkappa.simulate(n_items, **given)
    return dhkappa.audit(drawn.votes, drawn.suggested, rng=1)


@pytest.fixture(scope="module")
def audit() -> dhkappa.Audit:
    return audited(categories=["a", "b", "c", "d"], missing=0.2)


def values(spec: Spec, layer: int = -1) -> list[dict[str, Any]]:
    """Return the data that a layer draws."""
    found: list[dict[str, Any]] = spec["layer"][layer].get("data", spec.get("data"))["values"]
    return found


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter("text")]


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_altairs_and_the_reports_alike(audit: dhkappa.Audit, name: str) -> None:
    labeler = "llm" if name in OF_ONE_LABELER else None
    chart = audit.chart(name, labeler)
    assert isinstance(chart, altair.LayerChart)
    given = chart.to_dict()  # which checks it by Vega-Lite's schema
    drawn = chart_spec(audit, name, labeler, LIGHT)
    assert svg(given) == svg(drawn)
    assert given["title"]["text"] == drawn["title"]["text"]
    assert json.loads(json.dumps(drawn, allow_nan=False)) == drawn


@pytest.mark.parametrize("length", [10, 20, 58])
def test_the_longest_name_has_room_in_a_wide_font(length: int) -> None:
    """A browser may draw a character about 7 pixels wide; names are cut at 170 pixels of a narrower font."""
    found = audited(60, categories=["a", "n" * length], labelers={"m" * length: 0.8})
    for name in ("scale", "categories", "confusion"):
        axes = [
            layer["encoding"]["y"]["axis"] for layer in chart_spec(found, name)["layer"] if "y" in layer["encoding"]
        ]
        assert all(axis["minExtent"] >= min(7 * length, 200) + axis["labelPadding"] for axis in axes)


def test_scale_has_every_labeler_best_first_between_its_marks(audit: dhkappa.Audit) -> None:
    points = values(chart_spec(audit, "scale"))
    assert [point["name"] for point in points] == ["llm"] * 3 + ["rule"] * 3
    for name in LABELERS:
        kappa = audit.kappas[name]
        assert [point["place"] for point in points if point["name"] == name] == [
            kappa.baselines.random,
            kappa.value,
            kappa.baselines.majority,
        ]
    spans = values(chart_spec(audit, "scale"), 1)
    assert [(span["low"], span["high"]) for span in spans] == [
        tuple(audit.kappas[n].confidence_interval()) for n in ("llm", "rule")
    ]


def test_differences_are_those_of_the_comparison(audit: dhkappa.Audit) -> None:
    assert audit.comparison is not None
    (row,) = audit.comparison.differences
    (point,) = values(chart_spec(audit, "differences"))
    assert row["difference"] < 0  # the better one comes first, as on the terminal
    assert (point["place"], point["low"], point["high"]) == (-row["difference"], -row["high"], -row["low"])
    assert point["name"] == "llm minus rule"
    assert values(chart_spec(audit, "differences"), 0) == [{"place": 0.0}]


def test_categories_are_those_of_the_table_worst_first(audit: dhkappa.Audit) -> None:
    table = sorted(audit.categories("rule"), key=lambda row: row["kappa"])
    points = values(chart_spec(audit, "categories", "rule"))
    assert [(point["name"], point["place"], point["low"], point["high"]) for point in points] == [
        (row["category"], row["kappa"], row["low"], row["high"]) for row in table
    ]


def test_confusion_has_the_shares_of_votes(audit: dhkappa.Audit) -> None:
    cells = {(cell["name"], cell["voted"]): cell["share"] for cell in values(chart_spec(audit, "confusion", "llm"))}
    assert cells == {
        (row["suggested"], row["agreed"]): row["vote_share"] for row in audit.confusion("llm") if row["vote_share"]
    }
    for name in "abcd":
        assert math.isclose(sum(share for (row, _), share in cells.items() if row == name), 1)


def test_people_are_those_of_the_table_beside_the_labeler(audit: dhkappa.Audit) -> None:
    spans = values(chart_spec(audit, "annotator_comparison", "llm"), 0)
    table = sorted(audit.annotator_comparison("llm").table, key=lambda row: row["difference"])
    assert [(span["name"], span["annotator"], span["labeler"]) for span in spans] == [
        (str(row["annotator"]), row["kappa_annotator"], row["kappa_labeler"]) for row in table
    ]


def test_large_charts_are_cut_and_say_so() -> None:
    many = audited(2_000, categories=[f"c{place}" for place in range(60)], annotators=45)
    spec = chart_spec(many, "categories", "llm")
    assert len(values(spec)) == 30
    assert spec["title"]["text"].endswith("(30 of 60 categories, those with the largest loss)")
    costly = sorted(many.categories("llm"), key=lambda row: -row["loss"])[:30]
    worst = sorted(costly, key=lambda row: row["kappa"])
    assert [point["name"] for point in values(spec)] == [row["category"] for row in worst]
    spec = chart_spec(many, "confusion", "llm")
    assert spec["title"]["text"].endswith("(20 of 60 categories, those suggested most)")
    cells = values(spec)
    most = {row["category"] for row in sorted(many.categories("llm"), key=lambda row: -row["items"])[:20]}
    assert {cell["name"] for cell in cells} == most
    assert {cell["voted"] for cell in cells} <= {*most, "others"}
    for name in most:  # what is not shown is in the last column
        assert math.isclose(sum(cell["share"] for cell in cells if cell["name"] == name), 1)
    spec = chart_spec(many, "annotator_comparison", "llm")
    assert len(values(spec, 0)) == 40
    assert spec["title"]["text"].endswith("(40 of 45 annotators, those with most items)")


def test_many_labelers_are_cut_with_the_best_in_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "MOST_LABELERS", 3)
    monkeypatch.setattr(charts, "MOST_DIFFERENCES", 4)
    many = audited(100, labelers={f"m{place}": 0.4 + place / 10 for place in range(5)})
    assert len(values(chart_spec(many, "scale"), 0)) == 3
    assert many.comparison is not None
    assert many.comparison.best == "m4"
    spec = chart_spec(many, "differences")
    assert [point["name"] for point in values(spec)] == ["m4 minus m0", "m4 minus m1", "m4 minus m2", "m4 minus m3"]
    assert spec["title"]["text"].endswith("(4 of 10 pairs of labelers)")


def test_a_kappa_far_below_is_drawn_at_the_edge_and_told_in_full() -> None:
    votes = [["a"] * 3] * 40 + [["b"] * 3] * 2
    found = dhkappa.audit(votes, ["b"] * 40 + ["a", "a"])
    worst = next(row for row in found.categories() if row["category"] == "a")
    assert worst["kappa"] < -10
    spec = chart_spec(found, "categories")
    axis = spec["layer"][-1]["encoding"]["x"]
    assert axis["scale"]["clamp"]
    assert -1.1 < axis["scale"]["domain"][0] < -1
    assert "drawn at -1" in axis["title"]
    assert values(spec)[0]["place"] == worst["kappa"]
    assert f"kappa {worst['kappa']:.3f}" in values(spec)[0]["told"]


def test_names_stay_text_and_stay_apart() -> None:
    names = ["<b>", "</svg><script>", "a\nb", "a\\nb", "x" * 300 + "1", "x" * 300 + "2", "datum.name", "{{7*7}}"]
    drawn = dhkappa.simulate(400, categories=names, annotators=3, labelers={"<img src=x onerror=alert(1)>": 0.8}, rng=1)
    audit = dhkappa.audit(drawn.votes, drawn.suggested)
    shown = unique(names)
    assert len(set(shown)) == len(names)
    assert shown[:4] == ["<b>", "</svg><script>", "a\\nb", "a\\nb (2)"]
    assert max(map(len, shown)) <= 64
    for name in ("scale", *OF_ONE_LABELER):
        image = svg(chart_spec(audit, name))
        assert "<script" not in image
        assert "<img" not in image
    for name in ("categories", "confusion"):
        seen = texts(svg(chart_spec(audit, name)))
        assert {"<b>", "</svg><script>", "a\\nb", "a\\nb (2)", "datum.name", "{{7*7}}"} <= set(seen)


@pytest.mark.parametrize("name", CHARTS)
def test_an_image_has_its_words_and_nothing_but_shapes(audit: dhkappa.Audit, name: str) -> None:
    spec = chart_spec(audit, name, "llm" if name in OF_ONE_LABELER else None)
    image = ElementTree.fromstring(svg(spec))
    assert image.get("role") == "img"
    assert image.get("aria-label") == spec["description"]
    assert {element.tag for element in image.iter()} <= {"svg", "g", "path", "line", "rect", "text", "title"}
    attributes = {attribute for element in image.iter() for attribute in element.attrib}
    assert not attributes & {"style", "class", "href", "id", "font-family"}
    told = {element.text for element in image.iter("title")}
    assert told >= {row["told"] for row in values(spec)}


def test_unknown_charts_and_labelers(audit: dhkappa.Audit) -> None:
    for name in ("scales", 3, None):
        with expect_error("unknown-chart", "name"):
            audit.chart(name)  # type: ignore[arg-type]
    for labeler in (None, "gpt"):
        with pytest.raises(dhkappa.DataError, match="'rule', 'llm'"):
            audit.chart("annotator_comparison", labeler)


def test_charts_with_nothing_to_show() -> None:
    one = dhkappa.audit([["a", "a"], ["b", "b"], ["a", "b"]], ["a", "b", "a"])
    undefined = dhkappa.audit([["a", "a"], ["a", "a"]], ["a", "a"])
    for audit, names in ((one, ("differences", "annotator_comparison")), (undefined, ("scale", *CHARTS[2:]))):
        for name in names:
            with expect_error("empty-chart", "name"):
                audit.chart(name)


def test_altair_is_missing(audit: dhkappa.Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with expect_error("missing-library"):
        audit.chart("scale")
