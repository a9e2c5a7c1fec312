"""One Spark session for all fast tests of the verification job: no Kafka, no network."""

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark.records import sources


@pytest.fixture(scope="session")
def spark(monkeypatch_session: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """A local session without the Kafka connector."""
    monkeypatch_session.setattr(sources, "CONNECTOR", "")
    environment = {name: value for name, value in os.environ.items() if name != "RT_INVENTORY_SPARK_JARS"}
    with sources.session(environment, small=True) as session:
        yield session


@pytest.fixture(scope="session")
def monkeypatch_session() -> Iterator[pytest.MonkeyPatch]:
    """Changes that last for the whole run."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch
