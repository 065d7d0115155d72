"""Probing without a model: known metrics, known answers."""

from __future__ import annotations

import math

import pytest

from brought import write_brought
from metricsmith.bank.catalogue import default_bank
from metricsmith.bank.column import ColumnMetric
from metricsmith.datasets import plain_notices
from metricsmith.datasets.table import read_table
from metricsmith.errors import DataError, OptionError
from metricsmith.metric import make_row
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.programs.induced import InducedMetric
from metricsmith.records import Scale, Task
from metricsmith.scoring.callables import CallableMetric
from metricsmith.stats.regression import LinearCombination
from metricsmith.stats.regression.combination import ZScore
from metricsmith.studies.probing.run import Prober
from planted import TASK, planted_rows

BANK = default_bank()
ROWS = planted_rows(12, 2, seed=3)


def subject(record, name):
    return next(one for one in record.subjects if one.name == name)


def strategy(record, name):
    return next(line for line in record.strategies if line.name == name)


@pytest.fixture(scope="module")
def notices():
    """The demo's metric on the demo's data: truth planted."""
    table = read_table(
        plain_notices.path(), target="rating", output="rewrite", inputs="notice", reference="reference", id="id",
        group="source_id", scale=plain_notices.TASK.scale,
    )  # fmt: skip
    bank = BANK.only("output_words", "fkgl", "rouge1_r", "rouge2_r", "rouge_l_r", "distinct_2")
    metric = AutoMetrics(table.task, metrics=bank).compile(table.rows)
    return Prober(n=30, seed=1).probe(metric, table.rows)


def test_random_numbers_are_near_a_half_and_a_constant_is_named(notices):
    random, constant = subject(notices, "random numbers"), subject(notices, "a constant")
    assert random.sensitivity.value == pytest.approx(0.5, abs=0.08)
    assert random.sensitivity.interval.low < 0.5 < random.sensitivity.interval.high
    assert random.insensitive
    assert (constant.sensitivity.value, constant.sensitivity.tied, constant.still) == (0.0, 1.0, True)
    assert constant.stability is None
    assert constant.insensitive


def test_planted_defects_that_words_show_are_noticed(notices):
    # Lost facts lower the recall of the reference, padding raises the length: the metric has both.
    metric = notices.metric
    assert metric.sensitivity.interval.low > 0.6
    assert metric.magnitude.interval.low > 0
    assert metric.sensitivity.value > subject(notices, "length in characters").sensitivity.value + 0.2
    assert subject(notices, "random numbers").p_stability < 0.05
    assert not metric.insensitive
    for name in ("repeat", "insert_unrelated", "shuffle_words", "corrupt_numbers"):
        assert strategy(notices, name).sensitivity.value > 0.85, name
    for name in ("drop_sentence", "truncate"):
        assert strategy(notices, name).others["rouge2_r"] > 0.9, name
    padding = next(line for line in notices.attacks if line.name == "pad_idle")
    assert padding.change.interval.high < 0
    assert padding.verdict == "held"


def test_components_stand_in_the_direction_in_which_they_count(notices):
    # More words lower the prediction, so that dropping sentences raises this component.
    assert strategy(notices, "drop_sentence").others["output_words"] == 0.0
    assert strategy(notices, "repeat").others["output_words"] == 1.0


def test_what_no_lexical_metric_sees_is_said(notices):
    assert strategy(notices, "wrong_casing").sensitivity.value == 0.0
    (said,) = [warning for warning in notices.warnings if "insensitive" in warning]  # one sentence for all components
    assert "of 6 components" in said
    assert "fkgl" in said


def test_pairs_are_counted(notices):
    counts = notices.counts
    made = {"worse": 0, "same": 0}
    for line in notices.strategies:
        made[line.effect] += line.made
    assert (made["worse"], made["same"]) == (counts["worse"], counts["same"])
    assert notices.metric.sensitivity.n == counts["worse"]
    assert notices.metric.stability.n == counts["same"]
    assert sum(line.pairs.n + line.pairs.missing for line in notices.attacks) == counts["attack"]
    assert counts["rows"] == counts["groups"] == 30
    assert notices.metric.sensitivity.groups == 30


