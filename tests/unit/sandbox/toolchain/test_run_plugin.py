"""Policy packs and providers that the engine starts by the language host's RunPlugin, over gRPC like the engine."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc, language_pb2, language_pb2_grpc

from sandbox.toolchain import SERVE
from tests.support.waiting import wait_until

WITHIN_S = 90.0
PACK = """\
import os
import pulumi
from pulumi_policy import EnforcementLevel, PolicyPack, ResourceValidationPolicy

def validate(args, report):
    report(f"{pulumi.get_project()}/{pulumi.get_stack()} {pulumi.Config('a').get('b')} {os.getcwd()}")

PolicyPack(
    "pack",
    enforcement_level=EnforcementLevel.MANDATORY,
    policies=[ResourceValidationPolicy(name="says", description="Says its stack.", validate=validate)],
)
"""
Answer = Callable[..., Iterator[language_pb2.RunPluginResponse]]


@dataclass(frozen=True)
class Host:
    """A host's process, and the port that it serves."""

    process: "subprocess.Popen[str]"
    port: int


@contextmanager
def started() -> Iterator[Host]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    command = [sys.executable, "-P", "-c", SERVE]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        yield Host(child, int(child.stdout.readline()))
        child.terminate()


@pytest.fixture(scope="module")
def shared_host() -> Iterator[Host]:
    """The host of all tests that neither end nor cancel theirs: a start takes as long as ten of them."""
    with started() as made:
        yield made


@pytest.fixture
def host() -> Iterator[Host]:
    """A host for one test, which may do with it what it likes."""
    with started() as made:
        yield made


@pytest.fixture
def languages(request: pytest.FixtureRequest) -> Iterator[language_pb2_grpc.LanguageRuntimeStub]:
    """The calls of the test's own host if it asks for one, else of the shared one."""
    used = request.getfixturevalue("host" if "host" in request.fixturenames else "shared_host")
    with grpc.insecure_channel(f"127.0.0.1:{used.port}") as channel:
        yield language_pb2_grpc.LanguageRuntimeStub(channel)


@pytest.fixture
def run(languages: language_pb2_grpc.LanguageRuntimeStub, tmp_path: Path) -> Answer:
    """Let the host run the folder `plugin` with this text as its main module."""
    folder = tmp_path / "plugin"
    folder.mkdir()

    def run(text: str, *args: str, kind: str = "resource", virtualenv: str = "", **variables: str):  # type: ignore[no-untyped-def]
        (folder / "__main__.py").write_text(text, encoding="utf-8")
        options = struct_pb2.Struct()
        if virtualenv:
            options.update({"virtualenv": virtualenv})
        info = language_pb2.ProgramInfo(
            root_directory=str(folder), program_directory=str(folder), entry_point=".", options=options
        )
        env = {**os.environ, "PULUMI_PYTHON_CMD": sys.executable, **variables}
        request = language_pb2.RunPluginRequest(
            pwd=str(tmp_path), args=args, env=[f"{key}={value}" for key, value in env.items()], info=info, kind=kind
        )
        return languages.RunPlugin(request, timeout=WITHIN_S)

    return run


def streams(responses: Iterator[language_pb2.RunPluginResponse]) -> tuple[bytes, bytes, list[int]]:
    """All of standard output, all of standard error, and the exit codes."""
    found = list(responses)
    codes = [each.exitcode for each in found if each.HasField("exitcode")]
    return b"".join(each.stdout for each in found), b"".join(each.stderr for each in found), codes


def port(responses: Iterator[language_pb2.RunPluginResponse]) -> int:
    """What a plugin writes first."""
    return int(next(responses).stdout)


def configured(address: int) -> analyzer_pb2_grpc.AnalyzerStub:
    """A pack after the calls with which the engine begins."""
    pack = analyzer_pb2_grpc.AnalyzerStub(grpc.insecure_channel(f"127.0.0.1:{address}"))
    pack.Handshake(analyzer_pb2.AnalyzerHandshakeRequest(engine_address="127.0.0.1:1"), timeout=WITHIN_S)
    stack = analyzer_pb2.AnalyzerStackConfigureRequest(stack="dev", project="shop", dry_run=True, config={"a:b": "c"})
    pack.ConfigureStack(stack, timeout=WITHIN_S)
    return pack


def wait_until_gone(process: int) -> None:
    wait_until("the end of the plugin", lambda: not Path(f"/proc/{process}").exists(), 10.0, every_s=0.05)


def test_a_plugins_output_and_exit_code_come_back(run: Answer, tmp_path: Path) -> None:
    said = "print(os.getcwd(), *sys.argv[1:], os.environ['COLOUR'])\nprint('no', file=sys.stderr)"
    text = f"import os, sys\n{said}\nsys.exit(7)\n"
    out, err, codes = streams(run(text, "127.0.0.1:1", "x", COLOUR="blue"))
    assert (out.decode(), err.decode(), codes) == (f"{tmp_path} 127.0.0.1:1 x blue\n", "no\n", [7])


