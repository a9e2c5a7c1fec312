"""The sandbox's certificates: of one run of the control plane, and of Kafka clusters with their operator and users.

The control plane's are created for every run, so that those of an earlier run are rejected by its API server. The key
of its authority is in memory only, and after the certificates are issued nobody can issue another one.

A Kafka cluster has two authorities, and one certificate per broker, operator and user. Subjects are Strimzi's: every
broker is CN=<cluster>-kafka, the operator CN=<cluster>-cluster-operator, both O=io.strimzi; a user is CN=<user> and
nothing else. Between brokers only the cluster's authority is trusted, so no user's certificate ever makes a super user.
`sandbox.operator.certificates` decides where they are stored.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ORGANISATION = "io.strimzi"
BACKDATED = timedelta(minutes=5)
CONTROL_PLANE_VALID_DAYS = 30
Validity = tuple[datetime, datetime]
SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH


@dataclass(frozen=True)
class KeyPair:
    """A certificate with its private key, both PEM; the key never appears in repr."""

    certificate: str
    key: str

    def __repr__(self) -> str:
        return "KeyPair(certificate=..., key=<hidden>)"

    @property
    def keystore(self) -> str:
        """PEM keystore as Kafka reads it: the private key, then the certificate."""
        return self.key + self.certificate


def self_signed(subject: x509.Name, *, valid: Validity, key: str | None = None) -> KeyPair:
    """An authority's certificate, which signs itself and certificates of clients and servers.

    Args:
        subject: Its name, which is its issuer's name too.
        valid: When it starts and when it stops being valid.
        key: The private key, PEM; by default a new one.
    """
    private = ec.generate_private_key(ec.SECP256R1()) if key is None else _private_key(key)
    certificate = (
        _builder(subject, subject, private.public_key(), valid)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(private, hashes.SHA256())
    )
    return KeyPair(_pem(certificate), _key_pem(private))


def issue(
    ca: KeyPair,
    subject: x509.Name,
    *,
    valid: Validity,
    names: Sequence[x509.GeneralName] = (),
    purposes: Sequence[x509.ObjectIdentifier] = (SERVER, CLIENT),
) -> KeyPair:
    """A certificate that `ca` signs, with a new key; `names` are the hosts and addresses that it is valid for."""
    issuer = x509.load_pem_x509_certificate(ca.certificate.encode())
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(subject, issuer.subject, key.public_key(), valid)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return KeyPair(_pem(builder.sign(_private_key(ca.key), hashes.SHA256())), _key_pem(key))


def valid_for(days: int) -> Validity:
    """From five minutes ago, for clocks that differ, so many days."""
    begins = datetime.now(UTC) - BACKDATED
    return begins, begins + timedelta(days=days)


def common_name_only(name: str) -> x509.Name:
    """The subject CN=`name`."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


class ControlPlaneAuthority:
    """Issues the certificates of one run of the control plane."""

    def __init__(self) -> None:
        self._valid = valid_for(CONTROL_PLANE_VALID_DAYS)
        self._pair = self_signed(common_name_only("sandbox control plane CA"), valid=self._valid)

    @property
    def certificate(self) -> str:
        """The authority's own certificate, PEM."""
        return self._pair.certificate

    def server(self, addresses: list[str], names: list[str]) -> KeyPair:
        """A server's pair, valid for these IP addresses and DNS names."""
        alternatives = [
            *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses),
            *(x509.DNSName(name) for name in names),
        ]
        subject = common_name_only("kube-apiserver")
        return issue(self._pair, subject, valid=self._valid, names=alternatives, purposes=[SERVER])

    def client(self, user: str, group: str | None = None) -> KeyPair:
        """A client's pair: Kubernetes takes the common name for the user, the organisation for the group."""
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
        attributes += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
        return issue(self._pair, x509.Name(attributes), valid=self._valid, purposes=[CLIENT])


def signing_key() -> str:
    """A new RSA key, PEM, that signs the tokens of service accounts."""
    return _key_pem(rsa.generate_private_key(public_exponent=65537, key_size=2048))


def broker_name(cluster: str) -> str:
    """Common name on every broker's certificate."""
    return f"{cluster}-kafka"


