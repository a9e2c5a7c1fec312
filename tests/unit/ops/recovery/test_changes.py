"""A recovery carries out its own changes and no others: what a preview shows besides them is refused by name."""

from pathlib import Path
from typing import Any

import pytest

from ops.errors import OpsError
from ops.policy import judging
from ops.pulumi import events
from ops.pulumi.stack import EngineRun, PulumiStack
from ops.recovery import changes
from tests.support import event_logs as recorded

MIRRORS, SECRETS = f"{recorded.KAFKA_TYPES}KafkaMirrorMaker2", "kubernetes:core/v1:Secret"
STACK_FILE = "config: {}\n"
TOPIC = recorded.step("update", recorded.topic(), name="items", diffs=["spec.config"])
VERIFICATION = recorded.step(
    "update", f"{recorded.PROJECT}rt-inventory:verification:Verification$pulumi-python:dynamic:Resource::mm2"
)
CLIENTS = recorded.step("update", f"{recorded.PROJECT}rt-inventory:kafka:Clients${SECRETS}::mm2-clients")


FOLLOWER = recorded.step(
    "update",
    f"{recorded.PROJECT}rt-inventory:kafka:Follower$kubernetes:apps/v1:Deployment::mm2-follower",
    name="mm2-follower",
    diffs=["spec.replicas"],
)
COPY = recorded.step("create", f"{recorded.PROJECT}rt-inventory:kafka:BreakGlass${SECRETS}::mm2-break-glass")


def mirror(*paths: str, name: str = "mm2", operation: str = "update") -> recorded.Event:
    of = f"{recorded.PROJECT}rt-inventory:kafka:MirrorMaker2${MIRRORS}::{name}"
    return recorded.step(operation, of, name=name, diffs=list(paths))


def user(*paths: str) -> recorded.Event:
    of = f"{recorded.PROJECT}rt-inventory:kafka:KafkaUsers${recorded.KAFKA_TYPES}KafkaUser::app"
    return recorded.step("update", of, name="app", diffs=list(paths))


RIGHTS = user("spec.authorization.acls[1]")
STATE, TOPICS = mirror("spec.mirrors[0].sourceConnector.state"), mirror("spec.mirrors[0].topicsPattern")
BACK = mirror(name="mm2-failback", operation="create")


class Stack:
    """A stack whose preview writes a salt into the file that it gets, as Pulumi does, and shows what it is told to."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pulumi = PulumiStack(folder=folder, name="stg", environment={})
        self.pulumi.file.write_text(STACK_FILE, encoding="utf-8")
        self.log = ""
        monkeypatch.setattr(judging, "preview_with_pack", self.preview)

    def preview(self, *_: Any, config_file: Path, **__: Any) -> EngineRun:
        assert config_file.read_text(encoding="utf-8") == STACK_FILE
        config_file.write_text(f"{STACK_FILE}encryptionsalt: v1\n", encoding="utf-8")
        return EngineRun(log=events.read_event_log(self.log.splitlines()), exit_code=0, stdout="", stderr="")

    def warnings(self, *happened: recorded.Event, **options: Any) -> list[str]:
        self.log = recorded.log(*happened)
        return changes.require_none(self.pulumi, "mm2", **{"resumes": False, **options})


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    return Stack(tmp_path, monkeypatch)


def test_a_preview_leaves_the_stack_file_as_it_is(stack: Stack) -> None:
    assert stack.warnings() == []
    assert stack.pulumi.file.read_text(encoding="utf-8") == STACK_FILE


@pytest.mark.parametrize("one", [VERIFICATION, COPY], ids=["verification", "break-glass copy"])
def test_what_any_update_may_bring_is_no_change(stack: Stack, one: recorded.Event) -> None:
    assert stack.warnings() == stack.warnings(one) == []


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
        ((FOLLOWER,), {}, "1 change: update Deployment mm2-follower: spec.replicas"),
        ((BACK,), {"resumes": True}, "1 change: create KafkaMirrorMaker2 mm2-failback"),
        ((RIGHTS,), {}, "1 change: update KafkaUser app: spec.authorization"),
        ((user("spec.authentication"),), {"resumes": True}, "1 change: update KafkaUser app: spec.authentication"),
        ((user(),), {"resumes": True}, "1 change: update KafkaUser app"),
        ((mirror(),), {"resumes": True}, "1 change: update KafkaMirrorMaker2 mm2"),
    ],
    ids=[
        "topic",
        "on resume",
        "state",
        "topics of the mirror",
        "removal",
        "another mirror",
        "a follower",
        "a failback",
        "rights",
        "a user's login",
        "a user, and nobody knows how",
        "the mirror, and nobody knows how",
    ],
)
def test_other_changes_are_refused_by_name(
    stack: Stack,
    happened: tuple[recorded.Event, ...],
    options: dict[str, Any],
    expected: str,
) -> None:
    with pytest.raises(OpsError, match=r"the checkout must have no other undeployed changes") as caught:
        stack.warnings(*happened, **options)
    assert expected in str(caught.value)
    assert "Deploy them first, pulumi up -s stg" in str(caught.value)


@pytest.mark.parametrize(
    ("happened", "options"),
    [
        ((STATE, CLIENTS, RIGHTS, VERIFICATION, FOLLOWER), {}),
        ((STATE, TOPICS, BACK, CLIENTS), {"fails_back": True}),
    ],
    ids=["failover", "failback"],
)
def test_what_an_interrupted_recovery_has_begun_is_its_own(
    stack: Stack, happened: tuple[recorded.Event, ...], options: dict[str, Any]
) -> None:
    assert stack.warnings(*happened, resumes=True, **options) == []


def test_what_the_policy_pack_refuses_of_what_is_deployed_is_a_warning(stack: Stack) -> None:
    found = recorded.violation("topic-replication", "topic items: replicas must be >= 3 (got 1).")
    (warning,) = stack.warnings(found)
    assert warning.startswith("the policy pack refuses what is deployed already, with 1 mandatory finding, which ")
    assert stack.warnings(found, STATE, resumes=True) == [warning]


def test_a_preview_that_cannot_be_made_is_an_error(stack: Stack) -> None:
    with pytest.raises(OpsError, match="preview must succeed"):
        stack.warnings(recorded.diagnostic("no brokers"))
