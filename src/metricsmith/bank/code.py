"""A metric that is a Python function kept as text: only the sandbox runs it."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import symtable
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from typing import Any

import dspy

from metricsmith.errors import NeedsError, OptionError
from metricsmith.formats import count, single_line
from metricsmith.metric import content_hash, row_text
from metricsmith.records import Judgement, MetricCard, Output, Status
from metricsmith.reward import DSPyCallable
from metricsmith.sandbox.contract import LIMITS, Limits, MissingEngine, RefusedSource, RowResult, Sandbox
from metricsmith.sandbox.subset import check_source
from metricsmith.saving import write_state

__all__ = ["INSTALL", "CodeMetric", "code_listed"]

INSTALL = "pip install 'metricsmith[code]'"
TEXTS = ("output", "input", "references")
OPEN = Output("code", low=None, high=None, half=1.0)
LONGEST_ERROR = 300  # characters
LARGEST = 1e100  # of numbers: sums and products of a few stay finite, and files hold no larger ones


@dataclass(frozen=True)
class CodeMetric(DSPyCallable):
    """The number that a function of a source text returns, which the sandbox runs on each row by itself.

    The function is called by keyword with those of ``output`` (text), ``input`` (text, empty where the row has none)
    and ``references`` (list of texts, empty where the row has none) that it has as parameters. It returns a finite
    number up to 1e100; True is 1 and False 0, as for `CallableMetric`. An error, a spent limit, NaN, infinity and
    anything else than such a number are ``unparsable``, and a number outside the range of `output` is
    ``out_of_range``: never a number.

    Building, saving and loading run nothing and need no engine. Scoring needs the extra ``code``.

    Parameters
    ----------
    source : str
        Python of the sandbox's subset, at most 20,000 bytes.
    function : str
        The name of the function.
    limits : Limits
        The most that the function may use. Those in a file can only be lower than the defaults.
    name : str
        The column's name.
    meaning : str
        What the number says.
    output : Output, optional
        Range and direction; by default unbounded, more being better. Its name is `name`.

    Raises
    ------
    OptionError
        If the sandbox does not take the source, the function has other parameters, or a value is of another type.
    """

    source: str
    function: str = "score"
    limits: Limits = LIMITS
    name: str = "code"
    meaning: str = ""
    output: Output = OPEN
    takes: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, kind in (("function", str), ("limits", Limits), ("name", str), ("meaning", str), ("output", Output)):
            if not isinstance(value := getattr(self, name), kind):
                raise OptionError(f"{name}={value!r:.60} must be of the type {kind.__name__}")
        named = replace(self.output, name=self.name, description=self.meaning or self.output.description)
        object.__setattr__(self, "output", named)
        object.__setattr__(self, "takes", _parameters(self.source, self.function))

    @classmethod
    def from_function(cls, function: Callable[..., Any], **options: Any) -> CodeMetric:
        """A function of yours as a metric whose file holds its code, so that whoever loads it needs nothing from you.

        The source is read from the file in which the function stands. It has to stand by itself: modules are imported
        inside it, and there is no decorator, and no value from outside.

        Parameters
        ----------
        function : callable
            Its parameters are among ``output``, ``input`` and ``references``; further ones have defaults.
        **options
            ``limits``, ``name``, ``meaning`` and ``output`` as for the class; by default the name is the function's,
            and the meaning the first line of its docstring.

        Raises
        ------
        OptionError
            If the function's source cannot be read, uses anything from outside, or is not of the sandbox's subset.
        """
        name = getattr(function, "__name__", "")
        source = _standing_alone(function, name or repr(function))
        meaning = (inspect.getdoc(function) or "").partition("\n")[0]
        return cls(source, name, **{"name": name, "meaning": meaning, **options})

    @property
    def sandbox(self) -> Sandbox:
        """The process's own; `NeedsError` where its engine is not installed."""
        from metricsmith.sandbox.monty import sandbox

        try:
            return sandbox()
        except MissingEngine as problem:
            raise self._needs(problem) from problem

    def _needs(self, problem: MissingEngine) -> NeedsError:
        return NeedsError(f"{self.name} is code, which only the sandbox runs: {INSTALL} ({problem})")

    def unusable_here(self) -> str:
        """The reason why this machine cannot compute the metric; empty where it can."""
        try:
            _ = self.sandbox
        except NeedsError as problem:
            return str(problem)
        return ""

    @property
    def card(self) -> MetricCard:
        """A card whose formula is the source text."""
        return MetricCard(
            name=self.name,
            kind="code",
            summary=self.meaning or f"The number that the function {self.function} returns.",
            formula=self.source,
            outputs=(self.output,),
            needs=("extra:code",),
            cost="cheap",
            multi_reference="The function gets all of them." if "references" in self.takes else "",
            limits=(
                f"A row has {self.limits.row_seconds:g} s and {self.limits.megabytes:g} MB; one that needs more has "
                "no number",
            ),
            backend="monty",
            backend_license="MIT",
        )

    def fingerprint(self) -> str:
        """A hash of source, function, limits, range, and of the engine with its version, if it is installed."""
        state = {key: value for key, value in self.to_state().items() if key not in ("name", "meaning")}
        return content_hash(state, "" if self.unusable_here() else self.sandbox.engine)

    def to_state(self) -> dict[str, Any]:
        """The source text and what goes with it."""
        own = self.output
        span = {"low": own.low, "high": own.high, "half": own.half, "higher_is_better": own.higher_is_better}
        return {
            "kind": "code", "name": self.name, "meaning": self.meaning, "source": self.source,
            "function": self.function, "limits": asdict(self.limits), "output": span,
        }  # fmt: skip

    def save(self, path: str | PathLike[str]) -> None:
        """Write one JSON that `metricsmith.load` reads.

        Parameters
        ----------
        path : path
            A file, or a folder that is to have a ``metric.json``.
        """
        write_state(self.to_state(), path)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> CodeMetric:
        """Build a metric from `to_state`'s result, with limits that are at most the defaults; runs nothing.

        Raises
        ------
        OptionError
            As for the class, or if limits or range are not possible.
        """
        try:
            limits = Limits(**state["limits"]).lower(LIMITS)
            output = Output(state["name"], **state["output"])
        except ValueError as problem:
            raise OptionError(str(problem)) from problem
        return cls(state["source"], state["function"], limits, state["name"], state["meaning"], output)

    def judge_batch(self, rows: Sequence[dspy.Example], *, run: int = 0) -> list[Judgement]:
        """Run the function on each row; a row without a finite number is ``unparsable`` or ``out_of_range``.

        Raises
        ------
        NeedsError
            If the sandbox's engine is not installed.
        """
        texts = [row_text(row) for row in rows]
        whole = [{"output": text.output, "input": text.input, "references": list(text.references)} for text in texts]
        shown = [{name: row[name] for name in self.takes} for row in whole]
        sandbox = self.sandbox
        try:
            results = sandbox.run(self.source, self.function, shown, self.limits)
        except MissingEngine as problem:  # found out at its start
            raise self._needs(problem) from problem
        except RefusedSource as problem:  # the engine knows less of Python than was asked for
            results = [RowResult(error=str(problem))] * len(rows)
        return [self._judgement(result, run) for result in results]

    def _judgement(self, result: RowResult, run: int) -> Judgement:
        status, error = Status.UNPARSABLE, result.error
        number = None if error else _finite(result.value)
        if number is None:
            error = error or f"{self.function} returned {_said(result.value)}, no finite number up to {LARGEST:g}"
        else:
            low, high = self.output.low, self.output.high
            if (low is None or number >= low) and (high is None or number <= high):
                return Judgement(self.name, number, self.output.score(number), run=run)
            status, error = Status.OUT_OF_RANGE, f"{self.function} returned {number:g}, outside its range"
        return Judgement(self.name, status=status, error=single_line(error)[:LONGEST_ERROR], run=run)


