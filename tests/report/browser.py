"""A headless Chromium driven over its debugging pipe: no port, no driver, the standard library.

`Browser` starts one; `Tab` opens a file in it, runs expressions, moves the pointer, presses keys,
and keeps what the console said and what the page asked of the network.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
LIMIT = 120.0  # seconds for an answer, on a machine that is busy with other things
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-extensions", "--disable-background-networking", "--disable-sync", "--mute-audio",
    "--disable-component-update", "--disable-default-apps", "--hide-scrollbars",
    "--remote-debugging-pipe",
)  # fmt: skip

# The browser reads from descriptor 3 and writes to 4: puts two there, and becomes the browser.
_START = """import os, sys
for given, number in zip(sys.argv[1:3], (100, 101)): os.dup2(int(given), number)
os.dup2(100, 3), os.dup2(101, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def find_browser() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One process; messages end with a zero byte, in both directions."""

    def __init__(self, command: str) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        arguments = [*FLAGS, f"--user-data-dir={self._home.name}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(theirs_in), str(theirs_out), command, *arguments],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._number, self._rest = 0, b""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def wait(self, method: str, session: str) -> dict[str, Any]:
        """The next event of this kind, be it one that came already."""
        while True:
            for number, event in enumerate(self.events):
                if event.get("method") == method and event.get("sessionId") == session:
                    return self.events.pop(number)
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + LIMIT
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"the browser said nothing for {LIMIT:.0f} s"
            data = os.read(self._in, 1 << 20)
            assert data, "the browser ended"
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def close(self) -> None:
        os.close(self._out)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        self._home.cleanup()

    @contextmanager
    def tab(
        self, file: Path, width: int = 1600, height: int = 1000, theme: str = "light"
    ) -> Iterator[Tab]:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            tab.call(f"{domain}.enable")
        tab.resize(width, height)
        tab.theme(theme)
        tab.call("Page.navigate", url=file.resolve().as_uri())
        self.wait("Page.loadEventFired", session)
        try:
            yield tab
        finally:
            self.call("Target.closeTarget", targetId=target)


class Tab:
    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **parameters)

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            mobile=False,
        )  # fmt: skip

    def theme(self, name: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": name}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def hover(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key: str) -> None:
        code = {"Tab": 9, "Escape": 27, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36,
                "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}[key]  # fmt: skip
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code
            )

    def screenshot(self, file: Path, whole: bool = False) -> None:
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))

    def of(self, *methods: str) -> list[dict[str, Any]]:
        """The events of these kinds so far."""
        return [
            event["params"]
            for event in self.browser.events
            if event.get("sessionId") == self.session and event.get("method") in methods
        ]

    @property
    def complaints(self) -> list[str]:
        """Errors and warnings: exceptions, what the console said, what the browser logged."""
        thrown = [str(e["exceptionDetails"]) for e in self.of("Runtime.exceptionThrown")]
        said = [
            str(e["args"])
            for e in self.of("Runtime.consoleAPICalled")
            if e["type"] in ("error", "warning", "assert")
        ]
        return thrown + said + [e["entry"]["text"] for e in self.of("Log.entryAdded")]

    @property
    def requests(self) -> list[str]:
        """What was asked of the network, but for the page itself and what is inside it."""
        urls = [e["request"]["url"] for e in self.of("Network.requestWillBeSent")]
        return [url for url in urls if not url.startswith(("data:", "blob:"))][1:]
