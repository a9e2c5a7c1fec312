"""Versions of Kafka that tests mirror from, each with the version of the workers; docs/compatibility.md lists them."""

from dataclasses import dataclass
from typing import Any

from sandbox.toolchain import pins

from .projects import KEY
from .written_topics import PREFIX
from .zookeeper_cluster import ZooKeeperCluster

MIRROR = "from-earlier"
# What is tried of each source, by the test that does (tests/integration/compatibility/test_source_versions.py).
TRIED = {
    "test_records_are_mirrored_exactly": "records arrive with key, value, headers, timestamp and order as they are",
    "test_offsets_of_groups_are_translated": "offsets of groups are translated, exactly at the end; none is skipped",
    "test_the_verification_passes": "the verification passes",
    "test_the_verification_finds_a_lost_record": "the verification finds one lost record",
    "test_status_reports_the_mirror_and_the_groups": "`ops status` is healthy, with the states of groups on both sides",
    "test_the_doctor_finds_nothing_wrong": "`ops doctor` finds nothing",
    "test_offsets_are_shown_exactly": "`ops offsets show --exact`",
    "test_a_failover_is_planned": "`ops failover --dry-run`",
}


@dataclass(frozen=True)
class Case:
    """The version of a source and of the workers that read it, and whether the night alone tries them."""

    source: str
    mirror: str
    nightly: bool = False

    @property
    def name(self) -> str:
        """What names of Kubernetes are made of."""
        return self.source.replace(".", "-")

    def settings(self, source: ZooKeeperCluster) -> dict[str, Any]:
        """Settings of a stack with a small cluster and one mirror into it."""
        cluster = f"compatible-{self.name}"
        user = {
            "name": "mirror",
            "acls": [
                {"type": "topic", "names": [PREFIX], "match": "prefix", "operations": ["All"]},
                {"type": "group", "names": ["*"], "operations": ["Read", "Describe"]},
                {"type": "cluster", "operations": ["Describe"]},
            ],
            "aclSets": [{"set": "mirror-target", "mirror": MIRROR}],
        }
        external = {
            "name": "earlier",
            "authentication": "none",
            "cluster": {"bootstrapServers": [source.bootstrap_servers], "tls": False, "brokers": 1},
        }
        mirror = {
            "name": MIRROR,
            "version": self.mirror,
            "source": {"alias": "earlier", "external": external},
            "target": {"alias": "present", "user": "mirror"},
            "topics": [r"shop\..*"],
            "groups": ["shop-.*"],
            "naming": "identity",
            "replicationFactor": 1,
            "refreshTopicsSeconds": 3,
            "refreshGroupsSeconds": 3,
            "emitCheckpointsSeconds": 2,
            "syncGroupOffsetsSeconds": 2,
            "flushOffsetsSeconds": 2,
            "offsetLagMax": 0,
        }
        keys = {
            "operator": {"install": "none"},
            "cluster": {
                "name": cluster,
                "namespace": cluster,
                "version": pins.KAFKA,
                "brokers": 1,
                "storage": {"type": "ephemeral"},
                "protect": False,
            },
            "users": [user],
            "mirrors": [mirror],
            "verification": {"when": "never"},
        }
        return {KEY + key: value for key, value in keys.items()}


CASES = (
    Case("3.9.1", pins.KAFKA, nightly=True),
    Case("2.8.2", pins.KAFKA, nightly=True),
    Case("2.1.1", pins.KAFKA),
    Case("1.1.1", pins.KAFKA_3),
)


def table() -> str:
    """The rows of docs/compatibility.md: a row for each case."""
    rows = [(case.source, case.mirror, "each night" if case.nightly else "every run") for case in CASES]
    return "| source | workers | tried |\n|---|---|---|\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def tried() -> str:
    """What is tried of each case, as docs/compatibility.md lists it: an entry for each test."""
    return "".join(f"- {what}\n" for what in TRIED.values())
