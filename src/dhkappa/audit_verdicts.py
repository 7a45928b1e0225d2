"""The methods of ``Audit`` that judge labelers: verdicts, the next step, and the gate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from dhkappa.errors import DataError, Problem
from dhkappa.stats.annotator_baseline import annotator_baseline
from dhkappa.stats.annotators import annotator_table, compare_with_annotators
from dhkappa.stats.flagged import Flagged
from dhkappa.stats.gate import Gate, gate_of
from dhkappa.stats.grades import NEVER_JUDGED, Verdict, cannot_judge, lower_code, ungraded, with_slices
from dhkappa.stats.intervals import ConfidenceInterval
from dhkappa.stats.kappa import Estimate
from dhkappa.stats.next_step import NextStep, next_step
from dhkappa.stats.result import Kappa
from dhkappa.stats.sample import sample_of
from dhkappa.stats.slice_table import estimate_of
from dhkappa.stats.verdict import judge


class AuditVerdicts:
    """The methods of ``Audit`` about verdicts."""

    __slots__ = ()

    @property
    def verdicts(self: Any) -> dict[str, Verdict]:
        """The verdict on each labeler."""
        return {name: self.verdict(name) for name in self.kappas}

    def verdict(self: Any, labeler: str | None = None) -> Verdict:
        """Return whether the labels of a labeler can be trusted, as a grade and a sentence.

        If the votes of some annotators are flagged as lower than the rest, the labeler is judged with and without them,
        and the lower grade counts.
        """
        name = self._name(labeler)
        if name not in self._verdicts:
            self._verdicts[name] = self._judged(name)  # grades of slices may ask for it
            for column in self._slice_columns:
                own = self._verdicts[name], column, self.slices(column, name).table
                self._verdicts[name] = with_slices(*own, self.confidence_level)
        found: Verdict = self._verdicts[name]
        return found

    def _judged(self: Any, name: str) -> Verdict:
        interval = self.kappas[name].confidence_interval(self.confidence_level)
        compared = self._annotator_comparisons.get(name)
        annotators = partial(self.annotators, name) if self.knows_annotators else None
        known = self.annotator_baseline(name), compared, self.problems, annotators
        flagged = None if cannot_judge(name, self.problems) else self._flagged_annotators()
        if flagged is None:
            return judge(name, self.kappas[name].estimate, interval, *known)
        other, each = self._judged_without(name, flagged)
        whole = judge(name, self.kappas[name].estimate, interval, *known, also_without=each)
        lower: Verdict = flagged.lower(whole, other)
        return lower

    def _judged_without(self: Any, name: str, flagged: Flagged) -> tuple[Verdict, bool]:
        """Return the verdict without flagged annotators, and whether it compares the labeler with each other one."""
        votes, level, weights, once = flagged.votes, self.confidence_level, self._weights, flagged.left_out
        estimate = flagged.estimate(name, self._pool, weights)
        if estimate is None:
            return ungraded("not-enough-data", name, f"There is not enough data to judge {name}{once}."), False
        sample = sample_of(votes.labeled_patterns(name), pool=self._pool)
        compared = compare_with_annotators(votes, name, level, sample=sample, weights=weights)
        baseline = annotator_baseline(estimate, confidence_level=level, any_time=self.any_time)
        annotators = partial(annotator_table, votes, name, sample=sample, weights=weights)
        limits = Kappa(estimate).confidence_interval(level, any_time=self.any_time)
        found = judge(name, estimate, limits, baseline, compared, (), annotators, once=once)
        return found, not math.isnan(compared.difference)

    def next_step(self: Any, labeler: str | None = None) -> NextStep:
        """Return what to do next about a labeler, such as the category to fix first."""
        name = self._name(labeler)
        tables = (
            () if self.kappas[name].exact is None else self._table(what, name) for what in ("categories", "confusion")
        )
        return next_step(self.verdict(name), self.problems, *tables)

    def gate(
        self: Any,
        fail_under: float | str | None = None,
        *,
        on: str = "low",
        keep: float | None = None,
        margin: float | None = None,
        min_coverage: float | None = None,
        any_time: bool | None = None,
    ) -> Gate:
        """Test whether the labelers are good enough: each passes, fails, or is undecided.

        Parameters
        ----------
        fail_under
            The least allowed kappa. A labeler passes if its lower confidence limit is at least this, and fails if its
            upper limit is below. Or ``"annotators"``, to test whether it is as good as a typical annotator. Or a rate
            against the votes: ``"recall:outage=0.8"``, also ``precision`` and ``f1``, or ``"agreement=0.8"``; with two
            categories ``tpr`` and ``tnr``, followed by the positive one, are sensitivity and specificity.
        on
            ``"low"``, or ``"value"`` to compare kappa itself instead of its confidence limits.
        keep, margin
            With ``fail_under="annotators"``: the share of a typical annotator's kappa above random labels that the
            labeler must keep, 0.8 by default, or how far its kappa may be below that of a typical annotator.
        min_coverage
            The least allowed share of items with a suggested label.
        any_time
            Whether the limits must hold at every look, so that you may look after each batch of items and stop when the
            gate decides; see ``Kappa.confidence_interval``. By default as in the audit.

        Examples
        --------
        >>> import dhkappa
        >>> sim = dhkappa.simulate(300, labelers={"llm": 0.9}, annotators=4, rng=1)
        >>> dhkappa.audit(sim.votes, sim.suggested).gate("annotators", keep=0.9).outcome
        'pass'
        """
        level: dict[str, Any] = {"confidence_level": self.confidence_level, "any_time": any_time}
        tested = {name: (kappa.estimate, kappa.confidence_interval(**level)) for name, kappa in self.kappas.items()}
        options: dict[str, Any] = {"on": on, "keep": keep, "margin": margin, "min_coverage": min_coverage}
        return gate_of(tested, fail_under, **options, problems=self.problems, without=self.estimate_without_flagged)

    def _flagged_annotators(self: Any) -> Flagged | None:
        """Return the annotators whose votes are flagged as lower than the rest; None if nobody is."""
        if not self._flagged:
            votes = self._item_votes if self.knows_annotators else None
            self._flagged.append(None if votes is None else Flagged.of(self.annotator_scores(), votes))
        found: Flagged | None = self._flagged[0]
        return found

    def estimate_without_flagged(self: Any, labeler: str) -> tuple[str, Estimate | None] | None:
        """Return the condition that flagged annotators are left out, and kappa then; None if nobody is flagged."""
        flagged = self._flagged_annotators()
        return None if flagged is None else (flagged.without, flagged.estimate(labeler, self._pool, self._weights))

    def _grade(
        self: Any, labeler: str, column: str, estimate: Estimate, interval: ConfidenceInterval, name: str
    ) -> str:
        """Return the grade of a labeler on a slice, also without flagged annotators; single ones have all items."""
        flagged = self._flagged_annotators()
        if flagged is None:
            return str(self._grade_of(labeler, estimate, interval, self.problems))
        after = self._audit_without(flagged)
        compared = None if after is None else after._annotator_comparisons[labeler].difference
        known = labeler, estimate, interval, self.problems
        code: str = self._grade_of(*known, also_without=compared is not None and not math.isnan(compared))
        if code in NEVER_JUDGED:
            return code
        if after is None:  # the data are not at hand any more
            verdict: Verdict = self.verdict(labeler)
            return lower_code(code, verdict.code) if verdict.left_out else code
        sliced = after._slice_columns[column]
        if name not in sliced.slices:
            return lower_code(code, "not-enough-data")
        own = Kappa(estimate_of(sliced.rows(labeler), sliced.slices.index(name)))
        limits = own.confidence_interval(interval.confidence_level)
        return lower_code(code, after._grade_of(labeler, own.estimate, limits, ()))

    def _audit_without(self: Any, flagged: Flagged) -> Any:
        """Return the audit of the data without flagged annotators, which has the slices of the others' votes."""
        if not self._audits_without:
            found = None
            if self._without is not None:
                with suppress(DataError):
                    found = self._without(*flagged.annotators, slices=True)
            self._audits_without.append(found if isinstance(found, AuditVerdicts) else None)
        return self._audits_without[0]

    def _grade_of(
        self: Any,
        labeler: str,
        estimate: Estimate,
        interval: ConfidenceInterval,
        problems: Sequence[Problem],
        also_without: bool = False,
    ) -> str:
        """Return the code of the verdict on some items of a labeler; annotators are compared on all items."""
        baseline = annotator_baseline(estimate, confidence_level=interval.confidence_level)
        annotators = partial(self.annotators, labeler) if self.knows_annotators else None
        compared = self._annotator_comparisons.get(labeler)
        known = estimate, interval, baseline, compared, problems, annotators
        return judge(labeler, *known, also_without=also_without).code
