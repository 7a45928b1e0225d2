"""Given: data as a person passed them, of any kind, and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dhkappa.core.labels import Label
from dhkappa.core.tally import Tally
from dhkappa.errors import DataError, OutOfMemoryError, shown
from dhkappa.inputs.columns import Words, listed
from dhkappa.memory import counting

if TYPE_CHECKING:  # rooms that are opened when they are called for
    from dhkappa.core.cells import Cells
    from dhkappa.core.items import Ballots
    from dhkappa.inputs.aggregate import Groups
    from dhkappa.inputs.fetch import Gathered
    from dhkappa.inputs.tables import Laid

LABELER = "labeler"
"""What one labeler is called who has no name."""

_MOST_GATHERED = 2_000_000  # votes of a table elsewhere, that are fetched to tell items and annotators apart


@dataclass(frozen=True)
class Given:
    """What a person passed to one of the public calls; see ``dh_kappa`` for each."""

    data: Any
    suggested: Any
    counts: Any
    categories: Any
    missing: Any
    weights: Any
    strata: Any
    words: Words

    def held(self) -> tuple[Tally, str | None]:
        """Return the tally that was passed, and the labeler that was named with it."""
        assert isinstance(self.data, Tally)
        beside = {"counts": self.counts, "categories": self.categories, "weights": self.weights, "strata": self.strata}
        extra = [name for name, value in (beside | dict(self.words)).items() if value is not None]
        if not isinstance(self.missing, tuple) or self.missing:
            extra.append("missing")
        if self.suggested is not None and not isinstance(self.suggested, str):
            extra.insert(0, "suggested")
        if extra:
            raise DataError(f"a Tally is given, which holds votes and labels already: leave out {' and '.join(extra)}.")
        return self.data, self.suggested

    @cached_property
    def _known(self) -> Tally:
        """An empty tally, which has checked categories and missing labels."""
        return Tally(self.categories, missing=self.missing)

    @property
    def _declared(self) -> tuple[Label, ...] | None:
        return self._known.categories if self._known.declared else None

    @property
    def _columns(self) -> str:
        """What a table that was taken for a grid of votes might have meant."""
        columns = getattr(self.data, "columns", None)
        if columns is None:
            return ""
        return f" Of a table name the column, as suggested=. Columns: {listed([str(column) for column in columns])}."

    def laid(self, labelers: str) -> Laid | None:
        """Return the table that was passed, or that a path leads to; None for arrays.

        ``labelers`` says how many are wanted where none is named: ``"none"``, ``"one"``, ``"all"``, or ``"any"``.
        """
        if not self.words and (self.data is None or isinstance(self.data, (list, tuple, np.ndarray))):
            return None
        from dhkappa.inputs.tables import lay

        return lay(
            self.data,
            self.words,
            suggested=self.suggested,
            counts=self.counts,
            weights=self.weights,
            strata=self.strata,
            labelers=labelers,
        )

    @counting("the votes")
    def tally(self, labelers: str) -> Tally:
        """Count everything."""
        laid = self.laid(labelers)
        if laid is not None:
            return self._tally_of(laid)[0]
        if labelers in ("one", "all") and self.suggested is None and (self.data is not None or self.counts is not None):
            raise DataError(
                f"suggested is absent: pass one suggested label for each item, or use fleiss_kappa.{self._columns}"
            )
        return self._tally_of_arrays(self.suggested)

    def _tally_of_arrays(self, suggested: Any) -> Tally:
        whole = self._known.copy()
        whole.update(self.data, suggested, counts=self.counts, weights=self.weights, strata=self.strata)
        return whole

    def _tally_of(self, laid: Laid) -> tuple[Tally, Groups | Gathered]:
        """Have the engine count, or count its rows where votes are for very many categories."""
        from dhkappa.inputs.aggregate import group
        from dhkappa.inputs.backends.frame import asking
        from dhkappa.inputs.fetch import gather

        whole = self._known.copy()
        with asking(laid.votes.engine):
            found = group(laid, self._declared, whole.missing) or gather(laid, self._declared, whole.missing)
        whole.include(found.read, laid.remarks)
        return whole, found

    @counting("the votes")
    def cells(self) -> Cells:
        """Return the items by votes and the labels of all labelers."""
        from dhkappa.core.cells import cells_of, read_cells

        laid = self.laid("all")
        if laid is not None:
            return cells_of(self._tally_of(laid)[0])
        if not isinstance(self.suggested, Mapping):
            raise DataError(
                "suggested must map the name of each labeler to its labels, such as {'rule': labels, 'llm': labels}: "
                f"got {shown([self.suggested])}."
            )
        if (self.data is None) == (self.counts is None):
            raise DataError("pass either votes or counts=, one of the two.")
        return read_cells(
            self.data,
            self.suggested,
            counts=self.counts,
            categories=self._declared,
            missing=self._known.missing,
            weights=self.weights,
            strata=self.strata,
        )

    @counting("the votes")
    def named(self) -> tuple[Tally, Ballots | None]:
        """Return the tally of all labelers by name, and the votes with their items, as far as these are known."""
        from dhkappa.core.items import read_ballots
        from dhkappa.inputs.backends.frame import asking
        from dhkappa.inputs.fetch import gather

        laid = self.laid("all")
        if laid is not None:
            if laid.layout.item is None and "item" in laid.spare and "item" not in self.words:
                laid = replace(laid, layout=replace(laid.layout, item="item"))
            if "" in laid.layout.suggested:
                column = laid.layout.suggested[""]
                laid = replace(laid, layout=replace(laid.layout, suggested={str(self.suggested): column}))
            whole, found = self._tally_of(laid)
            if laid.votes.in_memory or whole.n_votes <= _MOST_GATHERED:
                # Where rows do not fit, it is as with a large table: what was counted is known, and who voted is not.
                with suppress(OutOfMemoryError), asking(laid.votes.engine):
                    found = gather(laid, self._declared, whole.missing)
            return whole, found.ballots(self._declared)
        if self.suggested is None and (self.data is not None or self.counts is not None):
            raise DataError(
                "suggested is absent: pass one label for each item, or a mapping from labelers to labels."
                f"{self._columns}"
            )
        by_name = self.suggested if isinstance(self.suggested, Mapping) else {LABELER: self.suggested}
        whole = self._tally_of_arrays(by_name)
        ballots = read_ballots(
            self.data,
            by_name,
            counts=self.counts,
            categories=self._declared,
            missing=whole.missing,
            weights=self.weights,
            strata=self.strata,
        )
        return whole, ballots
