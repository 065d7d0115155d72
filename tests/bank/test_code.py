"""A function kept as text: its number, the statuses in place of one, and a function of one's own as such a text."""

from __future__ import annotations

import copy
import functools
import math
import pickle
import re
from dataclasses import replace

import pytest

from metricsmith.bank.code import CodeMetric
from metricsmith.errors import DataError, JudgementFailed, NeedsError, OptionError
from metricsmith.metric import make_row
from metricsmith.records import Output, Status
from metricsmith.sandbox import monty
from metricsmith.sandbox.contract import Limits, MissingEngine, RefusedSource

ROW = make_row("Short words.", input="a text", references=["gold"])
RAISES = "def score(output):\n    if output == 'b':\n        raise ValueError(output)\n    return len(output)"


def judged(source, *rows, **options):
    return CodeMetric(source, **options).judge_batch(rows or [ROW])


@pytest.mark.parametrize(
    ("returned", "raw"), [("2", 2.0), ("-0.5", -0.5), ("True", 1.0), ("False", 0.0), ("2**60", float(2**60))]
)
def test_a_number_is_taken_and_yes_and_no_count_one_and_nought_as_for_other_functions(returned, raw):
    (one,) = judged(f"def score(output): return {returned}")
    assert (one.status, one.raw, one.metric, one.error) == (Status.OK, raw, "code", "")
    assert one.score == CodeMetric("def score(): return 0").output.score(raw)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("float('nan')", "score returned nan, no finite number"),
        ("float('inf')", "score returned inf, no finite number"),
        ("10**400", "score returned a whole number of more than 100 digits, no finite number"),
        ("-1e101", "score returned -1e+101, no finite number up to 1e+100"),
        ("'3'", "score returned '3', no finite number"),
        ("'x' * 1000", "score returned '" + "x" * 60 + "', no finite number"),
        ("None", "score returned None, no finite number"),
        ("[10**400]", "score returned a list, no finite number"),
        ("{'score': 1}", "score returned a dict, no finite number"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("nothing", "NameError: name 'nothing' is not defined"),
        ("int('\\x1b[31m\\u202e')", "ValueError"),
    ],
)
def test_no_finite_number_is_a_status_with_its_reason_and_never_nought(returned, said):
    (one,) = judged(f"def score(output): return {returned}")
    assert (one.status, one.raw, one.score) == (Status.UNPARSABLE, None, None)
    assert one.error.startswith(said)
    assert one.error.isprintable()


def test_what_a_program_says_in_its_error_is_one_short_line_without_controls():
    (one,) = judged("def score(output): raise ValueError('a\\n\\x1b[31m\\u202eb ' + 'x' * 1000)")
    assert "ValueError: a" in one.error
    assert one.error.isprintable()
    assert len(one.error) <= 300


def test_a_row_that_takes_too_long_is_a_status_and_the_others_keep_their_numbers():
    source = "def score(output):\n    while output == 'long':\n        pass\n    return 1"
    rows = [make_row(output) for output in ("a", "long", "b")]
    first, second, third = judged(source, *rows, limits=Limits(row_seconds=0.05))
    assert (first.raw, second.raw, third.raw) == (1.0, None, 1.0)
    assert second.status is Status.UNPARSABLE
    assert "Timeout" in second.error


def test_rows_keep_their_order_and_an_error_costs_its_row_alone():
    found = judged(RAISES, *(make_row(output) for output in ("aaa", "b", "cc")))
    assert [one.raw for one in found] == [3.0, None, 2.0]
    assert found[1].error == "ValueError: b"
    assert judged(RAISES) == judged(RAISES)
    assert CodeMetric(RAISES).judge_batch([]) == []


def test_a_number_outside_the_range_is_out_of_range_and_the_range_gives_the_score():
    source = "def score(output): return len(output)"
    inside, outside = judged(source, make_row("abc"), make_row("abcdef"), output=Output("", 0, 4, False))
    assert (inside.raw, inside.score) == (3.0, 0.25)
    assert (outside.status, outside.raw) == (Status.OUT_OF_RANGE, None)
    assert outside.error == "score returned 6, outside its range"


@pytest.mark.parametrize(
    ("parameters", "takes"),
    [
        ("output, input, references", ("output", "input", "references")),
        ("references, *, output", ("output", "references")),
        ("input, least=2, *more, scale=1, **others", ("input",)),
        ("", ()),
    ],
)
def test_the_function_gets_those_of_the_texts_that_it_names(parameters, takes):
    metric = CodeMetric(f"def score({parameters}): return 1")
    assert metric.takes == takes
    assert metric.judge_batch([ROW])[0].raw == 1.0


def test_texts_that_a_row_lacks_are_empty_and_references_are_a_list():
    source = (
        "def score(output, input, references):\n    return (input == '') + 10 * len(references) + 100 * (output == 'o')"
    )
    rows = [make_row("o"), make_row("o", input="i", references=["r", "s"])]
    assert [one.raw for one in judged(source, *rows)] == [101.0, 120.0]
    with pytest.raises(DataError, match="no field 'output'"):
        CodeMetric(source).judge_batch([{"input": "i"}])


