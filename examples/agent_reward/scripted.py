"""An agent without a model: it serves the wishes of a task and obeys the rules that it was given, and no other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from agent_reward.episodes import Session
from agent_reward.tasks import Task
from agent_reward.tools import FEE, new_database

Step = tuple[str, Mapping[str, Any]]
"""A tool, or ``say``, and its arguments."""


def steps(task: Task, obeyed: Collection[str] = ()) -> tuple[Step, ...]:
    """Return the agent's turns in a task, given the ids of the rules that it obeys."""
    return (*_Script(task, frozenset(obeyed)).serve(task.wishes), _say("Is there anything else that I can do?"))


def run_steps(session: Session, taken: Sequence[Step]) -> None:
    """Take steps in a session, up to its end."""
    for tool, arguments in taken:
        if session.over:
            return
        session.say(**arguments) if tool == "say" else session.tools[tool](**arguments)


def _say(text: str) -> Step:
    return "say", {"text": text}


class _Script:
    """The steps for each wish, on the database as the conversation finds it: the customer's answers are known."""

    def __init__(self, task: Task, obeyed: frozenset[str]) -> None:
        self.task, self.obeyed, self.db, self.stopped = task, obeyed, new_database(), False

    def serve(self, wishes: Sequence[Mapping[str, Any]]) -> Iterator[Step]:
        for wish in wishes:
            if not self.stopped:
                yield from getattr(self, f"_{wish['do']}")(wish)

    def _booked(self, wish: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
        booking = self.db["bookings"][wish["booking"]]
        return booking, self.db["connections"][booking["connection"]]["status"]

    def _find(self, wish: Mapping[str, Any]) -> Iterator[Step]:
        yield _say("What is the booking number, please?")
        yield "get_booking", {"booking": wish["booking"]}
        if "identity" in self.obeyed:
            yield _say(f"What is the date of birth of the holder of {wish['booking']}?")
            if wish.get("foreign"):
                yield from self._transfer({"why": "the holder's date of birth is not known"})

    def _cancel(self, wish: Mapping[str, Any]) -> Iterator[Step]:
        yield from self._find(wish)
        if self.stopped:
            return
        booking, status = self._booked(wish)
        refund = wish["refund"]
        if "refund" in self.obeyed and (refund, booking["fare"], status) == ("money", "saver", "runs"):
            yield _say("A saver fare comes back as a voucher only. Is a voucher all right?")
            refund = "voucher"
        yield "cancel_booking", {"booking": wish["booking"], "refund": refund}
        yield from self._goodwill(booking, status)

    def _move(self, wish: Mapping[str, Any]) -> Iterator[Step]:
        yield from self._find(wish)
        if self.stopped:
            return
        booking, status = self._booked(wish)
        yield _say("To which crossing shall I move it?")
        refused = "once" in self.obeyed and booking["moved"]
        if refused:
            yield _say("This booking was moved before and cannot be moved again.")
        elif "confirm" in self.obeyed and (booking["fare"], status) == ("saver", "runs"):
            yield _say(f"The move costs a fee of {FEE} euros. Do you agree?")
            refused = wish.get("declined")
        if refused:
            yield from self.serve(wish.get("instead", ()))
        else:
            yield "move_booking", {"booking": wish["booking"], "connection": wish["connection"]}
            yield from self._goodwill(booking, status)

    def _goodwill(self, booking: Mapping[str, Any], status: str) -> Iterator[Step]:
        if "goodwill" in self.obeyed and status == "called off":
            yield "give_voucher", {"customer": booking["customer"], "euros": 10 * booking["passengers"]}

    def _book(self, wish: Mapping[str, Any]) -> Iterator[Step]:
        yield _say("On which day and at what time, for how many passengers, and in which fare, saver or flex?")
        details = {name: wish[name] for name in ("connection", "passengers", "fare")}
        yield _say("What is your full name?")
        yield "find_customer", {"name": self.db["customers"][self.task.customer]["name"]}
        yield "book", {"customer": self.task.customer, **details}
        number = f" Its number is B{len(self.db['bookings']) + 1:02d}." if "number" in self.obeyed else ""
        yield _say(f"Your crossing is booked.{number}")

    def _tell(self, wish: Mapping[str, Any]) -> Iterator[Step]:
        row = self.db["connections"][wish["connection"]]
        yield "find_connections", {name: row[name] for name in ("origin", "destination", "date")}
        yield _say(f"I looked it up for you: {wish['fact']}.")

    def _transfer(self, wish: Mapping[str, Any]) -> Iterator[Step]:
        yield "transfer_to_human", {"reason": wish.get("why", "the customer asks for a person")}
        self.stopped = True
