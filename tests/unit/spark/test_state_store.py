"""Where a state is kept: a real folder, and moto's S3 over real HTTP; written by several processes at once."""

import json
import multiprocessing
import os
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path

import boto3  # type: ignore[import-untyped]  # ships no types
import pytest

from contract.fields import RequestError
from spark.state import State
from spark.state import store as stores
from spark.state.store import StoreError
from tests.support.s3_server import amazon

from ...support.state_writers import add, descriptions_read_once, opened
from ...support.verification_states import entry, state

NAME = "mm2.json"
WRITERS, ROUNDS = 2, 8


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Moto's S3."""
    with amazon() as made:
        yield made.url


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    with descriptions_read_once():
        yield


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URI of an empty bucket's prefix."""
    for name, value in {
        "AWS_ENDPOINT_URL_S3": server,
        "AWS_ACCESS_KEY_ID": "id-of-the-tests",
        "AWS_SECRET_ACCESS_KEY": "secret-of-the-tests",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    name = f"states-{uuid.uuid4().hex[:8]}"
    boto3.client("s3").create_bucket(Bucket=name)
    return f"s3://{name}/some/prefix"


@pytest.fixture(params=["folder", "bucket"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder that is not there yet, and a bucket."""
    return str(request.getfixturevalue("bucket") if request.param == "bucket" else tmp_path / "a" / "b")


def put(uri: str, data: bytes) -> None:
    """Put a document in the place of the state, as a stranger would."""
    if uri.startswith("s3://"):
        name, _, prefix = uri.removeprefix("s3://").partition("/")
        boto3.client("s3").put_object(Bucket=name, Key=f"{prefix}/{NAME}", Body=data)
    else:
        Path(uri).mkdir(parents=True, exist_ok=True)
        (Path(uri) / NAME).write_bytes(data)


def test_what_is_saved_is_loaded(uri: str) -> None:
    assert opened(uri).load(NAME) is None
    opened(uri).save(NAME, lambda stored: state(entry()))
    assert opened(uri).load(NAME) == state(entry())
    opened(uri).save(NAME, lambda stored: state(*stored.entries.values(), entry("orders")) if stored else state())
    assert opened(uri).load(NAME) == state(entry(), entry("orders"))


@pytest.mark.parametrize("data", [b"", b"{}", b'{"version": 1, "mirr', b"\x00" * 64])
def test_a_damaged_state_is_reported_and_overwritten_by_the_next_one(uri: str, data: bytes) -> None:
    put(uri, data)
    with pytest.raises(StoreError, match=r"the state mm2.json in .* cannot be used: it is|the state .*checksum"):
        opened(uri).load(NAME)
    opened(uri).save(NAME, lambda stored: state(entry()) if stored is None else state())
    assert opened(uri).load(NAME) == state(entry())


def test_processes_that_save_at_once_lose_nothing_of_each_other(uri: str) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=add, args=(uri, NAME, writer, ROUNDS)) for writer in range(WRITERS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * WRITERS
    found = opened(uri).load(NAME)
    assert found is not None
    assert found.entries["items", 0].verified == ROUNDS * 10 + WRITERS - 1
    own = {(f"w{writer}", number) for writer in range(WRITERS) for number in range(1, ROUNDS + 1)}
    assert set(found.entries) == own | {("items", 0)}


def test_a_writer_starts_again_from_what_another_has_written_meanwhile(bucket: str) -> None:
    opened(bucket).save(NAME, lambda stored: state(entry()))
    calls: list[set[str]] = []

    def update(stored: State | None) -> State:
        assert stored is not None
        calls.append({tp[0] for tp in stored.entries})
        if len(calls) == 1:
            opened(bucket).save(NAME, lambda there: state(entry(), entry("orders")))
        return state(*stored.entries.values(), entry("mine"))

    opened(bucket).save(NAME, update)
    assert calls == [{"items"}, {"items", "orders"}]
    found = opened(bucket).load(NAME)
    assert found is not None
    assert {tp[0] for tp in found.entries} == {"items", "orders", "mine"}


def test_a_folder_that_another_run_never_lets_go_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "WRITE_DEADLINE_S", 0.3)
    folder = opened(str(tmp_path))

    def update(stored: State | None) -> State:
        with pytest.raises(StoreError, match=r"other runs kept writing the state mm2.json"):
            opened(str(tmp_path)).save(NAME, lambda there: state())
        return state(entry())

    folder.save(NAME, update)
    assert folder.load(NAME) == state(entry())


def test_a_write_that_fails_leaves_the_state_as_it_was_and_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = opened(str(tmp_path))
    folder.save(NAME, lambda stored: state(entry()))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="cannot be written: No space left on device"):
        folder.save(NAME, lambda stored: state())
    assert folder.load(NAME) == state(entry())
    assert {path.name for path in tmp_path.iterdir()} == {NAME, f"{NAME}.lock"}


def test_files_and_folders_are_the_owners_alone(tmp_path: Path) -> None:
    opened(str(tmp_path / "new")).save(NAME, lambda stored: state(entry()))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").iterdir()}
    assert modes == {NAME: 0o600, f"{NAME}.lock": 0o600}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_a_file_uri_is_the_same_folder(tmp_path: Path) -> None:
    opened(f"file://{tmp_path}/with%20space").save(NAME, lambda stored: state(entry()))
    assert opened(str(tmp_path / "with space")).load(NAME) == state(entry())


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ("", "must not be empty"),
        ("gs://bucket/prefix", "must be a folder's path, a file:// or an s3:// URI"),
        ("http://server/x", "must be a folder's path, a file:// or an s3:// URI"),
        ("s3:///prefix", "must name a bucket"),
        ("file://elsewhere/folder", "must name a folder of this machine"),
        ("s3://bucket/prefix?version=hidden-part", "must be a URI without query and fragment"),
        ("s3://user:hidden-part@bucket/prefix", "must not hold credentials"),
    ],
)
def test_a_wrong_uri_is_an_error_of_the_request_and_shows_no_secret(wrong: str, rule: str) -> None:
    with pytest.raises(RequestError) as error:
        opened(wrong)
    assert rule in str(error.value)
    assert str(error.value).startswith("--state: ")
    assert "hidden-part" not in str(error.value)


@pytest.mark.parametrize("below", ["", "/deeper/still"])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_file_instead_of_a_folder_is_an_error_of_the_request(tmp_path: Path, below: str, scheme: str) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(RequestError, match="must be a folder"):
        opened(f"{scheme}{file}{below}")


def test_a_state_that_cannot_be_read_or_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(StoreError, match="cannot be read: Is a directory"):
        opened(str(tmp_path)).load(NAME)
    with pytest.raises(StoreError, match="Is a directory"):
        opened(str(tmp_path)).save(NAME, lambda stored: state())


def reported(uri: str) -> list[str]:
    """What both directions say."""
    store, said = opened(uri), []
    for action in (lambda: store.load(NAME), lambda: store.save(NAME, lambda stored: state())):
        with pytest.raises(StoreError) as error:
            action()
        said.append(str(error.value))
    return said


def test_a_bucket_that_is_not_there_is_reported(bucket: str) -> None:
    assert all("the server answers NoSuchBucket" in text for text in reported("s3://another-bucket/prefix"))


def test_a_server_that_cannot_be_reached_is_reported_without_its_address(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://someone:hidden-part@127.0.0.1:9")
    for text in reported(bucket):
        assert text.startswith(bucket)
        assert "hidden-part" not in text


def test_missing_credentials_are_reported(bucket: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert all("no credentials" in text for text in reported(bucket))


def test_a_refusal_names_the_rights_that_are_needed(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = bucket.removeprefix("s3://").partition("/")[0]
    deny = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": f"arn:aws:s3:::{name}/*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [deny]})
    boto3.client("s3").put_bucket_policy(Bucket=name, Policy=policy)
    assert all("the credentials must allow s3:GetObject" in text for text in reported(bucket))
