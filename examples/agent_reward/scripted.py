"""An agent without a model: it serves the wishes of a task and obeys the rules that it was given, and no other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_reward.episodes import Session
from agent_reward.tasks import Task
from agent_reward.tools import FEE, new_database

__all__ = ["Do", "Say", "Step", "run_steps", "steps"]


@dataclass(frozen=True)
class Say:
    """A turn to the customer."""

    text: str


@dataclass(frozen=True)
class Do:
    """A call of a tool."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


Step = Say | Do


def steps(task: Task, obeyed: Collection[str] = ()) -> tuple[Step, ...]:
    """Return the agent's turns in a task, given the ids of the rules that it obeys."""
    return (*_Script(task, frozenset(obeyed)).serve(task.wishes), Say("Is there anything else that I can do?"))


def run_steps(session: Session, taken: Sequence[Step]) -> None:
    """Take steps in a session, up to its end."""
    tools = {tool.__name__: tool for tool in session.tools}
    for step in taken:
        if session.over:
            return
        session.say(step.text) if isinstance(step, Say) else tools[step.tool](**step.arguments)


class _Script:
    """The steps for each wish, on the database as the conversation finds it: the customer's answers are known."""

    def __init__(self, task: Task, obeyed: frozenset[str]) -> None:
        self.task, self.obeyed, self.db, self.stopped = task, obeyed, new_database(), False

    def serve(self, wishes: Sequence[Mapping[str, Any]]) -> Iterator[Step]:
        for wish in wishes:
            if not self.stopped:
                yield from getattr(self, f"_{wish['do']}")(wish)

    def _find(self, wish: Mapping[str, Any]) -> Iterator[Step]:
        yield Say("What is the booking number, please?")
        yield Do("get_booking", {"booking": wish["booking"]})
        if "identity" in self.obeyed:
            yield Say(f"What is the date of birth of the holder of {wish['booking']}?")
            if wish.get("foreign"):
                yield from self._transfer({"why": "the holder's date of birth is not known"})

    def _cancel(self, wish: Mapping[str, Any]) -> Iterator[Step]:
        yield from self._find(wish)
        if self.stopped:
            return
        booking = self.db["bookings"][wish["booking"]]
        refund = wish["refund"]
        runs = self.db["connections"][booking["connection"]]["status"] == "runs"
        if "refund" in self.obeyed and refund == "money" and booking["fare"] == "saver" and runs:
            yield Say("A saver fare comes back as a voucher only. Is a voucher all right?")
            refund = "voucher"
        yield Do("cancel_booking", {"booking": wish["booking"], "refund": refund})
        yield from self._goodwill(booking)

    def _move(self, wish: Mapping[str, Any]) -> Iterator[Step]:
        yield from self._find(wish)
        if self.stopped:
            return
        booking = self.db["bookings"][wish["booking"]]
        yield Say("To which crossing shall I move it?")
        if "once" in self.obeyed and booking["moved"]:
            yield Say("This booking was moved before and cannot be moved again.")
            yield from self.serve(wish.get("instead", ()))
            return
        runs = self.db["connections"][booking["connection"]]["status"] == "runs"
        if "confirm" in self.obeyed and booking["fare"] == "saver" and runs:
            yield Say(f"The move costs a fee of {FEE} euros. Do you agree?")
            if wish.get("declined"):
                yield from self.serve(wish.get("instead", ()))
                return
        yield Do("move_booking", {"booking": wish["booking"], "connection": wish["connection"]})
        yield from self._goodwill(booking)

    def _goodwill(self, booking: Mapping[str, Any]) -> Iterator[Step]:
        off = self.db["connections"][booking["connection"]]["status"] == "called off"
        if "goodwill" in self.obeyed and off:
            yield Do("give_voucher", {"customer": booking["customer"], "euros": 10 * booking["passengers"]})

    def _book(self, wish: Mapping[str, Any]) -> Iterator[Step]:
        yield Say("On which day and at what time, for how many passengers, and in which fare, saver or flex?")
        details = {name: wish[name] for name in ("connection", "passengers", "fare")}
        yield Say("What is your full name?")
        yield Do("find_customer", {"name": self.db["customers"][self.task.customer]["name"]})
        yield Do("book", {"customer": self.task.customer, **details})
        number = f" Its number is B{len(self.db['bookings']) + 1:02d}." if "number" in self.obeyed else ""
        yield Say(f"Your crossing is booked.{number}")

    def _tell(self, wish: Mapping[str, Any]) -> Iterator[Step]:
        row = self.db["connections"][wish["connection"]]
        yield Do("find_connections", {name: row[name] for name in ("origin", "destination", "date")})
        yield Say(f"I looked it up for you: {wish['fact']}.")

    def _transfer(self, wish: Mapping[str, Any]) -> Iterator[Step]:
        yield Do("transfer_to_human", {"reason": wish.get("why", "the customer asks for a person")})
        self.stopped = True
