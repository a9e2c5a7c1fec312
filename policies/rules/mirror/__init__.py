"""What makes a mirror complete, and keeps it from copying what it must not."""

from types import ModuleType

RULES: tuple[ModuleType, ...] = ()
