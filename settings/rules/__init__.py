"""Rules that look at several settings together. Each returns the problems it finds; none raises."""

from settings.rules.active import fence
from settings.rules.cluster import cluster
from settings.rules.hints import hints
from settings.rules.kafka_resources import demo_clients, topics, users
from settings.rules.mirrors import RuleContext, mirrors
from settings.rules.operation import monitoring, operator, platform, verification
from settings.rules.siblings import reach, siblings

__all__ = [
    "RuleContext",
    "cluster",
    "demo_clients",
    "fence",
    "hints",
    "mirrors",
    "monitoring",
    "operator",
    "platform",
    "reach",
    "siblings",
    "topics",
    "users",
    "verification",
]
