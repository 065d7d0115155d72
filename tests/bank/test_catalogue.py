from __future__ import annotations

from pathlib import Path

import pytest

from metricsmith.bank import catalogue
from metricsmith.bank.catalogue import MODULES, MetricBank, default_bank
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


def test_without_rows_everything_is_usable() -> None:
    assert BANK.usable([])[1] == []


@pytest.mark.parametrize("coverage", [-0.1, 1.1, float("nan")])
def test_a_coverage_that_is_no_share_is_refused(coverage: float) -> None:
    with pytest.raises(OptionError, match="coverage"):
        BANK.usable([], coverage=coverage)
