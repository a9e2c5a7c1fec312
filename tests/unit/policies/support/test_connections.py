"""Reading bootstrap servers."""

import pytest

from policies.support import connections as addresses


@pytest.mark.parametrize(
    ("servers", "hosts"),
    [
        (None, []),
        ("", []),
        ("kafka.example.com", ["kafka.example.com"]),
        (" A.example.com:9093 , b.example.com:9093,", ["a.example.com", "b.example.com"]),
        ("[2001:db8::1]:9093,10.0.0.1:9093", ["2001:db8::1", "10.0.0.1"]),
        ("SASL_SSL://rt:made@up@a.example.com:9093,rt:made-up@b.example.com", ["a.example.com", "b.example.com"]),
        ("SSL://kafka:9093", ["kafka"]),
    ],
)
def test_hosts_are_read_without_ports_brackets_and_blanks(servers: str | None, hosts: list[str]) -> None:
    assert addresses.hosts(servers) == hosts


def test_every_host_must_match_as_a_whole() -> None:
    assert addresses.all_match(["a.example.com", "b.example.com"], [r"a\..*", r"B\.EXAMPLE\.COM"])
    assert not addresses.all_match(["a.example.com", "b.example.com"], [r"a\..*"])
    assert not addresses.all_match(["a.example.com.evil.test"], [r"a\.example\.com"])


def test_no_host_matches_nothing_and_a_broken_pattern_matches_no_host() -> None:
    assert not addresses.all_match([], [".*"])
    assert not addresses.all_match(["a.example.com"], ["("])


@pytest.mark.parametrize(
    ("servers", "other", "same"),
    [
        ("kafka:9093", "SASL_SSL://rt:made-up@Kafka.here.svc.cluster.local:9094", True),
        ("SASL_SSL://a.example.com:9093", "SASL_SSL://b.example.com:9093", False),
        ("[2001:db8::1]:9093", "[2001:db8::2]:9093", False),
        ("[2001:db8::1]:9093", "[2001:DB8::1]:9093", True),
        ("a.example.com:9093", "a.example.com:9094", False),
        *(
            (other, "x-kafka-bootstrap.ns.svc:9093", True)
            for other in (
                "x-kafka-bootstrap.ns:9093",
                "x-kafka-brokers.ns.svc:9093",
                "x-kafka-external-bootstrap.ns.svc.cluster.local:9094",
                "x-kafka-0.x-kafka-brokers.ns.svc:9093",
                "x-dual-0.x-kafka-brokers.ns:9093",
            )
        ),
        ("x-kafka-brokers", "x-dual-0.x-kafka-brokers.here.svc:9093", True),
        ("x-kafka-bootstrap.ns:9093", "x-kafka-bootstrap.here.svc:9093", False),
        ("x-kafka-bootstrap.ns:9093", "y-kafka-brokers.ns:9093", False),
        ("x-kafka-kafka-bootstrap.ns:9093", "x-kafka-bootstrap.ns:9093", False),
        ("kafka.ns:9093", "kafka.ns.svc:9093", False),
        ("x-kafka-bootstrap.ns.example.com:9093", "x-kafka-bootstrap.ns.svc:9093", False),
        ("x.ns.svc:9093", "x-kafka-bootstrap.ns.svc:9093", False),
    ],
)
def test_clusters_are_reported_apart_by_host_and_port(servers: str, other: str, same: bool) -> None:
    props = {"metadata": {"name": "mm2", "namespace": "here"}}
    one, two = (addresses.addresses({"bootstrapServers": each}, props) for each in (servers, other))
    assert bool(one & two) is same
