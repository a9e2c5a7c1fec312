"""Names by which people, alerts and other stacks find things."""

from types import ModuleType

RULES: tuple[ModuleType, ...] = ()
