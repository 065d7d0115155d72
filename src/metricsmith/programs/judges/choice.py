"""Judges that answer a question with one of several options, or with every option that can be defended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import JudgementFailed, OptionError, StateError, nearest
from metricsmith.metric import MARKER, RowText, row_text
from metricsmith.model_calls.calls import Call, model_calls
from metricsmith.programs import schema
from metricsmith.programs.judges.base import ModelMetric, slug
from metricsmith.programs.judges.members import Member
from metricsmith.programs.kinds import asker_state
from metricsmith.records import Judgement, MetricCard, Output, Status, Usage
from metricsmith.reward import Reward
from metricsmith.scoring import ScoreTable
from metricsmith.signatures.choice import ChooseOption, ListAndChoose, ListOptions, with_options

__all__ = ["ChoiceJudge", "OptionAnswers", "OptionMember", "OptionsJudge", "ResponseSetJudge"]

MARKS = ("=", "->")  # between a judge's name and an option: of the first part of an answer, of the second


@dataclass(frozen=True, eq=False)
class OptionAnswers:
    """The answers of a judge of K options on n rows in m runs.

    Parameters
    ----------
    options : tuple of str
    valid : bool array, shape (n, m)
        False where there is no answer.
    choices : int array, shape (n, m), or None
        The place of the one option, -1 where there is no answer; None for a judge that is asked for sets alone.
    sets : float array, shape (n, m, K), or None
        1 for an option in the set, else 0, NaN where there is no answer; None for a judge that is asked for choices.
    """

    options: tuple[str, ...]
    valid: NDArray[np.bool_]
    choices: NDArray[np.int64] | None
    sets: NDArray[np.float64] | None


class OptionsJudge(ModelMetric):
    """One question with K possible answers, each of which is a metric of its own: the base of both judges.

    One request answers for all `members`, and an answer that breaks a rule fails for all. With `positive` options the
    judge is itself a metric, 1 where the answer meets one of them and else 0; without any it has no score.
    """

    versions = (1,)  # raise it when the way that options are shown or answers are read changes
    saves: ClassVar[schema.Checks] = {
        "name": schema.text(schema.NAME, 1), "task": schema.text(), "question": schema.text(least=1),
        "options": schema.list_of(schema.text(schema.NAME, 1), least=2),
        "positive": schema.list_of(schema.text(schema.NAME, 1)),
    }  # fmt: skip
    summary: ClassVar[str]  # of the card

    def __init__(
        self, options: Sequence[str], question: str, task: str, positive: str | Sequence[str] | None, name: str,
        **more: Any,
    ) -> None:  # fmt: skip
        _check_options(options)
        wanted = [positive] if isinstance(positive, str | int) else list(positive or ())
        for one in wanted:
            if one not in options:
                raise OptionError(f"positive={one!r} is no option{nearest(str(one), options)}; there are {options}")
        if not all(isinstance(text, str) for text in (question, task, name)):
            raise OptionError(f"question={question!r:.80}, task={task!r:.80} and name={name!r:.80} must be texts")
        name = name or slug(question)[:60]
        if not question.strip() or any(mark in name for mark in MARKS):
            raise OptionError(f"question={question!r} must ask something, name={name!r} have no {' or '.join(MARKS)}")
        settings = {"options": list(options), "question": question, "task": task, "positive": wanted, "name": name}
        self.signature = self.typed({**settings, **more})
        super().__init__(**settings, **more)

    @classmethod
    def typed(cls, settings: Mapping[str, Any]) -> type[dspy.Signature]:
        """The signature whose answers are the options of these settings."""
        raise NotImplementedError

    @property
    def fields(self) -> Mapping[str, str]:
        """The fields of an answer, ``set`` or ``choice`` or both, each with its name in a prediction."""
        raise NotImplementedError

    @classmethod
    def saved(cls) -> schema.Check:
        """The check of `to_state`'s result; the answer's fields follow from the options."""

        def check(value: Any, path: str) -> None:
            settings = schema.inside(value, "state.settings")
            schema.keys(**cls.saves)(settings, schema.at(path, "state", "settings"))
            whole = asker_state(cls.typed(settings), **cls.saves)
            schema.made(whole, lambda _: cls.from_settings(settings))(value, path)

        return check

    @property
    def options(self) -> tuple[str, ...]:
        """The K options, in their order."""
        return tuple(self.settings.options)

    @property
    def columns(self) -> Mapping[str, tuple[str, str]]:
        """The names of the members, each with the name of its part in a prediction, and its option."""
        marked = zip(MARKS, self.fields.values(), strict=False)
        return {f"{self.name}{mark}{one}": (part, one) for mark, part in marked for one in self.options}

    def members(self) -> list[OptionMember]:
        """One metric for each option, named ``judge=option``: 1 where the answer holds it, else 0.

        A judge of sets that chooses, too, has K more after these, named ``judge->option``, for the choice.
        """
        return [OptionMember(self, name) for name in self.columns]

    def question(self) -> Mapping[str, str]:
        """Task, question and options."""
        values = self.settings.values
        return {"task": str(values["task"]), "question": str(values["question"]), "options": "\n".join(self.options)}

    def ask(self, metrics: Sequence[Any], row: dspy.Example, runs: Sequence[int]) -> list[list[Judgement]]:
        """Judge one row by some of the members, or by the judge itself, once for each of `runs`.

        The cost of a request stands in the judgement of the first of `metrics`.
        """
        calls = list(zip(model_calls(self, runs, **asdict(row_text(row))), runs, strict=True))
        return [
            [_judgement(one, call, run, Usage() if place else call.usage) for call, run in calls]
            for place, one in enumerate(metrics)
        ]

    def prediction_of(self, given: Sequence[str], reasons: str, **answer: Any) -> dspy.Prediction:
        """The prediction of an answer that gives these options; it has a score where options are positive."""
        positive = self.settings.positive
        score = {"score": float(any(one in positive for one in given))} if positive else {}
        return dspy.Prediction(**answer, feedback=f"{', '.join(given)}: {reasons}", **score)

    def own(self, answer: dspy.Prediction) -> dspy.Prediction:
        """The number of the judge itself, which is its score."""
        return dspy.Prediction(score=answer.score, raw=answer.score, feedback=answer.feedback)

    def judge_batch(self, rows: Sequence[dspy.Example], *, run: int = 0) -> list[Judgement]:
        """Judge rows one after the other: 1 where an answer meets the positive options, skipped without any."""
        if not self.settings.positive:
            return [Judgement(self.name, status=Status.SKIPPED, error=_no_score(self), run=run) for _ in rows]
        return [self.ask([self], row, [run])[0][0] for row in rows]

    def as_metric(self, **options: Any) -> Reward:
        """The callable for DSPy's Evaluate and optimisers; an `OptionError` if no option is positive."""
        if not self.settings.positive:
            raise OptionError(_no_score(self))
        return super().as_metric(**options)

    as_reward = as_metric

    def answers(self, scores: ScoreTable | NDArray[np.float64]) -> OptionAnswers:
        """The answers as arrays.

        Parameters
        ----------
        scores : ScoreTable, or float array of shape (n, columns, m)
            A table in which this judge was scored, or the numbers of its `members` in their order. NaN is no answer.

        Raises
        ------
        OptionError
            If a member is not in the table, or the array has another number of columns.
        """
        values = scores.select(self.columns).values if isinstance(scores, ScoreTable) else np.asarray(scores, float)
        if values.ndim != 3 or values.shape[1] != len(self.columns):
            raise OptionError(f"numbers of shape {values.shape}: {self.name} has (rows, {len(self.columns)}, runs)")
        held = dict(zip(self.fields, np.split(np.moveaxis(values, 1, 2), len(self.fields), axis=2), strict=True))
        choice, sets = held.get("choice"), held.get("set")
        valid = np.isfinite(values).all(axis=1)
        if choice is not None:
            valid &= choice.sum(axis=2) == 1
        if sets is not None:  # members that were scored apart may come from two answers
            valid &= sets.any(axis=2) & (choice is None or (choice <= sets).all(axis=2))
        return OptionAnswers(
            self.options,
            valid,
            None if choice is None else np.where(valid, choice.argmax(axis=2), -1),
            None if sets is None else np.where(valid[..., None], sets, np.nan),
        )

    @property
    def output(self) -> Output:
        """1 where the answer meets the positive options, else 0."""
        positive = ", ".join(self.settings.positive)
        meets = f"1 where the answer meets {positive}; else 0" if positive else "no number: no option is positive"
        return Output(self.name, higher_is_better=True if positive else None, description=meets)

    @property
    def family_card(self) -> MetricCard:
        """The generated card."""
        return self.card_with(
            name=str(self.settings.question),
            summary=self.summary,
            formula=f"For each of {', '.join(self.options)}: 1 where the model gives it after its reasons, else 0.",
            best_for=("Comparing judges with raters who may rightly disagree",),
            not_for=("Ranking outputs: an option is better neither way, unless options are declared positive",),
            limits=("The order in which options are shown may sway a model",),
            failure_cases=("Texts beyond the model's context", "Questions that the output alone does not settle"),
            papers=("Validating LLM-as-a-Judge Systems in the Absence of Gold Labels (Guerdan et al., 2025)",),
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, {len(self.options)} options)"


