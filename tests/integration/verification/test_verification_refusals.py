"""Bad input against real brokers: each is reported soon, in one clear message, and leaves a report.

Source and target are one cluster of two brokers; prefixed names keep the two sides' topics apart. No mirror runs.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from contract.verification_request import ClusterConfig
from kafka.cluster import Cluster
from kafka.errors import ClusterError
from sandbox.toolchain import Tools

from ...support import guarded_brokers as guarded
from ...support.guarded_brokers import Authority
from ...support.refusing_site import EVERYTHING, OFFSETS, TOO_LONG, Ended, Site, prepared
from ...support.waiting import at_most, wait_until

SOON_S = 90.0
AT_ONCE = 8
Change = Callable[[Site], dict[str, Any]]
Runs = dict[str, Future[Ended]]
HIDDEN = "topics that the mirror covers and the user at the source may not describe"
DENIED = "source src ({{LOGIN}}, user {0}): user {0} may not Describe the cluster. Grant Describe on the cluster, or "
SOME_GROUPS = f"{DENIED}Describe on the mirrored groups. It may not see those of {{1}}."
HANGING = "a broker that hangs in the middle of the comparison"


@pytest.fixture(scope="module")
def site(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with prepared(tools, tmp_path_factory.mktemp("refusals")) as made:
        yield made


def denied(user: str, right: str) -> Change:
    return lambda site: site.request(source=site.login(user))


def nested(depth: int) -> list[object]:
    return [nested(depth - 1)] if depth else []


def limited(limits: object) -> Change:
    return lambda site: site.request() | {"limits": limits}


REFUSED: dict[str, tuple[Change, str]] = {
    "nobody listens": (
        lambda site: site.request(
            source=site.login("reader") | {"bootstrap.servers": site.brokers.bootstrap("NOBODY", 2)}
        ),
        "source src ({NOBODY}, user reader): {NOBODY} cannot be reached (Connection refused). "
        "Check bootstrap.servers and that the brokers are up.",
    ),
    "a leader out of reach at the source": (
        lambda site: site.request(source=site.login("reader", "FAR"), topics=["far"]),
        "source src ({FAR}, user reader): broker 2 at {NOBODY}, which leads far-0, cannot be reached (Connection "
        "refused). Start the broker, or correct the address that its listener advertises.",
    ),
    "a leader out of reach on the target": (
        lambda site: site.request(target=site.login("reader", "FAR"), topics=["far"]),
        "target tgt ({FAR}, user reader): broker 2 at {NOBODY}, which leads src.far-0, cannot be reached (Connection "
        "refused). Start the broker, or correct the address that its listener advertises.",
    ),
    "wrong CA": (
        lambda site: site.request(source=site.login("reader") | {"ssl.ca.pem": Authority("other CA").certificate}),
        "source src ({LOGIN}, user reader): the broker's certificate at {LOGIN} is not signed by the CA in ssl.ca.pem "
        "(issued by CN=guarded CA). Give the CA certificate of this cluster, with Strimzi ca.crt of Secret "
        "CLUSTER-cluster-ca-cert.",
    ),
    "expired certificate of the broker": (
        lambda site: site.request(source=site.login("reader", "STALE")),
        "source src ({STALE}, user reader): the broker's certificate at {STALE} expired on ",
    ),
    "expired certificate of the client": (
        lambda site: site.request(source=site.mutual(site.brokers.authority.issue("client", ends_in_days=-1))),
        "source src ({MUTUAL}, user CN=client): the client certificate CN=client expired on ",
    ),
    "certificate of another CA": (
        lambda site: site.request(source=site.mutual(Authority("other CA").issue("client"))),
        "source src ({MUTUAL}, user CN=client): {MUTUAL} refuses the client certificate CN=client. Show a certificate "
        "that the cluster's clients CA signed, with the key that belongs to it.",
    ),
    "no certificate": (
        lambda site: site.request(source=site.mutual(None)),
        "source src ({MUTUAL}, user no user): {MUTUAL} demands a client certificate. Set ssl.certificate.pem and "
        "ssl.key.pem.",
    ),
    "a host that the certificate does not name": (
        lambda site: site.request(
            source=site.login("reader") | {"bootstrap.servers": f"localhost:{site.brokers.ports['LOGIN', 1]}"}
        ),
        "does not name this host. Use a name that it holds in bootstrap.servers, or issue it for this one.",
    ),
    "TLS where none is spoken": (
        lambda site: site.request(
            source=site.login("reader") | {"bootstrap.servers": site.brokers.bootstrap("OPEN")}
        ),
        "source src ({OPEN}, user reader): {OPEN} does not speak TLS. Check the port in bootstrap.servers and "
        "security.protocol.",
    ),
    "no TLS where it is spoken": (
        lambda site: site.request(source=site.login("reader") | {"security.protocol": "SASL_PLAINTEXT"}),
        "source src ({LOGIN}, user reader): {LOGIN} speaks TLS. Set security.protocol to SSL or SASL_SSL.",
    ),
    "wrong password": (
        lambda site: site.request(target=site.login("reader") | {"sasl.password": {"env": "HOME"}}),
        "target tgt ({LOGIN}, user reader): authentication failed. Check sasl.username, sasl.password and "
        "sasl.mechanism.",
    ),
    "an unknown property": (
        lambda site: site.request(source=site.login("reader") | {"bootstrap.server": "x"}),
        'source src ({LOGIN}, user reader): the client configuration is refused: No such configuration property: '
        '"bootstrap.server". Correct client_config.',
    ),
    "patterns that are not known to select what the mirror selects": (
        lambda site: site.request(topics=["empty", r"\bitems"]),
        r"mirror: topics must hold regular expressions of Java that can be verified (got '\\bitems': \b means other "
        r"things in Java 17 and Java 19)",
    ),
    "an unknown key": (
        lambda site: site.request(topic=["empty"]),
        "mirror: topic must be a known key (got topic, allowed ",
    ),
    "NaN": (
        limited({"duplicates_max": float("nan")}),
        "limits.duplicates_max: must be a finite number (got nan)",
    ),
    "Infinity": (
        limited({"mirror_wait_seconds": float("inf")}),
        "limits.mirror_wait_seconds: must be a finite number (got inf)",
    ),
    "a number that Kafka cannot count to": (
        limited({"reread_records_max": 10**30}),
        "limits: reread_records_max must be a number from 0 to 9223372036854775807 (got 1" + "0" * 30 + ")",
    ),
    "a request that is nested too deep": (
        limited(nested(200)),
        "nested too deep",
    ),
    "no Describe on a topic": (
        denied("no-describe", "Describe"),
        "source src ({LOGIN}, user no-describe): user no-describe may not Describe and Read topic empty. "
        "Grant Describe and Read on topic empty.",
    ),
    "no Read on a topic": (
        denied("no-read", "Read"),
        "source src ({LOGIN}, user no-read): user no-read may not Read topic empty. Grant Read on topic empty.",
    ),
    "no DescribeConfigs on a topic": (
        denied("no-describe-configs", "DescribeConfigs"),
        "source src ({LOGIN}, user no-describe-configs): user no-describe-configs may not DescribeConfigs topic "
        "empty. Grant DescribeConfigs on topic empty.",
    ),
    "no rights on the target": (
        lambda site: site.request(target=site.login("no-read")),
        "target tgt ({LOGIN}, user no-read): user no-read may not Read and DescribeConfigs topic src.empty. "
        "Grant Read and DescribeConfigs on topic src.empty.",
    ),
}  # fmt: skip


UNKNOWN: dict[str, tuple[Change, dict[str, str]]] = {
    "a topic that the source does not have": (
        lambda site: site.request(topics=["empty", "no-such-topic"]),
        {"topics_present failed": "not at the source: no-such-topic"},
    ),
    "topics without records": (
        lambda site: site.request(),
        {"records_complete unknown": "nothing to compare", "groups_synced unknown": "nothing to compare"},
    ),
    "a group that the source does not have": (
        lambda site: site.request(groups=["no-such-group"]),
        {"groups_synced unknown": "no group no-such-group at the source"},
    ),
    "a group whose name has a NUL byte": (
        lambda site: site.request(topics=["near"], groups=["cut.*"]),
        {
            "groups_synced unknown": "source src ({LOGIN}, user reader): cannot read the offsets of group cut: its "
            "name goes on behind a NUL byte, where the client library ends it. Leave it out of the mirror's groups, or "
            "give its application a group without such a byte."
        },
    ),
    "no Describe on a group": (
        lambda site: site.request(source=site.login("no-group"), groups=["orders"]),
        {
            "groups_synced unknown": "source src ({LOGIN}, user no-group): user no-group may not Describe "
            "group orders. Grant Describe on group orders."
        },
    ),
    "no Describe on the cluster or any group": (
        lambda site: site.request(source=site.login("no-cluster"), groups=["orders"]),
        {"groups_synced unknown": SOME_GROUPS.format("no-cluster", "orders")},
    ),
    "Describe on one group of those that a pattern may match": (
        lambda site: site.request(source=site.login("one-group"), groups=["orders", "order.*"]),
        {"groups_synced unknown": SOME_GROUPS.format("one-group", "order.*")},
    ),
    "a topic whose name with the prefix is too long": (
        lambda site: site.request(topics=["near", TOO_LONG]),
        {
            "topics_present failed": "would have a name of 250 characters there, Kafka allows 249",
            "records_complete failed": f"5 lost in {TOO_LONG}-0",
        },
    ),
    "a mirror that stands still until the deadline": (
        lambda site: site.request(topics=["near"], naming="prefixed", source_alias="stopped", groups=["evil[^!]*"]),
        {
            "topics_present failed": "missing: near",
            "records_complete failed": "20 lost in near-0",
            "groups_synced failed": r"evil\x1b[2J\x07group",
        },
    ),
    HIDDEN: (
        lambda site: site.request(
            source=site.login("half-blind"),
            topics=["[m-o&&[^m]]ear", r"\Qveiled\E", "(covered|gone)"],
            offset_storage_topic=OFFSETS,
        ),
        {
            "topics_present unknown": "named by a topic of the target and the mirror's offsets, but not verified: "
            "source src ({LOGIN}, user half-blind): user half-blind may not Describe and Read and DescribeConfigs "
            "topic covered, Describe and Read and DescribeConfigs topic veiled. Grant "
        },
    ),
}


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest, site: Site, tools: Tools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runs]:
    """The run of every chosen case, several at once: most of its time a run waits for an answer that does not come."""
    own = [
        item for item in request.session.items if isinstance(item, pytest.Function) and item.module is request.module
    ]
    asked = {item.callspec.params["case"] for item in own if "runs" in item.fixturenames}
    requests = {case: change(site) for case, (change, _) in {**REFUSED, **UNKNOWN}.items() if case in asked}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        hanging = {HANGING: pool.submit(hung, tools, tmp_path_factory.mktemp("hung"))} if HANGING in asked else {}
        yield hanging | {case: pool.submit(site.verify, each) for case, each in requests.items()}


def addresses(site: Site) -> dict[str, str]:
    return {name: site.brokers.bootstrap(name) for name in guarded.LISTENERS} | {
        "NOBODY": site.brokers.bootstrap("NOBODY", 2)
    }


@pytest.mark.parametrize("case", REFUSED)
def test_a_run_that_cannot_judge_ends_soon_in_one_message_and_a_report(
    site: Site, runs: Runs, case: str, record_property: Callable[[str, object], None]
) -> None:
    _, expected = REFUSED[case]
    ended = runs[case].result()
    record_property("seconds", round(ended.seconds, 1))
    assert (ended.code, ended.out, len(ended.errors)) == (2, "", 1), ended
    assert expected.format(**addresses(site)) in ended.errors[0]
    assert (ended.report["verdict"], ended.report["error"]) == ("error", ended.errors[0])
    assert ended.report["seconds"] < SOON_S


def test_both_clusters_are_reported_if_both_refuse(site: Site) -> None:
    wrong = site.login("reader") | {"sasl.password": {"env": "HOME"}}
    ended = site.verify(site.request(source=wrong, target=site.login("reader", "STALE")))
    assert ended.code == 2
    assert "authentication failed" in ended.errors[0]
    assert "expired on" in ended.errors[1]


@pytest.mark.parametrize("case", UNKNOWN)
def test_a_check_reports_what_fails_and_what_is_unknown(
    site: Site, runs: Runs, case: str, record_property: Callable[[str, object], None]
) -> None:
    _, expected = UNKNOWN[case]
    ended = runs[case].result()
    record_property("seconds", round(ended.seconds, 1))
    assert (ended.code, ended.errors) == (1, []), ended
    for check, observed in expected.items():
        line = next(line for line in ended.out.splitlines() if line.startswith(check))
        assert observed.format(**addresses(site)) in line
    assert ended.report["error"] is None


@pytest.mark.parametrize("case", [HIDDEN])
def test_patterns_select_what_java_selects_and_a_deleted_topic_is_not_missed(runs: Runs, case: str) -> None:
    report = runs[case].result().report
    assert [part["topic"] for part in report["partitions"]] == ["near"]
    check = next(one for one in report["checks"] if one["name"] == "topics_present")
    assert {one["hidden"] for one in check["evidence"]} == {"covered", "veiled"}


def test_a_client_certificate_that_ends_soon_is_warned_of(site: Site) -> None:
    site.brokers.grant("User:CN=client", EVERYTHING)
    ending = site.mutual(site.brokers.authority.issue("client", ends_in_days=5.5))
    ended = site.verify(site.request(source=ending))
    assert ended.code == 1
    assert "source src: the client certificate CN=client expires on" in ended.report["warnings"][0]
    assert "in 5 days. Renew it." in ended.report["warnings"][0]


def _until_comparing(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if "comparing records" in line:
            return
    raise AssertionError("the comparison never began")


def hung(tools: Tools, folder: Path) -> Ended:
    """A run in the middle of which a broker hangs; nobody else may ask these brokers anything meanwhile."""
    with prepared(tools, folder) as site:
        began = time.monotonic()
        # Without Spark so few records are read before the broker can be stopped.
        process, report = site.start(site.request(topics=["far"]), RT_INVENTORY_SPARK_ABOVE="0")
        try:
            _until_comparing(process)
            os.kill(site.brokers.pid(2), signal.SIGSTOP)
            out, errors = process.communicate(timeout=at_most(200))
        finally:
            os.kill(site.brokers.pid(2), signal.SIGCONT)
            process.kill()
        return site.ended(process.returncode, out, errors, report, time.monotonic() - began)


def _brokers(bootstrap: str) -> int:
    """How many there are, asked with a client of its own: another one may still wait for one that is gone."""
    with suppress(KafkaException):
        return len(AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=5).brokers)
    return 0


def test_groups_of_a_broker_out_of_reach_may_be_there(site: Site) -> None:
    login = site.login("reader", "FAR") | {"sasl.password": site.passwords["reader"]}
    side = Cluster(ClusterConfig(role="source", alias="src", client_config=login))
    side.connect()
    side.call_within_s = 3.0
    unlisted: dict[str, str] = {}
    with pytest.raises(ClusterError, match="cannot list all consumer groups: "):
        side.group_states()
    described = site.brokers.admin.list_topics("__consumer_offsets", timeout=20).topics["__consumer_offsets"]
    if described.partitions[0].leader == 1:  # it lists the groups, and is in reach
        assert "orders" in side.group_states(unlisted)
        assert "cannot list all consumer groups: " in unlisted[""]
    else:
        with pytest.raises(ClusterError, match="cannot list all consumer groups: "):
            side.group_states(unlisted)


# What is asked again of a broker that loads is in tests/unit/kafka/test_group_listing.py.
@pytest.mark.nightly
def test_groups_of_a_partition_without_a_leader_may_be_there(tools: Tools, tmp_path: Path) -> None:
    with prepared(tools, tmp_path) as site:
        grown = site.brokers.admin.create_partitions([NewPartitions("__consumer_offsets", 2, [[2]])])
        grown["__consumer_offsets"].result(20)
        os.kill(site.brokers.pid(2), signal.SIGKILL)
        wait_until("broker 2 is given up", lambda: _brokers(site.brokers.bootstrap("OPEN")) == 1, 60)
        ended = site.verify(site.request(topics=["near"]))
    assert (ended.code, ended.errors) == (1, []), ended
    line = next(line for line in ended.out.splitlines() if line.startswith("groups_synced unknown"))
    assert "__consumer_offsets-1 ha" in line
    assert "no leader, so that no broker lists the groups whose offsets are there" in line


# Messages and deadlines of brokers that fall silent are in tests/unit/spark/test_failures.py and test_without_spark.py.
@pytest.mark.nightly
@pytest.mark.parametrize("case", [HANGING])
def test_a_broker_that_goes_silent_ends_the_run(runs: Runs, case: str) -> None:
    ended = runs[case].result()
    assert ended.code == 2
    assert "far-0" in ended.errors[-1] or "no record came" in ended.errors[-1]
    assert len(ended.errors) == 1
    assert ended.report["cut"]["offsets"] == {"far-0": 20_000}
    assert "topics_present" in {check["name"] for check in ended.report["checks"]}


def test_a_run_that_is_stopped_in_the_middle_of_the_comparison_leaves_its_report(site: Site) -> None:
    process, report = site.start(site.request(topics=["near"]), RT_INVENTORY_SPARK_ABOVE="0")
    try:
        _until_comparing(process)
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=at_most(60))
    finally:
        process.kill()
    ended = site.ended(process.returncode, out, errors, report, 0)
    assert (ended.code, ended.errors) == (130, ["stopped while comparing records"])
    assert (ended.report["verdict"], ended.report["cut"]["offsets"]) == ("stopped", {"near-0": 20})
