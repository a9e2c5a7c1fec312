"""The command line: `python -m ops COMMAND`, or `rt-inventory COMMAND`. Results on stdout, progress on stderr.

A command's module is loaded when the command runs: it does not wait for the libraries of the others.
"""

import difflib
import gc
import inspect
import re
import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import CompletionItem, TyperGroup  # type: ignore[attr-defined]  # typer does not list it as an export
from typer.main import get_group

EXIT_INTERRUPTED = 130
MODULE_NAME, SCRIPT_NAME = "python -m ops", "rt-inventory"

COMMANDS = {
    "new": "ops.new.command",
    "status": "ops.status.command",
    "metrics": "ops.metrics.command",
    "failover": "ops.recovery.failover_command",
    "failback": "ops.recovery.failback_command",
    "offsets": "ops.offsets.command",
    "follow": "ops.follow.command",
    "topics": "ops.topics.command",
    "doctor": "ops.doctor.command",
    "promote": "ops.promotion.command",
    "verify": "ops.verify",
    "audit": "ops.audit",
    "produce": "ops.demo_client.__main__",
    "consume": "ops.demo_client.__main__",
    "policy": "ops.policy.command",
    "pipeline": "ops.pipeline.command",
    "import": "ops.adoption.command",
    "render": "ops.render.command",
    "size": "ops.sizing.command",
}
"""Module of each command, which has a function `register`, in the order of the help."""


class Commands(TyperGroup):
    """The commands, each loaded from its module when it is needed."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, None if there is none of that name."""
        module = COMMANDS.get(cmd_name)
        if module is None:
            if near := difflib.get_close_matches(cmd_name, COMMANDS, 1):
                ctx.fail(f"No such command '{cmd_name}'. Did you mean {near[0]}?")
            return None
        own = typer.Typer()
        gc.disable()  # a fifth of the time that loading takes went into searching it for garbage
        try:
            import_module(module).register(own)
        except KeyboardInterrupt:  # it takes seconds on a busy machine
            sys.stderr.write("Interrupted. Nothing was changed.\n")
            raise SystemExit(EXIT_INTERRUPTED) from None
        finally:
            gc.freeze()  # what is loaded stays
            gc.enable()
        return _as_called(get_group(own).commands[cmd_name], ctx)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return what a shell offers: the commands by their names alone, since a module takes long to load."""
        names = [CompletionItem(name) for name in COMMANDS if name.startswith(incomplete)]
        return names or super().shell_complete(ctx, incomplete)


def _as_called(command: Any, ctx: Any) -> Any:
    """The command with its help for any width of the terminal, and with the program's own name in the examples."""
    program = ctx.find_root().info_name
    command.help = command.help and _paragraphs(command.help)
    if program == SCRIPT_NAME and command.help:
        command.help = command.help.replace(MODULE_NAME, SCRIPT_NAME)
    for each in getattr(command, "commands", {}).values():
        _as_called(each, ctx)
    return command


def _paragraphs(text: str) -> str:
    """The text with each paragraph and example in one line: the terminal breaks it. Indented lines stay."""
    return "\n\n".join(
        part if "\n " in part else re.sub(r"\n(?!Example)", " ", part) for part in inspect.cleandoc(text).split("\n\n")
    )


_HELP = """Work with the clusters of a stack: send records, read them as a consumer group, verify the mirror.

[bold]--stack NAME[/bold] finds the cluster through the stack's Pulumi outputs (the environment decides the backend);
in the sandbox, first: [bold]eval "$(venv/bin/python -m sandbox env)"[/bold]. Without a stack the variables
KAFKA_BROKERS, KAFKA_USER, KAFKA_PWD, KAFKA_CERT, KAFKA_SECURITY_PROTOCOL and KAFKA_SASL_MECHANISM do.

Results go to stdout, progress to stderr. Exit codes: 0 done; 1 a check failed or not every record arrived;
2 wrong usage, or a cluster or stack that cannot be used."""


def application(*, completes: bool = False) -> typer.Typer:
    """Return the command line; with `completes` it can install a shell's completion, for which it needs a name."""
    made = typer.Typer(
        name="ops",
        cls=Commands,
        no_args_is_help=True,
        add_completion=completes,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        help=_paragraphs(_HELP),
    )
    made.callback()(_commands)
    return made


def _commands() -> None:
    """Without a command there is nothing to do but to show the help."""


app = application()


def main() -> None:
    """Run the command line as `python -m ops`."""
    app()


def console_script() -> None:
    """Run the command line as `rt-inventory`."""
    application(completes=True)(prog_name=SCRIPT_NAME)
