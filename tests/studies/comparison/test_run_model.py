"""A comparison with a model: what is asked, how repetitions differ, and what failures do."""

from __future__ import annotations

import dspy
import pytest

from loopback import scripted, serve
from metricsmith.bank.catalogue import MetricBank, family
from metricsmith.errors import ModelFailure, OptionError
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.studies.comparison.methods import DEFAULT_METHODS
from metricsmith.studies.comparison.run import compare, compare_plan
from rated import rated_table

BANK = MetricBank((family("levenshtein"), family("rouge")))
TEXTS, TESTED = 59, 17  # of the sixty rows two are equal, both of them test rows, and are judged once
FREE = ("best_existing", "metametrics", "autometrics")


def optimizer(**options):
    return AutoMetrics(**{"metrics": BANK, "generators": {"criterion": 2, "rubric": 1}, **options})


@pytest.fixture(scope="module")
def modelled():
    with serve(scripted) as server:
        done = compare(
            rated_table(), optimizer(lm=server.lm(temperature=1.0), bank="all"), seeds=2, guideline="Short is good."
        )
        return done, server


def test_every_method_runs_with_a_model_and_says_what_it_cost(modelled):
    done, server = modelled
    assert [line.key for line in done.run] == list(DEFAULT_METHODS)
    assert not done.skipped
    assert done.usage.requests == server.requests == sum(line.usage.requests for line in done.run)
    assert {line.key: line.usage.requests for line in done.run if line.model} == {
        "guideline_judge": 2 * TESTED,
        "dna_eval": 2 * (1 + 3 * TESTED),
        "autometrics": 2 * (1 + 1 + 3 * TEXTS),  # axes, one rubric, three judges on learned and test rows
    }
    assert done.method("guideline_judge").judgements["ok"] == 36
    assert done.method("dna_eval").remarks == ("Brevity 50\xa0%, Plain words 30\xa0%, Complete facts 20\xa0%",)
    assert any("Short is good." in prompt for prompt in server.prompts)
    assert "temperature 1.0" in done.signature


def test_the_plan_bounds_what_the_server_sees(modelled):
    done, server = modelled
    assert done.estimated.requests >= server.requests
    with serve(scripted) as other:
        said = compare_plan(rated_table(), optimizer(lm=other.lm(temperature=1.0), bank="all"), seeds=2)
        assert other.requests == 0
    assert f"requests: at most {done.estimated.requests}, " in said
    assert f"DnA-Eval: at most {2 * (1 + 3 * TESTED)} requests" in said
    assert "nothing was sent" in said


def test_every_repetition_is_a_sample_of_its_own(tmp_path):
    """A store, and DSPy's cache, hold every repetition apart; the same comparison again asks nothing."""
    with serve(scripted) as server:
        lm = server.lm(temperature=1.0)
        options = {"methods": ["guideline_judge", "autometrics"], "seeds": 2}
        first = compare(rated_table(), optimizer(lm=lm, bank="generated", store=tmp_path / "s.db"), **options)
        asked = server.requests
        again = compare(rated_table(), optimizer(lm=lm, bank="generated", store=tmp_path / "s.db"), **options)
    assert asked == 2 * TESTED + 2 * (2 + 3 * TEXTS)
    assert server.requests - asked == 2 * 2  # axes and one rubric for each seed: what is generated is no judgement
    assert [line.taus for line in again.run] == [line.taus for line in first.run]
    # The one judge is known beforehand, and so is what the store holds of it.
    assert again.estimated.requests == first.estimated.requests - 2 * TESTED
    assert all(line.model for line in again.run)


def test_repetitions_reach_the_model_past_dspys_cache():
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    try:
        with serve(scripted) as server:
            lm = server.lm(temperature=1.0).copy(cache=True, model=f"openai/rep-{server.port}")
            compare(rated_table(), optimizer(lm=lm, bank="generated"), seeds=2)
            # rows and criteria are the same in both seeds: only the number of the repetition tells them apart
            assert server.requests == 2 * (TESTED + (1 + 3 * TESTED) + 2 + 3 * TEXTS)
    finally:
        dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)


def test_a_model_that_would_repeat_itself_is_refused_before_anything_is_asked():
    with serve(scripted) as server:
        for settings in ({}, {"temperature": 0.0}):
            with pytest.raises(OptionError, match="runs=5 needs independent samples"):
                compare(rated_table(), optimizer(lm=server.lm(**settings)))
        assert server.requests == 0
        compare(rated_table(), optimizer(lm=server.lm(), bank="existing"), methods=FREE)
        compare(rated_table(), optimizer(lm=server.lm()), methods=["guideline_judge"], seeds=1)


def test_without_any_words_the_judges_say_what_they_lack():
    with serve(scripted) as server:
        table = rated_table(task="")
        done = compare(table, optimizer(lm=server.lm()), methods=["guideline_judge", "dna_eval", *FREE[:2]], seeds=1)
        assert {line.key: line.skipped for line in done.skipped} == {
            "guideline_judge": "needs the raters' guideline (--guideline) or a description of the task (--task)",
            "dna_eval": "needs a description of the task (--task)",
        }
        given = compare(table, optimizer(lm=server.lm()), methods=["guideline_judge"], seeds=1, guideline="Be short.")
        assert given.run[0].n == 18
    with serve(scripted) as server:
        done = compare(rated_table(), optimizer(lm=server.lm()), methods=["guideline_judge"], seeds=1)
        assert any("no guideline was given" in note for note in done.notes)


def test_where_lower_is_better_the_judges_are_turned_to_the_ratings():
    def level(prompt):
        if "## dimensions ##" in prompt.rsplit("Respond with", 1)[-1]:
            return scripted(prompt)
        return {"reasoning": "r", "score": "5" if "indeed" in prompt.rsplit("[[ ## output ## ]]", 1)[-1] else "1"}

    table = rated_table(higher_is_better=False)
    with serve(level) as server:
        done = compare(table, optimizer(lm=server.lm()), methods=["guideline_judge", "dna_eval"], seeds=1)
    guideline, dna = (line.tau for line in done.run)
    assert dna == pytest.approx(-guideline)  # the one answers on the raters' scale, the other with quality


def test_failures_are_counted_and_lower_nothing():
    with serve(scripted, malformed=0.25, seed=1) as server:
        done = compare(rated_table(), optimizer(lm=server.lm()), methods=["guideline_judge"], seeds=1)
    line = done.method("guideline_judge")
    assert line.failed == 18 - line.n > 0
    assert line.remarks == (f"{line.failed} of 18 test rows lack a prediction in some seed",)
    assert any(f"{line.failed} of 18 judgements failed" in warning for warning in done.warnings)


def test_beyond_the_gate_the_model_stops_the_comparison():
    with serve(scripted, malformed=1.0) as server:
        for method in ("guideline_judge", "dna_eval"):
            with pytest.raises(ModelFailure):
                compare(rated_table(), optimizer(lm=server.lm()), methods=[method], seeds=1)
