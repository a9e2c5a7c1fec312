"""The steps of the pipelines on real stacks, by the make targets that the workflows run."""

import base64
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from tests.support.make_targets import ROOT, make
from tests.support.token_issuer import issuer
from tests.support.waiting import at_most

from ...support.ops_commands import ops
from ...support.projects import output_of
from ...support.running_sandbox import Pair, Sandbox

TOPIC = "items"
JOB, AUDIENCE = "pipeline-job", "https://the.cluster"
# Lets an update take back a field that somebody else has set.
FORCE = {"PULUMI_K8S_ENABLE_PATCH_FORCE": "true"}
READING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}


def step(
    sandbox: Sandbox, folder: Path, *words: str, expected: int = 0, more: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    """Run one step with the sandbox's engine; make itself says 2 for whatever fails."""
    environment = {**sandbox.environment(), **(more or {})}
    result = make(*words, f"DOCUMENTS={folder}", environment=environment)
    assert result.returncode == expected, f"{output_of(result)}\n\n{sandbox.tails()}"
    return result


@pytest.fixture(scope="module")
def reader(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a job whose identity may read everything in the cluster and change nothing."""
    folder = tmp_path_factory.mktemp("job")
    sandbox.kubectl("create", "serviceaccount", JOB, "-n", "default")
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": JOB}}
    sandbox.kubectl("create", "-f", "-", stdin=json.dumps({**role, "rules": [READING]}))
    sandbox.kubectl("create", "clusterrolebinding", JOB, f"--clusterrole={JOB}", f"--serviceaccount=default:{JOB}")
    token = sandbox.kubectl("create", "token", JOB, "-n", "default").stdout.strip()
    cluster = yaml.safe_load(sandbox.kubectl("config", "view", "--raw", "--flatten").stdout)["clusters"][0]["cluster"]
    with issuer(token) as given:
        environment = {
            **os.environ,
            **given.environment,
            "RUNNER_TEMP": str(folder),
            "GITHUB_ENV": str(folder / "env"),
            "KUBE_SERVER": cluster["server"],
            "KUBE_CA": base64.b64decode(cluster["certificate-authority-data"]).decode(),
            "KUBE_AUDIENCE": AUDIENCE,
        }
        result = make("kubeconfig", environment=environment)
        assert result.returncode == 0, output_of(result)
        file = folder / "kubeconfig"
        assert (folder / "env").read_text(encoding="utf-8") == f"KUBECONFIG={file}\n"
        assert token not in file.read_text(encoding="utf-8") + output_of(result)
        yield {**given.environment, "KUBECONFIG": str(file)}
        assert set(given.audiences) == {AUDIENCE}
    sandbox.kubectl("delete", f"clusterrolebinding/{JOB}", f"clusterrole/{JOB}")
    sandbox.kubectl("delete", f"serviceaccount/{JOB}", "-n", "default")


def seen_by(sandbox: Sandbox, identity: Mapping[str, str], *command: str) -> str:
    """What the engine says to an identity of its own; in a sandbox's shell it always uses the admin's."""
    own = {**sandbox.environment(), **identity, "PATH": os.pathsep.join([str(sandbox.tools.bin), "/usr/bin", "/bin"])}
    options = ["--non-interactive", "--color", "never", "--config-file", str(sandbox.pulumi.stack_file("dev"))]
    result = subprocess.run(
        [str(sandbox.tools.pulumi), *command, "--stack", "dev", *options],
        cwd=ROOT,
        env=own,
        capture_output=True,
        text=True,
        timeout=at_most(200),
        check=False,
    )
    assert result.returncode == 0, output_of(result)
    return result.stdout


def document(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return found


def test_every_step_of_a_merge_and_of_a_drill_works_where_nothing_is_wrong(
    sandbox: Sandbox, pair: Pair, tmp_path: Path
) -> None:
    ops(sandbox, "produce", "--stack", "dev", "--topic", TOPIC, "--count", "50")
    ops(sandbox, "consume", "--stack", "dev", "--topic", TOPIC, "--group", "test-pipeline", "--until-end")
    # The `up` comes first: what was proven over an empty pair is verified again by the first one after records.
    step(sandbox, tmp_path, "up", "STACK=stg")
    step(sandbox, tmp_path, "preview", "STACK=stg")
    step(sandbox, tmp_path, "verify", "STACK=stg")
    assert document(tmp_path, "preview-stg")["changes"] == []
    step(sandbox, tmp_path, "drill")
    assert document(tmp_path, "drill")["cost"]["possible"]
    verified = document(tmp_path, "verification-stg")
    assert [(each["mirror"], each["verdict"]) for each in verified["mirrors"]] == [("mm2", "pass")]
    assert Path(verified["mirrors"][0]["report"]).is_file()
    summary = step(sandbox, tmp_path, "summary").stdout
    assert "| stg | none | passed" in summary
    assert "| stg | mm2 | pass |" in summary
    assert "- **cost**:\n  - **path**: planned" in summary
    for secret in (*pair.dev["userPasswords"].values(), *pair.stg["userPasswords"].values()):
        assert all(secret not in file.read_text(encoding="utf-8") for file in tmp_path.glob("*.*"))


def test_drift_is_found_named_and_gone_when_it_is_undone_and_an_entry_added_to_a_list_is_none(
    sandbox: Sandbox, pair: Pair, tmp_path: Path, reader: dict[str, str]
) -> None:
    namespace = pair.dev["cluster"]["namespace"]

    def partitions(count: int) -> None:
        patch = json.dumps({"spec": {"partitions": count}})
        sandbox.kubectl("patch", f"kafkatopic/{TOPIC}", "-n", namespace, "--type=merge", "-p", patch)

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
        assert "conflict" in step(sandbox, tmp_path, "preview", "STACK=dev", expected=2).stderr
        # An identity that only reads may not try the change out: Pulumi then compares by itself.
        assert f"topics-{TOPIC} update [diff: ~spec]" in seen_by(sandbox, reader, "preview")
        assert f"topics-{TOPIC} update [diff: ~spec]" in seen_by(sandbox, reader, "refresh", "--preview-only")
        step(sandbox, tmp_path, "preview", "STACK=dev", more=FORCE)
        assert [each["name"] for each in document(tmp_path, "preview-dev")["changes"]] == [TOPIC]
        step(sandbox, tmp_path, "up", "STACK=dev", more=FORCE)
        assert sandbox.get("kafkatopic", "-n", namespace, TOPIC)["spec"]["partitions"] == declared
    finally:
        partitions(declared)
    finds_no_drift_but_in_a_list(sandbox, pair, tmp_path)


def finds_no_drift_but_in_a_list(sandbox: Sandbox, pair: Pair, folder: Path) -> None:
    """An entry that somebody adds to a list is no drift, as docs/pipelines.md says, and nothing else is left of one."""
    namespace, user = pair.dev["cluster"]["namespace"], next(iter(pair.dev["users"]))
    acls = sandbox.get("kafkauser", "-n", namespace, user)["spec"]["authorization"]["acls"]
    entry = {"resource": {"type": "group", "name": "added-by-hand", "patternType": "literal"}, "operations": ["Read"]}
    path = "/spec/authorization/acls"

    def patch(operation: str, at: str, **value: Any) -> None:
        patches = json.dumps([{"op": operation, "path": f"{path}/{at}", **value}])
        sandbox.kubectl("patch", f"kafkauser/{user}", "-n", namespace, "--type=json", "-p", patches)

    patch("add", "-", value=entry)
    try:
        step(sandbox, folder, "drift", "STACK=dev")
        assert document(folder, "drift-dev") == {"stack": "dev", "drifted": False, "changes": []}
    finally:
        patch("remove", str(len(acls)))


def test_a_stack_that_declares_no_mirror_has_nothing_to_verify(sandbox: Sandbox, pair: Pair, tmp_path: Path) -> None:
    result = step(sandbox, tmp_path, "verify", "STACK=dev")
    assert "nothing to verify: stack dev declares no mirror" in result.stdout
    assert "nothing to verify: stack dev declares no mirror" in step(sandbox, tmp_path, "summary").stdout


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("preview", "stack nowhere: its file must exist"),
        pytest.param("drift", "stack nowhere: its file must exist", marks=pytest.mark.nightly),
        ("verify", "stack elsewhere: must exist in the backend"),
    ],
)
def test_what_could_not_be_done_is_reported_in_the_summary_too(
    sandbox: Sandbox, pair: Pair, tmp_path: Path, target: str, why: str
) -> None:
    result = step(sandbox, tmp_path, target, f"STACK={why.split()[1].rstrip(':')}", expected=2)
    assert why in result.stderr
    assert why.partition(": ")[2] in step(sandbox, tmp_path, "summary").stdout


def test_the_kubeconfig_lets_the_job_in_by_its_own_identity(sandbox: Sandbox, reader: dict[str, str]) -> None:
    command = [str(sandbox.tools.kubectl), "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]
    who = subprocess.run(
        command, env={**os.environ, **reader}, capture_output=True, text=True, timeout=at_most(60), check=False
    )
    assert who.stdout == f"system:serviceaccount:default:{JOB}", who.stderr
