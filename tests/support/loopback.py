"""An OpenAI-compatible server on the loopback interface, with faults on request.

What it answers is a function of the prompt; whether and how a request fails is a seeded function of the
request's content and of how often that content was asked for, never of arrival order. One event loop in a
thread of its own serves all connections; answers are computed in it and must not block.

As a program it serves benchmarks from a process of its own, and tells its port in one line of JSON:
``python tests/support/loopback.py --delay 0.05``. ``GET /stats`` returns what it counted.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import inspect
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from faults import ANSWERS, CODES, Fault, Faults, Odd, draw, spoil, written
from metricsmith.testing import GivenAnswer, message_text, token_logprobs
from wire import Connection

if TYPE_CHECKING:
    import dspy

Answer = Callable[..., dict[str, Any] | str | GivenAnswer]


class Seen(NamedTuple):
    """One request: which content, which attempt at it, what it met, and how many choices it asked for."""

    content: str
    attempt: int
    fault: Fault | None
    n: int


@dataclass
class Loopback:
    """A running server and what it saw.

    What a request meets is settled and booked when it comes in; the response goes out after the delay.

    Parameters
    ----------
    answer : callable
        From the prompt, and from the choice's number if it takes two arguments, to the fields of the answer, or to
        its whole text where another format than DSPy's chat format is asked for; a `GivenAnswer` brings
        log-probabilities besides.
    server_errors, malformed : float
        Shares of requests that meet a status 500, and small talk instead of an answer.
    always : int
        A status that every request meets.
    seed : int
    delay : float
        Seconds before each answer.
    script : Faults
        Any other faults.
    keep : bool
        Whether prompts and the log are kept; benchmarks turn it off.

    Attributes
    ----------
    prompts : list of str
    log : list of Seen
    statuses : Counter of int
        By HTTP status; 0 where no answer was given.
    faults : Counter of Fault
    wrong : list of Exception
        What the callable raised; such a request meets a status 500.
    """

    answer: Answer
    server_errors: float = 0.0
    malformed: float = 0.0
    always: int = 0
    seed: int = 0
    delay: float = 0.0
    script: Faults = field(default_factory=Faults)
    keep: bool = True
    port: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    prompts: list[str] = field(default_factory=list)
    log: list[Seen] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    faults: Counter[Fault] = field(default_factory=Counter)
    attempts: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)
    wrong: list[Exception] = field(default_factory=list)
    connections: set[Connection] = field(default_factory=set)

    def __post_init__(self) -> None:
        required = [
            parameter
            for parameter in inspect.signature(self.answer).parameters.values()
            if parameter.default is parameter.empty and parameter.kind <= parameter.POSITIONAL_OR_KEYWORD
        ]
        self.by_choice = len(required) > 1
        self.wait = 0.0  # seconds until the response that is being made goes out
        self.texts: dict[str, str] = {}

    @property
    def requests(self) -> int:
        """Requests that were answered, or dropped."""
        return sum(self.statuses.values())

    @property
    def malformed_sent(self) -> int:
        """Small talk sent instead of an answer."""
        return self.faults[Fault.CHATTER]

    def lm(self, **settings: Any) -> dspy.LM:
        """A DSPy language model that talks to this server."""
        import dspy

        return dspy.LM(
            "openai/loopback",
            api_base=f"http://127.0.0.1:{self.port}/v1",
            api_key="none",
            cache=False,
            **settings,
        )

    def stats(self) -> dict[str, Any]:
        """Counts so far."""
        return {
            "requests": self.requests,
            "most_in_flight": self.most_in_flight,
            "contents": len(self.attempts),
            "statuses": {str(status): count for status, count in self.statuses.items()},
            "faults": {str(fault): count for fault, count in self.faults.items()},
            **self.tokens,
        }

    def take(self, body: dict[str, Any]) -> tuple[float, int, dict[str, Any] | Odd]:
        """A request has come in: how many seconds to wait, and what to send then, which `leave` is told of."""
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        self.wait = self.delay
        try:
            status, content = self.respond(body)
        except Exception as problem:
            self.wrong.append(problem)
            status, content = 500, _error(500, f"the test's answer raised {problem!r}")
        return self.wait, status, content

    def leave(self, status: int, content: dict[str, Any] | Odd) -> None:
        """A response goes out."""
        self.in_flight -= 1
        self.statuses[0 if isinstance(content, Odd) and content.sent == 0 else status] += 1

    def respond(self, body: dict[str, Any]) -> tuple[int, Any]:
        """Status and content for one request; tests may put another function here."""
        messages, n = body["messages"], body.get("n") or 1
        content, asked = self._content(messages)
        prompt = asked if len(messages) == 1 else "\n".join(map(message_text, messages))
        attempt = self.attempts[content]
        self.attempts[content] += 1
        self.texts.setdefault(content, asked)
        fault = self._fault(asked, attempt, n)
        self.wait = self.script.delay(self.delay, asked, attempt, self.seed)
        self.wait += self.script.slow if fault is Fault.SLOW else 0.0
        if self.keep:
            self.prompts.append(prompt)
            self.log.append(Seen(content, attempt, fault, n))
        if fault is not None:
            self.faults[fault] += 1
        if self.always:
            return self.always, _error(self.always, f"always {self.always}")
        if fault in CODES:
            code, words = CODES[fault]
            if fault is not Fault.RETRY_AFTER:
                return code, _error(code, words)
            payload = json.dumps(_error(code, words)).encode()
            return code, Odd(payload, (("retry-after", f"{self.script.retry_after:g}"),))
        return 200, self._answered(body, prompt, n, fault)

    def _content(self, messages: list[dict[str, Any]]) -> tuple[str, str]:
        """The content that a request counts for, and its text: its own, or that of the request it goes on from."""
        digest, hashes = hashlib.sha256(), []
        for message in messages:
            digest.update(json.dumps(message).encode())
            hashes.append(digest.copy().hexdigest()[:16])
        for known in reversed(hashes):
            if known in self.texts:
                return known, self.texts[known]
        return hashes[-1], "\n".join(map(message_text, messages))

    def _fault(self, prompt: str, attempt: int, n: int) -> Fault | None:
        if self.always:
            return None
        if self.server_errors or self.malformed:
            chance = draw(prompt, attempt, self.seed)
            if chance < self.server_errors:
                return Fault.ERROR_500
            if chance < self.server_errors + self.malformed:
                return Fault.CHATTER
        return self.script.pick(prompt, attempt, self.seed, n)

    def _answered(self, body: dict[str, Any], prompt: str, n: int, fault: Fault | None) -> dict[str, Any] | Odd:
        spoken = fault if fault in ANSWERS else None
        texts, spreads = [], []
        for choice in range(n):
            given = self.answer(prompt, choice) if self.by_choice else self.answer(prompt)
            given = given if isinstance(given, GivenAnswer) else GivenAnswer(given)
            fields, spread = given.content, given.probabilities
            spoilt = fault is Fault.ONE_MALFORMED and choice == n // 2
            whole = isinstance(fields, str) and not spoilt and spoken is None
            texts.append(fields if whole else written(fields, Fault.CHATTER if spoilt else spoken))
            spreads.append(token_logprobs(texts[-1], spread, body.get("top_logprobs", 0)) if spread else None)
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": sum(len(text) // 4 for text in texts)}
        self.tokens.update(usage)
        usage["total_tokens"] = sum(usage.values())
        choices = [
            {"index": index, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            for index, text in enumerate(texts)
        ]
        if body.get("logprobs"):
            choices = [{**choice, "logprobs": spread} for choice, spread in zip(choices, spreads, strict=True)]
        content = {
            "id": "1", "object": "chat.completion", "created": 1, "model": body["model"], "choices": choices,
            "usage": usage,
        }  # fmt: skip
        return (
            content
            if fault is spoken or fault in (Fault.SLOW, Fault.ONE_MALFORMED)
            else spoil(fault, content, self.script)
        )


def _error(status: int, words: str) -> dict[str, Any]:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": words, "type": kind, "code": str(status)}}


async def listen(loopback: Loopback, port: int = 0) -> asyncio.Server:
    """Start to serve in the loop that runs."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(loopback, loop), "127.0.0.1", port, backlog=1024)
    loopback.port = server.sockets[0].getsockname()[1]
    return server


