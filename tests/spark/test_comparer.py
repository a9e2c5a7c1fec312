"""Who compares: this process alone few records, Spark many."""

from concurrent.futures import Future
from typing import Any, cast

import pytest

from spark.comparison import ABOVE, ABOVE_RECORDS, Comparer
from spark.errors import SessionError
from spark.records.starting import Starting


class Begun:
    """Notes with what Spark is begun."""

    def __init__(self) -> None:
        self.small: list[bool] = []

    def begin(self, *, small: bool) -> Future[Any]:
        self.small.append(small)
        return Future()


def begun(records: int, **environment: str) -> list[bool]:
    starting = Begun()
    Comparer(cast("Any", None), environment, cast("Starting", starting), cast("Any", ())).begin(records)
    return starting.small


def test_spark_is_begun_for_many_records_only_and_compiles_well_for_very_many() -> None:
    assert begun(ABOVE_RECORDS) == []
    assert begun(ABOVE_RECORDS + 1) == [True]
    assert begun(1_000_000) == [False]


def test_the_environment_says_above_how_many() -> None:
    assert begun(1, RT_INVENTORY_SPARK_ABOVE="0") == [True]
    assert begun(0, RT_INVENTORY_SPARK_ABOVE="0") == []
    assert begun(2_000_000, RT_INVENTORY_SPARK_ABOVE="2000000") == []


@pytest.mark.parametrize("value", ["many", "-1", "", "1e6"])
def test_what_is_no_number_of_records_is_refused(value: str) -> None:
    with pytest.raises(SessionError, match=f"^{ABOVE}: must be a number of records from 0"):
        begun(1, **{ABOVE: value})
