"""INFORM's reward against its head written out as matrices, one chat at a time."""

from __future__ import annotations

import numpy as np
import pytest

import reward_loop
from metricsmith.bank.models.inform_reward import MODEL
from model_cases import tiny_family

pytestmark = pytest.mark.extras


def test_a_batch_equals_the_written_out_head_one_chat_at_a_time(tiny, tiny_folder):
    path = tiny("llama_inform")
    tensors = reward_loop.weights(path)
    expected = []
    for pair in reward_loop.PAIRS:
        state = reward_loop.last_states(path, reward_loop.question_and_answer(*pair))[1][-1]
        hidden = reward_loop.linear(tensors, "score.0", state).clamp(min=0)
        expected.append(reward_loop.linear(tensors, "score.2", hidden).item())
    found = reward_loop.judged(tiny_family("inform_reward", tiny, tiny_folder), reward_loop.PAIRS)[0]
    assert [one.raw for one in found] == pytest.approx(expected, abs=1e-5)
    assert np.ptp(expected) > 0.1


def test_half_precision_is_the_default_and_lies_near_full_precision(tiny, tiny_folder):
    assert MODEL.dtype == "bfloat16"
    raws = [
        [one.raw for one in reward_loop.judged(family, reward_loop.PAIRS)[0]]
        for family in (tiny_family("inform_reward", tiny, tiny_folder, dtype=d) for d in ("float32", "bfloat16"))
    ]
    assert np.abs(np.subtract(*raws)).max() < 0.1
    assert raws[0] != raws[1]
