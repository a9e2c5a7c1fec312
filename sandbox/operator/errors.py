"""Errors of the operator: every one carries the reason and message that the resource's condition shows."""


class OperatorError(Exception):
    """Base of the operator's errors."""


class NotReadyError(OperatorError):
    """The resource cannot be Ready now.

    `reason` is one CamelCase word, `message` says what to do, `retry_s` when it is tried again, `status` what else is
    known about the resource.
    """

    def __init__(
        self, reason: str, message: str, *, retry_s: float = 5.0, status: dict[str, object] | None = None
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.retry_s = retry_s
        self.status = status or {}
