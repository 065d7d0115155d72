"""The optimiser: what its arguments set, and which rows it takes."""

from __future__ import annotations

import json
import math
import re
from importlib.resources import files

import dspy
import pytest

from loopback import scripted, serve
from metricsmith.bank.catalogue import MetricBank, family
from metricsmith.bank.weighted import weighted_names
from metricsmith.errors import DataError, OptionError
from metricsmith.metric import make_row
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.options import DEFAULT_POOL
from metricsmith.optimizers.splits import split_rated
from metricsmith.programs.loading import load
from metricsmith.scoring import Budget
from metricsmith.testing import GivenAnswer
from panels import panelled
from planted import TASK, planted_rows

ROWS = planted_rows(sources=12)
BANK = MetricBank((family("levenshtein"), family("rouge"), family("bleu")))


def optimizer(**options):
    return AutoMetrics(TASK, bank="none", columns=["good", "junk"], **options)


def banked(**options):
    return AutoMetrics(metrics=BANK, **options)


def test_every_argument_reaches_the_options():
    options = AutoMetrics(
        TASK, k=7, n=3, fidelity=0.9, regression="pls", bank="all", generators={"rubric": 2}, columns=["a", "b"],
        prior_columns=["b"], concurrency=4, max_failure_rate=0.5, progress=True, generated_only_below=12, seed=9,
        budget=Budget(requests=3),
    )  # fmt: skip
    fit = options.fit
    assert (options.k, options.bank, options.generators) == (7, "all", {"rubric": 2})
    assert (options.columns, options.prior_columns, options.generated_only_below) == (("a", "b"), ("b",), 12)
    assert (fit.n, fit.fidelity, fit.regression, fit.seed) == (3, 0.9, "pls", 9)
    assert (options.concurrency, options.max_failure_rate, options.progress, options.seed) == (4, 0.5, True, 9)
    assert options.budget == Budget(requests=3)


def test_the_defaults_are_the_documented_ones():
    options = AutoMetrics()
    assert (options.bank, options.k, options.generated_only_below) == ("auto", 30, 80)
    assert dict(options.generators) == dict(DEFAULT_POOL)
    assert dict(DEFAULT_POOL) == {"criterion": 10, "rubric": 5, "examples": 1, "tuned": 1}
    assert (options.fit.regression, options.fit.n, options.fit.fidelity) == ("auto", None, None)
    assert (options.max_failure_rate, options.seed) == (0.2, 0)


@pytest.mark.parametrize("missing", [None, math.nan])
def test_rows_without_a_rating_are_left_out_of_the_fit_and_scored(missing):
    rows = [row.copy(rating=missing) if number % 4 == 0 else row for number, row in enumerate(ROWS)]
    rated, unrated = split_rated(rows, TASK)
    assert (len(rated), len(unrated)) == (27, 9)
    metric = optimizer(regression="pls").compile(rows)
    assert metric.record.rows == {"rated": 27, "train": 27, "test": 0, "unrated": 9}
    assert metric.combination == optimizer(regression="pls").compile(rated).combination
    assert all(row.rating is None and row.prediction is not None for row in metric.record.data[27:])


def test_rows_that_lack_the_rating_altogether_are_unrated():
    assert len(split_rated(planted_rows(sources=2, rated=False), TASK)[1]) == 6


@pytest.mark.parametrize("rating", [0.99, 5.01, math.inf])
def test_a_rating_off_the_scale_names_row_value_and_scale(rating):
    rows = [*ROWS[:5], ROWS[5].copy(rating=rating)]
    with pytest.raises(DataError, match=rf"row '1-2': rating is {rating}.* runs from 1 to 5"):
        split_rated(rows, TASK)


def test_without_rows_to_test_on_the_evaluation_says_so():
    for valset in (None, [], [row.copy(rating=None) for row in planted_rows(sources=2, seed=3)]):
        record = optimizer().compile([row.copy(group=f"t{row.group}") for row in ROWS], valset).record
        assert (record.evaluation, record.test.n) == ("train_only", 0)
        assert "No held-out rows" in record.warnings[0]


def test_a_validation_set_tests_and_does_not_touch_the_fit():
    metric = optimizer().compile(ROWS[:24], ROWS[24:])
    assert metric.combination == optimizer().compile(ROWS[:24]).combination
    assert (metric.record.evaluation, metric.record.test.n, metric.record.test.groups) == ("file", 12, 4)


def test_the_task_of_the_call_goes_before_the_constructors():
    other = type(TASK)("Other words.", "rating", TASK.scale)
    assert optimizer().compile(ROWS, task=other).task == other


def test_ratings_that_are_all_alike_cannot_be_learned_from():
    with pytest.raises(DataError, match="nothing can be learned"):
        optimizer().compile([row.copy(rating=3.0) for row in ROWS])


