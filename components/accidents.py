"""Refuses, before anything happens, what nobody wants by accident: the mirrors are compared with the last `up`.

Owns when such a change ends the program. Does not own which changes these are.
"""

import os
from collections.abc import Sequence

import pulumi

from components.rereplication import rereplications
from components.source_stack import previous_outputs
from components.switching import switches
from settings.mirrors import Mirror


def refuse_accidents(mirrors: Sequence[Mirror]) -> None:
    """Raise RunError with every change that is not meant; a preview only warns of applications that change sides."""
    before = previous_outputs().get("mirrors") or {}
    again, sides = rereplications(mirrors, before), switches(mirrors, before, os.environ)
    if sides and pulumi.runtime.is_dry_run():
        pulumi.log.warn("\n".join(sides))
        sides = []
    if again or sides:
        raise pulumi.RunError("\n".join([*again, *sides]))
