"""Pairs of stack files that are rendered as properties: the stack that declares the mirror, and its source."""

import copy
from pathlib import Path
from typing import Any

import yaml

Values = dict[str, Any]
ROUTE = [{"name": "outside", "port": 9094, "type": "route", "authentication": "tls", "host": "kafka.target.example"}]

PAIR: dict[str, Values] = {
    "dev": {
        "cluster": {"name": "active", "namespace": "active", "brokers": 1},
        "users": [{"name": "reader"}],
    },
    "stg": {
        "cluster": {"name": "passive", "namespace": "passive", "brokers": 3},
        "users": [{"name": "writer"}],
        "mirrors": [
            {
                "name": "mm2",
                "source": {"stack": "dev", "alias": "es-src", "user": "reader"},
                "target": {"alias": "es-tgt", "user": "writer"},
                "topics": ["items", r"store\.inventory"],
                "syncGroupOffsetsSeconds": 5,
            }
        ],
    },
}


def changed(case: dict[str, Values], **mirror: Any) -> dict[str, Values]:
    """A copy whose mirror has other settings; None removes one."""
    result = copy.deepcopy(case)
    found = result["stg"]["mirrors"][0]
    found.update(mirror)
    result["stg"]["mirrors"][0] = {key: value for key, value in found.items() if value is not None}
    return result


def mutual_tls() -> dict[str, Values]:
    """Prefixed names, certificates on both sides, the target behind a route."""
    case = changed(PAIR, naming="prefixed", separator="_", replicas=2, flushOffsetsSeconds=10)
    listener = {"name": "tls", "port": 9093, "authentication": "tls"}
    case["dev"]["cluster"]["listeners"] = [listener]
    case["dev"]["users"] = [{"name": "reader", "authentication": "tls"}]
    case["stg"]["platform"] = {"distribution": "openshift"}
    case["stg"]["cluster"]["listeners"] = ROUTE
    case["stg"]["users"] = [{"name": "writer", "authentication": "tls"}]
    return case


def public_token() -> dict[str, Values]:
    """From Event Streams on Cloud, which a public authority signs, with the user `token` and an API key."""
    external = {
        "name": "cloud",
        "cluster": {"bootstrapServers": ["broker-0.cloud.example:9093", "broker-1.cloud.example:9093"]},
        "authentication": "plain",
        "username": "token",
        "secret": {"name": "cloud-api-key", "passwordKey": "apikey"},
    }
    case = changed(PAIR, source={"alias": "cloud", "external": external, "latencyMs": 40}, offsetSyncsLocation="source")
    return {"stg": case["stg"]}


def reverse() -> dict[str, Values]:
    """Both directions, with settings for the clients of each."""
    return changed(
        PAIR,
        naming="prefixed",
        reverse={"topics": ["orders"], "groups": ["billing"]},
        heartbeats=False,
        offsetLagMax=0,
        producer={"linger.ms": 20},
        consumer={"max.poll.records": 2000},
        sourceTasksMax=4,
        checkpointTasksMax=2,
    )


def exactly_once() -> dict[str, Values]:
    """Exactly once, by one process."""
    return changed(PAIR, exactlyOnce=True, groupId="orders", sourceConnectorConfig={"admin.timeout.ms": 90000})


CASES = {
    "default-pair": PAIR,
    "prefixed-mutual-tls": mutual_tls(),
    "plain-token-public-authority": public_token(),
    "reverse": reverse(),
    "exactly-once": exactly_once(),
}


def write(case: dict[str, Values], folder: Path) -> Path:
    """Write the stack files of a case and return that of the mirror's stack."""
    for stack, values in case.items():
        config = {f"rt-inventory:{key}": value for key, value in values.items()}
        (folder / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump({"config": config}), encoding="utf-8")
    return folder / "Pulumi.stg.yaml"
