"""The one place that touches colbert-ai: it loads a checkpoint and turns texts into token embeddings.

colbert-ai prints while it is imported, compiles a C++ extension when a checkpoint is constructed, asks a hub
for anything that looks like a repository name, and puts ``bert-base-uncased`` in place of a model that it
does not know. All of that is held off in here.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from metricsmith.errors import NeedsError, StateError
from metricsmith.programs.recommenders.colbert_checkpoint import ColBERTCheckpoint
from metricsmith.programs.recommenders.embedding_cache import Matrix

__all__ = ["ColBERTEncoder", "check_extra"]

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
        """How many tokens `text` would take if nothing were cut, special tokens and marker included."""
        return len(self._model.raw_tokenizer(text, verbose=False)["input_ids"]) + 1


def check_extra() -> None:
    """Say what is missing for ColBERT, with the install line, before any work starts.

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
