"""An OpenAI-compatible server on the loopback interface, with faults on request.

What it answers is a function of the prompt; whether a request fails is a seeded function of the
request's content and of how often that content was asked for, never of arrival order.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import dspy

Answer = Callable[[str], dict[str, Any]]


def draw(content: str, attempt: int, seed: int) -> float:
    """A number in [0, 1) that depends on its arguments alone."""
    digest = hashlib.sha256(f"{seed}|{attempt}|{content}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


@dataclass
class Loopback:
    """A running server and what it saw."""

    answer: Answer
    server_errors: float = 0.0
    malformed: float = 0.0
    always: int = 0
    seed: int = 0
    delay: float = 0.0
    port: int = 0
    in_flight: int = 0
    pause: threading.Event = field(default_factory=threading.Event)  # never set: tests replace `time.sleep`
    most_in_flight: int = 0
    prompts: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    malformed_sent: int = 0
    attempts: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def requests(self) -> int:
        return sum(self.statuses.values())

    def lm(self, **settings: Any) -> dspy.LM:
        """A DSPy language model that talks to this server."""
        return dspy.LM(
            "openai/loopback",
            api_base=f"http://127.0.0.1:{self.port}/v1",
            api_key="none",
            cache=False,
            **settings,
        )

    def respond(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        prompt = "\n".join(message_text(message) for message in body["messages"])
        with self.lock:
            attempt = self.attempts[prompt]
            self.attempts[prompt] += 1
            self.prompts.append(prompt)
        if self.always:
            return self.always, {"error": {"message": f"always {self.always}", "type": "x", "code": "x"}}
        chance = draw(prompt, attempt, self.seed)
        if chance < self.server_errors:
            return 500, {"error": {"message": "planted failure", "type": "server_error", "code": "planted"}}
        text = "".join(f"[[ ## {name} ## ]]\n{as_text(value)}\n\n" for name, value in self.answer(prompt).items())
        if chance < self.server_errors + self.malformed:
            with self.lock:
                self.malformed_sent += 1
            text = "I would rather talk about the weather."
        else:
            text += "[[ ## completed ## ]]"
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4}
        usage["total_tokens"] = sum(usage.values())
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return 200, {
            "id": "1", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice],
            "usage": usage,
        }  # fmt: skip


def message_text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@contextmanager
def serve(answer: Answer, **faults: Any) -> Iterator[Loopback]:
    """Run a server for the length of a block."""
    loopback = Loopback(answer, **faults)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # head and body in one packet: no wait for a delayed acknowledgement

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with loopback.lock:
                loopback.in_flight += 1
                loopback.most_in_flight = max(loopback.most_in_flight, loopback.in_flight)
            loopback.pause.wait(loopback.delay)
            status, content = loopback.respond(body)
            with loopback.lock:
                loopback.in_flight -= 1
                loopback.statuses[status] += 1
            payload = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    loopback.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield loopback
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


QUALITIES = (
    "Brevity", "Plain words", "Complete facts", "Correct facts", "Polite tone", "Clear structure", "Active voice",
    "Concrete dates", "Whole sentences", "Direct address", "Useful order", "No filler", "Consistent terms",
    "Fitting length", "Clear duty", "Plain numbers", "Named contact", "One idea each",
)  # fmt: skip


def scripted(prompt: str) -> dict[str, Any]:
    """Answers for every signature of the package; judges prefer short words and short texts, with noise."""
    asked = prompt.rsplit("Respond with the corresponding output fields", 1)[-1]
    if "`axes`" in asked or "## axes ##" in asked:
        return {"axes": [{"name": q, "meaning": f"The output shows {q.lower()}."} for q in QUALITIES[:15]]}
    if "## levels ##" in asked:
        return {"levels": [f"Level {number} of five." for number in range(1, 6)]}
    if "`names`" in asked or "## names ##" in asked:
        cards = prompt.rsplit("[[ ## cards ## ]]", 1)[-1]
        named = [line[3:] for line in cards.splitlines() if line.startswith("## ")]
        return {"reasoning": "The later cards look better.", "names": named[::-1]}
    judged = prompt.rsplit("[[ ## output ## ]]", 1)[-1].split("Respond with")[0]
    words = judged.split()
    length = sum(map(len, words)) / max(1, len(words))
    level = 6.5 - length / 2 - len(words) / 200 + 3 * (draw(prompt, 0, 99) - 0.5)
    return {"reasoning": f"Mean word length {length:.1f}.", "score": str(min(5, max(1, round(level))))}
