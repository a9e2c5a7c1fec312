"""In how many places Pulumi's state and the key of its secrets are, by their addresses and by asking Amazon.

Owns how the addresses are read. Does not own the questions to Amazon (`aws.py`, which is loaded only to ask them).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from ops.errors import OpsError

BACKEND = "PULUMI_BACKEND_URL"
_CLOUD = ("https", "http")  # Pulumi Cloud, or one of one's own, which keeps its state itself


@dataclass(frozen=True, kw_only=True)
class StatePlace:
    """A part of what Pulumi needs: why it is in one place only, or why nobody can tell; both None: it is replicated."""

    part: str
    alone: str | None = None
    unknown: str | None = None


def state_places(stack_file: Path, environment: Mapping[str, str]) -> tuple[StatePlace, ...]:
    """Return where the state of a stack is, and the key of its secrets if it is a cloud's; nothing is changed."""
    address = environment.get(BACKEND) or _read(stack_file.parent / "Pulumi.yaml", "backend", "url")
    provider = _read(stack_file, "secretsprovider") or "passphrase"
    state = _place("state", lambda: _state(address))
    return (state,) if provider == "passphrase" else (state, _place("key of its secrets", lambda: _key(provider)))


def _place(part: str, ask: Callable[[], str | None]) -> StatePlace:
    try:
        return StatePlace(part=part, alone=ask())
    except OpsError as error:
        return StatePlace(part=part, unknown=str(error))


def _state(address: str) -> str | None:
    url = urlsplit(address)
    if not address:
        raise OpsError(f"{BACKEND} is not set, so where it is must be known by `pulumi whoami -v`")
    if url.scheme == "file":
        return "it lies on one machine"
    if url.scheme in _CLOUD:
        return None
    if url.scheme != "s3":
        raise OpsError(f"of backends {url.scheme}:// it is not known")
    from ops.pipeline import aws  # its client takes half a second to load

    return aws.bucket_alone(url.netloc, **_where(url.query))


def _key(provider: str) -> str | None:
    url = urlsplit(provider)
    if url.scheme != "awskms":
        raise OpsError(f"of secrets providers {url.scheme}:// it is not known")
    from ops.pipeline import aws  # as above

    return aws.key_alone(f"{url.netloc}{url.path}".lstrip("/"), **_where(url.query))


def _where(query: str) -> dict[str, str | None]:
    """Region and endpoint of an address of Pulumi."""
    given = {key: values[-1] for key, values in parse_qs(query).items()}
    endpoint = given.get("endpoint")
    if endpoint and "://" not in endpoint:
        endpoint = f"{'http' if given.get('disableSSL') == 'true' else 'https'}://{endpoint}"
    return {"region": given.get("region"), "endpoint": endpoint}


def _read(file: Path, *keys: str) -> str:
    """A text of a YAML file, "" if there is none."""
    try:
        found: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return ""
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""
