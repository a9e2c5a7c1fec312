"""The sandbox that all tests in this folder share, and both stacks in it; each is made once, when first asked for."""

import contextlib
import copy
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sandbox import control_plane
from sandbox.processes import marked
from sandbox.pulumi import Pulumi, PulumiError
from sandbox.state import SandboxState
from sandbox.toolchain import Tools, image_parts, locate
from sandbox.toolchain.__main__ import ensure
from sandbox.toolchain.paths import here
from tests.support.waiting import at_most

from ..support.images import Images
from ..support.lines_of_business import EXAMPLE, SOURCE, TARGET, Lines
from ..support.projects import Project
from ..support.running_sandbox import Pair, Sandbox
from ..support.written_topics import PREFIX, TESTER, Bench, add_tester

HERE = Path(__file__).parent
STACK_UP_S = at_most(420)
# Examples are previewed and played while nothing is up whose names are theirs.
FIRST = ("test_examples.py", "test_stories.py")
# The search for passwords reads what all other tests left; the destruction ends the stacks that they share.
# Those before them share one pair of clusters, which is up no longer than it must.
SHARING_LINES = ("test_tenancy.py", "test_rotation.py", "test_rolling_version.py", "test_changes.py", "test_scaling.py")
LAST = (*SHARING_LINES, "test_secrets.py", "test_destroy.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder, so that `-m "not sandbox"` leaves them out, and put each in its turn."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.sandbox)
    order = [*FIRST, "", *LAST]
    items.sort(key=lambda item: order.index(item.path.name if item.path.name in order else ""))


@pytest.fixture(scope="session")
def tools() -> Tools:
    return locate()


@pytest.fixture(scope="session")
def sandbox(tools: Tools) -> Iterator[Sandbox]:
    """A running sandbox in a state folder of its own; at the end it is stopped and nothing of it may be left."""
    state = SandboxState(Path(tempfile.mkdtemp(prefix="rt-inventory-")) / "sandbox")
    said: list[str] = []
    began = time.monotonic()
    try:
        control_plane.up(control_plane.SandboxContext(state, tools, os.environ, said.append))
        pulumi = Pulumi(state, tools)
        pulumi.write_shim()
        yield Sandbox(state, tools, pulumi, time.monotonic() - began, said)
    finally:
        # A verification or an engine that a failed test left behind is not the control plane's to stop.
        left = _clients(state)
        control_plane.down(state, said.append)
        survivors = [f"{process.pid} {process.name()}" for process in marked(state)]
        shutil.rmtree(state.path.parent, ignore_errors=True)
    assert not survivors, f"processes left after down: {survivors}"
    assert not left, f"clients left by a test: {left}"


@pytest.fixture(scope="session")
def pair(sandbox: Sandbox) -> Pair:
    """Both stacks up, dev first, as in the README."""
    seconds = {}
    for stack in ("dev", "stg"):
        began = time.monotonic()
        try:
            sandbox.pulumi.ensure_stack(stack)
            sandbox.pulumi.run(stack, "up", "--yes", "--skip-preview", timeout_s=STACK_UP_S)
        except PulumiError as error:
            pytest.fail(f"{error}\n\n{sandbox.tails()}", pytrace=False)
        seconds[stack] = round(time.monotonic() - began, 1)
    outputs = {stack: sandbox.pulumi.outputs(stack, show_secrets=True) for stack in seconds}
    return Pair(dev=outputs["dev"], stg=outputs["stg"], seconds=seconds)


@pytest.fixture(scope="session")
def images(tools: Tools) -> Iterator[Images]:
    """This project's images, each built when it is first asked for; what that needs is fetched once."""
    if problem := image_parts.problem(here()):
        pytest.fail(problem, pytrace=False)
    assert ensure(here(), [image_parts.NAME]) == 0, "the parts of images must be there, see above"
    built = Images(Path(tempfile.mkdtemp(prefix="rt-inventory-images-")), tools)
    yield built
    built.close()


@pytest.fixture(scope="session")
def lines(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory, nightly: bool) -> Iterator[Lines]:
    """A source and a target with one mirror for each line of business, each a small cluster of its own."""
    project = Project.of_example(sandbox, EXAMPLE, tmp_path_factory.mktemp(EXAMPLE))
    try:
        for stack in (SOURCE, TARGET):
            project.up(stack)
        yield Lines(project)
    finally:
        if nightly:  # else the end of the sandbox, which follows, is the end of all that is in it
            project.destroy(TARGET, SOURCE)


@pytest.fixture(scope="module")
def bench(pair: Pair, sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The pair's own request, made by a user on each side that may write topics of its own."""
    request = copy.deepcopy(pair.stg["verificationRequests"]["mm2"])
    environment = dict(pair.stg["verificationEnvironment"]["mm2"])
    environment |= sandbox.tools.spark_environment
    clusters = {"source": pair.dev["cluster"], "target": pair.stg["cluster"]}
    for side, cluster in clusters.items():
        config = request[side]["client_config"]
        config["sasl.username"] = TESTER
        environment[config["sasl.password"]["env"]] = add_tester(
            sandbox,
            cluster["namespace"],
            cluster["name"],
            prefixes=(PREFIX, f"{request['mirror']['source_alias']}.{PREFIX}"),
        )
    yield Bench(request, environment, tmp_path_factory.mktemp("verification"))
    for cluster in clusters.values():
        sandbox.kubectl("delete", f"kafkauser/{TESTER}", f"secret/{TESTER}-credentials", "-n", cluster["namespace"])


def _clients(state: SandboxState) -> list[str]:
    """Living processes that know this sandbox and are none of its own."""
    found, own = [], {process.pid for process in marked(state)}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("RT_INVENTORY_SANDBOX") == str(state.path) and process.pid not in own:
                found.append(f"{process.pid} {' '.join(process.cmdline())[:200]}")
    return found
