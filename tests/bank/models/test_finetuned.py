"""A metric that is trained: what it learns from, what it refuses, and its number on the rating scale."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import replace

import dspy
import numpy as np
import pytest

from finetuning import HASH, TASK, lettered_rows, trained_by_hand, without_network
from metricsmith.bank.models import finetuned, ridge
from metricsmith.bank.models.finetuned import ENCODERS, FinetunedMetric, shown_text
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.bank.models.trained import packed
from metricsmith.bank.weighted import lacking, model_of_metric
from metricsmith.errors import DataError, NeedsError, OptionError
from metricsmith.metric import Metric, make_row
from metricsmith.optimizers.own import from_learning, renamed
from metricsmith.optimizers.splits import RatedRows
from metricsmith.programs.learned import has_learned, learned_from
from metricsmith.records import Scale, Status, Task
from metricsmith.saving import row_hash
from metricsmith.scoring import score
from metricsmith.stats.correlation import kendall_tau_b

ROWS = lettered_rows(60)


@pytest.fixture
def letters(monkeypatch):
    without_network(monkeypatch)


def numbers(metric, rows):
    return [judgement.raw for judgement in metric.judge_batch(rows)]


def bare(rows, **labels):
    return [dspy.Example({**row.toDict(), **labels}) for row in rows]


@pytest.mark.usefixtures("letters")
def test_a_trained_copy_predicts_ratings_and_the_metric_itself_stays_untrained():
    metric = FinetunedMetric(TASK)
    made = metric.compile(trainset=ROWS)
    assert (metric.trained, metric.method, made.method) == (None, "auto", "ridge")
    new = lettered_rows(100, 1)
    found, ratings = numbers(made, new), [row.rating for row in new]
    assert kendall_tau_b(found, ratings) > 0.85
    assert np.abs(np.subtract(found, ratings)).mean() < 0.5  # on the rating scale, not on that of a z-score
    assert isinstance(made, Metric)
    one = made.judge_batch(new[:1])[0]
    assert one.score == pytest.approx((one.raw + 10) / 20)
    assert (made.trained.rows, made.trained.groups) == (60, 30)
    assert made.compile(trainset=ROWS) == made == metric.compile(ROWS)
    assert made.compile(trainset=ROWS[:20]) != made


@pytest.mark.usefixtures("letters")
def test_ratings_of_which_less_is_better_keep_their_direction():
    task = Task("", "rating", Scale(-10, 10, higher_is_better=False))
    made = FinetunedMetric(task).compile(trainset=ROWS)
    assert numbers(made, ROWS) == numbers(FinetunedMetric(TASK).compile(trainset=ROWS), ROWS)
    assert made.judge_batch(ROWS[:1])[0].score == pytest.approx((10 - numbers(made, ROWS[:1])[0]) / 20)


@pytest.mark.usefixtures("letters")
def test_another_unit_of_the_rating_is_another_unit_of_the_prediction():
    moved = [dspy.Example({**row.toDict(), "rating": 50 + 3 * row.rating}) for row in ROWS]
    plain = FinetunedMetric(TASK).compile(trainset=ROWS)
    made = FinetunedMetric(Task("", "rating", Scale(0, 100))).compile(trainset=moved)
    np.testing.assert_allclose(numbers(made, ROWS), 50 + 3 * np.array(numbers(plain, ROWS)), rtol=1e-9)


def test_the_text_of_a_row_is_output_input_and_references_in_this_order_and_no_more():
    assert shown_text("a", "", []) == shown_text("a", " ", ["", " "]) == "a"
    assert shown_text("a", "b", ["c", "", "d"]) == "a\n\nInput: b\n\nReference: c\n\nReference: d"


@pytest.mark.usefixtures("letters")
def test_the_same_text_is_read_in_training_and_scoring(monkeypatch):
    read = []

    def watched(model, texts):
        read.append(list(texts))
        return np.array([[len(text)] for text in texts], dtype=float)

    monkeypatch.setattr(ridge, "mean_vectors", watched)
    rows = [make_row("x" * n, input="q", references=["r"], context="c", rating=n, group=n) for n in (1, 2, 4)]
    FinetunedMetric(TASK).compile(trainset=rows).judge_batch(rows)
    assert read[0] == read[1] == [f"{'x' * n}\n\nInput: q\n\nReference: r" for n in (1, 2, 4)]


@pytest.mark.usefixtures("letters")
def test_rows_without_a_rating_or_an_output_teach_nothing_and_are_not_said_to_have():
    idle = [make_row("abc", rating=None), make_row("abd", rating=math.nan), make_row(" ", rating=1.0), make_row("abe")]
    made = FinetunedMetric(TASK).compile(trainset=[*ROWS, *idle])
    assert made == FinetunedMetric(TASK).compile(trainset=ROWS)
    assert learned_from(made) == {row_hash(row) for row in ROWS}
    assert has_learned(made)


@pytest.mark.usefixtures("letters")
def test_rows_of_validation_choose_and_count_as_learned_from():
    held = lettered_rows(20, 7)
    made = FinetunedMetric(TASK).compile(trainset=ROWS, valset=held)
    assert made.trained.rows == 60
    assert learned_from(made) == {row_hash(row) for row in [*ROWS, *held]}
    whole = RatedRows.of([*ROWS, *held, *lettered_rows(10, 8)], "rating")
    assert from_learning(made, whole).tolist() == [True] * 80 + [False] * 10


@pytest.mark.usefixtures("letters")
@pytest.mark.parametrize(
    ("train", "held", "said"),
    [
        ([], None, "0 rated rows with an output, in 0 groups: rows of two groups or more"),
        (ROWS[:2], None, "2 rated rows with an output, in 1 groups"),
        (bare(ROWS, rating=3.0), None, "every rating of 'rating' is 3: there is nothing to learn"),
        (bare(ROWS, rating=11), None, r"trainset\[0\]: rating is 11; a number from -10 to 10 is needed"),
        (bare(ROWS, rating="3"), None, r"trainset\[0\]: rating is '3'"),
        (bare(ROWS, rating=True), None, r"trainset\[0\]: rating is True"),
        (ROWS, bare(lettered_rows(2, 9), rating=-11.0), r"valset\[0\]: rating is -11.0"),
        (ROWS, [], "valset has no rated row with an output"),
        (ROWS, ROWS[-1:], "the group 'g0-29' is in trainset and valset"),
        (ROWS, [make_row("abc", rating=1.0), *ROWS[:1]], "the group 'g0-0' is in trainset"),
    ],
)
def test_rows_that_cannot_be_learned_from_are_refused(train, held, said):
    with pytest.raises(DataError, match=said):
        FinetunedMetric(TASK).compile(trainset=train, valset=held)


@pytest.mark.usefixtures("letters")
def test_rows_without_groups_are_grouped_by_input_and_else_stand_alone():
    rows = [make_row(row.output, rating=row.rating) for row in ROWS]
    asked = [make_row(row.output, input=f"q{place // 3}", rating=row.rating) for place, row in enumerate(ROWS)]
    assert FinetunedMetric(TASK).compile(trainset=rows).trained.groups == 60
    assert FinetunedMetric(TASK).compile(trainset=asked).trained.groups == 20
    assert FinetunedMetric(TASK).compile(trainset=rows[:30], valset=rows[30:]).trained.groups == 30


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"task": "clarity"}, "task='clarity' must be of the type Task"),
        ({"settings": 3}, "settings=3 must be of the type Mapping"),
        ({"method": "rigde"}, "method='rigde' must be auto, ridge or lora"),
        ({"encoder": "minlm"}, "encoder='minlm' .did you mean 'minilm'.. must be one of modernbert_large, "),
        ({"encoder": "../minilm"}, "encoder='../minilm'"),
        ({"encoder": ModelSpec("mine", "a/b", "encoder")}, "encoder='mine'"),
        ({"method": "ridge", "settings": {"penalty": 3}}, "ridge has no setting 'penalty'; none"),
        ({"settings": {"rank": 3}}, "method='auto' takes no settings"),
        ({"seed": -1}, "seed=-1 must be a whole number from 0"),
        ({"seed": True}, "seed=True"),
        ({"trained": trained_by_hand().trained}, "method='auto' .* is never trained"),
    ],
)
def test_options_without_a_meaning_are_refused(options, said):
    with pytest.raises(OptionError, match=said):
        FinetunedMetric(**{"task": TASK, **options})


def test_settings_of_a_method_have_ranges(monkeypatch):
    from metricsmith.bank.models.trained import TrainingOption

    known = {"rank": TrainingOption(16, 1, 256), "rate": TrainingOption(1e-4, 0, 1, whole=False)}
    monkeypatch.setattr(ridge, "SETTINGS", known)
    assert FinetunedMetric(TASK, "ridge", settings={"rank": 4})._in_force() == {"rank": 4, "rate": 1e-4}
    for settings, said in [
        ({"rank": 0}, "rank=0 must lie from 1 to 256"), ({"rank": 2.0}, "rank=2.0 must be a whole number"),
        ({"rate": True}, "rate=True must be a number"), ({"rate": math.nan}, "rate=nan must lie from 0 to 1"),
        ({"rang": 1}, r"no setting 'rang' \(did you mean 'rank'\?\); rank, rate"),
    ]:  # fmt: skip
        with pytest.raises(OptionError, match=said):
            FinetunedMetric(TASK, "ridge", settings=settings)


@pytest.mark.usefixtures("letters")
def test_few_rows_are_for_ridge_and_many_for_lora_where_it_is_installed(monkeypatch):
    monkeypatch.setattr(finetuned, "find_spec", lambda name: name == "peft" or None)
    assert FinetunedMetric(TASK)._chosen(299) == "ridge"
    assert FinetunedMetric(TASK)._chosen(300) == "lora"
    assert FinetunedMetric(TASK, "ridge")._chosen(3000) == "ridge"
    monkeypatch.setattr(finetuned, "find_spec", lambda name: None)
    assert FinetunedMetric(TASK)._chosen(300) == "ridge"


def test_an_encoder_that_is_not_here_is_told_before_any_work(monkeypatch, tmp_path):
    monkeypatch.setattr(ridge, "mean_vectors", None)
    for metric in (FinetunedMetric(TASK, local=tmp_path / "none"), FinetunedMetric(TASK, encoder="minilm")):
        with pytest.raises(NeedsError, match=r"no such file or folder|`metricsmith bank fetch minilm`"):
            metric.compile(trainset=ROWS)
    judged = []

    def first(example, pred):
        judged.append(pred)
        return 1.0

    with pytest.raises(NeedsError, match="metricsmith bank fetch minilm"):
        score([first, trained_by_hand()], ROWS, progress=False)
    assert judged == []
    assert "bank fetch minilm" in lacking(trained_by_hand().family)


def test_without_the_extra_the_line_that_installs_it_is_said(monkeypatch):
    from metricsmith.bank.models import spec

    monkeypatch.setattr(spec, "find_spec", lambda name: None)
    with pytest.raises(NeedsError, match=r"torch is not installed: pip install 'metricsmith\[models\]'"):
        FinetunedMetric(TASK).compile(trainset=ROWS)
    monkeypatch.setattr(ridge, "NEEDS", ("peft",))
    monkeypatch.setattr(spec, "find_spec", lambda name: None if name == "peft" else True)
    with pytest.raises(NeedsError, match=r"peft is not installed: pip install 'metricsmith\[finetune\]'"):
        FinetunedMetric(TASK, "ridge").compile(trainset=ROWS)


def test_an_untrained_metric_scores_nothing_and_says_what_to_do():
    metric = FinetunedMetric(TASK)
    assert metric.card.summary == "Predicts rating (-10 to 10) by the method auto, not trained."
    for use in (lambda: metric.judge_batch(ROWS), metric.to_state, lambda: metric.save("nowhere")):
        with pytest.raises(OptionError, match=r"finetuned is not trained: use the copy that \.compile"):
            use()


@pytest.mark.usefixtures("letters")
def test_each_row_ends_in_a_number_or_a_status_and_has_it_alone_and_in_a_batch(monkeypatch):
    made = FinetunedMetric(TASK).compile(trainset=ROWS)
    rows = [*ROWS[:3], make_row(" "), make_row("", input="abc"), *ROWS[3:5]]
    together = made.judge_batch(rows, run=2)
    assert [judgement.status for judgement in together[3:5]] == [Status.SKIPPED] * 2
    assert {judgement.error for judgement in together[3:5]} == {"the output is empty"}
    assert {judgement.run for judgement in together} == {2}
    assert together == [made.judge_batch([row], run=2)[0] for row in rows]

    def failing(model, texts):
        if any("q" in text for text in texts):
            raise RuntimeError("out of luck")
        return np.ones((len(texts), 8))

    monkeypatch.setattr(ridge, "mean_vectors", failing)
    failed = made.judge_batch([ROWS[0], make_row("q"), ROWS[1]])
    assert [judgement.status for judgement in failed] == [Status.OK, Status.TRANSPORT, Status.OK]
    assert failed[1].error == "RuntimeError: out of luck"


@pytest.mark.usefixtures("letters")
def test_dspy_calls_it_as_it_calls_any_metric():
    made = FinetunedMetric(TASK).compile(trainset=ROWS)
    raw = numbers(made, ROWS[:1])[0]
    assert made(ROWS[0].output).raw == raw
    assert made(ROWS[0], dspy.Prediction(output=ROWS[0].output)).score == pytest.approx((raw + 10) / 20)


def test_the_fingerprint_follows_what_changes_the_number_and_nothing_else():
    metric = trained_by_hand()
    encoder = metric.encoder
    learned = metric.trained
    same = [
        replace(metric, encoder=replace(encoder, path="/elsewhere", device="cuda")),
        replace(metric, name="other"), replace(metric, seed=5),
        replace(metric, task=Task("Another text", "other", TASK.scale)),
    ]  # fmt: skip
    assert {one.fingerprint() for one in same} == {metric.fingerprint()}
    other = [
        replace(metric, encoder=replace(encoder, weights="6a" * 32)),
        replace(metric, encoder=replace(encoder, dtype="bfloat16")),
        replace(metric, task=Task("", "rating", Scale(-10, 11))),
        replace(metric, trained=replace(learned, centre=4.0)),
        replace(metric, trained=replace(learned, spread=1.0)),
        replace(metric, trained=replace(learned, content=packed({**learned.weights, "intercept": np.array([0.25])}))),
    ]
    assert len({one.fingerprint() for one in [metric, *other]}) == 7


def test_copies_pickles_and_renamed_ones_are_equal():
    metric = trained_by_hand()
    for one in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        assert (one, one.fingerprint(), hash(one)) == (metric, metric.fingerprint(), hash(metric))
    assert renamed(metric, "mine") == replace(metric, name="mine")
    assert renamed(metric, "mine").judge_batch is not None


@pytest.mark.usefixtures("letters")
def test_the_card_says_what_was_learned_on_which_weights_and_what_is_read():
    made = FinetunedMetric(TASK, encoder="minilm").compile(trainset=ROWS)
    card = made.card
    assert (card.kind, card.cost, card.needs) == ("finetuned", "local", ("weights", "extra:models"))
    assert card.summary == "Predicts rating (-10 to 10) by the method ridge, trained on 60 rated rows in 30 groups."
    assert "the network reads the output, then, where there are any, the input and the references" in card.formula
    assert "sentence-transformers/all-MiniLM-L6-v2" in card.to_markdown()
    assert model_of_metric(made) == replace(ENCODERS["minilm"], weights=HASH)
    assert made.weights == (
        f"sentence-transformers/all-MiniLM-L6-v2, revision main, sha256 {HASH[:12]}; "
        f"learned: sha256 {made.trained.digest[:12]}"
    )
