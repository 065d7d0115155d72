"""Notices whose ratings follow a function of their text, and a model that writes functions by the luck of the draw.

The rating falls with the words of a sentence and with words from a list. The model deals from 30 functions, whatever
it is asked for: two that say so, three that say the reverse, twelve beside the point, and some that are no use.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopback import scripted
from metricsmith.datasets import plain_notices
from metricsmith.metric import row_text, unfenced
from metricsmith.programs.generators.code import unwrapped
from metricsmith.records import Scale, Task
from students import field

TASK = Task(plain_notices.TASK.description, "rating", Scale(1, 5))
JARGON = (
    "accordingly", "boarding", "commence", "commencing", "conveyance", "discontinued", "duration", "facilities",
    "implementation", "location", "notification", "operations", "passengers", "premises", "provision", "pursuant",
    "reconstruction", "regarding", "respective", "subsequent", "temporarily", "throughout", "utilise", "utilisation",
)  # fmt: skip

HEAD = f"""import re

JARGON = set({sorted(JARGON)!r})


def words(text):
    return re.findall(r"[a-z]+", text.lower())


def sentences(text):
    return [part for part in re.split(r"[.!?]+", text) if part.strip()]


def load(text):
    found = words(text)
    return len(found) / max(1, len(sentences(text))) / 4 + sum(word in JARGON for word in found)


def score(output, input, references):
"""
RIGHT = (
    f"{HEAD}    return -load(output)\n",
    f"```python\n{HEAD}    parts = [load(part + '.') for part in sentences(output)]\n"
    "    return -sum(parts) / max(1, len(parts)) ** 0.5 - load(output)\n```",
)
REVERSED = (
    f"{HEAD}    return load(output)\n",
    f"{HEAD}    return 100 * load(output) / 7 + 3\n",
    f"{HEAD}    return load(output) ** 2\n",
)
BODIES = {
    "beside": (
        "sum(letter in 'aeiou' for letter in output) / max(1, len(output))",
        "sum(letter.isdigit() for letter in output)",
        "output.count(',')",
        "ord(output[0]) if output else 0",
        "sum(letter.isupper() for letter in output) / max(1, len(output))",
        "len(input.split())",
        "len(input) % 7",
        "sum(map(ord, output)) % 101",
        "output.count(' the ')",
        "len(references[0]) if references else 0",
        "sum(letter.isdigit() for letter in input)",
        "sum(map(ord, output[:20])) % 13",
    ),
    "constant": ("1.0", "0 * len(output)", "min(1, len(references) + 1)"),
    "crashing": (
        "1 / 0",
        "references[9].count('a')",
        "undefined + 1",
        "'high'",
        "None",
        "float('nan')",
        "{}['score']",
        "(yield 1)",
        "1 if len(output) % 2 else 1 / 0",
    ),
}
SOURCES = (
    *RIGHT,
    *REVERSED,
    *(f"def score(output, input, references):\n    return {body}\n" for own in BODIES.values() for body in own),
    "import os\n\n\ndef score(output, input, references):\n    return len(os.environ)\n",
)
PLACES = {unwrapped(source): place for place, source in enumerate(SOURCES)}
RATED_GROUPS = 16
FORM_ENDS = "###Feedback: "  # of a prompt in the form that a Prometheus model was trained on


def rated(seed: int, *, shuffled: bool = False, noise: float = 0.6) -> list[Any]:
    """80 rewrites of 16 notices with ratings from the plant, or with the same ratings in another order."""
    random = np.random.default_rng(seed)
    _, rows = plain_notices.load()
    groups = sorted({row.group for row in rows})
    kept = set(random.permutation(groups)[:RATED_GROUPS].tolist())
    rows = [row for row in rows if row.group in kept]
    ratings = np.clip(3 + 0.8 * quality(rows) + random.normal(0, noise, len(rows)), 1, 5).round(2)
    if shuffled:
        ratings = random.permutation(ratings)
    return [
        row.copy(rating=float(rating)).without(*(name for name in row.toDict() if name.startswith(("n_", "rater_"))))
        for row, rating in zip(rows, ratings, strict=True)
    ]


def quality(rows: Sequence[Any]) -> NDArray[np.float64]:
    """The plant of each row, standardised."""
    planted = np.array([-_load(row_text(row).output) for row in rows])
    return (planted - planted.mean()) / planted.std()


def _load(text: str) -> float:
    found = re.findall(r"[a-z]+", text.lower())
    sentences = [part for part in re.split(r"[.!?]+", text) if part.strip()]
    return len(found) / max(1, len(sentences)) / 4 + sum(word in JARGON for word in found)


def dealing(seed: int, functions: int):
    """A model that deals a deck shuffled by seed: each axis has a place in it, each repair is so many cards further."""
    deck = np.random.default_rng(1000 + seed).permutation(len(SOURCES)).tolist()

    def answer(prompt: str) -> dict[str, Any] | str:
        if prompt.endswith(FORM_ENDS):
            response = prompt.split("###Response to evaluate:\n")[1].split("\n\n###")[0]
            return f"So it seems. [RESULT] {scripted(f'{prompt}[[ ## output ## ]]{response}')['score']}"
        asked = prompt.rsplit("Respond with the corresponding output fields", 1)[-1]
        if "## axes ##" in asked:
            count = int(field(prompt, "count").split()[0])
            return {"axes": [{"name": f"Trait {place}", "meaning": "It shows."} for place in range(count)]}
        if "## source ##" not in asked:
            return scripted(prompt)
        before = unfenced(field(prompt, "attempt")).strip()
        if before == "(none)":
            at = int(field(prompt, "criterion").split(":")[0].split()[-1]) % functions
        else:
            at = deck.index(PLACES[before]) + functions
        return {"source": SOURCES[deck[at % len(deck)]]}

    return answer
