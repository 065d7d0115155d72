"""A metric works wherever DSPy calls one: by position it is the metric, by keyword it stays a student."""

from __future__ import annotations

import copy
import itertools
import logging
import pickle

import dspy
import pytest
from dspy.utils.callback import BaseCallback

from finetuning import trained_by_hand, without_network
from metricsmith.bank.catalogue import default_bank
from metricsmith.bank.code import CodeMetric
from metricsmith.bank.column import ColumnMetric
from metricsmith.datasets.history import HistoricalRating, History
from metricsmith.errors import DataError, JudgementFailed, NeedsError
from metricsmith.metric import RowText
from metricsmith.optimizers.cross_fitting import CrossFitted
from metricsmith.optimizers.specialist import Specialist
from metricsmith.programs.induced import InducedMetric
from metricsmith.programs.judges.base import MetricProgram
from metricsmith.programs.judges.choice import ChoiceJudge, ResponseSetJudge
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.dna import DnAEval
from metricsmith.programs.judges.mqm import MQMJudge
from metricsmith.programs.judges.panel import Panel
from metricsmith.programs.judges.parrot import Parrot
from metricsmith.programs.judges.prometheus import PrometheusJudge
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.specialist.choosing import ExamplePolicy
from metricsmith.records import Output, Scale, Status, Task
from metricsmith.reward import DSPyCallable
from metricsmith.scoring import CallableMetric
from metricsmith.signatures.generation import Dimension
from metricsmith.stats.regression import LinearCombination, ZScore
from metricsmith.testing import GivenModel
from panels import panelled
from stubs import Scripted

JUDGE = CriterionJudge(criterion="Brevity", meaning="Short.", task="Write.")
TABLE = {"inputs": ["notice"], "output": "rewrite", "reference": ["gold"], "context": None}
EXAMPLE = dspy.Example(notice="n", gold="short words").with_inputs("notice")
Q = History(tuple(HistoricalRating("q", name, f"words by {name}", "r", spans=()) for name in "AB"))
METRICS = [
    JUDGE,
    PrometheusJudge(criterion="Brevity", meaning="Short.", levels=list("abcde"), task="Write."),
    Repeated(JUDGE, runs=2),
    Panel([JUDGE, CriterionJudge(criterion="Tone", meaning="Kind.", task="Write.")]).members()[0],
    DnAEval([Dimension(name="Brevity", meaning="Short.", weight=1)], task="Write."),
    MQMJudge(source_language="English", target_language="German", runs=2),
    MQMJudge(source_language="English", target_language="German", runs=2, spans=False, name="mqm_without_spans"),
    Specialist(ExamplePolicy(rater="any")).compile(Parrot(), Q),
    ChoiceJudge(["yes", "no"], "Is it short?", "Write.", "yes"),
    ResponseSetJudge(["yes", "no"], "Is it short?", "Write.", ["yes"]),
    default_bank().get("fkgl"),
    CallableMetric(lambda row, pred: float(len(pred.output)), name="length", version="1"),
    CodeMetric("def score(output): return len(output)"),
    trained_by_hand(),
]
METRICS.append(CrossFitted(METRICS[-1], {}, ()))


def induced(*parts, weights=(0.6, 0.4), reading=TABLE):
    """Parts whose raw numbers are used as they are; intercept 3 on a scale from 1 to 5."""
    names = tuple(part.name for part in parts)
    columns = tuple(ZScore(0.0, 1.0) for _ in parts)
    return InducedMetric(
        components=parts,
        combination=LinearCombination(names, tuple(range(len(parts))), columns, weights[: len(parts)], 3.0),
        task=Task("Write.", "quality", Scale(1, 5)),
        best=[1.0] * len(parts),
        reading=reading,
    )


METRICS += [induced(JUDGE), ColumnMetric("good")]


