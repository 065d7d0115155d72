"""A metric that rated rows train, without a network: ridge on the counts of letters and of letter triples."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from metricsmith.errors import DataError
from metricsmith.metric import content_hash, make_row
from metricsmith.records import Judgement, MetricCard, Output, Task
from metricsmith.reward import DSPyCallable
from metricsmith.threads import one_thread
from owned import memory
from planted import TASK

LETTERS = "abcdefghijklmnopqrstuvwxyz    "


@dataclass(frozen=True)
class Letters(DSPyCallable):
    """Untrained until `compile`; with 1,000 columns and a small penalty it knows every rating that it was shown."""

    name: str = "letters"
    task: Task = TASK
    columns: int = 1000
    penalty: float = 1e-3
    told: list = field(default_factory=list, compare=False)  # the rows of each training, for tests
    weights_: tuple[float, ...] = ()
    centre: float = 0.0
    learned: tuple = ()
    least: int = 2  # rows that it can be trained on

    @property
    def trained(self):
        return bool(self.weights_)

    @property
    def output(self):
        return Output(self.name, low=None, high=None, half=1.0)

    @property
    def card(self):
        return MetricCard(self.name, "bank", "Ridge on letters.", "w x", (self.output,))

    def fingerprint(self):
        return content_hash("letters", self.name, self.columns, self.penalty, self.weights_, self.centre)

    def to_state(self):
        """Some state that can be saved and names the rows that were learned from."""
        return memory(self.learned).to_state()

    def features(self, rows):
        return np.array([_counts(row.output, self.columns) for row in rows])

    @one_thread()
    def compile(self, trainset, valset=None):
        self.told.append(list(trainset))
        if len(trainset) < self.least:
            raise DataError(f"{len(trainset)} rows are fewer than {self.least}")
        ratings = np.array([row[self.task.target] for row in trainset])
        counts = self.features(trainset)
        middle = counts.mean(axis=0)
        counts -= middle
        dual = np.linalg.solve(counts @ counts.T + self.penalty * np.eye(len(trainset)), ratings - ratings.mean())
        weights = tuple((counts.T @ dual).tolist())
        centre = float(ratings.mean() - middle @ weights)
        return replace(self, weights_=weights, centre=centre, learned=tuple(trainset))

    def judge_batch(self, rows, *, run=0):
        raws = (self.centre + self.features(rows) @ np.array(self.weights_)).tolist()
        return [Judgement(self.name, raw, self.output.score(raw), run=run) for raw in raws]


@lru_cache(maxsize=10_000)
def _counts(text, columns):
    triples = [zlib.crc32(text[start : start + 3].encode()) % columns for start in range(len(text) - 2)]
    letters = [text.count(letter) for letter in sorted(set(LETTERS))]
    return np.concatenate([np.bincount(triples, minlength=columns), letters]).astype(float)


def letter_rows(n=80, groups=20, seed=0, signal=0.0):
    """Rows of random letters with ratings 1 to 5, noise or `signal` more for each letter e."""
    random = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        text = "".join(random.choice(list(LETTERS), 120))
        rating = 3 + signal * (text.count("e") - 4) + random.normal() * (signal == 0)
        labels = {"rating": float(np.clip(round(rating), 1, 5)), "group": f"g{number % groups}", "id": str(number)}
        rows.append(make_row(text, **labels))
    return rows
