"""The catalogue of metrics. Here is what it states of each: name, kind, unit, labels, and what exports it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """How a value moves: up and down, only up, or always 1 with its content in its labels."""

    GAUGE = "gauge"
    COUNTER = "counter"
    INFO = "info"


class Part(StrEnum):
    """What exposes a metric; each is another kind of scrape target."""

    WORKER = "worker"
    BROKER = "broker"
    OPERATOR = "operator"
    VERIFICATION = "verification"
    OPS = "ops"
    PROMETHEUS = "prometheus"


class Exporter(StrEnum):
    """What turns it into a series; the first two are values of `metrics.type`."""

    JMX = "jmxPrometheusExporter"
    REPORTER = "strimziMetricsReporter"
    OPERATOR = "the operator itself"
    VERIFICATION = "python -m spark"
    OPS = "python -m ops"
    PROMETHEUS = "Prometheus itself"


OF_KAFKA = (Exporter.JMX, Exporter.REPORTER)
# What a scrape adds to every series of a target.
TARGET_LABELS: Mapping[Part, tuple[str, ...]] = {
    Part.WORKER: ("job", "stack", "namespace", "mirror", "pod"),
    Part.BROKER: ("job", "stack", "namespace", "cluster", "pod"),
    Part.OPERATOR: ("job",),
    Part.VERIFICATION: ("stack", "mirror"),
    Part.OPS: ("stack", "mirror"),
    Part.PROMETHEUS: ("job",),
}


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One series name as expressions use it.

    `labels` are its own, beside those of the target. `origin` is an MBean pattern and an attribute of it, or a program.
    `group` is how the names of an MBean's attributes begin. `always` is false for what a healthy system may not show.
    """

    name: str
    kind: Kind
    unit: str
    help: str
    labels: tuple[str, ...]
    part: Part
    origin: str
    exporters: tuple[Exporter, ...]
    group: str = ""
    always: bool = True

    @property
    def all_labels(self) -> tuple[str, ...]:
        """Its own labels and those of its target."""
        return (*self.labels, *(label for label in TARGET_LABELS[self.part] if label not in self.labels))


def together(*groups: Iterable[Metric]) -> tuple[Metric, ...]:
    """Return the metrics of all groups; raises ValueError for a name that occurs twice."""
    found: dict[str, Metric] = {}
    for metric in (each for group in groups for each in group):
        if metric.name in found:
            raise ValueError(f"metric {metric.name}: must be in the catalogue once. Remove one of the two.")
        found[metric.name] = metric
    return tuple(found.values())
