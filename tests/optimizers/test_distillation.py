"""`distil`: a free metric fitted to a paid one's scores, and the share of the agreement with people that it keeps."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

import metricsmith as ms
from metricsmith.bank.catalogue import default_bank
from metricsmith.errors import DataError, ModelFailure, OptionError
from metricsmith.metric import make_row
from metricsmith.optimizers import generation
from metricsmith.optimizers.distillation import _standard
from metricsmith.programs.learned import mark_learned
from metricsmith.records import Output, Status, Usage
from metricsmith.testing import GivenJudge
from metricsmith.tuning import Distilled, distil

SOURCES, EACH = 60, 3
WORDS = list("abcdefghijklmnopqrstuvw")
BANK = default_bank().only("output_words", "rouge1_r", "fkgl")
QUIET = {"progress": False, "metrics": BANK, "fraction": 0.4}


def table(seed=0, sources=SOURCES):
    """Random outputs with a reference each; how much of that they hold, and how long they are, is all there is."""
    rng = np.random.default_rng(seed)
    rows = []
    for source in range(sources):
        reference = " ".join(rng.choice(WORDS, 12))
        for _ in range(EACH):
            kept = [word for word in reference.split() if rng.random() < rng.uniform(0.2, 1)]
            output = " ".join([*kept, *rng.choice(["indeed", "namely", "so"], rng.integers(1, 12))])
            rows.append({"question": f"about {source}", "answer": output, "reference": reference, "source": source})
    return pd.DataFrame(rows)


READING = {"output": "answer", "inputs": "question", "reference": "reference", "group": "source", "target": "stars"}


def surface(frame):
    """Twice the recall of the reference's words, less the length: what two metrics of the bank see, standardised."""
    recall = np.array(
        [
            one.raw
            for one in BANK.get("rouge1_r").judge_batch(
                [
                    make_row(answer, references=[reference])
                    for answer, reference in zip(frame["answer"], frame["reference"], strict=True)
                ]
            )
        ]
    )
    length = frame["answer"].str.split().str.len().to_numpy()
    return 2 * (recall - recall.mean()) / recall.std() - (length - length.mean()) / length.std()


def judge(frame, numbers, **options):
    """A paid judge that gives these numbers to these outputs."""
    given = dict(zip(frame["answer"], numbers, strict=True))
    output = Output("judge", low=None, high=None, half=1.0, description="how well the facts are told")
    return GivenJudge(given, name="judge", output=output, usage=Usage(1, 10, 5, 0.5, 2.0), **options)


@pytest.fixture(scope="module")
def planted():
    """The paid metric sees recall and length alone; people see the same, less exactly."""
    frame, rng = table(), np.random.default_rng(1)
    seen = surface(frame)
    frame["stars"] = np.clip(np.round(3 + seen / 2 + rng.normal(0, 0.7, len(seen))), 1, 5)
    return frame, judge(frame, seen.tolist())


@pytest.fixture(scope="module")
def kept(planted):
    frame, paid = planted
    return distil(paid, frame, **READING, **QUIET)


def test_a_paid_metric_of_length_and_overlap_is_kept_whole(kept):
    record = kept.record
    assert isinstance(kept, Distilled)
    assert record.imitation.pearson > 0.98
    assert not record.share.why_not
    assert record.share.value == pytest.approx(1, abs=0.05)
    assert record.share.ci_low < 1.02
    assert record.share.ci_high > 0.98
    assert record.share.ci_high - record.share.ci_low < 0.3
    assert record.share.value == pytest.approx(
        record.free_people.kendall_tau_b / record.paid_people.kendall_tau_b, rel=1e-12
    )
    assert record.difference.kendall_tau_b == pytest.approx(
        record.free_people.kendall_tau_b - record.paid_people.kendall_tau_b
    )
    assert record.usage.requests == SOURCES * EACH
    assert record.usage.cost == pytest.approx(SOURCES * EACH * 0.5)
    assert "share kept" in repr(kept)


def test_the_figures_rest_on_held_out_groups_alone(kept, planted):
    frame, _ = planted
    held = [row for row in kept.metric.record.data if row.split == "test"]
    assert {row.group for row in held}.isdisjoint(
        {row.group for row in kept.metric.record.data if row.split == "train"}
    )
    assert kept.record.share.n == len(held) == kept.record.imitation.n
    stars = dict(zip(frame["answer"], frame["stars"], strict=True))
    tau = ms.stats.correlation.kendall_tau_b([row.prediction for row in held], [stars[row.output] for row in held])
    assert kept.record.free_people.kendall_tau_b == pytest.approx(tau, rel=1e-12)


def test_the_ratings_are_never_fitted_to(planted, kept):
    frame, paid = planted
    other = distil(paid, frame.assign(stars=6 - frame["stars"]), **READING, **QUIET)
    assert other.metric.fingerprint() == kept.metric.fingerprint()
    assert other.record.share.why_not == "the paid metric ranks against people"
    without = distil(paid, frame.drop(columns="stars"), **READING, **QUIET)
    assert without.metric.fingerprint() == kept.metric.fingerprint()
    assert (without.record.free_people.n, without.record.target, without.record.share.n) == (0, "", 0)


