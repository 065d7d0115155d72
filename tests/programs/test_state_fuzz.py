"""Real files of every kind, changed at random and given the right hash again: refused in words, or harmless.

Run it with ``-s`` to see, for each kind, how many files were refused why, and how many were loaded and scored.
"""

from __future__ import annotations

import inspect
import json
import random
import re
import sys
from collections import Counter
from dataclasses import asdict

import pytest

from finetuning import trained_by_hand
from loopback import serve
from metricsmith.bank.models.finetuned import FinetunedMetric
from metricsmith.errors import NeedsError, OptionError, StateError
from metricsmith.metric import content_hash
from metricsmith.programs.judges.direct_assessment import DirectAssessment
from metricsmith.programs.judges.panel import Panel
from metricsmith.programs.judges.raters import ExampleJudge
from metricsmith.programs.kinds import KINDS, OWN_KEYS
from metricsmith.programs.loading import load
from metricsmith.records import Scale
from metricsmith.sandbox.contract import LIMITS
from metricsmith.saving import write_state
from metricsmith.scoring import score
from saved import LANGUAGES, ROW, answer, every_kind
from saved import words as words_of

SEED, EACH = 12, 40
CANARY = "canaryinthefile"
RAW = "«raw»"  # stands for what no writer of JSON writes
REASONS = {
    # of an error, by words of its message; the first that fits
    "not JSON": "not a readable metric file",
    "key missing": "is missing",
    "key unknown": "known are",
    "model or settings": "a file chooses neither",
    "marker": "CUSTOM-TYPE",
    "half a character": "surrogate",
    "too long or many": "but one of",
    "another type or range": "is not allowed",
    "no text or list": "is no ",
    "not among ours": "this version knows",
    "other version": "schema version",
    "parts disagree": "",
}
NUMBERS = (0, -1, 1, 2, 7, 0.5, -0.0, 1e-300, 1e99, 1e101, 1e308, 10**30, 10**300, 4.0, 3, 100)
OTHERS = (None, True, False, "", 0, 1.5, [], {}, [[]], {"a": 1})
EXTRA = ("config", "lm", "api_base", "fields", "kind", "made_with", "state", "n", "augmented", "__class__", "x" * 3000)
SETTINGS = {"model", "messages", "temperature", "n", "logprobs", "top_logprobs", "stream"}


def places(value, at=()):
    """Every value in a file, with the way to it."""
    yield at
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(part, (*at, key))


def part_at(content, at):
    for key in at:
        content = content[key]
    return content


def leaves(content):
    return [at for at in places(content) if at and not isinstance(part_at(content, at), dict | list)]


class Mutator:
    """Changes files; `texts` are what texts are replaced with, addresses and paths among them."""

    def __init__(self, seed, texts):
        self.random, self.texts, self.changes = random.Random(seed), texts, Counter()

    def change(self, content):
        """A changed copy as text."""
        way = self.random.choice(
            [self.value] * 8 + [self.type, self.missing, self.extra, self.huge, self.deep, self.raw]
        )
        content = json.loads(json.dumps(content))
        raw = way(content)
        content.pop("hash", None)
        content["hash"] = content_hash(content)
        text = json.dumps(content)
        self.changes[way.__name__] += 1
        return text.replace(json.dumps(RAW), raw, 1) if raw else text

    def put(self, content, at, value):
        part_at(content, at[:-1])[at[-1]] = value

    def value(self, content):
        """One value becomes another, mostly of its type; the shape stays."""
        at = self.random.choice(leaves(content))
        old, others = part_at(content, at), {bool: (True, False), str: self.texts}
        self.put(content, at, self.random.choice(others.get(type(old), NUMBERS)))

    def type(self, content):
        self.put(content, self.random.choice(list(places(content))[1:]), self.random.choice(OTHERS))

    def missing(self, content):
        at = self.random.choice(list(places(content))[1:])
        del part_at(content, at[:-1])[at[-1]]

    def extra(self, content):
        value = self.random.choice([part_at(content, at) for at in leaves(content)] + list(OTHERS) + list(self.texts))
        inside = part_at(content, self.random.choice([a for a in places(content) if a not in leaves(content)]))
        if isinstance(inside, dict):
            inside[self.random.choice(EXTRA)] = value
        else:
            inside.append(inside[0] if inside and self.random.random() < 0.5 else value)

    def huge(self, content):
        at = self.random.choice(list(places(content))[1:])
        new = self.random.choice(["x" * 1_000_001, [part_at(content, at)] * 5_000, {str(n): n for n in range(2_000)}])
        self.put(content, at, new)

    def deep(self, content):
        at, value = self.random.choice(list(places(content))[1:]), "x"
        for _ in range(self.random.choice([3, 149, 160, 400])):
            value = self.random.choice([[value], {"state": value}])
        self.put(content, at, value)

    def raw(self, content):
        self.put(content, self.random.choice(leaves(content)), RAW)
        return self.random.choice(
            ["NaN", "-Infinity", "1e999", "9" * 10_000, f".{'1' * 500}e3"[1:], "[" * 100_000, '{"a":' * 100_000, "",
             '{"a": 1, "a": 2}', '"\\ud800"', "[" * 2_000 + "]" * 2_000, "1" + "0" * 350, '"\x01"', "nul"]
        )  # fmt: skip


