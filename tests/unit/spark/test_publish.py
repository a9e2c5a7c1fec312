"""Where a report goes besides its folder, with a real HTTP server on the other side."""

import argparse
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from prometheus_client.openmetrics import exposition, parser
from prometheus_client.parser import text_string_to_metric_families

from contract import verification_metrics
from contract.fields import RequestError
from spark.report import publish
from spark.report import publish as slack
from spark.report.publish import Destinations

from ...support import report_documents as made


class Listener(ThreadingHTTPServer):
    """Keeps what it is sent and answers with a chosen status."""

    status = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Keeper)
        self.got: list[tuple[str, str, bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Keeper(BaseHTTPRequestHandler):
    server: Listener

    def keep(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.got.append((self.command, self.path, body))
        self.send_response(self.server.status)
        self.end_headers()

    do_POST = do_PUT = keep  # noqa: N815 - the names that the handler calls

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that it overrides
        """Say nothing."""


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join(10)


def values(text: str) -> dict[tuple[str, ...], float]:
    return {
        (
            sample.name.removeprefix("rt_inventory_verification_"),
            *(v for k, v in sample.labels.items() if k not in ("stack", "mirror")),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_report_verdict_checks_findings_groups_and_lag(tmp_path: Path) -> None:
    publish.to_file(tmp_path / "new" / "mm2.prom", made.faulty() | {"stack": "stg"})
    text = (tmp_path / "new" / "mm2.prom").read_text(encoding="utf-8")
    assert all(line.startswith(("#", "rt_inventory_verification_")) for line in text.splitlines())
    assert text.count('mirror="mm2",stack="stg"') == len(
        [line for line in text.splitlines() if not line.startswith("#")]
    )
    found = values(text)
    assert found[("verdict", "fail")] == 1
    assert found[("verdict", "pass")] == 0
    assert found[("check", "records_complete")] == 0
    assert found[("check", "connectors_running")] == -1
    assert found[("check", "topics_present")] == 1
    assert found[("finding_records", "lost")] == 1250
    assert found[("finding_records", "no_overlap")] == 0, "what was looked for and not found is reported"
    assert found[("group_skipped_records", "billing")] == 50
    assert found[("lag_records",)] == 4
    assert found[("duration_seconds",)] == 42.1
    assert found[("finished_timestamp_seconds",)] == 1767323087


@pytest.mark.parametrize("flag", ["active", "unclaimed"])
def test_no_metric_says_that_a_group_would_skip_what_its_members_may_have_read(tmp_path: Path, flag: str) -> None:
    report = made.faulty()
    report["groups"] = [dict(row) | {flag: True} for row in report["groups"]]
    publish.to_file(tmp_path / "mm2.prom", report)
    found = values((tmp_path / "mm2.prom").read_text(encoding="utf-8"))
    assert {value for key, value in found.items() if key[0] == "group_skipped_records"} == {0}
    again = sum(value for key, value in found.items() if key[0] == "group_repeated_records")
    assert again == (0 if flag == "active" else sum(row["repeated"] for row in report["groups"] if not row["active"]))


def test_a_run_that_could_not_judge_has_metrics_too(tmp_path: Path) -> None:
    publish.to_file(tmp_path / "mm2.prom", made.stopped())
    found = values((tmp_path / "mm2.prom").read_text(encoding="utf-8"))
    assert found[("verdict", "error")] == 1
    assert found[("exit_code",)] == 2
    assert not [key for key in found if key[0] == "finding_records"], "nothing was looked for"


def test_a_result_of_which_only_the_verdict_is_known_reports_nothing_else() -> None:
    reported = verification_metrics.registry({"mirror": "mm2", "verdict": "pass"})
    assert {sample.name for family in reported.collect() for sample in family.samples} == {
        "rt_inventory_verification_verdict"
    }


def test_the_metrics_are_open_metrics() -> None:
    reported = verification_metrics.registry(made.faulty() | {"stack": "stg"})
    text = exposition.generate_latest(reported).decode()  # type: ignore[no-untyped-call]  # the package has no types here
    families = {one.name: one for one in parser.text_string_to_metric_families(text)}  # type: ignore[no-untyped-call]
    assert text.endswith("# EOF\n")
    assert families["rt_inventory_verification_duration_seconds"].unit == "seconds"
    assert families["rt_inventory_verification_finding_records"].unit == "records"
    assert {family.type for family in families.values()} == {"gauge"}


def test_a_metrics_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "mm2.prom"
    file.write_text("old", encoding="utf-8")
    held = file.open(encoding="utf-8")
    publish.to_file(file, made.clean())
    assert held.read() == "old", "who reads meanwhile sees the old file to its end"
    held.close()
    assert [path.name for path in tmp_path.iterdir()] == ["mm2.prom"]


def test_a_push_replaces_the_group_of_its_mirror(listener: Listener) -> None:
    publish.push(listener.url, made.faulty() | {"stack": None})
    ((method, path, body),) = listener.got
    assert (method, path) == ("PUT", "/metrics/job/rt_inventory_verification/mirror/mm2")
    assert values(body.decode())[("verdict", "fail")] == 1


def test_mirrors_of_one_name_in_two_stacks_do_not_replace_each_other(listener: Listener) -> None:
    publish.push(listener.url, made.faulty() | {"stack": "stg"})
    ((_, path, _),) = listener.got
    assert path == "/metrics/job/rt_inventory_verification/mirror/mm2/stack/stg"


def test_a_message_has_verdict_failed_checks_counts_and_the_report(listener: Listener) -> None:
    slack.send(f"{listener.url}/services/T0/B0/s3cret", made.faulty(), Path("/reports/report.html"))
    ((method, path, body),) = listener.got
    assert (method, path) == ("POST", "/services/T0/B0/s3cret")
    sent = json.loads(body)
    assert sent["text"] == "Mirror mm2: fail"
    assert sent["blocks"][0]["type"] == "header"
    text = json.dumps(sent, ensure_ascii=False)
    for shown in (
        "records_complete",
        "1250 lost",
        f"{made.faulty()['records_compared']} records compared",
        "/reports/report.html",
        "Do not fail over",
    ):
        assert shown in text


def test_nothing_in_a_message_is_a_link_or_too_long() -> None:
    document = made.faulty()
    document["checks"][0] |= {"ok": False, "observed": "<!channel> & " + "x" * 9000}
    sent = slack.message(document, Path("r.html"))
    texts = [block["text"]["text"] for block in sent["blocks"] if block["type"] == "section"]
    assert max(map(len, texts)) <= 3000
    assert "<!channel>" not in json.dumps(sent)


@pytest.mark.parametrize("kind", ["refused", "closed"])
def test_a_destination_that_fails_is_reported_without_its_secret_and_stops_no_other(
    listener: Listener, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    listener.status = 503
    base = listener.url if kind == "refused" else "http://127.0.0.1:1"
    wanted = Destinations(metrics_file=tmp_path / "m.prom", push_gateway=base, slack_webhook=f"{base}/s3cret")
    publish.publish(made.clean(), Path("report.html"), wanted)
    said = capsys.readouterr().err
    assert said.count("The verdict stays as it is.") == 2
    assert f"--push-gateway {base}: not published" in said
    assert "--slack-webhook: not published" in said
    assert "s3cret" not in said + repr(wanted)
    assert (tmp_path / "m.prom").exists()


def test_a_metrics_file_that_cannot_be_written_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    publish.publish(made.clean(), Path("r"), Destinations(metrics_file=tmp_path / "file" / "m.prom"))
    assert "not published" in capsys.readouterr().err


def options(webhook: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    publish.add_options(parser)
    return parser.parse_args(["--slack-webhook", webhook] if webhook else [])


def test_the_webhook_is_read_from_the_environment_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("https://hooks.example.com/s3cret\n", encoding="utf-8")
    environment = {"HOOK": "https://hooks.example.com/s3cret"}
    for reference in ("env:HOOK", f"file:{file}"):
        found = publish.destinations(options(reference), environment)
        assert found.slack_webhook == "https://hooks.example.com/s3cret"
        assert found.secrets == ["https://hooks.example.com/s3cret"]
        assert "s3cret" not in repr(found)
    assert publish.destinations(options(None), {}).secrets == []


@pytest.mark.parametrize("reference", ["https://hooks.example.com/s3cret", "env:", "env:MISSING", "file:/nowhere/s"])
def test_a_webhook_in_plain_text_or_not_to_be_found_is_refused_and_not_shown(reference: str) -> None:
    with pytest.raises(RequestError) as refused:
        publish.destinations(options(reference), {})
    assert "--slack-webhook" in str(refused.value)
    assert "s3cret" not in str(refused.value)
