"""The forty tasks of the ferry line: what a customer wants and knows, and what it must come to."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

SIDES = ("train", "test")


@dataclass(frozen=True)
class Task:
    """One customer's concern.

    Of a wish ``do`` is ``cancel``, ``move``, ``book``, ``tell`` or ``transfer``, the rest details. ``foreign`` marks
    a booking whose holder's date of birth the customer does not know, ``declined`` a move that is not wanted for a fee;
    ``instead`` holds the wishes that follow where this one is refused or declined.
    """

    id: str
    customer: str  # id of the customer who writes, or of the holder where another person writes
    opening: str  # first turn, without what the agent has to ask for
    wishes: tuple[Mapping[str, Any], ...]  # in order
    gold: tuple[tuple[Any, ...], ...]  # tool and arguments of the calls that leave the database as it must be
    facts: tuple[str, ...] = ()  # each must be told to the customer, as a whole token
    rules: tuple[str, ...] = ()  # ids of the rules that decide the task: breaking any one of them earns 0
    says: Mapping[str, str] = field(default_factory=dict)  # answers by topic of `agent_reward.customer.TOPICS`


@cache
def tasks() -> Mapping[str, Task]:
    """Return all tasks by id, those of ``train`` first."""
    found: dict[str, Task] = {}
    for side in SIDES:
        text = Path(__file__).with_name("data").joinpath(f"{side}.toml").read_text(encoding="utf-8")
        for entry in tomllib.loads(text)["tasks"]:
            lists = {name: tuple(entry.pop(name, ())) for name in ("wishes", "facts", "rules")}
            contents: dict[str, Any] = {**entry, **lists, "gold": tuple(tuple(call) for call in entry["gold"])}
            found[entry["id"]] = Task(**contents)
    return found
