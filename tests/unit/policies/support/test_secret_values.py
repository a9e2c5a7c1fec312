"""Telling secrets from what is only about them."""

import pytest

from policies.support.secret_values import holds_secret, is_literal, secrets_within

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PEM = "-----BEGIN {}-----{}MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"


@pytest.mark.parametrize(
    "key",
    [
        *("password", "dbPassword", "DB_PASSWORD", "ssl.keystore.password", "ssl.key.password", "keystorepassword"),
        *("ssl.keystore.key", "storepass", "FTP_PASS", "MYSQL_PWD", "snowflake.private.key.passphrase", "private.key"),
        *("token", "accessToken", "AUTH_TOKEN", "secret", "clientSecret", "client.secret.value", "SECRET_KEY"),
        *("apiKey", "APIKey", "API_KEY", "apikey", "aws.secret.access.key", "SharedAccessKey", "azure.account.key"),
        *("basic.auth.user.info", "value.converter.schema.registry.basic.auth.user.info", "password.encoder.secret"),
        *("delegation.token.secret.key", "delegation.token.master.key", "oauth.client.assertion", "password.txt"),
    ],
)
def test_keys_that_hold_secrets(key: str) -> None:
    assert holds_secret(key)


@pytest.mark.parametrize(
    "key",
    [
        *("tokenEndpointUri", "oauth.token.endpoint.uri", "accessTokenLocation", "validTokenType", "next.page.token"),
        *("delegation.token.max.lifetime.ms", "passwordGeneration", "password.encoder.iterations", "PASSWORD_FILE"),
        *("secretPrefix", "secretName", "secretKeyRef", "passwordSecret", "pullSecret", "pushSecret", "existingSecret"),
        *("STRIMZI_IMAGE_PULL_SECRETS", "sasl.jaas.config", "ssl.keystore.location", "ssl.truststore.certificates"),
        *("key", "topologyKey", "key.converter", "message.key", "primaryKey", "aws.access.key.id", "monkey", ""),
        *("basic.auth.credentials.source", "auto.offset.reset", "PWD", "compass", "tokenizer", "userInfoEndpointUri"),
    ],
)
def test_keys_that_do_not(key: str) -> None:
    assert not holds_secret(key)


@pytest.mark.parametrize("value", ["hunter2", "changeit", "$ecret1", "/a+b==", "password", "a b c", "tr`ick", "{}x"])
def test_literal_values(value: str) -> None:
    assert is_literal("password", value)


@pytest.mark.parametrize(
    "value",
    [
        *("${secrets:ns/name:password}", "${file:/opt/a.properties:b}", "${env:PASSWORD}", "${directory:/opt/a:b}"),
        *(
            "${strimzienv:PASSWORD}",
            "$(PASSWORD)",
            "$PASSWORD",
            "$1",
            "{{ .Values.password }}",
            "{password}",
            "`cat x`",
        ),
        *("vault:secret/data/kafka#password", "arn:aws:secretsmanager:x", "/mnt/secrets/password", "file:///run/x"),
        *("", "  ", "true", "False", "none", "required", "<password>", "********"),
    ],
)
def test_references_paths_switches_and_gaps_are_no_literal_values(value: str) -> None:
    assert not is_literal("password", value)


def test_numbers_are_literal_as_passwords_only() -> None:
    assert is_literal("ssl.key.password", "123456")
    assert not is_literal("max.token", "123456")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'{SCRAM} username="u" password="x1";', ["password"]),
        (f"{SCRAM} username='u' password='x1';", ["password"]),
        (f'"config": "{SCRAM} password=\\"x1\\";"', ["password"]),
        (f'{PLAIN} user_alice="x1" user_bob="${{env:BOB}}";', ["user_alice"]),
        ('OAuthBearerLoginModule required clientId="a" clientSecret="b" storeKey=true;', ["clientSecret"]),
        ("sasl.jaas.config=X required \\\n  username='u' \\\n  password='x';\n", ["password"]),
        ("ssl.keystore.location=/a/b\nssl.keystore.password = changeit\n", ["ssl.keystore.password"]),
        ("basic.auth.user.info=user:x1", ["basic.auth.user.info"]),
        ("-Xmx1g -Djavax.net.ssl.keyStorePassword=changeit -Da=b", ["javax.net.ssl.keyStorePassword"]),
        ("--db-password=x1", ["db-password"]),
        ("export DB_PASSWORD=x1", ["DB_PASSWORD"]),
        ("jdbc:postgresql://db/stock?user=a&password=x1&ssl=true", ["password"]),
        ("Endpoint=sb://a/;SharedAccessKeyName=b;SharedAccessKey=c=", ["SharedAccessKey"]),
        ("https://user:x1@example.com/", ["password of a URL"]),
        ("- user: a\n  password: x1,2 # of the registry\n", ["password"]),
        ('{"user":"a","password":"x1"}', ["password"]),
        (PEM.format("PRIVATE KEY", "\n"), ["private key"]),
        (PEM.format("RSA PRIVATE KEY", " "), ["private key"]),
        (PEM.format("ENCRYPTED PRIVATE KEY", "\\n"), ["private key"]),
        ('connect(user=user, password="x1")', ["password"]),
    ],
)
def test_secrets_within_texts(text: str, expected: list[str]) -> None:
    assert [what for _, what in secrets_within(text)] == expected


@pytest.mark.parametrize(
    "text",
    [
        f'{SCRAM} username="u" password="${{secrets:ns/name:password}}";',
        "#ssl.keystore.password=changeit\n! password=x\n  // token=y\n",
        "ssl.keystore.password=${file:/a/b:c}\npassword: ''\npassword:\n  valueFrom: x\n",
        "passwordSecret:\n  secretName: a\n  password: apikey\n",
        "passwordSecret:\n  password: apikey\n  secretName: a\n",
        PEM.format("CERTIFICATE", "\n"),
        "pattern: -----BEGIN PRIVATE KEY-----",
        '{"expr": "sum(kube_secret_info{secret=\\"kafka\\", token=~\\".*\\"}) by (token)"}',
        '{"token": {"color": "red"}, "password": false, "type": "password", "secret": "$SECRET"}',
        'rules:\n- pattern: kafka.server<type=(.+), name=(.+)><>Count\n  labels:\n    token: "$1"\n',
        'PASSWORD=$(cat /run/a)\nTOKEN=`cat b`\npassword="$1"\ncurl --token="$TOKEN"\n[ "$password" == "x" ]\n',
        "connect(password=password, token=args.token)\ntoken = get_token()\npassword = os.environ['P']\n",
        "password: |\n  x\ntoken: *other\n",
        "Token: see the wiki for how to get one",
        "password={{ .Values.x }}\ntoken=<your token>\nsecret=***\n",
        "https://user:${env:PASSWORD}@example.com http://example.com:8080/a@b",
        "delegation.token.max.lifetime.ms=604800000\nauto.offset.reset=latest\n",
    ],
)
def test_texts_without_secrets(text: str) -> None:
    assert [*secrets_within(text)] == []


def test_lines_are_reported() -> None:
    assert [*secrets_within("a=b\npassword=x\n\ntoken=y")] == [(2, "password"), (4, "token")]


def test_values_without_quotes_are_variables_in_a_programming_language() -> None:
    assert [*secrets_within("token = fresh\npassword = 'x1'\n", "login.py")] == [(2, "password")]
    assert [*secrets_within("token = fresh\n", "login.properties")] == [(1, "token")]
