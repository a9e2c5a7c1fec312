"""A running mirror whose settings change: in place where nothing is copied again, refused in a preview where all is."""

from typing import Any

import httpx
import pytest

from settings.mirror_parts import TOPICS_EXCLUDE
from tests.support.waiting import wait_until

from ...support import records
from ...support.lines_of_business import ARRIVE_S, SOURCE, TARGET, Lines
from ...support.ops_commands import ops
from ...support.projects import KEY, Document, changes, output_of

SHOWN, HIDDEN, EMPTIED = "extra", "extra-hidden", "emptied"


@pytest.fixture(scope="module")
def name(lines: Lines) -> str:
    return lines.names[0]


@pytest.fixture(scope="module")
def more_topics(lines: Lines, name: str) -> None:
    """Three more topics at the source, with records; the mirror's user may read two of them."""
    project, line = lines.project, lines.line(name)
    config = project.config[SOURCE]
    config[f"{KEY}topics"] += [{"name": topic, "partitions": 3, "replicas": 1} for topic in (SHOWN, HIDDEN)]
    config[f"{KEY}topics"].append({"name": EMPTIED, "partitions": 1, "replicas": 1})
    rights = {
        "type": "topic",
        "names": [SHOWN],
        "match": "prefix",
        "operations": ["Read", "Describe", "DescribeConfigs"],
    }
    project.entry(SOURCE, "users", line.user(SOURCE)).setdefault("acls", []).append(rights)
    project.up(SOURCE)
    for topic in (SHOWN, HIDDEN):
        records.write(project.client(SOURCE), topic, [f"{topic}-{number}" for number in range(9)])
    records.write(project.client(SOURCE), EMPTIED, ["old"])


def running_tasks(lines: Lines, name: str) -> int:
    line = lines.line(name)
    connectors = lines.project.mirror(TARGET, name)["status"]["connectors"]
    own = next(entry for entry in connectors if entry["name"] == line.mirror.connectors["source"])
    return sum(task["state"] == "RUNNING" for task in own["tasks"])


def test_topics_exclusions_tasks_and_resources_change_in_place_and_take_effect(
    lines: Lines, name: str, more_topics: None
) -> None:
    project = lines.project
    mirror = project.entry(TARGET, "mirrors", name)
    uid, generation = project.identity(TARGET, name)
    others = {other: project.identity(TARGET, other) for other in lines.names if other != name}
    mirror["topics"].append(f"{SHOWN}.*")
    mirror["topicsExclude"] = [*mirror.get("topicsExclude", TOPICS_EXCLUDE), HIDDEN]
    mirror |= {"sourceTasksMax": 2, "resources": {"limits": {"memory": "1Gi"}}}
    said = project.up(TARGET)
    assert ("~", f"{name}-mirror") in changes(said), said
    assert {operation for operation, _ in changes(said)} == {"~"}, said
    assert project.identity(TARGET, name) == (uid, generation + 1)
    assert project.mirror(TARGET, name)["spec"]["resources"] == {"limits": {"memory": "1Gi"}}
    wait_until("the new topic's copy", lambda: len(lines.arrived(SHOWN)) == 9, ARRIVE_S)
    wait_until("two running tasks", lambda: running_tasks(lines, name) == 2, ARRIVE_S)
    assert HIDDEN not in records.topics(project.client(TARGET))
    mirror["topicsExclude"].remove(HIDDEN)
    project.up(TARGET)
    assert project.identity(TARGET, name) == (uid, generation + 2)
    wait_until("the copy of what was excluded", lambda: len(lines.arrived(HIDDEN)) == 9, ARRIVE_S)
    assert len(lines.arrived(SHOWN)) == 9
    assert others == {other: project.identity(TARGET, other) for other in others}


