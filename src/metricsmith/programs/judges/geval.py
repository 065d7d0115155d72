"""G-Eval: a judge that works through written steps, and whose number may be an expectation over the scale."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Literal, get_args

import dspy

from metricsmith.datasets.ratings import as_scale
from metricsmith.errors import OptionError, nearest
from metricsmith.metric import Metric, RowText, row_text
from metricsmith.model_calls.calls import model_calls
from metricsmith.model_calls.models import check_sampling
from metricsmith.programs import schema
from metricsmith.programs.asked_scale import scale_words
from metricsmith.programs.judges.base import LEVELS, Judge, slug
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.levels import level_shares, levels, stated_level
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.records import Judgement, MetricCard, Scale
from metricsmith.scoring.plan import model_of
from metricsmith.signatures.judgement import JudgeBySteps

__all__ = ["GEval", "Mode"]

Mode = Literal["logprob", "sampled", "stated"]
MODES: tuple[str, ...] = get_args(Mode)
MOST_ALTERNATIVES = 20  # that OpenAI, Gemini and vLLM's default list at most; some servers list 5
MIN_MASS = 0.9  # the rest can then move the mean of levels 1 to 5 by .4, less than rounding does
MOST_LEVELS = 101


class GEval(Judge):
    """Rates one criterion by evaluation steps, reasons first (G-Eval; AutoMetrics, section 3.1 and appendix).

    The meaning of the number depends on `mode`, and no mode ever stands in for another:

    ``logprob``
        The expected level, ``sum of p(k) k``, with p from the log-probabilities of the token that opens the
        score's value, renormalised over the levels. Where the server gives none, or less than `min_mass` of
        the probability stands on levels, the judgement fails as ``unparsable``.
    ``sampled``
        The mean of `n` answers, by `Repeated` without outliers: half of them, rounded up, must have a number.
        One request carries all n where the provider takes that. The model's temperature must be above .15.
    ``stated``
        The level that the model wrote.

    The feedback is the rationale, after a few words on how the number came about.

    Parameters
    ----------
    criterion, meaning, task, name
        As for `CriterionJudge`; the default name ends in ``_geval_`` and the mode.
    steps : sequence of str
        What to look at, in order, without numbering; `StepsGenerator` writes them.
    mode : "logprob", "sampled" or "stated"
        See above; there is no default.
    n : int, optional
        Answers per judgement, at least 2; for ``sampled``, and only there.
    scale : Scale, str or mapping
        Text such as ``1:5:1`` will do. In steps of 1 between whole numbers, at most 101 levels; 1 to 5 if not given.
        With ``logprob`` every level is a single digit, from 0 to 9: of a level such as 10 some vocabularies make two
        tokens, and then the probability of a 1 is in part that of a 10.
    top_logprobs : int
        How many alternatives to ask for, from 1 to 20, with ``logprob``.
    min_mass : float
        In (0, 1], with ``logprob``. The rest of the probability can move the mean by at most
        ``(1 - min_mass) * (high - low)``: .4 levels by default.

    Raises
    ------
    OptionError
        If an argument has no meaning.

    Notes
    -----
    Some servers' log-probabilities already contain the temperature, those of others do not; leave the temperature
    at 1, or compare no numbers across servers. An answer that was repaired has the probabilities of the repair.

    Examples
    --------
    >>> judge = GEval(criterion="Plain words", meaning="Every word is short.", steps=["Look for long words."],
    ...               task="Rewrite notices.", mode="logprob")
    >>> judge.name
    'plain_words_geval_logprob'
    """

    kind = "geval_judge"
    signature = JudgeBySteps
    saves: ClassVar[schema.Checks] = {
        **CriterionJudge.saves, "steps": schema.list_of(schema.text(least=1), schema.ITEMS, 1), "scale": schema.SCALE,
        "mode": schema.one_of(*MODES), "n": schema.maybe(schema.number(2, schema.RUNS, whole=True)),
        "top_logprobs": schema.number(1, MOST_ALTERNATIVES, whole=True), "min_mass": schema.SHARE,
    }  # fmt: skip

    def __init__(
        self,
        *,
        criterion: str,
        meaning: str,
        steps: Sequence[str],
        task: str,
        mode: Mode,
        n: int | None = None,
        scale: Scale | str | Mapping[str, Any] = LEVELS,
        top_logprobs: int = MOST_ALTERNATIVES,
        min_mass: float = MIN_MASS,
        name: str = "",
    ) -> None:
        if isinstance(steps, str) or not steps or not all(step.strip() for step in steps):
            raise OptionError(f"steps={steps!r} must be a list of texts, none empty: say what to look at, in order")
        if mode not in MODES:
            raise OptionError(f"unknown mode={mode!r}{nearest(str(mode), MODES)}; allowed are {', '.join(MODES)}")
        _check_n(mode, n)
        plain = asdict(as_scale(scale))
        _check_scale(Scale(**plain), mode)
        if isinstance(top_logprobs, bool) or top_logprobs not in range(1, MOST_ALTERNATIVES + 1):
            raise OptionError(f"top_logprobs={top_logprobs!r} must be a whole number from 1 to {MOST_ALTERNATIVES}")
        if not 0 < min_mass <= 1:
            raise OptionError(f"min_mass={min_mass!r} must be above 0 and at most 1")
        super().__init__(
            name=name or f"{slug(criterion)}_geval_{mode}", criterion=criterion, meaning=meaning, steps=list(steps),
            task=task, mode=mode, n=n, scale=plain, top_logprobs=top_logprobs, min_mass=min_mass,
        )  # fmt: skip

    @property
    def scale(self) -> Scale:
        """The scale whose whole numbers the model may give."""
        return Scale(**self.settings.scale)

    @property
    def samples(self) -> int:
        """The number of answers that one judgement takes."""
        return int(self.settings.n) if self.settings.mode == "sampled" else 1

    @property
    def numbers(self) -> int:
        """One request brings the answers of one judgement."""
        return self.samples

    @property
    def request(self) -> Mapping[str, Any]:
        """With mode ``logprob``, the setting that asks for log-probabilities."""
        if self.settings.mode != "logprob":
            return {}
        return {"logprobs": True, "top_logprobs": int(self.settings.top_logprobs)}

    def question(self) -> Mapping[str, str]:
        """Task, criterion, numbered steps and scale."""
        return {
            **super().question(),
            "steps": "\n".join(f"{number}. {step}" for number, step in enumerate(self.settings.steps, 1)),
            "scale": scale_words(self.scale),
        }

    def forward(  # type: ignore[override]  # it cannot be specialised: no system, no rater
        self, *, output: str, input: str = "", references: Sequence[str] = (), context: str = ""
    ) -> dspy.Prediction:
        """Judge one row.

        Returns
        -------
        dspy.Prediction
            ``score``, ``raw`` and ``feedback`` as every judge's; ``stated`` is the level that was written, and
            with mode ``logprob`` ``shares`` are those of the levels and ``covered`` their sum before renormalising.

        Raises
        ------
        JudgementFailed
            If there is no such number.
        OptionError
            With mode ``sampled``, if the model's temperature is not set above .15.
        """
        text = RowText(output, input, tuple(references), context)
        if self.settings.mode == "sampled":
            return self.prediction(self._sample(text, [0])[0])
        return super().forward(**asdict(text))

    async def aforward(self, **texts: Any) -> dspy.Prediction:
        """Judge one row as `forward` does, without blocking the event loop."""
        if self.settings.mode == "sampled":
            return await asyncio.to_thread(GEval.forward, self, **texts)  # `self.forward` makes DSPy warn
        return await super().aforward(**texts)

    def read(self, answer: Any, text: RowText) -> dspy.Prediction:
        """Read one answer; the log-probabilities are taken off it, since DSPy would put them into demonstrations.

        The score is a text field in every mode, so that an answer means the same with log-probabilities and without.
        """
        logprobs = answer.toDict().get("logprobs")
        if "logprobs" in answer:
            del answer["logprobs"]
        scale, mode = self.scale, self.settings.mode
        stated = stated_level(answer.score, scale)
        if mode != "logprob":
            words = f"{stated} as stated: " if mode == "stated" else ""
            return dspy.Prediction(
                score=scale.unit(stated), raw=stated, feedback=f"{words}{answer.reasoning}", stated=stated
            )
        spread = level_shares(logprobs, stated, scale, self.settings.min_mass)
        words = (
            f"{spread.mean:.2f} expected by log-probability ({spread}; {spread.covered:.0%} covered), {stated} stated"
        )
        return dspy.Prediction(
            score=scale.unit(spread.mean), raw=spread.mean, feedback=f"{words}: {answer.reasoning}", stated=stated,
            shares=dict(spread.shares), covered=spread.covered,
        )  # fmt: skip

    def ask(self, metrics: Sequence[Metric], row: dspy.Example, runs: Sequence[int]) -> list[list[Judgement]]:
        """Judge one row once for each of `runs`, with mode ``sampled`` by `n` answers each.

        The mean of the `n` is one judgement in a store; `Repeated` around a judge of mode ``stated`` keeps every run.
        """
        if self.settings.mode != "sampled":
            return super().ask(metrics, row, runs)
        return [self._sample(row_text(row), runs)] * len(metrics)

    def _sample(self, text: RowText, runs: Sequence[int]) -> list[Judgement]:
        n = self.samples
        check_sampling(model_of(self), n)
        numbers = [run * n + place for run in runs for place in range(n)]
        calls = model_calls(_Answer(self), numbers, **asdict(text))
        parts = [self._judgement(call, number) for call, number in zip(calls, numbers, strict=True)]
        mean = Repeated(self, n, "mean", self.name, outliers=None)
        return [mean.verdict(parts[place * n : (place + 1) * n], run) for place, run in enumerate(runs)]

    @property
    def family_card(self) -> MetricCard:
        """The generated card."""
        scale, limits = self.scale, ["Criterion and steps were written by a model from a few rated examples"]
        if self.settings.mode == "logprob":
            how = "the mean over the levels by the log-probabilities of the score's token"
            limits.append("Needs log-probabilities; judgements fail where the server gives none")
        elif self.settings.mode == "sampled":
            how = f"the mean of {self.samples} sampled answers"
            limits.append(f"Takes {self.samples} answers a row, from a model with a temperature above .15")
        else:
            how = "the level that the model states"
            limits.append(f"{len(levels(scale))} levels tie often")
        return self.card_with(
            name=f"{self.settings.criterion} (G-Eval, {self.settings.mode})",
            summary=f"A language model goes through {len(self.settings.steps)} steps and rates one criterion "
            f"from {scale}. {self.settings.meaning}",
            formula=f"Mode {self.settings.mode}: {how}, after these steps: {' '.join(self.settings.steps)}",
            best_for=(f"Checking {self.settings.criterion.lower()} in finer shades than whole levels",),
            not_for=("Judging overall quality: it looks at nothing but its criterion",),
            limits=(*limits, "Another model may use the levels differently"),
            failure_cases=("Texts beyond the model's context", "Topics on which the model itself is wrong"),
            papers=("G-Eval (Liu et al., 2023)", "AutoMetrics, section 3.1 and appendix (G-Eval)"),
        )


class _Answer(dspy.Module):  # type: ignore[misc]
    """One of several sampled answers: a single request of the judge's own predictor."""

    def __init__(self, judge: GEval) -> None:
        super().__init__()
        self.sampled = judge

    def forward(self, **texts: Any) -> dspy.Prediction:
        return Judge.forward(self.sampled, **texts)

    async def aforward(self, **texts: Any) -> dspy.Prediction:
        return await Judge.aforward(self.sampled, **texts)


def _check_n(mode: str, n: Any) -> None:
    if mode != "sampled" and n is not None:
        raise OptionError(f"n={n!r} has no meaning with mode={mode!r}; leave it out, or use mode='sampled'")
    if mode == "sampled" and (isinstance(n, bool) or not isinstance(n, int) or n < 2):
        raise OptionError(f"n={n!r} must be a whole number from 2 with mode='sampled': how many answers to average")


def _check_scale(scale: Scale, mode: str) -> None:
    if scale.step != 1 or scale.low % 1 or scale.high % 1 or scale.width >= MOST_LEVELS:
        raise OptionError(
            f"the scale {scale} must go in steps of 1 between whole numbers, with at most {MOST_LEVELS} levels: "
            "write Scale(1, 5, 1)"
        )
    if mode == "logprob" and not (scale.low >= 0 and scale.high <= 9):
        raise OptionError(
            f"with mode='logprob' every level must be one digit, and the scale goes from {scale}: a number of two "
            "digits may be two tokens; use a scale such as 1 to 5, or mode='sampled'"
        )
