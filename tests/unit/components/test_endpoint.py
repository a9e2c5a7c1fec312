"""One end of a mirror: which Secrets a namespace lacks, and how clients log in."""

import asyncio
from typing import Any

import pulumi
import pytest

from components.dialects import Login
from components.endpoint import ClusterEndpoint
from settings.users import Authentication, security

LOGIN = {
    "authentication": "scram-sha-512",
    "username": "reader",
    "secret": "reader",
    "password_key": "password",
    "certificate_key": "user.crt",
    "private_key_key": "user.key",
}
CREDENTIALS = {"password": "p", "certificate": "c", "privateKey": "k"}


def missing(namespace: str, *, login: dict[str, Any] | None = None, **end: Any) -> dict[str, dict[str, Any]]:
    """Data of the Secrets that a mirror in the namespace needs and lacks; each value is a Pulumi secret."""

    async def found() -> dict[str, dict[str, Any]]:
        values: dict[str, Any] = {
            "name": "kafka",
            "owner": "stack dev",
            "home": None,
            "tls": True,
            "bootstrap_servers": pulumi.Output.from_input("kafka:9093"),
            "outside_servers": pulumi.Output.from_input("kafka.example.com:9094"),
            "ca_secret": ("authority", "ca.crt"),
            "ca_certificate": pulumi.Output.secret("pem"),
            "login": Login(**{**LOGIN, **(login or {})}),
            "credentials": pulumi.Output.secret(CREDENTIALS),
        }
        data = ClusterEndpoint(**{**values, **end}).secrets_for(namespace)
        result: dict[str, dict[str, Any]] = {}
        for secret, keys in data.items():
            for key, value in keys.items():
                output = pulumi.Output.from_input(value)
                assert await output.is_secret(), f"{secret} {key}"
                result.setdefault(secret, {})[key] = await output.future()
        return result

    return asyncio.run(found())


BOTH = {"reader": {"password": "p"}, "authority": {"ca.crt": "pem"}}


@pytest.mark.parametrize(
    ("end", "lacks"),
    [
        ({"home": None}, BOTH),
        ({"home": "elsewhere"}, BOTH),
        ({"home": "here"}, {}),
        ({"home": "here", "ca_from_file": True}, {"authority": {"ca.crt": "pem"}}),
        ({"home": "elsewhere", "ca_from_file": True}, BOTH),
        ({"ca_secret": None}, {"reader": {"password": "p"}}),
        ({"home": "here", "ca_secret": None, "ca_from_file": False}, {}),
        ({"ca_secret": ("authority", "tls.crt")}, {"reader": {"password": "p"}, "authority": {"tls.crt": "pem"}}),
        ({"login": {"password_key": "apikey"}}, {**BOTH, "reader": {"apikey": "p"}}),
        ({"login": {"authentication": "plain"}}, BOTH),
        ({"login": {"authentication": "tls"}}, {**BOTH, "reader": {"user.crt": "c", "user.key": "k"}}),
        (
            {"login": {"authentication": "tls", "certificate_key": "tls.crt", "private_key_key": "tls.key"}},
            {**BOTH, "reader": {"tls.crt": "c", "tls.key": "k"}},
        ),
        ({"login": {"secret": "authority"}}, {"authority": {"password": "p", "ca.crt": "pem"}}),
    ],
)
def test_a_namespace_lacks_exactly_what_is_not_at_home_there(end: dict[str, Any], lacks: dict[str, Any]) -> None:
    assert missing("here", **end) == lacks


@pytest.mark.parametrize(
    ("authentication", "tls", "protocol", "mechanism"),
    [
        ("scram-sha-512", True, "SASL_SSL", "SCRAM-SHA-512"),
        ("scram-sha-256", True, "SASL_SSL", "SCRAM-SHA-256"),
        ("plain", True, "SASL_SSL", "PLAIN"),
        ("tls", True, "SSL", None),
        (None, True, "SSL", None),
        ("scram-sha-512", False, "SASL_PLAINTEXT", "SCRAM-SHA-512"),
        (None, False, "PLAINTEXT", None),
    ],
)
def test_the_security_protocol_follows_from_login_and_tls(
    authentication: Authentication | None, tls: bool, protocol: str, mechanism: str | None
) -> None:
    assert security(authentication, tls=tls) == (protocol, mechanism)
