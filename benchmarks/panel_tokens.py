"""Prompt tokens a row for 15 criteria: one request each, one for all, and the reference package's judges.

::

    python benchmarks/panel_tokens.py [--reference-python OTHER/bin/python]

Ten plain criteria and five rubrics, on the first 40 of the embedded notices. Prompts are written out by each
side's own adapter and counted by one rule (four characters a token), so ratios are what counts. OTHER is an
environment with ``autometrics-ai==0.1.0``; its judges have no rubric here, which favours them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

# This file also runs in the child's interpreter, where metricsmith is absent: it is imported where needed.
import dspy

TASK = "Rewrite official notices in plain language for the people whom they concern."
CRITERIA = {
    "Plain words": "The output uses words that everybody knows.",
    "Complete facts": "Every date, place and amount of the notice is in the output.",
    "Correct facts": "Nothing in the output contradicts the notice.",
    "Brevity": "The output says what has to be said and no more.",
    "Polite tone": "The output speaks to the reader with respect.",
    "Clear structure": "What the reader needs first comes first.",
    "Active voice": "It is plain who does what.",
    "Concrete dates": "Days and times are given in full.",
    "Whole sentences": "The output is written in sentences that stand alone.",
    "Direct address": "The reader is spoken to as you.",
    "Clear duty": "What the reader must do is said in so many words.",
    "Named contact": "The output says whom to ask.",
    "Consistent terms": "One thing has one name throughout.",
    "No filler": "No sentence could be left out without loss.",
    "Fitting length": "The output is about as long as its content asks for.",
}
LEVELS = ("Not at all.", "In few places.", "In about half of the places.", "In most places.", "Throughout.")
ROWS = 40


def characters(messages: list[dict[str, str]]) -> int:
    """Length of all messages."""
    return sum(len(message["content"]) for message in messages)


def reference() -> None:
    """In the child: read rows, write the mean characters of 15 prompts."""
    from autometrics.metrics.generated.GeneratedLLMJudgeMetric import GeneratedRefFreeLLMJudgeMetric

    metric = GeneratedRefFreeLLMJudgeMetric(
        name="axis", description="axis", axis="axis", model=dspy.LM("openai/none", api_key="none"),
        task_description=TASK, metric_card="none", use_cache=False,
    )  # fmt: skip
    (predictor,) = metric._judge_module.predictors()
    total = 0
    for source, output in json.loads(sys.stdin.read()):
        for name, meaning in CRITERIA.items():
            inputs = {
                "task_description": TASK, "axis": f"{name}: {meaning}", "input_text": source, "output_text": output,
            }  # fmt: skip
            total += characters(dspy.ChatAdapter().format(predictor.signature, [], inputs))
    print(json.dumps(total / ROWS))


def main() -> None:
    """Count and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference-python", help="interpreter of an environment with autometrics-ai==0.1.0")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        reference()
        return
    from metricsmith.datasets.plain_notices import load
    from metricsmith.programs.judges.criterion import CriterionJudge, RubricJudge
    from metricsmith.programs.judges.panel import Panel

    rows = load()[1][:ROWS]
    axes = [{"criterion": name, "meaning": meaning, "task": TASK} for name, meaning in CRITERIA.items()]
    judges = [
        *(CriterionJudge(**axis) for axis in axes[:10]),
        *(RubricJudge(**axis, levels=LEVELS) for axis in axes[10:]),
    ]
    single = sum(characters(judge.messages(row)) for judge in judges for row in rows) / len(rows)
    panel = Panel(judges, task=TASK)
    joint = sum(characters(panel.messages(row)) for row in rows) / len(rows)
    lines = [("15 judges, one request each", 15, single), ("one panel", 1, joint)]
    if options.reference_python:
        pairs = json.dumps([[row.get("input", ""), row.output] for row in rows])
        child = subprocess.run(
            [options.reference_python, __file__, "--child"], input=pairs, capture_output=True, text=True, check=True
        )
        lines.append(("15 judges of autometrics-ai 0.1.0", 15, json.loads(child.stdout)))
    print("| | requests a row | prompt tokens a row | beside the panel |\n|---|---|---|---|")
    for label, requests, length in lines:
        print(f"| {label} | {requests} | {length / 4:,.0f} | {length / joint:.1f} |")


if __name__ == "__main__":
    main()
