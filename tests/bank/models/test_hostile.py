"""Broken checkpoints are refused with their reason, before any number is computed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import conformance
import tiny_hostile
from metricsmith.errors import NeedsError
from model_cases import CASES, tiny_family

pytestmark = pytest.mark.extras
NAMES = [name for name in CASES if name != "mauve"]
FOLDERS = [name for name in NAMES if isinstance(CASES[name].checkpoint, str)]
FILES = [name for name in NAMES if name not in FOLDERS]
REASONS = {
    "missing_head": r"lacks \d+ weights, such as \S+",
    "extra_keys": r"has beyond its head 1 weights, such as unknown_head\.weight",
    "yes_is_no": r"'Yes' and 'No' are the tokens .* each must be one token of its own",
    "pickle_weights": r"as a pickle \(pytorch_model\.bin\), which could run code",
    "wrong_architecture": r"is a (gpt2|bert), and \w+ takes",
    "truncated": r"cannot be read",
}
HARMLESS = {
    ("parascore", "missing_head"): "vectors are read, and the head that guesses words is not used",
    ("parascore_free", "missing_head"): "vectors are read, and the head that guesses words is not used",
}
UNIEVAL = [name for name in NAMES if name.startswith("unieval")]
PAIRS = [
    pytest.param(name, fault, id=f"{name}-{fault}")
    for name in FOLDERS
    for fault in tiny_hostile.FAULTS
    if fault != "yes_is_no" or name in UNIEVAL
]


@pytest.mark.parametrize(("name", "fault"), PAIRS)
def test_a_broken_checkpoint_is_refused_with_its_reason(name, fault, tiny, tiny_folder):
    path = tiny_hostile.hostile(CASES[name].checkpoint, tiny_folder, fault)
    rows = conformance.rows_of(name, 3)
    family = conformance.on(name, path)
    if (name, fault) in HARMLESS:
        sound = tiny_family(name, tiny, tiny_folder)
        expected = conformance.numbers(conformance.bound(sound, rows), rows)
        assert (conformance.numbers(conformance.bound(family, rows), rows) == expected).all()
        return
    with pytest.raises(NeedsError) as caught:
        conformance.numbers(conformance.bound(family, rows), rows)
    assert re.search(REASONS[fault], str(caught.value), re.DOTALL), caught.value
    assert name in str(caught.value) or str(path) in str(caught.value)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("fault", ["truncated", "other format", "missing"])
def test_a_broken_file_is_refused_with_its_reason(name, fault, tiny, tiny_folder, tmp_path):
    sound = Path(tiny_family(name, tiny, tiny_folder).model.path)
    if sound.is_dir():
        pytest.skip("weights in a folder")
    broken = tmp_path / "model.bin"
    if fault != "missing":
        whole = sound.read_bytes()
        broken.write_bytes(whole[: len(whole) * 9 // 10] if fault == "truncated" else b"no model at all" * 40)
    rows = conformance.rows_of(name, 3)
    family = conformance.on(name, broken)
    with pytest.raises(
        NeedsError, match="no such file or folder" if fault == "missing" else "cannot be read|tells the"
    ):
        conformance.numbers(conformance.bound(family, rows), rows)


@pytest.mark.parametrize("name", FOLDERS)
def test_an_empty_folder_is_refused_with_the_command_that_fills_it(name, tmp_path):
    rows = conformance.rows_of(name, 3)
    with pytest.raises(NeedsError, match=f"metricsmith bank fetch {name}"):
        conformance.numbers(conformance.on(name, tmp_path).metrics(), rows)
