"""From live objects to the stack file's values: the cluster, its users and its topics.

Does not read or write anything. What the settings cannot say is left to the comparison with what they render to.
"""

from collections.abc import Mapping
from typing import Any

from ops.adoption.live import Live, Object, exceptions
from ops.adoption.mirrors import described_mirror
from settings.event_streams import CHARGED_CONTAINERS, CLOUD_PAK_ANNOTATIONS

Values = dict[str, Any]
_LISTENER_KEYS = {"name": "name", "port": "port", "type": "type", "tls": "tls"}


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
    """How a mirror is counted; the settings have it once, for all mirrors of a stack."""
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
