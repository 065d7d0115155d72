"""G-Eval: three modes, none of which stands in for another, through every way of asking."""

from __future__ import annotations

import asyncio
import json

import dspy
import pytest

from faults import Fault, Faults
from loopback import serve
from metricsmith.errors import JudgementFailed, ModelFailure, OptionError
from metricsmith.metric import make_row
from metricsmith.programs.judges.geval import GEval
from metricsmith.programs.loading import from_state, load
from metricsmith.programs.state import write_state
from metricsmith.records import Scale, Status
from metricsmith.scoring import estimate, score
from metricsmith.testing import GivenAnswer

GIVEN = {"criterion": "Plain words", "meaning": "Short.", "steps": ["Look for long words.", "Weigh them."]}
# 4 has .5, 3 has .3, 5 has .2: 2 + .9 + 1 = 3.9
SPREADS = {"4": 0.5, " 3": 0.3, "five": 0.2}
ENGINES = ["auto", "litellm"]


def geval(mode="logprob", **changes):
    return GEval(
        **{**GIVEN, "task": "Rewrite notices.", "mode": mode, **({"n": 3} if mode == "sampled" else {})} | changes
    )


def likely(prompt):
    return GivenAnswer({"reasoning": "Two of 5 words are long.", "score": "4"}, probabilities=SPREADS)


def stating(*levels):
    """An answer without log-probabilities; choice c of a request states ``levels[c]``."""
    return lambda prompt, choice: {"reasoning": f"because {levels[choice]}", "score": str(levels[choice])}


def judged(judge, answer=likely, rows=("a",), run=0, faults=None, **settings):
    with serve(answer, **(faults or {})) as server, dspy.context(lm=server.lm(**settings)):
        return judge.judge_batch([make_row(row) for row in rows], run=run), server


@pytest.mark.parametrize("engine", ENGINES)
def test_the_expected_level_comes_through_every_engine_and_way_of_asking(engine):
    judge, row = geval(), make_row("a")
    with serve(likely) as server:
        lm = server.lm(engine=engine, temperature=1.0)
        with dspy.context(lm=lm):
            called = judge(output="a")
            raws = [called.raw, asyncio.run(judge.acall(output="a")).raw, judge.judge_batch([row])[0].raw]
        # One request for three choices by way of litellm, and one each by whatever engine is in force.
        raws += score([judge], [row], lm=lm, runs=3, batch_n=True, progress=False).values.ravel().tolist()
        raws += score([judge], [row], lm=lm, runs=3, progress=False).values.ravel().tolist()
    assert raws == [pytest.approx(3.9)] * 9
    assert called.score == pytest.approx((3.9 - 1) / 4)
    assert server.requests == 3 + 1 + 3
    assert (called.stated, called.covered) == (4, pytest.approx(1.0))
    assert called.shares == pytest.approx({1: 0, 2: 0, 3: 0.3, 4: 0.5, 5: 0.2})


@pytest.mark.parametrize("engine", ENGINES)
def test_an_answer_from_dspys_cache_has_its_log_probabilities(engine):
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    try:
        with serve(likely) as server:
            where = server.lm().kwargs["api_base"]
            lm = dspy.LM(f"openai/{engine}-{server.port}", api_base=where, api_key="none", engine=engine)
            with dspy.context(lm=lm):
                done = [geval().judge_batch([make_row("a")])[0] for _ in range(2)]
    finally:
        dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)
    assert [judgement.raw for judgement in done] == [pytest.approx(3.9)] * 2
    assert [judgement.usage.requests for judgement in done] == [1, 0]


