"""One set of bits from all engines, any order and any split; a billion items and more; Fleiss' kappa beside its peers.

Writes a section of docs/robustness.md. --quick runs fewer splits and tables, --only fewer data sets, --without fewer
engines; the result is then printed and no section is written.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

import fleiss_peers
import many_items
import same_bits
from page import table, write

TABLES, FEW_TABLES = 6_000, 600
ROWS = 10**7 + 3


def main() -> None:
    """Run everything, and write the section, or show a part; end with 1 where anything was not as it should be."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--quick", action="store_true", help="fewer splits and tables")
    given.add_argument("--only", nargs="+", metavar="SET", help="names of data sets")
    given.add_argument("--without", nargs="+", default=[], metavar="WAY", help="ways to count that are left out")
    asked = given.parse_args()
    quick, tables = asked.quick, FEW_TABLES if asked.quick else TABLES
    if not same_bits.DATA.is_dir():
        raise SystemExit(f"the shared annotation data are not at {same_bits.DATA}")
    begun = time.monotonic()
    told, wrong = many(begun)
    compared = fleiss_peers.compare(tables)
    print(f"peers after {time.monotonic() - begun:.0f} s", flush=True)
    with same_bits.a_server():
        ways, absent = same_bits.ways()
        absent |= {way: "this run was told to" for way in asked.without if ways.pop(way, None)}
        sets = [one for folder in folders() for one in same_bits.load(folder)]
        sets = [one for one in sets if not asked.only or one.name in asked.only]
        found = same_bits.run(sets, ways, quick)
    found.absent = absent
    text = [bits_text(sets, found), told, peers_text(compared, tables)]
    wrong += [*found.wrong, *(line for one in compared.values() for line in one.wrong)]
    if wrong:
        text.append("**Not as it should be:**\n\n" + "\n".join(f"- {line}" for line in wrong[:50]))
    minutes = (time.monotonic() - begun) / 60
    text.append(f"All of it took {minutes:.0f} minutes. A short version of each part runs at every change.")
    whole = "\n\n".join(text)
    if quick or asked.only or asked.without:
        print(whole)
    else:
        write("numbers", whole)
    raise SystemExit(bool(wrong))


def folders() -> list[Path]:
    """Return the folders of the data sets, those with a published value last."""
    plain = [path for path in sorted(same_bits.DATA.iterdir()) if path.is_dir() and path.name != "published"]
    return [*plain, *sorted((same_bits.DATA / "published").iterdir())]


def wrapped(*paragraphs: str) -> str:
    """Join paragraphs; lines of prose are filled, tables stay as they are."""
    filled = [text if text.startswith("|") else fill(text, 118, break_long_words=False) for text in paragraphs]
    return "\n\n".join(filled)


def bits_text(sets: Sequence[same_bits.Set], found: same_bits.Found) -> str:
    """Say what was counted in which ways."""
    ways = list(dict.fromkeys(way for way, _ in found.combinations))
    splits = same_bits.SPLITS
    rows = [[way, *(found.combinations[way, parts] or "" for parts in splits)] for way in ways if _is_way(way)]
    mixed = sum(number for (way, _), number in found.combinations.items() if not _is_way(way))
    n, labelers = sum(len(one.of_items["item"]) for one in sets), sum(len(one.labelers) for one in sets)
    bare = [one.name.partition(",")[0] for one in sets if not one.labelers]  # once more with a row a vote
    return wrapped(
        "### Engines, orders, splits",
        f"{len(sets)} data sets ({n:,} items, {labelers} labelers; {len(bare)} have no labeler: {len(set(bare))} "
        f"tables with a published Fleiss' kappa, {len(bare) - len(set(bare))} of them also with a row a vote) were "
        f"counted in {len(rows)} ways, each time with rows in another random order and dealt out "
        "at random into 1, 7 or 100 tables. The tallies were added up in a random order: "
        f"{sum(found.combinations.values()):,} combinations, {found.tallies:,} tallies. Of each sum everything was "
        "compared with what plain lists give in the order of the files, every float by its bits: the saved file of the "
        "tally, Fleiss' kappa with its error and interval, and for every labeler the exact fraction, the parts, floor "
        "and ceiling, the standard error, three kinds of interval at two levels, p-values, categories, confusion, "
        "the comparison of labelers, notes, the verdict, and 50 replicates of a bootstrap. "
        f"**{_number(len(found.wrong), 'difference')}.**",
        table(["combinations by", *(f"{parts} {'tally' if parts == 1 else 'tallies'}" for parts in splits)], rows),
        f"{mixed} of the combinations are sums in which every tally is of another engine. Besides, {found.audits} "
        "audits of tables with rows shuffled, people and review queue included, were compared with each other to the "
        "bit (items that are alike stand in the order of rows). Loops over pairs of annotators in fractions, by the "
        f"definitions of the tests' oracle, gave the same {found.values} kappas.",
        "Not possible or not done: a set with fewer items than tallies is split into as many tables as it has items; a "
        "matrix of counts declares its categories, so it is compared with lists that declare them; tables of Dask and "
        "Spark, which take long, and where a cell shows fewer than the others, were counted fewer times.",
        *[f"{name} was left out: {why}." for name, why in found.absent.items()],
    )


