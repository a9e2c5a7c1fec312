"""The rule on topics in which Connect keeps its state."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.mirror.connect_storage_mirrored import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror, reverse

EXCLUDE = r"mm2.*\.internal,.*\.replica,__.*"


def violation() -> list[kit.Sample]:
    return [
        *broken_mirror(
            "mm-storage", lambda mirror: (reverse(mirror), kit.flow(mirror).update(topicsPattern="[a-n].*"))
        ),
        *broken_mirror("mm-home", lambda mirror: None),
    ]


def there_and_back(shape: str, topics: str) -> list[kit.Sample]:
    """A mirror `there` into a cluster, and a mirror `back` that takes these topics from it."""
    there, back = kit.mirror(shape, "there"), kit.mirror(shape, "back")
    kit.source(back)["bootstrapServers"] = kit.target(there)["bootstrapServers"]
    kit.target(back)["bootstrapServers"] = kit.source(there)["bootstrapServers"]
    kit.flow(back)["topicsPattern"] = topics
    return [there, back]


def message(taken: str, got: str = EXCLUDE) -> str:
    return (
        "mirror back: mirrors[0].topicsExcludePattern must keep out what Connect of there keeps on the source "
        f"(got {got}, which lets in {taken}). A Connect cluster with such topics would read state that is not its own."
    )


def storage(shape: str) -> str:
    group = "there" if shape == kit.V1 else "mirrormaker2-cluster"
    ends = ("config", "offset", "status") if shape == kit.V1 else ("configs", "offsets", "status")
    return ", ".join(f"{group}-{end}" for end in ends)


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_storage_that_a_mirror_back_would_copy_is_reported_at_that_mirror(shape: str) -> None:
    there, back = there_and_back(shape, ".*")
    assert kit.judge_stack_by_urn(POLICY, [there, back]) == [(message(storage(shape)), back.urn)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_storage_that_is_not_selected_or_is_excluded_passes(shape: str) -> None:
    assert kit.judge_stack(POLICY, there_and_back(shape, "items|orders")) == []
    there, back = there_and_back(shape, ".*")
    kit.flow(back)["topicsExcludePattern"] = "(there|mirrormaker2-cluster)-.*"
    assert kit.judge_stack(POLICY, [there, back]) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_storage_on_another_cluster_passes(shape: str) -> None:
    mirror = kit.mirror(shape)
    kit.flow(mirror)["topicsPattern"] = ".*"
    assert kit.judge_stack(POLICY, [mirror]) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_copies_with_a_prefix_pass_because_no_connect_reads_them(shape: str) -> None:
    there, back = there_and_back(shape, ".*")
    del kit.flow(back)["sourceConnector"]["config"]["replication.policy.class"]
    assert kit.judge_stack(POLICY, [there, back]) == []


def test_storage_by_names_that_kafka_keeps_for_itself_is_never_copied() -> None:
    there, back = there_and_back(kit.V1, ".*")
    kit.target(there).update(configStorageTopic="__there", offsetStorageTopic="mm2-there.internal")
    kit.flow(back)["topicsExcludePattern"] = ""
    assert kit.judge_stack(POLICY, [there, back]) == [message("there-status", "an empty one")]


@pytest.mark.parametrize(("version", "is_copied"), [("3.9.1", False), ("4.0.0", True), ("4.10.0", True), (None, True)])
@pytest.mark.parametrize("name", ["connect-configs.internal", "connect-configs-internal"])
def test_storage_whose_name_ends_in_internal_is_reported_for_mirrors_that_copy_it(
    version: str | None, is_copied: bool, name: str
) -> None:
    there, back = there_and_back(kit.V1, name.replace(".", r"\."))
    kit.target(there)["configStorageTopic"] = name
    back.spec.pop("version", None)
    if version is not None:
        back.spec["version"] = version
    assert kit.judge_stack(POLICY, [there, back]) == ([message(name)] if is_copied else [])


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_storage_of_other_connect_clusters_on_the_source_is_reported(shape: str) -> None:
    mirror = kit.mirror(shape, "back")
    kit.flow(mirror)["topicsPattern"] = "sinks-.*"
    spec = {"bootstrapServers": kit.source(mirror)["bootstrapServers"]}
    if shape == kit.V1:
        spec["configStorageTopic"] = "sinks-config"
    else:
        spec["config"] = {"config.storage.topic": "sinks-config"}
    connect = kit.Sample(f"kubernetes:{shape}:KafkaConnect", {"metadata": {"name": "there"}, "spec": spec})
    assert kit.judge_stack(POLICY, [mirror, connect]) == [message("sinks-config")]


def test_a_mirror_that_copies_no_topics_passes() -> None:
    there, back = there_and_back(kit.V1, ".*")
    del kit.flow(back)["sourceConnector"]
    assert kit.judge_stack(POLICY, [there, back]) == []


def test_another_type_is_ignored() -> None:
    there, back = there_and_back(kit.V1, ".*")
    bridge = kit.Sample("kubernetes:kafka.strimzi.io/v1:KafkaBridge", there.props)
    assert kit.judge_stack(POLICY, [bridge, back]) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_what_is_unknown_hides_no_other_mirror(shape: str) -> None:
    there, back = there_and_back(shape, ".*")
    unknown = kit.mirror(shape, "unknown")
    kit.target(unknown)["bootstrapServers"] = UNKNOWN_STRING_VALUE
    kit.flow(unknown)["topicsPattern"] = UNKNOWN_STRING_VALUE
    assert kit.judge_stack(POLICY, [unknown, there, back]) == [message(storage(shape))]