class OptionMember(Member):
    """One option of a judge as a metric, 1 where the judge gives it and else 0; made by the judge's ``members``.

    Neither number is better, so that a judgement has no score and `as_metric` refuses. A name that the judge has no
    option for is a `StateError`.
    """

    kind = "option_member"
    askers = ("choice_judge", "response_set_judge")
    asker: OptionsJudge

    def __init__(self, asker: OptionsJudge, name: str) -> None:
        super().__init__(asker, name)
        if name not in asker.columns:
            raise StateError(f"{asker.name} has no member {name!r}{nearest(name, asker.columns)}; take its members()")

    @property
    def output(self) -> Output:
        """0 or 1, neither of which is better."""
        part, option = self.asker.columns[self.name]
        does = "holds possible" if self.asker.fields.get("set") == part else "chooses"
        return Output(self.name, higher_is_better=None, description=f"1 where the judge {does} {option!r}, else 0")

    @property
    def card(self) -> MetricCard:
        """The judge's card, for one of its options."""
        return replace(self.asker.card, name=self.name, kind=self.kind, outputs=(self.output,))

    def own(self, answer: dspy.Prediction) -> dspy.Prediction:
        """1 or 0; the reasons stand with the options that were given."""
        part, option = self.asker.columns[self.name]
        given = answer[part] if isinstance(answer[part], frozenset) else {answer[part]}
        return dspy.Prediction(raw=float(option in given), feedback=answer.feedback if option in given else "")

    def as_metric(self, **options: Any) -> Reward:
        """Nothing but an `OptionError`."""
        say = f"take the judge itself, made with positive=[{self.asker.columns[self.name][1]!r}]"
        raise OptionError(f"{self.name} has no score, because neither 0 nor 1 is better: {say}")

    as_reward = as_metric


