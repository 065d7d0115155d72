"""Two tables of choices: people, and judges who differ in noise and in the choice out of two right options."""

from __future__ import annotations

import csv

import numpy as np

OPTIONS = ("rude", "fine")
RATERS = ("ann", "bea", "cem", "dov", "eva")
JUDGES = {"atlas": (0.02, 0.8), "birch": (0.1, 0.15), "cedar": (0.6, 0.5)}


def chosen(rng, shares, first):
    """An option: of a set that holds both, the first with this probability."""
    held = rng.choice(3, p=shares)
    return OPTIONS[int(held)] if held < 2 else OPTIONS[int(rng.random() > first)]


def write_tables(folder, *, items=60, samples=3, seed=3, sets=False):
    """Write ``people.csv`` and ``judges.csv``; with `sets` judges give sets, too."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet([1, 1, 1.2], items)
    with (folder / "people.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "rater", "rating"])
        writer.writerows((f"n{i:02}", who, chosen(rng, shares[i], 0.15)) for i in range(items) for who in RATERS)
    with (folder / "judges.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "judge", "sample", "rating", *(["set"] if sets else [])])
        for name, (noise, first) in JUDGES.items():
            for i in range(items):
                own = np.clip(shares[i] + rng.normal(0, noise, 3), 0.001, None)
                for sample in range(samples):
                    option = chosen(rng, own / own.sum(), first)
                    both = option if rng.random() < 0.5 else "|".join(OPTIONS)
                    writer.writerow([f"n{i:02}", name, sample, option, *([both] if sets else [])])
    return folder / "people.csv", folder / "judges.csv"
