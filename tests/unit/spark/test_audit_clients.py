"""A side whose client fails has a new one in the next round; one that is answered keeps its client."""

from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from kafka.errors import ClusterError
from spark.audit import audit
from spark.audit.audit import Audit, Options
from spark.audit.store import AuditStore

from .test_audit_judging import request


class StuckClient:
    """A cluster whose first client fails from its second request on, as librdkafka's may; a new one is answered."""

    def __init__(self, side: Any) -> None:
        self.side, self.clients, self.asked = side, 0, 0

    def connect(self) -> None:
        self.clients += 1

    def topics(self, *_: object) -> dict[str, object]:
        return dict.fromkeys(self.names())

    def names(self, *_: object) -> list[str]:
        self.asked += 1
        if self.side.role == "source" and self.clients == 1 and self.asked > 1:
            raise ClusterError("source es-source: cannot list topics: Local: Broker transport failure.")
        return []


def test_the_round_after_one_that_failed_has_a_new_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "Cluster", StuckClient)
    for asked in ("topic_ids", "first_offsets"):
        monkeypatch.setattr(audit, asked, lambda *_: {})
    store = AuditStore(tmp_path, "mirror mm2", 0)
    one, spark = Audit(request(), store, Options()), cast("SparkSession", None)
    problems = []
    for _ in range(3):
        one.round(spark)
        problems.append(len(one.document().problems))
    store.close()
    assert problems == [0, 1, 0]
    sides = cast("dict[str, StuckClient]", one._clusters)
    assert {role: side.clients for role, side in sides.items()} == {"source": 2, "target": 1}
