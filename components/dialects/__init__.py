"""Custom resources per API version: each dialect renders the same settings in the shape that its operator reads."""

from components.dialects import strimzi_v1
from components.dialects.strimzi_v1 import Side

__all__ = ["Side", "strimzi_v1"]
