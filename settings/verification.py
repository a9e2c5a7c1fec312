"""The verification of mirrors: when `pulumi up` runs it, how strict it is, where its job runs and on which schedule."""

import re
import zoneinfo
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from contract.check_names import CheckName
from settings.model import PINS, STAYS, TRAVELS, WITHIN, Count, Model, Seconds
from settings.names import KafkaName, Label, SecretName

REPORTS = "reports"
Limit = Annotated[int, Field(ge=0)]
URL = r"^https?://[^\s/?#@]+(/[^\s?#]*)?$"


class Canary(Model):
    """Stamped records that each run sends through a topic which a mirror carries, to measure the latency.

    Whoever reads the topic gets them too, under the key `rt-inventory-canary`: use a topic of its own. The source's
    user needs Write on it (`canary` of the ACL set mirror-source).
    """

    topic: KafkaName
    """Topic of the source that a mirror carries."""
    records: Annotated[int, Field(ge=1, le=10_000)] = 100
    """How many records a run sends."""
    partition: Annotated[int, Field(ge=0)] | None = None
    """Partition to send to. Without it all in turn."""


class Webhook(Model):
    """The Secret that holds a webhook's address, in the namespace of the pods, with `how: local` in the mirror's."""

    secret: SecretName
    """Name of the Secret."""
    key: str = "url"
    """Key of the address in the Secret."""


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
Span = Annotated[int, Field(ge=1, le=86_400)]


class Schedule(Model):
    """When to verify again after the deployment. Runs never overlap (`concurrencyPolicy: Forbid`)."""

    schedule: Cron
    """Five fields as cron has them."""
    time_zone: TimeZone = "UTC"
    """Time zone of the schedule."""
    suspend: bool = False
    """Start no run."""
    starting_deadline_seconds: Seconds | None = None
    """How late a run may start. Only for `job`."""
    successful_jobs_history_limit: History = 3
    """Finished runs that stay."""
    failed_jobs_history_limit: History = 3
    """Failed runs that stay."""


class Driver(Model):
    """The pod that compares; in a Job the only one. Its memory is `memory` (the heap) and `memoryOverhead` together."""

    cores: Count = 2
    """Cores that Spark uses at once."""
    core_request: Cpu | None = None
    """CPU that is requested. Without it `cores`."""
    core_limit: Cpu | None = None
    """Most CPU. Without it no limit."""
    memory: JavaMemory = "2g"
    """Heap of Java."""
    memory_overhead: JavaMemory = "1g"
    """Memory beside the heap, for Python among others."""


class Executor(Driver):
    """Pods that read and compare for the driver of a SparkApplication."""

    instances: Count = 2
    """How many."""


def _audit_driver() -> Driver:
    return Driver(core_request="500m")


def _audit_executor() -> Executor:
    return Executor(core_request="500m", memory="1g", memory_overhead="512m")


AUDIT = "rt-inventory-audit"
"""Name of the application of the audit's pods."""
AUDIT_PORT, AUDIT_PORT_NAME = 9404, "metrics"


class Audit(Model):
    """A pod beside each mirror that counts and digests the records of both sides all the time, see docs/audit.md.

    With `run.how: spark-application` a SparkApplication.
    """

    image: Image | None = None
    """Image of the job, as that of `run`. Without it that one."""
    image_pull_secrets: tuple[SecretName, ...] = ()
    """Secrets with which the image is pulled."""
    every_seconds: Span = 20
    """Seconds from the start of one reading of both sides to the next."""
    bucket_seconds: Span = 60
    """Seconds of record timestamps that are counted together. A change needs an empty claim."""
    within_seconds: Span = 60
    """Seconds after a bucket's end within which its records must be at the target."""
    state_claim: SecretName | None = None
    """PersistentVolumeClaim that keeps what was counted, and the report. Without it the audit begins again with each
    pod.
    """
    service_account: Label | None = None
    """A ServiceAccount that exists, in place of one without rights."""
    driver: Driver = Field(default_factory=_audit_driver)
    """Size of the pod."""
    executor: Executor = Field(default_factory=_audit_executor)
    """Number and size of the pods that read for it. Only with `run.how: spark-application`."""


