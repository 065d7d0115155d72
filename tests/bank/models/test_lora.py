"""LoRA learns what can be learned, keeps the best step by whole groups, and repeats to the bit."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

import tiny_texts
from metricsmith.bank.models import lora
from metricsmith.bank.models.engine.adapter import adapted, training
from metricsmith.bank.models.engine.batching import token_budget
from metricsmith.bank.models.engine.loader import network, unload
from metricsmith.bank.models.finetuned import FinetunedMetric
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.bank.models.trained import RatedTexts
from metricsmith.errors import DataError, ModelFailure, OptionError, StateError
from metricsmith.metric import make_row
from metricsmith.programs.loading import load
from metricsmith.records import Scale, Task

pytestmark = pytest.mark.extras
SETTINGS = {name: one.default for name, one in lora.SETTINGS.items()}
FAST = {**SETTINGS, "steps": 40, "rate": 5e-3, "warm_up": 4}


def rated(count: int, first: int = 0) -> RatedTexts:
    """Texts that begin with "good" or "bad", four of a group, and that word as their number: mean 0, variance 1."""
    plain = tiny_texts.sentences(first + count)[first:]
    good = np.array([place * 7 % 5 < 2 for place in range(count)])
    texts = [f"{'good' if one else 'bad'} {text}" for one, text in zip(good, plain, strict=True)]
    return RatedTexts(texts, (good - good.mean()) / good.std(), [f"g{first + place // 4}" for place in range(count)])


@pytest.fixture(scope="module")
def spec(tiny):
    """ModernBERT's spec from the checkpoint `modernbert`, or any other by its name."""

    def make(checkpoint: str = "modernbert") -> ModelSpec:
        return ModelSpec(name=checkpoint, id="made/here", head="encoder", path=str(tiny(checkpoint)), device="cpu")

    return make


@pytest.fixture(scope="module")
def learned(spec):
    return lora.train(rated(80), spec(), FAST, seed=3)


def squared_error(rows: RatedTexts, spec: ModelSpec, weights) -> float:
    return float(np.square(lora.predict(rows.texts, spec, weights, SETTINGS) - rows.numbers).mean())


def kept_step(caplog) -> list[int]:
    """The step that was kept, and the last that ran, of the last training."""
    words = [record.message.split() for record in caplog.records if "is kept" in record.message][-1]
    return [int(words[place]) for place in (2, 4)]


def test_the_error_falls_by_far_more_than_half_also_on_new_groups(spec, learned):
    start = lora.train(rated(80), spec(), {**FAST, "steps": 1, "rate": 1e-7}, seed=3)
    for rows in (rated(80), rated(40, first=100)):
        assert squared_error(rows, spec(), start) > 0.8
        assert squared_error(rows, spec(), learned) < 0.4


def test_training_repeats_to_the_bit_and_leaves_the_callers_torch_as_it_was(spec, learned, capfd):
    import torch

    unload()  # what a new layer is filled with when the network is loaded must play no part
    torch.manual_seed(99)
    state = torch.get_rng_state()
    torch.set_num_threads(2)
    try:
        again = lora.train(rated(80), spec(), FAST, seed=3)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert torch.equal(torch.get_rng_state(), state)
    assert learned.keys() == again.keys()
    assert all(array.tobytes() == again[name].tobytes() for name, array in learned.items())
    lora.predict(rated(4).texts, spec(), again, SETTINGS)
    assert torch.equal(torch.get_rng_state(), state)
    assert capfd.readouterr() == ("", "")


def test_another_seed_trains_another_network(spec):
    short = {**FAST, "steps": 2}
    one, other = (lora.train(rated(40), spec("bert_masked"), short, seed=seed) for seed in (0, 1))
    assert all((array != other[name]).any() for name, array in one.items() if name.endswith("weight"))


def test_training_runs_on_one_thread_whatever_the_environment_says(spec, monkeypatch):
    import torch

    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    torch.set_num_threads(2)
    try:
        with training(torch.device("cpu"), 0):
            assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(1)


def test_a_batch_gives_the_numbers_of_its_texts_alone_and_shuffled(spec, learned):
    texts = [*rated(30).texts, "", " good ", "bad " * 400]
    numbers = lora.predict(texts, spec(), learned, SETTINGS)
    alone = [lora.predict([text], spec(), learned, SETTINGS)[0] for text in texts]
    order = np.random.default_rng(0).permutation(len(texts))
    shuffled = lora.predict([texts[place] for place in order], spec(), learned, SETTINGS)
    assert np.abs(numbers - alone).max() < 1e-6
    assert np.abs(numbers[order] - shuffled).max() < 1e-6
    assert np.ptp(numbers) > 1
    assert lora.predict([], spec(), learned, SETTINGS).shape == (0,)


