"""What an `up` reports while it waits, and just before the time is up."""

import re
import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest

from components import custom_resource
from components.custom_resource import Awaited, WaitReport, Waits, explained, remedy
from components.kubernetes_objects import UnreadableError
from settings.platform import Operator

from ...support.pulumi_engine import Engine, target, up

WHERE = {"kind": "KafkaMirrorMaker2", "namespace": "stg", "name": "mm2"}


def found(conditions: list[Mapping[str, Any]], generation: int = 1, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"generation": generation},
        "status": {"observedGeneration": 1, "conditions": conditions, **status},
    }


def not_ready(reason: str, message: str = "") -> dict[str, str]:
    return {"type": "NotReady", "status": "True", "reason": reason, "message": message}


READY = {"type": "Ready", "status": "True"}
SUBMISSION = """failed to submit spark application: failed to run spark-submit: WARNING: Using incubator modules
26/11/27 10:24:53 WARN Utils: Set SPARK_LOCAL_IP if you need to bind to another address
Exception in thread "main" KubernetesClientException: An error has occurred.
\tat io.fabric8.kubernetes.client.KubernetesClientException.launderThrowable(KubernetesClientException.java:177)
Caused by: java.io.IOException: Invalid DER: object is not integer
\t... 17 more
"""
FAILED = {"name": "src->tgt.MirrorSourceConnector", "tasks": [{"id": 1, "state": "FAILED", "trace": "a\nb"}]}


@pytest.mark.parametrize(
    ("given", "text", "in_progress"),
    [
        (None, "it does not exist", True),
        ({"metadata": {"generation": 1}}, "its operator has reported nothing", True),
        (found([not_ready("Creating")]), "NotReady is True, reason Creating", True),
        (
            found([not_ready("TimeoutException", "no\n answer")]),
            "NotReady is True, reason TimeoutException: no answer",
            False,
        ),
        (
            found([{"type": "Ready", "status": "False", "reason": "InvalidTopic"}]),
            "Ready is False, reason InvalidTopic",
            False,
        ),
        (found([READY], connectors=[FAILED]), "task 1 of src->tgt.MirrorSourceConnector FAILED: a b", False),
        (found([READY], generation=2), "its operator has not seen this change yet (generation 2, observed 1)", True),
        ({"metadata": {}, "status": {"phase": "Pending"}}, "Pending", True),
        (
            {"metadata": {}, "status": {"applicationState": {"state": "FAILED", "errorMessage": "no image"}}},
            "FAILED: no image",
            False,
        ),
        (
            {
                "metadata": {},
                "status": {"applicationState": {"state": "SUBMISSION_FAILED", "errorMessage": SUBMISSION}},
            },
            'SUBMISSION_FAILED: Exception in thread "main" KubernetesClientException: An error has occurred. '
            "Caused by: java.io.IOException: Invalid DER: object is not integer",
            False,
        ),
    ],
)
def test_an_object_that_is_not_ready_is_explained(given: Any, text: str, in_progress: bool) -> None:
    assert explained(given) == (text, in_progress)


@pytest.mark.parametrize(
    ("reason", "fix"),
    [
        ("its operator has reported nothing", "operator.install in the stack file"),
        ("NotReady is True, reason SaslAuthenticationException: Authentication failed", "Correct the user"),
        ("NotReady is True, reason ConnectTimeoutException", "must reach the address"),
        ("NotReady is True, reason UnsupportedKafkaVersion: 4.2.0", "Set a version"),
        ("NotReady is True, reason InvalidConfigurationException: Secret x is missing", "Make what the message names"),
        ("anything else", "kubectl describe -n stg kafkamirrormaker2 mm2"),
    ],
)
def test_a_reason_has_a_remedy(reason: str, fix: str) -> None:
    assert fix in remedy(reason, **WHERE)
    assert "readySeconds" in remedy(reason, **WHERE)


def test_an_application_of_spark_has_a_driver_that_says_more_and_an_operator_of_its_own() -> None:
    where = {"kind": "SparkApplication", "namespace": "stg-verification", "name": "mm2-audit"}
    found = remedy("FAILING: driver container failed with ExitCode: 2, Reason: Error", **where)
    assert found == (
        "Look at it: kubectl describe -n stg-verification sparkapplication mm2-audit. "
        "What its driver says: kubectl logs -n stg-verification mm2-audit-driver."
    )
    nothing = remedy("its operator has reported nothing", **where)
    assert nothing.startswith("A Spark operator must watch namespace stg-verification: ")
    assert "operator.install" not in nothing


