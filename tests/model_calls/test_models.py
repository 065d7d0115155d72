"""Facts of a language model: identity, sampling, secrets."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import dspy
import pytest
from dspy.utils import DummyLM

from metricsmith.errors import OptionError
from metricsmith.model_calls.models import check_sampling, identity, redact, without_keys

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
        "import dspy, json; from metricsmith.model_calls.models import identity; from pydantic import BaseModel; "
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
        ("your subscription key 0a1b2c3d4e5f60718293 has expired", "your subscription key [key] has expired"),
        ("a subscription key is needed", None),
        ("this model has none", None),
    ],
)
def test_keys_are_not_told_and_words_are(said, told):
    model = lm(api_key="my-own-word", extra_headers={"x": "Token header-word"})
    assert redact(said, model) == (told or said)


def test_a_placeholder_for_a_key_is_no_secret():
    assert redact("there is none", lm(api_key="none")) == "there is none"


RAW = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"  # made up, without any prefix


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (f"key {SECRET} is wrong", "key [key] is wrong"),
        ("key proj-1234567890abcdef is wrong", "key [key] is wrong"),
        ("key 1234567890abcdef is wrong", "key [key] is wrong"),
        ("key 1234567890 is wrong", "key 1234567890 is wrong"),
    ],
)
def test_a_key_is_known_without_its_prefix_in_errors_and_answers(said, told):
    model = lm(api_key=SECRET)
    assert redact(said, model) == without_keys(said, model) == told


def test_a_short_key_is_kept_from_errors_and_may_be_a_word_of_an_answer():
    model = lm(api_key="anything", extra_headers={"x": "not-needed-at-all-here"})
    said = "anything is not-needed-at-all-here"
    assert redact(said, model) == "[key] is [key]"
    assert without_keys(said, model) == said


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("SERVICE_API_KEY", RAW, True),
        ("SERVICE_TOKEN", RAW, True),
        ("CLIENT_SECRET", RAW, True),
        ("SERVICE_TOKEN", RAW[:15], False),  # too short
        ("SERVICE_TOKEN", "not-needed-at-all-here", False),  # no digit
        ("SERVICE_TOKEN", "ask the person in room 12", False),
        ("MODEL_PAD_TOKEN", "<|reserved_token_17|>", False),
        ("SERVICE_ADDRESS", RAW, False),
    ],
)
def test_of_the_environment_those_values_are_known_that_can_only_be_secrets(monkeypatch, name, value, secret):
    monkeypatch.setenv(name, value)
    said = f"The work says {value}."
    for told in (without_keys(said, lm()), redact(said, lm())):
        assert told == ("The work says [key]." if secret else said)


def test_the_key_of_the_models_provider_is_its_own_also_when_it_is_short(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "my-own-word")
    monkeypatch.setenv("OTHER_API_KEY", "their-own-word")
    assert redact("my-own-word, their-own-word", lm()) == "[key], their-own-word"


def test_answers_are_cleaned_in_every_form_in_which_dspy_returns_them():
    model = lm(api_key=RAW)
    answers = [f"a {RAW}", {"text": f"b {RAW}", "logprobs": {"content": []}}, None]
    assert without_keys(answers, model) == ["a [key]", {"text": "b [key]", "logprobs": {"content": []}}, None]
