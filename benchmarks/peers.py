"""Agreement coefficients of other libraries, and eq. 14 of the paper."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa import dh_kappa, fleiss_kappa
from measure import Sample, WrongValueError, timed

Convert = Callable[[Sample], Any]
Call = Callable[[Any], float]

PAPER = "eq. 14"
AGGREGATE = "aggregate_raters"
MEMORY = 2.5e9


@dataclass(frozen=True, slots=True)
class Route:
    """One way from votes to a peer's number: its input form, then its call."""

    name: str
    convert: Convert
    call: Call
    item_bytes: Callable[[int, int], float]
    """Peak memory per item in bytes, given N and m."""

    def whole(self, sample: Sample) -> float:
        return self.call(self.convert(sample))


@dataclass(frozen=True, slots=True)
class Peer:
    """A coefficient from elsewhere; `expected` is our number for it on the same votes."""

    name: str
    routes: tuple[Route, ...]
    expected: Callable[[Sample], float]
    tolerance: float = 1e-9
    two_annotators: bool = False


@dataclass(frozen=True, slots=True)
class Timing:
    """Nanoseconds per item of one route, on the first `n` items."""

    route: str
    n: int
    convert_ns: float
    call_ns: float

    @property
    def whole_ns(self) -> float:
        return self.convert_ns + self.call_ns


def counts(sample: Sample) -> npt.NDArray[np.int64]:
    """A, n x m, as fast as numpy gives it: blocks that stay in cache."""
    n, N = sample.votes.shape
    A = np.empty((n, sample.m), np.int64)
    size = max(1, (1 << 16) // max(N, sample.m))
    first = (np.arange(size) * sample.m)[:, None]
    for start in range(0, n, size):
        block = sample.votes[start : start + size]
        cells = (block + first[: len(block)]).ravel()
        A[start : start + size] = np.bincount(cells, minlength=len(block) * sample.m).reshape(-1, sample.m)
    return A


def paper_matrices(sample: Sample) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """A and B of the paper, n x m, as floats."""
    B = np.zeros((len(sample.suggested), sample.m))
    B[np.arange(len(B)), sample.suggested] = 1
    return counts(sample).astype(float), B


def paper_procedure(matrices: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]) -> float:
    """Eq. 14 line by line."""
    A, B = matrices
    n, m = A.shape
    N = A[0].sum()
    pairs = N * (N - 1) / 2
    C = A.sum(axis=0) * (1 / (N * n))
    L = B.sum(axis=0) * (1 / n)
    C_E = (C * C * L).sum()
    T = np.tile(C, (m, 1)) * (np.ones((m, m)) - np.eye(m))
    C_F = ((T * T).sum(axis=1) * L).sum()
    f_A = A * (A - 1) / 2
    R = ((f_A * B).sum(axis=1) * (1 / pairs)).sum() * (1 / n)
    S = ((f_A * (np.ones((n, m)) - B)).sum(axis=1) * (1 / pairs)).sum() * (1 / n)
    return float(((R - S) - (C_E - C_F)) / (1 - (C_E - C_F)))


def _paper() -> Peer:
    route = Route("numpy matrices", paper_matrices, paper_procedure, lambda N, m: 64 * m)
    return Peer(PAPER, (route,), lambda sample: float(dh_kappa(sample.votes, sample.suggested)))


def _fleiss(sample: Sample) -> float:
    return float(fleiss_kappa(sample.votes))


def _statsmodels() -> Peer:
    library = import_module("statsmodels.stats.inter_rater")

    def own(sample: Sample) -> Any:
        return library.aggregate_raters(sample.votes, n_cat=sample.m)[0]

    def call(table: Any) -> float:
        return float(library.fleiss_kappa(table))

    return Peer(
        "statsmodels",
        (
            Route("numpy counts", counts, call, lambda N, m: 32 * m),
            Route(AGGREGATE, own, call, lambda N, m: 32 * m),
        ),
        _fleiss,
    )


def _irrcac() -> Peer:
    cac = import_module("irrCAC.raw").CAC
    frame = import_module("pandas").DataFrame

    def convert(sample: Sample) -> Any:
        return frame(sample.votes), list(range(sample.m))

    def call(form: Any) -> float:
        votes, categories = form
        result = cac(votes, categories=categories, digits=15).fleiss()
        return float(result["est"]["coefficient_value"])

    return Peer("irrCAC", (Route("DataFrame", convert, call, lambda N, m: 48 * m + 32 * N),), _fleiss)


