"""A suite's folder, in the layout of mt-metrics-eval -> the scores of metrics and people in each language pair."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from metricsmith.datasets.labelled_scores import LongTable, match_test_set
from metricsmith.datasets.long_tables import SUFFIX
from metricsmith.datasets.metric_files import read_metrics
from metricsmith.datasets.mt_metrics_eval import read_eval_set
from metricsmith.datasets.score_files import check_sizes, read_scores
from metricsmith.datasets.sources import read_bytes
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.meta_evaluation.suites import MetricScores, PairRules, PairScores, Suite
from metricsmith.stats.correlation import FloatArray

__all__ = ["read_suite"]

NO_REFERENCE = "[noref]"


def read_suite(
    root: str | os.PathLike[str],
    suite: Suite,
    *,
    added: Mapping[str, Sequence[Path]] | None = None,
    each_run: bool = False,
    metrics: Sequence[str] = (),
    primary: bool = False,
    gold: str | None = None,
    without: Sequence[str] = (),
    lower_is_better: Sequence[str] = (),
    skip_broken: bool = False,
) -> tuple[PairScores, ...]:
    """Read what a suite needs of a folder of data, one result by language pair.

    The systems of a pair are its outputs, less the standard reference, less human translations where the suite does
    not score them, less outliers, less `without`, and only those with a gold score by segment. A metric's file counts
    if the references it used are none, or the standard one. A metric may lack in a pair, or at one level.

    Parameters
    ----------
    root : path
        The folder that holds the test set's folder, or that folder itself.
    suite : Suite
    added : mapping of str to sequence of Path, optional
        Scores of judges of one's own by language pair: ``segments.jsonl`` of `metricsmith mqm` or another table that
        `read_metrics` takes, whose segments are labelled by document and number in it (``EvalSet.segments``) or by
        number; or a ``.seg.score`` file, named like those of the folder or not.
    each_run : bool
        Whether each run of an added judge is a metric, too.
    metrics : sequence of str
        Names, with or without ``[noref]``, of the folder's metrics that count; by default all.
    primary : bool
        Whether contrastive metrics of the folder are left out.
    gold : str, optional
        The name of people's scores in all pairs; by default as the suite says.
    without : sequence of str
        Systems to leave out.
    lower_is_better : sequence of str
        Names, with or without ``[noref]``, of metrics whose sign is turned round.
    skip_broken : bool
        Whether a metric of the folder whose files are at fault is left out and listed, instead of ending in an error.

    Raises
    ------
    DataError
        If a file is absent or broken, lines, segments or systems do not agree, two files are one metric, or fewer
        than two systems are left.
    OptionError
        If a name or language pair is unknown, or `primary` is asked of a suite without such lists.
    """
    added = added or {}
    for pair in added:
        if pair not in suite.pairs:
            raise OptionError(
                f"added scores for the language pair {pair!r}{nearest(pair, suite.pairs)}, and {suite.name} has "
                f"{', '.join(suite.pairs)}: name one of these"
            )
    official = {*suite.primary, *suite.baselines}
    if primary and not official:
        raise OptionError(f"the suite {suite.name} names no primary metrics: leave primary (--primary) out")
    folder = _folder(Path(root), suite)
    readers = [
        _PairReader(folder, pair, rules if gold is None else replace(rules, gold=gold), suite.test_set, skip_broken)
        for pair, rules in suite.pairs.items()
    ]
    _check_known("without", without, [name for reader in readers for name in reader.data.outputs])
    bases = {name: one.base for reader in readers for name, one in reader.files.items()}
    _check_known("metrics", metrics, [*bases, *bases.values()])
    unwanted = {
        name: "contrastive: neither primary nor a baseline" if primary and base not in official else "not asked for"
        for name, base in bases.items()
        if (primary and base not in official) or (metrics and not {name, base} & {*metrics})
    }
    found = tuple(
        reader.read(without, unwanted, {*lower_is_better}, added.get(reader.data.language_pair, ()), each_run)
        for reader in readers
    )
    sides = [side for one in found for side in one.metrics.values()]
    for name in {side.name for side in sides if side.added} & {side.name for side in sides if not side.added}:
        raise DataError(
            f"{name!r} is an added judge in one language pair and a metric of the folder in another: rename the judge "
            f"in the column 'metric' of its file"
        )
    _check_known("lower_is_better", lower_is_better, [text for side in sides for text in (side.name, side.base)])
    return found


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a metric by level, and the references it used."""

    base: str
    used: tuple[str, ...]
    paths: dict[str, Path]


