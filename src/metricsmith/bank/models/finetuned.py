"""A metric that is trained on rated rows: a network's encoder, and what a method learns on top of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, asdict, dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from types import MappingProxyType
from typing import Any, Protocol, cast

import dspy
import numpy as np

from metricsmith.bank.base import BankMetric, Family, FloatArray, Names, Reasoned, TextBatch, where_filled
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.bank.models.trained import RatedTexts, Trained, TrainingOption, Weights, packed
from metricsmith.datasets.splits import group_of
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.metric import content_hash, row_text
from metricsmith.records import Checkpoint, Judgement, MetricCard, Output, Scale, Task
from metricsmith.reward import DSPyCallable
from metricsmith.saving import metric_file, row_hash, write_state

__all__ = ["CHECKPOINTS", "ENCODERS", "LORA_FROM", "METHODS", "FinetunedMetric", "TrainingMethod", "shown_text"]

LORA_FROM = 300  # rated rows from which method="auto" trains the network itself, where that can be done
LAYOUT = 1  # raise it when `shown_text` changes, so that fingerprints change too

METHODS: Mapping[str, str] = MappingProxyType(
    {"ridge": "metricsmith.bank.models.ridge", "lora": "metricsmith.bank.models.lora"}
)

_ENCODERS = (
    ("modernbert_large", "answerdotai/ModernBERT-large", 1.58, 2.2, 8192),  # the paper's
    ("modernbert_base", "answerdotai/ModernBERT-base", 0.60, 1.0, 8192),
    ("minilm", "sentence-transformers/all-MiniLM-L6-v2", 0.09, 0.4, 512),
)
ENCODERS: Mapping[str, ModelSpec] = MappingProxyType(
    {name: ModelSpec(name=name, id=id, head="encoder") for name, id, *_ in _ENCODERS}
)
CHECKPOINTS = {
    name: Checkpoint(id, disk, memory, longest, "the end is cut off") for name, id, disk, memory, longest in _ENCODERS
}


class TrainingMethod(Protocol):
    """The contents of a file in `METHODS`."""

    SETTINGS: Mapping[str, TrainingOption]
    NEEDS: tuple[str, ...]  # Python modules beside torch and transformers
    SUMMARY: str  # of the card: what is learned

    def train(
        self,
        rows: RatedTexts,
        model: ModelSpec,
        settings: Mapping[str, float],
        seed: int,
        validation: RatedTexts | None,
    ) -> Weights:
        """Learn the numbers, mean 0 and variance 1, of n texts; those of `validation` choose and are not learned."""

    def predict(
        self, texts: Sequence[str], model: ModelSpec, weights: Weights, settings: Mapping[str, float]
    ) -> FloatArray:
        """The numbers of n texts, shape (n,), each independent of the others; StateError for others' weights."""


