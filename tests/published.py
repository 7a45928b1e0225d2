"""Published values of Fleiss' kappa and values of real annotation data, with loaders for their files."""

import csv
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dhkappa import Kappa, fleiss_kappa

# Fleiss' kappa with as many digits as the source prints (irr, Wikipedia, irrCAC). irrCAC has .76117 for the
# ragged table: it keeps the item with a single vote in the category shares, docs/methods.md excludes it.
PUBLISHED = {
    "fleiss1971_diagnoses": "0.4302445",
    "wikipedia_fleiss": "0.210",
    "irrcac_distrib6raters": "0.4139265",
    "irrcac_raw4raters": "0.76248",
}


@dataclass(frozen=True)
class Scored:
    """Values of one data set, computed outside the project and given to 10 digits."""

    fleiss: str
    kappas: dict[str, str]


SCORED = {
    "davidson": Scored("0.5461172583", {"class_majority": "0.7388689399", "lexicon": "0.0065671815"}),
    "dynasent_r1_dev": Scored(
        "0.6157577765",
        {"model": "-0.1143046405", "stars": "-0.1239396762", "gold_majority": "0.7634437076"},
    ),
    "dynasent_sst_dev_revalidated": Scored("0.5881936203", {"sst": "0.4725390309", "gold_majority": "0.7410954655"}),
    "dices_350": Scored("0.1608407230", {"expert": "0.1916664598"}),
    "tweeteval_annotated": Scored("0.2223164582", {"emoji_in_tweet": "0.1067936509", "llm": "0.1842797924"}),
    "labelerrors_imagenet": Scored("0.5919090497", {"given": "0.0838624283", "confident_learning": "-0.2095052810"}),
    "labelerrors_cifar100": Scored("0.6324997668", {"given": "0.4441452310", "confident_learning": "-0.4458148018"}),
    "crows_pairs": Scored("0.6336640892", {"bias_type": "0.6612053450"}),
}
LABELERS = [(name, labeler) for name, scored in SCORED.items() for labeler in scored.kappas]
UNLABELED = {("dynasent_sst_dev_revalidated", "gold_majority"): 64}


@dataclass(frozen=True)
class Table:
    """One data set as read: votes of each item in the order of items.csv, and that file's rows."""

    votes: list[list[str]]
    rows: list[dict[str, str]]

    def suggested(self, labeler: str) -> list[str | None]:
        return [row[f"suggested_{labeler}"] or None for row in self.rows]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@cache
def table_of(folder: Path) -> Table:
    rows = rows_of(folder / "items.csv")
    votes: defaultdict[str, list[str]] = defaultdict(list)
    if (folder / "annotations.csv").exists():
        for row in rows_of(folder / "annotations.csv"):
            votes[row["item"]].append(row["label"])
    elif (folder / "counts_long.csv").exists():
        for row in rows_of(folder / "counts_long.csv"):
            votes[row["item"]] += [row["label"]] * int(row["count"])
    else:
        categories = [name for name in rows[0] if name != "item" and not name.startswith("suggested_")]
        for row in rows:
            votes[row["item"]] = [category for category in categories for _ in range(int(row[category]))]
    return Table([votes[row["item"]] for row in rows], rows)


def fleiss_of_counts(path: Path) -> Kappa:
    rows = rows_of(path)
    categories = [name for name in rows[0] if name != "item"]
    return fleiss_kappa(counts=[[int(row[c]) for c in categories] for row in rows], categories=categories)


def digits(value: float, like: str) -> str:
    return f"{value:.{len(like.partition('.')[2])}f}"
