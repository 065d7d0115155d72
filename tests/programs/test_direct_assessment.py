"""Translations rated on the four scales of direct assessment."""

from __future__ import annotations

from dataclasses import replace

import dspy
import pytest
from dspy.utils import DummyLM

from faults import Fault, Faults
from loopback import serve
from metricsmith.errors import DataError, JudgementFailed, OptionError, StateError
from metricsmith.metric import make_row
from metricsmith.optimizers.tuner import JudgeTuner
from metricsmith.programs.judges import direct_assessment
from metricsmith.programs.judges.direct_assessment import CLASSES, KINDS, DirectAssessment
from metricsmith.programs.judges.raters import ExampleJudge
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.loading import load
from metricsmith.records import Scale, Status, Task
from metricsmith.saving import write_state
from metricsmith.scoring import score

ROW = make_row("OUT", input="IN", references=["REF1", "REF2"], context="CTX")
OTHER = make_row("OTHER OUT", input="OTHER IN", references=["REF"])


def judge(**changes):
    return DirectAssessment(**{"source_language": "English", "target_language": "German", **changes})


def answer(stated):
    return {"reasoning": f"because {stated}", "score": stated, "quality": stated}


def judged(asked, *stated, row=ROW):
    """The judgement of a row by a model that states these things, one request after the other."""
    with dspy.context(lm=DummyLM([answer(each) for each in stated])):
        (judgement,) = asked.judge_batch([row])
    return judgement


# Scores by hand: (raw - low) / (high - low).
@pytest.mark.parametrize(
    ("scale", "stated", "raw", "unit"),
    [
        ("da", "0", 0, 0.0),
        ("da", "95.5", 95.5, 0.955),
        ("da", "100", 100, 1.0),
        ("sqm", "33", 33, 0.33),
        ("sqm", "66.6", 66.6, 0.666),
        ("stars", "1", 1, 0.0),
        ("stars", "4", 4, 0.75),
        ("stars", "5.0", 5, 1.0),
        ("classes", "lost", 0, 0.0),
        ("classes", "fragmentary", 1, 0.25),
        ("classes", "understandable", 2, 0.5),
        ("classes", "sound", 3, 0.75),
        ("classes", "flawless", 4, 1.0),
    ],
)
def test_a_number_on_the_scale_counts_as_it_is(scale, stated, raw, unit):
    judgement = judged(judge(scale=scale), stated)
    assert (judgement.raw, judgement.score) == (raw, pytest.approx(unit))
    assert judgement.feedback == f"{stated}: because {stated}" if scale == "classes" else f"because {stated}"


@pytest.mark.parametrize("stated", ["Sound", "SOUND", '"sound"', "'Sound'", "“sound”", " sound \n"])
def test_case_and_quotation_marks_of_a_class_do_not_count(stated):
    assert judged(judge(scale="classes"), stated).raw == 3


@pytest.mark.parametrize(
    ("scale", "stated"),
    [(scale, stated) for scale in ("da", "sqm") for stated in ("101", "100.1", "-5", "-0.1", "inf", "-inf", "nan")]
    + [("da", "1e400")]
    + [("stars", stated) for stated in ("0", "6", "-5", "3.5", "4.999", "nan", "inf", "95")],
)
def test_a_number_off_the_scale_is_no_number(scale, stated):
    judgement = judged(judge(scale=scale), stated, stated)
    assert (judgement.status, judgement.raw, judgement.score) == (Status.OUT_OF_RANGE, None, None)
    assert f"is not on the scale {KINDS[scale].scale}" in judgement.error


@pytest.mark.parametrize(
    ("scale", "stated"),
    [("da", stated) for stated in ("", "N/A", "95/100", "95%", "90-95", "95,5", "ninety", "80 or 90", "9" * 400)]
    + [("stars", stated) for stated in ("3.5 stars", "5 stars", "*****", "★★★", "four", "4/5", "4 to 5")]
    + [("classes", stated) for stated in ("", "sound.", "sounds", "not sound", "lost or sound", "3", "**sound**")],
)
def test_a_number_is_never_picked_out_of_words(scale, stated):
    judgement = judged(judge(scale=scale), stated, stated)
    assert (judgement.status, judgement.raw, judgement.score) == (Status.UNPARSABLE, None, None)


def test_an_unusable_answer_is_repaired_once_with_the_same_settings():
    with serve(lambda prompt: answer("3.5 stars")) as server, dspy.context(lm=server.lm(temperature=0.3)):
        (judgement,) = judge(scale="stars").judge_batch([ROW])
    assert judgement.usage.requests == server.requests == 2
    assert judged(judge(scale="stars"), "3.5", "3").raw == 3


