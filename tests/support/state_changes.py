"""A saved state with one value changed or removed."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

REMOVED = object()


def with_change(state: Mapping[str, Any], place: str, value: Any) -> dict[str, Any]:
    """A copy of a state with another value at a place such as ``model.options``, or without it for `REMOVED`."""
    changed = dict(deepcopy(state))
    *path, last = place.split(".")
    part = changed
    for name in path:
        part = part[name]
    if value is REMOVED:
        del part[last]
    else:
        part[last] = value
    return changed
