r"""Mirrors into this stack's cluster: what is copied from where, how it is named, and how often it is synchronised.

Intervals are in seconds. Default exclusions are those of Kafka's DefaultTopicFilter and DefaultGroupFilter.
"""

from typing import Annotated, Literal

from pydantic import Field

from settings.model import Config, Count, Model, Resources, Seconds, empty
from settings.names import KafkaName, Label, Pattern

TOPICS_EXCLUDE = (r"mm2.*\.internal", r".*\.replica", r"__.*")
GROUPS_EXCLUDE = (r"console-consumer-.*", r"connect-.*", r"__.*")
SEPARATOR = "."
Patterns = Annotated[tuple[Pattern, ...], Field(min_length=1)]


class Source(Model):
    """Where records come from: another stack of this project, as one of the users that it declares."""

    stack: Label
    alias: Label
    user: Label


class Target(Model):
    """Where records go: this stack's cluster, as one of its users."""

    alias: Label
    user: Label


class Mirror(Model):
    """One KafkaMirrorMaker2. Names of Connect's group and topics start with the mirror's name unless they are set."""

    name: Label
    source: Source
    target: Target
    topics: Patterns
    topics_exclude: tuple[Pattern, ...] = TOPICS_EXCLUDE
    groups: Patterns = (".*",)
    groups_exclude: tuple[Pattern, ...] = GROUPS_EXCLUDE
    naming: Literal["identity", "prefixed"] = "identity"
    replicas: Count = 1
    source_tasks_max: Count = 1
    checkpoint_tasks_max: Count = 1
    replication_factor: Count = 3
    offset_syncs_location: Literal["source", "target"] = "target"
    sync_topic_acls: bool = False
    sync_group_offsets: bool = True
    refresh_topics_seconds: Seconds = 600
    refresh_groups_seconds: Seconds = 600
    emit_checkpoints_seconds: Seconds = 60
    sync_group_offsets_seconds: Seconds = 60
    flush_offsets_seconds: Seconds = 60
    group_id: KafkaName | None = None
    config_storage_topic: KafkaName | None = None
    offset_storage_topic: KafkaName | None = None
    status_storage_topic: KafkaName | None = None
    worker_config: Config = Field(default_factory=empty)
    source_config: Config = Field(default_factory=empty)
    source_connector_config: Config = Field(default_factory=empty)
    checkpoint_connector_config: Config = Field(default_factory=empty)
    resources: Resources = Field(default_factory=Resources)
    ready_seconds: Seconds = 600

    @property
    def connect_group(self) -> str:
        """Group id of the Connect workers."""
        return self.group_id or self.name

    @property
    def storage_topics(self) -> dict[str, str]:
        """Connect's three topics by what they hold: config, offset and status."""
        return {
            "config": self.config_storage_topic or f"{self.name}-configs",
            "offset": self.offset_storage_topic or f"{self.name}-offsets",
            "status": self.status_storage_topic or f"{self.name}-status",
        }

    @property
    def offset_syncs_topic(self) -> str:
        """Topic with pairs of source and target offsets; it is named after the other cluster than the one it is on."""
        other = self.source.alias if self.offset_syncs_location == "target" else self.target.alias
        return f"mm2-offset-syncs{SEPARATOR}{other}{SEPARATOR}internal"

    @property
    def checkpoints_topic(self) -> str:
        """Topic on the target with the translated group offsets."""
        return f"{self.source.alias}{SEPARATOR}checkpoints{SEPARATOR}internal"

    @property
    def connectors(self) -> dict[str, str]:
        """Names that the operator gives to the mirror's connectors, by kind."""
        pair = f"{self.source.alias}->{self.target.alias}"
        return {"source": f"{pair}.MirrorSourceConnector", "checkpoint": f"{pair}.MirrorCheckpointConnector"}
