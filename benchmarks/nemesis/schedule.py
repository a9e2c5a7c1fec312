"""Which faults a run injects, and when, from a seed: pure, so that a run with the same seed has the same faults."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.certificates import CLIENTS
from benchmarks.clusters import SOURCE, TARGET, WORKER
from benchmarks.nemesis.traffic import GROUP_KINDS, KEYED, RECREATED, SHARE


class Fault(StrEnum):
    """What a fault does: to the line between the sites, to a process, or to the traffic."""

    CUT = "cut"
    """Drops all that is sent, silently."""
    DELAY = "delay"
    """Half a second a round trip, and some jitter."""
    RESET = "reset"
    """Resets each connection at the next bytes in it."""
    PAUSE = "pause"
    """SIGSTOP, and SIGCONT at the end."""
    KILL = "kill"
    """SIGKILL; started again at the end."""
    FULL_DISK = "full disk"
    """A broker can write to no file, as where its disk is full; started again at the end if it has ended for that."""
    LEAVE = "leave"
    """A member leaves its group, and joins it again at the end."""
    ADD_PARTITION = "add partition"
    """A topic gets one partition more, for good."""
    RECREATE = "recreate"
    """A topic is deleted and created again."""
    AHEAD = "ahead"
    """The clock of a producer is an hour ahead."""
    BEHIND = "behind"
    """The clock of a producer is an hour behind."""
    RENEW = "renew certificate"
    """A broker reads a new one while it runs, the worker is started again with its own, clients connect again."""
    ROLL = "roll version"
    """SIGTERM of a broker or the worker; started with the other version of Kafka at the end."""


NETWORK = (Fault.CUT, Fault.DELAY, Fault.RESET)
LINE = "line"
PROCESSES = (SOURCE, TARGET, WORKER)
CLOCK = "clock"
TARGETS: Mapping[Fault, tuple[str, ...]] = {
    **dict.fromkeys(NETWORK, (LINE,)),
    Fault.PAUSE: PROCESSES,
    Fault.KILL: PROCESSES,
    Fault.FULL_DISK: (SOURCE, TARGET),
    Fault.LEAVE: (*GROUP_KINDS, SHARE),
    Fault.ADD_PARTITION: (KEYED,),
    Fault.RECREATE: (RECREATED,),
    Fault.AHEAD: (CLOCK,),
    Fault.BEHIND: (CLOCK,),
    Fault.RENEW: (*PROCESSES, CLIENTS),
    Fault.ROLL: PROCESSES,
}
"""On what each fault may be."""
OPERATOR, API_SERVER = "operator", "plane"
CONTROL_PLANE = (OPERATOR, API_SERVER)
COMMAND_AT_S, COMMAND_LASTS_S = 4.0, 25.0
SHORTEST_S, LONGEST_S = 1.0, 12.0
FAULTS_PER_MINUTE = 18.0


@dataclass(frozen=True)
class ScheduledFault:
    """A fault, on what, and from when until when, in seconds."""

    at_s: float
    until_s: float
    fault: Fault
    on: str


def schedule(seed: int, phase: int, seconds: float) -> tuple[ScheduledFault, ...]:
    """Return the faults of a phase of a run, in order of time; the same for the same arguments.

    Every fault ends within the time. No two faults of one target overlap.

    Args:
        seed: Of all choices, together with the phase.
        phase: Which one it is, from 0.
        seconds: How long faults are injected, longer than the longest fault.
    """
    if seconds <= LONGEST_S:
        raise ValueError(f"schedule: seconds must be > {LONGEST_S} (got {seconds}).")
    chance = random.Random(f"{seed}.{phase}")  # noqa: S311 - faults, no secrets
    found: list[ScheduledFault] = []
    for _ in range(round(FAULTS_PER_MINUTE * seconds / 60)):
        fault = chance.choice([*Fault])
        lasts_s = round(chance.uniform(SHORTEST_S, LONGEST_S), 1)
        at_s = round(chance.uniform(0, seconds - lasts_s), 1)
        on = chance.choice(TARGETS[fault])
        one = ScheduledFault(at_s, round(at_s + lasts_s, 1), fault, on)
        if not any(one.on == other.on and _overlap(one, other) for other in found):
            found.append(one)
    return tuple(sorted(found, key=lambda one: (one.at_s, one.on)))


def recovery_schedule(seed: int, turn: int) -> tuple[int, tuple[ScheduledFault, ...]]:
    """Return what a failover or failback suffers: the line's round trip in ms, and the faults around the command.

    One or two processes of the control plane are killed or stopped, in the seconds before the command begins, at
    `COMMAND_AT_S`, or while it runs. No two faults of one process overlap.
    """
    chance = random.Random(f"recovery.{seed}.{turn}")  # noqa: S311 - faults, no secrets
    round_trip_ms = chance.choice([20, 100, 300])
    found: list[ScheduledFault] = []
    for _ in range(chance.choice([1, 1, 2])):
        at_s = round(chance.uniform(0, COMMAND_AT_S + COMMAND_LASTS_S), 1)
        until_s = round(at_s + chance.uniform(SHORTEST_S, LONGEST_S), 1)
        one = ScheduledFault(at_s, until_s, chance.choice([Fault.PAUSE, Fault.KILL]), chance.choice(CONTROL_PLANE))
        if not any(one.on == other.on and _overlap(one, other) for other in found):
            found.append(one)
    return round_trip_ms, tuple(sorted(found, key=lambda one: (one.at_s, one.on)))


def _overlap(one: ScheduledFault, other: ScheduledFault) -> bool:
    return one.at_s <= other.until_s and other.at_s <= one.until_s