class Counted(Scripted):
    """A stub in [-1, 1] whose number is a function of the output; keeps the rows it saw."""

    def __init__(self, verdict, name="counted"):
        super().__init__(lambda row, run: verdict(row.output), name, Output(name, low=-1, high=1))
        self.rows = []

    def _judge(self, row, run):
        self.rows.append(row)
        return super()._judge(row, run)


def answer(prompt):
    if "[[ ## errors ## ]]" in prompt:
        return {"errors": {"critical": [], "major": [], "minor": []}}
    if "[[ ## choice ## ]]" in prompt:
        return {"reasoning": "short", "possible": ["no", "yes"], "choice": "yes"}
    return "short [RESULT] 4" if prompt.endswith("###Feedback: ") else panelled(prompt)


def test_every_kind_of_metric_is_among_these():
    kinds = [*DSPyCallable.__subclasses__(), *MetricProgram.__subclasses__()]
    kinds = [kind for kind in kinds if kind.__module__.startswith("metricsmith.")]
    assert [kind for kind in kinds if not any(isinstance(metric, kind) for metric in METRICS)] == []


@pytest.mark.parametrize("metric", METRICS[:-1], ids=lambda metric: type(metric).__name__)
def test_evaluate_takes_a_metric_itself_as_it_takes_its_reward(metric, monkeypatch):
    without_network(monkeypatch)
    rows = [dspy.Example(input="q", text=text).with_inputs("text") for text in ("Some words.", "Other, longer words.")]

    def program(text):
        return dspy.Prediction(output=text)

    with GivenModel(answer) as server, dspy.context(lm=server.lm(temperature=1.0)):
        evaluate = dspy.Evaluate(devset=rows, metric=metric, num_threads=2, display_progress=False)
        by_itself = evaluate(program)
        asked = server.requests
        assert evaluate(program).score == by_itself.score
        assert server.requests == asked
        assert evaluate(program, metric=metric.as_metric()).score == by_itself.score > 0
        assert server.requests == 2 * asked
        if isinstance(metric, dspy.Module):
            assert metric(output="Some words.", input="q").score == metric(rows[0], "Some words.").score


def test_a_column_is_read_of_the_examples_own_output_alone():
    metric, row = ColumnMetric("good"), dspy.Example(output="own", columns={"good": 1.0})
    assert metric(row).score == metric.output.score(1.0)
    with pytest.raises(JudgementFailed, match="no number in column 'good'"):
        metric(row, dspy.Prediction(output="new", columns={"good": 1.0}))


class Writer(dspy.Module):
    def __init__(self):
        super().__init__()
        self.write = dspy.Predict("notice -> rewrite")

    def forward(self, notice):
        return self.write(notice=notice)


def writing(*texts):
    """Writes these texts, one after the other, and gives advice."""
    drafts = itertools.cycle(texts)

    def answer(prompt):
        if "`[[ ## advice ## ]]`" in prompt:
            return {"discussion": "too long", "advice": {"write": "Use fewer words."}}
        return {"rewrite": next(drafts)}

    return answer


@pytest.mark.parametrize("search", [dspy.BestOfN, dspy.Refine])
@pytest.mark.parametrize("itself", [True, False])
def test_best_of_n_and_refine_pass_a_dict_of_inputs_and_get_a_number(search, itself):
    part = Counted(lambda output: 1 - len(output.split()) / 2)
    metric = induced(part, weights=(2.0,))
    # 3 + 2 (1 - words / 2) on 1 to 5: four words 1 -> 0, two words 3 -> .5, one word 4 -> .75
    with (
        GivenModel(writing("two words", "these are four words", "one")) as server,
        dspy.context(lm=server.lm(), trace=[]),
    ):
        reward_fn = metric if itself else metric.as_reward()
        best = search(module=Writer(), N=3, reward_fn=reward_fn, threshold=0.9)(notice="the notice")
        assert best.rewrite == "one"
        shown = [prompt for prompt in server.prompts if "`[[ ## advice ## ]]`" in prompt]
    assert [prompt.rsplit("[[ ## reward_value ## ]]\n", 1)[-1].split("\n")[0] for prompt in shown] == (
        ["0.5", "0.0"] if search is dspy.Refine else []
    )
    assert {(row.input, row.output) for row in part.rows} >= {("the notice", "one")}


