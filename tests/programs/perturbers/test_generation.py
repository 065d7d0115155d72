"""Generated perturbations from end to end: what is asked, what is declined, what it cost."""

from __future__ import annotations

import dspy
import pytest

from faults import Fault, Faults
from loopback import DAMAGES, scripted, serve
from metricsmith.errors import DataError, ModelFailure, NeedsError, OptionError
from metricsmith.model_calls.limits import Concurrency
from metricsmith.model_calls.rate_limiter import RateLimiter, use
from metricsmith.programs.perturbers.base import Source
from metricsmith.programs.perturbers.generated import IDENTICAL, Preserve, Worsen
from metricsmith.programs.perturbers.generation import (
    estimate_requests,
    generate_perturbations,
    pick_examples,
    shown_examples,
)
from metricsmith.scoring import Budget
from metricsmith.signatures.generation import Axis

SOURCES = [
    Source(f"Road {n} is shut until May because of works.", f"Notice {n // 2}", "By Ann", ("Shut.",)) for n in range(6)
]
FACTS, TONE = Axis(name="Facts", meaning="All facts are there."), Axis(name="Tone", meaning="It is polite.")
BOTH = ("subtle", "obvious")


def made(answer=scripted, sources=SOURCES, dimensions=(FACTS,), strengths=("obvious",), faults=None, **options):
    """The generated perturbations, and the server."""
    script = {name: options.pop(name) for name in ("script", "always", "delay") if name in options}
    with serve(answer, **script) as server:
        return generate_perturbations(
            sources, "Rewrite notices.", dimensions, strengths, lm=server.lm(), **options
        ), server


def with_fields(**fields):
    """The scripted model with other answers where it has these fields."""
    return lambda prompt: {**(said := scripted(prompt)), **{name: fields[name] for name in fields if name in said}}


@pytest.mark.parametrize("effects", [("worse",), ("same",), ("worse", "same")])
@pytest.mark.parametrize("strengths", [("obvious",), BOTH])
@pytest.mark.parametrize("dimensions", [(FACTS,), (FACTS, TONE)])
def test_where_nothing_fails_the_requests_are_the_estimate(effects, strengths, dimensions):
    generated, server = made(dimensions=dimensions, strengths=strengths, effects=effects)
    each = len(strengths) * len(effects) * 6
    assert server.requests == generated.usage.requests == len(dimensions) * (each + ("worse" in effects))
    assert server.requests == estimate_requests(SOURCES, dimensions, strengths, effects)
    assert not server.wrong


def test_every_source_gets_one_output_for_each_strategy_and_one_that_is_preserved():
    generated, _ = made(dimensions=(FACTS, TONE), strengths=BOTH)
    expected = [
        (axis, row, strength, *what)
        for axis in ("Facts", "Tone")
        for row in range(6)
        for strength in BOTH
        for what in (*((name, "worse") for name in DAMAGES), ("preserve", "same"))
    ]
    found = generated.perturbations
    assert [(one.dimension, one.row, one.strength, one.strategy, one.effect) for one in found] == expected
    assert {one.origin for one in found} == {"generated"}
    assert found[0].output == "Road 0 is shut"  # the scripted model's first strategy leaves the first half
    assert found[2].output == SOURCES[0].output + "!"
    assert [plan.name for plan in generated.strategies["Tone"]] == list(DAMAGES)
    assert generated.notes == ()


def test_only_the_strengths_that_are_wanted_are_asked_for():
    _, server = made(strengths=("subtle",))
    asked = [prompt for prompt in server.prompts if "[[ ## strength ## ]]\nsubtle\n" in prompt]
    assert len(asked) == 12
    assert not any("[[ ## strength ## ]]\nobvious\n" in prompt for prompt in server.prompts)


def test_the_model_reads_the_task_the_dimension_and_all_texts():
    _, server = made(sources=SOURCES[:1])
    for prompt in server.prompts:
        assert all(
            text in prompt
            for text in ("Rewrite notices.", "Facts: All facts", "Road 0 is", "Notice 0", "By Ann", "Shut.")
        )


def test_an_output_given_back_is_declined_and_no_perturbation():
    text = SOURCES[0].output
    back = with_fields(outputs=["Damaged.", f" {text}\n"], changed=text)
    generated, server = made(back, sources=SOURCES[:1])
    damaged, *declined = generated.perturbations
    assert damaged.output == "Damaged."
    assert [(one.output, one.declined) for one in declined] == [(None, IDENTICAL)] * 2
    assert generated.notes[1:] == (f"2 of 3 have no output: {IDENTICAL}",)  # before it: all are of one source
    assert server.requests == 3  # what was given back is not asked again


def test_one_text_for_two_strategies_counts_once():
    generated, _ = made(with_fields(outputs=["Same.", "Same."]), sources=SOURCES[:1], effects=("worse",))
    assert [one.output for one in generated.perturbations] == ["Same.", None]
    assert generated.perturbations[1].declined == f"the same output as by {DAMAGES[0]!r}"


