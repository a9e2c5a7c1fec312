"""What a Kafka client reports becomes one message that says what to do."""

import pytest
from confluent_kafka import KafkaError

from ops.errors import explain

TRANSPORT = KafkaError(KafkaError._TRANSPORT, "Connection refused")
DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ([TRANSPORT, KafkaError(KafkaError._AUTHENTICATION, "x"), DOWN], "got user 'alice', refused"),
        ([TRANSPORT, KafkaError(KafkaError._SSL, "certificate verify failed"), DOWN], "signed by the given CA"),
        ([KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)], "Add an ACL"),
        ([KafkaError(KafkaError._RESOLVE, "x"), DOWN], "must be known names (got h:1)"),
        ([TRANSPORT, DOWN], "must be reachable (got h:1; Connection refused)"),
        ([], "must be reachable (got h:1)"),
    ],
)
def test_the_most_telling_reason_is_shown(errors: list[KafkaError], message: str) -> None:
    assert message in str(explain(errors, "dev", "h:1", "alice"))
