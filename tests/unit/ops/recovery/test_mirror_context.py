"""A mirror as the stacks' outputs tell it, which stack declares it, and that no secret shows."""

from pathlib import Path

import pytest

from ops.errors import OpsError
from ops.recovery import mirror_context
from tests.support.recovery_pair import SECRETS, known, outputs, request

MIRROR = "config:\n  rt-inventory:mirrors:\n    - name: mm2\n      source:\n        stack: {}\n"


def test_the_outputs_of_a_stack_describe_the_whole_pair() -> None:
    found = mirror_context.of_outputs("stg", outputs(), None, {})
    assert (found.stack, found.mirror, found.source_stack) == ("stg", "mm2", "dev")
    assert (found.active, found.state, found.keeps_names) == ("source", "running", True)
    assert (found.name_of("source"), found.name_of("target")) == ("rt-inventory-dev", "rt-inventory-stg")
    assert (found.resource.namespace, found.resource.name) == ("rt-inventory-stg", "mm2")
    assert found.proof is not None
    assert found.proof["verdict"] == "pass"
    assert found.request.source.client_config["sasl.password"] == SECRETS["SOURCE_PASSWORD"]


def test_outputs_of_a_version_that_reported_less_mean_a_running_mirror_with_the_source_active() -> None:
    reported = outputs()
    del reported["mirrors"], reported["verifications"]
    found = mirror_context.of_outputs("stg", reported, "mm2", {})
    assert (found.active, found.state, found.source_stack, found.proof) == ("source", "running", None, None)
    assert found.name_of("target") == "target"


def test_a_mirror_that_a_failback_makes_is_found_by_its_name_only() -> None:
    reported = outputs()
    reported["verificationRequests"]["mm2-failback"] = request("mm2-failback")
    reported["verificationEnvironment"]["mm2-failback"] = SECRETS
    assert mirror_context.of_outputs("stg", reported, None, {}).mirror == "mm2"
    assert mirror_context.of_outputs("stg", reported, "mm2-failback", {}).mirror == "mm2-failback"


def test_a_mirror_whose_name_only_ends_like_a_failback_is_a_mirror_of_its_own() -> None:
    reported = outputs()
    reported["verificationRequests"] = {"other-failback": request("other-failback")}
    reported["verificationEnvironment"] = {"other-failback": SECRETS}
    assert mirror_context.of_outputs("stg", reported, None, {}).mirror == "other-failback"


def test_of_several_mirrors_one_must_be_named() -> None:
    reported = outputs()
    reported["verificationRequests"]["mm3"] = request("mm3")
    with pytest.raises(OpsError, match=r"--mirror must be given \(allowed mm2, mm3\)"):
        mirror_context.of_outputs("stg", reported, None, {})


def test_a_secret_that_the_outputs_lack_is_reported_by_its_name() -> None:
    reported = outputs()
    reported["verificationEnvironment"]["mm2"].pop("TARGET_PASSWORD")
    with pytest.raises(OpsError, match=r"stack stg: its request for mirror mm2 cannot be read.*TARGET_PASSWORD"):
        mirror_context.of_outputs("stg", reported, None, {})


def test_a_stack_without_a_resource_gets_advice() -> None:
    with pytest.raises(OpsError, match=r"mirror mm2 must name its resource. Run `pulumi up` once"):
        _ = known({"resource": None}).resource


def test_no_secret_shows() -> None:
    shown = repr(known())
    assert "rt-inventory-stg" in shown
    assert not [secret for secret in SECRETS.values() if secret in shown]


def test_a_mirror_that_copies_nothing_yet_is_asked_about_the_topics_of_the_other() -> None:
    back = known({"topics": ["-"], "topics_exclude": [], "groups": ["mine"]})
    like = known({"topics": ["items"], "topics_exclude": ["items.old"], "groups": ["theirs"]})
    found = mirror_context.carrying(back, like, {})
    assert (found.request.mirror.topics, found.request.mirror.topics_exclude) == (("items",), ("items.old",))
    assert found.plan.request["mirror"]["topics"] == ["items"]
    assert found.request.mirror.groups == ("mine",)
    assert back.request.mirror.topics == ("-",)


def test_one_stack_file_declares_the_mirror_of_a_source(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {}\n")
    (tmp_path / "Pulumi.stg.yaml").write_text(MIRROR.format("dev"))
    (tmp_path / "Pulumi.other.yaml").write_text(MIRROR.format("prod"))
    assert mirror_context.declaring("dev", tmp_path) == "stg"


@pytest.mark.parametrize(
    ("stacks", "expected"), [([], "got none"), (["stg", "dr"], "got dr, stg")], ids=["none", "several"]
)
def test_a_source_of_no_mirror_or_of_several_is_refused(tmp_path: Path, stacks: list[str], expected: str) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text("config:\n  rt-inventory:mirrors: nonsense\n")
    for stack in stacks:
        (tmp_path / f"Pulumi.{stack}.yaml").write_text(MIRROR.format("dev"))
    with pytest.raises(OpsError, match=rf"stack dev: must be the source .*\({expected}\).* --stack"):
        mirror_context.declaring("dev", tmp_path)
