"""Known issues of the connectors: what failed and why, by traces, the resource's conditions and the workers' logs."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kafka.retention import not_copied
from kafka.topic_partition import TopicPartition
from ops.doctor.known_issues import Finding, finding, operator_facts
from ops.doctor.observations import Connector, Observations, TaskStatus
from ops.inspection.mirror_at_rest import RUNS_AT_REST
from settings.text import format_duration

LINE_MAX = 300
NAMED_MAX = 10
_RUNNING, _FAILED, _MISSING, _UNASSIGNED = "RUNNING", "FAILED", "MISSING", "UNASSIGNED"
# Messages of Kafka Connect, MirrorMaker and clients, releases 2.x to 4.x. The first issue that matches is the cause.
_TEXTS = {
    "plugin-not-found": (
        r"Failed to find any class that implements \S+ and which name matches [^\s,]+"
        r"|Class \S+ could not be found"
        r"|(?:ClassNotFoundException|NoClassDefFoundError): \S+"
    ),
    "missing-acls": (
        r"(?:Topic|Group|Cluster|TransactionalId)AuthorizationException: .*"
        r"|Not authorized to access (?:topics|group)\S*.*"
    ),
    "authentication-refused": (
        r"Connection to node \S+ \(\S+\) failed authentication due to: .*"
        r"|(?:SaslAuthentication|SslAuthentication)Exception: .*"
    ),
    "broker-out-of-workers-reach": r"Connection to node \S+ \(\S+\) could not be established\..*",
    "unknown-topic-or-partition": (
        r"UnknownTopicOrPartitionException.*|This server does not host this topic-partition"
        r"|\S*=UNKNOWN_TOPIC_OR_PARTITION\S*|Topic \S+ not present in metadata after .*"
    ),
    "record-too-large": (
        r"RecordTooLargeException: .*"
        r"|The request included a message larger than the max message size the server will accept.*"
    ),
    "record-time-refused": (
        r"InvalidTimestampException: .*"
        r"|The timestamp of the message is out of acceptable range.*"
        r"|Timestamp -?\d+ of message with offset \d+ is out of range.*"
    ),
    "flush-time-out": (
        r"Expiring \d+ record\(s\) for \S+:.*"
        r"|Failed to flush, timed out while waiting for producer to flush outstanding.*"
    ),
    "offset-commit-time-out": (
        r"Timed out waiting to flush offsets to storage.*"
        r"|Timed out while waiting for previous offset flush to complete.*"
        r"|Commit of offsets timed out.*"
    ),
}
_PATTERNS = {trouble: re.compile(pattern) for trouble, pattern in _TEXTS.items()}
_IN_USE = re.compile(r"Unable to sync offsets for consumer group (\S+?)\. This is likely caused by consumers currently")
_SIZE = re.compile(r"The message is (\d+) bytes")
_REFUSED_FOR = re.compile(r"failed to send record to (\S+?):? ")
_TOPIC = re.compile(r"Expiring \d+ record\(s\) for (\S+)-\d+:|topics: \[([^\],]+)|(\S+?)=UNKNOWN_TOPIC")
_REFUSED_RECORDS = ("record-too-large", "record-time-refused")
# A topic is unknown for a moment whenever it is created, and logs remember that: only a lasting failure counts.
_PASSES = ("unknown-topic-or-partition",)
# A broker that restarts is out of reach for a moment: clients try again, at first every 50 ms, at last each second.
_TIMES_MIN = {"broker-out-of-workers-reach": 10}


@dataclass(frozen=True)
class _Text:
    """A text that was found about the mirror, and where."""

    where: str
    text: str
    connector: str | None = None
    is_log: bool = False


def connect_symptoms(seen: Observations) -> Iterator[Finding]:
    """Return what failed, and each known cause in a trace, a condition or a log, once for each of them."""
    texts = list(_texts(seen))
    causes = [finding for text in texts for finding in _causes(seen, text)]
    yield from causes
    yield from _failed(seen, explained=any(one.trouble == "plugin-not-found" for one in causes))
    yield from _without_tasks(seen)
    yield from _partitions_without_task(seen)
    yield from _copies_nothing(seen)
    yield from _runs_at_rest(seen)
    yield from _not_ready(seen, texts, causes)


def active_groups_in_logs(seen: Observations) -> set[str]:
    """Return the groups that the mirror could not sync by its workers' logs, for they have members on the target."""
    return {match.group(1) for log in seen.logs for match in _IN_USE.finditer(log.text)}


