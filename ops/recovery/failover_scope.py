"""What a failover moves: a whole mirror, or some of its topics while the mirror goes on with the rest.

Owns what `stop` and `switch` declare and carry out, and how it is read back. For topics that is `failedOver` in the
stack file, what the KafkaMirrorMaker2 leaves out, and the rights of applications on them; the mirror's Secret of
clients stays. Does not own the steps (`failover.py`), nor which topics (`topic_selection.py`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from kubernetes import client

from kafka.cluster import Cluster
from ops.errors import OpsError
from ops.pulumi import stack_file
from ops.recovery import kubernetes_access, mirror_context
from ops.recovery.journal import Journal
from ops.recovery.kubernetes_access import kubernetes, wait_until_ready
from ops.recovery.mirror_context import MirrorContext, connected
from ops.recovery.operation import Say, StackChanges
from ops.recovery.topic_selection import TopicSelection, require_undivided
from ops.recovery.user_rights import UserRights
from settings.fence import named_instead
from settings.files import contexts
from settings.files import load as load_settings
from settings.mirror_parts import FailedOver, exclusions
from settings.mirrors import Mirror
from settings.stack import Stack
from settings.text import format_names


class Scope(Protocol):
    """What a failover moves, and how."""

    @property
    def stop_words(self) -> str:
        """What `stop` does."""

    @property
    def switch_words(self) -> str:
        """What `switch` does."""

    @property
    def switches_clients(self) -> bool:
        """Whether the Secret that applications read follows, and so the workloads that read it."""

    @property
    def not_reconciled(self) -> str:
        """What there is, and what to do, if only Pulumi cannot take it over."""

    def stop(self) -> None:
        """Declare that nothing is copied any more and carry it out; raises OpsError."""

    def run_again(self) -> None:
        """Take back what `stop` has done, for there is more to copy; raises OpsError."""

    def require_groups(self, groups: Iterable[str]) -> None:
        """Raise OpsError unless these groups may be set at the target."""

    def switch(self) -> None:
        """Declare the target as active and carry it out; raises OpsError."""

    def read_back(self) -> MirrorContext:
        """Return the mirror as it is declared now; raises OpsError unless it says what `switch` has declared."""


@dataclass(frozen=True, kw_only=True)
class WholeMirror:
    """A whole mirror, or what is left of it where topics were failed over by themselves before."""

    pair: MirrorContext
    changes: StackChanges
    say: Say

    stop_words = "stop the mirror: nothing may be copied over what the target writes from now on"
    switch_words = "record the target as active, and give applications its properties"
    switches_clients = True
    not_reconciled = (
        "The target is active, and applications may work there: only Pulumi does not know of it. "
        "Remove the cause and run the command again, or finish it with --break-glass."
    )

    def stop(self) -> None:
        """Declare the mirror stopped, and carry it out."""
        self.changes.set_mirror(self.pair.mirror, {"state": self.pair.rest_state})
        self.changes.up(None, self.say)

    def run_again(self) -> None:
        """Declare the mirror running, and carry it out."""
        self.changes.set_mirror(self.pair.mirror, {"state": "running"})
        self.changes.up(None, self.say)

    def require_groups(self, groups: Iterable[str]) -> None:
        """All of them may be set."""

    def switch(self) -> None:
        """Record the new active side in the stack's settings, outputs and the Secret that applications read."""
        is_split = "failedOver" in stack_file.mirror_entry(self.changes.file, self.pair.mirror)
        split = {"failedOver": None} if is_split else {}
        self.changes.set_mirror(self.pair.mirror, {"state": self.pair.rest_state, "active": "target", **split})
        self.changes.up(self.pair.mirror, self.say)

    def read_back(self) -> MirrorContext:
        """Return the mirror by the stack's outputs."""
        known = mirror_context.load(
            self.pair.stack, self.pair.mirror, self.changes.environment, self.pair.project, self.changes.outputs
        )
        if known.active != "target":
            raise OpsError(
                f"stack {known.stack}: output mirrors.{known.mirror}.active must be target after the switch (got "
                f"{known.active}). Look at the stack file and run the command again."
            )
        return known


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

    @property
    def not_reconciled(self) -> str:
        """What there is, and what to do, if only Pulumi cannot take it over."""
        return (
            f"{format_names(self.chosen.topics)} have failed over, and applications may use them at "
            f"{self.pair.name_of('target')}: only Pulumi does not know of it. Remove the cause and run the command "
            "again. If the source is lost, take the rest over: "
            f"python -m ops failover --to {self.pair.stack} --unplanned."
        )

    def stop(self) -> None:
        """Declare the topics as on their way with the groups that read them, and let the mirror leave them out."""
        source = connected(self.pair.source())
        groups = require_undivided(source, self.pair, self.chosen.topics)
        earlier = self.chosen.earlier
        self._declare(
            FailedOver(
                topics=self._moved(),
                groups=tuple(dict.fromkeys([*(earlier.groups if earlier else ()), *groups])),
                pending=self.chosen.topics,
                read_only=self._named_instead(source, self._moved()),
            )
        )
        self._leave_out()

    def run_again(self) -> None:
        """Let the mirror copy the topics again; those that were failed over before stay so."""
        earlier = self.chosen.earlier
        if earlier is not None:  # the outputs, from which they are known, do not say what is denied by name
            others = self._named_instead(connected(self.pair.source()), earlier.topics)
            earlier = earlier.model_copy(update={"read_only": others})
        self._declare(earlier)
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

    def _named_instead(self, source: Cluster, topics: Iterable[str]) -> tuple[str, ...]:
        """Topics to deny by name at the target because these are used there, by what the source has now."""
        mirror = self._mirror(self._settings())
        return named_instead(mirror, topics, source.names(lambda _: True)) if mirror.naming == "identity" else ()

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
        excluded = self._exclusions()

        def change(live: Mapping[str, Any]) -> dict[str, Any]:
            flows = [_without_none({**each, **excluded}) for each in live["spec"]["mirrors"]]
            self.journal.require_held()
            return {"mirrors": flows}

        with kubernetes(self.environment, resource.context) as api:
            kubernetes_access.change_spec(api, *place, change)
        wait_until_ready(resource, self.environment, self.say)

    def _exclusions(self) -> dict[str, str | None]:
        settings = self._settings()
        return exclusions(self._mirror(settings), settings.platform.pattern_join)

    def _live(self, api: client.ApiClient) -> list[dict[str, object]]:
        """The flows of the mirror's resource; it has one."""
        resource = self.pair.resource
        place = resource.api_version, resource.kind, resource.namespace, resource.name
        found: list[dict[str, object]] = kubernetes_access.custom_object(api, *place)["spec"]["mirrors"]
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
