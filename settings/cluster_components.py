"""Parts of Event Streams beside the brokers: administration, REST producer and schema registry.

Fields are those of IBM's API reference for `eventstreams.ibm.com/v1beta2`.
"""

from pydantic import Field

from settings.model import Count, Model, Resources

# Field of the settings → field of the EventStreams resource.
COMPONENTS = {
    "admin_ui": "adminUI",
    "admin_api": "adminApi",
    "rest_producer": "restProducer",
    "apicurio_registry": "apicurioRegistry",
}


class Component(Model):
    """One part of Event Streams. It is there unless `enabled` is false; other fields are for `specOverrides`."""

    enabled: bool = True
    replicas: Count | None = None
    resources: Resources = Field(default_factory=Resources)


class Components(Model):
    """Which parts run beside the brokers of Event Streams; without any it is a bare Kafka.

    IBM's user interface asks the other three for what it shows.
    """

    admin_ui: Component | None = Field(default=None, alias="adminUI")
    admin_api: Component | None = None
    rest_producer: Component | None = None
    apicurio_registry: Component | None = None
