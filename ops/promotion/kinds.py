"""Which settings are the same in every stage, and which belong to a stage: the one table that decides what travels.

Every key that a promotion can meet stands here, under the settings model that holds it; a key that does not is an
error, and a test holds the table against the models. Owns nothing but this decision.
"""

import re
from collections.abc import Mapping
from enum import StrEnum


class Kind(StrEnum):
    """What a promotion does with a setting."""

    TRAVELS = "travels"
    """The same in every stage: the target gets the source's value, and none if the source has none."""
    PINS = "travels where it is given"
    """A version: the target gets it if the source pins one, and keeps its own otherwise."""
    WITHIN = "by its own keys"
    """A mapping, or a list of things with a name: each key of it is decided by itself."""
    STAYS = "stays"
    """Belongs to a stage: never travels."""


_TABLE: Mapping[str, Mapping[Kind, str]] = {
    "Stack": {
        Kind.WITHIN: "platform operator cluster topics mirrors verification",
        # Names, rights and Secrets of people and applications of one site; clients of a demo; who is woken by what.
        Kind.STAYS: "users demoClients monitoring",
    },
    "Platform": {
        Kind.PINS: "apiVersion version",
        # Where it runs, and what a license was bought for.
        Kind.STAYS: "type distribution license cloudPak",
    },
    "Operator": {
        Kind.PINS: "channel startingCsv folder",
        # Namespaces, catalogs and registries of a site, who approves there, how long it takes there.
        Kind.STAYS: "install namespace watchedNamespaces createNamespaces allNamespaces package source sourceNamespace "
        "catalog approval readySeconds",
    },
    "Cluster": {
        Kind.TRAVELS: "listenerPort authorization config configDefaults",
        Kind.PINS: "version",
        Kind.WITHIN: "listeners",
        # Names, addresses, sizes, what refers to Secrets or ConfigMaps there, exceptions of the policy, protection.
        Kind.STAYS: "name namespace createNamespace external brokers nodePool nodePools listener expose superUsers "
        "storage rack resources metrics components specOverrides annotations protect readySeconds",
    },
    "Listener": {
        Kind.TRAVELS: "port type tls authentication",
        # Addresses by which clients outside reach it.
        Kind.STAYS: "name host hostTemplate ingressClass nodePort annotations",
    },
    "Topic": {
        Kind.TRAVELS: "partitions config",
        # Replicas follow the number of brokers.
        Kind.STAYS: "name resource replicas annotations readySeconds",
    },
    "Mirror": {
        Kind.TRAVELS: "topics topicsExclude groups groupsExclude autoRestart heartbeats exactlyOnce offsetLagMax "
        "syncTopicAcls syncTopicConfigs configPropertiesExclude emitCheckpoints syncGroupOffsets refreshTopicsSeconds "
        "refreshGroupsSeconds emitCheckpointsSeconds syncGroupOffsetsSeconds syncTopicConfigsSeconds "
        "flushOffsetsSeconds producer consumer workerConfig sourceConnectorConfig checkpointConnectorConfig "
        "heartbeatConnectorConfig configDefaults",
        Kind.PINS: "version",
        # Ends and users, who is active, sizes; and what would copy everything again if it changed.
        Kind.STAYS: "name namespace source target reverse active clients failback state replicas scaling "
        "sourceTasksMax checkpointTasksMax replicationFactor internalTopics offsetSyncsLocation naming separator "
        "groupId configStorageTopic offsetStorageTopic statusStorageTopic sourceConfig resources jvm rack metrics "
        "logLevel specOverrides annotations acceptRereplication acceptSwitch countsFrom readySeconds",
    },
    "Verification": {
        Kind.TRAVELS: "rereadRecordsMax duplicatesMax lagRecordsMax lagSecondsMax canaryP99MsMax isolation",
        Kind.WITHIN: "run",
        # When and where it runs and reports, how long it takes there, and what may be unknown there.
        Kind.STAYS: "when deadlineSeconds mirrorWaitSeconds canary allowUnknown reportDir state pushGateway "
        "slackWebhook",
    },
    "Run": {
        Kind.PINS: "image sparkVersion",
        Kind.STAYS: "how imagePullSecrets namespace serviceAccount networkPolicy driver executor schedule envFrom "
        "reportClaim ttlSecondsAfterFinished",
    },
}
NEEDS_SAME = {"Operator": "install", "Run": "how"}
"""Models of which nothing travels unless this key is the same in both stacks: their versions mean another thing."""
# Options in free maps that follow a stage's brokers, machines, addresses or names.
_STAGE_OPTIONS = re.compile(
    r"min\.insync\.replicas|(.*\.)?replication\.factor|transaction\.state\.log\.min\.isr|.*\.throttled\.replicas"
    r"|num\..*threads(\..*)?|log\.dirs?|(broker|client)\.rack|(.*\.)?(client|group)\.id"
    r"|(.*\.)?bootstrap\.servers|(.*\.)?(sasl|ssl|security)\..*"
)


def kind_of(model: str, key: str) -> Kind:
    """Return what happens with a key of a settings model; raises KeyError for one that nobody has decided."""
    return _DECIDED[model, key]


def option_stays(option: str) -> bool:
    """Whether an option of a free map belongs to a stage."""
    return _STAGE_OPTIONS.fullmatch(option) is not None


_DECIDED = {
    (model, key): kind for model, kinds in _TABLE.items() for kind, keys in kinds.items() for key in keys.split()
}
