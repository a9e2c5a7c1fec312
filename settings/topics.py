"""Topics that the stack declares. Topics that a mirror creates on its target are not declared there."""

from pydantic import Field

from settings.model import Config, Count, Model, Seconds, empty
from settings.names import KafkaName, resource_name


class Topic(Model):
    """One topic with its partitions, replicas and configuration."""

    name: KafkaName
    partitions: Count
    replicas: Count
    config: Config = Field(default_factory=empty)
    ready_seconds: Seconds = 300

    @property
    def resource_name(self) -> str:
        """Name of the custom resource in Kubernetes, which knows fewer characters than Kafka."""
        return resource_name(self.name)
