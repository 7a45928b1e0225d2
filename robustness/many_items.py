"""A billion items and more through tallies that are added up, beside exact arithmetic in fractions and decimals."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import reduce
from operator import add
from pathlib import Path

import dhkappa

Pattern = tuple[str | None, tuple[tuple[str, int], ...]]
"""A suggested label, and how many votes each category has."""

MIX: dict[Pattern, int] = {
    ("a", (("a", 3),)): 5,
    ("a", (("a", 2), ("b", 1))): 3,
    ("b", (("b", 4), ("c", 1))): 2,
    ("b", (("a", 1), ("b", 1), ("c", 1))): 1,
    ("c", (("c", 2),)): 3,
    ("c", (("b", 2), ("c", 3))): 1,
    ("a", (("c", 7),)): 1,
    (None, (("c", 3),)): 1,
    ("b", (("a", 1),)): 1,
}
LIMIT = 2**62
MOST = f"a tally holds {LIMIT:,} items at the most."
SIZES = (10**9, 10**12, 2**53 - 1, 2**53, 2**53 + 1, 10**18, LIMIT - 1, LIMIT)
RIGHT = 1e-13
"""How far a standard error, relative to itself, and a limit may be off: some hundred units of a float's last place."""
_DIGITS = 60
_BETWEEN = 2000  # of Simpson's rule, on each side of a limit
_FAR = 14  # standard deviations: beyond lies less than 10^-43


def mixed(n: int, seed: int = 0) -> Counter[Pattern]:
    """Return n items: the mix as often as it goes, and the rest dealt out, so that no number is round."""
    share, rest = divmod(n, sum(MIX.values()))
    found = Counter({pattern: number * share for pattern, number in MIX.items()})
    draw = random.Random(seed)
    found.update(draw.choices(list(MIX), k=rest))
    return found


def saved(patterns: Mapping[Pattern, int], path: Path) -> Path:
    """Write a tally file by hand."""
    rows = [
        {"suggested": label, "votes": [list(pair) for pair in votes], "items": number}
        for (label, votes), number in patterns.items()
        if number
    ]
    held = {
        "format": "dhkappa-tally",
        "version": 1,
        "categories": ["a", "b", "c"],
        "declared": [],
        "missing": [],
        "items": sum(patterns.values()),
        "votes": sum(number * sum(times for _, times in votes) for (_, votes), number in patterns.items()),
        "patterns": rows,
    }
    path.write_text(json.dumps(held), encoding="utf-8")
    return path


def ones() -> dict[Pattern, dhkappa.Tally]:
    """Return a tally of one item for each pattern, counted from votes."""
    found = {}
    for label, votes in MIX:
        cast = [category for category, times in votes for _ in range(times)]
        found[label, votes] = dhkappa.tally([cast], [label])
    return found


def doubled(patterns: Mapping[Pattern, int]) -> dhkappa.Tally:
    """Add up so many items of each pattern by doubling."""
    total = dhkappa.Tally()
    for pattern, one in ones().items():
        for bit in bin(patterns[pattern])[:1:-1]:  # the last digit first
            total = total + one if bit == "1" else total
            one = one + one if one.n_items <= LIMIT // 2 else one
    return total


def unequal(patterns: Mapping[Pattern, int], parts: int, seed: int) -> list[Counter[Pattern]]:
    """Deal the items out over parts of very different sizes."""
    draw = random.Random(seed)
    found: list[Counter[Pattern]] = [Counter() for _ in range(parts)]
    for pattern, number in patterns.items():
        left = number
        for part in found[:-1]:
            part[pattern] = min(left, int(left * draw.random() ** 3))
            left -= part[pattern]
        found[-1][pattern] = left
    return found


# The truth: eq. 4-13 over patterns, and what docs/methods.md makes of them, in fractions and decimals.


@dataclass(frozen=True)
class Truth:
    """Exact values of some items."""

    n: int
    votes: int
    kappa: Fraction
    floor: Fraction
    fleiss: Fraction
    E: Fraction
    squares: Fraction
    """Sum of squared influence."""
    least: Fraction
    greatest: Fraction
    """Influence of the worst and the best conceivable item."""

    @property
    def se(self) -> Decimal:
        """The standard error."""
        with localcontext() as context:
            context.prec = _DIGITS
            return _decimal(self.squares / (self.n * (self.n - 1))).sqrt()


