"""The reference pages: every public name and every JSON key is documented."""

import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import dhkappa

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
CLASSES = [name for name in dhkappa.__all__ if inspect.isclass(getattr(dhkappa, name))]
CALLS = [name for name in dhkappa.__all__ if name not in CLASSES]


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def section(name: str) -> str:
    """Return the text of the page after the block of a name, up to the next block or heading."""
    found = re.search(rf"^::: dhkappa\.{name}$(.*?)(?=^:::|^#|\Z)", page("python.md"), re.DOTALL | re.MULTILINE)
    assert found, name
    return found[1]


def members(kind: type) -> Iterator[str]:
    """Yield the public members that a class defines: methods, properties and fields."""
    if is_dataclass(kind):
        yield from (field.name for field in fields(kind) if not field.name.startswith("_"))
    for name, member in vars(kind).items():
        if not name.startswith("_") and not inspect.ismemberdescriptor(member):
            yield name


def listed(kind: type) -> set[str]:
    """Return the names under Attributes of a class's docstring: ``low, high : limits``."""
    _, _, rest = (inspect.getdoc(kind) or "").partition("Attributes\n----------\n")
    heads = [line.partition(" : ")[0] for line in rest.splitlines() if " : " in line and not line.startswith(" ")]
    return {name.strip() for head in heads for name in head.split(",")}


def has_docstring(kind: type, name: str) -> bool:
    """Tell whether a method or a property has a docstring, or a field one below it."""
    member = inspect.getattr_static(kind, name, None)
    if callable(member) or isinstance(member, (property, cached_property, classmethod, staticmethod)):
        return bool(inspect.getdoc(member))
    return re.search(rf'^    {name}: [^\n]+\n    r?"""', inspect.getsource(kind), re.MULTILINE) is not None


def undocumented(kind: type, page_text: str = "") -> list[str]:
    """Return the members of a class that are documented neither in the code nor on the page."""
    return [
        name
        for name in members(kind)
        if not (has_docstring(kind, name) or name in listed(kind) or f"`{name}`" in page_text)
    ]


def test_public_names_are_on_the_page() -> None:
    blocks = re.findall(r"^::: dhkappa\.(\w+)$", page("python.md"), re.MULTILINE)
    assert sorted(blocks) == sorted(dhkappa.__all__)


@pytest.mark.parametrize("name", dhkappa.__all__)
def test_public_names_have_docstrings(name: str) -> None:
    """A dataclass without docstring gets its signature, and an exception that of its parent."""
    documented = getattr(dhkappa, name)
    assert documented.__doc__
    assert not documented.__doc__.startswith(f"{name}(")
    assert "__doc__" in vars(documented) or name in CALLS


@pytest.mark.parametrize("name", CALLS)
def test_functions_have_examples_and_documented_parameters(name: str) -> None:
    call = getattr(dhkappa, name)
    text = inspect.getdoc(call) or ""
    assert ">>> " in text
    if re.search(r"parameters are those of ``(dh_kappa|Dataset)``", text):
        return
    lines = text.partition("Parameters\n----------\n")[2].split("\n\n")[0].splitlines()
    heads = {word for line in lines if not line.startswith(" ") for word in re.findall(r"\w+", line)}
    assert {*inspect.signature(call).parameters} - heads == set()


@pytest.mark.parametrize("name", CLASSES)
def test_methods_and_attributes_are_documented(name: str) -> None:
    assert undocumented(getattr(dhkappa, name), section(name)) == []


def test_undocumented_members_are_found() -> None:
    class Thing:
        """A thing.

        Attributes
        ----------
        low, high : limits
        """

        def told(self) -> None:
            """Say it."""

        def silent(self) -> None: ...

        @property
        def quiet(self) -> int:
            return 1

    assert undocumented(Thing) == ["silent", "quiet"]
    assert undocumented(Thing, "`silent` and `quiet`") == []
    assert listed(Thing) == {"low", "high"}


# Notes


def test_note_codes_are_documented() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in Path(dhkappa.__file__).parent.rglob("*.py"))
    documented = set(re.findall(r"^\| `([a-z-]+)` \|", page("notes.md"), re.MULTILINE))
    assert set(re.findall(r'\bNote\(\s*"([a-z-]+)"', source)) <= documented
    assert {code for code in documented if f'"{code}"' not in source} == set()


# JSON


def objects(schema: Any, name: str = "") -> Iterator[tuple[str, list[str]]]:
    """Find every object of the schema that lists its keys."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
            yield name, list(schema["properties"])
        for key, value in schema.items():
            yield from objects(value, key)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value, name)


KEYS = list(objects(json.loads((REFERENCE.parent / "schema.json").read_text(encoding="utf-8"))))


@pytest.mark.parametrize(("name", "keys"), KEYS, ids=[name or "envelope" for name, _ in KEYS])
def test_keys_of_an_object_are_documented_together(name: str, keys: list[str]) -> None:
    """In one row of a table, or, for the envelope and the gate, in one table."""
    text = page("json.md")
    places = [line for line in text.splitlines() if line.startswith("|")] + text.split("\n\n")
    assert any(all(f"`{key}`" in place for key in keys) for place in places), keys


def test_documented_keys_exist() -> None:
    known = {key for _, keys in KEYS for key in keys} | {"--format", "json", "--fail-under", "completion", "to_dict()"}
    tables = [line for line in page("json.md").splitlines() if line.startswith("| ")]
    named = {word for line in tables for word in re.findall(r"`([a-zA-Z_]+)`", line)}
    values = {"dh", "weighted", "fleiss", "low", "value", "pass", "fail", "undecided", "error", "warning", "info"}
    values |= {"annotators", "single_votes", "weighted-fleiss"}
    commands = {"check", "score", "compare", "audit", "items", "plan", "demo"}
    assert named - known - values - commands == set()


def test_citation_has_this_version() -> None:
    cited = (REFERENCE.parents[1] / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {dhkappa.__version__}\n" in cited
