"""The environment of a command has passwords and tokens: no object that keeps it shows it in its `repr`."""

import dataclasses
import importlib
import pkgutil
from typing import Any

import ops


def keepers() -> dict[str, dataclasses.Field[Any]]:
    """The field `environment` of each dataclass of `ops` that has one, by the class."""
    found = dict[str, dataclasses.Field[Any]]()
    for module in pkgutil.walk_packages(ops.__path__, "ops."):
        if not module.name.endswith("__main__"):
            for each in vars(importlib.import_module(module.name)).values():
                if isinstance(each, type) and dataclasses.is_dataclass(each):
                    fields = {field.name: field for field in dataclasses.fields(each)}
                    if "environment" in fields:
                        found[f"{each.__module__}.{each.__qualname__}"] = fields["environment"]
    return found


def test_no_environment_is_shown() -> None:
    found = keepers()
    assert len(found) >= 8
    assert [name for name, field in found.items() if field.repr] == []
