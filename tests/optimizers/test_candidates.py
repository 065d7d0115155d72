"""The candidates that are used, and why."""

from __future__ import annotations

import dspy
import pytest

from gathered import gather
from loopback import scripted
from metricsmith.bank.catalogue import MetricBank, default_bank, family
from metricsmith.errors import HopelessModel, JudgementFailed, NeedsError, OptionError
from metricsmith.metric import make_row
from metricsmith.optimizers.options import Options
from metricsmith.programs.recommenders.base import Recommendation, unscored
from metricsmith.programs.recommenders.bm25 import BM25Recommender
from metricsmith.programs.recommenders.language_model import LMRecommender, PipelineRecommender
from metricsmith.records import Status, Usage
from metricsmith.scoring import score
from metricsmith.testing import GivenModel
from planted import TASK, planted_rows
from stubs import Scripted

BANK = MetricBank((family("levenshtein"), family("rouge"), family("bleu")))
ROWS = planted_rows(sources=8)


@pytest.mark.parametrize(
    ("bank", "rated", "has_lm", "expected"),
    [
        ("auto", 200, False, (True, False)),
        ("auto", 79, True, (False, True)),
        ("auto", 80, True, (True, True)),
        ("existing", 10, True, (True, False)),
        ("generated", 500, True, (False, True)),
        ("all", 10, True, (True, True)),
        ("none", 500, True, (False, False)),
    ],
)
def test_sources_follow_bank_rows_and_model(bank, rated, has_lm, expected):
    plan = Options(bank=bank).resolve(rated, has_lm, has_text=True)
    assert (plan.existing, plan.generated) == expected


def test_the_papers_rule_for_few_rows_is_a_parameter_and_said():
    plan = Options(generated_only_below=10).resolve(10, True, True)
    assert plan.existing
    assert "generated judges only" in Options().resolve(10, True, True).notes[0]


def test_without_a_model_one_line_says_that_nothing_is_generated():
    assert Options().resolve(10, False, True).notes == ("no language model given: nothing is generated",)


def test_without_text_only_columns_remain():
    plan = Options(columns=["a"]).resolve(10, True, has_text=False)
    assert (plan.existing, plan.generated) == (False, False)
    with pytest.raises(NeedsError, match="needs output text"):
        Options(bank="existing").resolve(10, True, has_text=False)


@pytest.mark.parametrize("bank", ["generated", "all"])
def test_judges_without_a_model_are_refused_with_the_way_out(bank):
    with pytest.raises(NeedsError, match="pass --lm MODEL"):
        Options(bank=bank).resolve(100, False, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bank": "exsting"}, "did you mean 'existing'"),
        ({"k": 0}, "at least 1"),
        ({"columns": ["a"], "prior_columns": ["b"]}, "'b' is not among the metric columns"),
    ],
)
def test_sources_without_meaning_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        Options(**options)


def pool(rows=ROWS, has_lm=False, **options):
    sources = Options(metrics=BANK, **options)
    plan = sources.resolve(len(rows), has_lm, True)
    return gather(rows, TASK, sources, plan, BM25Recommender())


def test_the_bank_offers_every_output_and_columns_come_first():
    candidates = pool(columns=["good"], prior_columns=["good"])
    names = [metric.name for metric in candidates.metrics]
    assert names[0] == "good"
    assert {"levenshtein_distance", "bleu", "rouge1_r", "rouge_l_f"} <= set(names)
    assert candidates.declared == {"good"}
    assert not candidates.costly


def test_k_counts_metrics_not_outputs():
    candidates = pool(k=2)
    assert len({metric.card.name for metric in candidates.metrics}) == 2
    assert "retrieval kept 2 of 3 metrics" in candidates.notes


def test_metrics_that_lack_texts_are_left_out_and_said():
    rows = [make_row(f"text {number}", rating=number % 5 + 1) for number in range(10)]
    with pytest.raises(OptionError, match="no candidate metric"):
        pool(rows)
    candidates = gather(
        rows, TASK, Options(metrics=BANK, columns=["x"]), Options().resolve(10, False, True), BM25Recommender()
    )
    assert [metric.name for metric in candidates.metrics] == ["x"]
    assert any("no row has references" in note and "bleu" in note for note in candidates.notes)


def test_generated_judges_are_declared_and_get_names_of_their_own():
    def answer(prompt):
        found = scripted(prompt)
        if "axes" in found:
            found["axes"][0] = {"name": "BLEU", "meaning": "Takes a bank metric's name."}
        return found

    with GivenModel(answer) as server, dspy.context(lm=server.lm()):
        candidates = pool(has_lm=True, bank="all", generators={"criterion": 2})
    assert candidates.judged == {"bleu_2", "plain_words"}
    assert candidates.declared == candidates.judged
    assert candidates.costly
    assert candidates.usage.requests == 1


