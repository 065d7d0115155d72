"""LENS-SALSA against its formula written out, one pair at a time."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import reward_loop
from metricsmith.bank.weighted import model_family
from metricsmith.records import Status
from model_cases import tiny_family

pytestmark = pytest.mark.extras
PAIRS = [
    ("No.", "The committee rejected the plan by 9 votes to 4."),
    ("Light is very fast, and very, very bright.", "Light is FAST."),
    ("Yes. " * 20, "The train to Lisbon leaves at 17:45 from platform 6."),
]


def written_out(path, output: str, source: str) -> float:
    import torch
    from transformers import AutoTokenizer, RobertaConfig, RobertaModel

    tensors = reward_loop.weights(path)
    config = RobertaConfig.from_pretrained(
        path, vocab_size=len(tensors["encoder.model.embeddings.word_embeddings.weight"])
    )
    module = RobertaModel(config, add_pooling_layer=False).eval()
    prefix = "encoder.model."
    module.load_state_dict({k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)})
    tokenizer = AutoTokenizer.from_pretrained(path)
    first, second = (tokenizer.encode(text.lower(), add_special_tokens=False)[:60] for text in (output, source))
    ids = [0, *first, 2, 2, *second, 2][:64]
    with torch.inference_mode():
        layers = module(torch.tensor([ids]), output_hidden_states=True).hidden_states
    shares = torch.cat([tensors[f"layerwise_attention.scalar_parameters.{n}"] for n in range(3)]).softmax(0)
    mixed = 0
    for share, layer in zip(shares, layers, strict=True):
        mixed = mixed + share * (layer[0] - layer[0].mean())[0] / layer[0].var(correction=0).sqrt()
    hidden = reward_loop.linear(tensors, "estimator.ff.0", tensors["layerwise_attention.gamma"] * mixed).tanh()
    return 100 * reward_loop.linear(tensors, "estimator.ff.3", hidden).item()


def raws(family) -> list[float | None]:
    return [one.raw for one in reward_loop.judged(family, PAIRS)[0]]


def test_a_batch_equals_the_formula_with_the_output_first(tiny, tiny_folder):
    expected = [written_out(tiny("lens_salsa"), *pair) for pair in PAIRS]
    assert raws(tiny_family("lens_salsa", tiny, tiny_folder)) == pytest.approx(expected, rel=1e-6, abs=1e-4)
    swapped = [written_out(tiny("lens_salsa"), *reversed(pair)) for pair in PAIRS]
    assert np.abs(np.subtract(expected, swapped)).min() > 0.1


def test_a_table_of_words_longer_than_the_configs_is_read(tiny, tmp_path):
    import torch
    from safetensors.torch import save_file

    path = shutil.copytree(tiny("lens_salsa"), tmp_path / "longer")
    tensors, name = reward_loop.weights(path), "encoder.model.embeddings.word_embeddings.weight"
    tensors[name] = torch.cat([tensors[name], torch.ones(2, tensors[name].shape[1])])
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})
    longer = model_family("lens_salsa", path=str(path), device="cpu")
    assert raws(longer) == pytest.approx([written_out(path, *pair) for pair in PAIRS], rel=1e-6, abs=1e-4)


@pytest.mark.parametrize(
    ("pair", "reason"),
    [((" ", "A complex text."), "the output is empty"), (("Simple.", "\n"), "the input is empty")],
)
def test_undefined_pairs_are_skipped_with_their_reason(pair, reason, tiny, tiny_folder):
    found = reward_loop.judged(tiny_family("lens_salsa", tiny, tiny_folder), [pair])[0][0]
    assert (found.status, found.error) == (Status.SKIPPED, reason)
