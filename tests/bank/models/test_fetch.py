"""Fetching weights from a hub on the loopback interface: whole, cut, wrong, refused."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
from pathlib import Path

import httpx
import pytest

from hub import COMMIT, client_of, hub
from metricsmith.bank.models.fetch import fetch, find_files
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.errors import ModelFailure, NeedsError

WEIGHTS = bytes(range(256)) * 40
FILES = {
    "config.json": b'{"model_type": "bert"}',
    "model.safetensors": WEIGHTS,
    "vocab.txt": b"a\nb\n",
    "modeling.py": b"raise SystemExit",
    "flax_model.msgpack": b"flax",
    "onnx/config.json": b"{}",
    "training_args.bin": b"args",
}
SPEC = ModelSpec(name="tried", id="some/model", head="encoder")


@pytest.fixture
def server():
    with hub() as running:
        running.repositories["some/model"] = dict(FILES)
        yield running


@pytest.fixture
def cache(server, tmp_path, monkeypatch):
    with client_of(server.address, tmp_path / "cache", monkeypatch):
        yield tmp_path / "cache"


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file() and ".locks" not in path.parts}


def test_config_tokenizer_and_weights_are_fetched_and_nothing_else(server, cache):
    place = fetch(find_files(SPEC))
    assert place == SPEC.location()
    assert {path.name for path in place.iterdir()} == {"config.json", "model.safetensors", "vocab.txt"}
    assert (place / "model.safetensors").read_bytes() == WEIGHTS
    assert SPEC.found_digest() == hashlib.sha256(WEIGHTS).hexdigest()
    assert not any("modeling.py" in asked for asked in server.asked)


def test_a_second_fetch_sends_for_no_file(server, cache):
    fetch(find_files(SPEC))
    sent = server.sent.total()
    again = find_files(SPEC)
    assert again.missing == []
    fetch(again)
    assert server.sent["model.safetensors"] == len(WEIGHTS)
    assert server.sent.total() - sent < len(WEIGHTS)


def test_a_fetch_that_was_cut_goes_on_where_it_ended(server, cache):
    server.cuts["model.safetensors"] = 6000
    with pytest.raises(ModelFailure, match="goes on from what is here"):
        fetch(find_files(SPEC))
    with pytest.raises(NeedsError, match="not on this machine"):
        SPEC.location()
    fetch(find_files(SPEC))
    assert (SPEC.location() / "model.safetensors").read_bytes() == WEIGHTS
    assert len(WEIGHTS) <= server.sent["model.safetensors"] < len(WEIGHTS) + 512


@pytest.mark.parametrize("file", ["model.safetensors", "vocab.txt"])
def test_a_file_with_another_hash_is_refused_and_deleted(server, cache, file):
    server.wrong[file] = FILES[file][:-1] + b"!"
    with pytest.raises(ModelFailure, match=rf"{file} arrived with hash \w+, some/model says \w+"):
        fetch(find_files(SPEC))
    assert file not in files_in(cache)
    held = {path.read_bytes() for path in cache.rglob("*") if path.is_file()}
    assert server.wrong[file] not in held
    with pytest.raises(NeedsError, match="not on this machine"):
        SPEC.location()
    server.wrong.clear()
    fetch(find_files(SPEC))
    assert (SPEC.location() / file).read_bytes() == FILES[file]


def test_what_cannot_be_reached_is_said_in_plain_words(cache, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelFailure, match=r"some/model at http://127.0.0.1:9 could not be fetched: no connection"):
        find_files(SPEC)


def test_a_machine_that_is_set_to_be_offline_says_so(server, cache, monkeypatch):
    from huggingface_hub import constants
    from huggingface_hub.utils import reset_sessions

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    reset_sessions()
    with pytest.raises(ModelFailure, match="HF_HUB_OFFLINE forbids it"):
        find_files(SPEC)
    assert server.asked == []


def test_an_unknown_repository_and_one_without_weights_are_said(server, cache):
    with pytest.raises(ModelFailure, match=r"other/model at .* could not be fetched"):
        find_files(ModelSpec(name="tried", id="other/model", head="encoder"))
    del server.repositories["some/model"]["model.safetensors"]
    with pytest.raises(ModelFailure, match="has no weights"):
        find_files(SPEC)


def test_one_file_at_the_hub_is_fetched_alone(server, cache):
    spec = ModelSpec(name="tried", id="some/model", head="fasttext", file="model.bin")
    server.repositories["some/model"]["model.bin"] = WEIGHTS
    fetch(find_files(spec))
    assert spec.files()[0].read_bytes() == WEIGHTS
    assert spec.found_digest() == hashlib.sha256(WEIGHTS).hexdigest()
    assert set(server.sent) == {"", "model.bin"}


def test_a_file_at_an_address_goes_on_where_it_was_cut(server, cache):
    address = f"{server.address}/files/some/model/resolve/main"
    server.repositories["some/model"]["model.bin"] = WEIGHTS
    digest = hashlib.sha256(WEIGHTS).hexdigest()
    spec = ModelSpec(name="tried", id=address, head="fasttext", file="model.bin", weights=digest)
    server.cuts["model.bin"] = 6000
    with pytest.raises(ModelFailure, match="no connection, or it was cut"):
        fetch(find_files(spec))
    with pytest.raises(NeedsError, match=r"model.bin is not there"):
        spec.files()
    fetch(find_files(spec))
    assert spec.files()[0].read_bytes() == WEIGHTS
    assert server.sent["model.bin"] == len(WEIGHTS)
    assert find_files(spec).missing == []


def test_a_file_at_an_address_with_another_hash_is_deleted(server, cache):
    address = f"{server.address}/files/some/model/resolve/main"
    server.repositories["some/model"]["model.bin"] = WEIGHTS
    spec = ModelSpec(name="tried", id=address, head="fasttext", file="model.bin", weights="0" * 64)
    with pytest.raises(ModelFailure, match=r"model.bin arrived with hash"):
        fetch(find_files(spec))
    assert files_in(cache) == set()


class Planted:
    """Unpickled in the common way, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


