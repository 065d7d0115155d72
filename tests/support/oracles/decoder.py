"""Oracles of the metrics on a likelihood: seq2seq, causal, and MAUVE from cluster labels on.

Sources: neulab/BARTScore, bart_score.py; maszhongming/UniEval, utils.py and metric/; transformers' page on perplexity;
mauve-text 0.4.0 for the divergence curve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from metricsmith.bank.text import sentences
from metricsmith.metric import RowText
from oracles.common import Settings, limit, network, tokenizer

__all__ = ["bartscore", "mauve_of_labels", "perplexity", "unieval_dialogue", "unieval_fact", "unieval_sum"]


def _likelihood(path: Path, source: str, target: str) -> float:
    """Mean log-probability of all tokens of the target, both ends counted, as the network's own loss has it."""
    import torch

    tokens = tokenizer(path)
    source_ids, target_ids = (
        tokens(text, truncation=True, max_length=limit(path), return_tensors="pt")["input_ids"]
        for text in (source, target)
    )
    with torch.inference_mode():
        return -float(network(path, "AutoModelForSeq2SeqLM")(source_ids, labels=target_ids).loss)


def bartscore(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """Means over the references, each direction alone; f is the mean of both."""
    if settings["direction"] == "src->hyp":
        return {"bartscore": _likelihood(path, row.input, row.output)}
    forward = np.mean([_likelihood(path, text, row.output) for text in row.references])
    back = np.mean([_likelihood(path, row.output, text) for text in row.references])
    found = {"ref->hyp": forward, "hyp->ref": back, "f": (forward + back) / 2}
    return {"bartscore": float(found[settings["direction"]])}


def _yes(path: Path, question: str, *fields: tuple[str, str]) -> float:
    """Probability of Yes, out of Yes and No, as the first token of the answer."""
    import torch

    tokens = tokenizer(path)
    text = "question: " + question + "".join(f" </s> {name}: {value}" for name, value in fields)
    ids = tokens(text, truncation=True, max_length=1024, return_tensors="pt")["input_ids"]  # metric/evaluator.py
    yes, no = (tokens(word)["input_ids"][0] for word in ("Yes", "No"))
    with torch.inference_mode():
        model = network(path, "AutoModelForSeq2SeqLM")
        logits = model(ids, decoder_input_ids=torch.tensor([[model.config.decoder_start_token_id]])).logits[0, 0]
    chances = torch.softmax(logits.double(), -1)
    return float(chances[yes] / (chances[yes] + chances[no]))


def unieval_sum(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """Coherence, consistency, fluency, and relevance as the mean over the references."""
    parts, document = sentences(row.output), ("document", row.input)
    claim, paragraph = "Is this claim consistent with the document?", "Is this a fluent paragraph?"
    relevant = "Is this summary relevant to the reference?"
    summary = ("summary", row.output)
    return {
        "unieval_coherence": _yes(path, "Is this a coherent summary to the document?", summary, document),
        "unieval_consistency": float(np.mean([_yes(path, claim, ("claim", part), document) for part in parts])),
        "unieval_fluency": float(np.mean([_yes(path, paragraph, ("paragraph", part)) for part in parts])),
        "unieval_relevance": float(
            np.mean([_yes(path, relevant, summary, ("reference", text)) for text in row.references])
        ),
    }


def unieval_dialogue(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """Five dimensions; engagingness is a sum over sentences, the first reference is the fact."""
    response, history, fact = ("response", row.output), ("dialogue history", row.input), ("fact", row.references[0])
    coherent = "Is this a coherent response given the dialogue history?"
    engaging = "Is this an engaging and informative response according to the dialogue history and fact?"
    grounded = "Is this response consistent with knowledge in the fact?"
    return {
        "dialogue_naturalness": _yes(path, "Is this a natural response in the dialogue?", response),
        "dialogue_coherence": _yes(path, coherent, response, history),
        "dialogue_engagingness": sum(
            _yes(path, engaging, ("response", part), history, fact) for part in sentences(row.output)
        ),
        "dialogue_groundedness": _yes(path, grounded, response, fact),
        "dialogue_understandability": _yes(path, "Is this an understandable response in the dialogue?", response),
    }


def unieval_fact(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """The mean over the output's sentences of their consistency with the input."""
    question, document = "Is this claim consistent with the document?", ("document", row.input)
    answers = [_yes(path, question, ("claim", part), document) for part in sentences(row.output)]
    return {"unieval_fact": float(np.mean(answers))}


def perplexity(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """Windows of the network's length, half of it (512 at most) on; each token once, the first only after a mark."""
    import torch

    tokens, model = tokenizer(path), network(path, "AutoModelForCausalLM")
    ids = tokens(row.output)["input_ids"]
    ids = [tokens.bos_token_id, *ids] if settings["bos"] else ids
    window = model.config.n_positions
    stride, total, scored = min(512, window // 2), 0.0, 1
    for begin in range(0, len(ids), stride):
        end = min(begin + window, len(ids))
        with torch.inference_mode():
            chances = torch.log_softmax(model(torch.tensor([ids[begin:end]])).logits[0].double(), -1)
        for place in range(scored, end):
            total -= float(chances[place - begin - 1, ids[place]])
        scored = max(scored, end)
        if end == len(ids):
            break
    return {"perplexity": math.exp(total / (len(ids) - 1))}


def mauve_of_labels(ours: Sequence[int], theirs: Sequence[int], clusters: int, scale: float = 5.0) -> float:
    """The area under the package's curve for two lists of cluster labels; equal histograms trip its sorting."""
    from mauve.compute_mauve import get_divergence_curve_for_multinomials
    from sklearn.metrics import auc

    p, q = (np.bincount(labels, minlength=clusters) / len(labels) for labels in (ours, theirs))
    x, y = get_divergence_curve_for_multinomials(p, q, np.linspace(1e-6, 1 - 1e-6, 25), scale).T
    first, second = np.argsort(x), np.argsort(y)
    return 0.5 * float(auc(x[first], y[first]) + auc(y[second], x[second]))
