"""LENS-SALSA: quality of a simplification from the complex text alone, learned from ratings of single edits."""

from __future__ import annotations

from functools import partial

import numpy as np

from metricsmith.bank.base import FloatArray, Names, Reasoned, TextBatch, where_filled
from metricsmith.bank.models.engine.batching import batched, finite, padded
from metricsmith.bank.models.engine.loader import Network, computing, network
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "compute"]

MODEL = ModelSpec(
    name="lens_salsa",
    id="davidheineman/lens-salsa",
    head="lens_salsa",
    base="roberta-large",
    pickles=(("checkpoints/model.ckpt", ""),),
)

CARD = MetricCard(
    name="LENS-SALSA",
    kind="bank",
    summary=(
        "Quality of a simplified text beside the complex one, without references: a RoBERTa regression that was "
        "trained on ratings of the single edits that made the text simpler, or worse."
    ),
    formula=(
        "100 (W2 tanh(W1 h + b1) + b2) for the vector h of the first mark of <s> output </s></s> input </s>, both "
        "lower-cased, in a learned mix (by softmax) of RoBERTa's layers, each of mean 0 and variance 1"
    ),
    # The one published number, of a good simplification, is 72.4: half 50 puts it at .8.
    outputs=(Output("lens_salsa", None, None, half=50.0, description="mostly 0 to 100, and neither is an end"),),
    needs=("input", "weights", "extra:models"),
    cost="local",
    domains=("simplified English", "encyclopedias", "news"),
    tasks=("simplification",),
    best_for=("simplifications without references", "telling good edits from needless or harmful ones"),
    not_for=("other tasks than simplification", "other languages than English", "case: all is lower-cased"),
    limits=(
        "both texts together are cut at 512 tokens, the end of the input first; then the last mark is lost too",
        "lens-metric 0.2.0 stops with an error at a single pair that long",
        "autometrics-ai 0.1.0 cuts each text by words, and gives 0 for an empty one",
        "the published settings name sparsemax for the mix; the published code never passes that on",
    ),
    failure_cases=("an unchanged input has no bad edit, and may score well",),
    related=("lens", "sari"),
    papers=("Heineman et al. 2023, Dancing between success and failure: edit-level evaluation of simplification",),
    checkpoint=Checkpoint("davidheineman/lens-salsa", 1.43, 1.6, 512, "the end of the input is cut off"),
)


def compute(batch: TextBatch, outputs: Names) -> Reasoned:
    """One pass for each distinct pair of output and input."""

    def score(part: TextBatch) -> FloatArray:
        loaded = network(part.spec)
        pairs = [_token_ids(loaded, *row) for row in zip(part.outputs, part.inputs, strict=True)]
        with computing():
            return 100 * np.array(batched(part.spec, pairs, len, partial(_forward, loaded)))

    return where_filled(batch, outputs, score, "input")


def _forward(loaded: Network, pairs: list[tuple[int, ...]]) -> list[float]:
    ids, mask = padded(pairs, loaded.tokenizer.pad_token_id or 0, loaded.device)
    return list(finite(loaded.module.estimator["ff"](loaded.module(ids, mask)[:, 0])[:, 0]))


def _token_ids(loaded: Network, output: str, source: str) -> tuple[int, ...]:
    """The joined ids: each text is cut before, and the whole after, which loses its last mark."""
    cut = {"truncation": True, "max_length": loaded.max_tokens - 4, "add_special_tokens": False}
    first, second = loaded.encoded([output.lower(), source.lower()], **cut)["input_ids"]
    return tuple(loaded.tokenizer.build_inputs_with_special_tokens(first, second)[: loaded.max_tokens])
