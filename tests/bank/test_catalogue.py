from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from metricsmith.bank import catalogue, weighted
from metricsmith.bank.catalogue import MODULES, MetricBank, default_bank, full_bank
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.bank.weighted import lacking, model_family
from metricsmith.errors import OptionError
from metricsmith.metric import make_row

BANK = default_bank()


def test_every_family_file_is_in_the_catalogue() -> None:
    folder = Path(catalogue.__file__).parent
    with_family = {path.stem for path in folder.glob("*.py") if "\nCARD = " in path.read_text(encoding="utf-8")}
    assert with_family == set(MODULES)


def test_every_family_that_needs_no_model_is_there_in_order() -> None:
    assert len(BANK.families) == len(MODULES) == 23  # 21 files for the paper's metrics, 2 for length
    assert BANK.names() == [family.card.name for family in BANK.families]
    assert [metric.name for metric in BANK.metrics()] == [
        output.name for family in BANK.families for output in family.card.outputs
    ]


@pytest.mark.parametrize(
    ("name", "found"),
    [("bleu", "bleu"), ("BLEU", "bleu"), ("ROUGE-1 f", "rouge1_f"), ("chrF++", "chrf_pp"), ("chrF", "chrf")],
)
def test_names_are_found_whatever_their_case_and_marks(name: str, found: str) -> None:
    assert BANK.get(name).name == found


def test_a_family_of_several_outputs_names_them() -> None:
    with pytest.raises(OptionError, match=r"family of 12 metrics.*rouge1_p"):
        BANK.get("rouge")


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(OptionError, match="did you mean 'jaro_similarity'"):
        BANK.get("jaro_similarty")
    with pytest.raises(OptionError, match="no metric '!' in the bank"):
        BANK.card("!")


def test_a_card_is_found_by_family_and_by_output() -> None:
    assert BANK.card("ROUGE") is BANK.card("rouge2_r") is BANK.get("rouge_l_p").card


def test_two_families_of_one_name_are_refused() -> None:
    with pytest.raises(OptionError, match="share the name"):
        MetricBank((BANK.families[0], BANK.families[0]))


def test_metrics_that_the_rows_cannot_feed_are_set_apart_with_the_reason() -> None:
    rows = [make_row("a b"), make_row("b c", input="x")]
    usable, unusable = BANK.usable(rows)
    reasons = dict(unusable)
    assert reasons["bleu"] == "no row has references"
    assert reasons["sari"].startswith("no row has") if "sari" in reasons else True
    assert {metric.name for metric in usable} | set(reasons) == {metric.name for metric in BANK.metrics()}
    assert all("references" not in metric.card.needs for metric in usable)
    assert "self_bleu" not in reasons


def test_half_of_the_rows_suffice_unless_told_otherwise() -> None:
    rows = [make_row("a", references=["a"]), make_row("b", references=["b"]), make_row("c"), make_row("d")]
    assert "bleu" not in dict(BANK.usable(rows)[1])
    assert dict(BANK.usable(rows, coverage=0.75)[1])["bleu"] == "only 2 of 4 rows have references"
    assert "bleu" not in dict(BANK.usable(rows, coverage=0.0)[1])


def test_a_bank_prints_in_one_short_line() -> None:
    assert repr(BANK) == "<MetricBank: 23 families, 46 outputs, 0 with weights>"
    assert repr(full_bank("all")) == "<MetricBank: 48 families, 83 outputs, 25 with weights>"


def test_a_misspelt_set_is_told_and_one_among_names_refused() -> None:
    with pytest.raises(OptionError, match="did you mean 'small'"):
        full_bank("smal")
    with pytest.raises(OptionError, match="'all' stands alone"):
        full_bank(["bleurt", "all"])


def test_without_rows_everything_is_usable() -> None:
    assert BANK.usable([])[1] == []


@pytest.mark.parametrize("coverage", [-0.1, 1.1, float("nan")])
def test_a_coverage_that_is_no_share_is_refused(coverage: float) -> None:
    with pytest.raises(OptionError, match="coverage"):
        BANK.usable([], coverage=coverage)


def test_a_card_tells_the_settings_in_force_and_the_memory_that_they_take() -> None:
    settings = {"bertscore": {"layer": 3, "dtype": "bfloat16", "revision": "v2", "idf": True}}
    used, plain = (full_bank(["bertscore"], settings=one).card("bertscore").checkpoint for one in (settings, None))
    assert used is not None
    assert plain is not None
    assert (plain.revision, plain.dtype, plain.memory, plain.settings) == (
        "main",
        "float32",
        1.6,
        "layer 17, tokenizer slow",
    )
    assert (used.revision, used.dtype, used.memory, used.settings) == (
        "v2",
        "bfloat16",
        0.8,
        "layer 3, tokenizer slow, idf True",
    )
    assert "revision v2; layer 3, tokenizer slow, idf True; 1.4 GB on disk, 0.8 GB in memory in bfloat16" in str(used)
    large = model_family("ldl_reward", settings={"dtype": "float32"}).card.checkpoint
    assert large is not None
    assert large.memory == pytest.approx(2 * 54.8)
    dated = model_family("fasttext_nsfw").card.checkpoint
    assert dated is not None
    assert dated.revision == "20230515"


def test_the_memory_that_a_metric_lacks_is_that_of_its_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModelSpec, "lacking", lambda spec: "")
    monkeypatch.setattr(weighted, "check_architecture", lambda spec: None)
    monkeypatch.setattr(weighted, "device_for", lambda spec: "cpu")
    monkeypatch.setattr(weighted, "free_memory", lambda device: 60_000_000_000)
    family = model_family("ldl_reward")
    assert lacking(family) == ""
    model = model_family("ldl_reward", settings={"dtype": "float32"}).model
    assert lacking(replace(family, model=model)) == "it needs 109.6 GB, 60.0 free"


@pytest.mark.parametrize("name", ["infolm", "bleurt", "perplexity", "grm_reward", "fasttext_nsfw"])
def test_a_network_that_is_used_whole_has_no_layer_to_name(name: str) -> None:
    with pytest.raises(OptionError, match=f"{name} has no setting 'layer'"):
        model_family(name, settings={"layer": 2})


def test_a_layer_of_an_encoder_that_is_read_to_its_last_is_saved_and_read() -> None:
    spec = model_family("yisi2", settings={"layer": 2}, weights="5f" * 32).model
    assert spec is not None
    assert model_family("yisi2").model.with_state(spec.to_state()) == spec  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"models": None}, "models=None must be 'small', 'all' or a list of names"),
        ({"models": [3]}, "no metric 3 with weights"),
        ({"local": "a path"}, "local='a path' must be a mapping from the names of metrics to their path"),
        ({"local": {"bertscore": None}}, "must be a mapping from the names of metrics to their path"),
        ({"settings": {"bertscore": 17}}, "must be a mapping from the names of metrics to their settings"),
        ({"settings": {"bertscore": {"lair": 1}}}, "settings are given for bertscore, which models='small' leaves out"),
    ],
)
def test_a_wrong_call_of_the_full_bank_is_answered_in_plain_words(wrong, said):
    with pytest.raises(OptionError, match=said):
        full_bank(**wrong)
