"""Settings as a stack file would give them, and what the dialects make of their ends."""

import json
from typing import Any, TypeVar

from components.dialects import MirrorClusterSpec, Spec, dialect
from components.dialects.mirror_spec import Login
from settings.cluster import Cluster
from settings.mirrors import Mirror
from settings.model import Model
from settings.platform import Platform
from settings.users import User

HTTPS = {"ssl.endpoint.identification.algorithm": "https"}
V1 = Platform.model_validate({"type": "strimzi"})
V1BETA2 = Platform.model_validate({"version": "0.51.0"})
M = TypeVar("M", bound=Model)
LICENSE = {"accept": True, "use": "CloudPakForIntegrationNonProduction"}


def event_streams(version: str = "11.0.0", **more: Any) -> Platform:
    """IBM Event Streams of a release."""
    return Platform.model_validate({"type": "event-streams", "version": version, "license": LICENSE, **more})


def cluster(**settings: Any) -> Cluster:
    """A cluster by its keys in the stack file."""
    return _of(Cluster, {"name": "kafka-us", "namespace": "us", **settings})


def user(**settings: Any) -> User:
    """A user by its keys in the stack file."""
    return _of(User, {"name": "app", **settings})


def mirror(**settings: Any) -> Mirror:
    """A mirror by its keys in the stack file."""
    ends = {"source": {"stack": "dev", "alias": "us", "user": "reader"}, "target": {"alias": "eu", "user": "writer"}}
    return _of(Mirror, {"name": "mm2", **ends, "topics": ["items"], **settings})


def _of(model: type[M], values: dict[str, Any]) -> M:
    return model.model_validate_json(json.dumps(values), by_alias=True, by_name=False)


def side(alias: str, *, ca: str | None = "ca", tls: bool = True, **login: Any) -> MirrorClusterSpec:
    """One end: `us` is reached at us:9093 as user us-user, whose Secret has that name."""
    access = {
        "authentication": "scram-sha-512",
        "username": f"{alias}-user",
        "secret": f"{alias}-user",
        "password_key": "password",
        "certificate_key": "user.crt",
        "private_key_key": "user.key",
    }
    return MirrorClusterSpec(
        alias=alias,
        bootstrap_servers=f"{alias}:9093",
        tls=tls,
        ca_secret=(f"{alias}-{ca}", "ca.crt") if ca else None,
        login=Login(**(access | login)),
    )


def rendered_side(alias: str) -> Spec:
    """What every dialect writes for such an end, without its configuration."""
    return {
        "alias": alias,
        "bootstrapServers": f"{alias}:9093",
        "tls": {"trustedCertificates": [{"secretName": f"{alias}-ca", "certificate": "ca.crt"}]},
        "authentication": {
            "type": "scram-sha-512",
            "username": f"{alias}-user",
            "passwordSecret": {"secretName": f"{alias}-user", "password": "password"},
        },
    }


def mirror_spec(
    platform: Platform,
    settings: Mirror,
    *,
    version: str = "4.3.1",
    source: MirrorClusterSpec | None = None,
    target: MirrorClusterSpec | None = None,
) -> Spec:
    """The mirror's resource between `us` and `eu`, or between the given ends."""
    return dialect(platform).mirror(settings, version, platform, source or side("us"), target or side("eu"))


def source_config(spec: Spec) -> Spec:
    """Configuration of the source connector, in any dialect."""
    config: Spec = spec["mirrors"][0]["sourceConnector"]["config"]
    return config


def checkpoint_config(spec: Spec) -> Spec:
    """Configuration of the checkpoint connector, in any dialect."""
    config: Spec = spec["mirrors"][0]["checkpointConnector"]["config"]
    return config


def worker_config(spec: Spec) -> Spec:
    """Configuration of the workers, in any dialect."""
    config: Spec = spec["target"]["config"] if "target" in spec else spec["clusters"][1]["config"]
    return config


def source_cluster(spec: Spec) -> Spec:
    """The source's end, in any dialect."""
    end: Spec = spec["mirrors"][0]["source"] if "target" in spec else spec["clusters"][0]
    return end


def target_cluster(spec: Spec) -> Spec:
    """The target's end, in any dialect."""
    end: Spec = spec["target"] if "target" in spec else spec["clusters"][1]
    return end
