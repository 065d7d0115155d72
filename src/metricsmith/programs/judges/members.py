"""One of the numbers that an asker's answer holds, as a metric of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import dspy

from metricsmith.metric import Metric, content_hash
from metricsmith.programs import schema
from metricsmith.programs.judges.base import MetricProgram
from metricsmith.programs.judges.catalogue import judge_class
from metricsmith.programs.kinds import nested
from metricsmith.programs.state import Settings
from metricsmith.records import Judgement

__all__ = ["Member", "join_askers"]


class Member(MetricProgram):
    """One number of an asker; made by the asker's ``members``.

    Parameters
    ----------
    asker : ModelAsker
        Stands in the attribute ``asker``.
    name : str
        Of the number among the asker's.
    """

    kind: ClassVar[str]
    askers: ClassVar[tuple[str, ...]]  # the kinds that a file of this one may hold
    asker: Any

    @classmethod
    def saved(cls) -> schema.Check:
        """The check of `to_state`'s result, its kind aside."""
        return schema.keys(name=schema.text(schema.NAME), panel=nested(*cls.askers))

    def __init__(self, asker: Any, name: str) -> None:
        super().__init__()
        self.asker = asker
        self.settings = Settings(name=name)

    def own(self, answer: dspy.Prediction) -> dspy.Prediction:
        """The number of this member in the asker's answer: a Prediction, or `JudgementFailed`."""
        raise NotImplementedError

    def forward(self, **texts: Any) -> dspy.Prediction:
        """Judge one row, texts as for the asker: a Prediction with ``raw`` and ``feedback``, and ``score`` if any."""
        return self.own(self.asker(**texts))

    async def aforward(self, **texts: Any) -> dspy.Prediction:
        """Judge one row as `forward` does, asynchronously."""
        return self.own(await self.asker.acall(**texts))

    def judge_batch(self, rows: Sequence[dspy.Example], *, run: int = 0) -> list[Judgement]:
        """Judge rows one after the other; `scoring.score` asks for all members of an asker together."""
        return [self.asker.ask([self], row, [run])[0][0] for row in rows]

    def fingerprint(self) -> str:
        """A hash of the whole asker and of this member's name."""
        return content_hash(self.kind, self.asker.fingerprint(), self.name)

    def to_state(self) -> dict[str, Any]:
        """JSON-ready state: the whole asker's, and the member's name."""
        return {"kind": self.kind, "name": self.name, "panel": self.asker.to_state()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Build a member, with an asker of its own, from `to_state`'s result."""
        asker = state["panel"]
        return cls(judge_class(asker["kind"]).from_state(asker), state["name"])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, one of {len(self.asker.members())})"


def join_askers(metrics: Iterable[Metric]) -> None:
    """Let members of equal askers share one, as they did before they were saved; changes them in place."""
    first: dict[str, Any] = {}
    for metric in metrics:
        modules = metric.named_sub_modules(Member) if isinstance(metric, dspy.Module) else ()
        for _, member in modules:
            member.asker = first.setdefault(member.asker.fingerprint(), member.asker)
