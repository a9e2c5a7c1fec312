"""Reads the verification request: every problem of the JSON document at once, secrets resolved.

Does not contact a cluster.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from spark.errors import RequestError
from spark.java_patterns.patterns import list_problems
from spark.request import asked, counting
from spark.request import document as documents
from spark.request.addresses import PORT_MAX, has_port, url_problem
from spark.request.document import shown, text_fault
from spark.request.model import (
    CHECK_NAMES,
    CONFIGS_EXCLUDE_DEFAULT,
    GROUPS_EXCLUDE_DEFAULT,
    RESOURCE_KINDS,
    SECRET_KEYS,
    TOPICS_EXCLUDE_DEFAULT,
    Canary,
    InternalTopic,
    Limits,
    Mirror,
    OffsetSyncs,
    Request,
    Resource,
    Side,
    TopicConfigs,
)
from spark.request.values import (
    OFFSET_MAX,
    PARTITION_MAX,
    REPLICAS_MAX,
    SECONDS_MAX,
    is_count,
    is_grouped,
    is_name,
    kind_of,
)

CANARY_RECORDS_MAX = 10_000
ISOLATIONS = ("read_committed", "read_uncommitted")
SIDE_NAMES = ("cluster", "stack", "namespace")  # of which a report speaks; nothing is judged by them


def load(path: Path, environment: Mapping[str, str]) -> Request:
    """Return the request that a file holds; raises RequestError with every problem."""
    return parse(documents.read(path), environment)


def parse(document: object, environment: Mapping[str, str]) -> Request:
    """Return the typed request of a JSON document; raises RequestError with every problem."""
    document, problems = documents.usable(document)
    reader = _Reader(environment)
    reader.problems += problems
    top = reader.section("request", document, {"source", "target", "mirror", "limits", "stack"})
    source = reader.side("source", top.get("source"))
    target = reader.side("target", top.get("target"))
    mirror = reader.mirror(top.get("mirror"), source, target)
    limits = reader.limits(top.get("limits", {}))
    stack = reader.optional_name(top, "request", "stack")
    if reader.problems:
        raise RequestError(reader.problems)
    return Request(source=source, target=target, mirror=mirror, limits=limits, stack=stack)


class _Reader:
    """Collects problems while reading; what cannot be read is replaced by a harmless value."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self.problems: list[str] = []

    def section(self, where: str, value: object, known: set[str]) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.problems.append(f"{where}: must be an object (got {kind_of(value)})")
            return {}
        self.problems += [
            f"{where}: {key} must be a known key (got {key}, allowed {', '.join(sorted(known))})"
            for key in (shown(each, quoted=False) for each in sorted(set(value) - known))
        ]
        return value

    def take(
        self, section: dict[str, Any], where: str, key: str, default: Any, rule: str, holds: Callable[[Any], bool]
    ) -> Any:
        value = section.get(key, default)
        if holds(value):
            return value
        self.problems.append(f"{where}: {key} must be {rule} (got {shown(value)})")
        return default

    def flag(self, section: dict[str, Any], where: str, key: str, default: bool) -> bool:
        return bool(self.take(section, where, key, default, "true or false", lambda got: isinstance(got, bool)))

    def patterns(
        self, section: dict[str, Any], key: str, default: tuple[str, ...], where: str = "mirror"
    ) -> tuple[str, ...]:
        value = section.get(key)
        if value is None or value == []:
            return default
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.problems.append(f"{where}: {key} must be a list of regular expressions (got {shown(value)})")
            return default
        found = list(list_problems(value))
        self.problems += [
            f"{where}: {key} must hold regular expressions of Java that can be verified "
            f"(got {shown(value[at])}: {reason})"
            for at, reason in found
        ]
        return default if found else tuple(value)

    def side(self, role: str, value: object) -> Side:
        section = self.section(role, value, {"alias", "client_config", *SIDE_NAMES})
        alias = self.name(section, role, "alias")
        names = {key: self.optional_name(section, role, key) for key in SIDE_NAMES}
        raw = section.get("client_config")
        if not isinstance(raw, dict) or not raw.get("bootstrap.servers"):
            self.problems.append(f"{role}: client_config must hold bootstrap.servers")
            return Side(role=role, alias=alias, client_config={}, **names)
        self.problems += [
            f"{role}.client_config: bootstrap.servers must have ports of 1 to {PORT_MAX} (got {address})"
            for address in str(raw["bootstrap.servers"]).split(",")
            if not has_port(address)
        ]
        config = {key: self.resolve(f"{role}.client_config", key, item) for key, item in raw.items()}
        if str(config.get("security.protocol", "")).upper().startswith("SASL"):
            self.problems += [
                f"{role}.client_config: {key} must be set for {config['security.protocol']}"
                for key in ("sasl.username", "sasl.password")
                if key not in config
            ]
        return Side(role=role, alias=alias, client_config=config, **names)

    def resolve(self, where: str, key: str, value: object) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str | int | float):
            if key in SECRET_KEYS:
                self.problems.append(f'{where}: {key} must be {{"env": NAME}} or {{"file": PATH}} (got plain text)')
                return ""
            return str(value)
        if isinstance(value, dict) and len(value) == 1:
            kind, name = next(iter(value.items()))
            if kind == "env" and isinstance(name, str):
                if self.environment.get(name):
                    return self.sound(f"{where}: {key} needs the environment variable {name}", self.environment[name])
                self.problems.append(f"{where}: {key} needs the environment variable {name} (got none)")
                return ""
            if kind == "file" and isinstance(name, str):
                needed = f"{where}: {key} needs the file {name}"
                try:
                    return self.sound(needed, Path(name).read_text(encoding="utf-8").rstrip("\n"))
                except OSError as error:
                    self.problems.append(f"{needed} ({error.strerror})")
                except UnicodeDecodeError as error:
                    self.problems.append(f"{needed} as text (byte {error.start} of it is not UTF-8)")
                return ""
        self.problems.append(f'{where}: {key} must be text, {{"env": NAME}} or {{"file": PATH}} (got {kind_of(value)})')
        return ""

    def sound(self, needed: str, value: str) -> str:
        """Return a value that came from elsewhere if it is text that a client takes; it is never shown."""
        fault = text_fault(value)
        if fault is None:
            return value
        self.problems.append(f"{needed} as text without {fault}")
        return ""

    def mirror(self, value: object, source: Side, target: Side) -> Mirror:
        known = {
            *("name", "topics", "topics_exclude", "groups", "groups_exclude", "naming", "separator", "source_alias"),
            *("target_alias", "replication_factor", "connect_url", "connectors", "offset_storage_topic"),
            *("offset_syncs_topic", "topic_configs", "sync_topic_acls", "internal_topics", "resource", "canary"),
            *("checkpoints_topic", "sync_group_offsets", "counts_from", "positions", "version"),
        }
        section = self.section("mirror", value, known)
        topics = self.patterns(section, "topics", ())
        if section.get("topics") in (None, []) and isinstance(value, dict):
            self.problems.append("mirror: topics must name at least one topic or regular expression (got none)")
        connectors = section.get("connectors") or []
        names = list(connectors.values()) if isinstance(connectors, dict) else connectors
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            self.problems.append(f"mirror: connectors must be a list or an object of names (got {kind_of(connectors)})")
            names = []

        def text(key: str, default: str) -> str:
            return str(self.take(section, "mirror", key, default, "text", lambda got: isinstance(got, str)))

        def optional(key: str) -> str | None:
            rule = "text or null"
            found = self.take(section, "mirror", key, None, rule, lambda got: got is None or isinstance(got, str))
            return str(found) if found else None

        def url(key: str) -> str | None:
            found = optional(key)
            if found is not None and (problem := url_problem(found)):
                self.problems.append(f"mirror: {key} {problem}")
                return None
            return found

        mirror = Mirror(
            name=text("name", "mirror"),
            source_alias=text("source_alias", source.alias),
            target_alias=text("target_alias", target.alias),
            topics=topics,
            topics_exclude=self.patterns(section, "topics_exclude", TOPICS_EXCLUDE_DEFAULT),
            groups=self.patterns(section, "groups", (".*",)),
            groups_exclude=self.patterns(section, "groups_exclude", GROUPS_EXCLUDE_DEFAULT),
            naming=self.take(
                section, "mirror", "naming", "identity", "identity or prefixed", lambda x: x in ("identity", "prefixed")
            ),
            separator=text("separator", "."),
            version=optional("version"),
            replication_factor=self.take(
                section,
                "mirror",
                "replication_factor",
                None,
                f"a number from 1 to {REPLICAS_MAX}",
                lambda x: x is None or is_count(x, 1, REPLICAS_MAX),
            ),
            connect_url=url("connect_url"),
            connectors=tuple(names),
            offset_storage_topic=optional("offset_storage_topic"),
            checkpoints=optional("checkpoints_topic"),
            topic_configs=self.topic_configs(section.get("topic_configs")),
            sync_topic_acls=self.flag(section, "mirror", "sync_topic_acls", False),
            sync_group_offsets=self.flag(section, "mirror", "sync_group_offsets", True),
            internal_topics=self.internal_topics(section.get("internal_topics")),
            resource=self.resource(section.get("resource")),
            offset_syncs=self.offset_syncs(section.get("offset_syncs_topic")),
            canary=self.canary(section.get("canary")),
            counts_from=counting.read(section.get("counts_from"), self.problems),
            positions=asked.read(section.get("positions"), self.problems),
        )
        self.problems += [
            f"mirror: counts_from must name topics that the mirror carries (got {topic}, topics {', '.join(topics)})"
            for topic in mirror.counts_from
            if topics and not mirror.carries_topic(topic)
        ]
        self.problems += [
            f"mirror: positions must be in topics that the mirror carries (got {topic}, topics {', '.join(topics)})"
            for topic in sorted({one.topic for one in mirror.positions})
            if topics and not mirror.carries_topic(topic)
        ]
        canary = mirror.canary
        if topics and canary is not None and canary.topic and not mirror.carries_topic(canary.topic):
            self.problems.append(
                f"mirror.canary: topic must be one that the mirror carries (got {canary.topic}, topics "
                f"{', '.join(mirror.topics)}). Its records would never arrive."
            )
        return mirror

    def offset_syncs(self, value: object) -> OffsetSyncs | None:
        if value is None:
            return None
        where = "mirror.offset_syncs_topic"
        section = self.section(where, value, {"name", "location"})
        place = self.take(section, where, "location", "source", "source or target", lambda x: x in ("source", "target"))
        return OffsetSyncs(name=self.name(section, where, "name"), location=place)

    def canary(self, value: object) -> Canary | None:
        if value is None:
            return None
        where = "mirror.canary"
        section = self.section(where, value, {"topic", "records", "partition"})
        records = self.take(
            section,
            where,
            "records",
            100,
            f"a number from 1 to {CANARY_RECORDS_MAX}",
            lambda got: is_count(got, 1, CANARY_RECORDS_MAX),
        )
        partition = self.take(
            section,
            where,
            "partition",
            None,
            f"a number from 0 to {PARTITION_MAX} or null",
            lambda got: got is None or is_count(got, 0, PARTITION_MAX),
        )
        return Canary(
            topic=self.name(section, where, "topic"),
            records=int(records),
            partition=None if partition is None else int(partition),
        )

    def topic_configs(self, value: object) -> TopicConfigs:
        if value is None:
            return TopicConfigs()
        where = "mirror.topic_configs"
        section = self.section(where, value, {"sync", "exclude", "use_defaults_from", "filter_class"})
        return TopicConfigs(
            sync=self.flag(section, where, "sync", True),
            exclude=self.patterns(section, "exclude", CONFIGS_EXCLUDE_DEFAULT, where),
            use_defaults_from=self.take(
                section, where, "use_defaults_from", "target", "source or target", lambda x: x in ("source", "target")
            ),
            filter_class=self.take(
                section, where, "filter_class", None, "text or null", lambda got: got is None or isinstance(got, str)
            ),
        )

    def internal_topics(self, value: object) -> tuple[InternalTopic, ...]:
        if value is None:
            return ()
        if not isinstance(value, list):
            self.problems.append(f"mirror: internal_topics must be a list (got {kind_of(value)})")
            return ()
        found = []
        for number, item in enumerate(value):
            where = f"mirror.internal_topics[{number}]"
            section = self.section(where, item, {"name", "location", "replication_factor", "required"})
            found.append(
                InternalTopic(
                    name=self.name(section, where, "name"),
                    location=self.take(
                        section, where, "location", "target", "source or target", lambda x: x in ("source", "target")
                    ),
                    replication_factor=self.take(
                        section,
                        where,
                        "replication_factor",
                        None,
                        f"a number from 1 to {REPLICAS_MAX} or null",
                        lambda x: x is None or is_count(x, 1, REPLICAS_MAX),
                    ),
                    required=self.flag(section, where, "required", True),
                )
            )
        return tuple(found)

    def resource(self, value: object) -> Resource | None:
        if value is None:
            return None
        where = "mirror.resource"
        section = self.section(where, value, {"api_version", "kind", "namespace", "name", "context"})
        kinds = tuple(RESOURCE_KINDS)
        rule = "a context of the kubeconfig or null"
        return Resource(
            api_version=str(
                self.take(section, where, "api_version", "", "a group and a version, as in group/v1", is_grouped)
            ),
            kind=self.take(section, where, "kind", kinds[0], " or ".join(kinds), lambda got: got in kinds),
            namespace=self.name(section, where, "namespace"),
            name=self.name(section, where, "name"),
            context=self.optional_name(section, where, "context", rule),
        )

    def name(self, section: dict[str, Any], where: str, key: str) -> str:
        return str(self.take(section, where, key, "", "a name", is_name))

    def optional_name(self, section: dict[str, Any], where: str, key: str, rule: str = "a name or null") -> str | None:
        found = self.take(section, where, key, None, rule, lambda got: got is None or is_name(got))
        return None if found is None else str(found)

    def limits(self, value: object) -> Limits:
        names = {
            *("mirror_wait_seconds", "deadline_seconds", "reread_records_max", "duplicates_max", "allow_unknown"),
            *("isolation", "lag_records_max", "lag_seconds_max", "canary_p99_ms_max"),
        }
        section = self.section("limits", value, names)

        def count(key: str, default: int, least: int = 0, most: int = OFFSET_MAX) -> int:
            rule = f"a number from {least} to {most}"
            return int(self.take(section, "limits", key, default, rule, lambda got: is_count(got, least, most)))

        def bound(key: str) -> int | None:
            rule = f"a number from 0 to {OFFSET_MAX} or null"
            found = self.take(section, "limits", key, None, rule, lambda got: got is None or is_count(got, 0))
            return None if found is None else int(found)

        return Limits(
            mirror_wait_seconds=count("mirror_wait_seconds", 120, most=SECONDS_MAX),
            deadline_seconds=count("deadline_seconds", 900, least=1, most=SECONDS_MAX),
            reread_records_max=count("reread_records_max", 50_000),
            duplicates_max=count("duplicates_max", 0),
            lag_records_max=bound("lag_records_max"),
            lag_seconds_max=bound("lag_seconds_max"),
            canary_p99_ms_max=bound("canary_p99_ms_max"),
            allow_unknown=tuple(
                self.take(
                    section,
                    "limits",
                    "allow_unknown",
                    [],
                    f"a list of check names (allowed {', '.join(CHECK_NAMES)})",
                    lambda got: isinstance(got, list) and all(item in CHECK_NAMES for item in got),
                )
            ),
            isolation=self.take(
                section, "limits", "isolation", "read_committed", " or ".join(ISOLATIONS), lambda x: x in ISOLATIONS
            ),
        )
