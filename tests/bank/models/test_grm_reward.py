"""GRM's reward against transformers' own classifier, one chat at a time."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pytest

import reward_loop
import tiny_hostile
from metricsmith.bank.models.engine.loader import network
from metricsmith.bank.models.engine.reward import read_chats
from metricsmith.bank.weighted import model_family
from metricsmith.errors import NeedsError
from metricsmith.records import Status
from model_cases import tiny_family

pytestmark = pytest.mark.extras


def test_a_batch_equals_the_classifier_one_chat_at_a_time(tiny, tiny_folder):
    import torch
    from transformers import AutoTokenizer, LlamaForSequenceClassification

    path = tiny("llama_reward")
    module = LlamaForSequenceClassification.from_pretrained(path).eval()
    tokenizer = AutoTokenizer.from_pretrained(path)
    expected = []
    for pair in reward_loop.PAIRS:
        ids = tokenizer.apply_chat_template(reward_loop.question_and_answer(*pair), tokenize=True)
        module.config.pad_token_id = None  # one row without padding: the last token is the last
        with torch.inference_mode():
            expected.append(module(torch.tensor([ids])).logits.item())
    found = reward_loop.judged(tiny_family("grm_reward", tiny, tiny_folder), reward_loop.PAIRS)[0]
    assert [one.raw for one in found] == pytest.approx(expected, abs=1e-5)
    assert np.ptp(expected) > 0.1


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_tokenizers_padding_side_does_not_count(side, tiny, tiny_folder):
    family = tiny_family("grm_reward", tiny, tiny_folder)
    before = [one.raw for one in reward_loop.judged(family, reward_loop.PAIRS)[0]]
    tokenizer = network(family.model).tokenizer
    kept = tokenizer.padding_side
    tokenizer.padding_side = side
    try:
        assert [one.raw for one in reward_loop.judged(family, reward_loop.PAIRS)[0]] == before
    finally:
        tokenizer.padding_side = kept


@pytest.mark.parametrize(
    ("output", "question", "reason"),
    [
        (" \n", "How much is 7 + 5?", "the output is empty"),
        ("It is 12.", " ", "the input is empty"),
        ("It is 12. " * 200, "How much?", r"the chat has \d+ tokens, the network reads 512"),
    ],
)
def test_undefined_rewards_are_skipped_with_their_reason(output, question, reason, tiny, tiny_folder):
    family = tiny_family("grm_reward", tiny, tiny_folder)
    found = reward_loop.judged(family, [(output, question), reward_loop.PAIRS[0]])[0]
    assert found[0].status is Status.SKIPPED
    assert re.fullmatch(reason, found[0].error)
    assert found[1].status is Status.OK


def _copied(tiny, tmp_path, change, **chosen):
    path = shutil.copytree(tiny("llama_reward"), tmp_path / "copy")
    if "start_marks" not in chosen:
        (path / "chat_template.jinja").unlink(missing_ok=True)
    settings = json.loads((path / "tokenizer_config.json").read_text("utf-8"))
    change(settings)
    (path / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    return model_family("grm_reward", path=str(path), device="cpu", settings=chosen)


def test_a_checkpoint_without_a_chat_template_is_refused(tiny, tmp_path):
    family = _copied(tiny, tmp_path, lambda settings: settings.pop("chat_template", None))
    with pytest.raises(NeedsError, match="has no chat template"):
        reward_loop.judged(family, reward_loop.PAIRS)


@pytest.mark.parametrize(
    "day", ["{{ date_string if date_string is defined else '??' }}", "{{ strftime_now('%d %b %Y') }}"]
)
def test_a_template_with_todays_date_gets_the_same_one_every_day(day, tiny, tmp_path):
    def dated(text: str):
        template = f"{text}{{% for message in messages %}} {{{{ message['content'] }}}}{{% endfor %}}"
        return lambda settings: settings.update(chat_template=template)

    fixed = _copied(tiny, tmp_path / "fixed", dated("26 Jul 2024"))
    today = _copied(tiny, tmp_path / "today", dated(day))
    scores = [[one.raw for one in reward_loop.judged(family, reward_loop.PAIRS)[0]] for family in (fixed, today)]
    assert scores[0] == scores[1]


def test_a_chat_begins_with_one_start_mark(tiny, tiny_folder, monkeypatch):
    from metricsmith.bank.models.engine import reward

    family = tiny_family("grm_reward", tiny, tiny_folder)
    seen = []
    kept = reward.batched
    monkeypatch.setattr(reward, "batched", lambda spec, items, *rest: seen.extend(items) or kept(spec, items, *rest))
    read_chats(family.model, [reward_loop.question_and_answer(*reward_loop.PAIRS[0])])
    start = network(family.model).tokenizer.bos_token_id
    assert seen[0][0] == start
    assert seen[0].count(start) == 1


def test_shards_are_read_like_one_file(tiny, tiny_folder, tmp_path):
    from transformers import LlamaForSequenceClassification

    path = shutil.copytree(tiny("llama_reward"), tmp_path / "shards")
    (path / "model.safetensors").unlink()
    LlamaForSequenceClassification.from_pretrained(tiny("llama_reward")).save_pretrained(path, max_shard_size="60KB")
    assert len(list(path.glob("*.safetensors"))) > 1
    family = model_family("grm_reward", path=str(path), device="cpu")
    whole = tiny_family("grm_reward", tiny, tiny_folder)
    assert reward_loop.judged(family, reward_loop.PAIRS) == reward_loop.judged(whole, reward_loop.PAIRS)


def test_half_precision_does_not_depend_on_the_batch(tiny, tiny_folder):
    family = tiny_family("grm_reward", tiny, tiny_folder, dtype="bfloat16")
    together = [one.raw for one in reward_loop.judged(family, reward_loop.PAIRS)[0]]
    assert together == [reward_loop.judged(family, [pair])[0][0].raw for pair in reward_loop.PAIRS]
    import torch

    module = network(family.model).module
    assert (module.model.norm.weight.dtype, module.score.weight.dtype) == (torch.bfloat16, torch.float32)


@pytest.mark.parametrize("fault", ["missing_head", "extra_keys", "wrong_architecture", "truncated", "pickle_weights"])
@pytest.mark.parametrize(
    ("name", "checkpoint"),
    [
        ("grm_reward", "llama_reward"),
        ("inform_reward", "llama_inform"),
        ("ldl_reward", "gemma2_ldl"),
        ("math_prm", "qwen2_prm"),
    ],
)
def test_a_broken_checkpoint_is_refused(name, checkpoint, fault, tiny_folder):
    said = {
        "missing_head": "lacks",
        "extra_keys": "has beyond its head 1 weights, such as unknown_head",
        "wrong_architecture": "takes",
        "truncated": "cannot be read",
        "pickle_weights": "could run code",
    }[fault]
    path = tiny_hostile.hostile(checkpoint, tiny_folder, fault)
    with pytest.raises(NeedsError, match=said):
        reward_loop.judged(model_family(name, path=str(path), device="cpu"), reward_loop.PAIRS)


def test_a_checkpoint_of_the_other_llama_is_refused(tiny):
    for name, checkpoint in (("grm_reward", "llama_inform"), ("inform_reward", "llama_reward")):
        with pytest.raises(NeedsError, match="lacks"):
            reward_loop.judged(model_family(name, path=str(tiny(checkpoint)), device="cpu"), reward_loop.PAIRS)


@pytest.mark.parametrize(("marks", "count"), [("one", 1), ("two", 2)])
def test_the_second_start_mark_of_the_models_card_is_an_option(marks, count, tiny, tmp_path, monkeypatch):
    from tokenizers.processors import TemplateProcessing

    from metricsmith.bank.models.engine import reward

    family = _copied(tiny, tmp_path, lambda settings: None, start_marks=marks)
    tokenizer = network(family.model).tokenizer
    start = tokenizer.bos_token_id
    mark = tokenizer.bos_token
    tokenizer._tokenizer.post_processor = TemplateProcessing(  # as that of Llama 3.2 has it
        single=f"{mark} $A", special_tokens=[(mark, start)]
    )
    seen, kept = [], reward.batched
    monkeypatch.setattr(reward, "batched", lambda spec, items, *rest: seen.extend(items) or kept(spec, items, *rest))
    assert reward_loop.judged(family, reward_loop.PAIRS[:1])[0][0].ok
    assert seen[0].count(start) == count
    assert "start_marks='two'" in " ".join(family.card.limits)
