"""Fakes for tests of programs that use this package: a judge with given numbers, and a model with given answers.

Neither needs a key, a network or a test framework.

`GivenJudge`   a metric that gives the numbers that it was given, and asks nobody
`GivenModel`   a model behind a server on the loopback interface, which says what it was given to say
`GivenAnswer`  one answer of such a model with its tokens, its log-probabilities or its status
"""

from __future__ import annotations

import copy
import inspect
import json
import math
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any, Self

import dspy

from metricsmith.errors import JudgementFailed, OptionError
from metricsmith.metric import EVERY_LABEL, Labels, content_hash, row_text
from metricsmith.records import Judgement, Output, Status, Usage
from metricsmith.scoring.callables import CallableMetric

__all__ = ["GivenAnswer", "GivenJudge", "GivenModel"]

TOKENS = re.compile(r"\n+| ?[^\W\d]+|\d| ?[^\w\s]+|\s")
LAST_FIELD = re.compile(r"\]\]\n(?=[^\n]*\n\n\[\[ ## completed)")


class GivenJudge(CallableMetric):
    """A judge whose numbers are given; it sends no request and works wherever a function of your own does.

    It goes into `score`, `compare`, `AutoMetrics(metrics=[...])` and `Prober.probe`, is repeated by `Repeated`, and
    called by position it is a metric for DSPy. Where no number is given the judgement fails with a reason
    (``unparsable``), a number outside the range is ``out_of_range``, and a `Status` in a number's place is a
    judgement that failed like this. No number is used in another's place. A file keeps its name alone, as of a
    function: ``metricsmith.load(path, functions={"given": judge})``.

    Parameters
    ----------
    numbers : float, sequence, mapping or callable
        One number for every output; a number or `Status` for each run, from run 0, the same for every output; either
        of these by the text of the output, which must be equal; or a function of the row, or of the row and the run,
        that returns what has been named so far, or a `dspy.Prediction` with ``score`` and ``feedback``. A
        `JudgementFailed` that it raises is a failed judgement; any other error is the test's own and comes through.
    name : str
        The name of the column.
    output : Output, optional
        Range and direction; by default 1 to 5, more being better.
    version : str, optional
        For a function: change it with the function, or leave it out, and no store keeps the judgements. Numbers that
        are no function are their own version.
    usage : Usage
        The cost that every judgement claims, for tests of what is spent; by default nothing.

    Attributes
    ----------
    asked : list of (str, int)
        The judgements that were asked for: the row's ``id``, or its output where it has none, and the run. Copies
        share the list. With several threads its order is not fixed.

    Raises
    ------
    OptionError
        If `numbers` is none of the above, is empty, or is a function of other parameters.

    Examples
    --------
    >>> judge = GivenJudge({"Shut.": 5, "Closed until further notice.": [2, 3]})
    >>> [judgement.raw for judgement in judge.judge_batch([make_row("Shut.")])]
    [5.0]
    >>> judge.judge_batch([make_row("Open.")])[0].error
    "no number is given for the output 'Open.'"
    """

    def __init__(
        self,
        numbers: Any,
        *,
        name: str = "given",
        output: Output | None = None,
        version: str | None = None,
        usage: Usage | None = None,
    ) -> None:
        several = isinstance(numbers, Mapping | Sequence) and not isinstance(numbers, str)
        if not (several or callable(numbers) or isinstance(numbers, int | float)) or (several and not len(numbers)):
            raise OptionError(
                f"numbers={numbers!r:.60} gives no numbers; allowed are a number, a list with one for each run, a dict "
                "from outputs to these, and a function of the row: write GivenJudge({'the output': 4})"
            )
        self.numbers, self.usage = numbers, usage or Usage()
        self.asked: list[tuple[str, int]] = []
        self.by_run = callable(numbers) and _required(numbers, ("row", "run")) == 2
        own = None if callable(numbers) else content_hash(numbers)
        output = replace(output, name=name) if output else Output(name, 1.0, 5.0)
        super().__init__(self._number, name=name, output=output, version=version or own)
        # Numbers by output say the same of rows with equal texts.
        self.reads: Labels = EVERY_LABEL if callable(numbers) else ()

    def among(self, name: str, hidden: Collection[str]) -> GivenJudge:
        """The same numbers under this name; a function does not see the `hidden` fields."""
        twin = copy.copy(self)
        output = replace(self.output, name=name)
        CallableMetric.__init__(twin, twin._number, name=name, output=output, version=self.version, hidden=hidden)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> GivenJudge:
        return self  # DSPy's optimisers copy metrics, and what they ask counts

    def _judge(self, row: dspy.Example, run: int) -> Judgement:
        try:
            judgement = self._judgement(self._number(self._visible(row), run=run), run, 0.0)
        except JudgementFailed as problem:
            judgement = self._failed(Status(problem.status), str(problem), run)
        return replace(judgement, usage=self.usage)

    def _number(self, row: Any, pred: Any = None, *, run: int = 0) -> Any:
        text, number = row_text(row).output, self.numbers
        self.asked.append((str(text if row.get("id") is None else row["id"]), run))
        if callable(number):
            number = number(row, run) if self.by_run else number(row)
        elif isinstance(number, Mapping):
            number = number.get(text)
        if isinstance(number, Sequence) and not isinstance(number, str):
            if run >= len(number):
                raise JudgementFailed(f"no number is given for run {run}: there are {len(number)}, from run 0")
            number = number[run]
        if isinstance(number, Status):
            raise JudgementFailed(f"the given end of this judgement is {number}", number)
        if number is None:
            raise JudgementFailed(f"no number is given for the output {text!r:.80}")
        return number


