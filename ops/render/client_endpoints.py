"""The two clusters of a mirror as a process outside Kubernetes reaches them: address, protocol, login, trust.

The outputs of a running stack come first, then what its stack file has. Reads no secret value: it only reports where
each one is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from ops.errors import OpsError
from settings import Stack
from settings.cluster import CertificateAuthority, bootstrap_servers
from settings.mirror_parts import ExternalSource
from settings.mirrors import Mirror
from settings.users import SASL_MECHANISMS, AnyAuthentication, ExistingSecret

End = Literal["source", "target"]
Part = Literal["ca", "password", "certificate", "key"]
FOLDER = PurePosixPath("/opt/mirror/secrets")
ENV_SINCE = (3, 5)
_PACKAGE = "org.apache.kafka.common.config.provider"
_VARIABLE = "MM2_"
_FILES: dict[Part, str] = {"ca": "ca.crt", "password": "password", "certificate": "user.crt", "key": "user.key"}


class Kind(StrEnum):
    """Where a process finds its secrets: in its environment, or in files of one folder."""

    ENV = "env"
    DIRECTORY = "directory"


@dataclass(frozen=True, kw_only=True)
class Secrets:
    """The provider of one file. `folder` is the directory provider's, on the machine that runs the mirror."""

    kind: Kind = Kind.ENV
    folder: PurePosixPath = FOLDER

    def place(self, end: End, part: Part) -> str:
        """Return the variable, or the path of the file, that has a value."""
        if self.kind is Kind.ENV:
            return f"{_VARIABLE}{end}_{part}".upper()
        return str(self.folder / f"{end}.{_FILES[part]}")

    def reference(self, end: End, part: Part) -> str:
        """Return the reference that the file has instead of the value."""
        if self.kind is Kind.ENV:
            return f"${{env:{self.place(end, part)}}}"
        return f"${{directory:{self.folder}:{end}.{_FILES[part]}}}"

    def properties(self) -> dict[str, str]:
        """Return the provider's own properties; it may read nothing but what belongs to the mirror."""
        name = self.kind.value
        classes = {Kind.ENV: "EnvVarConfigProvider", Kind.DIRECTORY: "DirectoryConfigProvider"}
        limits = {
            Kind.ENV: ("allowlist.pattern", f"{_VARIABLE}.*"),
            Kind.DIRECTORY: ("allowed.paths", str(self.folder)),
        }
        key, limit = limits[self.kind]
        return {
            "config.providers": name,
            f"config.providers.{name}.class": f"{_PACKAGE}.{classes[self.kind]}",
            f"config.providers.{name}.param.{key}": limit,
        }


Outputs = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ClientEndpoint:
    """One cluster. `origins` describes where each secret that its clients need is kept, by what it is."""

    alias: str
    cluster: str
    bootstrap_servers: str
    tls: bool
    authentication: AnyAuthentication
    username: str
    origins: Mapping[Part, str]

    @property
    def security_protocol(self) -> str:
        """Kafka's name of the protocol."""
        return f"{'SASL_' if self.authentication in SASL_MECHANISMS else ''}{'SSL' if self.tls else 'PLAINTEXT'}"


@dataclass(frozen=True, kw_only=True)
class StackDescription:
    """One stack: the settings in its file (None without one), and its outputs (empty if it is not up)."""

    name: str
    file: Path
    settings: Stack | None
    outputs: Outputs = field(default_factory=dict)


def target(mirror: Mirror, stack: StackDescription) -> ClientEndpoint:
    """Return the cluster that a mirror writes to; raises OpsError if its address is not known."""
    return _of_stack(f"mirror {mirror.name}: target", mirror.target.alias, mirror.target.user, stack)


def source(mirror: Mirror, home: str, other: Callable[[str], StackDescription]) -> ClientEndpoint:
    """Return the cluster that a mirror reads.

    Args:
        mirror: the mirror.
        home: namespace of the Secrets of an external cluster.
        other: returns the description of a stack by its name.

    Raises:
        OpsError: the address of the cluster is not known.
    """
    if mirror.source.external is not None:
        return _of_external(mirror.source.alias, mirror.source.external, home)
    known = other(str(mirror.source.stack))
    if known.settings is None and not known.outputs:
        raise OpsError(
            f"mirror {mirror.name}: source.stack must be up, or have its stack file beside this one (got {known.name}, "
            f"which is not up, and no {known.file}). Run `pulumi up -s {known.name}`, or add the file."
        )
    return _of_stack(f"mirror {mirror.name}: source", mirror.source.alias, str(mirror.source.user), known)


