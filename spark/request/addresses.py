"""What makes a URL fit to be asked over HTTP and to be shown: everywhere the same rules."""

import re

import httpx

PORT_MAX = 65_535


def has_port(address: str) -> bool:
    """Whether the port of HOST:PORT is one, or is not given: the client then takes its own."""
    port = re.fullmatch(r"(?:[^:\[\]]*|.*\]|[A-Za-z_]+://.*):(-?\d+)", address.strip())
    return port is None or (len(port[1]) <= len(str(PORT_MAX)) and 1 <= int(port[1]) <= PORT_MAX)


def url_problem(text: str) -> str | None:
    """Return what is wrong with a URL, as the end of a sentence that begins with its name; None if nothing is.

    Credentials are refused, not hidden: the URL is told in the report and on standard error.
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