@contextmanager
def serve(answer: Answer, **faults: Any) -> Iterator[Loopback]:
    """Run a server for the length of a block, in a thread of its own."""
    loopback = Loopback(answer, **faults)
    ready, finished, loop = threading.Event(), asyncio.Event(), asyncio.new_event_loop()

    async def main() -> None:
        server = await listen(loopback)
        ready.set()
        await finished.wait()
        server.close()
        while loopback.connections:
            for connection in tuple(loopback.connections):
                connection.abort()
            await asyncio.sleep(0)

    def run() -> None:
        try:
            loop.run_until_complete(main())
        finally:
            loop.close()

    thread = threading.Thread(target=run, daemon=True, name="loopback")
    thread.start()
    ready.wait(10)
    try:
        yield loopback
    finally:
        loop.call_soon_threadsafe(finished.set)
        thread.join()


@contextmanager
def apart(*options: str) -> Iterator[int]:
    """Run `scripted` in a process of its own for the length of a block; gives the port."""
    command = [sys.executable, __file__, "--follow", *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["port"]
        finally:
            process.stdin.close()
            process.wait(10)


QUALITIES = (
    "Brevity", "Plain words", "Complete facts", "Correct facts", "Polite tone", "Clear structure", "Active voice",
    "Concrete dates", "Whole sentences", "Direct address", "Useful order", "No filler", "Consistent terms",
    "Fitting length", "Clear duty", "Plain numbers", "Named contact", "One idea each",
)  # fmt: skip


DAMAGES = ("Drop facts", "Repeat words")


def scripted(prompt: str) -> dict[str, Any]:
    """Answers for every signature of the package; judges prefer short words and short texts, with noise."""
    asked = prompt.rsplit("Respond with the corresponding output fields", 1)[-1]
    if "`axes`" in asked or "## axes ##" in asked:
        return {"axes": [{"name": q, "meaning": f"The output shows {q.lower()}."} for q in QUALITIES[:15]]}
    if "`dimensions`" in asked or "## dimensions ##" in asked:
        shares = zip(QUALITIES, (50, 30, 20), strict=False)
        return {"dimensions": [{"name": q, "meaning": f"It shows {q.lower()}.", "weight": w} for q, w in shares]}
    if "## levels ##" in asked:
        return {"levels": [f"Level {number} of five." for number in range(1, 6)]}
    if "## steps ##" in asked:
        return {"steps": ["Look for what the criterion names.", "Weigh what you found."]}
    if "## strategies ##" in asked:
        return {"strategies": [{"name": name, "description": f"{name} wherever they stand."} for name in DAMAGES]}
    if "## outputs ##" in asked:
        words = _fenced(prompt, "output").split()
        return {"outputs": [" ".join(words[: len(words) // 2]), " ".join([*words, "indeed"] * 2)]}
    if "## changed ##" in asked:
        return {"reason": "The order is free.", "declines": "False", "changed": _fenced(prompt, "output") + "!"}
    if "`names`" in asked or "## names ##" in asked:
        cards = prompt.rsplit("[[ ## cards ## ]]", 1)[-1]
        named = [line[3:] for line in cards.splitlines() if line.startswith("## ")]
        return {"reasoning": "The later cards look better.", "names": named[::-1]}
    if "## proposed_instruction ##" in asked or "`proposed_instruction`" in asked:
        return {"proposed_instruction": "Give the number that the raters would give, and look at the words first."}
    if "`observations`" in asked or "## observations ##" in asked:
        return {"observations": "COMPLETE"}
    if "`summary`" in asked or "## summary ##" in asked:
        return {"summary": "Rated notices."}
    judged = prompt.rsplit("[[ ## output ## ]]", 1)[-1].split("Respond with")[0]
    words = judged.split()
    length = sum(map(len, words)) / max(1, len(words))
    level = 6.5 - length / 2 - len(words) / 200 + 3 * (draw(prompt, 0, 99) - 0.5)
    return {"reasoning": f"Mean word length {length:.1f}.", "score": str(min(5, max(1, round(level))))}


def own_axes(prompt: str) -> dict[str, Any]:
    """Answers as `scripted`, but other rows give other criteria, as a model's would."""
    found = scripted(prompt)
    if "axes" in found:
        mark = hashlib.sha256(prompt.encode()).hexdigest()[:6]
        found["axes"] = [{**axis, "name": f"{axis['name']} {mark}"} for axis in found["axes"]]
    return found


def _fenced(prompt: str, name: str) -> str:
    """The text of the last field of that name, without its marks."""
    return prompt.rsplit(f"[[ ## {name} ## ]]", 1)[-1].split("»\n", 1)[-1].split("\n«end")[0]


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--tail", type=float, default=0.0, help="shape of a Pareto distribution of the delay")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fault", action="append", default=[], metavar="NAME=RATE", help="for example THROTTLED=0.1")
    parser.add_argument("--follow", action="store_true", help="end when standard input is closed")
    options = parser.parse_args()
    rates = {Fault[name]: float(rate) for name, rate in (text.split("=") for text in options.fault)}
    script = Faults(rates, tail=options.tail)
    loopback = Loopback(scripted, delay=options.delay, seed=options.seed, script=script, keep=False)

    async def run() -> None:
        server = await listen(loopback, options.port)
        sys.stdout.write(json.dumps({"port": loopback.port}) + "\n")
        sys.stdout.flush()
        async with server:
            await server.serve_forever()

    if options.follow:
        threading.Thread(target=_end_with, args=(sys.stdin.buffer,), daemon=True).start()
    with suppress(KeyboardInterrupt):
        asyncio.run(run())


def _end_with(parent: BinaryIO) -> None:
    """End this process when the one that started it has gone, however it went."""
    parent.read()
    os._exit(0)


if __name__ == "__main__":
    main()
