"""What Pulumi is asked for, and that nothing of it goes on when it must not: a made-up `pulumi` notes its words."""

import os
import signal
import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ops.console import terminated_gently
from ops.errors import OpsError
from ops.pulumi import process
from ops.pulumi import stack as stacks
from ops.pulumi.process import UnreachableError, find_lock
from ops.pulumi.stack import PulumiStack
from tests.support.pulumi_program import shell_updates
from tests.support.recovery_pair import Clock
from tests.support.waiting import wait_until

STACK_FILE = """\
config:
  rt-inventory:mirrors:
    - name: other
    - name: mm2  # the one that counts
      state: running
"""
# Goes on until it is interrupted, then says so: as Pulumi, which writes its state and releases its lock.
WORKS_ON = (
    "trap 'echo interrupted >> {0}/calls; exit 1' INT; echo $$ > {0}/pid; for _ in $(seq 1500); do sleep 0.02; done"
)
ENDS_SLOWLY = (
    "trap 'touch {0}/asked; while [ ! -e {0}/asked_again ]; do sleep 0.02; done; sleep 0.2;"
    " echo interrupted >> {0}/calls; exit 1' INT; echo $$ > {0}/pid; for _ in $(seq 1500); do sleep 0.02; done"
)
STUBBORN = "trap '' INT TERM; echo $$ > {0}/pid; for _ in $(seq 1500); do sleep 0.02; done"


@pytest.fixture
def stack(tmp_path: Path) -> PulumiStack:
    (tmp_path / "Pulumi.stg.yaml").write_text(STACK_FILE, encoding="utf-8")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PULUMI_CONFIG_PASSPHRASE": "passphrase-4711"}
    return PulumiStack(folder=tmp_path, name="stg", environment=environment, up_within_s=20.0)


def words(calls: Path) -> list[str]:
    return [line.split("|")[-1] for line in calls.read_text("utf-8").splitlines()] if calls.exists() else []


def quickly(stack: PulumiStack, up_within_s: float) -> PulumiStack:
    return PulumiStack(folder=stack.folder, name="stg", environment=stack.environment, up_within_s=up_within_s)


def is_gone(folder: Path) -> bool:
    try:
        os.kill(int((folder / "pid").read_text()), 0)
    except ProcessLookupError:
        return True
    return False


def test_settings_are_set_and_taken_out_by_their_place(stack: PulumiStack, tmp_path: Path) -> None:
    calls = shell_updates(tmp_path)
    stack.set_mirror("mm2", {"active": "target", "state": None, "failback": None})
    assert (tmp_path / "Pulumi.stg.yaml").read_text("utf-8") == STACK_FILE.replace("state: running", "active: target")
    assert words(calls) == []


@pytest.mark.parametrize(("name", "times"), [("mm9", 0), ("twice", 2)])
def test_a_mirror_that_is_not_there_once_is_refused(stack: PulumiStack, tmp_path: Path, name: str, times: int) -> None:
    calls = shell_updates(tmp_path)
    with (tmp_path / "Pulumi.stg.yaml").open("a", encoding="utf-8") as file:
        file.write("    - name: twice\n    - name: twice\n")
    with pytest.raises(OpsError, match=rf"mirrors must hold {name} once \(got {times} times\)"):
        stack.set_mirror(name, {"state": "stopped"})
    assert words(calls) == []


@pytest.mark.parametrize(
    ("mirror", "deployed"),
    [
        ("mm2", {"active": "source", "state": "running"}),
        ("other", {"active": "source", "state": "running"}),
        ("gone over", {"active": "target", "state": "paused"}),
        ("gone over", {"state": "paused"}),
    ],
    ids=["written in part", "not written", "written", "asked in part"],
)
def test_a_stack_file_that_says_what_is_deployed_is_the_newest(
    stack: PulumiStack, tmp_path: Path, mirror: str, deployed: dict[str, str]
) -> None:
    calls = shell_updates(tmp_path)
    with (tmp_path / "Pulumi.stg.yaml").open("a", encoding="utf-8") as file:
        file.write("    - name: gone over\n      active: target\n      state: paused\n")
    stack.require_as_deployed(mirror, deployed)
    assert words(calls) == []


