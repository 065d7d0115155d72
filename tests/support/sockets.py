"""A server of raw bytes: for responses that no HTTP library would send."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

GOOD = "[[ ## answer ## ]]\n3\n\n[[ ## completed ## ]]"


def completion(text: Any = GOOD, finish: str = "stop", usage: Any = None, **message: Any) -> dict[str, Any]:
    """A chat completion with one choice."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
    return {
        "id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice],
        "usage": {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10} if usage is None else usage,
    }  # fmt: skip


def http(body: Any, status: str = "200 OK", kind: str = "application/json", length: int | None = None) -> bytes:
    """A whole response; `length` lies about the body's."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(content) if length is None else length}"
    return head.encode() + b"\r\nconnection: close\r\n\r\n" + content


class Sockets:
    """Sends the same bytes to every request, or one after the other of a list; None keeps silent until the end."""

    def __init__(self, *payloads: bytes | None) -> None:
        self.payloads, self.bodies = payloads, []
        self.server = socket.create_server(("127.0.0.1", 0))
        self.over = threading.Event()

    @property
    def port(self) -> int:
        return self.server.getsockname()[1]

    @property
    def requests(self) -> int:
        return len(self.bodies)

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            payload = self.payloads[min(len(self.bodies), len(self.payloads) - 1)]
            self.bodies.append(self._read(connection))
            threading.Thread(target=self._send, args=(connection, payload), daemon=True).start()

    def _read(self, connection: socket.socket) -> dict[str, Any]:
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        head, body = data.split(b"\r\n\r\n", 1)
        lines = head.lower().split(b"\r\n")
        length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
        while len(body) < length:
            body += connection.recv(65536)
        return json.loads(body)

    def _send(self, connection: socket.socket, payload: bytes | None) -> None:
        with connection:
            if payload is None:
                self.over.wait(5)
                return
            try:
                connection.sendall(payload)
                connection.shutdown(socket.SHUT_WR)
            except OSError:  # the client has gone
                pass


@contextmanager
def sockets(*payloads: bytes | None) -> Iterator[Sockets]:
    """Serve for the length of a block."""
    running = Sockets(*payloads)
    thread = threading.Thread(target=running.serve, daemon=True)
    thread.start()
    try:
        yield running
    finally:
        running.over.set()
        running.server.shutdown(socket.SHUT_RDWR)
        running.server.close()
        thread.join(5)