def test_what_reads_like_damage_was_not_preserved():
    same = with_fields(outputs=["Damaged.", "Other."], changed="Damaged.\n")
    generated, _ = made(same, sources=SOURCES[:2], dimensions=(FACTS, TONE))
    assert [one.output for one in generated.perturbations] == ["Damaged.", "Other.", None] * 4
    assert {one.declined for one in generated.perturbations} == {"", f"the same output as by {DAMAGES[0]!r}"}

    def apart(prompt):  # damage to another quality may leave this one alone
        said = scripted(prompt)
        text = "Damaged." if "Facts:" in prompt else "Whole."
        return (
            {"outputs": [text, "Other."]}
            if "outputs" in said
            else {**said, "changed": "Whole."}
            if "changed" in said
            else said
        )

    generated, _ = made(apart, sources=SOURCES[:1], dimensions=(FACTS, TONE))
    assert [one.output for one in generated.perturbations] == ["Damaged.", "Other.", "Whole.", "Whole.", "Other.", None]


def test_a_model_that_declines_is_recorded_with_its_reason():
    generated, _ = made(with_fields(declines="True", reason="All of it counts."), effects=("same",))
    assert {one.output for one in generated.perturbations} == {None}
    assert {one.declined for one in generated.perturbations} == {"the model declined: All of it counts."}
    assert generated.notes == ("6 of 6 have no output: the model declined",)


def test_a_failed_call_is_no_perturbation_and_says_why():
    def short(prompt):
        return {"outputs": ["one"]} if "Road 3" in prompt and "outputs" in scripted(prompt) else scripted(prompt)

    generated, server = made(short, sources=SOURCES[2:4], groups=["a", "b"])
    lost = [one for one in generated.perturbations if one.row == 1 and one.effect == "worse"]
    assert [one.output for one in lost] == [None, None]
    assert {one.declined for one in lost} == {
        "the call failed (unparsable): there are 1 outputs for 2 strategies; exactly one for each is wanted, "
        "in their order"
    }
    assert generated.notes == ("2 of 6 have no output: the call failed (unparsable)",)
    assert server.requests == generated.usage.requests == 5 + 1  # and one repair


@pytest.mark.parametrize(
    "rates",
    [
        {Fault.ERROR_500: 0.2, Fault.CHATTER: 0.2},
        {Fault.THROTTLED: 0.2, Fault.CUT_WITHIN: 0.1, Fault.TRUNCATED: 0.1},
        {Fault.REFUSAL: 0.2, Fault.FILTERED: 0.1, Fault.EMPTY: 0.2},
        {Fault.WRONG_NAMES: 0.3, Fault.PROSE: 0.2, Fault.NO_CHOICES: 0.2},
    ],
)
def test_under_faults_every_request_is_counted_and_every_gap_is_explained(rates):
    generated, server = made(strengths=BOTH, script=Faults(rates), seed=3)
    assert server.requests == generated.usage.requests
    assert server.requests > estimate_requests(SOURCES, (FACTS,), BOTH) or Fault.REFUSAL in rates
    assert len(generated.perturbations) == 6 * 2 * 3
    for one in generated.perturbations:
        assert (one.output is None) == one.declined.startswith("the call failed (")
        assert one.output != SOURCES[one.row].output


def test_a_dimension_without_strategies_is_said_and_still_preserved():
    def torn(prompt):
        said = scripted(prompt)
        return {"strategies": []} if "strategies" in said and "Tone:" in prompt else said

    generated, server = made(torn, dimensions=(FACTS, TONE))
    assert [one.strategy for one in generated.perturbations if one.dimension == "Tone"] == ["preserve"] * 6
    assert generated.notes == ("no strategies for 'Tone': there are 0 strategies, 1 to 3 are wanted",)
    assert list(generated.strategies) == ["Facts"]
    assert server.requests == generated.usage.requests == 1 + 4 + 12 + 6  # with three repairs


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (with_fields(strategies=[]), r"the request for strategies failed \(4 requests were sent\): there are 0"),
        (with_fields(outputs=[], changed=""), r"every request for a changed output failed \(25 requests"),
    ],
)
def test_where_everything_fails_there_is_a_model_failure(answer, problem):
    with pytest.raises(ModelFailure, match=problem):
        made(answer)


@pytest.mark.parametrize("always", [401, 404])
def test_a_model_that_refuses_to_work_is_asked_a_few_times_only(always):
    with serve(scripted, always=always) as server, pytest.raises(ModelFailure, match=f"always {always}"):
        generate_perturbations(SOURCES * 10, "t", [FACTS], ["obvious"], effects=["same"], lm=server.lm())
    assert server.requests < 8  # four may be in flight, and three more begin before the fourth is refused


def test_what_the_budget_cuts_off_is_declined():
    generated, server = made(budget=Budget(requests=5), concurrency=1)
    assert server.requests == generated.usage.requests == 5
    cut = [one for one in generated.perturbations if one.output is None]
    assert len(cut) == 18 - 2 * 3  # four calls: two sources damaged and preserved
    assert {one.declined for one in cut} == {"the call failed (budget): not asked: the budget of 5 requests is spent"}