def _is_way(way: str) -> bool:
    return way != same_bits.MIXED


def _number(number: int, noun: str) -> str:
    return f"{number or 'No'} {noun}{'' if number == 1 else 's'}"


def many(begun: float) -> tuple[str, list[str]]:
    """Add up items by the billion, and say what came of it, and what was wrong."""
    with tempfile.TemporaryDirectory(prefix="dhkappa-many-") as name:
        sizes = []
        for n in many_items.SIZES:
            sizes.append(many_items.run_size(n, Path(name)))
            print(f"{n:,} items after {time.monotonic() - begun:.0f} s", flush=True)
        told, wrong = many_items.refused(Path(name))
        strata = (2**53 + 1, 2**55 + 7, 2**60 + 5)
        wrong += [line for n in strata for line in many_items.strata_exact(n)]
        wrong += many_items.counted_by_duckdb(ROWS)
    wrong += [line for size in sizes for line in size.wrong]
    rows = [
        [
            f"{size.n:,}",
            len(size.ways),
            "yes" if not size.wrong else "no",
            f"{size.se_off:.0e}",
            f"{size.limit_off:.0e}",
        ]
        for size in sizes
    ]
    head = ["items", "ways", "all exact", "standard error off by (relative)", "limits off by"]
    text = wrapped(
        "### A billion items, and more",
        "Tallies of nine patterns, ragged, were added up to a billion items and beyond in five ways: by doubling, by "
        "`+` in a loop over up to 100 saved files of very different sizes, by `sum()`, saved and loaded again, and by "
        "`dhkappa tally add`. Exact means: the numbers of items and votes and kappa's fraction are those of whole "
        "numbers and fractions computed anew, with `==`; value, floor and Fleiss' kappa are these fractions rounded "
        "once. The standard error is set beside 60 decimal digits; for the limits the beta distribution is added up in "
        "decimals, and the distance is from where the probability is 2.5%.",
        table(head, rows),
        f"A tally holds 2^62 items at the most. More were refused {len(told)} times, from 2^62 + 1 to beyond 2^64, "
        f'each time with a sentence such as "{told[-1].removeprefix("dhkappa: ")}"; nothing wrapped around, and the '
        f"tally was as before. Strata weighed by their pools were exact for {', '.join(f'{n:,}' for n in strata)} "
        f"items; DuckDB counted {ROWS:,} rows as they should be. **{_number(len(wrong), 'difference')}.**",
    )
    return text, wrong


def peers_text(compared: dict[str, fleiss_peers.Beside], tables: int) -> str:
    """Say how far the peers are from Fleiss' kappa here."""
    rows = []
    for name, one in compared.items():
        apart = "; ".join(f"{why}: {number:,}" for why, number in one.apart.items())
        largest = ["0", "0"] if name == "oracle" else [f"{one.largest:.1e}", f"{one.scaled:.1e}"]
        rows.append([name, f"{one.compared:,}", *largest, apart, len(one.wrong)])
    head = ["beside", "tables", "largest difference", "largest times 1 - E", "not compared", "unexplained"]
    return wrapped(
        "### Fleiss' kappa beside its peers",
        f"{tables:,} random tables, a sixth of each kind ({', '.join(fleiss_peers.KINDS)}), half of them drawn "
        "ragged, some with items of one vote. The oracle must have the same fraction, and its float. Peers compute in "
        f"floats: a difference is unexplained above {fleiss_peers.EXACTLY:.0e}, or above "
        f"{fleiss_peers.EXACTLY / 2:.0e} / (1 - E) where chance alone is most of agreement and floats cancel.",
        table(head, rows),
        "Every table is in the row of the oracle, in that of irrCAC's kappa, in one of its two of the standard error "
        "and in one of krippendorff's two. Where no item has two votes, there is no kappa, and no peer was asked.",
        "irrCAC keeps items with one vote in the shares of categories, and we drop them; they were dropped before it "
        "was asked, and its standard errors are of ragged tables where they still are so then. It fails for a single "
        "item, where it divides by n - 1; here such a table may have a kappa, but it has no standard error. Where "
        "every vote is one category irrCAC divides by 0, or returns a number where rounding leaves something of 1 - E; "
        "here kappa is undefined, with a reason. Where all items have the same influence it says 0 for the standard "
        "error, and we say that there is none. statsmodels takes complete tables only, and returns nan where kappa is "
        "undefined; so does krippendorff.",
        "Krippendorff's alpha weighs items by their votes, and draws two votes without putting the first back. So "
        "1 - alpha = (1 - kappa) (V - 1) / V, where V is the number of votes and kappa is Fleiss' kappa; of a ragged "
        "table, Fleiss' kappa with the numbers of votes as `weights`. Both were compared.",
    )


if __name__ == "__main__":
    main()
