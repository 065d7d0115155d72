"""A customer who answers from a script: what is asked and known, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["GOODBYE", "TOPICS", "Customer"]

TOPICS: Mapping[str, str] = {
    "fee": r"\bfees?\b|\bcharges?\b|\bsurcharge\b|\bextra cost\b",
    "refused": r"\bcannot\b|\bcan not\b|\bcan't\b|\bnot (?:possible|allowed)\b|\bunable\b|\bmay not\b",
    "name": r"\b(?:your|full) name\b|\bwho (?:am i|are you)\b",
    "born": r"\bbirth(?:day|date)?\b|\bborn\b",
    "booking": r"\bbooking(?:'s)? (?:number|code|reference|id)s?\b|\bwhich bookings?\b|\breference\b",
    "crossing": r"\b(?:which|what) (?:day|date|time|crossing|ferry|connection)\b|\bwhen\b|\bwhere to\b",
    "passengers": r"\bhow many\b|\bpassengers?\b|\bpeople\b",
    "fare": r"\bsaver or flex\b|\bflex or saver\b|\b(?:which|what) fare\b",
    "refund": r"\bmoney or\b|\bvoucher\b.*\?|\brefund\b.*\?",
}
"""The words by which an agent asks for a topic, in the order of the answers."""

GOODBYE = "No, thank you, that is all. Goodbye."
MORE = r"\b(?:anything|something) (?:else|more)\b|\bfurther help\b"
ASKS = r"\?|\bplease\b|\b(?:tell|give|send) me\b|\bi (?:will )?need\b|\bmay i have\b"
REACTIONS = ("fee", "refused")


class Customer:
    """The other side of a conversation; it has no state, so equal questions get equal answers.

    Parameters
    ----------
    says : dict of str
        Answers by topic of `TOPICS`.
    """

    def __init__(self, says: Mapping[str, str]) -> None:
        self.says = says

    def answer(self, text: str) -> tuple[str, bool]:
        """Return the answer to a turn of the agent, and whether it ends the conversation.

        A refusal is answered wherever it stands and a fee where anything is asked; every other topic only in a
        sentence that asks for it. The customer takes leave when asked for more wishes and for nothing else.
        """
        asking = [part for part in re.split(r"(?<=[.!?])\s+", text) if re.search(ASKS, part, re.IGNORECASE)]
        heard = {"fee": text if asking else "", "refused": text}
        topics = [
            topic for topic, cue in TOPICS.items()
            if any(re.search(cue, part, re.IGNORECASE) for part in ([heard[topic]] if topic in heard else asking))
        ]  # fmt: skip
        known = [self.says[topic] for topic in topics if topic in self.says]
        if known:
            return " ".join(known), False
        if any(re.search(MORE, part, re.IGNORECASE) for part in asking):
            return GOODBYE, True
        return ("That I do not know." if set(topics) - set(REACTIONS) else "All right."), False
