"""Runs the real program against a recording stand-in for the engine: what it registers and what it exports."""

import asyncio
import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import grpc
import pulumi
import yaml
from pulumi.runtime import mocks
from pulumi.runtime.settings import get_root_resource

from .prompt_engine import PromptLoop

ROOT = Path(__file__).parent.parent.parent
PASSWORD = "generated-password"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"
STATUS: dict[str, Any] = {
    "conditions": [{"type": "Ready", "status": "True"}],
    "listeners": [
        {"name": "tls", "bootstrapServers": "127.0.0.1:9093", "certificates": [CERTIFICATE]},
        {"name": "external", "bootstrapServers": "kafka.example.com:9094", "certificates": [CERTIFICATE]},
    ],
    "installedCSV": "strimzi-cluster-operator.v1.2.0",
    "url": "http://127.0.0.1:8083",
}
SOURCE_PASSWORDS = {"rt-inv-app-dev-user": "applications' password", "rt-inv-dev-user": "source password"}
SOURCE_OUTPUTS: dict[str, Any] = {
    "cluster": {
        "name": "rt-inventory-dev",
        "namespace": "rt-inventory-dev",
        "bootstrapServers": "127.0.0.1:9000",
        "securityProtocol": "SASL_SSL",
        "saslMechanism": "SCRAM-SHA-512",
        "caSecret": {"name": "rt-inventory-dev-cluster-ca-cert", "key": "ca.crt"},
    },
    "clusterCaCertificate": "source certificate",
    "users": {
        name: {
            "secretName": name,
            "key": "password",
            "authentication": "scram-sha-512",
            "username": name,
            "certificateKey": "user.crt",
            "privateKeyKey": "user.key",
            "application": name == "rt-inv-app-dev-user",
        }
        for name in SOURCE_PASSWORDS
    },
    "userPasswords": SOURCE_PASSWORDS,
    "userCredentials": {name: {"password": password} for name, password in SOURCE_PASSWORDS.items()},
}
FOUND = {
    "passed": True,
    "verdict": "pass",
    "message": "",
    "checks": [],
    "report": "reports/stg/mm2/report.html",
    "finished_at": "2026-01-31T12:00:00+00:00",
    "records_compared": 10,
}


class UnknownStackError(grpc.RpcError):
    """What the engine answers for a stack that is not in its backend."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNKNOWN

    def details(self) -> str:
        return f'unknown stack "{self.args[0]}"'


@dataclass
class Recorder(mocks.Mocks):
    """What the engine would have been asked for."""

    source_outputs: Mapping[str, Any] | None = field(default_factory=lambda: SOURCE_OUTPUTS)
    found: Mapping[str, Any] = field(default_factory=lambda: FOUND)
    preview: bool = False
    resources: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        if args.typ == "pulumi:pulumi:StackReference":
            secret = ["clusterCaCertificate", "userPasswords", "userCredentials"]
            return args.name, {**args.inputs, "outputs": self.source_outputs, "secretOutputNames": secret}
        self.resources[args.typ.split(":", 1)[1].split("/")[-1], args.name] = args.inputs
        outputs = dict(args.inputs)
        if not self.preview:
            if args.typ.startswith("kubernetes:kafka.") or args.typ.startswith("kubernetes:operators."):
                outputs["status"] = STATUS
            if args.typ == "random:index/randomPassword:RandomPassword":
                outputs["result"] = PASSWORD
            if args.typ.startswith("pulumi-python:dynamic"):
                outputs |= self.found
        return f"{args.name}-id", outputs

    def call(self, args: mocks.MockCallArgs) -> dict[str, Any]:
        assert args.token == "pulumi:pulumi:readStackOutputs"
        if self.source_outputs is None:
            raise UnknownStackError(args.args["name"])
        return {"outputs": self.source_outputs}

    def kinds(self) -> list[str]:
        """Kinds of all registered resources, without the components."""
        return sorted(kind for kind, _ in self.resources)

    def one(self, kind: str, name: str | None = None) -> dict[str, Any]:
        """The inputs of the resource of a kind, by its Kubernetes name if there are several."""
        found = [
            inputs
            for (known, _), inputs in self.resources.items()
            if known == kind and name in (None, inputs.get("metadata", {}).get("name"))
        ]
        assert len(found) == 1, f"{kind} {name}: {len(found)} in {sorted(self.resources)}"
        return found[0]


@dataclass(frozen=True)
class Run:
    """One run: what was registered, and each export with its value and whether it is a secret."""

    recorder: Recorder
    exports: dict[str, Any]
    secrets: set[str]
    unknown: set[str]


def stack_values(stack: str) -> dict[str, Any]:
    """The shipped stack file's values by their full keys."""
    return copy.deepcopy(_shipped(stack))


@cache
def _shipped(stack: str) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text())["config"]
    return values


@cache
def _program() -> CodeType:
    """The program, compiled once for all runs."""
    file = ROOT / "__main__.py"
    return compile(file.read_bytes(), str(file), "exec")


def run(
    stack: str, recorder: Recorder | None = None, values: Mapping[str, Any] | None = None, root: Path = ROOT
) -> Run:
    """Run `__main__.py` as the stack, its project's folder being `root`; raises what the program raises."""
    recorder = recorder or Recorder()
    given = values or stack_values(stack)
    config = {key: value if isinstance(value, str) else json.dumps(value) for key, value in given.items()}
    loop = PromptLoop()
    asyncio.set_event_loop(loop)
    mocks.set_mocks(
        recorder, project="rt-inventory", stack=stack, organization="organization", preview=recorder.preview
    )
    pulumi.runtime.set_all_config(config)
    pulumi.runtime.settings.SETTINGS.root_directory = str(root)
    pulumi.runtime.settings.SETTINGS.rpc_manager.clear()
    pulumi.runtime.settings.SETTINGS.outputs.clear()
    pulumi.runtime.settings.set_root_resource(None)

    async def program() -> Run:
        await pulumi.runtime.run_in_stack(lambda: exec(_program(), {"__name__": "__main__"}))  # noqa: S102  # our own
        root: Any = get_root_resource()
        outputs = {name: pulumi.Output.from_input(value) for name, value in root.outputs.items()}
        return Run(
            recorder=recorder,
            exports={name: await output.future() for name, output in outputs.items()},
            secrets={name for name, output in outputs.items() if await output.is_secret()},
            unknown={name for name, output in outputs.items() if not await output.is_known()},
        )

    try:
        return loop.run_until_complete(program())
    finally:
        loop.close()