@dataclass(frozen=True)
class FinetunedMetric(DSPyCallable):
    """The rating that a network predicts which was trained on rated rows.

    `compile` returns a trained copy; one that is not trained scores nothing. The text of a row is `shown_text`.

    Parameters
    ----------
    task : Task
        Names the rating (``target``) and its scale, on which the metric's own number lies; a prediction may lie a
        little beyond its ends.
    method : str
        ``ridge``: a ridge regression on frozen, mean-pooled vectors, seconds on a CPU. ``lora``: the network itself,
        by low-rank adapters (needs the extra ``finetune``). ``auto``: ridge below 300 rated rows; from there on lora
        if peft is installed, else ridge.
    encoder : str or ModelSpec
        A name of `ENCODERS`, or a spec that was made of one, say with another device.
    settings : mapping of str to float
        The method's own, by name; the others have their defaults.
    seed : int
        Decides whatever a method draws.
    name : str
        The column's name.
    trained : Trained, optional
        What `compile` learned.
    local : path
        The folder with the encoder's weights; empty looks in the hub's cache. No path is saved.

    Raises
    ------
    OptionError
        If the method, the encoder or a setting is not known, or a setting is out of range.
    """

    task: Task
    method: str = "auto"
    encoder: str | ModelSpec = "modernbert_base"
    settings: Mapping[str, float] = field(default_factory=dict, hash=False)
    seed: int = 0
    name: str = "finetuned"
    trained: Trained | None = None
    local: InitVar[str | PathLike[str]] = ""

    def __post_init__(self, local: str | PathLike[str]) -> None:
        for own, kind in (("task", Task), ("settings", Mapping)):
            if not isinstance(value := getattr(self, own), kind):
                raise OptionError(f"{own}={value!r:.60} must be of the type {kind.__name__}")
        encoder: Any = self.encoder if isinstance(self.encoder, ModelSpec) else ENCODERS.get(str(self.encoder))
        if encoder is None or encoder.name not in ENCODERS:
            name = getattr(encoder, "name", self.encoder)
            raise OptionError(
                f"encoder={name!r:.60}{nearest(str(name), ENCODERS)} must be one of {', '.join(ENCODERS)}"
            )
        object.__setattr__(self, "encoder", replace(encoder, path=str(local)) if str(local) else encoder)
        if self.method not in ("auto", *METHODS):
            raise OptionError(f"method={self.method!r:.60} must be auto, {' or '.join(METHODS)}")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise OptionError(f"seed={self.seed!r:.60} must be a whole number from 0")
        if self.method != "auto":
            self._in_force()
        elif self.settings or self.trained:
            raise OptionError(f"method='auto' takes no settings and is never trained: name {' or '.join(METHODS)}")

    @property
    def model(self) -> ModelSpec:
        """The encoder, with the modules that the method needs."""
        needs = () if self.method == "auto" else self._method.NEEDS
        return replace(cast(ModelSpec, self.encoder), needs=needs)

    def compile(
        self, trainset: Sequence[dspy.Example], valset: Sequence[dspy.Example] | None = None
    ) -> FinetunedMetric:
        """Train on rated rows.

        Parameters
        ----------
        trainset : sequence of dspy.Example
            Rows with the rating under ``task.target``. Those without a rating or with an empty output are left out.
            Rows of one ``group`` (else: of one input) are never parted.
        valset : sequence of dspy.Example, optional
            Rated rows of other groups, by which the method chooses (the penalty, the last step) and from which nothing
            is learned; by default it holds groups of the training rows out.

        Returns
        -------
        FinetunedMetric
            A trained copy, bound to the hash of the encoder's weights; its ``method`` is the one that was used.

        Raises
        ------
        NeedsError
            If torch, transformers, what the method needs beside them, or the encoder's weights are not here. It is
            said before any work.
        DataError
            If a rating is no number or off the scale, all are equal, fewer than two groups have any, or a group
            stands in both sets.
        """
        rows, seen = self._read(trainset, "trainset", 0)
        chosen = replace(self, method=self._chosen(len(rows.texts)), trained=None)
        chosen.model.check()
        if len(set(rows.groups)) < 2:
            raise DataError(
                f"trainset has {len(rows.texts)} rated rows with an output, in {len(set(rows.groups))} groups: rows of "
                "two groups or more are needed"
            )
        centre, spread = float(rows.numbers.mean()), float(rows.numbers.std())
        if not spread > 0:
            raise DataError(f"every rating of {self.task.target!r} is {centre:g}: there is nothing to learn")
        validation = None
        if valset is not None:
            validation, chooses = self._read(valset, "valset", len(trainset))
            seen |= chooses
            if not validation.texts:
                raise DataError("valset has no rated row with an output: give some, or leave it out")
            if shared := set(rows.groups) & set(validation.groups):
                raise DataError(
                    f"the group {min(shared)!r:.60} is in trainset and valset: keep whole groups on one side"
                )
            validation = validation._replace(numbers=(validation.numbers - centre) / spread)
        weights = chosen._method.train(
            rows._replace(numbers=(rows.numbers - centre) / spread),
            chosen.model, chosen._in_force(), self.seed, validation,
        )  # fmt: skip
        encoder = replace(chosen.model, weights=chosen.model.digest(), at_hand=bool(chosen.model.path))
        trained = Trained(packed(weights), centre, spread, len(rows.texts), len(set(rows.groups)), tuple(sorted(seen)))
        return replace(chosen, encoder=encoder, trained=trained)

    def _chosen(self, rows: int) -> str:
        if self.method != "auto":
            return self.method
        return "lora" if rows >= LORA_FROM and find_spec("peft") else "ridge"

    def _read(self, rows: Sequence[dspy.Example], what: str, first: int) -> tuple[RatedTexts, set[str]]:
        """The rows that have a rating and an output, and their hashes; row `i` is the ``first + i``-th."""
        target, scale, found, hashes = self.task.target, self.task.scale, [], set()
        for number, row in enumerate(rows):
            rating = row.get(target)
            if rating is None or rating != rating:
                continue
            if isinstance(rating, bool) or not isinstance(rating, int | float) or not scale.contains(float(rating)):
                raise DataError(f"{what}[{number}]: {target} is {rating!r:.60}; a number from {scale} is needed")
            text = row_text(row)
            if text.output.strip():
                shown = shown_text(text.output, text.input, text.references)
                found.append((shown, float(rating), group_of(row, first + number)))
                hashes.add(row_hash(row))
        texts, ratings, groups = zip(*found, strict=True) if found else ((), (), ())
        return RatedTexts(texts, np.array(ratings, dtype=float), groups), hashes

    @property
    def _method(self) -> TrainingMethod:
        return cast(TrainingMethod, import_module(METHODS[self.method]))

    def _in_force(self) -> dict[str, float]:
        """All settings of the method, those that were not given at their defaults."""
        known = self._method.SETTINGS
        for name, value in self.settings.items():
            if name not in known:
                raise OptionError(
                    f"{self.method} has no setting {name!r:.60}{nearest(name, known)}; {', '.join(known) or 'none'}"
                )
            one = known[name]
            if isinstance(value, bool) or not isinstance(value, int if one.whole else int | float):
                raise OptionError(f"{name}={value!r:.60} must be a {'whole ' * one.whole}number")
            if not one.low <= value <= one.high:
                raise OptionError(f"{name}={value!r} must lie from {one.low:g} to {one.high:g}")
        return {name: self.settings.get(name, one.default) for name, one in known.items()}

    @property
    def output(self) -> Output:
        """The rating scale."""
        scale = self.task.scale
        return Output(self.name, scale.low, scale.high, scale.higher_is_better, description=self.task.target)

    @property
    def family(self) -> Family:
        """The bank's form of this metric, which judges; its `ModelSpec` is the encoder."""
        return Family(self._card, self._compute, model=self.model)

    @property
    def card(self) -> MetricCard:
        """A card with the encoder's checkpoint, the layout of a row's text, and what was learned."""
        return self.family.card

    @property
    def _card(self) -> MetricCard:
        learned = (
            f"trained on {self.trained.rows} rated rows in {self.trained.groups} groups"
            if self.trained
            else "not trained"
        )
        what = "" if self.method == "auto" else f": {self._method.SUMMARY}"
        model = self.model
        return MetricCard(
            name=f"Finetuned metric for {self.task.target}",
            kind="finetuned",
            summary=f"Predicts {self.task.target} ({self.task.scale}) by the method {self.method}, {learned}.",
            formula=(
                f"{self.method} on {model.id}{what}; the network reads the output, then, where there are any, the "
                "input and the references under their names"
            ),
            outputs=(self.output,),
            needs=("weights", "extra:finetune" if self.method == "lora" else "extra:models"),
            cost="local",
            multi_reference="all references are part of the one text that is read",
            tasks=(self.task.description,) if self.task.description else (),
            limits=("Knows the raters of its rows and no others", "A text beyond the network's length is cut off"),
            checkpoint=CHECKPOINTS[model.name],
        )

    @property
    def weights(self) -> str:
        """The source and the beginning of the hash of the encoder's weights, and that of what was learned."""
        learned = self._learned().digest[:12]
        return f"{BankMetric(self.family, self.name).weights}; learned: sha256 {learned}"

    def _learned(self) -> Trained:
        if self.trained is None:
            raise OptionError(f"{self.name} is not trained: use the copy that .compile(trainset=rows) returns")
        return self.trained

    def fingerprint(self) -> str:
        """A hash of encoder, method, scale, layout and what was learned, wherever the weights lie.

        Before training, of what `compile` would be told instead.
        """
        trained = self.trained
        if trained is None:
            told = [self.method, dict(self.settings), self.seed, asdict(self.task), {**self.model.to_state(), "id": ""}]
            return content_hash("untrained", LAYOUT, told)
        return content_hash(
            "finetuned", LAYOUT, self.method, self._in_force(), asdict(self.task.scale),
            {**self.model.to_state(), "id": ""}, trained.digest, trained.centre, trained.spread,
        )  # fmt: skip

    def judge_batch(self, rows: Sequence[dspy.Example], *, run: int = 0) -> list[Judgement]:
        """Score rows; one with an empty output is ``skipped``, one over which the network fails ``transport``."""
        self._learned()
        return BankMetric(self.family, self.name).judge_batch(rows, run=run)

    def _compute(self, batch: TextBatch, outputs: Names) -> Reasoned:
        return where_filled(batch, outputs, self._ratings)

    def _ratings(self, batch: TextBatch) -> FloatArray:
        trained = self._learned()
        texts = list(map(shown_text, batch.outputs, batch.inputs, batch.references))
        numbers = self._method.predict(texts, batch.spec, trained.weights, self._in_force())
        return trained.centre + trained.spread * np.asarray(numbers, dtype=float)

    def to_state(self) -> dict[str, Any]:
        """Everything but the weights, of which it holds the hash; no path."""
        trained = self._learned()
        return {
            "kind": "finetuned", "name": self.name, "task": asdict(self.task), "method": self.method,
            "settings": self._in_force(), "seed": self.seed, "encoder": self.model.name,
            "model": self.model.to_state(), "centre": trained.centre, "spread": trained.spread, "rows": trained.rows,
            "groups": trained.groups, "weights": trained.digest,
            "made_with": {"learned_from": list(trained.learned_from)},
        }  # fmt: skip

    @classmethod
    def from_state(cls, state: Mapping[str, Any], content: bytes, local: str | PathLike[str] = "") -> FinetunedMetric:
        """Build an equal metric from `to_state` and the packed weights of which it has the hash.

        Raises
        ------
        OptionError
            If a value is not allowed, or the weights have another hash.
        """
        task = Task(state["task"]["description"], state["task"]["target"], Scale(**state["task"]["scale"]))
        trained = Trained(
            content, state["centre"], state["spread"], state["rows"], state["groups"],
            tuple(state.get("made_with", {}).get("learned_from", ())),
        )  # fmt: skip
        if trained.digest != state["weights"]:
            raise OptionError(
                f"the weights have the hash {trained.digest}, and the state names {state['weights']!r:.80}"
            )
        return cls(
            task, state["method"], ENCODERS[state["encoder"]].with_state(state["model"]), dict(state["settings"]),
            state["seed"], state["name"], trained, local,
        )  # fmt: skip

    def save(self, path: str | PathLike[str]) -> None:
        """Write one JSON that `metricsmith.load` reads, and beside it the weights as ``<sha256>.safetensors``.

        Parameters
        ----------
        path : path
            A file, or a folder that is to have a ``metric.json``.
        """
        self.write_weights(path)
        write_state(self.to_state(), path)

    def write_weights(self, path: str | PathLike[str]) -> None:
        """Write the weights alone, beside the metric file `path`."""
        self._learned().write(metric_file(path).parent)


def shown_text(output: str, input: str, references: Sequence[str]) -> str:
    r"""The one text of a row that the network reads: the output as it is, then input and references under their names.

    What comes last is cut off first. The context of a row is not read.

    Examples
    --------
    >>> shown_text("Shut.", "Is it closed?", ["Closed."])
    'Shut.\n\nInput: Is it closed?\n\nReference: Closed.'
    """
    parts = [output, *([f"Input: {input}"] if input.strip() else [])]
    return "\n\n".join([*parts, *(f"Reference: {text}" for text in references if text.strip())])
