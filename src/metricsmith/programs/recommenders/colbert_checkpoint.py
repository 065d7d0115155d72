"""A ColBERT checkpoint on disk: what it must hold to be used, and the hash of its content.

Everything here reads bytes and JSON; no weights are loaded and nothing from the checkpoint is executed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metricsmith.errors import StateError

__all__ = ["PROJECTION", "ColBERTCheckpoint", "inspect_checkpoint"]

PROJECTION = "linear.weight"
WEIGHTS = "model.safetensors"
USUAL_POSITIONS = 512  # BERT's
LARGEST_HEADER = 100_000_000  # bytes; the limit that the safetensors format sets itself


@dataclass(frozen=True, slots=True)
class ColBERTCheckpoint:
    """A checkpoint that passed inspection.

    Parameters
    ----------
    folder : Path
        Absolute.
    dimension : int
        Length of a token's embedding: the rows of the projection.
    max_positions : int
        The longest text, in tokens, that the encoder takes.
    tensors : frozenset of str
        Names of all stored weights.
    """

    folder: Path
    dimension: int
    max_positions: int
    tensors: frozenset[str]

    def content_hash(self) -> str:
        """SHA-256 over names and bytes of the folder's files, in hexadecimal; a moved copy has the same."""
        total = hashlib.sha256()
        for path in sorted(path for path in self.folder.iterdir() if path.is_file()):
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            total.update(f"{path.name}\0{digest}\n".encode())
        return total.hexdigest()


def inspect_checkpoint(folder: str | Path) -> ColBERTCheckpoint:
    """Read what a checkpoint folder says about itself, or say why it cannot be used.

    colbert-ai merely logs that a checkpoint has no projection and goes on with random numbers, which makes
    retrieval noise; it also loads pickled weights and runs code that a checkpoint brings along. All three are
    refused.

    Parameters
    ----------
    folder : str or Path
        Holds ``config.json``, ``model.safetensors`` and the tokenizer's files, as ``save_pretrained`` does.

    Raises
    ------
    StateError
        If the folder or one of its files is missing or unreadable, the projection ``linear.weight`` is
        missing or not a matrix, or the checkpoint brings code of its own.
    """
    path = Path(folder).expanduser().resolve()
    if not path.is_dir():
        raise StateError(
            f"ColBERT checkpoint {str(folder)!r} is not a folder: give one with config.json, {WEIGHTS} and "
            "the tokenizer; download a checkpoint first, it is not fetched for you"
        )
    config = _json(path / "config.json")
    tokenizer = _json(path / "tokenizer_config.json")
    if "auto_map" in config or "auto_map" in tokenizer:
        raise StateError(
            f"ColBERT checkpoint {path.name!r} brings code of its own (auto_map in its configuration), "
            "which is not run here: use a model type that transformers implements, such as bert"
        )
    shapes = _tensor_shapes(path / WEIGHTS)
    shape = shapes.get(PROJECTION, [])
    if len(shape) != 2:
        seen = f"of shape {shape}" if PROJECTION in shapes else "missing"
        raise StateError(
            f"ColBERT checkpoint {path.name!r} cannot be used: its projection {PROJECTION!r} is {seen}; "
            "without that matrix it would compare random numbers: give a trained ColBERT checkpoint"
        )
    # Some encoders (RoBERTa) keep two positions for themselves: only the tokenizer knows the usable length.
    limits = (config.get("max_position_embeddings"), tokenizer.get("model_max_length"))
    longest = min((limit for limit in limits if isinstance(limit, int) and limit > 0), default=USUAL_POSITIONS)
    return ColBERTCheckpoint(path, int(shape[0]), longest, frozenset(shapes))


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as problem:
        raise _unreadable(path, str(problem)) from problem
    if not isinstance(content, dict):
        raise _unreadable(path, f"it holds a JSON {type(content).__name__} where an object is expected")
    return content


def _tensor_shapes(path: Path) -> dict[str, list[int]]:
    """Shapes by name, from a safetensors header: eight bytes of length, JSON, then the numbers."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(min(length, LARGEST_HEADER)))
        tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
        end = 8 + length + max((entry["data_offsets"][1] for entry in tensors.values()), default=0)
        shapes = {name: entry["shape"] for name, entry in tensors.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as problem:
        raise _unreadable(path, str(problem)) from problem
    size = path.stat().st_size
    if size != end:
        raise _unreadable(path, f"it has {size} bytes where its header announces {end}")
    return shapes


def _unreadable(path: Path, reason: str) -> StateError:
    advice = "give the folder that save_pretrained wrote for model and tokenizer"
    if path.name == WEIGHTS:
        advice = "give the whole file (pickled weights are not read: save the model with safetensors)"
    return StateError(f"ColBERT checkpoint {path.parent.name!r}: {path.name} cannot be read: {reason}; {advice}")
