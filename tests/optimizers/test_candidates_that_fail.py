"""One candidate that fails takes nothing with it: seven ways, each to the end of a whole induction."""

from __future__ import annotations

from dataclasses import replace

import dspy
import numpy as np
import pytest

from gathered import gather
from loopback import QUALITIES, scripted, serve
from metricsmith.bank.catalogue import MetricBank, family
from metricsmith.errors import HopelessModel, Interrupted, ModelFailure
from metricsmith.model_calls.limits import Budget, Concurrency, RequestEnd
from metricsmith.model_calls.rate_limiter import RateLimiter, use
from metricsmith.optimizers import learning_judges
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.induce import induce
from metricsmith.optimizers.options import Options
from metricsmith.programs.recommenders.bm25 import BM25Recommender
from metricsmith.programs.recommenders.language_model import LMRecommender, PipelineRecommender
from metricsmith.records import Usage
from metricsmith.studies.comparison.run import compare
from panels import is_joint, panelled
from planted import TASK, planted_rows
from rated import rated_table

BANK = MetricBank((family("levenshtein"), family("rouge")))


def is_asked_for(prompt, field):
    return f"## {field} ##" in prompt.rsplit("Respond with the corresponding output fields", 1)[-1]


def judges(prompt, kind):
    """True if a prompt is for a judge of that kind: ``criterion``, ``guideline`` or ``examples``."""
    fields = [name for name in ("criterion", "guideline") if f"[[ ## {name} ## ]]" in prompt]
    return is_asked_for(prompt, "score") and kind == (fields[0] if fields else "examples")


def off_scale(kind):
    """Like `scripted`, but the judges of a kind stay off their scale."""

    def answer(prompt):
        return {"reasoning": "Beyond words.", "score": 99} if judges(prompt, kind) else scripted(prompt)

    return answer


def silent(*criteria, where=""):
    """Like `scripted`, but the judges of these criteria give no number, on rows with that word."""

    def answer(prompt):
        hit = any(f"{criterion}: The output" in prompt for criterion in criteria)
        hit = hit and judges(prompt, "criterion") and where in prompt.rsplit("[[ ## output ## ]]", 1)[-1]
        return {"reasoning": "No number."} if hit else scripted(prompt)

    return answer


def without(field, answer=scripted):
    """Like `answer`, but where that field is asked for the model talks of something else."""
    return lambda prompt: "Nice weather." if is_asked_for(prompt, field) else answer(prompt)


def bare():
    """36 rated rows without scores of their own, 24 of which train."""
    return rated_table(12, metric_columns=None)


def induced(answer=scripted, table=None, fraction=0.3, cv=None, **options):
    """A whole induction on a server: its record, which adds up whatever happened, and the server."""
    with serve(answer) as server:
        optimizer = AutoMetrics(**{"metrics": BANK, "bank": "all", "lm": server.lm(), **options})
        record = induce(table or bare(), optimizer, fraction=fraction, cv=cv).record
    assert record.components
    assert record.usage["requests"] == server.requests
    assert record.judgements["requested"] == sum(n for name, n in record.judgements.items() if name != "requested")
    return record, server


def containing(lines, words):
    """The one line with these words."""
    (line,) = (line for line in lines if words in line)
    return line


# Seven ways to fail


@pytest.mark.parametrize(("kind", "family"), [("examples", "examples"), ("guideline", "tuned")])
def test_a_judge_that_learns_and_stays_off_its_scale_is_left_out(kind, family):
    record, _ = induced(off_scale(kind), generators={"criterion": 2, family: 1})
    why = "100% of the judge's own judgements failed, so nothing can be tuned: score 99"
    assert containing(record.notes, "no judge of").startswith(f"no judge of the family {family!r}: {why}")
    line = containing(record.warnings, "Judges that could not")
    assert line.startswith(f"Judges that could not be made: 1 of the family {family!r} ({why}")
    assert len(line) < 250


