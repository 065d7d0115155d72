"""Answers for panels: what a well-behaved model says about each criterion, and ways to say it wrongly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loopback import scripted
from metricsmith.programs.judges.criterion import CriterionJudge, RubricJudge
from metricsmith.programs.judges.panel import Panel

TASK = "Rewrite a public notice in plain words."
NAMES = ("Plain words", "Complete facts", "Polite tone")
LEVELS = ("none", "some", "half", "most", "all")


def judges() -> list[Any]:
    return [
        CriterionJudge(criterion="Plain words", meaning="Every word is short.", task=TASK),
        RubricJudge(criterion="Complete facts", meaning="Nothing is lost.", levels=LEVELS, task=TASK),
        CriterionJudge(criterion="Polite tone", meaning="The reader is treated well.", task=TASK),
    ]


def panel() -> Panel:
    return Panel(judges())


def item(criterion: Any, score: Any, reason: Any = "because") -> dict[str, Any]:
    return {"criterion": criterion, "reason": reason, "score": score}


def items(*scores: Any) -> list[dict[str, Any]]:
    """One item for each criterion, in order."""
    return [item(name, score, f"about {name}") for name, score in zip(NAMES, scores, strict=True)]


def is_joint(prompt: str) -> bool:
    return "`[[ ## ratings ## ]]`" in prompt.rsplit("Respond with the corresponding output fields", 1)[-1]


def asked_for(prompt: str) -> list[str]:
    """The criteria that a panel's prompt asks for."""
    asked = prompt.rsplit("[[ ## criteria ## ]]", 1)[-1].split("[[ ## input ## ]]")[0]
    return [line.removeprefix("criterion: ") for line in asked.splitlines() if line.startswith("criterion: ")]


def answering(joint: Any, alone: Any = 5) -> Callable[[str], dict[str, Any]]:
    """`joint` to every panel's prompt, `alone` to every single judge's."""

    def answer(prompt: str) -> dict[str, Any]:
        return {"ratings": joint} if is_joint(prompt) else {"reasoning": "alone", "score": alone}

    return answer


def panelled(prompt: str) -> dict[str, Any]:
    """Like `scripted`, and for a panel each criterion by the script for a single judge."""
    if not is_joint(prompt):
        return scripted(prompt)
    row = prompt.rsplit("[[ ## input ## ]]", 1)[-1]
    made = []
    for name in asked_for(prompt):
        single = scripted(f"{name} [[ ## output ## ]] {row.rsplit('[[ ## output ## ]]', 1)[-1]}")
        made.append(item(name, int(single["score"]), single["reasoning"]))
    return {"ratings": made}