def test_a_network_without_half_of_its_head_learns_it_whole(spec):
    weights = lora.train(rated(40), spec("bert_masked"), {**FAST, "steps": 30, "rate": 1e-2}, seed=0)
    assert {name for name in weights if ".lora_" not in name} == {
        "bert.pooler.dense.weight", "bert.pooler.dense.bias", "classifier.weight", "classifier.bias",
    }  # fmt: skip
    assert squared_error(rated(40), spec("bert_masked"), weights) < 0.5


@pytest.mark.parametrize(("share", "groups"), [(0.01, 1), (0.2, 4), (0.5, 10)])
def test_whole_groups_are_held_out_and_nothing_is_lost(share, groups):
    rows = rated(80)
    inside, outside = lora._held_out(rows, share, np.random.default_rng(0))
    assert len(set(outside.groups)) == groups
    assert not set(inside.groups) & set(outside.groups)
    both = [*zip(*inside, strict=True), *zip(*outside, strict=True)]
    assert sorted(both) == sorted(zip(*rows, strict=True))
    assert len(outside.texts) == 4 * groups


def test_the_valset_chooses_the_step_and_ends_the_training(spec, caplog):
    caplog.set_level(logging.INFO, "metricsmith.bank")
    rows, other = rated(40), rated(20, first=100)
    settings = {**FAST, "steps": 60, "patience": 20}
    lora.train(rows, spec("bert_masked"), settings, 0, other._replace(numbers=-other.numbers))
    assert kept_step(caplog) == [10, 30]  # the more is learned the worse, so the first look was the best
    lora.train(rows, spec("bert_masked"), {**settings, "patience": 200}, 0, other)
    kept, last = kept_step(caplog)
    assert kept > 10
    assert last == 60


def test_the_kept_weights_are_those_of_the_best_step(spec):
    rows, other = rated(40), rated(20, first=100)
    reverse = other._replace(numbers=-other.numbers)
    best = lora.train(rows, spec("bert_masked"), {**FAST, "steps": 60}, 0, reverse)
    last = lora.train(rows, spec("bert_masked"), {**FAST, "steps": 60, "held_out": 0.0}, 0)
    assert squared_error(reverse, spec("bert_masked"), best) < squared_error(reverse, spec("bert_masked"), last) - 0.5


def test_one_group_cannot_be_held_out_but_may_be_learned_whole(spec):
    rows = rated(8)._replace(groups=["g"] * 8)
    with pytest.raises(DataError, match="the rows make 1 group, of which none can be held out: give a valset, or held"):
        lora.train(rows, spec("bert_masked"), {**FAST, "steps": 1}, seed=0)
    assert lora.train(rows, spec("bert_masked"), {**FAST, "steps": 1, "held_out": 0.0}, seed=0)


@pytest.mark.parametrize("where", ["training", "validation"])
def test_an_error_that_is_no_number_ends_the_training(where, spec):
    rows, other = rated(40), rated(8, first=100)
    broken = (rows if where == "training" else other).numbers
    broken[0] = math.nan
    step = 1 if where == "training" else 10
    with pytest.raises(ModelFailure, match=rf"bert_masked: the error .* nan at step {step}, .* below 0\.005 may help"):
        lora.train(rows, spec("bert_masked"), {**FAST, "batch": 40}, 0, other)


def test_the_papers_settings_train_next_to_nothing_on_80_rows_and_say_so(spec, caplog):
    assert set(lora.PAPER) <= set(lora.SETTINGS)
    paper = {**SETTINGS, **lora.PAPER}
    assert (paper["rank"], paper["rate"], paper["batch"], paper["epochs"], paper["warm_up"]) == (16, 5e-5, 16, 3, 20)
    start = lora.train(rated(80), spec(), {**paper, "epochs": 1, "rate": 1e-7}, seed=3)
    caplog.clear()
    weights = lora.train(rated(80), spec(), paper, seed=3)
    assert "all 12 steps lie within the warm-up of 20: little is learned" in caplog.text  # 64 rows are not held out
    before, after = (squared_error(rated(80), spec(), one) for one in (start, weights))
    assert 0.95 * before < after
    caplog.clear()
    lora.train(rated(80), spec("bert_masked"), paper, 3, rated(4, first=100))
    assert "all 15 steps lie" in caplog.text


def test_an_epoch_has_every_row_once_and_ends_with_a_smaller_batch():
    batches = list(lora._batches(10, 4, 6, np.random.default_rng(0)))
    assert [len(batch) for batch in batches] == [4, 4, 2, 4, 4, 2]
    epochs = [[*chain(*batches[:3])], [*chain(*batches[3:])]]
    assert [sorted(epoch) for epoch in epochs] == [list(range(10))] * 2
    assert epochs[0] != epochs[1]