def test_two_choices_for_one_row_shift_no_other_row():
    rows = [make_row(f"OUT {place}", input="IN") for place in range(6)]
    script = Faults(script={"OUT 2": [Fault.TWO_CHOICES]})
    with serve(lambda prompt: answer(prompt.split("OUT ")[1][0]), script=script) as server:
        table = score([judge()], rows, lm=server.lm(), progress=False)
    assert server.faults[Fault.TWO_CHOICES] == 1
    assert [judgement.raw for judgement in table.column(0)] == [0, 1, 2, 3, 4, 5]


def shown(asked, row=ROW):
    return asked.messages(row)[-1]["content"]


def test_references_are_shown_if_asked_for_all_of_them_and_in_order():
    prompt = shown(judge(reference=True))
    assert prompt.index("REF1") < prompt.index("REF2")
    assert "REF" not in shown(judge())
    assert all(text in shown(judge()) for text in ("OUT", "IN", "CTX", "English", "German"))


def test_the_document_is_shown_unless_it_is_not_wanted():
    assert "CTX" not in shown(judge(context="none"))


@pytest.mark.parametrize("scale", KINDS)
def test_the_scale_is_described(scale):
    assert KINDS[scale].description in shown(judge(scale=scale))


def test_every_class_is_described_in_the_order_of_their_numbers():
    lines = KINDS["classes"].description.splitlines()
    assert [line.split(":")[0] for line in lines] == list(CLASSES)


def test_an_empty_translation_is_judged_and_said_to_be_empty():
    row = make_row("", input="IN")
    assert "(the translation is empty)" in shown(judge(), row)
    assert judged(judge(), "0", row=row).raw == 0


@pytest.mark.parametrize(
    ("asked", "texts", "lacking"),
    [
        (judge(), {"output": "OUT", "references": ["REF"]}, "no source text"),
        (judge(reference=True), {"output": "OUT", "input": "IN"}, "no reference"),
        (judge(reference=True), {"output": "OUT", "input": "IN", "references": ["", " \n"]}, "no reference"),
        (judge(reference=True), {"output": "OUT", "references": ["REF"]}, "no source text"),
    ],
)
def test_a_row_that_lacks_what_is_needed_is_skipped_and_costs_nothing(asked, texts, lacking):
    with serve(lambda prompt: answer("50")) as server, dspy.context(lm=server.lm()):
        (judgement,) = asked.judge_batch([make_row(**texts)])
        with pytest.raises(JudgementFailed, match=lacking) as caught:
            asked(**texts)
    assert server.requests == 0
    assert judgement.status == caught.value.status == Status.SKIPPED
    assert lacking in judgement.error


def test_one_reference_among_blank_ones_is_enough():
    assert judged(judge(reference=True), "7", row=make_row("OUT", input="IN", references=["", "REF"])).raw == 7


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scale": "star"}, "did you mean 'stars'.*allowed are da, sqm, stars, classes"),
        ({"scale": 5}, "unknown scale=5"),
        ({"reference": "REF"}, "must be True or False"),
        ({"reference": 1}, "must be True or False"),
        ({"source_language": " "}, "must name a language"),
        ({"context": "all"}, "allowed are document, none"),
    ],
)
def test_arguments_without_meaning_are_refused(changes, words):
    with pytest.raises(OptionError, match=words):
        judge(**changes)


# By hand: of two equally near stars or classes the lower one.
@pytest.mark.parametrize(
    ("scale", "rating", "field", "value"),
    [
        ("da", 71.5, "score", 71.5),
        ("sqm", 66, "score", 66),
        ("stars", 5, "score", 5),
        ("stars", 3.5, "score", 3),
        ("stars", 3.6, "score", 4),
        ("classes", 0, "quality", "lost"),
        ("classes", 4, "quality", "flawless"),
        ("classes", 2.5, "quality", "understandable"),
        ("classes", 2.51, "quality", "sound"),
    ],
)
def test_a_rated_row_becomes_an_answered_example(scale, rating, field, value):
    asked = judge(scale=scale).with_examples([ROW], [rating], ["A slip."])
    (demo,) = asked.examples
    outputs = {name: demo[name] for name in asked.signature.output_fields}
    assert outputs == {"reasoning": "A slip.", field: value}
    assert {name for name in demo if name not in outputs} == set(asked.signature.input_fields)
    turns = asked.messages(OTHER)
    assert [turn["role"] for turn in turns] == ["system", "user", "assistant", "user"]
    assert f"[[ ## {field} ## ]]\n{value}" in turns[2]["content"]
    assert len(asked.messages(ROW)) == 2, "a row is judged without the answer to it"


@pytest.mark.parametrize(("scale", "rating"), [("da", 101), ("stars", 0.6), ("classes", 4.4), ("sqm", float("nan"))])
def test_a_rating_off_the_scale_makes_no_example(scale, rating):
    with pytest.raises(DataError, match="is not on the scale"):
        judge(scale=scale).example(ROW, rating)


VARIANTS = [judge(scale=scale, reference=reference) for scale in KINDS for reference in (False, True)]