def test_the_seed_decides_which_of_tied_examples_are_shown():
    tied = [row.copy(rating=1.0 + 4.0 * (number % 2)) for number, row in enumerate(ROWS[:8])]
    prompts = []
    for seed in (0, 0, 1):
        with serve(scripted) as server:
            AutoMetrics(TASK, bank="generated", generators={"criterion": 1}, lm=server.lm(), seed=seed).compile(tied)
        prompts.append(server.prompts[0])
    assert prompts[0] == prompts[1] != prompts[2]


@pytest.mark.parametrize("panel", [False, True])
def test_geval_judges_are_induced_saved_and_loaded(panel, tmp_path):
    def answer(prompt):
        fields = panelled(prompt)
        spread = {fields["score"]: 0.75, "three": 0.25} if "score" in fields else None
        return GivenAnswer(fields, probabilities=spread)

    with serve(answer) as server:
        counts = {"criterion": 1, "geval": 2}
        options = {"bank": "generated", "generators": counts, "panel": panel, "fidelity": 1.0}
        metric = AutoMetrics(TASK, lm=server.lm(), **options).compile(ROWS)
        metric.save(tmp_path / "metric.json")
        again = load(tmp_path / "metric.json")
        with dspy.context(lm=server.lm()):
            before, after = (one.judge_batch(ROWS[:4]) for one in (metric, again))
    kinds = sorted(component.card.kind for component in metric.components)
    assert kinds == sorted(["panel_member" if panel else "criterion_judge", "geval_judge", "geval_judge"])
    assert [one.raw for one in before] == [one.raw for one in after]
    assert {component.kind for component in metric.record.components} == set(kinds)


def test_the_papers_sizes_can_be_changed():
    paper = AutoMetrics.paper(TASK, n=3, seed=4)
    assert (paper.fit.n, paper.fit.regression, paper.seed) == (3, "pls", 4)


def test_a_group_on_both_sides_is_refused_by_name():
    with pytest.raises(OptionError, match="group 's2'"):
        optimizer().compile(ROWS[:9], ROWS[8:])


def test_a_negative_seed_is_refused():
    with pytest.raises(OptionError, match="seed=-1"):
        AutoMetrics(seed=-1)


def test_compile_works_like_a_dspy_optimiser():
    rows = planted_rows()
    metric = banked(columns=["good"]).compile(rows[:60], rows[60:], task=TASK)
    assert metric.record.evaluation == "file"
    assert 0 <= metric(output="words", input="x", references=["words"], context="").score <= 1
    assert isinstance(metric, dspy.Module)


def test_compile_refuses_what_makes_no_sense():
    rows = planted_rows()
    with pytest.raises(OptionError, match="needs a task"):
        banked().compile(rows)
    with pytest.raises(OptionError, match="group 's0' stands in trainset and valset"):
        banked().compile(rows, rows[:3], task=TASK)
    with pytest.raises(DataError, match="the scale runs from 1 to 5"):
        banked().compile([rows[0].copy(rating=9.0), *rows[1:]], task=TASK)
    with pytest.raises(DataError, match="0 of 3 training rows have a rating"):
        banked().compile([make_row("a"), make_row("b"), make_row("c")], task=TASK)
    with pytest.raises(OptionError, match="not 'some words'"):
        banked().compile(rows, task="some words")


def test_the_papers_configuration_is_named():
    paper = AutoMetrics.paper(TASK, metrics=BANK)
    assert (paper.k, paper.fit.n, paper.fit.regression) == (30, 5, "pls")
    metric = paper.compile(planted_rows()[:60], planted_rows()[60:])
    assert len(metric.components) == 5
    assert "PriorRidge, projected" in metric.record.baselines


def test_without_groups_rows_of_one_input_count_as_one_group():
    rows = [
        make_row(row.output, input=row.input, references=row.references, rating=row.rating)
        for row in planted_rows(sources=20)
    ]
    metric = banked(bank="existing").compile(rows[:45], rows[45:], task=TASK)
    assert (metric.record.train.groups, metric.record.test.groups) == (15, 5)
    with pytest.raises(OptionError, match=r"input .* stands in trainset and valset"):
        banked().compile(rows[:44], rows[44:], task=TASK)


def test_nothing_is_asked_where_nothing_can_be_learned():
    rows = [row.copy(rating=3.0) for row in planted_rows(sources=4)]
    with serve(scripted) as server, pytest.raises(DataError, match="nothing can be learned"):
        banked(lm=server.lm(), bank="all").compile(rows, task=TASK)
    assert server.requests == 0


def test_the_paper_s_docstring_names_the_metrics_that_nobody_published_a_number_of():
    published = json.loads(files("metricsmith.bank.models").joinpath("published.json").read_text("utf-8"))
    named = set(re.findall(r"``(\w+)``", AutoMetrics.paper.__doc__.split("Of nine there are none")[1]))
    assert named == set(weighted_names().values()) - {one["metric"].split(".")[0] for one in published["numbers"]}
    assert len(named) == 9