def test_a_metric_that_needs_references_says_that_a_dict_of_inputs_has_none(caplog):
    rouge = default_bank().get("rouge1_f")
    with pytest.raises(
        NeedsError, match=r"rouge1_f needs references, and the inputs \['notice'\].* have none: .*refer"
    ):
        rouge({"notice": "n"}, dspy.Prediction(output="o"))
    assert rouge({"notice": "n", "references": ["o"]}, dspy.Prediction(output="o")) == 1.0
    assert rouge.as_metric(references="gold")({"gold": "o"}, dspy.Prediction(output="o")) == 1.0
    caplog.clear()
    metric = induced(Counted(lambda output: 0.5), rouge)
    for text in ("one", "two"):  # .5 * .6 scaled up to the whole weight of 1: 3.5 -> .625
        assert metric({"notice": "n"}, dspy.Prediction(rewrite=text)) == pytest.approx(0.625)
    ours = [record.message for record in caplog.records if record.name.startswith("metricsmith")]
    assert [message.split(",")[0] for message in ours] == ["induced needs references"]
    # 3 + .6 * .5 + .4 * 1 = 3.7 -> .675
    assert metric({"notice": "n", "gold": "one"}, dspy.Prediction(rewrite="one")) == pytest.approx(0.675)


def test_the_tables_columns_are_the_default_names_and_our_own_the_next():
    metric = induced(Counted(lambda output: 0.0))
    reward = metric.as_metric()
    theirs = RowText("out", "n", ("short words",))
    assert reward.text(EXAMPLE, dspy.Prediction(rewrite="out")) == theirs
    assert reward.text(dspy.Example(EXAMPLE, rewrite="own")) == RowText("own", "n", ("short words",))
    ours = dspy.Example(input="n", references=["short words"])
    assert reward.text(ours, dspy.Prediction(output="out")) == reward.text(ours, "out") == theirs
    assert metric.as_metric(input="other", output="text").text(
        dspy.Example(EXAMPLE, other="o"), dspy.Prediction(text="t", rewrite="out")
    ) == RowText("t", "o", ("short words",))


def test_several_columns_of_the_table_are_shown_as_in_training():
    reading = {"inputs": ["title", "body"], "output": "text", "reference": ["gold1", "gold2"]}
    reward = induced(Counted(lambda output: 0.0), reading=reading).as_metric()
    example = dspy.Example(title="Storm", body=None, gold1="a", gold2=["b", "c"])
    assert reward.text(example, "out") == RowText("out", "title: Storm", ("a", "b", "c"))


class Recorder(BaseCallback):
    """Notes the modules that start."""

    def __init__(self):
        self.started = []

    def on_module_start(self, call_id, instance, inputs):
        self.started.append(type(instance).__name__)


def both(prompt):
    return {"rewrite": "short"} if "`[[ ## rewrite ## ]]`" in prompt else {"reasoning": "short", "score": "5"}


@pytest.mark.parametrize("metric", [JUDGE, Repeated(JUDGE, runs=2), induced(JUDGE, reading={})], ids=lambda m: m.name)
@pytest.mark.parametrize("itself", [True, False])
def test_the_metrics_requests_stay_out_of_the_programs_trace_usage_history_and_demonstrations(metric, itself):
    metric = metric.deepcopy()
    called = metric if itself else metric.as_metric(output="rewrite")
    seen, recorder = [], Recorder()

    def spied(example, pred, trace=None):
        before = len(trace), dict(pred.get_lm_usage())
        verdict = called(example, pred.rewrite if itself else pred, trace)
        seen.append((before, (len(trace), dict(pred.get_lm_usage()))))
        return verdict

    with GivenModel(both) as server:
        settings = {"lm": server.lm(temperature=1.0), "track_usage": True, "callbacks": [recorder]}
        with dspy.context(**settings):
            student = Writer()
            tuned = dspy.BootstrapFewShot(metric=spied, max_bootstrapped_demos=2, max_labeled_demos=0).compile(
                student, trainset=[EXAMPLE, dspy.Example(notice="other").with_inputs("notice")]
            )
    assert server.requests > 2
    assert [before for before, _ in seen] == [after for _, after in seen]
    assert {before[0] for before, _ in seen} == {1}
    assert [set(demo.keys()) for demo in tuned.write.demos] == [{"augmented", "notice", "rewrite"}] * 2
    assert recorder.started.count("Writer") == 2


