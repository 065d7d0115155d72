"""Adapters lie on every linear layer of a copy, and the loaded network never notices."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import tiny_texts
from metricsmith.bank.models.engine import adapter, loader
from metricsmith.bank.models.engine.adapter import adapted, training, with_weights
from metricsmith.bank.models.engine.encoder import embedded
from metricsmith.bank.models.engine.loader import network
from metricsmith.bank.models.spec import ModelSpec

pytestmark = pytest.mark.extras
TEXTS = tiny_texts.sentences(6)
WHOLE = {
    "modernbert": {"classifier"},
    "bert_masked": {"classifier", "bert.pooler.dense"},
    "mbert": {"classifier"},
    "bert_factcc": {"classifier"},
    "roberta": {"classifier.dense", "classifier.out_proj"},
    "distilbert": {"classifier", "pre_classifier"},
}
"""The layers that are learned whole: those that the checkpoint has not, and the last."""


@pytest.fixture
def loaded(tiny):
    """A function from a checkpoint's name to the network that is to be trained."""

    def load(name: str, head: str = "regressor"):
        return network(ModelSpec(name=name, id="made/here", head=head, path=str(tiny(name)), device="cpu"))

    return load


def linear_layers(module) -> set[str]:
    from torch.nn import Linear

    return {name for name, part in module.named_modules() if isinstance(part, Linear)}


@pytest.mark.parametrize("name", WHOLE)
def test_all_linear_layers_are_adapted_or_learned_whole(name, loaded):
    with training(loaded(name).device, 0):
        _, learned = adapted(loaded(name), 16)
    halves = [
        {one.removesuffix(f".{half}.weight") for one in learned if one.endswith(f".{half}.weight")}
        for half in ("lora_A", "lora_B")
    ]
    whole = {one.rpartition(".")[0] for one in learned if ".lora_" not in one}
    assert halves[0] == halves[1]
    assert whole == WHOLE[name]
    assert halves[0] == linear_layers(loaded(name).module) - whole
    assert {weight.shape[0] for one, weight in learned.items() if ".lora_A." in one} == {16}
    assert all(weight.requires_grad for weight in learned.values())


def test_of_modernbert_with_five_layers_21_of_21_are_adapted(loaded):
    with training(loaded("modernbert").device, 0):
        _, learned = adapted(loaded("modernbert"), 16)
    names = [name.removesuffix(".lora_A.weight") for name in learned if name.endswith(".lora_A.weight")]
    assert len(names) == 21
    assert {name.rpartition(".")[2] for name in names} == {"Wqkv", "Wo", "Wi", "dense"}


def test_the_copy_shares_the_frozen_weights_and_nothing_that_is_learned(loaded):
    base = dict(loaded("modernbert").module.named_parameters())
    with training(loaded("modernbert").device, 0):
        module, learned = adapted(loaded("modernbert"), 4)
    places = {weight.data_ptr() for weight in base.values()}
    frozen = {name: weight for name, weight in module.named_parameters() if not weight.requires_grad}
    assert len(frozen) == len(base) - 2  # all but the classifier's two
    assert {weight.data_ptr() for weight in frozen.values()} < places
    assert not {weight.data_ptr() for weight in learned.values()} & places
    assert all(weight.requires_grad for weight in base.values())  # as transformers loads them


@pytest.mark.parametrize("name", ["modernbert", "bert_masked"])
def test_training_and_predicting_leave_the_embeddings_of_others_as_they_are(name, loaded, tiny):
    from metricsmith.bank.models import lora
    from metricsmith.bank.models.trained import RatedTexts

    spec = ModelSpec(name=name, id="made/here", head="encoder", path=str(tiny(name)), device="cpu")
    before = [one.vectors for one in embedded(spec, TEXTS)]
    parts = [type(part) for part in network(spec).module.modules()]
    settings = {name: one.default for name, one in lora.SETTINGS.items()} | {"steps": 3, "rate": 1e-2, "warm_up": 0}
    rows = RatedTexts(TEXTS, np.linspace(-1.5, 1.5, 6), list("aabbcc"))
    weights = lora.train(rows, spec, settings, seed=0)
    other = lora.train(rows, spec, settings, seed=1)
    numbers = [lora.predict(TEXTS, spec, one, settings) for one in (weights, other, weights)]
    assert np.array_equal(numbers[0], numbers[2])
    assert np.abs(numbers[0] - numbers[1]).max() > 1e-3
    assert all(np.array_equal(one, two.vectors) for one, two in zip(before, embedded(spec, TEXTS), strict=True))
    assert [type(part) for part in network(spec).module.modules()] == parts


def test_a_network_that_was_loaded_in_inference_mode_can_be_trained(loaded):
    import torch

    loader.unload()
    with torch.inference_mode():
        base = loaded("bert_masked")
    with training(base.device, 0):
        module, learned = adapted(base, 4)
        module(input_ids=torch.tensor([[2, 7, 3]])).logits.sum().backward()
    assert any(weight.grad is not None and weight.grad.abs().max() > 0 for weight in learned.values())


def test_the_random_numbers_of_a_new_layer_are_not_the_callers(tiny, loaded):
    import torch

    loader.unload()
    state = torch.get_rng_state()
    loaded("bert_masked")
    assert torch.equal(torch.get_rng_state(), state)


def test_copies_are_remembered_a_few_at_a_time_and_go_with_their_network(loaded, monkeypatch):
    monkeypatch.setattr(adapter, "KEPT", 2)
    base = loaded("mbert")
    with training(base.device, 0):
        _, learned = adapted(base, 4)
    sets = [{name: weight.detach().numpy() for name, weight in learned.items()} for _ in range(3)]
    copies = [with_weights(base, one) for one in sets]
    assert with_weights(base, sets[2]) is copies[2]
    assert with_weights(base, sets[1]) is copies[1]
    assert with_weights(base, sets[0]) is not copies[0]
    assert len(adapter._copies[base]) == 2
    loader.unload()
    del base
    gc.collect()
    assert not any(str(key.key[0]).endswith("mbert") for key in adapter._copies)


def test_a_loaded_copy_holds_the_very_weights(loaded):
    base = loaded("distilbert")
    with training(base.device, 5):
        _, learned = adapted(base, 4)
    weights = {name: np.full(weight.shape, 0.25, np.float32) for name, weight in learned.items()}
    module = with_weights(base, weights)
    held = {name.replace(".default.", "."): weight for name, weight in module.named_parameters()}
    assert all(held[name].eq(0.25).all() for name in weights)
    assert not any(weight.is_meta for weight in held.values())
    assert not module.training
