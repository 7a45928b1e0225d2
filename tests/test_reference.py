"""The reference forgets nothing: every public name is documented and stands on its page, and so does every JSON key."""

import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

import dhkappa
from dhkappa.inputs.columns import RoleKeywords

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
CLASSES = [name for name in dhkappa.__all__ if inspect.isclass(getattr(dhkappa, name))]
CALLS = [name for name in dhkappa.__all__ if name not in CLASSES]


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def section(name: str) -> str:
    """Return what the page itself says after the block of a name, up to the next block or heading."""
    found = re.search(rf"^::: dhkappa\.{name}$(.*?)(?=^:::|^#|\Z)", page("python.md"), re.DOTALL | re.MULTILINE)
    assert found, name
    return found[1]


def members(kind: type) -> Iterator[str]:
    """Find what is public of a class and its own: methods, properties and fields."""
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
    if callable(member) or isinstance(member, (property, classmethod, staticmethod)):
        return bool(inspect.getdoc(member))
    return re.search(rf'^    {name}: [^\n]+\n    r?"""', inspect.getsource(kind), re.MULTILINE) is not None


def forgotten(kind: type, told: str = "") -> list[str]:
    """Return what of a class is neither documented in the code nor told on the page."""
    return [
        name for name in members(kind) if not (has_docstring(kind, name) or name in listed(kind) or f"`{name}`" in told)
    ]


def test_every_public_name_is_on_the_page() -> None:
    blocks = re.findall(r"^::: dhkappa\.(\w+)$", page("python.md"), re.MULTILINE)
    assert sorted(blocks) == sorted(dhkappa.__all__)


@pytest.mark.parametrize("name", dhkappa.__all__)
def test_every_public_name_has_a_docstring(name: str) -> None:
    """Its own: a dataclass without one gets its signature, and an exception that of its parent."""
    documented = getattr(dhkappa, name)
    assert documented.__doc__
    assert not documented.__doc__.startswith(f"{name}(")
    assert "__doc__" in vars(documented) or name in CALLS


@pytest.mark.parametrize("name", CALLS)
def test_every_call_has_an_example_and_tells_its_parameters(name: str) -> None:
    call = getattr(dhkappa, name)
    told = inspect.getdoc(call) or ""
    assert ">>> " in told
    if "parameters are those of ``dh_kappa``" in told:
        return
    lines = told.partition("Parameters\n----------\n")[2].split("\n\n")[0].splitlines()
    heads = {word for line in lines if not line.startswith(" ") for word in re.findall(r"\w+", line)}
    parameters = {*inspect.signature(call).parameters}
    if "layout" not in heads:  # then each word is told
        parameters = parameters - {"layout"} | ({*RoleKeywords.__annotations__} if "layout" in parameters else set())
    assert parameters - heads == set()


@pytest.mark.parametrize("name", CLASSES)
def test_every_method_and_attribute_is_documented(name: str) -> None:
    assert forgotten(getattr(dhkappa, name), section(name)) == []


def test_what_is_forgotten_is_found() -> None:
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

    assert forgotten(Thing) == ["silent", "quiet"]
    assert forgotten(Thing, "`silent` and `quiet`") == []
    assert listed(Thing) == {"low", "high"}


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
def test_the_keys_of_every_object_stand_together(name: str, keys: list[str]) -> None:
    """In one row of a table, or, for the envelope and the gate, in one table."""
    text = page("json.md")
    places = [line for line in text.splitlines() if line.startswith("|")] + text.split("\n\n")
    assert any(all(f"`{key}`" in place for key in keys) for place in places), keys


def test_the_page_names_no_key_that_is_not_there() -> None:
    known = {key for _, keys in KEYS for key in keys} | {"--format", "json", "--fail-under", "completion", "to_dict()"}
    tables = [line for line in page("json.md").splitlines() if line.startswith("| ")]
    named = {word for line in tables for word in re.findall(r"`([a-zA-Z_]+)`", line)}
    values = {"dh", "weighted", "fleiss", "low", "value"}
    commands = {"score", "compare", "audit", "items", "plan", "demo"}
    assert named - known - values - commands == set()


def test_the_citation_has_this_version() -> None:
    cited = (REFERENCE.parents[1] / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {dhkappa.__version__}\n" in cited
