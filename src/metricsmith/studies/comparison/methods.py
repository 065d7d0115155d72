"""The methods of a comparison, as data: each is a function from `ComparisonData` and a seed to predictions.

`plan_comparison` decides everything that can be decided before anything is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from metricsmith.bank.models import lora
from metricsmith.bank.models.finetuned import FinetunedMetric
from metricsmith.datasets.table import Table
from metricsmith.errors import ModelFailure, OptionError, nearest
from metricsmith.formats import count, percent
from metricsmith.metric import Metric
from metricsmith.model_calls.calls import model_call
from metricsmith.model_calls.limits import FRAME_TOKENS, estimate_tokens, price, total_usage
from metricsmith.model_calls.models import check_sampling
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.generation import PARSE_TRIES
from metricsmith.optimizers.induce import run_pass
from metricsmith.optimizers.own import not_here
from metricsmith.optimizers.passes import best_column, with_median
from metricsmith.optimizers.spending import estimate_run, times
from metricsmith.optimizers.splits import Splits
from metricsmith.optimizers.splitting import configure
from metricsmith.programs.generators.axes import DimensionsGenerator
from metricsmith.programs.judges.dna import DnAEval
from metricsmith.programs.judges.raters import GuidelineJudge
from metricsmith.records import Usage
from metricsmith.scoring import estimate, score
from metricsmith.signatures.generation import Dimension, ProposeDimensions
from metricsmith.stats.correlation import FloatArray
from metricsmith.studies.comparison.data import ComparisonData, comparison_data

__all__ = ["DEFAULT_METHODS", "METHODS", "REFERENCE", "ComparisonPlan", "Method", "Predicted", "plan_comparison"]

REFERENCE = "autometrics"


@dataclass(frozen=True)
class Predicted:
    """A method's predictions of the test rows with one seed.

    Parameters
    ----------
    values : float array, shape (n,)
        In the ratings' direction, on any scale, since only the order is compared; NaN where there is none.
    judgements : mapping of str to int
        Judgements of the model by status, with ``requested``.
    usage : Usage
        Cost of the requests to the model; scores that several methods share cost none of them.
    remark : str
        The metrics, dimensions or components that it chose or made, in one line.
    """

    values: FloatArray
    judgements: Mapping[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    remark: str = ""


@dataclass(frozen=True)
class Method:
    """One way to predict ratings.

    Parameters
    ----------
    label : str
        For tables.
    predict : callable
        From the data and the number of the seed, from 0, to predictions. It must not read the test rows' ratings. The
        model is in force, and asked past the answers that DSPy's cache has for other seeds.
    lacks : callable
        From the data to a message on anything that is missing to run it, and how to get it; empty if nothing is.
    requests : callable
        From data whose options number the repetition to the most that this repetition asks of the model, faults aside.
    seeded : bool
        False where the seed changes nothing: then the method is run once, for all seeds.
    """

    label: str
    predict: Callable[[ComparisonData, int], Predicted]
    lacks: Callable[[ComparisonData], str]
    requests: Callable[[ComparisonData], Usage] = lambda _: Usage(cost=0.0)
    seeded: bool = True


def _best_existing(data: ComparisonData, _: int) -> Predicted:
    """The existing metric with the largest absolute tau-b on the validation rows, with its sign there."""
    best = best_column(data.validation_scores, data.split.validation.ratings)
    if best is None:
        nothing = np.full(len(data.test), np.nan)
        return Predicted(nothing, remark="no existing metric has a defined tau-b on the validation rows")
    place, sign = best
    values = sign * with_median(data.test_scores[:, place], data.learned_scores[:, place])
    direction = "more is better" if sign > 0 else "less is better"
    rows = len(data.split.validation)
    return Predicted(values, remark=f"chosen on {rows} validation rows: {data.existing.names[place]}, {direction}")


def _boosting(backend: str) -> Callable[[ComparisonData, int], Predicted]:
    def predict(data: ComparisonData, seed: int) -> Predicted:
        from metricsmith.stats.regression import MetaMetrics

        model = MetaMetrics(backend=backend, random_state=data.options.seed + seed)
        model.fit(data.learned_scores, data.learned.ratings)
        remark = f"{len(data.existing.names)} existing metrics, fitted on {len(data.learned)} rows"
        return Predicted(model.predict(data.test_scores), remark=remark)

    return predict


def _autometrics(data: ComparisonData, seed: int) -> Predicted:
    """Generate, retrieve, regress on the learned rows, with the whole pass repeated for each seed."""
    options = replace(data.options, seed=data.options.seed + seed, repetition=seed, progress=False)
    trained = run_pass(data.learned, data.test.rows, data.task, options)
    values = trained.predict(trained.other_values)
    asked = [metric.name for metric in trained.table.metrics if metric.card.cost == "model"]
    components = ", ".join(trained.components.names) or "no component"
    not_made = trained.candidates.not_made
    data.sparse.update(trained.candidates.sparse)
    return Predicted(
        values,
        trained.table.select(asked).counts() if asked else {},
        trained.candidates.usage + trained.table.usage,
        f"{components}; {not_made}" if not_made else components,
    )


def _guideline(data: ComparisonData, seed: int) -> Predicted:
    judge = _guideline_judge(data)
    judged = _judged(data, judge, seed)
    sign = 1.0 if judge.scale.higher_is_better == data.task.scale.higher_is_better else -1.0  # of a made grid
    return replace(judged, values=sign * judged.values)


def _guideline_judge(data: ComparisonData) -> GuidelineJudge:
    task = data.task
    return GuidelineJudge(
        measure=task.target, guideline=data.instruction, task=task.description or task.target, scale=task.scale
    )


def _dna(data: ComparisonData, seed: int) -> Predicted:
    """Dimensions are proposed once for the task in each seed; every row is judged by the same ones.

    Numbers from different dimensions or weights cannot be ranked against each other, and proposing them for each row
    would cost as much again as a judgement.
    """
    task = data.task
    question: dict[str, Any] = {"task": task.description, "rating": task.target, "count": data.dimensions}
    call = model_call(DimensionsGenerator(), parse_tries=PARSE_TRIES, **question)
    if call.prediction is None:
        raise ModelFailure(f"the request for dimensions to judge by failed: {call.error}")
    judged = _judged(data, DnAEval(call.prediction.dimensions, task=task.description), seed)
    names = ", ".join(f"{item.name} {percent(item.weight)}" for item in call.prediction.dimensions)
    sign = 1.0 if task.scale.higher_is_better else -1.0  # its own numbers always rise with quality
    return replace(judged, values=sign * judged.values, usage=call.usage + judged.usage, remark=names)


def _finetuned(data: ComparisonData, seed: int, *, paper: bool) -> Predicted:
    """A metric trained on the learned rows, of which it holds some out by itself to stop or to choose by."""
    trained = _untrained(data, paper, data.options.seed + seed).compile(data.learned.rows)
    table = score([trained], data.test.rows, **{**data.options.scoring, "progress": False})
    remark = trained.card.summary
    if paper:
        steps = int(lora.PAPER["epochs"]) * math.ceil(len(data.learned) / lora.SETTINGS["batch"].default)
        warm_up = lora.SETTINGS["warm_up"].default
        remark += f" At most {count(steps, 'step')}, and the rate of learning rises over the first {warm_up:g}."
    return Predicted(table.run()[:, 0], remark=remark)


def _untrained(data: ComparisonData, paper: bool, seed: int = 0) -> FinetunedMetric:
    """The caller's metric, or with the paper's settings; the rating is that of the comparison."""
    assert data.finetuned is not None  # `_needs_encoder` has told
    metric = replace(data.finetuned, task=data.task, seed=seed, trained=None)
    return replace(metric, method="lora", settings=lora.PAPER) if paper else metric


def _needs_encoder(paper: bool) -> Callable[[ComparisonData], str]:
    def lacks(data: ComparisonData) -> str:
        if data.finetuned is None:
            return "needs an encoder: name one with --finetune NAME (finetuned=FinetunedMetric(task, encoder=...))"
        if not any(row.get("output") for row in data.test.rows):
            return "needs output text, which the rows do not have"
        why = not_here(_untrained(data, paper))
        return f"cannot be trained here: {why}" if why else ""

    return lacks


def _judged(data: ComparisonData, judge: Metric, seed: int) -> Predicted:
    """Score the test rows; repetitions of one judge are independent samples."""
    table = score([judge], data.test.rows, **{**data.options.scoring, "first_run": seed, "progress": False})
    return Predicted(table.run()[:, 0], table.counts(), table.usage)


def _dna_requests(data: ComparisonData) -> Usage:
    placeholders = [
        Dimension(name=f"Dimension {number}", meaning="one sentence on what it means to be strong on it", weight=1)
        for number in range(data.dimensions)
    ]
    judging = _estimated(data, DnAEval(placeholders, task=data.task.description))
    prompt = FRAME_TOKENS + estimate_tokens(ProposeDimensions.instructions + data.task.description)
    answer = 60 * data.dimensions
    proposing = Usage(1, prompt, answer, price(getattr(data.options.model, "model", ""), prompt, answer))
    total = proposing + judging
    return total if None not in (proposing.cost, judging.cost) else replace(total, cost=None)


def _estimated(data: ComparisonData, judge: Metric) -> Usage:
    options = data.options
    return estimate([judge], data.test.rows, lm=options.lm, first_run=options.repetition, store=options.store)


def _needs_existing(data: ComparisonData) -> str:
    return "" if data.existing_metrics else "needs existing metrics: output text for the bank, or columns of scores"


def _needs_xgboost(data: ComparisonData) -> str:
    if not find_spec("xgboost"):
        return "needs the package xgboost: pip install 'metricsmith[xgboost]'"
    return _needs_existing(data)


def _needs_texts(instruction: Callable[[ComparisonData], str], told: str) -> Callable[[ComparisonData], str]:
    """The check of a judge: output text, a model, and an instruction, which a message calls `told`."""

    def lacks(data: ComparisonData) -> str:
        if not any(row.get("output") for row in data.test.rows):
            return "needs output text, which the rows do not have"
        if data.options.model is None:
            return "needs a language model: name one with --lm MODEL (lm=dspy.LM(...))"
        return "" if instruction(data) else f"needs {told} description of the task (--task)"

    return lacks


METHODS: Mapping[str, Method] = {
    "best_existing": Method("Best existing metric", _best_existing, _needs_existing, seeded=False),
    "metametrics": Method("MetaMetrics (boosting)", _boosting("sklearn"), _needs_existing, seeded=False),
    "metametrics_xgboost": Method("MetaMetrics (XGBoost)", _boosting("xgboost"), _needs_xgboost, seeded=False),
    "guideline_judge": Method(
        "LLM judge, raters' guideline",
        _guideline,
        _needs_texts(lambda data: data.instruction, "the raters' guideline (--guideline) or a"),
        lambda data: _estimated(data, _guideline_judge(data)),
    ),
    "dna_eval": Method("DnA-Eval", _dna, _needs_texts(lambda data: data.task.description.strip(), "a"), _dna_requests),
    "finetuned": Method("Finetuned LLM", partial(_finetuned, paper=False), _needs_encoder(False)),
    "finetuned_paper": Method("Finetuned LLM (paper)", partial(_finetuned, paper=True), _needs_encoder(True)),
    REFERENCE: Method(
        "AutoMetrics",
        _autometrics,
        lambda _: "",
        lambda data: estimate_run(Splits("holdout", data.learned, data.test), data.task, data.options, most=True),
    ),
}
DEFAULT_METHODS = ("best_existing", "metametrics", "guideline_judge", "dna_eval", REFERENCE)


@dataclass(frozen=True)
class ComparisonPlan:
    """The data and the methods of a comparison, before anything is asked.

    Parameters
    ----------
    data : ComparisonData
    methods : mapping of str to Method
    seeds : int
    lacking : mapping of str to str
        By method, the message on anything that is missing; empty for a method that can be run.
    bounds : mapping of str to Usage
        By method that can be run, the most that all its repetitions ask.
    """

    data: ComparisonData
    methods: Mapping[str, Method]
    seeds: int
    lacking: Mapping[str, str]
    bounds: Mapping[str, Usage]

    @property
    def available(self) -> list[str]:
        """Keys of the methods that can be run."""
        return [key for key in self.methods if not self.lacking[key]]

    @property
    def model(self) -> str:
        """The model's name; empty without one."""
        return str(getattr(self.data.options.model, "model", "") or "")

    @property
    def estimated(self) -> Usage:
        """The bounds added up; the price is unknown where one is."""
        return total_usage([Usage(cost=0.0), *self.bounds.values()])


