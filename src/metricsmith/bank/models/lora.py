"""Training an encoder by low-rank adapters: the paper's "finetuned LLM", with settings that do train it.

The paper (AutoMetrics, and its public code, autometrics-ai 0.1.0) takes ModernBERT-large, rank 16, a learning rate of
5e-5, batches of 16, 3 epochs and 20 steps of warm-up, and holds 20 % of the rows out. On 80 rows that is 15 steps, or
12 without those held out: training ends within its warm-up. Its code, besides, adapts one layer of ModernBERT alone,
since the others have names that it does not ask for. `PAPER` has these settings, on all layers and groups.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from metricsmith.bank.models.engine.adapter import adapted, training, with_weights
from metricsmith.bank.models.engine.batching import batched, finite, in_batches, padded
from metricsmith.bank.models.engine.encoder import token_ids
from metricsmith.bank.models.engine.loader import computing, network
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.bank.models.trained import RatedTexts, TrainingOption, Weights
from metricsmith.errors import DataError, ModelFailure, OptionError
from metricsmith.stats.correlation import FloatArray

__all__ = ["NEEDS", "PAPER", "SETTINGS", "SUMMARY", "predict", "train"]

logger = logging.getLogger("metricsmith.bank")
NEEDS = ("peft",)
SUMMARY = "low-rank adapters on all linear layers and a new last layer, trained on the ratings"
SETTINGS: Mapping[str, TrainingOption] = MappingProxyType(
    {
        "rank": TrainingOption(16, 1, 256),
        "rate": TrainingOption(2e-4, 1e-7, 0.1, whole=False),  # of learning, at the end of the warm-up
        "batch": TrainingOption(16, 1, 1024),  # rows of a step
        "steps": TrainingOption(300, 1, 100_000),
        "epochs": TrainingOption(0, 0, 1000),  # in place of steps, unless 0
        "warm_up": TrainingOption(20, 0, 100_000),  # steps
        "held_out": TrainingOption(0.2, 0.0, 0.5, whole=False),  # share of the groups, by which the best step is chosen
        "patience": TrainingOption(200, 1, 100_000),  # steps without a better one, after which training ends
        "dropout": TrainingOption(0.1, 0.0, 0.9, whole=False),  # of what goes into an adapter
    }
)
PAPER: Mapping[str, float] = MappingProxyType({"rate": 5e-5, "epochs": 3})  # the rest of it is the default
EVERY = 10  # steps from one look at the held-out rows to the next
DECAY = 0.01  # of the weights
CLIP = 1.0  # the longest gradient


def train(
    rows: RatedTexts, model: ModelSpec, settings: Mapping[str, float], seed: int, validation: RatedTexts | None = None
) -> Weights:
    """Train adapters and a last layer on the numbers of n texts; the weights of the best step are kept.

    The best step has the smallest squared error on whole groups that are held out, or on `validation`; with neither
    it is the last. Equal arguments give equal bits on a processor.

    Returns
    -------
    mapping of str to array
        float32, by the names of the network's weights.

    Raises
    ------
    DataError
        If there is one group alone, of which none can be held out.
    ModelFailure
        If the error is no longer a number.
    OptionError
        If the network is not in full precision.
    """
    from torch.nn.utils import clip_grad_norm_
    from torch.optim import AdamW
    from torch.optim.lr_scheduler import LambdaLR

    if model.dtype != "float32":
        raise OptionError(f"{model.name}: dtype={model.dtype!r} must be 'float32' to be trained by lora")
    rng = np.random.default_rng(seed)
    learned, judged = (rows, validation) if validation is not None else _held_out(rows, settings["held_out"], rng)
    size, warm_up = int(settings["batch"]), int(settings["warm_up"])
    steps = int(settings["epochs"]) * math.ceil(len(learned.texts) / size) or int(settings["steps"])
    if steps <= warm_up:
        logger.warning("%s: all %d steps lie within the warm-up of %d: little is learned", model.name, steps, warm_up)
    course = _Examples(model, learned)
    ahead = _Examples(model, judged) if judged else None
    check_step = partial(_finite, name=model.name, rate=settings["rate"])
    best, best_step, kept = math.inf, 0, {}
    with training(course.device, seed):
        module, weights = adapted(course.loaded, int(settings["rank"]), settings["dropout"])
        optimizer = AdamW(weights.values(), lr=settings["rate"], weight_decay=DECAY)
        schedule = LambdaLR(optimizer, lambda step: _share_of_rate(step, steps, warm_up))
        for step, places in enumerate(_batches(len(learned.texts), size, steps, rng), 1):
            optimizer.zero_grad()
            check_step(course.error(module.train(), places, learn=True), step)
            check_step(float(clip_grad_norm_(weights.values(), CLIP)), step)
            optimizer.step()
            schedule.step()
            if step < steps and (step % EVERY or not ahead):
                continue
            error = check_step(ahead.error(module.eval()), step) if ahead else 0.0
            if error < best:
                best, best_step = error, step
                kept = {name: weight.detach().cpu().numpy().copy() for name, weight in weights.items()}
            if step - best_step >= settings["patience"]:
                break
    held_out = f", with squared error {best:.3f}" if ahead else ""
    logger.info("%s: step %d of %d is kept%s", model.name, best_step, step, held_out)
    return kept


def predict(texts: Sequence[str], model: ModelSpec, weights: Weights, _settings: Mapping[str, float]) -> FloatArray:
    """The numbers of n texts, shape (n,), each independent of the other texts.

    Raises
    ------
    StateError
        If the weights were learned on another network.
    ArithmeticError
        If a number is not finite.
    """
    examples = _Examples(model, RatedTexts(texts, np.zeros(len(texts)), ()))
    module = with_weights(examples.loaded, weights)
    with computing():
        numbers = batched(
            examples.spec, examples.tokens, len, lambda batch: list(finite(examples.numbers(module, batch)))
        )
    return np.array(numbers, dtype=float)


class _Examples:
    """Texts as tokens with the numbers that belong to them, and the network that reads them."""

    def __init__(self, model: ModelSpec, rows: RatedTexts) -> None:
        import torch

        self.spec = replace(model, head="regressor", layer=None)
        self.loaded = network(self.spec)
        self.device = self.loaded.device
        self.tokens = token_ids(self.spec, rows.texts)
        self.targets = torch.tensor(rows.numbers, dtype=torch.float32, device=self.device)

    def numbers(self, module: Any, tokens: Sequence[tuple[int, ...]]) -> Any:
        """The network's numbers for b texts: a tensor of shape (b,)."""
        ids, mask = padded(tokens, self.loaded.tokenizer.pad_token_id or 0, self.device)
        return module(input_ids=ids, attention_mask=mask).logits[:, 0]

    def error(self, module: Any, places: Sequence[int] | None = None, *, learn: bool = False) -> float:
        """The mean squared error at some places, or at all; with `learn` its gradient is added to the weights'."""
        from torch import set_grad_enabled

        chosen = range(len(self.tokens)) if places is None else places
        total = 0.0
        with set_grad_enabled(learn):
            for batch in in_batches(self.spec, chosen, lambda place: len(self.tokens[place])):
                gaps = self.numbers(module, [self.tokens[place] for place in batch]) - self.targets[batch]
                part = gaps.square().sum() / len(chosen)
                if learn:
                    part.backward()
                total += float(part.detach())
        return total


