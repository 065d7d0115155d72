"""The network of LENS and LENS-SALSA: RoBERTa, a learned mix of all its layers, and a regression on top."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from metricsmith.bank.models.engine.own import Shapes, perceptron

__all__ = ["mixed_layers", "regression_head"]


def regression_head(features: int) -> Callable[[Any, Shapes], dict[str, Any]]:
    """``encoder.model``, ``layerwise_attention`` and ``estimator.ff``, which reads so many vectors side by side.

    One checkpoint holds the published state under its own names, beside RoBERTa's config and tokenizer. Source:
    lens-metric 0.2.0, models/base.py, models/unified_metric.py, modules/layerwise_attention.py, modules/feedforward.py.
    """

    def parts(config: Any, shapes: Shapes) -> dict[str, Any]:
        import torch
        from torch import nn
        from transformers import RobertaModel

        # LENS-SALSA was trained with two marks beyond RoBERTa's words
        config.vocab_size = shapes.get("encoder.model.embeddings.word_embeddings.weight", (config.vocab_size,))[0]
        mix = nn.Module()
        mix.gamma = nn.Parameter(torch.ones(1))
        mix.scalar_parameters = nn.ParameterList([torch.zeros(1) for _ in range(config.num_hidden_layers + 1)])
        estimator = perceptron(shapes, "estimator.ff", (0, 3), features * config.hidden_size, nn.Tanh, 1)
        return {
            "encoder": nn.ModuleDict({"model": RobertaModel(config, add_pooling_layer=False)}),
            "layerwise_attention": mix,
            "estimator": nn.ModuleDict({"ff": estimator}),
        }

    return parts


def mixed_layers(network: Any, ids: Any, mask: Any, normed: bool = True) -> Any:
    """The sum of the embeddings and all layers, weighed by a softmax of learned numbers: shape (b, t, d).

    `normed` brings each layer, over a text's tokens and dimensions at once, to mean 0 and variance 1 before.
    """
    import torch

    layers = network.encoder["model"](input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
    weights = torch.cat(list(network.layerwise_attention.scalar_parameters)).softmax(0)
    seen = mask[:, :, None].float()
    count = seen.sum((1, 2), keepdim=True) * layers[0].shape[-1]
    total = torch.zeros_like(layers[0], dtype=torch.float32)
    for weight, layer in zip(weights, (layer.float() for layer in layers), strict=True):
        if normed:
            centred = layer - (layer * seen).sum((1, 2), keepdim=True) / count
            layer = centred / (((centred * seen) ** 2).sum((1, 2), keepdim=True) / count + 1e-12).sqrt()
        total += weight * layer
    return network.layerwise_attention.gamma * total