def test_the_spread_is_read_from_answers_in_json_too():
    def answer(prompt):
        return {"reasoning": 'Not "score": 2.', "score": "4"}

    def respond(body):
        text = json.dumps(answer(""))
        before, after = text[: text.rindex("4")], text[text.rindex("4") + 1 :]
        tokens = [
            {"token": token, "logprob": 0.0, "bytes": None, "top_logprobs": [{"token": token, "logprob": 0.0}]}
            for token in (before, "4", after)
        ]
        tokens[1]["top_logprobs"] = [{"token": level, "logprob": -0.6931471805599453} for level in ("4", "5")]
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": {"content": tokens}}
        return 200, {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
            "usage": {},
        }

    with serve(answer) as server:
        server.respond = respond
        with dspy.context(lm=server.lm(), adapter=dspy.JSONAdapter()):
            assert geval()(output="a").raw == pytest.approx(4.5)


def test_only_the_mode_logprob_asks_for_log_probabilities_and_for_as_many_as_are_wanted():
    asked = []
    with serve(likely) as server:
        respond = server.respond
        server.respond = lambda body: asked.append(body) or respond(body)
        with dspy.context(lm=server.lm(temperature=1.0)):
            for judge in (geval(), geval(top_logprobs=3), geval("stated"), geval("sampled")):
                judge.judge_batch([make_row("a")])
    assert [(body.get("logprobs"), body.get("top_logprobs")) for body in asked] == [
        (True, 20), (True, 3), (None, None), (None, None),
    ]  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_without_log_probabilities_there_is_no_number_and_no_second_request(engine):
    (judgement,), server = judged(geval(), lambda prompt: {"reasoning": "r", "score": "4"}, engine=engine)
    assert (judgement.raw, judgement.score, judgement.status) == (None, None, Status.UNPARSABLE)
    assert "use mode='sampled' with n=..., or mode='stated'" in judgement.error
    assert server.requests == judgement.usage.requests == 1


def test_a_server_without_log_probabilities_stops_the_run_at_the_gate():
    with (
        serve(lambda prompt: {"reasoning": "r", "score": "4"}) as server,
        pytest.raises(ModelFailure, match=r"unparsable.*use mode='sampled'"),
    ):
        score([geval()], [make_row("a"), make_row("b")], lm=server.lm(), progress=False)


def test_too_little_probability_on_the_levels_is_no_number_either_also_for_one_of_several_choices():
    def answer(prompt, choice):
        spread = {"4": 0.5, "The": 0.5} if choice == 1 else {"4": 1.0}
        return GivenAnswer({"reasoning": "r", "score": "4"}, probabilities=spread)

    with serve(answer) as server:
        table = score(
            [geval()], [make_row("a")], lm=server.lm(temperature=1.0), runs=3, batch_n=True, progress=False,
            max_failure_rate=1.0,
        )  # fmt: skip
    found = [table.judgement(0, 0, run) for run in range(3)]
    assert [judgement.status for judgement in found] == [Status.OK, Status.UNPARSABLE, Status.OK]
    assert "50% of the probability" in found[1].error
    assert server.requests == 1
    (judgement,), _ = judged(geval(min_mass=0.5), lambda prompt: answer(prompt, 1))
    assert (judgement.raw, judgement.ok) == (4.0, True)
    assert "50% covered" in judgement.feedback


def test_retries_repairs_and_a_store_leave_the_expected_level_as_it_is(tmp_path):
    rows = [make_row(f"row {number}") for number in range(12)]
    rates = {Fault.CHATTER: 0.2, Fault.OUT_OF_RANGE: 0.2, Fault.ERROR_500: 0.1, Fault.TRUNCATED: 0.1}
    options = {"store": tmp_path / "s.db", "progress": False, "max_failure_rate": 1.0}
    with serve(likely, script=Faults(rates), seed=3) as server:
        first = score([geval()], rows, lm=server.lm(), **options).column(0)
        asked = server.requests
        again = score([geval()], rows, lm=server.lm(), **options).column(0)
    kept = [(one, other) for one, other in zip(first, again, strict=True) if one.ok]
    assert server.faults[Fault.CHATTER]
    assert server.faults[Fault.OUT_OF_RANGE]
    assert server.faults[Fault.ERROR_500]
    assert len(kept) > 8
    assert asked > len(rows)
    assert server.requests - asked <= 6 * (len(rows) - len(kept))  # what succeeded is not asked again
    for one, other in kept:
        assert one.raw == other.raw == pytest.approx(3.9)
        assert one.feedback == other.feedback