class ChoiceJudge(OptionsJudge):
    """Answers a question about an output with one of several options (a forced choice).

    Scored, it is one column of 0 and 1 for each option (`members`), all from one request. ``forward`` returns
    ``choice``, ``raw``, its place among the options, ``feedback``, and ``score`` if options are positive. An answer
    that is none of the options, but for case and white space, is a failure.

    Parameters
    ----------
    options : sequence of str
        At least two, different, each of one line.
    question : str
        The question about an output that the options answer.
    task : str
        What the outputs are made for.
    positive : str or sequence of str, optional
        The options that count as a success.
    name : str, optional
        Of the judge; by default made from the question. Judges that are scored together need different names.

    Raises
    ------
    OptionError
        If an argument has no meaning.

    Examples
    --------
    >>> judge = ChoiceJudge(["yes", "no"], "Is the reply rude?", "Answer letters.", name="rude")
    >>> [member.name for member in judge.members()]
    ['rude=yes', 'rude=no']
    """

    kind = "choice_judge"
    summary = "A language model answers a question about the output with one of the options."
    fields: ClassVar[Mapping[str, str]] = {"choice": "choice"}

    def __init__(
        self, options: Sequence[str], question: str, task: str, positive: str | Sequence[str] | None = None, *,
        name: str = "",
    ) -> None:  # fmt: skip
        super().__init__(options, question, task, positive, name)

    @classmethod
    def typed(cls, settings: Mapping[str, Any]) -> type[dspy.Signature]:
        """One of the options."""
        return with_options(ChooseOption, tuple(settings["options"]))

    def read(self, answer: Any, text: RowText) -> dspy.Prediction:
        """The choice and its place."""
        choice = _one_of(answer.choice, self.options)
        return self.prediction_of([choice], answer.reasoning, choice=choice, raw=self.options.index(choice))


