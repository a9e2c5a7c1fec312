import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives.serialization import pkcs12

from sandbox import pki


def test_a_broker_is_valid_for_loopback_and_its_service_names() -> None:
    pair = pki.broker_certificate(pki.authority("c"), "c", "ns", "c-pool-0")
    names = x509.load_pem_x509_certificate(pair.certificate.encode()).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert names.value.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("127.0.0.1")]
    hosts = names.value.get_values_for_type(x509.DNSName)
    assert {"localhost", "c-kafka-bootstrap.ns.svc", "c-pool-0.c-kafka-brokers.ns.svc.cluster.local"} <= set(hosts)


def test_the_principal_is_what_kafka_reads_from_the_certificate() -> None:
    pair = pki.operator_certificate(pki.authority("c"), "c")
    subject = x509.load_pem_x509_certificate(pair.certificate.encode()).subject.rfc4514_string()
    assert pki.principal(pki.operator_name("c")) == f"User:{subject}"


def test_a_users_principal_is_its_common_name_and_nothing_else() -> None:
    pair = pki.user_certificate(pki.authority("c"), "app.one")
    subject = x509.load_pem_x509_certificate(pair.certificate.encode()).subject.rfc4514_string()
    assert pki.user_principal("app.one") == f"User:{subject}" == "User:CN=app.one"


def test_a_users_java_keystore_opens_with_its_password_and_holds_the_same_pair() -> None:
    ca = pki.authority("c")
    pair = pki.user_certificate(ca, "app")
    store = pki.pkcs12_store(pair, ca.certificate, "app", "store-password")
    key, certificate, others = pkcs12.load_key_and_certificates(store, b"store-password")
    assert key is not None
    assert certificate == x509.load_pem_x509_certificate(pair.certificate.encode())
    assert others == [x509.load_pem_x509_certificate(ca.certificate.encode())]


def test_only_the_own_authority_counts_even_if_another_has_its_name() -> None:
    own, other = pki.authority("c"), pki.authority("c")
    pair = pki.broker_certificate(own, "c", "ns", "pod")
    assert pki.is_issued_by(pair.certificate, own.certificate)
    assert not pki.is_issued_by(pair.certificate, other.certificate)


def test_a_certificate_about_to_end_is_not_current() -> None:
    own = pki.authority("c")
    assert not pki.is_issued_by(pki.operator_certificate(own, "c", validity_days=1).certificate, own.certificate)


def test_a_private_key_never_shows_in_repr() -> None:
    assert "PRIVATE" not in repr(pki.authority("c"))