def test_modes_do_not_share_a_stores_judgements(tmp_path):
    judges = [geval(name="same"), geval("stated", name="same"), geval(name="same", min_mass=0.5)]
    with serve(likely) as server:
        raws = [
            score([judge], [make_row("a")], lm=server.lm(), store=tmp_path / "s.db", progress=False).values.item()
            for judge in judges
        ]
    assert raws == [pytest.approx(3.9), 4.0, pytest.approx(3.9)]
    assert server.requests == 3


def test_demonstrations_and_reflections_hold_no_log_probabilities():
    judge = geval()
    with serve(likely) as server, dspy.context(lm=server.lm(), trace=[]):
        judge(output="a")
        (_, _, answer), *_ = dspy.settings.trace
    assert dict(answer.items()) == {"reasoning": "Two of 5 words are long.", "score": "4"}
    json.dumps(judge.to_state())


@pytest.mark.parametrize("text", ["4", " 4 ", "four", "4.", "4/5", "**4**"])
@pytest.mark.parametrize("mode", ["stated", "logprob"])
def test_a_level_may_be_stated_in_several_ways(mode, text):
    answer = GivenAnswer({"reasoning": "r", "score": text}, probabilities={"4": 1.0})
    found, server = judged(geval(mode), lambda prompt: answer)
    assert (found[0].raw, server.requests) == (4.0, 1)


def test_the_feedback_is_the_rationale_after_how_the_number_came_about():
    (expected,), _ = judged(geval())
    (stated,), _ = judged(geval("stated"))
    (sampled,), _ = judged(geval("sampled"), stating(2, 3, 5), temperature=1.0)
    assert expected.feedback == (
        "3.90 expected by log-probability (3: 30%, 4: 50%, 5: 20%; 100% covered), 4 stated: Two of 5 words are long."
    )
    assert stated.feedback == "4 as stated: Two of 5 words are long."
    assert sampled.feedback == "3.333 is the mean of 3 of 3 runs; run 1, the nearest, gave 3: because 3"


def test_samples_are_averaged_and_one_request_carries_them():
    (judgement,), server = judged(geval("sampled"), stating(2, 3, 5), temperature=1.0)
    assert (judgement.raw, judgement.score) == (pytest.approx(10 / 3), pytest.approx((10 / 3 - 1) / 4))
    assert [seen.n for seen in server.log] == [3]
    assert judgement.usage.requests == 1


def test_samples_come_singly_where_the_server_takes_no_n():
    def answer(prompt):
        return {"reasoning": "r", "score": "2"}

    faults = {"script": Faults({Fault.NO_CHOICE_OF_N: 1.0})}
    (judgement,), server = judged(geval("sampled"), answer, faults=faults, temperature=1.0)
    assert (judgement.raw, [seen.n for seen in server.log]) == (2.0, [3, 1, 1, 1])


def test_a_sample_without_a_number_is_missing_and_half_of_them_are_needed():
    def answer(prompt, choice):
        return {"reasoning": "r", "score": ("5", "9", "4", "9")[choice % 4] if "cannot be used" not in prompt else "9"}

    (judgement,), _ = judged(geval("sampled", n=4), answer, temperature=1.0)
    assert (judgement.raw, judgement.status) == (4.5, Status.OK)
    assert "2 of 4 runs (2 without a number)" in judgement.feedback
    (judgement,), _ = judged(geval("sampled"), lambda prompt: {"reasoning": "r", "score": "9"}, temperature=1.0)
    assert (judgement.raw, judgement.status) == (None, Status.OUT_OF_RANGE)
    assert "0 of 3 runs gave a number and 2 are needed" in judgement.error


