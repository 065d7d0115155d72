"""Fixtures that more than one test file uses."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# The gate gives every run the same examples, so that a change fails by itself alone; `make explore` looks for new ones.
settings.register_profile("gate", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, print_blob=True, deadline=None)
settings.load_profile("gate")

for default in ("METRICSMITH_LM", "METRICSMITH_API_BASE"):
    os.environ.pop(default, None)  # no test asks the model of whoever runs it


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put whole pages and examples, the longest of all tests, first: at the end one process would wait for them."""
    items.sort(key=lambda item: item.path.parent != Path(__file__).parent)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the public rating data, which is not part of the project."""
    folder = os.environ.get("METRICSMITH_DATA")
    if not folder:
        pytest.skip("METRICSMITH_DATA does not name the folder with the public rating data")
    return Path(folder).resolve()


@pytest.fixture(scope="session")
def shared_golden(shared_data: Path) -> Path:
    """Golden numbers that belong to the public rating data."""
    folder = shared_data.parent / "golden"
    if not folder.is_dir():
        pytest.skip(f"no golden numbers beside {shared_data}")
    return folder


@pytest.fixture(scope="session", autouse=True)
def no_cached_answers() -> None:
    """Every test meets its own server: an answer cached by another would hide what it asks."""
    import dspy

    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)
    gc.collect()
    gc.freeze()  # no later collection walks through the client libraries' hundred thousands of objects again


@pytest.fixture(scope="session", autouse=True)
def short_pauses() -> None:
    """Requests that failed are sent again almost at once; the tests of the pauses themselves set their own."""
    from metricsmith.model_calls import metering

    metering.FIRST_PAUSE = 0.001


@pytest.fixture(scope="module")
def loggers_as_they_were() -> Iterator[None]:
    """The command line quietens two loggers for the process, in which other tests listen to them."""
    loggers = [logging.getLogger(name) for name in ("dspy", "metricsmith")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