@pytest.mark.parametrize(
    ("source", "options", "said"),
    [
        ("def score(output, context): return 1", {}, "takes context, which nothing fills; it is called with those of"),
        ("def score(output, /): return 1", {}, "takes output, which nothing fills"),
        ("def score(*, wanted): return 1", {}, "takes wanted"),
        ("def other(): return 1", {}, "no function score is defined"),
        ("score = len", {}, "no function score is defined"),
        ("def score(:", {}, "the source is not taken: "),
        ("import os\ndef score(): return 1", {}, "os is not allowed"),
        ("def score(): return 1\n#" + "x" * 20_000, {}, "bytes are too long"),
        ("def score(): return '\ud800'", {}, "the source is not taken"),
        (len, {}, "must be the text of a function, or take CodeMetric.from_function"),
        ("def score(): return 1", {"function": ["score"]}, "function=['score'] must be of the type str"),
        ("def score(): return 1", {"limits": {"seconds": 1}}, "limits={'seconds': 1} must be of the type Limits"),
        ("def score(): return 1", {"name": 5}, "name=5 must be of the type str"),
        ("def score(): return 1", {"output": (0, 1)}, "output=(0, 1) must be of the type Output"),
        ("def score(): return 1", {"function": "score() or score"}, "no function score() or score is defined"),
    ],
)
def test_a_source_that_cannot_be_called_is_refused_before_anything_runs(source, options, said):
    with pytest.raises(OptionError, match=re.escape(said)):
        CodeMetric(source, **options)


def test_what_the_engine_alone_refuses_is_a_status_of_every_row(monkeypatch):
    def refuse(*_):
        raise RefusedSource("line 2: no classes here")

    monkeypatch.setattr(monty.sandbox(), "run", refuse)
    found = judged("def score(): return 1", ROW, ROW)
    assert [(one.status, one.error) for one in found] == [(Status.UNPARSABLE, "line 2: no classes here")] * 2


def test_the_card_says_what_it_needs_and_its_formula_is_the_source():
    metric = CodeMetric(RAISES, name="length", meaning="Characters.", limits=Limits(row_seconds=2))
    card = metric.card
    assert (card.name, card.kind, card.needs, card.cost) == ("length", "code", ("extra:code",), "cheap")
    assert (card.formula, card.summary, card.outputs) == (RAISES, "Characters.", (metric.output,))
    assert card.limits == ("A row has 2 s and 64 MB; one that needs more has no number",)
    assert CodeMetric(RAISES).card.summary == "The number that the function score returns."


def test_copies_are_equal_and_hold_no_pool():
    metric = CodeMetric(RAISES, name="length")
    metric.judge_batch([ROW])
    assert metric(ROW).score > 0.5  # which keeps a ledger in the metric
    for one in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric)), replace(metric)):
        assert one == metric
        assert one.fingerprint() == metric.fingerprint()
        assert one.judge_batch([ROW]) == metric.judge_batch([ROW])
    assert replace(metric, name="chars").output.name == "chars"


def test_the_fingerprint_follows_whatever_changes_the_number(monkeypatch):
    metric = CodeMetric(RAISES, name="length", meaning="Characters.")
    others = [
        CodeMetric(RAISES + "\n"),
        CodeMetric(RAISES + "\ndef other(): return 1", "other"),
        replace(metric, limits=Limits(row_seconds=1)),
        replace(metric, output=Output("", 0, 4)),
    ]
    assert len({one.fingerprint() for one in (metric, *others)}) == 5
    assert replace(metric, name="a", meaning="b").fingerprint() == metric.fingerprint()
    own = metric.fingerprint()
    monkeypatch.setattr(type(monty.sandbox()), "engine", "monty 99")
    assert metric.fingerprint() != own


@pytest.fixture
def no_engine(monkeypatch):
    def missing():
        raise MissingEngine("the package pydantic-monty is not installed")

    monkeypatch.setattr(monty, "sandbox", missing)


@pytest.mark.usefixtures("no_engine")
def test_without_the_extra_all_but_scoring_works():
    metric = CodeMetric(RAISES, name="length")
    assert CodeMetric.from_state(metric.to_state()) == metric
    assert metric.fingerprint() == copy.deepcopy(metric).fingerprint()
    assert metric.card.needs == ("extra:code",)
    line = r"length is code, which only the sandbox runs: pip install 'metricsmith\[code\]' \(the package pydantic"
    for score in (lambda: metric.judge_batch([ROW]), lambda: metric("a text"), lambda: metric(ROW)):
        with pytest.raises(NeedsError, match=line):
            score()


def test_an_engine_that_is_found_missing_at_its_start_is_told_as_well(monkeypatch):
    def missing(*_):
        raise MissingEngine("no program")

    monkeypatch.setattr(monty.sandbox(), "run", missing)
    with pytest.raises(NeedsError, match="no program"):
        judged(RAISES)


