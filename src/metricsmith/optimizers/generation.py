"""Generated judges: their families, the default number of each, and the requests that make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

import dspy
import numpy as np

from metricsmith.errors import (
    HopelessModel,
    Interrupted,
    JudgementFailed,
    MetricsmithError,
    ModelFailure,
    NeedsError,
    OptionError,
    nearest,
)
from metricsmith.formats import count as counted
from metricsmith.metric import Metric
from metricsmith.model_calls.calls import Call, model_call
from metricsmith.optimizers.screening import beyond_chance, could_pass
from metricsmith.optimizers.splits import RatedRows
from metricsmith.programs.asked_scale import asked_scale
from metricsmith.programs.generators.axes import AxesGenerator, contrast
from metricsmith.programs.generators.code import REPAIRS, CodeGenerator, CodeTrial, WrittenCode, written_code
from metricsmith.programs.generators.rubrics import ExampleRubricGenerator, RubricGenerator, StepsGenerator
from metricsmith.programs.judges.base import Judge, slug
from metricsmith.programs.judges.criterion import CriterionJudge, RubricJudge
from metricsmith.programs.judges.geval import GEval
from metricsmith.programs.judges.prometheus import PrometheusJudge
from metricsmith.records import Status, Task, Usage
from metricsmith.signatures.generation import Axis
from metricsmith.threads import in_threads

__all__ = [
    "DEFAULT_COUNTS", "FREE", "GENERATORS", "Generated", "GeneratorFamily", "Lack", "Material", "attempt",
    "axes_inputs", "check_complete", "check_families", "code_inputs", "ends_all", "generate_judges", "rubric_inputs",
]  # fmt: skip

# AutoMetrics, section 3.1: 10 single-criterion and 5 rubric judges.
DEFAULT_COUNTS: Mapping[str, int] = {"criterion": 10, "rubric": 5}
AXES_EXAMPLES = 5  # rated outputs of either end that the request for axes shows; other requests show some of them
PARSE_TRIES = 4  # a lost generation request costs a whole judge, or all of them: try harder than for one judgement


@dataclass(frozen=True)
class Lack:
    """Judges of a family that could not be made, with the reason; `status` where their requests failed."""

    family: str
    count: int
    why: str
    status: str = ""


@dataclass(frozen=True)
class Generated:
    """Generated metrics, the usage that made them, notes, and the metrics that could not be made."""

    metrics: tuple[Metric, ...] = ()
    usage: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()
    lacks: tuple[Lack, ...] = ()

    def __add__(self, other: Generated) -> Generated:
        return Generated(
            self.metrics + other.metrics, self.usage + other.usage, self.notes + other.notes, self.lacks + other.lacks
        )


@dataclass(frozen=True)
class Material:
    """The material of a family of metrics besides its axes: the task, the rated training rows, and a seed."""

    task: Task
    rows: Sequence[dspy.Example] = ()
    seed: int = 0


@dataclass(frozen=True)
class GeneratorFamily:
    """A family of metrics.

    Parameters
    ----------
    build : callable
        Makes metrics from axes.
    requests_each : int
        The requests that writing one is likely to take.
    on_panels : bool
        Whether panels seat its judges.
    repairs_each : int
        The requests that one may take besides, to be mended.
    examples : int
        How many rated outputs of either end each of these requests shows.
    asks : bool
        Whether its metrics ask a model about every row.
    lacking : callable
        The reason why this machine cannot make it, with what to install; empty where it can.
    """

    build: Callable[[Sequence[Axis], Material], Generated]
    requests_each: int
    on_panels: bool = True
    repairs_each: int = 0
    examples: int = 0
    asks: bool = True
    lacking: Callable[[], str] = str


def ends_all(problem: MetricsmithError) -> bool:
    """True if a failure ends the whole run, not only the part in which it happened.

    A model that refuses to work, a spent budget, a stopped run and Ctrl-C end the whole run.
    """
    if isinstance(problem, JudgementFailed | ModelFailure) and problem.status in (Status.BUDGET, Status.SKIPPED):
        return True
    return isinstance(problem, HopelessModel | Interrupted)


def attempt(counts: Mapping[str, int], make: Callable[[], Generated]) -> Generated:
    """Make judges of one or more families; where that fails, a note and the usage take their place.

    Parameters
    ----------
    counts : mapping of str to int
        Family to number of judges that `make` is to make.
    make : callable

    Raises
    ------
    MetricsmithError
        A failure that ends the whole run (`ends_all`).
    """
    try:
        return make()
    except MetricsmithError as problem:
        if ends_all(problem):
            raise
        names = ", ".join(map(repr, counts))
        note = f"no judge of the famil{'ies' if len(counts) > 1 else 'y'} {names}: {problem}"
        status = str(getattr(problem, "status", ""))
        lacks = tuple(Lack(name, count, str(problem), status) for name, count in counts.items() if count)
        return Generated(usage=problem.usage or Usage(), notes=(note,), lacks=lacks)


def check_complete(made: Generated, strict: bool) -> Generated:
    """The judges as they are; `ModelFailure` if `strict` and one of them could not be made."""
    if strict and made.lacks:
        raise ModelFailure(f"not all judges could be made, which strict does not allow: {made.lacks[0].why}")
    return made


def generate_judges(rows: Sequence[dspy.Example], task: Task, counts: Mapping[str, int], *, seed: int = 0) -> Generated:
    """Make judges from rated rows: one request for all axes, then the requests that each family needs.

    Parameters
    ----------
    rows : sequence of dspy.Example
        Rated training rows.
    task : Task
    counts : mapping of str to int
        Family name to number of judges; axes are handed out in this order and never twice.
    seed : int
        Decides which of tied examples are shown and in what order.

    Raises
    ------
    OptionError
        For an unknown family.
    NeedsError
        For one that this machine cannot make.
    ModelFailure
        If the model proposes no axes.
    """
    for name in counts:
        if name not in GENERATORS:
            raise OptionError(f"no judge family {name!r}{nearest(name, GENERATORS)}; there are {', '.join(GENERATORS)}")
    check_families(counts)
    wanted = sum(counts.values())
    if wanted == 0:
        return Generated()
    call = model_call(AxesGenerator(), parse_tries=PARSE_TRIES, **axes_inputs(rows, task, wanted, seed=seed))
    if call.prediction is None:
        raise ModelFailure(f"the request for criteria to judge by failed: {call.error}", call.status, call.usage)
    axes = call.prediction.axes
    note = f"{wanted} axes were asked for, {len(axes)} distinct ones came back"
    made, start = Generated(usage=call.usage, notes=() if len(axes) == wanted else (note,)), 0
    for name, count in counts.items():
        own = axes[start : start + count]
        made += attempt({name: len(own)}, partial(GENERATORS[name].build, own, Material(task, rows, seed)))
        made += Generated(lacks=(Lack(name, count - len(own), note),) if len(own) < count else ())
        start += count
    return made


def check_families(counts: Mapping[str, int]) -> None:
    """Refuse families of which metrics are wanted and cannot be made on this machine, with a `NeedsError`."""
    for name, count in counts.items():
        if count and name in GENERATORS and (why := GENERATORS[name].lacking()):
            raise NeedsError(f"generators={{{name!r}: {count}}}: {why}")


def axes_inputs(rows: Sequence[dspy.Example], task: Task, count: int, *, seed: int = 0) -> dict[str, Any]:
    """The inputs of `AxesGenerator`, from rated rows; `seed` as for `contrast`."""
    return {**_rated_inputs(rows, task, AXES_EXAMPLES, seed), "count": count}


def code_inputs(axis: Axis, rows: Sequence[dspy.Example], task: Task, *, seed: int = 0) -> dict[str, Any]:
    """The inputs of `CodeGenerator` for one axis, from rated rows; `seed` as for `contrast`."""
    return _inputs("code", axis, Material(task, rows, seed))


def _inputs(family: str, axis: Axis, material: Material) -> dict[str, Any]:
    """The inputs of what writes one metric of a family, with as many rated examples as the family shows."""
    each, task = GENERATORS[family].examples, material.task
    return (_rated_inputs(material.rows, task, each, material.seed) if each else {}) | rubric_inputs(axis, task)


def _rated_inputs(rows: Sequence[dspy.Example], task: Task, each: int, seed: int) -> dict[str, Any]:
    examples, asked = contrast(rows, task, each=each, seed=seed), asked_scale(task.scale)
    scale = asked.scale if asked.points else task.scale
    return {
        "task": task.description,
        "rating": f"{task.target}, from {scale}" + ("" if scale.higher_is_better else ", where lower is better"),
        "liked": examples.liked,
        "disliked": examples.disliked,
    }


def rubric_inputs(axis: Axis, task: Task) -> dict[str, Any]:
    """The inputs of `RubricGenerator` and `StepsGenerator` for one axis."""
    return {"task": task.description, "criterion": f"{axis.name}: {axis.meaning}"}


def _criterion_judges(axes: Sequence[Axis], material: Material) -> Generated:
    task = material.task.description
    return Generated(tuple(CriterionJudge(criterion=axis.name, meaning=axis.meaning, task=task) for axis in axes))


def _written(
    make_generator: Callable[[], dspy.Module],
    family: str,
    make_judge: Callable[..., Judge],
    axes: Sequence[Axis],
    material: Material,
    what: str = "rubric",
) -> Generated:
    """Ask a generator about each axis, concurrently; an axis for which that fails is left out with a note.

    `make_judge` takes the axis, the task and what the generator wrote as a judge's options.
    """
    if not axes:
        return Generated()
    generator, task = make_generator(), material.task

    def write(axis: Axis) -> Call:
        return model_call(generator, parse_tries=PARSE_TRIES, **_inputs(family, axis, material))

    calls = in_threads([partial(write, axis) for axis in axes], len(axes), "metricsmith writing")
    made = Generated(usage=sum((call.usage for call in calls), Usage()))
    for axis, call in zip(axes, calls, strict=True):
        if call.prediction is not None:
            options = {"criterion": axis.name, "meaning": axis.meaning, "task": task.description}
            made += Generated((make_judge(**options, **call.prediction),))
            continue
        note = f"no {what} for {axis.name!r}: {call.error}"
        made += Generated(notes=(note,), lacks=(Lack(family, 1, note, call.status),))
    return made


def _code_metrics(axes: Sequence[Axis], material: Material) -> Generated:
    """Have a function written for each axis, concurrently; those are made that rise with the ratings beyond chance.

    A function is asked for whose number is higher for better outputs; one that falls is wrong about its axis.

    The rows that the requests for axes and functions show take no part in that test: a function that tells the best of
    them from the worst goes with their ratings whatever it measures.
    """
    task, rated = material.task, RatedRows.of(material.rows, material.task.target)
    generator = CodeGenerator()

    def write(axis: Axis) -> WrittenCode:
        inputs, name = code_inputs(axis, rated.rows, task, seed=material.seed), f"{slug(axis.name)}_code"
        return written_code(generator, inputs, rated.rows, name=name, meaning=axis.meaning, parse_tries=PARSE_TRIES)

    found = in_threads([partial(write, axis) for axis in axes], len(axes), "metricsmith writing") if axes else []
    made, trials = Generated(usage=sum((one.usage for one in found), Usage())), list[CodeTrial]()
    for axis, one in zip(axes, found, strict=True):
        note = f"no function for {axis.name!r}: {one.why}"
        if one.trial is None:
            made += Generated(notes=(note,), lacks=(Lack("code", 1, note, one.status),))
        else:
            trials.append(one.trial)
    shown = contrast(rated.rows, task, each=AXES_EXAMPLES, seed=material.seed).places
    unseen = np.setdiff1d(np.arange(len(rated)), shown)
    tested, columns = rated.take(unseen), [trial.values[unseen] for trial in trials]
    ratings = tested.ratings if task.scale.higher_is_better else -tested.ratings
    related = beyond_chance(columns, ratings, tested.groups, seed=material.seed)
    metrics = [(trial.metric, goes) for trial, goes in zip(trials, related, strict=True) if trial.metric is not None]
    dropped = [metric.name for metric, goes in metrics if not goes]
    said = f"no candidates, since they rise with training ratings no more than chance does: {', '.join(dropped)}"
    there = f"{counted(len(tested), 'row')} in {counted(len(set(tested.groups)), 'group')} that the model was not shown"
    few = f"; not even a perfect one among {len(trials)} could: rate more groups of rows, or ask for fewer functions"
    if could_pass(len(trials), ratings, tested.groups, seed=material.seed):
        few = ""
    notes = (f"{said} ({there}{few})",) if dropped else ()
    return made + Generated(tuple(metric for metric, goes in metrics if goes), notes=notes)


def _no_sandbox() -> str:
    return "" if find_spec("pydantic_monty") else "code runs in a sandbox: pip install 'metricsmith[code]'"


GENERATORS: Mapping[str, GeneratorFamily] = {
    "criterion": GeneratorFamily(_criterion_judges, requests_each=0),
    "rubric": GeneratorFamily(partial(_written, RubricGenerator, "rubric", RubricJudge), requests_each=1),
    "rubric_examples": GeneratorFamily(  # those of the request for axes: the paper does not say how many
        partial(_written, ExampleRubricGenerator, "rubric_examples", RubricJudge),
        requests_each=1, examples=AXES_EXAMPLES,
    ),
    "geval": GeneratorFamily(  # on no panel, whose answer has no one token to look at
        partial(_written, StepsGenerator, "geval", partial(GEval, mode="logprob"), what="evaluation steps"),
        requests_each=1, on_panels=False,
    ),
    "prometheus": GeneratorFamily(  # on no panel, whose form is another than the one that the model knows
        partial(_written, RubricGenerator, "prometheus", PrometheusJudge), requests_each=1, on_panels=False,
    ),
    "code": GeneratorFamily(
        _code_metrics, requests_each=1, on_panels=False, repairs_each=REPAIRS, examples=3, asks=False,
        lacking=_no_sandbox,
    ),
}  # fmt: skip
FREE = frozenset(name for name, family in GENERATORS.items() if not family.asks)  # cost nothing, once they are made
