"""Write the fixtures of this folder with a real Label Studio server.

In a throwaway environment, with a fresh data folder (ids in the files start from 1 only then)::

    python -m venv ls-env && ls-env/bin/pip install label-studio==1.23.2
    COLLECT_ANALYTICS=False LATEST_VERSION_CHECK=False LABEL_STUDIO_BASE_DATA_DIR=$(mktemp -d) \
        ls-env/bin/label-studio start --no-browser --host 127.0.0.1 --port 8080 --username admin@example.com \
        --password for-fixtures-only --user-token 0123456789abcdef0123456789abcdef01234567 \
        --enable-legacy-api-token --init demo

Once it answers (a minute or so), from another terminal: ``python make_label_studio.py http://127.0.0.1:8080``.
Stop the server when done. Needs nothing but Python.
"""

import json
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TOKEN = "0123456789abcdef0123456789abcdef01234567"
ANNOTATORS = ["ann@example.com", "bo@example.com", "cy@example.com"]

NEWS, ODD = 'it\'s "news" 📰', "a, b\\c; -- שלום"
MAIL = f"""<View><Text name="text" value="$text"/><Choices name="topic" toName="text" choice="single">
<Choice value="spam"/><Choice value="ham"/><Choice value="it's &quot;news&quot; 📰"/><Choice value="{ODD}"/>
</Choices></View>"""

# A row an item: the votes of ann, bo and cy ("-" none, "skip" cancelled, "draft" not submitted, "empty" nothing
# chosen, "*" before a vote marks it as ground truth), then the labels of gpt-5 and of rule-v2 ("-" none).
MAIL_ROWS = [
    ("spam", "spam", "spam", "spam", "spam"),
    ("ham", "ham", "spam", "ham", "spam"),
    (NEWS, NEWS, "ham", NEWS, "ham"),
    (ODD, ODD, ODD, ODD, "-"),
    ("spam", "skip", "ham", "spam", "spam"),
    ("ham", "*ham", "ham", "ham", "ham"),
    ("-", "spam", "draft", "spam", "ham"),
    (NEWS, "ham", "spam", "ham", "spam"),
    ("spam", "spam", "-", "-", "spam"),
    ("ham", "empty", "ham", NEWS, "ham"),
    ("-", "-", "-", "spam", "spam"),
    ("skip", "skip", "skip", "ham", "-"),
]

REVIEWS = """<View><Text name="text" value="$text"/>
<Choices name="tone" toName="text" choice="single"><Choice value="good"/><Choice value="bad"/></Choices>
<Choices name="topics" toName="text" choice="multiple">
<Choice value="food"/><Choice value="staff"/><Choice value="price"/></Choices>
<Rating name="stars" toName="text" maxRating="5"/><Number name="people" toName="text"/>
<Taxonomy name="place" toName="text"><Choice value="city"><Choice value="north"/><Choice value="south"/></Choice>
<Choice value="sea"/></Taxonomy><TextArea name="comment" toName="text"/></View>"""

# By task: who answered, and what to each control. Ann answers the third task twice.
REVIEW_ROWS: list[list[tuple[int, dict[str, Any]]]] = [
    [
        (
            0,
            {"tone": ["good"], "topics": ["food"], "stars": 5, "annotator_comparison": 2, "place": [["city", "north"]]},
        ),
        (
            1,
            {
                "tone": ["good"],
                "topics": ["food", "staff"],
                "stars": 4,
                "annotator_comparison": 2,
                "place": [["city", "north"]],
            },
        ),
    ],
    [
        (
            0,
            {
                "tone": ["bad"],
                "topics": ["price", "food"],
                "stars": 1,
                "annotator_comparison": 3,
                "comment": ["too loud"],
            },
        ),
        (1, {"tone": ["good"], "stars": 3, "place": [["sea"]]}),
    ],
    [(0, {"tone": ["good"], "topics": ["staff"]}), (0, {"tone": ["bad"], "topics": ["staff"]})],
]
TYPES = {
    "topic": ("choices", "choices"),
    "tone": ("choices", "choices"),
    "topics": ("choices", "choices"),
    "stars": ("rating", "rating"),
    "annotator_comparison": ("number", "number"),
    "place": ("taxonomy", "taxonomy"),
    "comment": ("textarea", "text"),
}

SPANS = """<View><Text name="text" value="$text"/>
<Labels name="entity" toName="text"><Label value="person"/><Label value="city"/></Labels>
<Choices name="sure" toName="text" perRegion="true"><Choice value="yes"/><Choice value="no"/></Choices></View>"""


