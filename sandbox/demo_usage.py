"""How to go on with a sandbox that the demo leaves running: commands to type, and client properties."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .demo_groups import client_config
from .state import SandboxState, write_private


def client_properties(state: SandboxState, stack: str, outputs: Mapping[str, Any]) -> Path:
    """Write librdkafka's properties of a stack's user (0600, they hold the password) and return the file's path."""
    config = client_config(outputs)
    certificate = state.path / f"client.{stack}.ca.crt"
    write_private(certificate, config.pop("ssl.ca.pem"))
    config["ssl.ca.location"] = str(certificate)
    properties = state.path / f"client.{stack}.properties"
    write_private(properties, "".join(f"{key}={value}\n" for key, value in config.items()))
    return properties


def text(state: SandboxState, clients: Mapping[str, Path], held: str, namespace: str) -> str:
    """Return what to type next; `held` is the source's broker that the demo stopped. Holds no secret."""
    properties = "\n".join(f"  {stack}: {path}" for stack, path in sorted(clients.items()))
    return f"""The sandbox is still running (state: {state.path}).

  export RT_INVENTORY_SANDBOX={state.path}
  eval "$(venv/bin/python -m sandbox env)"     kubectl, pulumi and ops now use it
  kubectl get strimzi -A
  kubectl -n {namespace} get kmm2 mm2 -o yaml
  venv/bin/python -m sandbox pulumi -- preview -s stg
  venv/bin/python -m sandbox status

The source is still down, as the demo left it. Start it again, then send and verify:

  venv/bin/python -m sandbox start {held}
  venv/bin/python -m ops produce --stack dev --count 100
  venv/bin/python -m ops verify --stack stg

Client properties (librdkafka; they hold a password, keep them to yourself):

{properties}

Stop everything: venv/bin/python -m sandbox down
"""