class Run(Model):
    """`local`: a process beside Pulumi. `job` and `spark-application` run in the cluster, see docs/verification.md."""

    how: Annotated[Literal["local", "job", "spark-application"], STAYS] = "local"
    """A process beside Pulumi, a Kubernetes Job, or a SparkApplication of the Spark operator."""
    image: Annotated[Image | None, PINS] = None
    """Image of the job, built from `images/verification`, with a digest or a tag that does not move."""
    image_pull_secrets: Annotated[tuple[SecretName, ...], STAYS] = ()
    """Secrets with which the image is pulled."""
    namespace: Annotated[Label | None, STAYS] = None
    """Namespace of the pods. Without it the mirror's for a Job, and `<the mirror's>-verification` for a
    SparkApplication, whose driver may create pods: a pod may mount each Secret of its namespace.
    """
    service_account: Annotated[Label | None, STAYS] = None
    """A ServiceAccount that exists, in place of one with the least rights."""
    network_policy: Annotated[bool, STAYS] = True
    """Whether a NetworkPolicy admits the pods to the mirror's Connect, beside the operator's. Set `false` where the
    operator makes none for mirrors (`STRIMZI_NETWORK_POLICY_GENERATION=false`). This one alone would shut out the
    operator, the other workers and Prometheus.
    """
    spark_version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$"), PINS] = SPARK_VERSION
    """Version of Spark in the image."""
    driver: Annotated[Driver, STAYS] = Field(default_factory=Driver)
    """Size of the pod that compares."""
    executor: Annotated[Executor, STAYS] = Field(default_factory=Executor)
    """Number and size of the pods that help it. Only for `spark-application`."""
    schedule: Annotated[Schedule | None, STAYS] = None
    """Verify again and again."""
    env_from: Annotated[tuple[SecretName, ...], STAYS] = ()
    """Secrets whose keys become variables of the job, for example credentials of S3."""
    report_claim: Annotated[SecretName | None, STAYS] = None
    """PersistentVolumeClaim that keeps the reports. Without it they go with the pod."""
    ttl_seconds_after_finished: Annotated[Seconds | None, STAYS] = None
    """How long a finished run stays. Without it until the next one. An `up` after that time verifies again."""

    @property
    def in_cluster(self) -> bool:
        """Whether pods run the job."""
        return self.how != "local"

    def home(self, mirror_namespace: str) -> str:
        """Namespace of the pods that verify a mirror of a namespace."""
        default = f"{mirror_namespace}-verification" if self.how == "spark-application" else mirror_namespace
        return self.namespace or default


class Verification(Model):
    """`on-change`: after a change of what the proof depends on, and until it passes; `always`: on every `up`."""

    when: Annotated[Literal["on-change", "always", "never"], STAYS] = "on-change"
    """After a change of what the proof depends on, on every `up`, or never."""
    deadline_seconds: Annotated[Seconds, STAYS] = 900
    """How long the job may take."""
    mirror_wait_seconds: Annotated[Seconds, STAYS] = 120
    """How long it waits for the mirror to pass the cut."""
    reread_records_max: Annotated[Limit, TRAVELS] = 50_000
    """How many records a group may read again."""
    duplicates_max: Annotated[Limit, TRAVELS] = 0
    """How many records may be there twice."""
    lag_records_max: Annotated[Limit | None, TRAVELS] = None
    """How many records the mirror may be behind at the end of the run. Without it the lag is shown only."""
    lag_seconds_max: Annotated[Limit | None, TRAVELS] = None
    """How old the oldest record not yet mirrored may be at the end of the run. Without it that is shown only."""
    canary: Annotated[Canary | None, STAYS] = None
    """Records sent through a mirror to measure its latency. Without it none is sent."""
    canary_p99_ms_max: Annotated[Limit | None, TRAVELS] = None
    """How many milliseconds 99 of 100 canary records may take. Without it the latency is shown only."""
    allow_unknown: Annotated[tuple[CheckName, ...], STAYS] = ()
    """Checks that may have nothing to judge yet; those of records count again once the source holds records."""
    isolation: Annotated[Literal["read_committed", "read_uncommitted"], TRAVELS] = "read_committed"
    """Whether aborted transactions are read."""
    report_dir: Annotated[str | None, STAYS] = None
    """Folder of the reports and of their index. Without it the reports are in `reports/<stack>`, the index in
    `reports`.
    """
    state: Annotated[str | None, STAYS] = None
    """Folder or `s3://bucket/prefix` that remembers verified offsets. Without it every run compares everything."""
    push_gateway: Annotated[Annotated[str, Field(pattern=URL)] | None, STAYS] = None
    """Prometheus push gateway that gets the metrics of each run."""
    slack_webhook: Annotated[Webhook | None, STAYS] = None
    """Secret with the address of the Slack webhook that gets each run's verdict."""
    run: Annotated[Run, WITHIN] = Field(default_factory=Run)
    """Where the job runs, and whether it runs again after the deployment."""

    audit: Annotated[Audit | None, STAYS] = None
    """A pod beside each mirror that compares both sides all the time. Without it none; `{}` takes the defaults."""

    @property
    def audit_image(self) -> str | None:
        """Image of the audit's pods."""
        return (self.audit.image if self.audit else None) or self.run.image

    def report_path(self, stack: str, mirror: str) -> PurePosixPath:
        """Return the report's folder, below the project's folder unless it is absolute."""
        return PurePosixPath(self.report_dir or f"{REPORTS}/{stack}") / mirror

    @property
    def index_path(self) -> PurePosixPath:
        """The folder of the index of runs: that of all stacks' reports, or the one that is set."""
        return PurePosixPath(self.report_dir or REPORTS)
