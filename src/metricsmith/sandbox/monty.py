"""The engine: Monty, an interpreter of a subset of Python in worker processes of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from metricsmith.sandbox.apart import run_apart
from metricsmith.sandbox.contract import LIMITS, Limits, RowResult
from metricsmith.sandbox.subset import check_source
from metricsmith.sandbox.workers import WorkerPool, engine_module

__all__ = ["MontySandbox", "sandbox"]

POLICY: Any = {"datetime": datetime(2000, 1, 1, tzinfo=UTC), "sleep": "zero", "random_start": {"seed": 0}}
RECURSION = 200
OUT_OF_TIME = "TimeoutError: feed time limit exceeded"  # the engine's words, which go on to what it measured
LONGEST_ERROR = 300  # characters
ATTEMPTS = 2  # a worker that somebody kills takes no row with it; a program that kills two does
WORKERS = WorkerPool()  # the process's own, whoever makes a sandbox; nothing starts before a row does
# Runs in the worker. A program in a namespace of its own cannot change what measures it, and only short text leaves.
HARNESS = f"""
from json import dumps, loads
def run():
    space = {{}}
    try:
        exec(source, space)
        text = dumps(space[function](**loads(row)))
    except BaseException as problem:
        said = f"{{type(problem).__name__}}: {{problem}}"
        if len(said) > {LONGEST_ERROR}:
            raise RuntimeError(said[:{LONGEST_ERROR}]) from None
        raise
    if len(text) > most:
        raise ValueError(f"the value takes {{len(text)}} bytes as JSON; {{most}} are allowed")
    return text
run()
"""


class MontySandbox:
    """Runs every row in a session of its own, in the workers of this process.

    Raises
    ------
    MissingEngine
        If pydantic-monty is not installed.
    """

    def __init__(self) -> None:
        self._monty = engine_module()
        self._workers = WORKERS

    @property
    def engine(self) -> str:
        """Name and version."""
        return f"monty {self._monty.__version__}"

    def compile(self, source: str, function: str) -> None:
        """Check a source text without running it."""
        check_source(source, function)

    def run(
        self, source: str, function: str, rows: Sequence[Mapping[str, Any]], limits: Limits = LIMITS
    ) -> list[RowResult]:
        """One outcome a row, in order; see `Sandbox.run`.

        Notes
        -----
        The clock stands still at 2000-01-01, sleep returns at once, chance starts from seed 0, and there are no files,
        no environment and no calls back. In a process forked from one that had run the engine, the rows of each
        call go through a Python process of their own.
        """
        self.compile(source, function)
        texts = [_as_json(row, limits) for row in rows]
        if self._workers.lost:
            return run_apart(source, function, texts, limits)
        return self.run_texts(source, function, texts, limits)

    def run_texts(self, source: str, function: str, rows: Sequence[str | RowResult], limits: Limits) -> list[RowResult]:
        """`run` for a checked source and rows as JSON text; a row that is an outcome already stays."""
        end = time.monotonic() + limits.seconds
        outcomes = []
        for row in rows:
            left = end - time.monotonic()
            if isinstance(row, RowResult):
                outcomes.append(row)
            elif left <= 0:
                outcomes.append(RowResult(error=f"not run: the rows before took the call's {limits.seconds:g} seconds"))
            else:
                outcomes.append(self._row(source, function, row, limits, min(limits.row_seconds, left)))
        return outcomes

    def _row(self, source: str, function: str, row: str, limits: Limits, seconds: float) -> RowResult:
        own = {
            "max_feed_duration_secs": seconds,
            "max_memory": int(limits.megabytes * 1e6),
            "max_recursion_depth": RECURSION,
        }
        inputs = {"source": source, "function": function, "row": row, "most": limits.output_bytes}
        error = ""
        for _ in range(ATTEMPTS):
            printed = self._monty.CollectString(max_bytes=limits.printed_bytes)
            try:
                with self._workers.session(limits=own, os_policy=POLICY) as session:
                    return RowResult(json.loads(session.feed_run(HARNESS, inputs=inputs, print_callback=printed)))
            except (self._monty.MontyError, ValueError, RecursionError) as problem:
                error = _line(problem)
                crashed = isinstance(problem, self._monty.MontyCrashedError)
                if getattr(problem, "timed_out", False) or error.startswith(OUT_OF_TIME):
                    return RowResult(error=f"TimeoutError: stopped after {seconds:.3g} seconds")
                if not crashed:
                    break
        return RowResult(error=error)


def _as_json(row: Mapping[str, Any], limits: Limits) -> str | RowResult:
    try:
        text = json.dumps(dict(row), ensure_ascii=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as problem:
        return RowResult(error=f"the row is no JSON: {_line(problem)}")
    if size > limits.megabytes * 2.5e5:
        return RowResult(error=f"the row takes {size:,} bytes; a quarter of {limits.megabytes:g} megabytes is allowed")
    return text


def _line(problem: BaseException) -> str:
    text = " ".join(str(problem).split())[:LONGEST_ERROR]
    return "".join(letter if letter.isprintable() else "�" for letter in text)


@lru_cache(maxsize=1)
def sandbox() -> MontySandbox:
    """A sandbox on the process's own workers, which start with the first row.

    Raises
    ------
    MissingEngine
        If pydantic-monty is not installed.
    """
    return MontySandbox()
