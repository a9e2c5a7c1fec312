"""Secrets are taken out of what a report says, however they are written there; the report stays what it is."""

import html
import json
from pathlib import Path
from typing import Any

import pytest

from kafka.errors import redact, redact_document
from spark.report import publish

from ...support import report_documents as made

KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvAIBADANBgkqhkiG9w0BAQ\nEFAASCBKYwggSiAgEAAoIBAQ==\n-----END PRIVATE KEY-----"
SECRETS = [KEY, 'with"quote-and\\back', "grün-und-bläulich", "<a>&b&<c>-tag", "s3cret"]


def telling(text: str) -> dict[str, Any]:
    """A report that tells a text wherever a report tells what others wrote."""
    found = made.faulty()
    found["error"], found["warnings"] = text, [text]
    for check in found["checks"]:
        check["observed"], check["evidence"] = text, [{"topic": "items", "name": text, "problem": [text, 7]}]
    return found


def written(folder: Path, document: dict[str, Any], secrets: list[str]) -> dict[str, str]:
    publish.write_report(folder, redact_document(document, secrets))
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


@pytest.mark.parametrize("secret", SECRETS)
def test_no_file_of_the_report_holds_a_secret_in_any_writing(tmp_path: Path, secret: str) -> None:
    files = written(tmp_path, telling(f"refused: {secret}, stop"), SECRETS)
    assert json.loads(files["report.json"])["error"] == "refused: [hidden], stop"
    piece = secret.splitlines()[-1] if "\n" not in secret else "MIIEvAIBADANBgkqhkiG9w0BAQ"
    for text in files.values():
        for form in (piece, json.dumps(piece)[1:-1], html.escape(piece), html.escape(json.dumps(piece)[1:-1])):
            assert form not in text


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_found_as_others_quote_it(secret: str) -> None:
    for reported in (secret, json.dumps(secret)[1:-1], html.escape(secret), " ".join(secret.split())):
        assert redact(f"got '{reported}'.", SECRETS) == "got '[hidden]'."


def test_a_line_of_a_key_is_hidden_too() -> None:
    assert redact("bad line EFAASCBKYwggSiAgEAAoIBAQ== there", [KEY]) == "bad line [hidden] there"


@pytest.mark.parametrize("secret", ["source", "true", "null", "fail", "lost", "records_complete", "partitions", "1234"])
def test_a_password_that_is_a_word_of_the_report_leaves_its_shape_and_its_verdict(tmp_path: Path, secret: str) -> None:
    plain = made.faulty()
    found = json.loads(written(tmp_path, plain, [secret])["report.json"])
    same = json.loads(json.dumps(plain))
    assert (found["verdict"], found["exit_code"], set(found)) == (same["verdict"], same["exit_code"], set(same))
    assert [(one["name"], one["ok"]) for one in found["checks"]] == [(one["name"], one["ok"]) for one in same["checks"]]
    assert shape(found) == shape(same)


def shape(value: Any) -> Any:
    """Keys, numbers and kinds, with every text as one."""
    if isinstance(value, dict):
        return {key: value[key] if key == "kind" else shape(value[key]) for key in value}
    if isinstance(value, list):
        return [shape(one) for one in value]
    return "text" if isinstance(value, str) else value


def test_a_short_secret_is_hidden_where_it_stands_alone_and_a_tiny_one_not_at_all() -> None:
    assert redact("pass: passed by pass", ["pass"]) == "[hidden]: passed by [hidden]"
    assert redact("an error at a", ["a", "", "an", "err"]) == "an error at a"


def test_a_longer_secret_goes_before_one_that_it_holds() -> None:
    assert redact("got long-secret-2", ["long-secret", "long-secret-2"]) == "got [hidden]"
