"""Error span annotation: errors, then a number."""

from __future__ import annotations

import asyncio
import json

import dspy
import pytest
from dspy.adapters.baml_adapter import BAMLAdapter
from dspy.utils import DummyLM

from loopback import serve
from metricsmith.errors import DataError, JudgementFailed, OptionError
from metricsmith.metric import make_row
from metricsmith.programs.judges.direct_assessment import ESAJudge
from metricsmith.programs.judges.mqm import MQMAnnotator
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.loading import load
from metricsmith.programs.state import write_state
from metricsmith.records import ErrorSpan, Scale, Status
from metricsmith.scoring import estimate, score

TEXTS = {"output": "Das Haus ist rot, das Tor auch.", "input": "The house is red, and the old gate, too."}
ROW = make_row(**TEXTS, context="CTX")
ADDED = {"span": "das", "occurrence": 1, "type": "fluency/grammar", "description": "Article."}
OMITTED = {"span": "old", "in_source": True, "type": "accuracy/omission", "description": "Left out."}
COLOUR = {"span": "rot", "type": "accuracy/mistranslation", "description": "It is not red."}


def judge(**changes):
    return ESAJudge(**{"source_language": "English", "target_language": "German", **changes})


def answer(stated="71", major=(), minor=(), **changes):
    lists = json.dumps({"major": list(major), "minor": list(minor)})
    return {"errors": lists, "reasoning": "Readable.", "score": stated, **changes}


def judged(*answers, row=ROW, asked=None):
    with dspy.context(lm=DummyLM(list(answers))):
        (judgement,) = (asked or judge()).judge_batch([row])
    return judgement


def test_number_and_errors_come_from_one_answer():
    judgement = judged(answer("71.5", [COLOUR, OMITTED], [ADDED]))
    assert (judgement.raw, judgement.score, judgement.usage.requests) == (71.5, 0.715, 1)
    assert judgement.spans == (
        ErrorSpan("major", "accuracy/mistranslation", 13, 16, "rot", "target", "It is not red."),
        ErrorSpan("major", "accuracy/omission", 26, 29, "old", "source", "Left out."),
        ErrorSpan("minor", "fluency/grammar", 18, 21, "das", "target", "Article."),
    )
    assert judgement.feedback == (
        "Readable. Errors: major accuracy/mistranslation «rot»: It is not red; "
        "major accuracy/omission «old» in the source: Left out; minor fluency/grammar «das»: Article."
    )


def test_no_error_is_said_to_be_none():
    judgement = judged(answer("100"))
    assert (judgement.raw, judgement.spans, judgement.feedback) == (100, (), "Readable. Errors: none.")


def test_forward_and_its_async_twin_give_number_and_errors():
    with dspy.context(lm=DummyLM([answer(minor=[ADDED])] * 2)):
        verdicts = [judge()(**TEXTS), asyncio.run(judge().acall(**TEXTS))]
    assert [(verdict.raw, verdict.score, len(verdict.spans)) for verdict in verdicts] == [(71, 0.71, 1)] * 2


def test_a_quotation_that_does_not_occur_stays_an_error():
    (span,) = judged(answer(minor=[{**COLOUR, "span": "blau"}])).spans
    assert (span.text, span.start, span.end) == ("blau", None, None)


def test_an_error_whose_words_speak_of_no_error_is_one():
    row = make_row("Es gibt no error.", input="There is no error.")
    (span,) = judged(
        answer(major=[{**COLOUR, "span": "no error", "type": "accuracy/untranslated text"}]), row=row
    ).spans
    assert (span.start, span.end, span.text) == (8, 16, "no error")


def test_every_error_counts_however_many():
    assert len(judged(answer(minor=[ADDED] * 6)).spans) == 6


