"""Metrics as plain values: made by a look, sent between processes as JSON, told in a format of Prometheus."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

UNITS = ("seconds", "records")


@dataclass(frozen=True, kw_only=True)
class Family:
    """One gauge with its samples: labels and value."""

    name: str
    text: str
    samples: list[tuple[dict[str, str], float]] = field(default_factory=list)

    def add(self, value: float | None, **labels: str) -> None:
        """Add a sample; None is not told at all."""
        if value is not None:
            self.samples.append((labels, float(value)))

    def as_json(self) -> dict[str, Any]:
        """Return the family as JSON values."""
        samples = [{"labels": labels, "value": value} for labels, value in self.samples]
        return {"name": self.name, "help": self.text, "samples": samples}


def of_json(document: Mapping[str, Any]) -> Family:
    """Return the family of a document by `as_json`."""
    samples = [(dict(one["labels"]), float(one["value"])) for one in document["samples"]]
    return Family(name=document["name"], text=document["help"], samples=samples)


def of_registry(registry: Collector) -> list[Family]:
    """Return the gauges that somebody else has put into a registry."""
    return [
        Family(
            name=metric.name,
            text=metric.documentation,
            samples=[(dict(one.labels), float(one.value)) for one in metric.samples],
        )
        for metric in registry.collect()
    ]


def merged(families: Iterable[Family]) -> list[Family]:
    """Return one family a name, with the samples of all of them; a family without any is left out."""
    found: dict[str, Family] = {}
    for one in families:
        if one.samples:
            found.setdefault(one.name, Family(name=one.name, text=one.text)).samples.extend(one.samples)
    return [found[name] for name in sorted(found)]


def registry(families: Iterable[Family]) -> CollectorRegistry:
    """Return a registry that tells these families."""
    made = CollectorRegistry()
    made.register(_Told(merged(families)))
    return made


class _Told(Collector):
    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        for family in self._families:
            unit = next((unit for unit in UNITS if family.name.endswith(f"_{unit}")), "")
            metric = Metric(family.name, family.text, "gauge", unit)
            for labels, value in family.samples:
                metric.add_sample(family.name, labels, value)
            yield metric