@pytest.mark.parametrize(
    ("deployed", "message"),
    [
        ({"active": "target", "state": "stopped"}, "active source, state running"),
        ({"active": "source", "state": "stopped"}, "state running"),
        ({"active": "target", "state": "running"}, "active source"),
    ],
)
def test_a_stack_file_that_says_something_else_than_is_deployed_is_refused(
    stack: PulumiStack, tmp_path: Path, deployed: dict[str, str], message: str
) -> None:
    with pytest.raises(OpsError) as caught:
        stack.require_as_deployed("mm2", deployed)
    assert str(caught.value) == (
        f"file {tmp_path}/Pulumi.stg.yaml: mirror mm2 must be as it is deployed, active {deployed['active']}, state "
        f"{deployed['state']} (got {message}). Take the newest stack file, or carry this one out: pulumi up -s stg. "
        "Nothing was changed."
    )
    with pytest.raises(OpsError, match=r"mirrors must hold mm9 once \(got 0 times\)"):
        stack.require_as_deployed("mm9", deployed)


def test_only_an_up_that_is_reported_to_may_switch_a_mirror(stack: PulumiStack, tmp_path: Path) -> None:
    calls, logged = shell_updates(tmp_path), list[str]()
    stack.set_mirror("mm2", {"state": "stopped"})
    stack.up("mm2", logged.append)
    stack.up(None, logged.append)
    switches = [line.split("|")[0] for line in calls.read_text("utf-8").splitlines()]
    assert switches == ["mm2", "nothing"]
    assert words(calls)[0].startswith("up --yes --skip-preview --non-interactive")
    assert logged == ["pulumi up -s stg"] * 2


def test_an_up_that_fails_is_reported_by_its_error_lines(stack: PulumiStack, tmp_path: Path) -> None:
    shell_updates(
        tmp_path, up="echo Updating; echo '  error: topic items: must be Ready'; echo 'Resources: 3'; exit 255"
    )
    with pytest.raises(OpsError) as caught:
        stack.up("mm2", lambda _: None)
    assert str(caught.value) == (
        "stack stg: `pulumi up` must succeed (exit 255: it failed; error: topic items: must be Ready)."
    )


def test_an_up_that_fails_without_an_error_line_is_reported_by_its_last_words(
    stack: PulumiStack, tmp_path: Path
) -> None:
    shell_updates(tmp_path, up="echo one; echo two; exit 1")
    with pytest.raises(OpsError, match=r"\(exit 1: it failed; one two\)"):
        stack.up("mm2", lambda _: None)
    shell_updates(tmp_path, up="exit 1")
    with pytest.raises(OpsError, match=r"\(exit 1: it failed; no message\)"):
        stack.up("mm2", lambda _: None)


LOCKED = (
    "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the "
    "lock file with pulumi cancel.\n  file:///locks/stg/1.json: created by {who} (pid {pid}) at 2026-11-23T08:00:00Z"
)
CONFLICT = "error: [409] Conflict: Another update is currently in progress."


def locked(folder: Path, text: str, times: int) -> Path:
    """A `pulumi` whose `up` meets a lock so many times."""
    (folder / "locked").write_text(text, encoding="utf-8")
    meets = f"test $(grep -c '|up ' {folder}/calls) -gt {times} || {{ cat {folder}/locked; exit 255; }}"
    return shell_updates(folder, up=meets)


@pytest.mark.parametrize(
    ("text", "who"),
    [
        (LOCKED.format(who="ann@laptop", pid=7), "ann@laptop, process 7, since 2026-11-23T08:00:00Z"),
        (CONFLICT, "another update"),
    ],
    ids=["a bucket", "Pulumi Cloud"],
)
def test_an_up_waits_for_somebody_elses_update_and_reports_whose(
    stack: PulumiStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, who: str
) -> None:
    clock, logged = Clock(), list[str]()
    monkeypatch.setattr(stacks, "time", clock)
    calls = locked(tmp_path, text, times=5)
    stack.up(None, logged.append)
    assert [line.split()[0] for line in words(calls)] == ["up"] * 6
    assert clock.now == 1000 + 25
    waits = [f"  stack stg is locked by {who}: waiting, for {left} s at most" for left in (900, 890, 880)]
    assert logged == ["pulumi up -s stg", *waits]


