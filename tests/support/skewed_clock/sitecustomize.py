"""A wall clock that is wrong, in a Python process that has this folder for its PYTHONPATH and is said by how much.

Python runs a module of this name before any other. What the process starts keeps the machine's clock: a library in C
that waits until a time asks the system for it.
"""

import datetime
import os
import time

_AHEAD_S = float(os.environ.pop("CLOCK_AHEAD_S"))
del os.environ["PYTHONPATH"]
_true, _now, _now_ns = datetime.datetime, time.time, time.time_ns


class _AnyDatetime(type):
    """What others have made with the true class is of the other one too."""

    def __instancecheck__(cls, one: object) -> bool:
        return isinstance(one, _true)


class _Datetime(_true, metaclass=_AnyDatetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
        return _true.now(tz) + datetime.timedelta(seconds=_AHEAD_S)


time.time = lambda: _now() + _AHEAD_S
time.time_ns = lambda: _now_ns() + int(_AHEAD_S * 1e9)
datetime.datetime = _Datetime  # type: ignore[misc]
