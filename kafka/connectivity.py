"""Why a cluster cannot be reached: certificates and authorities of TLS, and the addresses that its brokers advertise.

A bootstrap server that answers proves nothing about the other brokers, and librdkafka only waits for them.
"""

import contextlib
import re
import socket
import ssl
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509

from kafka.topic_partition import TopicPartition

SOON = timedelta(days=14)
PROBE_S = 5.0
ALERT_S = 2.0
_EXPIRED, _TOO_EARLY, _HOST, _ADDRESS = 10, 9, 62, 64  # X509_V_ERR_* of OpenSSL's x509_vfy.h
_CLIENT_FIX = "Renew it and give the new one as ssl.certificate.pem and ssl.key.pem."
_UNREACHED_FIX = "Check bootstrap.servers and that the brokers are up."
_LISTENER_FIX = "Check the port in bootstrap.servers and security.protocol."
Config = Mapping[str, str]
Problem = tuple[str, str]


def client_certificate(config: Config) -> x509.Certificate | None:
    """Return the certificate that the client shows, None without one that can be read."""
    found = _read(config, "ssl.certificate.pem", "ssl.certificate.location")
    return found[0] if found else None


def subject(config: Config) -> str | None:
    """Return the name that a client certificate gives its user."""
    certificate = client_certificate(config)
    return certificate.subject.rfc4514_string() if certificate is not None else None


def client_problem(config: Config, now: datetime | None = None) -> Problem | None:
    """Return what is wrong with the client's own certificate and what to do, None if nothing is."""
    certificate, moment = client_certificate(config), now or datetime.now(UTC)
    if certificate is None:
        return None
    name = certificate.subject.rfc4514_string()
    if certificate.not_valid_after_utc <= moment:
        return f"the client certificate {name} expired on {_day(certificate.not_valid_after_utc)}", _CLIENT_FIX
    if certificate.not_valid_before_utc > moment:
        begins = _day(certificate.not_valid_before_utc)
        return f"the client certificate {name} is valid from {begins} on only", "Check the clock of this machine."
    return None


def warnings(config: Config, now: datetime | None = None) -> list[str]:
    """Return a line for the client's certificate and for each trusted authority that ends soon."""
    moment = now or datetime.now(UTC)
    return [f"{what} {_ends(end, moment)}. Renew it." for what, end in trusted(config) if end <= moment + SOON]


def trusted(config: Config) -> list[tuple[str, datetime]]:
    """Return the client's certificate and each authority that it trusts: what each is, and when it expires."""
    own = client_certificate(config)
    named = [("the client certificate", own)] if own is not None else []
    named += [("the trusted authority", one) for one in _read(config, "ssl.ca.pem", "ssl.ca.location")]
    return [(f"{what} {one.subject.rfc4514_string()}", one.not_valid_after_utc) for what, one in named]


def broker_certificate(address: str) -> tuple[str, datetime] | None:
    """Return what the certificate of a broker at `host:port` is, and when it expires; None without one."""
    one = _shown_by(address)
    if one is None:
        return None
    return f"the broker's certificate {one.subject.rfc4514_string()} at {address}", one.not_valid_after_utc


def lasts(found: Problem, config: Config, address: str) -> bool:
    """Whether waiting cannot help against a problem of a TLS connection to `host:port`.

    A broker that starts, and a line that is cut or heals in the middle of a handshake, look like one that is not there
    or speaks no TLS. The handshake here shows no certificate of the client's, so it says nothing of one.
    """
    if found[1] in (_UNREACHED_FIX, _LISTENER_FIX):
        return False
    return subject(config) is None or found != client_refused(config, address)


def problem(config: Config, address: str, now: datetime | None = None) -> Problem | None:
    """Return what keeps a client from connecting to `host:port` and what to do, None if a connection is taken."""
    encrypted = "SSL" in config.get("security.protocol", "").upper()
    moment = now or datetime.now(UTC)
    trusted = _read(config, "ssl.ca.pem", "ssl.ca.location")
    if encrypted and trusted and all(one.not_valid_after_utc <= moment for one in trusted):
        day = _day(max(one.not_valid_after_utc for one in trusted))
        return f"every authority in ssl.ca.pem expired, the last on {day}", "Give the cluster's present CA certificate."
    try:
        if not encrypted:
            return _speaks_tls(address)
        _handshake(config, address)
    except ssl.SSLCertVerificationError as error:
        return _verification(error, address)
    except ssl.SSLError as error:
        if error.reason and "ALERT" in error.reason:
            return client_refused(config, address)
        return f"{address} does not speak TLS", _LISTENER_FIX
    except TimeoutError:
        return f"{address} cannot be reached within {PROBE_S:.0f} s", _UNREACHED_FIX
    except OSError as error:
        return f"{address} cannot be reached ({error.strerror or error})", _UNREACHED_FIX
    return None


def address_in(text: str) -> str | None:
    """Return the `host:port` that a message of librdkafka is about."""
    found = re.search(r"://(\[[^\]]+\]:\d+|[^/\s:]+:\d+)/", text)
    return found.group(1) if found else None