def test_a_foreign_error_inside_an_optimiser_ends_the_search_and_the_judge_stays(monkeypatch):
    def explode(*_, **__):
        raise KeyError("sk-1234567890abcdef")

    monkeypatch.setattr(dspy.MIPROv2, "compile", explode)
    record, server = induced(generators={"tuned": 1}, bank="generated")
    assert [component.name for component in record.components] == ["rating_tuned"]
    note = containing(record.notes, "rating_tuned: mipro")
    assert "; ended early: KeyError: '[key]'" in note
    assert not any("could not be made" in warning for warning in record.warnings)
    assert server.requests > 36  # the search's own as well as the 36 rows


def test_two_of_five_judges_that_fail_are_dropped_and_named():
    record, _ = induced(silent(*QUALITIES[:2]), generators={"criterion": 5}, bank="generated")
    dropped = [line for line in record.warnings if "is dropped: at least" in line]
    assert sorted(line.split()[0] for line in dropped) == ["brevity", "plain_words"]
    assert all("of its 36 judgements failed, more than the 20% that are allowed" in line for line in dropped)
    assert not {"brevity", "plain_words"} & {component.name for component in record.components}
    assert record.judgements["requested"] == 5 * 36
    assert record.judgements["ok"] == 3 * 36
    assert record.judgements["unparsable"] >= 2 * 8  # the eighth of 36 makes it certain
    assert not any("fell away" in line or "judgements failed; they" in line for line in record.warnings)


def test_cards_that_do_not_fit_the_ranking_prompt_leave_the_first_stages_order():
    recommender = PipelineRecommender(second=LMRecommender(max_prompt_tokens=10))
    record, _ = induced(generators={"criterion": 3}, recommender=recommender, k=2)
    plain, _ = induced(generators={"criterion": 3}, recommender=BM25Recommender(), k=2)
    assert [part.name for part in record.components] == [part.name for part in plain.components]
    note = containing(record.notes, "the model's ranking failed")
    assert "do not fit into the prompt" in note
    assert note.endswith("; BM25's order stands")


def test_without_axes_the_judges_that_need_none_are_made():
    record, _ = induced(without("axes"), generators={"criterion": 2, "rubric": 1, "examples": 1}, bank="generated")
    assert [component.name for component in record.components] == ["rating_by_examples"]
    note = containing(record.notes, "no judge of")
    assert note.startswith(
        "no judge of the families 'criterion', 'rubric': the request for criteria to judge by failed"
    )
    assert record.warnings[0] == (
        "3 of 4 judges fell away (3 could not be made, 0 failed too often): the metric rests on what is left."
    )
    line = containing(record.warnings, "Judges that could not be made: 2 of the family 'criterion' (the request")
    assert "); 1 of the family 'rubric' (the request" in line


def test_a_panel_that_cannot_be_read_is_asked_one_by_one():
    answer = without("ratings", panelled)
    record, server = induced(answer, generators={"criterion": 3}, bank="generated", panel=True)
    assert record.judgements["ok"] == record.judgements["requested"] == 3 * 36
    assert sum(map(is_joint, server.prompts)) == 2 * 36  # each with its repair
    assert server.requests == 1 + 2 * 36 + 3 * 36
    assert "the panel could not be read on 36 rows: its criteria were asked one by one" in record.notes


# What is said


def test_rubrics_and_axes_that_are_lacking_are_counted_on_one_line():
    def answer(prompt):
        if is_asked_for(prompt, "levels") and "Plain words" in prompt:
            return {"levels": ["only one"]}
        found = scripted(prompt)
        return found if "axes" not in found else {"axes": found["axes"][:3]}

    record, _ = induced(answer, generators={"criterion": 1, "rubric": 4})
    assert containing(record.warnings, "Judges that could not") == (
        "Judges that could not be made: 3 of the family 'rubric' "
        "(no rubric for 'Plain words': the model wrote 1 levels, five are needed)."
    )  # one for its levels, two for want of an axis
    assert "5 axes were asked for, 3 distinct ones came back" in record.notes


def test_folds_say_what_they_had_to_do_without():
    record, _ = induced(silent("Brevity"), cv=3, generators={"criterion": 3}, bank="generated")
    lines = [line for line in record.warnings if "brevity is dropped" in line]
    assert [line.split(": ")[0] for line in lines[1:]] == ["Fold 1", "Fold 2", "Fold 3"]
    # Three judges on 24 learning rows and the two that are left on 12 held-out ones; then three on all 36.
    assert record.judgements["requested"] == 3 * (3 * 24 + 2 * 12) + 3 * 36


