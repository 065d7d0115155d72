"""The contract of a sandbox: what it is given, what it gives back, and how much a program may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Protocol

__all__ = ["LIMITS", "Limits", "MissingEngine", "RefusedSource", "RowResult", "Sandbox"]


MOST = 1e12  # of any limit: what the engine can count


class RefusedSource(ValueError):
    """A source text that a sandbox does not take; the message has the line and the reason."""


class MissingEngine(ImportError):
    """The package that would run the programs is not installed, or not whole."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that one program may use.

    Parameters
    ----------
    row_seconds : float
        Time of one row by the clock, from .001.
    seconds : float
        Time of all rows of one call by the clock, from .001; rows behind that are not run and say so.
    megabytes : float
        Memory of one row, from .001. Its input, as JSON text, may take a quarter of it.
    printed_bytes : int
        Bytes that one row may print, 0 or more; they are collected and dropped. More is an error of the row.
    output_bytes : int
        Bytes of the value of one row as JSON text, 0 or more. More is an error of the row.

    Raises
    ------
    ValueError
        If a limit is too small, or above 1e12, or bytes are no whole number.
    """

    row_seconds: float = 0.5
    seconds: float = 60.0
    megabytes: float = 64.0
    printed_bytes: int = 10_000
    output_bytes: int = 10_000

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            kind, least, words = (int, 0, "whole") if name.endswith("_bytes") else (int | float, 1e-3, "finite")
            if isinstance(value, bool) or not isinstance(value, kind) or not least <= value <= MOST:
                raise ValueError(f"{name}={value!r} must be a {words} number from {least:g} to {MOST:g}")

    def lower(self, other: Limits) -> Limits:
        """The lower of both, limit by limit."""
        return Limits(**{one.name: min(getattr(self, one.name), getattr(other, one.name)) for one in fields(self)})


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class RowResult:
    """One row's result: a value, or an error in one line that says why there is none."""

    value: Any = None
    error: str = ""


class Sandbox(Protocol):
    """Something that runs a function of a source text on rows, each as if nothing had run before it."""

    @property
    def engine(self) -> str:
        """Name and version of what computes: another version may compute another value."""

    def compile(self, source: str, function: str) -> None:
        """Check a source text without running it; `RefusedSource` if it is not taken, or does not define `function`."""

    def run(
        self, source: str, function: str, rows: Sequence[Mapping[str, Any]], limits: Limits = LIMITS
    ) -> list[RowResult]:
        """One outcome a row, in order; `function` is called with the row's entries as keywords.

        Values, into the program and out of it, are those of JSON. A row's outcome depends on nothing but the source,
        the row and the limits. Raises `RefusedSource` as `compile` does; whatever a row does is its own error.
        """
