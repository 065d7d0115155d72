"""Several criteria of one row judged in one request, and each of them a metric of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import dspy

from metricsmith.errors import JudgementFailed, OptionError, StateError, nearest
from metricsmith.metric import Asker, Metric, RowText, row_text
from metricsmith.model_calls.calls import Call, model_calls
from metricsmith.model_calls.limits import estimate_tokens
from metricsmith.programs import schema
from metricsmith.programs.judges.base import LEVELS, Judge, ModelAsker, Predictor
from metricsmith.programs.judges.criterion import CriterionJudge, RubricJudge
from metricsmith.programs.judges.members import Member
from metricsmith.programs.judges.panel_answers import Criterion, CriterionResult, criteria_text, labels, read_items
from metricsmith.programs.kinds import nested
from metricsmith.programs.state import Settings, module_state
from metricsmith.records import Judgement, MetricCard, Output, Status
from metricsmith.report.induction.record import PanelTokens
from metricsmith.signatures.judgement import JudgePanel

__all__ = ["Panel", "PanelMember", "prompt_tokens", "tokens_per_row"]

KINDS: Mapping[str, type[Judge]] = {kind.kind: kind for kind in (CriterionJudge, RubricJudge)}
UNREAD = (Status.UNPARSABLE, Status.OUT_OF_RANGE)


class Panel(ModelAsker):
    """One model call that rates a row on all criteria of several judges.

    Every request carries all criteria, so that a member's number means the same for any choice of members.
    A criterion that the answer leaves out, names twice or gives no number on the scale fails alone and is put
    once more to the judge that it comes from (`ask`; a plain call of the panel leaves it out). So are all criteria
    where nothing of the answer can be used, after the repair that every model call gets.

    The prompt holds task and criteria first and the row last, so that a provider's prefix cache can serve all
    rows. DSPy's optimisers see one predictor, `judge`: instructions and demonstrations that the single judges
    were given are used where those are asked alone, and nowhere else.

    Parameters
    ----------
    judges : sequence of CriterionJudge or RubricJudge
        At least one, with distinct names. They are copied, without a language model of their own.
    task : str
        What the outputs are made for; by default the task that all judges have.

    Raises
    ------
    OptionError
        If there is no judge, another kind of judge, a name given twice, or no task that all agree on.

    Examples
    --------
    >>> clear = CriterionJudge(criterion="Clear", meaning="Easy to follow.", task="Rewrite notices.")
    >>> short = CriterionJudge(criterion="Short", meaning="No word too many.", task="Rewrite notices.")
    >>> [member.name for member in Panel([clear, short]).members()]
    ['clear', 'short']
    """

    kind = "panel"
    signature = JudgePanel
    saves: ClassVar[schema.Checks] = {
        "task": schema.text(), "judges": schema.list_of(nested("criterion_judge", "rubric_judge"), schema.ITEMS, 1),
    }  # fmt: skip
    versions = (1,)  # raise it when the way that criteria are shown or answers are read changes

    def __init__(self, judges: Sequence[CriterionJudge | RubricJudge], task: str = "") -> None:
        super().__init__()
        if not judges:
            raise OptionError("a panel needs at least one judge: give CriterionJudge or RubricJudge objects")
        for judge in judges:
            if type(judge) not in KINDS.values():
                raise OptionError(f"{judge!r} cannot sit on a panel; CriterionJudge and RubricJudge objects can")
            if judge.scale != LEVELS:
                raise OptionError(
                    f"{judge.name} is asked from {judge.scale}, and a panel from {LEVELS}: leave its scale out, or let "
                    "it judge alone"
                )
        names = [judge.name for judge in judges]
        for name in names:
            if names.count(name) > 1:
                raise OptionError(
                    f"{names.count(name)} judges of the panel are called {name!r}; give one another name="
                )
        tasks = list(dict.fromkeys(str(judge.settings.task) for judge in judges))
        if not task and len(tasks) > 1:
            raise OptionError(
                f"the panel's judges were made for {len(tasks)} tasks, the first two: {tasks[:2]}; pass task="
            )
        states = [{"kind": judge.kind, "state": module_state(judge)} for judge in judges]
        self.settings = Settings(task=task or tasks[0], judges=states)
        self.judge = Predictor(self.signature)
        if learned := sorted({row for judge in judges for row in judge.made_with.get("learned_from", ())}):
            self.made_with = {"learned_from": learned}

    @property
    def names(self) -> list[str]:
        """The members' names, in the order in which the model is asked."""
        return [str(_values(state)["name"]) for state in self.settings.judges]

    @property
    def judges(self) -> list[Judge]:
        """Copies of the single judges."""
        return [_build(state) for state in self.settings.judges]

    def members(self) -> list[PanelMember]:
        """One metric for each criterion."""
        return [PanelMember(self, name) for name in self.names]

    @property
    def numbers(self) -> int:
        """One request asks for all criteria."""
        return len(self.settings.judges)

    def question(self) -> Mapping[str, str]:
        """Task and criteria."""
        return {"task": str(self.settings.task), "criteria": criteria_text(self._criteria())}

    def read(self, answer: Any, text: RowText) -> dspy.Prediction:
        """Check every criterion of the answer.

        Returns
        -------
        dspy.Prediction
            ``score`` in [0, 1] is the mean over the criteria that have a number, ``raw`` maps each member's
            name to its number from 1 to 5 or None, ``verdicts`` to its `CriterionResult`, and ``feedback`` is one
            line for each.

        Raises
        ------
        JudgementFailed
            If no criterion has a number.
        """
        wanted = [criterion.label for criterion in self._criteria()]
        results = dict(zip(self.names, read_items(answer.ratings, wanted, LEVELS), strict=True))
        valid = [result.raw for result in results.values() if result.raw is not None]
        if not valid:
            first = next(iter(results.values()))
            raise JudgementFailed(f"none of the {len(wanted)} criteria has a number: {first.error}", first.status)
        return dspy.Prediction(
            score=sum(map(LEVELS.unit, valid)) / len(valid),
            raw={name: result.raw for name, result in results.items()},
            feedback="\n".join(_line(name, result) for name, result in results.items()),
            verdicts=results,
        )

    def ask(self, metrics: Sequence[Metric], row: dspy.Example, runs: Sequence[int]) -> list[list[Judgement]]:
        """Judge one row by some of the members, once for each of `runs`.

        One request answers for all members (and for all of `runs`, where the provider takes ``n``); its cost
        stands in the judgement of the first of `metrics`. The cost of asking a criterion again alone stands in
        that criterion's own judgement.
        """
        calls = model_calls(self, runs, **asdict(row_text(row)))
        by_run = [self._judgements(metrics, call, row, run) for call, run in zip(calls, runs, strict=True)]
        return [list(judgements) for judgements in zip(*by_run, strict=True)]

    def single(self, name: str) -> Judge:
        """The judge that the member called `name` comes from; not to be changed, since others hold it too.

        Raises
        ------
        StateError
            If the panel has no such member.
        """
        for state in self.settings.judges:
            if _values(state)["name"] == name:
                return _shared(json.dumps(state))
        known = self.names
        raise StateError(
            f"the panel has no member {name!r}{nearest(name, known)}; it has {', '.join(known)}; take members from "
            "the panel's members(), or use metricsmith.load on a file that holds them"
        )

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Build a panel of these judges, before its state is loaded."""
        # Each member in a file holds the whole panel: fifteen members would be two hundred judges.
        return cls([_shared(json.dumps(judge)) for judge in settings["judges"]], settings["task"])

    def _criteria(self) -> list[Criterion]:
        values = [_values(state) for state in self.settings.judges]
        return [
            Criterion(label, str(value["meaning"]), tuple(value.get("levels", ())))
            for label, value in zip(labels([str(value["criterion"]) for value in values]), values, strict=True)
        ]

    def _judgements(self, metrics: Sequence[Metric], call: Call, row: dspy.Example, run: int) -> list[Judgement]:
        """One judgement for each of `metrics` out of one call."""
        unread = CriterionResult(status=call.status, error=call.error)
        results = [unread if call.prediction is None else call.prediction.verdicts[one.name] for one in metrics]
        judgements = [self._judgement(one.name, result, row, run) for one, result in zip(metrics, results, strict=True)]
        if judgements:
            judgements[0] = replace(judgements[0], usage=call.usage + judgements[0].usage)
        return judgements

    def _judgement(self, name: str, result: CriterionResult, row: dspy.Example, run: int) -> Judgement:
        """One criterion's judgement; one that cannot be read is put to its own judge, alone, on the panel's model."""
        if result.status in UNREAD:
            judge = self.single(name)
            with dspy.context(lm=self.judge.lm) if self.judge.lm is not None else nullcontext():
                alone = judge.ask([judge], row, [run])[0][0]
            return alone if alone.ok else replace(alone, error=f"{result.error}; asked again alone: {alone.error}")
        if result.raw is None:
            return Judgement(name, status=result.status, error=result.error, run=run)
        return Judgement(name, float(result.raw), LEVELS.unit(result.raw), result.reason, run=run)

    def __repr__(self) -> str:
        return f"Panel({', '.join(self.names)})"


class PanelMember(Member):
    """One criterion of a panel as a metric; made by `Panel.members`.

    Parameters
    ----------
    asker : Panel
    name : str
        Of the judge among the panel's.

    Raises
    ------
    StateError
        If the panel has no such judge, which loading another panel's state may bring about later, too.
    """

    kind = "panel_member"
    askers = ("panel",)
    asker: Panel

    def __init__(self, asker: Panel, name: str) -> None:
        super().__init__(asker, name)
        asker.single(name)

    @property
    def output(self) -> Output:
        """Whole numbers from 1 to 5, higher is better."""
        return self.asker.single(self.name).output

    @property
    def card(self) -> MetricCard:
        """The single judge's card, with the limits of being asked together with others."""
        own, others = self.asker.single(self.name).card, len(self.asker.names) - 1
        return replace(
            own,
            kind=self.kind,
            summary=f"{own.summary} It is asked in one request with {others} other criteria.",
            limits=(
                *own.limits,
                f"Every request carries all {others + 1} criteria of its panel, however few of them are wanted",
                "A model that rates many criteria at once may let one colour the next",
            ),
            related=(*own.related, *(name for name in self.asker.names if name != self.name)),
        )

    def own(self, answer: dspy.Prediction) -> dspy.Prediction:
        """The criterion's score, number and reason."""
        result = answer.verdicts[self.name]
        if result.raw is None:
            raise JudgementFailed(result.error, result.status)
        return dspy.Prediction(score=LEVELS.unit(result.raw), raw=result.raw, feedback=result.reason)


