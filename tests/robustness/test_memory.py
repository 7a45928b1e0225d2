"""Commands under memory limits; a short version of ``make memory``."""

import json
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

import memory as limited
import memory_votes
import oracle
from dhkappa.resources import MIB
from section import COMMAND

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux reports and limits memory")
GROUP = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not limited.can_group(), reason="no control group can be created here"
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the same votes in some layouts."""
    folder: Path = tmp_path_factory.mktemp("layouts")
    for name in ("wide.csv", "wide.jsonl", "long.csv", "label_studio.json"):
        memory_votes.write_votes(folder / name, 50_000, limited.ANNOTATORS)
    return folder


def test_kappa_of_the_large_files_is_known() -> None:
    """The closed form against the oracle, item by item."""
    with duckdb.connect() as connection:
        found = connection.execute(memory_votes.rows(memory_votes.codes(2), 2)).fetchall()
    expected = oracle.dh([votes for _, _, *votes in found], [label for _, label, *_ in found], memory_votes.CATEGORIES)
    value, counted = memory_votes.exact_kappa(2)
    assert value == expected.kappa
    assert counted * len(found) == expected.n


@LINUX
@pytest.mark.parametrize("how", ["addresses", pytest.param("group", marks=GROUP)])
def test_the_tightest_limit_is_found(how: str) -> None:
    code = (
        "from dhkappa.resources import memory_limit as m; print(m().by, m().total, 0 < m().left < m().total, sep=', ')"
    )
    done = limited.run([sys.executable, "-c", code], 300 * MIB, how)
    by = "ulimit -v" if how == "addresses" else "control group"
    assert done.out == f"{by}, {300 * MIB}, True\n"


@pytest.mark.slow
@LINUX
@pytest.mark.parametrize("how", ["addresses", pytest.param("group", marks=GROUP)])
def test_every_command_works_or_fails_with_one_line(files: Path, how: str) -> None:
    pytest.importorskip("vl_convert")  # for the audit, which writes a report
    small = [*limited.small_limits(files, [(how, 150 * MIB)], ["long.csv"])]
    assert all(one.outcome.memory_error for one in small)
    large = [*limited.small_limits(files, [(how, 512 * MIB)], ["wide.csv"], ["score", "tally make"])]
    assert [one.outcome.code for one in large] == [0, 0]
    assert not any(one.wrong for one in large)


@pytest.mark.slow
@LINUX
@pytest.mark.parametrize("mib", [420, 460, 512])
def test_openblas_neither_interrupts_nor_hangs(mib: int, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without memory for its threads, OpenBLAS raises SIGINT when SciPy is imported; without buffers, it hangs."""
    monkeypatch.setattr(limited, "TIMEOUT", 60)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    [one] = limited.small_limits(files, [("addresses", mib * MIB)], ["wide.jsonl"], ["review"])
    assert not one.wrong, one.outcome


@pytest.mark.slow
@GROUP
def test_an_export_that_does_not_fit_is_an_error(files: Path) -> None:
    """The control group would kill the process."""
    found = [*limited.small_limits(files, [("group", mib * MIB) for mib in (256, 320, 384)], ["label_studio.json"])]
    assert not any(one.wrong for one in found)
    assert found[0].outcome.memory_error


@LINUX
def test_scipy_is_not_loaded_without_memory_for_it() -> None:
    code = """
import resource, numpy.random, dhkappa
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (70 << 20), -1))
try:
    from dhkappa.stats import special
except OSError as error:
    print(error.strerror)
"""
    done = limited.run(["timeout", "30", sys.executable, "-c", code])
    assert (done.code, done.out, done.err) == (0, "Cannot allocate memory\n", "")


def _answered(told: str, code: int = 0) -> Any:
    return limited.Outcome(code, told, "", 1.0, 1)


def _score(kappa: str, n_items: int) -> str:
    return json.dumps({"result": {"labelers": {"llm": {"exact": kappa, "n_items": n_items}}}})


EXACT = str(memory_votes.exact_kappa(limited.ANNOTATORS)[0])


@pytest.mark.parametrize("command", limited.COMMANDS)
@pytest.mark.parametrize("layout", ["wide.csv", "many.csv"])
@pytest.mark.parametrize("wrong", ["", "kappa", "number", "everywhere"])
def test_a_wrong_answer_under_a_limit_is_a_fault(
    layout: str, command: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result under a limit is compared with the result without one, and with the known kappa."""

    def run(words: list[str], limit: int = 0, how: str = "") -> Any:
        off = wrong == "everywhere" or (wrong and limit)
        told = _score("1/3" if off and wrong != "number" else EXACT, 41 if off and wrong == "number" else 40)
        if words[-2] == "-o":
            Path(words[-1]).write_text(told)
        return _answered(Path(words[2]).read_text() if words[2].endswith("tally.json") else told)

    monkeypatch.setattr(limited, "run", run)
    [one] = limited.small_limits(tmp_path, [("group", MIB)], [layout], [command])
    unseen = wrong == "everywhere" and (layout == "many.csv" or command == "review")
    assert one.wrong == (bool(wrong) and not unseen)


def test_an_answer_without_its_file_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited, "run", lambda *_: _answered(_score(EXACT, 40)))
    found = {one.command: one.wrong for one in limited.small_limits(tmp_path, [("group", MIB)], ["many.csv"])}
    assert found == {"score": False, "audit": True, "review": True, "tally make": True}


def test_the_matrix_shows_every_trial() -> None:
    limits = [("group", 160), ("group", 512), ("addresses", 512)]
    made = [
        limited.LimitedRun(layout, command, how, mib * MIB, _answered("", 1 if how == "addresses" else 0), mib > 160)
        for layout in limited.FILES
        for command in limited.COMMANDS
        for how, mib in limits
    ]
    shown = limited.matrix(made)
    assert {cell for _, *row in shown for cell in row} == {"160: WRONG, 512: result, 512 address space: WRONG"}
    assert (len(shown), {len(row) for row in shown}) == (len(limited.FILES), {1 + len(limited.COMMANDS)})


@LINUX
def test_the_report_is_refused_before_any_work_where_it_would_crash(files: Path) -> None:
    pytest.importorskip("vl_convert")
    words = [COMMAND, "audit", str(files / "wide.csv"), "-o", str(files / "report.html")]
    done = limited.run(words, 1024 * MIB, "addresses")
    assert "66 GiB of address space" in done.err
    assert done.code == 2
    assert not (files / "report.html").exists()
