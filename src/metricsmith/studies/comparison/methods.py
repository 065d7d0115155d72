"""The methods that a comparison can run. A method is data: a function from setting and seed to predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import ModelFailure
from metricsmith.metric import Metric
from metricsmith.model_calls.calls import model_call
from metricsmith.model_calls.prices import price
from metricsmith.model_calls.tokens import estimate_tokens
from metricsmith.optimizers.estimate import estimate_run
from metricsmith.optimizers.generation import PARSE_TRIES
from metricsmith.optimizers.induce import run_pass
from metricsmith.optimizers.passes import best_column, with_median
from metricsmith.optimizers.rated import Sides
from metricsmith.programs.generators.dimensions import DimensionsGenerator
from metricsmith.programs.judges.dna import DnAEval
from metricsmith.programs.judges.guideline import GuidelineJudge
from metricsmith.records import Usage
from metricsmith.scoring import estimate, score
from metricsmith.signatures.dimensions import Dimension, ProposeDimensions
from metricsmith.studies.comparison.setting import Setting

__all__ = ["DEFAULT_METHODS", "METHODS", "REFERENCE", "Method", "Predicted"]

FloatArray = NDArray[np.float64]
REFERENCE = "autometrics"


@dataclass(frozen=True)
class Predicted:
    """What a method makes of the test rows with one seed.

    Parameters
    ----------
    values : float array, shape (n,)
        In the ratings' direction; NaN where there is none. Any scale: only the order is compared.
    judgements : mapping of str to int
        Of the model, by status, with ``requested``.
    usage : Usage
        What was asked of the model; what several methods share costs none of them.
    remark : str
        What it chose or made, in one line.
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
        From the setting and the number of the seed, from 0. It must not read the test rows' ratings. The model is in
        force, and asked past the answers that DSPy's cache has for other seeds.
    lacks : callable
        What is missing to run it, in words that say how to get it; empty if nothing is.
    requests : callable
        The most that one repetition asks of the model, faults aside, from a setting whose options number it.
    seeded : bool
        Whether the seed can change anything. Where it cannot, the method is run once, for all seeds.
    """

    label: str
    predict: Callable[[Setting, int], Predicted]
    lacks: Callable[[Setting], str]
    requests: Callable[[Setting], Usage] = lambda _: Usage(cost=0.0)
    seeded: bool = True


def _best_existing(setting: Setting, _: int) -> Predicted:
    """The existing metric with the largest absolute tau-b on the validation rows, with its sign there."""
    best = best_column(setting.validation_scores, setting.parts.validation.ratings)
    if best is None:
        nothing = np.full(len(setting.test), np.nan)
        return Predicted(nothing, remark="no existing metric has a defined tau-b on the validation rows")
    place, sign = best
    values = sign * with_median(setting.test_scores[:, place], setting.learned_scores[:, place])
    direction = "more is better" if sign > 0 else "less is better"
    rows = len(setting.parts.validation)
    return Predicted(values, remark=f"chosen on {rows} validation rows: {setting.existing.names[place]}, {direction}")


def _boosting(backend: str) -> Callable[[Setting, int], Predicted]:
    def predict(setting: Setting, seed: int) -> Predicted:
        from metricsmith.stats.regression import MetaMetrics

        model = MetaMetrics(backend=backend, random_state=setting.options.seed + seed)
        model.fit(setting.learned_scores, setting.learned.ratings)
        remark = f"{len(setting.existing.names)} existing metrics, fitted on {len(setting.learned)} rows"
        return Predicted(model.predict(setting.test_scores), remark=remark)

    return predict


def _autometrics(setting: Setting, seed: int) -> Predicted:
    """Generate, retrieve, regress on the learned rows, with the whole pass repeated for each seed."""
    options = setting.options
    own = options.seed + seed
    options = replace(options, seed=own, repetition=seed, progress=False)
    trained = run_pass(setting.learned, setting.test.rows, setting.task, options)
    values = trained.predict(trained.other_values)
    asked = [metric.name for metric in trained.table.metrics if metric.card.cost == "model"]
    components = ", ".join(trained.components.names) or "no component"
    not_made = trained.candidates.not_made
    setting.sparse.update(trained.candidates.sparse)
    return Predicted(
        values,
        trained.table.select(asked).counts() if asked else {},
        trained.candidates.usage + trained.table.usage,
        f"{components}; {not_made}" if not_made else components,
    )


def _guideline(setting: Setting, seed: int) -> Predicted:
    judge = _guideline_judge(setting)
    judged = _judged(setting, judge, seed)
    sign = 1.0 if judge.scale.higher_is_better == setting.task.scale.higher_is_better else -1.0  # of a made grid
    return replace(judged, values=sign * judged.values)


def _guideline_judge(setting: Setting) -> GuidelineJudge:
    task = setting.task
    return GuidelineJudge(
        measure=task.target, guideline=setting.instruction, task=task.description or task.target, scale=task.scale
    )


def _dna(setting: Setting, seed: int) -> Predicted:
    """Dimensions are proposed once for the task in each seed; every row is judged by the same ones."""
    task = setting.task
    question: dict[str, Any] = {"task": task.description, "rating": task.target, "count": setting.dimensions}
    call = model_call(DimensionsGenerator(), parse_tries=PARSE_TRIES, **question)
    if call.prediction is None:
        raise ModelFailure(f"the request for dimensions to judge by failed: {call.error}")
    judge = DnAEval(call.prediction.dimensions, task=task.description)
    judged = _judged(setting, judge, seed)
    names = ", ".join(f"{item.name} {item.weight:.0%}" for item in call.prediction.dimensions)
    sign = 1.0 if task.scale.higher_is_better else -1.0  # its own numbers always rise with quality
    return replace(judged, values=sign * judged.values, usage=call.usage + judged.usage, remark=names)


def _judged(setting: Setting, judge: Metric, seed: int) -> Predicted:
    """Score the test rows; repetitions of one judge are independent samples."""
    options = {**setting.options.scoring, "first_run": seed, "progress": False}
    table = score([judge], setting.test.rows, **options)
    return Predicted(table.run()[:, 0], table.counts(), table.usage)


def _dna_requests(setting: Setting) -> Usage:
    placeholders = [
        Dimension(name=f"Dimension {number}", meaning="one sentence on what it means to be strong on it", weight=1)
        for number in range(setting.dimensions)
    ]
    judging = _estimated(setting, DnAEval(placeholders, task=setting.task.description))
    prompt = 350 + estimate_tokens(ProposeDimensions.instructions + setting.task.description)
    answer = 60 * setting.dimensions
    proposing = Usage(1, prompt, answer, price(getattr(setting.options.model, "model", ""), prompt, answer))
    total = proposing + judging
    return total if None not in (proposing.cost, judging.cost) else replace(total, cost=None)


def _estimated(setting: Setting, judge: Metric) -> Usage:
    options = setting.options
    return estimate([judge], setting.test.rows, lm=options.lm, first_run=options.repetition, store=options.store)


def _autometrics_requests(setting: Setting) -> Usage:
    return estimate_run(Sides("holdout", setting.learned, setting.test), setting.task, setting.options, most=True)


def _needs_existing(setting: Setting) -> str:
    return "" if setting.existing_metrics else "needs existing metrics: output text for the bank, or columns of scores"


def _needs_xgboost(setting: Setting) -> str:
    missing = "" if find_spec("xgboost") else "needs the package xgboost: pip install 'metricsmith[xgboost]'"
    return missing or _needs_existing(setting)


def _needs_words(what: str) -> Callable[[Setting], str]:
    def lacks(setting: Setting) -> str:
        if not any(row.get("output") for row in setting.test.rows):
            return "needs output text, which the rows do not have"
        if setting.options.model is None:
            return "needs a language model: name one with --lm MODEL (lm=dspy.LM(...))"
        words = {"guideline": setting.instruction, "description": setting.task.description.strip()}[what]
        told = {"guideline": "the raters' guideline (--guideline) or a", "description": "a"}[what]
        return "" if words else f"needs {told} description of the task (--task)"

    return lacks


def _needs_nothing(_: Setting) -> str:
    return ""


METHODS: Mapping[str, Method] = {
    "best_existing": Method("Best existing metric", _best_existing, _needs_existing, seeded=False),
    "metametrics": Method("MetaMetrics (boosting)", _boosting("sklearn"), _needs_existing, seeded=False),
    "metametrics_xgboost": Method("MetaMetrics (XGBoost)", _boosting("xgboost"), _needs_xgboost, seeded=False),
    "guideline_judge": Method(
        "LLM judge, raters' guideline",
        _guideline,
        _needs_words("guideline"),
        lambda setting: _estimated(setting, _guideline_judge(setting)),
    ),
    "dna_eval": Method("DnA-Eval", _dna, _needs_words("description"), _dna_requests),
    REFERENCE: Method("AutoMetrics", _autometrics, _needs_nothing, _autometrics_requests),
}
DEFAULT_METHODS = ("best_existing", "metametrics", "guideline_judge", "dna_eval", REFERENCE)
