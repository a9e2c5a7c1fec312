"""How many cases a property is tried with: the same few in every run, or many new ones when somebody searches.

A property that draws other cases in each run fails by chance in a change that has nothing to do with it.
"""

import os

import hypothesis

TIMES = int(os.environ.get("RT_INVENTORY_TEST_CASES", "1"))
"""So many times more cases than usual, drawn at random. 1: the usual ones, the same in every run."""

_NUMBER = 100


def patient_profile() -> hypothesis.settings:
    """Return the settings of every property: neither a case nor how it is made has a deadline."""
    return hypothesis.settings(
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
        derandomize=TIMES == 1,
        max_examples=_NUMBER * TIMES,
    )


def cases(number: int) -> hypothesis.settings:
    """Return the settings of a property that needs more or fewer cases than others."""
    return hypothesis.settings(max_examples=number * TIMES)
