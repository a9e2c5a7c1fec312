"""When and how strictly mirrors are verified inside `pulumi up`."""

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import Field

from settings.model import Model, Seconds
from settings.names import KafkaName, SecretName
from settings.verification_run import Run

CheckName = Literal[
    "topics_present", "partitions_match", "replication_factor", "topic_config", "internal_topics", "acls_synced",
    "connectors_running", "lag", "canary_latency", "records_complete", "records_unique", "records_intact",
    "records_ordered", "records_foreign", "groups_synced", "groups_no_loss", "groups_reread_bounded",
    "checkpoints_consistent",
]  # fmt: skip
REPORTS = "reports"
Limit = Annotated[int, Field(ge=0)]
URL = r"^https?://[^\s/?#@]+(/[^\s?#]*)?$"


class Canary(Model):
    """Stamped records that each run sends through a topic which a mirror carries, to measure the latency.

    Whoever reads the topic gets them too, under the key `rt-inventory-canary`: use a topic of its own. The source's
    user needs Write on it (`canary` of the ACL set mirror-source).
    """

    topic: KafkaName
    records: Annotated[int, Field(ge=1, le=10_000)] = 100
    partition: Annotated[int, Field(ge=0)] | None = None


class Webhook(Model):
    """The Secret that holds a webhook's address, in the namespace of the pods, with `how: local` in the mirror's."""

    secret: SecretName
    key: str = "url"


class Verification(Model):
    """`on-change`: after a change of what the proof depends on, and until it passes; `always`: on every `up`."""

    when: Literal["on-change", "always", "never"] = "on-change"
    deadline_seconds: Seconds = 900
    mirror_wait_seconds: Seconds = 120
    reread_records_max: Limit = 50_000
    duplicates_max: Limit = 0
    lag_records_max: Limit | None = None
    lag_seconds_max: Limit | None = None
    canary: Canary | None = None
    canary_p99_ms_max: Limit | None = None
    allow_unknown: tuple[CheckName, ...] = ()
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    report_dir: str | None = None
    state: str | None = None
    push_gateway: Annotated[str, Field(pattern=URL)] | None = None
    slack_webhook: Webhook | None = None
    run: Run = Field(default_factory=Run)

    def report_path(self, stack: str, mirror: str) -> PurePosixPath:
        """Return the report's folder, below the project's folder unless it is absolute."""
        return PurePosixPath(self.report_dir or f"{REPORTS}/{stack}") / mirror

    @property
    def index_path(self) -> PurePosixPath:
        """The folder of the index of runs: that of all stacks' reports, or the one that is set."""
        return PurePosixPath(self.report_dir or REPORTS)
