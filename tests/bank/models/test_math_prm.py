"""Probabilities of steps against the head written out, one chat at a time, and the cutting into steps."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import reward_loop
from metricsmith.bank.models.math_prm import SYSTEM
from metricsmith.bank.weighted import model_family
from metricsmith.errors import NeedsError
from metricsmith.records import Status
from model_cases import tiny_family

pytestmark = pytest.mark.extras
QUESTION = "How much is 7 + 5, and twice that?"
THREE = "Let x be 3.\n\nThen x * x - 1 equals 8.\n\nSo the answer is 12."


def probabilities(path, question: str, steps: list[str]) -> list[float]:
    messages = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": question},
        {"role": "assistant", "content": "<extra_0>".join(steps) + "<extra_0>"},
    ]
    tensors = reward_loop.weights(path)
    ids, states = reward_loop.last_states(path, messages)
    found = []
    for place in [place for place, token in enumerate(ids) if token == _mark(path)]:
        hidden = reward_loop.linear(tensors, "score.0", states[place]).clamp(min=0)
        found.append(reward_loop.linear(tensors, "score.2", hidden).softmax(0)[1].item())
    assert len(found) == len(steps)
    return found


def _mark(path) -> int:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(path).encode("<extra_0>")[0]


def raws(family, output: str) -> list[float | None]:
    """The lowest, highest and mean step of one solution, scored in a batch with a longer and a shorter one."""
    rows = [(THREE + " Yes." * 20, QUESTION), (output, QUESTION), ("No.", "Is it?")]
    return [column[1].raw for column in reward_loop.judged(family, rows)]


@pytest.mark.parametrize(
    ("output", "steps"),
    [
        (THREE, ["Let x be 3.", "Then x * x - 1 equals 8.", "So the answer is 12."]),
        ("One line.\nAnother line of the step.", ["One line.\nAnother line of the step."]),
        ("\n\nA gap.\n \t\n\n\nThe end.\n\n", ["A gap.", "The end."]),
    ],
)
def test_steps_are_cut_at_blank_lines_and_read_one_by_one(output, steps, tiny, tiny_folder):
    expected = probabilities(tiny("qwen2_prm"), QUESTION, steps)
    found = raws(tiny_family("math_prm", tiny, tiny_folder), output)
    assert found == pytest.approx([min(expected), max(expected), np.mean(expected)], abs=1e-5)


@pytest.mark.parametrize(
    ("output", "question", "reason"),
    [
        ("\n \n\n", QUESTION, "the output has no step"),
        (THREE, "\t", "the input is empty"),
        ("Step <extra_0> one.", QUESTION, "a text contains <extra_0>, the mark of a step"),
        (THREE, "What is <extra_0>?", "a text contains <extra_0>, the mark of a step"),
    ],
)
def test_undefined_solutions_are_skipped_with_their_reason(output, question, reason, tiny, tiny_folder):
    for column in reward_loop.judged(tiny_family("math_prm", tiny, tiny_folder), [(output, question)]):
        assert (column[0].status, column[0].error) == (Status.SKIPPED, reason)


def test_a_probability_that_underflows_to_0_stays_a_step(tiny, tmp_path):
    from safetensors.torch import save_file

    path = shutil.copytree(tiny("qwen2_prm"), tmp_path / "sure")
    tensors = reward_loop.weights(path)
    tensors["score.2.bias"][0] += 2000.0
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})
    assert raws(model_family("math_prm", path=str(path), device="cpu"), THREE) == [0.0, 0.0, 0.0]


def test_a_tokenizer_without_the_mark_is_refused(tiny, tmp_path):
    path = shutil.copytree(tiny("qwen2_prm"), tmp_path / "unmarked")
    for file in path.glob("*token*"):
        file.write_text(file.read_text("utf-8").replace("<extra_0>", "<other_0>"), "utf-8")
    with pytest.raises(NeedsError, match=r"<extra_0> is . tokens of .* and must be one"):
        raws(model_family("math_prm", path=str(path), device="cpu"), THREE)


def test_a_head_without_steps_of_two_labels_is_refused(tiny, tmp_path):
    from safetensors.torch import save_file

    path = shutil.copytree(tiny("qwen2_prm"), tmp_path / "three")
    tensors = reward_loop.weights(path)
    for part in ("weight", "bias"):
        tensors[f"score.2.{part}"] = tensors[f"score.2.{part}"].repeat_interleave(2, 0)[:3].clone()
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(NeedsError, match="size mismatch"):
        raws(model_family("math_prm", path=str(path), device="cpu"), THREE)


def test_the_language_models_own_head_may_lie_beside(tiny, tmp_path):
    from safetensors.torch import save_file

    path = shutil.copytree(tiny("qwen2_prm"), tmp_path / "with_head")
    tensors = reward_loop.weights(path)
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})
    assert None not in raws(model_family("math_prm", path=str(path), device="cpu"), THREE)