def truth_of(patterns: Mapping[Pattern, int]) -> Truth:
    """Compute everything anew, with nothing of the package."""
    eligible = {
        (label, votes): number
        for (label, votes), number in patterns.items()
        if number and label is not None and sum(times for _, times in votes) > 1
    }
    n = sum(eligible.values())
    C, L, G = (defaultdict[str, Fraction](Fraction) for _ in range(3))
    D = agreeing = Fraction(0)
    own = {}
    for (label, votes), number in eligible.items():
        N = sum(times for _, times in votes)
        c = {category: Fraction(times, N) for category, times in votes}
        g = {category: Fraction(times * (times - 1), N * (N - 1)) for category, times in votes}
        d = 2 * g.get(label or "", Fraction(0)) - sum(g.values(), Fraction(0))
        own[label, votes] = c, d
        for category, share in c.items():
            C[category] += share * number / n
            G[category] += g[category] * number / n
        L[label or ""] += Fraction(number, n)
        D += d * number / n
        agreeing += sum(g.values(), Fraction(0)) * number / n
    same = sum((C[j] ** 2 for j in C), Fraction(0))
    C_E = sum((C[j] ** 2 * L[j] for j in C), Fraction(0))
    E = 2 * C_E - same
    kappa = (D - E) / (1 - E)
    random_D = sum((G[j] * (2 * L[j] - 1) for j in G), Fraction(0))

    def influence(label: str, c: Mapping[str, Fraction], d: Fraction) -> Fraction:
        pull = sum((C[j] * (2 * L[j] - 1) * share for j, share in c.items()), Fraction(0))
        return ((d - D) - (1 - kappa) * 2 * (pull + C[label] ** 2 - E - C_E)) / (1 - E)

    squares = sum(
        (influence(label or "", *own[label, votes]) ** 2 * k for (label, votes), k in eligible.items()), Fraction()
    )
    occurring = sorted({*C, *L})
    ends = [influence(j, {v: Fraction(1)}, Fraction(1 if j == v else -1)) for j in occurring for v in occurring]
    return Truth(
        n=n,
        votes=sum(number * sum(times for _, times in votes) for (_, votes), number in eligible.items()),
        kappa=kappa,
        floor=(random_D - E) / (1 - E),
        fleiss=(agreeing - same) / (1 - same),
        E=E,
        squares=squares,
        least=min(ends),
        greatest=max(ends),
    )


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def limit_error(truth: Truth, limit: float, upper: bool, level: float = 0.95) -> float:
    """Return how far a limit of the beta interval is from where its probability is what it should be.

    The beta distribution has the exact mean and variance of docs/methods.md; its density is added up in decimals.
    """
    with localcontext() as context:
        context.prec = _DIGITS
        R, w, n = Fraction(27, 13), Fraction(3, 4), truth.n
        added, whole = truth.greatest if upper else truth.least, n + w
        u = (1 - truth.kappa - w * added / whole) / R
        variance = (truth.squares + w * added**2 * n / whole) / (whole * (whole + 1))
        nu = u * (1 - u) * R**2 / variance - 1
        a, b = _decimal(u * nu), _decimal((1 - u) * nu)
        x = (1 - Decimal(limit)) / _decimal(R)
        p = (1 - Decimal(str(level))) / 2
        p = p if upper else 1 - p
        mode, sd = (a - 1) / (a + b - 2), (a * b / ((a + b) ** 2 * (a + b + 1))).sqrt()

        def density(place: Decimal) -> Decimal:
            y = mode + place * sd
            return ((a - 1) * (y / mode).ln() + (b - 1) * ((1 - y) / (1 - mode)).ln()).exp()

        def area(low: Decimal, high: Decimal) -> Decimal:
            step = (high - low) / _BETWEEN
            inner = (density(low + step * k) * (4 if k % 2 else 2) for k in range(1, _BETWEEN))
            return (density(low) + density(high) + sum(inner, Decimal(0))) * step / 3

        place = (x - mode) / sd
        below, above = area(Decimal(-_FAR), place), area(place, Decimal(_FAR))
        miss = (below / (below + above) - p) * (below + above) / density(place)
        return float(miss * sd * _decimal(R))


