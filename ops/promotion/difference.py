"""What a promotion changes in the target's settings: the source's values of every key that travels.

Owns the comparison of two stacks' settings. Reads and writes no file.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from ops.errors import OpsError
from settings import Stack
from settings.cluster import FACTOR_MAX
from settings.errors import step
from settings.model import PINS, STAYS, WITHIN, Model, promotion_of
from settings.parsing import KEYS, parse_settings
from settings.replication_topology import ReplicationTopology

Values = dict[str, Any]
Raw = Mapping[str, Any]
NEEDS_SAME = {"Operator": "install", "Run": "how"}
"""Models of which nothing travels unless this key is the same in both stacks: their versions mean another thing."""
# Options in free maps that follow a stage's brokers, machines, addresses or names.
_STAGE_OPTIONS = re.compile(
    r"min\.insync\.replicas|(.*\.)?replication\.factor|transaction\.state\.log\.min\.isr|.*\.throttled\.replicas"
    r"|num\..*threads(\..*)?|log\.dirs?|(broker|client)\.rack|(.*\.)?(client|group)\.id"
    r"|(.*\.)?bootstrap\.servers|(.*\.)?(sasl|ssl|security)\..*"
)


@dataclass(frozen=True, kw_only=True)
class StackSettings:
    """A stack's settings: as they take effect, and as its file gives them."""

    name: str
    settings: Stack
    values: Raw


@dataclass(frozen=True, kw_only=True)
class Change:
    """One key of the target's file: its value before and after, None where the file gives none."""

    key: str
    old: Any
    new: Any


@dataclass(kw_only=True)
class Difference:
    """Everything that travels, with the target's values as they are to be, and what does not travel though it differs.

    A note names what somebody has to decide.
    """

    wanted: Values
    changes: list[Change] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def changed_keys(self) -> list[str]:
        """Keys of the stack file with a change."""
        heads = {change.key.partition(".")[0].partition("[")[0] for change in self.changes}
        return [key for key in KEYS if key in heads]


def compare(source: StackSettings, target: StackSettings, others: Mapping[str, Raw]) -> Difference:
    """Return what a promotion from source to target changes.

    Args:
        source: the stack whose settings are proven.
        target: the stack that gets them.
        others: values of all stack files of the project, by stack.

    Raises:
        OpsError: the two stacks are not stages of the same pair.
    """
    kinds = source.settings.platform.type, target.settings.platform.type
    if kinds[0] != kinds[1]:
        raise OpsError(
            f"stack {target.name}: platform.type must be {source.name}'s (got {kinds[1]} and {kinds[0]}). What is "
            "proven on one platform is no proof for another."
        )
    found = Difference(wanted=deepcopy(dict(target.values)))
    _Comparison(source, target, found, others).run()
    return found


