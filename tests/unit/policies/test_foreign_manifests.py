"""What the pack finds in manifests that do not come from our components.

The files in `foreign_manifests` have the kinds, shapes and usual values of operators' published examples: `production`
as one would run it, `trial` as one would try it. Each is judged as one stack, protected, with every rule's own
configuration and without a stage. Every finding in the table is right; -1 leaves a factor to the brokers.
"""

from collections import Counter
from pathlib import Path

import pytest
import yaml
from pulumi_policy import ResourceValidationPolicy

from policies.rules import POLICIES
from tests.support import compliant_resources as kit

MANIFESTS = Path(__file__).parent / "foreign_manifests"
# Per file and resource: the rules that find something there, each with the number of its findings.
EXPECTED: dict[str, dict[str, dict[str, int]]] = {
    "event-streams-production": {
        "EventStreams harbour-prod": {"resources-set": 1},
        "KafkaTopic tides": {"topic-replication": 1},
        "KafkaUser harbour-admin": {"wildcard-acls": 2, "standby-read-only": 1},
        "KafkaConnect harbour-connect": {"resources-set": 1},
        "KafkaMirrorMaker2 standby": {"mirror-intervals": 1},
    },
    "event-streams-trial": {
        "EventStreams raft": {
            "cluster-authorization": 1,
            "cluster-min-insync": 2,
            "cluster-replication": 3,
            "ephemeral-storage": 2,
            "internal-listener-tls": 1,
            "resources-set": 2,
        },
        "EventStreams raft-pools": {"cluster-min-insync": 1, "cluster-replication": 1, "resources-set": 2},
    },
    "strimzi-v1-production": {
        "KafkaNodePool quorum": {"resources-set": 1},
        "KafkaNodePool data": {"resources-set": 1},
        "Kafka parcels-prod": {"internal-listener-tls": 1},
        "KafkaTopic scans": {"topic-replication": 1, "topic-retention": 1},
        "KafkaUser courier": {"standby-read-only": 1},
        "KafkaConnect parcels-connect": {"resources-set": 1},
        "KafkaMirrorMaker2 parcels-mirror": {"mirror-tls": 1, "resources-set": 1},
    },
    "strimzi-v1-trial": {
        "KafkaNodePool everything": {"resources-set": 1},
        "KafkaNodePool passing": {"ephemeral-storage": 1, "resources-set": 1},
        "Kafka trial": {
            "cluster-min-insync": 2,
            "cluster-replication": 3,
            "hostname-verification": 1,
        },
        "KafkaConnect trial-connect": {"resources-set": 1},
        "KafkaMirrorMaker2 trial-mirror": {"mirror-tls": 2, "resources-set": 1},
    },
    "strimzi-v1beta2-production": {
        "Kafka ledger-prod": {"internal-listener-tls": 1, "resources-set": 2},
        "KafkaConnect ledger-connect": {"resources-set": 1},
        "KafkaMirrorMaker2 ledger-archive": {"resources-set": 1},
    },
    "strimzi-v1beta2-trial": {
        "Kafka bench": {
            "cluster-authorization": 1,
            "cluster-min-insync": 2,
            "cluster-replication": 3,
            "ephemeral-storage": 2,
            "internal-listener-tls": 1,
            "listener-authentication": 1,
            "listener-tls": 1,
            "resources-set": 2,
        },
        "Kafka bench-pools": {"cluster-authorization": 1, "delete-claim": 1, "resources-set": 1},
        "KafkaNodePool later": {"delete-claim": 1, "resources-set": 1},
        "KafkaMirrorMaker2 bench-mirror": {
            "internal-topics-mirrored": 1,
            "mirror-replication": 7,
            "mirror-tls": 2,
            "resources-set": 1,
        },
    },
}


def stack(file: str) -> list[kit.Sample]:
    """The manifests of a file as resources."""
    documents = yaml.safe_load_all((MANIFESTS / f"{file}.yaml").read_text(encoding="utf-8"))
    return [kit.Sample(f"kubernetes:{_api_version(each)}:{each['kind']}", each) for each in documents]


def findings(samples: list[kit.Sample]) -> Counter[tuple[str, str]]:
    """How often each rule finds something in each resource, or in the stack as a whole."""
    found: Counter[tuple[str, str]] = Counter()
    named = {sample.urn: _resource(sample) for sample in samples}
    for policy in POLICIES:
        if isinstance(policy, ResourceValidationPolicy):
            found.update((policy.name, _resource(sample)) for sample in samples for _ in kit.judge(policy, sample))
        else:
            found.update((policy.name, named.get(urn or "", "")) for _, urn in kit.judge_stack_by_urn(policy, samples))
    return found


def _api_version(document: kit.Spec) -> str:
    version = str(document["apiVersion"])
    return version if "/" in version else f"core/{version}"


def _resource(sample: kit.Sample) -> str:
    return f"{sample.props['kind']} {sample.props['metadata']['name']}"


def test_every_file_is_in_the_table() -> None:
    assert {path.stem for path in MANIFESTS.glob("*.yaml")} == set(EXPECTED)


@pytest.mark.parametrize("file", EXPECTED)
def test_exactly_what_is_wrong_is_found(file: str) -> None:
    expected = {(rule, of): count for of, rules in EXPECTED[file].items() for rule, count in rules.items()}
    assert findings(stack(file)) == expected
