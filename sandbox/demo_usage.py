"""How to go on with what the demo leaves running: commands to type, and client properties."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .demo_groups import client_config
from .state import SandboxState, write_private


def client_properties(folder: Path, stack: str, outputs: Mapping[str, Any]) -> Path:
    """Write librdkafka's properties of a stack's user (0600, they hold the password) and return the file's path."""
    config = client_config(outputs)
    certificate = folder / f"client.{stack}.ca.crt"
    write_private(certificate, config.pop("ssl.ca.pem"))
    config["ssl.ca.location"] = str(certificate)
    properties = folder / f"client.{stack}.properties"
    write_private(properties, "".join(f"{key}={value}\n" for key, value in config.items()))
    return properties


def of_sandbox(state: SandboxState, clients: Mapping[str, Path], namespace: str) -> str:
    """Return what to type next in a sandbox. Holds no secret."""
    return f"""The sandbox is still running (state: {state.path}).

  export RT_INVENTORY_SANDBOX={state.path}
  eval "$(venv/bin/python -m sandbox env)"   # for kubectl, pulumi and ops
  kubectl get strimzi -A
  kubectl -n {namespace} get kmm2 mm2 -o yaml
  venv/bin/python -m sandbox pulumi -- preview -s stg
  venv/bin/python -m sandbox status

The source is back and active again. Send and verify, look at the mirror, and
see what a failover would do:

  venv/bin/python -m ops produce --stack dev --count 100
  venv/bin/python -m ops verify --stack stg
  venv/bin/python -m ops status --stack stg
  venv/bin/python -m ops failover --to stg --exact --dry-run

Client properties (librdkafka; they hold a password, keep them to yourself):

{_lines(clients)}

Every command, with what it prints: docs/first-ten-minutes.md
Stop everything: venv/bin/python -m sandbox down
"""


def of_current(project: Path, variables: Mapping[str, str], clients: Mapping[str, Path], remove: str) -> str:
    """Return what to type next on the clusters of the kubeconfig. Holds no secret."""
    exports = "\n".join(f"  export {name}={shlex.quote(value)}" for name, value in variables.items())
    return f"""Both stacks are still there (stack files and Pulumi's state: {project}).

{exports}
  unset PULUMI_CONFIG_PASSPHRASE
  venv/bin/python -m ops produce --stack dev --count 100
  venv/bin/python -m ops verify --stack stg
  venv/bin/python -m ops status --stack stg -C {shlex.quote(str(project))}
  venv/bin/python -m ops failover --to stg --exact --dry-run -C {shlex.quote(str(project))}

Client properties (librdkafka; they hold a password, keep them to yourself):

{_lines(clients)}

Remove everything: {remove}
"""


def _lines(clients: Mapping[str, Path]) -> str:
    return "\n".join(f"  {stack}: {path}" for stack, path in sorted(clients.items()))