@dataclass(frozen=True)
class GivenAnswer:
    """One answer of a `GivenModel`.

    Parameters
    ----------
    content : str or mapping of str to any
        The whole text; or the answer's fields, which are written in DSPy's chat format, values that are no text as
        JSON. For a program with another adapter give the text.
    status : int
        The status of the response, 200 or from 400 to 599; with another than 200 the content, which must be text, is
        the error's message.
    tokens : (int, int), optional
        Prompt and completion tokens that the response claims; by default a quarter of the characters of each.
    probabilities : mapping of str to float, optional
        How probable each token is in the place of the last field's first one. They are sent where the request asks
        for log-probabilities; all other tokens are certain.

    Raises
    ------
    OptionError
        If a value is none of these.
    """

    content: str | Mapping[str, Any]
    status: int = 200
    tokens: tuple[int, int] | None = None
    probabilities: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.content, str if self.status != 200 else str | Mapping):
            raise OptionError(f"{self.content!r:.60} is no answer; allowed are a text and a dict of its fields")
        if self.status != 200 and self.status not in range(400, 600):
            raise OptionError(f"status={self.status} fails nothing: give 429 or 500, or the text '{self.status}'")

    @classmethod
    def of(cls, given: Any) -> GivenAnswer:
        """The answer that a text, a mapping of fields, a status or an answer stands for."""
        if isinstance(given, int) and not isinstance(given, bool):
            return cls(f"this request was given the status {given}", given)
        return given if isinstance(given, cls) else cls(given)

    @property
    def text(self) -> str:
        """The content as it is sent."""
        return self.content if isinstance(self.content, str) else chat_text(self.content)


