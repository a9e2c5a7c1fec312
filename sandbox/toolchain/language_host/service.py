"""The engine's calls: which Python runs a program or a plugin, running it, and what a program needs.

`main` is the host's process: it serves these calls until a signal stops it, or the engine is gone.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from google.protobuf import empty_pb2, json_format  # type: ignore[import-untyped]  # protobuf ships no types
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

from sandbox.toolchain.language_host.plugin_process import (
    MESSAGE_SIZES,
    POLICY_PACK,
    PluginProcess,
    PolicyProxy,
    command_of,
    responses,
)
from sandbox.toolchain.language_host.run_program import REPORTED, REQUEST_VARIABLE

PACKAGES = Path(__file__).with_name("packages.py")


@dataclass(frozen=True)
class Interpreter:
    """A Python and the environment to start it with."""

    python: str
    env: dict[str, str]

    def ask(self, *arguments: str) -> str:
        """Standard output of this Python run with the arguments; raises OSError or CalledProcessError."""
        command = [self.python, *arguments]
        return subprocess.run(command, env=self.env, stdout=subprocess.PIPE, text=True, check=True).stdout

    def packages(self, what: str) -> list[dict[str, str]]:
        """Installed packages: all (`dependencies`), or those that bring a Pulumi provider (`plugins`)."""
        found: list[dict[str, str]] = json.loads(self.ask("-P", str(PACKAGES), what))
        return found


def virtualenv(info: language_pb2.ProgramInfo) -> Path | None:
    """The virtual environment that the program's project file names; a relative one starts at the project."""
    options: dict[str, object] = json_format.MessageToDict(info.options)
    name = options.get("virtualenv")
    return Path(info.root_directory) / name if isinstance(name, str) and name else None


def interpreter_for(info: language_pb2.ProgramInfo, environ: Mapping[str, str] = os.environ) -> Interpreter:
    """The virtual environment's Python, else the one on PATH; raises FileNotFoundError naming a missing one.

    `environ` are the variables to start it with, to which those of the virtual environment are added.
    """
    folder = virtualenv(info)
    if folder is None:
        return Interpreter(environ.get("PULUMI_PYTHON_CMD", "python3"), dict(environ))
    python = folder / "bin" / "python"
    if not python.exists():
        raise FileNotFoundError(
            f"virtualenv: {folder} must be a virtual environment (bin/python not found). Run `make setup`."
        )
    env = {name: value for name, value in environ.items() if name != "PYTHONHOME"}
    env["VIRTUAL_ENV"] = str(folder)
    env["PATH"] = os.pathsep.join([str(folder / "bin"), env.get("PATH", "")])
    return Interpreter(str(python), env)


def own_interpreter() -> Interpreter:
    """The Python that runs this host."""
    return Interpreter(sys.executable, dict(os.environ))


VERSION = "1.0.0"
RUN_PROGRAM = Path(__file__).with_name("run_program.py")