@pytest.mark.parametrize("asked", VARIANTS, ids=lambda asked: asked.name)
def test_a_judge_is_saved_with_what_it_has_learned_and_loaded(asked, tmp_path):
    tuned = asked.with_examples([ROW], [2])
    tuned.judge.signature = tuned.judge.signature.with_instructions("New words.")
    write_state(tuned.to_state(), tmp_path / "metric.json")
    again = load(tmp_path / "metric.json")
    assert again.to_state() == tuned.to_state()
    assert again.fingerprint() == tuned.fingerprint() != asked.fingerprint()
    assert again.messages(OTHER) == tuned.messages(OTHER)


def test_every_setting_is_part_of_the_fingerprint():
    changed = [
        judge(source_language="French"), judge(target_language="French"), judge(context="none"), judge(meaning="Good."),
    ]  # fmt: skip
    prints = [asked.fingerprint() for asked in (*VARIANTS, *changed)]
    assert len(set(prints)) == len(prints)
    assert judge().fingerprint() == judge().fingerprint()


def test_a_scale_described_in_other_words_is_another_judge(monkeypatch):
    before = judge().fingerprint()
    other = replace(KINDS["da"], description="0 is bad, 100 is good")
    monkeypatch.setattr(direct_assessment, "KINDS", {**KINDS, "da": other})
    assert judge().fingerprint() != before


def test_default_names_tell_scale_and_reference_and_can_be_replaced():
    names = ["da", "da_ref", "sqm", "sqm_ref", "stars", "stars_ref", "classes", "classes_ref"]
    assert [asked.name for asked in VARIANTS] == names
    assert judge(name="mine").name == "mine"


class Program(dspy.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner


def loaded(saved, into, folder):
    Program(saved).save(str(folder / "program.json"))
    program = Program(into)
    program.load(str(folder / "program.json"))
    return program.inner


def test_dspys_own_save_and_load_carry_the_settings(tmp_path):
    again = loaded(judge(scale="sqm", reference=True), judge(target_language="French"), tmp_path)
    assert (again.name, again.settings.target_language) == ("sqm_ref", "German")
    assert again.fingerprint() == judge(scale="sqm", reference=True).fingerprint()


@pytest.mark.parametrize(("saved", "into"), [("da", "classes"), ("classes", "stars")])
def test_settings_of_another_kind_of_answer_are_noticed(saved, into, tmp_path):
    again = loaded(judge(scale=saved), judge(scale=into), tmp_path)
    with pytest.raises(StateError, match=f"scale='{saved}'.*build it with that scale"):
        judged(again, "50")


@pytest.mark.parametrize("asked", VARIANTS, ids=lambda asked: asked.name)
def test_the_card_says_what_is_needed_and_what_the_number_is(asked):
    card, output = asked.card, asked.card.outputs[0]
    assert card.kind == "direct_assessment"
    assert card.needs == (("input", "references", "model") if asked.settings.reference else ("input", "model"))
    assert bool(card.multi_reference) == asked.settings.reference
    assert (output.name, output.low, output.high) == (asked.name, asked.scale.low, asked.scale.high)
    assert card.tasks == ("translation, English-German",)
    assert all((card.summary, card.best_for, card.not_for, card.limits, card.failure_cases, card.papers, card.related))
    assert KINDS[asked.settings.scale].description.splitlines()[-1] in card.formula


def test_runs_of_a_judge_are_combined():
    stated = iter(("60", "70", "95"))
    with serve(lambda prompt: answer(next(stated))) as server:
        table = score([Repeated(judge(), 3, "mean", outliers=None)], [ROW], lm=server.lm(temperature=1.0))
    assert table.judgement(0, 0).raw == 75


@pytest.mark.parametrize("scale", KINDS)
def test_a_tuner_shows_rated_rows_on_the_judges_scale(scale):
    """Raters gave 0 to 10 and the model says what they gave, on its own scale; untuned it says the same of all."""
    own = KINDS[scale].scale
    rows = [make_row(f"OUT {n}", input=f"IN {n}", rating=n % 11, group=str(n)) for n in range(24)]

    def say(prompt):
        place = int(prompt.rsplit("OUT ", 1)[1].split("\n")[0])
        level = own.low + (place % 11) / 10 * own.width if prompt.count("OUT ") > 1 else own.low
        return answer(CLASSES[round(level)] if scale == "classes" else f"{round(level)}")

    with serve(say) as server:
        tuner = JudgeTuner(method="labeled", budget=150, task=Task("", "rating", Scale(0, 10)), lm=server.lm(), seed=1)
        tuned = tuner.compile(judge(scale=scale), rows)
    assert not server.wrong
    assert tuned.tuning.replaced
    assert tuned.examples


def test_its_ratings_serve_a_judge_by_examples_as_well():
    asked = judge(scale="stars")
    taught = ExampleJudge(measure="Stars", task="Translate.", scale=asked.scale).with_examples([ROW], [4])
    assert taught.examples[0]["score"] == asked.example(ROW, 4)["score"] == 4
