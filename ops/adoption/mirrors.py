"""From a live KafkaMirrorMaker2 to a mirror's settings, in both shapes of the resource.

Its source becomes an external one: its Secrets exist in the namespace and stay as they are.
"""

from collections.abc import Mapping
from typing import Any

from ops.adoption.live import exceptions
from ops.errors import OpsError
from settings.mirrors import Mirror
from settings.model import Property, properties

Values = dict[str, Any]
_NAMING = {"IdentityReplicationPolicy": "identity", "DefaultReplicationPolicy": "prefixed"}
_STORAGE = ("config", "offset", "status")
# What the operator takes when `config` names nothing.
_USUAL_GROUP = "mirrormaker2-cluster"
_USUAL = {
    "config": f"{_USUAL_GROUP}-configs",
    "offset": f"{_USUAL_GROUP}-offsets",
    "status": f"{_USUAL_GROUP}-status",
}


def described_mirror(mirror: Mapping[str, Any], users: list[Values]) -> Values:
    """Return the settings of a mirror; raises OpsError for what they cannot say at all."""
    name, spec = str(mirror["metadata"]["name"]), mirror["spec"]
    flows = spec["mirrors"]
    if len(flows) != 1:
        raise OpsError(
            f"KafkaMirrorMaker2 {name}: spec.mirrors must have one entry to be adopted (got {len(flows)}). Split it "
            "into a resource each, or leave it out with --no-mirrors."
        )
    flow = flows[0]
    source, target = _ends(name, spec, flow)
    config = dict(target.get("config") or {})
    source_connector, checkpoint = flow.get("sourceConnector") or {}, flow.get("checkpointConnector") or {}
    values: Values = {
        "name": name,
        "source": {"alias": source["alias"], "external": _external(source)},
        "target": {"alias": target["alias"], "user": _user_of(name, target, users)},
        "version": spec.get("version"),
        "topics": _patterns(flow.get("topicsPattern", ".*")),
        "topicsExclude": _patterns(flow.get("topicsExcludePattern")),
        "groups": _patterns(flow.get("groupsPattern", ".*")),
        "groupsExclude": _patterns(flow.get("groupsExcludePattern")),
        "naming": _naming(source_connector.get("config") or {}),
        "replicas": spec.get("replicas"),
        "sourceTasksMax": source_connector.get("tasksMax"),
        "checkpointTasksMax": checkpoint.get("tasksMax"),
        "state": _state(source_connector),
        "autoRestart": source_connector.get("autoRestart"),
        "heartbeats": True if "heartbeatConnector" in flow else None,
        "resources": spec.get("resources"),
        "logLevel": next(iter(((spec.get("logging") or {}).get("loggers") or {}).values()), None),
        # All keys as they are: what a setting stands for is printed beside them, and written by neither.
        "configDefaults": False,
        **_storage(spec, target, config),
        "workerConfig": config or None,
        "sourceConfig": source.get("config"),
        "sourceConnectorConfig": source_connector.get("config"),
        "checkpointConnectorConfig": checkpoint.get("config"),
        "annotations": exceptions(mirror) or None,
        "heartbeatConnectorConfig": (flow.get("heartbeatConnector") or {}).get("config"),
        **_read_back(source_connector.get("config") or {}, "source_connector_config"),
        **_read_back(checkpoint.get("config") or {}, "checkpoint_connector_config"),
    }
    return {key: value for key, value in values.items() if value is not None}


def _ends(name: str, spec: Mapping[str, Any], flow: Mapping[str, Any]) -> tuple[Values, Values]:
    if "target" in spec:
        return flow["source"], spec["target"]
    clusters = {each["alias"]: each for each in spec["clusters"]}
    if flow["targetCluster"] != spec["connectCluster"]:
        raise OpsError(
            f"KafkaMirrorMaker2 {name}: connectCluster must be the mirror's target to be adopted (got "
            f"{spec['connectCluster']}, target {flow['targetCluster']}). Correct it first."
        )
    return clusters[flow["sourceCluster"]], clusters[flow["targetCluster"]]


def _external(source: Mapping[str, Any]) -> Values:
    authentication, tls = source.get("authentication") or {}, source.get("tls")
    cluster: Values = {"bootstrapServers": source["bootstrapServers"].split(",")}
    if tls is None:
        cluster["tls"] = False
    trusted = (tls or {}).get("trustedCertificates") or []
    if trusted:
        cluster["certificateAuthority"] = {"secret": trusted[0]["secretName"], "key": trusted[0].get("certificate")}
    external: Values = {
        "name": source["alias"],
        "cluster": cluster,
        "authentication": authentication.get("type", "none"),
        "username": authentication.get("username"),
    }
    if pair := authentication.get("certificateAndKey"):
        keys = {"certificateKey": pair["certificate"], "privateKeyKey": pair["key"]}
        external["secret"] = {"name": pair["secretName"], **keys}
    elif password := authentication.get("passwordSecret"):
        external["secret"] = {"name": password["secretName"], "passwordKey": password["password"]}
    return {key: value for key, value in external.items() if value is not None}


def _user_of(name: str, target: Mapping[str, Any], users: list[Values]) -> str:
    authentication = target.get("authentication") or {}
    secret = (authentication.get("passwordSecret") or authentication.get("certificateAndKey") or {}).get("secretName")
    known = [str(user["name"]) for user in users]
    # The operator writes each user's Secret under the user's name.
    for wanted in (authentication.get("username"), secret):
        if wanted in known:
            return str(wanted)
    raise OpsError(
        f"KafkaMirrorMaker2 {name}: the target's user must be a KafkaUser of the cluster to be adopted (got "
        f"{authentication.get('username') or secret or 'none'}, allowed {', '.join(known) or 'none'}). Adopt it with "
        "its cluster, or leave it out with --no-mirrors."
    )


def _patterns(joined: str | None) -> list[str]:
    """Alternatives of a list; a '|' inside brackets belongs to its expression."""
    if not joined:
        return []
    parts, depth, last = [""], 0, ""
    for character in joined:
        depth += (character in "([") - (character in ")]") if last != "\\" else 0
        if character in "|," and depth == 0 and last != "\\":
            parts.append("")
        else:
            parts[-1] += character
        last = "" if last == "\\" else character
    return [part.strip() for part in parts if part.strip()]


def _naming(config: Mapping[str, Any]) -> str:
    policy = str(config.get("replication.policy.class", "DefaultReplicationPolicy")).rsplit(".", 1)[-1]
    return _NAMING.get(policy, "prefixed")


def _state(connector: Mapping[str, Any]) -> str | None:
    return connector.get("state") or ("paused" if connector.get("pause") else None)


def _storage(spec: Mapping[str, Any], target: Mapping[str, Any], config: Values) -> Values:
    """Group and topics: fields of the target, or keys of its configuration with the operator's defaults."""
    if "target" in spec:
        names = {f"{kind}StorageTopic": target.get(f"{kind}StorageTopic") for kind in _STORAGE}
        return {"groupId": target.get("groupId"), **names}
    names = {f"{kind}StorageTopic": config.pop(f"{kind}.storage.topic", usual) for kind, usual in _USUAL.items()}
    return {"groupId": config.pop("group.id", _USUAL_GROUP), **names}


def _read_back(config: Mapping[str, Any], free_map: str) -> Values:
    """The settings that the verification must know, from the properties of the connector that is configured first."""
    return {
        key: config.get(name, each.kafka_default)
        for _, key, each in properties(Mirror, free_map)
        if isinstance(each, Property) and each.kafka_default is not None and each.maps[0] == free_map
        for name in each.names
    }
