"""The loader takes nothing from a folder on trust, and makes room only where it helps."""

from __future__ import annotations

import json
import math
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

import conformance
from metricsmith.bank.models.engine import loader
from metricsmith.bank.models.engine.loader import network
from metricsmith.bank.weighted import lacking, model_family
from metricsmith.errors import NeedsError
from metricsmith.records import Status

pytestmark = pytest.mark.extras
ROWS = conformance.rows_of("bertscore", 3)


@pytest.fixture
def changed(tiny, tmp_path):
    """A function from texts by file name, or changes of its JSON, to BERTScore on a checkpoint with these."""

    def make(file, change, checkpoint="roberta", metric="bertscore"):
        place = tmp_path / checkpoint
        if not place.exists():
            shutil.copytree(tiny(checkpoint), place)
        if isinstance(change, dict):
            change = json.dumps(json.loads((place / file).read_text("utf-8")) | change)
        (place / file).write_text(change, "utf-8")
        return conformance.on(metric, place)

    return make


CONFIGS = {
    "a list": ("[1, 2]", "no config.json that can be read"),
    "lists in lists": ("[" * 100_000 + "]" * 100_000, "no config.json that can be read"),
    "quantised": ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "cannot be read: "),
    "a width that is no number": ({"hidden_size": "wide"}, "cannot be read: TypeError"),
    "padding beyond the words": ({"pad_token_id": 10**9}, "cannot be read: AssertionError"),
    "attention of others": ({"_attn_implementation": "somebody/kernel"}, "names code at a hub"),
    "attention, the other key": ({"attn_implementation": "somebody/kernel"}, "names code at a hub"),
}


@pytest.mark.parametrize("fault", CONFIGS)
def test_a_config_that_leads_astray_ends_the_family_at_its_first_load(fault, changed, monkeypatch):
    change, said = CONFIGS[fault]
    loads, real = [], loader._load
    monkeypatch.setattr(loader, "_load", lambda *given: loads.append(given) or real(*given))
    with pytest.raises(NeedsError, match=said):
        conformance.numbers(changed("config.json", change).metrics(), ROWS)
    assert len(loads) == 1


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("tokenizer.json", "no JSON"),
        ("tokenizer_config.json", {"tokenizer_class": "os.system"}),
        ("tokenizer_config.json", {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.Own", "own.Own"]}}),
    ],
)
def test_a_tokenizer_that_cannot_be_read_or_brings_code_is_refused(file, change, changed):
    with pytest.raises(NeedsError, match="cannot be read"):
        conformance.numbers(changed(file, change).metrics(), ROWS)


@pytest.mark.parametrize("template", ["{{ ''.__class__.__mro__ }}", "{{ raise_exception('no') }}", "{% if"])
def test_a_chat_template_that_fails_or_leaves_its_sandbox_is_the_rows_error(template, changed):
    family = changed("chat_template.jinja", template, "llama_reward", "grm_reward")
    for judged in family.metrics()[0].judge_batch(conformance.rows_of("grm_reward", 2)):
        assert judged.status is Status.TRANSPORT
        assert "the chat template fails" in judged.error


