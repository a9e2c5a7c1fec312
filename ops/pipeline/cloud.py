"""Credentials of the role AWS_ROLE_ARN for the job's own identity, as Amazon's SDKs ask a command for them.

They end after an hour and the token behind them sooner; whoever needs new ones runs the command again.
"""

from collections.abc import Mapping
from typing import Any

import boto3  # type: ignore[import-untyped]  # ships no types
from botocore import UNSIGNED  # type: ignore[import-untyped]  # as above
from botocore.config import Config  # type: ignore[import-untyped]  # as above
from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]  # as above

from ops.errors import OpsError
from ops.pipeline import identity

SESSION = "pipeline"
_CALLS = Config(
    signature_version=UNSIGNED, connect_timeout=10, read_timeout=15, retries={"max_attempts": 3, "mode": "standard"}
)
# Any that are given keep the client from asking this very command.
_NONE = {"aws_access_key_id": "none", "aws_secret_access_key": "none"}


def credential(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the answer that an SDK expects of a `credential_process`. It holds the credentials."""
    role, region = identity.role(environment), environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if not region:
        raise OpsError("cloud-credential: AWS_REGION must be set (the region whose STS is asked).")
    shown = identity.cloud_token(environment)
    try:
        sts = boto3.client("sts", region_name=region, config=_CALLS, **_NONE)
        given = sts.assume_role_with_web_identity(RoleArn=role, RoleSessionName=SESSION, WebIdentityToken=shown)
    except ClientError as error:
        said = error.response["Error"]
        raise OpsError(
            f"role {role}: must trust this job's identity (got {said.get('Code')}: {said.get('Message')})."
        ) from None
    except BotoCoreError as error:
        raise OpsError(f"role {role}: STS in {region} must answer (got {type(error).__name__}).") from None
    found = given["Credentials"]
    names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
    return {"Version": 1, **{name: found[name] for name in names}, "Expiration": found["Expiration"].isoformat()}
