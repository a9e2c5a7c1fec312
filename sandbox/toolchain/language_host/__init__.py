"""`pulumi-language-python`: lets the Pulumi engine run Python programs.

The official host is a Go program that is published as a binary only. This one answers the same calls over the stubs
that the Pulumi SDK ships, so that previews, updates and destroys are the same. It owns no knowledge of any particular
program. Engines from 3.221 on let it start policy packs too. Earlier engines start those by the launchers out of the
SDK's module, and every engine starts dynamic providers so.

Here the SDK's stubs are loaded without the rest of the SDK, which takes 0.2 s and has no part in answering the engine.
"""

import importlib.util
import sys
from types import ModuleType

PACKAGES = ("pulumi", "pulumi.runtime")  # on the way to the stubs


def without_the_rest() -> None:
    """Put empty packages in place of those of the SDK, in which only the stubs are found.

    For a process that does nothing but serve, before it imports anything of the SDK. Raises ModuleNotFoundError.
    """
    found = importlib.util.find_spec(PACKAGES[0])  # does not run it
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("pulumi: must be installed for this Python (not found). Run `make setup`.")
    folder = found.submodule_search_locations[0]
    for name in PACKAGES:
        package = ModuleType(name)
        package.__path__ = ["/".join([folder, *name.split(".")[1:]])]
        sys.modules[name] = package