class ResponseSetJudge(OptionsJudge):
    """Names every option that a reasonable rater could give in answer to a question about an output.

    With `forced` the same answer says which one the model would give if it had to give one. Scored, it is one column
    for each option of the set (``judge=option``) and with `forced` one for each option of the choice
    (``judge->option``), all from one request; `answers` pairs them. Score the whole judge: members that are scored
    apart rest on different answers. ``forward`` returns ``choice``, a frozenset, ``forced_choice`` if it is asked for,
    ``raw`` (None), ``feedback``, and ``score`` if options are positive: 1 where one of them is in the set. A set that
    is empty or has an option twice, and a choice that is not in the set, are failures.

    Parameters
    ----------
    options, question, task, positive, name
        As for `ChoiceJudge`, and so are errors.
    forced : bool
        Whether the one choice is asked for, too.

    References
    ----------
    Guerdan et al. (2025), "Validating LLM-as-a-Judge Systems in the Absence of Gold Labels", section 2. Their set and
    choice come from two requests, which says nothing of how they go together.
    """

    kind = "response_set_judge"
    summary = "A language model names every option that a reasonable rater could give about the output."
    saves: ClassVar[schema.Checks] = {**OptionsJudge.saves, "forced": schema.FLAG}

    def __init__(
        self, options: Sequence[str], question: str, task: str, positive: str | Sequence[str] | None = None, *,
        forced: bool = True, name: str = "",
    ) -> None:  # fmt: skip
        super().__init__(options, question, task, positive, name, forced=bool(forced))

    @classmethod
    def typed(cls, settings: Mapping[str, Any]) -> type[dspy.Signature]:
        """A list of the options, and one of them if it is asked for."""
        return with_options(ListAndChoose if settings["forced"] else ListOptions, tuple(settings["options"]))

    @property
    def fields(self) -> Mapping[str, str]:
        """The set, and the choice if it is asked for."""
        return {"set": "choice", **({"choice": "forced_choice"} if self.settings.forced else {})}

    def read(self, answer: Any, text: RowText) -> dspy.Prediction:
        """The set, and the choice among it."""
        given = [_one_of(one, self.options) for one in answer.possible]
        if not given or len(set(given)) < len(given):
            fault = f"has an option twice: {', '.join(given)}" if given else "is empty, and at least one is possible"
            raise JudgementFailed(f"possible {fault}", Status.UNPARSABLE)
        forced = {"forced_choice": _one_of(answer.choice, given)} if self.settings.forced else {}
        return self.prediction_of(given, answer.reasoning, choice=frozenset(given), raw=None, **forced)


def _judgement(metric: Any, call: Call, run: int, usage: Usage) -> Judgement:
    """The judgement of a member, or of the judge itself, out of one call."""
    if call.prediction is None:
        return Judgement(metric.name, status=call.status, error=call.error, run=run, usage=usage)
    own = metric.own(call.prediction)
    return Judgement(metric.name, own.raw, own.get("score"), own.feedback, run=run, usage=usage)


def _one_of(option: str, options: Sequence[str]) -> str:
    if option not in options:
        raise JudgementFailed(f"the choice {option!r:.80} is not among: {', '.join(options)}", Status.UNPARSABLE)
    return option


def _no_score(judge: OptionsJudge) -> str:
    return (
        f"{judge.name} has no score, because none of its options is better than another: say which count as a success, "
        f"say positive=[{judge.options[0]!r}]"
    )


def _check_options(options: Any) -> None:
    """Raise an `OptionError` unless these are at least two different texts of one line each."""
    if isinstance(options, str) or not isinstance(options, Sequence) or not 2 <= len(options) <= schema.ITEMS:
        raise OptionError(f"options={options!r:.80} must be a list of two to {schema.ITEMS}, say ['yes', 'no']")
    for place, option in enumerate(options):
        line = isinstance(option, str) and option.splitlines() == [option.strip()] and MARKER not in option
        if not line or len(option) > schema.NAME or option != option.encode("utf-8", "ignore").decode("utf-8"):
            raise OptionError(
                f"options: {option!r:.80} must be a text of one line, of at most {schema.NAME} Unicode characters, "
                "without white space at its ends"
            )
        if option in options[:place]:
            raise OptionError(f"options: {option!r} is there twice; give each option once")
