"""KafkaUser: its credential (a SCRAM password or a certificate), its ACLs, and the Secret that clients mount."""

import hashlib
import secrets
import string
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from sandbox import pki
from sandbox.operator import NotReadyError
from sandbox.operator.admin import REQUEST_TIMEOUT_S, Cluster, ClusterLookup, refused, result, results
from sandbox.operator.kubernetes_api import LABEL, USER, Kubernetes, Object
from sandbox.operator.reconcile import Outcome

from . import certificates

ITERATIONS = 4096
GENERATED_LENGTH = 32
RESYNC_S = 120.0  # as the user operator: a Secret that a KafkaUser only refers to is not watched
SCRAM, CERTIFICATE, OWN_CERTIFICATE = "scram-sha-512", "tls", "tls-external"


@dataclass
class Users:
    """Reconciler of KafkaUser."""

    kubernetes: Kubernetes
    lookup: ClusterLookup
    # Kafka returns no password, so what was set is remembered as a digest that is worthless outside this process.
    _salt: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    _set: dict[tuple[str, str, str], bytes] = field(default_factory=dict)
    # As each was when it was last reconciled: nothing holds a KafkaUser back until its credential is gone.
    _last: dict[tuple[str, str], Object] = field(default_factory=dict)
    resource = USER
    finalizer: str | None = None  # as Strimzi 1.2.0

    def reconcile(self, resource: Object) -> Outcome:
        """Set the user's credential and ACLs, write the Secret; see `Reconciler`."""
        name, namespace = resource["metadata"]["name"], resource["metadata"]["namespace"]
        spec, kind = resource["spec"], _kind(resource)
        self._last[namespace, name] = resource
        self._check(resource)
        password = self._password(resource) if kind == SCRAM else ""
        cluster = self.lookup.of(resource)
        values: dict[str, str] = {}
        settled = True
        if kind == SCRAM:
            self._credential(cluster, namespace, name, password)
            jaas = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{name}" '
            shown = password.replace("\N{REPLACEMENT CHARACTER}", "?")
            values = {"password": shown, "sasl.jaas.config": f'{jaas}password="{_quoted(shown)}";'}
        elif kind == CERTIFICATE:
            values, settled = certificates.user_secret_values(self.lookup, resource, cluster.name)
        before = (resource.get("status") or {}).get("username")
        if before and before != _username(name, kind):
            # The user had another kind of authentication: what was granted to it in that form is taken away.
            self._revoke(cluster, namespace, name, f"User:{before}", scram=before == name)
        self._acls(cluster, resource)
        if values:
            labels = {
                LABEL: cluster.name,
                "strimzi.io/kind": "KafkaUser",
                "app.kubernetes.io/managed-by": "strimzi-user-operator",
            }
            template = ((spec.get("template") or {}).get("secret") or {}).get("metadata") or {}
            labels = {**(template.get("labels") or {}), **labels}
            self.kubernetes.write_secret(resource, name, values, labels, template.get("annotations"))
        warnings: tuple[tuple[str, str], ...] = ()
        if spec.get("authorization") and not cluster.authorizes:
            warnings = (
                (
                    "AclsWithoutAuthorization",
                    f"KafkaUser {name}: Kafka {cluster.name} has no authorization, its ACLs have no effect.",
                ),
            )
        status = {"username": _username(name, kind)} | ({"secret": name} if values else {})
        return Outcome(status, again_s=RESYNC_S if settled else 1.0, warnings=warnings)

    def remove(self, namespace: str, name: str, resource: Object | None) -> None:
        """Make the credential unusable and delete the ACLs, unless the cluster goes away with them.

        A certificate stays valid until it ends, as with Strimzi, but gives no rights any more. One that was deleted
        while no operator ran is forgotten; Strimzi's finds it by the credentials and ACLs that the cluster lists.
        """
        last = resource or self._last.get((namespace, name))
        cluster = self.lookup.if_it_stays(last) if last else None
        if last is not None and cluster is not None:
            kind = _kind(last)
            self._revoke(cluster, namespace, name, f"User:{_username(name, kind)}", scram=kind == SCRAM)
        self._last.pop((namespace, name), None)

    def _revoke(self, cluster: Cluster, namespace: str, name: str, principal: str, *, scram: bool) -> None:
        if scram:
            self._set.pop((namespace, cluster.name, name), None)
            # Not deleted but made unusable: once a credential was deleted, a broker of Kafka 4.3.1 that restarts before
            # its next metadata snapshot reads none of the credentials of its cluster any more, and refuses every user.
            nobody_knows = secrets.token_urlsafe(48).encode()
            upsertion = UserScramCredentialUpsertion(name, _scram_info(), nobody_knows)
            results(
                cluster.client.alter_user_scram_credentials([upsertion]), lambda _: f"KafkaUser {name}: shut it out"
            )
        if cluster.authorizes:
            results(
                cluster.client.delete_acls([principal_filter(principal)]),
                lambda _: f"KafkaUser {name}: delete its ACLs",
            )

    @staticmethod
    def _check(resource: Object) -> None:
        name, spec = resource["metadata"]["name"], resource["spec"]
        kinds = (SCRAM, CERTIFICATE, OWN_CERTIFICATE)
        if _kind(resource) not in (None, *kinds):
            raise NotReadyError(
                "UnsupportedAuthentication",
                f"KafkaUser {name}: authentication.type must be known (got {_kind(resource)}, allowed "
                f"{', '.join(kinds)}). Change it.",
                retry_s=30,
            )
        if spec.get("quotas"):
            raise NotReadyError(
                "UnsupportedQuotas",
                f"KafkaUser {name}: quotas are not supported in the sandbox (got {', '.join(sorted(spec['quotas']))}). "
                "Leave them out here.",
                retry_s=30,
            )

    def _password(self, resource: Object) -> str:
        """The password of the referenced Secret, else the one given before, else a new one."""
        name, namespace = resource["metadata"]["name"], resource["metadata"]["namespace"]
        source = (resource["spec"]["authentication"].get("password") or {}).get("valueFrom", {}).get("secretKeyRef")
        if not source:
            known = (self.kubernetes.secret(namespace, name) or {}).get("password")
            alphabet = string.ascii_letters + string.digits
            return known or "".join(secrets.choice(alphabet) for _ in range(GENERATED_LENGTH))
        # What asks for a new password comes by another watch than the password.
        stored = self.kubernetes.secret_now(namespace, source["name"])
        values = stored.values if stored else None
        subject = f"KafkaUser {name}: password.valueFrom.secretKeyRef"
        if values is None:
            raise NotReadyError(
                "SecretNotFound",
                f"{subject} must name an existing Secret (got {source['name']}, there is none in {namespace}). "
                "Create it.",
                retry_s=2,
            )
        if not values.get(source["key"]):
            raise NotReadyError(
                "SecretKeyNotFound",
                f"{subject} must name a key with a value (Secret {source['name']} has no {source['key']}). Add it.",
                retry_s=2,
            )
        # KafkaUserModel of Strimzi decodes it as US-ASCII: every other byte becomes U+FFFD, and its Secret has "?".
        return values[source["key"]].encode(errors="surrogateescape").decode("ascii", errors="replace")

    def _credential(self, cluster: Cluster, namespace: str, name: str, password: str) -> None:
        digest = hashlib.sha256(self._salt + password.encode()).digest()
        key = (namespace, cluster.name, name)
        if self._set.get(key) == digest and _has_credential(cluster.client, name):
            return
        upsertion = UserScramCredentialUpsertion(name, _scram_info(), password.encode())
        results(
            cluster.client.alter_user_scram_credentials([upsertion]), lambda _: f"KafkaUser {name}: set its credential"
        )
        self._set[key] = digest

    @staticmethod
    def _acls(cluster: Cluster, resource: Object) -> None:
        if not cluster.authorizes:
            return
        name = resource["metadata"]["name"]
        principal = f"User:{_username(name, _kind(resource))}"
        try:
            wanted = declared_acls(name, resource["spec"])
        except ValueError as error:
            raise NotReadyError("InvalidAcl", str(error), retry_s=30) from error
        listed = result(cluster.client.describe_acls(principal_filter(principal)), f"KafkaUser {name}: read its ACLs")
        have = existing_acls(listed)
        if missing := sorted(wanted - have):
            new = [acl_binding(principal, rule) for rule in missing]
            results(cluster.client.create_acls(new), lambda _: f"KafkaUser {name}: create its ACLs")
        if surplus := sorted(have - wanted):
            old = [rule_filter(principal, rule) for rule in surplus]
            results(
                cluster.client.delete_acls(old), lambda _: f"KafkaUser {name}: delete ACLs that it no longer declares"
            )


