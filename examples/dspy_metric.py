"""Induce a metric from ratings and use it to compare two DSPy programs. Runs offline, in seconds.

    python examples/dspy_metric.py

The programs here are plain rules, so that no model is needed; put `dspy.ChainOfThought` in their place, or hand
``metric`` to `dspy.GEPA` as it is.
"""

from __future__ import annotations

import re

import dspy

from metricsmith import AutoMetrics
from metricsmith.datasets import plain_notices

STIFF = {"commence": "start", "terminate": "end", "utilise": "use", "in order to": "to", "prior to": "before"}


class CopyNotice(dspy.Module):
    """The lazy program: the notice as it is."""

    def forward(self, input: str) -> dspy.Prediction:
        """Return the notice unchanged."""
        return dspy.Prediction(output=input)


class ShortenNotice(dspy.Module):
    """A few rules: everyday words, and no brackets."""

    def forward(self, input: str) -> dspy.Prediction:
        """Return the notice with stiff phrases replaced."""
        text = re.sub(r"\s*\([^)]*\)", "", input)
        for stiff, plain in STIFF.items():
            text = re.sub(stiff, plain, text, flags=re.IGNORECASE)
        return dspy.Prediction(output=text)


def main() -> None:
    """Induce, then score both programs on notices that the metric has not seen."""
    task, rows = plain_notices.load()
    groups = list(dict.fromkeys(row.group for row in rows))
    seen = set(groups[:36])
    train, test = ([row for row in rows if (row.group in seen) is side] for side in (True, False))
    induced = AutoMetrics(task).compile(train, test)
    print(f"held-out tau-b of the metric: {induced.record.test.kendall_tau_b:.2f} ({plain_notices.SYNTHETIC})")

    metric = induced.as_metric()
    notices = [row.with_inputs("input") for row in {row.group: row for row in test}.values()]
    for program in (CopyNotice(), ShortenNotice()):
        result = dspy.Evaluate(devset=notices, metric=metric, display_progress=False)(program)
        print(f"{type(program).__name__:14} {result.score:.1f} of 100")
    verdict = metric(notices[0], CopyNotice()(input=notices[0].input))
    print(f"why, for the first notice (score {verdict.score:.2f}):\n{verdict.feedback}")


if __name__ == "__main__":
    main()
