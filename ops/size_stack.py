"""What a stack file says about a mirror's topics, and the settings that a size means for the mirror."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ops.errors import OpsError
from ops.size_model import Size
from settings import NAMESPACE, SettingsError, Stack
from settings.files import load
from settings.mirrors import Mirror
from settings.patterns import copied


@dataclass(frozen=True)
class Declared:
    """A mirror, and the topics, partitions and brokers that the stack files declare for it; None is not known here."""

    mirror: str
    topics: int
    partitions: int
    source_brokers: int | None
    target_brokers: int


def read_declared(path: Path, mirror: str | None) -> Declared:
    """Return what the stack file declares for a mirror, topics by the source stack's file beside it; raises OpsError.

    Without such a file the topics are those that this stack declares and the mirror copies.
    """
    stack = _load(path)
    chosen = _mirror(path, stack, mirror)
    source = None
    if chosen.source.stack is not None:
        beside = path.with_name(f"Pulumi.{chosen.source.stack}{path.suffix}")
        source = _load(beside) if beside.exists() else None
    topics = [topic for topic in (source or stack).topics if copied(topic.name, chosen.topics, chosen.topics_exclude)]
    return Declared(
        mirror=chosen.name,
        topics=len(topics),
        partitions=sum(topic.partitions for topic in topics),
        source_brokers=_source_brokers(chosen, source),
        target_brokers=stack.cluster.broker_count,
    )


def mirror_settings(name: str, size: Size) -> dict[str, Any]:
    """Return the keys of one entry of `mirrors` that give the mirror this size."""
    memory = f"{size.memory_mib}Mi"
    heap = f"{size.heap_mib}m"
    entry: dict[str, Any] = {
        "name": name,
        "sourceTasksMax": size.tasks,
        "replicas": size.replicas,
        "resources": {
            "requests": {"cpu": f"{size.cpu_per_worker:g}", "memory": memory},
            "limits": {"cpu": f"{size.cpu_limit:g}", "memory": memory},
        },
        "jvm": {"xms": heap, "xmx": heap},
    }
    overrides = {"producer": size.producer, "consumer": size.consumer}
    return entry | {key: dict(values) for key, values in overrides.items() if values}


def snippet(name: str, size: Size) -> str:
    """Return those keys as they stand in a stack file."""
    text: str = yaml.safe_dump({f"{NAMESPACE}:mirrors": [mirror_settings(name, size)]}, sort_keys=False)
    return text


def _load(path: Path) -> Stack:
    try:
        return load(path)
    except SettingsError as error:
        raise OpsError(str(error)) from None


def _mirror(path: Path, stack: Stack, name: str | None) -> Mirror:
    names = [mirror.name for mirror in stack.mirrors]
    if name is None and len(names) == 1:
        return stack.mirrors[0]
    if name not in names:
        got = "nothing" if name is None else repr(name)
        raise OpsError(
            f"--mirror: must be a mirror of {path} (got {got}, allowed {', '.join(names) or 'none, it declares none'})."
        )
    return next(mirror for mirror in stack.mirrors if mirror.name == name)


def _source_brokers(mirror: Mirror, source: Stack | None) -> int | None:
    if mirror.source.external is not None:
        return mirror.source.external.cluster.brokers
    return source.cluster.broker_count if source else None
