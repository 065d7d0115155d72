"""The gain and the cost of taking off raters' means: remakes the tables of docs/coverage.md.

    python benchmarks/rater_effects.py [--data FOLDER] [--draws 200] [--seed 0]

One rating of each output is set aside, and the mean of its other ratings, as they are or with each rater's mean taken
off, is held against it: a cell is the change of tau-b that centring makes. Simulated outputs (60, three systems on
twenty prompts, five stars) have a common part besides; the change against that stands in brackets. Raters' levels
are normal with the stated standard deviation, in units of what outputs differ by. Raters see outputs by chance, whole
prompts in turn, or some systems only. FOLDER holds ``wmt23_sxs_ende.jsonl.gz``: MQM of English-German translations by
ten people, three of them on each. A minute.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from metricsmith.datasets.wmt_mqm import TARGET, read_wmt_mqm
from metricsmith.stats.correlation import kendall_tau_b

FloatArray = NDArray[np.float64]
CUTS = ndtri([0.1, 0.25, 0.5, 0.8])
OUTPUTS, SYSTEMS = 60, 3
LEVELS = (0.0, 0.3, 0.6, 1.0)
PEOPLE = ((3, 2), (6, 3), (20, 3))  # how many there are, and how many rate an output


def means(ratings: FloatArray, *, centre: bool) -> FloatArray:
    """Mean by output, shape (n, raters) -> (n,), NaN being no rating."""
    if centre:
        counts = np.maximum((~np.isnan(ratings)).sum(axis=0), 1)
        ratings = ratings - np.nansum(ratings, axis=0) / counts + np.nanmean(ratings)
    return np.asarray(np.round(np.nanmean(ratings, axis=1), 12))


def change(ratings: FloatArray, random: np.random.Generator) -> tuple[float, float]:
    """Tau-b with a rating set aside of each output: as they are, and the change by centring."""
    places = np.arange(len(ratings))
    held = np.array([random.choice(np.flatnonzero(~np.isnan(row))) for row in ratings])
    others = ratings.copy()
    others[places, held] = np.nan
    plain, centred = (kendall_tau_b(ratings[places, held], means(others, centre=centre)) for centre in (False, True))
    return plain, centred - plain


def simulated(way: str, raters: int, each: int, level: float, random: np.random.Generator) -> tuple[float, float]:
    """The change against other raters and against the common part."""
    prompt, system = np.divmod(np.arange(OUTPUTS), SYSTEMS)
    common = np.sqrt(0.3) * random.standard_normal(OUTPUTS)[prompt] + np.sqrt(0.5) * random.standard_normal(OUTPUTS)
    common += 0.55 * (system - 1)
    common = (common - common.mean()) / common.std()
    numbers = np.sqrt(0.6) * common[:, None] + np.sqrt(0.4) * random.standard_normal((OUTPUTS, raters))
    stars = np.searchsorted(CUTS, numbers + level * random.standard_normal(raters)).astype(float)
    who = {
        "by chance": np.argsort(random.random((OUTPUTS, raters)), axis=1)[:, :each],
        "prompts": (prompt[:, None] * each + np.arange(each)) % raters,
        "systems": (system[:, None] * each + np.arange(each)) % raters,
    }[way]
    ratings = np.full(stars.shape, np.nan)
    np.put_along_axis(ratings, who, np.take_along_axis(stars, who, axis=1), axis=1)
    against = [kendall_tau_b(common, means(ratings, centre=centre)) for centre in (False, True)]
    return change(ratings, random)[1], against[1] - against[0]


def translations(folder: Path, draws: int, random: np.random.Generator) -> list[str]:
    """The change on MQM scores of 6, 10, 30 and all 104 segments with ten systems each."""
    rows = read_wmt_mqm(folder / "wmt23_sxs_ende.jsonl.gz").rows
    places: dict[tuple[str, str], int] = {}
    names: dict[str, int] = {}
    for row in rows:
        places.setdefault((row.group, row.system), len(places))
        names.setdefault(row.rater, len(names))
    ratings = np.full((len(places), len(names)), np.nan)
    for row in rows:
        ratings[places[row.group, row.system], names[row.rater]] = row[TARGET]
    segment = np.unique([group for group, _ in places], return_inverse=True)[1]
    lines = ["| segments | tau-b as they are | change by centring |", "|---:|---:|---:|"]
    for count in (6, 10, 30, int(segment.max()) + 1):
        found = np.array([
            change(ratings[np.isin(segment, random.choice(segment.max() + 1, count, replace=False))], random)
            for _ in range(draws)
        ])  # fmt: skip
        lines.append(f"| {count} | {found[:, 0].mean():.3f} | {found[:, 1].mean():+.3f} |")
    return lines


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("| raters see | raters | an output's |", " | ".join(f"level {level:g}" for level in LEVELS), "|")
    print("|---|---:|---:|" + "---:|" * len(LEVELS))
    for way in ("by chance", "prompts", "systems"):
        for raters, each in PEOPLE:
            if way == "systems" and raters < SYSTEMS * 2:
                continue  # everybody would see all of them
            cells = []
            for level in LEVELS:
                random = np.random.default_rng(options.seed)
                found = [simulated(way, raters, each, level, random) for _ in range(options.draws)]
                others, truth = np.mean(found, axis=0)
                cells.append(f"{others:+.3f} ({truth:+.3f})")
            print(f"| {way} | {raters} | {each} |", " | ".join(cells), "|", flush=True)
    if options.data is not None:
        print("", *translations(options.data, options.draws, np.random.default_rng(options.seed)), sep="\n")


if __name__ == "__main__":
    main()