def test_the_free_metric_is_saved_with_the_name_of_the_paid_one(kept, planted, tmp_path):
    frame, paid = planted
    kept.write(tmp_path)
    assert {one.name for one in tmp_path.iterdir()} == {
        "metric.json", "distillation.html", "distillation.md", "distillation.json"
    }  # fmt: skip
    loaded = ms.load(tmp_path / "metric.json")
    assert loaded.card.cost in ("free", "cheap")
    assert loaded.fingerprint() == kept.metric.fingerprint()
    assert f"imitates the metric judge ({paid.fingerprint()}) and never had people's ratings" in loaded.card.summary
    scores = ms.score(loaded, frame, progress=False, **{**READING, "target": None}).run()[:, 0]
    assert scores.tolist() == pytest.approx(kept.metric.predict(scored(kept, frame)).tolist())
    content = json.loads((tmp_path / "distillation.json").read_text("utf-8"))
    assert content["fingerprint"] == paid.fingerprint()
    assert content["share"]["value"] == kept.record.share.value
    state = json.loads((tmp_path / "metric.json").read_text("utf-8"))
    state["made_with"]["imitates"] = ["a", "list"]
    (tmp_path / "metric.json").write_text(json.dumps(state))
    with pytest.raises(ms.StateError):
        ms.load(tmp_path / "metric.json")


def scored(done, frame):
    return ms.score(done.metric.components, frame, progress=False, **{**READING, "target": None}).run()


def test_of_a_paid_metric_that_sees_no_surface_nothing_is_kept():
    frame, rng = table(2), np.random.default_rng(3)
    hidden = rng.normal(size=len(frame))
    frame["stars"] = np.clip(np.round(3 + hidden + rng.normal(0, 0.5, len(frame))), 1, 5)
    record = distil(judge(frame, hidden.tolist()), frame, **READING, **QUIET).record
    assert record.paid_people.ci_low > 0.5
    assert record.share.ci_low < 0 < record.share.ci_high
    assert abs(record.share.value) < 0.3
    assert record.difference.ci_high < 0
    assert any("cannot be told from chance as an imitation" in warning for warning in record.warnings)


def test_of_a_paid_metric_that_does_not_agree_with_people_there_is_no_share():
    frame, rng = table(4), np.random.default_rng(5)
    frame["stars"] = rng.integers(1, 6, len(frame))
    record = distil(judge(frame, surface(frame).tolist()), frame, **READING, **QUIET).record
    assert record.share.why_not == "the paid metric's own agreement with people cannot be told from 0"
    assert math.isnan(record.share.value)
    assert record.paid_people.ci_low < 0 < record.paid_people.ci_high
    assert record.imitation.pearson > 0.95


def test_a_cross_validation_averages_over_folds(planted):
    frame, paid = planted
    record = distil(paid, frame, **READING, **{**QUIET, "fraction": None}, cv=3).record
    assert record.evaluation == "cv"
    assert record.share.n == len(frame)
    assert record.share.value == pytest.approx(
        record.free_people.kendall_tau_b / record.paid_people.kendall_tau_b, rel=1e-12
    )
    assert record.share.ci_low < 1 < record.share.ci_high


def test_failed_judgements_are_left_out_and_counted(planted):
    frame, _ = planted
    numbers = surface(frame).tolist()
    numbers[:18] = [Status.UNPARSABLE] * 18
    record = distil(judge(frame, numbers), frame, **READING, **QUIET).record
    assert record.learned + record.imitation.n == len(frame) - 18
    assert (record.judgements["ok"], record.judgements["unparsable"]) == (len(frame) - 18, 18)
    assert any("no score on 18 of 180 rows" in warning for warning in record.warnings)
    with pytest.raises(ModelFailure, match="judge"):
        distil(judge(frame, numbers), frame, **READING, **QUIET, max_failure_rate=0.05)


def test_equal_texts_are_scored_once_and_stand_on_one_side(planted):
    frame, paid = planted
    paid.asked.clear()
    twins = frame.assign(source=frame["source"] + 1000)
    done = distil(paid, pd.concat([frame, twins]), **READING, **QUIET)
    assert len(paid.asked) == len(frame)
    sides = {}
    for row in done.metric.record.data:
        sides.setdefault(row.output, set()).add(row.split)
    assert all(len(found) == 1 for found in sides.values())


def test_a_metric_that_is_free_already_is_told_so(planted):
    frame, _ = planted
    record = distil("rouge1_r", frame, **READING, **QUIET).record
    assert any("free already" in note for note in record.notes)
    assert record.imitation.kendall_tau_b > 0.9
    assert not record.usage.requests


