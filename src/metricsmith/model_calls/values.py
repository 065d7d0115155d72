"""The value that a piece of an answer is: one piece of JSON, or the option, or options, that it names."""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, Literal, get_args, get_origin

__all__ = ["AROUND", "SHOWN", "json_value", "option_in", "options_in", "options_of", "shown"]

AROUND = re.compile(r"(\*{1,3}|_{1,3}|[\"'])(.+)\1", re.DOTALL)  # emphasis and quotation marks
QUOTED = re.compile(r"`(.+)`|“(.+)”|‘(.+)’|„(.+)“|«(.+)»", re.DOTALL)  # of texts; no number is read out of these
CODE_BLOCK = re.compile(r"```(?:json)?[ \t]*\n(.*)\n\s*```", re.DOTALL | re.IGNORECASE)
SHOWN = 60  # characters of a field in a message


def json_value(text: str) -> Any:
    """The value of one piece of JSON, plain or in a code block; a `ValueError` if it is none or has a member twice."""
    block = CODE_BLOCK.fullmatch(text)
    return json.loads(block[1] if block else text, strict=False, object_pairs_hook=_unique, parse_constant=str)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("two members have the same name")
    return members


def options_of(kind: Any) -> tuple[str, ...]:
    """The texts among which a field chooses: those of a Literal, or of a list of one; empty for any other field."""
    one = get_args(kind)[0] if get_origin(kind) is list else kind
    options = get_args(one) if get_origin(one) is Literal else ()
    return options if all(isinstance(option, str) for option in options) else ()


def option_in(name: str, options: Sequence[str], piece: Any) -> str:
    """The option that a text is; emphasis, quotation marks and case count only where they tell options apart.

    Raises
    ------
    ValueError
        If it is none, or could be several.
    """
    bare = "" if isinstance(piece, bool) or not isinstance(piece, str | int) else str(piece).strip()
    while bare not in options and (around := AROUND.fullmatch(bare) or QUOTED.fullmatch(bare)):
        bare = around[around.lastindex or 0].strip()
    known = [bare] if bare in options else [one for one in options if _folded(one) == _folded(bare)]
    if len(known) != 1:
        raise ValueError(f"{name} {shown(piece)} is {'more than one' if known else 'none'} of the options")
    return known[0]


def options_in(name: str, options: Sequence[str], piece: Any) -> list[str]:
    """The options of a list, in JSON or, as DSPy's chat form asks for it, in Python; errors as of `option_in`."""
    try:
        items = json_value(piece.strip()) if isinstance(piece, str) else piece
    except (ValueError, RecursionError):
        try:
            items = ast.literal_eval(piece.strip())
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):  # literal_eval names all of these
            items = None
    if not isinstance(items, list):
        raise ValueError(f"{name} {shown(piece)} is not a list")
    return [option_in(name, options, item) for item in items]


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def shown(value: Any) -> str:
    """A value as a message repeats it, cut short."""
    text = " ".join((value if isinstance(value, str) else json.dumps(value, default=str))[: 2 * SHOWN].split())
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "...")
