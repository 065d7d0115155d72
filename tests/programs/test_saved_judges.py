"""A judge's file is read by `metricsmith.load` and by a judge built in the same way; it holds no model."""

from __future__ import annotations

import json
import logging
import warnings

import dspy
import pytest

from metricsmith.errors import StateError
from metricsmith.optimizers.tuner import JudgeTuner
from metricsmith.optimizers.tuning.methods import METHODS
from metricsmith.programs import state
from metricsmith.programs.judges.panel import Panel
from metricsmith.programs.loading import load
from metricsmith.programs.state import Saved
from metricsmith.scoring import score
from metricsmith.testing import GivenModel
from rater_model import RaterModel, rated_rows
from saved import ROW, answer, criterion, every_kind, write

KINDS = every_kind()
JUDGES = {name: judge for name, judge in KINDS.items() if isinstance(judge, Saved)}
TUNED = ("criterion_judge with examples", "direct_assessment with examples", "esa_judge with examples", "mqm_annotator",
         "geval_judge logprob", "choice_judge", "response_set_judge", "panel", "dna_eval", "repeated")  # fmt: skip
ROWS = [
    dspy.Example(
        output=f"Words {n} " * (n + 1), input="q", references=["r"], id=f"i{n}", rating=n % 5 + 1, score=n % 5 + 1
    ).with_inputs("output", "input")
    for n in range(6)
]


def raws(metric, lm):
    table = score(metric.members() if isinstance(metric, Panel) else [metric], [ROW], lm=lm, progress=False)
    return [column[0].raw for column in map(table.column, range(len(table.metrics)))]


def check_round_trip(judge, same_built, folder):
    """Both readers give the judge back; a third saves it to the same bytes."""
    judge.save(folder / "judge.json")
    loaded = load(folder / "judge.json")
    same_built.load(folder / "judge.json")
    for again in (loaded, same_built):
        assert again.to_state() == json.loads(json.dumps(judge.to_state()))
        assert again.fingerprint() == judge.fingerprint()
        again.save(folder / "again.json")
        assert (folder / "again.json").read_bytes() == (folder / "judge.json").read_bytes()
    return loaded


@pytest.mark.parametrize("name", JUDGES)
def test_every_judge_is_read_back_by_both_and_judges_the_same(name, tmp_path):
    judge = JUDGES[name].deepcopy()
    same_built = every_kind()[name]
    loaded = check_round_trip(judge, same_built, tmp_path)
    with GivenModel(answer) as server:
        lm = server.lm(temperature=1.0, engine="lm15")
        assert raws(loaded, lm) == raws(judge, lm) == raws(same_built, lm)


def closeness(example, pred, trace=None, pred_name=None, pred_trace=None):
    return 1 - abs(pred.score - (example.rating - 1) / 4)


def bootstrap(judge, lm):
    return dspy.BootstrapFewShot(metric=lambda *a, **k: True, max_bootstrapped_demos=1, max_labeled_demos=3).compile(
        judge, trainset=ROWS
    )


def mipro(judge, lm):
    return dspy.MIPROv2(
        metric=closeness, auto=None, num_candidates=2, max_bootstrapped_demos=1, max_labeled_demos=1, prompt_model=lm
    ).compile(judge, trainset=ROWS[:4], valset=ROWS[4:], num_trials=2, minibatch=False)


def gepa(judge, lm):
    return dspy.GEPA(metric=closeness, max_metric_calls=12, reflection_lm=lm, num_threads=2).compile(
        judge, trainset=ROWS[:4], valset=ROWS[4:]
    )


def simba(judge, lm):
    return dspy.SIMBA(
        metric=closeness, bsize=4, num_candidates=2, max_steps=1, max_demos=2, prompt_model=lm, num_threads=2
    ).compile(judge, trainset=ROWS, seed=1)


@pytest.mark.parametrize("tune", [bootstrap, mipro, gepa, simba])
@pytest.mark.parametrize("name", TUNED)
def test_what_dspys_optimisers_made_of_a_judge_is_read_back(tune, name, tmp_path):
    with GivenModel(answer) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # DSPy's optimisers warn about their own defaults
        lm = server.lm(temperature=1.0, engine="lm15")
        with dspy.context(lm=lm):
            tuned = tune(JUDGES[name].deepcopy(), lm)
        loaded = check_round_trip(tuned, every_kind()[name], tmp_path)
        assert raws(loaded, lm) == raws(tuned, lm)


@pytest.mark.parametrize("method", METHODS)
def test_what_our_tuner_made_of_a_judge_is_read_back(method, tmp_path):
    with GivenModel(RaterModel(4)) as server:
        tuned = JudgeTuner(method=method, budget=210, lm=server.lm(), seed=4).compile(criterion(), rated_rows(40, 101))
    check_round_trip(tuned, criterion(), tmp_path)


def test_labelled_rows_are_saved_without_what_the_prompt_does_not_show(tmp_path):
    judge = criterion()
    judge.judge.demos = ROWS[:1]
    check_round_trip(judge, criterion(), tmp_path)
    (demo,) = load(tmp_path / "judge.json").judge.demos
    assert demo == {"output": "Words 0 ", "input": "q", "references": ["r"], "score": 1}


