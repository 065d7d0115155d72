"""Sources of options beside the command line: texts from files, and the settings of the working folder.

``metricsmith.toml`` names columns and lowers limits, and nothing else. It is looked for in the folder in which a
command runs, never beside the data nor above. A folder that somebody else has written must redirect nothing: the file
names no model, address, key or path.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from metricsmith.cli.terminal import say
from metricsmith.errors import DataError, nearest

__all__ = ["FILE", "LIMITS", "folder_settings", "text_or_file", "with_settings"]

FILE = "metricsmith.toml"
LARGEST = 65_536  # bytes
HIGHEST = 1e15  # of a limit
SEVERAL = ("input", "reference")
COLUMNS = ("target", "output", *SEVERAL, "context", "system", "rater", "id", "group")
WHOLE = ("max_requests", "max_tokens", "concurrency")
LIMITS = (*WHOLE, "max_usd", "max_seconds", "requests_per_minute", "tokens_per_minute")


def folder_settings() -> dict[str, Any]:
    """The settings of the working folder, checked; none without a file.

    Raises
    ------
    DataError
        If the file is a link, too large, unreadable or no TOML, or one of its lines is not allowed.
    """
    import tomllib

    path = Path(FILE)
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            raise DataError(
                f"{FILE} must be a plain file of at most {LARGEST:,} bytes, and no link: replace or remove it"
            )
        settings = tomllib.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as problem:
        if isinstance(problem, DataError):
            raise
        reason = "it is nested too deeply" if isinstance(problem, RecursionError) else problem
        raise DataError(f"{FILE} cannot be read as TOML in UTF-8: {reason}; correct or remove it") from problem
    return {name: _checked(name, value) for name, value in settings.items()}


def _checked(name: str, value: Any) -> Any:
    """The value of one line: a column, a list of columns, or a limit."""
    if name not in (known := (*COLUMNS, *LIMITS)):
        raise DataError(
            f"{FILE} has {name[:60]!r}, which is not allowed{nearest(name[:60], known)}: it names columns and limits "
            f"alone ({', '.join(known)}), no model, address, key or path; take the line out"
        )
    if name in COLUMNS:
        columns = value if isinstance(value, list) and name in SEVERAL else [value]
        if columns and all(isinstance(column, str) and column for column in columns):
            return columns if name in SEVERAL else value
        wanted = "a column's name" + (" or a list of names" if name in SEVERAL else "")
    else:
        kinds = int if name in WHOLE else int | float
        if isinstance(value, kinds) and not isinstance(value, bool) and 0 < value <= HIGHEST:
            return value
        wanted = f"a {'whole ' * (name in WHOLE)}number above 0, at most {HIGHEST:g}"
    raise DataError(f"{FILE} has {name} = {value!r:.60}, which must be {wanted}; correct the line")


@contextmanager
def with_settings(given: Mapping[str, Any], fillable: Collection[str]) -> Iterator[dict[str, Any]]:
    """A command's options with the settings of the working folder; says on standard error what these change.

    A column stands in for an option that was not given, a limit where none was given or a higher one.

    Parameters
    ----------
    given : mapping of str to object
        Every option of the command, by parameter.
    fillable : collection of str
        Those that the file may fill.

    Raises
    ------
    DataError
        As `folder_settings` does, and where the table lacks a column that the file named.
    """
    values, told, named = dict(given), list[str](), list[str]()
    for name, wanted in (folder_settings() if fillable else {}).items():
        option = "bounds" if name == "concurrency" else name
        had: Any = given.get(option)
        if option not in fillable:
            continue
        if name in COLUMNS:
            value = had or wanted
        elif option == "bounds":
            value = _bounded(had, wanted)
        else:
            value = wanted if had is None else min(had, wanted)
        if value != had:
            values[option] = value
            shown = value if name in SEVERAL else [value]
            told += [f"--{name.replace('_', '-')} {one!r}" for one in shown]
            told[-1] += f" (lower than {had})" if had else ""
            named += shown if name in COLUMNS else []
    if told and not given.get("quiet"):
        say(f"note: {FILE}: {', '.join(told)}", err=True)
    try:
        yield values
    except DataError as problem:
        if any(f"no column {column!r}" in str(problem) for column in named):
            raise DataError(f"{problem}, or correct {FILE}, which named it") from problem
        raise


def _bounded(bounds: str, most: int) -> str:
    """The bounds of ``--concurrency`` with at most so many requests in flight; what is no bounds stays as it is."""
    from metricsmith.model_calls.limits import MOST

    low, _, high = (f"1:{MOST}" if bounds == "auto" else bounds).partition(":")
    try:
        lower = [min(int(end), most) for end in (low, high or low)]
        return bounds if lower == [int(low), int(high or low)] else f"{lower[0]}:{lower[1]}"
    except ValueError:
        return bounds


def text_or_file(value: str, option: str) -> str:
    """The text itself, or the content of the file after an ``@``.

    Raises
    ------
    DataError
        If the file cannot be read as UTF-8.
    """
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else problem.reason
        raise DataError(
            f"{option} {value} cannot be read as UTF-8 text: {reason or problem}; name a text file"
        ) from problem
