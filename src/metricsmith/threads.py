"""Threads of numerical libraries: where matrices are small they cost more than they give."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

__all__ = ["one_thread"]


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS and OpenMP to one thread; a context manager, and a decorator as ``@one_thread()``.

    On matrices of a few thousand rows the other threads mostly wait for each other, and wait by spinning: processor
    time that other work lacks. Results do not depend on it. A library that is loaded inside is not limited, and a
    local model has no place inside.
    """
    with threadpool_limits(1):
        yield
