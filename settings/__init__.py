"""Typed settings of a stack: strict, defaulted, validated. Knows nothing of Pulumi."""

from settings.errors import NAMESPACE, Problem, SettingsError
from settings.stack import KEYS, Stack, parse

__all__ = ["KEYS", "NAMESPACE", "Problem", "SettingsError", "Stack", "parse"]
