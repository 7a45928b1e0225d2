"""Per-item columns: suggested labels by labeler, stratum, weight and cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array, Categories, Floats, Integers, Label
from dhkappa.core.grouping import Encoded, group_rows
from dhkappa.core.labels import union
from dhkappa.errors import one_labeler


def lookup(labels: Sequence[Label | None], categories: Sequence[Label]) -> npt.NDArray[np.int32]:
    """Return the index of each label among the categories, -1 if missing or absent."""
    place: dict[Label | None, int] = {label: code for code, label in enumerate(categories)}
    return np.array([-1 if label is None else place.get(label, -1) for label in labels] or [-1], np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class ItemColumns:
    """Per-item columns of n items: suggested labels, stratum, weight, cluster."""

    labels: dict[str, Encoded]  # (n,) suggested labels, by labeler
    stratum: Encoded | None = None  # (n,); None without strata
    weight: Floats | None = None  # (n,) sample weights; None without weights
    cluster: Encoded | None = None  # (n,); None without clusters

    @property
    def labelers(self) -> tuple[str, ...]:
        """The names of the labelers."""
        return tuple(self.labels)

    @property
    def labels_only(self) -> bool:
        """Whether there is one labeler, and neither strata nor weights nor clusters."""
        return len(self.labels) == 1 and self.stratum is None and self.weight is None and self.cluster is None

    @property
    def strata(self) -> Categories:
        """The names of the strata."""
        return () if self.stratum is None else tuple(label for label in self.stratum.labels if label is not None)

    def __len__(self) -> int:
        return len(next(iter(self.labels.values())).values)

    def labeler(self, name: str | None) -> str:
        """Return the labeler with this name, or the only one."""
        only = name is None and len(self.labels) == 1
        return self.labelers[0] if only else one_labeler(name, self.labelers)

    def suggested_labels(self) -> list[Label]:
        """Return the labels that some labeler suggests."""
        return [label for column in self.labels.values() for label in column.occurring(column.digits())]

    def codes(self, labeler: str, categories: Sequence[Label]) -> npt.NDArray[np.int32]:
        """Return (n,) the index of each suggested label among the categories, -1 if missing."""
        column = self.labels[labeler]
        return lookup(column.labels, categories)[column.digits() if column.low else column.values]

    def design(self, rows: Any = slice(None)) -> tuple[Categories, Integers | None, Floats | None, Integers | None]:
        """Return the strata, and the stratum, weight and cluster of some rows; of columns encoded by ``recode``."""
        stratum = None if self.stratum is None else self.stratum.values[rows]
        cluster = None if self.cluster is None else self.cluster.digits()[rows]
        return self.strata, stratum, None if self.weight is None else self.weight[rows], cluster

    def take(self, rows: Array) -> ItemColumns:
        """Return some items, by index."""
        labels = {name: column.take(rows) for name, column in self.labels.items()}
        stratum, cluster = (None if one is None else one.take(rows) for one in (self.stratum, self.cluster))
        return ItemColumns(labels, stratum, None if self.weight is None else self.weight[rows], cluster)

    def recode(self, categories: Categories) -> ItemColumns:
        """Encode labels as 0 for missing and 1 + index into the categories, and strata as those that occur."""
        stratum = self.stratum
        if stratum is not None:
            names = tuple(stratum.occurring(stratum.digits()))
            stratum = Encoded(lookup(stratum.labels, names)[stratum.digits()], 0, names)
        known = (None, *categories)
        labels = {name: Encoded(self.codes(name, categories) + 1, 0, known) for name in self.labels}
        return ItemColumns(labels, stratum, self.weight, self.cluster)

    def keys(self) -> list[tuple[int, Array]]:
        """Return the columns as ``group_rows`` takes them."""
        encoded = [*self.labels.values(), *(one for one in (self.stratum, self.cluster) if one is not None)]
        columns: list[tuple[int, Array]] = [(len(column.labels), column.digits()) for column in encoded]
        return columns if self.weight is None else [*columns, (0, self.weight)]

    def distinct(self) -> tuple[npt.NDArray[np.int64], Array]:
        """Return the first item of each group of equal items, and (n,) the group of each item."""
        return group_rows(self.keys())

    @staticmethod
    def concat(tables: Sequence[ItemColumns], categories: Categories) -> ItemColumns:
        """Concatenate tables with the same labelers, with strata all or none, and weights all or none.

        Clusters cannot be concatenated: two tables may have items of the same cluster. One table keeps them.
        """
        parts = [table.recode(categories) for table in tables]
        labels = {
            name: Encoded(np.concatenate([part.labels[name].values for part in parts]), 0, (None, *categories))
            for name in tables[0].labelers
        }
        strata, stratum = union(*(part.strata for part in parts)), None
        if parts[0].stratum is not None:
            moved = [lookup(part.strata, strata)[part.stratum.values] for part in parts if part.stratum is not None]
            stratum = Encoded(np.concatenate(moved), 0, strata)
        weights = [part.weight for part in parts if part.weight is not None]
        cluster = parts[0].cluster if len(parts) == 1 else None
        return ItemColumns(labels, stratum, np.concatenate(weights) if weights else None, cluster)
