"""One line on standard error per stage of a run, with the time it took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

__all__ = ["stage"]


@contextmanager
def stage(label: str, enabled: bool) -> Iterator[None]:
    """Show that a stage runs; nothing is shown where standard error is no terminal."""
    with tqdm(total=1, desc=label, bar_format="{desc}: {elapsed}", disable=None if enabled else True) as bar:
        yield
        bar.update()