@pytest.mark.parametrize(
    "errors",
    [
        "",
        "no error",
        "N/A",
        "**Major:** none\n**Minor:** none",
        "Major: 'rot' - mistranslation\nMinor: none",
        "[]",
        "{}",
        '{"major": []}',
        '{"major": [], "minor": null}',
        '{"major": [], "minor": "none"}',
        '{"major": [], "minor": ["none"]}',
        '{"major": [], "minor": [], "critical": []}',
        '{"errors": [{"severity": "major", "span": "rot"}]}',
        '{"major": [{"span": "rot"}], "minor": []}',
    ],
)
def test_an_answer_without_its_two_lists_is_no_text_without_errors(errors):
    spoilt = answer("100", errors=errors)
    judgement = judged(spoilt, spoilt)
    assert (judgement.status, judgement.raw, judgement.spans) == (Status.UNPARSABLE, None, ())


@pytest.mark.parametrize("stated", ["101", "-5", "nan", "inf"])
def test_a_number_off_the_scale_fails_with_its_errors(stated):
    judgement = judged(answer(stated, [COLOUR]), answer(stated, [COLOUR]))
    assert (judgement.status, judgement.raw, judgement.spans) == (Status.OUT_OF_RANGE, None, ())
    assert "is not on the scale 0 to 100" in judgement.error


@pytest.mark.parametrize("stated", ["", "71/100", "71 points", "N/A"])
def test_a_number_is_never_picked_out_of_words(stated):
    assert judged(answer(stated), answer(stated)).status is Status.UNPARSABLE


def test_prose_is_asked_about_once_more_and_then_fails():
    with serve(lambda prompt: answer(), malformed=1.0) as server, dspy.context(lm=server.lm()):
        (judgement,) = judge().judge_batch([ROW])
    assert judgement.status is Status.UNPARSABLE
    assert judgement.usage.requests == server.requests == 2


@pytest.mark.parametrize("kind", [ESAJudge, MQMAnnotator])
def test_lists_of_errors_are_refused_under_the_baml_adapter_before_anything_is_sent(kind):
    asked = kind(source_language="English", target_language="German")
    with serve(lambda prompt: answer()) as server, dspy.context(lm=server.lm(), adapter=BAMLAdapter()):
        for attempt in (lambda: asked(**TEXTS), lambda: score([asked], [ROW]), lambda: estimate([asked], [ROW])):
            with pytest.raises(OptionError, match=f"'{asked.name}' wants errors .* put dspy.ChatAdapter"):
                attempt()
    assert server.requests == 0


def test_a_row_without_source_is_skipped_and_costs_nothing():
    with serve(lambda prompt: answer()) as server, dspy.context(lm=server.lm()):
        (judgement,) = judge().judge_batch([make_row("OUT")])
        with pytest.raises(JudgementFailed, match="no source text"):
            judge()(output="OUT")
    assert (judgement.status, server.requests) == (Status.SKIPPED, 0)


def test_languages_error_types_and_texts_are_shown():
    prompt = judge().messages(ROW)[-1]["content"]
    assert all(text in prompt for text in ("English", "German", "CTX", *TEXTS.values(), "fluency: character encoding"))
    assert "CTX" not in judge(context="none").messages(ROW)[-1]["content"]


SPANS = (
    ErrorSpan("Critical", "accuracy", 13, 16, "rot", description="Not red."),
    ErrorSpan("minor", "style/awkward", 18, 21, "das"),
    ErrorSpan("major", "accuracy/omission", 26, 29, "old", side="source"),
    ErrorSpan("neutral", "style", 0, 3, "Das"),
    ErrorSpan("minor", "fluency", text="Tor"),
)


def rated(spans):
    return make_row(**TEXTS, spans=spans, id="r1")


def test_an_example_has_the_errors_that_people_marked():
    demo = judge().example(rated(SPANS), 40, "Wrong colour.")
    assert (demo["score"], demo["reasoning"]) == (40, "Wrong colour.")
    kept = {
        severity: [(error["span"], error["occurrence"], error["in_source"], error["description"]) for error in errors]
        for severity, errors in demo["errors"].items()
    }
    assert kept == {
        "major": [("rot", 1, False, "Not red."), ("old", 1, True, "accuracy/omission")],
        "minor": [("das", 1, False, "style/awkward"), ("Tor", 1, False, "fluency")],
    }


