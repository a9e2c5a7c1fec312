"""Reads metrics as a strict reader of OpenMetrics does."""

from typing import Any

from prometheus_client.openmetrics import exposition, parser
from prometheus_client.registry import Collector


def families_of(text: str) -> list[Any]:
    """The families of a text; raises ValueError for what is no OpenMetrics."""
    return list(parser.text_string_to_metric_families(text))  # type: ignore[no-untyped-call]  # has no types


def as_openmetrics(collector: Collector) -> str:
    """The text of a registry."""
    return bytes(exposition.generate_latest(collector)).decode()  # type: ignore[no-untyped-call]  # as above
