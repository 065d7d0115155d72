"""Metrics that compare two sets of texts and have no number for a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np

from metricsmith.bank.base import FloatArray, IntArray
from metricsmith.bank.catalogue import DEVICES
from metricsmith.bank.models.engine.causal import last_states
from metricsmith.bank.models.mauve import MODEL
from metricsmith.errors import DataError, OptionError

__all__ = ["FEWEST", "MauveResult", "mauve", "mauve_of_labels"]

FEWEST = 20  # texts of a side: two clusters of ten
ADVISED = 1000
SCALE, WEIGHTS = 5.0, 25  # of the paper's curve, and of mauve-text 0.4.0


@dataclass(frozen=True, slots=True)
class MauveResult:
    """MAUVE of two sets, with all that its number rests on.

    Parameters
    ----------
    value : float
        In (0, 1]; higher is closer.
    outputs, references : int
        Texts compared.
    clusters, components : int
        Of k-means, and the principal components that it saw.
    seed : int
    weights : str
        The hash of the network's weights.
    notes : tuple of str
        What a reader of the number must know.
    """

    value: float
    outputs: int
    references: int
    clusters: int
    components: int
    seed: int
    weights: str
    notes: tuple[str, ...] = ()


def mauve(
    outputs: Sequence[str],
    references: Sequence[str],
    *,
    local: str | PathLike[str] | None = None,
    device: str = "auto",
    cache_dir: str | PathLike[str] | None = None,
    clusters: int | None = None,
    seed: int = 25,
) -> MauveResult:
    """Compares the outputs of a system, as a set, with texts that people wrote.

    Parameters
    ----------
    outputs, references : sequence of str
        The two sets, at least `FEWEST` texts each; they need not be paired nor of one size. Blank texts are left out,
        and a note says how many.
    local : path, optional
        The folder of the weights; None stands for the hub's cache. Nothing is downloaded.
    device : str
        ``auto``, ``cpu``, ``cuda`` or ``mps``.
    cache_dir : path, optional
        The hub's cache; None stands for its usual place.
    clusters : int, optional
        From 2 to the size of the smaller set; by default a tenth of it, at least 2.
    seed : int
        Of the starts of k-means, from 0 to 2**32 - 1.

    Returns
    -------
    MauveResult
        Equal sets, in any order, give exactly 1.

    Raises
    ------
    OptionError
        If an argument is not allowed.
    DataError
        If a side has fewer than `FEWEST` texts, or both together fewer different ones than clusters.
    NeedsError
        If the weights or the extra are not here.

    Notes
    -----
    Pillutla et al. 2021. Settings of mauve-text 0.4.0, but k-means of scikit-learn with 5 starts; on from the clusters
    the numbers are those of that package, save for equal histograms (`mauve_of_labels`). Numbers can be compared only
    between sets of equal sizes under equal settings.

    Examples
    --------
    >>> mauve(outputs, references, local="weights/gpt2-large").value  # doctest: +SKIP
    0.9131...
    """
    if device not in DEVICES:
        raise OptionError(f"device={device!r} must be one of {', '.join(DEVICES)}")
    if type(seed) is not int or not 0 <= seed < 2**32:
        raise OptionError(f"seed={seed!r} must be a whole number from 0 to 2**32 - 1")
    ours, theirs = ([text for text in texts if text.strip()] for texts in (outputs, references))
    fewest = min(len(ours), len(theirs))
    if fewest < FEWEST:
        raise DataError(
            f"mauve has {len(ours)} outputs and {len(theirs)} references that are not blank: it is undefined below "
            f"{FEWEST} of each, and steady from some thousands; give more"
        )
    count = max(2, round(fewest / 10)) if clusters is None else clusters
    if type(count) is not int or not 2 <= count <= fewest:
        raise OptionError(f"clusters={clusters!r} must be a whole number from 2 to {fewest}, the smaller set's size")
    if (different := len({*ours, *theirs})) < count:
        raise DataError(f"the two sets have {different} different texts together, fewer than {count} clusters")
    spec = replace(MODEL, path=str(local or ""), cache_dir=str(cache_dir or ""), device=device)
    labels, components = _clustered(last_states(spec, [*ours, *theirs]), count, seed)
    value = mauve_of_labels(labels[: len(ours)], labels[len(ours) :], count)
    blank = len(outputs) + len(references) - len(labels)
    notes = [f"{blank} blank texts are left out"] if blank else []
    if fewest < ADVISED:
        notes.append(f"{fewest} texts on a side: fewer than {ADVISED:,} make the number too high")
    return MauveResult(value, len(ours), len(theirs), count, components, seed, spec.digest(), tuple(notes))


def mauve_of_labels(outputs: Sequence[int] | IntArray, references: Sequence[int] | IntArray, clusters: int) -> float:
    """MAUVE of two sets whose texts lie in clusters 0 to `clusters` - 1: in (0, 1], exactly 1 for equal shares.

    The points are taken in the order of their weights, in which they are sorted already. mauve-text 0.4.0 sorts them
    once more, and where all of them fall on (1, 1) its order of ties gives .75.

    Examples
    --------
    >>> mauve_of_labels([0, 0, 1], [1, 1, 0], 2)
    0.8608...
    >>> mauve_of_labels([0, 1, 1], [1, 0, 1], 2)
    1.0
    """
    p, q = (np.bincount(labels, minlength=clusters) / len(labels) for labels in (outputs, references))
    weights = np.linspace(1e-6, 1 - 1e-6, WEIGHTS)[:, None]
    mixed = q + weights * (p - q)  # exactly q where p is q
    x = np.concatenate([[1.0], np.exp(-SCALE * _divergences(q, mixed)), [0.0]])
    y = np.concatenate([[0.0], np.exp(-SCALE * _divergences(p, mixed)), [1.0]])
    return float(np.sum((x[:-1] - x[1:]) * (y[:-1] + y[1:]) / 2))


def _divergences(p: FloatArray, mixed: FloatArray) -> FloatArray:
    """KL(p | r) in nats for each row r of `mixed`, which is above 0 wherever p is."""
    there = p > 0
    return np.asarray(np.sum(p[there] * np.log(p[there] / mixed[:, there]), axis=1))


def _clustered(features: FloatArray, clusters: int, seed: int) -> tuple[IntArray, int]:
    """A cluster for each row of `features`, (n, d), and the number of principal components that were kept."""
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA

    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    reduced: Any = PCA(n_components=0.9, svd_solver="full").fit_transform(unit)
    found = KMeans(clusters, n_init=5, max_iter=500, random_state=seed).fit_predict(reduced)
    return np.asarray(found, dtype=np.int64), reduced.shape[1]
