"""Every error of the report package, of tables and of resources."""

import os
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import dhkappa
from dhkappa import resources
from dhkappa.report import html
from dhkappa.resources import MIB, MemoryLimit, memory_errors, need, need_address_space
from dhkappa.table import Table

VOTES = [["a", "a"], ["b", "b"], ["a", "b"]]


def audit() -> dhkappa.Audit:
    return dhkappa.audit(VOTES, ["a", "b", "a"])


def _missing_library(name: str, call: Callable[[], Any]) -> Any:
    with patch.dict(sys.modules, {name: None}):
        return call()


def _charts_failed() -> Any:
    import vl_convert

    def fail(spec: object, **options: object) -> str:
        raise ValueError("conversion failed: oneshot canceled")

    with patch.object(vl_convert, "vegalite_to_svg", fail):
        return audit().to_html(os.devnull)


def _limited(call: Callable[[], Any]) -> Any:
    limit = MemoryLimit(100 * MIB, 512 * MIB, "control group")
    with (
        patch.object(resources, "memory_limit", lambda: limit),
        patch.object(resources, "_address_space", lambda: iter([MemoryLimit(MIB, 2 * MIB, "ulimit -v")])),
    ):
        return call()


def _out_of_memory() -> None:
    with memory_errors("the votes"):
        raise MemoryError


CASES: dict[str, Callable[[], Any]] = {
    "unknown-chart": lambda: audit().chart("scales"),
    "empty-chart (differences)": lambda: audit().chart("differences"),
    "empty-chart (annotator_comparison)": lambda: audit().chart("annotator_comparison"),
    "empty-chart (scale)": lambda: dhkappa.audit([["a", "a"]] * 2, ["a", "a"]).chart("scale"),
    "empty-chart (categories)": lambda: dhkappa.audit([["a", "a"]] * 2, ["a", "a"]).chart("categories"),
    "empty-chart (confusion)": lambda: dhkappa.audit([["a", "a"]] * 2, ["a", "a"]).chart("confusion"),
    "missing-library (chart)": lambda: _missing_library("altair", lambda: audit().chart("scale")),
    "missing-library (report)": lambda: _missing_library("jinja2", html.check_requirements),
    "missing-library (table)": lambda: _missing_library("pandas", Table({"a": [1]}).to_pandas),
    "missing-library (Excel)": lambda: _missing_library("xlsxwriter", lambda: Table({"a": [1]}).to_excel("a.xlsx")),
    "too-many-rows": lambda: Table({"a": range(1 << 20)}).to_excel("a.xlsx"),
    "not-writable": lambda: Table({"a": [[0.5, 1.5]]}).to_csv(),
    "text-too-long": lambda: Table({"a": ["x" * 32_768]}).to_excel("a.xlsx"),
    "not-utf8 (Excel)": lambda: Table({"a": ["\ud800"]}).to_excel("a.xlsx"),
    "charts-failed": _charts_failed,
    "length-mismatch": lambda: Table({"a": [1, 2], "b": [1]}),
    "column-not-found (Table)": lambda: Table({"kappa": [1], "se": [2]}).column("kapa"),
    "out-of-memory": lambda: _limited(_out_of_memory),
    "out-of-memory (needed)": lambda: _limited(lambda: need(128 * MIB, "the report")),
    "out-of-memory (address space)": lambda: _limited(lambda: need_address_space(66 << 30, "The report")),
}
