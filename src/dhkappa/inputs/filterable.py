"""The methods of ``Dataset`` that leave out items, votes and annotators, and the spellings of what is left."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from dhkappa.errors import invalid

if TYPE_CHECKING:  # imported when needed
    from dhkappa.core import Label
    from dhkappa.core.items import ItemVotes
    from dhkappa.core.relabel import Relabeling
    from dhkappa.inputs.filters import FilteredTable, LeftOut, Step
    from dhkappa.inputs.tables import VoteTable

_KEPT = ("_whole",)  # results that do not depend on filters


class Filterable:
    """Data of which rows and annotators can be left out."""

    _steps: tuple[Step, ...] = ()
    _absent: Container[Label]  # labels that mean missing
    _relabeling: Relabeling | None  # what the label rules did to the labels
    _of_columns: tuple[LeftOut, ...] = ()  # annotators of arrays that were left out

    def filter(self, /, *conditions: str | tuple[str, str, Any], **equal: Any) -> Self:
        """Return the data with some items or votes only; these data are unchanged.

        The engine that holds the data leaves out the others before anything is counted. Results have a note on what
        was left out, and ``left_out`` has the numbers.

        A column of the table of items, or of a table in wide format, chooses items: the others are left out with all
        their votes. Any other column of a table in long format chooses votes. If both tables have the column, it is
        that of the items; if its values differ, write ``"items.language"`` or ``"votes.language"``.

        Parameters
        ----------
        *conditions
            Conditions that must all hold, such as ``"language=en,de"``, ``"confidence >= 0.5"`` or ``"day <
            2026-01-31"``, or ``("confidence", ">=", 0.5)``. The operators are ``=``, ``!=``, ``<``, ``<=``, ``>`` and
            ``>=``. Numbers and ISO dates in columns of text are compared as numbers and dates by ``<`` and the like.
            Rows without a value are left out, except by ``"language="``, which chooses them.
        **equal
            Columns with the value to keep, or a list of values; None is a missing value.

        Examples
        --------
        >>> import dhkappa, duckdb
        >>> rows = "(VALUES (1, 'x', 'x', 'x', 'en'), (2, 'y', 'x', 'y', 'de'))"
        >>> table = duckdb.sql(f"FROM {rows} t(id, llm, a, b, lang)")
        >>> data = dhkappa.Dataset(table, "llm", annotators=["a", "b"])
        >>> data.filter(lang="en")
        Dataset(1 item, 2 votes, 1 category, labelers 'llm')
        >>> print(data.filter("id >= 2").left_out[0].note)
        Filter id>=2: 1 item and 2 votes were left out.
        """
        from dhkappa.inputs.conditions import conditions_of

        return self._with_steps(*conditions_of(conditions, equal))

    def exclude_annotators(self, /, *names: Any) -> Self:
        """Return the data without the votes of some annotators; these data are unchanged.

        Parameters
        ----------
        *names
            Names of annotators as in results; of an array, the numbers of its columns. A number may be written as
            text. A name that no annotator has is an error.

        Examples
        --------
        >>> import dhkappa, numpy
        >>> votes = numpy.array([["cat", "cat", "dog"], ["dog", "dog", "dog"]])
        >>> dhkappa.Dataset(votes, ["cat", "dog"]).exclude_annotators(2)
        Dataset(2 items, 4 votes, 2 categories, labelers 'labeler')
        """
        from dhkappa.inputs.filters import Exclusion

        if len(names) == 1 and isinstance(names[0], (list, tuple, set, frozenset)):
            names = tuple(names[0])
        if not names:
            raise invalid("exclude_annotator", "exclude_annotators needs the name of an annotator.")
        return self._with_steps(Exclusion(tuple(dict.fromkeys(names))))

    @cached_property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What each filter has left out: ``step``, ``n_items``, ``n_votes`` and ``n_missing``, rows without a value."""
        if self._filtering is not None:
            return self._filtering.left_out()
        if self._steps:
            self._array_votes()
        return self._of_columns

    def spellings(self, category: Label) -> list[Label]:
        """Return the labels of the data that are read as a category, the category itself first if it is one."""
        new = {} if self._relabeling is None else self._relabeling.labels
        found = [label for label in dict.fromkeys((category, *new)) if new.get(label, label) == category]
        return found or [category]

    @cached_property
    def _whole(self) -> VoteTable | None:
        """The table before filters."""
        raise NotImplementedError

    def _array_votes(self) -> ItemVotes:
        """Return the votes of arrays."""
        raise NotImplementedError

    def _with_steps(self, *steps: Step) -> Self:
        """Return data with more filters, for which nothing is counted yet."""
        made = object.__new__(type(self))
        results = {
            name for kind in type(self).__mro__ for name, one in vars(kind).items() if isinstance(one, cached_property)
        }
        made.__dict__ = {name: one for name, one in self.__dict__.items() if name not in results - {*_KEPT}}
        made._steps = (*self._steps, *steps)
        made._forget()
        return made

    def _forget(self) -> None:
        """Forget what was found in the labels of other votes."""

    @cached_property
    def _filtering(self) -> FilteredTable | None:
        """The table after each filter; None without filters, or for arrays."""
        if not self._steps or self._whole is None:
            return None
        from dhkappa.core.label_rules import Absent
        from dhkappa.inputs.filters import filter_table

        # Only labels that are left are looked for in the labels that mean missing, about which there is a note.
        absent = self._absent.fresh() if isinstance(self._absent, Absent) else self._absent
        found = filter_table(replace(self._whole, missing=absent), self._steps)
        return replace(found, tables=(*found.tables[:-1], replace(found.table, missing=self._absent)))

    def _without_columns(self, read: ItemVotes, names: Any) -> ItemVotes:
        """Return the votes of arrays without the annotators that were left out; refuse conditions on columns."""
        from dhkappa.inputs.conditions import Condition
        from dhkappa.inputs.filters import exclude_columns

        if any(isinstance(step, Condition) for step in self._steps):
            message = "Votes that are passed as arrays have no columns to filter by."
            hint = "Filter the arrays, or pass a table with the column."
            raise invalid("where", message, code="filter-needs-table", hint=hint)
        read, self._of_columns = exclude_columns(read, self._steps, names)
        return read
