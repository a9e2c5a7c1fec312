"""From live objects to the stack file's values: the cluster, its users, its topics and its mirrors.

A mirror's source becomes an external one: its Secrets exist in the namespace and stay as they are. Reads and writes
nothing. What the settings cannot express is left to the comparison with what they render to.
"""

from collections.abc import Mapping
from typing import Any

from kafka.connector_status import declared_state
from ops.adoption.live import Live, Object, exceptions
from ops.errors import OpsError
from settings.event_streams import CHARGED_CONTAINERS, CLOUD_PAK_ANNOTATIONS
from settings.mirrors import Mirror
from settings.model import Property, properties

Values = dict[str, Any]
_LISTENER_KEYS = {key: key for key in ("name", "port", "type", "tls", "networkPolicyPeers")}


def described(live: Live) -> Values:
    """Return the values of a stack file, by key, that describe what exists."""
    users = [_user(each) for each in live.users]
    values: Values = {
        "platform": _platform(live),
        "operator": {"install": "none"},
        "cluster": _cluster(live),
        "users": users,
        "topics": [_topic(each) for each in live.topics],
        "mirrors": [described_mirror(each, users) for each in live.mirrors],
    }
    if live.mirrors:
        # A verification is something new: it begins when somebody asks for it.
        values["verification"] = {"when": "never"}
    return {key: value for key, value in values.items() if value}


def _platform(live: Live) -> Values:
    group = live.api_version.split("/")[0]
    if group == "eventstreams.ibm.com":
        spec = live.cluster["spec"]
        terms = spec.get("license") or {}
        license_ = {"accept": bool(terms.get("accept")), "id": terms.get("license"), "use": terms.get("use")}
        platform: Values = {"type": "event-streams", "license": _given(license_)}
        if release := spec.get("version"):
            platform["version"] = str(release)
        if counted := _cloud_pak(live):
            platform["cloudPak"] = counted
    else:
        platform = {"type": "strimzi", "apiVersion": live.api_version}
        release = (live.cluster.get("status") or {}).get("operatorLastSuccessfulVersion")
        if release:
            platform["version"] = str(release)
    if any(each.get("type") == "route" for each in _kafka(live).get("listeners") or []):
        platform["distribution"] = "openshift"
    return platform


def _cloud_pak(live: Live) -> Values:
    """Cloud Pak's annotations of a mirror; the settings have them once, for all mirrors of a stack."""
    for mirror in live.mirrors:
        pod = (mirror["spec"].get("template") or {}).get("pod") or {}
        annotations = dict((pod.get("metadata") or {}).get("annotations") or {})
        annotations.pop(CHARGED_CONTAINERS, None)
        values: Values = {key: annotations.pop(name, None) for key, name in CLOUD_PAK_ANNOTATIONS.items()}
        return _given({**values, "annotations": annotations})
    return {}


def _kafka(live: Live) -> Mapping[str, Any]:
    spec = live.cluster["spec"]
    found: Mapping[str, Any] = (spec.get("strimziOverrides") or spec)["kafka"]
    return found


def _cluster(live: Live) -> Values:
    kafka = _kafka(live)
    authorization = kafka.get("authorization") or {}
    values: Values = {
        "name": live.name,
        "namespace": live.namespace,
        "version": kafka.get("version"),
        "listeners": [_listener(each) for each in kafka["listeners"]],
        "authorization": authorization.get("type", "none"),
        "superUsers": authorization.get("superUsers"),
        "config": kafka.get("config"),
        "configDefaults": False,
        "rack": _renamed(kafka.get("rack"), {"topologyKey": "topologyKey"}),
        "metrics": _metrics(kafka.get("metricsConfig")),
        "annotations": exceptions(live.cluster),
    }
    if live.pools:
        values["nodePools"] = [_pool(each) for each in live.pools]
    else:
        values |= {"brokers": kafka.get("replicas"), "storage": _storage(kafka.get("storage") or {})}
        values["resources"] = kafka.get("resources")
    return _given(values)


def _pool(pool: Object) -> Values:
    spec = pool["spec"]
    values = {
        "name": pool["metadata"]["name"],
        "roles": spec["roles"],
        "replicas": spec["replicas"],
        "storage": _storage(spec["storage"]),
        "resources": spec.get("resources"),
        "annotations": exceptions(pool),
    }
    return _given(values)


def _storage(spec: Mapping[str, Any]) -> Values:
    kind = spec.get("type", "ephemeral")
    if kind == "jbod":
        volumes = [{"id": each["id"], **_claim(each)} for each in spec.get("volumes") or []]
        return {"type": "jbod", "volumes": volumes}
    return {"type": kind, **(_claim(spec) if kind == "persistent-claim" else {})}


