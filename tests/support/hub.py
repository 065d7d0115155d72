"""A model hub on the loopback interface: just enough of its interface to list a repository and to fetch its files.

Weights are answered by a redirect, with the hash and size that the hub links to; texts directly. A fault that is put
on a file holds until it is used up.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

COMMIT = "c0ffee" * 6 + "beef"
LARGE = (".safetensors", ".bin", ".pt", ".ckpt")


@dataclass
class Hub:
    """A running hub.

    `repositories` maps ids to files and their bytes. `cuts` maps a file to the count of bytes after which its next
    answer ends, `wrong` a file to the bytes that are sent in its place. `sent` counts bytes by file, `asked` lists the
    requests. `commit` is the one that every revision is said to be, `headers` go with every answer.
    """

    address: str = ""
    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    cuts: dict[str, int] = field(default_factory=dict)
    wrong: dict[str, bytes] = field(default_factory=dict)
    sent: Counter[str] = field(default_factory=Counter)
    asked: list[str] = field(default_factory=list)
    commit: str = COMMIT
    headers: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, folder: Path) -> None:
        """Publish the files of a folder under an id."""
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        self.repositories[name] = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}

    def listing(self, name: str) -> dict[str, Any]:
        """The hub's own account of a repository."""
        siblings = []
        for file, content in self.repositories[name].items():
            one: dict[str, Any] = {"rfilename": file, "size": len(content), "blobId": git_hash(content)}
            if file.endswith(LARGE):
                one["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
            siblings.append(one)
        return {"id": name, "sha": self.commit, "siblings": siblings}


def git_hash(content: bytes) -> str:
    """The hash by which git knows a file."""
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content)).hexdigest()


@contextmanager
def hub() -> Iterator[Hub]:
    """Run a hub until the end of the block."""
    state = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            state.asked.append(f"{self.command} {path}")
            name, _, rest = path.removeprefix("/api/models").strip("/").partition("/revision/")
            if path.startswith("/api/models/") and name in state.repositories and rest:
                return self.answer(200, json.dumps(state.listing(name)).encode(), {"Content-Type": "application/json"})
            direct, path = path.startswith("/files/"), path.removeprefix("/files/").strip("/")
            name, _, rest = path.partition("/resolve/")
            content = state.repositories.get(name, {}).get(file := rest.partition("/")[2])
            if content is None:
                return self.answer(404, b"", {"X-Error-Code": "RepoNotFound"})
            if direct:
                return self.send_content(file, content)
            headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{git_hash(content)}"'}
            if file.endswith(LARGE):
                digest = hashlib.sha256(content).hexdigest()
                headers |= {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(content))}
                return self.answer(302, b"", {**headers, "Location": f"{state.address}/files{self.path}"})
            return self.send_content(file, content, headers)

        def send_content(self, file: str, content: bytes, headers: dict[str, str] | None = None) -> None:
            content = state.wrong.get(file, content)
            start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").partition("-")[0])
            whole = f"bytes {start}-{len(content) - 1}/{len(content)}"
            extra = {**(headers or {}), **({"Content-Range": whole} if start else {})}
            self.answer(206 if start else 200, content[start:], extra, file)

        def answer(self, status: int, body: bytes, headers: dict[str, str], file: str = "") -> None:
            self.send_response(status)
            for key, value in {"Content-Length": str(len(body)), **headers, **state.headers}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command == "HEAD":
                return
            part = body[: state.cuts.pop(file, len(body))]
            self.wfile.write(part)
            state.sent[file] += len(part)
            if len(part) < len(body):
                self.wfile.flush()
                self.close_connection = True

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def client_of(address: str, cache: Path, patch: Any) -> Iterator[None]:
    """Let this process's client of the hub ask `address`, keep files in `cache`, and write in small pieces."""
    from huggingface_hub import constants
    from huggingface_hub.utils import reset_sessions

    patch.setenv("HF_ENDPOINT", address)
    patch.setattr(constants, "HF_HUB_CACHE", str(cache))
    patch.setattr(constants, "HF_HUB_OFFLINE", False)
    patch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 256)
    reset_sessions()
    try:
        yield
    finally:
        reset_sessions()
