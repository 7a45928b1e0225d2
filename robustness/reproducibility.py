"""Compare results of all engines, row orders and partitions, of very large counts, and of other libraries.

``python robustness/reproducibility.py [--only SET ...] [--without WAY ...]`` writes a section of docs/robustness.md;
with an option, it prints the text instead.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import fleiss_libraries
import large_counts
import same_results
from section import paragraphs, table, write

TABLES = 6_000
STRATA = (2**53 + 1, 2**55 + 7, 2**60 + 5)


def main() -> None:
    """Run everything, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="SET", help="data sets")
    parser.add_argument("--without", nargs="+", default=[], metavar="WAY", help="ways to count that are left out")
    options = parser.parse_args()
    if not same_results.DATA.is_dir():
        raise SystemExit(f"There is no folder {same_results.DATA}.")
    start = time.monotonic()
    large, wrong = large_text()
    libraries = fleiss_libraries.compare(TABLES)
    with tempfile.TemporaryDirectory() as folder, same_results.postgres_server():
        ways, missing = same_results.ways(Path(folder))
        missing |= {way: "excluded by an option" for way in options.without if ways.pop(way, None)}
        sets = [one for path in folders() for one in same_results.load(path)]
        sets = [one for one in sets if not options.only or one.name in options.only]
        found = same_results.run(sets, ways)
    wrong += [*found.wrong, *(line for one in libraries.values() for line in one.wrong)]
    text = paragraphs(
        *engines_text(sets, found, missing),
        *large,
        *libraries_text(libraries),
        "**Differences:**" if wrong else "",
        "\n".join(f"- {line}" for line in wrong[:50]),
        f"The complete run took {(time.monotonic() - start) / 60:.0f} minutes. A short version of each part is in the "
        "test suite.",
    )
    if options.only or options.without:
        print(text)
    else:
        write("numbers", text)
    raise SystemExit(bool(wrong))


def folders() -> list[Path]:
    """Return the folders of the data sets."""
    plain = [path for path in sorted(same_results.DATA.iterdir()) if path.is_dir() and path.name != "published"]
    return [*plain, *sorted((same_results.DATA / "published").iterdir())]


def engines_text(
    sets: Sequence[same_results.DataSet], found: same_results.Summary, missing: dict[str, str]
) -> list[str]:
    """Return the text on engines."""
    ways, parts = list(dict.fromkeys(way for way, _ in found.combinations)), same_results.PARTS
    items, labelers = sum(len(one.wide["item"]) for one in sets), sum(len(one.labelers) for one in sets)
    rows = [[way, *(found.combinations[way, number] or "" for number in parts)] for way in ways]
    return [
        "### Engines, row order, partitions",
        f"{len(sets)} data sets ({items:,} items, {labelers} labelers) were counted in {len(ways)} ways, each time "
        "with the rows in another random order and partitioned at random into 1, 7 or 100 tables. The tallies were "
        f"added in random order: {sum(found.combinations.values()) + found.mixed:,} combinations, {found.tallies:,} "
        "tallies. Everything was compared with the result for plain lists in file order, every float by its bits: "
        "the saved tally file, Fleiss' kappa with its standard error and interval, and for every labeler the exact "
        "fraction, the parts, the baselines, the standard error, two interval methods at two confidence levels, "
        "p-values, categories, confusion, the comparison of labelers, notes, the verdict, and 50 bootstrap "
        f"replicates. **{_number(len(found.wrong))}.**",
        table(["combinations", *(f"{number} {'tally' if number == 1 else 'tallies'}" for number in parts)], rows),
        f"In {found.mixed} more combinations, every tally comes from another engine. In addition, {found.audits} "
        "audits of tables with shuffled rows, including annotator comparison and review table, were compared with "
        "each other to the last bit. Loops over annotator pairs in rational arithmetic, with the definitions of the "
        f"oracle in the tests, gave the same {found.kappas} kappas. A count matrix declares its categories, so it is "
        "compared with lists that declare them; Dask and Spark were not run with 100 tables of large data sets.",
        *[f"{name} was left out: {reason}." for name, reason in missing.items()],
    ]


