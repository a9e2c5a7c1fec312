"""What belongs to one line of business only."""

from types import ModuleType

RULES: tuple[ModuleType, ...] = ()
