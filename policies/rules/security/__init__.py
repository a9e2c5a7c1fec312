"""Who may talk to a cluster, and what must not be read by others."""

from types import ModuleType

from . import (
    hostname_verification,
    listener_authentication,
    listener_tls,
    mirror_superusers,
    mirror_tls,
    operator_pinned,
    pinned_images,
    plain_authentication,
    plain_secrets,
    resources_set,
    wildcard_acls,
)

RULES: tuple[ModuleType, ...] = (
    listener_tls,
    listener_authentication,
    mirror_tls,
    hostname_verification,
    plain_authentication,
    wildcard_acls,
    mirror_superusers,
    plain_secrets,
    pinned_images,
    operator_pinned,
    resources_set,
)
