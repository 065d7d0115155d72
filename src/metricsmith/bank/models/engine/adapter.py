"""Low-rank adapters on a loaded network: a copy that shares its frozen weights, so that others see no difference.

Source: Hu et al. (2021), LoRA, arXiv 2106.09685, by peft's own layers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from metricsmith.bank.models.engine.loader import Network, hushed, torch_threads
from metricsmith.bank.models.trained import Weights
from metricsmith.errors import StateError

__all__ = ["adapted", "training", "with_weights"]

SCALE = 2  # of an adapter's output: alpha is twice the rank
LAST = ("classifier.", "pre_classifier.")  # learned whole, whatever the checkpoint has there
KEPT = 16  # copies of one network, such as those of the folds of a cross-fit; their own weights are small
_one_at_a_time = threading.RLock()
_lock = threading.Lock()
_copies: WeakKeyDictionary[Network, list[tuple[Weights, Any]]] = WeakKeyDictionary()  # gone where a network is unloaded


@contextmanager
def training(device: Any, seed: int) -> Iterator[None]:
    """Compute with gradients, on one thread, with random numbers from a seed; the caller's own go on undisturbed.

    One training at a time: dropout draws from a state that all threads share.
    """
    from torch import cuda, default_generator, enable_grad, inference_mode
    from torch.random import fork_rng

    devices = [device] if device.type == "cuda" else []
    with _one_at_a_time, torch_threads(1), hushed(), fork_rng(devices=devices), inference_mode(False), enable_grad():
        default_generator.manual_seed(seed)
        for one in devices:
            cuda.default_generators[one.index or 0].manual_seed(seed)
        yield


def adapted(loaded: Network, rank: int, dropout: float = 0.0, *, empty: bool = False) -> tuple[Any, dict[str, Any]]:
    """A copy of a network with an adapter on each linear layer, and the weights that are learned, by name.

    Layers that the checkpoint lacks, and the last ones, are filled anew and learned whole. All other weights are those
    of the loaded network itself, in the same memory. With `empty` nothing is filled: `with_weights` does that.
    """
    from peft import LoraConfig, inject_adapter_in_model
    from torch.nn import Linear, Parameter

    whole = {name for name, _ in loaded.module.named_parameters() if name in loaded.new or name.startswith(LAST)}
    shared = {
        id(weight): Parameter(weight.detach().clone() if name in whole else weight.detach(), requires_grad=False)
        for name, weight in loaded.module.named_parameters()
    }
    module = deepcopy(loaded.module, shared)
    layers = sorted({name.rpartition(".")[0] for name in whole})
    for name in () if empty else layers:
        module.get_submodule(name).reset_parameters()
    linear = [name for name, part in module.named_modules() if isinstance(part, Linear) and name not in layers]
    config = LoraConfig(r=rank, lora_alpha=SCALE * rank, lora_dropout=dropout, target_modules=linear)
    module = inject_adapter_in_model(config, module, low_cpu_mem_usage=empty)
    learned = {
        name.replace(".default.", "."): weight.requires_grad_(True)
        for name, weight in module.named_parameters()
        if ".lora_" in name or name in whole
    }
    return module, learned


def with_weights(loaded: Network, weights: Weights) -> Any:
    """A copy of a network with learned weights, to be computed with; the last `KEPT` are remembered by their object.

    Raises
    ------
    StateError
        If they are others than those that are learned on this network, or of another shape.
    """
    with _lock:
        copies = _copies.setdefault(loaded, [])
        found = next((copy for copy in copies if copy[0] is weights), None) or (weights, _copy(loaded, weights))
        copies[:] = [found, *(copy for copy in copies if copy is not found)][:KEPT]
    return found[1]


def _copy(loaded: Network, weights: Weights) -> Any:
    import torch

    rank = next((len(array) for name, array in weights.items() if ".lora_A." in name), 1)
    module, learned = adapted(loaded, rank, empty=True)
    shapes = {name: tuple(weight.shape) for name, weight in learned.items()}
    if strange := sorted(shapes.items() ^ {name: array.shape for name, array in weights.items()}.items()):
        raise StateError(
            f"{len(strange)} learned weights, such as {strange[0][0]!r:.80}, do not fit the network of "
            f"{loaded.key[0]}; take the encoder that the metric was trained on"
        )
    for name in learned:
        owner, _, last = name.rpartition(".")
        part = module.get_submodule(f"{owner}.default" if ".lora_" in name else owner)
        found = torch.from_numpy(np.array(weights[name], np.float32)).to(loaded.device)
        setattr(part, last, torch.nn.Parameter(found, requires_grad=False))
    return module.eval()
