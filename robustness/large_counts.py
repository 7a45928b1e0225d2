"""Add tallies up to 2^62 items, and compare the results with rational and decimal arithmetic."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, reduce
from operator import add
from pathlib import Path

import dhkappa

Pattern = tuple[str | None, tuple[tuple[str, int], ...]]
"""A suggested label, and the number of votes of each category."""

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
SIZES = (10**9, 10**12, 2**53 - 1, 2**53, 2**53 + 1, 10**18, LIMIT - 1, LIMIT)
TOLERANCE = 1e-13  # of a standard error, relative, and of a limit
_DIGITS = 60
_STEPS = 2000  # of Simpson's rule, on each side of a limit
_RANGE = 14  # standard deviations: less than 10^-43 is beyond


def mixed(n: int, seed: int = 0) -> Counter[Pattern]:
    """Return n items: multiples of the mix, and the rest at random."""
    share, rest = divmod(n, sum(MIX.values()))
    found = Counter({pattern: number * share for pattern, number in MIX.items()})
    found.update(random.Random(seed).choices(list(MIX), k=rest))
    return found


@cache
def _power(pattern: Pattern, stratum: str | None, exponent: int) -> dhkappa.Tally:
    """Return a tally of 2^exponent items of a pattern."""
    if exponent:
        half = _power(pattern, stratum, exponent - 1)
        return half + half
    votes = [category for category, times in pattern[1] for _ in range(times)]
    return dhkappa.tally([votes], [pattern[0]], strata=None if stratum is None else [stratum])


def doubled(patterns: Mapping[Pattern, int], stratum: str | None = None) -> dhkappa.Tally:
    """Add up so many items of each pattern by doubling tallies of one item."""
    powers = [
        _power(pattern, stratum, exponent)
        for pattern, number in patterns.items()
        for exponent in range(number.bit_length())
        if number >> exponent & 1
    ]
    return sum(powers, dhkappa.Tally())


def partitioned(patterns: Mapping[Pattern, int], parts: int, seed: int) -> list[Counter[Pattern]]:
    """Partition items into parts of very different sizes."""
    draw = random.Random(seed)
    found: list[Counter[Pattern]] = [Counter() for _ in range(parts)]
    for pattern, number in patterns.items():
        left = number
        for part in found[:-1]:
            part[pattern] = min(left, int(left * draw.random() ** 3))
            left -= part[pattern]
        found[-1][pattern] = left
    return [part for part in found if part.total()]


@dataclass(frozen=True)
class Truth:
    """Exact values of a sample: numbers, kappas, sum of squared influences, and influences of extreme items."""

    n: int
    votes: int
    kappa: Fraction
    random: Fraction
    fleiss: Fraction
    squares: Fraction
    least: Fraction
    greatest: Fraction

    @property
    def se(self) -> Decimal:
        """The standard error."""
        with localcontext() as context:
            context.prec = _DIGITS
            return _decimal(self.squares / (self.n * (self.n - 1))).sqrt()


def truth_of(patterns: Mapping[Pattern, int]) -> Truth:
    """Compute the exact values from eq. 4-13 and docs/methods.md, without the package."""
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

    squares = sum((influence(pattern[0] or "", *own[pattern]) ** 2 * k for pattern, k in eligible.items()), Fraction())
    ends = [influence(j, {v: Fraction(1)}, Fraction(1 if j == v else -1)) for j in {*C, *L} for v in {*C, *L}]
    return Truth(
        n=n,
        votes=sum(number * sum(times for _, times in votes) for (_, votes), number in eligible.items()),
        kappa=kappa,
        random=(random_D - E) / (1 - E),
        fleiss=(agreeing - same) / (1 - same),
        squares=squares,
        least=min(ends),
        greatest=max(ends),
    )


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def limit_error(truth: Truth, limit: float, upper: bool) -> float:
    """Return the error of a limit of the 95% beta interval, whose density is integrated in decimal arithmetic."""
    with localcontext() as context:
        context.prec = _DIGITS
        R, w, n = Fraction(27, 13), Fraction(3, 4), truth.n
        added, whole = truth.greatest if upper else truth.least, n + w
        u = (1 - truth.kappa - w * added / whole) / R
        variance = (truth.squares + w * added**2 * n / whole) / (whole * (whole + 1))
        nu = u * (1 - u) * R**2 / variance - 1
        a, b = _decimal(u * nu), _decimal((1 - u) * nu)
        x = (1 - Decimal(limit)) / _decimal(R)
        p = Decimal("0.025") if upper else Decimal("0.975")
        mode, sd = (a - 1) / (a + b - 2), (a * b / ((a + b) ** 2 * (a + b + 1))).sqrt()

        def density(place: Decimal) -> Decimal:
            y = mode + place * sd
            return ((a - 1) * (y / mode).ln() + (b - 1) * ((1 - y) / (1 - mode)).ln()).exp()

        def area(low: Decimal, high: Decimal) -> Decimal:
            step = (high - low) / _STEPS
            inner = (density(low + step * k) * (4 if k % 2 else 2) for k in range(1, _STEPS))
            return (density(low) + density(high) + sum(inner, Decimal(0))) * step / 3

        place = (x - mode) / sd
        below, above = area(Decimal(-_RANGE), place), area(place, Decimal(_RANGE))
        miss = (below / (below + above) - p) * (below + above) / density(place)
        return float(miss * sd * _decimal(R))


@dataclass
class Size:
    """Results for a number of items."""

    n: int
    methods: int = 0
    se_error: float = 0.0
    limit_error: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def check(self, tally: dhkappa.Tally, truth: Truth, method: str) -> dhkappa.Kappa:
        """Compare fractions with ==, floats with the rounded fractions, and the standard error with decimals."""
        kappa = dhkappa.dh_kappa(tally)
        self.methods += 1
        found = [kappa.n_items, kappa.n_votes, kappa.exact, kappa.value, float(kappa.baselines.random), kappa.fleiss]
        right = [truth.n, truth.votes, truth.kappa, *map(float, (truth.kappa, truth.random, truth.fleiss))]
        if found != right:
            self.wrong.append(f"{self.n:,} items, {method}: {found}, not {right}")
        self.se_error = max(self.se_error, abs(float(Decimal(kappa.se) / truth.se - 1)))
        return kappa


def run_size(n: int, folder: Path) -> Size:
    """Add up n items in several ways, and check each."""
    size, patterns = Size(n), mixed(n)
    truth, whole = truth_of(patterns), doubled(patterns)
    low, high = size.check(whole, truth, "doubling").confidence_interval()
    size.limit_error = max(abs(limit_error(truth, low, False)), abs(limit_error(truth, high, True)))
    if max(size.se_error, size.limit_error) > TOLERANCE:
        size.wrong.append(f"{n:,} items: errors {size.se_error} and {size.limit_error}")
    files = []
    for place, part in enumerate(partitioned(patterns, 10, n % 1000)):
        files.append(folder / f"{n}-{place}.json")
        doubled(part).save(files[-1])
    loaded = [dhkappa.Tally.load(file) for file in files]
    random.Random(n).shuffle(loaded)
    size.check(reduce(add, loaded), truth, "+")
    size.check(sum(loaded, dhkappa.Tally()), truth, "sum()")
    target = folder / f"{n}.json"
    run("tally", "add", *map(str, files), "-o", str(target))
    size.check(dhkappa.Tally.load(target), truth, "dhkappa tally add")
    if not dhkappa.Tally.load(target) == sum(loaded, dhkappa.Tally()) == whole:
        size.wrong.append(f"{n:,} items: the tallies differ")
    return size


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    return subprocess.run([sys.executable, "-m", "dhkappa", *words], capture_output=True, text=True, check=False)


def too_many(folder: Path) -> list[str]:
    """Try to count more items than a tally holds; return what was not rejected."""
    full, one, wrong = folder / "full.json", folder / "one.json", []
    doubled(mixed(LIMIT)).save(full)
    doubled(mixed(1)).save(one)
    tally, more = dhkappa.Tally.load(full), dhkappa.Tally.load(one)

    def update() -> None:
        tally.update([["a", "a"]], ["a"])

    calls: dict[str, Callable[[], object]] = {
        "+": lambda: tally + more,
        "sum()": lambda: sum([tally, more]),
        "update": update,
    }
    for n in (LIMIT + 1, 2**63 - 1, 2**63, 2**64, 2**64 + 10**9):
        content = json.loads(full.read_text())
        content["items"] += n - LIMIT
        content["patterns"][0]["items"] += n - LIMIT
        path = folder / f"{n}.json"
        path.write_text(json.dumps(content))
        calls[f"a file of {n:,} items"] = lambda path=path: dhkappa.Tally.load(path)  # type: ignore[misc]
    for name, call in calls.items():
        try:
            wrong.append(f"{name}: {call()!r}")
        except dhkappa.DataError as error:
            if error.code not in ("too-many-items", "damaged-tally"):
                wrong.append(f"{name}: {error}")
    if tally.n_items != LIMIT:
        wrong.append(f"the tally has {tally.n_items:,} items after it rejected others")
    done = run("tally", "add", str(full), str(one), "-o", str(folder / "never.json"))
    if done.returncode != 2 or (folder / "never.json").exists():
        wrong.append(f"tally add: {done.returncode}: {done.stderr}")
    return wrong


def strata(n: int) -> list[str]:
    """Weight two strata by their pools; return differences from the exact kappa."""
    parts = {"north": mixed(n // 3), "south": mixed(n - n // 3, 1)}
    total = sum((doubled(part, name) for name, part in parts.items()), dhkappa.Tally())
    sizes = {name: truth_of(part).n for name, part in parts.items()}
    pool = {"north": 5 * sizes["north"] + 1, "south": 2 * sizes["south"] + 3}
    weighted = Counter[Pattern]()
    for name, other in (("north", "south"), ("south", "north")):
        for pattern, number in parts[name].items():
            weighted[pattern] += number * pool[name] * sizes[other]  # pool / n, with a common denominator
    found, right = dhkappa.dh_kappa(total, pool=pool).exact, truth_of(weighted).kappa
    return [] if found == right else [f"{n:,} items in strata: {found}, not {right}"]
