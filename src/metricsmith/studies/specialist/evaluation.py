"""Specialists evaluated by holding out one system of their history after the other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import dspy
import numpy as np

from metricsmith.datasets.history import History, joined_systems
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.meta_evaluation.measures import MEASURES
from metricsmith.optimizers.specialist import Specialist, examples_of, specialised
from metricsmith.programs.judges.mqm import MQMAnnotator, MQMJudge
from metricsmith.programs.judges.parrot import FromExamples, Parrot
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.specialist.choosing import Choice, ExamplePolicy, NoExample
from metricsmith.programs.specialist.examples import RowExamples, Shown, judged
from metricsmith.records import Usage
from metricsmith.report.specialist.record import (
    BesideCopying,
    Copying,
    PolicyResult,
    SpecialistEvaluation,
    SystemResult,
)
from metricsmith.scoring import ScoreTable, estimate, score
from metricsmith.studies.specialist.predictions import (
    CHARACTER_F1,
    PastRatings,
    Predictions,
    as_raters,
    copying,
    marked_texts,
    parts_of,
    people_as_judges,
    rows_of,
)  # fmt: skip
from metricsmith.version import __version__

__all__ = ["CHARACTER_F1", "POLICIES", "evaluate_specialist", "policies_by_name", "specialist_requests"]

POLICIES: Mapping[str, ExamplePolicy] = MappingProxyType(
    {
        "same": ExamplePolicy(),
        "other": ExamplePolicy(rater="other"),
        "merged": ExamplePolicy(rater="merged"),
        "any": ExamplePolicy(rater="any"),
        "shuffled": ExamplePolicy("shuffled", rater="any"),
        "fixed": ExamplePolicy("fixed"),
        "augmented": ExamplePolicy("augmented"),
        "none": ExamplePolicy("none"),
    }
)
"""The policies of the paper by name; ``shuffled`` takes any rater's ratings, as its baseline does."""
FILTERED = "filtered"  # the paper's analysis B.2.1: it reads the gold and is no policy
DRAWN = ("shuffled", "fixed", "augmented")
MARKING = (MQMAnnotator, MQMJudge, Parrot)  # judges whose judgements have errors


def evaluate_specialist(
    judges: Sequence[Any] | Any,
    history: History,
    policies: Mapping[str, ExamplePolicy] | Sequence[str] = ("same", "other", "merged", "shuffled", "fixed"),
    *,
    measure: str = CHARACTER_F1,
    seeds: int = 1,
    curve: Sequence[int] = (),
    seed: int = 0,
    **scoring: Any,
) -> SpecialistEvaluation:
    """Judge every output of a history with its own system held out, and hold the result against the people.

    Parameters
    ----------
    judges : judge, Parrot or sequence of these
        As `Specialist.compile` takes them.
    history : History
    policies : mapping of str to ExamplePolicy, or sequence of str
        By name, or names among `POLICIES` and ``filtered`` (the paper's B.2.1: errors of the examples that people
        marked in the row itself are taken out; it reads the gold and is an analysis, no policy). The first is the one
        that others are compared with.
    measure : str
        ``character-f1`` for judges that mark errors, or one of `metricsmith.meta_evaluation.MEASURES` for numbers, such
        as ``acc-t``, over systems by segments and raters.
    seeds : int
        How often policies that draw are evaluated (the paper: 10). Each time costs as much again.
    curve : sequence of int
        Numbers of examples for a learning curve of ``same`` and ``shuffled`` examples; each set is part of the next.
    seed : int
        Of the first draw, and of the tests.
    **scoring
        Options of `metricsmith.score` but ``runs``: model, store, budget, concurrency, ...

    Returns
    -------
    SpecialistEvaluation

    Raises
    ------
    OptionError
        If a policy or measure is unknown, a judge marks no errors that are to be measured, or a number is out of range.
    DataError
        If all systems of the history are one, or nobody marked errors, or gave numbers, that are to be measured.
    """
    if "runs" in scoring:
        raise OptionError("runs= has no meaning here: give a judge that repeats itself, such as MQMJudge.of(judge)")
    gold, tasks = PastRatings(history, measure), _tasks(judges, history, policies, measure, seeds, curve, seed)
    rows = history.rows()
    table = score([task.judge for task in tasks], rows, **scoring)
    predicted = [Predictions(gold, table.column(place)) for place in range(len(tasks))]
    results = _results(tasks, predicted, table, seed)
    first = predicted[0]
    systems = [
        SystemResult(name, gold.mean(own), int(own.sum()), tasks[0].examples.joined.get(name, ""))
        for name, own in ((name, rows_of(history, "system", name)) for name in history.systems)
    ]
    down = history.scale is not None and not history.scale.higher_is_better
    wanted = [task.label for task in tasks if not task.curve and task.judge_place == 0 and not task.again]
    return SpecialistEvaluation(
        history=history.name,
        measure=measure,
        ratings=len(history),
        sources=len(history.of_source),
        documents=len({one.document for one in history.ratings} - {""}),
        systems=tuple(sorted(systems, key=lambda one: (math.isnan(one.mean), one.mean if down else -one.mean))),
        raters=history.raters,
        results=tuple(results),
        curve=_curves(tasks, predicted),
        as_rater=as_raters(first) if tasks[0].examples.policy.rater == "same" else {},
        people=as_raters(people_as_judges(gold)) if measure == CHARACTER_F1 else {},
        only=_only(tasks, predicted) if measure == CHARACTER_F1 else {},
        signature=(
            f"metricsmith:{__version__} specialist history:{history.name}:{history.checksum} measure:{measure} "
            f"policies:{','.join(wanted)} seeds:{seeds} seed:{seed} judges:{','.join(_names(judges))}"
        ),
        beside=tuple(_beside(tasks, predicted, seed)),
        notes=tuple(_notes(tasks[0].examples.joined)),
        warnings=tuple(_warnings(results)),
    )


def specialist_requests(
    judges: Sequence[Any] | Any, history: History, policies: Mapping[str, ExamplePolicy] | Sequence[str], *,
    measure: str = CHARACTER_F1, seeds: int = 1, curve: Sequence[int] = (), seed: int = 0, **scoring: Any,
) -> Usage:  # fmt: skip
    """The requests that `evaluate_specialist` with the same arguments would send; sends none."""
    tasks = _tasks(judges, history, policies, measure, seeds, curve, seed)
    known = {name: scoring[name] for name in ("lm", "store", "batch_n") if name in scoring}
    return estimate([task.judge for task in tasks], history.rows(), **known)


@dataclass(frozen=True, eq=False)
class _Task:
    """A judge with one policy and one seed."""

    judge: Any
    judge_place: int
    label: str
    again: bool = False  # another seed of the task before
    curve: str = ""

    @property
    def name(self) -> str:
        return str(self.judge.name)

    @property
    def examples(self) -> RowExamples:
        return examples_of(self.judge)

    @cached_property
    def shown(self) -> list[Shown]:
        """The examples of every row as its prompt has them; none for a row that has none."""
        inner = self.judge.judge if isinstance(self.judge, Repeated) else self.judge
        return [_shown(inner, row) for row in self.examples.history.rows()]


def _shown(judge: Any, row: dspy.Example) -> Shown:
    try:
        return judge.shown_examples(judged(row))  # type: ignore[no-any-return]
    except NoExample:
        return Shown(Choice(fallbacks=("no example may be shown: the row is skipped",)), ())


