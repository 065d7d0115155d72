"""Oracles of the metrics on a classifier, a regression or a question answering head.

Sources: bleurt-pytorch 0.0.1; transformers, one row at a time, for FactCC, toxicity and sentiment; lens-metric 0.2.0
(models and data preparation, written down as a formula here, since the package cannot be installed beside ours);
autometrics-ai 0.1.0 and ThomasScialom/summa-qa for SummaQA.
"""

from __future__ import annotations

import math
import re
import string
import warnings
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

from metricsmith.bank.text import sentences
from metricsmith.metric import RowText
from oracles.common import Settings, limit, network, safe_tensors, tokenizer

__all__ = ["bleurt", "factcc", "lens", "lens_salsa", "sentiment", "summaqa", "toxicity"]


@lru_cache(maxsize=2)
def _bleurt(path: Path) -> tuple[Any, Any]:
    from bleurt_pytorch import BleurtForSequenceClassification
    from bleurt_pytorch.bleurt.tokenization_bleurt_sp import BleurtSPTokenizer

    return (
        BleurtForSequenceClassification.from_pretrained(path).eval(),
        BleurtSPTokenizer.from_pretrained(path, model_max_length=limit_of(path)),
    )


def limit_of(path: Path) -> int:
    """Return the positions that the config names."""
    import json

    return int(json.loads((path / "config.json").read_text("utf-8"))["max_position_embeddings"])


