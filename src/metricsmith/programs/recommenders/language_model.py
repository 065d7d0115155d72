"""The second stage: a language model ranks the cards that the first stage left, by names that are checked."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unicodedata import category

import dspy

from metricsmith.errors import OptionError
from metricsmith.metric import fence
from metricsmith.model_calls.adapters import messages_of
from metricsmith.model_calls.calls import model_call
from metricsmith.model_calls.limits import estimate_tokens
from metricsmith.programs.recommenders.base import Recommendation, Recommender, brief, check_pool, unscored
from metricsmith.programs.recommenders.bm25 import BM25Recommender
from metricsmith.programs.state import Settings
from metricsmith.records import MetricCard, Task
from metricsmith.signatures.ranking import RankMetrics

__all__ = ["FittedCards", "LMRecommender", "MatchedNames", "PipelineRecommender", "fit_cards", "match_names"]


class LMRecommender(dspy.Module):  # type: ignore[misc]
    """Asks the language model in force for the names of the most promising cards, in one request.

    Names are checked against the pool (`match_names`); what no card carries is reported, never dropped in
    silence. Cards are shown in the pool's order, whole as long as they fit, as name and summary from there.

    Parameters
    ----------
    max_prompt_tokens : int
        The longest prompt, in estimated tokens: four ASCII characters, or one other character, make one
        (`estimate_tokens`).
    """

    def __init__(self, *, max_prompt_tokens: int = 32_000) -> None:
        super().__init__()
        self.settings = Settings(max_prompt_tokens=max_prompt_tokens)
        self.rank = dspy.Predict(RankMetrics)

    def forward(self, *, task: str, target: str, cards: Sequence[MetricCard], k: int = 30) -> dspy.Prediction:
        """Return a Prediction with ``names`` (at most `k`), ``unknown``, ``summarised`` and ``reasoning``.

        Parameters
        ----------
        task, target : str
            The purpose of the outputs; the rating to follow.
        cards : sequence of MetricCard
            The pool; names must differ.
        k : int
            The number of names to return, at least 1.

        Raises
        ------
        OptionError
            If the pool cannot be used, or its shortest form does not fit into the prompt.
        """
        fitted = self._fit(task, target, cards, k)
        return _checked(self.rank(task=task, target=target, cards=fitted.text, k=k), cards, k, fitted)

    async def aforward(self, *, task: str, target: str, cards: Sequence[MetricCard], k: int = 30) -> dspy.Prediction:
        """Rank cards asynchronously; arguments, result and errors are those of `forward`."""
        fitted = self._fit(task, target, cards, k)
        answer = await self.rank.acall(task=task, target=target, cards=fitted.text, k=k)
        return _checked(answer, cards, k, fitted)

    def recommend(self, task: Task | str, cards: Sequence[MetricCard], k: int = 30) -> Recommendation:
        """Name `k` cards; places that the model leaves empty are filled in the order of the pool.

        Raises
        ------
        OptionError
            As `forward`.
        NeedsError
            If no language model is set.
        JudgementFailed, ModelFailure
            If the call fails; nothing is filled in for it, the caller decides.
        """
        check_pool(cards, k)
        description, target = (task, "") if isinstance(task, str) else (task.description, task.target)
        call = model_call(self, task=description, target=target, cards=cards, k=k)
        return replace(_completed(call.result(), cards, k), usage=call.usage)

    def _fit(self, task: str, target: str, cards: Sequence[MetricCard], k: int) -> FittedCards:
        check_pool(cards, k)
        inputs = {"task": task, "target": target, "cards": "", "k": k}
        messages = messages_of(self.rank.signature, self.rank.demos, inputs)
        around = sum(estimate_tokens(str(message["content"])) for message in messages)
        return fit_cards(cards, self.settings.max_prompt_tokens - around)


@dataclass(frozen=True, slots=True)
class FittedCards:
    """The pool as one text, in which the last `summarised` cards have name and summary only."""

    text: str
    summarised: int


def fit_cards(cards: Sequence[MetricCard], max_tokens: int) -> FittedCards:
    """Write out the cards, in order, so that they take at most `max_tokens` estimated tokens.

    Cards are whole up to the first that would leave too little room for the names and summaries of those
    behind it. No card is dropped.

    Raises
    ------
    OptionError
        If even names and summaries do not fit.
    """
    whole = [card.to_markdown() for card in cards]
    short = [brief(card).to_markdown() for card in cards]
    # A separator and the rounding cost less than one token each; the fence takes a fixed few.
    savings = [_size(long) - _size(brief) for long, brief in zip(whole, short, strict=True)]
    used = sum(map(_size, short)) + estimate_tokens(fence("x"))
    if used > max_tokens:
        raise OptionError(
            f"{len(cards)} metric cards do not fit into the prompt: names and summaries alone take about "
            f"{used} tokens, {max(max_tokens, 0)} are left; raise max_prompt_tokens or pass fewer cards"
        )
    count = 0
    while count < len(cards) and used + savings[count] <= max_tokens:
        used += savings[count]
        count += 1
    return FittedCards(fence("\n".join([*whole[:count], *short[count:]])), len(cards) - count)


def _size(text: str) -> int:
    return estimate_tokens(text) + 1


def _checked(answer: Any, cards: Sequence[MetricCard], k: int, fitted: FittedCards) -> dspy.Prediction:
    matched = match_names(answer.names, cards)
    return dspy.Prediction(
        names=list(matched.names[:k]),
        unknown=list(matched.unknown),
        summarised=fitted.summarised,
        reasoning=answer.reasoning,
    )


def _completed(answer: dspy.Prediction, cards: Sequence[MetricCard], k: int) -> Recommendation:
    """Complete a ranking to `k` names (or the whole pool) in the cards' order, with notes on all that was done."""
    wanted = min(k, len(cards))
    chosen = tuple(answer.names)
    rest = tuple(card.name for card in cards if card.name not in set(chosen))
    names = (chosen + rest)[:wanted]
    notes = []
    if answer.unknown:
        listed = ", ".join(repr(name) for name in answer.unknown)
        notes.append(f"the model named {len(answer.unknown)} metrics that are not in the pool: {listed}")
    if len(chosen) < wanted:
        notes.append(
            f"the model named {len(chosen)} of {wanted} metrics: the other {wanted - len(chosen)} follow in "
            "the order of the cards"
        )
    if answer.summarised:
        notes.append(f"for lack of room the model saw {answer.summarised} of {len(cards)} cards as name and summary")
    return Recommendation(names, unscored(names), tuple(answer.unknown), tuple(notes))


