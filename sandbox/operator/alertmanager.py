"""Alertmanager's configuration: the user's file as it is, or the sandbox's own with the AlertmanagerConfigs below it.

As with the Prometheus Operator, an AlertmanagerConfig routes alerts of its own namespace and no others: its route comes
below the root, with a matcher for the namespace, and its receivers get its name in front. Receivers of Slack and
webhooks are supported; addresses come out of Secrets into files, so that the configuration contains none.
"""

import hashlib
import json
import logging
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sandbox.monitoring import MonitoringFiles
from sandbox.operator.kubernetes_api import Kubernetes, Object
from sandbox.state import write_json, write_private

Spec = dict[str, Any]
# Namespace, Secret's name, key → a file with its value, which Alertmanager reads when it sends.
SecretFile = Callable[[str, str, str], Path]
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_KINDS = {"slackConfigs": "slack_configs", "webhookConfigs": "webhook_configs"}


class UnsupportedError(ValueError):
    """The stand-in cannot read this of an AlertmanagerConfig; the message names it."""


def merge_routes(base: Mapping[str, Any], found: Mapping[str, Any]) -> Spec:
    """A configuration with the route, receivers and inhibitions of another one below it."""
    route = {**base["route"], "routes": [*found["routes"], *(base["route"].get("routes") or [])]}
    receivers = [*base.get("receivers", []), *found["receivers"]]
    inhibitions = [*(base.get("inhibit_rules") or []), *found["inhibit_rules"]]
    return {**base, "route": route, "receivers": receivers, "inhibit_rules": inhibitions}


def routes_of_object(resource: Object, secret_file: SecretFile) -> Spec:
    """`routes`, `receivers` and `inhibit_rules` of one AlertmanagerConfig; raises UnsupportedError."""
    metadata, spec = resource["metadata"], resource.get("spec") or {}
    namespace = metadata["namespace"]
    prefix = f"{namespace}/{metadata['name']}/"
    receivers = [_receiver(each, prefix, namespace, secret_file) for each in spec.get("receivers") or []]
    routes = []
    if spec.get("route"):
        route = _route(spec["route"], prefix)
        # Another namespace's routes, and the root's, are asked too.
        routes.append({**route, "matchers": [_own(namespace), *route.get("matchers", [])], "continue": True})
    inhibitions = [
        {
            "source_matchers": [_own(namespace), *map(_matcher, rule.get("sourceMatch") or [])],
            "target_matchers": [_own(namespace), *map(_matcher, rule.get("targetMatch") or [])],
            "equal": list(rule.get("equal") or []),
        }
        for rule in spec.get("inhibitRules") or []
    ]
    return {"routes": routes, "receivers": receivers, "inhibit_rules": inhibitions}


def snake(name: str) -> str:
    """A field's name as Alertmanager writes it: `iconURL` is `icon_url`."""
    return _WORD.sub("_", name).lower()


def _route(route: Mapping[str, Any], prefix: str) -> Spec:
    found = {snake(key): value for key, value in route.items() if key not in ("receiver", "matchers", "routes")}
    if route.get("receiver"):
        found["receiver"] = prefix + route["receiver"]
    if route.get("matchers"):
        found["matchers"] = [_matcher(each) for each in route["matchers"]]
    if route.get("routes"):
        found["routes"] = [_route(each, prefix) for each in route["routes"]]
    return found


def _matcher(matcher: Mapping[str, Any]) -> str:
    sign = matcher.get("matchType") or ("=~" if matcher.get("regex") else "=")
    value = str(matcher.get("value") or "").replace("\\", "\\\\").replace('"', '\\"')
    return f'{matcher["name"]}{sign}"{value}"'


def _own(namespace: str) -> str:
    return f'namespace="{namespace}"'


def _receiver(receiver: Mapping[str, Any], prefix: str, namespace: str, secret_file: SecretFile) -> Spec:
    found: Spec = {"name": prefix + receiver["name"]}
    for key, configs in receiver.items():
        if key == "name":
            continue
        if key not in _KINDS:
            raise UnsupportedError(f"receiver {receiver['name']}: {key} must be one of {', '.join(_KINDS)}.")
        found[_KINDS[key]] = [_config(each, namespace, secret_file) for each in configs]
    return found


