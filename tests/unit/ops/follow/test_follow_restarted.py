"""What a follower that starts takes over from the one before it, and what it knows of a topic that is not the same."""

from typing import Any

import pytest
from confluent_kafka import KafkaError

from ops.follow.kept_maps import KeptMaps
from tests.support.followed_sides import Followed, KeptTopic
from tests.unit.kafka import test_offset_syncs as simulated
from tests.unit.kafka.test_offset_syncs import SimulatedMirror


def test_what_compaction_removes_is_kept_for_the_next_process(followed: Followed) -> None:
    topic: Any = KeptTopic(followed.target)
    said: list[str] = []

    def kept() -> KeptMaps:
        return KeptMaps(topic, followed.follower.pair.request.mirror, said.append)

    followed.follower = followed.started(kept())
    followed.copies((simulated.RECORD, 40))
    followed.stands(30)
    followed.round()
    followed.follower.close()
    assert set(topic.records) == {b"mm2", b"mm2/items/0"}
    gone = len(followed.mirror.written)
    followed.copies((simulated.RECORD, 40))
    followed.missing = set(range(gone + 2))
    followed.follower = followed.started(kept())
    for offset in (10, 75):
        followed.stands(offset)
        assert followed.round() == {"exact": 1}
        assert followed.at() == offset
    assert not said


def test_maps_that_cannot_be_kept_are_reported_once_and_groups_are_followed(followed: Followed) -> None:
    topic: Any = KeptTopic(followed.target)
    topic.refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    topic.records[b"mm2"] = b"no JSON"
    said: list[str] = []
    followed.follower = followed.started(KeptMaps(topic, followed.follower.pair.request.mirror, said.append, 0.0))
    for _ in range(3):
        followed.copies((simulated.RECORD, 40))
        followed.stands(20)
        assert followed.round() == {"exact": 1}
    assert len(said) == 2
    assert said[1].endswith("Give user target-user Create, Describe, DescribeConfigs, Read and Write on it.")


def restarts(followed: Followed, topic: Any) -> None:
    """Let the follower end, and another one start on what it has kept."""
    followed.follower.close()
    followed.follower = followed.started(KeptMaps(topic, followed.follower.pair.request.mirror, lambda _: None))


def test_first_copies_still_count_after_a_restart_of_the_follower(followed: Followed) -> None:
    topic: Any = KeptTopic(followed.target)
    restarts(followed, topic)
    followed.copies((simulated.RECORD, 19), (simulated.BUSY, 1), (simulated.RECORD, 21))
    again = sorted(followed.mirror.copies)[15:]
    followed.stands(37)
    assert followed.round() == {"exact": 1}
    followed.copies((simulated.RESTART, 0))
    for upstream in again:
        followed.mirror._copy(upstream)
        if upstream in (15, 20, 30):
            restarts(followed, topic)
        states, at = followed.round(), followed.at() or 0
        assert not followed.mirror.skipped(37, at), (upstream, at)
    assert states == {"exact": 1}
    assert at == followed.mirror.copies[37][-1]


def created_again(followed: Followed) -> None:
    """Let the source's topic be created again: the target keeps what it has, and the mirror begins with offset 0."""
    old = followed.mirror
    followed.mirror = SimulatedMirror(target_end=old.target_end, written=[*old.written])
    followed.records.mirror = followed.mirror
    followed.ids["source"] = "2"


@pytest.fixture
def replaced(followed: Followed) -> KeptTopic:
    """The maps of a follower whose mirror has restarted unseen, and whose topic was created again after that."""
    topic = KeptTopic(followed.target)
    restarts(followed, topic)
    followed.copies((simulated.RECORD, 40))
    followed.stands(30)
    followed.round()
    followed.copies((simulated.RESTART, 5))
    created_again(followed)
    return topic


def test_what_is_copied_of_a_topic_that_was_created_again_while_nobody_followed_it_counts(
    followed: Followed, replaced: KeptTopic
) -> None:
    followed.copies((simulated.RECORD, 30), (simulated.PERIODIC, 1))
    restarts(followed, replaced)
    followed.stands(20)
    assert followed.round() == {"exact": 1}
    assert followed.at() == 45 + 20


def test_second_copies_of_the_old_topic_prove_nothing_of_the_new_one(followed: Followed, replaced: KeptTopic) -> None:
    followed.ahead(50)
    restarts(followed, replaced)
    followed.stands(38)
    assert followed.round() == {"unknown": 1}
    assert followed.at() == 30
