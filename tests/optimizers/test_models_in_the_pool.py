"""Metrics with weights among the candidates: induced, saved, loaded with their places, scored equally."""

from __future__ import annotations

import pytest

from metricsmith.bank.catalogue import MetricBank, default_bank, full_bank
from metricsmith.bank.weighted import MODELS
from metricsmith.errors import NeedsError, OptionError
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.options import Options
from metricsmith.programs.loading import load
from metricsmith.records import MetricCard
from planted import TASK, planted_rows

ABSENT = "left out because weights not on this machine"


class Named:
    """A first stage that keeps the cards that it saw."""

    def __init__(self):
        self.cards = []

    def recommend(self, task, cards, k=30):
        from metricsmith.programs.recommenders.base import Recommendation, unscored

        self.cards, names = list(cards), tuple(card.name for card in cards[:k])
        return Recommendation(names, unscored(names))


@pytest.fixture
def nowhere(tmp_path):
    return {"bertscore": tmp_path / "nowhere"}


def test_the_bank_of_a_run_is_the_default_one_until_models_or_places_are_named(nowhere):
    assert Options().whole_bank is default_bank()
    assert Options(bank_models=["bertscore"]).whole_bank.names()[-1] == "BERTScore"
    assert Options(local=nowhere).whole_bank.names()[-1] == "BERTScore"
    assert len(Options(bank_models="all").whole_bank.families) == len(default_bank().families) + len(MODELS)


def test_a_bank_of_its_own_and_models_exclude_each_other(nowhere):
    for options in ({"bank_models": "all"}, {"local": nowhere}):
        with pytest.raises(OptionError, match="metrics is a bank of its own"):
            Options(metrics=MetricBank(()), **options)


def test_a_misspelt_model_is_refused_before_any_work():
    with pytest.raises(OptionError, match="no metric 'bertscor' with weights"):
        AutoMetrics(bank_models=["bertscor"])


def test_a_name_that_needs_weights_says_which_bank_has_it():
    with pytest.raises(OptionError, match=r"'bertscore_f' needs weights: full_bank\(\['bertscore'\]\) has it"):
        default_bank().get("bertscore_f")
    with pytest.raises(OptionError, match="no metric 'bertscoreff' in the bank"):
        default_bank().get("bertscoreff")


@pytest.mark.parametrize("options", [{"bank_models": ["bertscore"]}, {"metrics": ["bertscore_f"]}, {}])
def test_a_metric_that_is_named_and_whose_weights_are_not_here_is_an_error(nowhere, options):
    with pytest.raises(NeedsError, match=r"bertscore\w*: .*nowhere: no such file or folder"):
        AutoMetrics(TASK, bank="existing", local=nowhere, **options).compile(planted_rows(12))


@pytest.mark.extras
def test_of_a_set_a_metric_whose_weights_are_not_here_is_left_out_and_the_notes_say_why(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    metric = AutoMetrics(TASK, bank="existing", bank_models="all").compile(planted_rows(12))
    assert [note for note in metric.record.notes if note.startswith(f"{ABSENT}: `metricsmith bank fetch NAME`: ")]
    assert not [part for part in metric.components if part.card.checkpoint]
    (line,) = [record.message for record in caplog.records if "left out" in record.message]
    assert line.startswith("25 of 25 metrics with weights are left out: ")
    assert "24 since weights not on this machine: `metricsmith bank fetch NAME`" in line or "25 of" in line


@pytest.mark.parametrize("bank", ["none", "generated"])
def test_models_and_a_bank_without_metrics_exclude_each_other(bank):
    with pytest.raises(OptionError, match=f"bank='{bank}' takes no metric of the bank"):
        AutoMetrics(bank=bank, bank_models="small")


def test_retrieval_can_be_kept_from_the_cards():
    first = Named()
    options = {"bank": "existing", "k": 2, "recommender": first, "n": 1}
    AutoMetrics(TASK, whole_cards=False, **options).compile(planted_rows(12))
    assert {card.to_markdown() for card in first.cards} == {
        f"## {card.name}\n\n{card.summary}\n" for card in first.cards
    }
    AutoMetrics(TASK, **options).compile(planted_rows(12))
    assert all("**Formula**" in card.to_markdown() for card in first.cards)


def test_a_first_stage_takes_the_place_of_bm25():
    first = Named()
    AutoMetrics(TASK, bank="existing", k=2, n=1, first_stage=first).compile(planted_rows(12))
    assert len(first.cards) == len([card for card in first.cards if isinstance(card, MetricCard)]) > 2


def test_the_papers_configuration_says_when_colbert_is_not_here(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    paper = AutoMetrics.paper(TASK)
    assert paper.first_stage is None
    (said,) = paper.remarks
    assert said.startswith("BM25 is the first stage in place of the paper's ColBERT: ")
    assert AutoMetrics.paper(TASK, recommender=Named()).remarks == ()


@pytest.mark.extras
def test_an_induction_with_models_is_saved_loaded_with_their_places_and_scores_equally(tmp_path):
    import tiny_models
    from model_cases import CASES

    names = ("bertscore", "bleurt", "sentiment")
    local = {name: tiny_models.build(CASES[name].checkpoint, tmp_path) for name in names}
    settings = {name: CASES[name].settings for name in local}
    bank = full_bank(list(local), device="cpu", local=local, settings=settings)
    bank = MetricBank(tuple(one for one in bank.families if one.model is not None))
    rows = planted_rows(12)
    metric = AutoMetrics(TASK, metrics=bank, bank="existing", full=True).compile(rows[:27], rows[27:])
    assert {part.family.model.name for part in metric.components} == set(local)
    assert metric.card.cost == "local"
    metric.save(tmp_path / "metric.json")
    text = (tmp_path / "metric.json").read_text("utf-8")
    assert str(next(iter(local.values()))) not in text

    loaded = load(tmp_path / "metric.json", local=local)
    assert loaded.fingerprint() == metric.fingerprint()
    assert [one.raw for one in loaded.judge_batch(rows)] == [one.raw for one in metric.judge_batch(rows)]
    parts = metric.record.components
    at_hand = "weights at hand in place of "
    assert all(part.weights.startswith(f"{at_hand}{bank.get(part.name).family.model.id}, sha256 ") for part in parts)
    assert all(part["model"]["id"].startswith(at_hand) for part in loaded.to_state()["components"])

    other = tmp_path / "other"
    other.mkdir()
    for path in next(iter(local.values())).iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    weights = other / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    moved = load(tmp_path / "metric.json", local={**local, next(iter(local)): other})
    with pytest.raises(
        NeedsError, match=f"{next(iter(local))} was made with other weights: their hash was [0-9a-f]{{64}}"
    ):
        moved.judge_batch(rows)
