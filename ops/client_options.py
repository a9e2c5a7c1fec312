"""What the demo clients' commands share: which cluster and topic, and the file of what was sent or read."""

import os
from pathlib import Path
from typing import Annotated

import typer

from ops.connection import DEFAULT_TOPIC, Connection, from_environment, from_outputs, stack_outputs

Stack = Annotated[str | None, typer.Option("--stack", "-s", help="Stack to learn the cluster from, for example dev.")]
User = Annotated[str | None, typer.Option("--user", help="User of the stack; not needed if it has only one.")]
Topic = Annotated[
    str | None, typer.Option("--topic", "-t", help=f"Topic. [default: $SOURCE_TOPIC, else {DEFAULT_TOPIC}]")
]
KeysOut = Annotated[
    Path | None, typer.Option("--keys-out", help="File to write a line per record to: partition, offset, record id.")
]
Forever = Annotated[
    bool, typer.Option("--forever", help="Go on until SIGTERM or Ctrl-C, then end cleanly with a summary.")
]


def topic_of(given: str | None) -> str:
    """Return the topic that was given, else the environment's, else the default."""
    return given or os.environ.get("SOURCE_TOPIC") or DEFAULT_TOPIC


def connection_of(stack: str | None, user: str | None, folder: Path) -> Connection:
    """Return how to reach the cluster of a stack of the project in `folder`, without a stack the environment's."""
    if stack is None:
        return from_environment(os.environ)
    return from_outputs(stack, stack_outputs(stack, os.environ, folder), user)