def test_seeds_repeat_and_differ(notices):
    metric = BANK.get("rouge1_r")
    first, again, other = (Prober(n=8, seed=seed).probe(metric, ROWS, TASK) for seed in (1, 1, 2))
    assert first.signature == again.signature != other.signature
    assert repr(first.subjects) == repr(again.subjects)


def test_a_bank_metric_alone_and_others_beside_it():
    record = Prober(n=8, against=[BANK.get("fkgl")]).probe(BANK.get("rouge1_r"), ROWS)
    assert [one.kind for one in record.subjects] == ["metric", "baseline", "null", "null", "null"]
    assert math.isnan(record.metric.p_sensitivity)
    assert 0 < subject(record, "fkgl").p_sensitivity <= 1
    assert record.title == "rouge1_r"


def test_lower_is_better_is_turned_round():
    record = Prober(n=8).probe(BANK.get("ter"), ROWS)
    assert not BANK.get("ter").output.higher_is_better
    assert record.metric.sensitivity.value > 0.5
    surprise = record.surprises[0]
    assert surprise.effect == "worse"
    assert surprise.after <= surprise.before  # raw: a lower TER is a better one


def test_numbers_of_the_data_are_no_numbers_of_changed_outputs():
    good = ColumnMetric("good")
    alone = Prober(n=6).probe(good, ROWS)
    assert "come with the data" in alone.metric.lacking
    assert alone.metric.sensitivity is None
    assert any("could not be probed" in warning for warning in alone.warnings)
    mixed = InducedMetric(
        components=[BANK.get("rouge1_r"), good],
        combination=LinearCombination(
            names=("rouge1_r", "good"), indices=(0, 1), columns=(ZScore(0.5, 0.2), ZScore(3.0, 1.0)),
            weights=(1.0, 0.4), intercept=3.0,
        ),
        task=TASK, best=[1.0, 1.0],
    )  # fmt: skip
    record = Prober(n=6).probe(mixed, ROWS)
    assert record.metric.sensitivity.value == subject(record, "rouge1_r").sensitivity.value
    assert subject(record, "good").lacking


def test_failed_scores_are_missing_and_never_low():
    def sometimes(row, prediction=None, trace=None):
        if "source3" in row.output or "source7" in row.output:
            raise ValueError("no number")
        return len(row.output) / 1000

    record = Prober(n=12, max_failure_rate=1.0).probe(CallableMetric(sometimes), ROWS)
    assert record.metric.sensitivity.missing > 0
    assert record.metric.sensitivity.n + record.metric.sensitivity.missing == record.counts["worse"]


def test_the_unit_may_be_each_metrics_scale():
    metric = BANK.get("rouge1_r")
    by_range, by_scale = (Prober(n=8, unit=unit).probe(metric, ROWS) for unit in ("range", "score"))
    assert by_range.metric.sensitivity == by_scale.metric.sensitivity
    assert by_range.metric.magnitude.value > by_scale.metric.magnitude.value  # its numbers span less than its scale
    assert by_scale.unit != by_range.unit


def test_both_strengths_are_told_apart():
    record = Prober(n=10, strengths=("subtle", "obvious")).probe(BANK.get("rouge1_r"), ROWS)
    found = {line.strength: line for line in record.strategies if line.name == "typos"}
    assert set(found) == {"subtle", "obvious"}
    assert found["obvious"].change.value < found["subtle"].change.value < 0


def test_nothing_is_asked_and_the_estimate_says_so():
    metric = BANK.get("rouge1_r")
    assert Prober(n=8).estimate(metric, ROWS).requests == 0
    assert Prober(n=8).probe(metric, ROWS).usage.requests == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"perturbers": "bultin"}, "did you mean 'builtin'"),
        ({"unit": "rank"}, "range, score"),
        ({"strengths": ()}, "one or more of"),
        ({"strengths": "subtle"}, "one or more of"),
        ({"strengths": ("subtle", "subtle")}, "none of them twice"),
        ({"seed": -1}, "whole number from 0"),
        ({"dimensions": ("Tone",)}, "rules aim at no dimension"),
        ({"strengths": ("weak",)}, "obvious"),
        ({"perturbers": "all", "dimensions": ("",)}, "none of them empty"),
        ({"perturbers": "all", "dimensions": "Tone"}, "must be a list"),
    ],
)
def test_options_without_meaning_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        Prober(**options)


