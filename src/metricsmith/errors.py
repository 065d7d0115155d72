"""The errors that this package raises, as a tree.

::

    MetricsmithError
    ├── InputError                 the caller's data or options are wrong (CLI exit code 2)
    │   ├── DataError              a file, row or column cannot be used
    │   ├── OptionError            an argument has no meaning here
    │   ├── NeedsError             a metric lacks what it needs (references, an extra, a language model)
    │   ├── StateError             a saved object cannot be read back
    │   └── StoreError             a store of judgements cannot be opened, read or written
    ├── LeakedExample              a prompt would have shown what its row must not see; nothing was sent
    ├── JudgementFailed            one model judgement has no value; carries its status
    ├── ModelFailure               the model or network failed beyond what is allowed (CLI exit code 3)
    │   └── HopelessModel          no request can succeed: wrong key, no credit, unknown model
    └── Interrupted                somebody pressed Ctrl-C; a KeyboardInterrupt too (CLI exit code 130)
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

__all__ = [
    "DataError",
    "HopelessModel",
    "InputError",
    "Interrupted",
    "JudgementFailed",
    "LeakedExample",
    "MetricsmithError",
    "ModelFailure",
    "NeedsError",
    "OptionError",
    "StateError",
    "StoreError",
    "nearest",
]


class MetricsmithError(Exception):
    """Base of every error that this package raises on purpose.

    Attributes
    ----------
    usage : Usage or None
        What was paid before it (`metricsmith.records.Usage`), where that is known.
    """

    usage: Any = None


class LeakedExample(MetricsmithError):
    """A prompt would have shown a rating that its row must not see: a fault of this package, found before sending."""


class InputError(MetricsmithError):
    """The caller's data or options are wrong; nothing was written."""


class DataError(InputError, ValueError):
    """A file, row or column cannot be used."""


class OptionError(InputError, ValueError):
    """An argument's value has no meaning here."""


class NeedsError(InputError):
    """A metric lacks what it needs, said before any work starts."""


class StateError(InputError, ValueError):
    """A saved object cannot be read back."""


class StoreError(InputError):
    """A store of judgements cannot be opened, read or written.

    Attributes
    ----------
    table : ScoreTable or None
        What was finished when writing failed in the middle of a run (`metricsmith.scoring.ScoreTable`).
    """

    table: Any = None


class JudgementFailed(MetricsmithError):
    """One judgement has no value.

    Parameters
    ----------
    message : str
        What happened, with the value seen.
    status : str
        One of the failure values of `metricsmith.records.Status`.
    usage : Usage, optional
        What the failed attempts cost (`metricsmith.records.Usage`), where that is known.
    repairable : bool
        Whether the model could do better if it saw its answer again; False where the answer is not at fault.
    """

    def __init__(self, message: str, status: str = "unparsable", usage: Any = None, *, repairable: bool = True) -> None:
        super().__init__(message)
        self.status = status
        self.usage = usage
        self.repairable = repairable


class ModelFailure(MetricsmithError):
    """The model, or the network on the way to it or to a data set, failed beyond what the run allows.

    Parameters
    ----------
    message : str
    status : str
        How the requests ended, where all that failed ended alike; empty where they did not, or nobody knows.
    usage : Usage, optional

    Attributes
    ----------
    table : ScoreTable or None
        What was finished by then (`metricsmith.scoring.ScoreTable`), where rows were being scored.
    """

    table: Any = None

    def __init__(self, message: str, status: str = "", usage: Any = None) -> None:
        super().__init__(message)
        self.status, self.usage = status, usage


class HopelessModel(ModelFailure):
    """The model refuses to work at all: the key is wrong, there is no credit, or nobody knows the model."""


class Interrupted(MetricsmithError, KeyboardInterrupt):
    """Scoring was interrupted from the keyboard.

    Attributes
    ----------
    table : ScoreTable
        What was finished by then; what was not asked for has status ``skipped``.
    """

    table: Any = None


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the closest known name, or an empty string."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""