@dataclass
class Size:
    """What came of so many items."""

    n: int
    ways: list[str] = field(default_factory=list)
    se_off: float = 0.0
    limit_off: float = 0.0
    wrong: list[str] = field(default_factory=list)


def check(kappa: dhkappa.Kappa, truth: Truth, size: Size, way: str) -> None:
    """Compare a result with the truth: fractions with ==, their floats rounded once, errors in decimals."""
    size.ways.append(way)
    found = [kappa.n_items, kappa.n_votes, kappa.exact, kappa.value, kappa.floor, kappa.fleiss]
    wanted = [truth.n, truth.votes, truth.kappa, *map(float, (truth.kappa, truth.floor, truth.fleiss))]
    if found != wanted:
        size.wrong.append(f"{size.n:,} items, {way}: {found}, not {wanted}")
    size.se_off = max(size.se_off, abs(float(Decimal(kappa.se) / truth.se - 1)))
    low, high = kappa.interval()
    if not -14 / 13 <= low < kappa.value < high <= 1:
        size.wrong.append(f"{size.n:,} items, {way}: the interval is {low!r} to {high!r} about {kappa.value!r}")


def run_size(n: int, folder: Path, command: bool = True) -> Size:
    """Add up n items in every way, and check each."""
    size, patterns = Size(n), mixed(n)
    truth = truth_of(patterns)
    whole = doubled(patterns)
    kappa = dhkappa.dh_kappa(whole)
    check(kappa, truth, size, "doubling")
    low, high = kappa.interval()
    size.limit_off = max(abs(limit_error(truth, low, False)), abs(limit_error(truth, high, True)))
    if size.se_off > RIGHT or size.limit_off > RIGHT:
        size.wrong.append(f"{n:,} items: the standard error is off by {size.se_off}, a limit by {size.limit_off}")
    parts = unequal(patterns, 100, n % 1000)
    files = [saved(part, folder / f"{n}-{place}.json") for place, part in enumerate(parts) if sum(part.values())]
    loaded = [dhkappa.Tally.load(file) for file in files]
    random.Random(n).shuffle(loaded)
    check(dhkappa.dh_kappa(reduce(add, loaded)), truth, size, f"a loop over {len(files)} unequal files")
    check(dhkappa.dh_kappa(sum(loaded, dhkappa.Tally())), truth, size, "sum()")
    total = sum(loaded, dhkappa.Tally())
    total.save(folder / f"{n}.json")
    again = dhkappa.Tally.load(folder / f"{n}.json")
    check(dhkappa.dh_kappa(again), truth, size, "saved and loaded")
    if not (total == whole == again and (whole.n_items, whole.n_votes) == (n, _votes(patterns))):
        size.wrong.append(f"{n:,} items: the tallies differ")
    if command:
        made = _run("tally", "add", *map(str, files), "-o", str(folder / f"{n}-command.json"))
        check(dhkappa.dh_kappa(dhkappa.Tally.load(folder / f"{n}-command.json")), truth, size, "dhkappa tally add")
        told = json.loads(_run("score", str(folder / f"{n}-command.json"), "--json").stdout)
        if made.returncode or not _holds(told, float(truth.kappa)):
            size.wrong.append(f"{n:,} items: dhkappa score says {told}")
    return size


def _votes(patterns: Mapping[Pattern, int]) -> int:
    return sum(number * sum(times for _, times in votes) for (_, votes), number in patterns.items())


def _holds(told: object, value: float) -> bool:
    """Tell whether JSON holds a number somewhere."""
    if isinstance(told, dict):
        return any(_holds(held, value) for held in told.values())
    return told == value


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dhkappa", *words], capture_output=True, text=True, check=False)


