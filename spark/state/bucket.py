"""States in a prefix of an S3 bucket, on Amazon's servers or on others that speak its protocol."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import boto3  # type: ignore[import-untyped]  # ships no types
from botocore.config import Config  # type: ignore[import-untyped]  # ships no types
from botocore.exceptions import (  # type: ignore[import-untyped]  # ships no types
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
)

from spark.state.store import BYTES_MAX, ConflictError, Store, StoreError

FORBIDDEN = 403
RIGHTS = "s3:GetObject, s3:PutObject and s3:ListBucket"
_CONFLICTS = {"PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "409", "412"}
_ABSENT = {"NoSuchKey", "404"}


class BucketStore(Store):
    """A prefix of a bucket. Writes are conditional on the ETag that was read, so that no writer overwrites another."""

    def __init__(self, bucket: str, prefix: str, environment: Mapping[str, str]) -> None:
        self.uri = f"s3://{bucket}/{prefix}".rstrip("/")
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        # Servers other than Amazon's serve buckets by path and need not know the newer checksums.
        own_server = "AWS_ENDPOINT_URL_S3" in environment or "AWS_ENDPOINT_URL" in environment
        self._config = Config(
            connect_timeout=5,
            read_timeout=20,
            retries={"mode": "standard", "total_max_attempts": 3},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            s3={"addressing_style": "path" if own_server else "auto"},
        )
        self._client: Any = None

    def _read(self, name: str) -> tuple[bytes | None, str | None]:
        with self._errors("read"):
            try:
                found = self._s3().get_object(Bucket=self._bucket, Key=self._prefix + name)
            except ClientError as error:
                if _code(error) in _ABSENT:
                    return None, None
                raise
            if found["ContentLength"] > BYTES_MAX:
                message = f"{self.uri}/{name}: must be at most {BYTES_MAX} bytes (got {found['ContentLength']})"
                raise StoreError(message)
            return found["Body"].read(), found["ETag"]

    def _write(self, name: str, data: bytes, version: str | None) -> None:
        condition = {"IfNoneMatch": "*"} if version is None else {"IfMatch": version}
        with self._errors("written"):
            try:
                self._s3().put_object(
                    Bucket=self._bucket,
                    Key=self._prefix + name,
                    Body=data,
                    ContentType="application/json",
                    **condition,
                )
            except ClientError as error:
                if _code(error) in _CONFLICTS:
                    raise ConflictError from None
                raise

    def _s3(self) -> Any:
        if self._client is None:
            self._client = boto3.session.Session().client("s3", config=self._config)
        return self._client

    @contextlib.contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            reason = f"the server answers {_code(error)}"
            if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == FORBIDDEN:
                reason += f", the credentials must allow {RIGHTS}"
        except NoCredentialsError:
            reason = "no credentials, set the AWS environment variables"
        except EndpointConnectionError:
            reason = "the server cannot be reached"
        except (BotoCoreError, ValueError, OSError) as error:
            reason = type(error).__name__  # its text may hold the address with what stands in it
        else:
            return
        raise StoreError(f"{self.uri}: cannot be {what}: {reason}")


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", "an error"))
