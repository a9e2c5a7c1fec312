"""`python -m ops.demo_client produce|consume`: the demo clients alone, without the packages of other commands."""

import typer

from ops.demo_client import commands

app = typer.Typer(
    name="clients",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="""Demo clients: send random records, read them as a consumer group.

The variables KAFKA_BROKERS, KAFKA_USER, KAFKA_PWD, KAFKA_CERT, KAFKA_SECURITY_PROTOCOL, KAFKA_SASL_MECHANISM and
SOURCE_TOPIC say where. Exit codes: 0 done; 1 not every record arrived; 2 wrong usage, or a cluster that cannot be used.
""",
)
commands.register(app)

if __name__ == "__main__":
    app()
