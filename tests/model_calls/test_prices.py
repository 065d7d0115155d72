"""Prices of requests by the list that DSPy brings along."""

from __future__ import annotations

import subprocess
import sys

import pytest

from metricsmith.model_calls.dspy_internals import price_list
from metricsmith.model_calls.limits import price


def test_an_unknown_price_is_unknown_and_not_nothing():
    assert price("unknown/model", 1000, 1000) is None


def test_prompt_and_completion_are_paid_at_their_own_rates():
    entry = price_list()["gpt-4o-mini"]
    asked, answered = entry["input_cost_per_token"], entry["output_cost_per_token"]
    assert price("gpt-4o-mini", 1_000, 0) == pytest.approx(1_000 * asked)
    assert price("gpt-4o-mini", 0, 1_000) == pytest.approx(1_000 * answered)
    assert answered > asked > 0
    assert price("openai/gpt-4o-mini", 10, 20) == price("gpt-4o-mini", 10, 20)


def test_the_rates_are_those_of_litellm():
    # From litellm 1.106.0, model_prices_and_context_window_backup.json: $.15 and $.60 for a million tokens.
    assert price("gpt-4o-mini", 1_000_000, 0) == pytest.approx(0.15)
    assert price("gpt-4o-mini", 0, 1_000_000) == pytest.approx(0.60)


def test_a_price_loads_no_client_library():
    program = (
        "import sys; from metricsmith.model_calls.limits import price; price('openai/gpt-4o-mini', 1, 1)\n"
        "raise SystemExit(', '.join(sorted({'litellm', 'openai', 'nltk'} & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