def test_rows_that_the_paid_metric_has_learned_from_are_not_compared_with_people(planted):
    frame, _ = planted
    taught = ms.induce(frame, ms.AutoMetrics(metrics=BANK, progress=False), fraction=0, **READING).metric
    record = distil(taught, frame, **QUIET).record  # read as the metric's own rows
    assert record.free_people.n == 0
    assert any(f"learned from {len(frame)} of the rated rows" in warning for warning in record.warnings)
    assert record.imitation.kendall_tau_b > 0.9


def test_a_row_that_a_judge_has_learned_from_takes_its_group_with_it(planted):
    frame, paid = planted
    held = distil(paid, frame, **READING, **QUIET).metric.record.data[-1]
    metric = ms.CriterionJudge(criterion="clarity", meaning="Is it clear?", task="Write.")
    mark_learned(metric, [make_row(held.output, input=held.input)])
    from metricsmith.optimizers.distillation import _side

    rows = ms.read_table(frame, **READING)
    side = _side(metric, rows, ms.score([paid], rows, progress=False))
    assert side.known == EACH
    assert int(np.isnan(side.people).sum()) == EACH


def test_the_rows_furthest_apart_are_named(kept):
    record = kept.record
    gaps = [abs(one.gap) for one in record.apart]
    assert gaps == sorted(gaps, reverse=True)
    assert len(gaps) == 8


def test_a_row_without_a_number_is_not_among_those_furthest_apart():
    gaps = _standard(np.array([1.0, 2.0, math.nan, 4.0])) - _standard(np.array([1.0, 2.0, 9.0, 4.0]))
    assert np.isnan(gaps).tolist() == [False, False, True, False]
    assert np.isnan(_standard(np.array([3.0, math.nan, 3.0]))).tolist() == [False, True, False]


def test_an_induced_task_carries_the_direction_and_the_scale(planted):
    frame, _ = planted
    errors = Output("errors", low=0, high=10, higher_is_better=False)
    counts = np.clip(5 - surface(frame), 0, 10)
    paid = GivenJudge(dict(zip(frame["answer"], counts.tolist(), strict=True)), name="errors", output=errors)
    done = distil(paid, frame, **READING, **QUIET)
    scale = done.metric.task.scale
    assert (scale.low, scale.high, scale.higher_is_better) == (0, 10, False)
    assert done.record.paid_people.kendall_tau_b > 0.3
    assert done.record.share.value == pytest.approx(1, abs=0.08)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"generators": {"criterion": 2}}, "'criterion' cost model calls"),
        ({"raitings": "x"}, "no option raitings"),
        ({"cv": 3, "fraction": None, "split": "holdout"}, "contradict"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_asked(planted, wrong, said):
    frame, paid = planted
    paid.asked.clear()
    with pytest.raises(OptionError, match=said):
        distil(paid, frame, **{**QUIET, **READING, **wrong})
    assert not paid.asked


def test_a_bank_with_weights_is_refused(planted):
    frame, paid = planted
    bank = ms.full_bank(["perplexity"])
    with pytest.raises(OptionError, match="which is not free"):
        distil(paid, frame, **{**QUIET, "metrics": bank}, **READING)


def test_too_few_groups_and_a_constant_metric_are_errors(planted):
    frame, paid = planted
    few = frame[frame["source"] < 4]
    with pytest.raises(DataError, match="12 rows in 4 groups"):
        distil(paid, few, **READING, **QUIET)
    with pytest.raises(DataError, match="gives 3 on every row"):
        distil(GivenJudge(3, name="flat"), frame, **READING, **QUIET)


def test_few_rated_groups_leave_no_share(planted):
    frame, paid = planted
    frame = frame.assign(stars=frame["stars"].where(frame["source"] < 9))
    record = distil(paid, frame, **READING, **{**QUIET, "fraction": None}, cv=3).record
    assert record.free_people.n == 9 * EACH
    assert "10 groups" in record.share.why_not


def test_functions_are_asked_of_the_generators(planted, monkeypatch):
    frame, paid = planted
    seen = []

    def build(axes, material):
        seen.append(material)
        raise AssertionError("reached")

    family = generation.GeneratorFamily(build, 1, False)
    monkeypatch.setitem(generation.GENERATORS, "code", family)
    monkeypatch.setattr("metricsmith.optimizers.options.FAMILIES", (*generation.GENERATORS,))
    with pytest.raises(ms.NeedsError, match="needs a language model"):
        distil(paid, frame, **READING, **QUIET, generators={"code": 2})
    assert not seen


def test_a_rating_of_which_less_is_better_is_turned_round(planted, kept):
    frame, paid = planted
    turned = distil(paid, frame.assign(stars=6 - frame["stars"]), **READING, **QUIET, higher_is_better=False).record
    assert turned.share.value == pytest.approx(kept.record.share.value, rel=1e-12)


def test_the_paid_metric_sees_no_rating(planted):
    frame, _ = planted
    numbers = dict(zip(frame["answer"], surface(frame).tolist(), strict=True))

    def given(row):
        assert "stars" not in row
        return numbers[row.output]

    output = Output("judge", low=None, high=None, half=1.0)
    done = distil(GivenJudge(given, name="judge", output=output), frame, **READING, **QUIET)
    assert done.record.free_people.n
