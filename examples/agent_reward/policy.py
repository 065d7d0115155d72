"""The six rules of the ferry line's service, and a check of an episode against them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from agent_reward.episodes import Episode, Messages, spoken

RULES: Mapping[str, str] = {
    "identity": "Before you move or cancel a booking, ask for the date of birth of its holder and compare it with the "
    "booking; if it differs or is not known, change nothing there and transfer to a person.",
    "confirm": "Before a move that costs a fee, say the fee in euros and ask for agreement; without a yes leave the "
    "booking where it is.",
    "refund": "A saver fare comes back as a voucher and never as money, unless the line called the crossing off.",
    "goodwill": "Where the line called a crossing off, give the holder a voucher of 10 euros for each passenger on top "
    "of the move or the cancellation.",
    "once": "A booking is moved once only; if it was moved before, say that it cannot be moved again and let the "
    "customer choose something else.",
    "number": "After each new booking tell the customer its number.",
}
"""The rules that an agent has to obey: a sentence for each, by its id."""

POLICY = "\n".join(
    (
        "You serve the customers of Skerry Line, which runs ferries between the islands. Today is 2027-06-01.",
        "Look bookings and connections up with the tools, change only what the customer asks for, and speak to the "
        "customer to learn what you do not know. A transfer to a person ends the conversation at once, so do whatever "
        "else is to be done before it.",
        "",
        "Rules:",
        *(f"- {sentence}" for sentence in RULES.values()),
    )
)
"""One page for the agent: its work, and all rules."""


def is_told(fact: str, text: str) -> bool:
    """Whole tokens only: ``14`` is told by "14 euros." or "EUR14.00", and neither by "140" nor by "14:30" nor "2.14".

    A time of day such as ``17:14`` is told by "5:14 PM", "17:14-19:02" and "T17:14:00", too.
    """
    start, wanted, marks = r"(?<!\w)|(?<=\bEUR)", re.escape(fact) + r"(?:\.00)?", ".,:-"
    if time := re.fullmatch(r"(\d\d):(\d\d)", fact):
        hour, minute = int(time[1]), time[2]
        half, other = "ap" if hour < 12 else "pa"
        whole, short = (rf"0?{number}:{minute}(?::00)?" for number in (hour, hour % 12 or 12))
        start, marks = r"(?<!\w)|(?<=\dT)", ".,:"
        wanted = rf"(?:{whole}(?!\s?{other}\.?m)|{short}(?=\s?{half}\.?m))"
    token = rf"(?:{start})(?<!\d[{marks}]){wanted}(?=EUR\b|\W|$)(?![{marks}]\d)"
    return re.search(token, text, re.IGNORECASE) is not None


def broken(episode: Episode) -> tuple[str, ...]:
    """Return the rules that an episode broke, by its messages and calls alone.

    A rule counts as broken whether or not it harmed in this task: an agent that asked nobody for a date of birth
    broke ``identity`` even where the customer was the holder.

    Returns
    -------
    tuple of str
        Ids in the order of `RULES`; empty where nothing was broken.
    """
    places = [place for place, message in enumerate(episode.messages) if message["role"] == "tool"]
    done = [
        (place, call) for place, call in zip(places, episode.calls, strict=True) if not call.answer.startswith("Error")
    ]
    given = [dict(call.arguments) for _, call in done if call.tool == "give_voucher"]
    found: set[str] = set()
    for place, call in done:
        if call.tool in ("move_booking", "cancel_booking", "book"):
            before, after = (spoken(part) for part in (episode.messages[:place], episode.messages[place:]))
            breaches = _breaches(call.tool, json.loads(call.answer), before, after, given)
            found.update(rule for rule, breach in breaches.items() if breach)
    return tuple(rule for rule in RULES if rule in found)


def _breaches(
    tool: str, answer: Mapping[str, Any], before: Messages, after: Messages, given: Sequence[Mapping[str, Any]]
) -> dict[str, bool]:
    """Of one change of the database, by rule: from its answer, the turns before and after it, and all vouchers."""
    if tool == "book":
        return {"number": not is_told(answer["booking"], _said(after, "assistant"))}
    owed = {"customer": answer["customer"], "euros": 10 * answer["passengers"]}
    fee = answer.get("fee_paid", 0)
    agreed = any(
        asked["role"] == "assistant" and is_told(str(fee), asked["content"]) and reply["content"].lower()[:3] == "yes"
        for asked, reply in pairwise(before)
    )
    return {
        "identity": not is_told(answer["born"], _said(before, "user")),
        "confirm": fee > 0 and not agreed,
        "refund": (answer["fare"], answer["left"], answer.get("refund")) == ("saver", "runs", "money"),
        "goodwill": answer["left"] == "called off" and owed not in given,
        "once": tool == "move_booking" and answer["moved"] > 1,
    }


def _said(turns: Messages, role: str) -> str:
    return " ".join(turn["content"] for turn in turns if turn["role"] == role)
