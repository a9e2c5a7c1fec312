"""What several rules share: duplicate names, minimum and factor, refusing listeners, annotations and metrics."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from settings.cluster import Cluster, Listener, Metrics
from settings.errors import Problem, Subject
from settings.model import Model
from settings.names import RESERVED, SUBDOMAIN_LENGTH_MAX, is_resource_name
from settings.spec_overrides import Paths, conflicts
from settings.text import format_value
from settings.users import User


def duplicates(key: str, noun: str, named: Mapping[int, tuple[str, Model]], field: str = "name") -> Iterator[Problem]:
    """A problem for each entry whose name an earlier entry has."""
    first: dict[str, int] = {}
    for index, (name, _) in named.items():
        if first.setdefault(name, index) != index:
            yield Problem(
                f"{key}[{index}].{field}",
                f"{noun} {name}: {field} must be unique (got it in {key}[{first[name]}] too). Rename or remove one.",
            )


def leaves_room(minimum: int, factor: int) -> bool:
    """One replica may be away without stopping acks=all producers; a single replica has no room to leave."""
    return minimum < factor or minimum == factor == 1


def room(at: Subject, minimum_key: str, minimum: int, factor_key: str, factor: int) -> str:
    """The message for a minimum that leaves no room."""
    rule = f"must be < {factor_key}" if factor > 1 else "must be 1"
    return (
        f"{at.name}: {minimum_key} {rule} (got {minimum}, {factor_key} {factor}). "
        "One broker restart would block acks=all producers."
    )


def refusing_listener(cluster: Cluster | None, user: User | None) -> Listener | None:
    """The listener of a managed cluster that mirrors use, if it does not take the user's authentication."""
    if cluster is None or cluster.external is not None or user is None:
        return None
    try:
        listener = cluster.client_listener
    except KeyError:  # reported where the cluster is checked
        return None
    return None if listener.authentication == user.authentication else listener


def overridden(at: Subject, overrides: Mapping[str, Any], owned: Paths) -> Iterator[Problem]:
    """A problem for each path of `specOverrides` that a setting stands for."""
    for path, setting in conflicts(overrides, owned).items():
        yield at.problem(
            "specOverrides",
            "must hold only fields that no setting stands for",
            f"{path}, which {setting} decides",
            "Remove it.",
            key=f"specOverrides.{path}",
        )


def dotted(release: tuple[int, int]) -> str:
    """A release as it is written."""
    return ".".join(str(part) for part in release)


_NAME_LENGTH_MAX = 63
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def annotations(at: Subject, found: Mapping[str, str]) -> Iterator[Problem]:
    """A problem for each key that Kubernetes or its owner would not have here."""

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
    """Problems of what a cluster or a mirror says about its metrics."""
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
