"""Program outputs as the text that a metric reads: values, messages, trajectories.

Pure functions. In every template a text is indented below its head, or stands on the head's line:
a text cannot pose as another field, another turn or a tool's answer.

Rewards render what programs return and loaders render recorded conversations: both come here, so that the same
conversation reads alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from metricsmith.errors import DataError

__all__ = ["bounded", "render_messages", "render_output", "render_trajectory"]

INDENT = "  "
EMPTY = "(empty)"
STEP = "thought", "tool_name", "tool_args", "observation"  # what dspy.ReAct notes of one step, each with its number


def render_output(value: Any) -> str:
    r"""Render one output: a text as it is, everything else by a template.

    ==========================================  =====================================================
    text                                        itself
    number, truth value, date, enumeration      its plain form; ``true`` and ``false``
    messages (every item has a ``role``)        `render_messages`
    trajectory of `dspy.ReAct`                  `render_trajectory`
    mapping, prediction, pydantic, dataclass    ``name: value`` by line, in order
    sequence, array                             ``- value`` by item
    ==========================================  =====================================================

    A nested value, or a text of several lines, stands indented below its name. Empty values are ``(empty)``.

    Raises
    ------
    DataError
        If there is no output at all (None).

    Examples
    --------
    >>> print(render_output({"title": "Storm", "tags": ["wind", "rain"], "body": "Stay in.\nCall us."}))
    title: Storm
    tags:
      - wind
      - rain
    body:
      Stay in.
      Call us.
    """
    if value is None:
        raise DataError("there is no output to render (None): the program must return a value in its output field")
    return value if isinstance(value, str) else "\n".join(_lines(value))


def render_messages(messages: Sequence[Mapping[str, Any]]) -> str:
    """Render a conversation, one turn after the other.

    A turn is ``role: content`` (``role name: content`` where the message names its author), each of its tool
    calls a line ``role calls tool {arguments as JSON}``. Understood are OpenAI's and Anthropic's shapes of calls
    and content; content that is no text stands as ``[type]``. Identifiers of calls are left out.

    Parameters
    ----------
    messages : sequence of mapping
        With ``role``, and ``content``, ``name``, ``tool_calls`` where there are any, in order.

    Raises
    ------
    DataError
        If a message is no mapping or has no role.

    Examples
    --------
    >>> call = {"function": {"name": "find", "arguments": '{"id": 7}'}}
    >>> print(render_messages([
    ...     {"role": "user", "content": "Where is order 7?"},
    ...     {"role": "assistant", "content": None, "tool_calls": [call]},
    ...     {"role": "tool", "name": "find", "content": "shipped"},
    ... ]))
    user: Where is order 7?
    assistant calls find {"id": 7}
    tool find: shipped
    """
    return "\n".join(_message_lines(messages))


def render_trajectory(trajectory: Mapping[str, Any]) -> str:
    """Render what `dspy.ReAct` returns as ``trajectory``: thought, call and observation of each step.

    Steps keep their order and are counted from 1, also where the first ones were cut off.

    Examples
    --------
    >>> print(render_trajectory({
    ...     "thought_0": "Look it up.", "tool_name_0": "find", "tool_args_0": {"id": 7}, "observation_0": "shipped",
    ... }))
    step 1 thought: Look it up.
    step 1 calls find {"id": 7}
    step 1 observation: shipped
    """
    return "\n".join(_trajectory_lines(trajectory))


def bounded(text: str, limit: int) -> str:
    """`text` in at most `limit` characters: cut at the end of a word, with a note of how much is left out.

    Examples
    --------
    >>> bounded("one two three four five six seven eight", 30)
    'one [cut: 3 of 39 characters]'
    """
    if len(text) <= limit:
        return text
    room = limit - len(f" [cut: {len(text)} of {len(text)} characters]")
    at_word = max(text.rfind(" ", 0, room + 1), text.rfind("\n", 0, room + 1))
    kept = text[: at_word if at_word > 0 else max(0, room)].rstrip()
    return f"{kept} [cut: {len(kept)} of {len(text)} characters]"


def _lines(value: Any) -> list[str]:
    """The template of `render_output`, by line; never empty."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        return value.splitlines() or [EMPTY]
    if value is None or isinstance(value, bool):
        return [str(value).lower()]
    if _are_messages(value):
        return list(_message_lines(value))
    mapping = _mapping(value)
    if mapping is not None:
        steps = [_step(name) for name in mapping]
        if None not in steps and any(step is not None and step[0] == "tool_name" for step in steps):
            return list(_trajectory_lines(mapping))
        return [line for name, inner in mapping.items() for line in _entry(f"{_one_line(name)}:", inner)] or [EMPTY]
    items = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(items, (list, tuple, set, frozenset)):
        ordered = sorted(items, key=str) if isinstance(items, (set, frozenset)) else items
        listed = [(first, rest) for first, *rest in map(_lines, ordered)]
        return [line for first, rest in listed for line in (f"- {first}", *(INDENT + line for line in rest))] or [EMPTY]
    return str(items).splitlines() or [EMPTY]


