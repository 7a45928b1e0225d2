"""The methods of ``Audit`` that save it, compare it with saved audits, and return it as a chart or JSON."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import import_module
from typing import Any

from dhkappa.errors import invalid


class AuditOutput:
    """The methods of ``Audit`` about saved audits, charts and JSON, which are imported when they are needed."""

    __slots__ = ()

    def compare_with(self: Any, saved: Any) -> Any:
        """Return this audit with ``baseline``: what changed since an earlier audit of other items.

        Parameters
        ----------
        saved
            A file that ``save`` wrote, as a path or a ``SavedAudit``, or a ``Tally``.

        Examples
        --------
        >>> import tempfile, dhkappa
        >>> path = f"{tempfile.mkdtemp()}/week40.json"
        >>> old, new = (dhkappa.simulate(200, labelers={"llm": 0.9}, rng=seed) for seed in (1, 2))
        >>> dhkappa.audit(old.votes, old.suggested).save(path, date="2026-11-02")
        >>> found = dhkappa.audit(new.votes, new.suggested).compare_with(path)
        >>> print(found.baseline.kappas["llm"].text)
        down 0.01 (95% CI -0.12 to 0.09) since 2026-11-02
        """
        if self.any_time:
            message = "A comparison with an earlier audit does not hold at every look: it is a test of one audit."
            raise invalid("any_time", message, code="option-not-supported", hint="Leave out $any_time.")
        counted: dict[str, Any] = {"tally": _without_clusters(self._tally), "weights": self._weights}
        return replace(self, baseline=import_module("dhkappa.tracking").compare(self, saved, **counted))

    def save(self: Any, path: str | os.PathLike[str], *, date: Any = None, data: str = "") -> None:
        """Write the counts and the verdicts to a JSON file, for ``dhkappa.history`` and ``compare_with``.

        The file is a tally with a date. It holds neither items nor annotators.

        Parameters
        ----------
        path
            File to write, completely or not at all.
        date
            Date of the data, such as ``"2026-11-09"`` or a ``datetime.date``; today by default.
        data
            Name of the data.
        """
        counted: dict[str, Any] = {"tally": _without_clusters(self._tally)}
        counted |= {"weights": self._weights, "pool": self._pool}
        import_module("dhkappa.tracking").save(self, path, date, data, **counted)

    def chart(self: Any, name: str, labeler: str | None = None) -> Any:
        """Return a chart of the report as an Altair chart; needs ``pip install 'dhkappa[report]'``.

        Parameters
        ----------
        name
            ``"scale"`` (all labelers with random and majority labels), ``"differences"`` (between labelers), or of one
            labeler ``"categories"``, ``"confusion"`` or ``"annotator_comparison"``; or of one column of slices
            ``"slices:language"``.
        """
        return import_module("dhkappa.report.charts").chart(self, name, labeler)

    def to_dict(self: Any, limit: int | None = 100) -> dict[str, Any]:
        """Return plain values for JSON, with at most ``limit`` items to review per labeler; NaN is None."""
        found: dict[str, Any] = import_module("dhkappa.report.plain").audit_values(self, limit)
        return found


def _without_clusters(tally: Any) -> Any:
    """Return what a tally is made of; refuse clusters, which it cannot hold."""
    if tally[0].columns.cluster is not None:
        message = "An audit with clusters cannot be saved, or compared with saved audits."
        hint = "Use the results of this audit, or save one without $clusters, whose intervals are too narrow."
        raise invalid("clusters", message, code="option-not-supported", hint=hint)
    return tally
