"""The subset of Python that a sandbox takes, checked on the syntax tree before anything runs.

The engine is the wall; this check says early, and with a line, what would fail there or make two runs differ.
"""

from __future__ import annotations

import ast
import os
import threading
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from metricsmith.sandbox.contract import RefusedSource

__all__ = ["LARGEST_SOURCE", "MODULES", "REFUSED_NAMES", "Keywords", "check_source"]

MODULES = ("re", "math", "json", "collections", "itertools", "unicodedata")
LARGEST_SOURCE = 20_000  # bytes
REFUSED_NAMES = frozenset(
    {
        "eval", "exec", "compile", "open", "input", "globals", "locals", "vars", "dir", "getattr", "setattr", "delattr",
        "breakpoint", "exit", "quit", "help", "memoryview", "hash", "id",
    }
)  # fmt: skip
ASYNC = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
FILE = "<source of a sandbox>"
STACK = 2**24  # bytes; 20,000 minus signs overflow a stack of 512 kB, and not one of 1 MB (CPython 3.11)

# CPython 3.11 counts the depth of all threads' trees in one place: two at once may end in a SystemError.
_parsing = threading.Lock()


def _after_fork() -> None:
    global _parsing
    _parsing = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Keywords(NamedTuple):
    """The parameters of a function: those that a keyword can fill, and those that the caller must fill."""

    named: tuple[str, ...]
    needed: tuple[str, ...]  # and all that a keyword cannot fill


@lru_cache(maxsize=256)  # of names: a tree of 20,000 bytes takes 4 MB
def check_source(source: str, function: str) -> Keywords:
    """Refuse a source text that is too long, is no Python of the subset, or does not define `function`.

    Parameters
    ----------
    source : str
        At most 20,000 bytes of UTF-8. Modules: re, math, json, collections, itertools, unicodedata. No ``yield``, no
        coroutine, no name or attribute between double underscores (methods may be defined with such a name), and none
        of the functions that evaluate text, look names up or reach outside (`REFUSED_NAMES`).
    function : str
        Name of a function that the text defines at its top level.

    Returns
    -------
    Keywords
        Those of the last definition of `function`.

    Raises
    ------
    RefusedSource
        With the first line that is refused, and the reason.
    """
    try:
        size = len(source.encode())
    except UnicodeEncodeError as problem:
        raise RefusedSource(f"character {problem.start + 1:,} is half of a surrogate pair, no text") from None
    if size > LARGEST_SOURCE:
        raise RefusedSource(f"{size:,} bytes are too long; {LARGEST_SOURCE:,} are taken")
    found: list[Keywords | str] = ["it could not be checked"]  # stands if the thread ends early

    def work() -> None:
        found[0] = _checked(source, function)

    # The parser goes deeper on the stack with each level of nesting, and the caller's thread may have a small one.
    thread = threading.Thread(target=work)
    with _parsing:
        before = threading.stack_size(STACK)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
        thread.join()
    if isinstance(found[0], str):
        raise RefusedSource(found[0])
    return found[0]


def _checked(source: str, function: str) -> Keywords | str:
    """The function's parameters, or the reason why the source text is not taken."""
    # The parser warns about a stranger's text (a wrong escape), which is neither news nor, under -W error, a refusal.
    warnings.filterwarnings("ignore", module=FILE)
    try:
        tree = ast.parse(source, FILE)
    except SyntaxError as problem:
        return f"line {problem.lineno}: no Python: {problem.msg}" if problem.lineno else f"no Python: {problem.msg}"
    except (ValueError, RecursionError, MemoryError) as problem:
        return f"no Python: {str(problem) or 'nested too deeply'}"
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.expr)]
    # `input` is the built-in function here, and there an argument; who binds such a name to pass meets the engine.
    own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    own |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    refused = [(node.lineno, reason) for node in nodes for reason in _reasons(node, REFUSED_NAMES - own)]
    if refused:
        return "line {}: {}".format(*min(refused))
    defined = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function]
    return _parameters(defined[-1].args) if defined else f"no function {function} is defined at the top level"


def _parameters(own: ast.arguments) -> Keywords:
    needed = [*own.posonlyargs, *own.args[: len(own.args) - len(own.defaults)]]
    needed += [one for one, default in zip(own.kwonlyargs, own.kw_defaults, strict=True) if default is None]
    return Keywords(
        tuple(one.arg for one in (*own.args, *own.kwonlyargs)), tuple(dict.fromkeys(one.arg for one in needed))
    )


def _reasons(node: ast.stmt | ast.expr, names: frozenset[str]) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from _imported(node)
    elif isinstance(node, ast.Name) and (node.id in names or _dunder(node.id)):
        yield f"{node.id} is not allowed; a function sees its arguments and nothing else"
    elif isinstance(node, ast.Attribute) and _dunder(node.attr):
        yield f".{node.attr} is not allowed; no attribute between double underscores is"
    elif isinstance(node, ast.Yield | ast.YieldFrom):
        yield "yield is not allowed; build a list, or write a generator expression"
    elif isinstance(node, ASYNC):
        yield "async and await are not allowed; nothing here waits"


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        modules = [one.name for one in node.names]
    else:
        modules = ["." * node.level + (node.module or "")]
    for module in modules:
        if module not in MODULES:
            yield f"import of {module} is not allowed; {', '.join(MODULES)} are"
    for one in node.names:
        if one.name == "*" or _dunder(one.name):
            yield f"import of {one.name} is not allowed; name what is needed"


def _dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
