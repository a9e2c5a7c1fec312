"""Rules of the verification: the job has time left after its wait; where it runs has what that needs, and no more."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from settings.errors import Problem
from settings.mirrors import Mirror
from settings.patterns import copied
from settings.verification import Verification
from settings.verification_run import Run

# Longest name of a mirror whose verification runs in the cluster: with what controllers add, 52 characters are left of
# a CronJob's name, and 63 of a scheduled SparkApplication's driver.
NAME_LENGTH_MAX = {"job": 45, "spark-application": 29}
# Keys that say nothing beside the others, by how the job runs.
_IDLE = {
    "local": tuple(name for name in Run.model_fields if name != "how"),
    "job": ("executor", "spark_version"),
    "spark-application": (),
}

_STORE = re.compile(r"(file://(localhost)?/[^?#]*|s3://[^/@?#]+(/[^?#]*)?)", re.DOTALL)


def _is_store(uri: str) -> bool:
    """Whether the job can keep its state there; the value is never shown, it may hold what it must not."""
    return bool(uri.strip()) if "://" not in uri else _STORE.fullmatch(uri) is not None


def verification(settings: Verification, mirrors: Mapping[int, Mirror]) -> list[Problem]:
    """All rules of the verification."""
    problems = []
    if settings.mirror_wait_seconds >= settings.deadline_seconds:
        problems.append(
            Problem(
                "verification.mirrorWaitSeconds",
                f"verification: mirrorWaitSeconds must be < deadlineSeconds (got {settings.mirror_wait_seconds}, "
                f"deadlineSeconds {settings.deadline_seconds}). The comparison comes after the wait.",
            )
        )
    if settings.state is not None and not _is_store(settings.state):
        problems.append(
            Problem(
                "verification.state",
                "verification: state must be a folder, a file:// or an s3://bucket/prefix URI without credentials and "
                "query. Give credentials by the AWS environment variables.",
            )
        )
    problems += [
        Problem("verification.allowUnknown", f"verification: allowUnknown must name a check once (got {name} twice).")
        for name, count in Counter(settings.allow_unknown).items()
        if count > 1
    ]
    canary = settings.canary
    if canary is not None and not any(copied(canary.topic, one.topics, one.topics_exclude) for one in mirrors.values()):
        problems.append(
            Problem(
                "verification.canary.topic",
                f"verification: canary.topic must be one that a mirror copies (got {canary.topic}). "
                "Its records would never arrive.",
            )
        )
    if canary is None and settings.canary_p99_ms_max is not None:
        problems.append(
            Problem(
                "verification.canaryP99MsMax",
                f"verification: canaryP99MsMax must come with canary (got {settings.canary_p99_ms_max} and no canary). "
                "No latency would be measured.",
            )
        )
    problems += _run(settings, mirrors)
    return problems


def _run(settings: Verification, mirrors: Mapping[int, Mirror]) -> Iterator[Problem]:
    run = settings.run
    given = run.model_dump(exclude_defaults=True)
    for name in _IDLE[run.how]:
        if name in given:
            key = Run.model_fields[name].alias
            yield Problem(
                f"verification.run.{key}",
                f"verification: run.{key} must not be set with how {run.how} (nothing would read it). "
                "Remove it, or set run.how to where the job should run.",
            )
    if not run.in_cluster:
        return
    if run.image is None:
        yield Problem(
            "verification.run.image",
            f"verification: run.image must be given with how {run.how} (got nothing). "
            "Build images/verification, push it, and name it.",
        )
    if settings.report_dir is not None:
        yield Problem(
            "verification.reportDir",
            f"verification: reportDir must not be set with run.how {run.how} (got {settings.report_dir!r}). "
            "The pod writes its report into run.reportClaim.",
        )
    if settings.state is not None and not settings.state.startswith("s3://"):
        yield Problem(
            "verification.state",
            f"verification: state must be an s3:// URI with run.how {run.how} (a folder goes with the pod). "
            "Give credentials by run.envFrom.",
        )
    if run.how == "spark-application" and run.schedule and run.schedule.starting_deadline_seconds is not None:
        yield Problem(
            "verification.run.schedule.startingDeadlineSeconds",
            "verification: run.schedule.startingDeadlineSeconds must not be set with how spark-application "
            "(a ScheduledSparkApplication has none). Remove it.",
        )
    longest = NAME_LENGTH_MAX[run.how]
    for index, mirror in mirrors.items():
        name = mirror.opposite().name if mirror.reverse is not None else mirror.name
        if len(name) > longest:
            yield Problem(
                f"mirrors[{index}].name",
                f"mirror {name}: name must have at most {longest} characters with verification.run.how {run.how} "
                f"(got {len(name)}). Names of its pods are made of it. Shorten it.",
            )
