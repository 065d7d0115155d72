"""InfoLM: the distance of two texts' distributions of words, as a masked language model guesses each of theirs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice

import numpy as np

from metricsmith.bank.base import FloatArray, Names, Reasoned, TextBatch, pair_up
from metricsmith.bank.models.bertscore import why_undefined
from metricsmith.bank.models.engine.batching import batched, padded
from metricsmith.bank.models.engine.encoder import special_ids, token_ids
from metricsmith.bank.models.engine.loader import Network, computing, network
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MEASURES", "MODEL", "compute", "guesses"]

TEMPERATURE = 0.25
LEAST = 16  # tokens that a masked copy counts for in a batch, since its guess is as long as the vocabulary
Masked = tuple[tuple[int, ...], int]  # the ids of a text, one of them masked, and its place


def _kl(p: FloatArray, q: FloatArray) -> float:
    there = q > 0
    with np.errstate(divide="ignore"):
        return float(q[there] @ (np.log(q[there]) - np.log(p[there])))


def _renyi(p: FloatArray, q: FloatArray) -> float:
    return math.log(q**0.3 @ p**0.7) / (0.3 - 1)


def _beta(p: FloatArray, q: FloatArray) -> float:
    return math.log((q**1.6).sum()) / 0.96 + math.log((p**1.6).sum()) / 1.6 - math.log(q @ p**0.6) / 0.6


# Each a distance of the output's p from the reference's q, 0 for equal ones; the parameters of two are those for which
# numbers of the authors' code are published (the tests of torchmetrics).
MEASURES: dict[str, Callable[[FloatArray, FloatArray], float]] = {
    "kl": _kl,
    "fisher_rao": lambda p, q: 2 * math.acos(min(1.0, float(np.sqrt(p * q).sum()))),
    "renyi_0.3": _renyi,
    "beta_0.6": _beta,
    "l1": lambda p, q: float(np.abs(p - q).sum()),
    "l2": lambda p, q: float(np.linalg.norm(p - q)),
    "l_infinity": lambda p, q: float(np.abs(p - q).max()),
}
MODEL = ModelSpec(
    name="infolm",
    id="bert-base-uncased",
    head="masked",
    choices=(("measure", tuple(MEASURES)),),  # kl as in torchmetrics and autometrics-ai; the paper prefers fisher_rao
)

CARD = MetricCard(
    name="InfoLM",
    kind="bank",
    summary=(
        "Distance from a reference: a masked language model guesses each word of a text from the others, its guesses "
        "are averaged to one distribution over the vocabulary, and those of output and reference are compared."
    ),
    formula=(
        "sum over the vocabulary of q ln(q / p): q of the reference, p of the output, each the mean over the text's "
        "tokens of softmax(logits / .25) where that token is masked; the marks at the ends are neither masked nor "
        "counted; with measure= fisher_rao, renyi_0.3, beta_0.6, l1, l2 or l_infinity another distance of q and p"
    ),
    outputs=(Output("infolm", 0.0, None, False, half=2.0, description="0 for equal texts"),),
    needs=("references", "weights", "extra:models"),
    cost="local",
    multi_reference="the closest reference; blank references are ignored",
    domains=("general text", "summaries", "data-to-text"),
    tasks=("summarisation", "data-to-text", "paraphrase", "captioning"),
    best_for=("texts that say the same in other words", "short texts"),
    not_for=(
        "factual correctness: names and numbers that fit the context are guessed alike",
        "long texts, by its time",
    ),
    limits=(
        "one run of the network for each token: a text of 100 tokens costs as much as 100 texts",
        "the distance from the reference to the output is not that from the output to the reference",
        "tokens weigh alike; the authors' code also has weights by idf",
        "torchmetrics and autometrics-ai return the negative of this number, and cut texts at 20 tokens unless told "
        "otherwise; here they are cut at the network's length",
        "torchmetrics 1.9.0 scores pairs of different rows in a batch, and turns an empty text or a probability of 0 "
        "into 0, its best value",
    ),
    failure_cases=("a word in place of its opposite, which fits the same context, costs little",),
    related=("bertscore_f", "moverscore"),
    papers=("Colombo et al. 2022, InfoLM: a new metric to evaluate summarization and data2text generation",),
    checkpoint=Checkpoint("bert-base-uncased", 0.44, 0.8, 512, "the end is cut off"),
)


def compute(batch: TextBatch, outputs: Names) -> Reasoned:
    """Guess each distinct text once and compare every output with each of its references.

    Raises
    ------
    ArithmeticError
        If the distance of a pair is infinite: a word that the reference suggests has probability 0 for the output.
    """
    pairs, measure = pair_up(batch), MEASURES[str(batch.spec.option("measure"))]
    found = guesses(batch.spec, [*pairs.outputs, *pairs.references])
    left, right = found[: len(pairs.outputs)], found[len(pairs.outputs) :]
    values = np.array([
        math.nan if p is None or q is None else measure(p, q) for p, q in zip(left, right, strict=True)
    ])  # fmt: skip
    if np.isinf(values).any():
        raise ArithmeticError("the distance is infinite: a word has probability 0 for one of the texts")
    return Reasoned(dict.fromkeys(outputs, pairs.best(values, highest=False)), why_undefined(batch, "references"))


def guesses(spec: ModelSpec, texts: Sequence[str]) -> list[FloatArray | None]:
    """The mean guess of the masked tokens of each text, a distribution over the vocabulary, shape (v,).

    Each token is masked in turn. None for a text without tokens. As many masked copies run at once as the token budget
    allows, and only the guess at the masked place is computed.
    """
    loaded, special = network(spec), special_ids(spec)
    mask = int(loaded.tokenizer.mask_token_id)
    tokens = token_ids(spec, texts)
    places = {ids: [place for place, token in enumerate(ids) if token not in special] for ids in tokens}

    def forward(some: list[tuple[int, ...]]) -> list[FloatArray]:
        copies = [((*ids[:place], mask, *ids[place + 1 :]), place) for ids in some for place in places[ids]]
        rows = iter(batched(spec, copies, lambda copy: max(LEAST, len(copy[0])), partial(_distributions, loaded)))
        return [np.asarray(sum(islice(rows, len(places[ids])))) / len(places[ids]) for ids in some]

    worth = [ids for ids in places if places[ids]]
    with computing():
        found = dict(
            zip(worth, batched(spec, worth, lambda ids: max(LEAST, len(ids)) * len(places[ids]), forward), strict=True)
        )
    return [found.get(ids) for ids in tokens]


def _distributions(loaded: Network, copies: list[Masked]) -> list[FloatArray]:
    import torch

    ids, mask = padded([text for text, _ in copies], loaded.tokenizer.pad_token_id or 0, loaded.device)
    hidden = loaded.module.bert(input_ids=ids, attention_mask=mask).last_hidden_state
    rows = torch.arange(len(copies), device=loaded.device)
    at = torch.tensor([place for _, place in copies], device=loaded.device)
    logits = loaded.module.cls(hidden[rows, at]).cpu().double()
    return list(torch.softmax(logits / TEMPERATURE, dim=-1).numpy())
