"""The identity of a language model, its sampling, and its secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, is_dataclass
from functools import lru_cache
from typing import Any

import dspy

from metricsmith.errors import OptionError

__all__ = [
    "LOWEST_TEMPERATURE", "check_sampling", "form_identity", "identity", "redact", "using",
    "without_keys",
]  # fmt: skip

LOWEST_TEMPERATURE = 0.15  # DSPy replaces what is not above it, when several answers are wanted, by its own choice

# Settings of the model's address, of payment, and of the bookkeeping of DSPy and the provider. All others count as
# sampling: a setting that we do not know asks for one judgement too many, never for one too few.
ASIDE = frozenset({
    "api_base", "api_version", "azure_ad_token_provider", "base_url", "cache", "callbacks", "client", "extra_headers",
    "headers", "http_client", "input_cost_per_token", "max_retries", "metadata", "num_retries", "organization",
    "output_cost_per_token", "project", "prompt_cache", "request_timeout", "rollout_id", "service_tier", "store",
    "timeout", "user", "aws_region_name", "vertex_location", "vertex_project",
})  # fmt: skip
SECRET = re.compile(r"(?:^|_)(?:key|key_id|token|secret|password|credentials?)$")
TOKENS = ("bos_token", "eos_token", "pad_token", "stop_token")  # of the text, not of access
# A word with a digit or an asterisk in it, or a long one, is a key where one may be expected; "task-based" is not.
TOKEN = r"(?=[^\s'\",;]*[0-9*]|[^\s'\",;]{20})[^\s'\",;]{6,}"
KEY = re.compile(
    rf"\b(?:sk|pk|rk|gsk|hf|xai|pplx|ghp)[-_]{TOKEN}|\b(?:AIza|AKIA|eyJ){TOKEN}"
    rf"|(?<=\bbearer )\s*{TOKEN}|(\b(?:api|subscription|access)[-_ ]?key\W*(?:provided)?\W*){TOKEN}",
    re.IGNORECASE,
)
VARIABLES = ("_API_KEY", "_TOKEN", "_SECRET")  # of the environment
PREFIX = re.compile(r"[A-Za-z]{2,6}[-_]")  # some servers repeat a key without it
LONGEST_MESSAGE = 10_000  # characters of a server's message that are looked at
_CHAT = dspy.ChatAdapter()
SHORTEST_KEY = 8  # api_key="none" is no secret, and the word may stand in a message
SURE_KEY = 16  # what is shorter, or has no digit, may be a word that an answer needs
WORDS = re.compile(r"\D*|.*\s.*", re.DOTALL)


def identity(lm: Any) -> dict[str, Any]:
    """Everything about a language model that changes its answers, in JSON's types.

    Parameters
    ----------
    lm : dspy.LM or other DSPy model

    Returns
    -------
    dict
        ``model``, ``model_type``, ``sampling`` (every setting that was given and is not an address, a secret or
        bookkeeping) and, for a custom engine or another class than `dspy.LM`, what that is. Equal models give
        equal results in every process; secrets are not in it.
    """
    kind = f"{type(lm).__module__}.{type(lm).__qualname__}"
    settings: Mapping[str, Any] = getattr(lm, "kwargs", None) or {}
    known: dict[str, Any] = {
        "model": str(getattr(lm, "model", kind)),
        "model_type": str(getattr(lm, "model_type", "chat")),
        "sampling": {
            name: _plain(value)
            for name, value in sorted(settings.items())
            if value is not None and name not in ASIDE and (name in TOKENS or not SECRET.search(name))
        },
    }
    if kind != "dspy.clients.lm.LM":
        known["class"] = kind
    engine = getattr(lm, "engine", "auto")
    if not isinstance(engine, str):
        known["engine"] = _plain(engine)
    if getattr(lm, "use_developer_role", False):
        known["use_developer_role"] = True
    return known


def form_identity(adapter: dspy.Adapter) -> dict[str, Any]:
    """Everything about an adapter that changes the prompts, in JSON's types; nothing for the plain chat adapter."""
    options = {
        name: _plain(value)
        for name, value in sorted(vars(adapter).items())
        if name not in ("callbacks", "use_json_adapter_fallback")
    }
    kind = f"{type(adapter).__module__}.{type(adapter).__qualname__}"
    if type(adapter) is dspy.ChatAdapter and vars(adapter).keys() <= vars(_CHAT).keys():
        options = {name: value for name, value in options.items() if value != _plain(getattr(_CHAT, name))}
        return {"adapter": {"class": kind, "options": options}} if options else {}
    return {"adapter": {"class": kind, "options": options}}