def _config(config: Mapping[str, Any], namespace: str, secret_file: SecretFile) -> Spec:
    found = {}
    for key, value in config.items():
        if key == "apiURL":
            found["api_url_file"] = str(secret_file(namespace, value["name"], value["key"]))
        elif key == "urlSecret":
            # Alertmanager reads a webhook's address from a file only in later versions than the least one here.
            found["url"] = secret_file(namespace, value["name"], value["key"]).read_text(encoding="utf-8").strip()
        elif key == "httpConfig":
            raise UnsupportedError("httpConfig of a receiver cannot be read here. Leave it out.")
        else:
            found[snake(key)] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {snake(key): _plain(inner) for key, inner in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


logger = logging.getLogger(__name__)

CHECK_S = 20.0
# No notification is sent unless a file or an object configures a receiver.
SILENT = {"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}


class MissingSecretError(ValueError):
    """A Secret that an AlertmanagerConfig names, or its key, is not there."""


@dataclass
class Routing:
    """Writes the configuration; what Alertmanager would refuse of an object is left out and logged once."""

    kubernetes: Kubernetes
    files: MonitoringFiles
    amtool: Path
    _checked: dict[str, str] = field(default_factory=dict)
    _logged: set[str] = field(default_factory=set)

    def write(self, own: str | None, objects: Iterable[Object]) -> Path:
        """The file to run with; `own` is the user's, which knows of no objects."""
        if own:
            return Path(own)
        if not self.files.alertmanager.exists():
            write_json(self.files.alertmanager, SILENT)
        accepted = [found for resource in objects if (found := self._accepted(resource))]
        try:
            base = yaml.safe_load(self.files.alertmanager.read_text(encoding="utf-8"))
            result = self._with(base, accepted)
        except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
            self._log_once(f"{self.files.alertmanager}: not read: {error!r}")
            if self.files.routing.exists():
                return self.files.routing
            result = self._with(SILENT, accepted)
        write_private(self.files.routing, json.dumps(result, indent=1) + "\n")
        return self.files.routing

    def _with(self, base: Mapping[str, Any], accepted: list[dict[str, Any]]) -> dict[str, Any]:
        result = dict(base)
        for found in reversed(accepted):  # each comes first
            result = merge_routes(result, found)
        return result

    def _accepted(self, resource: Object) -> dict[str, Any] | None:
        name = f"AlertmanagerConfig {resource['metadata']['namespace']}/{resource['metadata']['name']}"
        try:
            found = routes_of_object(resource, self._secret_file)
        except ValueError as error:
            problem = str(error)
        else:
            problem = self._refusal(merge_routes(SILENT, found))
            if not problem:
                return found
        self._log_once(f"{name}: left out: {problem}")
        return None

    def _log_once(self, problem: str) -> None:
        """Log a problem once, and not again in every pass."""
        if problem not in self._logged:
            self._logged.add(problem)
            logger.error("%s", problem)

    def _refusal(self, content: Mapping[str, Any]) -> str:
        """The errors that Alertmanager's checker reports of a configuration; empty if there are none."""
        text = json.dumps(content)
        key = hashlib.sha256(text.encode()).hexdigest()
        if key not in self._checked:
            scratch = self.files.folder / "checked.yml"
            write_private(scratch, text)
            command = [str(self.amtool), "check-config", str(scratch)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_S, check=False)
            words = " ".join((done.stderr or done.stdout).split())[:1000]
            self._checked[key] = words or "amtool refuses it" if done.returncode else ""
        return self._checked[key]

    def _secret_file(self, namespace: str, name: str, key: str) -> Path:
        value = (self.kubernetes.secret(namespace, name) or {}).get(key)
        if value is None:
            raise MissingSecretError(f"Secret {name} must have the key {key} (there is none). Create it.")
        path = self.files.secrets / f"{namespace}.{name}.{key}"
        write_private(path, value)
        return path
