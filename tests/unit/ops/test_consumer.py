"""A group reads up to its goal and commits exactly what it was handed."""

from typing import Any

import pytest
from confluent_kafka import KafkaError

from ops.connection import ClientErrors, Connection
from ops.demo_client.consumer import Goal, Read, read
from ops.errors import OpsError
from tests.support.kafka_doubles import FakeConsumer, Message

CONNECTION = Connection(name="dev", bootstrap_servers="h:1", security_protocol="PLAINTEXT")


def records(partition: int, count: int, start: int = 0) -> list[Message]:
    return [Message(partition, start + n, f'{{"id": "r{partition}-{start + n}"}}'.encode()) for n in range(count)]


def end_of(partition: int) -> Message:
    return Message(partition, -1, error=KafkaError(KafkaError._PARTITION_EOF))


def run(client: FakeConsumer, goal: Goal, **more: Any) -> Read:
    return read(client, "items", "g", goal, ClientErrors(CONNECTION), **more)


def until_empty(client: FakeConsumer) -> Goal:
    """A goal without end, asked to stop once the client has nothing more to hand over."""
    return Goal(wait_s=None, stopped=lambda: not client.messages)


def test_a_maximum_stops_the_reading_and_commits_the_offset_after_the_last_record() -> None:
    client = FakeConsumer(records(0, 3) + records(1, 3, start=10), {0: 3, 1: 13})
    seen: list[str | None] = []
    outcome = run(client, Goal(maximum=4), each=lambda _partition, _offset, record_id: seen.append(record_id))
    assert outcome.complete
    assert client.committed == {0: 3, 1: 11} == outcome.committed
    assert seen == ["r0-0", "r0-1", "r0-2", "r1-10"]
    assert client.closed


def test_the_end_is_the_end_that_was_when_reading_began() -> None:
    client = FakeConsumer(records(0, 5), {0: 3})
    outcome = run(client, Goal(until_end=True))
    assert (outcome.account.total, outcome.complete) == (3, True)


def test_an_end_behind_transaction_markers_is_found_by_the_brokers_word() -> None:
    client = FakeConsumer([*records(0, 2), end_of(0), end_of(1)], {0: 4, 1: 0})
    outcome = run(client, Goal(until_end=True, wait_s=2))
    assert (outcome.account.total, outcome.complete) == (2, True)
    assert client.committed == {0: 2}


@pytest.mark.parametrize("what", ["revoke", "lose"])
def test_the_end_is_not_reached_while_the_group_rebalances(what: str) -> None:
    """All partitions are taken from each member first; the one that had not read them is given some again."""
    away, back = (lambda each: getattr(each, what)(0)), (lambda each: each.assign())
    client = FakeConsumer([*records(0, 2), away, back, *records(0, 2, start=2)], {0: 4})
    outcome = run(client, Goal(until_end=True))
    assert (outcome.account.total, outcome.complete) == (4, True)

    alone = FakeConsumer([*records(0, 2), away], {0: 4})
    outcome = run(alone, Goal(until_end=True, wait_s=0.05))
    assert (outcome.account.total, outcome.complete) == (2, False), "nobody has read the rest"


def test_a_wait_without_records_ends_and_is_not_complete() -> None:
    outcome = run(FakeConsumer(records(0, 1), {0: 9}), Goal(maximum=5, wait_s=0.05))
    assert (outcome.account.total, outcome.complete) == (1, False)


def test_reading_only_commits_nothing() -> None:
    client = FakeConsumer(records(0, 2), {0: 2})
    assert run(client, Goal(until_end=True), commit=False).committed == {}
    assert client.committed == {}


def test_a_record_whose_hand_over_fails_is_neither_counted_nor_committed() -> None:
    client = FakeConsumer(records(0, 3), {0: 3})

    def refuse_the_third(message: Message) -> None:
        if message.offset() == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read(client, "items", "g", Goal(until_end=True), ClientErrors(CONNECTION), hand_over=refuse_the_third)
    assert client.committed == {0: 2}
    assert client.closed


