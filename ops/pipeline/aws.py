"""What pipelines ask of AWS: the S3 bucket of Pulumi's state with its KMS key, and credentials of a role for a job.

The bucket and the key that encrypts the secrets of the state are created once and corrected when run again. Every
version of a state is kept, nobody but the account sees it, and nothing is sent without TLS. Nothing is deleted.

The credentials are those of the role AWS_ROLE_ARN for the job's own identity, as Amazon's SDKs ask a command for them.
They end after an hour and the token behind them sooner; a process that needs new ones runs the command again.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import boto3  # type: ignore[import-untyped]  # ships no types
from botocore import UNSIGNED  # type: ignore[import-untyped]  # as above
from botocore.config import Config  # type: ignore[import-untyped]  # as above
from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]  # as above

from ops.errors import OpsError
from ops.pipeline import identity

KEEP_DAYS = 90
_DEADLINES = Config(connect_timeout=10, read_timeout=30, retries={"max_attempts": 4, "mode": "standard"})
_QUESTIONS = Config(connect_timeout=3, read_timeout=5, retries={"max_attempts": 2, "mode": "standard"})
_PUBLIC = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
_OWN_MATERIAL = "AWS_KMS"
_FIRST_REGION = "us-east-1"  # the one that must not be named when a bucket is made in it
SESSION = "pipeline"
_STS_CALLS = Config(
    signature_version=UNSIGNED, connect_timeout=10, read_timeout=15, retries={"max_attempts": 3, "mode": "standard"}
)
# Credentials that are given keep the client from asking this very command.
_NO_CREDENTIALS = {"aws_access_key_id": "none", "aws_secret_access_key": "none"}


@dataclass(frozen=True, kw_only=True)
class BucketSettings:
    """What to make. Without a key the passphrase encrypts the secrets. `endpoint` is of another S3 than Amazon's."""

    bucket: str
    region: str
    key_alias: str | None = None
    endpoint: str | None = None


@dataclass(frozen=True, kw_only=True)
class StateBackend:
    """What Pulumi is given: the values of PULUMI_BACKEND_URL and of `--secrets-provider`, and what was changed."""

    backend: str
    secrets_provider: str
    changed: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the document that `--json` prints."""
        return {"backend": self.backend, "secretsProvider": self.secrets_provider, "changed": [*self.changed]}


def bucket_settings(bucket: str | None, key_alias: str | None, environment: Mapping[str, str]) -> BucketSettings:
    """Return what to make, by options and Amazon's usual variables; all problems are reported together."""
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or ""
    problems = [] if bucket else ["--bucket must be given"]
    problems += [] if region else ["AWS_REGION must be set"]
    if key_alias is not None and not key_alias.startswith("alias/"):
        problems.append(f"--key must start with alias/ (got {key_alias!r})")
    if problems:
        raise OpsError(f"state-bucket: {'; '.join(problems)}. For example: make state-bucket BUCKET=acme-pulumi-state.")
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or None
    return BucketSettings(bucket=bucket or "", region=region, key_alias=key_alias, endpoint=endpoint)


def make_state_bucket(settings: BucketSettings, log: Callable[[str], None]) -> StateBackend:
    """Make what is missing and correct what differs; `log` gets a line for each of it."""
    changed: list[str] = []

    def done(what: str) -> None:
        changed.append(what)
        log(f"state-bucket: {what}")

    try:
        s3 = boto3.client("s3", region_name=settings.region, config=_DEADLINES)
        _bucket(s3, settings, done)
        if settings.key_alias:
            _key(boto3.client("kms", region_name=settings.region, config=_DEADLINES), settings.key_alias, done)
    except (BotoCoreError, ClientError) as error:
        raise OpsError(f"bucket {settings.bucket}: {_aws_error(error)}") from None
    key = f"awskms://{settings.key_alias}?region={settings.region}{_key_endpoint(settings)}"
    return StateBackend(
        backend=f"s3://{settings.bucket}?region={settings.region}{_endpoint(settings)}",
        secrets_provider=key if settings.key_alias else "passphrase",
        changed=tuple(changed),
    )


