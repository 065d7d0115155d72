"""Functions written by a model: read exactly, tried on every row, mended by what is shown of their errors."""

from __future__ import annotations

import asyncio

import dspy
import numpy as np
import pytest

from metricsmith.metric import fence, make_row
from metricsmith.programs.generators import code
from metricsmith.programs.generators.code import REPAIRS, CodeGenerator, tried, unwrapped, written_code
from metricsmith.sandbox.contract import Limits
from metricsmith.testing import GivenModel
from students import field

ASKED = {
    "task": "Write.",
    "rating": "rating, from 1 to 5",
    "criterion": "Brief: few words.",
    "liked": "l",
    "disliked": "d",
}
ROWS = [
    make_row("word " * n, input=f"question {n}", references=[f"reference {n}"], rating=n % 5 + 1) for n in range(1, 11)
]
LENGTH = "def score(output, input, references):\n    return len(output.split())"


def function(body):
    return f"def score(output, input, references):\n    return {body}"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (LENGTH, LENGTH),
        (f"\n{LENGTH}\n\n", LENGTH),
        (f"```python\n{LENGTH}\n```", LENGTH),
        (f"```\n{LENGTH}\n```\n", LENGTH),
        (f"```Py  \n{LENGTH}\n  ```", LENGTH),
        (fence(LENGTH), LENGTH),
        (fence(f"```python\n{LENGTH}\n```"), LENGTH),
        # Nobody guesses which part was meant.
        (f"Here it is:\n```python\n{LENGTH}\n```", None),
        (f"```python\n{LENGTH}\n```\nIt counts words.", None),
        (f"```python\nx = 1\n```\n```python\n{LENGTH}\n```", None),
        (f"```javascript\n{LENGTH}\n```", None),
        (f"```python\n{LENGTH}", None),
    ],
)
def test_one_fence_around_the_whole_is_taken_off_and_nothing_else(written, read):
    assert unwrapped(written) == (written.strip() if read is None else read)
    assert (tried(unwrapped(written), ROWS).metric is None) == (read is None)


def test_a_generator_gives_the_source_and_shows_an_attempt_between_marks():
    with GivenModel(lambda prompt: {"source": f"```python\n{LENGTH}\n```"}) as model, dspy.context(lm=model.lm()):
        assert CodeGenerator()(**ASKED).source == LENGTH
        again = {**ASKED, "attempt": "x = [[ ## source ## ]]", "problems": "It did not run."}
        assert CodeGenerator()(**again).source == LENGTH
        assert asyncio.run(CodeGenerator().acall(**again)).source == LENGTH
    first, second, third = model.prompts
    assert field(first, "attempt").strip() == field(first, "problems").split("\n\nRespond")[0].strip() == "(none)"
    assert fence("x = [[ ## source ## ]]") in second == third
    assert "It did not run." in second


def test_a_function_is_a_candidate_that_gives_nine_rows_of_ten_a_number():
    trial = tried(function("1 / (len(output.split()) - 1)"), ROWS, name="n", meaning="m")
    assert (trial.share, trial.problems, trial.why) == (0.9, "", "")
    np.testing.assert_allclose(trial.values, [np.nan, *(1 / n for n in range(1, 10))])
    assert (trial.metric.name, trial.metric.meaning) == ("n", "m")
    assert tried(function("1 / max(0, len(output.split()) - 2)"), ROWS).share == 0.8
    assert "2 of 10 rows" in tried(function("1 / max(0, len(output.split()) - 2)"), ROWS).problems


@pytest.mark.parametrize("body", ["float('nan')", "float('inf')", "'high'", "None", "[1.0]"])
def test_what_is_no_finite_number_is_none(body):
    trial = tried(function(body), ROWS)
    assert trial.share == 0
    assert trial.why.startswith("no finite number on 10 of 10 rows")


@pytest.mark.parametrize("body", ["1.0", "len(references)", "0.1 * 3 if len(output) % 2 else 0.3"])
def test_a_constant_is_no_candidate_rounding_aside(body):
    trial = tried(function(body), ROWS)
    assert trial.share == 1
    assert "tells no two outputs apart" in trial.problems


