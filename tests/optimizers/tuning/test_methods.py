"""What an optimiser's own prompts are shown of the rows."""

from __future__ import annotations

from loopback import serve
from metricsmith.optimizers.tuner import JudgeTuner
from metricsmith.optimizers.tuning.methods import Marked
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.texts import fence
from rater_model import RaterModel, rated_rows

JUDGE = CriterionJudge(criterion="Quality", meaning="The work serves its readers.", task="Write notices.")


def test_a_row_shows_every_text_between_marks_and_its_numbers_without():
    row = Marked(output="a\nb", references=["c", "d"], rating=3.5, id=None, label={"e": "f"}).with_inputs("output")
    shown = (
        f"\noutput: {fence(chr(97) + chr(10) + 'b')}\nreferences: {fence('c')}\n{fence('d')}\nrating: 3.5\nid: None"
        f"\nlabel: {fence(str({'e': 'f'}))}\n"
    )
    assert repr(row) == shown
    assert repr(row.copy()) == shown


def test_judged_texts_stand_between_marks_in_mipros_summary_of_the_data():
    rows = rated_rows(24, 101)
    with serve(RaterModel(101), seed=3) as server:
        JudgeTuner(method="mipro", budget=160, lm=server.lm(), seed=101).compile(JUDGE, rows)
    summaries = [prompt for prompt in server.prompts if "Given several examples from a dataset" in prompt]
    texts = [text for row in rows for text in (row.output, row.input) if any(text in seen for seen in summaries)]
    assert texts
    for text in texts:
        assert all(seen.count(text) == seen.count(f"\n{text}\n«end ") for seen in summaries)
