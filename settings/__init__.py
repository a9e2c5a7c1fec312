"""Typed settings of a stack: strict, defaulted, validated. Knows nothing of Pulumi.

A name of this package is imported when it is first used: the models of a stack take a quarter of a second, and many
commands need no more of the settings than how a name is checked.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from settings.errors import NAMESPACE, Problem, SettingsError
    from settings.files import beside, contexts, kubernetes_clusters
    from settings.parsing import KEYS
    from settings.stack import Stack, exported_users, hints, parse

__all__ = [
    "KEYS",
    "NAMESPACE",
    "Problem",
    "SettingsError",
    "Stack",
    "beside",
    "contexts",
    "exported_users",
    "hints",
    "kubernetes_clusters",
    "parse",
]

_MODULES = {
    "KEYS": "parsing",
    **dict.fromkeys(("NAMESPACE", "Problem", "SettingsError"), "errors"),
    **dict.fromkeys(("beside", "contexts", "kubernetes_clusters"), "files"),
    **dict.fromkeys(("Stack", "exported_users", "hints", "parse"), "stack"),
}


if not TYPE_CHECKING:  # a type checker knows the names above, and no others

    def __getattr__(name: str) -> Any:
        """Return what this package offers under this name."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = value
        return value
