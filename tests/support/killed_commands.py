"""Recovery commands that are killed in the middle of a step: the command, its Pulumi, or what it asks.

Owns how a moment is caught and who ends at it. Does not own what must hold afterwards.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from sandbox.processes import end_processes
from sandbox.state import PROJECT

from .api_proxy import ApiServerProxy, Call, Match, Trap
from .waiting import at_most, wait_until

COMMAND, PULUMI, BOTH, API = "the command", "its Pulumi", "the command and its Pulumi", "the API server"
AWAY_S = 2.0
CAUGHT_S, ENDS_S, ORPHANS_END_S = 120, at_most(240), 5.0
_CANCEL = re.compile(r"pulumi cancel --yes -s \S+\w")


def another_machine(*, ahead_s: float) -> tuple[str, ...]:
    """Words in front of a command's own which make it one of another machine, whose clock is wrong by so much."""
    clock = (f"PYTHONPATH={Path(__file__).parent / 'skewed_clock'}", f"CLOCK_AHEAD_S={ahead_s}")
    return ("unshare", "--map-root-user", "--uts", "env", *clock, "sh", "-c", 'hostname elsewhere && exec "$@"', "sh")


@dataclass(frozen=True, kw_only=True)
class Interruption:
    """What happens in a step, and to whom.

    Args:
        step: The step.
        who: Who is killed; `API`: the API server is away from then on, and no longer accepts the command afterwards.
        at: A request of the command or of Pulumi, in this step; None for the one that would note the step as done.
        passed: Whether the API server gets this request.
        line: What the command prints in this step; whatever comes first of it and of the request counts.
        number: The signal that the command gets at that line. After another one than SIGKILL the request counts.
        nightly: Whether only a nightly run tries it.
    """

    step: str
    who: str = COMMAND
    at: Match | None = None
    passed: bool = False
    line: str | None = None
    number: int = signal.SIGKILL
    nightly: bool = False

    @property
    def match(self) -> Match:
        """The request."""
        return lambda call: call.step == self.step and (self.at or notes(self.step))(call)


def notes(step: str) -> Match:
    """The request that writes into the journal that a step is done."""
    return lambda call: "seconds" in (((call.journal or {}).get("steps") or {}).get(step) or {})


def change_of(resources: str, *, by_pulumi: bool = False) -> Match:
    """A request that changes an object, whose path holds this part; by the command itself or by Pulumi."""
    return lambda call: call.changes and f"/{resources}" in call.path and call.is_pulumis == by_pulumi


def pulumis(call: Call) -> bool:
    """A request of Pulumi, which has locked the stack by then."""
    return call.is_pulumis


class Command:
    """A recovery command at work. `lines` is what it has printed to stderr."""

    def __init__(self, words: Iterable[str], environment: Mapping[str, str], at: Interruption | None = None) -> None:
        self.lines: list[str] = []
        self.reached = threading.Event()
        """Set when the line of the interruption was printed, and the signal was sent."""
        self._at = at if at is not None and at.line is not None else None
        self._child = subprocess.Popen(
            [*words],
            cwd=PROJECT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # the kernel hangs up a group whose parent ends while one of it is frozen
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def ended(self) -> bool:
        return self._child.poll() is not None

    @property
    def said(self) -> str:
        return "".join(self.lines)

    def send(self, number: int) -> None:
        """Send it a signal."""
        self._child.send_signal(number)

    def pulumi(self) -> psutil.Process | None:
        """The Pulumi that it has started, which leads a process group."""
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self._child.pid).children():
                if child.name() == "pulumi":
                    return child
        return None

    def interrupt(self, within_s: float = ENDS_S) -> None:
        """Let one that goes on for ever end, as by Ctrl-C. What it prints is read meanwhile: it may wait for that."""
        watchdog = threading.Timer(within_s, self._child.kill)
        watchdog.start()
        try:
            self.send(signal.SIGINT)
            if self._child.stdout:
                self._child.stdout.read()
            self._child.wait()
        finally:
            watchdog.cancel()
        assert self._child.returncode != -signal.SIGKILL, f"the command must end: {self.said}"
        self._reader.join(10)

    def end(self, within_s: float = ENDS_S) -> tuple[int, dict[str, Any]]:
        """Wait for its end; return its exit code and its document, {} if it has none."""
        try:
            code = self._child.wait(within_s)
        except subprocess.TimeoutExpired:
            self._child.kill()
            raise AssertionError(f"the command must end: {self.said}") from None
        self._reader.join(10)
        stdout = self._child.stdout.read() if self._child.stdout else ""
        return code, json.loads(stdout or "{}")

    def _read(self) -> None:
        begun = False
        for line in self._child.stderr or ():
            self.lines.append(line)
            if self._at is None or self.reached.is_set():
                continue
            begun = begun or re.match(rf"\[\d+/\d+\] {self._at.step}: (?!done)", line) is not None
            if begun and re.search(str(self._at.line), line):
                self.send(self._at.number)
                self.reached.set()


