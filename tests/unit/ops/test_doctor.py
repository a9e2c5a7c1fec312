"""What was seen becomes findings with their remedies, and nothing else does."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from contract.verification_request import Resource
from kafka import connectivity
from ops.cli import app
from ops.doctor import command, connect_probes, reference
from ops.doctor.cluster_probes import DuplicateScan
from ops.doctor.command import left_out
from ops.doctor.diagnosis import diagnose
from ops.doctor.known_issues import KNOWN_ISSUES, RENEWALS, operator_facts, remedy
from ops.doctor.log_probes import LargeRecordScan
from ops.doctor.observations import Certificate, Log, Observations, OtherMirror, ResourceReadiness
from ops.errors import OpsError

from ...support.mirror_symptoms import (
    BACK,
    BROKERS,
    CASES,
    CHECKPOINT,
    DENIED,
    EXPIRED,
    FIRST,
    MIRROR,
    NO_CLASS,
    NO_WAY,
    NOW,
    RESOURCE,
    SOURCE,
    UNKNOWN_FOR_A_MOMENT,
    WAITING,
    connector,
    failed,
    issues_found,
    seen,
    side,
)
from ...support.recovery_pair import observe, resource

SECRET = "very-secret-4711"


def test_a_mirror_that_is_well_has_no_trouble() -> None:
    assert diagnose(seen()) == []


@pytest.mark.parametrize("trouble", sorted(KNOWN_ISSUES))
def test_each_trouble_is_reported_with_its_place_its_evidence_and_its_remedy(trouble: str) -> None:
    one, where, what, remedy = CASES[trouble]
    found = {finding.trouble: finding for finding in diagnose(one)}
    assert found[trouble].where == where
    assert what in found[trouble].what
    assert remedy in found[trouble].remedy
    # A trace has its own trouble beside the failure that it explains.
    assert set(found) - {trouble} <= {"connectors-failed-under-ready"}


def test_every_trouble_has_a_case() -> None:
    assert set(CASES) == set(KNOWN_ISSUES)


def test_every_trouble_is_brought_about_in_the_sandbox_or_said_not_to_be() -> None:
    text = (Path(__file__).parents[2] / "integration" / "commands" / "test_doctor.py").read_text(encoding="utf-8")
    _, said, tests = text.split('"""', 2)
    brought_about = {name for name in KNOWN_ISSUES if f'"{name}"' in tests}
    not_here = {name for name in KNOWN_ISSUES if re.search(rf"(?<![\w-]){name}(?![\w-])", said)}
    assert brought_about.isdisjoint(not_here)
    assert brought_about | not_here == set(KNOWN_ISSUES)


def test_a_refused_task_is_reported_by_its_right_and_by_its_failure() -> None:
    found = {finding.trouble: finding for finding in diagnose(failed(DENIED))}
    assert set(found) == {"missing-acls", "connectors-failed-under-ready"}
    assert "Not authorized to access topics: [items]" in found["missing-acls"].what
    assert "user rt-inv-stg-user" in found["missing-acls"].remedy


def test_a_class_that_is_missing_explains_the_connector_that_is_missing() -> None:
    reported = ResourceReadiness(name=RESOURCE, ready=False, reason=NO_CLASS)
    gone = (connector(SOURCE, state="MISSING"), connector(CHECKPOINT, state="MISSING"))
    assert issues_found(seen(resource=reported, connectors=gone)) == ["plugin-not-found"]
    assert issues_found(seen(connectors=gone)) == ["connectors-failed-under-ready"] * 2


@pytest.mark.parametrize(
    "text",
    [
        "Failed to find any class that implements Connector and which name matches org.example.X, available are: ...",
        "java.lang.ClassNotFoundException: org.example.X",
    ],
)
def test_other_words_for_a_missing_class(text: str) -> None:
    assert "plugin-not-found" in issues_found(failed(text))


