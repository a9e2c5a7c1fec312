"""A process that saves a state again and again, beside others; it imports nothing else, for it is started often."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from unittest import mock

from spark.state import State, merge
from spark.state.store import Store, open_store

from .verification_states import IDENTITY, entry


def opened(uri: str) -> Store:
    """The store as a run of the verification opens it."""
    return open_store(uri, os.environ)


@contextmanager
def descriptions_read_once() -> Iterator[None]:
    """Each new session of Amazon's client parses its descriptions of the services again, which are several MiB."""
    from botocore.loaders import create_loader  # type: ignore[import-untyped]  # ships no types

    loader = create_loader()
    with mock.patch("botocore.session.create_loader", return_value=loader):
        yield


def add(uri: str, name: str, writer: int, rounds: int) -> None:
    """Raise the partition that all writers share and one of its own, step by step."""
    quick: AbstractContextManager[None] = descriptions_read_once() if uri.startswith("s3://") else nullcontext()
    with quick:
        for number in range(1, rounds + 1):
            mine = {
                one.topic_partition: one
                for one in (entry(anchors=[(number * 10 + writer, 0)]), entry(f"w{writer}", number, [(1, 1)]))
            }

            def update(stored: State | None, mine: Any = mine) -> State:
                return State(identity=IDENTITY, entries=merge(stored.entries if stored else {}, {}, mine))

            opened(uri).save(name, update)
