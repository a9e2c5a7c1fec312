"""The digest of one record in plain Python: the same words as the Spark expressions of `digests` give.

Spark's XXH64 of several columns takes each as the seed of the next, and passes over nulls.
"""

import struct
import zlib

from xxhash import xxh64_intdigest

from spark.clusters.headers import Headers

SEED = 42  # Spark's
SECOND = 7_046_029_254_386_353_131  # any constant: it seeds the second word
NULL = "\0null-dd1c2b4f5a7e\0"  # any text that is no header's value
_LONG, _INT = struct.Struct("<q"), struct.Struct("<i")
_WORD, _SIGN = 2**64, 2**63
Hashes = tuple[int, int, int | None, int | None, int, int]
"""Words a and b, key, value, headers, timestamp in milliseconds: as columns of `digests.words` and `hashes`."""


def hashes(key: bytes | None, value: bytes | None, headers: Headers | None, timestamp: int) -> Hashes:
    """Return the words of a record's digest and the hashes of its parts, signed 64-bit numbers; timestamp in ms."""
    signed = _headers(headers)
    stamp = _microseconds(timestamp)
    a = _content(SEED, key, value, value, signed, stamp)
    crc = None if value is None else _LONG.pack(zlib.crc32(value))
    b = _content(xxh64_intdigest(_LONG.pack(SECOND), SEED), key, value, crc, signed, stamp)
    parts = (None if part is None else _signed(xxh64_intdigest(part, SEED)) for part in (key, value))
    hashed_key, hashed_value = parts
    return _signed(a), _signed(b), hashed_key, hashed_value, signed, timestamp


def digest_of(a: int, b: int) -> str:
    """Both words as 32 hexadecimal digits, as `digests.digest` writes them."""
    return f"{a % _WORD:016x}{b % _WORD:016x}"


def _content(seed: int, key: bytes | None, value: bytes | None, taken: bytes | None, headers: int, stamp: bytes) -> int:
    seed = xxh64_intdigest(stamp, seed)
    seed = xxh64_intdigest(_INT.pack(key is None), seed)
    if key is not None:
        seed = xxh64_intdigest(key, seed)
    seed = xxh64_intdigest(_INT.pack(value is None), seed)
    if taken is not None:
        seed = xxh64_intdigest(taken, seed)
    return xxh64_intdigest(_LONG.pack(headers), seed)


def _microseconds(timestamp: int) -> bytes:
    """The timestamp as Spark hashes it; one that Spark cannot hold in another form, which none of the others has."""
    try:
        return _LONG.pack(timestamp * 1000)
    except struct.error:
        return _LONG.pack(timestamp) + _LONG.pack(0)


def _headers(headers: Headers | None) -> int:
    if not headers:
        return 0
    seed = SEED
    for name, value in headers:
        seed = xxh64_intdigest(name.encode() if isinstance(name, str) else name, seed)
        if value is not None:
            seed = xxh64_intdigest(value, seed)
    seed = xxh64_intdigest(_INT.pack(len(headers)), seed)
    joined = b",".join(NULL.encode() if value is None else value for _, value in headers)
    return _signed(xxh64_intdigest(joined, seed))


def _signed(word: int) -> int:
    return word - _WORD if word >= _SIGN else word
