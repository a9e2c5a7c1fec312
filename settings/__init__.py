"""Typed settings of a stack: strict, defaulted, validated. Knows nothing of Pulumi."""

from settings.draft import KEYS
from settings.errors import NAMESPACE, Problem, SettingsError
from settings.files import beside, contexts
from settings.stack import Stack, hints, parse

__all__ = ["KEYS", "NAMESPACE", "Problem", "SettingsError", "Stack", "beside", "contexts", "hints", "parse"]
