"""Where a connection comes from, and that it never shows what must stay hidden."""

from pathlib import Path
from typing import Any

import pytest

from ops.connection import from_environment, from_outputs
from ops.errors import OpsError
from ops.pulumi.stack import stack_outputs

from ...support.pulumi_program import shell_program

SECRET = "very-secret-4711"
PEM = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"
OUTPUTS: dict[str, Any] = {
    "cluster": {
        "name": "c",
        "bootstrapServers": "127.0.0.1:9093",
        "securityProtocol": "SASL_SSL",
        "saslMechanism": "SCRAM-SHA-512",
    },
    "clusterCaCertificate": PEM,
    "userPasswords": {"alice": SECRET},
}


def test_outputs_become_the_properties_of_a_client() -> None:
    assert from_outputs("dev", OUTPUTS).client_config() == {
        "bootstrap.servers": "127.0.0.1:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": SECRET,
        "ssl.ca.pem": PEM,
        "ssl.endpoint.identification.algorithm": "https",
    }


def test_neither_password_nor_certificate_is_shown_by_repr() -> None:
    shown = repr(from_outputs("dev", OUTPUTS))
    assert SECRET not in shown
    assert "BEGIN" not in shown


def test_a_stack_with_two_users_asks_which_and_takes_the_one_named() -> None:
    outputs = {**OUTPUTS, "userPasswords": {"alice": SECRET, "bob": "x"}}
    with pytest.raises(OpsError, match=r"--user must be given \(allowed alice, bob\)"):
        from_outputs("dev", outputs)
    assert from_outputs("dev", outputs, "bob").user == "bob"
    with pytest.raises(OpsError, match=r"got 'carol', allowed alice, bob"):
        from_outputs("dev", outputs, "carol")


@pytest.mark.parametrize(("as_mirror", "user"), [(False, "bob"), (True, "alice")])
def test_the_only_user_of_applications_or_of_mirrors_need_not_be_named(as_mirror: bool, user: str) -> None:
    users = {"alice": {"application": False}, "bob": {"application": True}}
    outputs = {**OUTPUTS, "userPasswords": {"alice": SECRET, "bob": "x"}, "users": users}
    assert from_outputs("dev", outputs, as_mirror=as_mirror).user == user
    more = {"userPasswords": {**outputs["userPasswords"], "carol": "y"}}
    with pytest.raises(OpsError, match=r"--user must be given \(allowed alice, bob, carol\)"):
        from_outputs(
            "dev", {**outputs, **more, "users": {**users, "carol": {"application": not as_mirror}}}, as_mirror=as_mirror
        )


def test_a_user_that_the_stack_does_not_export_is_named_with_the_remedy() -> None:
    outputs = {**OUTPUTS, "users": {"alice": {"application": True}, "bob": {"application": True, "exported": False}}}
    with pytest.raises(OpsError, match=r"exports \(got 'bob', allowed alice\)\. Set `exported: true` .* up -s dev`"):
        from_outputs("dev", outputs, "bob")


def test_a_mirrors_user_is_not_taken_for_applications_because_theirs_is_not_exported() -> None:
    outputs = {**OUTPUTS, "users": {"alice": {"application": False}, "bob": {"application": True, "exported": False}}}
    assert from_outputs("dev", outputs, as_mirror=True).user == "alice"
    with pytest.raises(OpsError, match=r"--user must be given \(allowed alice\)\. Set `exported: true` at one of bob"):
        from_outputs("dev", outputs)


def test_a_stack_without_the_outputs_says_what_to_run() -> None:
    with pytest.raises(OpsError, match=r"output cluster must exist .* Run `pulumi up -s dev`"):
        from_outputs("dev", {"other": 1})


def test_the_environment_becomes_the_properties_of_a_client(tmp_path: Path) -> None:
    certificate = tmp_path / "ca.pem"
    certificate.write_text(PEM)
    connection = from_environment(
        {"KAFKA_BROKERS": "h:1", "KAFKA_USER": "u", "KAFKA_PWD": SECRET, "KAFKA_CERT": str(certificate)}
    )
    config = connection.client_config()
    assert (config["security.protocol"], config["sasl.mechanism"]) == ("SASL_SSL", "SCRAM-SHA-512")
    assert (config["sasl.username"], config["sasl.password"], config["ssl.ca.pem"]) == ("u", SECRET, PEM)


