"""How to reach a Kafka cluster: from a stack's outputs or from the KAFKA_* variables of the environment."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ops.errors import OpsError
from ops.exit_codes import PulumiExit, explain_exit
from settings.wording import alike, listed

PROJECT = Path(__file__).resolve().parent.parent
DEFAULT_TOPIC = "items"
OUTPUTS_TIMEOUT_S = 60
_SASL_PROTOCOLS = {"SASL_SSL", "SASL_PLAINTEXT"}
_PROTOCOLS = {"PLAINTEXT", "SSL", *_SASL_PROTOCOLS}
_PEM_VARIABLES = ("KAFKA_CERT", "KAFKA_CLIENT_CERT", "KAFKA_CLIENT_KEY")


class NotDeployedError(OpsError):
    """The stack is there and has no outputs yet."""


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A cluster's address and a user's credentials. `repr` shows neither the password nor the certificate."""

    name: str
    bootstrap_servers: str
    security_protocol: str
    sasl_mechanism: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    certificate_pem: str | None = field(default=None, repr=False)
    private_key_pem: str | None = field(default=None, repr=False)
    ca_pem: str | None = field(default=None, repr=False)

    def client_config(self) -> dict[str, Any]:
        """Return librdkafka's properties for this connection. They hold the password: never show or log them."""
        config: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap_servers,
            "security.protocol": self.security_protocol,
        }
        if self.security_protocol in _SASL_PROTOCOLS:
            config |= {
                "sasl.mechanism": self.sasl_mechanism,
                "sasl.username": self.user,
                "sasl.password": self.password,
            }
        if self.certificate_pem is not None and self.security_protocol == "SSL":
            config |= {"ssl.certificate.pem": self.certificate_pem, "ssl.key.pem": self.private_key_pem}
        if self.ca_pem is not None and self.security_protocol.endswith("SSL"):
            config |= {"ssl.ca.pem": self.ca_pem, "ssl.endpoint.identification.algorithm": "https"}
        return config


def from_environment(environment: Mapping[str, str]) -> Connection:
    """Return the connection that the KAFKA_* variables describe; all problems are reported at once.

    KAFKA_CERT is the path of a PEM file with the cluster's CA certificate, or the PEM text itself. KAFKA_CERT is only
    needed when the system does not trust the cluster's CA already. A user with a certificate gives it and its private
    key, in the same way, as KAFKA_CLIENT_CERT and KAFKA_CLIENT_KEY in place of a password.
    """
    problems: list[str] = []
    brokers = environment.get("KAFKA_BROKERS", "")
    if not brokers:
        problems.append("KAFKA_BROKERS must be set (host:port,...)")
    mechanism = environment.get("KAFKA_SASL_MECHANISM") or "SCRAM-SHA-512"
    user, password = environment.get("KAFKA_USER"), environment.get("KAFKA_PWD")
    protocol = environment.get("KAFKA_SECURITY_PROTOCOL") or _usual_protocol(environment)
    if protocol not in _PROTOCOLS:
        problems.append(f"KAFKA_SECURITY_PROTOCOL must be one of {', '.join(sorted(_PROTOCOLS))} (got {protocol!r})")
    if protocol in _SASL_PROTOCOLS:
        problems += [
            f"{name} must be set for {protocol}" for name in ("KAFKA_USER", "KAFKA_PWD") if not environment.get(name)
        ]
    pem = {name: _pem(name, environment.get(name), problems) for name in _PEM_VARIABLES}
    if bool(pem["KAFKA_CLIENT_CERT"]) != bool(pem["KAFKA_CLIENT_KEY"]):
        problems.append("KAFKA_CLIENT_CERT and KAFKA_CLIENT_KEY must be set together")
    if problems:
        raise OpsError(f"environment: {'; '.join(problems)}. Or name a stack: --stack dev.")
    return Connection(
        name="environment",
        bootstrap_servers=brokers,
        security_protocol=protocol,
        sasl_mechanism=mechanism if protocol in _SASL_PROTOCOLS else None,
        user=user,
        password=password,
        certificate_pem=pem["KAFKA_CLIENT_CERT"],
        private_key_pem=pem["KAFKA_CLIENT_KEY"],
        ca_pem=pem["KAFKA_CERT"],
    )


def _usual_protocol(environment: Mapping[str, str]) -> str:
    if environment.get("KAFKA_USER"):
        return "SASL_SSL"
    return "SSL" if environment.get("KAFKA_CLIENT_CERT") else "PLAINTEXT"


def _pem(name: str, value: str | None, problems: list[str]) -> str | None:
    """PEM text from itself or from a file. A value that is neither is not shown: it may be part of a key."""
    if not value or value.startswith("-----BEGIN"):
        return value or None
    try:
        return Path(value).read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no text"
        got = f"got {value!r}: " if name == "KAFKA_CERT" else ""
        problems.append(f"{name} must be PEM text or a readable PEM file ({got}{reason})")
        return None


def from_outputs(stack: str, outputs: Mapping[str, Any], user: str | None = None) -> Connection:
    """Return the connection that a stack's outputs describe, as `user` or as the stack's only user."""
    cluster = _required(stack, outputs, "cluster")
    passwords: Mapping[str, str | None] = _required(stack, outputs, "userPasswords")
    if user is None and len(passwords) != 1:
        raise OpsError(f"stack {stack}: --user must be given (allowed {', '.join(sorted(passwords)) or 'none'}).")
    name = user if user is not None else next(iter(passwords))
    if name not in passwords:
        raise OpsError(
            f"stack {stack}: --user must be a user of the stack (got {name!r}, allowed {', '.join(sorted(passwords))})."
        )
    missing = [key for key in ("bootstrapServers", "securityProtocol") if not cluster.get(key)]
    if missing:
        raise OpsError(f"stack {stack}: output cluster must hold {' and '.join(missing)}. Run `pulumi up -s {stack}`.")
    login: Mapping[str, str] = (outputs.get("userCredentials") or {}).get(name) or {}
    return Connection(
        name=stack,
        bootstrap_servers=str(cluster["bootstrapServers"]),
        security_protocol=str(cluster["securityProtocol"]),
        sasl_mechanism=cluster.get("saslMechanism"),
        user=name,
        password=passwords[name],
        certificate_pem=login.get("certificate"),
        private_key_pem=login.get("privateKey"),
        ca_pem=outputs.get("clusterCaCertificate"),
    )


