"""Pickled weights as safetensors: read by torch's reader for weights alone, which runs nothing."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path
from typing import Any

from metricsmith.errors import NeedsError

__all__ = ["convert"]

# What torch's reader raises over a file that is no pickle, or one that it does not trust.
UNREADABLE = (
    pickle.UnpicklingError, struct.error, RuntimeError, EOFError, ValueError, LookupError, TypeError, AttributeError,
    AssertionError, OSError,
)  # fmt: skip


def convert(source: Path, target: Path, prefix: str = "") -> None:
    """Write the weights of a pickle as a safetensors file; equal weights give equal bytes.

    Names are sorted, a weight that shares its memory with another is written out, and a Lightning checkpoint gives its
    ``state_dict``. The file appears when it is complete.

    Parameters
    ----------
    source, target : Path
    prefix : str
        Put before each name.

    Raises
    ------
    NeedsError
        If `source` holds anything but weights, or cannot be read; nothing of it was run, and nothing is written.
    """
    import torch
    from safetensors.torch import save_file

    try:
        found = torch.load(source, map_location="cpu", weights_only=True)
    except UNREADABLE as problem:
        raise _refused(source, _reason(problem)) from problem
    if isinstance(found, dict) and isinstance(found.get("state_dict"), dict):
        found = found["state_dict"]
    if not isinstance(found, dict) or not found:
        raise _refused(source, f"it holds a {type(found).__name__} and no weights by name")
    weights: dict[str, Any] = {}
    seen: set[int] = set()
    for name in sorted(found, key=str):
        if not isinstance(found[name], torch.Tensor) or not isinstance(name, str):
            raise _refused(source, f"{name!r} is a {type(found[name]).__name__} and no weight")
        memory = found[name].untyped_storage().data_ptr()
        weight = found[name].contiguous()
        weights[prefix + name] = weight.clone() if memory in seen else weight
        seen.add(memory)
    part = target.with_name(f"{target.name}.incomplete")
    try:
        save_file(weights, part, metadata={"format": "pt"})
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _refused(source: Path, reason: str) -> NeedsError:
    return NeedsError(
        f"{source.name} is refused, and nothing in it was run: {reason}; ask its authors for a safetensors file"
    )


def _reason(problem: Exception) -> str:
    """The reader's own reason, without its advice, which is to read the file unprotected."""
    said = str(problem.__context__ or problem).strip().partition("\n")[0].partition(" Please ")[0]
    return said or f"it cannot be read ({type(problem).__name__})"