def test_output_comes_while_the_plugin_runs_and_the_exit_code_last(run: Answer, tmp_path: Path) -> None:
    wait = "import time\nfrom pathlib import Path\nwhile not Path('go').exists():\n    time.sleep(0.05)\n"
    responses = run(f"print(4711, flush=True)\n{wait}print('end')\n")
    assert port(responses) == 4711
    (tmp_path / "go").touch()
    rest = list(responses)
    assert b"".join(each.stdout for each in rest).split() == [b"end"]
    assert [each.exitcode for each in rest if each.HasField("exitcode")] == [0]
    assert rest[-1].HasField("exitcode")


def test_a_plugin_that_writes_much_to_both_streams_loses_nothing(run: Answer) -> None:
    out, err, codes = streams(run("import sys\nsys.stderr.write('e' * 3_000_000)\nsys.stdout.write('o' * 3_000_000)\n"))
    assert (len(out), len(err), codes) == (3_000_000, 3_000_000, [0])


def test_the_virtual_environment_of_the_plugin_runs_it_whatever_the_engines_path(run: Answer, tmp_path: Path) -> None:
    python = tmp_path / "plugin" / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    text = "import os\nprint(os.environ['VIRTUAL_ENV'], os.environ['PATH'].split(':')[0])\n"
    out, _, _ = streams(run(text, virtualenv="env", PATH="/usr/bin:/bin"))
    assert out.decode() == f"{tmp_path}/plugin/env {python.parent}\n"


def test_a_missing_virtual_environment_is_named(run: Answer) -> None:
    with pytest.raises(grpc.RpcError, match="env must be a virtual environment") as caught:
        list(run("", virtualenv="env"))
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION


@pytest.mark.parametrize("ignores", ["", "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"])
def test_a_cancelled_call_ends_the_plugin_and_what_it_started(run: Answer, ignores: str) -> None:
    text = (
        f"{ignores}import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "import os\nprint(os.getpid(), child.pid, flush=True)\ntime.sleep(60)\n"
    )
    responses = run(text)
    processes = [int(word) for word in next(responses).stdout.split()]
    responses.cancel()
    for process in processes:
        wait_until_gone(process)


def test_cancel_of_the_engine_leaves_plugins_to_the_engine(
    host: Host, run: Answer, languages: language_pb2_grpc.LanguageRuntimeStub
) -> None:
    responses = run("import sys\nprint(1, flush=True)\nimport time\ntime.sleep(2)\nprint('lived', flush=True)\n")
    assert port(responses) == 1
    languages.Cancel(empty_pb2.Empty(), timeout=WITHIN_S)
    out, err, codes = streams(responses)
    assert (out.split(), err, codes) == ([b"lived"], b"", [0])


def test_a_host_that_ends_takes_its_plugins_with_it(host: Host, run: Answer) -> None:
    process = port(run("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n"))
    host.process.terminate()
    wait_until_gone(process)


def test_a_policy_pack_knows_its_stack_and_judges(run: Answer, tmp_path: Path) -> None:
    responses = run(PACK, "127.0.0.1:1", kind="analyzer")
    pack = configured(port(responses))
    assert pack.GetAnalyzerInfo(empty_pb2.Empty(), timeout=WITHIN_S).name == "pack"
    resource = analyzer_pb2.AnalyzeRequest(type="x:y:Z", urn="urn:pulumi:dev::shop::x:y:Z::z", name="z")
    (found,) = pack.Analyze(resource, timeout=WITHIN_S).diagnostics
    assert found.message.endswith(f"shop/dev c {tmp_path}/plugin")
    assert found.enforcementLevel == analyzer_pb2.MANDATORY
    responses.cancel()


def test_a_policy_pack_without_a_stack_starts_at_the_first_question(run: Answer) -> None:
    responses = run(PACK, "127.0.0.1:1", kind="analyzer")
    pack = analyzer_pb2_grpc.AnalyzerStub(grpc.insecure_channel(f"127.0.0.1:{port(responses)}"))
    assert [each.name for each in pack.GetAnalyzerInfo(empty_pb2.Empty(), timeout=WITHIN_S).policies] == ["says"]
    responses.cancel()


def test_a_policy_pack_that_fails_to_start_fails_the_questions_to_it(run: Answer) -> None:
    responses = run("raise ValueError('bad pack')\n", "127.0.0.1:1", kind="analyzer")
    pack = configured(port(responses))
    with pytest.raises(grpc.RpcError, match="policy pack: must start and serve"):
        pack.GetAnalyzerInfo(empty_pb2.Empty(), timeout=WITHIN_S)
    _, err, codes = streams(responses)
    assert b"bad pack" in err
    assert codes == [1]


def test_a_policy_pack_that_prints_before_it_serves_is_reported(run: Answer) -> None:
    responses = run(f"print('hello')\n{PACK}", "127.0.0.1:1", kind="analyzer")
    configured(port(responses))
    with pytest.raises(grpc.RpcError, match=r"first line of output must be the port .*'hello'"):
        list(responses)


def test_a_policy_pack_that_was_never_configured_ends_with_its_call(host: Host, run: Answer) -> None:
    responses = run(PACK, "127.0.0.1:1", kind="analyzer")
    assert port(responses) > 0
    responses.cancel()
    host.process.terminate()
    assert host.process.wait(timeout=60) == 0
