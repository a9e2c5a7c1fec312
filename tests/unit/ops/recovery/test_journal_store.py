"""A journal is kept whatever its size, and whoever reads finds the former one or the new one."""

import json
import time
import tracemalloc
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.errors import OpsError
from ops.recovery import journal_store, kubernetes_access
from ops.recovery.journal_store import (
    BYTES_PER_POSITION,
    CHUNK_BYTES,
    CHUNKS_MAX,
    KEY,
    ChangedError,
    JournalStore,
    packed,
    unpacked,
)
from tests.support.kept_objects import VALUES_MAX, KeptObjects
from tests.support.mirror_api_server import serving

NAME = "mm2-failover"
NINE_DIGITS = range(10**9)


@pytest.fixture
def server() -> KeptObjects:
    return KeptObjects()


@pytest.fixture
def environment(server: KeptObjects, tmp_path: Path) -> Iterator[dict[str, str]]:
    with serving(server, tmp_path) as found:
        yield found


@pytest.fixture
def store(environment: dict[str, str]) -> JournalStore:
    return JournalStore("there", NAME, environment)


def offsets(groups: int, partitions: int, seed: int = 0) -> dict[str, Any]:
    """What the step `offsets` of a failover learns: where each group goes on in each partition."""
    random = Random(seed)  # noqa: S311  # no secret
    names = [f"orders.v1.region-{number // 50}-{number % 50}" for number in range(partitions)]
    costs = {"repeated": 0, "skipped": 0, "left": 0}
    groups_of = {
        f"group-{number}": {
            **costs,
            "offsets": dict(zip(names, random.choices(NINE_DIGITS, k=partitions), strict=True)),
        }
        for number in range(groups)
    }
    return {"groups": groups_of, "finishedAt": "2026-11-22T08:00:00+00:00", "seconds": 12.5}


def journal(**steps: Any) -> dict[str, Any]:
    entry = {"command": "failover", "options": {}, "startedAt": "2026-11-22T07:59:00+00:00", "finishedAt": None}
    return {**entry, "steps": steps, "before": None}


def begun(store: JournalStore) -> str:
    return store.write(journal(), None)


def read(environment: dict[str, str], whole: bool = True) -> dict[str, Any]:
    """The journal as another command finds it, without its version."""
    entry, _ = JournalStore("there", NAME, environment).read(whole=whole)
    assert entry is not None
    return {key: value for key, value in entry.items() if key != "version"}


def test_a_thousand_groups_of_a_thousand_partitions_are_kept_within_the_limits_of_the_api_server(
    server: KeptObjects, store: JournalStore, environment: dict[str, str]
) -> None:
    version, entry = begun(store), journal(offsets=offsets(1000, 1000))
    began = time.process_time()
    version = store.write(entry, version)
    seconds, began = time.process_time() - began, time.process_time()
    assert read(environment) == entry
    read_seconds = time.process_time() - began
    chunks = [server.config_map(name)["binaryData"] for name in server.names() - {NAME}]
    size = sum(len(value) for chunk in chunks for value in chunk.values()) * 3 // 4
    print(f"{size} bytes in {len(chunks)} ConfigMaps, {seconds:.1f} s to write, {read_seconds:.1f} s to read")  # noqa: T201  # measured
    assert size <= 1_000_000 * BYTES_PER_POSITION
    calls = len(server.calls)
    entry["finishedAt"] = "now"
    store.write(entry, version)
    assert len(server.calls) == calls + 1, "what is kept already is not written again"


def test_it_takes_little_more_memory_than_what_it_keeps(store: JournalStore, environment: dict[str, str]) -> None:
    version, entry = begun(store), journal(offsets=offsets(100, 1000))
    content = json.dumps(entry)
    tracemalloc.start()
    try:
        store.write(entry, version)
        assert tracemalloc.get_traced_memory()[1] < 3 * len(content)
    finally:
        tracemalloc.stop()


def test_people_read_command_steps_and_times_without_a_tool(server: KeptObjects, store: JournalStore) -> None:
    store.write(journal(drain={"records": 7}, offsets=offsets(10, 100)), begun(store))
    text = server.config_map(NAME)["data"][KEY]
    assert '\n "command": "failover",\n' in text
    assert '"records": 7' in text
    document = json.loads(text)
    assert document["version"] == 2
    assert document["steps"]["offsets"].keys() == {"finishedAt", "seconds", "configMaps"}
    assert len(text) < 1000


def test_what_is_small_is_kept_as_earlier_releases_keep_and_read_it(server: KeptObjects, store: JournalStore) -> None:
    entry = journal(drain={"records": 7}, offsets=offsets(2, 3))
    store.write(entry, begun(store))
    assert json.loads(server.config_map(NAME)["data"][KEY]) == {**entry, "version": 1}
    assert server.names() == {NAME}


def test_a_journal_of_an_earlier_release_is_read(server: KeptObjects, environment: dict[str, str]) -> None:
    entry = {**journal(stop={"boundary": {"items-0": 10}}), "holder": None}
    data = {KEY: json.dumps({"version": 1, **entry})}
    server.objects["configmaps", NAME] = {"metadata": {"name": NAME, "resourceVersion": "7"}, "data": data}
    assert read(environment) == entry


def test_whoever_asks_only_which_steps_are_done_reads_one_config_map(
    server: KeptObjects, store: JournalStore, environment: dict[str, str]
) -> None:
    store.write(journal(offsets=offsets(10, 100)), begun(store))
    server.calls.clear()
    assert read(environment, whole=False)["steps"]["offsets"]["seconds"] == 12.5
    assert server.calls == [("GET", NAME)]


