"""The role of each column: named by the caller, else guessed from its name and noted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.cells import cell_text, is_blank, reference_list, value_or
from metricsmith.datasets.conversations import is_messages
from metricsmith.datasets.rating_forms import RatingForm, parse_rating
from metricsmith.datasets.sources import RawTable
from metricsmith.errors import DataError, OptionError
from metricsmith.formats import statistic
from metricsmith.metric import content_hash
from metricsmith.stats.correlation import kendall_tau_b

__all__ = [
    "Columns", "Guard", "SYNONYMS", "fitting_columns", "guess_notes", "need_column", "normal_name",
    "resolve_columns",
]  # fmt: skip

_MOST_VALUES, _LEAST_ROWS = 11, 3  # of a categorical column, and of each of its values
_GOES_WITH = 0.8
_SHARE = re.compile(r"\d+(\.\d+)?\s*(%|/\s*\d+(\.\d+)?)")  # 85 %, 4/5


@dataclass(frozen=True, eq=False)
class Guard:
    """Tells texts from numbers, rating words and categories that go with the rating.

    Parameters
    ----------
    raw : RawTable
    ratings : float array, shape (n rows,)
        NaN where there is none.
    """

    raw: RawTable
    ratings: NDArray[np.float64]

    @classmethod
    def of(cls, raw: RawTable, target: str | None, levels: Sequence[str] = ()) -> Guard:
        """The guard of a table; cells of the rating column that are no ratings count as missing."""
        if target is None:
            return cls(raw, np.full(len(raw), np.nan))
        parse = RatingForm.of(raw, target, levels).parse
        return cls(raw, np.array([value_or(parse, cell, np.nan) for cell in raw.columns[target]], dtype=float))

    def objection(self, role: str, column: str, sources: Sequence[str]) -> str:
        """The reason why `column` is not guessed as `role`, empty if there is none.

        Parameters
        ----------
        role : str
            A text (``output``, ``input``, ``reference``, ``context``) or ``rater``; no other role has objections.
        column : str
        sources : sequence of str
            Columns that may group the rows, the likeliest first.
        """
        cells = self.raw.columns[column]
        if role in {"output", "input", "reference", "context"}:
            parts = [reference_list(cell) if role == "reference" else [cell] for cell in cells]
            found = [_kind(part) for own in parts for part in own if not is_blank(part)]
            if found and "text" not in found:
                return "it holds rating words" if "word" in found else "it holds numbers"
        elif role != "rater":
            return ""
        together = self._goes_with(cells, [name for name in sources if name != column])
        return (
            f"its values go with the rating (tau-b {statistic(together, 2, signed=True)} on rows of other groups)"
            if together
            else ""
        )

    def _goes_with(self, cells: Sequence[Any], sources: Sequence[str]) -> float:
        """Tau-b of the ratings with the mean rating that a category has in the other half; 0 where that is weak.

        Both halves must say so, as far as it is defined there.
        """
        values = np.array([cell_text(cell).strip() for cell in cells], dtype=object)
        known = ~np.isnan(self.ratings) & (values != "")
        counts = Counter(values[known].tolist())
        if not 1 < len(counts) <= _MOST_VALUES or min(counts.values()) < _LEAST_ROWS:
            return 0.0
        half, taus = self._half(sources), []
        for side in (half, ~half):
            means = {value: self.ratings[known & side & (values == value)] for value in counts}
            levels = {value: own.mean() for value, own in means.items() if own.size}
            there = known & ~side
            expected = np.array([levels.get(value, np.nan) for value in values[there]], dtype=float)
            taus.append(kendall_tau_b(expected, self.ratings[there]))
        weakest = min((tau for tau in taus if not np.isnan(tau)), key=abs, default=0.0)
        return weakest if abs(weakest) > _GOES_WITH else 0.0

    def _half(self, sources: Sequence[str]) -> NDArray[np.bool_]:
        """Every other group: of the first column with a repeated value, else every other row, by content."""
        names: list[str] = []
        for column in sources:
            names = [cell_text(cell) for cell in self.raw.columns[column]]
            if 1 < len(set(names)) < len(names):
                break
        else:
            names = [content_hash(list(row)) for row in zip(*self.raw.columns.values(), strict=True)]
        even = set(sorted(set(names), key=content_hash)[::2])
        return np.array([name in even for name in names], dtype=bool)


def _kind(cell: Any) -> str:
    """``number``, ``word`` (of a rating) or ``text``."""
    text = cell_text(cell).strip()
    if _SHARE.fullmatch(text):
        return "number"
    if value_or(parse_rating, cell) is None:
        return "text"
    return "number" if re.fullmatch(r"[-+\d.,eE]+", text) else "word"


SYNONYMS: dict[str, tuple[str, ...]] = {
    "target": (
        "rating", "human_rating", "human_score", "score", "overall_score", "overall", "quality", "stars",
        "grade", "thumbs", "thumb", "vote", "reward", "label",
    ),
    "output": (
        "output", "model_output", "system_output", "response", "model_response", "answer", "model_answer",
        "completion", "prediction", "predicted", "generated", "generated_text", "generation",
        "hypothesis", "candidate", "reply", "rewrite", "rewritten", "simplified", "simplification",
        "simple", "summary", "translation", "paraphrase", "story", "essay", "target", "text", "messages",
    ),
    "input": (
        "input", "inputs", "prompt", "question", "query", "user_query", "instruction", "source",
        "source_text", "src", "notice", "original", "original_text", "article", "document", "problem",
        "request", "user_input",
    ),
    "reference": (
        "references", "reference", "refs", "ref", "gold", "golden", "gold_answer", "gold_output",
        "ground_truth", "target_text", "expected", "expected_output", "expected_answer",
        "reference_answer", "ideal", "human_answer",
    ),
    "context": ("context", "contexts", "passage", "background", "retrieved_context"),
    "id": ("id", "row_id", "uid", "uuid", "example_id", "item_id", "sample_id", "instance_id", "record_id"),
    "group": (
        "group", "group_id", "source_id", "src_id", "prompt_id", "prompt_index", "input_id", "doc_id",
        "document_id", "article_id", "question_id", "query_id", "topic_id", "task_id", "item_group",
    ),
    "system": (
        "system", "system_id", "system_name", "sys", "model", "model_id", "model_name", "generator", "engine",
    ),
    "rater": (
        "rater", "rater_id", "annotator", "annotator_id", "worker", "worker_id", "coder", "coder_id", "judge_id",
        "reviewer", "reviewer_id", "evaluator", "evaluator_id", "assessor", "assessor_id", "rated_by", "annotated_by",
        "labeler", "labeler_id", "labeller", "labeller_id",
    ),
}  # fmt: skip
"""Column names that stand for each role, the likeliest first, in lower case with underscores."""

_UNSURE = {"evidence": ("context", "it may be a source, or what a rater remarked")}

_OPTIONS = {role: f"{'inputs' if role == 'input' else role}=... (--{role})" for role in SYNONYMS}


@dataclass(frozen=True, slots=True)
class Columns:
    """The role of each column.

    Parameters
    ----------
    target, output, context, id, group, system, rater : str or None
        None where the table has no such column. `system` names what wrote an output, `rater` who rated it.
    inputs, references : tuple of str
        In the order given.
    guessed : frozenset of str
        The roles (keys of `SYNONYMS`) that were guessed from column names.
    refused : tuple of str
        One line for each column whose name says a role and whose cells speak against it (`Guard`).
    levels : tuple of str
        Words of the target from worst to best, where ratings are words.
    """

    target: str | None = None
    output: str | None = None
    inputs: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    context: str | None = None
    id: str | None = None
    group: str | None = None
    system: str | None = None
    rater: str | None = None
    guessed: frozenset[str] = frozenset()
    refused: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()

    def texts(self) -> tuple[str, ...]:
        """The columns whose cells are shown to a metric, each once: output, inputs, references and context."""
        return tuple(dict.fromkeys(filter(None, (self.output, *self.inputs, *self.references, self.context))))

    def used(self) -> tuple[str, ...]:
        """Every column that has a role, each once."""
        single = [self.target, self.output, self.context, self.id, self.group, self.system, self.rater]
        return tuple(dict.fromkeys([name for name in single if name] + [*self.inputs, *self.references]))

    def without(self, role: str) -> Columns:
        """The same columns, but for a single one that was guessed."""
        changes: dict[str, Any] = {role: None, "guessed": self.guessed - {role}}
        return replace(self, **changes)

    def __str__(self) -> str:
        """Each role with its columns, in the words of a signature line."""
        said = {**_by_role(self), "levels": self.levels}
        return ", ".join(f"{role} {' and '.join(names)}" for role, names in said.items() if names)


def resolve_columns(
    raw: RawTable,
    named: Columns,
    *,
    taken: Sequence[str] = (),
    guess_target: bool = True,
    usual: Mapping[str, str] = MappingProxyType({}),
) -> Columns:
    """Check the named columns and guess the others from their names, as far as their cells allow.

    A column of numbers, of rating words, or of few categories that go with the rating is never guessed as a text.
    Where no other column holds the outputs, conversations in a column ``messages`` that end with the assistant are both
    input and output (`conversations.split_messages`), unless another input is named.

    Parameters
    ----------
    raw : RawTable
        The table.
    named : Columns
        What the caller named; unnamed roles are None or empty.
    taken : sequence of str
        Score columns, which are never guessed for a role.
    guess_target : bool
        Whether a rating column may be guessed.
    usual : mapping of str to str
        For a role the column that is guessed before all others, where the table has it.

    Returns
    -------
    Columns
        Whether a guessed id, group or output column is usable is for the caller to find out.

    Raises
    ------
    DataError
        If a named column is not in the table (the nearest is suggested).
    OptionError
        If the target is also named as a text.
    """
    chosen: dict[str, tuple[str, ...]] = {
        role: names for role, names in _by_role(named).items() if role != "target" or names or guess_target
    }
    for role, names in chosen.items():
        for name in names:
            raw.require(name, _OPTIONS[role])
    if named.target and named.target in named.texts():
        raise OptionError(
            f"{raw.name}: column {named.target!r} is named both as the target and as a text; a metric that reads the "
            f"rating proves nothing: name another column for one of the two"
        )
    # The column that groups the rows may be a text as well (all versions of one source), but is no id.
    used = {*taken, *(name for role, names in chosen.items() if role != "group" for name in names)}
    guessed, refused = set(), list[str]()
    guard: Guard | None = None
    sources = [*chosen["group"], *(name for role in ("group", "id", "input") for name in fitting_columns(raw, role))]
    for role in [role for role, names in chosen.items() if not names]:
        if chosen[role]:
            continue
        barred = used if role != "id" else used.union(chosen["group"])
        likely = [*(name for name in raw.columns if name == usual.get(role)), *fitting_columns(raw, role)]
        for name in [name for name in likely if name not in barred]:
            guard = guard or Guard.of(raw, next(iter(chosen.get("target", ())), None), named.levels)
            objection = guard.objection(role, name, sources)
            if not objection:
                chosen[role] = (name,)
                used.add(name)
                guessed.add(role)
                chats = normal_name(name) == "messages" and is_messages(raw, name, closed=True)
                if role == "output" and chats and not chosen["input"]:
                    chosen["input"] = (name,)
                    guessed.add("input")
                break
            refused.append(_refusal(role, name, objection))
    for name in raw.columns:
        role, doubt = _UNSURE.get(normal_name(name), ("", ""))
        if role and not chosen[role] and name not in used:
            refused.append(_refusal(role, name, doubt))
    roles: dict[str, Any] = {"inputs": chosen.pop("input"), "references": chosen.pop("reference")}
    roles |= {role: names[0] for role, names in chosen.items() if names}
    return Columns(**roles, guessed=frozenset(guessed), refused=tuple(refused), levels=named.levels)


def _refusal(role: str, name: str, why: str) -> str:
    option, _, flag = _OPTIONS[role].partition("=... ")
    return (
        f"{name!r} is not guessed as the {role}: {why} (if it is the {role}, add {option}={name!r} {flag[:-1]} {name}))"
    )


def guess_notes(raw: RawTable, columns: Columns) -> tuple[str, ...]:
    """One line per column that was guessed from its name, with the unused ones that would have fitted."""
    notes, refused = [], {line.split(" is not guessed")[0] for line in columns.refused}
    for role, names in _by_role(columns).items():
        fitting = fitting_columns(raw, role)
        if role in columns.guessed and names[0] in fitting:
            others = [repr(name) for name in fitting if name not in columns.used() and repr(name) not in refused]
            hint = f"; {', '.join(others)} would fit too" if others else ""
            notes.append(f"{role} column guessed: {names[0]!r}{hint} (name it with {_OPTIONS[role]})")
    return (*notes, *columns.refused)


def need_column(raw: RawTable, role: str, refused: Sequence[str] = ()) -> DataError:
    """The error for a role that no column was named for and none could be guessed, with what was `refused`."""
    own = [line for line in refused if f"as the {role}:" in line]
    if own:
        return DataError(f"{raw.name}: no {role} column was named, and none could be guessed: {'; '.join(own)}")
    return DataError(
        f"{raw.name}: no {role} column was named and none of the columns ({', '.join(list(raw.columns)[:20])}"
        f"{', ...' if len(raw.columns) > 20 else ''}) has a name that says so; recognised names are "
        f"{', '.join(SYNONYMS[role][:8])} ...: name the column with {_OPTIONS[role]}"
        + (", or take columns of scores with metric_columns=... (--metric-columns)" if role == "output" else "")
    )


def _by_role(columns: Columns) -> dict[str, tuple[str, ...]]:
    many = {"input": columns.inputs, "reference": columns.references}
    return {role: many[role] if role in many else tuple(filter(None, [getattr(columns, role)])) for role in SYNONYMS}


def fitting_columns(raw: RawTable, role: str) -> list[str]:
    """Columns whose name stands for `role`, the likeliest first; an output's ``messages`` may be an input as well."""
    normal = {normal_name(name): name for name in reversed(raw.columns)}
    chats = [normal["messages"]] if role == "input" and "messages" in normal else []
    known = [normal[synonym] for synonym in SYNONYMS[role] if synonym in normal]
    return [*known, *(name for name in chats if is_messages(raw, name))]


def normal_name(name: str) -> str:
    """The name as `SYNONYMS` writes names: in lower case with underscores.

    Examples
    --------
    >>> normal_name("Gold Answer"), normal_name("modelOutput")
    ('gold_answer', 'model_output')
    """
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[\W_]+", "_", snake).strip("_").lower()
