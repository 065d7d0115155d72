"""A judge's examples, chosen for each row out of a history, as data that travel with the judge."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import dspy

from metricsmith.datasets.history import HistoricalRating, History
from metricsmith.metric import content_hash, labels_of
from metricsmith.model_calls.limits import estimate_tokens
from metricsmith.programs.specialist.choosing import Choice, Chooser, ExamplePolicy, Judged, NoExample
from metricsmith.programs.specialist.leaks import check_examples
from metricsmith.records import ErrorSpan

__all__ = ["ROW_EXAMPLES", "RowExamples", "Shown", "judged", "takes_examples"]

Render = Callable[[HistoricalRating], Mapping[str, Any]]  # a rating as a demonstration
notes = logging.getLogger("metricsmith.notes")  # what is worth a line on the terminal, once
ROW_EXAMPLES = "row_examples"  # the setting in which a specialist keeps them
CUT = "beyond max_tokens"


@dataclass(frozen=True, slots=True)
class Shown:
    """The examples of one row: the choice, the ratings, and the demonstrations that a prompt has of them."""

    choice: Choice
    ratings: tuple[HistoricalRating, ...]
    demonstrations: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, eq=False)
class RowExamples:
    """The examples of every row: a history, the policy, and the systems that are one.

    Parameters
    ----------
    history : History
    policy : ExamplePolicy
    joined : mapping of str to str
        As `metricsmith.datasets.history.joined_systems` gives it.
    filtered : bool
        Leave out of the examples the errors that people marked in the row itself, and examples of an equal output. It
        reads the row's own rating and is an analysis, not a way to judge: a file with such examples cannot be loaded.
    compared : frozenset of str
        Systems that the history does not have and that `joined` was made with: of others a warning is due.
    """

    history: History
    policy: ExamplePolicy
    joined: Mapping[str, str] = field(default_factory=dict)
    filtered: bool = False
    compared: frozenset[str] = frozenset()

    def __deepcopy__(self, memo: Any) -> RowExamples:
        return self

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the policy, the history's content and the systems that are one."""
        return content_hash(self.policy.to_dict(), self.history.checksum, dict(self.joined), self.filtered)

    @cached_property
    def _chooser(self) -> Chooser:
        return Chooser(self.history, self._rule, self.joined)

    @property
    def _rule(self) -> ExamplePolicy:
        """The policy that is followed."""
        return replace(self.policy, same_output="drop") if self.filtered else self.policy

    @cached_property
    def _known(self) -> set[str]:
        """Systems of the history, those that were compared with them, and those that a warning named already."""
        return {*self.history.systems, *self.compared}

    @cached_property
    def _own(self) -> dict[tuple[str, str, str, str], set[tuple[str, str]]]:
        """The texts that people marked, with their sides, by source, output, system and rater."""
        found: dict[tuple[str, str, str, str], set[tuple[str, str]]] = {}
        for one in self.history.ratings:
            marked = found.setdefault((one.source, one.output, one.system, one.rater), set())
            marked.update((span.side, span.text) for span in one.spans or () if span.side == "target")
        return found

    def of(self, row: Judged) -> Shown:
        """The examples of a row, before anything is rendered or cut to a number of tokens.

        Raises
        ------
        DataError
            As `Chooser.choose`.
        """
        choice = self._chooser.choose(row)
        if row.system and row.system not in self._known:
            self._known.add(row.system)
            notes.warning(
                "%r is a system that %s does not have: if it is one of those under another name, its own ratings are "
                "shown; Specialist.compile(..., test=rows) finds that out", row.system, self.history.name,
            )  # fmt: skip
        ratings = tuple(self.history.ratings[place] for place in choice.places)
        if self.filtered:
            gold = self._own.get((row.source, row.output, row.system, row.rater), set())
            ratings = tuple(replace(one, spans=_without(one.spans, gold)) for one in ratings)
        return Shown(choice, ratings)

    def rendered(
        self,
        row: Judged,
        render: Render,
        texts: Callable[[Mapping[str, Any]], tuple[str, str]],
        marks: Callable[[Mapping[str, Any]], Any],
    ) -> Shown:
        """The examples of a row as demonstrations, each looked at a second time (`check_examples`).

        Parameters
        ----------
        row : Judged
        render : callable
            From a rating to a demonstration.
        texts, marks : callable
            From a demonstration to the source and the output, and to the marks, that it shows.

        Raises
        ------
        DataError
            As `Chooser.choose`, or if `max_tokens` leaves no example.
        LeakedExample
            If a demonstration shows what the row must not see.
        """
        shown = self.of(row)
        demonstrations = [render(one) for one in shown.ratings]
        kept = len(demonstrations)
        if self.policy.max_tokens is not None:
            kept, left = 0, self.policy.max_tokens
            for demonstration in demonstrations:
                left -= sum(estimate_tokens(str(value)) for value in demonstration.values())
                if left < 0:
                    break
                kept += 1
            if demonstrations and not kept:
                raise NoExample(
                    f"the first example for {row.system!r} on the source {row.source[:60]!r} alone has more than "
                    f"max_tokens={self.policy.max_tokens}: allow more"
                )
        choice, finished = shown.choice, demonstrations[:kept]
        if self.filtered:  # which takes marks away on purpose: those of the whole ratings are looked for
            finished = [render(self.history.ratings[place]) for place in choice.places[:kept]]
        check_examples(
            [(*texts(one), marks(one)) for one in finished], row, self._rule, self.history,
            lambda place: marks(render(self.history.ratings[place])), self.joined,
        )  # fmt: skip
        if kept < len(demonstrations):
            excluded = {**choice.excluded, CUT: len(demonstrations) - kept}
            choice = replace(choice, places=choice.places[:kept], excluded=excluded)
        return Shown(choice, shown.ratings[:kept], tuple(demonstrations[:kept]))

    def to_state(self) -> dict[str, Any]:
        """JSON-ready state from which `from_state` builds equal examples."""
        state: dict[str, Any] = {"policy": self.policy.to_dict(), "joined": dict(self.joined)}
        state["history"] = self.history.to_state()
        state |= {"compared": sorted(self.compared)} if self.compared else {}
        return {**state, "filtered": True} if self.filtered else state  # which no file may have

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> RowExamples:
        """Build from `to_state`'s result."""
        return cls(
            History.from_state(state["history"]), ExamplePolicy(**state["policy"]), state["joined"],
            "filtered" in state, frozenset(state.get("compared", ())),
        )  # fmt: skip


def judged(row: dspy.Example) -> Judged:
    """The texts and labels of a row by which its examples are chosen."""
    return Judged(*labels_of(row, ("input", "output", "system", "rater")).values())


def _without(spans: Iterable[ErrorSpan] | None, gold: set[tuple[str, str]]) -> tuple[ErrorSpan, ...] | None:
    return None if spans is None else tuple(span for span in spans if (span.side, span.text) not in gold)


def takes_examples(module: Any) -> bool:
    """False for a specialist, whose examples change from row to row, and for a judge that has no place for any."""
    return getattr(module, ROW_EXAMPLES, None) is None and bool(getattr(module, "shows_examples", True))
