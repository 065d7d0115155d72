"""The bar that shows how far a run came."""

from __future__ import annotations

import sys
from typing import Any

from tqdm import tqdm

__all__ = ["progress_bar"]


def progress_bar(shown: bool, **options: Any) -> Any:
    """A tqdm bar on standard error if that is a terminal or a notebook's; silent in a pipe, or where not `shown`.

    A notebook's standard error says that it is no terminal. Bars are of text there too, which a saved notebook keeps.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    drawn = shell is not None and "IPKernelApp" in shell.config
    return tqdm(**options, disable=True if not shown else False if drawn else None)