def _texts(seen: Observations) -> Iterator[_Text]:
    for one in seen.connectors or ():
        for part in one.parts:
            if part.trace:
                yield _Text(_name(one, part), part.trace, one.name)
    if seen.resource is not None and not seen.resource.ready:
        yield _Text(seen.resource.name, seen.resource.reason)
    for log in seen.logs:
        yield _Text(log.name, log.text, is_log=True)


def _causes(seen: Observations, text: _Text) -> Iterator[Finding]:
    for trouble, pattern in _PATTERNS.items():
        matches = [match.group().strip() for match in pattern.finditer(text.text)]
        if len(matches) < _TIMES_MIN.get(trouble, 1) or (text.is_log and trouble in _PASSES):
            continue
        said = matches[-1][:LINE_MAX]
        times = f" ({len(matches)} times)" if len(matches) > 1 else ""
        topic = _TOPIC.search(text.text)
        name = next((one for one in topic.groups() if one), None) if topic else None
        facts = _facts(seen, text.connector, name, trouble)
        if trouble in _REFUSED_RECORDS:
            facts |= _refused(seen, said)
        yield finding(trouble, text.where, f"it says: {said}{times}", **facts)
        if not text.is_log:
            return


def _facts(seen: Observations, connector: str | None, topic: str | None, trouble: str) -> dict[str, str | None]:
    mirror = seen.mirror
    resource = mirror.resource
    own = mirror.offset_storage_topic if trouble == "offset-commit-time-out" else None
    here = topic is not None and mirror.carries_topic(topic) and topic != mirror.target_topic(topic)
    side = seen.source if here else seen.target
    return {
        "stack": seen.stack,
        "connect": mirror.connect_url,
        "connector": (connector or mirror.source_connector).replace(">", "%3E"),
        "topic": own or topic,
        "namespace": resource.namespace if resource else None,
        "resource": resource.name if resource else None,
        "user": side.user,
        "side": side.role,
        "set": f"mirror-{side.role}",
        **operator_facts(resource.api_version if resource else None),
    }


def _refused(seen: Observations, said: str) -> dict[str, str | None]:
    """Return the size of the record if it is named, and the topic, which a worker names in its log only."""
    size = _SIZE.search(said)
    named = [one for log in seen.logs for one in _REFUSED_FOR.findall(log.text)]
    return {"size": size.group(1) if size else None, "topic": named[-1] if named else None}


def _failed(seen: Observations, *, explained: bool) -> Iterator[Finding]:
    """Return what does not run; a connector that is missing for a known cause is reported already."""
    ready = seen.resource is not None and seen.resource.ready
    trouble = "connectors-failed-under-ready" if ready else "connectors-failed"
    for one in seen.connectors or ():
        for part in one.parts:
            if part.state == _FAILED or (part.state == _MISSING and not explained):
                cause = _cause(part.trace)
                said = (
                    f"{part.state}, although {seen.resource.name} is Ready" if ready and seen.resource else part.state
                )
                what = f"it is {said}{': ' + cause if cause else ''}"
                yield finding(trouble, _name(one, part), what, **_facts(seen, one.name, None, trouble))


def _without_tasks(seen: Observations) -> Iterator[Finding]:
    for one in seen.connectors or ():
        idle = one.name.endswith("MirrorSourceConnector") and one.parts[0].state == _RUNNING and not one.tasks
        if idle and seen.should_run and seen.carried:
            what = f"it runs without a task, though the source has {len(seen.carried)} topics to mirror"
            yield finding("connector-without-tasks", one.name, what, **_facts(seen, one.name, None, ""))


