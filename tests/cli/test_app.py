"""The front door: help under both names, completion in the shells, defaults from the environment, exit codes."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from loopback import scripted, serve
from metricsmith.cli import app
from metricsmith.cli.app import COMMANDS, EXIT_CODES
from metricsmith.cli.options import ModelOptions

SOURCE = Path(app.__file__).parents[2]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "command_line.md"
GROUPS = {"bank": ["list", "show", "fetch", "check"], "store": ["info", "export", "verify", "prune"],
          "specialist": ["build", "evaluate"]}  # fmt: skip
PLACES = [[], *([name] for name in COMMANDS), *([group, name] for group, names in GROUPS.items() for name in names)]
PROGRAM = "import sys; from metricsmith.cli import main; main()"
LISTED = "import atexit; atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr))"


def completed(line, shell="bash", program=PROGRAM):
    """The lines that the program prints where a shell has one completed, and the modules that it has imported."""
    words = line.split(" ")
    asked = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1), "_TYPER_COMPLETE_ARGS": line,
             "_TYPER_COMPLETE_FISH_ACTION": "get-args"}  # fmt: skip
    asked = {name: value for name, value in asked.items() if name.startswith("COMP") == (shell == "bash")}
    env = {**os.environ, **asked, "_METRICSMITH_COMPLETE": f"complete_{shell}", "PYTHONPATH": str(SOURCE)}
    listed = program.replace("import sys;", f"import sys; {LISTED};")
    done = subprocess.run([sys.executable, "-c", listed], env=env, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr.split()


@pytest.mark.parametrize("place", PLACES, ids=" ".join)
def test_h_is_help_on_every_command_and_group(run, place):
    code, out, err = run(*place, "-h")
    assert (code, err) == (0, "")
    assert out == run(*place, "--help")[1]
    assert "-h, --help" in out
    assert out.startswith(" ".join(["Usage: metricsmith", *place]))


def test_the_word_help_is_help_of_all_and_of_one_command(run):
    assert run("help") == run("--help")
    assert run("help", "bank", "list") == run("bank", "list", "--help")


def test_a_misspelt_command_names_the_nearest(run):
    for words in (["indcue", "data.csv"], ["help", "indcue"]):
        code, _, err = run(*words)
        assert code == 2
        assert "Did you mean 'induce'?" in err


def test_the_codes_stand_alike_in_the_help_and_on_the_page(run):
    told = run("--help")[1].split("Exit codes:\n")[1]
    assert {int(code): text for code, text in re.findall(r"^ *(\d+)  (.+)$", told, re.MULTILINE)} == EXIT_CODES
    lines = re.findall(r"^\| (\d+) \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert {int(code): text for code, text in lines} == EXIT_CODES


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_commands_and_options_are_completed_in_every_shell(shell):
    assert "induce" in completed("metricsmith ind", shell)[0]
    assert re.findall(r"--max[a-z-]+", completed("metricsmith induce --max", shell)[0]) == [
        "--max-requests", "--max-tokens", "--max-usd", "--max-seconds",
    ]  # fmt: skip
    found = completed("metricsmith bank ", shell)[0]
    assert all(name in found for name in GROUPS["bank"])
    assert "--models" in completed("metricsmith bank list --mo", shell)[0]


def test_a_line_is_completed_by_importing_its_command_alone_and_no_model_library():
    _, modules = completed("metricsmith store info --js")
    assert "metricsmith.cli.store" in modules
    assert not {f"metricsmith.cli.{name}" for name in ("induce", "score", "bank", "validate")} & set(modules)
    for line in ("metricsmith ", "metricsmith score --out"):
        _, modules = completed(line)
        assert not {"dspy", "litellm", "scipy", "sklearn", "pandas", "datasets", "torch"} & set(modules)


def on_terminal(program, home):
    """The text that a program that a bash starts writes to a pseudo terminal."""
    mine, theirs = pty.openpty()
    env = {**os.environ, "HOME": str(home), "TERM": "xterm", "PYTHONPATH": str(SOURCE)}
    started = subprocess.Popen(["bash", "-c", program], stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(mine, 65536):
            seen += part
    except OSError:  # the other side is closed
        pass
    os.close(mine)
    assert started.wait() == 0, seen
    return seen.decode()


def test_completion_is_shown_and_installed_on_a_guarded_terminal(tmp_path):
    called = f"{sys.executable} -c '{PROGRAM}'"
    shown = on_terminal(f"{called} --show-completion; true", tmp_path)
    assert "complete -o default -F _metricsmith_completion metricsmith" in shown
    said = on_terminal(f"{called} --install-completion; true", tmp_path)
    assert "bash completion installed in" in said
    assert "\\x1b" not in said
    script = tmp_path / ".bash_completions" / "metricsmith.sh"
    assert script.read_text("utf-8").split() == shown.split()
    (tmp_path / "metricsmith").write_text(f'#!/bin/sh\nexec {called} "$@"\n')
    (tmp_path / "metricsmith").chmod(0o755)
    typed = 'COMP_WORDS=(metricsmith meta); COMP_CWORD=1; _metricsmith_completion metricsmith; echo "${COMPREPLY[@]}"'
    assert on_terminal(f'PATH="{tmp_path}:$PATH"; source {script}; {typed}', tmp_path).strip() == "meta-eval"


def test_the_model_and_its_address_may_stand_in_the_environment(run, own, tmp_path, monkeypatch):
    asked = ("induce", own, "--target", "rating", "--bank", "generated", "--out", tmp_path / "out", "--json")
    code, _, err = run(*asked)
    assert code == 2
    assert "pass --lm MODEL" in err
    with serve(scripted) as server, serve(scripted) as other:
        monkeypatch.setenv("METRICSMITH_LM", "openai/from-environment")
        monkeypatch.setenv("METRICSMITH_API_BASE", f"http://127.0.0.1:{server.port}/v1")
        code, out, err = run(*asked)
        assert code == 0, err
        assert "openai/from-environment" in json.loads(out)["signature"]
        asked_before = server.requests
        assert asked_before > 0
        base = f"http://127.0.0.1:{other.port}/v1"
        code, out, err = run(*asked, "--lm", "openai/from-option", "--api-base", base, "--force")
        assert code == 0, err
        assert "openai/from-option" in json.loads(out)["signature"]
        assert server.requests == asked_before
        assert other.requests > 0


def test_an_empty_variable_counts_as_unset_and_an_address_alone_asks_nobody(run, own, tmp_path, monkeypatch):
    monkeypatch.setenv("METRICSMITH_LM", "")
    monkeypatch.setenv("METRICSMITH_API_BASE", "http://127.0.0.1:9/v1")
    basics = (
        "induce",
        own,
        "--target",
        "rating",
        "--bank",
        "none",
        "--metric-columns",
        "good",
        "--out",
        tmp_path / "o",
    )
    code, _, err = run(*basics)
    assert code == 0, err
    assert ModelOptions(None, "http://127.0.0.1:9/v1").language_model() is None
    code, _, err = run(*basics, "--api-base", "http://127.0.0.1:10/v1")
    assert code == 2
    assert "--api-base needs --lm" in err


@pytest.mark.parametrize("command", ["induce", "score", "probe", "compare", "mqm", "explain", "demo"])
def test_the_variables_are_named_in_the_help(run, command):
    told = " ".join(run(command, "-h")[1].split())
    assert "[env var: METRICSMITH_LM]" in told
    assert "[env var: METRICSMITH_API_BASE]" in told


def test_the_lines_of_the_page_reach_a_server_that_offers_models():
    """`/v1/chat/completions` is where ollama and vLLM answer; an address without `/v1` is not."""
    lines = re.findall(r"`--lm (\w+)/\S+(?: --api-base http://HOST:\d+(\S*))?`", PAGE.read_text("utf-8"))
    assert lines == [("ollama_chat", ""), ("ollama_chat", "/v1"), ("hosted_vllm", ""), ("openai", "/v1")]
    for provider, path in lines:
        with serve(scripted) as server:
            lm = ModelOptions(f"{provider}/llama3.1", f"http://127.0.0.1:{server.port}{path or '/v1'}").language_model()
            lm("[[ ## score ## ]]", cache=False)
            assert server.requests == 1
            assert not server.wrong


def test_a_reader_that_goes_away_ends_with_one_and_no_traceback():
    mine, theirs = os.pipe()
    os.close(mine)
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", PROGRAM, "bank", "list"]
    done = subprocess.run(command, env=env, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (1, "")
