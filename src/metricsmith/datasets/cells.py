"""One cell of a table: its text, its number, the list of references in it, and the blank cell."""

from __future__ import annotations

import ast
import io
import json
import math
import tokenize
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

__all__ = [
    "cell_number", "cell_text", "is_blank", "mostly", "parsed_by", "plain_value", "python_literal",
    "reference_list", "value_or",
]  # fmt: skip

# In lower case.
_WORDS = {"true": 1.0, "false": 0.0, **dict.fromkeys(("", "nan", "null", "none", "n/a", "na", "<na>"), math.nan)}


def plain_value(value: Any) -> Any:
    """Turn a value of numpy, pandas or pyarrow into plain Python; every kind of missing becomes None.

    Parameters
    ----------
    value : any
        A cell as a data frame or a JSON reader holds it.

    Returns
    -------
    None, bool, int, float, str, list or dict
        Other types (dates, decimals) become their text. NaN becomes None, infinities stay.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    if isinstance(value, Mapping):
        return {str(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    if hasattr(value, "tolist"):
        return plain_value(value.tolist())
    return None if str(value) in ("<NA>", "NaT", "NaN") else str(value)


def is_blank(cell: Any) -> bool:
    """True for a plain cell that is None or only white space."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def cell_text(cell: Any) -> str:
    """The text of a plain cell.

    Strings stay as they are, None is empty, whole floats lose their ``.0`` (a column of integers with
    one gap is a column of floats to pandas), lists and dicts become JSON.

    Examples
    --------
    >>> cell_text(3.0), cell_text(None), cell_text(["a", 1])
    ('3', '', '["a", 1]')
    """
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, list | dict):
        return json.dumps(cell, ensure_ascii=False)
    return str(cell)


def cell_number(cell: Any) -> float:
    """The number in a plain cell.

    Numbers, text that is a number, booleans and the words true and false count; a blank cell and
    ``nan``, ``null``, ``none``, ``n/a`` are NaN; infinities are kept.

    Raises
    ------
    ValueError
        If there is something else in the cell.
    """
    if isinstance(cell, bool | int | float):
        return float(cell)
    text = cell_text(cell).strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if "_" in text:
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def mostly(parse: Callable[[Any], object], cells: Sequence[Any]) -> bool:
    """True if `parse` reads more than half of the cells that are not blank; it raises a `ValueError` for others."""
    filled = [cell for cell in cells if not is_blank(cell)]
    return 2 * sum(value_or(parse, cell) is not None for cell in filled) > len(filled)


def value_or(parse: Callable[[Any], Any], cell: Any, otherwise: Any = None) -> Any:
    """The value that `parse` reads in a cell, or `otherwise` where it raises a `ValueError`."""
    try:
        return parse(cell)
    except ValueError:
        return otherwise


def reference_list(cell: Any) -> list[str]:
    """The references in a cell: a list, a JSON list, a Python list in text form, or one plain text.

    Only a list of strings is read as a list, so that the single reference ``[1, 2]`` stays one text.
    The printed form of a numpy array of strings (``['a' 'b']``, no commas) is read as well: Python
    would glue its items together. Blank references are dropped; the order is kept.

    Examples
    --------
    >>> reference_list('["a", "b"]'), reference_list("['a', '']"), reference_list("one text")
    (['a', 'b'], ['a'], ['one text'])
    """
    items = cell if isinstance(cell, list) else _listed(cell_text(cell))
    return [cell_text(item) for item in items if not is_blank(item)]


def _listed(text: str) -> list[Any]:
    stripped = text.strip()
    if stripped.startswith("[") and stripped.endswith("]"):
        for value in parsed_by(stripped, json.loads, _python_list):
            if isinstance(value, list) and all(item is None or isinstance(item, str) for item in value):
                return value
    return [text]


def parsed_by(text: str, *parsers: Callable[[str], Any]) -> Iterator[Any]:
    """Yield the value of a text by each of the parsers that can read it, in order."""
    for parse in parsers:
        try:
            value = parse(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        yield value


def python_literal(text: str) -> Any:
    """The value that Python's printed form stands for; nothing is executed.

    Raises
    ------
    ValueError, SyntaxError, MemoryError, RecursionError
        If the text is no literal, or nests too deep.
    """
    with warnings.catch_warnings():
        # A text may hold a backslash that is no escape; that is data, not a programming mistake.
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        return ast.literal_eval(text)


def _python_list(text: str) -> Any:
    value = python_literal(text)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    strings = [token.string for token in tokens if token.type == tokenize.STRING]
    if isinstance(value, list) and value and len(strings) > len(value):
        return [python_literal(string) for string in strings]
    return value
