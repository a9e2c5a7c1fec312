"""From a KafkaMirrorMaker2 resource to the connectors that Strimzi 1.2 creates for it, and from their state to Ready.

The mapping is that of Strimzi's `KafkaMirrorMaker2Connectors`. In kafka.strimzi.io/v1 there are two connectors per
mirror, source and checkpoint: the heartbeat connector was removed from the resource.

Strimzi judges the connectors alone: a mirror is Ready with a failed task, and with a source that refuses its user (the
connector is RUNNING without a task then). The tasks are in the status.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.operator import metrics_config

PACKAGE = "org.apache.kafka.connect.mirror"
KINDS = {"sourceConnector": "MirrorSourceConnector", "checkpointConnector": "MirrorCheckpointConnector"}
_SCRAM = {"scram-sha-512": "SCRAM-SHA-512", "scram-sha-256": "SCRAM-SHA-256"}
_PATTERNS = {
    "topicsPattern": "topics",
    "topicsExcludePattern": "topics.exclude",
    "groupsPattern": "groups",
    "groupsExcludePattern": "groups.exclude",
}


@dataclass(frozen=True)
class SecretFile:
    """One value of a Secret that the workers read from a file: `file` is its name below the secrets folder."""

    secret: str
    key: str
    pattern: bool = False

    @property
    def file(self) -> str:
        """Path below the secrets folder, one folder per Secret."""
        return f"{self.secret}/{self.key}"


@dataclass(frozen=True)
class Connector:
    """A connector as it is sent to Connect, and what the operator does about its state and its offsets.

    The last two name ConfigMaps: where its offsets are written when they are asked for, and what they are altered to.
    """

    name: str
    config: dict[str, str]
    state: str
    auto_restart: bool
    max_restarts: int | None
    source_alias: str
    list_offsets_to: str | None = None
    alter_offsets_from: str | None = None


def definitions(name: str, spec: dict[str, Any], secrets: Path) -> list[Connector]:
    """All connectors of the resource `name`, in the order of its mirrors."""
    result = []
    target = spec["target"]
    for mirror in spec["mirrors"]:
        alias = mirror["source"]["alias"]
        for field, kind in KINDS.items():
            connector = mirror.get(field)
            if connector is None:
                continue
            full_name = f"{alias}->{target['alias']}.{kind}"
            restart = connector.get("autoRestart") or {}
            config = {
                **_configuration(name, mirror, target, connector, secrets),
                "connector.class": f"{PACKAGE}.{kind}",
                "tasks.max": _text(connector.get("tasksMax", 1)),
                "name": full_name,
            }
            if metrics_config.is_reporter(spec):
                config |= metrics_config.connector_properties(config)
            result.append(
                Connector(
                    name=full_name,
                    config=config,
                    state=connector.get("state") or "running",
                    auto_restart=bool(restart.get("enabled")),
                    max_restarts=restart.get("maxRestarts"),
                    source_alias=alias,
                    list_offsets_to=_reference(connector, "listOffsets", "toConfigMap"),
                    alter_offsets_from=_reference(connector, "alterOffsets", "fromConfigMap"),
                )
            )
    return result


def client_config(name: str, cluster: dict[str, Any], secrets: Path) -> dict[str, str]:
    """How a client reaches one side; every secret is a reference into the folder `secrets`."""
    tls = cluster.get("tls")
    authentication = cluster.get("authentication") or {}
    kind = authentication.get("type")
    result: dict[str, str] = {"bootstrap.servers": cluster["bootstrapServers"]}
    protocol = "SSL" if tls is not None else "PLAINTEXT"
    if tls and tls.get("trustedCertificates"):
        reference = f"{trust_folder(name)}:{trust_key(cluster['alias'])}"
        result["ssl.truststore.certificates"] = f"${{directory:{secrets}/{reference}}}"
        result["ssl.truststore.type"] = "PEM"
    if kind == "tls":
        pair = authentication["certificateAndKey"]
        folder = secrets / pair["secretName"]
        result["ssl.keystore.certificate.chain"] = f"${{directory:{folder}:{pair['certificate']}}}"
        result["ssl.keystore.key"] = f"${{directory:{folder}:{pair['key']}}}"
        result["ssl.keystore.type"] = "PEM"
    elif kind in (*_SCRAM, "plain"):
        protocol = "SASL_SSL" if tls is not None else "SASL_PLAINTEXT"
        module = "plain.PlainLoginModule" if kind == "plain" else "scram.ScramLoginModule"
        source = authentication["passwordSecret"]
        password = f"${{directory:{secrets}/{source['secretName']}:{source['password']}}}"
        result["sasl.mechanism"] = "PLAIN" if kind == "plain" else _SCRAM[kind]
        result["sasl.jaas.config"] = (
            f"org.apache.kafka.common.security.{module} required "
            f'username="{authentication["username"]}" password="{password}";'
        )
    result["security.protocol"] = protocol
    return result


def secret_files(spec: dict[str, Any]) -> list[SecretFile]:
    """Values of Secrets other than trusted certificates that the workers need in files."""
    return list(dict.fromkeys(entry for cluster in sides(spec) for entry in secret_files_of(cluster)))


def secret_files_of(cluster: dict[str, Any]) -> list[SecretFile]:
    """The same for one side."""
    authentication = cluster.get("authentication") or {}
    result = []
    if source := authentication.get("passwordSecret"):
        result.append(SecretFile(source["secretName"], source["password"]))
    if pair := authentication.get("certificateAndKey"):
        result += [SecretFile(pair["secretName"], pair[field]) for field in ("certificate", "key")]
    return result


def trusted(cluster: dict[str, Any]) -> list[SecretFile]:
    """Certificates that one side trusts, in order; a `pattern` entry means all matching keys of the Secret."""
    entries = (cluster.get("tls") or {}).get("trustedCertificates") or []
    return [
        SecretFile(entry["secretName"], entry.get("certificate") or entry.get("pattern") or "*.crt", "pattern" in entry)
        for entry in entries
    ]


def sides(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The target, then every source."""
    return [spec["target"], *(mirror["source"] for mirror in spec["mirrors"])]