def test_what_a_log_remembers_of_a_topic_that_was_just_created_is_no_trouble() -> None:
    assert issues_found(seen(logs=(Log(name="log", text=UNKNOWN_FOR_A_MOMENT),))) == []
    trace = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this topic"
    assert "unknown-topic-or-partition" in issues_found(failed(trace))


def test_a_broker_that_restarts_is_out_of_a_workers_reach_for_a_moment_and_no_trouble() -> None:
    assert diagnose(seen(logs=(Log(name="log", text=NO_WAY * 9),))) == []


@pytest.mark.parametrize("change", [{"source": {"x:1"}}, {"target": {"x:1"}}, {"topics": ("other",)}])
def test_mirror_maker_1_beside_copies_the_same_topics_the_same_way(change: dict[str, Any]) -> None:
    assert issues_found(seen(others=(replace(FIRST, **change),))) == []
    assert issues_found(seen(others=(FIRST,), state="stopped")) == []


def test_a_mirror_that_is_paused_is_not_called_idle() -> None:
    idle = (connector(SOURCE, state="STOPPED"), connector(CHECKPOINT, state="STOPPED"))
    assert issues_found(seen(connectors=idle, state="stopped")) == []
    empty = seen(connectors=(connector(SOURCE), connector(CHECKPOINT)), state="stopped")
    assert issues_found(empty) == []
    assert issues_found(replace(empty, target=side("target", topics={}))) == []
    assert issues_found(replace(empty, others=(BACK,))) == [], (
        "while a failback copies the other way, this one is stopped"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"until_deletion": (WAITING, replace(WAITING, partition=0, waited_s=1.0, catch_up_s=60.0))},
        {"until_deletion": (replace(WAITING, waited_s=60.0),)},
        {"until_deletion": (replace(WAITING, held=True),)},
        {"until_deletion": (WAITING,), "state": "paused"},
        {"until_deletion": (WAITING,), "connectors": None},
    ],
    ids=["it catches up", "a position is committed late", "an open transaction", "paused", "Connect does not answer"],
)
def test_a_mirror_that_waits_for_a_reason_is_not_said_to_hang(change: dict[str, Any]) -> None:
    assert "copies-nothing" not in issues_found(seen(**change))


def test_groups_may_be_active_on_the_target_once_it_is_the_active_side() -> None:
    active = side("target", groups={"shop": "STABLE"})
    assert issues_found(seen(target=active)) == ["group-active-on-target"]
    assert issues_found(seen(target=active, active="target")) == []
    assert issues_found(seen(target=side("target", groups={"other": "STABLE"}))) == []
    excluded = MIRROR.model_copy(update={"groups_exclude": ("shop",), "groups": ("shop",)})
    assert issues_found(seen(target=active, mirror=excluded)) == []


def test_a_group_that_a_worker_could_not_sync_counts_while_it_is_active() -> None:
    text = (
        "WARN Unable to sync offsets for consumer group till. This is likely caused by consumers currently using this "
        "group in the target cluster."
    )
    log = (Log(name="log", text=text),)
    assert issues_found(seen(logs=log)) == []
    assert issues_found(seen(logs=log, target=side("target", groups={"till": "STABLE"}))) == ["group-active-on-target"]


@pytest.mark.parametrize(
    ("whose", "words"),
    [
        ("the client certificate CN=authority", "annotate secret CLUSTER-clients-ca-cert"),
        (
            "the trusted authority CN=the client certificate",
            "Renew the authority; with Strimzi's own: kubectl annotate",
        ),
        (BROKERS, "brokerCertChainAndKey"),
    ],
)
def test_a_certificate_is_renewed_by_whose_it_is_and_an_ended_one_is_an_error(whose: str, words: str) -> None:
    reported = []
    for days in (0, 3):
        one = Certificate(what=whose, ends=NOW + timedelta(days=days))
        (finding,) = diagnose(seen(target=side("target", certificates=(one,))))
        assert words in finding.remedy
        assert finding.remedy.count("Renew") == 1
        assert "hands what is new to the mirror" in finding.remedy
        reported.append(finding.severity)
    assert reported == ["error", "warning"]


