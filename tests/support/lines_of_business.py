"""The example with a mirror for each line of business, as several tests use it: what is whose on both clusters."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from settings import parse
from settings.mirrors import Mirror
from settings.topics import internal_topics_of
from tests.support.waiting import wait_until

from . import records
from .projects import KEY, Project

EXAMPLE = "lines-of-business"
SOURCE, TARGET = "active", "standby"
ARRIVE_S = 90
PER_SECOND = 20


@dataclass(frozen=True)
class Line:
    """One line of business: its mirror, and what it has on each of the two clusters."""

    mirror: Mirror
    topics: tuple[str, ...]
    version: str

    @property
    def topic(self) -> str:
        """One topic of the line at the source."""
        return self.topics[0]

    @cached_property
    def group(self) -> str:
        """A consumer group whose offsets the line's mirror synchronises."""
        return re.sub(r"\\(.)", r"\1", self.mirror.groups[0].replace(".*", "app"))

    def copy(self, topic: str) -> str:
        """Name of a topic's copy."""
        prefixed = self.mirror.naming == "prefixed"
        return f"{self.mirror.source.alias}{self.mirror.separator}{topic}" if prefixed else topic

    def internal(self, stack: str) -> set[str]:
        """Topics that the mirror keeps for itself on one of the clusters."""
        place = "source" if stack == SOURCE else "target"
        return {each.name for each in internal_topics_of(self.mirror, self.version) if each.location == place}

    def everything(self, stack: str) -> set[str]:
        """Every topic of the line on one of the clusters."""
        own = self.topics if stack == SOURCE else [self.copy(topic) for topic in self.topics]
        return self.internal(stack) | set(own)

    def user(self, stack: str) -> str:
        """The user as which the mirror logs in."""
        return str(self.mirror.source.user) if stack == SOURCE else self.mirror.target.user


@dataclass
class Lines:
    """Both stacks up, with two mirrors or more."""

    project: Project

    @property
    def names(self) -> list[str]:
        """Names of all mirrors, in the stack file's order."""
        return [mirror["name"] for mirror in self.project.config[TARGET][f"{KEY}mirrors"]]

    def line(self, name: str) -> Line:
        """What belongs to the mirror, by the settings as they are now."""
        there = {
            stack: parse({key.removeprefix(KEY): value for key, value in self.project.config[stack].items()}, stack)
            for stack in (SOURCE, TARGET)
        }
        mirror = next(each for each in there[TARGET].mirrors if each.name == name)
        topics = [topic.name for topic in there[SOURCE].topics]
        own = tuple(topic for topic in topics if any(re.fullmatch(pattern, topic) for pattern in mirror.topics))
        return Line(mirror, own, there[TARGET].mirror_version(mirror))

    def written(self, topic: str) -> list[str]:
        """All values of a topic at the source."""
        return records.read(self.project.client(SOURCE), topic)

    def arrived(self, topic: str) -> list[str]:
        """All values of a topic at the target."""
        return records.read(self.project.client(TARGET), topic)

    def carry(self, name: str, *values: str) -> None:
        """Write records into the line's topic and wait until the target has them."""
        line = self.line(name)
        records.write(self.project.client(SOURCE), line.topic, values)
        copy = line.copy(line.topic)
        wait_until(f"{values} in {copy} at the target", lambda: {*values} <= {*self.arrived(copy)}, ARRIVE_S)

    @contextmanager
    def flow(self, topic: str, prefix: str) -> Iterator[Callable[[], list[str]]]:
        """Records written to the topic at the source all the while; yields what was written so far."""
        client = self.project.client(SOURCE)
        written: list[str] = []
        failed: list[BaseException] = []
        end = threading.Event()

        def produce() -> None:
            try:
                while not end.is_set():
                    batch = [f"{prefix}-{len(written) + number}" for number in range(PER_SECOND)]
                    records.write(client, topic, batch)
                    written.extend(batch)
                    end.wait(1.0)
            except AssertionError as error:
                failed.append(error)

        thread = threading.Thread(target=produce)
        thread.start()
        try:
            yield lambda: list(written)
        finally:
            end.set()
            thread.join()
        assert not failed, failed
