"""Generated judges: one request for the axes, none handed out twice, failures said."""

from __future__ import annotations

import dspy
import pytest

from loopback import QUALITIES, scripted, serve
from metricsmith.errors import ModelFailure, OptionError
from metricsmith.optimizers.generation import DEFAULT_COUNTS, generate_judges
from metricsmith.records import Scale, Task
from planted import TASK, planted_rows

ROWS = planted_rows(sources=8)


def made(answer=scripted, counts=DEFAULT_COUNTS, **faults):
    with serve(answer, **faults) as server, dspy.context(lm=server.lm()):
        return generate_judges(ROWS, TASK, counts), server


def test_the_default_is_ten_criteria_and_five_rubrics_from_one_request_for_axes():
    generated, server = made()
    assert [judge.kind for judge in generated.metrics] == ["criterion_judge"] * 10 + ["rubric_judge"] * 5
    assert server.requests == generated.usage.requests == 6
    assert [judge.settings.criterion for judge in generated.metrics] == list(QUALITIES[:15])


def test_rubrics_come_in_the_order_of_their_axes():
    generated, _ = made(counts={"rubric": 4})
    assert [judge.settings.criterion for judge in generated.metrics] == list(QUALITIES[:4])
    assert generated.metrics[0].settings.levels[0] == "Level 1 of five."


def test_faults_are_survived_and_counted():
    generated, server = made(server_errors=0.2, malformed=0.2)
    assert len(generated.metrics) == 15
    assert server.requests == generated.usage.requests > 6


def test_repeated_axes_are_dropped_and_said():
    def repeating(prompt):
        answer = scripted(prompt)
        if "axes" in answer:
            answer["axes"] = [*answer["axes"][:3], {"name": "plain  WORDS!", "meaning": "Again."}]
        return answer

    generated, _ = made(repeating, counts={"criterion": 4})
    assert len(generated.metrics) == 3
    assert "4 axes were asked for, 3 distinct ones came back" in generated.notes


def test_an_axis_whose_rubric_fails_is_left_out_and_said():
    def stubborn(prompt):
        if "Plain words" in prompt.rsplit("[[ ## criterion ## ]]", 1)[-1] and "levels" in scripted(prompt):
            return {"levels": ["only one"]}
        return scripted(prompt)

    generated, _ = made(stubborn, counts={"rubric": 3})
    assert len(generated.metrics) == 2
    assert any("no rubric for 'Plain words'" in note for note in generated.notes)


def test_rubrics_from_examples_show_what_the_request_for_axes_does_and_are_off_unless_asked_for():
    assert "rubric_examples" not in DEFAULT_COUNTS
    generated, server = made(counts={"criterion": 1, "rubric_examples": 2})
    assert server.requests == generated.usage.requests == 1 + 2
    assert [judge.kind for judge in generated.metrics] == ["criterion_judge"] + ["rubric_judge"] * 2
    assert [judge.settings.criterion for judge in generated.metrics] == list(QUALITIES[:3])
    axes, *rubrics = server.prompts

    def shown(prompt):
        return prompt.rsplit("[[ ## liked ## ]]", 1)[1].split("[[ ## c")[0]

    assert {shown(prompt) for prompt in rubrics} == {shown(axes)}
    assert all("rating 5 (1 to 5)" in shown(prompt) for prompt in rubrics)


def test_rubrics_without_examples_see_no_row():
    _, server = made(counts={"rubric": 1})
    assert not any(row.output in server.prompts[1] for row in ROWS)


def test_geval_judges_have_written_steps_and_are_off_unless_asked_for():
    assert "geval" not in DEFAULT_COUNTS
    generated, server = made(counts={"criterion": 1, "geval": 3})
    assert server.requests == generated.usage.requests == 1 + 3
    assert [judge.kind for judge in generated.metrics] == ["criterion_judge"] + ["geval_judge"] * 3
    judge = generated.metrics[1]
    assert (judge.settings.criterion, judge.settings.mode) == (QUALITIES[1], "logprob")
    assert judge.settings.steps == ["Look for what the criterion names.", "Weigh what you found."]
    assert judge.settings.task == TASK.description


def test_an_axis_without_steps_is_left_out_and_said():
    def stubborn(prompt):
        if "Plain words" in prompt.rsplit("[[ ## criterion ## ]]", 1)[-1] and "steps" in scripted(prompt):
            return {"steps": []}
        return scripted(prompt)

    generated, _ = made(stubborn, counts={"geval": 3})
    assert len(generated.metrics) == 2
    assert any("no evaluation steps for 'Plain words'" in note for note in generated.notes)


def test_without_axes_there_is_a_model_failure():
    with pytest.raises(ModelFailure, match="request for criteria"):
        made(lambda prompt: {"axes": []})


def test_an_unknown_family_is_refused():
    with pytest.raises(OptionError, match="did you mean 'rubric'"):
        generate_judges(ROWS, TASK, {"rubrik": 3})


def test_the_model_is_told_how_many_axes_are_wanted_and_which_way_the_rating_points():
    def asked(task):
        with serve(scripted) as server, dspy.context(lm=server.lm()):
            generate_judges(ROWS, task, {"criterion": 2, "rubric": 1})
        return server.prompts[0]

    up, down = asked(TASK), asked(Task("Count errors.", "rating", Scale(1, 5, higher_is_better=False)))
    assert "rating, from 1 to 5\n" in up
    assert "rating, from 1 to 5, where lower is better\n" in down
    assert up.rsplit("[[ ## count ## ]]", 1)[-1].split()[0] == "3"


def test_more_axes_than_asked_for_are_cut_off():
    # The scripted model always proposes fifteen.
    generated, _ = made(counts={"criterion": 4})
    assert [judge.settings.criterion for judge in generated.metrics] == list(QUALITIES[:4])
    assert generated.notes == ()


def test_examples_follow_the_seed():
    tied = [row.copy(rating=1.0 + 4.0 * (number % 2)) for number, row in enumerate(ROWS)]
    prompts = []
    for seed in (0, 0, 1):
        with serve(scripted) as server, dspy.context(lm=server.lm()):
            generate_judges(tied, TASK, {"criterion": 1}, seed=seed)
        prompts.append(server.prompts[0])
    assert prompts[0] == prompts[1] != prompts[2]