def test_wrong_rows_and_equal_names_are_refused():
    with pytest.raises(DataError, match="none of 1 rows"):
        Prober().probe(BANK.get("rouge1_r"), [make_row("")])
    impostor = CallableMetric(lambda row, prediction=None: 1.0, name="rouge1_r")
    with pytest.raises(OptionError, match="'rouge1_r'"):
        Prober(against=[impostor]).probe(BANK.get("rouge1_r"), ROWS)


def test_a_metric_that_is_there_already_is_not_added_again():
    record = Prober(n=3, against=[BANK.get("rouge1_r"), BANK.get("fkgl")]).probe(BANK.get("rouge1_r"), ROWS)
    assert [one.name for one in record.subjects][:2] == ["rouge1_r", "fkgl"]
    assert len(record.subjects) == 5


@pytest.mark.parametrize("unit", ["range", "score"])
@pytest.mark.parametrize("higher", [True, False])
@pytest.mark.parametrize("weight", [1.0, -1.0])
def test_components_are_turned_by_their_weight_and_the_raters_direction(unit, higher, weight):
    # Recall falls with every worse output: that counts as a fall where the prediction gets worse by it.
    part = BANK.get("rouge1_r")
    metric = InducedMetric(
        components=[part],
        combination=LinearCombination(
            names=("rouge1_r",), indices=(0,), columns=(ZScore(0.5, 0.2),), weights=(weight,), intercept=3.0
        ),
        task=Task("", "rating", Scale(1, 5, higher_is_better=higher)), best=[1.0],
    )  # fmt: skip
    record = Prober(n=8, unit=unit).probe(metric, ROWS)
    whole, component = record.metric, subject(record, "rouge1_r")
    assert whole.sensitivity.value == component.sensitivity.value
    sinks = (weight > 0) == higher
    assert (component.sensitivity.value > component.sensitivity.risen) == sinks
    assert (component.magnitude.value > 0) == sinks
    assert (whole.magnitude.value > 0) == sinks


def test_a_metric_that_moves_under_attack_alone_never_moves_otherwise():
    record = Prober(n=6).probe(CallableMetric(lambda row, *rest: float(bool(row.output.strip()))), ROWS)
    assert record.metric.still
    verdicts = {attack.name: attack.verdict for attack in record.attacks}
    assert verdicts["empty_output"] == "held"
    assert verdicts["copy_input"] == verdicts["other_good_output"] == "deceived"
    assert verdicts["self_praise"] == "held"
    assert "never moves" in record.warnings[-1]


def test_a_constant_misses_what_is_worthless_and_cannot_be_bribed():
    verdicts = {a.name: a.verdict for a in Prober(n=6).probe(CallableMetric(lambda row, *rest: 1.0), ROWS).attacks}
    assert {name for name, verdict in verdicts.items() if verdict == "deceived"} == {
        "empty_output", "copy_input", "other_good_output",
    }  # fmt: skip
    assert "open" not in verdicts.values()


def test_the_signature_names_what_decides_the_numbers():
    metric = BANK.get("rouge1_r")
    plain = Prober(n=3).probe(metric, ROWS).signature
    assert plain != Prober(n=3, against=[BANK.get("fkgl")]).probe(metric, ROWS).signature
    assert "model none, seed 0" in plain


def test_a_task_of_ones_own_is_shown():
    task = Task("Say it.", "stars", Scale(1, 3, 1))
    assert Prober(n=4).probe(BANK.get("rouge1_r"), ROWS, task).task == task


def test_a_table_that_knows_who_rated_brings_its_ceiling_and_the_same_probe(tmp_path):
    table = read_table(write_brought("two_raters", tmp_path).path, target="rating")
    metric, prober = BANK.get("distinct_2"), Prober(n=4)
    record = prober.probe(metric, table)
    assert record.raters == table.rater_ceiling()
    assert record.raters.raters == 2
    bare = prober.probe(metric, table.rows)
    assert bare.raters is None
    assert (bare.signature, str(bare.subjects)) == (record.signature, str(record.subjects))
