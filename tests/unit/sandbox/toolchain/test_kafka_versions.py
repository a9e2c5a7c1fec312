"""The Kafka versions that are installed, and which of them a command runs."""

from pathlib import Path

import pytest

from sandbox.operator.java_processes import Jvm, UnknownVersionError
from sandbox.toolchain import locate, pins
from sandbox.toolchain.__main__ import ensure

from .conftest import Machine


@pytest.fixture
def jvm(tmp_path: Path) -> Jvm:
    """Brokers of 4.3.1; workers of three versions."""
    versions = {version: tmp_path / version for version in ("4.10.0", "4.3.1", "4.2.0")}
    for libs in versions.values():
        libs.mkdir()
    return Jvm(tmp_path / "java", versions["4.3.1"], versions, tmp_path / "log4j2.properties")


def class_path(command: list[str]) -> str:
    return command[command.index("-cp") + 1]


def test_both_versions_are_installed_in_folders_of_their_own(machine: Machine) -> None:
    ensure(machine.paths)
    tools = locate(machine.paths)
    assert set(tools.kafka_versions) == {pins.KAFKA, pins.KAFKA_BEFORE, pins.KAFKA_3}
    assert tools.kafka_versions[pins.KAFKA] == tools.kafka_libs
    assert tools.kafka_versions[pins.KAFKA_BEFORE].is_dir()
    assert tools.kafka_versions[pins.KAFKA_BEFORE] != tools.kafka_libs


def test_the_other_version_has_what_a_broker_and_a_worker_need_and_no_tools(machine: Machine) -> None:
    ensure(machine.paths, ["kafka-before"])
    pom = next((machine.paths.cache / "kafka-before").rglob("pom.xml")).read_text(encoding="utf-8")
    names = (f"kafka_{pins.SCALA}", "connect-runtime", "connect-mirror", "connect-json", pins.KAFKA_BEFORE)
    assert all(name in pom for name in names)
    assert "kafka-tools" not in pom
    assert pins.KAFKA not in pom


def test_the_set_up_leaves_earlier_versions_out_until_one_is_named(machine: Machine) -> None:
    ensure(machine.paths)
    folders = {version: machine.paths.cache / f"kafka-{version}" for version in pins.KAFKA_WITH_ZOOKEEPER}
    assert not any(folder.exists() for folder in folders.values())
    assert not locate(machine.paths).kafka_versions[pins.KAFKA_3].exists()
    ensure(machine.paths, ["kafka-2.8.2"])
    assert [version for version, folder in folders.items() if folder.exists()] == ["2.8.2"]


def test_a_worker_may_run_the_last_version_before_4_once_it_is_installed(machine: Machine) -> None:
    ensure(machine.paths)
    tools = locate(machine.paths)
    running = Jvm(tools.java, tools.kafka_libs, tools.kafka_versions, machine.paths.cache / "log4j2.properties")
    assert running.versions() == [pins.KAFKA_BEFORE, pins.KAFKA]
    ensure(machine.paths, [f"kafka-{pins.KAFKA_3}"])
    assert running.versions() == [pins.KAFKA_3, pins.KAFKA_BEFORE, pins.KAFKA], "without a new start of the operator"


@pytest.mark.parametrize(("version", "scala"), pins.KAFKA_WITH_ZOOKEEPER.items())
def test_an_earlier_version_comes_with_its_broker(machine: Machine, version: str, scala: str) -> None:
    ensure(machine.paths, [f"kafka-{version}"])
    pom = next((machine.paths.cache / f"kafka-{version}").rglob("pom.xml")).read_text(encoding="utf-8")
    assert f"<artifactId>kafka_{scala}</artifactId><version>{version}</version>" in pom
    assert ("connect-mirror" in pom) == (version == pins.KAFKA_3)


def test_versions_are_ordered_by_number_and_not_by_text(jvm: Jvm) -> None:
    assert jvm.versions() == ["4.2.0", "4.3.1", "4.10.0"]


def test_a_command_runs_the_brokers_version_unless_another_one_is_named(jvm: Jvm, tmp_path: Path) -> None:
    assert class_path(jvm.command("Main", heap_mib=64)) == f"{tmp_path}/4.3.1/*"
    assert class_path(jvm.command("Main", heap_mib=64, version="4.2.0")) == f"{tmp_path}/4.2.0/*"


def test_a_version_that_is_not_installed_is_refused_with_those_that_are(jvm: Jvm) -> None:
    with pytest.raises(UnknownVersionError, match=r"got 3\.9\.0, allowed 4\.2\.0, 4\.3\.1, 4\.10\.0"):
        jvm.command("Main", heap_mib=64, version="3.9.0")