class _PairReader:
    """Reads one language pair; collects what was left out, and the checksums of files."""

    def __init__(self, folder: Path, pair: str, rules: PairRules, test_set: str, skip_broken: bool) -> None:
        data = read_eval_set(folder, pair)
        if data.references and rules.reference not in data.references:
            raise DataError(
                f"{folder / 'references'}: {pair} has no reference {rules.reference!r}"
                f"{nearest(rules.reference, data.references)}, the standard one of the suite; there are "
                f"{', '.join(data.references)}: add the file, or correct the suite"
            )
        self.rules, self.test_set, self.skip_broken = rules, test_set, skip_broken
        nothing: tuple[str, ...] = ()  # texts have been checked, and would fill the memory
        names, references = dict.fromkeys(data.outputs, nothing), dict.fromkeys(data.references, nothing)
        self.data = replace(data, outputs=names, references=references)
        self.left_out: dict[tuple[str, str, str], None] = {}
        self.checksums: dict[str, str] = {}
        self.notes: list[str] = []
        for path in (
            folder / "sources" / f"{pair}.txt",
            folder / "documents" / f"{pair}.docs",
            *(folder / "references" / f"{pair}.{name}.txt" for name in references),
            *(folder / "system-outputs" / pair / f"{name}.txt" for name in names),
        ):
            self._sum(path)
        self.files = self._metric_files()

    def read(
        self,
        without: Sequence[str],
        unwanted: Mapping[str, str],
        turned: Collection[str],
        added: Sequence[Path],
        each_run: bool,
    ) -> PairScores:
        """The pair's scores, without the metrics of `unwanted`, with the sign of those in `turned` turned round."""
        data, people, means = self.data, self._gold(), None
        systems = self._systems(people, without)
        gold = np.array([people[system] for system in systems])
        rated = ~np.isnan(gold)
        if (path := data.human_file(self.rules.gold, "sys")).exists():
            by_system = self._scores(path, 1)
            means = np.array([by_system.get(system, np.full(1, math.nan)) for system in systems])
        metrics = {one.name: one for one in self._metrics(systems, unwanted, turned)}
        for path in added:
            self._sum(path)
        for table in read_metrics(added, each_run=each_run) if added else ():
            self.notes += table.notes
            for one, values in self._judges(table, systems, turned):
                if metrics.setdefault(one.name, one) is not one:
                    raise DataError(
                        f"{table.name}: {data.language_pair} has a metric {one.name!r} already: rename it in the "
                        f"file's column 'metric', or rename a file without one"
                    )
                if gaps := int((rated & np.isnan(values)).sum()):
                    why = f"no score for {gaps} of {rated.sum()} rated outputs"
                    self.left_out["segment", one.name, f"{why}, where then no metric is measured by segment"] = None
        if not metrics and self.files:
            raise DataError(
                f"{data.language_pair}: none of its {len(self.files)} metrics counts: leave --primary (primary) out, "
                f"or name another with --metric (metrics)"
            )
        if not metrics:
            raise DataError(
                f"{data.folder / 'metric-scores' / data.language_pair}: {data.language_pair} is left with no metric; "
                f"NAME-REF.seg.score or .sys.score is needed, with REF {self.rules.reference} or src: add one"
            )
        return PairScores(
            pair=data.language_pair,
            gold_name=self.rules.gold,
            systems=systems,
            documents=tuple(document for _, document in data.documents),
            segments=gold,
            system_scores=means,
            metrics=dict(sorted(metrics.items())),
            left_out=tuple(self.left_out),
            checksums=self.checksums,
            notes=tuple(f"{data.language_pair}: {note}" for note in dict.fromkeys(self.notes)),
        )

    def _sum(self, path: Path) -> None:
        """Keep a file's checksum: by its path in the folder, elsewhere by its name, with its folder's if need be."""
        found = hashlib.sha256(read_bytes(path)).hexdigest()[:16]
        inside = path.is_relative_to(self.data.folder)
        name = Path(self.test_set, path.relative_to(self.data.folder)) if inside else Path(path.name)
        if self.checksums.get(name.as_posix(), found) != found:
            name = Path(*path.resolve().parts[-2:])
        self.checksums[name.as_posix()] = found

    def _scores(self, path: Path, length: int, *, gaps: bool = True) -> dict[str, FloatArray]:
        self._sum(path)
        scores = read_scores(path, length=length, systems=self.data.outputs, gaps=gaps)
        check_sizes(str(path), scores)
        return scores

    def _gold(self) -> dict[str, FloatArray]:
        path, pair = self.data.human_file(self.rules.gold), self.data.language_pair
        if not path.exists():
            there = [one.name.removeprefix(f"{pair}.") for one in sorted(path.parent.glob(f"{pair}.*{SUFFIX}"))]
            names = [name.removesuffix(SUFFIX) for name in there]
            raise DataError(
                f"{path}: no such file, so {pair} has no gold scores {self.rules.gold!r} by segment"
                f"{nearest(self.rules.gold, names)}; there are {', '.join(names) or 'none'}: add the file, or name "
                f"others with gold=... (--gold)"
            )
        return self._scores(path, len(self.data))

    def _systems(self, people: Mapping[str, FloatArray], without: Sequence[str]) -> tuple[str, ...]:
        """Systems that count, in the order of gold; later reasons to leave a system out are told first."""
        rules, rated = self.rules, [name for name, row in people.items() if not np.isnan(row).all()]
        reasons: dict[str, Collection[str]] = {
            f"no gold score ({rules.gold})": self.data.outputs.keys() - {*rated},
            "an outlier": rules.outliers,
            "a human translation": () if rules.human else self.data.references,
            "the standard reference": (rules.reference,),
            "on request": without,
        }
        dropped = {name: why for why, names in reasons.items() for name in names if name in self.data.outputs}
        self.left_out |= dict.fromkeys(("system", name, why) for name, why in sorted(dropped.items()))
        systems = tuple(name for name in rated if name not in dropped)
        if len(systems) < 2:
            raise DataError(
                f"{self.data.human_file(rules.gold)}: {self.data.language_pair} has {len(systems)} systems that count, "
                f"and two are needed; left out: {', '.join(f'{name} ({why})' for name, why in dropped.items())[:300]}"
            )
        return systems

    def _metric_files(self) -> dict[str, _Files]:
        """Files that count, by the metric's name in tables."""
        found: dict[str, dict[str, _Files]] = {}
        for path in sorted((self.data.folder / "metric-scores" / self.data.language_pair).glob("*.score")):
            stem, _, level = path.name.removesuffix(".score").rpartition(".")
            base, _, code = stem.rpartition("-")
            if level not in ("seg", "sys"):
                continue
            used = (
                ()
                if code == "src"
                else (*self.data.references,) or ("all",)
                if code == "all"
                else tuple(code.split("."))
            )
            if not base:
                self._broken(
                    stem, f"{path}: no dash and references behind the metric's name, as in BLEU-refA: rename it"
                )
            elif {*used} <= {self.rules.reference}:
                files = found.setdefault(base if used else base + NO_REFERENCE, {})
                files.setdefault(stem, _Files(base, used, {})).paths[level] = path
            else:
                self.left_out["metric", stem, f"used {', '.join(used)}, not {self.rules.reference}"] = None
        for name, files in list(found.items()):
            if len(files) > 1:
                paths = [next(iter(one.paths.values())) for one in files.values()]
                self._broken(name, f"{paths[0]} and {paths[1]} are both metric {name!r}: take one out, or rename it")
                del found[name]
        return {name: one for name, files in found.items() for one in files.values()}

    def _metrics(
        self, systems: Sequence[str], unwanted: Mapping[str, str], turned: Collection[str]
    ) -> Iterator[MetricScores]:
        for name, files in self.files.items():
            if name in unwanted:
                self.left_out["metric", name, unwanted[name]] = None
                continue
            needed = [system for system in self.data.outputs if system not in files.used]
            scores: dict[str, FloatArray] = {}
            sign = -1 if {name, files.base} & {*turned} else 1
            try:
                for level, path in files.paths.items():
                    by_system = self._scores(path, 1 if level == "sys" else len(self.data), gaps=False)
                    _require_systems(str(path), by_system, needed)
                    scores[level] = sign * np.array([by_system[system] for system in systems])
            except DataError as problem:
                self._broken(name, str(problem))
                continue
            self._note_sign(name, sign < 0)
            yield MetricScores(name, files.base, not files.used, scores.get("seg"), scores.get("sys"))

    def _judges(
        self, table: LongTable, systems: Sequence[str], turned: Collection[str]
    ) -> Iterator[tuple[MetricScores, FloatArray]]:
        """Judges of one's own, and their scores by segment."""
        side = match_test_set(table, self.data)
        _require_systems(table.name, table.systems, systems)
        for name, column in table.columns.items():
            values = side.pivot(-column if name in turned else column, systems, self.data.segments)
            check_sizes(f"{table.name}: {name}", dict(zip(systems, values, strict=True)))
            self._note_sign(name, name in turned)
            whole = values[:, ~np.isnan(values).any(axis=0)]
            if whole.shape != values.shape:
                why = f"of {values.shape[1]} segments have its scores of all systems, on which its means by system rest"
                self.left_out["segment", name, f"{whole.shape[1]} {why}"] = None
            means = np.array([[math.fsum(row) / row.size] for row in whole]) if whole.size else None
            yield MetricScores(name, name, False, values, means, added=True), values

    def _note_sign(self, name: str, turned: bool) -> None:
        if turned:
            self.notes.append(f"{name}: lower is better, so that its sign is turned round")

    def _broken(self, name: str, problem: str) -> None:
        """Raise an error about a metric's files, or leave the metric out."""
        if not self.skip_broken:
            raise DataError(f"{problem}; or leave such metrics out with skip_broken=True (--skip-broken)")
        self.left_out["metric", name, problem] = None


def _require_systems(what: str, there: Collection[str], systems: Sequence[str]) -> None:
    """Refuse, with a `DataError`, scores that lack one of these systems."""
    missing = [system for system in systems if system not in there]
    if missing:
        raise DataError(
            f"{what}: no scores of {len(missing)} of the {len(systems)} systems needed, the first is {missing[0]!r}: "
            f"score these too"
        )


def _folder(root: Path, suite: Suite) -> Path:
    """The test set's folder."""
    for folder in (root / suite.test_set, root):
        if (folder / "sources").is_dir():
            return folder
    raise DataError(
        f"{root}: neither {suite.test_set}/sources nor sources is there; the suite {suite.name} needs the test set "
        f"{suite.test_set} in the layout of mt-metrics-eval: give the folder that holds {suite.test_set}"
    )


def _check_known(option: str, names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise OptionError(
                f"{option}={name!r}: there is none of this name{nearest(name, known)}; there are "
                f"{', '.join(sorted({*known}))[:300]}: correct the name"
            )
