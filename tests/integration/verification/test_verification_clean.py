"""A pair whose mirror is whole yields no finding, however often it is verified while records arrive.

Everything of a run is real and done anew each time; only the Spark session is shared, whose start takes longest.
Every other run compares without Spark.
`RT_INVENTORY_CLEAN_RUNS` says how many runs, 3 unless set.
"""

import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from contract.documents import parse
from ops.connection import from_outputs
from spark import job
from spark.comparison import spark_session
from spark.comparison.comparer import ABOVE, ABOVE_RECORDS
from spark.progress import Progress
from spark.run_context import RunContext

from ...support.producers import RaisingProducer
from ...support.running_sandbox import Pair, Sandbox

pytestmark = pytest.mark.nightly
RUNS = int(os.environ.get("RT_INVENTORY_CLEAN_RUNS", "3"))
FIRST, PAUSE_S = 3000, 0.005


@contextmanager
def producing(client: dict[str, str], topic: str) -> Iterator[None]:
    """Write records, and then one every few milliseconds until the block ends."""
    ended = threading.Event()
    producer = RaisingProducer({**client, "enable.idempotence": True, "linger.ms": 5})
    for number in range(FIRST):
        producer.produce(topic, key=str(number), value=uuid.uuid4().hex)
    producer.deliver()

    def write() -> None:
        while not ended.wait(PAUSE_S):
            producer.produce(topic, key=uuid.uuid4().hex, value=uuid.uuid4().hex)
            producer.poll(0)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()
        producer.deliver()


def test_a_clean_pair_yields_no_finding_in_many_runs_in_a_row(
    pair: Pair, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = pair.stg["verificationEnvironment"]["mm2"]
    environment = os.environ | secrets | sandbox.tools.spark_environment
    request = parse(pair.stg["verificationRequests"]["mm2"], environment)
    with spark_session.session(environment) as spark, producing(from_outputs("dev", pair.dev).client_config(), "items"):

        @contextmanager
        def shared(*_: object, **__: object) -> Iterator[SparkSession]:
            yield spark

        monkeypatch.setattr(spark_session, "session", shared)
        for number in range(RUNS):
            above = {ABOVE: "0" if number % 2 else str(ABOVE_RECORDS)}
            found = job.verify(RunContext(request=request), environment | above, Progress())
            findings = [finding for part in found["partitions"] for finding in part["findings"]]
            assert findings == [], f"run {number}: {findings}"
            assert not [check for check in found["checks"] if check["ok"] is False], f"run {number}"
            assert found["records_compared"], f"run {number}"
