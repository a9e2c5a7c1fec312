"""Rules that look at several settings together. Each returns the problems it finds; none raises."""

from settings.rules.cluster import cluster
from settings.rules.mirrors import Around, mirrors
from settings.rules.platform import operator, platform
from settings.rules.topics import topics
from settings.rules.users import users
from settings.rules.verification import verification

__all__ = ["Around", "cluster", "mirrors", "operator", "platform", "topics", "users", "verification"]
