"""Certificates and kubeconfigs, used as a TLS server and client would use them."""

import socket
import ssl
import threading
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from sandbox import api_server
from sandbox.pki import ControlPlaneAuthority, KeyPair
from sandbox.state import write_private


def files(folder: Path, name: str, pair: KeyPair) -> tuple[Path, Path]:
    folder.mkdir(exist_ok=True)
    write_private(folder / f"{name}.crt", pair.certificate)
    write_private(folder / f"{name}.key", pair.key)
    return folder / f"{name}.crt", folder / f"{name}.key"


def subject_seen_by_server(
    tmp_path: Path, served_by: ControlPlaneAuthority, client_of: ControlPlaneAuthority, name: str
) -> str:
    """Common name that a server, which demands certificates, sees after a handshake for the host `name`."""
    (tmp_path / "ca.crt").write_text(served_by.certificate)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*files(tmp_path, "server", served_by.server(["127.0.0.1"], ["localhost"])))
    server.load_verify_locations(tmp_path / "ca.crt")
    server.verify_mode = ssl.CERT_REQUIRED
    client = api_server.client_tls(tmp_path / "ca.crt", *files(tmp_path, "client", client_of.client("me", "ours")))
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                try:
                    with server.wrap_socket(connection, server_side=True) as tls:
                        seen.append(tls.getpeercert(binary_form=True) or b"")
                        tls.sendall(b"x")
                except (ssl.SSLError, ConnectionError):
                    return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with (
                socket.create_connection(listener.getsockname()) as plain,
                client.wrap_socket(plain, server_hostname=name) as tls,
            ):
                if tls.recv(1) != b"x":
                    raise ssl.SSLError("refused")
        finally:
            thread.join()
    return x509.load_der_x509_certificate(seen[0]).subject.rfc4514_string()


def test_a_server_and_a_client_of_one_authority_trust_each_other(tmp_path: Path) -> None:
    authority = ControlPlaneAuthority()
    assert subject_seen_by_server(tmp_path, authority, authority, "127.0.0.1") == "O=ours,CN=me"


def test_a_certificate_of_another_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        subject_seen_by_server(tmp_path, ControlPlaneAuthority(), ControlPlaneAuthority(), "127.0.0.1")


def test_a_server_under_another_name_is_refused(tmp_path: Path) -> None:
    authority = ControlPlaneAuthority()
    with pytest.raises(ssl.SSLCertVerificationError):
        subject_seen_by_server(tmp_path, authority, authority, "example.org")


def test_a_kubeconfig_is_private_and_complete(tmp_path: Path) -> None:
    authority = ControlPlaneAuthority()
    path = tmp_path / "kubeconfig"
    api_server.write_kubeconfig(path, "https://127.0.0.1:1", authority.certificate, "admin", authority.client("admin"))
    content = yaml.safe_load(path.read_text())
    assert path.stat().st_mode & 0o777 == 0o600
    assert content["contexts"][0]["name"] == content["current-context"]
    assert set(content["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}


def test_a_private_key_does_not_show_itself() -> None:
    assert "PRIVATE" not in repr(ControlPlaneAuthority().client("me"))
