"""Fixtures of the metrics that need weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

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


@pytest.fixture
def scored(tiny: Callable[[str], Path], tiny_folder: Path) -> Callable[..., list[Any]]:
    """A function from a metric's name, rows and settings to the judgements of its last output; `corpus` is fitted."""
    from metricsmith.bank.base import judge_family
    from model_cases import tiny_family

    def judged(name: str, rows: Sequence[Any], corpus: Sequence[Any] = (), **settings: Any) -> list[Any]:
        metric = tiny_family(name, tiny, tiny_folder, **settings).metrics()[-1]
        return judge_family([metric.fit(corpus) if corpus else metric], rows)[0]

    return judged
