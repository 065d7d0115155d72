"""The combination of candidate scores into one prediction, and the simpler models that stand beside it."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.stats.correlation import FloatArray
from metricsmith.stats.regression import LinearCombination
from metricsmith.threads import one_thread

__all__ = ["FULL", "REGRESSIONS", "FitOptions", "Fitted", "Rival", "check_learnable", "fit"]

REGRESSIONS = ("auto", "pls")
PAPER_N = 5
FREE_N = 12  # components, where none costs a model call: docs/coverage.md
COSTLY_FIDELITY = 0.97
FULL = "PriorRidge, all candidates"  # what the induced metric abridges: no rival, but shown beside it


@dataclass(frozen=True)
class FitOptions:
    """Options of the choice and the weighting of components.

    Parameters
    ----------
    regression : str
        ``auto``: `PriorRidge` on all candidates, abridged by `project`. ``pls``: the paper's two stages.
    n : int, optional
        Number of components; None: for ``auto`` as many as `fidelity` takes, for ``pls`` five.
    fidelity : float, optional
        Correlation of the abridged model with the full one that is good enough, in (0, 1]; None: as `settled` says,
        else .97.
    full : bool
        For ``auto``: keep all candidates.
    refill : bool
        For ``pls``: let the next best candidates take the places of dropped judges.
    seed : int
        Breaks ties.
    """

    regression: str = "auto"
    n: int | None = None
    fidelity: float | None = None
    full: bool = False
    refill: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.regression not in REGRESSIONS:
            raise OptionError(
                f"regression={self.regression!r}{nearest(self.regression, REGRESSIONS)} must be one of "
                f"{', '.join(REGRESSIONS)}"
            )
        if self.n is not None and self.n < 1:
            raise OptionError(f"n={self.n} must be at least 1")
        if self.fidelity is not None and not 0 < self.fidelity <= 1:
            raise OptionError(f"fidelity={self.fidelity:g} must be above 0 and at most 1")
        if self.full and (self.n or self.fidelity or self.regression == "pls"):
            raise OptionError(
                "full keeps all candidates of regression 'auto': leave n (--n), fidelity and regression='pls' "
                "(--regression pls) out, or leave full (--full) out"
            )

    def settled(self, costly: bool) -> FitOptions:
        """The same with the default size: by fidelity where a candidate is costly, else `FREE_N` components."""
        if self.regression == "pls" or self.full or self.n or self.fidelity:
            return self
        return replace(self, fidelity=COSTLY_FIDELITY) if costly else replace(self, n=FREE_N)

    @property
    def label(self) -> str:
        """For the signature line."""
        if self.regression == "pls":
            return f"TwoStagePLS n {self.n or PAPER_N}"
        if self.full:
            return "PriorRidge r2 1/6, all candidates"
        size = f"n {self.n}" if self.n else f"fidelity {self.fidelity:g}" if self.fidelity else ""
        size = size or f"n {FREE_N}, with judges to fidelity {COSTLY_FIDELITY:g}"
        return f"PriorRidge r2 1/6, projected to {size}"


@dataclass(frozen=True)
class Rival:
    """A fitted model that the report compares with; it sees all candidates."""

    combination: LinearCombination

    def predict(self, values: FloatArray) -> FloatArray:
        """Predict from candidate scores, shape (n, m)."""
        return self.combination.predict(values[:, list(self.combination.indices)])


@dataclass(frozen=True)
class Fitted:
    """The models that one fit yields.

    Parameters
    ----------
    small : LinearCombination
        The induced metric's own.
    rivals : dict of str to Rival
        The full model, the paper's PLS (or PriorRidge beside a PLS), the plain mean of declared columns.
    sentence : str
        How the components are combined, in words.
    fidelity : float
        Correlation of `small` with the full model on the rows at hand; NaN where nothing was abridged.
    imputed : dict of str to int
        Components with missing or infinite scores among the training rows, and how many.
    """

    small: LinearCombination
    rivals: dict[str, Rival]
    sentence: str
    fidelity: float = math.nan
    imputed: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = field(default=())

    @property
    def abridges(self) -> bool:
        """True if `small` stands in for the full PriorRidge."""
        return not math.isnan(self.fidelity)

    @property
    def positions(self) -> list[int]:
        """The places of the components among the candidates."""
        return list(self.small.indices)


@one_thread()
def fit(
    values: FloatArray,
    ratings: FloatArray,
    names: Sequence[str],
    *,
    declared: Collection[str],
    judged: Collection[str],
    higher_is_better: bool = True,
    options: FitOptions,
    unrated: FloatArray | None = None,
    rivals: bool = True,
) -> Fitted:
    """Fit candidate scores to ratings.

    Parameters
    ----------
    values : float array, shape (n, m)
        Raw scores; NaN or infinite where there is none.
    ratings : float array, shape (n,)
    names : sequence of str, length m
    declared, judged : collections of str
        Candidates declared to measure the target, and the generated ones among them.
    higher_is_better : bool
        The rating's direction: where lower is better, declared candidates point down.
    options : FitOptions
    unrated : float array, shape (u, m), optional
        Further rows that help to choose the small model.
    rivals : bool
        True: fit the models to compare with too.

    Raises
    ------
    DataError
        If fewer than two rows are given or all ratings are equal.
    """
    check_learnable(ratings)
    sign = 1.0 if higher_is_better else -1.0
    work = _Work(values, sign * ratings, list(names), _places(declared, names), _places(judged, names), options)
    extra = values[:0] if unrated is None else unrated
    paper = options.regression == "pls"
    chosen = work.paper() if paper else work.ours(extra)
    others: dict[str, LinearCombination] = {}
    if rivals:
        other = work.ours(extra) if paper else work.paper()
        others = {other.label: other.small}
        if chosen.full is not None:
            others = {FULL: chosen.full, **others}
        if work.declared:
            others["plain mean of declared judges"] = work.declared_mean()
    small = _oriented(chosen.small, sign)
    return Fitted(
        small=small,
        rivals={label: Rival(_oriented(model, sign)) for label, model in others.items()},
        sentence=chosen.sentence,
        fidelity=chosen.fidelity,
        imputed={
            name: count
            for name, place in zip(small.names, small.indices, strict=True)
            if (count := int((~np.isfinite(values[:, place])).sum()))
        },
        notes=chosen.notes,
    )


def check_learnable(ratings: FloatArray) -> None:
    """Refuse ratings from which nothing can be learned, with a `DataError`: fewer than two, or all alike."""
    if len(ratings) < 2 or np.ptp(ratings) == 0:
        raise DataError(f"{len(ratings)} rated training rows with one and the same rating: nothing can be learned")


@dataclass(frozen=True)
class _Model:
    """One way to combine: the model, the full one that it abridges, and a sentence and notes on both."""

    label: str
    small: LinearCombination
    sentence: str
    full: LinearCombination | None = None
    fidelity: float = math.nan
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Work:
    """One fit's data, ratings turned so that higher is better."""

    values: FloatArray
    ratings: FloatArray
    names: list[str]
    declared: list[int]
    judged: list[int]
    options: FitOptions

    def ours(self, unrated: FloatArray) -> _Model:
        """PriorRidge on all candidates, abridged on the training rows and the unrated ones."""
        from metricsmith.stats.regression import PriorRidge, project

        with one_thread("blas"):  # on a few hundred rows threads mostly wait for each other
            model = PriorRidge(prior_columns=self.declared or None).fit(self.values, self.ratings)
            full = model.combination_
            rows, seen = np.vstack([self.values, unrated]), model.columns_
            if len(unrated):
                seen = np.vstack([seen, full.transform(unrated[:, list(full.indices)])])
            size = self.options.n, self.options.fidelity or COSTLY_FIDELITY
            projection = None if self.options.full else project(model, rows, *size, transformed=seen)
        how = "a ridge regression on normal scores with a fixed prior (PriorRidge)"
        if model.plain_mean_:
            how = (
                "their plain mean, fitted in location and scale only, since all of them are declared to measure the "
                "target"
            )
        elif self.declared:
            how += f", shrunk towards the mean of the {len(self.declared)} columns declared to measure the target"
        sentence = f"{len(self.names)} candidates were combined by {how}."
        notes = ("the ratings do not rise with the declared judges' mean; their direction was kept",)
        return _Model(
            label="PriorRidge, projected" if projection else FULL,
            small=self._named(projection.combination if projection else full),
            sentence=sentence,
            full=self._named(full) if projection else None,
            fidelity=projection.fidelity if projection else math.nan,
            notes=notes if model.slope_from_prior_ else (),
        )

    def paper(self) -> _Model:
        """The paper's two-stage PLS."""
        from metricsmith.stats.regression import TwoStagePLS

        n = self.options.n if self.options.regression == "pls" and self.options.n else PAPER_N
        model = TwoStagePLS(
            n=n, positive_columns=self.judged or None, refill=self.options.refill, random_state=self.options.seed
        ).fit(self.values, self.ratings)
        sentence = (
            f"Of {len(self.names)} candidates the {n} with the largest absolute correlation with the ratings were "
            "combined by one-component partial least squares (the paper's two stages)."
        )
        dropped = [self.names[place] for place in model.dropped_]
        if dropped:
            sentence += f" Dropped for a negative weight: {', '.join(dropped)}."
        return _Model(label=f"PLS, n = {n} (paper)", small=self._named(model.combination_), sentence=sentence)

    def declared_mean(self) -> LinearCombination:
        """The plain mean of the declared columns alone, fitted in location and scale."""
        from metricsmith.stats.regression import PriorRidge

        columns = self.values[:, self.declared]
        model = PriorRidge(prior_columns=list(range(len(self.declared)))).fit(columns, self.ratings)
        combination = model.combination_
        places = [self.declared[index] for index in combination.indices]
        return replace(combination, indices=tuple(places), names=tuple(self.names[place] for place in places))

    def _named(self, combination: LinearCombination) -> LinearCombination:
        return replace(combination, names=tuple(self.names[index] for index in combination.indices))


def _places(chosen: Collection[str], names: Sequence[str]) -> list[int]:
    return [place for place, name in enumerate(names) if name in chosen]


def _oriented(combination: LinearCombination, sign: float) -> LinearCombination:
    """The model of the ratings themselves, from one of ratings times `sign`."""
    if sign > 0:
        return combination
    return replace(
        combination,
        weights=tuple(-weight for weight in combination.weights),
        intercept=-combination.intercept,
    )