def _claim(spec: Mapping[str, Any]) -> Values:
    size = str(spec.get("size", ""))
    values = {
        "sizeGib": int(size.removesuffix("Gi")) if size.removesuffix("Gi").isdigit() and size.endswith("Gi") else None,
        "storageClass": spec.get("class"),
        "deleteClaim": spec.get("deleteClaim"),
    }
    return _given(values)


def _listener(spec: Mapping[str, Any]) -> Values:
    configuration = spec.get("configuration") or {}
    bootstrap = configuration.get("bootstrap") or {}
    values: Values = {setting: spec.get(field) for field, setting in _LISTENER_KEYS.items()}
    values |= {
        "authentication": (spec.get("authentication") or {}).get("type", "none"),
        "host": bootstrap.get("host") or next(iter(bootstrap.get("alternativeNames") or []), None),
        "hostTemplate": configuration.get("hostTemplate"),
        "ingressClass": configuration.get("class"),
        "nodePort": bootstrap.get("nodePort"),
        "annotations": bootstrap.get("annotations"),
    }
    return _given(values)


def _metrics(spec: Mapping[str, Any] | None) -> Values | None:
    if spec is None:
        return None
    reference = (spec.get("valueFrom") or {}).get("configMapKeyRef") or {}
    values = {
        "type": spec.get("type"),
        "configMap": reference.get("name"),
        "key": reference.get("key"),
        "allowList": (spec.get("values") or {}).get("allowList"),
    }
    return _given(values)


def _user(user: Object) -> Values:
    spec, authentication = user["spec"], user["spec"].get("authentication") or {}
    values: Values = {"name": user["metadata"]["name"], "authentication": authentication.get("type")}
    reference = ((authentication.get("password") or {}).get("valueFrom") or {}).get("secretKeyRef")
    if reference:
        values["secret"] = {"name": reference["name"], "passwordKey": reference["key"]}
    elif values["authentication"] == "scram-sha-512":
        values["generatedBy"] = "operator"
    values["configDefaults"] = False
    values["acls"] = [_acl(each) for each in (spec.get("authorization") or {}).get("acls") or []]
    values["annotations"] = exceptions(user)
    return _given(values)


def _acl(rule: Mapping[str, Any]) -> Values:
    resource = rule["resource"]
    values = {
        "type": resource["type"],
        "names": [resource["name"]] if "name" in resource else None,
        "match": resource.get("patternType"),
        "operations": rule.get("operations") or [rule.get("operation", "All")],
        "host": rule.get("host"),
        "permission": rule.get("type"),
    }
    return _given(values)


def _topic(topic: Object) -> Values:
    spec, name = topic["spec"], topic["metadata"]["name"]
    known = spec.get("topicName") or name
    values = {
        "name": known,
        "resource": name if known.lower().replace("_", "-") != name else None,
        "partitions": spec.get("partitions"),
        "replicas": spec.get("replicas"),
        "config": spec.get("config"),
        "annotations": exceptions(topic),
    }
    return _given(values)


def _renamed(spec: Mapping[str, Any] | None, names: Mapping[str, str]) -> Values | None:
    return None if spec is None else {setting: spec[field] for field, setting in names.items() if field in spec}


def _given(values: Mapping[str, Any]) -> Values:
    return {key: value for key, value in values.items() if value is not None and value not in ([], {})}


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
    """Return the settings of a mirror; raises OpsError for what no setting can express."""
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
        "standby": "open",  # an adoption takes nobody a right away
        "version": spec.get("version"),
        "topics": _patterns(flow.get("topicsPattern", ".*")),
        "topicsExclude": _patterns(flow.get("topicsExcludePattern")),
        "groups": _patterns(flow.get("groupsPattern", ".*")),
        "groupsExclude": _patterns(flow.get("groupsExcludePattern")),
        "naming": _naming(source_connector.get("config") or {}),
        "replicas": spec.get("replicas"),
        "sourceTasksMax": source_connector.get("tasksMax"),
        "checkpointTasksMax": checkpoint.get("tasksMax"),
        "state": declared_state(source_connector),
        "autoRestart": source_connector.get("autoRestart"),
        "heartbeats": True if "heartbeatConnector" in flow else None,
        "resources": spec.get("resources"),
        "logLevel": next(iter(((spec.get("logging") or {}).get("loggers") or {}).values()), None),
        # All keys as they are: the property of a setting is printed beside them, and written by neither.
        "configDefaults": False,
        **_storage_topics(spec, target, config),
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


def _storage_topics(spec: Mapping[str, Any], target: Mapping[str, Any], config: Values) -> Values:
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
