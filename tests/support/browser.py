"""A real headless Chromium, driven over its DevTools protocol."""

import base64
import itertools
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websocket import WebSocket, create_connection

from tests.support.waiting import wait_until

STARTS_WITHIN_S = 60.0
ANSWERS_WITHIN_S = 60.0
KEYS = {"Tab": 9, "Enter": 13, " ": 32, "ArrowRight": 39}
# Keys that write a character need its text, or the page does not see them pressed.
TEXTS = {"Enter": "\r", " ": " "}


class Page:
    """One tab. What the page said on its console, its errors and its requests are kept."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._session: str | None = None
        self.said: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol; raises AssertionError for what the browser refuses."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        self._socket.send(json.dumps(message | ({"sessionId": self._session} if self._session else {})))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.said.append(json.dumps(params))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(
        self, file: Path, *, width: int = 1280, height: int = 900, dark: bool = False, script: bool = True
    ) -> None:
        """Open a file from disk in a window of this size, and wait until it is there."""
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=file.as_uri())
        loaded = "document.readyState == 'complete' && location.protocol == 'file:'"
        wait_until(f"{file} is loaded", lambda: self.value(loaded), ANSWERS_WITHIN_S, every_s=0.05)

    def value(self, expression: str) -> Any:
        """Return the JSON value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press one key and let go."""
        fields: dict[str, Any] = {"key": key, "code": "Space" if key == " " else key}
        fields["windowsVirtualKeyCode"] = KEYS[key]
        text = {"text": TEXTS[key]} if key in TEXTS else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **fields, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **fields)

    def screenshot(self, file: Path, *, whole: bool = False) -> None:
        """Write a picture of the window, or of the whole page."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        file.write_bytes(base64.b64decode(data))

    def pdf(self) -> bytes:
        """Return the page as it would be printed."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])


@contextmanager
def chromium(program: Path, folder: Path) -> Iterator[WebSocket]:
    """Run a Chromium whose files lie in a folder of its own; yields the connection to it."""
    log = folder / "chromium.log"
    home = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "XDG_CONFIG_HOME": str(folder / "config")}
    # Root has no user namespace to give: Chromium then refuses to start with its own sandbox.
    options = ["--no-sandbox", "--no-zygote"] if os.getuid() == 0 else []
    options += ["--headless", "--remote-debugging-port=0", f"--user-data-dir={folder / 'profile'}"]
    options += ["--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program, *options, "about:blank"], env={**os.environ, **home}, stdout=output, stderr=output
        )
    try:
        socket = create_connection(_address(process, log), timeout=ANSWERS_WITHIN_S, suppress_origin=True)
        yield socket
        socket.close()
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(r"DevTools listening on (ws://\S+)", log.read_text("utf-8", errors="replace")):
            return found.group(1)
        time.sleep(0.05)
    raise AssertionError(f"Chromium did not start: {log.read_text('utf-8', errors='replace')[-2000:]}")
