"""The process's loaded networks: each checkpoint once, the least recently used unloaded when memory runs short.

Reads safetensors alone, from this machine alone, and executes nothing that comes with a checkpoint. A checkpoint that
lacks a weight of the part that is used, or has one that no part uses, is refused.
"""

from __future__ import annotations

import json
import logging
import math
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metricsmith.bank.models.engine.fasttext import forget_files
from metricsmith.bank.models.engine.heads import head_named
from metricsmith.bank.models.engine.memory import free_memory
from metricsmith.bank.models.engine.own import shapes
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.errors import NeedsError

__all__ = [
    "Network", "check_architecture", "computing", "device_for", "hushed", "loaded_bytes", "network", "torch_threads",
    "unload",
]  # fmt: skip

logger = logging.getLogger("metricsmith.bank")
READ = (".safetensors", ".json", ".txt", ".model", ".jinja")  # files that a network and its tokenizer are made of
TOKENIZERS = ("tokenizer.json", "vocab.json", "vocab.txt", "*.model")  # one of them makes a tokenizer
_Key = tuple[str, str, str, str, int | None, str, tuple[tuple[str, int, int], ...]]  # files with size and time
_lock = threading.RLock()
_networks: OrderedDict[_Key, Network] = OrderedDict()
_computing: list[int] = []  # torch's threads, as each thread that computes now found them
_hushed: list[tuple[int, bool]] = []  # transformers' level and progress bars, as each that is hushed now found them


@dataclass(frozen=True, eq=False)
class Network:
    """A checkpoint in memory: the module, its tokenizer, where it runs, and the bytes of its weights.

    `new` names the weights that its head may go without, and that the checkpoint does: their numbers mean nothing.
    """

    module: Any
    tokenizer: Any
    device: Any
    size: int
    key: _Key
    new: frozenset[str] = frozenset()
    lock: Any = field(default_factory=threading.Lock, repr=False)

    def encoded(self, *texts: Any, **options: Any) -> Any:
        """The tokenizer's encoding of texts; one thread at a time, since how it cuts is a state that they share."""
        with self.lock, hushed():
            return self.tokenizer(*texts, **options)

    @property
    def max_tokens(self) -> int:
        """The longest sequence that the network has places for, marks included."""
        config = self.module.config
        limit = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None) or 1 << 20
        return int(limit) - (2 if config.model_type in ("roberta", "xlm-roberta") else 0)  # its first place is 2