def _handshake(config: Config, address: str) -> None:
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context(
        cadata=config.get("ssl.ca.pem") or None, cafile=config.get("ssl.ca.location") or None
    )
    context.check_hostname = config.get("ssl.endpoint.identification.algorithm", "https") != "none"
    with (
        contextlib.closing(socket.create_connection((host.strip("[]"), int(port)), PROBE_S)) as plain,
        context.wrap_socket(plain, server_hostname=host.strip("[]")) as wrapped,
    ):
        wrapped.settimeout(ALERT_S)
        with contextlib.suppress(TimeoutError):  # TLS 1.3: the server judges the client after the client is done
            wrapped.recv(1)


def _speaks_tls(address: str) -> Problem | None:
    host, _, port = address.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with contextlib.closing(socket.create_connection((host.strip("[]"), int(port)), PROBE_S)) as plain:
        try:
            context.wrap_socket(plain).close()
        except OSError:
            return None
    return f"{address} speaks TLS", "Set security.protocol to SSL or SASL_SSL."


def _verification(error: ssl.SSLCertVerificationError, address: str) -> Problem:
    shown = _shown_by(address)
    if error.verify_code in (_EXPIRED, _TOO_EARLY):
        day = f" on {_day(shown.not_valid_after_utc)}" if shown is not None and error.verify_code == _EXPIRED else ""
        word = f"expired{day}" if error.verify_code == _EXPIRED else "is not valid yet"
        return f"the broker's certificate at {address} {word}", "Renew the broker's certificate, and check both clocks."
    if error.verify_code in (_HOST, _ADDRESS):
        return (
            f"the broker's certificate at {address} does not name this host",
            "Use a name that it holds in bootstrap.servers, or issue it for this one.",
        )
    issuer = f" (issued by {shown.issuer.rfc4514_string()})" if shown is not None else ""
    return (
        f"the broker's certificate at {address} is not signed by the CA in ssl.ca.pem{issuer}",
        "Give the CA certificate of this cluster, with Strimzi ca.crt of Secret CLUSTER-cluster-ca-cert.",
    )


def client_refused(config: Config, address: str) -> Problem:
    """Return that a broker demands a client certificate, or refuses the one that is configured, and what to do."""
    name = subject(config)
    if name is None:
        return f"{address} demands a client certificate", "Set ssl.certificate.pem and ssl.key.pem."
    return (
        f"{address} refuses the client certificate {name}",
        "Show a certificate that the cluster's clients CA signed, with the key that belongs to it.",
    )


def _shown_by(address: str) -> x509.Certificate | None:
    host, _, port = address.rpartition(":")
    try:
        pem = ssl.get_server_certificate((host.strip("[]"), int(port)), timeout=PROBE_S)
        return x509.load_pem_x509_certificate(pem.encode())
    except (OSError, ValueError):
        return None


def _read(config: Config, pem: str, location: str) -> list[x509.Certificate]:
    try:
        text = config.get(pem, "").encode() or Path(config[location]).read_bytes()
        return x509.load_pem_x509_certificates(text)
    except (KeyError, OSError, ValueError):
        return []


def _ends(end: datetime, now: datetime) -> str:
    return f"expired on {_day(end)}" if end <= now else f"expires on {_day(end)}, in {(end - now).days} days"


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC")


CONNECT_S = 3.0


@dataclass(frozen=True, order=True)
class Broker:
    """A broker and the address that it advertises."""

    number: int
    host: str
    port: int


def leaders(metadata: Any, names: Iterable[str]) -> dict[TopicPartition, Broker | None]:
    """Return the leader of each partition of these topics, from librdkafka's metadata; None if it has no leader."""
    found: dict[TopicPartition, Broker | None] = {}
    for name in names:
        for number, part in metadata.topics[name].partitions.items():
            broker = metadata.brokers.get(part.leader)
            found[TopicPartition(name, number)] = (
                Broker(broker.id, broker.host, broker.port) if broker is not None else None
            )
    return found


def without_reachable_leader(
    led: Mapping[TopicPartition, Broker | None], reached: set[Broker]
) -> dict[TopicPartition, Broker | None]:
    """Return the partitions that have no leader, or one that takes no connection; adds the others to `reached`."""
    wanted = {broker for broker in led.values() if broker is not None} - reached
    with ThreadPoolExecutor(16) as pool:
        answers = zip(wanted, pool.map(connection_error, wanted), strict=True)
    reached |= {broker for broker, error in answers if error is None}
    return {tp: broker for tp, broker in led.items() if broker is None or broker not in reached}


def connection_error(broker: Broker) -> str | None:
    """Return why a broker takes no connection, None if it takes one."""
    return unreachable(broker.host, broker.port)


def unreachable(host: str, port: int) -> str | None:
    """Return why a port takes no connection, None if it takes one."""
    try:
        with contextlib.closing(socket.create_connection((host, port), CONNECT_S)):
            return None
    except TimeoutError:
        return f"cannot be reached within {CONNECT_S:.0f} s"
    except OSError as error:
        return f"cannot be reached ({error.strerror or error})"
