"""`specOverrides`: fields of a resource's spec that no setting stands for, added to what is rendered.

Such are `image`, `template`, `jvmOptions` and `logging`. Nothing that a setting stands for can be overridden: it would
say one thing to the operator and another one to the rules, the verification and the commands. Owns which paths those
are; the dialects add the rest to their specs.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator

from settings.event_streams import COMPONENTS
from settings.platform import Platform

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


def none() -> Mapping[str, Any]:
    """Return no overrides; the default."""
    return MappingProxyType({})


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return MappingProxyType({str(key): _frozen(each) for key, each in value.items()})
    return tuple(_frozen(each) for each in value) if isinstance(value, list | tuple) else value


def plain(value: Any) -> Any:
    """Return a value as dicts and lists, as it is rendered."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


SpecOverrides = Annotated[Mapping[str, Any], AfterValidator(_frozen)]


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


_OPERATORS = ("topicOperator", "userOperator")


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
