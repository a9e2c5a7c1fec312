"""What a step of the set-up is, and in which order steps may run."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .commands import Commands
from .errors import ToolchainError


@dataclass(frozen=True)
class Part:
    """One of several results of a step."""

    name: str
    title: str
    is_done: Callable[[], bool]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing to install. `run` must leave either the whole result or none, so that it can simply run again."""

    name: str
    title: str
    is_done: Callable[[], bool]
    run: Callable[[Commands], None]
    needs: tuple[str, ...] = ()
    lane: str | None = None
    """Steps of one lane run one after the other: they compete for the processor or for one local repository."""
    tool: str | None = None
    """What the machine must allow for the step to run: "go", "maven", "chromium", "prometheus", "image-parts", None."""
    disk_mib: int = 1
    """How much the result takes on the cache's disk."""
    is_deferred: bool = False
    """Whether the set-up leaves it out unless it is named: something works without it and makes it later."""
    parts: tuple[Part, ...] = ()
    """What the step makes, if that is more than one thing."""

    @property
    def results(self) -> tuple[Part, ...]:
        """What the step makes, one by one."""
        return self.parts or (Part(self.name, self.title, self.is_done),)


def with_needs(steps: Sequence[Step], names: Iterable[str]) -> list[Step]:
    """The named steps and everything they need, in the plan's order; raises ToolchainError for an unknown name."""
    by_name = {step.name: step for step in steps}
    wanted: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in by_name:
            raise ToolchainError(f"set-up: step must be a known one (got {name}, allowed {', '.join(by_name)}).")
        if name not in wanted:
            wanted.add(name)
            waiting.extend(by_name[name].needs)
    return [step for step in steps if step.name in wanted]