def test_all_problems_of_the_environment_are_reported_at_once_without_the_password() -> None:
    with pytest.raises(OpsError) as caught:
        from_environment({"KAFKA_PWD": SECRET, "KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "KAFKA_CERT": "/no/such.pem"})
    message = str(caught.value)
    assert all(part in message for part in ("KAFKA_BROKERS", "KAFKA_USER must be set", "/no/such.pem"))
    assert SECRET not in message


def test_a_user_may_have_a_certificate_in_place_of_a_password(tmp_path: Path) -> None:
    key = tmp_path / "user.key"
    key.write_text(SECRET)
    connection = from_environment(
        {"KAFKA_BROKERS": "h:1", "KAFKA_CLIENT_CERT": PEM, "KAFKA_CLIENT_KEY": str(key), "KAFKA_CERT": PEM}
    )
    outputs = {
        "cluster": {"bootstrapServers": "h:1", "securityProtocol": "SSL", "saslMechanism": None},
        "clusterCaCertificate": PEM,
        "userPasswords": {"alice": None},
        "userCredentials": {"alice": {"certificate": PEM, "privateKey": SECRET}},
    }
    assert (
        connection.client_config()
        == from_outputs("dev", outputs).client_config()
        == {
            "bootstrap.servers": "h:1",
            "security.protocol": "SSL",
            "ssl.certificate.pem": PEM,
            "ssl.key.pem": SECRET,
            "ssl.ca.pem": PEM,
            "ssl.endpoint.identification.algorithm": "https",
        }
    )
    assert SECRET not in repr(connection)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"KAFKA_CLIENT_CERT": PEM}, "KAFKA_CLIENT_CERT and KAFKA_CLIENT_KEY must be set together"),
        ({"KAFKA_CLIENT_CERT": PEM, "KAFKA_CLIENT_KEY": SECRET}, "KAFKA_CLIENT_KEY must be PEM text or a readable"),
    ],
)
def test_half_a_certificate_is_reported_and_a_key_is_never_shown(variables: dict[str, str], message: str) -> None:
    with pytest.raises(OpsError) as caught:
        from_environment({"KAFKA_BROKERS": "h:1", **variables})
    assert message in str(caught.value)
    assert SECRET not in str(caught.value)


def test_plaintext_needs_brokers_only() -> None:
    assert from_environment({"KAFKA_BROKERS": "h:1"}).client_config() == {
        "bootstrap.servers": "h:1",
        "security.protocol": "PLAINTEXT",
    }


def test_outputs_are_read_with_secrets_from_the_stack_that_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = shell_program(tmp_path, """printf '{"arguments": "%s"}' "$*" """)
    monkeypatch.setenv("PATH", environment["PATH"])
    arguments = stack_outputs("dev", environment, tmp_path)["arguments"].split()
    assert arguments[:3] == ["stack", "output", "--json"]
    assert arguments[-2:] == ["-s", "dev"]
    assert "--show-secrets" in arguments


@pytest.mark.parametrize(
    ("stderr", "message"),
    [
        ("error: no stack named 'dev' found", "stack dev: must exist in the backend"),
        ("error: constructing secrets manager: incorrect passphrase", "PULUMI_CONFIG_PASSPHRASE_FILE"),
        ("error: PULUMI_ACCESS_TOKEN must be set for login", "PULUMI_BACKEND_URL"),
        ("error: the moon is full", "the moon is full"),
    ],
)
def test_what_pulumi_complains_about_is_reported_in_one_sentence(
    stderr: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = shell_program(tmp_path, f'echo "{stderr}" >&2; exit 255')
    monkeypatch.setenv("PATH", environment["PATH"])
    with pytest.raises(OpsError) as caught:
        stack_outputs("dev", environment, tmp_path)
    assert message in str(caught.value)


def test_a_machine_without_pulumi_is_reported_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OpsError, match="pulumi must be on PATH"):
        stack_outputs("dev", {"PATH": str(tmp_path)}, tmp_path)


def test_a_wrong_name_is_answered_with_the_stacks_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = """[ "$2" = ls ] && echo '[{"name": "dev"}, {"name": "stg"}]' && exit 0
echo "error: no stack named 'stgg' found" >&2; exit 255"""
    environment = shell_program(tmp_path, script)
    monkeypatch.setenv("PATH", environment["PATH"])
    with pytest.raises(OpsError) as caught:
        stack_outputs("stgg", environment, tmp_path)
    assert str(caught.value).startswith(
        "stack stgg: must exist in the backend (got none, allowed dev, stg). Did you mean stg?"
    )