def test_an_up_waits_for_a_lock_until_its_deadline(
    stack: PulumiStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(stacks, "time", clock)
    locked(tmp_path, LOCKED.format(who="ann@laptop", pid=7), times=99)
    message = r"must end within 12 s \(locked by ann@laptop, process 7, .*\)\. .*: pulumi cancel --yes -s stg -C /.*\."
    with pytest.raises(OpsError, match=message):
        replace(stack, lock_within_s=12.0).up(None, lambda _: None)
    assert clock.now == 1012


def test_an_up_does_not_wait_for_a_lock_whose_process_has_ended(
    stack: PulumiStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = f"ann@{socket.gethostname()}"
    calls = locked(tmp_path, LOCKED.format(who=mine, pid=2**22 + 1), times=99)
    message = r"which has ended\)\. Release its lock, .*: pulumi cancel --yes -s stg"
    with pytest.raises(OpsError, match=rf"{message} -C {tmp_path}\.$"):
        stack.up(None, lambda _: None)
    assert len(words(calls)) == 1
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OpsError, match=rf"{message}\.$"):
        stack.up(None, lambda _: None)
    both = "\n".join([LOCKED.format(who=mine, pid=2**22 + 1), LOCKED.format(who=mine, pid=os.getpid())])
    found = find_lock(both)
    assert found is not None
    assert (found.pid, found.is_left_over) == (os.getpid(), False), "the one that is at work counts"


def test_what_pulumi_often_complains_about_is_explained(stack: PulumiStack, tmp_path: Path) -> None:
    shell_updates(tmp_path, up="echo \"error: no stack named 'stg' found\"; exit 1")
    with pytest.raises(OpsError, match="must exist in the backend"):
        stack.up("mm2", lambda _: None)


@pytest.mark.parametrize(
    "reason",
    [
        "error: resource mm2-mirror was not successfully created: Unauthorized",
        "error: configured Kubernetes cluster is unreachable: unable to load schema information from the API server: "
        "the server has asked for the client to provide credentials",
    ],
    ids=["in the middle", "at the beginning"],
)
def test_a_token_that_has_expired_is_one_error_with_its_remedy(stack: PulumiStack, tmp_path: Path, reason: str) -> None:
    lines = "".join(f"echo '{reason.replace('mm2', name)}'; " for name in ("mm2", "items", "store"))
    shell_updates(tmp_path, up=f"echo Updating; {lines}exit 255")
    with pytest.raises(OpsError) as caught:
        stack.up("mm2", lambda _: None)
    assert str(caught.value) == (
        f"stack stg: the API server must accept who runs Pulumi (Pulumi says: {reason.removeprefix('error: ')}). Its "
        "token or certificate may have expired: log in again, then run this again."
    )


def test_another_401_is_no_kubernetes_login(stack: PulumiStack, tmp_path: Path) -> None:
    shell_updates(tmp_path, up="echo 'error: [401] Unauthorized: No credentials provided'; exit 255")
    with pytest.raises(OpsError, match="`pulumi up` must succeed"):
        stack.up("mm2", lambda _: None)


def test_without_pulumi_the_remedy_is_reported(stack: PulumiStack, tmp_path: Path) -> None:
    bare = PulumiStack(folder=tmp_path, name="stg", environment={"PATH": str(tmp_path / "empty")})
    with pytest.raises(OpsError, match="pulumi must be on PATH"):
        bare.up("mm2", lambda _: None)


def test_an_up_that_does_not_end_is_interrupted_and_gone(stack: PulumiStack, tmp_path: Path) -> None:
    calls = shell_updates(tmp_path, up=f"echo waiting for mm2; {WORKS_ON.format(tmp_path)}")
    with pytest.raises(OpsError, match=r"`pulumi up` must end within 0 s \(got no end; waiting for mm2\)"):
        quickly(stack, 0.4).up("mm2", lambda _: None)
    assert words(calls)[-1] == "interrupted"
    assert is_gone(tmp_path)


def test_an_up_that_ignores_an_interrupt_is_killed(stack: PulumiStack, tmp_path: Path) -> None:
    shell_updates(tmp_path, up=STUBBORN.format(tmp_path))
    ladder = ((signal.SIGINT, 0.1), (signal.SIGTERM, 0.1), (signal.SIGKILL, 5.0))
    with pytest.raises(OpsError, match="must end within"):
        replace(quickly(stack, 3.0), ladder=ladder).up("mm2", lambda _: None)
    assert is_gone(tmp_path)


def test_a_signal_that_arrives_while_a_child_starts_ends_the_command_once_the_child_is_known() -> None:
    children: list[str] = []

    def start() -> None:
        with process.end_requests_deferred():
            signal.raise_signal(signal.SIGTERM)
            children.append("started")

    with terminated_gently(), pytest.raises(SystemExit):
        start()
    assert children == ["started"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["terminated", "connection lost"])
def test_a_command_that_is_asked_to_end_takes_its_up_along(
    stack: PulumiStack, tmp_path: Path, number: signal.Signals
) -> None:
    calls = shell_updates(tmp_path, up=WORKS_ON.format(tmp_path))

    def end() -> None:
        wait_until("pid is written", (tmp_path / "pid").exists, 10, every_s=0.01)
        os.kill(os.getpid(), number)

    before = signal.signal(number, signal.SIG_DFL)  # a run without a terminal may ignore it
    ending = threading.Thread(target=end)
    with terminated_gently():
        ending.start()
        with pytest.raises(SystemExit):
            stack.up("mm2", lambda _: None)
    ending.join()
    signal.signal(number, before)
    assert words(calls)[-1] == "interrupted"
    assert is_gone(tmp_path)


def test_who_asks_again_waits_until_the_up_has_ended(stack: PulumiStack, tmp_path: Path) -> None:
    calls = shell_updates(tmp_path, up=ENDS_SLOWLY.format(tmp_path))

    def ask_again() -> None:
        wait_until("pid is written", (tmp_path / "pid").exists, 10, every_s=0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        wait_until("asked is written", (tmp_path / "asked").exists, 10, every_s=0.01)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(os.getpid(), number)
        (tmp_path / "asked_again").touch()

    asking_again = threading.Thread(target=ask_again)
    with terminated_gently():
        heard = signal.getsignal(signal.SIGTERM)
        asking_again.start()
        with pytest.raises(SystemExit):
            stack.up("mm2", lambda _: None)
        assert signal.getsignal(signal.SIGTERM) is heard
    asking_again.join()
    assert words(calls)[-1] == "interrupted"
    assert is_gone(tmp_path)


def test_a_command_that_outlives_its_connection_on_purpose_goes_on_doing_so() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM)}
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with terminated_gently():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not before[signal.SIGTERM]
        assert signal.getsignal(signal.SIGTERM) is before[signal.SIGTERM]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_its_repr_shows_nothing_of_the_environment(stack: PulumiStack) -> None:
    assert "passphrase-4711" not in repr(stack)


@pytest.mark.parametrize("output", ["echo 'error: InvalidAccessKeyId' >&2; exit 255", "sleep 9"])
def test_a_state_that_is_out_of_reach_is_met_with_a_login(
    stack: PulumiStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    monkeypatch.setattr(stacks, "READ_WITHIN_S", 0.3)
    script = tmp_path / "pulumi"
    script.write_text(f"#!/bin/sh\n{output}\n", "utf-8")
    script.chmod(0o755)
    with pytest.raises(UnreachableError, match=r"if a token of the cloud has expired, log in to the cloud again\.$"):
        stack.outputs()
