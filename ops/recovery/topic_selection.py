"""Which topics of a mirror a failover takes, and which groups go with them.

Owns the choice by a pattern, its refusals, and that an interrupted failover keeps what it chose. Changes nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract import java_patterns
from contract.java_character_class import PatternError
from kafka.cluster import Cluster
from ops.errors import OpsError
from ops.pulumi import stack_file
from ops.recovery import fence, mirror_context
from ops.recovery.fence import FENCING
from ops.recovery.journal import Journal
from ops.recovery.mirror_context import MirrorContext, connected
from settings.mirror_parts import FailedOver
from settings.text import format_names

TOPIC, TOPICS, EARLIER = "topic", "topics", "earlier"
"""Keys of the options in the journal: the pattern, the names, and what was failed over by itself before."""
_UNCHANGED = "Nothing was changed."
_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class TopicSelection:
    """Topics by name that a pattern has chosen. `earlier` are those that were failed over by themselves before."""

    pattern: str
    topics: tuple[str, ...]
    earlier: FailedOver | None = None

    def kept(self) -> dict[str, Any]:
        """Return what must be the same when an interrupted failover goes on."""
        known = {} if self.earlier is None else {EARLIER: self.earlier.model_dump(mode="json", exclude_defaults=True)}
        return {TOPIC: self.pattern, TOPICS: list(self.topics), **known}


def select(known: MirrorContext, pattern: str, journal: Journal, asked: Mapping[str, Any]) -> TopicSelection:
    """Return the topics that the pattern matches now, or those with which the failover under way began.

    Args:
        known: The mirror.
        pattern: A regular expression of Java, which must match a whole name.
        journal: Of the mirror.
        asked: The other options, for the message.

    Raises:
        OpsError: another operation is under way; the pattern cannot be read, or matches nothing or all that is left.
    """
    if journal.may_have_changed:
        entry = journal.entry or {}
        options = entry.get("options") or {}
        if entry.get("command") != "failover" or options.get(TOPIC) != pattern:
            raise journal.unfinished("failover", {**asked, TOPIC: pattern})
        earlier = options.get(EARLIER)
        return TopicSelection(
            pattern=pattern,
            topics=tuple(options[TOPICS]),
            earlier=None if earlier is None else FailedOver.model_validate(_tuples(earlier)),
        )
    mirror, split = known.request.mirror, known.failed_over
    try:
        expression = java_patterns.compiled(pattern)
    except PatternError as error:
        raise OpsError(
            f"--topic: must be a regular expression of Java (got {pattern!r}: {error}). {_UNCHANGED}"
        ) from None
    rest = connected(known.source()).names(mirror.carries_topic)
    topics = tuple(name for name in rest if expression.fullmatch(name))
    if not topics:
        moved = f"; at the target already: {format_names(split.topics)}" if split else ""
        raise OpsError(
            f"--topic: must match a topic of mirror {known.mirror} (got {pattern!r}, allowed "
            f"{format_names(rest)}{moved}). {_UNCHANGED}"
        )
    if len(topics) == len(rest):
        raise OpsError(
            f"--topic: must leave a topic of mirror {known.mirror} at the source (got {pattern!r}, which matches all "
            f"of {format_names(rest)}). That is a failover of the mirror: leave --topic out. {_UNCHANGED}"
        )
    earlier_parts = None if split is None else FailedOver(topics=split.topics, groups=split.groups)
    return TopicSelection(pattern=pattern, topics=topics, earlier=earlier_parts)


def require_undivided(source: Cluster, known: MirrorContext, topics: Iterable[str]) -> tuple[str, ...]:
    """Return the groups that have read the topics; raises OpsError if one reads other topics of the mirror too.

    It would be on both sides then. Groups that went with topics before count too: the mirror leaves them out, and they
    may have read others at the source since.

    Args:
        source: The mirror's source.
        known: The mirror.
        topics: Topics that go to the target.
    """
    mirror, chosen = known.request.mirror, set(topics)
    earlier = set(known.failed_over.groups if known.failed_over else ())
    carried = sorted(group for group in source.group_states() if group in earlier or mirror.carries_group(group))
    read = {group: {tp[0] for tp in positions} for group, positions in source.group_offsets(carried).items()}
    going = {group: names for group, names in read.items() if names & chosen}
    torn = {
        group: others
        for group, names in going.items()
        if (others := {name for name in names - chosen if mirror.carries_topic(name)})
    }
    if torn:
        named = "; ".join(
            f"{group} reads {format_names(others)} too" for group, others in sorted(torn.items())[:_NAMED]
        )
        more = f"; and {len(torn) - _NAMED} more" if len(torn) > _NAMED else ""
        raise OpsError(
            f"groups: must read nothing but {format_names(chosen)} of mirror {known.mirror} to go with them (got "
            f"{named}{more}). Take these topics along with a wider --topic, "
            "or delete the offsets of topics that a group reads no more: kafka-consumer-groups.sh --delete-offsets."
        )
    return tuple(going)


def not_followed(known: MirrorContext) -> list[str]:
    """Return a warning of groups that went with topics before and have read others of the mirror at the source since.

    The mirror leaves them out, so that a failover of the rest sets nothing of them. Asks the source, which must answer.
    """
    if known.failed_over is None:
        return []
    source, carries = connected(known.source()), known.request.mirror.carries_topic
    states = source.group_states()
    asked = sorted(group for group in known.failed_over.groups if group in states)
    read = {group: {tp[0] for tp in at if carries(tp[0])} for group, at in source.group_offsets(asked).items()}
    torn = {group: names for group, names in read.items() if names}
    if not torn:
        return []
    named = "; ".join(f"{group} {format_names(sorted(names))}" for group, names in [*torn.items()][:_NAMED])
    more = f"; and {len(torn) - _NAMED} more" if len(torn) > _NAMED else ""
    return [
        f"groups that failed over before have read other topics at the source too ({named}{more}): their offsets of "
        "these are not set at the target. Set them afterwards, its application being stopped: python -m ops offsets set"
    ]


def as_split(
    known: MirrorContext, journal: Journal, file: Path, environment: Mapping[str, str], *, of_topics: bool
) -> MirrorContext:
    """Return the mirror without topics that have failed over by themselves, also where Pulumi does not know of them.

    It does not if the source was lost before the `up` that takes them over: a failover of the mirror goes on without
    it then. Applications write these topics at the target, and the journal has where they were equal.

    Args:
        known: The mirror by its outputs.
        journal: Of the mirror.
        file: The stack file, which has the topics until the mirror is switched.
        environment: Of the command.
        of_topics: Whether the command is for some topics.

    Raises:
        OpsError: the stack file does not have topics that the journal says have moved.
    """
    entry = (journal.entry or {}) if journal.under_way else {}
    before = entry if not of_topics and "confirm" in (entry.get("steps") or {}) else entry.get("before") or {}
    options = before.get("options") or {}
    if before.get("command") != "failover" or TOPIC not in options:
        return known
    moved = {*options[TOPICS], *((options.get(EARLIER) or {}).get("topics") or ())}
    if known.failed_over is not None and moved <= {*known.failed_over.topics}:
        return known
    found = stack_file.mirror_entry(file, known.mirror).get("failedOver") or {}
    if missing := sorted(moved - {*(found.get("topics") or ())}):
        if "switching" in journal.steps and before is not entry:  # the mirror has switched: the file has it no more
            return known
        raise OpsError(
            f"file {file}: failedOver of {known.mirror} must have the topics that have failed over by themselves "
            f"(got none of {format_names(missing)}). Take the stack file as that failover has left it. {_UNCHANGED}"
        )
    return mirror_context.split(known, found["topics"], found.get("groups") or (), environment)


def take_in_earlier(journal: Journal) -> None:
    """Take what a failover of topics has noted into the one that follows it: where both sides stood, and the fence.

    A failback goes by the latest failover. Does nothing after another operation, and once it is done.
    """
    entry = journal.entry or {}
    before = entry.get("before") or {}
    if entry.get("command") != "failover" or TOPIC not in (before.get("options") or {}):
        return
    earlier, own = before["steps"], journal.steps.get("stop") or {}
    stopped = earlier.get("stop") or {}
    places = {key: _joined(stopped.get(key), own.get(key)) for key in ("boundary", "copied")}
    journal.done("stop", {**own, **places})
    fences = [found for found in (journal.steps.get(FENCING), earlier.get(FENCING)) if found]
    if len(fences) > 1 or earlier.get(FENCING):
        both = fence.plus(fence.made(fences[0]), fence.made(fences[-1]))
        denied = list(dict.fromkeys(one for each in fences for one in each.get("denied") or ()))
        journal.done(FENCING, {**fence.document(both), "denied": denied})


def _joined(earlier: Mapping[str, int] | None, own: Mapping[str, int] | None) -> dict[str, int] | None:
    """Offsets of both; None if one is not known. Where topics have switched before, these offsets count."""
    return None if earlier is None or own is None else {**own, **earlier}


def _tuples(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) for key, value in document.items()}
