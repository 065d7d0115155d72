"""The table of metrics with weights beside their oracles, measured anew: ``python tools/model_page.py``.

Needs torch, transformers and the oracles' packages, and the folder tests/support on PYTHONPATH.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

__all__ = ["difference_table", "main"]


def difference_table(lines: Sequence[tuple[str, str, str, float]]) -> str:
    """The table as Markdown.

    Parameters
    ----------
    lines : sequence of (str, str, str, float)
        Metric, engine, oracle, and the largest difference over outputs, settings and rows; relative beyond 1.
    """
    head = ["| metric | engine | oracle | largest difference |", "|---|---|---|---|"]
    return "\n".join(
        head + [f"| {name} | {engine} | {oracle} | {apart:.0e} |" for name, engine, oracle, apart in lines]
    )


def main() -> None:
    """Measure on tiny checkpoints, and print."""
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        print(difference_table(import_module("parity").table(Path(folder))))


if __name__ == "__main__":
    main()