def trust_folder(name: str) -> str:
    """Folder of the joined certificates, named as the Secret that Strimzi makes of them."""
    return f"{name}-mirrormaker2-connect-tls-trusted-certs"


def trust_key(alias: str) -> str:
    """File of one side's joined certificates."""
    return f"{alias}.crt"


def _configuration(
    name: str, mirror: dict[str, Any], target: dict[str, Any], connector: dict[str, Any], secrets: Path
) -> dict[str, str]:
    result: dict[str, str] = {}
    for prefix, cluster in (("target.cluster.", target), ("source.cluster.", mirror["source"])):
        result[prefix + "alias"] = cluster["alias"]
        result |= {prefix + key: value for key, value in client_config(name, cluster, secrets).items()}
        result |= {prefix + key: _text(value) for key, value in (cluster.get("config") or {}).items()}
    result |= {key: _text(value) for key, value in (connector.get("config") or {}).items()}
    result |= {key: mirror[field] for field, key in _PATTERNS.items() if mirror.get(field) is not None}
    return result


def _reference(connector: dict[str, Any], field: str, inner: str) -> str | None:
    name: str | None = ((connector.get(field) or {}).get(inner) or {}).get("name")
    return name


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# Written by org.apache.kafka.clients.NetworkClient for every refused connection, whichever client it is.
REFUSED = re.compile(r"Connection to node -?\d+ \((?P<host>[^/)]*)/(?P<ip>[^)]*):(?P<port>\d+)\) failed authentication "
                     r"due to: (?P<cause>.*?) \(org\.apache")  # fmt: skip
Problem = tuple[str, str]
FAILED = "FAILED"


def connector_problem(name: str, connector: Connector, status: dict[str, Any] | None) -> Problem | None:
    """Reason and message if the connector itself failed or has no state yet, None otherwise; `status` is Connect's."""
    subject = f"KafkaMirrorMaker2 {name}: connector {connector.name}"
    if status is None:
        return "ConnectorStarting", f"{subject} was created and has no state yet."
    if status["connector"]["state"] != FAILED:
        return None
    trace = status["connector"].get("trace", "").strip()
    cause = trace.splitlines()[0][:300] if trace else "no trace"
    return "ConnectorFailed", f"{subject}: connector FAILED: {cause}. Correct the cause; see the worker's log."


def has_failed(status: dict[str, Any] | None) -> bool:
    """Whether the connector or one of its tasks has failed."""
    return status is not None and FAILED in (status["connector"]["state"], *(task["state"] for task in status["tasks"]))


def refusal(name: str, cluster: dict[str, Any], log: str) -> Problem | None:
    """Reason and message if the cluster refused a connection by the log, None otherwise; never the password."""
    servers = {server.strip() for server in cluster["bootstrapServers"].split(",")}
    for match in REFUSED.finditer(log):
        addresses = {f"{match['host']}:{match['port']}", f"{match['ip']}:{match['port']}"}
        if not addresses & servers:
            continue
        subject = f"KafkaMirrorMaker2 {name}"
        if "SSL" in match["cause"]:
            secrets = ", ".join(
                entry["secretName"] for entry in (cluster.get("tls") or {}).get("trustedCertificates") or []
            )
            return "TlsFailed", (
                f"{subject}: the certificate of the cluster {cluster['alias']} is not trusted ({match['cause']}). "
                f"tls.trustedCertificates ({secrets or 'none'}) must hold the cluster's authority: correct it, the "
                "mirror goes on by itself."
            )
        authentication = cluster.get("authentication") or {}
        if pair := authentication.get("certificateAndKey"):
            return "AuthenticationFailed", (
                f"{subject}: its certificate was refused by the cluster {cluster['alias']} ({match['cause']}). Secret "
                f"{pair['secretName']} keys {pair['certificate']} and {pair['key']} must hold a certificate that the "
                "cluster's clients authority signed: correct it, the mirror goes on by itself."
            )
        secret = authentication.get("passwordSecret") or {}
        return "AuthenticationFailed", (
            f"{subject}: user {authentication.get('username')} was refused by the cluster {cluster['alias']} "
            f"({authentication.get('type')}). Secret {secret.get('secretName')} key {secret.get('password')} must hold "
            "that user's password there: correct it, the mirror goes on by itself."
        )
    return None