def operator_name(cluster: str) -> str:
    """Common name on the operator's client certificate."""
    return f"{cluster}-cluster-operator"


def principal(common_name: str) -> str:
    """The Kafka principal that a certificate with this common name gets under the default mapping rules."""
    return f"User:CN={common_name},O={ORGANISATION}"


def user_principal(user: str) -> str:
    """The Kafka principal of a user with a certificate."""
    return f"User:CN={user}"


def authority(name: str, generation: int = 0, key_pem: str | None = None, validity_days: int = 365) -> KeyPair:
    """A new self-signed authority, or a new certificate of the one whose private key is given.

    The generation of the key is part of the subject, as in Strimzi: two authorities that are trusted at the same time
    must not have the same name.
    """
    subject = _name(f"{name} v{generation}", ORGANISATION)
    return self_signed(subject, valid=valid_for(validity_days), key=key_pem)


def broker_certificate(ca: KeyPair, cluster: str, namespace: str, pod: str, validity_days: int = 365) -> KeyPair:
    """A broker's certificate: valid for 127.0.0.1, localhost and the service names that Strimzi would give it."""
    bootstrap, brokers = f"{cluster}-kafka-bootstrap", f"{cluster}-kafka-brokers"
    hosts = ["localhost"]
    for service in (bootstrap, brokers, f"{pod}.{brokers}"):
        hosts += [f"{service}.{namespace}", f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local"]
    hosts.insert(1, bootstrap)
    names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
    names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    return issue(ca, _name(broker_name(cluster), ORGANISATION), valid=valid_for(validity_days), names=names)


def operator_certificate(ca: KeyPair, cluster: str, validity_days: int = 365) -> KeyPair:
    """The operator's client certificate for the replication listener."""
    return issue(ca, _name(operator_name(cluster), ORGANISATION), valid=valid_for(validity_days))


def user_certificate(ca: KeyPair, user: str, validity_days: int = 365) -> KeyPair:
    """A user's client certificate, signed by the authority of the clients."""
    return issue(ca, _name(user), valid=valid_for(validity_days))


def pkcs12_store(pair: KeyPair, ca_certificate: str, name: str, password: str) -> bytes:
    """The PKCS#12 file that Java clients take for their keystore."""
    return pkcs12.serialize_key_and_certificates(
        name.encode(),
        _private_key(pair.key),
        x509.load_pem_x509_certificate(pair.certificate.encode()),
        [x509.load_pem_x509_certificate(ca_certificate.encode())],
        serialization.BestAvailableEncryption(password.encode()),
    )


def is_issued_by(certificate: str, ca_certificate: str, at: datetime | None = None) -> bool:
    """True if the authority signed the certificate, not before its own, and it is valid for at least one day more.

    A certificate that is older than its authority's was signed by the same key before the authority was renewed.
    """
    moment = at or datetime.now(UTC)
    try:
        leaf = x509.load_pem_x509_certificate(certificate.encode())
        ca = x509.load_pem_x509_certificate(ca_certificate.encode())
        leaf.verify_directly_issued_by(ca)
    except Exception:
        return False
    return (
        leaf.not_valid_before_utc >= ca.not_valid_before_utc and leaf.not_valid_after_utc - timedelta(days=1) > moment
    )


def belong_together(pair: KeyPair) -> bool:
    """True if the certificate was made for this private key."""
    return x509.load_pem_x509_certificate(pair.certificate.encode()).public_key() == _private_key(pair.key).public_key()


def common_name(certificate: str) -> str:
    """The common name of the certificate's subject, empty if it has none."""
    names = x509.load_pem_x509_certificate(certificate.encode()).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def ends_at(certificate: str) -> datetime:
    """When the certificate stops being valid."""
    return x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    valid: Validity,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(valid[0])
        .not_valid_after(valid[1])
    )


def _name(common_name: str, organisation: str | None = None) -> x509.Name:
    parts = [(NameOID.ORGANIZATION_NAME, organisation), (NameOID.COMMON_NAME, common_name)]
    return x509.Name([x509.NameAttribute(kind, value) for kind, value in parts if value])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def _private_key(pem: str) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem.encode(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"authority: private key must be an elliptic curve key (got {type(key).__name__})")
    return key
