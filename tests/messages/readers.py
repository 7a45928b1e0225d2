"""Calls that raise each error of exports of annotation tools."""

import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dhkappa.inputs.readers import argilla, doccano, label_studio, prodigy, read_records

FOLDER = Path(tempfile.mkdtemp(prefix="dhkappa-messages-"))


def task(*answers: Any, prediction: Any = None) -> dict[str, Any]:
    """A task of Label Studio with one annotation per answer, by control."""
    annotations = [
        {
            "completed_by": who,
            "result": [{"from_name": name, "value": {"choices": chosen}} for name, chosen in one.items()],
        }
        for who, one in enumerate(answers)
    ]
    predictions = [
        {"model_version": "gpt", "result": [{"from_name": "tone", "value": {"choices": [label]}}]}
        for label in prediction or ()
    ]
    return {"id": 1, "data": {}, "annotations": annotations, "predictions": predictions}


def studio(*tasks: dict[str, Any], question: str | None = None) -> Any:
    return label_studio.read_export({"tasks": list(tasks)}, question=question)


def bomb() -> Any:
    path = FOLDER / "large.json.gz"
    path.write_bytes(gzip.compress(b"[" + b" " * (1 << 28) + b"]", 9))
    return read_records(path)


def endless() -> Any:
    path = FOLDER / "endless.json.gz"
    path.write_bytes(gzip.compress(b'[{"id": "' + b"a" * (65 * 10**6) + b'"}]', 1))
    return read_records(path)


def text(name: str, content: str) -> Any:
    path = FOLDER / name
    path.write_text(content)
    return read_records(path)


SPANS = {"id": 1, "text": "a", "entities": []}

CASES: dict[str, Callable[[], Any]] = {
    "malformed-export": lambda: studio({"id": 1}),
    "malformed-export (id)": lambda: studio(task() | {"id": None}),
    "malformed-export (repeated)": lambda: studio(task(), task()),
    "malformed-export (annotators)": lambda: doccano.read_export({"all": [{"id": 1, "label": ["a"]}]}),
    "not-a-label (export)": lambda: studio(task({"tone": [1.5]})),
    "several-questions": lambda: studio(task({"tone": ["a"], "topic": ["b"]})),
    "question-not-found": lambda: studio(task({"tone": ["a"], "topic": ["b"]}), question="tones"),
    "question-not-found (doccano)": lambda: doccano.read_export({"ana": []}, question="label"),
    "several-labels": lambda: studio(task({"tone": ["a", "b"]})),
    "several-labels (prodigy)": lambda: prodigy.read_export(
        {"ana": [{"_input_hash": 1, "answer": "accept", "accept": ["a", "b"], "options": []}]}
    ),
    "several-labels (doccano)": lambda: doccano.read_export({"ana": [{"id": 1, "label": ["a", "b"]}]}),
    "several-labels (argilla)": lambda: argilla.read_export({"x": [{"id": 1, "q.responses": [["a", "b"]]}]}),
    "no-item-labels": lambda: doccano.read_export({"ana": [SPANS]}),
    "no-item-labels (text)": lambda: argilla.read_export({"x": [{"id": 1, "q.responses": ["a" * 300]}]}),
    "conflicting-suggestions": lambda: studio(task(prediction=["a", "b"])),
    "file-too-large": bomb,
    "record-too-long": endless,
    "empty-file (export)": lambda: text("none.json", "[]"),
    "malformed-file (export)": lambda: text("cut.json", '[{"id": 1},\n {"id": '),
    "not-records (export)": lambda: text("numbers.jsonl", "12"),
}
