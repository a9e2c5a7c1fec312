"""What a failover of some topics moves: the mirror goes on with the rest, and its Secret of clients stays.

Owns what `stop` and `switch` declare and carry out for topics: `failedOver` in the stack file, what the
KafkaMirrorMaker2 leaves out, and the rights of applications on them. Does not own which topics (`topic_selection.py`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kubernetes import client

from ops.errors import OpsError
from ops.pulumi import stack_file
from ops.recovery import field_manager
from ops.recovery.journal import Journal
from ops.recovery.kubernetes_access import kubernetes, wait_until_ready
from ops.recovery.mirror_context import MirrorContext, connected
from ops.recovery.operation import Say
from ops.recovery.topic_selection import TopicSelection, require_undivided
from ops.recovery.user_rights import UserRights
from settings.failed_over import FailedOver, exclusions
from settings.fence import named_instead
from settings.files import contexts
from settings.files import load as load_settings
from settings.mirrors import Mirror
from settings.stack import Stack
from settings.text import format_names


@dataclass(frozen=True, kw_only=True)
class SomeTopics:
    """Topics of a mirror.

    Args:
        pair: The whole mirror.
        chosen: The topics.
        file: The stack file.
        rights: The KafkaUsers of the stack, which is the target's.
        journal: Asked for permission before each change.
        environment: Of the command.
        say: Gets a line for what is done.
    """

    pair: MirrorContext
    chosen: TopicSelection
    file: Path
    rights: UserRights
    journal: Journal
    environment: Mapping[str, str] = field(repr=False)
    say: Say

    switches_clients = False

    @property
    def stop_words(self) -> str:
        """What `stop` does."""
        return f"leave {format_names(self.chosen.topics)} out of the mirror, which goes on with the rest"

    @property
    def switch_words(self) -> str:
        """What `switch` does."""
        name = self.pair.name_of("target")
        return f"record {format_names(self.chosen.topics)} as failed over, and let applications write there at {name}"

    def stop(self) -> None:
        """Declare the topics as on their way with the groups that read them, and let the mirror leave them out."""
        source = connected(self.pair.source())
        groups = require_undivided(source, self.pair, self.chosen.topics)
        mirror, names = self._mirror(self._settings()), source.names(lambda _: True)
        others = named_instead(mirror, self._moved(), names) if mirror.naming == "identity" else ()
        earlier = self.chosen.earlier
        self._declare(
            FailedOver(
                topics=self._moved(),
                groups=tuple(dict.fromkeys([*(earlier.groups if earlier else ()), *groups])),
                pending=self.chosen.topics,
                read_only=others,
            )
        )
        self._leave_out()

    def run_again(self) -> None:
        """Let the mirror copy the topics again."""
        self._declare(self.chosen.earlier)
        self._leave_out()

    def require_groups(self, groups: Iterable[str]) -> None:
        """Raise OpsError unless the mirror leaves these groups alone and they read nothing else."""
        require_undivided(connected(self.pair.source()), self.pair, self.chosen.topics)
        known = self._declared()
        if new := sorted(set(groups) - set(known.groups)):
            self.journal.forget("stop")
            raise OpsError(
                f"groups: {format_names(new)} must be left out of the mirror before it is set at the target (got one "
                f"that has read {format_names(self.chosen.topics)} since). Run the command again."
            )

    def switch(self) -> None:
        """Declare that applications use the topics at the target, and give them their rights."""
        known = self._declared()
        self._declare(known.model_copy(update={"pending": ()}))
        self._leave_out()
        now = self._settings()
        changed = self.rights.change(self._with(now, known.model_copy(update={"pending": self.chosen.topics})), now)
        if changed:
            self.say(f"  {format_names(changed)} may write {format_names(self.chosen.topics)}")

    def read_back(self) -> MirrorContext:
        """Return the mirror once the stack file and its resource say that the topics are failed over."""
        known = self._declared()
        missing = sorted(set(self.chosen.topics) - set(known.at_target))
        resource = self.pair.resource
        with kubernetes(self.environment, resource.context) as api:
            differs = any(_without_none({**each, **self._exclusions()}) != each for each in self._live(api))
        if missing or differs:
            what = f"failedOver without {format_names(missing)}" if missing else f"other exclusions of {resource}"
            raise OpsError(
                f"mirror {self.pair.mirror}: {format_names(self.chosen.topics)} must be failed over after the switch "
                f"(got {what}). Look at {self.file} and run the command again."
            )
        return self.pair

    def _moved(self) -> tuple[str, ...]:
        earlier = self.chosen.earlier.topics if self.chosen.earlier else ()
        return tuple(dict.fromkeys([*earlier, *self.chosen.topics]))

    def _settings(self) -> Stack:
        return load_settings(self.file)

    def _mirror(self, settings: Stack) -> Mirror:
        return next(each for each in settings.mirrors if each.name == self.pair.mirror)

    def _declared(self) -> FailedOver:
        found = self._mirror(self._settings()).failed_over
        if found is None or not set(self.chosen.topics) <= set(found.topics):
            self.journal.forget("stop")
            raise OpsError(
                f"file {self.file}: failedOver of mirror {self.pair.mirror} must have the topics that are on their way "
                f"(got {format_names(found.topics if found else ())}). Run the command again: it writes them."
            )
        return found

    def _with(self, settings: Stack, moved: FailedOver) -> Stack:
        changed = self._mirror(settings).model_copy(update={"failed_over": moved})
        mirrors = tuple(changed if each.name == changed.name else each for each in settings.mirrors)
        return settings.model_copy(update={"mirrors": mirrors})

    def _declare(self, moved: FailedOver | None) -> None:
        self.journal.require_held()
        document = None if moved is None else moved.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        stack_file.change_mirror(self.file, self.pair.mirror, {"failedOver": document})

    def _leave_out(self) -> None:
        """Write what the mirror leaves out into its resource, as Pulumi's next `up` does, and wait for the operator."""
        resource = self.pair.resource
        place = resource.api_version, resource.kind, resource.namespace, resource.name
        with kubernetes(self.environment, resource.context) as api:
            flows = [_without_none({**each, **self._exclusions()}) for each in self._live(api)]
            self.journal.require_held()
            field_manager.apply_spec(api, *place, {"mirrors": flows})
        wait_until_ready(resource, self.environment, self.say)

    def _exclusions(self) -> dict[str, str | None]:
        settings = self._settings()
        return exclusions(self._mirror(settings), settings.platform.pattern_join)

    def _live(self, api: client.ApiClient) -> list[dict[str, object]]:
        """The flows of the mirror's resource; it has one."""
        resource = self.pair.resource
        place = resource.api_version, resource.kind, resource.namespace, resource.name
        found: list[dict[str, object]] = field_manager.custom_object(api, *place)["spec"]["mirrors"]
        return found


def of(
    pair: MirrorContext,
    chosen: TopicSelection,
    file: Path,
    journal: Journal,
    environment: Mapping[str, str],
    say: Say,
) -> SomeTopics:
    """Return the scope of some topics of a mirror, by its stack file and the contexts of the project."""
    rights = UserRights(
        context=contexts(file.parent).get(pair.label),
        environment=environment,
        log=say,
        require_permission=journal.require_held,
    )
    return SomeTopics(
        pair=pair, chosen=chosen, file=file, rights=rights, journal=journal, environment=environment, say=say
    )


def _without_none(fields: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in fields.items() if value is not None}