def test_a_remedy_names_the_annotations_of_the_mirrors_own_api_group() -> None:
    resource = Resource(
        api_version="eventstreams.ibm.com/v1beta2", kind="KafkaMirrorMaker2", namespace="ns", name="mm2"
    )
    soon = Certificate(what="the trusted authority CN=x", ends=NOW)
    ended = seen(mirror=MIRROR.model_copy(update={"resource": resource}), target=side("target", certificates=(soon,)))
    (finding,) = diagnose(ended)
    assert "with Event Streams' own: kubectl annotate secret CLUSTER-cluster-ca-cert" in finding.remedy
    assert "eventstreams.ibm.com/force-renew=true" in finding.remedy
    (strimzis,) = diagnose(replace(ended, mirror=MIRROR))
    assert " strimzi.io/force-renew=true" in strimzis.remedy


@pytest.mark.parametrize("trouble", sorted(KNOWN_ISSUES))
def test_no_remedy_names_another_operators_labels_or_annotations(trouble: str) -> None:
    text = remedy(
        KNOWN_ISSUES[trouble], **operator_facts("eventstreams.ibm.com/v1beta2"), renewal=" ".join(RENEWALS.values())
    )
    assert "strimzi.io/" not in text


def test_every_kind_of_certificate_that_is_reported_has_its_renewal() -> None:
    text = Path(connectivity.__file__).read_text(encoding="utf-8")
    assert [whose for whose in RENEWALS if f'"{whose}' not in text] == []
    known = remedy(KNOWN_ISSUES["certificate-near-expiry"])
    assert all(
        renewal.format(operator="Strimzi", whose="Strimzi's", domain="strimzi.io") in known
        for renewal in RENEWALS.values()
    )


@pytest.mark.parametrize(("days", "words"), [(-1, "expired on 2026-11-21"), (3, "in 3 days"), (15, "")])
def test_certificates_are_reported_some_days_before_their_end(days: int, words: str) -> None:
    one = Certificate(what="the client certificate CN=me", ends=NOW + timedelta(days=days))
    found = diagnose(seen(target=side("target", certificates=(one,))))
    assert [finding.trouble for finding in found] == (["certificate-near-expiry"] if words else [])
    assert all(words in finding.what for finding in found)


def test_a_named_topic_that_is_hidden_for_lack_of_a_right_is_not_called_absent() -> None:
    hidden = side("source", topics={"items.inventory": 3}, lacks=(("Describe", "topic items"),))
    assert issues_found(seen(source=hidden)) == ["missing-acls"]
    assert issues_found(seen(source=side("source", topics={"items.inventory": 3}))) == ["unknown-topic-or-partition"]


def test_a_pattern_whose_topics_are_all_excluded_says_so() -> None:
    odd = MIRROR.model_copy(update={"topics": ("items", r".*\.replica")})
    (finding,) = diagnose(seen(mirror=odd, source=side("source", topics={"items": 3, "a.replica": 1})))
    assert "(only a.replica, which the mirror leaves out)" in finding.what


def test_groups_patterns_that_match_nothing_are_reported_when_there_are_groups() -> None:
    odd = MIRROR.model_copy(update={"groups": ("shop", "tills-.*")})
    assert [finding.what for finding in diagnose(seen(mirror=odd))] == [
        "groups matches no group of the source: tills-.*"
    ]
    assert issues_found(seen(mirror=odd, source=side("source", groups={}))) == []


@pytest.mark.parametrize(
    "other",
    [
        replace(BACK, keeps_names=False),
        replace(BACK, topics=("other",)),
        replace(BACK, source=frozenset({"elsewhere:9093"})),
        replace(BACK, source=BACK.target, target=BACK.source),
    ],
)
def test_other_mirrors_that_make_no_loop(other: OtherMirror) -> None:
    assert issues_found(seen(others=(other,))) == []


