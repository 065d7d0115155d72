"""What is known of a language model: identity, sampling, price, secrets."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import dspy
import pytest
from dspy.utils import DummyLM

from metricsmith.errors import OptionError
from metricsmith.scoring.models import check_sampling, identity, price, redact

SECRET = "sk-proj-1234567890abcdef"  # made up


def lm(**settings):
    return dspy.LM("openai/m", **{"temperature": 1.0, **settings})


@pytest.mark.parametrize(
    "settings",
    [
        {"api_key": SECRET},
        {"api_base": "http://elsewhere/v1"},
        {"base_url": "http://elsewhere/v1"},
        {"extra_headers": {"Authorization": f"Bearer {SECRET}"}},
        {"aws_secret_access_key": SECRET},
        {"timeout": 3},
        {"num_retries": 9},
        {"cache": False},
        {"rollout_id": 7},
        {"metadata": {"run": "a"}},
        {"top_p": None},
    ],
)
def test_addresses_secrets_and_bookkeeping_do_not_change_who_answers(settings):
    assert identity(lm(**settings)) == identity(lm())
    assert SECRET not in json.dumps(identity(lm(**settings)))


@pytest.mark.parametrize(
    "settings", [{"temperature": 0.9}, {"max_tokens": 5}, {"top_p": 0.5}, {"seed": 1}, {"never_heard_of": "x"}]
)
def test_whatever_may_change_the_answer_changes_the_identity(settings):
    assert identity(lm(**settings)) != identity(lm())


def test_name_and_kind_of_model_are_part_of_the_identity():
    assert identity(dspy.LM("openai/a")) != identity(dspy.LM("openai/b"))
    assert identity(dspy.LM("openai/a")) != identity(dspy.LM("openai/a", model_type="responses"))


class Echo:
    """A custom engine with state."""

    def __init__(self, weights):
        self.weights = weights

    def complete(self, request):
        raise NotImplementedError

    def dump_state(self):
        return {"weights": self.weights}


def test_a_custom_engine_and_a_dummy_model_have_an_identity():
    engines = [identity(dspy.LM("x/y", engine=Echo(weights))) for weights in ("a", "b", "a")]
    assert engines[0] == engines[2] != engines[1]
    assert identity(DummyLM([{"a": "b"}]))["class"] == "dspy.utils.dummies.DummyLM"


def test_the_identity_is_the_same_in_another_process():
    build = (
        "import dspy, json; from metricsmith.scoring.models import identity; from pydantic import BaseModel; "
        "print(json.dumps(identity(dspy.LM('openai/m', temperature=1.0, stop={'b', 'a', 'c'}, "
        "response_format=type('R', (BaseModel,), {'__annotations__': {'a': int}}), hook=print, thing=object()))))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", build],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1
    sampling = json.loads(seen.pop())["sampling"]
    assert (sampling["stop"], sampling["hook"], sampling["thing"]) == (
        ["a", "b", "c"],
        "builtins.print",
        "builtins.object",
    )
    assert sampling["response_format"]["properties"] == {"a": {"title": "A", "type": "integer"}}


@pytest.mark.parametrize("temperature", [None, 0, 0.0, 0.15])
def test_repetitions_of_a_cold_model_are_refused(temperature):
    with pytest.raises(OptionError, match=r"runs=10 needs independent samples.*temperature=1\.0"):
        check_sampling(dspy.LM("openai/m", temperature=temperature), 10)


def test_a_warm_model_may_repeat_itself():
    check_sampling(dspy.LM("openai/m", temperature=0.16))


def test_an_unknown_price_is_unknown_and_not_nothing():
    assert price("unknown/model", 1000, 1000) is None


def test_prompt_and_completion_are_paid_at_their_own_rates():
    import litellm

    entry = litellm.model_cost["gpt-4o-mini"]
    asked, answered = entry["input_cost_per_token"], entry["output_cost_per_token"]
    assert price("gpt-4o-mini", 1_000, 0) == pytest.approx(1_000 * asked)
    assert price("gpt-4o-mini", 0, 1_000) == pytest.approx(1_000 * answered)
    assert answered > asked > 0
    assert price("openai/gpt-4o-mini", 10, 20) == price("gpt-4o-mini", 10, 20)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "Incorrect API key provided: sk-proj-****7890. See docs",
            "Incorrect API key provided: [key] See docs",
        ),
        ("Authorization: Bearer abc123def456", "Authorization: Bearer [key]"),
        ("api_key='mysecret12345' is wrong", "api_key='[key]' is wrong"),
        ("no access for my-own-word", "no access for [key]"),
        ("no access for header-word", "no access for [key]"),
        ("a task-based rating; the api key is invalid; bearer token missing", None),
        ("sk-learn and hf-model are words", None),
        ("this model has none", None),
    ],
)
def test_keys_are_not_told_and_words_are(said, told):
    model = lm(api_key="my-own-word", extra_headers={"x": "Token header-word"})
    assert redact(said, model) == (told or said)


def test_a_placeholder_for_a_key_is_no_secret():
    assert redact("there is none", lm(api_key="none")) == "there is none"
