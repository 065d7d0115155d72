"""Measures what a free metric keeps of a paid one, and how its interval covers: remakes docs/distillation.md.

::

    python benchmarks/distillation.py [--data FOLDER] [--runs 500] [--seed 0]

Without a language model the paid metric is a stand-in, and each table says which. On the embedded notices it is a
judge that sees every planted defect and errs by a normal number; on SimpEval (FOLDER holds ``simpeval.csv``) it is the
people's own rating with a normal number added. Both are deterministic in the text. The other table simulates
`kept_share`: rows in groups whose parts are alike with intraclass correlation .3, five levels of the rating.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets import plain_notices
from metricsmith.datasets.table import Table, read_table
from metricsmith.formats import interval, percent, statistic
from metricsmith.records import Output, Usage
from metricsmith.report.distillation.record import Distillation
from metricsmith.stats.correlation import kendall_tau_b
from metricsmith.stats.kept_share import kept_share
from metricsmith.testing import GivenJudge
from metricsmith.tuning import distil

FloatArray = NDArray[np.float64]

NOISE = {"notices": 0.5, "SimpEval": 0.75}  # of the stand-in, in points and in standard deviations of the rating
GROUPS, EACH = (10, 20, 60), 4
ALIKE = 0.3  # intraclass correlation
# How much of the paid and of the free metric is quality, and how much of the free one's rest is the paid one's.
CASES = {"most": (0.9, 0.8, 0.5), "much": (0.6, 0.5, 0.5), "a third": (0.6, 0.2, 0.5), "all": (0.4, 0.4, 0.9)}


def stand_in(table: Table, quality: FloatArray, noise: float, seed: int) -> GivenJudge:
    """A paid judge that gives each output its quality and a normal number, on a scale without ends."""
    texts = [row["output"] for row in table.rows]
    errors = dict(zip(dict.fromkeys(texts), np.random.default_rng(seed).normal(0, noise, len(texts)), strict=False))
    given = {text: float(number + errors[text]) for text, number in zip(texts, quality, strict=True)}
    output = Output("judge", low=None, high=None, half=1.0)
    return GivenJudge(given, name="judge", output=output, usage=Usage(1, 500, 60, 0.0005, 1.0))


def notices(seed: int) -> tuple[Table, GivenJudge]:
    """The embedded notices, and a judge that sees every planted defect."""
    table = read_table(
        plain_notices.path(), target="rating", output="rewrite", inputs="notice", reference="reference", id="id",
        group="source_id", scale="1:5", system=None,
    )  # fmt: skip
    planted = {row["id"]: row for row in plain_notices.load()[1]}
    defects = plain_notices.DEFECTS.values()
    lost = [sum(one.weight * planted[name][one.column] for one in defects) for name in table.ids]
    return table, stand_in(table, 5 - np.array(lost), NOISE["notices"], seed)


def simpeval(folder: Path, seed: int) -> tuple[Table, GivenJudge]:
    """SimpEval, and the people's own rating with an error."""
    table = read_table(
        folder / "simpeval.csv", target="score", output="simple", inputs="original", reference="references",
    )  # fmt: skip
    quality = (table.ratings - table.ratings.mean()) / table.ratings.std()
    return table, stand_in(table, quality, NOISE["SimpEval"], seed)


def simulated(case: str, groups: int, runs: int, seed: int) -> Iterator[tuple[FloatArray, ...]]:
    """Yields free, paid, rating and groups of each run."""
    paid_quality, free_quality, common = CASES[case]
    random = np.random.default_rng([seed, groups, *map(ord, case)])
    for _ in range(runs):
        parts = np.sqrt(ALIKE) * random.normal(size=(4, groups, 1))
        quality, error, other, rater = (parts + np.sqrt(1 - ALIKE) * random.normal(size=(4, groups, EACH))).reshape(
            4, -1
        )
        paid = paid_quality * quality + np.sqrt(1 - paid_quality**2) * error
        rest = common * error + np.sqrt(1 - common**2) * other
        free = free_quality * quality + np.sqrt(1 - free_quality**2) * rest
        rating = np.clip(np.round(1.2 * (0.8 * quality + 0.6 * rater) + 3), 1, 5)
        yield free, paid, rating, np.repeat(np.arange(groups), EACH)


def coverage(case: str, groups: int, runs: int, seed: int) -> tuple[float, float, float]:
    """The true share, the share of intervals that hold it, and the share of runs without an interval."""
    free, paid, rating, _ = next(simulated(case, 5000, 1, seed + 1))
    truth = kendall_tau_b(free, rating) / kendall_tau_b(paid, rating)
    found = [kept_share([one], [two], [y], [own]) for one, two, y, own in simulated(case, groups, runs, seed)]
    given = [one for one in found if not one.why_not]
    return truth, float(np.mean([one.ci_low <= truth <= one.ci_high for one in given])), 1 - len(given) / runs


def line(name: str, record: Distillation) -> str:
    """One row of the table."""
    share, free, paid, met = record.share, record.free_people, record.paid_people, record.imitation
    apart = record.difference
    cells = [
        name, f"{share.n} in {share.groups}", statistic(paid.kendall_tau_b), statistic(free.kendall_tau_b),
        f"{statistic(apart.kendall_tau_b, signed=True)} ({interval(apart.ci_low, apart.ci_high)})",
        f"{percent(share.value)} ({interval(share.ci_low, share.ci_high, write=percent)})",
        f"{statistic(met.kendall_tau_b)} ({interval(met.ci_low, met.ci_high)})",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |".replace("\xa0", " ")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    print("| data | held-out rows | paid | free | free − paid | share kept | free with paid |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    table, judge = notices(options.seed)
    print(line("notices", distil(judge, table, progress=False, seed=options.seed).record), flush=True)
    if options.data:
        table, judge = simpeval(options.data, options.seed)
        for split in ("holdout", "cv"):
            record = distil(judge, table, split=split, progress=False, seed=options.seed).record
            print(line(f"SimpEval, {split}", record), flush=True)
    print("\n| kept | true share | 10 groups | 20 groups | 60 groups |\n| --- | ---: | ---: | ---: | ---: |")
    for case in CASES if options.runs else ():
        found = [coverage(case, groups, options.runs, options.seed) for groups in GROUPS]
        cells = [f"{100 * held:.1f} ({100 * none:.0f})" for _, held, none in found]
        print(f"| {case} | {percent(found[0][0])} | {' | '.join(cells)} |".replace("\xa0", " "), flush=True)


if __name__ == "__main__":
    main()
