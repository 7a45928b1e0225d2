"""Have Argilla's SDK write the exports in this folder: ``PYTHONHASHSEED=0 python make_argilla.py``.

In an environment of its own, without a server::

    python -m venv argilla-env && . argilla-env/bin/activate && pip install argilla==2.8.0 requests

The calls are those that ``dataset.records.to_json()``, ``to_list()`` and ``to_datasets()`` make with the records that
they fetch. The tables below are what the people in them did; the tests read them too.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

HERE = Path(__file__).parent

YES, NO, MAYBE = "positive 😀", 'says "no" \\ לא', "neutral"
ANNOTATORS = [str(UUID(int=number)) for number in (7, 8, 9)]
STATUS = {"": "submitted", "~": "draft", "!": "discarded"}

Vote = tuple[str, str] | None
"""A label, and a sign for its status."""

# id, text, the label suggested and its agent, then the responses of the three annotators
REVIEWS: list[tuple[str, str, str | None, str | None, Vote, Vote, Vote]] = [
    ("007", "Great, works!", YES, "gpt", (YES, ""), (YES, ""), (YES, "")),
    ("008", 'He said "never again".', NO, "gpt", (NO, ""), (NO, ""), (NO, "~")),
    ("r-3", "It is a phone.", MAYBE, "rule 10", (MAYBE, ""), (MAYBE, "!"), (YES, "")),
    ("r-4", "Line one\nline two", YES, None, (YES, ""), (NO, ""), (MAYBE, "")),
    ("r-5", "Nobody has looked at this one.", NO, "rule 9", None, None, None),
    ("r-6", "שלום, מצוין", None, None, (YES, "~"), (YES, "~"), None),
    ("r-7", "Fine, I suppose.", MAYBE, "gpt", None, (MAYBE, ""), (YES, "")),
    ("r-8", "Battery died.", NO, "item", (NO, ""), None, None),
]

# id, then what the first annotator answered to each question
PART = {"start": 0, "end": 3, "label": "sport"}
SURVEY: list[tuple[str, dict[str, Any]]] = [
    ("a", {"topics": ["sport"], "stars": 4, "why": "short", "order": ["x", "y"], "parts": [PART]}),
    ("b", {"topics": ["sport", "news"], "stars": 5, "why": "long " * 60, "order": ["y", "x"], "parts": []}),
    ("c", {"topics": ["news"], "stars": 1, "why": "short", "order": ["x", "y"], "parts": [PART]}),
]


def main() -> None:
    """Write each export; the imports stand here so that the tests can read the tables without the SDK."""
    import argilla as rg  # type: ignore[import-not-found]
    from argilla.records._io import GenericIO, HFDatasetsIO, JsonIO  # type: ignore[import-not-found]

    reviews = [
        rg.Record(
            id=item,
            fields={"text": text},
            metadata={"length": len(text)},
            suggestions=[rg.Suggestion("sentiment", label, score=0.5, agent=agent)] if label else [],
            responses=[
                rg.Response("sentiment", vote[0], user_id=UUID(user), status=STATUS[vote[1]])
                for user, vote in zip(ANNOTATORS, votes, strict=True)
                if vote
            ],
        )
        for item, text, label, agent, *votes in REVIEWS
    ]
    survey = [
        rg.Record(
            id=item,
            fields={"text": item},
            suggestions=[rg.Suggestion("stars", 3, agent="gpt"), rg.Suggestion("topics", ["news"], agent="gpt")],
            responses=[
                rg.Response(question, value, user_id=UUID(ANNOTATORS[0]), status="submitted")
                for question, value in answers.items()
            ],
        )
        for item, answers in SURVEY
    ]
    for path in HERE.glob("*.json*"):
        path.unlink()
    JsonIO.to_json(reviews, HERE / "nested.json")
    JsonIO.to_json(survey, HERE / "survey.json")
    lines = [json.dumps(record.to_dict()) + "\n" for record in reviews]
    (HERE / "nested.jsonl").write_text("".join(lines))
    (HERE / "flat.json").write_text(json.dumps(GenericIO.to_list(reviews, flatten=True)))
    (HERE / "survey_flat.json").write_text(json.dumps(GenericIO.to_list(survey, flatten=True)))
    suggested = [record for record in reviews if len(record.suggestions)]
    schema = {"sentiment": SimpleNamespace(type="label_selection")}  # a dataset's own needs a server
    HFDatasetsIO.to_datasets(suggested, SimpleNamespace(schema=schema)).to_json(HERE / "datasets.jsonl")


if __name__ == "__main__":
    main()
