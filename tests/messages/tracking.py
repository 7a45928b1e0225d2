"""Every error and note of saved audits and histories."""

import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from command import WIDE, call
from dhkappa import Audit, Dataset, Problem, Tally, audit, history, simulate, tally

FOLDER = Path(tempfile.mkdtemp(prefix="dhkappa-messages-"))


def made(seed: int, n: int = 40, name: str = "llm", **more: Any) -> Audit:
    sim = simulate(n, labelers={name: 0.8}, rng=seed)
    found: Audit = audit(sim.votes, sim.suggested, **more)
    return found


def saved(file: str, date: str, *args: Any, **more: Any) -> Path:
    made(*args, **more).save(FOLDER / file, date=date)
    return FOLDER / file


def filtered() -> Path:
    sim = simulate(40, labelers={"llm": 0.8}, rng=2)
    audit(Dataset(sim.votes, sim.suggested).exclude_annotators(2)).save(FOLDER / "filtered.json", date="2026-11-09")
    return FOLDER / "filtered.json"


def changed() -> Any:
    sim = simulate(200, labelers={"llm": 0.34}, rng=2)
    audit(sim.votes, sim.suggested).save(FOLDER / "changed.json", date="2026-11-09")
    return history([saved("good.json", "2026-11-02", 1, 200), FOLDER / "changed.json"], any_time=True)


def counted(name: str, seed: int) -> Path:
    sim = simulate(40, labelers={"llm": 0.8}, rng=seed)
    tally(sim.votes, sim.suggested).save(FOLDER / name)
    return FOLDER / name


def other_version() -> Any:
    path = saved("version.json", "2026-11-02", 1)
    held = json.loads(path.read_text())
    held["audit"]["version"] = 9
    path.write_text(json.dumps(held))
    return history(path)


def with_error() -> Any:
    problem = Problem("looks-like-counts", "error", "The columns look like numbers of votes.")
    return replace(made(1), problems=(problem,)).save(FOLDER / "error.json")


def not_saved() -> Any:
    path = FOLDER / "votes.csv"
    path.write_text(WIDE)
    return history(path)


def one(**more: Any) -> Path:
    return saved("one.json", "2026-11-02", 1, **more)


def unlabeled() -> Any:
    path = FOLDER / "unlabeled.csv"
    path.write_text("item,ann_1,ann_2\n1,a,b\n2,a,a\n")
    call("audit", str(path), "--save", str(FOLDER / "unlabeled.json"))


def of_audit(*words: str, **more: Any) -> Callable[[], Any]:
    """Save an audit of declared categories, and read it as a tally, or with a command."""

    def read() -> Any:
        sim = simulate(40, labelers={"llm": 0.8}, rng=1)
        path = FOLDER / "options.json"
        audit(Dataset(sim.votes, sim.suggested, categories=["a", "b", "c"]), **more).save(path)
        return call(*words, str(path)) if words else Tally.load(path)

    return read


CASES: dict[str, Callable[[], Any]] = {
    "invalid-date": lambda: made(1).save(FOLDER / "date.json", date="9.11.2026"),
    "option-unused (date)": lambda: call("audit", "votes.csv", "--date", "2026-11-09"),
    "not-an-audit-of-labels": unlabeled,
    "audit-not-saved": with_error,
    "not-a-saved-audit": not_saved,
    "saved-audit-version": other_version,
    "invalid-saved-audit": lambda: history([3]),  # type: ignore[list-item]
    "no-saved-audits": lambda: history([]),
    "same-audit": lambda: history([one(), one()]),
    "same-audit (content)": lambda: history([one(), saved("copy.json", "2026-11-09", 1)]),
    "no-common-labeler": lambda: made(2, name="rule").compare_with(one()),
    "different-weights": lambda: history(
        [one(), saved("two.json", "2026-11-09", 2, weights="linear", categories=["a", "b", "c"])]
    ),
    "option-not-supported (history of a pool)": lambda: history(
        [one(), saved("pool.json", "2026-11-09", 2, pool=1000)], any_time=True
    ),
    "any-time-changed": lambda: changed(),
    "no-date": lambda: history([counted("w9.json", 1), counted("w10.json", 2)]),
    "verdict-from-counts": lambda: history(counted("w9.json", 1)),
    "same-date": lambda: history([one(), saved("two.json", "2026-11-02", 2)]),
    "labeler-absent": lambda: history([one(), saved("two.json", "2026-11-09", 2, name="rule")]),
    "saved-audit-options": of_audit(weights="linear", pool=300),
    "saved-audit-options (command)": of_audit("score", weights="linear", pool=300),
    "saved-audit-options (plan)": of_audit("plan", "0.05", weights="linear"),
    "categories-differ": lambda: history([one(), Tally.load(one()) + tally([["a", "z"]] * 9, {"llm": ["a"] * 9})]),
    "filters-differ": lambda: history([one(), filtered()]),
    "labelers-differ": lambda: (
        audit([["a", "b"], ["a", "a"]] * 20, {"llm": ["a", "b"] * 20, "rule": ["a", "a"] * 20})
        .compare_with(one())
        .baseline
    ),
    "sizes-differ": lambda: made(2, 120).compare_with(one()).baseline,
}
