"""A writer of fastText's own format (version 12), for tests: nothing that trains fastText is needed.

Source of the layout: saveModel in fasttext.cc, args.cc, dictionary.cc and densematrix.cc of fastText 0.9.2.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

import tiny_texts

MAGIC, VERSION = 793712314, 12
DIMENSION, BUCKETS = 8, 64
SOFTMAX, SUPERVISED = 3, 3
END_OF_SENTENCE = "</s>"


def fasttext_bin(folder: Path, labels: list[str], *, seed: int = 0) -> Path:
    """Write a supervised model of random vectors that tells `labels`, and return its path.

    Parameters
    ----------
    folder
        Where `model.bin` is written; made where it is missing.
    labels
        Labels with fastText's prefix, such as `__label__toxic`.
    seed
        Seeds the vectors: equal seeds give equal bytes.
    """
    words = [END_OF_SENTENCE, *dict.fromkeys(word for line in tiny_texts.corpus() for word in line.split())]
    random = np.random.default_rng(seed)
    # dim, ws, epoch, minCount, neg, wordNgrams, loss, model, bucket, minn, maxn, lrUpdateRate, t
    settings = struct.pack("<12id", DIMENSION, 5, 5, 1, 5, 2, SOFTMAX, SUPERVISED, BUCKETS, 0, 0, 100, 1e-4)
    entries = [struct.pack("<3i2q", len(words) + len(labels), len(words), len(labels), len(words), -1)]
    entries += [word.encode() + b"\0" + struct.pack("<qb", 1, 0) for word in words]
    entries += [label.encode() + b"\0" + struct.pack("<qb", 1, 1) for label in labels]
    rows = _matrix(random.normal(size=(len(words) + BUCKETS, DIMENSION)))
    outputs = _matrix(2 * random.normal(size=(len(labels), DIMENSION)))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.bin"
    path.write_bytes(struct.pack("<2i", MAGIC, VERSION) + settings + b"".join(entries) + rows + outputs)
    return path


def _matrix(values: np.ndarray) -> bytes:
    """Return a matrix as fastText reads it: a byte that says "not quantised", two sizes, the numbers row by row."""
    return struct.pack("<?2q", False, *values.shape) + values.astype("<f4").tobytes()