def test_a_refused_source_has_no_number_and_its_reason_between_marks():
    trial = tried("import os\n" + LENGTH, ROWS)
    assert (trial.metric, trial.share) == (None, 0)
    assert "os is not allowed" in trial.why
    assert fence(trial.why.removeprefix("the source text was refused: ")) in trial.problems


def test_problems_show_the_most_frequent_errors_with_one_bounded_row_each_and_no_rating():
    body = (
        "{}['[[ ## source ## ]]'] if len(input) == 10 else 1 / 0 if len(output) > 40 else None if len(output) > 35 "
        "else float(output) if len(output) > 30 else len(references[0]) / (len(output) - len(output))"
    )
    rows = [
        make_row("word " * n, input="q" * (9 + n), references=["r" * 5000], rating=4.321) for n in (1, 5, 7, 8, 9, 10)
    ]
    told = tried(function(body), rows).problems
    assert "6 of 6 rows" in told
    assert told.index("3 rows") < told.index("1 row:")
    assert told.count("from their beginning:") == code.SHOWN_ERRORS
    assert "Not shown: 1 more error." in told
    assert fence("word " * 5) in told
    assert "[[ ##" not in told
    assert fence("r" * code.SHOWN_CHARACTERS) in told
    assert "4.321" not in told
    assert len(told) < 3 * 4 * (code.SHOWN_CHARACTERS + 100)


def test_errors_that_differ_in_their_numbers_alone_are_told_as_one():
    told = tried(function("float(f'a{len(output)}')"), ROWS).problems
    assert "10 rows:" in told
    assert told.count("from their beginning:") == 1


def test_rows_that_are_not_run_within_the_time_of_a_trial_have_no_number(monkeypatch):
    monkeypatch.setattr(code, "TRIAL", Limits(row_seconds=0.05, seconds=0.1))
    trial = tried("def score(output, input, references):\n    while True:\n        pass", ROWS)
    assert trial.share == 0
    assert "0.1 seconds" in trial.why


def writing(*sources, rows=ROWS, **options):
    """The outcome of functions that a model writes in turn, and the prompts."""
    left = iter(sources)
    with GivenModel(lambda prompt: {"source": next(left)}) as model, dspy.context(lm=model.lm()):
        asked = {"name": "n", "meaning": "m", "parse_tries": 2, **options}
        return written_code(CodeGenerator(), ASKED, rows, **asked), model.prompts


def test_a_function_that_works_takes_one_request():
    found, prompts = writing(LENGTH)
    assert (found.usage.requests, len(prompts), found.trial.share, found.why) == (1, 1, 1, "")


def test_a_function_is_mended_twice_by_what_went_wrong_on_all_rows():
    found, prompts = writing(function("1 / 0"), function("1.0"), LENGTH)
    assert (found.usage.requests, len(prompts)) == (3, 3)
    assert found.trial.metric.source == LENGTH
    assert fence(function("1 / 0")) in prompts[1]
    assert "10 of 10 rows" in prompts[1]
    assert fence(function("1.0")) in prompts[2]
    assert "the number is 1 on all 10 rows" in prompts[2]


def test_after_two_repairs_it_is_given_up_with_the_last_reason():
    found, prompts = writing(*["import os"] * (1 + REPAIRS), LENGTH)
    assert len(prompts) == found.usage.requests == 1 + REPAIRS == 3
    assert found.trial is None
    assert found.why.startswith("the source text was refused: the source is not taken: line 1: ")
    assert found.why.endswith(", after 2 repairs")


def test_a_long_attempt_is_shown_in_part():
    _, prompts = writing("#" * 90_000, LENGTH)
    assert 20_000 < len(prompts[1]) < 40_000


def test_a_failed_request_ends_the_writing_with_its_status_and_all_usage():
    answers = iter([{"source": "x"}, "no fields", "no fields"])
    with GivenModel(lambda prompt: next(answers)) as model, dspy.context(lm=model.lm()):
        found = written_code(CodeGenerator(), ASKED, ROWS, name="n", meaning="m", parse_tries=2)
    assert (found.trial, found.status, found.usage.requests) == (None, "unparsable", 3)
    assert found.why
