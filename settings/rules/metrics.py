"""Rules of how metrics are exposed: each way has keys of its own, and an exporter's rules are a ConfigMap and a key."""

from settings.cluster import Metrics
from settings.errors import Problem

_KEYS = {
    "jmxPrometheusExporter": {"config_map": "configMap", "key": "key"},
    "strimziMetricsReporter": {"allow_list": "allowList"},
}


def metrics(where: str, subject: str, settings: Metrics | None) -> list[Problem]:
    """Problems of what a cluster or a mirror says about its metrics."""
    if settings is None:
        return []
    problems = [
        Problem(
            f"{where}.{key}",
            f"{subject}: metrics.{key} must not be given with {settings.type} (it belongs to {type_}). Remove it, or "
            "change the type.",
        )
        for type_, keys in _KEYS.items()
        for name, key in keys.items()
        if type_ != settings.type and name in settings.model_fields_set
    ]
    if settings.type == "jmxPrometheusExporter" and bool(settings.config_map) != bool(settings.key):
        problems.append(
            Problem(
                f"{where}.{'key' if settings.config_map else 'configMap'}",
                f"{subject}: metrics must name both a configMap and its key, or neither (got "
                f"{settings.config_map or 'nothing'} and {settings.key or 'nothing'}). Give both; with neither the "
                "stack writes rules of its own.",
            )
        )
    return problems