class GivenModel:
    """A model with given answers: an OpenAI-compatible server at 127.0.0.1 for the length of a ``with`` block.

    Every request that the block sends goes the whole way through the client, so that retries, limits, adapters and
    stores are tested as they are. Requests are answered one after the other, so that a function may keep a state.

    Parameters
    ----------
    answers : callable, mapping or sequence
        What is answered: a function of the prompt, which is the text of all messages; a mapping whose first key that
        occurs in the prompt decides; or a list, one answer after the other, of which each is used once. An answer is a
        text, a mapping of fields, a status such as 429, or a `GivenAnswer`.
    delay : float
        Seconds before each answer.

    Attributes
    ----------
    bodies : list of dict
        Every request as it came in: ``messages``, ``temperature`` and all other parameters.
    port : int
        The port while the block runs, 0 outside.

    Raises
    ------
    OptionError
        If `answers` or an answer in it is none of the above. Where an answer is missing, because the list is used up or
        no key occurs in the prompt, or where the function raises or returns no answer, the request ends with the status
        400, and its message says so; nothing is repeated.

    Notes
    -----
    A request for ``n`` choices takes n answers; one of them that is a status is the whole response. DSPy's client
    sends a request again that met 429 or 500, after pauses of seconds; ``lm(num_retries=0)`` does not.

    Examples
    --------
    >>> with GivenModel([{"answer": "Paris"}]) as model, dspy.context(lm=model.lm()):
    ...     answer = dspy.Predict("question -> answer")(question="The capital of France?").answer
    >>> answer, model.requests
    ('Paris', 1)
    """

    def __init__(self, answers: Any, *, delay: float = 0.0) -> None:
        if callable(answers):
            _required(answers, ("prompt",))
        elif isinstance(answers, Mapping):
            answers = {key: GivenAnswer.of(answer) for key, answer in answers.items()}
        elif isinstance(answers, Sequence) and not isinstance(answers, str):
            answers = [GivenAnswer.of(answer) for answer in answers]
        else:
            raise OptionError(
                f"answers={answers!r:.60} gives no answers; allowed are a list, a dict from pieces of prompts to "
                "answers, and a function of the prompt: write GivenModel([answer])"
            )
        self.answers, self.delay, self.port, self.used = answers, delay, 0, 0
        self.bodies: list[dict[str, Any]] = []
        self._turn = threading.Lock()

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.model, self.port = self, self._server.server_address[1]
        serve = self._server.serve_forever
        self._thread = threading.Thread(target=serve, args=(0.01,), daemon=True, name="given model")
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self.port = 0

    @property
    def requests(self) -> int:
        """The number of requests that came in."""
        return len(self.bodies)

    @property
    def prompts(self) -> list[str]:
        """The text of each request: that of its messages, line by line."""
        return ["\n".join(map(message_text, body["messages"])) for body in self.bodies]

    @property
    def api_base(self) -> str:
        """The address for other clients and for ``--api-base``."""
        return f"http://127.0.0.1:{self.port}/v1"

    def lm(self, **settings: Any) -> dspy.LM:
        """A DSPy language model that talks to this server, without a cache unless `settings` say otherwise.

        Raises
        ------
        OptionError
            Outside the ``with`` block, where nobody would answer.
        """
        if not self.port:
            raise OptionError("the model answers inside its block alone: with GivenModel(answers) as model: model.lm()")
        return dspy.LM("openai/loopback", **{"api_base": self.api_base, "api_key": "none", "cache": False, **settings})

    def respond(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and the content of the response to one request."""
        with self._turn:
            self.bodies.append(body)
            prompt = "\n".join(map(message_text, body["messages"]))
            answers = [self._answer(prompt) for _ in range(body.get("n") or 1)]
        if failed := next((answer for answer in answers if answer.status != 200), None):
            return failed.status, {"error": {"message": failed.text, "type": "given", "code": str(failed.status)}}
        choices = []
        for index, answer in enumerate(answers):
            message = {"role": "assistant", "content": answer.text}
            choices.append({"index": index, "finish_reason": "stop", "message": message})
            if body.get("logprobs") and answer.probabilities:
                choices[-1]["logprobs"] = token_logprobs(answer.text, answer.probabilities, body.get("top_logprobs", 0))
        claimed = [answer.tokens or (len(prompt) // 4, len(answer.text) // 4) for answer in answers]
        sent, written = claimed[0][0], sum(completion for _, completion in claimed)
        usage = {"prompt_tokens": sent, "completion_tokens": written, "total_tokens": sent + written}
        head = {"id": "1", "object": "chat.completion", "created": 1, "model": body["model"]}
        return 200, {**head, "choices": choices, "usage": usage}

    def _answer(self, prompt: str) -> GivenAnswer:
        if isinstance(self.answers, Mapping):
            missing = GivenAnswer(f"no answer is given for the prompt that ends with {prompt[-80:]!r}", 400)
            return next((answer for key, answer in self.answers.items() if key in prompt), missing)
        if not callable(self.answers):
            self.used += 1
            if self.used <= len(self.answers):
                return self.answers[self.used - 1]  # type: ignore[no-any-return]
            given = len(self.answers)
            return GivenAnswer(f"the given answers ran out: {given} were given, and this is number {self.used}", 400)
        try:
            return GivenAnswer.of(self.answers(prompt))
        except Exception as problem:  # the caller's own code; the client waits for a response that says so
            return GivenAnswer(f"the function of the answers failed: {type(problem).__name__}: {problem}", 400)


def message_text(message: Mapping[str, Any]) -> str:
    """The text of a chat message, parts that are no text left out."""
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


def chat_text(fields: Mapping[str, Any]) -> str:
    """Fields in DSPy's chat format; a value that is no text is written as JSON."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    return "".join(f"[[ ## {name} ## ]]\n{text}\n\n" for name, text in texts.items()) + "[[ ## completed ## ]]"


def token_logprobs(text: str, probabilities: Mapping[str, float], top: int = 20) -> dict[str, Any]:
    """The ``logprobs`` of a choice as OpenAI sends them, where tokens are words, digits and marks.

    The first token of the last field has these `probabilities`, all others are certain. The token of the text is the
    one that is sent, whatever they say; `top` alternatives are listed, the most probable first.
    """
    value = LAST_FIELD.search(text)
    content = [
        token_entry(token[0], probabilities if value and token.start() == value.end() else {token[0]: 1.0}, top)
        for token in TOKENS.finditer(text)
    ]
    return {"content": content, "refusal": None}


def token_entry(token: str, probabilities: Mapping[str, float], top: int = 20) -> dict[str, Any]:
    """One token with its alternatives, the most probable first."""

    def one(text: str, probability: float) -> dict[str, Any]:
        logprob = math.log(probability) if probability > 0 else -9999.0  # as OpenAI says of 0
        return {"token": text, "logprob": logprob, "bytes": list(text.encode())}

    listed = sorted(probabilities, key=lambda text: -probabilities[text])[:top]
    return {**one(token, probabilities.get(token, 1e-9)), "top_logprobs": [one(t, probabilities[t]) for t in listed]}


def _required(function: Callable[..., Any], wanted: tuple[str, ...]) -> int:
    """The number of a function's parameters without a default; OptionError where it is 0 or above that of `wanted`."""
    parameters = inspect.signature(function).parameters.values()
    required = [one for one in parameters if one.default is one.empty and one.kind <= one.POSITIONAL_OR_KEYWORD]
    if not 1 <= len(required) <= len(wanted):
        name, given = getattr(function, "__name__", function), ", ".join(wanted)
        raise OptionError(f"{name} takes {len(required)} parameters without a default; it is called with {given}")
    return len(required)


class _Handler(BaseHTTPRequestHandler):
    """One request to a `GivenModel`; the connection is closed after it."""

    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status, content = self.server.model.respond(body)
        time.sleep(self.server.model.delay)
        payload = json.dumps(content).encode()
        with suppress(ConnectionError):  # the client has gone
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: a test reads what was asked from the model."""


class _Server(ThreadingTCPServer):
    """A thread for each connection, none of which keeps the process alive."""

    daemon_threads = True
    request_queue_size = 1024  # Linux drops connections beyond it, and the client tries again after a second
    model: GivenModel