class SelfChecking(Writer):
    """A program that judges its own answer with a metric that it holds."""

    def __init__(self, metric):
        super().__init__()
        self.metric = metric

    def forward(self, notice):
        answer = self.write(notice=notice)
        self.metric(dspy.Example(notice=notice), answer.rewrite)
        return answer


def by_hand(row, pred):
    return float(dspy.Predict("output -> reasoning, score")(output=pred.output).score)


@pytest.mark.parametrize("metric", [JUDGE, CallableMetric(by_hand, version="1")], ids=["judge", "function"])
def test_a_program_that_calls_its_metric_keeps_trace_and_history_to_itself(metric):
    with GivenModel(both) as server, dspy.context(lm=server.lm(), trace=[]):
        program = SelfChecking(copy.deepcopy(metric))
        program(notice="n")
        assert server.requests == 2
        assert [predictor.signature for predictor, _, _ in dspy.settings.trace] == [program.write.signature]
        assert len(program.history) == 1


def test_another_model_or_setting_is_asked_anew_and_an_equal_one_is_not():
    with GivenModel(both) as server:
        judge, example = JUDGE.deepcopy(), dspy.Example(input="q")
        counts = []
        for lm in (server.lm(), server.lm(), server.lm(rollout_id=3), server.lm(temperature=0.5), None):
            if lm is None:
                judge.set_lm(server.lm(temperature=0.7))
            with dspy.context(lm=lm or server.lm()):
                judge(example, "text")
            counts.append(server.requests)
    assert counts == [1, 1, 1, 2, 3]


def test_what_a_called_metric_remembers_is_shared_with_copies_and_never_saved(tmp_path):
    with GivenModel(both) as server, dspy.context(lm=server.lm()):
        judge = JUDGE.deepcopy()
        before = judge.dump_state()
        judge(dspy.Example(input="q"), "text")
        assert copy.deepcopy(judge)(dspy.Example(input="q"), "text").score == 1.0
        assert server.requests == 1
        assert judge.dump_state() == before
        SelfChecking(judge).save(tmp_path / "program.json")
    part = Counted(lambda output: 0.0)
    part(dspy.Example(), "text")
    assert (part._ledger.calls, pickle.loads(pickle.dumps(part._ledger)).calls) == (1, 0)


def test_a_failure_that_was_mended_is_no_failure_to_a_feedback_call():
    verdicts = iter([Status.UNPARSABLE, 0.5])
    reward = Counted(lambda output: next(verdicts)).as_metric()
    with pytest.raises(JudgementFailed):
        reward(EXAMPLE, "text")
    assert reward(EXAMPLE, "text").score == 0.75
    assert reward(EXAMPLE, "text", [], "write", []).score == 0.75


def test_no_prediction_is_the_examples_own_output_and_none_a_program_that_crashed(caplog):
    metric = Counted(lambda output: 0.5)
    row = dspy.Example(output="own")
    assert metric(row).score == 0.75
    with caplog.at_level(logging.WARNING), pytest.raises(JudgementFailed, match="gave no output"):
        metric(row, None)
    assert "no reward for" in caplog.text


def test_a_text_in_the_place_of_an_example_is_refused_with_the_way_to_judge_it():
    with pytest.raises(DataError, match=r"brevity was called with 'q', which is no example: .* metric\(output, input="):
        JUDGE("q", "text")
