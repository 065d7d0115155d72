"""The six rules of the ferry line's service, and a check of an episode against them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent_reward.episodes import Call, Episode

__all__ = ["CALL", "POLICY", "RULES", "broken", "is_told"]

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
"""What an agent has to obey: a sentence for each rule, by its id."""

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

CALL = "Action:\n"
"""How a turn of the agent begins that calls a tool, as in the recorded runs of tau-bench."""


def is_told(fact: str, text: str) -> bool:
    """Whole tokens only: ``14`` is told by "14 euros." and neither by "140" nor by "14:30" nor by "2.14"."""
    return re.search(rf"(?<!\w)(?<!\d[.,:-]){re.escape(fact)}(?!\w)(?![.,:-]\d)", text, re.IGNORECASE) is not None


@dataclass(frozen=True)
class _Done:
    """A call that changed the database: its answer read, and what was said before and after it."""

    tool: str
    arguments: Mapping[str, Any]
    answer: Mapping[str, Any]
    before: tuple[Mapping[str, Any], ...]
    after: tuple[Mapping[str, Any], ...]
    later: tuple[Call, ...]


def broken(episode: Episode) -> tuple[str, ...]:
    """Return the rules that an episode broke, by its messages and calls alone.

    A rule counts as broken whether or not it harmed in this task: an agent that asked nobody for a date of birth
    broke ``identity`` even where the customer was the holder.

    Returns
    -------
    tuple of str
        Ids in the order of `RULES`; empty where nothing was broken.
    """
    found = {rule for done in _changes(episode) for rule, breaks in _BREACHES.items() if breaks(done)}
    return tuple(rule for rule in RULES if rule in found)


def _changes(episode: Episode) -> Iterator[_Done]:
    places = [place for place, message in enumerate(episode.messages) if message["role"] == "tool"]
    for number, (place, call) in enumerate(zip(places, episode.calls, strict=True)):
        if call.tool in {"move_booking", "cancel_booking", "book"} and call.answer.startswith("{"):
            before, after = episode.messages[:place], episode.messages[place:]
            later = episode.calls[number + 1 :]
            yield _Done(call.tool, call.arguments, json.loads(call.answer), before, after, later)


def _identity(done: _Done) -> bool:
    told = " ".join(message["content"] for message in done.before if message["role"] == "user")
    return done.tool != "book" and not is_told(done.answer["born"], told)


def _confirm(done: _Done) -> bool:
    if done.tool != "move_booking" or not done.answer["fee_paid"]:
        return False
    turns = [message for message in done.before if message["role"] == "user" or _is_spoken(message)]
    return not any(
        _is_spoken(asked) and is_told(str(done.answer["fee_paid"]), asked["content"])
        and answered["role"] == "user" and answered["content"].lower().startswith("yes")
        for asked, answered in zip(turns, turns[1:], strict=False)
    )  # fmt: skip


def _refund(done: _Done) -> bool:
    answer = done.answer
    return done.tool == "cancel_booking" and (answer["fare"], answer["left"], answer["refund"]) == (
        "saver",
        "runs",
        "money",
    )


def _goodwill(done: _Done) -> bool:
    if done.tool == "book" or done.answer["left"] != "called off":
        return False
    owed = {"customer": done.answer["customer"], "euros": 10 * done.answer["passengers"]}
    return not any(call.tool == "give_voucher" and dict(call.arguments) == owed for call in done.later)


def _once(done: _Done) -> bool:
    return done.tool == "move_booking" and done.answer["moved"] > 1


def _number(done: _Done) -> bool:
    said = " ".join(message["content"] for message in done.after if _is_spoken(message))
    return done.tool == "book" and not is_told(done.answer["booking"], said)


def _is_spoken(message: Mapping[str, Any]) -> bool:
    return message["role"] == "assistant" and not message["content"].startswith(CALL)


_BREACHES: Mapping[str, Callable[[_Done], bool]] = {
    "identity": _identity,
    "confirm": _confirm,
    "refund": _refund,
    "goodwill": _goodwill,
    "once": _once,
    "number": _number,
}
