"""The experiments of section 6 on choosing a judge, and the speed of its measures: docs/judge_selection_experiments.md.

::

    python benchmarks/judge_selection.py [--only selection correlation ...] [--trials 30] [--items 100] [--judges 50]
        [--seed 0] [--ratings FILE] [--out docs/figures]

Each experiment prints Markdown tables; plots are written to the folder of ``--out``. ``--ratings`` takes a published
table of Civil Comments for the case study, which is simulated in its shape without one. Figures and tables named in
brackets are those of Guerdan et al. (2025), "Validating LLM-as-a-Judge Systems in the Absence of Gold Labels".
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from metricsmith.datasets.civil_comments import OPTIONS, TOXIC, read_civil_comments, sample_by_disagreement
from metricsmith.rating_model import measures
from metricsmith.rating_model.ratings import Ratings
from metricsmith.rating_model.response_sets import ResponseSets
from metricsmith.rating_model.simulate import decaying_choice, project_simplex, selection_effect, simulate
from metricsmith.rating_model.vectors import Decision, RatingVectors
from metricsmith.report.plots.forest import Estimate, forest
from metricsmith.report.plots.lines import line_plot
from metricsmith.report.render import standalone
from metricsmith.stats.correlation import batch_spearman

NAMES = [
    "hit_rate", "cohen_kappa", "krippendorff_alpha", "squared_error_modes", "kl_human_judge", "kl_judge_human",
    "cross_entropy_human_judge", "cross_entropy_judge_human", "js_distance", "squared_error_choices", "coverage",
    "squared_error_sets",
]  # fmt: skip
DRAWN = ["hit_rate", "js_distance", "squared_error_sets"]
MULTILABEL = {"precision", "recall", "macro_precision", "macro_recall", "binary_cross_entropy"}
THRESHOLDS, BUDGETS, ERRORS = (0.3, 0.5, 0.7), (1, 3, 5, 10, 20, 50, 100), (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
SHAPES = ((2, 3), (3, 7), (4, 10), (5, 20))  # options and response sets


@dataclass(frozen=True)
class Process:
    """A rating process: full or partial specification, selection effects of people and judges, errors of people."""

    full: bool = False
    decays: tuple[float, float] = (0.0, 0.0)
    error: float = 0.0
    skew: float = 0.0


PROCESSES = {
    "fully specified": Process(full=True),
    "no selection effects": Process(),
    "equal effects (2 and 2)": Process(decays=(2.0, 2.0)),
    "opposite effects (2 and -1)": Process(decays=(2.0, -1.0)),
    "opposite effects (-1 and 2)": Process(decays=(-1.0, 2.0)),
    "opposite, random error": Process(decays=(2.0, -1.0), error=0.3),
    "opposite, additive error": Process(decays=(2.0, -1.0), error=0.3, skew=1.0),
}


def response_sets(options: int, sets: int) -> ResponseSets:
    """The first sets of some options, smallest first."""
    every = ResponseSets.every(tuple("abcdefghij"[:options]))
    return ResponseSets(every.options, every.sets[:sets])


def worlds(process: Process, asked):
    """Simulations of a process, for each shape and trial."""
    for options, sets in SHAPES:
        for trial in range(asked.trials):
            yield simulate(
                response_sets(options, options if process.full else sets), items=asked.items, judges=asked.judges,
                decays=process.decays, error=process.error, skew=process.skew, seed=1000 * asked.seed + trial,
            )  # fmt: skip


def losses(names, sides):
    """Measures so that lower is better, shape (measures, judges)."""
    asked = measures.rating_measures(names)
    found = measures.weighted_values(asked, sides)[:, 0]
    return np.stack([measures.as_loss(measure, values) for measure, values in zip(asked, found, strict=True)])


def downstream(sides, threshold):
    """Consistency and size of the bias of each judge, with the first option positive; shape (2, judges)."""
    found = measures.weighted_values(measures.downstream_measures(Decision(("a",), threshold)), sides)[:, 0]
    return np.stack([found[0], np.abs(found[1])])


def of_picks(loss, values):
    """The mean downstream value of the judges that each measure likes best; ties share it. Shape (measures, 2)."""
    best = loss <= np.nanmin(np.where(np.isnan(loss), np.inf, loss), axis=1, keepdims=True) + 1e-12
    return (best @ values.T) / best.sum(axis=1, keepdims=True)


def table(title, columns, rows):
    """Print a Markdown table; numbers get two decimals."""
    print(f"\n**{title}**\n\n| | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for name, values in rows.items():
        cells = [cell if isinstance(cell, str) else f"{cell:.2f}".replace("0.", ".", 1) for cell in values]
        print(f"| {name} | {' | '.join(cells)} |")


def write(asked, key, plot):
    """Write a plot as a file of its own."""
    if asked.out:
        asked.out.mkdir(parents=True, exist_ok=True)
        (asked.out / f"judge_selection_{key}.svg").write_text(standalone(plot), "utf-8")


def draw(asked, key, title, names, places, series):
    """Write curves: values at places, by name."""
    curves = {name: list(zip(places, values, strict=True)) for name, values in series.items()}
    write(asked, key, line_plot(key, curves, title, names))


def key_of(label):
    """The part of a file's name that tells a process or setting."""
    return label.replace("-", "minus ").translate(str.maketrans("", "", "(),")).replace(" ", "_")


