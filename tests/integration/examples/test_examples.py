"""Every example against the API server: the engine previews it, and the definitions accept what it renders to."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from components.__main__ import Manifest, manifests, write
from examples.__main__ import Example, examples
from ops.policy import judging
from sandbox.pulumi import Pulumi
from sandbox.state import PROJECT
from sandbox.toolchain import locate
from settings import Stack
from settings.users import ExistingSecret
from tests.support.waiting import wait_until

from ...support.projects import PREVIEW_S, output_of
from ...support.running_sandbox import Sandbox, environment_beside
from ...support.spark_operator import definitions, spark_definitions

STACKS = [pytest.param(each, stack, id=f"{each.name}-{stack}") for each in examples() for stack in each.stacks]


def with_most_mirrors(example: Example) -> str:
    return max(example.stacks, key=lambda stack: len(example.settings(stack).mirrors))


# One for each API version, an external cluster, and the verification as a SparkApplication. The pair and the lines of
# business that other tests bring up are the stacks of two more.
IN_EVERY_RUN = ("cloud-to-strimzi", "event-streams", "strimzi-0.45", "verification-in-cluster")
# One stack of each: a fast test judges what every stack renders to by the same pack.
PREVIEWED = [
    pytest.param(each, stack, id=f"{each.name}-{stack}", marks=() if each.name in IN_EVERY_RUN else pytest.mark.nightly)
    for each in examples()
    for stack in [with_most_mirrors(each)]
]
Rendered = dict[tuple[str, str], list[Manifest]]


@pytest.fixture(scope="module", autouse=True)
def event_streams(sandbox: Sandbox) -> Iterator[None]:
    """IBM's definitions, for as long as these tests run: `kubectl` cannot tell their kinds from Strimzi's by name."""
    folder = str(sandbox.tools.event_streams_crds)
    with definitions(sandbox, folder):
        yield


@pytest.fixture(scope="module", autouse=True)
def spark_operator(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The definitions of the Spark operator, for as long as these tests run."""
    with spark_definitions(sandbox, tmp_path_factory.mktemp("module")):
        yield


@pytest.fixture(scope="module")
def rendered() -> Rendered:
    """The manifests of every stack of every example."""
    return {(each.name, stack): manifests(each.folder, stack) for each in examples() for stack in each.stacks}


@pytest.fixture(scope="module")
def beforehand(sandbox: Sandbox) -> Iterator[None]:
    """The Secrets that examples between clusters of others ask for, and the namespaces that hold them."""
    needed = [secret for each in examples() for stack in each.stacks for secret in asked_for(each.settings(stack))]
    with namespaces(sandbox, {secret["metadata"]["namespace"] for secret in needed}):
        sandbox.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(needed))
        yield


@pytest.fixture(scope="module")
def everywhere(sandbox: Sandbox, rendered: Rendered) -> Iterator[None]:
    """Every namespace that a manifest lies in."""
    found = (each["metadata"].get("namespace") for page in rendered.values() for each in page)
    with namespaces(sandbox, {name for name in found if name}):
        yield


@contextmanager
def namespaces(sandbox: Sandbox, names: set[str]) -> Iterator[None]:
    """Make those of the namespaces that are not there, and remove them at the end."""
    new = sorted(names - present(sandbox))
    made = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in new]
    if not new:
        yield
        return
    sandbox.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(made))
    try:
        yield
    finally:
        sandbox.kubectl("delete", "namespace", "--wait=false", *new)
        wait_until("the namespaces are gone", lambda: not present(sandbox) & set(new), 90, every_s=2)


def present(sandbox: Sandbox) -> set[str]:
    return {each["metadata"]["name"] for each in sandbox.get("namespaces")["items"]}


def asked_for(settings: Stack) -> Iterator[Manifest]:
    """Secrets that a stack takes for given."""
    home = settings.cluster.namespace
    for user in settings.users:
        if user.secret is not None:
            yield secret(home, user.secret)
    if settings.cluster.external is not None and settings.cluster.ca_secret is not None:
        yield secret(home, ExistingSecret(name=settings.cluster.ca_secret[0]))
    for mirror in settings.mirrors:
        if mirror.source.external is not None:
            external = mirror.source.external
            yield secret(mirror.home(home), external.secret)
            if external.ca_secret is not None:
                yield secret(mirror.home(home), ExistingSecret(name=external.ca_secret[0]))


def secret(namespace: str, known: ExistingSecret) -> Manifest:
    """A Secret with every key that may be looked for."""
    keys = (known.password_key, known.certificate_key, known.private_key_key, "ca.crt")
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": known.name, "namespace": namespace},
        "stringData": dict.fromkeys(keys, "made-beforehand"),
    }


@pytest.mark.parametrize(("example", "stack"), PREVIEWED)
@pytest.mark.usefixtures("beforehand")
def test_it_previews_while_no_stack_of_it_is_up_and_passes_the_policy_pack(
    sandbox: Sandbox, example: Example, stack: str
) -> None:
    before = {path.name: path.read_bytes() for path in example.folder.iterdir() if path.is_file()}
    engine = Pulumi(sandbox.state, sandbox.tools, example.folder)
    pack = ("--policy-pack", str(PROJECT / "policies"))
    with judging.merged_file(judging.files_on_top(example.folder, stack, None)) as file:
        configured = ("--policy-pack-config", str(file)) if file else ()
        result = engine.run(stack, "preview", *pack, *configured, check=False, timeout_s=PREVIEW_S)
    assert result.returncode == 0, output_of(result)
    assert "to create" in result.stdout, output_of(result)
    warnings = [line for line in output_of(result).splitlines() if "warning:" in line]
    assert all("its source stack" in line and "is not up" in line for line in warnings), output_of(result)
    assert "rt-inventory@v" in result.stdout, output_of(result)
    assert "[mandatory]" not in result.stdout, output_of(result)
    assert {path.name: path.read_bytes() for path in example.folder.iterdir() if path.is_file()} == before


