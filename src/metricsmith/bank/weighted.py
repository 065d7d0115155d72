"""The table of metrics with weights: names, families with other settings, and which this machine can compute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from typing import Any

from metricsmith.bank.base import BankMetric, Family, Reasoned, TextBatch
from metricsmith.bank.models.engine.loader import check_architecture, device_for, loaded_bytes
from metricsmith.bank.models.engine.memory import free_memory
from metricsmith.bank.models.finetuned import ENCODERS, FinetunedMetric
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.errors import NeedsError, OptionError, nearest

__all__ = [
    "CORPUS_MODELS", "MODELS", "POOLS", "SMALL", "disk_size", "family_of", "lacking", "model_family", "model_name",
    "model_of_metric", "named_function", "named_model", "of_any", "place_name", "plain_metric_name", "refuse_sets",
    "saved_family", "uncomputable", "weighted_names",
]  # fmt: skip

# Names of metrics with weights, as files of the folder `models`, by the engine that runs them.
MODELS: tuple[str, ...] = (
    # encoder
    "bertscore", "infolm", "moverscore", "parascore", "parascore_free", "yisi2",
    # classifier
    "bleurt", "factcc", "toxicity", "sentiment", "summaqa", "lens", "lens_salsa",
    # decoder with a head
    "grm_reward", "inform_reward", "ldl_reward", "math_prm",
    # encoder with decoder
    "bartscore", "unieval_sum", "unieval_dialogue", "unieval_fact",
    # causal language model
    "perplexity",
    # fasttext
    "fasttext_educational", "fasttext_nsfw", "fasttext_toxicity",
)  # fmt: skip
# Those that compare two sets of texts and have no number for a row: `metricsmith.bank.corpus`.
CORPUS_MODELS: tuple[str, ...] = ("mauve",)
POOLS = ("small", "all")  # of metrics with weights, by one word
SMALL = 1.0  # GB on disk: the most that a metric of full_bank("small") rests on


def family_of(metric: Any) -> Family | None:
    """The family of a metric that this machine computes as a bank metric, a trained one included; else None."""
    return metric.family if isinstance(metric, BankMetric | FinetunedMetric) else None


def model_of_metric(metric: Any) -> ModelSpec | None:
    """The published weights that a metric rests on; None for one that needs none."""
    family = family_of(metric)
    return None if family is None else family.model


def lacking(family: Family) -> str:
    """The reason, as a clause, why this machine cannot compute a family; empty where it can."""
    if family.model is None or family.card.checkpoint is None:
        return ""
    if reason := family.model.lacking():
        return reason
    try:
        check_architecture(family.model)
        needed, device = family.card.checkpoint.memory, device_for(family.model)
    except NeedsError as problem:
        return str(problem)
    free = free_memory(device)
    if free is not None:
        free += loaded_bytes(device)  # the loader unloads what is not in use: a pool is the same in every fold
    return f"it needs {needed:.1f} GB, {free / 1e9:.1f} free" if free is not None and free < needed * 1e9 else ""


def uncomputable(families: Iterable[Family]) -> dict[str, list[str]]:
    """The reasons why this machine cannot compute some of `families`, each with their names in our table."""
    found: dict[str, list[str]] = {}
    for family in families:
        if family.model is not None and (why := lacking(family)):
            found.setdefault(of_any(why, family), []).append(family.model.name)
    return found


def of_any(reason: str, family: Family) -> str:
    """A reason whose command is not of one family alone."""
    return reason if family.model is None else reason.replace(f"bank fetch {family.model.name}`", "bank fetch NAME`")


def model_family(name: str, **changes: Any) -> Family:
    """The family of a file of the folder `models`, its `ModelSpec` with other fields and settings.

    ``settings`` among the changes is a mapping of settings, ``entities`` a function for metrics that take one, called
    as the setting ``entities`` says; all others are fields of the spec.
    """
    file = import_module(f"metricsmith.bank.models.{name}")
    settings, entities = dict(changes.pop("settings", {})), changes.pop("entities", None)
    compute, spec = getattr(file, "compute", _no_rows), file.MODEL
    if entities is not None and hasattr(file, "with_entities"):
        compute, spec = file.with_entities(entities, settings.pop("entities", ""))
    spec = replace(spec, **changes).using(**settings)
    card = file.card_for(spec) if hasattr(file, "card_for") else file.CARD
    return Family(card, compute, getattr(file, "statistics", None) if spec.reads_corpus else None, spec)


def named_function(state: Mapping[str, Any]) -> str:
    """The name of the function that the state of a bank metric rests on, its finder of entities; empty for none."""
    return str(state.get("model", {}).get("options", {}).get("entities", ""))


def saved_family(
    known: Family, state: Mapping[str, Any], path: str = "", function: Callable[..., Any] | None = None
) -> Family:
    """A family as the state of one of its metrics says that it was used.

    `path` is where the weights lie, `function` the one that `named_function` names.
    """
    if known.model is None:
        return known
    found = model_family(known.model.name, settings=state["model"]["options"], entities=function, path=path)
    assert found.model is not None
    return replace(found, model=found.model.with_state(state["model"]))


def _no_rows(batch: TextBatch, _: Sequence[str]) -> Reasoned:
    refuse_sets([batch.spec.name])
    raise AssertionError(batch.spec.name)


def model_name(name: str, *others: str) -> str:
    """The name in our table of a metric with weights, by that of its card or an output too; `others` may be suggested.

    Raises
    ------
    OptionError
        If there is none, with the nearest.
    """
    if found := weighted_names().get(plain_metric_name(str(name))):
        return found
    known = (*others, *MODELS, *CORPUS_MODELS)
    raise OptionError(f"no metric {name!r:.60} with weights{nearest(str(name), known)}; they are {', '.join(known)}")


def place_name(name: str) -> str:
    """A name of weights whose place can be given: `model_name`, or an encoder that finetuned metrics rest on."""
    return str(name) if name in ENCODERS else model_name(name, *ENCODERS)


def named_model(name: str) -> ModelSpec | None:
    """The published weights behind a `place_name`."""
    return ENCODERS[name] if name in ENCODERS else model_family(name).model


@lru_cache(maxsize=1)
def weighted_names() -> Mapping[str, str]:
    """Plain names of metrics with weights, of their cards and outputs, to names in our table."""
    known: dict[str, str] = {}
    for one in (*MODELS, *CORPUS_MODELS):
        card = model_family(one).card
        known |= {plain_metric_name(text): one for text in (one, card.name, *(output.name for output in card.outputs))}
    return known


def disk_size(name: str) -> float:
    """GB on disk of the published weights of a metric of the table."""
    return checkpoint.disk if (checkpoint := model_family(name).card.checkpoint) else 0.0


def plain_metric_name(name: str) -> str:
    """A name without case, spaces and marks; a plus is a p."""
    return "".join(character for character in name.casefold().replace("+", "p") if character.isalnum())


def refuse_sets(names: Iterable[str]) -> None:
    """Refuse metrics that compare sets of texts and have no number for a row."""
    for name in names:
        if name in CORPUS_MODELS:
            raise OptionError(
                f"{name} compares sets of texts and has no number for a row: "
                f"metricsmith.bank.corpus.{name}(outputs, references)"
            )
