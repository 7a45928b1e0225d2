"""Reports as Markdown: the order of their parts, and escaped text."""

import pytest

import dhkappa
from dhkappa.report.markdown import escaped


@pytest.mark.parametrize("text", ["a|b", "<b>x</b>", "[x](y)", "*a* _b_ `c`", "# head", "a@b", "$x$"])
def test_text_is_inert(text: str) -> None:
    found = escaped(text)
    assert found.replace("\\", "") == text
    assert all(found[place - 1] == "\\" for place, char in enumerate(found) if char in "|<>[]*_`#@$")


def test_escaped_text_is_one_line() -> None:
    assert "\n" not in escaped("a\n# head")


def test_audit_starts_with_the_headline_and_the_next_step() -> None:
    sim = dhkappa.simulate(60, labelers={"llm": 0.9}, annotators=4, rng=1)
    found = dhkappa.audit(sim.votes, sim.suggested)
    parts = found.to_markdown(title="Week 1").split("\n\n")
    assert parts[0] == "## Week 1"
    first = parts.index(f"**{escaped(found.headline)}**")
    assert parts[first + 1] == f"**Next:** {escaped(found.next_step().text)}"
    assert parts[first + 2] == escaped(found.details)
    assert first + 2 < next(i for i, part in enumerate(parts) if part[0] == "|")


def test_annotators_without_labels() -> None:
    votes = [["a", "a", "b"], ["b", "b", "b"], ["a", "b", "a|c"]] * 5
    found = dhkappa.audit(votes)
    parts = found.to_markdown(title="Votes").split("\n\n")
    assert parts[:2] == ["## Votes", f"**{escaped(found.summary)}**"]
    assert "### 10 items on which annotators disagree, the least agreed first" in parts
    assert any("a\\|c" in part for part in parts)
    assert parts[-2] == "### Notes"


def test_long_tables_are_cut() -> None:
    found = dhkappa.audit([["a", "b"]] * 12)
    assert "least agreed first (the first 10 of 12 rows)\n" in found.to_markdown()


def test_single_votes() -> None:
    found = dhkappa.audit([["a"], ["a"], ["b"]], ["a", "b", "b"])
    parts = found.to_markdown().split("\n\n")
    assert parts[1] == f"**{escaped(found.summary)}**"
    assert any(part.startswith("### labeler: items whose vote differs") for part in parts)
