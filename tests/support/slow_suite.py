"""A shared task's table computed slowly, from a folder and the definitions alone: nothing of the package is used.

Definitions are those of the metrics tasks of WMT: rules on systems, the measures, PERM-BOTH and the test of pairs,
clusters, and the average with its test. Random numbers are those that the package documents, so that p-values can be
held against each other to the last draw. A suite is anything with the attributes of `Suite`.
"""

from __future__ import annotations

import itertools
import math
from functools import cache
from pathlib import Path

import numpy as np

RESAMPLES, BLOCK, LEVEL, NEAR = 1000, 100, 0.05, 0.03
BOUNDS = {"spa": (0, 1), "acc-t": (0, 1), "system-accuracy": (0, 1), "system-pearson": (-1, 1), "pearson": (-1, 1)}


def score_file(path):
    """Scores by system in the order of the file; None is NaN."""
    rows = {}
    for line in path.read_text("utf-8").splitlines():
        system, score = line.split()
        rows.setdefault(system, []).append(math.nan if score == "None" else float(score))
    return rows


class SlowPair:
    """One language pair: systems that count, people's scores, and every metric that counts, by level."""

    def __init__(self, folder: Path, pair: str, rules) -> None:
        references = {path.name[len(pair) + 1 : -4] for path in (folder / "references").glob(f"{pair}.*.txt")}
        outputs = {path.stem for path in (folder / "system-outputs" / pair).glob("*.txt")}
        gold = {
            level: score_file(folder / "human-scores" / f"{pair}.{rules.gold}.{level}.score")
            for level in ("sys", "seg")
        }
        counted = outputs - {rules.reference} - set(rules.outliers) - (set() if rules.human else references)
        self.systems = [
            name for name, row in gold["seg"].items() if name in counted and any(score == score for score in row)
        ]
        self.left_out = outputs - set(self.systems)
        self.gold = {level: np.array([rows[name] for name in self.systems]) for level, rows in gold.items()}
        self.metrics: dict[str, dict[str, np.ndarray]] = {"sys": {}, "seg": {}}
        self.unused = set()
        for path in sorted((folder / "metric-scores" / pair).iterdir()):
            stem, level, _ = path.name.rsplit(".", 2)
            base, used = stem.rsplit("-", 1)
            sides = references if used == "all" else set() if used == "src" else set(used.split("."))
            if not sides <= {rules.reference}:
                self.unused.add(stem)
                continue
            rows = score_file(path)
            name = base if sides else f"{base}[noref]"
            self.metrics[level][name] = np.array([rows[system] for system in self.systems])


def accuracy_with_ties(metric, gold):
    """acc-t by item -> (value, threshold, right decisions by pair, sizes of groups): all thresholds are tried."""
    apart, wanted, sizes = [], [], []
    for item in range(gold.shape[1]):
        there = [row for row in range(len(gold)) if not math.isnan(gold[row, item])]
        pairs = list(itertools.combinations(there, 2))
        apart += [metric[one, item] - metric[other, item] for one, other in pairs]
        wanted += [np.sign(gold[one, item] - gold[other, item]) for one, other in pairs]
        sizes += [len(pairs)] * len(pairs)
    apart, wanted, sizes = np.array(apart), np.array(wanted), np.array(sizes)
    groups = sum(len([row for row in gold[:, item] if row == row]) > 1 for item in range(gold.shape[1]))
    whole = math.lcm(*sizes.tolist())  # weights of pairs are whole numbers, so that equal sums are equal
    weights = whole // sizes
    best = (-1, math.nan)
    for threshold in sorted({0.0, *np.abs(apart).tolist()}):
        right = int(weights[np.where(np.abs(apart) <= threshold, 0, np.sign(apart)) == wanted].sum())
        if right > best[0]:
            best = right, threshold
    right = np.where(np.abs(apart) <= best[1], 0, np.sign(apart)) == wanted
    return best[0] / whole / groups, best[1], right, sizes, groups


def pearson(x, y):
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / math.sqrt((x * x).sum() * (y * y).sum()))


def whole_segments(rows, gold):
    return rows[:, ~np.isnan(gold).any(axis=0)]


def differences(rows):
    """Of every two systems, segment by segment."""
    one, other = np.transpose(list(itertools.combinations(range(len(rows)), 2)))
    return rows[one] - rows[other]


