"""The weights that a metric is computed with: which, how used, where they lie, and their hash. Loads no backend."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from metricsmith.errors import NeedsError, OptionError, nearest
from metricsmith.records import Checkpoint

__all__ = ["ModelSpec"]

Value = str | bool
AT_HAND = "weights at hand in place of "
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REVISION = re.compile(r"[0-9A-Za-z][\w.-]*", re.ASCII)  # a name inside the hub's cache, and no way out of it
_SETTINGS: dict[str, tuple[Value, ...]] = {
    "layer": (), "revision": (), "tokenizer": ("fast", "slow"), "dtype": ("float32", "bfloat16", "float16"),
}  # fmt: skip
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}  # of a weight
INSTALL = "pip install 'metricsmith[models]'"
_HOW = (
    dict.fromkeys(("torch", "transformers", "fasttext", "ot", "sentencepiece"), INSTALL)
    | dict.fromkeys(
        ("spacy", "en_core_web_sm"),
        "pip install spacy, then python -m spacy download en_core_web_sm; or entities=function in Python",
    )
    | {"peft": "pip install 'metricsmith[finetune]'"}
)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Weights and the way they are used. Hashable, and small to copy and to pickle: the weights stay in the loader.

    Parameters
    ----------
    name : str
        The metric's name in our table.
    id, revision : str
        Of the published weights, at the hub; the id may be an address of the web.
    needs : tuple of str
        Python modules that are needed beside those of the head.
    head : str
        The part of the network that is used: one of `metricsmith.bank.models.engine.heads`.
    layer : int, optional
        The hidden layer whose vectors are taken; None is the last.
    tokenizer : str
        ``fast`` or ``slow``: the two implementations in transformers do not agree on a text's first word.
    dtype, device : str
        ``float32``, ``bfloat16`` or ``float16``; ``cpu``, ``cuda``, ``mps``, or ``auto`` for the best there is.
    path : str
        The folder or file of the weights; empty stands for the hub's cache.
    cache_dir : str
        The hub's cache; empty stands for its usual place.
    weights : str
        The hash that the weights must have; empty takes what lies there.
    file : str
        The one file of the weights, where they are no safetensors.
    base : str
        The id whose config and tokenizer are taken, where the weights were published without.
    pickles : tuple of (str, str)
        Files that are published as pickles and make up the weights or a part of them, each with the prefix that its
        weights' names get: `metricsmith.bank.models.fetch` converts them. Empty: ``pytorch_model.bin``, where the
        weights have no other form.
    choices : tuple of (str, tuple)
        The metric's own options, where papers and implementations disagree: names, and values with ours first.
    options : tuple of (str, value)
        The options that are not at their first value.
    at_hand : bool
        True of a saved metric that was made with somebody's own weights.
    """

    name: str
    id: str
    head: str
    revision: str = "main"
    layer: int | None = None
    tokenizer: str = "fast"
    dtype: str = "float32"
    device: str = "auto"
    path: str = ""
    cache_dir: str = ""
    weights: str = ""
    file: str = ""
    needs: tuple[str, ...] = ()
    base: str = ""
    pickles: tuple[tuple[str, str], ...] = ()
    choices: tuple[tuple[str, tuple[Value, ...]], ...] = ()
    options: tuple[tuple[str, Value], ...] = ()
    at_hand: bool = False

    def option(self, name: str) -> Value:
        """The value in force of one of the metric's own options."""
        return dict(self.options).get(name, dict(self.choices)[name][0])

    @property
    def reads_corpus(self) -> bool:
        """False where the metric could weigh by a corpus (idf) and is set not to."""
        return "idf" not in dict(self.choices) or bool(self.option("idf"))

    def using(self, **settings: Any) -> ModelSpec:
        """These weights with other settings: layer, tokenizer, dtype, revision, or the metric's own options.

        Raises
        ------
        OptionError
            If a setting or its value is not known, with those that are.
        """
        choices = {**_SETTINGS, **dict(self.choices)}
        if self.head != "encoder":  # of other networks all layers are used
            choices.pop("layer")
        for name, value in settings.items():
            if name not in choices:
                raise OptionError(f"{self.name} has no setting {name!r}{nearest(name, choices)}; {', '.join(choices)}")
            if (allowed := choices[name]) and (type(value), value) not in [(type(one), one) for one in allowed]:
                raise OptionError(f"{self.name}: {name}={value!r} must be one of {', '.join(map(repr, allowed))}")
            if name == "layer" and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise OptionError(f"{self.name}: layer={value!r} must be a whole number from 1")
            if name == "revision" and not (isinstance(value, str) and _REVISION.fullmatch(value)):
                raise OptionError(f"{self.name}: revision={value!r:.60} must be letters, digits, dots, hyphens and _")
        own = {name: value for name, value in settings.items() if name in dict(self.choices)}
        merged = {**dict(self.options), **own}
        kept = tuple(
            (name, merged[name]) for name, allowed in self.choices if merged.get(name, allowed[0]) != allowed[0]
        )
        return replace(self, options=kept, **{name: value for name, value in settings.items() if name not in own})

    def in_force(self, published: Checkpoint) -> Checkpoint:
        """A card's entry with these settings; a weight's bytes scale the memory."""
        slow = {"tokenizer": self.tokenizer} if self.tokenizer != "fast" else {}
        layer = {} if self.layer is None else {"layer": self.layer}
        return replace(
            published,
            memory=published.memory * _BYTES[self.dtype] / _BYTES[published.dtype],
            dtype=self.dtype,
            revision=published.revision if self.revision == "main" else self.revision,  # files may be dated
            settings=", ".join(f"{name} {value}" for name, value in {**layer, **slow, **dict(self.options)}.items()),
        )

    def to_state(self) -> dict[str, Any]:
        """All that a saved metric holds of its weights: no path, no device, and the id as a text to read."""
        return {
            "id": self.source, "revision": self.revision, "layer": self.layer, "tokenizer": self.tokenizer,
            "dtype": self.dtype, "options": dict(self.options), "weights": self.digest(),
        }  # fmt: skip

    @property
    def source(self) -> str:
        """Whose weights these are: the published id, or that somebody's own take its place."""
        return AT_HAND + self.id if self.at_hand or (self.path and not self.weights) else self.id

    def with_state(self, state: Mapping[str, Any]) -> ModelSpec:
        """These weights as a saved metric used them; the id of a state is text alone and leads nowhere.

        Raises
        ------
        OptionError
            If a setting or its value is not known, or there is a layer where the network is used whole, or none where
            the metric names one.
        """
        if state["layer"] is None and self.layer is not None:
            raise OptionError(f"{self.name}: layer={state['layer']!r} where the metric has {self.layer!r}")
        if not _SHA256.fullmatch(state["weights"]):
            raise OptionError(f"{self.name}: weights={state['weights']!r:.80} must be 64 hexadecimal digits")
        settings = {name: state[name] for name in ("revision", "tokenizer", "dtype")}
        settings |= {} if state["layer"] is None else {"layer": state["layer"]}
        at_hand = state["id"].startswith(AT_HAND)
        return replace(self.using(**settings, **state["options"]), weights=state["weights"], at_hand=at_hand)

    def location(self) -> Path:
        """The folder or file of the weights.

        Raises
        ------
        NeedsError
            If they are not on this machine, with the command that fetches them.
        """
        found = Path(self.path) if self.path else self._cached()
        if found is None or not found.exists():
            if self.path:
                raise NeedsError(f"{self.path}: no such file or folder")
            raise NeedsError(f"weights not on this machine: `metricsmith bank fetch {self.name}`")
        return found

    def files(self) -> list[Path]:
        """The files of the weights, in the order of their names.

        Raises
        ------
        NeedsError
            If there is none, or only such as could execute code when read.
        """
        place = self.location()
        if self.file and place.is_dir():
            place /= self.file
        if self.file and place.is_file():
            return [place]
        if self.file:
            raise NeedsError(f"{place} is not there: `metricsmith bank fetch {self.name}` gets it")
        if not place.is_dir():
            raise NeedsError(f"{place} is a file: name the folder with config.json, *.safetensors and a tokenizer")
        found = sorted(place.glob("*.safetensors"))
        if found:
            return found
        pickled = sorted(path.name for suffix in ("*.bin", "*.pt", "*.ckpt") for path in place.rglob(suffix))
        if pickled:
            raise NeedsError(
                f"{place} has its weights as a pickle ({pickled[0]}), which could run code when read: "
                f"`metricsmith bank fetch {self.name}` keeps them as safetensors"
            )
        raise NeedsError(f"{place} has no *.safetensors: `metricsmith bank fetch {self.name}` gets the weights")

    def digest(self) -> str:
        """The hash of the weights, 64 hex digits: the one that is asked for, else that of the files.

        Of a file in the hub's cache it is the hub's own; of others sha256, computed once for each path, size and time
        of change; of several files the hash of their names and hashes.
        """
        return self.weights or self.found_digest()

    def found_digest(self) -> str:
        """The hash of the weights that lie on this machine."""
        blobs = self.cache().resolve()
        hashes = [(path.name, _file_hash(path, blobs)) for path in self.files()]
        if len(hashes) == 1:
            return hashes[0][1]
        return hashlib.sha256("\n".join(f"{name} {digest}" for name, digest in hashes).encode()).hexdigest()

    def check(self) -> None:
        """Refuse to be computed where that cannot be, before any work starts.

        Raises
        ------
        NeedsError
            If the extra is not installed, the weights are not here, or are others than those asked for.
        """
        if reason := self.lacking():
            raise NeedsError(f"{self.name}: {reason}")
        if self.weights and self.weights != (found := self.found_digest()):
            raise NeedsError(
                f"{self.name} was made with other weights: their hash was {self.weights}, that of {self.location()} is "
                f"{found}; name those it was made with, local={{{self.name!r}: path}} or --local {self.name}=PATH"
            )

    def lacking(self) -> str:
        """The reason, as a clause, why this machine cannot compute it; empty where it can. Hashes nothing."""
        modules = (*(("fasttext",) if self.head == "fasttext" else ("torch", "transformers")), *self.needs)
        absent = next((module for module in modules if find_spec(module) is None), "")
        reasons = [f"{absent} is not installed" + (f": {_HOW[absent]}" if absent in _HOW else "")] if absent else []
        try:
            self.files()
        except NeedsError as problem:
            reasons.append(str(problem))
        return "; ".join(reasons)

    def cache(self) -> Path:
        """The hub's cache."""
        from huggingface_hub.constants import HF_HUB_CACHE

        return Path(self.cache_dir or HF_HUB_CACHE)

    def _cached(self) -> Path | None:
        from huggingface_hub import try_to_load_from_cache

        if "://" in self.id:
            return self.cache() / "metricsmith"
        file, cache = self.file or "config.json", self.cache_dir or None
        found = try_to_load_from_cache(self.id, file, revision=self.revision, cache_dir=cache)
        return Path(found).parent if isinstance(found, str) else None


def _file_hash(path: Path, cache: Path) -> str:
    """The sha256 of a file; files of the hub's cache are links to blobs that are called by it."""
    blob = path.resolve()
    if blob.parent.name == "blobs" and blob.is_relative_to(cache) and _SHA256.fullmatch(blob.name):
        return blob.name
    stat = path.stat()
    return _computed_hash(str(blob), stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=1024)
def _computed_hash(path: str, *_: int) -> str:  # size and time of change belong to the key alone
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
