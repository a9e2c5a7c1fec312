"""Sending, reading and verifying through the command line, on real clusters."""

import json
from pathlib import Path

import pytest

from sandbox.demo_summary import read_ids

from .clients import ops, run
from .harness import Pair, Sandbox


def test_what_is_produced_is_consumed_once_and_the_mirror_is_verified(
    sandbox: Sandbox, pair: Pair, tmp_path: Path
) -> None:
    topic, group = "store.inventory", "test-ops"
    produced, consumed = tmp_path / "produced.tsv", tmp_path / "consumed.tsv"
    sent = ops(sandbox, "produce", "-s", "dev", "-t", topic, "-n", "300", "--keys-out", str(produced))
    assert (sent["delivered"], sent["failed"]) == (300, 0)
    first = ops(sandbox, "consume", "-s", "dev", "-t", topic, "-g", group, "--max", "120", "--keys-out", str(consumed))
    assert first["records"] == 120
    ids = read_ids(consumed)
    rest = ops(sandbox, "consume", "-s", "dev", "-t", topic, "-g", group, "--until-end", "--keys-out", str(consumed))
    ids += read_ids(consumed)
    assert rest["complete"]
    assert set(read_ids(produced)) <= set(ids)
    assert len(ids) == len(set(ids))
    verdict = ops(sandbox, "verify", "-s", "stg", "--report-dir", str(tmp_path / "report"))
    assert verdict["verdict"] == "pass"
    assert Path(verdict["report"]).is_file()


def test_automatic_commits_go_on_where_reading_stopped(sandbox: Sandbox, pair: Pair) -> None:
    topic, group = "items.inventory", "test-ops-auto"
    ops(sandbox, "produce", "-s", "dev", "-t", topic, "-n", "50")
    ops(sandbox, "consume", "-s", "dev", "-t", topic, "-g", group, "--until-end", "--auto-commit")
    assert ops(sandbox, "consume", "-s", "dev", "-t", topic, "-g", group, "--until-end")["records"] == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["produce", "-s", "dev", "-t", "no.such.topic"], "topic 'no.such.topic' must exist"),
        (["produce", "-s", "nowhere"], "stack nowhere: must exist in the backend"),
        (["verify", "-s", "dev"], "must hold a mirror"),
    ],
)
def test_bad_input_is_one_message_and_exit_2(sandbox: Sandbox, pair: Pair, arguments: list[str], told: str) -> None:
    result = run(sandbox, *arguments, "--json")
    assert result.returncode == 2
    assert told in json.loads(result.stdout)["error"]


def test_a_wrong_password_is_told_and_not_shown(sandbox: Sandbox, pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
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