def test_missing_rights_end_the_run_with_their_reason() -> None:
    refused = Message(-1, -1, error=KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
    client = FakeConsumer([refused], {0: 1})
    with pytest.raises(OpsError, match="Add an ACL"):
        run(client, Goal(maximum=1))
    assert client.closed


def test_a_reader_without_end_stops_when_reported_commits_and_leaves_the_group() -> None:
    client = FakeConsumer([*records(0, 3), *records(1, 2)], {0: 3, 1: 2})
    outcome = run(client, until_empty(client))
    assert (outcome.account.total, outcome.complete, client.committed) == (5, True, {0: 3, 1: 2})
    assert client.closed


def test_a_reader_without_end_commits_now_and_then() -> None:
    client = FakeConsumer(records(0, 3), {0: 3})
    run(client, until_empty(client), commit_s=0)
    assert client.commits == [{0: 1}, {0: 2}, {0: 3}]


def test_what_is_committed_is_not_committed_again() -> None:
    def nothing(_client: FakeConsumer) -> None:
        pass

    client = FakeConsumer([*records(0, 1), nothing, nothing], {0: 1})
    run(client, until_empty(client), commit_s=0)
    assert client.commits == [{0: 1}]


def test_a_partition_is_committed_before_another_member_gets_it_and_never_after() -> None:
    client = FakeConsumer(
        [*records(0, 2), *records(1, 2), lambda each: each.revoke(1), *records(0, 1, 2)], {0: 3, 1: 2}
    )
    outcome = run(client, until_empty(client))
    assert client.commits == [{1: 2}, {0: 3}]
    assert outcome.committed == {0: 3, 1: 2}


def test_a_partition_that_was_lost_is_not_committed() -> None:
    client = FakeConsumer([*records(0, 2), *records(1, 2), lambda each: each.lose(1)], {0: 2, 1: 2})
    run(client, until_empty(client))
    assert client.commits == [{0: 2}]


def test_a_commit_that_fails_in_between_is_made_later() -> None:
    client = FakeConsumer(records(0, 3), {0: 3}, refuse=2)
    outcome = run(client, until_empty(client), commit_s=0)
    assert client.commits == [{0: 3}]
    assert outcome.as_json()["refusedCommits"] == 2


def test_a_last_commit_that_fails_is_an_error_and_the_group_is_left_all_the_same() -> None:
    client = FakeConsumer(records(0, 1), {0: 1}, refuse=1, code=KafkaError.COORDINATOR_NOT_AVAILABLE)
    with pytest.raises(OpsError, match=r"commit must succeed .*will come again"):
        run(client, until_empty(client))
    assert client.closed


def test_a_last_commit_waits_until_the_group_knows_who_reads_what() -> None:
    client = FakeConsumer([*records(0, 2), *records(1, 2)], {0: 2, 1: 2}, refuse=2)
    goal = until_empty(client)
    outcome = run(client, goal)
    assert (outcome.committed, outcome.refused_commits, client.closed) == ({0: 2, 1: 2}, 2, True)


def test_a_partition_that_goes_to_another_member_meanwhile_is_left_to_that_one() -> None:
    client = FakeConsumer(records(0, 2), {0: 2}, refuse=1)
    goal = Goal(maximum=2)
    client.messages.append(lambda each: each.lose(0))
    assert run(client, goal).committed == {}
    assert client.closed


def test_errors_of_a_kind_are_kept_once() -> None:
    client_errors = ClientErrors(CONNECTION)
    for code in [KafkaError._TRANSPORT] * 1000 + [KafkaError._AUTHENTICATION]:
        client_errors.note(KafkaError(code))
    assert [error.code() for error in client_errors.seen] == [KafkaError._TRANSPORT, KafkaError._AUTHENTICATION]
    assert client_errors.final()
