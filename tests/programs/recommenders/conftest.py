"""Cards by hand, and a tiny random ColBERT checkpoint made on the spot."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from metricsmith.records import MetricCard, Output

TEXT = """
overlap grammar readability length judge tone fact summary recall precision reference simple jargon poem verse
rhyme story plot dialogue query search answer citation table number unit chart translation fluency accuracy
spelling comma sentence paragraph heading code test loop recipe oven flavour garden soil river
"""
WORDS = TEXT.split()


@pytest.fixture
def card() -> Callable[..., MetricCard]:
    """Make a card from a name and a summary; the output is named after the card."""

    def make(name: str, summary: str = "", **facts: object) -> MetricCard:
        outputs = (Output(name.lower().replace(" ", "_")),)
        return MetricCard(
            **{"name": name, "kind": "bank", "summary": summary, "formula": "", "outputs": outputs, **facts}
        )

    return make


@pytest.fixture
def pool(card) -> list[MetricCard]:
    """Forty cards, no two with the same pair of words."""
    return [card(f"M{index}", f"{word} {WORDS[index - 7]}") for index, word in enumerate(WORDS[:40])]


@pytest.fixture
def bare_checkpoint(tmp_path) -> Callable[..., Path]:
    """Write a checkpoint folder by hand, with weights of the given shapes (all zero) and no tokenizer."""

    def make(shapes: dict[str, list[int]], *, config: object = None, tokenizer: object = None) -> Path:
        folder = tmp_path / "bare"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config or {"model_type": "bert"}))
        (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer or {}))
        write_safetensors(folder / "model.safetensors", shapes)
        return folder

    return make


def write_safetensors(path: Path, shapes: dict[str, list[int]]) -> None:
    """The format by hand: length of the header, header, numbers."""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in shapes.items():
        start, end = end, end + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))


@pytest.fixture(scope="session")
def tiny_colbert(tmp_path_factory) -> Path:
    """A two-layer BERT with random weights, a projection to 32, and a word-piece vocabulary of `WORDS`."""
    for package in ("torch", "transformers", "colbert"):
        _importable(package)
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("checkpoints") / "tiny"
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]"]
    characters = "abcdefghijklmnopqrstuvwxyz0123456789"
    pieces = [*special, *WORDS, *characters, *(f"##{one}" for one in characters), *"#|.,:;-`*()!"]
    words = Tokenizer(models.WordPiece({piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]"))
    words.normalizer = normalizers.BertNormalizer()
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    BertTokenizerFast(tokenizer_object=words).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
        max_position_embeddings=192,
    )
    _save_model(folder, BertModel, config)
    return folder


def _save_model(folder: Path, bert: type, config: object) -> None:
    """Save under the names that colbert-ai's own wrapper uses: ``bert.`` and the projection."""
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    weights = {f"bert.{name}": tensor for name, tensor in bert(config).state_dict().items()}
    weights["linear.weight"] = torch.randn(32, 64) / 8
    config.save_pretrained(folder)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _importable(package: str) -> None:
    from importlib.util import find_spec

    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed: it comes with the extra colbert")
