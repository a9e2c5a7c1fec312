"""A stand-in for the engine that knows stacks by name and Secrets by place, and keeps each request as it was made."""

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from pulumi.runtime import mocks, rpc
from pulumi.runtime.proto import resource_pb2

from .recorded_program import SOURCE_OUTPUTS, Recorder, Run, UnknownStackError, run

SECRET = "kubernetes:core/v1:Secret"
ALONE = Path(__file__).parent  # a folder without stack files
PLATFORM = {"type": "strimzi", "version": "1.2.0"}


@dataclass
class Engine(Recorder):
    """Stacks that are up with their outputs, Secrets that exist by `namespace/name`, and what was asked for.

    `status` is what the operator reports about custom resources; None for what `Recorder` says.
    """

    stacks: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"dev": SOURCE_OUTPUTS})
    existing: Mapping[str, Mapping[str, str | bytes]] = field(default_factory=dict)
    status: Mapping[str, Any] | None = None
    reads: dict[str, str] = field(default_factory=dict)
    requests: dict[tuple[str, str], resource_pb2.RegisterResourceRequest] = field(default_factory=dict)
    twice: list[str] = field(default_factory=list)

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        if args.typ == "pulumi:pulumi:StackReference":
            self.source_outputs = self.stacks[args.inputs["name"].rsplit("/", 1)[-1]]
            return super().new_resource(args)
        if args.typ == SECRET and args.resource_id == rpc.UNKNOWN:
            return None, {}
        if args.typ == SECRET and args.resource_id:
            self.twice += [args.name] if args.name in self.reads else []
            self.reads[args.name] = args.resource_id
            values = self.existing[args.resource_id]
            raw = {key: value if isinstance(value, bytes) else value.encode() for key, value in values.items()}
            return args.resource_id, {"data": {key: base64.b64encode(value).decode() for key, value in raw.items()}}
        before = len(self.resources)
        identity, outputs = super().new_resource(args)
        self.twice += [args.name] if len(self.resources) == before else []
        if self.status is not None and args.inputs.get("kind") in ("Kafka", "EventStreams"):
            outputs["status"] = self.status
        return (None if self.preview else identity), outputs

    def call(self, args: mocks.MockCallArgs) -> dict[str, Any]:
        name = args.args["name"].rsplit("/", 1)[-1]
        if name not in self.stacks:
            raise UnknownStackError(args.args["name"])
        return {"outputs": self.stacks[name]}

    def all(self, kind: str) -> dict[tuple[str, str], dict[str, Any]]:
        """Inputs of all resources of a kind, by namespace and name in Kubernetes."""
        found = [inputs for (known, _), inputs in self.resources.items() if known == kind]
        return {(each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in found}

    def secrets(self) -> dict[tuple[str, str], Any]:
        """Credentials and authorities that are made, by namespace and name; what others read has `data`, not text."""
        made = {place: revealed(inputs) for place, inputs in self.all("v1:Secret").items()}
        return {place: inputs["stringData"] for place, inputs in made.items() if "stringData" in inputs}

    def asked(self, name: str) -> resource_pb2.RegisterResourceRequest:
        """The request for the resource of that name."""
        found = [request for (_, known), request in self.requests.items() if known == name]
        assert len(found) == 1, f"{name}: {len(found)} in {sorted(known for _, known in self.requests)}"
        return found[0]


def revealed(value: Any) -> Any:
    """A value as it is inside the envelopes of secrets."""
    if isinstance(value, Mapping):
        if rpc._special_sig_key in value:
            return revealed(value["value"])
        return {key: revealed(item) for key, item in value.items()}
    return [revealed(item) for item in value] if isinstance(value, list) else value


def is_secret(value: Any) -> bool:
    """Whether a value goes to the engine as a secret."""
    return isinstance(value, Mapping) and rpc._special_sig_key in value


def target(**settings: Any) -> dict[str, Any]:
    """Settings of a target stack with one mirror from stack dev, by key; each can be replaced."""
    return {
        "platform": PLATFORM,
        "operator": {"install": "none"},
        "cluster": {"name": "kafka-stg", "namespace": "stg", "protect": False},
        "users": [{"name": "writer"}],
        "mirrors": [mirror()],
        "verification": {"when": "never"},
        **settings,
    }


def mirror(**settings: Any) -> dict[str, Any]:
    """Settings of a mirror from stack dev; each name has a topic of its own, so that no two copy the same."""
    return {
        "name": "mm2",
        "source": {"stack": "dev", "alias": "es-src", "user": "rt-inv-dev-user"},
        "target": {"alias": "es-tgt", "user": "writer"},
        "topics": [settings.get("name", "items")],
        **settings,
    }


def up(engine: Engine, settings: Mapping[str, Any], *, stack: str = "stg", root: Path = ALONE) -> Run:
    """Run the program with these settings; no two resources have the same name."""
    with _observed(engine):
        seen = run(stack, engine, {f"rt-inventory:{key}": value for key, value in settings.items()}, root)
    assert not engine.twice
    return seen


@contextmanager
def _observed(engine: Engine) -> Iterator[None]:
    register = mocks.MockMonitor.RegisterResource

    def keep(self: mocks.MockMonitor, request: Any) -> Any:
        engine.requests[request.type, request.name] = request
        return register(self, request)  # type: ignore[no-untyped-call]  # the SDK does not type it

    with mock.patch.object(mocks.MockMonitor, "RegisterResource", keep):
        yield