ORNAMENT = re.compile(r"^\s*(?:\d+\s*[.):]\s+|[-*•]\s+)?|\s+$")
QUOTES = "\"'`*“”‘’«» "


@dataclass(frozen=True, slots=True)
class MatchedNames:
    """Names of cards, in the order given and without repeats; the names that no card carries, as written."""

    names: tuple[str, ...]
    unknown: tuple[str, ...]


def match_names(given: Iterable[str], cards: Sequence[MetricCard]) -> MatchedNames:
    """Find the card of each name that a model wrote.

    A name is looked up exactly, then without regard to case, then without punctuation and spaces too; list
    numbers, bullets and quotes around it are taken off first. Symbols count (chrF++ is not chrF). Card names
    go before names of outputs (``rouge1_f`` means the card that yields it). A spelling that fits several
    cards equally well fits none and is unknown.

    Examples
    --------
    >>> from metricsmith.records import Output
    >>> cards = [MetricCard("BLEU", "bank", "", "", (Output("bleu"),))]
    >>> match_names(["1. `Bleu`", "BLEURT", "bleu"], cards)
    MatchedNames(names=('BLEU',), unknown=('BLEURT',))
    """
    tables: list[tuple[Callable[[str], str], dict[str, set[str]]]] = []
    by_name = [(card.name, card.name) for card in cards]
    by_output = [(output.name, card.name) for card in cards for output in card.outputs]
    for labels in (by_name, by_output):
        for key in (str, str.casefold, _loose):
            table: dict[str, set[str]] = {}
            for label, name in labels:
                table.setdefault(key(label), set()).add(name)
            tables.append((key, table))
    names: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for written in given:
        bare = ORNAMENT.sub("", written).strip(QUOTES)
        meant = next((found for key, table in tables if (found := table.get(key(bare)))), set())
        if len(meant) == 1:
            names[next(iter(meant))] = None
        else:
            unknown[written] = None
    return MatchedNames(tuple(names), tuple(unknown))


