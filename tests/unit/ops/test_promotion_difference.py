"""What travels from one stack's settings to another's, and what does not although it differs."""

import itertools
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.errors import OpsError
from ops.promotion.difference import Difference, StackSettings, compare
from settings import beside, parse
from settings.files import check

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted(file.parent for file in (ROOT / "examples").glob("*/Pulumi.yaml"))
Values = dict[str, Any]
FAR: Values = {"source": {"stack": "elsewhere", "alias": "far", "user": "reader"}, "replicationFactor": 1}
DEV = """
platform: { type: strimzi, version: '1.2.0' }
operator: { install: olm, channel: stable }
cluster: { name: low, namespace: low, brokers: 1, version: 4.3.1 }
users: [{ name: app }]
topics: [{ name: orders, partitions: 6, replicas: 1, config: { retention.ms: 1000, min.insync.replicas: 1 } }]
"""
PROD = """
platform: { type: strimzi }
operator: { install: olm, channel: stable }
cluster: { name: high, namespace: high, brokers: 3, storage: { type: persistent-claim, sizeGib: 10 } }
topics: [{ name: orders, partitions: 6, replicas: 3, config: { retention.ms: 1000, min.insync.replicas: 2 } }]
"""


def values(text: str, **changes: Any) -> Values:
    """Values of a stack file, with other values for some of their keys."""
    found: Values = yaml.safe_load(text)
    for key, change in changes.items():
        found[key] = {**found[key], **change} if isinstance(change, dict) else change
    return found


def compared(source: Values, target: Values) -> Difference:
    before = deepcopy(target)
    files = {"dev": source, "prod": target}
    sides = [StackSettings(name=name, settings=parse(each, name), values=each) for name, each in files.items()]
    found = compare(sides[0], sides[1], files)
    assert target == before, "the target's values must stay as they are"
    parse(found.wanted, "prod")
    return found


def reported(found: Difference) -> list[tuple[str, Any, Any]]:
    return [(change.key, change.old, change.new) for change in found.changes]


def topic(**changes: Any) -> Values:
    return {"name": "orders", "partitions": 6, "replicas": 1, **changes}


def test_versions_travel_where_they_are_given() -> None:
    found = compared(values(DEV), values(PROD))
    assert reported(found) == [("platform.version", None, "1.2.0"), ("cluster.version", None, "4.3.1")]
    assert found.wanted["cluster"] == {**values(PROD)["cluster"], "version": "4.3.1"}
    assert found.changed_keys == ["platform", "cluster"]


def test_a_version_that_the_source_leaves_open_stays_pinned_in_the_target() -> None:
    source = values(DEV)
    del source["cluster"]["version"], source["platform"]["version"], source["operator"]["channel"]
    assert reported(compared(source, values(PROD, cluster={"version": "4.2.0"}))) == []


def test_options_travel_one_by_one_and_leave_those_of_the_stage() -> None:
    source = values(DEV, topics=[topic(config={"retention.ms": 2000, "cleanup.policy": "compact"})])
    target = values(PROD, platform={"version": "1.2.0"}, cluster={"version": "4.3.1"})
    target["topics"][0]["config"]["segment.bytes"] = 99
    found = compared(source, target)
    assert reported(found) == [
        ("topics[orders].config[cleanup.policy]", None, "compact"),
        ("topics[orders].config[retention.ms]", 1000, 2000),
        ("topics[orders].config[segment.bytes]", 99, None),
    ]
    assert found.wanted["topics"] == [
        topic(replicas=3, config={"retention.ms": 2000, "min.insync.replicas": 2, "cleanup.policy": "compact"})
    ]


def test_a_number_and_the_same_number_in_quotes_are_no_change() -> None:
    source = values(DEV, topics=[topic(config={"retention.ms": "1000", "preallocate": True})])
    target = values(PROD, topics=[topic(replicas=3, config={"retention.ms": 1000, "preallocate": "true"})])
    assert {key for key, _, _ in reported(compared(source, target))} == {"platform.version", "cluster.version"}


def test_a_default_that_is_written_down_is_no_change() -> None:
    target = values(PROD, cluster={"version": "4.3.1", "authorization": "simple"}, platform={"version": "1.2.0"})
    assert reported(compared(values(DEV), target)) == []


def test_partitions_grow_and_never_shrink() -> None:
    more, fewer = (values(DEV, topics=[topic(partitions=count)]) for count in (12, 3))
    assert ("topics[orders].partitions", 6, 12) in reported(compared(more, values(PROD)))
    found = compared(fewer, values(PROD))
    assert "topics[orders].partitions" not in {key for key, _, _ in reported(found)}
    assert found.notes == ["topics[orders].partitions: stays 6 (dev has 3). Kafka takes no partition away."]


