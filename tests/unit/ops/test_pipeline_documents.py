"""What the steps of a pipeline found, as Markdown, and where the previews' part of it comes from."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from ops.errors import OpsError
from ops.pipeline import documents
from ops.policy import planned
from ops.pulumi import events
from tests.support.make_targets import make

from ...support import event_logs as recorded

Content = dict[str, Any]
CHANGE = {"operation": "update", "kind": "KafkaTopic", "name": "items", "paths": ["spec.replicas"]}
FINDING = {"level": "mandatory", "severity": "high", "rule": "topic-replication", "message": "topic items: a | b"}
PREVIEW: Content = {
    "stack": "stg",
    "changes": [CHANGE, {**CHANGE, "operation": "create", "name": "orders"}],
    "findings": [FINDING],
    "exceptions": [],
    "summary": {"passed": False, "complete": True, "mandatory": 1, "advisory": 0},
}


def report(folder: Path, **contents: Content | str) -> str:
    for name, content in contents.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{name.replace('_', '-')}.json").write_text(text, encoding="utf-8")
    return documents.report(documents.read(folder))


def test_a_preview_reports_changes_and_findings(tmp_path: Path) -> None:
    text = report(tmp_path, preview_stg=PREVIEW)
    assert "| stg | 1 to update, 1 to create | **failed**: 1 mandatory |" in text
    assert "<details><summary>stg: 2 changes</summary>" in text
    assert "| update | KafkaTopic items | spec.replicas |" in text
    assert r"| mandatory | high | topic-replication | topic items: a \| b |" in text


def test_a_preview_that_failed_is_reported_as_such(tmp_path: Path) -> None:
    text = report(tmp_path, preview_stg={"stack": "stg", "error": "stack stg: must exist\nreally"})
    assert "| stg | preview failed | not judged |" in text
    assert "    stack stg: must exist\n    really" in text


def test_a_diff_shows_lines_in_a_fence_that_none_of_them_closes(tmp_path: Path) -> None:
    lines = ["--- a/topic.yaml", "+++ b/topic.yaml", "+    ```", "+    <!-- @all -->\x1b[31m"]
    text = report(tmp_path, diff_stg={**PREVIEW, "base": {"commit": "c0ffee", "error": None}, "diff": "\n".join(lines)})
    assert "| stg | 1 to update, 1 to create | **failed**: 1 mandatory |" in text
    assert "````diff\n--- a/topic.yaml\n+++ b/topic.yaml\n+    ```\n+    <!-- @all -->\\x1b[31m\n````" in text
    assert r"| mandatory | high | topic-replication | topic items: a \| b |" in text


def test_a_long_diff_is_cut_and_says_so(tmp_path: Path) -> None:
    lines = "\n".join(f"+{number}" for number in range(500))
    text = report(tmp_path, diff_stg={"stack": "stg", "diff": lines})
    assert "\n+399\n```\n\nand 100 more lines\n" in text
    assert "+400" not in text


@pytest.mark.parametrize("kind", ["diff", "preview"])
def test_a_stack_whose_job_ended_before_its_document_is_reported(tmp_path: Path, kind: str) -> None:
    report(tmp_path, **{f"{each}_stg": PREVIEW for each in ("diff", "preview")})
    report(tmp_path, **{f"{each}_dev": PREVIEW for each in {"diff", "preview"} - {kind}})
    text = documents.report(documents.of_pull_request(tmp_path, ["dev", "stg"], previewed=True))
    assert f"| dev | {kind} failed | not judged |" in text
    assert f"Its job ended before the {kind}." in text
    assert text.count("| stg | 1 to update, 1 to create |") == 2


def test_a_preview_is_missed_only_where_previews_are_switched_on(tmp_path: Path) -> None:
    found = documents.of_pull_request(tmp_path, ["dev", "stg"], previewed=False)
    assert [(document.kind, document.stack) for document in found] == [("diff", "dev"), ("diff", "stg")]
    assert all(document.error for document in found)


def test_a_document_that_was_not_written_to_its_end_is_an_error(tmp_path: Path) -> None:
    assert "preview-stg.json must be JSON" in report(tmp_path, preview_stg='{"stack": ')
    assert "drift-dev.json must be a JSON object" in report(tmp_path, drift_dev="[]")


def test_drift_verification_and_drill_have_a_section_each(tmp_path: Path) -> None:
    check = {"name": "records_complete", "ok": False, "expected": "0 lost", "observed": "3 lost"}
    text = report(
        tmp_path,
        drift_dev={"stack": "dev", "drifted": False, "changes": []},
        drift_stg={"stack": "stg", "drifted": True, "changes": [CHANGE]},
        verification_stg={
            "stack": "stg",
            "mirrors": [
                {"mirror": "mm2", "verdict": "fail", "recordsCompared": 9, "checks": [check]},
                {"mirror": "retail", "verdict": "pass", "recordsCompared": 8, "checks": [{**check, "ok": True}]},
            ],
        },
        verification_dev={"stack": "dev", "mirrors": [], "said": "nothing to verify: stack dev declares no mirror"},
        drill={
            "stack": "stg",
            "steps": [{"name": "drain", "words": "wait until all is copied", "done": False}],
            "cost": {"recordsNotMirrored": 0, "recordsReadAgain": {"orders": 7}, "activeOnTarget": ["app"]},
            "verification": None,
            "warnings": ["no `up` has verified this mirror yet"],
        },
    )
    assert "| dev | none |\n| stg | **1 drifted** |" in text
    assert "| stg | mm2 | **fail** | 9 |\n| stg | retail | pass | 8 |" in text
    assert text.count(r"| mm2 | records\_complete | 0 lost | 3 lost |") == 1
    assert "declares no mirror" in text
    assert r"- **Warning**: no \`up\` has verified this mirror yet" in text
    assert "| drain | wait until all is copied | no |" in text
    assert "- **stack**: stg\n- **cost**:\n  - **recordsNotMirrored**: 0\n  - **recordsReadAgain**:\n" in text
    assert "    - **orders**: 7\n  - **activeOnTarget**:\n    - app\n- **verification**: none" in text
    order = [text.index(title) for title in ("## Drift", "## Verification", "## Failover drill")]
    assert order == sorted(order)


def test_many_entries_are_counted_and_the_first_are_shown(tmp_path: Path) -> None:
    many = [{**CHANGE, "name": f"topic{number}", "paths": [f"p{path}" for path in range(9)]} for number in range(120)]
    text = report(tmp_path, preview_stg={**PREVIEW, "changes": many})
    assert "stg: 120 changes" in text
    assert "and 70 more" in text
    assert text.count("| update | KafkaTopic topic") == documents.SHOWN_MAX
    assert "p0, p1, p2, p3, p4, p5, and 3 more" in text


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("<!-- x -->", "&lt;!-- x --&gt;"),
        ("@everybody", "@&#8203;everybody"),
        ("`rm`", r"\`rm\`"),
        ("[x](y)", r"\[x\](y)"),
        ("#1 *a* b_c", r"\#1 \*a\* b\_c"),
        ("a\nb", "a<br>b"),
    ],
)
def test_what_a_message_says_stays_text(tmp_path: Path, written: str, shown: str) -> None:
    assert f"| {shown} |" in report(tmp_path, preview_stg={**PREVIEW, "findings": [{**FINDING, "message": written}]})


def test_a_cut_text_keeps_its_folds_closed() -> None:
    text = "<details><summary>x</summary>\n\n" + "| line |\n" * 100 + "\n</details>\n"
    short = documents.cut(text, 200, "cut")
    assert len(short) <= 200
    assert short.count("<details>") == short.count("</details>") == 1
    assert short.endswith("\n\ncut")
    assert documents.cut(text, len(text), "cut") == text


def test_an_empty_folder_has_nothing_to_report(tmp_path: Path) -> None:
    with pytest.raises(OpsError, match=r"must have a diff \(got none\)"):
        documents.of_pull_request(tmp_path, (), previewed=False)
    assert documents.report(documents.read(tmp_path)) == "No step left a document.\n"


def test_a_plan_names_each_resource_once_with_what_differs() -> None:
    component = f"{recorded.PROJECT}rt-inventory:kafka:Topics::topics"
    provider = f"{recorded.PROJECT}pulumi:providers:kubernetes::default"
    log = recorded.log(
        recorded.step("create", component),
        recorded.step("create", provider),
        recorded.step("refresh", recorded.topic("same"), name="same"),
        recorded.step("same", recorded.topic("same"), name="same"),
        recorded.step("update", recorded.topic(), name="items", diffs=["spec.replicas", "spec.config"]),
        recorded.step("create-replacement", recorded.topic("moved"), name="moved"),
        recorded.step("replace", recorded.topic("moved"), name="moved", diffs=["metadata.namespace"]),
        recorded.step("delete-replaced", recorded.topic("moved"), name="moved"),
        recorded.step("delete", recorded.topic("gone"), name="gone"),
    )
    found = [
        (each.operation, each.resource.name, each.paths)
        for each in planned(events.read_event_log(log.splitlines()).steps)
    ]
    assert found == [
        ("update", "items", ("spec.config", "spec.replicas")),
        ("replace", "moved", ("metadata.namespace",)),
        ("delete", "gone", ()),
    ]


def test_what_pulumi_does_not_say_is_compared_without_values() -> None:
    step = recorded.step("update", recorded.topic(), name="items")
    sides = step["resourcePreEvent"]["metadata"]
    sides["old"]["inputs"] = {"spec": {"replicas": 3, "password": "hush-1"}}
    sides["new"]["inputs"] = {"spec": {"replicas": 2, "password": "hush-2"}}
    (change,) = planned(events.read_event_log(recorded.log(step).splitlines()).steps)
    assert change.paths == ("spec.password", "spec.replicas")
    assert "hush" not in json.dumps(change.as_json())


def test_the_summary_goes_where_github_shows_it_else_to_stdout(tmp_path: Path) -> None:
    report(tmp_path, preview_stg=PREVIEW)
    here = make("summary", f"DOCUMENTS={tmp_path}", environment={"PATH": "/usr/bin:/bin"})
    assert here.stdout.startswith("## Preview\n")
    page = tmp_path / "summary.md"
    there = make(
        "summary", f"DOCUMENTS={tmp_path}", environment={"PATH": "/usr/bin:/bin", "GITHUB_STEP_SUMMARY": str(page)}
    )
    assert (there.returncode, there.stdout) == (0, "")
    assert page.read_text(encoding="utf-8") == here.stdout


def test_a_document_is_its_owners_alone(tmp_path: Path) -> None:
    path = documents.write(tmp_path / "new", documents.PREVIEW, "acme/kafka/stg", {"stack": "stg"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["preview-stg.json"]