def _kind(resource: Object) -> str | None:
    kind = (resource["spec"].get("authentication") or {}).get("type")
    return str(kind) if kind else None


def _username(name: str, kind: str | None) -> str:
    """The user's name in its status and, after `User:`, in its principal."""
    certificate = kind in (CERTIFICATE, OWN_CERTIFICATE)
    return pki.user_principal(name).removeprefix("User:") if certificate else name


def _has_credential(client: AdminClient, name: str) -> bool:
    futures: Any = client.describe_user_scram_credentials([name])
    future = futures[name]
    try:
        described = future.result(timeout=REQUEST_TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.RESOURCE_NOT_FOUND:
            return False
        raise refused(error, f"KafkaUser {name}: read its credential") from error
    return any(info.mechanism == ScramMechanism.SCRAM_SHA_512 for info in described.scram_credential_infos)


def _scram_info() -> ScramCredentialInfo:
    return ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS)


def _quoted(password: str) -> str:
    """The password inside a quoted JAAS value."""
    return password.replace("\\", "\\\\").replace('"', '\\"')


CLUSTER_NAME = "kafka-cluster"
_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "cluster": ResourceType.BROKER,
    "transactionalId": ResourceType.TRANSACTIONAL_ID,
}
_PATTERNS = {"literal": ResourcePatternType.LITERAL, "prefix": ResourcePatternType.PREFIXED}
_PERMISSIONS = {"allow": AclPermissionType.ALLOW, "deny": AclPermissionType.DENY}
_OPERATIONS = {
    "All": AclOperation.ALL, "Read": AclOperation.READ, "Write": AclOperation.WRITE, "Create": AclOperation.CREATE,
    "Delete": AclOperation.DELETE, "Alter": AclOperation.ALTER, "Describe": AclOperation.DESCRIBE,
    "ClusterAction": AclOperation.CLUSTER_ACTION, "AlterConfigs": AclOperation.ALTER_CONFIGS,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS, "IdempotentWrite": AclOperation.IDEMPOTENT_WRITE,
}  # fmt: skip


