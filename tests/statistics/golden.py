"""Write a corpus of results, and compare it with what the code gives now.

python tests/statistics/golden.py write FILE [--small] [--adapter PATH]
python tests/statistics/golden.py compare FILE [--only TEXT] [--adapter PATH]
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.util
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from golden_cases import Case, FileData, TableData, all_cases

LIMITS = {"low", "high"}
PVALUES = {"pvalue", "pvalue_holm"}
TOLERANCE = 1e-10
LONGEST_TEXT = 200
LONGEST_LIST = 16


def frozen(value: Any, name: str = "") -> Any:
    """Return a value as JSON: floats as hexadecimal text, fractions as text, long ones and long lists hashed."""
    if isinstance(value, Mapping):
        return {str(key): frozen(own, str(key)) for key, own in value.items()}
    if hasattr(value, "tolist"):  # NumPy
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        held = [frozen(own, name) for own in value]
        if len(held) <= LONGEST_LIST or name in LIMITS | PVALUES:
            return held
        return {"length": len(held), "first": held[:5], "sha256": _hash(json.dumps(held))}
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, Fraction):
        text = f"{value.numerator:x}/{value.denominator:x}" if value.denominator.bit_length() > 600 else str(value)
        return text if len(text) <= LONGEST_TEXT else _hash(text)
    if value is None or isinstance(value, (str, int)):
        return value
    raise TypeError(f"{name}: {value!r} has no JSON form")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def run(case: Case, adapter: Any, *, strict: bool = False) -> dict[str, Any]:
    """Return the results of a case by call; ``strict`` raises what is not an error of the data."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for call in case.calls:
            try:
                found[call] = frozen(adapter.CALLS[call](case, lambda value: _made(value, Path(folder))))
            except adapter.Error:
                found[call] = {"error": True}
            except Exception as error:
                if strict:
                    raise
                found[call] = {"exception": f"{type(error).__name__}: {error}"}
    return found


def _made(value: Any, folder: Path) -> Any:
    """Return data as they are passed: tables built, paths of plain files as text."""
    if isinstance(value, TableData):
        return value.make(folder, f"table_{len(list(folder.iterdir()))}")
    return str(value.path) if isinstance(value, FileData) and value.question is None else value


def differences(old: Any, new: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any, Any]]:
    """Yield each key under which two results differ, with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from differences(old.get(key, "(absent)"), new.get(key, "(absent)"), (*path, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (left, right) in enumerate(zip(old, new, strict=True)):
            yield from differences(left, right, (*path, str(place)))
    elif type(old) is not type(new) or (old != new and not _near(old, new, path)):
        yield "/".join(path), old, new


def _near(old: Any, new: Any, path: tuple[str, ...]) -> bool:
    """Tell whether two numbers that come from quantile functions agree; p-values relatively, as small ones matter."""
    if not isinstance(old, str) or not (LIMITS | PVALUES).intersection(path):
        return False
    try:
        left, right = float.fromhex(old), float.fromhex(new)
    except ValueError:
        return False
    absolute = 0.0 if PVALUES.intersection(path) else TOLERANCE
    return math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=absolute)


def load(path: Path) -> dict[str, Any]:
    """Read a corpus."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    corpus: dict[str, Any] = json.loads(content)
    return corpus


def save(path: Path, corpus: Mapping[str, Any]) -> None:
    """Write a corpus: a line for each case, the same bytes for the same numbers."""
    lines = (f"{json.dumps(name)}: {json.dumps(held, separators=(',', ':'))}" for name, held in corpus.items())
    content = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def default_adapter() -> Any:
    """Return the adapter of the interface as it is now."""
    import golden_adapter

    return golden_adapter


def _adapter(path: str | None) -> Any:
    if path is None:
        return default_adapter()
    spec = importlib.util.spec_from_file_location("golden_adapter", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> int:
    """Write or compare a corpus."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--adapter", help="path of another adapter")
    parser.add_argument("--only", default="", help="text that the names of cases must contain")
    parser.add_argument("--small", action="store_true", help="write the cases of the regression test only")
    asked = parser.parse_args()
    adapter = _adapter(asked.adapter)
    cases = {name: case for name, case in all_cases().items() if asked.only in name}
    if asked.command == "write":
        kept = {name: case for name, case in cases.items() if case.small or not asked.small}
        save(asked.file, {name: run(case, adapter, strict=True) for name, case in kept.items()})
        print(f"{len(kept)} cases written")
        return 0
    corpus = {name: held for name, held in load(asked.file).items() if asked.only in name}
    number = 0
    for name, held in corpus.items():
        new = run(cases[name], adapter) if name in cases else "(absent)"
        for key, old, now in differences(held, new):
            number += 1
            print(f"{name}  {key}\n    old {old}\n    new {now}", flush=True)
    print(f"{len(corpus)} cases compared, {number} differences")
    return 1 if number or not corpus else 0


if __name__ == "__main__":
    sys.exit(main())
