"""Threads of numerical libraries: where matrices are small they cost more than they give."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

__all__ = ["one_thread"]

_lock = threading.Lock()
_inside = 0
_limits: threadpool_limits | None = None


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS and OpenMP to one thread; a context manager, and a decorator as ``@one_thread()``.

    On matrices of a few thousand rows the other threads mostly wait for each other, and wait by spinning: processor
    time that other work lacks. Results do not depend on it. The limit is the process's: it holds until the last of
    those who asked for it, in any thread, is done, and then the limits of before hold again.
    """
    global _inside, _limits
    with _lock:
        if not _inside:
            _limits = threadpool_limits(1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside and _limits is not None:
                _limits.restore_original_limits()
                _limits = None
