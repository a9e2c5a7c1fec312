"""Two topics of a made-up broker with headers whose names are not UTF-8; they differ in one byte of one name."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from contract.verification_request import ClusterConfig
from tests.support import raw_producer

COUNT = 60
AT = 1_700_000_000_000
NAMES: Sequence[bytes] = ("grün".encode(), b"gr\xfcn", b"", b"\xff", b"\xed\xa0\x80", b"plain")


def record(number: int, names: Sequence[bytes]) -> dict[str, Any]:
    values = [None, b"", b"\xff\x00"]
    named = [(name, values[(number + at) % 3]) for at, name in enumerate(names)]
    return {"key": b"k%d" % number, "value": b"v%d" % number, "timestamp": AT + number, "headers": named}


UNDECODABLE = 10  # records
# Records 0 to 29 are clean, of the others all but each third have a name that no consumer may decode.
RECORDS = [
    record(n, [b"plain"] * (n % 3) if n < 30 else [NAMES[n // 3 % 6], b"ok", NAMES[3]][: n % 3]) for n in range(COUNT)
]
AT_ALTERED = 40
_NAMED = [(b"gr\xfdn", RECORDS[AT_ALTERED]["headers"][0][1]), *RECORDS[AT_ALTERED]["headers"][1:]]
ALTERED = [*RECORDS[:AT_ALTERED], RECORDS[AT_ALTERED] | {"headers": _NAMED}, *RECORDS[AT_ALTERED + 1 :]]


@contextmanager
def with_odd_names() -> Iterator[str]:
    """Yield the address of a broker that holds RECORDS in topic `named`, and ALTERED in topic `altered`."""
    with raw_producer.made_up_broker() as address:
        for topic, records in (("named", RECORDS), ("altered", ALTERED)):
            raw_producer.write({"bootstrap.servers": address}, topic, 0, records)
        yield address


def side(role: str, broker: str) -> ClusterConfig:
    """A side of a request whose cluster is this broker."""
    return ClusterConfig(role=role, alias="dev", client_config={"bootstrap.servers": broker})