def selection(asked):
    """Consistency and bias of the judge that each measure picks, by ratings per item (figures 4 and 13)."""
    for label, process in PROCESSES.items():
        found, own = np.zeros((len(BUDGETS), len(NAMES), 2)), np.zeros((len(BUDGETS), len(NAMES)))
        cells = 0
        for world in worlds(process, asked):
            judges, target = world.judges, world.target
            for place, ratings in enumerate(BUDGETS):
                people = world.rated(ratings, seed=place)
                fixed = losses(NAMES, measures.Sides(people, judges, target))
                for threshold in THRESHOLDS:
                    cover = losses(["coverage"], measures.Sides(people, judges, target, threshold=threshold))
                    fixed[NAMES.index("coverage")] = cover[0]
                    found[place] += of_picks(fixed, downstream(measures.Sides(people, judges, target), threshold))
                    own[place] += of_picks(fixed, downstream(measures.Sides(people, judges), threshold))[:, 0]
            cells += len(THRESHOLDS)
        found, own = found / cells, own / cells
        heads = [f"m={ratings}" for ratings in BUDGETS]
        table(f"Consistency of the pick: {label}", heads, dict(zip(NAMES, found[:, :, 0].T, strict=True)))
        table(f"Size of its bias: {label}", heads, {name: found[:, NAMES.index(name), 1] for name in DRAWN})
        name = "squared_error_sets"
        table(
            f"Consistency of the pick by {name}, {label}, with decisions scored against", heads,
            {"the population": found[:, NAMES.index(name), 0], "the same m ratings": own[:, NAMES.index(name)]},
        )  # fmt: skip
        names = "ratings per item, log10", "decision consistency"
        curves = {name: found[:, NAMES.index(name), 0] for name in DRAWN}
        draw(asked, f"pick_{key_of(label)}", f"The judge picked: {label}", names, np.log10(BUDGETS), curves)


def correlation(asked):
    """Rank correlation of each measure with downstream figures over judges, without sampling (figures 5 and 14)."""
    agreed = {"consistency": {name: [] for name in NAMES}, "size of bias": {name: [] for name in NAMES}}
    for process in PROCESSES.values():
        found = []
        for world in worlds(process, asked):
            for threshold in THRESHOLDS:
                sides = measures.Sides(world.human, world.judges, world.target, threshold=threshold)
                ends = downstream(sides, threshold)
                better = np.stack([ends[0], -ends[1]])[:, None]
                found.append(batch_spearman(-losses(NAMES, sides), better))
        for values, rows in zip(np.nanmean(found, axis=0), agreed.values(), strict=True):  # NaN: all judges alike
            for name, value in zip(NAMES, values, strict=True):
                rows[name].append(value)
    for end, rows in agreed.items():
        title = f"Spearman's correlation of being better by a measure and downstream: {end}"
        table(title, list(PROCESSES), rows)
        for place, label in enumerate(PROCESSES):
            lines = [Estimate(name, values[place], np.nan, np.nan) for name, values in rows.items()]
            key = key_of(f"correlation {end} {label}")
            write(asked, key, forest(key, lines, f"{title}, {label}", measure="Spearman's correlation"))


