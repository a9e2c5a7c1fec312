"""One Spark session for all fast tests of the verification job: no Kafka, no network."""

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from kafka.cluster import Cluster
from spark.comparison import spark_session

from ...support.spark_logs import SMALL, TRUSTED, class_archive
from ...support.undecodable_headers import side, with_odd_names


@pytest.fixture(scope="session")
def spark_jvm() -> dict[str, str]:
    """Variables of a process, this one or a child, that starts Spark's JVM."""
    return class_archive()


@pytest.fixture(scope="session")
def spark(spark_jvm: dict[str, str], monkeypatch_session: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """A local session without the Kafka connector, on the core of this worker."""
    monkeypatch_session.setattr(spark_session, "CONNECTOR", "")
    monkeypatch_session.setattr(spark_session, "REQUIRED", spark_session.REQUIRED | SMALL)
    environment = {name: value for name, value in os.environ.items() if name != "RT_INVENTORY_SPARK_JARS"}
    environment |= {**spark_jvm, "RT_INVENTORY_SPARK_CORES": "1"}
    with spark_session.session(environment, small=True, options=TRUSTED) as session:
        yield session


@pytest.fixture(scope="session")
def monkeypatch_session() -> Iterator[pytest.MonkeyPatch]:
    """Changes that last for the whole run."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """Address of a made-up broker that holds headers whose names are not UTF-8."""
    with with_odd_names() as address:
        yield address


@pytest.fixture
def cluster(broker: str) -> Cluster:
    """That broker as the source."""
    return Cluster(side("source", broker))
