"""The monitoring of stacks as plain files, for a Prometheus and an Alertmanager without the Prometheus Operator.

Owns the folder: `prometheus.yml`, `rules/`, `alertmanager.yml` with `templates/`, and `dashboards/`. Needs nothing but
stack files: no running stack, no cluster. Writes no secret and reads none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from contract.files import NewFile, replace_files
from monitoring import alert_routes, stack_monitoring
from monitoring.stack_monitoring import Job
from ops.errors import OpsError
from settings.model import Model
from settings.monitoring import Slack
from settings.names import HostPort
from settings.parsing import read
from settings.stack import Stack
from settings.text import did_you_mean, format_names

# How the names of this project's groups of rules begin.
_GROUPS = "- name: rt-inventory."
HEAD = "# Written by `python -m ops render --as prometheus`: a change here is lost at the next rendering.\n"
CONFIG, ROUTES, RULES, DASHBOARDS = "prometheus.yml", "alertmanager.yml", "rules", "dashboards"
EXPORTERS = "rt-inventory-exporters"
ALERTMANAGER = "localhost:9093"
SECRETS = "/etc/alertmanager/secrets"  # where a Secret with webhooks' addresses is mounted


class Targets(Model):
    """Addresses by the name of the cluster or mirror to which they belong, and the operator's."""

    brokers: Mapping[str, tuple[HostPort, ...]] | None = None
    workers: Mapping[str, tuple[HostPort, ...]] | None = None
    operator: tuple[HostPort, ...] = ()

    @property
    def by_job(self) -> Mapping[Job, stack_monitoring.Addresses]:
        """What belongs to the stack, by job and by name."""
        operator = {"": self.operator} if self.operator else {}
        return {
            stack_monitoring.BROKERS: self.brokers or {},
            stack_monitoring.WORKERS: self.workers or {},
            stack_monitoring.OPERATOR: operator,
        }


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
    messages = [problem.message for problem in problems]
    if found is not None:
        messages = _unknown(path, "brokers", found.brokers or {}, [settings.cluster.name])
        messages += _unknown(
            path, "workers", found.workers or {}, [mirror.name for _, mirror in stack_monitoring.mirrors(settings)]
        )
    if found is None or messages:
        raise OpsError("\n".join(messages))
    return found