def code_listed(states: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence on those of the metrics' states that are code; none where there is none."""
    names = list(dict.fromkeys(single_line(state["name"]) for state in states if state["kind"] == "code"))
    if not names:
        return []
    components = count(len(names), "code component")
    listed = f"the metric has {components}, {', '.join(names)}, which only the sandbox runs"
    return [f"{listed}; wherever it scores, the sandbox must be installed ({INSTALL})"]  # the same on every machine


def _parameters(source: str, function: str) -> tuple[str, ...]:
    """Those of a row's texts that the function takes, the source being checked."""
    if not isinstance(source, str):
        raise OptionError(f"source={source!r:.60} must be the text of a function, or take CodeMetric.from_function")
    try:
        named, needed = check_source(source, function)
    except RefusedSource as problem:
        raise OptionError(f"the source is not taken: {problem}") from problem
    if stray := [name for name in needed if name not in TEXTS or name not in named]:
        raise OptionError(
            f"the function {function} takes {', '.join(stray)}, which nothing fills; it is called with those of "
            f"{', '.join(TEXTS)} that it names"
        )
    return tuple(name for name in TEXTS if name in named)


def _standing_alone(function: Callable[..., Any], name: str) -> str:
    """The source of a function, moved to the margin; refused if anything outside of it could change its number."""
    if inspect.unwrap(function) is not function:
        raise OptionError(f"{name} is wrapped by other code; give the function without its decorator")
    if name == "<lambda>":
        raise OptionError("a lambda has no source of its own: define a function with a name")
    try:
        raw = inspect.getsource(function)
    except (TypeError, OSError) as problem:
        raise OptionError(f"the source of {name} cannot be read: {problem}; give it as text, CodeMetric(source)") from (
            problem
        )
    source = textwrap.dedent(raw)
    try:
        with warnings.catch_warnings(action="ignore"):
            (node,) = ast.parse(source).body
            table = symtable.symtable(source, name, "exec")
            moved = _texts(node) != _texts(ast.parse(f"if 1:\n{raw}" if raw != source else source))
    except (SyntaxError, ValueError) as problem:
        raise OptionError(f"{name} is not one function in its file: {problem}") from problem
    if not isinstance(node, ast.FunctionDef):
        raise OptionError(f"{name} is a {type(node).__name__}; a function that begins with def is taken")
    if node.decorator_list:
        raise OptionError(f"{name} has a decorator, whose code stands elsewhere; give the function without it")
    shadowed = {*function.__globals__, *inspect.getclosurevars(function).nonlocals}  # builtins of other meaning here
    if outside := sorted(_free(table) - {name} - (set(dir(builtins)) - shadowed)):
        raise OptionError(
            f"{name} uses {', '.join(outside)} from outside, which no file holds: import modules inside the function, "
            "and write values into it"
        )
    if moved:
        raise OptionError(
            f"{name} stands inside a block and has texts of several lines, which would lose their indentation; define "
            "it at the margin of its file"
        )
    return source


def _free(table: symtable.SymbolTable) -> set[str]:
    """The names that a source refers to and does not set, in all its blocks."""
    own = {one.get_name() for one in table.get_symbols() if one.is_referenced() and one.is_global()}
    return own.union(*map(_free, table.get_children()))


def _texts(tree: ast.AST) -> list[str]:
    """The texts of several lines in a source, docstrings aside."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    docs = {id(node.body[0].value) for node in functions if isinstance(node.body[0], ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and "\n" in node.value
        and id(node) not in docs
    ]


def _finite(value: Any) -> float | None:
    """A number up to `LARGEST` as a float, None for anything else."""
    try:
        number = float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:
        return None
    return number if abs(number) <= LARGEST else None


def _said(value: Any) -> str:
    """A value that is no finite number, in a few words."""
    if isinstance(value, int):
        return "a whole number of more than 100 digits"
    if isinstance(value, str):
        return repr(value[:60])
    return repr(value) if value is None or isinstance(value, float) else f"a {type(value).__name__}"
