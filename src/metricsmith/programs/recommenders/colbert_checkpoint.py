"""A ColBERT checkpoint: inspected as bytes and JSON, then loaded by colbert-ai, which nothing else touches.

An inspection loads no weights and executes nothing from the checkpoint. colbert-ai prints while it is imported,
compiles a C++ extension when a checkpoint is constructed, asks a hub for anything that looks like a repository name,
and puts ``bert-base-uncased`` in place of a model that it does not know. All of that is prevented here.
"""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import NeedsError, StateError

__all__ = ["PROJECTION", "ColBERTCheckpoint", "ColBERTEncoder", "Matrix", "check_extra", "inspect_checkpoint"]

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
    """Read a checkpoint folder's description of itself, or raise with the reason why it cannot be used.

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


Matrix = NDArray[np.float32]
INSTALL = 'pip install "metricsmith[colbert]"'
OUTDATED: tuple[tuple[str, type[Warning]], ...] = (
    (r".*torch\.jit\.script.* is deprecated", DeprecationWarning),
    (r".*torch\.cuda\.amp\.GradScaler\(.*is deprecated", FutureWarning),
    (r"torch\.cuda\.amp\.GradScaler is enabled, but CUDA is not available", UserWarning),
)


class ColBERTEncoder:
    """A loaded checkpoint.

    Parameters
    ----------
    checkpoint : ColBERTCheckpoint
        Inspected.
    query_tokens, card_tokens : int
        Tokens that are read of a query and of a document, special tokens included.

    Raises
    ------
    NeedsError
        If colbert-ai is installed and does not import.
    StateError
        If transformers cannot load the checkpoint, weights of the encoder are missing, or the tokenizer lacks
        ColBERT's markers.
    """

    def __init__(self, checkpoint: ColBERTCheckpoint, query_tokens: int, card_tokens: int) -> None:
        with _quiet():
            self._model = _load(checkpoint, query_tokens, card_tokens)
        _check_weights(self._model, checkpoint)
        _check_markers(self._model, checkpoint)

    def query(self, text: str) -> Matrix:
        """Embed a query: shape (query_tokens, dimension), unit rows."""
        return _matrix(self._model.queryFromText([text])[0])

    def document(self, text: str) -> Matrix:
        """Embed a document: shape (tokens without punctuation, dimension), unit rows."""
        (embeddings,) = self._model.docFromText([text], bsize=1, keep_dims=False)
        return _matrix(embeddings[0])

    def length(self, text: str) -> int:
        """The number of tokens of `text` if nothing were cut, special tokens and marker included."""
        return len(self._model.raw_tokenizer(text, verbose=False)["input_ids"]) + 1


def check_extra() -> None:
    """Refuse to start where a package for ColBERT is missing or too new; the message has the install line.

    Raises
    ------
    NeedsError
        If a package of the extra ``colbert`` is not installed, or transformers is too new for it.
    """
    for package, below in (("torch", ""), ("colbert-ai", ""), ("transformers", "5")):
        try:
            found = version(package)
        except PackageNotFoundError as problem:
            raise NeedsError(
                f"ColBERTRecommender needs the package {package}, which is not installed: {INSTALL}; "
                "BM25Recommender needs nothing"
            ) from problem
        if below and int(found.split(".")[0]) >= int(below):
            raise NeedsError(
                f"ColBERTRecommender cannot load a checkpoint with {package} {found}: colbert-ai needs "
                f"{package} below {below}; run {INSTALL}"
            )


def _load(checkpoint: ColBERTCheckpoint, query_tokens: int, card_tokens: int) -> Any:
    try:
        from colbert.infra import ColBERTConfig
        from colbert.modeling.checkpoint import Checkpoint
        from colbert.modeling.hf_colbert import class_factory
    except ImportError as problem:
        raise NeedsError(f"colbert-ai is installed and does not import: {problem}; run {INSTALL} again") from problem
    folder = str(checkpoint.folder)  # an absolute path is never taken for the name of a hub's repository
    config = ColBERTConfig(
        checkpoint=folder,
        model_name=folder,
        dim=checkpoint.dimension,
        query_maxlen=query_tokens,
        doc_maxlen=card_tokens,
        interaction="colbert",
        similarity="cosine",
    )
    try:
        class_factory(folder)  # fails where Checkpoint would quietly go on with another model
        with _no_compilation():
            model = Checkpoint(folder, config, verbose=0)
    except (ValueError, OSError, RuntimeError) as problem:
        raise StateError(
            f"ColBERT checkpoint {checkpoint.folder.name!r} cannot be loaded: {problem}; give a complete "
            "checkpoint of a model type that transformers knows, such as bert"
        ) from problem
    model.amp_manager.activated = False  # mixed precision would make scores depend on the machine
    return model


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep colbert-ai's prints off standard output and its outdated calls into torch out of the warnings."""
    with redirect_stdout(io.StringIO()), warnings.catch_warnings():
        for pattern, category in OUTDATED:
            warnings.filterwarnings("ignore", message=pattern, category=category)
        yield


@contextmanager
def _no_compilation() -> Iterator[None]:
    """Claim that the extension for packed scoring is loaded: exact scoring does without it."""
    from colbert.modeling.colbert import ColBERT

    claimed = not hasattr(ColBERT, "loaded_extensions")
    if claimed:
        ColBERT.loaded_extensions = True
    try:
        yield
    finally:
        if claimed:
            del ColBERT.loaded_extensions


def _check_weights(model: Any, checkpoint: ColBERTCheckpoint) -> None:
    """Refuse a checkpoint with gaps: transformers fills them with random numbers and only logs it."""
    used = [name for name, _ in model.model.named_parameters() if ".pooler." not in name]
    missing = [name for name in used if name not in checkpoint.tensors]
    if missing:
        raise StateError(
            f"ColBERT checkpoint {checkpoint.folder.name!r} lacks {len(missing)} weights of its encoder "
            f"({missing[0]!r} is the first), which would be random: give a complete checkpoint"
        )


def _check_markers(model: Any, checkpoint: ColBERTCheckpoint) -> None:
    unknown = model.raw_tokenizer.unk_token_id
    for marker, number in (
        (model.colbert_config.query_token_id, model.query_tokenizer.Q_marker_token_id),
        (model.colbert_config.doc_token_id, model.doc_tokenizer.D_marker_token_id),
    ):
        if number is None or number == unknown:
            raise StateError(
                f"ColBERT checkpoint {checkpoint.folder.name!r}: its tokenizer does not know the marker "
                f"{marker!r}, so queries and documents would look alike: give the tokenizer of its training"
            )


def _matrix(embeddings: Any) -> Matrix:
    return np.asarray(embeddings.float().cpu().numpy(), dtype=np.float32)