def _unknown(path: Path, key: str, given: Mapping[str, object], known: list[str]) -> list[str]:
    """A message for each name that the stack file does not have: its metrics would belong to nothing."""
    noun = {"brokers": "the cluster", "workers": "a mirror"}[key]
    return [
        f"file {path}: {key} must be named as {noun} of the stack (got {name}, allowed {format_names(known)})."
        f"{did_you_mean(name, known) or ' Correct it.'}"
        for name in given
        if name not in known
    ]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is in no stack file: addresses in place of Kubernetes, Alertmanager's, and the folder of webhooks'.

    `exporters` label their metrics by themselves, as `python -m ops metrics` does.
    """

    targets: Path | None = None
    exporters: tuple[str, ...] = ()
    alertmanager: str = ALERTMANAGER
    slack_url_folder: str | None = None


@dataclass(frozen=True, kw_only=True)
class Files:
    """Texts by their paths below the folder, and lines for the people who use them. Neither contains a secret."""

    texts: Mapping[str, str]
    notes: tuple[str, ...]


def files(stacks: Mapping[str, Stack], options: Options) -> Files:
    """Return all files for some stacks that one Prometheus monitors; raises OpsError with everything that is wrong."""
    if options.targets is not None and len(stacks) != 1:
        raise OpsError(
            f"render: --targets must be given with one --stack (got {len(stacks)}). Its names are those of one stack."
        )
    check(options.alertmanager, options.exporters)
    known = {name: load(options.targets, settings) for name, settings in stacks.items()} if options.targets else {}
    texts = {CONFIG: _yaml(_prometheus(stacks, known, options))}
    for name, settings in stacks.items():
        brokers = sum(map(len, (known[name].brokers or {}).values())) if name in known else None
        operators = len(known[name].operator) if name in known else None
        groups = stack_monitoring.rule_groups(settings, name, brokers=brokers, operators=operators)
        texts[f"{RULES}/{name}.yaml"] = _yaml({"groups": groups})
    if (slack := _slack(stacks)) is not None:
        texts[ROUTES] = _yaml(
            alert_routes.slack_configuration(slack, options.slack_url_folder or f"{SECRETS}/{slack.secret}")
        )
        texts |= {f"{alert_routes.FOLDER}/{name}": text for name, text in alert_routes.templates().items()}
    first = next(iter(stacks.values()))
    texts |= {f"{DASHBOARDS}/{file}": text for file, text in stack_monitoring.dashboard_files(first).items()}
    return Files(texts=texts, notes=tuple(_notes(stacks, known, options)))


def write(folder: Path, found: Files) -> None:
    """Write the files; those of an earlier rendering whose stack is not among these are removed. Raises OSError.

    Raises OpsError where the plain rules of this project lie among them: prometheus.yml would load each alert twice.
    """
    rules = folder / RULES
    others = [path for path in rules.glob("*.yaml") if f"{RULES}/{path.name}" not in found.texts]
    texts = {path: path.read_text(encoding="utf-8") for path in others}
    if twice := [str(path) for path, text in texts.items() if _GROUPS in text and not text.startswith(HEAD)]:
        raise OpsError(
            f"render: --out must have no other rules of these alerts (got {', '.join(twice)}). Prometheus would load "
            "both and raise each alert twice: choose another folder, or remove them."
        )
    written = [NewFile(path=folder / name, parts=[text], mode=None) for name, text in found.texts.items()]
    for file in written:
        file.path.parent.mkdir(parents=True, exist_ok=True)
    replace_files(written)
    for path, text in texts.items():
        if text.startswith(HEAD):
            path.unlink()


def _prometheus(stacks: Mapping[str, Stack], known: Mapping[str, Targets], options: Options) -> dict[str, Any]:
    scrapes = []
    for name, settings in stacks.items():
        if name in known:
            scrapes += stack_monitoring.static_scrapes(settings, name, known[name].by_job)
        else:
            scrapes += stack_monitoring.pod_scrapes(settings, name)
        scrapes += stack_monitoring.push_gateway_scrape(settings, name)
    if options.exporters:
        scrapes.append(stack_monitoring.honoured_scrape(EXPORTERS, options.exporters))
    seconds = min(stack_monitoring.monitoring_of(settings).scrape_seconds for settings in stacks.values())
    return stack_monitoring.prometheus(scrapes, seconds, [options.alertmanager], [f"{RULES}/*.yaml"])


def _slack(stacks: Mapping[str, Stack]) -> Slack | None:
    """How all the stacks notify Slack; raises OpsError if they do not agree, for there is one Alertmanager."""
    found = {name: each.monitoring.slack for name, each in stacks.items() if each.monitoring and each.monitoring.slack}
    if len({slack.model_dump_json() for slack in found.values()}) > 1:
        raise OpsError(
            f"stacks {', '.join(found)}: monitoring.slack must be the same for one Alertmanager (got different ones). "
            "Make them equal, or render each stack by itself."
        )
    return next(iter(found.values()), None)


def _notes(stacks: Mapping[str, Stack], known: Mapping[str, Targets], options: Options) -> list[str]:
    notes = []
    for name, settings in stacks.items():
        if settings.monitoring is None:
            notes.append(f"stack {name}: has no rt-inventory:monitoring, so that the defaults apply.")
        notes += [f"stack {name}: {warning}" for warning in stack_monitoring.allow_list_warnings(settings)]
        if name in known:
            notes += [
                f"stack {name}: mirror {mirror.name} runs and has no address below workers in {options.targets}, so "
                "that it will count as down. Add its workers."
                for _, mirror in stack_monitoring.mirrors(settings)
                if mirror.state == "running" and not (known[name].workers or {}).get(mirror.name)
            ]
        else:
            notes += [
                f"stack {name}: mirror {mirror.name} exposes no metrics and will count as down. Give `metrics: {{}}`."
                for _, mirror in stack_monitoring.mirrors(settings)
                if mirror.metrics is None
            ]
    if (slack := _slack(stacks)) is not None and options.slack_url_folder is None:
        notes += [
            f"Alertmanager reads a webhook's address from {file} (--slack-url-folder): put it there."
            for file in alert_routes.webhook_files(slack, f"{SECRETS}/{slack.secret}")
        ]
    if options.targets is None:
        notes.append(
            "Prometheus finds pods by the API server: inside Kubernetes its ServiceAccount must be allowed to get, "
            "list and watch pods in these namespaces. Elsewhere give --targets, and with Debian's build, which cannot."
        )
    return notes


def _yaml(document: Mapping[str, Any] | Sequence[Any]) -> str:
    return HEAD + yaml.dump(document, Dumper=_Plain, sort_keys=False, width=120, allow_unicode=True)


class _Plain(yaml.SafeDumper):
    """YAML without anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return true, so that there are no anchors."""
        return True