def _of_stack(subject: str, alias: str, name: str, stack: StackDescription) -> ClientEndpoint:
    cluster, users = stack.outputs.get("cluster") or {}, stack.outputs.get("users") or {}
    servers = cluster.get("bootstrapServers") or _address(subject, stack)
    login, secret = _login(subject, name, stack, users.get(name) or {})
    if cluster.get("securityProtocol"):
        tls = str(cluster["securityProtocol"]).endswith("SSL")
    else:
        tls = stack.settings is not None and stack.settings.cluster.has_tls
    if stack.settings is not None:
        own_authority = stack.settings.cluster.ca_secret is not None
    else:
        own_authority = cluster.get("caSecret") is not None
    output = f"stack {stack.name}, output userCredentials, {name}"
    place = {part: f"{output}.{key}" for part, key in _credentials(login.authentication).items()}
    origins: dict[Part, str] = {part: f"{words} ({secret})" for part, words in place.items()}
    if tls and own_authority:
        origins = {"ca": f"stack {stack.name}, output clusterCaCertificate", **origins}
    return ClientEndpoint(
        alias=alias,
        cluster=str(cluster.get("name") or (stack.settings.cluster.name if stack.settings else stack.name)),
        bootstrap_servers=str(servers),
        tls=tls,
        authentication=login.authentication,
        username=login.username,
        origins=origins,
    )


@dataclass(frozen=True)
class _Login:
    authentication: AnyAuthentication
    username: str


def _login(subject: str, name: str, stack: StackDescription, reported: Outputs) -> tuple[_Login, str]:
    """How a user logs in, and a description of the Secret with its credentials."""
    if reported.get("authentication"):
        return _Login(reported["authentication"], str(reported.get("username") or name)), (
            f"Secret {reported.get('secretName') or name}"
        )
    users = {user.name: user for user in stack.settings.users} if stack.settings is not None else {}
    if name not in users:
        raise OpsError(
            f"{subject}.user must be one of stack {stack.name}'s users (got {name}, allowed "
            f"{', '.join(sorted(users)) or 'none'}). Declare it in {stack.file.name}."
        )
    user = users[name]
    return _Login(user.authentication, user.login), f"Secret {user.secret.name if user.secret else user.name}"


def _address(subject: str, stack: StackDescription) -> str:
    if stack.settings is None:
        raise OpsError(
            f"{subject}: output cluster of stack {stack.name} must have bootstrapServers (got none). "
            f"Run `pulumi up -s {stack.name}`."
        )
    cluster = stack.settings.cluster
    servers = bootstrap_servers(cluster)
    if servers is None:
        listener = cluster.outside_listener
        raise OpsError(
            f"cluster {cluster.name}: host of listener {listener.name} must be given, or stack {stack.name} be up (got "
            f"a {listener.type} without host in {stack.file.name}). Only the running cluster knows its address."
        )
    return servers


def _of_external(alias: str, external: ExternalSource, home: str) -> ClientEndpoint:
    keys = external.secret
    origins: dict[Part, str] = {
        part: f"Secret {keys.name}, key {_key(keys, part)}, in namespace {home}"
        for part in _credentials(external.authentication)
        if keys is not None
    }
    authority = external.cluster.certificate_authority
    if external.cluster.tls and authority is not None:
        origins = {"ca": _authority(authority, external, home), **origins}
    return ClientEndpoint(
        alias=alias,
        cluster=external.name,
        bootstrap_servers=",".join(external.cluster.bootstrap_servers),
        tls=external.cluster.tls,
        authentication=external.authentication,
        username=external.username or external.name,
        origins=origins,
    )


def _authority(authority: CertificateAuthority, external: ExternalSource, home: str) -> str:
    if authority.file is not None:
        return f"file {authority.file}"
    secret, key = external.ca_secret or (external.name, authority.key)
    return f"Secret {secret}, key {key}, in namespace {home}"


def _credentials(authentication: AnyAuthentication) -> dict[Part, str]:
    """Parts that a login is made of, with their names in a stack's output."""
    if authentication in SASL_MECHANISMS:
        return {"password": "password"}
    if authentication == "none":
        return {}
    return {"certificate": "certificate", "key": "privateKey"}


def _key(keys: ExistingSecret, part: Part) -> str:
    return {"password": keys.password_key, "certificate": keys.certificate_key}.get(part, keys.private_key_key)