def test_it_previews_with_nothing_but_the_cli_and_its_own_virtual_environment(tmp_path: Path) -> None:
    """As in a user's shell: no PULUMI_PYTHON_CMD. The verification makes Pulumi start a dynamic provider too."""
    (example,) = (each for each in examples() if each.name == "active-passive")
    (tmp_path / "state").mkdir()
    shutil.copy(example.folder / "Pulumi.yaml", tmp_path)
    environment, pulumi = environment_beside(tmp_path), str(locate().pulumi)
    assert "PULUMI_PYTHON_CMD" not in environment

    def run(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
        command = [pulumi, *arguments, "--non-interactive"]
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PREVIEW_S, check=False
        )

    made = run("stack", "init", "stg", folder=tmp_path)
    assert made.returncode == 0, output_of(made)
    stack_file = tmp_path / "Pulumi.stg.yaml"
    document = yaml.safe_load(stack_file.read_text(encoding="utf-8"))
    document |= yaml.safe_load((example.folder / stack_file.name).read_text(encoding="utf-8"))
    document["config"]["kubernetes:renderYamlToDirectory"] = str(tmp_path / "manifests")  # no API server is asked
    stack_file.write_text(yaml.safe_dump(document), encoding="utf-8")
    result = run("preview", "--stack", "stg", "--config-file", str(stack_file), folder=example.folder)
    assert result.returncode == 0, output_of(result)
    assert "pulumi-python:dynamic/verification:Run" in result.stdout


@pytest.fixture(scope="module")
def answer(
    sandbox: Sandbox, rendered: Rendered, everywhere: None, tmp_path_factory: pytest.TempPathFactory
) -> "subprocess.CompletedProcess[str]":
    """The API server's answers to all manifests, requested once; a rejected object is reported with its file."""
    folder = tmp_path_factory.mktemp("manifests")
    for (name, stack), page in rendered.items():
        (folder / f"{name}.{stack}").mkdir()
        write(folder / f"{name}.{stack}", page)
    return sandbox.kubectl(
        "apply", "--dry-run=server", "--validate=strict", "--recursive", "-f", str(folder), check=False
    )


@pytest.mark.parametrize(("example", "stack"), STACKS)
def test_the_api_server_refuses_nothing_that_it_renders_to(
    answer: "subprocess.CompletedProcess[str]", example: Example, stack: str
) -> None:
    assert not [line for line in answer.stderr.splitlines() if f"/{example.name}.{stack}/" in line]


def test_the_api_server_accepts_everything(answer: "subprocess.CompletedProcess[str]", rendered: Rendered) -> None:
    assert answer.returncode == 0, answer.stderr
    assert len(answer.stdout.splitlines()) == sum(map(len, rendered.values()))


@pytest.mark.parametrize("name", ["from-europe-verify", "from-europe-audit"])
@pytest.mark.usefixtures("everywhere")
def test_a_spark_application_with_a_field_that_the_operator_does_not_know_is_refused(
    sandbox: Sandbox, rendered: Rendered, tmp_path: Path, name: str
) -> None:
    found = [each for page in rendered.values() for each in page if each["kind"] == "SparkApplication"]
    (application,) = (each for each in found if each["metadata"]["name"].startswith(name))
    write(tmp_path, [application | {"spec": application["spec"] | {"executors": 4}}])
    answer = sandbox.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(tmp_path), check=False)
    assert 'unknown field "spec.executors"' in answer.stderr


@pytest.mark.usefixtures("everywhere")
def test_a_scaled_object_with_a_field_that_keda_does_not_know_is_refused(
    sandbox: Sandbox, rendered: Rendered, tmp_path: Path
) -> None:
    found = [each for page in rendered.values() for each in page if each["kind"] == "ScaledObject"]
    (scaled,) = found
    write(tmp_path, [scaled | {"spec": scaled["spec"] | {"minReplicas": 1}}])
    answer = sandbox.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(tmp_path), check=False)
    assert 'unknown field "spec.minReplicas"' in answer.stderr


@pytest.mark.usefixtures("everywhere")
def test_a_mirror_with_a_field_that_its_api_version_does_not_have_is_refused(
    sandbox: Sandbox, rendered: Rendered, tmp_path: Path
) -> None:
    every = [each for page in rendered.values() for each in page if each["kind"] == "KafkaMirrorMaker2"]
    mirrors = {each["apiVersion"]: each for each in every}
    assert len(mirrors) == 3
    for version, mirror in mirrors.items():
        other = {"connectCluster": "there"} if "target" in mirror["spec"] else {"target": {"alias": "there"}}
        write(tmp_path, [mirror | {"spec": mirror["spec"] | other}])
        answer = sandbox.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(tmp_path), check=False)
        assert f'unknown field "spec.{next(iter(other))}"' in answer.stderr, f"{version}: {answer.stderr}"
