"""A recovery carries out its own changes and no others: what a preview shows besides them is refused by name."""

from pathlib import Path
from typing import Any

import pytest

from ops.errors import OpsError
from ops.policy import configuration
from ops.pulumi import events
from ops.pulumi.stack import EngineRun, PulumiStack
from ops.recovery import undeployed_changes
from tests.support import event_logs as recorded

MIRRORS, SECRETS = f"{recorded.KAFKA_TYPES}KafkaMirrorMaker2", "kubernetes:core/v1:Secret"
STACK = PulumiStack(folder=Path("nowhere"), name="stg", environment={})
TOPIC = recorded.step("update", recorded.topic(), name="items", diffs=["spec.config"])
VERIFICATION = recorded.step(
    "update", f"{recorded.PROJECT}rt-inventory:verification:Verification$pulumi-python:dynamic:Resource::mm2"
)
CLIENTS = recorded.step("update", f"{recorded.PROJECT}rt-inventory:kafka:Clients${SECRETS}::mm2-clients")


def mirror(*paths: str, name: str = "mm2", operation: str = "update") -> recorded.Event:
    of = f"{recorded.PROJECT}rt-inventory:kafka:MirrorMaker2${MIRRORS}::{name}"
    return recorded.step(operation, of, name=name, diffs=list(paths))


STATE, TOPICS = mirror("spec.mirrors[0].sourceConnector.state"), mirror("spec.mirrors[0].topicsPattern")
BACK = mirror(name="mm2-failback", operation="create")


def warnings(monkeypatch: pytest.MonkeyPatch, *happened: recorded.Event, **options: Any) -> list[str]:
    text = recorded.log(*happened)
    run = EngineRun(log=events.read_event_log(text.splitlines()), exit_code=0, stdout="", stderr="")
    monkeypatch.setattr(configuration, "preview_with_pack", lambda *_, **__: run)
    return undeployed_changes.require_none(STACK, "mm2", **{"resumes": False, **options})


def test_a_verification_that_runs_again_is_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    assert warnings(monkeypatch) == warnings(monkeypatch, VERIFICATION) == []


@pytest.mark.parametrize(
    ("happened", "options", "expected"),
    [
        ((TOPIC, VERIFICATION), {}, "1 change: update KafkaTopic items: spec.config"),
        ((TOPIC,), {"resumes": True}, "1 change: update KafkaTopic items: spec.config"),
        ((STATE,), {}, "1 change: update KafkaMirrorMaker2 mm2: spec.mirrors[0].sourceConnector.state"),
        ((STATE, TOPICS), {"resumes": True}, "update KafkaMirrorMaker2 mm2: spec.mirrors"),
        (
            (mirror(operation="delete"),),
            {"resumes": True, "fails_back": True},
            "1 change: delete KafkaMirrorMaker2 mm2",
        ),
        ((mirror("spec.mirrors[0].state", name="other"),), {"resumes": True}, "update KafkaMirrorMaker2 other"),
        ((BACK,), {"resumes": True}, "1 change: create KafkaMirrorMaker2 mm2-failback"),
    ],
    ids=["topic", "on resume", "state", "topics of the mirror", "removal", "another mirror", "a failback"],
)
@pytest.mark.parametrize("lenient", [False, True])
def test_other_changes_are_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
    happened: tuple[recorded.Event, ...],
    options: dict[str, Any],
    expected: str,
    lenient: bool,
) -> None:
    with pytest.raises(OpsError, match=r"the checkout must have no other undeployed changes") as caught:
        warnings(monkeypatch, *happened, lenient=lenient, **options)
    assert expected in str(caught.value)
    assert "Deploy them first, pulumi up -s stg" in str(caught.value)


@pytest.mark.parametrize(
    ("happened", "options"),
    [
        ((STATE, CLIENTS, VERIFICATION), {}),
        ((STATE, TOPICS, BACK, CLIENTS), {"fails_back": True}),
    ],
    ids=["failover", "failback"],
)
def test_what_an_interrupted_recovery_has_begun_is_its_own(
    monkeypatch: pytest.MonkeyPatch, happened: tuple[recorded.Event, ...], options: dict[str, Any]
) -> None:
    assert warnings(monkeypatch, *happened, resumes=True, **options) == []


def test_mandatory_findings_refuse_where_there_is_time_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    found = recorded.violation("topic-replication", "topic items: replicas must be >= 3 (got 1).")
    with pytest.raises(OpsError, match=r"must find nothing mandatory \(got topic items: replicas must be >= 3"):
        warnings(monkeypatch, found)
    assert warnings(monkeypatch, found, lenient=True) == [
        "the policy pack finds: topic items: replicas must be >= 3 (got 1)."
    ]


def test_a_preview_that_cannot_be_made_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OpsError, match="preview must succeed"):
        warnings(monkeypatch, recorded.diagnostic("no brokers"), lenient=True)