@pytest.mark.parametrize(
    ("limits", "kept"),
    [({}, 0.5), ({"row_seconds": 0.25}, 0.25), ({"row_seconds": 60.0, "megabytes": 9e9}, 0.5)],
)
def test_limits_of_a_state_can_only_be_lower_than_ours(limits, kept):
    metric = CodeMetric.from_state({**CodeMetric(RAISES).to_state(), "limits": limits})
    assert metric.limits == Limits(row_seconds=kept)


def test_a_text_that_had_no_value_raises_for_dspy():
    with pytest.raises(JudgementFailed, match="score returned nan"):
        CodeMetric("def score(): return float('nan')")("text")


def kept(output: str, references: list[str], least: float = 0) -> float:
    """The share of the reference's words."""
    return max(least, math_free(output, references))


def math_free(output, references):
    return 0.0


def share(output, references):
    """The share of the reference's words."""
    wanted = set(references[0].split())
    return sum(1 for word in wanted if word in output.split()) / len(wanted)


FACTOR = 3


def scaled(output):
    return FACTOR * len(output)


def rooted(output):
    return math.sqrt(len(output))


def typed(output: Output) -> float:
    return 1.0


def set_before(output, least=FACTOR):
    return least


def doubled(function):
    @functools.wraps(function)
    def inner(output):
        return 2 * function(output)

    return inner


@doubled
def decorated(output):
    return len(output)


wrapped = doubled(share)


@pytest.mark.filterwarnings("error")
def marked(output):
    return len(output)


async def later(output):
    return 1.0


def listed(output):
    yield 1.0


class Words:
    def count(self, output):
        return len(output.split())

    def __call__(self, output):
        return self.count(output)


def closure(factor):
    def times(output):
        return factor * len(output)

    return times


def inside():
    def lines(output):
        """Counts.

        Lines.
        """
        text = """a
        b"""
        return output.count(text)

    return lines


def indented():
    def lines(output):
        """Lines.

        All of them.
        """
        return output.count("\n")  # one

    return lines


def test_a_function_of_ones_own_becomes_text_with_its_name_and_meaning():
    metric = CodeMetric.from_function(share)
    assert (metric.name, metric.function, metric.meaning) == ("share", "share", "The share of the reference's words.")
    assert metric.source.startswith("def share(output, references):\n")
    rows = [make_row("a b", references=["a c"]), make_row("a c", references=["a c"])]
    assert [one.raw for one in metric.judge_batch(rows)] == [share("a b", ["a c"]), 1.0] == [0.5, 1.0]
    assert CodeMetric.from_state(metric.to_state()) == metric


def test_options_stand_above_what_the_function_says_and_an_inner_function_moves_to_the_margin():
    metric = CodeMetric.from_function(
        indented(), name="breaks", meaning="m", output=Output("", 0, None, half=3), limits=Limits(seconds=1)
    )
    assert (metric.name, metric.meaning, metric.output.half, metric.limits.seconds) == ("breaks", "m", 3, 1)
    assert metric.source.startswith('def lines(output):\n    """Lines.')
    assert metric("a\nb\nc").raw == 2.0


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (kept, "kept uses math_free from outside, which no file holds: import modules inside the function"),
        (scaled, "scaled uses FACTOR from outside"),
        (rooted, "rooted uses math from outside"),
        (typed, "typed uses Output from outside"),
        (set_before, "set_before uses FACTOR from outside"),
        (closure(2), "times uses factor from outside"),
        (decorated, "decorated is wrapped by other code"),
        (marked, "marked has a decorator, whose code stands elsewhere"),
        (wrapped, "share is wrapped by other code"),
        (lambda output: 1.0, "a lambda has no source of its own: define a function with a name"),
        (later, "later is a AsyncFunctionDef; a function that begins with def is taken"),
        (Words, "Words is a ClassDef"),
        (Words().count, "the function count takes self, which nothing fills"),
        (Words(), "cannot be read"),
        (len, "the source of len cannot be read"),
        ("def score(): return 1", "cannot be read"),
        (inside(), "lines stands inside a block and has texts of several lines"),
    ],
)
def test_a_function_that_does_not_stand_by_itself_is_refused_with_the_reason(function, said):
    with pytest.raises(OptionError, match=re.escape(said)):
        CodeMetric.from_function(function)


def test_a_function_outside_the_subset_is_refused_by_the_sandbox():
    def clocked(output):
        import time

        return time.time()

    with pytest.raises(OptionError, match=r"line 2: import (of )?time is not allowed"):
        CodeMetric.from_function(clocked)


def test_a_builtin_that_means_something_else_in_the_functions_module_is_refused(monkeypatch):
    def total(output):
        return float(sum([len(output)]))

    assert CodeMetric.from_function(total)
    monkeypatch.setitem(globals(), "sum", lambda numbers: 42)
    with pytest.raises(OptionError, match="total uses sum from outside"):
        CodeMetric.from_function(total)
