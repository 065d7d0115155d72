"""Oracles of the metrics with weights: each scores one row, written from papers and packages and not from our code."""

from __future__ import annotations

from oracles import classifier, decoder, encoder, reward
from oracles.common import Oracle, Settings

__all__ = ["ORACLES", "SOURCES", "Settings"]

ORACLES: dict[str, Oracle] = {
    "bertscore": encoder.bertscore,
    "parascore": encoder.parascore,
    "parascore_free": encoder.parascore_free,
    "moverscore": encoder.moverscore,
    "yisi2": encoder.yisi2,
    "infolm": encoder.infolm,
    "bleurt": classifier.bleurt,
    "factcc": classifier.factcc,
    "toxicity": classifier.toxicity,
    "sentiment": classifier.sentiment,
    "lens": classifier.lens,
    "lens_salsa": classifier.lens_salsa,
    "summaqa": classifier.summaqa,
    "grm_reward": reward.grm_reward,
    "inform_reward": reward.inform_reward,
    "ldl_reward": reward.ldl_reward,
    "math_prm": reward.math_prm,
    "bartscore": decoder.bartscore,
    "unieval_dialogue": decoder.unieval_dialogue,
    "unieval_fact": decoder.unieval_fact,
    "unieval_sum": decoder.unieval_sum,
    "perplexity": decoder.perplexity,
    "fasttext_educational": reward.fasttext_educational,
    "fasttext_nsfw": reward.fasttext_nsfw,
    "fasttext_toxicity": reward.fasttext_toxicity,
}
"""`ORACLES[name](path, row, settings)` is ``{output name: number}``; MAUVE, of sets, is `decoder.mauve_of_labels`."""

_FORMULA = "formula, one row at a time, transformers 4.57.6"
SOURCES: dict[str, str] = {
    **dict.fromkeys(ORACLES, _FORMULA),
    "bertscore": "bert-score 0.3.13, one pair at a time",
    "parascore": "parascore 1.0.5, one pair at a time",
    "parascore_free": "parascore 1.0.5, its F and its bonus",
    "moverscore": "POT 0.9.7 (ot.emd2) on vectors of transformers",
    "infolm": "torchmetrics 1.9.0, one pair at a time",
    "bleurt": "bleurt-pytorch 0.0.1",
    **dict.fromkeys(("factcc", "toxicity", "sentiment", "grm_reward"), "transformers 4.57.6, one row at a time"),
    **dict.fromkeys(("fasttext_educational", "fasttext_nsfw", "fasttext_toxicity"), "fasttext-predict 0.9.2.4"),
    "mauve": "mauve-text 0.4.0, from cluster labels on",
}
"""The package or formula that each oracle is, for the table of differences."""
