"""In how many places Pulumi's state is: by its address, and by what Amazon answers about bucket and key."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]  # ships no types
import pytest

from ops.doctor import pulumi_state
from ops.doctor.diagnosis import diagnose
from ops.doctor.observations import PulumiState, StatePlace
from ops.doctor.pulumi_state import BACKEND, state_notes, state_places
from tests.support.mirror_symptoms import seen
from tests.support.recovery_pair import known
from tests.support.s3_server import Amazon, amazon

ROLE = "arn:aws:iam::123456789012:role/replication"
KUBECONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "here",
    "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
    "users": [{"name": "me", "user": {}}],
}


@pytest.fixture(scope="module")
def served() -> Iterator[Amazon]:
    with amazon() as made:
        yield made


@pytest.fixture
def cloud(served: Amazon, monkeypatch: pytest.MonkeyPatch) -> Amazon:
    for name, value in served.environment.items():
        monkeypatch.setenv(name, value)
    return served


def bucket(name: str, region: str | None = None) -> None:
    where = {"CreateBucketConfiguration": {"LocationConstraint": region}} if region else {}
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=name, **where)
    s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})


def replicate(name: str, to: str, status: str = "Enabled") -> None:
    rule = {"ID": "all", "Priority": 1, "Status": status, "Filter": {"Prefix": ""}}
    rule |= {"Destination": {"Bucket": f"arn:aws:s3:::{to}"}, "DeleteMarkerReplication": {"Status": "Disabled"}}
    configuration = {"Role": ROLE, "Rules": [rule]}
    boto3.client("s3").put_bucket_replication(Bucket=name, ReplicationConfiguration=configuration)


def places(folder: Path, backend: str | None, provider: str | None = None) -> tuple[StatePlace, ...]:
    file = folder / "Pulumi.stg.yaml"
    file.write_text(f"secretsprovider: {provider}\nconfig: {{}}\n" if provider else "config: {}\n", encoding="utf-8")
    return state_places(file, {BACKEND: backend} if backend else {})


def test_a_bucket_without_replication_is_in_one_place(cloud: Amazon, tmp_path: Path) -> None:
    bucket("single")
    (found,) = places(tmp_path, "s3://single?region=us-east-1")
    assert found == StatePlace(part="state", alone="bucket single has no replication")
    bucket("copy-of-single", "eu-central-1")
    replicate("single", "copy-of-single", "Disabled")
    assert places(tmp_path, "s3://single?region=us-east-1")[0].alone == "bucket single has no replication"


def test_a_bucket_that_is_replicated_to_another_region_is_not(cloud: Amazon, tmp_path: Path) -> None:
    bucket("first")
    bucket("second", "eu-central-1")
    replicate("first", "second")
    assert places(tmp_path, "s3://first?region=us-east-1") == (StatePlace(part="state"),)


def test_the_address_names_another_s3(cloud: Amazon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket("elsewhere")
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    host = cloud.url.removeprefix("http://")
    (found,) = places(
        tmp_path, f"s3://elsewhere?region=us-east-1&endpoint={host}&disableSSL=true&s3ForcePathStyle=true"
    )
    assert found.alone == "bucket elsewhere has no replication"


def test_a_key_is_in_one_place_until_it_has_a_replica(cloud: Amazon, tmp_path: Path) -> None:
    kms = boto3.client("kms", region_name="us-east-1")
    kms.create_alias(AliasName="alias/one-region", TargetKeyId=kms.create_key()["KeyMetadata"]["KeyId"])
    key = kms.create_key(MultiRegion=True)["KeyMetadata"]["KeyId"]
    kms.create_alias(AliasName="alias/regions", TargetKeyId=key)
    _, single = places(tmp_path, "file:///state", "awskms://alias/one-region?region=us-east-1")
    assert single == StatePlace(part="key of its secrets", alone="key alias/one-region is a single-Region key")
    _, lonely = places(tmp_path, "file:///state", "awskms://alias/regions?region=us-east-1")
    assert lonely.alone == "key alias/regions is a multi-Region key without a replica"
    kms.replicate_key(KeyId=key, ReplicaRegion="eu-central-1")
    _, replicated = places(tmp_path, "file:///state", "awskms://alias/regions?region=us-east-1")
    assert replicated == StatePlace(part="key of its secrets")


def test_what_cannot_be_learned_is_said_to_be_unknown(cloud: Amazon, tmp_path: Path) -> None:
    (absent,) = places(tmp_path, "s3://not-there-at-all?region=us-east-1")
    assert absent.unknown == "bucket not-there-at-all: GetBucketReplication is answered by NoSuchBucket"
    assert "key alias/nobody: DescribeKey is answered by" in str(
        places(tmp_path, "https://api.pulumi.com", "awskms://alias/nobody?region=us-east-1")[1].unknown
    )
    assert places(tmp_path, None)[0].unknown is not None
    assert places(tmp_path, "gs://acme")[0].unknown == "of backends gs:// it is not known"
    assert places(tmp_path, "file:///state", "gcpkms://acme")[1].unknown is not None
    (silent,) = places(tmp_path, "s3://acme?region=us-east-1&endpoint=127.0.0.1:1&disableSSL=true")
    assert silent.unknown == "bucket acme: it cannot be asked (EndpointConnectionError)"


def test_a_folder_lies_on_one_machine_and_pulumi_cloud_sees_to_itself(tmp_path: Path) -> None:
    assert places(tmp_path, "file:///state") == (StatePlace(part="state", alone="it lies on one machine"),)
    assert places(tmp_path, "https://api.pulumi.com") == (StatePlace(part="state"),)
    (tmp_path / "Pulumi.yaml").write_text("backend:\n  url: file:///state\n", encoding="utf-8")
    assert places(tmp_path, None)[0].alone == "it lies on one machine"


@pytest.mark.parametrize(("server", "is_trial"), [("https://127.0.0.1:6443", True), ("https://api.acme:6443", False)])
def test_a_state_beside_a_cluster_on_this_machine_is_a_note_and_no_finding(
    tmp_path: Path, server: str, is_trial: bool
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps({**KUBECONFIG, "clusters": [{"name": "here", "cluster": {"server": server}}]}))
    environment = {BACKEND: "file:///state", "KUBECONFIG": str(kubeconfig)}
    found = pulumi_state.observe(known(), environment, tmp_path)
    assert found.is_trial is is_trial
    assert (state_notes(found) == ()) is not is_trial
    issues = [one.trouble for one in diagnose(seen(pulumi_state=found))]
    assert issues == ([] if is_trial else ["pulumi-state-in-one-place"])


def test_an_unknown_place_is_a_note(tmp_path: Path) -> None:
    unknown = PulumiState(places=(StatePlace(part="state", unknown="403"),))
    assert state_notes(unknown) == ("Pulumi's state: in how many places it is, is unknown (403)",)
    assert diagnose(seen(pulumi_state=unknown)) == []
    assert state_notes(replace(unknown, places=())) == state_notes(None) == ()
