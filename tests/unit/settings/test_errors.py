"""No message prints what may be a password in a stack file, and harmless keys are printed."""

from typing import Any

import pytest

from settings import SettingsError, hints, parse
from settings.errors import PLACEHOLDER, redact_secrets

from ...support.stack_values import TARGET, with_value

SECRET = "hunter2-made-up"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="{SECRET}";'


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("users/0/password", "users[0].password"),
        ("users/0/passwd", "users[0].passwd"),
        ("users/0/secret/password", "users[0].secret.password"),
        ("cluster/apiKey", "cluster.apiKey"),
        ("cluster/config", "cluster.config[ssl.keystore.password]"),
        ("mirrors/0/producer", "mirrors[0].producer[ssl.keystore.password]"),
        ("operator/token", "operator.token"),
        ("operator/pullSecret", "operator.pullSecret"),
        ("clientSecret", "clientSecret"),
        ("mirrors/0/source/external/secret/privateKey", "mirrors[0].source.external.secret.privateKey"),
    ],
)
def test_a_key_that_is_named_like_a_secret_is_refused_once_and_not_repeated(path: str, key: str) -> None:
    value: Any = {"ssl.keystore.password": SECRET} if path.endswith(("config", "producer")) else SECRET
    with pytest.raises(SettingsError) as error:
        parse(with_value(TARGET, path, value))
    assert SECRET not in str(error.value)
    assert next(problem.message for problem in error.value.problems if problem.key == key).startswith(
        ("user writer: ", "cluster passive: ", "mirror mm2: ", "operator: ", "stack: ")
    )
    assert sum(problem.key == key for problem in error.value.problems) == 1


@pytest.mark.parametrize(
    "value",
    [
        JAAS,
        f"https://user:{SECRET}@example.com/registry",
        f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----",
        f"user=a,password={SECRET}",
        f"passwd: {SECRET}",
        f"OAuthBearerLoginModule required clientSecret='{SECRET}';",
        {"secure": SECRET},
    ],
)
def test_a_value_that_holds_a_secret_is_refused_wherever_it_stands(value: Any) -> None:
    for path in ("cluster/name", "cluster/superUsers", "mirrors/0/topics/0", "verification/reportDir", "anything"):
        with pytest.raises(SettingsError) as error:
            parse(with_value(TARGET, path, value))
        assert SECRET not in str(error.value)
        assert "must not be in a stack file" in str(error.value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("users/0/passwordLength", 24),
        ("users/0/passwordGeneration", 2),
        ("users/0/secret", {"name": "own", "passwordKey": "pw", "privateKeyKey": "k", "certificateKey": "c"}),
        ("mirrors/0/source/copySecrets", False),
        ("mirrors/0/workerConfig", {"x.password": "${env:PASSWORD}", "key.converter": "c"}),
        ("topics/0/name", "password-resets"),
        ("operator/catalog", {"image": "registry.example.com/token:1.2"}),
        ("users/0/acls", [{"type": "topic", "names": ["tokens", "secret"], "operations": ["Read"]}]),
    ],
)
def test_keys_that_name_or_count_secrets_are_left_alone(path: str, value: Any) -> None:
    assert parse(with_value(TARGET, path, value))


def test_a_reference_around_a_secret_does_not_hide_it() -> None:
    _, problems = redact_secrets({"cluster": {"config": {"x": f"${{env:USER}} password={SECRET}"}}})
    assert [problem.key for problem in problems] == ["cluster.config.x"]


def test_what_is_withheld_is_replaced_everywhere_else_nothing_changes() -> None:
    clean, problems = redact_secrets({"users": [{"name": "a", "password": SECRET}], "topics": [], 1: None})
    assert clean == {"users": [{"name": "a", "password": PLACEHOLDER}], "topics": [], "1": None}
    assert [str(problem).count(SECRET) for problem in problems] == [0]


def test_a_siblings_secret_is_not_repeated_either() -> None:
    sibling = {"cluster": {"name": "active", "namespace": "a"}, "users": [{"name": SECRET, "password": SECRET}]}
    assert SECRET not in str(hints(TARGET, "stg", {"dev": sibling}))


def test_the_name_of_an_object_is_not_printed_if_it_contains_a_secret() -> None:
    with pytest.raises(SettingsError) as error:
        parse(with_value(TARGET, "users/0/name", f"password={SECRET}"))
    assert SECRET not in str(error.value)