def finite(asked):
    """Decisions by m ratings against the population's, and prevalence by choices (figures 6, 12 and 15)."""
    rows, biases = {f"threshold {threshold}": [] for threshold in THRESHOLDS}, {}
    for ratings in BUDGETS:
        for threshold in THRESHOLDS:
            decide, found = Decision(("a",), threshold), []
            for world in worlds(Process(), asked):
                drawn, known = decide.of(world.rated(ratings, seed=ratings)), decide.of(world.human)
                found.append([np.mean(drawn == known), np.mean(drawn - known)])
            rows[f"threshold {threshold}"].append(np.mean(found, axis=0))
    heads = [f"m={ratings}" for ratings in BUDGETS]
    table("Share of items decided as by the population", heads, {k: [v[0] for v in r] for k, r in rows.items()})
    table("Bias of prevalence", heads, {k: [v[1] for v in r] for k, r in rows.items()})
    names, curves = ("ratings per item, log10", "decided alike"), {k: [v[0] for v in r] for k, r in rows.items()}
    draw(asked, "finite", "Decisions by few ratings", names, np.log10(BUDGETS), curves)
    for decay in (-2.0, -1.0, 0.0, 1.0, 2.0):
        gamma = np.mean([selection_effect(sets := response_sets(*s), decaying_choice(sets, decay)) for s in SHAPES])
        for skew in (-1.0, 0.0, 1.0):
            line = [choice_bias(Process(decays=(decay, 0.0), error=e, skew=skew), asked) for e in ERRORS]
            biases.setdefault(f"skew {skew:g}", {})[f"Gamma {gamma:.2f}"] = line
    for skew, lines in biases.items():
        title = f"Prevalence by choices with errors less that by response sets, threshold .5, {skew}"
        table(title, [f"epsilon {e}" for e in ERRORS], lines)
    curves = {skew: lines["Gamma 1.00"] for skew, lines in biases.items()}
    draw(asked, "prevalence", "Prevalence by choices with errors", ("error", "bias of prevalence"), ERRORS, curves)


def choice_bias(process, asked):
    """The mean lead of prevalence by thresholding choices over that by response sets without errors."""
    found = []
    for world in worlds(process, asked):
        choices, sets = world.human.choices[:, 0] >= 0.5, Decision(("a",)).of(world.target)
        found.append(choices.mean() - sets.mean())
    return float(np.mean(found))


def error(asked):
    """Rankings by people with errors against those without, and the pick by hit rate (figures 10 and 11)."""
    shapes = {"fully specified": (True, (0.0, 0.0)), "opposite effects": (False, (2.0, -1.0))}
    for label, (full, decays) in shapes.items():
        picked = {f"skew {skew:g}": [] for skew in (0.0, 1.0, -1.0)}
        for (key, picks), skew in zip(picked.items(), (0.0, 1.0, -1.0), strict=True):
            ranks = {name: [] for name in DRAWN}
            for epsilon in ERRORS:
                found, chosen = [], []
                for world in worlds(Process(full, decays, epsilon, skew), asked):
                    sides = measures.Sides(world.human, world.judges, world.target)
                    losing, clean = losses(DRAWN, sides), losses(DRAWN, measures.Sides(world.target, world.judges))
                    found.append(batch_spearman(losing, clean))
                    chosen.append(np.mean([of_picks(losing, downstream(sides, t))[0, 0] for t in THRESHOLDS]))
                for name, value in zip(DRAWN, np.nanmean(found, axis=0), strict=True):
                    ranks[name].append(value)
                picks.append(np.mean(chosen))
            rows = {**ranks, "consistency of the pick by hit_rate": picks}
            title = f"Rankings with and without errors (Spearman): {label}, {key}"
            table(title, [f"epsilon {e}" for e in ERRORS], rows)
            draw(asked, f"error_{key_of(f'{label} {key}')}", title, ("error", "rank correlation"), ERRORS, ranks)
        title = f"The judge picked by hit rate: {label}"
        draw(asked, f"error_pick_{key_of(label)}", title, ("error", "decision consistency"), ERRORS, picked)


