"""Specialists: what is refused, what comes back, what their prompts show, and what is said of unknown systems."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import dspy
import pytest
from dspy.utils import DummyLM

import metricsmith
from annotating import errors
from histories import LANGUAGES, OUTPUTS, SCALE, SMALL, annotator, assessment, error, past, specialist
from loopback import serve
from metricsmith.datasets.history import History
from metricsmith.errors import DataError, JudgementFailed, OptionError
from metricsmith.metric import make_row
from metricsmith.model_calls.limits import estimate_tokens
from metricsmith.optimizers.specialist import Specialist, examples_of, specialised
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.direct_assessment import DirectAssessment
from metricsmith.programs.judges.mqm import MQMAnnotator, MQMJudge
from metricsmith.programs.judges.parrot import ExampleMean, Parrot
from metricsmith.programs.judges.raters import ExampleJudge, GuidelineJudge
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.loading import from_state
from metricsmith.programs.specialist.choosing import ExamplePolicy
from metricsmith.programs.specialist.examples import judged
from metricsmith.records import ErrorSpan, Scale, Status

ROW = make_row("das Haus da", input="s1", system="B", rater="r1")
STARS = Scale(1, 5)


def rated(*numbers, scale=STARS, systems="ABCDEFGHIJ"):
    """One story prompt, and a system for each rating of it."""
    return History(
        tuple(past("s1", system, "r1", f"Tale {system}", None, n) for system, n in zip(systems, numbers, strict=False)),
        "tales",
        scale,
    )


def user_texts(messages):
    return [message["content"] for message in messages if message["role"] == "user"]


def demonstrated(messages):
    return [message["content"] for message in messages if message["role"] == "assistant"]


# Compiling


@pytest.mark.parametrize(
    ("judge", "words"),
    [
        (CriterionJudge(criterion="c", meaning="m", task="t"), "'c' cannot be specialised; DirectAssessment"),
        (MQMAnnotator(**LANGUAGES), "mqm_run has a worked example of another text: make it with worked_example=False"),
        (MQMAnnotator(**LANGUAGES, worked_example=False), "mqm_run is shown whole documents"),
        (MQMJudge(**LANGUAGES), "has a worked example"),
        (DirectAssessment(**LANGUAGES), "da is shown whole documents, which its examples do not have"),
        (
            assessment().with_examples([make_row("o", input="i")], [50]),
            "da has 1 fixed examples, which would stand beside those that change",
        ),
    ],
)
def test_judges_that_cannot_be_specialised(judge, words):
    with pytest.raises(OptionError, match=words):
        Specialist().compile(judge, SMALL)


def test_histories_and_policies_that_cannot_be_used():
    with pytest.raises(OptionError, match="must be a History"):
        Specialist().compile(annotator(), SMALL.rows())
    with pytest.raises(OptionError, match="must be an ExamplePolicy"):
        Specialist({"source": "same"})
    nameless = History(tuple(replace(one, rater="") for one in SMALL.ratings), "nameless", SCALE)
    for rater in ("same", "other", "merged"):
        with pytest.raises(DataError, match=f"nameless does not say who rated, which rater='{rater}' asks for"):
            specialist(of=nameless, rater=rater)
    assert specialist(of=nameless, rater="any").messages(ROW)
    assert specialist(of=nameless, source="none").messages(ROW)


def test_ratings_that_a_judge_cannot_show():
    marks = History(tuple(past("s1", s, "r1", f"out {s}", ()) for s in "AB"), "marks")
    with pytest.raises(DataError, match="has marked errors and no number to show"):
        specialist(assessment(), marks)
    with pytest.raises(DataError, match="has ratings without marked errors, which mqm_run is to be shown"):
        specialist(of=rated(1, 2))
    # A three on a scale from 1 to 5 is not a three on one from 0 to 100.
    with pytest.raises(DataError, match="tales is rated from 1 to 5 and da rates from 0 to 100"):
        specialist(assessment(), rated(1, 3))
    with pytest.raises(DataError, match=r"rated from 0 to 100 \(lower is better\) and da rates from 0 to 100, so"):
        specialist(assessment(), rated(1, 3, scale=Scale(0, 100, higher_is_better=False)))
    with pytest.raises(DataError, match="tales is rated from 1 to 5 and"):
        specialist(ExampleJudge(measure="Wit", task="t", scale=Scale(1, 7)), rated(1, 3))
    assert specialist(ExampleJudge(measure="Wit", task="t", scale=Scale(1, 5, 1)), rated(1, 3))


@pytest.mark.parametrize(
    "judge",
    [
        annotator(), assessment(), assessment(scale="sqm"), Parrot(), MQMJudge.of(annotator(), runs=3),
        Repeated(assessment(), 3, "median"),
    ],
)  # fmt: skip
def test_a_copy_of_the_same_class_comes_back(judge):
    before = judge.fingerprint()
    made = specialist(judge)
    assert type(made) is type(judge)
    assert made is not judge
    assert judge.fingerprint() == before != made.fingerprint()
    found = examples_of(made)
    assert (found.history, found.policy, dict(found.joined)) == (SMALL, ExamplePolicy(), {"A": "A", "T": "A"})
    inner = made.judge if isinstance(made, Repeated) else made
    assert inner.reads == ("system", "rater")
    assert inner.card.name == judge.card.name or "specialised" in inner.card.name


def test_judges_of_ratings_are_specialised_too():
    example = specialist(ExampleJudge(measure="Wit", task="Tell.", scale=STARS), rated(1, 4.4, 5))
    row = make_row("Tale A", input="s1", system="A", rater="r1")
    # 4.4 goes to the nearest point that is asked.
    assert sorted(text.split("[[ ## score ## ]]\n")[1][0] for text in demonstrated(example.messages(row))) == ["4", "5"]
    guided = specialist(GuidelineJudge(measure="Wit", guideline="Be fair.", task="Tell.", scale=STARS), rated(1, 2))
    assert user_texts(guided.messages(row))[-1].count("Be fair.") == 0
    assert guided.messages(row)[0]["content"].count("Be fair.") == 1


def test_on_a_made_scale_ratings_stand_by_their_place_in_the_history():
    # Ten ratings on a scale of no use to people: two in each fifth.
    numbers = [-1.7, -1.5, -1.2, -0.9, -0.4, 0.1, 0.3, 0.6, 0.9, 1.1]
    one = rated(*numbers, scale=Scale(-1.73, 1.15))
    made = specialist(ExampleJudge(measure="Wit", task="Tell.", scale=Scale(-1.73, 1.15)), one)
    found = {rating.system: made.past(rating)["score"] for rating in one.ratings}
    assert list(found.values()) == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_points_of_mqm_become_what_is_left_of_a_hundred():
    """Worked out by the rule of the docstring: 100 - 4 min(25, points), rounded."""
    points = {0.0: 100, -0.1: 100, -1.0: 96, -5.1: 80, -24.9: 0, -25.0: 0, -30.0: 0}
    one = rated(*points, scale=Scale(-40, 0))
    made = specialist(assessment(), one)
    assert [made.past(rating)["score"] for rating in one.ratings] == list(points.values())
    plain = specialist(assessment(), rated(10, 99.5, scale=Scale(0, 100)))
    assert [plain.past(rating)["score"] for rating in plain.row_examples.history.ratings] == [10, 99.5]


def test_test_rows_make_twins_known():
    new = [make_row(texts["B"], input=source, system="new", rater="r1") for source, texts in OUTPUTS.items()]
    keep = ExamplePolicy(same_output="keep")
    blind = Specialist(keep).compile(annotator(), SMALL)
    seeing = Specialist(keep).compile(annotator(), SMALL, iter(new))
    shown = [len(demonstrated(judge.messages(new[1]))) for judge in (blind, seeing)]
    assert shown == [3, 2]  # A, B and C; without B, which says what the new one says
    assert examples_of(seeing).joined["new"] == "B"
    assert blind.fingerprint() != seeing.fingerprint()


# Prompts


def test_what_is_equal_for_all_rows_stands_once():
    messages = specialist().messages(ROW)
    system, *turns = (message["content"] for message in messages)
    assert len(turns) == 2 * 2 + 1
    for told in ("source_language (language of the source): English", "target_language", "error_types"):
        assert system.count(told) == 1
    assert system.count("accuracy: addition, mistranslation") == 1
    assert not any(
        name in text for text in turns for name in ("source_language", "target_language", "error_types", "document")
    )
    assert "«begin" in turns[-1]
    assert "das Haus da" in turns[-1]
    assert not any("das Haus da" in text for text in turns[:-1])


def test_errors_show_a_description_only_where_they_have_one():
    spans = (error("x", "x y"), error("y", "x y", description="Not so."))
    ratings = (past("s1", "A", "r1", "x y", spans), past("s1", "B", "r1", "das Haus da", ()))
    (told,) = demonstrated(specialist(of=History(ratings, "described")).messages(ROW))
    answer = json.loads(told.split("[[ ## errors ## ]]\n")[1].split("\n\n[[ ##")[0])
    assert answer["major"] == [
        {"span": "x", "occurrence": 1, "in_source": False, "type": "accuracy/mistranslation"},
        {
            "span": "y", "occurrence": 1, "in_source": False, "type": "accuracy/mistranslation",
            "description": "Not so.",
        },
    ]  # fmt: skip


def test_the_plain_judge_s_prompt_stays_and_no_examples_are_the_plain_prompt():
    plain = annotator()
    before = plain.messages(ROW)
    made = specialist(plain)
    assert plain.messages(ROW) == before != made.messages(ROW)
    assert specialist(plain, source="none").messages(ROW) == before
    assert "earlier judgements" not in str(before)


def test_a_row_is_shown_other_systems_by_its_rater():
    for rater, severity in (("r1", "major"), ("r2", "minor")):
        turns = specialist().messages(make_row("zwei Tiere", input="s2", system="B", rater=rater))
        shown = "".join(user_texts(turns)[:-1])
        assert ("zwei Hunde" in shown, "der Hund" in shown, "zwei Tiere" in shown) == (True, True, False)
        answers = [json.loads(text.split("]]\n")[1].split("\n\n")[0]) for text in demonstrated(turns)]
        assert [{name for name, listed in answer.items() if listed} for answer in answers] == [{severity}] * 2


def test_same_seed_same_prompt_another_seed_another():
    made, again, other = specialist(rater="any"), specialist(rater="any"), specialist(rater="any", seed=2)
    assert made.messages(ROW) == again.messages(ROW) != other.messages(ROW)
    assert sorted(demonstrated(made.messages(ROW))) == sorted(demonstrated(other.messages(ROW)))
    assert made.fingerprint() == again.fingerprint() != other.fingerprint()


def test_every_rating_of_the_history_is_in_the_fingerprint():
    first, *rest = SMALL.ratings
    others = [(replace(first, rating=-6.0), *rest), (replace(first, spans=()), *rest), (*rest, first), tuple(rest)]
    made = [specialist(of=History(ratings, "small", SCALE)) for ratings in (SMALL.ratings, *others)]
    assert made[0].fingerprint() == specialist().fingerprint()
    assert len({judge.fingerprint() for judge in made}) == len(made)


def test_examples_are_cut_to_a_number_of_tokens_from_the_end_and_counted():
    made = specialist(rater="any")
    whole = made.shown_examples(judged(ROW))
    sizes = [sum(estimate_tokens(str(value)) for value in one.values()) for one in whole.demonstrations]
    assert len(sizes) == 6
    for kept in (1, 3, 5):
        cut = specialist(rater="any", max_tokens=sum(sizes[:kept])).shown_examples(judged(ROW))
        assert cut.choice.places == whole.choice.places[:kept]
        assert cut.choice.excluded["beyond max_tokens"] == 6 - kept
        assert cut.demonstrations == whole.demonstrations[:kept]
        assert len(cut.ratings) + sum(cut.choice.excluded.values()) == cut.choice.candidates
    starved = specialist(rater="any", max_tokens=1)  # never a silent empty prompt
    with dspy.context(lm=DummyLM([])):
        (judgement,) = starved.judge_batch([ROW])
    assert (judgement.status, judgement.usage.requests) == (Status.SKIPPED, 0)
    assert "the first example for 'B' on the source 's1' alone has more than max_tokens=1" in judgement.error


def test_fixed_examples_that_are_added_later_are_refused():
    made = specialist()
    made.judge.demos = [dspy.Example(source="s", translation="t", errors=json.loads(errors()))]
    for use in (lambda: made.messages(ROW), lambda: made(**ROW.inputs().toDict(), system="B", rater="r1")):
        with pytest.raises(OptionError, match=r"has 1 fixed examples beside those that change .* tune its instruction"):
            use()


def test_a_tuned_instruction_is_kept():
    made = specialist()
    made.judge.signature = made.judge.signature.with_instructions("Look twice.")
    told = made.messages(ROW)[0]["content"]
    assert "Look twice." in told
    assert "source_language (language of the source): English" in told
    assert made.card.instruction == "Look twice."
    assert specialist(made.deepcopy()).fingerprint() == made.fingerprint()


def test_a_row_of_an_unknown_source_is_skipped_and_costs_nothing():
    with dspy.context(lm=DummyLM([])):
        (judgement,) = specialist().judge_batch([make_row("x", input="s9", system="A", rater="r1")])
        assert (judgement.status, judgement.usage.requests) == (Status.SKIPPED, 0)
        assert "no rating of the source 's9' in small" in judgement.error
        with pytest.raises(JudgementFailed, match="no rating of the source"):
            specialist()(output="x", input="s9")


# Running


def test_dspy_s_evaluate_hands_system_and_rater_on():
    rows = [row for row in SMALL.rows() if row.group == "s2"]
    lm = DummyLM([{"errors": errors()}] * len(rows))
    evaluate = dspy.Evaluate(
        devset=rows, metric=lambda example, pred, trace=None: pred.raw, num_threads=1, display_progress=False
    )
    with dspy.context(lm=lm):
        found = evaluate(specialist())
    assert [prediction.raw for _, prediction, _ in found.results] == [0.0] * len(rows)
    made = specialist()
    assert sorted(str(call["messages"]) for call in lm.history) == sorted(str(made.messages(row)) for row in rows)


def test_runs_are_repeated_with_the_row_s_own_examples():
    made = specialist(MQMJudge.of(annotator(), runs=3))
    with serve(lambda prompt: {"errors": errors()}) as server, dspy.context(lm=server.lm(temperature=1.0)):
        assert made(output="das Haus da", input="s1", system="B", rater="r2").raw == 0.0
    expected = specialist().messages(make_row("das Haus da", input="s1", system="B", rater="r2"))
    assert len(server.prompts) == 3
    for prompt in server.prompts:
        assert all(message["content"] in prompt for message in expected)
        assert prompt.count("[[ ## translation ## ]]") == 1 + 2 + 1  # of the form, two examples and the row


def test_labels_may_be_numbers():
    row = make_row("das Haus da", input="s1", system="B", rater=0)
    zero = History(tuple(replace(one, rater=one.rater.replace("r1", "0")) for one in SMALL.ratings), "0", SCALE)
    shown = specialist(of=zero).shown_examples(replace(judged(ROW), rater="0"))
    assert shown.choice.fallbacks == ()
    assert len(demonstrated(specialist(of=zero).messages(row))) == 2


def test_threads_see_the_same_prompts():
    rows, made = SMALL.rows(), specialist(rater="any")
    expected = [specialist(rater="any").messages(row) for row in rows]
    fresh = from_state(made.to_state())
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(fresh.messages, rows)) == expected


def test_filtered_examples_lack_what_people_marked_in_the_row():
    one = History(
        (
            past("s1", "A", "r1", "das Haus ja", (error("das", "das Haus ja"), error("Haus", "das Haus ja"))),
            past("s1", "B", "r1", "das Haus da", (ErrorSpan("minor", "x", 4, 8, "Haus"),)),
        )
    )
    plain = specialist(Parrot(), one)
    filtered = specialised(Parrot(), replace(examples_of(plain), filtered=True))
    found = [[span.text for span in judge.judge_batch([ROW])[0].spans] for judge in (plain, filtered)]
    assert found == [["das", "Haus"], ["das"]]
    assert filtered.fingerprint() != plain.fingerprint()


def test_a_system_that_nobody_compared_is_named_once(caplog):
    row = make_row("Ein neuer Satz.", input=SMALL.ratings[0].source, system="New", rater=SMALL.ratings[0].rater)
    judge = Specialist().compile(Parrot(), SMALL)
    with caplog.at_level("WARNING", logger="metricsmith.notes"):
        judge.judge_batch([row, row, SMALL.rows()[0]])
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        f"'New' is a system that {SMALL.name} does not have"
    ]
    caplog.clear()
    with caplog.at_level("WARNING", logger="metricsmith.notes"):
        Specialist().compile(Parrot(), SMALL, test=[row]).judge_batch([row])
    assert not caplog.records


def test_a_saved_specialist_knows_the_systems_that_it_was_compared_with(caplog, tmp_path):
    rows = [make_row("Ein neuer Satz.", input="s1", system=name, rater="r1") for name in ("New", "Other")]
    judge = Specialist().compile(Parrot(), SMALL, test=rows[:1])
    assert judge.fingerprint() == Specialist().compile(Parrot(), SMALL).fingerprint()
    judge.save(tmp_path / "parrot.json")
    loaded = metricsmith.load(tmp_path / "parrot.json")
    with caplog.at_level("WARNING", logger="metricsmith.notes"):
        loaded.judge_batch(rows)
    assert [record.getMessage().split(" ")[0] for record in caplog.records] == ["'Other'"]
    assert loaded.to_state() == judge.to_state()  # warnings change no file
    assert "compared" not in specialist(Parrot()).to_state()["settings"]["row_examples"]


def test_filtered_examples_are_looked_at_by_the_rule_that_chose_them():
    """The wanted rater has an equal output alone, which filtered drops whatever the policy says of equal outputs."""
    one = History(
        (
            past("s1", "A", "r1", "ein Haus"), past("s1", "B", "r1", "ein Haus"),
            past("s1", "C", "r2", "das Haus", (error("Haus", "das Haus"),)),
        )
    )  # fmt: skip
    filtered = specialised(Parrot(), replace(examples_of(specialist(Parrot(), one, same_output="keep")), filtered=True))
    assert [one.system for one in filtered.shown_examples(judged(one.rows()[0])).ratings] == ["C"]


def test_a_rating_that_cannot_be_shown_is_told_with_the_way_out():
    mixed = History((past(rating=-1.0, spans=None), past("s1", "B", output="das")), scale=SCALE)
    for judge in (Parrot(), ExampleMean(), DirectAssessment(**LANGUAGES, context="none")):
        with pytest.raises(DataError, match=r"leave (it|them) out of the history, or "):
            specialist(judge, mixed)


@pytest.mark.parametrize("around", ["{} ", "\t{}", "{}\n"])
def test_white_space_around_an_output_hides_no_system_and_no_equal_output(around):
    """Readers of new outputs strip them, those of ratings may not: the system is the same all the same."""
    loose = History(
        tuple(replace(one, output=around.format(one.output), spans=()) for one in SMALL.ratings), "loose", SCALE
    )
    new = [make_row(outputs["B"], input=source, system="new", rater="r1") for source, outputs in OUTPUTS.items()]
    assert examples_of(Specialist().compile(Parrot(), loose, test=new)).joined["new"] == "B"
    nameless = make_row("das Haus da", input="s1", rater="r1")
    shown = specialist(Parrot(), loose, same_output="keep").shown_examples(judged(nameless))
    assert [one.system for one in shown.ratings].count("B") == 0
    assert shown.choice.excluded["of an equal output"] > 0
