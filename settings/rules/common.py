"""What several rules share: duplicate names, minimum and factor, refusing listeners, annotations, metrics, overrides.

`specOverrides` adds fields to a resource's spec, such as `image`, `template`, `jvmOptions` and `logging`. It must not
override what a setting stands for: the operator would get one value; the rules, the verification and the commands
another one. Which paths these are is known here.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from settings.cluster import Cluster, Listener, Metrics
from settings.errors import Problem, Subject
from settings.event_streams import COMPONENTS
from settings.model import Model
from settings.names import SUBDOMAIN_LENGTH_MAX, is_resource_name
from settings.platform import DOMAINS, Platform
from settings.text import format_value
from settings.users import User

Path = tuple[str, ...]
Paths = Mapping[Path, str]
"""Paths below `spec` that settings stand for, each with the setting to use instead."""

_KAFKA = {
    "version": "cluster.version",
    "replicas": "brokers",
    "storage": "storage",
    "listeners": "listeners",
    "authorization": "authorization and superUsers",
    "config": "config",
    "rack": "rack",
    "resources": "resources",
    "metricsConfig": "metrics",
}
_MIRROR = {
    "version": "version",
    "replicas": "replicas or scaling",
    "connectCluster": "target",
    "clusters": "source and target",
    "target": "target",
    "mirrors": "source, topics, groups and the ...ConnectorConfig maps",
    "resources": "resources",
    "rack": "rack",
    "metricsConfig": "metrics",
}
_OPERATORS = ("topicOperator", "userOperator")


def duplicates(key: str, noun: str, named: Mapping[int, tuple[str, Model]], field: str = "name") -> Iterator[Problem]:
    """Yield a problem for each entry whose name an earlier entry has."""
    first: dict[str, int] = {}
    for index, (name, _) in named.items():
        if first.setdefault(name, index) != index:
            yield Problem(
                f"{key}[{index}].{field}",
                f"{noun} {name}: {field} must be unique (got it in {key}[{first[name]}] too). Rename or remove one.",
            )


def leaves_room(minimum: int, factor: int) -> bool:
    """Whether one replica may be away without stopping acks=all producers; true for a single replica as well."""
    return minimum < factor or minimum == factor == 1


def room(at: Subject, minimum_key: str, minimum: int, factor_key: str, factor: int) -> str:
    """Return the message for a minimum that leaves no room."""
    rule = f"must be < {factor_key}" if factor > 1 else "must be 1"
    return (
        f"{at.name}: {minimum_key} {rule} (got {minimum}, {factor_key} {factor}). "
        "One broker restart would block acks=all producers."
    )


def refusing_listener(cluster: Cluster | None, user: User | None) -> Listener | None:
    """Return the listener of a managed cluster that mirrors use if it does not take the user's authentication."""
    if cluster is None or cluster.external is not None or user is None:
        return None
    try:
        listener = cluster.client_listener
    except KeyError:  # reported where the cluster is checked
        return None
    return None if listener.authentication == user.authentication else listener


def overridden(at: Subject, overrides: Mapping[str, Any], owned: Paths) -> Iterator[Problem]:
    """Yield a problem for each path of `specOverrides` that a setting stands for."""
    for path, setting in conflicts(overrides, owned).items():
        yield at.problem(
            "specOverrides",
            "must hold only fields that no setting stands for",
            f"{path}, which {setting} decides",
            "Remove it.",
            key=f"specOverrides.{path}",
        )


def owned_by_cluster(platform: Platform, components: Any) -> Paths:
    """Return what settings stand for in the resource of a cluster; `components` are those of its settings."""
    begin: Path = ("strimziOverrides",) if platform.type == "event-streams" else ()
    owned: dict[Path, str] = {(*begin, "kafka", field): setting for field, setting in _KAFKA.items()}
    nodes = {"replicas": "brokers", "storage": "storage"}
    owned |= {(*begin, "zookeeper", field): setting for field, setting in nodes.items()}
    owned |= {
        (*begin, "entityOperator", each): "the stack, which needs it for topics and users," for each in _OPERATORS
    }
    if platform.type != "event-streams":
        return owned
    owned |= {("version",): "platform.version", ("license",): "platform.license", (*begin, "nodePools"): "nodePools"}
    for name, field in COMPONENTS.items():
        part = getattr(components, name, None)
        fields = (
            [(field, key) for key in ("replicas", "resources")] if part is not None and part.enabled else [(field,)]
        )
        owned |= dict.fromkeys(fields, f"components.{field}")
    return owned


