"""Tasks side by side in the caller's context; one thread for numerical libraries where it is asked for, no longer."""

from __future__ import annotations

import contextvars
import threading

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  # loads a BLAS of its own: a library counts from when it is loaded
from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: F401  # loads OpenMP
from threadpoolctl import threadpool_info, threadpool_limits

from metricsmith.meta_evaluation import evaluate_task, rank_table
from metricsmith.optimizers.fitting import fit
from metricsmith.threads import in_threads, one_thread

GOLD = np.random.default_rng(0).normal(size=(3, 9))


def most(api="blas"):
    return max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == api)


@pytest.fixture(autouse=True)
def two_threads():
    """Two threads, whatever the machine and its settings give."""
    with threadpool_limits(2):
        if min(most(), most("openmp")) < 2:
            pytest.skip("the numerical libraries here know one thread only")
        yield


def test_the_limit_holds_inside_and_ends_after_an_error_too():
    seen = []

    @one_thread()
    def failing():
        seen.append((most(), most("openmp")))
        with one_thread():
            seen.append((most(), most("openmp")))
        seen.append((most(), most("openmp")))
        raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert seen == [(1, 1)] * 3
    assert most() == most("openmp") == 2


def test_evaluations_of_metrics_and_fits_ask_for_it(monkeypatch):
    seen = []

    def measure(metric, gold):
        seen.append(most())
        return float((metric * gold).mean())

    evaluate_task("own", measure, {"a": GOLD + 1}, GOLD, resamples=2)
    rank_table(measure, {"a": GOLD + 1, "b": GOLD - 1}, GOLD, resamples=2)
    monkeypatch.setattr("metricsmith.optimizers.fitting.check_learnable", lambda ratings: seen.append(most()))
    with pytest.raises(TypeError):
        fit(None, None, None, None, [], None)
    assert set(seen) == {1}
    assert most() == 2


VALUE = contextvars.ContextVar("VALUE", default="none")


def test_tasks_run_side_by_side_in_copies_of_the_context_and_answer_in_order():
    together = threading.Barrier(3, timeout=10)

    def task(number):
        together.wait()
        seen = VALUE.get()
        VALUE.set("changed")
        return number, seen, threading.current_thread().name.startswith("own name")

    token = VALUE.set("given")
    try:
        done = in_threads([lambda number=number: task(number) for number in range(3)], 8, "own name")
        assert VALUE.get() == "given"
    finally:
        VALUE.reset(token)
    assert done == [(0, "given", True), (1, "given", True), (2, "given", True)]
    assert in_threads([], 8, "own name") == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_first_error_in_order_is_raised_when_running_tasks_have_ended_early_and_waiting_ones_are_dropped(error):
    begun, ended, stop = [], [], threading.Event()

    def running():
        begun.append("running")
        ended.append(stop.wait(10))

    def failing():
        begun.append("failing")
        raise error("first")

    def waiting():
        begun.append("waiting")

    with pytest.raises(error, match="first"):
        in_threads([failing, running, running, waiting, waiting], 2, "own name", on_error=stop.set)
    assert ended
    assert all(ended)
    assert "waiting" not in begun


def test_an_error_drops_what_has_not_begun():
    begun, go = [], threading.Event()

    def ask(number):
        begun.append(number)
        if number == 0:
            raise ValueError("planted")
        go.wait(0.2)
        return number

    with pytest.raises(ValueError, match="planted"):
        in_threads([lambda number=number: ask(number) for number in range(50)], 2, "own name")
    assert len(begun) < 10
    assert in_threads([lambda: 1, lambda: 2], 8, "own name") == [1, 2]