class Failing:
    """A recommender whose model never answers."""

    def recommend(self, task, cards, k=30):
        raise JudgementFailed("no names in the answer", Status.UNPARSABLE, Usage(requests=2, prompt_tokens=9))


class Refused:
    """A recommender whose model refuses to work."""

    def recommend(self, task, cards, k=30):
        raise HopelessModel("wrong key")


class Picking:
    """A recommender that takes the cards of the names given and says what that cost."""

    def __init__(self, *names):
        self.names = names

    def recommend(self, task, cards, k=30):
        return Recommendation(self.names, unscored(self.names), notes=("picked",), usage=Usage(requests=3))


def retrieved(recommender, **options):
    sources = Options(metrics=BANK, **options)
    return gather(ROWS, TASK, sources, sources.resolve(len(ROWS), False, True), recommender)


def test_where_the_ranking_fails_bm25_stands_in_and_the_requests_count():
    candidates = retrieved(Failing(), k=2)
    plain = retrieved(BM25Recommender(), k=2)
    assert [metric.name for metric in candidates.metrics] == [metric.name for metric in plain.metrics]
    assert candidates.usage == Usage(requests=2, prompt_tokens=9)
    assert any("ranking failed (no names in the answer); BM25's order stands" in note for note in candidates.notes)


def test_where_cards_do_not_fit_the_first_stage_in_force_stands_in():
    name = family("rouge").card.name
    narrow = PipelineRecommender(Picking(name), LMRecommender(max_prompt_tokens=10))
    candidates = retrieved(narrow, k=1)
    assert [metric.name for metric in candidates.metrics] == [output.name for output in family("rouge").card.outputs]
    assert any(note.endswith("Picking's order stands") for note in candidates.notes)


def test_a_ranking_model_that_refuses_to_work_ends_everything():
    with pytest.raises(HopelessModel, match="wrong key"):
        retrieved(Refused(), k=2)


def test_a_pool_that_is_small_enough_is_not_ranked():
    candidates = retrieved(Failing(), k=3)
    assert {metric.card.name for metric in candidates.metrics} == {family.card.name for family in BANK.families}
    assert candidates.usage.requests == 0


def test_what_was_picked_is_kept_with_all_its_outputs_notes_and_cost():
    name = family("rouge").card.name
    candidates = retrieved(Picking(name), k=1)
    assert [metric.name for metric in candidates.metrics] == [output.name for output in family("rouge").card.outputs]
    assert candidates.usage.requests == 3
    assert candidates.notes[-2:] == ("retrieval kept 1 of 3 metrics", "picked")


def test_columns_do_not_count_towards_k():
    candidates = retrieved(Picking(family("bleu").card.name), k=1, columns=["good", "junk"])
    assert [metric.name for metric in candidates.metrics[:2]] == ["good", "junk"]
    assert len(candidates.metrics) > 2


def test_corpus_statistics_are_bound_to_the_training_rows():
    sources = Options(metrics=MetricBank((family("cider"),)))
    (metric, *_) = gather(ROWS, TASK, sources, sources.resolve(9, False, True), BM25Recommender()).metrics
    assert metric.statistics == family("cider").metrics()[0].fit(ROWS).statistics
    assert metric.statistics is not None


def test_judges_of_one_name_are_numbered():
    def same(prompt):
        found = scripted(prompt)
        if "axes" in found:
            found["axes"] = [{"name": name, "meaning": "M."} for name in ("good", "good 2", "Other")]
        return found

    with GivenModel(same) as server, dspy.context(lm=server.lm()):
        candidates = pool(has_lm=True, bank="generated", generators={"criterion": 3}, columns=["good"])
    names = [metric.name for metric in candidates.metrics]
    assert names == ["good", "good_2", "good_2_2", "other"]
    assert candidates.judged == {"good_2", "good_2_2", "other"}


def test_a_column_named_like_a_bank_metric_stands_in_for_it():
    rows = [row.copy(columns={"bleu": 1.0}) for row in ROWS]
    candidates = pool(rows, columns=["bleu"])
    named = [metric for metric in candidates.metrics if metric.name == "bleu"]
    assert [metric.card.kind for metric in named] == ["column"]
    assert "the column 'bleu' stands in for the bank metric of that name" in candidates.notes


@pytest.mark.parametrize(
    ("status", "found"), [(Status.SKIPPED, {"scripted": "25\N{NO-BREAK SPACE}%"}), (Status.REFUSED, {})]
)
def test_only_what_was_skipped_is_missing_for_failures_have_a_gate_of_their_own(status, found):
    judge = Scripted(lambda row, run: status if int(row.id) % 4 == 0 else float(row.id))
    rows = [make_row(f"text {number}", id=str(number)) for number in range(8)]
    table = score([judge, default_bank().get("output_words")], rows, max_failure_rate=1, progress=False)
    assert Options().sparse(table, 8) == found
    assert Options(allow_missing=True).sparse(table, 8) == {}
