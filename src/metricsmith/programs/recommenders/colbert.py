"""ColBERT as a first stage: exact late interaction over the cards, without an index."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from metricsmith.errors import NeedsError, OptionError, StateError
from metricsmith.metric import content_hash
from metricsmith.programs.recommenders.base import FirstStage, Recommendation, by_score, check_pool, query_text
from metricsmith.programs.recommenders.colbert_checkpoint import ColBERTEncoder, Matrix, check_extra, inspect_checkpoint
from metricsmith.programs.state import Settings
from metricsmith.records import MetricCard, Task

__all__ = ["ColBERTRecommender", "EmbeddingCache", "colbert_here", "max_similarity", "published_colbert"]

PUBLISHED = "colbert-ir/colbertv2.0"  # the checkpoint of AutoMetrics, by its id at the hub


class ColBERTRecommender(FirstStage):
    """Ranks cards by ColBERT's late interaction with the task (Khattab and Zaharia 2020, equation 3).

    The pool is small, so every card is scored exactly: no index, no faiss, no compiled extension. Card
    embeddings are kept in memory, and in `cache_folder` if one is given, under a hash of the checkpoint's
    content and the card's text: an edited card or checkpoint is encoded anew, everything else is not. Texts
    are encoded one at a time, so that a card's score does not depend on the cards beside it.

    Parameters
    ----------
    checkpoint : str or Path
        Local folder of a trained checkpoint; never downloaded.
    cache_folder : str or Path, optional
        A folder in which embeddings outlive the process (``.npz`` files without pickle). Made if missing.
    query_tokens : int
        Tokens of the task that are read; shorter tasks are padded with mask tokens, which ColBERT uses to
        expand the query. At least 4.
    card_tokens : int
        Tokens of a card that are read, at least 4. Both are cut to what the encoder takes.

    Raises
    ------
    NeedsError
        If the extra ``colbert`` is not installed.
    StateError
        If the checkpoint cannot be used (`inspect_checkpoint`), for one because its projection is missing.
    OptionError
        If a token limit is below 4.
    """

    def __init__(
        self,
        checkpoint: str | Path,
        *,
        cache_folder: str | Path | None = None,
        query_tokens: int = 128,
        card_tokens: int = 512,
    ) -> None:
        super().__init__()
        check_extra()
        for name, value in (("query_tokens", query_tokens), ("card_tokens", card_tokens)):
            if value < 4:
                raise OptionError(f"{name} = {value} leaves no room for words: it must be at least 4")
        self.checkpoint = inspect_checkpoint(checkpoint)
        self.settings = Settings(query_tokens=query_tokens, card_tokens=card_tokens)
        self._cache = EmbeddingCache(cache_folder)
        self._hash = ""
        self._encoder: ColBERTEncoder | None = None
        self._encoded = (0, 0)

    @property
    def query_tokens(self) -> int:
        """Tokens of the task that are read, at most those that the encoder takes."""
        return min(int(self.settings.query_tokens), self.checkpoint.max_positions)

    @property
    def card_tokens(self) -> int:
        """Tokens of a card that are read, at most those that the encoder takes."""
        return min(int(self.settings.card_tokens), self.checkpoint.max_positions)

    def __deepcopy__(self, memo: dict[int, Any]) -> ColBERTRecommender:
        """The recommender itself: DSPy's optimisers copy programs many times, and the weights never change."""
        return self

    def recommend(self, task: Task | str, cards: Sequence[MetricCard], k: int = 30) -> Recommendation:
        """Name the `k` cards closest to the task; see `Recommender.recommend`.

        `scores` are sums over query tokens of cosine similarities, at most `query_tokens`. Notes count the texts
        that are longer than the encoder reads.

        Raises
        ------
        OptionError
            If the pool or `k` cannot be used.
        StateError
            If the weights turn out not to fit the encoder.
        """
        check_pool(cards, k)
        encoder = self._load()
        query, texts = query_text(task), [card.to_markdown() for card in cards]
        question, key = encoder.query(query), f"{self._hash}-{self.card_tokens}"
        embeddings = (self._cache.get(key, text, partial(encoder.document, text)) for text in texts)
        scores = np.array([max_similarity(question, embedding) for embedding in embeddings])
        notes = []
        if encoder.length(query) > self.query_tokens:
            notes.append(f"the task is longer than {self.query_tokens} tokens: ColBERT cut it")
        long = sum(encoder.length(text) > self.card_tokens for text in texts)
        if long:
            notes.append(f"{long} of {len(cards)} cards are longer than {self.card_tokens} tokens: ColBERT cut them")
        return by_score(cards, scores, k, tuple(notes))

    def _load(self) -> ColBERTEncoder:
        limits = (self.query_tokens, self.card_tokens)
        if self._encoder is None or self._encoded != limits:
            self._hash, self._encoded = self.checkpoint.content_hash(), limits
            self._encoder = ColBERTEncoder(self.checkpoint, *limits)
        return self._encoder


