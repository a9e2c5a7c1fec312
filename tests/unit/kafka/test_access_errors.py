"""Each refusal of a cluster is one line: side, alias, address, user, what is wrong, and the remedy."""

import socket
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from contract.verification_request import ClusterConfig
from kafka import connectivity
from kafka import connectivity as leaders
from kafka.cluster import Cluster, Topic
from kafka.connectivity import Broker
from kafka.errors import ClusterError, DeniedError, Refusals, RefusedError, passes
from spark.run_context import ask_again

from ...support.certificates import certificate
from ...support.raw_producer import made_up_broker

SECRET = "made-up-password"
LOGIN = {"bootstrap.servers": "k1:9093", "sasl.username": "reader", "sasl.password": SECRET}


def side(**config: str) -> ClusterConfig:
    return ClusterConfig(role="source", alias="es-src", client_config=LOGIN | config)


@pytest.fixture
def port() -> Iterator[int]:
    """A port that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed() -> int:
    """A port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_missing_right_names_user_operation_resource_and_grant() -> None:
    with pytest.raises(DeniedError) as caught:
        Refusals(side()).deny([("Read", "topic items")])
    assert str(caught.value) == (
        "source es-src (k1:9093, user reader): user reader may not Read topic items. Grant Read on topic items."
    )


@pytest.mark.parametrize(
    ("reported", "helps"),
    [
        (KafkaError._AUTHENTICATION, False),
        (KafkaError._RESOLVE, True),
        (KafkaError._TRANSPORT, True),
        (KafkaError._SSL, True),
    ],
)
def test_a_wrong_password_is_refused_at_once_and_a_cluster_that_is_away_after_its_time(
    closed: int, reported: int, helps: bool
) -> None:
    """A handshake fails too where a line is cut or heals in its middle."""
    refusals = Refusals(side(**{"bootstrap.servers": f"127.0.0.1:{closed}", "security.protocol": "SASL_SSL"}))
    refusals.record(KafkaError(reported))
    last = KafkaException(KafkaError(KafkaError._TRANSPORT))
    if helps:
        refusals.connection(final=False, last=last, within_s=5)
    with pytest.raises(ClusterError) as caught:
        refusals.connection(final=helps, last=last, within_s=5)
    assert isinstance(caught.value, RefusedError) != helps
    refusals.begin()
    refusals.connection(final=False, last=last, within_s=5)  # what was reported before says nothing of the next try


def test_a_connection_that_ends_before_the_password_is_judged_is_no_wrong_password(closed: int) -> None:
    refusals = Refusals(side(**{"bootstrap.servers": f"127.0.0.1:{closed}", "security.protocol": "SASL_SSL"}))
    ended = "SASL SCRAM-SHA-512 mechanism handshake failed: Local: Broker transport failure"
    refusals.record(KafkaError(KafkaError._AUTHENTICATION, ended))
    last = KafkaException(KafkaError(KafkaError._TRANSPORT))
    refusals.connection(final=False, last=last, within_s=5)
    with pytest.raises(ClusterError, match="cannot be reached"):
        refusals.connection(final=True, last=last, within_s=5)


@pytest.mark.parametrize("shown", [None, "client"])
def test_only_what_the_handshake_itself_shows_of_a_tls_connection_lasts(shown: str | None) -> None:
    """A broker that requires certificates refuses every handshake without one, also that of a client that has one."""
    config = {"ssl.certificate.pem": certificate(shown, ends_in_days=9)} if shown else {}
    demands = connectivity.client_refused(config, "k1:9093")
    assert connectivity.lasts(demands, config, "k1:9093") == (shown is None)
    assert connectivity.lasts(("the broker's certificate at k1:9093 expired", "Renew it."), config, "k1:9093")


def test_names_of_topics_need_no_right_to_read_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class Admin:
        """Metadata, and nothing else."""

        def list_topics(self, timeout: float) -> Any:
            topics = {name: SimpleNamespace(error=None) for name in ("items", "a.b.items")}
            return SimpleNamespace(topics=topics | {"a.b.gone": SimpleNamespace(error="deleted")})

    cluster = Cluster(side())
    monkeypatch.setattr(cluster, "_admin", Admin())
    assert cluster.names(lambda name: name.startswith("a.b.")) == ["a.b.items"]


def test_all_missing_rights_are_reported_at_once_and_many_are_counted() -> None:
    text = Refusals(side()).denial([("Describe", "topic a"), ("Read", "topic a"), ("Read", "topic b")])
    assert (
        "may not Describe and Read topic a, Read topic b. Grant Describe and Read on topic a, Read on topic b." in text
    )
    assert "t9 and 5 more" in Refusals(side()).denial([("Read", f"topic t{number}") for number in range(15)])


@pytest.mark.parametrize("code", ["TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED"])
def test_a_denied_call_names_the_right_that_it_needs(code: str) -> None:
    error = KafkaException(KafkaError(getattr(KafkaError, code)))
    with pytest.raises(DeniedError, match=r"may not Describe group orders\. Grant Describe on group orders\."):
        Refusals(side()).call("read", error, ("Describe", "group orders"))