def _held_out(rows: RatedTexts, share: float, rng: np.random.Generator) -> tuple[RatedTexts, RatedTexts | None]:
    """The rows to learn from, and those of a share of the groups, at least one, that are held out."""
    groups = sorted(set(rows.groups))
    if not share:
        return rows, None
    if len(groups) < 2:
        raise DataError(
            f"the rows make {len(groups)} group, of which none can be held out: give a valset, or held_out=0"
        )
    apart = {groups[place] for place in rng.permutation(len(groups))[: max(1, round(share * len(groups)))]}
    inside, outside = (
        [place for place, group in enumerate(rows.groups) if (group in apart) == held] for held in (False, True)
    )
    return _part(rows, inside), _part(rows, outside)


def _part(rows: RatedTexts, places: Sequence[int]) -> RatedTexts:
    return RatedTexts(
        [rows.texts[place] for place in places], rows.numbers[list(places)], [rows.groups[place] for place in places]
    )


def _batches(count: int, size: int, steps: int, rng: np.random.Generator) -> Iterator[list[int]]:
    """The places of each step's rows: epoch after epoch in a new order, the last batch of one may be smaller."""
    order: list[int] = []
    for _ in range(steps):
        order = order or rng.permutation(count).tolist()
        yield order[:size]
        order = order[size:]


def _share_of_rate(step: int, steps: int, warm_up: int) -> float:
    """The share of the learning rate after so many steps: it rises evenly, and falls as a cosine."""
    if step < warm_up:
        return (step + 1) / warm_up
    return (1 + math.cos(math.pi * (step - warm_up) / max(1, steps - warm_up))) / 2


def _finite(number: float, step: int, name: str, rate: float) -> float:
    if not math.isfinite(number):
        raise ModelFailure(
            f"{name}: the error or its gradient is {number} at step {step}, and nothing is kept: "
            f"a rate below {rate:g} may help"
        )
    return number
