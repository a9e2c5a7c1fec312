"""Pulumi components: each brings one part of a stack up and waits until it is ready."""

from components.accidents import refuse_accidents
from components.clients import Clients, ClientsArgs, write_clients
from components.copied_secrets import CopiedSecrets, CopiedSecretsArgs
from components.demo_clients import DemoClients, DemoClientsArgs, install_demo_clients
from components.flows import Flow, flows, sources
from components.internal_topics import internal_topics
from components.kafka_cluster import KafkaCluster, KafkaClusterArgs
from components.kafka_topics import KafkaTopics, KafkaTopicsArgs
from components.kafka_users import KafkaUsers, KafkaUsersArgs
from components.mirror_maker_2 import MirrorMaker2, MirrorMaker2Args
from components.monitoring import Monitoring, MonitoringArgs, watch
from components.namespaces import Namespaces, NamespacesArgs
from components.operator import install_operator
from components.ordering import after
from components.outputs import outputs
from components.verification import Verification, VerificationArgs

__all__ = [
    "Clients",
    "ClientsArgs",
    "CopiedSecrets",
    "CopiedSecretsArgs",
    "DemoClients",
    "DemoClientsArgs",
    "Flow",
    "KafkaCluster",
    "KafkaClusterArgs",
    "KafkaTopics",
    "KafkaTopicsArgs",
    "KafkaUsers",
    "KafkaUsersArgs",
    "MirrorMaker2",
    "MirrorMaker2Args",
    "Monitoring",
    "MonitoringArgs",
    "Namespaces",
    "NamespacesArgs",
    "Verification",
    "VerificationArgs",
    "after",
    "flows",
    "install_demo_clients",
    "install_operator",
    "internal_topics",
    "outputs",
    "refuse_accidents",
    "sources",
    "watch",
    "write_clients",
]
