"""What good settings turn into: defaults, derived values, and values that nobody can change afterwards."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from contract.check_names import CHECK_NAMES
from settings import Stack, parse
from settings.cluster import FACTORS, SHARE_FACTOR, SHARE_MIN_ISR, TRANSACTION_MIN_ISR
from settings.files import load
from settings.verification import Verification

from ...support.stack_values import SOURCE, TARGET, with_value

ROOT = Path(__file__).parents[3]


def leaves(value: object) -> list[object]:
    """Everything that settings are made of, models and containers included."""
    inner: list[object] = []
    if hasattr(value, "__dict__") and not isinstance(value, type):
        inner = list(vars(value).values())
    elif isinstance(value, tuple):
        inner = list(value)
    elif hasattr(value, "values"):
        inner = list(value.values())
    return [value, *(leaf for item in inner for leaf in leaves(item))]


def test_nothing_in_settings_can_be_changed() -> None:
    stack = parse(with_value(TARGET, "cluster/config", {"log.retention.hours": 1}))
    assert not [leaf for leaf in leaves(stack) if isinstance(leaf, list | dict | set)]
    with pytest.raises(ValidationError):
        stack.cluster.brokers = 5
    with pytest.raises(TypeError):
        stack.cluster.config["a"] = 1  # type: ignore[index]  # that it cannot be set is what is tested


@pytest.mark.parametrize(("brokers", "factor", "minimum"), [(1, 1, 1), (2, 2, 1), (3, 3, 2), (5, 3, 2)])
def test_factors_fit_the_number_of_brokers(brokers: int, factor: int, minimum: int) -> None:
    config = parse({"cluster": {"name": "a", "namespace": "a", "brokers": brokers}}).cluster.kafka_config
    assert config["default.replication.factor"] == config["offsets.topic.replication.factor"] == factor
    assert config["min.insync.replicas"] == config["transaction.state.log.min.isr"] == minimum


@pytest.mark.parametrize(
    ("brokers", "share"), [(1, {SHARE_FACTOR: 1, SHARE_MIN_ISR: 1}), (2, {SHARE_FACTOR: 2, SHARE_MIN_ISR: 1}), (3, {})]
)
def test_share_groups_work_where_there_are_fewer_than_three_brokers(brokers: int, share: dict[str, int]) -> None:
    config = parse({"cluster": {"name": "a", "namespace": "a", "brokers": brokers}}).cluster.declared_config
    assert {key: value for key, value in config.items() if key.startswith("share.")} == share
    ones = dict.fromkeys([*FACTORS, TRANSACTION_MIN_ISR], 1)
    cluster = {"name": "a", "namespace": "a", "brokers": brokers, "configDefaults": False, "config": ones}
    assert parse({"cluster": cluster}).cluster.declared_config == ones, "nothing is added, and nothing is wrong"


def test_a_given_broker_option_wins_over_a_derived_one() -> None:
    stack = parse(with_value(TARGET, "cluster/config", {"min.insync.replicas": 1}))
    assert stack.cluster.kafka_config["min.insync.replicas"] == 1


def test_a_mirrors_internal_names_follow_its_own_name_unless_they_are_given() -> None:
    mirror = parse(TARGET).mirrors[0]
    assert mirror.connect_group == "mm2"
    assert mirror.storage_topics == {"config": "mm2-configs", "offset": "mm2-offsets", "status": "mm2-status"}
    given = parse(with_value(with_value(TARGET, "mirrors/0/groupId", "g"), "mirrors/0/offsetStorageTopic", "o"))
    assert given.mirrors[0].connect_group == "g"
    assert given.mirrors[0].storage_topics["offset"] == "o"


def test_a_topic_gets_a_name_that_kubernetes_knows() -> None:
    stack = parse(with_value(SOURCE, "topics/0/name", "My_Items.v1"))
    assert stack.topics[0].resource_name == "my-items.v1"


def test_reports_of_two_mirrors_lie_in_two_folders() -> None:
    settings = Verification()
    assert str(settings.report_path("stg", "mm2")) == "reports/stg/mm2"
    assert str(Verification(report_dir="/var/reports").report_path("stg", "mm2")) == "/var/reports/mm2"


def test_runs_of_all_stacks_are_listed_in_one_place() -> None:
    assert str(Verification().index_path) == "reports"
    assert str(Verification(report_dir="/var/kafka").index_path) == "/var/kafka"


def test_deletion_is_guarded_unless_a_file_says_otherwise() -> None:
    assert parse(SOURCE).cluster.protect
    assert not parse(with_value(SOURCE, "cluster/protect", False)).cluster.protect


def test_a_check_of_any_name_may_stay_unknown() -> None:
    settings = Verification.model_validate({"allow_unknown": CHECK_NAMES})
    assert settings.allow_unknown == CHECK_NAMES


@pytest.mark.parametrize("name", ["dev", "stg"])
def test_the_shipped_stack_files_are_good(name: str) -> None:
    assert isinstance(load(ROOT / f"Pulumi.{name}.yaml"), Stack)


def test_the_shipped_mirror_is_the_promised_one() -> None:
    mirror = load(ROOT / "Pulumi.stg.yaml").mirrors[0]
    assert (mirror.name, mirror.source.alias, mirror.target.alias) == ("mm2", "es-src", "es-tgt")
    assert mirror.topics == ("items", r"items\.inventory", r"store\.inventory")
    assert (mirror.groups, mirror.naming, mirror.replication_factor) == ((".*",), "identity", 3)
    assert not mirror.sync_topic_acls
    assert mirror.sync_group_offsets
    intervals = (
        mirror.refresh_topics_seconds,
        mirror.refresh_groups_seconds,
        mirror.emit_checkpoints_seconds,
        mirror.sync_group_offsets_seconds,
    )
    assert intervals == (10, 5, 5, 5)