def test_a_run_around_this_one_lends_its_limits():
    with serve(scripted) as server, use(RateLimiter(Concurrency(), Budget(requests=7))) as limiter:
        generated = generate_perturbations(
            SOURCES, "t", [FACTS], ["obvious"], lm=server.lm(), budget=Budget(requests=1)
        )
    assert server.requests == limiter.spent.requests == generated.usage.requests == 7


def test_the_number_in_flight_is_the_one_that_was_asked_for():
    _, server = made(sources=SOURCES, concurrency=2, delay=0.02)
    assert server.most_in_flight == 2


def test_what_has_no_output_is_declined_without_a_request():
    sources = [SOURCES[0], Source(" \n", "Notice 9"), SOURCES[2]]
    generated, server = made(sources=sources, strengths=BOTH)
    blank = [one for one in generated.perturbations if one.row == 1]
    assert len(blank) == 6
    assert {(one.output, one.declined) for one in blank} == {(None, "there is no output to change")}
    assert server.requests == estimate_requests(sources, [FACTS], BOTH) == 1 + 2 * 2 * 2
    generated, server = made(sources=sources[1:2])
    assert server.requests == estimate_requests(sources[1:2], [FACTS], BOTH) == 0
    assert [(one.row, one.strategy, one.output) for one in generated.perturbations] == [(0, "preserve", None)]
    assert made(sources=[])[0].perturbations == ()


def test_tuned_modules_take_the_place_of_new_ones():
    worsen, preserve = Worsen(), Preserve()
    for module in (worsen, preserve):
        predictor = module.predictors()[0]
        predictor.signature = predictor.signature.with_instructions("A planted sentence.")
    _, server = made(worsen=worsen, preserve=preserve)
    assert sum("A planted sentence." in prompt for prompt in server.prompts) == 12


def test_results_come_in_order_however_the_answers_do():
    slow, _ = made(script=Faults({Fault.SLOW: 0.5}))
    assert slow.perturbations == made()[0].perturbations


def test_the_examples_shown_follow_the_seed():
    shown = [made(seed=seed)[1].prompts[0] for seed in (0, 0, 1, 2, 3)]
    assert shown[0] == shown[1]
    assert len(set(shown)) > 1


def test_whole_groups_are_shown_and_never_one_alone():
    sources = [Source(f"output {n}") for n in range(12)]
    groups = [f"g{n % 4}" for n in range(12)]
    seen = set()
    for seed in range(20):
        places = pick_examples(sources, groups, seed)
        chosen = {groups[place] for place in places}
        seen |= chosen
        assert len(chosen) == 2  # of three outputs each: six fit
        assert sorted(places) == [place for place in range(12) if groups[place] in chosen]
    assert seen == set(groups)
    assert len(pick_examples(sources, groups, most=100)) == 12
    assert len({groups[place] for place in pick_examples(sources, groups, most=11)}) == 3


def test_where_whole_groups_do_not_fit_each_of_two_shows_what_does():
    sources = [Source("word " * 400) for _ in range(10)]  # about 500 tokens each
    groups = ["a"] * 5 + ["b"] * 5
    for most, tokens, wanted in ((4, 10**6, 4), (10, 1_700, 3), (10, 10, 2)):
        places = pick_examples(sources, groups, most=most, max_tokens=tokens)
        assert len(places) == wanted
        assert {groups[place] for place in places} == {"a", "b"}


def test_empty_outputs_are_not_shown_and_one_source_is_said():
    assert pick_examples([Source(""), Source("a"), Source("b")], ["x", "y", "z"]) in ([1, 2], [2, 1])
    assert "output:\n«begin" in shown_examples([Source("a")])
    assert "input:" not in shown_examples([Source("a")])
    generated, _ = made(groups=["all"] * 6)
    assert generated.notes == ("all outputs are of one source, so that the strategies may be tied to it",)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"strengths": ()}, "strengths=.* must be one or more of subtle, obvious"),
        ({"strengths": "subtle"}, "strengths='subtle'"),
        ({"strengths": ("obvious", "obvious")}, "none of them twice"),
        ({"strengths": ("strong",)}, "strong"),
        ({"effects": ("attack",)}, "effects=.* must be one or more of worse, same"),
        ({"dimensions": ()}, "one or more with different names"),
        ({"dimensions": (FACTS, FACTS)}, "different names"),
    ],
)
def test_what_makes_no_sense_is_refused(change, problem):
    given = {"dimensions": (FACTS,), "strengths": BOTH, "effects": ("worse",), **change}
    with pytest.raises(OptionError, match=problem):
        estimate_requests(SOURCES, given["dimensions"], given["strengths"], given["effects"])
    with dspy.context(lm=None), pytest.raises(OptionError, match=problem):
        generate_perturbations(SOURCES, "t", given["dimensions"], given["strengths"], effects=given["effects"])


def test_groups_and_a_model_are_needed():
    with pytest.raises(DataError, match="2 groups for 6 sources"):
        generate_perturbations(SOURCES, "t", [FACTS], BOTH, groups=["a", "b"])
    with dspy.context(lm=None), pytest.raises(NeedsError, match="no language model"):
        generate_perturbations(SOURCES, "t", [FACTS], BOTH)
