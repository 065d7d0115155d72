"""Travel plans that people and an agent made together, rated from 1 to 5 (Co-Gym)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from metricsmith.datasets.rated_set import RatedSet
from metricsmith.datasets.sources import RawTable
from metricsmith.records import Scale

__all__ = ["COGYM"]

EDITORS = ("travel_plan_editor", "result_editor", "lesson_plan_editor")


def _with_outcome(raw: RawTable) -> RawTable:
    """Trajectories as they are published, with the ``outcome`` and a ``sessionId`` that their table lacks."""
    if "outcome" in raw.columns or "event_log" not in raw.columns:
        return raw
    made = {"outcome": [_last_plan(events) for events in raw.columns["event_log"]]}
    if "sessionId" not in raw.columns:
        made["sessionId"] = [f"session {number}" for number in raw.numbers]
    return replace(raw, columns={**raw.columns, **made})


def _last_plan(events: Any) -> str:
    """The text that stood in the shared editor last; empty where none was written."""
    texts = [
        text
        for event in (events if isinstance(events, list) else ())
        for editor in EDITORS
        if isinstance(text := _inside(event, "current_observation", "public", editor), str) and text.strip()
    ]
    return texts[-1] if texts else ""


def _inside(found: Any, *keys: str) -> Any:
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


# Columns of the table: autometrics/dataset/datasets/cogym/cogym.py of SALT-NLP/autometrics; those of a trajectory, and
# the scale: the card of SALT-NLP/cogym-real-trajectories (228 trajectories of three tasks, more than the paper had);
# editors: process_cogym.py beside the first, which takes the text of the finishing step.
COGYM = RatedSet(
    name="cogym",
    title="Co-Gym",
    citation='Shao et al. (2025), "Collaborative Gym: A Framework for Enabling and Evaluating Human-Agent '
    'Collaboration", arXiv 2412.15701',
    page="https://huggingface.co/datasets/SALT-NLP/cogym-real-trajectories (one JSON file each: join them to JSONL)",
    task="A person and an agent plan a journey together in a shared editor. A good plan does what the person asked "
    "for, can be carried out, and rests on what was looked up.",
    dimensions=dict.fromkeys(("outcomeRating", "agentRating", "communicationRating"), Scale(1, 5, 1)),
    columns={
        "output": "outcome", "inputs": "query", "group": "sessionId", "system": "modelName",
        "where": ("task=travel_planning", "outcome!="),
    },
    rows=(72,),
    form=_with_outcome,
)  # fmt: skip
