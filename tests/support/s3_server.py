"""Moto's S3 and KMS over real HTTP, on a local port."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

WRITING = {"PUT", "POST", "DELETE"}


@dataclass
class Amazon:
    """Where it listens, and what was written: method and path of each such request."""

    url: str
    written: list[tuple[str, str]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """What Amazon's SDKs need to use it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "id-of-the-tests",
            "AWS_SECRET_ACCESS_KEY": "secret-of-the-tests",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
        }


@contextmanager
def amazon() -> Iterator[Amazon]:
    """Serve both. A condition and the write that it guards are one step, as Amazon's are: requests wait in turn."""
    application, turn = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def in_turn(environment: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        with turn:
            if environment["REQUEST_METHOD"] in WRITING:
                made.written.append((environment["REQUEST_METHOD"], environment["PATH_INFO"]))
            return application(environment, start_response)

    http = make_server("127.0.0.1", 0, in_turn, threaded=True)
    made = Amazon(f"http://127.0.0.1:{http.server_port}")
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        http.shutdown()
        thread.join(10)
