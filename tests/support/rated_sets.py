"""Rows of our own writing for each of the paper's data sets, in the form in which it is published."""

from __future__ import annotations

import csv
import json
from pathlib import Path

AS_CSV = ("simpeval", "evalgen", "realhumaneval")
NAMES = ("simpeval", "helpsteer2", "evalgen", "realhumaneval", "cogym", "summeval", "primock57")
PLACES = ("the mill", "the quay", "the old gate", "the market", "the well")


def rows_of(name: str, count: int = 10) -> list[dict]:
    """Two outputs for each source: five sources by default."""
    return [
        _ROWS[name](number, PLACES[number // 2 % 5] + " again" * (number // 10), number % 2) for number in range(count)
    ]


def written(name: str, folder: Path, rows: list[dict] | None = None) -> Path:
    """The rows as the file that is published: CSV, JSON Lines, or one list in JSON."""
    rows = rows_of(name) if rows is None else rows
    if name in AS_CSV:
        path = folder / f"{name}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return path
    path = folder / (f"{name}.json" if name == "primock57" else f"{name}.jsonl")
    path.write_text(json.dumps(rows) if name == "primock57" else "\n".join(map(json.dumps, rows)), "utf-8")
    return path


def _simpeval(number, place, version):
    return {
        "id": number // 2, "original": f"The path which leads to {place} has been closed.",
        "simple": f"The path to {place} is {'shut' if version else 'closed'} now.",
        "references": f"['You cannot walk to {place}.', 'No way to {place}.']", "score": 40 + 5.5 * (number % 10),
        "system": ("plain", "short")[version],
    }  # fmt: skip


def _helpsteer2(number, place, version):
    return {
        "prompt": f"How do I get to {place}?",
        "response": f"Go {'left' if version else 'right'}{', on' * (number * 7 % 5)}: {number}.",
        "helpfulness": number % 5, "correctness": (number + 1) % 5, "coherence": 4 - number % 3, "complexity": version,
        "verbosity": number % 4, "split": "validation" if number % 10 > 7 else "train",
    }  # fmt: skip


def _evalgen(number, place, version):
    return {
        "LLM": ("one", "two")[version], "Prompt": f"Describe a lamp from {place}.",
        "Response": f"## Lamp {number}\nIt lights {place}{' very' * (number * 7 % 5)} well.",
        "Response Batch Id": f"b{number}", "Var: document": place,
        "Metavar: id": f"doc {number // 2}", "Metavar: split": "test" if number % 10 > 7 else "train",
        "Metavar: __pt": "x", "Metavar: LLM_0": "one", "grade": number % 10 in (1, 2, 4, 7, 9), "grading_feedback": "",
    }  # fmt: skip


def _realhumaneval(number, place, version):
    return {
        "programmer_id": number // 2, "timestamp": f"t{number}", "model": ("seven", "thirty")[version],
        "task_name": "sum", "prefix_code": f"def f{number}(x):\n    # {place}\n", "suffix_code": f"print(f{number}(2))",
        "suggestion": "" if number == 9 else f"    return x + {number}", "accepted": number % 3 == 0, "requested": 0,
        "logprobs": "[]",
    }  # fmt: skip


def _cogym(number, place, version):
    steps = [("travel_plan_editor", "A first idea."), ("travel_plan_editor", f"Day {number}: {place}, by foot.")]
    events = [{"role": "environment", "action": "START"}]
    events += [
        {"role": "agent", "action": "EDITOR_UPDATE(...)", "current_observation": {"public": {editor: text}}}
        for editor, text in steps
    ]
    events.append({"role": "agent", "action": "FINISH()", "current_observation": {"public": {}}})
    return {
        "modelName": ("a", "b")[version], "task": "related_work" if number == 9 else "travel_planning",
        "query": f"Plan trip {number} to {place}.", "outcomeRating": 1 + number % 5, "agentRating": 5 - number % 4,
        "communicationRating": None if number < 1 else 3 + version, "agentFeedback": "", "event_log": events,
    }  # fmt: skip


def _summeval(number, place, version):
    def people(count, lift):
        return [
            {name: 1 + (number + lift + place_) % 5 for place_, name in enumerate(("coherence", "consistency"))}
            | {"fluency": 5 - version, "relevance": 1 + (one + number) % 5}
            for one in range(count)
        ]

    return {
        "id": f"dm-{number // 2}", "model_id": ("M0", "M1")[version], "filepath": "x.story",
        "decoded": f"Summary {number} of {place}.", "text": f"The council met at {place} and talked.",
        "references": [f"They met at {place}."], "expert_annotations": people(3, 0),
        "turker_annotations": people(5, 1),
    }  # fmt: skip


def _primock57(number, place, version):
    return {
        "consultation_id": f"day{number // 2}", "model_id": ("doctor", "net")[version],
        "evaluator": "abcde"[number // 2], "transcript": f"Patient {number // 2} fell near {place}.",
        "generated_note": f"Fall near {place}, note {number}.", "human_note": f"Fell, {place}.", "eval_note": "Fell.",
        "edited_note": "Fell badly.", "time_sec": 30 + 7 * number,
        "incorrect_critical": number % 3, "incorrect_noncritical": version, "omissions_critical": number % 2,
        "omissions_noncritical": 3,
    }  # fmt: skip


_ROWS = {
    "simpeval": _simpeval, "helpsteer2": _helpsteer2, "evalgen": _evalgen, "realhumaneval": _realhumaneval,
    "cogym": _cogym, "summeval": _summeval, "primock57": _primock57,
}  # fmt: skip