class _Comparison:
    def __init__(
        self, source: StackSettings, target: StackSettings, found: Difference, others: Mapping[str, Raw]
    ) -> None:
        self._source, self._target, self._found = source, target, found
        self._flows = ReplicationTopology({name: parse_settings(values) for name, values in others.items()}).all_flows

    def run(self) -> None:
        sides = self._source.settings, self._target.settings
        left_out = set[str]()
        if not all(side.mirrors for side in sides):  # a verification that nobody runs proves nothing
            left_out.add("verification")
        if any(side.cluster.external is not None for side in sides):
            left_out |= {"cluster", "topics"}
            self._note("cluster, topics: nothing of them travels, for somebody else runs one of the clusters.")
        for key in KEYS:
            if promotion_of(Stack, key) is STAYS or key in left_out:
                continue
            ours, theirs = getattr(self._source.settings, key), getattr(self._target.settings, key)
            self._within(key, key, ours, theirs, self._source.values, self._found.wanted)

    def _model(self, place: str, ours: Model, theirs: Model, given: Raw, wanted: Values) -> None:
        """Compare two mappings of one kind, key by key."""
        model = type(ours).__name__
        same = NEEDS_SAME.get(model)
        if same is not None and getattr(ours, same) != getattr(theirs, same):
            mine, other = getattr(theirs, same), getattr(ours, same)
            self._note(f"{place}: nothing of it travels, for {place}.{same} differs (got {mine}, there {other}).")
            return
        for name, info in type(ours).model_fields.items():
            key = str(info.alias)
            kind = promotion_of(type(ours), key)
            one, other, here = getattr(ours, name), getattr(theirs, name), place + step(key)
            if kind is STAYS or (kind is PINS and given.get(key) is None):
                continue
            if kind is WITHIN:
                self._within(here, key, one, other, given, wanted)
            elif isinstance(one, Mapping):
                self._options(here, key, given, wanted)
            elif model == "Topic" and key == "partitions" and one < other:
                self._note(f"{here}: stays {other} ({self._source.name} has {one}). Kafka takes no partition away.")
            elif _plain(one) != _plain(other):
                self._set(here, key, given.get(key), wanted)

    def _within(self, place: str, key: str, ours: Any, theirs: Any, given: Raw, wanted: Values) -> None:
        """Compare two values that are mappings, or lists of things with a name."""
        if isinstance(ours, tuple):
            self._named(place, key, ours, theirs, given, wanted)
            return
        below = dict(wanted.get(key) or {})
        self._model(place, ours, theirs, given.get(key) or {}, below)
        if below or key in wanted:
            wanted[key] = below

    def _named(
        self, place: str, key: str, ours: tuple[Any, ...], theirs: tuple[Any, ...], given: Raw, wanted: Values
    ) -> None:
        """Compare entries that have the same name. An entry that only the target has is its own."""
        known = {each.name: each for each in theirs}
        raw = {each["name"]: each for each in given.get(key) or ()}
        entries: list[Values] = [dict(each) for each in wanted.get(key) or ()]
        for one in ours:
            here = f"{place}[{one.name}]"
            if one.name in known:
                entry = next(each for each in entries if each["name"] == one.name)
                self._model(here, one, known[one.name], raw[one.name], entry)
            elif (added := self._new(key, here, raw[one.name])) is not None:
                entries.append(added)
                self._found.changes.append(Change(key=here, old=None, new=added))
        if entries:
            wanted[key] = entries

    def _new(self, key: str, place: str, given: Raw) -> Values | None:
        """An entry that only the source has, without what belongs to its stage; None if it does not travel."""
        if key == "topics":
            return self._new_topic(place, given) if self._is_declared_here(str(given["name"]), place) else None
        if (given.get("source") or {}).get("stack") != self._target.name:
            self._note(f"{place}: only {self._source.name} has it. Its addresses and users are a stage's: declare it.")
        return None

    def _new_topic(self, place: str, given: Raw) -> Values:
        entry: Values = {"name": given["name"], "replicas": min(self._target.settings.cluster.broker_count, FACTOR_MAX)}
        options = {name: value for name, value in (given.get("config") or {}).items() if not option_stays(name)}
        return entry | {"partitions": given["partitions"]} | ({"config": options} if options else {})

    def _is_declared_here(self, topic: str, place: str) -> bool:
        """Whether a topic that is new to the target is declared there: not if a mirror brings it, or joins the two."""
        names = {self._source.name, self._target.name}
        into = [flow for flow in self._flows if flow.target == self._target.name]
        if any({flow.source, flow.target} == names for flow in self._flows):
            if not any(flow.copies(topic) for flow in into):
                self._note(
                    f"{place}: no mirror brings it to {self._target.name}. Add it to a mirror's topics if meant."
                )
            return False
        return not any(flow.copies(topic) and flow.remote_topic(topic) == topic for flow in into)

    def _options(self, place: str, key: str, given: Raw, wanted: Values) -> None:
        """Compare two free maps, option by option."""
        ours: Raw = given.get(key) or {}
        below = dict(wanted.get(key) or {})
        for option in sorted({*ours, *below}):
            if not option_stays(option) and _text(ours.get(option)) != _text(below.get(option)):
                self._set(place + step(option), option, ours.get(option), below)
        if below:
            wanted[key] = below
        elif wanted.get(key):
            del wanted[key]

    def _set(self, place: str, key: str, value: Any, wanted: Values) -> None:
        self._found.changes.append(Change(key=place, old=wanted.get(key), new=value))
        if value is None:
            wanted.pop(key, None)
        else:
            wanted[key] = deepcopy(value)

    def _note(self, text: str) -> None:
        self._found.notes.append(text)


def _plain(value: Any) -> Any:
    """The value with dicts in place of models, so that two values can be compared."""
    if isinstance(value, Model):
        return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {key: _text(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _text(option: Any) -> str | None:
    """An option as Kafka reads it: 12 and '12' are the same, as are true and 'true'."""
    return None if option is None else str(option).lower() if isinstance(option, bool) else str(option)


def option_stays(option: str) -> bool:
    """Whether an option of a free map belongs to a stage."""
    return _STAGE_OPTIONS.fullmatch(option) is not None
