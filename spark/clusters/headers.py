"""The headers of one record, read so that a name that is not UTF-8 cannot end the process.

Kafka's protocol says that a name is UTF-8, and no broker checks it: producers in C and Go write any bytes. The method
`Message.headers` of confluent-kafka 2.16.1 (the newest one) leaves such a name out of its tuple, as a null pointer, and
the exception pending. Where the interpreter calls the method itself it notices neither, and the first look at the name
is a segmentation fault. `operator.methodcaller` calls it through `PyObject_VectorcallMethod`, which checks each result.
"""

from collections.abc import Sequence
from operator import methodcaller
from typing import Any

Headers = Sequence[tuple[str | bytes, bytes | None]]
"""Names and values in their order. Names are bytes only where they were read without the client's decoding."""
REPLACED = "\ufffd"
"""What a Java client, and with it a mirror, puts in the place of bytes of a name that are not UTF-8."""
_headers = methodcaller("headers")


class UndecodableError(Exception):
    """A header of this record has a name that is not UTF-8: `RawConsumer` reads it."""


def headers(message: Any) -> Headers | None:
    """Return the headers of a message. Call it once for each message: a second call would return the broken list.

    Raises UndecodableError for a name that is not UTF-8.
    """
    try:
        found: Headers | None = _headers(message)
    except (SystemError, UnicodeDecodeError):
        raise UndecodableError from None
    return found


def headers_as_copied(message: Any) -> Headers | None:
    """Return headers that are equal for a record and a mirror's copy of it; call it once for each message.

    All headers of which a name is not UTF-8, or was not before the copy, are the same here.
    """
    try:
        found = headers(message)
    except UndecodableError:
        return [(REPLACED, None)]
    replaced = any(isinstance(name, str) and REPLACED in name for name, _ in found or ())
    return [(REPLACED, None)] if replaced else found
