"""Small rated rows with a known truth, for tests of the pipeline."""

from __future__ import annotations

import numpy as np

from metricsmith.metric import make_row
from metricsmith.records import Scale, Task

WORDS = (  # noqa: SIM905
    "the library opens at nine on monday and closes early because staff attend training please return books by "
    "friday using the box outside or ask a neighbour to bring them for you"
).split()
TASK = Task("Rewrite a public notice in plain words.", "rating", Scale(1, 5))


def planted_rows(
    sources: int = 30, versions: int = 3, seed: int = 0, noise: float = 0.4, rated: bool = True, first: int = 0
):
    """Rows whose rating falls with missing reference words and with padding.

    Every row brings two columns of its own: ``good`` (the planted quality with noise) and ``junk``.
    """
    random = np.random.default_rng(seed)
    rows = []
    for source in range(first, first + sources):
        reference = [*random.permutation(WORDS)[:14], f"source{source}"]
        for version in range(versions):
            lost, padding = int(random.integers(0, 10)), int(random.integers(0, 8))
            output = [*reference[lost:], *["indeed"] * padding]
            quality = 5 - 0.25 * lost - 0.2 * padding + random.normal(0, noise)
            labels = {"rating": float(np.clip(quality, 1, 5))} if rated else {}
            rows.append(
                make_row(
                    " ".join(output),
                    input=" ".join(reference[::-1]),
                    references=[" ".join(reference)],
                    id=f"{source}-{version}",
                    group=f"s{source}",
                    columns={"good": quality + random.normal(0, 0.3), "junk": random.normal()},
                    **labels,
                )
            )
    return rows