def _krippendorff() -> Peer:
    alpha = import_module("krippendorff").alpha

    def from_counts(table: Any) -> float:
        return float(alpha(value_counts=table, level_of_measurement="nominal"))

    def from_votes(form: Any) -> float:
        votes, categories = form
        return float(alpha(votes, level_of_measurement="nominal", value_domain=categories))

    def transposed(sample: Sample) -> Any:
        return sample.votes.T, np.arange(sample.m)

    def expected(sample: Sample) -> float:
        # alpha = kappa + (1 - kappa)/(nN) where every item has N votes
        kappa = _fleiss(sample)
        return kappa + (1 - kappa) / sample.votes.size

    return Peer(
        "krippendorff",
        (
            Route("numpy counts", counts, from_counts, lambda N, m: 32 * m * m),
            Route("votes", transposed, from_votes, lambda N, m: 32 * m * m + 2 * N * m),
        ),
        expected,
    )


def _torchmetrics() -> Peer:
    torch = import_module("torch")
    kappa = import_module("torchmetrics.functional.nominal").fleiss_kappa

    def tensor(sample: Sample) -> Any:
        return torch.from_numpy(counts(sample))

    def call(table: Any) -> float:
        return float(kappa(table))

    def call_on_one_thread(table: Any) -> float:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return call(table)
        finally:
            torch.set_num_threads(threads)

    return Peer(
        "torchmetrics",
        (
            Route("numpy counts", tensor, call, lambda N, m: 24 * m),
            Route("numpy counts, one thread", tensor, call_on_one_thread, lambda N, m: 24 * m),
        ),
        _fleiss,
        tolerance=1e-4,  # single precision, and 1e-5 added to the denominator
    )


def _sklearn() -> Peer:
    cohen = import_module("sklearn.metrics").cohen_kappa_score

    def convert(sample: Sample) -> Any:
        first, second = np.ascontiguousarray(sample.votes.T)
        return first, second, np.arange(sample.m)

    def call(form: Any) -> float:
        first, second, categories = form
        return float(cohen(first, second, labels=categories))

    def expected(sample: Sample) -> float:
        first, second = sample.votes.T
        agreed = np.mean(first == second)
        shares = [np.bincount(codes, minlength=sample.m) / len(codes) for codes in (first, second)]
        chance = shares[0] @ shares[1]
        return float((agreed - chance) / (1 - chance))

    route = Route("columns", convert, call, lambda N, m: 200.0)
    return Peer("scikit-learn", (route,), expected, two_annotators=True)


LOADERS = {
    "statsmodels": _statsmodels,
    "irrCAC": _irrcac,
    "krippendorff": _krippendorff,
    "torchmetrics": _torchmetrics,
    "scikit-learn": _sklearn,
    PAPER: _paper,
}


def load() -> dict[str, Peer | None]:
    """Every peer by name, None for one that is not installed."""
    peers: dict[str, Peer | None] = {}
    for name, loader in LOADERS.items():
        try:
            peers[name] = loader()
        except ImportError:
            peers[name] = None
    return peers


def climb(peer: Peer, route: Route, sample: Sample, *, seconds: float) -> Timing:
    """Time a route on 10^3, 10^4, ... items, up to n or to what it does in about `seconds` and MEMORY.

    The next size is foretold from the last two, and sizes below 10^4 may take ten times as long, so that fixed
    costs are not taken for costs per item.
    """
    n, N = sample.votes.shape
    size, before = min(1000, n), math.inf
    while size > 10 and size * route.item_bytes(N, sample.m) > MEMORY:
        size //= 10
    while True:
        head = sample.head(size)
        convert, form = timed(route.convert, head)
        call, value = timed(route.call, form)
        if convert + call < 0.1:  # one slow run must not stop the climb
            call = min(call, *(timed(route.call, form)[0] for _ in range(3)))
            convert = min(convert, *(timed(route.convert, head)[0] for _ in range(3)))
        foretold = convert + call + 10 * max(0.0, convert + call - before)
        larger = min(10 * size, n)
        too_long = foretold > (seconds if size >= 10**4 else 10 * seconds)
        if size == n or too_long or larger * route.item_bytes(N, sample.m) > MEMORY:
            break
        size, before = larger, convert + call
    expected = peer.expected(head)
    if not abs(value - expected) <= peer.tolerance:
        raise WrongValueError(f"{peer.name} by {route.name} gives {value!r}, expected {expected!r}, n={size}")
    for _ in range(min(9, int(2 * seconds / (convert + call)))):
        convert = min(convert, timed(route.convert, head)[0])
        call = min(call, timed(route.call, form)[0])
    return Timing(route.name, size, convert / size * 1e9, call / size * 1e9)


def measure(peer: Peer, sample: Sample, *, seconds: float, known: dict[str, Timing]) -> list[Timing]:
    """Time every route, but for those in `known`, which stopped short of fewer items of the same N and m."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [known.get(r.name) or climb(peer, r, sample, seconds=seconds) for r in peer.routes]
