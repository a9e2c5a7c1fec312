"""How long a cluster is waited for that is gone: as long as its user says, and not until a client's own time-outs."""

import time
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient

from contract.verification_request import ClusterConfig
from kafka import group_commits
from kafka.cluster import Cluster
from kafka.errors import ClusterError
from kafka.topic_metadata import topic_ids
from kafka.topic_partition import TopicPartition

CALLS: dict[str, Callable[[Cluster], object]] = {
    "groups": Cluster.group_states,
    "offsets of groups": lambda side: group_commits.read(side, ["orders"]),
    "names of topics": lambda side: side.names(lambda _: True),
    "ids of topics": lambda side: topic_ids(side, ["items"]),
    "ends of logs": lambda side: side.ends([TopicPartition("items", 0)], "read_uncommitted"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_cluster_that_is_gone_is_waited_for_as_long_as_its_user_says(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"bootstrap.servers": "127.0.0.1:1"}
    side = Cluster(ClusterConfig(role="source", alias="es-src", client_config=config))
    monkeypatch.setattr(side, "_admin", AdminClient(config, logger=side._quiet))
    side.call_within_s = 1.0
    began = time.monotonic()
    with pytest.raises(ClusterError):
        CALLS[name](side)
    assert time.monotonic() - began < 10