def _values(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings inside a single judge's state."""
    return state["state"]["settings"]  # type: ignore[no-any-return]


def _build(state: Mapping[str, Any]) -> Judge:
    if state["kind"] not in KINDS:
        raise StateError(f"a panel holds a judge of kind {state['kind']!r}; this version knows {', '.join(KINDS)}")
    return KINDS[state["kind"]].from_state(state)


@lru_cache(maxsize=256)
def _shared(state: str) -> Judge:
    return _build(json.loads(state))


def _line(name: str, result: CriterionResult) -> str:
    if result.raw is None:
        return f"{name}: no value ({result.error})"
    return f"{name} = {result.raw}: {result.reason}" if result.reason else f"{name} = {result.raw}"


SAMPLE = 50  # rows whose prompts are written out; their mean stands for all


def tokens_per_row(panel: Panel, rows: Sequence[dspy.Example]) -> PanelTokens:
    """Estimate prompt tokens a row, asked together and one by one, from the prompts themselves.

    Answers, retries and criteria that are asked again alone are not counted.

    Parameters
    ----------
    panel : Panel
    rows : sequence of dspy.Example
        n rows; of more than 50, 50 spread evenly stand for all. With none, both figures are NaN.
    """
    sample = [rows[place * len(rows) // SAMPLE] for place in range(SAMPLE)] if len(rows) > SAMPLE else rows
    judges = panel.judges
    return PanelTokens(len(judges), prompt_tokens([panel], sample), prompt_tokens(judges, sample))


def prompt_tokens(askers: Sequence[Asker], rows: Sequence[dspy.Example]) -> float:
    """Mean over rows of the tokens of all prompts that `askers` send for one row; NaN without rows."""
    if not rows:
        return float("nan")
    prompts = [message["content"] for row in rows for asker in askers for message in asker.messages(row)]
    return sum(estimate_tokens(str(prompt)) for prompt in prompts) / len(rows)
