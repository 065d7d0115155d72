"""The gain of tuning a judge, on a simulated judge model and simulated raters (tests/support/rater_model.py).

Every figure is the mean over the published seeds with its 95 % t interval, on 300 works of sources that the tuner has
not seen. A seed decides works, raters, the model's noise, the split and the search.

``python benchmarks/tuning.py [--seeds 20] [--methods|--objectives|--untunable]``; without an option all tables.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from loopback import serve
from metricsmith.optimizers.objectives import OBJECTIVES, Objective, closeness
from metricsmith.optimizers.tuner import JudgeTuner
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.scoring import score
from metricsmith.stats.agreement import quadratic_kappa
from metricsmith.stats.correlation import kendall_tau_b
from metricsmith.stats.resampling import mean_interval
from rater_model import PUBLISHED_SEEDS, RaterModel, rated_rows

TRAIN, TEST, BUDGET = 80, 300, 1500
PER_ROW = Objective(
    "closeness of each row", lambda x, y: float(np.mean(1 - ((x - y) / 4) ** 2)), closeness, success_at=0.9
)


@dataclass
class Run:
    """Before and after, on the test works, by statistic."""

    before: dict[str, float]
    after: dict[str, float]
    replaced: bool
    bound: int
    sent: int


def run(seed: int, method: str, objective: object, *, tunable: bool = True, low: int = 1, high: int = 5) -> Run:
    """Tune on one seed and measure on fresh works."""
    judge = CriterionJudge(criterion="Quality", meaning="The work serves its readers.", task="Write notices.")
    rows = rated_rows(TRAIN, seed, low=low, high=high)
    fresh = rated_rows(TEST, seed, low=low, high=high, offset=TRAIN)
    with serve(RaterModel(seed, tunable=tunable), keep=False) as server, contextlib.redirect_stderr(io.StringIO()):
        lm = server.lm()
        tuned = JudgeTuner(method=method, objective=objective, budget=BUDGET, lm=lm, seed=seed).compile(judge, rows)
        sent = server.requests
        assert sent == tuned.tuning.usage.requests <= tuned.tuning.bound <= BUDGET
        assert not server.wrong
        measured = [measure(one, fresh, lm) for one in (judge, tuned)]
    return Run(*measured, tuned.tuning.replaced, tuned.tuning.bound, sent)


def measure(judge: CriterionJudge, rows: list, lm: object) -> dict[str, float]:
    """Statistics of a judge on rated rows."""
    values = score([judge], rows, lm=lm, progress=False).run()[:, 0]
    ratings = np.array([row.rating for row in rows])
    return {
        "tau-b": kendall_tau_b(values, ratings),
        "quadratic kappa": quadratic_kappa(values, ratings),
        "closeness": PER_ROW.statistic(values, ratings),
    }


def cell(values: list[float]) -> str:
    """Mean and 95 % interval over seeds."""
    found = mean_interval(values)
    return f"{np.mean(values):.3f} ({found.low:.3f} to {found.high:.3f})"


def row(label: str, runs: list[Run], names: tuple[str, ...]) -> None:
    """Print one line of a table."""
    cells = []
    for name in names:
        before, after = [one.before[name] for one in runs], [one.after[name] for one in runs]
        gain = [later - earlier for earlier, later in zip(before, after, strict=True)]
        cells += [cell(before), cell(after), cell(gain)]
    replaced = sum(one.replaced for one in runs)
    requests = f"{max(one.sent for one in runs)} of {max(one.bound for one in runs)}"
    print(f"| {label} | {' | '.join(cells)} | {replaced} of {len(runs)} | {requests} |", flush=True)


def head(title: str, names: tuple[str, ...]) -> None:
    """Print the head of a table."""
    columns = [f"{name} {when}" for name in names for when in ("before", "after", "gain")]
    print(f"\n{title}\n\n| | {' | '.join(columns)} | replaced | most requests, bound |")
    print(f"|---|{'---|' * (len(columns) + 2)}", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=len(PUBLISHED_SEEDS))
    for table in ("methods", "objectives", "untunable"):
        parser.add_argument(f"--{table}", action="store_true")
    options = parser.parse_args()
    seeds = PUBLISHED_SEEDS[: options.seeds]
    every = not (options.methods or options.objectives or options.untunable)
    warnings.simplefilter("ignore")
    logging.getLogger("dspy").setLevel(logging.ERROR)
    tau, kappa = OBJECTIVES["kendall_tau_b"], OBJECTIVES["quadratic_kappa"]
    if every or options.methods:
        head("Tuned for tau-b", ("tau-b",))
        for method in ("labeled", "bootstrap", "mipro", "gepa", "auto"):
            row(method, [run(seed, method, tau) for seed in seeds], ("tau-b",))
        head("Tuned for quadratic kappa", ("quadratic kappa",))
        for method in ("labeled", "bootstrap", "mipro", "gepa", "auto"):
            row(method, [run(seed, method, kappa) for seed in seeds], ("quadratic kappa",))
    if every or options.untunable:
        head("A judge that no instruction changes", ("tau-b", "quadratic kappa"))
        for goal in (tau, kappa):
            runs = [run(seed, "auto", goal, tunable=False) for seed in seeds]
            row(f"auto for {goal.name}", runs, ("tau-b", "quadratic kappa"))
    if every or options.objectives:
        for title, low, high in (("another part of the scale (1 to 3)", 1, 3), ("the judge's part of the scale", 3, 5)):
            head(f"Raters use {title}", ("tau-b", "closeness"))
            for goal in (PER_ROW, tau):
                runs = [run(seed, "gepa", goal, low=low, high=high) for seed in seeds]
                row(goal.name, runs, ("tau-b", "closeness"))


if __name__ == "__main__":
    main()
