"""`ScoringStream`: the numbers of one run over all rows, whatever the pieces; one budget, one limiter."""

from __future__ import annotations

from dataclasses import replace

import dspy
import pytest

from faults import Fault, Faults
from loopback import scripted, serve
from metricsmith import default_bank
from metricsmith.errors import DataError, OptionError
from metricsmith.metric import make_row
from metricsmith.model_calls.limits import Budget
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.records import Status
from metricsmith.scoring import score
from metricsmith.scoring.streaming import ScoringStream

ROWS = [
    make_row(f"Word {i % 11} and text {i % 5}", references=[f"Word {i % 7} and a text {i % 3}"], id=str(i))
    for i in range(40)
]
JUDGE = CriterionJudge(criterion="Plain words", meaning="Short.", task="Write.")


def pieces(size, rows=ROWS):
    return [[(row, {"n": row.id}) for row in rows[start : start + size]] for start in range(0, len(rows), size)]


def streamed(metrics, size, rows=ROWS, **options):
    stream = ScoringStream(metrics, lambda: rows, **options)
    return stream, [row for piece in stream.scored(pieces(size, rows)) for row in piece]


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_metrics_beside_each_other_have_the_numbers_of_one_run_though_one_needs_a_corpus(size):
    metrics = [default_bank().get(name) for name in ("cider", "bleu")]
    assert metrics[0].statistics is None
    _, rows = streamed(metrics, size)
    whole = score(metrics, ROWS, progress=False)
    assert [[part.judgement.raw for part in row.parts] for row in rows] == whole.run().tolist()
    assert [row.id for row in rows] == [row.id for row in ROWS]
    assert [row.cells for row in rows] == [{"n": row.id} for row in ROWS]
    assert {row.prediction for row in rows} == {None}
    assert list(rows[0].line()) == ["id", "n", "missing", "error", "cider", "bleu"]


def test_a_corpus_that_cannot_be_made_of_all_rows_is_an_error_and_never_one_by_piece():
    cider = default_bank().get("cider")

    def statistics(rows, *rest, **more):
        if len(rows) > 7:
            raise MemoryError("too many rows")
        return cider.family.statistics(rows, *rest, **more)

    frail = replace(cider, family=replace(cider.family, statistics=statistics))
    with pytest.raises(DataError, match="the corpus of cider cannot be made of all rows: MemoryError: too many rows"):
        streamed([frail], 7)


def test_one_metric_is_the_prediction():
    _, rows = streamed([default_bank().get("bleu")], 7)
    assert [row.prediction.raw for row in rows] == score([default_bank().get("bleu")], ROWS, progress=False).run()[
        :, 0
    ].tolist()
    assert {row.parts for row in rows} == {()}


def test_a_corpus_is_part_of_the_fingerprint():
    metric = default_bank().get("cider")
    prints = {ScoringStream([metric], lambda rows=rows: rows).fingerprint for rows in (ROWS, ROWS[:20], ROWS)}
    assert len(prints) == 2


@pytest.mark.parametrize("store", [True, False])
def test_a_text_that_comes_again_in_another_piece_is_asked_once(tmp_path, store):
    numbers = iter(range(1, 1000))
    rows = [make_row(f"Text {i % 6}", id=str(i)) for i in range(20)]
    with serve(lambda prompt: {"reasoning": "r", "score": str(next(numbers) % 5 + 1)}) as server:
        with dspy.context(lm=server.lm()):
            stream, found = streamed([JUDGE], 4, rows, store=tmp_path / "s.db" if store else None)
        assert server.requests == stream.usage.requests == 6
    by_text = {}
    for row, one in zip(rows, found, strict=True):
        by_text.setdefault(row.output, set()).add(one.prediction.raw)
    assert {len(values) for values in by_text.values()} == {1}
    assert stream.complete == 20


@pytest.mark.parametrize("size", [1, 4, 100])
def test_one_budget_holds_for_all_pieces_and_the_rows_after_it_say_so(size):
    rows = [make_row(f"Text {i}", id=str(i)) for i in range(20)]
    with serve(scripted) as server:
        with dspy.context(lm=server.lm()):
            stream, found = streamed([JUDGE], size, rows, budget=Budget(requests=6), concurrency=1)
        assert server.requests == 6
    assert [row.prediction.status for row in found] == [Status.OK] * 6 + [Status.BUDGET] * 14
    assert stream.complete == 6
    assert stream.problem is None


def test_a_server_that_refuses_to_work_is_asked_no_more_and_the_rows_after_it_say_so():
    rows = [make_row(f"Text {i}", id=str(i)) for i in range(30)]
    with serve(scripted, script=Faults({Fault.WRONG_KEY: 1.0})) as server:
        with dspy.context(lm=server.lm()):
            stream, found = streamed([JUDGE], 10, rows)
        assert server.requests < 10
    assert "refuses to work" in str(stream.problem)
    assert len(found) == 30
    assert not any(row.prediction.ok for row in found)
    assert {row.prediction.status for row in found[10:]} == {Status.SKIPPED}
    assert stream.complete < 10


def test_no_metric_is_refused():
    with pytest.raises(OptionError, match="metrics is empty"):
        ScoringStream([], lambda: ROWS)
