"""Have a doccano server write the exports in this folder: ``python make_doccano.py http://127.0.0.1:8001``.

The server is doccano 1.8.4, in an environment of its own, with an empty data folder. ``doccano webserver`` listens on
every address, so its gunicorn is started by hand::

    python -m venv doccano-env && . doccano-env/bin/activate
    pip install doccano==1.8.4 "marshmallow<4" "setuptools<81" "numpy<2"
    export DOCCANO_HOME=$PWD/doccano-home STANDALONE=True DJANGO_SETTINGS_MODULE=config.settings.production
    export DATABASE_URL=sqlite:///$DOCCANO_HOME/db.sqlite3 MEDIA_ROOT=$DOCCANO_HOME/media
    doccano init
    doccano createuser --username admin --password secret-42
    doccano task --concurrency 1 &
    cd "$(python -c 'import backend, os; print(os.path.dirname(backend.__file__))')"
    gunicorn --bind 127.0.0.1:8001 --workers 1 config.wsgi

The tables below are what the people in them did; the tests read them too.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PASSWORD = "secret-42"

YES, NO, MAYBE = "positive 😀", 'says "no" \\ לא', "neutral"
LABELS = [YES, NO, MAYBE]
ANNOTATORS = ["ana", "ben.k", "zoe_3"]

# id, text, the labels suggested by a language model and by a rule, then the votes of ana, ben.k and zoe_3
REVIEWS: list[tuple[str, str, str | None, str | None, str | None, str | None, str | None]] = [
    ("007", "Great, works!", YES, YES, YES, YES, YES),
    ("008", 'He said "never again".', NO, NO, NO, NO, NO),
    ("009", "It is a phone.", MAYBE, YES, MAYBE, MAYBE, YES),
    ("r-4", "Line one\nline two", YES, NO, YES, NO, MAYBE),
    ("r-5", "Nobody has looked at this one.", NO, YES, None, None, None),
    ("r-6", "Battery died.", NO, MAYBE, NO, NO, None),
    ("r-7", "😀😀😀", None, YES, YES, YES, YES),
    ("r-8", "Fine, I suppose.", MAYBE, None, None, MAYBE, YES),
    ("r-9", "C:\\temp, it says.", MAYBE, MAYBE, MAYBE, MAYBE, MAYBE),
    ("r-10", "שלום, מצוין", YES, YES, YES, None, None),
    ("r-11", "Broken on arrival", NO, NO, NO, NO, MAYBE),
    ("r-12", "Would buy again", YES, YES, YES, MAYBE, YES),
]
APPROVED = {"ana": ["007", "008", "r-5"], "ben.k": ["008", "r-12"], "zoe_3": ["007"]}


class Doccano:
    """The few calls of the server's API that are needed, as one user."""

    def __init__(self, url: str, user: str) -> None:
        self.url = url
        self.headers: dict[str, str] = {}
        login = self.call("POST", "auth/login/", {"username": user, "password": PASSWORD})
        self.headers = {"Authorization": f"Token {login['key']}"}

    def send(self, method: str, path: str, body: bytes | None, kind: str) -> bytes:
        headers = {**self.headers, "Content-Type": kind}
        request = urllib.request.Request(f"{self.url}/v1/{path}", body, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            held: bytes = answer.read()
            return held

    def call(self, method: str, path: str, data: Any = None) -> Any:
        held = self.send(method, path, None if data is None else json.dumps(data).encode(), "application/json")
        return json.loads(held) if held else None

    def wait(self, task: str) -> None:
        while not self.call("GET", f"tasks/status/{task}")["ready"]:
            time.sleep(0.5)

    def project(self, name: str, kind: str, resource: str, **options: bool) -> int:
        """Start a project with every annotator in it."""
        settings = {"name": name, "description": name, "project_type": kind, "resourcetype": resource, **options}
        project: int = self.call("POST", "projects", settings)["id"]
        role = next(role["id"] for role in self.call("GET", "roles") if role["name"] == "annotator")
        for user in self.call("GET", f"users?project={project}"):
            if user["username"] in ANNOTATORS:
                self.call("POST", f"projects/{project}/members", {"user": user["id"], "role": role})
        return project

    def upload(self, project: int, task: str, documents: list[dict[str, Any]]) -> dict[str, int]:
        """Import documents as JSONL; return the server's number of each text."""
        lines = "".join(json.dumps(document, ensure_ascii=False) + "\n" for document in documents)
        field = 'Content-Disposition: form-data; name="filepond"'
        parts = [f"{field}\r\n\r\n{{}}", f'{field}; filename="docs.jsonl"\r\n\r\n{lines}']
        body = "".join(f"--boundary\r\n{part}\r\n" for part in parts) + "--boundary--\r\n"
        upload = self.send("POST", "fp/process/", body.encode(), "multipart/form-data; boundary=boundary").decode()
        options = {"format": "JSONL", "task": task, "uploadIds": [upload], "encoding": "utf_8"}
        self.wait(self.call("POST", f"projects/{project}/upload", options)["task_id"])
        held = self.call("GET", f"projects/{project}/examples?limit=100")["results"]
        if len(held) != len(documents):
            raise SystemExit(f"{len(held)} of {len(documents)} documents arrived")
        return {document["text"]: document["id"] for document in held}

    def label_types(self, project: int, kind: str) -> dict[str, int]:
        for place, label in enumerate(LABELS):
            colours = {"background_color": f"#20{place}0a0", "text_color": "#ffffff"}
            self.call("POST", f"projects/{project}/{kind}", {"text": label, "suffix_key": str(place), **colours})
        return {label["text"]: label["id"] for label in self.call("GET", f"projects/{project}/{kind}")}

    def export(self, project: int, name: str, form: str = "JSONL", approved: bool = False) -> None:
        options = {"format": form, "exportApproved": approved}
        task = self.call("POST", f"projects/{project}/download", options)["task_id"]
        self.wait(task)
        held = self.send("GET", f"projects/{project}/download?taskId={task}", None, "application/json")
        (HERE / f"{name}.zip").write_bytes(held)


def reviews(admin: Doccano, annotator_comparison: dict[str, Doccano]) -> None:
    """One label a document, each annotator alone; then the same labels once the project shares annotations."""
    options = {"single_class_classification": True, "collaborative_annotation": False}
    project = admin.project("Reviews", "DocumentClassification", "TextClassificationProject", **options)
    labels = admin.label_types(project, "category-types")
    documents = [
        {"id": row[0], "text": row[1], "suggested_llm": row[2], "suggested_rule": row[3], "stars": len(row[1]) % 5}
        for row in REVIEWS
    ]
    number = admin.upload(project, "DocumentClassification", documents)
    for row in REVIEWS:
        for name, vote in zip(ANNOTATORS, row[4:], strict=True):
            if vote is not None:
                path = f"projects/{project}/examples/{number[row[1]]}/categories"
                annotator_comparison[name].call("POST", path, {"label": labels[vote]})
            if row[0] in APPROVED[name]:
                annotator_comparison[name].call("POST", f"projects/{project}/examples/{number[row[1]]}/states", {})
    first = number[REVIEWS[0][1]]
    annotator_comparison["ana"].call(
        "POST", f"projects/{project}/comments?example={first}", {"text": "easy", "example": first}
    )
    admin.export(project, "reviews")
    admin.export(project, "reviews_json", form="JSON")
    admin.export(project, "reviews_approved", approved=True)
    settings = admin.call("GET", f"projects/{project}")
    admin.call("PATCH", f"projects/{project}", {**settings, "collaborative_annotation": True})
    admin.export(project, "shared")
    admin.export(project, "shared_approved", approved=True)
    admin.call("PATCH", f"projects/{project}", {**settings, "collaborative_annotation": False})
    admin.export(project, "unshared")


def plain_documents(admin: Doccano, annotator_comparison: dict[str, Doccano]) -> None:
    """Documents without ids, one imported with a label; in the end ana gives the second one two labels."""
    project = admin.project("Topics", "DocumentClassification", "TextClassificationProject")
    labels = admin.label_types(project, "category-types")
    documents: list[dict[str, Any]] = [
        {"text": "one", "suggested": 1},
        {"text": "two", "suggested": 2},
        {"text": "three", "suggested": 1, "label": [MAYBE]},
    ]
    number = admin.upload(project, "DocumentClassification", documents)
    votes = [("ana", "one", YES), ("ben.k", "one", YES), ("ben.k", "two", NO), ("ana", "two", NO)]
    for name, text, vote in votes:
        annotator_comparison[name].call(
            "POST", f"projects/{project}/examples/{number[text]}/categories", {"label": labels[vote]}
        )
    admin.export(project, "plain")
    annotator_comparison["ana"].call(
        "POST", f"projects/{project}/examples/{number['two']}/categories", {"label": labels[YES]}
    )
    admin.export(project, "several")


def spans(admin: Doccano, annotator_comparison: dict[str, Doccano]) -> None:
    """Labels on parts of a text, alone, with relations between them, and beside labels of the whole."""
    span = {"start_offset": 0, "end_offset": 4, "prob": 0}
    kinds = {
        "spans": ("SequenceLabeling", "SequenceLabelingProject", {}),
        "relations": ("SequenceLabeling", "SequenceLabelingProject", {"use_relation": True}),
        "intents": ("IntentDetectionAndSlotFilling", "IntentDetectionAndSlotFillingProject", {}),
    }
    for name, (kind, resource, options) in kinds.items():
        project = admin.project(name, kind, resource, **options)
        labels = admin.label_types(project, "span-types")
        number = admin.upload(project, kind, [{"text": "Anna went home"}, {"text": "Bern is cold"}])
        path = f"projects/{project}/examples/{number['Anna went home']}"
        annotator_comparison["ana"].call("POST", f"{path}/spans", {"label": labels[YES], **span})
        if name == "intents":
            intents = admin.label_types(project, "category-types")
            annotator_comparison["ana"].call("POST", f"{path}/categories", {"label": intents[NO]})
            annotator_comparison["ben.k"].call("POST", f"{path}/categories", {"label": intents[YES]})
        admin.export(project, name)


def main(url: str) -> None:
    admin = Doccano(url, "admin")
    for name in ANNOTATORS:
        admin.call("POST", "users/create", {"username": name, "password1": PASSWORD, "password2": PASSWORD})
    annotator_comparison = {name: Doccano(url, name) for name in ANNOTATORS}
    reviews(admin, annotator_comparison)
    plain_documents(admin, annotator_comparison)
    spans(admin, annotator_comparison)


if __name__ == "__main__":
    main(sys.argv[1])
