"""Certificates that begin and end when a test says."""

from datetime import UTC, datetime, timedelta

from sandbox.pki import common_name_only, self_signed


def certificate(name: str, *, begins_in_days: float = -10, ends_in_days: float) -> str:
    """Return a self-signed certificate, PEM."""
    return self_signed(common_name_only(name), valid=(_in(begins_in_days), _in(ends_in_days))).certificate


def _in(days: float) -> datetime:
    return datetime.now(UTC) + timedelta(days=days)
