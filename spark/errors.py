"""Errors of the verification job. None of them ever carries a secret."""


class VerificationError(Exception):
    """Base of all errors that end the job with exit code 2."""


class RequestError(VerificationError):
    """The request is wrong; carries every problem found, not only the first."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class ClusterError(VerificationError):
    """A cluster cannot be reached or refuses the user."""


class DeniedError(ClusterError):
    """The user lacks a right; names the operation and the resource."""


class UnansweredError(ClusterError):
    """A call to a cluster got no answer in time: it may have gone to a broker that the job needs for nothing else."""


class SessionError(VerificationError):
    """Spark cannot be started, or cannot read the clusters."""


class DeadlineError(VerificationError):
    """The run did not end in time."""
