"""A loopback server that answers by the module's own `answer`."""

from __future__ import annotations

import warnings

import dspy
import pytest

from loopback import serve
from metricsmith.model_calls import calls


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(calls, "FIRST_PAUSE", 0.001)


@pytest.fixture
def server(request):
    with serve(request.module.answer) as running, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # DSPy's optimisers warn about their own defaults
        with dspy.context(lm=running.lm()):
            yield running
        assert running.wrong == []
