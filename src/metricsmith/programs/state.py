"""Constructor settings that DSPy's own save and load carry along.

`dspy.Module.save` keeps only what `named_parameters` finds, so a module's configuration is lost and a
loaded judge would keep the loader's criterion. Holding the configuration in a parameter mends that,
also for a judge deep inside somebody else's program.
"""

from __future__ import annotations

from typing import Any

from dspy.predict.parameter import Parameter

__all__ = ["Settings"]


class Settings(Parameter):  # type: ignore[misc]
    """JSON-ready values, readable as attributes, saved and loaded with the module that holds them."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("values", {})
        if name in values:
            return values[name]
        raise AttributeError(name)

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        """The values; `json_mode` is DSPy's and changes nothing here."""
        return dict(self.values)

    def load_state(self, state: dict[str, Any]) -> None:
        """Replace the values by saved ones."""
        self.values = dict(state)

    def reset(self) -> None:
        """Settings are not learned: DSPy's reset leaves them alone."""