def _tasks(
    judges: Any, history: History, policies: Any, measure: str, seeds: int, curve: Sequence[int], seed: int
) -> list[_Task]:
    """Everything that is to be judged, checked before the first request."""
    known = [CHARACTER_F1, *MEASURES]
    if measure not in known:
        raise OptionError(f"unknown measure {measure!r}{nearest(str(measure), known)}; known are {', '.join(known)}")
    if not isinstance(history, History):
        raise OptionError(f"history={history!r:.60} must be a History: History.from_table(read_wmt_mqm(path))")
    if measure == CHARACTER_F1 and all(one.spans is None for one in history.ratings):
        raise DataError(f"{history.name} has no marked errors: take another measure, such as measure='acc-t'")
    if measure != CHARACTER_F1 and all(one.rating is None for one in history.ratings):
        raise DataError(f"{history.name} has no numbers, which measure={measure!r} compares: take {CHARACTER_F1}")
    if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1:
        raise OptionError(f"seeds={seeds!r} must be a whole number from 1")
    joined = joined_systems(history)
    if len({joined.get(name, name) for name in history.systems}) < 2:
        raise DataError(f"{history.name} has one system alone: without it there is no example: give ratings of others")
    named = dict(policies) if isinstance(policies, Mapping) else policies_by_name(policies)
    wrong = next((label for label, policy in named.items() if not isinstance(policy, ExamplePolicy)), None)
    if not named or wrong is not None:
        raise OptionError(
            f"policies={policies!r:.60} must be names, or ExamplePolicy objects by name, one at the least"
        )
    if not isinstance(curve, Sequence) or not all(type(most) is int and most > 0 for most in curve):
        raise OptionError(f"curve={curve!r} must be a list of numbers of examples from 1, such as (1, 3, 7)")
    if not _listed(judges):
        raise OptionError("no judge to evaluate: give one, or Parrot(), which asks no model")
    tasks = []
    for place, judge in enumerate(_listed(judges)):
        own = judge.judge if isinstance(judge, MQMJudge) else judge
        if measure == CHARACTER_F1 and not (isinstance(judge, MARKING) and getattr(own, "has_spans", True)):
            raise OptionError(
                f"{getattr(judge, 'name', judge)!r:.60} marks no errors, which {CHARACTER_F1} compares: take "
                "MQMAnnotator or MQMJudge with spans=True, or Parrot, or another measure, such as measure='acc-t'"
            )
        for label, policy in named.items():
            for again in range(seeds if policy.source in DRAWN else 1):
                drawn = replace(policy, seed=policy.seed + seed + again)
                made = Specialist(drawn).compile(judge, history)
                if label == FILTERED:
                    made = specialised(judge, replace(examples_of(made), filtered=True))
                tasks.append(_Task(made, place, label, again=again > 0))
        for source in ("same", "shuffled") if curve else ():
            for count in sorted(set(curve)):
                like: dict[str, Any] = {"same_output": next(iter(named.values())).same_output}
                like |= {} if history.raters else {"rater": "any"}
                drawn = replace(POLICIES[source], **like, max_examples=count, seed=seed)
                tasks.append(_Task(Specialist(drawn).compile(judge, history), place, f"{source} {count}", curve=source))
    return tasks


def _listed(judges: Any) -> list[Any]:
    return list(judges) if isinstance(judges, Sequence) else [judges]


def policies_by_name(names: Sequence[str], same_output: str = "drop") -> dict[str, ExamplePolicy]:
    """The policies of `POLICIES` and ``filtered`` with these names, in this order.

    Parameters
    ----------
    names : sequence of str
    same_output : "drop" or "keep"
        As for `ExamplePolicy`; ``filtered`` always drops.

    Raises
    ------
    OptionError
        If there is none, or one is unknown.
    """
    known = {**POLICIES, FILTERED: ExamplePolicy()}
    for name in names:
        if name not in known:
            raise OptionError(f"unknown policy {name!r}{nearest(str(name), known)}; known are {', '.join(known)}")
    if not names:
        raise OptionError(f"no policy to evaluate; known are {', '.join(known)}")
    options: dict[str, Any] = {"same_output": same_output}
    return {name: replace(known[name], **options) for name in names}


def _results(
    tasks: Sequence[_Task], predicted: Sequence[Predictions], table: ScoreTable, seed: int
) -> list[PolicyResult]:
    coverage = table.coverage()
    first: dict[int, int] = {}
    results = []
    for place, task in enumerate(tasks):
        if task.again or task.curve:
            continue
        first.setdefault(task.judge_place, place)
        same = [place, *(other for other in range(place + 1, len(tasks)) if _is_again(tasks, place, other))]
        one, gold = predicted[place], predicted[place].gold
        values = np.array([predicted[other].value() for other in same])
        documents = {"document": gold.documents} if gold.documents else {}  # unknown ones have no interval
        differ: dict[str, Any] = {f"by_{name}": one.interval(groups) for name, groups in documents.items()}
        if place != first[task.judge_place]:
            for name, groups in {"segment": gold.segments, **documents}.items():
                observed, p, interval = one.difference(predicted[first[task.judge_place]], groups, seed)
                differ |= {"difference": observed, f"p_by_{name}": p, f"difference_by_{name}": interval}
        value, precision, recall = values.mean(axis=0).tolist()
        results.append(
            PolicyResult(
                judge=task.name, policy=task.label, value=value, precision=precision, recall=recall,
                examples=_mean(len(shown.ratings) for shown in task.shown),
                errors=_mean(sum(len(rating.spans or ()) for rating in shown.ratings) for shown in task.shown),
                candidates=_mean(shown.choice.candidates for shown in task.shown),
                spread=float(values[:, 0].std(ddof=1)) if len(same) > 1 else math.nan,
                seeds=len(same),
                by_segment=one.interval(gold.segments),
                systems=parts_of(one, "system", gold.history.systems),
                raters=parts_of(one, "rater", gold.history.raters),
                excluded=_counted(shown.choice.excluded for shown in task.shown),
                fallbacks=_counted(dict.fromkeys(shown.choice.fallbacks, 1) for shown in task.shown),
                judgements=_counted(coverage[other].counts for other in same),
                usage=sum((coverage[other].usage for other in same), Usage()),
                baseline=isinstance(task.judge, FromExamples),
                copying=copying(one, task.shown) if gold.measure == CHARACTER_F1 else Copying(),
                **differ,
            )
        )  # fmt: skip
    return results


