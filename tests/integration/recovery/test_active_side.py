"""Who is active on the running sandbox: what applications read, a command's switch, and one that is refused."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import AdminClient

from sandbox.state import PROJECT
from settings.mirrors import SWITCH_VARIABLE
from tests.support.waiting import at_most

from ...support.running_sandbox import Pair, Sandbox

SECONDS = at_most(420)
NAMESPACE, SECRET = "rt-inventory-stg", "mm2-clients"


def values(sandbox: Sandbox) -> dict[str, str]:
    """What the Secret holds, decoded."""
    return sandbox.secret(NAMESPACE, SECRET)


def java_topics(sandbox: Sandbox, folder: Path, found: dict[str, str]) -> list[str]:
    """Topics that Kafka's own command sees with nothing but the Secret's file."""
    file = folder / "client.properties"
    file.touch(mode=0o600)
    file.write_text(found["client.properties"], encoding="ascii")
    libs = f"{sandbox.tools.kafka_libs}/*"
    command = [str(sandbox.tools.java), "-cp", libs, "org.apache.kafka.tools.TopicCommand", "--list"]
    command += ["--bootstrap-server", found["bootstrapServers"], "--command-config", str(file)]
    environment = {key: value for key, value in os.environ.items() if key != "CLASSPATH"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=at_most(90), check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.splitlines()


def librdkafka_topics(found: dict[str, str]) -> set[str]:
    """Topics that librdkafka sees with the Secret's single values."""
    client = AdminClient(
        {
            "bootstrap.servers": found["bootstrapServers"],
            "security.protocol": found["securityProtocol"],
            "sasl.mechanism": found["saslMechanism"],
            "sasl.username": found["user"],
            "sasl.password": found["password"],
            "ssl.ca.pem": found["ca.crt"],
        }
    )
    return set(client.list_topics(timeout=30).topics)


@pytest.mark.parametrize("client", ["java", "librdkafka"])
def test_applications_reach_the_active_side_with_nothing_but_the_secret(
    sandbox: Sandbox, pair: Pair, client: str, tmp_path: Path
) -> None:
    found = values(sandbox)
    assert found["bootstrapServers"] == pair.dev["cluster"]["bootstrapServers"]
    topics = java_topics(sandbox, tmp_path, found) if client == "java" else librdkafka_topics(found)
    assert {"items", "items.inventory", "store.inventory"} <= set(topics)


@pytest.fixture
def at_target(sandbox: Sandbox, pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A stack file in which the target is active; afterwards the source is again."""
    document: dict[str, Any] = yaml.safe_load((PROJECT / "Pulumi.stg.yaml").read_text(encoding="utf-8"))
    document["config"]["rt-inventory:mirrors"][0] |= {"active": "target", "state": "stopped"}
    file = tmp_path / "Pulumi.stg.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    monkeypatch.delenv(SWITCH_VARIABLE, raising=False)
    yield file
    monkeypatch.setenv(SWITCH_VARIABLE, "mm2")
    back = up(sandbox)
    assert back.returncode == 0, output_of(back)
    assert values(sandbox)["bootstrapServers"] == pair.dev["cluster"]["bootstrapServers"]
    exported = sandbox.pulumi.outputs("stg")
    assert (exported["mirrors"]["mm2"]["active"], exported["mirrors"]["mm2"]["state"]) == ("source", "running")
    assert exported["verifications"]["mm2"]["finishedAt"] > pair.stg["verifications"]["mm2"]["finishedAt"]


def up(sandbox: Sandbox, file: Path | None = None, command: str = "up") -> "subprocess.CompletedProcess[str]":
    arguments = ("--yes", "--skip-preview") if command == "up" else ()
    return sandbox.pulumi.run("stg", command, *arguments, config_file=file, check=False, timeout_s=SECONDS)


def output_of(result: "subprocess.CompletedProcess[str]") -> str:
    return result.stdout + result.stderr


@pytest.mark.nightly
def test_a_switch_is_made_in_place_for_a_command_and_refused_to_anybody_else(
    sandbox: Sandbox, pair: Pair, at_target: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = sandbox.get("secret", "-n", NAMESPACE, SECRET)["metadata"]
    assert before["labels"]["rt-inventory/active"] == "source"

    refused = up(sandbox, at_target)
    assert refused.returncode != 0
    assert "mirror mm2: active must stay 'source' (got 'target')" in output_of(refused)
    assert "Traceback" not in output_of(refused)
    assert sandbox.get("secret", "-n", NAMESPACE, SECRET)["metadata"]["resourceVersion"] == before["resourceVersion"]
    preview = up(sandbox, at_target, "preview")
    assert preview.returncode == 0, output_of(preview)
    assert "mirror mm2: active must stay 'source' (got 'target')" in output_of(preview)

    monkeypatch.setenv(SWITCH_VARIABLE, "mm2")
    switched = up(sandbox, at_target)
    assert switched.returncode == 0, output_of(switched)
    monkeypatch.delenv(SWITCH_VARIABLE)
    assert "mirror mm2: not verified, because it is declared stopped." in output_of(switched)
    after = sandbox.get("secret", "-n", NAMESPACE, SECRET)["metadata"]
    assert (after["uid"], after["labels"]["rt-inventory/active"]) == (before["uid"], "target")
    found = values(sandbox)
    assert found["bootstrapServers"] == pair.stg["cluster"]["internalBootstrapServers"]
    assert "items" in java_topics(sandbox, tmp_path, found)
    assert "items" in librdkafka_topics(found)
    exported = sandbox.pulumi.outputs("stg")
    facts = {key: exported["mirrors"]["mm2"][key] for key in ("active", "state", "clientsSecret")}
    assert facts == {"active": "target", "state": "stopped", "clientsSecret": SECRET}
    assert exported["verifications"]["mm2"] is None
    assert exported["verificationRequests"]["mm2"]["mirror"]["name"] == "mm2"
    connectors = sandbox.mirror(NAMESPACE, "mm2")["status"]["connectors"]
    assert {connector["connector"]["state"] for connector in connectors} == {"STOPPED"}

    old_checkout = up(sandbox)
    assert old_checkout.returncode != 0
    assert "mirror mm2: active must stay 'target' (got 'source')" in output_of(old_checkout)
    assert values(sandbox) == found
