"""Rules that look at several settings together. Each returns the problems it finds; none raises."""

from settings.rules.cluster import cluster
from settings.rules.demo_clients import demo_clients
from settings.rules.hints import hints
from settings.rules.mirrors import Around, mirrors
from settings.rules.monitoring import monitoring
from settings.rules.platform import operator, platform
from settings.rules.reach import reach
from settings.rules.siblings import siblings
from settings.rules.topics import topics
from settings.rules.users import users
from settings.rules.verification import verification

__all__ = [
    "Around",
    "cluster",
    "demo_clients",
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