@pytest.mark.extras
@pytest.mark.parametrize("kept", [False, True])
def test_a_pickle_that_would_run_code_is_refused_and_runs_none(server, cache, tmp_path, kept):
    import torch

    trap = tmp_path / "run.txt"
    made = tmp_path / "made.bin"
    torch.save({"weight": torch.ones(2), "trap": Planted(trap)}, made)
    files = {name: content for name, content in FILES.items() if name != "model.safetensors"}
    server.repositories["some/model"] = files | {"pytorch_model.bin": made.read_bytes()}
    if kept:  # by another program, which may have use for it
        from huggingface_hub import hf_hub_download

        hf_hub_download("some/model", "pytorch_model.bin", endpoint=server.address)
    with pytest.raises(NeedsError, match=r"pytorch_model.bin is refused, and nothing in it was run: .*posix.system"):
        fetch(find_files(SPEC))
    assert not trap.exists()
    assert (made.read_bytes() in {path.read_bytes() for path in cache.rglob("*") if path.is_file()}) == kept
    assert kept or files_in(cache) == set()
    with pytest.raises(NeedsError):
        SPEC.files()


@pytest.mark.extras
@pytest.mark.parametrize("content", [b"", b"junk", pickle.dumps([1, 2], 2), pickle.dumps({"a": 1}, 2)])
def test_a_pickle_without_weights_is_refused(server, cache, content):
    server.repositories["some/model"] = {"config.json": b"{}", "pytorch_model.bin": content}
    with pytest.raises(NeedsError, match=r"pytorch_model.bin is refused"):
        fetch(find_files(SPEC))
    assert files_in(cache) == set()


@pytest.mark.extras
def test_parts_are_converted_under_their_prefix_and_config_and_tokenizer_come_from_the_base(server, cache, tmp_path):
    import torch
    from safetensors.torch import load_file

    shared = torch.arange(6.0).reshape(2, 3)
    torch.save({"state_dict": {"b": shared.T, "a": shared}, "epoch": 3}, tmp_path / "model.ckpt")
    torch.save({"network.0.bias": torch.ones(3)}, tmp_path / "gate.pt")
    server.repositories["a/judge"] = {
        "checkpoints/model.ckpt": (tmp_path / "model.ckpt").read_bytes(), "gate.pt": (tmp_path / "gate.pt").read_bytes()
    }  # fmt: skip
    parts = (("checkpoints/model.ckpt", ""), ("gate.pt", "gating_layer."))
    spec = ModelSpec(name="tried", id="a/judge", head="encoder", base="some/model", pickles=parts)
    place = fetch(find_files(spec))
    assert place == spec.location()
    assert place.name == COMMIT
    assert files_in(place) == {"model.safetensors", "gate.safetensors", "config.json", "vocab.txt"}
    found = load_file(place / "model.safetensors")
    assert list(found) == ["a", "b"]
    assert torch.equal(found["a"], shared)
    assert torch.equal(found["b"], shared.T)
    assert list(load_file(place / "gate.safetensors")) == ["gating_layer.network.0.bias"]
    assert server.sent["model.safetensors"] == 0
    assert find_files(spec).missing == []


