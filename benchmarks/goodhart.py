"""Over-optimisation in a simulation whose truth is known: the figure of docs/reward.md.

::

    python benchmarks/goodhart.py [--seed 0] [--regression pls] [--out docs/figures/goodhart.svg]

Letters are to carry 14 facts. Raters (simulated, with noise) value every fact, and up to two words of courtesy;
each further one annoys them. None of the 60 rated letters has more than two. So the induced metric learns that
courtesy is good, without an end. An optimiser that knows only the metric changes a program at random, one
fact or one word of courtesy at a time, and keeps what the metric likes better. The monitor holds the metric
against one noisy rater of 30 letters that the optimiser does not see.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import dspy
import numpy as np
import pandas as pd

from metricsmith import InducedMetric, Output, Scale, Task, make_row, score
from metricsmith.scoring import CallableMetric
from metricsmith.stats import PriorRidge, TwoStagePLS
from metricsmith.tuning import RewardMonitor

FACTS, TASK = 14, Task("Write a letter.", "rating", Scale(1, 5))
REGRESSIONS = {"pls": TwoStagePLS, "ridge": PriorRidge}


def facts(_, pred):
    """Share of the facts that the letter has."""
    return len({word for word in pred.output.split() if word.startswith("fact")}) / FACTS


def courtesy(_, pred):
    """Words of courtesy."""
    return float(pred.output.split().count("kindly"))


def taste(output):
    """The raters' opinion, on 1 to 5: 2 points for all facts, .5 for each of two kind words, -.25 for others."""
    letter = dspy.Prediction(output=output)
    kind = courtesy(None, letter)
    return max(1.0, 1.5 + 2 * facts(None, letter) + 0.5 * min(kind, 2) - 0.25 * max(kind - 2, 0))


def rater(row, pred):
    """One rater of the held-out letters, with a noise of .8 points, in [0, 1]."""
    noise = random.Random(row.input + pred.output).gauss(0, 0.8)
    return TASK.scale.unit(taste(pred.output) + noise)


class Letters(dspy.Module):
    """A program with two settings: how many facts it tells and how often it says kindly."""

    def __init__(self, told, kind):
        super().__init__()
        self.told, self.kind = told, kind

    def forward(self, input):
        """The letter; some facts get lost, differently in every letter."""
        lost = random.Random(input).randrange(4)
        told = [f"fact{number}" for number in range(max(0, self.told - lost))]
        return dspy.Prediction(output=" ".join([*told, *["kindly"] * self.kind]))


def induce(seed, regression):
    """A metric from 60 rated letters with 4 to 14 facts and 0 to 2 kind words."""
    draw = np.random.default_rng(seed)
    rows = []
    for number in range(60):
        output = Letters(int(draw.integers(4, FACTS + 1)), int(draw.integers(0, 3)))(input=f"rated {number}").output
        rows.append(make_row(output, id=str(number), rating=float(np.clip(taste(output) + draw.normal(0, 0.4), 1, 5))))
    metrics = [
        CallableMetric(facts, output=Output("facts", 0, 1), version="1"),
        CallableMetric(courtesy, output=Output("courtesy", 0, None, half=2), version="1"),
    ]
    values = score(metrics, rows, progress=False).run()
    table = pd.DataFrame(values, columns=[metric.name for metric in metrics])
    fit = REGRESSIONS[regression]().fit(table, [row.rating for row in rows])
    parts = [metrics[place] for place in fit.combination_.indices]
    return InducedMetric(components=parts, combination=fit.combination_, task=TASK, best=[0.0] * len(parts))


def optimise(seed=0, regression="pls", steps=40):
    """The monitor after a random search of `steps` proposals."""
    reward = induce(seed, regression).as_reward()
    train, held_out = (
        [dspy.Example(id=f"{side} {n}", input=f"{side} {n}").with_inputs("input") for n in range(30)]
        for side in ("train", "held out")
    )
    monitor = RewardMonitor(reward, held_out, reference=rater, seed=seed, num_threads=1)
    draw, best = random.Random(seed), Letters(6, 0)
    score_of = reward.check(best, train, num_threads=1).score
    monitor.observe(best, at=0)
    for step in range(1, steps + 1):
        told, kind = best.told, best.kind
        if draw.random() < 0.5:
            told = min(FACTS, max(0, told + draw.choice((-1, 1))))
        else:
            kind = max(0, kind + draw.choice((-1, 1)))
        candidate = Letters(told, kind)
        found = reward.check(candidate, train, num_threads=1).score
        if found > score_of:
            best, score_of = candidate, found
            monitor.observe(best, at=step, label=f"{told} facts, {kind} kind words")
    return monitor


def main():
    """Run, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--regression", choices=REGRESSIONS, default="pls")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    monitor = optimise(options.seed, options.regression)
    for gap in monitor.gaps():
        print(
            f"step {gap.at:2.0f}  {gap.label or 'start':24} reward {gap.reward:.3f}  reference {gap.reference:.3f}  "
            f"gap {gap.gap:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})"
        )
    print(monitor.report())
    print(f"to keep: {monitor.best().label}")
    if options.out:
        monitor.write(options.out, title="Goodhart's law in a simulation")


if __name__ == "__main__":
    main()
