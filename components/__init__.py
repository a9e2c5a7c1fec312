"""Pulumi components: each brings one part of a stack up and waits until it is ready."""

from components.kafka_cluster import KafkaCluster, KafkaClusterArgs
from components.kafka_topics import KafkaTopics, KafkaTopicsArgs
from components.kafka_users import KafkaUsers, KafkaUsersArgs
from components.mirror_maker_2 import Ends, MirrorMaker2, MirrorMaker2Args
from components.namespaces import Namespaces, NamespacesArgs
from components.operator_subscription import OperatorSubscription, OperatorSubscriptionArgs
from components.source_stack import SourceCluster, source_cluster
from components.verification import Verification, VerificationArgs

__all__ = [
    "Ends",
    "KafkaCluster",
    "KafkaClusterArgs",
    "KafkaTopics",
    "KafkaTopicsArgs",
    "KafkaUsers",
    "KafkaUsersArgs",
    "MirrorMaker2",
    "MirrorMaker2Args",
    "Namespaces",
    "NamespacesArgs",
    "OperatorSubscription",
    "OperatorSubscriptionArgs",
    "SourceCluster",
    "Verification",
    "VerificationArgs",
    "source_cluster",
]