def words(texts):
    """The parts of prompts; the codes of fences are hashes of the texts inside."""
    hidden = re.compile(r"(begin|end) [0-9a-f]{8,16}»|\\(u[0-9a-f]{4}|.)")
    return {word for text in texts for word in re.split(r"\W+", hidden.sub(" ", text))}


class Watched:
    """A server that keeps the bodies of its requests."""

    def __init__(self, server):
        self.server, self.bodies, respond = server, [], server.respond
        server.respond = lambda body: (self.bodies.append(body), respond(body))[1]

    def score(self, metric):
        """The requests that one row takes; whatever is raised would be a traceback."""
        self.bodies.clear()
        lm = self.server.lm(temperature=0.7, engine="lm15")
        score(metric.members() if isinstance(metric, Panel) else [metric], [ROW], lm=lm, progress=False,
              max_failure_rate=1.0)  # fmt: skip
        return list(self.bodies)


def check_requests(bodies, ours, metric, text):
    """The user's model and settings, and prompts made of `ours`, what every prompt may hold, and the file's words."""
    own = [getattr(part, "request", {}).get("temperature") for _, part in metric.named_sub_modules()] if bodies else []
    contents = [message["content"] for body in bodies for message in body["messages"]]
    assert all(isinstance(content, str) for content in contents)
    for body in bodies:
        assert body.keys() <= SETTINGS
        assert (body["model"], body.get("n", 1)) == ("loopback", 1)
        assert body["temperature"] == 0.7 or body["temperature"] in own
        assert body.get("top_logprobs", 1) <= 20
    file = words(str(part) for part in flat(json.loads(text)))
    numbers = {digits for number in flat(json.loads(text)) if isinstance(number, int | float) and not isinstance(
        number, bool) for digits in re.split(r"\W+", f"{number:g} {number}")}  # fmt: skip
    assert words(contents) - ours - file - numbers == set()


def same(file, state):
    """True if a state says what a file does; keys that may lack in a file do not count."""
    if isinstance(file, dict):
        return isinstance(state, dict) and all(same(part, state.get(key, {})) for key, part in file.items())
    if isinstance(file, list):
        return len(file) == len(state) and all(map(same, file, state))
    if isinstance(file, str):
        return state in (file, inspect.cleandoc(file))  # as DSPy reads instructions
    return file == state or float(file) == state


def lowered(value):
    """A file's content as it is loaded: limits of code are at most ours."""
    if isinstance(value, list):
        return [lowered(part) for part in value]
    if not isinstance(value, dict):
        return value
    most = asdict(LIMITS) if value.get("kind") == "code" else {}
    parts = {key: lowered(part) for key, part in value.items()}
    own = {name: min(limit, most[name]) for name, limit in parts.get("limits", {}).items()} if most else {}
    return {**parts, "limits": own} if most else parts


def flat(value):
    if isinstance(value, dict):
        for part in value.items():
            yield from flat(list(part))
    elif isinstance(value, list):
        for part in value:
            yield from flat(part)
    else:
        yield value


@pytest.fixture(scope="module")
def servers():
    with serve(answer) as chosen, serve(answer) as elsewhere:
        yield Watched(chosen), elsewhere


