"""The bucket of Pulumi's state and the key of its secrets, made on moto's S3 and KMS."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]  # ships no types
import pytest
from botocore.exceptions import ClientError  # type: ignore[import-untyped]  # as above
from typer.testing import CliRunner

from ops.cli import app
from ops.errors import OpsError
from ops.pipeline import aws
from tests.support.make_targets import make
from tests.support.s3_server import Amazon, amazon
from tests.support.token_issuer import jwt

BUCKET, KEY = "acme-pulumi-state", "alias/pulumi-state"


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Amazon]:
    with amazon() as made:
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        yield made


def asked(bucket: str, key: str | None = None) -> aws.StateBackend:
    return aws.make_state_bucket(aws.bucket_settings(bucket, key, os.environ), lambda _: None)


def s3() -> Any:
    return boto3.client("s3")


def test_the_target_makes_a_bucket_that_keeps_versions_and_shows_them_to_nobody(cloud: Amazon) -> None:
    result = make("state-bucket", f"BUCKET={BUCKET}", f"KEY={KEY}")
    assert result.returncode == 0, result.stderr
    host = cloud.url.removeprefix("http://")
    assert result.stdout.splitlines() == [
        f"PULUMI_BACKEND_URL=s3://{BUCKET}?region=us-east-1&endpoint={host}&s3ForcePathStyle=true&disableSSL=true",
        f"secrets provider: awskms://{KEY}?region=us-east-1&endpoint={cloud.url}",
    ]
    assert s3().get_bucket_versioning(Bucket=BUCKET)["Status"] == "Enabled"
    assert set(s3().get_public_access_block(Bucket=BUCKET)["PublicAccessBlockConfiguration"].values()) == {True}
    (rule,) = s3().get_bucket_encryption(Bucket=BUCKET)["ServerSideEncryptionConfiguration"]["Rules"]
    assert rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
    (kept,) = s3().get_bucket_lifecycle_configuration(Bucket=BUCKET)["Rules"]
    assert kept["NoncurrentVersionExpiration"] == {"NoncurrentDays": 90}
    assert "Expiration" not in kept
    key = boto3.client("kms").describe_key(KeyId=KEY)["KeyMetadata"]
    assert boto3.client("kms").get_key_rotation_status(KeyId=key["KeyId"])["KeyRotationEnabled"]


def test_a_second_run_changes_nothing_and_corrects_what_was_changed(cloud: Amazon) -> None:
    assert len(asked("twice-made", "alias/twice-made").changed) == 7
    key = boto3.client("kms").describe_key(KeyId="alias/twice-made")["KeyMetadata"]["KeyId"]
    before = [write for write in cloud.written if write[0] == "PUT"]
    assert asked("twice-made", "alias/twice-made").changed == ()
    assert [write for write in cloud.written if write[0] == "PUT"] == before
    assert boto3.client("kms").describe_key(KeyId="alias/twice-made")["KeyMetadata"]["KeyId"] == key
    s3().put_bucket_versioning(Bucket="twice-made", VersioningConfiguration={"Status": "Suspended"})
    boto3.client("kms").disable_key_rotation(KeyId=key)
    again = asked("twice-made", "alias/twice-made").changed
    assert again == ("every version is kept", "key alias/twice-made is rotated every year")


def test_a_key_whose_rotation_is_refused_has_its_name_and_is_not_made_twice(
    cloud: Amazon, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        def __init__(self, kms: Any) -> None:
            self.kms = kms

        def __getattr__(self, name: str) -> Any:
            return getattr(self.kms, name)

        def enable_key_rotation(self, **_: Any) -> None:
            refusal = {
                "Error": {"Code": "AccessDeniedException", "Message": "no"},
                "ResponseMetadata": {"HTTPStatusCode": 400},
            }
            raise ClientError(refusal, "EnableKeyRotation")

    client = boto3.client
    before = len(client("kms").list_keys()["Keys"])
    with monkeypatch.context() as refused:
        refused.setattr(boto3, "client", lambda name, **options: Refusing(client(name, **options)))
        for _ in range(2):
            with pytest.raises(OpsError, match="EnableKeyRotation must be allowed"):
                asked("refused", "alias/refused")
    assert asked("refused", "alias/refused").changed == ("key alias/refused is rotated every year",)
    assert len(client("kms").list_keys()["Keys"]) == before + 1


def test_only_requests_with_tls_are_let_in(cloud: Amazon) -> None:
    # Without an endpoint it is Amazon's own, which is always reached with TLS.
    ask = aws.BucketSettings(bucket="with-tls", region="us-east-1")
    assert "requests without TLS are denied" in aws.make_state_bucket(ask, lambda _: None).changed
    (denied,) = json.loads(s3().get_bucket_policy(Bucket="with-tls")["Policy"])["Statement"]
    assert (denied["Effect"], denied["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
    theirs = json.dumps({"Version": "2012-10-17", "Statement": [{**denied, "Sid": "Theirs"}]})
    s3().put_bucket_policy(Bucket="with-tls", Policy=theirs)
    assert aws.make_state_bucket(ask, lambda _: None).changed == ()
    assert s3().get_bucket_policy(Bucket="with-tls")["Policy"] == theirs


def test_another_region_is_named_to_the_bucket(cloud: Amazon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert "region=eu-central-1" in asked("far-away").backend
    assert s3().get_bucket_location(Bucket="far-away")["LocationConstraint"] == "eu-central-1"


def test_without_a_key_the_passphrase_encrypts(cloud: Amazon) -> None:
    assert asked("no-key").secrets_provider == "passphrase"


def test_everything_that_is_wrong_is_reported_at_once() -> None:
    with pytest.raises(OpsError) as wrong:
        aws.bucket_settings(None, "pulumi-state", {})
    message = str(wrong.value)
    assert (
        "--bucket must be given; AWS_REGION must be set; --key must start with alias/ (got 'pulumi-state')" in message
    )


def test_a_job_needs_no_key_of_amazons_but_its_own_identity(
    cloud: Amazon, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    token = jwt({"aud": "sts.amazonaws.com", "sub": "repo:acme/kafka:environment:stg"})
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_") or "REGION" in name}
    environment |= {"AWS_ENDPOINT_URL": cloud.url, "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/stg"}
    environment |= {"CLOUD_ID_TOKEN": token, "RUNNER_TEMP": str(tmp_path), "HOME": str(tmp_path)}
    assert make("cloud-config", environment=environment).returncode == 0
    with monkeypatch.context() as bare:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            bare.delenv(name)
        for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
            bare.setenv(name, str(tmp_path / "none"))
        bare.setenv("AWS_EC2_METADATA_DISABLED", "true")
        bare.setattr(boto3, "DEFAULT_SESSION", None)  # it has found credentials for other tests
        with pytest.raises(OpsError, match="must be reachable with credentials"):
            asked("by-identity")
    environment["AWS_CONFIG_FILE"] = str(tmp_path / "cloud-config")
    result = make("state-bucket", "BUCKET=by-identity", environment=environment)
    assert result.returncode == 0, result.stderr
    assert ("POST", "/") in cloud.written
    assert token not in result.stdout + result.stderr


def test_what_amazon_refuses_is_one_message(cloud: Amazon) -> None:
    with pytest.raises(OpsError, match=r"bucket ab: CreateBucket must be allowed and succeed \(got InvalidBuck"):
        asked("ab")


def test_a_cloud_that_is_not_there_is_exit_2(cloud: Amazon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    result = CliRunner().invoke(app, ["pipeline", "state-bucket", "--bucket", BUCKET])
    assert result.exit_code == 2
    assert f"bucket {BUCKET}: must be reachable with credentials" in result.stderr
    assert "Traceback" not in result.stderr
