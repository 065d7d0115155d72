"""The language model that the options name."""

from __future__ import annotations

import math
import os
from typing import Annotated, Any

import typer

from metricsmith.errors import OptionError

__all__ = ["ApiBase", "Model", "Temperature", "language_model"]

Model = Annotated[
    str | None,
    typer.Option("--lm", metavar="MODEL", help="Language model as provider/name, e.g. openai/gpt-4o-mini."),
]
ApiBase = Annotated[
    str | None, typer.Option("--api-base", metavar="URL", help="Address of an OpenAI-compatible server.")
]

Temperature = Annotated[
    float | None,
    typer.Option(help="Of the model; repeated runs need more than .15. By default the provider's."),
]


def language_model(model: str | None, api_base: str | None, temperature: float | None = None) -> Any:
    """A `dspy.LM`, or None without a model name; the key comes from the provider's environment variable.

    Without a temperature the provider's default holds.

    Raises
    ------
    OptionError
        If no model can have such a name, or not with these settings.
    """
    if temperature is not None and not (math.isfinite(temperature) and temperature >= 0):
        raise OptionError(f"--temperature {temperature:g} must be a number from 0; providers allow up to 1 or 2")
    if model is None:
        if api_base is not None:
            raise typer.BadParameter("--api-base needs --lm: name the model that the server offers")
        return None
    import dspy
    from dspy.utils.exceptions import LMConfigurationError

    settings: dict[str, Any] = {} if temperature is None else {"temperature": temperature}
    if api_base is not None:
        settings["api_base"] = api_base
        if "OPENAI_API_KEY" not in os.environ:
            settings["api_key"] = "none"  # local servers ask for none, the client insists on one
    try:
        return dspy.LM(model.strip(), **settings)
    except (ValueError, LMConfigurationError) as problem:
        raise OptionError(
            f"--lm {model!r} cannot be used: {problem}; name it as provider/model, say openai/gpt-4o-mini"
        ) from problem