def call(path: str, body: Any = None) -> Any:
    """Ask the server, and return what it says."""
    request = urllib.request.Request(
        sys.argv[1].rstrip("/") + path,
        None if body is None else json.dumps(body).encode(),
        {"Authorization": f"Token {TOKEN}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def result(control: str, value: Any) -> dict[str, Any]:
    kind, key = TYPES[control]
    return {"from_name": control, "to_name": "text", "type": kind, "value": {key: value}}


def project(title: str, config: str, texts: list[str]) -> tuple[int, list[int]]:
    """Make a project with a task for each text, and return its id and theirs."""
    made: int = call("/api/projects/", {"title": title, "label_config": config})["id"]
    tasks = [call("/api/tasks/", {"project": made, "data": {"text": text}})["id"] for text in texts]
    return made, tasks


def annotate(task: int, who: int, results: list[dict[str, Any]], **more: Any) -> None:
    call(f"/api/tasks/{task}/annotations/", {"result": results, "completed_by": who, "lead_time": 1.5, **more})


def predict(task: int, label: str, **more: Any) -> None:
    call("/api/predictions/", {"task": task, "result": [result("topic", [label])], "score": 0.9, **more})


def snapshot(made: int, **options: Any) -> Any:
    """Export by a snapshot, the only way in which predictions come whole."""
    key = call(f"/api/projects/{made}/exports/", {"title": "fixture", "serialization_options": options})["id"]
    while call(f"/api/projects/{made}/exports/{key}")["status"] != "completed":
        time.sleep(0.2)
    return call(f"/api/projects/{made}/exports/{key}/download?exportType=JSON")


def export(made: int, kind: str, unannotated: str = "false") -> Any:
    """Export as the button on the project's page does."""
    return call(f"/api/projects/{made}/export?exportType={kind}&download_all_tasks={unannotated}")


def save(name: str, held: list[dict[str, Any]]) -> None:
    """Write a file, a record a line."""
    lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in held)
    (HERE / name).write_text(f"[{lines}]\n", encoding="utf-8")


def main() -> None:
    annotator_comparison = [
        call("/api/users/", {"email": email, "username": email.split("@")[0]})["id"] for email in ANNOTATORS
    ]

    mail, tasks = project("mail", MAIL, [f"mail {number}" for number in range(1, len(MAIL_ROWS) + 1)])
    for task, (*votes, gpt, rule) in zip(tasks, MAIL_ROWS, strict=True):
        for who, vote in zip(annotator_comparison, votes, strict=True):
            if vote == "draft":
                call(f"/api/tasks/{task}/drafts", {"result": [result("topic", ["ham"])], "lead_time": 1.5})
            elif vote == "skip":
                annotate(task, who, [], was_cancelled=True)
            elif vote == "empty":
                annotate(task, who, [])
            elif vote != "-":
                annotate(task, who, [result("topic", [vote.lstrip("*")])], ground_truth=vote.startswith("*"))
        for version, label in (("gpt-5", gpt), ("rule-v2", rule)):
            if label != "-":
                predict(task, label, model_version=version)
    save("mail_button.json", export(mail, "JSON"))
    save("mail_min.json", export(mail, "JSON_MIN", unannotated="true"))
    save("mail_whole.json", snapshot(mail, predictions={}, drafts={}, annotations__completed_by={}))
    save("mail_ids.json", snapshot(mail, predictions={"only_id": False}))

    reviews, tasks = project("reviews", REVIEWS, [f"review {number}" for number in range(1, len(REVIEW_ROWS) + 1)])
    for task, answers in zip(tasks, REVIEW_ROWS, strict=True):
        for who, answer in answers:
            annotate(task, annotator_comparison[who], [result(control, value) for control, value in answer.items()])
    save("reviews_button.json", export(reviews, "JSON"))
    save("reviews_min.json", export(reviews, "JSON_MIN"))
    for task in tasks:
        call("/api/predictions/", {"task": task, "result": [result("tone", ["good"])]})
    save("reviews_whole.json", snapshot(reviews, predictions={}))

    spans, tasks = project("spans", SPANS, ["Ada went to Rome"])
    place = {"start": 0, "end": 3, "text": "Ada"}
    region = {"id": "r1", "from_name": "entity", "to_name": "text", "type": "labels"}
    sure = {"id": "r1", "from_name": "sure", "to_name": "text", "type": "choices"}
    annotate(
        tasks[0],
        annotator_comparison[0],
        [{**region, "value": {**place, "labels": ["person"]}}, {**sure, "value": {**place, "choices": ["yes"]}}],
    )
    save("spans_button.json", export(spans, "JSON"))
    save("spans_min.json", export(spans, "JSON_MIN"))


if __name__ == "__main__":
    main()
