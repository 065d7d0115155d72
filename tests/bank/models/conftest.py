"""Fixtures of the metrics that need weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny checkpoints of this session."""
    import torch

    torch.set_num_threads(1)
    return tmp_path_factory.mktemp("tiny")


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path) -> Callable[[str], Path]:
    """A function from a name of `tiny_models.BUILDERS` to the path of that checkpoint, which it builds once."""
    import tiny_models

    return lambda name: tiny_models.build(name, tiny_folder)
