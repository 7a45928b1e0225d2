"""Terminal: what it shows of an audit, on a stream of 80 columns."""

from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import dhkappa
from dhkappa.report.terminal import Terminal
from dhkappa.stats.grades import digits_of
from terminal_checks import HOSTILE, check_columns, check_lines

DRAWN = dhkappa.simulate(
    200,
    categories=["billing", "bug", "how-to", "outage", "other"],
    annotators=[0.95, 0.9, 0.85, 0.5],
    labelers={"rule": 0.65, "llm": 0.9},
    missing=0.2,
    rng=2,
)


def screened(audit: dhkappa.Audit, width: int = 80) -> str:
    """Show an audit on a stream."""
    file = StringIO()
    console = Console(file=file, width=width, highlight=False, markup=False, emoji=False, color_system=None)
    Terminal(console).audit(audit, "A title")
    return file.getvalue()


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_one_hostile_name_everywhere(name: str) -> None:
    """The same name as a category and a labeler."""
    votes = [[name, name, "x"], ["x", "x", name], ["x", "x", "x"], [name, name, name]] * 6
    audit = dhkappa.audit(votes, {name: [name, name, "x", "x"] * 6, "b": ["x"] * 24}, progress=False)
    text = screened(audit)
    check_lines(text)
    check_columns(text)


def test_a_labeler_of_wide_signs_is_not_cut_where_there_is_room() -> None:
    audit = dhkappa.audit(DRAWN.votes, {"漢字漢字漢": DRAWN.suggested["llm"]}, progress=False)
    scale = screened(audit).split("Kappa, with random and majority labels for comparison\n")[1].splitlines()[0]
    assert scale.startswith("漢字漢字漢  ")


def test_very_long_names_are_cut() -> None:
    labels = {f"{letter * 300}": DRAWN.suggested["llm"] for letter in "ab"}
    text = screened(dhkappa.audit(DRAWN.votes, labels, progress=False))
    check_lines(text)
    check_columns(text)
    assert "aaa…" in text


def test_verdicts_and_names_of_labelers_are_wrapped_not_cut() -> None:
    names = {"a-labeler-with-a-long-name-1": "rule", "a-labeler-with-a-long-name-2": "llm"}
    audit = dhkappa.audit(
        DRAWN.votes, {name: DRAWN.suggested[labeler] for name, labeler in names.items()}, progress=False
    )
    text = screened(audit)
    check_lines(text)
    check_columns(text)
    table = text.split("\nLabelers\n")[1].split("Agreement between")[0]
    for name in names:
        for word in audit.verdict(name).short.split():
            assert word in table
    assert "…" not in table + text.split("that all of them labeled\n")[1].split("\n\n")[0]


def test_the_worst_categories_of_many_say_how_many() -> None:
    drawn = dhkappa.simulate(300, categories=list("abcdefgh"), rng=1)
    text = screened(dhkappa.audit(drawn.votes, drawn.suggested, progress=False))
    assert "by loss of kappa (5 of 8)\n" in text
    assert "by loss of kappa\n" in screened(dhkappa.audit(DRAWN.votes, dict(DRAWN.suggested), progress=False))