@dataclass(frozen=True, order=True)
class AclRule:
    """One ACL binding without its principal, comparable and hashable; members are Kafka's names."""

    resource: str
    name: str
    pattern: str
    operation: str
    permission: str
    host: str


def declared_acls(user: str, spec: dict[str, Any]) -> set[AclRule]:
    """Rules of `spec.authorization.acls`; raises ValueError for an operation that does not exist."""
    rules = set()
    for entry in (spec.get("authorization") or {}).get("acls") or []:
        resource = entry["resource"]
        name = CLUSTER_NAME if resource["type"] == "cluster" else resource.get("name", "*")
        for operation in entry.get("operations") or []:
            if operation not in _OPERATIONS:
                raise ValueError(
                    f"KafkaUser {user}: operations must be known (got {operation}, allowed {', '.join(_OPERATIONS)})."
                )
            rules.add(
                AclRule(
                    _RESOURCES[resource["type"]].name,
                    name,
                    _PATTERNS[resource.get("patternType", "literal")].name,
                    _OPERATIONS[operation].name,
                    _PERMISSIONS[entry.get("type", "allow")].name,
                    entry.get("host", "*"),
                )
            )
    return rules


def existing_acls(bindings: Iterable[Any]) -> set[AclRule]:
    """Rules of the `AclBinding`s that a cluster lists."""
    return {
        AclRule(
            acl_binding.restype.name,
            acl_binding.name,
            acl_binding.resource_pattern_type.name,
            acl_binding.operation.name,
            acl_binding.permission_type.name,
            acl_binding.host,
        )
        for acl_binding in bindings
    }


def acl_binding(principal: str, rule: AclRule) -> AclBinding:
    """The binding to create for a rule."""
    return AclBinding(*_arguments(principal, rule))


def rule_filter(principal: str, rule: AclRule) -> AclBindingFilter:
    """The filter that matches this rule's binding and no other."""
    return AclBindingFilter(*_arguments(principal, rule))


def principal_filter(principal: str) -> AclBindingFilter:
    """The filter that matches every binding of a principal."""
    anything: Any = None  # the package's types do not know that a filter may leave names out
    return AclBindingFilter(
        ResourceType.ANY,
        anything,
        ResourcePatternType.ANY,
        principal,
        anything,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )


def _arguments(principal: str, rule: AclRule) -> tuple[Any, ...]:
    return (
        ResourceType[rule.resource],
        rule.name,
        ResourcePatternType[rule.pattern],
        principal,
        rule.host,
        AclOperation[rule.operation],
        AclPermissionType[rule.permission],
    )
