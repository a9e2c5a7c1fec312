"""What the newest run of a verification tells, where more than one is told of."""


def newest(series: str, finished: str) -> str:
    """Return what the newest run tells: a push gateway keeps an old one beside a newer of `ops`, or both the same.

    A run that does not say when it finished counts where no other does.
    """
    latest = f"({finished} == on (stack, mirror) group_left () max by (stack, mirror) ({finished}))"
    return f"{series} and on (stack, mirror, instance, job) {latest} or {series} unless on (stack, mirror) {finished}"
