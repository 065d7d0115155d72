"""Generated judges: their families, the default number of each, and the requests that make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import dspy

from metricsmith.errors import (
    HopelessModel,
    Interrupted,
    JudgementFailed,
    MetricsmithError,
    ModelFailure,
    OptionError,
    nearest,
)
from metricsmith.model_calls.calls import Call, model_call
from metricsmith.programs.asked_scale import asked_scale
from metricsmith.programs.generators import AxesGenerator, RubricGenerator, StepsGenerator, contrast
from metricsmith.programs.judges.base import Judge
from metricsmith.programs.judges.criterion import CriterionJudge, RubricJudge
from metricsmith.programs.judges.geval import GEval
from metricsmith.records import Status, Task, Usage
from metricsmith.signatures.generation import Axis
from metricsmith.threads import in_threads

__all__ = [
    "DEFAULT_COUNTS", "GENERATORS", "Generated", "JudgeFamily", "Lack", "attempt", "axes_inputs", "check_complete",
    "ends_all", "generate_judges", "rubric_inputs",
]  # fmt: skip

# AutoMetrics, section 3.1: 10 single-criterion and 5 rubric judges.
DEFAULT_COUNTS: Mapping[str, int] = {"criterion": 10, "rubric": 5}
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
    """Generated judges, the usage that made them, notes, and the judges that could not be made."""

    judges: tuple[Judge, ...] = ()
    usage: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()
    lacks: tuple[Lack, ...] = ()

    def __add__(self, other: Generated) -> Generated:
        return Generated(
            self.judges + other.judges, self.usage + other.usage, self.notes + other.notes, self.lacks + other.lacks
        )


@dataclass(frozen=True)
class JudgeFamily:
    """A family of judges: how many requests each takes, and whether panels seat it; `build` makes them from axes."""

    build: Callable[[Sequence[Axis], Task], Generated]
    requests_each: int
    on_panels: bool = True


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
    ModelFailure
        If the model proposes no axes.
    """
    for name in counts:
        if name not in GENERATORS:
            raise OptionError(f"no judge family {name!r}{nearest(name, GENERATORS)}; there are {', '.join(GENERATORS)}")
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
        made += attempt({name: len(own)}, partial(GENERATORS[name].build, own, task))
        made += Generated(lacks=(Lack(name, count - len(own), note),) if len(own) < count else ())
        start += count
    return made


def axes_inputs(rows: Sequence[dspy.Example], task: Task, count: int, *, seed: int = 0) -> dict[str, Any]:
    """The inputs of `AxesGenerator`, from rated rows; `seed` as for `contrast`."""
    examples, asked = contrast(rows, task, seed=seed), asked_scale(task.scale)
    scale = asked.scale if asked.points else task.scale
    return {
        "task": task.description,
        "rating": f"{task.target}, from {scale}" + ("" if scale.higher_is_better else ", where lower is better"),
        "liked": examples.liked,
        "disliked": examples.disliked,
        "count": count,
    }


def rubric_inputs(axis: Axis, task: Task) -> dict[str, Any]:
    """The inputs of `RubricGenerator` and `StepsGenerator` for one axis."""
    return {"task": task.description, "criterion": f"{axis.name}: {axis.meaning}"}


def _criterion_judges(axes: Sequence[Axis], task: Task) -> Generated:
    return Generated(
        tuple(CriterionJudge(criterion=axis.name, meaning=axis.meaning, task=task.description) for axis in axes)
    )


def _written(
    make_generator: Callable[[], dspy.Module],
    family: str,
    what: str,
    make_judge: Callable[[dict[str, Any], dspy.Prediction], Judge],
    axes: Sequence[Axis],
    task: Task,
) -> Generated:
    """Ask a generator about each axis, concurrently; an axis for which that fails is left out with a note.

    `make_judge` takes the axis and the task as a judge's options, and what the generator wrote.
    """
    if not axes:
        return Generated()
    generator = make_generator()

    def write(axis: Axis) -> Call:
        return model_call(generator, parse_tries=PARSE_TRIES, **rubric_inputs(axis, task))

    calls = in_threads([partial(write, axis) for axis in axes], len(axes), "metricsmith writing")
    made = Generated(usage=sum((call.usage for call in calls), Usage()))
    for axis, call in zip(axes, calls, strict=True):
        if call.prediction is not None:
            options = {"criterion": axis.name, "meaning": axis.meaning, "task": task.description}
            made += Generated((make_judge(options, call.prediction),))
            continue
        note = f"no {what} for {axis.name!r}: {call.error}"
        made += Generated(notes=(note,), lacks=(Lack(family, 1, note, call.status),))
    return made


GENERATORS: Mapping[str, JudgeFamily] = {
    "criterion": JudgeFamily(_criterion_judges, requests_each=0),
    "rubric": JudgeFamily(
        partial(
            _written,
            RubricGenerator,
            "rubric",
            "rubric",
            lambda options, written: RubricJudge(**options, levels=written.levels),
        ),
        requests_each=1,
    ),
    "geval": JudgeFamily(  # on no panel, whose answer has no one token to look at
        partial(
            _written,
            StepsGenerator,
            "geval",
            "evaluation steps",
            lambda options, written: GEval(**options, steps=written.steps, mode="logprob"),
        ),
        requests_each=1,
        on_panels=False,
    ),
}
