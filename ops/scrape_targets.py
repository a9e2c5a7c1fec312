"""Addresses that Prometheus asks where no Kubernetes tells it: a YAML file of brokers, workers and operators.

```
brokers: {kafka-stg: ["10.0.0.1:9404", "10.0.0.2:9404"]}   # by the cluster's name
workers: {mm2: ["10.0.0.3:9404"]}                          # by the mirror's name
operator: ["10.0.0.4:8080"]
```
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from monitoring import scraping
from monitoring.scraping import Job
from ops.errors import OpsError
from settings.model import Model
from settings.names import HostPort
from settings.reading import read
from settings.stack import Stack
from settings.wording import alike, listed


class Targets(Model):
    """Addresses by the name of the cluster or mirror to which they belong, and the operator's."""

    brokers: Mapping[str, tuple[HostPort, ...]] | None = None
    workers: Mapping[str, tuple[HostPort, ...]] | None = None
    operator: tuple[HostPort, ...] = ()

    @property
    def by_job(self) -> Mapping[Job, scraping.Addresses]:
        """What belongs to the stack, by job and by name."""
        operator = {"": self.operator} if self.operator else {}
        return {scraping.BROKERS: self.brokers or {}, scraping.WORKERS: self.workers or {}, scraping.OPERATOR: operator}


class Addresses(Model):
    """Addresses that are given one by one, by the option that gives them."""

    alertmanager: HostPort
    exporter: tuple[HostPort, ...] = ()


def check(alertmanager: str, exporters: Sequence[str]) -> None:
    """Raise OpsError with everything that is wrong with the addresses of Alertmanager and exporters."""
    _, problems = read(Addresses, {"alertmanager": alertmanager, "exporter": list(exporters)}, "", "render")
    if problems:
        raise OpsError("\n".join(problem.message.replace("render: ", "render: --", 1) for problem in problems))


def load(path: Path, settings: Stack) -> Targets:
    """Return what a file names; raises OpsError with everything that is wrong with it."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OpsError(f"file {path}: must be readable ({error.strerror}).") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise OpsError(f"file {path}: must be YAML. Correct it.") from error
    found, problems = read(Targets, document, "", f"file {path}")
    told = [problem.message for problem in problems]
    if found is not None:
        told = _unknown(path, "brokers", found.brokers or {}, [settings.cluster.name])
        told += _unknown(
            path, "workers", found.workers or {}, [mirror.name for _, mirror in scraping.mirrors(settings)]
        )
    if found is None or told:
        raise OpsError("\n".join(told))
    return found


def _unknown(path: Path, key: str, given: Mapping[str, object], known: list[str]) -> list[str]:
    """A message for each name that the stack file does not have: its metrics would belong to nothing."""
    noun = {"brokers": "the cluster", "workers": "a mirror"}[key]
    return [
        f"file {path}: {key} must be named as {noun} of the stack (got {name}, allowed {listed(known)})."
        f"{alike(name, known) or ' Correct it.'}"
        for name in given
        if name not in known
    ]
