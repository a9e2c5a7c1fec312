"""Sending, reading and verifying through the command line, on real clusters."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from ops.connection import from_outputs
from ops.demo_client.consumer import Goal, connect, read
from tests.support.waiting import wait_until

from ...support.ops_commands import ops, run
from ...support.running_sandbox import Pair, Sandbox

SLOWLY_S, SILENT_S, ALL_PART_AND_ALL_AGAIN = 0.2, 2.0, 3


def test_automatic_commits_go_on_where_reading_stopped(sandbox: Sandbox, pair: Pair) -> None:
    topic, group = "items.inventory", "test-ops-auto"
    ops(sandbox, "produce", "-s", "dev", "-t", topic, "-n", "50")
    ops(sandbox, "consume", "-s", "dev", "-t", topic, "-g", group, "--until-end", "--auto-commit")
    assert ops(sandbox, "consume", "-s", "dev", "-t", topic, "-g", group, "--until-end")["records"] == 0


class Counted:
    """A consumer that counts how often it was given partitions, and how often they were taken away."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer, self.given, self.taken = consumer, 0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.consumer, name)

    def subscribe(self, topics: list[str], **callbacks: Callable[..., None]) -> None:
        def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            callbacks["on_assign"](consumer, partitions)
            self.given += 1

        def on_revoke(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            callbacks["on_revoke"](consumer, partitions)
            self.taken += 1

        self.consumer.subscribe(topics, **{**callbacks, "on_assign": on_assign, "on_revoke": on_revoke})


def test_a_rebalance_that_takes_long_does_not_end_the_reading(sandbox: Sandbox, pair: Pair) -> None:
    """A member that does not answer keeps the others waiting, without partitions, until it leaves."""
    topic, group = "items.inventory", "test-ops-rebalance"
    ops(sandbox, "produce", "-s", "dev", "-t", topic, "-n", "1000")
    connection = from_outputs("dev", pair.dev)
    consumer, client_errors = connect(connection, topic, group)
    first = Counted(consumer)

    def come_and_go() -> None:
        member = {**connection.client_config(), "group.id": group, "enable.auto.commit": False}
        silent, late = Consumer(member), Consumer(member)
        try:
            silent.subscribe([topic])
            wait_until("the second member has partitions", lambda: (silent.poll(0.1), silent.assignment())[1])
            taken = first.taken
            late.subscribe([topic])
            wait_until("the first has none", lambda: (late.poll(0.1), first.taken > taken)[1])
            time.sleep(SILENT_S)
        finally:
            late.close()
            silent.close()  # the last, so that the first member is given all at once

    others = threading.Thread(target=come_and_go)

    def hand_over(_: Any) -> None:
        if others.ident is None:
            others.start()
        if others.is_alive():
            time.sleep(SLOWLY_S)  # or its share would be read before

    found = read(first, topic, group, Goal(until_end=True), client_errors, hand_over=hand_over)
    others.join()
    assert (found.complete, first.given >= ALL_PART_AND_ALL_AGAIN) == (True, True)
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
