"""A side's librdkafka configuration as properties of Kafka's Java client, which Spark reads with.

Both clients must trust and show the same. Files are read here and given as PEM text, so that no executor needs them.
"""

from collections.abc import Iterable
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

from contract.fields import RequestError
from contract.verification_request import ClusterConfig

# librdkafka name -> Java name, where the value is the same
SAME = {
    "bootstrap.servers": "bootstrap.servers",
    "security.protocol": "security.protocol",
    "client.id": "client.id",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "max.partition.fetch.bytes": "max.partition.fetch.bytes",
}
LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
VERIFY = "enable.ssl.certificate.verification"
JUDGED = ("ssl.", "sasl.", "ssl_")  # what a connection is secured by: nothing of it may be dropped silently


def require_java(sides: Iterable[ClusterConfig]) -> None:
    """Raise a RequestError with every problem of all sides, if Java cannot connect as librdkafka does."""
    problems = []
    for side in sides:
        try:
            java_properties(side)
        except RequestError as error:
            problems += error.problems
    if problems:
        raise RequestError(problems)


def java_properties(side: ClusterConfig) -> dict[str, str]:
    """Return a side's librdkafka configuration as properties of the Java client; raises RequestError."""
    reader = _Reader(side)
    found = {**reader.login(), **reader.trust(), **reader.identity()}
    config = reader.config
    if (algorithm := config.pop("ssl.endpoint.identification.algorithm", None)) is not None:
        found["ssl.endpoint.identification.algorithm"] = "" if algorithm == "none" else algorithm
    if config.pop(VERIFY, "true").lower() not in ("true", "t", "1"):
        reader.problem(VERIFY, "must be true, for Java always verifies (got false). Give the CA as ssl.ca.pem.")
    for key in sorted(config):
        if key.startswith(JUDGED):
            reader.problem(key, "must have a counterpart in Kafka's Java client (got one that has none). Take it out.")
    if reader.problems:
        raise RequestError(reader.problems)
    return found | {SAME[name]: value for name, value in config.items() if name in SAME}


class _Reader:
    """Takes out of a configuration what it understands, and collects problems."""

    def __init__(self, side: ClusterConfig) -> None:
        self.config = dict(side.client_config)
        self.problems: list[str] = []
        self._where = f"{side.role}.client_config"

    def problem(self, key: str, text: str) -> None:
        self.problems.append(f"{self._where}: {key} {text}")

    def login(self) -> dict[str, str]:
        mechanism = (self.config.pop("sasl.mechanism", None) or self.config.pop("sasl.mechanisms", None) or "").upper()
        user, password = self.config.pop("sasl.username", ""), self.config.pop("sasl.password", "")
        if not mechanism:
            return {}
        if mechanism not in LOGIN_MODULES:
            allowed = ", ".join(sorted(LOGIN_MODULES))
            self.problem("sasl.mechanism", f"must be supported (got {mechanism}, allowed {allowed})")
            return {}
        login = f'{LOGIN_MODULES[mechanism]} required username="{_quoted(user)}" password="{_quoted(password)}";'
        return {"sasl.mechanism": mechanism, "sasl.jaas.config": login}

    def trust(self) -> dict[str, str]:
        pem = self._text("ssl.ca.pem", "ssl.ca.location")
        return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": pem} if pem else {}

    def identity(self) -> dict[str, str]:
        """What the client shows: certificate and key as PEM, or a PKCS #12 key store."""
        named = {key for key in self.config if key.startswith(("ssl.certificate.", "ssl.key."))} - {"ssl.key.password"}
        password = self.config.pop("ssl.key.password", None) or None
        store = self.config.pop("ssl.keystore.location", None)
        store_password = self.config.pop("ssl.keystore.password", None)
        chain = self._text("ssl.certificate.pem", "ssl.certificate.location")
        key = self._text("ssl.key.pem", "ssl.key.location")
        if store:
            if named:
                self.problem("ssl.keystore.location", f"must stand alone (got {', '.join(sorted(named))} too)")
            return self._key_store(store, store_password)
        if bool(chain) != bool(key) and not self.problems:
            self.problem("ssl.certificate and ssl.key", "must be set together (got one of them). Give the other one.")
        if not chain or not key:
            return {}
        found = {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain}
        if "-----BEGIN PRIVATE" not in key:  # Java reads PKCS #8 only, and of locked keys not those of OpenSSL
            unlocked = _unlocked(key, password)
            if unlocked is None:
                self.problem("ssl.key", "must be a private key that ssl.key.password opens (got none). Correct either.")
                return {}
            key = unlocked
        return {**found, "ssl.keystore.key": key}

    def _key_store(self, location: str, password: str | None) -> dict[str, str]:
        data = self._read("ssl.keystore.location", location)
        if data is None:
            return {}
        try:
            store = load_pkcs12(data, password.encode() if password else None)
        except ValueError:
            store = None
        if store is None or store.cert is None or store.key is None:
            self.problem(
                "ssl.keystore.location",
                f"must be a PKCS #12 file with certificate and key that ssl.keystore.password opens (got {location}).",
            )
            return {}
        chain = [store.cert.certificate, *(one.certificate for one in store.additional_certs)]
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": "".join(one.public_bytes(Encoding.PEM).decode() for one in chain),
            "ssl.keystore.key": _pkcs_8(store.key),
        }

    def _text(self, pem: str, location: str) -> str | None:
        """Return PEM text, given as itself or as a file's path."""
        given, path = self.config.pop(pem, None), self.config.pop(location, None)
        if given or not path:
            return given
        data = self._read(location, path)
        if data is None:
            return None
        if b"-----BEGIN " not in data:
            self.problem(location, f"must be a file in PEM format (got {path}, which holds none)")
            return None
        return data.decode("utf-8", "replace")

    def _read(self, key: str, path: str) -> bytes | None:
        try:
            return Path(path).read_bytes()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            self.problem(key, f"must be a file that can be read (got {path}: {reason})")
            return None


def _unlocked(key: str, password: str | None) -> str | None:
    """Return a private key as PKCS #8 without a password, None if it cannot be read."""
    try:
        return _pkcs_8(load_pem_private_key(key.encode(), password.encode() if password else None))
    except TypeError:  # a password for a key that has none, which librdkafka takes, or none for a key that has one
        return _unlocked(key, None) if password else None
    except ValueError:
        return None


def _pkcs_8(key: PrivateKeyTypes) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
