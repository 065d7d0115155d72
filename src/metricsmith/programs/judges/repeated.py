"""One judge asked several times, its answers combined into one number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from math import inf
from typing import Any, ClassVar, Self

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import OptionError, StateError
from metricsmith.metric import Metric, content_hash, make_row
from metricsmith.programs import schema
from metricsmith.programs.judges.base import MetricProgram
from metricsmith.programs.kinds import nested
from metricsmith.programs.state import Settings
from metricsmith.records import Judgement, MetricCard, Output, Usage
from metricsmith.scoring import ascore
from metricsmith.stats.aggregation import (
    AGGREGATES,
    TWO_SIGMA,
    Aggregate,
    OutlierRule,
    aggregate_name,
    drop_outliers,
    half_width,
    rrwa,
)

__all__ = ["Repeated", "numbers_of"]


class Repeated(MetricProgram):
    """A judge's runs on one row, combined (GEMBA-MQM V2, section 4 and appendix A.2).

    ``raw`` stays on the judge's own scale and ``score`` follows from it as the judge's does. The feedback says
    how many runs the number rests on and gives the reasons of the run nearest to it; of several equally near
    ones it is the first. A run that failed is missing, never a number; with fewer than `min_runs` left the
    whole judgement fails, with the status that most of the failed runs have.

    Parameters
    ----------
    judge : Metric
        The judge of each run: a judge, a panel's member, an induced metric. Model judges need a temperature
        above .15. A metric without a model gives the same number in every run.
    runs : int
        How many times, at least 1.
    aggregate : callable or str
        A function of `metricsmith.stats.aggregation.AGGREGATES`, or its name. Where the judge's number is better
        when lower, it sees the number with its sign turned.
    name : str, optional
        Column name; by default made of the judge's name, the aggregate and `runs`.
    outliers : OutlierRule or None
        The rule by which runs are left out; its ``low`` side is always the worse one. None keeps all.
    min_runs : int, optional
        How many runs must have a number, outliers included; from 1 to `runs`, by default half of them, rounded
        up. With `stop_when` at least 2.
    stop_when : float, optional
        Ask no further run of a row once half the width of the aggregate's 95 % bootstrap interval
        (`metricsmith.stats.aggregation.half_width`) is at most this, in the units of the judge's number, and `min_runs`
        runs have one; `runs` is then the most that is asked. 0 stops at equal runs alone. **Equal first runs stop
        at once**, at any bound: they have no spread that a bootstrap could see. A judge that finds an error
        in every third run agrees with itself on the first three in a third of the cases; docs/aggregation.md
        measures the price. None asks all runs.

    Raises
    ------
    OptionError
        If `judge` is no metric or its numbers are better neither way, another argument has no meaning, or the aggregate
        is ``geometric`` and the judge's scale has numbers on both sides of zero.

    Examples
    --------
    >>> from metricsmith import CriterionJudge
    >>> judge = CriterionJudge(criterion="Keeps the facts", meaning="Nothing is lost.", task="Rewrite notices.")
    >>> Repeated(judge).name
    'keeps_the_facts_rrwa_10'
    """

    kind: ClassVar[str] = "repeated"
    tells_nearest: ClassVar[bool] = True  # the feedback gives the reasons of the run nearest to the aggregate
    repeats: ClassVar[tuple[str, ...]] = ()  # the kinds that a file of this one may repeat; any if none is named

    @classmethod
    def saved(cls) -> schema.Check:
        """The check of `to_state`'s result, its kind aside."""
        rule = schema.keys(
            k=schema.number(), sided=schema.text(schema.NAME), ddof=schema.number(0, 1, whole=True)
        )  # fmt: skip
        settings = schema.keys(
            {"stop_when": schema.maybe(schema.number(0))},  # which files of versions that asked all runs do not have
            name=schema.text(schema.NAME, 1),
            judge=schema.text(schema.NAME),
            runs=schema.number(1, schema.RUNS, whole=True),
            min_runs=schema.number(1, schema.RUNS, whole=True),
            aggregate=schema.one_of(*AGGREGATES),
            outliers=schema.maybe(schema.made(rule, lambda value: OutlierRule(**value))),
        )
        return schema.keys(settings=settings, judge=nested(*cls.repeats))

    def __init__(
        self,
        judge: Metric,
        runs: int = 10,
        aggregate: Aggregate | str = rrwa,
        name: str | None = None,
        *,
        outliers: OutlierRule | None = TWO_SIGMA,
        min_runs: int | None = None,
        stop_when: float | None = None,
    ) -> None:
        super().__init__()
        if isinstance(judge, type) or not isinstance(judge, Metric):
            raise OptionError(f"{judge!r} is no metric that could be repeated; give a judge, say a CriterionJudge")
        _check_count("runs", runs, None)
        known = aggregate_name(aggregate)
        _check_sides(known, judge.output)
        _ = judge.output.sign  # refuses what is better neither way
        _check_bound(stop_when, runs)
        fewest = 1 if stop_when is None else 2
        least = max(fewest, (runs + 1) // 2) if min_runs is None else min_runs
        _check_count("min_runs", least, runs, fewest)
        if outliers is not None and not isinstance(outliers, OutlierRule):
            raise OptionError(f"outliers={outliers!r} must be an OutlierRule, say OutlierRule(sided='low'), or None")
        self.judge = judge
        self.settings = Settings(
            name=name or f"{judge.name}_{known}_{runs}" + ("" if stop_when is None else f"_within_{stop_when:g}"),
            judge=judge.name,
            runs=runs,
            aggregate=known,
            outliers=None if outliers is None else asdict(outliers),
            min_runs=least,
            stop_when=stop_when,
        )

    @classmethod
    def of(
        cls, judge: Any, runs: int = 10, aggregate: Aggregate | str = rrwa, name: str | None = None, **options: Any
    ) -> Self:
        """Runs of this judge; arguments as for `Repeated`."""
        return cls(judge, runs, aggregate, name, **options)

    @property
    def runs(self) -> int:
        """The number of runs that one judgement takes; with `stop_when`, at most."""
        return int(self.settings.runs)

    @property
    def min_runs(self) -> int:
        """The least number of runs that must have a number."""
        return int(self.settings.min_runs)

    @property
    def stop_when(self) -> float | None:
        """The half-width at which no further run is asked; None asks all."""
        bound = self.settings.values.get("stop_when")  # files of versions that asked all runs do not have it
        return None if bound is None else float(bound)

    @property
    def outliers(self) -> OutlierRule | None:
        """The rule by which runs are left out."""
        return None if self.settings.outliers is None else OutlierRule(**self.settings.outliers)

    @property
    def output(self) -> Output:
        """The judge's range and direction."""
        own = self.judge.output
        return replace(own, name=self.name, description=f"{own.description} ({self._manner})".strip())

    @property
    def card(self) -> MetricCard:
        """The judge's card with the changes that repeating makes; costs are those of one run."""
        own = self.judge.card
        rule, times = self.outliers, str(self.runs) if self.stop_when is None else f"{self.min_runs} to {self.runs}"
        left_out = "no run is left out" if rule is None else f"without runs beyond {rule.k:g} sd ({rule.sided} sided)"
        limits = [*own.limits, f"Costs {times} runs a row; what a judge gets wrong every time stays wrong"]
        if self.stop_when is not None:
            left_out += f", until half the width of its bootstrap interval is at most {self.stop_when:g}"
            limits.append("Stops where the first runs agree, also where later ones would not have")
        return replace(
            own,
            name=f"{own.name} ({self._manner})",
            summary=f"{own.summary} Judged {times} times; the number is the {self.settings.aggregate} of the runs.",
            formula=f"{self.settings.aggregate} over {times} runs, {left_out}, of: {own.formula}",
            outputs=(self.output,),
            limits=tuple(limits),
            related=(*own.related, self.judge.name),
            papers=(*own.papers, "GEMBA-MQM V2, section 4 and appendix A.2 (repeated runs)"),
        )

    @property
    def _manner(self) -> str:
        return f"{self.settings.aggregate} of {'' if self.stop_when is None else 'at most '}{self.runs} runs"

    def forward(
        self, *, output: str, input: str = "", references: Sequence[str] = (), context: str = "", **labels: str
    ) -> dspy.Prediction:
        """Judge one row: a Prediction with ``score``, ``raw`` and ``feedback``, or `JudgementFailed`."""
        row = make_row(output, input=input, references=references, context=context, **labels)
        return self.prediction(self.judge_batch([row])[0])

    async def aforward(
        self, *, output: str, input: str = "", references: Sequence[str] = (), context: str = "", **labels: str
    ) -> dspy.Prediction:
        """Judge one row as `forward` does, without blocking the event loop."""
        row = make_row(output, input=input, references=references, context=context, **labels)
        table = await ascore([self], [row], progress=False, max_failure_rate=1.0)
        return self.prediction(table.judgement(0, 0))

    def parts(self, run: int) -> list[tuple[Metric, int]]:
        """The judge in its repetitions ``run * runs`` to ``run * runs + runs - 1``.

        Raises
        ------
        StateError
            If DSPy loaded settings of another judge, or with an aggregate that this version does not know.
        """
        if self.settings.aggregate not in AGGREGATES:
            raise StateError(
                f"the loaded state names the aggregate {self.settings.aggregate!r}; this version knows "
                f"{', '.join(AGGREGATES)}; load it with the version that saved it"
            )
        if self.settings.judge != self.judge.name:
            raise StateError(
                f"the loaded state repeats the judge {self.settings.judge!r}, but this is {self.judge.name!r}; "
                "repeat that judge, or use metricsmith.load on a file that holds it"
            )
        return [(self.judge, run * self.runs + place) for place in range(self.runs)]

    def wanted(self, values: NDArray[np.float64], known: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The runs to ask, (n, runs) and (n, runs) -> (n, runs): the next that may be needed, in their order.

        Until `min_runs` numbers are there, as many at once as are lacking; then one by one. A run that failed is made
        up for by a later one. Larger rounds would be quicker for one row and waste runs; rows go on side by side.
        """
        values = np.asarray(values, dtype=float)
        width = values.shape[1]
        if self.stop_when is None:
            return np.ones(values.shape, dtype=bool)
        leading = np.logical_and.accumulate(known, axis=1).sum(axis=1)  # runs known without a gap
        behind = np.arange(width) < leading[:, None]
        lacking = self.min_runs - (np.isfinite(values) & behind).sum(axis=1)
        enough = self._enough(np.where(behind, values, np.nan))
        until = np.where(enough > 0, enough, leading + np.maximum(lacking, 1))
        return np.asarray(np.arange(width) < until[:, None])

    def _enough(self, values: NDArray[np.float64]) -> NDArray[np.intp]:
        """The number of runs after which each row had enough, shape (n, runs) -> (n,); 0 where it never had.

        A row has enough at its first run with a number from which on the half-width is within the bound. One pass over
        the runs asks this of all rows at once that are still open: the bootstrap is the dear part.
        """
        enough = np.zeros(len(values), dtype=np.intp)
        bound, aggregate, sign = self.stop_when, AGGREGATES[self.settings.aggregate], self.judge.output.sign
        if bound is None:
            return enough
        present = np.isfinite(values)
        counts = present.cumsum(axis=1)
        for run in range(self.min_runs, values.shape[1] + 1):
            rows = np.flatnonzero((enough == 0) & present[:, run - 1] & (counts[:, run - 1] >= self.min_runs))
            precise = half_width(sign * values[rows, :run], aggregate, outliers=self.outliers) <= bound
            enough[rows[precise]] = run
        return enough

    def combined(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Aggregates of the runs, shape (n, runs) -> (n,); NaN where fewer than `min_runs` have a number.

        With `stop_when` only the runs up to the one that was enough count; later ones do not, even if known.
        """
        values = np.asarray(values, dtype=float)
        enough = self._enough(values)[:, None]
        values = np.where((enough == 0) | (np.arange(values.shape[1]) < enough), values, np.nan)
        numbers = self.judge.output.sign * np.asarray(
            AGGREGATES[self.settings.aggregate](self.judge.output.sign * values, outliers=self.outliers)
        )
        many = np.isfinite(values).sum(axis=1) >= self.min_runs
        return np.where(many, numbers + 0.0, np.nan)  # adding 0 turns -0 into 0

    def verdict(self, parts: Sequence[Judgement], run: int) -> Judgement:
        """One row's judgement from those of its runs; see the class for feedback and failure."""
        parts = self.needed(parts)
        values = numbers_of(parts)
        raw = float(self.combined(values)[0])
        usage = sum((part.usage for part in parts), Usage())
        failed = [part for part in parts if not part.ok]
        if np.isnan(raw):
            status = Counter(part.status for part in failed).most_common(1)[0][0]
            first = next(part for part in failed if part.status is status)
            error = (
                f"{len(parts) - len(failed)} of {len(parts)} runs gave a number and {self.min_runs} are needed; "
                f"the first that is {status}: {first.error}"
            )
            return Judgement(self.name, status=status, error=error, run=run, usage=usage)
        feedback = self._feedback(parts, self._kept(values)[0], raw, run)
        return Judgement(self.name, raw, self.output.score(raw), feedback, run=run, usage=usage)

    def needed(self, parts: Sequence[Judgement]) -> Sequence[Judgement]:
        """The runs up to the one that was enough, failed ones included; without `stop_when`, all."""
        return parts[: int(self._enough(numbers_of(parts))[0]) or len(parts)]

    def kept(self, parts: Sequence[Judgement]) -> NDArray[np.bool_]:
        """True for the needed runs that the aggregate rests on: those with a number that are no outliers."""
        return np.asarray(np.isfinite(self._kept(numbers_of(self.needed(parts)))[0]))

    def _kept(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The runs that the aggregate rests on, on the judge's scale, NaN in the place of all others."""
        rule = self.outliers
        if rule is None:
            return values
        return self.judge.output.sign * drop_outliers(self.judge.output.sign * values, rule.k, rule.sided, rule.ddof)

    def _feedback(self, parts: Sequence[Judgement], kept: NDArray[np.float64], raw: float, run: int) -> str:
        count, failed = int(np.isfinite(kept).sum()), sum(not part.ok for part in parts)
        outlying, spared = len(parts) - failed - count, self.runs - len(parts)
        absent = [f"{failed} without a number"] * bool(failed) + [f"{outlying} left out as outlying"] * bool(outlying)
        absent += [f"{spared} more {'was' if spared == 1 else 'were'} not needed"] * bool(spared)
        rests = f"{raw:.4g} is the {self.settings.aggregate} of {count} of {len(parts)} runs"
        rests += f" ({', '.join(absent)})" if absent else ""
        nearest = int(np.nanargmin(np.abs(kept - raw)))
        reasons = parts[nearest].feedback if self.tells_nearest else ""
        gave = f"; run {run * self.runs + nearest}, the nearest, gave {kept[nearest]:.4g}: {reasons}"
        return f"{rests}{gave}" if reasons else f"{rests}."

    def fingerprint(self) -> str:
        """A hash of the judge and of everything that changes how its runs are combined."""
        values = {key: value for key, value in self.settings.values.items() if key not in ("name", "judge")}
        if self.stop_when is None:  # the hash that versions without early stopping gave
            values.pop("stop_when", None)
        return content_hash(self.kind, self.judge.fingerprint(), values)

    def to_state(self) -> dict[str, Any]:
        """The judge's state and the settings; the aggregate stands there by name."""
        return {"kind": self.kind, "settings": self.settings.dump_state(), "judge": self.judge.to_state()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], judge: Metric) -> Self:
        """Build from `to_state`'s result and the judge that its ``judge`` describes.

        Raises
        ------
        StateError
            If the settings are not usable, such as an aggregate that this version does not know.
        """
        values = state["settings"]
        if values["judge"] != judge.name:
            raise StateError(f"the settings repeat the judge {values['judge']!r}, but it is called {judge.name!r}")
        try:
            rule = None if values["outliers"] is None else OutlierRule(**values["outliers"])
            return cls.of(
                judge, values["runs"], values["aggregate"], values["name"],
                outliers=rule, min_runs=values["min_runs"], stop_when=values.get("stop_when"),
            )  # fmt: skip
        except OptionError as problem:
            raise StateError(f"the saved repeated judge cannot be built: {problem}") from problem

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}: {self._manner} of {self.judge.name})"


