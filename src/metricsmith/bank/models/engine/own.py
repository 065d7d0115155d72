"""Networks with a head that no class of transformers has: its own backbone, and a head written here.

The head is built empty, with the widths that the weights have, and filled by name in transformers' own loading, which
reads shards and never holds a checkpoint twice. Heads compute in float32, whatever the backbone does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = [
    "distribution_head", "distribution_scores", "own_network", "perceptron", "plain_head", "scores", "shapes",
    "two_layers",
]  # fmt: skip

Shapes = Mapping[str, tuple[int, ...]]  # of the weights of a checkpoint, by name
BACKBONES = ("model", "encoder")


def own_network(
    parts: Callable[[Any, Shapes], dict[str, Any]], forward: Callable[..., Any], **options: Any
) -> Callable[[Path, Any], tuple[Any, Mapping[str, Any]]]:
    """The loading of a network that is put together here, with `options` of transformers' ``from_pretrained``.

    `parts` makes, from the config and the weights' shapes, the modules by the names that their weights begin with.
    """

    def load(place: Path, dtype: Any) -> tuple[Any, Mapping[str, Any]]:
        from transformers import MODEL_MAPPING, AutoConfig

        config = AutoConfig.from_pretrained(place, local_files_only=True, trust_remote_code=False)
        base, found = MODEL_MAPPING[type(config)].__mro__[1], shapes(place)

        def init(self: Any, config: Any) -> None:
            base.__init__(self, config)
            for name, part in (made := parts(config, found)).items():
                setattr(self, name, part)
            self._keep_in_fp32_modules_strict = [name for name in made if name not in BACKBONES]
            self.post_init()

        own: Any = type("OwnNetwork", (base,), {"__init__": init, "forward": forward})
        network, report = own.from_pretrained(
            place, config=config, dtype=dtype, use_safetensors=True, local_files_only=True, output_loading_info=True,
            **options,
        )  # fmt: skip
        return network, _with_separate_files(network, place, report)

    return load


def perceptron(shapes: Shapes, name: str, numbers: Sequence[int], width: int, between: Any, last: int = 0) -> Any:
    """Linear layers at the places `numbers` of a sequence, the activation `between` after each but the last.

    Places that neither takes are dropout, which scoring has not. `width` is that of the first input; the others are
    read from the `shapes` of the weights that begin with `name`, that of the last output only where `last` is 0.
    A layer without a shape gets width 1, and is missed when weights are loaded.
    """
    from torch import nn

    layers = [nn.Identity() for _ in range(numbers[-1] + 1)]
    for number in numbers:
        final = number == numbers[-1]
        above = last if final and last else shapes.get(f"{name}.{number}.weight", (1,))[0]
        layers[number] = nn.Linear(width, above)
        width = above
        if not final:
            layers[number + 1] = between()
    return nn.Sequential(*layers)


def plain_head(config: Any, _: Shapes) -> dict[str, Any]:
    """One linear layer without bias, ``score.weight``.

    Source: the sequence classifiers of transformers 4.57.6, models/llama/modeling_llama.py, for one label.
    """
    from torch.nn import Linear

    return {"model": _backbone(config), "score": Linear(config.hidden_size, 1, bias=False)}


def two_layers(outputs: int) -> Callable[[Any, Shapes], dict[str, Any]]:
    """Linear, ReLU, linear: ``score.0`` and ``score.2``, with so many numbers for a token.

    Sources: for one number (INFORM) allenai/reward-bench, rewardbench/models/inform.py, and autometrics-ai 0.1.0,
    INFORMRewardModel.py; for two labels (Qwen2.5-Math-PRM) vllm-project/vllm, vllm/model_executor/models/qwen2_rm.py.
    """

    def parts(config: Any, shapes: Shapes) -> dict[str, Any]:
        from torch.nn import ReLU

        score = perceptron(shapes, "score", (0, 2), config.hidden_size, ReLU, outputs)
        return {"model": _backbone(config), "score": score}

    return parts


def distribution_head(config: Any, shapes: Shapes) -> dict[str, Any]:
    """Distributions of ratings by ``regression_layer.network``, and their weights by ``gating_layer.network``.

    The published repository keeps the two as pickles of their own beside a backbone without prefix. Here all three are
    one checkpoint: ``model.*``, ``regression_layer.*``, ``gating_layer.*``. Source: allenai/reward-bench,
    rewardbench/models/ldlreward.py, and autometrics-ai 0.1.0, LDLRewardModel.py.
    """
    from torch.nn import LeakyReLU, ModuleDict

    width = config.hidden_size
    regression = perceptron(shapes, "regression_layer.network", (0, 2, 4), width, LeakyReLU)
    gate = perceptron(shapes, "gating_layer.network", (0, 3, 6), width, LeakyReLU)
    if regression[-1].out_features % gate[-1].out_features:
        raise ValueError(
            f"{regression[-1].out_features} levels of ratings cannot be shared by {gate[-1].out_features} weights"
        )
    regression, gate = ModuleDict({"network": regression}), ModuleDict({"network": gate})
    return {"model": _backbone(config), "regression_layer": regression, "gating_layer": gate}


def scores(network: Any, ids: Any, mask: Any, rows: Sequence[int], columns: Sequence[int]) -> Any:
    """The head's numbers for m tokens, those at the given rows and columns of a padded batch: shape (m, k)."""
    return network.score(_states(network, ids, mask, rows, columns))


def distribution_scores(network: Any, ids: Any, mask: Any, rows: Sequence[int], columns: Sequence[int]) -> Any:
    """The weighted sum of mean ratings, each rating on even levels from 0 to 1, for m tokens: shape (m, 1)."""
    import torch

    states = _states(network, ids, mask, rows, columns)
    weights = network.gating_layer["network"](states)
    if getattr(network.config, "softmax", False):
        weights = (weights / getattr(network.config, "temperature", 1.0)).softmax(-1)
    chances = network.regression_layer["network"](states).view(*weights.shape, -1).softmax(-1)
    levels = torch.linspace(0, 1, chances.shape[-1], device=states.device)
    return (weights * (chances @ levels)).sum(-1, keepdim=True)


def _backbone(config: Any) -> Any:
    from transformers import MODEL_MAPPING

    return MODEL_MAPPING[type(config)](config)


def _states(network: Any, ids: Any, mask: Any, rows: Sequence[int], columns: Sequence[int]) -> Any:
    states = network.model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
    return states[rows, columns].float()


def _with_separate_files(network: Any, place: Path, report: Mapping[str, Any]) -> dict[str, Any]:
    """Read the parts that were published beside the network's own files, which alone transformers reads."""
    from safetensors.torch import load_file

    index = place / "model.safetensors.index.json"
    whole = json.loads(index.read_text("utf-8"))["weight_map"].values() if index.exists() else ["model.safetensors"]
    found: dict[str, Any] = {}
    for path in sorted(place.glob("*.safetensors")):
        found |= {} if path.name in whole else load_file(path)
    unknown = network.load_state_dict(found, strict=False).unexpected_keys
    missing = [name for name in report["missing_keys"] if name not in found]
    return {**report, "missing_keys": missing, "unexpected_keys": [*report["unexpected_keys"], *unknown]}


def shapes(place: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of the weights in the safetensors files of a folder, by name."""
    from safetensors import safe_open

    found: dict[str, tuple[int, ...]] = {}
    for path in sorted(place.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            found |= {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    return found
