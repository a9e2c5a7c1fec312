"""Rules of a mirror's scaling: bounds that hold together, one target, and no worker without a task to run."""

from collections.abc import Iterator

from settings.errors import Problem
from settings.mirrors import Mirror
from settings.scaling import Scaling

_ONLY_KEDA = ("prometheus", "trigger_authentication")


def scaling(where: str, subject: str, mirror: Mirror) -> list[Problem]:
    """Everything that is wrong with how a mirror is scaled."""
    settings = mirror.scaling
    if settings is None:
        return []
    found = [*_bounds(mirror, settings), *_target(settings), *_reads(settings)]
    return [Problem(f"{where}.{key}", f"{subject}: {key} {rule}") for key, rule in found]


def tasks(mirror: Mirror) -> dict[str, int]:
    """Tasks that a mirror can have at most, by the setting that allows them."""
    return {
        "sourceTasksMax": mirror.source_tasks_max,
        **({"checkpointTasksMax": mirror.checkpoint_tasks_max} if mirror.emit_checkpoints else {}),
        **({"heartbeats": 1} if mirror.heartbeats else {}),
    }


def _bounds(mirror: Mirror, settings: Scaling) -> Iterator[tuple[str, str]]:
    low, high = settings.min_replicas, settings.max_replicas
    if low > high:
        yield (
            "scaling.minReplicas",
            f"must be <= maxReplicas (got {low}, maxReplicas {high}). Lower it, or raise maxReplicas.",
        )
        return
    if not low <= mirror.replicas <= high:
        yield (
            "replicas",
            f"must lie within scaling.minReplicas and scaling.maxReplicas (got {mirror.replicas}, allowed "
            f"{low}..{high}). A new mirror begins with that many workers.",
        )
    busy = tasks(mirror)
    if high > sum(busy.values()):
        together = ", ".join(f"{key} {count}" for key, count in busy.items())
        yield (
            "scaling.maxReplicas",
            f"must be <= all tasks of the mirror (got {high}, tasks {sum(busy.values())}: {together}). "
            "More workers would stand idle: lower it, or raise sourceTasksMax.",
        )


def _target(settings: Scaling) -> Iterator[tuple[str, str]]:
    if settings.lag_records is None and settings.lag_seconds is None:
        yield "scaling.lagRecords", "must be given, or lagSeconds (got neither). Say how far behind is too far."
    if settings.lag_records is not None and settings.lag_seconds is not None:
        yield "scaling.lagRecords", "must not be given beside lagSeconds (got both). Leave one of them."


def _reads(settings: Scaling) -> Iterator[tuple[str, str]]:
    """KEDA asks Prometheus, a HorizontalPodAutoscaler whatever adapter serves external metrics."""
    if settings.through == "keda" and settings.prometheus is None:
        yield (
            "scaling.prometheus",
            "must be given with through keda (got nothing). Name the address at which KEDA reaches Prometheus.",
        )
    for name in _ONLY_KEDA:
        if settings.through == "hpa" and getattr(settings, name) is not None:
            yield (
                f"scaling.{Scaling.model_fields[name].alias}",
                "must not be given with through hpa (a metrics adapter has it in its own configuration). Remove it.",
            )
