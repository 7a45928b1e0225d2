"""The slices of a ``Dataset``: of its items, and of its annotators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from dhkappa.errors import DataError, invalid
from dhkappa.inputs.columns import copied
from dhkappa.resources import memory_errors

if TYPE_CHECKING:  # imported when needed
    from dhkappa.core.annotator_groups import AnnotatorColumn
    from dhkappa.core.slice_names import Cut
    from dhkappa.core.slices import SliceColumn
    from dhkappa.inputs.annotator_table import AnnotatorTable


class Sliceable:
    """Data whose items and annotators can be sliced."""

    _slices: Any = None
    _annotators_table: Any = None
    _with_steps: Callable[..., Self]

    def _take_slices(self: Any, roles: Any, opened: Any) -> None:
        """Take the options about slices from keywords; ``opened`` opens a path."""
        self._slices = roles.pop("slices", None)
        self._slices = list(self._slices) if isinstance(self._slices, Iterator) else self._slices
        self._annotators_table = opened(roles.pop("annotators_table", None))
        for name, given in (("slices", self._slices), ("annotators_table", self._annotators_table)):
            if given is not None and not self._copied:
                message = f"{name}= is an option of audit: other functions are about all items and annotators."
                raise invalid(name, message, code="option-not-supported")
        if self._copied:
            self._slices, self._annotators_table = copied(self._slices), copied(self._annotators_table)

    @cached_property
    def _requests(self: Any) -> tuple[Any, AnnotatorTable | None, dict[str, tuple[Cut, ...]]]:
        """The slices of items as they were passed, the annotators table, and its columns that make slices."""
        if self._annotators_table is None:
            return self._slices, None, {}
        from dhkappa.inputs.annotator_table import AnnotatorTable, split_requests

        own = AnnotatorTable.of(self._annotators_table, None if self.table is None else self.table.roles.annotator)
        if self.table is None:
            return self._slices, own, split_requests(None, own, ())[1]
        frame = self.table.item_frame
        items, columns = split_requests(self._slices, own, frame.names)
        return items, own, columns

    def without_slices(self) -> Self:
        """Return the data without the options about slices; nothing is counted yet."""
        made = self._with_steps()
        made._slices = made._annotators_table = None
        return made

    @property
    def slices_items(self) -> bool:
        """Whether there are columns of slices of items."""
        return self._requests[0] is not None

    @cached_property
    @memory_errors("the votes")
    def slices(self: Any) -> list[SliceColumn]:
        """The columns of slices, with the items of each slice."""
        from dhkappa.inputs.slices import slices_of_arrays, slices_of_table

        given = self._requests[0]
        if given is None:
            return []
        if self.table is None:
            return slices_of_arrays(given, self.arrays, self._data)
        return slices_of_table(given, self.table, self._group, self.counts)

    @cached_property
    @memory_errors("the votes")
    def annotator_columns(self: Any) -> list[AnnotatorColumn]:
        """The columns of the annotators table that make slices, with the annotators of each slice."""
        _, table, requests = self._requests
        if table is None:
            return []
        from dhkappa.inputs.annotator_table import annotator_columns

        read = self.item_votes()
        if read is None or read.annotators is None:
            message = "annotators_table needs votes with annotators, but the annotators are unknown."
            hint = "Pass votes as an n x N array, or a table with $annotators or $annotator of at most 2 million votes."
            raise DataError(message, code="annotators-unknown", parameter="annotators_table", hint=hint)
        named = self._slices is not None and self.table is not None
        return annotator_columns(table, requests, read.annotators, self._rules, named=named)
