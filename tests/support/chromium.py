"""Chromium without a window, led through its debugging pipe: open a page, run script in it, take pictures."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

__all__ = ["FLAGS", "Chromium", "found"]

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--force-device-scale-factor=1",
)  # fmt: skip


def found() -> str | None:
    """The path of a Chromium on this machine, None without one."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Chromium:
    """A browser with one tab; messages are JSON that ends with a zero byte, on descriptors 3 and 4.

    Script that `run` sends comes from outside of the page, whose content security policy stays in force.
    """

    def __init__(self, program: str, folder: Path) -> None:
        (theirs, self._out), (self._in, theirs_out) = os.pipe(), os.pipe()
        high = [os.dup2(descriptor, 200 + place) for place, descriptor in enumerate((theirs, theirs_out))]
        shell = f'exec "$0" "$@" 3<&{high[0]} 4>&{high[1]}'
        command = [program, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={folder / 'profile'}", "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", shell, *command], pass_fds=high, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for descriptor in (theirs, theirs_out, *high):
            os.close(descriptor)
        self._number, self._left, self.session, self.events = 0, b"", "", []
        tab = next(tab for tab in self.send("Target.getTargets")["targetInfos"] if tab["type"] == "page")
        attached = self.send("Target.attachToTarget", targetId=tab["targetId"], flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        self.session = ""
        self.send("Browser.close")
        self.process.wait(timeout=60)
        os.close(self._in)
        os.close(self._out)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            more = os.read(self._in, 1 << 20)
            if not more:
                raise EOFError("the browser ended")
            self._left += more
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The browser's answer to one command; what happens meanwhile goes to `events`."""
        self._number += 1
        asked = {"id": self._number, "method": method, "params": parameters}
        asked |= {"sessionId": self.session} if self.session else {}
        os.write(self._out, json.dumps(asked).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def open(
        self, page: Path, width: int = 1200, height: int = 900, *, dark: bool = False, script: bool = True
    ) -> None:
        """Load a file and wait until it is complete."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Emulation.setScriptExecutionDisabled", value=not script)
        self.events.clear()
        self.send("Page.navigate", url=page.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message())

    def run(self, script: str) -> Any:
        """The value of an expression in the page, a promise awaited."""
        answer = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", script))
        return answer["result"].get("value")

    def picture(self, path: Path) -> None:
        """Write what is to be seen as PNG."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    @property
    def complaints(self) -> list[str]:
        """The words of console and log since the page was opened."""
        found = []
        for event in self.events:
            if event["method"] == "Log.entryAdded":
                found.append(event["params"]["entry"]["text"])
            elif event["method"] in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
                found.append(json.dumps(event["params"]))
        return found

    @property
    def requested(self) -> list[str]:
        """The addresses asked for since the page was opened, but for the page itself and data in it."""
        urls = [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith(("file:", "data:"))]