@cache
def signs(segments, seed):
    return np.where(np.random.default_rng(seed).random((RESAMPLES, segments)) < 0.5, -1.0, 1.0)


def confidence(rows, seed):
    """P-values of every two systems by permutation; draws that tie with what was observed count half."""
    apart = differences(rows)
    surplus = apart @ signs(rows.shape[1], seed).T - apart.sum(axis=1)[:, None]
    slack = 1e-9 * np.abs(rows).max()
    return ((surplus > slack).mean(axis=1) + (surplus >= -slack).mean(axis=1)) / 2


def confidence_of_many_draws(rows):
    """The limit: a sum of differences with random signs is normal with the sum of their squares as its variance."""
    apart = differences(rows)
    along = apart.sum(axis=1) / np.sqrt(2 * (apart * apart).sum(axis=1))
    return np.array([math.erfc(one) / 2 for one in along])


def soft_accuracy(metric, gold, seed=0):
    """The likeness of confidences. Those of gold, the same in every draw, are remembered."""
    truth = _of_gold(gold.tobytes(), gold.shape, seed)
    return 1 - float(np.abs(confidence(whole_segments(metric, gold), seed) - truth).mean())


def soft_accuracy_of_many_draws(metric, gold):
    truth = _of_gold(gold.tobytes(), gold.shape, None)
    return 1 - float(np.abs(confidence_of_many_draws(whole_segments(metric, gold)) - truth).mean())


@cache
def _of_gold(content, shape, seed):
    gold = whole_segments(*[np.frombuffer(content).reshape(shape)] * 2)
    return confidence_of_many_draws(gold) if seed is None else confidence(gold, seed)


def concordant(metric, gold):
    """Pairs of systems in gold's order, and all pairs; score by score of one language pair."""
    pairs = list(itertools.combinations(range(len(gold)), 2))
    return sum(np.sign(metric[i] - metric[j]) == np.sign(gold[i] - gold[j]) for i, j in pairs), len(pairs)


