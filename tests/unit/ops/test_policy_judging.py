"""What is found in a preview's event log, and when there is no judgement."""

from pathlib import Path

import pytest

from ops.errors import OpsError
from ops.policy import Judgement
from ops.policy.judging import judge
from ops.pulumi import events
from ops.pulumi.stack import EngineRun

from ...support import event_logs as recorded

TOO_FEW = "topic items: replicas must be >= 3 (got 1). Records can be lost."


def preview(log: str, exit_code: int = 0, stderr: str = "") -> EngineRun:
    return EngineRun(log=events.read_event_log(log.splitlines()), exit_code=exit_code, stdout="", stderr=stderr)


def judged(*happened: recorded.Event, exit_code: int = 0, whole: bool = True) -> Judgement:
    log = recorded.log(*happened, whole=whole, failed=exit_code != 0)
    return judge("stg", Path("policies"), preview(log, exit_code), "mandatory")


def refusal(log: str, exit_code: int = 255, stderr: str = "") -> str:
    with pytest.raises(OpsError) as refused:
        judge("stg", Path("policies"), preview(log, exit_code, stderr), "mandatory")
    return str(refused.value)


def test_a_preview_without_violations_passes() -> None:
    found = judged(recorded.step("create", recorded.topic(), name="items"))
    assert (found.passed, found.findings, found.exceptions) == (True, (), ())
    assert (found.pack.name, found.pack.version, found.resources) == ("rt-inventory", "0.1.0", 1)


def test_a_violation_is_reported_without_colours_apart_from_its_rules_description() -> None:
    step = recorded.step("create", recorded.topic(), name="items")
    found = judged(recorded.violation("topic-replication", TOO_FEW), step, exit_code=255)
    (finding,) = found.findings
    assert (finding.rule, finding.severity, finding.level) == ("topic-replication", "high", "mandatory")
    assert finding.message == TOO_FEW
    assert finding.description == "What topic-replication wants."
    assert str(finding.resource) == "KafkaTopic items"
    assert not found.passed


def test_a_resource_that_the_log_does_not_show_has_the_name_of_its_urn() -> None:
    (finding,) = judged(recorded.violation("topic-replication", TOO_FEW), exit_code=255).findings
    assert str(finding.resource) == "KafkaTopic topics-items"


def test_an_advisory_finding_does_not_fail() -> None:
    assert judged(recorded.violation("topic-naming", "x", level="advisory")).passed


def test_mandatory_ones_come_first_then_the_gravest_and_each_once() -> None:
    twice = recorded.violation("c", "x", severity="medium")
    found = judged(
        recorded.violation("a", "x", level="advisory", severity="critical"),
        recorded.violation("b", "x", severity="low"),
        twice,
        twice,
        recorded.violation("d", "x", severity="critical"),
        recorded.violation("e", "x", severity=None),
        exit_code=255,
    )
    assert [finding.rule for finding in found.findings] == ["d", "c", "b", "e", "a"]
    assert found.findings[3].severity == "unspecified"


def test_active_exceptions_stand_apart_and_do_not_fail() -> None:
    lifted = recorded.violation("active-exceptions", "topic-replication until 2030-01-01: x", level="advisory")
    found = judged(lifted)
    assert found.findings == ()
    assert [finding.message for finding in found.exceptions] == ["topic-replication until 2030-01-01: x"]


def test_a_correction_names_the_properties_and_no_values() -> None:
    before, after = {"spec": {"replicas": 1, "same": 2}}, {"spec": {"replicas": 3, "same": 2, "new": "hush"}}
    found = judged(
        recorded.step("same", recorded.topic(), name="items"),
        recorded.correction("topic-replication", recorded.topic(), before, after),
    )
    (finding,) = found.findings
    assert finding.level == "remediate"
    assert finding.message == "KafkaTopic items: `pulumi up` with this pack corrects spec.new, spec.replicas."
    assert found.passed


def test_a_message_of_the_engine_without_a_description_is_kept_whole() -> None:
    event = recorded.violation("topic-replication", "", level="advisory", severity=None)
    event["policyEvent"]["message"] = "can't run policy 'topic-replication' during preview: unknown"
    (finding,) = judged(event).findings
    assert finding.message == "can't run policy 'topic-replication' during preview: unknown"


def test_a_preview_that_failed_for_another_reason_is_no_judgement() -> None:
    log = recorded.log(
        recorded.violation("topic-replication", TOO_FEW),
        recorded.diagnostic("2 problems in the stack file, nothing was done:\n  topics: x\n  users: y"),
        recorded.diagnostic("an unhandled error occurred: program exited with non-zero exit code: 1"),
    )
    assert refusal(log) == (
        "stack stg: preview must succeed before it can be judged (exit 255: it failed):\n"
        "  2 problems in the stack file, nothing was done:\n    topics: x\n    users: y"
    )


def test_an_error_of_a_resource_names_it() -> None:
    assert "KafkaTopic topics-items: no such kind" in refusal(
        recorded.log(recorded.diagnostic("no such kind", of=recorded.topic()))
    )


def test_a_traceback_is_reported_by_its_last_line() -> None:
    text = "Program failed with an unhandled exception:\nTraceback (most recent call last):\n  File x\nValueError: bad"
    reported = refusal(recorded.log(recorded.diagnostic(text)))
    assert reported.endswith("Program failed with an unhandled exception: ValueError: bad")


def test_a_pack_that_does_not_start_is_reported_with_its_reason() -> None:
    said = [recorded.diagnostic(line, severity="info#err") for line in ("Traceback", "  File x", "ValueError: bad")]
    message = refusal(recorded.lines(recorded.LOADED, *said), stderr='error: policy pack "policies" failed to start: x')
    assert message.endswith('ValueError: bad\n  policy pack "policies" failed to start: x')


def test_a_stack_that_does_not_exist_is_reported() -> None:
    assert refusal("", stderr="error: no stack named 'stg' found").startswith("stack stg: must exist in the backend.")


@pytest.mark.parametrize("exit_code", [1, 255])
def test_a_failure_without_a_reason_is_no_judgement(exit_code: int) -> None:
    assert f"(exit {exit_code}: it failed" in refusal(recorded.log(failed=True), exit_code)


def test_a_preview_that_wrote_no_log_is_no_judgement() -> None:
    assert "--event-log" in refusal("", 0)


def test_a_preview_that_broke_off_is_no_judgement() -> None:
    log = recorded.lines(recorded.STARTED, recorded.violation("topic-replication", TOO_FEW))
    assert "must succeed" in refusal(log, 255, "killed")


def test_a_preview_in_which_no_pack_ran_is_no_judgement() -> None:
    assert "must run" in refusal(recorded.log().replace('"rt-inventory|local|/work/policies": "0.1.0"', ""), 0)


def test_a_line_that_is_still_being_written_is_left_out() -> None:
    log = recorded.lines(recorded.STARTED) + '{"sequence": 7, "summaryEv'
    assert events.read_event_log(log.splitlines()).started
