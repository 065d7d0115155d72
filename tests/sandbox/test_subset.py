"""The check of a source text: what it takes, what it refuses with which line, and that it cannot be brought down."""

from __future__ import annotations

import threading
import time
import tracemalloc
import warnings

import pytest

from metricsmith.sandbox.contract import RefusedSource
from metricsmith.sandbox.subset import LARGEST_SOURCE, MODULES, check_source


def refusal(source, function="score"):
    with pytest.raises(RefusedSource) as refused:
        check_source(source, function)
    return str(refused.value)


def body(line):
    return f"def score(output):\n    x = 1\n    {line}\n    return x\n"


def test_the_modules_of_the_subset_are_taken():
    for module in MODULES:
        check_source(f"import {module}\n" + body("pass"), "score")
        check_source(f"from {module} import a, b as c\n" + body("pass"), "score")
        check_source(body(f"import {module} as m"), "score")


@pytest.mark.parametrize(
    "line",
    ["import time", "import random", "import datetime", "from datetime import date", "import os.path", "import re, os",
     "from os import path as re", "import collections.abc", "from . import re", "from .re import x", "from re import *",
     "import pydantic_monty", "from re import __builtins__"],
)  # fmt: skip
def test_other_imports_are_refused_with_their_line(line):
    assert refusal(line + "\n" + body("pass")).startswith("line 1: import of ")
    if "*" not in line:
        assert refusal(body(line)).startswith("line 3: import of ")


def test_a_refused_module_is_named_with_those_that_are_taken():
    assert refusal(body("import time")) == (
        "line 3: import of time is not allowed; re, math, json, collections, itertools, unicodedata are"
    )


@pytest.mark.parametrize(
    ("line", "word"),
    [("yield x", "yield"), ("yield from x", "yield"), ("await x", "async"), ("async def f(): pass", "async"),
     ("async with x: pass", "async"), ("x = [eval][0]('1')", "eval"), ("exec('1')", "exec"), ("open('f')", "open"),
     ("x = input()", "input"), ("x = __import__('os')", "__import__"), ("x = __builtins__", "__builtins__"),
     ("x = globals()", "globals"), ("x = getattr(x, 'y')", "getattr"), ("x = compile('1', '', 'eval')", "compile"),
     ("x = x.__class__", "__class__"), ("x.__dict__ = 1", "__dict__"), ("del x.__doc__", "__doc__"),
     ("x = f'{x.__class__}'", "__class__"), ("x = ｅｖａｌ('1')", "eval"), ("x = lambda y=x.__class__: y", "__class__"),
     ("breakpoint()", "breakpoint"), ("x = hash('a')", "hash"), ("x = id(x)", "id")],
)  # fmt: skip
def test_what_reaches_out_or_never_ends_is_refused_with_its_line(line, word):
    said = refusal(body(line))
    assert said.startswith("line 3: ")
    assert f"{word} " in said
    assert "not allowed" in said


def test_the_first_line_is_told():
    assert refusal("import re\n\nimport os\n\nimport time\n" + body("eval('1')")).startswith("line 3: import of os")


@pytest.mark.parametrize(
    "line",
    ["x = [a * 2 for a in range(3)]", "x = sum(a for a in (1, 2))", "x = lambda a: a", "x = '__class__'",
     "x = output.x",
     "x = type(output)", "print(x)", "x = {'eval': 1}['eval']", "x = output.evaluate", "_x = __x = 1"],
)  # fmt: skip
def test_ordinary_code_is_taken(line):
    check_source(body(line), "score")


def test_a_name_of_ones_own_is_no_built_in():
    check_source("def score(output, input, references):\n    id = hash = len(input)\n    return id + hash", "score")
    check_source("def score(output, input):\n    return [open for open in input]", "score")
    assert "__builtins__" in refusal("def score(__builtins__):\n    return __builtins__")


def test_methods_may_have_the_names_that_python_calls():
    check_source("class A:\n    def __init__(self):\n        self.x = 1\n" + body("x = A().x"), "score")


def test_the_tree_is_not_kept():
    own, needed = check_source("def score(output, /, input, references=(), *, a, b=1): return 1", "score")
    assert (own, needed) == (("input", "references", "a", "b"), ("output", "input", "a"))
    tracemalloc.start()
    for number in range(10):
        check_source(body(f"x = {number}, {'x, ' * 6_000}"), "score")
    assert tracemalloc.get_traced_memory()[0] < 2_000_000  # a tree takes 2 MB
    tracemalloc.stop()


def test_the_function_must_be_defined_at_the_top_level():
    assert refusal("x = 1") == "no function score is defined at the top level"
    assert refusal("score = lambda output: 1") == "no function score is defined at the top level"
    assert refusal("if 1:\n    def score(output): return 1") == "no function score is defined at the top level"
    assert refusal(body("pass"), "other") == "no function other is defined at the top level"
    assert refusal("", "") == "no function  is defined at the top level"


def test_the_largest_source_is_measured_in_bytes():
    check_source(body("pass").ljust(LARGEST_SOURCE, "#"), "score")
    assert refusal(body("pass").ljust(LARGEST_SOURCE + 1, "#")) == "20,001 bytes are too long; 20,000 are taken"
    assert "too long" in refusal(body("pass") + "#" + "é" * (LARGEST_SOURCE // 2))


def test_what_is_no_python_is_refused_with_its_line():
    assert refusal("x = 1\ndef score(:").startswith("line 2: no Python: ")
    assert refusal("x = 1\nx = '\ud800'") == "character 12 is half of a surrogate pair, no text"


N = LARGEST_SOURCE - 200
HOSTILE = {
    "round": "(" * N, "square": "[" * N, "curly": "{" * N, "minus": "-" * N + "1", "not": "not " * (N // 4) + "1",
    "lambda": "lambda:" * (N // 7) + "1", "power": "1**" * (N // 3) + "1", "attribute": "a" + ".b" * (N // 2),
    "call": "a" + "()" * (N // 2), "sum": "1+" * (N // 2) + "1", "choice": "1 if 1 else " * (N // 12) + "1",
    "elif": "if 1: 0\n" + "elif 1: 0\n" * (N // 10), "digits": "9" * N, "digits in base 16": "0x" + "f" * N,
    "exponent": "1e" + "9" * N, "NUL": "x = 1\0", "indents": "".join(" " * i + "if 1:\n" for i in range(150)),
    "f-strings": "f'{" * (N // 3), "decorators": "@a\n" * (N // 3) + "def f(): 0", "minus in brackets": "(-" * (N // 2),
    "targets": "a=" * (N // 2) + "1", "patterns": "match a:\n case " + "[" * 190 + "]" * 190 + ": 0",
    "lambdas as defaults": "lambda x=" * 1800 + "1" + ":1" * 1800, "form feeds": "\f" * N, "quotes": "'" * N,
    "continued": "\\\n" * (N // 2) + "1", "escapes": "'\\N{x}' * 9", "mark": "\ufeff" * 99,
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_the_parser_survives_on_a_small_stack(name):
    """CPython's parser overflows a stack of 512 kB with 20,000 minus signs, and that ends the process."""
    said = []

    def work():
        begin = time.thread_time()
        said.append(refusal(HOSTILE[name]))
        said.append(time.thread_time() - begin)

    before = threading.stack_size(2**18)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert threading.stack_size(before) == 2**18
    assert "no Python" in said[0] or "no function" in said[0]
    assert said[1] < 2


def test_a_wrong_escape_is_no_warning_and_no_refusal():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_source(body(r"x = '\d+'"), "score")