def _entry(head: str, value: Any) -> list[str]:
    """A head with its value: on one line where that is possible, else indented below."""
    lines = _lines(value)
    nested = not isinstance(value, str) and (_are_messages(value) or bool(_mapping(value)) or _is_list(value))
    if len(lines) == 1 and not nested:
        return [f"{head} {lines[0]}"]
    return [head, *(INDENT + line for line in lines)]


def _mapping(value: Any) -> dict[str, Any] | None:
    """A value with named parts as a dictionary; None for everything else."""
    if isinstance(value, Mapping):
        return {str(name): inner for name, inner in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: getattr(value, part.name) for part in fields(value)}
    if hasattr(type(value), "model_fields"):  # pydantic; its own dump would apply a type's format for prompts
        return dict(value)
    if callable(getattr(value, "keys", None)) and callable(getattr(value, "items", None)):  # dspy.Example, Prediction
        return dict(value.items())
    return None


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset)) and len(value) > 0


def _are_messages(value: Any) -> bool:
    return _is_list(value) and all(isinstance(item, Mapping) and isinstance(item.get("role"), str) for item in value)


def _step(name: str) -> tuple[str, int] | None:
    """``tool_name_0`` is the tool's name in step 0; None for names of another form."""
    part, _, number = name.rpartition("_")
    return (part, int(number)) if part in STEP and number.isascii() and number.isdigit() else None


def _trajectory_lines(trajectory: Mapping[str, Any]) -> Iterator[str]:
    for name, value in trajectory.items():
        step = _step(name)
        if step is None:
            raise DataError(
                f"{name!r} is no part of a trajectory: dspy.ReAct names {', '.join(STEP)}, each with _0 ..."
            )
        part, number = step
        if part == "tool_name":
            yield _call(f"step {number + 1}", value, trajectory.get(f"tool_args_{number}"))
        elif part != "tool_args":
            yield from _entry(f"step {number + 1} {part}:", value)


def _message_lines(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise DataError(
                f"message {place} is {message!r:.100}: each message must be a mapping with a role, "
                "for example {'role': 'user', 'content': 'Hello'}"
            )
        role = _one_line(message["role"])
        who = f"{role} {_one_line(message['name'])}" if message.get("name") else role
        text, calls = _content(message.get("content"))
        calls += message.get("tool_calls") or ()
        calls += [message["function_call"]] if message.get("function_call") else []
        if text or not calls:
            yield from _entry(f"{who}:", text)
        for call in calls:
            parts = _mapping(call) or {}
            parts = _mapping(parts.get("function")) or parts
            arguments = next((parts[key] for key in ("arguments", "args", "input") if key in parts), None)
            yield _call(role, parts.get("name", "?"), arguments)


def _content(content: Any) -> tuple[str, list[Any]]:
    """The text of a message's content, and the tool calls inside it."""
    if content is None or isinstance(content, str):
        return content or "", []
    if not isinstance(content, (list, tuple)):
        return render_output(content), []
    texts, calls = [], []
    for block in content:
        kind = block.get("type", "text") if isinstance(block, Mapping) else "text"
        if kind == "tool_use":
            calls.append(block)
        elif not isinstance(block, Mapping):
            texts.append(render_output(block))
        elif kind == "tool_result":
            texts.append(_content(block.get("content"))[0])
        else:
            texts.append(str(block["text"]) if "text" in block else f"[{_one_line(kind)}]")
    return "\n".join(texts), calls


def _call(who: str, name: Any, arguments: Any) -> str:
    if isinstance(arguments, str):
        with suppress(ValueError):  # what a model wrote instead of JSON is shown as the text that it is
            arguments = json.loads(arguments)
    shown = json.dumps({} if arguments is None else arguments, ensure_ascii=False, default=str)
    return f"{who} calls {_one_line(name)} {' '.join(shown.splitlines())}"


def _one_line(text: Any) -> str:
    return " ".join(str(text).split())
