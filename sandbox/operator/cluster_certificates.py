"""Certificates of one Kafka cluster in files: what its listeners trust, and what its brokers and operator show.

`ca.crt` is the authority that is published; `trusted.crt` adds its earlier keys and is what brokers and operator trust
among themselves; `clients-ca.crt` is what listeners with client certificates trust. `clients-ca-issuer.crt` follows
once all brokers run with it: from then on users get certificates of that authority.
"""

from . import metrics_config, pki
from .authorities import Authority
from .files import write_private
from .layout import CLIENTS, CLIENTS_ISSUER, PUBLISHED, TRUSTED, Layout, Node


def write_trust(plan: Layout, cluster: Authority, clients: Authority) -> None:
    """Put what is trusted into files; brokers read them at their next start."""
    write_private(plan.folder / PUBLISHED, cluster.current.certificate)
    write_private(plan.folder / TRUSTED, cluster.bundle)
    write_private(plan.folder / CLIENTS, clients.bundle)


def issue(plan: Layout, authority: Authority, accepted: Authority) -> None:
    """Give operator and brokers certificates of `authority`, except where they have one that `accepted` signed."""
    ca, cluster = authority.current, plan.cluster
    if not _is_signed(plan, "operator.crt", accepted):
        own = pki.operator_certificate(ca, cluster)
        write_private(plan.folder / "operator.key", own.key)
        write_private(plan.folder / "operator.crt", own.certificate)
    for node in plan.nodes:
        if not _is_signed(plan, f"{node.id}/broker.crt", accepted):
            pair = pki.broker_certificate(ca, cluster, plan.namespace, plan.pod(node))
            write_private(plan.home(node) / "keystore.pem", pair.keystore)
            write_private(plan.home(node) / "broker.crt", pair.certificate)


def all_run_with(plan: Layout, clients: Authority) -> None:
    """Remember that every broker trusts this authority of the clients."""
    write_private(plan.folder / CLIENTS_ISSUER, clients.current.certificate)


def may_sign_users(plan: Layout, clients: Authority) -> bool:
    """True once every broker trusts this authority of the clients."""
    path = plan.folder / CLIENTS_ISSUER
    return path.exists() and path.read_text(encoding="utf-8") == clients.current.certificate


def read_at_start(plan: Layout, node: Node) -> list[bytes]:
    """Contents of the files that a broker reads only at its start."""
    home, folder = plan.home(node), plan.folder
    paths = [home / "server.properties", home / "broker.crt", folder / TRUSTED, folder / CLIENTS]
    rules = home / metrics_config.FILE
    paths += [rules] if rules.exists() else []
    return [path.read_bytes() for path in paths]


def _is_signed(plan: Layout, name: str, accepted: Authority) -> bool:
    path = plan.folder / name
    return path.exists() and accepted.signed(path.read_text(encoding="utf-8"))