@pytest.mark.extras
def test_a_converted_checkpoint_scores_as_the_one_in_safetensors(server, cache, tiny, tmp_path):
    import torch
    from transformers import AutoModelForMaskedLM

    from metricsmith.bank.weighted import model_family

    folder = tiny("roberta")
    server.add("roberta-large", folder)
    module = AutoModelForMaskedLM.from_pretrained(folder)  # its decoder and its embeddings are one weight
    torch.save(module.state_dict(), tmp_path / "tied.bin")
    del server.repositories["roberta-large"]["model.safetensors"]
    server.repositories["roberta-large"]["pytorch_model.bin"] = (tmp_path / "tied.bin").read_bytes()
    given = model_family("bertscore", path=str(folder), device="cpu", settings={"layer": 2})
    fetched = model_family("bertscore", device="cpu", settings={"layer": 2})
    fetch(find_files(fetched.model))
    first = fetched.model.found_digest()
    texts = {"output": "a cat sat here", "references": ["the dog sat there", "a cat"]}
    assert [one.score(**texts) for one in fetched.metrics()] == [one.score(**texts) for one in given.metrics()]
    (fetched.model.location() / "model.safetensors").unlink()
    fetch(find_files(fetched.model))
    assert fetched.model.found_digest() == first


def test_a_server_that_forgets_the_place_starts_over(server, cache, monkeypatch):
    """An answer 200 to a request for the rest holds the whole file, which must not be put behind the first part."""
    address = f"{server.address}/files/some/model/resolve/main"
    server.repositories["some/model"]["model.bin"] = WEIGHTS
    spec = ModelSpec(name="tried", id=address, head="fasttext", file="model.bin")
    server.cuts["model.bin"] = 6000
    with pytest.raises(ModelFailure):
        fetch(find_files(spec))
    real = httpx.stream
    monkeypatch.setattr(httpx, "stream", lambda *args, headers, **rest: real(*args, **rest))
    fetch(find_files(spec))
    assert spec.files()[0].read_bytes() == WEIGHTS


@pytest.mark.parametrize("commit", ["../../../above", "/tmp/above", "", "main"])
def test_a_commit_that_is_none_becomes_no_folder(commit, server, cache):
    server.commit = commit
    with pytest.raises(ModelFailure, match="which is none; nothing was fetched"):
        find_files(SPEC)
    assert not cache.exists()


def test_names_that_lead_out_of_the_folder_are_passed_over(server, cache, tmp_path):
    names = ("../../x.safetensors", "/tmp/y.json", "a/../../z.json", "..\\..\\w.json")
    server.repositories["some/model"] |= dict.fromkeys(names, b"{}")
    with contextlib.suppress(ModelFailure):
        fetch(find_files(SPEC))
    assert {path.name for path in tmp_path.iterdir()} <= {"cache"}
    assert not {"x.safetensors", "y.json", "z.json", "w.json"} & files_in(tmp_path)


def test_a_page_in_the_place_of_a_file_is_refused(server, cache):
    server.repositories["some/model"]["model.bin"] = b"<html>Sign in</html>"
    server.headers = {"Content-Type": "text/html; charset=utf-8"}
    spec = ModelSpec("tried", f"{server.address}/files/some/model/resolve/main", "fasttext", file="model.bin")
    with pytest.raises(ModelFailure, match="answers with a page and not with weights"):
        find_files(spec)


def test_a_file_at_an_address_of_another_size_is_deleted(server, cache):
    server.repositories["some/model"]["model.bin"] = WEIGHTS
    spec = ModelSpec("tried", f"{server.address}/files/some/model/resolve/main", "fasttext", file="model.bin")
    download = find_files(spec)
    server.wrong["model.bin"] = WEIGHTS[:77]
    with pytest.raises(ModelFailure, match=f"arrived with 77 bytes of {len(WEIGHTS)}"):
        fetch(download)
    assert files_in(cache) == set()
