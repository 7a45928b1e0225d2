"""The simulations of validation/ against the package, and the tables of docs/validation.md."""

import os
import re
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from math import comb
from pathlib import Path

import numpy as np
import pytest

import any_time_coverage as any_time
import cluster_coverage as clusters
import interval_coverage as coverage
import simulation
from dhkappa import compare, dh_kappa, simulate
from dhkappa.stats import influence
from dhkappa.stats.annotator_baseline import annotator_baseline
from dhkappa.stats.any_time import any_time_level
from published import PUBLISHED, SCORED, digits, fleiss_of_counts, table_of

SCRIPT = Path(__file__).parents[2] / "validation" / "interval_coverage.py"
PAGE = Path(__file__).parents[2] / "docs" / "validation.md"


def test_true_kappa_of_a_model() -> None:
    cell = coverage.Cell(n=100, N=3, m=4, prevalence="skewed", kappa=0.6, source="votes and labels")
    chances = coverage.model(cell)
    assert chances is not None
    assert simulation.true_kappa(*chances) == pytest.approx(0.6, abs=1e-9)  # 60 steps of bisection
    accuracy = float(chances[1][0, 0])
    drawn = simulate(
        200_000, categories=range(4), prevalence=[4, 3, 2, 1], accuracy=accuracy, labelers={"x": accuracy}, rng=1
    )
    # four standard errors of .0015
    assert dh_kappa(drawn.votes, drawn.suggested["x"]).value == pytest.approx(0.6, abs=0.006)


@pytest.mark.parametrize("setting", clusters.SETTINGS)
def test_true_values_of_a_model_with_clusters(setting: tuple[int, int, float, float]) -> None:
    cell = clusters.Cell(6_000, "equal", 0.3, "all", *setting)
    true, rng = clusters.truth(cell), np.random.default_rng(1)
    cluster = clusters.clusters(rng, cell)
    votes, labels = clusters.drawn(rng, cell, cluster)
    for target, own in zip(true.kappas, labels, strict=True):
        kappa = dh_kappa(votes, own, clusters=cluster)
        assert abs(kappa.value - target) < 4 * kappa.se
    known = dh_kappa(votes, labels[0], clusters=cluster)
    assert known.baselines.annotator == pytest.approx(true.annotator, abs=0.02)  # four standard errors
    assert annotator_baseline(known.estimate).share_kept == pytest.approx(true.share, abs=0.03)


def test_summaries_against_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = coverage.Cell(n=40, N=3, m=3, prevalence="skewed", kappa=0.2, source="votes and labels")
    chances = coverage.model(cell)
    assert chances is not None
    answers = []
    real = simulation.draw

    def recorded(*given: object) -> object:
        answers.append(real(*given))  # type: ignore[arg-type]
        return answers[-1]

    monkeypatch.setattr(coverage, "draw", recorded)
    (basis,) = coverage.bases(np.random.default_rng(3), cell, 1, chances)
    labels, *votes = (answer[0] for answer in answers)
    kappa = dh_kappa(np.column_stack(votes), labels)
    ours = influence.basis(kappa.estimate)
    for name in ("kappa", "E", "n", "squares", "least", "greatest"):
        assert getattr(basis, name) == pytest.approx(getattr(ours, name), rel=1e-9)  # some hundred roundings


