"""The steps of the pipelines on real stacks, by the make targets that the workflows run."""

import base64
import json
import os
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from tests.issuer import issuer
from tests.makefile import make

from .clients import ops
from .harness import Pair, Sandbox
from .projects import told

TOPIC = "items"
JOB = "pipeline-job"


def step(sandbox: Sandbox, folder: Path, *words: str, expected: int = 0) -> CompletedProcess[str]:
    """Run one step with the sandbox's engine; make itself says 2 for whatever fails."""
    result = make(*words, f"DOCUMENTS={folder}", environment=sandbox.environment())
    assert result.returncode == expected, f"{told(result)}\n\n{sandbox.tails()}"
    return result


def document(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return found


def test_a_merge_that_changes_nothing_goes_through_every_step(sandbox: Sandbox, pair: Pair, tmp_path: Path) -> None:
    ops(sandbox, "produce", "--stack", "dev", "--topic", TOPIC, "--count", "50")
    ops(sandbox, "consume", "--stack", "dev", "--topic", TOPIC, "--group", "test-pipeline", "--until-end")
    step(sandbox, tmp_path, "preview", "STACK=stg")
    step(sandbox, tmp_path, "up", "STACK=stg")
    step(sandbox, tmp_path, "verify", "STACK=stg")
    assert document(tmp_path, "preview-stg")["changes"] == []
    verified = document(tmp_path, "verification-stg")
    assert [(each["mirror"], each["verdict"]) for each in verified["mirrors"]] == [("mm2", "pass")]
    assert Path(verified["mirrors"][0]["report"]).is_file()
    summary = step(sandbox, tmp_path, "summary").stdout
    assert "| stg | none | passed" in summary
    assert "| stg | mm2 | pass |" in summary
    for secret in (*pair.dev["userPasswords"].values(), *pair.stg["userPasswords"].values()):
        assert all(secret not in file.read_text(encoding="utf-8") for file in tmp_path.glob("*.*"))


def test_drift_is_found_named_and_gone_when_it_is_undone(sandbox: Sandbox, pair: Pair, tmp_path: Path) -> None:
    namespace = pair.dev["cluster"]["namespace"]

    def partitions(count: int) -> None:
        patch = json.dumps({"spec": {"partitions": count}})
        sandbox.kubectl("patch", f"kafkatopic/{TOPIC}", "-n", namespace, "--type=merge", "-p", patch)

    step(sandbox, tmp_path, "drift", "STACK=dev")
    assert document(tmp_path, "drift-dev") == {"stack": "dev", "drifted": False, "changes": []}
    step(sandbox, tmp_path, "drift", "STACK=stg")
    declared = sandbox.get("kafkatopic", "-n", namespace, TOPIC)["spec"]["partitions"]
    partitions(declared - 1)  # which the operator refuses, so that nothing comes of it
    try:
        result = step(sandbox, tmp_path, "drift", "STACK=dev", expected=2)
        assert f"update KafkaTopic {TOPIC}" in result.stdout
        (change,) = document(tmp_path, "drift-dev")["changes"]
        assert (change["operation"], change["name"]) == ("update", TOPIC)
        assert "spec.partitions" in change["paths"]
        assert "**1 drifted**" in step(sandbox, tmp_path, "summary").stdout
    finally:
        partitions(declared)
    step(sandbox, tmp_path, "drift", "STACK=dev")


def test_a_stack_that_declares_no_mirror_has_nothing_to_verify(sandbox: Sandbox, pair: Pair, tmp_path: Path) -> None:
    result = step(sandbox, tmp_path, "verify", "STACK=dev")
    assert "nothing to verify: stack dev declares no mirror" in result.stdout
    assert "nothing to verify: stack dev declares no mirror" in step(sandbox, tmp_path, "summary").stdout


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("preview", "stack nowhere: its file must exist"),
        ("drift", "stack nowhere: its file must exist"),
        ("verify", "stack elsewhere: must exist in the backend"),
    ],
)
def test_what_could_not_be_done_is_told_in_the_summary_too(
    sandbox: Sandbox, pair: Pair, tmp_path: Path, target: str, why: str
) -> None:
    result = step(sandbox, tmp_path, target, f"STACK={why.split()[1].rstrip(':')}", expected=2)
    assert why in result.stderr
    assert why.partition(": ")[2] in step(sandbox, tmp_path, "summary").stdout


def test_the_kubeconfig_holds_no_credential_and_lets_the_job_in(sandbox: Sandbox, tmp_path: Path) -> None:
    admin = yaml.safe_load(sandbox.kubeconfig.read_text(encoding="utf-8"))["clusters"][0]["cluster"]
    sandbox.kubectl("create", "serviceaccount", JOB, "-n", "default")
    sandbox.kubectl("create", "clusterrolebinding", JOB, "--clusterrole=view", f"--serviceaccount=default:{JOB}")
    token = sandbox.kubectl("create", "token", JOB, "-n", "default").stdout.strip()
    authority = sandbox.kubectl(
        "config", "view", "--raw", "--flatten", "-o", "jsonpath={.clusters[0].cluster.certificate-authority-data}"
    ).stdout
    with issuer(token) as given:
        environment = {
            **{name: value for name, value in os.environ.items() if name != "KUBECONFIG"},
            **given.environment,
            "RUNNER_TEMP": str(tmp_path),
            "GITHUB_ENV": str(tmp_path / "env"),
            "KUBE_SERVER": admin["server"],
            "KUBE_CA": base64.b64decode(authority).decode(),
            "KUBE_AUDIENCE": "https://the.cluster",
        }
        result = make("kubeconfig", environment=environment)
        assert result.returncode == 0, told(result)
        file = tmp_path / "kubeconfig"
        assert (tmp_path / "env").read_text(encoding="utf-8") == f"KUBECONFIG={file}\n"
        assert token not in file.read_text(encoding="utf-8") + told(result)
        os.environ.update(given.environment)
        try:
            who = sandbox.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}", kubeconfig=file)
        finally:
            for name in given.environment:
                del os.environ[name]
        assert who.stdout == f"system:serviceaccount:default:{JOB}"
        assert given.audiences == ["https://the.cluster"]
    sandbox.kubectl("delete", f"clusterrolebinding/{JOB}")
    sandbox.kubectl("delete", f"serviceaccount/{JOB}", "-n", "default")
