"""One answer for each item out of several raters' choices, and how each rater errs: majority and Dawid-Skene."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.ratings import Ratings
from metricsmith.rating_model.response_sets import shares_of
from metricsmith.rating_model.vectors import Ties, hard
from metricsmith.stats.correlation import FloatArray

__all__ = ["DawidSkene", "dawid_skene", "majority"]

FLOOR = 1e-10  # the least probability that enters a logarithm


def majority(ratings: Ratings, *, ties: Ties = "split", seed: int = 0) -> FloatArray:
    """The option that most raters of each item chose, one-hot.

    Parameters
    ----------
    ratings : Ratings
        Forced choices, or response sets: then the option that most sets hold.
    ties : {"split", "expected", "random", "first"}
        As in `metricsmith.rating_model.vectors.hard`. By default tied options share the 1, which shows the tie.
    seed : int

    Returns
    -------
    array, shape (n, K)
        NaN for items without ratings.
    """
    return hard(shares_of(ratings.counts), ties, seed)


@dataclass(frozen=True, eq=False)
class DawidSkene:
    """True options and raters' errors, both estimated from the raters' choices alone.

    Parameters
    ----------
    posterior : float array, shape (n, K)
        Probability that each option is the true one; NaN for items without ratings. It takes raters for independent
        given the true option and is therefore too sure of itself where they err together.
    prior : float array, shape (K,)
        Share of items of which each option is true.
    confusion : float array, shape (raters, K, K)
        Probability of a choice (column) given the true option (row); NaN for raters without ratings, and for a true
        option that a rater never met where nothing is smoothed.
    log_likelihood : float
        Of the choices.
    iterations : int
    converged : bool
        False where `iterations` ran out before the likelihood stood still.
    switched : tuple of str
        Options that raters mostly call by another name where they are true. Nothing but the start at the shares of
        votes ties a true option to its name, so that a model with any of them names its classes wrongly; or most raters
        err alike on such an option.
    """

    posterior: FloatArray
    prior: FloatArray
    confusion: FloatArray
    log_likelihood: float
    iterations: int
    converged: bool
    switched: tuple[str, ...]


def dawid_skene(
    ratings: Ratings, *, smoothing: float = 2.0, iterations: int = 1000, tolerance: float = 1e-8
) -> DawidSkene:
    """Fits one matrix of errors for each rater and one true option for each item, by expectation maximisation.

    Parameters
    ----------
    ratings : Ratings
        Forced choices; raters may lack any items.
    smoothing : float
        Ratings of each true option that each rater is credited with beside the own ones, with the errors of all raters
        together; at least 0, which is the original. It keeps raters with few ratings from being believed too much.
    iterations : int
        At most; at least 1.
    tolerance : float
        The change of the log-likelihood for each rating below which the search ends.

    Raises
    ------
    DataError
        If there are no ratings, or they are counts.
    OptionError
        If ratings are response sets, or a number is out of range.

    References
    ----------
    Dawid and Skene (1979), "Maximum likelihood estimation of observer error-rates using the EM algorithm".
    """
    if not (0 <= smoothing < math.inf and tolerance >= 0 and iterations >= 1):
        raise OptionError(
            f"smoothing {smoothing:g}, tolerance {tolerance:g}, iterations {iterations}: give at least 0, 0 and 1"
        )
    ratings.check_raters("the model of Dawid and Skene")
    chosen, size = ratings.chosen, len(ratings.options)
    if not chosen.size:
        raise DataError("there are no ratings: an answer needs one rating at least")
    posterior, last = shares_of(ratings.counts), -math.inf
    rated = ratings.per_item > 0
    for done in range(1, iterations + 1):
        counts = np.zeros((len(ratings.raters), size, size))  # by rater, choice and true option
        np.add.at(counts, (ratings.rater, chosen), posterior[ratings.item])
        counts = counts.swapaxes(1, 2)
        pooled = np.nan_to_num(shares_of(counts.sum(axis=0)))
        confusion, prior = shares_of(counts + smoothing * pooled), posterior[rated].mean(axis=0)
        logs = np.zeros_like(posterior) + np.log(np.maximum(prior, FLOOR))
        chances = np.nan_to_num(confusion[ratings.rater, :, chosen])
        np.add.at(logs, ratings.item, np.log(np.maximum(chances, FLOOR)))
        total = np.logaddexp.reduce(logs, axis=1)
        posterior = np.where(rated[:, None], np.exp(logs - total[:, None]), math.nan)
        likelihood = float(total[rated].sum())
        converged = abs(likelihood - last) < tolerance * chosen.size
        if converged or done == iterations:
            break
        last = likelihood
    confusion[np.bincount(ratings.rater, minlength=len(ratings.raters)) == 0] = math.nan
    called, known = counts.sum(axis=0), prior > FLOOR
    switched = [place for place in np.flatnonzero(known) if called[place].argmax() != place]
    names = tuple(ratings.options[place] for place in switched)
    return DawidSkene(posterior, prior, confusion, likelihood, done, converged, names)
