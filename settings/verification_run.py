"""Where the verification job runs: beside Pulumi, as a Kubernetes Job, or on Spark's executors; once, or by a schedule.

Keys are called as Kubernetes' Job and CronJob and the Spark operator's SparkApplication call them.
"""

import re
import zoneinfo
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from settings.model import Count, Model, Seconds
from settings.names import Label, SecretName

SPARK_VERSION = "4.0.0"  # what requirements.txt pins, and what images/verification is built with
CPU, JAVA_MEMORY = r"^(\d+m|\d+(\.\d{1,3})?)$", r"^\d+[mMgG]$"
IMAGE = r"^[a-z0-9]([a-zA-Z0-9._:/-]*[a-zA-Z0-9])?(@sha256:[0-9a-f]{64})?$"
_FLOATING = re.compile(r"latest|latest-.*|main|master|edge|nightly|stable", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# Fields of a schedule as robfig/cron's ParseStandard reads them, which both controllers use: name, bounds, names.
_FIELDS = (
    ("minute", 0, 59, ()), ("hour", 0, 23, ()), ("day of month", 1, 31, ()), ("month", 1, 12, _MONTHS),
    ("day of week", 0, 6, _DAYS),
)  # fmt: skip
_MACROS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_PART = re.compile(r"(?P<all>[*?])|(?P<low>\w+)(?:-(?P<high>\w+))?")
_ZONE = re.compile(r"[A-Za-z]\w*([/+-]\w+)*")


def _cron(value: str) -> str:
    if value in _MACROS:
        return value
    fields = value.split()
    wrong = [
        f"{name} {text}"
        for text, (name, low, high, names) in zip(fields, _FIELDS, strict=False)
        if not _is_field(text, low, high, names)
    ]
    if value.startswith("@") or len(fields) != len(_FIELDS) or wrong:
        what = f"{', '.join(wrong)} in {value!r}" if wrong and len(fields) == len(_FIELDS) else repr(value)
        raise ValueError(
            f"must be five fields (minute hour day-of-month month day-of-week) or one of {', '.join(_MACROS)} "
            f"(got {what}). Correct it, for example '0 3 * * *'."
        )
    return value


def _is_field(text: str, low: int, high: int, names: Iterable[str]) -> bool:
    """Whether robfig/cron accepts one field: a list of `*`, values or ranges, each with a step or none."""
    numbers = {name: number + low for number, name in enumerate(names)}

    def number(word: str) -> int:
        return (
            numbers[word.lower()] if word.lower() in numbers else int(word) if word.isascii() and word.isdigit() else -1
        )

    for part in text.split(","):
        body, slash, step = part.partition("/")
        found = _PART.fullmatch(body)
        if found is None or (slash and (not step.isdigit() or int(step) < 1)):
            return False
        if not found["all"]:
            first, last = number(found["low"]), number(found["high"] or found["low"])
            if not low <= first <= last <= high:
                return False
    return True


def _zone(value: str) -> str:
    known = zoneinfo.available_timezones()  # empty on a machine without a database of them
    if not _ZONE.fullmatch(value) or value == "Local" or (known and value not in known):
        raise ValueError(f"must be a time zone by its IANA name (got {value!r}). Correct it, for example Europe/Paris.")
    return value


def _image(value: str) -> str:
    name, _, digest = value.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    if not re.fullmatch(IMAGE, value) or not (digest or (tag and not _FLOATING.fullmatch(tag))):
        raise ValueError(
            f"must be an image with a digest or a tag that does not move (got {value!r}). "
            "Otherwise a run can be another version than the one before. Name it as registry/name:1.2.3."
        )
    return value


Cron = Annotated[str, AfterValidator(_cron)]
TimeZone = Annotated[str, AfterValidator(_zone)]
Image = Annotated[str, AfterValidator(_image)]
Cpu = Annotated[str, Field(pattern=CPU)]
JavaMemory = Annotated[str, Field(pattern=JAVA_MEMORY)]
History = Annotated[int, Field(ge=0, le=100)]


class Schedule(Model):
    """When to verify again after the deployment. Runs never overlap (`concurrencyPolicy: Forbid`)."""

    schedule: Cron
    time_zone: TimeZone = "UTC"
    suspend: bool = False
    starting_deadline_seconds: Seconds | None = None
    successful_jobs_history_limit: History = 3
    failed_jobs_history_limit: History = 3


class Driver(Model):
    """The pod that compares; in a Job the only one. Its memory is `memory` (the heap) and `memoryOverhead` together."""

    cores: Count = 2
    core_request: Cpu | None = None
    core_limit: Cpu | None = None
    memory: JavaMemory = "2g"
    memory_overhead: JavaMemory = "1g"


class Executor(Driver):
    """Pods that read and compare for the driver of a SparkApplication."""

    instances: Count = 2


class Run(Model):
    """`local`: a process beside Pulumi. `job` and `spark-application` run in the cluster, see docs/verification.md."""

    how: Literal["local", "job", "spark-application"] = "local"
    image: Image | None = None
    image_pull_secrets: tuple[SecretName, ...] = ()
    namespace: Label | None = None
    service_account: Label | None = None
    network_policy: bool = True
    spark_version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")] = SPARK_VERSION
    driver: Driver = Field(default_factory=Driver)
    executor: Executor = Field(default_factory=Executor)
    schedule: Schedule | None = None
    env_from: tuple[SecretName, ...] = ()
    report_claim: SecretName | None = None
    ttl_seconds_after_finished: Seconds | None = None

    @property
    def in_cluster(self) -> bool:
        """Whether pods run the job."""
        return self.how != "local"
