"""What a stack exports for people, commands and other stacks. Secrets are exported as Pulumi secrets."""

from collections.abc import Mapping
from typing import Any

import pulumi

from components.kafka.cluster import KafkaCluster
from components.kafka.mirror_maker_2 import MirrorMaker2
from components.kafka.topics import KafkaTopics
from components.kafka.users import KafkaUsers, passwords
from components.monitoring import Monitoring
from components.verification.verification import Verification


def outputs(
    kafka: KafkaCluster,
    users: KafkaUsers,
    topics: KafkaTopics,
    mirrors: Mapping[str, MirrorMaker2],
    verifications: Mapping[str, Verification],
    monitoring: Monitoring | None,
) -> dict[str, pulumi.Input[Any]]:
    """Return every output by its name."""
    return {
        "cluster": kafka.connection,
        "clusterCaCertificate": kafka.ca_certificate,
        "users": users.facts,
        "userPasswords": pulumi.Output.secret(passwords(users.credentials)),
        "userCredentials": pulumi.Output.secret(users.credentials),
        "topics": topics.names,
        "mirrors": {name: mirror.facts for name, mirror in mirrors.items()},
        "verificationRequests": {name: run.request for name, run in verifications.items()},
        "verificationEnvironment": {name: run.environment for name, run in verifications.items()},
        "verifications": {name: run.outcome for name, run in verifications.items()},
        "monitoring": monitoring.facts if monitoring else None,
    }
