"""Clients without end: a signal ends them cleanly, with a summary and exit 0; a second signal does not wait."""

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, KafkaError
from typer.testing import CliRunner, Result

from ops.connection import ClientErrors, Connection
from ops.console import pulse, until_stopped
from ops.demo_client import __main__ as demo_client
from ops.demo_client import consumer, producer
from tests.support.kafka_doubles import FakeConsumer, FakeProducer, Message

SECRET = "very-secret-4711"
SIGNALS = [signal.SIGTERM, signal.SIGINT]
CONNECTION = Connection(name="environment", bootstrap_servers="h:1", security_protocol="SASL_SSL", password=SECRET)


@pytest.fixture(autouse=True)
def _handlers_are_put_back() -> Iterator[None]:
    before = [signal.getsignal(each) for each in SIGNALS]
    yield
    assert [signal.getsignal(each) for each in SIGNALS] == before


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("KAFKA_")]:
        monkeypatch.delenv(name)
    for name, value in {"BROKERS": "h:1", "USER": "alice", "PWD": SECRET}.items():
        monkeypatch.setenv(f"KAFKA_{name}", value)


class Stopped(FakeProducer):
    """Gets a signal once it has sent five records."""

    def __init__(self, number: int, **more: Any) -> None:
        super().__init__(**more)
        self.number = number

    def produce(self, topic: str, *, key: bytes, value: bytes, on_delivery: Any) -> None:
        super().produce(topic, key=key, value=value, on_delivery=on_delivery)
        if len(self.sent) == 5:
            os.kill(os.getpid(), self.number)


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(demo_client.app, list(arguments))
    assert SECRET not in result.output
    return result


def produce(monkeypatch: pytest.MonkeyPatch, client: FakeProducer, errors: ClientErrors | None = None) -> Result:
    given = client, errors or ClientErrors(CONNECTION)
    monkeypatch.setattr(producer, "connect", lambda *_: given)
    return run("produce", "--forever", "--rate", "1000", "--json")


def consume(monkeypatch: pytest.MonkeyPatch, client: FakeConsumer, *arguments: str) -> Result:
    monkeypatch.setattr(consumer, "connect", lambda *_, **__: (client, ClientErrors(CONNECTION)))
    return run("consume", "--forever", "--group", "g", *arguments, "--json")


def reported(number: int) -> Any:
    return lambda _client: os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_producer_delivers_what_is_queued_and_reports_how_many(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Stopped(number)
    result = produce(monkeypatch, client)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["delivered"], document["failed"], client.flushed) == (len(client.sent), 0, True)
    assert len(client.sent) == 5


def test_a_producer_that_lost_records_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    result = produce(monkeypatch, Stopped(signal.SIGTERM, lost=2))
    assert (result.exit_code, json.loads(result.stdout)["failed"]) == (1, 2)


def test_a_producer_that_is_not_let_in_any_more_ends_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = ClientErrors(CONNECTION)
    errors.note(KafkaError(KafkaError._AUTHENTICATION))
    client = FakeProducer()
    result = produce(monkeypatch, client, errors)
    assert (result.exit_code, client.flushed) == (2, True)
    assert "user and password must be accepted" in json.loads(result.stdout)["error"]


@pytest.mark.parametrize("number", SIGNALS)
def test_a_consumer_commits_what_it_read_and_leaves(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [Message(0, offset, b'{"id": "r"}') for offset in range(3)]
    client = FakeConsumer([*records, reported(number)], {0: 3})
    result = consume(monkeypatch, client, "--print")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["records"], document["complete"], document["committed"]) == (3, True, {"0": 3})
    assert client.closed
    assert '0 2 1970-01-01T00:00:00.000Z key {"id": "r"}' in result.stderr


@pytest.mark.parametrize(
    ("timestamp", "shown"),
    [
        ((TIMESTAMP_CREATE_TIME, 1_795_444_844_007), "2026-11-23T14:40:44.007Z"),
        ((TIMESTAMP_NOT_AVAILABLE, -1), "-"),
        ((TIMESTAMP_CREATE_TIME, 2**62), "-"),
    ],
)
def test_a_printed_record_has_its_timestamp(
    timestamp: tuple[int, int], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = FakeConsumer([Message(0, 7, b"v", timestamp=timestamp), reported(signal.SIGTERM)], {0: 8})
    assert f"0 7 {shown} key v" in consume(monkeypatch, client, "--print").stderr


def test_a_consumer_without_records_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    client = FakeConsumer([reported(signal.SIGTERM)], {0: 0})
    result = consume(monkeypatch, client)
    assert (result.exit_code, json.loads(result.stdout)["records"], client.commits) == (0, 0, [])


def test_a_consumer_that_only_reads_commits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    client = FakeConsumer([Message(0, 0), reported(signal.SIGTERM)], {0: 1})
    assert consume(monkeypatch, client, "--no-commit").exit_code == 0
    assert client.commits == []


def test_a_second_signal_interrupts() -> None:
    with until_stopped() as is_told:
        os.kill(os.getpid(), signal.SIGTERM)
        assert is_told()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)


def test_the_pulse_is_slow() -> None:
    said: list[str] = []
    times = iter([0.0, 10.0, 30.0, 31.0, 59.0, 61.0])
    beat = pulse("produce items", said.append, every_s=30, clock=lambda: next(times))
    for done in (100, 1300, 1310, 2500, 2600):
        beat(done)
    assert said == ["produce items: 1,300 records", "produce items: 2,600 records"]


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (["produce", "--forever"], ["--rate must be given with --forever"]),
        (["produce", "--forever", "--count", "3"], ["--count must not be given", "--rate must be given"]),
        (["consume", "--forever", "--max", "3"], ["one of --max N, --until-end and --forever"]),
        (["consume"], ["one of --max N, --until-end and --forever"]),
        (
            ["consume", "--forever", "--wait", "5", "--auto-commit", "--no-commit"],
            ["--wait must not be given with --forever", "--auto-commit and --no-commit"],
        ),
    ],
)
def test_what_does_not_go_together_is_reported_at_once(arguments: list[str], messages: list[str]) -> None:
    result = run(*arguments, "--json")
    assert result.exit_code == 2
    assert all(message in json.loads(result.stdout)["error"] for message in messages)
