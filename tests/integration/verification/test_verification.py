"""The verification job against real brokers: what it says of equal logs, of a wrong password, and of secrets."""

import json
import time

import jsonschema
import pytest

from sandbox.state import PROJECT

from ...support.written_topics import Bench, findings, own_name, record


def test_equal_logs_pass(bench: Bench) -> None:
    topic = bench.topic(own_name("equal"))
    for side in ("source", "target"):
        bench.write(side, topic, [record(n) for n in range(500)])
    result, report = bench.verify([topic])
    assert result.returncode == 0, result.stderr + result.stdout
    assert report["records_compared"] == 500
    jsonschema.validate(report, json.loads((PROJECT / "spark/report/report.schema.json").read_text("utf-8")))
    assert not findings(report, topic)


@pytest.mark.parametrize("age_s", [0, 3600])
def test_what_is_behind_an_open_transaction_is_not_called_complete_once_it_hangs(bench: Bench, age_s: int) -> None:
    topic = bench.topic(own_name("open"))
    written = int(time.time() - age_s) * 1000
    for side in ("source", "target"):
        bench.write(side, topic, [record(n) for n in range(10)])
    producer = bench.open_transaction("source", topic, [record(10, timestamp=written)])
    bench.write("source", topic, [record(11, timestamp=written)])  # the target lacks it
    result, report = bench.verify([topic])
    producer.abort_transaction()
    behind = f"{topic}-0: source offsets 10 to 11 are not judged: a transaction"
    (check,) = (one for one in report["checks"] if one["name"] == "records_complete")
    if age_s:
        assert (result.returncode, check["ok"]) == (1, None), result.stderr + result.stdout
        assert f"{behind} was open there from the cut" in check["observed"]
        assert "offset 10, is more than 15 min old by its timestamp" in check["observed"]
    else:
        assert (result.returncode, check["ok"]) == (0, True), result.stderr + result.stdout
        assert f"{behind} was open" in "".join(report["warnings"])
    assert not findings(report, topic)


def test_a_wrong_password_ends_in_one_message_without_the_password(bench: Bench) -> None:
    name = bench.request["target"]["client_config"]["sasl.password"]["env"]
    result, report = bench.verify(["items"], **{name: "made-up-wrong-password"})
    assert result.returncode == 2
    assert "authentication failed" in result.stderr
    assert "made-up-wrong-password" not in result.stderr + result.stdout
    assert "Traceback" not in result.stderr
    assert (report["verdict"], report["partitions"]) == ("error", [])
    assert "made-up-wrong-password" not in json.dumps(report)


def test_no_secret_stands_in_a_report(bench: Bench) -> None:
    texts = [path.read_text() for path in bench.folder.rglob("*") if path.is_file()]
    secrets = [value for name, value in bench.environment.items() if name.endswith("PASSWORD")]
    assert secrets
    assert not any(secret in text for secret in secrets for text in texts)