def _loose(name: str) -> str:
    """The name case-folded, without punctuation, separators and control characters."""
    return "".join(character for character in name.casefold() if category(character)[0] not in "PZC")


class PipelineRecommender(dspy.Module):  # type: ignore[misc]
    """Retrieval of AutoMetrics, section 3.2: one stage keeps `first_k` cards, a model ranks `k` of them.

    Without a second stage the first one's order stands. A failing model call raises; the caller decides.

    Parameters
    ----------
    first : Recommender, optional
        BM25 by default.
    second : LMRecommender, optional
        Sees the first stage's cards, best first, and fills up from that order.
    first_k : int
        Number of cards that the second stage sees (60 in the paper), never fewer than `k`.

    Raises
    ------
    OptionError
        If `first_k` is below 1.
    """

    def __init__(
        self, first: Recommender | None = None, second: LMRecommender | None = None, *, first_k: int = 60
    ) -> None:
        super().__init__()
        if first_k < 1:
            raise OptionError(f"first_k = {first_k} leaves nothing to rank: at least 1 (60 is the default)")
        self.first: Recommender = first if first is not None else BM25Recommender()
        self.second = second
        self.settings = Settings(first_k=first_k)

    def forward(self, *, task: str, target: str, cards: Sequence[MetricCard], k: int = 30) -> dspy.Prediction:
        """Return a Prediction with ``names`` and ``unknown``; see `LMRecommender.forward`."""
        kept, retrieved = self._narrow(f"{task}\n{target}", cards, k)
        if self.second is None:
            return dspy.Prediction(names=list(retrieved.names[:k]), unknown=[])
        return self.second(task=task, target=target, cards=kept, k=k)

    async def aforward(self, *, task: str, target: str, cards: Sequence[MetricCard], k: int = 30) -> dspy.Prediction:
        """Recommend asynchronously, the first stage in a thread that sees the caller's DSPy context."""
        kept, retrieved = await asyncio.to_thread(self._narrow, f"{task}\n{target}", cards, k)
        if self.second is None:
            return dspy.Prediction(names=list(retrieved.names[:k]), unknown=[])
        return await self.second.acall(task=task, target=target, cards=kept, k=k)

    def recommend(self, task: Task | str, cards: Sequence[MetricCard], k: int = 30) -> Recommendation:
        """Name `k` cards; see `Recommender.recommend`.

        Notes describe the work of each stage. `scores` are the first stage's where it alone decided, otherwise NaN.

        Raises
        ------
        OptionError
            If the pool or `k` cannot be used.
        NeedsError, JudgementFailed, ModelFailure
            The errors of `LMRecommender.recommend`.
        """
        kept, retrieved = self._narrow(task, cards, k)
        if self.second is None:
            return replace(retrieved, names=retrieved.names[:k], scores=retrieved.scores[:k])
        ranked = self.second.recommend(task, kept, k)
        dropped = len(cards) - len(kept)
        narrowed = (f"the first stage left out {dropped} of {len(cards)} cards",) if dropped else ()
        return replace(
            ranked,
            notes=(*retrieved.notes, *narrowed, *ranked.notes),
            usage=retrieved.usage + ranked.usage,
        )

    def _narrow(self, task: Task | str, cards: Sequence[MetricCard], k: int) -> tuple[list[MetricCard], Recommendation]:
        check_pool(cards, k)
        retrieved = self.first.recommend(task, cards, max(self.settings.first_k, k))
        by_name = {card.name: card for card in cards}
        return [by_name[name] for name in retrieved.names], retrieved
