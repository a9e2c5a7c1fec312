"""The Java client is configured like librdkafka, or the run reports what it cannot be given."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from contract.fields import RequestError
from contract.verification_request import ClusterConfig
from spark.comparison.java_client import java_properties, require_java
from spark.comparison.spark_engine import kafka_options

PASSWORD = "made-up-password"
PKCS8, PKCS1 = serialization.PrivateFormat.PKCS8, serialization.PrivateFormat.TraditionalOpenSSL


class Made:
    """A key with its certificate, as files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.own = rsa.generate_private_key(65537, 2048)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "reader")])
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(self.own.public_key())
        builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
        self.certificate = builder.sign(self.own, hashes.SHA256())
        self.pem = self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def key(self, shape: serialization.PrivateFormat = PKCS8, password: str | None = None) -> str:
        lock = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
        return self.own.private_bytes(serialization.Encoding.PEM, shape, lock).decode()

    def file(self, name: str, content: str | bytes) -> str:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def store(self) -> str:
        lock = serialization.BestAvailableEncryption(PASSWORD.encode())
        data = pkcs12.serialize_key_and_certificates(b"reader", self.own, self.certificate, None, lock)
        return self.file("user.p12", data)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def side(role: str = "source", **config: str) -> ClusterConfig:
    given = {name.replace("_", "."): value for name, value in config.items()}
    return ClusterConfig(
        role=role, alias="a", client_config={"bootstrap.servers": "k:1", "security.protocol": "SSL"} | given
    )


def problems(*sides: ClusterConfig) -> list[str]:
    with pytest.raises(RequestError) as caught:
        require_java(sides)
    return caught.value.problems


def test_files_in_pem_format_are_given_as_their_text(made: Made) -> None:
    found = java_properties(
        side(
            ssl_ca_location=made.file("ca.crt", made.pem),
            ssl_certificate_location=made.file("user.crt", made.pem),
            ssl_key_location=made.file("user.key", made.key()),
        )
    )
    assert (found["ssl.truststore.type"], found["ssl.truststore.certificates"]) == ("PEM", made.pem)
    assert (found["ssl.keystore.type"], found["ssl.keystore.certificate.chain"]) == ("PEM", made.pem)
    assert found["ssl.keystore.key"] == made.key()


@pytest.mark.parametrize(("shape", "password"), [(PKCS1, None), (PKCS1, PASSWORD), (PKCS8, PASSWORD)])
def test_a_key_that_java_cannot_read_is_written_as_pkcs_8(
    made: Made, shape: serialization.PrivateFormat, password: str | None
) -> None:
    locked = {"ssl_key_password": password} if password else {}
    found = java_properties(side(ssl_certificate_pem=made.pem, ssl_key_pem=made.key(shape, password), **locked))
    assert found["ssl.keystore.key"] == made.key()
    assert "ssl.key.password" not in found


def test_a_password_for_a_key_without_one_is_taken_as_librdkafka_takes_it(made: Made) -> None:
    for key in (made.key(), made.key(PKCS1)):
        found = java_properties(side(ssl_certificate_pem=made.pem, ssl_key_pem=key, ssl_key_password=PASSWORD))
        assert found["ssl.keystore.key"] == made.key()


def test_a_locked_key_without_a_password_is_reported(made: Made) -> None:
    reported = problems(side(ssl_certificate_pem=made.pem, ssl_key_pem=made.key(PKCS8, PASSWORD)))
    assert "ssl.key must be a private key that ssl.key.password opens" in reported[0]


def test_a_key_store_is_given_as_its_certificate_and_key(made: Made) -> None:
    found = java_properties(side(ssl_keystore_location=made.store(), ssl_keystore_password=PASSWORD))
    assert (found["ssl.keystore.certificate.chain"], found["ssl.keystore.key"]) == (made.pem, made.key())


def test_a_wrong_password_of_a_key_or_a_key_store_is_reported_without_it(made: Made) -> None:
    reported = problems(
        side(ssl_keystore_location=made.store(), ssl_keystore_password="another-one"),
        side("target", ssl_certificate_pem=made.pem, ssl_key_pem=made.key(PKCS1, PASSWORD), ssl_key_password="other-1"),
    )
    assert "source.client_config: ssl.keystore.location must be a PKCS #12 file" in reported[0]
    assert "target.client_config: ssl.key must be a private key that ssl.key.password opens" in reported[1]
    assert not any("another-one" in text or "other-1" in text for text in reported)


@pytest.mark.parametrize(
    "key",
    [
        *("ssl.ca.certificate.stores", "ssl.cipher.suites", "ssl.curves.list", "ssl.sigalgs.list", "ssl.crl.location"),
        *("ssl.providers", "ssl.engine.location", "sasl.kerberos.keytab", "sasl.oauthbearer.config", "ssl_ca"),
    ],
)
def test_a_key_without_a_counterpart_in_java_is_refused_by_name(key: str) -> None:
    config = {"bootstrap.servers": "k:1", key: "made-up-value"}
    (reported,) = problems(ClusterConfig(role="source", alias="a", client_config=config))
    assert reported.startswith(f"source.client_config: {key} must have a counterpart in Kafka's Java client")
    assert "made-up-value" not in reported


def test_java_cannot_leave_certificates_unverified() -> None:
    name = {"enable_ssl_certificate_verification": "false"}
    assert "enable.ssl.certificate.verification must be true" in problems(side(**name))[0]
    java_properties(side(enable_ssl_certificate_verification="true"))


def test_all_problems_of_both_sides_are_reported_together(made: Made) -> None:
    nowhere = str(made.folder / "none")
    reported = problems(
        side(ssl_ca_location=nowhere, ssl_providers="x", ssl_certificate_location=made.file("no.crt", "no PEM")),
        side("target", sasl_mechanism="GSSAPI", ssl_certificate_pem=made.pem),
    )
    expected = ("ssl.ca.location", "ssl.certificate.location", "ssl.providers", "sasl.mechanism")
    assert [key for text in reported for key in expected if f": {key} " in text] == list(expected)
    assert f"got {nowhere}: No such file or directory" in reported[0]
    assert len(reported) == 4


def test_a_certificate_without_its_key_is_reported(made: Made) -> None:
    assert "must be set together" in problems(side(ssl_certificate_pem=made.pem))[0]
    assert "must be set together" in problems(side(ssl_key_pem=made.key()))[0]


def test_spark_waits_for_no_more_records_where_a_log_has_ended() -> None:
    """By default half a second for each partition: what it asks behind its last fetch is answered behind that."""
    side = ClusterConfig(role="source", alias="site", client_config={"bootstrap.servers": "broker:9092"})
    assert int(kafka_options(side, "read_committed")["kafka.fetch.max.wait.ms"]) <= 10