def test_the_rate_rises_evenly_and_falls_as_a_cosine():
    shares = [lora._share_of_rate(step, 14, 4) for step in range(15)]
    assert shares[:5] == [0.25, 0.5, 0.75, 1, 1]  # by hand
    assert shares[9] == pytest.approx(0.5)
    assert shares[14] == pytest.approx(0)
    assert lora._share_of_rate(14, 15, 20) == 0.75


def test_the_gradient_does_not_depend_on_how_a_batch_is_cut(spec):
    examples = lora._Examples(spec("bert_masked"), rated(12))
    found = []
    with training(examples.device, 0):
        for tokens in (1, 10_000):
            with token_budget(tokens), training(examples.device, 0):
                module, weights = adapted(examples.loaded, 4)
                error = examples.error(module, range(12), learn=True)
            found.append((error, {name: weight.grad for name, weight in weights.items()}))
    (one, alone), (other, together) = found
    assert one == pytest.approx(other, rel=1e-5)
    for name, gradient in alone.items():
        assert np.allclose(gradient, together[name], atol=1e-5), name
        assert name.endswith("lora_A.weight") or gradient.abs().max() > 0


def test_half_precision_is_not_trained(spec):
    with pytest.raises(OptionError, match="dtype='bfloat16' must be 'float32' to be trained by lora"):
        lora.train(rated(8), replace(spec(), dtype="bfloat16"), SETTINGS, seed=0)


def test_arrays_that_no_training_gives_are_refused(spec, learned):
    half = next(name for name in learned if ".lora_A." in name)
    array = learned[half]
    for wrong in (
        {"classifier.weight": array},
        {**learned, half: array[:3]},
        {**learned, half: array[0]},
        {name: one for name, one in learned.items() if name != half.replace("lora_A", "lora_B")},
        {**learned, half: np.zeros((10**6, 0), np.float32)},
    ):
        with pytest.raises(StateError, match="do not fit the network"):
            lora.predict(["good"], spec(), wrong, SETTINGS)


def test_weights_of_another_network_are_refused(spec, learned):
    with pytest.raises(StateError, match=r"learned weights, such as .* do not fit the network of .*bert_masked"):
        lora.predict(["good"], spec("bert_masked"), learned, SETTINGS)
    with pytest.raises(StateError, match="do not fit"):
        lora.predict(["good"], spec(), {**learned, "other.weight": np.ones(3, np.float32)}, SETTINGS)


def test_the_network_is_the_one_that_the_loader_has(spec, learned):
    import torch

    loaded = network(lora._Examples(spec(), rated(4)).spec)
    before = {name: weight.clone() for name, weight in loaded.module.state_dict().items()}
    lora.train(rated(8), spec(), {**FAST, "steps": 2}, seed=0)
    lora.predict(rated(4).texts, spec(), learned, SETTINGS)
    after = loaded.module.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(weight, after[name]) for name, weight in before.items())


def test_a_finetuned_metric_comes_back_from_its_files_with_its_numbers(tiny, tmp_path):
    path, rows = str(tiny("modernbert")), rated(40)
    examples = [make_row(text, quality=int(number > 0), group=group) for text, number, group in zip(*rows, strict=True)]
    task = Task("Grade a text.", "quality", Scale(0, 1))
    settings = {"steps": 20, "rate": 5e-3, "warm_up": 4}
    metric = FinetunedMetric(task, "lora", settings=settings, local=path).compile(examples)
    metric.save(tmp_path / "metric.json")
    unload()
    again = load(tmp_path / "metric.json", local={"modernbert_base": path})
    assert again.fingerprint() == metric.fingerprint()
    numbers = [[one.raw for one in each.judge_batch(examples)] for each in (metric, again)]
    assert np.abs(np.subtract(*numbers)).max() < 1e-6
    assert np.corrcoef(numbers[0], rows.numbers)[0, 1] > 0.8
    assert "adapters" in metric.card.formula


def test_a_setting_out_of_its_range_is_refused():
    task = Task("Grade a text.", "quality", Scale(0, 1))
    for name, value in (("rank", 0), ("rate", 1.0), ("batch", 0), ("steps", 0), ("held_out", 0.9), ("dropout", 1.0)):
        with pytest.raises(OptionError, match=f"{name}={value} must lie from "):
            FinetunedMetric(task, "lora", settings={name: value})
    with pytest.raises(OptionError, match=r"steps=2\.5 must be a whole number"):
        FinetunedMetric(task, "lora", settings={"steps": 2.5})
    assert FinetunedMetric(task, "lora", settings=lora.PAPER)