def test_loops_of_one_cluster_and_of_prefixes() -> None:
    assert issues_found(seen(target=side("target", cluster_id="source"))) == ["identity-loop"]
    prefixed = MIRROR.model_copy(update={"naming": "prefixed"})
    copies = {"es-src.items": 3, "es-src.items.inventory": 3}
    assert issues_found(seen(mirror=prefixed, target=side("target", topics=copies, cluster_id="source"))) == []
    looped = side("target", topics=copies | {"es-src.es-tgt.items": 3})
    assert issues_found(seen(mirror=prefixed, target=looped)) == ["identity-loop"]


def test_errors_come_first_and_no_secret_is_reported() -> None:
    trace = f"org.apache.kafka.common.config.ConfigException: password={SECRET}"
    one = replace(failed(trace), target=side("target", groups={"shop": "STABLE"}))
    found = diagnose(one, [SECRET])
    assert [finding.severity for finding in found] == ["error", "warning"]
    assert SECRET not in json.dumps([finding.as_json() for finding in found])
    assert "ConfigException" in found[0].what


def test_directions_are_read_in_both_shapes_of_the_resource() -> None:
    carrier = {"config": {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}}
    metadata = {"namespace": "ns", "name": "m"}
    new = {"target": {"alias": "b", "bootstrapServers": "b:1"},
           "mirrors": [{"source": {"alias": "a", "bootstrapServers": "a:1,a:2"}, "topicsPattern": "x, y",
                        "sourceConnector": carrier}]}  # fmt: skip
    old = {"connectCluster": "b", "clusters": [{"alias": "a", "bootstrapServers": "a:1,a:2"},
                                               {"alias": "b", "bootstrapServers": "b:1"}],
           "mirrors": [{"sourceCluster": "a", "targetCluster": "b", "topicsPattern": "x, y",
                        "sourceConnector": carrier}]}  # fmt: skip
    wanted = OtherMirror(
        name="KafkaMirrorMaker2 ns/m",
        source=frozenset({"a:1", "a:2"}),
        target=frozenset({"b:1"}),
        topics=("x", "y"),
        keeps_names=True,
    )
    for spec in (new, old):
        assert connect_probes.directions({"metadata": metadata, "spec": spec}) == [wanted]
        assert connect_probes.directions({"metadata": metadata, "spec": {**spec, "replicas": 0}}) == []
    carrier["state"] = "stopped"  # type: ignore[assignment]
    assert connect_probes.directions({"metadata": metadata, "spec": new}) == []


def test_a_side_is_known_by_the_addresses_of_the_mirrors_workers_too() -> None:
    ends = {"source": {"bootstrapServers": "outside:9094"}, "target": {"bootstrapServers": "inside.svc:9093"}}
    own = {"spec": {"target": ends["target"], "mirrors": [{"source": ends["source"]}]}}
    reached = connect_probes.addresses(own)
    assert reached == {"source": {"outside:9094"}, "target": {"inside.svc:9093"}}
    found = observe(mirror=resource(document=own))
    assert command._cluster(found, "source").addresses == {"es-src:9094", "outside:9094"}
    assert command._cluster(found, "target").addresses == {"es-tgt:9094", "inside.svc:9093"}


def test_what_a_limit_leaves_out_is_a_note() -> None:
    many = side("target", brokers=51, groups={f"shop-{number}": "EMPTY" for number in range(101)})
    mirror = MIRROR.model_copy(update={"groups": ("shop-.*",)})
    copies = DuplicateScan(duplicates=(), compared=300, partitions=2000)
    assert left_out(mirror, [side("source"), many], copies, LargeRecordScan((), 3, 3)) == (
        "target: 50 of 51 brokers tried at their advertised addresses",
        "target: rights on 100 of 101 groups",
        "copies: 300 of 2000 partitions",
    )
    assert left_out(mirror, [side("source"), side("target")], replace(copies, partitions=300), LargeRecordScan()) == ()
    assert left_out(mirror, [side("source"), side("target")], None, LargeRecordScan()) == ()
    earlier = replace(side("source"), reports_rights=False)
    (note,) = left_out(mirror, [earlier, side("target")], None, LargeRecordScan())
    assert note == f"source: what user {earlier.user} may do: brokers before Kafka 2.3 do not report it"


