"""DSPy's optimisers print; a caller's results go to standard output."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

__all__ = ["quiet"]

_OUTPUT = threading.Lock()  # standard output belongs to the process: searches in two threads take turns


@contextmanager
def quiet(progress: bool) -> Iterator[None]:
    """Keep DSPy's printing off standard output, where a caller's results go, and off standard error unless wanted."""
    log = logging.getLogger("dspy")
    with (
        _OUTPUT,
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        redirect_stdout(sys.stderr if progress else nowhere),
    ):
        level = log.level
        if progress:
            yield
            return
        log.setLevel(max(level, logging.ERROR))
        try:
            with redirect_stderr(nowhere):
                yield
        finally:
            log.setLevel(level)
