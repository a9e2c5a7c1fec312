"""From AlertmanagerConfigs to Alertmanager's own configuration, as the Prometheus Operator does it.

An AlertmanagerConfig routes alerts of its own namespace and no others: its route comes below the root, with a matcher
for the namespace, and its receivers get its name in front. Receivers of Slack and webhooks are read; addresses come out
of Secrets into files, so that the configuration holds none.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .kubernetes_api import Object

Spec = dict[str, Any]
# Namespace, Secret's name, key → a file with its value, which Alertmanager reads when it sends.
SecretFile = Callable[[str, str, str], Path]
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_KINDS = {"slackConfigs": "slack_configs", "webhookConfigs": "webhook_configs"}


class UnsupportedError(ValueError):
    """The stand-in cannot read this of an AlertmanagerConfig; the message says what."""


def merged(base: Mapping[str, Any], found: Mapping[str, Any]) -> Spec:
    """A configuration with the route, receivers and inhibitions of another one below it."""
    route = {**base["route"], "routes": [*found["routes"], *(base["route"].get("routes") or [])]}
    receivers = [*base.get("receivers", []), *found["receivers"]]
    inhibitions = [*(base.get("inhibit_rules") or []), *found["inhibit_rules"]]
    return {**base, "route": route, "receivers": receivers, "inhibit_rules": inhibitions}


def configuration(resource: Object, secret_file: SecretFile) -> Spec:
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