def test_a_sample_off_the_scale_is_repaired_by_itself():
    def answer(prompt, choice):
        return {
            "reasoning": f"choice {choice}",
            "score": "3" if "cannot be used" in prompt else ("5", "4", "9")[choice],
        }

    (judgement,), server = judged(geval("sampled"), answer, temperature=1.0)
    assert judgement.raw == 4.0
    assert [seen.n for seen in server.log] == [3, 1]
    assert "choice 2" in server.prompts[1]


def test_repetitions_of_a_sampled_judge_share_no_sample():
    with serve(stating(2, 3, 5, 1, 1, 4)) as server:
        lm = server.lm(temperature=1.0)
        table = score([geval("sampled")], [make_row("a")], lm=lm, runs=2, batch_n=True, progress=False)
    assert table.values.ravel().tolist() == [pytest.approx(10 / 3), 2.0]
    assert [seen.n for seen in server.log] == [6]
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    try:
        with serve(
            lambda prompt: {"reasoning": "r", "score": "2"}, script=Faults({Fault.NO_CHOICE_OF_N: 1.0})
        ) as server:
            where = server.lm().kwargs["api_base"]
            lm = dspy.LM(f"openai/apart-{server.port}", api_base=where, api_key="none", temperature=1.0)
            with dspy.context(lm=lm):
                for run in (0, 1, 1):
                    geval("sampled").judge_batch([make_row("a")], run=run)
    finally:
        dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)
    assert [seen.n for seen in server.log] == [3] + [1] * 6


def test_repetitions_of_a_sampled_judge_are_numbered_apart():
    with serve(stating(2, 3, 5)) as server:
        table = score([geval("sampled")], [make_row("a")], lm=server.lm(temperature=1.0), runs=2, progress=False)
        wanted = estimate([geval("sampled")], [make_row("a")], lm=server.lm(temperature=1.0), runs=2)
    assert [table.judgement(0, 0, run).run for run in range(2)] == [0, 1]
    assert "run 4, the nearest" in table.judgement(0, 0, 1).feedback
    assert wanted.requests == server.requests == 2
    assert wanted.completion_tokens == 2 * 3 * 120


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.0}, {"temperature": 0.15}])
def test_samples_need_a_temperature_and_nothing_is_sent_without_one(settings):
    with serve(likely) as server:
        lm = server.lm(**settings)
        with pytest.raises(OptionError, match=r"runs=3|repeated runs"):
            score([geval("stated"), geval("sampled")], [make_row("a")], lm=lm, progress=False)
        with dspy.context(lm=lm), pytest.raises(OptionError, match="runs=3 needs independent samples"):
            geval("sampled")(output="a")
    assert server.requests == 0


def test_a_sampled_judge_called_and_awaited_gives_the_mean_or_fails():
    judge = geval("sampled")
    with serve(stating(2, 3, 5)) as server, dspy.context(lm=server.lm(temperature=1.0)):
        assert judge(output="a").raw == asyncio.run(judge.acall(output="a")).raw == pytest.approx(10 / 3)
    with serve(stating(9, 9, 9), always=400) as server, dspy.context(lm=server.lm(temperature=1.0)):
        with pytest.raises(JudgementFailed, match="0 of 3 runs"):
            judge(output="a")


def test_an_awaited_sampled_judge_leaves_the_event_loop_free():
    async def both():
        await asyncio.gather(*(geval("sampled").acall(output=text) for text in "ab"))

    with serve(stating(2, 3, 5), delay=0.2) as server, dspy.context(lm=server.lm(temperature=1.0)):
        asyncio.run(both())
    assert server.most_in_flight == 2


