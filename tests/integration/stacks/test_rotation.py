"""What changes at the source reaches the target on the next `up`: a user's password, the cluster's authority."""

from typing import Any

import pytest

from tests.support.waiting import wait_until

from ...support import records
from ...support.lines_of_business import SOURCE, TARGET, Lines
from ...support.running_sandbox import Sandbox

RENEWED_S = 90


def secret(lines: Lines, stack: str, name: str) -> dict[str, str]:
    return lines.project.sandbox.secret(lines.project.namespace(stack), name)


def authority(lines: Lines, stack: str) -> str:
    """The source's authority: as its cluster publishes it, or as it was copied."""
    return secret(lines, stack, f"{lines.project.outputs(SOURCE)['cluster']['name']}-cluster-ca-cert")["ca.crt"]


def at_work(lines: Lines, name: str) -> dict[str, Any]:
    """What a mirror that is left alone keeps: its resource, its process, its connectors, their uninterrupted tasks."""
    project = lines.project
    return {
        "identity": project.identity(TARGET, name),
        "process": project.pid(TARGET, name),
        "connectors": sorted(project.mirror(TARGET, name)["status"]["connectors"], key=lambda entry: entry["name"]),
        "restarts": project.log(TARGET, name).count("to restart connector"),
    }


def test_a_new_password_reaches_the_mirror_that_uses_it_and_no_other(lines: Lines) -> None:
    project, (name, other) = lines.project, lines.names[:2]
    user = lines.line(name).user(SOURCE)
    lines.carry(name, "before-the-rotation")
    old_client, old = project.client(SOURCE, user), secret(lines, TARGET, user)["password"]
    before, restarts = at_work(lines, other), at_work(lines, name)["restarts"]
    identity = project.identity(TARGET, name)
    settings = project.entry(SOURCE, "users", user)
    settings["passwordGeneration"] = settings.get("passwordGeneration", 1) + 1
    project.up(SOURCE)
    new = project.outputs(SOURCE)["userPasswords"][user]
    assert new != old
    assert secret(lines, TARGET, user)["password"] == old, "only an `up` of the target brings it there"
    project.up(TARGET)
    assert secret(lines, TARGET, user)["password"] == new
    wait_until("the old password is refused", lambda: not records.admits(old_client), 30)
    assert records.admits(project.client(SOURCE, user))
    lines.carry(name, "after-the-rotation")
    assert at_work(lines, name)["restarts"] > restarts
    assert project.identity(TARGET, name) == identity
    assert at_work(lines, other) == before
    lines.carry(other, "not-rotated")


@pytest.mark.nightly
def test_a_renewed_authority_reaches_the_target_and_records_go_on(lines: Lines, sandbox: Sandbox) -> None:
    project, name = lines.project, lines.names[0]
    old = authority(lines, SOURCE)
    assert authority(lines, TARGET) == old
    published = f"{project.outputs(SOURCE)['cluster']['name']}-cluster-ca-cert"
    sandbox.kubectl(
        "annotate", "secret", "-n", project.namespace(SOURCE), published, "strimzi.io/force-renew=true", "--overwrite"
    )
    wait_until("the authority is renewed", lambda: authority(lines, SOURCE) != old, RENEWED_S)
    wait_until("the cluster publishes it", lambda: authority(lines, SOURCE) in certificates(lines), RENEWED_S)
    project.up(SOURCE)
    project.up(TARGET)
    assert authority(lines, TARGET) == authority(lines, SOURCE) != old
    for each in lines.names:
        lines.carry(each, f"after-the-renewal-of-{name}")


def certificates(lines: Lines) -> list[str]:
    """Authorities that the source cluster's status tells."""
    project = lines.project
    name = project.outputs(SOURCE)["cluster"]["name"]
    listeners = project.sandbox.get("kafka", "-n", project.namespace(SOURCE), name)["status"]["listeners"]
    return [certificate for listener in listeners for certificate in listener.get("certificates", [])]