def _check_count(option: str, value: int, high: int | None, low: int = 1) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < low or (high is not None and value > high):
        allowed = "a whole number from 1" if high is None else f"a whole number from {low} to runs, here {high}"
        raise OptionError(f"{option}={value!r} must be {allowed}")


def _check_bound(stop_when: float | None, runs: int) -> None:
    if stop_when is None:
        return
    if isinstance(stop_when, bool) or not isinstance(stop_when, int | float) or not 0 <= stop_when < inf:
        raise OptionError(
            f"stop_when={stop_when!r} must be a number from 0, in the units of the judge, or None to ask all runs"
        )
    if runs < 2:
        raise OptionError(f"stop_when={stop_when:g} needs at least 2 runs to tell how far they differ; runs={runs}")


def _check_sides(aggregate: str, output: Output) -> None:
    low, high = -inf if output.low is None else output.low, inf if output.high is None else output.high
    if aggregate == "geometric" and low < 0 < high:
        raise OptionError(
            f"aggregate='geometric' needs numbers on one side of zero, and {output.name} goes from {low:g} to "
            f"{high:g}; take another aggregate, say 'mean' or 'median'"
        )


def numbers_of(parts: Sequence[Judgement]) -> NDArray[np.float64]:
    """The runs' numbers, shape (1, runs); NaN where there is none."""
    return np.array([[np.nan if part.raw is None else part.raw for part in parts]], dtype=float)
