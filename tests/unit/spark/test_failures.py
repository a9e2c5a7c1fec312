"""What the job says when Spark itself gives up: one line, by the exception of Kafka's Java client."""

import pytest

from contract.verification_request import ClusterConfig, Limits, Mirror, Request
from spark.comparison import session_end

SECRET = "s3cret-of-reader"


def request() -> Request:
    sides = [
        ClusterConfig(
            role=role,
            alias=alias,
            client_config={"bootstrap.servers": f"{alias}:9093", "sasl.username": "reader", "sasl.password": SECRET},
        )
        for role, alias in (("source", "es-src"), ("target", "es-tgt"))
    ]
    mirror = Mirror(name="mm2", source_alias="es-src", target_alias="es-tgt", topics=("items",))
    return Request(source=sides[0], target=sides[1], mirror=mirror, limits=Limits())


def trace(cause: str) -> RuntimeError:
    return RuntimeError(
        "An error occurred while calling o1.collect.\n"
        ": org.apache.spark.SparkException: Job aborted due to stage failure\n"
        "\tat org.apache.spark.scheduler.DAGScheduler.failJob(DAGScheduler.scala:2840)\n"
        f"Caused by: {cause}\n\tat java.base/java.lang.Thread.run(Thread.java:840)\n"
    )


@pytest.mark.parametrize(
    ("cause", "reported"),
    [
        (
            "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access topics: [items]",
            "user reader may not Read topic items. Grant Read on topic items.",
        ),
        (
            "org.apache.kafka.common.errors.GroupAuthorizationException: Not authorized to access group: rt-1",
            "user reader may not Read group rt-1. Grant Read on group rt-1.",
        ),
        (
            "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed",
            "user reader: authentication failed. Check sasl.username",
        ),
        (
            "javax.net.ssl.SSLHandshakeException: PKIX path building failed",
            "the TLS handshake failed. Check ssl.ca.pem",
        ),
        (
            "java.lang.ArithmeticException: long overflow",
            "the timestamp of a record lies too far in the past for Spark. Set RT_INVENTORY_SPARK_ABOVE",
        ),
        (
            "java.util.concurrent.TimeoutException: Cannot fetch record for offset 17 in 30000 milliseconds",
            "no record came from offset 17 on within 30 s. Check that its brokers stay up",
        ),
        (
            "org.apache.kafka.common.errors.TimeoutException: Timeout of 20000ms expired before the position for "
            "partition items-0 could be determined",
            "no broker returned the position of items-0 within 20 s.",
        ),
        (
            "org.apache.kafka.common.errors.TimeoutException: Timeout of 20000ms expired before the last committed "
            "offset for partitions [items-1, items-2] could be determined. Try tuning default.api.timeout.ms larger.",
            "no broker returned the position of items-1, items-2 within 20 s.",
        ),
        (
            "org.apache.kafka.common.errors.TimeoutException: Failed to get offsets by times in 20000ms",
            "does not answer any more (org.apache.kafka.common.errors.TimeoutException: Failed to get",
        ),
        (
            "org.apache.kafka.clients.consumer.OffsetOutOfRangeException: Fetch position is out of range",
            "records were deleted while they were read. Verify again",
        ),
        ("java.lang.OutOfMemoryError: Java heap space", "Spark ran out of memory. Raise RT_INVENTORY_SPARK_MEMORY."),
        ("java.lang.IllegalStateException: odd", "cannot read the records: java.lang.IllegalStateException: odd."),
    ],
)
def test_an_exception_of_kafka_is_reported_in_one_line_with_what_to_do(cause: str, reported: str) -> None:
    said = session_end.message(trace(cause), request())
    assert reported in said
    assert said.startswith("source es-src (es-src:9093, user reader) or target es-tgt (es-tgt:9093, user reader): ")
    assert "\n" not in said
    assert "DAGScheduler" not in said


def test_the_side_is_named_when_the_trace_holds_its_address() -> None:
    error = trace("org.apache.kafka.common.errors.TimeoutException: Bootstrap es-tgt:9093 disconnected")
    assert session_end.message(error, request()).startswith("target es-tgt (es-tgt:9093, user reader): does not answer")


def test_a_secret_in_a_trace_is_hidden() -> None:
    said = session_end.message(trace(f"java.lang.IllegalStateException: {SECRET}"), request())
    assert SECRET not in said
    assert "[hidden]" in said


def test_an_error_without_words_is_named_by_its_kind() -> None:
    assert "RuntimeError" in session_end.message(RuntimeError(), request())
