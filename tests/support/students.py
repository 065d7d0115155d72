"""A simulated model that ranks, proposes and judges better if its instruction says a planted sentence."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from loopback import draw
from metricsmith.datasets.table import Table, read_table
from planted import TASK, planted_rows

HINT = "Raters punish padding and lost facts above all."
GOOD = {"Whole content": "Every fact of the notice is there.", "No padding": "No word is idle."}
WEAK = {"Warm tone": "It sounds friendly.", "Rich rhythm": "Its sentences flow.", "Bold start": "It opens strongly."}
LEVELS = [f"Level {number}: so much padding." for number in range(1, 6)]


def rated_table(sources: int = 12, seed: int = 0, name: str = "rating", **reading: Any) -> Table:
    """Planted rows as a table; ratings fall with lost words and padding."""
    rows = planted_rows(sources=sources, seed=seed)
    frame = pd.DataFrame({
        "id": [row.id for row in rows], "group": [row.group for row in rows], "input": [row.input for row in rows],
        "output": [row.output for row in rows], "reference": [row.references[0] for row in rows],
        name: [row["rating"] for row in rows],
    })  # fmt: skip
    return read_table(frame, **{"target": name, "task": TASK.description, "scale": "1:5", **reading})


def answer(prompt: str) -> dict[str, Any]:
    """The fields that the last message asks for."""
    asked = prompt.rsplit("Respond with the corresponding output fields", 1)[-1]
    hinted = HINT in prompt
    if "new_instruction" in prompt:
        # GEPA reads JSON, wherever it stands in the answer.
        return {"new_instruction": json.dumps({"new_instruction": f"Do as asked. {HINT}"})}
    if "## names ##" in asked:
        cards = [line[3:] for line in field(prompt, "cards").splitlines() if line.startswith("## ")]
        return {"reasoning": "So it seems.", "names": sorted(cards, key=lambda name: worth(name, hinted))}
    if "## axes ##" in asked:
        proposed = GOOD if hinted else WEAK
        return {"axes": [{"name": name, "meaning": meaning} for name, meaning in proposed.items()]}
    if "## levels ##" in asked:
        return {"levels": LEVELS if hinted else [f"Grade {number}." for number in range(1, 6)]}
    able = any(name in field(prompt, "criterion") for name in GOOD) or LEVELS[0] in field(prompt, "rubric")
    return {"reasoning": "Counted.", "score": quality(field(prompt, "output")) if able else noise(prompt)}


def field(prompt: str, name: str) -> str:
    """The content of the last field of that name in a prompt."""
    return prompt.rsplit(f"[[ ## {name} ## ]]", 1)[-1].split("[[ ##")[0]


def worth(name: str, hinted: bool) -> int:
    """The place that the model gives to a metric: the hint brings those that see padding to the front."""
    sees_padding = name in {"ROUGE", "UpdateROUGE", "PseudoPARENT", "Levenshtein", "CharCut", "TER", "SARI"}
    return -sees_padding if hinted else sees_padding


def quality(text: str) -> int:
    """A level from 1 to 5, by what an output of `planted_rows` has lost and how it is padded."""
    words = text.split("»\n", 1)[-1].split("\n«end")[0].split()
    idle = words.count("indeed")
    return min(5, max(1, round(5 - 0.25 * (15 - min(15, len(words) - idle)) - 0.2 * idle)))


def noise(prompt: str) -> int:
    return 1 + int(5 * draw(prompt, 0, 7))
