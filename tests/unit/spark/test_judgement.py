"""Pairing, decoding, checks, verdict and report, without Kafka and Spark."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract.verification_request import ClusterConfig, Limits, Mirror, Request
from kafka import mirror_position
from kafka.cluster import Topic
from kafka.errors import redact_document
from kafka.group_positions import GroupPosition
from kafka.groups import Groups
from kafka.topic_partition import TopicPartition
from spark.checks import groups, records, topics
from spark.checks.registry import NOTHING, Check, expired, verdict
from spark.comparison.difference import Row, pair
from spark.comparison.findings import Finding, PartitionResult, Sample, expired_warnings
from spark.comparison.java_client import java_properties
from spark.report import publish
from spark.run_context import RunContext

MIRROR = Mirror(name="mm2", source_alias="es-src", target_alias="es-tgt", topics=("items",), replication_factor=3)


def row(offset: int, **changes: Any) -> Row:
    fields: dict[str, Any] = {
        "digest": f"d{offset}",
        "key": 1,
        "value": 1,
        "headers": 1,
        "timestamp": 1,
    } | changes
    return Row(offset=offset, **fields)


@pytest.mark.parametrize("part", ["key", "value", "headers", "timestamp"])
def test_a_record_altered_in_one_part_is_paired_and_names_the_part(part: str) -> None:
    found, lost, foreign = pair([row(3)], [row(8, **{part: 2})])
    assert [(one.source.offset, one.target.offset, one.differs) for one in found] == [(3, 8, (part,))]
    assert not lost
    assert not foreign


def test_of_two_candidates_the_nearest_is_the_altered_one() -> None:
    changed = row(599, value=None, timestamp=9)
    found, lost, _ = pair([row(100), row(600)], [changed])
    assert [one.source.offset for one in found] == [600]
    assert [one.offset for one in lost] == [100]


def test_records_that_share_nothing_are_not_paired() -> None:
    found, lost, foreign = pair([row(1)], [row(1, key=2, value=2, headers=2, timestamp=2)])
    assert (found, len(lost), len(foreign)) == ([], 1, 1)


def test_positions_are_read_from_the_offsets_topic_and_forgotten_by_a_tombstone() -> None:
    def key(connector: str, cluster: str = "es-src") -> bytes:
        return json.dumps([connector, {"cluster": cluster, "partition": 1, "topic": "items"}]).encode()

    known: dict[tuple[str, int], int] = {}
    ours = key(MIRROR.source_connector)
    rows = [(ours, b'{"offset":7}'), (key("other"), b'{"offset":9}'), (key("x", "y"), b"{}"), (b"noise", b"")]
    mirror_position.apply_positions(known, rows, MIRROR)
    assert known == {("items", 1): 7}
    mirror_position.apply_positions(known, [(ours, None)], MIRROR)
    assert known == {}


def result(**changes: Any) -> PartitionResult:
    fields: dict[str, Any] = {"topic": "items", "partition": 1, "source_start": 0, "cut": 10}
    fields |= {"target_start": 0, "target_end": 10, "source_records": 10, "target_records": 10, "compared": 10}
    return PartitionResult(**(fields | changes))


def test_lost_records_fail_completeness_and_name_topic_partition_and_count() -> None:
    check = records.records_complete([result(compared=7, findings=[Finding("lost", "items", 1, 3)])])
    assert check.ok is False
    assert check.observed == "3 lost in items-1"


def test_nothing_to_compare_is_unknown() -> None:
    empty = [result(source_records=0, target_records=0, compared=0)]
    for check in (
        records.records_complete(empty),
        records.records_unique(empty, Limits()),
        records.records_intact(empty),
        records.records_ordered(empty),
        records.records_foreign(empty),
        groups.groups_synced(Groups(), MIRROR),
        groups.groups_no_loss([]),
        groups.groups_reread_bounded([], Limits()),
    ):
        assert check.ok is None
        assert check.observed == NOTHING


def test_a_partition_of_which_nothing_could_be_compared_is_unknown() -> None:
    assert records.records_complete([result(), result(partition=2, compared=0)]).ok is None


def test_what_has_expired_on_the_target_only_is_named_for_each_topic() -> None:
    rows = [result(findings=[Finding("expired_at_target", "items", 1, 2)]), result(partition=2)]
    rows += [
        result(findings=[Finding("expired_at_target", "items", 3, 5), Finding("expired_at_source", "items", 3, 9)])
    ]
    (line,) = expired_warnings(rows)
    assert line.startswith("topic items: retention of the target has deleted 7 records that the source still holds.")
    assert expired_warnings([result()]) == []


def test_doubled_records_are_allowed_up_to_the_limit() -> None:
    rows = [result(findings=[Finding("doubled", "items", 1, 2)])]
    assert records.records_unique(rows, Limits(duplicates_max=2)).ok is True
    assert records.records_unique(rows, Limits(duplicates_max=1)).ok is False


@pytest.mark.parametrize(("changes", "ok"), [({}, False), ({"active": True}, True), ({"unclaimed": True}, None)])
def test_a_skip_fails_unless_the_group_works_on_the_target(changes: dict[str, Any], ok: bool | None) -> None:
    fields: dict[str, Any] = {"topic": "items", "partition": 0, "committed": 5, "synced": 7, "judged": True}
    one = GroupPosition(group="g", skipped=2, **fields, **changes)
    assert groups.groups_no_loss([one, GroupPosition(group="other", **fields)]).ok is ok


@pytest.mark.parametrize(
    ("changes", "ok"),
    [
        ({}, None),
        ({"synced": 6}, True),
        ({"committed": 3}, True),
        ({"unread": 0}, True),
        ({"skipped": 1}, False),
    ],
)
def test_an_offset_in_front_of_the_targets_log_start_is_unknown_while_the_group_has_something_to_read(
    changes: dict[str, Any], ok: bool | None
) -> None:
    """A client goes on there where its auto.offset.reset says. At the source its offset is in the log."""
    fields = {"group": "g", "topic": "items", "partition": 0, "committed": 5, "synced": 4, "unread": 9, "judged": True}
    one = GroupPosition(**{**fields, **changes})
    check = groups.groups_no_loss([one], "", {TopicPartition("items", 0): 4}, {TopicPartition("items", 0): 6})
    assert check.ok is ok
    assert ("in front of the target's log start: g on items-0: 4. Retention" in check.observed) is (ok is not True)


def test_a_group_at_work_on_the_target_reads_nothing_again_there() -> None:
    fields: dict[str, Any] = {"topic": "items", "partition": 0, "committed": 5, "synced": 1, "judged": True}
    rows = [GroupPosition(group="g", repeated=30, active=True, **fields), GroupPosition(group="other", **fields)]
    check = groups.groups_reread_bounded(rows, Limits(reread_records_max=0))
    assert (check.ok, check.evidence) == (True, [{"group": "other", "repeated": 0}])
    assert groups.groups_no_loss(rows).observed == "1 positions, 0 skipped, 1 more of groups active on the target"


def test_groups_that_all_work_on_the_target_prove_nothing() -> None:
    """They go on from where their members are: no position was judged, and unknown is never green."""
    fields: dict[str, Any] = {"topic": "items", "partition": 0, "committed": 5, "synced": 4, "unread": 9}
    rows = [GroupPosition(group=name, judged=True, active=True, **fields) for name in ("g", "h")]
    there = {TopicPartition("items", 0): 6}
    for check in (groups.groups_no_loss(rows, "", {}, there), groups.groups_reread_bounded(rows, Limits())):
        assert check.ok is None
        assert check.observed == (
            "nothing to compare: 2 positions, all of groups active on the target. Their members go on from where they "
            "are; stop them there to have them judged"
        )


def test_what_is_read_again_is_bounded_per_group() -> None:
    fields: dict[str, Any] = {"group": "g", "topic": "items", "committed": 5, "synced": 1, "judged": True}
    rows = [GroupPosition(**fields, partition=number, repeated=30) for number in (0, 1)]
    assert groups.groups_reread_bounded(rows, Limits(reread_records_max=59)).ok is False
    assert groups.groups_reread_bounded(rows, Limits(reread_records_max=60)).ok is True


def test_topics_and_partitions_are_judged() -> None:
    source = {"items": Topic("items", {0: 1, 1: 1}, False)}
    target = {"items": Topic("items", {0: 3}, False)}
    assert topics.topics_present(MIRROR, source, {}).ok is False
    assert topics.partitions_match(MIRROR, source, target).ok is False


def test_unknown_is_never_green_but_may_be_allowed() -> None:
    unknown = Check(name="records_complete", ok=None, expected="", observed="")
    failed = Check(name="records_intact", ok=False, expected="", observed="")
    assert verdict([unknown], Limits()) == ("unknown", 1)
    assert verdict([unknown], Limits(allow_unknown=("records_complete",))) == ("unknown", 0)
    assert verdict([unknown, failed], Limits(allow_unknown=("records_complete",))) == ("fail", 1)


def test_what_is_allowed_to_be_unknown_expires_once_there_is_something_to_judge() -> None:
    names = ("records_complete", "groups_no_loss", "checkpoints_consistent", "standby_read_only")
    limits = Limits(allow_unknown=names)
    unknown = [Check(name=name, ok=None, expected="", observed="not judged") for name in names]
    request = Request.model_construct(mirror=MIRROR, limits=limits)
    empty = RunContext(request=request, partitions=[replace(result(), source_records=0)])
    assert (expired(empty, unknown), verdict(unknown, limits, expired(empty, unknown))) == ([], ("unknown", 0))
    written = replace(empty, partitions=[replace(result(), source_records=1)])
    assert expired(written, unknown) == ["records_complete"]
    assert verdict(unknown, limits, expired(written, unknown)) == ("unknown", 1)


def test_the_report_shows_findings_and_hides_secrets(tmp_path: Path) -> None:
    finding = Finding("lost", "items", 1, 1, (Sample(4, None, "ab" * 32),))
    part = {**vars(result()), "position": 9, "findings": [finding.document()]}
    check = records.records_complete([result(findings=[finding])]).document()
    document = {"verdict": "fail", "mirror": "made-up-password", "seconds": 1.0, "started_at": "2026-01-01T00:00:00"}
    document |= {"finished_at": "2026-01-01T00:00:01", "records_compared": 9, "checks": [check], "groups": []}
    document |= {"cut": {"waited_seconds": 0, "behind": [], "position_known": True}, "partitions": [part]}
    document |= {"source": {"alias": "a"}, "target": {"alias": "b"}, "steps": [{"step": "compare", "seconds": 1.0}]}
    publish.write_report(tmp_path, redact_document(document, ["made-up-password"]))
    texts = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(texts) == {"report.json", "report.html", "junit.xml", "metrics.prom"}
    assert not any("made-up-password" in text for text in texts.values())
    assert "abababababababab" in texts["report.html"]
    assert "://" not in texts["report.html"]
    assert 'failures="1"' in texts["junit.xml"]


def test_a_client_configuration_is_reported_to_java() -> None:
    config = {"bootstrap.servers": "h:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}
    config |= {"sasl.username": "u", "sasl.password": 'p"\\', "ssl.ca.pem": "PEM"}
    found = java_properties(ClusterConfig(role="source", alias="a", client_config=config))
    assert found["sasl.jaas.config"].endswith('ScramLoginModule required username="u" password="p\\"\\\\";')
    assert found["ssl.truststore.type"] == "PEM"
    assert found["ssl.truststore.certificates"] == "PEM"
