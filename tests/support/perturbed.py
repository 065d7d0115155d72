"""A simulated model that perturbs better if its instruction says a planted sentence, and that judges what it made."""

from __future__ import annotations

import json
from typing import Any

from metricsmith.programs.perturbers.base import Source
from metricsmith.signatures.generation import Axis

HINT = "Judges punish lost words above all."
TASK = "Rewrite notices."
FACTS = Axis(name="Facts", meaning="All facts are there.")


def sources(count: int, start: int = 0) -> list[Source]:
    """Outputs of eight words, no two alike."""
    return [Source(f"Notice {n} says that road {n} stays shut", f"Road {n}") for n in range(start, start + count)]


def answer(prompt: str) -> dict[str, Any]:
    """The fields that the last message asks for.

    A damaged output has lost half of its words (if the instruction has the hint, or the strategy is called Cut), or
    has one more. What is to be preserved loses half of them too, unless the hint is there. The judge counts words.
    """
    asked = prompt.rsplit("Respond with the corresponding output fields", 1)[-1]
    hinted = HINT in prompt
    if "new_instruction" in prompt:
        return {"new_instruction": json.dumps({"new_instruction": f"Do as asked. {HINT}"})}
    if "## proposed_instruction ##" in asked or "`proposed_instruction`" in asked:
        return {"proposed_instruction": HINT}
    if "## strategies ##" in asked:
        name = "Cut" if hinted else "Pad"
        return {"strategies": [{"name": name, "description": f"{name} any output."}]}
    words = fenced(prompt, "output").split()
    if "## outputs ##" in asked:
        plans = json.loads(field(prompt, "strategies"))
        return {"outputs": [" ".join(lost(words) if hinted or plan["name"] == "Cut" else [*words, plan["name"]])
                            for plan in plans]}  # fmt: skip
    if "## changed ##" in asked:
        changed = words[::-1] if hinted else lost(words)
        return {"reason": "So be it.", "declines": "False", "changed": " ".join(changed)}
    if "## score ##" in asked:
        return {"reasoning": "Counted.", "score": str(min(5, max(1, len(words) - 4)))}  # eight words are a 4
    return dict.fromkeys(("observations", "summary", "program_description", "module_description"), "COMPLETE")


def lost(words: list[str]) -> list[str]:
    """The first half, and at least one."""
    return words[: max(1, len(words) // 2)]


def field(prompt: str, name: str) -> str:
    """The content of the last field of that name."""
    return prompt.rsplit(f"[[ ## {name} ## ]]", 1)[-1].split("[[ ##")[0].strip()


def fenced(prompt: str, name: str) -> str:
    """The same, without its marks."""
    return field(prompt, name).split("»\n", 1)[-1].split("\n«end")[0]
