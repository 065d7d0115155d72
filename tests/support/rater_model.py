"""A simulated judge model and simulated raters, for measuring what tuning a judge brings.

A work is a short text whose qualities can be counted: how concrete, how courteous and how brief it is. Raters
weigh the three; the model that judges is asked through the loopback server, reads its instruction, and rates by
a documented function of what it finds there:

==================  =============================================  =============================================
feature             the instruction holds one of                   what it changes
==================  =============================================  =============================================
``concrete``        concrete, specific, figures                    bias: the quality counts (weight 1)
``courteous``       courteous, polite                              bias: the quality counts (weight 1)
``brief``           brief, short, wordy                            bias: the quality counts (weight 1)
``ornate``          ornate, elegant                                bias: rare long words count (weight 1)
``compare``         compare, weigh                                 noise: standard deviation .5 instead of 1
``hasty``           first impression, at a glance                  noise: standard deviation 1.6
``whole_scale``     whole scale, full range                        use: spread 1.3 levels instead of .7
``strict``          strict, demanding                              use: centre 2.4 instead of 3.9
``examples``        (at least four rated examples in earlier turns) use: centre and spread are the examples'
==================  =============================================  =============================================

With none of the four qualities named the model goes by length alone, as judges do: longer is better. Its number is
the latent value, standardised with fixed constants, plus the noise, times the spread, plus the centre, rounded and
cut to 1..5. The noise is a function of seed, work and instruction: two instructions give independent noise. The
untunable model reads the same works and gives the same kind of numbers, but its features do not depend on the
instruction, only its noise does.

Asked for a new instruction (by GEPA's reflection or MIPROv2's proposer) the model takes the one that it is shown
and adds one of twelve phrases, drawn by seed and request: seven bring a feature that helps somebody, two harm,
three do nothing. It learns nothing from feedback: whatever tuning gains comes from trying and choosing.

The seeds used for published numbers are 0 to 19 for tau and for kappa alike.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import dspy
import numpy as np

from metricsmith.metric import make_row

__all__ = ["PUBLISHED_SEEDS", "Features", "RaterModel", "features", "rated_rows", "standardised"]

PUBLISHED_SEEDS = range(20)
CONCRETE = ("Monday", "noon", "12", "Gate", "form", "euro", "June", "room")
COURTEOUS = ("please", "thank", "kindly", "sorry", "welcome", "glad", "gladly", "appreciate")
ORNATE = ("notwithstanding", "heretofore", "magnificent", "resplendent", "perspicacious", "sumptuous")
FILLER = ("basically", "really", "very", "quite", "just", "simply", "actually", "indeed")
PLAIN = ("we", "you", "send", "bring", "the", "open", "for", "with", "to", "at", "and", "your")
QUALITIES = ("concrete", "courteous", "brief", "ornate")
WORDS = {
    "concrete": ("concrete", "specific", "figures"),
    "courteous": ("courteous", "polite"),
    "brief": ("brief", "short", "wordy"),
    "ornate": ("ornate", "elegant"),
    "compare": ("compare", "weigh"),
    "hasty": ("first impression", "at a glance"),
    "whole_scale": ("whole scale", "full range"),
    "strict": ("strict", "demanding"),
}
PHRASES = (
    "Reward works that are concrete and give figures.",
    "Courteous works deserve more.",
    "Wordy works deserve less.",
    "Weigh what speaks for and against the work.",
    "Use the whole scale.",
    "Be strict.",
    "Reward works that are specific and polite.",
    "Elegant works deserve more.",
    "Trust your first impression.",
    "Take your role seriously.",
    "Answer in the given form.",
    "Do your best.",
)
RATERS = {"concrete": 1.0, "courteous": 0.8, "brief": 0.6}  # what they value
ENDING = "your objective is:"  # what stands before the instruction in DSPy's system messages
MARKS = re.compile(r"[a-z]+|\d+", re.IGNORECASE)


@dataclass(frozen=True)
class Features:
    """The effect of an instruction on the model: qualities that count, noise, and use of the scale."""

    qualities: tuple[str, ...] = ()
    noise: float = 1.0
    spread: float = 0.7
    centre: float = 3.9


def features(instruction: str) -> Features:
    """Read an instruction by the table above, case aside."""
    text = instruction.lower()
    found = {name for name, words in WORDS.items() if any(re.search(rf"\b{word}\b", text) for word in words)}
    return Features(
        qualities=tuple(name for name in QUALITIES if name in found),
        noise=1.6 if "hasty" in found else 0.5 if "compare" in found else 1.0,
        spread=1.3 if "whole_scale" in found else 0.7,
        centre=2.4 if "strict" in found else 3.9,
    )


def qualities(text: str) -> dict[str, float]:
    """Counted qualities of a work, each with mean about 0 and variance about 1 over `rated_rows`."""
    words = MARKS.findall(text)
    counts = {
        "concrete": sum(word in CONCRETE for word in words),
        "courteous": sum(word in COURTEOUS for word in words),
        "brief": -sum(word in FILLER for word in words),
        "ornate": sum(word in ORNATE for word in words),
    }
    centred = {name: (count - (-2.5 if name == "brief" else 2.5)) / 1.7 for name, count in counts.items()}
    return {**centred, "length": (len(words) - 22.0) / 3.4}


def rated_rows(
    n: int, seed: int, *, low: float = 1, high: float = 5, noise: float = 0.6, offset: int = 0
) -> list[dspy.Example]:
    """Draw n rated works, two to a source.

    Parameters
    ----------
    n : int
    seed : int
        Decides works and ratings.
    low, high : float
        The part of the scale 1..5 that the raters use: they rate in whole numbers between the two.
    noise : float
        Standard deviation of their disagreement, beside a value of variance 1.
    offset : int
        Number of the first source, so that two calls can draw different sources.
    """
    random = np.random.default_rng([seed, offset])
    rows = []
    for number in range(n):
        words = [
            str(word)
            for kind in (CONCRETE, COURTEOUS, ORNATE, FILLER)
            for word in random.choice(kind, random.integers(0, 6))
        ]
        words += [str(word) for word in random.choice(PLAIN, 12)]
        text = " ".join(str(word) for word in random.permutation(words))
        value = sum(weight * qualities(text)[name] for name, weight in RATERS.items())
        latent = value / float(np.linalg.norm(list(RATERS.values()))) + noise * float(random.standard_normal())
        share = NormalDist().cdf(latent / float(np.hypot(1.0, noise)))
        rating = float(np.floor(low + share * (high - low + 1 - 1e-9)))
        source = f"{seed}-{offset + number // 2}"
        rows.append(
            make_row(
                text,
                input=f"Write notice {source}.",
                rating=rating,
                group=f"source {source}",
                id=f"{source}-{number % 2}",
            )
        )
    return rows


def standardised(rows: list[dspy.Example], seed: int) -> list[dspy.Example]:
    """The same works with standard scores of a mean over raters: numbers that nobody uses."""
    random = np.random.default_rng([seed, 1])
    means = np.array([row.rating for row in rows]) + 0.3 * random.standard_normal(len(rows))
    scores = (means - means.mean()) / means.std()
    return [row.copy(rating=round(float(score), 5)) for row, score in zip(rows, scores, strict=True)]


@dataclass(frozen=True)
class RaterModel:
    """The answers of the simulated model, as the loopback server asks for them.

    Parameters
    ----------
    seed : int
        Decides noise and proposed phrases.
    tunable : bool
        Whether the instruction changes anything but the noise.
    """

    seed: int = 0
    tunable: bool = True

    def __call__(self, prompt: str) -> dict[str, Any] | str:
        """The answer to one request: a proposal (in JSON, where GEPA asks for it), a summary, or a rating."""
        task, *turns = prompt.split(ENDING, 1)[0], prompt.split(ENDING, 1)[-1]
        if "new_instruction" in task:
            return json.dumps({"new_instruction": self._propose("current_instruction", turns[-1])})
        if "proposed_instruction" in task:
            return {"proposed_instruction": self._propose("basic_instruction", turns[-1])}
        if "[[ ## score ## ]]" not in task:
            return {"observations": "COMPLETE", "summary": "Rated notices."}
        return self._judged(turns[-1])

    def _propose(self, field: str, request: str) -> str:
        """The instruction shown, with a phrase more."""
        shown = re.search(rf"\[\[ ## {field} ## \]\]\n(.*?)\n\n(?:\[\[ ## |Respond|$)", request, re.DOTALL)
        current = shown[1].strip() if shown else ""
        return f"{current}\n{PHRASES[int(self._uniform('phrase', request) * len(PHRASES))]}".strip()

    def _judged(self, conversation: str) -> dict[str, Any]:
        instruction, *turns = conversation.split("[[ ## output ## ]]\n")
        work = re.split(r"\n\n(?:\[\[ ## |Respond with)", turns[-1])[0]
        work = re.sub(r"^«(?:begin|end) \w+»$", "", work, flags=re.MULTILINE)
        given = [float(rating) for rating in re.findall(r"\[\[ ## score ## \]\]\n([\d.]+)\n", conversation)]
        level, said = self.rate(instruction.split("[[ ## ")[0], work, given)
        return {"reasoning": said, "score": str(level)}

    def rate(self, instruction: str, work: str, given: list[float] | None = None) -> tuple[int, str]:
        """The level that the model gives a work, and why; `given` are the ratings of examples before it."""
        found = features(instruction) if self.tunable else Features()
        counted = qualities(work)
        names = found.qualities or ("length",)
        latent = sum(counted[name] for name in names) / len(names) ** 0.5
        noise = NormalDist().inv_cdf(self._uniform("noise", instruction, work)) * found.noise
        centre, spread = found.centre, found.spread
        if given is not None and len(given) >= 4 and self.tunable:
            centre, spread = float(np.mean(given)), max(0.5, float(np.std(given)))
        value = centre + spread * (latent + noise) / float(np.hypot(1.0, found.noise))
        return int(min(5, max(1, np.floor(value + 0.5)))), f"It is judged by: {', '.join(names)}."

    def _uniform(self, *parts: str) -> float:
        """A number inside (0, 1) that depends on seed and parts alone."""
        digest = hashlib.sha256(json.dumps([self.seed, *parts]).encode()).digest()
        return (int.from_bytes(digest[:7], "big") + 0.5) / 2**56
