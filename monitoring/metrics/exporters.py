"""The two exporters of Kafka's metrics: the JMX exporter with its rules, and Strimzi's Metrics Reporter.

`RELABELLINGS` give the reporter's series the names and labels that the JMX exporter's rules give.
"""

import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

from monitoring.metrics.catalog import Part, of_part
from settings.patterns import matches

_JMX_FOLDER = Path(__file__).parents[1] / "jmx"
JMX_WORKERS, JMX_BROKERS = "mirror-maker-2.yaml", "kafka.yaml"
_LAG = "kafka_consumer_consumer_fetch_manager_metrics_records_lag(?:_max)?"
_CLUSTERS = rf"{_LAG};(.+?)->([^|]+)\|.*"
_OWN_LAG = "__tmp_own_lag"
# Rules of `metric_relabel_configs`; they change nothing of what the JMX exporter's rules name.
RELABELLINGS: tuple[dict[str, Any], ...] = (
    # Texts are written as `<name>_info`.
    {"source_labels": ["__name__"], "regex": "(.+_status)_info", "target_label": "__name__", "replacement": "$1"},
    # Lag is that of MirrorMaker's own consumers, not of Connect's, and a topic with dots is exported twice.
    {
        "source_labels": ["__name__", "client_id", "topic"],
        "regex": rf"{_LAG};.+\|replication-consumer;[^.]+",
        "target_label": _OWN_LAG,
        "replacement": "yes",
    },
    {"source_labels": ["__name__", _OWN_LAG], "regex": f"{_LAG};", "action": "drop"},
    {"action": "labeldrop", "regex": _OWN_LAG},
    {"source_labels": ["__name__", "client_id"], "regex": _CLUSTERS, "target_label": "source", "replacement": "$1"},
    {"source_labels": ["__name__", "client_id"], "regex": _CLUSTERS, "target_label": "target", "replacement": "$2"},
)


def consumer_config() -> dict[str, str | bool]:
    """Return the configuration by which MirrorMaker's own consumers report their lag; the operator leaves them out.

    Their metrics appear where the worker serves its own. The class is that of Strimzi 1.0 and later.
    """
    return {
        "metric.reporters": "io.strimzi.kafka.metrics.prometheus.ClientMetricsReporter",
        "prometheus.metrics.reporter.listener.enable": False,
        "prometheus.metrics.reporter.allowlist": _LAG,
    }


def allow_list(part: Part) -> tuple[str, ...]:
    """Return expressions that fit just a part's names in the catalogue, one for each kind of MBean.

    The reporter compares them with names before their type adds a suffix.
    """
    metrics = sorted((each for each in of_part(part) if each.group), key=lambda each: each.name)
    found = []
    for group, members in groupby(metrics, key=lambda each: each.group):
        names = [each.name.removeprefix(f"{group}_").removesuffix("_total") for each in members]
        found.append(f"{group}_({'|'.join(names)})" if len(names) > 1 else f"{group}_{names[0]}")
    return tuple(found)


def held_back(part: Part, allowed: Iterable[str]) -> tuple[str, ...]:
    """Return a part's names in the catalogue that a list of somebody's own does not let through.

    The lag is not among them: MirrorMaker's consumers report it by a list of theirs.
    """
    expressions = tuple(allowed)
    names = (each.name.removesuffix("_total") for each in of_part(part) if each.group)
    return tuple(
        name for name in names if not re.fullmatch(_LAG, name) and not any(matches(each, name) for each in expressions)
    )


def jmx_rules(file: str) -> str:
    """Return the text of one of the two rule files of the JMX exporter."""
    return (_JMX_FOLDER / file).read_text(encoding="utf-8")
