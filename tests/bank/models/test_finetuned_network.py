"""A finetuned metric on real, tiny encoders: chance, a plant, and what other settings of the machine change."""

from __future__ import annotations

import numpy as np
import pytest

from metricsmith.bank.models import ridge
from metricsmith.bank.models.engine.batching import token_budget
from metricsmith.bank.models.engine.loader import unload
from metricsmith.bank.models.finetuned import FinetunedMetric
from metricsmith.errors import NeedsError
from metricsmith.metric import make_row
from metricsmith.programs.loading import load
from metricsmith.records import Scale, Status, Task
from metricsmith.scoring import score
from metricsmith.stats.correlation import kendall_tau_b

pytestmark = pytest.mark.extras
TASK = Task("", "rating", Scale(-20, 20))
WORDS = "the gate is shut open road notice hall water off on at noon from monday to friday stop bus moved"


def texts(n):
    rng = np.random.default_rng(4)
    return [" ".join(rng.choice(WORDS.split(), rng.integers(3, 25))) for _ in range(n)]


TEXTS = texts(240)


def rated(ratings):
    return [make_row(text, rating=float(rating), group=f"g{place // 2}") for place, (text, rating) in enumerate(
        zip(TEXTS, ratings, strict=True))]  # fmt: skip


def held_out(metric, ratings):
    """Tau-b with the numbers of 160 rows after learning from 80."""
    rows = rated(ratings)
    made = metric.compile(trainset=rows[:80])
    return kendall_tau_b([one.raw for one in made.judge_batch(rows[80:])], ratings[80:])


@pytest.fixture
def metric(tiny):
    return FinetunedMetric(TASK, encoder="minilm", local=tiny("mbert"))


@pytest.fixture
def plant(metric):
    """A direction in the frozen vectors, as numbers of variance 1."""
    vectors = ridge.mean_vectors(metric.model, TEXTS)
    found = (vectors - vectors.mean(0)) / vectors.std(0) @ np.random.default_rng(0).normal(size=vectors.shape[1])
    return (found - found.mean()) / found.std()


def test_near_chance_on_ratings_that_are_drawn_and_near_the_plant_on_those_that_are_planted(metric, plant):
    rng = np.random.default_rng(11)
    drawn = [held_out(metric, 4 * rng.normal(size=240)) for _ in range(20)]
    # the variance of tau without ties and without agreement is 2 (2 n + 5) / (9 n (n - 1)) for n = 160
    assert abs(np.mean(drawn)) < 3 * np.sqrt(2 * 325 / (9 * 160 * 159) / 20)
    assert held_out(metric, 4 * plant) > 0.97
    noisy = plant + 0.5 * rng.normal(size=240)
    assert kendall_tau_b(plant[80:], noisy[80:]) - 0.1 < held_out(metric, 4 * noisy)


def test_a_mean_vector_is_that_of_the_tokens_with_marks_whatever_the_batch(metric):
    from transformers import AutoModel, AutoTokenizer

    place = metric.model.path
    tokenizer, network = AutoTokenizer.from_pretrained(place), AutoModel.from_pretrained(place).eval()
    alone = [network(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0) for text in TEXTS[:20]]
    for budget in (1, 10_000):
        with token_budget(budget):
            found = ridge.mean_vectors(metric.model, TEXTS[:20])
        np.testing.assert_allclose(found, [vector.detach().numpy() for vector in alone], atol=1e-5)


def test_the_same_twice_and_the_same_saved_and_loaded(metric, plant, tmp_path):
    rows = rated(4 * plant)
    made, again = (metric.compile(trainset=rows[:80]) for _ in range(2))
    assert made == again
    made.save(tmp_path)
    unload()
    loaded = load(tmp_path, local={"minilm": metric.model.path})
    assert (loaded, loaded.fingerprint()) == (made, made.fingerprint())
    together, alone = loaded.judge_batch(rows[80:100]), [made.judge_batch([row])[0] for row in rows[80:100]]
    np.testing.assert_allclose([one.raw for one in together], [one.raw for one in alone], atol=1e-5)


def test_a_trained_metric_is_bound_to_the_weights_of_its_encoder(metric, plant, tiny, tmp_path):
    metric.compile(trainset=rated(4 * plant)).save(tmp_path)
    other = load(tmp_path, local={"minilm": tiny("bert_masked")})
    with pytest.raises(NeedsError, match="minilm was made with other weights"):
        score([other], rated(plant)[:2], progress=False)


def test_a_run_keeps_its_numbers_in_a_store_and_skips_what_is_blank(metric, plant, tmp_path):
    made = metric.compile(trainset=rated(4 * plant))
    rows = [*rated(plant)[:5], make_row(" ")]
    tables = [score([made], rows, store=tmp_path / "store.db", progress=False) for _ in range(2)]
    assert tables[0].run().tolist()[:5] == tables[1].run().tolist()[:5]
    assert [one.status for one in tables[0].column(0)] == [Status.OK] * 5 + [Status.SKIPPED]
    assert tables[0].column(0)[0].usage.seconds > 0
