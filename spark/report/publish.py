"""Where a report goes besides its folder. A destination that fails is told and never changes the verdict."""

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from spark.errors import RequestError
from spark.report import metrics, slack
from spark.request.addresses import url_problem


@dataclass(frozen=True, kw_only=True)
class Destinations:
    """Where to tell what was found; None: not there. The webhook's address is a secret."""

    metrics_file: Path | None = None
    push_gateway: str | None = None
    slack_webhook: str | None = field(default=None, repr=False)

    @property
    def secrets(self) -> list[str]:
        """Values that must never be shown."""
        return [self.slack_webhook] if self.slack_webhook else []


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name destinations."""
    parser.add_argument("--metrics-file", type=Path, help="write Prometheus metrics to this file, NAME.prom")
    parser.add_argument("--push-gateway", metavar="URL", help="push Prometheus metrics to this gateway")
    parser.add_argument("--slack-webhook", metavar="env:NAME|file:PATH", help="where the webhook's address is found")


def destinations(options: argparse.Namespace, environment: Mapping[str, str]) -> Destinations:
    """Return the destinations of a command line; raises RequestError naming the option that is wrong."""
    reference = options.slack_webhook
    if options.push_gateway and (problem := url_problem(options.push_gateway)):
        raise RequestError([f"--push-gateway: {problem}"])
    return Destinations(
        metrics_file=options.metrics_file,
        push_gateway=options.push_gateway,
        slack_webhook=_secret(reference, environment) if reference else None,
    )


def _secret(reference: str, environment: Mapping[str, str]) -> str:
    kind, _, name = reference.partition(":")
    if kind == "env" and name:
        if environment.get(name):
            return environment[name]
        raise RequestError([f"--slack-webhook: needs the environment variable {name} (got none)."])
    if kind == "file" and name:
        try:
            return Path(name).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise RequestError([f"--slack-webhook: needs the file {name} ({error.strerror})."]) from None
    raise RequestError(
        ["--slack-webhook: must be env:NAME or file:PATH (got something else, not shown). The address is a secret."]
    )


def publish(result: Mapping[str, Any], report: Path, wanted: Destinations) -> None:
    """Tell every destination; what fails is said on standard error, without the webhook's address."""
    ways: dict[str, Callable[[], None]] = {}
    if wanted.metrics_file:
        ways[f"--metrics-file {wanted.metrics_file}"] = partial(metrics.to_file, wanted.metrics_file, result)
    if wanted.push_gateway:
        ways[f"--push-gateway {wanted.push_gateway}"] = partial(metrics.push, wanted.push_gateway, result)
    if wanted.slack_webhook:
        ways["--slack-webhook"] = partial(slack.send, wanted.slack_webhook, result, report)
    for name, tell in ways.items():
        try:
            tell()
        except Exception as error:
            told = error if isinstance(error, OSError | ValueError) else type(error).__name__
            sys.stderr.write(f"{name}: not told ({told}). The verdict stays as it is.\n")