@pytest.mark.parametrize("failing", [("Brevity",), ("Brevity", "Plain words")])
def test_components_that_fail_on_unrated_rows_cost_nobody_the_metric(failing):
    table = bare()
    new = [row for row in planted_rows(sources=4, first=900, rated=False) if "source900" in row.output]
    table = replace(
        table,
        rows=[*table.rows, *new],
        ratings=np.append(table.ratings, [np.nan] * len(new)),
    )
    answer = silent(*failing, where="source900")
    record, _ = induced(answer, table=table, generators={"criterion": 2}, bank="generated", n=2)
    assert len([line for line in record.warnings if line.startswith("Unrated rows: ")]) == len(failing)
    unrated = [row for row in record.data if row.split == "unrated"]
    assert len(unrated) == len(new) > 0
    assert [row.values["brevity"] for row in unrated] == [None] * len(new)


def test_a_comparison_keeps_one_gate_over_all_judges():
    with serve(silent("Brevity")) as server:
        options = {"metrics": BANK, "bank": "generated", "generators": {"criterion": 3}, "lm": server.lm()}
        with pytest.raises(ModelFailure, match="more than the 20%"):
            compare(rated_table(12), AutoMetrics(**options), methods=["autometrics"], seeds=1)


# What ends an induction all the same


def test_with_no_candidate_left_there_is_no_metric():
    with pytest.raises(ModelFailure, match="no candidate metric is left; no judge of the family 'criterion'"):
        induced(without("axes"), generators={"criterion": 2}, bank="generated")
    with pytest.raises(ModelFailure, match=r"brevity is dropped.*, and no metric is left"):
        induced(silent("Brevity"), generators={"criterion": 1}, bank="generated")
    record, _ = induced(silent("Brevity"), generators={"criterion": 1})
    assert record.warnings[0].startswith("1 of 1 judges fell away (0 could not be made, 1 failed too often)")
    assert {component.kind for component in record.components} == {"bank"}


@pytest.mark.parametrize(
    ("answer", "generators", "says"),
    [
        (without("levels"), {"criterion": 2, "rubric": 1, "examples": 1}, "no rubric for"),
        (silent("Brevity"), {"criterion": 5}, "brevity is dropped"),
    ],
)
def test_strict_stops_instead(answer, generators, says):
    with pytest.raises(ModelFailure, match=says):
        induced(answer, generators=generators, strict=True)


def gathered(answer=scripted, **faults):
    rows = planted_rows(sources=8)
    sources = Options(metrics=BANK, bank="all", generators={"criterion": 1, "examples": 1})
    with serve(answer, **faults) as server, dspy.context(lm=server.lm()):
        return gather(rows, TASK, sources, sources.resolve(len(rows), True, True), BM25Recommender())


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_a_model_that_refuses_to_work_ends_everything(status):
    with pytest.raises(HopelessModel, match="refuses to work"):
        gathered(always=status)


def test_a_judge_that_learns_ends_everything_only_where_the_model_refuses_to_work(monkeypatch):
    monkeypatch.setattr(
        "metricsmith.optimizers.candidates.generate_judges", lambda *_, **__: learning_judges.Generated()
    )
    with pytest.raises(HopelessModel, match="refuses to work"):
        gathered(always=401)
    with pytest.raises(ModelFailure, match="no request for judges was answered") as refused:
        gathered(always=400)  # a field that the server does not know is no wrong key
    assert not isinstance(refused.value, HopelessModel)
    assert refused.value.usage.requests >= 4


def test_a_spent_budget_ends_everything():
    spent = RateLimiter(Concurrency(), Budget(requests=1))
    spent.leave(spent.enter(), RequestEnd.ANSWERED, Usage(requests=1))
    with use(spent), pytest.raises(ModelFailure, match="budget of 1 requests"):
        gathered()


def test_ctrl_c_ends_everything(monkeypatch):
    def pressed(*_):
        raise Interrupted("stop")

    monkeypatch.setitem(learning_judges.LEARNED, "examples", pressed)
    with pytest.raises(Interrupted):
        gathered()