def test_the_page_lists_every_known_issue() -> None:
    reported = reference.PATH.read_text(encoding="utf-8")
    assert reported == reference.text(reported), (
        "docs/doctor.md is out of date: run `venv/bin/python -m ops.doctor.reference`"
    )
    assert all(f"| `{name}` (" in reported for name in KNOWN_ISSUES)


@pytest.mark.parametrize(
    ("one", "code", "healthy"),
    [(seen(), 0, True), (failed(EXPIRED), 1, False), (seen(unseen=("target: groups: no answer",)), 2, False)],
)
def test_the_exit_code_reports_found_from_not_looked_at(
    monkeypatch: pytest.MonkeyPatch, one: Observations, code: int, healthy: bool
) -> None:
    found = SimpleNamespace(
        request=SimpleNamespace(secrets=[SECRET]), active="source", state="running", connect_group=None
    )
    monkeypatch.setattr("ops.recovery.mirror_context.load", lambda *_: found)
    monkeypatch.setattr(command, "collect", lambda *_, **__: one)
    result = CliRunner().invoke(app, ["doctor", "--stack", "stg", "--json"])
    reported = json.loads(result.stdout)
    assert (result.exit_code, reported["healthy"]) == (code, healthy)
    assert reported["notLookedAt"] == list(one.unseen)
    table = CliRunner().invoke(app, ["doctor", "--stack", "stg"], env={"COLUMNS": "200"})
    assert table.exit_code == code
    assert "not inspected: target: groups" in table.stdout or code != 2


def test_the_stack_is_that_of_the_project_in_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("ops.recovery.mirror_context.load", lambda *given: asked.extend(given) or observe().pair)
    monkeypatch.setattr("ops.doctor.pulumi_state.observe", lambda *given: asked.append(given[-1]))
    monkeypatch.setattr(command, "collect", lambda *_, pulumi_state, **__: pulumi_state() or seen())
    assert CliRunner().invoke(app, ["doctor", "--stack", "stg", "-C", str(tmp_path)]).exit_code == 0
    assert (asked[0], asked[-2:]) == ("stg", [tmp_path, tmp_path])


def test_no_secret_and_no_login_of_an_address_stands_beside_the_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = f"http://me:{SECRET[::-1]}@connect:8083"
    reported = seen(
        mirror=MIRROR.model_copy(update={"connect_url": connect}),
        connectors=(connector(SOURCE, "FAILED", trace="out of luck"),),
        unseen=(f"target: groups: {SECRET} is wrong",),
        notes=(f"connect: Connect at {connect} does not answer",),
    )
    found = SimpleNamespace(
        request=SimpleNamespace(secrets=[SECRET]), active="source", state="running", connect_group=None
    )
    monkeypatch.setattr("ops.recovery.mirror_context.load", lambda *_: found)
    monkeypatch.setattr(command, "collect", lambda *_, **__: reported)
    for arguments in (["--json"], []):
        result = CliRunner().invoke(app, ["doctor", "--stack", "stg", *arguments], env={"COLUMNS": "200"})
        assert SECRET not in result.stdout
        assert SECRET[::-1] not in result.stdout
        assert "[hidden] is wrong" in result.stdout
        assert "Connect at http://[hidden]@connect:8083 does not answer" in result.stdout


def test_a_log_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(OpsError, match="--worker-log must be a readable file"):
        connect_probes.from_files([tmp_path / "gone.log"])


def test_connect_that_answers_something_else_is_no_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(*_: Any, **__: Any) -> Any:
        return SimpleNamespace(raise_for_status=lambda: None, json=lambda: ["not Connect"], status_code=200)

    monkeypatch.setattr("httpx.get", answer)
    with pytest.raises(OpsError, match="Connect at http://x does not answer"):
        connect_probes.task_partitions("http://x", SOURCE)
