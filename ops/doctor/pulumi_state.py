"""Pulumi's state of a mirror's stack: whether it is lost with one place, and whether it is behind what is there.

Owns both issues and how they are recognised. What cannot be learned of the places is a note: it says nothing of the
mirror.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from kubernetes.config import ConfigException

from kafka.connector_status import api_client
from ops import verify
from ops.connection import PROJECT
from ops.doctor.known_issues import Finding, finding
from ops.doctor.observations import Observations, PulumiState
from ops.pipeline.state_places import state_places
from ops.recovery import break_glass
from ops.recovery.mirror_context import MirrorContext

_HERE = {"127.0.0.1", "localhost", "::1", "0.0.0.0"}  # noqa: S104 - addresses to recognise, nothing is bound to them


def observe(pair: MirrorContext, environment: Mapping[str, str], project: Path = PROJECT) -> PulumiState:
    """Return where Pulumi's state is and which side is active by what is there; asks Amazon and Kubernetes."""
    places = state_places(project / f"Pulumi.{verify.label_of(pair.stack)}.yaml", environment)
    return PulumiState(
        places=places, active_now=break_glass.active_side(pair, environment), is_trial=_is_trial(pair, environment)
    )


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
    known = seen.pulumi_state
    if known is None:
        return
    where = f"stack {seen.stack}"
    if known.active_now not in (None, seen.active):
        what = f"{seen.active} is active by Pulumi's outputs, {known.active_now} by the copy beside the mirror"
        yield finding("pulumi-state-behind", where, what, stack=seen.stack)
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
