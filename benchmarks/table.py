"""Rows of the benchmark, and their output."""

from __future__ import annotations

from dataclasses import dataclass

from measure import ACCURACY, LABEL_ACCURACY
from peers import AGGREGATE, PAPER, Peer, Timing

PEER_WIDTH = 15

LEGEND = f"""\
Votes: uniform truth; annotators are right {ACCURACY:.0%}, suggested labels {LABEL_ACCURACY:.0%} of the time.
dh_kappa: ns per item for kappa and its parts. It alternates with np.sum(votes); the minimum of each is shown.
memory: peak of what dh_kappa allocates beyond the votes, as a multiple of the votes' bytes, in a run of its own.
Peers, minimum of up to 10 runs: ns per item from votes to number by the fastest route, making the peer's input
included / the call alone, its input ready made. Counts come from np.bincount in blocks; "own" is statsmodels with
its own {AGGREGATE}. @: measured on that many items, where n would take too long or too much memory.
statsmodels, irrCAC, torchmetrics: Fleiss' kappa. krippendorff: nominal alpha. scikit-learn: Cohen's kappa, N = 2
only. {PAPER}: the paper's matrix procedure in numpy, from A and B as floats.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: times in ns per item, memory as a multiple of the votes' bytes."""

    n: int
    N: int
    m: int
    dtype: str
    value: float
    dh_ns: float
    sum_ns: float
    memory: float
    peers: dict[str, list[Timing]]

    def best(self, name: str) -> tuple[float, float, int] | None:
        """From votes, by the call alone (ns per item, each by the peer's fastest route), and on how many items."""
        timings = self.peers.get(name)
        if not timings:
            return None
        whole, bare = min(timings, key=lambda t: t.whole_ns), min(timings, key=lambda t: t.call_ns)
        return whole.whole_ns, bare.call_ns, min(whole.n, bare.n)


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal, the measured value, and whether it is met (None: not judged)."""

    text: str
    measured: str
    met: bool | None


class Table:
    """Prints rows as they come, in columns of fixed width."""

    def __init__(self, peers: dict[str, Peer | None]) -> None:
        self.peers = peers
        self.columns = {"n": 4, "N": 4, "m": 5, "dtype": 7, "dh_kappa": 9, "x np.sum": 9, "memory": 7}
        for name, peer in peers.items():
            self.columns[name] = PEER_WIDTH
            if name == "statsmodels" and peer:
                self.columns["own"] = 10

    def head(self) -> None:
        self._line(list(self.columns))
        print("-" * sum(self.columns.values()))

    def row(self, row: Row) -> None:
        cells = [power(row.n), str(row.N), str(row.m), row.dtype]
        cells += [number(row.dh_ns), number(row.dh_ns / row.sum_ns), f"{row.memory:.2f}"]
        for name, peer in self.peers.items():
            cells.append("not installed" if peer is None else self._cell(row, name))
            if "own" in self.columns and name == "statsmodels":
                own = next(t for t in row.peers[name] if t.route == AGGREGATE)
                cells.append(number(own.whole_ns) + at(own.n, row.n))
        self._line(cells)

    def _line(self, cells: list[str]) -> None:
        widths = self.columns.values()
        print("".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)), flush=True)

    @staticmethod
    def _cell(row: Row, name: str) -> str:
        best = row.best(name)
        if best is None:
            return "-"
        whole, bare, n = best
        return f"{number(whole)}/{number(bare)}{at(n, row.n)}"


def print_goals(goals: list[Goal]) -> None:
    for goal in goals:
        verdict = {True: "met", False: "MISSED", None: "not judged"}[goal.met]
        print(f"  {verdict:<10}  {goal.text}\n{'':14}{goal.measured}")


def number(x: float) -> str:
    """Two or three digits a person can read: 4.31, 87.2, 161, 2.6k, 126M."""
    if x < 999.5:
        return f"{x:.3g}"
    unit, size = next((u, s) for u, s in (("G", 1e9), ("M", 1e6), ("k", 1e3)) if x >= 0.9995 * s)
    return f"{x / size:.{1 if x < 9.95 * size else 0}f}{unit}"


def power(n: int) -> str:
    return f"{n:.0e}".replace("e+0", "e")


def at(measured: int, n: int) -> str:
    """Say on how many items a peer was measured, where it was not n."""
    return "" if measured == n else f"@{power(measured)}"