def test_another_scale_is_shown_read_and_mapped():
    judge = geval("stated", scale=Scale(0, 20, 1, higher_is_better=False))
    (judgement,), server = judged(judge, lambda prompt: {"reasoning": "r", "score": "15"})
    assert (judgement.raw, judgement.score) == (15.0, 0.25)
    assert "a whole number from 0 to 20; 20 is worst, 0 is best" in server.prompts[0]
    answer = GivenAnswer({"reasoning": "r", "score": "0"}, probabilities={"0": 0.5, "9": 0.5})
    (judgement,), _ = judged(geval(scale=Scale(0, 9, 1)), lambda prompt: answer)
    assert judgement.raw == pytest.approx(4.5)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steps": []}, "must be a list of texts"),
        ({"steps": ["a", " "]}, "must be a list of texts"),
        ({"steps": "Look."}, "must be a list of texts"),
        ({"mode": "logprobs"}, "did you mean 'logprob'.*allowed are logprob, sampled, stated"),
        ({"mode": "sampled"}, "n=None must be a whole number from 2"),
        ({"mode": "sampled", "n": 1}, "n=1 must be"),
        ({"mode": "sampled", "n": True}, "n=True must be"),
        ({"n": 5}, "no meaning with mode='logprob'"),
        ({"scale": Scale(1, 10, 1)}, "every level must be one digit.*mode='sampled'"),
        ({"scale": Scale(-1, 2, 1)}, "every level must be one digit"),
        ({"scale": Scale(1, 5)}, "steps of 1 between whole numbers"),
        ({"scale": Scale(0.5, 5, 1), "mode": "stated"}, "steps of 1 between whole numbers"),
        ({"scale": Scale(1, 4.5, 1), "mode": "stated"}, "steps of 1 between whole numbers"),
        ({"scale": Scale(0, 101, 1), "mode": "stated"}, "at most 101 levels"),
        ({"top_logprobs": 0}, "from 1 to 20"),
        ({"top_logprobs": 21}, "from 1 to 20"),
        ({"top_logprobs": True}, "from 1 to 20"),
        ({"min_mass": 0}, "above 0 and at most 1"),
        ({"min_mass": 1.1}, "above 0 and at most 1"),
        ({"min_mass": float("nan")}, "above 0 and at most 1"),
    ],
)
def test_what_has_no_meaning_is_refused(changes, words):
    with pytest.raises(OptionError, match=words):
        GEval(**{**GIVEN, "task": "t", "mode": "logprob", **changes})


def test_the_mode_has_no_default():
    with pytest.raises(TypeError, match="mode"):
        GEval(**GIVEN, task="t")


@pytest.mark.parametrize("mode", ["logprob", "sampled", "stated"])
def test_mode_and_steps_stand_in_name_card_fingerprint_and_state(mode, tmp_path):
    judge = geval(mode)
    card = judge.card.to_markdown()
    assert judge.name == f"plain_words_geval_{mode}"
    assert f"Mode {mode}: " in card
    assert "Look for long words. Weigh them." in card
    assert ("Needs log-probabilities" in card) is (mode == "logprob")
    assert judge.fingerprint() != geval(mode, steps=["Look."]).fingerprint()
    assert judge.fingerprint() != geval("stated" if mode == "logprob" else "logprob", name=judge.name).fingerprint()
    judge.judge.demos = [dspy.Example(output="x", reasoning="y", score="2")]
    write_state(judge.to_state(), tmp_path / "judge.json")
    again = load(tmp_path / "judge.json")
    assert isinstance(again, GEval)
    assert again.to_state() == judge.to_state()
    assert again.fingerprint() == judge.fingerprint() == from_state(judge.to_state()).fingerprint()
    assert again.request == judge.request


def test_dspys_own_load_changes_what_is_asked_of_the_server(tmp_path):
    geval("logprob", top_logprobs=7).save(str(tmp_path / "judge.json"))
    judge = geval("stated")
    judge.load(str(tmp_path / "judge.json"))
    assert judge.request == {"logprobs": True, "top_logprobs": 7}
    (judgement,), _ = judged(judge)
    assert judgement.raw == pytest.approx(3.9)