class SlowTask:
    """One column: the value of every metric, and the draws of every two.

    A task over several pairs lays their systems below each other, `starts` apart.
    """

    def __init__(self, task, pairs: dict[str, SlowPair], seed: int, spa_seed: int = 0) -> None:
        sides = [pairs[name] for name in task.pairs]
        names = set.intersection(*(set(side.metrics[task.level]) for side in sides))
        self.measure, self.seed, self.spa_seed = task.measure, seed, spa_seed
        self.weight, self.bounds = task.weight, task.bounds or BOUNDS[task.measure]
        self.starts = np.cumsum([0, *(len(side.systems) for side in sides)])
        self.gold = np.concatenate([side.gold[task.level] for side in sides])
        self.metrics = {
            name: np.concatenate([side.metrics[task.level][name] for side in sides]) for name in sorted(names)
        }
        self.values = {name: self.value(metric, self.gold) for name, metric in self.metrics.items()}
        self._draws: dict[tuple[str, str], tuple[float, np.ndarray]] = {}

    def value(self, metric, gold):
        if self.measure == "acc-t":
            return accuracy_with_ties(metric, gold)[0]
        if self.measure == "spa":
            return soft_accuracy(metric, gold, self.spa_seed)
        if self.measure == "system-accuracy":
            parts = [slice(*ends) for ends in itertools.pairwise(self.starts)]
            found = [concordant(metric[part, 0], gold[part, 0]) for part in parts]
            return float(sum(right for right, _ in found) / sum(pairs for _, pairs in found))
        there = ~np.isnan(gold)
        return pearson(metric[there], gold[there])

    def order(self):
        return sorted(self.values, key=lambda metric: -self.values[metric])

    def draws(self, better, worse):
        """The difference that was observed, and the draws of the better metric's value less the worse one's."""
        if (better, worse) not in self._draws:
            sides = self.metrics[better], self.metrics[worse]
            if self.measure == "acc-t":
                found = self._pairs_exchanged(*sides)
            elif self.measure == "spa":
                found = self._scores_exchanged(soft_accuracy_of_many_draws, *sides)
                if abs(p_value(*found) - LEVEL) <= NEAR:
                    found = self._scores_exchanged(self.value, *sides)
            else:
                found = self._scores_exchanged(self.value, *sides)
            self._draws[better, worse] = found
        return self._draws[better, worse]

    def _pairs_exchanged(self, *sides):
        """Decisions about pairs are exchanged: of those on which one metric alone is right, a binomial part."""
        (_, _, one, sizes, groups), (_, _, other, _, _) = (accuracy_with_ties(side, self.gold) for side in sides)
        group_sizes = {n * (n - 1) // 2 for n in (~np.isnan(self.gold)).sum(axis=0)}
        kinds = sorted(group_sizes)
        ahead = np.array([(one & ~other & (sizes == kind)).sum() for kind in kinds])
        behind = np.array([(other & ~one & (sizes == kind)).sum() for kind in kinds])
        share = np.array([1 / kind / groups if kind else 0.0 for kind in kinds])
        taken = np.random.default_rng(self.seed).binomial(ahead + behind, 0.5, size=(RESAMPLES, len(kinds)))
        return float((ahead - behind) @ share), (2 * taken - ahead - behind) @ share

    def _scores_exchanged(self, value, *sides):
        """PERM-BOTH: the metrics, brought to one scale, are exchanged cell by cell; ends early where p is clear."""
        there = ~np.isnan(self.gold)
        first, second = ((side[there] - side[there].mean()) / side[there].std() for side in sides)

        def of(cells):
            rows = np.full(self.gold.shape, math.nan)
            rows[there] = cells
            return value(rows, self.gold)

        observed, draws, random = of(first) - of(second), [], np.random.default_rng(self.seed)
        while len(draws) < RESAMPLES:
            for _ in range(BLOCK):
                swap = random.random(first.size) < 0.5
                draws.append(of(np.where(swap, second, first)) - of(np.where(swap, first, second)))
            if not 0.02 <= reached(observed, draws) / len(draws) <= 0.5:
                break
        return observed, np.array(draws)


def reached(observed, draws):
    return int((np.asarray(draws) >= observed - 1e-12 * abs(observed) - 1e-13).sum())


def p_value(observed, draws):
    return (reached(observed, draws) + 1) / (len(draws) + 1)


def ranks_slowly(names, p):
    """Best first; a new rank where any metric of the present one is better than the next at the level."""
    ranks, rank, present = {}, 1, []
    for name in names:
        if any(p(above, name) <= LEVEL for above in present):
            rank, present = rank + 1, []
        ranks[name] = rank
        present.append(name)
    return ranks


class SlowSuite:
    """All columns, the averages and their clusters.

    Parameters
    ----------
    root, suite
    seeds : sequence of int
        Of each task's draws, which must be independent of each other.
    """

    def __init__(self, root: Path, suite, seeds) -> None:
        folder = root / suite.test_set
        self.pairs = {name: SlowPair(folder, name, rules) for name, rules in suite.pairs.items()}
        self.tasks = {
            f"{task.pairs[0] if len(task.pairs) == 1 else 'all'} {task.measure}": SlowTask(task, self.pairs, seed)
            for task, seed in zip(suite.tasks, seeds, strict=True)
        }
        columns = self.tasks.values()
        total = sum(task.weight for task in columns)
        self.weights = {name: task.weight / total for name, task in self.tasks.items()}
        whole = set.intersection(*(set(task.values) for task in columns))
        self.averages = {name: float(sum(self.mapped(task, name) for task in self.tasks)) for name in sorted(whole)}
        self.order = sorted(self.averages, key=lambda name: -self.averages[name])

    def mapped(self, task, metric):
        """A value's share of the average."""
        low, high = self.tasks[task].bounds
        return self.weights[task] * (self.tasks[task].values[metric] - low) / (high - low)

    def task_ranks(self, name):
        task = self.tasks[name]
        return ranks_slowly(task.order(), lambda better, worse: p_value(*task.draws(better, worse)))

    def average_p(self, better, worse):
        """The weighted draws of all tasks are added; a task that ended early repeats its own.

        In each task the better metric was tested against the worse, ties by name.
        """
        parts, observed = [], 0.0
        for name, task in self.tasks.items():
            order = task.order()
            ahead = order.index(better) < order.index(worse)
            apart, drawn = task.draws(better, worse) if ahead else task.draws(worse, better)
            share = self.weights[name] / (task.bounds[1] - task.bounds[0]) * (1 if ahead else -1)
            parts.append(share * drawn)
            observed += share * apart
        longest = max(map(len, parts))
        total = sum(np.array([part[draw % len(part)] for draw in range(longest)]) for part in parts)
        return p_value(observed, total)

    def average_ranks(self):
        return ranks_slowly(self.order, self.average_p)