def stack_outputs(
    stack: str, environment: Mapping[str, str], project: Path = PROJECT, *, secrets: bool = True
) -> dict[str, Any]:
    """Return a stack's outputs; without `secrets` those read `[secret]`.

    The environment decides the backend and the passphrase.
    """
    shown = ["--show-secrets"] if secrets else []
    command = ["pulumi", "stack", "output", "--json", *shown, "--non-interactive", "-s", stack]
    try:
        result = subprocess.run(
            command,
            cwd=project,
            env=dict(environment),
            capture_output=True,
            text=True,
            timeout=OUTPUTS_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise no_pulumi(stack) from error
    except subprocess.TimeoutExpired as error:
        raise OpsError(
            f"stack {stack}: its outputs must come within {OUTPUTS_TIMEOUT_S} s. Check the backend."
        ) from error
    if result.returncode != 0:
        lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
        told = " ".join(lines[-2:])[-400:] or explain_exit(result.returncode)
        said = f"stack {stack}: `pulumi stack output` must succeed ({told})."
        if no_such_stack(result.stderr, result.returncode):
            raise OpsError(_not_in_backend(stack, _stack_names(environment, project)))
        raise OpsError(explain_pulumi(stack, result.stderr, result.returncode) or said)
    outputs: dict[str, Any] = json.loads(result.stdout)
    if not outputs:
        raise NotDeployedError(f"stack {stack}: outputs must exist (got none). Run `pulumi up -s {stack}`.")
    return outputs


def _required(stack: str, outputs: Mapping[str, Any], key: str) -> Any:
    if key not in outputs:
        raise OpsError(
            f"stack {stack}: output {key} must exist (got {', '.join(sorted(outputs)) or 'none'}). "
            f"Run `pulumi up -s {stack}`."
        )
    return outputs[key]


def no_pulumi(stack: str) -> OpsError:
    """Return the error of a command that did not find Pulumi."""
    return OpsError(
        f"stack {stack}: pulumi must be on PATH. Install it, or in the sandbox: "
        '`eval "$(venv/bin/python -m sandbox env)"`.'
    )


def no_such_stack(stderr: str, exit_code: int) -> bool:
    """Whether Pulumi ended because its backend has no stack of the name."""
    return exit_code == PulumiExit.NO_SUCH_STACK or "no stack named" in stderr


def _not_in_backend(stack: str, names: list[str]) -> str:
    """The message for a stack that is not there. Without a stack at all the backend itself is the wrong one."""
    if names:
        return (
            f"stack {stack}: must exist in the backend (got none, allowed {listed(names)}).{alike(stack, names)} "
            f"A new one is made by `pulumi up -s {stack}`."
        )
    return (
        f"stack {stack}: must exist in the backend. Run `pulumi up -s {stack}`, or load the sandbox's backend: "
        '`eval "$(venv/bin/python -m sandbox env)"`.'
    )


def _stack_names(environment: Mapping[str, str], project: Path) -> list[str]:
    """The stacks of the project in the backend; none if they cannot be listed."""
    command = ["pulumi", "stack", "ls", "--json", "--non-interactive"]
    try:
        result = subprocess.run(
            command, cwd=project, env=dict(environment), capture_output=True, timeout=OUTPUTS_TIMEOUT_S, check=True
        )
        return [str(one["name"]) for one in json.loads(result.stdout)]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return []


def explain_pulumi(stack: str, stderr: str, exit_code: int) -> str | None:
    """One sentence for what Pulumi's CLI often complains about, else None. Its error stream holds no secret values.

    The exit code decides where Pulumi has one for the reason (3.226 and later), else what it prints.
    """
    if no_such_stack(stderr, exit_code):
        return _not_in_backend(stack, [])
    if "passphrase" in stderr:
        said = next(line.strip() for line in stderr.splitlines() if "passphrase" in line)
        return (
            f"stack {stack}: passphrase must be the one the stack was made with (Pulumi says: {said[:200]}). Set "
            "PULUMI_CONFIG_PASSPHRASE_FILE, or "
            'inside the sandbox: `eval "$(venv/bin/python -m sandbox env)"`.'
        )
    if "currently locked" in stderr:
        by = next((line.strip() for line in stderr.splitlines() if "created by" in line), "")
        return (
            f"stack {stack}: another run must end first (locked{f', {by}' if by else ''}). Wait for it; "
            f"if it was killed, release its lock: pulumi cancel -s {stack}."
        )
    if exit_code == PulumiExit.NOT_LOGGED_IN or "PULUMI_ACCESS_TOKEN" in stderr or "pulumi login" in stderr:
        return (
            f"stack {stack}: a Pulumi backend must be chosen. Set PULUMI_BACKEND_URL or run `pulumi login`, or inside "
            'the sandbox: `eval "$(venv/bin/python -m sandbox env)"`.'
        )
    if exit_code == PulumiExit.CANCELLED:
        return (
            f"stack {stack}: Pulumi must run to its end ({explain_exit(exit_code)}, by `pulumi cancel` or by Ctrl-C). "
            "Run this again."
        )
    return None
