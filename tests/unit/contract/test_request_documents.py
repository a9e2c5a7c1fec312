"""Documents that no reader could use: each fault is named once, beside the others, and ends the run with exit 2."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contract.documents import load, parse
from contract.fields import RequestError

from ..spark.test_stopped import run
from .test_request import ENVIRONMENT, GOOD

DEEP = 200_000


def problems(text: str, folder: Path, environment: dict[str, str] | None = None) -> list[str]:
    """Return what is wrong with a request's text."""
    path = folder / "request.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RequestError) as caught:
        load(path, ENVIRONMENT if environment is None else environment)
    return caught.value.problems


def changed(change: Callable[[dict[str, Any]], None]) -> str:
    document = copy.deepcopy(GOOD)
    change(document)
    return json.dumps(document)


def limits(text: str) -> str:
    return json.dumps(GOOD | {"limits": "LIMITS"}).replace('"LIMITS"', text)


BIG = 10**30
WRONG: dict[str, tuple[str, str]] = {
    "NaN": (limits('{"lag_records_max": NaN}'), "limits.lag_records_max: must be a finite number (got nan)"),
    "Infinity": (limits('{"duplicates_max": Infinity}'), "limits.duplicates_max: must be a finite number (got inf)"),
    "a number that is none by its size": (
        limits('{"mirror_wait_seconds": 1e400}'),
        "limits.mirror_wait_seconds: must be a finite number (got inf)",
    ),
    "a great number": (
        limits(f'{{"reread_records_max": {BIG}}}'),
        f"limits: reread_records_max must be a number from 0 to 9223372036854775807 (got {BIG})",
    ),
    "a deadline after all of us": (
        limits(f'{{"deadline_seconds": {BIG}}}'),
        f"limits: deadline_seconds must be a number from 1 to 31622400 (got {BIG})",
    ),
    "a great number as a fraction": (
        limits('{"lag_seconds_max": 1e30}'),
        "limits: lag_seconds_max must be a number from 0 to 9223372036854775807 or null (got 1e+30)",
    ),
    "a fraction": (
        limits('{"duplicates_max": 0.5}'),
        "limits: duplicates_max must be a number from 0 to 9223372036854775807 (got 0.5)",
    ),
    "a great partition": (
        changed(lambda document: document["mirror"].update(canary={"topic": "items", "partition": BIG})),
        f"mirror.canary: partition must be a number from 0 to 2147483647 or null (got {BIG})",
    ),
    "a great partition as a key": (
        changed(lambda document: document["mirror"].update(counts_from={"items": {"9" * 5000: 1}})),
        "mirror.counts_from: items must be a time with its zone, as 2026-01-31T12:00:00Z, or an object of offsets by "
        f"partition (got {{'{'9' * 198}... of 5007 characters)",
    ),
    "a repetition": (
        changed(lambda document: document["mirror"].update(topics=["a{99999999999}"])),
        "mirror: topics must hold regular expressions of Java that can be verified (got 'a{99999999999}': a repetition "
        "has at most 32767, within others all together)",
    ),
    "a NUL in a name": (
        changed(lambda document: document["mirror"].update(topics=["items\0"])),
        "mirror.topics[0]: must be text without a NUL character (got it there, the value is not shown)",
    ),
    "a NUL in a key": (
        changed(lambda document: document["source"]["client_config"].update({"ssl.ca\0.pem": "x"})),
        "a key of source.client_config: must be text without a NUL character (got it there, the value is not shown)",
    ),
    "half a character": (
        changed(lambda document: document["mirror"].update(name="mm2\ud800")),
        "mirror.name: must be text without half of a character (a lone surrogate) (got it there, the value is not "
        "shown)",
    ),
    "a port": (
        changed(lambda document: document["target"]["client_config"].update({"bootstrap.servers": "a:1,b:65536"})),
        "target.client_config: bootstrap.servers must have ports of 1 to 65535 (got b:65536)",
    ),
    "a port of Connect": (
        changed(lambda document: document["mirror"].update(connect_url="http://a:65536")),
        "mirror: connect_url must be a URL http://HOST:PORT or https://HOST:PORT with a port of 1 to 65535 "
        "(got 'http://a:65536'). Correct the URL.",
    ),
    "a key that stands twice": (
        json.dumps(GOOD).replace('"mirror": {', '"mirror": {"topics": ["other"], "naming": "identity", '),
        "mirror: 'topics' must be given once (got it several times)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_fault_is_named_once(tmp_path: Path, case: str) -> None:
    text, expected = WRONG[case]
    assert problems(text, tmp_path) == [expected]


@pytest.mark.parametrize("case", ["NaN", "Infinity", "a great number", "a NUL in a name", "a key that stands twice"])
def test_a_fault_ends_with_exit_2_one_line_and_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    text, expected = WRONG[case]
    code, report = run(tmp_path, text, monkeypatch)
    assert (code, report["verdict"], report["error"]) == (2, "error", expected)
    assert capsys.readouterr() == ("", expected + "\n")


def test_faults_are_reported_together(tmp_path: Path) -> None:
    text = changed(lambda document: document["mirror"].update(name="a\0", topics=["[", r"\X"], naming="other"))
    text = text.replace('"limits": {}', '"limits": {"duplicates_max": NaN, "duplicates_max": 1, "deadline_seconds": 0}')
    found = problems(text, tmp_path)
    words = ("mirror.name", "'duplicates_max' must be given once", "'['", r"\\X", "naming", "deadline_seconds")
    assert [word for word in words if not any(word in one for one in found)] == []
    assert len(found) == len(words)


@pytest.mark.parametrize("depth", [40, 950, DEEP])
def test_a_document_that_is_nested_too_deep_is_refused_with_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], depth: int
) -> None:
    nested = json.dumps(GOOD).replace('"limits": {}', f'"limits": {"[" * depth}{"]" * depth}')
    code, report = run(tmp_path, nested, monkeypatch)
    assert (code, report["verdict"]) == (2, "error")
    assert "nested too deep" in report["error"]
    said = capsys.readouterr().err
    assert said.splitlines() == [report["error"]]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xff\xfe", "as text (byte 0 of it is not UTF-8)"),
        (b"pass\0word", "as text without a NUL character"),
    ],
)
def test_a_password_file_that_is_not_text_is_named_and_not_shown(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "password").write_bytes(content)
    text = changed(
        lambda document: document["source"]["client_config"].update(
            {"sasl.password": {"file": str(tmp_path / "password")}}
        )
    )
    assert problems(text, tmp_path) == [
        f"source.client_config: sasl.password needs the file {tmp_path / 'password'} {reason}"
    ]


def test_a_password_of_the_environment_that_is_not_text_is_named(tmp_path: Path) -> None:
    assert problems(json.dumps(GOOD), tmp_path, {"SOURCE_PASSWORD": "pass\udcff"}) == [
        "source.client_config: sasl.password needs the environment variable SOURCE_PASSWORD as text without half of a "
        "character (a lone surrogate)"
    ]


@pytest.mark.parametrize("address", ["a:1", "a:65535", "[::1]:9092", "a", "SASL_SSL://a:9093", "::1"])
def test_an_address_with_a_port_or_without_one_is_good(address: str) -> None:
    document = copy.deepcopy(GOOD)
    document["target"]["client_config"]["bootstrap.servers"] = address
    parse(document, ENVIRONMENT)
