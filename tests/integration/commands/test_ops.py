"""Sending, reading and verifying through the command line, on real clusters."""

import json

import pytest

from ...support.ops_commands import ops, run
from ...support.running_sandbox import Pair, Sandbox


def test_automatic_commits_go_on_where_reading_stopped(sandbox: Sandbox, pair: Pair) -> None:
    topic, group = "items.inventory", "test-ops-auto"
    ops(sandbox, "produce", "-s", "dev", "-t", topic, "-n", "50")
    ops(sandbox, "consume", "-s", "dev", "-t", topic, "-g", group, "--until-end", "--auto-commit")
    assert ops(sandbox, "consume", "-s", "dev", "-t", topic, "-g", group, "--until-end")["records"] == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["produce", "-s", "dev", "-t", "no.such.topic"], "topic 'no.such.topic' must exist"),
        (["produce", "-s", "nowhere"], "stack nowhere: must exist in the backend"),
        (["verify", "-s", "dev"], "must hold a mirror"),
    ],
)
def test_bad_input_is_one_message_and_exit_2(sandbox: Sandbox, pair: Pair, arguments: list[str], error: str) -> None:
    result = run(sandbox, *arguments, "--json")
    assert result.returncode == 2
    assert error in json.loads(result.stdout)["error"]


def test_a_wrong_password_is_reported_and_not_shown(
    sandbox: Sandbox, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = "surely-wrong-4711"
    variables = {
        "KAFKA_BROKERS": pair.dev["cluster"]["bootstrapServers"],
        "KAFKA_USER": next(iter(pair.dev["userPasswords"])),
        "KAFKA_PWD": wrong,
        "KAFKA_CERT": pair.dev["clusterCaCertificate"],
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    result = run(sandbox, "produce", "--json")
    assert result.returncode == 2
    assert "user and password must be accepted" in result.stdout
    assert wrong not in result.stdout + result.stderr
