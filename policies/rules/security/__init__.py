"""Who may talk to a cluster, and what must not be read by others."""

from types import ModuleType

RULES: tuple[ModuleType, ...] = ()