def test_any_other_failed_call_is_reported_with_its_reason_and_without_secrets() -> None:
    error = KafkaException(KafkaError(KafkaError.INVALID_REQUEST, f"bad {SECRET}"))
    with pytest.raises(ClusterError, match=r"cannot list topics: bad \[hidden\]") as caught:
        Refusals(side()).call("list topics", error, None)
    assert not isinstance(caught.value, DeniedError)


class _Silent(Cluster):
    """Lists no topics: raises what a call that failed with a code means."""

    def __init__(self, code: int) -> None:
        super().__init__(side())
        self._code = code

    def topics(self, wanted: Callable[[str], bool], named: Iterable[str] = ()) -> dict[str, Topic]:
        self.refusals.call("list topics", KafkaException(KafkaError(self._code)), None)


def test_a_call_that_gets_no_answer_hides_nothing_that_the_comparison_met() -> None:
    ask_again(_Silent(KafkaError._TIMED_OUT), {})
    with pytest.raises(ClusterError, match="cannot list topics"):
        ask_again(_Silent(KafkaError._TRANSPORT), {})


def test_only_errors_that_go_away_by_themselves_are_tried_again() -> None:
    assert passes(KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)))
    assert not passes(KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))


def test_partitions_without_a_leader_are_named() -> None:
    with pytest.raises(ClusterError, match=r"items-0, items-1 have no leader\. Start the brokers"):
        Refusals(side()).leaders({("items", 1): None, ("items", 0): None})


def test_a_broker_that_cannot_be_reached_is_named_with_its_address_and_partitions(closed: int) -> None:
    with pytest.raises(ClusterError) as caught:
        Refusals(side()).leaders({("items", 0): Broker(2, "127.0.0.1", closed)})
    assert f"broker 2 at 127.0.0.1:{closed}, which leads items-0, cannot be reached (Connection refused)" in str(
        caught.value
    )
    assert "listener advertises" in str(caught.value)


def test_leaders_that_take_connections_are_asked_once(port: int, closed: int) -> None:
    up, down = Broker(1, "127.0.0.1", port), Broker(2, "127.0.0.1", closed)
    reached: set[Broker] = set()
    lost = leaders.without_reachable_leader({("a", 0): up, ("a", 1): down, ("a", 2): None}, reached)
    assert lost == {("a", 1): down, ("a", 2): None}
    assert reached == {up}


def test_an_unknown_property_of_the_client_is_named() -> None:
    with pytest.raises(ClusterError, match=r'No such configuration property: "bootstrap\.server"'):
        Cluster(side(**{"bootstrap.server": "x"})).connect()


def test_an_expired_client_certificate_is_reported_before_anything_is_connected() -> None:
    config = {"ssl.certificate.pem": certificate("reader", ends_in_days=-1), "sasl.username": ""}
    with pytest.raises(
        ClusterError, match=r"user CN=reader\): the client certificate CN=reader expired on .*\. Renew it"
    ):
        Cluster(side(**config)).connect()


def test_a_client_certificate_of_tomorrow_is_reported() -> None:
    config = {"ssl.certificate.pem": certificate("reader", begins_in_days=1, ends_in_days=9)}
    assert "is valid from" in (connectivity.client_problem(config) or ("",))[0]


@pytest.mark.parametrize(("days", "warned"), [(13, True), (15, False)])
def test_certificates_that_end_within_two_weeks_are_warned_of(days: int, warned: bool) -> None:
    own = certificate("reader", ends_in_days=days)
    authority = certificate("authority", ends_in_days=days)
    lines = connectivity.warnings({"ssl.certificate.pem": own, "ssl.ca.pem": authority})
    assert bool(lines) is warned
    if warned:
        assert "client certificate CN=reader expires on" in lines[0]
        assert "in 12 days. Renew it." in lines[0]
        assert "trusted authority CN=authority expires on" in lines[1]


def test_an_expired_authority_is_reported(port: int) -> None:
    config = {"security.protocol": "SSL", "ssl.ca.pem": certificate("old", ends_in_days=-2)}
    reported = connectivity.problem(config, f"127.0.0.1:{port}")
    assert reported
    assert "every authority in ssl.ca.pem expired" in reported[0]


def test_a_port_where_nobody_listens_is_reported(closed: int) -> None:
    reported = connectivity.problem({"security.protocol": "SASL_SSL"}, f"127.0.0.1:{closed}")
    assert reported
    assert reported[0] == f"127.0.0.1:{closed} cannot be reached (Connection refused)"


def test_the_address_is_taken_from_what_librdkafka_says() -> None:
    assert (
        connectivity.address_in("[thrd:sasl_ssl://k1:9093/bootstrap]: sasl_ssl://k1:9093/bootstrap: SSL failed")
        == "k1:9093"
    )
    assert connectivity.address_in("ssl://[::1]:9093/1: failed") == "[::1]:9093"
    assert connectivity.address_in("nothing") is None


def test_a_connection_that_fails_keeps_the_client_that_there_was() -> None:
    with made_up_broker() as address:
        cluster = Cluster(ClusterConfig(role="source", alias="es-src", client_config={"bootstrap.servers": address}))
        cluster.connect()
        before = cluster.admin
        cluster._config["bootstrap.servers"] = "127.0.0.1:1"
        with pytest.raises(ClusterError, match="cannot be reached"):
            cluster.connect(within_s=0.1)
        assert cluster.admin is before
        cluster._config["bootstrap.servers"] = address
        cluster.connect()
        assert cluster.admin is not before