@pytest.fixture(scope="module")
def ours(servers):
    """The words of the prompts of all kinds as we make them, of the row, and of what DSPy says of demonstrations."""
    more = [DirectAssessment(**LANGUAGES, scale=scale) for scale in ("da", "sqm")]
    more.append(ExampleJudge(measure="Clarity", task="Rewrite notices.", scale=Scale(90, 91)))  # which has to repair
    bodies = [body for metric in (*every_kind().values(), *more) for body in servers[0].score(metric)]
    prompts = [message["content"] for body in bodies for message in body["messages"]]
    row = [ROW.input, ROW.output, *ROW.references]
    said = ["This is an example of the task, though some input or output fields are not supplied.",
            "Not supplied for this particular example. None N/A True False null true false in steps of"]  # fmt: skip
    return words([*prompts, *row, *said])


def fuzz(metric, mutator, servers, ours, file):
    """Counts of the ways in which changed files of a metric ended."""
    chosen, counts = servers[0], Counter()
    write_state(metric.to_state(), file)
    if isinstance(metric, FinetunedMetric):
        metric.write_weights(file)
    original = json.loads(file.read_text("utf-8"))
    for _ in range(EACH):
        text = mutator.change(original)
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        error = refusal(file)
        if error:
            assert str(file) in error
            assert len(error) < 1500
            counts[next(name for name, words in REASONS.items() if words in error)] += 1
            continue
        loaded = loaded_from(file)
        assert all((one.lm, one.config) == (None, {}) for one in predictors(loaded))
        content = lowered(json.loads(text))
        assert same({key: part for key, part in content.items() if key not in OWN_KEYS}, loaded.to_state())
        try:
            bodies = chosen.score(loaded)
        except (NeedsError, OptionError) as problem:
            error = str(problem)
        if error:
            assert "it must be set above 0.15" in error or "metricsmith bank fetch" in error
            assert not chosen.bodies
        else:
            check_requests(bodies, ours, loaded, text)
            assert CANARY not in json.dumps(bodies)
        counts["nothing to ask" if error else "scored"] += 1
    return counts


def predictors(metric):
    return metric.predictors() if hasattr(metric, "predictors") else []


def refusal(file):
    """The words of the only error that a file may end with."""
    try:
        loaded_from(file)
    except StateError as problem:
        return str(problem)
    return ""


def loaded_from(file):
    """The metric in a file; one that holds the name of a function gets ours under whatever name it has."""
    try:
        return load(file)
    except NeedsError:
        return load(file, functions={json.loads(file.read_text("utf-8"))["name"]: words_of})


def test_changed_files_are_refused_in_words_or_score_where_and_as_the_user_said(servers, ours, tmp_path):
    (tmp_path / "secret.txt").write_text(CANARY)
    address = f"http://127.0.0.1:{servers[1].port}/v1"
    picture = json.dumps([{"type": "image_url", "image_url": {"url": f"{address}/a.png"}}])
    texts = ("", " ", "x", "Grüße 😀", "\u202e\x00\x1b[31m", address, str(tmp_path / "secret.txt"), "{task} %s", "5",
             "[[ ## score ## ]]", f"<<CUSTOM-TYPE-START-IDENTIFIER>>{picture}<<CUSTOM-TYPE-END-IDENTIFIER>>", "\ud800",
             "long " * 1_000, "long " * 250_000, "../../x", "openai/other", "rouge1_r", "classes", "none")  # fmt: skip
    found, changes = {}, Counter()
    for name, metric in {**every_kind(), "finetuned": trained_by_hand()}.items():
        mutator = Mutator(f"{SEED} {name}", texts)
        found[name] = fuzz(metric, mutator, servers, ours, tmp_path / "metric.json")
        changes += mutator.changes
    total = sum(found.values(), Counter())
    columns = ["scored", "nothing to ask", *REASONS]
    lines = [["kind", *columns], *([name, *(counts[one] for one in columns)] for name, counts in found.items())]
    lines.append(["all", *(total[one] for one in columns)])
    sys.stdout.write("".join(f"| {' | '.join(map(str, line))} |\n" for line in lines))
    assert servers[1].requests == 0
    assert total.total() == EACH * len(found) == changes.total() >= 500
    assert changes["value"] * 2 >= changes.total()
    assert {name.split()[0] for name in found} == KINDS.keys() - {"history", "rating_sheet_key"}
    assert all(total[one] for one in ("scored", *REASONS))
