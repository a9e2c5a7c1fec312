"""Certificates of the benchmarks' clusters, in files: brokers, worker and clients show theirs and trust one authority.

The authority's key is in memory only. A certificate can be renewed at any time, with a new key; the earlier one stays
valid, as where renewals begin weeks before the end. Does not own who reads a new one, and when.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509

from sandbox.pki import KeyPair, authority, common_name_only, issue, valid_for
from sandbox.state import write_private

CLIENTS = "clients"
_VALID_DAYS = 30


@dataclass
class Certificates:
    """One authority, and the newest certificate of each owner, in `folder`, valid for `addresses` and localhost."""

    folder: Path
    addresses: Iterable[str]
    _authority: KeyPair = field(default_factory=lambda: authority("benchmark"))
    _newest: dict[str, KeyPair] = field(default_factory=dict)
    _clients: int = 0

    def __post_init__(self) -> None:
        """Write the authority's certificate, which all trust."""
        self.trusted.write_text(self._authority.certificate, encoding="utf-8")

    @property
    def trusted(self) -> Path:
        """The authority's certificate."""
        return self.folder / "ca.crt"

    def keystore(self, owner: str) -> Path:
        """Private key and certificate in one file, as Java reads them: at the same path after a renewal."""
        return self.folder / f"{owner}.pem"

    def newest(self, owner: str) -> str:
        """The certificate that an owner was given last, PEM."""
        return self._newest[owner].certificate

    def client(self) -> dict[str, str]:
        """Properties of a librdkafka client that connects from now on: two files, of one pair in any case."""
        name = f"{CLIENTS}-{self._clients}"
        return {
            "ssl.ca.location": str(self.trusted),
            "ssl.certificate.location": str(self.folder / f"{name}.crt"),
            "ssl.key.location": str(self.folder / f"{name}.key"),
        }

    def renew(self, owner: str) -> None:
        """Give an owner its first certificate and key, or new ones; the file is exchanged at once."""
        names = [x509.DNSName("localhost"), *(x509.IPAddress(ipaddress.ip_address(one)) for one in self.addresses)]
        pair = issue(self._authority, common_name_only(owner), valid=valid_for(_VALID_DAYS), names=names)
        write_private(self.keystore(owner), pair.keystore)
        if owner == CLIENTS:
            name = f"{CLIENTS}-{self._clients + 1}"
            write_private(self.folder / f"{name}.crt", pair.certificate)
            write_private(self.folder / f"{name}.key", pair.key)
            self._clients += 1
        self._newest[owner] = pair
