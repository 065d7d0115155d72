"""The induced metric: a few components, their weights, and what they say about a row."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.bank.code import code_listed
from metricsmith.bank.models.trained import file_name
from metricsmith.bank.weighted import named_function
from metricsmith.errors import StateError
from metricsmith.formats import points
from metricsmith.metric import Explanation, Metric, Part, content_hash
from metricsmith.model_calls.adapters import adapter_name
from metricsmith.programs.judges.base import MetricProgram
from metricsmith.programs.state import Settings, other_model, state_parts
from metricsmith.records import COSTS, Judgement, MetricCard, Output, Scale, Status, Task, Usage
from metricsmith.report.blocks import Heading, Paragraph, TextTable
from metricsmith.report.induction.record import RunRecord
from metricsmith.report.render import render_brief
from metricsmith.scoring import ScoreTable, score
from metricsmith.stats.regression import LinearCombination

__all__ = ["Explanation", "InducedMetric", "Part", "best_contributions", "induced_fingerprint", "predict_ratings"]

logger = logging.getLogger(__name__)
notes = logging.getLogger("metricsmith.notes")  # shown on the terminal, each once

MOST_MISSING = 0.5  # share of the absolute weight that may be missing before a prediction has no value


class InducedMetric(MetricProgram):
    """A weighted set of metrics that agrees with the raters.

    ``raw`` is the unclipped prediction on the rating scale; ``score`` is that mapped to [0, 1], higher is
    better, and clipped. A component without a value counts as average and is named in the feedback; where
    such components carry more than half of the absolute weight there is no prediction at all.

    Parameters
    ----------
    components : sequence of Metric
        p metrics.
    combination : LinearCombination
        Over the components' raw numbers, in the same order and with the same names.
    task : Task
        Gives description, target and scale.
    best : sequence of float
        Per component, its best contribution on the training rows in rating points.
    signature : str
        The line that makes the fit reproducible.
    reading : mapping, optional
        Options for `read_table`.
    adapter : str
        The DSPy adapter under which it was fitted, so that use under another can be told: ``chat``, ``json``, ``xml``,
        ``baml`` or ``other``. The one in force counts.
    made_with : mapping, optional
        Provenance (`Saved`): the model that made it, and the rows that it learned from. Changes no score.
    record : RunRecord, optional
        Everything that the report shows; not saved with the metric.
    """

    name = "induced"

    def __init__(
        self,
        *,
        components: Sequence[Metric],
        combination: LinearCombination,
        task: Task,
        best: Sequence[float],
        signature: str = "",
        reading: Mapping[str, Any] | None = None,
        adapter: str = "chat",
        made_with: Mapping[str, Any] | None = None,
        record: RunRecord | None = None,
    ) -> None:
        super().__init__()
        self.components = list(components)
        self.record = record
        self.made_with = dict(made_with or {})
        self.settings = Settings(
            task=asdict(task),
            combination=combination.to_dict(),
            best=[float(value) for value in best],
            signature=signature,
            reading=dict(reading or {}),
            **({} if adapter == "chat" else {"adapter": adapter}),
        )
        self._told = False

    def with_record(self, record: RunRecord) -> InducedMetric:
        """The same metric with the record of the run that made it; this one stays as it is."""
        return InducedMetric(
            components=self.components,
            combination=self.combination,
            task=self.task,
            best=self.settings.best,
            signature=self.settings.signature,
            reading=self.reading,
            adapter=self.settings.values.get("adapter", "chat"),
            made_with=self.made_with,
            record=record,
        )

    @property
    def reading(self) -> dict[str, Any]:
        """Options for `read_table` that read new rows as the training rows were read."""
        return dict(self.settings.reading)

    @property
    def task(self) -> Task:
        """The task of the rated rows: description, target and scale."""
        values = self.settings.task
        return Task(values["description"], values["target"], Scale(**values["scale"]))

    @property
    def combination(self) -> LinearCombination:
        """The fitted arithmetic; checked against the components."""
        combination = LinearCombination.from_dict(self.settings.combination)
        names = tuple(component.name for component in self.components)
        if combination.names != names:
            raise StateError(
                f"the loaded state belongs to a metric made of {', '.join(combination.names)}, but this one is made "
                f"of {', '.join(names)}; use metricsmith.load on the file instead"
            )
        return combination

    @property
    def output(self) -> Output:
        """The rating scale."""
        scale = self.task.scale
        return Output(self.name, scale.low, scale.high, scale.higher_is_better, description=self.task.target)

    @property
    def card(self) -> MetricCard:
        """A card made from the components' cards."""
        cards, combination = [component.card for component in self.components], self.combination
        teacher = self.made_with.get("imitates")
        imitates = f" It imitates {teacher} and never had people's ratings." if teacher else ""
        terms = [f"{weight:+.4g} * {name}" for name, weight in zip(combination.names, combination.weights, strict=True)]
        return MetricCard(
            name=f"Induced metric for {self.task.target}",
            kind="induced",
            summary=f"Predicts {self.task.target} ({self.task.scale}) from {len(cards)} components.{imitates}",
            formula=f"{combination.intercept:.4g} {' '.join(terms)}, each column transformed to mean 0 and variance 1",
            outputs=(self.output,),
            needs=tuple(sorted({need for card in cards for need in card.needs})),
            cost=next((cost for cost in reversed(COSTS) if cost in [card.cost for card in cards]), "cheap"),
            tasks=(self.task.description,) if self.task.description else (),
        )

    def forward(
        self, *, output: str, input: str = "", references: Sequence[str] = (), context: str = ""
    ) -> dspy.Prediction:
        """Judge one row: a Prediction with ``score``, ``raw`` and ``feedback``, or `JudgementFailed`."""
        row = dspy.Example(output=output, input=input, references=list(references), context=context)
        return self.prediction(self.judge_batch([row])[0])

    async def aforward(
        self, *, output: str, input: str = "", references: Sequence[str] = (), context: str = ""
    ) -> dspy.Prediction:
        """`forward` in a thread that sees the caller's DSPy context."""
        # By the class, for DSPy warns of calls of `self.forward`.
        return await asyncio.to_thread(
            InducedMetric.forward, self, output=output, input=input, references=references, context=context
        )

    def judge_batch(self, rows: Sequence[dspy.Example], *, run: int = 0) -> list[Judgement]:
        """One judgement per row; equal to judging the rows one by one."""
        return [explanation.prediction for explanation in self.explain(rows, run=run)]

    def explain(
        self,
        rows: Sequence[dspy.Example],
        *,
        run: int = 0,
        progress: bool = False,
        max_failure_rate: float = 1.0,
        **options: Any,
    ) -> list[Explanation]:
        """Predictions of n rows with what each component adds to them; options as for `scoring.score`."""
        other_model(self)
        self._compare_adapters()
        table = score(
            self.components, rows, first_run=run, progress=progress, max_failure_rate=max_failure_rate, **options
        )
        return self.combine(table, run=run)

    def combine(self, table: ScoreTable, *, run: int = 0) -> list[Explanation]:
        """Predict from component judgements already made; `table` has the components in order."""
        columns = [table.column(j) for j in range(len(table.metrics))]
        for metric, column in zip(table.metrics, columns, strict=True):
            if metric.card.kind == "column" and column and not any(judgement.ok for judgement in column):
                notes.warning("the metric reads the column %s, which none of the %d rows has", metric.name, len(column))
        judgements = [[column[i] for column in columns] for i in range(len(table.rows))]
        return self._explain(table.run(), judgements, run)

    def _explain(
        self, values: NDArray[np.float64], judgements: Sequence[Sequence[Judgement]], run: int
    ) -> list[Explanation]:
        """N explanations from component scores, shape (n, p), and the judgements that they come from."""
        combination, sign = self.combination, 1.0 if self.task.scale.higher_is_better else -1.0
        contributions = combination.contributions(values)
        predictions = self.predict(values)
        explanations = []
        for i, row in enumerate(judgements):
            parts = tuple(
                self._part(j, weight, judgement, float(contributions[i, j]), sign)
                for j, (judgement, weight) in enumerate(zip(row, combination.weights, strict=True))
            )
            explanations.append(
                Explanation(self._prediction(float(predictions[i]), parts, run), combination.intercept, parts)
            )
        return explanations

    def parts(self, run: int) -> list[tuple[Metric, int]]:
        """The components, all in repetition `run`."""
        other_model(self)
        self._compare_adapters()
        return [(component, run) for component in self.components]

    def _compare_adapters(self) -> None:
        """Warn once if the components are asked under another adapter than that of the fit."""
        fitted, now = self.settings.values.get("adapter", "chat"), adapter_name()
        if fitted != now and not self._told and self.card.cost == "model":
            self._told = True
            logger.warning(
                "the metric for %s was fitted under DSPy's adapter %r and is used under %r: its judges may answer "
                "otherwise; dspy.context(adapter=...) puts another in force", self.task.target, fitted, now,
            )  # fmt: skip

    def combined(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """`predict`, under the name by which the scoring engine knows it."""
        return self.predict(values)

    def verdict(self, parts: Sequence[Judgement], run: int) -> Judgement:
        """One row's prediction from its components' judgements."""
        values = np.array([[np.nan if part.raw is None else part.raw for part in parts]], dtype=float)
        return self._explain(values.reshape(1, len(parts)), [parts], run)[0].prediction

    def predict(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions on the rating scale from component scores, shape (n, p) -> (n,).

        Missing scores count as average; NaN where they carry more than half of the absolute weight.
        """
        return predict_ratings(self.combination, values)

    def _part(self, place: int, weight: float, judgement: Judgement, contribution: float, sign: float) -> Part:
        component, known = self.components[place], judgement.ok
        return Part(
            name=component.name,
            meaning=component.output.description,
            weight=weight,
            more_is_better=sign * weight > 0,
            contribution=contribution if known else math.nan,
            cost=max(0.0, sign * (self.settings.best[place] - contribution)) if known else math.nan,
            judgement=judgement,
        )

    def _prediction(self, raw: float, parts: tuple[Part, ...], run: int) -> Judgement:
        usage = sum((part.judgement.usage for part in parts), Usage())
        absent = [part for part in parts if not part.judgement.ok]
        if math.isnan(raw):
            failed = next((part for part in absent if part.judgement.status is not Status.SKIPPED), absent[0])
            return Judgement(
                self.name,
                status=failed.judgement.status,
                error=f"too little to go by: {failed}",
                run=run,
                usage=usage,
            )
        worst_first = sorted(parts, key=lambda part: (part.judgement.ok, -part.cost if part.judgement.ok else 0.0))
        costly = [part for part in worst_first if part.judgement.ok]
        feedback = "\n".join(str(part) for part in [*costly, *absent])
        return Judgement(self.name, raw, self.task.scale.unit(raw), feedback, run=run, usage=usage)

    def _repr_html_(self) -> str:
        """The report in short, or without a record, as after loading, the components with their weights."""
        if self.record is not None:
            return self.record._repr_html_()
        weights = zip(self.components, self.combination.weights, strict=True)
        rows = [(one.name, points(weight, self.task.scale.width, signed=True)) for one, weight in weights]
        table = TextTable(("component", "rating points"), rows)
        return render_brief([Heading(self.card.name), Paragraph(self.card.summary), table], self.settings.signature)

    def __repr__(self) -> str:
        names = ", ".join(component.name for component in self.components)
        return f"InducedMetric({self.task.target} from {names or 'its mean alone'})"

    def fingerprint(self) -> str:
        """A hash of components, weights and scale; of a function's name, whose code no file holds."""
        return induced_fingerprint(self.components, self.settings.combination, self.settings.task)

    @property
    def demands(self) -> list[str]:
        """Sentences on what the components need besides the texts of a row: columns, functions, the sandbox."""
        states = [part for _, part in state_parts(self.to_state())]
        columns, functions = (
            list(dict.fromkeys(part["name"] for part in states if part["kind"] == kind))
            for kind in ("column", "callable")
        )
        functions = list(dict.fromkeys([*functions, *filter(None, map(named_function, states))]))
        said = (
            [f"the metric reads {', '.join(columns)} from its table: new rows must bring that too"] if columns else []
        )
        if functions:
            said.append(
                f"the metric calls the Python functions {', '.join(functions)}, which no file holds: whoever loads it "
                "hands them over, metricsmith.load(path, functions={...})"
            )
        return [*said, *code_listed(states)]

    def save(self, path: str | PathLike[str], **dspy_options: Any) -> None:
        """Write one JSON that `metricsmith.load` reads, as `Saved.save` does, and say what it does not hold."""
        super().save(path, **dspy_options)
        for said in self.demands:
            notes.warning("%s", said)
        states = [part for _, part in state_parts(self.to_state())]
        if learned := list(dict.fromkeys(file_name(part["weights"]) for part in states if part["kind"] == "finetuned")):
            notes.warning("the metric rests on learned weights: keep its file and %s in one folder", ", ".join(learned))

    def to_state(self) -> dict[str, Any]:
        """Everything that the scores depend on, the language model aside."""
        components = [component.to_state() for component in self.components]
        return {"kind": "induced", **self.settings.dump_state(), "components": components, **self.provenance()}


def predict_ratings(combination: LinearCombination, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Predictions from component scores, shape (n, p) -> (n,), as `InducedMetric.predict` makes them."""
    weights = np.abs(combination.weights)
    absent = np.where(np.isfinite(values), 0.0, weights).sum(axis=1) if len(weights) else np.zeros(len(values))
    return np.where(absent > MOST_MISSING * weights.sum(), np.nan, combination.predict(values))


def best_contributions(combination: LinearCombination, values: NDArray[np.float64], scale: Scale) -> list[float]:
    """Per component the best contribution over rows on a rating scale, shape (n, p) in, p numbers out."""
    contributions = combination.contributions(values)
    best = contributions.max(axis=0) if scale.higher_is_better else contributions.min(axis=0)
    return [float(value) for value in best]


def induced_fingerprint(components: Sequence[Metric], combination: Mapping[str, Any], task: Mapping[str, Any]) -> str:
    """The fingerprint of an induced metric of these components, from combination and task as mappings."""
    parts = [
        content_hash(component.to_state()) if component.card.kind == "callable" else component.fingerprint()
        for component in components
    ]
    return content_hash("induced", parts, combination, task)