def owned_by_mirror(platform: Platform, *, heap: Mapping[str, str], log_level: str | None) -> Paths:
    """Return what settings stand for in a KafkaMirrorMaker2; `heap` are Java options that its settings give."""
    owned: dict[Path, str] = {(field,): setting for field, setting in _MIRROR.items()}
    owned |= {("jvmOptions", option): "jvm" for option in heap}
    if log_level is not None:
        owned[("logging",)] = "logLevel"
    if platform.type == "event-streams":
        owned[("template", "pod", "metadata", "annotations")] = "platform.cloudPak.annotations"
    return owned


def conflicts(overrides: Mapping[str, Any], owned: Paths) -> dict[str, str]:
    """Return dotted paths of overrides that would change what a setting stands for, each with that setting.

    The operators of topics and users are there always: fields below them may be added, they cannot be replaced.
    """
    found = {}
    for path, value in _leaves(overrides):
        for own, setting in owned.items():
            inside = path[: len(own)] == own and own[-1] not in _OPERATORS
            replaced = own[: len(path)] == path and not isinstance(value, Mapping)
            if inside or replaced:
                found[".".join(path)] = setting
                break
    return found


def _leaves(value: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Paths at which something is given that is no mapping, or an empty one."""
    for key, each in value.items():
        here = (*path, key)
        if isinstance(each, Mapping) and each:
            yield from _leaves(each, here)
        else:
            yield here, each


def dotted(release: tuple[int, int]) -> str:
    """Return a release as it is written: `0.45`."""
    return ".".join(str(part) for part in release)


# Prefixes of annotations that belong to an operator or a tool, with its name in messages.
RESERVED = {
    **dict.fromkeys(DOMAINS.values(), "the operator"),
    "pulumi.com": "Pulumi",
    "kubectl.kubernetes.io": "kubectl",
    "rt-inventory": "this project",
}
_NAME_LENGTH_MAX = 63
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def annotations(at: Subject, found: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a problem for each key that Kubernetes refuses, or that belongs to somebody else."""
    for key in found:
        rule = _wrong(key)
        if rule is not None:
            yield Problem(f"{at.key}.annotations[{key}]", f"{at.name}: {rule}")


def _wrong(key: str) -> str | None:
    # Kubernetes takes capitals in a prefix too: ValidateAnnotations checks the key in lower case.
    prefix, slash, name = key.rpartition("/")
    if len(name) > _NAME_LENGTH_MAX or not _NAME.fullmatch(name):
        return (
            f"annotations must have keys whose name, after a '/', is 1 to {_NAME_LENGTH_MAX} letters, digits, '-', '_' "
            f"and '.' with a letter or digit at both ends (got {format_value(key)}). Rename it."
        )
    if slash and not is_resource_name(prefix.lower()):
        return (
            "annotations must have keys whose prefix, before the '/', is a domain of at most "
            f"{SUBDOMAIN_LENGTH_MAX} characters (got {format_value(key)}). Rename it."
        )
    owner = RESERVED.get(prefix.lower())
    if owner is not None:
        return f"{key} must not be set in annotations ({owner} keeps {prefix}/ for itself). Remove it."
    return None


_KEYS = {
    "jmxPrometheusExporter": {"config_map": "configMap", "key": "key"},
    "strimziMetricsReporter": {"allow_list": "allowList"},
}


def metrics(at: Subject, settings: Metrics | None) -> Iterator[Problem]:
    """Yield the problems of the `metrics` of a cluster or a mirror."""
    if settings is None:
        return
    yield from [
        at.problem(
            f"metrics.{key}",
            f"must not be given with {settings.type}",
            fix="Remove it, or change the type.",
            why=f"it belongs to {type_}",
            key=key,
        )
        for type_, keys in _KEYS.items()
        for name, key in keys.items()
        if type_ != settings.type and name in settings.model_fields_set
    ]
    if settings.type == "jmxPrometheusExporter" and bool(settings.config_map) != bool(settings.key):
        yield at.problem(
            "metrics",
            "must name both a configMap and its key, or neither",
            f"{settings.config_map or 'nothing'} and {settings.key or 'nothing'}",
            "Give both; with neither the stack writes rules of its own.",
            key="key" if settings.config_map else "configMap",
        )
