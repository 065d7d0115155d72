"""Notes on consultations, with the time to correct them and the errors that five doctors found (Primock57)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from metricsmith.datasets.rated_set import RatedSet
from metricsmith.datasets.ratings import read_ratings
from metricsmith.datasets.sources import RawTable

__all__ = ["PRIMOCK57"]

KINDS = ("incorrect", "omissions")
COUNTS = tuple(f"{kind}_{weight}" for kind in KINDS for weight in ("critical", "noncritical"))


def _with_sums(raw: RawTable) -> RawTable:
    """The file of scores with the errors of each kind, and of both, as in the paper's reader."""
    raw.require_all(COUNTS, "Primock57's ratings", "take metric-scores as it is published")

    def summed(columns: Sequence[str]) -> list[float]:
        return np.sum([read_ratings(raw, column) for column in columns], axis=0).tolist()  # type: ignore[no-any-return]

    made = {kind: summed([column for column in COUNTS if column.startswith(kind)]) for kind in KINDS}
    return replace(raw, columns={**raw.columns, **made, "inc_plus_omi": summed(COUNTS)})


# Columns and sums: autometrics/dataset/datasets/primock57/primock57.py of SALT-NLP/autometrics. Its references are the
# notes of the doctor, of the rater and the corrected one; from the last the ratings were counted, so that the doctor's
# alone is taken here. The ratings of one note are averaged over its raters.
PRIMOCK57 = RatedSet(
    name="primock57",
    title="Primock57",
    citation='Moramarco et al. (2022), "Human Evaluation and Correlation with Automatic Metrics in Consultation Note '
    'Generation", ACL',
    page="https://github.com/babylonhealth/primock57 (human_eval_data)",
    task="A clinical note is written from the transcript of a consultation. A good one needs few corrections.",
    dimensions=dict.fromkeys(("time_sec", "incorrect", "omissions", "inc_plus_omi")),
    columns={
        "output": "generated_note", "inputs": "transcript", "reference": "human_note", "group": "consultation_id",
        "system": "model_id", "rater": "evaluator", "higher_is_better": False,
    },
    form=_with_sums,
    unverified="the published file, and whether it has the texts that the paper's reader finds in its own copy",
)  # fmt: skip
