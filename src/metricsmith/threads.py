"""Threads: tasks side by side in the caller's context, values that several want, and libraries kept to one thread."""

from __future__ import annotations

import contextvars
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Generic, TypeVar

from threadpoolctl import ThreadpoolController

__all__ = ["Memo", "in_threads", "one_thread"]

Result = TypeVar("Result")


def in_threads(
    tasks: Sequence[Callable[[], Result]], most: int, name: str, *, on_error: Callable[[], object] | None = None
) -> list[Result]:
    """Run tasks side by side, each in a copy of the context that is in force.

    Parameters
    ----------
    tasks : sequence of callable
        Functions without arguments; none at all give an empty list.
    most : int
        The number of threads, at least 1; no more are started than there are tasks.
    name : str
        Begins the threads' names.
    on_error : callable, optional
        Called before the tasks that run are waited for, to let them end early.

    Returns
    -------
    list
        The results, in the order of the tasks.

    Raises
    ------
    BaseException
        The error of the first task in order that raised one, or KeyboardInterrupt on Ctrl-C. Tasks that have not begun
        by then are dropped; those that run are waited for.
    """
    with ThreadPoolExecutor(max(1, min(len(tasks), most)), name) as pool:
        futures = [pool.submit(contextvars.copy_context().run, task) for task in tasks]
        try:
            return [future.result() for future in futures]
        except BaseException:  # Ctrl-C too, which only the thread that waits here hears
            pool.shutdown(wait=False, cancel_futures=True)
            if on_error is not None:
                on_error()
            raise


class Memo(Generic[Result]):
    """Values by key, each computed once, also when several threads ask for it at the same time."""

    def __init__(self) -> None:
        self._known: dict[str, Result] = {}
        self._lock = threading.Lock()
        self._asking: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def get(self, key: str, compute: Callable[[], Result], keep: Callable[[Result], bool]) -> Result:
        """The known value, or a new one; a new one is remembered if `keep` is true of it."""
        with self._lock:
            asking = self._asking[key]
        with asking:
            if key in self._known:
                return self._known[key]
            value = compute()
            if keep(value):
                self._known[key] = value
            return value


@contextmanager
def one_thread(user_api: str | None = None) -> Iterator[None]:
    """Keep BLAS and OpenMP, or only `user_api`, to one thread; a context manager, and a decorator.

    On matrices of a few thousand rows the other threads mostly wait for each other, and wait by spinning: processor
    time that other work lacks. Results do not depend on it. A library that is loaded inside is not limited, and a
    local model has no place inside.
    """
    with _libraries(len(sys.modules)).limit(limits=1, user_api=user_api):
        yield


@lru_cache(maxsize=1)
def _libraries(_: int) -> ThreadpoolController:
    """The numerical libraries of the process, looked for again after imports alone: its memory map is long."""
    return ThreadpoolController()
