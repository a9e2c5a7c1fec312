"""A package index and a Maven repository on 127.0.0.1 that hand out other files than they once did."""

import base64
import hashlib
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class PackageServer:
    """What is served by its path; `folder` is served below that. `asked` are the paths that were asked for."""

    url: str = ""
    folder: Path | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def answer(self, path: str) -> bytes | None:
        """Return a file. A checksum that is not there is that of the file which is."""
        self.asked.append(path)
        if path in self.files:
            return self.files[path]
        if self.folder is not None and (file := self.folder / path.lstrip("/")).is_file():
            return file.read_bytes()
        return None

    def publish(self, wheel: Path) -> None:
        """Put a wheel into the index, with the hash that it has now."""
        name, content = wheel.name.split("-")[0], wheel.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        self.files[f"/files/{wheel.name}"] = content
        self.files[f"/simple/{name}/"] = f'<a href="/files/{wheel.name}#sha256={digest}">{wheel.name}</a>'.encode()


@contextmanager
def serving() -> Iterator[PackageServer]:
    """Serve until the end of the block."""
    server = PackageServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = server.answer(self.path)
            self.send_response(200 if content is not None else 404)
            self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "application/octet-stream")
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        do_HEAD = do_GET  # noqa: N815  # a name that http.server calls

        def log_message(self, *_: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_port}"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join(5)


def wheel(folder: Path, name: str, text: str) -> Path:
    """Make a wheel of version 1 with one module of this text."""
    info, path = f"{name}-1.dist-info", folder / f"{name}-1-py3-none-any.whl"
    files = {
        f"{name}.py": text,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{file},sha256={_digest(content)},{len(content)}\n" for file, content in files.items())
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(file, content)
    return path


def _digest(content: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content.encode()).digest()).rstrip(b"=").decode()
