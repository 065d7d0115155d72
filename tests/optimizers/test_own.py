"""Candidates of the caller's own: kinds, names, and the fields that they see."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gathered import gather
from metricsmith.bank.catalogue import MetricBank, default_bank, family
from metricsmith.bank.column import ColumnMetric
from metricsmith.datasets.history import HistoricalRating, History
from metricsmith.errors import DataError, ModelFailure, NeedsError, OptionError
from metricsmith.metric import make_row
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.own import from_learning, hidden_fields, own_metrics
from metricsmith.optimizers.specialist import Specialist
from metricsmith.optimizers.splits import RatedRows
from metricsmith.programs.judges.mqm import MQMAnnotator, MQMJudge
from metricsmith.programs.judges.panel import Panel
from metricsmith.programs.judges.parrot import Parrot
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.recommenders.bm25 import BM25Recommender
from metricsmith.records import Output, Scale
from metricsmith.scoring import CallableMetric
from owned import cheats, lost, memory, words
from planted import TASK, planted_rows
from saved import criterion, every_kind, induced
from stubs import Scripted

ROWS = planted_rows(sources=12)


def names(*given):
    return [metric.name for metric in own_metrics(list(given))[1]]


def test_a_bank_alone_takes_the_default_ones_place_and_a_list_adds_candidates():
    bank = MetricBank((family("rouge"),))
    assert own_metrics(None) == (None, ())
    assert own_metrics(bank) == (bank, ())
    assert own_metrics([bank])[0] is None
    assert names(bank) == [metric.name for metric in bank.metrics()]


def test_judges_of_every_family_functions_names_and_panels_are_candidates():
    judge, other = criterion(), criterion("Order")
    assert names(judge, Repeated(judge, 3), words, "rouge1_f", "ROUGE-1 f", ColumnMetric("good")) == [
        "plain_words", "plain_words_rrwa_3", "words", "rouge1_f", "good",
    ]  # fmt: skip
    assert names(Panel([judge, other])) == ["plain_words", "order"]
    assert names(judge.as_metric(), induced([judge]), CallableMetric(words, name="length")) == [
        "plain_words", "induced", "length",
    ]  # fmt: skip
    kinds = {name: kind for name, kind in every_kind().items() if not getattr(kind, "row_examples", None)}
    columns = sum(len(kind.members()) if hasattr(kind, "members") else 1 for kind in kinds.values())
    assert len(names(*kinds.values())) == columns - 1  # one of the panel's two members is there by itself


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (42, "metrics=42 must be a MetricBank, or a list of judges and other metrics, functions of (example, pred)"),
        ("rouge1_f", "metrics='rouge1_f' must be a MetricBank, or a list"),
        (words, "must be a MetricBank, or a list"),
        ([criterion(), 42], "metrics[1]=42 cannot be a candidate; allowed are judges"),
        ([type(criterion())], "metrics[0]=<class"),
        (["rouge1_g"], "no metric 'rouge1_g' in the bank (did you mean 'rouge1_"),
        (["ROUGE"], "is a family of"),
        ([lambda example, pred: 1], "metrics[0] is a lambda, which has no name to be saved under: CallableMetric(f, n"),
        ([lambda example: 1], "cannot be called as (example, pred)"),
        ([Scripted()], "cannot be kept in a metric file: kind: not allowed is 'scripted'"),
    ],
)
def test_anything_else_is_refused_by_the_constructor(given, message):
    with pytest.raises(OptionError, match=re.escape(message)):
        AutoMetrics(TASK, metrics=given)


def pool(own, rows=ROWS, has_lm=False, **options):
    sources = Options(metrics=own, **options)
    return gather(rows, TASK, sources, sources.resolve(len(rows), has_lm, True), BM25Recommender())


def test_own_candidates_are_kept_whatever_the_number_of_rows_and_whatever_retrieval_keeps():
    few = Options(metrics=[words, "rouge1_f"], generators={})
    plan = few.resolve(10, True, True)
    assert not plan.existing
    assert [m.name for m in gather(ROWS, TASK, few, plan, BM25Recommender()).metrics] == ["words", "rouge1_f"]
    candidates = pool([words, criterion(), "rouge1_f"], bank="existing", k=1)
    found = [metric.name for metric in candidates.metrics]
    assert found[:3] == ["words", "plain_words", "rouge1_f"]
    assert found.count("rouge1_f") == 1
    assert len({metric.card.name for metric in candidates.metrics[3:]}) == 1


def test_judges_count_as_declared_and_functions_and_bank_metrics_do_not():
    kinds = every_kind()
    own = [criterion(), Repeated(criterion("Order"), 2), kinds["dna_eval"], kinds["mqm_judge"], words, "rouge1_f"]
    candidates = pool(own, bank="none")
    assert candidates.judged == {metric.name for metric in own[:4]}
    # errors per segment count down: the number is no better for being higher
    higher = {metric.name for metric in own[:4] if metric.output.higher_is_better}
    assert candidates.declared == higher >= {"plain_words", "order_rrwa_2"}
    assert candidates.own == {metric.name for metric in candidates.metrics}


def test_names_that_are_taken_get_a_number_at_any_number_of_rows():
    def rouge1_f(example, pred):
        return 0.5

    judge = criterion("Good")
    candidates = pool(
        [rouge1_f, judge, criterion("Good").with_examples(ROWS[:2], [1, 2])], bank="none", columns=["good"]
    )
    assert [metric.name for metric in candidates.metrics] == ["good", "rouge1_f_2", "good_2", "good_3"]
    assert "your metric 'rouge1_f' is called 'rouge1_f_2' here: something else has its name" in candidates.notes
    assert judge.name == "good"  # the caller's object is left alone
    assert candidates.metrics[1].judge_batch(ROWS[:1])[0].metric == "rouge1_f_2"
    assert pool(["rouge1_f"], bank="none", columns=["rouge1_f"]).metrics == (ColumnMetric("rouge1_f"),)


def test_what_cannot_be_renamed_keeps_its_name_wherever_it_stands():
    judge = criterion()
    candidates = pool([judge, Panel([judge, criterion("Order")])], bank="none")
    assert [metric.name for metric in candidates.metrics] == ["plain_words_2", "plain_words", "order"]


def test_two_metrics_of_one_name_that_cannot_be_renamed_are_refused():
    with pytest.raises(OptionError, match="two candidates are called 'induced', and a InducedMetric cannot be renamed"):
        pool([induced([criterion()]), induced([criterion("Order")])], bank="none")


def test_a_bank_metric_is_fitted_to_the_training_rows_and_left_out_where_they_cannot_feed_it():
    candidates = pool(["cider"], bank="none")
    assert candidates.metrics[0].statistics == default_bank().get("cider").fit(ROWS).statistics
    bare = [make_row(row.output, rating=row["rating"]) for row in ROWS]
    candidates = pool(["rouge1_f", "output_words"], rows=bare, bank="none")
    assert [metric.name for metric in candidates.metrics] == ["output_words"]
    assert "left out because no row has references: rouge1_f" in candidates.notes


def test_own_metrics_need_texts():
    with pytest.raises(NeedsError, match="your metric 'words' needs output text"):
        Options(metrics=[words], columns=["good"]).resolve(10, False, has_text=False)
    assert not Options(metrics=[ColumnMetric("good")]).resolve(10, False, has_text=False).existing


def labelled(**labels):
    return [row.copy(**{name: values(row) for name, values in labels.items()}) for row in ROWS]


def test_what_the_rating_follows_from_is_hidden_and_other_labels_are_not():
    rows = labelled(
        twice=lambda row: 2 * row["rating"],
        upside=lambda row: -round(row["rating"], 1),
        rater=lambda row: "A",
        reason=lambda row: "too long",
        gold=lambda row: "yes" if len(row.output) % 2 else "no",
        words=lambda row: len(row.output.split()),
        system=lambda row: row.id[-1],
    )
    assert hidden_fields(rows, TASK) == {"rating", "twice", "upside", "rater", "raters", "ratings", "reason", "reasons"}
    stars = [row.copy(rating=float(1 + number % 3), verdict=["bad", "fair", "good"][number % 3]) for number, row in
             enumerate(ROWS)]  # fmt: skip
    assert "verdict" in hidden_fields(stars, TASK)


def test_a_function_that_reads_the_rating_raises_and_is_dropped_with_the_reason():
    metric = AutoMetrics(TASK, metrics=[cheats, lost], bank="none").compile(ROWS)
    assert [component.name for component in metric.components] == ["lost"]
    assert (
        "cheats is dropped: at least 8 of its 36 judgements failed, more than the 20% that are allowed, such as: the "
        "function cheats raised KeyError: 'rating'; hidden from it: rating"
    ) in metric.record.warnings
    with pytest.raises(ModelFailure, match=r"the function cheats raised KeyError: 'rating'.* no metric is left"):
        AutoMetrics(TASK, metrics=[cheats], bank="none").compile(ROWS)


def reads(name):
    def function(example, pred):
        return example[name]

    function.__name__ = f"reads_{name}"
    return function


def test_labels_that_make_up_the_rating_are_hidden_and_others_are_read():
    rows = labelled(first=lambda row: len(row.output) % 5, easy=lambda row: len(row.input) % 3)
    rows = [row.copy(second=2 * row["rating"] - row["first"]) for row in rows]  # the rating is the mean of the two
    assert hidden_fields(rows, TASK) >= {"first", "second"}
    assert "easy" not in hidden_fields(rows, TASK)
    metric = AutoMetrics(TASK, metrics=[reads("first"), reads("easy"), lost], bank="none", fidelity=1.0).compile(rows)
    assert {component.name for component in metric.components} == {"reads_easy", "lost"}
    assert any("reads_first raised KeyError" in warning for warning in metric.record.warnings)


def starred(count=36):
    """Rows with ratings from 1 to 5, of which the output has as many words."""
    return [
        make_row("word " * (1 + number % 5), input=f"Question {number}", group=f"g{number}", rating=1.0 + number % 5)
        for number in range(count)
    ]


def test_a_functions_numbers_stop_the_run_where_they_are_the_rating_unless_that_is_allowed():
    with pytest.raises(DataError, match="candidate column 'words' puts the rows in the order of 'rating', ties includ"):
        AutoMetrics(TASK, metrics=[words, lost], bank="none").compile(starred())
    allowed = AutoMetrics(TASK, metrics=[words], bank="none", allow_columns=["words"]).compile(starred())
    assert [component.name for component in allowed.components] == ["words"]
    with pytest.raises(OptionError, match=r"names 'word' \(did you mean 'words'\?\)"):
        AutoMetrics(TASK, metrics=[words], bank="none", allow_columns=["word"]).compile(starred())
    few = AutoMetrics(TASK, metrics=[words], bank="none").compile(starred(12))
    assert "agree with 'rating' as only copies of it do (tau-b): 'words' (+1.000)" in few.record.warnings[0]


def test_a_function_and_a_column_stop_the_run_where_both_make_up_the_rating():
    rows = [row.copy(columns={"rest": 2 * row["rating"] - len(row.output.split())}) for row in ROWS]
    with pytest.raises(DataError, match="'rest', 'words' make up 'rating': it is, row by row, their mean"):
        AutoMetrics(TASK, metrics=[words], columns=["rest"], bank="none").compile(rows)


def test_judges_of_ones_own_are_never_stopped():
    judge, rows = memory(), starred()
    judge.judge.demos = memory(rows).judge.demos
    metric = AutoMetrics(TASK, metrics=[judge], bank="none").compile(rows)
    assert [component.name for component in metric.components] == ["memory"]


def test_a_function_stays_blind_when_the_metric_is_used(tmp_path):
    def peeps(example, pred):
        return example.get("rating", lost(example, pred))

    metric = AutoMetrics(TASK, metrics=[peeps], bank="none").compile(ROWS)
    unrated = [row.without("rating") for row in ROWS]
    assert [one.raw for one in metric.judge_batch(ROWS)] == [one.raw for one in metric.judge_batch(unrated)]
    metric.save(tmp_path / "metric.json")
    from metricsmith.programs.loading import load

    again = load(tmp_path / "metric.json", functions={"peeps": peeps})
    assert [one.raw for one in again.judge_batch(ROWS)] == [one.raw for one in metric.judge_batch(ROWS)]
    assert again.fingerprint() == metric.fingerprint()
    assert metric.fingerprint() in metric.record.signature


def test_dspy_calls_a_function_with_the_new_output(tmp_path):
    import dspy

    metric = AutoMetrics(TASK, metrics=[CallableMetric(lost, output=Output("lost", 0, 1))], bank="none").compile(ROWS)
    reward = metric.as_metric(output="answer")
    best, worst = ROWS[0].references[0], "nothing of it"
    assert reward(ROWS[0], dspy.Prediction(answer=best)).score > reward(ROWS[0], dspy.Prediction(answer=worst)).score
    assert not reward.failures


def test_a_group_is_learned_from_where_one_of_its_rows_is():
    judge = memory([ROWS[0], ROWS[4]])
    rated = RatedRows.of(ROWS, "rating")
    np.testing.assert_array_equal(np.flatnonzero(from_learning(judge, rated)), [0, 1, 2, 3, 4, 5])
    assert not from_learning(memory(), rated).any()


def test_a_specialist_is_no_candidate_and_the_error_says_why():
    ratings = [
        HistoricalRating(f"source {s}", name, f"output {s} {name}", "r", -1.0, ())
        for s in range(2)
        for name in ("A", "B")
    ]
    history = History(tuple(ratings), scale=Scale(-25, 0))
    annotator = MQMAnnotator(source_language="English", target_language="German", worked_example=False, context="none")
    specialist = Specialist().compile(annotator, history)
    for one in (specialist, MQMJudge.of(specialist, runs=2), Specialist().compile(Parrot(), history)):
        with pytest.raises(OptionError, match="is a specialist, which judges outputs on the sources of its history"):
            own_metrics([one])
