"""Short-lived tokens of the job's own identity: where they come from, where they go, and that they stay private."""

import base64
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from ops.errors import OpsError
from ops.pipeline import aws, identity
from ops.pipeline.identity import RetryPauses
from tests.support.make_targets import make
from tests.support.s3_server import amazon
from tests.support.token_issuer import Issuer, issuer, jwt

ROLE = {"AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/pipeline"}
CA = "-----BEGIN CERTIFICATE-----\nbWFkZSB1cA==\n-----END CERTIFICATE-----"
PATH = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def github() -> Iterator[Issuer]:
    with issuer(jwt({"sub": "repo:acme/kafka", "exp": time.time() + 300})) as made:
        yield made


def test_the_cloud_config_holds_no_credential_and_is_private(github: Issuer, tmp_path: Path) -> None:
    reported, file = tmp_path / "env", tmp_path / "cloud-config"
    file.write_text("readable by all")
    environment = {**PATH, **github.environment, **ROLE, "RUNNER_TEMP": str(tmp_path), "GITHUB_ENV": str(reported)}
    result = make("cloud-config", environment=environment)
    assert result.returncode == 0, result.stderr
    assert github.audiences == ["sts.amazonaws.com"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert reported.read_text(encoding="utf-8") == f"AWS_CONFIG_FILE={file}\n"
    assert github.token not in result.stdout + result.stderr + file.read_text(encoding="utf-8")


def test_each_process_gets_credentials_with_a_token_of_its_own(github: Issuer, tmp_path: Path) -> None:
    with amazon() as there:
        environment = {**PATH, **github.environment, **ROLE, "RUNNER_TEMP": str(tmp_path), "HOME": str(tmp_path)}
        environment |= {"AWS_ENDPOINT_URL": there.url, "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1"}
        environment["AWS_CONFIG_FILE"] = str(identity.write_cloud_config(environment))
        asking = "import boto3; print(boto3.client('sts').get_caller_identity()['Arn'])"
        for asked in (2, 3):
            result = subprocess.run(
                [sys.executable, "-c", asking], env=environment, capture_output=True, text=True, timeout=60, check=False
            )
            assert "assumed-role/pipeline/pipeline" in result.stdout, result.stderr
            assert len(github.audiences) == asked, "a token that has ended must not be used again"


def test_credentials_say_when_they_end(tmp_path: Path) -> None:
    environment = {**ROLE, "CLOUD_ID_TOKEN": jwt({"sub": "repo:acme/kafka"})}
    with pytest.raises(OpsError, match="AWS_REGION must be set"):
        aws.credential(environment)
    with amazon() as there, pytest.MonkeyPatch.context() as patched:
        patched.setenv("AWS_ENDPOINT_URL", there.url)
        answer = aws.credential({**environment, "AWS_REGION": "us-east-1"})
    assert answer.keys() == {"Version", "AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"}
    assert answer["Version"] == 1
    assert datetime.fromisoformat(answer["Expiration"]) > datetime.now(UTC)


def test_a_cloud_that_does_not_answer_is_reported_without_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(OpsError, match="STS in us-east-1 must answer") as refused:
        aws.credential({**ROLE, "CLOUD_ID_TOKEN": "token-4711", "AWS_REGION": "us-east-1"})
    assert "4711" not in str(refused.value)


def test_the_kubeconfig_leaves_the_users_own_alone(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("mine", encoding="utf-8")
    environment = {"KUBE_SERVER": "https://api:6443", "KUBECONFIG": str(own), "RUNNER_TEMP": str(tmp_path / "job")}
    file = identity.write_kubeconfig({**environment, "KUBE_CA": CA})
    assert own.read_text(encoding="utf-8") == "mine"
    written = yaml.safe_load(file.read_text(encoding="utf-8"))
    cluster = written["clusters"][0]["cluster"]
    assert base64.b64decode(cluster["certificate-authority-data"]).decode() == f"{CA}\n"
    assert written["users"][0]["user"].keys() == {"exec"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    # The contexts that the stack files name are the job's cluster.
    assert [each["name"] for each in written["contexts"]] == ["pipeline", "dev", "stg"]
    bare = yaml.safe_load(identity.write_kubeconfig(environment).read_text(encoding="utf-8"))
    assert bare["clusters"][0]["cluster"] == {"server": "https://api:6443"}


def test_a_credential_says_when_it_ends(github: Issuer) -> None:
    before = datetime.now(UTC)
    answer = identity.credential({**github.environment, "KUBE_SERVER": "https://api:6443"})
    assert answer["status"]["token"] == github.token
    ends = datetime.strptime(answer["status"]["expirationTimestamp"], "%Y-%m-%dT%H:%M:%S%z")
    assert 200 < (ends - before).total_seconds() < 260
    assert github.audiences == ["https://api:6443"]
    assert identity.credential({"KUBE_ID_TOKEN": "no-jwt"})["status"] == {"token": "no-jwt"}


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "AWS_ROLE_ARN must be set"),
        (ROLE, "RUNNER_TEMP must be set"),
        ({**ROLE, "RUNNER_TEMP": "TMP"}, "a token must be obtainable (got neither CLOUD_ID_TOKEN nor ACTIONS_ID_TOKEN"),
    ],
)
def test_what_is_missing_for_the_cloud_config_is_reported(
    environment: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(OpsError) as missing:
        identity.write_cloud_config({name: value.replace("TMP", str(tmp_path)) for name, value in environment.items()})
    assert message in str(missing.value)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "KUBE_SERVER must be the API server's https address (got 'none')"),
        ({"KUBE_SERVER": "http://api"}, "got 'http://api'"),
        (
            {"KUBE_SERVER": "https://api", "RUNNER_TEMP": "/nowhere", "KUBE_CA": "/a/file.pem"},
            "KUBE_CA must be the PEM",
        ),
    ],
)
def test_what_is_wrong_with_the_kubeconfig_is_reported(environment: dict[str, str], message: str) -> None:
    with pytest.raises(OpsError) as wrong:
        identity.write_kubeconfig(environment)
    assert message in str(wrong.value)


def test_an_issuer_that_refuses_is_one_message_without_the_bearer(github: Issuer, tmp_path: Path) -> None:
    wrong = {"ACTIONS_ID_TOKEN_REQUEST_TOKEN": "wrong-bearer-4711"}
    with pytest.raises(OpsError, match=r"the token's issuer: must be answered with success \(got 401") as refused:
        identity.token("x", "NONE", {**github.environment, **wrong}, RetryPauses(first_s=0.0))
    assert "4711" not in str(refused.value)
    github.token = ""
    with pytest.raises(OpsError, match=r"must answer with a token \(got none\)"):
        identity.token("x", "NONE", github.environment)


def test_a_job_without_pulumi_is_reported_so_by_its_set_up() -> None:
    result = make("setup-pipeline", environment=PATH)
    assert result.returncode == 2
    assert "pulumi must be on PATH (not found)" in result.stderr


def test_a_job_with_pulumi_is_set_up(tmp_path: Path) -> None:
    tool = tmp_path / "pulumi"
    tool.write_text("#!/bin/sh\n", encoding="utf-8")
    tool.chmod(0o755)
    assert make("setup-pipeline", environment={"PATH": f"{tmp_path}:/usr/bin:/bin"}).returncode == 0
