"""Errors of the verification job itself. None of them ever carries a secret."""

from contract.fields import VerificationError


class SessionError(VerificationError):
    """Spark cannot be started, or cannot read the clusters."""


class DeadlineError(VerificationError):
    """The run did not end in time."""