def _bucket(s3: Any, settings: BucketSettings, done: Callable[[str], None]) -> None:
    name = {"Bucket": settings.bucket}
    if not _is_there(lambda: s3.head_bucket(**name)):
        where = (
            {}
            if settings.region == _FIRST_REGION
            else {"CreateBucketConfiguration": {"LocationConstraint": settings.region}}
        )
        s3.create_bucket(**name, **where)
        done(f"bucket {settings.bucket} made in {settings.region}")
    if s3.get_bucket_versioning(**name).get("Status") != "Enabled":
        s3.put_bucket_versioning(**name, VersioningConfiguration={"Status": "Enabled"})
        done("every version is kept")
    closed = dict.fromkeys(_PUBLIC, True)
    if _found(lambda: s3.get_public_access_block(**name)["PublicAccessBlockConfiguration"]) != closed:
        s3.put_public_access_block(**name, PublicAccessBlockConfiguration=closed)
        done("public access is blocked")
    if _found(lambda: s3.get_bucket_encryption(**name)) is None:
        rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
        s3.put_bucket_encryption(**name, ServerSideEncryptionConfiguration={"Rules": [rule]})
        done("objects are encrypted at rest")
    # An S3 without TLS, as in a test, would deny everything.
    if not _is_plain(settings) and _found(lambda: s3.get_bucket_policy(**name)["Policy"]) is None:
        s3.put_bucket_policy(**name, Policy=json.dumps(_tls_only(settings.bucket)))
        done("requests without TLS are denied")
    if _found(lambda: s3.get_bucket_lifecycle_configuration(**name)["Rules"]) is None:
        s3.put_bucket_lifecycle_configuration(**name, LifecycleConfiguration={"Rules": [_lifecycle()]})
        done(f"versions that were replaced go after {KEEP_DAYS} days")


def _key(kms: Any, alias: str, done: Callable[[str], None]) -> None:
    """Give the key its name before anything else may fail: a key without one is paid for and never found again."""
    known = _found(lambda: kms.describe_key(KeyId=alias))
    described = (known or kms.create_key(Description="Secrets in the state of Pulumi"))["KeyMetadata"]
    key = described["KeyId"]
    if known is None:
        kms.create_alias(AliasName=alias, TargetKeyId=key)
        done(f"key {alias} made")
    ours = described.get("Origin") == _OWN_MATERIAL  # the cloud cannot rotate what somebody has imported
    if ours and not kms.get_key_rotation_status(KeyId=key)["KeyRotationEnabled"]:
        kms.enable_key_rotation(KeyId=key)
        done(f"key {alias} is rotated every year")