def test_settings_that_a_remedy_names_exist() -> None:
    named = re.findall(r"\boperator\.(\w+)", remedy("its operator has reported nothing", **WHERE))
    assert named
    assert {*named} <= {field.alias for field in Operator.model_fields.values()}


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What is reported, by severity."""
    reported: list[tuple[str, str]] = []
    for severity in ("info", "error"):
        monkeypatch.setattr(
            pulumi.log, severity, lambda text, severity=severity, **_: reported.append((severity, text))
        )
    return reported


def report(answers: list[Any], seconds: int = 2) -> WaitReport:
    """A report every 0.2 s on an object whose answers are given, the last one for ever."""

    def read() -> Any:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    awaited = Awaited(api_version="v1", kind="KafkaMirrorMaker2", words="KafkaMirrorMaker2 mm2: Ready", seconds=seconds)
    return WaitReport(awaited, "stg", "mm2", read, every_s=0.2)


def test_a_wait_in_vain_ends_with_the_last_reason_that_says_more_than_in_progress(lines: list[tuple[str, str]]) -> None:
    waiting = report([found([not_ready("ConnectTimeout", "no answer")]), found([not_ready("Creating")])])
    waiting.start()
    waiting.join(10)
    assert lines[0][0] == "info"
    assert "of 2 s: NotReady is True, reason ConnectTimeout: no answer" in lines[0][1]
    assert [severity for severity, _ in lines].count("error") == 1
    assert lines[-1] == (
        "error",
        "waited 2 s in vain for KafkaMirrorMaker2 mm2: Ready (NotReady is True, reason Creating; before that "
        "NotReady is True, reason ConnectTimeout: no answer). "
        + remedy("ConnectTimeout", kind="KafkaMirrorMaker2", namespace="stg", name="mm2"),
    )


@pytest.mark.parametrize("last", [found([READY]), UnreadableError("the API server answers 403")])
def test_what_is_ready_at_the_last_moment_is_no_error(lines: list[tuple[str, str]], last: Any) -> None:
    waiting = report([last])
    waiting.start()
    waiting.join(10)
    errors = [text for severity, text in lines if severity == "error"]
    assert bool(errors) == isinstance(last, UnreadableError)


def test_nothing_is_reported_once_the_wait_is_over(lines: list[tuple[str, str]]) -> None:
    waiting = report([found([not_ready("Creating")])], seconds=600)
    waiting.start()
    time.sleep(0.5)
    waiting.end()
    waiting.join(10)
    assert not waiting.is_alive()
    assert {severity for severity, _ in lines} == {"info"}


class Clock:
    """Time that passes only while somebody waits, instead of the report's event and of `time`."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return False

    def is_set(self) -> bool:
        return False


def test_it_is_reported_every_ten_seconds_and_as_an_error_before_the_provider_gives_up(
    lines: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(custom_resource, "time", clock)
    awaited = Awaited(api_version="v1", kind="Kafka", words="Kafka own: Ready", seconds=35)
    waiting = WaitReport(awaited, "dev", "own", lambda: found([not_ready("Creating")]))
    monkeypatch.setattr(waiting, "_over", clock)
    waiting.run()
    assert [text for severity, text in lines if severity == "info"] == [
        f"waiting for Kafka own: Ready, {passed} of 35 s: NotReady is True, reason Creating" for passed in (10, 20, 30)
    ]
    assert lines[-1][0] == "error"
    assert 30 < clock.now < 35


def test_a_wait_begins_with_what_is_waited_for_and_how_long(
    lines: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr(WaitReport, "start", lambda self: started.append(self.name))
    monkeypatch.setattr(pulumi, "ResourceHook", lambda name, callback: (name, callback))
    awaited = Awaited(api_version="v1", kind="Kafka", words="Kafka own: Ready", seconds=600)
    waits = Waits(awaited={"cluster": awaited})
    metadata = {"namespace": "dev", "name": "own"}
    args = SimpleNamespace(name="cluster", new_inputs={"metadata": metadata})
    waits.begin(args)  # type: ignore[arg-type]  # all of the arguments that are read
    assert lines == [("info", "waiting up to 600 s for Kafka own: Ready")]
    assert started == ["wait-Kafka-own"]
    report = waits.reports["cluster"]
    waits.end(args)  # type: ignore[arg-type]
    assert waits.reports == {}
    assert report._over.is_set()


def test_every_resource_that_is_waited_for_has_its_wait_explained() -> None:
    engine = Engine()
    up(engine, target())
    marked = {
        name: request for (_, name), request in engine.requests.items() if "pulumi.com/waitFor" in str(request.object)
    }
    assert {"cluster", "mm2"} <= {name.split("-")[0] for name in marked}
    for name, request in marked.items():
        hooks = request.hooks
        for begin, end in ((hooks.before_create, hooks.after_create), (hooks.before_update, hooks.after_update)):
            assert (list(begin), list(end)) == (["begin-wait"], ["end-wait"]), name
