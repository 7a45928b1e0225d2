"""Packed: how many votes each category has, as digits of a few whole numbers that any engine can add up."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dhkappa.core.labels import Label
from dhkappa.inputs.backends.frame import Coding

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

_WORD_BITS = 52  # of a number: a join may turn it into a float on the way
_MOST_WORDS = 16


@dataclass(frozen=True, slots=True)
class Packed:
    """Counts of categories as digits of a few whole numbers, ``bits`` for each."""

    categories: tuple[Label, ...]
    bits: int

    @classmethod
    def of(cls, categories: Collection[Label], bits: int) -> Packed | None:
        """Choose the width of digits, at least ``bits`` (0: as fits); None where that would take too many numbers."""
        m = max(len(categories), 1)
        found = cls(tuple(categories), bits or max(min(_WORD_BITS // m, 16), 4))
        return found if found.bits <= 32 and -(-m // found._digits) <= _MOST_WORDS else None

    @property
    def _digits(self) -> int:
        return _WORD_BITS // self.bits

    @property
    def names(self) -> list[str]:
        """What the numbers are called."""
        return [f"word_{place}" for place in range(-(-max(len(self.categories), 1) // self._digits))]

    def words(
        self, columns: Sequence[tuple[str, Coding]], times: str | None = None, kind: str = ""
    ) -> dict[str, nw.Expr]:
        """Return the numbers that the labels in some columns of a row make, each ``times`` a count.

        ``kind`` is that of the frame. To Ibis a number has 64 bits as soon as we say so, but to Postgres the same
        number has 32 if it fits, and overflows as numbers are added: so there they are floats, exact up to 53 bits.
        """
        import narwhals.stable.v2 as nw

        wide = nw.Float64 if kind == "IBIS" else nw.Int64

        found = {}
        for place, name in enumerate(self.names):
            own = self.categories[place * self._digits : (place + 1) * self._digits]
            terms = [
                nw.when(nw.col(column) == nw.lit(coding.value(label)))
                .then(nw.lit(1 << digit * self.bits, nw.Int64))  # of 32 bits otherwise, on some engines
                .otherwise(nw.lit(0, nw.Int64))
                .cast(wide)
                for column, coding in columns
                for digit, label in enumerate(own)
                if coding.value(label) is not None
            ]
            word = _added(terms or [nw.lit(0, nw.Int64)])
            found[name] = word if times is None else word * nw.col(times).cast(wide)
        return found

    def counts(self, keys: Mapping[str, Sequence[int]]) -> npt.NDArray[np.int64] | None:
        """Return (K, m) counts that numbers stand for; None where a number is none that these digits make."""
        found = np.zeros((len(keys["items"]), len(self.categories)), np.int64)
        for place, name in enumerate(self.names):
            word = np.array(keys[name], np.int64)
            if word.size and not 0 <= word.min() <= word.max() < 1 << self._digits * self.bits:
                return None
            for digit in range(min(self._digits, len(self.categories) - place * self._digits)):
                found[:, place * self._digits + digit] = word >> digit * self.bits & (1 << self.bits) - 1
        return found


def _added(terms: Sequence[nw.Expr]) -> nw.Expr:
    """Add terms by halves: some parsers take no deep nesting."""
    if len(terms) == 1:
        return terms[0]
    return _added(terms[: len(terms) // 2]) + _added(terms[len(terms) // 2 :])
