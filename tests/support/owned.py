"""Candidates of the caller's own that cost nothing: a judge that remembers ratings, and functions."""

from __future__ import annotations

from dataclasses import replace

from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.records import Judgement
from planted import TASK


class Memory(CriterionJudge):
    """Gives the rating of every row that it was shown, and says of all others the same: it knows nothing else."""

    kind = "criterion_judge"

    @property
    def card(self):
        return replace(super().card, cost="free", needs=())

    @property
    def asker(self):
        return None

    def judge_batch(self, rows, *, run=0):
        known = {demo["output"]: demo["score"] for demo in self.judge.demos}
        raws = [float(known.get(self._shown(row), 1 + len(row.output) % 5)) for row in rows]
        return [Judgement(self.name, raw, self.scale.unit(raw), run=run) for raw in raws]

    def _shown(self, row):
        from metricsmith.metric import row_text

        return self.texts(row_text(row))["output"]


def memory(rows=(), name="Memory"):
    """A judge that was shown these rows with their ratings."""
    judge = Memory(criterion=name, meaning="As before.", task=TASK.description)
    return judge.with_examples(rows, [min(5, max(1, round(row["rating"]))) for row in rows]) if rows else judge


def words(example, pred):
    """The number of words of the output."""
    return len(pred.output.split())


def lost(example, pred):
    """The share of the reference's words that the output has."""
    wanted = set(example.references[0].split())
    return len(wanted & set(pred.output.split())) / len(wanted)


def cheats(example, pred):
    """Reads the rating."""
    return example["rating"]