def lemma(asked):
    """The condition of Lemma B.1 as printed, and the corrected one, on random people, errors and judges."""
    rng, draws = np.random.default_rng(asked.seed), 100_000
    theta, z, w = rng.dirichlet(np.ones(7), (3, draws))
    error = rng.dirichlet(np.ones(7), (draws, 7))  # rows of the transpose
    held = response_sets(3, 7).membership
    observed = np.einsum("nv,nvo->no", theta, error)
    lead, seen = (
        (((people - z) @ held.T) ** 2).sum(1) - (((people - w) @ held.T) ** 2).sum(1) for people in (theta, observed)
    )
    x, kept = (((theta - observed) @ held.T) * ((w - z) @ held.T)).sum(1), np.sign(seen) == np.sign(lead)
    rows = {}
    for name, holds in (
        ("as printed: x has the sign of delta*", x * lead > 0),
        ("corrected: 2x / delta* < 1", 2 * x / lead < 1),
    ):
        counts = [holds.sum(), (holds & ~kept).sum(), (~holds).sum(), (~holds & ~kept).sum()]
        rows[name] = [f"{count}" for count in counts]
    table("Lemma B.1", ["holds", "of these flipped", "fails", "of these flipped"], rows)


def case(asked):
    """Prevalence by beta and threshold, and each measure's judge and its loss (figures 7 and 8, tables 3 and 4)."""
    sets, rng = ResponseSets.every(OPTIONS), np.random.default_rng(asked.seed)
    if asked.ratings:
        people = sample_by_disagreement(read_civil_comments(asked.ratings), seed=asked.seed)
    else:
        wide = simulate(sets, items=4000, judges=1, decays=(-2.0, 0.0), seed=asked.seed)
        people = sample_by_disagreement(
            Ratings.from_counts(rng.multinomial(14, wide.human.choices), OPTIONS), seed=asked.seed
        )
    betas, grid = (0.0, 0.1, 0.2, 0.3, 0.4), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
    seen = {b: RatingVectors.of_ratings(sets, people, beta={(OPTIONS[2], "Toxic"): b}) for b in betas}
    share = {f"beta {b}": [np.mean(Decision(TOXIC, t).of(v)) for t in grid] for b, v in seen.items()}
    table("Prevalence of toxic comments", [f"threshold {t}" for t in grid], share)
    some = dict(list(share.items())[::2])
    draw(asked, "prevalence_by_beta", "Prevalence by beta and threshold", ("threshold", "prevalence"), grid, some)
    strayed = [v.sets + 0.1 * rng.standard_normal(v.sets.shape) for v in seen.values()]  # a judge as open as each beta
    theta = project_simplex(np.stack(strayed))
    choices = np.stack([t @ decaying_choice(sets, g).T for t, g in zip(theta, rng.permutation(5) - 2, strict=True)])
    judges = RatingVectors.of_population(sets, choices, theta)
    rows, biases, curves = {}, {}, {"hit_rate": [], "squared_error_sets": [], "best": []}
    for vectors in seen.values():
        sides = measures.Sides(vectors, judges)
        ends = measures.weighted_values(measures.downstream_measures(Decision(TOXIC)), sides)[:, 0]
        alike, bias = ends[0], np.abs(ends[1])
        picks = [*np.nanargmin(losses(NAMES, sides), axis=1), alike.argmax()]
        for name, pick in zip([*NAMES, "best"], picks, strict=True):
            rows.setdefault(name, []).append(f"{pick + 1}: {alike[pick]:.2f} ({alike[pick] - alike.max():.2f})")
            biases.setdefault(name, []).append(f"{pick + 1}: {bias[pick]:.2f} ({bias[pick] - bias.min():+.2f})")
            curves.get(name, []).append(alike[pick])
    heads = [f"beta {b}" for b in betas]
    table("Judge picked: its consistency at .5 (what is lost)", heads, rows)
    table("Judge picked: size of its bias at .5 (what is lost)", heads, biases)
    draw(asked, "pick_by_beta", "The judge picked, by beta", ("beta", "decision consistency"), betas, curves)


