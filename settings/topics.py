"""Topics that the stack declares. Topics that a mirror creates on its target are not declared there."""

from pydantic import Field

from settings.annotations import Annotations, none
from settings.model import Config, Count, Model, Seconds, empty
from settings.names import KafkaName, SecretName, resource_name


class Topic(Model):
    """One topic with its partitions, replicas and configuration."""

    name: KafkaName
    resource: SecretName | None = None
    partitions: Count
    replicas: Count
    config: Config = Field(default_factory=empty)
    annotations: Annotations = Field(default_factory=none)
    ready_seconds: Seconds = 300

    @property
    def resource_name(self) -> str:
        """Name of the custom resource: the one that is set, else the topic's as Kubernetes can write it."""
        return self.resource or resource_name(self.name)
