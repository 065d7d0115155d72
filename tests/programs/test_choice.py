"""Judges of options: one request answers for every option, and an answer that breaks a rule fails for all of them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import dspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import JudgementFailed, OptionError, StateError
from metricsmith.judges import ChoiceJudge, ResponseSetJudge
from metricsmith.metric import Asker, Metric, make_row
from metricsmith.model_calls.limits import Budget
from metricsmith.model_calls.reading import read
from metricsmith.probing import Prober
from metricsmith.programs.judges.choice import OptionMember
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.loading import from_state, load
from metricsmith.records import Status
from metricsmith.scoring import estimate, score
from metricsmith.testing import GivenModel

OPTIONS = ["yes", "not really", "not really at all", "ja, gut", "Ça va"]
ASKED = (OPTIONS, "Is the reply rude?", "Answer letters.")
ROWS = [make_row(f"text {number}", input="q", id=f"r{number}") for number in range(4)]


def chooser(positive=None, name="rude"):
    return ChoiceJudge(*ASKED, positive, name=name)


def lister(forced=True, positive=None, name="sets"):
    return ResponseSetJudge(*ASKED, positive, forced=forced, name=name)


def says(choice, possible=("yes", "ja, gut")):
    """The same answer to everybody."""
    return lambda prompt: {"reasoning": "because", "possible": json.dumps(list(possible)), "choice": choice}


def scored(metrics, answer, rows=ROWS, **options):
    """The table and the number of requests."""
    with GivenModel(answer) as model:
        lm = model.lm(temperature=1.0)
        table = score(metrics, rows, lm=lm, progress=False, **{"max_failure_rate": 1.0, **options})
        return table, model.requests


def said(judge, answer, adapter=None):
    """The prediction of one answer, without a second try."""
    with GivenModel([answer]) as model, dspy.context(lm=model.lm(num_retries=0), adapter=adapter):
        return judge(output="text", input="q")


def by_text(prompt):
    """Another answer for each row: one of three options, a set that grows, and for the last row nothing of use."""
    place = int(prompt.split("text ")[-1][0])
    possible = OPTIONS[: place + 1]
    fields = {"reasoning": f"as of {place}", "choice": OPTIONS[place], "possible": json.dumps(possible)}
    return {**fields, "choice": "perhaps"} if place == 3 else fields


def test_members_are_metrics_of_0_and_1_that_name_their_asker():
    judge = chooser()
    members = judge.members()
    assert isinstance(judge, Asker)
    assert all(isinstance(member, Metric) and member.asker is judge for member in members)
    assert [member.name for member in members] == [f"rude={option}" for option in OPTIONS]
    assert {(member.output.low, member.output.high, member.output.higher_is_better) for member in members} == {
        (0.0, 1.0, None)
    }
    assert "| 0 to 1 | neither |" in members[0].card.to_markdown()
    assert [member.name for member in lister().members()] == [
        *(f"sets={option}" for option in OPTIONS), *(f"sets->{option}" for option in OPTIONS),
    ]  # fmt: skip
    assert len(lister(forced=False).members()) == 5


def test_one_request_answers_for_every_option_and_runs_are_the_last_axis():
    table, requests = scored([chooser(), lister()], by_text, ROWS[:3], runs=2)
    assert requests == 3 * 2 * 2
    assert table.values.shape == (3, 15, 2)
    assert table.values[:, :5, 0].tolist() == np.eye(5)[:3].tolist()
    assert table.values[:, 5:10, 1].tolist() == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]
    assert table.values[:, 10:, 1].tolist() == np.eye(5)[:3].tolist()
    assert [one.judgement(0, 0).feedback for one in (table, table.select(["rude=not really"]))] == ["yes: as of 0", ""]
    assert table.judgement(0, 0).score is None
    assert table.usage.requests == requests
    assert [line.usage.requests for line in table.coverage()] == [6, 0, 0, 0, 0, 6, *[0] * 9]


def test_an_invalid_answer_fails_for_all_options_and_is_never_the_first_one():
    table, requests = scored([chooser(), lister()], by_text)
    assert requests == 2 * 4 + 2  # one repair for each judge
    assert np.isnan(table.values[3]).all()
    assert {judgement.status for judgement in table.failed()} == {Status.UNPARSABLE}
    found = chooser().answers(table)
    assert found.options == tuple(OPTIONS)
    assert found.choices.tolist() == [[0], [1], [2], [-1]]
    assert found.valid.tolist() == [[True], [True], [True], [False]]
    assert found.sets is None


def test_answers_pairs_the_set_and_the_choice_of_one_answer():
    table, _ = scored([lister(), chooser()], by_text, runs=2)
    found = lister().answers(table)
    assert found.sets.shape == (4, 2, 5)
    assert found.sets[:3, 1].tolist() == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]
    assert np.isnan(found.sets[3]).all()
    assert found.choices.tolist() == [[0, 0], [1, 1], [2, 2], [-1, -1]]
    alone = lister(forced=False)
    found = alone.answers(scored([alone], by_text)[0])
    assert found.choices is None
    assert found.sets[3, 0].tolist() == [1, 1, 1, 1, 0]  # nobody asks for the choice that spoilt the other


def test_answers_takes_numbers_and_leaves_out_what_no_single_answer_can_be():
    judge = ResponseSetJudge(["a", "b"], "?", "t", name="j")
    good, empty, outside, two, lacking = (1, 1, 0, 1), (0, 0, 0, 0), (1, 0, 0, 1), (1, 1, 1, 1), (1, math.nan, 1, 0)
    found = judge.answers(np.array([good, empty, outside, two, lacking], dtype=float)[:, :, None])
    assert found.valid[:, 0].tolist() == [True, False, False, False, False]
    assert found.choices[:, 0].tolist() == [1, -1, -1, -1, -1]
    sets = ResponseSetJudge(["a", "b"], "?", "t", forced=False, name="s")
    assert sets.answers(np.array([[1, 1], [0, 0], [0, 1]])[:, :, None]).valid[:, 0].tolist() == [True, False, True]
    with pytest.raises(OptionError, match=r"numbers of shape \(3, 5, 1\): j has \(rows, 4, runs\)"):
        judge.answers(np.zeros((3, 5, 1)))
    with pytest.raises(OptionError, match="no column 'j=a'"):
        judge.answers(scored([chooser()], says("yes"), ROWS[:1])[0])


def test_store_budget_and_estimate_work_as_for_every_judge(tmp_path):
    store = tmp_path / "judgements.db"
    table, requests = scored([lister()], says("yes"), store=store, budget=Budget(requests=2), concurrency=1)
    assert requests == 2
    assert lister().answers(table).valid.tolist() == [[True], [True], [False], [False]]
    with GivenModel(says("yes")) as model:
        assert estimate([lister()], ROWS, lm=model.lm(temperature=1.0), store=store).requests == 2
    table, requests = scored([lister(), chooser()], says("yes"), store=store)
    assert requests == 2 + 4
    assert lister().answers(table).valid.all()


def test_two_judges_of_one_name_are_refused_and_one_judge_twice_is_not():
    for other in (ChoiceJudge(["a", "b"], "Another?", "t", name="rude"), chooser("yes"), lister(name="rude")):
        with pytest.raises(OptionError, match="two judges are called 'rude': give one another name="):
            scored([chooser(), other], says("yes"))
    with GivenModel(says("yes")) as first, GivenModel(says("yes")) as second:
        here, there = chooser(), chooser()
        here.set_lm(first.lm(temperature=1.0))
        there.set_lm(second.lm(temperature=0.5))
        with pytest.raises(OptionError, match="two judges are called 'rude'"):
            score([here, there], ROWS, progress=False)
    assert scored([chooser(), *chooser().members()], says("yes"))[1] == 4


@pytest.mark.parametrize("adapter", [dspy.ChatAdapter(), dspy.JSONAdapter(), dspy.XMLAdapter()])
def test_every_adapter_reads_the_same_answers(adapter):
    def written(possible, choice):
        if isinstance(adapter, dspy.JSONAdapter):
            return json.dumps({"reasoning": "r", "possible": possible, "choice": choice})
        if isinstance(adapter, dspy.XMLAdapter):
            items = "".join(f"<item>{one}</item>" for one in possible)
            return f"<reasoning>r</reasoning><possible>{items}</possible><choice>{choice}</choice>"
        listed = json.dumps(possible)
        fields = {"reasoning": "r", "possible": listed, "choice": choice}
        return "\n\n".join(f"[[ ## {name} ## ]]\n{text}" for name, text in [*fields.items(), ("completed", "")])

    for possible, choice in ((OPTIONS, "not really"), (["not really at all"], "not really at all")):
        found = said(lister(), written(possible, choice), adapter)
        assert (found.choice, found.forced_choice, found.raw) == (frozenset(possible), choice, None)
    found = said(lister(), written([" YES", "ça VA", "Ja, Gut"], '"Ja, gut"'), adapter)
    assert (found.choice, found.forced_choice) == (frozenset({"yes", "Ça va", "ja, gut"}), "ja, gut")
    for possible, choice in ((["yes", "yes"], "yes"), ([], "yes"), (["yes", "no"], "yes"), (["yes"], "ja, gut"),
                             (["yes"], "not"), (["yes"], "yes."), (["not really really"], "not really")):  # fmt: skip
        with pytest.raises((JudgementFailed, dspy.AdapterParseError)):
            said(lister(), written(possible, choice), adapter)


def test_a_list_that_breaks_off_is_no_set_and_one_in_python_is():
    def listed(possible):
        return {"reasoning": "r", "possible": possible, "choice": "yes"}

    assert said(lister(), listed("['yes', \"ja, gut\"]")).choice == {"yes", "ja, gut"}
    for possible in ('["yes", "ja, gut"', "yes", "- yes\n- ja, gut", '{"yes": 1}', "['yes'", "__import__('os')",
                     "{[]: 1}", "{{}}", "yes, ja", "[" * 5000):  # fmt: skip
        with pytest.raises(dspy.AdapterParseError, match=r"possible .* is not a list"):
            said(lister(), listed(possible))


def test_case_counts_only_where_it_tells_options_apart():
    judge = ChoiceJudge(["A", "a", "Bee", "1", "true"], "Which?", "t")
    for text, choice in {"A": "A", " a ": "a", "BEE": "Bee", "**Bee**": "Bee", "`bee`": "Bee", "“Bee”": "Bee",
                         "1": "1", "true": "true"}.items():  # fmt: skip
        assert said(judge, {"reasoning": "r", "choice": text}).choice == choice
    twins = ChoiceJudge(["Ja", "JA", "nein"], "Which?", "t")
    with pytest.raises(dspy.AdapterParseError, match="'ja' is more than one of the options"):
        said(twins, {"reasoning": "r", "choice": "ja"})
    with pytest.raises(dspy.AdapterParseError, match="'maybe' is none of the options"):
        said(twins, {"reasoning": "r", "choice": "maybe"})
    decomposed = {"reasoning": "r", "choice": "C\u0327a va"}  # the letter and its mark apart
    assert said(chooser(), decomposed).choice == "Ça va"


def test_a_score_says_that_the_answer_meets_the_positive_options():
    found = said(chooser(["yes", "ja, gut"]), {"reasoning": "r", "choice": "ja, gut"})
    assert (found.choice, found.raw, found.score, found.feedback) == ("ja, gut", 3, 1.0, "ja, gut: r")
    assert said(chooser("yes"), {"reasoning": "r", "choice": "Ça va"}).score == 0.0
    assert "score" not in said(chooser(), {"reasoning": "r", "choice": "yes"})
    listed = {"reasoning": "r", "possible": '["yes", "not really"]', "choice": "yes"}
    assert said(lister(positive=["not really", "Ça va"]), listed).score == 1.0  # as the set holds it, not the choice
    assert said(lister(positive="ja, gut"), listed).score == 0.0
    assert "score" not in said(lister(), listed)


def test_without_positive_options_nobody_gets_a_score_out_of_a_judge():
    judge, program = chooser(), lambda output, input: output
    for refused in (judge.as_metric, judge.as_reward, lister().as_metric):
        with pytest.raises(OptionError, match=r"has no score, because none of its options .* say positive=\['yes'\]"):
            refused()
    with pytest.raises(OptionError, match=r"rude=ja, gut has no score, .* take the judge .* positive=\['ja, gut'\]"):
        chooser("yes").members()[3].as_metric()
    assert judge.judge_batch(ROWS[:1])[0].status is Status.SKIPPED
    evaluate = dspy.Evaluate(devset=[row.with_inputs("output", "input") for row in ROWS], metric=judge, max_errors=1)
    with GivenModel(says("yes")) as model, dspy.context(lm=model.lm()):
        with pytest.raises(Exception, match="cancelled"):
            evaluate(program)
        assert model.requests == 0


def test_what_is_better_neither_way_is_not_probed_or_made_one_number_of_runs():
    for metric in (chooser("yes").members()[0], chooser(), lister()):
        with pytest.raises(OptionError, match=r"neither way: take Repeated\(judge, runs=1\) of one with positive="):
            Repeated(metric, runs=3)
    with pytest.raises(OptionError, match="rude=yes is better neither way"):
        Prober().probe(chooser("yes").members()[0], ROWS)
    with pytest.raises(OptionError, match=r"one of its members\(\), or Repeated\(judge, runs=1\) if it has positive"):
        Prober().probe(chooser("yes"), ROWS)
    repeated = Repeated(chooser(["yes", "ja, gut"]), runs=3)
    assert (repeated.output.low, repeated.output.high, repeated.output.sign) == (0.0, 1.0, 1)
    table, requests = scored([repeated], by_text, ROWS[:2])
    assert (table.values[:, 0, 0].tolist(), requests) == ([1.0, 0.0], 6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("yes", "must be a list of two to 1000"),
        (["yes"], "must be a list of two to 1000"),
        (["yes", "yes"], "'yes' is there twice"),
        (["yes", " no"], "must be a text of one line"),
        (["yes", ""], "must be a text of one line"),
        (["yes", "no\nway"], "must be a text of one line"),
        (["yes", 2], "must be a text of one line"),
        (["yes", "<<CUSTOM-TYPE-START-IDENTIFIER>>"], "must be a text of one line"),
        (["yes", "y" * 2001], "of at most 2000 Unicode characters"),  # a file with it could not be loaded
        (["yes", "\ud800"], "of at most 2000 Unicode characters"),
    ],
)
def test_options_that_no_answer_could_tell_apart_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        ChoiceJudge(options, "Which?", "t")


def test_other_arguments_without_meaning_are_refused():
    with pytest.raises(OptionError, match=r"positive='yess' is no option \(did you mean 'yes'\?\)"):
        chooser("yess")
    with pytest.raises(OptionError, match="must ask something"):
        ChoiceJudge(OPTIONS, " ", "t")
    for positive in (3, True):
        with pytest.raises(OptionError, match=f"positive={positive} is no option"):
            chooser(positive)
    for question, task, name in ((None, "t", "x"), ("Rude?", None, "x"), ("Rude?", "t", 3)):
        with pytest.raises(OptionError, match=r"question=.*, task=.* and name=.* must be texts"):
            ChoiceJudge(OPTIONS, question, task, name=name)
    for name in ("a=b", "a->b"):
        with pytest.raises(OptionError, match="have no = or ->"):
            chooser(name=name)
    with pytest.raises(StateError, match=r"rude has no member 'rude=yess' \(did you mean 'rude=yes'"):
        OptionMember(chooser(), "rude=yess")


def test_a_long_question_makes_a_short_name_and_a_file_that_loads(tmp_path):
    judge = ChoiceJudge(OPTIONS, "Does it break the policy? " * 200, "Answer letters.")
    assert judge.name == "does_it_break_the_policy_does_it_break_the_policy_does_it_br"
    judge.save(tmp_path / "judge.json")
    assert load(tmp_path / "judge.json").fingerprint() == judge.fingerprint()


def test_a_file_brings_back_judge_and_member_and_is_checked_against_its_own_options(tmp_path):
    judge = lister(positive="yes")
    judge.judge.demos = [dspy.Example(input="i", output="o", reasoning="r", possible=["yes"], choice="yes")]
    for metric in (judge, judge.members()[7]):
        metric.save(tmp_path / "judge.json")
        again = load(tmp_path / "judge.json")
        assert again.fingerprint() == metric.fingerprint()
        assert again.to_state() == metric.to_state()
    state = json.loads(json.dumps(judge.to_state()))
    state["state"]["judge"]["demos"][0]["choice"] = "perhaps"
    with pytest.raises(StateError, match=r"demos\[0\]\.choice: 'perhaps' is not allowed"):
        from_state(state)
    for name, value, message in (("options", ["a", "a"], "is there twice"), ("options", ["a"], "a list of 1"),
                                 ("positive", ["perhaps"], "is no option"), ("forced", "no", "not allowed is 'no'"),
                                 ("name", "a=b", "have no = or ->"), ("lm", 1, "not allowed; known are")):  # fmt: skip
        spoilt = json.loads(json.dumps(lister(positive="yes").to_state()))
        spoilt["state"]["settings"][name] = value
        with pytest.raises(StateError, match=message):
            from_state(spoilt)


def test_the_page_shows_what_runs_and_what_it_prints(capsys):
    page = (Path(__file__).parents[2] / "docs" / "scoring.md").read_text("utf-8")
    (block,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "ChoiceJudge" in block]
    with GivenModel(lambda prompt: {"reasoning": "r", "possible": '["polite"]', "choice": "polite"}) as model:
        names = {"score": score, "rows": ROWS, "lm": model.lm(temperature=1.0)}
        with dspy.context(lm=model.lm()):
            exec(compile(block, "scoring.md", "exec"), names)
        assert model.requests == 2 * 4 * 3 + 1
    columns, choice = capsys.readouterr().out.splitlines()
    assert f"prints `{columns}` and a choice" in page
    assert choice == "polite"
    assert (names["found"].sets.shape, names["found"].choices.shape) == ((4, 3, 3), (4, 3))


WORDS = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=12).map(str.strip)


@settings(deadline=None, max_examples=60)
@given(st.lists(WORDS.filter(lambda word: word.splitlines() == [word]), min_size=2, max_size=6, unique=True), st.data())
def test_any_option_is_read_back_as_itself_in_json_whatever_the_others_are(options, data):
    judge = ResponseSetJudge(options, "Which?", "t")
    some = data.draw(st.lists(st.sampled_from(options), min_size=1, unique=True))
    fields = read(
        dspy.JSONAdapter(), judge.signature, json.dumps({"reasoning": "r", "possible": some, "choice": some[0]})
    )
    found = judge.read(dspy.Prediction(**fields), None)
    assert (found.choice, found.forced_choice) == (frozenset(some), some[0])


@settings(deadline=None)
@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3).filter(any), min_size=1, max_size=8), st.data())
def test_answers_are_the_columns_that_were_made_of_them(sets, data):
    judge = ResponseSetJudge(["a", "b", "c"], "Which?", "t", name="j")
    places = [data.draw(st.sampled_from([k for k in range(3) if one[k]])) for one in sets]
    values = np.concatenate([np.array(sets, dtype=float), np.eye(3)[places]], axis=1)
    lost = np.array([data.draw(st.booleans()) for _ in sets])
    values[lost] = np.nan
    found = judge.answers(values[:, :, None])
    assert found.valid[:, 0].tolist() == (~lost).tolist()
    assert found.choices[:, 0].tolist() == [-1 if gone else place for gone, place in zip(lost, places, strict=True)]
    assert np.array_equal(found.sets[~lost, 0], np.array(sets, dtype=float)[~lost])


def test_fingerprints_cover_every_setting_and_members_their_option():
    judges = [chooser(), chooser("yes"), chooser(name="x"), ChoiceJudge(OPTIONS[::-1], *ASKED[1:], name="rude"),
              lister(), lister(forced=False), ChoiceJudge(OPTIONS, "Other?", "t", name="rude")]  # fmt: skip
    prints = [one.fingerprint() for judge in judges for one in (judge, *judge.members())]
    assert len(set(prints)) == len(prints)
    assert chooser().deepcopy().fingerprint() == chooser().fingerprint()
