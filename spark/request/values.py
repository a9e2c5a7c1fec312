"""What values of the request's JSON document are."""


def is_count(value: object, least: int = 0) -> bool:
    """Whether a value is a whole number, not less than `least`. JSON may write it as 3.0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == int(value) and value >= least
