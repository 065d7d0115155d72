"""LENS against its formula written out for one complex text, output and reference at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest

import reward_loop
from metricsmith.bank.base import judge_family
from metricsmith.bank.weighted import model_family
from metricsmith.errors import NeedsError
from metricsmith.metric import make_row
from metricsmith.records import Status
from model_cases import tiny_family

pytestmark = pytest.mark.extras
COMPLEX = "The committee rejected the plan by 9 votes to 4."
ROWS = [
    ("No.", COMPLEX, ["They said no.", "The plan was rejected by nine of thirteen people in the committee."]),
    ("The committee did not want the plan, and most people said no to it.", COMPLEX, ["No plan."]),
    ("Light is fast.", "Light travels about 300,000 kilometres in one second.", ["Light is very fast.", " "]),
    ("Long. " * 60, COMPLEX, ["A long text. " * 40]),
]


def vector(path, text: str, *, layer_norm: bool):
    """The mean vector of one lower-cased text, cut at 62 of 64 places."""
    import torch
    from transformers import AutoTokenizer, RobertaConfig, RobertaModel

    tensors = reward_loop.weights(path)
    module = RobertaModel(RobertaConfig.from_pretrained(path), add_pooling_layer=False).eval()
    prefix = "encoder.model."
    module.load_state_dict({k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)})
    ids = AutoTokenizer.from_pretrained(path)(text.lower(), truncation=True, max_length=62)["input_ids"]
    with torch.inference_mode():
        layers = module(torch.tensor([ids]), output_hidden_states=True).hidden_states
    shares = torch.cat([tensors[f"layerwise_attention.scalar_parameters.{n}"] for n in range(3)]).softmax(0)
    mixed = 0
    for share, layer in zip(shares, layers, strict=True):
        wide = layer[0].double()
        spread = ((wide - wide.mean()) ** 2).mean().sqrt()
        mixed = mixed + share * ((wide - wide.mean()) / spread if layer_norm else wide)
    return tensors["layerwise_attention.gamma"] * mixed.mean(0)


def written_out(path, row, *, layer_norm: bool = True) -> list[float]:
    import torch

    tensors = {name: tensor.double() for name, tensor in reward_loop.weights(path).items()}
    output, source = (vector(path, text, layer_norm=layer_norm) for text in row[:2])
    found = []
    for text in filter(str.strip, row[2]):
        reference = vector(path, text, layer_norm=layer_norm)
        beside = [output * reference, (output - reference).abs(), output * source, (output - source).abs()]
        features = torch.cat([source, output, reference, *beside])
        hidden = reward_loop.linear(tensors, "estimator.ff.0", features).tanh()
        found.append(reward_loop.linear(tensors, "estimator.ff.3", hidden).item())
    return found


def raws(family, rows=ROWS) -> list[float | None]:
    examples = [make_row(output, input=source, references=references) for output, source, references in rows]
    return [one.raw for one in judge_family(family.metrics(), examples)[0]]


@pytest.mark.parametrize("layer_norm", [True, False])
@pytest.mark.parametrize("rescale", [True, False])
def test_a_batch_equals_the_formula_and_the_best_reference_counts(rescale, layer_norm, tiny, tiny_folder):
    numbers = [written_out(tiny("lens"), row, layer_norm=layer_norm) for row in ROWS]
    assert np.ptp(numbers[0]) > 1e-3  # the two references disagree
    best = [max(found) for found in numbers]
    expected = [50 * (math.erf(z / math.sqrt(2)) + 1) if rescale else 100 * z for z in best]
    found = raws(tiny_family("lens", tiny, tiny_folder, rescale=rescale, layer_norm=layer_norm))
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-4)


def test_without_rescale_numbers_have_no_ends_on_the_card(tiny, tiny_folder):
    output = tiny_family("lens", tiny, tiny_folder, rescale=False).card.outputs[0]
    assert (output.low, output.high) == (None, None)
    assert output.score(-50) < output.score(0) == 0.5 < output.score(100) == 0.75 < output.score(200)


def test_case_does_not_count(tiny, tiny_folder):
    family = tiny_family("lens", tiny, tiny_folder)
    shouted = [(output.upper(), source.upper(), [text.upper() for text in refs]) for output, source, refs in ROWS]
    assert raws(family, shouted) == raws(family)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("", COMPLEX, ["No."]), "the output is empty"),
        (("No.", " ", ["No."]), "the input is empty"),
        (("No.", COMPLEX, [" ", ""]), "every reference is empty"),
    ],
)
def test_undefined_rows_are_skipped_with_their_reason(row, reason, tiny, tiny_folder):
    family = tiny_family("lens", tiny, tiny_folder)
    for rows in ([row], [row, ROWS[0]]):
        examples = [make_row(output, input=source, references=references) for output, source, references in rows]
        found = judge_family(family.metrics(), examples)[0]
        assert (found[0].status, found[0].error) == (Status.SKIPPED, reason)
    assert found[1].raw == pytest.approx(raws(family)[0], abs=1e-4)


def test_the_checkpoint_of_the_other_lens_is_refused(tiny):
    for name, other in (("lens", "lens_salsa"), ("lens_salsa", "lens")):
        with pytest.raises(NeedsError, match="size mismatch"):
            raws(model_family(name, path=str(tiny(other)), device="cpu"))
