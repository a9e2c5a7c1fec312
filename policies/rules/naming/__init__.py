"""Names by which people, alerts and other stacks find things."""

from . import cluster_names, mirror_names, namespace_names, topic_names, user_names

RULES = (namespace_names, cluster_names, user_names, topic_names, mirror_names)
