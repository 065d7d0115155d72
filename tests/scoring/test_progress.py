"""A bar is drawn on a terminal and in a notebook, and never into a pipe."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from metricsmith.scoring.progress import progress_bar


class Stream(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.fixture
def notebook(monkeypatch):
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    return shell


def drawn(monkeypatch, *, terminal, shown=True):
    stream = Stream(terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar(shown, total=2, desc="scoring", file=stream) as bar:
        bar.update(2)
    return "scoring: 100%" in stream.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_has_a_bar_and_a_pipe_has_none(monkeypatch, terminal):
    assert drawn(monkeypatch, terminal=terminal) is terminal


def test_a_notebook_has_a_bar_though_its_stream_is_no_terminal(monkeypatch, notebook):
    assert drawn(monkeypatch, terminal=False)
    notebook.config = {"TerminalIPythonApp": {}}
    assert not drawn(monkeypatch, terminal=False)


def test_nothing_is_drawn_where_nothing_is_wanted(monkeypatch, notebook):
    assert not drawn(monkeypatch, terminal=True, shown=False)