def bleurt(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """The package's network on reference and output, in this order; the best reference counts."""
    import torch

    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")
        model, tokens = _bleurt(path)
        encoded = [
            tokens(text, row.output, truncation="longest_first", max_length=limit_of(path), return_tensors="pt")
            for text in row.references
        ]
        return {"bleurt": max(float(model(**one).logits[0, 0]) for one in encoded)}


def _probabilities(path: Path, truncation: str | bool, *texts: str) -> dict[str, float]:
    import torch

    model = network(path, "AutoModelForSequenceClassification")
    encoded = tokenizer(path)(*texts, truncation=truncation, max_length=limit(path), return_tensors="pt")
    with torch.inference_mode():
        shares = torch.softmax(model(**encoded).logits[0].double(), -1).tolist()
    return {model.config.id2label[number]: share for number, share in enumerate(shares)}


def factcc(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """Probability of CORRECT for (document, claim); the longer is cut, as in salesforce/factCC."""
    return {"factcc": _probabilities(path, "longest_first", row.input, row.output)["CORRECT"]}


def toxicity(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """Probability of hate."""
    return {"toxicity": _probabilities(path, True, row.output)["hate"]}


def sentiment(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """Positive less negative (autometrics-ai halves it); names of users and links are masked, as the card asks."""
    words = [
        "@user" if word.startswith("@") and len(word) > 1 else "http" if word.startswith("http") else word
        for word in row.output.split(" ")
    ]
    shares = _probabilities(path, True, " ".join(words))
    return {"sentiment": shares["positive"] - shares["negative"]}


def _mixed(path: Path, ids: list[int], norm: bool = True) -> Any:
    """All layers of one text, each normed over the text as a whole, mixed by softmax weights: (tokens, width)."""
    import torch

    weights = safe_tensors(path)
    with torch.inference_mode():
        layers = _lens_encoder(path)(torch.tensor([ids]), output_hidden_states=True).hidden_states
        normed = [
            (layer[0] - layer.mean()) / (layer.var(correction=0) + 1e-12).sqrt() if norm else layer[0]
            for layer in layers
        ]
        scalars = [weights[f"layerwise_attention.scalar_parameters.{place}"] for place in range(len(layers))]
        shares = torch.softmax(torch.cat(scalars), 0)
        return weights["layerwise_attention.gamma"] * sum(
            share * layer for share, layer in zip(shares, normed, strict=True)
        )


@lru_cache(maxsize=2)
def _lens_encoder(path: Path) -> Any:
    from transformers import AutoConfig, RobertaModel

    model = RobertaModel(AutoConfig.from_pretrained(path, local_files_only=True), add_pooling_layer=False).eval()
    start = "encoder.model."
    own = {name.removeprefix(start): part for name, part in safe_tensors(path).items() if name.startswith(start)}
    missing, _ = model.load_state_dict(own, strict=False)
    assert set(missing) <= {"embeddings.position_ids", "embeddings.token_type_ids"}
    return model


def _estimate(path: Path, features: Any) -> float:
    import torch

    weights = safe_tensors(path)
    hidden = torch.tanh(weights["estimator.ff.0.weight"] @ features + weights["estimator.ff.0.bias"])
    return float(weights["estimator.ff.3.weight"] @ hidden + weights["estimator.ff.3.bias"])


def lens(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """Source, output and reference, pooled by the mean, joined with products and differences; the best reference."""
    import torch

    def pooled(text: str) -> Any:
        ids = tokenizer(path)(text.lower(), truncation=True, max_length=limit(path) - 2)["input_ids"]
        return _mixed(path, ids, settings["layer_norm"]).mean(0)

    source, output = pooled(row.input), pooled(row.output)
    scores = []
    for text in row.references:
        other = pooled(text)
        joined = [source, output, other]
        joined += [output * other, (output - other).abs(), output * source, (output - source).abs()]
        estimate = _estimate(path, torch.cat(joined))
        scores.append(50 * (math.erf(estimate / math.sqrt(2)) + 1) if settings["rescale"] else 100 * estimate)
    return {"lens": max(scores)}


def lens_salsa(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """Output and source in one text, output first; the state of the first token."""
    tokens = tokenizer(path)
    ids: list[int] = []
    for text in (row.output, row.input):
        own = tokens(text.lower(), add_special_tokens=False, truncation=True, max_length=limit(path) - 4)["input_ids"]
        ids += [tokens.eos_token_id, *own, tokens.eos_token_id]
    ids[0] = tokens.bos_token_id
    return {"lens_salsa": 100 * _estimate(path, _mixed(path, ids[: limit(path)])[0])}


def summaqa(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """Means over questions: a sentence of the input with one entity masked, asked of the output.

    `find` in the settings maps a sentence to the places of its entities, (start, end) each.
    """
    found = []
    for sentence in sentences(row.input):
        for start, end in settings["find"](sentence):
            if not _words(sentence[start:end]):
                continue  # "The" has no word that an answer could share
            answer, probability = _answered(path, f"{sentence[:start]}MASKED{sentence[end:]}", row.output)
            found.append((probability, _overlap(answer, sentence[start:end])))
    names = ("summaqa_prob", "summaqa_f")
    return {name: sum(values) / len(found) for name, values in zip(names, zip(*found, strict=True), strict=True)}


def _answered(path: Path, question: str, text: str) -> tuple[str, float]:
    """The likeliest span of the text, and its probability out of all tokens, as in ThomasScialom/summa-qa."""
    import torch

    tokens = tokenizer(path)
    encoded = tokens(question, text, truncation="longest_first", max_length=limit(path), return_tensors="pt")
    second = [place for place, side in enumerate(encoded.sequence_ids(0)) if side == 1]
    with torch.inference_mode():
        found = network(path, "AutoModelForQuestionAnswering")(**encoded)
    starts, ends = (torch.softmax(logits[0].double(), -1).tolist() for logits in (found.start_logits, found.end_logits))
    start, end = max(
        ((i, j) for i in second for j in second if i <= j), key=lambda pair: starts[pair[0]] * ends[pair[1]]
    )
    places = [encoded.token_to_chars(0, place) for place in (start, end)]
    return text[places[0].start : places[1].end], starts[start] * ends[end]


def _overlap(answer: str, truth: str) -> float:
    ours, theirs = _words(answer), _words(truth)
    same = (ours & theirs).total()
    return 2 * same / (ours.total() + theirs.total()) if same else 0.0


def _words(text: str) -> Counter[str]:
    kept = "".join(character for character in text.lower() if character not in string.punctuation)
    return Counter(re.sub(r"\b(a|an|the)\b", " ", kept).split())