def test_a_config_that_was_replaced_is_read_again(changed):
    family = changed("config.json", {"layer_norm_eps": 1e-5})
    before = network(family.model)
    assert network(family.model) is before
    changed("config.json", {"layer_norm_eps": 1e-2})
    assert network(family.model).module.config.layer_norm_eps == 1e-2


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_that_is_not_there_is_said_once_and_leaves_the_metric_out(device, tiny, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    family = model_family("bertscore", path=str(tiny("roberta")), device=device)
    said = f"bertscore: this machine has no {device}; device='auto' takes cpu"
    assert lacking(family) == said
    with pytest.raises(NeedsError, match=said):
        conformance.numbers(family.metrics(), ROWS)


def test_auto_takes_cuda_before_mps_before_the_processor(monkeypatch):
    import torch

    spec = model_family("bertscore").model
    for cuda, mps, device in ((True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda here=cuda: here)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda here=mps: here)
        assert loader.device_for(spec) == device


@pytest.mark.parametrize(("dtype", "bytes_each"), [("float32", 4), ("bfloat16", 2)])
def test_room_is_made_on_the_device_itself_and_for_the_size_in_memory(dtype, bytes_each, tiny, monkeypatch):
    spec = conformance.on("bertscore", tiny("roberta"), dtype=dtype).model
    loaded = {name: SimpleNamespace(device=name.split()[0]) for name in ("cuda a", "cpu b", "cpu c")}
    monkeypatch.setattr(loader, "_networks", loaded)
    needed = bytes_each * sum(map(math.prod, loader.shapes(spec.location()).values()))
    monkeypatch.setattr(loader, "free_memory", lambda _: needed - ("cpu b" in loaded))
    loader._make_room(spec, "cpu")
    assert list(loaded) == ["cuda a", "cpu c"]
    monkeypatch.setattr(loader, "free_memory", lambda _: needed - 1)
    with pytest.raises(NeedsError, match="free on cpu"):
        loader._make_room(spec, "cpu")
    assert list(loaded) == ["cuda a"]


def test_threads_that_cut_texts_differently_do_not_meet_in_the_tokenizer(tiny):
    loaded = network(conformance.on("bertscore", tiny("roberta")).model)
    wrong = []

    def encode(longest):
        options = {"truncation": True, "max_length": longest} if longest else {"verbose": False}
        for _ in range(40):
            try:
                lengths = {len(ids) == longest for ids in loaded.encoded(["word " * 3000] * 4, **options)["input_ids"]}
            except RuntimeError as problem:  # "Already borrowed"
                wrong.append(problem)
            else:
                wrong.extend(lengths - {bool(longest)})

    threads = [threading.Thread(target=encode, args=(longest,)) for longest in (20, 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_hash_is_taken_from_a_name_in_the_hubs_cache_alone(tiny, tmp_path, changed):
    sound = conformance.on("bertscore", tiny("roberta")).model
    family = changed("config.json", {})
    weights = tmp_path / "roberta" / "model.safetensors"
    named = tmp_path / "blobs" / sound.digest()
    named.parent.mkdir()
    named.write_bytes(weights.read_bytes() + b" ")
    weights.unlink()
    weights.symlink_to(named)
    assert family.model.digest() != sound.digest()


def test_numbers_leave_the_device_before_they_become_float64(monkeypatch):
    import torch

    from metricsmith.bank.models.engine.batching import finite

    order = []
    for name in ("cpu", "double"):
        real = getattr(torch.Tensor, name)
        monkeypatch.setattr(torch.Tensor, name, lambda self, name=name, real=real: order.append(name) or real(self))
    assert finite(torch.ones(2)).tolist() == [1.0, 1.0]
    assert order == ["cpu", "double"]


def test_a_layer_that_a_network_lacks_is_answered_with_those_it_has(tiny):
    with pytest.raises(NeedsError, match=r"a layer from 1 to 2, settings=\{'bertscore': \{'layer': 2\}\}"):
        network(conformance.on("bertscore", tiny("roberta"), layer=17).model)


@pytest.mark.parametrize("content", ["", "<html>not found</html>", "cut"])
def test_a_file_that_is_no_safetensors_is_called_that(content, changed, tiny):
    family = changed("config.json", {})
    weights = Path(family.model.path) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-500] if content == "cut" else content.encode())
    with pytest.raises(NeedsError, match=r"a \*.safetensors is cut off or is none .*: fetch it again"):
        network(family.model)


def test_a_folder_without_config_or_tokenizer_and_a_file_for_a_folder_are_told_apart(changed):
    family = changed("config.json", {})
    place = Path(family.model.path)
    for name in ("tokenizer.json", "vocab.json"):
        (place / name).unlink()
    with pytest.raises(NeedsError, match=r"has no tokenizer, tokenizer\.json or vocab\.json or vocab\.txt or "):
        network(family.model)
    (place / "config.json").unlink()
    with pytest.raises(NeedsError, match=r"no config\.json that can be read: it is missing"):
        network(family.model)
    file = conformance.on("bertscore", place / "model.safetensors")
    assert (
        lacking(file) == f"{file.model.path} is a file: name the folder with config.json, *.safetensors and a tokenizer"
    )
