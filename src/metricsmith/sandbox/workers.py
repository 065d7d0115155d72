"""The process's own pool of workers: made at first use, closed at exit, and never shared with a forked child."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from metricsmith.sandbox.contract import MissingEngine

__all__ = ["WorkerPool", "engine_module"]

PATIENCE = 1.0  # seconds that the end of the process waits for rows of other threads
GRACE = 0.25  # seconds past its limit after which a worker that has not stopped the program itself is killed


def engine_module() -> Any:
    """The package `pydantic_monty`.

    Raises
    ------
    MissingEngine
        If it is not installed.
    """
    try:
        return import_module("pydantic_monty")
    except ImportError as problem:
        raise MissingEngine(
            "running code metrics needs the package pydantic-monty, which is not installed"
        ) from problem


class WorkerPool:
    """The pool, and the knowledge of what a fork left behind."""

    def __init__(self) -> None:
        self._pool: Any = None
        self._ran = False
        self.lost = False
        self._as_new()
        atexit.register(self._end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def _as_new(self) -> None:
        self._lock = threading.Lock()
        self._idle = threading.Condition()
        self._busy = 0
        self._ending = False

    @contextmanager
    def session(self, **options: Any) -> Iterator[Any]:
        """A session of its own, with the options of the engine's ``checkout``.

        Errors as for `pool`. While the process ends, only its main thread gets one: a daemon thread that Python stops
        inside the engine would abort the process.
        """
        with self._idle:
            while self._ending and threading.current_thread() is not threading.main_thread():
                self._idle.wait()
            self._busy += 1
        try:
            with self.pool().checkout(**options) as session:
                yield session
        finally:
            with self._idle:
                self._busy -= 1
                self._idle.notify_all()

    def pool(self) -> Any:
        """The pool, made if there is none.

        Raises
        ------
        MissingEngine
            If the package or its program is not installed.
        """
        with self._lock:
            if self._pool is None:
                self._ran = True
                try:
                    pool = engine_module().Monty(feed_duration_limit_grace=GRACE)
                    # Never freed: freeing a forked child's copy would kill the parent's workers.
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(pool))
                    pool.__enter__()
                except FileNotFoundError as problem:
                    raise MissingEngine(f"the program of pydantic-monty is not installed: {problem}") from problem
                self._pool = pool
            return self._pool

    def close(self) -> None:
        """End the workers; the next use makes new ones."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.__exit__(None, None, None)

    def _end(self) -> None:
        with self._idle:
            self._ending = True
            self._idle.wait_for(self._is_idle, timeout=PATIENCE)
        self.close()  # which ends what still runs
        with self._idle:
            self._idle.wait_for(self._is_idle, timeout=PATIENCE)

    def _is_idle(self) -> bool:
        return not self._busy

    def _after_fork(self) -> None:
        """The pool is the parent's; `lost` says that the engine's threads ran there, which a fork does not copy."""
        self.lost = self._ran
        self._pool = None
        self._as_new()
