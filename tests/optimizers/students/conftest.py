"""A loopback server that answers by the module's own `answer`."""

from __future__ import annotations

import warnings

import dspy
import pytest

from loopback import serve


@pytest.fixture
def server(request):
    with serve(request.module.answer) as running, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # DSPy's optimisers warn about their own defaults
        with dspy.context(lm=running.lm()):
            yield running
        assert running.wrong == []
