"""Whether a live object is what the program declares, and where it is not."""

from collections.abc import Iterator, Mapping
from typing import Any


def differences(declared: Any, live: Any, where: str = "") -> Iterator[str]:
    """Yield the paths at which the live value lacks what is declared; what else it holds is nobody's concern here."""
    if isinstance(declared, Mapping) and isinstance(live, Mapping):
        for key, value in declared.items():
            step = f"[{key}]" if "." in key else f".{key}"
            yield from differences(value, live.get(key), f"{where}{step}")
    elif isinstance(declared, list) and isinstance(live, list) and len(declared) == len(live):
        for index, (one, other) in enumerate(zip(declared, live, strict=True)):
            yield from differences(one, other, f"{where}[{index}]")
    elif not _same(declared, live):
        yield f"{where.lstrip('.')} (declared {_shown(declared)}, there {_shown(live)})"


def surplus(declared: Any, live: Any, where: str = "") -> Iterator[str]:
    """Yield the paths of what the live value holds and the declaration does not: an update would take it away."""
    if isinstance(declared, Mapping) and isinstance(live, Mapping):
        for key, value in live.items():
            step = f"[{key}]" if "." in key else f".{key}"
            if key in declared:
                yield from surplus(declared[key], value, f"{where}{step}")
            elif value not in (None, {}, []):
                yield f"{where}{step}".lstrip(".") + " (there, and the settings cannot say it)"
    elif isinstance(declared, list) and isinstance(live, list) and len(declared) == len(live):
        for index, (one, other) in enumerate(zip(declared, live, strict=True)):
            yield from surplus(one, other, f"{where}[{index}]")


def _same(declared: Any, live: Any) -> bool:
    empty: tuple[Any, ...] = (None, {}, [])
    return bool(declared == live or (declared in empty and live in empty))


def _shown(value: Any) -> str:
    if isinstance(value, Mapping | list):
        return "a mapping" if isinstance(value, Mapping) else f"a list of {len(value)}"
    return "nothing" if value is None else repr(value)