def test_a_model_of_a_judges_own_is_saved_by_its_name_alone_and_another_in_use_is_said_once(tmp_path, caplog):
    judge = criterion()
    judge.judge.config = {"temperature": 0.3}
    judge.set_lm(dspy.LM("openai/first", api_key="sk-secret-123456", api_base="http://127.0.0.1:9/v1"))
    judge.save(tmp_path / "judge.json")
    text = (tmp_path / "judge.json").read_text("utf-8")
    assert json.loads(text)["made_with"] == {"model": "openai/first"}
    assert not any(word in text for word in ("secret", "127.0.0.1", "config", "temperature"))
    loaded = load(tmp_path / "judge.json")
    assert (loaded.judge.lm, loaded.judge.config) == (None, {})
    with GivenModel(answer) as server, caplog.at_level(logging.WARNING, "metricsmith"):
        state._compared.clear()
        score([loaded], [ROW, *ROWS], lm=server.lm(), progress=False)
        with dspy.context(lm=server.lm()):
            loaded(output="text")
    told = [record.getMessage() for record in caplog.records if "made with" in record.getMessage()]
    assert told == [
        "the metric was made with the model openai/first and is used with openai/loopback: its numbers may differ"
    ]
    assert load(tmp_path / "judge.json").to_state() == loaded.to_state() == judge.to_state()


def test_a_folder_means_the_metric_in_it(tmp_path):
    criterion().save(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["metric.json"]
    assert load(tmp_path).fingerprint() == criterion().fingerprint()
    judge = criterion("Other")
    judge.load(tmp_path)
    assert judge.fingerprint() == criterion().fingerprint()


class Program(dspy.Module):
    def __init__(self, judge):
        super().__init__()
        self.inner = judge

    def forward(self, **texts):
        return self.inner(**texts)


def test_inside_a_program_of_the_users_dspys_state_stays_as_it_is(tmp_path):
    judge = criterion()
    judge.set_lm(dspy.LM("openai/first", temperature=0.3))
    judge.judge.demos = ROWS[:1]
    Program(judge).save(str(tmp_path / "program.json"))
    content = json.loads((tmp_path / "program.json").read_text("utf-8"))
    assert content["inner.judge"]["lm"]["model"] == "openai/first"
    assert content["inner.judge"]["demos"][0]["id"] == "i0"
    program = Program(criterion("Other"))
    program.load(str(tmp_path / "program.json"))
    assert program.inner.judge.lm.model == "openai/first"
    assert program.inner.name == "plain_words"


def test_a_file_in_dspys_own_form_is_read_without_its_model_alone(tmp_path):
    """Versions before this one wrote it, and so does DSPy's own save."""
    judge = criterion().with_examples([ROW], [4])
    dspy.Module.save(judge, str(tmp_path / "judge.json"))
    again = criterion("Other")
    again.load(tmp_path / "judge.json")
    assert again.to_state()["state"] == judge.to_state()["state"]  # DSPy keeps no provenance
    with pytest.raises(StateError, match=r"built in the same way: judge\.load\(path\)"):
        load(tmp_path / "judge.json")
    judge.set_lm(dspy.LM("openai/first"))
    dspy.Module.save(judge, str(tmp_path / "judge.json"))
    with pytest.raises(StateError, match=r"judge\.lm: not allowed: a file chooses neither a model"):
        again.load(tmp_path / "judge.json")
    dspy.Module.load(again, str(tmp_path / "judge.json"))  # what the user does who trusts the file
    assert again.judge.lm.model == "openai/first"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "more than 150 levels deep"),
        ("[" * 500 + "]" * 500, "more than 150 levels deep"),
        ('{"kind": ' + "9" * 10_000 + "}", "a number has 10,000 digits"),
        ('{"kind": 1e999}', "1e999 is no finite number"),
        ('{"kind": NaN}', "NaN is no finite number"),
        ('{"kind": "column", "kind": "bank"}', "a key stands twice"),
        ('{"kind": "column"} ' + " " * 50_000_000, "larger than 50,000,000 bytes"),
    ],
    ids=["deep", "deeper than ours", "digits", "infinite", "nan", "twice", "large"],
)
def test_a_file_that_is_no_json_of_ours_is_an_error_in_words(text, message, tmp_path):
    (tmp_path / "metric.json").write_text(text)
    with pytest.raises(StateError, match=f"is not a readable metric file .*{message}"):
        load(tmp_path)


def test_a_kind_has_its_own_largest_file(tmp_path):
    content = {"schema_version": 1, "versions": {}, **criterion().to_state()}
    demo = dict.fromkeys(("input", "output", "context"), "x" * 999_999)
    content["state"]["judge"]["demos"] = [demo] * 4
    with pytest.raises(StateError, match=r"bytes are not allowed for the kind 'criterion_judge'; 10 MB are"):
        load(write(content, tmp_path / "metric.json"))


def test_what_only_a_constructor_knows_to_be_wrong_is_an_error_of_the_file_too(tmp_path):
    content = {"schema_version": 1, "versions": {}, **KINDS["panel"].to_state()}
    content["state"]["settings"]["judges"][1] = content["state"]["settings"]["judges"][0]
    with pytest.raises(StateError, match=r"metric\.json: panel: 2 judges of the panel are called 'plain_words'"):
        load(write(content, tmp_path / "metric.json"))


def test_runs_of_runs_have_one_limit_together(tmp_path):
    from metricsmith.programs.judges.repeated import Repeated

    Repeated(Repeated(criterion(), 100), 20).save(tmp_path)
    assert load(tmp_path).runs == 20
    Repeated(Repeated(criterion(), 100), 21).save(tmp_path)
    with pytest.raises(StateError, match="2,100 judgements for one number are not allowed; 2,000 are"):
        load(tmp_path)
