"""Oracles of the metrics on an encoder: packages one pair at a time, else the formula for one row.

Sources: bert-score 0.3.13; parascore 1.0.5 (its `score` and `diverse`; its `free_score` mixes rows); POT 0.9.7.post1
for the transport of MoverScore version 2 (AIPHES/emnlp19-moverscore, moverscore_v2.py); chikiulo/yisi, lexweight.cpp
and phrasesim.h, for YiSi; torchmetrics 1.9.0 for InfoLM, which scores wrong pairs in a batch and right ones alone.
"""

from __future__ import annotations

import math
import string
import warnings
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from metricsmith.metric import RowText
from oracles.common import Settings, limit, tokenizer, vectors

BASELINE = {"bertscore_p": 0.83150584, "bertscore_r": 0.8314941, "bertscore_f": 0.83122575}


@lru_cache(maxsize=4)
def _bert_scorer(path: Path, layer: int, fast: bool, documents: tuple[str, ...]) -> Any:
    from bert_score import BERTScorer

    return BERTScorer(
        model_type=str(path), num_layers=layer, use_fast_tokenizer=fast, device="cpu", nthreads=0,
        idf=bool(documents), idf_sents=list(documents) or None,
    )  # fmt: skip


def bertscore(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """Score each reference alone: in a padded batch of theirs padding counts as a token of cosine 0."""
    documents = tuple(text for other in settings["corpus"] for text in other.references) if settings["idf"] else ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scorer = _bert_scorer(path, settings["layer"], settings["tokenizer"] == "fast", documents)
        found = [[float(part[0]) for part in scorer.score([row.output], [text])] for text in row.references]
    scores = dict(zip(BASELINE, map(max, zip(*found, strict=True)), strict=True))
    if settings["rescale"]:
        scores = {name: (value - BASELINE[name]) / (1 - BASELINE[name]) for name, value in scores.items()}
    return scores


@lru_cache(maxsize=4)
def _para_scorer(path: Path, layer: int, fast: bool) -> Any:
    from parascore import ParaScorer

    return ParaScorer(model_type=str(path), num_layers=layer, device="cpu", use_fast_tokenizer=fast)


def _paraphrase(path: Path, row: RowText, settings: Settings, others: Iterable[str]) -> float:
    from parascore.utils import diverse

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scorer = _para_scorer(path, settings["layer"], settings["tokenizer"] == "fast")
        similar = max(float(scorer.score([row.output], [text])[2][0]) for text in others)
    return similar + 0.05 * float(diverse([row.output], [row.input])[0])


def parascore(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """The best F over input and references, and a bonus for the distance in characters."""
    return {"parascore": _paraphrase(path, row, settings, [row.input, *row.references])}


def parascore_free(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """F against the input, and the same bonus."""
    return {"parascore_free": _paraphrase(path, row, settings, [row.input])}


def moverscore(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """Mean over the references of 1 / (1 + c), or 1 - c, c the cost of transport."""
    import ot

    corpus = settings["corpus"]
    outputs = _frequencies(path, [other.output for other in corpus])
    references = _frequencies(path, [text for other in corpus for text in other.references])
    scores = []
    for text in row.references:
        (ours, weights), (theirs, counts) = (
            _mass(path, row.output, outputs if settings["idf"] else None),
            _mass(path, text, references if settings["idf"] else None),
        )
        distances = np.sqrt(((ours[:, None, :] - theirs[None, :, :]) ** 2).sum(-1))
        cost = float(ot.emd2(weights, counts, distances))
        scores.append(1 / (1 + cost) if settings["similarity"] == "1/(1+cost)" else 1 - cost)
    return {"moverscore": float(np.mean(scores))}


def _ids(path: Path, text: str) -> list[int]:
    return tokenizer(path)(text, truncation=True, max_length=limit(path))["input_ids"]


def _frequencies(path: Path, texts: list[str]) -> tuple[Counter[int], int]:
    return Counter(number for text in texts for number in set(_ids(path, text))), len(texts)


def _mass(path: Path, text: str, frequencies: tuple[Counter[int], int] | None) -> tuple[Any, Any]:
    """Unit vectors and weights of the tokens that count: no later piece of a word, no mark of one character."""
    ids = _ids(path, text)
    pieces = tokenizer(path).convert_ids_to_tokens(ids)
    weights = np.ones(len(ids))
    if frequencies is not None:
        counts, texts = frequencies
        weights = np.array([math.log((texts + 1) / (counts[number] + 1)) for number in ids])
    kept = [place for place, piece in enumerate(pieces) if "##" not in piece and piece not in set(string.punctuation)]
    states = vectors(path, ids).numpy()[kept]
    return states / np.linalg.norm(states, axis=1, keepdims=True), weights[kept] / weights[kept].sum()


def yisi2(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """F of precision and recall against the input, recall at four times the weight."""
    sides = []
    for own, other in ((row.output, "output"), (row.input, "input")):
        marks = set(tokenizer(path).all_special_ids)
        ids = _ids(path, own)
        counts, texts = _frequencies(path, [getattr(one, other) for one in settings["corpus"]])
        places = [place for place, number in enumerate(ids) if number not in marks]
        weights = [math.log2(1 + (texts + 1) / (counts[ids[place]] + 1)) if settings["idf"] else 1 for place in places]
        states = vectors(path, ids).numpy()[places]
        sides.append((states / np.linalg.norm(states, axis=1, keepdims=True), np.array(weights)))
    (ours, mine), (theirs, yours) = sides
    cosines = np.maximum(ours @ theirs.T, 0)
    precision = float(mine @ cosines.max(1) / mine.sum())
    recall = float(yours @ cosines.max(0) / yours.sum())
    return {"yisi2": precision * recall / (0.8 * precision + 0.2 * recall) if precision and recall else 0.0}


MEASURES: dict[str, tuple[float, dict[str, Any]]] = {
    "kl": (-1, {"information_measure": "kl_divergence"}),
    "fisher_rao": (1, {"information_measure": "fisher_rao_distance"}),
    "renyi_0.3": (1, {"information_measure": "renyi_divergence", "alpha": 0.3}),
    "beta_0.6": (1, {"information_measure": "beta_divergence", "beta": 0.6}),
    "l1": (1, {"information_measure": "l1_distance"}),
    "l2": (1, {"information_measure": "l2_distance"}),
    "l_infinity": (1, {"information_measure": "l_infinity_distance"}),
}
"""The sign and the arguments by which torchmetrics gives each measure; its KL is the negative of the divergence."""


def infolm(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """torchmetrics, one pair at a time; the length is given, as it would cut texts at 20 tokens else."""
    from torchmetrics.functional.text.infolm import infolm as scored

    sign, measure = MEASURES[settings["measure"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            scored([row.output], [text], str(path), idf=False, max_length=limit(path), verbose=False, **measure)
            for text in row.references
        ]
    return {"infolm": min(sign * float(one) for one in found)}
