"""The command line: `python -m ops COMMAND`. Results on stdout, progress on stderr."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ops import consumer, producer, render, size, tables, verify
from ops.accounting import write_keys
from ops.adoption.command import command as adopt
from ops.connection import DEFAULT_TOPIC, Connection, from_environment, from_outputs, stack_outputs
from ops.errors import OpsError
from ops.events import inventory_events
from ops.pipeline import command as pipeline
from ops.policy import command as policy
from ops.recovery import failback_command, failover_command, status_command
from ops.shell import EXIT_FAILED, AsJson, Debug, guard, progress, say, show

app = typer.Typer(
    name="ops",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="""Work with the clusters of a stack: send records, read them as a consumer group, verify the mirror.

[bold]--stack NAME[/bold] finds the cluster through the stack's Pulumi outputs (the environment decides the backend);
in the sandbox, first: [bold]eval "$(python -m sandbox env)"[/bold]. Without a stack the variables KAFKA_BROKERS,
KAFKA_USER, KAFKA_PWD, KAFKA_CERT, KAFKA_SECURITY_PROTOCOL and KAFKA_SASL_MECHANISM do.

Results go to stdout, progress to stderr. Exit codes: 0 done; 1 a check failed or not every record arrived;
2 wrong usage, or a cluster or stack that cannot be used.""",
)

Stack = Annotated[str | None, typer.Option("--stack", "-s", help="Stack to learn the cluster from, for example dev.")]
User = Annotated[str | None, typer.Option("--user", help="User of the stack; not needed if it has only one.")]
Topic = Annotated[
    str | None, typer.Option("--topic", "-t", help=f"Topic. [default: $SOURCE_TOPIC, else {DEFAULT_TOPIC}]")
]
KeysOut = Annotated[
    Path | None, typer.Option("--keys-out", help="File to write a line per record to: partition, offset, record id.")
]


@app.command("produce")
def produce_command(
    stack: Stack = None,
    topic: Topic = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Number of records.")] = 100,
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.01, help="Records per second. [default: no limit]")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Same seed, same records, byte by byte.")] = None,
    user: User = None,
    keys_out: KeysOut = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Send random inventory events: JSON, keyed by store and SKU, acks=all, idempotent.

    Example: [bold]python -m ops produce --stack dev --count 1000 --rate 200[/bold]

    Every delivery is accounted for; one that fails makes the command exit 1.
    """
    with guard(as_json, debug):
        name = _topic(topic)
        client = producer.connect(_connection(stack, user), name)
        with progress(f"produce {name}", count) as advance:
            sent = producer.send(client, name, inventory_events(count, seed), rate=rate, progress=advance)
        if keys_out is not None:
            write_keys(keys_out, sent.account.records)
        show(as_json, sent.as_json(), lambda: tables.sent(sent))
    if sent.failed:
        raise typer.Exit(EXIT_FAILED)


@app.command("consume")
def consume_command(
    stack: Stack = None,
    group: Annotated[str, typer.Option("--group", "-g", help="Consumer group to be a member of.")] = "rt-inventory-ops",
    topic: Topic = None,
    maximum: Annotated[int | None, typer.Option("--max", "-n", min=1, help="Stop after this many records.")] = None,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Stop at the end of the topic as it is when reading begins.")
    ] = False,
    wait_s: Annotated[
        float, typer.Option("--wait", min=1, help="Give up when no record came for this many seconds.")
    ] = consumer.WAIT_S,
    auto_commit: Annotated[
        bool, typer.Option("--auto-commit", help="Let the client commit in the background instead of once at the end.")
    ] = False,
    no_commit: Annotated[bool, typer.Option("--no-commit", help="Read only; leave the group's position.")] = False,
    print_records: Annotated[bool, typer.Option("--print", help="Show each record on stderr.")] = False,
    user: User = None,
    keys_out: KeysOut = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Read records as a member of a consumer group and commit exactly what was handed over.

    Example: [bold]python -m ops consume --stack dev --group orders --max 400[/bold]

    The group goes on where it last committed; without a commit it starts at the beginning. Exit 1 if fewer records
    came than asked for.
    """
    with guard(as_json, debug):
        if (maximum is None) == (not until_end):
            raise OpsError("consume: --max N or --until-end must be given, not both. It says when to stop.")
        if auto_commit and no_commit:
            raise OpsError("consume: --auto-commit and --no-commit must not be given together.")
        name = _topic(topic)
        client, troubles = consumer.connect(_connection(stack, user), name, group, auto_commit=auto_commit)
        with progress(f"consume {name} as {group}", maximum) as advance:
            outcome = consumer.read(
                client,
                name,
                group,
                consumer.Goal(maximum=maximum, until_end=until_end, wait_s=wait_s),
                troubles,
                commit=not (auto_commit or no_commit),
                store=(lambda message: client.store_offsets(message=message)) if auto_commit else None,
                hand_over=_say_record if print_records else lambda _: None,
                progress=advance,
            )
        if keys_out is not None:
            write_keys(keys_out, outcome.account.records)
        show(as_json, outcome.as_json(), lambda: tables.read(outcome))
        if not outcome.complete:
            say(f"consume: no record came for {wait_s:g} s; {outcome.account.total} were read.")
    if not outcome.complete:
        raise typer.Exit(EXIT_FAILED)


@app.command("verify")
def verify_command(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack that declares the mirror.")] = "stg",
    mirror: Annotated[str | None, typer.Option("--mirror", help="Mirror; not needed if the stack has one.")] = None,
    report_dir: Annotated[
        Path | None, typer.Option("--report-dir", help="Folder for the reports. [default: reports/STACK-MIRROR-TIME]")
    ] = None,
    state: Annotated[
        str | None, typer.Option("--state", metavar="URI", help="Folder or s3://bucket/prefix of verified offsets.")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Prove that every record and every group's offset is on the target: run the verification job, print the verdict.

    Example: [bold]python -m ops verify --stack stg[/bold]

    Exit 0 if every check holds, 1 if one fails or could not be made, 2 if the job could not run. With --state only what
    is new since the last run with it is compared.
    """
    with guard(as_json, debug):
        planned = verify.plan(stack, stack_outputs(stack, os.environ), mirror)
        folder = report_dir or verify.default_report_dir(planned)
        verdict = verify.run(planned, folder, os.environ, say, state)
        show(as_json, verdict.as_json(), lambda: tables.verdict(verdict))
    if verdict.exit_code:
        raise typer.Exit(EXIT_FAILED)


render.register(app)
app.command("import")(adopt)
size.register(app)
policy.register(app)
status_command.register(app)
failover_command.register(app)
failback_command.register(app)
pipeline.register(app)


def main() -> None:
    """Run the command line."""
    app()


def _topic(topic: str | None) -> str:
    return topic or os.environ.get("SOURCE_TOPIC") or DEFAULT_TOPIC


def _connection(stack: str | None, user: str | None) -> Connection:
    if stack is None:
        return from_environment(os.environ)
    return from_outputs(stack, stack_outputs(stack, os.environ), user)


def _say_record(message: Any) -> None:
    key, value = (part.decode("utf-8", "replace") if part else "null" for part in (message.key(), message.value()))
    say(f"{message.partition()} {message.offset()} {key} {value}")
