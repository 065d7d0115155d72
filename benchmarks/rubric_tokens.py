"""Requests and tokens of writing rubrics without examples and from rated ones, on the loopback server.

::

    python benchmarks/rubric_tokens.py

Five rubrics from the embedded notices. The server counts four characters a token and answers the same to both, so the
prompts are what counts.
"""

from __future__ import annotations

import sys
from pathlib import Path

import dspy

from metricsmith.datasets import plain_notices
from metricsmith.optimizers.generation import generate_judges

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from loopback import scripted, serve

RUBRICS = 5


def main() -> None:
    """Generate twice and print the table."""
    task, rows = plain_notices.load()
    print("| family | requests | prompt tokens | of which for one rubric |\n|---|---|---|---|")
    for family in ("rubric", "rubric_examples"):
        with serve(scripted) as server, dspy.context(lm=server.lm()):
            made = generate_judges(rows, task, {family: RUBRICS})
        one = sum(len(prompt) // 4 for prompt in server.prompts[1:]) / RUBRICS
        print(f"| `{family}` | {made.usage.requests} | {made.usage.prompt_tokens:,} | {one:,.0f} |")


if __name__ == "__main__":
    main()
