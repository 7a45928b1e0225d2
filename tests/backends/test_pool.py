"""The labels of a pool that an engine counts are those of a plain list."""

from typing import Any

import pandas  # noqa: F401 - without these libraries, this file is left out
import polars  # noqa: F401
import pytest

import dhkappa
from engines import Engine, each

SIM = dhkappa.simulate(60, labelers={"llm": 0.8}, rng=5)
LABELS = [*SIM.suggested["llm"].tolist() * 5, *["a"] * 40, None, ""]
LANGUAGE = ["en", "de"] * (len(LABELS) // 2)


@each("kind", ["text", "category", "dictionary"])
def test_labels_of_a_pool(engine: Engine, kind: str) -> None:
    expected = dhkappa.pool_shares(SIM.votes, SIM.suggested["llm"], pool=LABELS)
    table = engine.table({"suggested_llm": LABELS, "other": LANGUAGE}, {"suggested_llm": kind})
    assert dhkappa.pool_shares(SIM.votes, SIM.suggested["llm"], pool=table).to_dict() == expected.to_dict()


def test_filters_of_the_sample(engine: Engine) -> None:
    columns: dict[str, Any] = {f"ann_{place}": SIM.votes[:, place].tolist() for place in range(3)}
    columns |= {"item": list(range(60)), "suggested_llm": SIM.suggested["llm"].tolist(), "language": ["en", "de"] * 30}
    data = dhkappa.Dataset(engine.table(columns)).filter("language=en")
    pool = engine.table({"suggested_llm": LABELS, "language": LANGUAGE})
    labels = [label for label, language in zip(LABELS, LANGUAGE, strict=True) if language == "en"]
    found = dhkappa.pool_shares(data, pool=pool)
    expected = dhkappa.pool_shares(SIM.votes[::2], SIM.suggested["llm"][::2], pool=labels)
    assert found.table.to_dicts() == expected.table.to_dicts()
    assert found.wrong_high == pytest.approx(expected.wrong_high, rel=0)
