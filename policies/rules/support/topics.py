"""Topics that rules on the whole stack know: its KafkaTopics, and those of the source that the configuration lists."""

from collections.abc import Iterator, Sequence

from .clusters import topic_name
from .declaring import Config, Option, Resource
from .kinds import TOPIC
from .values import each, sequence

# The source's topics are resources of another stack, so that only the configuration can tell them.
SOURCE_TOPICS: dict[str, Option] = {
    "sourceTopics": {
        "type": "array",
        "items": {"type": "string"},
        "default": [],
        "description": "names of topics on the source cluster",
    }
}


def source_topics(config: Config) -> list[str]:
    """Topics that the option `sourceTopics` lists."""
    return [str(topic) for topic in sequence(config["sourceTopics"])]


def declared_topics(resources: Sequence[Resource]) -> list[str]:
    """The stack's own topics, by their names in Kafka, once each."""

    def check(resource: Resource) -> Iterator[str]:
        yield topic_name(resource.props)

    return list(dict.fromkeys(each((resource for resource in resources if resource.type_ in TOPIC), check)))


def known_topics(resources: Sequence[Resource], config: Config) -> list[str]:
    """The stack's own topics and those that the configuration lists, once each."""
    return list(dict.fromkeys([*declared_topics(resources), *source_topics(config)]))
