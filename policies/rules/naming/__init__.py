"""Names by which people, alerts and other stacks find things."""

from . import (
    cluster_names,
    internal_topic_names,
    metric_name_collision,
    mirror_names,
    namespace_names,
    stage_in_names,
    topic_names,
    user_names,
)

RULES = (
    namespace_names,
    cluster_names,
    user_names,
    topic_names,
    mirror_names,
    stage_in_names,
    metric_name_collision,
    internal_topic_names,
)