def _plain(value: Any) -> Any:
    """The value in JSON's types, the same in every process: never an address in memory, never a set's order."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(str, map(_plain, value)))
    if isinstance(value, type) and hasattr(value, "model_json_schema"):
        return _schema(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    named = value if isinstance(value, type) or hasattr(value, "__qualname__") else type(value)
    name = f"{named.__module__}.{named.__qualname__}"
    dump = getattr(value, "dump_state", None)
    return [name, _plain(dump())] if callable(dump) and named is type(value) else name


@lru_cache(maxsize=64)
def _schema(kind: Any) -> Any:
    """The schema of a pydantic model in the same form, built once: every run asks for the chat adapter's."""
    return _plain(kind.model_json_schema())


def check_sampling(lm: Any, runs: int | None = None, *, temperature: float | None = None) -> None:
    """Make sure that repetitions of one request are independent samples.

    With no temperature set, the provider's default is unknown.

    Parameters
    ----------
    lm : dspy.LM or other DSPy model
    runs : int, optional
        The number of samples that are wanted, for the message.
    temperature : float, optional
        The temperature that the requests carry themselves; None leaves the model's.

    Raises
    ------
    OptionError
        If the model's temperature is not set, or not above 0.15.
    """
    if temperature is None:
        temperature = (getattr(lm, "kwargs", None) or {}).get("temperature")
    if isinstance(temperature, int | float) and temperature > LOWEST_TEMPERATURE:
        return
    wanted = "repeated runs need" if runs is None else f"runs={runs} needs"
    seen = "not set" if temperature is None else repr(temperature)
    model = getattr(lm, "model", type(lm).__name__)
    raise OptionError(
        f"{wanted} independent samples, and the temperature of {model} is {seen}; it must be set above "
        f"{LOWEST_TEMPERATURE}: dspy.LM({str(model)!r}, temperature=1.0), --temperature 1"
    )


def using(lm: Any) -> AbstractContextManager[Any]:
    """Put a model in force for a block; None leaves the one that is.

    Raises
    ------
    OptionError
        If it is no model.
    """
    if lm is None:
        return nullcontext()
    if not isinstance(lm, dspy.BaseLM):
        wanted = f"dspy.LM({lm!r})" if isinstance(lm, str) else "say dspy.LM('provider/model')"
        raise OptionError(f"lm={lm!r} is no model; give one of DSPy's: {wanted}")
    return dspy.context(lm=lm)  # type: ignore[no-any-return]


def redact(text: str, lm: Any = None) -> str:
    """The text without known keys and without anything that looks like a key.

    Parameters
    ----------
    text : str
        For example a server's error message; some repeat the key that they refuse. What follows its first 10,000
        characters is cut off.
    lm : dspy.LM or other DSPy model, optional
        The model whose keys are known by value, from 8 characters; those in the environment are known as
        `without_keys` says.
    """
    return KEY.sub(lambda found: f"{found[1] or ''}[key]", _without(text, lm, SHORTEST_KEY)[:LONGEST_MESSAGE])


def without_keys(answer: Any, lm: Any = None) -> Any:
    """A model's answer, its texts without known keys.

    Known are the keys of the model and the values of ``*_API_KEY``, ``*_TOKEN`` and ``*_SECRET`` in the environment
    that have 16 characters or more and hold a digit, with and without their prefix: a plain word is never taken out.
    """
    if isinstance(answer, str):
        return _without(answer, lm)
    if isinstance(answer, list):
        return [without_keys(part, lm) for part in answer]
    if isinstance(answer, dict):
        return {name: _without(part, lm) if isinstance(part, str) else part for name, part in answer.items()}
    return answer


def _without(text: str, lm: Any, shortest: int = SURE_KEY) -> str:
    """The text without known keys; of the model's own also those that are shorter than a sure one."""
    settings = getattr(lm, "kwargs", None) or {}
    provider = f"{str(getattr(lm, 'model', '')).split('/')[0].upper()}_API_KEY"
    own = {*_secrets(settings), os.environ.get(provider, "")}
    known = {key for key in own if len(key) >= shortest and shortest < SURE_KEY}
    for name in os.environ:
        if name.upper().endswith(VARIABLES) and not name.lower().endswith(TOKENS):
            own.add(os.environ[name])
    for key in own:
        known |= {form for form in _forms(key) if len(form) >= SURE_KEY and not WORDS.fullmatch(form)}
    for key in sorted(known, key=len, reverse=True):
        text = text.replace(key, "[key]")
    return text


def _forms(key: str) -> Iterator[str]:
    """A key with and without its prefixes."""
    yield key
    while found := PREFIX.match(key):
        key = key[found.end() :]
        yield key


def _secrets(settings: Mapping[str, Any]) -> list[str]:
    values = [value for name, value in settings.items() if SECRET.search(name) and name not in TOKENS]
    for name in ("headers", "extra_headers"):
        headers = settings.get(name)
        if isinstance(headers, Mapping):
            values += [part for value in headers.values() for part in (value, str(value).split()[-1:])]
    flat = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return [item for item in flat if isinstance(item, str)]
