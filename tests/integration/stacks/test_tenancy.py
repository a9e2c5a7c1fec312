"""Lines of business that share two clusters: each has its mirror, and none reads anything of another's."""

import json
from itertools import permutations

import pytest
import yaml

from tests.support.waiting import wait_until

from ...support import records
from ...support.lines_of_business import ARRIVE_S, SOURCE, TARGET, Lines
from ...support.projects import KEY, changes

TOPIC_REFUSED, GROUP_REFUSED = "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED"
THIRD = "third"


@pytest.fixture(scope="module")
def busy(lines: Lines) -> Lines:
    """Every line has records on both clusters, and a group that has read them."""
    groups = [lines.line(name).group for name in lines.names]

    def is_synchronised(group: str) -> bool:
        return sum(records.committed(lines.project.client(TARGET), group).values()) > 0

    for name in lines.names:
        line = lines.line(name)
        lines.carry(name, *(f"{name}-{number}" for number in range(5)))
        records.consume(lines.project.client(SOURCE), line.topic, line.group)
    wait_until("the position of each group at the target", lambda: all(map(is_synchronised, groups)), ARRIVE_S)
    return lines


def test_the_records_of_each_line_arrive_and_nothing_else_does(busy: Lines) -> None:
    for name in busy.names:
        line = busy.line(name)
        assert line.topics
        for topic in line.topics:
            assert sorted(set(busy.arrived(line.copy(topic)))) == sorted(set(busy.written(topic)))
    everything = set().union(*(busy.line(name).everything(TARGET) for name in busy.names))
    own = {topic for topic in records.topics(busy.project.client(TARGET)) if not topic.startswith("__")}
    assert own == everything


@pytest.mark.parametrize("stack", [SOURCE, TARGET])
def test_a_tenant_reads_nothing_of_another_and_does_not_see_that_it_is_there(busy: Lines, stack: str) -> None:
    for name, other in permutations(busy.names, 2):
        mine, theirs = busy.line(name), busy.line(other)
        assert not mine.everything(stack) & theirs.everything(stack)
        client = busy.project.client(stack, mine.user(stack))
        own = mine.topic if stack == SOURCE else mine.copy(mine.topic)
        assert records.read(client, own, mine.group), "a user that may read nothing at all proves nothing"
        for topic in theirs.everything(stack):
            assert records.refusal(records.read, client, topic) == TOPIC_REFUSED, topic
        assert not records.topics(client) & theirs.everything(stack)
        groups = {theirs.group} | ({theirs.mirror.connect_group} if stack == TARGET else set())
        for group in groups:
            assert records.refusal(records.committed, client, group) == GROUP_REFUSED, group
            assert records.refusal(records.consume, client, own, group) == GROUP_REFUSED, group
        assert not records.groups(client) & groups
        assert records.committed(client, mine.group)


def test_one_more_line_touches_no_other(busy: Lines) -> None:
    project, before_names = busy.project, list(busy.names)
    before = {name: (project.identity(TARGET, name), project.pid(TARGET, name)) for name in before_names}
    add_line(busy, before_names[0])
    project.up(SOURCE)
    said = project.up(TARGET)
    # Who may write everything is denied the new line's topics too, and the copies of what a failover writes follow.
    copies = (f"{name}-break-glass-secret" for name in before_names)
    assert {change for change in changes(said) if change[0] != "+"} == {
        ("~", name) for name in ("users-tester", *copies)
    }
    assert {name for _, name in changes(said) if name.endswith("-mirror")} == {f"{busy.names[-1]}-mirror"}, said
    assert {name: (project.identity(TARGET, name), project.pid(TARGET, name)) for name in before_names} == before
    busy.carry(busy.names[-1], "of-the-third-line")


def add_line(lines: Lines, like: str) -> None:
    """One more line in both stacks, as one that is there with its name replaced."""
    line = lines.line(like)
    wanted = {
        (SOURCE, "users"): {line.user(SOURCE)},
        (SOURCE, "topics"): set(line.topics),
        (TARGET, "users"): {line.user(TARGET)},
        (TARGET, "mirrors"): {like},
    }
    for (stack, key), names in wanted.items():
        entries = lines.project.config[stack][KEY + key]
        new = [json.loads(json.dumps(entry).replace(like, THIRD)) for entry in entries if entry["name"] in names]
        assert all(entry["name"] not in names for entry in new), yaml.safe_dump(new)
        entries.extend(new)