def network(spec: ModelSpec) -> Network:
    """The network of a spec, loaded if it is not.

    Raises
    ------
    NeedsError
        If the weights are not on this machine or are others than those asked for, if the checkpoint is broken, of
        another architecture, or lacks weights, or if it does not fit the memory.
    """
    spec.check()
    from torch import inference_mode

    place = spec.location()
    device = device_for(spec)
    read = sorted(file for file in place.glob("*") if file.suffix in READ)
    state = tuple((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in read)
    key = (str(place), spec.revision, spec.head, f"{spec.dtype} on {device}", spec.layer, spec.tokenizer, state)
    with _lock:
        if key not in _networks:
            try:
                _make_room(spec, device)
                with hushed(), inference_mode(False):  # tensors that are made in that mode can never be trained on
                    _networks[key] = _load(spec, place, device, key)
            except NeedsError:
                raise
            except Exception as problem:  # a config can lead to any error, and tokenizers raises Exception itself
                reason = f"{type(problem).__name__}: {' '.join(str(problem).split()):.300}"
                if type(problem).__name__ == "SafetensorError":
                    reason = f"a *.safetensors is cut off or is none ({problem}): fetch it again"
                raise NeedsError(f"{spec.name}: the checkpoint {place} cannot be read: {reason}") from problem
            logger.info("%s runs on %s in %s", spec.name, device, spec.dtype)
        _networks.move_to_end(key)
        return _networks[key]


def unload() -> None:
    """Forget every loaded network and every file of fastText's."""
    with _lock:
        _networks.clear()
    forget_files()


def loaded_bytes(device: str) -> int:
    """The bytes of the weights that are loaded on a device, and would make room for others."""
    with _lock:
        return sum(loaded.size for loaded in _networks.values() if str(loaded.device) == device)


def device_for(spec: ModelSpec) -> str:
    """The device that a spec asks for: of ``auto`` the best that this machine has; fastText knows the CPU alone.

    Raises
    ------
    NeedsError
        If this machine has no such device.
    """
    if spec.head == "fasttext":
        return "cpu"
    from torch import backends, cuda

    there = ["cuda"] * cuda.is_available() + ["mps"] * backends.mps.is_available() + ["cpu"]
    device = there[0] if spec.device == "auto" else spec.device
    if device.partition(":")[0] not in there:
        raise NeedsError(f"{spec.name}: this machine has no {device}; device='auto' takes {there[0]}")
    return device


@contextmanager
def computing() -> Iterator[None]:
    """Compute without gradients, and on one thread unless OMP_NUM_THREADS says otherwise.

    With more threads than idle cores the threads of a small network wait for each other most of the time.
    """
    from torch import inference_mode

    with torch_threads(None if "OMP_NUM_THREADS" in os.environ else 1), inference_mode(), hushed():
        yield


@contextmanager
def torch_threads(number: int | None) -> Iterator[None]:
    """Let torch have so many threads, or as many as it has.

    The caller's own number is put back when the last of several threads that compute at once is done.
    """
    import torch

    with _lock:
        _computing.append(torch.get_num_threads())
        if number is not None:
            torch.set_num_threads(number)
    try:
        yield
    finally:
        with _lock:
            first = _computing[0]
            _computing.pop()
            if not _computing:
                torch.set_num_threads(first)


@contextmanager
def hushed() -> Iterator[None]:
    """Let transformers print nothing: its advice is for those who train, and our own checks stand in its place.

    The caller's own settings are back when the last of several threads is done.
    """
    from transformers.utils import logging as said

    with _lock:
        _hushed.append((said.get_verbosity(), said.is_progress_bar_enabled()))
        said.set_verbosity(logging.CRITICAL + 1)
        if _hushed[0][1]:
            said.disable_progress_bar()
    try:
        yield
    finally:
        with _lock:
            first, bars = _hushed[0]
            _hushed.pop()
            if not _hushed:
                said.set_verbosity(first)
                if bars:
                    said.enable_progress_bar()


def _make_room(spec: ModelSpec, device: str) -> None:
    """Unload until the weights fit, as large as they are in the spec's dtype, which may be another than the files'."""
    import torch

    needed = sum(map(math.prod, shapes(spec.location()).values())) * getattr(torch, spec.dtype).itemsize
    while (free := free_memory(device)) is not None and free < needed:
        oldest = next((key for key, loaded in _networks.items() if str(loaded.device) == device), None)
        if oldest is None:
            raise NeedsError(f"{spec.name} needs {needed / 1e9:.1f} GB, {free / 1e9:.1f} free on {device}")
        del _networks[oldest]
        torch.cuda.empty_cache()


def _load(spec: ModelSpec, place: Path, device: str, key: _Key) -> Network:
    import torch
    from transformers import AutoTokenizer

    head = head_named(spec.head)
    check_architecture(spec)
    module, report = head.load(place, getattr(torch, spec.dtype))
    tokenizer = (
        head.tokenizer(place)
        if head.tokenizer
        else AutoTokenizer.from_pretrained(place, local_files_only=True, trust_remote_code=False)
    )
    new = frozenset(name for name in report["missing_keys"] if head.may_miss(name))
    lacking = [name for name in report["missing_keys"] if name not in new]
    strange = [name for name in report["unexpected_keys"] if not head.may_ignore(name)]
    other = [str(found) for found in report.get("mismatched_keys", ())]
    for problem_found, names in (("lacks", lacking), ("has other shapes for", other), ("has beyond its head", strange)):
        if names:
            raise NeedsError(
                f"{spec.name}: the checkpoint {place} {problem_found} {len(names)} weights, such as {min(names)}; "
                f"it is no {head.words}, and nothing is filled in"
            )
    if spec.layer is not None:
        _cut_layers(module, spec)
    module.to(device).eval()
    size = sum(tensor.numel() * tensor.element_size() for tensor in module.parameters())
    return Network(module, tokenizer, torch.device(device), size, key, new)


def check_architecture(spec: ModelSpec) -> None:
    """Refuse a checkpoint whose config names another architecture than its head takes; loads no backend.

    Raises
    ------
    NeedsError
        If it does, or no config can be read.
    """
    if spec.head == "fasttext":
        return
    place, head = spec.location(), head_named(spec.head)
    try:
        config = dict(json.loads((place / "config.json").read_text("utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as problem:
        kind = "is no JSON" if isinstance(problem, ValueError) else "is missing or not an object"
        reason = f"it {kind}: fetch it again ({type(problem).__name__})"
        raise NeedsError(f"{spec.name}: {place} has no config.json that can be read: {reason}") from problem
    if not any(list(place.glob(name)) for name in TOKENIZERS):
        raise NeedsError(
            f"{spec.name}: {place} has no tokenizer, {' or '.join(TOKENIZERS)}: put those of {spec.id} there"
        )
    if "/" in (code := f"{config.get('_attn_implementation')} {config.get('attn_implementation')}"):
        raise NeedsError(f"{spec.name}: the config of {place} names code at a hub ({code:.60}), which is never run")
    found = config.get("model_type", "")
    if head.architectures and found not in head.architectures:
        raise NeedsError(
            f"{spec.name}: the checkpoint {place} is a {found or 'network of no stated kind'}, and {spec.head} "
            f"takes {' or '.join(head.architectures)}"
        )


def _cut_layers(module: Any, spec: ModelSpec) -> None:
    """Take away the layers above the one that is used: the last of those that stay is the one asked for."""
    from torch.nn import ModuleList

    stack = getattr(module, "encoder", None) or module.transformer
    if not 0 < (spec.layer or 0) <= len(stack.layer):
        raise NeedsError(
            f"{spec.name}: layer {spec.layer} of a network of {len(stack.layer)} layers: take {spec.id}, or a layer "
            f"from 1 to {len(stack.layer)}, settings={{{spec.name!r}: {{'layer': {len(stack.layer)}}}}}"
        )
    stack.layer = ModuleList(stack.layer[: spec.layer])
