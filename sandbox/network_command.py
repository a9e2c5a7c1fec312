"""The commands `python -m sandbox network` and `network heal`: their options and what is wrong with them."""

import os
import re
import sys
from typing import Annotated

import typer

from sandbox.control_plane import is_up
from sandbox.network import Conditions, NetworkError, NetworkUsageError, change, described
from sandbox.state import SandboxState, default_state
from sandbox.toolchain import ToolchainError, locate
from settings.text import wrap_for_stream

app = typer.Typer(
    help="Distance and faults between the sites: what clusters expose goes through toxiproxy. Without options: show it."
)
_MILLISECONDS = {"ms": 1.0, "s": 1000.0}
_KILOBYTES = {"KB": 1.0, "MB": 1000.0, "GB": 1000_000.0}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z]+)(?:/s)?")
LONGEST_MS, FASTEST_KB = 60_000, 100_000_000
Cluster = Annotated[
    str | None, typer.Option("--cluster", metavar="NAME", help="Only the line of this Kafka; without it, of all.")
]


@app.callback(invoke_without_command=True)
def network(
    context: typer.Context,
    latency: Annotated[
        str | None, typer.Option("--latency", metavar="100ms", help="Added to a round trip, half in each direction.")
    ] = None,
    jitter: Annotated[
        str | None, typer.Option("--jitter", metavar="10ms", help="The latency varies by so much, up and down.")
    ] = None,
    bandwidth: Annotated[
        str | None, typer.Option("--bandwidth", metavar="50MB", help="A second, of each connection in each direction.")
    ] = None,
    cut: Annotated[bool, typer.Option("--cut", help="Drop all that is sent, silently.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Reset each connection at the next bytes in it.")] = False,
    slow_close: Annotated[bool, typer.Option("--slow-close", help="Close connections 5 s later than asked.")] = False,
    cluster: Cluster = None,
) -> None:
    """Set the network between the sites; what is not named is off."""
    if context.invoked_subcommand is not None:
        return
    found = conditions(latency, jitter, bandwidth, cut=cut, reset=reset, slow_close=slow_close)
    state = default_state(os.environ)
    given = (latency, jitter, bandwidth, cut or None, reset or None, slow_close or None)
    if all(option is None for option in given):
        if cluster is not None:
            raise NetworkUsageError("--cluster: must come with what to set (got it alone). Add for example --cut.")
        sys.stdout.write(f"network: {described(state) or 'none was asked for'}\n")
        return
    _change(state, found, cluster)


@app.command()
def heal(cluster: Cluster = None) -> None:
    """Take latency, limits and faults away; the proxies stay."""
    state = default_state(os.environ)
    if described(state) is None:
        _report("network: none was asked for")
        return
    _change(state, Conditions(), cluster)


def conditions(
    latency: str | None,
    jitter: str | None,
    bandwidth: str | None,
    *,
    cut: bool = False,
    reset: bool = False,
    slow_close: bool = False,
) -> Conditions:
    """What the options say; raises NetworkUsageError for one that cannot be meant."""
    latency_ms = _quantity("--latency", latency, _MILLISECONDS, LONGEST_MS)
    jitter_ms = _quantity("--jitter", jitter, _MILLISECONDS, LONGEST_MS)
    if jitter_ms > latency_ms:
        raise NetworkUsageError(
            f"--jitter: must be <= --latency (got {jitter_ms} ms, latency {latency_ms} ms). "
            "Nothing arrives before it is sent."
        )
    return Conditions(
        latency_ms=latency_ms,
        jitter_ms=jitter_ms,
        bandwidth_kb=_quantity("--bandwidth", bandwidth, _KILOBYTES, FASTEST_KB, least=1),
        cut=cut,
        reset=reset,
        slow_close=slow_close,
    )


def _quantity(option: str, text: str | None, units: dict[str, float], most: int, least: int = 0) -> int:
    if text is None:
        return 0
    match = _QUANTITY.fullmatch(text.strip())
    unit = next((factor for name, factor in units.items() if match and match[2].lower() == name.lower()), None)
    value = round(float(match[1]) * unit) if match and unit else -1
    if not least <= value <= most:
        smallest, base = next(iter(units)), next(iter(units.values()))
        raise NetworkUsageError(
            f"{option}: must be a number from {least / base:g} to {most / base:g} {smallest} with its unit, one of "
            f"{', '.join(units)} (got {text})."
        )
    return value


def _change(state: SandboxState, wanted: Conditions, cluster: str | None) -> None:
    if not is_up(state):
        raise NetworkError(
            f"network: the sandbox must be up (got nothing running in {state.path}). Start it: sandbox up."
        )
    if not locate().toxiproxy.exists():
        raise ToolchainError("network: toxiproxy must be installed (it is not). Run `make setup`.")
    _report(f"network: {change(state, wanted, cluster, _report)}")


def _report(text: str) -> None:
    sys.stderr.write(f"{wrap_for_stream(text, sys.stderr)}\n")
    sys.stderr.flush()
