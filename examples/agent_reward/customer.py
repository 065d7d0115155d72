"""A customer who answers from a script: what is asked and known, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping

TOPICS: Mapping[str, str] = {
    "fee": r"(?<!\bno )(?<!\bno extra )(?<!\bwithout a )(?<!\bfree of )\b(?:fees?|charges?|surcharge|extra cost)\b",
    "refused": r"^(?=.*\b(?:mov|chang|rebook))(?!.*\b(?:until|unless|without|find|before (?:i|you|we|\w+ing))\b)"
    r".*\b(?:can ?not|can't|not possible|not allowed|unable|may not)\b",
    "name": r"\b(?:your|full|holder's) name\b|\bwho (?:am i|are you)\b",
    "born": r"\bbirth(?:day|date)?\b|\bborn\b|\bdob\b",
    "booking": r"\bbooking(?:'s)? (?:number|code|reference|id)s?\b|\bwhich bookings?\b|\breference\b",
    "crossing": r"\b(?:which|what|new) (?:day|date(?! of b)|time|crossing|ferry|sailing|connection)\b|\bwhen\b",
    "passengers": r"\bhow many\b|\bpassengers?\b|\bpeople\b",
    "fare": r"\bsaver or flex\b|\bflex or saver\b|\b(?:which|what) fare\b",
    "refund": r"\bmoney or\b|\bvoucher\b|\brefund\b",
}
"""The words by which an agent asks for a topic, in the order of the answers."""

GOODBYE = "No, thank you, that is all. Goodbye."
MORE = r"\b(?:anything|something) (?:else|more)\b|\bfurther help\b"
ASKS = r"\?|\bplease\b|\b(?:tell|give|send) me\b|\bprovide\b|\blet me know\b|\bi (?:will )?need\b"


def reply(says: Mapping[str, str], text: str) -> tuple[str, bool]:
    """Return the answer to a turn of the agent by what the customer `says` on `TOPICS`, and whether it is the last one.

    A refusal for good is answered wherever it stands and a fee where anything is asked; every other topic only in a
    sentence that asks for it. The customer takes leave when asked for more wishes and for nothing else.
    """
    sentences = re.split(r"(?<=[.!?])\s+", text.replace("’", "'"))
    asking = [one for one in sentences if _has(ASKS, [one])]
    heard = {"fee": sentences if asking else [], "refused": sentences}
    topics = [topic for topic, cue in TOPICS.items() if _has(cue, heard.get(topic, asking))]
    if known := [says[topic] for topic in topics if topic in says]:
        return " ".join(known), False
    if _has(MORE, asking):
        return GOODBYE, True
    return ("That I do not know." if set(topics) - set(heard) else "All right."), False


def _has(cue: str, sentences: list[str]) -> bool:
    return any(re.search(cue, one, re.IGNORECASE) for one in sentences)
