"""LDL's reward against its formula written out, one chat at a time."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import reward_loop
from metricsmith.bank.weighted import model_family
from metricsmith.errors import NeedsError
from model_cases import tiny_family

pytestmark = pytest.mark.extras


def written_out(path, pair, *, gate_softmax: bool) -> float:
    from torch.nn.functional import leaky_relu

    tensors = reward_loop.weights(path)
    messages = reward_loop.question_and_answer(*pair)
    values = reward_loop.last_states(path, messages, attn_implementation="eager")[1][-1]
    found = {}
    for head, numbers in (("regression_layer", (0, 2, 4)), ("gating_layer", (0, 3, 6))):
        hidden = values
        for number in numbers:
            hidden = reward_loop.linear(tensors, f"{head}.network.{number}", hidden)
            hidden = hidden if number == numbers[-1] else leaky_relu(hidden, 0.01)
        found[head] = hidden
    weights = found["gating_layer"].softmax(0) if gate_softmax else found["gating_layer"]
    total = 0.0
    for quality, weight in enumerate(weights.tolist()):
        chances = found["regression_layer"][10 * quality : 10 * quality + 10].softmax(0).tolist()
        total += weight * sum(chance * level / 9 for level, chance in enumerate(chances))
    return total


def test_a_batch_equals_the_formula_one_chat_at_a_time(tiny, tiny_folder):
    expected = [written_out(tiny("gemma2_ldl"), pair, gate_softmax=True) for pair in reward_loop.PAIRS]
    found = reward_loop.judged(tiny_family("ldl_reward", tiny, tiny_folder), reward_loop.PAIRS)[0]
    assert [one.raw for one in found] == pytest.approx(expected, abs=1e-5)
    assert np.ptp(expected) > 0.02


def test_without_word_from_the_config_the_gate_is_taken_as_it_is(tiny, tmp_path):
    path = shutil.copytree(tiny("gemma2_ldl"), tmp_path / "raw_gate")
    config = json.loads((path / "config.json").read_text("utf-8"))
    del config["softmax"], config["num_objectives"]
    (path / "config.json").write_text(json.dumps(config), "utf-8")
    family = model_family("ldl_reward", path=str(path), device="cpu", settings={"dtype": "float32"})
    expected = [written_out(path, pair, gate_softmax=False) for pair in reward_loop.PAIRS]
    assert [one.raw for one in reward_loop.judged(family, reward_loop.PAIRS)[0]] == pytest.approx(expected, abs=1e-5)


def test_heads_beside_a_backbone_without_its_prefix_are_read_as_published(tiny, tmp_path):
    from safetensors.torch import load_file, save_file

    path = shutil.copytree(tiny("gemma2_ldl"), tmp_path / "in_parts")
    whole = load_file(path / "model.safetensors")
    for head in ("regression_layer", "gating_layer"):
        part = {name: whole.pop(name) for name in list(whole) if name.startswith(f"{head}.")}
        save_file(part, path / f"{head}.safetensors", metadata={"format": "pt"})
    bare = {name.removeprefix("model."): weights for name, weights in whole.items()}
    save_file(bare, path / "model.safetensors", metadata={"format": "pt"})
    families = [
        model_family("ldl_reward", path=str(place), device="cpu", settings={"dtype": "float32"})
        for place in (path, tiny("gemma2_ldl"))
    ]
    in_parts, together = ([one.raw for one in reward_loop.judged(one, reward_loop.PAIRS)[0]] for one in families)
    assert in_parts == pytest.approx(together, abs=1e-7)
    (path / "gating_layer.safetensors").unlink()
    with pytest.raises(NeedsError, match=r"gating_layer"):
        reward_loop.judged(families[0], reward_loop.PAIRS)


def test_levels_that_the_gate_cannot_share_are_refused(tiny, tmp_path):
    from safetensors.torch import save_file

    path = shutil.copytree(tiny("gemma2_ldl"), tmp_path / "odd")
    tensors = reward_loop.weights(path)
    for part in ("weight", "bias"):
        tensors[f"regression_layer.network.4.{part}"] = tensors[f"regression_layer.network.4.{part}"][:39].clone()
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(NeedsError, match="39 levels of ratings cannot be shared by 4 weights"):
        reward_loop.judged(model_family("ldl_reward", path=str(path), device="cpu"), reward_loop.PAIRS)