def colbert_here(checkpoint: str | os.PathLike[str] | None = None) -> tuple[ColBERTRecommender | None, str]:
    """ColBERT on a checkpoint of this machine, else None and a remark that says why.

    Parameters
    ----------
    checkpoint : path, optional
        A folder; None looks for the published checkpoint in the hub's cache, and never downloads it.

    Raises
    ------
    NeedsError, StateError
        If a folder is named and cannot be used.
    """
    if checkpoint is not None:
        return ColBERTRecommender(Path(checkpoint)), ""
    try:
        return published_colbert(), ""
    except (NeedsError, StateError) as problem:
        return None, f"BM25 is the first stage in place of the paper's ColBERT: {problem}"


def published_colbert() -> ColBERTRecommender:
    """ColBERT on the published checkpoint in the hub's cache, which is never downloaded.

    Raises
    ------
    NeedsError
        If the extra ``colbert`` or the checkpoint is not here.
    StateError
        If the checkpoint cannot be used.
    """
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(PUBLISHED, "config.json")
    check_extra()
    if not isinstance(found, str):
        raise NeedsError(
            f"no checkpoint {PUBLISHED} on this machine: fetch it into the hub's cache (hf download {PUBLISHED}), or "
            "name its folder, AutoMetrics.paper(colbert=...)"
        )
    return ColBERTRecommender(Path(found).parent)


def max_similarity(query: Matrix, document: Matrix) -> float:
    """Late interaction: for each query token its best document token, summed.

    Parameters
    ----------
    query : ndarray, shape (q, d)
        Unit rows (zero rows add 0).
    document : ndarray, shape (t, d)
        Unit rows, at least one.

    Examples
    --------
    >>> max_similarity(np.eye(2, dtype=np.float32), np.array([[1.0, 0.0]], dtype=np.float32))
    1.0
    """
    return float((query @ document.T).max(axis=1).sum())


logger = logging.getLogger(__name__)


class EmbeddingCache:
    """Remembers one matrix per (encoder, text).

    Parameters
    ----------
    folder : str or Path, optional
        A folder in which matrices outlive the process: one ``.npz`` each, written whole or not at all, read without
        pickle. A file that cannot be read counts as absent and is replaced.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = None if folder is None else Path(folder).expanduser()
        self._known: dict[str, Matrix] = {}

    def get(self, encoder: str, text: str, encode: Callable[[], Matrix]) -> Matrix:
        """Return the matrix of `text`, calling `encode` only if neither memory nor folder has it.

        Parameters
        ----------
        encoder : str
            A hash of everything but the text that decides the matrix.
        """
        key = content_hash(encoder, text)
        if key not in self._known:
            stored = self._read(key)
            if stored is None:
                stored = encode()
                self._write(key, stored)
            self._known[key] = stored
        return self._known[key]

    def _read(self, key: str) -> Matrix | None:
        if self.folder is None:
            return None
        path = self.folder / f"{key}.npz"
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
                matrix = content["embedding"]
        except FileNotFoundError:
            return None
        except (OSError, EOFError, ValueError, TypeError, KeyError, BadZipFile) as problem:
            logger.warning("%s cannot be read and is made anew: %s", path, problem)
            return None
        return np.asarray(matrix, dtype=np.float32)

    def _write(self, key: str, matrix: Matrix) -> None:
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        handle, unfinished = tempfile.mkstemp(dir=self.folder, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            np.savez(file, embedding=matrix)
        Path(unfinished).replace(self.folder / f"{key}.npz")
