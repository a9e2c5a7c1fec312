"""Kubeconfig files: who may talk to the API server and as whom."""

import base64
import ssl
from pathlib import Path

import yaml

from .certificates import KeyPair
from .state import PROJECT, write_private

NAME = "rt-inventory-sandbox"


def write(path: Path, server: str, authority: bytes, user: str, pair: KeyPair) -> None:
    """Write a kubeconfig (0600) with one cluster and one user, whose certificate and key lie in the file itself.

    The contexts that the project's stack files name are this cluster too.
    """
    from settings import contexts  # here, because most commands write none and would wait for all settings

    names = dict.fromkeys([NAME, *contexts(PROJECT).values()])
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": NAME,
        "clusters": [{"name": NAME, "cluster": {"server": server, "certificate-authority-data": _base64(authority)}}],
        "users": [
            {
                "name": user,
                "user": {"client-certificate-data": _base64(pair.certificate), "client-key-data": _base64(pair.key)},
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": NAME, "user": user}} for name in names],
    }
    write_private(path, yaml.safe_dump(content, sort_keys=False))


def tls(authority: Path, certificate: Path, key: Path) -> ssl.SSLContext:
    """A client's TLS context that trusts this authority only and shows this certificate."""
    context = ssl.create_default_context(cafile=str(authority))
    context.load_cert_chain(certificate, key)
    return context


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