def _number(differences: int) -> str:
    return f"{differences or 'No'} difference{'' if differences == 1 else 's'}"


def large_text() -> tuple[list[str], list[str]]:
    """Add up large counts; return the text and what is wrong."""
    with tempfile.TemporaryDirectory(prefix="dhkappa-large-") as name:
        sizes = [large_counts.run_size(n, Path(name)) for n in large_counts.SIZES]
        wrong = large_counts.too_many(Path(name)) + [line for n in STRATA for line in large_counts.strata(n)]
    wrong += [line for size in sizes for line in size.wrong]
    rows = [
        [f"{one.n:,}", one.methods, "no" if one.wrong else "yes", f"{one.se_error:.0e}", f"{one.limit_error:.0e}"]
        for one in sizes
    ]
    text = [
        "### Very large counts",
        "Tallies of nine patterns, with varying numbers of votes, were added up to 10^9 items and more: by "
        "doubling, by `+` over saved files of very different sizes, by `sum()`, and by `dhkappa tally add`. *All "
        "exact* means: the numbers of items and votes and the fraction of kappa equal those of a separate "
        "calculation with integers and fractions; the value, the random baseline and Fleiss' kappa are these "
        "fractions, rounded once. The standard error is compared with a calculation to 60 decimal digits. For the "
        "limits, the beta distribution is integrated in decimal arithmetic; the error is the distance to the point "
        "where the probability is 2.5%.",
        table(["items", "methods", "all exact", "relative error of the standard error", "error of the limits"], rows),
        "A tally holds at most 2^62 items. Larger counts, from 2^62 + 1 to more than 2^64, were rejected; there was no "
        f"overflow, and the tally was unchanged. Strata weighted by their pools were exact for "
        f"{', '.join(f'{n:,}' for n in STRATA)} items. **{_number(len(wrong))}.**",
    ]
    return text, wrong


def libraries_text(found: dict[str, fleiss_libraries.Comparison]) -> list[str]:
    """Return the text on other libraries."""
    rows = []
    for name, one in found.items():
        skipped = "; ".join(f"{why}: {number:,}" for why, number in one.skipped.items())
        rows.append([name, f"{one.compared:,}", f"{one.largest:.1e}", f"{one.scaled:.1e}", skipped, len(one.wrong)])
    tolerance = fleiss_libraries.TOLERANCE
    return [
        "### Fleiss' kappa compared with other libraries",
        f"{TABLES:,} random tables, a sixth of each kind ({', '.join(fleiss_libraries.KINDS)}). In half of them the "
        "number of votes varies, in some with single votes. The oracle must give the same fraction and the same float. "
        f"The other libraries compute in floats: a difference is unexplained above {tolerance:.0e}, or above "
        f"{tolerance / 2:.0e} / (1 - E) where expected agreement is close to 1 and floats cancel.",
        table(
            [
                "library",
                "tables",
                "largest difference",
                "largest difference times 1 - E",
                "not compared",
                "unexplained",
            ],
            rows,
        ),
        "Items with one vote were removed before irrCAC and statsmodels were called. irrCAC fails for a single "
        "item, because it divides by n - 1. If every vote is the same category, irrCAC divides by 0, or returns a "
        "number if rounding leaves 1 - E nonzero; in dhkappa, kappa is undefined, with a reason. If all items have "
        "the same influence, irrCAC returns a standard error of 0; in dhkappa it is undefined. statsmodels accepts "
        "complete tables only.",
        "Krippendorff's alpha weights items by their number of votes and draws pairs of votes without replacement. "
        "Therefore 1 - alpha = (1 - kappa) (V - 1) / V, where V is the number of votes and kappa is Fleiss' kappa with "
        "the number of votes as `sample_weight`.",
    ]


if __name__ == "__main__":
    main()