@dataclass
class Killer:
    """Starts commands on a project folder and ends them at exact moments."""

    folder: Path
    environment: Mapping[str, str]
    proxy: ApiServerProxy
    orphans: list[psutil.Process] = field(default_factory=list)
    """What a killed Pulumi had started: its providers do not end with it."""

    def end_orphans(self) -> None:
        """End what a killed Pulumi has left."""
        end_processes(self.orphans, ORPHANS_END_S)

    def start(
        self, *words: str, at: Interruption | None = None, proxied: bool = True, before: Iterable[str] = ()
    ) -> Command:
        """Start a command, behind the proxy unless asked otherwise; `before` are words in front of its own."""
        environment = dict(self.environment)
        if proxied:
            environment["KUBECONFIG"] = str(self.proxy.kubeconfig)
        return Command([*before, sys.executable, "-m", "ops", *words, "-C", str(self.folder)], environment, at)

    def finish(self, *words: str, before: Iterable[str] = ()) -> tuple[int, dict[str, Any], str]:
        """Run a command to its end, a lock of a killed Pulumi released as it says; return its code, document, words."""
        while True:
            command = self.start(*words, proxied=False, before=before)
            code, document = command.end()
            if not self._released(document):
                return code, document, command.said

    def interrupt(self, one: Interruption, *words: str, before: Iterable[str] = ()) -> str:
        """Run a command and let happen what shall happen in a step; return what it has printed."""
        while True:
            self.proxy.forget()
            command, document = self._interrupted(one, words, before)
            if not self._released(document):
                return command.said

    def _interrupted(
        self, one: Interruption, words: Iterable[str], before: Iterable[str]
    ) -> tuple[Command, dict[str, Any]]:
        if one.who == API:
            outage = self.proxy.outage(one.match, AWAY_S)
            command = self.start(*words, before=before)
            code, document = command.end()
            if not _names_lock(document):
                assert (code, bool(outage.unanswered), bool(outage.refused)) == (2, True, True), command.said
                assert "401" in document["error"], document
            return command, document
        with self.proxy.trap(one.match, passed=one.passed) as trap:
            command = self.start(*words, at=one, before=before)
            wait_until(
                f"{one.step} is reached",
                lambda: command.ended or _is_at(one, trap, command),
                CAUGHT_S,
                every_s=0.02,
                otherwise=lambda: command.said,
            )
            if command.ended and not command.reached.is_set():
                _, document = command.end()
                assert _names_lock(document), f"{one} did not happen: {document} {command.said}"
                return command, document
            return command, self._killed(one, command, trap)

    def _killed(self, one: Interruption, command: Command, trap: Trap) -> dict[str, Any]:
        pulumi = command.pulumi()
        if one.who in (COMMAND, BOTH):
            command.send(signal.SIGKILL)
            assert command.end()[0] == -signal.SIGKILL, command.said
        if one.who in (PULUMI, BOTH):
            assert pulumi is not None, command.said
            self.orphans += pulumi.children(recursive=True)
            os.killpg(pulumi.pid, signal.SIGKILL)
        elif pulumi is not None:
            trap.opened.set()  # it goes on without its command
        if one.who == PULUMI:
            code, document = command.end()
            assert (code, "SIGKILL" in document["error"]) == (2, True), f"{document} {command.said}"
        return {}

    def _released(self, document: Mapping[str, Any]) -> bool:
        """Whether an error names the command that releases the lock of a killed Pulumi, which is run then."""
        if not _names_lock(document):
            return False
        found = _CANCEL.search(document["error"])
        assert found is not None
        done = subprocess.run(
            found[0].split(), cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=ENDS_S
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return True


def _is_at(one: Interruption, trap: Trap, command: Command) -> bool:
    return trap.caught.is_set() or (command.reached.is_set() and one.number == signal.SIGKILL)


def _names_lock(document: Mapping[str, Any]) -> bool:
    return _CANCEL.search(document.get("error", "")) is not None
