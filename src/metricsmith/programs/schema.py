"""The vocabulary of the checks in `metricsmith.programs.kinds`: one function for each sort of value in a saved file.

Each returns a `Check`, which takes a value and its path in the file and raises `StateError` if it is not allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import dspy
import pydantic

from metricsmith.errors import DataError, OptionError, StateError, nearest
from metricsmith.metric import MARKER
from metricsmith.records import Scale

__all__ = [
    "FLAG", "ITEMS", "LARGEST", "NAME", "NUMBERS", "RUNS", "SCALE", "SHARE", "Check", "Checks", "at",
    "by_value", "entries", "inside", "keys", "list_of", "made", "maybe", "number", "one_of", "predictor", "refuse",
    "same_length", "text",
]  # fmt: skip

NAME, TEXT = 2_000, 1_000_000  # characters
ITEMS = 1_000  # components, demonstrations, steps
NUMBERS = 1_000_000  # training scores of a column, knots of a map
RUNS = 2_000  # judgements behind one number of the metric that a file holds
LARGEST = 1e100  # of numbers: sums and products of a few stay finite
WAYS = (
    "a file chooses neither a model nor how it is asked. Name the model where the metric is used (lm=..., --lm), and "
    "have the file written again by this version's save; or, if you trust the file, put its state into a judge built "
    "in the same way with DSPy's load_state, and save that"
)

Check = Callable[[Any, str], None]
Checks = Mapping[str, Check]  # of an object's keys


def refuse(path: str, why: str) -> NoReturn:
    """Raise the error about a value."""
    raise StateError(f"{path or 'the file'}: {why}")


def at(path: str, *places: str) -> str:
    """The path of a place inside the value at `path`."""
    for place in places:
        short = place[:60]
        path += f".{short}" if short.replace(".", "").isidentifier() else f"[{short!r}]"
    return path.removeprefix(".")


def text(most: int = TEXT, least: int = 0) -> Check:
    """A text of so many characters."""

    def check(value: Any, path: str) -> None:
        if not isinstance(value, str):
            refuse(path, f"{value!r:.60} is no text; save the metric again")
        if not least <= len(value) <= most:
            refuse(path, f"a text of {len(value):,} characters is not allowed, but one of {least} to {most:,}")
        if MARKER in value:
            refuse(path, f"not allowed is {MARKER}: DSPy would take what follows for a picture or a file")
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            refuse(path, "not allowed is half of a surrogate pair, which no server takes")

    return check


def number(low: float = -LARGEST, high: float = LARGEST, *, whole: bool = False) -> Check:
    """A finite number, the ends included."""
    kinds = int if whole else int | float

    def check(value: Any, path: str) -> None:
        if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
            refuse(path, f"{value!r:.60} is not allowed; a {'whole ' * whole}number from {low:g} to {high:g} is")

    return check


def one_of(*allowed: Any) -> Check:
    """One of these values, and of their types."""

    def check(value: Any, path: str) -> None:
        if not any(type(value) is type(one) and value == one for one in allowed):
            near = nearest(value, [one for one in allowed if isinstance(one, str)]) if isinstance(value, str) else ""
            refuse(path, f"not allowed is {value!r:.60}{near}; this version knows {', '.join(map(str, allowed)):.400}")

    return check


def maybe(known: Check) -> Check:
    """Null, or a value that passes `known`."""

    def check(value: Any, path: str) -> None:
        if value is not None:
            known(value, path)

    return check


def list_of(item: Check, most: int = ITEMS, least: int = 0) -> Check:
    """A list of so many items."""

    def check(value: Any, path: str) -> None:
        if not isinstance(value, list | tuple):
            refuse(path, f"{value!r:.60} is no list; save the metric again")
        if not least <= len(value) <= most:
            refuse(path, f"a list of {len(value):,} is not allowed, but one of {least} to {most:,}")
        for place, one in enumerate(value):
            item(one, f"{path}[{place}]")

    return check


def keys(_optional: Checks | None = None, /, **needed: Check) -> Check:
    """An object with exactly these keys; those of the first argument may lack."""
    known = {**needed, **(_optional or {})}

    def check(value: Any, path: str) -> None:
        if not isinstance(value, dict):
            refuse(path, f"{value!r:.60} is not allowed; an object with {', '.join(known)} is")
        for key in value:
            if key not in known:
                why = f": {WAYS}" if key == "config" else f"; known are {', '.join(known)}"
                refuse(at(path, key), f"not allowed{why}")
        for key, one in known.items():
            if key in value:
                one(value[key], at(path, key))
            elif key in needed:
                refuse(at(path, key), "is missing; save the metric again")

    return check


def entries(item: Check, most: int, name: Check) -> Check:
    """An object with at most so many entries, whose names the file chooses."""

    def check(value: Any, path: str) -> None:
        if not isinstance(value, dict) or len(value) > most:
            refuse(path, f"{value!r:.60} is not allowed; an object with at most {most:,} entries is")
        for key, one in value.items():
            name(key, f"a name in {path}")
            item(one, at(path, key))

    return check


def made(known: Check, make: Callable[[Any], Any]) -> Check:
    """A value that passes `known`, and from which `make` builds an object without an error."""

    def check(value: Any, path: str) -> None:
        known(value, path)
        try:
            make(value)
        except (DataError, OptionError, StateError) as problem:
            refuse(path, str(problem))

    return check


def inside(value: Any, place: str) -> Any:
    """The value at a place such as ``settings.weights``; None if nothing does."""
    for key in place.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def same_length(known: Check, first: str, second: str) -> Check:
    """A value that passes `known` and has lists of the same length at two places."""

    def check(value: Any, path: str) -> None:
        known(value, path)
        given, wanted = len(inside(value, first)), len(inside(value, second))
        if given != wanted:
            refuse(at(path, first), f"not allowed are {given} entries; {second} has {wanted}")

    return check


def by_value(place: str, rows: Checks) -> Check:
    """A value that passes the check of `rows` that the text at a place names."""

    def check(value: Any, path: str) -> None:
        name = inside(value, place)
        one_of(*rows)(name, at(path, place))
        rows[name](value, path)

    return check


def predictor(signature: type[dspy.Signature]) -> Check:
    """The state that DSPy writes of a predictor with this signature: texts and demonstrations, no model or setting."""
    cells = {
        name: _cell if field.annotation in (str, int, float) else maybe(_object(field.annotation))
        for name, field in signature.fields.items()
    }
    fields = list_of(keys(prefix=text(NAME), description=text()), len(cells), len(cells))

    def empty(value: Any, path: str) -> None:
        if value != []:
            refuse(path, "not allowed; an empty list is")

    def no_model(value: Any, path: str) -> None:
        if value is not None:
            refuse(path, f"not allowed: {WAYS}")

    return keys(
        traces=empty,
        train=empty,
        demos=list_of(keys({**cells, "augmented": one_of(True)})),
        signature=keys(instructions=text(), fields=fields),
        lm=no_model,
    )


def _cell(value: Any, path: str) -> None:
    """A field of a demonstration: a value that a table's cell may have."""
    if isinstance(value, list | tuple):
        list_of(text())(value, path)
    elif isinstance(value, str):
        text()(value, path)
    elif value is not None and not isinstance(value, bool):
        number()(value, path)


def _plain(value: Any, path: str) -> None:
    """Cells in lists and objects."""
    if isinstance(value, dict):
        entries(_plain, ITEMS, text(NAME))(value, path)
    elif isinstance(value, list | tuple):
        list_of(_plain)(value, path)
    else:
        _cell(value, path)


def _object(annotation: Any) -> Check:
    """A demonstration's field that is no cell: a value that pydantic reads as `annotation`."""
    adapter = pydantic.TypeAdapter(annotation)

    def check(value: Any, path: str) -> None:
        _plain(value, path)
        try:
            adapter.validate_python(value)
        except ValueError as problem:
            why = problem.errors()[0]["msg"] if isinstance(problem, pydantic.ValidationError) else problem
            refuse(path, f"{value!r:.60} is not allowed: {why}")

    return check


FLAG, SHARE = one_of(True, False), number(0, 1)
SCALE = made(
    keys({"step": maybe(number()), "higher_is_better": FLAG}, low=number(), high=number()),
    lambda value: Scale(**value),
)
