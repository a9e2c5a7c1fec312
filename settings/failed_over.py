"""Topics of a mirror that are failed over by themselves: applications use them at the target, the rest at the source.

Owns what MirrorMaker is told to leave out because of them. Does not own the rights at either side (`fence.py`).
"""

import re
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from settings.mirror_parts import GROUPS_EXCLUDE, TOPICS_EXCLUDE
from settings.model import Model
from settings.names import KafkaName

if TYPE_CHECKING:
    from settings.mirrors import Mirror

_SPECIAL = re.compile(r"[^\w-]")
_ASCII_MAX = 0x7F


class FailedOver(Model):
    """Topics of the mirror that applications use at the target, although the source is active for the others.

    `python -m ops failover --topic` writes it, and a failover of the whole mirror removes it.
    """

    topics: Annotated[tuple[KafkaName, ...], Field(min_length=1)]
    """Names of topics that are not copied any more."""
    groups: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Groups that read them, whose offsets are not translated any more."""
    pending: tuple[KafkaName, ...] = ()
    """Those of `topics` that are on their way: applications may not write them at the target yet."""
    read_only: tuple[KafkaName, ...] = ()
    """Other topics, which are denied by name because the rule for a prefix is gone that stood for them."""

    @property
    def at_target(self) -> tuple[str, ...]:
        """Topics that applications use at the target."""
        return tuple(topic for topic in self.topics if topic not in self.pending)


def topics_left_out(mirror: "Mirror") -> tuple[str, ...]:
    """Return the expressions of topics that a mirror does not copy: `topicsExclude`, and what is failed over.

    A list of their own replaces Kafka's defaults, so these are in it where `topicsExclude` has none.
    """
    if mirror.failed_over is None:
        return mirror.topics_exclude
    return (*(mirror.topics_exclude or TOPICS_EXCLUDE), *map(exactly, mirror.failed_over.topics))


def groups_left_out(mirror: "Mirror") -> tuple[str, ...]:
    """Return the expressions of groups that a mirror does not translate: `groupsExclude`, and those that moved."""
    if mirror.failed_over is None or not mirror.failed_over.groups:
        return mirror.groups_exclude
    return (*(mirror.groups_exclude or GROUPS_EXCLUDE), *map(exactly, mirror.failed_over.groups))


def exclusions(mirror: "Mirror", join: str) -> dict[str, str | None]:
    """Return the fields of a KafkaMirrorMaker2 that name what it leaves out; None: there are none, Kafka's count."""
    found = {"topicsExcludePattern": topics_left_out(mirror), "groupsExcludePattern": groups_left_out(mirror)}
    return {field: join.join(entries) or None for field, entries in found.items()}


def exactly(name: str) -> str:
    """Return the expression of Java that matches a name and nothing else, without a comma, at which lists are split."""
    return _SPECIAL.sub(_escaped, name)


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character == ".":
        return r"\."
    return f"\\x{ord(character):02x}" if ord(character) <= _ASCII_MAX else character