def test_the_marked_occurrence_is_the_one_that_is_shown_and_found_again():
    row = make_row("ja, ja und ja", input="yes", spans=[ErrorSpan("minor", "style", 4, 6, "ja")])
    (error,) = judge().example(row, 50)["errors"]["minor"]
    assert error["occurrence"] == 2
    (span,) = judged(answer(minor=[error]), row=row).spans
    assert (span.start, span.end) == (4, 6)


def test_a_row_without_marked_errors_is_no_example_of_a_text_without_errors():
    with pytest.raises(DataError, match=r"'r1' has no marked errors.*DirectAssessment"):
        judge().example(make_row(**TEXTS, id="r1"), 40)
    assert judge().example(rated(()), 100)["errors"] == {"major": [], "minor": []}


@pytest.mark.parametrize(
    ("rating", "spans", "words"),
    [(101, (), "is not on the scale 0 to 100"), (50, [ErrorSpan("grave", "x")], "grave")],
)
def test_ratings_and_severities_that_mean_nothing_make_no_example(rating, spans, words):
    with pytest.raises(DataError, match=words):
        judge().example(rated(spans), rating)


def test_examples_are_saved_loaded_and_shown_as_answers(tmp_path):
    tuned = judge().with_examples([rated(SPANS)], [40], ["Wrong colour."])
    write_state(tuned.to_state(), tmp_path / "metric.json")
    again = load(tmp_path / "metric.json")
    other = make_row("OUT", input="IN")
    assert again.fingerprint() == tuned.fingerprint() != judge().fingerprint()
    assert again.messages(other) == tuned.messages(other)
    assert '"span": "rot"' in tuned.messages(other)[2]["content"]
    assert len(tuned.messages(ROW)) == 2, "a row is judged without the answer to it"
    assert judged(answer("40"), asked=again).raw == 40


def test_demonstrations_that_dspy_made_are_saved_and_loaded_alike():
    with dspy.context(lm=DummyLM([answer(major=[COLOUR])] * 9)):
        rows = [dspy.Example(**TEXTS).with_inputs(*TEXTS)]
        tuned = dspy.BootstrapFewShot(metric=lambda *a, **k: True).compile(judge(), trainset=rows)
    again = ESAJudge.from_state(json.loads(json.dumps(tuned.to_state())))
    other = make_row("OUT", input="IN")
    assert tuned.examples[0].get("augmented")
    assert again.fingerprint() == tuned.fingerprint()
    assert again.messages(other) == tuned.messages(other)


def test_every_setting_is_part_of_the_fingerprint():
    changed = [judge(source_language="French"), judge(target_language="French"), judge(context="none")]
    prints = [asked.fingerprint() for asked in (judge(), judge(meaning="Good."), *changed)]
    assert len(set(prints)) == len(prints)


def test_dspys_own_save_and_load_carry_the_settings(tmp_path):
    judge(context="none").save(str(tmp_path / "judge.json"))
    again = judge(target_language="French")
    again.load(str(tmp_path / "judge.json"))
    assert again.fingerprint() == judge(context="none").fingerprint()


def test_an_unknown_context_is_refused():
    with pytest.raises(OptionError, match="allowed are document, none"):
        judge(context="all")


def test_the_card_is_complete():
    card = judge().card
    assert (card.kind, card.needs, card.multi_reference) == ("esa_judge", ("input", "model"), "")
    assert judge().scale == Scale(0, 100)
    assert (card.outputs[0].name, card.outputs[0].low, card.outputs[0].high) == ("esa", 0, 100)
    assert all((card.summary, card.formula, card.best_for, card.not_for, card.limits, card.failure_cases, card.papers))


def test_runs_of_a_judge_are_combined():
    stated = iter(("60", "70", "95"))
    with serve(lambda prompt: answer(next(stated), [COLOUR])) as server:
        table = score([Repeated(judge(), 3, "mean", outliers=None)], [ROW], lm=server.lm(temperature=1.0))
    assert table.judgement(0, 0).raw == 75
