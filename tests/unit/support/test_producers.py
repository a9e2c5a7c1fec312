"""A producer of tests raises for what it has given up, where the client's own `flush` answers 0."""

import pytest
from confluent_kafka import Producer

from tests.support.producers import RaisingProducer
from tests.support.raw_producer import made_up_broker

NO_SUCH_PARTITION = 99


def test_a_record_for_a_partition_that_is_not_there_is_raised() -> None:
    with made_up_broker() as address:
        client = {"bootstrap.servers": address, "log_level": 0}
        plain, ours = Producer(client), RaisingProducer(client)
        for one in (plain, ours):
            one.produce("items", "value", partition=NO_SUCH_PARTITION)
        assert plain.flush(10) == 0
        with pytest.raises(AssertionError, match=r"topic items: .*_UNKNOWN_PARTITION"):
            ours.deliver(10)


def test_records_that_wait_longer_than_they_may_are_counted() -> None:
    producer = RaisingProducer({"bootstrap.servers": "localhost:1", "log_level": 0})
    producer.produce("items", "value")
    with pytest.raises(AssertionError, match="1 records were not written within 0 s"):
        producer.deliver(0.1)
    producer.purge()
