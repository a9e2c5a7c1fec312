"""Lines of workers' logs as Kafka's releases write them: `doctor` recognises each by itself."""

import pytest

from ops.doctor.diagnosis import diagnose
from ops.doctor.observations import Log

from ...support.mirror_symptoms import seen

BROKER = "[AdminClient clientId=adminclient-8] Connection to node -1 (kafka.example.com/192.0.2.1:9093)"
TASK = "WorkerSourceTask{id=kafka-us->kafka-europe.MirrorSourceConnector-0}"


@pytest.mark.parametrize(
    ("line", "trouble"),
    [
        (
            f"ERROR {BROKER} failed authentication due to: Authentication failed during authentication due to invalid "
            "credentials with SASL mechanism SCRAM-SHA-512 (org.apache.kafka.clients.NetworkClient:786)",
            "authentication-refused",
        ),
        (
            "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed during authentication",
            "authentication-refused",
        ),
        (
            "org.apache.kafka.common.errors.SslAuthenticationException: SSL handshake failed",
            "authentication-refused",
        ),
        (
            "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access topics: [items]",
            "missing-acls",
        ),
        (
            "org.apache.kafka.common.errors.GroupAuthorizationException: Not authorized to access group: mm2",
            "missing-acls",
        ),
        ("org.apache.kafka.common.errors.ClusterAuthorizationException: Cluster authorization failed.", "missing-acls"),
        ("ERROR [Producer clientId=mm2] Not authorized to access topics: [items]", "missing-acls"),
        (
            "org.apache.kafka.common.errors.TimeoutException: Expiring 12 record(s) for items-0:120004 ms has passed "
            "since batch creation",
            "flush-time-out",
        ),
        (
            f"ERROR {TASK} Failed to flush, timed out while waiting for producer to flush outstanding 55 messages",
            "flush-time-out",
        ),
        (f"ERROR {TASK} Timed out waiting to flush offsets to storage; will try again", "offset-commit-time-out"),
        (f"ERROR {TASK} Timed out while waiting for previous offset flush to complete", "offset-commit-time-out"),
        (f"WARN {TASK} Commit of offsets timed out", "offset-commit-time-out"),
    ],
)
def test_a_line_of_a_workers_log_is_recognised(line: str, trouble: str) -> None:
    log = Log(name="log of pod mm2-0", text=f"INFO well\n{line}\nINFO well")
    assert [finding.trouble for finding in diagnose(seen(logs=(log,)))] == [trouble]
    assert line.split(" (org.")[0][-20:] in diagnose(seen(logs=(log,)))[0].what


def test_a_broker_that_is_out_of_reach_again_and_again_is_recognised() -> None:
    line = f"WARN {BROKER} could not be established. Node may not be available."
    log = Log(name="log of pod mm2-0", text="\n".join([line] * 12))
    (finding,) = diagnose(seen(logs=(log,)))
    assert finding.trouble == "broker-out-of-workers-reach"
    assert "kafka.example.com/192.0.2.1:9093" in finding.what