def test_what_the_journal_no_longer_names_is_removed_and_all_of_it_goes_with_it(
    server: KeptObjects, store: JournalStore, environment: dict[str, str]
) -> None:
    boundary = {"boundary": {f"items-{number}": number for number in range(2000)}}
    version = store.write(journal(stop=boundary, offsets=offsets(300, 1000)), begun(store))
    assert len(server.names()) == 1 + 1 + 2
    uid = server.config_map(NAME)["metadata"]["uid"]
    for name in server.names() - {NAME}:
        (owner,) = server.config_map(name)["metadata"]["ownerReferences"]
        assert (owner["name"], owner["uid"], server.config_map(name)["immutable"]) == (NAME, uid, True)
    kept = journal() | {"before": {"command": "failover", "finishedAt": "then", "steps": {"stop": boundary}}}
    store.write(kept, version)
    assert len(server.names()) == 1 + 1
    assert read(environment) == kept


def test_without_the_right_to_delete_the_journal_is_written_all_the_same(
    server: KeptObjects, store: JournalStore, environment: dict[str, str]
) -> None:
    server.refused.add(("DELETE", "configmaps"))
    version = store.write(journal(offsets=offsets(10, 100)), begun(store))
    store.write(journal(drain={}), version)
    assert read(environment) == journal(drain={})


@pytest.mark.parametrize("killed_at", range(6))
def test_a_writer_that_is_killed_leaves_the_former_journal_or_the_new_one(
    server: KeptObjects,
    store: JournalStore,
    environment: dict[str, str],
    killed_at: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_store, "CHUNK_BYTES", CHUNK_BYTES // 10)
    former, new = journal(offsets=offsets(30, 1000)), journal(offsets=offsets(30, 1000, seed=1))
    version = store.write(former, begun(store))
    assert len(server.names()) == 1 + 2
    answer, calls = server.answer, count()

    def until_killed(method: str, path: str, body: Any) -> tuple[int, Any]:
        return answer(method, path, body) if next(calls) < killed_at else (403, {})

    monkeypatch.setattr(server, "answer", until_killed)
    try:
        store.write(new, version)
    except OpsError:
        assert killed_at < 3, "two chunks and the journal"
    else:
        assert killed_at >= 3, "what is removed afterwards fails nothing"
    monkeypatch.setattr(server, "answer", answer)
    assert read(environment) == (new if killed_at >= 3 else former)


def test_a_reader_that_is_overtaken_reads_again(
    server: KeptObjects, store: JournalStore, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    version = store.write(journal(offsets=offsets(10, 100)), begun(store))
    new, answer = journal(offsets=offsets(10, 100, seed=1)), server.answer

    def overtaking(method: str, path: str, body: Any) -> tuple[int, Any]:
        found = answer(method, path, body)
        if method == "GET":
            monkeypatch.setattr(server, "answer", answer)
            store.write(new, version)
        return found

    monkeypatch.setattr(server, "answer", overtaking)
    assert read(environment) == new


@pytest.mark.parametrize("harm", ["gone", "changed"])
def test_what_the_journal_names_and_is_not_as_it_was_is_no_journal(
    server: KeptObjects, store: JournalStore, environment: dict[str, str], harm: str
) -> None:
    store.write(journal(offsets=offsets(10, 100)), begun(store))
    (name,) = server.names() - {NAME}
    if harm == "gone":
        del server.objects["configmaps", name]
    else:
        server.config_map(name)["binaryData"] = {"facts.json.gz": "aGFybQ=="}
    with pytest.raises(OpsError, match=rf"those that it names must be there, unchanged .*{name}"):
        read(environment)


def test_of_two_writers_the_second_is_refused_and_harms_nothing(
    store: JournalStore, environment: dict[str, str]
) -> None:
    version, other = begun(store), JournalStore("there", NAME, environment)
    store.write(journal(offsets=offsets(10, 100)), version)
    with pytest.raises(ChangedError, match="somebody else has changed it"):
        other.write(journal(offsets=offsets(10, 100, seed=1)), version)
    assert read(environment) == journal(offsets=offsets(10, 100))


def test_an_answer_that_was_lost_writes_no_chunk_twice(
    server: KeptObjects, store: JournalStore, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_access, "FIRST_PAUSE_S", 0.01)
    version = begun(store)
    server.lost_answers = 1
    store.write(journal(offsets=offsets(10, 100)), version)
    assert read(environment) == journal(offsets=offsets(10, 100))


def test_more_than_can_be_kept_is_refused_before_anything_changes(server: KeptObjects, store: JournalStore) -> None:
    most = CHUNKS_MAX * CHUNK_BYTES // BYTES_PER_POSITION
    store.require_room(most)
    with pytest.raises(OpsError, match=rf"must fit into {CHUNKS_MAX} ConfigMaps \(got {most + 1} offsets of groups"):
        store.require_room(most + 1)
    assert server.names() == set()
    assert CHUNK_BYTES < VALUES_MAX


def test_a_right_or_a_quota_that_is_missing_is_reported_before_anything_changes(
    server: KeptObjects, store: JournalStore
) -> None:
    server.refused.add(("POST", "configmaps"))
    store.require_room(100)  # fits into the first ConfigMap, which is written anyway
    with pytest.raises(OpsError, match=r"must be allowed to do this \(got 403"):
        store.require_room(1_000_000)


NUMBERS = st.integers(0, 40).map(lambda number: {f"items-{at}": at for at in range(number)})
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=2) | NUMBERS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=8,
)


@settings(max_examples=200)
@given(st.dictionaries(st.text(max_size=2), VALUES, max_size=3))
def test_facts_of_any_shape_are_read_as_they_were_written(facts: dict[str, Any]) -> None:
    assert unpacked(packed(facts)) == facts