def test_a_thousand_categories() -> None:
    names = [f"category {place}" for place in range(1000)]
    votes = [[name, name, names[place // 2]] for place, name in enumerate(names)]
    text = screened(dhkappa.audit(votes, {"llm": names}, progress=False))
    check_lines(text)
    assert len(text.splitlines()) < 60


def test_many_labelers_and_annotators_stay_short() -> None:
    drawn = dhkappa.simulate(100, labelers={f"m{place}": 0.8 for place in range(6)}, annotators=[0.8] * 40, rng=1)
    lines = check_lines(screened(dhkappa.audit(drawn.votes, dict(drawn.suggested), progress=False)))
    assert len(lines) < 105
    assert any(line.startswith("(28 more;") for line in lines)


def test_several_labelers_are_ranked_with_differences_after() -> None:
    text = screened(dhkappa.audit(DRAWN.votes, dict(DRAWN.suggested), progress=False))
    labelers = text.split("\nLabelers\n")[1].splitlines()
    assert [line.split()[0] for line in labelers[1:5] if line[0] != " "][:2] == ["llm", "rule"]
    assert "Differences between labelers" in text
    order = [
        "A title",
        "Kappa, with random and majority labels for comparison",
        "\nLabelers\n",
        "Agreement between annotators: Fleiss' kappa",
        "Differences between labelers",
        "Worst categories of llm",
        "Review first",
        "\nAnnotators, ",
        "For a confidence interval of plus or minus",
        "Categories and items are shown for llm",
        "\nNotes\n",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)


def test_the_scale_is_drawn_to_scale() -> None:
    audit = dhkappa.audit(DRAWN.votes, {"llm": DRAWN.suggested["llm"]}, progress=False)
    kappa = audit.kappas["llm"]
    low, high = kappa.confidence_interval(0.95)
    bar = (
        screened(audit)
        .split("Kappa, with random and majority labels for comparison\n")[1]
        .splitlines()[0]
        .removeprefix("llm")
    )
    ends = (kappa.baselines.random, kappa.baselines.majority, kappa.value, low, high)
    first, last = min(0.0, *ends), max(ends)
    width = 80 - 5 - 26

    def place(value: float) -> int:
        position: int = round((value - first) / (last - first) * (width - 1))
        return 4 + position

    assert bar[place(kappa.value)] == "●"
    assert bar[place(low)] == "├"
    assert bar[place(high)] in "┤|"
    assert bar[place(kappa.baselines.random)] == "|"
    assert bar.rstrip().endswith(f"{kappa.value:.2f}  {low:.2f} to {high:.2f}")


def scaled(**intervals: tuple[float, float, float]) -> list[str]:
    """Draw kappas with confidence intervals and without baselines, on a scale of 44 characters."""
    nan = float("nan")
    kappas: dict[str, Any] = {
        name: SimpleNamespace(
            value=value,
            se=nan,
            fleiss=nan,
            metric="dh",
            n_items=1,
            coverage=1.0,
            baselines=SimpleNamespace(random=nan, majority=nan),
            confidence_interval=lambda level, annotators, low=low, high=high: (low, high),
        )
        for name, (low, value, high) in intervals.items()
    }
    file = StringIO()
    digits = max(digits_of(high - low) for low, _, high in intervals.values())
    Terminal(Console(file=file, width=69 + 3 * digits, color_system=None))._scale(kappas, 0.95)
    lines = file.getvalue().splitlines()
    assert lines[1] == "Kappa, with random and majority labels for comparison"
    assert lines[-1] == "● kappa  ├─┤ 95% CI  | random labels, majority labels"
    return [line[7:51] for line in lines[2:-2]]


def test_a_narrow_interval_has_both_its_ends() -> None:
    dots = scaled(a=(0.999, 0.9995, 1.0), b=(0.5, 0.501, 0.502), c=(-0.002, -0.001, 0.0))
    assert [bar.strip() for bar in dots] == ["├●┤"] * 3
    assert [bar.index("├") for bar in dots] == [41, 21, 0]
    # an end that equals the value is not drawn
    assert [bar.strip() for bar in scaled(a=(1.0, 1.0, 1.0), b=(0.9999, 1.0, 1.0), c=(0.0, 0.0, 0.001))] == [
        *("●", "├●", "●┤")
    ]
    assert scaled(a=(float("nan"), 1.0, float("nan")))[0].strip() == "●"


def test_one_labeler_has_no_differences() -> None:
    text = screened(dhkappa.audit(DRAWN.votes, {"llm": DRAWN.suggested["llm"]}, progress=False))
    check_lines(text)
    assert "Differences" not in text
    assert "--suggested" not in text


def test_where_nobody_is_named_people_are_left_out() -> None:
    text = screened(dhkappa.audit([list(row) for row in DRAWN.votes.tolist()], dict(DRAWN.suggested), progress=False))
    check_lines(text)
    assert "each annotator" not in text


def test_details_are_of_a_labeler_that_can_be_judged() -> None:
    drawn = dhkappa.simulate(300, annotators=[0.85] * 5, labelers={"dice": 1 / 3, "dice2": 1 / 3}, rng=5)
    majority = [max(sorted(set(row)), key=row.count) for row in drawn.votes.tolist()]
    audit = dhkappa.audit(drawn.votes, {"gold": majority, **drawn.suggested}, rng=1, progress=False)
    text = screened(audit)
    assert f"Worst categories of {audit.ranking[0]}," in text
    assert "of gold" not in text
    assert "more items, about" in text
    alone = screened(dhkappa.audit(drawn.votes, {"gold": majority}, rng=1, progress=False))
    assert "Worst categories of gold," in alone
    assert "more items, about" not in alone


@pytest.mark.parametrize(
    ("items", "accuracy", "shown"),
    [(300, 0.85, False), (300, 0.5, True), (30, 0.4, True), (15, 0.95, True)],
    ids=["third-vote-helps", "judged", "like-random", "too-few-items"],
)
def test_no_number_of_items_if_a_third_vote_is_needed(items: int, accuracy: float, shown: bool) -> None:
    drawn = dhkappa.simulate(items, annotators=[0.85] * 2, labelers={"llm": accuracy}, rng=4)
    audit = dhkappa.audit(drawn.votes, drawn.suggested, rng=1, progress=False)
    assert (audit.verdict().code == "clearly-below") == (accuracy == 0.5)
    assert ("Get a third vote" in audit.summary) == (not shown)
    assert ("more items, about" in screened(audit)) == shown


def test_worst_categories_are_some_of_those_suggested() -> None:
    """A category without loss is suggested, too; one that is only voted for is not."""
    votes = [[name, name, name] for name in "abcdefg"] * 4 + [["h", "h", "a"]] * 2
    labels = [*"bacdefg", *"abcdefg" * 3, "a", "b"]
    audit = dhkappa.audit(votes, {"llm": labels}, progress=False)
    rows = audit.categories()
    assert sum(1 for row in rows if row["items"]) == 7
    assert [row["category"] for row in rows if row["loss"] > 0] == ["a", "b"]
    assert "Worst categories of llm, by loss of kappa (2 of 7)" in screened(audit)


def test_a_narrow_interval_has_more_digits() -> None:
    drawn = dhkappa.simulate(100_000, annotators=3, labelers={"llm": 0.9, "dice": 1 / 3}, rng=1)
    audit = dhkappa.audit(drawn.votes, drawn.suggested, rng=1, progress=False)
    low, high = audit.kappas["llm"].confidence_interval()
    assert 0.001 < high - low < 0.01
    text = screened(audit)
    check_lines(text)
    line = next(line for line in text.splitlines() if line.startswith("llm   "))
    assert line.endswith(f"  {audit.kappas['llm'].value:.3f}  {low:.3f} to {high:.3f}")
