"""Pulumi's state of a mirror's stack: in how many places it is, and whether it is behind what is there.

Owns how the addresses of the state and of the key of its secrets are read, both issues and how they are recognised.
Does not own the questions to Amazon (`ops/pipeline/aws.py`, which is loaded only to ask them). What cannot be learned
of the places is a note: it says nothing of the mirror.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml
from kubernetes.config import ConfigException

from kafka.connector_status import api_client
from ops import verify
from ops.connection import PROJECT
from ops.doctor.known_issues import Finding, finding
from ops.doctor.observations import Observations, PulumiState, StatePlace
from ops.errors import OpsError
from ops.recovery.mirror_context import MirrorContext

BACKEND = "PULUMI_BACKEND_URL"
_CLOUD = ("https", "http")  # Pulumi Cloud, or one of one's own, which keeps its state itself
_HERE = {"127.0.0.1", "localhost", "::1", "0.0.0.0"}  # noqa: S104 - addresses to recognise, nothing is bound to them


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


def observe(pair: MirrorContext, environment: Mapping[str, str], project: Path = PROJECT) -> PulumiState:
    """Return where Pulumi's state is; asks Amazon."""
    places = state_places(project / f"Pulumi.{verify.label_of(pair.stack)}.yaml", environment)
    return PulumiState(places=places, is_trial=_is_trial(pair, environment))


def _is_trial(pair: MirrorContext, environment: Mapping[str, str]) -> bool:
    """Whether the mirror's Kubernetes cluster is on this machine: then a state on it is lost with it only."""
    resource = pair.request.mirror.resource
    try:
        api = api_client(environment, resource.context if resource else None)
    except (ConfigException, OSError):
        return False
    with api:
        return urlsplit(api.configuration.host).hostname in _HERE


def state_symptoms(seen: Observations) -> Iterator[Finding]:
    """Return the known issues of Pulumi's state."""
    known, where = seen.pulumi_state, f"stack {seen.stack}"
    if seen.active_now not in (None, seen.active):
        what = f"{seen.active} is active by Pulumi's outputs, {seen.active_now} by the copy beside the mirror"
        yield finding("pulumi-state-behind", where, what, stack=seen.stack)
    if known is None:
        return
    for place in known.places if not known.is_trial else ():
        if place.alone is not None:
            yield finding("pulumi-state-in-one-place", where, f"{place.part}: {place.alone}", stack=seen.stack)


def state_notes(known: PulumiState | None) -> tuple[str, ...]:
    """Return what is not known of the places, and what does not count in a trial."""
    places = known.places if known is not None else ()
    notes = [
        f"Pulumi's {one.part}: in how many places it is, is unknown ({one.unknown})" for one in places if one.unknown
    ]
    if known is not None and known.is_trial:
        notes += [f"Pulumi's {one.part}: {one.alone}, as does the mirror's cluster" for one in places if one.alone]
    return tuple(notes)
