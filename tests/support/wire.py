"""The server's side of one HTTP connection: as little of the protocol as DSPy's clients use, quickly."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any

from faults import Odd

REASONS = {int(status): status.phrase for status in HTTPStatus}


class Connection(asyncio.Protocol):
    """Reads requests one after the other and writes what the server says, kept alive between them."""

    def __init__(self, loopback: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.loopback, self.loop = loopback, loop
        self.transport: asyncio.Transport | None = None
        self.buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.loopback.connections.add(self)

    def connection_lost(self, problem: Exception | None) -> None:
        self.transport = None
        self.loopback.connections.discard(self)

    def abort(self) -> None:
        """Close without ceremony."""
        if self.transport is not None:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.buffer[:end]).lower()
            start = head.find(b"content-length:")
            length = int(head[start + 15 :].split(b"\r\n", 1)[0]) if start >= 0 else 0
            if len(self.buffer) < end + 4 + length:
                return
            body = bytes(self.buffer[end + 4 : end + 4 + length])
            del self.buffer[: end + 4 + length]
            if head.startswith(b"get "):
                self.write(200, self.loopback.stats())
            else:
                self.handle(body)

    def handle(self, body: bytes) -> None:
        """Answer one request, now or when its time has come."""
        wait, status, content = self.loopback.take(json.loads(body))
        if wait > 0:
            self.loop.call_later(wait, self.finish, status, content)
        else:
            self.finish(status, content)

    def finish(self, status: int, content: dict[str, Any] | Odd) -> None:
        """Book the response and send it."""
        self.loopback.leave(status, content)
        self.write(status, content)

    def write(self, status: int, content: dict[str, Any] | Odd) -> None:
        """Send a response, or as much of it as is to be sent."""
        if self.transport is None:  # the client has gone
            return
        odd = content if isinstance(content, Odd) else Odd(json.dumps(content).encode())
        if odd.sent == 0:
            self.loop.call_later(odd.hang, self.abort)
            return
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Unknown')}", "content-type: application/json"]
        lines += [f"{name}: {value}" for name, value in odd.headers]
        lines += [f"content-length: {len(odd.body)}", "", ""]
        self.transport.write("\r\n".join(lines).encode() + odd.body[: odd.sent])
        if odd.sent is not None:
            self.transport.close()