# All keys that must stay are in tests/unit/components/test_rereplication.py.
@pytest.mark.parametrize(
    "key",
    [pytest.param("name", marks=pytest.mark.nightly), "naming", pytest.param("groupId", marks=pytest.mark.nightly)],
)
def test_what_would_copy_everything_again_is_refused_in_the_preview_and_nothing_changes(
    lines: Lines, name: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, line = lines.project, lines.line(name)
    before, connect = project.mirror(TARGET, name), connectors(lines, name)
    mirror: Document = project.entry(TARGET, "mirrors", name)
    prefixed = line.mirror.naming == "prefixed"
    value = {"name": f"{name}-2", "naming": "identity" if prefixed else "prefixed", "groupId": "another"}[key]
    monkeypatch.setitem(mirror, key, value)
    if key == "name":  # and what it is called after it, unless the settings say otherwise
        for other in ("groupId", "configStorageTopic", "offsetStorageTopic", "statusStorageTopic"):
            monkeypatch.delitem(mirror, other, raising=False)
        for entry in project.entry(TARGET, "users", line.user(TARGET))["aclSets"]:
            if entry.get("mirror") == name:
                monkeypatch.setitem(entry, "mirror", value)
    result = project.preview(TARGET)
    assert result.returncode != 0
    subject = f"mirror {mirror['name']}: {key} must stay"
    assert subject in output_of(result), output_of(result)
    assert "set acceptRereplication: true" in output_of(result)
    assert "Traceback" not in output_of(result)
    assert declared(project.mirror(TARGET, name)) == declared(before)
    assert connectors(lines, name) == connect


@pytest.mark.nightly
def test_a_mirror_copies_everything_again_into_empty_topics_if_that_is_accepted(lines: Lines, name: str) -> None:
    project, line = lines.project, lines.line(name)

    def arrived() -> dict[str, list[str]]:
        return {topic: sorted(lines.arrived(line.copy(topic))) for topic in line.topics}

    for topic in line.topics:
        records.write(project.client(SOURCE), topic, [f"again-{number}" for number in range(9)])
    written = {topic: sorted(lines.written(topic)) for topic in line.topics}
    wait_until("every record at the target", lambda: arrived() == written, ARRIVE_S)
    mirror, user = project.entry(TARGET, "mirrors", name), line.user(TARGET)
    rights: list[Document] = project.entry(TARGET, "users", user).setdefault("acls", [])
    remote = [line.copy(topic) for topic in line.topics]
    rights.append({"type": "topic", "names": remote, "operations": ["Delete"]})
    mirror["state"] = "stopped"
    project.up(TARGET)
    of = "--stack", TARGET, "--user", user, "-C", str(project.folder)
    ops(project.sandbox, "topics", "delete", *remote, "--mirrored", "--yes", *of)
    wait_until("no remote topic", lambda: not {*remote} & {*records.topics(project.client(TARGET))}, ARRIVE_S)
    mirror |= {"state": "running", "offsetStorageTopic": f"{name}-offsets-2", "acceptRereplication": True}
    project.up(TARGET)
    wait_until("every record once more, once", lambda: arrived() == written, ARRIVE_S)
    del mirror["acceptRereplication"]
    rights.pop()
    project.up(TARGET)
    assert arrived() == written


def test_a_declared_topic_that_is_deleted_with_its_resource_is_made_again_empty(
    lines: Lines, more_topics: None
) -> None:
    project, topic = lines.project, EMPTIED
    assert lines.written(topic) == ["old"]
    project.sandbox.kubectl("delete", "kafkatopic", topic, "-n", project.namespace(SOURCE))
    wait_until("no topic", lambda: topic not in records.topics(project.client(SOURCE)), ARRIVE_S)
    project.up(SOURCE)
    wait_until("the topic", lambda: topic in records.topics(project.client(SOURCE)), ARRIVE_S)
    assert lines.written(topic) == []


def declared(resource: Document) -> Document:
    """A resource without what its operator writes: the status, and the version that each new status gets."""
    metadata = {
        key: value for key, value in resource["metadata"].items() if key not in {"resourceVersion", "managedFields"}
    }
    return {"metadata": metadata, "spec": resource["spec"]}


def connectors(lines: Lines, name: str) -> Any:
    """Connectors of the mirror as Connect itself tells."""
    url = lines.project.mirror(TARGET, name)["status"]["url"]
    return httpx.get(f"{url}/connectors?expand=info", trust_env=False).json()
