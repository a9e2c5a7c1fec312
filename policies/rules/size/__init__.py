"""What a stack may cost."""

from types import ModuleType

RULES: tuple[ModuleType, ...] = ()