class LanguageService(language_pb2_grpc.LanguageRuntimeServicer):
    """Answers the engine; the programs it starts are stopped with it."""

    def __init__(self, engine_address: str) -> None:
        self._engine_address = engine_address
        self._children: set[subprocess.Popen[bytes]] = set()
        self._plugins: set[PluginProcess] = set()
        self._lock = threading.Lock()

    def stop(self) -> None:
        """Ask every running program and plugin to end: the engine is gone, or has no more use for this host."""
        self.interrupt()
        with self._lock:
            plugins = list(self._plugins)
        for plugin in plugins:
            plugin.interrupt()

    def interrupt(self) -> None:
        """Ask every running program to end. Plugins go on: the engine stops each of them itself, and may need them."""
        with self._lock:
            children = list(self._children)
        for child in children:
            if child.poll() is None:
                child.send_signal(signal.SIGINT)

    def Handshake(  # noqa: N802  # the engine's name
        self, request: language_pb2.LanguageHandshakeRequest, context: grpc.ServicerContext
    ) -> language_pb2.LanguageHandshakeResponse:
        """Take the engine's address."""
        self._engine_address = request.engine_address or self._engine_address
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(  # noqa: N802  # the engine's name
        self, request: empty_pb2.Empty, context: grpc.ServicerContext
    ) -> plugin_pb2.PluginInfo:
        """The host's version."""
        return plugin_pb2.PluginInfo(version=VERSION)

    def About(  # noqa: N802  # the engine's name
        self, request: language_pb2.AboutRequest, context: grpc.ServicerContext
    ) -> language_pb2.AboutResponse:
        """The Python that runs the program."""
        interpreter = _interpreter(request.info, context) if request.HasField("info") else own_interpreter()
        answer = interpreter.ask("-c", "import sys; print(sys.executable); print(sys.version.split()[0])")
        executable, version = answer.split()
        return language_pb2.AboutResponse(executable=executable, version=version)

    def GetRequiredPackages(  # noqa: N802  # the engine's name
        self, request: language_pb2.GetRequiredPackagesRequest, context: grpc.ServicerContext
    ) -> language_pb2.GetRequiredPackagesResponse:
        """The providers that the program's installed packages ask for."""
        plugins = _packages(_interpreter(request.info, context), "plugins", context)
        packages = [
            plugin_pb2.PackageDependency(
                kind="resource", name=plugin["name"], version=plugin["version"], server=plugin["server"]
            )
            for plugin in plugins
        ]
        return language_pb2.GetRequiredPackagesResponse(packages=packages)

    def GetProgramDependencies(  # noqa: N802  # the engine's name
        self, request: language_pb2.GetProgramDependenciesRequest, context: grpc.ServicerContext
    ) -> language_pb2.GetProgramDependenciesResponse:
        """All packages that are installed for the program."""
        found = _packages(_interpreter(request.info, context), "dependencies", context)
        dependencies = [language_pb2.DependencyInfo(**package) for package in found]
        return language_pb2.GetProgramDependenciesResponse(dependencies=dependencies)

    def RuntimeOptionsPrompts(  # noqa: N802  # the engine's name
        self, request: language_pb2.RuntimeOptionsRequest, context: grpc.ServicerContext
    ) -> language_pb2.RuntimeOptionsResponse:
        """Nothing to ask the user for a new project."""
        return language_pb2.RuntimeOptionsResponse()

    def Template(  # noqa: N802  # the engine's name
        self, request: language_pb2.TemplateRequest, context: grpc.ServicerContext
    ) -> language_pb2.TemplateResponse:
        """Nothing to add to a new project."""
        return language_pb2.TemplateResponse()

    def Cancel(  # noqa: N802  # the engine's name
        self, request: empty_pb2.Empty, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        """Stop what runs: the user has pressed Ctrl-C."""
        self.interrupt()
        return empty_pb2.Empty()

    def Run(  # noqa: N802  # the engine's name
        self, request: language_pb2.RunRequest, context: grpc.ServicerContext
    ) -> language_pb2.RunResponse:
        """Run the program to its end; it reports its own errors to the engine."""
        try:
            interpreter = interpreter_for(request.info)
        except OSError as error:
            return language_pb2.RunResponse(error=str(error))
        command = [interpreter.python, "-u", "-P", str(RUN_PROGRAM)]
        child = self._start(command, env={**interpreter.env, **_run_environment(request, self._engine_address)})
        context.add_callback(lambda: child.send_signal(signal.SIGINT) if child.poll() is None else None)
        status = self._end(child)
        if status == REPORTED:
            return language_pb2.RunResponse(bail=True)
        return language_pb2.RunResponse(error=f"program exited with non-zero exit code: {status}" if status else "")

    def RunPlugin(  # noqa: N802  # the engine's name
        self, request: language_pb2.RunPluginRequest, context: grpc.ServicerContext
    ) -> Iterator[language_pb2.RunPluginResponse]:
        """Run a plugin until it ends or the engine cancels this call; its output comes as it is written.

        The engine sends the variables to start it with, those of its own process among them.
        """
        given = dict(item.partition("=")[::2] for item in request.env)
        interpreter = _interpreter(request.info, context, {**os.environ, **given})
        command, folder = command_of(request, interpreter.python)
        with contextlib.ExitStack() as running:
            proxy, environment = None, interpreter.env
            if request.kind == POLICY_PACK:
                proxy = PolicyProxy()
                running.callback(proxy.close)
                context.add_callback(proxy.close)
                yield language_pb2.RunPluginResponse(stdout=f"{proxy.port}\n".encode())
                proxy.wait_for_stack()
                environment = {**environment, **proxy.environment()}
            if not context.is_active():
                return
            try:
                process = PluginProcess(command, folder, environment)
                running.callback(self._end_plugin, process)
                with self._lock:
                    self._plugins.add(process)
                if not context.add_callback(process.interrupt):
                    return
                yield from responses(process, proxy)
            except (OSError, ValueError) as error:
                context.abort(grpc.StatusCode.UNKNOWN, str(error))

    def InstallDependencies(  # noqa: N802  # the engine's name
        self, request: language_pb2.InstallDependenciesRequest, context: grpc.ServicerContext
    ) -> Iterator[language_pb2.InstallDependenciesResponse]:
        """Make the virtual environment and install the lock, or else requirements.txt, into it (`pulumi install`)."""
        folder = virtualenv(request.info) or Path(request.info.root_directory) / "venv"
        python = folder / "bin" / "python"
        commands = [] if python.exists() else [[sys.executable, "-m", "venv", str(folder)]]
        program = Path(request.info.program_directory)
        install = [str(python), "-m", "pip", "install"]
        if (program / "requirements.lock").exists():
            commands.append([*install, "--require-hashes", "-r", "requirements.lock"])
        elif (program / "requirements.txt").exists():
            commands.append([*install, "-r", "requirements.txt"])
        for command in commands:
            child = self._start(
                command, cwd=request.info.program_directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            for line in child.stdout or ():
                yield language_pb2.InstallDependenciesResponse(stdout=line)
            if status := self._end(child):
                context.abort(grpc.StatusCode.UNKNOWN, f"{' '.join(command)} ended with {status}")

    def _start(self, command: list[str], **options: object) -> subprocess.Popen[bytes]:
        child: subprocess.Popen[bytes] = subprocess.Popen(command, **options)  # type: ignore[call-overload]  # options are passed on as they are
        with self._lock:
            self._children.add(child)
        return child

    def _end_plugin(self, process: PluginProcess) -> None:
        process.close()
        with self._lock:
            self._plugins.discard(process)

    def _end(self, child: subprocess.Popen[bytes]) -> int:
        try:
            return child.wait()
        finally:
            with self._lock:
                self._children.discard(child)


def _interpreter(
    info: language_pb2.ProgramInfo, context: grpc.ServicerContext, environ: Mapping[str, str] = os.environ
) -> Interpreter:
    try:
        return interpreter_for(info, environ)
    except OSError as error:
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        raise


def _packages(interpreter: Interpreter, what: str, context: grpc.ServicerContext) -> list[dict[str, str]]:
    try:
        return interpreter.packages(what)
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        context.abort(grpc.StatusCode.UNKNOWN, f"packages of {interpreter.python} cannot be read: {error}")
        raise


def _run_environment(request: language_pb2.RunRequest, engine_address: str) -> dict[str, str]:
    """What the program's process gets: the stack's configuration the SDK's way, and what run_program.py reads."""
    wanted = {
        "program": request.info.entry_point,
        "pwd": request.pwd,
        "args": list(request.args),
        "settings": {
            "project": request.project,
            "stack": request.stack,
            "parallel": request.parallel,
            "engine": engine_address,
            "monitor": request.monitor_address,
            "dry_run": request.dryRun,
            "organization": request.organization,
            "root_directory": request.info.root_directory,
        },
    }
    return {
        "PULUMI_CONFIG": json.dumps(dict(request.config)),
        "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
        REQUEST_VARIABLE: json.dumps(wanted),
    }


WORKERS = 16
ENGINE_CHECK_S = 1.0


def main() -> None:
    """Serve on a free local port, whose number is the first line of standard output, as the engine expects.

    An engine that is killed sends no signal: its host would run for ever.
    """
    engine = os.getppid()
    addresses = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    server = grpc.server(futures.ThreadPoolExecutor(WORKERS), options=MESSAGE_SIZES)
    service = LanguageService(addresses[0] if addresses else "")
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: stop.set())
    while os.getppid() == engine and not stop.wait(ENGINE_CHECK_S):
        pass
    service.stop()
    server.stop(grace=1)
