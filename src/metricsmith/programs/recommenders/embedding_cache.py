"""Token embeddings by content: in memory, and in a folder if one is given."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from metricsmith.metric import content_hash

__all__ = ["EmbeddingCache", "Matrix"]

Matrix = NDArray[np.float32]
logger = logging.getLogger(__name__)


class EmbeddingCache:
    """Remembers one matrix per (encoder, text).

    Parameters
    ----------
    folder : str or Path, optional
        Where matrices outlive the process: one ``.npz`` each, written whole or not at all, read without
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
