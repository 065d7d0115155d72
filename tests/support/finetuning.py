"""Finetuned metrics without a network: an encoder whose vectors follow from the letters of a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import dspy
import numpy as np

from metricsmith.bank.models import ridge
from metricsmith.bank.models.finetuned import ENCODERS, FinetunedMetric
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.bank.models.trained import Trained, packed
from metricsmith.metric import make_row
from metricsmith.records import Scale, Task

HASH = "5f" * 32
TASK = Task("Rewrite notices.", "rating", Scale(-10, 10))
LETTERS = "abcdefgh"


def letter_vectors(_model: Any, texts: Sequence[str]) -> np.ndarray:
    """The shares of eight letters among the characters of each text, shape (n, 8)."""
    return np.array([[text.count(letter) / max(1, len(text)) for letter in LETTERS] for text in texts])


def without_network(monkeypatch: Any) -> None:
    """Let `letter_vectors` stand for the encoder of every ridge, whose weights are here and have the hash `HASH`."""
    monkeypatch.setattr(ridge, "mean_vectors", letter_vectors)
    monkeypatch.setattr(ModelSpec, "lacking", lambda self: "")
    monkeypatch.setattr("metricsmith.optimizers.own.lacking", lambda family: "")
    monkeypatch.setattr(ModelSpec, "found_digest", lambda self: HASH)


def trained_by_hand(**changes: Any) -> FinetunedMetric:
    """A ridge that was learned by nobody: minus 1 and 2 per share of a and of b, on weights that nobody has."""
    learned = Trained(
        packed({"coefficients": np.array([-1.0, 2.0, 0, 0, 0, 0, 0, 0]), "intercept": np.array([0.5])}),
        3.0, 2.0, 40, 20, ("0123456789abcdef",),
    )  # fmt: skip
    options = {"encoder": replace(ENCODERS["minilm"], weights=HASH), "trained": learned, "name": "notes", **changes}
    return FinetunedMetric(TASK, "ridge", **options)


def lettered_rows(n: int, seed: int = 0, noise: float = 0.1) -> list[dspy.Example]:
    """Texts of random letters in groups of two, rated by their share of a less that of b, from -10 to 10."""
    rng = np.random.default_rng(seed)
    texts = ["".join(rng.choice(list(LETTERS), 30)) for _ in range(n)]
    shares = letter_vectors(None, texts)
    ratings = np.clip(40 * (shares[:, 0] - shares[:, 1]) + noise * rng.normal(size=n), -10, 10).round(6)
    return [
        make_row(text, rating=rating, group=f"g{seed}-{number // 2}")
        for number, (text, rating) in enumerate(zip(texts, ratings.tolist(), strict=True))
    ]
