"""Hands over the metrics of a run: to node_exporter's textfile collector, or to a push gateway."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prometheus_client import push_to_gateway, write_to_textfile

from contract.verification_metrics import JOB, registry
from kafka.errors import visible_document

PUSH_DEADLINE_S = 10.0


def to_file(path: Path, result: Mapping[str, Any]) -> None:
    """Replace a file in the text exposition format at once; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_to_textfile(str(path), registry(visible_document(result)))


def push(url: str, result: Mapping[str, Any]) -> None:
    """Replace the group of this stack's mirror on a push gateway; raises OSError, of which urllib's errors are a kind.

    Stacks may have mirrors of the same name: only with the stack in its key a group is of one of them.
    """
    stack = {"stack": str(result["stack"])} if result.get("stack") else {}
    key = {**stack, "mirror": str(result["mirror"])}
    push_to_gateway(url, JOB, registry(visible_document(result)), grouping_key=key, timeout=PUSH_DEADLINE_S)