def plan_comparison(
    table: Table,
    optimizer: AutoMetrics | None,
    methods: Sequence[str] | Mapping[str, Method],
    seeds: int,
    fraction: float,
    validation: float,
    guideline: str,
    dimensions: int,
    finetuned: FinetunedMetric | None = None,
    test: Table | None = None,
) -> ComparisonPlan:
    """Split the rows, choose the methods and bound their requests; the arguments are those of `compare`."""
    if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1:
        raise OptionError(f"seeds={seeds!r} must be a whole number from 1; the paper takes 5")
    chosen = _chosen(methods)
    options, task = configure(table, optimizer or AutoMetrics())
    options = replace(options, per_judge=False)  # a comparison of whole methods: no judge is left out of one of them
    data = comparison_data(
        table, task, options, fraction=fraction, validation=validation, guideline=guideline, dimensions=dimensions,
        finetuned=finetuned, test=test,
    )  # fmt: skip
    with data.options.asking():
        lacking = {key: method.lacks(data) for key, method in chosen.items()}
        bounds = {key: _bound(method, data, seeds) for key, method in chosen.items() if not lacking[key]}
    if seeds > 1 and any(bound.requests for bound in bounds.values()):
        check_sampling(data.options.model, seeds)
    return ComparisonPlan(data, chosen, seeds, lacking, bounds)


def _chosen(methods: Sequence[str] | Mapping[str, Method]) -> Mapping[str, Method]:
    if isinstance(methods, Mapping):
        chosen: Mapping[str, Method] = dict(methods)
    elif isinstance(methods, str):
        raise OptionError(f"methods must be a list, not one text: write [{methods!r}]")
    else:
        for name in methods:
            if name not in METHODS:
                raise OptionError(f"no method {name!r}{nearest(name, METHODS)}; there are {', '.join(METHODS)}")
        chosen = {name: METHODS[name] for name in methods}
    if not chosen:
        raise OptionError(f"there is no method to run; choose among {', '.join(METHODS)}")
    return chosen


def _bound(method: Method, data: ComparisonData, seeds: int) -> Usage:
    """The most that all repetitions ask; a store may hold some of them."""
    if data.options.store is None:
        return times(method.requests(data), seeds)
    repetitions = [replace(data, options=replace(data.options, repetition=seed)) for seed in range(seeds)]
    return total_usage(method.requests(repetition) for repetition in repetitions)
