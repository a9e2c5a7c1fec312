"""What a client connects with: addresses, and the values of a librdkafka configuration with its secrets resolved."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

PORT_MAX = 65_535
SECRET_KEYS = ("sasl.password", "ssl.key.pem", "ssl.key.password", "ssl.keystore.password")
REDACTED = "***"


def has_port(address: str) -> bool:
    """Whether the port of HOST:PORT is one, or is not given: the client then takes its own."""
    port = re.fullmatch(r"(?:[^:\[\]]*|.*\]|[A-Za-z_]+://.*):(-?\d+)", address.strip())
    return port is None or (len(port[1]) <= len(str(PORT_MAX)) and 1 <= int(port[1]) <= PORT_MAX)


def url_problem(text: str) -> str | None:
    """Return what is wrong with a URL, as the end of a sentence that begins with its name; None if nothing is.

    Credentials are refused, not hidden: reports and standard error show the URL.
    """
    rule = "must be a URL http://HOST:PORT or https://HOST:PORT"
    if "@" in text:
        return f"{rule} without user and password (got one with credentials, not shown). Take them out of the URL."
    try:
        found = httpx.URL(text)
    except httpx.InvalidURL as error:
        return f"{rule} (got {text!r}: {error}). Correct the URL."
    if found.scheme not in ("http", "https") or not found.host:
        return f"{rule} (got {text!r}). Correct the URL."
    if found.port is not None and not 1 <= found.port <= PORT_MAX:
        return f"{rule} with a port of 1 to {PORT_MAX} (got {text!r}). Correct the URL."
    return None


def text_fault(value: str) -> str | None:
    """Return which character of a text neither Kafka nor the name of a file can carry, None if all are sound."""
    if "\0" in value:
        return "a NUL character"
    if any("\ud800" <= each <= "\udfff" for each in value):
        return "half of a character (a lone surrogate)"
    return None


def kind_of(value: object) -> str:
    """Return the type of a value that must not be shown, because it may be a secret."""
    return "nothing" if value is None else type(value).__name__


def resolved(document: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return a client configuration with its secrets, and its problems, each the end of a sentence about it.

    Args:
        document: values by librdkafka key; a secret is `{"env": NAME}` or `{"file": PATH}`, never plain text.
        environment: the variables that secrets are taken from.
    """
    problems = [
        f"bootstrap.servers must have ports of 1 to {PORT_MAX} (got {address})"
        for address in str(document["bootstrap.servers"]).split(",")
        if not has_port(address)
    ]
    config: dict[str, str] = {}
    for key, value in document.items():
        config[key], problem = _value(key, value, environment)
        problems += [] if problem is None else [f"{key} {problem}"]
    protocol = config.get("security.protocol", "")
    if protocol.upper().startswith("SASL"):
        login = ("sasl.username", "sasl.password")
        problems += [f"{key} must be set for {protocol}" for key in login if key not in config]
    return config, problems


def _value(key: str, value: object, environment: Mapping[str, str]) -> tuple[str, str | None]:
    if isinstance(value, bool):
        return str(value).lower(), None
    if isinstance(value, str | int | float):
        plain = 'must be {"env": NAME} or {"file": PATH} (got plain text)'
        return ("", plain) if key in SECRET_KEYS else (str(value), None)
    match value if isinstance(value, dict) and len(value) == 1 else None:
        case {"env": str(name)}:
            return _variable(name, environment)
        case {"file": str(name)}:
            return _file(name)
    return "", f'must be text, {{"env": NAME}} or {{"file": PATH}} (got {kind_of(value)})'


def _variable(name: str, environment: Mapping[str, str]) -> tuple[str, str | None]:
    needs = f"needs the environment variable {name}"
    value = environment.get(name)
    return _sound(value, needs) if value else ("", f"{needs} (got none)")


def _file(name: str) -> tuple[str, str | None]:
    needs = f"needs the file {name}"
    try:
        return _sound(Path(name).read_text(encoding="utf-8").rstrip("\n"), needs)
    except OSError as error:
        return "", f"{needs} ({error.strerror})"
    except UnicodeDecodeError as error:
        return "", f"{needs} as text (byte {error.start} of it is not UTF-8)"


def _sound(value: str, needs: str) -> tuple[str, str | None]:
    fault = text_fault(value)
    return (value, None) if fault is None else ("", f"{needs} as text without {fault}")