def of_library(human, judges):
    """Calls of scikit-learn or scipy, as a user would write them: name -> function of one judge."""
    from scipy.spatial.distance import jensenshannon
    from scipy.stats import entropy
    from sklearn import metrics as sk

    p, r, omega, own = human.choices, judges.choices, human.endorsements, judges.endorsements
    a, b, held, named = p.argmax(-1), r.argmax(-1), human.endorsed(0.5), judges.endorsed(0.5)
    options, gone = p.shape[-1], {"zero_division": np.nan}
    return {
        "hit_rate": lambda j: sk.accuracy_score(a, b[j]),
        "cohen_kappa": lambda j: sk.cohen_kappa_score(a, b[j]),
        "linear_kappa": lambda j: sk.cohen_kappa_score(a, b[j], weights="linear"),
        "weighted_kappa": lambda j: sk.cohen_kappa_score(a, b[j], weights="quadratic"),
        "kl_human_judge": lambda j: entropy(p, r[j], axis=1).mean(),
        "kl_judge_human": lambda j: entropy(r[j], p, axis=1).mean(),
        "js_distance": lambda j: jensenshannon(p, r[j], axis=1).mean(),
        "js_divergence": lambda j: (jensenshannon(p, r[j], axis=1) ** 2).mean(),
        "squared_error_choices": lambda j: options * sk.mean_squared_error(p, r[j]),
        "squared_error_sets": lambda j: options * sk.mean_squared_error(omega, own[j]),
        "precision": lambda j: sk.precision_score(held, named[j], average="micro", **gone),
        "recall": lambda j: sk.recall_score(held, named[j], average="micro", **gone),
        "macro_precision": lambda j: sk.precision_score(held, named[j], average="samples", **gone),
        "macro_recall": lambda j: sk.recall_score(held, named[j], average="samples", **gone),
        "binary_cross_entropy": lambda j: sk.log_loss(held.ravel(), own[j].ravel()),
    }


def fastest(calls, rounds):
    """The least processor time of each call in milliseconds, all of them in turn in each round."""
    times = [[] for _ in calls]
    for _ in range(rounds):
        for call, kept in zip(calls, times, strict=True):
            start = time.process_time()
            call()
            kept.append(1000 * (time.process_time() - start))
    return [min(kept) for kept in times]


def speed(asked):
    """All measures of all judges against one library call per judge and measure, and the price of 2,000 bootstraps."""
    warnings.simplefilter("ignore")  # scikit-learn warns of items without an option
    rng, n, rows = np.random.default_rng(asked.seed), asked.items, {}
    weights = rng.multinomial(n, np.full(n, 1 / n), 2000).astype(float)
    for options, size in ((2, 3), (3, 7), (5, 20)):
        sets = response_sets(options, size)
        sides = [rng.dirichlet(np.ones(size), shape) for shape in (n, (asked.judges, n))]
        human, judges = (RatingVectors.of_population(sets, t @ decaying_choice(sets, 1).T, t) for t in sides)
        library = of_library(human, judges)
        plain = [name for name in library if "kappa" not in name]
        groups = [list(library), plain, [name for name in plain if name not in MULTILABEL]]

        def own(names=None, weighted=None, human=human, judges=judges):
            return measures.weighted_values(measures.rating_measures(names), measures.Sides(human, judges), weighted)

        def loops(names, library=library):
            return np.array([[library[name](judge) for judge in range(asked.judges)] for name in names])

        np.testing.assert_allclose(own(groups[0])[:, 0], loops(groups[0]), atol=1e-9)
        ours = [partial(own, names) for names in groups]
        both = fastest([*ours, *(partial(loops, names) for names in groups)], 3)
        best = np.minimum(both[:3], fastest(ours, 40))
        rows[f"{options} options, {size} sets"] = line = [
            f"{theirs:.0f} / {mine:.2f} = {theirs / mine:.0f}" for theirs, mine in zip(both[3:], best, strict=True)
        ]
        for names in (None, ["hit_rate", "cohen_kappa", "js_distance"]):
            (once,), (many,) = fastest([partial(own, names)], 40), fastest([partial(own, names, weights)], 4)
            line += [f"{many:.0f} / {once:.2f} = {many / once:.0f}"]
    heads = [
        f"{len(groups[0])} measures with a counterpart", "without kappas", "without kappas and multi-label scores",
        "bootstraps of all 27", "bootstraps of hit rate, kappa, JS",
    ]  # fmt: skip
    title = f"{asked.judges} judges, {n} items, ms: library / ours = times faster; 2,000 bootstraps / one evaluation"
    table(title, heads, rows)


EXPERIMENTS = {one.__name__: one for one in (selection, correlation, finite, error, lemma, case, speed)}


def main():
    """Run the experiments asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS))
    for name, default in (("trials", 30), ("items", 100), ("judges", 50), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--ratings", type=Path)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    for name in asked.only:
        print(f"\n### {name}: {EXPERIMENTS[name].__doc__}")
        start = time.perf_counter()
        EXPERIMENTS[name](asked)
        print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
