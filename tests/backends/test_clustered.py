"""Clusters named as a column of a table of any engine give the numbers of lists."""

from __future__ import annotations

from dataclasses import replace

import dhkappa
from engines import Engine, each
from expect import expect_error
from shapes import FORMATS, drawn_for


def numbers(kappa: dhkappa.Kappa) -> str:
    """Every number that clusters have an effect on, to the last bit."""
    return repr((kappa.exact, kappa.se, [*kappa.confidence_interval()], kappa.clusters))


@each("layout", FORMATS, few=["wide", "long-items"])
def test_clusters_of_a_column(engine: Engine, layout: str) -> None:
    made = drawn_for(layout)
    made = replace(made, strata=[f"document {place % 7 % 6}" for place in range(len(made.votes))])
    data, keywords = made.shape(layout).given(engine, None)
    found = dhkappa.dh_kappa(data, "llm", clusters="stratum", **keywords)
    expected = dhkappa.dh_kappa(made.votes, made.suggested["llm"], clusters=made.strata)
    assert found.clusters is not None
    assert found.clusters.n > 2
    assert numbers(found) == numbers(expected)
    both = dhkappa.compare(data, ["llm", "rule"], clusters="stratum", rng=1, **keywords)
    lists = dhkappa.compare(made.votes, made.suggested, clusters=made.strata, rng=1)
    [row], [other] = both.differences, lists.differences
    sign = 1 if row["labeler"] == other["labeler"] else -1
    assert (row["se"], row["difference"]) == (other["se"], sign * other["difference"])


def test_a_cluster_that_is_missing(engine: Engine) -> None:
    data = engine.table({"ann_1": ["a", "b"], "ann_2": ["a", "b"], "llm": ["a", "b"], "doc": ["north", None]})
    with expect_error("missing-cluster", "clusters"):
        dhkappa.dh_kappa(data, "llm", annotators="ann_*", clusters="doc")


def test_an_item_of_two_clusters(engine: Engine) -> None:
    data = engine.table(
        {"item": [1, 1, 2, 2], "label": ["a", "a", "b", "b"], "llm": ["a", "a", "b", "b"], "doc": [1, 2, 3, 3]}
    )
    with expect_error("item-column-varies", "clusters"):
        dhkappa.dh_kappa(data, "llm", clusters="doc")
