"""The tiny checkpoints are what they say: real tokenizers, weights that load, scores that differ between texts."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tiny_fasttext
import tiny_hostile
import tiny_models
import tiny_texts

pytestmark = pytest.mark.extras
TEXTS = [
    "Yes.",
    "The dog slept under the table.",
    "Der Hund schläft im Garten, 24 Stunden lang!",
    "她在图书馆学习中文。",
]
LOADED_AS = {
    "bert_masked": "AutoModelForMaskedLM",
    "modernbert": "AutoModelForMaskedLM",
    "bert_qa": "AutoModelForQuestionAnswering",
    "bert_factcc": "AutoModelForSequenceClassification",
    "roberta_sentiment": "AutoModelForSequenceClassification",
    "roberta_toxicity": "AutoModelForSequenceClassification",
    "bart": "AutoModelForSeq2SeqLM",
    "t5_unieval": "AutoModelForSeq2SeqLM",
    "gpt2": "AutoModelForCausalLM",
    "llama_reward": "AutoModelForSequenceClassification",
}
OWN_HEAD = {"llama_inform", "gemma2_ldl", "qwen2_prm"}
UNDER_OWN_NAMES = {"bleurt", "lens", "lens_salsa"}  # no class of transformers finds the weights


def assert_they_differ(scores: list[float]) -> None:
    """Demand a range a thousand times what parity allows (1e-5), and no two texts within a hundred times of it."""
    assert np.isfinite(scores).all()
    assert np.ptp(scores) > 1e-2
    assert np.diff(np.sort(scores)).min() > 1e-3


@pytest.mark.parametrize("name", sorted(tiny_models.BUILDERS.keys() - UNDER_OWN_NAMES))
def test_each_checkpoint_loads_by_its_path_and_tells_texts_apart(name, tiny: Callable[[str], Path]):
    import torch
    import transformers

    path = tiny(name)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)
    assert tokenizer.model_max_length == tiny_models.POSITIONS[name]
    loader = getattr(transformers, LOADED_AS.get(name, "AutoModel"))
    model, said = loader.from_pretrained(path, local_files_only=True, output_loading_info=True)
    assert not said["missing_keys"]
    assert bool(said["unexpected_keys"]) == (name in OWN_HEAD)
    scores = []
    for text in TEXTS:
        tokens = tokenizer(text, return_tensors="pt")
        if model.config.is_encoder_decoder:
            tokens["decoder_input_ids"] = torch.tensor([[model.config.decoder_start_token_id]])
        with torch.inference_mode():
            scores.append(model.eval()(**tokens)[0].flatten()[-1].item())
    assert_they_differ(scores)


def test_bleurt_loads_by_the_class_of_its_port(tiny: Callable[[str], Path]):
    pytest.importorskip("bleurt_pytorch")
    import torch
    from bleurt_pytorch import BleurtForSequenceClassification
    from bleurt_pytorch.bleurt.tokenization_bleurt_sp import BleurtSPTokenizer

    model = BleurtForSequenceClassification.from_pretrained(tiny("bleurt"), local_files_only=True).eval()
    tokenizer = BleurtSPTokenizer.from_pretrained(tiny("bleurt"), local_files_only=True)
    with torch.inference_mode():
        scores = [model(**tokenizer(TEXTS[1], text, return_tensors="pt")).logits.item() for text in TEXTS]
    assert_they_differ(scores)


def test_another_process_builds_the_same_bytes(tiny: Callable[[str], Path], tmp_path: Path):
    names = ["bert_masked", "t5_unieval", "gemma2_ldl"]
    code = (
        "import sys, pathlib, tiny_models\nfor name in sys.argv[2:]: tiny_models.build(name, pathlib.Path(sys.argv[1]))"
    )
    support = Path(tiny_models.__file__).parent
    subprocess.run([sys.executable, "-c", code, str(tmp_path), *names], cwd=support, check=True)
    for name in names:
        for file in tiny(name).iterdir():
            assert file.read_bytes() == (tmp_path / name / file.name).read_bytes(), file


def test_yes_and_no_are_one_token_each_and_the_hostile_copy_confuses_them(tiny, tiny_folder: Path):
    from transformers import AutoTokenizer

    sound, broken = tiny("t5_unieval"), tiny_hostile.hostile("t5_unieval", tiny_folder, "yes_is_no")
    yes, no = (AutoTokenizer.from_pretrained(sound)(word).input_ids for word in ("Yes", "No"))
    assert (len(yes), len(no)) == (2, 2)
    assert yes[0] != no[0]
    yes, no = (AutoTokenizer.from_pretrained(broken)(word).input_ids for word in ("Yes", "No"))
    assert yes[0] == no[0]


@pytest.mark.parametrize("name", ["llama_reward", "llama_inform"])
def test_the_pad_token_occurs_inside_a_chat(name, tiny):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny(name))
    chat = [{"role": "user", "content": "How much is 7 + 5?"}, {"role": "assistant", "content": "It is 12."}]
    tokens = tokenizer.apply_chat_template(chat)
    assert tokens.count(tokenizer.pad_token_id) == 2
    assert tokens[0] == tokenizer.bos_token_id


def test_a_step_mark_is_one_token(tiny):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny("qwen2_prm"))
    assert len(tokenizer.encode("<extra_0>")) == 1
    assert tokenizer("One.<extra_0>Two.<extra_0>").input_ids.count(tokenizer.encode("<extra_0>")[0]) == 2


@pytest.mark.parametrize("fault", sorted(tiny_hostile.FAULTS.keys() - {"yes_is_no"}))
@pytest.mark.parametrize("name", sorted(tiny_models.BUILDERS))
def test_every_fault_can_be_made_of_every_checkpoint(name, fault, tiny_folder: Path):
    from safetensors import SafetensorError, safe_open

    if name == "bleurt" and importlib.util.find_spec("bleurt_pytorch") is None:
        pytest.skip("bleurt-pytorch, the builder of the tiny BLEURT, is not installed")
    copy = tiny_hostile.hostile(name, tiny_folder, fault)
    sound = tiny_models.build(name, tiny_folder)
    if fault == "pickle_weights":
        assert {file.suffix for file in copy.iterdir()}.isdisjoint({".safetensors"})
        return
    if fault == "truncated":
        with pytest.raises(SafetensorError):
            safe_open(copy / "model.safetensors", "pt")
        return
    with safe_open(copy / "model.safetensors", "pt") as broken, safe_open(sound / "model.safetensors", "pt") as whole:
        lost, added = set(whole.keys()) - set(broken.keys()), set(broken.keys()) - set(whole.keys())
    kinds = [json.loads((path / "config.json").read_text("utf-8"))["model_type"] for path in (copy, sound)]
    assert (bool(lost), bool(added), kinds[0] != kinds[1]) == {
        "missing_head": (True, False, False),
        "extra_keys": (False, True, False),
        "wrong_architecture": (True, True, True),
    }[fault]


def test_the_fasttext_file_is_read_by_fasttext(tmp_path: Path):
    fasttext = pytest.importorskip("fasttext")
    labels = ["__label__toxic", "__label__fine"]
    model = fasttext.load_model(str(tiny_fasttext.fasttext_bin(tmp_path, labels)))
    likely = []
    for text in tiny_texts.sentences(20):
        told = dict(zip(*model.predict(text, k=-1), strict=True))
        assert sorted(told) == sorted(labels)
        assert sum(told.values()) == pytest.approx(1, abs=1e-4)
        likely.append(told["__label__toxic"])
    assert min(likely) < 0.4
    assert max(likely) > 0.6


def test_the_texts_differ_and_so_do_their_lengths():
    texts = tiny_texts.sentences(180)
    assert len(set(texts)) == 180
    pairs = tiny_texts.pairs_of_texts(30)
    outputs, references = ([len(pair[side]) for pair in pairs] for side in (0, 1))
    assert outputs == sorted(outputs)
    assert references[0] == max(references)
