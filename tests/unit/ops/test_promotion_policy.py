"""Every settings key is decided: it is the same in every stage, or it belongs to one."""

from collections.abc import Iterator
from typing import Annotated, Any, get_args

import pytest
from pydantic import BaseModel

from ops.promotion.difference import option_stays
from settings import cluster, mirrors, topics, verification
from settings.model import STAYS, WITHIN, Model, promotion_of
from settings.stack import Stack


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that a field holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models_in(part)


def undecided(model: type[BaseModel]) -> Iterator[str]:
    """Keys below a model that a promotion would meet and nobody has decided."""
    for name, field in model.model_fields.items():
        key = field.alias or name
        try:
            kind = promotion_of(model, key)
        except KeyError:
            yield f"{model.__name__}.{key}"
            continue
        if kind is WITHIN:
            inner = list(models_in(field.annotation))
            assert len(inner) == 1, f"{model.__name__}.{key}: must hold one model to be decided by its keys"
            yield from undecided(inner[0])


def test_every_settings_key_is_decided() -> None:
    assert not list(undecided(Stack)), "say at the field whether it travels"


def test_a_key_that_nobody_decided_is_found() -> None:
    class Topic(Model):
        """A model with one key whose field does not say it."""

        name: Annotated[str, STAYS]
        colour: str

    assert list(undecided(Topic)) == ["Topic.colour"]


@pytest.mark.parametrize(
    ("model", "keys"),
    [
        (Stack, "users"),
        (cluster.Cluster, "name namespace brokers storage resources superUsers protect annotations external"),
        (cluster.Listener, "host hostTemplate nodePort"),
        (topics.Topic, "replicas annotations"),
        (mirrors.Mirror, "source target state naming groupId offsetStorageTopic replicationFactor countsFrom replicas"),
        (verification.Verification, "reportDir state allowUnknown slackWebhook"),
    ],
)
def test_what_belongs_to_a_stage_never_travels(model: type[Model], keys: str) -> None:
    assert {promotion_of(model, key) for key in keys.split()} == {STAYS}


@pytest.mark.parametrize(
    "option",
    [
        *("min.insync.replicas", "default.replication.factor", "offsets.topic.replication.factor", "client.id"),
        *("leader.replication.throttled.replicas", "num.io.threads", "ssl.truststore.location", "client.rack"),
        *("sasl.jaas.config", "producer.override.bootstrap.servers", "transaction.state.log.min.isr"),
    ],
)
def test_options_that_follow_a_stages_brokers_or_addresses_stay(option: str) -> None:
    assert option_stays(option)


@pytest.mark.parametrize(
    "option", ["retention.ms", "cleanup.policy", "message.max.bytes", "batch.size", "num.partitions"]
)
def test_other_options_travel(option: str) -> None:
    assert not option_stays(option)