def _partitions_without_task(seen: Observations) -> Iterator[Finding]:
    """Return partitions whose task no worker has, and those in no task's configuration whose remote topic exists."""
    for one in seen.connectors or ():
        if not one.name.endswith("MirrorSourceConnector") or one.parts[0].state != _RUNNING or not seen.should_run:
            continue
        configured = {tp for part in one.parts for tp in part.partitions}
        for part in one.parts[1:]:
            if part.partitions and _is_on_no_worker(seen, part):
                what = f"no worker has it, so nothing reads {_format_list(part.partitions)}{_until(seen)}"
                yield finding("partitions-without-task", _name(one, part), what, **_facts(seen, one.name, None, ""))
        if left := _mirrored_partitions(seen) - configured if configured else None:
            what = f"none of its tasks is configured to read {_format_list(left)}"
            yield finding("partitions-without-task", _name(one, one.parts[0]), what, **_facts(seen, one.name, None, ""))


def _copies_nothing(seen: Observations) -> Iterator[Finding]:
    """Return the issue of a mirror that copies nothing although all of it runs; what does not run is another issue."""
    waiting, parts = not_copied(seen.until_deletion), [part for one in seen.connectors or () for part in one.parts]
    if not waiting or not seen.should_run or not parts or any(part.state != _RUNNING for part in parts):
        return
    more = f" and {len(waiting) - NAMED_MAX} more" if len(waiting) > NAMED_MAX else ""
    named = ", ".join(f"{one.records:,} of {one.topic}-{one.partition}" for one in waiting[:NAMED_MAX])
    what = (
        f"records that wait: {named}{more}; the first for {format_duration(waiting[0].waited_s or 0.0)}, and none was "
        "copied while this looked"
    )
    for one in seen.connectors or ():
        if one.name.endswith("MirrorSourceConnector"):
            yield finding("copies-nothing", f"connector {one.name}", what, **_facts(seen, one.name, None, ""))


def _runs_at_rest(seen: Observations) -> Iterator[Finding]:
    if seen.runs_at_rest is not None:
        yield finding(RUNS_AT_REST, f"mirror {seen.mirror.name}", seen.runs_at_rest, **_facts(seen, None, None, ""))


def _is_on_no_worker(seen: Observations, part: TaskStatus) -> bool:
    """Whether no worker runs a task. Connect reports it as RUNNING until another worker gets it."""
    if seen.assigned is None or part.state != _RUNNING:
        return part.state == _UNASSIGNED
    return part.name not in {f"task {number}" for number in seen.assigned.tasks}


def _until(seen: Observations) -> str:
    delay_ms = seen.assigned.delay_ms if seen.assigned is not None else 0
    return f"; Connect planned to give it to another worker after {delay_ms / 1000:.0f} s" if delay_ms else ""


def _mirrored_partitions(seen: Observations) -> set[TopicPartition]:
    """Return the partitions of carried topics whose remote topic has them; one that is missing is another issue."""
    remote = seen.target.topics or {}
    return {
        TopicPartition(name, number)
        for name, parts in seen.carried.items()
        if remote.get(seen.mirror.target_topic(name), 0) >= parts
        for number in range(parts)
    }


def _format_list(partitions: Iterable[TopicPartition]) -> str:
    names = [f"{topic}-{number}" for topic, number in sorted(partitions)]
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more


def _not_ready(seen: Observations, texts: list[_Text], causes: list[Finding]) -> Iterator[Finding]:
    resource = seen.resource
    if resource is None or resource.ready or resource.paused:
        return
    failed = any(part.state == _FAILED for one in seen.connectors or () for part in one.parts)
    if not failed and not any(one.where == resource.name for one in causes):
        what = f"it is not Ready: {resource.reason or 'its operator has not reported a state'}"
        yield finding("mirror-not-ready", resource.name, what, **_facts(seen, None, None, ""))


def _name(one: Connector, part: TaskStatus) -> str:
    return f"connector {one.name}" if part is one.parts[0] else f"{part.name} of connector {one.name}"


def _cause(trace: str) -> str:
    """Return the last cause in a Java stack trace, else its first line."""
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return (causes or lines or [""])[-1 if causes else 0][:LINE_MAX]
