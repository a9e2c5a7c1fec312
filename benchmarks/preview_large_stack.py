"""How long `pulumi preview` of a stack with 200 topics and 50 users takes, alone and with the policy pack.

Run: `python -m benchmarks.preview_large_stack`. An empty program is previewed beside it in the same run. Exit 0 if the
median of three is at most twice the empty program's plus 5 s and the policy pack adds at most 3 s to it, 1 if not, 2 if
it could not be measured. No cluster is needed: a first preview reads nothing from one. A control plane is started all
the same, because the provider asks it for the kinds that it knows.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks import tables
from sandbox import control_plane
from sandbox.control_plane import ControlPlaneError, SandboxContext
from sandbox.processes import ProcessError
from sandbox.pulumi import Pulumi, PulumiError
from sandbox.state import PROJECT, SandboxState, StateError
from sandbox.toolchain import ToolchainError, locate

RESULT = tables.RESULTS / "preview_large_stack.json"
TOPICS, USERS, RUNS = 200, 50, 3
FACTOR, EXTRA_S = 2.0, 5.0
PACK_ADDS_S = 3.0
STACK = "large"
PREVIEW_WITHIN_S = 120.0
NAMESPACE = "rt-inventory"
_EMPTY_PROGRAM = '"""Declares nothing."""\n'


@dataclass(frozen=True)
class Verdict:
    """Medians in seconds: of the empty program, of the large stack, and of the large stack with the policy pack."""

    empty_s: float
    large_s: float
    checked_s: float

    @property
    def allowed_s(self) -> float:
        """The most that the large stack may take."""
        return FACTOR * self.empty_s + EXTRA_S

    @property
    def pack_adds_s(self) -> float:
        """What the policy pack costs."""
        return self.checked_s - self.large_s

    @property
    def passed(self) -> bool:
        """Whether the large stack and the policy pack are fast enough."""
        return self.large_s <= self.allowed_s and self.pack_adds_s <= PACK_ADDS_S


def verdict(empty_s: Sequence[float], large_s: Sequence[float], checked_s: Sequence[float]) -> Verdict:
    """Return the judgement over the runs of all three."""
    return Verdict(*(statistics.median(seconds) for seconds in (empty_s, large_s, checked_s)))


def large_stack() -> dict[str, Any]:
    """Return the values of the large stack by key: a cluster, its topics and its users, each with one right.

    The policy pack finds nothing in it.
    """
    return {
        "platform": {"type": "strimzi", "apiVersion": "kafka.strimzi.io/v1"},
        "operator": {"install": "none"},
        "cluster": {
            "name": "inventory-large",
            "namespace": "inventory-large",
            "version": "4.3.1",
            "brokers": 3,
            "storage": {"type": "persistent-claim", "sizeGib": 100},
            "resources": {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "2Gi"}},
        },
        "users": [
            {
                "name": f"rt-inv-{number:02d}-large-user",
                "acls": [{"type": "topic", "names": [f"topic-{number:03d}"], "operations": ["Read", "Describe"]}],
            }
            for number in range(USERS)
        ],
        "topics": [{"name": f"topic-{number:03d}", "partitions": 12, "replicas": 3} for number in range(TOPICS)],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the verdict, write the result; return the exit code (0 fast enough, 1 not, 2 not measured)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.preview_large_stack", description=__doc__)
    parser.add_argument("--output", type=Path, default=RESULT, help="file of the result (default: %(default)s)")
    output = parser.parse_args(arguments).output
    tables.clean_up_on_sigterm()
    described = tables.describe()
    try:
        empty_s, large_s, checked_s = _measure()
    except (ControlPlaneError, ProcessError, PulumiError, StateError, ToolchainError) as error:
        tables.log(f"error: {error}")
        return 2
    found = verdict(empty_s, large_s, checked_s)
    tables.keep(
        output,
        {
            "benchmark": "preview_large_stack",
            "date": tables.today(),
            "machine": described,
            "topics": TOPICS,
            "users": USERS,
            "emptySeconds": [round(seconds, 2) for seconds in empty_s],
            "largeSeconds": [round(seconds, 2) for seconds in large_s],
            "checkedSeconds": [round(seconds, 2) for seconds in checked_s],
            "medianEmptySeconds": round(found.empty_s, 2),
            "medianLargeSeconds": round(found.large_s, 2),
            "medianCheckedSeconds": round(found.checked_s, 2),
            "allowedSeconds": round(found.allowed_s, 2),
            "policyPackAddsSeconds": round(found.pack_adds_s, 2),
            "policyPackMayAddSeconds": PACK_ADDS_S,
            "passed": found.passed,
        },
    )
    word = "passed" if found.passed else "too slow"
    tables.log(
        f"empty {found.empty_s:.1f} s, large {found.large_s:.1f} s (allowed {found.allowed_s:.1f} s), "
        f"policy pack {found.pack_adds_s:+.1f} s (allowed {PACK_ADDS_S:.1f} s): {word}"
    )
    return 0 if found.passed else 1


def _measure() -> tuple[list[float], list[float], list[float]]:
    """Seconds of the empty, the large and the checked previews, taken in turn, so that a busy moment meets all."""
    tools = locate()
    with tempfile.TemporaryDirectory(prefix="rt-inventory-benchmark-") as name:
        folder = Path(name)
        state = SandboxState(folder / "state")
        try:
            control_plane.up(SandboxContext(state, tools, os.environ, tables.log))
            file = folder / f"Pulumi.{STACK}.yaml"
            values = {f"{NAMESPACE}:{key}": value for key, value in large_stack().items()}
            file.write_text(yaml.safe_dump({"config": values}), encoding="utf-8")
            large = Pulumi(state, tools)
            empty = Pulumi(state, tools, _empty_project(folder / "empty"))
            empty_s, large_s, checked_s = [], [], []
            for number in range(RUNS):
                empty_s.append(_preview(empty, "empty", None))
                large_s.append(_preview(large, STACK, file))
                checked_s.append(_preview(large, STACK, file, "--policy-pack", str(PROJECT / "policies")))
                tables.log(
                    f"run {number + 1}: empty {empty_s[-1]:.1f} s, large {large_s[-1]:.1f} s, "
                    f"with the policy pack {checked_s[-1]:.1f} s"
                )
        finally:
            control_plane.down(state, tables.log)
    return empty_s, large_s, checked_s


def _preview(pulumi: Pulumi, stack: str, file: Path | None, *options: str) -> float:
    """Seconds that one preview takes; making the stack is left out."""
    pulumi.ensure_stack(stack)
    began = time.monotonic()
    pulumi.run(stack, "preview", *options, config_file=file, timeout_s=PREVIEW_WITHIN_S)
    return time.monotonic() - began


def _empty_project(folder: Path) -> Path:
    """A Pulumi project with nothing in it that runs on the same Python."""
    folder.mkdir()
    runtime = {"name": "python", "options": {"virtualenv": str(PROJECT / "venv")}}
    project = {"name": "empty", "runtime": runtime}
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project), encoding="utf-8")
    (folder / "Pulumi.empty.yaml").write_text("config: {}\n", encoding="utf-8")
    (folder / "__main__.py").write_text(_EMPTY_PROGRAM, encoding="utf-8")
    return folder


if __name__ == "__main__":
    sys.exit(main())