def _tls_only(bucket: str) -> dict[str, Any]:
    resources = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
    denied = {"Sid": "OnlyWithTls", "Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": resources}
    condition = {"Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    return {"Version": "2012-10-17", "Statement": [{**denied, **condition}]}


def bucket_alone(bucket: str, *, region: str | None, endpoint: str | None) -> str | None:
    """Return why a bucket's content is in one Region only, None if rules replicate it to another one.

    Raises OpsError if that cannot be learned, for example without the right s3:GetReplicationConfiguration.
    """
    try:
        s3 = boto3.client("s3", region_name=region, endpoint_url=endpoint, config=_QUESTIONS)
        rules = [rule for rule in _replication(s3, bucket) if rule.get("Status") == "Enabled"]
        if not rules:
            return f"bucket {bucket} has no replication"
        own = _region(s3, bucket)
        others = {_region(s3, rule["Destination"]["Bucket"].rpartition(":")[2]) for rule in rules}
    except (BotoCoreError, ClientError) as error:
        raise OpsError(f"bucket {bucket}: {_question_error(error)}") from None
    return f"bucket {bucket} is replicated within {own} only" if own is not None and others == {own} else None


def key_alone(key: str, *, region: str | None, endpoint: str | None) -> str | None:
    """Return why a KMS key is in one Region only, None if it has replicas in others; raises OpsError if unknown."""
    try:
        kms = boto3.client("kms", region_name=region, endpoint_url=endpoint, config=_QUESTIONS)
        found = kms.describe_key(KeyId=key)["KeyMetadata"]
    except (BotoCoreError, ClientError) as error:
        raise OpsError(f"key {key}: {_question_error(error)}") from None
    if not found.get("MultiRegion"):
        return f"key {key} is a single-Region key"
    copies = found.get("MultiRegionConfiguration") or {}
    if copies.get("MultiRegionKeyType") == "PRIMARY" and not copies.get("ReplicaKeys"):
        return f"key {key} is a multi-Region key without a replica"
    return None


def _replication(s3: Any, bucket: str) -> list[dict[str, Any]]:
    try:
        rules: list[dict[str, Any]] = s3.get_bucket_replication(Bucket=bucket)["ReplicationConfiguration"]["Rules"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ReplicationConfigurationNotFoundError":
            return []
        raise
    return rules


def _region(s3: Any, bucket: str) -> str | None:
    """The Region of a bucket; None if it may not be asked."""
    try:
        headers = s3.head_bucket(Bucket=bucket)["ResponseMetadata"]["HTTPHeaders"]
    except ClientError as error:
        headers = error.response["ResponseMetadata"].get("HTTPHeaders") or {}
    found: str | None = headers.get("x-amz-bucket-region")
    return found


def _question_error(error: Exception) -> str:
    if isinstance(error, ClientError):
        return f"{error.operation_name} is answered by {error.response['Error']['Code']}"
    return f"it cannot be asked ({type(error).__name__})"


def _lifecycle() -> dict[str, Any]:
    return {
        "ID": "replaced-versions",
        "Status": "Enabled",
        "Filter": {"Prefix": ""},
        "NoncurrentVersionExpiration": {"NoncurrentDays": KEEP_DAYS},
    }


def _is_there(call: Callable[[], Any]) -> bool:
    return _found(lambda: call() or True) is not None


def _found(call: Callable[[], Any]) -> Any:
    """What is there, None if the answer is that there is nothing of that kind."""
    try:
        return call()
    except ClientError as error:
        code, status = error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]
        if status == 404 or code.startswith("NoSuch") or "NotFound" in code:
            return None
        raise


def _aws_error(error: Exception) -> str:
    if isinstance(error, ClientError):
        reason = error.response["Error"]
        what = (
            f"{error.operation_name} must be allowed and succeed (got {reason['Code']}: {reason.get('Message', '')})."
        )
        return f"{what} A name of another account is refused too: names of buckets are worldwide."
    return f"must be reachable with credentials ({error})."


def _is_plain(settings: BucketSettings) -> bool:
    return (settings.endpoint or "").startswith("http://")


def _endpoint(settings: BucketSettings) -> str:
    if not settings.endpoint:
        return ""
    host = settings.endpoint.partition("://")[2]
    return f"&endpoint={host}&s3ForcePathStyle=true{'&disableSSL=true' if _is_plain(settings) else ''}"


def _key_endpoint(settings: BucketSettings) -> str:
    return f"&endpoint={settings.endpoint}" if settings.endpoint else ""


def credential(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the answer that an SDK expects of a `credential_process`, with the credentials."""
    role, region = identity.role(environment), environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if not region:
        raise OpsError("cloud-credential: AWS_REGION must be set (the region whose STS is asked).")
    shown = identity.cloud_token(environment)
    try:
        sts = boto3.client("sts", region_name=region, config=_STS_CALLS, **_NO_CREDENTIALS)
        given = sts.assume_role_with_web_identity(RoleArn=role, RoleSessionName=SESSION, WebIdentityToken=shown)
    except ClientError as error:
        reason = error.response["Error"]
        raise OpsError(
            f"role {role}: must trust this job's identity (got {reason.get('Code')}: {reason.get('Message')})."
        ) from None
    except BotoCoreError as error:
        raise OpsError(f"role {role}: STS in {region} must answer (got {type(error).__name__}).") from None
    found = given["Credentials"]
    names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
    return {"Version": 1, **{name: found[name] for name in names}, "Expiration": found["Expiration"].isoformat()}