def test_a_new_topic_is_declared_in_a_stage_that_no_mirror_joins() -> None:
    new = {"name": "bills", "partitions": 2, "replicas": 1, "config": {"min.insync.replicas": 1, "retention.ms": 5}}
    found = compared(values(DEV, topics=[topic(), new]), values(PROD))
    assert found.wanted["topics"][1] == {"name": "bills", "partitions": 2, "replicas": 3, "config": {"retention.ms": 5}}
    assert found.changes[-1].key == "topics[bills]"


def mirror(**changes: Any) -> Values:
    return {
        "name": "mm2",
        "source": {"stack": "dev", "alias": "low", "user": "app"},
        "target": {"alias": "high", "user": "writer"},
        "topics": ["orders"],
        **changes,
    }


def test_a_new_topic_is_not_declared_where_the_mirror_brings_it_or_could() -> None:
    new = [{"name": name, "partitions": 2, "replicas": 1} for name in ("bills", "notes")]
    source = values(DEV, topics=[*values(DEV)["topics"], *new])
    target = values(PROD, users=[{"name": "writer"}], mirrors=[mirror(topics=["bills"])])
    found = compared(source, target)
    assert not [key for key, _, _ in reported(found) if key.startswith("topics[")]
    assert found.notes == ["topics[notes]: no mirror brings it to prod. Add it to a mirror's topics if meant."]


def test_a_mirrors_patterns_and_intervals_travel_and_its_ends_do_not() -> None:
    users: Any = [{"name": "app"}, {"name": "writer"}]
    source = values(
        DEV,
        users=users,
        mirrors=[mirror(**FAR, topics=["orders", "bills"], state="paused", producer={"linger.ms": 5}, replicas=2)],
    )
    target = values(PROD, users=users, mirrors=[mirror(refreshTopicsSeconds=5, producer={"client.id": "prod"})])
    found = compared(source, target)
    assert reported(found)[2:] == [
        ("mirrors[mm2].topics", ["orders"], ["orders", "bills"]),
        ("mirrors[mm2].refreshTopicsSeconds", 5, None),
        ("mirrors[mm2].producer[linger.ms]", None, 5),
    ]
    assert found.wanted["mirrors"] == [
        mirror(topics=["orders", "bills"], producer={"client.id": "prod", "linger.ms": 5})
    ]


def test_the_limits_of_a_verification_travel_between_stages_that_verify() -> None:
    users: Any = [{"name": "app"}, {"name": "writer"}]
    limits = {"duplicatesMax": 7, "when": "always", "allowUnknown": ["lag"]}
    source = values(DEV, users=users, mirrors=[mirror(**FAR)]) | {"verification": limits}
    target = values(PROD, users=users, mirrors=[mirror()]) | {
        "verification": {"lagRecordsMax": 9, "reportDir": "there"}
    }
    found = compared(source, target)
    assert reported(found)[2:] == [("verification.duplicatesMax", None, 7), ("verification.lagRecordsMax", 9, None)]
    assert found.wanted["verification"] == {"reportDir": "there", "duplicatesMax": 7}
    alone = values(DEV) | {"verification": limits}
    assert "verification" not in compared(alone, target).changed_keys


def test_an_operator_that_is_installed_otherwise_keeps_its_channel() -> None:
    found = compared(values(DEV, operator={"channel": "new"}), values(PROD, operator={"install": "none"}))
    assert "operator" not in found.changed_keys
    assert found.notes == ["operator: nothing of it travels, for operator.install differs (got none, there olm)."]


def test_another_platform_is_refused() -> None:
    target = values(PROD, platform={"type": "event-streams", "license": {"accept": True}})
    del target["operator"]["channel"]
    with pytest.raises(OpsError, match=r"stack prod: platform.type must be dev's \(got event-streams and strimzi\)"):
        compared(values(DEV), target)


@pytest.mark.parametrize("folder", [ROOT, *EXAMPLES], ids=lambda folder: folder.name)
def test_between_the_stacks_of_every_example_no_value_of_a_stage_travels(folder: Path) -> None:
    files = beside(folder, None)
    for source, target in itertools.permutations(files, 2):
        sides = {
            stack: StackSettings(name=stack, settings=check(folder / f"Pulumi.{stack}.yaml")[0], values=files[stack])
            for stack in (source, target)
        }
        found = compare(sides[source], sides[target], files)
        good = parse(found.wanted, target, {**files, target: {}}, require_siblings=True)
        before = sides[target].settings
        for now, then in ((good.cluster, before.cluster), (good, before)):
            stay = {"users", "name", "namespace", "brokers", "listener", "storage"} & set(type(now).model_fields)
            assert {key: getattr(now, key) for key in stay} == {key: getattr(then, key) for key in stay}
        again = compare(
            sides[source],
            StackSettings(name=target, settings=good, values=found.wanted),
            {**files, target: found.wanted},
        )
        assert again.changes == [], "what was promoted must be the same"