def refused(folder: Path) -> tuple[list[str], list[str]]:
    """Ask for more items than a tally holds in every way; return the sentences, and what was not refused with one."""
    full, one = saved(mixed(LIMIT), folder / "full.json"), saved(mixed(1), folder / "one.json")
    told: list[str] = []
    wrong: list[str] = []
    for n in (LIMIT + 1, 2**63 - 1, 2**63, 2**64, 2**64 + 10**9):
        path = saved(mixed(n), folder / f"{n}.json")
        words = f"is not a whole number from 1 to {LIMIT:,}."
        _refusal(lambda path=path: dhkappa.Tally.load(path), f"a file of {n:,} items", words, told, wrong)
    held, more = dhkappa.Tally.load(full), dhkappa.Tally.load(one)
    _refusal(lambda: held + more, "+", MOST, told, wrong)
    _refusal(lambda: sum([held, more]), "sum()", MOST, told, wrong)
    _refusal(lambda: held.update([["a", "a"]], ["a"]), "update", MOST, told, wrong)
    if held.n_items != LIMIT:
        wrong.append(f"a tally that refused items has {held.n_items:,} now")
    ended = _run("tally", "add", str(full), str(one), "-o", str(folder / "never.json"))
    if ended.returncode != 2 or MOST not in ended.stderr or (folder / "never.json").exists():
        wrong.append(f"dhkappa tally add ended with {ended.returncode}: {ended.stderr}")
    told.append(ended.stderr.strip())
    return told, wrong


def _refusal(ask: object, what: str, words: str, told: list[str], wrong: list[str]) -> None:
    assert callable(ask)
    try:
        wrong.append(f"{what} gave {ask()!r}")
    except dhkappa.DataError as error:
        if words in str(error):
            told.append(str(error))
        else:
            wrong.append(f"{what} was refused for something else: {error}")


def counted_by_duckdb(n: int) -> list[str]:
    """Count n rows that DuckDB makes as it goes, three votes and a label each; return what is wrong."""
    import duckdb

    period = 7 * 5 * 4 * 3
    columns = ", ".join(
        f"chr((97 + i % {base} % 3)::INT) AS {name}" for name, base in zip("abcs", (7, 5, 4, 3), strict=True)
    )
    table = duckdb.sql(f"SELECT {columns} FROM range({n}) made(i)")
    found = dhkappa.tally(table, suggested="s", annotators=["a", "b", "c"])
    names, wanted = "abc", Counter[Pattern]()
    for i in range(period):
        votes = Counter(names[i % base % 3] for base in (7, 5, 4))
        wanted[names[i % 3], tuple(sorted(votes.items()))] += n // period + (i < n % period)
    kappa, truth = dhkappa.dh_kappa(found), truth_of(wanted)
    if (kappa.exact, kappa.n_items, kappa.n_votes) == (truth.kappa, n, 3 * n):
        return []
    return [f"DuckDB with {n:,} rows: {kappa.exact} of {kappa.n_items:,} items, not {truth.kappa}"]


def strata_exact(n: int) -> list[str]:
    """Weigh two strata of n items in all by pools: kappa must be that of the exact weights."""
    held = {"north": mixed(n // 3), "south": mixed(n - n // 3, 1)}
    total = dhkappa.Tally()
    for stratum, patterns in held.items():
        for pattern, number in patterns.items():
            cast = [category for category, times in pattern[1] for _ in range(times)]
            one, own = dhkappa.tally([cast], [pattern[0]], strata=[stratum]), None
            for bit in bin(number)[:1:-1]:
                own = (one if own is None else own + one) if bit == "1" else own
                one = one + one if one.n_items <= LIMIT // 2 else one
            total = total + own if own is not None else total
    truths = {name: truth_of(patterns) for name, patterns in held.items()}
    pool = {"north": 5 * truths["north"].n + 1, "south": 2 * truths["south"].n + 3}
    weighted = Counter[Pattern]()
    for name, patterns in held.items():
        other = math.prod(truths[one].n for one in held if one != name)
        for pattern, number in patterns.items():
            weighted[pattern] += number * pool[name] * other  # pool / n, over a common denominator
    kappa = dhkappa.dh_kappa(total, pool=pool)
    wanted = truth_of(weighted).kappa
    return [] if kappa.exact == wanted else [f"{n:,} items in strata: {kappa.exact}, not {wanted}"]
