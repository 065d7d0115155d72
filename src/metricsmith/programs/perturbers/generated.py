"""Perturbers that ask a language model: strategies of damage, the damage, and a change that does no harm."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import dspy

from metricsmith.errors import JudgementFailed, OptionError
from metricsmith.metric import RowText, fenced_texts, unfenced
from metricsmith.programs.perturbers.base import STRENGTHS, Strength
from metricsmith.records import Status
from metricsmith.signatures.generation import DamageOutput, ProposeDamage, RewriteOutput, Strategy

__all__ = [
    "IDENTICAL",
    "MOST",
    "DegradationStrategies",
    "Preserve",
    "Worsen",
    "bare",
    "checked_strategies",
    "one_each",
    "taken_over",
    "told_apart",
]

IDENTICAL = "the model gave the output back unchanged"
MOST = 3  # strategies (AutoMetrics, appendix C.3)
RUN = 6  # words in a row that no two texts share by chance, unless both speak of the task
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|\w+")  # a Chinese or Japanese character counts as a word
NUMBER = re.compile(r"\d{2,}")


class DegradationStrategies(dspy.Module):  # type: ignore[misc]
    """Proposes one to three ways to make outputs worse in one quality (AutoMetrics, section 3.2, "sensitivity")."""

    def __init__(self) -> None:
        super().__init__()
        self.propose = dspy.Predict(ProposeDamage)

    def forward(self, *, task: str, dimension: str, examples: str) -> dspy.Prediction:
        """Returns a Prediction with ``strategies``, 1 to 3 of `Strategy`; `checked_strategies` says which are refused.

        Parameters
        ----------
        task, dimension : str
            The purpose of the outputs; the quality, in words.
        examples : str
            Outputs with what they answer, as `shown_examples` writes them.
        """
        answer = self.propose(task=task, dimension=dimension, examples=examples)
        return dspy.Prediction(strategies=checked_strategies(answer.strategies, examples, f"{task} {dimension}"))

    async def aforward(self, *, task: str, dimension: str, examples: str) -> dspy.Prediction:
        """Asks asynchronously, otherwise as `forward`."""
        answer = await self.propose.acall(task=task, dimension=dimension, examples=examples)
        return dspy.Prediction(strategies=checked_strategies(answer.strategies, examples, f"{task} {dimension}"))


class Worsen(dspy.Module):  # type: ignore[misc]
    """Makes an output worse in one quality, once for each strategy, in one request."""

    def __init__(self) -> None:
        super().__init__()
        self.damage = dspy.Predict(DamageOutput)

    def forward(self, *, strategies: Sequence[Strategy], **asked: Any) -> dspy.Prediction:
        """Returns a Prediction with ``outputs``, a changed output for each strategy, in their order.

        An output may still be equal to the original or to another one: `told_apart` tells them.

        Parameters
        ----------
        task, dimension : str
            The purpose of the output; the quality, in words.
        output, input, context : str
        references : sequence of str
            `output` is changed; the others may be left out.
        strategies : sequence of Strategy
            At least one.
        strength : str
            ``subtle`` or ``obvious``.

        Raises
        ------
        JudgementFailed
            If there is not exactly one output for each strategy, or one is empty.
        OptionError
            If there is no strategy, or no such strength.
        """
        answer = self.damage(strategies=_some(strategies), **_fenced(**asked))
        return dspy.Prediction(outputs=one_each(answer.outputs, strategies))

    async def aforward(self, *, strategies: Sequence[Strategy], **asked: Any) -> dspy.Prediction:
        """Asks asynchronously, otherwise as `forward`."""
        answer = await self.damage.acall(strategies=_some(strategies), **_fenced(**asked))
        return dspy.Prediction(outputs=one_each(answer.outputs, strategies))


class Preserve(dspy.Module):  # type: ignore[misc]
    """Changes an output without loss or gain in one quality, or declines (AutoMetrics, section 3.2, "stability")."""

    def __init__(self) -> None:
        super().__init__()
        self.rewrite = dspy.Predict(RewriteOutput)

    def forward(self, **asked: Any) -> dspy.Prediction:
        """Returns a Prediction with ``output``, None if the model declined, and ``declined``, its reason or nothing.

        Parameters are those of `Worsen.forward` without strategies.

        Raises
        ------
        JudgementFailed
            If the model neither declined nor gave an output.
        OptionError
            If there is no such strength.
        """
        return _rewritten(self.rewrite(**_fenced(**asked)))

    async def aforward(self, **asked: Any) -> dspy.Prediction:
        """Asks asynchronously, otherwise as `forward`."""
        return _rewritten(await self.rewrite.acall(**_fenced(**asked)))


def checked_strategies(strategies: Sequence[Strategy], examples: str, about: str = "") -> list[Strategy]:
    """Returns the strategies as they are, if all of them can be used.

    Raises
    ------
    JudgementFailed
        If there are none or more than three, one has no name or description, two have the same (case and punctuation
        aside), or one is tied to an example (`taken_over`).
    """
    if not 1 <= len(strategies) <= MOST:
        raise JudgementFailed(f"there are {len(strategies)} strategies, 1 to {MOST} are wanted", Status.UNPARSABLE)
    for field in ("name", "description"):
        texts = [str(getattr(strategy, field)).strip() for strategy in strategies]
        if not all(texts):
            raise JudgementFailed(f"strategy {texts.index('') + 1} has no {field}", Status.UNPARSABLE)
        known = [" ".join(WORD.findall(text.casefold())) for text in texts]
        if len(set(known)) < len(known):
            raise JudgementFailed(f"two strategies have the same {field}; each must be another edit", Status.UNPARSABLE)
    for strategy in strategies:
        if seen := taken_over(f"{strategy.name}. {strategy.description}", examples, about):
            raise JudgementFailed(
                f"the strategy {strategy.name!r} takes {seen!r} from an example; it must fit every output for the task",
                Status.UNPARSABLE,
            )
    return list(strategies)


def taken_over(strategy: str, examples: str, about: str = "") -> str:
    """Returns the words or the number that tie a strategy to an example; empty if there are none.

    Six words in a row that stand in an example too, case and punctuation aside, tie it; so does a number of two digits
    or more. The words of `about`, the task's own, tie to nothing. Names are not looked for, since in German every noun
    has a capital. The rule also keeps instructions that stand in an example from travelling on in a strategy.
    """
    here, there, allowed = (WORD.findall(text.casefold()) for text in (strategy, examples, about))
    runs = set(_runs(there)) - set(_runs(allowed))
    shared = next((run for run in _runs(here) if run in runs), None)
    if shared is not None:
        return " ".join(shared)
    numbers = set(NUMBER.findall(examples)) - set(NUMBER.findall(about))
    return next((number for number in NUMBER.findall(strategy) if number in numbers), "")


def one_each(outputs: Sequence[str], strategies: Sequence[Strategy]) -> list[str]:
    """The outputs without marks; `JudgementFailed` unless there is exactly one for each strategy and none is empty."""
    if len(outputs) != len(strategies):
        raise JudgementFailed(
            f"there are {len(outputs)} outputs for {len(strategies)} strategies; exactly one for each is wanted, in "
            "their order",
            Status.UNPARSABLE,
        )
    texts = [unfenced(output) for output in outputs]
    for strategy, text in zip(strategies, texts, strict=True):
        if not text.strip():
            raise JudgementFailed(f"the output for the strategy {strategy.name!r} is empty", Status.UNPARSABLE)
    return texts


def told_apart(outputs: Sequence[str], names: Sequence[str], original: str) -> list[tuple[str | None, str]]:
    """Each output with no reason against it, or None and the reason: it is the original, or one that came before.

    Texts are compared as `bare` leaves them. An unchanged output is not asked for again: asked twice, a model changes
    what it held to be right.

    Parameters
    ----------
    outputs : sequence of str
    names : sequence of str
        The strategy of each, for the reason.
    original : str
    """
    first = {bare(original): IDENTICAL}
    changes: list[tuple[str | None, str]] = []
    for output, name in zip(outputs, names, strict=True):
        reason = first.get(bare(output), "")
        changes.append((None if reason else output, reason))
        first.setdefault(bare(output), f"the same output as by {name!r}")
    return changes


def bare(text: str) -> str:
    """Returns a text without the parts that models do not keep: line ends, and white space before and after."""
    return "\n".join(text.splitlines()).strip()


def _rewritten(answer: Any) -> dspy.Prediction:
    if answer.declines:
        return dspy.Prediction(output=None, declined=answer.reason.strip() or "no reason was given")
    text = unfenced(answer.changed)
    if not text.strip():
        raise JudgementFailed("the changed output is empty, and the answer does not decline", Status.UNPARSABLE)
    return dspy.Prediction(output=text, declined="")


def _fenced(
    *,
    task: str,
    dimension: str,
    output: str,
    strength: Strength,
    input: str = "",
    references: Sequence[str] = (),
    context: str = "",
) -> dict[str, Any]:
    if strength not in STRENGTHS:
        raise OptionError(f"strength={strength!r} must be one of {', '.join(STRENGTHS)}")
    texts = fenced_texts(RowText(output=output, input=input, references=tuple(references), context=context))
    return {"task": task, "dimension": dimension, **texts, "strength": strength}


def _some(strategies: Sequence[Strategy]) -> list[Strategy]:
    if not strategies:
        raise OptionError("there is no strategy to make the output worse by: ask DegradationStrategies for some")
    return list(strategies)


def _runs(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns all runs of `RUN` words, in order."""
    return [tuple(words[start : start + RUN]) for start in range(len(words) - RUN + 1)]
