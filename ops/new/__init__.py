"""A new pair of stacks: its answers, the files that are written for them, and the command that asks for them.

Here is what an answer may be; all errors of the answers are reported together. What a stack file may contain belongs to
`settings`, which checks what is made of the answers.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from settings.names import HostName, KafkaName, Pattern, invalid
from settings.platform import DEFAULT_VERSION, EVENT_STREAMS, OLDEST, STRIMZI_V1, Platform
from settings.text import did_you_mean, format_names, format_value

EXPOSE_TYPES = ("loadbalancer", "route", "nodeport", "ingress")
NEED_HOSTS = ("nodeport", "ingress")
NAMINGS = ("identity", "prefixed")
DEFAULT_STACKS = "primary,standby"
DEFAULT_PLATFORM = f"strimzi-{DEFAULT_VERSION[STRIMZI_V1]}"
DEFAULT_VERSIONS = {"strimzi": DEFAULT_VERSION[STRIMZI_V1], "event-streams": DEFAULT_VERSION[EVENT_STREAMS]}
PARTITIONS_MAX = 1000
_PLATFORM = re.compile(r"(?P<type>strimzi|event-streams)(?:[- @](?P<version>\d+\.\d+(?:\.\d+)?))?")
# What the policy pack asks of names of namespaces, clusters and users.
_WORDS = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The answers that describe a pair. `hosts` are by stack; one context means that both sites are in it."""

    name: str
    stacks: tuple[str, ...]
    platform: str
    expose: str
    hosts: Mapping[str, str]
    contexts: tuple[str, ...]
    topics: tuple[str, ...]
    groups: tuple[str, ...] = (".*",)
    naming: str = "identity"
    partitions: int = 3
    accepts_license: bool = False

    @property
    def source(self) -> str:
        """The stack of the active site."""
        return self.stacks[0]

    @property
    def target(self) -> str:
        """The stack of the passive site, which has the mirror."""
        return self.stacks[1]

    @property
    def release(self) -> Platform:
        """The platform as the settings know it; raises ValueError if the answer names none."""
        found = _PLATFORM.fullmatch(self.platform)
        if found is None:
            raise ValueError(self.platform)
        version = found["version"] or DEFAULT_VERSIONS[found["type"]]
        return Platform.model_validate({"type": found["type"], "version": version})

    @property
    def is_openshift(self) -> bool:
        """Whether the sites are on OpenShift, which alone has routes."""
        return self.expose == "route"

    @property
    def mirror(self) -> str:
        """Name of the mirror."""
        return f"{self.name}-mirror"

    def cluster(self, stack: str) -> str:
        """Name of a site's cluster and of its namespace."""
        return f"{self.name}-{stack}"

    def context(self, stack: str) -> str:
        """Context of the kubeconfig for a site."""
        return self.contexts[min(self.stacks.index(stack), len(self.contexts) - 1)]

    def problems(self) -> list[str]:
        """Return everything that is wrong with the answers, each with the option that corrects it."""
        return [
            *self._names(),
            *self._platform(),
            *self._reach(),
            *self._contexts(),
            *_each("topics", self.topics, KafkaName),
            *_each("groups", self.groups, Pattern),
            *self._rest(),
        ]

    def _names(self) -> Iterator[str]:
        if not _WORDS.fullmatch(self.name):
            yield (
                f"--name: must be lower-case words joined by '-', the first one beginning with a letter (got "
                f"{self.name!r}). Clusters, namespaces and users have it in their names: give --name."
            )
        if len(self.stacks) != 2 or len(set(self.stacks)) != 2:
            yield f"--stacks: must be two names, the source first (got {format_value(','.join(self.stacks))})."
        for stack in self.stacks:
            if not _WORDS.fullmatch(stack):
                yield f"--stacks: must be lower-case words joined by '-' (got {stack!r}). Rename the stack."

    def _platform(self) -> Iterator[str]:
        try:
            platform = self.release
        except ValueError:
            types = did_you_mean(self.platform, OLDEST)
            yield (
                f"--platform: must be strimzi or event-streams with its release (got {self.platform!r}, for example "
                f"{DEFAULT_PLATFORM}).{types}"
            )
            return
        oldest = OLDEST[platform.type]
        if platform.release < oldest:
            yield (
                f"--platform: must be {platform.type} {oldest[0]}.{oldest[1]} or later (got {platform.full_version}). "
                "Upgrade the operator."
            )
        if platform.type == "event-streams" and not self.accepts_license:
            yield "--accept-license: must be given for event-streams. Read IBM's license terms before."

    def _reach(self) -> Iterator[str]:
        if self.expose not in EXPOSE_TYPES:
            yield (
                f"--expose: must be one of {', '.join(EXPOSE_TYPES)} (got {self.expose!r})."
                f"{did_you_mean(self.expose, EXPOSE_TYPES)}"
            )
        for stack in self.hosts.keys() - set(self.stacks):
            yield f"--host: must name a stack of the pair (got {stack!r}, allowed {format_names(self.stacks)})."
        for stack, host in self.hosts.items():
            for message in invalid(host, HostName):
                yield f"--host {stack}: {message}"
        missing = [stack for stack in self.stacks if stack not in self.hosts]
        if self.expose in NEED_HOSTS and missing:
            yield (
                f"--host: must be given for {format_names(missing)} with {self.expose} (got nothing): "
                f"{' '.join(f'--host {stack}=NAME' for stack in missing)}. Clients find the brokers by it."
            )

    def _contexts(self) -> Iterator[str]:
        if not 1 <= len(self.contexts) <= 2 or not all(self.contexts):
            yield (
                "--contexts: must be one context of the kubeconfig, or two, the source's first (got "
                f"{format_value(','.join(self.contexts))}). `kubectl config get-contexts` lists them."
            )

    def _rest(self) -> Iterator[str]:
        if self.naming not in NAMINGS:
            yield (
                f"--naming: must be one of {', '.join(NAMINGS)} (got "
                f"{self.naming!r}).{did_you_mean(self.naming, NAMINGS)}"
            )
        if not 1 <= self.partitions <= PARTITIONS_MAX:
            yield f"--partitions: must be 1 to {PARTITIONS_MAX} (got {self.partitions})."


def split(text: str) -> tuple[str, ...]:
    """Return the entries of a list that is joined by commas, spaces around them left out."""
    return tuple(entry.strip() for entry in text.split(",") if entry.strip())


def operator_pin(platform: Platform) -> tuple[str, str]:
    """Return the channel and the version that OLM installs for a release of Strimzi."""
    major, minor = platform.release
    return f"strimzi-{major}.{minor}.x", f"strimzi-cluster-operator.v{platform.full_version}"


def _each(option: str, values: tuple[str, ...], kind: Any) -> Iterator[str]:
    """Each value by itself; none at all, or one twice, is a problem too."""
    if not values:
        yield f"--{option}: must name at least one (got nothing), joined by commas."
    for value in sorted({value for value in values if values.count(value) > 1}):
        yield f"--{option}: must name each once (got {value!r} twice)."
    for value in values:
        yield from (f"--{option}: {message}" for message in invalid(value, kind))