@pytest.mark.parametrize("copied", [-1.0, 0.7])
def test_limits_at_each_look_against_the_package(copied: float) -> None:
    known = any_time.model(any_time.Cell("", 3, "skewed", 0.5, "votes and labels", -0.1, copied))
    assert known is not None
    for n, counts in any_time.grown(known, (30, 90), 3, np.random.default_rng(1)):
        found = any_time.limits(counts, known, n, [0.95, any_time_level(n, 0.95)])
        for place, row in enumerate(counts.astype(int)):
            items = np.repeat(np.arange(row.size), row)
            votes = [np.repeat(np.arange(3), np.rint(3 * share).astype(int)).tolist() for share in known.c[items]]
            labels = {str(number): label[items].tolist() for number, label in enumerate(known.labels)}
            for held, (low, high) in zip((False, True), found, strict=True):
                if copied < 0:
                    expected = [*dh_kappa(votes, labels["0"]).confidence_interval(any_time=held)]
                else:
                    (pair,) = compare(votes, labels, any_time=held).differences
                    expected = [pair["low"], pair["high"]]
                assert [low[place], high[place]] == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("interval_coverage.py", "| 0.95 | 200 |"),
        ("design_coverage.py", "## Ordered categories"),
        ("difference_coverage.py", "## Permutation test with random labels"),
        ("annotator_coverage.py", "| equal | 30 |"),
        ("baseline_coverage.py", "| keeps 0.8 | 80 |"),
        ("other_annotators_coverage.py", "| careless | 200 |"),
        ("cluster_coverage.py", "| 50 | 0.3 |"),
        ("weighted_coverage.py", "| quadratic | 200 |"),
        ("pool_coverage.py", "## Finite pools"),
        ("any_time_coverage.py", "| 0.8 | any time |"),
    ],
)
def test_quick_validation_runs(script: str, line: str, tmp_path: Path) -> None:
    page = tmp_path / "coverage.md"
    command = [sys.executable, str(SCRIPT.parent / script), "--quick", "--sets", "2", "--page", str(page)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert line in page.read_text()


# Tables of docs/validation.md


def by_published_function(votes: list[list[str]], suggested: list[str]) -> Fraction:
    """Return kappa as the function published with the paper computes it.

    C(1, 2) is 1, and all items have as many votes as the first. Its 1e-11 in the denominator is left out.
    """
    n, N = len(votes), len(votes[0])
    cast, labels, D = Counter(vote for item in votes for vote in item), Counter(suggested), Fraction(0)
    for item, label in zip(votes, suggested, strict=True):
        pairs = {vote: max(comb(number, 2), 1) for vote, number in Counter(item).items()}
        D += Fraction(2 * pairs.get(label, 0) - sum(pairs.values()), n * comb(N, 2))
    E = sum(Fraction(cast[j], N * n) ** 2 * (2 * Fraction(labels[j], n) - 1) for j in cast)
    return (D - E) / (1 - E)


def test_published_function_against_example_1() -> None:
    counts = ["aaa", "aab", "bbb", "abc", "ccc", "bbb"]
    assert by_published_function([list(item) for item in counts], list("aabbcc")) == Fraction(193, 544)


def row_of_real_data(folder: Path, labeler: str) -> str:
    table = table_of(folder)
    labeled = [(item, label) for item, label in zip(table.votes, table.suggested(labeler), strict=True) if label]
    votes, suggested = [item for item, _ in labeled], [label for _, label in labeled]
    kappa = dh_kappa(votes, suggested)
    assert kappa.n_items == len(votes)
    cells = [
        f"{folder.name}: {labeler}",
        f"**{kappa.value:.4f}**",
        "{:.3f} to {:.3f}".format(*kappa.confidence_interval()),
        f"{kappa.baselines.random:.3f}",
        f"{kappa.baselines.majority:.3f}",
        f"{kappa.fleiss:.4f}",
        f"{float(by_published_function(votes, suggested)):.4f}",
    ]
    return f"| {' | '.join(cells)} |"


def between(mark: str, rows: list[str]) -> None:
    """Compare the rows of a table with those below a mark of the page.

    To update them: DHKAPPA_WRITE_DOCS=1 python -m pytest tests/statistics/test_validation.py -n0 -k page.
    """
    text = PAGE.read_text("utf-8")
    before, found, rest = text.partition(f"<!-- {mark} -->\n")
    assert found, f"docs/validation.md has no mark {mark!r}"
    head, line, body = rest.lstrip("\n").split("\n", 2)
    old, _, after = body.partition("\n\n")
    if os.environ.get("DHKAPPA_WRITE_DOCS") == "1":
        old = "\n".join(rows)
        PAGE.write_text(f"{before}{found}\n{head}\n{line}\n{old}\n\n{after}", encoding="utf-8")
    assert old.splitlines() == rows


def test_page_values_of_real_data(shared_data: Path) -> None:
    rows = [
        row_of_real_data(shared_data / name, labeler) for name, scored in SCORED.items() for labeler in scored.kappas
    ]
    between("real data", rows)


def test_page_values_of_published_tables(shared_data: Path) -> None:
    sources = {
        "fleiss1971_diagnoses": "irr (R)",
        "wikipedia_fleiss": "Wikipedia",
        "irrcac_distrib6raters": "irrCAC",
        "irrcac_raw4raters": "irrCAC",
    }
    rows = []
    for name, known in PUBLISHED.items():
        found = fleiss_of_counts(shared_data / "published" / name / "counts.csv")
        published = known if name != "irrcac_raw4raters" else "0.76117"
        size = f"{found.n_items} | {found.n_votes} | {len(found.categories)}"
        rows.append(f"| {name} | {size} | {sources[name]} | {published} | {digits(found.value, known)} |")
    between("published tables", rows)


@pytest.mark.parametrize("name", SCORED)
def test_page_sizes_sources_and_licences(name: str, shared_data: Path) -> None:
    lines = (shared_data / "README.md").read_text("utf-8").splitlines()
    cells = next(line for line in lines if line.startswith(f"| {name} |")).strip("| ").split(" | ")
    licence, _, source = cells[-1].partition(", ")
    table = table_of(shared_data / name)
    labels = {label for labeler in SCORED[name].kappas for label in table.suggested(labeler) if label}
    categories = labels.union(*table.votes)
    row = f"| {name} | {len(table.votes):,} | {sum(map(len, table.votes)):,} | {len(categories):,} | "
    (found,) = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(row)]
    assert licence in found
    assert source in found


def test_page_quotes_the_coverage_pages() -> None:
    """Sentences in rows with a link to a coverage page are on that page."""
    text = PAGE.read_text("utf-8")
    told = re.findall(r"^\| .*\]\((coverage[-a-z]*\.md)[-#a-z]*\) \| (.*) \|$", text, flags=re.MULTILINE)
    assert len(told) >= 8
    for name, sentence in told:
        assert sentence in (PAGE.parent / name).read_text("utf-8"), (name, sentence)
