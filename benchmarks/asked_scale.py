"""Standardised ratings, asked for as they are and asked for in fifths: judgements that fail, and held-out tau-b.

The judge model is that of tests/support/rater_model.py, once so that it answers from 1 to 5 whatever is asked, and once
so that it keeps to the scale that is named and gives the same levels on it, which shows what fifths cost where nothing
was wrong. Each seed has 80 works to learn from and 300 of other sources to measure on; figures are means over seeds,
with 95 % t intervals. A judge that the tuner refuses to make is measured as it stood before tuning.

``python benchmarks/asked_scale.py [--seeds 20] [--judges examples guideline tuned]``
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import re
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import dspy
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from loopback import serve
from metricsmith.errors import ModelFailure
from metricsmith.optimizers.learning_judges import LEARNED
from metricsmith.programs.asked_scale import Asked, asked_scale
from metricsmith.programs.judges import raters
from metricsmith.programs.judges.raters import GuidelineJudge
from metricsmith.records import Scale, Task
from metricsmith.scoring import score
from metricsmith.stats.correlation import kendall_tau_b
from metricsmith.stats.resampling import mean_interval
from rater_model import PUBLISHED_SEEDS, RaterModel, rated_rows, standardised

TRAIN, TEST = 80, 300
GUIDELINE = "Say how good the notice is for its readers."
NAMED = re.compile(r"a number from (-?[\d.]+) to (-?[\d.]+)")
GIVEN = re.compile(r"(\[\[ ## score ## \]\]\n)(-?[\d.]+)\n")  # the rating of an example


@dataclass(frozen=True)
class Stubborn(RaterModel):
    """Answers from 1 to 5 whatever is asked, and makes nothing of rated examples on another scale."""

    def __call__(self, prompt):
        """The levels of the model of the tests."""
        return super().__call__(GIVEN.sub(r"\1none\n", prompt) if NAMED.search(prompt) else prompt)


@dataclass(frozen=True)
class Obedient(RaterModel):
    """Gives the same levels on the scale that is named, and reads rated examples on it."""

    def __call__(self, prompt):
        """The levels of the model of the tests, on the named scale."""
        named = NAMED.search(prompt)
        if named is None:
            return super().__call__(prompt)
        low, high = float(named[1]), float(named[2])
        said = super().__call__(
            GIVEN.sub(lambda found: f"{found[1]}{1 + 4 * (float(found[2]) - low) / (high - low):.3f}\n", prompt)
        )
        if "score" not in said:
            return said
        return {**said, "score": str(min(high, low + (float(said["score"]) - 1) / 4 * (high - low)))}


@dataclass
class Figures:
    """By seed: the share of judgements that failed, and tau-b of the others; how many judges were not made."""

    failed: list[float] = field(default_factory=list)
    tau: list[float] = field(default_factory=list)
    lost: int = 0


def judged(name: str, rows: list, fresh: list, task: Task, lm: object, seed: int, figures: Figures) -> None:
    """Make one judge and measure it on fresh works."""
    if name == "guideline":
        judge = GuidelineJudge(measure=task.target, guideline=GUIDELINE, task=task.description, scale=task.scale)
    else:
        start = LEARNED[name](rows, task, seed)
        try:
            judge = start.tuner.compile(start.judge, start.learn, start.select)
        except ModelFailure:
            judge, figures.lost = start.judge, figures.lost + 1
    values = score([judge], fresh, lm=lm, progress=False, max_failure_rate=1.0).run()[:, 0]
    known = ~np.isnan(values)
    figures.failed.append(1 - float(known.mean()))
    figures.tau.append(kendall_tau_b(values[known], np.array([row.rating for row in fresh])[known]))


def line(label: str, found: Figures) -> str:
    """One line of the table."""
    taus = np.array(found.tau)[~np.isnan(found.tau)]
    interval = mean_interval(taus.tolist()) if taus.size > 1 else None
    spread = f" ({interval.low:.3f} to {interval.high:.3f})" if interval else ""
    tau = f"{taus.mean():.3f}{spread}" if taus.size else "undefined"
    undefined = f", undefined in {len(found.tau) - taus.size}" if 0 < taus.size < len(found.tau) else ""
    return f"| {label} | {np.mean(found.failed):.1%} | {tau}{undefined} | {found.lost} of {len(found.tau)} |"


def measured(model: type[RaterModel], name: str, asked: object, seeds: range) -> Figures:
    """One judge on one model, its scale decided by `asked`."""
    figures = Figures()
    for seed in seeds:
        every = standardised([*rated_rows(TRAIN, seed), *rated_rows(TEST, seed, offset=TRAIN)], seed)
        ends = [row.rating for row in every]
        task = Task("Write notices.", "rating", Scale(min(ends), max(ends)))
        with (
            serve(model(seed), keep=False) as server,
            patch.object(raters, "asked_scale", asked),
            contextlib.redirect_stderr(io.StringIO()),
            dspy.context(lm=server.lm()),
        ):
            judged(name, every[:TRAIN], every[TRAIN:], task, dspy.settings.lm, seed, figures)
    return figures


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=len(PUBLISHED_SEEDS))
    parser.add_argument("--judges", nargs="+", default=["examples", "guideline", "tuned"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("dspy").setLevel(logging.ERROR)
    print("| model, judge, asked for | failed | tau-b on fresh works | tuner gave up |\n|---|---|---|---|")
    for kind, model in (("answers 1 to 5", Stubborn), ("keeps to the scale", Obedient)):
        for name in options.judges:
            for when, asked in (("raters' numbers", Asked), ("fifths", asked_scale)):
                found = measured(model, name, asked, PUBLISHED_SEEDS[: options.seeds])
                print(line(f"{kind}, {name}, {when}", found), flush=True)


if __name__ == "__main__":
    main()
