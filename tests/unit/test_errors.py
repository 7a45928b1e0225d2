"""DataError, and how values are written into messages."""

import pickle

import numpy as np
import pytest

from dhkappa.errors import DataError, counted, did_you_mean, masked, shown, visible


def test_message_and_hint() -> None:
    error = DataError(
        "Column 'x' not found.", code="column-not-found", parameter="label", hint="Pass $label or $items."
    )
    assert str(error) == "Column 'x' not found. Pass label= or items=."
    assert error.text("--{}".format) == "Column 'x' not found. Pass --label or --items."
    assert (error.code, error.parameter) == ("column-not-found", "label")
    assert isinstance(error, ValueError)


def test_defaults() -> None:
    error = DataError("Wrong.")
    assert (str(error), error.code, error.parameter, error.hint) == ("Wrong.", "invalid-data", None, "")


def test_passwords_are_masked_in_message_and_hint() -> None:
    address = "postgresql://me:hush@h/d"
    error = DataError(f"Cannot open {address}.", code="x", hint=f"Check {address}.")
    assert "hush" not in str(error) + repr(error) + str(error.args)


def test_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(DataError("Wrong.", code="x", parameter="items", hint="Pass $items.")))
    assert (str(error), error.code, error.parameter) == ("Wrong. Pass items=.", "x", "items")


def test_what_is_not_a_password_is_unchanged() -> None:
    for text in (
        "http://a/b@c",
        "'C:/x:y@z.csv'",
        "'s3://bucket/x:y@z'",
        "a:b@c",
        "see https://example.org/x",
        "passengers=3",
        "compass=n",
        "pass = 1",
        "column 'password' is absent",
        "https://x.org:80/x, mail me@x.org",
    ):
        assert masked(text) == text


def test_masking_takes_linear_time() -> None:
    assert len(masked("x:/a:" * 40_000)) == 200_000
    assert len(masked("'postgres" * 40_000 + "@")) > 300_000
    assert len(masked("password=" * 40_000)) > 9


class Broken:
    """An object that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError


def test_shown() -> None:
    assert shown(["a", 1, None]) == "'a', 1, None"
    assert shown(range(9), 3) == "0, 1, 2, ..."
    assert shown(["x" * 99]) == "'" + "x" * 56 + "..."
    assert shown([np.zeros((2, 2))]) == "array([[0., 0.], [0., 0.]])"
    assert "Broken" in shown([Broken()])


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(1, "item", "1 item"), (2000, "item", "2,000 items"), (2, "category", "2 categories"), (0, "stratum", "0 strata")],
)
def test_counted(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text


def test_did_you_mean() -> None:
    assert "'Label'" in did_you_mean("lable", ["Label", "item"])
    assert "'suggested_llm'" in did_you_mean("llm", ["suggested_llm", "x"])
    assert did_you_mean("zzz", ["label"]) == did_you_mean(3, ["label"]) == did_you_mean("", ["label"]) == ""
    assert did_you_mean("a186", ["a286", "a187", "a18"]) == did_you_mean("ann_12", ["ann_1", "ann_2"]) == ""
    assert did_you_mean("anna186", ["a286", "Ana186"]) == " Did you mean 'Ana186'?"
    assert did_you_mean("ann_1", ["ann_02", "ann_01"]) == " Did you mean 'ann_01'?"
    assert did_you_mean("lable2", ["label"]) == " Did you mean 'label'?"
    assert did_you_mean("ann", ["ann_1"]) == " Did you mean 'ann_1'?"


def test_visible() -> None:
    assert visible("a\nb\x1b\u202e漢") == "a\\nb\\x1b\\u202e漢"