def _beside(tasks: Sequence[_Task], predicted: Sequence[Predictions], seed: int) -> Iterable[BesideCopying]:
    """The first judge's first policy beside the baselines with the same one."""
    if isinstance(tasks[0].judge, FromExamples):
        return
    one, gold = predicted[0], predicted[0].gold
    for task, other in zip(tasks, predicted, strict=True):
        if isinstance(task.judge, FromExamples) and task.label == tasks[0].label and not task.again and not task.curve:
            gap, p, interval = one.difference(other, gold.segments, seed)
            over: dict[str, Any] = {}
            if gold.documents:
                _, over["p_by_document"], over["by_document"] = one.difference(other, gold.documents, seed)
            yield BesideCopying(task.name, other.value()[0], gap, interval, p, **over)


def _is_again(tasks: Sequence[_Task], place: int, other: int) -> bool:
    one, twin = tasks[place], tasks[other]
    return twin.again and (twin.judge_place, twin.label) == (one.judge_place, one.label)


def _mean(numbers: Iterable[float]) -> float:
    return float(np.mean(list(numbers)))


def _counted(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)


def _curves(tasks: Sequence[_Task], predicted: Sequence[Predictions]) -> dict[str, tuple[tuple[int, float], ...]]:
    found: dict[str, list[tuple[int, float]]] = {}
    for task, one in zip(tasks, predicted, strict=True):
        if task.curve:
            most = task.examples.policy.max_examples or 0
            found.setdefault(f"{task.name}, {task.curve}", []).append((most, one.value()[0]))
    return {name: tuple(points) for name, points in found.items()}


def _only(tasks: Sequence[_Task], predicted: Sequence[Predictions]) -> dict[str, tuple[int, int]]:
    """For two policies of the first judge: errors that one alone predicts, and those that the first's examples have."""
    own = [place for place, task in enumerate(tasks) if task.judge_place == 0 and not task.again and not task.curve][:2]
    found: dict[str, tuple[int, int]] = {}
    for place, other in ((own[0], own[-1]), (own[-1], own[0])):
        alone = copied = 0
        for spans, others, shown in zip(
            predicted[place].spans, predicted[other].spans, tasks[own[0]].shown, strict=True
        ):
            if spans is None or others is None:  # no judgement is not one without errors
                continue
            mine = set(marked_texts(spans)) - set(marked_texts(others))
            alone += len(mine)
            copied += len(mine & {text for rating in shown.ratings for text in marked_texts(rating.spans)})
        if place != other:
            found[tasks[place].label] = (alone, copied)
    return found


def _names(judges: Any) -> list[str]:
    return [f"{one.name}:{one.fingerprint()}" for one in _listed(judges)]


def _notes(joined: Mapping[str, str]) -> Iterable[str]:
    if joined:
        units: dict[str, list[str]] = {}
        for system, first in joined.items():
            units.setdefault(first, []).append(system)
        for members in units.values():
            yield f"{', '.join(sorted(members))} are the same in all segments they share and are held out together"


def _warnings(results: Sequence[PolicyResult]) -> Iterable[str]:
    told = dict.fromkeys((one.policy, rows, why) for one in results for why, rows in one.fallbacks.items())
    yield from (f"{policy}: {rows:,} rows: {why}" for policy, rows, why in told)
    for one in results:
        lost = {status: n for status, n in one.judgements.items() if n and status not in ("requested", "ok", "skipped")}
        if lost:
            how = ", ".join(f"{n:,} {status}" for status, n in lost.items())
            yield (
                f"{one.judge}, {one.policy}: {sum(lost.values()):,} of {one.judgements['requested']:,} judgements are "
                f"missing ({how}): its figures are of the other rows; the same run with a store asks those alone"
            )
