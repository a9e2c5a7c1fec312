"""Who may talk to a cluster, and what must not be read by others."""

from types import ModuleType

from . import listener_authentication, listener_tls

RULES: tuple[ModuleType, ...] = (
    listener_tls,
    listener_authentication,
)
